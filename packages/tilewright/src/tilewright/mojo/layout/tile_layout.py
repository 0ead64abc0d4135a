# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tile_layout`: plain integers are run-time values unless they stand in brackets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import layout as algebra
from ...errors import LayoutError
from ...layout import Layout as CoreLayout
from ...layout.layout import make_layout
from ...layout.tuples import as_tree, as_tuple, nest_like, prefix_product, product
from ..brackets import Bracketed
from .strided_layout import (
    ColMajorLayout,
    Layout,
    RowMajorLayout,
    TensorLayout,
    col_major,
    col_major_nested,
    from_core,
    offset_to_coordinate,
    plain_layout,
    row_major,
    row_major_nested,
)

__all__ = [
    "BlockedProductLayout",
    "CoalesceLayout",
    "ColMajorLayout",
    "Layout",
    "RowMajorLayout",
    "TensorLayout",
    "UpcastLayout",
    "WeaklyCompatible",
    "ZippedDivideLayout",
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


def _blocked_product(
    _: Any,
    parameters: tuple[Any, ...],
    block: Layout,
    tiler: Layout,
    coalesce_output: bool = False,
) -> Any:
    """Return `block` repeated by `tiler` as a grid of blocks, mode by mode.

    `coalesce_output` merges a mode whose copies continue its block.
    """
    block, tiler = plain_layout(block), plain_layout(tiler)
    coalesce_output = bool((*parameters, coalesce_output)[0])
    if block.rank != tiler.rank:
        raise LayoutError(
            f"blocked_product: {block} and {tiler} have {block.rank} and {tiler.rank} modes; they must match"
        )
    has_no_gaps = block.size == block.cosize and block.depth <= 1 and tiler.depth <= 1
    result = _repeat_block(block, tiler) if has_no_gaps else algebra.blocked_product(block, tiler)
    return from_core(_merge_modes(result) if coalesce_output else result)


class _BlockedProduct(Bracketed[Any]):
    """`blocked_product(block, tiler)`: `block` repeated by `tiler` as a grid of blocks, mode by mode.

    `coalesce_output`, also in brackets, merges a mode whose copies continue its block.

    >>> print(blocked_product(row_major[2, 2](), row_major[2, 3]()))
    (((2, 2), (2, 3)):((2, 12), (1, 4)))
    """


blocked_product = _BlockedProduct(_blocked_product)


def _repeat_block(block: CoreLayout, tiler: CoreLayout) -> CoreLayout:
    """Return a block without gaps repeated by its size; the strides of extents 1 stay, as in Mojo."""
    copies = make_layout(tiler.shape, tuple([d * product(block.shape) for d in as_tuple(tiler.stride)]))
    shape = tuple(zip(as_tuple(block.shape), as_tuple(tiler.shape), strict=True))
    return make_layout(shape, tuple(zip(as_tuple(block.stride), copies.stride, strict=True)))


def _merge_modes(layout: CoreLayout) -> CoreLayout:
    """Return the layout with every (block, copies) mode merged where the copies continue the block."""
    shape, stride = [], []
    for n, d in zip(layout.shape, layout.stride, strict=True):
        joins = isinstance(n, tuple) and len(n) == 2 and d[0] * n[0] == d[1]
        shape.append(n[0] * n[1] if joins else n)
        stride.append(d[0] if joins else d)
    return make_layout(tuple(shape), tuple(stride))


def _zipped_divide(_: Any, parameters: tuple[Any, ...], *arguments: Any, ragged: str = "cover") -> Any:
    layout, tile = (arguments[0], parameters) if parameters else arguments
    layout = plain_layout(layout)
    if len(tile) == 1 and isinstance(tile[0], (tuple, list)):
        tile = tuple(tile[0])
    sizes = tuple([int(n) for n in tile])
    if len(sizes) != layout.rank or any(isinstance(n, tuple) for n in as_tuple(layout.shape)):
        raise LayoutError(f"zipped_divide: expected one tile extent per plain mode of {layout}, got {sizes}")
    shape, stride = as_tuple(layout.shape), as_tuple(layout.stride)
    if ragged != "floor" and any(n % m for n, m in zip(shape, sizes, strict=True)):
        return from_core(algebra.zipped_divide(layout, sizes))
    counts = tuple([n // m for n, m in zip(shape, sizes, strict=True)])
    steps = tuple([d * m for d, m in zip(stride, sizes, strict=True)])
    return from_core(make_layout((sizes, counts), (stride, steps)))


class _ZippedDivide(Bracketed[Any]):
    """`zipped_divide[coord[3, 4]](layout)` or `zipped_divide(layout, (3, 4))`: ((tile), (tiles)).

    Tiles that do not divide cover the edge, with padding; `ragged="floor"` drops it, as Mojo does.

    >>> print(zipped_divide[2, 4](row_major[4, 8]()))
    (((2, 4), (2, 2)):((8, 1), (16, 4)))
    """


zipped_divide = _ZippedDivide(_zipped_divide)


def coalesce(layout: Layout) -> Layout:
    """Return `layout` with neighbouring modes merged, left to right; always with at least one mode.

    >>> format(coalesce(row_major[2, 4]()), "mojo"), format(coalesce(col_major[2, 4]()), "mojo")
    ('((2, 4):(4, 1))', '((8):(1))')
    """
    merged = algebra.coalesce(plain_layout(layout))
    shape, stride = as_tuple(merged.shape) or (1,), as_tuple(merged.stride) or (0,)
    result: Layout = from_core(make_layout(shape, stride if shape != (1,) else (0,)))
    return result


def _upcast(_: Any, parameters: tuple[Any, ...], layout: CoreLayout, factor: int | None = None) -> Layout:
    (factor,) = parameters or (factor,)
    if factor is None:
        raise LayoutError("upcast needs a factor: upcast[factor](layout)")
    layout = plain_layout(layout)
    extents, steps = layout.flat_modes()
    new_extents = [_shape_div(n, _shape_div(factor, d)) for n, d in zip(extents, steps, strict=True)]
    new_steps = [_shape_div(d, factor) for d in steps]
    shape = layout.shape
    result: Layout = from_core(make_layout(nest_like(shape, iter(new_extents)), nest_like(shape, iter(new_steps))))
    return result


def _shape_div(a: int, b: int) -> int:
    """Return a / b if b divides a, else the sign of a / b: Mojo's rule."""
    if b and a % b == 0:
        return a // b
    return (a * b > 0) - (a * b < 0)


class _Upcast(Bracketed[Layout]):
    """`upcast[factor](layout)` or `upcast(layout, factor)`: the layout over wider elements, by Mojo's rule.

    >>> print(upcast(row_major[3, 1, 12](), 3))
    ((3, 1, 4):(4, 4, 1))
    """


upcast = _Upcast(_upcast)


def idx2crd(offset: int, shape: Any, stride: Any = None) -> Any:
    """Return `(offset // stride) % shape` leaf by leaf, 0 where `stride` is 0; without it, of the index in `shape`.

    >>> idx2crd(13, (4, 6), (6, 1))
    (2, 1)
    """
    form = as_tree(shape)
    return offset_to_coordinate(offset, form, prefix_product(form) if stride is None else stride)


def crd2idx(coord: Any, shape: Any, stride: Any = None) -> Any:
    """Return the offset of `coord` in `shape` under `stride`: a tuple mode by mode, an integer as a colex index.

    >>> crd2idx((2, 1), (4, 6), (6, 1)), crd2idx(6, (4, 6), (6, 1))
    (13, 13)
    """
    form = as_tree(shape)
    return CoreLayout(form, prefix_product(form) if stride is None else stride)(as_tree(coord))


def is_compatible_with(coord: Any, shape: Any) -> bool:
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


class _WeaklyCompatible:
    """`WeaklyCompatible[layout, coord]`: whether a coordinate fits the shape of a layout.

    >>> from tilewright.mojo.layout import Coord
    >>> WeaklyCompatible[row_major[4, 8](), Coord(1, 2)], WeaklyCompatible((1, 2), (4, (2, 3)))
    (True, True)
    """

    def __getitem__(self, parameters: Any) -> bool:
        layout, coord = parameters
        return is_compatible_with(tuple(coord), layout._shape)

    def __call__(self, coord: Any, shape: Any) -> bool:
        return is_compatible_with(coord, shape)


WeaklyCompatible = _WeaklyCompatible()


class _LayoutAlias:
    """A type of layouts that is computed from others: `BlockedProductLayout[A, B]` is the layout of that type."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function

    def __getitem__(self, parameters: Any) -> Any:
        values = parameters if type(parameters) is tuple else (parameters,)
        return self.with_parameters(*values)

    def with_parameters(self, *parameters: Any, **named: Any) -> Any:
        """Return the layout for its parameters."""
        return self._function(*parameters, **named)

    def __repr__(self) -> str:
        return self._name


BlockedProductLayout = _LayoutAlias("BlockedProductLayout", blocked_product)
CoalesceLayout = _LayoutAlias("CoalesceLayout", coalesce)
UpcastLayout = _LayoutAlias("UpcastLayout", upcast)
ZippedDivideLayout = _LayoutAlias("ZippedDivideLayout", lambda layout, tile: zipped_divide(layout, tuple(tile)))


def _rows(layout: Any) -> list[list[int]]:
    core = plain_layout(layout)
    if core.rank != 2:
        raise LayoutError(f"a table needs a layout of two modes, got {layout}")
    rows, columns = (int(product(mode)) for mode in core.shape)
    return [[int(core(m, n)) for n in range(columns)] for m in range(rows)]


def format_layout_table(layout: Any) -> str:
    """Return the offsets of a layout of two modes as a table.

    >>> len(format_layout_table(row_major[2, 2]()).splitlines())
    6
    """
    return format_table(_rows(layout), int(layout.cosize))


def _format_layout(layout: Any, writer: Any = None) -> str:
    text = format_layout_table(layout)
    if hasattr(writer, "write"):
        writer.write(text)
    return text


def _print_layout(layout: Any) -> None:
    print(layout)
    print(_format_layout(layout), end="")


def format_table(rows: list[list[int]], cosize: int) -> str:
    """Return numbers as a table with rows and columns counted.

    >>> print(format_table([[0, 2], [1, 3]], 4), end="")
          0   1
        +---+---+
     0  | 0 | 2 |
        +---+---+
     1  | 1 | 3 |
        +---+---+
    """
    width = max(len(str(cosize)), 1)
    columns = len(rows[0]) if rows else 0
    divider = "    " + ("+" + "-" * (width + 2)) * columns + "+"
    lines = ["    " + " ".join(f"  {k:{width}}" for k in range(columns)), divider]
    for m, row in enumerate(rows):
        lines += [f"{m:2}  " + "".join(f"| {number:{width}} " for number in row) + "|", divider]
    return "\n".join(lines) + "\n"
