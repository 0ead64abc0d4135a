# SPDX-License-Identifier: Apache-2.0
"""`AuditReport`: what an audit found in a run, as text that people act on and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..byte_sizes import format_bytes
from ..memory import Chip
from ..showing import Shown
from ..tables import count_of, format_table
from .advice import SeenReshard
from .finding import AuditFinding, Severity
from .timeline import Peaks, Timeline

WIDTH = 80
_MOST_SHARES = 8
_NO_TIMELINE = Timeline((), Peaks(), None, (), {})


@dataclass(frozen=True)
class AuditReport(Shown):
    """What an audit found: `findings`, the worst first, `notes`, and the memory of the run over time.

    `counts` says how much was compared: calls, buffers, tensors, pages, and addresses that the allocator predicts.

    >>> report = AuditReport(Path("report.json"), "graph report", Chip.named("wormhole_n150"))
    >>> report.clean, report.exit_status
    (True, 0)
    """

    path: Path
    kind: str
    chip: Chip
    findings: tuple[AuditFinding, ...] = ()
    notes: tuple[AuditFinding, ...] = ()
    timeline: Timeline = _NO_TIMELINE
    reshards: tuple[SeenReshard, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Return whether nothing is wrong; notes do not count.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150"), (AuditFinding("size", "wrong"),)).clean
        False
        """
        return not self.findings

    @property
    def peaks(self) -> Peaks:
        """Return the peaks of L1, as ttnn counts them.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150")).peaks.l1
        0
        """
        return self.timeline.peaks

    @property
    def exit_status(self) -> int:
        """Return the exit status of a command with this answer: 0 if clean, 1 if not; 2 is a file that is not readable.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150")).exit_status
        0
        """
        return 0 if self.clean else 1

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150")).to_json()["clean"]
        True
        """
        return {
            "path": str(self.path),
            "kind": self.kind,
            "chip": self.chip.name,
            "clean": self.clean,
            "counts": dict(self.counts),
            "findings": [finding.to_json() for finding in self.findings],
            "notes": [note.to_json() for note in self.notes],
            "peaks": self.peaks.to_json(),
            "timeline": self.timeline.to_json(),
            "reshards": [
                {
                    "node": each.node,
                    "call": each.call,
                    "operation": each.operation,
                    "source": None if each.source is None else str(each.source),
                    "target": None if each.target is None else str(each.target),
                    "bytes": each.bytes_moved,
                }
                for each in self.reshards
            ],
        }

    def __str__(self) -> str:
        return self.format()

    def format(self, notes: bool = True) -> str:
        """Return the report as text of at most 80 columns, with or without `notes`.

        >>> print(AuditReport(Path("a.json"), "graph report", Chip.named("n150")).format().splitlines()[0])
        a.json: clean
        """
        verdict = "clean" if self.clean else count_of(len(self.findings), "finding")
        lines = [*_wrap(f"{self.path.name}: {verdict}"), *_wrap(f"{self.kind} of {self.chip}", "  ")]
        if self.counts:
            compared = ", ".join([f"{self.counts[name]} {name}" for name in ("calls", "buffers", "pages", "addresses")])
            lines += _wrap(f"compared: {compared} ({self.counts['predicted_addresses']} as predicted)", "  ")
        for place, finding in enumerate(self.findings, start=1):
            lines += _format_finding(f"{place}. ", finding)
        lines += self._format_memory()
        if self.notes and notes:
            lines.append("notes")
            for note in self.notes:
                lines += _format_finding("- ", note)
        return "\n".join(lines)

    def _format_memory(self) -> list[str]:
        """Return the peak of L1 with those to blame."""
        timeline = self.timeline
        if timeline.peak is None:
            return ["L1: not used"]
        peak, bank = timeline.peak, self.chip.bank_bytes("l1")
        share = 100 * peak.total / bank
        head = f"L1: at most {peak.total} of {bank} bytes per core ({share:.0f} %), in {peak.call} (node {peak.node})"
        rows = [
            (each.label, each.call, str(each.bytes_per_core), "not used any more" if each.idle else "")
            for each in timeline.shares[:_MOST_SHARES]
        ]
        rows.insert(0, ("held by", "since", "bytes per core", ""))
        lines = [*_wrap(head), *format_table(rows, WIDTH, right=[2], indent="  ")]
        if len(timeline.shares) > _MOST_SHARES:
            rest = timeline.shares[_MOST_SHARES:]
            total = format_bytes(sum([each.bytes_per_core for each in rest]))
            lines.append(f"  and {count_of(len(rest), 'other')}, {total}")
        return lines


def _format_finding(mark: str, finding: AuditFinding) -> list[str]:
    text = str(finding) if finding.severity is not Severity.NOTE else str(finding).removeprefix("note: ")
    lines = _wrap(text, mark, " " * len(mark))
    for name, value in (("tensor", finding.tensor), ("call", finding.call), ("why", finding.reason)):
        if value and value not in text:
            lines += _wrap(f"{name}: {value}", "   ", "     ")
    if finding.remedy:
        lines += _wrap(f"remedy: {finding.remedy}", "   ", "     ")
    return lines


def _wrap(text: str, first: str = "", rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False
    )
