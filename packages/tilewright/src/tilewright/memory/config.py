# SPDX-License-Identifier: Apache-2.0
"""`MemoryConfig`: the memory of a tensor and its shards, as a matrix or with any rank; and the enumerations for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, EnumMeta
from math import lcm, prod
from typing import Any, Literal, TypeAlias, TypeVar

from .._integers import ceil_div, round_up
from .._text import canonical_word, find_nearest, format_extents, suggest
from ..display import Drawable
from ..errors import MemoryConfigError
from ..layout import as_integer
from .cores import CoreRangeSet, CoresLike

_Member = TypeVar("_Member", bound="NamedEnum")
_AnyMember = TypeVar("_AnyMember")


def _describe_missing(cls: Any, name: object) -> str:
    """Return the message for a missing member of an enumeration, with the nearest one."""
    members = list(cls.__members__)
    spelled = canonical_word(str(name)).upper()
    parts = [member for member in sorted(members, key=len, reverse=True) if member in spelled or spelled in member]
    near = spelled if spelled in members else find_nearest(spelled, members) or next(iter(parts), None)
    hint = "" if near is None else f"; did you mean {cls.__name__}.{near}?"
    return f"{cls.__name__} has no {name}, its members are {', '.join(members)}{hint}"


class HelpfulEnum(EnumMeta):
    """The type of enumerations that name the nearest member if one does not exist."""

    def __getitem__(cls: type[_AnyMember], name: str) -> _AnyMember:
        try:
            return EnumMeta.__getitem__(cls, name)
        except KeyError:
            raise MemoryConfigError(_describe_missing(cls, name)) from None

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        members: dict[str, Any] = dict(cls.__members__)
        if name in members:
            return members[name]
        raise AttributeError(_describe_missing(cls, name))


class NamedEnum(Enum, metaclass=HelpfulEnum):
    """An enumeration with members that can be given by name; case, dashes and spaces do not matter.

    >>> BufferType.of("l1"), BufferType.of(BufferType.DRAM), PageLayout.of("Row-Major"), PageLayout.of("Tiled")
    (BufferType.L1, BufferType.DRAM, PageLayout.ROW_MAJOR, PageLayout.TILE)
    """

    @classmethod
    def of(cls: type[_Member], value: Enum | str) -> _Member:
        """Return the member that `value` is or names.

        >>> ShardOrientation.of("col_major")
        ShardOrientation.COL_MAJOR
        """
        if isinstance(value, cls):
            return value
        name: Any = value.name if isinstance(value, Enum) else value  # also of other libraries
        if isinstance(name, str) and (known := canonical_word(name).upper()) in cls.__members__:
            return cls[known]
        names = [member.lower() for member in cls.__members__]
        listed = ", ".join([f'"{name}"' for name in names])
        label = re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()  # such as "buffer type"
        raise MemoryConfigError(f"unknown {label} {value!r}; {suggest(name, names, f'use one of {listed}')}")

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        return cls.of(value)  # a name will do, and the error lists all

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


class PageLayout(NamedEnum):
    """Whether pages are rows or tiles.

    >>> PageLayout.of("tile")
    PageLayout.TILE
    """

    ROW_MAJOR = 0
    TILE = 1


class BufferType(NamedEnum):
    """The memory that holds a buffer.

    >>> BufferType.L1.value, BufferType.L1_SMALL.is_l1
    (1, True)
    """

    DRAM = 0
    L1 = 1
    SYSTEM_MEMORY = 2
    L1_SMALL = 3
    TRACE = 4

    @property
    def is_l1(self) -> bool:
        """Whether the memory is L1.

        >>> BufferType.TRACE.is_l1
        False
        """
        return self in (BufferType.L1, BufferType.L1_SMALL)


class TensorMemoryLayout(NamedEnum):
    """How pages are distributed over banks or cores.

    >>> TensorMemoryLayout.of("nd_sharded").is_sharded
    True
    """

    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4
    ND_SHARDED = 5

    @property
    def is_sharded(self) -> bool:
        """Whether pages are grouped in shards.

        >>> TensorMemoryLayout.INTERLEAVED.is_sharded
        False
        """
        return self is not TensorMemoryLayout.INTERLEAVED


class ShardOrientation(NamedEnum):
    """The order of the cores of a range: row by row or column by column.

    >>> ShardOrientation.ROW_MAJOR.value
    0
    """

    ROW_MAJOR = 0
    COL_MAJOR = 1


class ShardStrategy(NamedEnum):
    """How a matrix is cut into shards.

    >>> ShardStrategy.BLOCK.memory_layout
    TensorMemoryLayout.BLOCK_SHARDED
    """

    HEIGHT = 0
    WIDTH = 1
    BLOCK = 2

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """The memory layout of the strategy.

        >>> ShardStrategy.HEIGHT.memory_layout
        TensorMemoryLayout.HEIGHT_SHARDED
        """
        return TensorMemoryLayout[f"{self.name}_SHARDED"]

    def shard_counts(self, cores: CoreRangeSet, orientation: ShardOrientation) -> tuple[int, int]:
        """Return the number of shards along the height and the width of a matrix, one for each of `cores`.

        Blocks are counted on the bounding box of the cores, which `orientation` "col_major" transposes.

        >>> ShardStrategy.BLOCK.shard_counts(CoreRangeSet.of((8, 4)), ShardOrientation.COL_MAJOR)
        (8, 4)
        """
        if self is ShardStrategy.HEIGHT:
            return cores.num_cores, 1
        if self is ShardStrategy.WIDTH:
            return 1, cores.num_cores
        box = cores.bounding_box
        is_row_major = orientation is ShardOrientation.ROW_MAJOR
        return (box.height, box.width) if is_row_major else (box.width, box.height)


class ShardDistribution(NamedEnum):
    """How shards are distributed over cores: round-robin, on a grid, or in contiguous runs of equal length.

    >>> ShardDistribution.of("contiguous_1d").value
    2
    """

    ROUND_ROBIN_1D = 0
    GRID_2D = 1
    CONTIGUOUS_1D = 2


class AllocationMode(NamedEnum):
    """How a buffer in L1 gets its address: one for all cores, or one of its own for the shard of each core.

    In lockstep, no core has anything else at the address; in range lockstep, no core of the buffer has.

    >>> AllocationMode.of("per core")
    AllocationMode.PER_CORE
    """

    LOCKSTEP = 0
    RANGE_LOCKSTEP = 1
    PER_CORE = 2

    @classmethod
    def of_flags(cls, per_core: object, range_lockstep: object) -> AllocationMode:
        """Return the mode that two flags of ttnn stand for: `per_core` and `range_lockstep`, of which one can be on.

        >>> AllocationMode.of_flags(per_core=False, range_lockstep=True)
        AllocationMode.RANGE_LOCKSTEP
        """
        if per_core and range_lockstep:
            raise MemoryConfigError(
                "per_core_allocation and range_lockstep_allocation are both on, but exclude each other; turn one off"
            )
        return cls.PER_CORE if per_core else cls.RANGE_LOCKSTEP if range_lockstep else cls.LOCKSTEP

    @property
    def flags(self) -> tuple[bool, bool]:
        """The two flags of ttnn for the mode: per core, and in range lockstep.

        >>> AllocationMode.PER_CORE.flags
        (True, False)
        """
        return self is AllocationMode.PER_CORE, self is AllocationMode.RANGE_LOCKSTEP


PageLayoutLike: TypeAlias = PageLayout | Literal["row_major", "tile"] | str
BufferTypeLike: TypeAlias = BufferType | Literal["dram", "l1"] | str
AllocationLike: TypeAlias = AllocationMode | Literal["lockstep", "range_lockstep", "per_core"] | str


@dataclass(frozen=True, init=False, repr=False)
class ShardSpec:
    """Shards of `shape` (height, width) of the tensor folded to a matrix, over the cores `grid` in their `orientation`.

    >>> ShardSpec((2, 2), [64, 32])
    ShardSpec(CoreRangeSet([CoreRange((0, 0), (1, 1))]), (64, 32), 'row_major')
    """

    grid: CoreRangeSet
    shape: tuple[int, int]
    orientation: ShardOrientation

    def __init__(
        self, grid: CoresLike, shape: Iterable[int], orientation: ShardOrientation | str = "row_major"
    ) -> None:
        extents = _validate_shard_shape(shape)
        if len(extents) != 2:
            raise MemoryConfigError(
                f"a ShardSpec needs a shard shape (height, width), got {list(extents)}; use NdShardSpec for other ranks"
            )
        object.__setattr__(self, "grid", CoreRangeSet.of(grid))
        object.__setattr__(self, "shape", extents)
        object.__setattr__(self, "orientation", ShardOrientation.of(orientation))

    def __repr__(self) -> str:
        return f"ShardSpec({self.grid!r}, {self.shape}, {self.orientation.name.lower()!r})"


@dataclass(frozen=True, init=False, repr=False)
class NdShardSpec:
    """Shards of any `shape` over the cores `grid`, in their `orientation`, and how they are distributed.

    >>> NdShardSpec([1, 64, 32], (2, 2)).distribution
    ShardDistribution.ROUND_ROBIN_1D
    """

    shape: tuple[int, ...]
    grid: CoreRangeSet
    orientation: ShardOrientation
    distribution: ShardDistribution

    def __init__(
        self,
        shape: Iterable[int],
        grid: CoresLike,
        orientation: ShardOrientation | str = "row_major",
        distribution: ShardDistribution | str = "round_robin_1d",
    ) -> None:
        object.__setattr__(self, "shape", _validate_shard_shape(shape))
        object.__setattr__(self, "grid", CoreRangeSet.of(grid))
        object.__setattr__(self, "orientation", ShardOrientation.of(orientation))
        object.__setattr__(self, "distribution", ShardDistribution.of(distribution))

    def __repr__(self) -> str:
        names = f"{self.orientation.name.lower()!r}, {self.distribution.name.lower()!r}"
        return f"NdShardSpec({self.shape}, {self.grid!r}, {names})"


def _validate_shard_shape(shape: Iterable[int]) -> tuple[int, ...]:
    """Return the extents of a shard as a tuple of at least one integer, or raise."""
    candidate: Any = shape
    if not isinstance(candidate, Iterable) or isinstance(candidate, str):
        raise MemoryConfigError(f"expected a shard shape such as (64, 32), got {shape!r}")
    extents = tuple([int(as_integer(n, "shard extent")) for n in shape])
    if not extents:
        raise MemoryConfigError("a shard shape needs at least one extent, got ()")
    return extents


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MemoryConfig(Drawable):
    """The memory of a tensor (`buffer_type`), and how `memory_layout` distributes its pages over banks or cores.

    Shards are given as a `shard_spec` or an `nd_shard_spec`, which decides the placement (`made_with_nd` if both are
    there). The config of a `TensorSpec` also has the equivalent other form, which equality ignores; `nd_alone` is
    True if it was given as ND sharded, without a form as a matrix. `allocation` is the way to an address; others than
    lockstep are for shards in L1.

    >>> MemoryConfig("height_sharded", "l1", ShardSpec((8, 1), [32, 64])).is_sharded
    True
    >>> MemoryConfig()
    MemoryConfig('interleaved', 'dram')
    """

    memory_layout: TensorMemoryLayout
    buffer_type: BufferType
    shard_spec: ShardSpec | None
    nd_shard_spec: NdShardSpec | None
    made_with_nd: bool
    nd_alone: bool = field(init=False)
    allocation: AllocationMode

    def __init__(
        self,
        memory_layout: TensorMemoryLayout | str = "interleaved",
        buffer_type: BufferTypeLike = "dram",
        shard_spec: ShardSpec | None = None,
        nd_shard_spec: NdShardSpec | None = None,
        made_with_nd: bool | None = None,
        allocation: AllocationLike = AllocationMode.LOCKSTEP,
    ) -> None:
        layout = TensorMemoryLayout.of(memory_layout)
        if not layout.is_sharded and (shard_spec or nd_shard_spec):
            raise MemoryConfigError(
                f"interleaved memory has no shards, got {shard_spec or nd_shard_spec!r}; leave it out, or use a sharded"
                " memory layout"
            )
        object.__setattr__(self, "memory_layout", layout)
        object.__setattr__(self, "buffer_type", BufferType.of(buffer_type))
        object.__setattr__(self, "shard_spec", shard_spec)
        object.__setattr__(self, "nd_shard_spec", nd_shard_spec)
        nd_only = nd_shard_spec is not None and shard_spec is None
        object.__setattr__(self, "made_with_nd", nd_only if made_with_nd is None else bool(made_with_nd))
        object.__setattr__(self, "nd_alone", nd_only and layout is TensorMemoryLayout.ND_SHARDED)
        object.__setattr__(self, "allocation", AllocationMode.of(allocation))
        per_core, in_range = self.allocation.flags
        takes_mode = layout.is_sharded and self.buffer_type is BufferType.L1 and not (per_core and self.made_with_nd)
        if (per_core or in_range) and not takes_mode:
            shards = "a ShardSpec" if per_core else "shards"
            raise MemoryConfigError(f"{self!r} is not possible, which is for {shards} in L1; allocate it in lockstep")

    @property
    def is_sharded(self) -> bool:
        """Whether pages are gathered in shards.

        >>> MemoryConfig().is_sharded
        False
        """
        return self.memory_layout.is_sharded

    @property
    def sharding(self) -> NdShardSpec | None:
        """The shards that decide the placement in the general form, or None if there are none.

        >>> MemoryConfig("block_sharded", "l1", ShardSpec((2, 2), [64, 32])).sharding.distribution
        ShardDistribution.GRID_2D
        """
        if self.made_with_nd or self.shard_spec is None:
            return self.nd_shard_spec
        spec = self.shard_spec
        on_grid = self.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
        return NdShardSpec(spec.shape, spec.grid, spec.orientation, "grid_2d" if on_grid else "round_robin_1d")

    def complete(self, padded: tuple[int, ...], matrix: tuple[int, int]) -> MemoryConfig:
        """Return the config with both forms of its shards, for a tensor of this padded shape and matrix.

        >>> config = MemoryConfig("nd_sharded", "l1", nd_shard_spec=NdShardSpec([1, 32, 64], (4, 2)))
        >>> config.complete((2, 64, 64), (128, 64)).memory_layout
        TensorMemoryLayout.HEIGHT_SHARDED
        """
        sharding = self.sharding
        if sharding is None:
            return self
        if self.made_with_nd:
            layout, shape = matrix_shards(sharding, padded, matrix)
            if shape == matrix and self.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
                layout = self.memory_layout  # a single shard is both height and width sharded
            label = None if shape is None else ShardSpec(sharding.grid, shape, sharding.orientation)
            completed = replace(self, memory_layout=layout, shard_spec=label)
            object.__setattr__(completed, "nd_alone", self.nd_alone)
            return completed
        if len(padded) == 1:
            sharding = replace(sharding, shape=sharding.shape[-1:])
        return replace(self, nd_shard_spec=sharding, made_with_nd=False)

    def _key(self) -> tuple[Any, ...]:
        """Return the key that configs are compared by: the form of the shards that decides the placement."""
        if self.made_with_nd:
            return (self.buffer_type, self.nd_shard_spec, self.allocation)
        return (self.buffer_type, self.memory_layout, self.shard_spec, self.allocation)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, MemoryConfig) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [repr(self.memory_layout.name.lower()), repr(self.buffer_type.name.lower())]
        if self.made_with_nd:
            parts.append(f"nd_shard_spec={self.nd_shard_spec!r}")
        elif self.shard_spec is not None:
            parts.append(repr(self.shard_spec))
        if self.allocation is not AllocationMode.LOCKSTEP:
            parts.append(f"allocation={self.allocation.name.lower()!r}")
        return f"MemoryConfig({', '.join(parts)})"

    def __str__(self) -> str:
        where = f"{self.memory_layout.name.lower().replace('_', ' ')} in {self.buffer_type}"
        sharding = self.sharding
        if sharding is None:
            return where
        shape = format_extents(sharding.shape)
        count, what = sharding.grid.num_cores, "core" if self.buffer_type.is_l1 else "bank"
        mode = ("", ", allocated in range lockstep", ", allocated per core")[self.allocation.value]
        return f"{where}, shards of {shape} on {count} {what}{'' if count == 1 else 's'}{mode}"


def matrix_shards(
    sharding: NdShardSpec, padded: tuple[int, ...], matrix: tuple[int, int]
) -> tuple[TensorMemoryLayout, tuple[int, int] | None]:
    """Return the memory layout and the matrix shard shape equivalent to shards of any rank, or (ND_SHARDED, None).

    >>> matrix_shards(NdShardSpec([2, 32, 64], (4, 1)), (8, 32, 64), (256, 64))
    (TensorMemoryLayout.HEIGHT_SHARDED, (64, 64))
    """
    not_a_matrix = (TensorMemoryLayout.ND_SHARDED, None)
    height = _rows_per_shard(sharding.shape, padded)
    if height is None or sharding.distribution is ShardDistribution.CONTIGUOUS_1D:
        return not_a_matrix
    shape = (height, sharding.shape[-1])
    down, across = ceil_div(matrix[0], height), ceil_div(matrix[1], shape[1])
    if sharding.orientation is ShardOrientation.COL_MAJOR:
        down, across = across, down
    if down * across > sharding.grid.num_cores:
        return not_a_matrix
    round_robin = sharding.distribution is ShardDistribution.ROUND_ROBIN_1D
    if round_robin and height == matrix[0]:
        return TensorMemoryLayout.WIDTH_SHARDED, shape
    if round_robin and shape[1] == matrix[1]:
        return TensorMemoryLayout.HEIGHT_SHARDED, shape
    if len(sharding.grid) != 1:
        return not_a_matrix
    cores = sharding.grid.ranges[0]
    if across > cores.width or down > cores.height or (round_robin and across != cores.width):
        return not_a_matrix
    return TensorMemoryLayout.BLOCK_SHARDED, shape


def _rows_per_shard(shard: tuple[int, ...], padded: tuple[int, ...]) -> int | None:
    """Return the number of matrix rows that a shard covers, or None if they are not contiguous."""
    extent = dict(zip(range(-len(padded), 0), padded, strict=True))
    for d in range(-2, -len(shard) - 1, -1):
        if extent.get(d, 1) != shard[d]:
            whole = d == -len(shard) or extent.get(d, 1) % shard[d] == 0 or prod(padded[:d]) == 1
            return prod(shard[d:-1]) if whole and prod(shard[:d]) == 1 else None
    return prod(shard[:-1])


# Memory configs by name: `interleaved`, `height_sharded` and so on.

ROW_BYTES = 64  # the width of row-major shards is a multiple of this number of bytes


@dataclass(frozen=True, slots=True)
class Sharding:
    """How to shard a tensor of any shape: by strategy, or with one shard per index of the dimensions `dims`.

    With `all_but`, it is one shard per index of all other dimensions.

    >>> block_sharded(core_grid=(8, 8)).strategy
    ShardStrategy.BLOCK
    """

    strategy: ShardStrategy | None
    grid: CoreRangeSet
    orientation: ShardOrientation
    buffer_type: BufferType
    dims: tuple[int, ...] = ()
    all_but: bool = False

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """The memory layout of the strategy.

        >>> sharded_across_dims([0], (4, 1)).memory_layout
        TensorMemoryLayout.ND_SHARDED
        """
        return TensorMemoryLayout.ND_SHARDED if self.strategy is None else self.strategy.memory_layout

    def config_for(self, padded: tuple[int, ...], tile: tuple[int, int] | None, itemsize: int = 1) -> MemoryConfig:
        """Return the config for a tensor of this `padded` shape; `tile` is None for row-major pages.

        `itemsize` is the size of an element in bytes, which decides the width of row-major shards.

        >>> block_sharded(core_grid=(8, 8)).config_for((1, 4, 64, 96), (32, 32)).sharding.shape
        (32, 32)
        """
        shape = self._dims_shape(padded) if self.strategy is None else self._strategy_shape(self.strategy, padded)
        if tile is not None:
            shape[-1] = round_up(shape[-1], tile[1])
            if len(shape) > 1:
                shape[-2] = round_up(shape[-2], tile[0])
        elif self.strategy in (None, ShardStrategy.BLOCK):
            shape[-1] = round_up(shape[-1], lcm(ROW_BYTES, itemsize) // itemsize)
        distribution = "grid_2d" if self.strategy is ShardStrategy.BLOCK else "round_robin_1d"
        sharding = NdShardSpec(shape, self.grid, self.orientation, distribution)
        return MemoryConfig(self.memory_layout, self.buffer_type, nd_shard_spec=sharding)

    def _strategy_shape(self, strategy: ShardStrategy, padded: tuple[int, ...]) -> list[int]:
        if strategy is ShardStrategy.BLOCK and len(self.grid) != 1:
            raise MemoryConfigError(
                f"block sharding needs a single range of cores, got {len(self.grid)} ranges {self.grid}; use their"
                f" bounding box {self.grid.bounding_box}"
            )
        down, across = strategy.shard_counts(self.grid, self.orientation)
        return [max(1, ceil_div(prod(padded[:-1]), down)), max(1, ceil_div(padded[-1], across))]

    def _dims_shape(self, padded: tuple[int, ...]) -> list[int]:
        for d in self.dims:
            if not -len(padded) <= d < len(padded):
                raise MemoryConfigError(
                    f"dimension {d} is outside padded shape {list(padded)}; use {-len(padded)} to {len(padded) - 1}"
                )
        chosen = {d % len(padded) for d in self.dims}
        return [1 if (d in chosen) != self.all_but else max(1, n) for d, n in enumerate(padded)]


ShardedMemory: TypeAlias = MemoryConfig | Sharding
MemoryLike: TypeAlias = MemoryConfig | Sharding | BufferType | str | None
OrientationLike: TypeAlias = ShardOrientation | Literal["row_major", "col_major"] | str


def as_memory(memory: MemoryLike) -> ShardedMemory:
    """Return a config or a sharding as it is, and interleaved memory for a buffer type; None is DRAM.

    >>> as_memory("l1"), as_memory(None), as_memory("Interleaved")
    (MemoryConfig('interleaved', 'l1'), MemoryConfig('interleaved', 'dram'), MemoryConfig('interleaved', 'dram'))
    """
    if isinstance(memory, (MemoryConfig, Sharding)):
        return memory
    if memory is None or (isinstance(memory, str) and canonical_word(memory) == "interleaved"):
        return MemoryConfig()
    return MemoryConfig("interleaved", memory)


def interleaved(buffer_type: BufferTypeLike = "dram") -> MemoryConfig:
    """Return the config that distributes pages round-robin over all banks of `buffer_type`, "dram" or "l1".

    >>> interleaved("l1")
    MemoryConfig('interleaved', 'l1')
    """
    return MemoryConfig("interleaved", buffer_type)


def height_sharded(
    core_grid: CoresLike,
    shard_shape: Iterable[int] | None = None,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
) -> ShardedMemory:
    """Return the config with shards of full rows.

    `core_grid` is (columns, rows) or any set of cores, `shard_shape` (height, width) or None to compute it,
    `orientation` the order of cores, and `buffer_type` the memory.

    >>> height_sharded((8, 8), (64, 96)).memory_layout
    TensorMemoryLayout.HEIGHT_SHARDED
    """
    return _shard_by_strategy(ShardStrategy.HEIGHT, core_grid, shard_shape, orientation, buffer_type)


def width_sharded(
    core_grid: CoresLike,
    shard_shape: Iterable[int] | None = None,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
) -> ShardedMemory:
    """Return the config with shards of full columns.

    `core_grid`, `shard_shape`, `orientation` and `buffer_type` are as in `height_sharded`.

    >>> width_sharded((8, 1), (64, 32)).shard_spec.shape
    (64, 32)
    """
    return _shard_by_strategy(ShardStrategy.WIDTH, core_grid, shard_shape, orientation, buffer_type)


def block_sharded(
    core_grid: CoresLike,
    shard_shape: Iterable[int] | None = None,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
) -> ShardedMemory:
    """Return the config with block (i, j) of the matrix on row i and column j of cores.

    `core_grid`, `shard_shape`, `orientation` and `buffer_type` are as in `height_sharded`.

    >>> block_sharded((2, 2), (64, 64)).sharding.distribution
    ShardDistribution.GRID_2D
    """
    return _shard_by_strategy(ShardStrategy.BLOCK, core_grid, shard_shape, orientation, buffer_type)


def nd_sharded(
    shard_shape: Iterable[int],
    core_grid: CoresLike,
    orientation: OrientationLike = "row_major",
    distribution: ShardDistribution | str = "round_robin_1d",
    buffer_type: BufferTypeLike = "l1",
) -> MemoryConfig:
    """Return the config with shards of `shard_shape`, of any rank; `distribution` is their distribution over cores.

    `core_grid`, `orientation` and `buffer_type` are as in `height_sharded`.

    >>> nd_sharded((1, 64, 32), (4, 2)).made_with_nd
    True
    """
    sharding = NdShardSpec(shard_shape, core_grid, orientation, distribution)
    return MemoryConfig("nd_sharded", buffer_type, nd_shard_spec=sharding)


def sharded_across_dims(
    dims: int | Sequence[int],
    core_grid: CoresLike,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
    all_but: bool = False,
) -> Sharding:
    """Return the sharding with one shard for each index of the dimensions `dims`, or of all others with `all_but`.

    `core_grid`, `orientation` and `buffer_type` are as in `height_sharded`.

    >>> sharded_across_dims([0], (4, 1)).config_for((4, 64, 96), (32, 32)).sharding.shape
    (1, 64, 96)
    """
    numbers = tuple([int(d) for d in ([dims] if isinstance(dims, int) else dims)])
    cores, order = CoreRangeSet.of(core_grid), ShardOrientation.of(orientation)
    return Sharding(None, cores, order, BufferType.of(buffer_type), numbers, all_but)


def _shard_by_strategy(
    strategy: ShardStrategy,
    cores: CoresLike,
    shape: Iterable[int] | None,
    orientation: OrientationLike,
    buffer: BufferTypeLike,
) -> ShardedMemory:
    if shape is None:
        return Sharding(strategy, CoreRangeSet.of(cores), ShardOrientation.of(orientation), BufferType.of(buffer))
    return MemoryConfig(strategy.memory_layout, buffer, ShardSpec(cores, shape, orientation))
