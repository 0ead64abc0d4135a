# SPDX-License-Identifier: Apache-2.0
"""The common refinement of two layouts over one domain, and boxes of its coordinates.

Both layouts take the same coordinates, but nest their modes differently: 100 rows here, 4 tiles of 2 faces of 16 rows
there. Splitting each mode where either layout splits it gives pieces (`Leaf`) with one step on each side. A mode that
cannot be split evenly, or is not strided, becomes a leaf without steps, for which offsets come from a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

# a mode of one side: its leaves as (extent, step), fastest first; a step of None is not strided
Mode = Sequence[tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A piece of a mode: its extent, its step in the index of the mode (radix), and its step on each side.

    >>> Leaf(mode=0, radix=16, extent=2, steps=(512, 256)).is_strided
    True
    """

    mode: int
    radix: int
    extent: int
    steps: tuple[int | None, ...]

    @property
    def is_strided(self) -> bool:
        """Return whether every side has a step for this leaf.

        >>> Leaf(0, 1, 5, (1, None)).is_strided
        False
        """
        return None not in self.steps


def common_leaves(mode: int, sides: Sequence[Mode], extent: int) -> list[Leaf]:
    """Return the leaves of one mode of the domain, split wherever a side is split, up to an extent.

    The outermost leaf of every side is extended as far as needed.

    >>> [(leaf.extent, leaf.steps) for leaf in common_leaves(0, [[(100, 70)], [(16, 16), (2, 512), (4, 3072)]], 100)]
    [(16, (70, 16)), (2, (1120, 512)), (4, (2240, 3072))]
    """
    queues = [[leaf for leaf in side if leaf[0] != 1] or [(1, 0)] for side in sides]
    rest = [list(queue) for queue in queues]
    leaves = []
    radix = 1
    while radix < extent:
        ends = [None if len(queue) == 1 else queue[0][0] for queue in rest]
        bounded = [end for end in ends if end is not None]
        size = min(bounded) if bounded else -(-extent // radix)
        if any(end % size for end in bounded):
            leaves.append(Leaf(mode, radix, -(-extent // radix), (None,) * len(sides)))
            return leaves
        steps = tuple([queue[0][1] for queue in rest])
        leaves.append(Leaf(mode, radix, size, steps))
        radix *= size
        for queue, end in zip(rest, ends, strict=True):
            n, step = queue[0]
            if end == size:
                queue.pop(0)
            else:
                queue[0] = (n // size if end is not None else n, None if step is None else step * size)
    return leaves


def prefix_boxes(extents: Sequence[int], limit: int) -> list[list[tuple[int, int]]]:
    """Return boxes of digits, as (start, count) per leaf, that cover the indices below `limit`.

    >>> prefix_boxes([16, 2, 4], 100)
    [[(0, 16), (0, 2), (0, 3)], [(0, 4), (0, 1), (3, 1)]]
    """
    if not extents:
        return [[]] if limit else []
    boxes = []
    tail: list[tuple[int, int]] = []
    for k in reversed(range(len(extents))):
        below = prod(extents[:k])
        digit, limit = divmod(limit, below)
        whole = [(0, n) for n in extents[:k]]
        if digit:
            boxes.append([*whole, (0, digit), *tail])
        if not limit:
            return boxes
        tail = [(digit, 1), *tail]
    return boxes


def suffix_boxes(extents: Sequence[int], limit: int) -> list[list[tuple[int, int]]]:
    """Return boxes of digits, as (start, count) per leaf, that cover the indices from `limit` on.

    >>> suffix_boxes([16, 2, 4], 100)
    [[(0, 16), (1, 1), (3, 1)], [(4, 12), (0, 1), (3, 1)]]
    """
    if not extents:
        return [] if limit else [[]]
    boxes = []
    tail: list[tuple[int, int]] = []
    for k in reversed(range(len(extents))):
        below = prod(extents[:k])
        digit, limit = divmod(limit, below)
        whole = [(0, n) for n in extents[:k]]
        start = digit + 1 if limit else digit
        if start < extents[k]:
            boxes.append([*whole, (start, extents[k] - start), *tail])
        if not limit:
            return boxes
        tail = [(digit, 1), *tail]
    return boxes


def split_mode(mode: Mode, size: int) -> Mode:
    """Return a mode with leaves that cross a multiple of `size` split there, if that is possible evenly.

    >>> split_mode([(12, 64)], 128)
    [(2, 64), (6, 128)]
    """
    leaves: list[tuple[int, int | None]] = []
    for n, step in mode:
        count = size // step if step and step < size and size % step == 0 else 0
        leaves += [(count, step), (n // count, size)] if 1 < count < n and n % count == 0 else [(n, step)]
    return leaves
