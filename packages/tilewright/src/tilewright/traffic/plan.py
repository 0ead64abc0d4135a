# SPDX-License-Identifier: Apache-2.0
"""`ReshardPlan`: how a tensor moves from one memory to another: who sends what to whom, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np

from .._dialect import unwrap
from .._integers import round_up
from .._text import format_bytes
from ..copying import Placement, aligned_empty, execute, plan_copy
from ..display import Drawable
from ..errors import MemoryConfigError
from ..layout import Layout, LayoutLike, PagedLayout, compose, left_inverse
from ..memory import (
    Allocation,
    BufferType,
    CoreCoord,
    CoreRange,
    CoreRangeSet,
    Device,
    Fit,
    Integers,
    TensorMemoryLayout,
    TensorSpec,
    as_spec,
    first_cores,
    fit,
    placement_violations,
)
from ..tensor import DeviceStorage, Tensor
from . import kernels
from .estimate import Bound, Estimate, Flows, estimate_requests, link_load
from .kernels import KernelCalls, KernelInput, dram_workers
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

# `ReshardStep`: an operation of the runtime that moves a tensor: its requests, its buffers, its time.

SCRATCH_ROWS = 4  # rows in flight of a row-major interleaved-to-sharded

_BUILDERS: dict[str, Callable[[KernelInput], KernelCalls]] = {
    "DefaultTilized": kernels.copy_pages,
    "DefaultRowMajor": kernels.copy_pages,
    "InterleavedToShardedProgramFactory": kernels.interleaved_to_sharded,
    "ShardedToInterleavedProgramFactory": kernels.sharded_to_interleaved,
    "ReshardGenericFactory": kernels.reshard_generic,
    "ReshardSameWidthFactory<true>": lambda call: kernels.same_width(call, reads=True),
    "ReshardSameWidthFactory<false>": lambda call: kernels.same_width(call, reads=False),
    "ReshardSameHeightFactory<true>": lambda call: kernels.same_height(call, reads=True),
    "ReshardSameHeightFactory<false>": lambda call: kernels.same_height(call, reads=False),
    "NdReshardCopyLocalShardFactory<true>": lambda call: kernels.copy_local_shards(call, reads=False),
    "NdReshardCopyLocalShardFactory<false>": lambda call: kernels.copy_local_shards(call, reads=True),
    "NdReshardCopyPagesFactory": kernels.copy_pages,
}


@dataclass(frozen=True, slots=True)
class StepBuffer:
    """L1 that an operation uses on each of `cores`: its `kind`, its size in bytes, and whether it is the tensor's own.

    >>> StepBuffer("scratchpad", 1152, False, CoreRangeSet.of((2, 2))).nbytes
    1152
    """

    kind: str  # "dataflow" or "scratchpad"
    nbytes: int
    borrowed: bool
    cores: CoreRangeSet


@dataclass(frozen=True)
class ReshardStep:
    """An operation that moves a tensor from `source` to `target`: the device operation, and its program factory.

    Addresses are the buffers', and `version` is the kernels': "2024" or "current".

    >>> from tilewright import height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> (step,) = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps
    >>> step.factory, step.num_reads, step.num_barriers, step.request_bytes
    ('InterleavedToShardedProgramFactory', 4, 2, (2048, 2048))
    """

    operation: str
    factory: str
    source: TensorSpec
    target: TensorSpec
    source_address: int
    target_address: int
    version: str = "current"

    @cached_property
    def _calls(self) -> KernelCalls:
        return _BUILDERS[self.factory](
            KernelInput(self.source, self.target, self.source_address, self.target_address, self.version)
        )

    @property
    def requests(self) -> Requests:
        """The reads and writes of all RISCs, as arrays.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> len(step.requests)
        4
        """
        return self._calls.requests

    @property
    def reads(self) -> RequestLists:
        """The reads and barriers of each RISC that reads, in order.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> len(step.reads)
        2
        """
        return self.requests.reads

    @property
    def writes(self) -> RequestLists:
        """The writes and barriers of each RISC that writes, in order.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> len(step.writes)
        0
        """
        return self.requests.written

    @property
    def traffic(self) -> dict[tuple[Endpoint, Endpoint], int]:
        """The bytes of each pair (to, from) of endpoints, those through a buffer on the way included.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.traffic[(0, 0), 1]
        2048
        """
        return self.requests.traffic

    @cached_property
    def num_reads(self) -> int:
        """The number of reads of all RISCs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.num_reads
        4
        """
        return int(self.requests.counts[~self.requests.writes].sum())

    @cached_property
    def num_writes(self) -> int:
        """The number of writes of all RISCs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.num_writes
        0
        """
        return int(self.requests.counts[self.requests.writes].sum())

    @cached_property
    def num_barriers(self) -> int:
        """The number of barriers of all RISCs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.num_barriers
        2
        """
        return int(self.requests.barrier_counts.sum())

    @cached_property
    def request_bytes(self) -> tuple[int, int]:
        """The sizes of the smallest and of the largest request; (0, 0) if there is none.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.request_bytes
        (2048, 2048)
        """
        sizes = self.requests.nbytes
        return (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)

    @cached_property
    def runtime_arguments(self) -> int | None:
        """The words of runtime arguments of all RISCs, or None if they are not known.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.runtime_arguments
        16
        """
        words = self._calls.arguments
        return None if words is None else int(words.sum())

    @cached_property
    def most_arguments(self) -> int | None:
        """The words of runtime arguments of the RISC with most, or None if they are not known.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.most_arguments
        8
        """
        words = self._calls.arguments
        return None if words is None else int(words.max(initial=0))

    @cached_property
    def buffers(self) -> tuple[StepBuffer, ...]:
        """The L1 that the operation uses, in the tensors and beyond.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.buffers[0].nbytes, step.buffers[0].borrowed
        (4096, True)
        """
        return tuple(_step_buffers(self))

    def estimate(self, profiler: bool = False) -> Estimate:
        """Return the estimated time of the step, with the `profiler` of NoC events on or off.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory("l1")).steps[0].estimate().calibrated
        False
        """
        return estimate_requests(self.requests, profiler, self.interleaved_dram)

    @property
    def interleaved_dram(self) -> bool:
        """Whether one side is interleaved in DRAM, where requests take longer to issue.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory("l1")).steps[0].interleaved_dram
        True
        """
        ends = (self.source.memory, self.target.memory)
        return any(not memory.is_sharded and not memory.buffer_type.is_l1 for memory in ends)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The doubts about the kernel that the runtime chooses.

        >>> from tilewright import height_sharded, reshard
        >>> rows = TensorSpec((8, 8), memory=height_sharded((2, 1)), chip="n150")
        >>> wider = rows.with_memory(height_sharded((2, 1), (4, 32)))
        >>> print(reshard(rows, wider).steps[0].warnings[0])
        pages have 16 and 64 bytes, but this kernel takes the rows of both sides to be equally wide
        """
        one, other = self.source.page_bytes, self.target.page_bytes
        if "SameWidth" in self.factory and one != other:
            problem = "this kernel takes the rows of both sides to be equally wide"
            return (f"pages have {one} and {other} bytes, but {problem}",)
        return ()

    @property
    def extra_l1(self) -> int:
        """The bytes of L1 per core that the operation needs beside the tensors.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.extra_l1
        0
        """
        return sum(buffer.nbytes for buffer in self.buffers if not buffer.borrowed)

    def __str__(self) -> str:
        return f"{self.operation} ({self.factory}): {self.source.memory} to {self.target.memory}"

    def __repr__(self) -> str:
        return f"<ReshardStep {self}>"


def _shard_bytes(spec: TensorSpec) -> int:
    """Return the bytes of a shard of the matrix form, aligned as in its memory."""
    return spec.paging.shard_pages * spec.aligned_page_bytes


def _cores_with_data(spec: TensorSpec) -> CoreRangeSet:
    """Return the cores that hold shards, or the workers of the DRAM banks that do."""
    cores = spec.paging.cores[: spec.paging.num_shards]
    if not spec.memory.buffer_type.is_l1:
        workers = dram_workers(NocMap.of(spec.known_chip), max((core.x for core in cores), default=-1) + 1)
        cores = tuple([workers[core.x] for core in cores])
    return _as_ranges(cores)


def _as_ranges(cores: tuple[CoreCoord, ...]) -> CoreRangeSet:
    """Return the smallest rectangle of cores if they fill it, otherwise a range per core."""
    if not cores:
        return CoreRangeSet([])
    xs, ys = [core.x for core in cores], [core.y for core in cores]
    box = CoreRange((min(xs), min(ys)), (max(xs), max(ys)))
    return CoreRangeSet([box] if box.size == len(set(cores)) else [CoreRange(core) for core in sorted(set(cores))])


def _step_buffers(step: ReshardStep) -> list[StepBuffer]:
    """Return the buffers of an operation, by its program factory."""
    source, target, chip = step.source, step.target, step.source.known_chip
    factory = step.factory
    if factory in ("DefaultTilized", "DefaultRowMajor", "NdReshardCopyPagesFactory"):
        most = chip.compute_grid.x * chip.compute_grid.y
        cores = first_cores(max(1, min(target.num_pages, most)), chip.compute_grid)
        count = 1 if factory == "NdReshardCopyPagesFactory" else 2
        buffers = [StepBuffer("dataflow", count * target.aligned_page_bytes, False, cores)]
        if factory == "DefaultRowMajor":
            buffers.append(StepBuffer("scratchpad", source.aligned_page_bytes, False, cores))
        return buffers
    if factory == "InterleavedToShardedProgramFactory":
        cores = _cores_with_data(target)
        buffers = [StepBuffer("dataflow", _shard_bytes(target), target.memory.buffer_type.is_l1, cores)]
        if not target.is_tiled:
            row = round_up(target.page_bytes + chip.dram_alignment, chip.dram_alignment)
            buffers.append(StepBuffer("scratchpad", SCRATCH_ROWS * row, False, cores))
        return buffers
    if factory == "ShardedToInterleavedProgramFactory":
        return [StepBuffer("dataflow", _shard_bytes(source), True, _cores_with_data(source))]
    if factory == "ReshardGenericFactory":
        whole = target.paging.shard_pages * target.page_bytes
        page = target.page_bytes
        return [StepBuffer("dataflow", min(whole, target.nbytes) // page * page, True, _cores_with_data(target))]
    if factory.startswith("ReshardSame"):
        reads = factory.endswith("<true>")
        local, remote = (target, source) if reads else (source, target)
        cores = _cores_with_data(local)
        buffers = [StepBuffer("dataflow", local.paging.shard_pages * local.page_bytes, True, cores)]
        if "Width" in factory and any(spec.page_bytes != spec.aligned_page_bytes for spec in (local, remote)):
            buffers.append(StepBuffer("dataflow", _shard_bytes(remote), False, cores))
        return buffers
    return []


# Reshards that run: the bytes of a step moved between the banks of a simulated device, by copy plans.


def run_steps(steps: tuple[ReshardStep, ...], device: Device, allocation: Allocation) -> Allocation:
    """Run `steps` on a `device` from the tensor at `allocation`, and return the allocation of the last one.

    Every step allocates its target, before the tensor between two steps is freed.

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
        run_step(step, device, here, there)
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
    moves = page_moves(step.source, step.target, source.address, target.address)
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


# A reshard plan as plain values, for JSON: printed by a command, and drawn by a page.


def plan_to_json(plan: ReshardPlan, transfers: bool = False, reads: bool = False) -> dict[str, Any]:
    """Return a `plan` as plain values: a core is [x, y], a DRAM bank its number.

    With `transfers`, also every run; with `reads`, also the lists of all RISCs. Both may be long.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> plan_to_json(reshard(spec, spec.with_memory("l1")))["traffic"][0]
    [[4, 1], 2, 2048]
    """
    data: dict[str, Any] = {
        "shape": list(plan.source.shape),
        "dtype": str(plan.source.dtype),
        "chip": plan.noc_map.chip.name,
        "source": str(plan.source.memory),
        "target": str(plan.target.memory),
        "operation": plan.operation,
        "kernel": plan.kernel,
        "profiler": plan.profiler,
        "devices": plan.devices,
        "bytes": plan.total_bytes,
        "local": plan.local,
        "noc_bytes": plan.noc_bytes,
        "runs": len(plan.transfers),
        "traffic": [[_place(reader), _place(source), size] for (reader, source), size in plan.traffic.items()],
        "steps": [_step(step, plan.profiler) for step in plan.steps],
        "banks": plan.banks,
        "peak_l1": max(plan.peak_l1.values(), default=0),
        "fits": plan.fits,
    }
    try:
        data["estimate"] = _estimate(plan.cycles)
        data["links"] = [[*link, size] for link, size in plan.links.items()]
    except MemoryConfigError as problem:
        data["estimate"], data["links"], data["not_estimated"] = None, None, str(problem)
    if transfers:
        names = ("source_address", "source_stride", "target_address", "target_stride", "nbytes", "count")
        data["transfers"] = [
            {"source": _place(run.source), "target": _place(run.target)} | {name: getattr(run, name) for name in names}
            for run in plan.transfers
        ]
    if reads:
        data["reads"], data["writes"] = _lists(plan.reads), _lists(plan.writes)
    return data


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


# The text of a reshard plan: the moves, the runtime's operations, and their cost.


def explain_plan(plan: ReshardPlan) -> str:
    """Return the operations of a `plan` and their cost, line by line.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> print(explain_plan(reshard(spec, spec.with_memory("l1"))).splitlines()[3])
    8 KiB in 4 runs between 4 pairs, 0 % of it stays where it is
    """
    spec = plan.source
    pages = f"tiles of {spec.tile}" if spec.is_tiled else "rows"
    mesh = f", on each of {plan.devices} devices" if plan.devices > 1 else ""
    lines = [
        f"{spec.shape} {spec.dtype} in {pages}, {plan.noc_map.chip.name}{mesh}",
        f"from {plan.source.memory}",
        f"to   {plan.target.memory}",
    ]
    if plan.is_empty:
        return "\n".join([*lines, "source and target are equal: nothing to do"])
    lines.append(
        f"{format_bytes(plan.total_bytes)} in {len(plan.transfers)} runs between {len(plan.traffic)} pairs,"
        f" {100 * plan.local:.0f} % of it stays where it is"
    )
    if len(plan.steps) > 1:
        lines.append(f"{len(plan.steps)} passes: the runtime goes through {plan.steps[0].target.memory}")
    for number, step in enumerate(plan.steps, 1):
        lines += [f"step {number}: {step}", *[f"  {line}" for line in _explain_step(step)]]
    try:
        lines.append(f"time: {plan.cycles}")
        if plan.busiest_link is not None and plan.cycles.bound_by.resource != "link":  # which the time names already
            link, size = plan.busiest_link
            lines.append(f"busiest link: {link}, {format_bytes(size)}")
    except MemoryConfigError as problem:
        lines.append(f"time: not estimated, since {problem}")
    peak = max(plan.peak_l1.values(), default=0)
    available = plan.noc_map.chip.bank_bytes("l1")
    verdict = "fits" if plan.fits else "does not fit"
    lines.append(f"L1: at most {peak} of {available} bytes per core while both tensors live: {verdict}")
    return "\n".join(lines)


def _explain_step(step: ReshardStep) -> list[str]:
    """Return the text of a step, line by line."""
    smallest, largest = step.request_bytes
    sizes = f"{smallest} bytes each" if smallest == largest else f"{smallest} to {largest} bytes each"
    requests = f"{step.num_reads} reads, {step.num_writes} writes of {sizes}, {step.num_barriers} barriers"
    lines = [f"{requests}, {len(step.requests.core)} RISCs"]
    if step.runtime_arguments is not None:
        lines.append(f"{step.runtime_arguments} words of runtime arguments, at most {step.most_arguments} for a RISC")
    lines += [f"warning: {warning}" for warning in step.warnings]
    lines += [
        f"extra L1: {buffer.kind} of {buffer.nbytes} bytes on {buffer.cores.num_cores} cores"
        for buffer in step.buffers
        if not buffer.borrowed
    ]
    return lines


# `choose_steps`: which operations and kernels the runtime runs to move a tensor between two specs.

RESHARD, COPY = "ReshardDeviceOperation", "CopyDeviceOperation"
TO_SHARDED, TO_INTERLEAVED = "InterleavedToShardedDeviceOperation", "ShardedToInterleavedDeviceOperation"
OPERATIONS = (
    "to_memory_config",
    "reshard",
    "read",
    "write",
    "interleaved_to_sharded",
    "sharded_to_interleaved",
    "copy",
)
ROW_UNIT = 16  # bytes; pages of row-major shards must be a multiple, with few exceptions
STANDARD_TILE_WIDTH = 32


def choose_steps(
    source: TensorSpec, target: TensorSpec, operation: str, addresses: tuple[int, int], version: str
) -> tuple[ReshardStep, ...]:
    """Return the steps that the runtime takes from `source` to `target`, at two `addresses`.

    `operation` is one of `OPERATIONS`; "to_memory_config" chooses, as the runtime does.

    >>> from tilewright import height_sharded, width_sharded
    >>> rows = TensorSpec((64, 64), chip="n150")
    >>> tall, wide = [rows.with_memory(kind((2, 1))) for kind in (height_sharded, width_sharded)]
    >>> [step.operation for step in choose_steps(tall, wide, "to_memory_config", (0, 0), "current")]
    ['ShardedToInterleavedDeviceOperation', 'InterleavedToShardedDeviceOperation']
    """
    if source.memory == target.memory:
        return ()
    for spec in (source, target):
        if spec.memory.memory_layout is TensorMemoryLayout.BLOCK_SHARDED and not spec.memory.buffer_type.is_l1:
            raise MemoryConfigError(
                f"the runtime does not support block sharding in DRAM, got {spec.memory}; use height or width"
                " sharding, or L1"
            )

    def step(name: str, factory: str, before: TensorSpec = source, after: TensorSpec = target) -> ReshardStep:
        starts = [
            address if spec is at else nominal_address(spec)
            for spec, at, address in zip((before, after), (source, target), addresses, strict=True)
        ]
        return ReshardStep(name, factory, before, after, starts[0], starts[1], version)

    copying = step(COPY, "DefaultTilized" if source.is_tiled else "DefaultRowMajor")
    if operation != "to_memory_config":
        return (_asked_step(source, target, operation, step, copying),)
    out_of_shards = source.memory.buffer_type.is_l1 and shards_problem(source) is None
    into_shards = shards_problem(target) is None
    if not target.memory.is_sharded:
        return (step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory") if out_of_shards else copying,)
    if not source.memory.is_sharded:
        filling = step(TO_SHARDED, "InterleavedToShardedProgramFactory")
        return (filling if into_shards and _fits(filling) else copying,)
    if not _changes_rows(source, target) and reshard_problem(source, target) is None:
        resharding = step(RESHARD, reshard_factory(source, target))
        if _fits(resharding):
            return (resharding,)
    if out_of_shards and into_shards:
        between = source.with_memory("dram")
        filling = step(TO_SHARDED, "InterleavedToShardedProgramFactory", before=between)
        if _fits(filling):
            return (step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory", after=between), filling)
    return (copying,)


def _is_matrix(spec: TensorSpec) -> bool:
    """Return whether the shards have a form as matrices."""
    return spec.memory.is_sharded and spec.memory.shard_spec is not None


def _shard_width(spec: TensorSpec) -> int:
    return 0 if spec.memory.shard_spec is None else spec.memory.shard_spec.shape[1]


def _changes_rows(source: TensorSpec, target: TensorSpec) -> bool:
    """Return whether rows are cut differently, by other memory layouts: the runtime has no reshard for it."""
    return (
        not source.is_tiled
        and _is_matrix(source)
        and _is_matrix(target)
        and source.memory.memory_layout != target.memory.memory_layout
        and _shard_width(source) != _shard_width(target)
    )


def shards_problem(spec: TensorSpec) -> str | None:
    """Return why the runtime has no operation between interleaved memory and the shards of a spec, or None.

    >>> from tilewright import width_sharded
    >>> shards_problem(TensorSpec((8, 12), "int8", memory=width_sharded((2, 1)), chip="n150"))
    'shards of rows need pages of a multiple of 16 bytes, got 6 bytes'
    """
    if not _is_matrix(spec):
        return f"shards need a form as matrices, got {spec.memory}"
    if spec.is_tiled and spec.tile.width != STANDARD_TILE_WIDTH:
        return f"shards of tiles need tiles {STANDARD_TILE_WIDTH} wide, got {spec.tile}"
    if not spec.is_tiled and spec.page_bytes % ROW_UNIT:
        return f"shards of rows need pages of a multiple of {ROW_UNIT} bytes, got {spec.page_bytes} bytes"
    return None


def reshard_problem(source: TensorSpec, target: TensorSpec) -> str | None:
    """Return why the runtime does not reshard between two sharded specs, or None.

    >>> from tilewright import block_sharded
    >>> rows = TensorSpec((8, 12), "int8", memory=block_sharded((2, 2), (4, 6)), chip="n150")
    >>> reshard_problem(rows, rows.with_memory(block_sharded((3, 2), (4, 4))))
    'a reshard of rows needs pages of a multiple of 16 bytes, got 6 bytes'
    """
    from_l1, to_l1 = source.memory.buffer_type.is_l1, target.memory.buffer_type.is_l1
    layouts = {source.memory.memory_layout, target.memory.memory_layout}
    are_matrices = _is_matrix(source) and _is_matrix(target)
    both_tall = are_matrices and layouts == {TensorMemoryLayout.HEIGHT_SHARDED} and (from_l1 or to_l1)
    if not source.is_tiled and not both_tall and (from_l1 or to_l1):
        unit = source.known_chip.page_alignment(source.memory.buffer_type)
        for spec, multiple in ((source, unit), (target, ROW_UNIT)):
            if spec.page_bytes % multiple:
                return f"a reshard of rows needs pages of a multiple of {multiple} bytes, got {spec.page_bytes} bytes"
    alike = layouts in ({TensorMemoryLayout.HEIGHT_SHARDED}, {TensorMemoryLayout.WIDTH_SHARDED})
    by_matrices = are_matrices and (to_l1 or (alike and from_l1))
    if by_matrices and source.is_tiled and source.tile.width != STANDARD_TILE_WIDTH:
        return f"a reshard of tiles needs tiles {STANDARD_TILE_WIDTH} wide, got {source.tile}"
    if not by_matrices and source.page_bytes != target.page_bytes:
        sizes = f"{source.page_bytes} and {target.page_bytes} bytes"
        return f"a reshard without matrix shards in L1 needs pages of equal size, got {sizes}"
    return None


def reshard_factory(source: TensorSpec, target: TensorSpec) -> str:
    """Return the program factory of a reshard between two sharded specs.

    >>> from tilewright import block_sharded, height_sharded
    >>> tiles = TensorSpec((64, 64), page_layout="tile", memory=height_sharded((2, 1)), chip="n150")
    >>> reshard_factory(tiles, tiles.with_memory(block_sharded((2, 2))))
    'ReshardGenericFactory'
    """
    from_l1, to_l1 = source.memory.buffer_type.is_l1, target.memory.buffer_type.is_l1
    layouts = {spec.memory.memory_layout for spec in (source, target)}
    if _is_matrix(source) and _is_matrix(target) and (from_l1 or to_l1):
        reads = "true" if to_l1 else "false"
        if layouts == {TensorMemoryLayout.HEIGHT_SHARDED}:
            return f"ReshardSameWidthFactory<{reads}>"
        if layouts == {TensorMemoryLayout.WIDTH_SHARDED} and not source.is_tiled:
            has_padding = to_l1 and any(_has_spare_width(spec) for spec in (source, target))
            return "ReshardGenericFactory" if has_padding else f"ReshardSameHeightFactory<{reads}>"
        if from_l1 and to_l1:
            return "ReshardGenericFactory"
    if not from_l1 and not to_l1:
        return "NdReshardCopyPagesFactory"
    return f"NdReshardCopyLocalShardFactory<{'true' if from_l1 else 'false'}>"


def _has_spare_width(spec: TensorSpec) -> bool:
    """Return whether shards over a line of cores are wider than the tensor; of a grid the runtime looks at one line."""
    sharding = spec.memory.shard_spec
    if sharding is None:
        return False
    first = sharding.grid.ranges[0]
    line = first.height if first.width == 1 else first.width
    return line * sharding.shape[1] > (spec.shape.logical[-1] if spec.shape.logical else 1)


def _asked_step(
    source: TensorSpec, target: TensorSpec, operation: str, step: Callable[..., ReshardStep], copying: ReshardStep
) -> ReshardStep:
    """Return the step of the operation that was asked for, or raise if it cannot move between these specs."""
    sharded = source.memory.is_sharded, target.memory.is_sharded
    needed = {
        "reshard": (True, True),
        "interleaved_to_sharded": (False, True),
        "sharded_to_interleaved": (True, False),
        "read": (sharded[0], True),
        "write": (True, sharded[1]),
    }.get(operation, sharded)
    if sharded != needed:
        words = ["sharded" if flag else "interleaved" for flag in (*needed, *sharded)]
        raise MemoryConfigError(
            f"{operation} moves from {words[0]} to {words[1]} memory, got {words[2]} and {words[3]}; leave the"
            " operation out for what the runtime would choose"
        )
    if operation == "reshard":
        if (problem := reshard_problem(source, target)) is not None:
            raise MemoryConfigError(f"{problem}; leave the operation out for what the runtime does instead")
        return step(RESHARD, reshard_factory(source, target))
    if operation in ("interleaved_to_sharded", "sharded_to_interleaved"):
        problem = shards_problem(target if operation == "interleaved_to_sharded" else source)
        if operation == "sharded_to_interleaved" and not source.memory.buffer_type.is_l1:
            problem = f"the source must be in L1, got {source.memory}"
        if problem is not None:
            raise MemoryConfigError(f"{problem}; leave the operation out for what the runtime does instead")
    if operation == "interleaved_to_sharded":
        return step(TO_SHARDED, "InterleavedToShardedProgramFactory")
    if operation == "sharded_to_interleaved":
        return step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory")
    if operation in ("read", "write"):
        return step(RESHARD, f"NdReshardCopyLocalShardFactory<{'true' if operation == 'write' else 'false'}>")
    return copying


def _fits(step: ReshardStep) -> bool:
    """Return whether the buffers of a step fit L1; the runtime ignores the space of the tensors beside them."""
    chip = step.source.known_chip
    needed = step.extra_l1
    if step.operation == TO_SHARDED and step.target.is_tiled:  # a scratch buffer is also counted for tiles
        needed += SCRATCH_ROWS * round_up(step.target.page_bytes + chip.dram_alignment, chip.dram_alignment)
    return needed < chip.bank_bytes("l1")


def nominal_address(spec: TensorSpec) -> int:
    """Return the address of a tensor on an empty chip, also of one that is too large for it.

    >>> nominal_address(TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150"))
    1495040
    """
    chip, buffer = spec.known_chip, spec.memory.buffer_type
    return chip.end(buffer) - spec.allocated_bytes if buffer.is_l1 else chip.base(buffer)


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
        """The layout from a slot of the source to its place in the target: a placement composed with an inverse.

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
        """The bytes that move, those that stay on their core included.

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
        load = link_load(self.noc_map, Flows.of(self._requests))
        order = np.argsort(-load.nbytes, kind="stable")
        numbers, sizes = load.number[order].tolist(), load.nbytes[order].tolist()
        return {self.noc_map.link(number): size for number, size in zip(numbers, sizes, strict=True)}

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
        tensors = [spec.allocated_bytes for spec in (self.source, self.target) if spec.memory.buffer_type.is_l1]
        if self.is_empty:
            tensors = tensors[:1]
        across, down = self.noc_map.chip.compute_grid
        peak = dict.fromkeys([CoreCoord(x, y) for y in range(down) for x in range(across)], sum(tensors))
        base = sum(tensors)
        for step in self.steps:
            extra: dict[CoreCoord, int] = {}
            for buffer in step.buffers:
                if not buffer.borrowed:
                    for core in buffer.cores.cores():
                        extra[core] = extra.get(core, 0) + buffer.nbytes
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
        return explain_plan(self)

    def to_json(self, transfers: bool = False, reads: bool = False) -> dict[str, Any]:
        """Return the plan as plain values: a core is [x, y], a DRAM bank its number.

        With `transfers`, also every run; with `reads`, also the reads and writes of all RISCs. Both may be long.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory("l1")).to_json()["bytes"]
        8192
        """
        return plan_to_json(self, transfers, reads)

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
    source: Any,  # a spec or a tensor, of any kind
    target: Any,
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
