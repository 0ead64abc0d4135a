# SPDX-License-Identifier: Apache-2.0
"""Products: repeat a layout at the positions of another. Every product is one join and a regrouping of its modes."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .admission import check_span
from .base import require_layout
from .composed import ComposedLayout
from .composing import as_function, compose
from .construct import make_layout, make_ordered_layout, own_modes
from .divides import _flat, _tiled, _zipped, regroup
from .inverses import free_positions
from .regrouping import restructure
from .strided import Layout, used_axes
from .tuples import as_tree, ceil_div, product_each


def logical_product(block: Any, tiler: Any, *, strided: bool = False) -> Any:
    """Return (block, copies): block repeated without collision at the positions of tiler.

    A tuple of tilers repeats each mode by itself; `blocked_product` repeats the whole block. A tiler over named axes
    puts the copies there: `(32,32)` tiles over `1 @ core.x`. `strided=True` raises where the result is not strided.

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
        return _by_mode(block, tiler, strided)
    copies = require_layout(as_function(tiler), "a product")
    if isinstance(block, ComposedLayout):
        return _composed_product(block, copies, strided)
    if copies.axes:
        shared = set(used_axes(copies)) & set(used_axes(block))
        if shared:
            raise LayoutError(f"{block} and {copies} both lie on {', '.join(sorted(shared))}: copies would collide")
        return make_layout(block, copies)
    result = make_layout(block, compose(free_positions(block, copies.cosize), copies, strided=strided))
    if isinstance(result, Layout):
        check_span(result.shape, result.stride, result.offset)
    return result


def _by_mode(block: Any, tilers: tuple[Any, ...], strided: bool) -> Any:
    if len(tilers) > block.rank:
        raise LayoutError(f"tiler {tilers} has more modes than {block}, which has {block.rank}")
    modes = own_modes(block)
    repeated = [logical_product(mode, tiler, strided=strided) for mode, tiler in zip(modes, tilers, strict=False)]
    return make_layout(*repeated, *modes[len(tilers) :])


def _composed_product(block: ComposedLayout, copies: Any, strided: bool) -> Any:
    """Return the product of a composition: the copies follow the block inside the outer function."""
    if not isinstance(block.inner, Layout) or isinstance(block.outer, Layout):
        raise LayoutError(f"logical_product of {block}: repeat the layout first, and compose after that")
    inner = logical_product(block.inner, copies, strided=strided)
    if not isinstance(inner, Layout):
        raise LayoutError(f"logical_product of {block} with {copies}: the copies are not strided")
    return compose(block.outer, inner)


def zipped_product(block: Any, tiler: Any, *, strided: bool = False) -> Any:
    """Return (all block modes, all copy modes).

    >>> zipped_product(Layout((2, 2)), Layout((3, 4)))
    Layout(((2, 2), (3, 4)), ((1, 2), (4, 12)))
    """
    return regroup(logical_product(block, tiler, strided=strided), tiler, _zipped)


def tiled_product(block: Any, tiler: Any, *, strided: bool = False) -> Any:
    """Return (all block modes, copies, copies, ...).

    >>> tiled_product(Layout((2, 2)), Layout((3, 4)))
    Layout(((2, 2), 3, 4), ((1, 2), 4, 12))
    """
    return regroup(logical_product(block, tiler, strided=strided), tiler, _tiled)


def flat_product(block: Any, tiler: Any, *, strided: bool = False) -> Any:
    """Return (block, block, ..., copies, copies, ...).

    >>> flat_product(Layout((2, 2)), Layout((3, 4)))
    Layout((2, 2, 3, 4), (1, 2, 4, 12))
    """
    return regroup(logical_product(block, tiler, strided=strided), tiler, _flat)


def blocked_product(block: Any, tiler: Any, *, strided: bool = False, order: str = "zipped") -> Any:
    """Return block repeated as a grid of whole blocks: mode by mode ((block, copies), ...).

    `order="grouped"` gives (all of block, all copies) instead, as early versions of Mojo do.

    >>> blocked_product(Layout((2, 2)), Layout((2, 2)))
    Layout(((2, 2), (2, 2)), ((1, 4), (2, 8)))
    >>> blocked_product(Layout((2, 2)), Layout((2, 2)), order="grouped")
    Layout(((2, 2), (2, 2)), ((1, 2), (4, 8)))
    """
    if order == "grouped":
        return logical_product(block, tiler, strided=strided)
    if order != "zipped":
        raise LayoutError(f"order={order!r}: a blocked product is 'zipped' mode by mode, or 'grouped'")
    return _interleaved(block, tiler, strided, block_first=True)


def raked_product(block: Any, tiler: Any, *, strided: bool = False) -> Any:
    """Return block repeated with its elements spread out: mode by mode ((copies, block), ...).

    >>> raked_product(Layout((2, 2)), Layout((2, 2)))
    Layout(((2, 2), (2, 2)), ((4, 1), (8, 2)))
    """
    return _interleaved(block, tiler, strided, block_first=False)


def _interleaved(block: Any, tiler: Any, strided: bool, block_first: bool) -> Any:
    block, tiler = (require_layout(as_function(each), "a product") for each in (block, tiler))
    own, copies = block.rank, tiler.rank
    product = logical_product(block, tiler, strided=strided)
    nests = isinstance(block.shape, tuple), isinstance(tiler.shape, tuple)

    def arrange(tree: Any, _: Any) -> Any:
        # a mode that was one extent before may have become a tuple in the product, and is still one mode
        first, second = (part if nest else (part,) for part, nest in zip(tree, nests, strict=True))
        modes = []
        for k in range(max(own, copies)):
            if k >= own or k >= copies:
                modes.append(first[k] if k < own else second[k])
            else:
                modes.append((first[k], second[k]) if block_first else (second[k], first[k]))
        return tuple(modes)

    if isinstance(product, ComposedLayout):
        return ComposedLayout(product.outer, restructure(product.inner, arrange))
    return restructure(product, arrange)


def tile_to_shape(block: Any, shape: Any, order: Any = None, *, exact: bool = False) -> Any:
    """Return block repeated until it covers shape, blocks in the given order (the rank of each mode, 0 fastest).

    Where the blocks do not divide the shape, what lies beyond it is padding, or, with `exact=True`, an error.

    >>> tile_to_shape(Layout((2, 2)), (4, 6), (1, 0))
    Layout(((2, 2), (2, 3)), ((1, 12), (2, 4)))
    """
    from .padding import within

    block = require_layout(as_function(block), "tile_to_shape")
    wanted = product_each(Layout(shape).shape)
    have = product_each(block.shape)
    if len(have) != len(wanted):
        raise LayoutError(
            f"cannot tile {block} to shape {shape}: both need the same number of top-level modes,"
            f" but the block has {len(have)} and the shape {len(wanted)}"
        )
    if 0 in have:
        raise LayoutError(f"cannot tile {block} to shape {shape}: a block needs at least one element")
    counts = tuple([ceil_div(n, b) for n, b in zip(wanted, have, strict=True)])
    if exact and any(n % b for n, b in zip(wanted, have, strict=True)):
        raise LayoutError(
            f"shape {shape} is not an exact multiple of the block shape {have}; leave out exact=True to pad"
        )
    grid = make_ordered_layout(counts if isinstance(shape, (tuple, list)) else counts[0], order)
    tiled = blocked_product(block, grid)
    return within(tiled, wanted)
