# SPDX-License-Identifier: Apache-2.0
"""Maps from indices to indices: sums, multiples, divisions and remainders, as MLIR and TVM write them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._integers import ceil_div
from .._text import MAX_INTEGER, MAX_RANK, TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike, Place, as_tuple, compose, leaves, row_major, with_logical_shape

# The parts of a strided layout: what XLA, oneDNN, Mosaic, TVM and MLIR write, each in its own words.


class StridedPart(NamedTuple):
    """A leaf of a mode: `extent` values of (coordinate // `divisor`), `stride` elements apart.

    `is_last` tells whether it takes all that is left of the coordinate: no other leaf of its mode follows.

    >>> part = StridedPart(0, 2, 4, 16, True)
    >>> part.stride
    16
    """

    mode: int
    divisor: int
    extent: int
    stride: int
    is_last: bool


def strided_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a strided `layout`; raise if it is something else, which `notation` cannot express.

    >>> [part.stride for part in strided_parts(Layout(((2, 4), 8), ((1, 16), 2)), "XLA")]
    [1, 16, 2]
    """
    if not isinstance(layout, Layout) or layout.axes or layout.is_replicated:
        raise LayoutError(f"{layout} is not a strided layout of plain offsets, which is all that {notation} can say")
    parts = []
    for k, (shape, stride) in enumerate(zip(as_tuple(layout.shape), as_tuple(layout.stride), strict=True)):
        pairs, divisor = list(zip(leaves(shape), leaves(stride), strict=True)), 1
        last = max([position for position, (extent, _) in enumerate(pairs) if extent != 1], default=0)
        for position, (extent, step) in enumerate(pairs):
            parts.append(StridedPart(k, divisor, int(extent), int(step), position >= last))
            divisor *= int(extent)
    if any(max(part.extent, abs(part.stride)) > MAX_INTEGER for part in parts):
        raise LayoutError(f"{layout} has numbers beyond 64 bits, which {notation} does not have")
    return parts


def compact_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a compact `layout` in order of their strides, the largest first, without leaves of extent 1.

    Raises if it has an offset, gaps or overlaps, which `notation` cannot express.

    >>> [part.extent for part in compact_parts(Layout(((2, 4), 8), ((1, 16), 2)), "XLA")]
    [4, 8, 2]
    """
    parts = [part for part in strided_parts(layout, notation) if part.extent != 1]
    if offset := offset_of(layout):
        raise LayoutError(f"{layout} begins at {offset}; arrays of {notation} begin at 0")
    ordered, expected = sorted(parts, key=lambda part: part.stride, reverse=True), 1
    for part in reversed(ordered):
        if part.stride != expected:
            raise LayoutError(f"{layout} has gaps or overlaps at stride {part.stride}, where {notation} has {expected}")
        expected *= part.extent
    return ordered


def tiled_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a compact `layout` as `compact_parts` does; raise if they are not tiles within tiles.

    >>> [part.extent for part in tiled_parts(Layout(((2, 4), 8), ((1, 16), 2)), "XLA")]
    [4, 8, 2]
    """
    parts, divisors = compact_parts(layout, notation), dict[int, int]()
    if 0 in (shape := logical_extents(layout)) or not shape:
        raise LayoutError(f"{layout} has no elements or no dimensions, so {notation} has no tiles for it")
    for part in parts:
        if part.divisor > divisors.get(part.mode, part.divisor):
            raise LayoutError(
                f"{layout} has neighbours along mode {part.mode} further apart inside tiles than between;"
                f" tiles of {notation} are the other way round"
            )
        divisors[part.mode] = part.divisor
    return parts


def offset_of(layout: LayoutLike) -> int:
    """Return where a layout of plain offsets begins.

    >>> offset_of(Layout(4) + 3)
    3
    """
    return int(getattr(layout, "offset", 0))


def logical_extents(layout: Any) -> tuple[int, ...]:
    """Return the extents of the modes of a `layout`, without padding.

    >>> logical_extents(Layout(((2, 4), 3)))
    (8, 3)
    """
    return tuple([int(extent) for extent in as_tuple(layout.logical_shape)])


def stored_extents(layout: LayoutLike) -> tuple[int, ...]:
    """Return the extents of the modes of a `layout`, with padding.

    >>> from tilewright import with_logical_shape
    >>> stored_extents(with_logical_shape(Layout(((2, 4), 3)), (7, 3)))
    (8, 3)
    """
    return tuple([prod([int(extent) for extent in leaves(mode)]) for mode in as_tuple(layout.shape)])


def nested_tiles(parts: Sequence[StridedPart], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the tiles within tiles that store compact `parts` as they are, of dimensions that `order` lists.

    Both go from major to minor. Splitting by a tile stores the dimensions in order, first the counts and then the
    tile, so every tile begins where the order of the parts begins again; it reaches back to the most major dimension
    that has a part after that.

    >>> faces = Layout(((16, 2, 2), (16, 2, 2)), ((16, 512, 2048), (1, 256, 1024)))
    >>> nested_tiles(tiled_parts(faces, "XLA"), (0, 1))
    ((32, 32), (16, 16))
    """
    levels: list[dict[int, int]] = [{}]  # the extents of dimensions, by their position in the order
    position = -1
    for part in parts:
        here = order.index(part.mode)
        if here < position:
            levels.append({})
        levels[-1][here] = levels[-1].get(here, 1) * part.extent
        position = here
    tiles = []
    for k in range(1, len(levels)):
        inner = levels[k:]
        first = min(min(level) for level in inner)
        tiles.append(tuple([prod([level.get(d, 1) for level in inner]) for d in range(first, len(order))]))
    return tuple(tiles)


MAX_DEPTH = 100  # of nested operations
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
    depth: int = field(default=0, compare=False, repr=False)  # nested operations

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
            raise LayoutError(f"an expression has at most {MAX_DEPTH} nested operations")
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
        right, added = self.right.digits()
        if self.operation in ("+", "-"):
            sign = 1 if self.operation == "+" else -1
            total = dict(left)
            for digit, factor in right.items():
                total[digit] = total.get(digit, 0) + sign * factor
            return {digit: factor for digit, factor in total.items() if factor}, constant + sign * added
        if self.operation == "*":
            digits, factor, offset = (left, added, constant) if not right else (right, constant, added)
            return {digit: old * factor for digit, old in digits.items() if factor}, offset * factor
        if len(left) != 1 or constant or next(iter(left.values())) != 1 or self.operation == "ceildiv":
            raise LayoutError(f"{self.operation} of a sum is not strided")
        (digit,) = left
        return {digit.divide(added) if self.operation == "floordiv" else digit.reduce(added): 1}, 0


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

    def layout(self, shape: Sequence[int]) -> LayoutLike:
        """Return the layout of an array of a `shape` whose mapped array is stored row by row; raise if there is none.

        >>> i, j = Term.input("i"), Term.input("j")
        >>> IndexMap(("i", "j"), (j, i)).layout((2, 3))
        Layout((2, 3), (1, 2))
        """
        mapped = self.mapped_shape(shape)
        total: dict[IndexDigit, int] = {}
        offset = 0
        for k, result in enumerate(self.results):
            stride = prod(mapped[k + 1 :])
            digits, constant = result.digits()
            offset += constant * stride
            for digit, factor in digits.items():
                total[digit] = total.get(digit, 0) + factor * stride
        modes = [self._mode(name, extent, total) for name, extent in zip(self.inputs, shape, strict=True)]
        stored = Layout(tuple([extents for extents, _ in modes]), tuple([strides for _, strides in modes]))
        stored_shape = [prod(extents) if isinstance(extents, tuple) else extents for extents, _ in modes]
        layout = stored if stored_shape == list(shape) else with_logical_shape(stored, tuple(shape))
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
    """Return the part of an index that a `part` of a layout strides over, where `names` are the names of the indices.

    >>> index_digit(strided_parts(Layout(((2, 4, 3),)), "a map")[1], ("i",)).format()
    'i floordiv 2 mod 4'
    """
    term = Term.input(names[part.mode])
    term = term // part.divisor if part.divisor > 1 else term
    return term if part.is_last else term.combine("mod", Term.number(part.extent))


def index_map_of(layout: LayoutLike, notation: str) -> IndexMap:
    """Return a strided `layout` as a map with one result, the sum of its parts; raise if `notation` cannot express it.

    >>> index_map_of(Layout((4, 8), (8, 1)) + 3, "an affine map")(1, 2)
    (13,)
    """
    parts = strided_parts(layout, notation)
    if 0 in [part.extent for part in parts]:
        raise LayoutError(f"{layout} has no elements, so {notation} has nothing to map")
    names = tuple([f"d{k}" for k in range(max([part.mode for part in parts], default=-1) + 1)])
    terms = []
    for part in parts:
        if part.stride and part.extent != 1:
            digit = index_digit(part, names)
            terms.append(digit.combine("*", Term.number(part.stride)) if part.stride != 1 else digit)
    if (offset := offset_of(layout)) or not terms:
        terms.append(Term.number(offset))
    return IndexMap(names, (sum(terms[1:], terms[0]),))


# MLIR's affine maps with divisions, and memrefs: `affine_map<...>`, `memref<4x8xf32, strided<[64, 1]>>`.

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SPACE = re.compile(r"\d+|\"[^\"\\]*\"|#[\w.$-]+", re.ASCII)
_PRODUCT = re.compile(r"\*|//|%|floordiv\b|ceildiv\b|mod\b")
_SUM = re.compile(r"\+|-(?!>)")
_MAX_DEPTH = 64


def parse_index_expressions(text: str) -> IndexMap:
    """Return the map of a `text`, `affine_map<(d0, d1)[s0] -> (d0 floordiv 8)>` or the part inside; names are free.

    >>> parse_index_expressions("affine_map<(i, j) -> (i * 8 + j floordiv 2)>")(2, 5)
    (18,)
    """
    cursor = TextCursor(text, "an affine map")
    result = read_index_expressions(cursor)
    cursor.expect_end()
    return result


def read_index_expressions(cursor: TextCursor) -> IndexMap:
    """Return the map at a `cursor`.

    >>> read_index_expressions(TextCursor("(d0) -> (d0 mod 4)>", "a map")).inputs
    ('d0',)
    """
    is_wrapped = cursor.accept("affine_map")
    if is_wrapped:
        cursor.expect("<")
    inputs = _read_names(cursor, "(", ")")
    symbols = _read_names(cursor, "[", "]") if cursor.peek("[") else ()
    if len({*inputs, *symbols}) != len(inputs) + len(symbols):
        raise FileFormatError(f"{cursor.name}: every name once, got {[*inputs, *symbols]}")
    cursor.expect("->", "(")
    results = cursor.items(")", lambda: _read_sum(cursor, (*inputs, *symbols), 0))
    if is_wrapped:
        cursor.expect(">")
    return IndexMap(inputs, tuple(results), symbols)


def _read_names(cursor: TextCursor, opening: str, closing: str) -> tuple[str, ...]:
    cursor.expect(opening)
    return tuple(cursor.items(closing, lambda: cursor.take(_NAME, "a name")))


def _read_sum(cursor: TextCursor, names: tuple[str, ...], depth: int) -> Term:
    term = _read_product(cursor, names, depth)
    while match := cursor.match(_SUM):
        term = _combine(cursor, term, match[0], _read_product(cursor, names, depth))
    return term


def _read_product(cursor: TextCursor, names: tuple[str, ...], depth: int) -> Term:
    term = _read_factor(cursor, names, depth)
    while match := cursor.match(_PRODUCT):
        term = _combine(cursor, term, match[0], _read_factor(cursor, names, depth))
    return term


def _combine(cursor: TextCursor, left: Term, operation: str, right: Term) -> Term:
    try:
        return left.combine(_OPERATIONS.get(operation, operation), right)
    except LayoutError as problem:
        raise FileFormatError(f"{cursor.name}: {problem}, before character {cursor.at + 1}") from None


def _read_factor(cursor: TextCursor, names: tuple[str, ...], depth: int) -> Term:
    if depth > _MAX_DEPTH:
        cursor.fail(f"at most {_MAX_DEPTH} nested parentheses")
    if cursor.match(_CAST) or cursor.accept("("):
        term = _read_sum(cursor, names, depth + 1)
        cursor.expect(")")
        return term
    if cursor.accept("-"):
        return _combine(cursor, Term.number(-1), "*", _read_factor(cursor, names, depth + 1))
    start = cursor.skip_space()
    if match := cursor.match(_NAME):
        if match[0] not in names:
            cursor.at = start
            cursor.fail(f"one of {', '.join(names)}")
        return Term.input(match[0])
    return Term.number(cursor.integer("an index, or an integer that is not beyond 64 bits,"))


def write_index_expressions(index_map: IndexMap) -> str:
    """Return a map as MLIR writes it.

    >>> write_index_expressions(parse_index_expressions("(d0) -> (d0 floordiv 4 + 1)"))
    'affine_map<(d0) -> (d0 floordiv 4 + 1)>'
    """
    symbols = f"[{', '.join(index_map.symbols)}]" if index_map.symbols else ""
    results = ", ".join([result.format() for result in index_map.results])
    return f"affine_map<({', '.join(index_map.inputs)}){symbols} -> ({results})>"


def write_affine_map(layout: LayoutLike) -> str:
    """Return a strided `layout` as MLIR's affine map.

    >>> write_affine_map(Layout((4, 8), (8, 1)))
    'affine_map<(d0, d1) -> (d0 * 8 + d1)>'
    """
    return write_index_expressions(index_map_of(layout, "an affine map"))


@dataclass(frozen=True)
class StridedMemref:
    """A memref: shape, element type, and an offset with strides or an affine map; None is a dynamic number, `?`.

    `space` is the text of its memory space, if any.

    >>> memref = parse_strided_memref("memref<4x8xf32, strided<[64, 1], offset: 5>>")
    >>> memref.layout(1, 2), memref.element, memref.space
    (71, 'f32', '')
    """

    shape: tuple[int | None, ...]
    element: str
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    index_map: IndexMap | None = None
    space: str = ""

    @property
    def layout(self) -> LayoutLike:
        """The layout from indices to elements; raises if one of its numbers is dynamic.

        >>> parse_strided_memref("memref<2x3xf32>").layout
        Layout((2, 3), (3, 1))
        """
        extents = [extent for extent in self.shape if extent is not None]
        if len(extents) != len(self.shape) or self.offset is None or (self.strides and None in self.strides):
            raise LayoutError(f"{self} has dynamic numbers; give them values instead of ?")
        if self.index_map is not None:
            return self.index_map.layout(extents)
        if self.strides is None:
            return row_major(*extents) if extents else Layout((), ())
        strides = [stride for stride in self.strides if stride is not None]
        layout = Layout(tuple(extents), tuple(strides))
        return layout + self.offset if self.offset else layout

    def __str__(self) -> str:
        shape = "".join([f"{_number_text(extent)}x" for extent in self.shape])
        parts = [f"{shape}{self.element}"]
        if self.strides is not None:
            offset = f", offset: {_number_text(self.offset)}" if self.offset != 0 else ""
            parts.append(f"strided<[{', '.join(map(_number_text, self.strides))}]{offset}>")
        if self.index_map is not None:
            parts.append(write_index_expressions(self.index_map))
        if self.space:
            parts.append(self.space)
        return f"memref<{', '.join(parts)}>"


def _number_text(number: int | None) -> str:
    return "?" if number is None else str(number)


def parse_strided_memref(text: str) -> StridedMemref:
    """Return the memref that a `text` describes.

    >>> str(parse_strided_memref("memref<4x?xf32, strided<[?, 1]>, 3>"))
    'memref<4x?xf32, strided<[?, 1]>, 3>'
    """
    cursor = TextCursor(text, "a memref")
    if cursor.peek("strided"):
        cursor.fail("a memref with a shape around the strides, such as memref<8x64xf32, strided<[64, 1]>>, or a shape,")
    cursor.expect("memref", "<")
    shape = cursor.extents()
    element = cursor.take(_NAME, "an element type such as f32")
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    index_map, space = None, ""
    more = cursor.accept(",")
    if more and cursor.accept("strided"):
        strides, offset = _read_strided(cursor)
        more = cursor.accept(",")
    elif more and cursor.peek("affine_map"):
        index_map = read_index_expressions(cursor)
        more = cursor.accept(",")
    if more:
        space = cursor.take(_SPACE, 'a memory space such as 3, "l1" or #gpu.address_space<workgroup>')
        if space.startswith("#") and cursor.peek("<"):
            space += cursor.raw()
        elif space.startswith("#") and "." not in space:
            raise FileFormatError(
                f"{cursor.name}: {space} may be a map or a memory space; write its definition instead"
            )
    cursor.expect(">")
    cursor.expect_end()
    if strides is not None and len(strides) != len(shape):
        raise FileFormatError(f"{cursor.name}: {len(shape)} extents need as many strides, got {len(strides)}")
    if index_map is not None and (len(index_map.inputs) != len(shape) or index_map.symbols):
        raise FileFormatError(f"{cursor.name}: {len(shape)} extents need a map from as many indices")
    return StridedMemref(shape, element, strides, offset, index_map, space)


def _read_strided(cursor: TextCursor) -> tuple[tuple[int | None, ...], int | None]:
    cursor.expect("<", "[")
    strides = cursor.items("]", lambda: _read_number(cursor))
    offset: int | None = 0
    if cursor.accept(","):
        cursor.expect("offset", ":")
        offset = _read_number(cursor)
    cursor.expect(">")
    return tuple(strides), offset


def _read_number(cursor: TextCursor) -> int | None:
    return None if cursor.accept("?") else cursor.signed()


def write_memref(layout: LayoutLike, dtype: str = "f32") -> str:
    """Return a `layout` of elements of a `dtype` as a memref: with strides, or with a map where modes are nested.

    >>> write_memref(Layout((4, 8), (64, 1)) + 5)
    'memref<4x8xf32, strided<[64, 1], offset: 5>>'
    >>> write_memref(Layout(((2, 2), 4), ((1, 8), 2)))
    'memref<4x4xf32, affine_map<(d0, d1) -> (d0 mod 2 + d0 floordiv 2 * 8 + d1 * 2)>>'
    """
    parts, shape = strided_parts(layout, "a memref"), logical_extents(layout)
    if len(parts) == len(shape):
        return str(StridedMemref(shape, dtype, tuple([part.stride for part in parts]), offset_of(layout)))
    return str(StridedMemref(shape, dtype, index_map=index_map_of(layout, "a memref")))


# `AffineMap`: a map from coordinates to sums of their multiples, as MLIR writes it.


@dataclass(frozen=True, slots=True)
class AffineMap:
    """A map from `dims` coordinates: each result is a sum of their multiples (`coefficients`) and a constant.

    >>> fold = parse_affine_map("(d0, d1, d2) -> (d0 * 32 + d1, d2)")
    >>> fold
    AffineMap(dims=3, coefficients=((32, 1, 0), (0, 0, 1)), constants=(0, 0))
    >>> fold((2, 5, 7))
    (69, 7)
    >>> print(fold)
    (d0, d1, d2) -> (d0 * 32 + d1, d2)
    """

    dims: int
    coefficients: tuple[tuple[int, ...], ...]  # of each result, one per coordinate
    constants: tuple[int, ...]  # of each result

    def __call__(self, coord: Sequence[int]) -> tuple[int, ...]:
        pairs = zip(self.coefficients, self.constants, strict=True)
        return tuple([constant + sum(a * b for a, b in zip(row, coord, strict=True)) for row, constant in pairs])

    def extents(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return how far the results reach, each from 0, over all coordinates of `shape`.

        >>> parse_affine_map("(d0, d1) -> (d0 * 32 + d1)").extents((2, 32))
        (64,)
        """
        return tuple([last + 1 for last in self([n - 1 for n in shape])])

    def __str__(self) -> str:
        results = [_result_text(row, constant) for row, constant in zip(self.coefficients, self.constants, strict=True)]
        return f"({', '.join([f'd{k}' for k in range(self.dims)])}) -> ({', '.join(results)})"


def _result_text(row: tuple[int, ...], constant: int) -> str:
    terms = [f"d{k}" if n == 1 else f"d{k} * {n}" for k, n in enumerate(row) if n]
    text = " + ".join(terms)
    if not terms or constant > 0:
        return f"{text} + {constant}" if terms else str(constant)
    return f"{text} - {-constant}" if constant else text


def parse_affine_map(text: str) -> AffineMap:
    """Return the map of a `text` such as (d0, d1) -> (d0 * 32 + d1), with affine_map<...> around it or without.

    >>> parse_affine_map("affine_map<(d0) -> (0, d0)>").coefficients
    ((0,), (1,))
    """
    cursor = TextCursor(text, "an affine map")
    result = read_affine_map(cursor)
    cursor.expect_end()
    return result


def read_affine_map(cursor: TextCursor) -> AffineMap:
    """Return the map at a `cursor`.

    >>> read_affine_map(TextCursor("(d0) -> (d0), <1x1>", "a layout")).dims
    1
    """
    start = cursor.skip_space()
    index_map = read_index_expressions(cursor)
    dims = len(index_map.inputs)
    if index_map.inputs != tuple([f"d{k}" for k in range(dims)]) or index_map.symbols:
        cursor.at = start
        cursor.fail("a map of coordinates (d0, d1, ...)")
    rows = [_multiples(result, dims, cursor) for result in index_map.results]
    return AffineMap(dims, tuple([row for row, _ in rows]), tuple([constant for _, constant in rows]))


def _multiples(result: Term, dims: int, cursor: TextCursor) -> tuple[tuple[int, ...], int]:
    """Return the multiple of each coordinate that a result is the sum of, and the constant."""
    try:
        digits, constant = result.digits()
        if any(digit.divisor != 1 or digit.modulus is not None for digit in digits):
            raise LayoutError("it has a division")
    except LayoutError as problem:
        raise FileFormatError(
            f"{cursor.name}: {result.format()}, before character {cursor.at + 1}, is not a sum of multiples of"
            f" coordinates: {problem}"
        ) from None
    return tuple([digits.get(IndexDigit(f"d{k}"), 0) for k in range(dims)]), constant


# TVM's index maps, such as `lambda n, c, h, w: [n, c // 16, h, w, c % 16]`, in and out.

_INDEX_MAP = re.compile(r"(?:T|tir)\.index_map\s*\(")
_CAST = re.compile(r"T\.int(?:32|64)\s*\(")
_SYMBOLS = {"floordiv": "//", "mod": "%", "+": "+", "-": "-", "*": "*"}
_OPERATIONS = {symbol: operation for operation, symbol in _SYMBOLS.items()}


def parse_index_map(text: str) -> IndexMap:
    """Return the map that a `text` describes: a lambda, with `T.index_map(...)` around it or without.

    >>> blocked = parse_index_map("lambda n, c, h, w: [n, c // 16, h, w, c % 16]")
    >>> blocked(1, 27, 3, 2), blocked.layout((2, 32, 5, 7))(1, 27, 3, 2)
    ((1, 1, 3, 2, 11), 2059)
    """
    cursor = TextCursor(text, "an index map of + - * // %")
    is_wrapped = cursor.match(_INDEX_MAP) is not None
    cursor.expect("lambda")
    names = tuple(cursor.items(":", lambda: cursor.take(_NAME, "a plain name, as in lambda i, j: [j, i],")))
    if len(set(names)) != len(names):
        raise FileFormatError(f"{cursor.name}: every name once, got {[*names]}")
    results = _read_results(cursor, names)
    if is_wrapped and not cursor.accept(")"):
        cursor.fail("')', since a map is read from its lambda alone; leave out what follows it,")
    cursor.expect_end()
    return IndexMap(names, tuple(results))


def _read_results(cursor: TextCursor, names: tuple[str, ...]) -> list[Term]:
    """Return the results of a lambda: a list, a tuple, or an expression, which may begin with a parenthesis as well."""

    def read_result() -> Term:
        return _read_sum(cursor, names, 0)

    if cursor.accept("["):
        return cursor.items("]", read_result, is_python=True)
    start = cursor.skip_space()
    if cursor.accept("("):
        results = cursor.items(")", read_result, is_python=True)
        if cursor.at_end() or cursor.peek(")") or cursor.peek(","):
            return results
        cursor.at = start
    return [read_result()]


def write_index_map(index_map: IndexMap) -> str:
    """Return an `index_map` as a lambda.

    >>> write_index_map(parse_index_map("lambda c: [c // 16, c % 16]"))
    'lambda c: [c // 16, c % 16]'
    """
    for result in index_map.results:
        if unknown := result.operations() - set(_SYMBOLS):
            raise LayoutError(f"TVM's index maps have no {unknown.pop()}, as in {result.format()}")
    results = ", ".join([result.format(_SYMBOLS) for result in index_map.results])
    return f"lambda {', '.join(index_map.inputs)}: [{results}]"


def write_index_lambda(layout: LayoutLike) -> str:
    """Return a compact `layout` as TVM's index map: its parts from the outermost to the innermost.

    >>> from tilewright import Layout
    >>> write_index_lambda(Layout(((2, 2), 4), ((1, 8), 2)))
    'lambda i0, i1: [i0 // 2, i1, i0 % 2]'
    """
    parts, shape = compact_parts(layout, "TVM"), logical_extents(layout)
    names = tuple([f"i{k}" for k in range(len(shape))])
    index_map = IndexMap(names, tuple([index_digit(part, names) for part in parts]) or (Term.number(0),))
    if prod(index_map.mapped_shape(shape)) != prod(stored_extents(layout)):
        raise LayoutError(f"{layout} has more padding than its parts need; TVM's mapped arrays have none beyond that")
    return write_index_map(index_map)


# Axe's layouts, as its paper and TVM's TIRx write them: `S[(8,4,2):(4@laneid,1@laneid,1@m)] + R[2:4@warpid]`.

_TILE_LAYOUT = re.compile(r"(?:\w+\s*=\s*)?(?:\w+\.)*TileLayout\s*\(", re.ASCII)
_SHARD, _REPLICA = [re.compile(rf"(?:(?:\w+\.)*{letter}\s*)?\[", re.ASCII) for letter in "SR"]
_MEMORY_AXIS = "m"
_Iters: TypeAlias = list[tuple[int, int, str]]  # extents, strides and their axes, "" for none


def parse_axe(text: str, shape: Sequence[int] | None = None) -> LayoutLike:
    """Return the layout that a `text` of Axe describes: shards, replicas and an offset over named axes.

    Shards are the digits of a row-major index into a `shape`, their own by default. A stride without an axis is one of
    the memory, `m`, unless there are no axes at all.

    >>> print(parse_axe("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid"))
    (8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)+R[2:4@warpid]+5@warpid
    >>> print(parse_axe("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)]", (8, 16)))
    (8,(2,4,2)):(4@laneid,(1@m,1@laneid,1@warpid))
    """
    cursor = TextCursor(text, "an Axe layout")
    is_wrapped = cursor.match(_TILE_LAYOUT) is not None
    shards = _read_iters(cursor, "]" if cursor.match(_SHARD) else "")
    replicas, offsets = _Iters(), list[tuple[int, str]]()
    while cursor.accept("+"):
        if cursor.match(_REPLICA):
            replicas += _read_iters(cursor, "]")
            continue
        number, axis = _read_step(cursor)
        if not axis and cursor.accept(":"):
            replicas.append((number, *_read_step(cursor)))
        else:
            offsets.append((number, axis))
    if is_wrapped:
        cursor.expect(")")
    cursor.expect_end()
    has_axes = any(axis for *_, axis in (*shards, *replicas, *offsets))

    def place(amount: int, axis: str) -> Any:
        return Place({axis or _MEMORY_AXIS: amount}) if has_axes else amount

    extents = tuple([extent for extent, *_ in shards])
    if shape is not None and prod(shape) != prod(extents):
        raise LayoutError(f"shards of {list(extents)} do not make up the dimensions of {tuple(shape)}")
    strides = [place(amount, axis) for _, amount, axis in shards]
    offset: Any = sum([place(*step) for step in offsets], Place({}) if has_axes else 0)
    copies = [(count, place(amount, axis)) for count, amount, axis in replicas]
    try:
        order = 1 if shape is None else -1  # the digits of an index, the fastest first
        digits = Layout(extents[::order], tuple(strides[::order]), offset if offsets else 0, copies)
    except LayoutError as problem:
        raise FileFormatError(f"{cursor.name}: {problem}") from None
    return digits if shape is None else compose(digits, row_major(*shape))


def _read_iters(cursor: TextCursor, closing: str) -> _Iters:
    """Return extents with their strides, `(8,4):(4@laneid,1@laneid)`; without strides, row after row."""

    def read_list(read: Callable[[], Any]) -> list[Any]:
        if cursor.accept("("):
            return cursor.items(")", read, is_python=True)
        values = [read()]
        while len(values) < MAX_RANK and cursor.accept(","):
            values.append(read())
        return values

    extents = read_list(lambda: cursor.integer("an extent, as a number,"))
    steps = [(prod(extents[k + 1 :]), "") for k in range(len(extents))]
    if cursor.accept(":"):
        steps = read_list(lambda: _read_step(cursor))
    if not extents or min(extents) < 1 or len(steps) != len(extents):
        cursor.fail(f"as many strides as extents of at least 1, got {len(steps)} for {extents},")
    if closing:
        cursor.expect(closing)
    return [(extent, *step) for extent, step in zip(extents, steps, strict=True)]


def _read_step(cursor: TextCursor) -> tuple[int, str]:
    """Return a stride or an offset, and its axis."""
    amount = cursor.signed()
    if not cursor.accept("@"):
        return amount, ""
    cursor.accept("Axis.")  # as it is printed
    return amount, cursor.take(_NAME, "the name of an axis")
