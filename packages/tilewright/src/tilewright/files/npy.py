# SPDX-License-Identifier: Apache-2.0
"""NumPy files: `.npy` and `.npz`. Nothing is unpickled; uncompressed members are memory-mapped."""

from __future__ import annotations

import ast
import io
import os
import struct
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from math import prod
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np

from .._json import expect_integer
from ..errors import FileFormatError, FormatError
from ..formats import ScalarFormat, find_scalar_format, format_of
from ..layout import cut_into_slabs, largest_slab
from .source import KERAS_WEIGHTS, NPY_MAGIC, ZIP_START, FilePath, SourceFile, as_source_file, import_library
from .stored_tensor import Content, StoredTensor

# The members of zip files: where their bytes are, and compressed ones unpacked to a temporary file.

_LOCAL_HEADER_BYTES = 30  # of a member, before its name
_CHUNK = 1 << 20

_ZIP_ERRORS: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    LookupError,  # of an empty name, for instance
    EOFError,
    OverflowError,
)
with suppress(ImportError):  # a Python may be built without it
    from lzma import LZMAError

    _ZIP_ERRORS += (LZMAError,)
_ZIP_READ_ERRORS: tuple[type[Exception], ...] = (*_ZIP_ERRORS, OSError)


class FileStream(io.RawIOBase):
    """A source file, or the bytes from `start` to `end` of it, as a Python file object for libraries that take one.

    >>> FileStream(SourceFile(__file__)).read(6), FileStream(SourceFile(__file__), 2, 6).read()
    (b'# SPDX', b'SPDX')
    """

    def __init__(self, file: SourceFile, start: int = 0, end: int | None = None) -> None:
        super().__init__()
        self._file, self._at, self._start = file, 0, start
        self._size = (file.size if end is None else end) - start

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset, counted from the start, the position or the end; return the new position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(22, "Invalid argument")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return their number."""
        out = np.frombuffer(buffer, np.uint8)
        size = max(0, min(len(out), self._size - self._at))
        out[:size] = np.frombuffer(self._file.read(self._start + self._at, size), np.uint8)
        self._at += size
        return size


@contextmanager
def open_zip(file: SourceFile, action: str = "read the zip file") -> Iterator[zipfile.ZipFile]:
    """Yield the zip archive in a file; any defect raises a `FileFormatError`, which names the `action`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/a.zip", "w") as archive:
    ...         archive.writestr("x", b"12")
    ...     with open_zip(SourceFile(f"{folder}/a.zip")) as archive:
    ...         archive.namelist()
    ['x']
    """
    stream: IO[bytes] = io.BufferedReader(FileStream(file))
    try:
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except FileFormatError:
        raise
    except _ZIP_READ_ERRORS as problem:
        if isinstance(problem, OSError) and problem.errno not in (None, 22):
            raise  # a disk error; damaged offsets are invalid arguments, and bzip2 gives no number
        raise FileFormatError(f"cannot {action}: {problem}") from None


def find_member_ranges(members: Sequence[zipfile.ZipInfo], file: SourceFile) -> list[tuple[int, int]]:
    """Return (start, end) of the stored bytes of members in their zip file; their headers are read in one go.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/a.zip", "w") as archive:
    ...         archive.writestr("x", b"12")
    ...     with open_zip(SourceFile(f"{folder}/a.zip")) as archive:
    ...         find_member_ranges(archive.infolist(), SourceFile(f"{folder}/a.zip"))
    [(31, 33)]
    """
    starts = [info.header_offset for info in members]
    for info in members:
        if not 0 <= info.header_offset <= file.size - _LOCAL_HEADER_BYTES:
            raise FileFormatError(f"member {info.filename!r} extends beyond the end of the file")
        if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
            sizes = f"{info.compress_size} bytes, not {info.file_size}"
            raise FileFormatError(f"member {info.filename!r} is stored in {sizes}")
    headers = np.empty((len(members), _LOCAL_HEADER_BYTES), np.uint8)
    file.read_equal_runs(np.array(starts, np.int64), _LOCAL_HEADER_BYTES, headers.reshape(-1))
    result = []
    for info, header in zip(members, headers, strict=True):
        begin = info.header_offset + _LOCAL_HEADER_BYTES + sum(struct.unpack_from("<HH", header.tobytes(), 26))
        if begin + info.compress_size > file.size:
            raise FileFormatError(f"member {info.filename!r} extends beyond the end of the file")
        result.append((begin, begin + info.compress_size))
    return result


def reject_overlaps(ranges: list[tuple[int, int]]) -> None:
    """Raise if members share bytes, which is how a small file unpacks to terabytes.

    >>> reject_overlaps([(31, 33), (64, 70)])
    """
    for (_, end), (start, _) in pairwise(sorted(ranges)):
        if start < end:
            raise FileFormatError(f"two members overlap in bytes {start} to {end}")


class UnpackedFile(SourceFile):
    """Bytes derived from another file on first use, in a nameless temporary file.

    A subclass has a `_copy_to`, which writes them.

    >>> [class_.__name__ for class_ in UnpackedFile.__subclasses__()][:1]
    ['UnpackedMember']
    """

    __slots__ = ("__weakref__", "_container", "_handle", "_once")

    def __init__(self, container: SourceFile, size: int) -> None:
        self.path, self.size, self.time, self._map = container.path, size, container.time, None
        self._container, self._once = container, Lock()
        self._handle: Any = None

    def _reopen(self) -> int:
        with self._once:
            if self._handle is None:
                self._handle = self._unpack()
                weakref.finalize(self, self._handle.close)
        return os.dup(self._handle.fileno())

    def _unpack(self) -> Any:
        handle = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as this object)
        try:
            self._copy_to(handle)
        except BaseException:
            handle.close()
            raise
        handle.flush()
        return handle

    def _copy_to(self, handle: IO[bytes]) -> None:
        raise NotImplementedError


class UnpackedMember(UnpackedFile):
    """A compressed member of a zip file, unpacked.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    ...         archive.writestr("x", b"12")
    ...     file = SourceFile(f"{folder}/a.zip")
    ...     with open_zip(file) as archive:
    ...         info = archive.getinfo("x")
    ...     UnpackedMember(file, info).read(1, 1)
    b'2'
    """

    __slots__ = ("_info",)

    def __init__(self, container: SourceFile, info: zipfile.ZipInfo) -> None:
        super().__init__(container, info.file_size)
        self._info = info

    def __reduce__(self) -> Any:
        return UnpackedMember, (self._container, self._info)

    def _copy_to(self, handle: IO[bytes]) -> None:
        left, name = self.size, f"{self.path}: {self._info.filename!r}"
        action = f"unpack {self._info.filename!r} of {self.path}"
        with open_zip(self._container, action) as archive, archive.open(self._info) as member:
            while chunk := member.read(min(_CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    raise FileFormatError(f"{name} is longer than its header says")
                handle.write(chunk)
        if left:
            raise FileFormatError(f"{name} is {left} bytes shorter than its header says")


_MAX_HEADER_BYTES = 65_535
MAX_NPY_HEADER = _MAX_HEADER_BYTES + 12
"""Bytes at the start of a file that hold its header."""


def parse_npy_header(start: bytes) -> tuple[dict[str, Any], int]:
    """Return the header at the start of an `.npy` file, and the offset of the elements.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float32))
    >>> parse_npy_header(file.getvalue())
    ({'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}, 128)
    """
    if start[: len(NPY_MAGIC)] != NPY_MAGIC or len(start) < 10:
        raise FileFormatError("not an .npy file: wrong magic bytes")
    major = start[6]
    if major not in (1, 2, 3):
        raise FileFormatError(f"unknown .npy version {major}; expected 1, 2 or 3")
    wide = 2 if major == 1 else 4
    size = int.from_bytes(start[8 : 8 + wide], "little")
    end = 8 + wide + size
    if size > _MAX_HEADER_BYTES or end > len(start):
        raise FileFormatError(f"the header size is {size}, but only {len(start) - 8 - wide} bytes follow")
    try:
        result = ast.literal_eval(str(start[8 + wide : end], "utf-8" if major == 3 else "latin-1").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as problem:
        raise FileFormatError(f"the header is not a dictionary: {problem}") from None
    if not isinstance(result, dict) or set(result) != {"descr", "fortran_order", "shape"}:
        raise FileFormatError("the header must have exactly the keys descr, fortran_order and shape")
    if not isinstance(result["fortran_order"], bool) or not isinstance(result["shape"], tuple):
        raise FileFormatError(
            "expected a bool as fortran_order and a tuple as shape, got"
            f" {result['fortran_order']!r} and {result['shape']!r}"
        )
    for n in result["shape"]:
        expect_integer(n, "an extent")
    if len(result["shape"]) > 64:
        raise FileFormatError(f"expected at most 64 dimensions, got {len(result['shape'])}")
    return result, end


def _parse_descr(descr: object) -> tuple[np.dtype[Any], ScalarFormat | None]:
    """Return the dtype of a header's descr, and its number format if there is one."""
    if not isinstance(descr, str):
        raise FileFormatError(f"elements of type {repr(descr)[:40]} are records; only numbers can be read")
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError):
        raise FileFormatError(f"{descr[:40]!r} is not a NumPy type") from None
    if dtype.hasobject:
        raise FileFormatError("the elements are pickled Python objects, which are never loaded")
    if not dtype.itemsize:
        raise FileFormatError(f"elements of type {descr!r} have 0 bytes")
    try:
        element = format_of(dtype)
    except FormatError:
        return dtype, None
    return dtype, element if not element.has_blocks else None


def make_npy_tensor(name: str, file: SourceFile, begin: int, start: bytes, nbytes: int) -> StoredTensor:
    """Return the tensor of an `.npy` file, or `.npz` member, of `nbytes` bytes at `begin`; `start` is its first bytes.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.zeros((2, 3)))
    ...     file = SourceFile(Path(folder, "x.npy"))
    ...     make_npy_tensor("x", file, 0, file.read(0, file.size), file.size).shape
    (2, 3)
    """
    layout = parse_npy_layout(start, nbytes)
    descr, swapped = layout.dtype.str, not layout.dtype.isnative
    location = (file, begin + layout.offset, layout.nbytes)
    return StoredTensor.dense(name, descr, layout.shape, layout.format, *location, layout.fortran_order, swapped)


class NpyLayout(NamedTuple):
    """The dtype, number format, shape, byte offset and order of the elements of an `.npy` file.

    >>> NpyLayout(np.dtype("<f4"), None, (2, 3), 128, False).nbytes
    24
    """

    dtype: np.dtype[Any]
    format: ScalarFormat | None
    shape: tuple[int, ...]
    offset: int
    fortran_order: bool

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize


def parse_npy_layout(start: bytes, nbytes: int) -> NpyLayout:
    """Return the layout of an `.npy` file of `nbytes` bytes that begins with `start`; its elements fill the rest.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float32))
    >>> parse_npy_layout(file.getvalue(), len(file.getvalue())).offset
    128
    """
    header, offset = parse_npy_header(start)
    dtype, element = _parse_descr(header["descr"])
    result = NpyLayout(dtype, element, header["shape"], offset, header["fortran_order"])
    if offset + result.nbytes != nbytes:
        raise FileFormatError(
            f"{list(result.shape)} of {dtype} takes {result.nbytes} bytes, but {nbytes - offset} follow the header"
        )
    return result


def read_npy_layout(path: FilePath) -> NpyLayout:
    """Return the layout of the `.npy` file at `path`; only the header is read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.zeros((2, 3), np.int16))
    ...     read_npy_layout(Path(folder, "x.npy")).shape
    (2, 3)
    """
    file = SourceFile(path)
    try:
        return parse_npy_layout(file.read(0, min(file.size, MAX_NPY_HEADER)), file.size)
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None


def read_npy(path: FilePath | SourceFile, name: str) -> StoredTensor:
    """Return the tensor of an `.npy` file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)))
    ...     read_npy(Path(folder, "x.npy"), "x").read().tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    file = as_source_file(path)
    return make_npy_tensor(name, file, 0, file.read(0, min(file.size, MAX_NPY_HEADER)), file.size)


def read_npz(file: SourceFile) -> Content:
    """Return the tensors of an `.npz` `file`; compressed ones are unpacked to a temporary file when they are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "x.npz"), a=np.zeros(3), b=np.ones((2, 2)))
    ...     [(tensor.name, tensor.shape) for tensor in read_npz(SourceFile(Path(folder, "x.npz")))[0]]
    [('a', (3,)), ('b', (2, 2))]
    """
    with open_zip(file) as archive:
        members = [info for info in archive.infolist() if not info.is_dir()]
        ranges = find_member_ranges(members, file)
        result = [_open_member(archive, info, file, begin) for info, (begin, _) in zip(members, ranges, strict=True)]
        reject_overlaps(ranges)
    return result, {}


def _open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: SourceFile, begin: int) -> StoredTensor:
    if info.flag_bits & 1:
        raise FileFormatError(f"member {info.filename!r} is encrypted")
    if not info.filename.endswith(".npy"):
        raise FileFormatError(f"member {info.filename!r} is not an .npy file")
    name = info.filename[: -len(".npy")]
    with archive.open(info) as member:
        start = member.read(min(info.file_size, MAX_NPY_HEADER))
    if info.compress_type != zipfile.ZIP_STORED:
        return make_npy_tensor(name, UnpackedMember(file, info), 0, start, info.file_size)
    return make_npy_tensor(name, file, begin, start, info.file_size)


# HDF5 files, read with h5py: `.h5` and `.hdf5`, and `.keras`, a zip file with one of them in it.

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


def read_hdf5(file: SourceFile) -> Content:
    """Return the datasets of an HDF5 `file`, or of the weights of a Keras model, by their paths.

    Texts and records are not among them; they are the second result.

    >>> import tempfile
    >>> h5py = import_library("h5py", "x.h5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/x.h5", "w") as opened:
    ...         opened["dense/kernel"] = np.arange(3)
    ...     [(tensor.name, tensor.read().tolist()) for tensor in read_hdf5(SourceFile(f"{folder}/x.h5"))[0]]
    [('dense/kernel', [0, 1, 2])]
    """
    start, end = 0, file.size
    if file.read(0, min(file.size, len(ZIP_START))) == ZIP_START:
        file, start, end = _find_keras_weights(file)
    result: list[StoredTensor] = []
    others: dict[str, str] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            tensor = _make_tensor(name, item, file, start, end)
            result.extend([] if tensor is None else [tensor])
            if tensor is None:
                others[name] = "empty" if item.shape is None else f"elements of type {item.dtype}"
            if len(result) > _MAX_DATASETS:
                raise FileFormatError(f"the file has more than {_MAX_DATASETS} datasets")

    h5py = import_library("h5py", str(file.path))
    with _open_datasets(file, start, end) as opened:
        opened.visititems(add)  # which does not follow links to other files
    return result, others


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
    descr, swapped = dtype.str, not dtype.isnative
    if offset is not None and start + offset + nbytes <= end:
        location = (file, start + offset, nbytes)
    else:
        location = (UnpackedDataset(file, start, end, name, nbytes), 0, nbytes)
    return StoredTensor.dense(name, descr, shape, element, *location, swapped=swapped)


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

    def _copy_to(self, handle: IO[bytes]) -> None:
        copied = 0
        with _open_datasets(self._container, self._start, self._end) as opened:
            dataset = opened[self._name]
            shape, most = dataset.shape, max(1, _SLAB_BYTES // dataset.dtype.itemsize)
            for slab in cut_into_slabs(shape, largest_slab(shape, (1,) * len(shape), lambda slab: prod(slab) <= most)):
                copied += handle.write(np.ascontiguousarray(dataset[slab.slices]).reshape(-1).view(np.uint8).data)
        if copied != self.size:
            raise FileFormatError(f"dataset {self._name[:80]!r} takes {copied} bytes, not {self.size}")
