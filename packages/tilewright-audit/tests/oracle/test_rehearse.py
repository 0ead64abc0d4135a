# SPDX-License-Identifier: Apache-2.0
"""Programs rehearsed with the real ttnn: verdicts, lines, addresses and peaks as recorded; suggestions that hold."""

import gzip
import json
from pathlib import Path

import pytest

from tilewright_audit import TtnnProgram, rehearse
from tilewright_audit.rehearsal.machine import MockMachine
from tilewright_audit.rehearsal.process import Stage, find_ttnn

RECORDS = sorted((Path(__file__).parents[1] / "audit_tests" / "golden" / "rehearsals").glob("*.json.gz"))
HEAD = """import ttnn

device = ttnn.open_device(device_id=0)
x = ttnn.empty([1, 1, 64, 64], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
"""
# what a mock would not survive, or cannot do
PROGRAMS = {
    "sub-devices": """cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 3))])
manager = device.create_sub_device_manager([ttnn.SubDevice([cores])], 3200)
device.load_sub_device_manager(manager)
ttnn.add(x, x)
""",
    "events": "event = ttnn.record_event(device, 0)\nttnn.wait_for_event(0, event)\ny = x + x\ny.cpu()\n",
    "a trace": "trace = ttnn.begin_trace_capture(device, cq_id=0)\nttnn.add(x, x)\n"
    "ttnn.end_trace_capture(device, trace, cq_id=0)\nttnn.execute_trace(device, trace, cq_id=0)\n",
}
LATE = """held = [ttnn.empty([1, 1, 2048, 4096], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,
    memory_config=ttnn.L1_MEMORY_CONFIG)][0]
used = ttnn.slice(held, [0, 0, 0, 0], [1, 1, 32, 32])
more = [ttnn.empty([1, 1, 2048, 4096], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,
    memory_config=ttnn.L1_MEMORY_CONFIG) for _ in range(5)]
"""


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_ttnn_says_again_what_was_recorded(path, tmp_path):
    record = json.loads(gzip.decompress(path.read_bytes()))
    script = tmp_path / record["program"]
    script.write_text("\n".join(record["text"]))
    report = rehearse(script, record["machine"])
    truth = record["ttnn"]
    assert report.clean == (truth["verdict"] == "fits"), str(report)
    if not report.clean:
        assert report.findings[0].call == f"{truth['call']} at {record['program']}:{truth['line']}"
        assert truth["error"] in report.findings[0].recorded
    assert report.peaks.total == truth["peak_per_core"]["no_dispatch"]["peak_total"]
    assert report.counts["addresses"] == report.counts["predicted_addresses"] == len(truth["allocations"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_mock_cannot_do_is_left_out(name, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(HEAD + PROGRAMS[name] + "ttnn.close_device(device)\n")
    report = rehearse(script, "N150")
    assert report.clean, str(report)
    assert any("left out" in note.message for note in report.notes)


@pytest.mark.parametrize("name", ["N150", "N300", "T3K", "P100", "P150", "P150x2", "P150x4", "P150x8"])
def test_a_machine_has_the_devices_and_cores_of_its_description(name, tmp_path):
    machine, script = MockMachine.named(name), tmp_path / "program.py"
    across, down = machine.chip.compute_grid
    script.write_text(
        "import ttnn\nmesh = ttnn.open_mesh_device(ttnn.MeshShape(1, ttnn.get_num_devices()))\n"
        "grid = mesh.compute_with_storage_grid_size()\n"
        f"assert (mesh.get_num_devices(), grid.x, grid.y) == {(machine.devices, across, down)}\n"
        "ttnn.close_mesh_device(mesh)\n"
    )
    stage = Stage.build(tmp_path, machine, find_ttnn())
    assert stage.run(str(script)).kind == "ended"


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("N150.buffers_clash", ("in0_block_w=16", "in0_block_w=4"), "ttnn.matmul with in0_block_w=4"),
        ("P150.bad_subblock", ("out_subblock_w=min(4, per_core)", "out_subblock_w=2"), "out_subblock_w=2"),
        ("N150.l1_full", ("device, memory_config=block", "device"), "memory_config=ttnn.DRAM_MEMORY_CONFIG"),
    ],
)
def test_a_suggestion_holds_when_it_is_written_into_the_program(name, change, text, tmp_path):
    path = next(path for path in RECORDS if path.name.startswith(name))
    record = json.loads(gzip.decompress(path.read_bytes()))
    script = tmp_path / record["program"]
    script.write_text("\n".join(record["text"]))
    report = rehearse(script, record["machine"], suggest=True)
    listed = [note.message for note in report.notes if note.kind == "suggestion"]
    assert any(text in message and "runs to its end" in message for message in listed), listed
    changed = script.read_text().replace(*change)
    assert changed != script.read_text()
    script.write_text(changed)
    assert rehearse(script, record["machine"]).clean


def test_memory_that_was_reserved_moves_the_addresses(tmp_path):
    script = tmp_path / "program.py"
    opened = HEAD.replace("device_id=0", "device_id=0, l1_small_size=32768, trace_region_size=1000000")
    script.write_text(opened + "y = ttnn.add(x, x, memory_config=ttnn.L1_MEMORY_CONFIG)\n")
    report = rehearse(script, "N150")
    assert report.counts["addresses"] == report.counts["predicted_addresses"] == 2


def test_a_tensor_that_is_used_after_it_was_freed_is_named(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(HEAD + "ttnn.deallocate(x)\nttnn.relu(x)\n")
    found = rehearse(script, "N150").findings[0]  # ttnn 0.81.1 ends the process
    assert "after ttnn.relu at program.py:6" in found.message
    assert found.reason == "one of its tensors had been deallocated before"


def test_a_tensor_that_is_freed_too_late_is_named(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(HEAD + LATE)
    report = rehearse(TtnnProgram(str(script)), "N150", suggest=True)
    assert report.findings[0].message.startswith("program.py:8: ttnn.empty failed")
    listed = [note.message for note in report.notes if note.kind == "suggestion"]
    freed = "free the result of program.py:5: ttnn.empty after program.py:7: ttnn.slice, with ttnn.deallocate"
    assert any(freed in message for message in listed), listed
