# SPDX-License-Identifier: Apache-2.0
"""The enums of ttnn and their constants: data types, layouts, storage types, shard alignments."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from ..errors import FormatError
from ..formats import Format, format_of
from ..memory import PageLayout, TensorSpec, row_width_multiple
from ..tensor import StorageType as TensorStorage


class DataType(Enum):
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


class StorageType(Enum):
    """Where a tensor's bytes are. The older names OWNED_HOST and BORROWED_HOST mean HOST.

    >>> StorageType.OWNED_HOST is StorageType.HOST
    True
    """

    HOST = 0
    DEVICE = 1
    OWNED_HOST = 0  # noqa: PIE796  (older names of HOST)
    BORROWED_HOST = 0  # noqa: PIE796

    @classmethod
    def of(cls, storage: TensorStorage) -> StorageType:
        """Return `storage` of a core tensor as ttnn names it.

        >>> StorageType.of(TensorStorage.BORROWED_HOST)
        <StorageType.HOST: 0>
        """
        return cls.HOST if storage.is_host else cls.DEVICE


class ShardShapeAlignment(Enum):
    """How shard shapes are rounded up: not at all, to whole tiles, or also to rows of 64 bytes.

    >>> ShardShapeAlignment.RECOMMENDED.value
    2
    """

    NONE = 0
    REQUIRED = 1
    RECOMMENDED = 2


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
ROW_MAJOR_LAYOUT, TILE_LAYOUT = PageLayout.ROW_MAJOR, PageLayout.TILE
OWNED_HOST_STORAGE, BORROWED_HOST_STORAGE = StorageType.OWNED_HOST, StorageType.BORROWED_HOST
DEVICE_STORAGE = DEVICE_STORAGE_TYPE = StorageType.DEVICE
WIDTH_MULTIPLES = {dtype: width_multiple(dtype) for dtype in DataType}
