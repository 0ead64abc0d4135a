# SPDX-License-Identifier: Apache-2.0
"""The text of an audit: a ranked list with numbers, reasons and remedies, the peak of L1, and what moves cost."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._text import count_of, format_bytes, format_table
from ..severity import Severity
from .finding import AuditFinding
from .seen_reshards import group_moves

if TYPE_CHECKING:
    from .audit_report import AuditReport

_MOST_SHARES = 8
_MOST_FINDINGS = 100
_MOST_RESHARDS = 5
_NARROWEST = 40
_SHORTEST_NAME = 20


@dataclass(frozen=True, slots=True)
class ReportText:
    """A report as text of at most `width` columns, or in lines that are not wrapped without a width.

    >>> from pathlib import Path
    >>> from .audit_report import AuditReport
    >>> print(ReportText(AuditReport(Path("model.mlir"), "IR", None), 80).format())
    model.mlir: clean
      IR
    """

    report: AuditReport
    width: int | None

    def format(self, notes: bool = True) -> str:
        """Return the text, with or without `notes`.

        >>> from pathlib import Path
        >>> from .audit_report import AuditReport
        >>> ReportText(AuditReport(Path("a.json"), "graph report", None), None).format().splitlines()[0]
        'a.json: clean'
        """
        report = self.report
        verdict = "clean" if report.clean else count_of(len(report.findings), "finding")
        kind = report.kind if report.chip is None else f"{report.kind}, {report.chip}"
        lines = [*self._wrap(f"{report.name}: {verdict}"), *self._wrap(kind, "  ")]
        lines += [line for key, value in report.facts for line in self._wrap(f"{key}: {value}", "  ", "    ")]
        for place, finding in enumerate(report.findings[:_MOST_FINDINGS], start=1):
            lines += self._format_finding(f"{place}. ", finding)
        if len(report.findings) > _MOST_FINDINGS:
            rest = count_of(len(report.findings) - _MOST_FINDINGS, "other finding")
            lines.append(f"and {rest}; --json has all of them")
        if report.is_run:
            lines += [*self._format_memory(), *self._format_reshards()]
        if report.notes and notes:
            lines.append("notes")
            for note in report.notes:
                lines += self._format_finding("- ", note)
        return "\n".join(lines)

    def _format_memory(self) -> list[str]:
        """Return the peak of L1 with those to blame."""
        report, timeline = self.report, self.report.timeline
        if timeline.peak is None or report.chip is None:
            return ["L1: not used"]
        peak, bank = timeline.peak, report.chip.bank_bytes("l1")
        share = 100 * peak.total / bank
        where = f" in {peak.call}" if peak.call else ""
        head = f"L1: at most {peak.total} of {bank} bytes per core ({share:.0f} %),{where} (node {peak.node})"
        rows = [
            (each.label, each.call, each.cores_text, str(each.bytes_per_core), "idle" if each.idle else "")
            for each in timeline.shares[:_MOST_SHARES]
        ]
        rows.insert(0, ("held by", "since", "cores", "bytes", ""))
        lines = [*self._wrap(head), *self._format_table(rows)]
        if len(timeline.shares) > _MOST_SHARES:
            rest = timeline.shares[_MOST_SHARES:]
            total = format_bytes(sum([each.bytes_per_core for each in rest]))
            lines.append(f"  and {count_of(len(rest), 'other')}, {total}")
        busiest = timeline.busiest_core
        if busiest is not None:
            core, mark = busiest
            alike = sum([each == mark for each in timeline.cores.values()])
            others = f", as on {count_of(alike - 1, 'other core')}" if alike > 1 else ""
            lines += self._wrap(f"highest on core {core}: {mark} bytes{others}", "  ", "    ")
        return lines

    def _format_reshards(self) -> list[str]:
        """Return the operations that only moved data, as a table: bytes, time, and what they were."""
        reshards = self.report.reshards
        if not reshards:
            return []
        groups = group_moves(reshards)
        total = sum([each.bytes_moved for each in reshards])
        known = [each.microseconds for each in reshards if each.microseconds is not None]
        calibrated = all(each.plan is not None and each.plan.cycles.calibrated for each in reshards)
        worth = "" if calibrated else " (estimated, not calibrated)"
        time = f", about {sum(known):.1f} us{worth}" if len(known) == len(reshards) else ""
        lines = self._wrap(
            f"moves: {count_of(len(reshards), 'operation')} only moved data, {format_bytes(total)}{time}"
        )
        rows = [
            (
                each.path_text,
                f"node {each.node}" + (f" and {count - 1} more" if count > 1 else ""),
                format_bytes(each.bytes_moved),
                "" if each.microseconds is None else f"{each.microseconds:.1f} us",
                each.bound_text,
            )
            for each, count in groups[:_MOST_RESHARDS]
        ]
        rows.insert(0, ("from, to", "at", "bytes", "time", "bound by"))
        lines += self._format_table(rows)
        rest = len(reshards) - sum([count for _, count in groups[:_MOST_RESHARDS]])
        return [*lines, f"  and {count_of(rest, 'other')}"] if rest > 0 else lines

    def _format_table(self, rows: Sequence[tuple[str, ...]]) -> list[str]:
        """Return a table whose first column is cut so that it fits the width."""
        if self.width is not None:
            others = sum([2 + max([len(row[k]) for row in rows]) for k in range(1, len(rows[0]))])
            most = max(_SHORTEST_NAME, self.width - others - 2)
            rows = [(row[0] if len(row[0]) <= most else f"{row[0][: most - 2]}..", *row[1:]) for row in rows]
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
