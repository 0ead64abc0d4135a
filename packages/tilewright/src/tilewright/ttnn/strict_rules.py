# SPDX-License-Identifier: Apache-2.0
"""The rules of Tenstorrent's pages on tensors that ttnn itself has dropped since; `strict` brings them back.

Shapes have ranks from 1 to 8. The data types are uint16, uint32, float32, bfloat16 and bfloat8_b. Tiles are 32 x 32. On
a device, rows take at least 4 bytes. Buffers are in DRAM or L1. Shards are in L1, one on each core, and are cut by
height, by width or as blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil, prod

from .. import memory
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..memory import BufferType, TensorMemoryLayout, row_width_multiple

__all__ = ["strict"]

MAX_RANK = 8
DATA_TYPES = ("uint16", "uint32", "float32", "bfloat16", "bfloat8_b")
_RULES = "the rules of Tenstorrent's pages (ttnn.strict)"
_strict = ContextVar("strict", default=False)


@contextmanager
def strict(enabled: bool = True) -> Iterator[None]:
    """Enforce, within a with block, the rules of Tenstorrent's pages on tensors that ttnn no longer checks.

    Args:
        enabled: whether the rules hold in the block; False switches them off within another block.

    >>> from tilewright.ttnn import Shape, Tile
    >>> with strict():
    ...     Tile((16, 32))
    Traceback (most recent call last):
    tilewright.errors.MemoryConfigError: the rules of Tenstorrent's pages (ttnn.strict) allow tiles of 32 x 32 only...
    """
    token = _strict.set(enabled)
    try:
        yield
    finally:
        _strict.reset(token)


def check_shape(extents: Sequence[int]) -> None:
    """Raise in strict mode unless a shape has a rank from 1 to 8.

    >>> check_shape((1,) * 9)
    """
    if _strict.get() and not 1 <= len(extents) <= MAX_RANK:
        raise LayoutError(f"{_RULES} allow ranks from 1 to {MAX_RANK}, got {len(extents)}; reshape {list(extents)}")


def check_tile(tile: memory.Tile) -> None:
    """Raise in strict mode unless a tile is 32 x 32.

    >>> check_tile(memory.Tile((16, 32)))
    """
    if _strict.get() and tile.shape != (32, 32):
        raise MemoryConfigError(
            f"{_RULES} allow tiles of 32 x 32 only, got {tile.shape[0]} x {tile.shape[1]}; leave the tile out"
        )


def check_memory(config: memory.MemoryConfig) -> None:
    """Raise in strict mode unless a buffer is in DRAM or L1, and shards are in L1.

    >>> check_memory(memory.MemoryConfig("interleaved", "l1"))
    """
    if not _strict.get():
        return
    if config.buffer_type not in (BufferType.DRAM, BufferType.L1):
        raise MemoryConfigError(
            f"{_RULES} allow buffers in DRAM or L1 only, got {config.buffer_type}; use one of these"
        )
    if config.is_sharded and config.buffer_type is not BufferType.L1:
        raise MemoryConfigError(f"{_RULES} allow shards in L1 only, got {config.buffer_type}; use BufferType.L1")
    if config.memory_layout is TensorMemoryLayout.ND_SHARDED:
        raise MemoryConfigError(
            f"{_RULES} cut shards by height, by width or as blocks, got shards of any rank; use ShardSpec"
        )


def check_spec(spec: memory.TensorSpec, on_device: bool) -> None:
    """Raise in strict mode unless a tensor has a listed rank, type, tile, memory and, on a device, row width.

    >>> check_spec(memory.TensorSpec((5, 3), "bfloat16"), on_device=True)
    """
    if not _strict.get():
        return
    check_shape(spec.shape.logical)
    if spec.dtype.name not in DATA_TYPES:
        raise FormatError(f"{_RULES} allow {', '.join(DATA_TYPES)}, got {spec.dtype}; convert it to one of these")
    if spec.is_tiled:
        check_tile(spec.tile)
    check_memory(spec.memory)
    width, multiple = spec.shape.logical[-1], row_width_multiple(spec)
    if on_device and not spec.is_tiled and width % multiple:
        raise LayoutError(
            f"{_RULES} ask for rows of at least 4 bytes on a device, so that widths of {spec.dtype} are multiples of"
            f" {multiple}, got {width}; pad it to {ceil(width / multiple) * multiple}, or use tiles"
        )
    shards = spec.memory.sharding
    if shards is not None:
        folded = (prod(spec.padded_shape[:-1]), spec.padded_shape[-1])
        shape = (prod(shards.shape[:-1]), shards.shape[-1])
        count = prod([ceil(n / part) for n, part in zip(folded, shape, strict=True)])
        if count > shards.grid.num_cores:
            raise MemoryConfigError(
                f"{_RULES} allow one shard on each core, got {count} shards for {shards.grid.num_cores} cores; use more"
                " cores or larger shards"
            )
