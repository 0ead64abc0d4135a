# SPDX-License-Identifier: Apache-2.0
"""Tensorbin files, memory-mapped to read and written whole: the pages of a tensor, for one device or a mesh of them.

8 bytes    size of the header, little-endian
header     a flatbuffer (see tensorbin_header), zeros at its end up to a multiple of 64 from the start of the file
data       the pages of each device's part as they lie on the host, each part at a multiple of 64
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from .._files import as_path, map_file, replace_file
from .._integers import round_up
from ..copying import copy
from ..errors import FileFormatError, FormatError, LayoutError, TilewrightError
from ..formats import Format, FormatLike
from ..layout import Box
from ..memory import (
    AllocationMode,
    BufferType,
    Coordinate,
    CoreRange,
    CoreRangeSet,
    DeviceLike,
    Explanation,
    MemoryConfig,
    Mesh,
    NdShardSpec,
    PageLayout,
    ShardDistribution,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
    TensorSpec,
    Tile,
    Topology,
    explain,
    format_devices,
    from_bytes,
    validate_placement,
)
from ..tensor import Tensor
from .source import ByteArray, FilePath, SourceFile, as_source_file
from .stored_tensor import StoredPart, StoredTensor
from .tensor_values import SharedElement

# FlatBuffers for tensor files: a reader that validates everything, and a writer.

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
            raise FileFormatError(f"field {field} of table {self._at} has {count} entries, more than {max_count}")
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
    return int(struct.unpack_from(form, data, at)[0])


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

    def write_reference(self, at: int, value: object) -> None:
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


# The header of a tensorbin file: a flatbuffer with a tensor spec and the byte extent of each device's part.

_DTYPES = ("bfloat16", "float32", "uint32", "bfloat8_b", "bfloat4_b", "uint8", "uint16", "int32", "int8")
_ROW_MAJOR_PAGES, _TILE_PAGES = 1, 2
_IN_THIS_FILE = 1
_REPLICATED, _CUT = 0, 1

# Plausible bounds, so that a damaged header costs neither time nor memory beyond its own size.
_MAX_DIMENSIONS = 32
_MAX_CORE_RANGES = 1024
_MAX_GRID_EXTENT = 1024

_Kind = TypeVar("_Kind", bound=Enum)


class ByteExtent(NamedTuple):
    """Where a device's bytes are, counted from the start of the data.

    >>> ByteExtent(64, 4096).offset
    64
    """

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class TensorbinHeader:
    """The spec of each device's part, the shape of the mesh, the byte extent of each part, and the topology.

    >>> spec = TensorSpec((5, 7), "float32")
    >>> header = TensorbinHeader(spec, (1, 1), {(0, 0): ByteExtent(0, 140)}, Topology.replicated([(0, 0)]))
    >>> decode_header(encode_header(header)) == header
    True
    """

    spec: TensorSpec
    mesh_shape: tuple[int, ...]
    extents: Mapping[Coordinate, ByteExtent]
    topology: Topology


def dtype_code(dtype: Format) -> int:
    """Return the code of a number format in tensorbin files.

    >>> from tilewright import format_of
    >>> dtype_code(format_of("int8"))
    8
    """
    if dtype.name not in _DTYPES:
        raise FormatError(f"tensorbin files cannot store {dtype}; convert it to one of {', '.join(_DTYPES)}")
    return _DTYPES.index(dtype.name)


# Reading.


def decode_header(data: bytes | memoryview) -> TensorbinHeader:
    """Return a decoded header, or raise a `FileFormatError`.

    >>> try:
    ...     decode_header(encode_flatbuffer({}))
    ... except FileFormatError as problem:
    ...     print(problem)
    the header has no tensor spec
    """
    root = FlatTable.root(data)
    spec = _parse_spec(_require(root.table(0), "tensor spec"))
    mesh_shape = _require(root.table(1), "mesh shape").numbers(0, _MAX_DIMENSIONS)
    extents: dict[Coordinate, ByteExtent] = {}
    for index in range(root.count(2)):
        shard = root.entry(2, index)
        at = _parse_coordinate(_require(shard.table(2), "mesh coordinate"), mesh_shape)
        if at in extents:
            raise FileFormatError(f"device {at} has two shards")
        if shard.number(0, "B") != _IN_THIS_FILE:
            raise FileFormatError(f"the shard of device {at} is not stored in this file (kind {shard.number(0, 'B')})")
        extents[at] = ByteExtent(*_require(shard.structure(1, "QQ"), "byte extent of a shard"))
    table = root.table(3)
    topology = Topology.replicated(extents) if table is None else _parse_topology(table, mesh_shape)
    return TensorbinHeader(spec, mesh_shape, extents, topology)


def _require(value: object, name: str) -> Any:
    if value is None:
        raise FileFormatError(f"the header has no {name}")
    return value


def _parse_enum(enum: type[_Kind], number: int) -> _Kind:
    try:
        return enum(number)
    except ValueError:
        members = ", ".join(f"{member.value} {member.name}" for member in enum)
        raise FileFormatError(f"unknown {enum.__name__} {number}; known values: {members}") from None


def _parse_coordinate(table: FlatTable, mesh_shape: tuple[int, ...]) -> Coordinate:
    at = table.numbers(0, _MAX_DIMENSIONS)
    if len(at) != len(mesh_shape) or any(c >= n for c, n in zip(at, mesh_shape, strict=True)):
        raise FileFormatError(f"device {at} is outside the mesh {list(mesh_shape)}")
    return at


def _parse_topology(table: FlatTable, mesh_shape: tuple[int, ...]) -> Topology:
    distribution = _require(table.table(0), "distribution shape").numbers(0, _MAX_DIMENSIONS)
    count = table.count(1, _MAX_DIMENSIONS)
    if count != len(distribution):
        raise FileFormatError(f"expected a placement per entry of distribution {list(distribution)}, got {count}")
    placements = tuple([_parse_placement(table.entry(1, k)) for k in range(count)])
    coordinates: dict[Coordinate, None] = {}
    for k in range(table.count(2)):
        at = _parse_coordinate(table.entry(2, k), mesh_shape)
        if at in coordinates:
            raise FileFormatError(f"the topology lists device {at} twice")
        coordinates[at] = None
    return Topology(distribution, placements, tuple(coordinates))


def _parse_placement(table: FlatTable) -> int | None:
    number = table.number(0, "B")
    if number not in (_REPLICATED, _CUT):
        raise FileFormatError(f"unknown mesh placement {number}; expected 0 (replicate) or 1 (shard)")
    return table.number(1, "i") if number == _CUT else None


def _parse_spec(table: FlatTable) -> TensorSpec:
    shape = table.numbers(0, _MAX_DIMENSIONS)
    layout = _require(table.table(1), "tensor layout")
    code = layout.number(0, "B")
    if code >= len(_DTYPES):
        raise FileFormatError(f"unknown data type {code}; expected 0 to {len(_DTYPES) - 1}")
    tile = None
    pages = layout.number(1, "B")
    if pages == _TILE_PAGES:
        tile = _parse_tile(_require(layout.table(2), "tile"))
    elif pages != _ROW_MAJOR_PAGES:
        raise FileFormatError(f"unknown page layout {pages}; expected 1 (row-major) or 2 (tile)")
    page_layout = PageLayout.TILE if tile else PageLayout.ROW_MAJOR
    memory = _parse_memory(_require(layout.table(3), "memory config"))
    alignment = layout.numbers(4, _MAX_DIMENSIONS)
    spec = TensorSpec(shape, _DTYPES[code], page_layout, tile, memory)
    if alignment in ((), spec.default_alignment):
        return spec
    return TensorSpec(shape, _DTYPES[code], page_layout, tile, memory, alignment=alignment)


def _parse_tile(pages: FlatTable) -> Tile:
    table = pages.table(0)
    if table is None:
        return Tile()
    tile = Tile((table.number(0, "I"), table.number(1, "I")), bool(table.number(2, "B")))
    tile.require_on_chips()
    return tile


def _parse_memory(table: FlatTable) -> MemoryConfig:
    layout = _parse_enum(TensorMemoryLayout, table.number(0, "H"))
    buffer = _parse_enum(BufferType, table.number(1, "H"))
    matrix, general = table.table(2), table.table(3)
    shards = nd_shards = None
    if matrix is not None:
        orientation = _parse_enum(ShardOrientation, matrix.number(3, "B"))
        shards = ShardSpec(_parse_cores(matrix, 0), (matrix.number(1, "I"), matrix.number(2, "I")), orientation)
    if general is not None:
        orientation = _parse_enum(ShardOrientation, general.number(2, "B"))
        distribution = _parse_enum(ShardDistribution, general.number(3, "B"))
        shape = general.numbers(0, _MAX_DIMENSIONS)
        nd_shards = NdShardSpec(shape, _parse_cores(general, 1), orientation, distribution)
    made_with_nd = bool(table.number(4, "B")) or (shards is None and nd_shards is not None)
    mode = AllocationMode.of_flags(table.number(5, "B"), table.number(6, "B"))
    return MemoryConfig(layout, buffer, shards, nd_shards, made_with_nd, mode)


def _parse_cores(owner: FlatTable, field: int) -> CoreRangeSet:
    table = _require(owner.table(field), "core range set")
    count = table.count(0, _MAX_CORE_RANGES)
    entries = [table.entry(0, k) for k in range(count)]
    return CoreRangeSet([CoreRange(_parse_core(entry, 0), _parse_core(entry, 1)) for entry in entries])


def _parse_core(owner: FlatTable, field: int) -> tuple[int, int]:
    table = _require(owner.table(field), "corner of a core range")
    at = (table.number(0, "i"), table.number(1, "i"))
    if not all(0 <= c < _MAX_GRID_EXTENT for c in at):
        raise FileFormatError(f"core {at} is out of range; coordinates run from 0 to {_MAX_GRID_EXTENT - 1}")
    return at


# Writing.


def encode_header(header: TensorbinHeader) -> bytes:
    """Return the flatbuffer of a header, without padding at its end.

    >>> spec = TensorSpec((5, 7), "float32")
    >>> len(
    ...     encode_header(TensorbinHeader(spec, (1, 1), {(0, 0): ByteExtent(0, 140)}, Topology.replicated([(0, 0)])))
    ... ) < 400
    True
    """
    spec = header.spec
    tiled = spec.is_tiled
    size = {
        0: FlatNumber("I", spec.tile.height),
        1: FlatNumber("I", spec.tile.width),
        2: FlatNumber("B", spec.tile.transpose),
    }
    layout: dict[int, Field] = {
        0: FlatNumber("B", dtype_code(spec.dtype)),
        1: FlatNumber("B", _TILE_PAGES if tiled else _ROW_MAJOR_PAGES),
        2: {0: size} if tiled else {},
        3: _memory_fields(spec.memory),
        4: spec.alignment or spec.default_alignment,
    }
    shards = [
        {0: FlatNumber("B", _IN_THIS_FILE), 1: FlatStruct("QQ", extent), 2: {0: at}}
        for at, extent in header.extents.items()
    ]
    return encode_flatbuffer(
        {
            0: {0: spec.shape.logical, 1: layout},
            1: {0: header.mesh_shape},
            2: shards,
            3: _topology_fields(header.topology),
        }
    )


def _topology_fields(topology: Topology) -> dict[int, Field]:
    codes = [(_REPLICATED, -1) if cut is None else (_CUT, cut) for cut in topology.placements]
    placements = [{0: FlatNumber("B", code), 1: FlatNumber("i", cut)} for code, cut in codes]
    return {0: {0: topology.distribution}, 1: placements, 2: [{0: at} for at in topology.coordinates]}


def _memory_fields(memory: MemoryConfig) -> dict[int, Field]:
    fields: dict[int, Field] = {
        0: FlatNumber("H", memory.memory_layout.value),
        1: FlatNumber("H", memory.buffer_type.value),
        4: FlatNumber("B", memory.made_with_nd),
        **{5 + k: FlatNumber("B", flag) for k, flag in enumerate(memory.allocation.flags)},
    }
    if (matrix := memory.shard_spec) is not None:
        height, width = (FlatNumber("I", n) for n in matrix.shape)
        fields[2] = {0: _core_fields(matrix.grid), 1: height, 2: width, 3: FlatNumber("B", matrix.orientation.value)}
    if (general := memory.nd_shard_spec) is not None:
        order, distribution = (FlatNumber("B", member.value) for member in (general.orientation, general.distribution))
        fields[3] = {0: general.shape, 1: _core_fields(general.grid), 2: order, 3: distribution}
    return fields


def _core_fields(cores: CoreRangeSet) -> dict[int, Field]:
    corners = [[{0: FlatNumber("i", x), 1: FlatNumber("i", y)} for x, y in (box.start, box.end)] for box in cores]
    return {0: [{0: start, 1: end} for start, end in corners]}


SIZE_BYTES = 8
PageBytes: TypeAlias = "ByteArray | bytes | bytearray | memoryview"
_ALIGNMENT = 64


class Tensorbin:
    """The content of a tensorbin file: a tensor spec, and the pages of each device of a mesh.

    Args:
        spec: the spec of each device's part.
        shards: bytes by mesh coordinate; one array of bytes stands for one device. Those of a file are lazy views.
        mesh_shape: the shape of the mesh.
        topology: how the parts make one tensor; by default all devices hold the same.

    >>> from tilewright.memory import to_bytes
    >>> spec = TensorSpec((2, 3), "float32", "tile")
    >>> tensorbin = Tensorbin(spec, to_bytes([[1, 2, 3], [4, 5, 6]], spec))
    >>> tensorbin.mesh_shape, tensorbin.pages().nbytes, tensorbin.array().tolist()
    ((1, 1), 4096, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    """

    def __init__(
        self,
        spec: TensorSpec,
        shards: PageBytes | Mapping[Any, PageBytes],
        mesh_shape: Iterable[int] = (1, 1),
        topology: Topology | None = None,
    ) -> None:
        self.spec = spec
        self.mesh_shape = tuple([int(n) for n in mesh_shape])
        parts = shards if isinstance(shards, Mapping) else {(0,) * len(self.mesh_shape): shards}
        self.shards: dict[Coordinate, ByteArray] = {
            tuple(at): self._validate_part(at, part) for at, part in parts.items()
        }
        self.topology = self._replicated_topology() if topology is None else topology

    def _replicated_topology(self) -> Topology:
        """Return the topology of identical devices; raise if they differ."""
        first = next(iter(self.shards), None)
        for at, part in self.shards.items():
            if first is not None and not _are_equal_bytes(part, self.shards[first]):
                raise LayoutError(
                    f"devices {first} and {at} hold different bytes; give a topology, such as"
                    " Topology((2,), (0,), ((0, 0), (0, 1))) for two devices along dimension 0"
                )
        return Topology.replicated(self.shards)

    def _validate_part(self, at: Sequence[int], part: PageBytes) -> ByteArray:
        if len(at) != len(self.mesh_shape) or not all(0 <= c < n for c, n in zip(at, self.mesh_shape, strict=True)):
            raise LayoutError(f"device {tuple(at)} is outside the mesh {list(self.mesh_shape)}")
        data: ByteArray = np.asarray(part) if hasattr(part, "__array__") else np.frombuffer(part, np.uint8)
        if not data.flags.c_contiguous or data.nbytes != self.spec.nbytes:
            raise LayoutError(
                f"expected {self.spec.nbytes} contiguous bytes for device {tuple(at)} ({self.spec}), got {data.nbytes}"
                f" bytes with strides {data.strides}"
            )
        return data.reshape(-1).view(np.uint8)

    @property
    def mesh(self) -> Mesh:
        """The mesh: its shape, the topology, and the shape of each part.

        >>> print(Tensorbin(TensorSpec((4,), "uint8"), b"abcd").mesh)
        1 x 1 devices; each holds 4
        """
        return Mesh(self.mesh_shape, self.topology, self.spec.shape.logical)

    def pages(self, device: DeviceLike | None = None) -> ByteArray:
        """Return the bytes of a device's pages, without a copy; `device` is required where devices differ.

        It is a mesh coordinate, or a number in row-major order.

        >>> Tensorbin(TensorSpec((4,), "uint8"), b"abcd").pages((0, 0)).tolist()
        [97, 98, 99, 100]
        """
        if device is None and self._is_replicated:
            return next(iter(self.shards.values()))
        if device is None:
            parts = format_devices(list(self.shards)) or "none"
            raise LayoutError(f"the devices hold different parts; choose one of {parts}, or gather all with array()")
        at = self.mesh.coordinate_of(device)
        if at not in self.shards:
            raise LayoutError(f"device {at} holds no part; choose one of {format_devices(list(self.shards)) or 'none'}")
        return self.shards[at]

    @property
    def _is_replicated(self) -> bool:
        whole = all(cut is None for cut in self.topology.placements)
        return len(self.shards) == 1 or (bool(self.shards) and whole)

    def tensor(self, device: DeviceLike | None = None) -> Tensor:
        """Return a device's part as a tensor that borrows its bytes; `device` is required where devices differ.

        >>> Tensorbin(TensorSpec((4,), "uint8"), b"abcd").tensor().storage_type.name
        'BORROWED_HOST'
        """
        return Tensor.from_pages(self.pages(device), self.spec)

    def array(self, device: DeviceLike | None = None, dtype: FormatLike | None = None) -> np.ndarray[Any, Any]:
        """Return the values of the part of `device`, or of the entire tensor, as `dtype`; block formats become float32.

        >>> halves = {(0, 0): b"ab", (0, 1): b"cd"}
        >>> topology = Topology((2,), (0,), ((0, 0), (0, 1)))
        >>> tensorbin = Tensorbin(TensorSpec((2,), "uint8"), halves, (1, 2), topology)
        >>> tensorbin.array((0, 1)).tolist(), tensorbin.array().tolist()
        ([99, 100], [97, 98, 99, 100])
        """
        if device is not None or self._is_replicated:
            return from_bytes(self.pages(device), self.spec, dtype)
        self.topology.validate_complete()
        shape = self.spec.shape.logical
        parts = (from_bytes(self.pages(at), self.spec, dtype) for at in self.topology.coordinates)
        first = next(parts)
        whole = np.empty(self.topology.global_shape(shape), first.dtype)
        for index, part in enumerate(chain([first], parts)):
            copy(part, whole[self.topology.device_window(index, shape)])
        return whole

    def explain_stored(
        self, coordinate: Sequence[int], base: int | None = None, device: DeviceLike | None = None
    ) -> SharedElement | Explanation:
        """Return where the element at `coordinate` is, on the devices that hold it, from the address `base` on.

        With a `device`, `coordinate` counts in its part.

        >>> Tensorbin(TensorSpec((4,), "uint8", chip="n150"), b"abcd").explain_stored((2,)).where.byte
        2
        """
        at = tuple([int(c) for c in coordinate])
        if device is not None:
            self.mesh.window_of(device)  # which refuses one that the mesh has not
        if device is not None or len(self.shards) == 1:
            return explain(self.spec, at, base)
        return SharedElement.locate(self.mesh, self.spec, at, base)

    def __repr__(self) -> str:
        mesh = "" if len(self.shards) == 1 else f", {len(self.shards)} parts on a mesh of {list(self.mesh_shape)}"
        return f"<Tensorbin {self.spec}{mesh}>"


def read_tensorbin(path: FilePath) -> Tensorbin:
    """Return the tensor of the tensorbin file at `path`; its data are mapped, not read, while anyone refers to them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder) / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin(Path(folder) / "x.tensorbin").array().tolist()
    [97, 98, 99, 100]
    """
    with as_path(path).open("rb") as file:
        mapped = map_file(file.fileno())
    try:
        return parse_tensorbin(mapped)
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None


def parse_tensorbin(data: bytes | bytearray | memoryview) -> Tensorbin:
    """Return the tensor in `data`, the bytes of a tensorbin file, as views of them.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_tensorbin_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> parse_tensorbin(file.getvalue()).spec
    TensorSpec((4,), 'uint8', 'row_major')
    """
    view = memoryview(data)
    header, start = parse_file_start(view, len(view))
    parts: ByteArray = np.frombuffer(view[start:], np.uint8)
    result = {at: parts[offset : offset + length] for at, (offset, length) in header.extents.items()}
    return Tensorbin(header.spec, result, header.mesh_shape, header.topology)


def parse_file_start(data: bytes | memoryview, size: int) -> tuple[TensorbinHeader, int]:
    """Return the validated header of a tensorbin file of `size` bytes that starts with `data`, and the header's end.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_tensorbin_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> parse_file_start(file.getvalue(), len(file.getvalue()))[0].extents
    {(0, 0): ByteExtent(offset=0, size=4)}
    """
    view = memoryview(data)
    if len(view) < SIZE_BYTES:
        raise FileFormatError(
            f"not a tensorbin file: {len(view)} bytes are too few for the {SIZE_BYTES}-byte header size"
        )
    header_size = int.from_bytes(view[:SIZE_BYTES], "little")
    if header_size % SIZE_BYTES or header_size > size - SIZE_BYTES:
        raise FileFormatError(
            f"the header size is {header_size}, expected a multiple of {SIZE_BYTES} of at most {size - SIZE_BYTES}"
        )
    start = SIZE_BYTES + header_size
    try:
        header = decode_header(view[SIZE_BYTES:start])
    except FileFormatError:
        raise
    except TilewrightError as problem:  # an impossible shape, tile or sharding
        raise FileFormatError(f"invalid tensor spec in the header: {problem}") from None
    if not header.spec.nbytes:
        raise FileFormatError(f"the header describes {header.spec}, which is empty")
    if not header.extents:
        raise FileFormatError("the file has no shards")
    for at, (offset, length) in header.extents.items():
        if length != header.spec.nbytes:
            raise FileFormatError(
                f"the shard of device {at} has {length} bytes, but {header.spec} takes {header.spec.nbytes}"
            )
        if offset + length > size - start:
            raise FileFormatError(
                f"the shard of device {at} ends at byte {offset + length}, but there are {size - start} bytes of data"
            )
    end = max([offset + length for offset, length in header.extents.values()])
    if end < size - start:
        raise FileFormatError(f"the shards end at byte {end}, but there are {size - start} bytes of data")
    return header, start


def write_tensorbin(path: FilePath, tensorbin: Tensorbin) -> None:
    """Write a tensorbin file at `path`, atomically: an existing file is replaced only on success.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder) / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     (Path(folder) / "x.tensorbin").stat().st_size % 64
    4
    """
    with replace_file(path) as file:
        write_tensorbin_to(file, tensorbin)


def write_tensorbin_to(file: IO[bytes], tensorbin: Tensorbin) -> None:
    """Write a tensorbin file to an open file.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_tensorbin_to(file, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    >>> file.getvalue()[-4:]
    b'abcd'
    """
    dtype_code(tensorbin.spec.dtype)
    validate_placement(tensorbin.spec)
    if not tensorbin.spec.nbytes or not tensorbin.shards:
        raise LayoutError(
            f"cannot write {tensorbin.spec} on {len(tensorbin.shards)} devices to a tensorbin file: it is empty"
        )
    extents, parts, end = {}, [], 0
    placed: dict[Any, int] = {}  # offsets of parts that several devices share
    replicas = _find_replicas(tensorbin)
    for at, part in tensorbin.shards.items():
        keys = (part.ctypes.data, replicas.get(at, at))
        start = next((placed[key] for key in keys if key in placed), None)
        if start is None:
            start = round_up(end, _ALIGNMENT)
            parts.append((start - end, part))
            end = start + part.nbytes
        placed.update(dict.fromkeys(keys, start))
        extents[at] = ByteExtent(start, part.nbytes)
    file.write(_encode_header_block(TensorbinHeader(tensorbin.spec, tensorbin.mesh_shape, extents, tensorbin.topology)))
    for gap, part in parts:
        file.write(bytes(gap))
        file.write(part.data)


def _find_replicas(tensorbin: Tensorbin) -> dict[Coordinate, Coordinate]:
    """Return, per replica, the first device with the same part; raise if their bytes differ."""
    result = {}
    for devices in tensorbin.mesh.windows().values():
        present = [at for at in devices if at in tensorbin.shards]
        for at in present[1:]:
            if not _are_equal_bytes(tensorbin.shards[at], tensorbin.shards[present[0]]):
                raise LayoutError(
                    f"devices {present[0]} and {at} are replicas but hold different bytes; give both the same, or"
                    " another topology"
                )
            result[at] = present[0]
    return result


def _are_equal_bytes(a: ByteArray, b: ByteArray) -> bool:
    return a.ctypes.data == b.ctypes.data or bool(np.array_equal(a, b))


@lru_cache(maxsize=1024)  # a model has many tensors of few specs
def encode_file_start(spec: TensorSpec, mesh: Mesh | None = None) -> tuple[bytes, int]:
    """Return the bytes before the pages in a tensorbin file, and the distance between the parts of a mesh.

    `mesh` is how devices share the tensor, by default one device. The parts follow each other in the order of
    `mesh.windows()`; the caller validates the placement.

    >>> head, step = encode_file_start(TensorSpec((60, 90), "bfloat8_b"))
    >>> len(head) % 64, step
    (0, 6528)
    """
    dtype_code(spec.dtype)
    if not spec.nbytes:
        raise LayoutError(f"cannot write {spec} to a tensorbin file: it is empty")
    stride = round_up(spec.nbytes, _ALIGNMENT)
    if mesh is None:
        mesh = Mesh((1, 1), Topology.replicated([(0, 0)]), spec.shape.logical)
    starts = {device: k * stride for k, devices in enumerate(mesh.windows().values()) for device in devices}
    extents = {device: ByteExtent(starts[device], spec.nbytes) for device in mesh.topology.coordinates}
    return _encode_header_block(TensorbinHeader(spec, mesh.shape, extents, mesh.topology)), stride


def _encode_header_block(header: TensorbinHeader) -> bytes:
    fields = encode_header(header)
    fields += bytes(-(SIZE_BYTES + len(fields)) % _ALIGNMENT)
    return len(fields).to_bytes(SIZE_BYTES, "little") + fields


_MAX_HEADER_READ = 1 << 26  # for the header of one tensor


def read_tensorbin_tensor(path: FilePath | SourceFile, name: str) -> StoredTensor:
    """Return the tensor of a tensorbin file; the parts of a mesh of devices make one tensor.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright.files import Tensorbin, write_tensorbin
    >>> from tilewright.memory import TensorSpec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    ...     read_tensorbin_tensor(Path(folder, "x.tensorbin"), "x").read().tolist()
    [97, 98, 99, 100]
    """
    file = as_source_file(path)
    header, start = parse_file_start(_read_header_bytes(file), file.size)
    spec = header.spec
    mesh = Mesh(header.mesh_shape, header.topology, spec.shape.logical)
    try:
        shape, parts = _device_parts(header, mesh, start)
    except FileFormatError:
        raise
    except TilewrightError as problem:
        raise FileFormatError(f"the parts of the mesh do not make a tensor: {problem}") from None
    offsets = [start + extent.offset for extent in header.extents.values()]
    location = ((min(offsets), max(offsets) + spec.nbytes), file, spec, parts, tuple(range(len(shape))))
    shared = mesh if len(header.extents) > 1 else None
    return StoredTensor(name, spec.dtype.name, shape, spec.dtype, spec, *location, mesh=shared)


def _read_header_bytes(file: SourceFile) -> bytes:
    """Return the bytes up to the end of the header, no more: a directory may have hundreds of large files."""
    size = int.from_bytes(file.read(0, min(file.size, SIZE_BYTES)), "little")
    return file.read(0, min(file.size, SIZE_BYTES + size, _MAX_HEADER_READ))


def _device_parts(header: TensorbinHeader, mesh: Mesh, start: int) -> tuple[tuple[int, ...], tuple[StoredPart, ...]]:
    """Return the shape of the entire tensor, and its distinct parts."""
    shape, extents = mesh.part_shape, header.extents
    if len(extents) == 1 or all(cut is None for cut in mesh.topology.placements):
        first = next(iter(extents.values()))
        return shape, (StoredPart(Box((0,) * len(shape), shape), start + first.offset),)
    mesh.topology.validate_complete()
    for at in mesh.topology.coordinates:
        if at not in extents:
            raise FileFormatError(f"the shard of device {at} is missing")
    windows = mesh.windows().items()  # replicas have the same box
    return mesh.global_shape, tuple([StoredPart(box, start + extents[devices[0]].offset) for box, devices in windows])
