# SPDX-License-Identifier: Apache-2.0
"""`estimate_transfers`: the time of requests of one size by a single core, from measured latencies of both chips.

cycles = latency + max(count * issue, count * bytes / rate)
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import MemoryConfigError
from ..memory import Chip
from ..memory.chip import ChipLike
from .estimate import Bound, Estimate

SINGLE_ERROR = "single transfers without the profiler: usually within 5 %, mean error at most 10 %"


class TransferTime(NamedTuple):
    """The time of transfers: cycles of `latency`, cycles to `issue` one, and bytes per cycle (`rate`).

    `small_issue` is the issue time of transfers of at most 64 bytes, where it differs.

    >>> TransferTime(382, 22.7, 22.3).cycles(1, 2048)
    473.8385650224215
    """

    latency: float
    issue: float
    rate: float
    small_issue: float = 0.0

    def cycles(self, count: int, nbytes: int) -> float:
        """Return the cycles of `count` transfers of `nbytes` each.

        >>> TransferTime(171, 25, 28.3).cycles(16, 64)
        571
        """
        issue = max(self.issue, self.small_issue) if nbytes <= _SMALL else self.issue
        return self.latency + max(count * issue, count * nbytes / self.rate)


_SMALL = 64  # bytes
PATTERNS = ("read_l1", "write_l1", "gather_l1", "read_dram", "write_dram", "read_interleaved", "write_interleaved")
# By architecture and pattern; L1 on the same row or column, and elsewhere.
_TIMES: dict[str, dict[str, TransferTime | tuple[TransferTime, TransferTime]]] = {
    "wormhole_b0": {
        "read_l1": (TransferTime(171, 25, 28.3), TransferTime(284, 25, 28.4)),
        "write_l1": (TransferTime(200, 21.8, 30.3), TransferTime(289, 21.9, 30.7)),
        "gather_l1": TransferTime(768, 19.2, 31),
        "read_dram": TransferTime(382, 22.7, 22.3),
        "write_dram": TransferTime(412, 25.2, 22, 64),
        "read_interleaved": TransferTime(373, 35.5, 30.8),
        "write_interleaved": TransferTime(412, 38.7, 28.2),
    },
    "blackhole": {
        "read_l1": (TransferTime(210, 34.3, 61.3), TransferTime(340, 35, 61.1)),
        "write_l1": (TransferTime(201, 23, 61.6), TransferTime(352, 22.9, 61.5)),
        "gather_l1": TransferTime(50, 34.8, 61.7),
        "read_dram": TransferTime(478, 22, 42.4),
        "write_dram": TransferTime(364, 26, 49),
        "read_interleaved": TransferTime(481, 26.9, 60.3),
        "write_interleaved": TransferTime(374, 30.9, 59.8),
    },
}


# TransferRuns that share an endpoint and a size set both up once, and then take this long to issue.
_STATEFUL_ISSUE = {
    ("wormhole_b0", "read_l1"): 17.4,
    ("wormhole_b0", "write_l1"): 20.0,
    ("blackhole", "write_l1"): 20.0,
}


def estimate_transfers(
    chip: ChipLike, pattern: str, count: int, nbytes: int, same_axis: bool = False, stateful: bool = False
) -> Estimate:
    """Return the estimated time of `count` transfers of `nbytes` each by one core, with one barrier at the end.

    Args:
        chip: the chip or its name.
        pattern: "read_l1" or "write_l1" (another core), "gather_l1" (reads from all cores), "read_dram" or "write_dram"
            (one bank), "read_interleaved" or "write_interleaved" (all banks).
        count: the number of transfers.
        nbytes: the size of each.
        same_axis: whether the other core is in the same row or column.
        stateful: whether endpoint and size are set up once for all transfers.

    >>> round(estimate_transfers("wormhole_n150", "read_dram", 16, 2048).cycles)
    1851
    >>> estimate_transfers("wormhole_n150", "read_l1", 16, 64, same_axis=True).bound_by.resource
    'issue'
    """
    known = Chip.of(chip)
    if known.arch not in _TIMES:
        raise MemoryConfigError(
            f"the time of transfers on {known.name} ({known.arch}) is not known; it is for {', '.join(_TIMES)}"
        )
    if pattern not in PATTERNS:
        raise MemoryConfigError(f"unknown pattern {pattern!r}; use one of {', '.join(PATTERNS)}")
    if count < 0 or nbytes < 0:
        raise MemoryConfigError(f"expected a number of transfers and a size of at least 0, got {count} and {nbytes}")
    entry = _TIMES[known.arch][pattern]
    time = entry if isinstance(entry, TransferTime) else entry[0 if same_axis else 1]
    if stateful:
        time = time._replace(issue=_STATEFUL_ISSUE.get((known.arch, pattern), time.issue))
    cycles = time.cycles(count, nbytes)
    resource = "issue" if count * time.issue >= count * nbytes / time.rate else "dram" if "dram" in pattern else "link"
    bound = Bound(resource, None, 0 if resource == "issue" else count * nbytes, cycles - time.latency)
    return Estimate(cycles, bound, known.clock_mhz, True, SINGLE_ERROR)
