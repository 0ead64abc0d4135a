# SPDX-License-Identifier: Apache-2.0
"""Tiles within tiles: how XLA, Mosaic and oneDNN tile the dimensions of an array before it is stored row by row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NoReturn

from .._integers import ceil_div
from .._text import MAX_RANK, TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike, Place, compose, with_logical_shape
from .maps import StridedPart, logical_extents, nested_tiles, stored_extents, tiled_parts

MAX_TILES = 16  # within each other
MERGED = None
"""In a tile: this dimension is merged into the next more minor one."""


@dataclass(frozen=True)
class TiledDimensions:
    """Dimensions of an array, major to minor, and the layout from its coordinates to their row-major index.

    >>> tiled = TiledDimensions.of((4, 6)).split((2, 3))
    >>> tiled.extents, tiled.layout(1, 3)
    ((2, 2, 2, 3), 9)
    """

    extents: tuple[int, ...]
    layout: LayoutLike

    @classmethod
    def of(cls, shape: Sequence[int], order: Sequence[int] | None = None) -> TiledDimensions:
        """Return the dimensions of an array of a `shape`; `order` lists them major to minor.

        >>> TiledDimensions.of((4, 6), (1, 0)).layout
        Layout((4, 6), (1, 4))
        """
        axes = range(len(shape)) if order is None else order
        extents = tuple([shape[k] for k in axes])
        strides = dict(zip(axes, _strides(extents), strict=True))
        return cls(extents, Layout(tuple(shape), tuple([strides[k] for k in range(len(shape))])))

    @property
    def size(self) -> int:
        """The number of elements, padding included.

        >>> TiledDimensions.of((3, 5)).split((2, 2)).size
        24
        """
        return prod(self.extents)

    def split(self, tile: Sequence[int | None]) -> TiledDimensions:
        """Return the dimensions after the last ones were split by a `tile`: how many tiles, then the tile itself.

        Extents that the tile does not divide are padded. `MERGED` merges a dimension into the next one first.

        >>> TiledDimensions.of((2, 3, 4)).split((MERGED, 2, 4)).extents
        (3, 1, 2, 4)
        """
        rank = len(tile)
        extents = (1,) * (rank - len(self.extents)) + self.extents
        before, last = extents[: len(extents) - rank], extents[len(extents) - rank :]
        merged, waiting = [], 1
        for extent, part in zip(last, tile, strict=True):
            if part is MERGED:
                waiting *= extent
            else:
                merged.append((extent * waiting, part))
                waiting = 1
        if waiting != 1 or tile[-1:] == (MERGED,):
            raise LayoutError(f"the last dimension of a tile cannot be merged, as in {tuple(tile)}")
        parts = [part for _, part in merged]
        counts = [ceil_div(extent, part) for extent, part in merged]
        padded = [*before, *[count * part for count, part in zip(counts, parts, strict=True)]]
        unpadded = Layout((*reversed(before + tuple([n for n, _ in merged])),), (*reversed(_strides(padded)),))
        grid = (*before, *counts, *parts)
        strides, rest = _strides(grid)[: len(before)], _strides(grid)[len(before) :]
        tiled: list[Any] = [*before, *zip(parts, counts, strict=True)]
        steps: list[Any] = [*strides, *zip(rest[len(counts) :], rest[: len(counts)], strict=True)]
        tiles = Layout((*reversed(tiled),), (*reversed(steps),))
        return TiledDimensions(grid, compose(tiles, compose(unpadded, self.layout)))


def _strides(extents: Sequence[int]) -> list[int]:
    """Return the strides of extents that are stored row by row."""
    return [prod(extents[k + 1 :]) for k in range(len(extents))]


# XLA's shapes with layouts, such as `bf16[8,128]{1,0:T(8,128)(2,1)}`, in and out.

_TYPE = re.compile(r"(?:pred|token|opaque|[sufc]\d{1,3}|bf16|f[468]e\w+)(?!\w)", re.ASCII)
_ITEM = re.compile(r"([A-Z]+|[#*])(?=\s*\()", re.ASCII)
_PRIMITIVE = re.compile(r"[a-z]\w*", re.ASCII)
_PROPERTIES = {
    "L": "the alignment of the end",
    "#": "the type of indices",
    "*": "the type of pointers",
    "E": "the bits of an element",
    "S": "the memory",
    "SC": "where dimensions are split",
    "P": "the physical shape",
    "M": "the bytes before a shape that is known late",
}


@dataclass(frozen=True)
class XlaShape:
    """An array of XLA: its element type, its shape, the order of its dimensions and the tiles they are stored in.

    `minor_to_major` lists the dimensions, the one that varies fastest first. `properties` are those that move no
    element: L (alignment of the end), E (bits of an element), S (memory), SC (splits of dimensions) and the like, as
    text. `dynamic` lists the dimensions whose extent is an upper bound, as in f32[<=8,128].

    >>> shape = parse_xla("bf16[8,128]{1,0:T(8,128)(2,1)E(16)}")
    >>> shape.layout(1, 0), shape.padded_size, shape.properties
    (1, 1024, {'E': '16'})
    >>> print(shape)
    bf16[8,128]{1,0:T(8,128)(2,1)E(16)}
    """

    dtype: str
    shape: tuple[int, ...]
    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int | None, ...], ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    dynamic: tuple[int, ...] = ()

    @cached_property
    def _tiled(self) -> TiledDimensions:
        tiled = TiledDimensions.of(self.shape, tuple(reversed(self.minor_to_major)))
        for tile in self.tiles:
            tiled = tiled.split(tile)
        return tiled

    @property
    def layout(self) -> LayoutLike:
        """The layout from coordinates to the element in the buffer.

        >>> parse_xla("f32[8,4]{1,0:T(2,2)}").layout(3, 1)
        11
        """
        return self._tiled.layout

    @property
    def padded_size(self) -> int:
        """The elements of the buffer, with padding.

        >>> parse_xla("f32[3,5]{1,0:T(2,2)}").padded_size
        24
        """
        return self._tiled.size

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        extents = ",".join([f"{'<=' if k in self.dynamic else ''}{extent}" for k, extent in enumerate(self.shape)])
        if not self.shape and not self.properties and not self.tiles:
            return f"{self.dtype}[]"
        order = ",".join(map(str, self.minor_to_major))
        tiles = "".join([f"({','.join('*' if part is MERGED else str(part) for part in tile)})" for tile in self.tiles])
        rest = "".join([f"{name}{value if name == 'SC' else f'({value})'}" for name, value in self.properties.items()])
        items = f":{'T' if tiles else ''}{tiles}{rest}" if tiles or rest else ""
        return f"{self.dtype}[{extents}]{{{order}{items}}}"


def parse_xla(text: str) -> XlaShape:
    """Return the shape that a `text` of XLA describes; without a layout, dimensions are stored in order.

    >>> parse_xla("f32[2,3]").minor_to_major
    (1, 0)
    """
    cursor = TextCursor(text, "an XLA shape")
    dtype = cursor.take(_TYPE, "an element type such as f32")
    cursor.expect("[")
    extents = cursor.items("]", lambda: (cursor.accept("<="), cursor.integer()))
    shape, dynamic = tuple([n for _, n in extents]), [k for k, (is_bound, _) in enumerate(extents) if is_bound]
    order: Sequence[int] = tuple(reversed(range(len(shape))))
    tiles: list[tuple[int | None, ...]] = []
    properties: dict[str, str] = {}
    if cursor.accept("{"):
        order = _read_order(cursor, len(shape))
        if cursor.accept(":"):
            if cursor.accept("T"):
                while not tiles or cursor.peek("("):
                    if len(tiles) == MAX_TILES:
                        cursor.fail(f"at most {MAX_TILES} nested tiles")
                    tiles.append(_read_tile(cursor))
            while not cursor.peek("}"):
                name = cursor.take(_ITEM, "a property such as S(1), or '}'")
                if name == "T":
                    raise FileFormatError(f"{cursor.name}: tiles are given once, as T(8,128)(2,1), before properties")
                if name not in _PROPERTIES:
                    others = ", ".join([f"{key} ({meaning})" for key, meaning in _PROPERTIES.items()])
                    raise FileFormatError(f"{cursor.name}: unknown property {name!r}; expected T (tiles), {others}")
                if name in properties:
                    raise FileFormatError(f"{cursor.name}: property {name!r} is given twice")
                properties[name] = _read_property(cursor, name, len(shape))
        cursor.expect("}")
    cursor.expect_end()
    return XlaShape(dtype, shape, tuple(order), tuple(tiles), properties, tuple(dynamic))


def _read_property(cursor: TextCursor, name: str, rank: int) -> str:
    """Return the content of the brackets of a property; for splits, which have several, with the brackets."""
    if name == "SC":
        splits = [_read_split(cursor, rank)]
        while cursor.peek("("):
            splits.append(_read_split(cursor, rank))
        return "".join(splits)
    cursor.expect("(")
    if name in ("#", "*"):
        value = cursor.take(_PRIMITIVE, "an element type such as u32")
    elif name == "P":
        value = cursor.raw()
        if "P" in value:
            raise FileFormatError(f"{cursor.name}: a physical shape has none of its own, got {value!r:.60}")
        parse_xla(value)
    else:
        value = str(cursor.integer())
    cursor.expect(")")
    return value


def _read_split(cursor: TextCursor, rank: int) -> str:
    cursor.expect("(")
    dimension = cursor.integer("a dimension", maximum=max(rank - 1, 0))
    cursor.expect(":")
    what = "an index of a split"
    indices = cursor.items(")", lambda: cursor.integer(what)) or cursor.fail(what)
    return f"({dimension}:{','.join(map(str, indices))})"


def _read_order(cursor: TextCursor, rank: int) -> tuple[int, ...]:
    order: list[int] = []
    while not cursor.peek(":") and not cursor.peek("}"):
        if order:
            cursor.expect(",")
        order.append(cursor.integer("a dimension", maximum=MAX_RANK))
    if sorted(order) != list(range(rank)):
        raise FileFormatError(f"{cursor.name}: minor-to-major {order} must name each of {rank} dimensions once")
    return tuple(order)


def _read_tile(cursor: TextCursor) -> tuple[int | None, ...]:
    cursor.expect("(")
    what = "an extent of a tile, or *"
    tile = cursor.items(")", lambda: MERGED if cursor.accept("*") else cursor.integer(what)) or cursor.fail(what)
    if 0 in tile:
        raise FileFormatError(f"{cursor.name}: an extent of a tile must be at least 1")
    if tile[-1] is MERGED:
        raise FileFormatError(f"{cursor.name}: the last dimension of a tile cannot be *")
    return tuple(tile)


def write_xla(layout: LayoutLike, dtype: str = "f32") -> str:
    """Return a `layout` of elements of a `dtype` as XLA's shape, with tiles where its modes are nested.

    >>> from tilewright import Layout
    >>> write_xla(Layout(((8, 2), (128, 3)), ((128, 3072), (1, 1024))), "f32")
    'f32[16,384]{1,0:T(8,128)}'
    """
    parts, shape = tiled_parts(layout, "XLA"), logical_extents(layout)
    present = list(dict.fromkeys([part.mode for part in parts]))
    order = [*[k for k in range(len(shape)) if k not in present], *present]
    result = XlaShape(dtype, shape, tuple(reversed(order)), nested_tiles(parts, order))
    if result.padded_size != prod(stored_extents(layout)):
        raise LayoutError(f"{layout} has more padding than the tiles of {result} need; XLA pads to whole tiles")
    return str(result)


# oneDNN's format tags, such as `aBcd16b`, and their aliases, such as `nChw16c`, in and out.

_TAG = re.compile(r"([A-Za-z]{1,12})((?:\d{1,19}[a-z])*)", re.ASCII)
_BLOCK = re.compile(r"(\d{1,19})([a-z])", re.ASCII)

# The letters of the domains, in the order of the dimensions; those in brackets may be left out.
_DOMAINS = (
    *("nc[d][h][w]", "[g]oi[d][h][w]", "t[n][c]", "ldigo", "ldio", "ldgoi", "ldoi", "ldgo", "ldnc"),
    *("nt[c]", "tnc", "x", "ntc"),
)


@dataclass(frozen=True)
class OnednnTag:
    """A format tag: the dimensions major to minor, and the blocks, outermost first, as (dimension, size).

    A tag has no sizes of its own: `layout(shape)` gives it some.

    >>> tag = parse_onednn("nChw16c")
    >>> str(tag), tag.padded_shape((2, 20, 3, 5)), tag.layout((2, 20, 3, 5))(0, 17, 0, 0)
    ('aBcd16b', (2, 32, 3, 5), 241)
    """

    order: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...] = ()

    def block(self, dimension: int) -> int:
        """Return the product of the blocks of a `dimension`.

        >>> parse_onednn("ABcd4b16a4b").block(1)
        16
        """
        return prod([size for owner, size in self.blocks if owner == dimension])

    def padded_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a `shape` with every extent a multiple of its blocks.

        >>> parse_onednn("BA16a64b4a").padded_shape((70, 70))
        (128, 128)
        """
        if len(shape) != len(self.order):
            raise LayoutError(
                f"the tag {self} has {len(self.order)} dimensions, the shape {tuple(shape)} has {len(shape)}"
            )
        return tuple([ceil_div(extent, self.block(k)) * self.block(k) for k, extent in enumerate(shape)])

    def layout(self, shape: Sequence[int]) -> LayoutLike:
        """Return the layout of an array of a `shape`; its padding is part of the layout.

        >>> parse_onednn("ba").layout((2, 3))
        Layout((2, 3), (1, 2))
        """
        padded = self.padded_shape(shape)
        modes: list[list[tuple[int, int]]] = [[] for _ in shape]
        stride = 1
        for owner, size in reversed(self.blocks):
            modes[owner].append((size, stride))
            stride *= size
        for k in reversed(self.order):
            count = padded[k] // self.block(k)
            modes[k].append((count, stride))
            stride *= count
        extents: Any = [tuple([n for n, _ in mode]) if len(mode) > 1 else mode[0][0] for mode in modes]
        strides: Any = [tuple([d for _, d in mode]) if len(mode) > 1 else mode[0][1] for mode in modes]
        stored = Layout(tuple(extents), tuple(strides))
        return stored if tuple(shape) == padded else with_logical_shape(stored, tuple(shape))

    def __str__(self) -> str:
        blocked = {owner for owner, _ in self.blocks}
        outer = "".join([chr(ord("A" if k in blocked else "a") + k) for k in self.order])
        return outer + "".join([f"{size}{chr(ord('a') + owner)}" for owner, size in self.blocks])


def parse_onednn(text: str) -> OnednnTag:
    """Return the tag that a `text` is, or that it is an alias of.

    >>> str(parse_onednn("OIhw4i16o4i")), parse_onednn("nt").order
    ('ABcd4b16a4b', (1, 0))
    """

    def refuse(reason: str) -> NoReturn:
        raise FileFormatError(f"{text[:40]!r} is not a oneDNN tag: {reason}")

    match = _TAG.fullmatch(text.strip()) or refuse("expected dimensions and blocks, such as aBcd16b")
    outer, blocks = match[1], _BLOCK.findall(match[2])
    if len(blocks) > MAX_RANK:
        refuse(f"it has more than {MAX_RANK} blocks")
    letters, blocked = outer.lower(), {letter for _, letter in blocks}
    numbers = _number_letters(letters)
    if numbers is None:
        refuse("its letters are neither a, b, c, ... nor the letters of a known domain")
    for letter, printed in zip(letters, outer, strict=True):
        is_odd_alias = "a" not in letters and printed.isupper()  # oneDNN has gOhwI24o
        if (letter in blocked) != printed.isupper() and not is_odd_alias:
            reason = "it is not blocked, but in upper case" if printed.isupper() else "it is blocked, but in lower case"
            refuse(f"dimension {letter!r}: {reason}")
    if not blocked <= set(letters) or any(int(size) < 1 for size, _ in blocks):
        refuse("blocks must be of its dimensions, and at least 1")
    order = tuple([numbers[letter] for letter in letters])
    return OnednnTag(order, tuple([(numbers[letter], int(size)) for size, letter in blocks]))


def has_tag_letters(text: str) -> bool:
    """Return whether a `text` has the letters of a tag or of an alias.

    >>> has_tag_letters("nChw16c"), has_tag_letters("hello")
    (True, False)
    """
    letters = re.match(r"\s*([A-Za-z]*)", text)
    return letters is not None and _number_letters(letters[1].lower()) is not None


def _number_letters(letters: str) -> dict[str, int] | None:
    """Return the dimension of each letter: of a, b, c, ..., or of a domain such as n, c, h, w."""
    if len(set(letters)) != len(letters):
        return None
    if set(letters) == set("abcdefghijkl"[: len(letters)]):
        return {letter: ord(letter) - ord("a") for letter in letters}
    for domain in _DOMAINS:
        required = re.sub(r"\[.\]", "", domain)
        possible = re.sub(r"[\[\]]", "", domain)
        if set(required) <= set(letters) <= set(possible):
            present = [letter for letter in possible if letter in letters]
            return {letter: k for k, letter in enumerate(present)}
    return None


def write_onednn(layout: LayoutLike) -> OnednnTag:
    """Return the tag of a compact `layout`: outer dimensions, and the blocks within them; raise if it has none.

    >>> str(write_onednn(parse_onednn("aBcd16b").layout((2, 32, 3, 5))))
    'aBcd16b'
    """
    parts, shape, stored = tiled_parts(layout, "oneDNN"), logical_extents(layout), stored_extents(layout)
    outer = next((k for k, part in enumerate(parts) if not part.is_last), len(parts))  # parts before the blocks
    tag = _tag_of(parts, outer, len(shape))
    for count in range(outer, -1, -1):  # the only block of a padded dimension is also its last part
        if (candidate := _tag_of(parts, count, len(shape))).padded_shape(shape) == stored:
            return candidate
    raise LayoutError(f"{layout} has more padding than the blocks of {tag} need; oneDNN pads to whole blocks")


def _tag_of(parts: Sequence[StridedPart], outer: int, rank: int) -> OnednnTag:
    """Return the tag with the first `outer` parts as dimensions, and the others as blocks."""
    order = [part.mode for part in parts[:outer]]
    for k in range(rank):
        if k not in order:  # of extent 1, so that it can stand anywhere: in the order of the alphabet
            order.insert(next((position for position, dimension in enumerate(order) if dimension > k), len(order)), k)
    return OnednnTag(tuple(order), tuple([(part.mode, part.extent) for part in parts[outer:]]))


# Tilings of JAX's Mosaic GPU, such as `Tiling((64, 64)(16, 16))`, in and out.


@dataclass(frozen=True)
class MosaicTiling:
    """Tiles within tiles, each of which must divide the extents that it splits.

    >>> tiling = parse_mosaic("Tiling((32, 32)(16, 16))")
    >>> tiling.tile_shape((64, 96)), tiling.tile_strides((96, 1))
    ((2, 3, 2, 2, 16, 16), (3072, 32, 1536, 16, 96, 1))
    >>> tiling.layout((64, 96))(33, 5), tiling.tile_index((45, 27))
    (3093, (1, 0, 0, 1, 13, 11))
    >>> print(tiling)
    Tiling((32, 32)(16, 16))
    """

    tiles: tuple[tuple[int, ...], ...]

    def tile_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of an array of a `shape` after it was tiled."""
        return self._split(shape).extents

    def tile_strides(self, strides: Sequence[int]) -> tuple[int, ...]:
        """Return the strides after tiling, over a buffer with `strides`."""
        result = tuple(strides)
        for tile in self.tiles:
            whole, split = result[: -len(tile)], result[-len(tile) :]
            result = (*whole, *[stride * part for stride, part in zip(split, tile, strict=True)], *split)
        return result

    def tile_index(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the index into the tiled array of an `index` into the array."""
        result = tuple(index)
        for tile in self.tiles:
            pairs = list(zip(result[-len(tile) :], tile, strict=True))
            result = (
                *result[: -len(tile)],
                *[part // extent for part, extent in pairs],
                *[part % extent for part, extent in pairs],
            )
        return result

    def layout(self, shape: Sequence[int]) -> LayoutLike:
        """Return the layout of an array of a `shape` whose tiles are stored contiguously."""
        return self._split(shape).layout

    def view(self, shape: Sequence[int], strides: Sequence[int]) -> Layout:
        """Return the layout of the tiled array over a buffer of an array with `shape` and `strides`."""
        return Layout(self.tile_shape(shape), self.tile_strides(strides))

    def _split(self, shape: Sequence[int]) -> TiledDimensions:
        tiled = TiledDimensions.of(shape)
        for tile in self.tiles:
            if len(tile) > len(tiled.extents):
                raise LayoutError(f"{self} needs at least {len(tile)} dimensions, got {tuple(shape)}")
            split = tiled.extents[-len(tile) :]
            if any(extent % part for extent, part in zip(split, tile, strict=True)):
                raise LayoutError(f"{self}: the tile {tile} does not divide {split}, from shape {tuple(shape)}")
            tiled = tiled.split(tile)
        return tiled

    def __str__(self) -> str:
        return f"Tiling({''.join(map(str, self.tiles))})"


def parse_mosaic(text: str) -> MosaicTiling:
    """Return the tiling that a `text` describes.

    >>> parse_mosaic("Tiling((128,))").tiles
    ((128,),)
    """
    cursor = TextCursor(text, "a tiling")
    cursor.expect("Tiling", "(")
    tiles: list[tuple[int, ...]] = []
    while cursor.accept("("):
        tile = cursor.items(")", lambda: cursor.integer("an extent"), is_python=True)
        if not tile or min(tile) < 1 or (tiles and len(tile) > len(tiles[-1])):
            raise FileFormatError(
                f"{cursor.name}: a tile has extents of at least 1, and no more than the one before it, got {tile}"
            )
        if len(tiles) == MAX_TILES:
            cursor.fail(f"at most {MAX_TILES} nested tiles")
        tiles.append(tuple(tile))
        cursor.accept(",")
    cursor.expect(")")
    cursor.expect_end()
    if not tiles:
        raise FileFormatError(f"{cursor.name}: expected at least one tile, such as Tiling((64, 64))")
    return MosaicTiling(tuple(tiles))


def write_mosaic(layout: LayoutLike) -> str:
    """Return the tiling that stores an array as a `layout` does; a layout without tiles gives whole rows.

    >>> from tilewright import row_major
    >>> write_mosaic(parse_mosaic("Tiling((32, 32)(16, 16))").layout((64, 96))), write_mosaic(row_major(4, 8))
    ('Tiling((32, 32)(16, 16))', 'Tiling((8,))')
    """
    parts, shape = tiled_parts(layout, "Mosaic"), logical_extents(layout)
    if shape != stored_extents(layout):
        raise LayoutError(f"{layout} has padding, and Mosaic's tiles divide their array; use the padded shape instead")
    tiles = nested_tiles(parts, range(len(shape)))
    return str(MosaicTiling(tiles or (shape[-1:],)))


# Layouts of vectors in the registers of TPUs, as JAX's Mosaic prints them: `#tpu.vpad<"32,{0,0},(8,128)">`.

_VPAD = re.compile(
    r'\s*(?:#\w+\s*=\s*)?(?:#?tpu\.vpad\s*<\s*)?"?(\d{1,2}),\s*\{(\*|\d{1,9}),\s*(\*|\d{1,9})\},\s*'
    r'\((\d{1,9}),\s*(\d{1,9})\)(?:,\s*(-2,\s*-1|-1|-2))?"?\s*>?\s*',
    re.ASCII,
)
_ROWS, _COLUMNS = 8, 128  # of a register


@dataclass(frozen=True)
class VectorLayout:
    """The place of a vector in registers of 8 x 128 words of 32 bits: tiles of its last two dimensions.

    `bits` is the width of an element; several share a word, as its parts. `offsets` are the row and the column of the
    first element in its register; None: all rows or columns have the same. `implicit` are the dimensions of extent 1,
    counted from the end, that the vector does not have itself.

    >>> vector = parse_vpad('#tpu.vpad<"16,{0,0},(16,128)">')
    >>> print(vector, vector.layout((32, 256))(19, 130))
    #tpu.vpad<"16,{0,0},(16,128)"> Place(part=1, sublane=1, vreg=3, lane=2)
    """

    bits: int
    offsets: tuple[int | None, int | None]
    tile: tuple[int, int]
    implicit: tuple[int, ...] = ()

    @property
    def _digits(self) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """The digits of a row and of a column within a register, the fastest first: extents, and where they go."""
        packing, across = 32 // self.bits, (_COLUMNS, Place(lane=1))
        if self.tile[0] == 1:  # whole rows, one after the other
            return [], [across, (packing, Place(part=1)), (_ROWS, Place(sublane=1))]
        high = self.tile[0] // packing
        return [(packing, Place(part=1)), (high, Place(sublane=1))], [across, (_ROWS // high, Place(sublane=high))]

    @property
    def _register(self) -> list[int]:
        """The rows and columns that a register holds."""
        return [prod([extent for extent, _ in digits]) for digits in self._digits]

    @property
    def besides(self) -> list[str]:
        """The problem of offsets that are not within a register; the layout counts whole registers for them.

        >>> parse_vpad('#tpu.vpad<"32,{*,128},(8,128)">').besides
        ['an offset of 128 in a register of 8 x 128, which Mosaic refuses']
        """
        rows, columns = self._register
        beyond = [n for n, end in zip(self.offsets, (rows, columns), strict=True) if n is not None and n >= end]
        return [f"an offset of {n} in a register of {rows} x {columns}, which Mosaic refuses" for n in beyond]

    def layout(self, shape: Sequence[int]) -> LayoutLike:
        """Return the layout of a vector of a `shape`: to the register, its sublane and lane, and the part of a word."""
        extents = list(shape)
        for k in reversed(self.implicit):
            extents.insert(len(extents) + k + 1, 1)
        if len(extents) < 2 or min(extents) < 1:
            raise LayoutError(f"{self} needs {2 - len(self.implicit)} dimensions or more, got {tuple(shape)}")
        tile, held, replicas = self._register, list[tuple[int, Any]](), list[tuple[int, Any]]()
        for k in (-1, -2):  # of a dimension that is the same everywhere, a register has copies of one element
            offset, digits = self.offsets[k], self._digits[k]
            (replicas if offset is None else held).extend([digit for digit in digits if digit[0] > 1])
            extents[k], tile[k] = (1, 1) if offset is None else (extents[k] + offset, tile[k])
        strides = [0 if n == 1 else stride for n, stride in zip(extents, _strides(extents), strict=True)]
        start = sum([stride * (offset or 0) for stride, offset in zip(strides[-2:], self.offsets, strict=True)])
        steps = [strides[k] for k in range(len(extents)) if k - len(extents) not in self.implicit]
        tiled = TiledDimensions(tuple(extents), Layout(tuple(shape), tuple(steps)) + start).split(tile)
        held.append((tiled.size // prod(tile), Place(vreg=1)))
        places = Layout(tuple([n for n, _ in held]), tuple([place for _, place in held]), replicas=replicas)
        return compose(places, tiled.layout)

    def __str__(self) -> str:
        row, column = ["*" if offset is None else offset for offset in self.offsets]
        implicit = "".join([f",{k}" for k in self.implicit])
        return f'#tpu.vpad<"{self.bits},{{{row},{column}}},({self.tile[0]},{self.tile[1]}){implicit}">'


def parse_vpad(text: str) -> VectorLayout:
    """Return the layout of a vector that a `text` of Mosaic describes, in quotes or as the attribute.

    >>> parse_vpad('#tpu.vpad<"32,{*,0},(1,128),-2">').implicit
    (-2,)
    """
    match = _VPAD.fullmatch(text)
    if match is None:
        raise FileFormatError(f'a TPU layout: expected #tpu.vpad<"32,{{0,0}},(8,128)">, got {text.strip()[:60]!r}')
    bits, high, wide = int(match[1]), int(match[4]), int(match[5])
    if bits not in (1, 2, 4, 8, 16, 32):
        raise FileFormatError(f"a TPU layout: elements have 1, 2, 4, 8, 16 or 32 bits, got {bits}")
    packing = 32 // bits
    rows = high // packing
    if not (wide % (_COLUMNS * packing) == 0 < wide if high == 1 else wide == _COLUMNS):
        raise FileFormatError(
            f"a TPU layout: tiles are N x {_COLUMNS} or 1 x N * {_COLUMNS * packing}, got {high} x {wide}"
        )
    if high > 1 and (high % packing or rows not in (1, 2, 4, 8)):
        raise FileFormatError(
            f"a TPU layout: tiles fill 1, 2, 4 or 8 rows of words of {packing} elements, got {high} rows"
        )
    offsets = [None if part == "*" else int(part) for part in match.groups()[1:3]]
    implicit = tuple([int(part) for part in match[6].split(",")]) if match[6] else ()
    return VectorLayout(bits, (offsets[0], offsets[1]), (high, wide), implicit)
