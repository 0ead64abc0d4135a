# SPDX-License-Identifier: Apache-2.0
"""Chunks of zarr arrays in a local folder, read and written without zarr, in the calling thread.

Zarr allocates every chunk several times on its way, and compares it with the fill value in full. Here a chunk is read
into scratch memory of the thread and decoded into the array that it stays in, or encoded from where it is; the codecs
are those of numcodecs, as in zarr, and run without the GIL. That covers plain numbers with at most one compressor;
arrays with filters, shards or other codecs are left to zarr.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from importlib import import_module
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replace_file
from ..errors import TransferError
from .chunk_cache import chunk_range

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]
Slices = tuple[slice, ...]

_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
_V2_COMPRESSORS = ("zstd", "blosc", "gzip", "zlib", "lz4")


class ZarrChunks:
    """A zarr array in a local folder, as chunks.

    Args:
        folder: the folder of the array.
        array: the array, for its metadata.
        compressor: the codec of numcodecs that encodes a chunk, None if chunks are stored as they are.

    >>> import tempfile
    >>> zarr = import_module("zarr")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     array = zarr.create_array(folder, shape=(5,), chunks=(3,), dtype="i4")
    ...     chunks = open_zarr_chunks(array)
    ...     chunks.write((slice(0, 5),), np.arange(5, dtype="i4"))
    ...     array[...].tolist(), chunks.read((slice(2, 4),)).tolist()
    ([0, 1, 2, 3, 4], [2, 3])
    """

    def __init__(self, folder: Path, array: Any, compressor: Any) -> None:
        self._folder, self._metadata, self._compressor = folder, array.metadata, compressor
        self.shape = tuple([int(n) for n in array.shape])
        self.chunks: tuple[int, ...] = tuple([int(n) for n in array.chunks])
        self.dtype = np.dtype(array.dtype)
        fill = array.fill_value
        self._fill = np.full(1, 0 if fill is None else fill, self.dtype)
        self._stores_empty = bool(array.config.write_empty_chunks)
        self._scratch = threading.local()

    def read(self, box: Slices) -> Array:
        """Return the elements of a box; those of one chunk without a copy."""
        indices = self._indices(box)
        if len(indices) == 1:
            return self._read_chunk(indices[0])[self._inside_chunk(indices[0], box)]
        out = np.empty([part.stop - part.start for part in box], self.dtype)
        for index in indices:
            out[self._inside_box(index, box)] = self._read_chunk(index)[self._inside_chunk(index, box)]
        return out

    def covers(self, box: Slices) -> bool:
        """Return whether a box consists of whole chunks, so that it can be written."""
        axes = zip(box, self.chunks, self.shape, strict=True)
        return all(part.start % n == 0 and (part.stop % n == 0 or part.stop == extent) for part, n, extent in axes)

    def write(self, box: Slices, values: Any) -> None:
        """Write a box of whole chunks."""
        elements = np.asarray(values, self.dtype)
        for index in self._indices(box):
            part = elements[self._inside_box(index, box)]
            if part.shape != self.chunks or not part.flags.c_contiguous:
                whole = self._scratch_array("chunk", prod(self.chunks) * self.dtype.itemsize).view(self.dtype)
                chunk = whole.reshape(self.chunks)
                if part.shape != self.chunks:  # the last chunk of an axis is stored in full
                    chunk[...] = self._fill
                chunk[tuple([slice(0, n) for n in part.shape])] = part
                part = chunk
            self._write_chunk(index, part)

    def _indices(self, box: Slices) -> list[Index]:
        return list(product(*[chunk_range(part.start, part.stop, n) for part, n in zip(box, self.chunks, strict=True)]))

    def _inside_chunk(self, index: Index, box: Slices) -> Slices:
        axes = zip(index, self.chunks, box, strict=True)
        return tuple([slice(max(0, part.start - k * n), min(n, part.stop - k * n)) for k, n, part in axes])

    def _inside_box(self, index: Index, box: Slices) -> Slices:
        axes = zip(index, self.chunks, box, strict=True)
        return tuple(
            [slice(max(0, k * n - part.start), min(part.stop, (k + 1) * n) - part.start) for k, n, part in axes]
        )

    def _path(self, index: Index) -> str:
        return os.path.join(self._folder, self._metadata.encode_chunk_key(index))

    def _read_chunk(self, index: Index) -> Array:
        """Return a new array with a whole chunk."""
        path = self._path(index)
        try:
            file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return np.full(self.chunks, self._fill)  # a chunk that was never written
        chunk = np.empty(self.chunks, self.dtype)
        elements = chunk.reshape(-1)
        try:
            size = os.fstat(file).st_size
            if self._compressor is None:
                _read_file(file, elements.view(np.uint8), size)
            else:
                encoded = self._scratch_array("file", size)
                _read_file(file, encoded, size)
                decoded = self._compressor.decode(encoded, elements)
                if decoded is not elements and decoded is not None:
                    elements[...] = np.frombuffer(decoded, self.dtype)
        except (ValueError, RuntimeError) as problem:
            raise TransferError(
                f"cannot decode the chunk {path}: {problem}; it is damaged, or was written with other settings"
            ) from problem
        finally:
            os.close(file)
        return chunk

    def _write_chunk(self, index: Index, chunk: Array) -> None:
        """Store a whole chunk that is contiguous; a chunk of nothing but the fill value is removed instead."""
        path = self._path(index)
        if not self._stores_empty and self._is_empty(chunk):
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
            return
        encoded = chunk if self._compressor is None else self._compressor.encode(chunk.reshape(-1))
        try:
            self._replace_chunk(path, encoded)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._replace_chunk(path, encoded)

    def _replace_chunk(self, path: str, encoded: Any) -> None:
        with replace_file(path, durable=False) as file:
            file.write(memoryview(encoded).cast("B"))

    def _is_empty(self, chunk: Array) -> bool:
        """Return whether all elements have the bits of the fill value."""
        size = self.dtype.itemsize
        elements, fill = chunk.reshape(-1).view(np.uint8), self._fill.view(np.uint8)
        if not np.array_equal(elements[:size], fill):
            return False
        return bool((elements.reshape(-1, size) == fill).all())

    def _scratch_array(self, name: str, size: int) -> Array:
        """Return `size` bytes of this thread, which the next call with the same name overwrites."""
        scratch: Array | None = getattr(self._scratch, name, None)
        if scratch is None or scratch.size < size:
            scratch = np.empty(max(size, 1), np.uint8)
            setattr(self._scratch, name, scratch)
        return scratch[:size]


def open_zarr_chunks(array: Any) -> ZarrChunks | None:
    """Return the chunks of a zarr array of version 2 or 3 of the format; None if zarr itself has to read them."""
    dtype, metadata = np.dtype(array.dtype), array.metadata
    if type(array.store).__name__ != "LocalStore" or dtype.kind not in "biufc" or array.shards or array.filters:
        return None
    if array.order != "C" and metadata.zarr_format == 2:
        return None
    compressors = tuple(array.compressors)
    if len(compressors) > 1 or 0 in array.shape:
        return None
    compressor = compressors[0] if compressors else None
    if metadata.zarr_format == 3:
        if metadata.chunk_grid.to_dict().get("name") != "regular" or not _stores_as_in_memory(array.serializer, dtype):
            return None
        if compressor is not None:
            compressor = _make_compressor(compressor.to_dict(), dtype)
            if compressor is None:
                return None
    elif compressor is not None and getattr(compressor, "codec_id", None) not in _V2_COMPRESSORS:
        return None
    return ZarrChunks(Path(array.store.root, array.path), array, compressor)


def _stores_as_in_memory(serializer: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether the stored bytes of a chunk are those of its array."""
    description = serializer.to_dict()
    if description.get("name") != "bytes":
        return False
    endian = description.get("configuration", {}).get("endian")
    return dtype.itemsize == 1 or dtype.newbyteorder("little" if endian == "little" else "big") == dtype


def _make_compressor(description: dict[str, Any], dtype: np.dtype[Any]) -> Any:
    """Return the codec of numcodecs for a compressor of zarr 3, None if it is another one."""
    numcodecs: Any = import_module("numcodecs")
    name, options = description.get("name"), dict(description.get("configuration", {}))
    if name == "zstd":
        return numcodecs.Zstd(options.get("level", 0), options.get("checksum", False))
    if name == "gzip":
        return numcodecs.GZip(options.get("level", 5))
    if name == "blosc" and options.get("typesize") == dtype.itemsize and options.get("shuffle") in _SHUFFLES:
        return numcodecs.Blosc(
            options["cname"], options["clevel"], _SHUFFLES[options["shuffle"]], options.get("blocksize", 0)
        )
    return None


def _read_file(file: int, target: Array, size: int) -> None:
    """Fill an array with the first `size` bytes of a file."""
    if size != target.size:
        raise ValueError(f"expected {target.size} bytes, got {size}")
    rest = memoryview(target)  # type: ignore[arg-type]
    while rest:
        count = os.readv(file, [rest]) if hasattr(os, "readv") else _read_into(file, rest)
        if not count:
            raise ValueError(f"the file ends {rest.nbytes} bytes too early")
        rest = rest[count:]


def _read_into(file: int, target: memoryview) -> int:
    data = os.read(file, target.nbytes)
    target[: len(data)] = data
    return len(data)
