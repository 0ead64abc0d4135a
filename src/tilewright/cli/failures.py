# SPDX-License-Identifier: Apache-2.0
"""From an exception to one line with the remedy, and to the exit status."""

from __future__ import annotations

import errno
from dataclasses import dataclass

import click

from ..errors import FileFormatError, TilewrightError
from . import exit_codes

_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EEXIST, errno.EFBIG, errno.ENOTEMPTY}
_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check the permissions",
    errno.EEXIST: "choose another path, or --force where the verb has it",
    errno.EISDIR: "name a file in it",
    errno.ENOSPC: "free some space, or write to another disk",
}


class Failure(click.ClickException):
    """An error of the command line itself, with the exit status it ends with.

    >>> Failure("out/ is not empty; use --force", exit_codes.OUTPUT).exit_code
    4
    """

    def __init__(self, message: str, exit_code: int = exit_codes.USAGE) -> None:
        super().__init__(message)
        self.__dict__["exit_code"] = exit_code  # click declares it for the class


@dataclass(frozen=True, slots=True)
class Told:
    """What is said about an exception: its kind, one line, and the exit status.

    >>> told(FileNotFoundError(2, "No such file or directory", "model.safetensors")).line
    'model.safetensors: no such file or directory; check the path'
    """

    kind: str
    line: str
    exit_code: int


def told(problem: BaseException) -> Told:
    """Return what to say about an exception.

    >>> from tilewright import MemoryConfigError
    >>> told(MemoryConfigError("shards of 25 rows; use 32")).exit_code
    2
    """
    return Told(type(problem).__name__, _one_line(_message(problem)), _exit_code(problem))


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
    if isinstance(problem, MemoryError) and not _is_foreseen(problem):
        return f"there is not enough memory ({str(problem) or 'it is used up'}); lower --memory, or ask for less"
    if _is_foreseen(problem):
        return str(problem)
    return f"tilewright failed: {type(problem).__name__}: {problem}; this is a bug, please report what --debug prints"


def _one_line(text: str) -> str:
    """Return a message on one line, whatever it was made of."""
    return " ".join(part.strip() for part in text.splitlines() if part.strip()) or "it gave no reason"


def _is_foreseen(problem: BaseException) -> bool:
    return isinstance(problem, (TilewrightError, OSError, ModuleNotFoundError))


def _exit_code(problem: BaseException) -> int:
    if isinstance(problem, click.ClickException):
        return problem.exit_code
    if isinstance(problem, FileFormatError):
        return exit_codes.INPUT
    if isinstance(problem, TilewrightError):
        return exit_codes.USAGE
    if isinstance(problem, OSError):
        return exit_codes.OUTPUT if problem.errno in _NOT_WRITTEN else exit_codes.INPUT
    if isinstance(problem, ModuleNotFoundError):
        return exit_codes.MISSING
    return exit_codes.USAGE if isinstance(problem, MemoryError) else exit_codes.BUG
