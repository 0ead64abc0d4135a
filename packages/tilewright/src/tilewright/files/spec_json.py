# SPDX-License-Identifier: Apache-2.0
"""Strict JSON for untrusted files, where ambiguous or overly expensive text is rejected; and tensor specs as JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from .._json import expect_integers, expect_keys
from ..errors import FileFormatError, TilewrightError
from ..memory import Chip, CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, ShardSpec, TensorSpec, Tile, chip_names

Json = dict[str, Any]
_MAX_CORE_RANGES, _MAX_GRID_EXTENT = 1024, 1024  # so that a damaged file costs no more than its size


def spec_to_json(spec: TensorSpec) -> Json:
    """Return a tensor spec as plain data for `spec_from_json`; defaults are omitted.

    >>> spec_to_json(TensorSpec((60, 90), "bfloat8_b"))
    {'shape': [60, 90], 'dtype': 'bfloat8_b', 'layout': 'tile', 'tile': [32, 32], 'memory': {'buffer': 'dram'}}
    """
    result: Json = {
        "shape": list(spec.shape.logical),
        "dtype": spec.dtype.name,
        "layout": spec.page_layout.name.lower(),
    }
    if spec.is_tiled or not spec.tile.is_default:
        result["tile"] = list(spec.tile.shape)
        if spec.tile.transpose:
            result["transpose_tile"] = True
    result["memory"] = _memory_to_json(spec.memory)
    if spec.chip is not None:
        result["chip"] = _chip_to_json(spec.chip)
    if spec.alignment is not None:
        result["alignment"] = list(spec.alignment)
    return result


def _memory_to_json(memory: MemoryConfig) -> Json:
    result: Json = {"buffer": memory.buffer_type.name.lower()}
    shards: ShardSpec | NdShardSpec | None = memory.nd_shard_spec if memory.made_with_nd else memory.shard_spec
    if shards is None:
        return result
    result["layout"] = memory.memory_layout.name.lower()
    result["shard"] = list(shards.shape)
    result["cores"] = [[*core_range.start, *core_range.end] for core_range in shards.grid]
    result["orientation"] = shards.orientation.name.lower()
    if isinstance(shards, NdShardSpec):
        result["distribution"] = shards.distribution.name.lower()
    if memory.allocation.value:  # not in lockstep, the default
        result["allocation"] = memory.allocation.name.lower()
    return result


def _chip_to_json(chip: Chip) -> Any:
    if chip.name in chip_names():
        if chip == Chip.named(chip.name):
            return chip.name
        if chip == Chip.named(chip.name, chip.dispatch, chip.harvested):
            return {"name": chip.name, "dispatch": chip.dispatch, "harvested": chip.harvested}
    return {field.name: _as_lists(getattr(chip, field.name)) for field in fields(Chip)}


def _as_lists(value: object) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, tuple) else value


def _as_tuples(value: object) -> Any:
    return tuple([_as_tuples(item) for item in value]) if isinstance(value, list) else value


def spec_from_json(data: object) -> TensorSpec:
    """Return the tensor spec of plain data, or raise a `FileFormatError`.

    >>> spec_from_json({"shape": [60, 90], "dtype": "bfloat8_b", "layout": "tile"})
    TensorSpec((60, 90), 'bfloat8_b', 'tile')
    """
    try:
        keys = {"shape", "dtype", "layout", "tile", "transpose_tile", "memory", "chip", "alignment"}
        data = expect_keys(data, keys, "a tensor spec")
        tile = Tile(data.get("tile", (32, 32)), bool(data.get("transpose_tile", False)))
        memory = _memory_from_json(data.get("memory", {}))
        chip = _chip_from_json(data.get("chip"))
        shape = expect_integers(data["shape"], "the shape")
        return TensorSpec(shape, data["dtype"], data["layout"], tile, memory, chip, data.get("alignment"))
    except FileFormatError:
        raise
    except KeyError as problem:
        raise FileFormatError(f"a tensor spec has no {problem.args[0]!r}") from None
    except (TilewrightError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise FileFormatError(f"invalid tensor spec {repr(data)[:120]}: {problem}") from None


def _memory_from_json(data: object) -> MemoryConfig:
    keys = {"buffer", "layout", "shard", "cores", "orientation", "distribution", "allocation"}
    data = expect_keys(data, keys, "a memory config")
    buffer = data.get("buffer", "dram")
    if "shard" not in data:
        return MemoryConfig("interleaved", buffer)
    corners = data["cores"]
    if not isinstance(corners, list) or len(corners) > _MAX_CORE_RANGES:
        raise FileFormatError(f"expected a list of at most {_MAX_CORE_RANGES} core ranges, got {repr(corners)[:40]}")
    for x0, y0, x1, y1 in corners:
        if not all(0 <= c < _MAX_GRID_EXTENT for c in (x0, y0, x1, y1)):
            raise FileFormatError(f"core range {[x0, y0, x1, y1]} is out of range")
    cores = CoreRangeSet([CoreRange((x0, y0), (x1, y1)) for x0, y0, x1, y1 in corners])
    mode = data.get("allocation", "lockstep")
    if "distribution" in data:
        general = NdShardSpec(data["shard"], cores, data["orientation"], data["distribution"])
        return MemoryConfig(data["layout"], buffer, nd_shard_spec=general, allocation=mode)
    shards = ShardSpec(cores, data["shard"], data["orientation"])
    return MemoryConfig(data["layout"], buffer, shards, allocation=mode)


def _chip_from_json(data: object) -> Chip | None:
    if data is None or isinstance(data, str):
        return None if data is None else Chip.named(data)
    if not isinstance(data, dict):
        raise FileFormatError(f"expected a chip name or an object, got {repr(data)[:40]}")
    if set(data) == {"name", "dispatch", "harvested"}:
        return Chip.named(**data)
    chip = Chip(**{name: _as_tuples(value) for name, value in data.items()})
    if max(*chip.grid, chip.dram_banks, chip.storage_banks) > _MAX_GRID_EXTENT:
        raise FileFormatError(f"chip {chip.name} is implausible: {chip.grid} cores and {chip.dram_banks} DRAM banks")
    return chip
