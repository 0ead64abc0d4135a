# SPDX-License-Identifier: Apache-2.0
"""What a tensor becomes: from its source and its settings to a spec, an order of dimensions and a pad value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import memory as placements
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..files import StoredTensor
from ..files.tensorbin_header import dtype_code
from ..formats import BlockFormat, Format, ScalarFormat, format_of
from ..memory import Chip, PageLayout, TensorSpec, Tile
from ..memory.placement_rules import validate_placement
from .rules import Rules, Settings

KINDS = ("tensorbin", "safetensors", "banks", "npy")

# What a tensorbin file takes in place of what it cannot hold: the next format that holds all values, where there is
# one; the values of 64-bit integers are checked as they are converted.
_NEAREST = {
    "float64": "float32",
    "float16": "float32",
    "float8_e4m3": "bfloat16",
    "float8_e5m2": "bfloat16",
    "int16": "int32",
    "int64": "int32",
    "uint64": "uint32",
    "bool": "uint8",
}


_WITHOUT_TILES = ("float8_e4m3",)


@dataclass(frozen=True, slots=True)
class Target:
    """What one tensor becomes, and what there is to say about it.

    `order` puts the dimensions of the source in the order of the spec, as `numpy.transpose` does.

    >>> Target(TensorSpec((3, 2), "bfloat8_b"), (1, 0)).order
    (1, 0)
    """

    spec: TensorSpec
    order: tuple[int, ...]
    pad_value: float = 0
    note: str | None = None


def target_of(source: StoredTensor, rules: Rules, to: str) -> Target | None:
    """Return what a tensor becomes by the rules in files of a kind, None if it is left out.

    >>> import tempfile, numpy
    >>> from tilewright import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((2, 3)))
    ...     target_of(open_tensors(folder)["x"], Rules.of({"x": {"transpose": True}}, dtype="bfloat8_b"), "tensorbin")
    Target(spec=TensorSpec((3, 2), 'bfloat8_b', 'tile'), order=(1, 0), pad_value=0, note=None)
    """
    own = rules.settings(source.name)
    both = own.over(rules.for_all)
    if both.skip:
        return None
    if source.format is None:
        raise FormatError(
            f"its elements are {source.kind}, for which there is no number format here; leave it out with skip = true"
        )
    dtype, note = _format(source.format, own, rules.for_all, to)
    order = _order(len(source.shape), both.transpose)
    shape = tuple([source.shape[d] for d in order])
    layout = PageLayout.of(_layout(both, dtype, to))
    tile = _tile(both) if layout is PageLayout.TILE else None  # of tensors in rows, what is said of tiles is not meant
    spec = TensorSpec(shape, dtype, layout, tile, _memory(both, to), _chip(both))
    if to == "tensorbin" and not spec.nbytes:
        raise LayoutError("it has no elements, and a tensorbin file cannot be empty; leave it out with skip = true")
    if to == "banks":
        _ = spec.known_chip
    if to != "npy":  # which says nothing about places
        validate_placement(spec)
    return Target(spec, order, 0 if both.pad_value is None else both.pad_value, note)


def _format(source: Format, own: Settings, for_all: Settings, to: str) -> tuple[Format, str | None]:
    """Return the format of a tensor, and a note if it is not the one that was asked for or the source's."""
    if own.dtype is not None:
        wanted, reason = format_of(own.dtype), None
    elif for_all.dtype is not None and _is_float(source):
        wanted, reason = format_of(for_all.dtype), None
    else:
        wanted = source
        skipped = for_all.dtype is not None and format_of(for_all.dtype) != source
        reason = f"integers stay {source}; a pattern would change them" if skipped else None
    if to == "npy" and isinstance(wanted, BlockFormat):
        if own.dtype is not None or (for_all.dtype is not None and _is_float(source)):
            raise FormatError(f".npy files hold numbers one by one, not {wanted}; choose float32, or another output")
        return format_of("float32"), f"{wanted} is unpacked to float32"
    if to != "tensorbin":
        return wanted, reason
    try:
        dtype_code(wanted)
    except FormatError:
        if own.dtype is not None or (for_all.dtype is not None and wanted != source) or wanted.name not in _NEAREST:
            raise
        nearest = format_of(_NEAREST[wanted.name])
        return nearest, f"{wanted} becomes {nearest}, since tensorbin files hold no {wanted}"
    return wanted, reason


def _is_float(element: Format) -> bool:
    return isinstance(element, BlockFormat) or element.kind == "float"


def is_checked(source: Format, target: Format) -> bool:
    """Return whether values of one format may not fit the other, both integers, and are looked at as they pass.

    >>> is_checked(format_of("int64"), format_of("int32")), is_checked(format_of("uint8"), format_of("int32"))
    (True, False)
    """
    if not (isinstance(source, ScalarFormat) and isinstance(target, ScalarFormat)):
        return False
    if "float" in (source.kind, target.kind) or "bool" in (source.kind, target.kind):
        return False
    inner, outer = source.limits, target.limits
    return inner.lowest < outer.lowest or inner.highest > outer.highest


def _order(rank: int, transpose: Any) -> tuple[int, ...]:
    plain = tuple(range(rank))
    if not isinstance(transpose, (list, tuple)):
        return (*plain[:-2], rank - 1, rank - 2) if transpose and rank > 1 else plain
    order = tuple([d % rank if -rank <= d < rank else d for d in transpose])
    if sorted(order) != list(plain):
        raise LayoutError(f"transpose = {list(transpose)} is no order of its {rank} dimensions; name each once")
    return order


def _layout(settings: Settings, dtype: Format, to: str) -> Any:
    if to == "npy":
        return "row_major"
    usual = "row_major" if dtype.name in _WITHOUT_TILES else "tile"
    return usual if settings.layout is None else settings.layout


def _tile(settings: Settings) -> Tile:
    shape = settings.tile
    if isinstance(shape, Tile):
        return shape
    return Tile((32, 32) if shape is None else tuple(shape), bool(settings.transpose_tile))


def _chip(settings: Settings) -> Chip | None:
    return None if settings.chip is None else Chip.of(settings.chip)


def _memory(settings: Settings, to: str) -> Any:
    """Return the memory config, or the sharding that becomes one when the shape is known."""
    if to == "npy":
        return None
    if settings.memory is not None:
        return settings.memory
    given = {name: getattr(settings, name) for name in ("grid", "shard_shape", "shard_dims")}
    if settings.shard is None:
        for name, value in given.items():
            if value is not None:
                raise MemoryConfigError(f"{name} = {value} needs shard, such as shard = 'height'")
        return placements.interleaved("dram" if settings.buffer is None else settings.buffer)
    cores, buffer = settings.grid, settings.buffer or "l1"
    if cores is None:
        chip = _chip(settings)
        if chip is None:
            raise MemoryConfigError("shards need cores; give a grid such as [8, 8], or a chip, whose cores are taken")
        cores = tuple(chip.shard_grid(buffer))
    cores = _as_tuples(cores)
    orientation = settings.orientation or "row_major"
    if settings.shard == "dims":
        if settings.shard_dims is None:
            raise MemoryConfigError("shard = 'dims' needs shard_dims, such as [0, 1]")
        return placements.sharded_across_dims(list(settings.shard_dims), cores, orientation, buffer)
    if settings.shard == "nd":
        if settings.shard_shape is None:
            raise MemoryConfigError("shard = 'nd' needs shard_shape, such as [1, 64, 32]")
        distribution = settings.distribution or "round_robin_1d"
        return placements.nd_sharded(settings.shard_shape, cores, orientation, distribution, buffer)
    makers = {
        "height": placements.height_sharded,
        "width": placements.width_sharded,
        "block": placements.block_sharded,
    }
    return makers[settings.shard](cores, settings.shard_shape, orientation, buffer)


def _as_tuples(value: Any) -> Any:
    return tuple([_as_tuples(each) for each in value]) if isinstance(value, list) else value
