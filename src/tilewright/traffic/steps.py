# SPDX-License-Identifier: Apache-2.0
"""`ReshardStep`: an operation of the runtime that moves a tensor; `choose_steps`: which ones it runs for two specs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ..errors import MemoryConfigError
from ..layout.tuples import round_up
from ..memory import CoreCoord, CoreRange, CoreRangeSet, TensorMemoryLayout, TensorSpec, first_cores
from . import kernels
from .estimate import Estimate, estimate_requests
from .kernels import KernelCalls, KernelInput, dram_workers
from .noc import Endpoint, NocMap
from .requests import RequestLists, Requests

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
RESHARD_UNIT = 16  # bytes; pages of row-major reshards must be a multiple, with two exceptions
_SCRATCH_ROWS = 4  # rows in flight of a row-major interleaved-to-sharded

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
        ends = (self.source.memory, self.target.memory)
        in_dram = any(not memory.is_sharded and not memory.buffer_type.is_l1 for memory in ends)
        return estimate_requests(self.requests, profiler, in_dram)

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
            buffers.append(StepBuffer("scratchpad", _SCRATCH_ROWS * row, False, cores))
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
            address if spec is at else alone_address(spec)
            for spec, at, address in zip((before, after), (source, target), addresses, strict=True)
        ]
        return ReshardStep(name, factory, before, after, starts[0], starts[1], version)

    copying = step(COPY, "DefaultTilized" if source.is_tiled else "DefaultRowMajor")
    if operation != "to_memory_config":
        return (_asked_step(source, target, operation, step, copying),)
    if not source.memory.is_sharded and not target.memory.is_sharded:
        return (copying,)
    if not source.memory.is_sharded:
        steps = [step(TO_SHARDED, "InterleavedToShardedProgramFactory") if _is_matrix(target) else copying]
    elif not target.memory.is_sharded:
        direct = _is_matrix(source) and source.memory.buffer_type.is_l1
        steps = [step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory") if direct else copying]
    elif _changes_rows(source, target):
        steps = [copying]
        if source.memory.buffer_type.is_l1:
            between = source.with_memory("dram")
            steps = [
                step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory", after=between),
                step(TO_SHARDED, "InterleavedToShardedProgramFactory", before=between),
            ]
    elif _unaligned_rows(source, target) is not None:
        steps = [copying]
    else:
        steps = [step(RESHARD, reshard_factory(source, target))]
    return tuple(steps) if all(_fits(part) for part in steps) else (copying,)


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


def _unaligned_rows(source: TensorSpec, target: TensorSpec) -> int | None:
    """Return the size of a page that is too small for a row-major reshard, or None."""
    both_tall = all(
        _is_matrix(spec) and spec.memory.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED for spec in (source, target)
    )
    in_dram = not source.memory.buffer_type.is_l1 and not target.memory.buffer_type.is_l1
    if source.is_tiled or both_tall or in_dram:
        return None
    return next((spec.page_bytes for spec in (source, target) if spec.page_bytes % RESHARD_UNIT), None)


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
        width = source.shape.logical[-1] if source.shape.logical else 1
        is_whole = all(spec.physical_shape[1] == width for spec in (source, target))
        if layouts == {TensorMemoryLayout.WIDTH_SHARDED} and not source.is_tiled and is_whole:
            return f"ReshardSameHeightFactory<{reads}>"
        if from_l1 and to_l1:
            return "ReshardGenericFactory"
    if not from_l1 and not to_l1:
        return "NdReshardCopyPagesFactory"
    return f"NdReshardCopyLocalShardFactory<{'true' if from_l1 else 'false'}>"


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
            f"{operation} moves from {words[0]} to {words[1]} memory, got {words[2]} and {words[3]}; leave out op for"
            " what the runtime would choose"
        )
    if operation == "reshard":
        if (page := _unaligned_rows(source, target)) is not None:
            raise MemoryConfigError(
                f"a reshard of rows needs pages of a multiple of {RESHARD_UNIT} bytes, got {page} bytes; use op='copy'"
            )
        return step(RESHARD, reshard_factory(source, target))
    if operation == "interleaved_to_sharded":
        return step(TO_SHARDED, "InterleavedToShardedProgramFactory")
    if operation == "sharded_to_interleaved":
        return step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory")
    if operation in ("read", "write"):
        return step(RESHARD, f"NdReshardCopyLocalShardFactory<{'true' if operation == 'write' else 'false'}>")
    return copying


def _fits(step: ReshardStep) -> bool:
    """Return whether the buffers of a step have enough L1 beside its tensors, if those have."""
    available = step.source.known_chip.bank_bytes("l1")
    tensors = sum(spec.allocated_bytes for spec in (step.source, step.target) if spec.memory.buffer_type.is_l1)
    return tensors > available or tensors + step.extra_l1 <= available


def alone_address(spec: TensorSpec) -> int:
    """Return the address of a tensor on an empty chip, also of one that is too large for it.

    >>> alone_address(TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150"))
    1495040
    """
    chip, buffer = spec.known_chip, spec.memory.buffer_type
    return chip.end(buffer) - spec.allocated_bytes if buffer.is_l1 else chip.base(buffer)
