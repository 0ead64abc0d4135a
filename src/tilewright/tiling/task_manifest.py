# SPDX-License-Identifier: Apache-2.0
"""`TaskManifest`: the finished tasks of a plan, in a file that survives a kill.

The first line identifies the work: the compute, the sources and targets, and their tilers. A line is added when a task
finishes, and never changed. An incomplete last line is ignored, and its task runs again, which is harmless. The
checksum of the written bytes tells whether the result is still there: a script that is started again may have made its
target anew. The checksum of the read bytes tells whether the sources are the same.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import write_file
from ..errors import TransferError
from ..files.source_file import SourceFile

_FIRST_BYTES = b'{"plan": '


class Checksums(NamedTuple):
    """The CRC-32 of the bytes that a task read, and of those it wrote.

    >>> Checksums(read=7, wrote=8).wrote
    8
    """

    read: int
    wrote: int


class TaskManifest:
    """The finished tasks of a plan by number, with their checksums.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TaskManifest(Path(folder, "run.jsonl"), {"tiles": 4}) as manifest:
    ...         manifest.add(2, Checksums(1, 0xCBF43926))
    ...     with TaskManifest(Path(folder, "run.jsonl"), {"tiles": 4}) as again:
    ...         print(again.done)
    {2: Checksums(read=1, wrote=3421780262)}
    """

    def __init__(self, path: str | Path, plan: dict[str, Any]) -> None:
        self.path = Path(path)
        self.done: dict[int, Checksums] = {}
        plan = json.loads(json.dumps(plan))  # as it will be read back
        lines = self._read(plan) if self.path.exists() else b""
        if not lines:
            lines = json.dumps({"plan": plan}).encode() + b"\n"
        # an incomplete last line is removed, so that the next line starts on its own
        write_file(self.path, lines)
        self._file = self.path.open("ab", buffering=0)

    def _read(self, plan: dict[str, Any]) -> bytes:
        """Return the complete lines of the file, and fill `done` from them."""
        file = SourceFile(self.path)  # rejects a pipe or a folder
        text = file.read(0, file.size)
        complete = text[: text.rfind(b"\n") + 1]
        lines = complete.splitlines()
        if not lines and text[: len(_FIRST_BYTES)] == _FIRST_BYTES[: len(text)]:
            return b""
        try:
            recorded = json.loads(lines[0])["plan"]
            records = [json.loads(line) for line in lines[1:]]
            self.done = {
                int(record["done"]): Checksums(int(record["read"]), int(record["wrote"])) for record in records
            }
            changed = [key for key in {**plan, **recorded} if recorded.get(key) != plan.get(key)]
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise TransferError(
                f"{self.path} is not a tile plan manifest, or is from another version; give another path"
            ) from None
        if changed:
            changes = [_describe_change(key, recorded.get(key), plan.get(key)) for key in changed]
            raise TransferError(
                f"{self.path} belongs to another plan: {'; '.join(changes)}. Remove it to start over, or give another"
                " path"
            )
        return complete

    def add(self, number: int, checksums: Checksums) -> None:
        """Record that task `number` is done, with its checksums.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TaskManifest(Path(folder, "m"), {}) as manifest:
        ...     manifest.add(7, Checksums(0, 0))
        ...     manifest.done
        {7: Checksums(read=0, wrote=0)}
        """
        self.done[number] = checksums
        line = json.dumps({"done": number, **checksums._asdict()}).encode() + b"\n"
        while line:  # a write may be partial
            line = line[self._file.write(line) or 0 :]

    def close(self) -> None:
        """Flush the file to disk and close it."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> TaskManifest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _describe_change(name: str, recorded: Any, current: Any) -> str:
    """Return a text with the entries of a value that differ."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        keys = [key for key in {**recorded, **current} if recorded.get(key) != current.get(key)]
        recorded, current = ({key: value.get(key) for key in keys} for value in (recorded, current))
    return f"{name} was {recorded} and is now {current}"
