# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.layout`: the older layout of nested integers, and its algebra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

from numpy.typing import NDArray

from tilewright import layout as algebra
from tilewright._dialect import unwrap
from tilewright.errors import LayoutError
from tilewright.layout import ComposedLayout, as_tuple, leaves, map_leaves, nest_like, row_major
from tilewright.layout import Layout as NativeLayout
from tilewright.mojo import MemoryType, TypeBrackets, brackets
from tilewright.mojo.layout import MixedLayout as TileLayout
from tilewright.mojo.layout import RuntimeInt

from ..collections import List
from .int_tuple import (
    UNKNOWN_VALUE,
    IntTuple,
    compact_order,
    crd2idx,
    fill_like,
    idx2crd,
    prefix_product,
    product,
    reverse,
    shape_div,
)
from .nested_integers import as_int_tree, of_tree


def _row_major(_: object, parameters: tuple[Any, ...], *dims: Any, **named: Any) -> Layout:
    extents = of_tree(_shape_of(parameters, (*dims, *_named_shape("row_major", **named))))
    return Layout(extents, reverse(prefix_product(reverse(extents))))


def _col_major(_: object, parameters: tuple[Any, ...], *dims: Any, **named: Any) -> Layout:
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
    _tile_layout_type = TileLayout  # of the values that a parameter of this type takes as well
    shape: IntTuple
    stride: IntTuple

    def __new__(cls, shape: object = (), stride: object = None, **options: Any) -> Layout:
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

    row_major = staticmethod(brackets(_row_major, None))
    col_major = staticmethod(brackets(_col_major, None))

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
        return int(self.native.cosize) if self.all_dims_known() else UNKNOWN_VALUE

    def __call__(self, *index: Any, idx: object = None) -> int:
        """Return the offset of a coordinate, which Mojo calls `idx`."""
        index = index if idx is None else (*index, idx)
        coordinate = index[0] if len(index) == 1 else index
        return crd2idx(coordinate, self.shape, self.stride)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the offsets, as for native layouts; NumPy would list the modes."""
        return self.native.__array__(dtype, copy)

    def idx2crd(self, idx: object) -> IntTuple:
        """Return the coordinate at an index.

        >>> print(Layout.row_major(4, 8).idx2crd(21))
        (2, 5)
        """
        return idx2crd(idx, self.shape, self.stride)

    # Known and unknown integers.

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

    # Other forms.

    @staticmethod
    def wrap(layout: NativeLayout) -> Layout:
        """Return a native `layout` as one of Mojo; leaves that are known only at run time become unknown.

        >>> print(Layout.wrap(NativeLayout((4, 8), (8, 1))))
        ((4, 8):(8, 1))
        """
        if not isinstance(layout, NativeLayout):
            raise LayoutError(f"{layout} has no strides, which a layout of Mojo needs")
        shape, stride = (map_leaves(_as_known, tree) for tree in (layout.shape, layout.stride))
        return Layout(of_tree(shape), of_tree(stride))

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

    @property
    def native(self) -> NativeLayout:
        """The layout of the library; raise if something is unknown.

        >>> Layout.row_major(4, 8).native
        Layout((4, 8), (8, 1))
        """
        if not self.all_dims_known():
            raise LayoutError(f"{self} has unknown extents or strides; give them at run time, in a RuntimeLayout")
        return NativeLayout(self.shape._tree, self.stride._tree)

    def to_layout(self) -> TileLayout:
        """Return the layout of `tile_layout` with the same numbers; unknown ones cannot be.

        >>> Layout.row_major(4, 8).to_layout()
        Layout((4, 8), (8, 1))
        """
        return TileLayout(self.shape._tree, self.stride._tree)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Layout):
            return self.shape == other.shape and self.stride == other.stride
        if isinstance(other, NativeLayout):
            return self == Layout.wrap(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def offsets(self) -> NDArray[Any]:
        """Return the index of every coordinate, as an array.

        >>> Layout.row_major(2, 2).offsets().tolist()
        [[0, 1], [2, 3]]
        """
        table: NDArray[Any] = self.native.offsets()
        return table

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


def _as_known(leaf: Any) -> int:
    return UNKNOWN_VALUE if isinstance(leaf, RuntimeInt) else int(leaf)


def to_native(layout: Any, shape: object = None, stride: object = None) -> NativeLayout:
    """Return a layout for a tensor: known numbers as they are, the others from `shape` and `stride` at run time.

    >>> to_native(Layout.row_major(UNKNOWN_VALUE, 8), (4, 8), (8, 1))
    Layout((Idx(4), 8), (8, 1))
    """
    if shape is None or not isinstance(layout, Layout):
        native: NativeLayout = unwrap(layout)
        return native
    trees = []
    for known, numbers in ((layout.shape, shape), (layout.stride, stride)):
        values, fixed = leaves(as_int_tree(numbers)), leaves(known._tree)
        if len(values) != len(fixed):
            raise LayoutError(f"{known} has {len(fixed)} integers, but {len(values)} are given at run time")
        pairs = zip(fixed, values, strict=True)
        merged = [RuntimeInt(now) if before == UNKNOWN_VALUE else before for before, now in pairs]
        trees.append(nest_like(known._tree, iter(merged)))
    shape, stride = (tree if isinstance(tree, tuple) else (tree,) for tree in trees)
    return NativeLayout(shape, stride)


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


LayoutList: Any = MemoryType.of(List, Layout)


def MakeLayoutList(*layouts: Layout) -> List:  # noqa: N802  (Mojo's name)
    """Return a list of layouts.

    >>> len(MakeLayoutList(Layout(4, 1), Layout(2, 1)))
    2
    """
    made: List = LayoutList(*layouts)
    return made


@brackets
def MakeTileLayoutList(parameters: tuple[Any, ...]) -> List:  # noqa: N802
    """`MakeTileLayoutList[2, 4]()`: the layouts of tile extents, mode by mode.

    >>> print(MakeTileLayoutList[2, 4]())
    [(2:1), (4:1)]
    """
    return MakeLayoutList(*[Layout(int(extent), 1) for extent in parameters])


def sublayout(layout: Layout, *modes: Any) -> Layout:
    """Return some modes of a layout.

    >>> print(sublayout(Layout.row_major(2, 3, 4), 0, 2))
    ((2, 4):(12, 1))
    """
    return make_layout(*[layout[k] for k in modes])


@brackets
def is_row_major(parameters: tuple[Any, ...], layout: Layout, rank: object = None) -> bool:
    """`is_row_major[rank](layout)`: whether a layout of that many leaves has row-major strides.

    >>> is_row_major[2](Layout.row_major(4, 8)), is_row_major[2](Layout.col_major(4, 8))
    (True, False)
    """
    shape, stride = leaves(layout.shape._tree), leaves(layout.stride._tree)
    (count,) = parameters or (rank,)
    if len(shape) != count:
        return False
    return tuple(stride) == as_tuple(row_major(tuple(shape)).stride)


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
    if isinstance(layout, Layout):
        if layout.rank() != 2:
            raise LayoutError(f"a table needs a layout of two modes, got {layout}")
        if not layout.known_shape():
            raise LayoutError(f"a table needs known extents, got {layout}")
        layout = layout.to_layout()
    return format(layout, "table")


def print_layout(layout: object) -> None:
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


def _result(layout: Any, caller: str) -> Layout:
    if isinstance(layout, ComposedLayout):
        raise LayoutError(f"{caller}: the result has no strides; tilewright.compose has an exact answer")
    return Layout.wrap(layout)


def _without_unit_strides(layout: Layout) -> Layout:
    """Return the layout with stride 0 where an extent is 1, as Mojo's divisions and products have it."""
    pairs = zip(leaves(layout.shape._tree), leaves(layout.stride._tree), strict=True)
    strides = iter([0 if n == 1 else d for n, d in pairs])
    return Layout(layout.shape, of_tree(nest_like(layout.shape._tree, strides)))


def coalesce(layout: Layout, keep_rank: bool = False) -> Layout:
    """Return the layout with neighbouring modes merged where they continue each other; `keep_rank` only within modes.

    >>> print(coalesce(Layout(IntTuple(2, 8), IntTuple(4, 8))))
    (16:4)
    """
    if keep_rank:
        return make_layout(*[coalesce(mode) for mode in layout])
    if layout.all_dims_known():
        return Layout.wrap(algebra.coalesce(layout.native))
    shape, stride = [1], [0]
    for n, d in zip(leaves(layout.shape._tree), leaves(layout.stride._tree), strict=True):
        continues = UNKNOWN_VALUE not in (shape[-1], stride[-1], n, d) and shape[-1] * stride[-1] == d
        if n == 1:
            continue
        if shape[-1] == 1:
            shape[-1], stride[-1] = n, d
        elif continues:
            shape[-1] *= n
        else:
            shape.append(n)
            stride.append(d)
    trees = [tuple(part) if len(part) > 1 else part[0] for part in (shape, stride)]
    return Layout(of_tree(trees[0]), of_tree(trees[1]))


def composition(layout_a: Layout, layout_b: object) -> Layout:
    """Return the layout i -> layout_a(layout_b(i)); with a list of layouts, mode by mode.

    >>> print(composition(Layout.row_major(4, 8), Layout(4, 2)))
    ((2, 2):(16, 1))
    """
    if not isinstance(layout_b, Layout):
        return apply_tiler[composition](layout_a, layout_b)
    return _result(algebra.compose(layout_a.native, layout_b.native), "composition")


def complement(layout: Layout, size: Any = 1) -> Layout:
    """Return the layout of the indices below `size` that a layout leaves out, as far as they repeat it.

    >>> print(complement(Layout(4, 2), 24), complement(Layout(4, 1), UNKNOWN_VALUE))
    ((2, 3):(1, 8)) (-1:4)
    """
    count = int(size)
    if count != UNKNOWN_VALUE:
        return _without_unit_strides(Layout.wrap(algebra.complement(layout.native, count)))
    end = layout.cosize()
    inner = Layout.wrap(algebra.complement(layout.native, end))
    rest = Layout(UNKNOWN_VALUE, end)
    return rest if inner.size() == 1 else make_layout(*_modes(inner), rest)


def _modes(layout: Layout) -> list[Layout]:
    return list(layout) if layout.shape.is_tuple() else [layout]


@brackets
def apply_tiler(parameters: tuple[Any, ...], layout_a: Layout, tiler: Any) -> Layout:
    """`apply_tiler[function](layout, tiler)`: a function of each mode and the layout of a list for it.

    >>> print(apply_tiler[composition](Layout.row_major(8, 4), [Layout(4, 1), Layout(2, 1)]))
    ((4, 2):(4, 1))
    """
    tilers = list(tiler)
    if not tilers:
        return layout_a
    parts = [parameters[0](layout_a[k], tile) for k, tile in enumerate(tilers)]
    return make_layout(*parts, *[layout_a[k] for k in range(len(tilers), len(layout_a))])


def logical_divide(layout_a: Layout, layout_b: object) -> Layout:
    """Return the layout as (tile, tiles): the elements that `layout_b` selects, and where the others repeat them.

    >>> print(logical_divide(Layout(IntTuple(4, 2, 3), IntTuple(2, 1, 8)), Layout(4, 2)))
    (((2, 2), (2, 3)):((4, 1), (2, 8)))
    """
    if not isinstance(layout_b, Layout):
        return apply_tiler[logical_divide](layout_a, layout_b)
    divided = algebra.logical_divide(layout_a.native, layout_b.native)
    return _without_unit_strides(_result(divided, "logical_divide"))


def logical_product(layout_a: Layout, layout_b: Any) -> Layout:
    """Return the layout (block, copies): `layout_a`, repeated by `layout_b`.

    >>> print(logical_product(Layout(IntTuple(2, 2), IntTuple(4, 1)), Layout(6, 1)))
    (((2, 2), (2, 3)):((4, 1), (2, 8)))
    """
    if not isinstance(layout_b, Layout):
        tilers = list(layout_b)
        if len(tilers) == 1:
            return logical_product(layout_a, tilers[0])
        return apply_tiler[logical_product](layout_a, tilers)
    product = _result(algebra.logical_product(layout_a.native, layout_b.native), "logical_product")
    return make_layout(layout_a, _without_unit_strides(product[1]))


def zip_modes(layout_a: Layout, layout_b: Layout) -> Layout:
    """Return the layout whose modes are pairs of the modes of two layouts.

    >>> print(zip_modes(Layout.row_major(2, 3), Layout.row_major(4, 5)))
    (((2, 4), (3, 5)):((3, 5), (1, 1)))
    """
    return make_layout(*[make_layout(a, b) for a, b in zip(_modes(layout_a), _modes(layout_b), strict=True)])


def blocked_product(layout_a: Layout, layout_b: Layout, coalesce_output: bool = False) -> Layout:
    """Return `layout_a` repeated by `layout_b` as a grid of blocks; `coalesce_output` merges within the modes.

    >>> print(blocked_product(Layout.row_major(2, 2), Layout.row_major(2, 3)))
    (((2, 2), (2, 3)):((2, 12), (1, 4)))
    """
    if layout_a.rank() != layout_b.rank():
        raise LayoutError(f"blocked_product: {layout_a} and {layout_b} have different ranks; they must match")
    pair = logical_product(layout_a, layout_b)
    blocks = zip_modes(pair[0], pair[1])
    return coalesce(blocks, keep_rank=True) if coalesce_output else blocks


def tile_to_shape(tile: Layout, target_shape: object, order: object = None) -> Layout:
    """Return `tile` repeated until it has the target shape; the mode with the lowest `order` is repeated first.

    >>> print(tile_to_shape(Layout.row_major(2, 5), IntTuple(6, 20)))
    (((2, 3), (5, 4)):((5, 10), (1, 30)))
    """
    shape = of_tree(as_int_tree(target_shape))
    counts = shape_div(_flat_shape(shape), _flat_shape(tile.shape))
    return blocked_product(tile, make_ordered_layout(counts, order) if order is not None else Layout(counts))


def _flat_shape(shape: IntTuple) -> IntTuple:
    return shape.product_flatten()


def make_ordered_layout(shape: object, order: object) -> Layout:
    """Return the layout of a shape without gaps, the mode with the lowest `order` fastest.

    >>> print(make_ordered_layout(IntTuple(2, 3, 4), IntTuple(1, 2, 0)))
    ((2, 3, 4):(4, 8, 1))
    """
    form = of_tree(as_int_tree(shape))
    return Layout(form, compact_order(form, order))


def hierarchical_unzip(layout_a: Layout, layout_b: Any) -> Layout:
    """Return the layout as (tile, tiles), each with one mode per mode of `layout_b`, whose strides have no effect.

    >>> print(hierarchical_unzip(Layout.row_major(4, 4), Layout.row_major(2, 2)))
    (((2, 2), (2, 2)):((4, 1), (8, 2)))
    """
    is_layout = isinstance(layout_b, Layout)
    if is_layout and (len(layout_a) == 1 or len(layout_b) == 1):
        return logical_divide(layout_a, Layout(layout_b.shape))
    tilers = list(layout_b)
    parts = [hierarchical_unzip(layout_a[k], tile) for k, tile in enumerate(tilers)]
    rest = [layout_a[k] for k in range(len(tilers), len(layout_a))]
    return make_layout(make_layout(*[part[0] for part in parts]), make_layout(*[part[1] for part in parts], *rest))


zipped_divide = hierarchical_unzip


def right_inverse(layout: Layout) -> Layout:
    """Return the layout r with layout(r(i)) = i, for as many i as there is one.

    >>> print(right_inverse(Layout.row_major(4, 8)))
    ((8, 4):(4, 1))
    """
    return Layout.wrap(algebra.require_strided(algebra.right_inverse(layout.native), "right_inverse"))


def _recast(layout: Layout, factor: int, change: Callable[[int, int, int], tuple[int, int]]) -> Layout:
    pairs = zip(leaves(layout.shape._tree), leaves(layout.stride._tree), strict=True)
    changed = [change(n, d, factor) for n, d in pairs]
    trees = [nest_like(layout.shape._tree, iter(numbers)) for numbers in zip(*changed, strict=True)]
    return Layout(of_tree(trees[0]), of_tree(trees[1]))


def _widen(n: int, d: int, factor: int) -> tuple[int, int]:
    return int(shape_div(n, shape_div(factor, d))), int(shape_div(d, factor))


def _narrow(n: int, d: int, factor: int) -> tuple[int, int]:
    return (n * factor, d) if d == 1 else (n, d * factor)


@brackets
def upcast(parameters: tuple[Any, ...], layout: Layout, factor: Any, **_: Any) -> Layout:
    """`upcast(layout, factor)`: the layout over elements that are `factor` times as wide.

    >>> print(upcast(Layout(IntTuple(4, 3), IntTuple(2, 4)), 2))
    ((4, 3):(1, 2))
    """
    return _recast(layout, int(factor), _widen)


@brackets
def downcast(parameters: tuple[Any, ...], layout: Layout, factor: Any, **_: Any) -> Layout:
    """`downcast(layout, factor)`: the layout over elements that are `factor` times as narrow.

    >>> print(downcast(Layout(IntTuple(4, 3), IntTuple(3, 1)), 2))
    ((4, 6):(6, 1))
    """
    return _recast(layout, int(factor), _narrow)


def expand_strides(shape: Any, stride: Any) -> IntTuple:
    """Return the strides of the integers of a shape that together have one stride.

    >>> print(expand_strides(IntTuple(3, IntTuple(5, 2)), 2))
    (2, (6, 30))
    """
    tree, step, strides = shape._tree, int(stride), []
    for leaf in leaves(tree):
        strides.append(step)
        step *= leaf
    return of_tree(nest_like(tree, iter(strides)))


def expand_modes_alike(layout_a: Layout, layout_b: Layout) -> list[Layout]:
    """Return two layouts of equal extents with the same nesting: an integer is split as the other's mode is.

    >>> for layout in expand_modes_alike(Layout.row_major(2, 2), Layout(4)):
    ...     print(layout)
    ((2, 2):(2, 1))
    ((2, 2):(1, 2))
    """
    shape, ours, theirs = _expand(layout_a.shape, layout_a.stride, layout_b.shape, layout_b.stride)
    return [Layout(shape, ours), Layout(shape, theirs)]


def _expand(shape_a: IntTuple, stride_a: IntTuple, shape_b: IntTuple, stride_b: IntTuple) -> tuple[IntTuple, ...]:
    if shape_a.is_value() and shape_b.is_value():
        return shape_b, stride_a, stride_b
    if shape_a.is_value():
        return shape_b, expand_strides(shape_b, stride_a), stride_b
    if shape_b.is_value():
        return shape_a, stride_a, expand_strides(shape_a, stride_b)
    if len(shape_a) != len(shape_b):
        raise LayoutError(f"expand_modes_alike: {shape_a} and {shape_b} have different numbers of modes")
    parts = [_expand(*modes) for modes in zip(shape_a, stride_a, shape_b, stride_b, strict=True)]
    shape, ours, theirs = (of_tree(tuple([part._tree for part in column])) for column in zip(*parts, strict=True))
    return shape, ours, theirs


@TypeBrackets
def LTToTTLayout(layout: Layout) -> TileLayout:  # noqa: N802  (Mojo's name)
    """`LTToTTLayout[layout]`: the layout of the `TileTensor` that a `LayoutTensor` of `layout` turns into.

    >>> LTToTTLayout[Layout.row_major(-1, 8)].static_shape
    (-1, 8)
    """
    shape, stride = (as_tuple(map_leaves(_as_leaf, tree._tree)) for tree in (layout.shape, layout.stride))
    return TileLayout(shape, stride)


def _as_leaf(leaf: int) -> int:
    return RuntimeInt(1) if leaf == UNKNOWN_VALUE else leaf
