# SPDX-License-Identifier: Apache-2.0
"""XLA's shapes with layouts, such as `bf16[8,128]{1,0:T(8,128)(2,1)}`, in and out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from .._text import MAX_RANK, TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import LayoutLike
from .strided_parts import logical_extents, nested_tiles, stored_extents, tiled_parts
from .tilings import MAX_TILES, MERGED, TiledDimensions

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
LOOKS_LIKE = re.compile(r"\s*(?:pred|[sufc]\d+|bf16|f[468]e\w+)\[[\d,\s<=]*\]", re.ASCII)


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
    def layout(self) -> Any:
        """Return the layout from coordinates to the element in the buffer.

        >>> parse_xla("f32[8,4]{1,0:T(2,2)}").layout(3, 1)
        11
        """
        return self._tiled.layout

    @property
    def padded_size(self) -> int:
        """Return the elements of the buffer, with padding.

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
                        cursor.fail(f"at most {MAX_TILES} tiles within each other")
                    tiles.append(_read_tile(cursor))
            while not cursor.peek("}"):
                name = cursor.take(_ITEM, "a property such as S(1), or '}'")
                if name == "T":
                    raise FileFormatError(f"{cursor.name}: tiles are given once, as T(8,128)(2,1), before properties")
                if name not in _PROPERTIES:
                    known = ", ".join([f"{key} ({meaning})" for key, meaning in _PROPERTIES.items()])
                    raise FileFormatError(f"{cursor.name}: unknown property {name!r}; known are T (tiles), {known}")
                if name in properties:
                    raise FileFormatError(f"{cursor.name}: property {name!r} is given twice")
                properties[name] = _read_property(cursor, name, len(shape))
        cursor.expect("}")
    cursor.expect_end()
    return XlaShape(dtype, shape, tuple(order), tuple(tiles), properties, tuple(dynamic))


def _read_property(cursor: TextCursor, name: str, rank: int) -> str:
    """Return what stands in the brackets of a property; of splits, which have several, with the brackets."""
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
    indices = [cursor.integer("an index of a split")]
    while cursor.accept(","):
        indices.append(cursor.integer("an index of a split"))
    cursor.expect(")")
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
    tile: list[int | None] = []
    while not tile or cursor.accept(","):
        if cursor.accept("*"):
            tile.append(MERGED)
            continue
        extent = cursor.integer("an extent of a tile, or *")
        if not extent:
            raise FileFormatError(f"{cursor.name}: an extent of a tile must be at least 1")
        tile.append(extent)
    cursor.expect(")")
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
    written = XlaShape(dtype, shape, tuple(reversed(order)), nested_tiles(parts, order))
    if written.padded_size != prod(stored_extents(layout)):
        raise LayoutError(f"{layout} has more padding than the tiles of {written} need; XLA pads to whole tiles")
    return str(written)
