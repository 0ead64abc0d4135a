# SPDX-License-Identifier: Apache-2.0
"""Rehearsals that were recorded with the real ttnn: the verdicts, lines, addresses and peaks are those of ttnn."""

import gzip
import json
from pathlib import Path

import pytest

from tilewright.views import scene_of
from tilewright_audit.rehearsal.machine import MockMachine
from tilewright_audit.rehearsal.process import ProgramRun, Ttnn
from tilewright_audit.rehearsal.rehearsal import TtnnProgram, report_runs

RECORDS = sorted((Path(__file__).parent / "golden" / "rehearsals").glob("*.json.gz"))
TTNN = Ttnn("python3", Path("ttnn"), "0.81.1")


def read_record(path, folder):
    """Return a recorded rehearsal: its data, and the runs with their captures in a folder."""
    record = json.loads(gzip.decompress(path.read_bytes()))
    runs = []
    for mode, run in zip(("NORMAL", "NO_DISPATCH"), record["runs"], strict=True):
        files = []
        for number, graph in enumerate(run["captures"]):
            files.append(folder / f"{mode}.{number}.json")
            files[-1].write_text(json.dumps(graph))
        runs.append(ProgramRun(run["kind"], run["details"], tuple(files)))
    return record, runs


def report_record(path, folder):
    record, runs = read_record(path, folder)
    return record, report_runs(TtnnProgram(record["program"]), MockMachine.named(record["machine"]), TTNN, runs), runs


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_rehearsal_says_what_ttnn_says(path, tmp_path):
    record, report, runs = report_record(path, tmp_path)
    truth = record["ttnn"]
    if truth["verdict"] == "fits":
        assert report.clean, str(report)
        assert dict(report.facts)["verdict"] == "fits"
    else:
        found = report.findings[0]
        assert found.kind == "failed call"
        assert found.call == f"{truth['call']} at {record['program']}:{truth['line']}"
        assert truth["error"] in found.recorded
        assert found.reason
        assert len(report.findings) == 1
    assert report.counts["addresses"] == report.counts["predicted_addresses"] == len(truth["allocations"])
    assert report.peaks.total == truth["peak_per_core"]["no_dispatch"]["peak_total"]
    nodes = json.loads(runs[0].captures[0].read_text())["graph"]
    allocated = [node["params"]["address"] for node in nodes if node["node_type"] == "buffer_allocate"]
    assert [int(address) for address in allocated] == [each["address"] for each in truth["allocations"]]


def test_the_peak_is_made_of_what_the_lines_of_the_program_made(tmp_path):
    path = next(path for path in RECORDS if path.name.startswith("N150.mlp_fits"))
    _, report, _ = report_record(path, tmp_path)
    said = report.format(width=None)
    assert "L1: at most 348160 of 1393312 bytes per core (25 %), in ttnn.linear at mlp_fits.py:14" in said
    assert "DRAM: at most 4458624 of 1072693184 bytes per bank" in said
    assert "after ttnn.linear at mlp_fits.py:20" in said  # a tensor that is freed late
    data = report.to_json()
    assert data["dram"]["peak"]["tensor_bytes"] == 4458624
    assert data["kind"] == "rehearsal"
    assert "not known" in data["facts"]


def test_traces_are_said_to_have_run_once(tmp_path):
    path = next(path for path in RECORDS if "traced_decode" in path.name)
    _, report, _ = report_record(path, tmp_path)
    assert any("calls of traces were left out" in note.message for note in report.notes)


def test_a_page_of_a_rehearsal_has_the_timeline(tmp_path):
    path = next(path for path in RECORDS if path.name.startswith("T3K"))
    _, report, _ = report_record(path, tmp_path)
    report.show(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "mesh_mlp.py:13" in text
    assert text.count("<figure>") == 4
    assert "DRAM over the calls" in text


def test_the_buffers_of_a_call_are_drawn_in_that_call_alone(tmp_path):
    path = next(path for path in RECORDS if path.name.startswith("N150.buffers_clash"))
    _, report, _ = report_record(path, tmp_path)
    tracks = next(panel for panel in scene_of(report).panels if panel.title.startswith("what is in L1"))
    spans = {(span.start, span.end) for span in tracks.spans}
    assert {(3, 4), (4, 5)} <= spans
    assert (3, 5) not in spans
