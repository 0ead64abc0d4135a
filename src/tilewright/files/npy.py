# SPDX-License-Identifier: Apache-2.0
"""NumPy files: `.npy` and `.npz`. Nothing is unpickled; members that are not compressed are mapped where they lie."""

from __future__ import annotations

import ast
import os
import struct
import tempfile
import weakref
import zipfile
import zlib
from contextlib import suppress
from itertools import pairwise
from math import prod
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ..errors import FileFormatError, FormatError
from ..formats import ScalarFormat, format_of
from .source_file import SourceFile
from .stored_tensor import StoredTensor
from .strict_json import expect_integer

_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 65_535
_LOCAL_HEADER_BYTES = 30  # of a member of a zip file, before its name
_CHUNK = 1 << 20


def parse_npy_header(start: bytes) -> tuple[dict[str, Any], int]:
    """Return what the header at the start of an `.npy` file says, and where the elements begin.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float32))
    >>> parse_npy_header(file.getvalue())
    ({'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}, 128)
    """
    if start[: len(_MAGIC)] != _MAGIC or len(start) < 10:
        raise FileFormatError("it does not start as an .npy file does")
    major = start[6]
    if major not in (1, 2, 3):
        raise FileFormatError(f"version {major} of the .npy format is not known; 1, 2 and 3 are")
    wide = 2 if major == 1 else 4
    size = int.from_bytes(start[8 : 8 + wide], "little")
    end = 8 + wide + size
    if size > _MAX_HEADER_BYTES or end > len(start):
        raise FileFormatError(f"the header's size is {size}, and {len(start) - 8 - wide} bytes are there")
    try:
        found = ast.literal_eval(str(start[8 + wide : end], "utf-8" if major == 3 else "latin-1").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as problem:
        raise FileFormatError(f"the header is no dictionary: {problem}") from None
    if not isinstance(found, dict) or set(found) != {"descr", "fortran_order", "shape"}:
        raise FileFormatError("the header must have descr, fortran_order and shape, and nothing else")
    if not isinstance(found["fortran_order"], bool) or not isinstance(found["shape"], tuple):
        raise FileFormatError(
            f"fortran_order {found['fortran_order']!r} or shape {found['shape']!r} is of a wrong type"
        )
    for n in found["shape"]:
        expect_integer(n, "an extent")
    if len(found["shape"]) > 64:
        raise FileFormatError(f"a shape of {len(found['shape'])} dimensions is too much; 64 are possible")
    return found, end


def _parse_descr(descr: Any) -> tuple[np.dtype[Any], ScalarFormat | None]:
    """Return the dtype of an array and our format for it."""
    if not isinstance(descr, str):
        raise FileFormatError(f"elements of {repr(descr)[:40]} are records; only plain numbers can be read")
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError):
        raise FileFormatError(f"{descr[:40]!r} is no type of NumPy") from None
    if dtype.hasobject:
        raise FileFormatError("the elements are Python objects, which would have to be unpickled; that is not done")
    if not dtype.itemsize:
        raise FileFormatError(f"elements of {descr!r} have no bytes")
    try:
        element = format_of(dtype)
    except FormatError:
        return dtype, None
    return dtype, element if isinstance(element, ScalarFormat) else None


def npy_tensor(name: str, file: SourceFile, begin: int, start: bytes, nbytes: int) -> StoredTensor:
    """Return the tensor of an `.npy` file, or of a member of an `.npz`, that begins at `begin` and has `nbytes` bytes.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.zeros((2, 3)))
    ...     file = SourceFile(Path(folder, "x.npy"))
    ...     npy_tensor("x", file, 0, file.read(0, file.size), file.size).shape
    (2, 3)
    """
    layout = _parse_npy_layout(start, nbytes)
    _, element = _parse_descr(layout.dtype.str)
    return StoredTensor.dense(
        name,
        layout.dtype.str,
        layout.shape,
        element,
        file,
        begin + layout.offset,
        layout.nbytes,
        layout.fortran_order,
        not layout.dtype.isnative,
    )


class NpyLayout(NamedTuple):
    """Where and how the elements of an `.npy` file lie, as its header says.

    >>> NpyLayout(np.dtype("<f4"), (2, 3), 128, False).nbytes
    24
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    fortran_order: bool

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize


def _parse_npy_layout(start: bytes, nbytes: int) -> NpyLayout:
    """Return what the header at the start of `nbytes` bytes says, if the elements are exactly the rest of them."""
    header, offset = parse_npy_header(start)
    dtype, _ = _parse_descr(header["descr"])
    found = NpyLayout(dtype, header["shape"], offset, header["fortran_order"])
    if offset + found.nbytes != nbytes:
        raise FileFormatError(
            f"shape {list(found.shape)} of {dtype} takes {found.nbytes} bytes, and {nbytes - offset} follow the header"
        )
    return found


def read_npy_layout(path: Any) -> NpyLayout:
    """Return where and how the elements of the `.npy` file at `path` lie; nothing but the header is read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.zeros((2, 3), np.int16))
    ...     read_npy_layout(Path(folder, "x.npy")).shape
    (2, 3)
    """
    file = SourceFile(path)
    try:
        return _parse_npy_layout(file.read(0, min(file.size, _MAX_HEADER_BYTES + 12)), file.size)
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None


def read_npy(path: Any, name: str) -> StoredTensor:
    """Return the tensor of an `.npy` file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)))
    ...     read_npy(Path(folder, "x.npy"), "x").read().tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    file = SourceFile(path)
    return npy_tensor(name, file, 0, file.read(0, min(file.size, _MAX_HEADER_BYTES + 12)), file.size)


def read_npz(path: Any) -> list[StoredTensor]:
    """Return the tensors of an `.npz` file; compressed ones are unpacked to a temporary file when they are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "x.npz"), a=np.zeros(3), b=np.ones((2, 2)))
    ...     [(each.name, each.shape) for each in read_npz(Path(folder, "x.npz"))]
    [('a', (3,)), ('b', (2, 2))]
    """
    file = SourceFile(path)
    try:
        with zipfile.ZipFile(file.path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            found = [_open_member(archive, info, file) for info in members]
            taken = sorted([_member_range(info, file) for info in members])
    except FileFormatError:
        raise
    except _ZIP_READ_ERRORS as problem:
        raise FileFormatError(f"it is no zip file that can be read: {problem}") from None
    for (_, end), (start, _) in pairwise(taken):  # compressed ones too: that is how a small file unpacks to terabytes
        if start < end:
            raise FileFormatError(f"two members share the bytes from {start} to {end}")
    return found


_ZIP_ERRORS: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    LookupError,  # of an empty name, say
    EOFError,
    OverflowError,
)
with suppress(ImportError):  # a Python may be built without it
    from lzma import LZMAError

    _ZIP_ERRORS += (LZMAError,)
_ZIP_READ_ERRORS: tuple[type[Exception], ...] = (*_ZIP_ERRORS, OSError)


def _open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: SourceFile) -> StoredTensor:
    if info.flag_bits & 1:
        raise FileFormatError(f"member {info.filename!r} is encrypted")
    if not info.filename.endswith(".npy"):
        raise FileFormatError(f"member {info.filename!r} is no .npy file")
    name = info.filename[: -len(".npy")]
    with archive.open(info) as member:
        start = member.read(min(info.file_size, _MAX_HEADER_BYTES + 12))
    if info.compress_type != zipfile.ZIP_STORED:
        return npy_tensor(name, _UnpackedMember(file.path, info), 0, start, info.file_size)
    begin, end = _member_range(info, file)
    if info.compress_size != info.file_size or end > file.size:
        raise FileFormatError(f"member {info.filename!r} reaches beyond the end of the file")
    return npy_tensor(name, file, begin, start, info.file_size)


def _member_range(info: zipfile.ZipInfo, file: SourceFile) -> tuple[int, int]:
    """Return where the bytes of a member of a zip file begin and end, as they are stored."""
    local = file.read(info.header_offset, _LOCAL_HEADER_BYTES)
    begin = info.header_offset + _LOCAL_HEADER_BYTES + sum(struct.unpack_from("<HH", local, 26))
    return begin, begin + info.compress_size


class _UnpackedMember(SourceFile):
    """A compressed member of a zip file, unpacked to a nameless temporary file on first use."""

    __slots__ = ("__weakref__", "_handle", "_info", "_once")

    def __init__(self, path: Any, info: zipfile.ZipInfo) -> None:
        super().__init__(path)
        self._info, self._once = info, Lock()
        self._handle: Any = None
        self.size = info.file_size

    def __reduce__(self) -> Any:
        return _UnpackedMember, (self.path.absolute(), self._info)

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

    def _copy_to(self, handle: Any) -> None:
        left = self.size
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self._info) as member:
                while chunk := member.read(min(_CHUNK, left + 1)):
                    left -= len(chunk)
                    if left < 0:
                        raise FileFormatError(f"{self.path}: {self._info.filename!r} is longer than it says")
                    handle.write(chunk)
        except FileFormatError:
            raise
        except _ZIP_READ_ERRORS as problem:
            if isinstance(problem, OSError) and problem.errno is not None:
                raise  # of the disk; bzip2 has no exception of its own for data that are damaged
            raise FileFormatError(f"{self.path}: {self._info.filename!r} cannot be unpacked: {problem}") from None
        if left:
            raise FileFormatError(f"{self.path}: {self._info.filename!r} is {left} bytes shorter than it says")
