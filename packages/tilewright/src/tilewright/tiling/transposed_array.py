# SPDX-License-Identifier: Apache-2.0
"""A stored array with its axes in another order, without a copy: its boxes and chunks are turned as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ..errors import LayoutError
from .array_store import chunk_shape, read_chunk_shape
from .store_access import Slices, StoreAccess, is_stored, open_access


class TransposedArray:
    """A view of a stored array whose axis k is axis `axes[k]` of the array; it can only be read.

    >>> class Squares:
    ...     shape, dtype, chunks = (3, 6), np.dtype(int), (1, 4)
    ...
    ...     def __getitem__(self, box):
    ...         return np.arange(18).reshape(3, 6)[box] ** 2
    >>> view = TransposedArray(Squares(), (1, 0))
    >>> view.shape, view.chunks, view[4:6, 1:3].tolist()
    ((6, 3), (4, 1), [[100, 256], [121, 289]])
    """

    def __init__(self, array: Any, axes: Sequence[int]) -> None:
        self.array, self.axes = array, tuple(axes)
        self.shape = tuple([int(array.shape[axis]) for axis in self.axes])
        self.dtype = np.dtype(array.dtype)
        chunks, shards = read_chunk_shape(array), chunk_shape(array)
        self.chunks = None if chunks is None else tuple([chunks[axis] for axis in self.axes])
        self.shards = None if shards is None else tuple([shards[axis] for axis in self.axes])

    def __getitem__(self, box: Slices) -> np.ndarray[Any, Any]:
        return self._turn(self.array[self._box_of(box)])

    def open_access(self) -> StoreAccess:
        """Return how boxes are read: as those of the array, and turned."""
        access = open_access(self.array)
        return access._replace(read=lambda box: self._turn(access.read(self._box_of(box))), write=self._reject_write)

    def _box_of(self, box: Slices) -> Slices:
        inner: list[slice] = [slice(None)] * len(self.axes)
        for axis, span in zip(self.axes, box, strict=True):
            inner[axis] = span
        return tuple(inner)

    def _turn(self, piece: Any) -> np.ndarray[Any, Any]:
        return np.asarray(piece).transpose(self.axes)

    @staticmethod
    def _reject_write(box: Slices, values: Any) -> None:
        raise LayoutError("a transposed view can only be read")


def transpose_array(array: Any, axes: Sequence[int] | None) -> Any:
    """Return an array with its axes in another order, by default reversed; no element is copied.

    >>> transpose_array(np.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    rank = len(array.shape)
    order = tuple(reversed(range(rank))) if axes is None else tuple([index(axis) % max(1, rank) for axis in axes])
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"expected a permutation of the {rank} axes, got axes={tuple(axes or ())}")
    return TransposedArray(array, order) if is_stored(array) else array.transpose(order)
