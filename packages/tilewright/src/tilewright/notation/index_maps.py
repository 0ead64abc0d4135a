# SPDX-License-Identifier: Apache-2.0
"""Maps from indices to indices: sums, multiples, divisions and remainders, as MLIR and TVM write them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import Layout, LayoutLike, with_logical_shape
from .strided_parts import StridedPart, offset_of, strided_parts

MAX_DEPTH = 100  # of operations within each other
Value: TypeAlias = Any  # an integer, or an array of integers

OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
}


@dataclass(frozen=True)
class Term:
    """An expression: an input by name, a number, or an operation on two expressions.

    >>> (Term.input("i") // 8 + Term.number(1)).evaluate({"i": 17})
    3
    """

    operation: str
    left: Any  # a term; the name of an input; a number
    right: Any = None  # a term, or None
    depth: int = field(default=0, compare=False, repr=False)  # operations within each other

    @classmethod
    def input(cls, name: str) -> Term:
        """Return the input `name`.

        >>> Term.input("i").evaluate({"i": 5})
        5
        """
        return cls("input", name)

    @classmethod
    def number(cls, value: int) -> Term:
        """Return a constant `value`.

        >>> Term.number(3).evaluate({})
        3
        """
        return cls("number", value)

    def combine(self, operation: str, other: Term) -> Term:
        """Return an `operation` on this term and an `other`; raise if the result would not be an affine one.

        >>> Term.input("i").combine("mod", Term.number(4)).evaluate({"i": 6})
        2
        """
        is_number = other.operation == "number"
        if operation in ("floordiv", "ceildiv", "mod") and (not is_number or other.left < 1):
            raise LayoutError(f"{operation} needs a constant of at least 1 on its right")
        if operation == "*" and not is_number and self.operation != "number":
            raise LayoutError("a product needs a constant on one side")
        if is_number and self.operation == "number":
            return Term.number(OPERATIONS[operation](self.left, other.left))
        depth = max(self.depth, other.depth) + 1
        if depth > MAX_DEPTH:
            raise LayoutError(f"an expression has at most {MAX_DEPTH} operations within each other")
        return Term(operation, self, other, depth)

    def __add__(self, other: Term) -> Term:
        return self.combine("+", other)

    def __floordiv__(self, number: int) -> Term:
        return self.combine("floordiv", Term.number(number))

    def evaluate(self, inputs: Mapping[str, Value]) -> Value:
        """Return the value for some `inputs`: integers, or arrays of them.

        >>> Term.input("i").combine("*", Term.number(4)).evaluate({"i": 2})
        8
        """
        if self.operation == "input":
            return inputs[self.left]
        if self.operation == "number":
            return self.left
        return OPERATIONS[self.operation](self.left.evaluate(inputs), self.right.evaluate(inputs))

    def format(self, symbols: Mapping[str, str] | None = None) -> str:
        """Return the term as text, with `symbols` for operations that a notation spells in another way.

        >>> (Term.input("i") // 8 + Term.number(1)).format({"floordiv": "//"})
        'i // 8 + 1'
        """
        return self._format(symbols or {})[0]

    def _format(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        """Return the text, and how strongly it binds."""
        if self.operation in ("input", "number"):
            return str(self.left), 3
        level = 1 if self.operation in "+-" else 2
        (left, left_level), (right, right_level) = self.left._format(symbols), self.right._format(symbols)
        left = left if left_level >= level else f"({left})"
        right = right if right_level > level else f"({right})"
        return f"{left} {symbols.get(self.operation, self.operation)} {right}", level

    def operations(self) -> set[str]:
        """Return the operations of the term.

        >>> (Term.input("i") // 8).operations()
        {'floordiv'}
        """
        if self.operation in ("input", "number"):
            return set()
        return {self.operation, *self.left.operations(), *self.right.operations()}

    def digits(self) -> tuple[dict[IndexDigit, int], int]:
        """Return the term as a sum of multiples of digits of inputs, and a constant; raise if it is not one.

        >>> (Term.input("i") // 8).combine("mod", Term.number(4)).digits()
        ({IndexDigit(name='i', divisor=8, modulus=4): 1}, 0)
        """
        if self.operation == "input":
            return {IndexDigit(self.left): 1}, 0
        if self.operation == "number":
            return {}, self.left
        left, constant = self.left.digits()
        right, other = self.right.digits()
        if self.operation in ("+", "-"):
            sign = 1 if self.operation == "+" else -1
            total = dict(left)
            for digit, factor in right.items():
                total[digit] = total.get(digit, 0) + sign * factor
            return {digit: factor for digit, factor in total.items() if factor}, constant + sign * other
        if self.operation == "*":
            digits, factor, offset = (left, other, constant) if not right else (right, constant, other)
            return {digit: old * factor for digit, old in digits.items() if factor}, offset * factor
        if len(left) != 1 or constant or next(iter(left.values())) != 1 or self.operation == "ceildiv":
            raise LayoutError(f"{self.operation} of a sum is not strided")
        (digit,) = left
        return {digit.divide(other) if self.operation == "floordiv" else digit.reduce(other): 1}, 0


@dataclass(frozen=True)
class IndexDigit:
    """A part of an input: (input // divisor) % modulus; no modulus takes all that is left.

    >>> IndexDigit("i").divide(8).reduce(4)
    IndexDigit(name='i', divisor=8, modulus=4)
    """

    name: str
    divisor: int = 1
    modulus: int | None = None

    def divide(self, number: int) -> IndexDigit:
        """Return this digit divided by a `number`.

        >>> IndexDigit("i", 2, 16).divide(4)
        IndexDigit(name='i', divisor=8, modulus=4)
        """
        if self.modulus is not None and self.modulus % number:
            raise LayoutError(f"a part of {self.modulus} values divided by {number} is not strided")
        return IndexDigit(self.name, self.divisor * number, None if self.modulus is None else self.modulus // number)

    def reduce(self, number: int) -> IndexDigit:
        """Return this digit modulo a `number`.

        >>> IndexDigit("i", 2, 16).reduce(4)
        IndexDigit(name='i', divisor=2, modulus=4)
        """
        if self.modulus is not None and self.modulus % number and number < self.modulus:
            raise LayoutError(f"a part of {self.modulus} values modulo {number} is not strided")
        return IndexDigit(self.name, self.divisor, number if self.modulus is None else min(number, self.modulus))


@dataclass(frozen=True)
class IndexMap:
    """A map from indices `inputs` to `results`; `symbols` are further inputs that do not depend on the element.

    >>> i = Term.input("i")
    >>> tiles = IndexMap(("i",), (i // 8, i.combine("mod", Term.number(8))))
    >>> tiles(17), tiles.mapped_shape((20,)), tiles.layout((20,))(17)
    ((2, 1), (3, 8), 17)
    """

    inputs: tuple[str, ...]
    results: tuple[Term, ...]
    symbols: tuple[str, ...] = ()

    def __call__(self, *index: Value, symbols: Sequence[int] = ()) -> tuple[Value, ...]:
        """Return the mapped index."""
        if len(index) != len(self.inputs) or len(symbols) != len(self.symbols):
            raise LayoutError(
                f"expected {len(self.inputs)} indices and {len(self.symbols)} symbols, got {index}, {symbols}"
            )
        values = dict(zip((*self.inputs, *self.symbols), (*index, *symbols), strict=True))
        return tuple([result.evaluate(values) for result in self.results])

    def mapped_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the smallest shape that holds the images of all indices into `shape`.

        >>> IndexMap(("i", "j"), (Term.input("j"), Term.input("i"))).mapped_shape((2, 3))
        (3, 2)
        """
        if len(shape) != len(self.inputs) or any(extent < 1 for extent in shape):
            raise LayoutError(
                f"the map takes {len(self.inputs)} indices, so give as many positive extents, got {tuple(shape)}"
            )
        if self.symbols:
            raise LayoutError(f"the map depends on the symbols {', '.join(self.symbols)}, which a shape does not give")
        return tuple([self._extent(result, shape) for result in self.results])

    def _extent(self, result: Term, shape: Sequence[int]) -> int:
        extents = dict(zip(self.inputs, shape, strict=True))
        try:
            digits, last = result.digits()
            for digit, factor in digits.items():
                most = (extents[digit.name] - 1) // digit.divisor
                last += max(0, factor) * (most if digit.modulus is None else min(most, digit.modulus - 1))
            return last + 1
        except LayoutError:
            if prod(shape) > 1 << 22:
                raise
            grid = np.ix_(*[np.arange(extent) for extent in shape])
            try:
                return int(np.max(result.evaluate(dict(zip(self.inputs, grid, strict=True))))) + 1
            except OverflowError:
                raise LayoutError("the map has a number beyond 64 bits; give smaller ones") from None

    def layout(self, shape: Sequence[int]) -> Any:
        """Return the layout of an array of a `shape` whose mapped array is stored row by row; raise if there is none.

        >>> i, j = Term.input("i"), Term.input("j")
        >>> IndexMap(("i", "j"), (j, i)).layout((2, 3))
        Layout((2, 3), (1, 2))
        """
        mapped = self.mapped_shape(shape)
        total: dict[IndexDigit, int] = {}
        offset = 0
        for k, result in enumerate(self.results):
            step = prod(mapped[k + 1 :])
            digits, constant = result.digits()
            offset += constant * step
            for digit, factor in digits.items():
                total[digit] = total.get(digit, 0) + factor * step
        modes = [self._mode(name, extent, total) for name, extent in zip(self.inputs, shape, strict=True)]
        stored = Layout(tuple([extents for extents, _ in modes]), tuple([strides for _, strides in modes]))
        held = [prod(extents) if isinstance(extents, tuple) else extents for extents, _ in modes]
        layout: Any = stored if held == list(shape) else with_logical_shape(stored, tuple(shape))
        return layout + offset if offset else layout

    def _mode(self, name: str, extent: int, total: Mapping[IndexDigit, int]) -> tuple[Any, Any]:
        """Return the nested extents and strides of an input, from the multiples of its digits."""
        digits = {digit: factor for digit, factor in total.items() if digit.name == name}
        ends = {digit.divisor * (digit.modulus or 1) for digit in digits} | {digit.divisor for digit in digits}
        cuts = sorted([cut for cut in ends | {1} if cut < extent or cut == 1])
        if any(high % low for low, high in itertools.pairwise(cuts)):
            raise LayoutError(
                f"parts of {name} overlap, so the map is not strided: {', '.join(map(str, cuts))} do not divide"
            )
        extents, strides = [], []
        for position, cut in enumerate(cuts):
            is_last = position + 1 == len(cuts)
            extents.append(ceil_div(extent, cut) if is_last else cuts[position + 1] // cut)
            strides.append(
                sum(
                    factor * (cut // digit.divisor)
                    for digit, factor in digits.items()
                    if digit.divisor <= cut and (digit.modulus is None or cut < digit.divisor * digit.modulus)
                )
            )
        if len(extents) == 1:
            return extents[0], strides[0]
        return tuple(extents), tuple(strides)


def index_digit(part: StridedPart, names: Sequence[str]) -> Term:
    """Return the part of an index that a `part` of a layout strides over, where `names` are those of the indices.

    >>> index_digit(strided_parts(Layout(((2, 4, 3),)), "a map")[1], ("i",)).format()
    'i floordiv 2 mod 4'
    """
    term = Term.input(names[part.mode])
    term = term // part.divisor if part.divisor > 1 else term
    return term if part.is_last else term.combine("mod", Term.number(part.extent))


def index_map_of(layout: LayoutLike, notation: str) -> IndexMap:
    """Return a strided `layout` as a map with one result, the sum of its parts; raise if `notation` cannot say it.

    >>> index_map_of(Layout((4, 8), (8, 1)) + 3, "an affine map")(1, 2)
    (13,)
    """
    parts = strided_parts(layout, notation)
    if 0 in [part.extent for part in parts]:
        raise LayoutError(f"{layout} has no elements, so there is nothing that {notation} could map")
    names = tuple([f"d{k}" for k in range(max([part.mode for part in parts], default=-1) + 1)])
    terms = []
    for part in parts:
        if part.stride and part.extent != 1:
            digit = index_digit(part, names)
            terms.append(digit.combine("*", Term.number(part.stride)) if part.stride != 1 else digit)
    if (offset := offset_of(layout)) or not terms:
        terms.append(Term.number(offset))
    return IndexMap(names, (sum(terms[1:], terms[0]),))
