# SPDX-License-Identifier: Apache-2.0
"""ONNX models: the initialisers of the graph, in the file itself or beside it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FileFormatError
from ..formats import SCALAR_FORMATS, ScalarFormat
from .source import ArraySource, RangeReader, SourceFile
from .stored_tensor import Content, StoredTensor

# The wire format of protocol buffers: the fields of a message, one after the other, without its schema.

_MAX_VARINT_BYTES = 10
_MAX_FIELDS = 10_000_000
_CHUNK = 1 << 20  # bytes that are decoded at a time: their shifts take many times as much
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The wire types, without groups, which are obsolete."""


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
    """Yield the fields of the message from `start` to `end` of a file; their contents are not read.

    `name` is what messages of errors call it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as draft:
    ...     _ = draft.write(b"\\x08\\x96\\x01\\x12\\x02hi")
    ...     draft.flush()
    ...     [(field.number, field.value, field.start) for field in read_fields(SourceFile(draft.name), 0, 7, "x")]
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
    return np.add.reduceat(bits, starts)


_GRAPH = 7  # the field of a model
_INITIALIZER, _SPARSE_INITIALIZER = 5, 15  # fields of a graph
_DIMS, _DATA_TYPE, _SEGMENT, _NAME, _RAW_DATA, _EXTERNAL_DATA, _LOCATION = 1, 2, 3, 8, 9, 13, 14  # of a tensor
_FLOAT_DATA, _INT32_DATA, _INT64_DATA, _DOUBLE_DATA, _UINT64_DATA = 4, 5, 7, 10, 11
_EXTERNAL = 1  # the location of data beside the file
_STRING = 8  # the type of texts, which are not numbers
_MAX_TEXT_BYTES = 4096
_MAX_DIMENSIONS = 64
_MAX_EXTERNAL_ENTRIES = 16
_MAX_INITIALIZERS = 200_000
_MAX_UNPACKED = 100_000  # an obsolete form

# The name of a type, the bits of an element, its number format, and the field of values that are not raw.
_Kind = tuple[str, int, "ScalarFormat | None", int]


def _scalar(name: str, field: int, known_as: str | None = None) -> _Kind:
    element = SCALAR_FORMATS[name]
    return known_as or name, element.bits, element, field


_KINDS: dict[int, _Kind] = {
    1: _scalar("float32", _FLOAT_DATA),
    2: _scalar("uint8", _INT32_DATA),
    3: _scalar("int8", _INT32_DATA),
    4: _scalar("uint16", _INT32_DATA),
    5: _scalar("int16", _INT32_DATA),
    6: _scalar("int32", _INT32_DATA),
    7: _scalar("int64", _INT64_DATA),
    9: _scalar("bool", _INT32_DATA),
    10: _scalar("float16", _INT32_DATA),
    11: _scalar("float64", _DOUBLE_DATA),
    12: _scalar("uint32", _UINT64_DATA),
    13: _scalar("uint64", _UINT64_DATA),
    14: ("complex64", 64, None, _FLOAT_DATA),
    15: ("complex128", 128, None, _DOUBLE_DATA),
    16: _scalar("bfloat16", _INT32_DATA),
    17: _scalar("float8_e4m3", _INT32_DATA, "float8e4m3fn"),
    18: ("float8e4m3fnuz", 8, None, _INT32_DATA),
    19: _scalar("float8_e5m2", _INT32_DATA, "float8e5m2"),
    20: ("float8e5m2fnuz", 8, None, _INT32_DATA),
    21: ("uint4", 4, None, _INT32_DATA),
    22: ("int4", 4, None, _INT32_DATA),
    23: ("float4e2m1", 4, None, _INT32_DATA),
    24: ("float8e8m0", 8, None, _INT32_DATA),
    25: ("uint2", 2, None, _INT32_DATA),
    26: ("int2", 2, None, _INT32_DATA),
    27: ("float6e2m3", 6, None, _INT32_DATA),
    28: ("float6e3m2", 6, None, _INT32_DATA),
}


def read_onnx(file: SourceFile) -> Content:
    """Return the initialisers of the ONNX model in a `file`, and separately the texts among them, which are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/x.onnx", "wb") as file:
    ...         _ = file.write(b"\\x08\\x0a\\x3a\\x0d\\x2a\\x0b\\x08\\x02\\x10\\x02\\x42\\x01w\\x4a\\x02\\x05\\x06")
    ...     [(tensor.name, tensor.read().tolist()) for tensor in read_onnx(SourceFile(f"{folder}/x.onnx"))[0]]
    [('w', [5, 6])]
    """
    graphs = [graph for graph in read_fields(file, 0, file.size, "the model") if graph.number == _GRAPH]
    if len(graphs) != 1 or graphs[0].wire_type != BYTES:
        raise FileFormatError(f"not an ONNX model: expected one graph, got {len(graphs)}")
    beside: dict[str, SourceFile] = {}
    others: dict[str, str] = {}
    result = []
    for field in read_fields(file, graphs[0].start, graphs[0].end, "the graph"):
        if field.number == _SPARSE_INITIALIZER:
            raise FileFormatError("the model has sparse initialisers, which are not read; make them dense with onnx")
        if field.number == _INITIALIZER and field.wire_type == BYTES:
            message = _TensorMessage(file, field)
            tensor = message.make_tensor(beside)
            result += [] if tensor is None else [tensor]
            if tensor is None:
                others[message.name] = "texts"
            if len(result) > _MAX_INITIALIZERS:
                raise FileFormatError(f"the model has more than {_MAX_INITIALIZERS} initialisers")
    return result, others


class _TensorMessage:
    """The fields of one initialiser."""

    def __init__(self, file: SourceFile, field: WireField) -> None:
        self._file, self.name = file, ""
        self._dims: list[int] = []
        self._type, self._location = 0, 0
        self._values: dict[int, list[WireField]] = {}
        self._external: dict[str, str] = {}
        for entry in read_fields(file, field.start, field.end, "an initialiser"):
            self._add(entry)

    def _add(self, field: WireField) -> None:
        if field.number == _DIMS:
            self._dims += self._read_integers(field, "the dims of an initialiser")
            if len(self._dims) > _MAX_DIMENSIONS:
                raise FileFormatError(f"an initialiser has more than {_MAX_DIMENSIONS} dimensions")
        elif field.number in (_DATA_TYPE, _LOCATION) and field.wire_type == VARINT:
            name = "_type" if field.number == _DATA_TYPE else "_location"
            setattr(self, name, field.value)
        elif field.number == _NAME:
            self.name = self._read_text(field)
        elif field.number == _EXTERNAL_DATA and field.wire_type == BYTES:
            parts = {entry.number: entry for entry in read_fields(self._file, field.start, field.end, "an entry")}
            if 1 in parts and 2 in parts and len(self._external) < _MAX_EXTERNAL_ENTRIES:
                self._external[self._read_text(parts[1])] = self._read_text(parts[2])
        elif field.number == _SEGMENT:
            raise FileFormatError("an initialiser is cut into segments, which are not read")
        elif field.number in (_RAW_DATA, _FLOAT_DATA, _INT32_DATA, _INT64_DATA, _DOUBLE_DATA, _UINT64_DATA):
            fields = self._values.setdefault(field.number, [])
            fields.append(field)
            if len(fields) > _MAX_UNPACKED:
                raise FileFormatError(f"{self.name[:80]!r} has more than {_MAX_UNPACKED} values that are not packed")

    def _read_text(self, field: WireField) -> str:
        size = field.end - field.start
        if field.wire_type != BYTES or size > _MAX_TEXT_BYTES:
            raise FileFormatError(f"expected a text of at most {_MAX_TEXT_BYTES} bytes in an initialiser, got {size}")
        try:
            return self._file.read(field.start, size).decode()
        except UnicodeDecodeError:
            raise FileFormatError("an initialiser has a text that is not UTF-8") from None

    def _read_integers(self, field: WireField, name: str) -> list[int]:
        """Return the values of a field that may be packed."""
        if field.wire_type == VARINT:
            return [field.value]
        if field.wire_type != BYTES or field.end - field.start > 10 * _MAX_DIMENSIONS:
            raise FileFormatError(f"expected at most {_MAX_DIMENSIONS} integers as {name}")
        return [int(n) for n in decode_varints(self._file.read(field.start, field.end - field.start), name)]

    def make_tensor(self, beside: dict[str, SourceFile]) -> StoredTensor | None:
        """Return the tensor, None for texts; `beside` are the files with external data that are open already."""
        if self._type == _STRING:
            return None
        if self._type not in _KINDS:
            raise FileFormatError(f"{self.name[:80]!r} has unknown data type {self._type}; use one of {sorted(_KINDS)}")
        type_name, bits, element, field = _KINDS[self._type]
        if prod([max(1, n) for n in self._dims]) >= 1 << 58:  # also of negative dimensions
            raise FileFormatError(f"{self.name[:80]!r} has an implausible shape {self._dims}")
        elements = prod(self._dims)
        nbytes = -(-elements * bits // 8)
        if self._location == _EXTERNAL:
            file, start, size = self._find_external(beside)
        elif _RAW_DATA in self._values:
            last = self._values[_RAW_DATA][-1]
            file, start, size = self._file, last.start, last.end - last.start
        else:
            file, start, size = self._find_typed(field, type_name, bits, elements)
        if size != nbytes:
            raise FileFormatError(
                f"{self.name[:80]!r} of shape {self._dims} and type {type_name} takes {nbytes} bytes, but its data has"
                f" {size}"
            )
        return StoredTensor.dense(self.name, type_name, self._dims, element, file, start, nbytes)

    def _find_external(self, beside: dict[str, SourceFile]) -> tuple[SourceFile, int, int]:
        location = self._external.get("location", "")
        if location not in beside:
            try:
                beside[location] = self._file.open_beside(location)
            except FileNotFoundError:
                raise FileFormatError(f"data of {self.name[:80]!r} are in {location!r}, which does not exist") from None
        file = beside[location]
        start = self._external_integer("offset", 0)
        size = self._external_integer("length", file.size - start)
        if start < 0 or size < 0 or start + size > file.size:
            raise FileFormatError(
                f"the data of {self.name[:80]!r} are bytes {start} to {start + size} of {location!r}, which has"
                f" {file.size}"
            )
        return file, start, size

    def _external_integer(self, key: str, default: int) -> int:
        text = self._external.get(key)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise FileFormatError(f"expected a number as {key} of {self.name[:80]!r}, got {text[:40]!r}")
        return int(text)

    def _find_typed(self, number: int, type_name: str, bits: int, elements: int) -> tuple[SourceFile, int, int]:
        """Return where the values of a typed field are: in the file if they are contiguous there, else decoded."""
        fields = self._values.get(number, [])
        if not fields:
            return self._file, 0, 0
        if number in (_FLOAT_DATA, _DOUBLE_DATA):
            if len(fields) == 1 and fields[0].wire_type == BYTES:
                return self._file, fields[0].start, fields[0].end - fields[0].start
            if any(field.wire_type not in (BYTES, FIXED32, FIXED64) for field in fields):
                raise FileFormatError(f"{self.name[:80]!r} has values of a wrong wire type")
            array = np.frombuffer(
                b"".join([self._file.read(field.start, field.end - field.start) for field in fields]), "u1"
            )
        else:
            array = self._decode_integers(fields, type_name, bits)
        source = ArraySource(self.name, array, self._file.path)
        return source, 0, source.size

    def _decode_integers(self, fields: list[WireField], type_name: str, bits: int) -> np.ndarray[Any, Any]:
        if any(field.wire_type not in (VARINT, BYTES) for field in fields):
            raise FileFormatError(f"{self.name[:80]!r} has values of a wrong wire type")
        parts = []
        for field in fields:
            if field.wire_type == VARINT:
                parts.append(np.array([field.value], np.uint64))
            else:
                data = self._file.read(field.start, field.end - field.start)
                parts.append(decode_varints(data, f"the data of {self.name[:80]!r}"))
        values = np.concatenate(parts)
        if type_name == "uint64":
            return values.astype("<u8")
        signed = values.view(np.int64)
        is_signed = type_name.startswith("int") and bits >= 8
        bits = max(bits, 8)  # smaller ones are packed into bytes
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
        if len(signed) and (int(signed.min()) < low or int(signed.max()) > high):
            raise FileFormatError(f"{self.name[:80]!r} has values outside of {type_name}: expected {low} to {high}")
        return signed.astype(f"<{'i' if is_signed else 'u'}{bits // 8}")
