# SPDX-License-Identifier: Apache-2.0
"""Errors of the command line: one message with a remedy, and an exit status, for every exception."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import IntEnum

import click

from ..errors import FileFormatError, TilewrightError

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


def describe_error(problem: BaseException) -> ErrorReport:
    """Return the message and exit status of an exception.

    >>> from tilewright import MemoryConfigError
    >>> describe_error(MemoryConfigError("shards of 25 rows; use 32")).exit_code
    <ExitCode.USAGE: 2>
    """
    return ErrorReport(type(problem).__name__, _join_lines(_message(problem)), _exit_code(problem))


def _message(problem: BaseException) -> str:
    if isinstance(problem, click.UsageError):
        where = problem.ctx.command_path if problem.ctx is not None else "tilewright"
        return f"{problem.format_message().rstrip('.')}; see {where} --help"
    if isinstance(problem, click.ClickException):
        return problem.format_message()
    if isinstance(problem, OSError) and problem.strerror:
        named = f"{problem.filename}: " if problem.filename is not None else ""
        reason = problem.strerror[:1].lower() + problem.strerror[1:]
        remedy = f"; {_REMEDIES[problem.errno]}" if problem.errno in _REMEDIES else ""
        return f"{named}{reason}{remedy}"
    if isinstance(problem, ModuleNotFoundError) and str(problem).startswith("No module named"):
        return f"{problem.name} is not installed; pip install {(problem.name or '').partition('.')[0]}"
    if isinstance(problem, MemoryError) and not _is_expected(problem):
        return f"not enough memory ({str(problem) or 'allocation failed'}); lower --memory"
    if _is_expected(problem):
        return str(problem)
    return f"tilewright failed: {type(problem).__name__}: {problem}; this is a bug, please report what --debug prints"


def _join_lines(text: str) -> str:
    """Return a message as one line."""
    return " ".join(part.strip() for part in text.splitlines() if part.strip()) or "no reason was given"


def _is_expected(problem: BaseException) -> bool:
    return isinstance(problem, (TilewrightError, OSError, ModuleNotFoundError))


def _exit_code(problem: BaseException) -> int:
    if isinstance(problem, click.ClickException):
        return problem.exit_code
    if isinstance(problem, FileFormatError):
        return ExitCode.INPUT
    if isinstance(problem, TilewrightError):
        return ExitCode.USAGE
    if isinstance(problem, OSError):
        return ExitCode.OUTPUT if problem.errno in _NOT_WRITTEN else ExitCode.INPUT
    if isinstance(problem, ModuleNotFoundError):
        return ExitCode.MISSING
    return ExitCode.USAGE if isinstance(problem, MemoryError) else ExitCode.BUG
