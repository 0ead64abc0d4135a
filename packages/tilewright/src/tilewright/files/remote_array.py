# SPDX-License-Identifier: Apache-2.0
"""Arrays behind URLs: zarr stores of obstore or fsspec, and .npy files that are read in ranges of bytes.

obstore serves object stores and web servers, fsspec these and all else (`memory://`, `ftp://`, ...). Both find their
credentials in the environment, as the tools of the cloud do. Where both are installed and know a scheme, obstore is
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

from ..errors import FileFormatError
from .npy import MAX_NPY_HEADER, parse_npy_layout
from .source import ArrayName, import_library

OBJECT_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
"""Schemes that obstore knows."""

READ_ONLY_SCHEMES = ("http", "https")

MAX_GAP = 64 << 10
"""Bytes between two ranges that are read with them rather than by another request."""


def reject_read_only(name: ArrayName) -> None:
    """Raise if nothing can be written behind a URL.

    >>> reject_read_only(ArrayName("a.npy", "npy", "a.npy"))
    """
    if name.scheme in READ_ONLY_SCHEMES:
        raise FileFormatError(f"{name.text}: web servers are read only; write to a file or an object store")


def open_url_store(name: ArrayName, writing: bool) -> Any:
    """Return what zarr opens for a URL: a store of obstore, or the URL itself, which it opens through fsspec."""
    zarr = import_library("zarr", name.text)
    if _uses_obstore(name) and hasattr(zarr.storage, "ObjectStore"):
        store = _open_object_store(name, name.path)
        return zarr.storage.ObjectStore(store, read_only=not writing)
    import_library("fsspec", name.text)
    return name.path


def open_remote_npy(name: ArrayName) -> RemoteNpy:
    """Return the array of an `.npy` file behind a URL; only its header is read."""
    if _uses_obstore(name):
        return RemoteNpy(name.text, _ObjectRanges(name))
    return RemoteNpy(name.text, _FsspecRanges(name))


def open_remote_file(name: ArrayName) -> Any:
    """Return a file behind a URL as a Python file object, to be read and sought."""
    fsspec = import_library("fsspec", name.text)
    return fsspec.open(name.path, "rb").open()


def _uses_obstore(name: ArrayName) -> bool:
    return name.scheme in OBJECT_SCHEMES and find_spec("obstore") is not None


def _open_object_store(name: ArrayName, url: str) -> Any:
    options = {"client_options": {"allow_http": True}} if name.scheme == "http" else {}
    return import_library("obstore.store", name.text).from_url(url, **options)


class _ObjectRanges:
    """Ranges of bytes of one object, read by obstore."""

    def __init__(self, name: ArrayName) -> None:
        self._obstore = import_library("obstore", name.text)
        folder, _, self._file = name.path.rpartition("/")
        self._store = _open_object_store(name, folder)
        try:
            self.size = int(self._obstore.head(self._store, self._file)["size"])
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file or directory", name.text) from None

    def read(self, starts: Sequence[int], ends: Sequence[int]) -> list[Any]:
        return list(self._obstore.get_ranges(self._store, self._file, starts=starts, ends=ends))


class _FsspecRanges:
    """Ranges of bytes of one file, read by fsspec."""

    def __init__(self, name: ArrayName) -> None:
        core = import_library("fsspec.core", name.text)
        self._fs, self._path = core.url_to_fs(name.path)
        try:
            self.size = int(self._fs.info(self._path)["size"])
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file or directory", name.text) from None

    def read(self, starts: Sequence[int], ends: Sequence[int]) -> list[Any]:
        found = self._fs.cat_ranges([self._path] * len(starts), list(starts), list(ends))
        for data in found:
            if isinstance(data, BaseException):
                raise data
        return list(found)


class RemoteNpy:
    """An `.npy` file behind a URL, which reads the bytes of the boxes it is sliced with; it cannot be written.

    Args:
        url: its name.
        ranges: an object that reads ranges of bytes, and knows the `size` of the file.
    """

    is_parallel = is_remote = True

    def __init__(self, url: str, ranges: Any) -> None:
        self.url, self._ranges = url, ranges
        start = bytes(ranges.read([0], [min(ranges.size, MAX_NPY_HEADER)])[0])
        try:
            layout = parse_npy_layout(start, ranges.size)
        except FileFormatError as problem:
            raise FileFormatError(f"{url}: {problem}") from None
        self.shape, self.dtype = layout.shape, layout.dtype
        self.store_key = ("url", url)
        self._offset, self._fortran_order = layout.offset, layout.fortran_order

    def __getitem__(self, box: Any) -> np.ndarray[Any, Any]:
        spans = box if isinstance(box, tuple) else (box,)
        ranges = [range(*span.indices(n))[:] for span, n in zip(spans, self.shape, strict=True)]
        if any(span.step != 1 for span in ranges):
            raise FileFormatError(f"{self.url} is read in boxes without steps, got {box}")
        shape = tuple([len(span) for span in ranges])
        extents, starts = self.shape, [span.start for span in ranges]
        if self._fortran_order:
            extents, starts, shape = extents[::-1], starts[::-1], shape[::-1]
        result = np.frombuffer(b"".join(self._read_rows(extents, starts, shape)), self.dtype).reshape(shape)
        return result.T if self._fortran_order else result

    def _read_rows(self, extents: Sequence[int], starts: Sequence[int], shape: Sequence[int]) -> list[Any]:
        """Return the bytes of a box, row by row; a row is as long as the elements lie together."""
        if not prod(shape):
            return []
        inner = len(shape) - 1
        while inner > 0 and shape[inner] == extents[inner]:
            inner -= 1
        length = prod(shape[inner:]) * self.dtype.itemsize
        steps = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
        first = sum([start * step for start, step in zip(starts, steps, strict=True)])
        rows = np.zeros(1, np.int64)
        for n, step in zip(shape[:inner], steps[:inner], strict=True):
            rows = (rows[:, None] + np.arange(n) * step).reshape(-1)
        begins = self._offset + (rows + first) * self.dtype.itemsize
        # one request for rows with little between them
        cuts = np.flatnonzero(np.diff(begins) - length > MAX_GAP) + 1
        groups = np.split(begins, cuts)
        found = self._ranges.read([int(group[0]) for group in groups], [int(group[-1]) + length for group in groups])
        result = []
        for group, data in zip(groups, found, strict=True):
            view = memoryview(data)
            result += [view[start : start + length] for start in (group - group[0]).tolist()]
        return result
