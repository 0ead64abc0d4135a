# SPDX-License-Identifier: Apache-2.0
"""Where stored arrays live: what two handles of one array have in common, and who reaches it.

Zarr, HDF5 and Dask make a new object at each access, so objects say nothing: a store is known by its folder, file, URL
or dictionary, and by the array's name in it. The libraries are not imported for that: who has their objects has them.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..errors import TransferError

_SEARCHED = 4096
"""Objects that are looked at in search of the arrays behind a wrapper."""

_DEPTH = 4
"""Attributes that are followed from a wrapper to its arrays."""

_PLAIN = (type, ModuleType, FunctionType, BuiltinFunctionType, str, bytes, int, float, complex, type(None))


class Place(NamedTuple):
    """Where an array is stored, equal for all handles of it; `private` says why other processes do not reach it.

    >>> Place(("file", "/data/a.zarr")).private
    ''
    """

    key: tuple[Any, ...]
    private: str = ""


def places_of(thing: Any) -> list[Place]:
    """Return where an object that slices stores its elements, most exact first; an unknown object is its own place.

    >>> class Array:
    ...     shape = (3,)
    >>> one, other = Array(), Array()
    >>> places_of(one) == places_of(one), places_of(one) == places_of(other)
    (True, False)
    """
    if is_zarr(thing):
        return [_zarr_place(thing)]
    if is_hdf5(thing):
        return list(_hdf5_places(_dataset(thing)))
    return [Place(("object", id(thing)))]


def is_zarr(thing: Any) -> bool:
    """Return whether an object is a zarr array, of version 2 or 3.

    >>> is_zarr(np.zeros(3))
    False
    """
    return _is_of(thing, "zarr") and hasattr(type(thing), "chunks")


def is_hdf5(thing: Any) -> bool:
    """Return whether an object is a dataset of h5py, or a view of one in another type.

    >>> is_hdf5(np.zeros(3))
    False
    """
    return _is_of(thing, "h5py") and hasattr(type(_dataset(thing)), "chunks")


def check_open(thing: Any) -> None:
    """Raise if an object is a dataset of an HDF5 file that was closed, which says nothing of itself any more.

    >>> check_open(np.zeros(3))
    """
    if is_hdf5(thing) and not _dataset(thing).id:
        raise TransferError("the HDF5 dataset is closed; leave its file open until the run is over")


def _is_of(thing: Any, package: str) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(thing).__mro__)


def arrays_within(thing: Any) -> Iterator[Any]:
    """Yield the NumPy, zarr and HDF5 arrays that a wrapper of unknown kind reads: of its shape, or of its Dask graph.

    >>> class Sliced:
    ...     def __init__(self, array):
    ...         self.array, self.shape = array, array.shape
    >>> a = np.zeros(3)
    >>> [each is a for each in arrays_within(Sliced(a))]
    [True]
    """
    graph = getattr(thing, "__dask_graph__", None)
    level: list[Any] = [thing] if graph is None else [list(dict(graph()).values())]
    seen = {id(thing)}
    for _ in range(_DEPTH):
        following = []
        for each in gc.get_referents(*level):
            if id(each) in seen or isinstance(each, _PLAIN):
                continue
            seen.add(id(each))
            if isinstance(each, np.ndarray):
                if graph is not None or each.shape == tuple(thing.shape):
                    yield each
            elif is_zarr(each) or is_hdf5(each):
                yield each
            else:
                following.append(each)
        level = following
        if len(seen) > _SEARCHED:
            return


def describe_store(thing: Any) -> dict[str, Any]:
    """Return what tells a stored array from others, as plain data, read anew from where it is stored.

    >>> describe_store(np.zeros((2, 3)))
    {'kind': 'array in memory', 'shape': [2, 3], 'dtype': '<f8'}
    """
    found: dict[str, Any] = {"kind": f"{type(thing).__module__}.{type(thing).__qualname__}"}
    if isinstance(thing, np.ndarray):
        found = {"kind": "array in memory"}
    elif is_zarr(thing):
        place = _zarr_place(thing)
        thing = _zarr_again(thing)
        metadata = repr(getattr(thing, "metadata", None) or dict(thing.attrs))
        found |= {
            "place": place.private or list(map(str, place.key)),
            "chunks": list(map(int, thing.chunks)),
            "metadata": hashlib.sha256(metadata.encode()).hexdigest()[:16],
        }
    elif is_hdf5(thing):
        dataset = _dataset(thing)
        found |= {"file": os.path.realpath(dataset.file.filename), "dataset": dataset.name}
    shape, dtype = [int(n) for n in thing.shape], thing.dtype
    return found | {"shape": shape, "dtype": dtype.str if isinstance(dtype, np.dtype) else str(dtype)}


# zarr


def _zarr_place(array: Any) -> Place:
    path = getattr(array, "store_path", array).path
    store = getattr(array, "store_path", array).store
    while type(store).__name__ not in ("MemoryStore", "KVStore") and hasattr(store, "_store"):
        store = store._store  # what only watches or caches another
    kinds = {kind.__name__ for kind in type(store).__mro__}
    fs = getattr(store, "fs", None)
    if fs is not None:
        return _fsspec_place(fs, f"{store.path}/{path}")
    for owner in (getattr(store, name, None) for name in ("_store_dict", "_mutable_mapping", "root")):
        if hasattr(owner, "keys"):
            return Place(("memory", id(owner), path), f"a zarr {type(store).__name__} in the memory of this process")
    folder = getattr(store, "root", None) or getattr(store, "path", None)
    if kinds & {"LocalStore", "DirectoryStore", "NestedDirectoryStore"}:
        return Place(("file", os.path.realpath(os.path.join(str(folder), path))))
    if folder is not None:
        return Place((type(store).__name__, os.path.realpath(str(folder)), path))
    return Place((type(store).__name__, str(store), path))


def _fsspec_place(fs: Any, path: str) -> Place:
    while True:  # what makes another asynchronous, relative or cached
        inner = getattr(fs, "sync_fs", None) or getattr(fs, "fs", None)
        if inner is None:
            break
        path = f"{getattr(fs, 'path', '') or ''}/{path}"
        fs = inner
    protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    path = os.path.normpath("/" + path.lstrip("/"))
    if protocol in ("file", "local"):
        return Place(("file", os.path.realpath(path)))
    return Place(("fsspec", protocol, path), "fsspec's memory:// in this process" if protocol == "memory" else "")


def _zarr_again(array: Any) -> Any:
    """Return a zarr array as its store describes it now: a handle remembers what it was when it was opened."""
    try:
        return import_module("zarr").open_array(store=array.store, path=array.path, mode="r")
    except Exception as problem:  # of any store
        raise TransferError(
            f"{array!r} is no longer where it was opened ({type(problem).__name__}: {problem}); open it again"
        ) from None


# HDF5


def _dataset(thing: Any) -> Any:
    """Return the dataset behind a view of it as another type."""
    return getattr(thing, "_dset", thing)


def _hdf5_places(dataset: Any) -> Iterator[Place]:
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
    yield Place(("hdf5", *file, info.addr), private)
    if dataset.is_virtual:
        for source in dataset.virtual_sources():
            name = source.file_name
            if name == ".":
                yield from _hdf5_places(dataset.file[source.dset_name])
                continue
            folder = os.path.dirname(os.path.realpath(dataset.file.filename))
            with h5py.File(os.path.join(folder, name), "r") as other:
                yield from list(_hdf5_places(other[source.dset_name]))
