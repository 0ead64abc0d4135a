# SPDX-License-Identifier: Apache-2.0
"""What a tensor spec must obey, as data: each broken rule names the values, the rule and a remedy.

`spec_violations` are the rules of the spec itself, `placement_violations` those of a chip. Whoever places a tensor, or
writes a file that says where it goes, asks `check_placement`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import MemoryConfigError, OutOfMemory
from ..formats import BlockFormat
from ..layout.tuples import ceil_div, round_up
from .chip import Chip, known_chips
from .config import NdShardSpec, ShardSpec
from .cores import CoreCoord, CoreRangeSet
from .kinds import BufferType, ShardDistribution, ShardOrientation, TensorLayout, TensorMemoryLayout

_ENOUGH_MEMORY = "a bank holds its share"

if TYPE_CHECKING:
    from .spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a spec breaks: its name, what is wrong in numbers, and what would be right.

    >>> print(Violation("shard fits tile", "shard height 25 is not a multiple of the tile height 32", "use 32"))
    shard height 25 is not a multiple of the tile height 32; use 32
    """

    rule: str
    problem: str
    remedy: str

    @classmethod
    def told_by(cls, rule: str, problem: Exception) -> Violation:
        """Return the violation that an error tells of, whose message ends in a remedy.

        >>> Violation.told_by("shards fit", ValueError("3 shards do not fit 2 cores; use 3")).remedy
        'use 3'
        """
        what, _, remedy = str(problem).rpartition("; ")
        return cls(rule, what, remedy) if what else cls(rule, remedy, "")

    @property
    def error(self) -> type[MemoryConfigError | OutOfMemory]:
        """Return the kind of error that the violation is when it is raised.

        >>> Violation("shards fit", "3 shards do not fit 2 cores", "use 3").error.__name__
        'MemoryConfigError'
        """
        return OutOfMemory if self.rule == _ENOUGH_MEMORY else MemoryConfigError

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}" if self.remedy else self.problem


def check_placement(spec: TensorSpec) -> None:
    """Raise the first rule of placement that a spec breaks, if it breaks any.

    >>> from tilewright import TensorSpec, width_sharded
    >>> try:
    ...     check_placement(TensorSpec((64, 64), layout="tile", memory=width_sharded((1, 2), buffer_type="dram")))
    ... except MemoryConfigError as problem:
    ...     print(problem)
    no known chip takes it: core (0, 1) is no DRAM bank of wormhole_n150: x names the bank and y must be 0; use (0, 0) \
to (11, 0)
    """
    for broken in placement_violations(spec):
        raise broken.error(str(broken))


def placement_violations(spec: TensorSpec, any_size: bool = False) -> Iterator[Violation]:
    """Yield the rules of placement that a spec breaks on its chip; without one, on every chip that is known.

    With `any_size`, the tensor may be larger than the memory: whoever asks looks at what is free, or needs no memory.

    >>> from tilewright import TensorSpec
    >>> list(placement_violations(TensorSpec((4, 4), "bfloat16", chip="wormhole_n150")))
    []
    """
    if spec.chip is not None:
        yield from _placement_rules(spec, spec.chip, any_size)
        return
    first: list[Violation] = []
    for chip in known_chips():
        broken = list(_placement_rules(spec, chip, any_size))
        if not broken:
            return
        first = first or [replace(each, problem=f"no known chip takes it: {each.problem}") for each in broken]
    yield from first


def grid_violations(chip: Chip, grid: CoreRangeSet, buffer: BufferType) -> Iterator[Violation]:
    """Yield that a grid has a core without a bank on a chip, if it has one.

    >>> from tilewright import Chip
    >>> [print(each) for each in grid_violations(Chip.named("n150"), CoreRangeSet.of((9, 9)), BufferType.L1)]
    core (8, 0) has no L1 bank on wormhole_n150 with fast dispatch; its cores are (0, 0) to (7, 7)
    [None]
    """
    # one core more than there are banks, of a grid that a file may give any size, tells that some core has none
    cores = (
        CoreCoord(x, y)
        for box in grid
        for y in range(box.start.y, box.end.y + 1)
        for x in range(box.start.x, box.end.x + 1)
    )
    for core in islice(cores, chip.banks(buffer) + 1):
        try:
            chip.bank_of(core, buffer)
        except MemoryConfigError as problem:
            yield Violation.told_by("shard cores have banks", problem)
            return


def bytes_per_bank(spec: TensorSpec, chip: Chip) -> int:
    """Return the bytes of the fullest bank of a chip that a tensor takes, before they are rounded to its unit.

    >>> from tilewright import Chip, TensorSpec
    >>> bytes_per_bank(TensorSpec((1024, 1024), "bfloat16", "tile"), Chip.named("n150"))
    176128
    """
    buffer = spec.memory.buffer_type
    if spec.memory.is_sharded:
        pages = spec.paging.shards_per_core * spec.paging.shard_pages
    else:
        pages = ceil_div(spec.num_pages, chip.banks(buffer))
    return pages * round_up(spec.page_bytes, chip.page_alignment(buffer))


def _placement_rules(spec: TensorSpec, chip: Chip, any_size: bool) -> Iterator[Violation]:
    """Yield the rules that a spec breaks on a chip, whatever chip it is for itself."""
    buffer, sharding = spec.memory.buffer_type, spec.memory.sharding
    if buffer is BufferType.L1_SMALL and sharding is None:
        yield Violation("small L1 holds shards", "L1_SMALL holds sharded tensors only", "use a sharded layout, or L1")
        return
    try:
        if sharding is None:
            spec.check_pages()
        elif sharding.distribution is ShardDistribution.GRID_2D:
            for core in spec.paging.cores:  # those of the grid that shards reach
                chip.bank_of(core, buffer)
        else:
            off_chip = list(grid_violations(chip, sharding.grid, buffer))
            yield from off_chip
            if off_chip:
                return
            _ = spec.paging
    except MemoryConfigError as problem:
        yield Violation.told_by("shards can be placed", problem)
        return
    needed = round_up(bytes_per_bank(spec, chip), chip.allocation_alignment)
    if needed > chip.bank_bytes(buffer) and not any_size:
        yield Violation(
            _ENOUGH_MEMORY,
            f"each {buffer} bank of {chip.name} has {chip.bank_bytes(buffer)} bytes, and this tensor takes {needed}",
            f"{'use more cores, or DRAM' if buffer.is_l1 else 'split it'}; spec.fit() lists what would fit",
        )


def spec_violations(spec: TensorSpec) -> Iterator[Violation]:
    """Yield the rules that a spec breaks, in an order in which later rules may rely on earlier ones.

    >>> from tilewright import TensorSpec
    >>> list(spec_violations(TensorSpec((4, 4), "bfloat16")))
    []
    """
    yield from _format_rules(spec)
    sharding = spec.memory.sharding
    if spec.memory.is_sharded and sharding is None:
        yield Violation(
            "sharded needs shards",
            f"the memory layout {spec.memory.memory_layout} has no shard specification",
            "give a ShardSpec or an NdShardSpec, or use height_sharded(core_grid), which works one out",
        )
        return
    if sharding is not None:
        broken = list(_shard_rules(spec, sharding))
        yield from broken
        if broken:
            return
    broken = list(_alignment_rules(spec))
    yield from broken
    if not broken and spec.memory.shard_spec is not None and not spec.memory.made_with_nd:
        yield from _matrix_rules(spec, spec.memory.shard_spec)


def _format_rules(spec: TensorSpec) -> Iterator[Violation]:
    tiled = spec.layout is TensorLayout.TILE
    if isinstance(spec.dtype, BlockFormat) and not tiled:
        yield Violation("block float is tiled", f"{spec.dtype} shares scales inside tiles", "use layout='tile'")
    if spec.dtype.name == "float8_e4m3" and tiled:
        yield Violation("float8 is row-major", f"{spec.dtype} has no tiled layout", "use layout='row_major'")
    if not tiled and not spec.tile.is_default:
        yield Violation(
            "rows have no tile", f"a row-major tensor cannot have tiles of {spec.tile}", "leave tile out, or tile it"
        )
    if spec.memory.buffer_type is BufferType.SYSTEM_MEMORY:
        yield Violation("tensors are placed on a chip", "SYSTEM_MEMORY has no banks", "use DRAM or L1")


def _shard_rules(spec: TensorSpec, sharding: NdShardSpec) -> Iterator[Violation]:
    for n in sharding.shape:
        if n < 1:
            yield Violation(
                "shards hold data", f"shard shape {list(sharding.shape)} has the extent {n}", "use 1 or more"
            )
            return
    if spec.layout is not TensorLayout.TILE:
        return
    height, width = ([1, *sharding.shape])[-2:]
    for what, n, unit in (("height", height, spec.tile.height), ("width", width, spec.tile.width)):
        if n % unit:
            up = round_up(n, unit)
            yield Violation(
                "shards hold whole tiles",
                f"shard {what} {n} is not a multiple of the tile {what} {unit}",
                f"use {up} ({up - n} more per shard, {100 * (up - n) / n:.0f} %)",
            )


def _alignment_rules(spec: TensorSpec) -> Iterator[Violation]:
    given, sharding = spec.alignment, spec.memory.sharding
    if given is None:
        return
    if any(n < 1 for n in given):
        yield Violation("alignments are positive", f"alignment {list(given)} has an entry below 1", "use 1 or more")
    elif spec.layout is TensorLayout.TILE:
        height, width = ([1, *given])[-2:]
        legal = [*given[:-2], round_up(height, spec.tile.height), round_up(width, spec.tile.width)]
        if list(given) != legal:
            yield Violation(
                "alignments hold whole tiles",
                f"alignment {list(given)} does not end in multiples of the tile {spec.tile}",
                f"use {legal}",
            )
    elif sharding is not None and sharding.shape[-1] % given[-1]:
        yield Violation(
            "shards are aligned",
            f"shard width {sharding.shape[-1]} is not a multiple of the alignment {given[-1]}",
            f"use {round_up(sharding.shape[-1], given[-1])}",
        )
    if spec.memory.shard_spec is not None and not spec.memory.made_with_nd and len(given) > 2:
        yield Violation(
            "a matrix has two alignments",
            f"alignment {list(given)} has {len(given)} entries for shards of a matrix",
            "use at most 2, or an NdShardSpec",
        )


def _matrix_rules(spec: TensorSpec, shard: ShardSpec) -> Iterator[Violation]:
    (rows, columns), (height, width) = spec.physical_shape, shard.shape
    down, across = ceil_div(rows, height), ceil_div(columns, width)
    cores = shard.grid.num_cores
    if len(spec.padded_shape) == 1 and height != 1:
        yield Violation(
            "a vector has one row",
            f"shard height {height} does not fit the shape {list(spec.padded_shape)} of rank 1",
            "use height 1",
        )
    layout = spec.memory.memory_layout
    if layout is TensorMemoryLayout.HEIGHT_SHARDED:
        if width != columns:
            yield Violation(
                "height shards are whole rows",
                f"shard width {width} is not the width {columns} of the tensor",
                f"use ({height}, {columns}), or block_sharded",
            )
        yield from _enough_cores("height", down, cores, ceil_div(rows, max(1, cores)), spec.unit[0])
    elif layout is TensorMemoryLayout.WIDTH_SHARDED:
        if height != rows:
            yield Violation(
                "width shards are whole columns",
                f"shard height {height} is not the height {rows} of the tensor",
                f"use ({rows}, {width}), or block_sharded",
            )
        yield from _enough_cores("width", across, cores, ceil_div(columns, max(1, cores)), spec.unit[1])
    elif len(shard.grid) != 1:
        yield Violation(
            "blocks need a rectangle",
            f"block sharding over the {len(shard.grid)} ranges {shard.grid}",
            "use one range of cores, or nd_sharded",
        )
    else:
        yield from _block_rules(shard, down, across)


def _enough_cores(what: str, shards: int, cores: int, least: int, unit: int) -> Iterator[Violation]:
    if shards > cores:
        yield Violation(
            "a core has one shard",
            f"{shards} shards along the {what} need as many cores, and there are {cores}",
            f"use a shard {what} of at least {round_up(least, unit)}, {shards} cores, or nd_sharded",
        )


def _block_rules(shard: ShardSpec, down: int, across: int) -> Iterator[Violation]:
    box = shard.grid.ranges[0]
    sides = [("height", down, "rows", box.height), ("width", across, "columns", box.width)]
    if shard.orientation is ShardOrientation.COL_MAJOR:
        sides = [("height", down, "columns", box.width), ("width", across, "rows", box.height)]
    for what, shards, lines, have in sides:
        if shards > have:
            yield Violation(
                "blocks fit the cores",
                f"{shards} shards along the {what} do not fit {have} {lines} of cores, {shard.orientation}",
                f"use shards of a larger {what}, or {shards} {lines}",
            )
