# SPDX-License-Identifier: Apache-2.0
"""`choose_steps`: which operations and kernels the runtime runs to move a tensor between two specs."""

from __future__ import annotations

from collections.abc import Callable

from .._integers import round_up
from ..errors import MemoryConfigError
from ..memory import TensorMemoryLayout, TensorSpec
from .steps import SCRATCH_ROWS, ReshardStep

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
            address if spec is at else alone_address(spec)
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
    """Return whether the buffers of a step fit L1; the runtime does not ask what the tensors need beside them."""
    chip = step.source.known_chip
    needed = step.extra_l1
    if step.operation == TO_SHARDED and step.target.is_tiled:  # a scratch buffer is counted for tiles, too
        needed += SCRATCH_ROWS * round_up(step.target.page_bytes + chip.dram_alignment, chip.dram_alignment)
    return needed < chip.bank_bytes("l1")


def alone_address(spec: TensorSpec) -> int:
    """Return the address of a tensor on an empty chip, also of one that is too large for it.

    >>> alone_address(TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150"))
    1495040
    """
    chip, buffer = spec.known_chip, spec.memory.buffer_type
    return chip.end(buffer) - spec.allocated_bytes if buffer.is_l1 else chip.base(buffer)
