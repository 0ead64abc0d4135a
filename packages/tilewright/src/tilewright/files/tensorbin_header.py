# SPDX-License-Identifier: Apache-2.0
"""The header of a tensorbin file: a flatbuffer with a tensor spec and the byte extent of each device's part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from ..errors import FileFormatError, FormatError
from ..formats import Format
from ..memory import (
    BufferType,
    Coordinate,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    PageLayout,
    ShardDistribution,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
    TensorSpec,
    Tile,
    Topology,
)
from .flatbuffer import Field, FlatNumber, FlatStruct, FlatTable, encode_flatbuffer

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


def _require(value: Any, name: str) -> Any:
    if value is None:
        raise FileFormatError(f"the header has no {name}")
    return value


def _parse_enum(kind: type[_Kind], number: int) -> _Kind:
    try:
        return kind(number)
    except ValueError:
        known = ", ".join(f"{member.value} {member.name}" for member in kind)
        raise FileFormatError(f"unknown {kind.__name__} {number}; known values: {known}") from None


def _parse_coordinate(table: FlatTable, mesh_shape: tuple[int, ...]) -> Coordinate:
    at = table.numbers(0, _MAX_DIMENSIONS)
    if len(at) != len(mesh_shape) or any(c >= n for c, n in zip(at, mesh_shape, strict=True)):
        raise FileFormatError(f"device {at} is outside the mesh {list(mesh_shape)}")
    return at


def _parse_topology(table: FlatTable, mesh_shape: tuple[int, ...]) -> Topology:
    distribution = _require(table.table(0), "distribution shape").numbers(0, _MAX_DIMENSIONS)
    count = table.count(1, _MAX_DIMENSIONS)
    if count != len(distribution):
        raise FileFormatError(
            f"expected {len(distribution)} placements for distribution {list(distribution)}, got {count}"
        )
    placements = tuple([_parse_placement(table.entry(1, k)) for k in range(count)])
    coordinates: dict[Coordinate, None] = {}
    for k in range(table.count(2)):
        at = _parse_coordinate(table.entry(2, k), mesh_shape)
        if at in coordinates:
            raise FileFormatError(f"the topology lists device {at} twice")
        coordinates[at] = None
    return Topology(distribution, placements, tuple(coordinates))


def _parse_placement(table: FlatTable) -> int | None:
    kind = table.number(0, "B")
    if kind not in (_REPLICATED, _CUT):
        raise FileFormatError(f"unknown mesh placement {kind}; expected 0 (replicate) or 1 (shard)")
    return table.number(1, "i") if kind == _CUT else None


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
    kind = PageLayout.TILE if tile else PageLayout.ROW_MAJOR
    memory = _parse_memory(_require(layout.table(3), "memory config"))
    alignment = layout.numbers(4, _MAX_DIMENSIONS)
    plain = TensorSpec(shape, _DTYPES[code], kind, tile, memory)
    if alignment in ((), plain.default_alignment):
        return plain
    return TensorSpec(shape, _DTYPES[code], kind, tile, memory, alignment=alignment)


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
    return MemoryConfig(layout, buffer, shards, nd_shards, made_with_nd)


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
    kinds = [(_REPLICATED, -1) if cut is None else (_CUT, cut) for cut in topology.placements]
    placements = [{0: FlatNumber("B", kind), 1: FlatNumber("i", cut)} for kind, cut in kinds]
    return {0: {0: topology.distribution}, 1: placements, 2: [{0: at} for at in topology.coordinates]}


def _memory_fields(memory: MemoryConfig) -> dict[int, Field]:
    fields: dict[int, Field] = {
        0: FlatNumber("H", memory.memory_layout.value),
        1: FlatNumber("H", memory.buffer_type.value),
        4: FlatNumber("B", memory.made_with_nd),
    }
    if (matrix := memory.shard_spec) is not None:
        height, width = (FlatNumber("I", n) for n in matrix.shape)
        fields[2] = {0: _core_fields(matrix.grid), 1: height, 2: width, 3: FlatNumber("B", matrix.orientation.value)}
    if (general := memory.nd_shard_spec) is not None:
        order, distribution = (FlatNumber("B", kind.value) for kind in (general.orientation, general.distribution))
        fields[3] = {0: general.shape, 1: _core_fields(general.grid), 2: order, 3: distribution}
    return fields


def _core_fields(cores: CoreRangeSet) -> dict[int, Field]:
    corners = [[{0: FlatNumber("i", x), 1: FlatNumber("i", y)} for x, y in (box.start, box.end)] for box in cores]
    return {0: [{0: start, 1: end} for start, end in corners]}
