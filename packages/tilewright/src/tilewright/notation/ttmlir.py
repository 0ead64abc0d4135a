# SPDX-License-Identifier: Apache-2.0
"""`MlirLayout`: the layout of a tensor in the IR of tt-mlir, #ttnn.ttnn_layout, and the spec that it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias, TypeVar

from .._integers import ceil_div, round_up
from .._text import MAX_RANK, TextCursor, spell_extents
from ..errors import FileFormatError, LayoutError, MemoryConfigError, TilewrightError
from ..formats import Format, FormatLike, format_of
from ..memory import (
    Chip,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
    TensorSpec,
)
from ..ttnn.text import MAX_CORE, MAX_RANGES
from .maps import AffineMap, read_affine_map

# Types of MLIR as tt-mlir uses them: tensors with an encoding, and memrefs of scalars or tiles; and aliases.

Aliases = Mapping[str, str]  # what #name stands for, by its name without the mark, and what !name does, with it

_Value = TypeVar("_Value")

_ALIAS = re.compile(r"#([A-Za-z_][\w$]*)(?![\w$.<])", re.ASCII)
_LONE_ALIAS = re.compile(r"\s*#([A-Za-z_][\w$]*)\s*", re.ASCII)
_TYPE_ALIAS = re.compile(r"![A-Za-z_][\w$]*(?![\w$.<])", re.ASCII)
_TYPE = re.compile(r"[A-Za-z]\w*", re.ASCII)
_BUFFER = re.compile(r"(?:#(?:ttnn\.buffer_type|ttcore\.memory_space|tt\.memory_space)\s*)?<\s*(\w+)\s*>", re.ASCII)
_MAX_STEPS = 64  # from alias to alias

SPACES = ("dram", "l1", "system_memory", "system", "mmio", "dst", "l1_small", "trace")
"""Memories that buffer_type and memory_space name."""

_FORMATS: dict[str, FormatLike] = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i1": "bool",
    **{f"bfp_{kind}{bits}": f"bfloat{bits}_{end}" for kind, end in (("f", "a"), ("bf", "b")) for bits in (8, 4, 2)},
    **{f"{sign}{bits}": f"int{bits}" for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"{sign}{bits}": f"uint{bits}" for sign in ("u", "ui") for bits in (8, 16, 32, 64)},
}


def format_of_mlir(name: str) -> Format:
    """Return the number format of an element type `name` of tt-mlir.

    >>> format_of_mlir("bfp_bf8").name, format_of_mlir("si32").name
    ('bfloat8_b', 'int32')
    """
    if name not in _FORMATS:
        raise FileFormatError(f"unknown element type {name[:40]!r}; expected one of {', '.join(_FORMATS)}")
    return format_of(_FORMATS[name])


def mlir_dtype(element: FormatLike, in_tile: bool) -> str:
    """Return the element type of tt-mlir for a number format `element`, as it is called in tiles or outside of them.

    >>> mlir_dtype("uint32", in_tile=True), mlir_dtype("uint32", in_tile=False)
    ('u32', 'ui32')
    """
    own = format_of(element).name
    names = [name for name, value in _FORMATS.items() if value == own]
    if not names:
        raise FileFormatError(f"tt-mlir has no element type for {own}")
    unsigned = f"{'u' if in_tile else 'ui'}{own.removeprefix('uint')}"
    return next((name for name in names if name in (unsigned, f"s{names[0]}")), names[0])


def resolve_alias(name: str, aliases: Aliases) -> str | None:
    """Return the text that the alias `name` stands for in `aliases`, over any number of steps; None if it has none.

    >>> resolve_alias("a", {"a": "#b", "b": "#ttnn.buffer_type<l1>"}), resolve_alias("c", {})
    ('#ttnn.buffer_type<l1>', None)
    """
    for _ in range(_MAX_STEPS):
        text = aliases.get(name)
        match = None if text is None else _LONE_ALIAS.fullmatch(text)
        if match is None:
            return text
        name = match[1]
    raise FileFormatError(f"alias #{name} stands for itself, or for more than {_MAX_STEPS} others")


def read_attribute(cursor: TextCursor, aliases: Aliases, read: Callable[[TextCursor, Aliases], _Value]) -> _Value:
    """Return the result of `read` for the attribute at a `cursor`, or for the text behind an alias there.

    >>> read_attribute(TextCursor("#n", "a number"), {"n": "7"}, lambda cursor, aliases: cursor.integer())
    7
    """
    start = cursor.skip_space()
    match = cursor.match(_ALIAS)
    if not match:
        return read(cursor, aliases)
    text = resolve_alias(match[1], aliases)
    if text is None:
        raise FileFormatError(f"{cursor.name}: alias #{match[1]} at character {start + 1} is not defined")
    inner = TextCursor(text, f"{cursor.name}, in #{match[1]}")
    value = read(inner, aliases)
    inner.expect_end()
    return value


def read_space(cursor: TextCursor, aliases: Aliases) -> str:
    """Return the memory at a `cursor`, such as #ttnn.buffer_type<dram>; an alias without a definition is read by name.

    The compiler names the aliases of memories after them: #dram, #dram2, #l1, #l1_.

    >>> read_space(TextCursor("#dram2", "a memref"), {"dram2": "#ttnn.buffer_type<dram>"})
    'dram'
    >>> read_space(TextCursor("#l1_", "a memref"), {})
    'l1'
    """
    start = cursor.skip_space()
    match = cursor.match(_ALIAS)
    if match:
        text = resolve_alias(match[1], aliases)
        space = _space_of_name(match[1]) if text is None else _space_of_text(text)
    else:
        buffer = cursor.match(_BUFFER)
        space = buffer[1] if buffer else None
    if space not in SPACES:
        cursor.at = start
        cursor.fail("a memory such as #ttnn.buffer_type<dram>")
    return space


def _space_of_text(text: str) -> str | None:
    match = _BUFFER.fullmatch(text.strip())
    return match[1] if match else None


def _space_of_name(name: str) -> str | None:
    return next((space for space in SPACES if re.fullmatch(rf"{space}_?\d*", name)), None)


def read_dims(cursor: TextCursor) -> tuple[int, ...]:
    """Return extents such as 1x32x64 at a `cursor`.

    >>> read_dims(TextCursor("1x32x64>", "a shape"))
    (1, 32, 64)
    """
    extents = [cursor.integer("an extent")]
    while cursor.accept("x"):
        if len(extents) == MAX_RANK:
            cursor.fail(f"at most {MAX_RANK} extents")
        extents.append(cursor.integer("an extent"))
    return tuple(extents)


def _read_element(cursor: TextCursor, aliases: Aliases) -> tuple[tuple[int, int] | None, str]:
    """Return the tile, or None, and the type of its elements."""
    start = cursor.skip_space()
    if match := cursor.match(_TYPE_ALIAS):
        text = aliases.get(match[0])
        if text is None:
            raise FileFormatError(f"{cursor.name}: alias {match[0]} at character {start + 1} is not defined")
        cursor = TextCursor(text, f"{cursor.name}, in {match[0]}")
    if not cursor.accept("!"):
        return None, cursor.take(_TYPE, "an element type")
    for name in ("ttcore.tile", "tt.tile"):
        if cursor.accept(name):
            break
    else:
        cursor.fail("'ttcore.tile'")
    cursor.expect("<")
    height = cursor.integer("the height of a tile")
    cursor.expect("x")
    width = cursor.integer("the width of a tile")
    cursor.expect(",")
    dtype = cursor.take(_TYPE, "an element type")
    cursor.expect(">")
    if not (height and width):
        raise FileFormatError(f"{cursor.name}: a tile of {height} x {width} is empty")
    return (height, width), dtype


def _element_text(tile: tuple[int, int] | None, dtype: str) -> str:
    return dtype if tile is None else f"!ttcore.tile<{tile[0]}x{tile[1]}, {dtype}>"


@dataclass(frozen=True, slots=True)
class Memref:
    """The content of each core, or each bank: a block of `shape`, of tiles or of scalars, in a memory.

    >>> memref = read_memref(TextCursor("memref<1x4x!ttcore.tile<32x32, bf16>, #dram>", "a memref"), {})
    >>> memref.shape, memref.tile, memref.dtype, memref.space
    ((1, 4), (32, 32), 'bf16', 'dram')
    """

    shape: tuple[int, ...]
    tile: tuple[int, int] | None
    dtype: str
    space: str
    extra: tuple[str, ...] = ()  # fields between the element type and the memory

    def __str__(self) -> str:
        extents = "".join([f"{n}x" for n in self.shape])
        space = f"#ttnn.buffer_type<{self.space}>"
        return f"memref<{', '.join([extents + _element_text(self.tile, self.dtype), *self.extra, space])}>"


def read_memref(cursor: TextCursor, aliases: Aliases) -> Memref:
    """Return the memref at a `cursor`, its memory looked up in `aliases`.

    >>> read_memref(TextCursor("memref<32xf32, #l1>", "a memref"), {}).shape
    (32,)
    """
    cursor.expect("memref", "<")
    shape = cursor.extents()
    tile, dtype = _read_element(cursor, aliases)
    extents = tuple([n for n in shape if n is not None])
    if len(extents) < len(shape):
        raise FileFormatError(f"{cursor.name}: the memref before character {cursor.at + 1} has unknown extents")
    extra: list[str] = []
    cursor.expect(",")
    while not _BUFFER.match(cursor.text, cursor.skip_space()) and not cursor.peek("#"):
        if len(extra) == MAX_RANK:
            cursor.fail("a memory such as #ttnn.buffer_type<dram>")
        extra.append(cursor.raw())
        cursor.expect(",")
    space = read_space(cursor, aliases)
    cursor.expect(">")
    return Memref(extents, tile, dtype, space, tuple(extra))


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor type: extents (None where not known), a tile or None, the element type, and its encoding as text.

    >>> parse_tensor_type("tensor<1x32x64xbf16, #layout3>")
    TensorType(shape=(1, 32, 64), tile=None, dtype='bf16', encoding='#layout3')
    """

    shape: tuple[int | None, ...]
    tile: tuple[int, int] | None
    dtype: str
    encoding: str | None = None

    def __str__(self) -> str:
        extents = "".join([f"{'?' if n is None else n}x" for n in self.shape])
        return f"tensor<{extents}{_element_text(self.tile, self.dtype)}>"


def parse_tensor_type(text: str, aliases: Aliases | None = None) -> TensorType:
    """Return the tensor type of a `text`; `aliases` are its file's, one of which may be its element type.

    >>> parse_tensor_type("tensor<f32>").shape, parse_tensor_type("tensor<?x8xi1>").shape
    ((), (None, 8))
    """
    cursor = TextCursor(text, "a tensor type")
    cursor.expect("tensor", "<")
    shape = cursor.extents()
    tile, dtype = _read_element(cursor, aliases or {})
    encoding = cursor.raw() if cursor.accept(",") else None
    cursor.expect(">")
    cursor.expect_end()
    return TensorType(shape, tile, dtype, encoding)


# Core ranges as tt-mlir writes them, and the words in angle brackets that its attributes are made of.

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MNEMONIC = re.compile(r"#(?:ttnn|ttcore|tt)\.\w+", re.ASCII)


def read_word(cursor: TextCursor, what: str) -> str:
    """Return the word at a `cursor`, as <word>, #ttnn.name<word> or word; `what` is its name in messages.

    >>> read_word(TextCursor("<row_major>", "a shard spec"), "an orientation")
    'row_major'
    """
    is_named = cursor.match(_MNEMONIC) is not None
    if is_named:
        cursor.expect("<")
    is_bracketed = is_named or cursor.accept("<")
    word = cursor.take(_WORD, what)
    if is_bracketed:
        cursor.expect(">")
    return word


def _read_core(cursor: TextCursor) -> tuple[int, int]:
    cursor.expect("(")
    x = cursor.integer("x of a core", MAX_CORE)
    cursor.expect(",")
    y = cursor.integer("y of a core", MAX_CORE)
    cursor.expect(")")
    return x, y


def _read_core_range(cursor: TextCursor, _aliases: Aliases) -> CoreRange:
    cursor.accept("#ttnn.core_range")
    cursor.expect("<")
    start = _read_core(cursor)
    cursor.expect(",")
    end = _read_core(cursor)
    cursor.expect(">")
    return CoreRange(start, end)


def _read_core_range_set(cursor: TextCursor, aliases: Aliases) -> CoreRangeSet:
    cursor.accept("#ttnn.core_range_set")
    cursor.expect("<")
    ranges: list[CoreRange] = []
    if cursor.accept("["):
        ranges = cursor.items("]", lambda: read_attribute(cursor, aliases, _read_core_range), MAX_RANGES)
    cursor.expect(">")
    return CoreRangeSet(ranges)


def read_core_ranges(cursor: TextCursor, aliases: Aliases) -> CoreRangeSet:
    """Return the core ranges at a `cursor`; they, and each of them, can be one of `aliases`.

    >>> text = "#ttnn.core_range_set<[#first, #ttnn.core_range<(0, 1), (3, 1)>]>"
    >>> read_core_ranges(TextCursor(text, "cores"), {"first": "#ttnn.core_range<(0,0), (7,0)>"}).num_cores
    12
    """
    return read_attribute(cursor, aliases, _read_core_range_set)


def core_ranges_text(cores: CoreRangeSet) -> str:
    """Return `cores` as tt-mlir writes them.

    >>> print(core_ranges_text(CoreRangeSet.of((8, 1))))
    #ttnn.core_range_set<[#ttnn.core_range<(0,0), (7,0)>]>
    """
    ranges = [f"#ttnn.core_range<({a.x},{a.y}), ({b.x},{b.y})>" for a, b in [(part.start, part.end) for part in cores]]
    return f"#ttnn.core_range_set<[{', '.join(ranges)}]>" if ranges else "#ttnn.core_range_set<>"


Part: TypeAlias = tuple[str, str, Callable[[], object]]  # a field, what messages call it, and the reader of its value


def read_parts(
    cursor: TextCursor, find_part: Callable[[Collection[str]], Part], fields: Collection[str]
) -> dict[str, Any]:
    """Return the parts of an attribute at a `cursor` by field, in any order, up to its closing bracket.

    `find_part` tells which of the `fields` comes next, from those that were read; others make the field "extra".

    >>> cursor = TextCursor("a = 1>", "an attribute")
    >>> read_parts(cursor, lambda known: (cursor.take(_WORD, "a name"), "a", cursor.raw), [])
    {'extra': (('a', '= 1'),)}
    """
    parts: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    while True:
        name, label, read = find_part(parts)
        table = parts if name in fields else extra
        require_single(table.get(name), cursor, label)
        table[name] = read()
        if not cursor.accept(","):
            break
    cursor.expect(">")
    return {**parts, "extra": tuple(extra.items())}


def require_single(value: object, cursor: TextCursor, name: str) -> None:
    """Raise if a part `name` of an attribute was read before, with `value`.

    >>> require_single(None, TextCursor("", "a layout"), "the grid")
    """
    if value is not None:
        raise FileFormatError(f"{cursor.name}: {name} is given twice, again at character {cursor.at + 1}")


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
        """Whether the memory is L1, where every core of the grid holds a part.

        >>> parse_mlir_layout("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #dram>, <interleaved>>").is_in_l1
        False
        """
        return self.memref.space in ("l1", "l1_small")

    @property
    def is_sharded(self) -> bool:
        """Whether each core holds a shard.

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
        messages = []
        if self.memory_layout == "block_sharded" and self.memref.space == "dram":
            messages.append(
                "BlockSharded layout is not supported for DRAM buffer type; use WidthSharded, HeightSharded or"
                " Interleaved"
            )
        if self.core_ranges is not None and not self.is_sharded:
            messages.append(f"non-sharded TTNN layout must not carry a core_range_set (got {self.memory_layout})")
        if self.is_sharded and self.core_ranges is None and not self.ignore_physical:
            messages.append(f"sharded TTNN layout ({self.memory_layout}) must carry a core_range_set")
        return messages

    @property
    def unplaced(self) -> list[str]:
        """The named parts that a spec does not have: a mesh, the map of the grid, and those that are unknown.

        >>> text = "#ttnn.ttnn_layout<(d0) -> (d0), <1, (d0) -> (d0)>, memref<8xf32, #dram>, <interleaved>, a = 3>"
        >>> parse_mlir_layout(text).unplaced
        ['grid map (d0) -> (d0)', 'a = 3']
        """
        fields = [f"grid map {self.grid_map}"] if self.grid_map else []
        fields += [f"mesh = {self.mesh}"] if self.mesh else []
        fields += ["ignorePhysicalLayout = true"] if self.ignore_physical else []
        return fields + [f"{name} = {text}" for name, text in self.extra]

    def to_spec(self, tensor: TensorType, chip: Chip | str | None = None) -> TensorSpec:
        """Return the spec of a `tensor` type with this layout on a `chip`, or raise if ttnn has no such placement.

        It is the runtime's combination of the two: the map and the memref of interleaved memory are the compiler's own.

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
            raise MemoryConfigError(f"{tensor} has unknown extents; a spec needs all of them")
        if self.memref.space not in ("dram", "l1"):
            raise MemoryConfigError(f"{tensor} is in {self.memref.space}, which has no banks; use one in DRAM or L1")
        if self.map.dims != len(shape):
            raise MemoryConfigError(f"{tensor} has rank {len(shape)}, the map {self.map} another one")
        tile = self.memref.tile
        page_layout = "row_major" if tile is None else "tile"
        dtype = format_of_mlir(self.memref.dtype)
        return TensorSpec(shape, dtype, page_layout, tile, self.memory_config, chip)

    @property
    def memory_config(self) -> MemoryConfig:
        """The memory config of ttnn that it means.

        >>> text = "#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<1x8xf32, #dram>, <interleaved>>"
        >>> print(parse_mlir_layout(text).memory_config)
        interleaved in DRAM
        """
        if self.core_ranges is None or not self.is_sharded:
            return MemoryConfig("interleaved", self.memref.space)
        if len(self.memref.shape) != 2:
            raise MemoryConfigError(f"a shard is a matrix, got a memref of shape {list(self.memref.shape)}")
        height, width = self.memref.tile or (1, 1)
        shard = (self.memref.shape[0] * height, self.memref.shape[1] * width)
        return MemoryConfig(self.memory_layout or "", self.memref.space, ShardSpec(self.core_ranges, shard))

    def __str__(self) -> str:
        grid = spell_extents(self.grid) + (f", {self.grid_map}" if self.grid_map else "")
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
    """Return the layout of a `text` of tt-mlir, or of an alias; `aliases` are its file's, by name.

    >>> parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x8xf32, #dram>, <interleaved>>"
    ... ).memref.shape
    (1, 8)
    """
    return parse_with_aliases(text, aliases or {}, read_layout, "a layout")


def parse_with_aliases(
    text: str, aliases: Mapping[str, str], read: Callable[[TextCursor, Aliases], _Value], name: str
) -> _Value:
    """Return the result of `read` for a whole `text`, called `name` in messages; each error is a `FileFormatError`.

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
    cursor.expect("#ttnn.ttnn_layout", "<")

    def find_part(keys: Collection[str]) -> Part:
        if cursor.peek("memref"):
            return "memref", "the memref", lambda: read_memref(cursor, aliases)
        if key := cursor.match(_KEY):
            fields: dict[str, tuple[str, Callable[[], object]]] = {
                "core_ranges": ("core_ranges", lambda: read_core_ranges(cursor, aliases)),
                "ignorePhysicalLayout": ("ignore_physical", lambda: cursor.take(_BOOLEAN, "true or false") == "true"),
                "tensor_mesh": ("mesh", cursor.raw),
            }
            name, read = fields.get(key[1], (key[1], cursor.raw))
            return name, key[1], read
        if cursor.peek("(") or cursor.peek("affine_map") or (cursor.peek("#") and not cursor.peek("#ttnn.")):
            return "map", "the map", lambda: read_attribute(cursor, aliases, lambda at, _: read_affine_map(at))
        if "grid" not in keys and cursor.peek("<"):
            return "grid", "the grid", lambda: read_grid(cursor)
        return "memory_layout", "the memory layout", lambda: read_memory_layout(cursor)

    parts = read_parts(cursor, find_part, MlirLayout.__slots__)
    if not {"map", "grid", "memref"} <= parts.keys():
        raise FileFormatError(f"{cursor.name}: the layout up to character {cursor.at} lacks a map, a grid or a memref")
    grid, grid_map = parts.pop("grid")
    return MlirLayout(grid=grid, grid_map=grid_map, **parts)


# The shape rule of tt-mlir: the memref that a layout must have for a tensor, and a verdict on the one it has.

Severity = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LayoutVerdict:
    """The verdict of the shape rule on the layout of a tensor, with its severity.

    >>> LayoutVerdict("satisfied", "ok", (1, 1), (1, 1))
    LayoutVerdict(rule='satisfied', severity='ok', memref=(1, 1), expected=(1, 1), reason='')
    """

    rule: Literal["satisfied", "violated", "ignored"]  # ignored: the layout asks for it, or extents are not known
    severity: Severity
    memref: tuple[int, ...]  # the layout's
    expected: tuple[int, ...] | None  # the rule's; None if it gives none
    reason: str = ""


def check_layout(layout: MlirLayout, tensor: TensorType) -> LayoutVerdict:
    """Return the verdict of the compiler's shape rule on a `layout` of a `tensor` type.

    Layouts written by hand or by older compilers often use another convention: that is a note. A memref that
    reserves more than the tensor needs is a warning, one that is too small is an error.

    >>> from tilewright.notation import parse_mlir_layout, parse_tensor_type
    >>> layout = parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>"
    ... )
    >>> verdict = check_layout(layout, parse_tensor_type("tensor<32x64xf32>"))
    >>> verdict.severity, verdict.expected
    ('warning', (1, 2))
    >>> print(verdict.reason)
    memref is 4x4, rule gives 1x2: it reserves 16 tiles, the tensor needs 2
    """
    memref, problems = layout.memref.shape, layout.problems()
    shape = tuple([n for n in tensor.shape if n is not None])
    if layout.ignore_physical or len(shape) < len(tensor.shape):
        reason = "ignorePhysicalLayout is set" if layout.ignore_physical else "the tensor has unknown extents"
        return LayoutVerdict("ignored", "error" if problems else "ok", memref, None, "; ".join([reason, *problems]))
    verdict = _check_shape(layout, shape)
    if not problems:
        return verdict
    reasons = [verdict.reason] if verdict.reason else []
    return LayoutVerdict(verdict.rule, "error", memref, verdict.expected, "; ".join([*problems, *reasons]))


def _check_shape(layout: MlirLayout, shape: tuple[int, ...]) -> LayoutVerdict:
    memref = layout.memref.shape
    if layout.map.dims != len(shape):
        reason = f"map has {layout.map.dims} dims, tensor has rank {len(shape)}"
        return LayoutVerdict("violated", "error", memref, None, reason)
    if layout.is_sharded and len(layout.map.constants) != len(layout.grid):
        grid = f"the grid {spell_extents(layout.grid)} has rank {len(layout.grid)}"
        reason = f"map has {len(layout.map.constants)} results, {grid}"
        return LayoutVerdict("violated", "error", memref, None, reason)
    expected = expected_memref(layout, shape)
    if _needs_unit_grid(layout) and set(layout.grid) - {1}:
        reason = f"grid must be {spell_extents((1,) * len(layout.grid))}, got {spell_extents(layout.grid)}"
        return LayoutVerdict("violated", "error", memref, expected, reason)
    if memref == expected:
        return LayoutVerdict("satisfied", "ok", memref, expected)
    severity, remark = _grade(layout, shape, expected)
    reason = f"memref is {spell_extents(memref)}, rule gives {spell_extents(expected)}: {remark}"
    return LayoutVerdict("violated", severity, memref, expected, reason)


def _needs_unit_grid(layout: MlirLayout) -> bool:
    return not layout.is_sharded and not layout.is_in_l1


def expected_memref(layout: MlirLayout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents that the rule gives to the memref of a `layout`, for a tensor of `shape`.

    >>> from tilewright.notation import parse_mlir_layout
    >>> layout = parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <8x8>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>"
    ... )
    >>> expected_memref(layout, (32, 4096))
    (1, 2)
    """
    extents = layout.map.extents(_in_tiles(layout, shape, round_up))
    if layout.is_sharded:
        return _shard_of(layout, extents, layout.grid)
    counts = _in_tiles(layout, extents)
    if layout.is_in_l1:
        return (*[1] * (len(layout.grid) - 1), ceil_div(prod(counts), max(1, prod(layout.grid))))
    return counts


def _shard_of(layout: MlirLayout, extents: tuple[int, ...], grid: tuple[int, ...]) -> tuple[int, ...]:
    return _in_tiles(layout, tuple([ceil_div(n, max(1, parts)) for n, parts in zip(extents, grid, strict=True)]))


def _in_tiles(
    layout: MlirLayout, extents: tuple[int, ...], count: Callable[[int, int], int] = ceil_div
) -> tuple[int, ...]:
    """Return extents with the last two counted in tiles, or changed by another function of extent and tile."""
    units = (*(1,) * len(extents), *(layout.memref.tile or ()))[-len(extents) :]
    return tuple(map(count, extents, units))


def _grade(layout: MlirLayout, shape: tuple[int, ...], expected: tuple[int, ...]) -> tuple[Severity, str]:
    """Return the severity of a memref other than the expected one, and the reason."""
    memref, cores = layout.memref.shape, 1 if _needs_unit_grid(layout) else prod(layout.grid)
    unit = "element" if layout.memref.tile is None else "tile"
    padded = _in_tiles(layout, shape, round_up)
    if layout.memory_layout in ("height_sharded", "width_sharded") and len(layout.grid) == 2:
        line = (cores, 1) if layout.memory_layout == "height_sharded" else (1, cores)
        if memref == _shard_of(layout, layout.map.extents(padded), line):
            grid = spell_extents(layout.grid)
            return "note", f"an older convention, in which a grid {grid} is {cores} cores in a line"
    reserved, needed = prod(memref) * cores, prod(_in_tiles(layout, padded))
    if prod(memref) == prod(expected) or reserved == needed:
        return "note", f"another convention for the same {_count(reserved, unit)}"
    where = "" if cores == 1 else f" on {cores} cores"
    if reserved > needed:
        return "warning", f"it reserves {_count(reserved, unit)}{where}, the tensor needs {needed}"
    return "error", f"it holds {_count(reserved, unit)}{where}, the tensor needs {needed} and does not fit its layout"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


# `mlir_layout_of`: the #ttnn.ttnn_layout of a tensor spec, as the compiler would write it; and its text.

_STRATEGIES = {strategy.memory_layout: strategy for strategy in ShardStrategy}


def mlir_layout_of(spec: TensorSpec) -> MlirLayout:
    """Return the layout that tt-mlir has for a tensor with this `spec`, or raise if it has none.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((2, 64, 32), "bfloat16", "tile", memory=height_sharded((4, 1)))
    >>> print(mlir_layout_of(spec))
    #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x1>, memref<1x1x!ttcore.tile<32x32, bf16>, \
#ttnn.buffer_type<l1>>, <height_sharded>, core_ranges = #ttnn.core_range_set<[#ttnn.core_range<(0,0), (3,0)>]>>
    """
    shape, tile = spec.shape.logical, spec.tile.shape if spec.is_tiled else None
    dtype, space = mlir_dtype(spec.dtype, in_tile=spec.is_tiled), spec.memory.buffer_type.name.lower()
    memory_layout = spec.memory.memory_layout
    shards = spec.memory.shard_spec
    if memory_layout is TensorMemoryLayout.INTERLEAVED:
        draft = MlirLayout(_fold(spec), _interleaved_grid(spec), Memref((), tile, dtype, space), "interleaved")
        memref = Memref(expected_memref(draft, shape), tile, dtype, space)
        return MlirLayout(draft.map, draft.grid, memref, "interleaved")
    if shards is None or memory_layout not in _STRATEGIES or shards.orientation is not ShardOrientation.ROW_MAJOR:
        raise MemoryConfigError(
            f"tt-mlir has no ttnn_layout for {spec.memory!r}: it needs row-major shards of a matrix"
        )
    counts = _STRATEGIES[memory_layout].shard_counts(shards.grid, shards.orientation)
    memref = Memref(_in_units(shards, tile or (1, 1)), tile, dtype, space)
    return MlirLayout(_fold(spec), counts, memref, memory_layout.name.lower(), shards.grid)


def write_mlir_layout(spec: object) -> str:
    """Return the #ttnn.ttnn_layout of a tensor `spec`, or of an `MlirLayout`; raise if the text would lose information.

    >>> write_mlir_layout(TensorSpec((32, 64), "float32"))
    '#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x64xf32, #ttnn.buffer_type<dram>>, <interleaved>>'
    """
    if isinstance(spec, MlirLayout):
        return str(spec)
    if not isinstance(spec, TensorSpec):
        raise LayoutError(
            f"tt-mlir's layouts describe tensors in the memory of a chip, got {type(spec).__name__} {spec!s:.60};"
            " make a TensorSpec of it, with a shape, an element type and a memory config"
        )
    layout = mlir_layout_of(spec)
    for problem in layout.problems():
        raise MemoryConfigError(f"tt-mlir has no ttnn_layout for {spec.memory!r}: {problem}")
    again = layout.to_spec(mlir_tensor_type(spec), spec.chip)
    here, there = [(memory.shard_spec, memory.allocation) for memory in (spec.memory, again.memory)]
    if here != there or again.with_memory(spec.memory) != spec:
        raise LayoutError(f"tt-mlir's layout of {spec!r} loses information: it would be read back as {again!r}")
    return str(layout)


def mlir_tensor_type(spec: TensorSpec) -> TensorType:
    """Return the tensor type of a tensor with this `spec`, with its layout.

    >>> mlir_tensor_type(TensorSpec((32, 64), "uint16")).dtype
    'ui16'
    """
    return TensorType(spec.shape.logical, None, mlir_dtype(spec.dtype, in_tile=False), str(mlir_layout_of(spec)))


def _fold(spec: TensorSpec) -> AffineMap:
    """Return the map that folds all dimensions but the last to rows, each matrix padded to tiles."""
    rank = spec.shape.rank
    padded = spec.padded_shape[-rank:] if rank else ()
    strides, rows = [0] * rank, 1
    for d in range(rank - 2, -1, -1):
        strides[d] = rows
        rows *= padded[d]
    columns = tuple([int(d == rank - 1) for d in range(rank)])
    return AffineMap(rank, (tuple(strides), columns), (0, 0))


def _interleaved_grid(spec: TensorSpec) -> tuple[int, int]:
    """Return the grid of interleaved memory: all cores in L1, which must be known, and 1 x 1 elsewhere."""
    if not spec.memory.buffer_type.is_l1:
        return 1, 1
    cores = spec.known_chip.compute_grid
    return cores.y, cores.x


def _in_units(shards: ShardSpec, unit: tuple[int, int]) -> tuple[int, int]:
    height, width = shards.shape
    return ceil_div(height, unit[0]), ceil_div(width, unit[1])
