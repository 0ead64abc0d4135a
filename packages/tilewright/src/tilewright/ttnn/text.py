# SPDX-License-Identifier: Apache-2.0
"""The structures that ttnn prints: cores, shapes, tiles, shards, memory configs and tensor specs, each at a cursor.

None of these functions calls itself: a text nests as deeply as its type.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from .._json import expect_integer, expect_integers, parse_json
from .._text import MAX_RANK, TextCursor
from ..errors import FileFormatError, FormatError, LayoutError, TilewrightError
from ..formats import BlockFormat, Format, ScalarFormat, format_of
from ..memory import (
    AllocationMode,
    BufferType,
    CoreCoord,
    CoreLike,
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

# Values of ttnn from their JSON: what `to_json` writes, where enums are numbers, and the reprs that look like JSON.

MAX_CORE = 1023  # no chip has more columns or rows
MAX_RANGES = 1024

_Member = TypeVar("_Member", bound=NamedEnum)


def enum_member(enum: type[_Member], value: object) -> _Member:
    """Return the member of an enum of type `enum` from `value`: its number, or its name, which a type may precede.

    >>> enum_member(ShardOrientation, 1), enum_member(ShardOrientation, "ShardOrientation::ROW_MAJOR")
    (ShardOrientation.COL_MAJOR, ShardOrientation.ROW_MAJOR)
    """
    if isinstance(value, str):
        words = value.replace("::", ".").split(".")
        if not all(map(str.isidentifier, words)) or not words[-2:][0].startswith((enum.__name__, words[-1])):
            raise FileFormatError(f"expected a {enum.__name__}, got {value!r:.60}")
        return enum.of(words[-1])
    number = expect_integer(value, f"a {enum.__name__}")
    if number not in {member.value for member in enum}:
        members = ", ".join(f"{member.value} ({member.name})" for member in enum)
        raise FileFormatError(f"expected one of {members} as {enum.__name__}, got {number}")
    return enum(number)


def _field(data: object, name: str, of: str) -> Any:
    if not isinstance(data, dict) or name not in data:
        raise FileFormatError(f"expected {of} with a field {name!r}, got {repr(data)[:60]}")
    return data[name]


def _require_only(data: object, names: tuple[str, ...], of: str) -> None:
    """Raise if an object has other fields than these: they would be lost."""
    unknown = sorted(set(data) - set(names)) if isinstance(data, dict) else []
    if unknown:
        raise FileFormatError(f"expected {of} with {', '.join(names)}, got a field {unknown[0]!r:.60} as well")


def core_from_json(data: object) -> CoreCoord:
    """Return a core from `data` such as {"x": 7, "y": 3}.

    >>> core_from_json({"x": 7, "y": 3})
    CoreCoord(x=7, y=3)
    """
    _require_only(data, ("x", "y"), "a core")
    x, y = [expect_integer(_field(data, name, "a core"), f"{name} of a core") for name in ("x", "y")]
    return CoreCoord(x, y)


def core_range_from_json(data: object) -> CoreRange:
    """Return a core range from `data` with fields start and end.

    >>> core_range_from_json({"start": {"x": 0, "y": 0}, "end": {"x": 7, "y": 1}})
    CoreRange((0, 0), (7, 1))
    """
    _require_only(data, ("start", "end"), "a core range")
    start, end = [core_from_json(_field(data, name, "a core range")) for name in ("start", "end")]
    return limited_range(start, end)


def limited_range(start: CoreLike, end: CoreLike) -> CoreRange:
    """Return the core range from `start` to `end`, or raise if no chip is as large: listing its cores would cost much.

    >>> limited_range((0, 0), (7, 7)).size
    64
    """
    cores = CoreRange(start, end)
    if max(cores.end) > MAX_CORE:
        raise FileFormatError(f"core range {cores} is on no chip: x and y must be at most {MAX_CORE}")
    return cores


def core_ranges_from_json(data: object) -> CoreRangeSet:
    """Return core ranges from `data`, a list.

    >>> core_ranges_from_json([{"start": {"x": 0, "y": 0}, "end": {"x": 7, "y": 1}}]).num_cores
    16
    """
    if not isinstance(data, list) or len(data) > MAX_RANGES:
        raise FileFormatError(f"expected a list of at most {MAX_RANGES} core ranges, got {repr(data)[:60]}")
    return CoreRangeSet([core_range_from_json(part) for part in data])


def shard_spec_from_json(data: object) -> ShardSpec:
    """Return two-dimensional shards from `data`.

    >>> shard_spec_from_json({"grid": [], "shape": [32, 64], "orientation": 0}).shape
    (32, 64)
    """
    _require_only(data, ("grid", "shape", "orientation"), "a shard spec")
    orientation = enum_member(ShardOrientation, _field(data, "orientation", "a shard spec"))
    shape = expect_integers(_field(data, "shape", "a shard spec"), "the shape of a shard spec")
    return ShardSpec(core_ranges_from_json(_field(data, "grid", "a shard spec")), shape, orientation)


def nd_shard_spec_from_json(data: Any) -> NdShardSpec:
    """Return shards of any rank from `data`; the text that `to_json` of ttnn writes as their shape is refused.

    >>> nd_shard_spec_from_json({"grid": [], "shard_shape": [1, 64, 64], "orientation": 0}).shape
    (1, 64, 64)
    """
    _require_only(data, ("grid", "shard_shape", "orientation", "shard_distribution_strategy"), "an ND shard spec")
    shape = _field(data, "shard_shape", "an ND shard spec")
    if isinstance(shape, str):
        raise FileFormatError(
            f"this ND shard spec has no shape: ttnn's to_json wrote {shape[:80]!r} in its place; use the text that"
            " print() shows instead"
        )
    return NdShardSpec(
        expect_integers(shape, "the shape of an ND shard spec"),
        core_ranges_from_json(_field(data, "grid", "an ND shard spec")),
        enum_member(ShardOrientation, _field(data, "orientation", "an ND shard spec")),
        enum_member(ShardDistribution, data.get("shard_distribution_strategy", 0)),
    )


def memory_config_from_json(data: Any) -> MemoryConfig:
    """Return a memory config from `data`.

    >>> memory_config_from_json({"buffer_type": 1, "memory_layout": 0})
    MemoryConfig('interleaved', 'l1')
    """
    layout = enum_member(TensorMemoryLayout, _field(data, "memory_layout", "a memory config"))
    buffer = enum_member(BufferType, _field(data, "buffer_type", "a memory config"))
    matrix, general = data.get("shard_spec"), data.get("nd_shard_spec")
    return make_memory_config(
        layout,
        buffer,
        None if matrix is None else shard_spec_from_json(matrix),
        None if general is None else nd_shard_spec_from_json(general),
        bool(data.get("created_with_nd_shard_spec", matrix is None and general is not None)),
        AllocationMode.of_flags(*map(data.get, ALLOCATION_FLAGS)),
    )


def make_memory_config(
    layout: TensorMemoryLayout,
    buffer: BufferType,
    matrix: ShardSpec | None,
    general: NdShardSpec | None,
    made_with_nd: bool,
    allocation: AllocationMode = AllocationMode.LOCKSTEP,
) -> MemoryConfig:
    """Return the config of a printed `layout`, `buffer` and the two forms of shards, `matrix` and `general`.

    With both forms, `made_with_nd` selects the one that decides the placement; `allocation` is the way to an address.

    >>> make_memory_config(TensorMemoryLayout.INTERLEAVED, BufferType.L1, None, None, False)
    MemoryConfig('interleaved', 'l1')
    """
    if made_with_nd and general is None:
        raise FileFormatError("created_with_nd_shard_spec is set, but nd_shard_spec is missing")
    return MemoryConfig(layout, buffer, matrix, general, made_with_nd, allocation)


def value_from_json(data: object) -> tuple[str, object]:
    """Return the ttnn type that `data` is written as, and the object of the library.

    >>> value_from_json({"x": 7, "y": 3})
    ('CoreCoord', CoreCoord(x=7, y=3))
    """
    if isinstance(data, list):
        return "CoreRangeSet", core_ranges_from_json(data)
    for name, field, reader in _READERS:
        if isinstance(data, dict) and field in data:
            return name, reader(data)
    raise FileFormatError(f"expected the JSON of a core, core ranges, shards or a memory config, got {repr(data)[:60]}")


def ttnn_json(value: object) -> str:
    """Return cores, shards or a memory config, `value`, as ttnn writes JSON: without blanks, keys in order.

    >>> ttnn_json(CoreRange((0, 0), (3, 1)))
    '{"end":{"x":3,"y":1},"start":{"x":0,"y":0}}'
    """
    return json.dumps(_json_data(value), separators=(",", ":"), sort_keys=True)


def _json_data(value: object) -> object:
    if isinstance(value, CoreCoord):
        return value._asdict()
    if isinstance(value, NamedEnum):
        return value.value
    if isinstance(value, (tuple, CoreRangeSet)):
        return list(map(_json_data, value))
    if not isinstance(value, (CoreRange, ShardSpec, NdShardSpec, MemoryConfig)):
        return value
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, NdShardSpec):
        fields |= {"shard_shape": fields.pop("shape"), "shard_distribution_strategy": fields.pop("distribution")}
    if isinstance(value, MemoryConfig):
        per_core, in_range = fields.pop("allocation").flags  # ttnn writes the second, newer one only if it is on
        fields |= dict(zip(ALLOCATION_FLAGS, (per_core, in_range or None), strict=True))
        fields |= {"created_with_nd_shard_spec": fields.pop("made_with_nd"), "nd_alone": None}
    return {name: _json_data(field) for name, field in fields.items() if field is not None}


ALLOCATION_FLAGS = ("per_core_allocation", "range_lockstep_allocation")
_FIELDS = ("memory_layout", "buffer_type", "shard_spec", "nd_shard_spec", "created_with_nd_shard_spec")
MEMORY_CONFIG_FIELDS = (*_FIELDS, *ALLOCATION_FLAGS)
_READERS = (  # by a field that only this type has
    ("MemoryConfig", "memory_layout", memory_config_from_json),
    ("NdShardSpec", "shard_shape", nd_shard_spec_from_json),
    ("ShardSpec", "shape", shard_spec_from_json),
    ("CoreRange", "start", core_range_from_json),
    ("CoreCoord", "x", core_from_json),
)


WORD = re.compile(r"\w+(?:(?:::|\.)\w+)*", re.ASCII)  # with name spaces, as in tt::tt_metal::BufferType::DRAM
_NAME = re.compile(r"\w+", re.ASCII)
DASHED_CORE = re.compile(r"(\d{1,20})-(\d{1,20})(?![\w-])", re.ASCII)
_OLDER_CORE = re.compile(r"\(\s*x\s*=\s*(\d{1,20})\s*,\s*y\s*=\s*(\d{1,20})\s*\)", re.ASCII)
_JSON_CORE = r"\{\s*\"x\"\s*:\s*(\d{1,20})\s*,\s*\"y\"\s*:\s*(\d{1,20})\s*\}"
# ShardSpec leaves out the last brace of every range
_JSON_RANGE = re.compile(rf"\{{\s*\"start\"\s*:\s*{_JSON_CORE}\s*,\s*\"end\"\s*:\s*{_JSON_CORE}(?:\s*\}})?", re.ASCII)
_NULL = "std::nullopt"
# Fields that mean something only if they are on.
IGNORED_IF_OFF = ("physical_shard_shape", "halo")
OFF = ("", "0", _NULL)


def enum_value(enum_name: str, name: str) -> NamedEnum | Format:
    """Return the member `name` of the library's enum for the enum `enum_name` of ttnn, or the number format.

    >>> enum_value("BufferType", "L1"), enum_value("DataType", "BFLOAT16")
    (BufferType.L1, format_of('bfloat16'))
    """
    enum = ENUMS[enum_name]
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


def _read_enum(cursor: TextCursor, enum_name: str) -> Any:
    """Return a member of the enum `enum_name`, which its text must name."""
    start = cursor.skip_space()
    words = cursor.take(WORD, f"a {enum_name}").replace("::", ".").split(".")
    if len(words) < 2 or words[-2] != enum_name:
        cursor.at = start
        cursor.fail(f"a {enum_name}")
    return enum_value(enum_name, words[-1])


# Cores


def read_core(cursor: TextCursor) -> CoreCoord:
    """Return the core at a `cursor`.

    >>> read_core(TextCursor("7-3", "a core")), read_core(TextCursor("(x=7,y=3)", "a core"))
    (CoreCoord(x=7, y=3), CoreCoord(x=7, y=3))
    """
    match = cursor.match(DASHED_CORE) or cursor.match(_OLDER_CORE)
    if not match:
        cursor.fail("a core such as 7-3 or (x=7,y=3)")
    return CoreCoord(int(match[1]), int(match[2]))


def read_core_range(cursor: TextCursor) -> CoreRange:
    """Return the core range at a `cursor`.

    >>> read_core_range(TextCursor("[0-0 - 7-7]", "a range"))
    CoreRange((0, 0), (7, 7))
    """
    if match := cursor.match(_JSON_RANGE):
        x0, y0, x1, y1 = map(int, match.groups())
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
    cursor.expect("(", "[")

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
    """Return Tile with shape: [16, 32], or Tile(tile_shape={16, 32},...); neither shows whether it is transposed."""
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
    """Return the fields of a structure in parentheses or braces; fields without a reader go to `extra` unchanged."""
    closing = ")" if cursor.accept("(") else "}"
    if closing == "}":
        cursor.expect("{")
    fields: dict[str, Any] = {}
    while not cursor.accept(closing):
        if fields:
            cursor.expect(",")
        name = cursor.take(_NAME, "the name of a field")
        if name in fields:
            raise FileFormatError(f"{cursor.name}: field {name!r} before character {cursor.at + 1} is given twice")
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


def _enum_reader(enum_name: str) -> _Reader:
    return lambda cursor: _read_enum(cursor, enum_name)


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
        **dict.fromkeys(ALLOCATION_FLAGS, TextCursor.integer),
    }
    fields = _read_fields(cursor, readers, extra)
    matrix, general = fields.get("shard_spec"), fields.get("nd_shard_spec")
    made_with_nd = fields.get("created_with_nd_shard_spec", matrix is None and general is not None)
    layout, buffer = _require(cursor, fields, "memory_layout"), _require(cursor, fields, "buffer_type")
    mode = AllocationMode.of_flags(*map(fields.get, ALLOCATION_FLAGS))
    return make_memory_config(layout, buffer, matrix, general, bool(made_with_nd), mode)


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
    cursor.expect(")", ")")
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
    """Return the spec of a tensor; its storage comes first, and adds nothing to the spec."""
    match = _TENSOR_SPEC.search(cursor.text, cursor.at)
    if not match:
        cursor.fail(
            "a tensor with a tensor_spec, as print(tensor.spec) has it, since its values do not say where it is,"
        )
    cursor.expect("(")
    while cursor.at < match.start() and not cursor.peek(match[0]):
        name = cursor.take(_NAME, "the name of a field")
        cursor.expect("=")
        value = cursor.raw()
        if name != "storage" or not _STORAGE.fullmatch(value):
            extra[name] = value
        if cursor.at < match.start():
            cursor.expect(",")
    cursor.at = match.end()  # also if the brackets of the storage do not match, as in older shards
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


# Values that ttnn prints, from a log, a report or a database, as objects of the library.

_Value = TypeVar("_Value")

_CLASS = re.compile(
    r"\b(?:(?:Tensor|TensorSpec|MemoryConfig|ShardSpec|Shape|Tile)[({]|Tile with shape:)"
    r"|\{\[(?=\d+-\d+ - |\(x=\d)"  # core ranges
)


@dataclass(frozen=True, slots=True)
class TtnnText:
    """A parsed text of ttnn: its `kind` there, the `value` here, and as `extra` facts that the value has no field for.

    >>> parse_ttnn(" ShardOrientation.COL_MAJOR ")
    TtnnText(kind='ShardOrientation', value=ShardOrientation.COL_MAJOR, extra=())
    """

    kind: str  # the name of the type in ttnn
    value: Any  # of the library's type for that kind
    extra: tuple[tuple[str, Any], ...] = ()  # names and texts of fields, unless they are known and off

    @property
    def has_placement(self) -> bool:
        """Whether a memory config determines where pages are: a sharded memory layout alone does not.

        >>> parse_ttnn(
        ...     "MemoryConfig(memory_layout=TensorMemoryLayout::BLOCK_SHARDED,buffer_type=BufferType::L1,"
        ...     "shard_spec=std::nullopt)"
        ... ).has_placement
        False
        """
        config = self.value.memory if isinstance(self.value, TensorSpec) else self.value
        return not isinstance(config, MemoryConfig) or not config.is_sharded or config.sharding is not None


def parse_ttnn(text: str) -> TtnnText:
    """Parse a printed value of ttnn: cores, shapes, tiles, shards, memory configs, specs and enums.

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


def find_ttnn_values(text: str) -> Iterator[tuple[int, TtnnText]]:
    """Yield the values of ttnn in a longer `text`, such as a line of a log, each with the position where it starts.

    These are tensors, specs, memory configs, shards, shapes, tiles and core ranges; what cannot be read is passed over.

    >>> line = (
    ...     "ERROR | op got Shape([1, 32]) in MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type="
    ... )
    >>> [(at, value.kind) for at, value in find_ttnn_values(line + "BufferType::L1,shard_spec=std::nullopt)")]
    [(15, 'Shape'), (33, 'MemoryConfig')]
    """
    at = 0
    while match := _CLASS.search(text, at):
        cursor = TextCursor(text, "a text of ttnn", match.start())
        try:
            value = _read_value(cursor)
        except FileFormatError:
            at = match.end()
        else:
            yield match.start(), value
            at = cursor.at


def parse_memory_config(text: str) -> MemoryConfig:
    """Return the memory config that ttnn printed as `text`, or wrote as JSON.

    >>> parse_memory_config(
    ...     "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,"
    ...     "shard_spec=std::nullopt)"
    ... )
    MemoryConfig('interleaved', 'l1')
    """
    return _parse_class(text, MemoryConfig, "a memory config")


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
    return _parse_class(text, TensorSpec, "a tensor spec")


def parse_core_ranges(text: str) -> CoreRangeSet:
    """Return the core ranges that ttnn printed as `text`; one core or one range is a set of one range.

    >>> parse_core_ranges("{[0-0 - 7-0], [0-1 - 1-1]}").num_cores, parse_core_ranges("7-3").num_cores
    (10, 1)
    """
    value = _parse(text, "core ranges").value
    if isinstance(value, (CoreCoord, CoreRange)):
        return CoreRangeSet([CoreRange(value) if isinstance(value, CoreCoord) else value])
    return _require_class(value, CoreRangeSet, "core ranges", text)


def parse_shape(text: str) -> Shape:
    """Return the shape that ttnn printed as `text`.

    >>> parse_shape("Shape([1, 1, 32, 32])").logical
    (1, 1, 32, 32)
    """
    return _parse_class(text, Shape, "a shape")


def parse_dtype(text: str) -> Format:
    """Return the number format that ttnn printed as `text`, in Python's or C++'s spelling.

    >>> parse_dtype("DataType::BFLOAT8_B").name, parse_dtype("DataType.FP8_E4M3").name
    ('bfloat8_b', 'float8_e4m3')
    """
    value = _parse(text, "a data type").value
    if not isinstance(value, (BlockFormat, ScalarFormat)):
        raise FileFormatError(f"expected a data type such as DataType.BFLOAT16, got {text.strip()!r:.60}")
    return value


def _parse_class(text: str, value_type: type[_Value], name: str) -> _Value:
    parsed = _parse(text, name)
    if any(key == "mode" and value.endswith("LOGICAL") for key, value in parsed.extra):
        raise FileFormatError(
            f"{name} with mode=ShardMode::LOGICAL: shards in elements before padding are not modelled; give the"
            " physical shard shape, without a mode"
        )
    return _require_class(parsed.value, value_type, name, text)


def _require_class(value: object, value_type: type[_Value], name: str, text: str) -> _Value:
    if not isinstance(value, value_type):
        raise FileFormatError(f"expected {name}, got {type(value).__name__} {text.strip()!r:.60}")
    return value


def _parse(text: str, name: str) -> TtnnText:
    """Parse the whole text; every error is a `FileFormatError`."""
    if not isinstance(text, str):
        raise FileFormatError(f"expected {name} as a string, got {type(text).__name__}")
    cursor = TextCursor(_with_commas(text), name)
    result = _read_value(cursor)
    cursor.expect_end()
    return result


def _with_commas(text: str) -> str:
    """Return a text with commas where a CSV file has semicolons instead of all commas."""
    return text if "," in text else text.replace(";", ",")


def _read_value(cursor: TextCursor) -> TtnnText:
    try:
        return _read_first(cursor)
    except FileFormatError:
        raise
    except TilewrightError as problem:  # well-formed, but such a value cannot exist
        raise FileFormatError(f"{cursor.name}, before character {cursor.at + 1}: {problem}") from None


def _read_first(cursor: TextCursor) -> TtnnText:
    """Return the value that comes next, of the kind that its first characters show."""
    if _starts_json(cursor):
        data = parse_json(cursor.text[cursor.at :].rstrip(), cursor.name)
        cursor.at = len(cursor.text)
        class_name, value = value_from_json(data)
        extra = {}
        if class_name == "MemoryConfig":
            unread = [key for key in data if key not in MEMORY_CONFIG_FIELDS]
            extra = {key: data[key] for key in unread if data[key] or key not in IGNORED_IF_OFF}
        return TtnnText(class_name, value, tuple(extra.items()))
    if cursor.peek("{"):
        return TtnnText("CoreRangeSet", read_core_set(cursor))
    if cursor.peek("["):
        return TtnnText("CoreRange", read_core_range(cursor))
    if cursor.peek("(") or DASHED_CORE.match(cursor.text, cursor.skip_space()):
        return TtnnText("CoreCoord", read_core(cursor))
    is_bracketed = cursor.accept("<")  # <DataType.BFLOAT16: 0>
    words = cursor.take(WORD, "a value of ttnn").replace("::", ".").split(".")
    class_name = words[-1]
    if class_name in STRUCTURES and not is_bracketed:
        extra = {}
        value = STRUCTURES[class_name](cursor, extra)
        return TtnnText(class_name, value, tuple(extra.items()))
    if len(words) < 2 or words[-2] not in ENUMS:
        cursor.fail(f"a value of a known type after {'.'.join(words)[:60]!r}")
    if is_bracketed:
        cursor.expect(":")
        cursor.integer()
        cursor.expect(">")
    return TtnnText(words[-2], enum_value(words[-2], class_name))


def _starts_json(cursor: TextCursor) -> bool:
    rest = cursor.text[cursor.skip_space() : cursor.at + 64].translate(_BLANKS)
    return rest.startswith(('{"', '[{"', "[]"))


_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))


# Values of the library as ttnn prints them, to the character; `write_ttnn` writes only what can be read back.

_ENUM_NAMES = {enum: name for name, enum in ENUMS.items() if enum is not None}
_DATA_TYPES = (
    *("bfloat16", "float32", "bfloat8_b", "bfloat4_b", "float8_e4m3"),
    *("uint32", "uint16", "uint8", "int32", "int8"),
)


def write_ttnn(value: object) -> str:
    """Return a `value` as ttnn prints it: a tensor spec, a memory config, shards, cores, a tile, a shape, an enum.

    Raises if it is something else, or if the text would lose something, such as a transposed tile. The chip of a
    spec is in no text of ttnn, and left out.

    >>> write_ttnn(MemoryConfig("interleaved", "l1")).split(",")[:2]
    ['MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED', 'buffer_type=BufferType::L1']
    """
    if not isinstance(value, (*_TEXTS, NamedEnum)):
        raise LayoutError(
            f"ttnn prints tensor specs, memory configs, shards and cores, got {type(value).__name__} {value!s:.60};"
            " make a TensorSpec or a MemoryConfig of it"
        )
    number_format = value.dtype if isinstance(value, TensorSpec) else value
    if isinstance(number_format, (ScalarFormat, BlockFormat)) and number_format.name not in _DATA_TYPES:
        raise FormatError(f"ttnn has no data type {number_format.name}; it has {', '.join(_DATA_TYPES)}")
    text = ttnn_text(value)
    comparable = value.replace(chip=None) if isinstance(value, TensorSpec) else value
    if (again := parse_ttnn(text).value) != comparable:
        raise LayoutError(f"ttnn's text for {comparable!r} loses information: it would be read back as {again!r}")
    return text


def ttnn_text(value: object) -> str:
    """Return the text that ttnn prints for a `value` of the library.

    >>> ttnn_text(CoreRangeSet([CoreRange((0, 0), (7, 0))])), ttnn_text(Tile((16, 32)))
    ('{[0-0 - 7-0]}', 'Tile with shape: [16, 32]')
    """
    if isinstance(value, NamedEnum):
        return f"{_ENUM_NAMES[type(value)]}.{value.name}"
    return next(text for value_type, text in _TEXTS.items() if isinstance(value, value_type))(value)


def _cpp_enum(member: NamedEnum) -> str:
    """Return a member as C++ writes it, and as ttnn does inside longer texts."""
    return ttnn_text(member).replace(".", "::")


def _data_type(number_format: Format) -> str:
    return "FP8_E4M3" if number_format.name == "float8_e4m3" else number_format.name.upper()


def _shard_spec(shards: ShardSpec) -> str:
    # ttnn leaves out a closing brace for every range
    ranges = ", ".join([_json_range(part)[:-1] for part in shards.grid])
    return f"ShardSpec{{grid=[{ranges}], shape={list(shards.shape)}, orientation={_cpp_enum(shards.orientation)}}}"


def _nd_shard_spec(shards: NdShardSpec) -> str:
    ranges = ", ".join(map(_json_range, shards.grid))
    return (
        f'{{"shard_shape":{list(shards.shape)},"grid":[{ranges}],"orientation":"{_cpp_enum(shards.orientation)}",'
        f'"shard_distribution_strategy":"{_cpp_enum(shards.distribution)}"}}'
    )


def _json_range(cores: CoreRange) -> str:
    return json.dumps(_json_data(cores), separators=(",", ":"))


def _memory_config(config: MemoryConfig) -> str:
    shards = ["std::nullopt" if part is None else ttnn_text(part) for part in (config.shard_spec, config.nd_shard_spec)]
    flags = ",".join([f"{name}={on:d}" for name, on in zip(ALLOCATION_FLAGS, config.allocation.flags, strict=True)])
    return (
        f"MemoryConfig(memory_layout={_cpp_enum(config.memory_layout)},buffer_type={_cpp_enum(config.buffer_type)},"
        f"shard_spec={shards[0]},nd_shard_spec={shards[1]},"
        f"created_with_nd_shard_spec={config.made_with_nd:d},{flags})"
    )


def _tensor_spec(spec: TensorSpec) -> str:
    page, tile = "RowMajorPageConfig()", spec.tile
    if spec.is_tiled:
        sizes = f"tile_shape={_in_braces(tile.shape)},face_shape={_in_braces(tile.face_shape)}"
        page = f"TilePageConfig(tile=Tile({sizes},num_faces={tile.num_faces}))"
    return (
        f"TensorSpec(logical_shape=Shape({list(spec.shape.logical)}),tensor_layout=TensorLayout("
        f"dtype=DataType::{_data_type(spec.dtype)},page_config=PageConfig(config={page}),"
        f"memory_config={_memory_config(spec.memory)},"
        f"alignment=Alignment({list(spec.alignment or spec.default_alignment)})))"
    )


def _in_braces(extents: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, extents))}}}"


_TEXTS: dict[type, Callable[[Any], str]] = {
    CoreCoord: lambda core: f"{core.x}-{core.y}",
    CoreRange: lambda cores: f"[{ttnn_text(cores.start)} - {ttnn_text(cores.end)}]",
    CoreRangeSet: lambda cores: f"{{{', '.join(map(ttnn_text, cores))}}}",
    Shape: lambda shape: f"Shape({shape})",
    Tile: lambda tile: f"Tile with shape: {list(tile.shape)}",
    ShardSpec: _shard_spec,
    NdShardSpec: _nd_shard_spec,
    MemoryConfig: _memory_config,
    TensorSpec: _tensor_spec,
    ScalarFormat: lambda number_format: f"DataType.{_data_type(number_format)}",
    BlockFormat: lambda number_format: f"DataType.{_data_type(number_format)}",
}
