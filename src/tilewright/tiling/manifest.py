# SPDX-License-Identifier: Apache-2.0
"""`Manifest`: which tasks of a plan are done, what they read and wrote, in a file that survives being killed.

The first line says what the work is: the compute, the sources and targets, and how they are cut. A line is added when a
task is done, and never changed. A last line that was cut off does not count; its task is simply done again, which does
no harm, since tasks write what they write. The checksum of what was written tells whether it is still there: a script
that is started again may well have made its target anew. That of what was read tells whether the sources are the same.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import write_file
from ..errors import TransferError
from ..files.source_file import SourceFile

_START = b'{"plan": '


class Checksums(NamedTuple):
    """The CRC-32 of all that a task read, and of all that it wrote.

    >>> Checksums(read=7, wrote=8).wrote
    8
    """

    read: int
    wrote: int


class Manifest:
    """The tasks that are done, by number, with the checksums of what they read and wrote, for one plan.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Manifest(Path(folder, "run.jsonl"), {"tiles": 4}) as manifest:
    ...         manifest.add(2, Checksums(1, 0xCBF43926))
    ...     with Manifest(Path(folder, "run.jsonl"), {"tiles": 4}) as again:
    ...         print(again.done)
    {2: Checksums(read=1, wrote=3421780262)}
    """

    def __init__(self, path: str | Path, plan: dict[str, Any]) -> None:
        self.path = Path(path)
        self.done: dict[int, Checksums] = {}
        plan = json.loads(json.dumps(plan))  # as it will be read back
        whole = self._read(plan) if self.path.exists() else b""
        if not whole:
            whole = json.dumps({"plan": plan}).encode() + b"\n"
        # what was cut off is cut off for good, so that the next line starts on a line of its own
        write_file(self.path, whole)
        self._file = self.path.open("ab", buffering=0)

    def _read(self, plan: dict[str, Any]) -> bytes:
        """Return the whole lines of the file, and take what they say."""
        file = SourceFile(self.path)  # a pipe or a folder is refused
        text = file.read(0, file.size)
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines and text[: len(_START)] == _START[: len(text)]:
            return b""
        try:
            found = json.loads(lines[0])["plan"]
            records = [json.loads(line) for line in lines[1:]]
            self.done = {
                int(record["done"]): Checksums(int(record["read"]), int(record["wrote"])) for record in records
            }
            others = [key for key in {**plan, **found} if found.get(key) != plan.get(key)]
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise TransferError(
                f"{self.path} is not a manifest of a tile plan, or one of another version; give another path"
            ) from None
        if others:
            changes = [_change(key, found.get(key), plan.get(key)) for key in others]
            raise TransferError(
                f"{self.path} belongs to other work: {'; '.join(changes)}. Remove it to start from the beginning, or"
                " give another path"
            )
        return whole

    def add(self, number: int, checksums: Checksums) -> None:
        """Record that a task is done, and the CRC-32 of what it read and of what it wrote.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Manifest(Path(folder, "m"), {}) as manifest:
        ...     manifest.add(7, Checksums(0, 0))
        ...     manifest.done
        {7: Checksums(read=0, wrote=0)}
        """
        self.done[number] = checksums
        line = json.dumps({"done": number, **checksums._asdict()}).encode() + b"\n"
        while line:  # a disk that is full takes a part
            line = line[self._file.write(line) or 0 :]

    def close(self) -> None:
        """Write everything to the disk."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> Manifest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _change(what: str, before: Any, now: Any) -> str:
    """Return how one thing differs, no longer than what differs in it."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        before, now = ({key: each.get(key) for key in keys} for each in (before, now))
    return f"{what} was {before} and is {now}"
