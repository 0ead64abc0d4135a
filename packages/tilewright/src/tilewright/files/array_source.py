# SPDX-License-Identifier: Apache-2.0
"""`ArraySource`: an array in memory in the place of a file, so that arrays are converted as stored tensors are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .file_names import encode_file_name
from .source_file import ByteArray, SourceFile


class ArraySource(SourceFile):
    """The bytes of an array, read like those of a file; its `path` is by default the encoded name of its tensor.

    >>> ArraySource("w", np.arange(4, dtype=np.uint8)).read(1, 2)
    b'\\x01\\x02'
    """

    __slots__ = ("_bytes",)

    def __init__(self, name: str, array: np.ndarray[Any, Any], path: Path | None = None) -> None:
        self.path = Path(encode_file_name(name)) if path is None else path
        self._map = None
        self._bytes: ByteArray = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.size = self._bytes.size
        # stands for the time of a file: other content must not be taken for what an earlier run has converted
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
