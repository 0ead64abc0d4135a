# SPDX-License-Identifier: Apache-2.0
"""Values of ttnn from their JSON: what `to_json` writes, where enums are numbers, and the reprs that look like JSON."""

from __future__ import annotations

from typing import Any, TypeVar

from .._json import expect_integer, expect_integers
from ..errors import FileFormatError
from ..memory import (
    BufferType,
    CoreCoord,
    CoreLike,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NamedEnum,
    NdShardSpec,
    ShardDistribution,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)

MAX_CORE = 1023  # no chip has more columns or rows
MAX_RANGES = 1024

_Member = TypeVar("_Member", bound=NamedEnum)


def enum_member(kind: type[_Member], value: Any) -> _Member:
    """Return the member of an enum of type `kind` from `value`: its number, or its name, which a type may precede.

    >>> enum_member(ShardOrientation, 1), enum_member(ShardOrientation, "ShardOrientation::ROW_MAJOR")
    (ShardOrientation.COL_MAJOR, ShardOrientation.ROW_MAJOR)
    """
    if isinstance(value, str):
        words = value.replace("::", ".").split(".")
        if not all(map(str.isidentifier, words)) or not words[-2:][0].startswith((kind.__name__, words[-1])):
            raise FileFormatError(f"expected a {kind.__name__}, got {value!r:.60}")
        return kind.of(words[-1])
    number = expect_integer(value, f"a {kind.__name__}")
    if number not in {member.value for member in kind}:
        known = ", ".join(f"{member.value} ({member.name})" for member in kind)
        raise FileFormatError(f"expected one of {known} as {kind.__name__}, got {number}")
    return kind(number)


def _field(data: Any, name: str, of: str) -> Any:
    if not isinstance(data, dict) or name not in data:
        raise FileFormatError(f"expected {of} with a field {name!r}, got {repr(data)[:60]}")
    return data[name]


def _require_only(data: Any, names: tuple[str, ...], of: str) -> None:
    """Raise if an object has other fields than these: they would be lost."""
    unknown = sorted(set(data) - set(names)) if isinstance(data, dict) else []
    if unknown:
        raise FileFormatError(f"expected {of} with {', '.join(names)}, got a field {unknown[0]!r:.60} as well")


def core_from_json(data: Any) -> CoreCoord:
    """Return a core from `data` such as {"x": 7, "y": 3}.

    >>> core_from_json({"x": 7, "y": 3})
    CoreCoord(x=7, y=3)
    """
    _require_only(data, ("x", "y"), "a core")
    x, y = [expect_integer(_field(data, name, "a core"), f"{name} of a core") for name in ("x", "y")]
    return CoreCoord(x, y)


def core_range_from_json(data: Any) -> CoreRange:
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


def core_ranges_from_json(data: Any) -> CoreRangeSet:
    """Return core ranges from `data`, a list.

    >>> core_ranges_from_json([{"start": {"x": 0, "y": 0}, "end": {"x": 7, "y": 1}}]).num_cores
    16
    """
    if not isinstance(data, list) or len(data) > MAX_RANGES:
        raise FileFormatError(f"expected a list of at most {MAX_RANGES} core ranges, got {repr(data)[:60]}")
    return CoreRangeSet([core_range_from_json(part) for part in data])


def shard_spec_from_json(data: Any) -> ShardSpec:
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
    )


def make_memory_config(
    layout: TensorMemoryLayout,
    buffer: BufferType,
    matrix: ShardSpec | None,
    general: NdShardSpec | None,
    made_with_nd: bool,
) -> MemoryConfig:
    """Return the config of a printed `layout`, `buffer` and the two forms of shards, `matrix` and `general`.

    `made_with_nd` says which form decides the placement, if both are there.

    >>> make_memory_config(TensorMemoryLayout.INTERLEAVED, BufferType.L1, None, None, False)
    MemoryConfig('interleaved', 'l1')
    """
    if made_with_nd and general is None:
        raise FileFormatError("created_with_nd_shard_spec is set, but nd_shard_spec is missing")
    return MemoryConfig(layout, buffer, matrix, general, made_with_nd)


def value_from_json(data: Any) -> tuple[str, Any]:
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


MEMORY_CONFIG_FIELDS = ("memory_layout", "buffer_type", "shard_spec", "nd_shard_spec", "created_with_nd_shard_spec")
_READERS = (  # by a field that only this type has
    ("MemoryConfig", "memory_layout", memory_config_from_json),
    ("NdShardSpec", "shard_shape", nd_shard_spec_from_json),
    ("ShardSpec", "shape", shard_spec_from_json),
    ("CoreRange", "start", core_range_from_json),
    ("CoreCoord", "x", core_from_json),
)
