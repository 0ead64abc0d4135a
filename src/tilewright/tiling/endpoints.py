# SPDX-License-Identifier: Apache-2.0
"""Endpoints: the arrays that tiles are imported from and exported to, and the buffers in between.

Addressable memory (arrays, memory maps) is copied straight to and from a buffer by a copy plan. Anything else that
slices (zarr, HDF5) is asked for the box it must give, and the rest is again a copy plan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import gcd, prod
from typing import Any, Protocol

import numpy as np

from ..copying.device_array import DeviceArray
from ..copying.engine import Runner
from ..copying.host_memory import Footprint, aligned_empty, dense_footprint
from ..errors import TransferError
from ..layout import Layout
from ..layout.box import Box
from .store_location import StorageRegion, inner_arrays, is_hdf5, is_zarr, store_locations
from .tile_copies import (
    LARGE_TARGET,
    BoundCopy,
    CopyList,
    compile_word_copy,
    export_copies,
    import_copies,
    repeated_boxes,
    source_box,
    validate_fill,
)
from .transfer_tensors import ExternalTensor, InternalTensor

Work = Callable[[], None]
"""A transfer that is ready to run."""


class TileBuffer:
    """Internal memory, aligned to a cache line, that holds one packed tile of any shape at a time.

    >>> TileBuffer(1024).view((4, 8), np.dtype("float32")).strides
    (32, 4)
    """

    def __init__(self, nbytes: int) -> None:
        self.bytes = aligned_empty(nbytes, np.uint8)
        self.address: int = self.bytes.ctypes.data

    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a tile of this shape and type at the start of the buffer, as an array."""
        nbytes = prod(shape) * dtype.itemsize
        if nbytes > self.bytes.size:
            raise TransferError(f"a {dtype} tile of {shape} takes {nbytes} bytes, the buffer has {self.bytes.size}")
        return np.ndarray(shape, dtype, self.bytes.data)

    def tensor(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> InternalTensor:
        """Return a tile of this shape and type at the start of the buffer, as an internal tensor."""
        return InternalTensor(self.bytes, shape, dtype=dtype)


def reject_array_wrappers(array: Any, name: str) -> None:
    """Raise for arrays that carry more than elements: a mask or units would be lost. `name` is for the message.

    >>> reject_array_wrappers(np.zeros(3), "the source")
    """
    kind = type(array)
    if isinstance(array, np.ma.MaskedArray):
        lost, remedy = "mask", "pass array.filled(value), and the mask as another source if the compute needs it"
    elif hasattr(array, "magnitude") and hasattr(array, "units"):
        lost, remedy = "units", "pass array.magnitude"
    elif isinstance(array, np.ndarray) and kind not in (np.ndarray, np.memmap):
        lost, remedy = "extra information", "pass numpy.asarray(array) if it may be dropped"
    else:
        return
    raise TransferError(f"{name} is a {kind.__name__}, and its {lost} would be lost; {remedy}")


class Endpoint(Protocol):
    """An array that tiles are imported from or exported to.

    >>> MemoryEndpoint(ExternalTensor(np.zeros((4, 8)))).shape
    (4, 8)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""

    def regions(self) -> list[StorageRegion]:
        """Return the bytes that the array occupies."""


class MemoryEndpoint:
    """An array in addressable memory.

    Tiles that lie inside have a fast path: their copy depends on their shape alone, and only addresses differ.

    >>> MemoryEndpoint(ExternalTensor(np.zeros((4, 8), np.int16))).dtype
    dtype('int16')
    """

    def __init__(self, tensor: ExternalTensor) -> None:
        self.tensor = tensor
        self.shape, self.dtype = tensor.shape, tensor.dtype
        is_entire = tensor.window.offset == (0,) * len(tensor.space) and tensor.shape == tensor.space
        self._fast = is_entire and tensor.strides is not None and tensor.in_bounds
        strides = tensor.strides or ()
        # every tile starts a multiple of the strides from the base, and every buffer at a cache line
        self._word = gcd(self.dtype.itemsize, 8, tensor.address, *strides) if self.dtype.itemsize else 1
        self._base = tensor.address
        self._large = prod(self.shape) * self.dtype.itemsize >= LARGE_TARGET
        self._tile_copies: dict[tuple[tuple[int, ...], bool], tuple[Runner, int]] = {}
        self._axes = tuple(zip(self.shape, strides, strict=True)) if self._fast else ()
        # Arrays with equal keys have equal copies, up to their base address; None: the copies depend on more.
        self.copy_key: Any = (self._axes, self.dtype, self._base % 8) if self._fast else None

    def _tile_address(self, tile: Box) -> int | None:
        """Return the address of a tile on the fast path, None for other tiles."""
        if not self._fast:
            return None
        address = self._base
        for start, n, (extent, stride) in zip(tile.offset, tile.shape, self._axes, strict=True):
            if start < 0 or start + n > extent or not n:
                return None
            address += start * stride
        return address

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""
        address = self._tile_address(tile)
        if address is None:
            return import_copies(buffer.tensor(tile.shape, self.dtype), self.tensor.tile(tile), fill)
        run, low = self._compile_tile_copy(tile.shape, importing=True)
        return CopyList([BoundCopy(run, address + low, buffer.address, (self.tensor, buffer))])

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        address = self._tile_address(tile)
        if address is None:
            return export_copies(buffer.tensor(tile.shape, self.dtype), self.tensor.tile(tile), clip=True)
        run, low = self._compile_tile_copy(tile.shape, importing=False)
        return CopyList([BoundCopy(run, buffer.address, address + low, (self.tensor, buffer))])

    def _compile_tile_copy(self, shape: tuple[int, ...], importing: bool) -> tuple[Runner, int]:
        """Return the copy of tiles of a shape that lie inside, and the lowest byte offset from a tile's start."""
        known = self._tile_copies.get((shape, importing))
        if known is None:
            size, strides = self.dtype.itemsize, self.tensor.strides or ()
            packed = _packed_strides(shape, size)
            if importing:
                run, low, _ = compile_word_copy(shape, strides, packed, size, self._word)
            else:
                run, _, low = compile_word_copy(shape, packed, strides, size, self._word, self._large)
            known = self._tile_copies[shape, importing] = (run, low)
        return known

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the tensor."""
        return [self._region("memory", 0)]

    def _region(self, store: Any, shift: int) -> StorageRegion:
        """Return the bytes of the tensor in a store, with `shift` added to their addresses."""
        tensor, first = self.tensor, self.tensor.address + shift
        if tensor.strides is None:
            footprint = dense_footprint(tensor.memory.address + shift, tensor.memory.nbytes)
        else:
            footprint = Footprint(first, tensor.space, tensor.strides, self.dtype.itemsize)
        return StorageRegion(store, footprint, (first, tensor.strides or tensor.layout, tensor.window.offset))


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

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = tuple([int(n) for n in array.shape])
        self.dtype = np.dtype(array.dtype)
        self._chunks = chunk_shape(array)
        self._write_lock = threading.Lock()

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""
        padding = None if fill is None else validate_fill(fill, self.dtype)
        box = tile.within(self.shape)
        if box != tile and isinstance(padding, str):
            box = _enclosing_box([source_box(segments) for segments in repeated_boxes(tile, self.shape, padding)])

        def read() -> None:
            # nothing is read for a tile that is entirely outside
            piece = np.empty(box.shape, self.dtype) if box.empty else self.array[box.slices]
            reject_array_wrappers(piece, f"the result of slicing {type(self.array).__name__}")
            piece = np.ascontiguousarray(piece, self.dtype)
            if piece.shape != box.shape:
                raise TransferError(
                    f"slicing {type(self.array).__name__} at {box} returned shape {piece.shape}, expected {box.shape}"
                )
            import_copies(buffer.tensor(tile.shape, self.dtype), self._space_around(piece, box).tile(tile), fill)()

        return read

    def _space_around(self, piece: np.ndarray[Any, Any], box: Box) -> ExternalTensor:
        """Return the full space as a tensor of which only a box is in memory."""
        steps = tuple([step // piece.itemsize for step in piece.strides])
        skipped = sum([start * step for start, step in zip(box.offset, steps, strict=True)])
        return ExternalTensor(piece.reshape(-1), self.shape, Layout(self.shape, steps), offset=-skipped, const=True)

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        inside = tile.within(self.shape)
        view = buffer.view(tile.shape, self.dtype)[inside.relative_to(tile.offset).slices]
        # a partial chunk is written by read-modify-write, which would lose a concurrent write of the same chunk
        guard: AbstractContextManager[Any] = nullcontext() if self._covers_chunks(inside) else self._write_lock

        def write() -> None:
            if not inside.empty:
                with guard:
                    self.array[inside.slices] = view

        return write

    def regions(self) -> list[StorageRegion]:
        """Return the memory of an array, or the store as a whole, since the bytes in it are unknown."""
        if isinstance(self.array, np.ndarray):
            return [_array_region(self.array, (self.array.ctypes.data, self.array.strides))]
        regions = [StorageRegion(location.key, dense_footprint(0, 1), None) for location in store_locations(self.array)]
        if is_zarr(self.array) or is_hdf5(self.array):
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
        ends = zip(box.offset, box.end, self._chunks or (), self.shape, strict=False)
        return all(start % n == 0 and (end % n == 0 or end == extent) for start, end, n, extent in ends)


def chunk_shape(array: Any) -> tuple[int, ...] | None:
    """Return the shape of the shards or chunks that an array is stored in, None if it has none.

    >>> chunk_shape(np.zeros(3)) is None
    True
    """
    chunks = getattr(array, "shards", None) or getattr(array, "chunks", None)
    is_shape = isinstance(chunks, tuple) and all(isinstance(n, int) and n > 0 for n in chunks)
    return chunks if is_shape else None


class DeviceEndpoint:
    """An array in the memory of a device, where a pipeline runs as a kernel.

    >>> from tilewright.formats import float32
    >>> array = DeviceArray(backend=None, memory=0, start=0, shape=(4,), strides=(4,), format=float32, owner=None)
    >>> DeviceEndpoint(array).dtype
    dtype('float32')
    """

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.shape, self.dtype = tuple([int(n) for n in array.shape]), array.dtype

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Raise: the host cannot address this memory."""
        raise self._not_on_host()

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Raise: the host cannot address this memory."""
        raise self._not_on_host()

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the array: in the device's address space, or in the buffer object that holds it."""
        array = self.array
        store, shift = ("device", array.memory) if isinstance(array.memory, int) else (array.memory, 0)
        footprint = Footprint(array.start + shift, array.shape, array.strides, array.itemsize)
        return [StorageRegion(store, footprint, (footprint.first, array.strides))]

    def _not_on_host(self) -> TransferError:
        engine = self.array.backend.engine
        return TransferError(
            f"an operand is in {engine} memory, which the host cannot address; give the compute in C, as in"
            f" pipeline.kernel('2 * in0', engine={engine!r}).run(), or copy the operand to the host"
        )


def _array_region(array: np.ndarray[Any, Any], arrangement: Any) -> StorageRegion:
    footprint = Footprint(array.ctypes.data, array.shape, array.strides, array.itemsize)
    return StorageRegion("memory", footprint, arrangement)


def _enclosing_box(boxes: list[Box]) -> Box:
    low = tuple(map(min, zip(*[box.offset for box in boxes], strict=True)))
    high = map(max, zip(*[box.end for box in boxes], strict=True))
    return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))


def _packed_strides(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    strides = []
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(strides[::-1])
