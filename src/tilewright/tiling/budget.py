# SPDX-License-Identifier: Apache-2.0
"""How large tiles should be: as much as a memory limit allows, shaped so that rows are long and halos are cheap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..errors import TransferError
from .extents import extents

DEFAULT_LIMIT = 8 << 20
"""Bytes of buffers when nobody names a limit: tiles then stay near the caches of one core."""

CACHED_TILE = 1 << 20
"""Bytes up to which a tile stays in the caches between its import, its compute and its export."""

SHORT_ROW = 4096
"""Bytes of a row below which starting the row costs more than moving it."""

_BUFFERS = {"duplex": 1, "double": 2, "simplex": 3}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tile and a depth, the bytes of buffers they take, and the reasons.

    >>> Suggestion((256, 256), 2, 1 << 20, "because").tile
    (256, 256)
    """

    tile: tuple[int, ...]
    depth: int
    buffer_bytes: int
    why: str


def suggest_tile(
    space: Any,
    inputs: Sequence[Any] = ("float32",),
    outputs: Sequence[Any] = ("float32",),
    memory_limit: int = DEFAULT_LIMIT,
    halo: Any = 0,
    scheme: str = "double",
    depth: int | None = None,
) -> Suggestion:
    """Return the output tile that a memory limit allows, and why it has that shape.

    `inputs` and `outputs` are the types of the operands, which are all cut alike; each input tile has a halo around
    it, given as for an augmentation. Among the tiles that fit, the one that moves least beside the data wins: halos
    are read twice, short rows are slow, and a tile that leaves the caches is fetched again.

    >>> suggest_tile((4096, 4096), memory_limit=2 << 20).tile
    (32, 4096)
    >>> print(suggest_tile((4096, 4096), memory_limit=2 << 20, halo=8).why)
    118 x 1024 tiles: 2081536 of 2097152 bytes for double buffering, halos add 15 % to the reads, rows of 4096 bytes
    """
    whole = extents(space, "space")
    around = _around(halo, len(whole))
    sizes = [np.dtype(kind).itemsize for kind in inputs], [np.dtype(kind).itemsize for kind in outputs]
    times = _BUFFERS.get(scheme) or depth or 3
    best: tuple[float, tuple[int, ...]] | None = None
    for tile in _candidates(whole, around, sizes, scheme, times, memory_limit):
        cost = _cost(tile, around, sizes)
        if best is None or cost < best[0]:
            best = (cost, tile)
    if best is None:
        least = _bytes((1,) * len(whole), around, sizes, scheme, times)
        raise TransferError(
            f"even tiles of one element take {least} bytes of buffers with {scheme} buffering and this halo, and the"
            f" limit is {memory_limit}; raise the limit, or use a scheme with fewer buffers"
        )
    tile = best[1]
    nbytes = _bytes(tile, around, sizes, scheme, times)
    more = prod((t + n) / t for t, n in zip(tile, around, strict=True)) - 1
    halos = f", halos add {more:.0%} to the reads".replace("%", " %") if more else ""
    row = tile[-1] * max(*sizes[0], *sizes[1], 1)
    why = (
        f"{' x '.join(map(str, tile))} tiles: {nbytes} of {memory_limit} bytes for {scheme} buffering{halos},"
        f" rows of {row} bytes"
    )
    return Suggestion(tile, times if scheme in ("buffered", "direct") else 2, nbytes, why)


def _around(halo: Any, rank: int) -> tuple[int, ...]:
    """Return how much a halo adds to each axis."""
    each = (halo,) * rank if not isinstance(halo, Sequence) else tuple(halo)
    return tuple([sum(extents(pair, "halo", 2)) for pair in each])


def _bytes(tile: tuple[int, ...], around: tuple[int, ...], sizes: Any, scheme: str, times: int) -> int:
    """Return the bytes of buffers that a tile takes, each rounded up to a cache line as the pipeline does."""
    into = [_line(prod(t + n for t, n in zip(tile, around, strict=True)) * size) for size in sizes[0]]
    out = [_line(prod(tile) * size) for size in sizes[1]]
    if scheme in ("simplex", "direct"):
        count = max(len(into), len(out))
        return times * sum([max((*into[k : k + 1], *out[k : k + 1])) for k in range(count)])
    return times * (sum(into) + sum(out))


def _line(nbytes: int) -> int:
    return -(-nbytes // 64) * 64


def _candidates(
    whole: tuple[int, ...], around: tuple[int, ...], sizes: Any, scheme: str, times: int, limit: int
) -> Iterator[tuple[int, ...]]:
    """Yield, for each width of rows and each share of the limit, the tile that grows from the inside out to fill it."""
    for width in _widths(whole[-1]):
        most = limit
        while most:

            def fits(tile: tuple[int, ...], most: int = most) -> bool:
                return _bytes(tile, around, sizes, scheme, times) <= most

            tile = _grown(whole, width, fits)
            if tile is None:
                break
            yield tile
            most //= 2


def _grown(whole: tuple[int, ...], width: int, fits: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...] | None:
    """Return the largest tile of a width that fits, axis by axis from the inside out; None if not even one row does."""
    tile = [1] * len(whole)
    tile[-1] = width
    if not fits(tuple(tile)):
        return None
    for axis in reversed(range(len(whole) - 1)):
        low, high = 1, max(1, whole[axis])
        while low < high:
            tile[axis] = (low + high + 1) // 2
            if fits(tuple(tile)):
                low = tile[axis]
            else:
                high = tile[axis] - 1
        tiles = -(-whole[axis] // low)
        tile[axis] = max(1, -(-whole[axis] // max(1, tiles)))  # as many tiles, and no thin one at the end
    return tuple(tile)


def _widths(whole: int) -> Iterator[int]:
    """Yield the whole row and its halves, quarters and so on: widths that leave no thin tile at the end."""
    width = max(1, whole)
    while True:
        yield width
        if width == 1:
            return
        width = -(-width // 2)


def _cost(tile: tuple[int, ...], around: tuple[int, ...], sizes: Any) -> float:
    """Return what moving one element costs, relative to moving it alone: halos, short rows, small and large tiles."""
    size = max(*sizes[0], *sizes[1], 1)
    nbytes = prod(tile) * size
    read = prod((t + n) / t for t, n in zip(tile, around, strict=True))
    rows = 1 + SHORT_ROW / 16 / (tile[-1] * size)
    handling = 1 + (64 << 10) / nbytes
    memory = 1 if nbytes <= CACHED_TILE else 1.3
    return float(read * rows * handling * memory)
