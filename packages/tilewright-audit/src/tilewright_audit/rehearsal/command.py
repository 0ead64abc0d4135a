# SPDX-License-Identifier: Apache-2.0
"""The verb `tilewright rehearse`: run a ttnn program on a mock card, and see whether it fits."""

from __future__ import annotations

import click

from tilewright.cli import FILE, Answer, CommandError, ExitCode, save_picture, verb

from ..command import format_report


@verb("rehearse", speaks=True, writes_unless=(), context_settings={"ignore_unknown_options": True})
@click.argument("program", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
@click.option(
    "--for", "machine", required=True, metavar="NAME", help="Machine, such as N150, T3K or P150x4, or chip.toml."
)
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as for python -m.")
@click.option("--suggest", is_flag=True, help="Where it fails, try changes, and list the ones that ttnn accepts.")
@click.option("--limit", type=click.FloatRange(0, min_open=True), default=300.0, help="Seconds for a run. [300]")
@click.option("--python", metavar="FILE", help="The Python that has ttnn. [this one]")
@click.option("--output", is_flag=True, help="Show what the program prints, on standard error.")
@click.option("--html", type=FILE, help="Write a page: findings, L1 per core, L1 over the calls.")
@click.option("--notes/--no-notes", default=True, help="Also list possible improvements. [yes]")
def command(
    program: str,
    arguments: tuple[str, ...],
    machine: str,
    is_module: bool,
    suggest: bool,
    limit: float,
    python: str | None,
    output: bool,
    html: str | None,
    notes: bool,
) -> Answer:
    """Run a ttnn program on a mock card: does it fit, and if not, which line fails and why.

    The program runs twice, with your own ttnn (Linux x86-64, Python 3.10 or 3.12); kernels do not run, and all values
    are zeros. Options that are not known here go to the program, as does all after --.

    \b
    tilewright rehearse decoder.py --for N150
    tilewright rehearse decoder.py --for P150 --suggest --html decoder.html
    tilewright rehearse serve.py --users 32 --for T3K --json

    The exit status is 0 if the program runs to its end and fits, 1 if not, and 5 if there is no ttnn.
    """
    from .process import RehearsalError
    from .rehearsal import TtnnProgram, rehearse

    if html is not None and not html.lower().endswith((".html", ".svg", ".txt")):
        raise click.UsageError(f"--html {html}: expected a name that ends in .html")
    request = TtnnProgram(program, arguments, is_module, limit, output)
    try:
        report = rehearse(request, machine, python=python, suggest=suggest)
    except RehearsalError as problem:
        raise CommandError(str(problem), ExitCode.MISSING) from None
    if html is not None:
        save_picture(report, html)
    code = ExitCode.OK if report.clean else ExitCode.NO
    return Answer(lambda: format_report(report, notes), report.to_json(), code)
