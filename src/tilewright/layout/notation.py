# SPDX-License-Identifier: Apache-2.0
"""The text form of layouts, both ways: `(4,2):(1,4)`, `(12,100):(1@bank,2048@addr)+5@bank`, `Sw<3,0,3> o (8,8):(8,1)`.

    chain    = term (" o " term)*
    term     = tree ":" tree ["+R[" int ":" step "]"]* ["+" step] [" where " guard (" and " guard)*]
             | "Sw<" int "," int "," int ">"  |  "inverse(" chain ")"
    guard    = tree ["+" int] "<" int
    tree     = step | "(" [tree ("," tree)*] ")"
    step     = ["-"] int ["@" axis]  |  "{" step (("+" | "-") step)* "}"

Parsing yields plain data; the classes that know what to build from it live further down.
"""

from __future__ import annotations

import re
from typing import Any

from ..errors import LayoutError
from .axes import Place
from .tuples import MAX_DEPTH

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([A-Za-z_][\w.]*)|([()\[\]{}<>:,@+-]))", re.ASCII)


def format_tree(tree: Any) -> str:
    """Return a shape, stride or coordinate as text without blanks; a step along several axes is put in braces.

    >>> format_tree((4, (2, 3))), format_tree((7,)), format_tree((8, Place(bank=1, addr=64)))
    ('(4,(2,3))', '(7)', '(8,{1@bank+64@addr})')
    """
    if tree.__class__ is tuple:
        return f"({','.join(map(format_tree, tree))})"
    terms = _terms(tree)
    return terms[0] if len(terms) == 1 else f"{{{_sum(terms)}}}"


def format_signed(step: Any) -> str:
    """Return a step as terms to append: `+5`, `-3@bank`.

    >>> format_signed(5), format_signed(Place(bank=-3, addr=64))
    ('+5', '-3@bank+64@addr')
    """
    text = _sum(_terms(step))
    return text if text.startswith("-") else f"+{text}"


def _terms(step: Any) -> list[str]:
    if not isinstance(step, Place):
        return [str(step)]
    # an axis along which nothing moves is still an axis of the places
    return [f"{amount}@{name}" if name else str(amount) for name, amount in step._parts.items() if name or amount] or [
        "0"
    ]


def _sum(terms: list[str]) -> str:
    return "+".join(terms).replace("+-", "-")


def parse_chain(text: str) -> list[tuple[Any, ...]]:
    """Return the terms of a composition, outermost first: ("layout", ...), ("swizzle", ...) or ("inverse", ...).

    >>> parse_chain("(4,2):(1,4)+8")
    [('layout', (4, 2), (1, 4), 8, (), ())]
    """
    if not isinstance(text, str):
        raise TypeError(f"a layout is parsed from a str, got {type(text).__name__} {text!r}")
    reader = _Reader(text)
    terms = reader.chain()
    reader.expect_end()
    return terms


class _Reader:
    """A reader of the grammar above, one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
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
        found = repr(self.text[position : position + 12]) if position < len(self.text) else "the end"
        return LayoutError(
            f"cannot read {self.text!r} as a layout: expected {expected} at position {position}, found {found}"
        )

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def position(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(self.position(), repr(token))

    def expect_end(self) -> None:
        if self.at < len(self.tokens):
            raise self.error(self.position(), "the end")

    def chain(self, depth: int = 0) -> list[tuple[Any, ...]]:
        terms = [self.term(depth)]
        while self.accept("o"):
            terms.append(self.term(depth))
        return terms

    def term(self, depth: int) -> tuple[Any, ...]:
        if self.accept("Sw"):
            return ("swizzle", *self.listing("<", ">"))
        if self.accept("inverse"):
            if depth >= MAX_DEPTH:
                raise self.error(self.position(), f"at most {MAX_DEPTH} levels of nesting")
            self.expect("(")
            inner = self.chain(depth + 1)
            self.expect(")")
            return ("inverse", inner)
        shape = self.tree()
        self.expect(":")
        stride = self.tree()
        offset, replicas = self.tail()
        guards = []
        if self.accept("where"):
            guards.append(self.guard())
            while self.accept("and"):
                guards.append(self.guard())
        return ("layout", shape, stride, offset, replicas, tuple(guards))

    def tail(self) -> tuple[Any, tuple[tuple[int, Any], ...]]:
        offset: Any = 0
        replicas = []
        while self.peek() in ("+", "-"):
            if self.peek() == "+" and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][0] == "R":
                self.at += 2
                self.expect("[")
                count = self.integer()
                self.expect(":")
                replicas.append((count, self.step()))
                self.expect("]")
            else:
                offset = offset + self.signed()
        return offset, tuple(replicas)

    def guard(self) -> tuple[Any, int, int]:
        stride = self.tree()
        position = self.position()
        offset, replicas = self.tail()
        if replicas:
            raise self.error(position, "'<': a bound has no replicas")
        self.expect("<")
        return stride, self.integer(), offset

    def listing(self, opening: str, closing: str) -> list[int]:
        self.expect(opening)
        values = [self.integer()]
        while self.accept(","):
            values.append(self.integer())
        self.expect(closing)
        return values

    def tree(self, depth: int = 0) -> Any:
        if not self.accept("("):
            return self.step()
        if depth >= MAX_DEPTH:
            raise self.error(self.position(), f"at most {MAX_DEPTH} levels of nesting")
        branches: list[Any] = []
        while not self.accept(")"):
            if branches:
                self.expect(",")
                if self.accept(")"):
                    break
            branches.append(self.tree(depth + 1))
        return tuple(branches)

    def step(self) -> Any:
        if not self.accept("{"):
            return self.signed()
        total = self.signed()
        while not self.accept("}"):
            if self.peek() not in ("+", "-"):
                raise self.error(self.position(), "'+', '-' or '}'")
            total = total + self.signed()
        return total

    def signed(self) -> Any:
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        amount = self.integer()
        amount = -amount if negative else amount
        if not self.accept("@"):
            return amount
        name, position = self.peek(), self.position()
        if not name[:1].isalpha() and not name.startswith("_"):
            raise self.error(position, "the name of an axis")
        self.at += 1
        return Place({name: amount})

    def integer(self) -> int:
        negative = self.accept("-")
        token = self.peek()
        if not token.isdigit():
            raise self.error(self.position(), "an integer")
        if len(token) > 40:
            raise LayoutError(f"cannot read {token[:20]}...: an integer of {len(token)} digits is beyond 64 bits")
        self.at += 1
        return -int(token) if negative else int(token)
