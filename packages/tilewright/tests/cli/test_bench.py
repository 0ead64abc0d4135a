# SPDX-License-Identifier: Apache-2.0
"""`bench`: it works from the package alone, and tells machines what it tells people."""


def test_bench_measures_ratios(run):
    done = run("bench", "--size", "64", "--rounds", "1", "--json").json
    assert {row["group"] for row in done["rows"]} == {"copy", "layout", "stream"}
    assert all(row["seconds"] > 0 and row["ratios"]["memcpy"] > 0 for row in done["rows"])
    assert any("NumPy" in row["ratios"] for row in done["rows"])


def test_bench_shows_a_table(run):
    shown = run("bench", "layout", "--size", "50", "--rounds", "1", "--threads", "2").out
    assert "/ memcpy" in shown
    assert "2500 offsets" in shown
    assert "tiles" not in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
