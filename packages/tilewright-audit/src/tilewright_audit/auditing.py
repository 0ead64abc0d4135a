# SPDX-License-Identifier: Apache-2.0
"""Detect the type of an audit input from its content, and compare it with the model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from tilewright._files import as_path
from tilewright.errors import FileFormatError
from tilewright.files import FilePath, SourceFile, as_source_file
from tilewright.memory import Chip, ChipLike
from tilewright.notation import find_errors, parse_ttnn

from .database import is_database
from .report import AuditReport
from .run_audit import audit_database, audit_graph, compare_with_run
from .text_audit import audit_ir, audit_text, audit_text_file
from .trace_audit import audit_trace

InputKind: TypeAlias = Literal["graph report", "database", "IR", "NoC trace", "text"]

_HEAD = 1 << 16
_CHUNK = 1 << 20
_MAX_SEARCHED = 1 << 28  # bytes in which something known must begin
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
_ERROR = re.compile(rb"TT_(?:FATAL|THROW|ASSERT)")
_RANGES = re.compile(rb"\{\[(?:\d+-\d+ - |\(x=)")


def find_input_kind(path: FilePath | SourceFile) -> InputKind:
    """Return the type of the file at `path`; unrecognised content is refused.

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
        return "IR"  # whose reader explains how to print it
    start = head.removeprefix(_MARK).lstrip()
    if start[:1] in (b"{", b"["):
        return _kind_of_brackets(file, start)
    kind = _search(file) or ("text" if find_errors(head.decode("utf-8", "replace")).errors else None)
    if kind is None:
        raise FileFormatError(
            f"cannot audit {file.path}: {_describe_start(head)}; expected a graph report or NoC trace"
            " (JSON), a database of ttnn-visualizer, IR of tt-mlir, or a text with errors of ttnn, such as TT_FATAL, or"
            " values that it printed, such as MemoryConfig(...)"
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
    """Return the type of a file that begins with a bracket, as JSON does, but also core ranges."""
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
    """Return the type of the first value in a text: IR, or a value of ttnn."""
    rest = b""
    for at in range(0, min(file.size, _MAX_SEARCHED), _CHUNK):
        text = rest + file.read(at, min(_CHUNK, file.size - at))
        places = [
            (match.start(), kind)
            for pattern, kind in ((_IR, "IR"), (_VALUE, "text"), (_RANGES, "text"), (_ERROR, "text"))
            if (match := pattern.search(text))
        ]
        if places:
            return "IR" if min(places)[1] == "IR" else "text"
        rest = text[-_OVERLAP:]
    return None


DATABASE_NAME = "db.sqlite"
_SIGNS = "({[<\n"  # in a text that is not a path


def audit(path: FilePath, chip: ChipLike | None = None, against: FilePath | None = None) -> AuditReport:
    """Compare a recorded run, IR, a trace or a log with the model and report the differences; for a run, L1 over time.

    Args:
        path: a graph report of ttnn (JSON), a database of ttnn-visualizer or its folder, IR of tt-mlir, a NoC trace, a
            log with errors of ttnn or values that it printed, or such a text itself. The content decides, not the name.
        chip: the chip; by default the one in a report, and none for IR and text.
        against: the other side: of IR, a report of its run; of a report, the IR it was compiled from.

    >>> import tempfile
    >>> graph = '[{"counter": 0, "node_type": "capture_start"}, {"counter": 1, "node_type": "capture_end"}]'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = Path(folder, "report.json")
    ...     _ = report.write_text(graph)
    ...     print(audit(report, "wormhole_n150"))
    report.json: clean
      graph report, wormhole_n150 (8 x 8 cores, fast dispatch, 12 DRAM banks)
      compared: 0 calls, 0 buffers, 0 pages, 0 addresses, 0 of them as predicted
    L1: not used
    """
    known = None if chip is None else Chip.of(chip)
    if isinstance(path, str) and _is_text(path):
        if against is not None:
            raise FileFormatError("a text has nothing to be compared with a run; pass IR and a report")
        return audit_text(path, known)
    place = _find_file(path)
    kind = find_input_kind(place)
    if against is None:
        return _AUDITS[kind](place, known)
    other = _find_file(against)
    other_kind = find_input_kind(other)
    sides = {kind: place, other_kind: other}
    run = sides.get("graph report", sides.get("database"))
    if "IR" not in sides or run is None:
        raise FileFormatError(
            f"expected IR of tt-mlir and a report of its run to compare, got {kind} {place.name} and {other_kind}"
            f" {other.name}"
        )
    return compare_with_run(sides["IR"], run, "graph report" in sides, known)


_AUDITS: dict[InputKind, Callable[[Path, Chip | None], AuditReport]] = {
    "graph report": audit_graph,
    "database": audit_database,
    "IR": audit_ir,
    "NoC trace": audit_trace,
    "text": audit_text_file,
}


def _is_text(path: str) -> bool:
    """Return whether a string is a text to audit rather than the path of a file."""
    return any(sign in path for sign in _SIGNS) and not os.path.exists(path)


def _find_file(path: FilePath) -> Path:
    place = as_path(path)
    return place / DATABASE_NAME if place.is_dir() else place
