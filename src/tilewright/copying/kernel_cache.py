# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk: what a compiler made of a program for a device, found again by the next process.

An entry is a file named after everything it depends on: the program, which is the plan as this version writes it, the
device, its driver, the compiler and its options. A file that is damaged, of another format or gone is no entry.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ..atomic import write_file

MARK = b"tilewright kernel 1\n"
MOST_BYTES = 256 << 20
MOST_FILES = 4096
OFF = ("0", "off", "none")


def directory() -> Path | None:
    """Return where kernels are kept: TILEWRIGHT_CACHE, or the user's cache; None if TILEWRIGHT_CACHE is "0".

    >>> os.environ["TILEWRIGHT_CACHE"] = "0"
    >>> directory() is None
    True
    >>> del os.environ["TILEWRIGHT_CACHE"]
    """
    named = os.environ.get("TILEWRIGHT_CACHE")
    if named:
        return None if named.lower() in OFF else Path(named).expanduser() / "kernels"
    home = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "tilewright" / "kernels"
    except RuntimeError:  # nobody's home
        return None


def kept(facts: Iterable[str], compile_now: Callable[[], bytes]) -> bytes:
    """Return what was compiled under these facts before, or compile it now and keep it.

    A cache that cannot be read or written costs time, never an error.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as room:
    ...     os.environ["TILEWRIGHT_CACHE"] = room
    ...     first, second = (kept(["a device", "a program"], lambda: made) for made in (b"code", b"other code"))
    >>> del os.environ["TILEWRIGHT_CACHE"]
    >>> first, second
    (b'code', b'code')
    """
    folder = directory()
    if folder is None:
        return compile_now()
    path = folder / f"{_name(facts)}.kernel"
    found = _read(path)
    if found is None:
        found = compile_now()
        with suppress(OSError):
            _write(path, found)
    return found


def forget(facts: Iterable[str]) -> None:
    """Remove an entry, as when a driver refuses what it holds.

    >>> forget(["nothing that was ever kept"])
    """
    folder = directory()
    if folder is not None:
        with suppress(OSError):
            (folder / f"{_name(facts)}.kernel").unlink()


def _name(facts: Iterable[str]) -> str:
    told = hashlib.sha256()
    for fact in facts:
        told.update(f"{len(fact)}:{fact}".encode())
    return told.hexdigest()


def _read(path: Path) -> bytes | None:
    """Return the contents of an entry if it is whole, and note that it was used."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(MARK) + 32
    body = data[head:]
    if not data.startswith(MARK) or hashlib.sha256(body).digest() != data[len(MARK) : head]:
        return None  # the next write replaces it
    with suppress(OSError):
        os.utime(path)
    return body


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # its hash tells whether an entry is whole: nobody needs to wait for the disk
    write_file(path, MARK + hashlib.sha256(body).digest() + body, durable=False)
    _shrink(path.parent)


def _shrink(folder: Path) -> None:
    """Remove what was used longest ago until half of the room is free, if there is too much."""
    entries = []
    for each in folder.iterdir():
        with suppress(OSError):  # removed by somebody else meanwhile
            facts = each.stat()
            entries.append((facts.st_mtime, facts.st_size, each))
    if len(entries) <= MOST_FILES and sum(size for _, size, _ in entries) <= MOST_BYTES:
        return
    entries.sort(reverse=True, key=lambda entry: entry[0])
    total = 0
    for count, (_, size, each) in enumerate(entries):
        total += size
        if total > MOST_BYTES // 2 or count >= MOST_FILES // 2:
            with suppress(OSError):
                each.unlink()
