# SPDX-License-Identifier: Apache-2.0
"""`bench` and `doctor`: they work from the package alone, and tell machines what they tell people."""

import pytest


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


def test_doctor_examines_every_engine(run):
    from tilewright.copy.engine import ENGINES

    data = run("doctor", "--json").json
    assert [each["name"] for each in data["engines"]] == [name for name in ENGINES if name != "auto"]
    assert all(each["is_right"] or each["why_not"] for each in data["engines"])
    assert data["machine"]["usable_cores"] >= 1
    shown = run("doctor").out
    assert "bits checked" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_doctor_says_why_the_native_engine_is_missing_and_what_to_do(start):
    done = start("doctor", environment={"TILEWRIGHT_NATIVE": "0"})
    shown, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    assert "native     no" in shown
    assert "unset the variable to use it" in " ".join(shown.split())
    assert "TILEWRIGHT_NATIVE=0" in shown


def test_doctor_reports_an_engine_with_wrong_bits(run, monkeypatch):
    from tilewright.cli import doctor

    monkeypatch.setattr(doctor, "_gives_right_bits", lambda name: name != "reference")
    assert "WRONG" in run("doctor", status=1).out


def test_doctor_reports_an_engine_that_fails(run, monkeypatch):
    def fails(name):
        raise RuntimeError("the driver is asleep")

    monkeypatch.setattr("tilewright.cli.doctor._gives_right_bits", fails)
    assert "it is found, but fails: RuntimeError: the driver is asleep" in " ".join(run("doctor", status=1).out.split())


@pytest.mark.parametrize("threads", ["3", "many"])
def test_doctor_shows_the_threads_that_were_asked_for(run, monkeypatch, threads):
    monkeypatch.setenv("TILEWRIGHT_THREADS", threads)
    monkeypatch.setattr("tilewright.cli.doctor._gives_right_bits", lambda name: True)
    expected = "3 threads" if threads == "3" else "TILEWRIGHT_THREADS is no number of threads"
    assert expected in run("doctor").out
