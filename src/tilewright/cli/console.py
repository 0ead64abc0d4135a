# SPDX-License-Identifier: Apache-2.0
"""What a verb says: text for people, JSON for programs, progress on stderr; colours only on a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from textwrap import fill
from typing import Any

import click

from . import exit_codes


def colours_wanted() -> bool | None:
    """Return False where colours are refused (NO_COLOR, a dumb terminal), else None: only on a terminal.

    >>> colours_wanted() in (None, False)
    True
    """
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if refused else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb returns: the text for people, the data for programs, and the exit status.

    `text` may be a function, so that nothing is written for people when a program asked.

    >>> Answer("fits", {"fits": True}).exit_code
    0
    """

    text: str | Callable[[], str]
    data: Any
    exit_code: int = exit_codes.OK


@dataclass(slots=True)
class Console:
    """Where a verb speaks: whether it was asked for JSON, and for tracebacks.

    >>> Console(json=True).json
    True
    """

    json: bool = False
    debug: bool = False
    color: bool | None = field(default_factory=colours_wanted)

    @classmethod
    def current(cls) -> Console:
        """Return the console of the running command, or a plain one outside any.

        >>> Console.current().json
        False
        """
        context = click.get_current_context(silent=True)
        found = context.find_object(cls) if context is not None else None
        return found if found is not None else cls()

    def say(self, answer: Answer) -> None:
        """Print an answer, as text or as one line of JSON.

        >>> Console(json=True).say(Answer("yes", {"fits": True}))
        {"fits": true}
        """
        if self.json:
            click.echo(to_json(answer.data))
            return
        text = answer.text if isinstance(answer.text, str) else answer.text()
        if text:
            click.echo(text, color=self.color)

    def event(self, kind: str, **data: Any) -> None:
        """Print one line of JSON about something that happened; for people it is silent.

        >>> Console(json=True).event("tensor", name="wte")
        {"event": "tensor", "name": "wte"}
        """
        if self.json:
            click.echo(to_json({"event": kind, **data}))

    def note(self, line: str) -> None:
        """Print a line for people on stderr, where it disturbs no pipe."""
        click.echo(line, err=True, color=self.color)

    def passing_note(self, line: str) -> None:
        """Show a line on a terminal until the next one, or an empty one, takes its place; elsewhere be silent."""
        if is_terminal() and not self.json:
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)


def to_json(data: Any) -> str:
    """Return anything a verb answers with as one line of JSON; numbers that JSON lacks become strings.

    >>> to_json({"shape": (2, 3), "worst": float("inf")})
    '{"shape": [2, 3], "worst": "inf"}'
    """
    return json.dumps(plain(data), ensure_ascii=False, allow_nan=False)


def plain(data: Any) -> Any:
    """Return data made of nothing but what JSON knows.

    >>> plain({("a", 1): {2.5, 2.5}})
    {'a,1': [2.5]}
    """
    if data is None or isinstance(data, (bool, str)):
        return data
    if isinstance(data, Enum):
        return data.name.lower()
    if isinstance(data, int):
        return int(data)
    if isinstance(data, float):
        return float(data) if math.isfinite(data) else str(float(data))
    if hasattr(data, "to_json"):
        return plain(data.to_json())
    if isinstance(data, Mapping):
        return {_key(key): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple, set, frozenset)):
        return [plain(each) for each in data]
    if hasattr(data, "tolist"):  # NumPy's arrays and scalars, without importing NumPy
        return plain(data.tolist())
    if is_dataclass(data) and not isinstance(data, type):
        return {each.name: plain(getattr(data, each.name)) for each in fields(data)}
    return str(data)


def _key(key: Any) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def is_terminal(stream: Any = None) -> bool:
    """Return whether a stream, by default stderr, is a terminal that can redraw a line.

    >>> import io
    >>> is_terminal(io.StringIO())
    False
    """
    target = sys.stderr if stream is None else stream
    return bool(getattr(target, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


def wrapped(text: str, width: int = 80) -> str:
    """Return a text whose lines are no longer than a width, continued under themselves.

    >>> print(wrapped("  one two three", 10))
      one two
        three
    """
    return "\n".join(_folded(line, width) for line in text.splitlines())


def _folded(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    whole = line.strip().replace(" %", "\u00a0%")  # a number and its unit stay together
    under = indent + "  "
    found = fill(whole, width, initial_indent=indent, subsequent_indent=under, break_long_words=False)
    return found.replace("\u00a0%", " %")
