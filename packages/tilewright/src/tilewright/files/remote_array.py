# SPDX-License-Identifier: Apache-2.0
"""Arrays behind URLs: zarr stores of obstore or fsspec, and .npy files that are read in ranges of bytes.

obstore serves object stores and web servers, fsspec these and all else (`memory://`, `ftp://`, ...). Both find their
credentials in the environment, as the tools of the cloud do. Where both are installed and know a scheme, obstore is
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import FileFormatError
from .npy import MAX_NPY_HEADER, parse_npy_layout
from .remote_file import RemoteFile, open_object_store, uses_obstore
from .source import ArrayName, ByteArray, import_library

READ_ONLY_SCHEMES = ("http", "https")


def reject_read_only(name: ArrayName) -> None:
    """Raise if nothing can be written behind a URL.

    >>> reject_read_only(ArrayName("a.npy", "npy", "a.npy"))
    """
    if name.scheme in READ_ONLY_SCHEMES:
        raise FileFormatError(f"{name.text}: web servers are read only; write to a file or an object store")


def open_url_store(name: ArrayName, writing: bool) -> Any:
    """Return the argument of zarr for a URL: a store of obstore, or the URL itself, which it opens through fsspec."""
    zarr = import_library("zarr", name.text)
    if uses_obstore(name.scheme) and hasattr(zarr.storage, "ObjectStore"):
        store = open_object_store(name.path, name.text)
        return zarr.storage.ObjectStore(store, read_only=not writing)
    import_library("fsspec", name.text)
    return name.path


def open_remote_file(name: ArrayName) -> Any:
    """Return a file behind a URL as a Python file object, to be read and sought."""
    fsspec = import_library("fsspec", name.text)
    return fsspec.open(name.path, "rb").open()


class RemoteNpy:
    """An `.npy` file behind a URL, which reads the bytes of the boxes it is sliced with; it cannot be written.

    Args:
        url: its address.
    """

    is_parallel = is_remote = True

    def __init__(self, url: str) -> None:
        self.url, self._file = url, RemoteFile(url)
        size = self._file.size
        start = self._file.read(0, min(size, MAX_NPY_HEADER))
        try:
            layout = parse_npy_layout(start, size)
        except FileFormatError as problem:
            raise FileFormatError(f"{url}: {problem}") from None
        self.shape, self.dtype = layout.shape, layout.dtype
        self.store_key = ("url", url)
        self._offset, self._fortran_order = layout.offset, layout.fortran_order

    def __getitem__(self, box: object) -> np.ndarray[Any, Any]:
        spans = box if isinstance(box, tuple) else (box,)
        ranges = [range(*span.indices(n))[:] for span, n in zip(spans, self.shape, strict=True)]
        if any(span.step != 1 for span in ranges):
            raise FileFormatError(f"{self.url} is read by slices without steps, got {box}")
        shape = tuple([len(span) for span in ranges])
        extents, starts = self.shape, [span.start for span in ranges]
        if self._fortran_order:
            extents, starts, shape = extents[::-1], starts[::-1], shape[::-1]
        result = self._read_rows(extents, starts, shape).view(self.dtype).reshape(shape)
        return result.T if self._fortran_order else result

    def _read_rows(self, extents: Sequence[int], starts: Sequence[int], shape: Sequence[int]) -> ByteArray:
        """Return the bytes of a box, row by row; a row is as long as the elements lie together."""
        if not prod(shape):
            return np.empty(0, np.uint8)
        inner = len(shape) - 1
        while inner > 0 and shape[inner] == extents[inner]:
            inner -= 1
        length = prod(shape[inner:]) * self.dtype.itemsize
        strides = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
        first = sum([start * stride for start, stride in zip(starts, strides, strict=True)])
        rows = np.zeros(1, np.int64)
        for n, stride in zip(shape[:inner], strides[:inner], strict=True):
            rows = (rows[:, None] + np.arange(n) * stride).reshape(-1)
        begins = self._offset + (rows + first) * self.dtype.itemsize
        out = np.empty(len(begins) * length, np.uint8)
        self._file.read_equal_runs(begins, length, out)
        return out
