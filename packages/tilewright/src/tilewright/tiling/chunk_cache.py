# SPDX-License-Identifier: Apache-2.0
"""Chunks of stored arrays, read once for all tiles that need them, as far as memory allows.

A tile with a halo needs a little of its neighbours' chunks, and a store can only decode whole chunks. All tiles of a
run are known beforehand, so it is known how often each chunk is needed, and by which tiles: a chunk stays until its
last use, and when the limit is reached, the chunk that is needed last of all goes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..layout import Box
from .tiler import Tiler, number_of

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]
"""The position of a chunk in the grid of chunks."""

_MAX_LISTED_USES = 4096
"""Tiles of one chunk that are listed; a chunk with more of them is needed again soon in any case."""


def chunk_range(start: int, end: int, chunk: int) -> range:
    """Return the chunks along an axis that hold the elements from `start` to before `end`.

    >>> chunk_range(3, 9, 4)
    range(0, 3)
    """
    return range(start // chunk, -(-end // chunk))


class ChunkUses:
    """Which tiles of a `tiler` read which chunks of its space, stored in `chunks`.

    >>> uses = ChunkUses(Tiler((8,), (4,), overlap=2, augmentation=1), (3,))
    >>> [uses.count((k,)) for k in range(3)], uses.tiles((1,))
    ([2, 3, 2], [1, 2, 3])
    """

    def __init__(self, tiler: Tiler, chunks: Sequence[int]) -> None:
        self.tiler, self.chunks = tiler, tuple(chunks)
        self.is_shared = any(self._shares_chunks(axis) for axis in range(tiler.rank))

    def _tiles_along(self, axis: int, chunk: int) -> range:
        """Return the grid coordinates of the tiles that read a chunk, along an axis."""
        step, first, extent, last, _ = self.tiler.axes[axis]
        start = chunk * self.chunks[axis]
        end = min(start + self.chunks[axis], self.tiler.space[axis])
        low = max(0, -(-(start - first - extent + 1) // step))
        return range(low, min(last, (end - 1 - first) // step) + 1)

    def _shares_chunks(self, axis: int) -> bool:
        """Return whether a chunk is read by several tiles along an axis."""
        step, first, extent, last, _ = self.tiler.axes[axis]
        if not last:
            return False
        # tiles that touch and start where chunks start share none
        return extent > step or bool(first) or bool(step % self.chunks[axis])

    def count(self, index: Index) -> int:
        """Return how many tiles read the chunk at an `index`."""
        return prod([len(self._tiles_along(axis, k)) for axis, k in enumerate(index)])

    def tiles(self, index: Index) -> list[int]:
        """Return the numbers of the tiles that read the chunk at an `index`, in order; empty if they are too many."""
        along = [self._tiles_along(axis, k) for axis, k in enumerate(index)]
        if prod(map(len, along)) > _MAX_LISTED_USES:
            return []
        return sorted([number_of(self.tiler.order, self.tiler.grid, coords) for coords in product(*along)])


class _CachedChunk:
    """A chunk of which uses are left: decoded, being decoded, or to be decoded again."""

    __slots__ = ("array", "left", "ready", "tiles")

    def __init__(self, left: int, tiles: list[int]) -> None:
        self.left, self.tiles = left, tiles
        self.array: Array | None = None
        self.ready: threading.Event | None = None  # while a thread decodes it

    def next_use(self) -> int:
        """Return about the number of the tile that needs it next."""
        return self.tiles[-self.left] if 0 < self.left <= len(self.tiles) else 0


class ChunkCache:
    """Decoded chunks of the sources of one run, at most `limit` bytes of them between two reads.

    A chunk that several threads need at once is decoded by one of them.

    >>> cache, decoded = ChunkCache(1 << 20), []
    >>> uses = ChunkUses(Tiler((8,), (4,), overlap=2, augmentation=1), (4,))
    >>> def load(index):
    ...     decoded.append(index)
    ...     return np.zeros(4)
    >>> for tile in range(3):
    ...     _ = cache.read(0, uses, (0,), load)
    >>> decoded, cache.nbytes
    ([(0,)], 0)
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.nbytes, self.loaded_bytes = limit, 0, 0
        self._chunks: dict[tuple[int, Index], _CachedChunk] = {}
        self._lock = threading.Lock()

    def count_bytes(self, nbytes: int) -> None:
        """Count bytes that were decoded without the cache."""
        with self._lock:
            self.loaded_bytes += nbytes

    def is_being_read(self, source: int, index: Index) -> bool:
        """Return whether a thread is decoding the chunk at an `index` of a `source` right now."""
        with self._lock:
            chunk = self._chunks.get((source, index))
            return chunk is not None and chunk.ready is not None

    def read(self, source: int, uses: ChunkUses, index: Index, load: Callable[[Index], Array]) -> Array:
        """Return the chunk at an index of a source, decoded by `load` unless it is here; this is one of its uses."""
        key = source, index
        with self._lock:
            chunk = self._chunks.get(key)
            if chunk is None:
                chunk = self._chunks[key] = _CachedChunk(uses.count(index), uses.tiles(index))
            cached, ready = chunk.array, chunk.ready
            if cached is not None:
                return self._use(key, chunk, cached)
            if ready is None:
                chunk.ready = threading.Event()
        if ready is not None:
            ready.wait()
            with self._lock:
                cached = chunk.array
                if cached is not None:
                    return self._use(key, chunk, cached)
            array = load(index)  # it was dropped at once, or the other thread has failed
            with self._lock:
                self.loaded_bytes += array.nbytes
                return self._use(key, chunk, array)
        try:
            array = load(index)
        except BaseException:
            self._finish(chunk)
            raise
        with self._lock:
            chunk.array = array
            self.nbytes += array.nbytes
            self.loaded_bytes += array.nbytes
            self._use(key, chunk, array)
        self._finish(chunk)
        return array

    def _finish(self, chunk: _CachedChunk) -> None:
        """Wake those who wait for a chunk."""
        with self._lock:
            ready, chunk.ready = chunk.ready, None
        assert ready is not None
        ready.set()

    def _use(self, key: tuple[int, Index], chunk: _CachedChunk, array: Array) -> Array:
        """Count a use of a chunk; drop it after its last one, and others if the cache is too large."""
        chunk.left -= 1
        if chunk.left <= 0:
            self._drop(chunk)
            self._chunks.pop(key, None)
        elif self.nbytes > self.limit:
            self._shrink()
        return array

    def _drop(self, chunk: _CachedChunk) -> None:
        if chunk.array is not None:
            self.nbytes -= chunk.array.nbytes
            chunk.array = None

    def _shrink(self) -> None:
        """Drop those chunks that are needed last, until a tenth of the limit is free."""
        decoded = [chunk for chunk in self._chunks.values() if chunk.array is not None]
        for chunk in sorted(decoded, key=_CachedChunk.next_use, reverse=True):
            if self.nbytes <= self.limit - self.limit // 10:
                return
            self._drop(chunk)


class ChunkReader:
    """Boxes of a stored array of a `shape`, put together from its chunks, which come through a cache.

    `load` returns the elements of a box, `source` is the number of the array in the cache; with `is_bulky`, many chunks
    are better read at once than one by one.

    >>> values, cache = np.arange(10), ChunkCache(1 << 20)
    >>> uses = ChunkUses(Tiler((10,), (5,), overlap=2, augmentation=1), (4,))
    >>> reader = ChunkReader(lambda box: values[box.slices], (10,), uses, cache, 0)
    >>> [[(part.offset[0], piece.tolist()) for part, piece in parts] for parts in reader.read([Box((3,), (3,))])]
    [[(3, [3]), (4, [4, 5])]]
    """

    def __init__(
        self,
        load: Callable[[Box], Array],
        shape: tuple[int, ...],
        uses: ChunkUses,
        cache: ChunkCache,
        source: int,
        is_bulky: bool = False,
    ) -> None:
        self._is_bulky = is_bulky
        self._load, self._shape, self._uses, self._cache, self._source = load, shape, uses, cache, source

    def read(self, boxes: Sequence[Box]) -> list[list[tuple[Box, Array]]]:
        """Return, for each box of one tile, the parts that cover it with their elements."""
        if self._is_bulky and not self._uses.is_shared and len(boxes) == 1:
            piece = self._load(boxes[0])
            self._cache.count_bytes(piece.nbytes)
            return [[(boxes[0], piece)]]
        # a tile uses a chunk once, whatever the number of its boxes; those that others are decoding can wait
        indices = list(dict.fromkeys([index for box in boxes for index in self._indices(box)]))
        indices.sort(key=lambda index: self._cache.is_being_read(self._source, index))
        chunks = {index: self._cache.read(self._source, self._uses, index, self._load_chunk) for index in indices}
        return [[self._part(box, index, chunks[index]) for index in self._indices(box)] for box in boxes]

    def _indices(self, box: Box) -> Iterator[Index]:
        axes = zip(box.offset, box.end, self._uses.chunks, strict=True)
        return product(*[chunk_range(start, end, chunk) for start, end, chunk in axes])

    def _part(self, box: Box, index: Index, chunk: Array) -> tuple[Box, Array]:
        home = self._box_of(index)
        part = home.intersection(box)
        return part, chunk[part.relative_to(home.offset).slices]

    def _box_of(self, index: Index) -> Box:
        chunks = self._uses.chunks
        return Box(tuple([k * n for k, n in zip(index, chunks, strict=True)]), chunks).within(self._shape)

    def _load_chunk(self, index: Index) -> Array:
        return self._load(self._box_of(index))
