# SPDX-License-Identifier: Apache-2.0
"""The program: a group of verbs that are imported when called, and the one place where errors become lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from .. import __version__
from . import exit_codes
from .console import Console, to_json
from .failures import Failure, told
from .verb import asking
from .verbs import VERBS

NAME = "tilewright"


class ReaderGone(Exception):  # noqa: N818  (nothing went wrong here)
    """Whoever read the output of the program has gone away."""


class Program(click.Group):
    """The group of verbs: it lists them without importing them, and turns errors into lines and exit statuses."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb, importing its module; None if there is none of that name."""
        entry = VERBS.get(cmd_name)
        if entry is None:
            return None
        module = f"{__package__}.{entry.module}"
        try:
            command: click.Command = import_module(module).command
        except ModuleNotFoundError as problem:
            if problem.name != module:
                raise
            raise Failure(f"this build has no verb {cmd_name!r}", exit_codes.MISSING) from None
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the verb that the arguments start with, or say which one was probably meant."""
        given = args[0]
        if given not in VERBS and not given.startswith("-"):
            near = get_close_matches(given, VERBS, n=1)
            meant = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(VERBS)}"
            ctx.fail(f"there is no verb {given!r}; {meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, entry.line) for name, entry in VERBS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what an incomplete word could become: a verb, or an option of the program."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=each.line) for name, each in VERBS.items() if name.startswith(incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Return what the verb returns; click would end the program where it cannot write, and we want to know why."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the program and exit with its status; every error is one line on stderr."""
        if not standalone_mode:
            return super().main(args, NAME, complete_var, False, **extra)
        console = Console()
        _say_anything()
        try:
            status = super().main(args, NAME, complete_var, False, obj=console, **extra)
            sys.stdout.flush()
        except (ReaderGone, BrokenPipeError):
            _forget_output()
            status = exit_codes.BROKEN_PIPE
        except click.Abort:  # click's name for Ctrl-C
            click.echo(f"{NAME}: interrupted", err=True)
            status = exit_codes.INTERRUPTED
        except Exception as problem:
            status = _report(problem, console, _wants(args, "--debug"), _wants(args, "--json"))
        sys.exit(status if isinstance(status, int) else exit_codes.OK)


def _report(problem: Exception, console: Console, debug: bool, as_json: bool) -> int:
    """Return the exit status of an error, after saying it."""
    if console.debug or debug:
        import traceback

        traceback.print_exception(problem)
    said = told(problem)
    label = click.style("error:", fg="red", bold=True)
    click.echo(f"{NAME}: {label} {said.line}", err=True, color=console.color)
    if console.json or as_json:
        try:
            click.echo(to_json({"error": said.line, "kind": said.kind, "exit_code": said.exit_code}))
            sys.stdout.flush()
        except BrokenPipeError:
            _forget_output()
    return said.exit_code


def _wants(args: Sequence[str] | None, flag: str) -> bool:
    """Return whether a flag was given, even where the arguments could not be read as far as it."""
    return flag in (sys.argv[1:] if args is None else args)


def _say_anything() -> None:
    """Let names be printed that the encoding of the output lacks, escaped, as files may be called anything."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _forget_output() -> None:
    """Point stdout nowhere, so that the interpreter does not complain about the closed pipe when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _help_of_exit_codes() -> str:
    lines = (f"{status:>3}  {meaning}" for status, meaning in exit_codes.MEANINGS.items())
    return "\b\nExit status:\n" + "\n".join(lines)


@click.group(
    NAME,
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    subcommand_metavar="VERB ...",
    epilog=_help_of_exit_codes(),
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name=NAME)
@asking("json", "Answer in JSON.")
@asking("debug", "Show tracebacks of errors.")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Where does this element live on a tiled machine, and how does it get there?

    Convert, check, compare and explain tiled tensors: no device, no torch. Every verb has --json and --help; text goes
    to stdout, progress and errors to stderr.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status.

    >>> try:
    ...     main(["--version"])
    ... except SystemExit as end:
    ...     print(end.code)
    tilewright, version 0.1.0
    0
    """
    program.main(args)
