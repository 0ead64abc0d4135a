# SPDX-License-Identifier: Apache-2.0
"""The recorded reports and databases: clean, with ttnn's own peaks, and every address as the allocator predicts it."""

import json

import pytest

import tilewright as tw
from tilewright.ttnn.visualizer_report import write_visualizer_report

from .damages import INDEX, REPORTS
from .report_databases import write_database


def test_recorded_reports_are_clean_and_have_the_peaks_of_ttnn():
    assert len(INDEX) >= 32
    predicted = 0
    for entry in INDEX:
        report = tw.audit(REPORTS / entry["file"])
        assert report.clean, (entry["file"], [str(finding) for finding in report.findings])
        assert report.peaks.to_json() == entry["ttnn_says"], entry["file"]
        assert report.chip.name == entry["board"]
        assert report.counts["addresses"] == report.counts["predicted_addresses"], entry["file"]
        assert report.exit_status == 0
        predicted += report.counts["predicted_addresses"]
    assert predicted > 60


def test_recorded_databases_are_clean():
    paths = sorted(REPORTS.glob("*.sqlite"))
    assert len(paths) >= 4
    for path in paths:
        report = tw.audit(path)
        assert report.clean, (path.name, [str(finding) for finding in report.findings])
        assert report.counts["addresses"] == report.counts["predicted_addresses"] > 0
        twin = tw.audit(path.with_name(path.name.replace(".db.sqlite", ".normal.json")))
        assert report.peaks.l1 == twin.peaks.l1


@pytest.mark.parametrize("old", [False, True])
def test_databases_of_all_reports_are_clean(tmp_path, old):
    for entry in INDEX:
        path = tmp_path / f"{entry['file']}.sqlite"
        write_database(json.loads((REPORTS / entry["file"]).read_text()), path, old)
        report = tw.audit(path)
        assert report.clean, (entry["file"], [str(finding) for finding in report.findings])
        assert report.chip.name == entry["board"]


def test_the_graph_alone_is_a_report(tmp_path):
    for entry in INDEX[::3]:
        path = tmp_path / "graph.json"
        path.write_text(json.dumps(json.loads((REPORTS / entry["file"]).read_text())["graph"]))
        report = tw.audit(path)
        assert report.clean
        assert report.peaks.to_json() == entry["ttnn_says"]
        assert tw.audit(path, entry["board"]).clean


def test_unknown_keys_and_nodes_are_left_alone(tmp_path):
    data = json.loads((REPORTS / INDEX[0]["file"]).read_text())
    data["later"] = {"deep": [[[1, {"a": None}]]]}
    data["graph"].insert(3, {"counter": 10**6, "node_type": "brand_new", "params": [1], "connections": "all"})
    data["graph"].append(17)
    data["graph"][-2]["params"] = {"more": 1.5}
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    report = tw.audit(path)
    assert report.clean
    assert any("no nodes" in note.message for note in report.notes)


def test_text_and_json_are_for_people_and_programs():
    for entry in INDEX:
        report = tw.audit(REPORTS / entry["file"])
        lines = str(report).splitlines()
        assert max(map(len, lines)) <= 80, (entry["file"], max(lines, key=len))
        assert json.loads(json.dumps(report.to_json()))["clean"] is True


def test_planned_memory_is_clean(tmp_path):
    allocator = tw.Allocator("wormhole_n150")
    for memory in ("l1", "dram", tw.height_sharded((4, 4), (32, 500))):
        allocator.allocate(tw.TensorSpec((512, 500), "bfloat16", "row_major", memory=memory, chip="wormhole_n150"))
    write_visualizer_report(allocator, tmp_path)
    report = tw.audit(tmp_path)
    assert report.clean, [str(finding) for finding in report.findings]
    assert report.counts["buffers"] == 3
