# SPDX-License-Identifier: Apache-2.0
"""Slicing and dicing: keep the modes that a coordinate leaves open, or those that it fixes."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .base import require_layout
from .composed import ComposedLayout
from .regrouping import require_strided, restructure
from .selection import kept
from .strided import Layout
from .tuples import as_tree


def slice_modes(coord: Any, target: Any) -> tuple[Any, ...]:
    """Return the branches of a shape or stride that coord leaves open with None.

    >>> slice_modes((None, 0), (3, 4)), slice_modes((0, (None, 1)), (3, (4, 5)))
    ((3,), (4,))
    """
    coord, target = as_tree(coord), as_tree(target)
    branches = kept(coord, target)
    return (target,) if coord is None else tuple(branches)


def dice_modes(coord: Any, target: Any) -> Any:
    """Return the layout, or the branches of a tuple, that coord fixes with integers.

    >>> dice_modes((0, None), Layout((3, 4))), dice_modes((None, 1), (3, 4))
    (Layout(3, 1), 4)
    """
    coord = as_tree(coord)
    if isinstance(target, Layout):
        return restructure(target, lambda tree, _: _unwrapped(_diced(coord, tree)))
    return _unwrapped(_diced(coord, as_tree(target)))


def _diced(coord: Any, tree: Any) -> tuple[Any, ...]:
    if coord is None:
        return ()
    if coord.__class__ is not tuple:
        return (tree,)
    if tree.__class__ is not tuple or len(coord) != len(tree):
        raise LayoutError(f"coordinate {coord} does not fit {tree}: they must have the same rank")
    return tuple([branch for part, mode in zip(coord, tree, strict=True) for branch in _diced(part, mode)])


def _unwrapped(branches: tuple[Any, ...]) -> Any:
    return branches[0] if len(branches) == 1 else branches


def slice_and_offset(coord: Any, layout: Layout | ComposedLayout) -> tuple[Any, Any]:
    """Return (sub-layout, offset): the open modes without their offset, and the offset of the fixed ones.

    >>> slice_and_offset((None, 3), Layout((4, 8)))
    (Layout((4,), (1,)), 12)
    """
    require_layout(layout, "slice_and_offset")
    if isinstance(layout, ComposedLayout):
        inner, offset = slice_and_offset(coord, layout.inner)
        return ComposedLayout(layout.outer, inner + offset), 0
    part = require_strided(layout, "slice_and_offset")._slice(layout._coordinate((as_tree(coord),)))
    return part - part.offset, part.offset
