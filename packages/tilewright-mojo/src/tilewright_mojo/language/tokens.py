# SPDX-License-Identifier: Apache-2.0
"""Tokens of Mojo source, the parser's stream over them, and errors with their place in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NoReturn, TypeVar

from tilewright.errors import FileFormatError

NOT_YET = "Mojo has this; tilewright does not run it yet"
NOT_MOJO = "Mojo does not have this"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a program and the name of its file; its lines are counted from 1.

    >>> source = Source("var x = 1\\n", "a.mojo")
    >>> print(source.show(1, 4))
    a.mojo:1:5
        var x = 1
            ^
    """

    text: str
    name: str

    def line(self, number: int) -> str:
        """Return a line without its end.

        >>> Source("a\\nb", "a.mojo").line(2)
        'b'
        """
        lines = self.text.split("\n", number)[number - 1 : number]
        return lines[0].rstrip("\r") if lines else ""

    def show(self, number: int, column: int) -> str:
        """Return a place as text: where it is, the line, and a caret below the character number `column` (from 0).

        >>> print(Source("x = (", "a.mojo").show(1, 4))
        a.mojo:1:5
            x = (
                ^
        """
        text = self.line(number)
        window = text[max(0, column - 100) : column + 100]
        before = text[max(0, column - 100) : column]
        return f"{self.name}:{number}:{column + 1}\n    {window}\n    {' ' * len(before)}^"


class MojoSourceError(FileFormatError):
    """A program that is not Mojo, or uses what tilewright does not run; it has not been started.

    `file`, `line` and `column` (from 1) are its place.

    >>> from tilewright.mojo import run
    >>> try:
    ...     run("var x = (1", name="a.mojo")
    ... except MojoSourceError as problem:
    ...     print(problem)
    '(' is never closed
      at a.mojo:1:9
        var x = (1
                ^
    """

    def __init__(self, message: str, source: Source, line: int, column: int) -> None:
        place = source.show(line, column).replace("\n", "\n  ").replace("\n      ", "\n    ")
        super().__init__(f"{message}\n  at {place}")
        self.message, self.file, self.line, self.column = message, source.name, line, column + 1


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


Node = TypeVar("Node", bound=ast.AST)

KEYWORDS = words(
    "and as assert break comptime continue def elif else except finally fn for from if import in is lambda not or "
    "pass raise return struct trait try while with var alias"
)
"""Words that cannot be the name of something; others, such as `out` or `ref`, are keywords only in their place."""

CONSTANTS = words("True False None")
MAX_TREE = 200  # operations inside each other; the compiler of Python is recursive


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
        if self.depth > MAX_TREE:
            self.fail(f"the expression has more than {MAX_TREE} levels; use variables for its parts")

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
