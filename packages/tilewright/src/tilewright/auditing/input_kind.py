# SPDX-License-Identifier: Apache-2.0
"""What a file is that somebody wants to have audited: decided by its content, not by its name."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from ..errors import FileFormatError
from ..files import FilePath, SourceFile, as_source_file, is_database
from ..notation import parse_ttnn

InputKind: TypeAlias = Literal["graph report", "database", "IR", "NoC trace", "text"]

_HEAD = 1 << 16
_CHUNK = 1 << 20
_MOST_SEARCHED = 1 << 28  # bytes in which something known must begin
_OVERLAP = 64
_BYTECODE = b"ML\xefR"
_MARK = b"\xef\xbb\xbf"  # that a text is UTF-8
_CORES = re.compile(rb"[\[{]\s*(?:\[\s*[\d(]|\d+\s*-\s*\d|\(\s*x)")
_EVENT = re.compile(rb'"(?:proc|sx|src_device_id|zone_phase)"')
_NODE = re.compile(rb'"(?:node_type|counter|connections|stacking_level)"')
_IR = re.compile(rb"#ttnn\.\w|#ttcore\.\w|#tt\.\w|!ttcore\.\w|\bfunc\.func\b|\btensor<[\d?]|(?:^|\n)\s*module\b")
_VALUE = re.compile(
    rb"\b(?:Tensor|TensorSpec|MemoryConfig|ShardSpec|NdShardSpec|CoreRangeSet|Shape|Tile)[({]|Tile with"
)
_RANGES = re.compile(rb"\{\[(?:\d+-\d+ - |\(x=)")


def find_input_kind(path: FilePath | SourceFile) -> InputKind:
    """Return what the file at `path` is; one that is nothing known is refused.

    >>> import tempfile
    >>> from pathlib import Path
    >>> def kind_of(text):
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         path = Path(folder, "file")
    ...         _ = path.write_text(text)
    ...         return find_input_kind(path)
    >>> kind_of('{"version": 1, "graph": []}'), kind_of('[{"proc": "BRISC", "sx": 1}]')
    ('graph report', 'NoC trace')
    >>> kind_of("#dram = #ttnn.buffer_type<dram>"), kind_of("op got Shape([1, 32])")
    ('IR', 'text')
    """
    file = as_source_file(path)
    if is_database(file.path):
        return "database"
    head = file.read(0, min(_HEAD, file.size))
    if head.startswith(_BYTECODE):
        return "IR"  # whose reader says how to print it
    start = head.removeprefix(_MARK).lstrip()
    if start[:1] in (b"{", b"["):
        return _kind_of_brackets(file, start)
    kind = _search(file)
    if kind is None:
        raise FileFormatError(
            f"cannot audit {file.path}: {_describe_start(head)}; expected a graph report or NoC trace"
            " (JSON), a database of ttnn-visualizer, IR of tt-mlir, or a text with values that ttnn printed, such as"
            " MemoryConfig(...)"
        )
    return kind


def _describe_start(head: bytes) -> str:
    """Return why the beginning of a file is not JSON, with the byte."""
    try:
        head.decode()
    except UnicodeDecodeError as problem:
        if problem.end < len(head):
            return f"it is not UTF-8 at byte {problem.start}"
    return f"it is not JSON at byte {len(head) - len(head.lstrip())}"


def _kind_of_brackets(file: SourceFile, start: bytes) -> InputKind:
    """Return what a file is that begins with a bracket, as JSON does, but also core ranges."""
    if start.rstrip() in (b"[]", b"{}"):
        return "graph report"  # of nothing, or one that is refused
    if _CORES.match(start):
        return "text"
    event, node = _EVENT.search(start), _NODE.search(start)
    if start.startswith(b"[") and event is not None and (node is None or event.start() < node.start()):
        return "NoC trace"
    if file.size <= _HEAD and node is None and b'"graph"' not in start:
        try:
            parse_ttnn(start.decode("utf-8", "replace"))
        except FileFormatError:
            return "graph report"
        return "text"
    return "graph report"


def _search(file: SourceFile) -> InputKind | None:
    """Return what begins first in a text: IR, or a value of ttnn."""
    rest = b""
    for at in range(0, min(file.size, _MOST_SEARCHED), _CHUNK):
        text = rest + file.read(at, min(_CHUNK, file.size - at))
        places = [
            (found.start(), kind)
            for pattern, kind in ((_IR, "IR"), (_VALUE, "text"), (_RANGES, "text"))
            if (found := pattern.search(text))
        ]
        if places:
            return "IR" if min(places)[1] == "IR" else "text"
        rest = text[-_OVERLAP:]
    return None
