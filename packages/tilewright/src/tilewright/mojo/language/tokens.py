# SPDX-License-Identifier: Apache-2.0
"""Mojo source as tokens: names, numbers, strings, operators, and the indentation that makes blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from .problems import MojoSourceError, Source

Kind = Literal["name", "number", "string", "operator", "newline", "indent", "dedent", "end"]

LARGEST = 1_000_000  # characters of a program
DEEPEST = 50  # open brackets, or blocks inside each other
OPENING, CLOSING = "([{", ")]}"

_PATTERN = re.compile(
    r"""(?P<blank>[ \t\f]+|\\\r?\n|\#[^\n]*)
    |(?P<newline>\r?\n)
    |(?P<string>(?P<prefix>[rRtTfF]{0,2})(?P<quotes>\"\"\"|'''|"|'))
    |(?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+
        |(?:[0-9][0-9_]*)?\.[0-9][0-9_]*(?:[eE][+-]?[0-9_]+)?|[0-9][0-9_]*\.?(?:[eE][+-]?[0-9_]+)|[0-9][0-9_]*(?:\.(?![.\w]))?)
    |(?P<name>[^\W\d]\w*|`[^`\n]+`)
    |(?P<operator>\.\.\.|->|:=|\*\*=|//=|<<=|>>=|\*\*|//|<<|>>|<=|>=|==|!=|[-+*/%@&|^]=|[-+*/%@&|^~<>()\[\]{},:.=;])""",
    re.VERBOSE,
)


def words(text: str) -> frozenset[str]:
    """Return the words of a text: a set of names that is easy to read.

    >>> sorted(words("var let"))
    ['let', 'var']
    """
    return frozenset(text.split())


_OPERATORS = words("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift")
MOJO_METHODS = words(
    "__abs__ __as_int__ __await__ __bool__ __call__ __ceil__ __ceildiv__ __contains__ __copyinit__ __deinit__ __del__ "
    "__dict_literal__ __divmod__ __enter__ __eq__ __exit__ __exp__ __float__ __floor__ __fspath__ __ge__ __getattr__ "
    "__getattr_param__ __getitem__ __getitem_param__ __gt__ __has_next__ __hash__ __index__ __init__ __int__ "
    "__int_literal__ __invert__ __is__ __isnot__ __iter__ __le__ __len__ __list_literal__ __lt__ __merge_with__ "
    "__mlir_bool__ __mlir_i1__ __mlir_index__ __moveinit__ __ne__ __neg__ __next__ __pos__ __repr__ __reversed__ "
    "__round__ __set_literal__ __setitem__ __slice_literal__ __str__ __trunc__ __uint__ "
) | {f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")}
"""The names between double underscores that Mojo gives a meaning; the others are Python's, and no program has them."""


def is_magic(name: str) -> bool:
    """Return whether a name stands between double underscores, as those to which the language gives a meaning do.

    >>> is_magic("__init__"), is_magic("__functions_in_module"), is_magic("_____")
    (True, False, False)
    """
    return name.startswith("__") and name.endswith("__") and name.strip("_") != ""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the program: its kind, its text, and where it starts and ends.

    `line` counts from 1, `column` and `position` (in the whole text) from 0.

    >>> token = Token("name", "x", 1, 4, 4)
    >>> token.text, token.column
    ('x', 4)
    """

    kind: Kind
    text: str
    line: int
    column: int
    position: int


class Tokenizer:
    """Cuts a part of a source into tokens; `line` is the number of the line that `begin` is on."""

    def __init__(self, source: Source, begin: int = 0, end: int | None = None, line: int = 1) -> None:
        self.source, self.text = source, source.text
        self.position, self.end, self.line = begin, len(source.text) if end is None else end, line
        self.line_start = source.text.rfind("\n", 0, begin) + 1
        self.brackets: list[Token] = []
        self.indents = [""]

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        """Raise an error that points at `position`, or where the tokenizer is."""
        where = self.position if position is None else position
        raise MojoSourceError(message, self.source, self.line, where - self.line_start)

    def read_braces(self) -> Iterator[Token]:
        """Yield the tokens of an expression in the braces of a template, up to the brace that closes it."""
        while self.position < self.end:
            if not self.brackets and self.text[self.position] == "}":
                end = self._token("end", self.position)
                self.position += 1
                yield end
                return
            token = self._read_token()
            if token is not None and token.kind != "newline":
                yield token
        self.fail("'{' of the template is not closed; write '{{' for a brace")

    def read_program(self) -> Iterator[Token]:
        """Yield the tokens of a program, with a newline after each statement and the changes of indentation."""
        at_line_start = True
        while self.position < self.end:
            if at_line_start and not self.brackets:
                changes = self._read_indentation()
                if changes is None:
                    continue
                yield from changes
            at_line_start = False
            token = self._read_token()
            if token is None:
                continue
            if token.kind != "newline":
                yield token
            elif not self.brackets:
                yield token
                at_line_start = True
        if self.brackets:
            opening = self.brackets[-1]
            message = f"{opening.text!r} is never closed"
            raise MojoSourceError(message, self.source, opening.line, opening.column)
        if not at_line_start:
            yield self._token("newline", self.position)
        for _ in self.indents[1:]:
            yield self._token("dedent", self.position)
        yield self._token("end", self.position)

    def _token(self, kind: Kind, begin: int) -> Token:
        return Token(kind, self.text[begin : self.position], self.line, begin - self.line_start, begin)

    def _next_line(self) -> None:
        self.line += 1
        self.line_start = self.position

    def _read_indentation(self) -> list[Token] | None:
        """Return the blocks that the line opens or closes; None if it is blank or a comment."""
        begin = self.position
        while self.position < self.end and self.text[self.position] in " \t\f":
            self.position += 1
        if self.position >= self.end or self.text[self.position] in "\r\n#":
            blank = re.compile(r"[^\n]*\n?").match(self.text, self.position)
            assert blank is not None  # it matches the empty text
            self.position = min(blank.end(), self.end)
            self._next_line()
            return None
        indent = self.text[begin : self.position]
        if "\t" in indent:
            self.fail("indentation contains a tab; use four spaces", begin + indent.index("\t"))
        if len(indent) > len(self.indents[-1]):
            if len(self.indents) > DEEPEST:
                self.fail(f"blocks are nested more than {DEEPEST} deep")
            self.indents.append(indent)
            return [self._token("indent", begin)]
        changes = []
        while len(indent) < len(self.indents[-1]):
            self.indents.pop()
            changes.append(Token("dedent", "", self.line, len(indent), self.position))
        if indent != self.indents[-1]:
            self.fail(f"indentation of {len(indent)} spaces does not match any block around it")
        return changes

    def _read_token(self) -> Token | None:
        """Return the next token; None for blanks and comments."""
        begin = self.position
        match = _PATTERN.match(self.text, begin, self.end)
        if match is None:
            self.fail(f"unexpected character {self.text[begin]!r}")
        kind = match.lastgroup
        if kind == "quotes" or match["string"] is not None:
            return self._read_string(match)
        self.position = match.end()
        if kind == "blank":
            if match[0].startswith("\\"):
                self._next_line()
            return None
        if kind == "newline":
            token = self._token("newline", begin)
            self._next_line()
            return token
        if kind == "name":
            text = match[0].strip("`")
            if "·" in text or (is_magic(text) and text not in MOJO_METHODS):
                self.fail(f"Mojo has no name {text!r}", begin)
            return Token("name", text, self.line, begin - self.line_start, begin)
        if kind == "number":
            return self._token("number", begin)
        token = self._token("operator", begin)
        self._count_brackets(token)
        return token

    def _count_brackets(self, token: Token) -> None:
        if token.text in OPENING:
            self.brackets.append(token)
            if len(self.brackets) > DEEPEST:
                self.fail(f"brackets are nested more than {DEEPEST} deep", token.position)
        elif token.text in CLOSING:
            if not self.brackets:
                self.fail(f"{token.text!r} closes nothing", token.position)
            opening = self.brackets.pop()
            if OPENING.index(opening.text) != CLOSING.index(token.text):
                place = f"line {opening.line}, column {opening.column + 1}"
                self.fail(f"{token.text!r} does not close {opening.text!r} of {place}", token.position)

    def _read_string(self, match: re.Match[str]) -> Token:
        """Return a string with its prefix and quotes; inside the braces of a template there may be other strings."""
        begin, line, line_start = self.position, self.line, self.line_start
        quotes, prefix = match["quotes"], match["prefix"].lower()
        self.position = self._skip_string(match.end(), quotes, "t" in prefix or "f" in prefix, 0)
        text = self.text[begin : self.position]
        for newline in re.finditer("\n", text):
            self.line += 1
            self.line_start = begin + newline.end()
        return Token("string", text, line, begin - line_start, begin)

    def _skip_string(self, at: int, quotes: str, is_template: bool, depth: int) -> int:
        """Return the position after the string whose content starts at `at`."""
        if depth > 4:
            self.fail("templates are nested more than 4 deep")
        braces = 0
        while at < self.end:
            if is_template and braces:
                inner = _PATTERN.match(self.text, at, self.end)
                if inner is not None and inner["string"] is not None:
                    nested = "t" in inner["prefix"].lower()
                    at = self._skip_string(inner.end(), inner["quotes"], nested, depth + 1)
                    continue
            elif self.text.startswith(quotes, at):
                return at + len(quotes)
            character = self.text[at]
            if character == "\n" and len(quotes) == 1:
                break
            if character == "\\" or (is_template and self.text[at : at + 2] in ("{{", "}}") and not braces):
                at += 1
            elif is_template:
                braces += (character == "{") - (character == "}" and braces > 0)
            at += 1
        return self.fail(f"the string that starts with {quotes} is not closed")


def tokenize(source: Source) -> list[Token]:
    """Return the tokens of a program; raise if its brackets, strings or indentation are wrong.

    >>> [token.text for token in tokenize(Source("if x: # no\\n    y = 'a'", "a.mojo")) if token.text.strip()]
    ['if', 'x', ':', 'y', '=', "'a'"]
    """
    if len(source.text) > LARGEST:
        message = f"the program has {len(source.text)} characters; at most {LARGEST} are read"
        raise MojoSourceError(message, Source("", source.name), 1, 0)
    if "\0" in source.text:
        line = source.text.count("\n", 0, source.text.index("\0")) + 1
        raise MojoSourceError("the program contains a zero byte; it is not text", Source("", source.name), line, 0)
    return list(Tokenizer(source).read_program())
