# SPDX-License-Identifier: Apache-2.0
"""Division: cut a layout into tiles. Every divide is one composition and a regrouping of its modes.

A tile that sticks out over the edge keeps its full shape; the coordinates past the end are not `valid`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import LayoutError
from .complements import complement, tiles_without_holes
from .composition import compose
from .construction import as_function, join
from .layout import Layout, make_layout
from .layout_like import LayoutLike, require_layout
from .tuples import Nested, Shape, as_tree, as_tuple, ceil_div, product

# An integer, a layout, None (leave the mode whole), or a tuple of these.
Tiler: TypeAlias = Any


def logical_divide(layout: Any, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Any:
    """Return `layout` cut into (tile, rest): the coordinates inside a tile, and those of the tiles.

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
    return compose(layout, _complete_tiler(layout.shape, as_tree(tiler), layout), strided=strided, exact=exact)


def _complete_tiler(shape: Shape, tiler: Tiler, layout: LayoutLike) -> Any:
    """Return each tiler joined with the layout of the positions where its tiles start."""
    if tiler is None:
        return None
    if isinstance(tiler, (tuple, list)):
        modes = shape if isinstance(shape, tuple) else (shape,)
        if len(tiler) > len(modes):
            raise LayoutError(
                f"tiler {tuple(tiler)} has more modes than the shape {shape} of {layout}, which has {len(modes)}"
            )
        return tuple([_complete_tiler(modes[k], part, layout) for k, part in enumerate(tiler)])
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


def zipped_divide(layout: Any, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Any:
    """Return `layout` cut by `tiler` into (all tile modes, all rest modes); options as in `logical_divide`.

    >>> zipped_divide(Layout((8, 8)), (2, 4))
    Layout(((2, 4), (4, 2)), ((1, 8), (2, 32)))
    """
    return regroup_pairs(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, zip_groups)


def tiled_divide(layout: Any, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Any:
    """Return `layout` cut by `tiler` into (all tile modes, rest, rest, ...); options as in `logical_divide`.

    >>> tiled_divide(Layout((8, 8)), (2, 4))
    Layout(((2, 4), 4, 2), ((1, 8), 2, 32))
    """
    return regroup_pairs(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, unpack_rest)


def flat_divide(layout: Any, tiler: Tiler, *, strided: bool = False, exact: bool = False) -> Any:
    """Return `layout` cut by `tiler` into (tile, tile, ..., rest, rest, ...); options as in `logical_divide`.

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


def regroup_pairs(layout: LayoutLike, tiler: Tiler, arrange: Callable[[Any, Any], Any]) -> Any:
    """Return a layout that was cut by `tiler` into (tile, rest) pairs, regrouped by `arrange(tiles, rests)`.

    >>> regroup_pairs(Layout(((2, 4), (4, 2))), (2, 4), lambda tile, rest: (rest, tile))
    Layout(((4, 2), (2, 4)), ((2, 32), (1, 8)))
    """
    return layout._restructure(lambda tree, unit: arrange(*_unzip(tree, tiler, unit)), "regrouping")


def _unzip(tree: Any, tiler: Tiler, unit: int) -> tuple[Any, Any]:
    """Return (tiles, rests) of a tree that was cut by `tiler`; a mode that was left whole has `unit` as its tile."""
    if tiler is None:
        return unit, tree
    if not isinstance(tiler, (tuple, list)):
        return tree[0], tree[1]
    pairs = [_unzip(mode, part, unit) for mode, part in zip(as_tuple(tree), tiler, strict=False)]
    tiles = tuple([tile for tile, _ in pairs])
    rests = tuple([rest for _, rest in pairs])
    return tiles, (*rests, *as_tuple(tree)[len(pairs) :])
