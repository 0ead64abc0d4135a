# SPDX-License-Identifier: Apache-2.0
"""What the page asks: words typed into fields, read into a spec within bounds, and a spec put back into words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, TypeAlias, TypeVar

from ...byte_sizes import parse_size
from ...errors import LayoutError, MemoryConfigError, TilewrightError
from ...formats import format_of
from ...memory import (
    Chip,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    TensorLayout,
    TensorMemoryLayout,
    TensorSpec,
    Tile,
    block_sharded,
    chip_names,
    height_sharded,
    interleaved,
    nd_sharded,
    width_sharded,
)
from ...memory.legality import placement_violations

Words: TypeAlias = Mapping[str, str]
Made = TypeVar("Made")

# A page can ask for anything; these keep every answer quick.
USUAL_CHIP = "wormhole_n150"
LONGEST = 400  # characters of one field
MOST_DIMENSIONS = 8
MOST_DIGITS = 12
MOST_CORES = 4096

_STRATEGIES = {"height_sharded": height_sharded, "width_sharded": width_sharded, "block_sharded": block_sharded}
FIELDS = (
    *("shape", "dtype", "layout", "tile", "memory", "buffer", "grid", "shard", "orientation", "distribution"),
    *("chip", "dispatch", "circular", "alignment"),
)
MEMORIES = ("interleaved", *_STRATEGIES, "nd_sharded")
_RANGE = re.compile(r"\(?(\d+),(\d+)\)?(?:-\(?(\d+),(\d+)\)?)?")


class FieldError(LayoutError):
    """A field that cannot be read, or whose value the library refuses; the page shows the message beside it.

    >>> FieldError("shape", "4xfoo is no shape; use 4x60").field
    'shape'
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def numbers(words: Words, field: str, example: str, most: int = MOST_DIMENSIONS) -> tuple[int, ...]:
    """Return the numbers in a field, written as 4x60x90, 4,60,90 or (4, 60, 90); none if it is empty.

    >>> numbers({"shape": "4x60x90"}, "shape", "4x60"), numbers({"at": "(2, 33)"}, "at", "0,0"), numbers({}, "at", "0")
    ((4, 60, 90), (2, 33), ())
    """
    text = words.get(field, "").strip()
    inner = text[1:-1] if text[:1] in ("(", "[") and text[-1:] in (")", "]") else text
    if not inner.strip():
        return ()
    parts = [part.strip() for part in re.split(r"[x×*,\s]+", inner.strip().strip(","))]
    if not all(re.fullmatch(r"[0-9]+", part) for part in parts):
        raise FieldError(field, f"{text!r} is no list of whole numbers; write it as {example}")
    if len(parts) > most:
        raise FieldError(field, f"{text!r} has {len(parts)} numbers, and there may be {most}; write it as {example}")
    if max(map(len, parts)) > MOST_DIGITS:
        raise FieldError(field, f"a number in {text!r} is too large; use at most {MOST_DIGITS} digits")
    return tuple(map(int, parts))


def number(words: Words, field: str, usual: int) -> int:
    """Return the one number in a field, or the usual one if it is empty.

    >>> number({"circular": "65536"}, "circular", 0), number({}, "circular", 0)
    (65536, 0)
    """
    found = numbers(words, field, str(usual), 1)
    return found[0] if found else usual


def size(words: Words, field: str) -> int:
    """Return the bytes in a field, such as 64KiB; none if it is empty.

    >>> size({"circular": "64KiB"}, "circular"), size({"circular": "65536"}, "circular"), size({}, "circular")
    (65536, 65536, 0)
    """
    text = words.get(field, "").strip()
    found = parse_size(text) if text else 0
    if found is None or len(str(found)) > MOST_DIGITS:
        raise FieldError(field, f"{text!r} is not a size; write it as 64KiB, or as a number of bytes such as 65536")
    return found


def cores(words: Words, chip: Chip) -> CoreRangeSet:
    """Return the cores in the field `grid`: columns x rows, or ranges such as 0,0-3,1+5,0-6,1; all if it is empty.

    >>> chip = Chip.named("n150")
    >>> cores({"grid": "8x4"}, chip).num_cores, cores({"grid": "0,0-3,1+5,0-6,1"}, chip).num_cores
    (32, 12)
    """
    text = words.get("grid", "").strip()
    if not text:
        return CoreRangeSet.of(tuple(chip.shard_grid(words.get("buffer") or "dram")))
    parts = text.replace("+", " ").split()
    if all(_RANGE.fullmatch(part) for part in parts) and "," in text and "-" in text:
        corners = [[int(n) for n in _RANGE.fullmatch(part).groups() if n is not None] for part in parts]  # type: ignore[union-attr]
        ranges = [((c[0], c[1]), (c[-2], c[-1])) for c in corners]
        sizes = [(last[0] - first[0] + 1) * (last[1] - first[1] + 1) for first, last in ranges]
    else:
        columns, rows = (*numbers(words, "grid", "8x8, or as ranges 0,0-3,1+5,0-6,1", 2), 0, 0)[:2]
        if not columns or not rows:
            raise FieldError("grid", f"{text!r} is no grid of cores; give columns x rows, such as 8x8")
        ranges, sizes = [((0, 0), (columns - 1, rows - 1))], [columns * rows]
    if sum(sizes) > MOST_CORES:
        raise FieldError("grid", f"{text!r} is {sum(sizes)} cores, more than any chip has; use at most {MOST_CORES}")
    return _asked("grid", lambda: CoreRangeSet(ranges))


def arguments_of(words: Words) -> dict[str, Any]:
    """Return the arguments of `TensorSpec` that the fields spell; every problem names its field.

    >>> arguments_of({"shape": "64x64", "dtype": "bfloat8_b", "chip": "n150"})["shape"]
    (64, 64)
    """
    for field, text in words.items():
        if len(text) > LONGEST:
            raise FieldError(field, f"{field} has {len(text)} characters; use at most {LONGEST}")
    shape = numbers(words, "shape", "1x4x60x90")
    if not shape:
        raise FieldError("shape", "a tensor needs a shape; write it as 1x4x60x90")
    chip = _asked("chip", lambda: Chip.named(words.get("chip") or USUAL_CHIP, words.get("dispatch") or "fast"))
    found: dict[str, Any] = {
        "shape": shape,
        "dtype": _asked("dtype", lambda: format_of(words.get("dtype") or "bfloat16")),
        "layout": _asked("layout", lambda: TensorLayout.of(words.get("layout") or "tile")),
        "chip": chip,
        "memory": _memory(words, chip),
    }
    if tile := numbers(words, "tile", "32x32", 2):
        found["tile"] = _asked("tile", lambda: Tile(tile))
    if alignment := numbers(words, "alignment", "32x32"):
        found["alignment"] = alignment
    return found


def _memory(words: Words, chip: Chip) -> Any:
    kind, buffer = words.get("memory") or "interleaved", words.get("buffer") or "dram"
    if kind not in MEMORIES:
        raise FieldError("memory", f"{kind!r} is no way to place pages; choose one of {', '.join(MEMORIES)}")
    if kind == "interleaved":
        return _asked("buffer", lambda: interleaved(buffer))
    shard = numbers(words, "shard", "64x32")
    order = words.get("orientation") or "row_major"
    on = _asked("grid", lambda: cores(words, chip))
    if kind == "nd_sharded":
        if not shard:
            raise FieldError("shard", "nd sharding needs the shape of a shard; give one extent a dimension, as 1x32x64")
        dealt = words.get("distribution") or "round_robin_1d"
        return _asked("shard", lambda: nd_sharded(shard, on, order, dealt, buffer))
    return _asked("shard", lambda: _STRATEGIES[kind](on, shard or None, order, buffer))


def _asked(field: str, make: Callable[[], Made]) -> Made:
    """Return what is made, with problems laid at the door of a field."""
    try:
        return make()
    except FieldError:
        raise
    except TilewrightError as problem:
        raise FieldError(field, str(problem)) from None


def spec_of(words: Words) -> TensorSpec:
    """Return the spec that the fields spell.

    >>> print(spec_of({"shape": "64x96", "memory": "block_sharded", "buffer": "l1", "grid": "8x8", "chip": "n150"}))
    [64, 96] bfloat16 in tiles of 32 x 32, block sharded in L1, shards of 32 x 32 on 64 cores, wormhole_n150
    """
    return TensorSpec(**arguments_of(words))


def words_of(spec: TensorSpec) -> dict[str, str]:
    """Return the fields that spell a spec: `spec_of(words_of(spec))` places every page alike.

    >>> words_of(TensorSpec((64, 96), "bfloat16", memory=height_sharded((2, 1)), chip="n150"))["shard"]
    '32x96'
    """
    chip = spec.known_chip
    if chip.name not in chip_names() or chip != Chip.named(chip.name, chip.dispatch):
        raise MemoryConfigError(f"the explorer knows the shipped chips, not {chip!r}; choose one of them")
    found = {
        "shape": by(spec.shape.logical),
        "dtype": spec.dtype.name,
        "layout": spec.layout.name.lower(),
        "tile": by(spec.tile.shape),
        "memory": "interleaved",
        "buffer": spec.memory.buffer_type.name.lower(),
        "chip": chip.name,
        "dispatch": chip.dispatch,
    }
    if spec.alignment is not None:
        found["alignment"] = by(spec.alignment)
    sharding = spec.memory.sharding
    if sharding is not None:
        found["memory"] = _kind(spec.memory, sharding)
        found |= {"grid": _grid(sharding.grid), "shard": by(sharding.shape)}
        found |= {"orientation": sharding.orientation.name.lower()}
        if found["memory"] == "nd_sharded":
            found["distribution"] = sharding.distribution.name.lower()
    return found


def _kind(memory: MemoryConfig, sharding: NdShardSpec) -> str:
    """Return the name of a sharding: that of a strategy where it places alike, else the general one."""
    layout = memory.memory_layout
    if layout is TensorMemoryLayout.ND_SHARDED or len(sharding.shape) != 2:
        return "nd_sharded"
    plain = MemoryConfig(layout, memory.buffer_type, ShardSpec(sharding.grid, sharding.shape, sharding.orientation))
    return layout.name.lower() if plain.sharding == sharding else "nd_sharded"


def _grid(grid: CoreRangeSet) -> str:
    first = grid.ranges[0]
    if len(grid) == 1 and tuple(first.start) == (0, 0):
        return f"{first.width}x{first.height}"
    return "+".join(f"{r.start.x},{r.start.y}-{r.end.x},{r.end.y}" for r in grid.ranges)


def by(extents: tuple[int, ...]) -> str:
    """Return extents as they are typed.

    >>> by((4, 60, 90))
    '4x60x90'
    """
    return "x".join(map(str, extents))


def element_of(words: Words, spec: TensorSpec) -> tuple[int, ...]:
    """Return the coordinate in the field `at`, or the first element where it is empty.

    >>> element_of({"at": "1,2"}, TensorSpec((4, 8))), element_of({}, TensorSpec((4, 8)))
    ((1, 2), (0, 0))
    """
    at = numbers(words, "at", ",".join("0" * max(1, spec.shape.rank)))
    if not at:
        return (0,) * spec.shape.rank
    shape = spec.shape.logical
    if len(at) != len(shape) or not all(c < n for c, n in zip(at, shape, strict=True)):
        raise FieldError(
            "at", f"element {at} is outside shape {list(shape)}: give {len(shape)} entries, each below its extent"
        )
    return at


def drawable(spec: TensorSpec) -> TensorSpec:
    """Return the spec if there is something to draw.

    >>> drawable(TensorSpec((64, 64), chip="n150")).num_pages
    64
    """
    if not spec.num_pages or not prod(spec.shape.logical):
        raise FieldError("shape", f"{list(spec.shape.logical)} has no elements; give every dimension at least 1")
    return spec


def require_place(spec: TensorSpec) -> TensorSpec:
    """Return the spec if its pages have places on its chip, were it large enough.

    >>> require_place(TensorSpec((64, 64), chip="n150")).num_pages
    64
    """
    for violation in placement_violations(spec, any_size=True):
        raise FieldError("memory", str(violation))
    if not spec.num_pages:
        raise FieldError("shape", f"{list(spec.shape.logical)} has no elements; give every dimension at least 1")
    return spec
