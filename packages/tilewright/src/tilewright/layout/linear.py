# SPDX-License-Identifier: Apache-2.0
"""`Linear`: a map between the bits of named axes that is linear over the field of two elements.

Registers, lanes and warps map so to the elements of a tensor, offsets in swizzled memory too: the result of a sum of
bits is the XOR of the results of the bits. All extents are powers of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import prod
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from ..display import Drawable
from ..errors import LayoutError
from .composed import ComposedLayout, Swizzle
from .index_code import IndexExpression, Language, write_index_code
from .layout import Layout, LayoutLike
from .tuples import IntOrArray, as_integer, leaves

# Matrices over the field of two elements: a matrix is the list of its columns, a column the bits of an integer.


def apply_matrix(columns: Sequence[int], bits: int) -> int:
    """Return the matrix times a vector: the XOR of the columns whose bits are set.

    >>> apply_matrix([0b01, 0b11], 0b11)
    2
    """
    result, k = 0, 0
    while bits:
        if bits & 1:
            result ^= columns[k]
        bits, k = bits >> 1, k + 1
    return result


def multiply(left: Sequence[int], right: Iterable[int]) -> list[int]:
    """Return the columns of left times right.

    >>> multiply([0b01, 0b11], [0b10, 0b11])
    [3, 2]
    """
    return [apply_matrix(left, column) for column in right]


class ColumnSpace:
    """The vectors that the columns of a matrix span, and how: which columns give a vector.

    A column that depends on earlier ones is never used, so that among several answers the one with the earliest
    columns is given.

    >>> space = ColumnSpace([0b01, 0b11, 0b10])
    >>> space.rank, space.solve(0b10), space.kernel
    (2, 3, [7])
    """

    def __init__(self, columns: Sequence[int]) -> None:
        self._pivots: dict[int, tuple[int, int]] = {}  # by highest bit: a vector, and the columns that give it
        self.kernel: list[int] = []
        for k, column in enumerate(columns):
            rest, used = self._reduce(column)
            if rest:
                self._pivots[rest.bit_length()] = rest, used | 1 << k
            else:
                self.kernel.append(used | 1 << k)

    @property
    def rank(self) -> int:
        """The number of independent columns.

        >>> ColumnSpace([1, 1]).rank
        1
        """
        return len(self._pivots)

    def _reduce(self, vector: int) -> tuple[int, int]:
        """Return the rest of a vector outside the space, and the columns that give the rest of it."""
        rest, used = 0, 0
        while vector:
            pivot = self._pivots.get(vector.bit_length())
            if pivot is None:
                top = 1 << (vector.bit_length() - 1)
                rest, vector = rest | top, vector ^ top
            else:
                vector, used = vector ^ pivot[0], used ^ pivot[1]
        return rest, used

    def solve(self, vector: int) -> int | None:
        """Return the columns, as bits, whose XOR is a vector; None if there are none.

        >>> ColumnSpace([0b01]).solve(0b10) is None
        True
        """
        rest, used = self._reduce(vector)
        return None if rest else used


Bases: TypeAlias = "Mapping[str, Sequence[Sequence[int] | int]]"


class Linear(Drawable):
    """A map from the bits of input axes to the bits of output axes, all of them named.

    `bases` gives, for each input axis, the image of each of its bits, low bit first: one number per output axis.
    `outputs` gives the extent of each output axis. The map of any input is the XOR of the maps of its bits.

    >>> tile = Linear({"register": [(0, 1)], "lane": [(0, 2), (1, 0)]}, {"row": 2, "column": 4})
    >>> tile(register=1, lane=3), tile.is_bijective
    ({'row': 1, 'column': 3}, True)
    """

    __slots__ = ("_columns", "_inputs", "_outputs")

    def __init__(self, bases: Bases, outputs: Mapping[str, int]) -> None:
        self._outputs = {str(name): _bit_count(extent, f"the extent of {name!r}") for name, extent in outputs.items()}
        self._inputs = {str(name): len(images) for name, images in bases.items()}
        self._columns = [self._pack(image, name) for name, images in bases.items() for image in images]

    @classmethod
    def _of_columns(cls, inputs: Mapping[str, int], outputs: Mapping[str, int], columns: Sequence[int]) -> Linear:
        linear = cls.__new__(cls)
        linear._inputs, linear._outputs, linear._columns = dict(inputs), dict(outputs), list(columns)
        return linear

    def _pack(self, image: Sequence[int] | int, name: str) -> int:
        parts = (image,) if isinstance(image, int) else tuple(image)
        if len(parts) != len(self._outputs):
            raise LayoutError(f"a basis of {name!r} needs one number per axis of {list(self._outputs)}, got {parts}")
        return _pack_bits(self._outputs, dict(zip(self._outputs, parts, strict=True)), "a basis")

    @classmethod
    def identity(cls, extent: int, source: str, target: str | None = None) -> Linear:
        """Return the map of `extent` values of axis `source` to the same values of axis `target`.

        >>> Linear.identity(4, "lane")(lane=3)
        {'lane': 3}
        """
        bits = _bit_count(extent, "an extent")
        return cls._of_columns({source: bits}, {target or source: bits}, [1 << k for k in range(bits)])

    @classmethod
    def of(cls, layout: LayoutLike | Swizzle, extents: int | None = None, axis: str = "offset") -> Linear:
        """Return a strided or swizzled layout as a linear map from its modes `dim0`, `dim1`, ... to `axis`.

        Raises a `LayoutError` if it is not linear: extents must be powers of two, and no bit may carry into another.
        A `Swizzle` takes `extents`, the number of offsets; its input is also `axis`.

        >>> from tilewright import compose, row_major
        >>> linear = Linear.of(compose(Swizzle(1, 0, 2), row_major(4, 4)))
        >>> linear.bases
        {'dim0': [(5,), (8,)], 'dim1': [(1,), (2,)]}
        """
        if isinstance(layout, Swizzle):
            count = layout.size if extents is None else extents
            bits = _bit_count(count, "the number of offsets")
            if count % layout.size:
                raise LayoutError(f"{layout} permutes blocks of {layout.size} offsets, which {count} does not hold")
            return cls._of_columns({axis: bits}, {axis: bits}, [int(layout(1 << k)) for k in range(bits)])
        return _linear_of_layout(layout, axis)

    # Properties.

    @property
    def inputs(self) -> dict[str, int]:
        """The extents of the input axes.

        >>> Linear.identity(8, "lane", "row").inputs
        {'lane': 8}
        """
        return {name: 1 << bits for name, bits in self._inputs.items()}

    @property
    def outputs(self) -> dict[str, int]:
        """The extents of the output axes.

        >>> Linear.identity(8, "lane", "row").outputs
        {'row': 8}
        """
        return {name: 1 << bits for name, bits in self._outputs.items()}

    @property
    def bases(self) -> dict[str, list[tuple[int, ...]]]:
        """The image of each bit of each input axis, low bit first.

        >>> Linear.identity(4, "lane", "row").bases
        {'lane': [(1,), (2,)]}
        """
        columns = iter(self._columns)
        return {
            name: [tuple(_unpack_bits(self._outputs, next(columns)).values()) for _ in range(bits)]
            for name, bits in self._inputs.items()
        }

    @property
    def rank(self) -> int:
        """The number of output bits that can be reached independently.

        >>> Linear({"lane": [1, 1]}, {"row": 4}).rank
        1
        """
        return ColumnSpace(self._columns).rank

    @property
    def is_injective(self) -> bool:
        """Whether different inputs have different outputs.

        >>> Linear({"lane": [1, 1]}, {"row": 4}).is_injective
        False
        """
        return self.rank == len(self._columns)

    @property
    def is_surjective(self) -> bool:
        """Whether every output is reached.

        >>> Linear({"lane": [1, 0]}, {"row": 2}).is_surjective
        True
        """
        return self.rank == sum(self._outputs.values())

    @property
    def is_bijective(self) -> bool:
        """Whether the map has an inverse.

        >>> Linear({"lane": [2, 1]}, {"row": 4}).is_bijective
        True
        """
        return self.is_injective and self.is_surjective

    def kernel(self) -> list[dict[str, int]]:
        """Return a basis of the inputs that map to zero: those that hold the same elements as input zero.

        >>> Linear({"register": [1], "lane": [2, 1]}, {"row": 4}).kernel()
        [{'register': 1, 'lane': 2}]
        """
        return [_unpack_bits(self._inputs, bits) for bits in ColumnSpace(self._columns).kernel]

    def matrix(self) -> list[list[int]]:
        """Return the matrix: a row for each output bit, a column for each input bit, low bits of first axes first.

        >>> Linear({"lane": [1, 3]}, {"row": 4}).matrix()
        [[1, 1], [0, 1]]
        """
        return [[column >> row & 1 for column in self._columns] for row in range(sum(self._outputs.values()))]

    # Maps.

    def __call__(self, **inputs: IntOrArray) -> dict[str, Any]:
        """Return the output of some inputs, by name: integers or arrays of integers.

        >>> Linear({"lane": [(0, 1), (1, 1)]}, {"row": 2, "column": 2})(lane=np.arange(4))["column"].tolist()
        [0, 1, 1, 0]
        """
        if set(inputs) != set(self._inputs):
            raise LayoutError(f"expected one number for each of {list(self._inputs)}, got {list(inputs)}")
        if all(isinstance(value, (int, np.integer)) for value in inputs.values()):
            bits = _pack_bits(self._inputs, {name: int(value) for name, value in inputs.items()}, "an input")
            return dict(_unpack_bits(self._outputs, apply_matrix(self._columns, bits)))
        return self._apply_arrays({name: np.asarray(value) for name, value in inputs.items()})

    def _apply_arrays(self, inputs: dict[str, Any]) -> dict[str, Any]:
        total, columns = np.zeros((), dtype=np.int64), iter(self._columns)
        for name, bits in self._inputs.items():
            values = inputs[name]
            if values.dtype.kind not in "iu" or (
                values.size and not 0 <= int(values.min()) <= int(values.max()) < 1 << bits
            ):
                raise LayoutError(f"{name!r} takes integers from 0 to {(1 << bits) - 1}")
            for k in range(bits):
                total = total ^ np.where(values >> k & 1, next(columns), 0)
        return _unpack_bits(self._outputs, total)

    def then(self, outer: Linear) -> Linear:
        """Return the map that applies this one, and then `outer`, whose input axes must be this one's output axes.

        >>> Linear.identity(4, "lane", "row").then(Linear({"row": [2, 1]}, {"offset": 4})).bases
        {'lane': [(2,), (1,)]}
        """
        if set(self._outputs) != set(outer._inputs) or any(
            bits > outer._inputs[name] for name, bits in self._outputs.items()
        ):
            raise LayoutError(f"cannot compose a map to {self.outputs} with one that takes {outer.inputs}")
        moved = [_pack_bits(outer._inputs, _unpack_bits(self._outputs, column), "a value") for column in self._columns]
        return Linear._of_columns(self._inputs, outer._outputs, multiply(outer._columns, moved))

    def inverse(self) -> Linear:
        """Return the inverse; of a map that reaches all outputs in several ways, a right inverse.

        Of several inputs with the same output it gives the one with the earliest bits: repeated lanes are not used.

        >>> Linear({"lane": [2, 1]}, {"row": 4}).inverse().bases
        {'row': [(2,), (1,)]}
        """
        return Linear._of_columns(
            self._outputs, self._outputs, [1 << k for k in range(sum(self._outputs.values()))]
        ).divide(self)

    def divide(self, outer: Linear) -> Linear:
        """Return the map C for which `C.then(outer)` is this map.

        `outer` must have the same output axes, and must reach every output of this map.

        >>> registers = Linear({"register": [1], "lane": [2]}, {"column": 4})
        >>> memory = Linear({"offset": [2, 1]}, {"column": 4})
        >>> registers.divide(memory).bases
        {'register': [(2,)], 'lane': [(1,)]}
        """
        if set(self._outputs) != set(outer._outputs):
            raise LayoutError(f"both maps must have the same output axes, got {self.outputs} and {outer.outputs}")
        space, columns = ColumnSpace(outer._columns), []
        for column in self._columns:
            values = _unpack_bits(self._outputs, column)
            solution = space.solve(_pack_bits(outer._outputs, values, "a value"))
            if solution is None:
                raise LayoutError(
                    f"the map from {outer.inputs} does not reach {values}, so it cannot be inverted there"
                )
            columns.append(solution)
        return Linear._of_columns(self._inputs, outer._inputs, columns)

    def __mul__(self, other: Linear) -> Linear:
        """Return the product: `other` acts on the bits above this map's, axis by axis.

        >>> (Linear.identity(2, "lane", "row") * Linear.identity(4, "lane", "row")).inputs
        {'lane': 8}
        """
        if not isinstance(other, Linear):
            return NotImplemented
        outputs = {
            name: self._outputs.get(name, 0) + other._outputs.get(name, 0)
            for name in [*self._outputs, *(name for name in other._outputs if name not in self._outputs)]
        }
        low, high = iter(self._columns), iter(other._columns)
        names = [*self._inputs, *(name for name in other._inputs if name not in self._inputs)]
        columns: list[int] = []
        for name in names:
            columns += [
                _pack_bits(outputs, _unpack_bits(self._outputs, next(low)), "a value")
                for _ in range(self._inputs.get(name, 0))
            ]
            for _ in range(other._inputs.get(name, 0)):
                values = _unpack_bits(other._outputs, next(high))
                shifted = {axis: value << self._outputs.get(axis, 0) for axis, value in values.items()}
                columns.append(_pack_bits(outputs, shifted, "a value"))
        inputs = {name: self._inputs.get(name, 0) + other._inputs.get(name, 0) for name in names}
        return Linear._of_columns(inputs, outputs, columns)

    # Other forms.

    def to_layout(self) -> LayoutLike:
        """Return the map as a layout from its inputs, one mode per axis, to its only output axis.

        It is strided if no bits are mixed; a `Swizzle` in front of a strided layout where that is all; else it raises.

        >>> Linear({"row": [4, 8], "column": [1, 2]}, {"offset": 16}).to_layout()
        Layout(((2, 2), (2, 2)), ((4, 8), (1, 2)))
        >>> print(Linear.of(ComposedLayout(Swizzle(1, 0, 2), Layout((4, 4), (4, 1)))).to_layout())
        Sw<1,0,2> o ((2,2),(2,2)):((4,8),(1,2))
        """
        if len(self._outputs) != 1:
            raise LayoutError(f"a layout has one output axis, this map has {list(self._outputs)}")
        for swizzle in _swizzles(sum(self._outputs.values()), self._columns):
            plain = self._columns if swizzle is None else [int(swizzle(column)) for column in self._columns]
            if all(column & (column - 1) == 0 for column in plain):
                strides = iter(plain)
                modes = [tuple([next(strides) for _ in range(bits)]) for bits in self._inputs.values()]
                strided = Layout(
                    tuple([(2,) * len(mode) if mode else 1 for mode in modes]), tuple([mode or 0 for mode in modes])
                )
                return strided if swizzle is None else ComposedLayout(swizzle, strided)
        raise LayoutError(f"{self!r} mixes bits in another way than one swizzle of a strided layout")

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the only output as an expression of the inputs, `arguments`.

        >>> print(Linear({"i": [1, 3]}, {"offset": 4}).index_expression((IndexExpression.argument("i"),)))
        (i & 1) ^ (((i >> 1) & 1) * 3)
        """
        if len(self._outputs) != 1:
            raise LayoutError(f"an index function has one result, this map has {list(self._outputs)}")
        total, columns = IndexExpression.constant(0), iter(self._columns)
        for argument, bits in zip(arguments, self._inputs.values(), strict=True):
            for k in range(bits):
                total = total ^ ((argument >> k & 1) * next(columns))
        return total

    def code(self, language: Language = "cuda", name: str = "offset") -> str:
        """Return the only output as a function `name` of the inputs in a `language`; see `LayoutLike.code`.

        >>> print(Linear({"i": [2, 1]}, {"offset": 4}).code("python"))
        def offset(i0):
            return ((i0 & 1) * 2) ^ ((i0 >> 1) & 1)
        """
        is_wide = max([*self._inputs.values(), *self._outputs.values()], default=0) > 31
        return write_index_code(self, len(self._inputs), language, name, is_wide)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return tuple(self._inputs.items()), tuple(self._outputs.items()), tuple(self._columns)

    def __getstate__(self) -> tuple[Any, ...]:
        return self._inputs, self._outputs, self._columns

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._inputs, self._outputs, self._columns = state

    def __repr__(self) -> str:
        return f"Linear({self.bases!r}, {self.outputs!r})"

    def __str__(self) -> str:
        lines = [
            f"{name}={1 << k} -> {image if len(image) != 1 else image[0]}"
            for name, images in self.bases.items()
            for k, image in enumerate(images)
        ]
        return "\n".join([*lines, "to " + ", ".join([f"{name} ({extent})" for name, extent in self.outputs.items()])])


def _bit_count(extent: object, what: str) -> int:
    count = as_integer(extent, what)
    if count < 1 or count & (count - 1):
        raise LayoutError(f"{what} must be a power of two, got {count}")
    return int(count).bit_length() - 1


def _pack_bits(axes: Mapping[str, int], values: Mapping[str, int], what: str) -> int:
    """Return the values of axes as one number, the first axis lowest; raise if one has too many bits."""
    packed, shift = 0, 0
    for name, bits in axes.items():
        value = as_integer(values[name], what)
        if not 0 <= value < 1 << bits:
            raise LayoutError(f"{what} on axis {name!r} takes 0 to {(1 << bits) - 1}, got {value}")
        packed, shift = packed | int(value) << shift, shift + bits
    return packed


def _unpack_bits(axes: Mapping[str, int], packed: Any) -> dict[str, Any]:
    values, shift = {}, 0
    for name, bits in axes.items():
        values[name], shift = packed >> shift & ((1 << bits) - 1), shift + bits
    return values


def _linear_of_layout(layout: LayoutLike, axis: str) -> Linear:
    """Return a layout as a linear map, proved to be one, over all of its modes."""
    if layout.axes or layout.is_replicated or layout._has_padding():
        raise LayoutError(f"{layout} is not linear: it has named axes, replicas or padding")
    modes = [layout.mode(k).size for k in range(int(layout.rank))]
    inputs = {f"dim{k}": _bit_count(size, f"the size of mode {k}") for k, size in enumerate(modes)}
    zero = (0,) * len(modes)
    if modes and layout(*zero) != 0:
        raise LayoutError(f"{layout} is not linear: its first element is at {layout(*zero)}, not at 0")
    columns = [
        int(layout(*zero[:k], 1 << bit, *zero[k + 1 :]))
        for k, bits in enumerate(inputs.values())
        for bit in range(bits)
    ]
    if min(columns, default=0) < 0 or not _is_xor_of_columns(layout, columns, modes):
        raise LayoutError(f"{layout} is not linear: the bits of its coordinates do not combine by XOR")
    return Linear._of_columns(inputs, {axis: max(columns, default=0).bit_length()}, columns)


def _is_xor_of_columns(layout: LayoutLike, columns: Sequence[int], modes: Sequence[int]) -> bool:
    """Return whether a layout is the XOR of its columns at every coordinate."""
    parts: list[Swizzle] = []
    while isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        parts, layout = [*parts, layout.outer], layout.inner
    if isinstance(layout, Layout):  # swizzles are linear, and a sum without common bits is a XOR
        pairs = [*zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
        strides = [stride << k for extent, stride in pairs for k in range(int(extent).bit_length() - 1)]
        extents_fit = all(extent & (extent - 1) == 0 for extent, _ in pairs)
        if extents_fit and sum(strides) == reduce(or_, strides, 0):
            return True
    if prod(modes) > 1 << 22:
        raise LayoutError(f"{layout} is too large to be compared with a linear map, element by element")
    grid = np.arange(prod(modes), dtype=np.int64)
    expected = np.zeros_like(grid)
    for k, column in enumerate(columns):
        expected ^= np.where(grid >> k & 1, column, 0)
    actual: Any = layout(grid)
    for swizzle in reversed(parts):
        actual = swizzle(actual)
    return bool(np.array_equal(actual, expected))


def _swizzles(bits: int, columns: Sequence[int]) -> list[Swizzle | None]:
    """Return the swizzles that may turn columns into single bits: none first, then all that fit."""
    if all(column & (column - 1) == 0 for column in columns):
        return [None]
    return [
        Swizzle(width, base, shift * sign)
        for width in range(1, bits)
        for base in range(bits - width)
        for shift in range(width, bits - base - width + 1)
        for sign in (1, -1)
    ]
