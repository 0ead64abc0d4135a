# SPDX-License-Identifier: Apache-2.0
"""`LoopNest`: one loop nest of a copy plan, in bytes. Engines run loop nests and know nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

Operation = Literal["copy", "fill", "pack", "unpack", "clear"]


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
