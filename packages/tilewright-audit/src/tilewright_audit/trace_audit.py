# SPDX-License-Identifier: Apache-2.0
"""NoC traces recorded by a card, and their comparison with the plan of a reshard, request by request.

A trace is an array of events, each of one data mover (BRISC or NCRISC) of one core. Core coordinates are physical, as
in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tilewright._text import count_of, format_bytes
from tilewright.errors import FileFormatError, MemoryConfigError
from tilewright.files import FilePath, SourceFile, as_source_file
from tilewright.findings import Severity
from tilewright.memory import Chip, ChipLike, CoreCoord, as_spec
from tilewright.traffic import NocMap, ReshardPlan, ReshardStep, Risc, reshard

from .findings import AuditFinding, scope_note
from .graph_report import JsonStream, as_integer
from .report import AuditReport

Place: TypeAlias = tuple[int, int]  # column and row of a node of the network
Mover: TypeAlias = tuple[Place, str]  # a core, and one of its data movers
_BARRIER_ENDS = ("_BARRIER_END", "_BARRIER_WITH_TRID")
_WHOLE_BARRIERS = ("FULL_BARRIER", "ATOMIC_BARRIER")
_WITHOUT_BYTES = ("BARRIER", "SET_STATE", "SEMAPHORE", "ATOMIC", "FLUSH")  # in the types of events that move no data


@dataclass(frozen=True, slots=True)
class NocEvent:
    """An event of a trace: its `type` as recorded, the data mover, and where the transfer goes, if anywhere.

    `other` is the node at the other end, `box` the corners of a multicast, and `zone` the phase of a kernel that begins
    or ends.

    >>> event = read_event(
    ...     {
    ...         "proc": "BRISC",
    ...         "noc": "NOC_1",
    ...         "sx": 1,
    ...         "sy": 2,
    ...         "dx": 1,
    ...         "dy": 1,
    ...         "num_bytes": 4096,
    ...         "type": "READ",
    ...         "timestamp": 188,
    ...     }
    ... )
    >>> event.kind, event.core, event.other, event.num_bytes
    ('read', (1, 2), (1, 1), 4096)
    """

    type: str
    core: Place
    mover: str
    noc: str
    time: int
    other: Place | None = None
    box: tuple[Place, Place] | None = None
    num_bytes: int = 0
    zone: str = ""

    @property
    def kind(self) -> str:
        """The type: "read", "write", "barrier" (when it ends), "zone" or "other".

        >>> NocEvent("READ_BARRIER_END", (1, 1), "BRISC", "NOC_1", 0).kind
        'barrier'
        """
        if self.zone:
            return "zone"
        if self.type.endswith(_BARRIER_ENDS) or self.type in _WHOLE_BARRIERS:
            return "barrier"
        if self.num_bytes and self.type.startswith("READ"):
            return "read"
        return "write" if self.num_bytes and "WRITE" in self.type else "other"

    @property
    def is_understood(self) -> bool:
        """Whether its type is known, or moves no data.

        >>> NocEvent("TELEPORT", (1, 1), "BRISC", "NOC_1", 0, num_bytes=64).is_understood
        False
        """
        moves_nothing = not self.num_bytes and ("READ" in self.type or "WRITE" in self.type)
        return self.kind != "other" or moves_nothing or any(word in self.type for word in _WITHOUT_BYTES)


@dataclass(frozen=True, slots=True)
class NocRun:
    """Events in a row that are alike: `count` reads, writes or barriers, from the time `first` to `last`.

    >>> NocRun("read", "NOC_0", (1, 1), 2048, 4, 188, 663).count
    4
    """

    kind: str
    noc: str
    other: Place | None
    num_bytes: int
    count: int
    first: int
    last: int
    box: tuple[Place, Place] | None = None


@dataclass(frozen=True)
class NocTrace:
    """The actions of each data mover, in order, as runs of equal events.

    `skipped` is the number of entries that are not events.

    >>> trace = NocTrace({((1, 1), "NCRISC"): (NocRun("read", "NOC_0", (1, 2), 2048, 3, 100, 400),)})
    >>> trace.traffic
    {((1, 1), (1, 2)): 6144}
    """

    sequences: Mapping[Mover, tuple[NocRun, ...]]
    skipped: int = 0
    types: Mapping[str, int] = field(default_factory=dict)  # how many events there are of each type
    unused: Mapping[str, int] = field(default_factory=dict)  # of these, the types that are not understood

    @property
    def traffic(self) -> dict[tuple[Place, Place], int]:
        """The bytes that each core read, by (reader, source).

        >>> NocTrace({}).traffic
        {}
        """
        return self._sum_bytes("read")

    @property
    def written(self) -> dict[tuple[Place, Place], int]:
        """The bytes that each core wrote to one other node, by (writer, target).

        >>> NocTrace({}).written
        {}
        """
        return self._sum_bytes("write")

    def _sum_bytes(self, kind: str) -> dict[tuple[Place, Place], int]:
        total: dict[tuple[Place, Place], int] = {}
        for (core, _), runs in self.sequences.items():
            for run in runs:
                if run.kind == kind and run.other is not None:
                    total[core, run.other] = total.get((core, run.other), 0) + run.num_bytes * run.count
        return total

    @property
    def cycles(self) -> int | None:
        """The cycles from the first transfer anywhere to the end of the last barrier, if there are both.

        >>> NocTrace(
        ...     {
        ...         ((1, 1), "NCRISC"): (
        ...             NocRun("read", "NOC_0", (1, 2), 2048, 1, 100, 100),
        ...             NocRun("barrier", "NOC_0", None, 0, 1, 900, 900),
        ...         )
        ...     }
        ... ).cycles
        800
        """
        runs = [run for sequence in self.sequences.values() for run in sequence]
        starts = [run.first for run in runs if run.kind in ("read", "write")]
        ends = [run.last for run in runs if run.kind == "barrier"]
        return max(ends) - min(starts) if starts and ends else None


def read_noc_trace(path: FilePath | SourceFile) -> NocTrace:
    """Read the trace at `path`; the memory is for runs of equal events, not for each event.

    >>> import tempfile
    >>> from pathlib import Path
    >>> read = '{"proc": "NCRISC", "noc": "NOC_0", "sx": 1, "sy": 1, "dx": 2, "dy": 1, "num_bytes": 64, "type": "READ"'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     _ = path.write_text(f'[{read}, "timestamp": 5}}, {read}, "timestamp": 9}}]')
    ...     [run] = read_noc_trace(path).sequences[(1, 1), "NCRISC"]
    >>> run.count, run.first, run.last
    (2, 5, 9)
    """
    file = as_source_file(path)
    sequences: dict[Mover, list[NocRun]] = {}
    types: dict[str, int] = {}
    unused: dict[str, int] = {}
    skipped = 0
    for event in iterate_events(file):
        if event is None:
            skipped += 1
            continue
        name = event.type or event.zone
        types[name] = types.get(name, 0) + 1
        if not event.is_understood:
            unused[name] = unused.get(name, 0) + 1
        if event.kind not in ("zone", "other"):
            _add_event(sequences.setdefault((event.core, event.mover), []), event)
    if skipped and not types:
        raise FileFormatError(f"{file.path} is not a trace of the NoC: none of its {skipped} entries is an event")
    runs = {mover: tuple(sequence) for mover, sequence in sequences.items()}
    return NocTrace(runs, skipped, types, unused)


def iterate_events(path: FilePath | SourceFile) -> Iterator[NocEvent | None]:
    """Yield the events of the trace at `path` one by one, None for an entry that is not an event.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     _ = path.write_text('[{"proc": "BRISC"}]')
    ...     list(iterate_events(path))
    [None]
    """
    file = as_source_file(path)
    stream = JsonStream(file, str(file.path))
    if stream.kind() != "array":
        raise FileFormatError(f"{file.path} is not a trace of the NoC: expected an array at byte {stream.byte}")
    for _ in stream.walk_array():
        yield read_event(stream.read_value())
    stream.expect_end()


def read_event(data: Any) -> NocEvent | None:
    """Return the event that an entry of a trace describes, or None if it is not an event.

    >>> read_event({"proc": "BRISC", "zone": "BRISC-KERNEL", "zone_phase": "begin", "sx": 1, "sy": 1, "timestamp": 7})
    NocEvent(type='', core=(1, 1), mover='BRISC', noc='', time=7, other=None, box=None, num_bytes=0, \
zone='BRISC-KERNEL begin')
    """
    if not isinstance(data, dict):
        return None
    core, time, mover = _read_place(data, "sx", "sy"), as_integer(data.get("timestamp")), data.get("proc")
    if core is None or time is None or not isinstance(mover, str):
        return None
    zone, kind, noc = data.get("zone"), data.get("type"), data.get("noc")
    if isinstance(zone, str):
        return NocEvent("", core, mover, "", time, zone=f"{zone} {data.get('zone_phase', '')}".strip())
    if not isinstance(kind, str):
        return None
    low = _read_place(data, "mcast_start_x", "mcast_start_y")
    high = _read_place(data, "mcast_end_x", "mcast_end_y")
    box = None if low is None or high is None else (low, high)
    size = as_integer(data.get("num_bytes")) or 0
    other = _read_place(data, "dx", "dy")
    return NocEvent(kind, core, mover, noc if isinstance(noc, str) else "", time, other, box, size)


def _read_place(data: dict[str, Any], across: str, down: str) -> Place | None:
    x, y = as_integer(data.get(across)), as_integer(data.get(down))  # -1 is not a place
    return None if x is None or y is None else (x, y)


def _add_event(runs: list[NocRun], event: NocEvent) -> None:
    """Add an event to the runs of its data mover, to the last one if it is alike."""
    size = 0 if event.kind == "barrier" else event.num_bytes
    run = NocRun(event.kind, event.noc, event.other, size, 1, event.time, event.time, event.box)
    if runs:
        last = runs[-1]
        if replace(last, count=1, first=run.first, last=run.last) == run:
            runs[-1] = replace(last, count=last.count + 1, last=max(last.last, run.last))
            return
    runs.append(run)


Endpoint: TypeAlias = CoreCoord | int
Request: TypeAlias = tuple[str, "Endpoint | Place | None", int, int]  # kind, other end, bytes, count
_KERNELS = ("current", "2024")
_MAX_MISMATCHES = 20
_BARRIER = "barrier"


def audit_trace(path: FilePath, chip: ChipLike | None = None) -> AuditReport:
    """Audit a NoC trace by itself: bytes, the busiest pair of cores, and reads without a barrier.

    >>> import tempfile
    >>> read = '{"proc": "NCRISC", "noc": "NOC_0", "sx": 1, "sy": 1, "dx": 2, "dy": 1, "num_bytes": 64, "type": "READ"'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     _ = path.write_text(f'[{read}, "timestamp": 5}}, {read}, "timestamp": 9}}]')
    ...     print(audit_trace(path).facts[0][1])
    2 reads (128 bytes), 0 writes (0 bytes), 0 barriers of 1 RISC
    """
    trace = read_noc_trace(path)
    remedy = "pass both placements: --source and --target, or audit_noc_trace(path, source, target)"
    notes = [*_list_notes(trace), scope_note("requests were not compared with a plan", remedy)]
    known = None if chip is None else Chip.of(chip)
    return AuditReport.of(Path(path), "NoC trace", known, notes, _count_requests(trace), _list_facts(trace))


def audit_noc_trace(path: FilePath, source: Any, target: Any, op: str = "to_memory_config") -> AuditReport:
    """Return how the requests of a recorded reshard differ from its plan, with the first page that went wrong.

    Args:
        path: the trace of the NoC events of one operation.
        source: the spec of the tensor where it was, or the tensor.
        target: the spec of the tensor where it went.
        op: the operation, as for `reshard`.

    Kernels of today and of December 2024 are tried; the one that explains more data movers is compared.

    >>> import json, tempfile
    >>> from tilewright import TensorSpec, height_sharded
    >>> spec = TensorSpec((32, 64), page_layout="tile", memory=height_sharded((1, 1)), chip="n150")
    >>> event = {"proc": "NCRISC", "noc": "NOC_0", "sx": 1, "sy": 1, "num_bytes": 2048, "timestamp": 7, "type": "READ"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     _ = path.write_text(json.dumps([event | {"dx": 0, "dy": 1}]))
    ...     print(audit_noc_trace(path, spec.with_memory("dram"), spec).findings[0].recorded)
    read of 2048 bytes from DRAM bank 1
    """
    trace = read_noc_trace(path)
    plans = [reshard(as_spec(source), as_spec(target), op, kernel) for kernel in _KERNELS]
    if plans[0].is_empty:
        raise MemoryConfigError("source and target are equal, so no request is expected; pass two different memories")
    candidates = [part for plan in plans for part in _list_candidates(plan)]
    checks = [TraceCheck.of(trace, candidate) for candidate in candidates]
    best = max(checks, key=lambda check: check.matching)
    return best.build(Path(path))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible subject of a trace: a step of a plan."""

    plan: ReshardPlan
    step: ReshardStep
    name: str

    @property
    def lists(self) -> dict[tuple[CoreCoord, str], tuple[Risc, list[Request]]]:
        """The requests of each RISC in order."""
        by_risc: dict[tuple[CoreCoord, str], tuple[Risc, list[Request]]] = {}
        for kind, lists in (("read", self.step.reads), ("write", self.step.writes)):
            for risc, runs in lists.items():
                requests: list[Request] = []
                for run in runs:
                    if len(run) == 2:
                        _append(requests, (_BARRIER, None, 0, int(run[1])))
                    elif not isinstance(run[0], str):
                        _append(requests, (kind, run[0], run[1], run[2]))
                by_risc.setdefault((risc.core, risc.risc), (risc, []))[1].extend(requests)
        return by_risc


def _list_candidates(plan: ReshardPlan) -> Iterator[Candidate]:
    for number, step in enumerate(plan.steps, 1):
        place = f" (step {number} of {len(plan.steps)})" if len(plan.steps) > 1 else ""
        yield Candidate(plan, step, f"{step.factory}{place}, kernels: {plan.kernel}")


def _append(requests: list[Request], request: Request) -> None:
    """Add a request, to the last one if it is alike."""
    if requests and requests[-1][:3] == request[:3]:
        request = (*request[:3], requests.pop()[3] + request[3])
    if request[3]:
        requests.append(request)


@dataclass(frozen=True)
class TraceCheck:
    """The comparison of a trace with a plan: the requests of each RISC on both sides, by core and name."""

    trace: NocTrace
    candidate: Candidate
    recorded: Mapping[tuple[CoreCoord | Place, str], list[Request]]
    expected: Mapping[tuple[CoreCoord, str], tuple[Risc, list[Request]]]
    noc_map: NocMap

    @classmethod
    def of(cls, trace: NocTrace, candidate: Candidate) -> TraceCheck:
        """Return the comparison, with the places of the trace as cores and banks of the chip."""
        noc_map, expected = candidate.plan.noc_map, candidate.lists
        names = _name_places(trace, noc_map, [core for core, _ in expected])
        recorded: dict[tuple[CoreCoord | Place, str], list[Request]] = {}
        for (place, mover), runs in trace.sequences.items():
            core = names.get(place, place)
            requests: list[Request] = []
            for run in runs:
                other = None if run.other is None else names.get(run.other, run.other)
                _append(requests, (run.kind, None if run.kind == _BARRIER else other, run.num_bytes, run.count))
            recorded[(place if isinstance(core, int) else core), mover] = requests
        return cls(trace, candidate, recorded, expected, noc_map)

    @property
    def matching(self) -> int:
        """The number of RISCs that ran as planned."""
        empty: list[Request] = []
        return sum([self.recorded.get(key, empty) == requests for key, (_, requests) in self.expected.items()])

    def build(self, path: Path) -> AuditReport:
        """Return the report of the comparison."""
        plan, total = self.candidate.plan, len(self.expected)
        findings = [*self._check_traffic()]
        # Bytes that are all where they belong, in an order that hardly any RISC has: another kernel, not a wrong page.
        is_other_kernel = not findings and self.matching * 2 < total
        if is_other_kernel:
            findings.append(self._other_order())
        else:
            findings += self._check_lists()
        counts = {**_count_requests(self.trace), "riscs": total, "as_planned": self.matching}
        step = self.candidate.step
        facts = [
            *_list_facts(self.trace),
            ("compared with", self.candidate.name),
            ("as planned", f"{self.matching} of {total} RISCs, request by request"),
        ]
        cycles = self.trace.cycles
        if cycles is not None:
            estimate = step.estimate(True)
            facts.append(("time", f"{cycles} cycles recorded, {estimate.cycles:.0f} estimated with the profiler on"))
        findings += _list_notes(self.trace)
        return AuditReport.of(path, "NoC trace", plan.source.known_chip, findings, counts, facts)

    def _check_traffic(self) -> Iterator[AuditFinding]:
        """Yield pairs of cores between which other numbers of bytes went."""
        sums: list[dict[Any, int]] = []
        for lists in (self.recorded, {key: requests for key, (_, requests) in self.expected.items()}):
            pairs: dict[Any, int] = {}
            for (core, _), requests in lists.items():
                for kind, other, size, count in requests:
                    if kind != _BARRIER and other is not None:
                        pairs[core, kind, other] = pairs.get((core, kind, other), 0) + size * count
            sums.append(pairs)
        recorded, expected = sums
        wrong = [key for key in {**expected, **recorded} if recorded.get(key, 0) != expected.get(key, 0)]
        if not wrong:
            return
        core, kind, other = wrong[0]
        sides = recorded.get(wrong[0], 0), expected.get(wrong[0], 0)
        verb, preposition = ("read", "from") if kind == "read" else ("wrote", "to")
        message = f"core {_name(core)} {verb} {sides[0]} bytes {preposition} {_name(other)}, the plan says {sides[1]}"
        reason = f"bytes differ for {len(wrong)} of {len({**expected, **recorded})} pairs"
        finding = AuditFinding("traffic", message, Severity.ERROR, reason, "see the first wrong page", len(wrong))
        yield replace(finding, recorded=sides[0], expected=sides[1])

    def _other_order(self) -> AuditFinding:
        ordered = f"only {self.matching} of {len(self.expected)} RISCs issue requests in the planned order"
        message = f"all bytes of all pairs are right, but {ordered}"
        remedy = "name the operation, if it is not to_memory_config"
        reason = "a kernel that is not known here; the trace has no addresses, so pages were not compared"
        return AuditFinding("order", message, Severity.WARNING, reason, remedy)

    def _check_lists(self) -> Iterator[AuditFinding]:
        """Yield the first wrong request of each RISC that deviates from the plan, in the order of pages."""
        wrong: list[tuple[int, AuditFinding]] = []
        for key, (risc, requests) in self.expected.items():
            seen = self.recorded.get(key)
            if seen is None and requests:
                wrong.append((self._page_of(risc, 0)[0], self._missing_list(risc)))
            elif seen is not None and seen != requests:
                wrong.append(self._first_difference(risc, seen, requests))
        for core, mover in self.recorded:
            requests_here = self.recorded[core, mover]
            if (core, mover) not in self.expected and any(kind != _BARRIER for kind, *_ in requests_here):
                wrong.append((1 << 62, self._unknown_list(core, mover)))
        yield from [finding for _, finding in sorted(wrong, key=lambda item: item[0])[:_MAX_MISMATCHES]]

    def _missing_list(self, risc: Risc) -> AuditFinding:
        _, where = self._page_of(risc, 0)
        message = f"core {risc.core} {risc.risc} issued no request, the plan begins with {where}"
        remedy = "check that its kernel ran, and that all of its events were recorded"
        return AuditFinding("wrong page", message, remedy=remedy, call=risc.risc)

    def _unknown_list(self, core: CoreCoord | Place, mover: str) -> AuditFinding:
        place = f"core {_name(core)} {mover}"
        if isinstance(core, CoreCoord):
            x, y = self.noc_map.position(core)
            place += f", which is at ({x}, {y}),"
        message = f"{place} has requests in the trace, but none in the plan"
        remedy = "check the cores of the target, and that the trace is of this operation alone"
        return AuditFinding("wrong page", message, remedy=remedy, call=mover)

    def _first_difference(
        self, risc: Risc, seen: Sequence[Request], planned: Sequence[Request]
    ) -> tuple[int, AuditFinding]:
        """Return the first request that differs, by its page."""
        position, issued = 0, 0
        while True:
            one = seen[position] if position < len(seen) else None
            other = planned[position] if position < len(planned) else None
            if one != other:
                break
            if one is not None and one[0] != _BARRIER:
                issued += one[3]
            position += 1
        if one is not None and other is not None and one[:3] == other[:3]:  # one of them goes on longer
            common = min(one[3], other[3])
            issued += 0 if one[0] == _BARRIER else common
            one, other = [
                request if request[3] > common else (lists[position + 1] if position + 1 < len(lists) else None)
                for request, lists in ((one, seen), (other, planned))
            ]
        page, where = self._page_of(risc, issued)
        is_barrier = (one is None or one[0] == _BARRIER) and (other is None or other[0] == _BARRIER)
        kind = "barriers" if is_barrier else "wrong page"
        message = f"core {risc.core} {risc.risc}, request {issued}: {_describe(one)}, the plan says {_describe(other)}"
        if other is not None and other[0] != _BARRIER and where:
            message += f": {where}"
        reason = "the trace has who, how many bytes and in which order; the plan has the pages of each request"
        remedy = "check the core order and shard extent that the kernel's runtime arguments were made from"
        severity = Severity.WARNING if is_barrier else Severity.ERROR
        finding = AuditFinding(kind, message, severity, reason, remedy, call=risc.risc)
        return page, replace(finding, recorded=_describe(one), expected=_describe(other))

    def _page_of(self, risc: Risc, issued: int) -> tuple[int, str]:
        """Return the first page of a request of a RISC, and the request in words; nothing after the last one."""
        step = self.candidate.step
        requests = step.requests
        core = self.noc_map.number_of[risc.core]
        riscs = np.flatnonzero((requests.core == core) & (requests.risc == ("NCRISC", "BRISC").index(risc.risc)))
        at = np.flatnonzero(np.isin(requests.owner, riscs))[issued : issued + 1]
        if not len(at):
            return 1 << 62, ""
        k = int(at[0])
        is_write = bool(requests.writes[requests.owner[k]])
        own = step.source if is_write else step.target
        base = step.source_address if is_write else step.target_address
        if not own.memory.buffer_type.is_l1:
            return 1 << 62, ""
        pages = own.pages(base)
        here = np.flatnonzero((pages.core_x == risc.core.x) & (pages.core_y == risc.core.y))
        first, size = int(requests.local_address[k]), int(requests.nbytes[k])
        inside = here[(pages.address[here] >= first) & (pages.address[here] < first + size)]
        if not len(inside):  # a part of a row
            inside = here[(pages.address[here] <= first) & (pages.address[here] + own.page_bytes > first)]
        if not len(inside):
            return 1 << 62, ""
        last = int(inside.max())
        numbers = f"page {int(inside.min())}" if len(inside) == 1 else f"pages {int(inside.min())} to {last}"
        verb = "from" if is_write else "to"
        return int(inside.min()), f"{numbers} of {own.num_pages}, {verb} address {first}"


def _name_places(trace: NocTrace, noc_map: NocMap, cores: Sequence[CoreCoord]) -> dict[Place, Endpoint]:
    """Return the core or bank at each place of a trace.

    Rows and columns that are harvested differ from card to card: if cores are where the chip has none, and as many rows
    and columns occur as the plan uses, they are named in order.
    """
    names: dict[Place, Endpoint] = noc_map.places
    places = {place for place, _ in trace.sequences}
    if places <= {place for place, endpoint in names.items() if isinstance(endpoint, CoreCoord)}:
        return names
    rows, columns = sorted({y for _, y in places}), sorted({x for x, _ in places})
    own_rows, own_columns = sorted({core.y for core in cores}), sorted({core.x for core in cores})
    if (len(rows), len(columns)) != (len(own_rows), len(own_columns)):
        return names
    banks = {place: endpoint for place, endpoint in names.items() if isinstance(endpoint, int)}
    named: dict[Place, Endpoint] = {
        (x, y): CoreCoord(own_x, own_y)
        for x, own_x in zip(columns, own_columns, strict=True)
        for y, own_y in zip(rows, own_rows, strict=True)
    }
    return {**names, **named, **banks}


def _describe(request: Request | None) -> str:
    if request is None:
        return "nothing more"
    kind, other, size, _ = request
    if kind == _BARRIER:
        return "a barrier"
    return f"{kind} of {size} bytes {'from' if kind == 'read' else 'to'} {_name(other)}"


def _name(endpoint: Any) -> str:
    if isinstance(endpoint, int):
        return f"DRAM bank {endpoint}"
    if isinstance(endpoint, CoreCoord):
        return f"{endpoint}"
    return "several cores" if endpoint is None else f"place {endpoint}, which is no core of the chip"


def _count_requests(trace: NocTrace) -> dict[str, int]:
    runs = [run for sequence in trace.sequences.values() for run in sequence]
    return {f"{kind}s": sum([run.count for run in runs if run.kind == kind]) for kind in ("read", "write", _BARRIER)}


def _list_facts(trace: NocTrace) -> Iterator[tuple[str, str]]:
    counts = _count_requests(trace)
    sizes = [format_bytes(sum(pairs.values())) for pairs in (trace.traffic, trace.written)]
    requests = f"{count_of(counts['reads'], 'read')} ({sizes[0]}), {count_of(counts['writes'], 'write')} ({sizes[1]})"
    waits = f"{count_of(counts['barriers'], 'barrier')} of {count_of(len(trace.sequences), 'RISC')}"
    yield "recorded", f"{requests}, {waits}"
    busiest = max(trace.traffic.items(), key=lambda item: item[1], default=None)
    if busiest is not None:
        (reader, source), size = busiest
        yield "most bytes", f"{format_bytes(size)}, read by node {reader} from node {source} of the network"
    if trace.cycles is not None:
        yield "cycles", f"{trace.cycles} from the first request to the end of the last barrier"


def _list_notes(trace: NocTrace) -> Iterator[AuditFinding]:
    """Yield a note if RISCs read and do not wait for the data, and notes about what was left out."""
    unwaited = [mover for mover, runs in trace.sequences.items() if runs[-1].kind == "read"]
    if unwaited:
        (place, risc), *_ = unwaited
        message = f"{risc} at {place} ends with reads that no barrier waits for"
        remedy = "call noc_async_read_barrier() before the data is used, or check that the trace is complete"
        yield AuditFinding("barriers", message, Severity.NOTE, "", remedy, len(unwaited))
    if trace.skipped:
        yield scope_note(f"{trace.skipped} entries are no events and were left out")
    for name, count in trace.unused.items():
        yield scope_note(f"{count_of(count, 'event')} of the unknown type {name!r} left out")
