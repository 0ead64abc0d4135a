# SPDX-License-Identifier: Apache-2.0
"""Arrays in stores (zarr, HDF5, Dask, anything that slices): where they are, their chunks, whether two share bytes.

Zarr, HDF5 and Dask make a new object at each access, so object identity says nothing. A store is identified by its
folder, file, URL or dictionary, and by the array's name in it. The libraries are not imported for that: whoever has
their objects has imported them.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import combinations
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..copying import Footprint
from ..errors import TransferError

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

    >>> from tilewright.tiling.operands import open_endpoint
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

    >>> from tilewright.tiling.operands import open_endpoint
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

    >>> from tilewright.tiling.operands import open_endpoint
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
    """Where an array is stored, equal for all handles of it; `private` says why other processes cannot open it.

    >>> StoreLocation(("file", "/data/a.zarr")).private
    ''
    """

    key: tuple[Any, ...]
    private: str = ""


def store_locations(array: Any) -> list[StoreLocation]:
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


def is_zarr(array: Any) -> bool:
    """Return whether an object is a zarr array, of version 2 or 3.

    >>> is_zarr(np.zeros(3))
    False
    """
    return _is_from_package(array, "zarr") and hasattr(type(array), "chunks")


def is_hdf5(array: Any) -> bool:
    """Return whether an object is a dataset of h5py, or a view of one in another type.

    >>> is_hdf5(np.zeros(3))
    False
    """
    return _is_from_package(array, "h5py") and hasattr(type(_hdf5_dataset(array)), "chunks")


def validate_open(array: Any) -> None:
    """Raise if an array is a dataset of a closed HDF5 file.

    >>> validate_open(np.zeros(3))
    """
    if is_hdf5(array) and not _hdf5_dataset(array).id:
        raise TransferError("the HDF5 dataset is closed; keep its file open until the run ends")


def _is_from_package(array: Any, package: str) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(array).__mro__)


def inner_arrays(array: Any) -> Iterator[Any]:
    """Yield the NumPy, zarr and HDF5 arrays that a wrapper reads: arrays of its shape, or those of its Dask graph.

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
        attributes = [vars(each) for each in level if isinstance(getattr(each, "__dict__", None), dict)]
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
    kinds = {kind.__name__ for kind in type(store).__mro__}
    fs = getattr(store, "fs", None)
    if fs is not None:
        return _fsspec_location(fs, f"{store.path}/{path}")
    if "ObjectStore" in kinds:
        return _obstore_location(store.store, path)
    for owner in (getattr(store, name, None) for name in ("_store_dict", "_mutable_mapping", "root")):
        if hasattr(owner, "keys"):
            return StoreLocation(
                ("memory", id(owner), path), f"a zarr {type(store).__name__} in the memory of this process"
            )
    folder = getattr(store, "root", None) or getattr(store, "path", None)
    if kinds & {"LocalStore", "DirectoryStore", "NestedDirectoryStore"}:
        return StoreLocation(("file", os.path.realpath(os.path.join(str(folder), path))))
    if folder is not None:
        return StoreLocation((type(store).__name__, os.path.realpath(str(folder)), path))
    return StoreLocation((type(store).__name__, str(store), path))


def _obstore_location(store: Any, path: str) -> StoreLocation:
    kind = type(store).__name__
    if kind == "LocalStore":
        return StoreLocation(("file", os.path.realpath(os.path.join(str(store.prefix or "/"), path))))
    if kind == "MemoryStore":
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


def _hdf5_dataset(array: Any) -> Any:
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


def chunk_shape(array: Any) -> tuple[int, ...] | None:
    """Return the shape of what an array is written in: its shards or chunks; None if it has none.

    >>> chunk_shape(np.zeros(3)) is None
    True
    """
    return _as_chunks(getattr(array, "shards", None)) or read_chunk_shape(array)


def read_chunk_shape(array: Any) -> tuple[int, ...] | None:
    """Return the shape of what an array is read in: its chunks, also those inside shards; None if it has none.

    >>> read_chunk_shape(np.zeros(3)) is None
    True
    """
    return _as_chunks(getattr(array, "chunks", None))


def _as_chunks(chunks: Any) -> tuple[int, ...] | None:
    # dask has a tuple of extents for each axis
    is_shape = isinstance(chunks, tuple) and all(isinstance(n, int) and n > 0 for n in chunks)
    return chunks if is_shape and chunks else None
