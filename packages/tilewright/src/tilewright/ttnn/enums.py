# SPDX-License-Identifier: Apache-2.0
"""The enums of ttnn, printed as ttnn prints them, and their constants: data types, layouts, memories, storage types.

A member equals that of the core that it stands for, and either can be given wherever one is expected.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from .. import memory
from ..errors import FormatError
from ..formats import Format, format_of
from ..memory import TensorSpec, row_width_multiple
from ..memory.memory_config import HelpfulEnum, NamedEnum


class TtnnEnum(NamedEnum):
    """An enum of ttnn that stands for one of the core, whose members are `plain`.

    >>> Layout.TILE.plain, Layout.TILE == memory.PageLayout.TILE, str(Layout.TILE), cpp_name(Layout.TILE)
    (PageLayout.TILE, True, 'Layout.TILE', 'Layout::TILE')
    """

    @property
    def plain(self) -> NamedEnum:
        """Return the member of the core.

        >>> BufferType.L1.plain is memory.BufferType.L1
        True
        """
        return _CORE_ENUMS[type(self).__name__][self.name]

    def __eq__(self, other: object) -> bool:
        return self is other or self.plain is other

    def __hash__(self) -> int:
        return hash(self.plain)

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


# What is taken where one of these is expected: a member, that of the core, or its name.
LayoutLike: TypeAlias = Layout | memory.PageLayout | str
BufferTypeLike: TypeAlias = BufferType | memory.BufferType | str
MemoryLayoutLike: TypeAlias = TensorMemoryLayout | memory.TensorMemoryLayout | str
OrientationLike: TypeAlias = ShardOrientation | memory.ShardOrientation | str
DistributionLike: TypeAlias = ShardDistributionStrategy | memory.ShardDistribution | str

_CORE_ENUMS: dict[str, type[NamedEnum]] = {
    "Layout": memory.PageLayout,
    "BufferType": memory.BufferType,
    "TensorMemoryLayout": memory.TensorMemoryLayout,
    "ShardOrientation": memory.ShardOrientation,
    "ShardStrategy": memory.ShardStrategy,
    "ShardDistributionStrategy": memory.ShardDistribution,
}


def cpp_name(member: Enum) -> str:
    """Return a `member` of an enum as C++ writes it, which is how ttnn writes it inside longer texts.

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
        """Return the number format of the core.

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
        """Return the member that `value` is or names, such as the storage of a core tensor.

        >>> from tilewright import tensor
        >>> StorageType.of(tensor.StorageType.BORROWED_HOST)
        StorageType.BORROWED_HOST
        """
        return super().of(value)

    @property
    def is_host(self) -> bool:
        """Return whether the bytes are on the host.

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
    """Return what row widths of `dtype` should be a multiple of on a device: four bytes, or a tile for block formats.

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
