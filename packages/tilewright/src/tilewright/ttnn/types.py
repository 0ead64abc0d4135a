# SPDX-License-Identifier: Apache-2.0
"""`Wrapper`: a native value with the names of ttnn; and the arguments of ttnn's functions.

Positional arguments are bound by type, as in ttnn. Every function accepts all keywords of its ttnn counterpart, so
that a misspelt one is an error. Of those without an effect here, the ones that only tune execution (`use_multicore`,
`queue_id`, ...) are ignored, and the ones that would change the result are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from .. import memory
from .._dialect import unwrap
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..formats import Format, format_of
from ..layout import as_integer
from ..memory import (
    CoreLike,
    HelpfulEnum,
    NamedEnum,
    TensorSpec,
    Topology,
    first_cores,
    grid_extents,
    row_width_multiple,
)
from ..memory import cores as native_cores
from .text import ttnn_json, ttnn_text

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "BORROWED_HOST_STORAGE", "DEVICE_STORAGE", "DEVICE_STORAGE_TYPE", "OWNED_HOST_STORAGE", "ROW_MAJOR_LAYOUT",
    "TILE_LAYOUT", "WIDTH_MULTIPLES", "BufferType", "CoreCoord", "CoreGrid", "CoreRange", "CoreRangeSet", "DataType",
    "DumpTensorMode", "Layout", "MeshCoordinate", "MeshShape", "PlacementReplicate", "PlacementShard",
    "ShardDistributionStrategy", "ShardOrientation", "ShardShapeAlignment", "ShardStrategy", "StorageType",
    "TensorMemoryLayout", "TensorTopology", "bfloat4_b", "bfloat8_b", "bfloat16", "corerange_to_cores", "float32",
    "fp8_e4m3", "int8", "int32", "num_cores_to_corerangeset", "split_work_to_cores", "uint8", "uint16", "uint32",
    "width_multiple",
]  # fmt: skip


Native = TypeVar("Native")


class Wrapper(Generic[Native]):
    """A ttnn value around its `native` value; two are equal if their native values are.

    >>> Wrapper.wrap(5) == Wrapper.wrap(5), Wrapper.wrap(5).native
    (True, 5)
    """

    __slots__ = ("native",)
    native: Native

    @classmethod
    def wrap(cls, value: Native | Self) -> Self:
        """Return `value` wrapped; a wrapper is returned unchanged.

        >>> Wrapper.wrap(Wrapper.wrap(5)).native
        5
        """
        if isinstance(value, cls):
            return value
        wrapper = object.__new__(cls)
        wrapper.native = cast(Native, value)
        return wrapper

    def __eq__(self, other: object) -> bool:
        return bool(self.native == unwrap(other)) if isinstance(other, (Wrapper, type(self.native))) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.native)

    def __repr__(self) -> str:
        return ttnn_text(self.native)


class JsonWrapper(Wrapper[Native]):
    """A ttnn value that ttnn also writes as JSON.

    >>> issubclass(CoreRange, JsonWrapper), issubclass(TensorTopology, JsonWrapper)
    (True, False)
    """

    __slots__ = ()

    def to_json(self) -> str:
        """Return the value as JSON, without blanks, keys in order.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).to_json()
        '[{"end":{"x":3,"y":1},"start":{"x":0,"y":0}}]'
        """
        return ttnn_json(self.native)


def bind_by_type(
    function: str, types: Mapping[str, type | tuple[type, ...]], values: tuple[object, ...], named: Mapping[str, object]
) -> dict[str, Any]:
    """Return arguments of `function` by name: `named` ones, and `values` matched to `types`; None is ignored.

    >>> bind_by_type("f", {"count": int, "name": str}, ("x", None), {"count": 5})
    {'count': 5, 'name': 'x'}
    """
    arguments = {name: value for name, value in named.items() if value is not None}
    for value in values:
        if value is None:
            continue
        name = next((name for name, accepted in types.items() if isinstance(value, accepted)), None)
        if name is None:
            raise TypeError(
                f"{function} got an unexpected {type(value).__name__}: {value!r}; expected {', '.join(types)}"
            )
        if name in arguments:
            raise TypeError(f"{function} got {name} twice: {arguments[name]!r} and {value!r}; pass one of them")
        arguments[name] = value
    return arguments


def reject_unsupported(**unsupported: object) -> None:
    """Raise if an argument that would change the result, and is not supported here, has a value.

    >>> reject_unsupported(output_tensor=None, enable_bfloat_opt=False)
    """
    for name, value in unsupported.items():
        if value is not None and value is not False:
            raise MemoryConfigError(f"{name}={value!r:.60} is not supported: {_REMEDIES[name]}")


_REMEDIES = {
    "groups": "tensors are joined one after the other; omit it",
    "pad_value": "padding keeps zeros; use to_layout(..., pad_value=...)",
    "output_tensor": "operations return new tensors; omit it",
    "tile": "tilize always makes tiles of 32 x 32; use from_torch(..., tile=...)",
    "preserve_nan_values": "every NaN of a float32 source becomes the same bfloat16 NaN; omit it",
    "enable_bfloat_opt": "values are always rounded as on the host; omit it",
}


# The enums of ttnn, printed as ttnn prints them, and their constants: data types, layouts, memories, storage types.


class TtnnEnum(NamedEnum):
    """An enum of ttnn whose members wrap a `native` enum member.

    >>> Layout.TILE.native, Layout.TILE == memory.PageLayout.TILE, str(Layout.TILE), cpp_name(Layout.TILE)
    (PageLayout.TILE, True, 'Layout.TILE', 'Layout::TILE')
    """

    @property
    def native(self) -> NamedEnum:
        """The native member.

        >>> BufferType.L1.native is memory.BufferType.L1
        True
        """
        return _NATIVE_ENUMS[type(self).__name__][self.name]

    def __eq__(self, other: object) -> bool:
        return self is other or self.native is other

    def __hash__(self) -> int:
        return hash(self.native)

    def __str__(self) -> str:
        return repr(self)


class Layout(TtnnEnum):
    """Whether pages are rows or tiles.

    >>> print(Layout.TILE)
    Layout.TILE
    """

    ROW_MAJOR = 0
    TILE = 1


class BufferType(TtnnEnum):
    """The memory that holds a buffer.

    >>> BufferType.of("l1")
    BufferType.L1
    """

    DRAM = 0
    L1 = 1
    SYSTEM_MEMORY = 2
    L1_SMALL = 3
    TRACE = 4


class TensorMemoryLayout(TtnnEnum):
    """How pages are distributed over banks or cores.

    >>> TensorMemoryLayout.BLOCK_SHARDED.value
    4
    """

    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4
    ND_SHARDED = 5


class ShardOrientation(TtnnEnum):
    """The order in which shards visit the cores of a range: row by row or column by column.

    >>> ShardOrientation.COL_MAJOR
    ShardOrientation.COL_MAJOR
    """

    ROW_MAJOR = 0
    COL_MAJOR = 1


class ShardStrategy(TtnnEnum):
    """How a matrix is cut into shards: by rows, by columns, or both.

    >>> ShardStrategy.BLOCK
    <ShardStrategy.BLOCK: 3>
    """

    HEIGHT = 1
    WIDTH = 2
    BLOCK = 3

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __str__(self) -> str:
        return f"ShardStrategy.{self.name}"


class ShardDistributionStrategy(TtnnEnum):
    """How shards are distributed over cores: round-robin, on a grid, or in contiguous runs.

    >>> ShardDistributionStrategy.GRID_2D.value
    1
    """

    ROUND_ROBIN_1D = 0
    GRID_2D = 1
    CONTIGUOUS_1D = 2


# Accepted where one of these is expected: a member, the native member, or its name.
LayoutLike: TypeAlias = Layout | memory.PageLayout | str
BufferTypeLike: TypeAlias = BufferType | memory.BufferType | str
MemoryLayoutLike: TypeAlias = TensorMemoryLayout | memory.TensorMemoryLayout | str
OrientationLike: TypeAlias = ShardOrientation | memory.ShardOrientation | str
DistributionLike: TypeAlias = ShardDistributionStrategy | memory.ShardDistribution | str

_NATIVE_ENUMS: dict[str, type[NamedEnum]] = {
    "Layout": memory.PageLayout,
    "BufferType": memory.BufferType,
    "TensorMemoryLayout": memory.TensorMemoryLayout,
    "ShardOrientation": memory.ShardOrientation,
    "ShardStrategy": memory.ShardStrategy,
    "ShardDistributionStrategy": memory.ShardDistribution,
}


def cpp_name(member: Enum) -> str:
    """Return a `member` of an enum as C++ writes it, and as ttnn does inside longer texts.

    >>> cpp_name(DataType.BFLOAT16)
    'DataType::BFLOAT16'
    """
    return f"{type(member).__name__}::{member.name}"


class DataType(Enum, metaclass=HelpfulEnum):
    """The number formats of ttnn, with ttnn's own numbers.

    >>> DataType.BFLOAT8_B.value, DataType.BFLOAT8_B.format.name
    (3, 'bfloat8_b')
    """

    BFLOAT16 = 0
    FLOAT32 = 1
    UINT32 = 2
    BFLOAT8_B = 3
    BFLOAT4_B = 4
    UINT8 = 5
    UINT16 = 6
    INT32 = 7
    FP8_E4M3 = 8
    INT8 = 9

    @property
    def format(self) -> Format:
        """The native number format.

        >>> DataType.FP8_E4M3.format
        format_of('float8_e4m3')
        """
        return format_of(self.name.lower())

    @classmethod
    def of(cls, value: DataTypeLike) -> DataType:
        """Return the data type that `value` is or names; members of other enums and formats count by their name.

        >>> DataType.of("bfloat16"), DataType.of(format_of("float8_e4m3"))
        (DataType.BFLOAT16, DataType.FP8_E4M3)
        """
        if isinstance(value, cls):
            return value
        name = value.name if isinstance(value, Enum) else str(value)
        element = format_of(name.lower())
        for member in cls:
            if member.format == element:
                return member
        names = ", ".join(member.name.lower() for member in cls)
        raise FormatError(f"ttnn does not support {element}; convert to one of {names}")

    def __repr__(self) -> str:
        return f"DataType.{self.name}"


DataTypeLike: TypeAlias = DataType | Enum | Format | str


class StorageType(NamedEnum):
    """Where a tensor's bytes are: on the host, owned or borrowed from an array, or on a device.

    ttnn once had a type for owned and one for borrowed host storage, and now has HOST for both: each of the two equals
    HOST, and is printed so, and they do not equal each other.

    >>> StorageType.OWNED_HOST == StorageType.HOST, StorageType.OWNED_HOST == StorageType.BORROWED_HOST
    (True, False)
    >>> print(StorageType.OWNED_HOST)
    StorageType.HOST
    """

    HOST = 0
    DEVICE = 1
    OWNED_HOST = 2
    BORROWED_HOST = 3

    @classmethod
    def of(cls, value: Enum | str) -> StorageType:
        """Return the member that `value` is or names, such as the storage of a native tensor.

        >>> from tilewright import tensor
        >>> StorageType.of(tensor.StorageType.BORROWED_HOST)
        StorageType.BORROWED_HOST
        """
        return super().of(value)

    @property
    def is_host(self) -> bool:
        """Whether the bytes are on the host.

        >>> StorageType.BORROWED_HOST.is_host
        True
        """
        return self is not StorageType.DEVICE

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StorageType):
            return NotImplemented
        both_host = self.is_host and other.is_host
        return self is other or (both_host and "HOST" in (self.name, other.name))

    def __hash__(self) -> int:
        return hash(self.is_host)

    def __str__(self) -> str:
        return "StorageType.HOST" if self.is_host else repr(self)


class ShardShapeAlignment(NamedEnum):
    """How shard shapes are rounded up: not at all, to whole tiles, or also to rows of 64 bytes.

    >>> ShardShapeAlignment.RECOMMENDED.value
    2
    """

    NONE = 0
    REQUIRED = 1
    RECOMMENDED = 2

    def __str__(self) -> str:
        return repr(self)


class DumpTensorMode(NamedEnum):
    """How a tensor on several hosts is written: gathered into one file, or one file per host. Here there is one host.

    >>> DumpTensorMode.LOCAL
    DumpTensorMode.LOCAL
    """

    DISTRIBUTED_GATHER = 0
    LOCAL = 1

    def __str__(self) -> str:
        return repr(self)


def width_multiple(dtype: DataTypeLike) -> int:
    """Return the multiple for row widths of `dtype` on a device: four bytes, or a tile for block formats.

    >>> width_multiple("bfloat16"), width_multiple("float32"), width_multiple("bfloat8_b")
    (2, 1, 32)
    """
    return row_width_multiple(TensorSpec((1, 1), DataType.of(dtype).format))


uint8, uint16, uint32 = DataType.UINT8, DataType.UINT16, DataType.UINT32
int8, int32 = DataType.INT8, DataType.INT32
float32, bfloat16 = DataType.FLOAT32, DataType.BFLOAT16
bfloat8_b, bfloat4_b = DataType.BFLOAT8_B, DataType.BFLOAT4_B
fp8_e4m3 = DataType.FP8_E4M3
ROW_MAJOR_LAYOUT, TILE_LAYOUT = Layout.ROW_MAJOR, Layout.TILE
OWNED_HOST_STORAGE, BORROWED_HOST_STORAGE = StorageType.OWNED_HOST, StorageType.BORROWED_HOST
DEVICE_STORAGE = DEVICE_STORAGE_TYPE = StorageType.DEVICE
WIDTH_MULTIPLES = {dtype: width_multiple(dtype) for dtype in DataType}


# Cores, ranges, sets and grids of cores under ttnn's names, printed as ttnn prints them; and work split over cores.


class CoreCoord(memory.CoreCoord):
    """A core: column x and row y; it compares equal to the pair (x, y).

    >>> CoreCoord(7, 3), CoreCoord(7, 3) == (7, 3)
    (7-3, True)
    """

    __slots__ = ()

    def __new__(cls, x: int, y: int) -> CoreCoord:
        """Return the core of column `x` and row `y`, whole numbers from 0."""
        return super().__new__(cls, *memory.CoreCoord.of((x, y)))

    def to_json(self) -> str:
        """Return the core as JSON.

        >>> CoreCoord(7, 3).to_json()
        '{"x":7,"y":3}'
        """
        return ttnn_json(self)

    def __repr__(self) -> str:
        return f"{self.x}-{self.y}"

    __str__ = __repr__


class CoreRange(JsonWrapper[memory.CoreRange]):
    """A rectangle of cores from `start` to `end`, both included.

    >>> CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))
    [0-0 - 3-1]
    """

    __slots__ = ()

    def __init__(self, start: CoreLike, end: CoreLike | None = None) -> None:
        self.native = memory.CoreRange(start, end)

    @property
    def start(self) -> CoreCoord:
        """The first core.

        >>> CoreRange((1, 0), (3, 1)).start
        1-0
        """
        return CoreCoord(*self.native.start)

    @property
    def end(self) -> CoreCoord:
        """The last core.

        >>> CoreRange((1, 0), (3, 1)).end
        3-1
        """
        return CoreCoord(*self.native.end)

    def grid_size(self) -> CoreCoord:
        """Return the columns and rows.

        >>> CoreRange((1, 0), (3, 1)).grid_size()
        3-2
        """
        return CoreCoord(self.native.width, self.native.height)

    def contains(self, cores: CoreLike | CoresLike) -> bool:
        """Return whether all `cores` (one core, a range, or a set of ranges) are in the range.

        >>> CoreRange((0, 0), (3, 1)).contains(CoreRange((1, 1), (2, 1)))
        True
        """
        return CoreRangeSet(self).contains(cores)


class CoreRangeSet(JsonWrapper[memory.CoreRangeSet]):
    """Ranges of cores that do not overlap, in the order of `core_ranges`; a Python set of them is sorted.

    >>> CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))]).num_cores()
    8
    """

    __slots__ = ()

    def __init__(self, core_ranges: CoreRange | CoreRangeSet | Iterable[CoreRange | memory.CoreRange]) -> None:
        ranges = unwrap(core_ranges)
        if isinstance(ranges, memory.CoreRange):
            ranges = [ranges]
        collection = set if isinstance(ranges, (set, frozenset)) else list  # a set is sorted
        self.native = (
            ranges if isinstance(ranges, memory.CoreRangeSet) else memory.CoreRangeSet(collection(map(unwrap, ranges)))
        )

    def ranges(self) -> list[CoreRange]:
        """Return the ranges in order.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).ranges()
        [[0-0 - 3-1]]
        """
        return list(map(CoreRange.wrap, self.native.ranges))

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).num_cores()
        8
        """
        return self.native.num_cores

    def size(self) -> int:
        """Return the number of ranges.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).size()
        1
        """
        return len(self.native)

    def empty(self) -> bool:
        """Return whether the set has no ranges.

        >>> CoreRangeSet([]).empty()
        True
        """
        return not self.native.ranges

    def bounding_box(self) -> CoreRange:
        """Return the smallest range that contains all cores.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1)), CoreRange((5, 5), (5, 5))]).bounding_box()
        [0-0 - 5-5]
        """
        return CoreRange.wrap(self.native.bounding_box)

    def contains(self, cores: CoreLike | CoresLike) -> bool:
        """Return whether all `cores` (one core, a range, or a set of ranges) are in the set.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).contains(CoreCoord(4, 0))
        False
        """
        if isinstance(cores, tuple):
            return memory.CoreCoord.of(cores) in self.native.cores()
        return set(memory.CoreRangeSet.of(unwrap(cores)).cores()) <= set(self.native.cores())

    def __iter__(self) -> Iterator[CoreRange]:
        return iter(self.ranges())

    def __len__(self) -> int:
        return len(self.native)


class CoreGrid(memory.CoreGrid):
    """A grid of `y` rows and `x` columns of cores, from (0, 0).

    >>> CoreGrid(y=2, x=3), CoreGrid(y=2, x=3).num_cores
    (ttnn.CoreGrid(x=3, y=2), 6)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return (self.y, self.x) == (other.y, other.x) if isinstance(other, memory.CoreGrid) else NotImplemented

    __hash__ = memory.CoreGrid.__hash__

    def __repr__(self) -> str:
        return f"ttnn.CoreGrid(x={self.x}, y={self.y})"


CoresLike: TypeAlias = CoreRangeSet | CoreRange | native_cores.CoresLike
GridLike: TypeAlias = memory.CoreGrid | CoreLike


def num_cores_to_corerangeset(target_num_cores: int, grid_size: GridLike, row_wise: bool = False) -> CoreRangeSet:
    """Return the first `target_num_cores` cores of `grid_size`, row by row (`row_wise`) or column by column.

    >>> num_cores_to_corerangeset(10, CoreCoord(8, 8), row_wise=True).ranges()
    [[0-0 - 7-0], [0-1 - 1-1]]
    """
    return CoreRangeSet.wrap(first_cores(target_num_cores, grid_size, row_wise))


def split_work_to_cores(
    grid_size: GridLike, units_to_divide: int, row_wise: bool = False
) -> tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]:
    """Return `units_to_divide` split evenly over `grid_size`, row by row (`row_wise`) or column by column.

    The result is (number of cores, all cores, cores with one unit more, the other cores, units per core of both).

    >>> count, _, more, fewer, units_of_more, units_of_fewer = split_work_to_cores(CoreCoord(8, 8), 100)
    >>> count, more.num_cores(), units_of_more, fewer.num_cores(), units_of_fewer
    (64, 36, 2, 28, 1)
    """
    across, down = grid_extents(grid_size)
    if units_to_divide < 0:
        raise MemoryConfigError(f"expected at least 0 units of work, got {units_to_divide}")
    none = CoreRangeSet([])
    if units_to_divide == 0:
        return 0, none, none, none, 0, 0
    count = min(units_to_divide, across * down)
    all_cores = num_cores_to_corerangeset(count, grid_size, row_wise)
    per_core, remainder = divmod(units_to_divide, count)
    if not remainder:
        return count, all_cores, all_cores, none, per_core, 0
    line, along = divmod(remainder, across if row_wise else down)
    start = (along, line) if row_wise else (line, along)
    more = num_cores_to_corerangeset(remainder, grid_size, row_wise)
    fewer = CoreRangeSet.wrap(first_cores(count - remainder, grid_size, row_wise, start))
    return count, all_cores, more, fewer, per_core + 1, per_core


def corerange_to_cores(
    core_range_set: CoresLike, max_cores: int | None = None, row_wise: bool = False
) -> list[CoreCoord]:
    """Return the cores of `core_range_set`, row by row (`row_wise`) or column by column; at most `max_cores`.

    >>> corerange_to_cores(CoreRangeSet([CoreRange((0, 0), (1, 0))]), row_wise=True)
    [0-0, 1-0]
    """
    cores = memory.CoreRangeSet.of(unwrap(core_range_set)).cores(row_wise)
    return [CoreCoord(*core) for core in cores[:max_cores]]


# The values that describe a mesh: its shape, the coordinates of its devices, placements, and `TensorTopology`.


class MeshIntegers(tuple[int, ...]):
    """Integers, outermost first, that print as ttnn prints them: the base of shapes and coordinates of meshes.

    >>> MeshIntegers(2, 4), MeshIntegers([2, 4]) == (2, 4)
    (MeshIntegers([2, 4]), True)
    """

    __slots__ = ()

    def __new__(cls, *values: int | Iterable[int]) -> Self:
        """Return the integers, given one by one or as a sequence."""
        only = values[0] if len(values) == 1 else values
        entries = tuple(only) if isinstance(only, Iterable) else (only,)
        integers = tuple([int(as_integer(n, f"an entry of {cls.__name__}")) for n in entries])
        if not integers or any(n < 0 for n in integers):
            raise LayoutError(f"expected one or more integers of 0 or more for {cls.__name__}, got {list(integers)}")
        return super().__new__(cls, integers)

    def __getnewargs__(self) -> tuple[tuple[int, ...]]:
        return (tuple(self),)

    def dims(self) -> int:
        """Return the number of dimensions.

        >>> MeshShape(2, 4).dims()
        2
        """
        return len(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"


class MeshShape(MeshIntegers):
    """The shape of a mesh of devices: rows and columns, or any number of dimensions.

    >>> MeshShape(2, 4), MeshShape((2, 4)).mesh_size()
    (MeshShape([2, 4]), 8)
    """

    __slots__ = ()

    def mesh_size(self) -> int:
        """Return the number of devices.

        >>> MeshShape(2, 4).mesh_size()
        8
        """
        return prod(self)

    def coordinates(self) -> Iterator[MeshCoordinate]:
        """Return the coordinates of all devices, the last dimension fastest.

        >>> list(MeshShape(1, 2).coordinates())
        [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
        """
        return map(MeshCoordinate, product(*[range(n) for n in self]))


class MeshCoordinate(MeshIntegers):
    """The coordinate of a device in a mesh.

    >>> MeshCoordinate(0, 1)[1]
    1
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PlacementShard:
    """A dimension of the mesh that cuts the tensor along its dimension `dim`.

    >>> PlacementShard(-1).dim
    -1
    """

    dim: int

    def __repr__(self) -> str:
        return f"PlacementShard({self.dim})"


@dataclass(frozen=True, slots=True)
class PlacementReplicate:
    """A dimension of the mesh along which all devices hold the same.

    >>> PlacementReplicate()
    PlacementReplicate()
    """


Placement: TypeAlias = PlacementShard | PlacementReplicate


def placement_of_cut(cut: int | None) -> Placement:
    """Return the placement that cuts dimension `cut`, or replicates if it is None.

    >>> placement_of_cut(2), placement_of_cut(None)
    (PlacementShard(2), PlacementReplicate())
    """
    return PlacementReplicate() if cut is None else PlacementShard(cut)


def cut_of_placement(placement: Placement) -> int | None:
    """Return the dimension that `placement` cuts, None if it replicates.

    >>> cut_of_placement(PlacementShard(2)), cut_of_placement(PlacementReplicate())
    (2, None)
    """
    if isinstance(placement, PlacementReplicate):
        return None
    if isinstance(placement, PlacementShard):
        return placement.dim
    raise LayoutError(f"expected PlacementShard(dim) or PlacementReplicate() as placement, got {placement!r:.60}")


class TensorTopology(Wrapper[Topology]):
    """How the devices of a mesh share a tensor.

    Args:
        distribution_shape: how many parts there are, per dimension of the distribution.
        placements: the placement of each dimension of the distribution: `PlacementShard(dim)` or
        `PlacementReplicate()`. mesh_coords: the device of each part, the last dimension of the distribution fastest.

    >>> topology = TensorTopology(MeshShape([2]), [PlacementShard(0)], [MeshCoordinate(0, 0), MeshCoordinate(0, 1)])
    >>> topology.placements()
    [PlacementShard(0)]
    """

    __slots__ = ()

    def __init__(
        self, distribution_shape: Sequence[int], placements: Sequence[Placement], mesh_coords: Sequence[Sequence[int]]
    ) -> None:
        shape = MeshShape(distribution_shape)
        cuts = tuple([cut_of_placement(placement) for placement in placements])
        if len(cuts) != len(shape):
            raise LayoutError(f"{shape} needs {len(shape)} placements, got {list(placements)}")
        self.native = Topology(tuple(shape), cuts, tuple([tuple(MeshCoordinate(at)) for at in mesh_coords]))

    def distribution_shape(self) -> MeshShape:
        """Return how many parts there are, per dimension of the distribution.

        >>> TensorTopology((2,), [PlacementReplicate()], [(0, 0), (0, 1)]).distribution_shape()
        MeshShape([2])
        """
        return MeshShape(self.native.distribution)

    def placements(self) -> list[Placement]:
        """Return the placement of each dimension of the distribution.

        >>> TensorTopology((2,), [PlacementReplicate()], [(0, 0), (0, 1)]).placements()
        [PlacementReplicate()]
        """
        return [placement_of_cut(cut) for cut in self.native.placements]

    def mesh_coords(self) -> list[MeshCoordinate]:
        """Return the devices, in the order of the distribution.

        >>> TensorTopology((2,), [PlacementReplicate()], [(0, 0), (0, 1)]).mesh_coords()
        [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
        """
        return [MeshCoordinate(at) for at in self.native.coordinates]

    def __repr__(self) -> str:
        return f"TensorTopology({self.distribution_shape()}, {self.placements()}, {self.mesh_coords()})"
