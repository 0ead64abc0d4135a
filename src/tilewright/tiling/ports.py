# SPDX-License-Identifier: Apache-2.0
"""Ports: the outer side of a pipeline, where tiles are read from and written to.

Memory that the machine can address (arrays, memory maps) is moved straight to and from a room by a copy plan. Anything
else that slices (zarr, HDF5) is asked for the box it must give, and the rest is again a plan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from math import gcd, prod
from typing import Any, Protocol

import numpy as np

from ..copying.buffers import aligned_empty
from ..copying.device_array import DeviceArray
from ..copying.footprints import Footprint, dense
from ..copying.prepared import Runner
from ..errors import TransferError
from ..layout import Layout
from ..layout.box import Box
from .fills import check_fill, read_box, repeated_boxes
from .moves import LARGE_TARGET, Move, Moves, carrier, export_moves, import_moves
from .sharing import Stretch
from .stores import arrays_within, is_hdf5, is_zarr, places_of
from .tensors import ExternalTensor, InternalTensor

Work = Callable[[], None]


class Room:
    """A piece of internal memory, aligned to a cache line, in which tiles of many shapes are packed one at a time.

    >>> Room(1024).view((4, 8), np.dtype("float32")).strides
    (32, 4)
    """

    def __init__(self, nbytes: int) -> None:
        self.bytes = aligned_empty(nbytes, np.uint8)
        self.address: int = self.bytes.ctypes.data

    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a tile of this shape and type at the start of the room, as an array."""
        nbytes = prod(shape) * dtype.itemsize
        if nbytes > self.bytes.size:
            raise TransferError(f"a tile of {shape} {dtype} takes {nbytes} bytes, the room has {self.bytes.size}")
        return np.ndarray(shape, dtype, self.bytes.data)


def check_plain(array: Any, what: str) -> None:
    """Raise for arrays that say more than their elements do: masks and units would be lost on the way.

    >>> check_plain(np.zeros(3), "the source")
    """
    kind = type(array)
    if isinstance(array, np.ma.MaskedArray):
        lost, remedy = "mask", "pass array.filled(value), and the mask as another source if the compute needs it"
    elif hasattr(array, "magnitude") and hasattr(array, "units"):
        lost, remedy = "units", "pass array.magnitude"
    elif isinstance(array, np.ndarray) and kind not in (np.ndarray, np.memmap):
        lost, remedy = "meaning beyond its elements", "pass numpy.asarray(array) if it may be dropped"
    else:
        return
    raise TransferError(f"{what} is a {kind.__name__}, whose {lost} would be lost; {remedy}")


class Port(Protocol):
    """Where an operand of a pipeline lives.

    >>> MemoryPort(ExternalTensor(np.zeros((4, 8)))).shape
    (4, 8)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def importing(self, tile: Box, room: Room, fill: Any) -> Work:
        """Return the work that fills a room with a tile."""

    def exporting(self, tile: Box, room: Room) -> Work:
        """Return the work that writes a tile from a room, less what lies outside."""

    def stretches(self) -> list[Stretch]:
        """Return the bytes that the operand lies on."""


class MemoryPort:
    """The port of memory that plans can reach.

    Tiles inside the tensor take the short way: their plan depends on their shape alone, and only addresses differ.

    >>> MemoryPort(ExternalTensor(np.zeros((4, 8), np.int16))).dtype
    dtype('int16')
    """

    def __init__(self, tensor: ExternalTensor) -> None:
        self.tensor = tensor
        self.shape, self.dtype = tensor.shape, tensor.dtype
        whole = tensor.window.offset == (0,) * len(tensor.whole) and tensor.shape == tensor.whole
        self._short = whole and tensor.strides is not None and tensor._holds_all
        steps = tensor.strides or ()
        # every tile starts a whole number of steps from the base, and every room at a cache line
        self._word = gcd(self.dtype.itemsize, 8, tensor.address, *steps) if self.dtype.itemsize else 1
        self._base = tensor.address
        self._large = prod(self.shape) * self.dtype.itemsize >= LARGE_TARGET
        self._runners: dict[tuple[tuple[int, ...], bool], tuple[Runner, int]] = {}
        self._axes = tuple(zip(self.shape, steps, strict=True)) if self._short else ()
        # What the moves of a tile depend on, beside where it starts; None where they depend on more.
        self.likeness: Any = (self._axes, self.dtype, self._base % 8) if self._short else None

    def _address(self, tile: Box) -> int | None:
        """Return where a tile starts if the short way is open to it: it lies inside."""
        if not self._short:
            return None
        address = self._base
        for start, n, (whole, step) in zip(tile.offset, tile.shape, self._axes, strict=True):
            if start < 0 or start + n > whole or not n:
                return None
            address += start * step
        return address

    def importing(self, tile: Box, room: Room, fill: Any) -> Work:
        """Return the work that fills a room with a tile."""
        address = self._address(tile)
        if address is None:
            return import_moves(_internal(room, tile, self.dtype), self.tensor.tile(tile), fill)
        run, below = self.runner(tile.shape, importing=True)
        return Moves([Move(run, address + below, room.address, (self.tensor, room))])

    def runner(self, shape: tuple[int, ...], importing: bool) -> tuple[Runner, int]:
        """Return what moves tiles of a shape that lie inside, and how far from its start a tile's memory begins.

        >>> MemoryPort(ExternalTensor(np.zeros(8)[::-1])).runner((4,), importing=True)[1]
        -24
        """
        known = self._runners.get((shape, importing))
        if known is None:
            size, steps = self.dtype.itemsize, self.tensor.strides or ()
            packed = _packed(shape, size)
            if importing:
                run, shift, _ = carrier(shape, steps, packed, size, self._word)
            else:
                run, _, shift = carrier(shape, packed, steps, size, self._word, self._large)
            known = self._runners[shape, importing] = (run, shift)
        return known

    def exporting(self, tile: Box, room: Room) -> Work:
        """Return the work that writes a tile from a room, less what lies outside."""
        address = self._address(tile)
        if address is None:
            return export_moves(_internal(room, tile, self.dtype), self.tensor.tile(tile), clip=True)
        run, under = self.runner(tile.shape, importing=False)
        return Moves([Move(run, room.address, address + under, (self.tensor, room))])

    def stretches(self) -> list[Stretch]:
        """Return the memory of the tensor."""
        return [self._stretch_in("memory", 0)]

    def _stretch_in(self, where: Any, shift: int) -> Stretch:
        """Return the memory of the tensor, counted from another start."""
        tensor, first = self.tensor, self.tensor.address + shift
        if tensor.strides is None:
            footprint = dense(tensor.memory.address + shift, tensor.memory.nbytes)
        else:
            footprint = Footprint(first, tensor.whole, tensor.strides, self.dtype.itemsize)
        return Stretch(where, footprint, (first, tensor.strides or tensor.layout, tensor.window.offset))


class SlicedPort:
    """The port of an object that gives and takes boxes when it is sliced, such as a zarr array.

    >>> class Stored:
    ...     shape, dtype = (6,), np.dtype(int)
    ...
    ...     def __getitem__(self, box):
    ...         return np.arange(6)[box]
    >>> room = Room(64)
    >>> SlicedPort(Stored()).importing(Box((4,), (4,)), room, "edge")()
    >>> room.view((4,), np.dtype(int)).tolist()
    [4, 5, 5, 5]
    """

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.shape = tuple([int(n) for n in thing.shape])
        self.dtype = np.dtype(thing.dtype)
        self._chunks = chunks_of(thing)
        self._writing = threading.Lock()

    def importing(self, tile: Box, room: Room, fill: Any) -> Work:
        """Return the work that fills a room with a tile."""
        chosen = None if fill is None else check_fill(fill, self.dtype)
        box = tile.within(self.shape)
        if box != tile and isinstance(chosen, str):
            box = _around([read_box(part) for part in repeated_boxes(tile, self.shape, chosen)])

        def work() -> None:
            # what is wholly outside is not asked for
            piece = np.empty(box.shape, self.dtype) if box.empty else self.thing[box.slices]
            check_plain(piece, f"what {type(self.thing).__name__} gives for slices")
            piece = np.ascontiguousarray(piece, self.dtype)
            if piece.shape != box.shape:
                raise TransferError(f"slices {box} of {type(self.thing).__name__} gave shape {piece.shape}")
            import_moves(_internal(room, tile, self.dtype), self._seen_in(piece, box).tile(tile), fill)()

        return work

    def _seen_in(self, piece: np.ndarray[Any, Any], box: Box) -> ExternalTensor:
        """Return the whole tensor, of which only a box is in memory."""
        steps = tuple([step // piece.itemsize for step in piece.strides])
        before = sum([start * step for start, step in zip(box.offset, steps, strict=True)])
        return ExternalTensor(piece.reshape(-1), self.shape, Layout(self.shape, steps), offset=-before, const=True)

    def exporting(self, tile: Box, room: Room) -> Work:
        """Return the work that writes a tile from a room, less what lies outside."""
        inside = tile.within(self.shape)
        view = room.view(tile.shape, self.dtype)[inside.relative_to(tile.offset).slices]
        # part of a chunk is written by reading all of it, and a neighbour that does so too would be lost
        turn: Any = nullcontext() if self._is_whole_chunks(inside) else self._writing

        def work() -> None:
            if not inside.empty:
                with turn:
                    self.thing[inside.slices] = view

        return work

    def stretches(self) -> list[Stretch]:
        """Return the memory of an array, or the store as a whole: which of its bytes are where, it does not say."""
        if isinstance(self.thing, np.ndarray):
            return [_memory_of(self.thing, (self.thing.ctypes.data, self.thing.strides))]
        found = [Stretch(place.key, dense(0, 1), None) for place in places_of(self.thing)]
        if is_zarr(self.thing) or is_hdf5(self.thing):
            return found
        for array in arrays_within(self.thing):
            apart = object()  # how a wrapper arranges its arrays is not known: no other is arranged alike
            if isinstance(array, np.ndarray):
                found.append(_memory_of(array, apart))
            else:
                found += [Stretch(place.key, dense(0, 1), apart) for place in places_of(array)]
        return found

    def _is_whole_chunks(self, box: Box) -> bool:
        ends = zip(box.offset, box.end, self._chunks or (), self.shape, strict=False)
        return all(start % n == 0 and (end % n == 0 or end == extent) for start, end, n, extent in ends)


def chunks_of(thing: Any) -> tuple[int, ...] | None:
    """Return the shape of what an array is stored in, and written as a whole: its shards or its chunks, if it says.

    >>> chunks_of(np.zeros(3)) is None
    True
    """
    chunks = getattr(thing, "shards", None) or getattr(thing, "chunks", None)
    known = isinstance(chunks, tuple) and all(isinstance(n, int) and n > 0 for n in chunks)
    return chunks if known else None


class DevicePort:
    """The port of an array in the memory of a device, where a pipeline runs as a kernel.

    >>> from tilewright.formats import float32
    >>> there = DeviceArray(home=None, memory=0, start=0, shape=(4,), strides=(4,), format=float32, owner=None)
    >>> DevicePort(there).dtype
    dtype('float32')
    """

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.shape, self.dtype = tuple([int(n) for n in array.shape]), array.dtype

    def importing(self, tile: Box, room: Room, fill: Any) -> Work:
        """Raise: the host does not reach this memory."""
        raise self._unreachable()

    def exporting(self, tile: Box, room: Room) -> Work:
        """Raise: the host does not reach this memory."""
        raise self._unreachable()

    def stretches(self) -> list[Stretch]:
        """Return the memory of the array: of all that the device addresses, or of the buffer that it lies in."""
        array = self.array
        where, shift = ("device", array.memory) if isinstance(array.memory, int) else (array.memory, 0)
        footprint = Footprint(array.start + shift, array.shape, array.strides, array.itemsize)
        return [Stretch(where, footprint, (footprint.first, array.strides))]

    def _unreachable(self) -> TransferError:
        engine = self.array.home.engine
        return TransferError(
            f"an operand is in the memory of {engine}, which the host does not reach; give the compute in C, as in"
            f" pipeline.kernel('2 * in0', engine={engine!r}).run(), or copy the operand to the host"
        )


def _memory_of(array: np.ndarray[Any, Any], arrangement: Any) -> Stretch:
    footprint = Footprint(array.ctypes.data, array.shape, array.strides, array.itemsize)
    return Stretch("memory", footprint, arrangement)


def _around(boxes: list[Box]) -> Box:
    low = tuple(map(min, zip(*[box.offset for box in boxes], strict=True)))
    high = map(max, zip(*[box.end for box in boxes], strict=True))
    return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))


def _packed(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    steps = []
    for n in reversed(shape):
        steps.append(size)
        size *= n
    return tuple(steps[::-1])


def _internal(room: Room, tile: Box, dtype: np.dtype[Any]) -> InternalTensor:
    return InternalTensor(room.bytes, tile.shape, dtype=dtype)
