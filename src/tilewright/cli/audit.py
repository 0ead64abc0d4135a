# SPDX-License-Identifier: Apache-2.0
"""`tilewright audit`: check the reports of real runs against the model, and see their memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import TilewrightError
from .console import Answer, CommandError, ExitCode
from .options import CHIP, NO_CHIP
from .program import verb

if TYPE_CHECKING:
    from ..auditing import AuditReport

NOT_READABLE = ExitCode.USAGE  # 2, as for other linters


@verb("audit")
@click.argument("reports", nargs=-1, required=True, type=click.Path(), metavar="REPORT...")
@click.option("--chip", type=CHIP, metavar="NAME", help="Chip of the run. [found from the devices in the report]")
@click.option("--notes/--no-notes", default=True, help="Also say what could be better. [yes]")
def command(reports: tuple[str, ...], chip: Any, notes: bool) -> Answer:
    """Check reports of real runs: where tensors are, what they take, and what overlaps.

    REPORT is a graph report of ttnn (JSON, or the graph alone), a database of ttnn-visualizer, or the folder of one.
    Page sizes, bytes per bank, cores and addresses of all buffers and pages are compared with the model; L1 is
    followed over time, with the call and the tensors to blame for its peak.

    \b
    tilewright audit report.json
    tilewright audit generated/ttnn/reports/*/db.sqlite --json

    The exit status is 0 if all reports are clean, 1 if there are findings, and 2 if a report is not readable.
    """
    from ..auditing import audit

    answers = []
    for path in reports:
        try:
            answers.append(audit(path, None if chip in (None, NO_CHIP) else chip))
        except (TilewrightError, OSError) as problem:
            reason = str(problem) if str(path) in str(problem) else f"{path}: {problem}"
            raise CommandError(reason, NOT_READABLE) from None
    data = [report.to_json() for report in answers]
    code = ExitCode.OK if all(report.clean for report in answers) else ExitCode.NO
    return Answer(lambda: _format_answers(answers, notes), data[0] if len(data) == 1 else {"reports": data}, code)


def _format_answers(answers: list[AuditReport], notes: bool) -> str:
    texts = []
    for report in answers:
        first, *rest = report.format(notes).splitlines()
        texts.append("\n".join([click.style(first, fg="green" if report.clean else "red", bold=True), *rest]))
    return "\n\n".join(texts)
