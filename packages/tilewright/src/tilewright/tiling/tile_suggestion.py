# SPDX-License-Identifier: Apache-2.0
"""`suggest_tile`: the tile that fits a memory limit at the lowest cost, for arrays in memory and in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._integers import round_up
from ..copying import CACHE_LINE
from ..errors import TransferError
from .array_store import chunk_shape, read_chunk_shape
from .chunk_tiles import ChunkGrids
from .schedule import buffer_bytes
from .tiler import Extents, Margins, as_extents, as_margins

DEFAULT_LIMIT = 8 << 20
"""Bytes of buffers by default: tiles then stay near the caches of one core."""

STORE_LIMIT = 256 << 20
"""Bytes of buffers and cached chunks by default, where arrays are stored in chunks."""

CACHED_TILE = 1 << 20
"""Bytes up to which a tile stays in the caches between its import, its compute and its export."""

SHORT_ROW = 1536
"""Bytes of a row that cost as much as starting it does: processors prefetch within a page, so long rows are faster."""

ElementSizes = tuple[list[int], list[int]]
"""Bytes of an element of each input, and of each output."""


@dataclass(frozen=True, slots=True)
class TileSuggestion:
    """A tile and a depth, the bytes of buffers they take, and the reason.

    >>> TileSuggestion((256, 256), 2, 1 << 20, "because").tile
    (256, 256)
    """

    tile: tuple[int, ...]
    depth: int
    buffer_bytes: int
    why: str


def suggest_tile(
    space: Extents,
    inputs: Sequence[Any] = ("float32",),
    outputs: Sequence[Any] = ("float32",),
    memory_limit: int | None = None,
    halo: Margins = 0,
    scheme: str = "double",
    depth: int | None = None,
) -> TileSuggestion:
    """Return the output tile that fits a memory limit at the lowest cost, and the reason.

    The cost counts halos, which are read twice, short rows, and tiles that exceed the caches. Where an input or output
    is stored in chunks, tiles consist of whole chunks of the outputs, and of the inputs as far as memory allows:
    chunks are then decoded and encoded once.

    Args:
        space: the extents to cut.
        inputs: the dtypes of the inputs, or the arrays themselves, whose chunks then count.
        outputs: the dtypes of the outputs, or the arrays.
        memory_limit: the most bytes that buffers may take; by default 8 MiB, and 256 MiB for arrays in chunks, which
            also hold decoded chunks.
        halo: how far an input tile extends beyond its output tile, as an augmentation of `Tiler`.
        scheme: the buffering scheme of the pipeline.
        depth: the depth of "buffered" and "direct"; less where memory is short.

    >>> suggest_tile((4096, 4096), memory_limit=2 << 20).tile
    (32, 4096)
    >>> print(suggest_tile((4096, 4096), memory_limit=2 << 20, halo=8).why)
    55 x 2048 tiles: 2073472 of 2097152 bytes for double buffering, halos add 30 % to the reads, rows of 8192 bytes
    """
    extents = as_extents(space, "space")
    margins = as_margins(halo, "halo", len(extents))
    halos = tuple([before + after for before, after in margins])
    sizes = [_element_size(item) for item in inputs], [_element_size(item) for item in outputs]
    depth = depth or 3
    grids = _find_chunks(extents, margins, inputs, outputs)
    if grids.units is not None:
        suggestion = _suggest_whole_chunks(grids, halos, sizes, scheme, depth, memory_limit)
        if suggestion is not None:
            return suggestion
    limit = DEFAULT_LIMIT if memory_limit is None else memory_limit
    tile = _cheapest_tile(extents, halos, sizes, scheme, depth, limit)
    nbytes = _buffer_bytes(tile, halos, sizes, scheme, depth)
    extra = prod((t + n) / t for t, n in zip(tile, halos, strict=True)) - 1
    halo_text = f", halos add {extra:.0%} to the reads".replace("%", " %") if extra else ""
    row = tile[-1] * max(*sizes[0], *sizes[1], 1)
    why = (
        f"{' x '.join(map(str, tile))} tiles: {nbytes} of {limit} bytes for {scheme} buffering{halo_text},"
        f" rows of {row} bytes"
    )
    if grids.units is not None:
        why += "; too little memory for whole chunks, so some are read and written several times"
    return TileSuggestion(tile, _used_depth(scheme, depth), nbytes, why)


def fit_depth(
    tile: tuple[int, ...],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    memory_limit: int,
    halo: tuple[tuple[int, int], ...],
    scheme: str,
    depth: int,
) -> int:
    """Return the largest depth up to `depth` whose buffers take half of a limit, or 1; the rest holds chunks.

    >>> fit_depth((64, 64), ["float32"], ["float32"], 1 << 20, ((0, 0), (0, 0)), "buffered", 99)
    16
    """
    sizes = [_element_size(item) for item in inputs], [_element_size(item) for item in outputs]
    halos = tuple([before + after for before, after in halo])
    return max(1, min(depth, memory_limit // max(1, 2 * _buffer_bytes(tile, halos, sizes, scheme, 1))))


def read_amplification(source: Any, target: Any, tile: tuple[int, ...], spare: int) -> float:
    """Return how often chunks of a source are decoded for tiles without a halo, if `spare` bytes hold chunks.

    >>> read_amplification(np.zeros((4, 4)), np.zeros((4, 4)), (2, 2), 0)
    1.0
    """
    extents = tuple([int(n) for n in source.shape])
    grids = _find_chunks(extents, ((0, 0),) * len(extents), [source], [target])
    return grids.amplification(tile, spare)


def _find_chunks(
    extents: tuple[int, ...], margins: tuple[tuple[int, int], ...], inputs: Sequence[Any], outputs: Sequence[Any]
) -> ChunkGrids:
    reads = [(chunks, _element_size(item)) for item in inputs if (chunks := read_chunk_shape(item))]
    writes = [(chunks, _element_size(item)) for item in outputs if (chunks := chunk_shape(item))]
    return ChunkGrids(extents, margins, reads, writes)


def _element_size(item: Any) -> int:
    """Return the bytes of an element of a dtype, or of an array."""
    dtype: Any = item.dtype if hasattr(item, "shape") and hasattr(item, "dtype") else item
    return int(np.dtype(dtype).itemsize)


def _used_depth(scheme: str, depth: int) -> int:
    return depth if scheme in ("buffered", "direct") else 2


def _suggest_whole_chunks(
    grids: ChunkGrids, halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int, memory_limit: int | None
) -> TileSuggestion | None:
    """Return the cheapest tile of whole chunks; None if not even one chunk fits the limit."""
    limit = STORE_LIMIT if memory_limit is None else memory_limit
    depths = range(depth, 0, -1) if scheme in ("buffered", "direct") else [depth]
    for tried in depths:
        decoding = _used_depth(scheme, tried) * grids.decoded_bytes
        best: tuple[float, tuple[int, ...]] | None = None
        for tile in grids.candidates():
            spare = limit - _buffer_bytes(tile, halos, sizes, scheme, tried) - decoding
            if spare < 0:
                continue
            cost = grids.cost(tile, spare, _used_depth(scheme, tried))
            if best is None or cost < best[0]:
                best = (cost, tile)
        if best is not None:
            break
    else:
        if memory_limit is not None or grids.units is None:
            return None
        tried, best = 1, (0.0, grids.units)  # nobody has set a limit, and a store cannot do with less
    tile = best[1]
    nbytes = _buffer_bytes(tile, halos, sizes, scheme, tried)
    spare = max(0, limit - nbytes - _used_depth(scheme, tried) * grids.decoded_bytes)
    why = (
        f"{' x '.join(map(str, tile))} tiles, {grids.describe(tile)}: {nbytes} of {limit} bytes for {scheme} buffering,"
        f" every chunk is decoded {grids.amplification(tile, spare):.3g} times"
    )
    return TileSuggestion(tile, _used_depth(scheme, tried), nbytes, why)


def _cheapest_tile(
    extents: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int, limit: int
) -> tuple[int, ...]:
    """Return the tile of arrays in memory that fits a limit at the lowest cost."""
    best: tuple[float, tuple[int, ...]] | None = None
    for tile in _candidate_tiles(extents, halos, sizes, scheme, depth, limit):
        cost = _transfer_cost(tile, halos, sizes)
        if best is None or cost < best[0]:
            best = (cost, tile)
    if best is None:
        least = _buffer_bytes((1,) * len(extents), halos, sizes, scheme, depth)
        raise TransferError(
            f"tiles of one element with this halo take {least} bytes with {scheme} buffering, the limit is"
            f" {limit}; raise the limit, or use a scheme with fewer buffers"
        )
    return best[1]


def _buffer_bytes(tile: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int) -> int:
    """Return the bytes of buffers that a tile takes, each rounded up to a cache line."""
    padded = prod([t + n for t, n in zip(tile, halos, strict=True)])
    read = [round_up(padded * size, CACHE_LINE) for size in sizes[0]]
    return buffer_bytes(scheme, depth, read, [round_up(prod(tile) * size, CACHE_LINE) for size in sizes[1]])


def _candidate_tiles(
    space: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int, limit: int
) -> Iterator[tuple[int, ...]]:
    """Yield, for each row width and each power-of-two share of the limit, the largest tile that fits."""
    for width in _row_widths(space[-1]):
        budget = limit
        while budget:

            def fits(tile: tuple[int, ...], budget: int = budget) -> bool:
                return _buffer_bytes(tile, halos, sizes, scheme, depth) <= budget

            tile = _grow_tile(space, width, fits)
            if tile is None:
                break
            yield tile
            budget //= 2


def _grow_tile(space: tuple[int, ...], width: int, fits: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...] | None:
    """Return the largest tile of a width that fits, grown from the inner axes outwards; None if no row fits."""
    tile = [1] * len(space)
    tile[-1] = width
    if not fits(tuple(tile)):
        return None
    for axis in reversed(range(len(space) - 1)):
        low, high = 1, max(1, space[axis])
        while low < high:
            tile[axis] = (low + high + 1) // 2
            if fits(tuple(tile)):
                low = tile[axis]
            else:
                high = tile[axis] - 1
        tiles = -(-space[axis] // low)
        tile[axis] = max(1, -(-space[axis] // max(1, tiles)))  # the same number of tiles, without a thin last one
    return tuple(tile)


def _row_widths(space: int) -> Iterator[int]:
    """Yield the full row and its halves, quarters and so on: widths that leave no thin last tile."""
    width = max(1, space)
    while True:
        yield width
        if width == 1:
            return
        width = -(-width // 2)


def _transfer_cost(tile: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes) -> float:
    """Return the relative cost per element: halos, short rows, and tiles that are small or exceed the caches."""
    size = max(*sizes[0], *sizes[1], 1)
    nbytes = prod(tile) * size
    read = prod((t + n) / t for t, n in zip(tile, halos, strict=True))
    rows = 1 + SHORT_ROW / (tile[-1] * size)
    handling = 1 + (64 << 10) / nbytes
    memory = 1 if nbytes <= CACHED_TILE else 1.3
    return float(read * rows * handling * memory)
