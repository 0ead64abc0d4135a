# SPDX-License-Identifier: Apache-2.0
"""What a verb prints: text for people, JSON for programs; colors only on a terminal."""

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

from .failures import ExitCode


def color_setting() -> bool | None:
    """Return False if NO_COLOR or a dumb terminal forbids colors, otherwise None: colors on a terminal only.

    >>> color_setting() in (None, False)
    True
    """
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if refused else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb returns: the text for people, the data for programs, and the exit status.

    `text` may be a function, so that nothing is written for people when a program asked.

    >>> Answer("fits", {"fits": True}).exit_code
    <ExitCode.OK: 0>
    """

    text: str | Callable[[], str]
    data: Any
    exit_code: int = ExitCode.OK


@dataclass(slots=True)
class Console:
    """How a command prints: as JSON or text, with or without tracebacks and colors.

    >>> Console(json=True).json
    True
    """

    json: bool = False
    debug: bool = False
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
            click.echo(to_json(answer.data))
            return
        text = answer.text if isinstance(answer.text, str) else answer.text()
        if text:
            click.echo(text, color=self.color)

    def print_event(self, kind: str, **data: Any) -> None:
        """Print an event as one line of JSON; nothing is printed in text mode.

        >>> Console(json=True).print_event("tensor", name="wte")
        {"event": "tensor", "name": "wte"}
        """
        if self.json:
            click.echo(to_json({"event": kind, **data}))

    def print_note(self, line: str) -> None:
        """Print a line on stderr."""
        click.echo(line, err=True, color=self.color)

    def show_status(self, line: str) -> None:
        """Show a line on a terminal until the next status replaces it (an empty one clears it)."""
        if is_terminal() and not self.json:
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)


def to_json(data: Any) -> str:
    """Return `data` as one line of JSON; infinities and NaN become strings.

    >>> to_json({"shape": (2, 3), "worst": float("inf")})
    '{"shape": [2, 3], "worst": "inf"}'
    """
    return json.dumps(to_plain_data(data), ensure_ascii=False, allow_nan=False)


def to_plain_data(data: Any) -> Any:
    """Return `data` converted to the types of JSON.

    >>> to_plain_data({("a", 1): {2.5, 2.5}})
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
        return to_plain_data(data.to_json())
    if isinstance(data, Mapping):
        return {_format_key(key): to_plain_data(value) for key, value in data.items()}
    if isinstance(data, (list, tuple, set, frozenset)):
        return [to_plain_data(value) for value in data]
    if hasattr(data, "tolist"):  # NumPy's arrays and scalars, without importing NumPy
        return to_plain_data(data.tolist())
    if is_dataclass(data) and not isinstance(data, type):
        return {part.name: to_plain_data(getattr(data, part.name)) for part in fields(data)}
    return str(data)


def _format_key(key: Any) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def is_terminal(stream: Any = None) -> bool:
    """Return whether a stream, by default stderr, is a terminal that can redraw a line.

    >>> import io
    >>> is_terminal(io.StringIO())
    False
    """
    target = sys.stderr if stream is None else stream
    return bool(getattr(target, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


def wrap_lines(text: str, width: int = 80) -> str:
    """Return `text` with lines longer than `width` wrapped and indented.

    >>> print(wrap_lines("  one two three", 10))
      one two
        three
    """
    return "\n".join(_wrap_line(line, width) for line in text.splitlines())


def _wrap_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    content = line.strip().replace(" %", "\u00a0%")  # a number and its unit stay together
    lines = fill(content, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)
    return lines.replace("\u00a0%", " %")
