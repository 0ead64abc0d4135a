# SPDX-License-Identifier: Apache-2.0
"""The structures that ttnn prints: cores, shapes, tiles, shards, memory configs and tensor specs, each at a cursor.

None of these functions calls itself: the depth of a text is that of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .._json import parse_json
from .._text import MAX_RANK, TextCursor
from ..errors import FileFormatError
from ..formats import format_of
from ..memory import (
    BufferType,
    CoreCoord,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NamedEnum,
    NdShardSpec,
    PageLayout,
    Shape,
    ShardDistribution,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
    TensorSpec,
    Tile,
)
from .ttnn_json import MAX_RANGES, enum_member, limited_range, make_memory_config, nd_shard_spec_from_json

WORD = re.compile(r"\w+(?:(?:::|\.)\w+)*", re.ASCII)  # with name spaces, as in tt::tt_metal::BufferType::DRAM
_NAME = re.compile(r"\w+", re.ASCII)
DASHED_CORE = re.compile(r"(\d{1,20})-(\d{1,20})(?![\w-])", re.ASCII)
_OLDER_CORE = re.compile(r"\(\s*x\s*=\s*(\d{1,20})\s*,\s*y\s*=\s*(\d{1,20})\s*\)", re.ASCII)
_JSON_CORE = r"\{\s*\"x\"\s*:\s*(\d{1,20})\s*,\s*\"y\"\s*:\s*(\d{1,20})\s*\}"
# ShardSpec leaves out the last brace of every range
_JSON_RANGE = re.compile(rf"\{{\s*\"start\"\s*:\s*{_JSON_CORE}\s*,\s*\"end\"\s*:\s*{_JSON_CORE}(?:\s*\}})?", re.ASCII)
_NULL = "std::nullopt"
# Fields that mean something only if they are on.
IGNORED_IF_OFF = ("per_core_allocation", "range_lockstep_allocation", "physical_shard_shape", "halo")
OFF = ("", "0", _NULL)


def enum_value(kind: str, name: str) -> Any:
    """Return the member `name` of the library's enum for the enum `kind` of ttnn, or the number format.

    >>> enum_value("BufferType", "L1"), enum_value("DataType", "BFLOAT16")
    (BufferType.L1, format_of('bfloat16'))
    """
    enum = ENUMS[kind]
    return format_of(name.lower()) if enum is None else enum_member(enum, name)


ENUMS: dict[str, type[NamedEnum] | None] = {
    "BufferType": BufferType,
    "DataType": None,  # a number format
    "Layout": PageLayout,
    "ShardDistributionStrategy": ShardDistribution,
    "ShardOrientation": ShardOrientation,
    "ShardStrategy": ShardStrategy,
    "TensorMemoryLayout": TensorMemoryLayout,
}


def _read_enum(cursor: TextCursor, kind: str) -> Any:
    """Return a member of the enum `kind`, which its text must name."""
    start = cursor.skip_space()
    words = cursor.take(WORD, f"a {kind}").replace("::", ".").split(".")
    if len(words) < 2 or words[-2] != kind:
        cursor.at = start
        cursor.fail(f"a {kind}")
    return enum_value(kind, words[-1])


# Cores


def read_core(cursor: TextCursor) -> CoreCoord:
    """Return the core at a `cursor`.

    >>> read_core(TextCursor("7-3", "a core")), read_core(TextCursor("(x=7,y=3)", "a core"))
    (CoreCoord(x=7, y=3), CoreCoord(x=7, y=3))
    """
    found = cursor.match(DASHED_CORE) or cursor.match(_OLDER_CORE)
    if not found:
        cursor.fail("a core such as 7-3 or (x=7,y=3)")
    return CoreCoord(int(found[1]), int(found[2]))


def read_core_range(cursor: TextCursor) -> CoreRange:
    """Return the core range at a `cursor`.

    >>> read_core_range(TextCursor("[0-0 - 7-7]", "a range"))
    CoreRange((0, 0), (7, 7))
    """
    if found := cursor.match(_JSON_RANGE):
        x0, y0, x1, y1 = map(int, found.groups())
        return limited_range((x0, y0), (x1, y1))
    cursor.expect("[")
    start = read_core(cursor)
    cursor.expect("-")
    end = read_core(cursor)
    cursor.expect("]")
    return limited_range(start, end)


def read_core_set(cursor: TextCursor) -> CoreRangeSet:
    """Return the core ranges at a `cursor`: in braces, or in brackets as in a shard spec.

    >>> read_core_set(TextCursor("{[0-0 - 7-0], [0-1 - 1-1]}", "cores")).num_cores
    10
    """
    closing = "]" if cursor.accept("[") else "}"
    if closing == "}":
        cursor.expect("{")
    return CoreRangeSet(cursor.items(closing, lambda: read_core_range(cursor), MAX_RANGES))


# Shapes and tiles


def _read_extents(cursor: TextCursor) -> tuple[int, ...]:
    return cursor.integers("{", "}") if cursor.peek("{") else cursor.integers("[", "]")


def _read_shape(cursor: TextCursor, _extra: dict[str, str] | None = None) -> Shape:
    """Return Shape([2, 33]), or with the padded extents as in Shape([14[32], 28[32]])."""
    cursor.expect("(")
    cursor.expect("[")

    def read_extents() -> tuple[int, int]:
        logical = padded = cursor.integer("an extent")
        if cursor.accept("["):
            padded = cursor.integer("a padded extent")
            cursor.expect("]")
        return logical, padded

    extents = cursor.items("]", read_extents)
    cursor.expect(")")
    return Shape([logical for logical, _ in extents], [padded for _, padded in extents])


def _read_tile(cursor: TextCursor, extra: dict[str, str]) -> Tile:
    """Return Tile with shape: [16, 32], or Tile(tile_shape={16, 32},...); neither says whether it is transposed."""
    if cursor.accept("with shape:"):
        return Tile(_read_extents(cursor)).require_on_chips()
    fields = _read_fields(
        cursor, {"tile_shape": _read_extents, "face_shape": _read_extents, "num_faces": TextCursor.integer}, extra
    )
    tile = Tile(_require(cursor, fields, "tile_shape")).require_on_chips()
    for name, own in (("face_shape", tile.face_shape), ("num_faces", tile.num_faces)):
        if fields.get(name, own) != own:
            raise FileFormatError(f"{cursor.name}: a tile of {tile} has {name} {own}, got {fields[name]}")
    return tile


# Structures with fields


_Reader = Callable[[TextCursor], Any]


def _read_fields(cursor: TextCursor, readers: dict[str, _Reader], extra: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a structure in parentheses or braces; those without a reader go to `extra` as they are."""
    closing = ")" if cursor.accept("(") else "}"
    if closing == "}":
        cursor.expect("{")
    fields: dict[str, Any] = {}
    while not cursor.accept(closing):
        if fields:
            cursor.expect(",")
        name = cursor.take(_NAME, "the name of a field")
        if name in fields:
            raise FileFormatError(f"{cursor.name}: field {name!r} before character {cursor.at + 1} is there twice")
        if len(fields) == MAX_RANK:
            cursor.fail(f"at most {MAX_RANK} fields")
        cursor.expect("=")
        if name not in readers:
            fields[name] = cursor.raw()
            if name not in IGNORED_IF_OFF or fields[name] not in OFF:
                extra[name] = fields[name]
        elif cursor.accept(_NULL):
            fields[name] = None
        else:
            fields[name] = readers[name](cursor)
    return fields


def _require(cursor: TextCursor, fields: dict[str, Any], name: str) -> Any:
    if fields.get(name) is None:
        raise FileFormatError(f"{cursor.name}: field {name!r} is missing before character {cursor.at + 1}")
    return fields[name]


def _class_reader(name: str, extra: dict[str, str]) -> _Reader:
    """Return the reader of a structure whose name precedes its fields."""

    def read(cursor: TextCursor) -> Any:
        start = cursor.skip_space()
        if cursor.take(WORD, f"a {name}").split("::")[-1] != name:
            cursor.at = start
            cursor.fail(f"a {name}")
        return STRUCTURES[name](cursor, extra)

    return read


def _enum_reader(kind: str) -> _Reader:
    return lambda cursor: _read_enum(cursor, kind)


def _read_shard_spec(cursor: TextCursor, extra: dict[str, str]) -> ShardSpec:
    readers: dict[str, _Reader] = {
        "grid": read_core_set,
        "shape": _read_extents,
        "orientation": _enum_reader("ShardOrientation"),
    }
    fields = _read_fields(cursor, readers, extra)
    grid, shape, orientation = [_require(cursor, fields, name) for name in readers]
    return ShardSpec(grid, shape, orientation)


def _read_nd_shard_spec(cursor: TextCursor) -> NdShardSpec:
    """Return the object of JSON that comes next, as shards."""
    start = cursor.skip_space()
    if not cursor.peek("{"):
        cursor.fail("an NdShardSpec")
    text = cursor.raw()  # up to the comma after it
    return nd_shard_spec_from_json(parse_json(text, f"{cursor.name}: the nd_shard_spec at character {start + 1}"))


def _read_memory_config(cursor: TextCursor, extra: dict[str, str]) -> MemoryConfig:
    readers: dict[str, _Reader] = {
        "memory_layout": _enum_reader("TensorMemoryLayout"),
        "buffer_type": _enum_reader("BufferType"),
        "shard_spec": _class_reader("ShardSpec", extra),
        "nd_shard_spec": _read_nd_shard_spec,
        "created_with_nd_shard_spec": TextCursor.integer,
    }
    fields = _read_fields(cursor, readers, extra)
    matrix, general = fields.get("shard_spec"), fields.get("nd_shard_spec")
    made_with_nd = fields.get("created_with_nd_shard_spec", matrix is None and general is not None)
    layout, buffer = _require(cursor, fields, "memory_layout"), _require(cursor, fields, "buffer_type")
    return make_memory_config(layout, buffer, matrix, general, bool(made_with_nd))


def _read_alignment(cursor: TextCursor) -> tuple[int, ...]:
    cursor.expect("Alignment(")
    alignment = _read_extents(cursor)
    cursor.expect(")")
    return alignment


def _read_page_config(cursor: TextCursor, extra: dict[str, str]) -> Tile | None:
    """Return the tile, or None for rows."""
    cursor.expect("PageConfig(config=")
    tile = None
    if cursor.accept("RowMajorPageConfig("):
        if cursor.accept("tile="):  # in older texts, where it means nothing
            _class_reader("Tile", extra)(cursor)
    else:
        cursor.expect("TilePageConfig(tile=")
        tile = _class_reader("Tile", extra)(cursor)
    cursor.expect(")")
    cursor.expect(")")
    return tile


def _read_tensor_spec(cursor: TextCursor, extra: dict[str, str]) -> TensorSpec:
    inner: dict[str, _Reader] = {
        "dtype": _enum_reader("DataType"),
        "page_config": lambda at: _read_page_config(at, extra),
        "memory_config": _class_reader("MemoryConfig", extra),
        "alignment": _read_alignment,
    }

    def read_layout(at: TextCursor) -> dict[str, Any]:
        at.expect("TensorLayout")
        return _read_fields(at, inner, extra)

    readers: dict[str, _Reader] = {"logical_shape": _class_reader("Shape", extra), "tensor_layout": read_layout}
    fields = _read_fields(cursor, readers, extra)
    shape, layout = _require(cursor, fields, "logical_shape"), _require(cursor, fields, "tensor_layout")
    if "page_config" not in layout:
        _require(cursor, layout, "page_config")
    dtype, config = _require(cursor, layout, "dtype"), _require(cursor, layout, "memory_config")
    tile = layout["page_config"]
    spec = TensorSpec(shape.logical, dtype, "row_major" if tile is None else "tile", tile, config)
    alignment = layout.get("alignment")
    return spec if alignment in (None, spec.default_alignment) else spec.replace(alignment=alignment)


def _read_tensor(cursor: TextCursor, extra: dict[str, str]) -> TensorSpec:
    """Return the spec of a tensor; its storage comes first, and says nothing that the spec does not."""
    found = _TENSOR_SPEC.search(cursor.text, cursor.at)
    if not found:
        cursor.fail("a tensor with a tensor_spec")
    cursor.expect("(")
    while cursor.at < found.start() and not cursor.peek(found[0]):
        name = cursor.take(_NAME, "the name of a field")
        cursor.expect("=")
        value = cursor.raw()
        if name != "storage" or not _STORAGE.fullmatch(value):
            extra[name] = value
        if cursor.at < found.start():
            cursor.expect(",")
    cursor.at = found.end()  # also if the brackets of the storage do not match, as those of older shards
    spec: TensorSpec = _class_reader("TensorSpec", extra)(cursor)
    cursor.expect(")")
    return spec


_TENSOR_SPEC = re.compile(r"\btensor_spec=")
_STORAGE = re.compile(r"(?:Multi|Host|Device|Owned|Borrowed)*Storage\(\)", re.ASCII)

STRUCTURES: dict[str, Callable[[TextCursor, dict[str, str]], Any]] = {
    "MemoryConfig": _read_memory_config,
    "Shape": _read_shape,
    "ShardSpec": _read_shard_spec,
    "Tensor": _read_tensor,
    "TensorSpec": _read_tensor_spec,
    "Tile": _read_tile,
}
