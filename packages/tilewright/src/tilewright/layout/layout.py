# SPDX-License-Identifier: Apache-2.0
"""`Layout`: a function from coordinates to offsets, given by a shape and strides of the same nesting.

A worked example: 4 x 6 elements, stored in tiles of 2 x 3.

    shape   ((2, 2), (3, 2))     rows: 2 in a tile, 2 tiles down; columns: 3 in a tile, 2 tiles across
    stride  ((3, 12), (1, 6))    from row to row 3, to the tile below 12; from column to column 1, to the next tile 6

    offsets       0   1   2 |  6   7   8
                  3   4   5 |  9  10  11
                 -----------+-----------
                 12  13  14 | 18  19  20
                 15  16  17 | 21  22  23

A coordinate is nested like the shape, or less deep. What is given as one number is split with the first extent running
fastest, as in CuTe: row 3 is (1, 1), the second row of the second tile, and so is column 4. All these are offset 22:

    layout((1, 1), (1, 1))       1 * 3 + 1 * 12 + 1 * 1 + 1 * 6
    layout(3, 4)                 one number per mode
    layout(19)                   one number for all: 3 + 4 * 4

A stride may go along a named axis, `2048 @ addr`; then a layout maps to a `Place`, an offset on each axis. Guards tell
padding from data, and replicas say that an element is stored several times: the module `axes` has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import product as combinations
from math import prod
from operator import attrgetter
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..display import Drawable
from ..errors import CoordinateError, LayoutError
from . import evaluation
from .axes import (
    PLAIN,
    Axis,
    Guard,
    ModeProgram,
    Offset,
    Place,
    Replica,
    Stride,
    StrideArgument,
    as_offset,
    axis_name,
    check_offset_range,
    component,
    data_extents,
    format_signed,
    format_tree,
    live_guards,
    merge_modes,
    mode_program,
    mode_programs,
    plain_reach,
    validate_guard,
    validate_replica,
    validate_shape_and_stride,
    value_range,
)
from .index_code import IndexExpression, Language, strided_expression, write_index_code
from .tuples import (
    Coordinate,
    IntArray,
    Nested,
    Shape,
    ShapeArgument,
    as_integer,
    as_tree,
    coordinates,
    fixed_offset,
    is_array,
    is_slice,
    is_tagged,
    leaf_coordinates,
    leaves,
    map_leaves,
    nest_like,
    out_of_range_error,
    product,
    product_each,
    select_modes,
    tree_depth,
    zeros_like,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


# `LayoutLike`: the interface that all layouts share, strided or not.

Kind = TypeVar("Kind", bound="LayoutLike")
_MAX_CODE_MODES = 256  # an index function has an operation or two for each


class LayoutLike(Drawable):
    """The interface of all layouts: a shape, and an offset for each of its coordinates.

    >>> from tilewright import row_major
    >>> isinstance(row_major(4, 8), LayoutLike)
    True
    """

    __slots__ = ()

    @property
    def layout(self: Kind) -> Kind:
        """The layout itself, as a tensor or a parsed text has one.

        >>> from tilewright import parse
        >>> print(parse("(4,8):(8,1)").layout, parse("f32[4,8]{1,0}").layout)
        (4,8):(8,1) (4,8):(8,1)
        """
        return self

    @property
    def shape(self) -> Shape:
        """The shape of the domain.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).shape
        (4, (2, 3))
        """
        raise NotImplementedError

    def explain(self, coordinate: Sequence[Coordinate]) -> Any:  # its class is in `memory`, which builds on layouts
        """Return how the offset of a `coordinate` comes about, step by step.

        >>> from tilewright import Layout
        >>> print(Layout((4, 8), (8, 1)).explain((1, 2)))
        element   (1, 2) of (4,8):(8,1)
        offset    10 = 1 x 8 + 2
        """
        return import_module("tilewright.memory").explain(self, coordinate)

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes that offsets lie on; empty when offsets are plain integers.

        >>> from tilewright import Layout, addr, bank
        >>> Layout((4, 8)).axes, Layout((12, 100), (1 @ bank, 2048 @ addr)).axes
        ((), ('bank', 'addr'))
        """
        return ()

    @property
    def is_replicated(self) -> bool:
        """Whether offsets are sets, with one offset per copy of an element.

        >>> from tilewright import Layout, replicate
        >>> replicate(Layout(4), 2, 100).is_replicated, Layout(4).is_replicated
        (True, False)
        """
        return False

    @property
    def cosize(self) -> int | Any:
        """The size of the smallest buffer that holds every offset and 0; over named axes, per axis.

        >>> from tilewright import Layout
        >>> Layout((4, 8), (1, 5)).cosize, Layout(4, -1).cosize, (Layout(2) - 5).cosize
        (39, 4, 6)
        """
        raise NotImplementedError

    def extended(self, *coord: Coordinate) -> int | Any:
        """Return the offset of a coordinate `coord`, also past the edge of the shape.

        The outermost mode of the coalesced layout has no end; at negative indices f(-i) is -f(i).

        >>> from tilewright import Layout
        >>> Layout((4, 3), (3, 1)).extended(12), Layout((4, 3), (3, 1)).extended(-1)
        (3, -3)
        """
        raise NotImplementedError

    def valid(self, *coord: Coordinate) -> bool | Any:
        """Return whether a coordinate `coord` is inside the shape and is data rather than padding.

        >>> from tilewright import Layout
        >>> Layout((4, 8)).valid(3, 7), Layout((4, 8)).valid(4, 0)
        (True, False)
        """
        raise NotImplementedError

    def mode(self, *path: int) -> LayoutLike:
        """Return mode `path[0]` as a layout, all other coordinates at 0; further numbers select nested modes.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3)), (6, (3, 1))).mode(1), Layout((4, (2, 3)), (6, (3, 1))).mode(1, 0)
        (Layout((2, 3), (3, 1)), Layout(2, 3))
        """
        raise NotImplementedError

    def _offset_at(self, leaf_coords: list[Any]) -> Any:
        """Return the offset of a coordinate given leaf by leaf, known to be in range."""
        raise NotImplementedError

    def _slice(self, coord: Coordinate) -> Any:
        """Return the layout of the modes that `coord` keeps, offset by the modes that it fixes."""
        raise NotImplementedError

    def _offsets_at(self, index: IntArray) -> Any:
        """Return the offsets of an array of indices; they are arbitrary where the indices are padding."""
        return self(index)

    def _table(self) -> Any:
        """Return the offset of every coordinate as an array with one dimension per mode, or a Place of arrays."""
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

        `language` is "cuda", "opencl", "triton", "python" or "mlir"; `name` is the function's name. It takes one
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
        """The number of coordinates.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).size
        24
        """
        return int(product(self.shape))

    @property
    def rank(self) -> int:
        """The number of top-level modes.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).rank, Layout(4).rank
        (2, 1)
        """
        shape = self.shape
        return len(shape) if isinstance(shape, tuple) else 1

    @property
    def depth(self) -> int:
        """The depth of nesting of the shape.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).depth, Layout(4).depth
        (2, 0)
        """
        return tree_depth(self.shape)

    @overload
    def __call__(self, *coord: int) -> int | Any: ...
    @overload
    def __call__(self, *coord: Coordinate) -> IntArray | Any: ...
    def __call__(self, *coord: Coordinate) -> Any:
        nested = self._nest_coordinate(coord)
        return self._slice(nested) if is_slice(nested) else self._offset_at(leaf_coordinates(nested, self.shape))

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
        """Return (offset, valid): the offset of a coordinate `coord`, and whether it is data rather than padding.

        >>> from tilewright import Layout, logical_divide
        >>> tiles = logical_divide(Layout(100), 32)
        >>> tiles.locate(3, 3), tiles.locate(4, 3)
        ((99, True), (100, False))
        """
        valid = self.valid(*coord)
        return (self.extended(*coord) if valid is False else self(*coord)), valid

    def offsets(self, fill: int | None = None, dtype: DTypeLike | None = None) -> IntArray | Any:
        """Return the offset of every coordinate as a NumPy array with one dimension per mode.

        Padding gets the value `fill` if one is given; `dtype` is the integer type of the array, int64 by default. A
        layout over named axes gives a `Place` of arrays.

        >>> from tilewright import Layout
        >>> Layout((2, 3), (3, 1)).offsets().tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        return evaluation.offset_table(self, fill, dtype)

    __array_ufunc__ = None  # arithmetic is the layout's own: 3 + layout shifts it, also if 3 is NumPy's

    def __add__(self: Kind, offset: Offset) -> Kind:
        return NotImplemented

    def __radd__(self: Kind, offset: Offset) -> Kind:
        return self.__add__(offset)

    def __sub__(self: Kind, offset: Offset) -> Kind:
        return self.__add__(-as_offset(offset, "offset"))

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
            raise LayoutError(f"the offsets of {self} are not plain offsets; take one axis with .project(axis)")
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


def _read_only(slot: str, doc: str) -> Any:
    """Return a property that reads a slot without a Python call, since layouts are read on every hot path."""
    return property(attrgetter(slot), doc=doc)


class Layout(LayoutLike):
    """A function from coordinates to offsets: `Layout(shape, stride)` with nested tuples of any depth.

    Without `stride` the layout is compact and column-major. A stride is an integer or lies along named axes, such as
    `2048 @ addr`. `offset` is added to all; `replicas` are (count, stride) pairs of copies that exist at the same
    time; `guards` separate data from padding. `Layout(a, b, ...)` of layouts, `more` of them if need be, joins them as
    modes.

    `==` and `hash` compare everything that `repr` shows: padding, copies and the axes that offsets lie on.
    `functionally_equal` compares the functions instead, however they are written.

    >>> L = Layout((4, (2, 3)), (6, (3, 1)))
    >>> L(1, 4), L(1, (0, 2)), L(17)
    (8, 8, 8)
    >>> print(L, L.size, L.cosize)
    (4,(2,3)):(6,(3,1)) 24 24
    >>> L(2, None)
    Layout((2, 3), (3, 1), offset=12)
    """

    __slots__ = (
        *("_shape", "_stride", "_offset", "_replicas", "_guards"),
        *("_axes", "_flat", "_modes", "_program", "_tagged"),
    )
    _shape: Any  # Shape, without the cost of narrowing on hot paths
    _stride: Any
    _offset: Any
    _replicas: tuple[Replica, ...]
    _guards: tuple[Guard, ...]
    # computed on first use; None before, where an AttributeError would take longer than what follows it
    _axes: tuple[str, ...] | None
    _flat: tuple[list[int], list[Any]] | None
    _modes: tuple[list[int], list[Any]] | None
    _tagged: tuple[int, ...]
    _program: tuple[list[ModeProgram], list[ModeProgram], bool]

    @overload
    def __init__(
        self,
        shape: ShapeArgument = (),
        stride: StrideArgument | None = None,
        offset: Offset = 0,
        replicas: Sequence[Replica] = (),
        guards: Sequence[Guard] = (),
    ) -> None: ...

    @overload
    def __init__(self, *modes: Layout) -> None: ...

    def __init__(
        self, shape: Any = (), stride: Any = None, offset: Any = 0, replicas: Any = (), guards: Any = (), *more: Any
    ) -> None:
        if not isinstance(shape, tuple) and isinstance(shape, Layout):  # in this order, since the first is faster
            arguments = (shape, stride, offset, replicas, guards)
            modes = [part for k, part in enumerate(arguments) if part is not (None, None, 0, (), ())[k]]
            shape, stride, offset, replicas, guards = join_parts((*modes, *more))
            check_offset_range(shape, stride)
        elif more:
            raise TypeError(f"Layout takes at most 5 arguments unless all are layouts, got {5 + len(more)}")
        elif not 0 <= plain_reach(shape, stride) < 2**63:
            shape, stride = validate_shape_and_stride(shape, stride)
        self._shape = shape
        self._stride = stride
        self._axes = self._flat = self._modes = None
        if offset.__class__ is int and not offset and not replicas and not guards:
            self._offset, self._replicas, self._guards = 0, (), ()
            return
        if offset.__class__ is not int or offset:
            offset = as_offset(offset, "offset")
            check_offset_range(shape, stride, offset)
        copies = tuple([validate_replica(replica) for replica in replicas])
        if offset.__class__ is Place:
            offset = _canonical_offset(offset, stride, copies)
        self._offset, self._replicas = offset, copies
        self._guards = live_guards(shape, [validate_guard(guard, shape) for guard in guards])

    # A Shape; typed Any so that `layout.shape[0]` needs no narrowing.
    shape: Any = _read_only(
        "_shape",
        """The shape of the domain.

        >>> Layout((4, (2, 3))).shape
        (4, (2, 3))
        """,
    )
    stride: Any = _read_only(
        "_stride",
        """The strides, with the nesting of the shape.

        >>> Layout((4, 8)).stride
        (1, 4)
        """,
    )
    offset: Any = _read_only(
        "_offset",
        """The offset of coordinate 0.

        >>> (Layout(4) + 5).offset
        5
        """,
    )
    replicas: tuple[Replica, ...] = _read_only(
        "_replicas",
        """The copies that exist beside the first, as (count, stride) pairs.

        >>> from tilewright import replicate, device
        >>> replicate(Layout(4), 2, 1 @ device).replicas
        ((2, Place(device=1)),)
        """,
    )
    guards: tuple[Guard, ...] = _read_only(
        "_guards",
        """The bounds that separate data from padding; empty if all is data.

        >>> from tilewright import pad
        >>> pad(Layout(100), 128).guards
        (Guard(stride=1, limit=100, offset=0),)
        """,
    )

    @property
    def is_replicated(self) -> bool:
        return bool(self._replicas)

    @property
    def axes(self) -> tuple[str, ...]:
        if self._axes is None:
            strides = [*self.flat_modes()[1], *[stride for _, stride in self._replicas], self._offset]
            named = [name for stride in strides if stride.__class__ is Place for name in stride._parts if name]
            self._axes = tuple(dict.fromkeys(named))
        return self._axes

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The lowest and the highest offset; over named axes, per axis.

        >>> Layout((4, 8), (-1, 4)).bounds
        (-3, 28)
        """
        if self.size == 0:
            raise LayoutError(f"{self} is empty: it has no lowest and highest offset")
        extents = leaves(self._shape) + [count for count, _ in self.replicas]
        strides = leaves(self._stride) + [stride for _, stride in self.replicas]
        names = self.axes
        if not names:
            return value_range(extents, strides, self.offset)
        ranges = {
            name: value_range(extents, [component(stride, name) for stride in strides], component(self.offset, name))
            for name in names
        }
        lowest, highest = ({name: ends[k] for name, ends in ranges.items()} for k in (0, 1))
        return Place(lowest), Place(highest)

    @property
    def cosize(self) -> int | Any:
        if self.size == 0:
            return 0
        low, high = self.bounds
        if isinstance(low, Place):
            return Place({name: max(high[name], 0) + 1 - min(low[name], 0) for name in low})
        return int(max(high, 0) + 1 - min(low, 0))

    def project(self, axis: Axis | str) -> Layout:
        """Return the layout of the coordinates along one `axis`: its offsets are plain integers.

        >>> from tilewright import addr, bank
        >>> Layout((12, 100), (1 @ bank, 2048 @ addr)).project(addr)
        Layout((12, 100), (0, 2048))
        """
        name = axis_name(axis)
        if name not in self.axes:
            raise LayoutError(f"{self} has no axis {name!r}; it has {', '.join(self.axes) or 'only plain strides'}")
        replicas = [(count, component(stride, name)) for count, stride in self.replicas if component(stride, name)]
        return self._with(
            stride=map_leaves(lambda stride: component(stride, name), self._stride),
            offset=component(self.offset, name),
            replicas=tuple(replicas),
        )

    def mode(self, *path: int) -> Layout:
        if self.replicas:
            raise LayoutError(f"mode of {self}: its copies belong to all modes; take the mode first, then replicate")
        return self._mode(path)

    def _mode(self, path: tuple[int, ...]) -> Layout:
        """Return one mode without the offset and the copies, which belong to the whole layout."""
        shape, stride = self._shape, self._stride
        guards = [(guard.stride, guard) for guard in self.guards]
        for k in path:
            modes = shape if isinstance(shape, tuple) else (shape,)
            k = as_integer(k, "a mode number")
            if not -len(modes) <= k < len(modes):
                raise CoordinateError(f"{self} has no mode {path}: shape {shape} has modes 0 to {len(modes) - 1}")
            if isinstance(shape, tuple):
                shape, stride = shape[k], stride[k]
                guards = [(tree[k], guard) for tree, guard in guards]  # type: ignore[index]
        own_guards = [guard.with_stride(tree) for tree, guard in guards]
        return add_axes(make_layout(shape, stride, guards=live_guards(shape, own_guards)), self.axes)

    @property
    def modes(self) -> tuple[Layout, ...]:
        """All top-level modes as layouts.

        >>> Layout((4, 8)).modes
        (Layout(4, 1), Layout(8, 4))
        """
        return tuple([self.mode(k) for k in range(self.rank)])

    @property
    def T(self) -> Layout:  # noqa: N802  (NumPy's name)
        """The layout with its modes in reverse order, nested modes as they are.

        >>> Layout((4, 6), (6, 1)).T
        Layout((6, 4), (1, 6))
        """
        return self._restructure(lambda tree, _: tree[::-1] if isinstance(tree, tuple) else tree, "T")

    @overload
    def __call__(self, *coord: int) -> int | Any: ...
    @overload
    def __call__(self, *coord: Coordinate) -> IntArray | Any: ...
    def __call__(self, *coord: Coordinate) -> Any:
        try:
            program, flat, plain = self._program
        except AttributeError:
            modes, whole = mode_programs(self._shape, self._stride), mode_program(*self.canonical_modes())
            program, flat, plain = self._program = modes, [whole], not self.axes and not self.replicas
        if len(coord) != len(program):
            if len(coord) != 1 or coord[0].__class__ is not int or not program:
                return LayoutLike.__call__(self, *coord)
            program = flat
        total = self._offset
        for c, (size, inner, stride) in zip(coord, program):  # noqa: B905  (of one length; strict=True takes 0.2 us)
            if c.__class__ is not int:
                return LayoutLike.__call__(self, *coord)
            if not 0 <= c < size:
                raise out_of_range_error(coord if len(coord) > 1 else c, self._shape)
            for n, d in inner:
                total = total + c % n * d
                c = c // n
            total = total + c * stride
        if plain and total.__class__ is int:
            return total
        return self._as_public_offset(total)

    def _offset_at(self, leaf_coords: list[Any]) -> Any:
        total = self.offset
        for c, stride in zip(leaf_coords, leaves(self._stride), strict=True):
            total = total + c * stride
        return self._as_public_offset(total)

    def _as_public_offset(self, total: Any) -> Any:
        """Return an offset as callers see it: an int, a Place with all axes of the layout, or the set of all copies."""
        names = self.axes
        if names:
            parts = total._parts if isinstance(total, Place) else {PLAIN: total} if is_array(total) or total else {}
            total = Place._of({**dict.fromkeys(names, 0), **parts})
        elif isinstance(total, int):
            total = int(total)
        if not self.replicas:
            return total
        if any(map(is_array, total._parts.values() if names else [total])):
            raise LayoutError(f"the offsets of {self} are sets and do not fit into an array; pass one index at a time")
        strides = [[k * stride for k in range(count)] for count, stride in self.replicas]
        return frozenset(total + sum(chosen, 0) for chosen in combinations(*strides))

    def _slice(self, coord: Coordinate) -> Layout:
        shape, stride = self._shape, self._stride
        try:
            offset = self.offset + fixed_offset(coord, shape, stride)
        except IndexError as problem:
            raise CoordinateError(f"slice {coord} of shape {shape}: {problem}") from None
        new_shape, new_stride = select_modes(coord, shape), select_modes(coord, stride)
        guards = [
            guard.with_stride(select_modes(coord, guard.stride), fixed_offset(coord, shape, guard.stride))
            for guard in self.guards
        ]
        return make_layout(new_shape, new_stride, offset, self.replicas, live_guards(new_shape, guards))

    def extended(self, *coord: Coordinate) -> int | Any:
        if len(coord) == 1 and coord[0].__class__ is int and 0 <= coord[0] < prod(self.canonical_modes()[0]):
            return self(coord[0])  # inside, there is nothing to extend
        offset = self.offset + evaluation.extended_offset(self, self._nest_coordinate(coord))
        return self._as_public_offset(offset)

    def flat_modes(self) -> tuple[list[int], list[Any]]:
        """Return the extents and the strides of all leaves; do not modify these lists.

        >>> Layout((4, (2, 3))).flat_modes()
        ([4, 2, 3], [1, 4, 8])
        """
        if self._flat is None:
            self._flat = leaves(self._shape), leaves(self._stride)
        return self._flat

    def canonical_modes(self) -> tuple[list[int], list[Any]]:
        """Return the extents and the strides of the coalesced layout; never empty, do not modify these lists.

        >>> Layout((2, (1, 6)), (1, (7, 2))).canonical_modes()
        ([12], [1])
        """
        if self._modes is None:
            extents, steps = self.flat_modes()
            merged, (strides,) = merge_modes(extents, [steps])
            self._modes = merged, strides
        return self._modes

    def valid(self, *coord: Coordinate) -> bool | Any:
        try:
            leaf_coords = leaf_coordinates(self._nest_coordinate(coord), self._shape)
        except IndexError:
            return evaluation.valid_coordinates(self, coord) if any(map(is_array, leaves(as_tree(coord)))) else False
        valid = evaluation.true_like(leaf_coords)
        for guard in self.guards:
            valid = valid & guard.is_data(leaf_coords)
        return valid

    def _has_padding(self) -> bool:
        return bool(self.guards)

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the offset as an expression of the coordinates, `arguments`.

        >>> print(
        ...     Layout((4, 8), (8, 1)).index_expression((IndexExpression.argument("i"), IndexExpression.argument("j")))
        ... )
        i * 8 + j
        """
        return strided_expression(self._shape, self._stride, self.offset, arguments)

    def _offset_bounds(self) -> tuple[int, int]:
        low, high = self.bounds if self.size else (0, 0)
        return min([low, *leaves(self._stride)]), high  # a negative stride makes numbers on the way negative

    def _table(self) -> Any:
        return evaluation.strided_table(self._shape, self._stride, self.offset, self.replicas, self.axes)

    def _valid_table(self) -> Any:
        valid: Any = None
        for guard in self.guards:
            value = evaluation.strided_table(self._shape, guard.stride, guard.offset, (), ())
            inside = (value >= 0) & (value < guard.limit)
            valid = inside if valid is None else valid & inside
        return valid

    @property
    def logical_shape(self) -> tuple[int, ...]:
        """The extent of the data in each mode; raises if the padding is not separate for each mode.

        >>> from tilewright import pad
        >>> pad(Layout((60, 90)), (64, 96)).logical_shape
        (60, 90)
        """
        if not self.guards:
            return product_each(self._shape)
        extents = data_extents(self._shape, self.guards)
        if extents is None:
            raise LayoutError(f"{self} is padded across modes, so extents do not describe its data; use valid(...)")
        return extents

    def _restructure(self, change: Callable[[Any, Any], Any], caller: str) -> Layout:
        guards = [guard.with_stride(change(guard.stride, 0)) for guard in self.guards]
        return make_layout(change(self._shape, 1), change(self._stride, 0), self.offset, self.replicas, tuple(guards))

    def _with(self, **changes: Any) -> Layout:
        """Return the layout with some of its parts (shape, stride, offset, replicas, guards) replaced."""
        parts = dict(zip(("shape", "stride", "offset", "replicas", "guards"), self._parts(), strict=True))
        return make_layout(**{**parts, **changes})

    def __add__(self, offset: Offset) -> Layout:
        if isinstance(offset, LayoutLike):
            return NotImplemented
        total = self.offset + as_offset(offset, "offset")
        check_offset_range(self._shape, self._stride, total)
        return self._with(offset=total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return (
            self._shape == other._shape
            and self._stride == other._stride
            and self._offset == other._offset
            and self._replicas == other._replicas
            and self._guards == other._guards
            and self._tagged_leaves() == other._tagged_leaves()
            and self.axes == other.axes
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._stride, self._offset, self._replicas, self._guards))

    def __reduce__(self) -> tuple[Any, ...]:
        return make_layout, self._parts()

    def _parts(self) -> tuple[Any, Any, Any, tuple[Replica, ...], tuple[Guard, ...]]:
        return self._shape, self._stride, self._offset, self._replicas, self._guards

    def _channels(self) -> list[Any]:
        """Return the strides of the layout and of its guards: several strided functions (channels) of one index."""
        return [self._stride, *[guard.stride for guard in self._guards]]

    def _tagged_leaves(self) -> tuple[int, ...]:
        """Return the positions of tagged integers among the leaves of the shape, then of the strides."""
        try:
            return self._tagged
        except AttributeError:
            extents, strides = self.flat_modes()
            self._tagged = tuple([k for k, leaf in enumerate(extents + strides) if is_tagged(leaf)])
            return self._tagged

    def __repr__(self) -> str:
        extra = [("offset", self.offset), ("replicas", self.replicas), ("guards", self.guards)]
        tail = "".join([f", {name}={value!r}" for name, value in extra if value or value.__class__ is Place])
        return f"Layout({self._shape!r}, {self._stride!r}{tail})"

    def __str__(self) -> str:
        text = f"{format_tree(self._shape)}:{format_tree(self._stride)}"
        text += "".join(f"+R[{count}:{format_tree(stride)}]" for count, stride in self.replicas)
        text += format_signed(self.offset) if self.offset or self.offset.__class__ is Place else ""
        return text + (" where " + " and ".join(map(str, self.guards)) if self.guards else "")


def make_layout(
    shape: Shape, stride: Stride, offset: Offset = 0, replicas: tuple[Replica, ...] = (), guards: tuple[Guard, ...] = ()
) -> Layout:
    """Return a layout of parts that are known to be consistent, without validating them.

    >>> make_layout((4, 8), (1, 4))
    Layout((4, 8), (1, 4))
    """
    layout: Layout = object.__new__(Layout)
    layout._shape = shape
    layout._stride = stride
    layout._axes = layout._flat = layout._modes = None
    if offset.__class__ is Place:
        offset = _canonical_offset(offset, stride, replicas)
    layout._offset = offset
    layout._replicas = replicas
    layout._guards = guards
    return layout


def _canonical_offset(offset: Place, stride: Stride, replicas: tuple[Replica, ...]) -> Offset:
    """Return an offset without zeros, except along axes that no stride names."""
    strides: list[Any] = [*leaves(stride), *(further for _, further in replicas)]
    named = {name for leaf in strides if leaf.__class__ is Place for name in leaf._parts}
    parts = {name: amount for name, amount in offset._parts.items() if amount or (name and name not in named)}
    return Place._of(parts) if parts else 0


def add_axes(layout: Layout, names: tuple[str, ...]) -> Layout:
    """Return the layout with offsets on all the named axes; coordinates along new axes are 0.

    >>> from tilewright import bank
    >>> add_axes(Layout(4, 1 @ bank), ("bank", "addr"))(3)
    Place(bank=3, addr=0)
    """
    missing = [name for name in names if name not in layout.axes] if names else []
    return layout + Place._of(dict.fromkeys(missing, 0)) if missing else layout


def join_parts(layouts: tuple[Any, ...]) -> tuple[Any, Any, Any, tuple[Replica, ...], tuple[Guard, ...]]:
    """Return shape, stride, offset, replicas and guards of the layout that has these layouts as modes.

    >>> join_parts((Layout(4), Layout(8, 4)))
    ((4, 8), (1, 4), 0, (), ())
    """
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise TypeError(f"a layout can only be joined with layouts, got {type(layout).__name__} {layout!r}")
    shapes = tuple([layout._shape for layout in layouts])
    guards = []
    for k, layout in enumerate(layouts):
        for guard in layout.guards:
            strides = [guard.stride if j == k else zeros_like(shape) for j, shape in enumerate(shapes)]
            guards.append(guard.with_stride(tuple(strides)))
    return (
        shapes,
        tuple([layout._stride for layout in layouts]),
        sum((layout.offset for layout in layouts), 0),
        sum((layout.replicas for layout in layouts), ()),
        tuple(guards),
    )
