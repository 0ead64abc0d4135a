# SPDX-License-Identifier: Apache-2.0
"""Reading tokens one after the other, with the positions that syntax nodes get."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from .problems import MojoSourceError, Source
from .tokens import Token, words

Node = TypeVar("Node", bound=ast.AST)

KEYWORDS = words(
    "and as assert break comptime continue def elif else except finally fn for from if import in is lambda not or "
    "pass raise return struct trait try while with var alias"
)
"""Words that cannot be the name of something; others, such as `out` or `ref`, are keywords only in their place."""

CONSTANTS = words("True False None")
DEEPEST_TREE = 200  # operations inside each other; the compiler of Python is recursive


class TokenStream:
    """The tokens of a program and the place in them; `fail` points there."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source, self.tokens, self.index = source, tokens, 0
        self.depth = 0
        self.lines: list[str] | None = None if source.text.isascii() else source.text.split("\n")

    @property
    def token(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.index]

    def kind(self) -> str:
        """Return the kind of the next token."""
        return self.tokens[self.index].kind

    def peek(self, count: int = 1) -> Token:
        """Return a token further on."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Return the next token and go past it."""
        token = self.tokens[self.index]
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Return whether the next token is one of these words or operators."""
        token = self.token
        return token.text in texts and token.kind in ("name", "operator") and not self.is_quoted()

    def accept(self, *texts: str) -> Token | None:
        """Go past the next token if it is one of these; return it or None."""
        return self.advance() if self.at(*texts) else None

    def expect(self, text: str, after: str) -> Token:
        """Go past this token, or fail."""
        return self.accept(text) or self.fail(f"expected {text!r} after {after}, got {self.describe()}")

    def expect_name(self, what: str) -> Token:
        """Go past a name, or fail."""
        if (
            self.token.text in CONSTANTS
            or self.token.kind != "name"
            or (self.token.text in KEYWORDS and not self.is_quoted())
        ):
            self.fail(f"expected {what}, got {self.describe()}")
        return self.advance()

    def is_quoted(self) -> bool:
        """Return whether the next name is between backticks, which makes any word a name."""
        return self.source.text.startswith("`", self.token.position)

    def describe(self) -> str:
        """Return the next token in words."""
        token = self.token
        words = {"newline": "the end of the line", "indent": "an indented block", "dedent": "the end of the block"}
        return words.get(token.kind) or (repr(token.text) if token.text else "the end of the program")

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise an error that points at `token`, or at the next one."""
        where = self.token if token is None else token
        raise MojoSourceError(message, self.source, where.line, where.column)

    def fail_at(self, message: str, node: ast.AST) -> NoReturn:
        """Raise an error that points at a node."""
        raise MojoSourceError(message, self.source, *characters(self.source, node))

    def enter(self) -> None:
        """Count one level of nesting; the level ends where the caller subtracts it from `depth`."""
        self.depth += 1
        if self.depth > DEEPEST_TREE:
            self.fail(f"the expression has more than {DEEPEST_TREE} levels; use variables for its parts")

    def column(self, line: int, column: int) -> int:
        """Return a column in bytes of UTF-8, as Python's nodes count it."""
        if self.lines is None:
            return column
        return len(self.lines[line - 1][:column].encode("utf-8", "surrogatepass"))

    def place(self, node: Node, begin: Token | ast.AST) -> Node:
        """Return the node with the position from `begin` to the token that was read last."""
        if isinstance(begin, Token):
            line, column = begin.line, self.column(begin.line, begin.column)
        else:
            line, column = begin.lineno, begin.col_offset  # type: ignore[attr-defined]
        last = self.tokens[max(0, self.index - 1)]
        end_line, end_column = last.line, last.column + len(last.text)
        if "\n" in last.text:
            end_line, end_column = line, column + 1
        node.lineno, node.col_offset = line, column  # type: ignore[attr-defined]
        node.end_lineno, node.end_col_offset = end_line, self.column(end_line, end_column)  # type: ignore[attr-defined]
        return node


def characters(source: Source, node: ast.AST) -> tuple[int, int]:
    """Return line and column of a node, in characters.

    >>> node = ast.Name("x", lineno=1, col_offset=3)
    >>> characters(Source("é x", "a.mojo"), node)
    (1, 2)
    """
    line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    text = source.line(line).encode("utf-8", "surrogatepass")[:offset]
    return line, len(text.decode("utf-8", "replace"))


def suggest(name: str, known: Sequence[str]) -> str:
    """Return "; did you mean ...?" with the closest known name, or nothing.

    >>> suggest("pint", ["print", "len"])
    '; did you mean print?'
    """
    matches = get_close_matches(name, known, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
