# SPDX-License-Identifier: Apache-2.0
"""`AuditReport`: what an audit found in a run, as text that people act on and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..display import Shown
from ..memory import Chip
from .finding import AuditFinding
from .report_text import ReportText
from .seen_reshards import SeenReshard
from .timeline import Peaks, Timeline

WIDTH = 80
_NO_TIMELINE = Timeline((), Peaks(), None, (), {})


@dataclass(frozen=True)
class AuditReport(Shown):
    """What an audit found: `findings`, the worst first, `notes`, and the memory of the run over time.

    `counts` says how much was compared: calls, buffers, tensors, pages, and addresses that the allocator predicts;
    `facts` are lines of names and values about the whole file. The chip is None where none was needed.

    >>> report = AuditReport(Path("report.json"), "graph report", Chip.named("wormhole_n150"))
    >>> report.clean, report.exit_status
    (True, 0)
    """

    path: Path
    kind: str
    chip: Chip | None
    findings: tuple[AuditFinding, ...] = ()
    notes: tuple[AuditFinding, ...] = ()
    timeline: Timeline = _NO_TIMELINE
    reshards: tuple[SeenReshard, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the file, with its folder for a database, since those are all called alike.

        >>> AuditReport(Path("reports/resnet/db.sqlite"), "database", Chip.named("n150")).name
        'resnet/db.sqlite'
        """
        folder = self.path.parent.name
        is_usual = self.path.suffix == ".sqlite" and folder
        return f"{folder}/{self.path.name}" if is_usual else self.path.name or str(self.path)

    @property
    def clean(self) -> bool:
        """Return whether nothing is wrong; notes do not count.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150"), (AuditFinding("size", "wrong"),)).clean
        False
        """
        return not self.findings

    @property
    def is_run(self) -> bool:
        """Return whether this is the audit of a run, which has calls and memory over time.

        >>> AuditReport(Path("a.mlir"), "IR", None).is_run
        False
        """
        return "calls" in self.counts

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
            "chip": None if self.chip is None else self.chip.name,
            "clean": self.clean,
            "counts": dict(self.counts),
            "facts": dict(self.facts),
            "findings": [finding.to_json() for finding in self.findings],
            "notes": [note.to_json() for note in self.notes],
            "peaks": self.peaks.to_json(),
            "timeline": self.timeline.to_json(),
            "reshards": [each.to_json() for each in self.reshards],
        }

    def __str__(self) -> str:
        return self.format()

    def format(self, notes: bool = True, width: int | None = WIDTH) -> str:
        """Return the report as text of at most `width` columns, with or without `notes`.

        Without a width nothing is wrapped, so that each finding, reason and remedy is one line, as for grep.

        >>> print(AuditReport(Path("a.json"), "graph report", Chip.named("n150")).format().splitlines()[0])
        a.json: clean
        """
        return ReportText(self, width).format(notes)
