# SPDX-License-Identifier: Apache-2.0
"""`tilewright audit`: clean reports, findings, and files that are no reports, by exit status."""

import json

from ..auditing.damages import REPORTS

CLEAN = "wormhole_n150.sharded_eltwise.normal.json"


def test_a_clean_report(run):
    said = run("audit", str(REPORTS / CLEAN)).out
    assert said.startswith(f"{CLEAN}: clean")
    assert "L1: at most 32768" in said
    assert "notes" not in run("audit", str(REPORTS / CLEAN), "--no-notes").out


def test_findings_exit_with_1_and_json_has_them(run, tmp_path):
    report = json.loads((REPORTS / CLEAN).read_text())
    report["graph"][17]["params"]["size"] += 32
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    data = json.loads(run("audit", str(path), "--json", status=1).out)
    assert data["findings"][0]["kind"] == "size"
    assert data["findings"][0]["recorded"] - data["findings"][0]["expected"] == 32
    both = json.loads(run("audit", str(path), str(REPORTS / CLEAN), "--json", status=1).out)
    assert [each["clean"] for each in both["reports"]] == [False, True]


def test_what_is_not_readable_exits_with_2(run, tmp_path):
    path = tmp_path / "report.json"
    path.write_text('{"graph": [')
    assert "at byte 11" in run("audit", str(path), status=2).err
    assert "nothing.json" in run("audit", "nothing.json", status=2).err
