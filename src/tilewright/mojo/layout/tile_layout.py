# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tile_layout`: plain integers are run-time values unless they stand in brackets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from ... import layout as algebra
from ...errors import LayoutError
from ...layout import Layout, product
from ...layout.brackets import Bracketed
from ...layout.mojo import offset2crd
from ...layout.strided import make
from ...layout.tuples import as_tree, as_tuple, leaves, like, prefix_product, suffix_product
from .coord import Coord

__all__ = [
    "Layout",
    "PageLayout",
    "WeaklyCompatible",
    "blocked_product",
    "coalesce",
    "col_major",
    "col_major_nested",
    "crd2idx",
    "idx2crd",
    "is_compatible_with",
    "row_major",
    "row_major_nested",
    "upcast",
    "zipped_divide",
]


@runtime_checkable
class PageLayout(Protocol):
    """What a tensor needs of a layout; any object with these can be one.

    >>> isinstance(row_major[4, 4](), PageLayout)
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
    def shape_coord(self) -> Any: ...
    def stride_coord(self) -> Any: ...
    @property
    def size(self) -> Any: ...
    @property
    def cosize(self) -> Any: ...
    def __call__(self, *coord: Any) -> Any: ...


class _Major:
    """Layouts without gaps: `[...]()` with static extents, `(...)` with run-time ones; `Idx[n]` is static anywhere."""

    def __init__(self, name: str, strides: Callable[[Any], Any]) -> None:
        self._name = name
        self._strides = strides

    def _made(self, extents: Any) -> Layout:
        shape = Layout(extents).shape
        return Layout(shape, self._strides(shape))

    def __getitem__(self, extents: Any) -> Callable[[], Layout]:
        shape = tuple(extents) if isinstance(extents, (tuple, list)) else (extents,)
        return lambda: self._made(shape)

    def __call__(self, *extents: Any) -> Layout:
        shape = extents[0] if len(extents) == 1 and isinstance(extents[0], (tuple, list)) else extents
        return self._made(as_tree(Coord(*shape)))

    def __repr__(self) -> str:
        return self._name


row_major = _Major("row_major", suffix_product)
col_major = _Major("col_major", prefix_product)


def row_major_nested(shape: Any) -> Layout:
    """Return the layout of a nested shape whose last leaf varies fastest.

    >>> from tilewright.mojo.layout import coord
    >>> print(row_major_nested(coord[(2, 3), (4, 5)]))
    ((2,3),(4,5)):((60,20),(5,1))
    """
    return row_major._made(as_tree(shape))


def col_major_nested(shape: Any) -> Layout:
    """Return the layout of a nested shape whose first leaf varies fastest.

    >>> from tilewright.mojo.layout import coord
    >>> print(col_major_nested(coord[(2, 3), (4, 5)]))
    ((2,3),(4,5)):((1,2),(6,24))
    """
    return col_major._made(as_tree(shape))


def blocked_product(block: Layout, tiler: Layout, order: str = "zipped", coalesce_output: bool = False) -> Any:
    """Return block repeated as a grid of whole blocks, mode by mode; `order="grouped"` is the form of Mojo 26.2.

    `coalesce_output` merges a mode whose copies continue its block.

    >>> print(blocked_product(row_major[2, 2](), row_major[2, 3]()))
    ((2,2),(2,3)):((2,12),(1,4))
    >>> print(blocked_product(row_major[2, 2](), row_major[2, 3](), order="grouped"))
    ((2,2),(2,3)):((2,1),(12,4))
    """
    if block.rank != tiler.rank:
        raise LayoutError(
            f"blocked_product: {block} and {tiler} have {block.rank} and {tiler.rank} modes; they must match"
        )
    without_gaps = block.size == block.cosize and block.flat_rank == block.rank and tiler.flat_rank == tiler.rank
    found = _repeated(block, tiler, order) if without_gaps else algebra.blocked_product(block, tiler, order=order)
    return _merged_modes(found) if coalesce_output else found


def _repeated(block: Layout, tiler: Layout, order: str) -> Layout:
    """Return a block without gaps repeated by its size: unlike the algebra, this keeps the strides of extents 1."""
    copies = make(tiler.shape, tuple([d * product(block.shape) for d in as_tuple(tiler.stride)]))
    if order == "grouped":
        return make((block.shape, tiler.shape), (block.stride, copies.stride))
    if order != "zipped":
        raise LayoutError(f"order={order!r}: a blocked product is 'zipped' mode by mode, or 'grouped'")
    shape = tuple(zip(as_tuple(block.shape), as_tuple(tiler.shape), strict=True))
    return make(shape, tuple(zip(as_tuple(block.stride), copies.stride, strict=True)))


def _merged_modes(layout: Layout) -> Layout:
    shape, stride = [], []
    for n, d in zip(layout.shape, layout.stride, strict=True):
        joins = isinstance(n, tuple) and len(n) == 2 and d[0] * n[0] == d[1]
        shape.append(n[0] * n[1] if joins else n)
        stride.append(d[0] if joins else d)
    return make(tuple(shape), tuple(stride))


def _zipped_divide(_: Any, fixed: tuple[Any, ...], *given: Any, ragged: str = "cover") -> Any:
    layout, tile = (given[0], fixed) if fixed else given
    if len(tile) == 1 and isinstance(tile[0], (tuple, list)):
        tile = tuple(tile[0])
    sizes = tuple([int(n) for n in tile])
    if len(sizes) != layout.rank or any(isinstance(n, tuple) for n in as_tuple(layout.shape)):
        raise LayoutError(f"zipped_divide: tile {sizes} needs one extent for each plain mode of {layout}")
    shape, stride = as_tuple(layout.shape), as_tuple(layout.stride)
    if ragged != "floor" and any(n % m for n, m in zip(shape, sizes, strict=True)):
        return algebra.zipped_divide(layout, sizes)
    counts = tuple([n // m for n, m in zip(shape, sizes, strict=True)])
    steps = tuple([d * m for d, m in zip(stride, sizes, strict=True)])
    return make((sizes, counts), (stride, steps))


class _ZippedDivide(Bracketed[Any]):
    """`zipped_divide[coord[3, 4]](layout)` or `zipped_divide(layout, (3, 4))`: ((tile), (tiles)).

    Tiles that do not divide cover the edge, with validity; `ragged="floor"` leaves it out, as Mojo does.

    >>> print(zipped_divide[2, 4](row_major[4, 8]()))
    ((2,4),(2,2)):((8,1),(16,4))
    """


zipped_divide = _ZippedDivide(_zipped_divide, None)


def coalesce(layout: Layout) -> Layout:
    """Return the layout with neighbouring modes merged, left to right; always with at least one mode.

    >>> format(coalesce(row_major[2, 4]()), "mojo"), format(coalesce(col_major[2, 4]()), "mojo")
    ('((2, 4):(4, 1))', '((8):(1))')
    """
    found = algebra.coalesce(layout)
    if isinstance(found.shape, tuple):
        return found if found.shape else make((1,), (0,))
    return make((found.shape,), (found.stride if found.shape != 1 else 0,))


def _upcast(_: Any, fixed: tuple[Any, ...], layout: Layout, *factor: int) -> Layout:
    (wide,) = fixed or factor
    steps = [_shape_div(d, wide) for d in leaves(layout.stride)]
    extents = [
        _shape_div(n, _shape_div(wide, d)) for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    ]
    return make(like(layout.shape, iter(extents)), like(layout.shape, iter(steps)))


def _shape_div(a: int, b: int) -> int:
    """Return a / b where it divides, else the sign: Mojo's rule."""
    if b and a % b == 0:
        return a // b
    return (a * b > 0) - (a * b < 0)


class _Upcast(Bracketed[Layout]):
    """`upcast[factor](layout)` or `upcast(layout, factor)`: the layout over wider elements, by Mojo's rule.

    >>> print(upcast(row_major[3, 1, 12](), 3))
    (3,1,4):(4,4,1)
    """


upcast = _Upcast(_upcast, None)


def idx2crd(offset: int, shape: Any, stride: Any = None) -> Any:
    """Return `(offset // stride) % shape` leaf by leaf, 0 where the stride is 0; without strides, of the colex index.

    >>> idx2crd(13, (4, 6), (6, 1))
    (2, 1)
    """
    form = as_tree(shape)
    return offset2crd(offset, form, prefix_product(form) if stride is None else stride)


def crd2idx(coord: Any, shape: Any, stride: Any = None) -> Any:
    """Return the offset of a coordinate: a tuple mode by mode, an integer as a colex index.

    >>> crd2idx((2, 1), (4, 6), (6, 1)), crd2idx(6, (4, 6), (6, 1))
    (13, 13)
    """
    return algebra.crd2idx(as_tree(coord), as_tree(shape), None if stride is None else as_tree(stride))


def is_compatible_with(coord: Any, shape: Any) -> bool:
    """Return whether a coordinate fits a shape: an integer fits any mode, a tuple one of equal length.

    >>> is_compatible_with((1, 2), (4, (2, 3))), is_compatible_with((1, (2,)), (4, (2, 3)))
    (True, False)
    """
    coord, shape = as_tree(coord), as_tree(shape)
    if not isinstance(coord, tuple):
        return True
    if not isinstance(shape, tuple) or len(coord) != len(shape):
        return False
    return all(is_compatible_with(c, s) for c, s in zip(coord, shape, strict=True))


WeaklyCompatible = is_compatible_with
