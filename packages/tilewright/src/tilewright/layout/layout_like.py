# SPDX-License-Identifier: Apache-2.0
"""`LayoutLike`: the interface that all layouts share, strided or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import LayoutError
from ..showing import Shown
from . import evaluation
from .coordinate import coordinates, is_slice, leaf_coordinates
from .index_code import IndexExpression, Language, write_index_code
from .tuples import Coordinate, IntArray, Nested, Shape, as_tree, leaves, nest_like, product, tree_depth

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Kind = TypeVar("Kind", bound="LayoutLike")
_MAX_CODE_MODES = 256  # an index function has an operation or two for each


class LayoutLike(Shown):
    """The interface of all layouts: a shape, and a place for each of its coordinates.

    >>> from tilewright import row_major
    >>> isinstance(row_major(4, 8), LayoutLike)
    True
    """

    __slots__ = ()

    @property
    def shape(self) -> Shape:
        """Return the shape of the domain.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).shape
        (4, (2, 3))
        """
        raise NotImplementedError

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes that places lie on; empty when places are plain integers.

        >>> from tilewright import Layout, addr, bank
        >>> Layout((4, 8)).axes, Layout((12, 100), (1 @ bank, 2048 @ addr)).axes
        ((), ('bank', 'addr'))
        """
        return ()

    @property
    def is_replicated(self) -> bool:
        """Return whether places are sets, with one place per copy of an element.

        >>> from tilewright import Layout, replicate
        >>> replicate(Layout(4), 2, 100).is_replicated, Layout(4).is_replicated
        (True, False)
        """
        return False

    @property
    def cosize(self) -> Any:
        """Return the size of the smallest buffer that holds every place and place 0; over named axes, per axis.

        >>> from tilewright import Layout
        >>> Layout((4, 8), (1, 5)).cosize, Layout(4, -1).cosize, (Layout(2) - 5).cosize
        (39, 4, 6)
        """
        raise NotImplementedError

    def extended(self, *coord: Coordinate) -> Any:
        """Return the place of a coordinate `coord`, also past the edge of the shape.

        The outermost mode of the coalesced layout has no end; at negative indices f(-i) is -f(i).

        >>> from tilewright import Layout
        >>> Layout((4, 3), (3, 1)).extended(12), Layout((4, 3), (3, 1)).extended(-1)
        (3, -3)
        """
        raise NotImplementedError

    def valid(self, *coord: Coordinate) -> Any:
        """Return whether a coordinate `coord` is inside the shape and is data rather than padding.

        >>> from tilewright import Layout
        >>> Layout((4, 8)).valid(3, 7), Layout((4, 8)).valid(4, 0)
        (True, False)
        """
        raise NotImplementedError

    def mode(self, *path: int) -> Any:
        """Return mode `path[0]` as a layout, all other coordinates at 0; further numbers select nested modes.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3)), (6, (3, 1))).mode(1), Layout((4, (2, 3)), (6, (3, 1))).mode(1, 0)
        (Layout((2, 3), (3, 1)), Layout(2, 3))
        """
        raise NotImplementedError

    def _place(self, leaf_coords: list[Any]) -> Any:
        """Return the place of a coordinate given leaf by leaf, known to be in range."""
        raise NotImplementedError

    def _slice(self, coord: Coordinate) -> Any:
        """Return the layout of the modes that `coord` keeps, offset by the modes that it fixes."""
        raise NotImplementedError

    def _places(self, index: IntArray) -> Any:
        """Return the places of an array of indices; they are arbitrary where the indices are padding."""
        return self(index)

    def _table(self) -> Any:
        """Return the place of every coordinate as an array with one dimension per mode, or a Place of arrays."""
        raise NotImplementedError

    def _valid_table(self) -> Any:
        """Return which coordinates are data as an array with one dimension per mode; None when all are."""
        raise NotImplementedError

    def _has_padding(self) -> bool:
        """Return whether some coordinate of the shape is padding."""
        return False

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the offset as an expression of the coordinates, `arguments`: one per mode, or one for all.

        >>> from tilewright import row_major
        >>> print(row_major(4, 8).index_expression((IndexExpression.argument("i"), IndexExpression.argument("j"))))
        i * 8 + j
        """
        raise LayoutError(f"{self} has no index function that can be written as code: it is a table")

    def _offset_bounds(self) -> tuple[int, int]:
        """Return the lowest and the highest offset that a computation goes through."""
        return 0, int(self.cosize)

    def code(self, language: Language = "cuda", name: str = "offset") -> str:
        """Return a function in a `language` that computes the offset of a coordinate, to paste into a kernel.

        `language` is "cuda", "opencl", "triton", "python" or "mlir"; `name` is that of the function. It takes one
        number per mode, uses 32 bits where they are enough, and XOR for swizzles. Coordinates are not checked.

        >>> from tilewright import Swizzle, compose, row_major
        >>> print(compose(Swizzle(3, 0, 3), row_major(8, 8)).code("cuda"))
        __device__ __forceinline__ unsigned int offset(unsigned int i0, unsigned int i1) {
            const unsigned int x = i0 * 8 + i1;
            return x ^ ((x & 56) >> 3);
        }
        """
        if self.axes or self.is_replicated:
            raise LayoutError(f"{self} has several results; take one axis with .project(axis)")
        count = len(leaves(self.shape))
        if count > _MAX_CODE_MODES:
            raise LayoutError(f"code is written for at most {_MAX_CODE_MODES} modes, got {count}; coalesce them first")
        low, high = self._offset_bounds()
        is_wide = max(-low, high, product(self.shape)) >= 1 << 31
        return write_index_code(self, max(1, int(self.rank)), language, name, is_wide, low < 0)

    def _restructure(self: Kind, change: Callable[[Any, Any], Any], caller: str) -> Kind:
        """Return the layout with its modes regrouped or reordered; `caller` names the operation in errors.

        `change(tree, unit)` is applied to shape, strides and guards alike; `unit` is the entry of a mode of size 1.
        """
        raise LayoutError(f"{caller} of {self}: it has no strides; apply {caller} first, then compose")

    @property
    def size(self) -> int:
        """Return the number of coordinates.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).size
        24
        """
        return int(product(self.shape))

    @property
    def rank(self) -> int:
        """Return the number of top-level modes.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).rank, Layout(4).rank
        (2, 1)
        """
        shape = self.shape
        return len(shape) if isinstance(shape, tuple) else 1

    @property
    def depth(self) -> int:
        """Return the depth of nesting of the shape.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).depth, Layout(4).depth
        (2, 0)
        """
        return tree_depth(self.shape)

    def __call__(self, *coord: Coordinate) -> Any:
        nested = self._nest_coordinate(coord)
        return self._slice(nested) if is_slice(nested) else self._place(leaf_coordinates(nested, self.shape))

    def _nest_coordinate(self, coord: tuple[Coordinate, ...]) -> Any:
        """Return the arguments of a call as one coordinate, nested like the shape or less deep."""
        nested: Any = as_tree(coord[0]) if len(coord) == 1 else as_tree(coord)
        shape = self.shape
        if isinstance(nested, tuple) and isinstance(shape, tuple) and len(nested) != len(shape):
            flat: list[int] = leaves(shape)
            if len(nested) == 1 and not isinstance(nested[0], tuple):
                return nested[0]  # an index
            if len(nested) != len(flat) or any(isinstance(part, tuple) for part in nested):
                counts = _join_alternatives({1, len(shape), len(flat)})
                raise LayoutError(
                    f"coordinate {nested} of rank {len(nested)} does not fit shape {shape}, which takes {counts}"
                    " entries: an index, one entry per mode, or one per leaf"
                )
            return nest_like(shape, iter(nested))
        return nested

    def __getitem__(self, key: int | slice | EllipsisType | tuple[Coordinate, ...]) -> Any:
        """Return mode `key` for an integer; a slice for a tuple that contains `:`, as in NumPy.

        >>> from tilewright import Layout
        >>> Layout((4, 8))[1], Layout((4, 8))[:, 3]
        (Layout(8, 4), Layout((4,), (1,), offset=12))
        """
        if isinstance(key, tuple):
            if is_slice(key):
                return self(*key)
            raise LayoutError(f"[{key}] is ambiguous: write L{key} for an offset, L.mode{key} for a nested mode")
        return self(None if key is Ellipsis else key) if key is Ellipsis or isinstance(key, slice) else self.mode(key)

    def locate(self, *coord: Coordinate) -> tuple[Any, Any]:
        """Return (place, valid): the place of a coordinate `coord`, and whether it is data rather than padding.

        >>> from tilewright import Layout, logical_divide
        >>> tiles = logical_divide(Layout(100), 32)
        >>> tiles.locate(3, 3), tiles.locate(4, 3)
        ((99, True), (100, False))
        """
        valid = self.valid(*coord)
        return (self.extended(*coord) if valid is False else self(*coord)), valid

    def offsets(self, fill: int | None = None, dtype: DTypeLike | None = None) -> Any:
        """Return the place of every coordinate as a NumPy array with one dimension per mode.

        Padding gets the value `fill` if one is given; `dtype` is the integer type of the array, int64 by default. A
        layout over named axes gives a `Place` of arrays.

        >>> from tilewright import Layout
        >>> Layout((2, 3), (3, 1)).offsets().tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        return evaluation.offset_table(self, fill, dtype)

    __array_ufunc__ = None  # arithmetic is the layout's own: 3 + layout shifts it, also if 3 is NumPy's

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        """Return the offsets, so that `np.asarray(layout)` is `layout.offsets()`, and `data[layout]` gathers.

        Args:
            dtype: the type of the array, int64 by default.
            copy: whether a copy is asked for; the array is always a new one, so that False is refused.

        >>> from tilewright import Layout
        >>> import numpy as np
        >>> np.asarray(Layout((2, 3), (3, 1))).tolist(), np.arange(10, 20)[Layout(3, 2)].tolist()
        ([[0, 1, 2], [3, 4, 5]], [10, 12, 14])
        """
        if copy is False:
            raise LayoutError(f"the offsets of {self} have to be computed, which copy=False rules out; leave it out")
        if self.axes or self.is_replicated:
            raise LayoutError(f"the places of {self} are not plain offsets; take one axis with .project(axis)")
        if self._has_padding():
            raise LayoutError(f"{self} has padding, which has no offset; use .offsets(fill=...) to give it one")
        return evaluation.offset_array(self, dtype)

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Nested[int]]:
        return coordinates(self.shape)


def _join_alternatives(counts: set[int]) -> str:
    """Return numbers as text: "1, 2 or 3"."""
    *most, last = sorted(counts)
    return f"{', '.join(map(str, most))} or {last}" if most else str(last)


def require_layout(value: object, caller: str) -> LayoutLike:
    """Return `value` if it is a layout, else raise a TypeError that names `caller`.

    >>> from tilewright import Layout
    >>> require_layout(Layout(4), "coalesce")
    Layout(4, 1)
    """
    if not isinstance(value, LayoutLike):
        raise TypeError(f"{caller} takes a layout, got {type(value).__name__} {value!r}")
    return value
