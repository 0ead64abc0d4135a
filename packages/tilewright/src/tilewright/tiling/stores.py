# SPDX-License-Identifier: Apache-2.0
"""Arrays in stores (zarr, HDF5, Dask, anything that slices): where they are, their chunks, whether two share bytes.

Zarr, HDF5 and Dask make a new object at each access, so object identity is meaningless. A store is identified by its
folder, file, URL or dictionary, and by the array's name in it. The libraries are not imported for that: a caller that
has their objects has imported them.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import hashlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import combinations, product
from math import prod
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..copying import Footprint, find_device_array
from ..errors import TransferError
from ..layout import Box
from .tile_copies import ExternalTensor
from .tiler import Tiler, number_of, tiles_along

_MAX_SEARCHED = 4096
"""Objects that are searched for the arrays behind a wrapper."""

_MAX_DEPTH = 4
"""Attributes that are followed from a wrapper to its arrays."""

_LEAF_TYPES = (type, ModuleType, FunctionType, BuiltinFunctionType, str, bytes, int, float, complex, type(None))


class StorageRegion(NamedTuple):
    """The bytes that an array occupies: in which store (memory, file or object), which ones, and in what arrangement.

    >>> from tilewright.copying.placement import dense_footprint
    >>> StorageRegion("memory", dense_footprint(0, 8), (0, 1)).overlaps(
    ...     StorageRegion("memory", dense_footprint(7, 2), (7, 1))
    ... )
    True
    """

    store: Any
    footprint: Footprint
    arrangement: Any

    def overlaps(self, other: StorageRegion) -> bool:
        """Return whether two regions share a byte."""
        return bool(self.store == other.store) and self.footprint.overlaps(other.footprint)


class HasRegions(Protocol):
    """An array that knows the bytes it occupies. A mapped file has two regions: in memory, and in the file."""

    def regions(self) -> Sequence[StorageRegion]:
        """Return the bytes that the array occupies."""


def share_bytes(source: HasRegions, target: HasRegions) -> bool:
    """Return whether two arrays share a byte.

    >>> from tilewright.tiling.endpoints import open_endpoint
    >>> a = np.zeros(8)
    >>> (
    ...     share_bytes(open_endpoint(a[:5]), open_endpoint(a[4:])),
    ...     share_bytes(open_endpoint(a[::2]), open_endpoint(a[1::2])),
    ... )
    (True, False)
    """
    return any(one.overlaps(other) for one in source.regions() for other in target.regions())


def validate_separate_targets(targets: Sequence[HasRegions]) -> None:
    """Raise if two targets share a byte.

    >>> from tilewright.tiling.endpoints import open_endpoint
    >>> a = np.zeros(8)
    >>> validate_separate_targets([open_endpoint(a[::2]), open_endpoint(a[1::2])])
    """
    if any(share_bytes(*pair) for pair in combinations(targets, 2)):
        raise shared_targets_error()


def shared_targets_error() -> TransferError:
    """Return the error for two targets that share bytes.

    >>> str(shared_targets_error())[:17]
    'two targets share'
    """
    return TransferError(
        "two targets share memory or a file, so tiles of one would overwrite the other; give each its own"
    )


def are_same_array(source: HasRegions, target: HasRegions) -> bool:
    """Return whether two arrays are one: equal indices are the same bytes.

    >>> from tilewright.tiling.endpoints import open_endpoint
    >>> a = np.zeros(8)
    >>> are_same_array(open_endpoint(a), open_endpoint(a)), are_same_array(open_endpoint(a), open_endpoint(a[::-1]))
    (True, False)
    """
    return any(
        one.store == other.store and one.arrangement == other.arrangement
        for one in source.regions()
        for other in target.regions()
    )


class StoreLocation(NamedTuple):
    """The location of a stored array, equal for all of its handles; `private` is why other processes cannot open it.

    >>> StoreLocation(("file", "/data/a.zarr")).private
    ''
    """

    key: tuple[Any, ...]
    private: str = ""


def store_locations(array: object) -> list[StoreLocation]:
    """Return where an array stores its elements, most precise first; an unknown object is its own location.

    >>> class Array:
    ...     shape = (3,)
    >>> one, other = Array(), Array()
    >>> store_locations(one) == store_locations(one), store_locations(one) == store_locations(other)
    (True, False)
    """
    if is_zarr(array):
        return [_zarr_location(array)]
    if is_hdf5(array):
        return list(_hdf5_locations(_hdf5_dataset(array)))
    if hasattr(array, "store_key"):  # our own wrappers of other stores
        return [StoreLocation(array.store_key, getattr(array, "private", ""))]
    return [StoreLocation(("object", id(array)))]


def is_zarr(array: object) -> bool:
    """Return whether an object is a zarr array, of version 2 or 3.

    >>> is_zarr(np.zeros(3))
    False
    """
    return _is_from_package(array, "zarr") and hasattr(type(array), "chunks")


def is_hdf5(array: object) -> bool:
    """Return whether an object is a dataset of h5py, or a view of one in another type.

    >>> is_hdf5(np.zeros(3))
    False
    """
    return _is_from_package(array, "h5py") and hasattr(type(_hdf5_dataset(array)), "chunks")


def validate_open(array: object) -> None:
    """Raise if an array is a dataset of a closed HDF5 file.

    >>> validate_open(np.zeros(3))
    """
    if is_hdf5(array) and not _hdf5_dataset(array).id:
        raise TransferError("the HDF5 dataset is closed; keep its file open until the run ends")


def _is_from_package(array: object, package: str) -> bool:
    return any(base.__module__.partition(".")[0] == package for base in type(array).__mro__)


def inner_arrays(array: Any) -> Iterator[Any]:
    """Yield the NumPy, zarr and HDF5 arrays that a wrapper reads: arrays of its shape, or the arrays of its Dask graph.

    >>> class Sliced:
    ...     def __init__(self, array):
    ...         self.array, self.shape = array, array.shape
    >>> a = np.zeros(3)
    >>> [inner is a for inner in inner_arrays(Sliced(a))]
    [True]
    """
    graph = getattr(array, "__dask_graph__", None)
    level: list[Any] = [array] if graph is None else [list(dict(graph()).values())]
    seen = {id(array)}
    for _ in range(_MAX_DEPTH):
        following = []
        # Before Python 3.11 attributes are referents of the dict of an object, not of the object.
        attributes = [vars(item) for item in level if isinstance(getattr(item, "__dict__", None), dict)]
        seen.update(map(id, attributes))
        for referent in gc.get_referents(*level, *attributes):
            if id(referent) in seen or isinstance(referent, _LEAF_TYPES):
                continue
            seen.add(id(referent))
            if isinstance(referent, np.ndarray):
                if graph is not None or referent.shape == tuple(array.shape):
                    yield referent
            elif is_zarr(referent) or is_hdf5(referent):
                yield referent
            else:
                following.append(referent)
        level = following
        if len(seen) > _MAX_SEARCHED:
            return


def describe_store(array: Any) -> dict[str, Any]:
    """Return plain data that identifies a stored array, read again from its store.

    >>> describe_store(np.zeros((2, 3)))
    {'kind': 'array in memory', 'shape': [2, 3], 'dtype': '<f8'}
    """
    identity: dict[str, Any] = {"kind": f"{type(array).__module__}.{type(array).__qualname__}"}
    if isinstance(array, np.ndarray):
        identity = {"kind": "array in memory"}
    elif is_zarr(array):
        location = _zarr_location(array)
        array = _reopen_zarr(array)
        metadata = repr(getattr(array, "metadata", None) or dict(array.attrs))
        identity |= {
            "location": location.private or list(map(str, location.key)),
            "chunks": list(map(int, array.chunks)),
            "metadata": hashlib.sha256(metadata.encode()).hexdigest()[:16],
        }
    elif is_hdf5(array):
        dataset = _hdf5_dataset(array)
        identity |= {"file": os.path.realpath(dataset.file.filename), "dataset": dataset.name}
    elif hasattr(array, "store_key"):
        identity |= {"location": list(map(str, array.store_key))}
    shape, dtype = [int(n) for n in array.shape], array.dtype
    return identity | {"shape": shape, "dtype": dtype.str if isinstance(dtype, np.dtype) else str(dtype)}


def _zarr_location(array: Any) -> StoreLocation:
    path = getattr(array, "store_path", array).path
    store = getattr(array, "store_path", array).store
    while type(store).__name__ not in ("MemoryStore", "KVStore") and hasattr(store, "_store"):
        store = store._store  # a logging or caching wrapper
    class_names = {base.__name__ for base in type(store).__mro__}
    fs = getattr(store, "fs", None)
    if fs is not None:
        return _fsspec_location(fs, f"{store.path}/{path}")
    if "ObjectStore" in class_names:
        return _obstore_location(store.store, path)
    for owner in (getattr(store, name, None) for name in ("_store_dict", "_mutable_mapping", "root")):
        if hasattr(owner, "keys"):
            return StoreLocation(
                ("memory", id(owner), path), f"a zarr {type(store).__name__} in the memory of this process"
            )
    folder = getattr(store, "root", None) or getattr(store, "path", None)
    if class_names & {"LocalStore", "DirectoryStore", "NestedDirectoryStore"}:
        return StoreLocation(("file", os.path.realpath(os.path.join(str(folder), path))))
    if folder is not None:
        return StoreLocation((type(store).__name__, os.path.realpath(str(folder)), path))
    return StoreLocation((type(store).__name__, str(store), path))


def _obstore_location(store: Any, path: str) -> StoreLocation:
    store_class = type(store).__name__
    if store_class == "LocalStore":
        return StoreLocation(("file", os.path.realpath(os.path.join(str(store.prefix or "/"), path))))
    if store_class == "MemoryStore":
        return StoreLocation(("memory", id(store), path), "an obstore MemoryStore in the memory of this process")
    return StoreLocation(("obstore", repr(store), path))


def _fsspec_location(fs: Any, path: str) -> StoreLocation:
    while True:  # asynchronous, relative and caching wrappers
        inner = getattr(fs, "sync_fs", None) or getattr(fs, "fs", None)
        if inner is None:
            break
        path = f"{getattr(fs, 'path', '') or ''}/{path}"
        fs = inner
    protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    path = os.path.normpath("/" + path.lstrip("/"))
    if protocol in ("file", "local"):
        return StoreLocation(("file", os.path.realpath(path)))
    return StoreLocation(
        ("fsspec", protocol, path), "fsspec's memory:// in this process" if protocol == "memory" else ""
    )


def _reopen_zarr(array: Any) -> Any:
    """Return a zarr array opened again: a handle keeps the metadata it was opened with."""
    try:
        return import_module("zarr").open_array(store=array.store, path=array.path, mode="r")
    except Exception as problem:  # of any store
        raise TransferError(f"cannot reopen {array!r}: {type(problem).__name__}: {problem}; open it again") from None


def _hdf5_dataset(array: object) -> Any:
    """Return the dataset behind an `astype` view of it."""
    return getattr(array, "_dset", array)


def _hdf5_locations(dataset: Any) -> Iterator[StoreLocation]:
    h5py = import_module("h5py")
    private = "an HDF5 dataset, which h5py cannot send to another process"
    info = h5py.h5o.get_info(dataset.id)  # the same for all links to a dataset
    try:
        status = os.stat(dataset.file.filename)
        file: tuple[Any, ...] = (status.st_dev, status.st_ino)
    except OSError:  # in memory only
        file = ("open", info.fileno)
    if dataset.file.driver == "core":
        file = ("open", info.fileno)
    yield StoreLocation(("hdf5", *file, info.addr), private)
    if dataset.is_virtual:
        for source in dataset.virtual_sources():
            name = source.file_name
            if name == ".":
                yield from _hdf5_locations(dataset.file[source.dset_name])
                continue
            folder = os.path.dirname(os.path.realpath(dataset.file.filename))
            with h5py.File(os.path.join(folder, name), "r") as other:
                yield from list(_hdf5_locations(other[source.dset_name]))


def reject_array_wrappers(array: object, name: str) -> None:
    """Raise for arrays that carry more than elements: a mask or units would be lost. `name` is for the message.

    >>> reject_array_wrappers(np.zeros(3), "the source")
    """
    array_class = type(array)
    if isinstance(array, np.ma.MaskedArray):
        lost, remedy = "mask", "pass array.filled(value), and the mask as another source if the compute needs it"
    elif hasattr(array, "magnitude") and hasattr(array, "units"):
        lost, remedy = "units", "pass array.magnitude"
    elif isinstance(array, np.ndarray) and array_class not in (np.ndarray, np.memmap):
        lost, remedy = "extra information", "pass numpy.asarray(array) if it may be dropped"
    else:
        return
    raise TransferError(f"{name} is a {array_class.__name__}, and its {lost} would be lost; {remedy}")


def chunk_shape(array: object) -> tuple[int, ...] | None:
    """Return the shape of the units in which an array is written: its shards or chunks; None if it has none.

    >>> chunk_shape(np.zeros(3)) is None
    True
    """
    return _as_chunks(getattr(array, "shards", None)) or read_chunk_shape(array)


def read_chunk_shape(array: object) -> tuple[int, ...] | None:
    """Return the shape of the units in which an array is read: chunks, also inside shards; None if it has none.

    >>> read_chunk_shape(np.zeros(3)) is None
    True
    """
    return _as_chunks(getattr(array, "chunks", None))


def _as_chunks(chunks: object) -> tuple[int, ...] | None:
    # dask has a tuple of extents for each axis
    if isinstance(chunks, tuple) and chunks and all(isinstance(n, int) and n > 0 for n in chunks):
        return chunks
    return None


# Chunks of stored arrays, read once for all tiles that need them, as far as memory allows.

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]
"""The position of a chunk in the grid of chunks."""

_MAX_LISTED_USES = 4096
"""Tiles of one chunk that are listed; a chunk with more of them is needed again soon in any case."""


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
        start = chunk * self.chunks[axis]
        return tiles_along(self.tiler, axis, start, min(start + self.chunks[axis], self.tiler.space[axis]))

    def _shares_chunks(self, axis: int) -> bool:
        """Return whether a chunk is read by several tiles along an axis."""
        stride, first, extent, last, _ = self.tiler.axes[axis]
        if not last:
            return False
        # tiles that touch and start where chunks start share none
        return extent > stride or bool(first) or bool(stride % self.chunks[axis])

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
    """A chunk with uses left: decoded, being decoded, or to be decoded again."""

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
        """Wake the threads that wait for a chunk."""
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
        """Drop the chunks that are needed last, until a tenth of the limit is free."""
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
        return product(*[range(start // chunk, -(-end // chunk)) for start, end, chunk in axes])

    def _part(self, box: Box, index: Index, chunk: Array) -> tuple[Box, Array]:
        home = self._box_of(index)
        part = home.intersection(box)
        return part, chunk[part.relative_to(home.offset).slices]

    def _box_of(self, index: Index) -> Box:
        chunks = self._uses.chunks
        return Box(tuple([k * n for k, n in zip(index, chunks, strict=True)]), chunks).within(self._shape)

    def _load_chunk(self, index: Index) -> Array:
        return self._load(self._box_of(index))


# Boxes of stored arrays, read and written in the thread that asks for them.


Slices = tuple[slice, ...]

_LOCAL_STORES = {"LocalStore", "MemoryStore"}
"""Stores of zarr 3 whose coroutines run on any event loop."""


class StoreAccess(NamedTuple):
    """Access to the boxes of a stored array.

    `is_parallel`: several threads may use it at once, and gain by it; `is_remote`: they mostly wait for a network.

    >>> access = open_access(np.arange(6))
    >>> access.read((slice(2, 4),)).tolist(), access.is_parallel
    ([2, 3], False)
    """

    read: Callable[[Slices], Any]
    write: Callable[[Slices, Any], None]
    is_parallel: bool = False
    is_remote: bool = False


def open_access(array: Any) -> StoreAccess:
    """Return how boxes of an array are read and written; unknown objects are sliced.

    >>> values = np.zeros(4)
    >>> open_access(values).write((slice(1, 3),), [7, 8])
    >>> values.tolist()
    [0.0, 7.0, 8.0, 0.0]
    """

    def write(box: Slices, values: npt.ArrayLike) -> None:
        array[box] = values

    access = StoreAccess(array.__getitem__, write)
    if is_zarr(array):
        if not hasattr(array, "async_array"):  # zarr 2 works in the calling thread anyway
            return access._replace(is_parallel=True)
        if _is_local(array.store):
            return StoreAccess(partial(_read_in_thread, array), partial(_write_in_thread, array), is_parallel=True)
        return access._replace(is_parallel=True, is_remote=True)
    if is_hdf5(array):
        return access  # one lock for all of HDF5
    return access._replace(
        is_parallel=bool(getattr(array, "is_parallel", False)), is_remote=bool(getattr(array, "is_remote", False))
    )


def is_stored(array: object) -> bool:
    """Return whether an array is neither in memory nor in a mapped file, but behind an object that slices.

    >>> is_stored(np.zeros(3)), is_stored(memoryview(b"abc"))
    (False, True)
    """
    return not isinstance(array, (np.ndarray, ExternalTensor)) and find_device_array(array) is None


def _is_local(store: object) -> bool:
    """Return whether the coroutines of a zarr store run on any event loop, also behind wrappers that log or count."""
    while not _LOCAL_STORES & {base.__name__ for base in type(store).__mro__}:
        if not hasattr(store, "_store"):
            return False
        store = store._store
    return True


def _read_in_thread(array: Any, box: Slices) -> Any:
    """Return a box of a local zarr array, read and decoded by the calling thread alone."""
    try:
        return array[box] if _has_running_loop() else run_in_thread(array.async_array.getitem(box))
    except (ValueError, RuntimeError) as problem:
        raise TransferError(
            f"cannot decode a chunk of {array.store_path}: {problem}; it is damaged, or was written with other settings"
        ) from problem


def _write_in_thread(array: Any, box: Slices, values: npt.ArrayLike) -> None:
    if _has_running_loop():
        array[box] = values
    else:
        run_in_thread(array.async_array.setitem(box, values))


def _has_running_loop() -> bool:
    """Return whether this thread runs an event loop, as a notebook does; it cannot run another one then."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _InlineExecutor(ThreadPoolExecutor):
    """An executor without threads: a call runs at once, in the thread that submits it."""

    def submit(self, function: Callable[..., Any], /, *arguments: object, **options: object) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as problem:
            future.set_exception(problem)
        return future


Result = TypeVar("Result")
_idle_loops: list[asyncio.AbstractEventLoop] = []
_loops_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle_loops.clear)


def run_in_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in the calling thread, with all that it would hand to other threads, and return its result.

    >>> async def name_thread():
    ...     return await asyncio.to_thread(lambda: threading.current_thread().name)
    >>> run_in_thread(name_thread()) == threading.current_thread().name
    True
    """
    with _loops_lock:
        loop = _idle_loops.pop() if _idle_loops else None
    if loop is None:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_InlineExecutor(1))
    try:
        return loop.run_until_complete(coroutine)
    finally:
        with _loops_lock:
            _idle_loops.append(loop)


@atexit.register
def close_idle_loops() -> None:
    """Close the event loops that wait to be used again."""
    with _loops_lock:
        while _idle_loops:
            _idle_loops.pop().close()
