# SPDX-License-Identifier: Apache-2.0
"""Values of the library as ttnn prints them, to the character; `write_ttnn` writes only what can be read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import FormatError, LayoutError
from ..formats import BlockFormat, Format, ScalarFormat
from ..memory import (
    CoreCoord,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NamedEnum,
    NdShardSpec,
    Shape,
    ShardSpec,
    TensorSpec,
    Tile,
)
from .ttnn_structures import ENUMS
from .ttnn_texts import parse_ttnn

_ENUM_NAMES = {enum: name for name, enum in ENUMS.items() if enum is not None}
_DATA_TYPES = (
    *("bfloat16", "float32", "bfloat8_b", "bfloat4_b", "float8_e4m3"),
    *("uint32", "uint16", "uint8", "int32", "int8"),
)


def write_ttnn(value: Any) -> str:
    """Return a `value` as ttnn prints it: a tensor spec, a memory config, shards, cores, a tile, a shape, an enum.

    Raises if it is something else, or if it has what the text does not say, such as a transposed tile. The chip of a
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
    said = value.replace(chip=None) if isinstance(value, TensorSpec) else value
    if (again := parse_ttnn(text).value) != said:
        raise LayoutError(f"ttnn's text for {said!r} does not say all of it: it would be read as {again!r}")
    return text


def ttnn_text(value: Any) -> str:
    """Return the text that ttnn prints for a `value` of the library.

    >>> ttnn_text(CoreRangeSet([CoreRange((0, 0), (7, 0))])), ttnn_text(Tile((16, 32)))
    ('{[0-0 - 7-0]}', 'Tile with shape: [16, 32]')
    """
    if isinstance(value, NamedEnum):
        return f"{_ENUM_NAMES[type(value)]}.{value.name}"
    return next(text for kind, text in _TEXTS.items() if isinstance(value, kind))(value)


def _cpp_enum(member: NamedEnum) -> str:
    """Return a member as C++ writes it, which is how ttnn writes it inside longer texts."""
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
    return json.dumps({"start": cores.start._asdict(), "end": cores.end._asdict()}, separators=(",", ":"))


def _memory_config(config: MemoryConfig) -> str:
    shards = ["std::nullopt" if part is None else ttnn_text(part) for part in (config.shard_spec, config.nd_shard_spec)]
    return (
        f"MemoryConfig(memory_layout={_cpp_enum(config.memory_layout)},buffer_type={_cpp_enum(config.buffer_type)},"
        f"shard_spec={shards[0]},nd_shard_spec={shards[1]},"
        f"created_with_nd_shard_spec={config.made_with_nd:d},per_core_allocation=0,range_lockstep_allocation=0)"
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
