# SPDX-License-Identifier: Apache-2.0
"""MLIR's affine maps with divisions, and memrefs: `affine_map<...>`, `memref<4x8xf32, strided<[64, 1]>>`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike, row_major
from .index_maps import IndexMap, Term, index_map_of
from .strided_parts import logical_extents, offset_of, strided_parts

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SPACE = re.compile(r"\d+|\"[^\"\\]*\"|#[\w.$-]+", re.ASCII)
_PRODUCT = re.compile(r"\*|floordiv\b|ceildiv\b|mod\b")
_SUM = re.compile(r"\+|-(?!>)")
_MAX_DEPTH = 64


def parse_index_expressions(text: str) -> IndexMap:
    """Return the map of a `text`, `affine_map<(d0, d1)[s0] -> (d0 floordiv 8)>` or what is inside; names are free.

    >>> parse_index_expressions("affine_map<(i, j) -> (i * 8 + j floordiv 2)>")(2, 5)
    (18,)
    """
    cursor = TextCursor(text, "an affine map")
    result = read_index_expressions(cursor)
    cursor.expect_end()
    return result


def read_index_expressions(cursor: TextCursor) -> IndexMap:
    """Return the map at a `cursor`.

    >>> read_index_expressions(TextCursor("(d0) -> (d0 mod 4)>", "a map")).inputs
    ('d0',)
    """
    is_wrapped = cursor.accept("affine_map")
    if is_wrapped:
        cursor.expect("<")
    inputs = _read_names(cursor, "(", ")")
    symbols = _read_names(cursor, "[", "]") if cursor.peek("[") else ()
    if len({*inputs, *symbols}) != len(inputs) + len(symbols):
        raise FileFormatError(f"{cursor.name}: every name once, got {[*inputs, *symbols]}")
    cursor.expect("->")
    cursor.expect("(")
    results = cursor.items(")", lambda: _read_sum(cursor, (*inputs, *symbols), 0))
    if is_wrapped:
        cursor.expect(">")
    return IndexMap(inputs, tuple(results), symbols)


def _read_names(cursor: TextCursor, opening: str, closing: str) -> tuple[str, ...]:
    cursor.expect(opening)
    return tuple(cursor.items(closing, lambda: cursor.take(_NAME, "a name")))


def _read_sum(cursor: TextCursor, names: tuple[str, ...], depth: int) -> Term:
    term = _read_product(cursor, names, depth)
    while found := cursor.match(_SUM):
        term = _combine(cursor, term, found[0], _read_product(cursor, names, depth))
    return term


def _read_product(cursor: TextCursor, names: tuple[str, ...], depth: int) -> Term:
    term = _read_factor(cursor, names, depth)
    while found := cursor.match(_PRODUCT):
        term = _combine(cursor, term, found[0], _read_factor(cursor, names, depth))
    return term


def _combine(cursor: TextCursor, left: Term, operation: str, right: Term) -> Term:
    try:
        return left.combine(operation, right)
    except LayoutError as problem:
        raise FileFormatError(f"{cursor.name}: {problem}, before character {cursor.at + 1}") from None


def _read_factor(cursor: TextCursor, names: tuple[str, ...], depth: int) -> Term:
    if depth > _MAX_DEPTH:
        cursor.fail(f"at most {_MAX_DEPTH} parentheses within each other")
    if cursor.accept("("):
        term = _read_sum(cursor, names, depth + 1)
        cursor.expect(")")
        return term
    if cursor.accept("-"):
        return _combine(cursor, Term.number(-1), "*", _read_factor(cursor, names, depth + 1))
    start = cursor.skip_space()
    if found := cursor.match(_NAME):
        if found[0] not in names:
            cursor.at = start
            cursor.fail(f"one of {', '.join(names)}")
        return Term.input(found[0])
    return Term.number(cursor.integer("an index, or an integer"))


def write_index_expressions(index_map: IndexMap) -> str:
    """Return a map as MLIR writes it.

    >>> write_index_expressions(parse_index_expressions("(d0) -> (d0 floordiv 4 + 1)"))
    'affine_map<(d0) -> (d0 floordiv 4 + 1)>'
    """
    symbols = f"[{', '.join(index_map.symbols)}]" if index_map.symbols else ""
    results = ", ".join([result.format() for result in index_map.results])
    return f"affine_map<({', '.join(index_map.inputs)}){symbols} -> ({results})>"


def write_affine_map(layout: LayoutLike) -> str:
    """Return a strided `layout` as MLIR's affine map.

    >>> write_affine_map(Layout((4, 8), (8, 1)))
    'affine_map<(d0, d1) -> (d0 * 8 + d1)>'
    """
    return write_index_expressions(index_map_of(layout, "an affine map"))


@dataclass(frozen=True)
class StridedMemref:
    """A memref: shape, element type, and an offset with strides or an affine map; None is a dynamic number, `?`.

    `space` is the text of its memory space, if any.

    >>> memref = parse_strided_memref("memref<4x8xf32, strided<[64, 1], offset: 5>>")
    >>> memref.layout(1, 2), memref.element, memref.space
    (71, 'f32', '')
    """

    shape: tuple[int | None, ...]
    element: str
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    index_map: IndexMap | None = None
    space: str = ""

    @property
    def layout(self) -> Any:
        """Return the layout from indices to elements; raise if a number of it is dynamic.

        >>> parse_strided_memref("memref<2x3xf32>").layout
        Layout((2, 3), (3, 1))
        """
        extents = [extent for extent in self.shape if extent is not None]
        if len(extents) != len(self.shape) or self.offset is None or (self.strides and None in self.strides):
            raise LayoutError(f"{self} has dynamic numbers; give them values instead of ?")
        if self.index_map is not None:
            return self.index_map.layout(extents)
        if self.strides is None:
            return row_major(*extents) if extents else Layout((), ())
        strides = [stride for stride in self.strides if stride is not None]
        layout = Layout(tuple(extents), tuple(strides))
        return layout + self.offset if self.offset else layout

    def __str__(self) -> str:
        shape = "".join([f"{_number_text(extent)}x" for extent in self.shape])
        parts = [f"{shape}{self.element}"]
        if self.strides is not None:
            offset = f", offset: {_number_text(self.offset)}" if self.offset != 0 else ""
            parts.append(f"strided<[{', '.join(map(_number_text, self.strides))}]{offset}>")
        if self.index_map is not None:
            parts.append(write_index_expressions(self.index_map))
        if self.space:
            parts.append(self.space)
        return f"memref<{', '.join(parts)}>"


def _number_text(number: int | None) -> str:
    return "?" if number is None else str(number)


def parse_strided_memref(text: str) -> StridedMemref:
    """Return the memref that a `text` describes.

    >>> str(parse_strided_memref("memref<4x?xf32, strided<[?, 1]>, 3>"))
    'memref<4x?xf32, strided<[?, 1]>, 3>'
    """
    cursor = TextCursor(text, "a memref")
    if cursor.peek("strided"):
        cursor.fail("a memref with a shape around the strides, such as memref<8x64xf32, strided<[64, 1]>>, or a shape,")
    cursor.expect("memref")
    cursor.expect("<")
    shape = cursor.extents()
    element = cursor.take(_NAME, "an element type such as f32")
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    index_map, space = None, ""
    more = cursor.accept(",")
    if more and cursor.accept("strided"):
        strides, offset = _read_strided(cursor)
        more = cursor.accept(",")
    elif more and cursor.peek("affine_map"):
        index_map = read_index_expressions(cursor)
        more = cursor.accept(",")
    if more:
        space = cursor.take(_SPACE, 'a memory space such as 3, "l1" or #gpu.address_space<workgroup>')
        if space.startswith("#") and cursor.peek("<"):
            space += cursor.raw()
        elif space.startswith("#") and "." not in space:
            raise FileFormatError(
                f"{cursor.name}: {space} may be a map or a memory space; write what it stands for instead"
            )
    cursor.expect(">")
    cursor.expect_end()
    if strides is not None and len(strides) != len(shape):
        raise FileFormatError(f"{cursor.name}: {len(shape)} extents need as many strides, got {len(strides)}")
    if index_map is not None and (len(index_map.inputs) != len(shape) or index_map.symbols):
        raise FileFormatError(f"{cursor.name}: {len(shape)} extents need a map from as many indices")
    return StridedMemref(shape, element, strides, offset, index_map, space)


def _read_strided(cursor: TextCursor) -> tuple[tuple[int | None, ...], int | None]:
    cursor.expect("<")
    cursor.expect("[")
    strides = cursor.items("]", lambda: _read_number(cursor))
    offset: int | None = 0
    if cursor.accept(","):
        cursor.expect("offset")
        cursor.expect(":")
        offset = _read_number(cursor)
    cursor.expect(">")
    return tuple(strides), offset


def _read_number(cursor: TextCursor) -> int | None:
    return None if cursor.accept("?") else cursor.signed()


def write_memref(layout: LayoutLike, dtype: str = "f32") -> str:
    """Return a `layout` of elements of a `dtype` as a memref: with strides, or with a map where modes are nested.

    >>> write_memref(Layout((4, 8), (64, 1)) + 5)
    'memref<4x8xf32, strided<[64, 1], offset: 5>>'
    >>> write_memref(Layout(((2, 2), 4), ((1, 8), 2)))
    'memref<4x4xf32, affine_map<(d0, d1) -> (d0 mod 2 + d0 floordiv 2 * 8 + d1 * 2)>>'
    """
    parts, shape = strided_parts(layout, "a memref"), logical_extents(layout)
    if len(parts) == len(shape):
        return str(StridedMemref(shape, dtype, tuple([part.stride for part in parts]), offset_of(layout)))
    return str(StridedMemref(shape, dtype, index_map=index_map_of(layout, "a memref")))
