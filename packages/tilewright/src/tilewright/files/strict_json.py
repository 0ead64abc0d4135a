# SPDX-License-Identifier: Apache-2.0
"""Strict JSON for untrusted files, where ambiguous or overly expensive text is rejected; and tensor specs as JSON."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, NoReturn

from ..errors import FileFormatError, TilewrightError
from ..memory import (
    Chip,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    TensorSpec,
    Tile,
    chip_names,
)
from .source_file import FilePath, SourceFile, as_source_file


def parse_json(data: bytes | memoryview | str, name: str) -> Any:
    """Return a parsed JSON text; raise a `FileFormatError` for bad UTF-8, repeated keys, NaN or deep nesting.

    `data` is the text or its bytes, and `name` what messages call it.

    >>> parse_json(b'{"a": [1, 2]}', "the header")
    {'a': [1, 2]}
    >>> try:
    ...     parse_json(b'{"a": 1, "a": 2}', "the header")
    ... except FileFormatError as problem:
    ...     print(problem)
    the header has key 'a' twice
    """

    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
        return strict_decoder(name).decode(text)
    except FileFormatError:
        raise
    except UnicodeDecodeError as problem:
        raise FileFormatError(f"{name} is not UTF-8: {problem.reason} at byte {problem.start}") from None
    except RecursionError:
        raise FileFormatError(f"{name} is nested too deeply") from None
    except ValueError as problem:  # also numbers with thousands of digits
        raise FileFormatError(f"{name} is not JSON: {problem}") from None


def strict_decoder(name: str) -> json.JSONDecoder:
    """Return a decoder that rejects repeated keys and NaN with a `FileFormatError`; `name` is for messages.

    >>> strict_decoder("the header").raw_decode('{"a": 1} and more')
    ({'a': 1}, 8)
    """

    def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise FileFormatError(f"{name} has key {key!r} twice")
                seen.add(key)
        return result

    def reject_constant(constant: str) -> NoReturn:
        raise FileFormatError(f"{name} contains {constant}, which is not JSON")

    return json.JSONDecoder(object_pairs_hook=reject_repeated_keys, parse_constant=reject_constant)


def read_json(path: FilePath | SourceFile, name: str, max_bytes: int) -> Any:
    """Return the parsed JSON of the file at `path`, which must not be larger than `max_bytes`; `name` is for messages.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "index.json").write_text("[1, 2]")
    ...     read_json(Path(folder, "index.json"), "the index", 100)
    [1, 2]
    """
    file = as_source_file(path)
    if file.size > max_bytes:
        raise FileFormatError(f"{name} has {file.size} bytes, more than {max_bytes}")
    return parse_json(file.read(0, file.size), name)


def expect_integer(value: Any, name: str, maximum: int = 2**63 - 1) -> int:
    """Return a JSON value if it is an integer from 0 to `maximum`, otherwise raise; True and 1.0 are not integers.

    >>> expect_integer(7, "an extent")
    7
    """
    if type(value) is not int or not 0 <= value <= maximum:
        raise FileFormatError(f"expected an integer from 0 to {maximum} as {name}, got {repr(value)[:40]}")
    return value


def expect_integers(value: Any, name: str, max_count: int = 64) -> tuple[int, ...]:
    """Return a JSON list of at most `max_count` integers from 0 as a tuple, otherwise raise.

    >>> expect_integers([2, 3], "the shape")
    (2, 3)
    """
    if not isinstance(value, list) or len(value) > max_count:
        raise FileFormatError(f"expected a list of at most {max_count} integers as {name}, got {repr(value)[:40]}")
    return tuple([expect_integer(n, f"an entry of {name}") for n in value])


def expect_string(value: Any, name: str) -> str:
    """Return a JSON value if it is a string without lone surrogates, otherwise raise.

    >>> expect_string("encoder.weight", "a name")
    'encoder.weight'
    """
    if not isinstance(value, str):
        raise FileFormatError(f"expected a string as {name}, got {repr(value)[:40]}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FileFormatError(f"{name} {value[:40]!r} contains a lone surrogate") from None
    return value


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
    return result


def _chip_to_json(chip: Chip) -> Any:
    if chip.name in chip_names():
        if chip == Chip.named(chip.name):
            return chip.name
        if chip == Chip.named(chip.name, chip.dispatch, chip.harvested):
            return {"name": chip.name, "dispatch": chip.dispatch, "harvested": chip.harvested}
    return {field.name: _as_lists(getattr(chip, field.name)) for field in fields(Chip)}


def _as_lists(value: Any) -> Any:
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


def _as_tuples(value: Any) -> Any:
    return tuple([_as_tuples(each) for each in value]) if isinstance(value, list) else value


def spec_from_json(data: Any) -> TensorSpec:
    """Return the tensor spec of plain data, or raise a `FileFormatError`.

    >>> spec_from_json({"shape": [60, 90], "dtype": "bfloat8_b", "layout": "tile"})
    TensorSpec((60, 90), 'bfloat8_b', 'tile')
    """
    try:
        known = {"shape", "dtype", "layout", "tile", "transpose_tile", "memory", "chip", "alignment"}
        expect_keys(data, known, "a tensor spec")
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


def expect_keys(data: Any, known: set[str], name: str) -> None:
    """Raise unless `data`, the object `name` of a file, is an object whose keys are all `known`.

    >>> try:
    ...     expect_keys({"shape": [4], "dtyp": "F32"}, {"shape", "dtype"}, "a tensor")
    ... except FileFormatError as problem:
    ...     print(problem)
    a tensor has unknown keys 'dtyp'; known keys: dtype, shape
    """
    if not isinstance(data, dict):
        raise FileFormatError(f"expected an object as {name}, got {repr(data)[:40]}")
    unknown = sorted(map(repr, set(data) - known))
    if unknown:
        raise FileFormatError(f"{name} has unknown keys {', '.join(unknown)}; known keys: {', '.join(sorted(known))}")


def _memory_from_json(data: Any) -> MemoryConfig:
    expect_keys(data, {"buffer", "layout", "shard", "cores", "orientation", "distribution"}, "a memory config")
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
    if "distribution" in data:
        general = NdShardSpec(data["shard"], cores, data["orientation"], data["distribution"])
        return MemoryConfig(data["layout"], buffer, nd_shard_spec=general, made_with_nd=True)
    return MemoryConfig(data["layout"], buffer, ShardSpec(cores, data["shard"], data["orientation"]))


def _chip_from_json(data: Any) -> Chip | None:
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
