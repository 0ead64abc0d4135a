# SPDX-License-Identifier: Apache-2.0
"""The wire format of protocol buffers: the fields of a message, one after the other, without its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FileFormatError
from .range_reader import RangeReader
from .source_file import SourceFile

_MAX_VARINT_BYTES = 10
_MAX_FIELDS = 10_000_000
_CHUNK = 1 << 20  # bytes that are decoded at a time: their shifts take many times as much
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The wire types; groups are not among them, which no one writes any more."""


class WireField(NamedTuple):
    """A field of a message: its `number`, its wire type, its integer value, and the range of its bytes in the file.

    >>> WireField(1, VARINT, 7, 0, 2).value
    7
    """

    number: int
    wire_type: int
    value: int
    start: int
    end: int


def read_fields(file: SourceFile, start: int, end: int, name: str) -> Iterator[WireField]:
    """Yield the fields of the message from `start` to `end` of a file; what they hold is not read.

    `name` is what messages of errors call it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as draft:
    ...     _ = draft.write(b"\\x08\\x96\\x01\\x12\\x02hi")
    ...     draft.flush()
    ...     [(each.number, each.value, each.start) for each in read_fields(SourceFile(draft.name), 0, 7, "x")]
    [(1, 150, 1), (2, 2, 5)]
    """
    source = RangeReader(file, start, end, name)
    for _ in range(_MAX_FIELDS):
        if source.position == end:
            return
        number, wire_type = divmod(_take_varint(source, name), 8)
        if not 0 < number < 1 << 29:
            raise FileFormatError(f"{name} has field number {number}; it is not a protocol buffer")
        begin = source.position
        if wire_type == VARINT:
            yield WireField(number, wire_type, _take_varint(source, name), begin, source.position)
        elif wire_type == BYTES:
            size = _take_varint(source, name)
            begin = source.position
            source.skip(size)
            yield WireField(number, wire_type, size, begin, source.position)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
            yield WireField(number, wire_type, source.take_integer(size), begin, source.position)
        else:
            raise FileFormatError(f"{name} has a field of wire type {wire_type}; it is not a protocol buffer")
    raise FileFormatError(f"{name} has more than {_MAX_FIELDS} fields")


def _take_varint(source: RangeReader, name: str) -> int:
    result = 0
    for k in range(_MAX_VARINT_BYTES):
        byte = source.take_integer(1)
        result |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            if result >= 1 << 64:
                break
            return result
    raise FileFormatError(f"{name} has an integer of more than 64 bits; it is not a protocol buffer")


def decode_varints(data: bytes, name: str) -> NDArray[np.uint64]:
    """Return the integers of a packed field; negative ones have 64 bits.

    >>> decode_varints(b"\\x01\\x96\\x01", "x").tolist()
    [1, 150]
    """
    result, rest = [np.zeros(0, np.uint64)], b""
    for at in range(0, len(data), _CHUNK):
        block = rest + data[at : at + _CHUNK]
        parts = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(parts < 0x80)
        whole = int(ends[-1]) + 1 if len(ends) else 0
        rest = block[whole:]
        if len(rest) >= _MAX_VARINT_BYTES:
            raise FileFormatError(f"{name} has an integer of more than 64 bits")
        if whole:
            result.append(_decode_block(parts[:whole], ends, name))
    if rest:
        raise FileFormatError(f"{name} ends within an integer")
    return np.concatenate(result)


def _decode_block(parts: NDArray[np.uint8], ends: NDArray[np.intp], name: str) -> NDArray[np.uint64]:
    """Return the integers in some bytes; `ends` are the indices of their last bytes."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if int(lengths.max()) > _MAX_VARINT_BYTES or bool(((lengths == _MAX_VARINT_BYTES) & (parts[ends] > 1)).any()):
        raise FileFormatError(f"{name} has an integer of more than 64 bits")
    shifts = (np.arange(len(parts)) - np.repeat(starts, lengths)) * 7
    bits = (parts & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
    result: NDArray[np.uint64] = np.add.reduceat(bits, starts)
    return result
