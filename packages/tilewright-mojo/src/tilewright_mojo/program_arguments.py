# SPDX-License-Identifier: Apache-2.0
"""The input of a Mojo program: its arguments, `argv()`, and the names of `-D`, `get_defined_int["N"]()`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from tilewright.errors import FormatError
from tilewright.mojo import DType, MojoValue, brackets

PROGRAM_MARK = "mojo·program"  # a global of every program, under a name that none can spell
_NONE = ("mojo",)
_arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=_NONE)
_defines: ContextVar[Mapping[str, str]] = ContextVar("defines", default={})  # noqa: B039  (never changed)


@contextmanager
def start_with(arguments: Sequence[str], defines: Mapping[str, str]) -> Iterator[None]:
    """Give arguments and defined names to the program inside a `with` block; the first argument names the program.

    >>> with start_with(["a.mojo", "--fast"], {"N": "8"}):
    ...     argv()[1], get_defined_int["N", 4]()
    ('--fast', 8)
    """
    first, second = _arguments.set(tuple(arguments)), _defines.set(dict(defines))
    try:
        yield
    finally:
        _arguments.reset(first)
        _defines.reset(second)


def is_program_running() -> bool:
    """Return whether a Mojo program runs, rather than Python that uses Mojo's names.

    Functions of a program that has ended run when Python calls them, or when a value of it ends.

    >>> is_program_running()
    False
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and PROGRAM_MARK not in frame.f_globals:
        frame = frame.f_back
    return frame is not None or _arguments.get() is not _NONE


def argv() -> tuple[str, ...]:
    """Return the name of the program and its arguments.

    >>> len(argv()) >= 1
    True
    """
    return _arguments.get()


def _read_bool(text: str) -> bool:
    values = {"true": True, "1": True, "on": True, "": True, "false": False, "0": False, "off": False}
    return values[text.lower()]


def _lookup(read: Callable[[str], Any], what: str) -> brackets[Any]:
    @brackets
    def find(parameters: tuple[Any, ...], **named: Any) -> MojoValue:
        values = [*parameters, *named.values()]
        name, defaults = str(values[0]), values[1:]
        text = _defines.get().get(name)
        if text is None:
            if not defaults:
                raise FormatError(f"{name!r} is not defined and has no default; run the program with -D {name}=VALUE")
            return defaults[0]
        try:
            return read(text)
        except (ValueError, KeyError):
            raise FormatError(f"-D {name}={text} is not {what}") from None

    return find


get_defined_int = env_get_int = _lookup(lambda text: int(text, 0), "an integer")
get_defined_bool = env_get_bool = _lookup(_read_bool, "a bool: use true or false")
get_defined_string = env_get_string = _lookup(str, "a text")
get_defined_dtype = env_get_dtype = _lookup(DType.of, "a number type")
is_defined = brackets(lambda parameters: str(parameters[0]) in _defines.get())
