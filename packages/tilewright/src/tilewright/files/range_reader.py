# SPDX-License-Identifier: Apache-2.0
"""`RangeReader`: a range of a file that is read from front to back in small pieces."""

from __future__ import annotations

from ..errors import FileFormatError
from .source_file import SourceFile

_CHUNK = 1 << 16  # bytes that are read at a time
_MAX_LINE_BYTES = 1000


class RangeReader:
    """The bytes from `start` to `end` of a file, from front to back; `name` is what messages call them.

    >>> source = RangeReader(SourceFile(__file__), 0, 100, "the header")
    >>> source.take(6), source.position
    (b'# SPDX', 6)
    """

    def __init__(self, file: SourceFile, start: int, end: int, name: str) -> None:
        self.position, self.end, self._file, self._name = start, end, file, name
        self._data, self._begin = b"", start  # the bytes from `_begin` on

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes.

        >>> RangeReader(SourceFile(__file__), 2, 100, "the header").take(4)
        b'SPDX'
        """
        if size > self.end - self.position:
            raise FileFormatError(
                f"{self._name} ends before the {size} bytes that it announces at byte {self.position}"
            )
        at = self.position - self._begin
        if at + size > len(self._data):
            count = min(max(size, _CHUNK), self.end - self.position)
            self._data, self._begin, at = self._file.read(self.position, count), self.position, 0
        self.position += size
        return self._data[at : at + size]

    def skip(self, size: int) -> None:
        """Move over the next `size` bytes, which are not read.

        >>> source = RangeReader(SourceFile(__file__), 0, 100, "the header")
        >>> source.skip(2)
        >>> source.take(4)
        b'SPDX'
        """
        if size > self.end - self.position:
            self.take(size)  # raises
        self.position += size

    def take_integer(self, size: int) -> int:
        """Return the next `size` bytes as an unsigned little-endian integer.

        >>> RangeReader(SourceFile(__file__), 0, 100, "the header").take_integer(1)
        35
        """
        return int.from_bytes(self.take(size), "little")

    def take_line(self) -> bytes:
        """Return the bytes up to the end of the line.

        >>> RangeReader(SourceFile(__file__), 0, 100, "the header").take_line()[:6]
        b'# SPDX'
        """
        at = self.position - self._begin
        stop = self._data.find(b"\n", at, at + _MAX_LINE_BYTES)
        if stop >= 0:
            self.position += stop + 1 - at
            return self._data[at:stop]
        result = bytearray()  # it goes on behind what has been read
        while (byte := self.take(1)) != b"\n":
            result += byte
            if len(result) > _MAX_LINE_BYTES:
                raise FileFormatError(f"{self._name} has a line of more than {_MAX_LINE_BYTES} bytes")
        return bytes(result)
