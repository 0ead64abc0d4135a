# SPDX-License-Identifier: Apache-2.0
"""`Manifest`: which tasks of a plan are done and what they wrote, in a file that survives being killed.

A line is added when a task is done, and never changed. A last line that was cut off does not count; its task is simply
done again, which does no harm, since tasks write what they write. The checksum of what was written tells whether it is
still there: a script that is started again may well have made its target anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import TransferError

_START = b'{"plan": '


class Manifest:
    """The tasks that are done, by number, with the checksums of what they wrote, for one plan.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Manifest(Path(folder, "run.jsonl"), {"tiles": 4}) as manifest:
    ...         manifest.add(2, 0xCBF43926)
    ...     with Manifest(Path(folder, "run.jsonl"), {"tiles": 4}) as again:
    ...         print(again.done)
    {2: 3421780262}
    """

    def __init__(self, path: str | Path, plan: dict[str, Any]) -> None:
        self.path = Path(path)
        self.done: dict[int, int] = {}
        plan = json.loads(json.dumps(plan))  # as it will be read back
        whole = self._read(plan) if self.path.exists() else b""
        if not whole:
            whole = json.dumps({"plan": plan}).encode() + b"\n"
        # what was cut off is cut off for good, so that the next line starts on a line of its own
        draft = self.path.with_name(self.path.name + ".part")
        draft.write_bytes(whole)
        draft.replace(self.path)
        self._file = self.path.open("ab", buffering=0)

    def _read(self, plan: dict[str, Any]) -> bytes:
        """Return the whole lines of the file, and take what they say."""
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines and text[: len(_START)] == _START[: len(text)]:
            return b""
        try:
            found = json.loads(lines[0])["plan"]
            records = [json.loads(line) for line in lines[1:]]
            self.done = {int(record["done"]): int(record["crc32"]) for record in records}
            other = [key for key in plan if found[key] != plan[key]]
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
            raise TransferError(f"{self.path} is not a manifest of a tile plan; give another path") from None
        if other:
            what = other[0]
            raise TransferError(
                f"{self.path} belongs to another plan: {what} was {found[what]}, and is {plan[what]}; remove it, or"
                " give another path"
            )
        return whole

    def add(self, number: int, checksum: int) -> None:
        """Record that a task is done, and the CRC-32 of what it wrote.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Manifest(Path(folder, "m"), {}) as manifest:
        ...     manifest.add(7, 0)
        ...     manifest.done
        {7: 0}
        """
        self.done[number] = checksum
        self._file.write(json.dumps({"done": number, "crc32": checksum}).encode() + b"\n")

    def close(self) -> None:
        """Write everything to the disk."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> Manifest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
