# SPDX-License-Identifier: Apache-2.0
"""Databases made from graph reports, as ttnn's importer makes them, in today's schema and in older ones."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

TABLES = {
    "devices": "device_id num_y_compute_cores num_x_compute_cores worker_l1_size address_at_first_l1_cb_buffer",
    "operations": "operation_id name duration",
    "tensors": "tensor_id shape dtype layout memory_config device_id address buffer_type",
    "device_tensors": "tensor_id device_id address",
    "buffers": "operation_id device_id address max_size_per_bank buffer_type buffer_layout",
    "buffer_chunks": "operation_id device_id address bank_id core_x core_y chunk_address chunk_size page_size num_pages"
    " buffer_type",
    "buffer_pages": "operation_id device_id address core_y core_x bank_id page_index page_address page_size"
    " buffer_type",
    "captured_graph": "operation_id captured_graph",
    "nodes": "operation_id unique_id node_operation_id name",
    "input_tensors": "operation_id input_index tensor_id",
    "output_tensors": "operation_id output_index tensor_id",
    "report_metadata": "key value",
}


def write_database(report: dict, path: Path, old: bool = False) -> None:
    """Write the database of a report; the `old` schema has pages, and neither ranks, graphs nor node numbers."""
    rows = {table: [] for table in TABLES}
    device = report["devices"][0]
    rows["devices"] = [tuple([device[name] for name in TABLES["devices"].split()])]
    rows["report_metadata"] = [("schema_version", "3.1" if old else "3.5")]
    graph = report["graph"]
    place = {node["counter"]: k for k, node in enumerate(graph)}
    operation = 0
    for node in graph:
        name = (node["params"] or {}).get("name", "")
        if node["node_type"] != "function_start" or node["stacking_level"] != 1 or not name.startswith("ttnn."):
            continue
        operation += 1
        start, end = place[node["counter"]], place[node["connections"][-1]]
        rows["operations"].append((operation, name, 0.001))
        rows["nodes"].append((operation, node["counter"], operation, name))
        rows["captured_graph"].append((operation, json.dumps(cut_graph(graph, start, end))))
        _add_buffers(report, rows, operation, node["counter"], end)
    for node in graph:
        values = node["params"] or {}
        if node["node_type"] == "tensor" and values["tensor_id"] not in {row[0] for row in rows["tensors"]}:
            names = TABLES["tensors"].split()
            texts = {"dtype": values["dtype"].replace("::", "."), "layout": values["layout"].replace("::", ".")}
            rows["tensors"].append(tuple([{**values, **texts}.get(name) for name in names]))
            if values.get("address") is not None:
                rows["device_tensors"].append((values["tensor_id"], 0, values["address"]))
    left_out = ("captured_graph", "nodes", "buffer_chunks") if old else ("buffer_pages",)
    with closing(sqlite3.connect(path)) as database:
        for table, columns in TABLES.items():
            if table in left_out:
                continue
            rank = "" if old or table == "report_metadata" else ", rank int not null default 0"
            database.execute(f"create table {table} ({columns.replace(' ', ', ')}{rank})")
            names = columns.replace(" ", ", ")
            marks = ", ".join("?" * len(columns.split()))
            database.executemany(f"insert into {table} ({names}) values ({marks})", rows[table])
        database.commit()


def cut_graph(graph: list, start: int, end: int) -> list:
    """Return the nodes of an operation, counted from 0; connections to other nodes keep their numbers."""
    numbers = {node["counter"]: k for k, node in enumerate(graph[start : end + 1], start=1)}
    nodes = [{"counter": 0, "node_type": "capture_start", "params": {}, "connections": [1]}]
    for node in graph[start : end + 1]:
        links = [numbers.get(link, link) for link in node["connections"]]
        inputs = [numbers.get(link, link) for link in node["input_tensors"]]
        nodes.append({**node, "counter": numbers[node["counter"]], "connections": links, "input_tensors": inputs})
    return [*nodes, {"counter": len(nodes), "node_type": "capture_end", "params": {}, "connections": []}]


def _add_buffers(report: dict, rows: dict, operation: int, call: int, end: int) -> None:
    """Add the buffers at the end of a call, with their pieces and pages."""
    owners = {}
    for node in report["graph"][: end + 1]:
        if node["node_type"] == "buffer_allocate":
            owners[node["params"]["address"]] = node["counter"]
    for buffer in report.get("per_operation_buffers", {}).get(str(call), []):
        address = buffer["address"]
        rows["buffers"].append(
            (operation, 0, address, buffer["max_size_per_bank"], buffer["buffer_type"], buffer["buffer_layout"])
        )
        for allocation in report.get("buffer_pages_by_address", {}).get(str(address), []):
            if allocation["alloc_counter"] == owners[address]:
                _add_pages(rows, operation, address, allocation["pages"])


def _add_pages(rows: dict, operation: int, address: int, pages: list) -> None:
    by_core: dict[tuple, list] = {}
    for page in pages:
        by_core.setdefault((page["core_x"], page["core_y"], page["bank_id"]), []).append(page)
        names = TABLES["buffer_pages"].split()
        rows["buffer_pages"].append(tuple([{**page, "operation_id": operation, "device_id": 0}[n] for n in names]))
    for (x, y, bank), part in by_core.items():
        first = min(page["page_address"] for page in part)
        last = max(page["page_address"] + page["page_size"] for page in part)
        size, kind = part[0]["page_size"], part[0]["buffer_type"]
        rows["buffer_chunks"].append(
            (operation, 0, address, bank, x, y, first, last - first, size, len(part), kind)
        )  # fmt: skip
