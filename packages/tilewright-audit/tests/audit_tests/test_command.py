# SPDX-License-Identifier: Apache-2.0
"""`tilewright audit`: clean reports, findings, and files that are no reports, by exit status."""

import json

import tilewright as tw

from .damages import REPORTS
from .noc_traces import KERNELS, events_of

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


CONFIG = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1)"


def write_trace(tmp_path, change=None):
    events = events_of(KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"])
    if change is not None:
        events[3] |= change
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    return str(path)


SPECS = (
    "--source", "512x512:layout=tile:shard=block:grid=2x1", "--target", "512x512:layout=tile:shard=height:grid=4x2",
)  # fmt: skip


def test_a_trace_against_its_plan(run, tmp_path):
    said = run("audit", "--noc-trace", write_trace(tmp_path), *SPECS).out
    assert "16 of 16 RISCs" in said
    assert "assumed: bfloat16, wormhole_n150" in said
    said = run("audit", "--noc-trace", write_trace(tmp_path, {"dx": 3}), *SPECS, status=1).out
    assert "1. error: wrong page: core (0, 0) NCRISC, request 3: read of 4096 bytes from (2, 0)" in said
    assert ": pages " in said
    assert "not compared" in run("audit", write_trace(tmp_path)).out
    assert "both --source and --target" in run("audit", "--noc-trace", "t.json", *SPECS[:2], status=2).err
    assert "add --noc-trace" in run("audit", "t.json", *SPECS[:2], status=2).err


def test_the_tensors_of_a_trace_as_ttnn_prints_them(run, tmp_path):
    config = (
        "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,shard_spec=ShardSpec{"
        'grid=[{"start":{"x":0,"y":0},"end":{"x":3,"y":1}], shape=[64, 512], orientation=ShardOrientation::ROW_MAJOR})'
    )
    said = run("audit", "--noc-trace", write_trace(tmp_path), *SPECS[:2], "--target", config).out
    assert "16 of 16 RISCs" in said


def test_a_text_and_a_log(run, tmp_path):
    assert "interleaved in L1" in run("audit", CONFIG).out
    path = tmp_path / "run.log"
    path.write_text(f"got {CONFIG} on {{[0-0 - 8-0]}}")
    assert "core (8, 0)" in run("audit", str(path), "--chip", "n150", status=1).out
    path.write_text("nothing")
    assert "cannot audit" in run("audit", str(path), status=2).err


def test_a_page_has_the_list_the_chip_and_the_calls(run, tmp_path):
    page = tmp_path / "audit.html"
    run("audit", str(REPORTS / "wormhole_n150.reshard_chain.normal.json"), "--html", str(page))
    text = page.read_text()
    assert '<ol class="entries">' in text
    assert "move it to interleaved in L1 at once" in text
    assert text.count("<figure>") == 3
    assert "tensor 88" in text
    assert "ends in .html" in run("audit", str(REPORTS / CLEAN), "--html", str(tmp_path / "a.doc"), status=2).err


def test_lines_fit_80_columns_and_are_whole_in_a_pipe(run):
    for path in sorted(REPORTS.glob("*.normal.json")):
        report = tw.audit(path)
        assert max(map(len, report.format(width=80).splitlines())) <= 80
        assert max(map(len, report.format(width=200).splitlines())) <= 200
        whole = report.format(width=None)
        for finding in (*report.findings, *report.notes):
            assert finding.message in whole
            assert finding.remedy in whole


def test_options_without_effect_are_refused(run, tmp_path):
    (tmp_path / "report.json").write_text('[{"counter": 0, "node_type": "capture_start"}]')
    assert "--op has no effect" in run("audit", "report.json", "--op", "reshard", status=2).err
