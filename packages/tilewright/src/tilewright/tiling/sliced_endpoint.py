# SPDX-License-Identifier: Apache-2.0
"""Endpoints in stores: objects that return and accept boxes when they are sliced, such as zarr and HDF5 arrays.

A store is asked for the boxes that a tile needs. During a run, an array in chunks is read through a cache, and several
tiles that need one chunk share it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from ..copying import Footprint, dense_footprint, native
from ..errors import TransferError
from ..layout import Box
from .array_store import (
    StorageRegion,
    chunk_shape,
    inner_arrays,
    is_hdf5,
    is_zarr,
    read_chunk_shape,
    reject_array_wrappers,
    store_locations,
)
from .chunk_cache import ChunkCache, ChunkReader, ChunkUses
from .store_access import open_access
from .tile_copies import Work, boxes_outside, compile_word_copy, repeated_boxes, source_box_of, validate_fill
from .tiler import Tiler
from .transfer_tensors import TileBuffer

Array = np.ndarray[Any, Any]
Slices = tuple[slice, ...]

MIN_NATIVE_COPY = 64 << 10
"""Bytes from which a copy is worth the start of a copy plan."""


class _TilePart(NamedTuple):
    """A part of a tile that one box of the array fills: where in the tile, and how the box is turned around."""

    place: Slices
    box: Box
    turn: Slices


class SlicedEndpoint:
    """An object that returns and accepts boxes when it is sliced, such as a zarr array.

    >>> class Squares:
    ...     shape, dtype = (6,), np.dtype(int)
    ...
    ...     def __getitem__(self, box):
    ...         return np.arange(6)[box] ** 2
    >>> buffer = TileBuffer(64)
    >>> SlicedEndpoint(Squares()).plan_import(Box((4,), (4,)), buffer, "edge")()
    >>> buffer.view((4,), np.dtype(int)).tolist()
    [16, 25, 25, 25]
    """

    copy_key = None  # its transfers are not made of copies between addresses

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = tuple([int(n) for n in array.shape])
        self.dtype = np.dtype(array.dtype)
        self.chunks = read_chunk_shape(array)
        self.access = open_access(array)
        self._write_chunks = chunk_shape(array)
        self._reader: ChunkReader | None = None
        self._write_lock = threading.Lock()

    @property
    def chunk_bytes(self) -> int:
        """Return the bytes of a decoded chunk; 0 without chunks."""
        return prod(self.chunks) * self.dtype.itemsize if self.chunks else 0

    def share_chunks(self, tiler: Tiler, cache: ChunkCache, source: int) -> None:
        """Read the tiles of a tiler through a cache, in which this array is number `source`."""
        if self.chunks is not None:
            uses = ChunkUses(tiler, self.chunks)
            self._reader = ChunkReader(self._load, self.shape, uses, cache, source, self.access.is_remote)

    def stop_sharing(self) -> None:
        """Read tiles one by one again."""
        self._reader = None

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""
        padding = None if fill is None else validate_fill(fill, self.dtype)
        inside = tile.within(self.shape)
        if inside != tile and padding is None:
            raise TransferError(
                f"tile {tile} extends outside its array of shape {self.shape}; give a fill, such as fill=0 or"
                " fill='edge'"
            )
        if inside != tile and isinstance(padding, str):
            parts, outside = list(_repeated_parts(tile, self.shape, padding)), []
        else:
            outside = [box.relative_to(tile.offset).slices for box in boxes_outside(tile, inside)]
            whole = (slice(None),) * len(tile.shape)
            parts = [] if inside.empty else [_TilePart(inside.relative_to(tile.offset).slices, inside, whole)]

        def read() -> None:
            view = buffer.view(tile.shape, self.dtype)
            for place in outside:
                view[place] = padding
            for part, pieces in zip(parts, self._read([part.box for part in parts], padding), strict=True):
                target = view[part.place][part.turn]  # written backwards where the array is repeated backwards
                repeats = [n == 1 for n in part.box.shape]  # an edge fills all of the place along its axis
                for box, piece in pieces:
                    spans = zip(box.relative_to(part.box.offset).slices, repeats, strict=True)
                    copy_elements(piece, target[tuple([slice(None) if once else span for span, once in spans])])

        return read

    def _read(self, boxes: Sequence[Box], padding: Any) -> list[list[tuple[Box, Array]]]:
        """Return, for each box of a tile, the parts that cover it with their elements."""
        if self._reader is not None:
            return self._reader.read(boxes)
        if len(boxes) > 1 and padding != "wrap":  # boxes that touch are read at once
            whole = _enclosing_box(boxes)
            piece = self._load(whole)
            return [[(box, piece[box.relative_to(whole.offset).slices])] for box in boxes]
        return [[(box, self._load(box))] for box in boxes]

    def _load(self, box: Box) -> Array:
        """Return the elements of a box that is not empty."""
        piece = self.access.read(box.slices)
        reject_array_wrappers(piece, f"the result of slicing {type(self.array).__name__}")
        piece = np.asarray(piece, self.dtype)
        if piece.shape != box.shape:
            raise TransferError(
                f"slicing {type(self.array).__name__} at {box} returned shape {piece.shape}, expected {box.shape}"
            )
        return piece

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        inside = tile.within(self.shape)
        view = buffer.view(tile.shape, self.dtype)[inside.relative_to(tile.offset).slices]
        # a partial chunk is written by read-modify-write, which would lose a concurrent write of the same chunk
        guard: AbstractContextManager[Any] = nullcontext() if self._covers_chunks(inside) else self._write_lock

        def write() -> None:
            if not inside.empty:
                with guard:
                    self.access.write(inside.slices, view)

        return write

    def regions(self) -> list[StorageRegion]:
        """Return the memory of an array, or the store as a whole, since the bytes in it are unknown."""
        if isinstance(self.array, np.ndarray):
            return [_array_region(self.array, (self.array.ctypes.data, self.array.strides))]
        regions = [StorageRegion(location.key, dense_footprint(0, 1), None) for location in store_locations(self.array)]
        if is_zarr(self.array) or is_hdf5(self.array) or hasattr(self.array, "store_key"):
            return regions
        for inner in inner_arrays(self.array):
            unknown = object()  # the arrangement inside a wrapper equals no other
            if isinstance(inner, np.ndarray):
                regions.append(_array_region(inner, unknown))
            else:
                regions += [
                    StorageRegion(location.key, dense_footprint(0, 1), unknown) for location in store_locations(inner)
                ]
        return regions

    def _covers_chunks(self, box: Box) -> bool:
        ends = zip(box.offset, box.end, self._write_chunks or (), self.shape, strict=False)
        return all(start % n == 0 and (end % n == 0 or end == extent) for start, end, n, extent in ends)


def copy_elements(source: Array, target: Array) -> None:
    """Copy an array to another of the same type; a large one by a copy plan, in whatever order it lies.

    >>> target = np.zeros((2, 3), int)
    >>> copy_elements(np.arange(6).reshape(3, 2).T, target)
    >>> target.tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    if source.nbytes < MIN_NATIVE_COPY or source.shape != target.shape or not native.is_available():
        target[...] = source
        return
    start, end = source.ctypes.data, target.ctypes.data
    size = source.itemsize
    word = gcd(size, 8, *source.strides, *target.strides, start, end)
    run, source_low, target_low = compile_word_copy(source.shape, source.strides, target.strides, size, word)
    run(start + source_low, end + target_low)


def _repeated_parts(tile: Box, shape: tuple[int, ...], padding: str) -> Iterator[_TilePart]:
    """Yield the parts of a tile that extends outside an array which is repeated there."""
    for segments in repeated_boxes(tile, shape, padding):
        place = tuple([slice(part.start, part.start + part.length) for part in segments])
        turn = tuple([slice(None, None, -1 if part.step < 0 else 1) for part in segments])
        yield _TilePart(place, source_box_of(segments), turn)


def _array_region(array: Array, arrangement: Any) -> StorageRegion:
    footprint = Footprint(array.ctypes.data, array.shape, array.strides, array.itemsize)
    return StorageRegion("memory", footprint, arrangement)


def _enclosing_box(boxes: Sequence[Box]) -> Box:
    low = tuple(map(min, zip(*[box.offset for box in boxes], strict=True)))
    high = map(max, zip(*[box.end for box in boxes], strict=True))
    return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))
