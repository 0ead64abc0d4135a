# SPDX-License-Identifier: Apache-2.0
"""The output of a verb: answers as text or JSON, errors with an exit status, progress, pictures."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from textwrap import fill
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from .._text import color_setting, format_bytes
from ..errors import FileFormatError, TilewrightError, UnreachableError
from ..findings import plain_data

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EEXIST, errno.EFBIG, errno.ENOTEMPTY}
_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check the permissions",
    errno.EEXIST: "choose another path, or --force where the verb has it",
    errno.EISDIR: "name a file in it",
    errno.ENOSPC: "free some space, or write to another disk",
}


class ExitCode(IntEnum):
    """The exit status of the command, for every verb.

    >>> ExitCode.NO.value, ExitCode.NO.meaning
    (1, 'done, and the answer is no: a difference, a failed check, no fit')
    """

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

    OK = 0, "done; where a question was asked, the answer is yes"
    NO = 1, "done, and the answer is no: a difference, a failed check, no fit"
    USAGE = 2, "the request is wrong: an option, a value, an illegal placement"
    INPUT = 3, "a file cannot be read: missing, damaged, or of an unknown format"
    OUTPUT = 4, "a file cannot be written: it exists, disk full, no permission"
    MISSING = 5, "a package or program that is needed is not installed"
    BUG = 70, "a bug in tilewright: please report it, with what --debug prints"
    INTERRUPTED = 130, "interrupted with Ctrl-C; no file is half-written"
    BROKEN_PIPE = 141, "output pipe closed"


class CommandError(click.ClickException):
    """An error of the command line itself, with its exit status.

    >>> CommandError("out/ is not empty; use --force", ExitCode.OUTPUT).exit_code
    <ExitCode.OUTPUT: 4>
    """

    def __init__(self, message: str, exit_code: int = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.__dict__["exit_code"] = exit_code  # click declares it for the class


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An exception as the user sees it: its kind, one line, and the exit status.

    >>> describe_error(FileNotFoundError(2, "No such file or directory", "model.safetensors")).line
    'model.safetensors: no such file or directory; check the path'
    """

    kind: str
    line: str
    exit_code: int


MAX_LINE = 2000  # characters of an error message


def describe_error(problem: BaseException) -> ErrorReport:
    """Return the message and exit status of an exception.

    >>> from tilewright import MemoryConfigError
    >>> describe_error(MemoryConfigError("shards of 25 rows; use 32")).exit_code
    <ExitCode.USAGE: 2>
    """
    line = " ".join([part.strip() for part in _message(problem).splitlines() if part.strip()])
    if len(line) > MAX_LINE:  # a message may quote a layout of thousands of modes
        line = f"{line[: MAX_LINE // 2]} ... {line[-MAX_LINE // 2 :]}"
    return ErrorReport(type(problem).__name__, line or "no reason was given", _exit_code(problem))


def _message(problem: BaseException) -> str:
    if isinstance(problem, click.UsageError):
        where = problem.ctx.command_path if problem.ctx is not None else "tilewright"
        message = problem.format_message().rstrip(".")
        return f"{message} See {where} --help" if message.endswith("?") else f"{message}; see {where} --help"
    if isinstance(problem, click.ClickException):
        return problem.format_message()
    if isinstance(problem, OSError) and problem.strerror:
        prefix = f"{problem.filename}: " if problem.filename is not None else ""
        reason = problem.strerror[:1].lower() + problem.strerror[1:]
        remedy = f"; {_REMEDIES[problem.errno]}" if problem.errno in _REMEDIES else ""
        return f"{prefix}{reason}{remedy}"
    if isinstance(problem, ModuleNotFoundError) and str(problem).startswith("No module named"):
        return f"{problem.name} is not installed; pip install {(problem.name or '').partition('.')[0]}"
    if isinstance(problem, MemoryError) and not _is_expected(problem):
        return f"not enough memory ({str(problem) or 'allocation failed'}); lower --memory"
    if _is_expected(problem):
        return str(problem)
    return f"tilewright failed: {type(problem).__name__}: {problem}; this is a bug, please report what --debug prints"


def _is_expected(problem: BaseException) -> bool:
    return isinstance(problem, (TilewrightError, OSError, ModuleNotFoundError))


def _exit_code(problem: BaseException) -> int:
    if isinstance(problem, click.ClickException):
        return problem.exit_code
    if isinstance(problem, (FileFormatError, UnreachableError)):
        return ExitCode.INPUT
    if isinstance(problem, TilewrightError):
        return ExitCode.USAGE
    if isinstance(problem, OSError):
        return ExitCode.OUTPUT if problem.errno in _NOT_WRITTEN else ExitCode.INPUT
    if isinstance(problem, ModuleNotFoundError):
        return ExitCode.MISSING
    return ExitCode.USAGE if isinstance(problem, MemoryError) else ExitCode.BUG


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a verb: the text for people, the data for programs, and the exit status.

    `text` and `data` may be functions, so that nothing is made for people when a program asked, and the other way.

    >>> Answer("fits", {"fits": True}).exit_code
    <ExitCode.OK: 0>
    """

    text: str | Callable[[], str]
    data: Any  # JSON data, or a function that returns it
    exit_code: int = ExitCode.OK


@dataclass(slots=True)
class Console:
    """How a command prints: as JSON or text, with or without tracebacks and colors.

    >>> Console(json=True).json
    True
    """

    json: bool = False
    debug: bool = False
    owns_process: bool = False  # nothing comes after the command
    color: bool | None = field(default_factory=color_setting)

    @classmethod
    def current(cls) -> Console:
        """Return the console of the running command, or a plain one outside any.

        >>> Console.current().json
        False
        """
        context = click.get_current_context(silent=True)
        console = context.find_object(cls) if context is not None else None
        return console if console is not None else cls()

    def print_answer(self, answer: Answer) -> None:
        """Print an answer, as text or as one line of JSON.

        >>> Console(json=True).print_answer(Answer("yes", {"fits": True}))
        {"fits": true}
        """
        if self.json:
            click.echo(to_json(answer.data() if callable(answer.data) else answer.data))
            return
        text = answer.text if isinstance(answer.text, str) else answer.text()
        if text:
            click.echo(text, color=self.color)

    def print_event(self, event: str, **data: Any) -> None:
        """Print an event as one line of JSON; nothing is printed in text mode.

        >>> Console(json=True).print_event("tensor", name="wte")
        {"event": "tensor", "name": "wte"}
        """
        if self.json:
            click.echo(to_json({"event": event, **data}))

    def print_note(self, line: str) -> None:
        """Print a line on stderr."""
        Waiting.clear()
        click.echo(line, err=True, color=self.color)


def to_json(data: object) -> str:
    """Return `data` as one line of JSON; infinities and NaN become strings.

    >>> to_json({"shape": (2, 3), "worst": float("inf")})
    '{"shape": [2, 3], "worst": "inf"}'
    """
    return json.dumps(plain_data(data), ensure_ascii=False, allow_nan=False)


def is_terminal() -> bool:
    """Return whether stderr is a terminal that can redraw a line."""
    return bool(getattr(sys.stderr, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


def table_width() -> int | None:
    """Return the columns of the terminal that a table is printed on; None in a pipe, where nothing is shortened.

    >>> table_width() in (None, shutil.get_terminal_size().columns)
    True
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def color_names(text: str) -> str:
    """Return `text`, lines of names and descriptions in two columns, with the names in color.

    >>> color_names("tile      (5, 0)")
    '\\x1b[36mtile     \\x1b[0m (5, 0)'
    """
    return re.sub(r"(?m)^\S.{,8}(?= )", lambda name: click.style(name[0], fg="cyan"), text)


def wrap_lines(text: str, width: int | None = 80) -> str:
    """Return `text` with lines longer than `width` wrapped and indented; without a width, as it is.

    >>> print(wrap_lines("  one two three", 10))
      one two
        three
    """
    return text if width is None else "\n".join(_wrap_line(line, width) for line in text.splitlines())


def _wrap_line(line: str, width: int) -> str:
    if len(click.unstyle(line)) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    content = line.strip().replace(" %", "\u00a0%")  # a number and its unit stay together
    lines = fill(content, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)
    return lines.replace("\u00a0%", " %")


class Waiting:
    """Prints on a terminal which command works and for how long, after two seconds without other progress.

    Args:
        text: the verb and its arguments.

    >>> with Waiting("match a.safetensors b.safetensors"):
    ...     pass
    """

    bars = 0  # that show the progress themselves
    is_shown = False

    def __init__(self, text: str) -> None:
        self._text = "".join([c if c.isprintable() else " " for c in text])
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Waiting:
        if is_terminal() and not Console.current().json:
            self._thread.start()
        return self

    def __exit__(self, error_type: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        started = time.monotonic()
        while not self._ended.wait(1 if Waiting.is_shown else _QUIET_SECONDS):
            Waiting.clear()
            if not Waiting.bars:
                clock = f", {_format_clock(time.monotonic() - started)}"
                width = shutil.get_terminal_size().columns - len(clock) - 1
                Waiting.is_shown = True
                print(f"{self._text[:width]}{clock}", end="", file=sys.stderr, flush=True)
        Waiting.clear()

    @staticmethod
    def clear() -> None:
        """Clear the line, before something else is printed."""
        if Waiting.is_shown:
            Waiting.is_shown = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


_QUIET_SECONDS = 2.0  # before the line of a command appears
_LINE_SECONDS = 5.0  # between plain lines
_REDRAW_SECONDS = 0.1


class Progress:
    """Reports how much of some work is done.

    Args:
        label: the activity, such as "converting".
        unit: the unit of the count, such as "bytes" or "tiles".
        quiet: report nothing; by default, if the command prints JSON.

    >>> with Progress("converting", "tensors", quiet=True) as progress:
    ...     progress.update(40, 100)
    """

    def __init__(self, label: str, unit: str = "bytes", quiet: bool | None = None) -> None:
        self.label, self.unit = label, unit
        self.quiet = Console.current().json if quiet is None else quiet
        self._bar: RichProgress | None = None
        self._started = self._reported = time.monotonic()

    def __enter__(self) -> Progress:
        if not self.quiet and is_terminal():
            self._bar = _make_bar(self.unit, Console.current().color)
        return self

    def __exit__(self, error_type: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
            Waiting.bars -= bool(self._bar.tasks)

    def update(self, done: int, total: int, detail: str = "") -> None:
        """Report that `done` of `total` units are done, if it is time to report again; `detail` is added to the bar."""
        now = time.monotonic()
        wait = _LINE_SECONDS if self._bar is None else _REDRAW_SECONDS
        if self.quiet or (now - self._reported < wait and not (self._bar is not None and done >= total)):
            return
        self._reported = now
        if self._bar is None:
            print(self.line(done, total, now), file=sys.stderr, flush=True)
            return
        if not self._bar.tasks:
            Waiting.bars += 1
            Waiting.clear()
            self._bar.add_task(self.label, total=total, detail="")
            self._bar.start()
        self._bar.update(self._bar.tasks[0].id, completed=done, total=total, detail=detail)

    def line(self, done: int, total: int, now: float) -> str:
        """Return one plain line: the share done, the rate, and the time left at that rate."""
        share = done / total if total else 1.0
        rate = done / max(now - self._started, 1e-9)
        speed = f"{format_bytes(int(rate))}/s" if self.unit == "bytes" else f"{rate:.3g} {self.unit}/s"
        left = f", {_format_clock((total - done) / rate)} left" if rate else ""
        return f"{self.label} {100 * share:3.0f} %, {speed}{left}"


def _format_clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _make_bar(unit: str, color: bool | None) -> RichProgress | None:
    """Return a bar by rich, or None where rich is not installed."""
    try:
        from rich.console import Console as RichConsole
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as RichProgress
    except ModuleNotFoundError:
        return None
    amounts = (DownloadColumn(binary_units=True), TransferSpeedColumn()) if unit == "bytes" else (MofNCompleteColumn(),)
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        *amounts,
        TimeRemainingColumn(),
        console=RichConsole(stderr=True, no_color=color is False),
        transient=True,
    )


def shorten(text: str, most: int = 60) -> str:
    """Return a text that fits into a message: its beginning, if it is longer than `most` characters.

    >>> shorten("(4,8):(8,1)"), shorten("TensorSpec(logical_shape=Shape([64, 64]))", 20)
    ('(4,8):(8,1)', 'TensorSpec(logical_s...')
    """
    return text if len(text) <= most else f"{text[:most]}..."


def check_input_path(text: str) -> None:
    """Raise if `text` looks like the path of a file or directory of tensors, by its ending, and there is none.

    >>> check_input_path("4x60x90")
    """
    if "." not in text and not text.endswith(os.sep):
        return
    from ..files import SUFFIXES

    if text.endswith((*SUFFIXES, os.sep)) and "://" not in text and not os.path.exists(text):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)


def check_output_path(path: str | Path, replace: bool = True) -> Path:
    """Return the path of a file to be written, if its folder exists and nothing is overwritten unasked.

    >>> check_output_path("picture.svg").name
    'picture.svg'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise CommandError(f"{target}: the folder {target.parent} does not exist; create it first", ExitCode.OUTPUT)
    if not replace and target.exists():
        raise CommandError(f"{target} exists; choose another target, or --force to replace it", ExitCode.OUTPUT)
    return target


def save_picture(subject: object, path: str | Path) -> None:
    """Save a picture of `subject`; the suffix of `path` chooses the kind of file.

    >>> import tempfile
    >>> from tilewright import row_major
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(row_major(2, 2), f"{folder}/layout.svg")
    """
    from ..views import Animation, save, scene_of

    target = check_output_path(path)
    try:
        save(subject if isinstance(subject, Animation) else scene_of(subject), target)
    except OSError as problem:
        raise CommandError(describe_error(problem).line, ExitCode.OUTPUT) from None
    except ValueError as problem:
        if isinstance(problem, TilewrightError):
            raise
        raise CommandError(str(problem)) from None
