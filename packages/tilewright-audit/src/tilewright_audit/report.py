# SPDX-License-Identifier: Apache-2.0
"""`AuditReport`: the findings of an audit, as text and as JSON data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright._text import count_of, format_bytes, format_table
from tilewright.display import Drawable
from tilewright.findings import Severity
from tilewright.memory import BufferType, Chip

from .findings import AuditFinding, rank_findings
from .memory_use import Moment, Peaks, Timeline
from .reshards import SeenReshard, group_moves

REHEARSAL = "rehearsal"  # the kind of a report on a program that ran on a mock machine
_MAX_SHARES = 8
_MAX_FINDINGS = 100
_MAX_RESHARDS = 5
_NARROWEST = 40
_SHORTEST_NAME = 20


WIDTH = 80


def shorten(text: str, most: int) -> str:
    """Return a `text` of at most `most` characters, ending in dots if it was cut.

    >>> shorten("ttnn.to_memory_config", 10)
    'ttnn.to_..'
    """
    return text if len(text) <= most else f"{text[: most - 2]}.."


class _Text:
    """The lines of a report, of at most `width` columns; without a width nothing is wrapped."""

    def __init__(self, report: AuditReport, width: int | None) -> None:
        self.report, self.width = report, width

    def format(self, notes: bool) -> str:
        report = self.report
        lines = [*self._wrap(report.title), *self._wrap(report.subject, "  ")]
        lines += [line for key, value in report.facts for line in self._wrap(f"{key}: {value}", "  ", "    ")]
        for place, finding in enumerate(report.findings[:_MAX_FINDINGS], start=1):
            lines += self._format_finding(f"{place}. ", finding)
        if len(report.findings) > _MAX_FINDINGS:
            rest = count_of(len(report.findings) - _MAX_FINDINGS, "other finding")
            lines.append(f"and {rest}; --json has all of them")
        if report.is_run:
            lines += [*self._format_l1(), *self._format_dram(), *self._format_reshards()]
        if report.notes and notes:
            lines.append("notes")
            for note in report.notes:
                lines += self._format_finding("- ", note)
        return "\n".join(lines)

    def _format_l1(self) -> list[str]:
        """Return the peak of L1 with its largest contributors, and the busiest core."""
        timeline, chip = self.report.timeline, self.report.chip
        if timeline.peak is None or chip is None:
            return ["L1: not used"]
        lines = self._format_peak(timeline, timeline.peak, timeline.peak.describe(chip))
        busiest = timeline.busiest_core
        if busiest is not None:
            core, mark = busiest
            alike = sum([height == mark for height in timeline.cores.values()])
            others = f", as on {count_of(alike - 1, 'other core')}" if alike > 1 else ""
            lines += self._wrap(f"highest on core {core}: {mark} bytes{others}", "  ", "    ")
        return lines

    def _format_dram(self) -> list[str]:
        """Return the peak of DRAM with its largest contributors, for a rehearsal, which asks whether a program fits."""
        report = self.report
        if report.kind != REHEARSAL or report.dram.peak is None or report.chip is None:
            return []
        peak = report.dram.peak
        return self._format_peak(report.dram, peak, peak.describe(report.chip, BufferType.DRAM), "DRAM")

    def _format_peak(self, timeline: Timeline, peak: Moment, used: str, memory: str = "L1") -> list[str]:
        """Return the peak of a memory, as it is described, with its largest contributors."""
        where = f" in {peak.call}" if peak.call else ""
        head = f"{memory}: at most {used},{where} (node {peak.node})"
        rows = [("held by", "since", "cores", "bytes", "")]
        rows += [
            (share.label, share.call, share.cores_text, str(share.bytes_per_core), "idle" if share.idle else "")
            for share in timeline.shares[:_MAX_SHARES]
        ]
        lines = [*self._wrap(head), *self._format_table(rows)]
        if len(timeline.shares) > _MAX_SHARES:
            rest = timeline.shares[_MAX_SHARES:]
            total = format_bytes(sum([share.bytes_per_core for share in rest]))
            lines.append(f"  and {count_of(len(rest), 'other')}, {total}")
        return lines

    def _format_reshards(self) -> list[str]:
        """Return the operations that only moved data, as a table: bytes, time, and name."""
        reshards = self.report.reshards
        if not reshards:
            return []
        groups = group_moves(reshards)
        total = sum([move.bytes_moved for move in reshards])
        known = [move.microseconds for move in reshards if move.microseconds is not None]
        calibrated = all(move.plan is not None and move.plan.cycles.calibrated for move in reshards)
        worth = "" if calibrated else " (estimated, not calibrated)"
        time = f", about {sum(known):.1f} us{worth}" if len(known) == len(reshards) else ""
        lines = self._wrap(
            f"moves: {count_of(len(reshards), 'operation')} only moved data, {format_bytes(total)}{time}"
        )
        rows = [("from, to", "at", "bytes", "time", "bound by")]
        for move, count in groups[:_MAX_RESHARDS]:
            where = f"node {move.node}" + (f" and {count - 1} more" if count > 1 else "")
            micros = "" if move.microseconds is None else f"{move.microseconds:.1f} us"
            rows.append((move.path_text, where, format_bytes(move.bytes_moved), micros, move.bound_text))
        lines += self._format_table(rows)
        rest = len(reshards) - sum([count for _, count in groups[:_MAX_RESHARDS]])
        return [*lines, f"  and {count_of(rest, 'other')}"] if rest > 0 else lines

    def _format_table(self, rows: Sequence[tuple[str, ...]]) -> list[str]:
        """Return a table whose first column is cut so that it fits the width."""
        if self.width is not None:
            others = sum([2 + max([len(row[k]) for row in rows]) for k in range(1, len(rows[0]))])
            most = max(_SHORTEST_NAME, self.width - others - 2)
            rows = [(shorten(row[0], most), *row[1:]) for row in rows]
        return format_table(rows, right=[2, 3], indent="  ")

    def _format_finding(self, mark: str, finding: AuditFinding) -> list[str]:
        text = str(finding) if finding.severity is not Severity.NOTE else str(finding).removeprefix("note: ")
        lines = self._wrap(text, mark, " " * len(mark))
        for name, value in (("tensor", finding.tensor), ("call", finding.call), ("why", finding.reason)):
            if value and value not in text:
                lines += self._wrap(f"{name}: {value}", "   ", "     ")
        if finding.remedy:
            lines += self._wrap(f"remedy: {finding.remedy}", "   ", "     ")
        return lines

    def _wrap(self, text: str, first: str = "", rest: str | None = None) -> list[str]:
        if self.width is None:
            return [first + text]
        return textwrap.wrap(
            text,
            max(_NARROWEST, self.width),
            initial_indent=first,
            subsequent_indent=first if rest is None else rest,
            break_on_hyphens=False,
        )


_NO_TIMELINE = Timeline((), Peaks(), None, (), {})


@dataclass(frozen=True)
class AuditReport(Drawable):
    """The result of an audit: `findings`, the worst first, `notes`, and the memory of the run over time.

    `counts` are the numbers of compared calls, buffers, tensors, pages, and addresses that the allocator predicts;
    `facts` are lines of names and values about the whole file, and `dram` is DRAM over time, in bytes of a bank. The
    chip is None where none was needed.

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
    dram: Timeline = _NO_TIMELINE

    @classmethod
    def of(
        cls,
        path: Path,
        kind: str,
        chip: Chip | None,
        findings: Iterable[AuditFinding],
        counts: Mapping[str, int],
        facts: Iterable[tuple[str, str]],
        timeline: Timeline = _NO_TIMELINE,
        reshards: Iterable[SeenReshard] = (),
    ) -> AuditReport:
        """Return the report of `findings` in any order, notes among them.

        `path`, `kind`, `chip`, `counts`, `facts`, `timeline` and `reshards` are fields of the report.

        >>> AuditReport.of(Path("a"), "IR", None, [AuditFinding("size", "x", Severity.NOTE)], {}, ()).clean
        True
        """
        ranked = rank_findings(findings)
        notes = tuple([finding for finding in ranked if finding.severity is Severity.NOTE])
        findings = ranked[: len(ranked) - len(notes)]  # notes are last
        return cls(path, kind, chip, findings, notes, timeline, tuple(reshards), counts, tuple(facts))

    @property
    def title(self) -> str:
        """The name of the file, and the number of findings.

        >>> AuditReport(Path("model.mlir"), "IR", None).title
        'model.mlir: clean'
        """
        return f"{self.name}: {'clean' if self.clean else count_of(len(self.findings), 'finding')}"

    @property
    def subject(self) -> str:
        """The kind of report, and the chip.

        >>> AuditReport(Path("model.mlir"), "IR", None).subject
        'IR'
        """
        return self.kind if self.chip is None else f"{self.kind}, {self.chip}"

    @property
    def name(self) -> str:
        """The name of the file, with its folder for a database, since all databases have the same name.

        >>> AuditReport(Path("reports/resnet/db.sqlite"), "database", Chip.named("n150")).name
        'resnet/db.sqlite'
        """
        folder = self.path.parent.name
        is_usual = self.path.suffix == ".sqlite" and folder
        return f"{folder}/{self.path.name}" if is_usual else self.path.name or str(self.path)

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong; notes do not count.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150"), (AuditFinding("size", "wrong"),)).clean
        False
        """
        return not self.findings

    @property
    def is_run(self) -> bool:
        """Whether this is the audit of a run, which has calls and memory over time.

        >>> AuditReport(Path("a.mlir"), "IR", None).is_run
        False
        """
        return "calls" in self.counts

    @property
    def peaks(self) -> Peaks:
        """The peaks of L1, as ttnn counts them.

        >>> AuditReport(Path("a"), "graph report", Chip.named("n150")).peaks.l1
        0
        """
        return self.timeline.peaks

    @property
    def exit_status(self) -> int:
        """The exit status of a command with this answer: 0 if clean, 1 if not; 2 is for an unreadable file.

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
            "dram": self.dram.to_json(),
            "reshards": [move.to_json() for move in self.reshards],
        }

    def __str__(self) -> str:
        return self.format()

    def format(self, notes: bool = True, width: int | None = WIDTH) -> str:
        """Return the report as text of at most `width` columns, with or without `notes`.

        Without a width nothing is wrapped, so that each finding, reason and remedy is one line, as for grep.

        >>> print(AuditReport(Path("a.json"), "graph report", Chip.named("n150")).format().splitlines()[0])
        a.json: clean
        """
        return _Text(self, width).format(notes)
