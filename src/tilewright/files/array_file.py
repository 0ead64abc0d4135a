# SPDX-License-Identifier: Apache-2.0
"""Arrays in files, opened for slicing: `.npy`, `.zarr`, and raw bytes of a given shape."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..atomic import replace_file, replace_folder
from ..errors import FileFormatError
from ..formats import FormatLike, format_of
from .npy import read_npy_layout
from .source_file import FilePath, SourceFile

DtypeLike: TypeAlias = "FormatLike | np.dtype[Any]"
RAW_SUFFIXES = (".raw", ".bin", ".dat")
SUFFIXES = (".npy", ".zarr", *RAW_SUFFIXES)


def open_array(path: FilePath, shape: Sequence[int] | None = None, dtype: DtypeLike | None = None) -> Any:
    """Return the array of a file, to be sliced.

    Raw files need a `shape` and a `dtype`. A `dtype` for an `.npy` file reinterprets its elements: NumPy does not store
    the name of bfloat16.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.arange(6).reshape(2, 3))
    ...     open_array(Path(folder, "a.npy"))[1].tolist()
    [3, 4, 5]
    """
    file = Path(path)
    kind = None if dtype is None else as_scalar_dtype(dtype)
    if file.suffix == ".zarr":
        return _import_zarr(file).open_array(str(file), mode="r")
    if not file.exists():
        raise FileNotFoundError(2, "No such file or directory", str(file))
    if file.suffix == ".npy":
        return _open_npy(file, kind)
    _validate_suffix(file)
    if shape is None or kind is None:
        raise FileFormatError(f"{file} holds raw bytes; give a shape and a dtype")
    expected, size = prod(shape) * kind.itemsize, SourceFile(file).size
    if size != expected:
        raise FileFormatError(f"{file}: shape {list(shape)} of {kind} takes {expected} bytes, but the file has {size}")
    return _map_array(file, kind, shape)


@contextmanager
def create_array(
    path: FilePath, shape: Sequence[int], dtype: DtypeLike, chunks: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yield an array of `shape` and `dtype` to write into; `chunks` are those of a zarr array.

    The file at `path` appears when the context ends without an error, and not otherwise.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_array(Path(folder, "a.npy"), (2, 3), "int32") as array:
    ...         array[...] = 7
    ...     sorted(os.listdir(folder)), int(np.load(Path(folder, "a.npy")).sum())
    (['a.npy'], 42)
    """
    file, extents, kind = Path(path), tuple([int(n) for n in shape]), as_scalar_dtype(dtype)
    _validate_suffix(file)
    if file.suffix == ".zarr":
        with replace_folder(file) as folder:
            # zarr would write chunks that are all zero as nothing, which reads the same
            yield _import_zarr(file).open_array(
                str(folder), mode="w", shape=extents, dtype=kind, chunks=tuple(chunks or extents)
            )
        return
    with replace_file(file) as draft:
        array = _map_new_array(Path(draft.name), file.suffix, extents, kind)
        yield array
        if isinstance(array, np.memmap):
            array.flush()


def _validate_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise FileFormatError(f"{file}: unknown suffix {file.suffix!r} for an array; use one of {', '.join(SUFFIXES)}")


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
    kind: np.dtype[Any] = np.dtype(result.dtype)
    return kind


def _map_new_array(draft: Path, suffix: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> Any:
    """Return an array mapped over a new draft file."""
    if suffix == ".npy":
        return np.lib.format.open_memmap(draft, mode="w+", dtype=kind, shape=shape)
    if prod(shape):
        return np.memmap(draft, kind, "w+", shape=shape)
    return np.empty(shape, kind)


def _open_npy(file: Path, kind: np.dtype[Any] | None) -> Any:
    layout = read_npy_layout(file)
    dtype = layout.dtype if kind is None else kind
    if dtype.itemsize != layout.dtype.itemsize:
        raise FileFormatError(
            f"{file}: cannot reinterpret elements of {layout.dtype} as {kind}, which has another size"
        )
    return _map_array(file, dtype, layout.shape, layout.offset, layout.fortran_order)


def _map_array(
    file: Path, dtype: np.dtype[Any], shape: Sequence[int], offset: int = 0, fortran_order: bool = False
) -> Any:
    array, handle = map_file(str(file), dtype, tuple(shape), offset, fortran_order, writing=False)
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
    order: Any = "F" if fortran_order else "C"
    needed = offset + prod(shape) * dtype.itemsize
    # O_NONBLOCK: a named pipe would otherwise hang here until someone writes to it
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


def _import_zarr(file: Path) -> Any:
    try:
        return import_module("zarr")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{file} needs zarr, which is not installed; pip install 'tilewright[zarr]'", name="zarr"
        ) from None
