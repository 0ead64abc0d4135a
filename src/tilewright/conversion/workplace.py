# SPDX-License-Identifier: Apache-2.0
"""The workplace of a conversion: a hidden directory with locks, what is unfinished, and a journal of what is done.

It lies beside the result, on the same disk, so that a finished file moves to its place in one step. It is gone when the
conversion is complete; as long as it is there, the result is not.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..atomic import remove_stale_drafts
from ..errors import FileFormatError
from ..files.strict_json import parse_json

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

NAME = ".tilewright"
PAYLOAD = "payload"  # the one file of all tensors, until it is complete
_BUSY = "another process is converting to it; wait for that one, or choose another output"


class Workplace:
    """The hidden directory of a conversion to `out`, a directory or one file.

    >>> (
    ...     Workplace(Path("out"), single=False).folder.as_posix(),
    ...     Workplace(Path("o.safetensors"), single=True).folder.name,
    ... )
    ('out/.tilewright', '.o.safetensors.tilewright')
    """

    def __init__(self, out: Path, single: bool) -> None:
        self.out = out
        self.folder = out.with_name(f".{out.name}{NAME}") if single else out / NAME
        self.parts = self.folder / "parts"

    @contextmanager
    def locked(self, part: tuple[int, int] | None = None) -> Iterator[None]:
        """Hold the place: alone, or beside the other parts of the same conversion.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Workplace(Path(folder), single=False).locked():
        ...     Path(folder, ".tilewright", "lock").exists()
        True
        """
        with self._lock("lock", shared=part is not None):
            if part is None:
                try:
                    yield
                finally:
                    self._leave()
                return
            with self._lock("part-{}-of-{}.lock".format(*part), shared=False):
                yield

    def _leave(self) -> None:
        """Remove the directory if nothing was finished in it."""
        if not self.is_used:
            self.remove()
            with suppress(OSError):
                self.folder.parent.rmdir()  # which succeeds only if it is empty

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Hold the right to finish the conversion, waiting for others that do."""
        with self._lock("finish.lock", shared=False, wait=True):
            yield

    @contextmanager
    def _lock(self, name: str, shared: bool, wait: bool = False) -> Iterator[None]:
        path = self.folder / name
        while True:
            handle = self._opened(path)
            try:
                _take(handle, shared, wait, self.out)
                if _is_at(handle, path):  # else it is the lock of a place that was removed
                    yield
                    return
            finally:
                os.close(handle)  # which also lets go of the lock

    def _opened(self, path: Path) -> int:
        while True:
            for each in (self.folder, self.parts):
                if each.is_symlink():  # which could lead anywhere
                    raise FileExistsError(errno.EEXIST, "it is a link; remove it, or choose another output", str(each))
            self.parts.mkdir(parents=True, exist_ok=True)
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
            except FileNotFoundError:
                continue  # someone finished in between, and took the directory away

    # The journal.

    @property
    def is_used(self) -> bool:
        """Return whether something was finished here.

        >>> Workplace(Path("nowhere"), single=False).is_used
        False
        """
        return any(path.stat().st_size for path in self.folder.glob("done*.jsonl"))

    def records(self) -> dict[str, Any]:
        """Return the records of all journals, by key; a last line that was cut off does not count.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Workplace(Path(folder), single=False).records()
        {}
        """
        found: dict[str, Any] = {}
        for path in sorted(self.folder.glob("done*.jsonl")):
            for line in path.read_bytes().split(b"\n")[:-1]:
                try:
                    record = parse_json(line, "a line of the journal")
                    found[record["key"]] = record
                except (FileFormatError, KeyError, TypeError):
                    raise FileFormatError(
                        f"{path} is no journal of a conversion; start again with force, or remove it"
                    ) from None
        return found

    def journal(self, part: tuple[int, int] | None) -> Journal:
        """Return the journal of this process, to be added to."""
        return Journal(self.folder / ("done.jsonl" if part is None else "done-{}-of-{}.jsonl".format(*part)))

    def clear(self) -> None:
        """Remove journals and unfinished files; the locks stay."""
        for path in self.folder.glob("done*.jsonl"):
            path.unlink(missing_ok=True)
        self.clear_parts()

    def clear_parts(self) -> None:
        """Remove files that were being written when a process ended."""
        remove_stale_drafts(self.parts)

    def remove(self) -> None:
        """Remove the workplace: the conversion is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Journal:
    """Lines that are added when a tensor is done, and never changed."""

    def __init__(self, path: Path) -> None:
        if path.exists():  # a line that was cut off is cut off for good
            whole = path.read_bytes()
            kept = whole.rfind(b"\n") + 1
            if kept < len(whole):
                os.truncate(path, kept)
        self._file = path.open("ab", buffering=0)

    def add(self, record: dict[str, Any]) -> None:
        """Add a record, in one write."""
        self._file.write(json.dumps(record).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _take(handle: int, shared: bool, wait: bool, out: Path) -> None:
    """Take a lock, which the system lets go of when the process ends, however it ends."""
    if not HAS_FLOCK:
        _take_on_windows(handle, shared, wait, out)
        return
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise BlockingIOError(problem.errno, _BUSY, str(out)) from None


def _take_on_windows(handle: int, shared: bool, wait: bool, out: Path) -> None:
    from importlib import import_module

    msvcrt = import_module("msvcrt")
    if shared:  # these do not exist there; parts have locks of their own
        return
    try:
        msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError as problem:
        raise BlockingIOError(problem.errno, _BUSY, str(out)) from None
