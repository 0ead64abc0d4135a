# SPDX-License-Identifier: Apache-2.0
"""CuTe's layouts in every spelling: as CuTe prints them, as C++ types, as pycute and the DSL write them.

`(_4,_8):(_8,_1)`, `Layout<Shape<_4,_8>,Stride<_8,_1>>`, `Layout((4, 8), (8, 1))`, `Sw<3,3,3> o _0 o (_8,_64):(_64,_1)`,
`smem_ptr[16b](unset) o ...`. A swizzle of a pointer acts on bytes: it is converted to elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import MAX_DEPTH, ComposedLayout, Layout, Place, Swizzle, is_congruent

_MAX_MODES = 4096  # of a tuple
_INTEGER = re.compile(r"_?(-?\d{1,19})(?!\w)", re.ASCII)
_TEMPLATE_INTEGER = re.compile(r"(?:Int|C|constant\s*<\s*int\s*,)\s*<?\s*(-?\d{1,19})\s*>", re.ASCII)
_POINTER = re.compile(r"(smem_ptr|gmem_ptr|rmem_ptr|tmem_ptr|ptr|counting_iter)\s*\[(\d{1,4})b\]\s*\(", re.ASCII)
_SWIZZLE = re.compile(r"(?:Sw|S|Swizzle)\s*<\s*(-?\d{1,3})\s*,\s*(-?\d{1,3})\s*,\s*(-?\d{1,3})\s*>", re.ASCII)
_PYTHON_SWIZZLE = re.compile(
    r"(?:SW_(\d{1,3})_(\d{1,3})_(-?\d{1,3})|Swizzle\s*\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\))", re.ASCII
)
_FLAG = re.compile(r"smem_ptr_flag_bits\s*<\s*(\d{1,4})\s*>", re.ASCII)
_PATH = re.compile(r"@(\d{1,3})", re.ASCII)
_NAMESPACE = re.compile(r"\b(?:cute|cutlass)\s*::\s*")
HAS_POINTER = re.compile(rf"{_POINTER.pattern}|\bArithTuple\b", re.ASCII)
"""Parts that only CuTe's chains have: a pointer, or the start of coordinates."""
_PREFIX = re.compile(r"\b(?:const|struct|class)\s+|\{\s*\}")


@dataclass(frozen=True)
class CuteText:
    """A layout of CuTe with the other facts in its text.

    `pointer` is the kind of pointer, `bits` the width of its elements and `address` its text; `swizzle` is the one that
    was printed, which acts on bytes if there is a pointer behind it. `layout` counts elements.

    >>> atom = parse_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")
    >>> print(atom.layout, atom.pointer, atom.bits, atom.swizzle)
    Sw<3,3,3> o (8,64):(64,1) smem_ptr 16 Sw<3,4,3>
    """

    layout: Any
    pointer: str = ""
    bits: int | None = None
    address: str = ""
    swizzle: Swizzle | None = field(default=None)

    def __str__(self) -> str:
        return _format(self.layout) if isinstance(self.layout, Place) else write_cute(self.layout, self)


def parse_cute(text: str) -> CuteText:
    """Return the object that a `text` of CuTe describes, in any of its spellings.

    >>> parse_cute("Layout<Shape<Int<4>,_8>,Stride<_8,_1>>").layout
    Layout((4, 8), (8, 1))
    >>> parse_cute("gmem_ptr[32b](0x7f00) o (4,8):(_1,4)").bits
    32
    """
    reader = _CuteReader(_PREFIX.sub("", _NAMESPACE.sub("", text)))
    result = reader.read_chain()
    reader.cursor.expect_end()
    return result


class _CuteReader:
    """Reads the terms of a chain, outermost first, at a cursor."""

    def __init__(self, text: str) -> None:
        self.cursor = TextCursor(text, "a CuTe layout")

    def read_chain(self, depth: int = 0) -> CuteText:
        """Return the layout of a chain: term o term o ..., with pointers, swizzles and offsets before the layout."""
        cursor = self.cursor
        pointer, bits, address, swizzle, offset = "", None, "", None, 0
        swizzles_bytes, origin = False, Place({})
        while True:
            if match := cursor.match(_POINTER):
                if pointer:
                    cursor.fail("one pointer")
                pointer, bits = match[1], int(match[2])
                if not bits:
                    raise FileFormatError(f"{cursor.name}: the elements of {match[0]}...) have no bits")
                address = self._read_address()
                swizzles_bytes = swizzle is not None
            elif (start := self._read_coordinate_tensor()) is not None:
                if pointer:
                    cursor.fail("one pointer")
                pointer, address = "ArithTuple", ",".join(map(str, start))
                origin = Place({f"E{k}": number for k, number in enumerate(start) if number})
            elif (number := self._read_offset()) is not None:
                offset = number
            elif (inner := self._read_swizzle()) is not None:
                if swizzle is not None:
                    cursor.fail("one swizzle")
                swizzle = inner
            else:
                layout = self._read_layout(depth)
                break
            if not cursor.accept("o"):
                if swizzle is None or pointer:
                    cursor.fail("'o' and a layout")
                return CuteText(swizzle)
        if isinstance(layout, CuteText):
            return layout
        composed: Any = layout + (offset or origin) if offset or origin else layout
        if swizzle is not None and isinstance(layout, Layout):
            in_elements = _scale_swizzle(swizzle, bits) if swizzles_bytes and bits is not None else swizzle
            composed = self._compose(in_elements, composed)
        return CuteText(composed, pointer, bits, address, swizzle)

    def _read_address(self) -> str:
        cursor, start, depth = self.cursor, self.cursor.at, 1
        while depth:
            if cursor.at == len(cursor.text):
                cursor.fail("')'")
            depth += {"(": 1, ")": -1}.get(cursor.text[cursor.at], 0)
            cursor.at += 1
        return cursor.text[start : cursor.at - 1]

    def _read_coordinate_tensor(self) -> tuple[int, ...] | None:
        """Return the coordinate that a tensor of coordinates begins at: `ArithTuple(_0,_0)`."""
        if not self.cursor.accept("ArithTuple"):
            return None
        start = self.read_tree()
        if not isinstance(start, tuple) or not all(isinstance(number, int) for number in start):
            self.cursor.fail("one integer per coordinate")
        return start

    def _read_offset(self) -> int | None:
        """Return the offset between a swizzle and a layout: `_0 o`, `7 o`, `{16} o`, `_0,` of a type."""
        cursor, start = self.cursor, self.cursor.skip_space()
        is_braced = cursor.accept("{")
        match = cursor.match(_INTEGER)
        if match and (not is_braced or cursor.accept("}")) and cursor.peek("o"):
            return int(match[1])
        cursor.at = start
        return None

    def _read_swizzle(self) -> Swizzle | None:
        cursor, start = self.cursor, self.cursor.skip_space()
        is_wrapped = cursor.accept("(")
        match = cursor.match(_SWIZZLE) or cursor.match(_PYTHON_SWIZZLE)
        if not match or (is_wrapped and not cursor.accept(")")):
            cursor.at = start
            return None
        try:
            return Swizzle(*[int(number) for number in match.groups() if number is not None])
        except LayoutError as problem:
            raise FileFormatError(f"{cursor.name}: {problem}") from None

    def _read_layout(self, depth: int) -> Any:
        """Return a layout, a tuple of integers, or a composed layout."""
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        if cursor.accept("ComposedLayout"):
            return self._read_composed(depth)
        if cursor.accept("Layout"):
            return self._read_constructor()
        if cursor.peek("((") or cursor.peek("("):
            start = cursor.at
            cursor.expect("(")
            if (inner := self._try_wrapped_layout(depth)) is not None:
                return inner
            cursor.at = start
        shape = self.read_tree()
        if not cursor.accept(":"):
            return self._plain_tuple(shape)
        return self._build(shape, self.read_tree())

    def _try_wrapped_layout(self, depth: int) -> Any:
        """Return a layout inside parentheses, as tensor-layouts prints it; None if there is none."""
        try:
            shape = self.read_tree()
            if not self.cursor.accept(":"):
                return None
            stride = self.read_tree()
            self.cursor.expect(")")
        except FileFormatError:
            return None
        return self._build(shape, stride)

    def _plain_tuple(self, shape: object) -> Any:
        """Return the layout that a lone tuple or number stands for: CuTe's layouts of a shape are column-major."""
        if isinstance(shape, Place):
            return CuteText(shape)  # a basis, E<1>
        if _has_places(shape):
            self.cursor.fail("':' and strides")
        return self._build(shape, None)

    def _open(self) -> str:
        """Move past the bracket that opens a type or a call, and return the one that closes it."""
        if self.cursor.accept("<"):
            return ">"
        self.cursor.expect("(")
        return ")"

    def _read_constructor(self) -> Any:
        """Return `Layout<Shape<...>, Stride<...>>`, or `Layout(shape, stride)`."""
        cursor, closing = self.cursor, self._open()
        shape = self.read_tree()
        stride = self.read_tree() if cursor.accept(",") else None
        cursor.expect(closing)
        return self._build(shape, stride)

    def _read_composed(self, depth: int) -> CuteText:
        """Return a composed layout, as the C++ type or as a call with `offset=`."""
        cursor, closing = self.cursor, self._open()
        swizzle = self._read_swizzle()
        if swizzle is None:
            cursor.fail("a swizzle")
        cursor.expect(",")
        offset, bits = 0, None
        if flag := cursor.match(_FLAG):
            bits = int(flag[1])
            cursor.expect(",")
        elif not cursor.peek("Layout"):
            offset = self._read_integer()
            cursor.expect(",")
        cursor.expect("Layout")
        layout = self._read_constructor()
        if cursor.accept(","):
            if cursor.accept("offset"):
                cursor.expect("=")
            offset = self._read_integer()
        cursor.expect(closing)
        in_elements = swizzle if bits is None else _scale_swizzle(swizzle, bits)
        pointer = "" if bits is None else "smem_ptr"
        composed = self._compose(in_elements, layout + offset if offset else layout)
        return CuteText(composed, pointer, bits, "unset" if pointer else "", swizzle)

    def _compose(self, swizzle: Swizzle, layout: Layout) -> ComposedLayout:
        if layout.axes:
            raise FileFormatError(f"{self.cursor.name}: {swizzle} acts on offsets, and {layout} gives coordinates")
        return ComposedLayout(swizzle, layout)

    def read_tree(self, depth: int = 0) -> Any:
        """Return nested tuples of integers and basis strides, in parentheses or as `Shape<...>`."""
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        for opening in ("(", "Shape<", "Stride<", "Step<", "tuple<", "Coord<"):
            if cursor.accept(opening):
                closing = ")" if opening == "(" else ">"
                return tuple(cursor.items(closing, lambda: self.read_tree(depth + 1), _MAX_MODES, is_python=True))
        amount = self._read_integer()
        path = []
        while match := cursor.match(_PATH):
            path.append(f"E{match[1]}")
        return Place({".".join(reversed(path)): amount}) if path else amount

    def _read_integer(self) -> int:
        match = self.cursor.match(_INTEGER) or self.cursor.match(_TEMPLATE_INTEGER)
        if not match:
            self.cursor.fail("an integer")
        return int(match[1])

    def _build(self, shape: Any, stride: Any) -> Layout:
        if stride is not None and not is_congruent(shape, stride):
            raise FileFormatError(f"{self.cursor.name}: shape {shape} and stride {stride} have different nesting")
        try:
            return Layout(shape) if stride is None else Layout(shape, stride)
        except (LayoutError, TypeError) as problem:
            raise FileFormatError(f"{self.cursor.name}: {problem}") from None


def _has_places(tree: object) -> bool:
    return any(map(_has_places, tree)) if isinstance(tree, tuple) else isinstance(tree, Place)


def _scale_swizzle(swizzle: Swizzle, bits: int, to_bytes: bool = False) -> Swizzle:
    """Return a swizzle of bytes as one of elements of a given width in bits, or the other way round."""
    if bits < 8 or bits & (bits - 1):
        raise FileFormatError(f"a swizzle of bytes cannot be one of elements of {bits} bits")
    shift = (bits // 8).bit_length() - 1
    base = swizzle.base + (shift if to_bytes else -shift)
    if base < 0:
        raise FileFormatError(f"{swizzle} moves parts of elements of {bits} bits, which is not a layout of elements")
    return Swizzle(swizzle.bits, base, swizzle.shift)


def write_cute(layout: object, text: CuteText | None = None) -> str:
    """Return a layout as CuTe prints it; `text` adds its pointer.

    >>> write_cute(ComposedLayout(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))))
    'Sw<3,3,3> o 0 o (8,64):(64,1)'
    """
    if isinstance(layout, Swizzle):
        return str(layout)
    swizzle = None
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        swizzle, layout = layout.outer, layout.inner
    if not isinstance(layout, Layout) or layout.guards or layout.replicas:
        raise LayoutError(f"{layout} has padding, copies or a composition that CuTe's text cannot express")
    offset = layout.offset
    strided = f"{_format(layout.shape)}:{_format(layout.stride)}"
    if text is None or not text.pointer:
        pointer = ""
    else:
        pointer = f"{text.pointer}{'' if text.bits is None else f'[{text.bits}b]'}({text.address})"
    if swizzle is None:
        if offset and not pointer.startswith("ArithTuple"):  # which has the offset
            raise LayoutError(f"{layout} begins at {offset}; CuTe prints that only behind a swizzle")
        return f"{pointer} o {strided}" if pointer else strided
    if text is not None and pointer and text.swizzle != swizzle and text.bits is not None:
        inner = f"{offset} o {strided}" if offset else strided
        return f"{_scale_swizzle(swizzle, text.bits, to_bytes=True)} o {pointer} o {inner}"
    return f"{f'{pointer} o ' if pointer else ''}{swizzle} o {offset} o {strided}"


def _format(tree: object) -> str:
    if isinstance(tree, tuple):
        return f"({','.join(map(_format, tree))})"
    if not isinstance(tree, Place):
        return str(tree)
    if len(tree) != 1:
        raise LayoutError(f"{tree} moves along several axes at once, which CuTe's strides cannot")
    ((name, amount),) = tree.items()
    parts = name.split(".")
    if not all(part[:1] == "E" and part[1:].isdigit() for part in parts):
        raise LayoutError(f"{tree} is on the axis {name!r}, which CuTe does not have")
    return f"{amount}{''.join(f'@{part[1:]}' for part in reversed(parts))}"
