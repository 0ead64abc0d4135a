# SPDX-License-Identifier: Apache-2.0
"""The text form of layouts: `(4,2):(1,4)`, `(12,100):(1@bank,2048@addr)+5@bank`, `Sw<3,0,3> o (8,8):(8,1)`.

chain    = term (" o " [int " o "] term)*
term     = tree ":" tree ["+R[" int ":" stride "]"]* ["+" stride] [" where " guard (" and " guard)*]
         | "Sw<" int "," int "," int ">"  |  "inverse(" chain ")"
guard    = tree ["+" int] "<" int
tree     = stride | "(" [tree ("," tree)*] ")"
stride   = ["-"] int ["@" axis]  |  "{" stride (("+" | "-") stride)* "}"
int      = digits, also as CuTe prints static integers: "_8", "_-1"
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeAlias

from .._text import TextCursor
from ..errors import LayoutError
from .axes import Guard, Offset, Place, Replica, format_tree
from .composed import ComposedLayout, InverseLayout, Swizzle
from .layout import Layout, LayoutLike
from .properties import is_injective
from .tuples import MAX_DEPTH

_Term: TypeAlias = "LayoutLike | Swizzle"

_INTEGER = re.compile(r"(-?(?:_-?)?)([0-9]+)")  # with CuTe's static integers: _8, _-1
_NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_WORDS = {word: re.compile(rf"{word}(?![\w.])", re.ASCII) for word in ("o", "Sw", "inverse", "where", "and")}
_REPLICA = re.compile(r"\+\s*R(?![\w.])", re.ASCII)
_SHIFT_NEXT = re.compile(r"(?=_?[0-9]+\s*o(?![\w.]))", re.ASCII)


def parse(text: str) -> LayoutLike | Swizzle:
    """Return the layout, composition, swizzle or inverse that `text` describes, in the form that `str` prints.

    >>> parse("(_4,_8):(_8,_1)"), parse("Sw<2,0,2> o (4,4):(4,1)")
    (Layout((4, 8), (8, 1)), ComposedLayout(Swizzle(2, 0, 2), Layout((4, 4), (4, 1))))
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is parsed from a str, got {type(text).__name__} {text!r}")
    parser = _Parser(text, "a layout")
    terms = parser.read_chain()
    parser.expect_end()
    parsed: LayoutLike | Swizzle = _compose_terms(terms, text)
    return parsed


def _compose_terms(terms: list[_Term], text: str) -> Any:
    """Return the composition of parsed terms, outermost first."""
    *outers, result = terms
    if outers and isinstance(result, Swizzle):
        raise LayoutError(f"cannot parse {text!r}: the last term is a swizzle, which has no shape; end with a layout")
    composed: Any = result
    for outer in reversed(outers):
        composed = ComposedLayout(outer, composed)
    return composed


class _Parser(TextCursor):
    """A recursive-descent parser of the grammar above."""

    def fail(self, expected: str) -> NoReturn:
        """Raise an error with the text `expected` at this character, and the text found."""
        start, text = self.skip_space(), self.text
        rest = repr(text[start : start + 12]) if start < len(text) else "the end"
        shown = text if len(text) <= 200 else f"{text[:100]}..."
        raise LayoutError(f"cannot parse {shown!r} as a layout: expected {expected} at position {start}, got {rest}")

    def accept_word(self, word: str) -> bool:
        return self.match(_WORDS[word]) is not None

    def read_chain(self, depth: int = 0) -> list[_Term]:
        terms = [self.read_term(depth)]
        while self.accept_word("o"):
            start, shift = self.skip_space(), self.read_shift()
            term: Any = self.read_term(depth)
            if shift and isinstance(term, Swizzle):
                self.at = start
                self.fail("a layout after an offset")
            terms.append(term + shift if shift else term)
        return terms

    def read_shift(self) -> int:
        """Return the offset that CuTe prints between a swizzle and its layout, `Sw<3,4,3> o _0 o (8,64):(64,1)`."""
        if not self.match(_SHIFT_NEXT):
            return 0
        shift = self.read_integer()
        self.accept_word("o")
        return shift

    def read_term(self, depth: int) -> _Term:
        if self.accept_word("Sw"):
            return self.read_swizzle()
        if self.accept_word("inverse"):
            return self.read_inverse(depth)
        shape = self.read_tree()
        self.expect(":")
        stride = self.read_tree()
        offset, replicas = self.read_offset_and_replicas()
        guards = []
        if self.accept_word("where"):
            guards.append(self.read_guard())
            while self.accept_word("and"):
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
            self.fail(f"at most {MAX_DEPTH} levels of nesting")
        self.expect("(")
        inner = _compose_terms(self.read_chain(depth + 1), self.text)
        self.expect(")")
        if isinstance(inner, Swizzle) or (isinstance(inner, Layout) and not is_injective(inner)):
            raise LayoutError(f"cannot parse {self.text!r}: {inner} is not an injective layout and has no inverse")
        return InverseLayout(inner)

    def read_offset_and_replicas(self) -> tuple[Offset, tuple[Replica, ...]]:
        offset: Any = 0
        replicas = []
        while self.peek("+") or self.peek("-"):
            if self.match(_REPLICA):
                self.expect("[")
                count = self.read_integer()
                self.expect(":")
                replicas.append((count, self.read_stride()))
                self.expect("]")
            else:
                offset = offset + self.read_signed()
        return offset, tuple(replicas)

    def read_guard(self) -> Guard:
        stride: Any = self.read_tree()
        start = self.skip_space()
        offset, replicas = self.read_offset_and_replicas()
        if replicas:
            self.at = start
            self.fail("'<' (a guard has no replicas)")
        self.expect("<")
        limit = self.read_integer()
        return Guard(stride, limit, offset)  # type: ignore[arg-type]  # Layout refuses other offsets

    def read_tree(self, depth: int = 0) -> Any:
        if not self.accept("("):
            return self.read_stride()
        if depth >= MAX_DEPTH:
            self.fail(f"at most {MAX_DEPTH} levels of nesting")
        branches: list[Any] = []
        while not self.accept(")"):
            if branches:
                self.expect(",")
                if self.accept(")"):
                    break
            branches.append(self.read_tree(depth + 1))
        return tuple(branches)

    def read_stride(self) -> Any:
        if not self.accept("{"):
            return self.read_signed()
        total = self.read_signed()
        while not self.accept("}"):
            if not self.peek("+") and not self.peek("-"):
                self.fail("'+', '-' or '}'")
            total = total + self.read_signed()
        return total

    def read_signed(self) -> Any:
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        amount = -self.read_integer() if negative else self.read_integer()
        return Place({self.take(_NAME, "the name of an axis"): amount}) if self.accept("@") else amount

    def read_integer(self) -> int:
        number = self.match(_INTEGER) or self.fail("an integer")
        sign, digits = number.groups()
        if len(digits) > 40:
            raise LayoutError(f"cannot parse {digits[:20]}...: an integer of {len(digits)} digits is beyond 64 bits")
        return -int(digits) if "-" in sign else int(digits)
