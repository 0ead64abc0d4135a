# SPDX-License-Identifier: Apache-2.0
"""FlatBuffers, as much as tensor files need: a reader that trusts nothing, and a writer.

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


class Table:
    """A table of a flatbuffer. Every access is checked against the buffer, and costs no more than the buffer has.

    >>> table = Table.root(encode({0: Number("H", 7), 2: [1, 2, 3]}))
    >>> table.number(0, "H"), table.number(1, "I"), table.numbers(2)
    (7, 0, (1, 2, 3))
    """

    __slots__ = ("_at", "_data", "_end", "_fields")

    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self._data, self._at = data, at
        vtable = at - _read(data, "i", at, "a table")
        size, length = _read(data, "H", vtable, "a vtable"), _read(data, "H", vtable + 2, "a vtable")
        if size < 4 or size % 2 or vtable + size > len(data):
            raise FileFormatError(f"the vtable at {vtable} has {size} bytes, and {len(data) - vtable} are there")
        if length < _WORD or at + length > len(data):
            raise FileFormatError(f"the table at {at} has {length} bytes, and {len(data) - at} are there")
        self._end = at + length
        self._fields = (vtable + 4, (size - 4) // 2)

    @classmethod
    def root(cls, data: bytes | memoryview) -> Table:
        """Return the table that a buffer starts with.

        >>> Table.root(encode({})).number(0, "I")
        0
        """
        return cls(data, _read(data, "I", 0, "the root"))

    def _field(self, field: int, size: int) -> int | None:
        """Return where a field is, None if it is absent."""
        start, count = self._fields
        offset = _read(self._data, "H", start + 2 * field, "a vtable") if field < count else 0
        if offset and (offset < _WORD or self._at + offset + size > self._end):
            raise FileFormatError(f"field {field} of the table at {self._at} lies outside it, {offset} bytes on")
        return self._at + offset if offset else None

    def _target(self, field: int) -> int | None:
        at = self._field(field, _WORD)
        return None if at is None else at + _read(self._data, "I", at, "a distance")

    def number(self, field: int, form: str) -> int:
        """Return a number of a form of `struct`, 0 if it is absent.

        >>> Table.root(encode({0: Number("i", -1)})).number(0, "i")
        -1
        """
        at = self._field(field, struct.calcsize(form))
        return 0 if at is None else _read(self._data, form, at, "a number")

    def table(self, field: int) -> Table | None:
        """Return a table, None if it is absent.

        >>> Table.root(encode({0: {3: [5]}})).table(0).numbers(3)
        (5,)
        """
        at = self._target(field)
        return None if at is None else Table(self._data, at)

    def structure(self, field: int, form: str) -> tuple[int, ...] | None:
        """Return the numbers of a structure of a form of `struct`, None if it is absent.

        >>> Table.root(encode({0: Structure("QQ", (64, 128))})).structure(0, "QQ")
        (64, 128)
        """
        at = self._target(field)
        if at is None:
            return None
        _check(self._data, at, struct.calcsize(f"<{form}"), "a structure")
        return struct.unpack_from(f"<{form}", self._data, at)

    def _vector(self, field: int, most: int | None) -> tuple[int, int]:
        """Return where the entries of a vector start and how many there are."""
        at = self._target(field)
        if at is None:
            return 0, 0
        count = _read(self._data, "I", at, "a vector")
        _check(self._data, at + _WORD, count * _WORD, f"a vector of {count} entries")
        if most is not None and count > most:
            raise FileFormatError(
                f"field {field} of the table at {self._at} has {count} entries; at most {most} make sense"
            )
        return at + _WORD, count

    def numbers(self, field: int, most: int | None = None) -> tuple[int, ...]:
        """Return a vector of unsigned 32-bit numbers, empty if it is absent; more than `most` are an error.

        >>> Table.root(encode({0: [5, 7]})).numbers(0)
        (5, 7)
        """
        at, count = self._vector(field, most)
        return struct.unpack_from(f"<{count}I", self._data, at)

    def count(self, field: int, most: int | None = None) -> int:
        """Return the number of entries of a vector, 0 if it is absent; more than `most` are an error.

        >>> Table.root(encode({0: [{}, {}]})).count(0)
        2
        """
        return self._vector(field, most)[1]

    def entry(self, field: int, index: int) -> Table:
        """Return one table of a vector of tables.

        >>> Table.root(encode({0: [{}, {1: [6]}]})).entry(0, 1).numbers(1)
        (6,)
        """
        start, count = self._vector(field, None)
        if not 0 <= index < count:
            raise FileFormatError(f"field {field} of the table at {self._at} has {count} entries, and no entry {index}")
        at = start + index * _WORD
        return Table(self._data, at + _read(self._data, "I", at, "a distance"))


def _check(data: bytes | memoryview, at: int, size: int, what: str) -> None:
    if at < 0 or at + size > len(data):
        raise FileFormatError(f"{what} at {at} needs {size} bytes, outside the {len(data)} of the header")


def _read(data: bytes | memoryview, form: str, at: int, what: str) -> int:
    form = f"<{form}"
    _check(data, at, struct.calcsize(form), what)
    value: int = struct.unpack_from(form, data, at)[0]
    return value


@dataclass(frozen=True, slots=True)
class Number:
    """A number field, with its form as in `struct`.

    >>> Number("B", 3).value
    3
    """

    form: str
    value: int


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure that a field points to, aligned to 8 bytes.

    >>> Structure("QQ", (0, 64)).values
    (0, 64)
    """

    form: str
    values: tuple[int, ...]


# None stands for a field that is absent, and so does the number 0.
Field: TypeAlias = "Number | Structure | Mapping[int, Any] | Sequence[int] | Sequence[Mapping[int, Any]] | None"


def encode(root: Mapping[int, Field]) -> bytes:
    """Return the flatbuffer of a table: fields by number, tables as mappings, vectors as lists of integers or tables.

    >>> len(encode({0: Number("H", 7)}))
    18
    """
    writer = _Writer()
    writer.point(0, root)
    return bytes(writer.data)


class _Writer:
    """Writes parents before children, so that every distance is positive, as it must be."""

    def __init__(self) -> None:
        self.data = bytearray(_WORD)
        self.vtables: dict[bytes, int] = {}  # tables with the same fields share one

    def point(self, at: int, value: Any) -> None:
        """Write a value at the end, and its distance at a place."""
        struct.pack_into("<I", self.data, at, self._put(value) - at)

    def _put(self, value: Any) -> int:
        if isinstance(value, Mapping):
            return self._table(value)
        if isinstance(value, Structure):
            return self._append(struct.pack(f"<{value.form}", *value.values), 8)
        if value and isinstance(value[0], Mapping):
            start = self._append(struct.pack("<I", len(value)) + bytes(_WORD * len(value)), _WORD)
            for k, entry in enumerate(value):
                self.point(start + _WORD * (k + 1), entry)
            return start
        return self._append(struct.pack(f"<{len(value) + 1}I", len(value), *value), _WORD)

    def _table(self, fields: Mapping[int, Field]) -> int:
        present = {k: v for k, v in fields.items() if v is not None and not (isinstance(v, Number) and v.value == 0)}
        sizes = {k: struct.calcsize(v.form) if isinstance(v, Number) else _WORD for k, v in present.items()}
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
            if isinstance(value, Number):
                struct.pack_into(f"<{value.form}", self.data, table + offsets[k], value.value)
            else:
                self.point(table + offsets[k], value)
        return table

    def _append(self, piece: bytes, alignment: int) -> int:
        self.data += bytes(-len(self.data) % alignment)
        self.data += piece
        return len(self.data) - len(piece)
