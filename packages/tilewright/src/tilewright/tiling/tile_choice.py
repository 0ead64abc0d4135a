# SPDX-License-Identifier: Apache-2.0
"""The tile that fits a memory limit at the lowest cost, for arrays in memory and in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import product
from math import lcm, log2, prod
from typing import Any, NamedTuple

import numpy as np

from .._integers import round_up
from ..copying import CACHE_LINE
from ..errors import TransferError
from .schedule import buffer_bytes
from .stores import chunk_shape, read_chunk_shape
from .tiler import Extents, Margins, as_extents, as_margins

# Tiles of arrays that are stored in chunks: which tiles consist of whole chunks, and their cost.

Chunks = tuple[tuple[int, ...], int]
"""The shape of a chunk, and the bytes of an element."""

ENCODING = 2.0
"""The cost of encoding a byte, where decoding costs 1."""

TILE_BYTES = 32 << 10
"""Bytes that could be decoded in the time that handling a tile takes."""

SPLIT_CHUNKS = 1.25
"""The cost, along an axis, of tiles that begin inside chunks: tiles that share a chunk wait for each other."""

_MAX_CANDIDATES = 4096


class ChunkGrids:
    """The chunks of inputs and outputs over one space, the tiles that consist of them, and their costs.

    `margins` is the halo of (before, after) per axis; `reads` and `writes` are the chunks of the chunked operands.

    >>> grids = ChunkGrids((64, 64), ((0, 0), (0, 0)), [((8, 8), 4)], [((32, 2), 4)])
    >>> grids.units, grids.amplification((32, 2), 0), grids.amplification((32, 8), 0)
    ((32, 2), 4.0, 1.0)
    """

    def __init__(
        self,
        space: tuple[int, ...],
        margins: Sequence[tuple[int, int]],
        reads: Sequence[Chunks],
        writes: Sequence[Chunks],
    ) -> None:
        self.space, self.margins, self.reads, self.writes = space, margins, reads, writes
        self._touches: dict[tuple[int, int, int], float] = {}

    @cached_property
    def units(self) -> tuple[int, ...] | None:
        """The unit that tiles are multiples of: the chunks of all outputs, or of all inputs; None without chunks."""
        chunks = [shape for shape, _ in self.writes or self.reads if len(shape) == len(self.space)]
        if not chunks or 0 in self.space:
            return None
        # two kinds of chunks that meet nowhere inside an axis: tiles take all of it
        return tuple([min(lcm(*along), max(1, n)) for n, *along in zip(self.space, *chunks, strict=True)])

    @cached_property
    def decoded_bytes(self) -> int:
        """The bytes of the largest chunk that is decoded."""
        return max([prod(shape) * size for shape, size in self.reads], default=0)

    def candidates(self) -> Iterator[tuple[int, ...]]:
        """Yield candidate tiles: multiples of the chunks, also of the inputs' chunks, up to the space."""
        axes = []
        for axis, (n, unit) in enumerate(zip(self.space, self.units or (), strict=True)):
            joint = lcm(unit, *[shape[axis] for shape, _ in self.reads])
            extents = {n}
            for start in (unit, joint):
                count = -(-n // start)
                while count > 1:  # halves, so that no last tile is thin
                    count = -(-count // 2)
                    extents.add(min(n, count * start))
            axes.append(sorted(extents))
        while prod(map(len, axes)) > _MAX_CANDIDATES:
            max(axes, key=len).pop(-2)
        yield from product(*axes)

    def cost(self, tile: tuple[int, ...], spare: int, workers: int) -> float:
        """Return the relative cost of a tile, with `spare` bytes to hold chunks, on a number of workers."""
        read = self.amplification(tile, spare) * max(1, len(self.reads)) + ENCODING * len(self.writes)
        for chunks, _ in self.reads:
            read *= SPLIT_CHUNKS ** sum(
                [t % c != 0 and t < n for t, c, n in zip(tile, chunks, self.space, strict=True)]
            )
        tiles = prod([-(-n // t) for n, t in zip(self.space, tile, strict=True)])
        # some are idle at the end, and all that overlaps is not while the first and the last tiles are on their way
        idle = (-(-tiles // workers) + 0.25) * workers / tiles
        nbytes = prod(tile) * max([size for _, size in (*self.reads, *self.writes)])
        # of equal tiles the smaller: it leaves more memory, and more of it is in a cache
        return read * idle * (1 + TILE_BYTES / nbytes) * (1 + 0.01 * log2(1 + nbytes / TILE_BYTES))

    def amplification(self, tile: tuple[int, ...], spare: int) -> float:
        """Return how often a chunk of the inputs is decoded, on average, if `spare` bytes hold chunks."""
        if not self.reads:
            return 1.0
        total = sum([self._amplification(tile, chunks, spare // len(self.reads)) for chunks in self.reads])
        return total / len(self.reads)

    def _amplification(self, tile: tuple[int, ...], chunks: Chunks, spare: int) -> float:
        shape, size = chunks
        result = 1.0
        for axis in reversed(range(len(self.space))):
            times = self._reads_along(axis, tile[axis], shape[axis])
            if times == 1:
                continue
            needed = self._shared_extent(axis, tile[axis], shape[axis]) * size
            for outer in range(axis):
                reach = tile[outer] + sum(self.margins[outer]) + 2 * shape[outer]
                needed *= min(reach, self.space[outer])
            needed *= prod(self.space[axis + 1 :])
            if needed <= spare:
                spare -= needed
            else:
                result *= times
        return result

    def _shared_extent(self, axis: int, tile: int, chunk: int) -> int:
        """Return the extent of the chunks that two neighbouring tiles read, and of those being decoded for the next."""
        before, after = self.margins[axis]
        shared = -(-before // chunk) + -(-after // chunk) + bool(tile % chunk) + 1
        return min(self.space[axis], shared * chunk)

    def _reads_along(self, axis: int, tile: int, chunk: int) -> float:
        """Return how often a chunk is read along an axis, on average."""
        key = axis, tile, chunk
        if key not in self._touches:
            n, (before, after) = self.space[axis], self.margins[axis]
            starts = np.arange(0, n, tile)
            low = np.maximum(starts - before, 0) // chunk
            high = -(-np.minimum(starts + tile + after, n) // chunk)
            self._touches[key] = float((high - low).sum()) / -(-n // chunk)
        return self._touches[key]


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


class TileChoice(NamedTuple):
    """A tile, the depth of its buffers, and the bytes that they take.

    >>> TileChoice((256, 256), 2, 1 << 20).tile
    (256, 256)
    """

    tile: tuple[int, ...]
    depth: int
    buffer_bytes: int


def choose_tile(
    space: Extents,
    inputs: Sequence[Any] = ("float32",),
    outputs: Sequence[Any] = ("float32",),
    memory_limit: int | None = None,
    halo: Margins = 0,
    scheme: str = "double",
    depth: int | None = None,
) -> TileChoice:
    """Return the output tile that fits a memory limit at the lowest cost.

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

    >>> choose_tile((4096, 4096), memory_limit=2 << 20).tile, choose_tile((4096, 4096), memory_limit=2 << 20, halo=8)
    ((32, 4096), TileChoice(tile=(55, 2048), depth=2, buffer_bytes=2073472))
    """
    extents = as_extents(space, "space")
    margins = as_margins(halo, "halo", len(extents))
    halos = tuple([before + after for before, after in margins])
    sizes = [_element_size(item) for item in inputs], [_element_size(item) for item in outputs]
    depth = depth or 3
    reads = [(chunks, _element_size(item)) for item in inputs if (chunks := read_chunk_shape(item))]
    writes = [(chunks, _element_size(item)) for item in outputs if (chunks := chunk_shape(item))]
    grids = ChunkGrids(extents, margins, reads, writes)
    if grids.units is not None:
        choice = _choose_whole_chunks(grids, halos, sizes, scheme, depth, memory_limit)
        if choice is not None:
            return choice
    limit = DEFAULT_LIMIT if memory_limit is None else memory_limit
    tile = _cheapest_tile(extents, halos, sizes, scheme, depth, limit)
    return TileChoice(tile, _used_depth(scheme, depth), _buffer_bytes(tile, halos, sizes, scheme, depth))


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


def _element_size(item: object) -> int:
    """Return the bytes of an element of a dtype, or of an array."""
    dtype: Any = item.dtype if hasattr(item, "shape") and hasattr(item, "dtype") else item
    return int(np.dtype(dtype).itemsize)


def _used_depth(scheme: str, depth: int) -> int:
    return depth if scheme in ("buffered", "direct") else 2


def _choose_whole_chunks(
    grids: ChunkGrids, halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int, memory_limit: int | None
) -> TileChoice | None:
    """Return the cheapest tile of whole chunks; None if not even one chunk fits the limit."""
    limit = STORE_LIMIT if memory_limit is None else memory_limit
    for tried in range(depth, 0, -1) if scheme in ("buffered", "direct") else [depth]:
        used = _used_depth(scheme, tried)
        choices = [
            TileChoice(tile, used, _buffer_bytes(tile, halos, sizes, scheme, tried)) for tile in grids.candidates()
        ]
        available = limit - used * grids.decoded_bytes
        fitting = [choice for choice in choices if choice.buffer_bytes <= available]
        if fitting:
            return min(
                fitting, key=lambda choice: grids.cost(choice.tile, available - choice.buffer_bytes, choice.depth)
            )
    if memory_limit is not None or grids.units is None:
        return None
    # nobody has set a limit, and a store cannot do with less
    return TileChoice(grids.units, _used_depth(scheme, 1), _buffer_bytes(grids.units, halos, sizes, scheme, 1))


def _cheapest_tile(
    extents: tuple[int, ...], halos: tuple[int, ...], sizes: ElementSizes, scheme: str, depth: int, limit: int
) -> tuple[int, ...]:
    """Return the tile of arrays in memory that fits a limit at the lowest cost."""
    tiles = _candidate_tiles(extents, halos, sizes, scheme, depth, limit)
    tile = min(tiles, key=lambda tile: _transfer_cost(tile, halos, sizes), default=None)
    if tile is None:
        least = _buffer_bytes((1,) * len(extents), halos, sizes, scheme, depth)
        raise TransferError(
            f"tiles of one element with this halo take {least} bytes with {scheme} buffering, the limit is"
            f" {limit}; raise the limit, or use a scheme with fewer buffers"
        )
    return tile


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
