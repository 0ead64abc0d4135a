# SPDX-License-Identifier: Apache-2.0
"""Memory over time: peaks and blame, clashes, late frees, reshards, and what the allocator would do."""

import json

import tilewright as tw
from tilewright.ttnn.visualizer_report import write_visualizer_report
from tilewright_audit.pages import place_pages
from tilewright_audit.reshards import SeenReshard, note_reshards
from tilewright_audit.run import build_run

from .damages import REPORTS


def audit_changed(tmp_path, name, change):
    report = json.loads((REPORTS / name).read_text())
    change(report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    return tw.audit(path)


def test_the_peak_names_the_call_and_the_tensors():
    report = tw.audit(REPORTS / "wormhole_n150.late_free.normal.json")
    assert report.timeline.peak.call == "ttnn.relu"
    assert [share.bytes_per_core for share in report.timeline.shares] == [2048] * 4
    assert sum(share.idle for share in report.timeline.shares) == 2
    assert report.timeline.busiest_core[1] == 8192


def test_late_frees_are_noted_with_what_they_cost():
    report = tw.audit(REPORTS / "wormhole_n150.late_free.normal.json")
    notes = [note for note in report.notes if note.kind == "late free"]
    assert notes
    assert "2 calls later" in notes[0].message or any("2 calls later" in note.message for note in notes)
    assert any(note.expected == 4096 for note in notes)


def test_reshards_are_listed_with_their_specs():
    report = tw.audit(REPORTS / "wormhole_n150.reshard_chain.normal.json")
    assert {each.operation for each in report.reshards} >= {"ReshardDeviceOperation"}
    assert all(each.source is not None and each.target is not None for each in report.reshards)
    assert all(each.bytes_moved == 262144 for each in report.reshards)


def test_circular_buffers_that_reach_into_tensors_clash(tmp_path):
    def grow(report):
        for node in report["graph"]:
            if node["node_type"] == "circular_buffer_allocate":
                node["params"]["size"] = 1_390_000

    for mode in ("normal", "no_dispatch"):
        report = audit_changed(tmp_path, f"wormhole_n150.eltwise_matmul.{mode}.json", grow)
        clash = next(finding for finding in report.findings if finding.kind == "clash")
        assert "ttnn.matmul" in clash.message or "ttnn" in clash.call
        assert clash.recorded > clash.expected
        assert clash.remedy


def test_an_unexpected_address_is_a_note(tmp_path):
    def shift(report):
        text = json.dumps(report["graph"]).replace("1048640", "2097152")
        report["graph"] = json.loads(text)
        del report["per_operation_buffers"]

    report = audit_changed(tmp_path, "wormhole_n150.dram_sharded.normal.json", shift)
    assert report.clean
    assert [note.kind for note in report.notes].count("unexpected address") >= 1


def test_addresses_on_each_core_are_not_predicted_from_one(tmp_path):
    def scatter(report):
        parts = json.dumps(report["graph"]).split("memory_layout=")
        on, off = "per_core_allocation=1", "per_core_allocation=0"
        sharded = [part.replace(off, on, 1) if "::HEIGHT_SHARDED" in part[:40] else part for part in parts]
        report["graph"] = json.loads("memory_layout=".join(sharded))

    report = audit_changed(tmp_path, "wormhole_n150.sharded_eltwise.normal.json", scatter)
    note = next(note for note in report.notes if note.kind == "scope" and "per core" in note.message)
    assert "not predicted" in note.message
    assert not any(note.kind == "unexpected address" for note in report.notes)


def test_places_of_some_pages_are_those_of_the_table():
    memories = [
        "l1", "dram", tw.block_sharded((4, 5)), tw.height_sharded((8, 2)), tw.width_sharded((3, 2)),
        tw.nd_sharded((1, 32, 64), (3, 2)),
    ]  # fmt: skip
    for memory in memories:
        spec = tw.TensorSpec((5, 100, 130), "bfloat16", "tile", memory=memory, chip="wormhole_n150")
        table = spec.pages(1_000_000)
        x, y, address = place_pages(spec, 1_000_000, table.page)
        assert (x == table.core_x).all()
        assert (y == table.core_y).all()
        assert (address == table.address).all()


def test_buffers_from_before_the_capture_are_notes(tmp_path):
    def cut(report):
        """Leave out the first two calls, as if the capture had begun after them."""
        first = next(k for k, node in enumerate(report["graph"]) if node["counter"] == 12)
        report["graph"] = report["graph"][first:]
        report["per_operation_buffers"] = {
            key: rows for key, rows in report["per_operation_buffers"].items() if int(key) >= 12
        }

    for name in ("late_free", "eltwise_matmul", "reshard_chain", "sharded_eltwise"):
        report = audit_changed(tmp_path, f"wormhole_n150.{name}.normal.json", cut)
        assert report.clean, [str(finding) for finding in report.findings]
        assert any(note.kind in ("buffer unknown", "unexpected address") for note in report.notes)


def test_an_operation_without_a_graph_is_to_blame_for_what_is_new(tmp_path):
    allocator = tw.Allocator("wormhole_n150")
    for columns in (512, 2048, 1024):
        allocator.allocate(tw.TensorSpec((512, columns), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    report = tw.audit(write_visualizer_report(allocator, tmp_path, {0: "first", 1: "second", 2: "third"}))
    assert report.timeline.peak.call == "third"
    assert {share.call for share in report.timeline.shares} == {"first", "second", "third"}
    assert report.name == f"{report.path.parent.name}/db.sqlite"


def test_moves_in_a_row_are_one_note_with_the_time_of_a_single_move():
    report = tw.audit(REPORTS / "wormhole_n150.reshard_chain.normal.json")
    assert len(report.reshards) == 4
    [note] = [note for note in report.notes if note.kind == "reshard"]
    first, last = sorted(report.reshards, key=lambda each: each.node)[:: len(report.reshards) - 1]
    direct = tw.reshard(first.source, last.target).cycles.microseconds
    total = sum(each.microseconds for each in report.reshards)
    assert note.node == first.node
    assert f"in {direct:.1f} us instead of {total:.1f}" in note.remedy


def test_a_tensor_that_is_moved_away_and_back_need_not_be_moved():
    rows = tw.TensorSpec((512, 512), "bfloat16", "tile", memory=tw.height_sharded((8, 1)), chip="wormhole_n150")
    blocks = rows.with_memory(tw.block_sharded((4, 4)))
    away, back = (
        SeenReshard(node, "ttnn.to_memory_config", "ReshardDeviceOperation", source, target, 1, buffers, plan)
        for node, source, target, buffers, plan in (
            (3, rows, blocks, (1, 2), tw.reshard(rows, blocks)),
            (9, blocks, rows, (2, 5), tw.reshard(blocks, rows)),
        )
    )
    [note] = note_reshards([away, back], build_run([]))
    assert note.node == 3
    assert "node 9 moves it back" in note.remedy
    [alone] = note_reshards([away], build_run([]))
    assert "let the operation before it write this placement" in alone.remedy
