# SPDX-License-Identifier: Apache-2.0
"""The audit of compiler IR: every layout by the compiler's own shape rule, and by the placement rules of a chip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._text import count_of, format_bytes
from ..errors import TilewrightError
from ..memory import Chip, TensorSpec, placement_violations
from ..notation import LayoutUse, MlirLayout, find_layouts
from ..severity import Severity
from .audit_report import AuditReport
from .finding import AuditFinding, rank_findings
from .seen_reshards import ReshardPlanner, SeenReshard

_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "note": Severity.NOTE}
_MOST_KINDS = 10_000  # of findings that are counted together
_MOST_MOVES = 2000
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
    """Counts the uses of layouts, and collects what is wrong with them."""

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
        self._count(use, kind, reason, _SEVERITIES[use.severity], remedy)

    def _count(self, use: LayoutUse, kind: str, reason: str, severity: Severity, remedy: str = "") -> None:
        """Add a finding, or count it with those that say the same about the same type."""
        key = use.text, reason
        if key in self.found:
            self.found[key] = replace(self.found[key], count=self.found[key].count + 1)
        elif len(self.found) < _MOST_KINDS:
            self.found[key] = AuditFinding(
                kind,
                f"{use.place}: {_shorten(use.text)}: {reason}",
                severity,
                call=use.operation,
                tensor=_shorten(use.text),
                remedy=remedy,
            )

    def _read_spec(self, use: LayoutUse) -> TensorSpec | None:
        """Return the spec of a use on the chip; what the chip has no place for is a finding."""
        if not isinstance(use.layout, MlirLayout) or use.tensor is None or use.severity == "error":
            return None
        key = f"{use.tensor} {use.layout}"
        if key not in self.specs:
            if len(self.specs) >= _MOST_KINDS:
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
        if line.operation not in _MOVES or self.chip is None or len(self.moves) >= _MOST_MOVES:
            return
        if len(line.results) != 1 or not line.operands:
            return
        source, target = line.operands[0], line.results[0]
        plan = self.planner.plan(source, target)
        if plan is None or plan.is_empty or target is None:
            return
        moved = SeenReshard(
            line.number, line.operation, plan.steps[0].operation, source, target, target.nbytes, plan=plan
        )
        self.moves.append(moved)

    def build(self, path: Path) -> AuditReport:
        """Return the report of all that was found."""
        counts = {"layouts": self.uses, **self.by_severity}
        facts = [
            (
                "checked",
                f"{count_of(self.uses, 'tensor type')} with a layout, {self.by_severity['ok']} as the rule says",
            )
        ]
        if self.chip is None and self.uses:
            facts.append(("placement", "not checked; pass --chip (chip=...) for the rules of a chip"))
        if self.largest[0]:
            size, place, tensor = self.largest
            bank = "" if self.chip is None else f" of {format_bytes(self.chip.bank_bytes('l1'))}"
            facts.append(("largest in L1", f"{tensor} at {place}, {format_bytes(size)}{bank} per core"))
        moves = sorted(self.moves, key=lambda each: (-(each.microseconds or 0.0), each.node))
        facts += [("move", f"line {each.node}: {each.path_text}, {_cost_text(each)}") for each in moves[:5]]
        if not self.uses:
            note = AuditFinding("scope", "the file has no tensor types with a layout of TTNN", Severity.NOTE)
            self.found["", ""] = note
        ranked = rank_findings(self.found.values())
        findings = tuple([each for each in ranked if each.severity is not Severity.NOTE])
        notes = tuple([each for each in ranked if each.severity is Severity.NOTE])
        return AuditReport(
            path, "IR of tt-mlir", self.chip, findings, notes, reshards=tuple(moves), counts=counts, facts=tuple(facts)
        )


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
        if spec.bytes_per_bank > chip.bank_bytes(spec.memory.buffer_type):
            size, bank = spec.bytes_per_bank, chip.bank_bytes(spec.memory.buffer_type)
            return spec, f"it takes {size} bytes of each bank of {spec.memory.buffer_type}, which has {bank}"
    except TilewrightError as problem:
        return None, str(problem) if chip is not None else ""
    return spec, ""


def _cost_text(move: SeenReshard) -> str:
    time = "" if move.microseconds is None else f", {move.microseconds:.1f} us"
    return f"{format_bytes(move.bytes_moved)}{time}"


def _shorten(text: str, most: int = 120) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 2]}.."
