# SPDX-License-Identifier: Apache-2.0
"""`JsonStream`: a large JSON file read from front to back, in memory that its size does not matter for.

The reader walks into the objects and arrays that are large, and takes the small values in them whole. The rules are
those of `strict_json`: UTF-8, no repeated keys in a value, no NaN.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from .._json import strict_decoder
from ..errors import FileFormatError
from .source import FilePath, SourceFile, as_source_file

CHUNK_BYTES = 1 << 18
MAX_VALUE_CHARACTERS = 1 << 26  # of a value that is taken whole
MAX_DEPTH = 200  # of objects and arrays that are walked into
_FEW_CHARACTERS = 1 << 12  # of a window; with fewer, more is read before items are taken
_PLAIN_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_TOKEN = 16  # an error this close to the end of what was read may be due to the end


class JsonStream:
    """A JSON file that is read from front to back, from a byte `offset` where a value begins.

    `walk_object` and `walk_array` go into what is large; the value at each key or index is taken whole by
    `read_value`, or walked into in turn, or passed over. `name` is what messages call the file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.json")
    ...     _ = path.write_text('{"version": 1, "nodes": [{"id": 0}, {"id": 1}], "rest": [[]]}')
    ...     stream = JsonStream(path, "the report")
    ...     for key in stream.walk_object():
    ...         if key == "nodes":
    ...             print([stream.read_value() for _ in stream.walk_array()])
    [{'id': 0}, {'id': 1}]
    """

    def __init__(self, file: FilePath | SourceFile, name: str, offset: int = 0) -> None:
        self.file, self.name = as_source_file(file), name
        self._decoder = strict_decoder(name)
        self._read_end = offset  # bytes of the file that were read
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._window, self._at = "", 0  # decoded text, and where the next token begins in it
        self._window_byte = offset  # where the window begins in the file
        self._passed = 0  # characters before the window
        self._depth = 0
        self._single_until = 0  # characters up to which items are taken one by one

    @property
    def byte(self) -> int:
        """Return the offset in the file of the next token.

        >>> JsonStream(__file__, "the text").byte
        0
        """
        self._skip_space()
        return self._window_byte + _count_bytes(self._window[: self._at])

    @property
    def at_end(self) -> bool:
        """Return whether nothing but white space is left.

        >>> JsonStream(__file__, "the text").at_end
        False
        """
        return not self._peek()

    def kind(self) -> str:
        """Return "object", "array", "value" or "end", for what comes next.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text(" []")
        ...     JsonStream(path, "the list").kind()
        'array'
        """
        return {"{": "object", "[": "array", "": "end"}.get(self._peek(), "value")

    def walk_object(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; a value that is not taken is passed over.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text('{"a": 1, "b": 2}')
        ...     stream = JsonStream(path, "the object")
        ...     {key: stream.read_value() for key in stream.walk_object()}
        {'a': 1, 'b': 2}
        """
        for _ in self._walk("{", "}"):
            if self._peek() != '"':
                raise self._error("expected a key in quotes")
            key = self._decode()
            self._expect(":")
            self._skip_space()
            before = self._passed + self._at
            yield key
            if self._passed + self._at == before:
                self.skip()

    def walk_array(self) -> Iterator[int]:
        """Yield the indices of the array that comes next; an item that is not taken is passed over.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text("[5, 6]")
        ...     stream = JsonStream(path, "the list")
        ...     [(index, stream.read_value()) for index in stream.walk_array()]
        [(0, 5), (1, 6)]
        """
        return self._walk("[", "]")

    def read_items(self) -> Iterator[list[Any]]:
        """Yield the items of the array that comes next, whole and many at a time.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text('[{"a": 1}, {"a": 2}]')
        ...     list(JsonStream(path, "the list").read_items())
        [[{'a': 1}, {'a': 2}]]
        """
        for _ in self._walk("[", "]"):
            items = self._decode_items(self._decoder)
            yield items or [self.read_value()]

    def _decode_items(self, decoder: json.JSONDecoder) -> list[Any]:
        """Return the items from here to the last that is complete in the window, or to the end of the array."""
        if self._passed + self._at < self._single_until:
            return []
        if len(self._window) - self._at < _FEW_CHARACTERS:
            self._read_more()
        first = self._peek()
        closing = {"{": "}", "[": "]"}.get(first)
        last = self._window.rfind(",", self._at) if closing is None else self._window.rfind(closing, self._at) + 1
        try:
            items, end = decoder.raw_decode(f"[{self._window[self._at : max(last, self._at)]}]")
        except (ValueError, RecursionError):  # found again where it stands, one item at a time
            self._single_until = self._passed + len(self._window)
            return []
        if not items:
            return []
        self._at += end - 2
        return list(items)

    def read_value(self) -> Any:
        """Return the value that comes next, whole.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text('{"a": [1, 2]}')
        ...     JsonStream(path, "the object").read_value()
        {'a': [1, 2]}
        """
        self._skip_space()
        return self._decode()

    def skip(self) -> None:
        """Pass over the value that comes next, however large.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.json")
        ...     _ = path.write_text("[[1, [2]], 3]")
        ...     stream = JsonStream(path, "the list")
        ...     stream.skip()
        ...     stream.at_end
        True
        """
        walks: list[tuple[str, Iterator[Any]]] = []
        while True:
            # What fits the window is passed over in one step; only what is larger is walked into.
            in_array = bool(walks) and walks[-1][0] == "array"
            if not (in_array and self._decode_items(_PLAIN_DECODER)) and not self._decode_in_window():
                walks.append((self.kind(), self._open_walk()))
            while walks and next(walks[-1][1], None) is None:
                walks.pop()
            if not walks:
                return

    def _open_walk(self) -> Iterator[Any]:
        """Return the walk into the container that comes next, or over the value that is none."""
        kind = self.kind()
        if kind == "object":
            return self.walk_object()
        if kind == "array":
            return self.walk_array()
        self._decode()
        return iter(())

    def _decode_in_window(self) -> bool:
        """Pass over the container that comes next if it ends in the window, and return whether it did."""
        if self._peek() not in ("{", "["):
            return False
        try:
            _, end = _PLAIN_DECODER.raw_decode(self._window, self._at)
        except (ValueError, RecursionError):  # found again where it stands, or not yet complete
            return False
        self._at = end
        return True

    def _walk(self, opening: str, closing: str) -> Iterator[int]:
        """Yield the index of each member of the container that comes next."""
        self._expect(opening)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} objects and arrays are nested")
        index = 0
        while self._peek() != closing:
            if index:
                self._expect(",")
                if self._peek() == closing:
                    raise self._error(f"expected a value after a comma, got {closing!r}")
            before = self._passed + self._at
            yield index
            if self._passed + self._at == before:
                self.skip()
            index += 1
        self._expect(closing)
        self._depth -= 1

    def _decode(self) -> Any:
        """Return the value at the start of the window's rest, of which more is read until it ends there."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._window, self._at)
            except FileFormatError as problem:
                raise self._error(str(problem)) from None
            except RecursionError:
                raise self._error("a value is nested too deeply") from None
            except json.JSONDecodeError as problem:
                open_end = problem.pos > len(self._window) - _LONGEST_TOKEN or problem.msg.startswith("Unterminated")
                ahead = problem.pos - self._at  # reading on moves the window
                if not (open_end and self._read_more()):
                    raise self._error(problem.msg, self._at + ahead) from None
            except ValueError as problem:  # a number with thousands of digits
                raise self._error(str(problem)) from None
            else:
                # A number near the end of the window may go on: 1 as 1.5, 1e+9 or 12.
                begun = self._window[end : end + 1] in (".", "e", "E") and len(self._window) - end < _LONGEST_TOKEN
                ahead = end - self._at
                if (end < len(self._window) and not begun) or not self._read_more():
                    self._at += ahead
                    return value

    def _peek(self) -> str:
        """Return the character of the next token, or nothing at the end of the file."""
        self._skip_space()
        return self._window[self._at : self._at + 1]

    def _skip_space(self) -> None:
        while True:
            space = _SPACE.match(self._window, self._at)
            self._at = self._at if space is None else space.end()
            if self._at < len(self._window) or not self._read_more():
                return

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"expected {character!r}, got {self._peek()!r}" if self._peek() else "the file ends")
        self._at += 1

    def _read_more(self) -> bool:
        """Add text to the window, at least as much as its unread rest, and return whether there was any."""
        size = min(max(CHUNK_BYTES, len(self._window) - self._at), self.file.size - self._read_end)
        if len(self._window) - self._at > MAX_VALUE_CHARACTERS:
            raise self._error(f"a value has more than {MAX_VALUE_CHARACTERS} characters")
        data = self.file.read(self._read_end, size) if size > 0 else b""
        try:
            text = self._utf8.decode(data, final=self._read_end + size >= self.file.size)
        except UnicodeDecodeError as problem:
            # what was carried over from the bytes before is part of what the decoder saw
            start = self._read_end - (len(problem.object) - len(data)) + problem.start
            raise FileFormatError(f"{self.name} is not UTF-8: {problem.reason} at byte {start}") from None
        self._window_byte += _count_bytes(self._window[: self._at])
        self._passed += self._at
        self._window, self._at = self._window[self._at :] + text, 0
        self._read_end += len(data)
        return bool(data)

    def _error(self, reason: str, at: int | None = None) -> FileFormatError:
        """Return the error that reading failed at a place of the window."""
        byte = self._window_byte + _count_bytes(self._window[: self._at if at is None else at])
        return FileFormatError(f"{self.name} is not readable at byte {byte} of {self.file.size}: {reason}")


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
