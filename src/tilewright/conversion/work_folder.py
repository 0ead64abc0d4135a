# SPDX-License-Identifier: Apache-2.0
"""The work folder of a conversion: a hidden directory with locks, unfinished files, and a journal of finished tensors.

It is beside the result, on the same disk, so that a finished file is renamed in one step. It is removed when the
conversion is complete; as long as it exists, the result is not complete.
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
_BUSY_MESSAGE = "another process is converting to this output; wait for it, or choose another output"


class WorkFolder:
    """The hidden folder of a conversion to `out`, a directory or a `single` file.

    >>> (
    ...     WorkFolder(Path("out"), single=False).path.as_posix(),
    ...     WorkFolder(Path("o.safetensors"), single=True).path.name,
    ... )
    ('out/.tilewright', '.o.safetensors.tilewright')
    """

    def __init__(self, out: Path, single: bool) -> None:
        self.out = out
        self.path = out.with_name(f".{out.name}{NAME}") if single else out / NAME
        self.drafts = self.path / "parts"

    @contextmanager
    def lock(self, part: tuple[int, int] | None = None) -> Iterator[None]:
        """Hold the lock of the conversion: exclusively, or shared with the other parts of the same conversion.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, WorkFolder(Path(folder), single=False).lock():
        ...     Path(folder, ".tilewright", "lock").exists()
        True
        """
        with self._lock("lock", shared=part is not None):
            if part is None:
                try:
                    yield
                finally:
                    self._remove_if_unused()
                return
            with self._lock("part-{}-of-{}.lock".format(*part), shared=False):
                yield

    def _remove_if_unused(self) -> None:
        """Remove the folder if no tensor is finished."""
        if not self.has_records:
            self.remove()
            with suppress(OSError):
                self.path.parent.rmdir()  # which succeeds only if it is empty

    @contextmanager
    def finish_lock(self) -> Iterator[None]:
        """Hold the lock for finishing the conversion, waiting for others that finish."""
        with self._lock("finish.lock", shared=False, wait=True):
            yield

    @contextmanager
    def _lock(self, name: str, shared: bool, wait: bool = False) -> Iterator[None]:
        path = self.path / name
        while True:
            handle = self._open_lock_file(path)
            try:
                _acquire_lock(handle, shared, wait, self.out)
                if _is_same_file(handle, path):  # otherwise the folder was removed meanwhile
                    yield
                    return
            finally:
                os.close(handle)  # also releases the lock

    def _open_lock_file(self, path: Path) -> int:
        while True:
            for each in (self.path, self.drafts):
                if each.is_symlink():  # it could point anywhere
                    raise FileExistsError(errno.EEXIST, "is a link; remove it, or choose another output", str(each))
            self.drafts.mkdir(parents=True, exist_ok=True)
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
            except FileNotFoundError:
                continue  # another process finished and removed the folder

    @property
    def has_records(self) -> bool:
        """Return whether a tensor is finished.

        >>> WorkFolder(Path("nowhere"), single=False).has_records
        False
        """
        return any(path.stat().st_size for path in self.path.glob("done*.jsonl"))

    def records(self) -> dict[str, Any]:
        """Return the records of all journals by key; an incomplete last line is ignored.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     WorkFolder(Path(folder), single=False).records()
        {}
        """
        result: dict[str, Any] = {}
        for path in sorted(self.path.glob("done*.jsonl")):
            for line in path.read_bytes().split(b"\n")[:-1]:
                try:
                    record = parse_json(line, "a line of the journal")
                    result[record["key"]] = record
                except (FileFormatError, KeyError, TypeError):
                    raise FileFormatError(
                        f"{path} is not a conversion journal; start over with force, or remove it"
                    ) from None
        return result

    def journal(self, part: tuple[int, int] | None) -> Journal:
        """Return the journal of this process, open for appending."""
        return Journal(self.path / ("done.jsonl" if part is None else "done-{}-of-{}.jsonl".format(*part)))

    def clear(self) -> None:
        """Remove journals and drafts; the locks stay."""
        for path in self.path.glob("done*.jsonl"):
            path.unlink(missing_ok=True)
        self.remove_drafts()

    def remove_drafts(self) -> None:
        """Remove drafts of processes that ended."""
        remove_stale_drafts(self.drafts)

    def remove(self) -> None:
        """Remove the folder: the conversion is complete."""
        shutil.rmtree(self.path, ignore_errors=True)


class Journal:
    """One line per finished tensor, never changed."""

    def __init__(self, path: Path) -> None:
        if path.exists():  # remove an incomplete last line
            data = path.read_bytes()
            complete = data.rfind(b"\n") + 1
            if complete < len(data):
                os.truncate(path, complete)
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


def _is_same_file(handle: int, path: Path) -> bool:
    """Return whether an open file is the file at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _acquire_lock(handle: int, shared: bool, wait: bool, out: Path) -> None:
    """Acquire a lock, which the system releases when the process ends."""
    if not HAS_FLOCK:
        _acquire_lock_on_windows(handle, shared, wait, out)
        return
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise BlockingIOError(problem.errno, _BUSY_MESSAGE, str(out)) from None


def _acquire_lock_on_windows(handle: int, shared: bool, wait: bool, out: Path) -> None:
    from importlib import import_module

    msvcrt = import_module("msvcrt")
    if shared:  # not available there; parts have their own locks
        return
    try:
        msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError as problem:
        raise BlockingIOError(problem.errno, _BUSY_MESSAGE, str(out)) from None
