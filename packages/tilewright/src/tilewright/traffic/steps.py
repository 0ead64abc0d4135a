# SPDX-License-Identifier: Apache-2.0
"""`ReshardStep`: an operation of the runtime that moves a tensor: its requests, its buffers, its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from .._integers import round_up
from ..memory import CoreCoord, CoreRange, CoreRangeSet, TensorSpec, first_cores
from . import kernels
from .estimate import Estimate, estimate_requests
from .kernels import KernelCalls, KernelInput, dram_workers
from .noc import Endpoint, NocMap
from .requests import RequestLists, Requests

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

    Addresses are those of the buffers, and `version` is that of the kernels: "2024" or "current".

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
        """Return the reads and writes of all RISCs, as arrays.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> len(step.requests)
        4
        """
        return self._calls.requests

    @property
    def reads(self) -> RequestLists:
        """Return the reads and barriers of each RISC that reads, in order.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> len(step.reads)
        2
        """
        return self.requests.reads

    @property
    def writes(self) -> RequestLists:
        """Return the writes and barriers of each RISC that writes, in order.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> len(step.writes)
        0
        """
        return self.requests.written

    @property
    def traffic(self) -> dict[tuple[Endpoint, Endpoint], int]:
        """Return the bytes of each pair (to, from) of endpoints, those through a buffer on the way included.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.traffic[(0, 0), 1]
        2048
        """
        return self.requests.traffic

    @cached_property
    def num_reads(self) -> int:
        """Return the number of reads of all RISCs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.num_reads
        4
        """
        return int(self.requests.counts[~self.requests.writes].sum())

    @cached_property
    def num_writes(self) -> int:
        """Return the number of writes of all RISCs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.num_writes
        0
        """
        return int(self.requests.counts[self.requests.writes].sum())

    @cached_property
    def num_barriers(self) -> int:
        """Return the number of barriers of all RISCs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> step = reshard(spec, spec.with_memory(height_sharded((2, 1)))).steps[0]
        >>> step.num_barriers
        2
        """
        return int(self.requests.barrier_counts.sum())

    @cached_property
    def request_bytes(self) -> tuple[int, int]:
        """Return the sizes of the smallest and of the largest request; (0, 0) if there is none.

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
        """Return the words of runtime arguments of all RISCs, or None if they are not known.

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
        """Return the words of runtime arguments of the RISC with most, or None if they are not known.

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
        """Return the L1 that the operation uses, in the tensors and beyond.

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
        """Return whether one side is interleaved in DRAM, where requests take longer to issue.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory("l1")).steps[0].interleaved_dram
        True
        """
        ends = (self.source.memory, self.target.memory)
        return any(not memory.is_sharded and not memory.buffer_type.is_l1 for memory in ends)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return what is doubtful about the kernel that the runtime chooses.

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
        """Return the bytes of L1 per core that the operation needs beside the tensors.

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
