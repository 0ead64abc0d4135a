# SPDX-License-Identifier: Apache-2.0
"""CuTe's divides and products: layouts cut into tiles, and layouts repeated as tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import tilewright.layout as core

from ..errors import LayoutError
from ..layout import ComposedLayout
from ..layout import Layout as CoreLayout
from ..layout.layout_like import require_layout
from ..layout.modes import as_function, split_modes
from ..layout.tiled_layouts import complete_tiler, regroup_pairs, unpack_all, unpack_rest, zip_groups
from ..layout.tuples import as_tree
from .compositions import compose_strided
from .core_results import as_cute, on_tensors
from .layout import Layout


def _inside_composition(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product that repeats the innermost layout of a composition; outer functions go on past their ends."""

    @wraps(function)
    def repeat(block: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(block, ComposedLayout):
            return ComposedLayout(block.outer, repeat(block.inner, *arguments, **options))
        return function(block, *arguments, **options)

    return repeat


@on_tensors
def logical_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut into (tile, rest) by `tiler`; by a tuple, mode by mode.

    >>> print(logical_divide(Layout(24), 8))
    (8,3):(1,8)
    """
    return as_cute(_divide(layout, tiler), layout, tiler)


def _divide(layout: Any, tiler: Any) -> Any:
    """Return (tile, rest), as CuTe continues past the end of a layout: along its last mode, even one of extent 1."""
    function = require_layout(as_function(layout), "a divide")
    return compose_strided(function, complete_tiler(function.shape, as_tree(tiler), function))


@on_tensors
def zipped_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut by `tiler` into (all tile modes, all rest modes).

    >>> print(zipped_divide(Layout((8, 8)), (2, 4)))
    ((2,4),(4,2)):((1,8),(2,32))
    """
    return as_cute(regroup_pairs(_divide(layout, tiler), tiler, zip_groups), layout, tiler)


@on_tensors
def tiled_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut by `tiler` into (all tile modes, rest, rest, ...).

    >>> print(tiled_divide(Layout((8, 8)), (2, 4)))
    ((2,4),4,2):((1,8),2,32)
    """
    return as_cute(regroup_pairs(_divide(layout, tiler), tiler, unpack_rest), layout, tiler)


@on_tensors
def flat_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut by `tiler` into (tile, tile, ..., rest, rest, ...).

    >>> print(flat_divide(Layout((8, 8)), (2, 4)))
    (2,4,4,2):(1,8,2,32)
    """
    return as_cute(regroup_pairs(_divide(layout, tiler), tiler, unpack_all), layout, tiler)


@_inside_composition
def logical_product(block: Any, tiler: Any) -> Any:
    """Return (block, copies): `block` repeated at the positions of `tiler`.

    >>> print(logical_product(Layout(4), 3))
    (4,3):(1,4)
    """
    return as_cute(core.logical_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def zipped_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as (all block modes, all copy modes).

    >>> print(zipped_product(Layout((2, 2)), Layout((3, 4))))
    ((2,2),(3,4)):((1,2),(4,12))
    """
    return as_cute(core.zipped_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def tiled_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as (all block modes, copies, copies, ...).

    >>> print(tiled_product(Layout((2, 2)), Layout((3, 4))))
    ((2,2),3,4):((1,2),4,12)
    """
    return as_cute(core.tiled_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def flat_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as (block, block, ..., copies, copies, ...).

    >>> print(flat_product(Layout((2, 2)), Layout((3, 4))))
    (2,2,3,4):(1,2,4,12)
    """
    return as_cute(core.flat_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def blocked_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as a grid of whole blocks: ((block, copies), ...).

    >>> print(blocked_product(Layout((2, 2)), Layout((2, 2))))
    ((2,2),(2,2)):((1,4),(2,8))
    """
    return as_cute(core.blocked_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def raked_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` with its elements spread out: ((copies, block), ...).

    >>> print(raked_product(Layout((2, 2)), Layout((2, 2))))
    ((2,2),(2,2)):((4,1),(8,2))
    """
    return as_cute(core.raked_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def tile_to_shape(block: Any, shape: Any, order: Any = None) -> Any:
    """Return `block` repeated to `shape`; `order` ranks the modes of the grid of blocks, 0 for the fastest.

    >>> print(tile_to_shape(Layout((2, 2)), (4, 6), (1, 0)))
    ((2,2),(2,3)):((1,12),(2,4))
    """
    return as_cute(core.tile_to_shape(block, shape, order), block, shape)


def hier_unzip(splitter: Callable[[Any, Any], Any], layout: CoreLayout, tiler: Any) -> Any:
    """Return `splitter(mode, tiler)` of the modes of `layout`, its pairs gathered into (first modes, second modes).

    >>> print(hier_unzip(logical_divide, Layout((4, 8)), (2, 4)))
    ((2,4),(2,2)):((1,4),(2,16))
    """
    require_layout(layout, "hier_unzip")
    return as_cute(regroup_pairs(_split_modes(splitter, layout, tiler), tiler, zip_groups), layout, tiler)


def _split_modes(splitter: Callable[[Any, Any], Any], layout: CoreLayout, tiler: Any) -> Any:
    """Return the layout with every mode that has a tiler split in two."""
    if tiler is None:
        return layout
    if not isinstance(tiler, (tuple, list)):
        return splitter(layout, tiler)
    if len(tiler) > layout.rank:
        raise LayoutError(f"tiler {tuple(tiler)} has more modes than {layout}, which has {layout.rank}")
    modes = split_modes(layout)
    split = [_split_modes(splitter, mode, part) for mode, part in zip(modes, tiler, strict=False)]
    for part in split:
        if not isinstance(part, CoreLayout):
            raise LayoutError(
                f"{part} is not strided, and cannot be a mode of a layout; use a tiler that divides {layout}"
            )
    return Layout(*split, *modes[len(split) :])
