# SPDX-License-Identifier: Apache-2.0
"""GGUF files of llama.cpp: plain tensors, and blocks of ggml that are decoded when read; several parts as one."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np

from .._integers import ceil_div, round_up
from .._text import count_of
from ..copying import can_decode, decode_codes
from ..errors import FileFormatError
from ..formats import GGML_TYPES, GgmlType, ScalarFormat, Singles, scalar_format_of, uint8
from ..layout import Box
from .quantized import QuantizedTensor
from .source import GGUF_MAGIC, GGUF_SUFFIX, RangeReader, SourceFile, resolve_inside
from .stored_tensor import Content, StoredTensor

# The header of GGUF files, versions 2 and 3, little-endian, checked completely before any of it is used.

VERSIONS = (2, 3)
MAX_HEADER_BYTES = 1 << 28  # the largest vocabularies take a tenth of it
_MAX_KEY_BYTES = (1 << 16) - 1  # the limit of the format
_MAX_RANK = 4
_MAX_ELEMENTS = 1 << 56
_MAX_DEPTH = 4  # of arrays in arrays
_MAX_ITEMS = 1024  # of an array that are remembered
_MAX_LISTED = 8  # of an array that are written as text
_DEFAULT_ALIGNMENT = 32
_STRING, _ARRAY, _BOOL = 8, 9, 7
_LEAST_PAIR_BYTES, _LEAST_TENSOR_BYTES = 8 + 4 + 1, 8 + 4 + 4 + 8

# The types of values by number: the name, and how struct spells it.
_VALUE_TYPES = {
    0: ("uint8", "B"),
    1: ("int8", "b"),
    2: ("uint16", "H"),
    3: ("int16", "h"),
    4: ("uint32", "I"),
    5: ("int32", "i"),
    6: ("float32", "f"),
    _BOOL: ("bool", "B"),
    _STRING: ("string", ""),
    _ARRAY: ("array", ""),
    10: ("uint64", "Q"),
    11: ("int64", "q"),
    12: ("float64", "d"),
}
SCALAR_TYPES: dict[int, tuple[str, ScalarFormat]] = {
    number: (type_name, scalar_format_of(name))
    for number, type_name, name in (
        (0, "F32", "float32"),
        (1, "F16", "float16"),
        (24, "I8", "int8"),
        (25, "I16", "int16"),
        (26, "I32", "int32"),
        (27, "I64", "int64"),
        (28, "F64", "float64"),
        (30, "BF16", "bfloat16"),
    )
}
"""The types of tensors that are not blocks, by number: their names in GGUF, and their formats."""

_FORMER_TYPES = {
    **dict.fromkeys((4, 5), "Q4_2 or Q4_3"),
    **dict.fromkeys((31, 32, 33), "Q4_0 in an order of rows for one processor"),
    **dict.fromkeys((36, 37, 38), "IQ4_NL in an order of rows for one processor"),
}


@dataclass(frozen=True, slots=True)
class GgufArray:
    """An array of metadata: the type of its items, their number, and the first of them.

    >>> str(GgufArray("string", 32000, ("<unk>",))), str(GgufArray("int32", 2, (1, -2)))
    ('array of 32000 strings', '[1, -2]')
    """

    type: str
    count: int
    items: tuple[GgufValue, ...]

    def __str__(self) -> str:
        if self.count > min(len(self.items), _MAX_LISTED) or self.type == "array":
            return f"array of {count_of(self.count, self.type)}"
        texts = [
            json.dumps(item, ensure_ascii=False) if isinstance(item, str) else text_of(item) for item in self.items
        ]
        return f"[{', '.join(texts)}]"


GgufValue: TypeAlias = "int | float | bool | str | GgufArray"


def text_of(value: GgufValue) -> str:
    """Return a value of metadata as text.

    >>> text_of(True), text_of(0.10000000149011612), text_of("llama")
    ('true', '0.1', 'llama')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            single = np.float32(value)
        return str(single if float(single) == value else value)  # the shortest text of the stored value
    return str(value)


@dataclass(frozen=True, slots=True)
class GgufEntry:
    """One tensor of a header; its bytes in the file are `start` to `end`.

    >>> GgufEntry("x", 0, (2, 3), 64, 88).kind
    'F32'
    """

    name: str
    type: int
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def kind(self) -> str:
        """The name of the type."""
        return GGML_TYPES[self.type].name if self.type in GGML_TYPES else SCALAR_TYPES[self.type][0]


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The content of a header: metadata by key, and the tensors in the order of the file."""

    version: int
    metadata: dict[str, GgufValue]
    entries: tuple[GgufEntry, ...]


def _read_text(header: RangeReader, what: str, max_bytes: int = MAX_HEADER_BYTES) -> str:
    """Return the next text of at most this many bytes."""
    size = header.take_integer(8, f"the length of {what}")
    if size > max_bytes:
        raise FileFormatError(f"{what} has {size} bytes, more than {max_bytes}")
    data = header.take(size, what)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileFormatError(f"{what} is not UTF-8: {data[:40]!r}") from None


def read_gguf_header(file: SourceFile) -> GgufHeader:
    """Return the header of a GGUF file, or raise a `FileFormatError`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.gguf")
    ...     _ = path.write_bytes(b"GGUF" + bytes([3, 0, 0, 0]) + bytes(16))
    ...     read_gguf_header(SourceFile(path))
    GgufHeader(version=3, metadata={}, entries=())
    """
    header = RangeReader(file, 0, min(file.size, MAX_HEADER_BYTES), "the header")
    version = _read_version(header)
    tensors = header.take_integer(8, "the number of tensors")
    pairs = header.take_integer(8, "the number of metadata pairs")
    least = tensors * _LEAST_TENSOR_BYTES + pairs * _LEAST_PAIR_BYTES
    header.require(least, f"a header of {tensors} tensors and {pairs} metadata pairs")
    metadata: dict[str, GgufValue] = {}
    for _ in range(pairs):
        key = _read_text(header, "a metadata key", _MAX_KEY_BYTES)
        if key in metadata:
            raise FileFormatError(f"the metadata key {key[:80]!r} exists twice")
        number = header.take_integer(4, f"the type of {key[:80]!r}")
        metadata[key] = _read_value(header, number, f"metadata {key[:80]!r}")
    alignment = _read_alignment(metadata)
    listed = [_read_tensor(header) for _ in range(tensors)]
    start = round_up(header.position, alignment)
    entries = tuple([_place_tensor(*fields, start, alignment, file.size) for fields in listed])
    _refuse_overlaps(entries)
    return GgufHeader(version, metadata, entries)


def _read_version(header: RangeReader) -> int:
    if header.left < 8 or header.take(4, "the magic") != GGUF_MAGIC:
        raise FileFormatError("not a GGUF file: it does not start with 'GGUF'")
    version = header.take_integer(4, "the version")
    if version in VERSIONS:
        return version
    if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
        raise FileFormatError("the file is big-endian GGUF, which is not read; convert it to little-endian")
    remedy = "; convert the model again with a newer llama.cpp" if version == 1 else ""
    raise FileFormatError(f"GGUF version {version} is not supported; expected 2 or 3{remedy}")


def _read_value(header: RangeReader, number: int, what: str, depth: int = 0) -> GgufValue:
    """Return the next value of metadata, of the type of a number."""
    if number not in _VALUE_TYPES:
        raise FileFormatError(f"{what} has unknown type {number}; known types: {', '.join(map(str, _VALUE_TYPES))}")
    if number == _STRING:
        return _read_text(header, what)
    if number == _ARRAY:
        if depth == _MAX_DEPTH:
            raise FileFormatError(f"{what} is nested more than {_MAX_DEPTH} arrays deep")
        return _read_array(header, what, depth + 1)
    code = f"<{_VALUE_TYPES[number][1]}"
    value: int | float = struct.unpack(code, header.take(struct.calcsize(code), what))[0]
    if number == _BOOL:
        if value not in (0, 1):
            raise FileFormatError(f"{what} is a bool of value {value}; expected 0 or 1")
        return bool(value)
    return value


def _read_array(header: RangeReader, what: str, depth: int) -> GgufArray:
    """Return the next array of metadata, with as many of its items as are remembered."""
    number, count = header.take_integer(4, f"the item type of {what}"), header.take_integer(8, f"the length of {what}")
    if number not in _VALUE_TYPES:
        raise FileFormatError(f"{what} is an array of unknown type {number}")
    name, code = _VALUE_TYPES[number]
    is_plain = number not in (_STRING, _ARRAY)
    size = struct.calcsize(f"<{code}") if is_plain else 8
    header.require(count * size, f"{what}, an array of {count} items,")
    num_read = min(count, _MAX_ITEMS) if is_plain else count
    items = []
    for k in range(num_read):
        item = _read_value(header, number, what, depth)
        if k < _MAX_ITEMS:
            items.append(item)
    if is_plain:
        header.skip((count - num_read) * size, what)
    return GgufArray(name, count, tuple(items))


def _read_alignment(metadata: dict[str, GgufValue]) -> int:
    value = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1 or value & (value - 1):
        raise FileFormatError(f"expected a power of two as general.alignment, got {text_of(value)[:40]}")
    return value


def _read_tensor(header: RangeReader) -> tuple[str, int, tuple[int, ...], int]:
    """Return the name, type, shape and offset of the next tensor."""
    name = _read_text(header, "a tensor's name", _MAX_KEY_BYTES)
    what = f"tensor {name[:80]!r}"
    rank = header.take_integer(4, f"the rank of {what}")
    if rank > _MAX_RANK:
        raise FileFormatError(f"{what} has {rank} dimensions; GGUF allows {_MAX_RANK}")
    shape = tuple([header.take_integer(8, f"the shape of {what}") for _ in range(rank)])[::-1]
    if prod([max(1, n) for n in shape]) > _MAX_ELEMENTS:  # an empty tensor may have any other extents
        raise FileFormatError(f"{what} has shape {list(shape)}, larger than {_MAX_ELEMENTS} elements")
    number, offset = header.take_integer(4, f"the type of {what}"), header.take_integer(8, f"the offset of {what}")
    if number not in GGML_TYPES and number not in SCALAR_TYPES:
        _refuse_type(what, number)
    return name, number, shape, offset


def _refuse_type(what: str, number: int) -> NoReturn:
    if number in _FORMER_TYPES:
        raise FileFormatError(
            f"{what} has type {number}, {_FORMER_TYPES[number]}, which llama.cpp has removed; quantise the model again"
        )
    types = sorted([*GGML_TYPES, *SCALAR_TYPES])
    raise FileFormatError(f"{what} has unknown type {number}; known types: {', '.join(map(str, types))}")


def _place_tensor(
    name: str, number: int, shape: tuple[int, ...], offset: int, data_start: int, alignment: int, file_size: int
) -> GgufEntry:
    """Return a tensor with its place in the file."""
    if offset % alignment:
        raise FileFormatError(f"tensor {name[:80]!r} is at offset {offset}, which is not a multiple of {alignment}")
    if number in SCALAR_TYPES:
        size = prod(shape) * SCALAR_TYPES[number][1].itemsize
    else:
        size = count_block_bytes(GGML_TYPES[number], shape, name)
    start = data_start + offset
    if size and start + size > file_size:
        raise FileFormatError(
            f"tensor {name[:80]!r} takes bytes {start} to {start + size}, but the file has {file_size}; copy it again"
        )
    return GgufEntry(name, number, shape, start, start + size)


def count_block_bytes(ggml_type: GgmlType, shape: tuple[int, ...], name: str) -> int:
    """Return the bytes of a tensor of blocks; raise unless its rows are whole blocks.

    >>> count_block_bytes(GGML_TYPES[8], (3, 64), "w")
    204
    """
    if not shape or shape[-1] % ggml_type.elements:
        raise FileFormatError(
            f"tensor {name[:80]!r} of shape {list(shape)} needs rows of multiples of {ggml_type.elements}"
        )
    return prod(shape) // ggml_type.elements * ggml_type.nbytes


def _refuse_overlaps(entries: tuple[GgufEntry, ...]) -> None:
    reached, before = 0, ""
    for entry in sorted([tensor for tensor in entries if tensor.end > tensor.start], key=lambda tensor: tensor.start):
        if entry.start < reached:
            raise FileFormatError(f"tensors {before[:80]!r} and {entry.name[:80]!r} overlap at byte {entry.start}")
        reached, before = entry.end, entry.name


SPLIT_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
_MAX_PARTS = 10_000
_MAX_NAMED = 4


@dataclass(frozen=True)
class GgmlBlocks:
    """A tensor of blocks of a ggml `kind`, with their bytes in `records`, [..., bytes of a row].

    >>> from tilewright.files.tensor_file import store_arrays
    >>> stored = store_arrays({"w": np.array([[0, 0x3C, *range(32)]], np.uint8)})
    >>> GgmlBlocks(GGML_TYPES[8], (1, 32), stored["w"]).read(Box((0, 3), (1, 2))).tolist()
    [[3.0, 4.0]]
    """

    kind: GgmlType
    shape: tuple[int, ...]
    records: StoredTensor

    @property
    def name(self) -> str:
        """The name of the type."""
        return self.kind.name

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """The bytes of the blocks."""
        return (self.records,)

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a `box`, in `out` where that saves a copy; only the blocks that it touches are read."""
        if box.empty:
            return np.empty(box.shape, np.float32)
        (*lead, left), (*extents, columns) = box.offset, box.shape
        first, last = left // self.kind.elements, ceil_div(left + columns, self.kind.elements)
        size = self.kind.nbytes
        window = Box((*lead, first * size), (*extents, (last - first) * size))
        rows = np.ascontiguousarray(self.records.read_stored(window)).reshape(-1, window.shape[-1])
        width = (last - first) * self.kind.elements
        if can_decode(self.name):
            if out is not None and width == columns:
                decode_codes(self.name, rows, width, out=out.reshape(-1, width))
                return out
            values = decode_codes(self.name, rows, width)
        else:
            values = self.kind.decode(rows.reshape(-1, size))
        start = left - first * self.kind.elements
        return values.reshape(*extents, -1)[..., start : start + columns]

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offset of the block of the element `at` a coordinate; its scales are in it."""
        index = int(np.ravel_multi_index(at, self.shape))
        return self.records.byte_range[0] + index // self.kind.elements * self.kind.nbytes, None


def read_gguf(file: SourceFile) -> Content:
    """Return the tensors of a GGUF `file`, and its metadata as text; for a model in several files, of all parts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.gguf")
    ...     _ = path.write_bytes(b"GGUF" + bytes([3, 0, 0, 0]) + bytes(16))
    ...     read_gguf(SourceFile(path))
    ([], {})
    """
    header = read_gguf_header(file)
    count = _split_number(header, "split.count")
    parts = [(file, header)] if count < 2 else _read_parts(file.path, count)
    tensors = [_make_tensor(entry, part_file) for part_file, part in parts for entry in part.entries]
    metadata = {key: text_of(value) for _, part in reversed(parts) for key, value in part.metadata.items()}
    return tensors, metadata


def choose_gguf_file(names: Iterable[str]) -> str | None:
    """Return the one GGUF file of the `names` in a directory, the first of several parts; None if there is none.

    >>> choose_gguf_file(["config.json", "m-00002-of-00002.gguf", "m-00001-of-00002.gguf"])
    'm-00001-of-00002.gguf'
    """
    files = sorted([name for name in names if name.lower().endswith(GGUF_SUFFIX)])
    models = {SPLIT_NAME.sub(r"\1-of-\3", name): name for name in reversed(files)}
    if len(models) > 1:
        shown = ", ".join(sorted(models.values())[:_MAX_NAMED])
        raise FileFormatError(f"the directory has {len(models)} GGUF models: {shown}; give one of them")
    return next(iter(models.values()), None)


def _split_number(header: GgufHeader, key: str) -> int:
    value = header.metadata.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FileFormatError(f"expected a number as {key}, got {text_of(value)[:40]}")
    return value


def _read_parts(path: Path, count: int) -> list[tuple[SourceFile, GgufHeader]]:
    """Return the parts of a model that is split into several files, in their order."""
    match = SPLIT_NAME.fullmatch(path.name)
    if match is None or int(match[3]) != count or count > _MAX_PARTS:
        raise FileFormatError(
            f"{path} is one of {count} parts, which are found by names such as model-00001-of-{count:05}.gguf; rename"
            " it to that form"
        )
    parts = []
    for number in range(1, count + 1):
        name = f"{match[1]}-{number:05}-of-{match[3]}.gguf"
        try:
            file = SourceFile(resolve_inside(path.parent, name))
        except FileNotFoundError:
            raise FileFormatError(f"{path} is one of {count} parts, of which {name} does not exist") from None
        header = read_gguf_header(file)
        own = (_split_number(header, "split.no"), _split_number(header, "split.count"))
        if own != (number - 1, count):
            raise FileFormatError(
                f"{file.path} says that it is part {own[0] + 1} of {own[1]}, but its name says {number} of {count}"
            )
        parts.append((file, header))
    tensors = sum([len(header.entries) for _, header in parts])
    expected = _split_number(parts[0][1], "split.tensors.count")
    if expected not in (0, tensors):
        raise FileFormatError(f"the parts of {path} hold {tensors} tensors; expected {expected}")
    return parts


def _make_tensor(entry: GgufEntry, file: SourceFile) -> StoredTensor:
    start, size = entry.start, entry.end - entry.start
    if entry.type in SCALAR_TYPES:
        element = SCALAR_TYPES[entry.type][1]
        return StoredTensor.dense(entry.name, entry.kind, entry.shape, element, file, start, size)
    ggml_type = GGML_TYPES[entry.type]
    if ggml_type.unpack is None:
        return StoredTensor.dense(entry.name, ggml_type.name, entry.shape, None, file, start, size)
    *rows, columns = entry.shape
    stored = (*rows, columns // ggml_type.elements * ggml_type.nbytes)
    records = StoredTensor.dense(entry.name, ggml_type.name, stored, uint8, file, start, size)
    return QuantizedTensor.of(entry.name, GgmlBlocks(ggml_type, entry.shape, records))
