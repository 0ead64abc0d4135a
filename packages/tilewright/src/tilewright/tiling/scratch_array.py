# SPDX-License-Identifier: Apache-2.0
"""An array in a temporary file, stored in blocks: what lies between the two passes of a rechunking."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from types import TracebackType
from typing import Any

import numpy as np

from .._files import mmap
from .chunk_cache import chunk_range

Slices = tuple[slice, ...]

RELEASE_AFTER = 64 << 20
"""Bytes that may be touched through the map before its pages are released."""


class ScratchArray:
    """An array of a `shape` and `dtype` in a temporary file of a `folder`, in blocks; boxes need no whole blocks.

    Elements are stored as they are, so any box can be written without reading it first, by several threads at once.

    >>> with ScratchArray((5, 6), np.dtype(int), (2, 4)) as scratch:
    ...     scratch[1:4, 2:6] = np.arange(12).reshape(3, 4)
    ...     scratch[2:4, 3:5].tolist()
    [[5, 6], [9, 10]]
    """

    is_parallel = True

    def __init__(
        self, shape: Sequence[int], dtype: np.dtype[Any], block: Sequence[int], folder: str | None = None
    ) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.block = tuple([max(1, min(b, n)) for b, n in zip(block, shape, strict=True)])
        grid = tuple([-(-n // b) for n, b in zip(self.shape, self.block, strict=True)])
        self.nbytes = prod(grid) * prod(self.block) * dtype.itemsize
        self._file = tempfile.TemporaryFile(prefix="tilewright-", dir=folder)  # noqa: SIM115
        self._file.truncate(max(1, self.nbytes))
        self._map = mmap.mmap(self._file.fileno(), max(1, self.nbytes))
        self._blocks: np.ndarray[Any, Any] | None = np.ndarray((*grid, *self.block), dtype, self._map)
        self._touched, self._lock = 0, threading.Lock()
        self.store_key = ("scratch", os.getpid(), id(self))
        self.private = "a temporary array of this process"

    def __enter__(self) -> ScratchArray:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks = None
        self._map.close()
        self._file.close()

    def __getitem__(self, box: Slices) -> np.ndarray[Any, Any]:
        out = np.empty([span.stop - span.start for span in box], self.dtype)
        for block, inside, place in self._parts(box):
            out[place] = block[inside]
        self._release(out.nbytes)
        return out

    def __setitem__(self, box: Slices, values: Any) -> None:
        for block, inside, place in self._parts(box):
            block[inside] = values[place]
        self._release(values.nbytes)

    def _parts(self, box: Slices) -> Iterator[tuple[np.ndarray[Any, Any], Slices, Slices]]:
        """Yield the blocks that a box touches, the part of each that is in the box, and its place in the box."""
        assert self._blocks is not None
        spans = [chunk_range(span.start, span.stop, b) for span, b in zip(box, self.block, strict=True)]
        for index in product(*spans):
            inside, place = [], []
            for k, b, span in zip(index, self.block, box, strict=True):
                low, high = max(span.start, k * b), min(span.stop, (k + 1) * b)
                inside.append(slice(low - k * b, high - k * b))
                place.append(slice(low - span.start, high - span.start))
            yield self._blocks[index], tuple(inside), tuple(place)

    def _release(self, nbytes: int) -> None:
        """Give touched pages back now and then: the file holds what was written."""
        with self._lock:
            self._touched += nbytes
            if self._touched < RELEASE_AFTER or not hasattr(mmap, "MADV_DONTNEED"):
                return
            self._touched = 0
        self._map.madvise(mmap.MADV_DONTNEED)
