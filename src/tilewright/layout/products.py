# SPDX-License-Identifier: Apache-2.0
"""Products: repeat a layout at the positions of another. Every product is one join and a regrouping of its modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LayoutError
from .complements import free_positions
from .composed_layout import ComposedLayout
from .composition import compose
from .construction import as_function, compact_layout, join, split_modes
from .division import Tiler, regroup_pairs, unpack_all, unpack_rest, zip_groups
from .layout import Layout, ShapeArgument, used_axes
from .layout_like import LayoutLike, require_layout
from .logical_shape import with_logical_shape
from .strides import check_offset_range
from .tuples import as_tree, ceil_div, product_each
from .validation import validate_shape


def logical_product(block: Any, tiler: Tiler, *, strided: bool = False) -> Any:
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


def _product_by_mode(block: Layout, tilers: tuple[Tiler, ...], strided: bool) -> Any:
    """Return `block` with each mode repeated by its own tiler."""
    if len(tilers) > block.rank:
        raise LayoutError(f"tiler {tilers} has more modes than {block}, which has {block.rank}")
    modes = split_modes(block)
    repeated = [logical_product(mode, tiler, strided=strided) for mode, tiler in zip(modes, tilers, strict=False)]
    return join(*repeated, *modes[len(tilers) :])


def _composed_product(block: ComposedLayout, copies: LayoutLike, strided: bool) -> Any:
    """Return the product of a composition: the copies are added inside the outer function."""
    if not isinstance(block.inner, Layout) or isinstance(block.outer, Layout):
        raise LayoutError(f"logical_product of {block}: repeat the inner layout first, then compose")
    inner = logical_product(block.inner, copies, strided=strided)
    if not isinstance(inner, Layout):
        raise LayoutError(f"logical_product of {block} with {copies}: the copies are not strided")
    return compose(block.outer, inner)


def zipped_product(block: Any, tiler: Tiler, *, strided: bool = False) -> Any:
    """Return (all block modes, all copy modes); arguments as in `logical_product`.

    >>> zipped_product(Layout((2, 2)), Layout((3, 4)))
    Layout(((2, 2), (3, 4)), ((1, 2), (4, 12)))
    """
    return regroup_pairs(logical_product(block, tiler, strided=strided), tiler, zip_groups)


def tiled_product(block: Any, tiler: Tiler, *, strided: bool = False) -> Any:
    """Return (all block modes, copies, copies, ...); arguments as in `logical_product`.

    >>> tiled_product(Layout((2, 2)), Layout((3, 4)))
    Layout(((2, 2), 3, 4), ((1, 2), 4, 12))
    """
    return regroup_pairs(logical_product(block, tiler, strided=strided), tiler, unpack_rest)


def flat_product(block: Any, tiler: Tiler, *, strided: bool = False) -> Any:
    """Return (block, block, ..., copies, copies, ...); arguments as in `logical_product`.

    >>> flat_product(Layout((2, 2)), Layout((3, 4)))
    Layout((2, 2, 3, 4), (1, 2, 4, 12))
    """
    return regroup_pairs(logical_product(block, tiler, strided=strided), tiler, unpack_all)


def blocked_product(block: Any, tiler: Tiler, *, strided: bool = False) -> Any:
    """Return `block` repeated as a grid of whole blocks: mode by mode ((block, copies), ...).

    `tiler` says where the copies go, `strided=True` raises if the result is not strided.

    >>> blocked_product(Layout((2, 2)), Layout((2, 2)))
    Layout(((2, 2), (2, 2)), ((1, 4), (2, 8)))
    """
    return _interleave_modes(block, tiler, strided, block_first=True)


def raked_product(block: Any, tiler: Tiler, *, strided: bool = False) -> Any:
    """Return `block` repeated with its elements spread out: mode by mode ((copies, block), ...).

    `tiler` says where the copies go, `strided=True` raises if the result is not strided.

    >>> raked_product(Layout((2, 2)), Layout((2, 2)))
    Layout(((2, 2), (2, 2)), ((4, 1), (8, 2)))
    """
    return _interleave_modes(block, tiler, strided, block_first=False)


def _interleave_modes(block: Any, tiler: Tiler, strided: bool, block_first: bool) -> Any:
    """Return the product with the k-th modes of block and copies paired."""
    block, tiler = (require_layout(as_function(value), "a product") for value in (block, tiler))
    own, copies = block.rank, tiler.rank
    product = logical_product(block, tiler, strided=strided)
    nests = isinstance(block.shape, tuple), isinstance(tiler.shape, tuple)

    def arrange(tree: Any, _: Any) -> Any:
        # an extent of the block or tiler may be a tuple in the product, and is still one mode
        first, second = (part if nest else (part,) for part, nest in zip(tree, nests, strict=True))
        modes = []
        for k in range(max(own, copies)):
            if k >= own or k >= copies:
                modes.append(first[k] if k < own else second[k])
            else:
                modes.append((first[k], second[k]) if block_first else (second[k], first[k]))
        return tuple(modes)

    return product._restructure(arrange, "regrouping")


def tile_to_shape(block: Any, shape: ShapeArgument, order: Sequence[int] | None = None, *, exact: bool = False) -> Any:
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
