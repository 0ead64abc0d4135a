# SPDX-License-Identifier: Apache-2.0
"""Rates of the network: cycles to issue a request and to wait at a barrier, and bytes per cycle of each resource.

Those of Wormhole were fitted to recorded reshards; those of Blackhole are from tables of single transfers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import MemoryConfigError
from ..memory import Chip


@dataclass(frozen=True, slots=True)
class NocRates:
    """Cycles of a `barrier`, cycles to issue a request, and bytes per cycle of resources.

    `profiled_issue` is the cost of a request while the profiler of NoC events runs; otherwise it is one of `read_issue`
    and `write_issue`, for L1 and for interleaved DRAM. `source`, `dram`, `link` and `reader` are rates; `source_both`
    and `reader_both` are those of both networks together.

    >>> rates_of(Chip.named("n150")).dram
    22
    """

    barrier: int
    profiled_issue: int
    read_issue: tuple[float, float]
    write_issue: tuple[float, float]
    source: float
    source_both: float
    dram: float
    link: float
    reader: float
    reader_both: float
    is_fitted: bool


_RATES = {
    "wormhole_b0": NocRates(350, 128, (25, 37), (22, 39), 28, 54, 22, 28, 28, 24, True),
    "blackhole": NocRates(400, 128, (35, 27), (23, 31), 61, 122, 42, 61, 61, 61, False),
}


def rates_of(chip: Chip) -> NocRates:
    """Return the rates of a `chip`, by its architecture.

    >>> rates_of(Chip.named("p150")).is_fitted
    False
    """
    if chip.arch not in _RATES:
        raise MemoryConfigError(
            f"the time of transfers on {chip.name} ({chip.arch}) is not known; it is for {', '.join(_RATES)}"
        )
    return _RATES[chip.arch]
