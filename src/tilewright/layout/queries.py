# SPDX-License-Identifier: Apache-2.0
"""Questions that are asked of layouts and of plain shapes alike: size, rank, depth, congruence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import LayoutError
from .base import LayoutLike, require_layout
from .integers import as_integer
from .tuples import (
    as_tree,
    leaves,
    like,
    product,
    tree_compatible,
    tree_congruent,
    tree_depth,
    tree_rank,
    tree_weakly_congruent,
)


def shape_of(value: Any) -> Any:
    """Return the shape of a layout, or the shape itself.

    >>> from tilewright import Layout
    >>> shape_of(Layout((4, 8))), shape_of([4, 8])
    ((4, 8), (4, 8))
    """
    return value.shape if isinstance(value, LayoutLike) else as_tree(value)


def size(value: Any) -> int:
    """Return the number of coordinates of a layout or shape.

    >>> from tilewright import Layout
    >>> size(Layout((4, (2, 3)))), size((4, 8)), size(())
    (24, 32, 1)
    """
    if hasattr(value, "source_mask"):  # a swizzle
        return int(value.size)
    return int(as_integer(product(shape_of(value)), "a shape"))


def cosize(layout: Any) -> Any:
    """Return the size of the smallest buffer that holds every place of a layout.

    >>> from tilewright import Layout
    >>> cosize(Layout((4, 8), (1, 5)))
    39
    """
    return require_layout(layout, "cosize").cosize


def rank(value: Any) -> int:
    """Return the number of top-level modes; an integer shape has none.

    >>> from tilewright import Layout
    >>> rank(Layout((4, 8))), rank(Layout(4)), rank((4, 8)), rank(4)
    (2, 1, 2, 0)
    """
    return value.rank if isinstance(value, LayoutLike) else tree_rank(as_tree(value))


def depth(value: Any) -> int:
    """Return how deep a layout or shape nests.

    >>> from tilewright import Layout
    >>> depth(Layout((4, (2, 3)))), depth(4)
    (2, 0)
    """
    return tree_depth(shape_of(value))


def mode(value: Any, k: int) -> Any:
    """Return mode k of a layout or shape.

    >>> from tilewright import Layout
    >>> mode(Layout((4, (2, 3))), 1), mode((4, (2, 3)), 1)
    (Layout((2, 3), (4, 8)), (2, 3))
    """
    if isinstance(value, LayoutLike):
        return value.mode(k)
    branches = as_tree(value) if isinstance(value, (tuple, list)) else (value,)
    if not -len(branches) <= k < len(branches):
        raise LayoutError(f"{value} has no mode {k}: it has modes 0 to {len(branches) - 1}")
    return branches[k]


def congruent(a: Any, b: Any) -> bool:
    """Return whether two shapes or layouts nest alike.

    >>> congruent(((2, 3), 4), ((5, 6), 7)), congruent((2, 3), 6)
    (True, False)
    """
    return tree_congruent(shape_of(a), shape_of(b))


def weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether b nests like a or deeper.

    >>> weakly_congruent((2, 3), (5, (6, 7))), weakly_congruent((2, (3, 4)), (5, 6))
    (True, False)
    """
    return tree_weakly_congruent(shape_of(a), shape_of(b))


def compatible(a: Any, b: Any) -> bool:
    """Return whether every coordinate into a is also one into b: b has a's size and refines its modes.

    >>> compatible(12, (4, 3)), compatible((4, 3), ((2, 2), 3)), compatible((4, 3), 12)
    (True, True, False)
    """
    return tree_compatible(shape_of(a), shape_of(b))


def is_layout(value: object) -> bool:
    """Return whether value is a layout of any kind.

    >>> from tilewright import Layout
    >>> is_layout(Layout(4)), is_layout((4,))
    (True, False)
    """
    return isinstance(value, LayoutLike)


def iter_layout(layout: LayoutLike) -> Iterator[tuple[Any, Any]]:
    """Yield (coordinate, place) for every coordinate, in colexicographic order.

    >>> from tilewright import Layout
    >>> list(iter_layout(Layout((2, 2), (2, 1))))
    [((0, 0), 0), ((1, 0), 2), ((0, 1), 1), ((1, 1), 3)]
    """
    for coord in layout:
        yield coord, layout(coord)


def flat_tree(value: Any) -> tuple[Any, ...]:
    """Return the leaves of a tree as a tuple.

    >>> flat_tree(((2, 3), 4)), flat_tree(4)
    ((2, 3, 4), (4,))
    """
    return tuple(leaves(as_tree(value)))


def regrouped_tree(values: Any, profile: Any) -> Any:
    """Return a flat tuple arranged in the form of profile.

    >>> regrouped_tree((1, 2, 3), (0, (0, 0)))
    (1, (2, 3))
    """
    values, profile = as_tree(values), as_tree(profile)
    have, need = len(leaves(values)), len(leaves(profile))
    if tree_depth(values) > 1 or have != need:
        raise LayoutError(f"cannot unflatten {values} like {profile}: it must be flat with {need} entries, has {have}")
    return like(profile, iter(leaves(values)))
