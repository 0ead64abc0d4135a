# SPDX-License-Identifier: Apache-2.0
"""Reports for ttnn-visualizer say exactly what the plan says; its own reader agrees where it is installed."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import tilewright as tw
from tilewright.ttnn import visualizer_report as ttnn_visualizer
from tilewright.ttnn import write_visualizer_report

CHIP = "wormhole_n150"
EVIL = "'); drop table tensors; --<script>alert(1)</script>"


def spec(shape, dtype="bfloat16", memory="l1", layout="tile"):
    return tw.TensorSpec(shape, dtype, layout, memory=memory, chip=CHIP)


@pytest.fixture
def allocator():
    allocator = tw.Allocator(CHIP)
    allocator.allocate(spec((512, 512)))
    hole = allocator.allocate(spec((64, 64)))
    allocator.allocate(spec((2048, 512), memory=tw.height_sharded((4, 4))))
    allocator.allocate(spec((1000, 100), "bfloat8_b", tw.block_sharded((8, 8))))
    allocator.allocate(spec((300, 70), "float32", "dram", "row_major"))
    allocator.allocate_bytes(4096, "l1")
    allocator.free(hole)
    return allocator


def rows(report, query):
    with closing(sqlite3.connect(report / "db.sqlite")) as database:
        return database.execute(query).fetchall()


def live(allocator):
    """Return all blocks, in the order in which they were allocated."""
    blocks = [block for kind in ("dram", "l1") for block in allocator.memory_view(kind).allocations]
    return sorted(blocks, key=lambda block: block.number)


def test_every_page_of_every_tensor_is_where_the_plan_has_it(allocator, tmp_path):
    report = write_visualizer_report(allocator, tmp_path / "report")
    for step, block in enumerate(live(allocator), start=1):
        if block.spec is None:
            continue
        columns = "page_index, bank_id, core_x, core_y, page_address"
        where = f"operation_id = {step} and address = {block.address} and buffer_type = {block.buffer_type.value}"
        stored = rows(report, f"select {columns} from buffer_pages where {where} order by page_index")
        assert np.array_equal(stored, block.spec.pages(block.address).rows())


def test_each_step_holds_what_was_allocated_until_then(allocator, tmp_path):
    report = write_visualizer_report(allocator, tmp_path, {0: "weights"})
    blocks = live(allocator)
    assert rows(report, "select name from operations order by operation_id")[0] == ("weights",)
    for step in range(1, len(blocks) + 1):
        query = f"select address, max_size_per_bank, buffer_type from buffers where operation_id = {step}"
        # ttnn lists pages without the gaps between them
        expected = [
            (
                block.address,
                block.size
                if block.spec is None
                else block.spec.bytes_per_bank // block.spec.aligned_page_bytes * block.spec.page_bytes,
                block.buffer_type.value,
            )
            for block in blocks[:step]
        ]
        assert sorted(rows(report, query)) == sorted(expected)
    tensors = [block for block in blocks if block.spec is not None]
    tensor_rows = rows(report, "select shape, dtype, layout, address from tensors order by tensor_id")
    assert [shape for shape, *_ in tensor_rows] == [f"Shape({list(block.spec.shape.logical)})" for block in tensors]
    assert [address for *_, address in tensor_rows] == [block.address for block in tensors]


def test_the_device_is_the_chip(allocator, tmp_path):
    report = write_visualizer_report(allocator, tmp_path)
    columns = "num_x_compute_cores, num_y_compute_cores, l1_num_banks, l1_bank_size, address_at_first_l1_cb_buffer"
    chip = allocator.chip
    expected = (*chip.compute_grid, chip.banks("l1"), chip.bank_bytes("l1"), chip.base("l1"))
    assert rows(report, f"select {columns} from devices") == [expected]


def test_large_plans_are_reported_bank_by_bank(allocator, tmp_path, monkeypatch):
    pages = write_visualizer_report(allocator, tmp_path / "pages")
    monkeypatch.setattr(ttnn_visualizer, "MAX_PAGES", 0)
    chunks = write_visualizer_report(allocator, tmp_path / "chunks")
    key = "operation_id, address, bank_id, core_x, core_y, buffer_type"
    summed = f"""select {key}, min(page_address), max(page_address + page_size) - min(page_address), page_size, count(*)
                 from buffer_pages group by {key} order by {key}"""
    reported = f"select {key}, chunk_address, chunk_size, page_size, num_pages from buffer_chunks order by {key}"
    assert rows(pages, summed) == rows(chunks, reported)
    tables = {name for (name,) in rows(chunks, "select name from sqlite_master")}
    assert "buffer_pages" not in tables  # a report has one of the two


def test_hostile_names_are_only_words(allocator, tmp_path):
    report = write_visualizer_report(allocator, tmp_path, {0: EVIL})
    assert (EVIL,) in rows(report, "select name from operations")
    assert rows(report, "select count(*) from tensors") == [(4,)]


def test_a_report_replaces_an_older_one_and_leaves_nothing_else(allocator, tmp_path):
    write_visualizer_report(allocator, tmp_path)
    write_visualizer_report(tw.Device(CHIP), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "db.sqlite"]
    assert rows(tmp_path, "select count(*) from operations") == [(0,)]


def test_the_reader_of_the_visualizer_agrees(allocator, tmp_path):
    queries = pytest.importorskip("ttnn_visualizer.queries", reason="ttnn-visualizer is not installed")
    report = write_visualizer_report(allocator, tmp_path)
    with closing(sqlite3.connect(report / "db.sqlite")) as database:
        database_queries = queries.DatabaseQueries(connection=database)
        tensors = list(database_queries.query_tensors())
        assert len(list(database_queries.query_operations())) == 5
        assert [tensor.address for tensor in tensors] == [b.address for b in live(allocator) if b.spec is not None]
        sharded = tensors[1].memory_config["shard_spec"]
        assert sharded["shape"] == [128, 512]
        assert sharded["grid"] == "[(x=0,y=0) - (x=3,y=3)]"
        assert len(list(database_queries.query_devices())) == 1
        assert list(database_queries.query_buffer_chunks({}))
