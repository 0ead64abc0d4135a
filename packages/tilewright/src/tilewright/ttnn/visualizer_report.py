# SPDX-License-Identifier: Apache-2.0
"""Planned memory as a report for `ttnn-visualizer`, which otherwise shows only runs on a card.

A report is a folder with a SQLite database of devices, operations, tensors, buffers and pages. Every allocation
becomes an operation, so that its memory plots show how the plan fills up, one tensor after the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import as_path, replace_file, write_file
from ..memory import Allocation, Allocator, Device, MemoryConfig, TensorSpec
from ..version import __version__

if TYPE_CHECKING:
    import sqlite3

__all__ = ["write_visualizer_report"]

MAX_PAGES = 1_000_000  # rows of pages; beyond that, a report has one row per buffer and bank
DATABASE = "db.sqlite"
_DEVICE = 0

_TABLES = {
    "devices": "device_id num_y_cores num_x_cores num_y_compute_cores num_x_compute_cores worker_l1_size l1_num_banks"
    " l1_bank_size address_at_first_l1_bank address_at_first_l1_cb_buffer num_banks_per_storage_core num_compute_cores"
    " num_storage_cores total_l1_memory total_l1_for_tensors total_l1_for_interleaved_buffers"
    " total_l1_for_sharded_buffers cb_limit",
    "operations": "operation_id name:text duration:float",
    "operation_arguments": "operation_id name:text value:text",
    "tensors": "tensor_id shape:text dtype:text layout:text memory_config:text device_id address buffer_type",
    "device_tensors": "tensor_id device_id address",
    "input_tensors": "operation_id input_index tensor_id",
    "output_tensors": "operation_id output_index tensor_id",
    "buffers": "operation_id device_id address max_size_per_bank buffer_type buffer_layout",
    "buffer_pages": "operation_id device_id address core_y core_x bank_id page_index page_address page_size"
    " buffer_type",
    "buffer_chunks": "operation_id device_id address bank_id core_x core_y chunk_address chunk_size page_size num_pages"
    " buffer_type",
    "report_metadata": "key:text value:text",
    "captured_graph": "operation_id captured_graph:text",
    "stack_traces": "operation_id stack_trace:text",
    "errors": "operation_id operation_name:text error_type:text error_message:text stack_trace:text timestamp:text",
    "local_tensor_comparison_records": "tensor_id golden_tensor_id matches desired_pcc:float actual_pcc:float",
    "global_tensor_comparison_records": "tensor_id golden_tensor_id matches desired_pcc:float actual_pcc:float",
    "nodes": "operation_id unique_id node_operation_id name:text",
    "edges": "operation_id source_unique_id sink_unique_id source_output_index sink_input_index key",
}


def write_visualizer_report(
    memory: Allocator | Device, folder: str | os.PathLike[str], names: Mapping[int, str] | None = None
) -> Path:
    """Write a report of all allocations in `memory` for `ttnn-visualizer --profiler-path`; return its `folder`.

    `names` gives names to tensors, by the number of their allocation.

    >>> import sqlite3, tempfile
    >>> import tilewright as tw
    >>> allocator = tw.Allocator("wormhole_n150")
    >>> _ = allocator.allocate(tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_visualizer_report(allocator, folder, {0: "weights"})
    ...     with closing(sqlite3.connect(report / "db.sqlite")) as database:
    ...         database.execute("select name from operations").fetchall()
    [('weights',)]
    """
    import sqlite3  # some builds of Python lack it

    allocator = memory.allocator if isinstance(memory, Device) else memory
    report = as_path(folder)
    report.mkdir(parents=True, exist_ok=True)
    with replace_file(report / DATABASE) as draft, closing(sqlite3.connect(draft.name)) as database:
        _write_tables(database, _build_tables(allocator, names or {}))
    config = {"report_name": f"planned for {allocator.chip.name}", "enable_detailed_buffer_report": True}
    write_file(report / "config.json", json.dumps(config, indent=1) + "\n")
    return report


def _write_tables(database: sqlite3.Connection, tables: dict[str, list[tuple[Any, ...]]]) -> None:
    # Pages and chunks state the same at two levels of detail, and a report has one of them.
    unused = "buffer_chunks" if tables["buffer_pages"] or not tables["buffer_chunks"] else "buffer_pages"
    for table, columns in _TABLES.items():
        if table == unused:
            continue
        names = [f"{name} {type_ or 'int'}" for name, _, type_ in (column.partition(":") for column in columns.split())]
        database.execute(f"create table {table} ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        database.executemany(f"insert into {table} values ({marks})", tables.get(table, []))
    database.commit()


def _build_tables(allocator: Allocator, names: Mapping[int, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every table, with one operation per allocation, in order."""
    memories = ("dram", "l1", "l1_small", "trace")
    blocks = sorted(
        [block for name in memories for block in allocator.memory_view(name).allocations], key=lambda own: own.number
    )
    tables: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _TABLES}
    tables["devices"] = [_device_row(allocator)]
    tables["report_metadata"] = [("made_by", f"tilewright {__version__}"), ("made_for", str(allocator.chip))]
    pages = sum(block.spec.num_pages for block in blocks if block.spec is not None)
    in_pages = pages * (len(blocks) + 1) // 2 <= MAX_PAGES
    for operation, block in enumerate(blocks, start=1):
        name = names.get(block.number, _default_name(block))
        tables["operations"].append((operation, name, 0.0))
        tables["operation_arguments"].append((operation, "0", str(block.spec) if block.spec else f"{block.size} bytes"))
        tables["captured_graph"].append((operation, "[]"))
        tables["stack_traces"].append((operation, "planned by tilewright: nothing has run"))
        if block.spec is not None:
            tables["tensors"].append(_tensor_row(operation, block, block.spec))
            tables["device_tensors"].append((operation, _DEVICE, block.address))
            tables["output_tensors"].append((operation, 0, operation))
        for live in blocks[:operation]:
            layout = None if live.spec is None else live.spec.memory.memory_layout.value
            where = live.address, _bank_bytes(live), live.buffer_type.value, layout
            tables["buffers"].append((operation, _DEVICE, *where))
            if live.spec is not None and in_pages:
                tables["buffer_pages"] += _page_rows(operation, live, live.spec)
            elif live.spec is not None:
                tables["buffer_chunks"] += _chunk_rows(operation, live, live.spec)
    return tables


def _default_name(block: Allocation) -> str:
    if block.spec is None:
        return f"buffer {block.number}"
    return f"{'x'.join(map(str, block.spec.shape.logical))} {block.spec.dtype}"


def _device_row(allocator: Allocator) -> tuple[int, ...]:
    chip = allocator.chip
    (across, down), storage = chip.compute_grid, len(chip.storage_cores)
    bank = chip.bank_bytes("l1")
    compute = across * down
    banks = chip.banks("l1")
    l1_end = chip.end("l1")
    return (
        *(_DEVICE, down, across, down, across, l1_end, banks, bank, 0, chip.base("l1"), chip.storage_banks, compute),
        *(storage, (storage + compute) * l1_end, banks * bank, banks * bank, compute * bank, l1_end - chip.base("l1")),
    )


def _tensor_row(number: int, block: Allocation, spec: TensorSpec) -> tuple[Any, ...]:
    shape = f"Shape([{', '.join(map(str, spec.shape.logical))}])"
    dtype = f"DataType.{spec.dtype.name.upper()}"
    layout = f"Layout.{spec.page_layout.name}"
    config = _format_memory_config(spec.memory)
    return (number, shape, dtype, layout, config, _DEVICE, block.single_address, block.buffer_type.value)


def _format_memory_config(memory: MemoryConfig) -> str:
    """Return a memory config as ttnn prints it."""
    shards = "std::nullopt"
    if (shard_spec := memory.shard_spec) is not None:
        shape = f"{{{shard_spec.shape[0]}, {shard_spec.shape[1]}}}"
        ranges = [f"[(x={r.start.x},y={r.start.y}) - (x={r.end.x},y={r.end.y})]" for r in shard_spec.grid]
        order = f"ShardOrientation::{shard_spec.orientation.name}"
        shards = f"ShardSpec(grid={{{', '.join(ranges)}}},shape={shape},orientation={order},halo=0)"
    layout = f"memory_layout=TensorMemoryLayout::{memory.memory_layout.name}"
    return f"MemoryConfig({layout},buffer_type=BufferType::{memory.buffer_type.name},shard_spec={shards})"


def _bank_bytes(block: Allocation) -> int:
    """Return the bytes per bank as ttnn lists them: of pages without the gaps between them."""
    spec = block.spec
    return block.size if spec is None else spec.bytes_per_bank // spec.aligned_page_bytes * spec.page_bytes


def _page_rows(operation: int, block: Allocation, spec: TensorSpec) -> Iterator[tuple[int, ...]]:
    size, buffer_type = spec.page_bytes, block.buffer_type.value
    for page, bank, x, y, address in spec.pages(block.address).rows().tolist():
        yield (operation, _DEVICE, block.address, y, x, bank, page, address, size, buffer_type)


def _chunk_rows(operation: int, block: Allocation, spec: TensorSpec) -> Iterator[tuple[int, ...]]:
    table = spec.pages(block.address)
    for bank in sorted(set(spec.banks)):
        addresses = table.address[table.bank == bank]
        if addresses.size:
            owner = spec.known_chip.core_of(bank, block.buffer_type)
            first, last = int(addresses.min()), int(addresses.max()) + spec.page_bytes
            sizes = (first, last - first, spec.page_bytes, int(addresses.size), block.buffer_type.value)
            yield (operation, _DEVICE, block.address, bank, owner.x, owner.y, *sizes)
