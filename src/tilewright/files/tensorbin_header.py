# SPDX-License-Identifier: Apache-2.0
"""The header of a tensorbin file: a flatbuffer that holds a tensor spec and where each device's bytes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from ..errors import FileFormatError, FormatError
from ..formats import Format
from ..memory import (
    BufferType,
    CoreCoord,
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
)
from .flatbuffer import Field, Number, Structure, Table, encode
from .mesh import Coordinate, Topology

_DTYPES = ("bfloat16", "float32", "uint32", "bfloat8_b", "bfloat4_b", "uint8", "uint16", "int32", "int8")
_ROW_MAJOR_PAGES, _TILE_PAGES = 1, 2
_IN_THIS_FILE = 1
_REPLICATED, _CUT = 0, 1

# Bounds of what makes sense, so that a damaged header costs neither time nor memory beyond its own size.
_MOST_DIMENSIONS = 32
_MOST_RANGES = 1024
_MOST_CORES_ALONG = 1024

_Kind = TypeVar("_Kind", bound=Enum)


class Extent(NamedTuple):
    """Where a device's bytes are, counted from the start of the data.

    >>> Extent(64, 4096).offset
    64
    """

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a tensorbin file says about its tensor: the spec of each device's part, the mesh, and where the parts are.

    >>> spec = TensorSpec((5, 7), "float32")
    >>> header = Header(spec, (1, 1), {(0, 0): Extent(0, 140)}, Topology.replicated([(0, 0)]))
    >>> decode_header(encode_header(header)) == header
    True
    """

    spec: TensorSpec
    mesh_shape: tuple[int, ...]
    extents: Mapping[Coordinate, Extent]
    topology: Topology


def dtype_code(dtype: Format) -> int:
    """Return the number that a file stores for a number format.

    >>> from tilewright import format_of
    >>> dtype_code(format_of("int8"))
    8
    """
    if dtype.name not in _DTYPES:
        raise FormatError(f"a tensorbin file cannot hold {dtype}; convert it to one of {', '.join(_DTYPES)}")
    return _DTYPES.index(dtype.name)


# Reading.


def decode_header(data: bytes | memoryview) -> Header:
    """Return what a header says, or raise a `FileFormatError`.

    >>> try:
    ...     decode_header(encode({}))
    ... except FileFormatError as problem:
    ...     print(problem)
    the header has no tensor spec
    """
    root = Table.root(data)
    spec = _spec(_needed(root.table(0), "tensor spec"))
    mesh_shape = _needed(root.table(1), "mesh shape").numbers(0, _MOST_DIMENSIONS)
    extents: dict[Coordinate, Extent] = {}
    for index in range(root.count(2)):
        shard = root.entry(2, index)
        at = _coordinate(_needed(shard.table(2), "mesh coordinate"), mesh_shape)
        if at in extents:
            raise FileFormatError(f"two shards are for the device {at}")
        if shard.number(0, "B") != _IN_THIS_FILE:
            raise FileFormatError(f"the shard of device {at} is not stored in this file (kind {shard.number(0, 'B')})")
        extents[at] = Extent(*_needed(shard.structure(1, "QQ"), "place of a shard"))
    table = root.table(3)
    topology = Topology.replicated(extents) if table is None else _topology(table, mesh_shape)
    return Header(spec, mesh_shape, extents, topology)


def _needed(thing: Any, what: str) -> Any:
    if thing is None:
        raise FileFormatError(f"the header has no {what}")
    return thing


def _choice(kind: type[_Kind], number: int) -> _Kind:
    try:
        return kind(number)
    except ValueError:
        known = ", ".join(f"{each.value} {each.name}" for each in kind)
        raise FileFormatError(f"{number} is no {kind.__name__}; known are {known}") from None


def _coordinate(table: Table, mesh_shape: tuple[int, ...]) -> Coordinate:
    at = table.numbers(0, _MOST_DIMENSIONS)
    if len(at) != len(mesh_shape) or any(c >= n for c, n in zip(at, mesh_shape, strict=True)):
        raise FileFormatError(f"device {at} is outside the mesh {list(mesh_shape)}")
    return at


def _topology(table: Table, mesh_shape: tuple[int, ...]) -> Topology:
    distribution = _needed(table.table(0), "distribution shape").numbers(0, _MOST_DIMENSIONS)
    count = table.count(1, _MOST_DIMENSIONS)
    if count != len(distribution):
        raise FileFormatError(
            f"a distribution of {list(distribution)} needs {len(distribution)} placements, not {count}"
        )
    placements = tuple([_cut_dimension(table.entry(1, k)) for k in range(count)])
    coordinates: dict[Coordinate, None] = {}
    for k in range(table.count(2)):
        at = _coordinate(table.entry(2, k), mesh_shape)
        if at in coordinates:
            raise FileFormatError(f"the topology names the device {at} twice")
        coordinates[at] = None
    return Topology(distribution, placements, tuple(coordinates))


def _cut_dimension(table: Table) -> int | None:
    kind = table.number(0, "B")
    if kind not in (_REPLICATED, _CUT):
        raise FileFormatError(f"{kind} is no way to place a tensor on a mesh; known are 0 replicate, 1 shard")
    return table.number(1, "i") if kind == _CUT else None


def _spec(table: Table) -> TensorSpec:
    shape = table.numbers(0, _MOST_DIMENSIONS)
    layout = _needed(table.table(1), "tensor layout")
    code = layout.number(0, "B")
    if code >= len(_DTYPES):
        raise FileFormatError(f"{code} is no data type; known are 0 to {len(_DTYPES) - 1}")
    tile = None
    pages = layout.number(1, "B")
    if pages == _TILE_PAGES:
        tile = _tile(_needed(layout.table(2), "tile"))
    elif pages != _ROW_MAJOR_PAGES:
        raise FileFormatError(f"{pages} is no kind of page; known are 1 row-major, 2 tile")
    kind = PageLayout.TILE if tile else PageLayout.ROW_MAJOR
    memory = _memory(_needed(layout.table(3), "memory config"))
    alignment = layout.numbers(4, _MOST_DIMENSIONS)
    plain = TensorSpec(shape, _DTYPES[code], kind, tile, memory)
    if alignment in ((), usual_alignment(plain)):
        return plain
    return TensorSpec(shape, _DTYPES[code], kind, tile, memory, alignment=alignment)


def usual_alignment(spec: TensorSpec) -> tuple[int, ...]:
    """Return the alignment of a tensor that was given none: its tile, or the width of its shards, or nothing.

    >>> usual_alignment(TensorSpec((5, 7), page_layout="tile")), usual_alignment(TensorSpec((5, 7)))
    ((32, 32), (1,))
    """
    if spec.page_layout is PageLayout.TILE:
        return spec.tile.shape
    sharding = spec.memory.sharding
    return (1,) if sharding is None else sharding.shape[-1:]


def _tile(pages: Table) -> Tile:
    table = pages.table(0)
    if table is None:
        return Tile()
    return Tile((table.number(0, "I"), table.number(1, "I")), bool(table.number(2, "B")))


def _memory(table: Table) -> MemoryConfig:
    layout = _choice(TensorMemoryLayout, table.number(0, "H"))
    buffer = _choice(BufferType, table.number(1, "H"))
    matrix, general = table.table(2), table.table(3)
    shards = (
        None
        if matrix is None
        else ShardSpec(
            _cores(matrix, 0),
            (matrix.number(1, "I"), matrix.number(2, "I")),
            _choice(ShardOrientation, matrix.number(3, "B")),
        )
    )
    nd_shards = (
        None
        if general is None
        else NdShardSpec(
            general.numbers(0, _MOST_DIMENSIONS),
            _cores(general, 1),
            _choice(ShardOrientation, general.number(2, "B")),
            _choice(ShardDistribution, general.number(3, "B")),
        )
    )
    made_with_nd = bool(table.number(4, "B")) or (shards is None and nd_shards is not None)
    return MemoryConfig(layout, buffer, shards, nd_shards, made_with_nd)


def _cores(owner: Table, field: int) -> CoreRangeSet:
    table = _needed(owner.table(field), "core range set")
    count = table.count(0, _MOST_RANGES)
    return CoreRangeSet([CoreRange(_core(table.entry(0, k), 0), _core(table.entry(0, k), 1)) for k in range(count)])


def _core(owner: Table, field: int) -> tuple[int, int]:
    table = _needed(owner.table(field), "corner of a core range")
    at = (table.number(0, "i"), table.number(1, "i"))
    if not all(0 <= c < _MOST_CORES_ALONG for c in at):
        raise FileFormatError(f"core {at} is on no chip; coordinates run from 0 to {_MOST_CORES_ALONG - 1}")
    return at


# Writing.


def encode_header(header: Header) -> bytes:
    """Return the flatbuffer of a header, without padding at its end.

    >>> spec = TensorSpec((5, 7), "float32")
    >>> len(encode_header(Header(spec, (1, 1), {(0, 0): Extent(0, 140)}, Topology.replicated([(0, 0)])))) < 400
    True
    """
    spec = header.spec
    tiled = spec.page_layout is PageLayout.TILE
    size = {0: Number("I", spec.tile.height), 1: Number("I", spec.tile.width), 2: Number("B", spec.tile.transpose)}
    layout: dict[int, Field] = {
        0: Number("B", dtype_code(spec.dtype)),
        1: Number("B", _TILE_PAGES if tiled else _ROW_MAJOR_PAGES),
        2: {0: size} if tiled else {},
        3: _memory_fields(spec.memory),
        4: spec.alignment or usual_alignment(spec),
    }
    shards = [
        {0: Number("B", _IN_THIS_FILE), 1: Structure("QQ", extent), 2: {0: at}} for at, extent in header.extents.items()
    ]
    return encode(
        {
            0: {0: spec.shape.logical, 1: layout},
            1: {0: header.mesh_shape},
            2: shards,
            3: _topology_fields(header.topology),
        }
    )


def _topology_fields(topology: Topology) -> dict[int, Field]:
    placements = [
        {0: Number("B", _REPLICATED), 1: Number("i", -1)}
        if cut is None
        else {0: Number("B", _CUT), 1: Number("i", cut)}
        for cut in topology.placements
    ]
    return {0: {0: topology.distribution}, 1: placements, 2: [{0: at} for at in topology.coordinates]}


def _memory_fields(memory: MemoryConfig) -> dict[int, Field]:
    matrix, general = memory.shard_spec, memory.nd_shard_spec
    return {
        0: Number("H", memory.memory_layout.value),
        1: Number("H", memory.buffer_type.value),
        2: None
        if matrix is None
        else {
            0: _core_fields(matrix.grid),
            1: Number("I", matrix.shape[0]),
            2: Number("I", matrix.shape[1]),
            3: Number("B", matrix.orientation.value),
        },
        3: None
        if general is None
        else {
            0: general.shape,
            1: _core_fields(general.grid),
            2: Number("B", general.orientation.value),
            3: Number("B", general.distribution.value),
        },
        4: Number("B", memory.made_with_nd),
    }


def _core_fields(cores: CoreRangeSet) -> dict[int, Field]:
    return {0: [{0: _corner(each.start), 1: _corner(each.end)} for each in cores]}


def _corner(at: CoreCoord) -> dict[int, Field]:
    return {0: Number("i", at.x), 1: Number("i", at.y)}
