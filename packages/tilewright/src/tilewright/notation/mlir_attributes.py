# SPDX-License-Identifier: Apache-2.0
"""Other attributes of tt-mlir that say where tensors are: cores, shards, memory configs, ND and metal layouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._text import MAX_RANK, TextCursor
from ..errors import FileFormatError
from ..memory import BufferType, MemoryConfig, NdShardSpec, ShardDistribution, ShardOrientation, ShardSpec
from .affine_map import AffineMap, read_affine_map
from .mlir_cores import read_core_ranges, read_word, require_single
from .mlir_layouts import (
    MEMORY_LAYOUTS,
    parse_with_aliases,
    read_grid,
    read_layout,
    read_memory_layout,
)
from .mlir_types import SPACES, Aliases, Memref, read_attribute, read_dims, read_memref, read_space

_MNEMONIC = re.compile(r"#(?:ttnn|ttcore|tt)\.(\w+)", re.ASCII)
_KEY = re.compile(r"([A-Za-z_]\w*)\s*=", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INTEGERS = re.compile(r"\d{1,19}(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class MlirNdLayout:
    """A #ttnn.ttnn_nd_layout: shards of any rank, one `memref` each, on a `grid` of cores.

    >>> layout = parse_mlir_attribute(
    ...     "#ttnn.ttnn_nd_layout<<2x4>, memref<1x1x1x!ttcore.tile<32x32, bf16>, #l1>, <nd_sharded>, <row_major>,"
    ...     " <round_robin_1d>>"
    ... )
    >>> layout.shard_shape, layout.distribution
    ((1, 32, 32), 'round_robin_1d')
    """

    grid: tuple[int, ...]
    memref: Memref
    memory_layout: str | None = None
    orientation: str | None = None
    distribution: str | None = None
    extra: tuple[str, ...] = ()  # what comes after these

    @property
    def shard_shape(self) -> tuple[int, ...]:
        """Return the extents of a shard in elements.

        >>> parse_mlir_attribute("#ttnn.ttnn_nd_layout<<2>, memref<4x8xf32, #l1>>").shard_shape
        (4, 8)
        """
        tile = (self.memref.tile or ())[-len(self.memref.shape) :]
        units = (*[1] * (len(self.memref.shape) - len(tile)), *tile)
        return tuple([n * unit for n, unit in zip(self.memref.shape, units, strict=True)])


@dataclass(frozen=True, slots=True)
class MetalLayout:
    """A #ttcore.metal_layout: the logical shape and its alignments, or, in an older form, a map, a grid and a memref.

    >>> layout = parse_mlir_attribute(
    ...     "#ttcore.metal_layout<logical_shape = 8x300, dim_alignments = 32x32, collapsed_intervals ="
    ...     " dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, l1, sharded>"
    ... )
    >>> layout.logical_shape, layout.aligned_shape, layout.collapsed_intervals, layout.space
    ((8, 300), (32, 320), ((0, 1), (1, 2)), 'l1')
    """

    logical_shape: tuple[int, ...] | None = None
    dim_alignments: tuple[int, ...] | None = None
    collapsed_intervals: tuple[tuple[int, int], ...] = ()
    space: str | None = None
    memory_layout: str | None = None  # sharded or interleaved; in the older form, how it is sharded
    out_of_bounds: str | None = None  # what padding holds
    map: AffineMap | None = None
    grid: tuple[int, ...] | None = None
    memref: Memref | None = None
    extra: tuple[tuple[str, str], ...] = ()  # other named parts, as texts

    @property
    def aligned_shape(self) -> tuple[int, ...] | None:
        """Return the logical shape rounded up to the alignments, or None if it is not given.

        >>> MetalLayout(logical_shape=(8, 300), dim_alignments=(32, 32)).aligned_shape
        (32, 320)
        """
        if self.logical_shape is None or self.dim_alignments is None:
            return self.logical_shape
        pairs = zip(self.logical_shape, self.dim_alignments, strict=True)
        return tuple([-(-n // max(1, unit)) * unit for n, unit in pairs])


@dataclass(frozen=True, slots=True)
class ShardStrides:
    """A #ttcore.shard: the byte strides of a shard in the memory of a core, and how many buffers it has.

    >>> parse_mlir_attribute("#ttcore.shard<16384x2048, 1>")
    ShardStrides(strides=(16384, 2048), buffers=1)
    """

    strides: tuple[int, ...]
    buffers: int


def parse_mlir_attribute(text: str, aliases: Mapping[str, str] | None = None) -> Any:
    """Return the value of an attribute of tt-mlir in a `text`; `aliases` are those of its file, by name.

    Cores, shards and memory configs are those of the library; layouts have classes of their own.

    >>> parse_mlir_attribute("#ttnn.memory_config<#ttnn.buffer_type<dram>, <interleaved>>")
    MemoryConfig('interleaved', 'dram')
    >>> parse_mlir_attribute("#ttnn.core_range_set<[#ttnn.core_range<(0,0), (7,7)>]>").num_cores
    64
    """
    return parse_with_aliases(text, aliases or {}, _read_any, "an attribute")


def _read_any(cursor: TextCursor, aliases: Aliases) -> Any:
    start = cursor.skip_space()
    found = cursor.match(_MNEMONIC)
    cursor.at = start
    if not found or found[1] not in _READERS:
        cursor.fail(f"one of {', '.join(_READERS)} of the dialects ttnn and ttcore")
    return _READERS[found[1]](cursor, aliases)


def _open(cursor: TextCursor, name: str) -> None:
    """Move past the name of an attribute and its opening bracket; the name may be left out."""
    if cursor.accept("#"):
        cursor.take(re.compile(rf"(?:ttnn|ttcore|tt)\.{name}(?!\w)"), f"'ttnn.{name}'")
    cursor.expect("<")


def _read_buffer_type(cursor: TextCursor, aliases: Aliases) -> BufferType:
    return BufferType.of(read_space(cursor, aliases))


def _read_shape(cursor: TextCursor) -> tuple[int, ...]:
    cursor.expect("<")
    shape = read_dims(cursor)
    cursor.expect(">")
    return shape


def _read_shard_spec(cursor: TextCursor, aliases: Aliases) -> ShardSpec:
    _open(cursor, "shard_spec")
    cores = read_core_ranges(cursor, aliases)
    cursor.expect(",")
    shape = _read_shape(cursor)
    cursor.expect(",")
    orientation = read_word(cursor, "an orientation")
    if cursor.accept(","):  # of older compilers
        start = cursor.skip_space()
        if read_word(cursor, "a mode") != "physical":
            cursor.at = start
            cursor.fail("the mode <physical>, since the place of logical shards is not known,")
    cursor.expect(">")
    return ShardSpec(cores, shape, orientation)


def _read_nd_shard_spec(cursor: TextCursor, aliases: Aliases) -> NdShardSpec:
    _open(cursor, "nd_shard_spec")
    cores = read_core_ranges(cursor, aliases)
    cursor.expect(",")
    shape = _read_shape(cursor)
    cursor.expect(",")
    orientation = read_word(cursor, "an orientation")
    distribution = read_word(cursor, "a distribution") if cursor.accept(",") else "round_robin_1d"
    cursor.expect(">")
    return NdShardSpec(shape, cores, orientation, distribution)


def _read_shards(cursor: TextCursor, aliases: Aliases) -> ShardSpec | NdShardSpec:
    is_nd = cursor.peek("#ttnn.nd_shard_spec")
    return _read_nd_shard_spec(cursor, aliases) if is_nd else _read_shard_spec(cursor, aliases)


def _read_memory_config(cursor: TextCursor, aliases: Aliases) -> MemoryConfig:
    _open(cursor, "memory_config")
    buffer = _read_buffer_type(cursor, aliases)
    layout: str | None = None
    shards: ShardSpec | NdShardSpec | None = None
    while cursor.accept(","):
        if cursor.skip_space() and _MEMORY_LAYOUT.match(cursor.text, cursor.at):
            require_single(layout, cursor, "the memory layout")
            layout = read_memory_layout(cursor)
            continue
        require_single(shards, cursor, "the shard spec")
        is_nd = cursor.match(_ND_KEY) is not None
        shards = read_attribute(cursor, aliases, _read_nd_shard_spec if is_nd else _read_shards)
    cursor.expect(">")
    general = shards if isinstance(shards, NdShardSpec) else None
    matrix = shards if isinstance(shards, ShardSpec) else None
    if layout is None:
        layout = "nd_sharded" if general else "interleaved"
    return MemoryConfig(layout, buffer, matrix, general)


_MEMORY_LAYOUT = re.compile(r"(?:#ttnn\.tensor_memory_layout\s*)?<\s*[A-Za-z]")
_ND_KEY = re.compile(r"ndShardSpec\s*=")


def _read_nd_layout(cursor: TextCursor, aliases: Aliases) -> MlirNdLayout:
    _open(cursor, "ttnn_nd_layout")
    grid, _ = read_grid(cursor)
    cursor.expect(",")
    memref = read_memref(cursor, aliases)
    words: list[str] = []
    while cursor.accept(","):
        if len(words) == MAX_RANK:
            cursor.fail("the end of an ND layout")
        words.append(cursor.raw().removeprefix("<").removesuffix(">"))
    cursor.expect(">")
    known = {}
    for name, members in _ND_WORDS.items():
        known[name] = next((word for word in words if word in members), None)
    extra = [word for word in words if word not in known.values()]
    return MlirNdLayout(grid, memref, **known, extra=tuple(extra))


_ND_WORDS = {
    "memory_layout": MEMORY_LAYOUTS,
    "orientation": tuple([member.name.lower() for member in ShardOrientation]),
    "distribution": tuple([member.name.lower() for member in ShardDistribution]),
}


def _read_metal_layout(cursor: TextCursor, aliases: Aliases) -> MetalLayout:
    _open(cursor, "metal_layout")
    fields: dict[str, Any] = {}
    extra: dict[str, str] = {}
    while True:
        name, value = _read_metal_part(cursor, aliases)
        table = fields if name in _METAL_FIELDS else extra
        require_single(table.get(name), cursor, name)
        table[name] = value
        if not cursor.accept(","):
            break
    cursor.expect(">")
    layout = MetalLayout(**fields, extra=tuple(extra.items()))
    if layout.memref is None and layout.logical_shape is None:
        raise FileFormatError(f"{cursor.name}: the layout up to character {cursor.at} lacks a logical shape")
    shape, alignments = layout.logical_shape or (), layout.dim_alignments
    if alignments is not None and len(alignments) != len(shape):
        raise FileFormatError(
            f"{cursor.name}: the layout up to character {cursor.at} has {len(shape)} extents, but {len(alignments)}"
            " alignments"
        )
    return layout


_METAL_FIELDS = tuple([name for name in MetalLayout.__slots__ if name != "extra"])


def _read_metal_part(cursor: TextCursor, aliases: Aliases) -> tuple[str, Any]:
    """Return the field that comes next, and its value."""
    if key := cursor.match(_KEY):
        name = key[1]
        if name in ("logical_shape", "dim_alignments"):
            return name, read_dims(cursor)
        return name, _read_intervals(cursor) if name == "collapsed_intervals" else cursor.raw()
    if cursor.peek("memref"):
        return "memref", read_memref(cursor, aliases)
    if cursor.peek("<"):
        return "grid", read_grid(cursor)[0]
    if cursor.peek("#ttcore.memory_space"):
        return "space", read_space(cursor, aliases)
    if cursor.peek("(") or cursor.peek("#") or cursor.peek("affine_map"):
        return "map", read_attribute(cursor, aliases, lambda at, _: read_affine_map(at))
    word = cursor.take(_WORD, "a part of a metal layout")
    if word in SPACES:
        return "space", word
    return ("memory_layout" if word in _METAL_MEMORY_LAYOUTS else "out_of_bounds"), word


_METAL_MEMORY_LAYOUTS = ("sharded", *MEMORY_LAYOUTS)


def _read_intervals(cursor: TextCursor) -> tuple[tuple[int, int], ...]:
    """Return the pairs of a constant such as dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>."""
    cursor.expect("dense")
    cursor.expect("<")
    start = cursor.at
    text = "" if cursor.peek(">") else cursor.raw()
    cursor.expect(">")
    if cursor.accept(":"):
        cursor.raw()
    numbers = [int(number) for number in _INTEGERS.findall(text)]
    if len(numbers) % 2 or len(numbers) > 2 * MAX_RANK:
        cursor.at = start
        cursor.fail("pairs of integers")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _read_shard_strides(cursor: TextCursor, _aliases: Aliases) -> ShardStrides:
    _open(cursor, "shard")
    strides = read_dims(cursor)
    cursor.expect(",")
    buffers = cursor.integer("the number of buffers")
    cursor.expect(">")
    return ShardStrides(strides, buffers)


_READERS: dict[str, Callable[[TextCursor, Aliases], Any]] = {
    "ttnn_layout": read_layout,
    "ttnn_nd_layout": _read_nd_layout,
    "memory_config": _read_memory_config,
    "shard_spec": _read_shard_spec,
    "nd_shard_spec": _read_nd_shard_spec,
    "core_range_set": read_core_ranges,
    "buffer_type": _read_buffer_type,
    "memory_space": read_space,
    "metal_layout": _read_metal_layout,
    "shard": _read_shard_strides,
}
