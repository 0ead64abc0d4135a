# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk, for the next process."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tilewright._files import write_file

FILE_SIGNATURE = b"tilewright kernel 1\n"
MAX_FILE_BYTES = 256 << 20
MAX_FILES = 4096
_DISABLED = ("0", "off", "none")


def cache_directory() -> Path | None:
    """Return the folder of compiled kernels: TILEWRIGHT_CACHE or the user's cache; None if TILEWRIGHT_CACHE is "0".

    >>> os.environ["TILEWRIGHT_CACHE"] = "0"
    >>> cache_directory() is None
    True
    >>> del os.environ["TILEWRIGHT_CACHE"]
    """
    named = os.environ.get("TILEWRIGHT_CACHE")
    if named:
        return None if named.lower() in _DISABLED else Path(named).expanduser() / "kernels"
    home = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "tilewright" / "kernels"
    except RuntimeError:  # the user has no home folder
        return None


def load_or_compile(facts: Iterable[str], compile_program: Callable[[], bytes]) -> bytes:
    """Return the cached kernel that depends on these facts, or compile it and store it.

    A cache that cannot be read or written is ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["TILEWRIGHT_CACHE"] = folder
    ...     first, second = (load_or_compile(["device", "program"], lambda: code) for code in (b"code", b"other code"))
    >>> del os.environ["TILEWRIGHT_CACHE"]
    >>> first, second
    (b'code', b'code')
    """
    folder = cache_directory()
    if folder is None:
        return compile_program()
    path = folder / _file_name(facts)
    code = _read_entry(path)
    if code is None:
        code = compile_program()
        with suppress(OSError):
            _write_entry(path, code)
    return code


def remove_entry(facts: Iterable[str]) -> None:
    """Remove the cached kernel that depends on these facts, for example if the driver rejects it.

    >>> remove_entry(["a program that was never compiled"])
    """
    folder = cache_directory()
    if folder is not None:
        with suppress(OSError):
            (folder / _file_name(facts)).unlink()


def _file_name(facts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(f"{len(fact)}:{fact}".encode())
    return f"{digest.hexdigest()}.kernel"


def _read_entry(path: Path) -> bytes | None:
    """Return the contents of an entry if it is intact, and update its time of use."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(FILE_SIGNATURE) + 32
    body = data[head:]
    if not data.startswith(FILE_SIGNATURE) or hashlib.sha256(body).digest() != data[len(FILE_SIGNATURE) : head]:
        return None  # the next write replaces it
    with suppress(OSError):
        os.utime(path)
    return body


def _write_entry(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # the hash shows whether an entry is intact, so there is no need to wait for the disk
    write_file(path, FILE_SIGNATURE + hashlib.sha256(body).digest() + body, durable=False)
    _remove_oldest(path.parent)


def _remove_oldest(folder: Path) -> None:
    """If the cache is too large, remove the least recently used entries until it is half full."""
    entries = []
    for path in folder.iterdir():
        with suppress(OSError):  # removed by another process meanwhile
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    if len(entries) <= MAX_FILES and sum(size for _, size, _ in entries) <= MAX_FILE_BYTES:
        return
    entries.sort(reverse=True, key=lambda entry: entry[0])
    total = 0
    for count, (_, size, path) in enumerate(entries):
        total += size
        if total > MAX_FILE_BYTES // 2 or count >= MAX_FILES // 2:
            with suppress(OSError):
                path.unlink()
