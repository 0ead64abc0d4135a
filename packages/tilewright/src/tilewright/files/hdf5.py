# SPDX-License-Identifier: Apache-2.0
"""HDF5 files, read with h5py: `.h5` and `.hdf5`, and `.keras`, a zip file with one of them in it.

Contiguous datasets are read by their place in the file; chunked ones are decoded to a temporary file on first use.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import IO, Any

import numpy as np

from ..errors import FileFormatError
from ..formats import find_scalar_format
from .array_name import import_library
from .source_file import FilePath, SourceFile, as_source_file
from .stored_tensor import StoredTensor
from .zip_members import ZIP_START, FileStream, UnpackedFile, UnpackedMember, find_member_ranges, open_zip

HDF5_START = b"\x89HDF\r\n\x1a\n"
KERAS_WEIGHTS = "model.weights.h5"
_MAX_DATASETS = 200_000
_MIN_DECODED_BYTES = 1 << 30  # datasets may always be this large,
_MAX_RATIO = 1024  # and otherwise this many times as large as their file
_SLAB_BYTES = 1 << 24  # decoded at a time
_HDF5_ERRORS = (OSError, KeyError, ValueError, RuntimeError, TypeError, AttributeError, OverflowError, MemoryError)


@contextmanager
def _open_datasets(file: SourceFile, start: int, end: int) -> Iterator[Any]:
    """Yield the HDF5 file of h5py in a range of a file."""
    h5py = import_library("h5py", str(file.path))
    stream: IO[bytes] = io.BufferedReader(FileStream(file, start, end))
    try:
        with h5py.File(stream, "r") as opened:
            yield opened
    except FileFormatError:
        raise
    except _HDF5_ERRORS as problem:
        raise FileFormatError(f"cannot read the HDF5 file: {str(problem)[:200]}") from None


def read_hdf5(path: FilePath | SourceFile, others: dict[str, str] | None = None) -> list[StoredTensor]:
    """Return the datasets of an HDF5 file, or of the weights of a Keras model at `path`, by their paths.

    Texts and records are left out, and noted in `others`.

    >>> import tempfile
    >>> h5py = import_library("h5py", "x.h5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/x.h5", "w") as opened:
    ...         opened["dense/kernel"] = np.arange(3)
    ...     [(each.name, each.read().tolist()) for each in read_hdf5(f"{folder}/x.h5")]
    [('dense/kernel', [0, 1, 2])]
    """
    file = as_source_file(path)
    start, end = 0, file.size
    if file.read(0, min(file.size, len(ZIP_START))) == ZIP_START:
        file, start, end = _find_keras_weights(file)
    result: list[StoredTensor] = []

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            tensor = _make_tensor(name, item, file, start, end)
            result.extend([] if tensor is None else [tensor])
            if tensor is None and others is not None:
                others[name] = "empty" if item.shape is None else f"elements of type {item.dtype}"
            if len(result) > _MAX_DATASETS:
                raise FileFormatError(f"the file has more than {_MAX_DATASETS} datasets")

    h5py = import_library("h5py", str(file.path))
    with _open_datasets(file, start, end) as opened:
        opened.visititems(add)  # which does not follow links to other files
    return result


def _find_keras_weights(file: SourceFile) -> tuple[SourceFile, int, int]:
    """Return the file with the weights of a Keras model, and their range in it."""
    with open_zip(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
    info = members.get(KERAS_WEIGHTS)
    if info is None or info.flag_bits & 1:
        raise FileFormatError(f"the zip file is not a Keras model: it has no readable {KERAS_WEIGHTS}; unpack it")
    if info.compress_type == zipfile.ZIP_STORED:
        return file, *find_member_ranges([info], file)[0]
    _reject_implausible(KERAS_WEIGHTS, info.file_size, file)
    return UnpackedMember(file, info), 0, info.file_size


def _reject_implausible(name: str, size: int, file: SourceFile) -> None:
    if size > max(_MIN_DECODED_BYTES, _MAX_RATIO * file.size):
        raise FileFormatError(f"{name[:80]!r} takes {size} bytes, which is implausible in a file of {file.size}")


def _make_tensor(name: str, dataset: Any, file: SourceFile, start: int, end: int) -> StoredTensor | None:
    if dataset.shape is None or dataset.dtype.kind not in "biufc":
        return None  # texts, records and empty attributes are not tensors
    if dataset.is_virtual or dataset.external:
        raise FileFormatError(f"dataset {name[:80]!r} is stored in other files; copy it into one with h5repack")
    dtype, shape = dataset.dtype, tuple([int(n) for n in dataset.shape])
    _reject_implausible(name, prod([max(1, n) for n in shape]) * dtype.itemsize, file)
    nbytes = prod(shape) * dtype.itemsize
    element = find_scalar_format(dtype)
    offset = dataset.id.get_offset() if dataset.chunks is None else None
    kind, swapped = dtype.str, not dtype.isnative
    if offset is not None and start + offset + nbytes <= end:
        place = (file, start + offset, nbytes)
    else:
        place = (UnpackedDataset(file, start, end, name, nbytes), 0, nbytes)
    return StoredTensor.dense(name, kind, shape, element, *place, swapped=swapped)


class UnpackedDataset(UnpackedFile):
    """A dataset that is not contiguous in its file, decoded.

    Args:
        container: the file, with the HDF5 file in the bytes from `start` to `end`.
        start: of these bytes.
        end: of these bytes.
        name: the path of the dataset.
        nbytes: the bytes that it takes.
    """

    __slots__ = ("_end", "_name", "_start")

    def __init__(self, container: SourceFile, start: int, end: int, name: str, nbytes: int) -> None:
        super().__init__(container, nbytes)
        self._start, self._end, self._name = start, end, name

    def __reduce__(self) -> Any:
        return UnpackedDataset, (self._container, self._start, self._end, self._name, self.size)

    def _copy_to(self, handle: Any) -> None:
        written = 0
        with _open_datasets(self._container, self._start, self._end) as opened:
            dataset = opened[self._name]
            for box in _cut_rows(dataset.shape, dataset.dtype.itemsize):
                written += handle.write(np.ascontiguousarray(dataset[box]).reshape(-1).view(np.uint8).data)
        if written != self.size:
            raise FileFormatError(f"dataset {self._name[:80]!r} takes {written} bytes, not {self.size}")


def _cut_rows(shape: tuple[int, ...], itemsize: int) -> Iterator[tuple[slice, ...]]:
    """Yield boxes of rows that are small enough to be decoded at a time, in the order of the elements."""
    if not shape:
        yield ()
        return
    row = prod(shape[1:]) * itemsize
    step = max(1, _SLAB_BYTES // max(1, row))
    for first in range(0, shape[0], step):
        yield (slice(first, min(first + step, shape[0])),)
