# SPDX-License-Identifier: Apache-2.0
"""Graph reports of ttnn, parsed value by value, since a report may be larger than memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tilewright._json import parse_json, strict_decoder
from tilewright.errors import FileFormatError
from tilewright.files import FilePath, SourceFile, as_source_file

CHUNK_BYTES = 1 << 18
MAX_VALUE_CHARACTERS = 1 << 26  # of a value that is taken whole
MAX_DEPTH = 200  # of objects and arrays that are walked into
_FEW_CHARACTERS = 1 << 12  # of a window; with fewer, more is read before items are taken
_PLAIN_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_MAX_TOKEN = 16  # an error this close to the end of the input may be due to the end


class JsonStream:
    """A JSON file that is read from front to back, from a byte `offset` where a value begins.

    `walk_object` and `walk_array` go into large values; the value at each key or index is taken whole by
    `read_value`, or walked into in turn, or skipped. `name` names the file in messages.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.json")
    ...     _ = path.write_text('{"version": 1, "nodes": [{"id": 0}, {"id": 1}], "rest": [[]]}')
    ...     stream = JsonStream(path, "the report")
    ...     for key in stream.walk_object():
    ...         if key == "nodes":
    ...             print([stream.read_value() for _ in stream.walk_array()])
    [{'id': 0}, {'id': 1}]
    """

    def __init__(self, file: FilePath | SourceFile, name: str, offset: int = 0) -> None:
        self.file, self.name = as_source_file(file), name
        self._decoder = strict_decoder(name)
        self._read_end = offset  # bytes of the file that were read
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._window, self._at = "", 0  # decoded text, and where the next token begins in it
        self._window_byte = offset  # where the window begins in the file
        self._passed = 0  # characters before the window
        self._depth = 0
        self._single_until = 0  # characters up to which items are taken one by one

    @property
    def byte(self) -> int:
        """The offset in the file of the next token.

        >>> JsonStream(__file__, "the text").byte
        0
        """
        self._skip_space()
        return self._window_byte + _count_bytes(self._window[: self._at])

    @property
    def at_end(self) -> bool:
        """Whether nothing but white space is left.

        >>> JsonStream(__file__, "the text").at_end
        False
        """
        return not self._peek()

    def expect_end(self) -> None:
        """Raise unless nothing but white space is left.

        >>> JsonStream(__file__, "the text").expect_end()
        Traceback (most recent call last):
        tilewright.errors.FileFormatError: the text is not JSON: more follows after its end, at byte 0
        """
        if not self.at_end:
            raise FileFormatError(f"{self.name} is not JSON: more follows after its end, at byte {self.byte}")

    def kind(self) -> str:
        """Return "object", "array", "value" or "end", for what comes next.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text(" []")
        ...     JsonStream(path, "the list").kind()
        'array'
        """
        return {"{": "object", "[": "array", "": "end"}.get(self._peek(), "value")

    def walk_object(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; a value that is not read is skipped.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text('{"a": 1, "b": 2}')
        ...     stream = JsonStream(path, "the object")
        ...     {key: stream.read_value() for key in stream.walk_object()}
        {'a': 1, 'b': 2}
        """
        for _ in self._walk("{", "}"):
            if self._peek() != '"':
                raise self._error("expected a key in quotes")
            key = self._decode()
            self._expect(":")
            self._skip_space()
            before = self._passed + self._at
            yield key
            if self._passed + self._at == before:
                self.skip()

    def walk_array(self) -> Iterator[int]:
        """Yield the indices of the array that comes next; an item that is not read is skipped.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text("[5, 6]")
        ...     stream = JsonStream(path, "the list")
        ...     [(index, stream.read_value()) for index in stream.walk_array()]
        [(0, 5), (1, 6)]
        """
        return self._walk("[", "]")

    def read_items(self) -> Iterator[list[Any]]:
        """Yield the items of the array that comes next, whole and many at a time.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text('[{"a": 1}, {"a": 2}]')
        ...     list(JsonStream(path, "the list").read_items())
        [[{'a': 1}, {'a': 2}]]
        """
        for _ in self._walk("[", "]"):
            items = self._decode_items(self._decoder)
            yield items or [self.read_value()]

    def _decode_items(self, decoder: json.JSONDecoder) -> list[Any]:
        """Return the items from here to the last that is complete in the window, or to the end of the array."""
        if self._passed + self._at < self._single_until:
            return []
        if len(self._window) - self._at < _FEW_CHARACTERS:
            self._read_more()
        first = self._peek()
        closing = {"{": "}", "[": "]"}.get(first)
        last = self._window.rfind(",", self._at) if closing is None else self._window.rfind(closing, self._at) + 1
        try:
            items, end = decoder.raw_decode(f"[{self._window[self._at : max(last, self._at)]}]")
        except (ValueError, RecursionError):  # found again where it stands, one item at a time
            self._single_until = self._passed + len(self._window)
            return []
        if not items:
            return []
        self._at += end - 2
        return list(items)

    def read_value(self) -> Any:
        """Return the value that comes next, whole.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text('{"a": [1, 2]}')
        ...     JsonStream(path, "the object").read_value()
        {'a': [1, 2]}
        """
        self._skip_space()
        return self._decode()

    def skip(self) -> None:
        """Pass over the value that comes next, however large.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text("[[1, [2]], 3]")
        ...     stream = JsonStream(path, "the list")
        ...     stream.skip()
        ...     stream.at_end
        True
        """
        walks: list[tuple[str, Iterator[Any]]] = []
        while True:
            # A value that fits the window is skipped at once; only larger ones are walked into.
            in_array = bool(walks) and walks[-1][0] == "array"
            if not (in_array and self._decode_items(_PLAIN_DECODER)) and not self._decode_in_window():
                walks.append((self.kind(), self._open_walk()))
            while walks and next(walks[-1][1], None) is None:
                walks.pop()
            if not walks:
                return

    def _open_walk(self) -> Iterator[Any]:
        """Return the walk into the container that comes next, or over the value that is none."""
        kind = self.kind()
        if kind == "object":
            return self.walk_object()
        if kind == "array":
            return self.walk_array()
        self._decode()
        return iter(())

    def _decode_in_window(self) -> bool:
        """Pass over the container that comes next if it ends in the window, and return whether it did."""
        if self._peek() not in ("{", "["):
            return False
        try:
            _, end = _PLAIN_DECODER.raw_decode(self._window, self._at)
        except (ValueError, RecursionError):  # found again where it stands, or not yet complete
            return False
        self._at = end
        return True

    def _walk(self, opening: str, closing: str) -> Iterator[int]:
        """Yield the index of each member of the container that comes next."""
        self._expect(opening)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} objects and arrays are nested")
        index = 0
        while self._peek() != closing:
            if index:
                self._expect(",")
                if self._peek() == closing:
                    raise self._error(f"expected a value after a comma, got {closing!r}")
            before = self._passed + self._at
            yield index
            if self._passed + self._at == before:
                self.skip()
            index += 1
        self._expect(closing)
        self._depth -= 1

    def _decode(self) -> Any:
        """Return the value at the start of the window's rest; more is read until it ends there."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._window, self._at)
            except FileFormatError as problem:
                raise self._error(str(problem)) from None
            except RecursionError:
                raise self._error("a value is nested too deeply") from None
            except json.JSONDecodeError as problem:
                open_end = problem.pos > len(self._window) - _MAX_TOKEN or problem.msg.startswith("Unterminated")
                ahead = problem.pos - self._at  # reading on moves the window
                if not (open_end and self._read_more()):
                    raise self._error(problem.msg, self._at + ahead) from None
            except ValueError as problem:  # a number with thousands of digits
                raise self._error(str(problem)) from None
            else:
                # A number near the end of the window may go on: 1 as 1.5, 1e+9 or 12.
                begun = self._window[end : end + 1] in (".", "e", "E") and len(self._window) - end < _MAX_TOKEN
                ahead = end - self._at
                if (end < len(self._window) and not begun) or not self._read_more():
                    self._at += ahead
                    return value

    def _peek(self) -> str:
        """Return the character of the next token, or nothing at the end of the file."""
        self._skip_space()
        return self._window[self._at : self._at + 1]

    def _skip_space(self) -> None:
        while True:
            space = _SPACE.match(self._window, self._at)
            self._at = self._at if space is None else space.end()
            if self._at < len(self._window) or not self._read_more():
                return

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"expected {character!r}, got {self._peek()!r}" if self._peek() else "the file ends")
        self._at += 1

    def _read_more(self) -> bool:
        """Add text to the window, at least as much as its unread rest, and return whether there was any."""
        size = min(max(CHUNK_BYTES, len(self._window) - self._at), self.file.size - self._read_end)
        if len(self._window) - self._at > MAX_VALUE_CHARACTERS:
            raise self._error(f"a value has more than {MAX_VALUE_CHARACTERS} characters")
        data = self.file.read(self._read_end, size) if size > 0 else b""
        try:
            text = self._utf8.decode(data, final=self._read_end + size >= self.file.size)
        except UnicodeDecodeError as problem:
            # bytes carried over from before are part of the decoder's input
            start = self._read_end - (len(problem.object) - len(data)) + problem.start
            raise FileFormatError(f"{self.name} is not UTF-8: {problem.reason} at byte {start}") from None
        self._window_byte += _count_bytes(self._window[: self._at])
        self._passed += self._at
        self._window, self._at = self._window[self._at :] + text, 0
        self._read_end += len(data)
        return bool(data)

    def _error(self, reason: str, at: int | None = None) -> FileFormatError:
        """Return the error that reading failed at a place of the window."""
        byte = self._window_byte + _count_bytes(self._window[: self._at if at is None else at])
        return FileFormatError(f"{self.name} is not readable at byte {byte} of {self.file.size}: {reason}")


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
BATCH_PAGES = 1 << 16
PAGE_COLUMNS = ("page_index", "core_x", "core_y", "page_address", "page_size", "address", "buffer_type", "device_id")
UNKNOWN = -1  # in a column, for values that are missing or not integers
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
    """A captured graph: nodes and devices; pages and the buffers of each call are read when asked for.

    `skipped` is the number of entries that are not nodes.

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
    skipped: int = 0
    devices: tuple[Mapping[str, Any], ...] = ()
    sections: Mapping[str, int] = field(default_factory=dict)  # where the large parts begin in the file
    boards: tuple[str, ...] = ()  # the types of the cards, one each, as the description of the cluster has them
    unread: tuple[str, ...] = ()  # keys of the file that are not known

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
    ...     len(read_graph_report(path).nodes)
    1
    """
    file = as_source_file(path)
    stream = JsonStream(file, str(file.path))
    kind = stream.kind()
    if kind == "array":
        nodes, skipped = _read_nodes(stream)
        stream.expect_end()
        if not nodes and skipped:
            raise FileFormatError(f"{file.path} is not a graph report: none of its {skipped} entries is a node")
        return GraphReport(file, nodes, skipped)
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
    stream.expect_end()
    if graph is None:
        raise FileFormatError(f"{file.path} is not a graph report: it has no array 'graph'")
    devices, cluster = parts.get("devices"), parts.get("cluster_descriptor")
    listed = tuple([device for device in devices if isinstance(device, dict)]) if isinstance(devices, list) else ()
    boards = tuple(_BOARD.findall(cluster)) if isinstance(cluster, str) else ()
    return GraphReport(file, *graph, listed, sections, boards, tuple(unread))


def parse_graph(text: str, name: str) -> tuple[ReportNode, ...]:
    """Parse the nodes of a graph from JSON text, such as the graph of one operation in a database.

    >>> parse_graph('[{"counter": 0, "node_type": "capture_start"}]', "the graph")[0].kind
    'capture_start'
    """
    data = parse_json(text, name)
    nodes = [read_node(item) for item in data] if isinstance(data, list) else []
    return tuple([node for node in nodes if node is not None])


def read_node(data: Any) -> ReportNode | None:
    """Return the node that an entry of a graph describes, or None if it is not a node.

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
    )


def as_integer(value: Any) -> int | None:
    """Return an integer from 0, also from the digits of a text; None for anything else.

    >>> as_integer(5), as_integer("64"), as_integer(True), as_integer(-1), as_integer(1.5)
    (5, 64, None, None, None)
    """
    if type(value) is int and 0 <= value < _MAX_INTEGER:
        return value
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


def _read_nodes(stream: JsonStream) -> tuple[tuple[ReportNode, ...], int]:
    """Return the nodes of the array that comes next, and the number of its entries that are not nodes."""
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
    # a buffer without pages is also worth knowing
    yield PageBatch.of(pages, owner)


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
