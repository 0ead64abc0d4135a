# SPDX-License-Identifier: Apache-2.0
"""`tilewright run`: a Mojo program, on the processor, kernels included."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

import click

from tilewright.cli import FILE, Answer, Console, ExitCode, verb


@verb("run", speaks=True, writes_unless=(), context_settings={"ignore_unknown_options": True})
@click.argument("file", metavar="FILE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
@click.option(
    "-D", "defines", multiple=True, metavar="NAME=VALUE", help="Define a name for get_defined_int and the like."
)
@click.option("-I", "paths", multiple=True, metavar="FOLDER", help="Look for imports here after the folder of FILE.")
@click.option("--check", is_flag=True, help="Report the defects of kernels, and the cost of their memory accesses.")
@click.option(
    "--picture",
    type=FILE,
    help="Draw the threads' accesses in the first kernel with errors, else in the first: .svg, .html. Implies --check.",
)
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    arguments: tuple[str, ...],
    defines: tuple[str, ...],
    paths: tuple[str, ...],
    check: bool,
    picture: str | None,
) -> Answer:
    """Run a Mojo program; `-` reads it from standard input.

    \b
    tilewright run matmul.mojo
    tilewright run -D SIZE=64 matmul.mojo --fast
    tilewright run -I library matmul.mojo
    tilewright run kernel.mojo --check
    tilewright run kernel.mojo --picture races.svg

    Arguments after FILE are passed to the program; use -- to pass options.
    Kernels run on a simulated GPU, which finds accesses out of bounds, data races and barriers that not all threads
    reach; with --check it continues after an error and prints a report of every launch.
    The exit status is 1 if the program fails, and 2 if it is not valid Mojo or uses what tilewright does not run.
    """
    from .language.support import describe_failure
    from .language.tokens import MojoSourceError
    from .running import run_collecting

    check = check or picture is not None
    as_json = bool(getattr(ctx.obj, "json", False))
    text: Any = sys.stdin.read() if file == "-" else None
    if Console.current().owns_process and picture is None:  # a picture is written afterwards
        from .fence import raise_fence

        modules = [folder for folder in sys.path if folder not in ("", os.getcwd())]
        raise_fence([*modules, *([] if file == "-" else [os.path.dirname(file) or "."]), *paths], limited=False)
    captured = io.StringIO()
    output: Any = contextlib.redirect_stdout(captured) if as_json else contextlib.nullcontext()
    with output:
        outcome = run_collecting(
            file if text is None else text, text is not None, arguments, parse_defines(defines), check, paths
        )
    problem = outcome.problem
    if isinstance(problem, (SystemExit, KeyboardInterrupt, BrokenPipeError)) or (
        problem is not None and not outcome.sources
    ):
        raise problem
    data: dict[str, Any] = {"file": file, "failed": problem is not None}
    data |= {"reports": [report.to_json() for report in outcome.reports]} if check else {}
    data |= {"output": captured.getvalue()} if as_json else {}
    if problem is not None:
        sys.stdout.flush()
        message = describe_failure(problem, outcome.sources)
        data["error"] = message
        click.echo(f"tilewright: {click.style('error:', fg='red', bold=True)} {message}", err=True)
    if outcome.is_idle:
        click.echo(f"tilewright: note: nothing ran: {file} has no function main; write 'def main():'", err=True)
    if picture is not None and outcome.reports:
        drawn = next((report for report in outcome.reports if not report.clean), outcome.reports[0])
        drawn.show(picture)
        data["picture"] = picture
    if picture is not None and not outcome.reports:
        click.echo(f"tilewright: note: {picture} is not written: the program launched no kernel", err=True)
    text = "\n\n".join(str(report) for report in outcome.reports) if check else ""
    clean = all(report.clean for report in outcome.reports) if check else True
    if isinstance(problem, MojoSourceError):
        return Answer(text, data, ExitCode.USAGE)
    return Answer(text, data, ExitCode.OK if problem is None and clean else ExitCode.NO)


def parse_defines(defines: tuple[str, ...]) -> dict[str, str]:
    """Return the names and values of -D; one without a value is defined, and true.

    >>> parse_defines(("N=8", "FAST"))
    {'N': '8', 'FAST': ''}
    """
    pairs = [text.partition("=") for text in defines]
    names = [name for name, _, _ in pairs]
    for name in names:
        if not name:
            raise click.UsageError("-D needs a name, as in -D SIZE=64")
        if names.count(name) > 1:
            raise click.UsageError(f"-D {name} is given {names.count(name)} times; give it once")
    return {name: value for name, _, value in pairs}
