# SPDX-License-Identifier: Apache-2.0
"""The text form of layouts: `(4,2):(1,4)`, `(12,100):(1@bank,2048@addr)+5@bank`, `Sw<3,0,3> o (8,8):(8,1)`.

chain    = term (" o " [int " o "] term)*
term     = tree ":" tree ["+R[" int ":" step "]"]* ["+" step] [" where " guard (" and " guard)*]
         | "Sw<" int "," int "," int ">"  |  "inverse(" chain ")"
guard    = tree ["+" int] "<" int
tree     = step | "(" [tree ("," tree)*] ")"
step     = ["-"] int ["@" axis]  |  "{" step (("+" | "-") step)* "}"
int      = digits, also as CuTe prints static integers: "_8", "_-1"
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from ..errors import LayoutError
from .axes import Guard, Place, Replica, Step, format_tree
from .composed import ComposedLayout, InverseLayout, Swizzle
from .layout import Layout, LayoutLike
from .properties import is_injective
from .tuples import MAX_DEPTH

_Term: TypeAlias = "LayoutLike | Swizzle"

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([A-Za-z_][\w.]*)|([()\[\]{}<>:,@+-]))", re.ASCII)


def parse(text: str) -> Any:
    """Return the layout, composition, swizzle or inverse that `text` describes: what `str` prints of it.

    >>> parse("(_4,_8):(_8,_1)"), parse("Sw<2,0,2> o (4,4):(4,1)")
    (Layout((4, 8), (8, 1)), ComposedLayout(Swizzle(2, 0, 2), Layout((4, 4), (4, 1))))
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is parsed from a str, got {type(text).__name__} {text!r}")
    parser = _Parser(text)
    terms = parser.read_chain()
    parser.expect_end()
    return _compose_terms(terms, text)


def _compose_terms(terms: list[_Term], text: str) -> Any:
    """Return the composition of parsed terms, outermost first."""
    *outers, result = terms
    if outers and isinstance(result, Swizzle):
        raise LayoutError(f"cannot parse {text!r}: the last term is a swizzle, which has no shape; end with a layout")
    composed: Any = result
    for outer in reversed(outers):
        composed = ComposedLayout(outer, composed)
    return composed


class _Parser:
    """A recursive-descent parser of the grammar above, with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.next = 0
        self.tokens: list[tuple[str, int]] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise self.error(position, "a number, a name or one of ( ) [ ] { } < > : , @ + -")
            self.tokens.append((match[0].strip(), match.start(match.lastindex or 0)))
            position = match.end()

    def error(self, position: int, expected: str) -> LayoutError:
        rest = repr(self.text[position : position + 12]) if position < len(self.text) else "the end"
        shown = self.text if len(self.text) <= 200 else f"{self.text[:100]}..."
        return LayoutError(
            f"cannot parse {shown!r} as a layout: expected {expected} at position {position}, got {rest}"
        )

    def peek(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def position(self) -> int:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else len(self.text)

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.next += 1
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(self.position(), repr(token))

    def expect_end(self) -> None:
        if self.next < len(self.tokens):
            raise self.error(self.position(), "the end")

    def read_chain(self, depth: int = 0) -> list[_Term]:
        terms = [self.read_term(depth)]
        while self.accept("o"):
            position, shift = self.position(), self.read_shift()
            term: Any = self.read_term(depth)
            if shift and isinstance(term, Swizzle):
                raise self.error(position, "a layout after an offset")
            terms.append(term + shift if shift else term)
        return terms

    def read_shift(self) -> int:
        """Return the offset that CuTe prints between a swizzle and its layout, `Sw<3,4,3> o _0 o (8,64):(64,1)`."""
        if self.next + 1 >= len(self.tokens) or self.tokens[self.next + 1][0] != "o":
            return 0
        shift = self.read_integer()
        self.expect("o")
        return shift

    def read_term(self, depth: int) -> _Term:
        if self.accept("Sw"):
            return self.read_swizzle()
        if self.accept("inverse"):
            return self.read_inverse(depth)
        shape = self.read_tree()
        self.expect(":")
        stride = self.read_tree()
        offset, replicas = self.read_offset_and_replicas()
        guards = []
        if self.accept("where"):
            guards.append(self.read_guard())
            while self.accept("and"):
                guards.append(self.read_guard())
        try:
            return Layout(shape, stride, offset, replicas, guards)
        except TypeError as problem:
            raise LayoutError(f"cannot parse {format_tree(shape)}:{format_tree(stride)}: {problem}") from None

    def read_swizzle(self) -> Swizzle:
        self.expect("<")
        numbers = [self.read_integer()]
        while self.accept(","):
            numbers.append(self.read_integer())
        self.expect(">")
        if len(numbers) != 3:
            raise LayoutError(f"cannot parse {self.text!r}: a swizzle has three numbers, Sw<bits,base,shift>")
        return Swizzle(*numbers)

    def read_inverse(self, depth: int) -> InverseLayout:
        if depth >= MAX_DEPTH:
            raise self.error(self.position(), f"at most {MAX_DEPTH} levels of nesting")
        self.expect("(")
        inner = _compose_terms(self.read_chain(depth + 1), self.text)
        self.expect(")")
        if isinstance(inner, Swizzle) or (isinstance(inner, Layout) and not is_injective(inner)):
            raise LayoutError(f"cannot parse {self.text!r}: {inner} is not an injective layout and has no inverse")
        return InverseLayout(inner)

    def read_offset_and_replicas(self) -> tuple[Step, tuple[Replica, ...]]:
        offset: Any = 0
        replicas = []
        while self.peek() in ("+", "-"):
            if self.peek() == "+" and self.next + 1 < len(self.tokens) and self.tokens[self.next + 1][0] == "R":
                self.next += 2
                self.expect("[")
                count = self.read_integer()
                self.expect(":")
                replicas.append((count, self.read_step()))
                self.expect("]")
            else:
                offset = offset + self.read_signed()
        return offset, tuple(replicas)

    def read_guard(self) -> Guard:
        stride: Any = self.read_tree()
        position = self.position()
        offset, replicas = self.read_offset_and_replicas()
        if replicas:
            raise self.error(position, "'<' (a guard has no replicas)")
        self.expect("<")
        limit = self.read_integer()
        return Guard(stride, limit, offset)  # type: ignore[arg-type]  # Layout refuses other offsets

    def read_tree(self, depth: int = 0) -> Any:
        if not self.accept("("):
            return self.read_step()
        if depth >= MAX_DEPTH:
            raise self.error(self.position(), f"at most {MAX_DEPTH} levels of nesting")
        branches: list[Any] = []
        while not self.accept(")"):
            if branches:
                self.expect(",")
                if self.accept(")"):
                    break
            branches.append(self.read_tree(depth + 1))
        return tuple(branches)

    def read_step(self) -> Any:
        if not self.accept("{"):
            return self.read_signed()
        total = self.read_signed()
        while not self.accept("}"):
            if self.peek() not in ("+", "-"):
                raise self.error(self.position(), "'+', '-' or '}'")
            total = total + self.read_signed()
        return total

    def read_signed(self) -> Any:
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        amount = self.read_integer()
        amount = -amount if negative else amount
        if not self.accept("@"):
            return amount
        name, position = self.peek(), self.position()
        if not name[:1].isalpha() and not name.startswith("_"):
            raise self.error(position, "the name of an axis")
        self.next += 1
        return Place({name: amount})

    def read_integer(self) -> int:
        negative = self.accept("-")
        token = self.peek()
        if token == "_":  # CuTe's static integers: _8, _-1
            self.next += 1
            negative, token = self.accept("-"), self.peek()
        elif token.startswith("_"):
            token = token[1:]
        if not token.isdigit():
            raise self.error(self.position(), "an integer")
        if len(token) > 40:
            raise LayoutError(f"cannot parse {token[:20]}...: an integer of {len(token)} digits is beyond 64 bits")
        self.next += 1
        return -int(token) if negative else int(token)
