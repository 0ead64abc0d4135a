# SPDX-License-Identifier: Apache-2.0
"""`LoopNest`: one loop nest of a copy plan, in bytes. Engines run loop nests and know nothing else.

Loop nests are made from the common refinement of two layouts over one domain. Both take the same coordinates, but nest
their modes differently: 100 rows here, 4 tiles of 2 faces of 16 rows there. Splitting each mode where either layout
splits it gives pieces (`Leaf`) with one step on each side. A mode that cannot be split evenly, or is not strided,
becomes a leaf without steps, for which offsets come from a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

Operation = Literal["copy", "fill", "pack", "unpack", "clear"]

# a mode of one side: its leaves as (extent, step), fastest first; a step of None is not strided
Mode = Sequence[tuple[int, int | None]]
# (start, count) of the digit of each leaf, fastest first
DigitBox = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TabulatedModes:
    """The digits with offsets from a table: for each mode of the domain, (radix, start, count) of those digits.

    >>> TabulatedModes((((1, 0, 5),), ())).count
    5
    """

    digits: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def count(self) -> int:
        """Return the number of entries of the table.

        >>> TabulatedModes((((1, 0, 5), (5, 0, 7)), ((1, 2, 1),))).count
        35
        """
        return prod(count for mode in self.digits for _, _, count in mode)


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A loop nest: extents, and for each loop its step in bytes in the source, the target and the scale section.

    `copy` copies and converts elements, `fill` writes the padding value, `pack` and `unpack` process whole blocks:
    `element_offsets` are the byte offsets of a block's elements on the scalar side, and `data_mask` says which of them
    are data. `clear` writes zero bytes into the gap between the sections of a tile.

    >>> LoopNest("copy", (4, 8), (32, 4), (4, 16)).elements
    32
    """

    operation: Operation
    extents: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    scale: tuple[int, ...] = ()
    source_offset: int = 0
    target_offset: int = 0
    scale_offset: int = 0
    element_offsets: tuple[int, ...] = (0,)
    data_mask: int = 1
    tabulated: TabulatedModes | None = None

    @property
    def elements(self) -> int:
        """Return the number of elements that are copied or filled.

        >>> LoopNest("fill", (3, 5), (0, 0), (20, 4)).elements
        15
        """
        return prod(self.extents) * self.data_mask.bit_count() * (self.tabulated.count if self.tabulated else 1)

    def canonicalize(self) -> LoopNest:
        """Return the same nest without unit loops, sorted by target step, with adjacent loops merged.

        >>> nest = LoopNest("copy", (8, 1, 4), (4, 0, 32), (4, 0, 32)).canonicalize()
        >>> nest.extents, nest.source, nest.target
        ((32,), (4,), (4,))
        """
        scale = self.scale or (0,) * len(self.extents)
        loops = [loop for loop in zip(self.extents, self.source, self.target, scale, strict=True) if loop[0] != 1]
        loops.sort(key=lambda loop: (-abs(loop[2]), -abs(loop[1])))
        merged: list[tuple[int, ...]] = []
        for extent, *steps in loops:
            if merged and all(outer == inner * extent for outer, inner in zip(merged[-1][1:], steps, strict=True)):
                merged[-1] = (merged[-1][0] * extent, *steps)
            else:
                merged.append((extent, *steps))
        extents, source, target, scales = zip(*merged, strict=True) if merged else ((), (), (), ())
        return replace(self, extents=extents, source=source, target=target, scale=scales if self.scale else ())


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


def prefix_boxes(extents: Sequence[int], limit: int) -> list[DigitBox]:
    """Return boxes of digits, as (start, count) per leaf, that cover the indices below `limit`.

    >>> prefix_boxes([16, 2, 4], 100)
    [[(0, 16), (0, 2), (0, 3)], [(0, 4), (0, 1), (3, 1)]]
    """
    return _boxes_beside(extents, limit, below=True) if limit else []


def suffix_boxes(extents: Sequence[int], limit: int) -> list[DigitBox]:
    """Return boxes of digits, as (start, count) per leaf, that cover the indices from `limit` on.

    >>> suffix_boxes([16, 2, 4], 100)
    [[(0, 16), (1, 1), (3, 1)], [(4, 12), (0, 1), (3, 1)]]
    """
    return _boxes_beside(extents, limit, below=False) if extents or not limit else []


def _boxes_beside(extents: Sequence[int], limit: int, below: bool) -> list[DigitBox]:
    """Return, for each digit of `limit` from the outermost on, the box of smaller or of larger digits beside it."""
    if not extents:
        return [[]]
    boxes = []
    fixed: DigitBox = []
    for k in reversed(range(len(extents))):
        digit, limit = divmod(limit, prod(extents[:k]))
        start, end = (0, digit) if below else (digit + bool(limit), extents[k])
        if start < end:
            boxes.append([*[(0, n) for n in extents[:k]], (start, end - start), *fixed])
        if not limit:
            break
        fixed = [(digit, 1), *fixed]
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
