# SPDX-License-Identifier: Apache-2.0
"""Values that ttnn prints, from a log, a report or a database, as objects of the library.

The texts are those of ttnn 0.81.1, and older spellings of cores and shards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import FileFormatError, TilewrightError
from ..files.strict_json import parse_json
from ..formats import BlockFormat, Format, ScalarFormat, format_of
from ..memory import CoreCoord, CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, Shape, ShardSpec, TensorSpec, Tile
from ..memory.memory_config import (
    BufferType,
    NamedEnum,
    PageLayout,
    ShardDistribution,
    ShardOrientation,
    ShardStrategy,
    TensorMemoryLayout,
)
from .text_cursor import MAX_RANK, TextCursor
from .ttnn_json import MAX_CORE, MAX_RANGES, enum_member, make_memory_config, nd_shard_spec_from_json, value_from_json

_Value = TypeVar("_Value")

_WORD = re.compile(r"\w+(?:(?:::|\.)\w+)*", re.ASCII)  # with name spaces, as in tt::tt_metal::BufferType::DRAM
_NAME = re.compile(r"\w+", re.ASCII)
_DASHED_CORE = re.compile(r"(\d{1,9})-(\d{1,9})(?![\w-])", re.ASCII)
_OLDER_CORE = re.compile(r"\(\s*x\s*=\s*(\d{1,9})\s*,\s*y\s*=\s*(\d{1,9})\s*\)", re.ASCII)
_JSON_CORE = r"\{\s*\"x\"\s*:\s*(\d{1,9})\s*,\s*\"y\"\s*:\s*(\d{1,9})\s*\}"
# ShardSpec leaves out the last brace of every range
_JSON_RANGE = re.compile(rf"\{{\s*\"start\"\s*:\s*{_JSON_CORE}\s*,\s*\"end\"\s*:\s*{_JSON_CORE}(?:\s*\}})?", re.ASCII)
_NULL = "std::nullopt"


@dataclass(frozen=True, slots=True)
class TtnnText:
    """What a text of ttnn says: its `kind` there, the `value` here, and as `extra` what the value has no field for.

    >>> parse_ttnn(" ShardOrientation.COL_MAJOR ")
    TtnnText(kind='ShardOrientation', value=ShardOrientation.COL_MAJOR, extra=())
    """

    kind: str  # the name of the type in ttnn
    value: Any  # of the library's type for that kind
    extra: tuple[tuple[str, Any], ...] = ()  # names and texts of fields, unless they are 0 or std::nullopt

    @property
    def has_placement(self) -> bool:
        """Return whether a memory config says where pages are: a sharded memory layout alone does not.

        >>> parse_ttnn(
        ...     "MemoryConfig(memory_layout=TensorMemoryLayout::BLOCK_SHARDED,buffer_type=BufferType::L1,"
        ...     "shard_spec=std::nullopt)"
        ... ).has_placement
        False
        """
        config = self.value.memory if isinstance(self.value, TensorSpec) else self.value
        return not isinstance(config, MemoryConfig) or not config.is_sharded or config.sharding is not None


def parse_ttnn(text: str) -> TtnnText:
    """Return what a printed value of ttnn says: cores, shapes, tiles, shards, memory configs, specs and enums.

    `text` is what print() shows, what `to_json` returns, or an older spelling; white space around it does not matter.

    >>> parse_ttnn("{[0-0 - 7-0], [0-1 - 1-1]}").value
    CoreRangeSet([CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))])
    >>> parse_ttnn("{[(x=0,y=0) - (x=7,y=7)]}").value.num_cores
    64
    >>> parse_ttnn('{"x":7,"y":3}').kind
    'CoreCoord'
    >>> parse_ttnn("Tile with shape: [16, 32]").value
    Tile((16, 32))
    """
    return _parse(text, "a text of ttnn")


def parse_memory_config(text: str) -> MemoryConfig:
    """Return the memory config that ttnn printed as `text`, or wrote as JSON.

    >>> parse_memory_config(
    ...     "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,"
    ...     "shard_spec=std::nullopt)"
    ... )
    MemoryConfig('interleaved', 'l1')
    """
    return _parse_kind(text, MemoryConfig, "a memory config")


def parse_tensor_spec(text: str) -> TensorSpec:
    """Return the tensor spec in a `text` of ttnn's C++ code, as graph reports have it.

    >>> parse_tensor_spec(
    ...     "TensorSpec(logical_shape=Shape([5, 33]),tensor_layout=TensorLayout(dtype=DataType::BFLOAT16,page_config="
    ...     "PageConfig(config=TilePageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4))),"
    ...     "memory_config=MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::DRAM,"
    ...     "shard_spec=std::nullopt),alignment=Alignment([32, 32])))"
    ... )
    TensorSpec((5, 33), 'bfloat16', 'tile')
    """
    return _parse_kind(text, TensorSpec, "a tensor spec")


def parse_core_ranges(text: str) -> CoreRangeSet:
    """Return the core ranges that ttnn printed as `text`; one core or one range is a set of one range.

    >>> parse_core_ranges("{[0-0 - 7-0], [0-1 - 1-1]}").num_cores, parse_core_ranges("7-3").num_cores
    (10, 1)
    """
    value = _parse(text, "core ranges").value
    if isinstance(value, (CoreCoord, CoreRange)):
        return CoreRangeSet([CoreRange(value) if isinstance(value, CoreCoord) else value])
    return _require_kind(value, CoreRangeSet, "core ranges", text)


def parse_shape(text: str) -> Shape:
    """Return the shape that ttnn printed as `text`.

    >>> parse_shape("Shape([1, 1, 32, 32])").logical
    (1, 1, 32, 32)
    """
    return _parse_kind(text, Shape, "a shape")


def parse_dtype(text: str) -> Format:
    """Return the number format that ttnn printed as `text`, in Python's spelling or that of C++.

    >>> parse_dtype("DataType::BFLOAT8_B").name, parse_dtype("DataType.FP8_E4M3").name
    ('bfloat8_b', 'float8_e4m3')
    """
    value = _parse(text, "a data type").value
    if not isinstance(value, (BlockFormat, ScalarFormat)):
        raise FileFormatError(f"expected a data type such as DataType.BFLOAT16, got {text.strip()!r:.60}")
    return value


def _parse_kind(text: str, kind: type[_Value], name: str) -> _Value:
    return _require_kind(_parse(text, name).value, kind, name, text)


def _require_kind(value: Any, kind: type[_Value], name: str, text: str) -> _Value:
    if not isinstance(value, kind):
        raise FileFormatError(f"expected {name}, got {type(value).__name__} {text.strip()!r:.60}")
    return value


def _parse(text: str, name: str) -> TtnnText:
    """Return what the whole text says; every error is a `FileFormatError`."""
    if not isinstance(text, str):
        raise FileFormatError(f"expected {name} as a string, got {type(text).__name__}")
    cursor = TextCursor(text, name)
    try:
        result = _value(cursor)
        cursor.expect_end()
    except FileFormatError:
        raise
    except TilewrightError as problem:  # well-formed, but such a value cannot exist
        raise FileFormatError(f"{name}, before character {cursor.at + 1}: {problem}") from None
    return result


# One value, decided by its first characters. None of these calls itself: the depth of a text is that of its type.


def _value(cursor: TextCursor) -> TtnnText:
    if _starts_json(cursor):
        data = parse_json(cursor.text[cursor.at :].rstrip(), cursor.name)
        cursor.at = len(cursor.text)
        kind, value = value_from_json(data)
        extra = {key: data[key] for key in _UNFIT if kind == "MemoryConfig" and data.get(key)}
        return TtnnText(kind, value, tuple(extra.items()))
    if cursor.peek("{"):
        return TtnnText("CoreRangeSet", _core_ranges(cursor))
    if cursor.peek("["):
        return TtnnText("CoreRange", _core_range(cursor))
    if cursor.peek("(") or _DASHED_CORE.match(cursor.text, cursor.skip_space()):
        return TtnnText("CoreCoord", _core(cursor))
    is_bracketed = cursor.accept("<")  # <DataType.BFLOAT16: 0>
    words = cursor.take(_WORD, "a value of ttnn").replace("::", ".").split(".")
    kind = words[-1]
    if kind in _CLASSES and not is_bracketed:
        extra = {}
        value = _CLASSES[kind](cursor, extra)
        return TtnnText(kind, value, tuple(extra.items()))
    if len(words) < 2 or words[-2] not in _ENUMS:
        cursor.fail(f"a value of a known type after {'.'.join(words)[:60]!r}")
    if is_bracketed:
        cursor.expect(":")
        cursor.integer()
        cursor.expect(">")
    return TtnnText(words[-2], _member(words[-2], kind))


def _starts_json(cursor: TextCursor) -> bool:
    rest = cursor.text[cursor.skip_space() : cursor.at + 64].translate(_BLANKS)
    return rest.startswith(('{"', '[{"', "[]"))


_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))
_UNFIT = ("per_core_allocation", "range_lockstep_allocation")


def _member(kind: str, name: str) -> Any:
    """Return the member `name` of the library's enum for one of ttnn, or the number format."""
    enum = _ENUMS[kind]
    return format_of(name.lower()) if enum is None else enum_member(enum, name)


_ENUMS: dict[str, type[NamedEnum] | None] = {
    "BufferType": BufferType,
    "DataType": None,  # a number format
    "Layout": PageLayout,
    "ShardDistributionStrategy": ShardDistribution,
    "ShardOrientation": ShardOrientation,
    "ShardStrategy": ShardStrategy,
    "TensorMemoryLayout": TensorMemoryLayout,
}


def _enum(cursor: TextCursor, kind: str) -> Any:
    """Return a member of the enum `kind`, which its text must name."""
    start = cursor.skip_space()
    words = cursor.take(_WORD, f"a {kind}").replace("::", ".").split(".")
    if len(words) < 2 or words[-2] != kind:
        cursor.at = start
        cursor.fail(f"a {kind}")
    return _member(kind, words[-1])


# Cores


def _core(cursor: TextCursor) -> CoreCoord:
    found = cursor.match(_DASHED_CORE) or cursor.match(_OLDER_CORE)
    if not found:
        cursor.fail("a core such as 7-3 or (x=7,y=3)")
    return _checked_core(cursor, found[1], found[2])


def _checked_core(cursor: TextCursor, x: str, y: str) -> CoreCoord:
    if max(int(x), int(y)) > MAX_CORE:
        raise FileFormatError(
            f"{cursor.name}: core ({x}, {y}) before character {cursor.at + 1} is on no chip: x and y are at most"
            f" {MAX_CORE}"
        )
    return CoreCoord(int(x), int(y))


def _core_range(cursor: TextCursor) -> CoreRange:
    if found := cursor.match(_JSON_RANGE):
        return CoreRange(_checked_core(cursor, found[1], found[2]), _checked_core(cursor, found[3], found[4]))
    cursor.expect("[")
    start = _core(cursor)
    cursor.expect("-")
    end = _core(cursor)
    cursor.expect("]")
    return CoreRange(start, end)


def _core_ranges(cursor: TextCursor) -> CoreRangeSet:
    """Return ranges in braces, or in brackets as in a shard spec."""
    closing = "]" if cursor.accept("[") else "}"
    if closing == "}":
        cursor.expect("{")
    ranges: list[CoreRange] = []
    while not cursor.accept(closing):
        if ranges:
            cursor.expect(",")
        if len(ranges) == MAX_RANGES:
            cursor.fail(f"at most {MAX_RANGES} core ranges")
        ranges.append(_core_range(cursor))
    return CoreRangeSet(ranges)


# Shapes and tiles


def _extents(cursor: TextCursor) -> tuple[int, ...]:
    return cursor.integers("{", "}") if cursor.peek("{") else cursor.integers("[", "]")


def _shape(cursor: TextCursor, _extra: dict[str, str] | None = None) -> Shape:
    """Return Shape([2, 33]), or with the padded extents as in Shape([14[32], 28[32]])."""
    cursor.expect("(")
    cursor.expect("[")
    logical: list[int] = []
    padded: list[int] = []
    while not cursor.accept("]"):
        if logical:
            cursor.expect(",")
        if len(logical) == MAX_RANK:
            cursor.fail(f"at most {MAX_RANK} extents")
        logical.append(cursor.integer("an extent"))
        padded.append(logical[-1])
        if cursor.accept("["):
            padded[-1] = cursor.integer("a padded extent")
            cursor.expect("]")
    cursor.expect(")")
    return Shape(logical, padded)


def _tile(cursor: TextCursor, extra: dict[str, str]) -> Tile:
    """Return Tile with shape: [16, 32], or Tile(tile_shape={16, 32},...); neither says whether it is transposed."""
    if cursor.accept("with shape:"):
        return Tile(_extents(cursor)).require_on_chips()
    fields = _fields(cursor, {"tile_shape": _extents, "face_shape": _extents, "num_faces": TextCursor.integer}, extra)
    tile = Tile(_required(cursor, fields, "tile_shape")).require_on_chips()
    for name, own in (("face_shape", tile.face_shape), ("num_faces", tile.num_faces)):
        if fields.get(name, own) != own:
            raise FileFormatError(f"{cursor.name}: a tile of {tile} has {name} {own}, got {fields[name]}")
    return tile


# Structures with fields


_Reader = Callable[[TextCursor], Any]


def _fields(cursor: TextCursor, readers: dict[str, _Reader], extra: dict[str, str]) -> dict[str, Any]:
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
        if cursor.accept(_NULL):
            fields[name] = None
        elif name in readers:
            fields[name] = readers[name](cursor)
        else:
            fields[name] = cursor.raw()
            if fields[name] not in ("", "0"):
                extra[name] = fields[name]
    return fields


def _required(cursor: TextCursor, fields: dict[str, Any], name: str) -> Any:
    if fields.get(name) is None:
        raise FileFormatError(f"{cursor.name}: field {name!r} is missing before character {cursor.at + 1}")
    return fields[name]


def _class_reader(name: str, extra: dict[str, str]) -> _Reader:
    """Return the reader of a structure whose name precedes its fields."""

    def read(cursor: TextCursor) -> Any:
        start = cursor.skip_space()
        if cursor.take(_WORD, f"a {name}").split("::")[-1] != name:
            cursor.at = start
            cursor.fail(f"a {name}")
        return _CLASSES[name](cursor, extra)

    return read


def _enum_reader(kind: str) -> _Reader:
    return lambda cursor: _enum(cursor, kind)


def _shard_spec(cursor: TextCursor, extra: dict[str, str]) -> ShardSpec:
    readers: dict[str, _Reader] = {
        "grid": _core_ranges,
        "shape": _extents,
        "orientation": _enum_reader("ShardOrientation"),
    }
    fields = _fields(cursor, readers, extra)
    grid, shape, orientation = [_required(cursor, fields, name) for name in readers]
    return ShardSpec(grid, shape, orientation)


def _nd_shard_spec(cursor: TextCursor) -> NdShardSpec:
    """Return the object of JSON that comes next, as shards."""
    start = cursor.skip_space()
    if not cursor.peek("{"):
        cursor.fail("an NdShardSpec")
    text = cursor.raw()  # up to the comma after it
    return nd_shard_spec_from_json(parse_json(text, f"{cursor.name}: the nd_shard_spec at character {start + 1}"))


def _memory_config(cursor: TextCursor, extra: dict[str, str]) -> MemoryConfig:
    readers: dict[str, _Reader] = {
        "memory_layout": _enum_reader("TensorMemoryLayout"),
        "buffer_type": _enum_reader("BufferType"),
        "shard_spec": _class_reader("ShardSpec", extra),
        "nd_shard_spec": _nd_shard_spec,
        "created_with_nd_shard_spec": TextCursor.integer,
    }
    fields = _fields(cursor, readers, extra)
    matrix, general = fields.get("shard_spec"), fields.get("nd_shard_spec")
    made_with_nd = fields.get("created_with_nd_shard_spec", matrix is None and general is not None)
    layout, buffer = _required(cursor, fields, "memory_layout"), _required(cursor, fields, "buffer_type")
    return make_memory_config(layout, buffer, matrix, general, bool(made_with_nd))


def _alignment(cursor: TextCursor) -> tuple[int, ...]:
    cursor.expect("Alignment(")
    alignment = _extents(cursor)
    cursor.expect(")")
    return alignment


def _page_config(cursor: TextCursor) -> Tile | None:
    """Return the tile, or None for rows."""
    cursor.expect("PageConfig(config=")
    tile = None
    if not cursor.accept("RowMajorPageConfig()"):
        cursor.expect("TilePageConfig(tile=")
        tile = _class_reader("Tile", {})(cursor)
        cursor.expect(")")
    cursor.expect(")")
    return tile


def _tensor_spec(cursor: TextCursor, extra: dict[str, str]) -> TensorSpec:
    inner: dict[str, _Reader] = {
        "dtype": _enum_reader("DataType"),
        "page_config": _page_config,
        "memory_config": _class_reader("MemoryConfig", extra),
        "alignment": _alignment,
    }

    def read_layout(at: TextCursor) -> dict[str, Any]:
        at.expect("TensorLayout")
        return _fields(at, inner, extra)

    readers: dict[str, _Reader] = {"logical_shape": _class_reader("Shape", extra), "tensor_layout": read_layout}
    fields = _fields(cursor, readers, extra)
    shape, layout = _required(cursor, fields, "logical_shape"), _required(cursor, fields, "tensor_layout")
    if "page_config" not in layout:
        _required(cursor, layout, "page_config")
    dtype, config = _required(cursor, layout, "dtype"), _required(cursor, layout, "memory_config")
    tile = layout["page_config"]
    spec = TensorSpec(shape.logical, dtype, "row_major" if tile is None else "tile", tile, config)
    alignment = layout.get("alignment")
    return spec if alignment in (None, spec.default_alignment) else spec.replace(alignment=alignment)


_CLASSES: dict[str, Callable[[TextCursor, dict[str, str]], Any]] = {
    "MemoryConfig": _memory_config,
    "Shape": _shape,
    "ShardSpec": _shard_spec,
    "TensorSpec": _tensor_spec,
    "Tile": _tile,
}
