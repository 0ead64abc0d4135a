# SPDX-License-Identifier: Apache-2.0
"""Endpoints: the arrays in memory, in mapped files and on devices that tiles are imported from and exported to.

Addressable memory is copied straight to and from a buffer by a copy plan.

A page that was touched through a map counts as memory of the process until the system takes it back, so streaming a
large file through its map would fill the memory. A contiguous range of the file is therefore read and written directly.
Other tiles go through the map, and the touched pages are released now and then.

Touching a page of a map behind the end of its file kills the process (SIGBUS), and a file can be truncated at any time.
So the size of the file is queried before each tile that goes through the map, which takes 1 us; reading every row of a
tile by a separate call took 5 to 40 times as long as the map (float32, rows of 64 to 1024 elements, in the page cache).
The remaining risk is a file that is truncated while one of its tiles is being copied.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from math import gcd, prod
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from .._files import mmap
from ..copying import (
    DeviceArray,
    Footprint,
    Runner,
    dense_footprint,
    find_device_array,
    native,
    packed_strides,
    strided_range,
)
from ..errors import LayoutError, TransferError
from ..files import absolute_name, map_file, open_array, parse_array_name, read_npy_layout
from ..layout import Box
from .stores import (
    ChunkCache,
    ChunkReader,
    ChunkUses,
    StorageRegion,
    chunk_shape,
    describe_store,
    inner_arrays,
    is_hdf5,
    is_zarr,
    open_access,
    read_chunk_shape,
    reject_array_wrappers,
    store_locations,
    validate_open,
)
from .tile_copies import (
    LARGE_TARGET,
    BoundCopy,
    CopyList,
    ExternalTensor,
    Fill,
    TileBuffer,
    Work,
    boxes_outside,
    compile_word_copy,
    copy_strided,
    export_copies,
    import_copies,
    repeated_boxes,
    source_box_of,
    validate_fill,
)
from .tiler import Extents, Tiler, as_extents

RELEASE_AFTER = 16 << 20
"""Bytes that may be touched through a map before its pages are released."""

MIN_FILE_READ = 64 << 10
"""Bytes below which a tile goes through the map: a system call for a short range costs more than a page fault."""


class Endpoint(Protocol):
    """An array that tiles are imported from or exported to.

    >>> MemoryEndpoint(ExternalTensor(np.zeros((4, 8)))).shape
    (4, 8)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Fill) -> Work:
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

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Fill) -> Work:
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
            packed = packed_strides(shape, size)
            if importing:
                run, low, _ = compile_word_copy(shape, strides, packed, size, self._word)
            else:
                run, _, low = compile_word_copy(shape, packed, strides, size, self._word, self._large)
            known = self._tile_copies[shape, importing] = (run, low)
        return known

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the tensor."""
        return [self._region("memory", 0)]

    def _region(self, store: object, shift: int) -> StorageRegion:
        """Return the bytes of the tensor in a store, with `shift` added to their addresses."""
        tensor, first = self.tensor, self.tensor.address + shift
        if tensor.strides is None:
            footprint = dense_footprint(tensor.memory.address + shift, tensor.memory.nbytes)
        else:
            footprint = Footprint(first, tensor.space, tensor.strides, self.dtype.itemsize)
        return StorageRegion(store, footprint, (first, tensor.strides or tensor.layout, tensor.window.offset))


class MappedEndpoint(MemoryEndpoint):
    """An array that lies in a `numpy.memmap`.

    `file` is an open descriptor of the mapped file, which the endpoint takes over; without it, the file is opened.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = np.lib.format.open_memmap(pathlib.Path(folder, "a.npy"), "w+", np.int16, (4, 8))
    ...     endpoint, buffer = MappedEndpoint(file), TileBuffer(32)
    ...     endpoint.plan_import(Box((2, 0), (2, 8)), buffer, None)()
    ...     endpoint.close()
    ...     del file, endpoint
    """

    def __init__(self, array: np.ndarray[Any, Any], file: int | None = None) -> None:
        super().__init__(ExternalTensor(array))
        self.copy_key = None  # large tiles are read from the file
        root = find_memmap(array)
        if root is None:
            raise TransferError(f"expected an array in a memory map, got {type(array).__name__} in plain memory")
        self._map: Any = root._mmap  # type: ignore[attr-defined]  # NumPy has no public name for it
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        skipped = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
        self._file_shift = skipped - start  # from an address to a file offset
        _, end = strided_range(array.shape, array.strides, array.itemsize)
        # bytes that the file must have
        self._required_size = array.ctypes.data + end + self._file_shift if array.size else 0
        self._shared = is_shared_map(root)
        if file is None:
            name = str(root.filename)
            file = _open_mapped_file(name, bool(array.flags.writeable), start) if self._shared else -1
        self._file = file
        self._touched = 0
        self._touched_lock = threading.Lock()

    def close(self) -> None:
        """Close the file; the map stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    @property
    def inode(self) -> int | None:
        """The inode of the mapped file, None if its path now names another file."""
        return os.fstat(self._file).st_ino if self._file >= 0 else None

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Fill) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""
        nbytes = prod(tile.shape) * self.dtype.itemsize
        address = self._contiguous_address(tile, nbytes)
        if address is None:
            return partial(self._copy_through_map, super().plan_import(tile, buffer, fill), nbytes)
        return partial(self._read_file, buffer.bytes[:nbytes].data, address + self._file_shift)

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        nbytes = prod(tile.shape) * self.dtype.itemsize
        address = self._contiguous_address(tile, nbytes)
        if address is None:
            return partial(self._copy_through_map, super().plan_export(tile, buffer), nbytes)
        return partial(self._write_file, buffer.bytes[:nbytes].data, address + self._file_shift)

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the map, and the range of the file, which other maps may share."""
        in_memory = super().regions()
        if self._file < 0:
            return in_memory
        file = os.fstat(self._file)
        return [*in_memory, self._region(("file", file.st_dev, file.st_ino), self._file_shift)]

    def _contiguous_address(self, tile: Box, nbytes: int) -> int | None:
        """Return the address of a tile that is one long contiguous range of the file, None for other tiles."""
        address = self._tile_address(tile) if nbytes >= MIN_FILE_READ and self._file >= 0 else None
        if address is None:
            return None
        size = self.dtype.itemsize
        for n, (_, step) in zip(reversed(tile.shape), reversed(self._axes), strict=True):
            if n > 1 and step != size:
                return None
            size *= n
        return address

    def _read_file(self, buffer: memoryview, offset: int) -> None:
        while buffer.nbytes:
            count = os.preadv(self._file, [buffer], offset)
            if count == 0:
                raise self._truncated_error(buffer.nbytes)
            buffer, offset = buffer[count:], offset + count

    @staticmethod
    def _truncated_error(missing: int) -> TransferError:
        return TransferError(
            f"the file was truncated: the last {missing} bytes of its array are missing; write the file again"
        )

    def _write_file(self, buffer: memoryview, offset: int) -> None:
        while buffer.nbytes:
            count = os.pwritev(self._file, [buffer], offset)
            buffer, offset = buffer[count:], offset + count

    def _copy_through_map(self, work: Work, nbytes: int) -> None:
        if self._map.size() < self._required_size:  # asks for the size of the file
            raise self._truncated_error(self._required_size - self._map.size())
        work()
        if not self._shared:  # private pages exist nowhere else
            return
        with self._touched_lock:
            self._touched += nbytes
            if self._touched < RELEASE_AFTER:
                return
            self._touched = 0
        # the file keeps the data: only our claim to the pages is dropped
        self._map.madvise(mmap.MADV_DONTNEED)


def _open_mapped_file(name: str, writable: bool, address: int) -> int:
    """Return a descriptor of the file mapped at an address; -1 if the name is now another file."""
    try:
        file = os.open(name, os.O_RDWR if writable else os.O_RDONLY)
    except OSError:
        return -1
    if os.fstat(file).st_ino == _mapped_inode(address):
        return file
    os.close(file)
    return -1


def _mapped_inode(address: int) -> int:
    """Return the inode of the file mapped at an address, -1 if unknown."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            for line in maps:
                span, _, _, _, inode, *_ = line.split()
                low, high = (int(end, 16) for end in span.split("-"))
                if low <= address < high:
                    return int(inode)
    except OSError:
        pass
    return -1


def find_memmap(array: object) -> np.memmap[Any, Any] | None:
    """Return the memory map that an array is a view of, directly or through other views; None if there is none.

    >>> find_memmap(np.zeros(3)) is None
    True
    """
    memmap = None
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            memmap = array
        array = array.base
    return memmap


def is_shared_map(array: object) -> TypeGuard[np.memmap[Any, Any]]:
    """Return whether an array is a shared memory map of a file, whose pages may be released.

    >>> is_shared_map(np.zeros(3))
    False
    """
    return (
        isinstance(array, np.memmap)
        and getattr(array, "_mmap", None) is not None
        and getattr(array, "mode", None) in ("r", "r+", "w+")
        and getattr(array, "filename", None) is not None
        and hasattr(os, "preadv")
        and hasattr(mmap, "MADV_DONTNEED")
    )


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

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Fill) -> Work:
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


# Endpoints in stores: objects that return and accept boxes when they are sliced, such as zarr and HDF5 arrays.

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
        """The bytes of a decoded chunk; 0 without chunks."""
        return prod(self.chunks) * self.dtype.itemsize if self.chunks else 0

    def share_chunks(self, tiler: Tiler, cache: ChunkCache, source: int) -> None:
        """Read the tiles of a tiler through a cache, in which this array is number `source`."""
        if self.chunks is not None:
            uses = ChunkUses(tiler, self.chunks)
            self._reader = ChunkReader(self._load, self.shape, uses, cache, source, self.access.is_remote)

    def stop_sharing(self) -> None:
        """Read tiles one by one again."""
        self._reader = None

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Fill) -> Work:
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

    def _read(self, boxes: Sequence[Box], padding: Fill) -> list[list[tuple[Box, Array]]]:
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
    sides = [(array.strides, array.dtype, array.ctypes.data) for array in (source, target)]
    copy_strided(source.shape, *sides[0], *sides[1])()


def _repeated_parts(tile: Box, shape: tuple[int, ...], padding: str) -> Iterator[_TilePart]:
    """Yield the parts of a tile that extends outside an array which is repeated there."""
    for segments in repeated_boxes(tile, shape, padding):
        place = tuple([slice(part.start, part.start + part.length) for part in segments])
        turn = tuple([slice(None, None, -1 if part.step < 0 else 1) for part in segments])
        yield _TilePart(place, source_box_of(segments), turn)


def _array_region(array: Array, arrangement: object) -> StorageRegion:
    footprint = Footprint(array.ctypes.data, array.shape, array.strides, array.itemsize)
    return StorageRegion("memory", footprint, arrangement)


def _enclosing_box(boxes: Sequence[Box]) -> Box:
    low = tuple(map(min, zip(*[box.offset for box in boxes], strict=True)))
    high = map(max, zip(*[box.end for box in boxes], strict=True))
    return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))


# Operands: the arrays that a pipeline or a plan reads and writes, validated, opened as endpoints, and referenced.

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)  # it stands for storage, which equals only itself
class Input:
    """An operand that is read: the array `source`, the `tiler` that cuts it, and the `fill` outside of it.

    >>> Input(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).fill
    0
    """

    source: Any
    tiler: Tiler
    fill: Fill = 0


@dataclass(frozen=True, eq=False)
class Output:
    """An operand that is written: the array `target`, and the `tiler` that cuts it.

    >>> Output(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).tiler.count
    2
    """

    target: Any
    tiler: Tiler


def open_endpoint(array: object, writing: bool = False) -> Endpoint:
    """Return the endpoint of an array, an external tensor, or anything else with a shape, a dtype and slices.

    `writing` requires that the array can be written.

    >>> type(open_endpoint(np.zeros((4, 8)))).__name__
    'MemoryEndpoint'
    """
    validate_operand(array, "target" if writing else "source")
    if isinstance(array, ExternalTensor):
        endpoint = MemoryEndpoint(array)
    elif isinstance(array, np.ndarray) and _has_element_strides(array):
        endpoint = MemoryEndpoint(ExternalTensor(array)) if find_memmap(array) is None else MappedEndpoint(array)
    elif (device_array := find_device_array(array)) is not None:
        if writing and not device_array.writeable:
            raise TransferError(f"cannot write to {type(array).__name__}, which is read-only; give a writable target")
        return DeviceEndpoint(device_array)
    else:
        return SlicedEndpoint(array)
    if writing and endpoint.tensor.const:
        raise TransferError(f"cannot write to {endpoint.tensor!r}, which is read-only; give a writable target")
    return endpoint


def validate_operand(array: Any, role: str) -> None:
    """Raise unless tiles of an object can be read or written: an array of plain elements with at least one axis.

    `role` is "source" or "target".

    >>> validate_operand(None, "target")
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: expected a target with shape, dtype and slices, got None; give an array, ...
    """
    if isinstance(array, ExternalTensor):
        return
    validate_open(array)
    on_host = find_device_array(array) is None
    methods = ("__getitem__", "__setitem__") if role == "target" else ("__getitem__",)
    if on_host and (isinstance(array, type) or not all(hasattr(array, name) for name in ("shape", "dtype", *methods))):
        raise TransferError(
            f"expected a {role} with shape, dtype and slices, got {'None' if array is None else type(array).__name__};"
            " give an array, a memory map, a zarr or HDF5 array, or an ExternalTensor"
        )
    reject_array_wrappers(array, f"the {role}")
    shape = as_extents(tuple(array.shape), f"the shape of the {role}")
    if not shape:
        raise LayoutError(f"the {role} has no axes, so it cannot be tiled; give array.reshape(1)")
    if min(shape) < 0 or prod([max(n, 1) for n in shape]) >= 1 << 62:
        raise LayoutError(f"the {role} has shape {shape}; extents must be positive, and their product below 2**62")
    if on_host:
        _validate_dtype(array.dtype, role)


def _validate_dtype(dtype: npt.DTypeLike, role: str) -> None:
    try:
        element = np.dtype(dtype)
    except TypeError:
        raise TransferError(
            f"the {role} has elements of type {dtype!r}, which is not a NumPy type; pass a NumPy array, such as"
            " tensor.numpy()"
        ) from None
    if element.hasobject:
        raise LayoutError(f"the {role} holds Python objects ({element}), which cannot be copied as bytes; use numbers")
    if not element.itemsize:
        raise LayoutError(f"the {role} has elements of type {element}, which have 0 bytes; use another type")


def validate_equal_shapes(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Raise unless all sources and targets have the shape of the first source.

    >>> validate_equal_shapes([np.zeros(4)], [np.zeros(5)])
    Traceback (most recent call last):
        ...
    tilewright.errors.LayoutError: source has shape (4,), target has shape (5,); they must be equal, or ...
    """
    arrays = [*[("source", array) for array in sources], *[("target", array) for array in targets]]
    shapes = [(role, tuple([int(n) for n in array.shape])) for role, array in arrays]
    for role, shape in shapes[1:]:
        if shape != shapes[0][1]:
            raise LayoutError(
                f"source has shape {shapes[0][1]}, {role} has shape {shape}; they must be equal, or give a tiler for"
                " each: Pipeline([Input(source, tiler)], [Output(target, tiler)]). For a halo use overlap=, not a"
                " larger source"
            )


def open_operand(operand: object, writing: bool = False) -> Any:
    """Return an operand as an array: a name is opened, anything else is one already.

    `writing` opens a name to be written.

    >>> open_operand([1, 2])
    [1, 2]
    """
    if isinstance(operand, (str, Path)):
        return open_array(operand, writing=writing)
    return operand


def _has_element_strides(array: np.ndarray[Any, Any]) -> bool:
    """Return whether all strides of an array are multiples of its element size."""
    multiples = all(s % array.itemsize == 0 for n, s in zip(array.shape, array.strides, strict=True) if n > 1)
    return array.ndim > 0 and array.itemsize > 0 and multiples


def as_list(operands: Item | Sequence[Item]) -> list[Item]:
    """Return one operand or a list of operands as a list.

    >>> as_list(7), as_list((7, 8))
    ([7], [7, 8])
    """
    return list(operands) if isinstance(operands, (list, tuple)) else [operands]  # type: ignore[list-item]


def tiler_with_halo(shape: Sequence[int], tile: Extents, halo: tuple[tuple[int, int], ...], order: str) -> Tiler:
    """Return the tiler of an input: the tiles of the output, each with its halo of (before, after) per axis.

    >>> tiler_with_halo((10,), (4,), ((1, 2),), "row_major")[1]
    Box(offset=(3,), shape=(7,))
    """
    space = tuple([int(n) for n in shape])
    if len(halo) != len(space):
        raise LayoutError(f"all sources need the same number of axes, got {len(halo)} and {len(space)}")
    overlap = tuple([before + after for before, after in halo])
    padded_tile = [t + n for t, n in zip(as_extents(tile, "tile", len(space)), overlap, strict=True)]
    return Tiler(space, padded_tile, overlap, halo, order)


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that holds an array: its path, and the shape, dtype, byte offset and order of the array in it.

    `inode` is the inode of a mapped file, so that another file at the same path is noticed.

    >>> FileReference("a.raw", (4, 8), "<f4", 128).nbytes
    128
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0
    fortran_order: bool = False
    inode: int | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of all elements.

        >>> FileReference("a.raw", (10,), "<i2").nbytes
        20
        """
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def open(self, writing: bool) -> Endpoint:
        """Return the endpoint of the array, mapped for as long as the endpoint lives.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.npy")
        ...     np.save(path, np.arange(4))
        ...     make_reference(path).open(writing=False).shape
        (4,)
        """
        dtype = np.dtype(self.dtype)
        array, file = map_file(self.path, dtype, self.shape, self.offset, self.fortran_order, writing)
        return open_endpoint(array, writing) if file < 0 else MappedEndpoint(array, file)

    def verify(self) -> None:
        """Raise unless the file still holds the array that was referenced.

        >>> FileReference("nowhere.npy", (4,), "<f4").verify()
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.npy'
        """
        if self.inode is not None:
            if os.stat(self.path).st_ino != self.inode:
                raise TransferError(f"{self.path} is no longer the file that was mapped; make the plan again")
            return
        current = _reference_npy(self.path)
        if current != self:
            raise TransferError(f"{self.path} has changed: expected {self!r}, got {current!r}; make the plan again")

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return plain data that identifies the file; with `reading`, also the version of its content.

        >>> sorted(FileReference("a.raw", (4, 8), "<f4").identity(reading=False))
        ['dtype', 'fortran_order', 'offset', 'path', 'shape']
        """
        identity: dict[str, Any] = {
            "path": self.path,
            "dtype": self.dtype,
            "shape": self.shape,
            "offset": self.offset,
            "fortran_order": self.fortran_order,
        }
        if reading:
            status = os.stat(self.path)
            identity |= {"inode": status.st_ino, "bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        return identity


@dataclass(frozen=True, slots=True, eq=False)
class StoreReference:
    """An array object, or the name of a stored array, such as `a.zarr`, which is opened wherever a task runs.

    Threads share an object; zarr arrays and the like may be sent to other processes. `description` describes the array
    when the reference was made.

    >>> StoreReference(np.zeros(3)).open(writing=True).shape
    (3,)
    """

    array: Any
    description: dict[str, Any] | None = None

    @property
    def is_name(self) -> bool:
        """Whether the array is given by its name."""
        return isinstance(self.array, str)

    def open(self, writing: bool) -> Endpoint:
        """Return the endpoint of the array; a name is opened anew."""
        return open_endpoint(open_operand(self.array, writing), writing)

    def verify(self) -> None:
        """Raise unless the array still matches its description.

        >>> make_reference(np.zeros(3)).verify()
        """
        current = describe_store(open_operand(self.array))
        if current != self.description:
            subject = self.array if self.is_name else f"the {type(self.array).__name__}"
            raise TransferError(
                f"{subject} has changed: expected {self.description}, got {current}; make the plan again"
            )

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return plain data that identifies the array; its content is compared task by task."""
        return ({"name": self.array} if self.is_name else {}) | describe_store(open_operand(self.array))


ArrayReference = FileReference | StoreReference


def make_reference(array: object) -> ArrayReference:
    """Return a reference to a name, a memory map, or any other array.

    >>> type(make_reference(np.zeros(3))).__name__
    'StoreReference'
    """
    if isinstance(array, (str, Path)):
        name = parse_array_name(array)
        if name.kind == "npy" and name.is_local:
            return _reference_npy(str(Path(name.path).resolve()))
        array = absolute_name(name)
        return StoreReference(array, describe_store(open_array(array)))
    # the file offset of a view of a map is not recorded, so it stays an object
    if is_shared_map(array) and not isinstance(array.base, np.memmap) and array.flags.forc:
        return _reference_map(array)
    return StoreReference(array, describe_store(array))


def _reference_npy(path: str) -> FileReference:
    layout = read_npy_layout(path)
    return FileReference(path, layout.shape, layout.dtype.str, layout.offset, layout.fortran_order)


def _reference_map(array: np.memmap[Any, Any]) -> ArrayReference:
    with closing(MappedEndpoint(array)) as endpoint:
        inode = endpoint.inode
    if inode is None:  # the path names another file now, so only the map can be used
        return StoreReference(array, describe_store(array))
    shape = tuple([int(n) for n in array.shape])
    fortran_order = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    path = str(Path(str(array.filename)).resolve())
    return FileReference(path, shape, array.dtype.str, int(array.offset), fortran_order, inode)


def validate_sendable(reference: ArrayReference, role: str) -> None:
    """Raise unless another process would see the same array; `role` is "source" or "target".

    >>> validate_sendable(FileReference("a.raw", (4, 8), "<f4"), "target")
    """
    if isinstance(reference, FileReference):
        return
    private = "an array in the memory of this process"
    array = open_operand(reference.array)
    if not isinstance(array, np.ndarray):
        private = next((location.private for location in store_locations(array) if location.private), "")
        if reference.is_name and is_hdf5(array):
            if role == "source":
                return  # every process opens the file
            private = "a dataset of an HDF5 file, which one process at a time can write"
        if role == "source" and "zarr MemoryStore" in private:
            return  # its elements are sent with it
    if private:
        raise TransferError(
            f"the {role} is {private}, so tasks in other processes would use a copy; use an .npy file, a memory map, a"
            " zarr array in files, or an executor of threads"
        )
