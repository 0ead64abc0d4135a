# SPDX-License-Identifier: Apache-2.0
"""`SourceFile`: a file that several threads read in pieces, and that must not change meanwhile."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from itertools import repeat
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, TypeAlias
from urllib.parse import quote, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from .._files import as_path, map_file
from .._json import parse_json
from ..copying import native
from ..errors import FileFormatError

# How files are recognised.

GGUF_MAGIC, GGUF_SUFFIX = b"GGUF", ".gguf"
NPY_MAGIC = b"\x93NUMPY"
ZIP_START = b"PK\x03\x04"
HDF5_START = b"\x89HDF\r\n\x1a\n"
KERAS_WEIGHTS = "model.weights.h5"  # in a zip archive
MANIFEST_NAME = "tilewright.json"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(path: FilePath) -> bool:
    """Return whether a name is a URL rather than a path.

    >>> is_url("hf://owner/model"), is_url("folder/model.npz")
    (True, False)
    """
    text = os.fsdecode(path)
    return _URL.match(text) is not None and not text.lower().startswith("file://")


# Names of tensors and files: a tensor's name makes one safe file name, which can be read back.

_MODEL = re.compile(r"(models|datasets|spaces)--.+")
_SNAPSHOTS = "snapshots"
_MAX_REFERENCE_BYTES = 1000  # of refs/main, which is the name of a snapshot


def link_root(folder: Path) -> Path:
    """Return the directory that links of a folder may point into: the folder, or a snapshot's model directory.

    >>> link_root(Path("/hub/models--a--b/snapshots/12ab/sub")).name, link_root(Path("/hub/models--a--b/other")).name
    ('models--a--b', 'other')
    """
    whole = folder.resolve()
    for parent in whole.parents:
        if _MODEL.fullmatch(parent.name) and whole.relative_to(parent).parts[0] == _SNAPSHOTS:
            return parent
    return whole


def find_checkpoint_folder(folder: Path) -> Path:
    """Return the folder with the files of a checkpoint: for a model directory of the hub, its snapshot.

    >>> find_checkpoint_folder(Path("checkpoint"))
    PosixPath('checkpoint')
    """
    if not _MODEL.fullmatch(folder.resolve().name) or not (folder / _SNAPSHOTS).is_dir():
        return folder
    result = sorted([path for path in (folder / _SNAPSHOTS).iterdir() if path.is_dir()])
    main = folder / "refs" / "main"
    if main.is_file() and main.stat().st_size < _MAX_REFERENCE_BYTES:
        revision = main.read_text(encoding="utf-8", errors="replace").strip()
        result = [path for path in result if path.name == revision] or result
    if len(result) != 1:
        raise FileFormatError(
            f"expected one snapshot in {folder}, got {len(result)}, and refs/main names none of them; give the folder"
            f" of one: {', '.join(path.name for path in result[:8]) or 'none, download the model again'}"
        )
    return result[0]


_MAX_NAME_BYTES = 200  # of a file name; a suffix and a temporary name must fit into 255
# Control characters, and characters that break lines or reverse the text after them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ELSEWHERE = re.compile(r"(^|[/\\])\.\.([/\\]|$)|^[/\\]|^[A-Za-z]:[/\\]")  # names that lead out of a directory
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def validate_tensor_name(name: str) -> str:
    """Return a tensor's name; raise a `FileFormatError` if it could point outside of a directory.

    >>> validate_tensor_name("decoder/layer.0/kernel")
    'decoder/layer.0/kernel'
    >>> try:
    ...     validate_tensor_name("../../secret")
    ... except FileFormatError as problem:
    ...     print(problem)
    tensor name '../../secret' points outside of its directory
    """
    if name.isascii() and name.isprintable() and not {"/", "\\", ":"}.intersection(name) and name != "..":
        return name  # nearly all of the very many that a checkpoint may have
    if _ELSEWHERE.search(name):
        raise FileFormatError(f"tensor name {name[:80]!r} points outside of its directory")
    if _UNSAFE.search(name):
        raise FileFormatError(f"tensor name {name[:80]!r} contains control characters")
    return name


def encode_file_name(name: str, all_capitals: bool = False) -> str:
    """Return the file name, without suffix, of a tensor: letters, digits, `_`, `-` and `.`; the rest as %XX.

    `all_capitals` also writes capitals as %XX, for names that differ only in case.

    >>> encode_file_name("encoder.layer.0.weight"), encode_file_name("a/b c"), encode_file_name(".hidden")
    ('encoder.layer.0.weight', 'a%2Fb%20c', '%2Ehidden')
    """
    text = quote(validate_tensor_name(name), safe="")
    text = text.replace("~", "%7E")
    if all_capitals:
        # except the capitals of %XX itself
        text = re.sub(r"%[0-9A-F]{2}|[A-Z]", lambda m: m[0] if len(m[0]) > 1 else f"%{ord(m[0]):02X}", text)
    if text[:1] in ("", ".", "-") or _RESERVED.match(text):
        text = f"%{ord(text[0]):02X}{text[1:]}" if text else "%"
    if len(text) > _MAX_NAME_BYTES:
        raise FileFormatError(
            f"tensor name {name[:40]!r}... makes a file name of {len(text)} bytes, more than {_MAX_NAME_BYTES}; write"
            " one .safetensors file instead"
        )
    return text


def decode_file_name(file: str) -> str:
    """Return the tensor name that a file name, without suffix, encodes.

    >>> decode_file_name("a%2Fb%20c"), decode_file_name("%2Ehidden"), decode_file_name("plain.name")
    ('a/b c', '.hidden', 'plain.name')
    """
    if file == "%":
        return ""
    try:
        return unquote(file, errors="strict")
    except UnicodeDecodeError:
        raise FileFormatError(f"file name {file!r} does not encode a tensor name") from None


def unique_file_names(names: list[str]) -> dict[str, str]:
    """Return a file name per tensor, unique also on case-insensitive file systems.

    >>> unique_file_names(["W", "w", "b"])
    {'W': '%57', 'w': 'w', 'b': 'b'}
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(encode_file_name(name).lower(), []).append(name)
    ambiguous = {name for group in groups.values() if len(group) > 1 for name in group}
    return {name: encode_file_name(name, name in ambiguous) for name in names}


def resolve_inside(folder: Path, name: str, follow_symlinks: bool = False) -> Path:
    """Return the path of a file in a directory; raise if its name or a link points outside.

    Links may point anywhere in the directory, and from a snapshot of the Hugging Face hub to the blobs of its model.
    `follow_symlinks` allows all links.

    >>> resolve_inside(Path("models"), "a.safetensors").name
    'a.safetensors'
    """
    if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FileFormatError(f"file name {name[:80]!r} points outside of the directory {folder}")
    path = folder / name
    destination = path
    try:
        if stat.S_ISLNK(path.lstat().st_mode):
            destination = Path(os.path.realpath(path))
            path.stat()
    except FileNotFoundError:
        pass  # opening it raises
    except OSError as problem:  # a very long name, or a cycle of links
        raise FileFormatError(f"cannot open {name[:80]!r} in the directory {folder}: {problem.strerror}") from None
    if not follow_symlinks and destination is not path and not destination.is_relative_to(link_root(folder)):
        raise FileFormatError(
            f"{path} is a link that points outside of the directory, to {destination}; give the file itself, or allow"
            " such links with --follow-links (in Python, follow_symlinks=True)"
        )
    return path


ByteArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
FilePath: TypeAlias = "str | os.PathLike[str]"
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class SourceFile:
    """A regular file: its size, a map of its bytes, and reads of ranges into given memory.

    No descriptor stays open, so thousands of files can be used. A read raises if the size or the modification time of
    the file has changed since it was first opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.bin")
    ...     _ = path.write_bytes(b"0123456789")
    ...     file = SourceFile(path)
    ...     file.size, file.read(2, 3), file.map()[-1:].tobytes()
    (10, b'234', b'9')
    """

    __slots__ = ("_map", "path", "size", "time")

    def __init__(self, path: FilePath) -> None:
        self.path = as_path(path)
        self._map: ByteArray | None = None
        handle, result = self._open_checked()
        os.close(handle)
        self.size, self.time = result.st_size, result.st_mtime_ns

    def __getstate__(self) -> tuple[Path, int, int]:
        # the map is not sent, and the receiver may be in another directory
        return self.path.absolute(), self.size, self.time

    def __setstate__(self, state: tuple[Path, int, int]) -> None:
        self.path, self.size, self.time = state
        self._map = None

    def _open_checked(self) -> tuple[int, os.stat_result]:
        # O_NONBLOCK: a named pipe would otherwise block here until it is written to
        handle = os.open(self.path, _READ_FLAGS)
        result = os.fstat(handle)
        if not stat.S_ISREG(result.st_mode):
            os.close(handle)
            raise FileFormatError(f"{self.path} is not a regular file")
        return handle, result

    def _reopen(self) -> int:
        handle, result = self._open_checked()
        if (result.st_size, result.st_mtime_ns) != (self.size, self.time):
            os.close(handle)
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        return handle

    def map(self) -> ByteArray:
        """Return all bytes as a read-only memory map.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"ab")
        ...     SourceFile(path).map().tolist()
        [97, 98]
        """
        if self._map is None:
            handle = self._reopen()
            try:
                mapped = map_file(handle)
            finally:
                os.close(handle)
            self._map = np.frombuffer(mapped, np.uint8)
        return self._map

    def read_runs(self, runs: Iterable[tuple[int, int]], out: ByteArray) -> None:
        """Read ranges, `runs` of (offset, size), one after the other into `out`.

        >>> import tempfile
        >>> out = np.zeros(3, np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"0123456789")
        ...     SourceFile(path).read_runs([(8, 2), (0, 1)], out)
        >>> out.tobytes()
        b'890'
        """
        view, at = out.data, 0
        handle = self._reopen()
        try:
            for offset, size in runs:
                self._read_into(handle, offset, view[at : at + size])
                at += size
        finally:
            os.close(handle)

    def read_equal_runs(self, starts: NDArray[np.int64], size: int, out: ByteArray) -> None:
        """Read ranges of `size` bytes at the offsets `starts`, one after the other into `out`.

        >>> import tempfile
        >>> out = np.zeros(4, np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"0123456789")
        ...     SourceFile(path).read_equal_runs(np.array([8, 0]), 2, out)
        >>> out.tobytes()
        b'8901'
        """
        library = native.load_library()
        handle = self._reopen()
        try:
            first = 0
            if library is not None and len(starts) > 1:
                offsets = np.ascontiguousarray(starts, np.int64)
                first = library.tw_read_runs(handle, offsets.ctypes.data, len(offsets), size, out.ctypes.data)
            for k in range(first, len(starts)):
                self._read_into(handle, int(starts[k]), out.data[k * size : (k + 1) * size])
        finally:
            os.close(handle)

    def _read_into(self, handle: int, offset: int, part: memoryview) -> None:
        while len(part):
            try:
                count = _read_at(handle, offset, part)
            except OSError as problem:
                raise type(problem)(problem.errno, problem.strerror, str(self.path)) from None
            if not count:
                raise FileFormatError(f"{self.path} ends at byte {offset}, but {len(part)} more bytes were expected")
            part, offset = part[count:], offset + count

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes at `offset`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"0123456789")
        ...     SourceFile(path).read(4, 2)
        b'45'
        """
        if offset + size > self.size:
            raise FileFormatError(f"cannot read {size} bytes at {offset}: the file has {self.size}")
        out = np.empty(size, np.uint8)
        self.read_runs([(offset, size)], out)
        return out.tobytes()

    def map_range(self, start: int, end: int) -> ByteArray:
        """Return the bytes from `start` to `end` as a read-only memory map.

        >>> SourceFile(__file__).map_range(2, 6).tobytes()
        b'SPDX'
        """
        return self.map()[start:end]

    def open_beside(self, name: str, follow_symlinks: bool = False) -> SourceFile:
        """Return the file of another name in the same directory; raise if the name points outside.

        `follow_symlinks` allows links that do.

        >>> SourceFile(__file__).open_beside("npy.py").path.name
        'npy.py'
        """
        return SourceFile(resolve_inside(self.path.parent, name, follow_symlinks))

    def __repr__(self) -> str:
        return f"SourceFile({str(self.path)!r})"


def as_source_file(path: FilePath | SourceFile) -> SourceFile:
    """Return the file at a path, or one that is open already.

    >>> as_source_file(SourceFile(__file__)).path.name
    'source.py'
    """
    return path if isinstance(path, SourceFile) else SourceFile(path)


def _read_at(handle: int, offset: int, part: memoryview) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(handle, [part], offset)
    os.lseek(handle, offset, os.SEEK_SET)  # the handle belongs to this call
    result = os.read(handle, len(part))
    part[: len(result)] = result
    return len(result)


def read_json(path: FilePath | SourceFile, name: str, max_bytes: int) -> object:
    """Return the parsed JSON of the file at `path`, which must not be larger than `max_bytes`; `name` is for messages.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "index.json").write_text("[1, 2]")
    ...     read_json(Path(folder, "index.json"), "the index", 100)
    [1, 2]
    """
    file = as_source_file(path)
    if file.size > max_bytes:
        raise FileFormatError(f"{name} has {file.size} bytes, more than {max_bytes}")
    return parse_json(file.read(0, file.size), name)


# `ArraySource`: an array in memory in the place of a file, so that arrays are converted as stored tensors are.


class ArraySource(SourceFile):
    """The bytes of an array, read like a file; its `path` is by default the encoded name of its tensor.

    >>> ArraySource("w", np.arange(4, dtype=np.uint8)).read(1, 2)
    b'\\x01\\x02'
    """

    __slots__ = ("_bytes",)

    def __init__(self, name: str, array: np.ndarray[Any, Any], path: Path | None = None) -> None:
        self.path = Path(encode_file_name(name)) if path is None else path
        self._map = None
        self._bytes: ByteArray = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.size = self._bytes.size
        # stands for the time of a file: other content must not be taken for the input of an earlier run
        self.time = int.from_bytes(hashlib.sha256(self._bytes.data).digest()[:7], "little")

    def __getstate__(self) -> Any:
        return self.path, self.size, self.time, self._bytes

    def __setstate__(self, state: Any) -> None:
        self.path, self.size, self.time, self._bytes = state
        self._map = None

    def map(self) -> ByteArray:
        """Return all bytes.

        >>> ArraySource("w", np.arange(2, dtype=np.uint8)).map().tolist()
        [0, 1]
        """
        return self._bytes

    def read_runs(self, runs: Iterable[tuple[int, int]], out: ByteArray) -> None:
        """Copy ranges (offset, size) one after the other into `out`.

        >>> out = np.zeros(2, np.uint8)
        >>> ArraySource("w", np.arange(4, dtype=np.uint8)).read_runs([(3, 1), (0, 1)], out)
        >>> out.tolist()
        [3, 0]
        """
        at = 0
        for offset, size in runs:
            out[at : at + size] = self._bytes[offset : offset + size]
            at += size

    def read_equal_runs(self, starts: NDArray[np.int64], size: int, out: ByteArray) -> None:
        """Copy ranges of `size` bytes at the offsets `starts`, one after the other into `out`.

        >>> out = np.zeros(4, np.uint8)
        >>> ArraySource("w", np.arange(8, dtype=np.uint8)).read_equal_runs(np.array([6, 0]), 2, out)
        >>> out.tolist()
        [6, 7, 0, 1]
        """
        self.read_runs(zip(starts.tolist(), repeat(size), strict=False), out)


# `RangeReader`: a range of a file that is read from front to back in small pieces.

_CHUNK = 1 << 16  # bytes that are read at a time
_MAX_LINE_BYTES = 1000


class RangeReader:
    """The bytes from `start` to `end` of a file, from front to back; `name` is what messages call them.

    >>> source = RangeReader(SourceFile(__file__), 0, 100, "the header")
    >>> source.take(6), source.position
    (b'# SPDX', 6)
    """

    def __init__(self, file: SourceFile, start: int, end: int, name: str) -> None:
        self.position, self.end, self._file, self._name = start, end, file, name
        self._data, self._begin = b"", start  # the bytes from `_begin` on

    @property
    def left(self) -> int:
        """The number of bytes that have not been taken.

        >>> RangeReader(SourceFile(__file__), 2, 100, "the header").left
        98
        """
        return self.end - self.position

    def require(self, size: int, what: str = "") -> None:
        """Raise unless `size` more bytes follow; `what` is what messages call them, by default the range.

        >>> RangeReader(SourceFile(__file__), 2, 100, "the header").require(98)
        """
        if size > self.left:
            until = "" if self.end == self._file.size else f" up to byte {self.end}"
            raise FileFormatError(
                f"{what or self._name} at byte {self.position} needs {size} bytes, but only {self.left} follow{until}"
            )

    def take(self, size: int, what: str = "") -> bytes:
        """Return the next `size` bytes; `what` is as in `require`.

        >>> RangeReader(SourceFile(__file__), 2, 100, "the header").take(4)
        b'SPDX'
        """
        self.require(size, what)
        at = self.position - self._begin
        if at + size > len(self._data):
            count = min(max(size, _CHUNK), self.left)
            self._data, self._begin, at = self._file.read(self.position, count), self.position, 0
        self.position += size
        return self._data[at : at + size]

    def skip(self, size: int, what: str = "") -> None:
        """Move over the next `size` bytes, which are not read; `what` is as in `require`.

        >>> source = RangeReader(SourceFile(__file__), 0, 100, "the header")
        >>> source.skip(2)
        >>> source.take(4)
        b'SPDX'
        """
        self.require(size, what)
        self.position += size

    def take_integer(self, size: int, what: str = "") -> int:
        """Return the next `size` bytes as an unsigned little-endian integer; `what` is as in `require`.

        >>> RangeReader(SourceFile(__file__), 0, 100, "the header").take_integer(1)
        35
        """
        return int.from_bytes(self.take(size, what), "little")

    def take_line(self) -> bytes:
        """Return the bytes up to the end of the line.

        >>> RangeReader(SourceFile(__file__), 0, 100, "the header").take_line()[:6]
        b'# SPDX'
        """
        at = self.position - self._begin
        stop = self._data.find(b"\n", at, at + _MAX_LINE_BYTES)
        if stop >= 0:
            self.position += stop + 1 - at
            return self._data[at:stop]
        result = bytearray()  # it goes on behind what has been read
        while (byte := self.take(1)) != b"\n":
            result += byte
            if len(result) > _MAX_LINE_BYTES:
                raise FileFormatError(f"{self._name} has a line of more than {_MAX_LINE_BYTES} bytes")
        return bytes(result)


# Names of arrays: paths and URLs of .npy, raw and zarr arrays, and datasets of HDF5 files.

RAW_SUFFIXES = (".raw", ".bin", ".dat")

SUFFIXES_OF_TYPE = {"npy": (".npy",), "zarr": (".zarr",), "hdf5": (".h5", ".hdf5", ".he5", ".nc"), "raw": RAW_SUFFIXES}
"""The kinds of arrays by the suffixes of their files."""

SUFFIXES = tuple([suffix for suffixes in SUFFIXES_OF_TYPE.values() for suffix in suffixes])

EXTRAS = {"zarr": "zarr", "h5py": "hdf5", "fsspec": "remote", "obstore": "remote"}
"""The extra of this package that installs a library."""


@dataclass(frozen=True, slots=True)
class ArrayName:
    """The name of an array, taken apart: its kind, the scheme of a URL, the path or URL, and a dataset in the file.

    >>> parse_array_name("s3://bucket/a.zarr/x").kind, parse_array_name("a.h5::group/x").dataset
    ('zarr', 'group/x')
    """

    text: str
    kind: str
    path: str
    scheme: str = ""
    dataset: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the array is in a file or folder of this machine."""
        return not self.scheme


def parse_array_name(name: FilePath) -> ArrayName:
    """Return the parts of the name of an array; raise for names of unknown kind.

    >>> parse_array_name("file:///data/a.npy").path
    '/data/a.npy'
    >>> parse_array_name("a.h5")
    Traceback (most recent call last):
        ...
    tilewright.errors.FileFormatError: a.h5 is an HDF5 file; name a dataset in it, as in a.h5::name
    """
    text = os.fspath(name)
    path, _, dataset = text.partition("::")
    scheme, path_of_url = "", path
    if "://" in path:
        url = urlsplit(path)
        scheme, path_of_url = url.scheme.lower(), unquote(url.path or url.netloc)
        if scheme in ("file", "local"):
            scheme, path = "", path_of_url
    if not scheme:
        as_path(path)
    file_type = _find_file_type(path_of_url, bool(scheme))
    if file_type is None:
        suffix = PurePath(path_of_url).suffix
        raise FileFormatError(f"{text}: unknown suffix {suffix!r} for an array; use one of {', '.join(SUFFIXES)}")
    if file_type == "hdf5" and not dataset:
        raise FileFormatError(f"{text} is an HDF5 file; name a dataset in it, as in {text}::name")
    if file_type != "hdf5" and dataset:
        raise FileFormatError(f"{text}: only HDF5 files have datasets after '::'; write {path}/{dataset} for zarr")
    return ArrayName(text, file_type, path, scheme, dataset)


def absolute_name(name: ArrayName) -> str:
    """Return a name that means the same in every folder.

    >>> absolute_name(parse_array_name("/data/a.h5::x"))
    '/data/a.h5::x'
    """
    if not name.is_local:
        return name.text
    return os.path.abspath(name.path) + (f"::{name.dataset}" if name.dataset else "")


def _find_file_type(path: str, is_remote: bool) -> str | None:
    suffix = PurePath(path).suffix
    for file_type, suffixes in SUFFIXES_OF_TYPE.items():
        if suffix in suffixes:
            return file_type
    if any(part.endswith(".zarr") for part in PurePath(path).parts):
        return "zarr"
    is_zarr = not is_remote and any(os.path.exists(os.path.join(path, file)) for file in ("zarr.json", ".zarray"))
    return "zarr" if is_zarr else None


def import_library(library: str, name: str) -> ModuleType:
    """Return an optional library; raise with the extra that installs it. `name` is the array that needs it.

    >>> import_library("h5py_", "a.h5::x")
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: a.h5::x needs h5py_, which is not installed; pip install h5py_
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as problem:
        package = library.partition(".")[0]
        if problem.name is not None and problem.name.partition(".")[0] != package:
            raise
        extra = EXTRAS.get(package)
        remedy = f"pip install 'tilewright[{extra}]'" if extra else f"pip install {package}"
        raise ModuleNotFoundError(f"{name} needs {package}, which is not installed; {remedy}", name=package) from None
