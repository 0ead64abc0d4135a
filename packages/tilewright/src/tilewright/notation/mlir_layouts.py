# SPDX-License-Identifier: Apache-2.0
"""`MlirLayout`: the layout of a tensor in the IR of tt-mlir, #ttnn.ttnn_layout, and the spec that it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .._text import TextCursor
from ..errors import FileFormatError, MemoryConfigError, TilewrightError
from ..memory import Chip, CoreRangeSet, MemoryConfig, ShardSpec, TensorSpec
from .affine_map import AffineMap, read_affine_map
from .mlir_cores import core_ranges_text, read_core_ranges, read_word, require_single
from .mlir_types import Aliases, Memref, TensorType, format_of_mlir, read_attribute, read_dims, read_memref

_Value = TypeVar("_Value")

MEMORY_LAYOUTS = ("interleaved", "single_bank", "height_sharded", "width_sharded", "block_sharded", "nd_sharded")

_KEY = re.compile(r"([A-Za-z_]\w*)\s*=", re.ASCII)
_BOOLEAN = re.compile(r"(true|false)(?!\w)")
_PATTERN = re.compile(r"\{\{|\[\[\s*[A-Za-z_#@$]")  # of FileCheck: a regular expression, or a variable


@dataclass(frozen=True, slots=True)
class MlirLayout:
    """A #ttnn.ttnn_layout: `map` folds a tensor to a matrix, `grid` cuts it, and each core holds a `memref`.

    >>> layout = parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x8>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>,"
    ...     " core_ranges = #row>",
    ...     {"l1": "#ttnn.buffer_type<l1>", "row": "#ttnn.core_range_set<[#r]>", "r": "#ttnn.core_range<(0,0), (7,0)>"},
    ... )
    >>> layout.grid, layout.memref.shape, layout.memory_layout, layout.core_ranges.num_cores
    ((1, 8), (1, 1), 'width_sharded', 8)

    Its text is IR, with everything that aliases stand for.

    >>> print(parse_mlir_layout("#a", {"a": "#ttnn.ttnn_layout<(d0) -> (d0), <1x1>, memref<8xf32, #system_memory>>"}))
    #ttnn.ttnn_layout<(d0) -> (d0), <1x1>, memref<8xf32, #ttnn.buffer_type<system_memory>>>
    """

    map: AffineMap
    grid: tuple[int, ...]
    memref: Memref
    memory_layout: str | None = None
    core_ranges: CoreRangeSet | None = None
    grid_map: str | None = None  # from the grid to physical cores, as text
    mesh: str | None = None  # as text
    ignore_physical: bool = False
    extra: tuple[tuple[str, str], ...] = ()  # other named parts, as texts

    @property
    def is_in_l1(self) -> bool:
        """Return whether the memory is L1, where every core of the grid holds a part.

        >>> parse_mlir_layout("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #dram>, <interleaved>>").is_in_l1
        False
        """
        return self.memref.space in ("l1", "l1_small")

    @property
    def is_sharded(self) -> bool:
        """Return whether each core holds a shard.

        >>> parse_mlir_layout("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #dram>, <interleaved>>").is_sharded
        False
        """
        return self.memory_layout is not None and self.memory_layout.endswith("sharded")

    def problems(self) -> list[str]:
        """Return the rules of the compiler's verifier that the layout breaks by itself, in its words.

        >>> parse_mlir_layout("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #dram>>").problems()
        ['Memory layout is required for non-SystemMemory buffer type.']
        """
        in_system = self.memref.space == "system_memory"
        if in_system and self.memory_layout is not None:
            return ["Memory layout is not allowed for SystemMemory buffer type."]
        if not in_system and self.memory_layout is None:
            return ["Memory layout is required for non-SystemMemory buffer type."]
        found = []
        if self.memory_layout == "block_sharded" and self.memref.space == "dram":
            found.append(
                "BlockSharded layout is not supported for DRAM buffer type; use WidthSharded, HeightSharded or"
                " Interleaved"
            )
        if self.core_ranges is not None and not self.is_sharded:
            found.append(f"non-sharded TTNN layout must not carry a core_range_set (got {self.memory_layout})")
        if self.is_sharded and self.core_ranges is None and not self.ignore_physical:
            found.append(f"sharded TTNN layout ({self.memory_layout}) must carry a core_range_set")
        return found

    @property
    def unplaced(self) -> list[str]:
        """Return the named parts that a spec does not have: a mesh, the map of the grid, and those that are unknown.

        >>> text = "#ttnn.ttnn_layout<(d0) -> (d0), <1, (d0) -> (d0)>, memref<8xf32, #dram>, <interleaved>, a = 3>"
        >>> parse_mlir_layout(text).unplaced
        ['grid map (d0) -> (d0)', 'a = 3']
        """
        named = [f"grid map {self.grid_map}"] if self.grid_map else []
        named += [f"mesh = {self.mesh}"] if self.mesh else []
        named += ["ignorePhysicalLayout = true"] if self.ignore_physical else []
        return named + [f"{name} = {text}" for name, text in self.extra]

    def to_spec(self, tensor: TensorType, chip: Chip | str | None = None) -> TensorSpec:
        """Return the spec of a `tensor` type with this layout on a `chip`, or raise if ttnn has no such placement.

        It is what the runtime makes of the two: the map and the memref of interleaved memory are the compiler's own.

        >>> from tilewright.notation import parse_tensor_type
        >>> layout = parse_mlir_layout(
        ...     "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #dram>,"
        ...     " <interleaved>>"
        ... )
        >>> layout.to_spec(parse_tensor_type("tensor<32x64xbf16>"))
        TensorSpec((32, 64), 'bfloat16', 'tile')
        """
        for problem in self.problems():
            raise MemoryConfigError(f"{tensor}: {problem}")
        shape = tuple([n for n in tensor.shape if n is not None])
        if len(shape) < len(tensor.shape):
            raise MemoryConfigError(f"{tensor} has extents that are not known; a spec needs all of them")
        if self.memref.space not in ("dram", "l1"):
            raise MemoryConfigError(f"{tensor} is in {self.memref.space}, which has no banks; use one in DRAM or L1")
        if self.map.dims != len(shape):
            raise MemoryConfigError(f"{tensor} has rank {len(shape)}, the map {self.map} another one")
        tile = self.memref.tile
        page_layout = "row_major" if tile is None else "tile"
        dtype = format_of_mlir(self.memref.dtype)
        return TensorSpec(shape, dtype, page_layout, tile, self._memory_config(), chip)

    def _memory_config(self) -> MemoryConfig:
        if self.core_ranges is None or not self.is_sharded:
            return MemoryConfig("interleaved", self.memref.space)
        if len(self.memref.shape) != 2:
            raise MemoryConfigError(f"a shard is a matrix, got a memref of shape {list(self.memref.shape)}")
        height, width = self.memref.tile or (1, 1)
        shard = (self.memref.shape[0] * height, self.memref.shape[1] * width)
        return MemoryConfig(self.memory_layout or "", self.memref.space, ShardSpec(self.core_ranges, shard))

    def __str__(self) -> str:
        grid = "x".join(map(str, self.grid)) + (f", {self.grid_map}" if self.grid_map else "")
        parts = [str(self.map), f"<{grid}>"]
        if self.mesh:
            parts.append(f"mesh = {self.mesh}")
        parts.append(str(self.memref))
        if self.memory_layout is not None:
            parts.append(f"<{self.memory_layout}>")
        if self.core_ranges is not None:
            parts.append(f"core_ranges = {core_ranges_text(self.core_ranges)}")
        if self.ignore_physical:
            parts.append("ignorePhysicalLayout = true")
        parts += [f"{name} = {text}" for name, text in self.extra]
        return f"#ttnn.ttnn_layout<{', '.join(parts)}>"


def is_test_pattern(text: str) -> bool:
    """Return whether a `text` is a pattern of a test rather than IR: it has a regular expression or a variable in it.

    >>> is_test_pattern("memref<{{.*}}xf32, #dram>"), is_test_pattern("[[LAYOUT]]"), is_test_pattern("dense<[[0, 1]]>")
    (True, True, False)
    """
    return _PATTERN.search(text) is not None


def parse_mlir_layout(text: str, aliases: Mapping[str, str] | None = None) -> MlirLayout:
    """Return the layout of a `text` of tt-mlir, or of the alias that it is; `aliases` are those of its file, by name.

    >>> parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x8xf32, #dram>, <interleaved>>"
    ... ).memref.shape
    (1, 8)
    """
    return parse_with_aliases(text, aliases or {}, read_layout, "a layout")


def parse_with_aliases(
    text: str, aliases: Mapping[str, str], read: Callable[[TextCursor, Aliases], _Value], name: str
) -> _Value:
    """Return what `read` makes of a whole `text`, which messages call `name`; each error is a `FileFormatError`.

    >>> parse_with_aliases("#n", {"n": "7"}, lambda cursor, aliases: cursor.integer(), "a number")
    7
    """
    if is_test_pattern(text):
        raise FileFormatError(f"{name}: {text[:60]!r} is a test pattern, not IR")
    cursor = TextCursor(text, name)
    try:
        value = read_attribute(cursor, aliases, read)
        cursor.expect_end()
    except FileFormatError:
        raise
    except TilewrightError as problem:  # well-formed, but such a value cannot exist
        raise FileFormatError(f"{name}, before character {cursor.at + 1}: {problem}") from None
    return value


def read_grid(cursor: TextCursor) -> tuple[tuple[int, ...], str | None]:
    """Return the grid at a `cursor`, such as <8x8>, and the text of the map after it, if there is one.

    >>> read_grid(TextCursor("<8x8, (d0, d1) -> (0, d0, d1)>", "a grid"))
    ((8, 8), '(d0, d1) -> (0, d0, d1)')
    """
    cursor.expect("<")
    grid = read_dims(cursor)
    parts = []
    while cursor.accept(","):
        parts.append(cursor.raw())
    cursor.expect(">")
    return grid, ", ".join(parts) or None


def read_memory_layout(cursor: TextCursor) -> str:
    """Return the memory layout at a `cursor`, such as <interleaved>.

    >>> read_memory_layout(TextCursor("<height_sharded>", "a layout"))
    'height_sharded'
    """
    start = cursor.skip_space()
    word = read_word(cursor, "a memory layout")
    if word not in MEMORY_LAYOUTS:
        cursor.at = start
        cursor.fail(f"a memory layout, one of {', '.join(MEMORY_LAYOUTS)},")
    return word


def read_layout(cursor: TextCursor, aliases: Aliases) -> MlirLayout:
    """Return the layout at a `cursor`, with `aliases` for its parts, which can come in any order.

    >>> text = "#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #dram>, <interleaved>, ignorePhysicalLayout = true>"
    >>> read_layout(TextCursor(text, "a layout"), {}).ignore_physical
    True
    """
    cursor.expect("#ttnn.ttnn_layout")
    cursor.expect("<")
    parts = _LayoutParts()
    while True:
        parts.read_part(cursor, aliases)
        if not cursor.accept(","):
            break
    cursor.expect(">")
    if parts.map is None or parts.grid is None or parts.memref is None:
        raise FileFormatError(f"{cursor.name}: the layout up to character {cursor.at} lacks a map, a grid or a memref")
    return MlirLayout(
        parts.map,
        parts.grid,
        parts.memref,
        parts.memory_layout,
        parts.core_ranges,
        parts.grid_map,
        parts.mesh,
        bool(parts.ignore_physical),
        tuple(parts.extra.items()),
    )


class _LayoutParts:
    """The parts of a layout that were read so far."""

    def __init__(self) -> None:
        self.map: AffineMap | None = None
        self.grid: tuple[int, ...] | None = None
        self.grid_map: str | None = None
        self.memref: Memref | None = None
        self.memory_layout: str | None = None
        self.core_ranges: CoreRangeSet | None = None
        self.mesh: str | None = None
        self.ignore_physical: bool | None = None
        self.extra: dict[str, str] = {}

    def read_part(self, cursor: TextCursor, aliases: Aliases) -> None:
        if cursor.peek("memref"):
            require_single(self.memref, cursor, "the memref")
            self.memref = read_memref(cursor, aliases)
        elif key := cursor.match(_KEY):
            self._read_named(cursor, aliases, key[1])
        elif cursor.peek("(") or cursor.peek("affine_map") or (cursor.peek("#") and not cursor.peek("#ttnn.")):
            require_single(self.map, cursor, "the map")
            self.map = read_attribute(cursor, aliases, lambda at, _: read_affine_map(at))
        elif self.grid is None and cursor.peek("<"):
            self.grid, self.grid_map = read_grid(cursor)
        else:
            require_single(self.memory_layout, cursor, "the memory layout")
            self.memory_layout = read_memory_layout(cursor)

    def _read_named(self, cursor: TextCursor, aliases: Aliases, key: str) -> None:
        if key == "core_ranges":
            require_single(self.core_ranges, cursor, key)
            self.core_ranges = read_core_ranges(cursor, aliases)
        elif key == "ignorePhysicalLayout":
            require_single(self.ignore_physical, cursor, key)
            self.ignore_physical = cursor.take(_BOOLEAN, "true or false") == "true"
        elif key in ("mesh", "tensor_mesh"):
            require_single(self.mesh, cursor, key)
            self.mesh = cursor.raw()
        else:
            require_single(self.extra.get(key), cursor, key)
            self.extra[key] = cursor.raw()
