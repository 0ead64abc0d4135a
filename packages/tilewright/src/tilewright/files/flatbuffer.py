# SPDX-License-Identifier: Apache-2.0
"""FlatBuffers for tensor files: a reader that validates everything, and a writer.

A table is a list of numbered fields that may each be absent. It starts with the distance back to its vtable, which
lists where each field is. Fields hold a number, or the distance to a table, a vector or a structure further on.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import FileFormatError

_WORD = 4  # bytes of a distance, of a vector's length, and of its entries here


class FlatTable:
    """A table of a flatbuffer. Every access is checked against the buffer.

    >>> table = FlatTable.root(encode_flatbuffer({0: FlatNumber("H", 7), 2: [1, 2, 3]}))
    >>> table.number(0, "H"), table.number(1, "I"), table.numbers(2)
    (7, 0, (1, 2, 3))
    """

    __slots__ = ("_at", "_data", "_end", "_fields")

    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self._data, self._at = data, at
        vtable = at - _read_integer(data, "i", at, "a table")
        size, length = _read_integer(data, "H", vtable, "a vtable"), _read_integer(data, "H", vtable + 2, "a vtable")
        if size < 4 or size % 2 or vtable + size > len(data):
            raise FileFormatError(f"the vtable at {vtable} needs {size} bytes, but {len(data) - vtable} remain")
        if length < _WORD or at + length > len(data):
            raise FileFormatError(f"the table at {at} needs {length} bytes, but {len(data) - at} remain")
        self._end = at + length
        self._fields = (vtable + 4, (size - 4) // 2)

    @classmethod
    def root(cls, data: bytes | memoryview) -> FlatTable:
        """Return the table that a buffer starts with.

        >>> FlatTable.root(encode_flatbuffer({})).number(0, "I")
        0
        """
        return cls(data, _read_integer(data, "I", 0, "the root"))

    def _field_offset(self, field: int, size: int) -> int | None:
        """Return where a field is, None if it is absent."""
        start, count = self._fields
        offset = _read_integer(self._data, "H", start + 2 * field, "a vtable") if field < count else 0
        if offset and (offset < _WORD or self._at + offset + size > self._end):
            raise FileFormatError(f"field {field} of the table at {self._at} is outside the table, at offset {offset}")
        return self._at + offset if offset else None

    def _referenced_offset(self, field: int) -> int | None:
        at = self._field_offset(field, _WORD)
        return None if at is None else at + _read_integer(self._data, "I", at, "a distance")

    def number(self, field: int, form: str) -> int:
        """Return a number of a form of `struct`, 0 if it is absent.

        >>> FlatTable.root(encode_flatbuffer({0: FlatNumber("i", -1)})).number(0, "i")
        -1
        """
        at = self._field_offset(field, struct.calcsize(form))
        return 0 if at is None else _read_integer(self._data, form, at, "a number")

    def table(self, field: int) -> FlatTable | None:
        """Return a table, None if it is absent.

        >>> FlatTable.root(encode_flatbuffer({0: {3: [5]}})).table(0).numbers(3)
        (5,)
        """
        at = self._referenced_offset(field)
        return None if at is None else FlatTable(self._data, at)

    def structure(self, field: int, form: str) -> tuple[int, ...] | None:
        """Return the numbers of a structure of a form of `struct`, None if it is absent.

        >>> FlatTable.root(encode_flatbuffer({0: FlatStruct("QQ", (64, 128))})).structure(0, "QQ")
        (64, 128)
        """
        at = self._referenced_offset(field)
        if at is None:
            return None
        _validate_range(self._data, at, struct.calcsize(f"<{form}"), "a structure")
        return struct.unpack_from(f"<{form}", self._data, at)

    def _vector_extent(self, field: int, max_count: int | None) -> tuple[int, int]:
        """Return the offset of the entries of a vector, and their number."""
        at = self._referenced_offset(field)
        if at is None:
            return 0, 0
        count = _read_integer(self._data, "I", at, "a vector")
        _validate_range(self._data, at + _WORD, count * _WORD, f"a vector of {count} entries")
        if max_count is not None and count > max_count:
            raise FileFormatError(
                f"field {field} of the table at {self._at} has {count} entries, more than {max_count}"
            )
        return at + _WORD, count

    def numbers(self, field: int, max_count: int | None = None) -> tuple[int, ...]:
        """Return a vector of unsigned 32-bit numbers, empty if it is absent; more than `max_count` are an error.

        >>> FlatTable.root(encode_flatbuffer({0: [5, 7]})).numbers(0)
        (5, 7)
        """
        at, count = self._vector_extent(field, max_count)
        return struct.unpack_from(f"<{count}I", self._data, at)

    def count(self, field: int, max_count: int | None = None) -> int:
        """Return the number of entries of a vector, 0 if it is absent; more than `max_count` are an error.

        >>> FlatTable.root(encode_flatbuffer({0: [{}, {}]})).count(0)
        2
        """
        return self._vector_extent(field, max_count)[1]

    def entry(self, field: int, index: int) -> FlatTable:
        """Return one table of a vector of tables.

        >>> FlatTable.root(encode_flatbuffer({0: [{}, {1: [6]}]})).entry(0, 1).numbers(1)
        (6,)
        """
        start, count = self._vector_extent(field, None)
        if not 0 <= index < count:
            raise FileFormatError(
                f"entry {index} of field {field} of the table at {self._at} does not exist: it has {count} entries"
            )
        at = start + index * _WORD
        return FlatTable(self._data, at + _read_integer(self._data, "I", at, "a distance"))


def _validate_range(data: bytes | memoryview, at: int, size: int, name: str) -> None:
    if at < 0 or at + size > len(data):
        raise FileFormatError(f"{name} at {at} needs {size} bytes, beyond the {len(data)} bytes of the header")


def _read_integer(data: bytes | memoryview, form: str, at: int, name: str) -> int:
    form = f"<{form}"
    _validate_range(data, at, struct.calcsize(form), name)
    value: int = struct.unpack_from(form, data, at)[0]
    return value


@dataclass(frozen=True, slots=True)
class FlatNumber:
    """A number field, with its form as in `struct`.

    >>> FlatNumber("B", 3).value
    3
    """

    form: str
    value: int


@dataclass(frozen=True, slots=True)
class FlatStruct:
    """A structure that a field points to, aligned to 8 bytes.

    >>> FlatStruct("QQ", (0, 64)).values
    (0, 64)
    """

    form: str
    values: tuple[int, ...]


# None stands for a field that is absent, and so does the number 0.
Field: TypeAlias = "FlatNumber | FlatStruct | Mapping[int, Any] | Sequence[int] | Sequence[Mapping[int, Any]] | None"


def encode_flatbuffer(root: Mapping[int, Field]) -> bytes:
    """Return the flatbuffer of a table: fields by number, tables as mappings, vectors as lists of integers or tables.

    >>> len(encode_flatbuffer({0: FlatNumber("H", 7)}))
    18
    """
    writer = _FlatbufferWriter()
    writer.write_reference(0, root)
    return bytes(writer.data)


class _FlatbufferWriter:
    """Writes parents before children, since references must be positive."""

    def __init__(self) -> None:
        self.data = bytearray(_WORD)
        self.vtables: dict[bytes, int] = {}  # tables with the same fields share one

    def write_reference(self, at: int, value: Any) -> None:
        """Append a value, and write its distance at offset `at`."""
        struct.pack_into("<I", self.data, at, self._write_value(value) - at)

    def _write_value(self, value: Any) -> int:
        if isinstance(value, Mapping):
            return self._write_table(value)
        if isinstance(value, FlatStruct):
            return self._append(struct.pack(f"<{value.form}", *value.values), 8)
        if value and isinstance(value[0], Mapping):
            start = self._append(struct.pack("<I", len(value)) + bytes(_WORD * len(value)), _WORD)
            for k, entry in enumerate(value):
                self.write_reference(start + _WORD * (k + 1), entry)
            return start
        return self._append(struct.pack(f"<{len(value) + 1}I", len(value), *value), _WORD)

    def _write_table(self, fields: Mapping[int, Field]) -> int:
        present = {
            k: v for k, v in fields.items() if v is not None and not (isinstance(v, FlatNumber) and v.value == 0)
        }
        sizes = {k: struct.calcsize(v.form) if isinstance(v, FlatNumber) else _WORD for k, v in present.items()}
        offsets, length = {}, _WORD
        for k in sorted(present, key=lambda k: -sizes[k]):  # the widest first, so that all are aligned
            offsets[k] = length
            length += sizes[k]
        slots = [offsets.get(k, 0) for k in range(max(present, default=-1) + 1)]
        vtable = struct.pack(f"<{len(slots) + 2}H", 4 + 2 * len(slots), length, *slots)
        if vtable not in self.vtables:
            self.vtables[vtable] = self._append(vtable, 2)
        table = self._append(bytes(length), _WORD)
        struct.pack_into("<i", self.data, table, table - self.vtables[vtable])
        for k, value in present.items():
            if isinstance(value, FlatNumber):
                struct.pack_into(f"<{value.form}", self.data, table + offsets[k], value.value)
            else:
                self.write_reference(table + offsets[k], value)
        return table

    def _append(self, piece: bytes, alignment: int) -> int:
        self.data += bytes(-len(self.data) % alignment)
        self.data += piece
        return len(self.data) - len(piece)
