# SPDX-License-Identifier: Apache-2.0
"""Shared memory without bank conflicts: the strides of a staged tile, padded until accesses spread over the banks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

BANKS = 32
BANK_BYTES = 4
WARP = 32


@dataclass(frozen=True, slots=True)
class Dimension:
    """A digit of the staged tile: its count, and its place in the order in which threads write, -1 if not at all.

    >>> Dimension(16, written=0).count
    16
    """

    count: int
    written: int


def padded_strides(dimensions: Sequence[Dimension], width: int, limit: int) -> tuple[list[int], int]:
    """Return the stride in bytes of each digit of a tile of vectors of `width` bytes, and the bytes of the tile.

    Digits come in the order in which the tile is read, fastest first. The least padding that leaves the fewest
    conflicts is put where it helps: before digits that neighbouring threads write.

    >>> padded_strides([Dimension(16, 1), Dimension(4, -1), Dimension(16, 0)], 16, 32768)
    ([16, 256, 1040], 16640)
    """
    best: tuple[int, int, list[int]] | None = None
    for pads in _candidates(dimensions, max(1, BANKS * BANK_BYTES // width)):
        strides, size = _strides(dimensions, pads, width)
        if best is not None and size > limit:
            continue
        conflicts = _conflicts(dimensions, strides, width, writing=True)
        conflicts += _conflicts(dimensions, strides, width, writing=False)
        if best is None or (conflicts, size) < best[:2]:
            best = (conflicts, size, strides)
        if conflicts == 0:
            break
    assert best is not None
    return best[2], best[1]


def _candidates(dimensions: Sequence[Dimension], slots: int) -> Iterator[tuple[int, ...]]:
    """Yield paddings in vectors: none, then before the first digit that is written, then before the next as well."""
    first = sorted((k for k, each in enumerate(dimensions) if each.written >= 0), key=lambda k: dimensions[k].written)
    first = [k for k in first if k][:2]
    pads = [0] * len(dimensions)
    if not first:
        yield tuple(pads)
        return
    some = range(min(slots, 9))
    for chosen in product(some, *[some for _ in first[1:]]):
        for k, pad in zip(first, reversed(chosen), strict=True):
            pads[k] = pad
        yield tuple(pads)


def _strides(dimensions: Sequence[Dimension], pads: Sequence[int], width: int) -> tuple[list[int], int]:
    strides, size = [], width
    for each, pad in zip(dimensions, pads, strict=True):
        size += pad * width
        strides.append(size)
        size *= each.count
    return strides, size


def _conflicts(dimensions: Sequence[Dimension], strides: Sequence[int], width: int, writing: bool) -> int:
    """Return how many accesses of the first warp have to wait for another to the same bank."""
    order = list(range(len(dimensions)))
    if writing:
        order = sorted((k for k in order if dimensions[k].written >= 0), key=lambda k: dimensions[k].written)
    together = min(WARP, BANKS * BANK_BYTES // width)
    waits = 0
    for first in range(0, WARP, together):
        words: dict[int, set[int]] = {}
        for lane in range(first, first + together):
            rest, place = lane, 0
            for k in order:
                rest, digit = divmod(rest, dimensions[k].count)
                place += digit * strides[k]
            if rest:
                break
            for word in range(place // BANK_BYTES, (place + width - 1) // BANK_BYTES + 1):
                words.setdefault(word % BANKS, set()).add(word)
        waits += max((len(found) for found in words.values()), default=1) - 1
    return waits
