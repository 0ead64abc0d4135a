# SPDX-License-Identifier: Apache-2.0
"""The command `tilewright`: its verbs, imported when called, and the one place where errors become messages."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from .._text import suggest
from ..plugins import list_plugins, load_plugin
from ..version import __version__
from .console import Answer, CommandError, Console, ExitCode, Waiting, describe_error, shorten, to_json

NAME = "tilewright"


class SectionedOption(click.Option):
    """An option that --help lists under a section heading."""

    def __init__(self, *args: Any, section: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


def option_in(section: str) -> Callable[..., Callable[..., Any]]:
    """Return `click.option` for options that --help lists under a `section` heading."""
    return lambda *names, **settings: click.option(*names, cls=SectionedOption, section=section, **settings)


class Verb(click.Command):
    """A command that prints the `Answer` it returns, as text or with --json as JSON, and exits with its status."""

    def __init__(
        self, *args: Any, speaks: bool = False, writes_unless: tuple[str, ...] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.speaks = speaks  # prints while it works
        self.writes_unless = writes_unless  # options without which it writes, or runs a program; None: it does not
        add_flag("json", "Answer in JSON.")(self)
        schema: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _print_schema}
        click.option("--json-schema", help="Print the schema of answers in JSON.", **schema)(self)
        add_flag("debug", "Show tracebacks of errors, and what the library logs.")(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an option that takes one value is given once."""
        try:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
        except click.BadOptionUsage as problem:  # which click raises without the verb
            problem.ctx = ctx
            raise
        for option in dict.fromkeys(order):
            has_value = isinstance(option, click.Option) and not option.multiple and not option.is_flag
            if has_value and order.count(option) > 1:
                ctx.fail(f"{option.opts[0]} is given {order.count(option)} times; give it once")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, grouped by section."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; print its answer and exit with its status."""
        with Waiting(" ".join([str(ctx.info_name), *_list_words(ctx)])) if not self.speaks else nullcontext():
            answer = super().invoke(ctx)
        if isinstance(answer, Answer):
            ctx.ensure_object(Console).print_answer(answer)
            ctx.exit(answer.exit_code)
        return answer


def _print_schema(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Print the schema of a verb's answers, which lies beside the module that defines the verb."""
    if not value:
        return
    from importlib.resources import files

    module = sys.modules[ctx.command.callback.__module__]
    schema = files(str(module.__package__)).joinpath("schemas", f"{ctx.command.name}.json")
    if not schema.is_file():
        raise CommandError(f"{ctx.command.name} has no schema of its answers", ExitCode.MISSING)
    click.echo(schema.read_text("utf-8"), nl=False)
    ctx.exit()


def _list_words(ctx: click.Context) -> list[str]:
    """Return the arguments of a command that are not options, as they were typed."""
    names = [str(parameter.name) for parameter in ctx.command.params if isinstance(parameter, click.Argument)]
    values = [ctx.params.get(name) for name in names]
    lists = [value if isinstance(value, tuple) else (value,) for value in values]
    return [shorten(str(word)) for words in lists for word in words if word is not None]


def add_flag(name: str, help_text: str) -> Callable[[Any], Any]:
    """Return a decorator that adds a flag, such as --json, which sets the attribute of that name on the console.

    >>> [option.name for option in add_flag("json", "Answer in JSON.")(click.Command("greet")).params]
    ['json']
    """

    def set_on_console(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(ctx.ensure_object(Console), name, True)

    return click.option(f"--{name}", is_flag=True, expose_value=False, callback=set_on_console, help=help_text)


def refuse_options(names: Iterable[str], where: str) -> None:
    """Raise if an option without effect was given to the running verb, in the words of `where`.

    >>> with click.Context(click.Command("show")):
    ...     refuse_options(["dtype"], "on a layout")
    """
    reject_options(names, f"has no effect {where}")


def reject_options(names: Iterable[str], problem: str) -> None:
    """Raise if one of some options was given to the running verb, with the `problem` that it has.

    >>> with click.Context(click.Command("show")):
    ...     reject_options(["device"], "needs a file")
    """
    ctx, rejected = click.get_current_context(), frozenset(names)
    for option in ctx.command.params:
        typed = ctx.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE
        if option.name in rejected and typed:
            raise click.UsageError(f"{option.opts[0]} {problem}; remove it")


follow_links_option = click.option(
    "--follow-links", is_flag=True, help="Follow symbolic links that point outside the directory."
)


def verb(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Return a decorator that turns a function into the verb `name`.

    With `speaks=True` among the settings it prints while it works, so that no waiting line appears. A verb that writes
    files, or runs a program, declares `writes_unless=()`, or the options with which it does not; options of the types
    `FILE` and `FOLDER` need no declaration.

    >>> @verb("greet")
    ... def command() -> Answer:
    ...     "Say hello."
    ...     return Answer("hello", {"said": "hello"})
    >>> [option.opts[0] for option in command.params]
    ['--json', '--json-schema', '--debug']
    """
    return click.command(name, cls=Verb, **settings)


VERBS = {
    "convert": "Convert checkpoints to tiled files; can be resumed.",
    "prepare": "Write or check a model's weight cache for Tenstorrent cards.",
    "verify": "Check converted files against their manifest and source.",
    "inspect": "List the tensors of a file: sizes, padding; print a tile.",
    "diff": "Compare two files across formats and layouts.",
    "match": "Find which tensors are made of which; infer a recipe.",
    "explain": "Show where an element lives: tile, page, core, address.",
    "fit": "Check whether tensors fit a chip; suggest what would.",
    "reshard": "Plan a move between memories: traffic, kernels, time.",
    "audit": "Check reports of real runs: placements, memory, overlaps.",
    "conflicts": "Count bank conflicts of shared memory; find a remedy.",
    "rehearse": "Run a ttnn program on a mock card: memory, errors.",
    "translate": "Translate a layout between CuTe, XLA, Triton, MLIR ...",
    "show": "Draw layouts, tensors and memory as text, SVG or HTML.",
    "check": "Check recipes, rules and layouts in files.",
    "explore": "Open the explorer, an interactive page for placements.",
    "stream": "Run a compute over files larger than memory, tile by tile.",
    "run": "Run a Mojo program; check its kernels without a GPU.",
    "mcp": "Serve the verbs as tools for programs (MCP).",
    "doctor": "Report which engines work and what is missing.",
    "completion": "Print the completion script of a shell.",
}
"""Every verb with its line in --help; the module of that name, or a companion, defines its `command`."""

COMPANIONS = {"audit": "audit", "rehearse": "audit", "run": "mojo"}
"""Verbs of companions, and the extra of tilewright that installs each."""


class OutputClosed(Exception):  # noqa: N818  (nothing went wrong here)
    """The reader of standard output closed the pipe."""


class VerbGroup(click.Group):
    """The group of verbs: lists them without importing them, and turns errors into messages and exit statuses."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the table, then the verbs of plug-ins."""
        return list(_all_verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb of the library, or else of a plug-in, importing its module; None if there is none."""
        own = _import_verb(cmd_name) if cmd_name in VERBS else None
        command = own or load_plugin("verbs", cmd_name, click.Command)
        if command is None and cmd_name in VERBS:
            extra = COMPANIONS.get(cmd_name)
            remedy = f": pip install 'tilewright[{extra}]'" if extra else ""
            raise CommandError(f"the verb {cmd_name!r} is not installed{remedy}", ExitCode.MISSING)
        return command  # type: ignore[return-value]  # the plug-in's class is checked

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the verb that the arguments start with, or fail and suggest the closest one."""
        verb = args[0]
        if verb not in VERBS and not verb.startswith("-") and verb not in (verbs := _all_verbs()):
            ctx.fail(f"unknown verb {verb!r}; {suggest(verb, verbs)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(_all_verbs().items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the completions of a word: a verb, or an option of the program."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=line) for name, line in _all_verbs().items() if name.startswith(incomplete)]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of a command; if the pipe closes while --help is printed, raise `OutputClosed`."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            raise OutputClosed from None

    def invoke(self, ctx: click.Context) -> Any:
        """Return the result of the verb; a closed output pipe is raised as `OutputClosed` before click handles it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputClosed from None

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
        console = Console(owns_process=args is None)
        _escape_unencodable_output()
        if console.owns_process:
            gc.set_threshold(1_000_000, 20, 50)  # a process of one command frees little, and collects rarely
        _show_logs(_has_flag(args, "--debug"))
        try:
            status = super().main(args, NAME, complete_var, False, obj=console, **extra)
            sys.stdout.flush()
        except (OutputClosed, BrokenPipeError):
            _discard_stdout()
            status = ExitCode.BROKEN_PIPE
        except click.Abort:  # click's name for Ctrl-C
            click.echo(f"{NAME}: interrupted", err=True)
            status = ExitCode.INTERRUPTED
        except Exception as problem:
            status = _report(problem, console, _has_flag(args, "--debug"), _has_flag(args, "--json"))
        if console.owns_process and status == ExitCode.INTERRUPTED:
            sys.stderr.flush()
            os._exit(status)  # all is undone by now; to free millions of objects one by one takes long
        sys.exit(status if isinstance(status, int) else ExitCode.OK)


def _import_verb(name: str) -> click.Command | None:
    """Return the verb that a module of this package defines; None if there is no such module."""
    module = f"{__package__}.{name}"
    try:
        command: click.Command = import_module(module).command
    except ModuleNotFoundError as problem:
        if problem.name != module:
            raise
        return None
    return command


def _all_verbs() -> dict[str, str]:
    """Return every verb with its line in --help; a plug-in is listed without importing it."""
    plugins = {name: f"Plug-in: {entry.value.partition(':')[0]}." for name, entry in list_plugins("verbs").items()}
    return VERBS | {name: line for name, line in plugins.items() if name not in VERBS}


def _show_logs(debug: bool) -> None:
    """Print the library's log messages, such as repeated attempts, as notes on stderr."""
    log = logging.getLogger("tilewright")
    if not any(isinstance(handler, _NoteHandler) for handler in log.handlers):
        log.addHandler(_NoteHandler())
    log.setLevel(logging.DEBUG if debug else logging.WARNING)


class _NoteHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        Console.current().print_note(f"note: {record.getMessage()}")


def _report(problem: Exception, console: Console, debug: bool, as_json: bool) -> int:
    """Print an error and return its exit status."""
    if console.debug or debug:
        import traceback

        traceback.print_exception(problem)
    report = describe_error(problem)
    label = click.style("error:", fg="red", bold=True)
    click.echo(f"{NAME}: {label} {report.line}", err=True, color=console.color)
    if console.json or as_json:
        try:
            click.echo(to_json({"error": report.line, "kind": report.kind, "exit_code": int(report.exit_code)}))
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_stdout()
    return report.exit_code


def _has_flag(args: Sequence[str] | None, flag: str) -> bool:
    """Return whether a flag was given, even if parsing failed before reaching it."""
    return flag in (sys.argv[1:] if args is None else args)


def _escape_unencodable_output() -> None:
    """Print characters that the output encoding lacks as escapes, since file names may hold anything."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Point stdout at the null device, so that Python does not report the closed pipe when it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


def _exit_status_help() -> str:
    lines = (f"{status:>3}  {status.meaning}" for status in ExitCode)
    return "\b\nExit status:\n" + "\n".join(lines)


@click.group(
    NAME,
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    subcommand_metavar="VERB ...",
    epilog=_exit_status_help(),
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name=NAME)
@add_flag("json", "Answer in JSON.")
@add_flag("debug", "Show tracebacks of errors, and what the library logs.")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Where does this element live on a tiled machine, and how does it get there?

    Convert, check, compare and explain tiled tensors; no device and no torch needed. Every verb has --json and --help;
    text goes to stdout, progress and errors to stderr.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status.

    >>> try:
    ...     main(["--version"])
    ... except SystemExit as end:
    ...     print(end.code)
    tilewright, version 0.3.0
    0
    """
    program.main(args)
