# SPDX-License-Identifier: Apache-2.0
"""`Estimate`: the time of a kernel's requests, and its bound.

    cycles = barrier * B + max(issue * R, max over resources r of (issue * first(r) + bytes(r) / rate(r)))

B and R are the barriers and requests of the busiest RISC, first(r) the position of the first request that uses r: what
is only reached late starts late. Resources are the L1 that are read, DRAM banks, links, and the cores that receive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ..errors import MemoryConfigError
from ..memory import Chip, ChipLike, Integers
from .moves import Requests
from .noc import NOC_NAMES, Endpoint, Link, NocMap

# Rates of the network: cycles to issue a request and to wait at a barrier, and bytes per cycle of each resource.

_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class NocRates:
    """Cycles of a `barrier`, cycles to issue a request, and bytes per cycle of resources.

    `profiled_issue` is the cost of a request while the profiler of NoC events runs; otherwise it is one of `read_issue`
    and `write_issue`, for L1 and for interleaved DRAM. `source`, `dram`, `link` and `reader` are rates; `source_both`
    and `reader_both` are for both networks together.

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
    return _of_architecture(_RATES, chip)


def _of_architecture(table: Mapping[str, _Entry], chip: Chip) -> _Entry:
    """Return the entry of a table for the architecture of a chip."""
    if chip.arch not in table:
        raise MemoryConfigError(
            f"the time of transfers on {chip.name} ({chip.arch}) is not known; it is for {', '.join(table)}"
        )
    return table[chip.arch]


CALIBRATED = "reads on Wormhole with the profiler on: within 25 %, usually 6 %"
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of the time: a kind of `resource`, `which` one, the bytes that it carries, and its cycles.

    `resource` is "issue", "source", "source_both", "dram", "link", "reader", "reader_both" or "nothing".

    >>> print(Bound("dram", 5, 65536, 2979.0))
    DRAM bank 5, 65536 bytes
    """

    resource: str
    which: Endpoint | Link | None
    nbytes: int
    cycles: float
    noc: str | None = None

    def __str__(self) -> str:
        words = {
            "issue": "issuing requests",
            "source": "reading from L1 of",
            "source_both": "reading from L1 of",
            "dram": "DRAM bank",
            "link": "link",
            "reader": "data into",
            "reader_both": "data into",
            "nothing": "nothing to move",
        }
        name = words[self.resource] + ("" if self.which is None else f" {self.which}")
        name += f" on {self.noc}" if self.noc else ""
        return f"{name}, {self.nbytes} bytes" if self.nbytes else name


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated `cycles`, their bound, and their reliability.

    `calibrated` tells whether such recordings were compared, and `expected_error` with which result.

    >>> estimate = Estimate(1000.0, Bound("issue", None, 0, 650.0), 1000, True, CALIBRATED)
    >>> int(estimate), estimate.microseconds
    (1000, 1.0)
    """

    cycles: float
    bound_by: Bound
    clock_mhz: int
    calibrated: bool
    expected_error: str

    @property
    def microseconds(self) -> float:
        """The time in microseconds at the clock of the chip.

        >>> Estimate(1350.0, Bound("nothing", None, 0, 0.0), 1350, False, "not calibrated").microseconds
        1.0
        """
        return self.cycles / self.clock_mhz

    def __float__(self) -> float:
        return float(self.cycles)

    def __int__(self) -> int:
        return round(self.cycles)

    def __str__(self) -> str:
        return f"{self.cycles:.0f} cycles ({self.microseconds:.2f} us), bound by {self.bound_by}; {self.expected_error}"


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """The requests summed by network and pair of endpoints: bytes, and the first position of a request of each.

    `mover` is the core that issues the requests, `to` and `origin` where the data go and come from.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", memory="l1", chip="n150")
    >>> flows = Flows.of(reshard(spec, spec.with_memory("dram")).steps[0].requests)
    >>> flows.nbytes.tolist()
    [2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048]
    """

    noc: Integers
    mover: Integers
    to: Integers
    origin: Integers
    nbytes: Integers
    first: Integers

    @classmethod
    def of(cls, requests: Requests) -> Flows:
        """Return the flows of all `requests`.

        >>> len(Flows.of(Requests.none(NocMap.of("n150"))).nbytes)
        0
        """
        total = len(requests.noc_map.endpoints)
        key = requests.owner * total + requests.remote
        size = len(requests.core) * total
        sums = np.bincount(key, weights=requests.nbytes, minlength=size).astype(np.int64)
        first = np.full(size, _NEVER, dtype=np.int64)
        first[key[::-1]] = requests.position[::-1]  # of equal keys the last one assigned stays
        used = np.flatnonzero(first != _NEVER)
        owner, remote = np.divmod(used, total)
        core, writes = requests.core[owner], requests.writes[owner]
        to, origin = np.where(writes, remote, core), np.where(writes, core, remote)
        return cls(requests.noc[owner], core, to, origin, sums[used], first[used])


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """The load of resources of one kind: bytes and first position of each that is used, and its rate.

    >>> Load("dram", np.array([3]), np.array([2048]), np.array([0]), 22).nbytes.tolist()
    [2048]
    """

    resource: str
    number: Integers
    nbytes: Integers
    first: Integers
    rate: float


def sum_load(resource: str, number: Integers, nbytes: Integers, first: Integers, rate: float) -> Load:
    """Return the load of resources from the `number` of the resource that each of many parts uses.

    >>> load = sum_load("dram", np.array([3, 3]), np.array([10, 20]), np.array([4, 2]), 22)
    >>> load.number.tolist(), load.nbytes.tolist(), load.first.tolist()
    ([3], [30], [2])
    """
    size = int(number.max(initial=-1)) + 1
    sums = np.bincount(number, weights=nbytes, minlength=size).astype(np.int64)
    earliest = np.full(size, _NEVER, dtype=np.int64)
    np.minimum.at(earliest, number, first)
    used = np.flatnonzero(earliest != _NEVER)
    return Load(resource, used, sums[used], earliest[used], rate)


def link_load(noc_map: NocMap, flows: Flows, rate: float = 0.0) -> Load:
    """Return the load of every link that is used.

    >>> link_load(NocMap.of("n150"), Flows.of(Requests.none(NocMap.of("n150")))).number.tolist()
    []
    """
    flow, link = noc_map.links_between(flows.noc, flows.origin, flows.to)
    return sum_load("link", link, flows.nbytes[flow], flows.first[flow], rate)


def busiest_links(requests: Requests) -> dict[Link, int]:
    """Return the bytes of `requests` that cross each link of the network, the busiest first.

    >>> busiest_links(Requests.none(NocMap.of("n150")))
    {}
    """
    load = link_load(requests.noc_map, Flows.of(requests))
    order = np.argsort(-load.nbytes, kind="stable")
    numbers, sizes = load.number[order].tolist(), load.nbytes[order].tolist()
    return {requests.noc_map.link(number): size for number, size in zip(numbers, sizes, strict=True)}


def resource_loads(requests: Requests, rates: NocRates) -> list[Load]:
    """Return the loads of all resources of `requests`.

    >>> [load.resource for load in resource_loads(Requests.none(NocMap.of("n150")), rates_of(NocMap.of("n150").chip))]
    ['source', 'source_both', 'dram', 'link', 'reader', 'reader_both']
    """
    noc_map, flows = requests.noc_map, Flows.of(requests)
    total, banks = len(noc_map.endpoints), noc_map.num_l1
    from_l1, into_l1 = flows.origin < banks, flows.to < banks

    def select(resource: str, chosen: Integers, number: Integers, rate: float) -> Load:
        return sum_load(resource, number[chosen], flows.nbytes[chosen], flows.first[chosen], rate)

    nocs = np.zeros(total, dtype=np.int64)  # which of the two networks bring data to an endpoint
    np.bitwise_or.at(nocs, flows.to, 1 << flows.noc)
    in_dram = np.flatnonzero(~from_l1 | ~into_l1)
    bank = np.where(from_l1, flows.to, flows.origin)
    return [
        select("source", np.flatnonzero(from_l1), flows.noc * total + flows.origin, rates.source),
        select("source_both", np.flatnonzero(from_l1), flows.origin, rates.source_both),
        select("dram", in_dram, bank, rates.dram),
        link_load(noc_map, flows, rates.link),
        select("reader", np.flatnonzero(into_l1), flows.noc * total + flows.to, rates.reader),
        select("reader_both", np.flatnonzero(into_l1 & (nocs[flows.to] == 3)), flows.to, rates.reader_both),
    ]


def issue_cycles(requests: Requests, rates: NocRates, profiler: bool, interleaved_dram: bool) -> float:
    """Return the cycles to issue a request; `profiler` and `interleaved_dram` as for `estimate_requests`.

    >>> chip = NocMap.of("n150")
    >>> issue_cycles(Requests.none(chip), rates_of(chip.chip), profiler=True, interleaved_dram=False)
    128
    """
    if profiler:
        return rates.profiled_issue
    issues = [rates.write_issue if writes else rates.read_issue for writes in set(requests.writes.tolist())]
    return max([issue[interleaved_dram] for issue in issues], default=0.0)


def estimate_requests(requests: Requests, profiler: bool = False, interleaved_dram: bool = False) -> Estimate:
    """Return the estimated time of `requests`, from the first one to the end of the last barrier.

    With `profiler`, the time while NoC events are recorded. `interleaved_dram` tells whether one side is interleaved in
    DRAM, where requests take longer to issue.

    >>> estimate_requests(Requests.none(NocMap.of("n150"))).cycles
    0.0
    """
    noc_map = requests.noc_map
    rates = rates_of(noc_map.chip)
    clock = noc_map.chip.clock_mhz
    if not len(requests):
        return Estimate(0.0, Bound("nothing", None, 0, 0.0), clock, True, "exact")
    issue = issue_cycles(requests, rates, profiler, interleaved_dram)
    bound = Bound("issue", None, 0, issue * int(requests.counts.max()))
    for load in resource_loads(requests, rates):
        if len(load.number):
            cycles = issue * load.first + load.nbytes / load.rate
            most = int(cycles.argmax())
            if cycles[most] > bound.cycles:
                which, noc = resource_name(noc_map, load.resource, int(load.number[most]))
                bound = Bound(load.resource, which, int(load.nbytes[most]), float(cycles[most]), noc)
    total = rates.barrier * int(requests.barrier_counts.max()) + bound.cycles
    doubts = {
        noc_map.chip.arch: not rates.is_fitted,
        "writes": requests.writes.any(),
        "runs without the profiler": not profiler,
    }
    reasons = [name for name, applies in doubts.items() if applies]
    expected = f"estimated, not calibrated for {' and '.join(reasons)}" if reasons else CALIBRATED
    return Estimate(float(total), bound, clock, not reasons, expected)


def resource_name(noc_map: NocMap, resource: str, number: int) -> tuple[Endpoint | Link, str | None]:
    """Return the name of a resource, and the network if it is counted per network.

    >>> resource_name(NocMap.of("n150"), "dram", 64 + 5)
    (5, None)
    """
    if resource == "link":
        return noc_map.link(number), None
    if resource in ("source", "reader"):
        noc, endpoint = divmod(number, len(noc_map.endpoints))
        return noc_map.endpoints[endpoint], NOC_NAMES[noc]
    return noc_map.endpoints[number], None


# `estimate_transfers`: the time of requests of one size by a single core, from measured latencies of both chips.

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
_STATEFUL_ISSUE = {("wormhole_b0", "read_l1"): 17.4, ("wormhole_b0", "write_l1"): 20.0, ("blackhole", "write_l1"): 20.0}


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
    times = _of_architecture(_TIMES, known)
    if pattern not in PATTERNS:
        raise MemoryConfigError(f"unknown pattern {pattern!r}; use one of {', '.join(PATTERNS)}")
    if count < 0 or nbytes < 0:
        raise MemoryConfigError(f"expected a number of transfers and a size of at least 0, got {count} and {nbytes}")
    entry = times[pattern]
    time = entry if isinstance(entry, TransferTime) else entry[0 if same_axis else 1]
    if stateful:
        time = time._replace(issue=_STATEFUL_ISSUE.get((known.arch, pattern), time.issue))
    cycles = time.cycles(count, nbytes)
    resource = "issue" if count * time.issue >= count * nbytes / time.rate else "dram" if "dram" in pattern else "link"
    bound = Bound(resource, None, 0 if resource == "issue" else count * nbytes, cycles - time.latency)
    return Estimate(cycles, bound, known.clock_mhz, True, SINGLE_ERROR)
