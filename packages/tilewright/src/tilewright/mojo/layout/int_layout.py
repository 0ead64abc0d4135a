# SPDX-License-Identifier: Apache-2.0
"""Mojo's older layout, of nested integers that may be unknown at compile time, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

from ...errors import LayoutError
from ...layout import Layout as CoreLayout
from ...layout.tuples import as_tuple, leaves, map_leaves, nest_like, suffix_product
from ..brackets import Bracketed, brackets
from ..builtins import memory_type
from ..collections import List
from .coord import RuntimeInt, is_dynamic
from .int_tuple import (
    UNKNOWN_VALUE,
    IntTuple,
    crd2idx,
    fill_like,
    flatten,
    idx2crd,
    prefix_product,
    product,
    reverse,
)
from .nested_integers import as_int_tree, of_tree
from .tile_layout import Layout as TileLayout
from .tile_layout import format_layout_table, format_table

__all__ = [
    "IntTuple",
    "Layout",
    "LayoutList",
    "MakeLayoutList",
    "MakeTileLayoutList",
    "cosize",
    "crd2idx",
    "flatten",
    "format_layout",
    "idx2crd",
    "is_contiguous_dim",
    "is_row_major",
    "make_layout",
    "print_layout",
    "size",
    "sublayout",
]


def _row_major(_: Any, parameters: tuple[Any, ...], *dims: Any, **named: Any) -> Layout:
    extents = of_tree(_shape_of(parameters, (*dims, *_named_shape("row_major", **named))))
    return Layout(extents, reverse(prefix_product(reverse(extents))))


def _col_major(_: Any, parameters: tuple[Any, ...], *dims: Any, **named: Any) -> Layout:
    extents = of_tree(_shape_of(parameters, (*dims, *_named_shape("col_major", **named))))
    return Layout(extents, prefix_product(extents))


def _named_shape(method: str, **named: Any) -> tuple[Any, ...]:
    """Return a shape that has one of Mojo's names, `shape` or `tuple`; of two, or another name, nothing is made."""
    if len(named) > 1 or not set(named) <= {"shape", "tuple"}:
        raise TypeError(f"{method} takes dimensions, or shape, got {', '.join(named)}")
    return tuple(named.values())


def _shape_of(parameters: tuple[Any, ...], dims: tuple[Any, ...]) -> Any:
    """Return the shape from integers, one tuple, or only a rank in brackets: then it is unknown."""
    if not dims and parameters:
        return (UNKNOWN_VALUE,) * int(parameters[0])
    if len(dims) == 1:
        tree = as_int_tree(dims[0])
        return tree if isinstance(tree, tuple) else (tree,)
    return as_int_tree(dims)


class Layout:
    """A layout of nested integers; `UNKNOWN_VALUE` stands for those that are known only at run time.

    With a `Coord` or tuples of Python, it is the layout of `layout.tile_layout`.

    >>> layout = Layout.row_major(4, 8)
    >>> print(layout, layout.size(), layout(IntTuple(2, 5)), layout[1])
    ((4, 8):(8, 1)) 32 21 (8:1)
    """

    __slots__ = ("shape", "stride")
    __bracketed__: ClassVar[tuple[str, ...]] = ()
    shape: IntTuple
    stride: IntTuple

    def __new__(cls, shape: Any = (), stride: Any = None, **options: Any) -> Layout:
        """Return a layout of this kind, or of `tile_layout` if the arguments are tuples of Python."""
        if isinstance(shape, tuple) and (shape or options or stride is not None):
            parts = (shape,) if stride is None else (shape, stride)
            return cast(Layout, TileLayout(*parts, **options))
        self = object.__new__(cls)
        self.shape = shape if isinstance(shape, IntTuple) else of_tree(as_int_tree(shape))
        if stride is None:
            self.stride = prefix_product(self.shape)
        else:
            self.stride = stride if isinstance(stride, IntTuple) else of_tree(as_int_tree(stride))
        if fill_like(self.shape, 0) != fill_like(self.stride, 0):
            raise LayoutError(f"shape {self.shape} and stride {self.stride} have different nesting")
        return self

    row_major = Bracketed(_row_major)
    col_major = Bracketed(_col_major)

    # Modes.

    def __len__(self) -> int:
        return len(self.shape)

    def rank(self) -> int:
        """Return the number of modes.

        >>> Layout.row_major(4, 8).rank()
        2
        """
        return len(self.shape)

    def __getitem__(self, k: Any) -> Layout:
        return Layout(self.shape[k], self.stride[k])

    def __iter__(self) -> Iterator[Layout]:
        return (self[k] for k in range(len(self)))

    def append(self, item: Layout) -> None:
        """Add a mode at the end.

        >>> layout = Layout.row_major(4, 8)
        >>> layout.append(Layout(2, 32))
        >>> print(layout)
        ((4, 8, 2):(8, 1, 32))
        """
        self.shape, self.stride = self.shape.owned_copy(), self.stride.owned_copy()
        self.shape.append(item.shape)
        self.stride.append(item.stride)

    # As a function.

    def size(self) -> int:
        """Return the number of coordinates, unknown if an extent is.

        >>> Layout.row_major(4, 8).size()
        32
        """
        return product(self.shape)

    def cosize(self) -> int:
        """Return one more than the largest index.

        >>> Layout(IntTuple(4, 8), IntTuple(16, 1)).cosize()
        56
        """
        return int(self.core().cosize) if self.all_dims_known() else UNKNOWN_VALUE

    def __call__(self, *index: Any, idx: Any = None) -> int:
        """Return the offset of a coordinate, which Mojo calls `idx`."""
        index = index if idx is None else (*index, idx)
        coordinate = index[0] if len(index) == 1 else index
        return crd2idx(coordinate, self.shape, self.stride)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the offsets, as for layouts of the core; NumPy would list the modes."""
        return self.core().__array__(dtype, copy)

    def idx2crd(self, idx: Any) -> IntTuple:
        """Return the coordinate at an index.

        >>> print(Layout.row_major(4, 8).idx2crd(21))
        (2, 5)
        """
        return idx2crd(idx, self.shape, self.stride)

    # What is known.

    def all_dims_known(self) -> bool:
        """Return whether every extent and stride is known.

        >>> Layout.row_major(UNKNOWN_VALUE, 8).all_dims_known()
        False
        """
        return self.known_shape() and self.stride.all_known()

    def known_shape(self) -> bool:
        """Return whether every extent is known.

        >>> Layout.row_major(UNKNOWN_VALUE, 8).known_shape()
        False
        """
        return self.shape.all_known()

    @brackets
    def make_shape_unknown(self, parameters: tuple[Any, ...], *, axis: Any = UNKNOWN_VALUE) -> Layout:
        """Return the layout with the extents of a mode unknown, `make_shape_unknown[axis]()`, or all of them.

        >>> print(Layout.row_major(4, 8).make_shape_unknown[0]())
        ((-1, 8):(8, 1))
        """
        (mode,) = parameters or (axis,)
        parts = [
            fill_like(part, UNKNOWN_VALUE) if mode in (UNKNOWN_VALUE, k) else part for k, part in enumerate(self.shape)
        ]
        return Layout(of_tree(tuple([as_int_tree(part) for part in parts])), self.stride)

    # Other forms.

    def transpose(self) -> Layout:
        """Return the layout with its modes in reverse, nested modes as they are.

        >>> print(Layout.row_major(4, 8).transpose())
        ((8, 4):(1, 8))
        """
        return Layout(self.shape[::-1], self.stride[::-1]) if self.shape.is_tuple() else self

    def copy(self) -> Layout:
        """Return an equal layout.

        >>> Layout.row_major(4, 8).copy() == Layout.row_major(4, 8)
        True
        """
        return Layout(self.shape.owned_copy(), self.stride.owned_copy())

    __copy__ = copy

    def core(self) -> CoreLayout:
        """Return the layout of the core; raise if something is unknown.

        >>> Layout.row_major(4, 8).core()
        Layout((4, 8), (8, 1))
        """
        if not self.all_dims_known():
            raise LayoutError(f"{self} has unknown extents or strides; give them at run time, in a RuntimeLayout")
        return CoreLayout(self.shape._tree, self.stride._tree)

    def to_layout(self) -> TileLayout:
        """Return the layout of `tile_layout` with the same numbers; unknown ones cannot be.

        >>> Layout.row_major(4, 8).to_layout()
        Layout((4, 8), (8, 1))
        """
        return TileLayout(self.shape._tree, self.stride._tree)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Layout):
            return self.shape == other.shape and self.stride == other.stride
        if isinstance(other, CoreLayout):
            return self == from_core(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def offsets(self) -> Any:
        """Return the index of every coordinate, as an array.

        >>> Layout.row_major(2, 2).offsets().tolist()
        [[0, 1], [2, 3]]
        """
        return self.core().offsets()

    def write_to(self, writer: Any) -> None:
        """Write the text of the layout to `writer`, anything with a `write` method.

        >>> import sys
        >>> Layout.row_major(4, 8).write_to(sys.stdout)
        ((4, 8):(8, 1))
        """
        writer.write(str(self))

    def __str__(self) -> str:
        return f"({self.shape}:{self.stride})"

    def __format__(self, style: str) -> str:
        return str(self) if style == "mojo" else format(str(self), style)

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"

    def __reduce__(self) -> Any:
        return Layout, (self.shape, self.stride)


def from_core(layout: CoreLayout) -> Layout:
    """Return a layout of the core; leaves that are known only at run time become unknown.

    >>> print(from_core(CoreLayout((4, 8), (8, 1))))
    ((4, 8):(8, 1))
    """
    if not isinstance(layout, CoreLayout):
        raise LayoutError(f"{layout} has no strides, which a layout of Mojo needs")
    shape, stride = (map_leaves(_as_known, tree) for tree in (layout.shape, layout.stride))
    return Layout(of_tree(shape), of_tree(stride))


def _as_known(leaf: Any) -> int:
    return UNKNOWN_VALUE if is_dynamic(leaf) else int(leaf)


def to_core(layout: Any, shape: Any = None, stride: Any = None) -> Any:
    """Return a layout for a tensor: known numbers as they are, the others those of `shape` and `stride` at run time.

    >>> to_core(Layout.row_major(UNKNOWN_VALUE, 8), (4, 8), (8, 1))
    Layout((Idx(4), 8), (8, 1))
    """
    if not isinstance(layout, Layout):
        return layout
    if shape is None:
        return layout.core()
    trees = []
    for known, numbers in ((layout.shape, shape), (layout.stride, stride)):
        values, fixed = leaves(as_int_tree(numbers)), leaves(known._tree)
        if len(values) != len(fixed):
            raise LayoutError(f"{known} has {len(fixed)} integers, but {len(values)} are given at run time")
        pairs = zip(fixed, values, strict=True)
        merged = [RuntimeInt(now) if before == UNKNOWN_VALUE else before for before, now in pairs]
        trees.append(nest_like(known._tree, iter(merged)))
    shape, stride = (tree if isinstance(tree, tuple) else (tree,) for tree in trees)
    return CoreLayout(shape, stride)


def size(layout: Layout) -> int:
    """Return the number of coordinates.

    >>> size(Layout.row_major(4, 8))
    32
    """
    return layout.size() if hasattr(layout, "stride") else product(layout)


def cosize(layout: Layout) -> int:
    """Return one more than the largest index.

    >>> cosize(Layout.row_major(4, 8))
    32
    """
    return layout.cosize()


def make_layout(*layouts: Any) -> Layout:
    """Return a layout with other layouts as its modes.

    >>> print(make_layout(Layout(4, 1), Layout.row_major(2, 3)))
    ((4, (2, 3)):(1, (3, 1)))
    """
    parts = list(layouts[0]) if len(layouts) == 1 and not isinstance(layouts[0], Layout) else layouts
    shape = tuple([part.shape._tree for part in parts])
    return Layout(of_tree(shape), of_tree(tuple([part.stride._tree for part in parts])))


LayoutList: Any = memory_type(List, (Layout,))


def MakeLayoutList(*layouts: Layout) -> Any:  # noqa: N802  (Mojo's name)
    """Return a list of layouts.

    >>> len(MakeLayoutList(Layout(4, 1), Layout(2, 1)))
    2
    """
    return LayoutList(*layouts)


def _make_tile_layout_list(_: Any, parameters: tuple[Any, ...]) -> Any:
    return LayoutList(*[Layout(int(extent), 1) for extent in parameters])


class _MakeTileLayoutList(Bracketed[Any]):
    """`MakeTileLayoutList[2, 4]()`: the layouts of tile extents, mode by mode.

    >>> print(MakeTileLayoutList[2, 4]())
    [(2:1), (4:1)]
    """


MakeTileLayoutList = _MakeTileLayoutList(_make_tile_layout_list)


def sublayout(layout: Layout, *modes: Any) -> Layout:
    """Return some modes of a layout.

    >>> print(sublayout(Layout.row_major(2, 3, 4), 0, 2))
    ((2, 4):(12, 1))
    """
    return make_layout(*[layout[k] for k in modes])


def _is_row_major(_: Any, parameters: tuple[Any, ...], layout: Layout, rank: Any = None) -> bool:
    shape, stride = leaves(layout.shape._tree), leaves(layout.stride._tree)
    (count,) = parameters or (rank,)
    if len(shape) != count:
        return False
    return tuple(stride) == as_tuple(suffix_product(tuple(shape)))


class _IsRowMajor(Bracketed[bool]):
    """`is_row_major[rank](layout)`: whether a layout of that many leaves has row-major strides.

    >>> is_row_major[2](Layout.row_major(4, 8)), is_row_major[2](Layout.col_major(4, 8))
    (True, False)
    """


is_row_major = _IsRowMajor(_is_row_major)


def is_contiguous_dim(layout: Layout, dim: Any) -> bool:
    """Return whether the elements along a mode of a flat layout follow each other.

    >>> is_contiguous_dim(Layout.row_major(4, 8), 1)
    True
    """
    step, extent = layout.stride[dim].value(), layout.shape[dim].value()
    return step == 1 or (step == 0 and extent == 1)


def format_grid(layout: Any) -> str:
    """Return the indices of a layout with two modes as a table.

    >>> print(format_grid(Layout.col_major(2, 2)), end="")
          0   1
        +---+---+
     0  | 0 | 2 |
        +---+---+
     1  | 1 | 3 |
        +---+---+
    """
    if isinstance(layout, TileLayout):
        return format_layout_table(layout)
    if layout.rank() != 2:
        raise LayoutError(f"a table needs a layout of two modes, got {layout}")
    rows, columns = layout[0].size(), layout[1].size()
    if UNKNOWN_VALUE in (rows, columns):
        raise LayoutError(f"a table needs known extents, got {layout}")
    return format_table([[layout((m, n)) for n in range(columns)] for m in range(rows)], layout.cosize())


def format_layout(layout: Any, writer: Any = None, **_: Any) -> str:
    """Write the table of a layout to `writer`, and return it.

    >>> len(format_layout(Layout.col_major(2, 2)).splitlines())
    6
    """
    text = format_grid(layout)
    if hasattr(writer, "write"):
        writer.write(text)
    return text


def print_layout(layout: Any) -> None:
    """Print a layout, and its indices as a table.

    >>> print_layout(Layout.col_major(1, 2))
    ((1, 2):(1, 1))
          0   1
        +---+---+
     0  | 0 | 1 |
        +---+---+
    """
    print(layout)
    print(format_grid(layout), end="")
