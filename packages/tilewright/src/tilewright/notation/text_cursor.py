# SPDX-License-Identifier: Apache-2.0
"""`TextCursor`: reads a text of another system, and says at which character it is not as expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from ..errors import FileFormatError

_Item = TypeVar("_Item")

MAX_INTEGER = 2**63 - 1
MAX_RANK = 64  # extents of a shape, in every notation

_SPACE = re.compile(r"\s*")
_INTEGER = re.compile(r"\d{1,19}(?!\d)", re.ASCII)
_EXTENT = re.compile(r"(\d{1,19}|\?)\s*x\s*", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING, _CLOSING = "([{<", ")]}>"
_SHOWN = 24  # characters of the text in a message


class TextCursor:
    """A position in a `text`, which messages call `name`. White space before whatever is read does not matter.

    >>> cursor = TextCursor("Shape([1, 32])", "a shape")
    >>> cursor.accept("Shape("), cursor.integers("[", "]"), cursor.accept(")"), cursor.at_end()
    (True, (1, 32), True, True)
    >>> try:
    ...     TextCursor("Shape(1)", "a shape").expect("Tile")
    ... except FileFormatError as problem:
    ...     print(problem)
    a shape: expected 'Tile' at character 1, got 'Shape(1)'
    """

    __slots__ = ("at", "name", "text")

    def __init__(self, text: str, name: str, at: int = 0) -> None:
        self.text = text
        self.name = name
        self.at = at  # of the next character

    def skip_space(self) -> int:
        """Move past white space, and return the position.

        >>> TextCursor("  7", "a number").skip_space()
        2
        """
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def at_end(self) -> bool:
        """Return whether nothing but white space is left.

        >>> TextCursor("  ", "a number").at_end()
        True
        """
        return self.skip_space() == len(self.text)

    def peek(self, literal: str) -> bool:
        """Return whether `literal` comes next.

        >>> TextCursor(" [7]", "a list").peek("[")
        True
        """
        return self.text.startswith(literal, self.skip_space())

    def accept(self, literal: str) -> bool:
        """Move past `literal` if it comes next, and return whether it did.

        >>> TextCursor("[7]", "a list").accept("(")
        False
        """
        here = self.peek(literal)
        self.at += len(literal) * here
        return here

    def expect(self, literal: str) -> None:
        """Move past `literal`, or raise.

        >>> TextCursor("[7]", "a list").expect("[")
        """
        if not self.accept(literal):
            self.fail(repr(literal))

    def expect_end(self) -> None:
        """Raise if anything but white space is left.

        >>> TextCursor("  ", "a list").expect_end()
        """
        if not self.at_end():
            self.fail("the end")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a `pattern` that comes next, and move past it; or None.

        >>> TextCursor(" d12 + 1", "a map").match(re.compile(r"d(\\d+)"))[1]
        '12'
        """
        found = pattern.match(self.text, self.skip_space())
        if found:
            self.at = found.end()
        return found

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Return the text that matches `pattern`, or raise, with `what` as what was expected.

        >>> TextCursor(" dram>", "a memory").take(re.compile(r"\\w+"), "a name")
        'dram'
        """
        found = self.match(pattern)
        return found[0] if found else self.fail(what)

    def integer(self, what: str = "an integer", maximum: int = MAX_INTEGER) -> int:
        """Return the integer that comes next, from 0 to `maximum`; `what` is its name in messages.

        >>> TextCursor("32x64", "a shape").integer()
        32
        """
        start = self.skip_space()
        found = self.match(_INTEGER)
        if not found or int(found[0]) > maximum:
            self.at = start
            self.fail(f"{what} of at most {maximum}" if found else what)
        return int(found[0])

    def integers(self, opening: str, closing: str) -> tuple[int, ...]:
        """Return integers between an `opening` and a `closing` bracket, with commas between them.

        >>> TextCursor("{32, 16}", "a tile").integers("{", "}")
        (32, 16)
        """
        self.expect(opening)
        return tuple(self.items(closing, self.integer))

    def items(
        self, closing: str, read: Callable[[], _Item], most: int = MAX_RANK, is_python: bool = False
    ) -> list[_Item]:
        """Return what `read` returns, again and again up to a `closing` bracket, with commas between, `most` times.

        `is_python` allows a comma after the last one, as in (128,).

        >>> cursor = TextCursor("128,)", "a tile")
        >>> cursor.items(")", cursor.integer, is_python=True)
        [128]
        """
        values: list[_Item] = []
        while not self.accept(closing):
            if values:
                self.expect(",")
                if is_python and self.accept(closing):
                    break
            if len(values) == most:
                self.fail(f"at most {most} items")
            values.append(read())
        return values

    def signed(self) -> int:
        """Return the integer that comes next, which may be negative.

        >>> TextCursor("-3", "a stride").signed()
        -3
        """
        return -self.integer() if self.accept("-") else self.integer()

    def extents(self) -> tuple[int | None, ...]:
        """Return the extents of a type, each followed by an x, as in 32x?xf32; None is one that is not known.

        >>> TextCursor("32x?xf32", "a tensor type").extents()
        (32, None)
        """
        extents: list[int | None] = []
        while found := self.match(_EXTENT):
            if len(extents) == MAX_RANK:
                self.fail(f"at most {MAX_RANK} extents")
            extents.append(None if found[1] == "?" else int(found[1]))
        return tuple(extents)

    def raw(self) -> str:
        """Return the text up to the next comma or closing bracket that is not inside brackets of its own.

        Brackets in strings do not count, and neither does that of an arrow.

        >>> TextCursor("f(1, 2), 3)", "a call").raw()
        'f(1, 2)'
        """
        start, depth, at = self.skip_space(), 0, self.at
        while at < len(self.text):
            character = self.text[at]
            if character == '"':
                string = _STRING.match(self.text, at)
                at = string.end() - 1 if string else len(self.text) - 1
            elif character in _OPENING:
                depth += 1
            elif character in _CLOSING and not self.text.startswith("->", at - 1):
                depth -= 1
            if depth < 0 or (depth == 0 and character == ","):
                break
            at += 1
        self.at = at
        return self.text[start:at].rstrip()

    def fail(self, expected: str) -> NoReturn:
        """Raise an error that says what was `expected` at this character, and what is there.

        >>> try:
        ...     TextCursor("7", "a list").fail("'['")
        ... except FileFormatError as problem:
        ...     print(problem)
        a list: expected '[' at character 1, got '7'
        """
        start = self.skip_space()
        rest = self.text[start : start + _SHOWN]
        got = repr(rest) if rest else "the end of the text"
        raise FileFormatError(f"{self.name}: expected {expected} at character {start + 1}, got {got}")
