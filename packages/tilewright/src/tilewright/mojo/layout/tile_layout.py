# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tile_layout`: layouts of `TileTensor`, with extents and strides that are known or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, overload, runtime_checkable

from ... import layout as algebra
from ..._dialect import unwrap
from ...errors import LayoutError
from ...layout import (
    ComposedLayout,
    Place,
    as_tree,
    as_tuple,
    leaves,
    make_layout,
    map_leaves,
    nest_like,
    prefix_product,
    product,
    require_strided,
    suffix_product,
    validate_shape,
)
from ...layout import Layout as NativeLayout
from ..brackets import TypeBrackets, brackets
from .coord import Coord, RuntimeInt, StaticExtents, as_coord, is_dynamic


@runtime_checkable
class TensorLayout(Protocol):
    """The members that a tensor needs of a layout; any object with them can be one.

    >>> isinstance(row_major[4, 4](), TensorLayout)
    True
    """

    @property
    def rank(self) -> int: ...
    @property
    def flat_rank(self) -> int: ...
    @property
    def shape_known(self) -> bool: ...
    @property
    def stride_known(self) -> bool: ...
    @property
    def all_dims_known(self) -> bool: ...
    @property
    def static_shape(self) -> tuple[int, ...]: ...
    @property
    def static_stride(self) -> tuple[int, ...]: ...
    def shape_coord(self) -> Coord: ...
    def stride_coord(self) -> Coord: ...
    @property
    def size(self) -> int: ...
    @property
    def cosize(self) -> int: ...
    def __call__(self, *coord: Any) -> Any: ...


class RowMajorLayoutType:
    """The type `RowMajorLayout`: of flat layouts with row-major strides; `RowMajorLayout[4, 8]` has one shape.

    >>> isinstance(row_major[4, 8](), RowMajorLayout), isinstance(col_major[4, 8](), RowMajorLayout)
    (True, False)
    >>> RowMajorLayout[4, 8]
    Layout((4, 8), (8, 1))
    """

    def __getitem__(self, extents: object) -> Layout:
        entries = extents if isinstance(extents, tuple) else (extents,)
        return row_major._layout(tuple([n if isinstance(n, (int, tuple)) else RuntimeInt(1) for n in entries]))

    def __instancecheck__(self, layout: object) -> bool:
        if not isinstance(layout, Layout) or layout.flat_rank != layout.rank:
            return False
        return as_tuple(layout.stride) == as_tuple(suffix_product(layout.shape))

    def __repr__(self) -> str:
        return "RowMajorLayout"


RowMajorLayout = RowMajorLayoutType()


@TypeBrackets
def ColMajorLayout(*extents: Any) -> Layout:  # noqa: N802  (Mojo's name)
    """`ColMajorLayout[4, 8]`: the type of column-major layouts of one shape.

    >>> ColMajorLayout[4, 8]
    Layout((4, 8), (1, 4))
    """
    return col_major._layout(extents)


class Count(int):
    """A number that can be called, so that `layout.size` and Mojo's `layout.size()` are the same.

    >>> Count(24), Count(24)() + 1
    (24, 25)
    """

    __slots__ = ()

    def __call__(self) -> int:
        return int(self)


class Layout(StaticExtents, NativeLayout):
    """A layout with Mojo's methods: `size()`, `shape_coord()`, `static_product`, ...

    >>> layout = row_major[4, 6]()
    >>> print(layout.shape_coord(), layout.stride_coord(), layout.size(), layout.idx2crd(13), format(layout, "mojo"))
    (4, 6) (6, 1) 24 (2, 1) ((4, 6):(6, 1))
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ()

    @overload
    @classmethod
    def wrap(cls, layout: NativeLayout) -> Layout: ...

    @overload
    @classmethod
    def wrap(cls, layout: object) -> Any: ...

    @classmethod
    def wrap(cls, layout: object) -> Any:
        """Return a strided `layout` with Mojo's methods; other layouts as they are.

        >>> Layout.wrap(NativeLayout((4, 8))).size()
        32
        """
        if layout.__class__ is not NativeLayout:
            return layout
        result: Layout = object.__new__(Layout)
        result._shape, result._stride, result._offset, result._replicas, result._guards = layout._parts()
        result._axes = result._flat = result._modes = None
        return result

    @property
    def native(self) -> NativeLayout:
        """The layout of the library with the same integers.

        >>> type(row_major[4, 6]().native) is NativeLayout
        True
        """
        return make_layout(*self._parts())

    @property
    def shape(self) -> Any:  # a Coord: of nested modes too, `layout.shape[0]()` is an entry
        return _as_entries(self._shape)

    @property
    def stride(self) -> Any:
        return _as_entries(self._stride)

    def __call__(self, *coord: Any, index: object = None) -> Any:
        """Return the offset of a coordinate, which Mojo calls `index`."""
        if index is not None:
            coord = (*coord, index)
        if not coord and self._shape:
            return self  # of a type, the layout
        return super().__call__(*coord)

    def parametrized_type(self) -> Layout:
        """Return the type of the layout, which is the layout itself: its integers know what is static.

        >>> row_major[4, 6]().parametrized_type().static_shape
        (4, 6)
        """
        return self

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Layout) and static_leaves(self) == static_leaves(value)

    @property
    def _shape_types(self) -> EntryTypes:
        return EntryTypes(self._shape)

    @property
    def _stride_types(self) -> EntryTypes:
        return EntryTypes(self._stride)

    @property
    def size(self) -> Count:
        return Count(product(self._shape))

    @property
    def cosize(self) -> int:
        size = super().cosize
        return Count(size) if isinstance(size, int) else size

    @property
    def is_row_major(self) -> bool:
        """Whether the layout is flat and has exactly the strides of row-major order.

        >>> row_major[4, 6]().is_row_major, col_major[4, 6]().is_row_major
        (True, False)
        """
        return RowMajorLayout.__instancecheck__(self)

    def _leaf_extents(self) -> list[int]:
        return self.flat_modes()[0]

    def _leaf_strides(self) -> list[Any]:
        return self.flat_modes()[1]

    def shape_coord(self) -> Coord:
        """Return the shape.

        >>> print(row_major[4, 6]().shape_coord())
        (4, 6)
        """
        return as_coord(self.shape)

    def stride_coord(self) -> Coord:
        """Return the strides.

        >>> print(row_major[4, 6]().stride_coord())
        (6, 1)
        """
        return as_coord(self.stride)

    def product(self) -> int:
        """Return the number of coordinates.

        >>> row_major[4, 6]().product()
        24
        """
        return int(product(self.shape))

    @property
    def static_product(self) -> int:
        """The number of coordinates, -1 if an extent is known only at run time.

        >>> from tilewright.mojo.layout import Idx
        >>> row_major[4, 6]().static_product, row_major(Idx[4](), Idx(6)).static_product
        (24, -1)
        """
        return int(product(self.shape)) if self.shape_known else -1

    @property
    def static_cosize(self) -> int:
        """The size of the buffer that the layout needs, -1 if an extent or stride is known only at run time.

        >>> Layout((4, 6), (8, 1)).static_cosize
        30
        """
        return int(self.cosize) if self.all_dims_known else -1

    def idx2crd(self, idx: int) -> Any:
        """Return the coordinate at the offset `idx`: the inverse of the layout, leaf by leaf.

        >>> print(row_major[4, 6]().idx2crd(13))
        (2, 1)
        """
        index = int(idx)
        coordinate = offset_to_coordinate(index, self._shape, self._stride)
        if NativeLayout.__call__(self, coordinate) != index:
            raise LayoutError(f"{self} maps no coordinate to offset {idx}")
        return Coord(*as_tuple(coordinate))

    def reverse(self) -> Layout:
        """Return the layout with its modes in reverse, nested modes as they are.

        >>> print(row_major[4, 6]().reverse())
        ((6, 4):(1, 6))
        """
        return Layout.wrap(self.T)

    transpose = reverse

    def to_layout(self) -> Layout:
        """Return the layout itself.

        >>> row_major[4, 6]().to_layout()
        Layout((4, 6), (6, 1))
        """
        return self

    @brackets
    def make_dynamic(self, parameters: tuple[Any, ...], dyn_dtype: object = None) -> Layout:
        """Return the same layout with every extent and stride known only at run time: `make_dynamic[dtype]()`.

        >>> row_major[4, 8]().make_dynamic()
        Layout((Idx(4), Idx(8)), (Idx(8), Idx(1)))
        """
        result: Layout = make_dynamic_layout(self, (*parameters, dyn_dtype)[0])
        return result

    def _mode(self, path: tuple[int, ...]) -> Layout:
        return Layout.wrap(super()._mode(path))

    def _slice(self, coord: Any) -> Layout:
        return Layout.wrap(super()._slice(coord))

    def _with(self, **changes: Any) -> Layout:
        return Layout.wrap(super()._with(**changes))

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout.wrap, (self.native,)

    def __format__(self, style: str) -> str:
        if style == "table":
            return self._format_table()
        return str(self) if style == "mojo" else format(str(self), style)

    def _format_table(self) -> str:
        """Return the offsets of a layout of two modes as Mojo prints them, with rows and columns counted."""
        if self.rank != 2:
            raise LayoutError(f"a table needs a layout of two modes, got {self}")
        rows, columns = (int(product(mode)) for mode in self._shape)
        width, layout = len(str(int(self.cosize))), self.native
        divider = "    " + ("+" + "-" * (width + 2)) * columns + "+"
        lines = ["    " + " ".join(f"  {k:{width}}" for k in range(columns)), divider]
        for m in range(rows):
            cells = "".join(f"| {int(layout(m, n)):{width}} " for n in range(columns))
            lines += [f"{m:2}  {cells}|", divider]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return f"({_format_tree(self._shape)}:{_format_tree(self._stride)})"

    def __repr__(self) -> str:
        return repr(self.native)


TRIVIAL_MEMBERS = ("__copy_ctor_is_trivial", "__move_ctor_is_trivial", "__del__is_trivial")  # of layouts and tensors
for _name in TRIVIAL_MEMBERS:
    setattr(Layout, _name, True)


def make_dynamic_layout(layout: Any, dtype: object = None) -> Any:
    """Return a layout, strided or composed, with every extent and stride a run-time integer of a type.

    >>> make_dynamic_layout(NativeLayout((4, 8)))
    Layout((Idx(4), Idx(8)), (Idx(1), Idx(4)))
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, make_dynamic_layout(layout.inner, dtype))
    kind = RuntimeInt.with_parameters(dtype)
    trees = (layout.shape, layout.stride)
    shape, stride = (map_leaves(lambda leaf: leaf if isinstance(leaf, Place) else kind(leaf), tree) for tree in trees)
    return Layout.wrap(layout._with(shape=shape, stride=stride))


def _as_entries(tree: object) -> Any:
    """Return a shape or stride as a coordinate; strides on named axes, and single integers, as they are."""
    if not isinstance(tree, tuple) or any(isinstance(leaf, Place) for leaf in leaves(tree)):
        return tree
    return as_coord(tree)


def static_leaves(layout: NativeLayout) -> tuple[object, ...]:
    """Return shape and stride with the number type in place of leaves that are known only at run time.

    >>> from tilewright.mojo.layout import Idx
    >>> static_leaves(Layout((Idx(4), 8)))
    ((DType.int64, 8), (1, DType.int64))
    """
    trees = layout._parts()[:2]
    return tuple(map_leaves(lambda leaf: leaf.DTYPE if is_dynamic(leaf) else int(leaf), tree) for tree in trees)


class EntryTypes:
    """The types of the entries of a shape or stride: `types[0].static_value`, -1 if known only at run time.

    >>> EntryTypes((4, (2, 3)))[1].ParamListType[0].static_value, EntryTypes((4, 8)).size
    (2, 2)
    """

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    @property
    def size(self) -> int:
        """The number of entries.

        >>> EntryTypes((4, 8)).size
        2
        """
        return len(as_tuple(self._tree))

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, k: Any) -> EntryTypes:
        return EntryTypes(as_tuple(self._tree)[k])

    @property
    def ParamListType(self) -> EntryTypes:  # noqa: N802  (Mojo's names)
        """The types inside a nested entry.

        >>> EntryTypes(((2, 3),))[0].ParamListType.size
        2
        """
        return self

    VariadicType = element_types = ParamListType

    @property
    def static_value(self) -> int:
        """The integer, -1 if it is known only at run time.

        >>> EntryTypes((4, 8))[1].static_value
        8
        """
        return -1 if is_dynamic(self._tree) else int(self._tree)

    @property
    def is_tuple(self) -> bool:
        """Whether the entry is nested.

        >>> EntryTypes(((2, 3),))[0].is_tuple
        True
        """
        return isinstance(self._tree, tuple)

    @property
    def is_static_value(self) -> bool:
        """Whether the integer is known at compile time.

        >>> EntryTypes((4, 8))[1].is_static_value
        True
        """
        return not self.is_tuple and not is_dynamic(self._tree)


def _format_tree(tree: object) -> str:
    """Return a shape or stride as Mojo prints it."""
    parts = tree if isinstance(tree, tuple) else (tree,)
    return f"({', '.join(_format_tree(part) if isinstance(part, tuple) else str(part) for part in parts)})"


def offset_to_coordinate(offset: int, shape: Any, stride: Any) -> Any:
    """Return `(offset // stride) % shape` for each leaf, 0 where the stride is 0.

    >>> offset_to_coordinate(13, ((2, 2), (2, 3)), ((2, 12), (1, 4)))
    ((0, 1), (1, 0))
    """
    shape, stride = as_tree(shape), as_tree(stride)
    pairs = zip(leaves(shape), leaves(stride), strict=True)
    return nest_like(shape, iter([int(offset // step % n) if step and n else 0 for n, step in pairs]))


class _Major:
    """Compact layouts: `[...]()` with extents known at compile time, `(...)` at run time, except for `Idx[n]`."""

    def __init__(self, name: str, strides: Callable[[Any], Any]) -> None:
        self._name = name
        self._strides = strides

    def _layout(self, extents: object) -> Layout:
        shape = validate_shape(extents)
        return Layout(shape, self._strides(shape))

    def __getitem__(self, extents: object) -> Callable[[], Layout]:
        shape = tuple(extents) if isinstance(extents, (tuple, list)) else (extents,)
        return lambda: self._layout(shape)

    def with_parameters(self, *extents: Any) -> Callable[..., Layout]:
        """Return the function that makes the layout of extents known at compile time."""
        return lambda *shape: self(*shape) if shape else self._layout(extents)

    def __call__(self, *extents: Any, shape: object = None) -> Layout:
        """Return the layout of extents, or of one coordinate of them, which Mojo calls `shape`."""
        entries = extents if shape is None else (*extents, shape)
        if len(entries) == 1 and isinstance(entries[0], (tuple, list)):
            entries = tuple(entries[0])
        return self._layout(as_tree(Coord(*entries)))

    def __repr__(self) -> str:
        return self._name


row_major = _Major("row_major", suffix_product)
col_major = _Major("col_major", prefix_product)


def row_major_nested(shape: object) -> Layout:
    """Return the layout of a nested `shape` in which the last leaf varies fastest.

    >>> from tilewright.mojo.layout import coord
    >>> print(row_major_nested(coord[(2, 3), (4, 5)]))
    (((2, 3), (4, 5)):((60, 20), (5, 1)))
    """
    return row_major._layout(as_tree(shape))


def col_major_nested(shape: object) -> Layout:
    """Return the layout of a nested `shape` in which the first leaf varies fastest.

    >>> from tilewright.mojo.layout import coord
    >>> print(col_major_nested(coord[(2, 3), (4, 5)]))
    (((2, 3), (4, 5)):((1, 2), (6, 24)))
    """
    return col_major._layout(as_tree(shape))


@brackets
def blocked_product(
    parameters: tuple[Any, ...], block: NativeLayout, tiler: NativeLayout, coalesce_output: bool = False
) -> Any:
    """`blocked_product(block, tiler)`: `block` repeated by `tiler` as a grid of blocks, mode by mode.

    `coalesce_output`, also in brackets, merges a mode whose copies continue its block.

    >>> print(blocked_product(row_major[2, 2](), row_major[2, 3]()))
    (((2, 2), (2, 3)):((2, 12), (1, 4)))
    """
    coalesce_output = bool((*parameters, coalesce_output)[0])
    block, tiler = unwrap(block), unwrap(tiler)
    if block.rank != tiler.rank:
        raise LayoutError(
            f"blocked_product: {block} and {tiler} have {block.rank} and {tiler.rank} modes; they must match"
        )
    has_no_gaps = block.size == block.cosize and block.depth <= 1 and tiler.depth <= 1
    result = _repeat_block(block, tiler) if has_no_gaps else algebra.blocked_product(block, tiler)
    return Layout.wrap(_merge_modes(require_strided(result, "blocked_product")) if coalesce_output else result)


def _repeat_block(block: NativeLayout, tiler: NativeLayout) -> NativeLayout:
    """Return a block without gaps repeated by its size; the strides of extents 1 stay, as in Mojo."""
    copies = make_layout(tiler.shape, tuple([d * product(block.shape) for d in as_tuple(tiler.stride)]))
    shape = tuple(zip(as_tuple(block.shape), as_tuple(tiler.shape), strict=True))
    return make_layout(shape, tuple(zip(as_tuple(block.stride), copies.stride, strict=True)))


def _merge_modes(layout: NativeLayout) -> NativeLayout:
    """Return the layout with every (block, copies) mode merged where the copies continue the block."""
    shape, stride = [], []
    for n, d in zip(layout.shape, layout.stride, strict=True):
        joins = isinstance(n, tuple) and len(n) == 2 and d[0] * n[0] == d[1]
        shape.append(n[0] * n[1] if joins else n)
        stride.append(d[0] if joins else d)
    return make_layout(tuple(shape), tuple(stride))


@brackets
def zipped_divide(parameters: tuple[Any, ...], *arguments: Any, ragged: str = "cover") -> Any:
    """`zipped_divide[coord[3, 4]](layout)` or `zipped_divide(layout, (3, 4))`: ((tile), (tiles)).

    Tiles that do not divide cover the edge, with padding; `ragged="floor"` drops it, as Mojo does.

    >>> print(zipped_divide[2, 4](row_major[4, 8]()))
    (((2, 4), (2, 2)):((8, 1), (16, 4)))
    """
    layout, tile = (arguments[0], parameters) if parameters else arguments
    layout = unwrap(layout)
    if len(tile) == 1 and isinstance(tile[0], (tuple, list)):
        tile = tuple(tile[0])
    sizes = tuple([int(n) for n in tile])
    if len(sizes) != layout.rank or any(isinstance(n, tuple) for n in as_tuple(layout.shape)):
        raise LayoutError(f"zipped_divide: expected one tile extent per plain mode of {layout}, got {sizes}")
    shape, stride = as_tuple(layout.shape), as_tuple(layout.stride)
    if ragged != "floor" and any(n % m for n, m in zip(shape, sizes, strict=True)):
        return Layout.wrap(algebra.zipped_divide(layout, sizes))
    counts = tuple([n // m for n, m in zip(shape, sizes, strict=True)])
    steps = tuple([d * m for d, m in zip(stride, sizes, strict=True)])
    return Layout.wrap(make_layout((sizes, counts), (stride, steps)))


def coalesce(layout: Layout) -> Layout:
    """Return `layout` with neighbouring modes merged, left to right; always with at least one mode.

    >>> format(coalesce(row_major[2, 4]()), "mojo"), format(coalesce(col_major[2, 4]()), "mojo")
    ('((2, 4):(4, 1))', '((8):(1))')
    """
    merged = algebra.coalesce(unwrap(layout))
    shape, stride = as_tuple(merged.shape) or (1,), as_tuple(merged.stride) or (0,)
    result: Layout = Layout.wrap(make_layout(shape, stride if shape != (1,) else (0,)))
    return result


@brackets
def upcast(parameters: tuple[Any, ...], layout: NativeLayout, factor: int | None = None) -> Layout:
    """`upcast[factor](layout)` or `upcast(layout, factor)`: the layout over wider elements, by Mojo's rule.

    >>> print(upcast(row_major[3, 1, 12](), 3))
    ((3, 1, 4):(4, 4, 1))
    """
    (factor,) = parameters or (factor,)
    if factor is None:
        raise LayoutError("upcast needs a factor: upcast[factor](layout)")
    layout = unwrap(layout)
    extents, steps = layout.flat_modes()
    new_extents = [_shape_div(n, _shape_div(factor, d)) for n, d in zip(extents, steps, strict=True)]
    new_steps = [_shape_div(d, factor) for d in steps]
    shape = layout.shape
    result: Layout = Layout.wrap(make_layout(nest_like(shape, iter(new_extents)), nest_like(shape, iter(new_steps))))
    return result


def _shape_div(a: int, b: int) -> int:
    """Return a / b if b divides a, else the sign of a / b: Mojo's rule."""
    if b and a % b == 0:
        return a // b
    return (a * b > 0) - (a * b < 0)


def idx2crd(offset: int, shape: object, stride: object = None) -> Any:
    """Return `(offset // stride) % shape` leaf by leaf, 0 where `stride` is 0; without it, of the index in `shape`.

    >>> idx2crd(13, (4, 6), (6, 1))
    (2, 1)
    """
    form = as_tree(shape)
    return offset_to_coordinate(offset, form, prefix_product(form) if stride is None else stride)


def crd2idx(coord: Any, shape: object, stride: Any = None) -> Any:
    """Return the offset of `coord` in `shape` under `stride`: a tuple mode by mode, an integer as a colex index.

    >>> crd2idx((2, 1), (4, 6), (6, 1)), crd2idx(6, (4, 6), (6, 1))
    (13, 13)
    """
    form = as_tree(shape)
    return NativeLayout(form, prefix_product(form) if stride is None else stride)(as_tree(coord))


def is_compatible_with(coord: object, shape: object) -> bool:
    """Return whether `coord` fits `shape`: an integer fits any mode, a tuple one of equal length.

    >>> is_compatible_with((1, 2), (4, (2, 3))), is_compatible_with((1, (2,)), (4, (2, 3)))
    (True, False)
    """
    coord, shape = as_tree(coord), as_tree(shape)
    if not isinstance(coord, tuple):
        return True
    if not isinstance(shape, tuple) or len(coord) != len(shape):
        return False
    return all(is_compatible_with(c, s) for c, s in zip(coord, shape, strict=True))


WeaklyCompatible = TypeBrackets(lambda layout, coord: is_compatible_with(tuple(coord), layout._shape))
"""`WeaklyCompatible[layout, coord]`: whether a coordinate fits the shape of a layout."""
BlockedProductLayout, CoalesceLayout = TypeBrackets(blocked_product.__call__), TypeBrackets(coalesce)
UpcastLayout = TypeBrackets(upcast.__call__)
ZippedDivideLayout = TypeBrackets(lambda layout, tile: zipped_divide(layout, tuple(tile)))
