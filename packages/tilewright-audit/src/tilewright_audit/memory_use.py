# SPDX-License-Identifier: Apache-2.0
"""L1 over time: the high-water mark, overlaps, predicted addresses, clashes, and tensors freed late."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from tilewright._text import count_of, format_bytes
from tilewright.errors import MemoryConfigError, OutOfMemory, TilewrightError
from tilewright.findings import Severity
from tilewright.memory import Allocation, AllocationMode, Allocator, BufferType, Chip, CoreCoord, TensorSpec, fit

from .buffers import CheckedBuffer
from .findings import AuditFinding
from .graph_report import Integers
from .run import Call, LocalBuffer, Run

_LOCAL_FIELDS = {"circular buffer": "cb", "dataflow buffer": "dataflow_buffer", "scratchpad": "scratchpad"}

_MAX_BYTES = 2**40  # of one buffer on a core, so that sums over a report fit 64 bits


@dataclass(frozen=True, slots=True)
class Peaks:
    """The largest use of L1 in bytes, as ttnn counts it: per core, and `l1_bytes` of the whole chip.

    `l1` is the largest sum of the bytes per bank of all tensors; the others are buffers of programs that are not part
    of a tensor; `total` is the largest sum of all of them.

    >>> Peaks(l1=2048, total=2048).to_json()["peak_l1"]
    2048
    """

    l1: int = 0
    cb: int = 0
    dataflow_buffer: int = 0
    scratchpad: int = 0
    total: int = 0
    l1_bytes: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the peaks by the names that ttnn has for them.

        >>> sorted(Peaks().to_json())[0]
        'peak_cb'
        """
        return {f"peak_{name}": value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Moment:
    """L1 after something was allocated or freed: bytes per core of tensors and of local buffers.

    >>> moment = Moment(3, 8, "ttnn.add", 4096, 2048)
    >>> moment.total
    6144
    """

    time: int
    node: int
    call: str
    tensor_bytes: int
    local_bytes: int

    @property
    def total(self) -> int:
        """The sum of both.

        >>> Moment(3, 8, "ttnn.add", 4096, 0).total
        4096
        """
        return self.tensor_bytes + self.local_bytes

    def describe(self, chip: Chip, memory: BufferType = BufferType.L1) -> str:
        """Return how much of a `memory`, L1 or DRAM, is used of a `chip`.

        >>> Moment(3, 8, "ttnn.add", 4096, 0).describe(Chip.named("wormhole_n150"))
        '4096 of 1393312 bytes per core (0 %)'
        """
        bank, what = chip.bank_bytes(memory), "core" if memory.is_l1 else "bank"
        return f"{self.total} of {bank} bytes per {what} ({100 * self.total / bank:.0f} %)"


@dataclass(frozen=True, slots=True)
class Share:
    """The contribution of a tensor or local buffer to a peak.

    >>> share = Share(8, "tensor 5 [32, 32] bfloat16", "ttnn.empty", 2048, 1497088)
    >>> share.bytes_per_core
    2048
    """

    node: int
    label: str
    call: str
    bytes_per_core: int
    address: int
    idle: bool = False  # it was used for the last time before
    cores: frozenset[CoreCoord] | None = None  # that hold a part of it; None if all do, or they are not known

    @property
    def cores_text(self) -> str:
        """The number of cores that hold it.

        >>> Share(8, "circular buffer", "ttnn.add", 2048, 1497088).cores_text
        'all'
        """
        return "all" if self.cores is None else str(len(self.cores))

    def to_json(self) -> dict[str, Any]:
        """Return the share as plain data.

        >>> Share(8, "circular buffer", "ttnn.add", 2048, 1497088).to_json()["cores"] is None
        True
        """
        return asdict(self) | {"cores": None if self.cores is None else [list(core) for core in sorted(self.cores)]}


@dataclass(frozen=True, slots=True)
class Life:
    """When something was in L1: from the time `start` until `end`, which is None if it stayed.

    `last_use` is the time of the last call that read it, None if that is not known.

    >>> life = Life(8, "tensor 5", "tensor", 2048, 3, None)
    >>> life.kind
    'tensor'
    """

    node: int
    label: str
    kind: str
    bytes_per_core: int
    start: int
    end: int | None
    last_use: int | None = None


@dataclass(frozen=True)
class Timeline:
    """L1 over time: every moment it changed, the peaks, the shares of the largest, and the high-water mark per core.

    `calls` are the calls of the run, in order, and `lives` the times during which tensors and buffers were in L1.

    >>> Timeline((), Peaks(), None, (), {}).peaks.total
    0
    """

    moments: tuple[Moment, ...]
    peaks: Peaks
    peak: Moment | None
    shares: tuple[Share, ...]
    cores: Mapping[CoreCoord, int] = field(hash=False)
    calls: tuple[Call, ...] = ()
    lives: tuple[Life, ...] = ()

    @property
    def busiest_core(self) -> tuple[CoreCoord, int] | None:
        """The core with the highest mark, and the mark; None if L1 was not used.

        >>> Timeline((), Peaks(), None, (), {CoreCoord(0, 0): 5, CoreCoord(1, 0): 7}).busiest_core
        (CoreCoord(x=1, y=0), 7)
        """
        return max(self.cores.items(), key=lambda item: item[1], default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the timeline as plain data.

        >>> Timeline((), Peaks(), None, (), {}).to_json()["moments"]
        []
        """
        return {
            "moments": [asdict(moment) for moment in self.moments],
            "peak": None if self.peak is None else asdict(self.peak),
            "shares": [share.to_json() for share in self.shares],
            "cores": [{"x": core.x, "y": core.y, "bytes": mark} for core, mark in sorted(self.cores.items())],
        }


def build_dram_timeline(run: Run, checked: Sequence[CheckedBuffer]) -> Timeline:
    """Return DRAM over the time of a `run` with its buffers `checked`, in bytes of a bank.

    >>> from .run import build_run
    >>> build_dram_timeline(build_run([]), []).peak is None
    True
    """
    moments: list[Moment] = []
    size = 0
    for time, node, change, item in order_changes(run, checked, BufferType.DRAM):
        if isinstance(item, CheckedBuffer):
            size += change * item.bytes_per_bank
            moments.append(Moment(time, node, run.name_call(time), size, 0))
    peak = max(moments, key=lambda moment: moment.total, default=None)
    shares = () if peak is None else tuple(_blame(run, checked, peak.time, BufferType.DRAM))
    return Timeline(tuple(moments), Peaks(), peak, shares, {}, run.calls)


def build_timeline(run: Run, checked: Sequence[CheckedBuffer], chip: Chip) -> Timeline:
    """Return L1 of `chip` over the time of a `run` with its buffers `checked`.

    >>> from .run import build_run
    >>> build_timeline(build_run([]), [], Chip.named("wormhole_n150")).peaks.l1
    0
    """
    across, down = chip.compute_grid
    usage, marks = np.zeros((across, down), np.int64), np.zeros((across, down), np.int64)
    sums = dict.fromkeys(("l1", *_LOCAL_FIELDS.values(), "l1_bytes"), 0)
    highest = dict.fromkeys((*sums, "total"), 0)
    moments: list[Moment] = []
    peak: Moment | None = None
    for time, node, change, item in order_changes(run, checked):
        if isinstance(item, CheckedBuffer):
            sums["l1"] += change * item.bytes_per_bank
            allocation = item.buffer.allocation
            sums["l1_bytes"] += change * (0 if allocation is None else allocation.integer("size") or 0)
            _add_tensor(usage, item, chip, change)
        else:
            # ttnn counts a circular buffer once more for the whole chip if it is part of a tensor, others not
            if not item.in_tensor or item.kind == "circular buffer":
                sums["l1_bytes"] += change * item.size
            if item.in_tensor:
                highest["l1_bytes"] = max(highest["l1_bytes"], sums["l1_bytes"])
                continue
            sums[_LOCAL_FIELDS[item.kind]] += change * item.size
            add_local(usage, item, change)
        np.maximum(marks, usage, out=marks)
        local = sum([sums[name] for name in _LOCAL_FIELDS.values()])
        moment = Moment(time, node, run.name_call(time), sums["l1"], local)
        for name, value in (*sums.items(), ("total", moment.total)):
            highest[name] = max(highest[name], value)
        if peak is None or moment.total > peak.total:
            peak = moment
        moments.append(moment)
    shares = () if peak is None else tuple(_blame(run, checked, peak.time))
    cores = {CoreCoord(x, y): int(marks[x, y]) for x in range(across) for y in range(down) if marks[x, y]}
    lives = tuple(_list_lives(run, checked))
    return Timeline(tuple(moments), Peaks(**highest), peak, shares, cores, run.calls, lives)


def _list_lives(run: Run, checked: Sequence[CheckedBuffer]) -> Iterator[Life]:
    """Yield when each tensor and local buffer was in L1."""
    for one in checked:
        buffer = one.buffer
        if buffer.memory.is_l1 and buffer.allocation is not None:
            label = one.label or str(buffer)
            parts = (one.bytes_per_bank, buffer.start, buffer.end, buffer.last_use)
            yield Life(buffer.number, label, "tensor", *parts)
    for local in run.local_buffers:
        if not local.in_tensor:
            yield Life(local.number, local.kind, local.kind, local.size, local.start, local.end)


def order_changes(
    run: Run, checked: Sequence[CheckedBuffer], memory: BufferType = BufferType.L1
) -> Iterator[tuple[int, int, int, CheckedBuffer | LocalBuffer]]:
    """Yield (time, node, 1 or -1, what) for all of a memory that is allocated or freed, in order."""
    changes: list[tuple[int, int, int, CheckedBuffer | LocalBuffer]] = []
    for one in checked:
        buffer = one.buffer
        if buffer.memory.is_l1 != memory.is_l1 or buffer.allocation is None:
            continue
        changes.append((buffer.start, buffer.number, 1, one))
        if buffer.end is not None and buffer.deallocation is not None:
            changes.append((buffer.end, buffer.deallocation.number, -1, one))
    for local in run.local_buffers if memory.is_l1 else ():
        changes.append((local.start, local.number, 1, local))
        if local.end is not None:
            changes.append((local.end, run.nodes[local.end].number, -1, local))
    # buffers freed at a time are gone before anything else happens
    yield from sorted(changes, key=lambda change: (change[0], change[2], change[1]))


def _add_tensor(usage: Integers, one: CheckedBuffer, chip: Chip, change: int) -> None:
    """Add the bytes of a tensor to the cores that hold pages of it, or to all if its spec is not known."""
    across, down = usage.shape
    size = change * min(one.bytes_per_bank, _MAX_BYTES)
    if one.spec is None:
        usage += size
        return
    for core in _cores_of(one.spec):
        if core.x < across and core.y < down:
            usage[core.x, core.y] += size


def _cores_of(spec: TensorSpec) -> Sequence[CoreCoord]:
    return spec.paging.cores[: spec.paging.num_shards]


def add_local(usage: Integers, local: LocalBuffer, change: int) -> None:
    size = change * min(local.size, _MAX_BYTES)
    if local.cores is None:
        usage += size
        return
    for box in local.cores:
        usage[box.start.x : box.end.x + 1, box.start.y : box.end.y + 1] += size


def _blame(run: Run, checked: Sequence[CheckedBuffer], time: int, memory: BufferType = BufferType.L1) -> list[Share]:
    """Return the contents of a memory at a time, the largest first."""
    shares = []
    for one in checked:
        buffer = one.buffer
        if buffer.memory.is_l1 == memory.is_l1 and buffer.allocation is not None and buffer.is_live(time):
            idle = buffer.last_use is not None and buffer.last_use < _start_of_call(run, time)
            label = one.label or str(buffer)
            cores = None if one.spec is None else frozenset(_cores_of(one.spec))
            shares.append(Share(buffer.number, label, buffer.call, one.bytes_per_bank, buffer.address, idle, cores))
    shares += [
        Share(
            local.number,
            local.kind,
            run.name_call(local.start),
            local.size,
            local.address,
            cores=None if local.cores is None else frozenset(local.cores.cores()),
        )
        for local in (run.local_buffers if memory.is_l1 else ())
        if local.start <= time and (local.end is None or time < local.end) and not local.in_tensor
    ]
    return sorted(shares, key=lambda share: (-share.bytes_per_core, share.node))


def _start_of_call(run: Run, time: int) -> int:
    call = run.call_at(time)
    return 0 if call is None else call.start


_MAX_NOTES = 10  # of unexpected addresses
_MAX_NEIGHBOURS = 64  # earlier blocks to look at: only blocks that overlap already come between


def find_overlaps(checked: Sequence[CheckedBuffer], chip: Chip) -> Iterator[AuditFinding]:
    """Yield buffers that are allocated where another one is, or outside their memory, in the order of the run.

    >>> list(find_overlaps([], Chip.named("wormhole_n150")))
    []
    """
    live: dict[tuple[bool, int], list[tuple[int, int, int]]] = {}  # (address, end, index), by memory and device
    for index, begins in _order_events(checked):
        one = checked[index]
        buffer, size = one.buffer, one.bytes_per_bank
        if not buffer.is_placed or not size:
            continue
        blocks = live.setdefault((buffer.memory.is_l1, buffer.device), [])
        block = (buffer.address, buffer.address + size, index)
        if not begins:
            if block in blocks:
                blocks.remove(block)
            continue
        yield from _outside_findings(one, chip)
        overlapping = [
            neighbour for neighbour in _find_neighbours(blocks, block) if not _is_apart(one, checked[neighbour[2]])
        ]
        for start, end, other in overlapping[:1]:  # the others are counted
            first, shared = checked[other], min(end, block[1]) - max(start, block[0])
            ends = f"{buffer} ends at {block[1]} and overlaps {first.buffer}, which ends at {end}"
            numbers = buffer.address, first.buffer.address
            reason = f"{first.label or first.buffer} is still allocated, since {first.buffer.call}"
            remedy = "one of the two is overwritten: check who freed the first one, and whether its address is right"
            count = len(overlapping)
            yield one.finding("overlap", f"{ends}, by {shared} bytes", *numbers, reason, remedy, count=count)
        insort(blocks, block)


def _order_events(checked: Sequence[CheckedBuffer]) -> list[tuple[int, bool]]:
    """Return (index, whether it is allocated) of all buffers in order of time; at one time, frees come first."""
    events = [(one.buffer.start, True, index) for index, one in enumerate(checked)]
    events += [(one.buffer.end, False, index) for index, one in enumerate(checked) if one.buffer.end is not None]
    return [(index, begins) for _, begins, index in sorted(events)]


def _find_neighbours(blocks: list[tuple[int, int, int]], block: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Return the blocks that a block overlaps: those before it reach into it, those after it begin in it."""
    place = bisect_left(blocks, block)
    overlapping = []
    for earlier in reversed(blocks[max(0, place - _MAX_NEIGHBOURS) : place]):
        if earlier[1] > block[0]:
            overlapping.append(earlier)
            break
    for later in blocks[place : place + _MAX_NEIGHBOURS]:
        if later[0] >= block[1]:
            break
        overlapping.append(later)
    return overlapping


def _is_apart(one: CheckedBuffer, other: CheckedBuffer) -> bool:
    """Return whether two buffers are allocated core by core, on different cores."""
    if one.spec is None or other.spec is None:
        return False
    modes = (one.spec.memory.allocation, other.spec.memory.allocation)
    return AllocationMode.PER_CORE in modes and one.spec.used_banks.isdisjoint(other.spec.used_banks)


def _outside_findings(one: CheckedBuffer, chip: Chip) -> Iterator[AuditFinding]:
    buffer, end = one.buffer, one.buffer.address + one.bytes_per_bank
    low, high = chip.base(buffer.memory), chip.end(buffer.memory)
    if buffer.address < low or high < end:
        message = f"{buffer} ends at {end}, but {buffer.memory} goes from {low} to {high}"
        reason = f"these are the addresses for tensors on {chip.name}"
        remedy = "check the chip: another release has other bases; pass chip=... if it is not this one"
        yield one.finding("out of memory", message, f"{buffer.address} to {end}", f"{low} to {high}", reason, remedy)


@dataclass
class Replay:
    """The addresses that the allocator gives, from an empty device: how many were predicted, and how many are right.

    `predicted` has the address of each buffer by its number, also of a run that placed nothing.

    >>> Replay().matching
    0
    """

    compared: int = 0
    matching: int = 0
    predicted: dict[int, int] = field(default_factory=dict)
    findings: list[AuditFinding] = field(default_factory=list)


def replay_addresses(checked: Sequence[CheckedBuffer], chip: Chip, l1_small_size: int = 0) -> Replay:
    """Replay the allocations of a run on an empty `chip`, and compare the addresses with the recorded ones.

    `checked` are its buffers, and `l1_small_size` the bytes at the top of L1 that were reserved.

    >>> replay_addresses([], Chip.named("wormhole_n150")).compared
    0
    """
    replay = Replay()
    own = [one for one in checked if one.spec is not None and one.spec.memory.allocation is AllocationMode.PER_CORE]
    if own:
        message = f"{own[0].buffer} is allocated per core, so that the addresses of this run are not predicted"
        reason, remedy = "a report has the address of one core only", "ask fit for the address on each core"
        replay.findings.append(own[0].finding("scope", message, None, None, reason, remedy, Severity.NOTE))
        return replay
    allocators: dict[int, Allocator] = {}
    blocks: dict[int, Allocation] = {}
    for index, begins in _order_events(checked):
        one = checked[index]
        buffer = one.buffer
        allocator = allocators.setdefault(buffer.device, Allocator(chip, l1_small_size))
        if not begins:
            if index in blocks:
                allocator.free(blocks.pop(index))
            continue
        size = one.bytes_per_bank
        if not size or (buffer.allocation is None and not buffer.is_placed):
            continue
        if buffer.allocation is None:  # it was there before
            block = _reserve(allocator, buffer.address, size, buffer.memory)
        else:
            block = _replay_allocation(replay, one, allocator)
        if block is not None:
            blocks[index] = block
    unexpected = [finding for finding in replay.findings if finding.kind == "unexpected address"]
    if len(unexpected) > _MAX_NOTES:  # they have one cause, so that the first speaks for all
        others = [finding for finding in replay.findings if finding.kind != "unexpected address"]
        replay.findings = [replace(unexpected[0], count=len(unexpected)), *others]
    return replay


def _replay_allocation(replay: Replay, one: CheckedBuffer, allocator: Allocator) -> Allocation | None:
    """Allocate a buffer as the allocator would, then where it was, and return the block."""
    buffer, size = one.buffer, one.bytes_per_bank
    try:
        block = allocator.allocate_bytes(size, buffer.memory)
    except (OutOfMemory, MemoryConfigError) as problem:
        if not buffer.is_placed and buffer.memory in (BufferType.DRAM, BufferType.L1):
            reason = "the run placed nothing, so only a real run would have failed"
            remedy, message = "free tensors earlier, or place this one elsewhere", f"{buffer} does not fit: {problem}"
            replay.findings.append(one.finding("out of memory", message, size, None, reason, remedy))
        return _reserve(allocator, buffer.address, size, buffer.memory) if buffer.is_placed else None
    replay.predicted[buffer.number] = block.address
    if not buffer.is_placed:
        return block
    replay.compared += 1
    if block.address == buffer.address:
        replay.matching += 1
        return block
    allocator.free(block)
    message, numbers = f"{buffer} was expected at {block.address}", (buffer.address, block.address)
    reason = (
        "the allocator takes the first block that fits, so something else was allocated before the capture, or is not"
        " in the report"
    )
    remedy = "capture from an empty device to see all that is allocated"
    replay.findings.append(one.finding("unexpected address", message, *numbers, reason, remedy, Severity.NOTE))
    return _reserve(allocator, buffer.address, size, buffer.memory)


def _reserve(allocator: Allocator, address: int, size: int, memory: BufferType) -> Allocation | None:
    unit = allocator.chip.allocation_alignment
    try:
        return allocator.reserve(address, max(unit, -(-size // unit) * unit), memory)
    except MemoryConfigError:  # an overlap, which is reported as such
        return None


_MAX_ADVICE = 4  # searches for a placement that fits


def find_clashes(
    run: Run, checked: Sequence[CheckedBuffer], chip: Chip, predicted: Mapping[int, int]
) -> Iterator[AuditFinding]:
    """Yield the programs whose circular buffers reach into tensors, once per call.

    A run that placed nothing is judged by the addresses `predicted` for its buffers by number.

    >>> from .run import build_run
    >>> list(find_clashes(build_run([]), [], Chip.named("wormhole_n150"), {}))
    []
    """
    tensors: dict[int, CheckedBuffer] = {}
    usage: Integers = np.zeros(chip.compute_grid, np.int64)  # of local buffers that were not placed
    reported: set[int] = set()
    for time, _, change, item in order_changes(run, checked):
        if isinstance(item, CheckedBuffer):
            if change > 0:
                tensors[item.buffer.number] = item
            else:
                tensors.pop(item.buffer.number, None)
            continue
        if item.in_tensor:
            continue
        if not item.address:
            add_local(usage, item, change)
        call = run.call_at(time)
        number = item.number if call is None else call.number
        if change < 0 or number in reported:
            continue
        top = item.address + item.size if item.address else chip.base("l1") + int(usage.max())
        lowest = _find_lowest(tensors, predicted)
        if lowest is not None and top > lowest[0]:
            reported.add(number)
            advice = _advise(tensors, chip, top) if len(reported) <= _MAX_ADVICE else ""
            (address, one), call_name = lowest, run.name_call(time)
            reach = f"{item.kind}s of {call_name} reach {top}, but {one.label or one.buffer} begins at {address}"
            message = f"{reach}: {top - address} bytes too many"
            reason = "buffers of programs grow up from the L1 base, tensors down from the end"
            remedy = advice or "make the buffers smaller, free tensors before the call, or move them out of L1"
            finding = one.finding("clash", message, top, address, reason, remedy, node=item.number, call=call_name)
            yield replace(finding, address=address)


def _find_lowest(
    tensors: Mapping[int, CheckedBuffer], predicted: Mapping[int, int]
) -> tuple[int, CheckedBuffer] | None:
    """Return the lowest address of a tensor, and the tensor."""
    places = [(one.buffer.address or predicted.get(number, 0), number) for number, one in tensors.items()]
    placed = [place for place in places if place[0]]
    if not placed:
        return None
    address, number = min(placed)
    return address, tensors[number]


def _advise(tensors: Mapping[int, CheckedBuffer], chip: Chip, top: int) -> str:
    """Return the nearest change of the tensors in L1 that leaves enough memory, if there is one."""
    specs: list[TensorSpec] = [one.spec for one in tensors.values() if one.spec is not None]
    try:
        answer = fit(specs, chip, circular_buffers=top - chip.base("l1"))
    except TilewrightError:
        return ""
    if answer.fits:
        return "the tensors would fit if they were allocated in order from an empty device: free the buffers below them"
    return f"place it as {answer.alternatives[0]}" if answer.alternatives else ""


MAX_NOTES = 10  # of a kind, the most expensive first


@dataclass(frozen=True, slots=True)
class IdleTensor:
    """A tensor that stays allocated after its last use, for a number of calls (`idle_calls`) that do not use it.

    >>> from tilewright.memory import BufferType
    >>> from .run import RunBuffer
    >>> IdleTensor(CheckedBuffer(RunBuffer(8, BufferType.L1, 0)), None, 3).idle_calls
    3
    """

    checked: CheckedBuffer
    last_call: Call | None
    idle_calls: int

    @property
    def cost(self) -> int:
        """Bytes per bank times calls.

        >>> from tilewright.memory import BufferType
        >>> from .run import RunBuffer
        >>> IdleTensor(CheckedBuffer(RunBuffer(8, BufferType.L1, 0)), None, 3).cost
        0
        """
        return self.checked.bytes_per_bank * self.idle_calls


def find_idle_tensors(run: Run, checked: Sequence[CheckedBuffer]) -> list[IdleTensor]:
    """Return the tensors that stay allocated after their last use, the most expensive first, those in L1 before others.

    >>> from .run import build_run
    >>> find_idle_tensors(build_run([]), [])
    []
    """
    working = [call for call in run.calls if not call.frees]
    starts, ends = [call.start for call in working], [call.end for call in working]
    idle = []
    for one in checked:
        buffer = one.buffer
        if buffer.last_use is None or buffer.allocation is None:
            continue
        if buffer.end is None and not buffer.memory.is_l1:
            continue  # weights stay in DRAM for the next run
        last = run.call_at(buffer.last_use)
        after = buffer.last_use if last is None else last.end
        end = len(run.nodes) if buffer.end is None else buffer.end
        calls = bisect_right(ends, end) - bisect_right(starts, after)  # calls follow one another
        if calls > 0:
            idle.append(IdleTensor(one, last, calls))
    return sorted(
        idle, key=lambda tensor: (not tensor.checked.buffer.memory.is_l1, -tensor.cost, tensor.checked.buffer.number)
    )


def note_idle_tensors(run: Run, idle: Sequence[IdleTensor], timeline: Timeline) -> Iterator[AuditFinding]:
    """Yield a note for each of the most expensive tensors that are freed late, and the peak without them.

    >>> from .run import build_run
    >>> list(note_idle_tensors(build_run([]), [], Timeline((), Peaks(), None, (), {})))
    []
    """
    for tensor in idle[:MAX_NOTES]:
        one, buffer = tensor.checked, tensor.checked.buffer
        freed = "is not freed" if buffer.end is None else f"is freed in {run.name_call(buffer.end)}"
        after = "" if tensor.last_call is None else f" after {tensor.last_call} (node {tensor.last_call.number})"
        used, later = f"was last used{after} and {freed}", f"{count_of(tensor.idle_calls, 'call')} later"
        message, remedy = f"{buffer} ({one.label}) {used}, {later}", f"call ttnn.deallocate(tensor){after}"
        reason = f"it holds {format_bytes(one.bytes_per_bank)} of every bank of {buffer.memory} meanwhile"
        yield one.finding("late free", message, tensor.idle_calls, 0, reason, remedy, Severity.NOTE)
    idle_bytes, peak = sum([share.bytes_per_core for share in timeline.shares if share.idle]), timeline.peak
    if idle_bytes and peak is not None:
        where = f"at the peak of {peak.total} bytes per core, in {peak.call}"
        rest = peak.total - idle_bytes
        yield AuditFinding(
            "late free",
            f"{where}, {idle_bytes} are of tensors that are not used any more",
            Severity.NOTE,
            "they were used for the last time in earlier calls",
            f"free them after their last use, for a peak of {rest} bytes here",
            node=peak.node,
            call=peak.call,
            recorded=peak.total,
            expected=rest,
        )
