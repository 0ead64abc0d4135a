# SPDX-License-Identifier: Apache-2.0
"""Tiled layouts: division cuts a layout into tiles, a product repeats a layout as the tiles of another.

Every divide is one composition and a regrouping of its modes, every product one join and a regrouping. A tile
that sticks out over the edge keeps its full shape; the coordinates past the end are not `valid`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError
from .axes import check_offset_range
from .composed import ComposedLayout
from .composition import Tiler, compose, with_logical_shape
from .inverses import complement, free_positions, tiles_without_holes, used_axes
from .layout import Layout, LayoutLike, make_layout, require_layout
from .modes import LayoutArgument, as_function, compact_layout, join, split_modes
from .tuples import Nested, Shape, ShapeArgument, as_tree, as_tuple, product, product_each, validate_shape


def logical_divide(layout: LayoutArgument, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Layout | Any:
    """Return `layout` cut into (tile, rest): the coordinates inside a tile, and the coordinates of the tiles.

    `tiler` is an integer, a layout, None (leave the mode whole), or a tuple of these, which cuts mode by mode:
    ((tile, rest), (tile, rest), ...). `strided=True` raises if the result is not strided, `exact=True` if the tiles do
    not divide the layout.

    >>> logical_divide(Layout(16), 4)
    Layout((4, 4), (1, 4))
    >>> ragged = logical_divide(Layout((5, 8), (1, 5)), (2, 4))
    >>> print(ragged, ragged.valid((1, 2), 0))
    ((2,3),(4,2)):((1,2),(5,20)) where ((1,2),(0,0))<5 False
    """
    layout = require_layout(as_function(layout), "a divide")
    return compose(layout, complete_tiler(layout.shape, as_tree(tiler), layout), strided=strided, exact=exact)


def complete_tiler(shape: Shape, tiler: Tiler, layout: LayoutLike) -> Tiler:
    """Return a `tiler` of a `shape` joined with the layout of where its tiles start; `layout` is quoted in errors.

    >>> complete_tiler((8, 6), (2, None), Layout((8, 6)))
    (Layout((2, 4), (1, 2)), None)
    """
    if tiler is None:
        return None
    if isinstance(tiler, (tuple, list)):
        modes = shape if isinstance(shape, tuple) else (shape,)
        if len(tiler) > len(modes):
            raise LayoutError(
                f"tiler {tuple(tiler)} has more modes than the shape {shape} of {layout}, which has {len(modes)}"
            )
        return tuple([complete_tiler(modes[k], part, layout) for k, part in enumerate(tiler)])
    if tiler.__class__ is int and tiler > 0:
        count = max(1, ceil_div(product(shape), tiler))
        return make_layout((tiler, count), (int(tiler > 1), tiler if count > 1 else 0))
    tile = as_function(tiler)
    if not isinstance(tile, Layout):
        raise TypeError(f"a tiler must be an integer, a strided layout or a tuple of these, got {tile!r}")
    if tile.axes:
        raise LayoutError(f"cannot divide {layout} by {tile}: a tiler must not have named axes; use tile.project(axis)")
    if tile.size == 0:
        raise LayoutError(f"cannot divide {layout} by {tiler}: a tile needs at least one element")
    if not tiles_without_holes(tile):
        raise LayoutError(f"cannot divide {layout} by {tile}: copies of this tile leave holes")
    return join(tile, complement(tile, product(shape)))


def zipped_divide(layout: LayoutArgument, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Layout | Any:
    """Return `layout` cut into (all tile modes, all rest modes); `tiler`, `strided`, `exact` as in `logical_divide`.

    >>> zipped_divide(Layout((8, 8)), (2, 4))
    Layout(((2, 4), (4, 2)), ((1, 8), (2, 32)))
    """
    return regroup_pairs(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, zip_groups)


def tiled_divide(layout: LayoutArgument, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Layout | Any:
    """Return `layout` cut into (all tile modes, rest, rest, ...); `tiler`, `strided`, `exact` as in `logical_divide`.

    >>> tiled_divide(Layout((8, 8)), (2, 4))
    Layout(((2, 4), 4, 2), ((1, 8), 2, 32))
    """
    return regroup_pairs(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, unpack_rest)


def flat_divide(layout: LayoutArgument, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Layout | Any:
    """Return `layout` cut into (tile, tile, ..., rest, rest, ...); `tiler`, `strided`, `exact` as in `logical_divide`.

    >>> flat_divide(Layout((8, 8)), (2, 4))
    Layout((2, 4, 4, 2), (1, 8, 2, 32))
    """
    return regroup_pairs(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, unpack_all)


def zip_groups(tile: Nested[Any], rest: Nested[Any]) -> tuple[Any, ...]:
    """Return (tile, rest).

    >>> zip_groups((2, 4), (4, 2))
    ((2, 4), (4, 2))
    """
    return (tile, rest)


def unpack_rest(tile: Nested[Any], rest: Nested[Any]) -> tuple[Any, ...]:
    """Return (tile, rest, rest, ...).

    >>> unpack_rest((2, 4), (4, 2))
    ((2, 4), 4, 2)
    """
    return (tile, *as_tuple(rest))


def unpack_all(tile: Nested[Any], rest: Nested[Any]) -> tuple[Any, ...]:
    """Return (tile, tile, ..., rest, rest, ...).

    >>> unpack_all((2, 4), (4, 2))
    (2, 4, 4, 2)
    """
    return (*as_tuple(tile), *as_tuple(rest))


def regroup_pairs(layout: LayoutLike, tiler: Tiler, arrange: Callable[[Any, Any], Any]) -> Layout | Any:
    """Return a layout that was cut by `tiler` into (tile, rest) pairs, regrouped by `arrange(tiles, rests)`.

    >>> regroup_pairs(Layout(((2, 4), (4, 2))), (2, 4), lambda tile, rest: (rest, tile))
    Layout(((4, 2), (2, 4)), ((2, 32), (1, 8)))
    """
    return layout._restructure(lambda tree, unit: arrange(*_unzip(tree, tiler, unit)), "regrouping")


def _unzip(tree: Nested[Any], tiler: Tiler, unit: int) -> tuple[Any, Any]:
    """Return (tiles, rests) of a tree that was cut by `tiler`; a mode that was left whole has `unit` as its tile."""
    if tiler is None:
        return unit, tree
    if not isinstance(tiler, (tuple, list)):
        return tree[0], tree[1]
    pairs = [_unzip(mode, part, unit) for mode, part in zip(as_tuple(tree), tiler, strict=False)]
    tiles = tuple([tile for tile, _ in pairs])
    rests = tuple([rest for _, rest in pairs])
    return tiles, (*rests, *as_tuple(tree)[len(pairs) :])


def logical_product(block: LayoutArgument, tiler: Tiler, *, strided: bool = False) -> Layout | Any:
    """Return (block, copies): `block` repeated without collision at the positions of `tiler`.

    A tuple of tilers repeats each mode by itself; `blocked_product` repeats the whole block. A tiler over named axes
    places the copies there: `(32,32)` tiles over `1 @ core.x`. `strided=True` raises if the result is not strided.

    >>> logical_product(Layout(4), Layout(3))
    Layout((4, 3), (1, 4))
    >>> from tilewright import core
    >>> print(logical_product(Layout((32, 32)), Layout(8, 1 @ core.x)))
    ((32,32),8):((1,32),1@core.x)
    """
    block, tiler = require_layout(as_function(block), "a product"), as_tree(tiler)
    if tiler is None:
        return block
    if isinstance(tiler, tuple):
        return _product_by_mode(block, tiler, strided)
    copies = require_layout(as_function(tiler), "a product")
    if isinstance(block, ComposedLayout):
        return _composed_product(block, copies, strided)
    if copies.axes:
        shared = set(used_axes(copies)) & set(used_axes(block))
        if shared:
            raise LayoutError(f"{block} and {copies} would collide on the axis {', '.join(sorted(shared))}")
        return join(block, copies)
    result = join(block, compose(free_positions(block, copies.cosize), copies, strided=strided))
    if isinstance(result, Layout):
        check_offset_range(result.shape, result.stride, result.offset)
    return result


def _product_by_mode(block: LayoutLike, tilers: tuple[Tiler, ...], strided: bool) -> Layout | Any:
    """Return `block` with each mode repeated by its own tiler."""
    if len(tilers) > block.rank:
        raise LayoutError(f"tiler {tilers} has more modes than {block}, which has {block.rank}")
    modes = split_modes(block)
    repeated = [logical_product(mode, tiler, strided=strided) for mode, tiler in zip(modes, tilers, strict=False)]
    return join(*repeated, *modes[len(tilers) :])


def _composed_product(block: ComposedLayout, copies: LayoutLike, strided: bool) -> Layout | Any:
    """Return the product of a composition: the copies are added inside the outer function."""
    if not isinstance(block.inner, Layout) or isinstance(block.outer, Layout):
        raise LayoutError(f"logical_product of {block}: repeat the inner layout first, then compose")
    inner = logical_product(block.inner, copies, strided=strided)
    if not isinstance(inner, Layout):
        raise LayoutError(f"logical_product of {block} with {copies}: the copies are not strided")
    return compose(block.outer, inner)


def zipped_product(block: LayoutArgument, tiler: Tiler, *, strided: bool = False) -> Layout | Any:
    """Return (all block modes, all copy modes); `block`, `tiler` and `strided` as in `logical_product`.

    >>> zipped_product(Layout((2, 2)), Layout((3, 4)))
    Layout(((2, 2), (3, 4)), ((1, 2), (4, 12)))
    """
    return regroup_pairs(logical_product(block, tiler, strided=strided), tiler, zip_groups)


def tiled_product(block: LayoutArgument, tiler: Tiler, *, strided: bool = False) -> Layout | Any:
    """Return (all block modes, copies, copies, ...); `block`, `tiler` and `strided` as in `logical_product`.

    >>> tiled_product(Layout((2, 2)), Layout((3, 4)))
    Layout(((2, 2), 3, 4), ((1, 2), 4, 12))
    """
    return regroup_pairs(logical_product(block, tiler, strided=strided), tiler, unpack_rest)


def flat_product(block: LayoutArgument, tiler: Tiler, *, strided: bool = False) -> Layout | Any:
    """Return (block, block, ..., copies, copies, ...); `block`, `tiler` and `strided` as in `logical_product`.

    >>> flat_product(Layout((2, 2)), Layout((3, 4)))
    Layout((2, 2, 3, 4), (1, 2, 4, 12))
    """
    return regroup_pairs(logical_product(block, tiler, strided=strided), tiler, unpack_all)


def blocked_product(block: LayoutArgument, tiler: LayoutArgument, *, strided: bool = False) -> Layout | Any:
    """Return `block` repeated as a grid of whole blocks: mode by mode ((block, copies), ...).

    `tiler` places the copies, `strided=True` raises if the result is not strided.

    >>> blocked_product(Layout((2, 2)), Layout((2, 2)))
    Layout(((2, 2), (2, 2)), ((1, 4), (2, 8)))
    """
    return _interleave_modes(block, tiler, strided, block_first=True)


def raked_product(block: LayoutArgument, tiler: LayoutArgument, *, strided: bool = False) -> Layout | Any:
    """Return `block` repeated with its elements spread out: mode by mode ((copies, block), ...).

    `tiler` places the copies, `strided=True` raises if the result is not strided.

    >>> raked_product(Layout((2, 2)), Layout((2, 2)))
    Layout(((2, 2), (2, 2)), ((4, 1), (8, 2)))
    """
    return _interleave_modes(block, tiler, strided, block_first=False)


def _interleave_modes(block: LayoutArgument, tiler: LayoutArgument, strided: bool, block_first: bool) -> Layout | Any:
    """Return the product with the k-th modes of block and copies paired."""
    operands = [require_layout(as_function(value), "a product") for value in (block, tiler)]
    product = logical_product(*operands, strided=strided)
    is_nested = [isinstance(operand.shape, tuple) for operand in operands]

    def arrange(tree: tuple[Any, Any], _: int) -> Any:
        # an extent of the block or tiler may be a tuple in the product, and is still one mode
        own, copies = (part if nested else (part,) for part, nested in zip(tree, is_nested, strict=True))
        pairs = list(zip(own, copies, strict=False))
        paired = [(a, b) if block_first else (b, a) for a, b in pairs]
        return (*paired, *own[len(pairs) :], *copies[len(pairs) :])

    return product._restructure(arrange, "regrouping")


def tile_to_shape(
    block: LayoutArgument, shape: ShapeArgument, order: Sequence[int] | None = None, *, exact: bool = False
) -> Layout | Any:
    """Return `block` repeated until it covers `shape`.

    `order` ranks the modes of the grid of blocks, 0 for the one that varies fastest. Where the blocks do not divide the
    shape, the coordinates past its end are padding; `exact=True` raises instead.

    >>> tile_to_shape(Layout((2, 2)), (4, 6), (1, 0))
    Layout(((2, 2), (2, 3)), ((1, 12), (2, 4)))
    """
    block = require_layout(as_function(block), "tile_to_shape")
    extents = product_each(validate_shape(shape))
    block_extents = product_each(block.shape)
    if len(block_extents) != len(extents):
        raise LayoutError(
            f"cannot tile {block} to shape {shape}: both need the same number of top-level modes,"
            f" but the block has {len(block_extents)} and the shape {len(extents)}"
        )
    if 0 in block_extents:
        raise LayoutError(f"cannot tile {block} to shape {shape}: a block needs at least one element")
    counts = tuple([ceil_div(n, b) for n, b in zip(extents, block_extents, strict=True)])
    if exact and any(n % b for n, b in zip(extents, block_extents, strict=True)):
        raise LayoutError(
            f"shape {shape} is not an exact multiple of the block {block_extents}; without exact=True it is padded"
        )
    grid = compact_layout(counts if isinstance(shape, (tuple, list)) else counts[0], order)
    return with_logical_shape(blocked_product(block, grid), extents)


Pair = tuple[int, int]


@lru_cache(maxsize=512)
def tiled_layout(
    shape: tuple[int, ...], tile: Pair = (32, 32), face: Pair | None = (16, 16), transpose: bool = False
) -> Layout:
    """Return the layout of a tensor of this `shape` stored in tiles, with padding to whole tiles.

    Matrices follow each other; tiles are row-major in a matrix, faces row-major in a tile, elements row-major in a
    face. With `transpose`, faces and elements are column-major. `face=None` gives tiles without faces.

    >>> print(tiled_layout((4, 8), tile=(2, 2), face=None))
    ((2,1,2),(2,1,4)):((2,4,16),(1,4,4))
    """
    outer, rows, columns = split_matrix(shape)
    height, width = tile
    # faces are never larger than the tile: 8 x 32 tiles have faces of 8 x 16
    high, wide = (min(face[0], height), min(face[1], width)) if face else tile
    if height % high or width % wide:
        raise LayoutError(f"faces of {high} x {wide} do not divide a tile of {height} x {width}; use face=None")
    down, across = ceil_div(rows, height), ceil_div(columns, width)
    area = height * width
    in_row, in_column = (
        ((1, high * wide), (high, height * wide)) if transpose else ((wide, high * width), (1, high * wide))
    )
    matrix = ((high, height // high, down), (wide, width // wide, across))
    strides = ((*in_row, across * area), (*in_column, area))
    count = down * across * area
    outer_strides = tuple([prod(outer[k + 1 :]) * count for k in range(len(outer))])
    layout: Layout = with_logical_shape(
        make_layout((*outer, *matrix), (*outer_strides, *strides)), (*outer, rows, columns)
    )
    return layout


def split_matrix(shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
    """Return the outer dimensions, rows and columns of a shape."""
    if len(shape) < 2:
        return (), 1, shape[0] if shape else 1
    return shape[:-2], shape[-2], shape[-1]
