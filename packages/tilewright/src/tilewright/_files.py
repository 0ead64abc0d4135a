# SPDX-License-Identifier: Apache-2.0
"""Replace files and directories atomically.

A draft is written in the same folder, under a name that nobody else has, and renamed when it is complete. Its writer
holds a lock on it. A draft that nobody holds was left by a process that is gone; the next one that writes to the same
folder removes it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from .errors import FileFormatError

try:
    import fcntl
except ModuleNotFoundError:  # on Windows, where an open file cannot be removed anyway
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

PREFIX = ".tilewright-draft-"

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_SWEEP_SHARE = 100  # sweeping takes at most a hundredth of the time
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of renameat2(2)

_next_sweep: dict[str, float] = {}  # folder: when it is worth looking for stale drafts again
_sweep_lock = threading.Lock()


def as_path(path: str | bytes | os.PathLike[str]) -> Path:
    """Return a path that was given; raise a `FileFormatError` if the system can have no file of that name.

    >>> as_path("model/x.npy").name
    'x.npy'
    """
    try:
        is_possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate
        is_possible = False
    if not is_possible:
        raise FileFormatError(f"{ascii(path)[:80]} is not the name of a file: it has characters that no path can have")
    if path in ("", b""):  # a variable that is not set, rather than this directory
        raise FileFormatError("the name of a file is empty; name a file, or '.' for this directory")
    return Path(os.fsdecode(path)) if isinstance(path, bytes) else Path(path)


@contextmanager
def replace_file(
    path: str | os.PathLike[str], *, folder: str | os.PathLike[str] | None = None, durable: bool = True
) -> Iterator[BinaryIO]:
    """Yield a new file, open for writing and reading, that takes the place of `path` when the block ends.

    After an exception, `path` is unchanged and the draft is gone; so it is after SIGTERM, where Python can see to it
    (in the main thread, unless the program handles the signal itself). A link at `path` is replaced, not followed.

    Args:
        path: the file to replace or to make; a folder or a device is refused.
        folder: where the draft lies, on the same disk; beside `path` by default.
        durable: wait until the content is on the disk before the old file goes.

    The draft's own path is the file's `name`, for libraries that open files themselves.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(Path(folder, "numbers")) as file:
    ...         _ = file.write(b"123")
    ...     Path(folder, "numbers").read_bytes(), os.listdir(folder)
    (b'123', ['numbers'])
    """
    with _exit_on_sigterm():
        draft = Draft(path, folder)
        try:
            with _naming(draft.target, draft.path):
                yield draft.file
        except BaseException:
            draft.discard()
            raise
        draft.commit(durable)


class Draft:
    """A file that is being written, and the path whose place it takes when it is committed.

    `replace_file` is the same for one block of code; this is for what many threads write.

    Args:
        path: the file to replace or to make.
        folder: where the draft lies, on the same disk; beside `path` by default.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draft = Draft(Path(folder, "numbers"))
    ...     _ = draft.file.write(b"123")
    ...     draft.commit()
    ...     os.listdir(folder)
    ['numbers']
    """

    def __init__(self, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> None:
        self.target = as_path(path)
        mode = _check_replaceable(self.target)
        home = self.target.parent if folder is None else Path(folder)
        remove_stale_drafts(home)
        self.file = _open_draft(home, self.target)
        self.path = Path(self.file.name)
        if mode is not None and hasattr(os, "fchmod"):
            with suppress(OSError):  # on file systems without permissions
                os.fchmod(self.file.fileno(), mode)

    def commit(self, durable: bool = True) -> None:
        """Give the draft its name; if that fails, the draft is gone and the old file stays.

        Args:
            durable: wait until the content is on the disk before the old file goes.
        """
        try:
            with _naming(self.target, self.path):
                self.file.flush()
                if durable:
                    os.fsync(self.file.fileno())
                if not HAS_FLOCK:  # Windows does not rename open files; elsewhere the lock is held to the end
                    self.file.close()
                self.path.replace(self.target)
        except BaseException:
            self.discard()
            raise
        self.file.close()
        if durable:
            sync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove the draft; the old file, if there is one, stays."""
        if HAS_FLOCK:
            self.path.unlink(missing_ok=True)
        with suppress(OSError):  # data that a full disk did not take are no longer needed
            self.file.close()
        self.path.unlink(missing_ok=True)


@contextmanager
def replace_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a folder to make, which takes the place of `path` when the block ends.

    Args:
        path: the folder (or file) to replace or to make.

    After an exception `path` is unchanged. Where the system cannot exchange two folders in one step, a process that
    is killed between the two steps leaves the old one inside the draft.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with replace_folder(Path(parent, "results")) as draft:
    ...         draft.mkdir()
    ...         _ = Path(draft, "a").write_text("1")
    ...     os.listdir(parent), os.listdir(Path(parent, "results"))
    (['results'], ['a'])
    """
    target = as_path(path)
    remove_stale_drafts(target.parent)
    with _exit_on_sigterm():
        home, handle = _make_draft_folder(target.parent)
        try:
            draft = home / "new"
            yield draft
            if not os.path.lexists(target):
                draft.rename(target)
            elif not _exchange(draft, target):
                _replace_in_two_steps(draft, target, home / "old")
        finally:
            shutil.rmtree(home, ignore_errors=True)
            if handle is not None:
                os.close(handle)
    sync_folder(target.parent)


def write_file(
    path: str | os.PathLike[str],
    content: bytes | str,
    *,
    folder: str | os.PathLike[str] | None = None,
    durable: bool = True,
) -> None:
    """Replace a file by one with this content; text is written as UTF-8.

    Args:
        path: the file to replace or to make.
        content: all that it will hold.
        folder: where the draft lies, on the same disk; beside `path` by default.
        durable: wait until it is on the disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder, "x"), "abc")
    ...     Path(folder, "x").read_text()
    'abc'
    """
    with replace_file(path, folder=folder, durable=durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def rename_over(draft: Path, target: Path) -> None:
    """Give a complete file that is on the disk already its own name, in place of whatever had it.

    Args:
        draft: the complete file, on the same disk as the target.
        target: the name it takes; a folder or a device is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder, "a"), "abc")
    ...     rename_over(Path(folder, "a"), Path(folder, "b"))
    ...     os.listdir(folder)
    ['b']
    """
    _check_replaceable(target)
    draft.replace(target)
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can.

    Args:
        path: the folder.

    >>> sync_folder(Path("no such folder"))
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_stale_drafts(folder: Path) -> None:
    """Remove the drafts in a folder that no living process holds.

    Args:
        folder: where to look; nothing happens where it cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, f"{PREFIX}0123").touch()
    ...     remove_stale_drafts(Path(folder))
    ...     os.listdir(folder)
    []
    """
    if not HAS_FLOCK:
        return
    name, began = os.path.abspath(folder), time.monotonic()
    with _sweep_lock:
        if began < _next_sweep.get(name, 0.0):
            return
        if len(_next_sweep) > 1000:
            _next_sweep.clear()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX):
                    _remove_if_stale(Path(entry.path))
        ended = time.monotonic()
        _next_sweep[name] = ended + _SWEEP_SHARE * (ended - began)


def _remove_if_stale(draft: Path) -> None:
    try:
        handle = os.open(draft, os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return  # gone meanwhile, a link, or somebody else's
    try:
        if _take_lock(handle):
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                shutil.rmtree(draft, ignore_errors=True)
            else:
                with suppress(OSError):
                    draft.unlink()
    finally:
        os.close(handle)


def _take_lock(handle: int) -> bool:
    """Return whether this process holds an open file now; where files cannot be locked, nobody does."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _open_draft(folder: Path, target: Path) -> BinaryIO:
    def opener(name: str, flags: int) -> int:
        with _naming(target, Path(name)):
            return os.open(name, flags | os.O_EXCL | _NO_FOLLOW, 0o666)

    while True:
        file = open(folder / f"{PREFIX}{os.urandom(8).hex()}", "x+b", opener=opener)  # noqa: SIM115  (a Draft closes it)
        if _is_ours(file.fileno(), file.name):
            return file
        file.close()


def _make_draft_folder(parent: Path) -> tuple[Path, int | None]:
    while True:
        home = parent / f"{PREFIX}{os.urandom(8).hex()}"
        home.mkdir()
        if not HAS_FLOCK:
            return home, None
        handle = os.open(home, os.O_RDONLY | _NO_FOLLOW)
        if _is_ours(handle, home):
            return home, handle
        os.close(handle)


def _is_ours(handle: int, path: str | Path) -> bool:
    """Return whether a new draft is locked, if it can be: before that, a sweep may have taken it for a stale one."""
    if not HAS_FLOCK:
        return True
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)  # waits for a sweep that is removing it
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextmanager
def _naming(target: Path, draft: Path) -> Iterator[None]:
    """Let errors of the system name the file that was asked for, which the user knows, and not its draft."""
    try:
        yield
    except OSError as problem:
        if problem.errno is not None and problem.filename in (None, str(draft), os.fspath(draft)):
            problem.filename = str(target)
            del problem.filename2  # None would be printed
        raise


def _check_replaceable(target: Path) -> int | None:
    """Return the permissions of the replaced file, if there is one; refuse paths that a file must not replace."""
    try:
        status = target.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{target} is a folder; give the path of a file")
    if stat.S_ISREG(status.st_mode):
        return stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return None
    raise FileExistsError(f"{target} is a device, pipe or socket, which a file must not replace; choose another path")


def _exchange(draft: Path, target: Path) -> bool:
    """Return whether two names changed places in one step; only Linux can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    failed: int = rename(_AT_FDCWD, os.fsencode(draft), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE)
    return not failed


def _replace_in_two_steps(draft: Path, target: Path, old: Path) -> None:
    target.rename(old)
    try:
        draft.rename(target)
    except BaseException:
        old.rename(target)
        raise


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit, so that drafts are removed; a handler of the program's own stays."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


# Files mapped into memory; where Python cannot map them, as in some browsers, they are read.

mmap: Any = None  # the module, if there is one
with suppress(ModuleNotFoundError):
    mmap = import_module("mmap")

__all__ = ["PAGE_BYTES", "map_file", "mmap"]

PAGE_BYTES = 4096 if mmap is None else mmap.PAGESIZE  # the unit of memory maps


def map_file(handle: int) -> Any:
    """Return the bytes of an open file, by its descriptor `handle`: a map that can only be read, or a copy.

    >>> with open(__file__, "rb") as file:
    ...     bytes(map_file(file.fileno())[:6])
    b'# SPDX'
    """
    size = os.fstat(handle).st_size
    if size == 0:  # which cannot be mapped
        return b""
    if mmap is not None:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    os.lseek(handle, 0, os.SEEK_SET)
    parts = []
    while part := os.read(handle, size):
        parts.append(part)
    return b"".join(parts)
