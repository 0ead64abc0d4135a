# SPDX-License-Identifier: Apache-2.0
"""The named choices of a memory configuration, with the numbers that files store for them."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from ..errors import MemoryConfigError

_Choice = TypeVar("_Choice", bound="Choice")


class Choice(Enum):
    """An enumeration whose members can be given by name, in any case.

    >>> BufferType.of("l1"), BufferType.of(BufferType.DRAM)
    (BufferType.L1, BufferType.DRAM)
    """

    @classmethod
    def of(cls: type[_Choice], value: Any) -> _Choice:
        """Return the member that value is or names.

        >>> ShardOrientation.of("col_major")
        ShardOrientation.COL_MAJOR
        """
        if isinstance(value, cls):
            return value
        name = value.name if isinstance(value, Enum) else value  # other libraries' enumerations use the same names
        if isinstance(name, str) and name.upper() in cls.__members__:
            return cls[name.upper()]
        known = ", ".join(member.lower() for member in cls.__members__)
        raise MemoryConfigError(f"{value!r} is no {cls.__name__}; choose one of {known}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


class TensorLayout(Choice):
    """How elements form pages: rows, or tiles.

    >>> TensorLayout.of("tile")
    TensorLayout.TILE
    """

    ROW_MAJOR = 0
    TILE = 1


class BufferType(Choice):
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
        """Return whether the buffer lies in the cores' own memory.

        >>> BufferType.TRACE.is_l1
        False
        """
        return self in (BufferType.L1, BufferType.L1_SMALL)


class TensorMemoryLayout(Choice):
    """How pages are spread over banks or cores.

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
        """Return whether pages are gathered in shards.

        >>> TensorMemoryLayout.INTERLEAVED.is_sharded
        False
        """
        return self is not TensorMemoryLayout.INTERLEAVED


class ShardStrategy(Choice):
    """Which way a matrix is cut into shards.

    >>> ShardStrategy.BLOCK.memory_layout
    TensorMemoryLayout.BLOCK_SHARDED
    """

    HEIGHT = 0
    WIDTH = 1
    BLOCK = 2

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """Return the memory layout that the strategy leads to.

        >>> ShardStrategy.HEIGHT.memory_layout
        TensorMemoryLayout.HEIGHT_SHARDED
        """
        return TensorMemoryLayout[f"{self.name}_SHARDED"]


class ShardOrientation(Choice):
    """The order in which shards visit the cores of a range: along rows, or down columns.

    >>> ShardOrientation.ROW_MAJOR.value
    0
    """

    ROW_MAJOR = 0
    COL_MAJOR = 1


class ShardDistribution(Choice):
    """How shards are dealt to cores: in turn, on a grid of the same form, or in runs of equal length.

    >>> ShardDistribution.of("contiguous_1d").value
    2
    """

    ROUND_ROBIN_1D = 0
    GRID_2D = 1
    CONTIGUOUS_1D = 2
