# SPDX-License-Identifier: Apache-2.0
"""The cores that work for DRAM banks, which have no data mover: recorded, or as the runtime chooses them.

A bank's core is beside it on the network, one to the right. Where that one is not among the cores in use, the runtime
looks elsewhere: further to the right if columns are harvested; if rows are, in another row, a few columns on. Which
rows or columns are harvested differs from card to card; without better knowledge they are the last ones.
"""

from __future__ import annotations

from ..memory import CoreCoord
from .noc import NocMap

_COLUMNS_ON = 3  # of the first core that has to move to another row, one less for each further one


def dram_workers(noc: NocMap, banks: int) -> list[CoreCoord]:
    """Return the core that works for each of the first `banks` DRAM banks of the chip of `noc`.

    >>> [tuple(core) for core in dram_workers(NocMap.of("n150"), 3)]
    [(3, 7), (0, 0), (0, 4)]
    """
    chip = noc.chip
    across, down = chip.compute_grid
    recorded = dict(chip.dram_workers).get((across, down))
    if recorded is not None:
        return [CoreCoord(*core) for core in recorded[:banks]]
    columns, rows = chip.noc_columns[:across], chip.noc_rows[:down]
    if len(columns) < across or len(rows) < down or len(chip.noc_dram) < banks:  # the network is not known
        return [CoreCoord(*reversed(divmod(bank % (across * down), across))) for bank in range(banks)]
    places = [noc.position(bank) for bank in range(chip.dram_banks)]
    beside = [(_nearest_column(x + 1, columns), _nearest_row(y, chip.noc_rows)) for x, y in places]
    if chip.harvested_from == "rows":
        beside = _move_to_rows(beside, columns, rows)
    return [CoreCoord(columns.index(x), rows.index(y)) for x, y in beside[:banks]]


def _nearest_column(x: int, columns: tuple[int, ...]) -> int:
    """Return the first column in use from `x` on to the right, otherwise to the left."""
    return min((column for column in columns if column >= x), default=max(columns))


def _nearest_row(y: int, rows: tuple[int, ...]) -> int:
    """Return the row of cores, harvested or not, at `y` or the next one below."""
    return min((row for row in rows if row >= y), default=max(rows))


def _move_to_rows(
    beside: list[tuple[int, int]], columns: tuple[int, ...], rows: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return cores in rows in use, from those `beside` the banks: of each column from its lowest core on, downwards."""
    moved = list(beside)
    for here in sorted({x for x, _ in beside}):
        order = sorted([bank for bank, (x, _) in enumerate(beside) if x == here], key=lambda bank: beside[bank][1])
        taken = [beside[bank][1] for bank in order]
        shift = _COLUMNS_ON
        for bank in order[-1:] + order[:-1]:
            x, y = beside[bank]
            if y in rows and taken.count(y) == 1:
                continue
            candidates = sorted(rows, reverse=y >= len(beside) - 1)
            free = [row for row in candidates if row not in taken] or candidates
            moved[bank] = max(column for column in columns if column <= x + shift), free[0]
            shift = max(shift - 1, 0)
    return moved
