# SPDX-License-Identifier: Apache-2.0
"""Coalescing: how many sectors of global memory an access transfers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..layout import as_integer
from .accesses import MAX_ADDRESS, Instruction, access_offsets, validate_itemsize, validate_vector, warp_accesses


@dataclass(frozen=True, slots=True)
class CoalescingReport:
    """The sectors that an access to global memory transfers.

    >>> CoalescingReport(sectors=32, ideal=4, lines=32, used=128, moved=1024).efficiency
    0.125
    """

    sectors: int
    ideal: int
    lines: int
    used: int
    moved: int
    instructions: int = 1
    assumption: str = field(default="", repr=False, compare=False)  # about elements whose size nobody stated

    @property
    def efficiency(self) -> float:
        """Return the share of the transferred bytes that threads asked for.

        >>> CoalescingReport(4, 4, 1, 128, 128).efficiency
        1.0
        """
        return self.used / self.moved if self.moved else 1.0

    def __str__(self) -> str:
        found = f"{self.sectors} sectors ({self.efficiency:.0%} of the bytes are used)"
        return f"{found}, {self.assumption}" if self.assumption else found


def coalescing(
    memory: Any,
    threads: Any = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    base: int = 0,
    sector: int = 32,
    line: int = 128,
    warp: int = 32,
    active: Any = None,
) -> CoalescingReport:
    """Return the sectors that an access to global memory transfers.

    `memory`, `threads`, `itemsize`, `vector` and `active` are as for `bank_conflicts`; `base` is the byte address of
    offset 0, which decides which vectors are aligned. Sectors have `sector` bytes, in lines of `line`, and `warp`
    threads access memory together. Instructions do not share sectors.

    >>> from tilewright import Layout
    >>> print(coalescing(Layout(32)))
    4 sectors (100% of the bytes are used), assuming elements of 4 bytes
    >>> print(coalescing(Layout(32, 32), itemsize=4))
    32 sectors (12% of the bytes are used)
    """
    size, assumption = validate_itemsize(itemsize, memory, "coalescing")
    places, touched = access_offsets(memory, threads, "coalescing", active)
    if min(as_integer(sector, "sector"), as_integer(line, "line"), as_integer(warp, "warp")) < 1 or not places.size:
        raise LayoutError(
            f"coalescing needs offsets and positive sizes, got {places.size} offsets, sector={sector!r}, line={line!r}"
        )
    if as_integer(base, "base") % size or not 0 <= base < MAX_ADDRESS:
        raise LayoutError(f"coalescing: base must be an address that is a multiple of the itemsize {size}, got {base}")
    total = np.zeros(5, dtype=np.int64)
    width = validate_vector(vector, "coalescing")
    for access in warp_accesses(places + base // size, touched, size, warp, width, Instruction(), "coalescing"):
        wanted = np.unique(access.addresses[access.active][:, None] + np.arange(access.bytes_per_thread))
        sectors = len(np.unique(wanted // sector))
        total += (sectors, -(-len(wanted) // sector), len(np.unique(wanted // line)), len(wanted), 1)
    sectors, ideal, lines, used, count = total.tolist()
    return CoalescingReport(sectors, ideal, lines, used, sectors * sector, count, assumption)
