# SPDX-License-Identifier: Apache-2.0
"""Audit compiler IR, and a log with errors and values that ttnn printed: the rules of shapes and of a chip."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilewright._text import count_of, format_bytes, format_extents
from tilewright.errors import FileFormatError, TilewrightError
from tilewright.files import SourceFile, as_source_file
from tilewright.findings import Severity
from tilewright.memory import (
    Chip,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    TensorSpec,
    placement_violations,
)
from tilewright.notation import (
    LayoutUse,
    MlirLayout,
    TtnnText,
    find_errors,
    find_layouts,
    find_ttnn_values,
    parse_ttnn,
)

from .findings import AuditFinding, explain_failure, scope_note
from .report import AuditReport, shorten
from .reshards import ReshardPlanner, SeenReshard

_MAX_KINDS = 10_000  # of findings that are counted together
_MAX_MOVES = 2000
_MAX_TENSOR = 120  # characters of its type that are quoted
_MOVES = ("ttnn.to_memory_config", "ttnn.to_layout", "ttnn.to_device")


def audit_ir(path: Path, chip: Chip | None = None) -> AuditReport:
    """Return the audit of the IR file at `path`: layouts against the shape rule, and against the rules of a `chip`.

    >>> import tempfile
    >>> text = (
    ...     "#a = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>,"
    ...     " <interleaved>>\\n"
    ...     'func.func @f(%0: tensor<32x64xf32, #a>) -> tensor<32x32xf32, #a>\\n'
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.mlir").write_text(text)
    ...     report = audit_ir(Path(folder, "model.mlir"))
    >>> print(report.findings[0])
    error: layout: 2:18: tensor<32x64xf32, #a>: memref is 1x1, rule gives 1x2: it holds 1 tile, the tensor needs 2 and \
does not fit its layout
    """
    audit = _IrAudit(chip)
    audit.add(find_layouts(path))
    return audit.build(path)


@dataclass
class _Line:
    """The specs of the operation on one line."""

    number: int = 0
    operation: str = ""
    operands: list[TensorSpec | None] = field(default_factory=list)
    results: list[TensorSpec | None] = field(default_factory=list)


class _IrAudit:
    """Counts the uses of layouts, and collects their errors."""

    def __init__(self, chip: Chip | None) -> None:
        self.chip = chip
        self.uses = 0
        self.by_severity = {"ok": 0, "note": 0, "warning": 0, "error": 0}
        self.found: dict[tuple[str, str], AuditFinding] = {}
        self.specs: dict[str, tuple[TensorSpec | None, str]] = {}
        self.line = _Line()
        self.moves: list[SeenReshard] = []
        self.planner = ReshardPlanner()
        self.largest: tuple[int, str, str] = (0, "", "")

    def add(self, uses: Iterable[LayoutUse]) -> None:
        for use in uses:
            self.uses += 1
            self.by_severity[use.severity] += 1
            self._judge(use)
            spec = self._read_spec(use)
            if self.line.number != use.line:
                self._end_line()
                self.line = _Line(use.line, use.operation)
            (self.line.results if use.is_result else self.line.operands).append(spec)
        self._end_line()

    def _judge(self, use: LayoutUse) -> None:
        if use.severity == "ok":
            return
        reason = use.problem or (use.verdict.reason if use.verdict is not None else "")
        expected = None if use.verdict is None else use.verdict.expected
        remedy = "" if expected is None else f"write memref<{'x'.join(map(str, expected))}x...> in its layout"
        kind = "not readable" if use.problem else "layout"
        self._count(use, kind, reason, Severity(use.severity), remedy)

    def _count(self, use: LayoutUse, kind: str, reason: str, severity: Severity, remedy: str = "") -> None:
        """Add a finding, or count it with equal ones about the same type."""
        key = use.text, reason
        if key in self.found:
            self.found[key] = replace(self.found[key], count=self.found[key].count + 1)
        elif len(self.found) < _MAX_KINDS:
            tensor = shorten(" ".join(use.text.split()), _MAX_TENSOR)
            message = f"{use.place}: {tensor}: {reason}"
            self.found[key] = AuditFinding(kind, message, severity, "", remedy, call=use.operation, tensor=tensor)

    def _read_spec(self, use: LayoutUse) -> TensorSpec | None:
        """Return the spec of a use on the chip; a spec that the chip cannot hold is a finding."""
        if not isinstance(use.layout, MlirLayout) or use.tensor is None or use.severity == "error":
            return None
        key = f"{use.tensor} {use.layout}"
        if key not in self.specs:
            if len(self.specs) >= _MAX_KINDS:
                self.specs.clear()
            self.specs[key] = _place(use, self.chip)
        spec, problem = self.specs[key]
        if problem:
            self._count(use, "placement", problem, Severity.ERROR, "choose other shards, or another grid, for it")
        elif spec is not None and self.chip is not None and spec.memory.buffer_type.is_l1:
            self.largest = max(self.largest, (spec.bytes_per_bank, use.place, str(use.tensor)))
        return spec

    def _end_line(self) -> None:
        line = self.line
        if line.operation not in _MOVES or self.chip is None or len(self.moves) >= _MAX_MOVES:
            return
        if len(line.results) != 1 or not line.operands:
            return
        source, target = line.operands[0], line.results[0]
        plan = self.planner.plan(source, target)
        if plan is not None and not plan.is_empty and target is not None:
            names = line.number, line.operation, plan.steps[0].operation
            self.moves.append(SeenReshard(*names, source, target, target.nbytes, plan=plan))

    def build(self, path: Path) -> AuditReport:
        """Return the report of all findings."""
        counts = {"layouts": self.uses, **self.by_severity}
        types = f"{count_of(self.uses, 'tensor type')} with a layout"
        facts = [("checked", f"{types}, {self.by_severity['ok']} as the rule says")]
        if self.chip is None and self.uses:
            facts.append(("placement", "not checked; pass --chip (chip=...) for the rules of a chip"))
        if self.largest[0]:
            size, place, tensor = self.largest
            bank = "" if self.chip is None else f" of {format_bytes(self.chip.bank_bytes('l1'))}"
            facts.append(("largest in L1", f"{tensor} at {place}, {format_bytes(size)}{bank} per core"))
        moves = sorted(self.moves, key=lambda move: (-(move.microseconds or 0.0), move.node))
        facts += [("move", f"line {move.node}: {move.path_text}, {_cost_text(move)}") for move in moves[:5]]
        if not self.uses:
            self.found["", ""] = scope_note("the file has no tensor types with a layout of TTNN")
        return AuditReport.of(path, "IR of tt-mlir", self.chip, self.found.values(), counts, facts, reshards=moves)


def _place(use: LayoutUse, chip: Chip | None) -> tuple[TensorSpec | None, str]:
    """Return the spec of a use, and why the chip does not take it."""
    assert isinstance(use.layout, MlirLayout)  # asked by the caller
    assert use.tensor is not None
    if use.layout.memref.space not in ("dram", "l1") or None in use.tensor.shape or use.layout.ignore_physical:
        return None, ""  # on the host, or not known
    try:
        spec = use.layout.to_spec(use.tensor, chip)
        if chip is None:
            return spec, ""
        for violation in placement_violations(spec, any_size=True):
            return None, str(violation)
        return spec, "".join(_exceed_bank(spec))
    except TilewrightError as problem:
        return None, str(problem) if chip is not None else ""


def _cost_text(move: SeenReshard) -> str:
    time = "" if move.microseconds is None else f", {move.microseconds:.1f} us"
    return f"{format_bytes(move.bytes_moved)}{time}"


_CHUNK = 1 << 20
_LONGEST = 1 << 16  # characters of one value
_MAX_NOTES = 50
_MAX_VALUES = 100_000  # different ones
_PASTED = Path("text")


def audit_text(text: str, chip: Chip | None = None) -> AuditReport:
    """Return the audit of a `text`: its errors of ttnn, the values that ttnn printed, and whether a `chip` holds them.

    >>> config = (
    ...     "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,shard_spec="
    ...     'ShardSpec{grid=[{"start":{"x":0,"y":0},"end":{"x":8,"y":0}], shape=[32, 64],'
    ...     " orientation=ShardOrientation::ROW_MAJOR})"
    ... )
    >>> print(audit_text(config, Chip.named("n150")).findings[0].message)
    line 1: MemoryConfig: core (8, 0) is not on wormhole_n150, whose grid is 8 x 8
    """
    audit = _TextAudit(chip)
    try:
        whole: TtnnText | None = parse_ttnn(text)
    except FileFormatError:
        whole = None
    if whole is not None:
        audit.add(1, whole)
    else:
        audit.read(text, 1, len(text), is_whole=True)
    return audit.build(_PASTED, text[:80])


def audit_text_file(path: Path, chip: Chip | None = None) -> AuditReport:
    """Return the audit of a log at `path`, which is read in pieces.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "run.log").write_text("op got Shape([1, 32])")
    ...     audit_text_file(Path(folder, "run.log")).counts["values"]
    1
    """
    file = as_source_file(path)
    if file.size <= _CHUNK:
        text = file.read(0, file.size).decode("utf-8-sig", "replace")
        return replace(audit_text(text, chip), path=Path(path))
    audit = _TextAudit(chip)
    for text, line, stop in _read_pieces(file):
        audit.read(text, line, stop)
    return audit.build(Path(path), str(path))


def _read_pieces(file: SourceFile) -> Iterator[tuple[str, int, int]]:
    """Yield the pieces of a long text, with the number of their first line, and the offset where the next begins."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text, line = "", 1
    for start in range(0, file.size, _CHUNK):
        size = min(_CHUNK, file.size - start)
        is_last = start + size == file.size
        text += decoder.decode(file.read(start, size), final=is_last)
        stop = len(text)
        if not is_last:  # where a line begins, if it can be
            stop = max(0, stop - _LONGEST)
            stop = text.rfind("\n", 0, stop) + 1 or stop
        yield text, line, stop
        line += text.count("\n", 0, stop)
        text = text[stop:]


class _TextAudit:
    """The errors and values in a text; one that occurs again is counted."""

    def __init__(self, chip: Chip | None) -> None:
        self.chip = chip
        self.total = 0
        self.errors: dict[str, AuditFinding] = {}
        self.findings: list[AuditFinding] = []
        self.values: dict[str, AuditFinding] = {}

    def read(self, text: str, line: int, stop: int, is_whole: bool = False) -> None:
        """Read what begins before `stop` in a text whose first line is number `line`."""
        lines = text.count("\n", 0, stop) + 1
        for error in find_errors(text, is_message=is_whole and "\n" not in text).errors:
            if error.line <= lines and len(self.errors) < _MAX_KINDS:
                finding = explain_failure(error, line + error.line - 1)
                self.errors.setdefault(f"{error.kind} {error.message} {error.numbers}", finding)
        counted = 0
        for at, value in find_ttnn_values(text):
            if at >= stop:
                break
            line += text.count("\n", counted, at)
            counted = at
            self.add(line, value)

    def add(self, line: int, text: TtnnText) -> None:
        self.total += 1
        key = f"{text.kind} {text.value!r}"
        if key in self.values:
            self.values[key] = replace(self.values[key], count=self.values[key].count + 1)
            return
        if len(self.values) >= _MAX_VALUES:
            return
        described, problems = describe_value(text, self.chip)
        self.values[key] = AuditFinding("value", f"line {line}: {text.kind}: {described}", Severity.NOTE, recorded=line)
        remedy = "choose cores and shards that the chip has, or name the chip that it ran on"
        for problem in problems:
            message = f"line {line}: {text.kind}: {problem}"
            finding = AuditFinding("placement", message, remedy=remedy, tensor=described, recorded=line)
            self.findings.append(finding)

    def build(self, path: Path, name: str) -> AuditReport:
        if not self.total and not self.errors:
            raise FileFormatError(
                f"{name!r} has no error of ttnn, and no value that ttnn prints, such as MemoryConfig(...), Shape([...])"
                " or {[0-0 - 7-7]}"
            )
        different = f", {len(self.values)} different" if len(self.values) < self.total else ""
        facts = [("read", f"{count_of(self.total, 'value')} of ttnn{different}")]
        if self.errors:
            facts.append(("errors", f"{len(self.errors)} different; tilewright explain has their numbers"))
        if self.chip is None and self.total:
            facts.append(("placement", "not checked; pass --chip (chip=...) for the rules of a chip"))
        notes = list(self.values.values())
        if len(notes) > _MAX_NOTES:
            rest = count_of(len(notes) - _MAX_NOTES, "other value")
            notes = [*notes[:_MAX_NOTES], scope_note(f"and {rest}")]
        counts = {"values": self.total, "different": len(self.values)}
        counts |= {"errors": len(self.errors)} if self.errors else {}
        findings = [*self.errors.values(), *self.findings, *notes]
        return AuditReport.of(path, "text", self.chip, findings, counts, facts)


def describe_value(text: TtnnText, chip: Chip | None) -> tuple[str, list[str]]:
    """Return a value of ttnn in words, and its errors on a `chip`.

    >>> describe_value(parse_ttnn("{[0-0 - 7-0]}"), None)
    ('8 cores: [(0, 0) - (7, 0)]', [])
    """
    value = text.value
    if isinstance(value, TensorSpec):
        return _describe_spec(value, text, chip)
    if isinstance(value, MemoryConfig):
        grid = None if value.sharding is None or not value.buffer_type.is_l1 else value.sharding.grid
        without = "" if text.has_placement else ", without shards: it has no placement before a tensor gets it"
        return f"{value}{without}", _check_cores(grid, chip)
    if isinstance(value, (ShardSpec, NdShardSpec)):
        shards = f"shards of {format_extents(value.shape)} on {count_of(value.grid.num_cores, 'core')}"
        return shards, _check_cores(value.grid, chip)
    if isinstance(value, (CoreRangeSet, CoreRange)):
        cores = CoreRangeSet.of(value)
        ranges = ", ".join([f"[{box.start} - {box.end}]" for box in cores][:8])
        return f"{count_of(cores.num_cores, 'core')}: {ranges}", _check_cores(cores, chip)
    return str(value), []


def _describe_spec(spec: TensorSpec, text: TtnnText, chip: Chip | None) -> tuple[str, list[str]]:
    """Return the description of a tensor, with its pages and bytes on the chip."""
    described = str(spec)
    if not text.has_placement:
        return f"{described}, without shards: it has no placement", []
    if chip is None and spec.chip is None:
        return described, []
    try:
        placed = spec if chip is None else spec.with_chip(chip)
        problems = [str(violation) for violation in placement_violations(placed, any_size=True)]
        if problems:
            return described, problems
        pages = f"{count_of(placed.num_pages, 'page')} of {placed.page_bytes} bytes"
        return f"{described}: {pages}, {placed.bytes_per_bank} bytes per bank", _exceed_bank(placed)
    except TilewrightError as problem:
        return described, [str(problem)]


def _exceed_bank(spec: TensorSpec) -> list[str]:
    """Return a problem if a tensor takes more than its banks have."""
    size, memory = spec.bytes_per_bank, spec.memory.buffer_type
    bank = spec.known_chip.bank_bytes(memory)
    return [f"it takes {size} bytes of each bank of {memory}, which has {bank}"] if size > bank else []


def _check_cores(grid: CoreRangeSet | None, chip: Chip | None) -> list[str]:
    """Return a problem if cores are not on the chip."""
    if grid is None or chip is None:
        return []
    across, down = chip.compute_grid
    for box in grid:
        if box.end.x >= across or box.end.y >= down:
            return [f"core {box.end} is not on {chip.name}, whose grid is {across} x {down}"]
    return []
