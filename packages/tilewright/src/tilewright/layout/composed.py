# SPDX-License-Identifier: Apache-2.0
"""`ComposedLayout`: the composition of two functions that is not itself a strided layout, evaluated exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CoordinateError, LayoutError
from . import evaluation
from .axes import Axis, Offset, as_offset
from .index_code import IndexExpression
from .layout import Layout, LayoutLike, make_layout
from .properties import is_bijective
from .tuples import (
    Coordinate,
    IntArray,
    IntOrArray,
    as_int64,
    as_integer,
    index_strides,
    is_array,
    leaf_coordinates,
    leaves,
)

# `Swizzle`: an exchange of bits that spreads neighbouring rows over memory banks.

OFFSET_BITS = 63


@dataclass(frozen=True, slots=True, repr=False)
class Swizzle:
    """A function on offsets that XORs one bit field into another.

    `bits` is the width of both fields and `base` the number of low bits that stay unchanged. The field that is read
    lies `shift` bits above the field that is written (below it if negative). Applied twice it is the identity.

    >>> Swizzle(3, 0, 3)(0b010_011) == 0b010_001
    True
    >>> from tilewright import row_major, compose
    >>> print(compose(Swizzle(2, 0, 2), row_major(4, 4)))
    Sw<2,0,2> o (4,4):(4,1)
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, int(as_integer(getattr(self, name), name)))
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{self!r}: bits and base must be nonnegative")
        if self.bits + self.base + abs(self.shift) > OFFSET_BITS:
            raise LayoutError(f"{self!r} exceeds the {OFFSET_BITS} bits of an offset; use smaller fields")
        if abs(self.shift) < self.bits:
            raise LayoutError(
                f"{self!r}: the two fields of {self.bits} bits overlap; |shift| must be at least {self.bits}"
            )

    @property
    def source_mask(self) -> int:
        """The bits that are read.

        >>> bin(Swizzle(3, 0, 3).source_mask)
        '0b111000'
        """
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def target_mask(self) -> int:
        """The bits that are written.

        >>> bin(Swizzle(3, 0, 3).target_mask)
        '0b111'
        """
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    @property
    def size(self) -> int:
        """The size of the blocks of offsets that the swizzle maps to themselves.

        >>> Swizzle(3, 0, 3).size
        64
        """
        return 1 << (self.bits + self.base + abs(self.shift))

    @property
    def block(self) -> int:
        """The size of the smallest blocks of offsets that the swizzle maps to themselves.

        Bits above a block may decide how it is permuted.

        >>> Swizzle(3, 0, 3).block, Swizzle(3, 0, -3).block
        (8, 64)
        """
        return 1 << self.target_mask.bit_length()

    @property
    def cosize(self) -> int:
        """`size`: a swizzle is a bijection on each block.

        >>> Swizzle(3, 0, 3).cosize
        64
        """
        return self.size

    def __call__(self, offset: IntOrArray) -> IntOrArray:
        """Return the swizzled offset; arrays of integers work too.

        >>> [Swizzle(1, 0, 1)(x) for x in range(4)]
        [0, 1, 3, 2]
        """
        if not is_array(offset):
            offset = int(as_integer(offset, "the offset"))
        elif offset.dtype.kind in "iu":
            offset = as_int64(offset)
        else:
            raise TypeError(f"a swizzle takes integers, got an array of {offset.dtype}")
        source = offset & self.source_mask
        return offset ^ (source >> self.shift if self.shift >= 0 else source << -self.shift)

    extended = __call__

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the swizzled offset as an expression, for `code`; `arguments` is the offset alone.

        >>> print(Swizzle(2, 0, 2).index_expression((IndexExpression.argument("i"),)))
        i ^ ((i & 12) >> 2)
        """
        (offset,) = arguments
        source = offset & self.source_mask
        return offset ^ (source >> self.shift if self.shift >= 0 else source << -self.shift)

    def valid(self, offset: IntOrArray) -> bool:
        """Return True: a swizzle takes every `offset`.

        >>> Swizzle(3, 0, 3).valid(12)
        True
        """
        return True

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def _has_padding(self) -> bool:
        return False


# Layouts given by tables: `PagedLayout`, pages that each have their own start, and `InverseLayout`, from an
# offset back to its index.

_MAX_PRINTED = 6


class PagedLayout(LayoutLike):
    """A layout of pages of `page` consecutive offsets; page k starts at `starts[k]`.

    It expresses what strides cannot: pages over banks in shuffled order, the blocks of a paged cache.

    >>> scattered = PagedLayout(4, [100, 0, 50])
    >>> scattered(5), scattered(1, 2), scattered.cosize
    (1, 51, 104)
    >>> from tilewright import compose, row_major
    >>> compose(scattered, row_major(3, 4))(2, 1)
    51
    """

    __slots__ = ("_page", "_starts")
    _page: int
    _starts: IntArray

    def __init__(self, page: int, starts: Iterable[int] | IntArray) -> None:
        size = as_integer(page, "the size of a page")
        if size < 1:
            raise LayoutError(f"the size of a page must be at least 1, got {size}")
        table = np.asarray(starts if hasattr(starts, "__array__") or not isinstance(starts, Iterable) else [*starts])
        if table.size and (table.dtype.kind not in "iu" or int(table.max()) >= 2**63):
            raise LayoutError(f"the starts of pages must be integers below 2^63, got {starts!r}")
        table = table.astype(np.int64).reshape(-1)
        table.flags.writeable = False
        self._page = int(size)
        self._starts = table

    @property
    def page(self) -> int:
        """The number of offsets in a page.

        >>> PagedLayout(4, [100, 0, 50]).page
        4
        """
        return self._page

    @property
    def starts(self) -> IntArray:
        """The offset where each page starts, as a read-only array.

        >>> PagedLayout(4, [100, 0, 50]).starts.tolist()
        [100, 0, 50]
        """
        return self._starts

    @property
    def shape(self) -> tuple[int, int]:
        return (self._page, len(self._starts))

    @property
    def cosize(self) -> int:
        """The size of the smallest buffer that holds every page and offset 0.

        >>> PagedLayout(4, [100, 0, 50]).cosize
        104
        """
        if not self.size:
            return 0
        lowest, highest = int(self._starts.min()), int(self._starts.max()) + self._page - 1
        return max(0, highest) + 1 - min(0, lowest)

    def mode(self, *path: int) -> LayoutLike:
        if not path:
            return self
        modes: tuple[LayoutLike, ...] = (Layout(self._page), PagedLayout(1, self._starts))
        k = as_integer(path[0], "a mode number")
        if not -2 <= k < 2:
            raise CoordinateError(f"{self} has no mode {k}: it has mode 0 (within a page) and mode 1 (the pages)")
        return modes[k].mode(*path[1:])

    def extended(self, *coord: Coordinate) -> int | Any:
        return self._offset_at(leaf_coordinates(self._nest_coordinate(coord), self.shape))

    def _offset_at(self, leaf_coords: list[Any]) -> Any:
        inside, page = leaf_coords
        offset = self._starts[page] + inside
        return offset if is_array(offset) else int(offset)

    def valid(self, *coord: Coordinate) -> bool | Any:
        try:
            leaf_coords = leaf_coordinates(self._nest_coordinate(coord), self.shape)
        except IndexError:
            return evaluation.valid_coordinates(self, coord) if any(map(is_array, coord)) else False
        return evaluation.true_like(leaf_coords)

    def _slice(self, coord: Coordinate) -> Any:
        raise LayoutError(f"cannot slice {self} by {coord}; compose it with the layout of the slice instead")

    def _table(self) -> Any:
        return np.arange(self._page, dtype=np.int64)[:, None] + self._starts

    def _valid_table(self) -> Any:
        return None

    def __add__(self, offset: Offset) -> PagedLayout:
        return PagedLayout(self._page, self._starts + as_integer(offset, "the offset"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PagedLayout):
            return NotImplemented
        return self._page == other._page and self._starts.tobytes() == other._starts.tobytes()

    def __hash__(self) -> int:
        ends = self._starts[[0, -1]].tolist() if len(self._starts) else []
        return hash(("pages", self._page, len(self._starts), *ends, int(self._starts.sum())))

    def __repr__(self) -> str:
        return f"PagedLayout({self._page}, {self._starts.tolist()})"

    def __str__(self) -> str:
        printed = [str(start) for start in self._starts[:_MAX_PRINTED]] + (
            ["..."] if len(self._starts) > _MAX_PRINTED else []
        )
        return f"pages({self._page},{len(self._starts)}):({','.join(printed)})"


class InverseLayout(LayoutLike):
    """The exact inverse of an injective `layout`: from an offset to the index that lives there.

    Its arguments are offsets, negative ones too where the layout has them; unused offsets are not `valid`.

    >>> back = InverseLayout(Layout((2, 2), (2, 3)))
    >>> [back(x) for x in (0, 2, 3, 5)], back.valid(4)
    ([0, 1, 2, 3], False)
    """

    __slots__ = ("_layout", "_sorted")
    _layout: Any
    _sorted: tuple[Any, Any] | None

    def __init__(self, layout: LayoutLike) -> None:
        if not isinstance(layout, LayoutLike):
            raise TypeError(f"InverseLayout takes a layout, got {type(layout).__name__} {layout!r}")
        self._layout = layout
        self._sorted = None

    @property
    def inverted(self) -> Layout | Any:
        """The layout that this is the inverse of.

        >>> InverseLayout(Layout((2, 2), (2, 3))).inverted
        Layout((2, 2), (2, 3))
        """
        return self._layout

    @property
    def shape(self) -> int | Any:  # of a layout over named axes, a Place
        return self._layout.cosize

    @property
    def cosize(self) -> int:
        """The number of indices.

        >>> InverseLayout(Layout((2, 2), (2, 3))).cosize
        4
        """
        return int(self._layout.size)

    def mode(self, *path: int) -> InverseLayout:
        return self

    def __call__(self, *coord: Coordinate) -> Any:
        if len(coord) != 1:
            raise CoordinateError(f"{self} takes one offset, got {len(coord)}: {coord}")
        offset = coord[0]
        if offset is None or offset.__class__ is slice:
            return self
        index, used = self._find(offset)
        if is_array(offset):
            if not used.all():
                unused = int((~used).sum())
                raise CoordinateError(f"{unused} of {used.size} offsets are unused in {self._layout}; check valid(...)")
        elif not used:
            raise CoordinateError(f"offset {offset} is unused in {self._layout}; check valid({offset}) first")
        return index

    def extended(self, *coord: Coordinate) -> int | Any:
        """Return the same as a call with `coord`: outside its domain an inverse has no values."""
        return self(*coord)

    def valid(self, *coord: Coordinate) -> bool | Any:
        return self._find(coord[0])[1]

    def _find(self, offset: Coordinate) -> tuple[Any, Any]:
        """Return (index, used) of an offset, or of an array of offsets."""
        if not is_array(offset):
            offset = int(as_integer(offset, "an offset"))
            if isinstance(self._layout, Layout) and not self._layout.guards:
                index = find_index(self._layout, offset)
                return index, index is not None
        if self._sorted is None:
            # padding has no offset of its own: it may share an offset with data
            data = [(offsets[valid], index[valid]) for index, offsets, valid in evaluation.chunks(self._layout)]
            empty = np.empty(0, np.int64)
            table, indices = (np.concatenate([empty, *column]) for column in zip(*data, strict=True))
            order = np.argsort(table, kind="stable")
            self._sorted = table[order], indices[order]
        offsets, order = self._sorted
        if not len(offsets):
            return (
                (np.zeros(np.shape(offset), np.int64), np.zeros(np.shape(offset), bool))
                if is_array(offset)
                else (0, False)
            )
        position = np.clip(np.searchsorted(offsets, offset), 0, len(offsets) - 1)
        used = offsets[position] == offset
        return (order[position], used) if is_array(offset) else (int(order[position]), bool(used))

    def _offset_at(self, leaf_coords: list[Any]) -> Any:
        return self(leaf_coords[0])

    def _slice(self, coord: Coordinate) -> Any:
        return self

    def _offsets_at(self, index: IntArray) -> Any:
        return self._find(index)[0]

    def _table(self) -> Any:
        index, used = self._find(np.arange(self.shape))
        return np.where(used, index, -1)

    def _valid_table(self) -> Any:
        return self._find(np.arange(self.shape))[1]

    def __eq__(self, other: object) -> bool:
        return bool(self._layout == other._layout) if isinstance(other, InverseLayout) else NotImplemented

    def __hash__(self) -> int:
        return hash(("inverse", self._layout))

    def __repr__(self) -> str:
        return f"InverseLayout({self._layout!r})"

    def __str__(self) -> str:
        return f"inverse({self._layout})"


def find_index(layout: Layout, offset: int) -> int | None:
    """Return an index that a strided layout maps to `offset`; None if there is none.

    >>> find_index(Layout((4, 8), (1, 5)), 37), find_index(Layout((4, 8), (1, 5)), 4)
    (30, None)
    """
    index = leaves(index_strides(layout.shape))
    modes = [
        (d, n - 1, at) for n, d, at in zip(leaves(layout.shape), leaves(layout.stride), index, strict=True) if n != 1
    ]
    if any(count < 0 for _, count, _ in modes):
        return None
    modes = sorted([mode for mode in modes if mode[0]], key=lambda mode: -abs(mode[0]))
    low = [0] * (len(modes) + 1)
    high = [0] * (len(modes) + 1)
    for i in reversed(range(len(modes))):
        stride, count, _ = modes[i]
        low[i] = low[i + 1] + min(0, stride * count)
        high[i] = high[i + 1] + max(0, stride * count)

    def search(i: int, rest: int) -> int | None:
        if i == len(modes):
            return 0 if rest == 0 else None
        stride, count, at = modes[i]
        # the first coordinate with a rest that the smaller modes can still reach
        first = -((high[i + 1] - rest) // stride) if stride > 0 else -((rest - low[i + 1]) // -stride)
        for c in range(max(0, first), count + 1):
            left = rest - c * stride
            if not low[i + 1] <= left <= high[i + 1]:
                break
            rest_index = search(i + 1, left)
            if rest_index is not None:
                return int(rest_index + c * at)
        return None

    return search(0, offset - layout.offset)


_UNBOUNDED = 2**62  # the extent of a layout that only adds an offset


class ComposedLayout(LayoutLike):
    """The composition of two functions: a coordinate goes through `inner`, its result through `outer`.

    `compose` returns one where no strided layout exists: 12 banks under tiles that do not divide them, or a swizzle.

    >>> from tilewright import compose, Layout
    >>> R = compose(Layout((3, 5), (5, 1)), Layout(6, 2))
    >>> print(R)
    (3,5):(5,1) o 6:2
    >>> [R(i) for i in range(6)]
    [0, 10, 6, 2, 12, 8]
    """

    __slots__ = ("_inner", "_outer")
    _outer: Any
    _inner: LayoutLike

    def __init__(self, outer: LayoutLike | Swizzle, inner: LayoutLike) -> None:
        if not isinstance(outer, (LayoutLike, Swizzle)):
            raise TypeError(f"the outer function must be a layout or a Swizzle, got {type(outer).__name__} {outer!r}")
        if not isinstance(inner, LayoutLike):
            raise TypeError(f"the inner function must be a layout, got {type(inner).__name__} {inner!r}")
        if isinstance(outer, ComposedLayout):  # always nested to the right, so that equal compositions compare equal
            inner = ComposedLayout(outer._inner, inner)
            outer = outer._outer
        self._outer = outer
        self._inner = inner

    @property
    def is_replicated(self) -> bool:
        return self._inner.is_replicated or (isinstance(self._outer, LayoutLike) and self._outer.is_replicated)

    @property
    def outer(self) -> Layout | Any:
        """The function applied last.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).outer
        Swizzle(2, 0, 2)
        """
        return self._outer

    @property
    def inner(self) -> Layout | Any:
        """The function applied first; its shape is the shape of the composition.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).inner
        Layout((4, 4), (4, 1))
        """
        return self._inner

    @property
    def shape(self) -> Any:  # a Shape; see Layout.shape
        return self._inner.shape

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes that offsets lie on.

        >>> from tilewright import bank, addr, compose, Layout
        >>> compose(Layout((12, 9), (1 @ bank, 64 @ addr)), Layout((5, 7), (7, 1))).axes
        ('bank', 'addr')
        """
        return getattr(self._outer, "axes", ())

    def project(self, axis: Axis | str) -> ComposedLayout:
        """Return the layout of the coordinates along one `axis`.

        >>> from tilewright import bank, addr, compose, Layout
        >>> compose(Layout((12, 9), (1 @ bank, 64 @ addr)), Layout((5, 7), (7, 1))).project(addr)(4, 1)
        128
        """
        return ComposedLayout(self._outer.project(axis), self._inner)

    def mode(self, *path: int) -> ComposedLayout:
        inner = self._inner.mode(*path)
        return ComposedLayout(self._outer, inner + self._inner.offset if isinstance(self._inner, Layout) else inner)

    @property
    def cosize(self) -> int | Any:
        """The size of the smallest buffer that holds every offset and 0.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).cosize
        16
        """
        inner, outer = self._inner, self._outer
        if isinstance(outer, PagedLayout):
            covers_blocks = inner.size == outer.size
        else:
            covers_blocks = isinstance(outer, Swizzle) and inner.size % outer.size == 0
        if covers_blocks and isinstance(inner, Layout) and is_bijective(inner._with(guards=())):
            # inner only reorders, so every page, or every block that a swizzle maps to itself, is reached
            return outer.cosize if isinstance(outer, PagedLayout) else inner.cosize
        return evaluation.cosize_from_table(self)

    def __call__(self, *coord: Coordinate) -> Any:
        for c in coord:
            if c.__class__ is not int:
                return super().__call__(*coord)
        return self._apply_outer(self._inner(*coord))

    def _offset_at(self, leaf_coords: list[Any]) -> Any:
        return self._apply_outer(self._inner._offset_at(leaf_coords))

    def _apply_outer(self, offset: object) -> Any:
        """Return the outer function of an offset, or of each of a set of offsets."""
        if isinstance(offset, frozenset):
            offsets = [self._outer.extended(element) for element in offset]
            return frozenset().union(*[one if isinstance(one, frozenset) else {one} for one in offsets])
        return self._outer.extended(offset)

    def _slice(self, coord: Coordinate) -> ComposedLayout:
        return ComposedLayout(self._outer, self._inner._slice(coord))

    def extended(self, *coord: Coordinate) -> int | Any:
        return self._apply_outer(self._inner.extended(*coord))

    def valid(self, *coord: Coordinate) -> bool | Any:
        inside = self._inner.valid(*coord)
        if inside is False:
            return False
        offset: Any = self._inner.extended(*coord)
        if isinstance(offset, frozenset):
            return inside & all(self._outer.valid(element) for element in offset)
        return inside & self._outer.valid(offset)

    def _table(self) -> Any:
        return self._outer.extended(self._inner._table())

    def _valid_table(self) -> Any:
        inside = self._inner._valid_table()
        if isinstance(self._outer, Swizzle):
            return inside  # every offset is valid for a swizzle, and a table of True would be large
        outer_valid = self._outer.valid(self._inner._table())
        if outer_valid is True:
            return inside
        return outer_valid if inside is None else inside & outer_valid

    def _has_padding(self) -> bool:
        if not self._inner._has_padding() and not self._outer._has_padding():
            return False
        mask = self._valid_table()  # the inner layout may never reach the padding of the outer one
        return mask is not None and not mask.all()

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the offset as an expression of the coordinates, `arguments`.

        >>> ring = ComposedLayout(Layout((3, 5), (5, 1)), Layout(6, 2))
        >>> print(ring.index_expression((IndexExpression.argument("i"),)))
        i * 2 % 3 * 5 + i * 2 / 3
        """
        expression: IndexExpression = self._outer.index_expression((self._inner.index_expression(arguments),))
        return expression

    def _offset_bounds(self) -> tuple[int, int]:
        low, high = self._inner._offset_bounds()
        if isinstance(self._outer, LayoutLike):
            outer_low, outer_high = self._outer._offset_bounds()
            return min(low, outer_low), max(high, outer_high)
        return low, max(high, self._outer.size)

    def _restructure(self, change: Callable[[Any, Any], Any], caller: str) -> ComposedLayout:
        return ComposedLayout(self._outer, self._inner._restructure(change, caller))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        return bool(self._outer == other._outer and self._inner == other._inner)

    def __hash__(self) -> int:
        return hash((self._outer, self._inner))

    def __add__(self, offset: Offset) -> ComposedLayout:
        if isinstance(offset, LayoutLike):
            return NotImplemented
        amount = as_offset(offset, "offset")
        if isinstance(self._outer, (Layout, PagedLayout)):
            return ComposedLayout(self._outer + amount, self._inner)
        # a swizzle has no offset, so the sum is a composition with a shift
        return ComposedLayout(make_layout(_UNBOUNDED, 1, amount), self) if amount else self

    def __repr__(self) -> str:
        return f"ComposedLayout({self._outer!r}, {self._inner!r})"

    def __str__(self) -> str:
        return f"{self._outer} o {self._inner}"
