# SPDX-License-Identifier: Apache-2.0
"""`LoopNest`: one loop nest of a plan, in bytes, which is all that an engine ever sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

Operation = Literal["copy", "fill", "pack", "unpack", "clear"]


@dataclass(frozen=True, slots=True)
class TabulatedModes:
    """Digits that need a table: for each mode of the domain, (radix, start, count) of its leaves without steps.

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
    """A loop nest: extents with a step per mode on the source, on the target and in the scale section, all in bytes.

    `copy` moves and converts elements, `fill` writes the padding value, `pack` and `unpack` move whole blocks: `lanes`
    are the byte offsets of a block's elements on the scalar side, and `mask` says which of them are data. `clear`
    writes zeros, byte by byte, where a tile of blocks has a gap.

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
    lanes: tuple[int, ...] = (0,)
    mask: int = 1
    tabulated: TabulatedModes | None = None

    @property
    def elements(self) -> int:
        """Return how many elements the nest moves or fills.

        >>> LoopNest("fill", (3, 5), (0, 0), (20, 4)).elements
        15
        """
        return prod(self.extents) * self.mask.bit_count() * (self.tabulated.count if self.tabulated else 1)


def normalised(nest: LoopNest) -> LoopNest:
    """Return the same nest in canonical form: no units, target order outermost first, neighbours merged.

    >>> normalised(LoopNest("copy", (8, 1, 4), (4, 0, 32), (4, 0, 32)))
    LoopNest(operation='copy', extents=(32,), source=(4,), target=(4,), scale=(), source_offset=0, target_offset=0, \
scale_offset=0, lanes=(0,), mask=1, tabulated=None)
    """
    scale = nest.scale or (0,) * len(nest.extents)
    modes = [mode for mode in zip(nest.extents, nest.source, nest.target, scale, strict=True) if mode[0] != 1]
    modes.sort(key=lambda mode: (-abs(mode[2]), -abs(mode[1])))
    merged: list[list[Any]] = []
    for n, *steps in modes:
        if merged and all(outer == inner * n for outer, inner in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = [merged[-1][0] * n, *steps]
        else:
            merged.append([n, *steps])
    columns = [tuple(column) for column in zip(*merged, strict=True)] if merged else [(), (), (), ()]
    return replace(
        nest, extents=columns[0], source=columns[1], target=columns[2], scale=columns[3] if nest.scale else ()
    )
