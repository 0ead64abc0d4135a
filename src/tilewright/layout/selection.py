# SPDX-License-Identifier: Apache-2.0
"""What a slicing coordinate, one with None or `:` in it, keeps of a tree and what it fixes."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .coords import is_slice, leaf_coordinates
from .tuples import leaves


def kept(coord: Any, tree: Any) -> Any:
    """Return the branches of tree that a slicing coordinate keeps, grouped as they were.

    >>> kept((None, (None, 1)), (4, (2, 3))), kept((1, (None, (0, None))), (4, (2, (3, 5))))
    ((4, 2), (2, 5))
    """
    if coord.__class__ is not tuple:
        return tree if _keeps_all(coord) else ()
    branches = _kept_branches(coord, tree)
    return branches[0] if len(branches) == 1 and branches[0].__class__ is tuple else tuple(branches)


def _kept_branches(coord: Any, tree: Any) -> list[Any]:
    """Return what is kept of the modes of tree; of a nested mode, one branch stands alone and more stay together."""
    if coord.__class__ is not tuple:
        return [tree] if _keeps_all(coord) else []
    if tree.__class__ is not tuple or len(coord) != len(tree):
        need = f"{len(tree)} entries" if tree.__class__ is tuple else "one"
        raise LayoutError(f"slice {coord} does not fit {tree}: it takes {need}")
    found = []
    for part, mode in zip(coord, tree, strict=True):
        branches = _kept_branches(part, mode)
        if branches:
            found.append(branches[0] if len(branches) == 1 else tuple(branches))
    return found


def _keeps_all(coord: Any) -> bool:
    if coord.__class__ is slice and coord != slice(None):
        raise LayoutError(f"a slice keeps a whole mode, got {coord}; take a range with compose(L, tiler) + offset")
    return coord is None or coord.__class__ is slice


def fixed_part(coord: Any, shape: Any, stride: Any) -> Any:
    """Return the offset of the entries that a slicing coordinate fixes.

    >>> fixed_part((None, 3), (4, 8), (1, 4))
    12
    """
    if _keeps_all(coord):
        return 0
    if coord.__class__ is tuple and is_slice(coord):
        if shape.__class__ is not tuple or len(coord) != len(shape):
            raise LayoutError(f"slice {coord} does not fit shape {shape}: ranks must match")
        return sum((fixed_part(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True)), 0)
    at = leaf_coordinates(coord, shape)
    return sum((c * step for c, step in zip(at, leaves(stride), strict=True)), 0)
