# SPDX-License-Identifier: Apache-2.0
"""The steps of a reshard: which kernels move what, one after the other, and how they are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .._integers import ceil_div, round_up
from ..errors import MemoryConfigError
from ..memory import CoreCoord, CoreRange, CoreRangeSet, ShardOrientation, TensorMemoryLayout, TensorSpec, first_cores
from . import kernels
from .dram_workers import dram_workers
from .estimate import Estimate, estimate_requests
from .kernels import KernelCalls, KernelInput, copied_unit, row_bytes, row_page
from .moves import RequestLists, Requests
from .noc import Endpoint, NocMap

SCRATCH_ROWS = 4  # rows in flight of a row-major interleaved-to-sharded
RESHARD, COPY = "ReshardDeviceOperation", "CopyDeviceOperation"
TO_SHARDED, TO_INTERLEAVED = "InterleavedToShardedDeviceOperation", "ShardedToInterleavedDeviceOperation"


_BUILDERS: dict[str, Callable[[KernelInput], KernelCalls]] = {
    "DefaultTilized": kernels.copy_tiles,
    "DefaultRowMajor": kernels.copy_rows,
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
        """The bytes of each pair (to, from) of endpoints, including bytes through a buffer on the way.

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
        return tuple(_find_doubts(self))

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


def _find_doubts(step: ReshardStep) -> Iterator[str]:
    """Yield where the runtime fails, or its requests may be others."""
    source, target, chip = step.source, step.target, step.source.known_chip
    one, other = source.page_bytes, target.page_bytes
    if "SameWidth" in step.factory and one != other:
        yield f"pages have {one} and {other} bytes, but this kernel takes the rows of both sides to be equally wide"
    if step.factory == "DefaultRowMajor" and copied_unit(source, target) is None:
        row, page = row_bytes(source), max(row_page(source), row_page(target))
        if page > row:
            yield f"rows have {row} bytes, pages {page}: this kernel never ends if a shard is wider than the rows"
    if step.factory == _WRITE_SHARDS and not source.is_tiled:
        for side, spec in (("source", source), ("target", target)):
            width = spec.physical_shape[1] // spec.page_shape[1] * spec.aligned_page_bytes
            taken = _width_taken(spec) if _is_matrix(source) and _is_matrix(target) else row_bytes(spec)
            if taken != width:
                yield f"this kernel takes rows of the {side} to have {taken} bytes, they have {width}: wrong results"
    if source.is_tiled and source.tile.shape != (STANDARD_TILE_WIDTH, STANDARD_TILE_WIDTH):
        yield f"the runtime was seen to refuse moves of all tiles but 32 x 32, got {source.tile}"
    local = source if step.factory == _WRITE_SHARDS else target
    if step.factory in (_READ_SHARDS, _WRITE_SHARDS) and local.paging.in_runs and local.paging.shards_per_core > 1:
        yield "this kernel takes shards to be dealt in turn, but each core holds a run of them: wrong results"
    if chip.harvested and step.factory in _BY_WORKERS and not local.memory.buffer_type.is_l1:
        yield (
            f"which cores work for DRAM banks depends on the {chip.harvested_from} that are harvested; these are a"
            " recorded card's, or the last ones"
        )


_READ_SHARDS, _WRITE_SHARDS = [f"NdReshardCopyLocalShardFactory<{word}>" for word in ("false", "true")]
_BY_WORKERS = ("InterleavedToShardedProgramFactory", _READ_SHARDS, _WRITE_SHARDS)


def _width_taken(spec: TensorSpec) -> int:
    """Return the bytes of a row of matrix shards as the copy of local shards takes them to be: of a line of cores."""
    sharding = spec.memory.shard_spec
    assert sharding is not None
    first = sharding.grid.ranges[0]
    line = first.width if sharding.orientation is ShardOrientation.ROW_MAJOR else first.height
    if spec.memory.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        line = _length(first)
    return line * sharding.shape[1] * spec.dtype.storage_format.itemsize


def _length(line: CoreRange) -> int:
    """Return the number of cores of a line of them; of a rectangle the runtime looks at a row."""
    return line.height if line.width == 1 else line.width


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
        grid, work, unit = chip.compute_grid, target.num_pages, None
        if factory == "DefaultRowMajor":
            unit = copied_unit(source, target)
            work = source.physical_shape[0] * (1 if unit is None else ceil_div(row_bytes(source), unit))
        cores = first_cores(max(1, min(work, grid.x * grid.y)), grid)
        if factory == "NdReshardCopyPagesFactory":
            return [StepBuffer("dataflow", target.aligned_page_bytes, False, CoreRangeSet.of(grid))]
        buffers = [StepBuffer("dataflow", 2 * (unit or target.aligned_page_bytes), False, cores)]
        if factory == "DefaultRowMajor" and unit is None:
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
        if reads and "Width" in factory and any(spec.page_bytes != spec.aligned_page_bytes for spec in (local, remote)):
            buffers.append(StepBuffer("dataflow", 2 * _shard_bytes(remote), False, cores))  # of both RISCs
        return buffers
    return []


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
    if not out_of_shards:
        return (copying,)
    between = source.with_memory("dram")
    emptying = step(TO_INTERLEAVED, "ShardedToInterleavedProgramFactory", after=between)
    if into_shards:
        filling = step(TO_SHARDED, "InterleavedToShardedProgramFactory", before=between)
        if _fits(filling):
            return emptying, filling
    return emptying, copying  # of the source: the runtime finds out too late that the copy in DRAM is of no use


def _is_matrix(spec: TensorSpec) -> bool:
    """Return whether the shards have a form as matrices."""
    return spec.memory.is_sharded and spec.memory.shard_spec is not None


def _shard_width(spec: TensorSpec) -> int:
    return 0 if spec.memory.shard_spec is None else spec.memory.shard_spec.shape[1]


def _changes_rows(source: TensorSpec, target: TensorSpec) -> bool:
    """Return whether rows are cut differently, by other memory layouts: then the runtime makes a detour.

    It does not look at the form as a matrix of a target that was given as ND sharded.
    """
    return (
        not source.is_tiled
        and _is_matrix(source)
        and _is_matrix(target)
        and not target.memory.nd_alone
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
    both_tall = both_tall and not target.memory.nd_alone
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
    """Return whether the shards of a line of cores are wider than the tensor."""
    sharding = spec.memory.shard_spec
    if sharding is None:
        return False
    return _length(sharding.grid.ranges[0]) * sharding.shape[1] > (spec.shape.logical[-1] if spec.shape.logical else 1)


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
    problem = None
    if operation == "reshard":
        problem = reshard_problem(source, target)
    elif operation == "interleaved_to_sharded":
        problem = shards_problem(target)
    elif operation == "sharded_to_interleaved":
        is_in_l1 = source.memory.buffer_type.is_l1
        problem = shards_problem(source) if is_in_l1 else f"the source must be in L1, got {source.memory}"
    if problem is not None:
        raise MemoryConfigError(f"{problem}; leave the operation out for what the runtime does instead")
    if operation == "reshard":
        return step(RESHARD, reshard_factory(source, target))
    return step(*_ASKED[operation]) if operation in _ASKED else copying


_ASKED = {
    "read": (RESHARD, "NdReshardCopyLocalShardFactory<false>"),
    "write": (RESHARD, "NdReshardCopyLocalShardFactory<true>"),
    "interleaved_to_sharded": (TO_SHARDED, "InterleavedToShardedProgramFactory"),
    "sharded_to_interleaved": (TO_INTERLEAVED, "ShardedToInterleavedProgramFactory"),
}


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
