# SPDX-License-Identifier: Apache-2.0
"""Values that ttnn prints, from a log, a report or a database, as objects of the library.

The texts are those of ttnn 0.81.1, and older spellings of cores and shards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from .._json import parse_json
from .._text import TextCursor
from ..errors import FileFormatError, TilewrightError
from ..formats import BlockFormat, Format, ScalarFormat
from ..memory import CoreCoord, CoreRange, CoreRangeSet, MemoryConfig, Shape, TensorSpec
from .ttnn_json import MEMORY_CONFIG_FIELDS, value_from_json
from .ttnn_structures import (
    DASHED_CORE,
    ENUMS,
    IGNORED_IF_OFF,
    STRUCTURES,
    WORD,
    enum_value,
    read_core,
    read_core_range,
    read_core_set,
)

_Value = TypeVar("_Value")

_CLASS = re.compile(
    r"\b(?:(?:Tensor|TensorSpec|MemoryConfig|ShardSpec|Shape|Tile)[({]|Tile with shape:)"
    r"|\{\[(?=\d+-\d+ - |\(x=\d)"  # core ranges
)


@dataclass(frozen=True, slots=True)
class TtnnText:
    """What a text of ttnn says: its `kind` there, the `value` here, and as `extra` what the value has no field for.

    >>> parse_ttnn(" ShardOrientation.COL_MAJOR ")
    TtnnText(kind='ShardOrientation', value=ShardOrientation.COL_MAJOR, extra=())
    """

    kind: str  # the name of the type in ttnn
    value: Any  # of the library's type for that kind
    extra: tuple[tuple[str, Any], ...] = ()  # names and texts of fields, unless they are known and off

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
    while found := _CLASS.search(text, at):
        cursor = TextCursor(text, "a text of ttnn", found.start())
        try:
            value = _read_value(cursor)
        except FileFormatError:
            at = found.end()
        else:
            yield found.start(), value
            at = cursor.at


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
    """Return the value that comes next, which its first characters tell."""
    if _starts_json(cursor):
        data = parse_json(cursor.text[cursor.at :].rstrip(), cursor.name)
        cursor.at = len(cursor.text)
        kind, value = value_from_json(data)
        extra = {}
        if kind == "MemoryConfig":
            unread = [key for key in data if key not in MEMORY_CONFIG_FIELDS]
            extra = {key: data[key] for key in unread if data[key] or key not in IGNORED_IF_OFF}
        return TtnnText(kind, value, tuple(extra.items()))
    if cursor.peek("{"):
        return TtnnText("CoreRangeSet", read_core_set(cursor))
    if cursor.peek("["):
        return TtnnText("CoreRange", read_core_range(cursor))
    if cursor.peek("(") or DASHED_CORE.match(cursor.text, cursor.skip_space()):
        return TtnnText("CoreCoord", read_core(cursor))
    is_bracketed = cursor.accept("<")  # <DataType.BFLOAT16: 0>
    words = cursor.take(WORD, "a value of ttnn").replace("::", ".").split(".")
    kind = words[-1]
    if kind in STRUCTURES and not is_bracketed:
        extra = {}
        value = STRUCTURES[kind](cursor, extra)
        return TtnnText(kind, value, tuple(extra.items()))
    if len(words) < 2 or words[-2] not in ENUMS:
        cursor.fail(f"a value of a known type after {'.'.join(words)[:60]!r}")
    if is_bracketed:
        cursor.expect(":")
        cursor.integer()
        cursor.expect(">")
    return TtnnText(words[-2], enum_value(words[-2], kind))


def _starts_json(cursor: TextCursor) -> bool:
    rest = cursor.text[cursor.skip_space() : cursor.at + 64].translate(_BLANKS)
    return rest.startswith(('{"', '[{"', "[]"))


_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))
