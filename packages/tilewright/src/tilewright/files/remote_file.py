# SPDX-License-Identifier: Apache-2.0
"""`RemoteFile`: a file behind a URL, read only in the ranges that are needed.

https://host/model.safetensors            a web server that knows ranges
hf://owner/model[@revision][/file]        a model of the Hugging Face hub
s3://bucket/model.safetensors, ...        an object store that obstore knows, or any URL of fsspec
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path, PosixPath, WindowsPath
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from .._files import as_path
from ..errors import FileFormatError
from .http_ranges import FileRanges, HttpRanges, hub_endpoint
from .source import ByteArray, FilePath, SourceFile, import_library, is_url

_HUB_NAME = re.compile(r"[\w.-]+")
_BLOCK = 1 << 18  # bytes that are read at least, and kept, when a header is read
_MAX_BLOCKS = 16
_MAX_MAPPED_BYTES = 1 << 30
_MAX_REQUESTS = 8  # at a time

MAX_GAP = 64 << 10
"""Bytes between two ranges that are read with them rather than by another request."""

OBJECT_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
"""Schemes that obstore knows."""

MODEL_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""The files that a model of the hub may have; the first one that exists is read, as by transformers."""


class UrlPath(PosixPath if os.name == "posix" else WindowsPath):  # type: ignore[misc]  # one of the two exists
    """A URL in place of a path: its text is the URL, its name the last part.

    >>> str(UrlPath("https://host/a/x.safetensors")), UrlPath("https://host/a/x.safetensors").suffix
    ('https://host/a/x.safetensors', '.safetensors')
    """

    def __str__(self) -> str:
        return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]+):/+", r"\1://", super().__str__().replace("\\", "/"))

    def __fspath__(self) -> str:
        return str(self)


def resolve_url(url: str) -> str:
    """Return the address of a file on a web server: the hub's address for `hf://owner/model[@revision]/file`.

    Pages of the hub that show a file become the file. Without a file, the address ends with a slash.

    >>> resolve_url("hf://owner/model@v1/a.safetensors").removeprefix(hub_endpoint())
    '/owner/model/resolve/v1/a.safetensors'
    """
    if not url.lower().startswith("hf://"):
        hub = re.escape(hub_endpoint())
        page = re.fullmatch(rf"({hub}/[\w.-]+/[\w.-]+)(?:/blob/(.+))?/?", url)
        if page is None:
            return url
        return f"{page[1]}/resolve/{page[2] or 'main/'}"
    owner, _, rest = url[len("hf://") :].partition("/")
    name, _, file = rest.partition("/")
    model, _, revision = name.partition("@")
    if not _HUB_NAME.fullmatch(owner) or not _HUB_NAME.fullmatch(model):
        raise FileFormatError(f"expected hf://owner/model[@revision][/file], got {url[:200]!r}")
    chosen = quote(unquote(revision) or "main", safe="")
    return f"{hub_endpoint()}/{owner}/{model}/resolve/{chosen}/{quote(unquote(file))}"


def open_model_file(url: str) -> RemoteFile:
    """Return the file of a URL; of a model, or another address that ends with a slash, the file with its tensors.

    Args:
        url: `hf://owner/model[@revision][/file]`, `https://...`, or what fsspec knows.
    """
    address = resolve_url(url)
    if not address.endswith("/"):
        return RemoteFile(address)
    for name in MODEL_FILES:
        try:
            return RemoteFile(address + name)
        except FileNotFoundError:
            continue
    raise FileNotFoundError(2, f"None of {', '.join(MODEL_FILES)} on the server; name a file", url)


class FsspecRanges(FileRanges):
    """A file of any file system that fsspec knows."""

    def connect(self) -> None:
        self._system, self._path = import_library("fsspec.core", self.url).url_to_fs(self.url)

    def _find(self) -> tuple[int, str]:
        facts = self._system.info(self._path)
        if facts.get("type", "file") != "file" or facts.get("size") is None:
            raise FileFormatError(f"{self.url} is not a file of known size")
        keys = ("ETag", "etag", "LastModified", "last_modified", "mtime", "created")
        return int(facts["size"]), str(next((facts[key] for key in keys if facts.get(key)), ""))

    def _request(self, offset: int, size: int) -> Iterator[bytes]:
        yield self._system.cat_file(self._path, start=offset, end=offset + size)


class ObjectRanges(FileRanges):
    """An object of a store that obstore knows."""

    def connect(self) -> None:
        self._obstore = import_library("obstore", self.url)
        folder, _, self._path = self.url.rpartition("/")
        self._store = open_object_store(folder, self.url)

    def _find(self) -> tuple[int, str]:
        try:
            facts = self._obstore.head(self._store, self._path)
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file or directory", self.url) from None
        return int(facts["size"]), str(facts.get("e_tag") or facts.get("last_modified") or "")

    def _request(self, offset: int, size: int) -> Iterator[bytes]:
        yield bytes(self._obstore.get_range(self._store, self._path, start=offset, end=offset + size))


def uses_obstore(scheme: str) -> bool:
    """Return whether obstore is installed and knows a scheme.

    >>> uses_obstore("ftp")
    False
    """
    return scheme in OBJECT_SCHEMES and find_spec("obstore") is not None


def open_object_store(url: str, name: str) -> object:
    """Return the store of obstore at a URL; `name` is the array that needs it."""
    options = {"client_options": {"allow_http": True}} if url.startswith("http:") else {}
    return import_library("obstore.store", name).from_url(url, **options)


def _ranges_class(url: str) -> type[FileRanges]:
    scheme = urlsplit(url).scheme.lower()
    if scheme in ("http", "https"):
        return HttpRanges
    return ObjectRanges if uses_obstore(scheme) else FsspecRanges


class RemoteFile(SourceFile):
    """A file behind a URL, read in ranges; it must not change meanwhile, as the server's tag shows.

    Ranges with little between them are read in one request, and several requests at a time. The start of the file and
    the blocks around headers are kept.

    Args:
        url: the address of the file.
    """

    __slots__ = ("_blocks", "_lock", "_ranges", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self._ranges = _ranges_class(url)(url, _BLOCK)
        self._set_up(self._ranges.size, self._ranges.identity)
        self._blocks[0] = self._ranges.start

    def _set_up(self, size: int, identity: int) -> None:
        self.path, self.size, self.time, self._map = (
            UrlPath(urlsplit(self.url)._replace(query="").geturl()),
            size,
            identity,
            None,
        )
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()

    def __getstate__(self) -> Any:
        return self.url, self.size, self.time, self._ranges.tag, type(self._ranges)

    def __setstate__(self, state: Any) -> None:
        self.url, size, identity, tag, ranges_class = state
        self._ranges = ranges_class.__new__(ranges_class)
        self._ranges.url, self._ranges.size, self._ranges.tag = self.url, size, tag
        self._ranges.connect()
        self._set_up(size, identity)

    def map(self) -> ByteArray:
        """Return all bytes, which are read; large files are refused."""
        if self._map is None:
            if self.size > _MAX_MAPPED_BYTES:
                raise FileFormatError(
                    f"{self.url} has {self.size} bytes, more than the {_MAX_MAPPED_BYTES} that are read as a whole;"
                    " read tensors of it, or download it"
                )
            self._map = self.map_range(0, self.size)
        return self._map

    def map_range(self, start: int, end: int) -> ByteArray:
        """Return the bytes from `start` to `end`, which are read."""
        out = np.empty(end - start, np.uint8)
        self.read_runs([(start, end - start)], out)
        return out

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes at `offset`; a few are read as part of blocks that are kept."""
        if size > _BLOCK or offset < 0 or offset + size > self.size:
            return super().read(offset, size)
        first, last = offset // _BLOCK, (offset + max(size, 1) - 1) // _BLOCK
        data = b"".join([self._read_block(number) for number in range(first, last + 1)])
        return data[offset - first * _BLOCK :][:size]

    def _read_block(self, number: int) -> bytes:
        with self._lock:
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
        start = number * _BLOCK
        data = self.map_range(start, min(start + _BLOCK, self.size)).tobytes()
        with self._lock:
            self._blocks[number] = data
            while len(self._blocks) > _MAX_BLOCKS:
                self._blocks.popitem(last=False)
        return data

    def read_equal_runs(self, starts: NDArray[np.int64], size: int, out: ByteArray) -> None:
        """Read ranges of `size` bytes at the offsets `starts`, one after the other into `out`."""
        self.read_runs(zip(starts.tolist(), repeat(size), strict=False), out)

    def read_runs(self, runs: Iterable[tuple[int, int]], out: ByteArray) -> None:
        """Read ranges (offset, size) one after the other into `out`."""
        groups: list[list[tuple[int, int, int]]] = []  # of (offset, size, place in out), near each other
        at = end = 0
        for offset, size in runs:
            if offset + size > self.size:
                raise FileFormatError(f"{self.url} ends at byte {self.size}, but byte {offset + size} was expected")
            if not groups or not end <= offset <= end + MAX_GAP:
                groups.append([])
            groups[-1].append((offset, size, at))
            at, end = at + size, offset + size
        if len(groups) == 1:
            self._read_group(groups[0], out)
        elif groups:
            with ThreadPoolExecutor(min(_MAX_REQUESTS, len(groups))) as pool:
                list(pool.map(self._read_group, groups, repeat(out)))

    def _read_group(self, group: list[tuple[int, int, int]], out: ByteArray) -> None:
        start, end = group[0][0], group[-1][0] + group[-1][1]
        nbytes = group[-1][2] + group[-1][1] - group[0][2]
        if nbytes == end - start:  # without gaps
            self._read_range(start, out[group[0][2] : group[0][2] + nbytes])
            return
        whole = np.empty(end - start, np.uint8)
        self._read_range(start, whole)
        for offset, size, at in group:
            out[at : at + size] = whole[offset - start : offset - start + size]

    def _read_range(self, start: int, out: ByteArray) -> None:
        if self._ranges.read_into(start, out.data) != len(out):
            raise FileFormatError(f"{self.url} ends before byte {start + len(out)}; it has changed, open it again")

    def open_beside(self, name: str, follow_symlinks: bool = False) -> SourceFile:
        """Return the file of another name in the same directory of the server."""
        if name != os.path.basename(name) or name in ("", ".", "..") or set(name) & set("\\\0?#"):
            raise FileFormatError(f"file name {name[:80]!r} points outside of the directory of {self.url}")
        parts = urlsplit(self.url)
        path = f"{parts.path.rpartition('/')[0]}/{quote(name)}"
        return RemoteFile(urlunsplit(parts._replace(path=path)))

    def __repr__(self) -> str:
        return f"RemoteFile({self.url!r})"


def as_url_path(path: FilePath) -> Path:
    """Return a URL or a path as a path.

    >>> as_url_path("model.npz").name
    'model.npz'
    """
    return UrlPath(os.fspath(path)) if is_url(path) else as_path(path)
