# SPDX-License-Identifier: Apache-2.0
"""`GraphReport`: the graph of a run that ttnn captured, with its devices, and its pages one batch after the other.

A report is an object with the array `graph`, or that array alone. Only what is not a report is refused; keys, kinds of
nodes and parameters that are not known are left as they are, and what cannot be used is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .._json import parse_json
from ..errors import FileFormatError
from .json_stream import JsonStream
from .source import FilePath, SourceFile, as_source_file

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
BATCH_PAGES = 1 << 16
PAGE_COLUMNS = ("page_index", "core_x", "core_y", "page_address", "page_size", "address", "buffer_type", "device_id")
UNKNOWN = -1  # in a column, for what is missing or not an integer
_MAX_INTEGER = 2**62
_DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReportNode:
    """A node of a captured graph: its number, kind, parameters, and the numbers of the nodes it is connected to.

    >>> node = read_node({"counter": 7, "node_type": "buffer", "params": {"size": 2048}, "connections": [10]})
    >>> node.number, node.kind, node.integer("size"), node.connections
    (7, 'buffer', 2048, (10,))
    """

    number: int
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)  # as in the file
    connections: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ()
    level: int = 0
    duration: int = 0  # in nanoseconds

    def integer(self, name: str) -> int | None:
        """Return a parameter that is an integer, or the digits of one; None for anything else.

        >>> ReportNode(0, "buffer", {"size": "64"}).integer("size")
        64
        """
        return as_integer(self.params.get(name))

    def text(self, name: str) -> str:
        """Return a parameter that is a text; nothing for anything else.

        >>> ReportNode(0, "function_start", {"name": "ttnn.add"}).text("name")
        'ttnn.add'
        """
        value = self.params.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class PageBatch:
    """Pages of one buffer of a report, a column per field, in the order of the file.

    `owner` is the number of the node that allocated the buffer, None for the pages at the end of the run. Fields that
    are missing are -1.

    >>> batch = PageBatch.of([{"page_index": 0, "core_x": 3, "core_y": 1, "page_address": 4096}], 8)
    >>> batch.column("core_x").tolist(), batch.column("page_size").tolist()
    ([3], [-1])
    """

    owner: int | None
    columns: Mapping[str, Integers]

    @classmethod
    def of(cls, pages: list[Any], owner: int | None) -> PageBatch:
        """Return the batch of `pages` as a report has them, which the node `owner` allocated.

        >>> len(PageBatch.of([{}, 5], None))
        2
        """
        rows = [page if isinstance(page, dict) else {} for page in pages]
        return cls(owner, {name: _as_column([row.get(name) for row in rows]) for name in PAGE_COLUMNS})

    def column(self, name: str) -> Integers:
        """Return a field of all pages.

        >>> PageBatch.of([{"page_index": 2}], None).column("page_index").tolist()
        [2]
        """
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["page_index"])


@dataclass(frozen=True)
class GraphReport:
    """A captured graph: nodes, devices and metadata; pages and the buffers of each call are read when asked for.

    `skipped` is the number of nodes that are no nodes.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.json")
    ...     _ = path.write_text('[{"counter": 0, "node_type": "capture_start", "params": null}]')
    ...     read_graph_report(path).nodes[0].kind
    'capture_start'
    """

    file: SourceFile
    nodes: tuple[ReportNode, ...]
    devices: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: Any = None  # as in the file
    skipped: int = 0
    sections: Mapping[str, int] = field(default_factory=dict)  # where the large parts begin in the file
    boards: tuple[str, ...] = ()  # the types of the cards, one each, as the description of the cluster has them
    unread: tuple[str, ...] = ()  # keys of the file that are not known

    @property
    def has_pages(self) -> bool:
        """Return whether the report was made with detailed tracing of buffers.

        >>> GraphReport(as_source_file(__file__), ()).has_pages
        False
        """
        return "buffer_pages_by_address" in self.sections or "buffer_pages" in self.sections

    def read_pages(self) -> Iterator[PageBatch]:
        """Yield the pages of every allocation that the report lists, about `BATCH_PAGES` at a time.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "report.json")
        ...     pages = '[{"alloc_counter": 8, "pages": [{"page_index": 0}]}]'
        ...     _ = path.write_text(f'{{"graph": [], "buffer_pages_by_address": {{"4096": {pages}}}}}')
        ...     [(batch.owner, len(batch)) for batch in read_graph_report(path).read_pages()]
        [(8, 1)]
        """
        stream = self._open_section("buffer_pages_by_address")
        if stream is None or stream.kind() != "object":
            return
        for _ in stream.walk_object():  # an address
            if stream.kind() != "array":
                continue
            for _ in stream.walk_array():
                if stream.kind() == "object":
                    yield from _read_allocation(stream)

    def read_final_pages(self) -> Iterator[PageBatch]:
        """Yield the pages at the end of the run, about `BATCH_PAGES` at a time.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "report.json")
        ...     _ = path.write_text('{"graph": [], "buffer_pages": [{"page_index": 0}, {"page_index": 1}]}')
        ...     [len(batch) for batch in read_graph_report(path).read_final_pages()]
        [2]
        """
        stream = self._open_section("buffer_pages")
        if stream is not None and stream.kind() == "array":
            yield from _read_batches(stream, None)

    def read_operation_buffers(self) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
        """Yield the number of each call's first node, and the buffers that are allocated when the call ends.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "report.json")
        ...     _ = path.write_text('{"graph": [], "per_operation_buffers": {"4": [{"address": 1048640}]}}')
        ...     list(read_graph_report(path).read_operation_buffers())
        [(4, [{'address': 1048640}])]
        """
        stream = self._open_section("per_operation_buffers")
        if stream is None or stream.kind() != "object":
            return
        for key in stream.walk_object():
            number = as_integer(key)
            if number is not None and stream.kind() == "array":
                yield number, [row for row in stream.read_value() if isinstance(row, dict)]

    def _open_section(self, name: str) -> JsonStream | None:
        if name not in self.sections:
            return None
        return JsonStream(self.file, str(self.file.path), self.sections[name])


_BOARD = re.compile(r"\bboard_type:\s*(\w+)")
_LARGE_SECTIONS = ("buffer_pages", "buffer_pages_by_address", "per_operation_buffers")


def read_graph_report(path: FilePath | SourceFile) -> GraphReport:
    """Return the graph report at `path`; its pages stay in the file until they are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.json")
    ...     _ = path.write_text('{"graph": [{"counter": 0, "node_type": "capture_start"}], "version": 1}')
    ...     report = read_graph_report(path)
    >>> report.version, len(report.nodes), report.has_pages
    (1, 1, False)
    """
    file = as_source_file(path)
    stream = JsonStream(file, str(file.path))
    kind = stream.kind()
    if kind == "array":
        nodes, skipped = _read_nodes(stream)
        _expect_end(stream)
        if not nodes and skipped:
            raise FileFormatError(f"{file.path} is not a graph report: none of its {skipped} entries is a node")
        return GraphReport(file, nodes, skipped=skipped)
    if kind != "object":
        raise FileFormatError(
            f"{file.path} is not a graph report: expected an object or an array at byte {stream.byte}"
        )
    sections: dict[str, int] = {}
    parts: dict[str, Any] = {}
    unread: list[str] = []
    graph: tuple[tuple[ReportNode, ...], int] | None = None
    for key in stream.walk_object():
        if key in sections or key in parts or (key == "graph" and graph is not None):
            raise FileFormatError(f"{file.path} has key {key!r} twice, again at byte {stream.byte}")
        if key == "graph" and stream.kind() == "array":
            graph = _read_nodes(stream)
        elif key in _LARGE_SECTIONS:
            sections[key] = stream.byte
        elif key in ("cluster_descriptor", "devices", "metadata", "version"):
            parts[key] = stream.read_value()
        else:
            unread.append(key)
    _expect_end(stream)
    if graph is None:
        raise FileFormatError(f"{file.path} is not a graph report: it has no array 'graph'")
    devices = parts.get("devices")
    metadata = parts.get("metadata")
    listed = tuple([device for device in devices if isinstance(device, dict)]) if isinstance(devices, list) else ()
    known = metadata if isinstance(metadata, dict) else {}
    cluster = parts.get("cluster_descriptor")
    boards = tuple(_BOARD.findall(cluster)) if isinstance(cluster, str) else ()
    version, skipped = parts.get("version"), graph[1]
    return GraphReport(file, graph[0], listed, known, version, skipped, sections, boards, tuple(unread))


def parse_graph(text: str, name: str) -> tuple[ReportNode, ...]:
    """Return the nodes of a graph that is given as JSON text, such as that of one operation in a database.

    >>> parse_graph('[{"counter": 0, "node_type": "capture_start"}]', "the graph")[0].kind
    'capture_start'
    """
    data = parse_json(text, name)
    nodes = [read_node(item) for item in data] if isinstance(data, list) else []
    return tuple([node for node in nodes if node is not None])


def read_node(data: Any) -> ReportNode | None:
    """Return the node that an entry of a graph describes, or None if it is none.

    >>> read_node({"counter": 0, "node_type": "capture_start", "params": None}).params
    {}
    >>> read_node(["counter"]) is None
    True
    """
    if not isinstance(data, dict):
        return None
    number, kind, params = as_integer(data.get("counter")), data.get("node_type"), data.get("params")
    if number is None or not isinstance(kind, str):
        return None
    arguments = data.get("arguments")
    texts = tuple([text for text in arguments if isinstance(text, str)]) if isinstance(arguments, list) else ()
    return ReportNode(
        number,
        kind,
        params if isinstance(params, dict) else {},
        _as_numbers(data.get("connections")),
        _as_numbers(data.get("input_tensors")),
        texts,
        as_integer(data.get("stacking_level")) or 0,
        as_integer(data.get("duration_ns")) or 0,
    )


def as_integer(value: Any) -> int | None:
    """Return an integer from 0, or that which the digits of a text give; None for anything else.

    >>> as_integer(5), as_integer("64"), as_integer(True), as_integer(-1), as_integer(1.5)
    (5, 64, None, None, None)
    """
    if type(value) is int and 0 <= value < _MAX_INTEGER:
        return value
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


def _read_nodes(stream: JsonStream) -> tuple[tuple[ReportNode, ...], int]:
    """Return the nodes of the array that comes next, and how many of its entries are no nodes."""
    nodes, skipped = [], 0
    texts: dict[str, str] = {}  # the same memory configs come again and again
    for _ in stream.walk_array():
        node = read_node(stream.read_value())
        if node is None:
            skipped += 1
            continue
        config = node.params.get("memory_config")
        if isinstance(config, str) and isinstance(node.params, dict):
            node.params["memory_config"] = texts.setdefault(config, config)
        nodes.append(node)
    return tuple(nodes), skipped


def _read_allocation(stream: JsonStream) -> Iterator[PageBatch]:
    """Yield the pages of the allocation that comes next."""
    owner: int | None = None
    for key in stream.walk_object():
        if key == "alloc_counter":
            owner = as_integer(stream.read_value())
        elif key == "pages" and stream.kind() == "array":
            yield from _read_batches(stream, UNKNOWN if owner is None else owner)


def _read_batches(stream: JsonStream, owner: int | None) -> Iterator[PageBatch]:
    pages: list[Any] = []
    for items in stream.read_items():
        pages += items
        if len(pages) >= BATCH_PAGES:
            yield PageBatch.of(pages, owner)
            pages = []
    # a buffer without pages is worth knowing, too
    yield PageBatch.of(pages, owner)


def _expect_end(stream: JsonStream) -> None:
    if not stream.at_end:
        raise FileFormatError(f"{stream.name} is not JSON: more follows after its end, at byte {stream.byte}")


def _as_column(values: list[Any]) -> Integers:
    try:
        return np.array([value if type(value) is int else _integer_or_unknown(value) for value in values], np.int64)
    except OverflowError:
        return np.array([_integer_or_unknown(value) for value in values], np.int64)


def _integer_or_unknown(value: Any) -> int:
    number = as_integer(value)
    return UNKNOWN if number is None else number


def _as_numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple([number for number in map(as_integer, value) if number is not None])
