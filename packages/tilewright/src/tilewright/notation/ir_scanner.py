# SPDX-License-Identifier: Apache-2.0
"""`scan_ir`: the alias definitions and tensor types of MLIR text of any length, in a bounded amount of memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

MAX_TEXT = 1 << 16
"""Characters of a tensor type or an alias; a longer one, such as a constant, is passed over."""

_TOKEN = re.compile(r'"|//|\btensor\s*<|^[ \t]*(?P<alias>[#!][A-Za-z_][\w$]*)[ \t]*=', re.MULTILINE | re.ASCII)
_TAIL = 512  # characters that may be the beginning of a token
_STRING_STOP = re.compile(r'["\\]')
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TYPE_STOP = re.compile(r'->|//|["<>()\[\]{}%@^;]')  # neither values nor symbols are in a type
_SIMPLE_TYPE = re.compile(r"[\w ,#?*]{0,256}>", re.ASCII)
_OPERATION = re.compile(r'([a-z_]\w{0,63}\.[\w.$]{1,128})"[ \t]*\(', re.ASCII)
_ROLE = re.compile(r"->|:[ \t]*\(")
_ALIAS_STOP = re.compile(r'->|//|["<>()\[\]{}\n]')
_OPENING, _CLOSING = "<([{", ">)]}"
_SPLIT = re.compile(r"// -----[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IrItem:
    """An alias definition or a tensor type in IR: its text, and the line and column at which it starts, from 1.

    >>> item = next(scan_ir(["#a = #ttnn.buffer_type<l1>\\n"]))
    >>> item.kind, item.name, item.text, item.line, item.column
    ('alias', '#a', '#ttnn.buffer_type<l1>', 1, 1)
    """

    kind: Literal["alias", "tensor", "split"]  # split: what follows is a module of its own
    text: str
    line: int
    column: int
    name: str = ""  # of an alias, with its mark: #a for an attribute, !a for a type; of the operation of a tensor type
    is_result: bool = False  # whether a tensor type is that of a result of the operation


def scan_ir(chunks: Iterable[str]) -> Iterator[IrItem]:
    """Yield the alias definitions and tensor types of a text that comes in `chunks`, outside strings and comments.

    A tensor type has the name of the operation on whose line it is, if that is in quotes.

    >>> text = "#a = #ttnn.ttnn_layout<\\n  ...>\\n// tensor<1xf32>\\n%0 = f(%1) : tensor<8xf32, #a> -> tensor<f32>\\n"
    >>> [(item.kind, item.line, item.column) for item in scan_ir([text])]
    [('alias', 1, 1), ('tensor', 4, 14), ('tensor', 4, 35)]
    """
    window = _Window(iter(chunks))
    statement = _Statement(window)
    while True:
        found = _TOKEN.search(window.text, window.at)
        window.at = found.start() if found else max(window.at, len(window.text) - _TAIL)
        if len(window.text) - window.at < MAX_TEXT and window.fill():
            continue  # a token is looked at with all that may belong to it
        if found is None:
            return
        line, column = window.locate()
        window.at = found.end()
        if found[0] == '"':
            if operation := _OPERATION.match(window.text, window.at):
                statement.begin(operation[1], line)
            window.skip_string()
        elif found[0] == "//":
            if _SPLIT.match(window.text, found.start()):
                yield IrItem("split", "", line, column)
            window.skip_line()
        elif name := found["alias"]:
            text, window.at = _capture(window.text, window.at, _ALIAS_STOP)
            if text is not None:
                yield IrItem("alias", text.strip(), line, column + len(found[0]) - len(found[0].lstrip()), name)
        else:
            role = statement.role_at(found.start(), line)
            simple = _SIMPLE_TYPE.match(window.text, window.at)
            if simple:
                text, window.at = simple[0], simple.end()
            else:
                text, window.at = _capture(window.text, window.at, _TYPE_STOP)
            statement.skip_to(window.at)
            if text is not None:
                yield IrItem("tensor", f"tensor<{text}", line, column, *role)


class _Statement:
    """The operation on the line that is read, and whether its results were reached."""

    def __init__(self, window: _Window) -> None:
        self.window = window
        self.operation, self.line = "", 0
        self.is_result = False
        self._searched = 0  # counted from the start of the text

    def begin(self, operation: str, line: int) -> None:
        self.operation, self.line, self.is_result = operation, line, False
        self.skip_to(self.window.at)

    def skip_to(self, at: int) -> None:
        self._searched = self.window.forgotten + at

    def role_at(self, at: int, line: int) -> tuple[str, bool]:
        """Return the operation at a position, and whether its results are there: operands are in (...), then ->."""
        if line != self.line:
            return "", False
        for found in _ROLE.finditer(self.window.text, max(0, self._searched - self.window.forgotten), at):
            self.is_result = found[0] == "->"
        self.skip_to(at)
        return self.operation, self.is_result


class _Window:
    """The part of a long text that is in memory; what lies before `at` is forgotten, less one character.

    That character is what tells whether a line starts at `at`.
    """

    def __init__(self, chunks: Iterator[str]) -> None:
        self.chunks = chunks
        self.text = "\n"
        self.at = 1
        self.forgotten = 0  # characters
        self._marked, self._line, self._line_start = 1, 1, 1  # up to where lines are counted

    def fill(self) -> bool:
        """Add a chunk, and return whether there was one."""
        chunk = next(self.chunks, None)
        if chunk is None:
            return False
        self.locate()
        before = self.at - 1
        self.text = self.text[before:] + chunk
        self.at = self._marked = 1
        self._line_start -= before
        self.forgotten += before
        return True

    def locate(self) -> tuple[int, int]:
        """Return the line and column at which the window is."""
        self._line += self.text.count("\n", self._marked, self.at)
        last = self.text.rfind("\n", self._marked, self.at)
        if last >= 0:
            self._line_start = last + 1
        self._marked = self.at
        return self._line, self.at - self._line_start + 1

    def skip_string(self) -> None:
        """Move past a string, whose opening quotation mark was read."""
        while True:
            found = _STRING_STOP.search(self.text, self.at)
            self.at = found.end() if found else len(self.text)
            if found and found[0] == '"':
                return
            if self.at == len(self.text) and not self.fill():
                return
            self.at += found is not None  # past the character after a backslash

    def skip_line(self) -> None:
        """Move to the end of the line."""
        while (end := self.text.find("\n", self.at)) < 0:
            self.at = len(self.text)
            if not self.fill():
                return
        self.at = end


def _capture(text: str, at: int, stop: re.Pattern[str]) -> tuple[str | None, int]:
    """Return the text of a type up to its closing bracket, or of an alias up to the end of its line, and its end.

    Comments are left out. Without such an end the text is None, and the end is as far as was looked.
    """
    limit, start, parts = min(len(text), at + MAX_TEXT), at, []
    is_alias = stop is _ALIAS_STOP
    depth = 0 if is_alias else 1
    while found := stop.search(text, at, limit):
        sign, at = found[0], found.end()
        if sign == '"':
            string = _STRING.match(text, found.start(), limit)
            if string is None:
                return None, found.start()
            at = string.end()
        elif sign == "//":
            parts.append(text[start : found.start()])
            start = at = text.find("\n", at, limit)
            if at < 0:
                return None, found.start()
        elif sign == "\n":
            value = "".join([*parts, text[start : at - 1]])
            if depth == 0 and value.strip():
                return value, at - 1
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
            if depth < 0:
                return None, at
            if depth == 0 and not is_alias:
                return "".join([*parts, text[start:at]]), at
        elif sign != "->":
            return None, at
    is_last_line = is_alias and depth == 0 and limit == len(text)
    return ("".join([*parts, text[start:limit]]) if is_last_line else None), limit if is_last_line else at
