# SPDX-License-Identifier: Apache-2.0
"""Slices of CuTe: the modes of a layout that a coordinate leaves open, and those that it fixes."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..layout import ComposedLayout, LayoutLike
from ..layout import Layout as CoreLayout
from ..layout.modes import require_strided
from ..layout.tuples import as_tree
from .core_results import as_cute
from .layout import from_core, slice_modes


def slice_(coord: Any, target: Any) -> Any:
    """Return the modes or branches of `target` where `coord` has None; a layout may also come first.

    >>> from tilewright.cute import Layout
    >>> print(slice_((None, 3), Layout((4, 8))), slice_((None, 3), (4, 8)), slice_(Layout((4, 8)), (None, 3)))
    (4):(1) (4,) (4):(1)
    """
    if isinstance(coord, LayoutLike):
        coord, target = target, coord
    if isinstance(target, LayoutLike):
        return slice_and_offset(coord, target)[0]
    return slice_modes(as_tree(coord), as_tree(target))


def dice_modes(coord: Any, target: Any) -> Any:
    """Return the modes of a layout, or the branches of a tuple, `target`, where `coord` has an integer: CuTe's `dice`.

    >>> from tilewright.cute import Layout
    >>> print(dice_modes((0, None), Layout((3, 4))), dice_modes((None, 1), (3, 4)), dice_modes(2, (3, 4)))
    (3):(1) (4,) (3, 4)
    """
    coord = as_tree(coord)
    if not isinstance(coord, tuple) and coord is not None:
        return target
    if isinstance(target, CoreLayout):
        return as_cute(target._restructure(lambda tree, _: _dice(coord, tree), "dice"), target)
    return _dice(coord, as_tree(target))


def _dice(coord: Any, tree: Any) -> tuple[Any, ...]:
    if coord is None:
        return ()
    if not isinstance(coord, tuple):
        return (tree,)
    if not isinstance(tree, tuple) or len(coord) != len(tree):
        raise LayoutError(f"dice: coordinate {coord} and {tree} differ in rank")
    return tuple([branch for part, mode in zip(coord, tree, strict=True) for branch in _dice(part, mode)])


def slice_and_offset(coord: Any, layout: LayoutLike) -> tuple[Any, Any]:
    """Return (sublayout, offset): the modes of `layout` where `coord` has None, and the offset of its integers.

    >>> from tilewright.cute import Layout
    >>> sublayout, offset = slice_and_offset((None, 3), Layout((4, 8)))
    >>> print(sublayout, offset)
    (4):(1) 12
    """
    if isinstance(layout, ComposedLayout):
        inner, offset = slice_and_offset(coord, layout.inner)
        return ComposedLayout(layout.outer, inner + offset), 0
    strided: CoreLayout = require_strided(layout, "slice_and_offset")
    sliced = from_core(strided, keep_padding=True)._slice(strided._nest_coordinate((as_tree(coord),)))
    return sliced._with(offset=0), sliced.offset
