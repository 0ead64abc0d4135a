# SPDX-License-Identifier: Apache-2.0
"""Other ways to place a tensor, nearest first: other shards, other strategies, other memory, other number formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import TilewrightError
from ..formats import BlockFormat, format_of
from .chip import Chip
from .config import MemoryConfig
from .core_order import num_cores_to_corerangeset
from .cores import CoreRangeSet
from .kinds import BufferType, TensorLayout
from .sharding import Sharding, block_sharded, height_sharded, interleaved, width_sharded
from .spec import TensorSpec

# Smaller number formats to try, in order; block formats need tiles.
SMALLER = {
    "float64": ("float32", "bfloat16"),
    "float32": ("bfloat16", "bfloat8_b", "bfloat4_b"),
    "bfloat16": ("bfloat8_b", "bfloat4_b"),
    "float16": ("bfloat8_b", "bfloat4_b"),
    "bfloat8_b": ("bfloat4_b",),
    "int32": ("int8",),
    "uint32": ("uint16", "uint8"),
    "uint16": ("uint8",),
}
_STRATEGIES = {"block sharded": block_sharded, "height sharded": height_sharded, "width sharded": width_sharded}


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another spec for the same tensor, and what it changes, in words.

    >>> next(alternatives(TensorSpec((64, 64), "float32", "tile", memory="l1"), Chip.named("n150"))).change
    'float32 as bfloat16'
    """

    spec: TensorSpec
    change: str

    @property
    def bytes_per_bank(self) -> int:
        """Return the bytes that the alternative takes of every bank.

        >>> next(alternatives(TensorSpec((64, 64), memory="l1"), Chip.named("n150"))).bytes_per_bank
        1088
        """
        return self.spec.allocated_bytes

    def __str__(self) -> str:
        return f"{self.change}: {self.bytes_per_bank} bytes in {in_banks(self.spec)}"


def alternatives(given: Any, chip: Chip) -> Iterator[Alternative]:
    """Yield legal specs for a tensor on a chip, nearest first; given is a spec, or arguments that make none.

    >>> found = alternatives({"shape": (100, 64), "layout": "tile", "memory": height_sharded((4, 1), (25, 64))}, "n150")
    >>> print(next(found))
    height sharded (32, 64) on 4 cores: 4096 bytes in each of 4 banks
    """
    chip = Chip.of(chip)
    arguments = dict(given) if isinstance(given, Mapping) else _arguments(given)
    arguments["chip"] = chip
    seen = {_essence(given.with_chip(chip))} if isinstance(given, TensorSpec) else set()
    for changes, words in _candidates(arguments, chip):
        try:
            spec = TensorSpec(**{**arguments, **changes})
            usable = not spec.violations() and spec.num_pages > 0
        except TilewrightError:
            continue
        if usable and _essence(spec) not in seen:
            seen.add(_essence(spec))
            yield Alternative(spec, words or _in_words(spec))


def _essence(spec: TensorSpec) -> tuple[Any, ...]:
    """Return what makes an alternative worth telling: not the grid alone, while the shards stay the same."""
    usable = None if spec.violations() else spec.memory.buffer_type
    shards = spec.memory.sharding.shape if spec.memory.sharding else None
    return (spec.dtype, spec.memory.memory_layout, shards, usable)


def _arguments(spec: TensorSpec) -> dict[str, Any]:
    names = ("dtype", "layout", "tile", "memory", "alignment")
    return {"shape": spec.shape.logical, **{name: getattr(spec, name) for name in names}}


def _candidates(arguments: dict[str, Any], chip: Chip) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield changes of the arguments with their words, those nearest to what was asked first."""
    memory = arguments.get("memory")
    sharded = isinstance(memory, Sharding) or (isinstance(memory, MemoryConfig) and memory.is_sharded)
    buffer = _buffer(memory)
    whole, *parts = _grids(chip, buffer if sharded else BufferType.L1)
    if sharded:
        own = _own_sharding(memory)
        names = [own, *(name for name in _STRATEGIES if name != own)] if own else list(_STRATEGIES)
        for name in names:
            for grid in (*_own_grid(memory), whole):
                yield {"memory": _STRATEGIES[name](grid, buffer_type=buffer)}, ""
        yield {"memory": interleaved("l1")}, "interleaved in L1"
    yield from _smaller(arguments)
    if not sharded and buffer.is_l1:
        yield from (({"memory": make(whole)}, "") for make in _STRATEGIES.values())
    yield {"memory": interleaved("dram")}, "interleaved in DRAM"
    for change, words in _smaller(arguments):
        yield {**change, "memory": interleaved("dram")}, f"{words}, interleaved in DRAM"
    if sharded:
        for name in names:
            yield from (({"memory": _STRATEGIES[name](grid, buffer_type=buffer)}, "") for grid in parts)


def _smaller(arguments: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    element = format_of(arguments.get("dtype", "bfloat16"))
    for name in SMALLER.get(element.name, ()):
        change: dict[str, Any] = {"dtype": name}
        words = f"{element} as {name}"
        tiled = arguments.get("layout") is not None and TensorLayout.of(arguments["layout"]) is TensorLayout.TILE
        if isinstance(format_of(name), BlockFormat) and not tiled:
            change["layout"] = "tile"
            words += " in tiles"
        yield change, words


def _own_sharding(memory: Any) -> str | None:
    strategy = memory.strategy if isinstance(memory, Sharding) else None
    name = f"{strategy.name.lower()} sharded" if strategy else ""
    if isinstance(memory, MemoryConfig):
        name = memory.memory_layout.name.lower().replace("_", " ")
    return name if name in _STRATEGIES else None


def _own_grid(memory: Any) -> list[CoreRangeSet]:
    sharding = memory if isinstance(memory, Sharding) else memory.sharding
    return [] if sharding is None else [sharding.grid]


def _grids(chip: Chip, buffer: BufferType) -> list[CoreRangeSet]:
    """Return grids of the chip to try, from all cores or banks downwards."""
    across, down = chip.shard_grid(buffer)
    sizes = [(across, down), (across, max(1, down // 2)), (max(1, across // 2), down), (across, 1)]
    return [num_cores_to_corerangeset(x * y, (x, y), row_wise=True) for x, y in dict.fromkeys(sizes)]


def _buffer(memory: Any) -> BufferType:
    kind = memory.buffer_type if isinstance(memory, (MemoryConfig, Sharding)) else memory
    return BufferType.DRAM if kind is None else BufferType.of(kind)


def in_banks(spec: TensorSpec) -> str:
    """Return the banks that hold pages of a tensor, in words.

    >>> in_banks(TensorSpec((4, 4), chip="n150"))
    'each of 4 banks'
    """
    count, sharding = len(spec.used_banks), spec.memory.sharding
    words = "one bank" if count == 1 else f"each of {count} banks"
    if sharding is None or sharding.grid.num_cores == count:
        return words
    return f"{words} (its grid has {sharding.grid.num_cores})"


def _in_words(spec: TensorSpec) -> str:
    sharding = spec.memory.sharding
    if sharding is None:
        return str(spec.memory)
    name = spec.memory.memory_layout.name.lower().replace("_", " ")
    count = min(spec.paging.num_shards, len(spec.paging.cores))
    where = ("core" if spec.memory.buffer_type.is_l1 else "DRAM bank") + ("" if count == 1 else "s")
    return f"{name} {sharding.shape} on {count} {where}"
