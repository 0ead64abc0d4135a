# SPDX-License-Identifier: Apache-2.0
"""Nine kinds of damage to a graph report, at every place where each can be made."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import tests

LIBRARY_GOLDEN = Path(tests.__file__).parent / "golden"
REPORTS = Path(__file__).parent / "golden" / "reports"
INDEX = json.loads((REPORTS / "index.json").read_text())["reports"]
KINDS = (
    "page address", "page core", "page missing", "page size", "bytes per bank", "size", "tensor elsewhere",
    "shard shape", "overlap",
)  # fmt: skip


def damages(report: dict) -> Iterator[tuple[str, str]]:
    """Yield (kind, place) of every damage, with the report damaged in place meanwhile."""
    graph = report["graph"]
    yield from _page_damages(report)
    for node in graph:
        where, params = f"node {node['counter']}", node["params"] or {}
        if node["node_type"] in ("buffer_allocate", "buffer_deallocate"):
            for name, kind, change in (
                ("page_size", "page size", 16), ("page_size", "page size", None), ("size", "size", 2048),
                ("max_size_per_bank", "bytes per bank", 32), ("max_size_per_bank", "bytes per bank", None),
            ):  # fmt: skip
                yield from _number(params, name, kind, where, change)
        if node["node_type"] == "buffer":
            yield from _number(params, "size", "size", where, 64)
        if node["node_type"] == "tensor" and params.get("storage_type") == "DEVICE" and "address" in params:
            yield from _number(params, "address", "tensor elsewhere", where, 4096)
        if node["node_type"] == "tensor" and "SHARDED" in params.get("memory_config", ""):
            yield from _shards(params, where)
    yield from _overlaps(graph)
    for call, rows in report.get("per_operation_buffers", {}).items():
        for row in rows[:1]:
            yield from _number(row, "max_size_per_bank", "bytes per bank", f"list of {call}", 32)


def _number(holder: dict, name: str, kind: str, where: str, change: int | None) -> Iterator[tuple[str, str]]:
    """Yield a number that is larger by `change`, or twice as large."""
    before = holder[name]
    holder[name] = before * 2 if change is None else before + change
    if holder[name] != before:
        yield kind, f"{where} {name} {before} as {holder[name]}"
    holder[name] = before


def _page_damages(report: dict) -> Iterator[tuple[str, str]]:
    lists = [("final", report.get("buffer_pages", []))]
    for address, allocations in report.get("buffer_pages_by_address", {}).items():
        lists += [(f"{address} of {each['alloc_counter']}", each["pages"]) for each in allocations]
    for name, pages in lists:
        for place in sorted({0, len(pages) // 2, len(pages) - 1} & set(range(len(pages)))):
            page, where = pages[place], f"pages {name} [{place}]"
            yield from _number(page, "page_address", "page address", where, 16)
            yield from _number(page, "core_x", "page core", where, 1)
            yield from _number(page, "core_y", "page core", where, 1)
            yield from _number(page, "page_size", "page size", where, 32)
            del pages[place]
            yield "page missing", where
            pages.insert(place, page)


def _shards(params: dict, where: str) -> Iterator[tuple[str, str]]:
    """Yield other shard shapes: in all forms of the config, and in the first one alone."""
    text = params["memory_config"]
    shapes = re.compile(r'((?:"shard_shape":| shape=)\[)([\d, ]+)\]')
    first = shapes.search(text)
    extents = [int(n) for n in first[2].split(",")]
    for name, changed in (
        ("taller", [*extents[:-2], extents[-2] * 2, extents[-1]] if len(extents) > 1 else [extents[-1] * 2]),
        ("wider", [*extents[:-1], extents[-1] * 2]),
        ("odd", [*extents[:-1], extents[-1] + 1]),
    ):
        for count in (0, 1):
            params["memory_config"] = shapes.sub(lambda m, c=changed: f"{m[1]}{', '.join(map(str, c))}]", text, count)
            yield "shard shape", f"{where} {name} {extents} as {changed}{' once' if count else ''}"
    params["memory_config"] = text


def _overlaps(graph: list) -> Iterator[tuple[str, str]]:
    """Yield pairs of live buffers of one memory, the later moved onto the earlier: alone, and with its tensors."""
    live: dict[int, dict] = {}
    for node in graph:
        if node["node_type"] == "buffer_deallocate":
            live.pop(node["connections"][0], None)
        if node["node_type"] != "buffer_allocate" or not node["params"]["address"]:
            continue
        params, number = node["params"], node["connections"][0]
        for other in [each for each in live.values() if each["type"] == params["type"]][:2]:
            before, target = params["address"], other["address"]
            params["address"] = target
            yield "overlap", f"node {node['counter']} at {before} as {target}"
            buffer = next(each for each in graph if each["counter"] == number)
            tensors = [each["params"] for each in graph if each["counter"] in buffer["connections"]]
            old = [dict(each) for each in tensors]
            for each in tensors:
                each.update(address=target, device_tensors="")
            yield "overlap", f"node {node['counter']} at {before} as {target}, and its tensors"
            for each, values in zip(tensors, old, strict=True):
                each.update(values)
            params["address"] = before
        live[number] = params
