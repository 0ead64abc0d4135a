# SPDX-License-Identifier: Apache-2.0
"""NumPy files: `.npy` and `.npz`. Nothing is unpickled; uncompressed members are memory-mapped."""

from __future__ import annotations

import ast
import zipfile
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._json import expect_integer
from ..errors import FileFormatError, FormatError
from ..formats import ScalarFormat, format_of
from .source_file import FilePath, SourceFile, as_source_file
from .stored_tensor import StoredTensor
from .zip_members import UnpackedMember, find_member_ranges, open_zip, reject_overlaps

NPY_MAGIC = b"\x93NUMPY"
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


def _parse_descr(descr: Any) -> tuple[np.dtype[Any], ScalarFormat | None]:
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
    kind, swapped = layout.dtype.str, not layout.dtype.isnative
    place = (file, begin + layout.offset, layout.nbytes)
    return StoredTensor.dense(name, kind, layout.shape, layout.format, *place, layout.fortran_order, swapped)


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
        """Return the bytes of all elements."""
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


def read_npz(path: FilePath | SourceFile) -> list[StoredTensor]:
    """Return the tensors of an `.npz` file; compressed ones are unpacked to a temporary file when they are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "x.npz"), a=np.zeros(3), b=np.ones((2, 2)))
    ...     [(tensor.name, tensor.shape) for tensor in read_npz(Path(folder, "x.npz"))]
    [('a', (3,)), ('b', (2, 2))]
    """
    file = as_source_file(path)
    with open_zip(file) as archive:
        members = [info for info in archive.infolist() if not info.is_dir()]
        ranges = find_member_ranges(members, file)
        result = [_open_member(archive, info, file, begin) for info, (begin, _) in zip(members, ranges, strict=True)]
        reject_overlaps(ranges)
    return result


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
