# SPDX-License-Identifier: Apache-2.0
"""The rules that a tensor spec must obey: each `Violation` names the rule, the values and a remedy.

`spec_violations` checks the spec itself, `placement_violations` its placement on a chip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from .._integers import ceil_div, round_up
from ..errors import MemoryConfigError, OutOfMemory
from ..findings import Finding
from .chip import Chip, known_chips
from .config import BufferType, NdShardSpec, ShardDistribution, ShardOrientation, ShardSpec, TensorMemoryLayout
from .cores import CoreCoord, CoreRangeSet
from .page_geometry import PageGeometry

_ENOUGH_MEMORY = "fits a bank"


@dataclass(frozen=True, slots=True)
class Violation(Finding):
    """A placement rule that a spec breaks: `kind` is the rule, `message` the problem in numbers, and a `remedy`.

    >>> print(broken_rule("shard fits tile", "shard height 25 is not a multiple of the tile height 32; use 32"))
    shard height 25 is not a multiple of the tile height 32; use 32
    """

    @property
    def error(self) -> type[MemoryConfigError | OutOfMemory]:
        """The class of the error to raise for the violation.

        >>> broken_rule("shards fit", "3 shards do not fit 2 cores; use 3").error.__name__
        'MemoryConfigError'
        """
        return OutOfMemory if self.kind == _ENOUGH_MEMORY else MemoryConfigError

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def broken_rule(rule: str, text: str) -> Violation:
    """Return the violation of a `rule` that a `text`, "problem; remedy", describes.

    >>> broken_rule("shards are not empty", "got 0; use 1 or more").remedy
    'use 1 or more'
    """
    problem, _, remedy = text.rpartition("; ")
    return Violation(rule, problem, remedy=remedy) if problem else Violation(rule, remedy)


def validate_placement(spec: PageGeometry) -> None:
    """Raise an error if a spec breaks a placement rule.

    >>> from tilewright import TensorSpec, width_sharded
    >>> memory = width_sharded((1, 2), buffer_type="dram")
    >>> try:
    ...     validate_placement(TensorSpec((64, 64), page_layout="tile", memory=memory))
    ... except MemoryConfigError as problem:
    ...     print(problem)
    not possible on any known chip: core (0, 1) is not a DRAM bank of wormhole_n150: x must be the number of a bank \
and y must be 0; use (0, 0) to (11, 0)
    """
    for violation in placement_violations(spec):
        raise violation.error(str(violation))


def placement_violations(spec: PageGeometry, any_size: bool = False) -> Iterator[Violation]:
    """Yield the placement rules that a spec breaks on its chip; without a chip, of a known chip if it fits none.

    With `any_size`, the tensor may be larger than the memory.

    >>> from tilewright import TensorSpec
    >>> list(placement_violations(TensorSpec((4, 4), "bfloat16", chip="wormhole_n150")))
    []
    """
    if spec.chip is not None:
        yield from _violations_on_chip(spec, spec.chip, any_size)
        return
    first: list[Violation] = []
    for chip in known_chips():
        violations = list(_violations_on_chip(spec, chip, any_size))
        if not violations:
            return
        first = first or violations
    yield from [replace(item, message=f"not possible on any known chip: {item.message}") for item in first]


def grid_violations(chip: Chip, grid: CoreRangeSet, buffer: BufferType) -> Iterator[Violation]:
    """Yield a violation if a grid has a core without a bank on a chip.

    >>> from tilewright import Chip
    >>> [print(violation) for violation in grid_violations(Chip.named("n150"), CoreRangeSet.of((9, 9)), BufferType.L1)]
    core (8, 0) has no L1 bank on wormhole_n150 with fast dispatch; use cores (0, 0) to (7, 7)
    [None]
    """
    # a file may contain a grid of any size; of more cores than banks, one must be without a bank
    cores = (
        CoreCoord(x, y)
        for box in grid
        for y in range(box.start.y, box.end.y + 1)
        for x in range(box.start.x, box.end.x + 1)
    )
    try:
        chip.banks_of(islice(cores, chip.banks(buffer) + 1), buffer)
    except MemoryConfigError as problem:
        yield broken_rule("shard cores have banks", str(problem))


def _violations_on_chip(spec: PageGeometry, chip: Chip, any_size: bool) -> Iterator[Violation]:
    """Yield the placement rules that a spec breaks on this chip."""
    yield from _tile_violations(spec)
    buffer, sharding = spec.memory.buffer_type, spec.memory.sharding
    if buffer is BufferType.L1_SMALL and sharding is None:
        yield broken_rule("L1_SMALL is sharded", "L1_SMALL can only hold sharded tensors; use sharded memory, or L1")
        return
    try:
        if sharding is None:
            spec.validate_pages()
        elif sharding.distribution is ShardDistribution.GRID_2D:
            chip.banks_of(spec.paging.cores, buffer)  # only those with shards
        else:
            off_chip = list(grid_violations(chip, sharding.grid, buffer))
            yield from off_chip
            if off_chip:
                return
            _ = spec.paging
    except MemoryConfigError as problem:
        yield broken_rule("shards can be placed", str(problem))
        return
    needed = round_up(spec.bytes_per_bank_on(chip), chip.allocation_alignment)
    if needed > chip.bank_bytes(buffer) and not any_size:
        yield Violation(
            _ENOUGH_MEMORY,
            f"the tensor needs {needed} bytes per {buffer} bank, but a bank of {chip.name} has"
            f" {chip.bank_bytes(buffer)}",
            remedy=f"{'use more cores, or DRAM' if buffer.is_l1 else 'split it'}; fit lists alternatives",
        )


def spec_violations(spec: PageGeometry) -> Iterator[Violation]:
    """Yield the rules of the spec itself that it breaks; later rules may rely on earlier ones.

    >>> from tilewright import TensorSpec
    >>> list(spec_violations(TensorSpec((4, 4), "bfloat16")))
    []
    """
    yield from _dtype_violations(spec)
    sharding = spec.memory.sharding
    if spec.memory.is_sharded and sharding is None:
        yield broken_rule(
            "sharded memory has shards",
            f"memory layout {spec.memory.memory_layout} needs a shard shape;"
            " pass a ShardSpec or an NdShardSpec, or use height_sharded(core_grid), which computes one",
        )
        return
    if sharding is not None:
        violations = list(_shard_violations(spec, sharding))
        yield from violations
        if violations:
            return
    violations = list(_alignment_violations(spec))
    yield from violations
    if not violations and spec.memory.shard_spec is not None and not spec.memory.made_with_nd:
        yield from _matrix_shard_violations(spec, spec.memory.shard_spec)


def _dtype_violations(spec: PageGeometry) -> Iterator[Violation]:
    tiled = spec.is_tiled
    if spec.dtype.has_blocks and not tiled:
        yield broken_rule("block formats are tiled", f"{spec.dtype} needs tiles; choose the tile layout")
    if spec.dtype.name == "float8_e4m3" and tiled:
        yield broken_rule("float8 is row-major", f"{spec.dtype} cannot be tiled; choose the row-major layout")
    if tiled and not spec.tile.is_on_chips and (spec.chip is not None or spec.dtype.has_blocks):
        yield from _tile_violations(spec)
    if not tiled and not spec.tile.is_default:
        yield broken_rule(
            "rows have no tile",
            f"a row-major tensor cannot have tiles of {spec.tile}; leave the tile out, or choose the tile layout",
        )
    if spec.memory.buffer_type is BufferType.SYSTEM_MEMORY:
        yield broken_rule("memory has banks", "SYSTEM_MEMORY has no banks; use DRAM or L1")


def _tile_violations(spec: PageGeometry) -> Iterator[Violation]:
    """Yield a violation if chips have no such tiles."""
    if spec.is_tiled:
        try:
            spec.tile.require_on_chips()
        except MemoryConfigError as problem:
            yield broken_rule("chips have certain tiles", str(problem))


def _shard_violations(spec: PageGeometry, sharding: NdShardSpec) -> Iterator[Violation]:
    for n in sharding.shape:
        if n < 1:
            yield broken_rule(
                "shards are not empty", f"shard extents must be at least 1, got {list(sharding.shape)}; use 1 or more"
            )
            return
    if not spec.is_tiled:
        return
    height, width = ([1, *sharding.shape])[-2:]
    for side, n, unit in (("height", height, spec.tile.height), ("width", width, spec.tile.width)):
        if n % unit:
            up = round_up(n, unit)
            yield broken_rule(
                "shards are whole tiles",
                f"shard {side} {n} is not a multiple of the tile {side} {unit};"
                f" use {up} ({up - n} more per shard, {100 * (up - n) / n:.0f} %)",
            )


def _alignment_violations(spec: PageGeometry) -> Iterator[Violation]:
    alignment = spec.alignment
    if alignment is None:
        return
    sharding = spec.memory.sharding
    if any(n < 1 for n in alignment):
        yield broken_rule(
            "alignments are positive", f"alignment entries must be at least 1, got {list(alignment)}; use 1 or more"
        )
    elif spec.is_tiled:
        height, width = ([1, *alignment])[-2:]
        legal = [*alignment[:-2], round_up(height, spec.tile.height), round_up(width, spec.tile.width)]
        if list(alignment) != legal:
            yield broken_rule(
                "alignments are whole tiles",
                f"alignment {list(alignment)} does not end in multiples of the tile {spec.tile}; use {legal}",
            )
    elif sharding is not None and sharding.shape[-1] % alignment[-1]:
        yield broken_rule(
            "shards are aligned",
            f"shard width {sharding.shape[-1]} is not a multiple of the alignment {alignment[-1]};"
            f" use {round_up(sharding.shape[-1], alignment[-1])}",
        )
    if spec.memory.shard_spec is not None and not spec.memory.made_with_nd and len(alignment) > 2:
        yield broken_rule(
            "a matrix has two alignments",
            f"alignment {list(alignment)} has {len(alignment)} entries, but a ShardSpec allows 2;"
            " use at most 2 entries, or an NdShardSpec",
        )


def _matrix_shard_violations(spec: PageGeometry, shard: ShardSpec) -> Iterator[Violation]:
    (rows, columns), (height, width) = spec.physical_shape, shard.shape
    down, across = ceil_div(rows, height), ceil_div(columns, width)
    cores = shard.grid.num_cores
    if len(spec.padded_shape) == 1 and height != 1:
        yield broken_rule(
            "vectors have one row",
            f"shard height {height} does not fit shape {list(spec.padded_shape)} of rank 1; use height 1",
        )
    layout = spec.memory.memory_layout
    if layout not in (TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED):
        yield from _block_shard_violations(shard, down, across)
        return
    if layout is TensorMemoryLayout.HEIGHT_SHARDED:
        cut, whole, shards, extent, unit = "height", "width", down, rows, spec.unit[0]
        own, needed, remedy = width, columns, (height, columns)
    else:
        cut, whole, shards, extent, unit = "width", "height", across, columns, spec.unit[1]
        own, needed, remedy = height, rows, (rows, width)
    if own != needed:
        yield broken_rule(
            f"{cut} shards are full {whole}",
            f"shard {whole} {own} must be the {whole} {needed} of the tensor; use {remedy}, or block_sharded",
        )
    if shards > cores:
        least = round_up(ceil_div(extent, max(1, cores)), unit)
        yield broken_rule(
            "one shard per core",
            f"{shards} shards along the {cut} need {shards} cores, got {cores};"
            f" use a shard {cut} of at least {least}, {shards} cores, or nd_sharded",
        )


def _block_shard_violations(shard: ShardSpec, down: int, across: int) -> Iterator[Violation]:
    if len(shard.grid) != 1:
        yield broken_rule(
            "block shards need one range",
            f"block sharding needs a single range of cores, got {len(shard.grid)} ranges {shard.grid};"
            " use one range, or nd_sharded",
        )
        return
    box = shard.grid.ranges[0]
    sides = [("height", down, "rows", box.height), ("width", across, "columns", box.width)]
    if shard.orientation is ShardOrientation.COL_MAJOR:
        sides = [("height", down, "columns", box.width), ("width", across, "rows", box.height)]
    for side, shards, lines, available in sides:
        if shards > available:
            yield broken_rule(
                "block shards fit the cores",
                f"{shards} shards along the {side} do not fit {available} {lines} of cores ({shard.orientation});"
                f" use a larger shard {side}, or {shards} {lines}",
            )
