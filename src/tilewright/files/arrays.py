# SPDX-License-Identifier: Apache-2.0
"""Arrays in files, opened to be sliced and never read whole: `.npy`, `.zarr`, and raw bytes of a stated shape."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import replace_file, replace_folder
from ..errors import FileFormatError
from ..formats import BlockFormat, format_of

RAW_SUFFIXES = (".raw", ".bin", ".dat")
SUFFIXES = (".npy", ".zarr", *RAW_SUFFIXES)


def open_array(path: str | os.PathLike[str], shape: Any = None, dtype: Any = None) -> Any:
    """Return the array that a file holds, to be sliced; raw files need a shape and a type.

    A type given for an `.npy` file is what its bytes mean: NumPy forgets the name of bfloat16.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.arange(6).reshape(2, 3))
    ...     open_array(Path(folder, "a.npy"))[1].tolist()
    [3, 4, 5]
    """
    file = Path(path)
    kind = None if dtype is None else scalar_dtype(dtype)
    if file.suffix == ".zarr":
        return _zarr(file).open_array(str(file), mode="r")
    if not file.exists():
        raise FileNotFoundError(2, "No such file or directory", str(file))
    if file.suffix == ".npy":
        return _opened_npy(file, kind)
    if file.suffix not in RAW_SUFFIXES:
        raise FileFormatError(f"{file}: arrays end in one of {', '.join(SUFFIXES)}; give it such a name")
    if shape is None or kind is None:
        raise FileFormatError(f"{file}: raw bytes do not say what they are; give a shape and a dtype")
    wanted, size = prod(shape) * kind.itemsize, file.stat().st_size
    if size != wanted:
        raise FileFormatError(f"{file}: {list(shape)} of {kind} takes {wanted} bytes, but the file has {size}")
    return np.memmap(file, kind, "r", shape=tuple(shape)) if wanted else np.empty(tuple(shape), kind)


@contextmanager
def new_array(path: str | os.PathLike[str], shape: Any, dtype: Any, chunks: Any = None) -> Iterator[Any]:
    """Yield an array to write into, in a file that takes its name when all went well, and is gone if not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_array(Path(folder, "a.npy"), (2, 3), "int32") as array:
    ...         array[...] = 7
    ...     sorted(os.listdir(folder)), int(np.load(Path(folder, "a.npy")).sum())
    (['a.npy'], 42)
    """
    file, extents, kind = Path(path), tuple([int(n) for n in shape]), scalar_dtype(dtype)
    if file.suffix not in SUFFIXES:
        raise FileFormatError(f"{file}: arrays end in one of {', '.join(SUFFIXES)}; give it such a name")
    if file.suffix == ".zarr":
        with replace_folder(file) as folder:
            # zarr would write chunks that are all zero as nothing, which reads the same
            yield _zarr(file).open_array(
                str(folder), mode="w", shape=extents, dtype=kind, chunks=tuple(chunks or extents)
            )
        return
    with replace_file(file) as draft:
        array = _map_new(Path(draft.name), file.suffix, extents, kind)
        yield array
        if isinstance(array, np.memmap):
            array.flush()


def scalar_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy type of a scalar format, or any NumPy type of plain numbers; blocks have none.

    >>> scalar_dtype("bf16").itemsize
    2
    """
    if isinstance(dtype, np.dtype):
        if dtype.hasobject:
            raise FileFormatError(f"elements of type {dtype} are Python objects; an array file takes numbers")
        return dtype
    found = format_of(dtype)
    if isinstance(found, BlockFormat):
        raise FileFormatError(f"{found} stores blocks, not elements; an array file takes a scalar format")
    kind: np.dtype[Any] = np.dtype(found.dtype)
    return kind


def _map_new(draft: Path, suffix: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> Any:
    """Return an array over a draft, which is empty so far."""
    if suffix == ".npy":
        return np.lib.format.open_memmap(draft, mode="w+", dtype=kind, shape=shape)
    if prod(shape):
        return np.memmap(draft, kind, "w+", shape=shape)
    return np.empty(shape, kind)


def _opened_npy(file: Path, kind: np.dtype[Any] | None) -> Any:
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise FileFormatError(f"{file}: not a readable .npy file ({problem})") from None
    if kind is None or found.dtype == kind:
        return found
    if found.dtype.itemsize != kind.itemsize:
        raise FileFormatError(f"{file}: its elements are {found.dtype}, which cannot be taken for {kind}")
    return found.view(kind)


def _zarr(file: Path) -> Any:
    try:
        return import_module("zarr")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{file} needs zarr, which is not installed; pip install 'tilewright[zarr]'", name="zarr"
        ) from None
