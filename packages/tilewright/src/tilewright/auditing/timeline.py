# SPDX-License-Identifier: Apache-2.0
"""L1 over time: tensors and local buffers per core, the high-water mark, and who is to blame for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..memory import Chip, CoreCoord, TensorSpec
from .buffer_check import CheckedBuffer
from .run import Call, LocalBuffer, Run

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
_LOCAL_FIELDS = {"circular buffer": "cb", "dataflow buffer": "dataflow_buffer", "scratchpad": "scratchpad"}

_MOST_BYTES = 2**40  # of one buffer on a core, so that sums of what a report claims fit 64 bits


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
        """Return the sum of both.

        >>> Moment(3, 8, "ttnn.add", 4096, 0).total
        4096
        """
        return self.tensor_bytes + self.local_bytes


@dataclass(frozen=True, slots=True)
class Share:
    """What a tensor or local buffer contributes to a peak.

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
        """Return on how many cores it is.

        >>> Share(8, "circular buffer", "ttnn.add", 2048, 1497088).cores_text
        'all'
        """
        return "all" if self.cores is None else str(len(self.cores))

    def to_json(self) -> dict[str, Any]:
        """Return the share as plain data.

        >>> Share(8, "circular buffer", "ttnn.add", 2048, 1497088).to_json()["cores"] is None
        True
        """
        names = ("node", "label", "call", "bytes_per_core", "address", "idle")
        cores = None if self.cores is None else [list(core) for core in sorted(self.cores)]
        return {name: getattr(self, name) for name in names} | {"cores": cores}


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

    `calls` are those of the run, in order, and `lives` what was in L1, when.

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
        """Return the core with the highest mark, and the mark; None if L1 was not used.

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
            sums["l1_bytes"] += change * _whole_size(item)
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
    run: Run, checked: Sequence[CheckedBuffer]
) -> Iterator[tuple[int, int, int, CheckedBuffer | LocalBuffer]]:
    """Yield (time, node, 1 or -1, what) for all of L1 that is allocated or freed, in order."""
    changes: list[tuple[int, int, int, CheckedBuffer | LocalBuffer]] = []
    for one in checked:
        buffer = one.buffer
        if not buffer.memory.is_l1 or buffer.allocation is None:
            continue
        changes.append((buffer.start, buffer.number, 1, one))
        if buffer.end is not None and buffer.deallocation is not None:
            changes.append((buffer.end, buffer.deallocation.number, -1, one))
    for local in run.local_buffers:
        changes.append((local.start, local.number, 1, local))
        if local.end is not None:
            changes.append((local.end, run.nodes[local.end].number, -1, local))
    # what is freed at a time is gone before anything else happens
    yield from sorted(changes, key=lambda change: (change[0], change[2], change[1]))


def _whole_size(one: CheckedBuffer) -> int:
    return 0 if one.buffer.allocation is None else one.buffer.allocation.integer("size") or 0


def _add_tensor(usage: Integers, one: CheckedBuffer, chip: Chip, change: int) -> None:
    """Add the bytes of a tensor to the cores that hold pages of it, or to all if its spec is not known."""
    across, down = usage.shape
    size = change * min(one.bytes_per_bank, _MOST_BYTES)
    if one.spec is None:
        usage += size
        return
    for core in _cores_of(one.spec):
        if core.x < across and core.y < down:
            usage[core.x, core.y] += size


def _cores_of(spec: TensorSpec) -> Sequence[CoreCoord]:
    return spec.paging.cores[: spec.paging.num_shards]


def add_local(usage: Integers, local: LocalBuffer, change: int) -> None:
    size = change * min(local.size, _MOST_BYTES)
    if local.cores is None:
        usage += size
        return
    for box in local.cores:
        usage[box.start.x : box.end.x + 1, box.start.y : box.end.y + 1] += size


def _blame(run: Run, checked: Sequence[CheckedBuffer], time: int) -> list[Share]:
    """Return what is in L1 at a time, the largest first."""
    shares = []
    for one in checked:
        buffer = one.buffer
        if buffer.memory.is_l1 and buffer.allocation is not None and buffer.is_live(time):
            idle = buffer.last_use is not None and buffer.last_use < _start_of_call(run, time)
            label = one.label or str(buffer)
            call = run.name_call(buffer.start)
            cores = None if one.spec is None else frozenset(_cores_of(one.spec))
            shares.append(Share(buffer.number, label, call, one.bytes_per_bank, buffer.address, idle, cores))
    shares += [
        Share(
            local.number,
            local.kind,
            run.name_call(local.start),
            local.size,
            local.address,
            cores=None if local.cores is None else frozenset(local.cores.cores()),
        )
        for local in run.local_buffers
        if local.start <= time and (local.end is None or time < local.end) and not local.in_tensor
    ]
    return sorted(shares, key=lambda share: (-share.bytes_per_core, share.node))


def _start_of_call(run: Run, time: int) -> int:
    call = run.call_at(time)
    return 0 if call is None else call.start
