# SPDX-License-Identifier: Apache-2.0
"""Arrays by name, opened for slicing and created: files, zarr and HDF5, here and behind URLs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from .._files import replace_file, replace_folder
from ..errors import FileFormatError, FormatError
from ..formats import FormatLike, format_of
from .npy import read_npy, read_npy_layout
from .remote_file import RemoteFile, open_object_store, uses_obstore
from .source import ArrayName, FilePath, SourceFile, import_library, parse_array_name
from .stored_tensor import validate_extents

DtypeLike: TypeAlias = "FormatLike | np.dtype[Any]"

READ_ONLY_SCHEMES = ("http", "https")
CHUNK_BYTES = 4 << 20
"""Bytes that the chunks of a new array have at most, unless they are given."""


def open_array(
    path: FilePath, shape: Sequence[int] | None = None, dtype: DtypeLike | None = None, writing: bool = False
) -> Any:
    """Return the array of a name, to be sliced.

    Raw files need a `shape` and a `dtype`. A `dtype` for an `.npy` file reinterprets its elements: NumPy does not store
    the name of bfloat16. With `writing`, the array can also be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.arange(6).reshape(2, 3))
    ...     open_array(Path(folder, "a.npy"))[1].tolist()
    [3, 4, 5]
    """
    name = parse_array_name(path)
    if writing:
        _reject_read_only(name)
    array = _open_named(name, shape, dtype, writing)
    if shape is not None and tuple(shape) != tuple(array.shape):
        raise FileFormatError(f"{name.text} has shape {list(array.shape)}, got {list(shape)}; leave the shape out")
    return array


def _open_named(name: ArrayName, shape: Sequence[int] | None, dtype: DtypeLike | None, writing: bool) -> Any:
    if name.kind == "zarr":
        return _open_zarr(name, writing)
    if name.is_local and not Path(name.path).exists():
        raise FileNotFoundError(2, "No such file or directory", name.path)
    if name.kind == "hdf5":
        return _open_hdf5(name, writing)
    element = None if dtype is None else as_scalar_dtype(dtype)
    if not name.is_local:
        if name.kind == "npy" and not writing and element is None:
            return RemoteNpy(name.path)
        raise FileFormatError(f"{name.text}: behind a URL, .npy files are read only, and raw files not read; use zarr")
    file = Path(name.path)
    if name.kind == "npy":
        return _open_npy(file, element, writing)
    if shape is None or element is None:
        raise FileFormatError(f"{file} holds raw bytes; give a shape and a dtype")
    expected, size = prod(shape) * element.itemsize, SourceFile(file).size
    if size != expected:
        raise FileFormatError(f"{file}: {list(shape)} of {element} takes {expected} bytes, but the file has {size}")
    return _map_array(file, element, shape, writing=writing)


@contextmanager
def create_array(
    path: FilePath,
    shape: Sequence[int],
    dtype: DtypeLike,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Yield an array of `shape` and `dtype` to write into; `chunks` and `shards` are for zarr arrays.

    The result appears at `path` when the context ends without an error, and not otherwise; behind a URL it is
    written in place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_array(Path(folder, "a.npy"), (2, 3), "int32") as array:
    ...         array[...] = 7
    ...     sorted(os.listdir(folder)), int(np.load(Path(folder, "a.npy")).sum())
    (['a.npy'], 42)
    """
    name, extents, scalar_dtype = parse_array_name(path), tuple([int(n) for n in shape]), as_scalar_dtype(dtype)
    _reject_read_only(name)
    if name.kind == "zarr":
        chunk_shape = tuple(chunks) if chunks else default_chunks(extents, scalar_dtype.itemsize)
        if not name.is_local:
            yield _create_zarr(name, _open_url_store(name, writing=True), extents, scalar_dtype, chunk_shape, shards)
            return
        with replace_folder(Path(name.path)) as folder:
            yield _create_zarr(name, str(folder), extents, scalar_dtype, chunk_shape, shards)
    elif not name.is_local:
        raise FileFormatError(f"{name.text}: behind a URL, only zarr arrays can be written; use a name in .zarr")
    elif name.kind == "hdf5":
        with _create_hdf5(name, extents, scalar_dtype, chunks) as dataset:
            yield dataset
    else:
        with replace_file(Path(name.path)) as draft:
            array = _map_new_array(Path(draft.name), name.kind, extents, scalar_dtype)
            yield array
            if isinstance(array, np.memmap):
                array.flush()


def default_chunks(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return chunks of at most 4 MiB: the longest axis is halved until they are small enough.

    >>> default_chunks((8192, 8192), 4)
    (1024, 1024)
    """
    chunks = [max(1, n) for n in shape]
    while prod(chunks) * itemsize > CHUNK_BYTES and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        chunks[axis] = -(-chunks[axis] // 2)
    return tuple(chunks)


def _reject_read_only(name: ArrayName) -> None:
    """Raise if nothing can be written behind a URL."""
    if name.scheme in READ_ONLY_SCHEMES:
        raise FileFormatError(f"{name.text}: web servers are read only; write to a file or an object store")


class RemoteNpy:
    """An `.npy` file behind a URL, which reads the bytes of the boxes it is sliced with; it cannot be written.

    Args:
        url: its address.
    """

    is_parallel = is_remote = True

    def __init__(self, url: str) -> None:
        try:
            self._tensor = read_npy(RemoteFile(url), url)
            self.shape, self.dtype, self.store_key = self._tensor.shape, self._tensor.dtype, ("url", url)
        except (FileFormatError, FormatError) as problem:
            raise FileFormatError(f"{url}: {problem}") from None

    def __getitem__(self, box: object) -> np.ndarray[Any, Any]:
        return self._tensor.read(box)


def _open_url_store(name: ArrayName, writing: bool) -> Any:
    """Return the argument of zarr for a URL: a store of obstore, or the URL itself, which it opens through fsspec.

    obstore serves object stores and web servers, fsspec these and all else (`memory://`, `ftp://`, ...). Both find
    their credentials in the environment, as the tools of the cloud do. obstore is used where it knows the scheme.
    """
    zarr = import_library("zarr", name.text)
    if uses_obstore(name.scheme) and hasattr(zarr.storage, "ObjectStore"):
        store = open_object_store(name.path, name.text)
        return zarr.storage.ObjectStore(store, read_only=not writing)
    import_library("fsspec", name.text)
    return name.path


def _open_zarr(name: ArrayName, writing: bool) -> Any:
    zarr = import_library("zarr", name.text)
    if name.is_local and not os.path.exists(name.path):
        raise FileNotFoundError(2, "No such file or directory", name.path)
    try:
        store = name.path if name.is_local else _open_url_store(name, writing)
        return zarr.open_array(store, mode="r+" if writing else "r")
    except ImportError as problem:  # fsspec has many parts
        raise ModuleNotFoundError(
            f"{name.text} needs a library that is not installed: {problem}; pip install 'tilewright[remote]'"
        ) from None
    except (FileNotFoundError, ValueError, TypeError, KeyError) as problem:
        raise FileFormatError(
            f"{name.text} cannot be opened as a zarr array ({type(problem).__name__}: {problem}); in a group, name the"
            f" array: {name.text}/name"
        ) from problem


def _create_zarr(
    name: ArrayName,
    store: object,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: tuple[int, ...],
    shards: Sequence[int] | None,
) -> Any:
    zarr = import_library("zarr", name.text)
    # zarr would write chunks that are all zero as nothing, which reads the same
    if hasattr(zarr, "create_array"):  # zarr 3
        shard_shape = tuple(shards) if shards else None
        return zarr.create_array(store, shape=shape, dtype=dtype, chunks=chunks, shards=shard_shape, overwrite=True)
    return zarr.open_array(store, mode="w", shape=shape, dtype=dtype, chunks=chunks)


def _open_hdf5(name: ArrayName, writing: bool) -> Any:
    h5py = import_library("h5py", name.text)
    file = _open_h5py(name, "r+" if writing else "r")
    dataset = file.get(name.dataset)
    if not isinstance(dataset, h5py.Dataset):
        names: list[str] = []
        file.visititems(lambda path, item: names.append(path) if isinstance(item, h5py.Dataset) else None)
        raise FileFormatError(f"{name.path} has no dataset {name.dataset!r}; it has {', '.join(names[:8]) or 'none'}")
    return dataset


def _open_h5py(name: ArrayName, mode: str) -> Any:
    h5py, path = import_library("h5py", name.text), name.path
    try:
        file = path if name.is_local else import_library("fsspec", name.text).open(path, "rb").open()
        return h5py.File(file, mode)
    except OSError as problem:
        raise FileFormatError(f"{path} cannot be opened as an HDF5 file: {problem}") from problem


@contextmanager
def _create_hdf5(
    name: ArrayName, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: Sequence[int] | None
) -> Iterator[Any]:
    """Yield a new dataset under a draft name, which it loses when the context ends without an error."""
    h5py = import_library("h5py", name.text)
    is_new = not os.path.exists(name.path)
    file = _open_h5py(name, "a")
    draft = f"{name.dataset.rstrip('/')}.{uuid4().hex}"
    extents = tuple([max(1, min(c, n)) for c, n in zip(chunks, shape, strict=True)]) if chunks and prod(shape) else None
    try:
        with file:
            yield file.create_dataset(draft, shape, dtype, chunks=extents)
            if name.dataset in file:
                del file[name.dataset]
            file.move(draft, name.dataset)
    except BaseException:
        if is_new:
            Path(name.path).unlink(missing_ok=True)
        else:
            with h5py.File(name.path, "a") as file:
                file.pop(draft, None)
        raise


def as_scalar_dtype(dtype: DtypeLike) -> np.dtype[Any]:
    """Return the NumPy type of a scalar format or NumPy type; block formats have none.

    >>> as_scalar_dtype("bf16").itemsize
    2
    """
    if isinstance(dtype, np.dtype):
        if dtype.hasobject:
            raise FileFormatError(f"expected a numeric type for an array file, got {dtype}, which holds Python objects")
        return dtype
    result = format_of(dtype)
    if result.has_blocks:
        raise FileFormatError(f"expected a scalar format for an array file, got block format {result}")
    return np.dtype(result.dtype)


def _map_new_array(draft: Path, file_kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array mapped over a new draft file."""
    if file_kind == "npy":
        return np.lib.format.open_memmap(draft, mode="w+", dtype=dtype, shape=shape)
    if prod(shape):
        return np.memmap(draft, dtype, "w+", shape=shape)
    return np.empty(shape, dtype)


def _open_npy(file: Path, scalar_dtype: np.dtype[Any] | None, writing: bool) -> Any:
    layout = read_npy_layout(file)
    dtype = layout.dtype if scalar_dtype is None else scalar_dtype
    if dtype.itemsize != layout.dtype.itemsize:
        raise FileFormatError(
            f"{file}: cannot reinterpret elements of {layout.dtype} as {scalar_dtype}, which has another size"
        )
    return _map_array(file, dtype, layout.shape, layout.offset, layout.fortran_order, writing)


def _map_array(
    file: Path,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    offset: int = 0,
    fortran_order: bool = False,
    writing: bool = False,
) -> Any:
    array, handle = map_file(str(file), dtype, tuple(shape), offset, fortran_order, writing)
    if handle >= 0:
        os.close(handle)
    return array


def map_file(
    path: str, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, fortran_order: bool, writing: bool
) -> tuple[np.ndarray[Any, Any], int]:
    """Return the mapped array of a regular file, and a descriptor of the file; -1 if the array is empty.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.raw").write_bytes(bytes(range(8)))
    ...     array, file = map_file(f"{folder}/a.raw", np.dtype("u1"), (2, 2), 4, False, writing=False)
    ...     os.close(file)
    ...     array.tolist()
    [[4, 5], [6, 7]]
    """
    validate_extents(str(path), shape)
    order: Any = "F" if fortran_order else "C"
    needed = offset + prod(shape) * dtype.itemsize
    # O_NONBLOCK: a named pipe would otherwise block here until it is written to
    flags = (os.O_RDWR if writing else os.O_RDONLY) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    with open(path, "r+b" if writing else "rb", buffering=0, opener=lambda name, _: os.open(name, flags)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{path} is not a regular file")
        if status.st_size < needed:
            raise FileFormatError(
                f"{path} was truncated: {list(shape)} of {dtype} needs {needed - offset} bytes from byte {offset}, but"
                f" the file has {status.st_size}; write it again"
            )
        if needed == offset:
            return np.empty(shape, dtype, order), -1
        array: Any = np.memmap(file, dtype, "r+" if writing else "r", offset, shape, order)
        return array, os.dup(file.fileno())
