# SPDX-License-Identifier: Apache-2.0
"""Tiles of arrays that are stored in chunks: which tiles consist of whole chunks, and what they cost.

A chunk that is written by two tiles is read, changed and written again, so tiles consist of whole chunks of the
outputs. A chunk that is read by two tiles is decoded twice, unless a cache holds it in between: that takes as much
memory as the chunks between two neighbouring tiles, over all that lies between them in the order of the tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from math import lcm, log2, prod

import numpy as np

Chunks = tuple[tuple[int, ...], int]
"""The shape of a chunk, and the bytes of an element."""

ENCODING = 2.0
"""What encoding a byte costs, where decoding costs 1."""

TILE_BYTES = 32 << 10
"""Bytes that could be decoded in the time that handling a tile takes."""

SPLIT_CHUNKS = 1.25
"""What it costs, along an axis, if tiles begin inside chunks: those who share a chunk wait for each other."""

_MAX_CANDIDATES = 4096


class ChunkGrids:
    """The chunks of inputs and outputs over one space, the tiles that consist of them, and their costs.

    `margins` is the halo of (before, after) per axis; `reads` and `writes` are the chunks of those operands that have
    some.

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
        """Return what tiles are multiples of: the chunks of all outputs, or of all inputs; None without chunks."""
        chunks = [shape for shape, _ in self.writes or self.reads if len(shape) == len(self.space)]
        if not chunks or 0 in self.space:
            return None
        # two kinds of chunks that meet nowhere inside an axis: tiles take all of it
        return tuple([min(lcm(*along), max(1, n)) for n, *along in zip(self.space, *chunks, strict=True)])

    @cached_property
    def decoded_bytes(self) -> int:
        """Return the bytes of the largest chunk that is decoded."""
        return max([prod(shape) * size for shape, size in self.reads], default=0)

    def candidates(self) -> Iterator[tuple[int, ...]]:
        """Yield tiles to choose from: multiples of the chunks, also of those of the inputs, up to the space."""
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
