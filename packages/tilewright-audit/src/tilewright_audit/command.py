# SPDX-License-Identifier: Apache-2.0
"""The verb `tilewright audit`: check reports of real runs, compiler IR, NoC traces and logs against the model."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli import (
    CHIP,
    FILE,
    NO_CHIP,
    Answer,
    CommandError,
    ExitCode,
    SpecOptions,
    describe_assumptions,
    describe_error,
    list_assumptions,
    parse_move,
    refuse_options,
    save_picture,
    table_width,
    verb,
)
from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from .report import AuditReport

NOT_READABLE = ExitCode.USAGE  # 2, as for other linters
STDIN = "-"


@verb("audit")
@click.argument("reports", nargs=-1, metavar="[FILE|TEXT|-]...")
@click.option("--chip", type=CHIP, metavar="NAME", help="Chip of the run. [found from the devices in a report]")
@click.option("--against", metavar="FILE", help="Compare IR with a report of its run, tensor by tensor.")
@click.option("--noc-trace", metavar="FILE", help="Check a trace of a reshard, request by request, with")
@click.option("--source", metavar="SPEC", help="the tensor before, such as 512x512:layout=tile:shard=block:grid=2x1,")
@click.option(
    "--target", metavar="SPEC", help="and after: shard=height:grid=4x2. As for reshard, also as ttnn prints them."
)
@click.option("--op", default="to_memory_config", metavar="NAME", help="Operation of the trace. [to_memory_config]")
@click.option("--html", type=FILE, help="Write a page: the list, the chip with L1 per core, L1 over time.")
@click.option("--notes/--no-notes", default=True, help="Also list possible improvements. [yes]")
def command(
    reports: tuple[str, ...],
    chip: Any,
    against: str | None,
    noc_trace: str | None,
    source: str | None,
    target: str | None,
    op: str,
    html: str | None,
    notes: bool,
) -> Answer:
    """Check reports of real runs: where tensors are, what they take, what overlaps, and what could be better.

    FILE is a graph report of ttnn (JSON, or the graph alone), a database of ttnn-visualizer or the folder of one, IR
    of tt-mlir, a NoC trace, or a log with errors of ttnn or values that it printed; its content decides. TEXT is such
    a message or value, and - is the standard input.

    \b
    tilewright audit report.json --html audit.html
    tilewright audit generated/ttnn/reports/*/db.sqlite --json
    tilewright audit model.mlir --chip wormhole_n150 --against report.json
    tilewright audit --noc-trace trace.json \\
        --source 512x512:layout=tile:shard=block:grid=2x1 \\
        --target shard=height:grid=4x2
    tilewright audit "MemoryConfig(memory_layout=...)" --chip n150

    The exit status is 0 if everything is clean, 1 if there are findings, and 2 if something is not readable.
    """
    from .auditing import audit

    known = None if chip in (None, NO_CHIP) else chip
    if source is None or target is None:
        refuse_options(["op"], "without --noc-trace, --source and --target")
    if noc_trace is not None and (reports or against is not None):
        raise click.UsageError("--noc-trace is checked by itself; remove the other files")
    if noc_trace is None and (source is not None or target is not None):
        raise click.UsageError("--source and --target are the tensor of a trace; add --noc-trace FILE")
    names = reports if noc_trace is None else (noc_trace,)
    if not names:
        raise click.UsageError("Missing argument 'FILE'")
    if source is not None and target is not None:
        check = _trace_check(known, source, target, op)
    elif source is not None or target is not None:
        raise click.UsageError("--noc-trace needs both --source and --target, or neither")
    else:
        check = partial(audit, chip=known, against=against)
    answers = [_run_check(check, name) for name in names]
    if html is not None:
        if len(answers) != 1:
            raise click.UsageError(f"--html is a page for one report, got {len(answers)}")
        if not html.lower().endswith((".html", ".svg", ".txt")):
            raise click.UsageError(f"--html {html}: expected a name that ends in .html")
        save_picture(answers[0], html)
    data = [report.to_json() for report in answers]
    result = data[0] if len(data) == 1 else {"reports": data}
    code = ExitCode.OK if all(report.clean for report in answers) else ExitCode.NO
    return Answer(lambda: "\n\n".join([format_report(report, notes) for report in answers]), result, code)


def _trace_check(chip: Any, source: str, target: str, op: str) -> Callable[[str], AuditReport]:
    """Return the check of a trace against the plan of a reshard."""
    from .trace_audit import audit_noc_trace

    move = parse_move(source, target, SpecOptions(chip=chip))
    refuse_options(move.overridden, "where --source states it")
    assumed = list_assumptions(move.before, move.stated | frozenset(() if chip is None else ("chip",)))

    def check(name: str) -> AuditReport:
        report = audit_noc_trace(name, move.before, move.after, op)
        facts = (("assumed", describe_assumptions(assumed)),) if assumed else ()
        return replace(report, facts=(*report.facts, *facts))

    return check


def _run_check(check: Callable[[str], AuditReport], name: str) -> AuditReport:
    """Return the answer for one file; an unreadable file has its own exit status."""
    try:
        if name != STDIN:
            return check(name)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "stdin")
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return replace(check(str(path)), path=Path(STDIN))
    except (TilewrightError, OSError) as problem:
        reason = describe_error(problem).line
        short = name if len(name) < 120 else f"{name[:117]}..."
        named = reason if name in reason or short in reason else f"{short}: {reason}"
        raise CommandError(named, NOT_READABLE) from None


def format_report(report: AuditReport, notes: bool) -> str:
    """Return a `report` as text for the terminal, with or without `notes`; the first line has the verdict's color."""
    first, *rest = report.format(notes, table_width()).splitlines()
    return "\n".join([click.style(first, fg="green" if report.clean else "red", bold=True), *rest])
