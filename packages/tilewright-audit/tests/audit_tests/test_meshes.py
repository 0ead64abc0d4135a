# SPDX-License-Identifier: Apache-2.0
"""Reports of meshes, and of parts that are unknown or damaged: one device is counted, and nothing is dropped."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tilewright as tw

REPORTS = Path(__file__).parent / "golden" / "rehearse"
# what the real ttnn extracts from the captures of one chip, per core
PEAKS = {
    "n150.buffers_clash.no_dispatch": (786432, 0, 1179648, 1966080),
    "n150.buffers_clash.normal": (786432, 0, 0, 786432),
    "n150.decode_attention.no_dispatch": (18432, 70464, 94528, 108864),
    "n150.decode_attention.normal": (18432, 70464, 0, 84800),
    "n150.llama8b_decoder_layer.no_dispatch": (49152, 172416, 338176, 382656),
    "n150.mlp_fits.no_dispatch": (53248, 12288, 323584, 348160),
    "n150.mlp_fits.normal": (53248, 12288, 0, 65536),
}


@pytest.mark.parametrize("name", PEAKS)
def test_rehearsals_on_one_chip_have_the_peaks_of_ttnn(name):
    report = tw.audit(REPORTS / f"{name}.json")
    peaks = report.peaks
    assert (peaks.l1, peaks.cb, peaks.dataflow_buffer, peaks.total) == PEAKS[name]
    assert report.chip.name == "wormhole_n150"
    assert report.clean == ("buffers_clash" not in name)


def test_a_call_that_was_aborted_is_a_finding():
    report = tw.audit(REPORTS / "n150.buffers_clash.normal.json")
    assert [(found.kind, found.call) for found in report.findings] == [("failed call", "MatmulDeviceOperation")]
    assert report.exit_status == 1


def test_circular_buffers_of_a_mesh_are_counted_on_one_device():
    normal, single = (tw.audit(REPORTS / f"t3k.eltwise.{mode}.json") for mode in ("normal", "no_dispatch"))
    assert normal.clean
    assert single.clean
    assert normal.peaks.cb == single.peaks.cb == 12288  # 3 of 4096 bytes; all eight devices have 98304
    assert normal.peaks.total == single.peaks.total
    assert normal.chip.name == single.chip.name == "wormhole_n300"
    assert dict(normal.facts)["mesh"] == "T3K, 8 devices; circular buffers are counted on the fullest, device 0"
    assert dict(single.facts)["mesh"] == "T3K, 8 devices, of which the graph has one"


def test_the_fullest_device_of_a_mesh_decides(tmp_path):
    data = json.loads((REPORTS / "t3k.eltwise.normal.json").read_text())
    for node in data["graph"]:
        if node["node_type"] == "circular_buffer_allocate" and node["params"]["device_id"] == 3:
            node["params"]["size"] = 65536
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    report = tw.audit(path)
    assert report.peaks.cb == 3 * 65536
    assert "device 3" in dict(report.facts)["mesh"]


def test_cores_without_a_shard_are_not_counted():
    report = tw.audit(REPORTS / "t3k.few_shards.normal.json")
    assert report.clean, [str(finding) for finding in report.findings]
    assert report.counts["addresses"] == report.counts["predicted_addresses"] == 5


def test_what_is_not_understood_is_named(tmp_path):
    data = json.loads((REPORTS / "n150.mlp_fits.normal.json").read_text())
    data["graph"].append({"counter": 99999, "node_type": "kernel_launch", "params": {}, "connections": []})
    data["graph"][1]["params"] |= {"name": "add", "mood": "good"}
    data["weather"] = {"sky": "blue"}
    path = tmp_path / "report.json"
    path.write_text(json.dumps(data))
    notes = [note.message for note in tw.audit(path).notes]
    assert "1 node of the unknown type 'kernel_launch' left out" in notes
    assert f"unknown parameters of nodes were not read: {data['graph'][1]['node_type']}.mood" in notes
    assert "unknown sections of the report were not read: weather" in notes


@pytest.mark.parametrize("rows", [1, 3, 6, 7])
def test_a_device_with_fewer_rows_of_cores_than_dram_workers_need(tmp_path, rows):
    path = REPORTS.parent / "reports" / "wormhole_n150.dram_sharded.normal.json"
    data = json.loads(path.read_text())
    data["devices"][0]["num_y_compute_cores"] = rows
    damaged = tmp_path / "report.json"
    damaged.write_text(json.dumps(data))
    assert str(tw.audit(damaged))
    chip = tw.Chip.named("wormhole_n150")
    source = tw.TensorSpec(
        (64, 384), page_layout="tile", memory=tw.width_sharded((12, 1), buffer_type="dram"), chip=chip
    )
    assert tw.reshard(source, source.with_memory("l1")).total_bytes == 64 * 384 * 2


def test_events_of_a_trace_that_are_not_understood_are_named(tmp_path):
    read = {"proc": "NCRISC", "noc": "NOC_0", "sx": 1, "sy": 1, "dx": 2, "dy": 1, "num_bytes": 64, "timestamp": 5}
    events = [{**read, "type": kind} for kind in ("READ", "TELEPORT", "READ_BARRIER_START", "READ_BARRIER_END")]
    path = tmp_path / "noc_trace.json"
    path.write_text(json.dumps(events))
    notes = [note.message for note in tw.audit(path).notes]
    assert [note for note in notes if "unknown type" in note] == ["1 event of the unknown type 'TELEPORT' left out"]


def test_a_database_with_errors_comparisons_and_unknown_tables(tmp_path):
    path = tmp_path / "db.sqlite"
    shutil.copy(REPORTS.parent / "reports" / "wormhole_n150.late_free.db.sqlite", path)
    assert "failed call" not in str(tw.audit(path))
    with closing(sqlite3.connect(path)) as database, database:
        error = (3, "ttnn.add", "RuntimeError", "TT_FATAL: shapes\n differ", "", "", 0)
        database.execute(f"insert into errors values ({', '.join('?' * len(error))})", error)
        for matches in (0, 1):
            database.execute(
                "insert into local_tensor_comparison_records values (?, ?, ?, ?, ?, ?)",
                (4 + matches, 6, matches, 0.999, 0.5, 0),
            )
        database.execute("create table weather (sky)")
        database.execute("insert into weather values ('blue')")
        database.execute("create table empty (sky)")
    report = tw.audit(path)
    messages = [found.message for found in report.findings]
    assert "ttnn.add raised RuntimeError: TT_FATAL: shapes differ" in messages
    assert [message for message in messages if "golden tensor" in message] == [
        "tensor 4 differs from its golden tensor 6: PCC 0.5, expected 0.999 (compared when the run was recorded)"
    ]
    assert "unknown tables of the database were not read: weather" in [note.message for note in report.notes]
