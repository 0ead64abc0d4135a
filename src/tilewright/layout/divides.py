# SPDX-License-Identifier: Apache-2.0
"""Division: cut a layout into tiles. Every divide is one composition and a regrouping of its modes.

Tiles that do not divide cover the edge and remember it: coordinates past the end are not `valid`.
"""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .base import require_layout
from .composed import ComposedLayout
from .composing import as_function, compose
from .construct import make_layout, own_modes
from .inverses import complement, tiles_exactly
from .regrouping import restructure
from .strided import Layout, make
from .tuples import as_tree, as_tuple, ceil_div, product


def logical_divide(layout: Any, tiler: Any, *, strided: bool = False, exact: bool = False) -> Any:
    """Return the layout cut into (tile, rest); a tuple of tilers cuts mode by mode: ((tile, rest), (tile, rest), ...).

    A tiler is an integer, a layout, None (leave the mode whole), or a tuple of these. `strided=True` raises where the
    result is not strided, `exact=True` where the tiles do not divide.

    >>> logical_divide(Layout(16), 4)
    Layout((4, 4), (1, 4))
    >>> ragged = logical_divide(Layout((5, 8), (1, 5)), (2, 4))
    >>> print(ragged, ragged.valid((1, 2), 0))
    ((2,3),(4,2)):((1,2),(5,20)) where ((1,2),(0,0))<5 False
    """
    layout = require_layout(as_function(layout), "a divide")
    return compose(layout, _completed(layout.shape, as_tree(tiler), layout), strided=strided, exact=exact)


def _completed(shape: Any, tiler: Any, layout: Any) -> Any:
    """Return each tiler joined with the layout of the places where its tiles start."""
    if tiler is None:
        return None
    if isinstance(tiler, (tuple, list)):
        modes = shape if isinstance(shape, tuple) else (shape,)
        if len(tiler) > len(modes):
            raise LayoutError(
                f"tiler {tuple(tiler)} has more modes than {layout}, whose shape {shape} has {len(modes)}"
            )
        return tuple([_completed(modes[k], part, layout) for k, part in enumerate(tiler)])
    if tiler.__class__ is int and tiler > 0:
        count = max(1, ceil_div(product(shape), tiler))
        return make((tiler, count), (int(tiler > 1), tiler if count > 1 else 0))
    tile = as_function(tiler)
    if not isinstance(tile, Layout):
        raise TypeError(f"a tiler is an integer, a strided layout or a tuple of these, got {tile!r}")
    if tile.axes:
        raise LayoutError(f"cannot cut {layout} by {tile}: a tiler counts elements, and has no axes; use tile.on(axis)")
    if tile.size == 0:
        raise LayoutError(f"cannot cut {layout} into tiles of {tiler}: a tile needs at least one element")
    if not tiles_exactly(tile):
        raise LayoutError(f"cannot cut {layout} by {tile}: however it is repeated, its places leave holes")
    return make_layout(tile, complement(tile, product(shape)))


def zipped_divide(layout: Any, tiler: Any, *, strided: bool = False, exact: bool = False) -> Any:
    """Return the layout cut into (all tile modes, all rest modes).

    >>> zipped_divide(Layout((8, 8)), (2, 4))
    Layout(((2, 4), (4, 2)), ((1, 8), (2, 32)))
    """
    return regroup(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, _zipped)


def tiled_divide(layout: Any, tiler: Any, *, strided: bool = False, exact: bool = False) -> Any:
    """Return the layout cut into (all tile modes, rest, rest, ...).

    >>> tiled_divide(Layout((8, 8)), (2, 4))
    Layout(((2, 4), 4, 2), ((1, 8), 2, 32))
    """
    return regroup(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, _tiled)


def flat_divide(layout: Any, tiler: Any, *, strided: bool = False, exact: bool = False) -> Any:
    """Return the layout cut into (tile, tile, ..., rest, rest, ...).

    >>> flat_divide(Layout((8, 8)), (2, 4))
    Layout((2, 4, 4, 2), (1, 8, 2, 32))
    """
    return regroup(logical_divide(layout, tiler, strided=strided, exact=exact), tiler, _flat)


def _zipped(tile: Any, rest: Any) -> Any:
    return (tile, rest)


def _tiled(tile: Any, rest: Any) -> Any:
    return (tile, *as_tuple(rest))


def _flat(tile: Any, rest: Any) -> Any:
    return (*as_tuple(tile), *as_tuple(rest))


def regroup(layout: Any, tiler: Any, arrange: Any) -> Any:
    """Return a layout whose modes are pairs (tile, rest) with the pairs taken apart and arranged anew.

    >>> regroup(Layout(((2, 4), (4, 2))), (2, 4), lambda tile, rest: (rest, tile))
    Layout(((4, 2), (2, 4)), ((2, 32), (1, 8)))
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, regroup(layout.inner, tiler, arrange))
    return restructure(layout, lambda tree, unit: arrange(*_unzip(tree, tiler, unit)))


def _unzip(tree: Any, tiler: Any, unit: Any) -> tuple[Any, Any]:
    """Return (tile, rest) of a tree that was cut by tiler; a mode that was left whole has the unit as its tile."""
    if tiler is None:
        return unit, tree
    if not isinstance(tiler, (tuple, list)):
        return tree[0], tree[1]
    pairs = [_unzip(mode, part, unit) for mode, part in zip(as_tuple(tree), tiler, strict=False)]
    tiles = tuple([tile for tile, _ in pairs])
    rests = tuple([rest for _, rest in pairs])
    return tiles, (*rests, *as_tuple(tree)[len(pairs) :])


def hier_unzip(splitter: Any, layout: Layout, tiler: Any) -> Any:
    """Return splitter(mode, tiler) applied down the tiler, its pairs gathered into (all first modes, all second modes).

    >>> hier_unzip(logical_divide, Layout((4, 8)), (2, 4))
    Layout(((2, 4), (2, 2)), ((1, 4), (2, 16)))
    """
    require_layout(layout, "hier_unzip")
    return regroup(_split_modes(splitter, layout, tiler), tiler, _zipped)


def _split_modes(splitter: Any, layout: Any, tiler: Any) -> Any:
    """Return the layout with every mode that has a tiler split in two."""
    if tiler is None:
        return layout
    if not isinstance(tiler, (tuple, list)):
        return splitter(layout, tiler)
    if len(tiler) > layout.rank:
        raise LayoutError(f"tiler {tuple(tiler)} has more modes than {layout}, which has {layout.rank}")
    modes = own_modes(layout)
    split = [_split_modes(splitter, mode, part) for mode, part in zip(modes, tiler, strict=False)]
    return make_layout(*split, *modes[len(split) :])
