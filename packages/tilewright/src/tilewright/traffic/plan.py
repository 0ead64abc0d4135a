# SPDX-License-Identifier: Apache-2.0
"""`ReshardPlan`: how a tensor moves from one memory to another: who sends what to whom, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np

from .._dialect import unwrap
from .._text import format_bytes
from ..copying import Placement, aligned_empty, execute, plan_copy
from ..display import Drawable
from ..errors import MemoryConfigError
from ..layout import Layout, LayoutLike, PagedLayout, compose, left_inverse
from ..memory import (
    Allocation,
    BufferType,
    CoreCoord,
    Device,
    Fit,
    Integers,
    TensorSpec,
    as_spec,
    fit,
    placement_violations,
)
from ..tensor import DeviceStorage, Tensor
from .estimate import Bound, Estimate, Flows, busiest_links
from .moves import (
    PageMoves,
    RequestLists,
    Requests,
    TransferRuns,
    has_equal_pages,
    page_moves,
    sum_pairs,
    validate_pair,
)
from .noc import Endpoint, Link, NocMap
from .steps import OPERATIONS, ReshardStep, choose_steps, nominal_address

# Reshards that run: the bytes of a step moved between the banks of a simulated device, by copy plans.


def run_steps(steps: tuple[ReshardStep, ...], device: Device, allocation: Allocation) -> Allocation:
    """Run `steps` on a `device` from the tensor at `allocation`, and return the allocation of the last one.

    Every step allocates its target, before the tensor between two steps is freed. A step may begin at the source again,
    if the one before was in vain.

    >>> from tilewright import TensorSpec, reshard
    >>> device = Device("n150")
    >>> spec = TensorSpec((2, 4), "uint8", chip="n150")
    >>> before = device.put(np.arange(8).reshape(2, 4), spec)
    >>> device.get(run_steps(reshard(spec, spec.with_memory("l1")).steps, device, before)).tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    here = allocation
    for step in steps:
        there = device.allocate(step.target)
        run_step(step, device, allocation if step.source == steps[0].source else here, there)
        if here is not allocation:
            device.free(here)
        here = there
    return here


def run_step(step: ReshardStep, device: Device, source: Allocation, target: Allocation) -> None:
    """Move the bytes of a `step` on a `device` from the allocation `source` to `target`, run by run.

    >>> from tilewright import TensorSpec, reshard
    >>> device, spec = Device("n150"), TensorSpec((2, 4), "uint8", chip="n150")
    >>> before, after = device.put(np.ones((2, 4)), spec), device.allocate(spec.with_memory("l1"))
    >>> run_step(reshard(spec, after.spec).steps[0], device, before, after)
    >>> int(device.get(after).sum())
    8
    """
    if device.chip != step.source.known_chip:
        raise MemoryConfigError(f"the plan is for {step.source.known_chip}, the device is {device.chip}; plan for it")
    noc_map = NocMap.of(device.chip)
    moves = page_moves(step.source, step.target, source.single_address, target.single_address)
    pieces = TransferRuns.of(moves, noc_map).pieces()
    memories = [device.bank_memory(part.buffer_type) for part in (source, target)]
    starts = [
        noc_map.banks(endpoint) * memory.stride + address - memory.start
        for memory, endpoint, address in (
            (memories[0], pieces.source, pieces.source_address),
            (memories[1], pieces.target, pieces.target_address),
        )
    ]
    for size in np.unique(pieces.nbytes).tolist():
        chosen = np.flatnonzero(pieces.nbytes == size)
        here, there = [_paged(size, start[chosen]) for start in starts]
        read, written = [memory.bytes for memory in memories]
        if memories[0] is memories[1]:  # a copy within the same array goes through a buffer
            staged = aligned_empty(size * len(chosen), np.uint8)
            flat = Placement(Layout((size, len(chosen))), "uint8")
            execute(plan_copy(here, flat), read, staged)
            here, read = flat, staged
        execute(plan_copy(here, there), read, written)


def _paged(size: int, starts: Integers) -> Placement:
    """Return the placement of pieces of `size` bytes that begin at `starts`."""
    flat = Layout((size, len(starts)))
    return Placement(compose(PagedLayout(size, starts), flat), "uint8")


# Parts of a reshard plan as plain values and as text.


def _place(endpoint: Endpoint) -> list[int] | int:
    return endpoint if isinstance(endpoint, int) else list(endpoint)


def _step(step: ReshardStep, profiler: bool) -> dict[str, Any]:
    """Return a step as plain values."""
    try:
        estimate = _estimate(step.estimate(profiler))
    except MemoryConfigError:
        estimate = None
    return {
        "operation": step.operation,
        "factory": step.factory,
        "source": str(step.source.memory),
        "target": str(step.target.memory),
        "reads": step.num_reads,
        "writes": step.num_writes,
        "barriers": step.num_barriers,
        "request_bytes": list(step.request_bytes),
        "runtime_arguments": step.runtime_arguments,
        "extra_l1": step.extra_l1,
        "buffers": [[item.kind, item.nbytes, item.borrowed, str(item.cores)] for item in step.buffers],
        "warnings": list(step.warnings),
        "estimate": estimate,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain values."""
    bound = estimate.bound_by
    which = list(bound.which) if isinstance(bound.which, Link) else None if bound.which is None else _place(bound.which)
    return {
        "cycles": estimate.cycles,
        "microseconds": estimate.microseconds,
        "calibrated": estimate.calibrated,
        "expected_error": estimate.expected_error,
        "bound_by": {"resource": bound.resource, "which": which, "noc": bound.noc, "bytes": bound.nbytes},
    }


def _lists(lists: RequestLists) -> list[dict[str, Any]]:
    """Return the lists of RISCs as plain values: [endpoint, bytes, count], or ["barrier", count]."""
    return [
        {
            "core": list(risc.core),
            "risc": risc.risc,
            "noc": risc.noc,
            "runs": [[_place(run[0]), *run[1:]] if len(run) == 3 else list(run) for run in runs],
        }
        for risc, runs in lists.items()
    ]


def _explain_step(step: ReshardStep) -> list[str]:
    """Return the text of a step, line by line."""
    smallest, largest = step.request_bytes
    sizes = f"{smallest} bytes each" if smallest == largest else f"{smallest} to {largest} bytes each"
    requests = f"{step.num_reads} reads, {step.num_writes} writes of {sizes}, {step.num_barriers} barriers"
    lines = [f"{requests}, {len(step.requests.core)} RISCs"]
    if step.runtime_arguments is not None:
        lines.append(f"{step.runtime_arguments} words of runtime arguments, at most {step.most_arguments} for a RISC")
    lines += [
        f"extra L1: {buffer.kind} of {buffer.nbytes} bytes on {buffer.cores.num_cores} cores"
        for buffer in step.buffers
        if not buffer.borrowed
    ]
    return lines


_Key = TypeVar("_Key")


@dataclass(frozen=True, repr=False)
class ReshardPlan(Drawable):
    """The plan of a reshard from `source` to `target`; make one with `reshard`.

    `operation` is the requested one, `kernel` the version of the kernels, `profiler` whether NoC events are recorded
    while it runs; `source_address` and `target_address` are the buffers' addresses. On a mesh, all `devices` do the
    same at the same time; everything is per device.

    >>> from tilewright import block_sharded, height_sharded, reshard
    >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
    >>> plan = reshard(spec, spec.with_memory(height_sharded((4, 2))))
    >>> plan.traffic[(3, 1), (1, 0)], plan.total_bytes, plan.local
    (32768, 524288, 0.125)
    >>> plan.steps[0].factory, plan.cycles.bound_by.resource
    ('ReshardGenericFactory', 'link')
    """

    source: TensorSpec
    target: TensorSpec
    operation: str
    kernel: str
    profiler: bool
    source_address: int
    target_address: int
    devices: int = 1

    # What moves.

    @cached_property
    def noc_map(self) -> NocMap:
        """The network of the chip.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.noc_map.size
        (10, 12)
        """
        return NocMap.of(self.source.known_chip)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, since source and target are equal.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.is_empty
        False
        """
        return not self.steps

    @cached_property
    def _moves(self) -> PageMoves:
        moves = page_moves(self.source, self.target, self.source_address, self.target_address)
        return moves.take(np.zeros(0, dtype=np.int64)) if self.is_empty else moves

    @cached_property
    def transfers(self) -> TransferRuns:
        """The bytes that move, as strided runs from an address of a core or bank to another.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> len(plan.transfers)
        4
        """
        return TransferRuns.of(self._moves, self.noc_map)

    @cached_property
    def layout(self) -> LayoutLike | None:
        """The layout from a slot of the source to its address in the target: a placement composed with an inverse.

        Slots count the pages of the source shard by shard. None if rows are cut into different pages.

        >>> from tilewright import block_sharded, height_sharded, reshard
        >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
        >>> print(reshard(spec, spec.with_memory(height_sharded((4, 2)))).layout)
        (8,(2,8),2):(2048@addr,(32768@addr,1@core),16384@addr)
        """
        if not has_equal_pages(self.source, self.target):
            return None
        pages = left_inverse(self.source.paging.slots)
        layout: LayoutLike = compose(self.target.page_map.slot_layout, compose(self.target.paging.slots, pages))
        return layout

    @cached_property
    def traffic(self) -> dict[tuple[Endpoint, Endpoint], int]:
        """The bytes of each pair (reader, source): to a core or DRAM bank, from a core or DRAM bank.

        Pages that stay on their core are in it. Detours of a copy through other cores are in `steps`.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.traffic[(1, 0), 2]
        2048
        """
        moves = self._moves
        return sum_pairs(self.noc_map, moves.target, moves.source, moves.nbytes)

    @cached_property
    def total_bytes(self) -> int:
        """The bytes that move, including those that stay on their core.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.total_bytes
        8192
        """
        return sum(self.traffic.values())

    @cached_property
    def local_bytes(self) -> int:
        """The bytes that stay on their core or in their DRAM bank.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.local_bytes
        0
        """
        return sum(nbytes for (reader, source), nbytes in self.traffic.items() if reader == source)

    @property
    def local(self) -> float:
        """The share of bytes that stay on their core or in their DRAM bank; 1 if nothing moves.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.local
        0.0
        """
        return self.local_bytes / self.total_bytes if self.total_bytes else 1.0

    @property
    def noc_bytes(self) -> int:
        """The bytes that cross the network.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.noc_bytes
        8192
        """
        return self.total_bytes - self.local_bytes

    @cached_property
    def bytes_in(self) -> dict[Endpoint, int]:
        """The bytes that each core or DRAM bank gets from others.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.bytes_in[0, 0]
        4096
        """
        return _sum_by([(reader, n) for (reader, source), n in self.traffic.items() if reader != source])

    @cached_property
    def bytes_out(self) -> dict[Endpoint, int]:
        """The bytes that each core or DRAM bank sends to others.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.bytes_out
        {0: 2048, 1: 2048, 2: 2048, 3: 2048}
        """
        return _sum_by([(source, n) for (reader, source), n in self.traffic.items() if reader != source])

    # How the runtime does it.

    @cached_property
    def steps(self) -> tuple[ReshardStep, ...]:
        """The operations that the runtime runs, in order; none if source and target are equal.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.steps[0].operation
        'InterleavedToShardedDeviceOperation'
        """
        addresses = self.source_address, self.target_address
        return choose_steps(self.source, self.target, self.operation, addresses, self.kernel)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The cases in which the runtime fails, or its requests may differ.

        >>> from tilewright import nd_sharded, reshard
        >>> rows = TensorSpec((2, 4, 6), "float32", chip="n150")
        >>> print(reshard(rows, rows.with_memory(nd_sharded((1, 2, 16), (2, 1)))).warnings[0])
        rows have 24 bytes, pages 64: this kernel never ends if a shard is wider than the rows
        """
        return tuple([warning for step in self.steps for warning in step.warnings])

    @cached_property
    def _requests(self) -> Requests:
        parts = [step.requests for step in self.steps] or [Requests.none(self.noc_map)]
        return parts[0] if len(parts) == 1 else Requests.join(parts)

    @property
    def reads(self) -> RequestLists:
        """The reads and barriers of each (core, RISC, NoC), in order, as runs.

        A run is (source, bytes of one read, count) or ("barrier", count).

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory(height_sharded((2, 1)))).reads[(1, 0), "NCRISC", "NOC_0"]
        ((2, 2048, 1), (3, 2048, 1), ('barrier', 1))
        """
        return self._requests.reads

    @property
    def writes(self) -> RequestLists:
        """The writes and barriers of each (core, RISC, NoC), in order, as runs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> dict(plan.writes)
        {}
        """
        return self._requests.written

    @property
    def packets(self) -> dict[tuple[str, str, Endpoint, Endpoint], dict[int, int]]:
        """The packets of all steps by network, "read" or "write", from and to: {bytes: how many}.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory(height_sharded((2, 1)))).packets["NOC_0", "read", 3, (1, 0)]
        {2048: 1}
        """
        return self._requests.packets

    @cached_property
    def runtime_arguments(self) -> int | None:
        """The words of runtime arguments of all RISCs and steps, or None if they are not known.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.runtime_arguments
        16
        """
        words = [step.runtime_arguments for step in self.steps]
        known = [count for count in words if count is not None]
        return sum(known) if len(known) == len(words) else None

    @cached_property
    def links(self) -> dict[Link, int]:
        """The bytes that cross each link of the network, over all steps; the busiest first.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> len(plan.links) > 4
        True
        """
        return busiest_links(self._requests)

    @property
    def busiest_link(self) -> tuple[Link, int] | None:
        """The link that most bytes cross, and their number; None if no link is used.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.busiest_link[1]
        4096
        """
        return next(iter(self.links.items()), None)

    @cached_property
    def banks(self) -> dict[int, int]:
        """The bytes that each DRAM bank is read and written, over all steps.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.banks
        {0: 2048, 1: 2048, 2: 2048, 3: 2048}
        """
        flows, first = Flows.of(self._requests), self.noc_map.num_l1
        parts = [
            (int(bank) - first, int(size))
            for side in (flows.origin, flows.to)
            for bank, size in zip(side[side >= first], flows.nbytes[side >= first], strict=True)
        ]
        return dict(sorted(_sum_by(parts).items()))

    # Cost.

    def estimate(self, profiler: bool | None = None) -> Estimate:
        """Return the estimated time of all steps, with the `profiler` of NoC events on or off.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((256, 256), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.estimate(profiler=True).cycles > plan.estimate(profiler=False).cycles
        True
        """
        chosen = self.profiler if profiler is None else profiler
        parts = [step.estimate(chosen) for step in self.steps]
        if not parts:
            return Estimate(0.0, Bound("nothing", None, 0, 0.0), self.noc_map.chip.clock_mhz or 1, True, "exact")
        longest = max(parts, key=lambda part: part.cycles)
        words = next((part.expected_error for part in parts if not part.calibrated), longest.expected_error)
        return Estimate(
            sum(part.cycles for part in parts),
            longest.bound_by,
            longest.clock_mhz,
            all(part.calibrated for part in parts),
            words,
        )

    @cached_property
    def cycles(self) -> Estimate:
        """The estimated time of all steps, its bound, and the reliability of the estimate.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.cycles.calibrated
        False
        """
        return self.estimate()

    @cached_property
    def peak_l1(self) -> dict[CoreCoord, int]:
        """The most bytes of L1 in use on each core while source and target are both there, buffers included.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.peak_l1[0, 0]
        4096
        """
        specs = (self.source,) if self.is_empty else (self.source, self.target)
        base = sum([spec.allocated_bytes for spec in specs if spec.memory.buffer_type.is_l1])
        across, down = self.noc_map.chip.compute_grid
        peak = dict.fromkeys([CoreCoord(x, y) for y in range(down) for x in range(across)], base)
        for step in self.steps:
            owned = [buffer for buffer in step.buffers if not buffer.borrowed]
            extra = _sum_by([(core, buffer.nbytes) for buffer in owned for core in buffer.cores.cores()])
            for core, size in extra.items():
                peak[core] = max(peak.get(core, 0), base + size)
        return peak

    @cached_property
    def fit(self) -> Fit:
        """Whether source and target fit the chip together, beside the buffers of the steps.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> bool(plan.fit)
        True
        """
        tensors = [self.source] if self.is_empty else [self.source, self.target]
        buffers = max((step.extra_l1 for step in self.steps), default=0)
        return fit(tensors, self.source.known_chip, circular_buffers=buffers)

    @property
    def fits(self) -> bool:
        """Whether source and target fit the chip together, beside the buffers of the steps.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.fits
        True
        """
        return bool(self.fit)

    # Running it, and showing it.

    @overload
    def run(self, source: Tensor) -> Tensor: ...

    @overload
    def run(self, source: Sequence[Tensor]) -> list[Tensor]: ...

    @overload
    def run(self, source: Allocation, device: Device) -> Allocation: ...

    def run(
        self, source: Tensor | Sequence[Tensor] | Allocation, device: Device | None = None
    ) -> Tensor | list[Tensor] | Allocation:
        """Return the tensor in the target's memory, moved on its simulated device by the steps of the plan.

        `source` is a tensor on a device, or its allocation on `device`, or a tensor on each of several devices; it
        stays where it is.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((2, 3), "int32", chip="n150")
        >>> before = Tensor.of([[1, 2, 3], [4, 5, 6]], "int32").to_device(Device("n150"))
        >>> reshard(spec, spec.with_memory("l1")).run(before).numpy().tolist()
        [[1, 2, 3], [4, 5, 6]]
        """
        source = unwrap(source)
        if not isinstance(source, (Tensor, Allocation)):
            return [self.run(part) for part in source]
        if isinstance(source, Tensor):
            storage = source.storage
            if not isinstance(storage, DeviceStorage):
                raise MemoryConfigError(
                    "a plan runs on a device, but the tensor is on the host; use to_device(...) first"
                )
            self._validate_spec(source.spec)
            if self.is_empty:
                return source
            after = run_steps(self.steps, storage.device, storage.allocation)
            return Tensor(self.target, DeviceStorage(storage.device, after))
        if device is None:
            raise MemoryConfigError("to run on an allocation, pass its device: plan.run(allocation, device)")
        if source.spec is not None:
            self._validate_spec(source.spec)
        return run_steps(self.steps, device, source)

    def _validate_spec(self, spec: TensorSpec) -> None:
        """Raise unless the plan moves a tensor of this spec."""
        chip = self.source.chip
        if spec.with_chip(chip) != self.source:
            raise MemoryConfigError(f"the plan moves {self.source}, got {spec}; plan a reshard of that")

    def explain(self) -> str:
        """Return the operations of the plan and their cost, as text.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> print(reshard(spec, spec).explain())
        [64, 64] bfloat16 in tiles of 32 x 32, wormhole_n150
        from interleaved in DRAM
        to   interleaved in DRAM
        source and target are equal: nothing to do
        """
        spec = self.source
        pages = f"tiles of {spec.tile}" if spec.is_tiled else "rows"
        mesh = f", on each of {self.devices} devices" if self.devices > 1 else ""
        lines = [
            f"{spec.shape} {spec.dtype} in {pages}, {self.noc_map.chip.name}{mesh}",
            f"from {self.source.memory}",
            f"to   {self.target.memory}",
        ]
        if self.is_empty:
            return "\n".join([*lines, "source and target are equal: nothing to do"])
        lines.append(
            f"{format_bytes(self.total_bytes)} in {len(self.transfers)} runs between {len(self.traffic)} pairs,"
            f" {100 * self.local:.0f} % of it stays where it is"
        )
        if len(self.steps) > 1:
            between = f"goes through {self.steps[0].target.memory}"
            if self.steps[1].source == self.source:
                between = f"copies to {self.steps[0].target.memory} in vain, and begins again"
            lines.append(f"{len(self.steps)} passes: the runtime {between}")
        lines += [f"warning: {warning}" for warning in self.warnings]
        for number, step in enumerate(self.steps, 1):
            lines += [f"step {number}: {step}", *[f"  {line}" for line in _explain_step(step)]]
        try:
            lines.append(f"time: {self.cycles}")
            busiest = self.busiest_link
            if busiest is not None and self.cycles.bound_by.resource != "link":  # which the time names already
                lines.append(f"busiest link: {busiest[0]}, {format_bytes(busiest[1])}")
        except MemoryConfigError as problem:
            lines.append(f"time: not estimated, since {problem}")
        peak = max(self.peak_l1.values(), default=0)
        available = self.noc_map.chip.bank_bytes("l1")
        verdict = "fits" if self.fits else "does not fit"
        lines.append(f"L1: at most {peak} of {available} bytes per core while both tensors live: {verdict}")
        return "\n".join(lines)

    def to_json(self, transfers: bool = False, reads: bool = False) -> dict[str, Any]:
        """Return the plan as plain values: a core is [x, y], a DRAM bank its number.

        With `transfers`, also every run; with `reads`, also the reads and writes of all RISCs. Both may be long.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory("l1")).to_json()["bytes"]
        8192
        """
        data: dict[str, Any] = {
            "shape": list(self.source.shape),
            "dtype": str(self.source.dtype),
            "chip": self.noc_map.chip.name,
            "source": str(self.source.memory),
            "target": str(self.target.memory),
            "operation": self.operation,
            "kernel": self.kernel,
            "profiler": self.profiler,
            "devices": self.devices,
            "bytes": self.total_bytes,
            "local": self.local,
            "noc_bytes": self.noc_bytes,
            "runs": len(self.transfers),
            "traffic": [[_place(reader), _place(source), size] for (reader, source), size in self.traffic.items()],
            "warnings": list(self.warnings),
            "steps": [_step(step, self.profiler) for step in self.steps],
            "banks": self.banks,
            "peak_l1": max(self.peak_l1.values(), default=0),
            "fits": self.fits,
        }
        try:
            data["estimate"] = _estimate(self.cycles)
            data["links"] = [[*link, size] for link, size in self.links.items()]
        except MemoryConfigError as problem:
            data["estimate"], data["links"], data["not_estimated"] = None, None, str(problem)
        if transfers:
            names = ("source_address", "source_stride", "target_address", "target_stride", "nbytes", "count")
            data["transfers"] = [
                {"source": _place(run.source), "target": _place(run.target)}
                | {name: getattr(run, name) for name in names}
                for run in self.transfers
            ]
        if reads:
            data["reads"], data["writes"] = _lists(self.reads), _lists(self.writes)
        return data

    def __str__(self) -> str:
        return f"{self.source.shape} {self.source.dtype}: {self.source.memory} to {self.target.memory}"

    def __repr__(self) -> str:
        steps = len(self.steps)
        return f"<ReshardPlan {self}, {self.total_bytes} bytes in {steps} step{'' if steps == 1 else 's'}>"


def _sum_by(parts: list[tuple[_Key, int]]) -> dict[_Key, int]:
    """Return the sum of the numbers of each key."""
    sums: dict[_Key, int] = {}
    for key, number in parts:
        sums[key] = sums.get(key, 0) + number
    return sums


# `reshard`: makes the plan of moving a tensor between two memories, or refuses with the numbers.

KERNELS = ("current", "2024")


def reshard(
    source: object,  # a spec or a tensor, of any kind
    target: object,
    op: str = "to_memory_config",
    kernel: str = "current",
    *,
    profiler: bool | None = None,
    source_address: int | None = None,
    target_address: int | None = None,
    devices: int = 1,
) -> ReshardPlan:
    """Return the plan of moving a tensor from `source` to `target`, two specs of the same tensor on one chip.

    Args:
        source: the spec of the tensor where it is, or the tensor.
        target: the spec of the tensor where it should be.
        op: the operation: "to_memory_config" (the runtime's choice), "reshard", "interleaved_to_sharded",
            "sharded_to_interleaved", "copy", "read" (target cores read page by page) or "write" (source cores write).
        kernel: "current", or "2024": the kernels of December 2024, which most recordings were made with.
        profiler: whether the profiler of NoC events is on, which slows down each request; by default for "2024" only,
            since recordings are made with it.
        source_address: the address of the source buffer, by default that on an empty chip.
        target_address: the address of the target buffer, by default beside the source on an empty chip.
        devices: the number of devices of a mesh that hold such a tensor each; the plan is for one of them.

    >>> from tilewright import height_sharded, width_sharded
    >>> rows = TensorSpec((64, 64), memory=height_sharded((2, 1)), chip="n150")
    >>> plan = reshard(rows, rows.with_memory(width_sharded((2, 1))))
    >>> [step.operation for step in plan.steps]
    ['ShardedToInterleavedDeviceOperation', 'InterleavedToShardedDeviceOperation']
    >>> plan.fits, plan.local
    (True, 0.5)
    """
    before, after = as_spec(source), as_spec(target)
    if op not in OPERATIONS:
        raise MemoryConfigError(f"unknown operation {op!r}; use one of {', '.join(OPERATIONS)}")
    if devices < 1:
        raise MemoryConfigError(f"a mesh has at least one device, got {devices}")
    if kernel not in KERNELS:
        raise MemoryConfigError(f"unknown kernels {kernel!r}; use one of {', '.join(KERNELS)}")
    if before.chip is None and after.chip is not None:
        before = before.with_chip(after.chip)
    elif after.chip is None and before.chip is not None:
        after = after.with_chip(before.chip)
    validate_pair(before, after)
    for spec in (before, after):
        for violation in placement_violations(spec, any_size=True):  # whether both fit is part of the answer
            raise violation.error(str(violation))
    at = nominal_address(before) if source_address is None else source_address
    plan = ReshardPlan(
        before,
        after,
        op,
        kernel,
        kernel == "2024" if profiler is None else profiler,
        at,
        _beside(before, after, at) if target_address is None else target_address,
        devices,
    )
    _ = plan.steps  # refuses plans that the runtime cannot run
    return plan


def _beside(source: TensorSpec, target: TensorSpec, address: int) -> int:
    """Return where the allocator puts the target on a chip that has only the source."""
    buffer = target.memory.buffer_type
    if buffer.is_l1 != source.memory.buffer_type.is_l1 or buffer is BufferType.L1_SMALL:
        return nominal_address(target)
    return address - target.allocated_bytes if buffer.is_l1 else address + source.allocated_bytes
