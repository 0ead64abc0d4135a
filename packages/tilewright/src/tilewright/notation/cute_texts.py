# SPDX-License-Identifier: Apache-2.0
"""CuTe's layouts in every spelling: as CuTe prints them, as C++ types, as pycute and the DSL write them.

`(_4,_8):(_8,_1)`, `Layout<Shape<_4,_8>,Stride<_8,_1>>`, `Layout((4, 8), (8, 1))`, `Sw<3,3,3> o _0 o (_8,_64):(_64,_1)`,
`smem_ptr[16b](unset) o ...`. A swizzle of a pointer acts on bytes: it is converted to elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from .._text import TextCursor, count_of
from ..errors import FileFormatError, LayoutError
from ..layout import MAX_DEPTH, ComposedLayout, Layout, Place, Swizzle, as_tuple, is_congruent, leaves, map_leaves

_MAX_MODES = 4096  # of a tuple
_INTEGER = re.compile(r"_?(-?\d{1,19})(?!\w)", re.ASCII)
_TEMPLATE_INTEGER = re.compile(
    r"(?:Int\s*<|C\s*<|(?:integral_)?constant\s*<\s*(?:unsigned\s+)?(?:u?int\w{0,5}|long|size_t)\s*,)\s*(-?\d{1,19})[uUlL]{0,3}\s*>",
    re.ASCII,
)
_DYNAMIC = re.compile(r"\?(?:\{[^{}]{0,40}\})?|(?:unsigned\s+)?(?:int|long)(?:(?:8|16|32|64)_t)?\b", re.ASCII)
_DIVISOR = re.compile(r"\bdiv=(\d{1,19})", re.ASCII)
_TREE = re.compile(r"\(|make_(?:shape|stride|tuple|coord|step)\s*\(|(?:Shape|Stride|Step|Coord|Tile|tuple)\s*<")
_POINTER = re.compile(
    r"((?:smem_|gmem_|rmem_|tmem_|sub)?ptr|tmem_)\s*\[(\d{1,4})b\]\s*\(|(counting_iter)\s*\(", re.ASCII
)
_DSL_POINTER = re.compile(r"ptr\s*<|raw_ptr\s*\(\s*(0x[0-9a-fA-F]{1,16})\s*:", re.ASCII)
_DESCRIPTOR = re.compile(r"(?:GMMA|UMMA)::DescriptorIterator\b")
_PLACED = re.compile(r"(0x[0-9a-fA-F]{1,16}|\w{1,40})@(\w{1,40})\s*(?=o\b)", re.ASCII)
_SWIZZLE = re.compile(r"(?:Sw|S|Swizzle)\s*<\s*(-?\d{1,3})\s*,\s*(-?\d{1,3})\s*,\s*(-?\d{1,3})\s*>", re.ASCII)
_PYTHON_SWIZZLE = re.compile(
    r"(?:SW_(\d{1,3})_(\d{1,3})_(-?\d{1,3})|Swizzle\s*\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\))", re.ASCII
)
_FLAG = re.compile(r"smem_ptr_flag(?:_bits\s*<\s*(\d{1,4})\s*>)?", re.ASCII)
_BASIS = re.compile(r"ScaledBasis\s*<")
_PATH = re.compile(r"@(\d{1,3})", re.ASCII)
_ORIGIN = re.compile(r"\(\s*_?\d[\s\d,_]*\)\s*o\b", re.ASCII)
_QUOTED = re.compile(r'"[^"]*"')
_COMPACT = re.compile(r"(LayoutRight|GenRowMajor)|LayoutLeft|GenColMajor")
_ALIGN = re.compile(r"align\s*<\s*(\d{1,19})\s*>", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_COMPOSED = re.compile(r"ComposedLayout|composition|make_composed_layout")
_TENSOR = re.compile(r"[tT]ensor\s*([<(])")
_MLIR_TYPE = re.compile(r"!cute\.(memref|layout|composed_layout|coord_tensor|swizzle)\s*<")
_NAMESPACE = re.compile(r"\b(?:cute|cutlass|std|SM\d{1,3})\s*::\s*")
_PREFIX = re.compile(r"\b(?:const|struct|class|typename)\b|\{\s*\}|\(int\)|&")
_LABEL = re.compile(r"\s*(?:using\s|auto\s)?\s*(_*[A-Za-z]\w*)\s*(?:[:=](?![:=])\s*|\s(?=raw_ptr))", re.ASCII)
_SEVERAL = re.compile(r"\s*(TiledMMA|TiledCopy|MMA_Atom|Copy_Atom|ThrMMA|ThrCopy)\b(?!\s*<)")
HAS_POINTER = re.compile(
    rf"{_POINTER.pattern}|{_DSL_POINTER.pattern}|{_SEVERAL.pattern[3:]}|\bArithTuple\b|!cute\.|DescriptorIterator|\?",
    re.ASCII,
)
"""Parts that only CuTe's texts have: a pointer, the start of coordinates, a type of its dialect of MLIR."""

# The element types of CUTLASS, and how they are called elsewhere.
_ELEMENTS = {
    "half_t": "f16",
    "__half": "f16",
    "bfloat16_t": "bf16",
    "__nv_bfloat16": "bf16",
    "tfloat32_t": "tf32",
    "float": "f32",
    "double": "f64",
    "float_e4m3_t": "f8E4M3FN",
    "float_e5m2_t": "f8E5M2",
    "float_e2m1_t": "f4E2M1FN",
    "int": "i32",
    **{f"int{bits}_t": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Dynamic:
    """A number that is known at run time only, as it was printed, and what divides it.

    >>> Dynamic.of("?{i64 div=64}").divisor
    64
    """

    text: str
    divisor: int = 1

    @classmethod
    def of(cls, text: str) -> Dynamic:
        """Return the number that a `text` stands for."""
        divisor = _DIVISOR.search(text)
        return cls(text, max(1, int(divisor[1])) if divisor else 1)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class DynamicLayout:
    """A layout with numbers in its `shape` and `stride` that are known at run time only.

    >>> layout = parse_cute("(?,?{div=8}):(64,1)").layout
    >>> print(layout, layout.unknown, layout.fill((4, 16)).shape)
    (?,?{div=8}):(64,1) ['extent ? of mode 0', 'extent ?{div=8} of mode 1'] (4, 16)
    """

    shape: Any
    stride: Any

    @property
    def unknown(self) -> list[str]:
        """The numbers that are not known, in words."""
        return [
            f"{noun} {leaf} of mode {k}"
            for noun, tree in (("extent", self.shape), ("stride", self.stride))
            for k, mode in enumerate(as_tuple(tree))
            for leaf in leaves(mode)
            if isinstance(leaf, Dynamic)
        ]

    @property
    def extents(self) -> tuple[int | None, ...]:
        """The extents of the modes, None where one is not known."""
        modes = [leaves(mode) for mode in as_tuple(self.shape)]
        return tuple([None if any(isinstance(n, Dynamic) for n in mode) else prod(mode) for mode in modes])

    def fill(self, extents: Sequence[int]) -> DynamicLayout:
        """Return the layout with the extents of its modes; raise if they cannot be these."""
        modes = as_tuple(self.shape)
        if len(modes) != len(extents):
            raise FileFormatError(f"{self} has {count_of(len(modes), 'mode')}, got the shape {tuple(extents)}")
        filled = tuple([_fill_mode(mode, extent) for mode, extent in zip(modes, extents, strict=True)])
        return DynamicLayout(filled if isinstance(self.shape, tuple) else filled[0], self.stride)

    def __str__(self) -> str:
        return f"{_format(self.shape)}:{_format(self.stride)}"


def _fill_mode(mode: Any, extent: int) -> Any:
    """Return the extents of a mode, of which at most one is not known, with a given product."""
    unknown = [leaf for leaf in leaves(mode) if isinstance(leaf, Dynamic)]
    rest = prod([leaf for leaf in leaves(mode) if not isinstance(leaf, Dynamic)])
    if len(unknown) > 1:
        raise FileFormatError(f"the extents {_format(mode)} do not follow from their product, {extent}; put them in")
    if not unknown:
        return mode
    if not rest or extent % (rest * unknown[0].divisor):
        raise FileFormatError(f"a mode of {extent} elements cannot have the extents {_format(mode)}")
    return map_leaves(lambda leaf: extent // rest if isinstance(leaf, Dynamic) else leaf, mode)


@dataclass(frozen=True)
class CuteText:
    """A layout of CuTe with the other facts in its text.

    `pointer` is the kind of pointer, `bits` the width of its elements, `dtype` their type and `address` its text;
    `swizzle` is the one that was printed, which acts on bytes if there is a pointer behind it, or if it is
    `of_pointer`. `layout` counts elements. `facts` are whatever else the text says, or that it leaves open.

    >>> atom = parse_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")
    >>> print(atom.layout, atom.pointer, atom.bits, atom.swizzle)
    Sw<3,3,3> o (8,64):(64,1) smem_ptr 16 Sw<3,4,3>
    """

    layout: Any
    pointer: str = ""
    bits: int | None = None
    address: str = ""
    swizzle: Swizzle | None = field(default=None)
    of_pointer: bool = False
    dtype: str = ""
    facts: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """What stands before the layout: the pointer as it is printed, with its swizzle and its address."""
        if not self.pointer.isidentifier():  # with all that belongs to it, or none
            return self.pointer
        bits = "" if self.bits is None else f"[{self.bits}b]"
        return f"{f'{self.swizzle}_' if self.of_pointer else ''}{self.pointer}{bits}({self.address})"

    @property
    def besides(self) -> list[str]:
        """The facts that a layout does not have.

        >>> parse_cute("Sw<3,4,3>_smem_ptr[16b](unset) o (_8,_64):(_64,_1)").besides
        ['smem_ptr[16b]', 'Sw<3,4,3> acts on addresses, so the pointer is taken as a multiple of 1024 bytes']
        """
        has_bits = self.pointer.isidentifier() and self.bits is not None
        pointer = f"{self.pointer}[{self.bits}b]" if has_bits else self.pointer
        return [*([pointer] if pointer else []), *self.facts]

    def __str__(self) -> str:
        if isinstance(self.layout, Place):
            return _format(self.layout)
        if isinstance(self.layout, DynamicLayout):
            swizzle = f"{self.swizzle} o 0 o " if self.swizzle is not None and not self.of_pointer else ""
            return f"{self.head} o {swizzle}{self.layout}" if self.head else f"{swizzle}{self.layout}"
        return write_cute(self.layout, self)


def parse_cute(text: str, shape: Sequence[int] | None = None) -> CuteText:
    """Return the object that a `text` of CuTe describes, in any of its spellings.

    `shape` gives the extents that are known only at run time, `?`.

    >>> parse_cute("Layout<Shape<Int<4>,_8>,Stride<_8,_1>>").layout
    Layout((4, 8), (8, 1))
    >>> parse_cute("gmem_ptr[32b](0x7f00) o (4,8):(_1,4)").bits
    32
    >>> parse_cute("tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o (8,64):(64,1)>").layout(1, 0)
    72
    """
    if several := _SEVERAL.match(text):
        lines = ", ".join(re.findall(r"^[ \t]*(\w+):", text, re.MULTILINE)) or "LayoutC_TV"
        raise FileFormatError(f"a CuTe layout: a {several[1]} has several; paste one of its lines: {lines}")
    types = [found.start() for found in _MLIR_TYPE.finditer(text)]
    if types and "\n" in text[types[0] : types[-1]].strip():
        raise FileFormatError(f"a CuTe layout: this text has {len(types)} types; paste one, or one operation")
    label = None if types else _LABEL.match(text)
    body = text[types[-1] if types else label.end() if label else 0 :]
    reader = _CuteReader(_PREFIX.sub("", _NAMESPACE.sub("", body)).strip().removesuffix(";"), shape)
    result = reader.read()
    facts = [f"the name {label[1]}"] if label else []
    if types:
        reader.cursor.at = len(reader.cursor.text) if len(text[: types[-1]].split()) else reader.cursor.at
        facts = [" ".join(text.split())] if text[: types[-1]].strip() else []
    reader.cursor.expect_end()
    return replace(result, facts=(*result.facts, *facts)) if facts else result


class _CuteReader:
    """Reads the terms of a chain, outermost first, at a cursor; `shape` gives extents that the text leaves open."""

    def __init__(self, text: str, shape: Sequence[int] | None = None) -> None:
        self.cursor = TextCursor(text, "a CuTe layout")
        self.shape = shape

    def read(self) -> CuteText:
        """Return the object of a whole text: a chain, as it is or inside a tensor, a type of C++ or of MLIR."""
        cursor = self.cursor
        if kind := cursor.match(_MLIR_TYPE):
            return self._read_mlir_type(kind[1])
        if cursor.accept("decltype"):
            cursor.expect("(")
            result = self.read()
            cursor.expect(")")
            return result
        tensor = cursor.match(_TENSOR)
        if tensor and "Engine" in cursor.text[cursor.at : cursor.at + 20]:
            return self._read_tensor_type()
        result = self.read_chain()
        is_printed = (
            cursor.accept(",") if tensor and tensor[1] == "(" else "raw_ptr" in result.pointer and cursor.accept("=")
        )
        if is_printed:  # with its values
            values = " ".join(cursor.text[cursor.at :].split())
            cursor.at = len(cursor.text)
            return replace(result, facts=(*result.facts, f"values {values[:40]}{'...' * (len(values) > 40)}".strip()))
        if tensor:
            cursor.expect(">" if tensor[1] == "<" else ")")
        return result

    def read_chain(self, depth: int = 0) -> CuteText:
        """Return the layout of a chain: term o term o ..., with pointers, swizzles and offsets before the layout."""
        cursor, found, offset = self.cursor, CuteText(None), 0
        swizzles_bytes, origin = False, Place({})
        while True:
            if (pointer := self._read_pointer()) is not None:
                if found.pointer:
                    cursor.fail("one pointer")
                if found.swizzle is not None and pointer.of_pointer:
                    cursor.fail("one swizzle")
                swizzles_bytes = found.swizzle is not None or pointer.of_pointer
                found = replace(pointer, swizzle=pointer.swizzle or found.swizzle)
                if pointer.pointer == "counting_iter":
                    offset = self._number_of(pointer.address)
            elif (start := self._read_coordinate_tensor()) is not None:
                if found.pointer:
                    cursor.fail("one pointer")
                found = replace(found, pointer="ArithTuple", address=",".join(map(str, start)))
                origin = Place({f"E{k}": number for k, number in enumerate(start) if number})
            elif (number := self._read_offset()) is not None:
                offset = number
            elif (inner := self._read_swizzle()) is not None:
                if found.swizzle is not None:
                    cursor.fail("one swizzle")
                found = replace(found, swizzle=inner)
                if cursor.accept("_"):  # of the pointer that follows
                    if found.pointer or (pointer := self._read_pointer()) is None or pointer.swizzle is not None:
                        cursor.fail("a pointer, once,")
                    found = replace(pointer, swizzle=inner, of_pointer=True)
                    swizzles_bytes = True
            else:
                layout = self._read_layout(depth)
                break
            if not cursor.accept("o"):
                if found.swizzle is None or found.pointer:
                    cursor.fail("'o' and a layout")
                return CuteText(found.swizzle)
        if isinstance(layout, CuteText):
            if found.swizzle is not None or (found.pointer and layout.pointer):
                cursor.fail("one swizzle and one pointer")
            return replace(found, layout=layout.layout, swizzle=layout.swizzle) if found.pointer else layout
        return self._finish(found, layout, offset, origin, swizzles_bytes)

    def _finish(self, found: CuteText, layout: Any, offset: int, origin: Place, swizzles_bytes: bool) -> CuteText:
        """Return a layout behind the terms that were found, with an offset or a coordinate that it begins at."""
        swizzle = found.swizzle
        if isinstance(layout, DynamicLayout):
            if offset or origin:
                self.cursor.fail(f"no offset before {layout}, whose numbers are not known,")
            return replace(found, layout=layout)
        if swizzle is not None and swizzles_bytes:
            if found.of_pointer and offset:
                self.cursor.fail("no offset behind a swizzled pointer")
            found, start = self._place_in_memory(found, swizzle)
            offset += start
            swizzle = swizzle if found.bits is None else _scale_swizzle(swizzle, found.bits)
        elif swizzle is not None and found.dtype:
            found = replace(found, facts=(*found.facts, f"{swizzle} acts on elements, as a part of the layout"))
        composed: Any = layout + (offset or origin) if offset or origin else layout
        if swizzle is not None and isinstance(layout, Layout):
            composed = self._compose(swizzle, composed)
        return replace(found, layout=composed)

    def _place_in_memory(self, found: CuteText, swizzle: Swizzle) -> tuple[CuteText, int]:
        """Return a pointer whose addresses are swizzled, with what that assumes, and where it begins in elements."""
        bits, period = found.bits or 8, 1 << (swizzle.bits + swizzle.base + abs(swizzle.shift))
        address = re.search(r"(?<!\w)0x([0-9a-fA-F]+)", found.address)
        alignment = _ALIGN.search(found.pointer)
        if address is None:
            if alignment and int(alignment[1]) % period == 0:
                return found, 0
            fact = f"{swizzle} acts on addresses, so the pointer is taken as a multiple of {period} bytes"
            return replace(found, facts=(*found.facts, fact)), 0
        start = int(address[1], 16) % period
        if start * 8 % bits:
            raise FileFormatError(f"{self.cursor.name}: {found.address} is not the address of elements of {bits} bits")
        if not start:
            return found, 0
        fact = f"{swizzle} acts on addresses, so offsets count from the multiple of {period} bytes before {address[0]}"
        return replace(found, facts=(*found.facts, fact)), start * 8 // bits

    def _read_pointer(self) -> CuteText | None:
        """Return a pointer as C++ prints it, `smem_ptr[16b](0x0)`, or the DSL, `ptr<f16, smem, align<16>>`."""
        cursor, start = self.cursor, self.cursor.skip_space()
        if match := cursor.match(_POINTER):
            if match[2] is not None and not int(match[2]):
                raise FileFormatError(f"{cursor.name}: the elements of {match[0]}...) have no bits")
            return CuteText(None, match[1] or match[3], int(match[2]) if match[2] else None, self._read_address())
        if match := cursor.match(_DESCRIPTOR):
            return CuteText(None, match[0])
        if match := cursor.match(_PLACED):
            return CuteText(None, f"Tensor<{match[1]}@{match[2]}")
        if match := cursor.match(_DSL_POINTER):
            found = self._read_memory(match[1] or "")
            cursor.expect(")" if match[1] else ">")
            return replace(found, pointer=" ".join(cursor.text[start : cursor.at].split()))
        return None

    def _read_memory(self, address: str) -> CuteText:
        """Return what the DSL says of memory: an element type, and then a space, an alignment and a swizzle."""
        cursor, swizzle = self.cursor, None
        dtype = cursor.take(_NAME, "an element type")
        digits = re.search(r"\d+", dtype)
        bits = int(digits[0]) if digits and len(digits[0]) < 5 else None
        while not cursor.peek('"') and cursor.accept(",") and not cursor.peek('"'):
            if (inner := self._read_swizzle()) is not None and swizzle is None:
                swizzle = inner
            elif inner or not (cursor.match(_ALIGN) or cursor.match(_NAME)):
                cursor.fail("a memory, align<...> or a swizzle")
        return CuteText(None, "", bits, address, swizzle, swizzle is not None, dtype)

    def _read_mlir_type(self, kind: str) -> CuteText:
        """Return a type of the DSL in MLIR, with its layout in quotes: `!cute.memref<f16, smem, "(4,8):(8,1)">`."""
        cursor, start = self.cursor, self.cursor.skip_space()
        head = ""
        if kind == "memref":
            self._read_memory("")
            head = f"ptr<{cursor.text[start : cursor.at].rstrip().removesuffix(',')}> o "
        elif kind == "coord_tensor":
            head = f"ArithTuple{cursor.take(_QUOTED, 'coordinates in quotes')[1:-1]} o "
            cursor.expect(",")
        inside = _CuteReader(head + cursor.take(_QUOTED, "a layout in quotes")[1:-1], self.shape)
        result = inside.read_chain()
        inside.cursor.expect_end()
        cursor.expect(">")
        return result

    def _read_tensor_type(self) -> CuteText:
        """Return a tensor as a type of C++: its engine, which has the pointer and the element, and its layout."""
        cursor = self.cursor
        engine = cursor.raw()
        cursor.expect(",")
        kind = re.search(r"\b([sgrt]mem_ptr)\b", engine)
        swizzle = _SWIZZLE.search(engine)
        named = re.search(r"\b(\w+)\s*\*", engine) or re.search(r"Engine\s*<\s*(\w+)", engine)
        dtype = _ELEMENTS.get(named[1] if named else "", "")
        bits = re.search(r"\d+", dtype)
        if swizzle and not bits:
            raise FileFormatError(f"{cursor.name}: how many bits an element of {engine[:80]} has is not known")
        prefix = f"{swizzle[0]}_" if swizzle else ""
        head = f"{prefix}{kind[1] if kind else 'ptr'}[{bits[0]}b](unset) o " if bits else ""
        inside = _CuteReader(head + cursor.raw(), self.shape)
        result = inside.read_chain()
        inside.cursor.expect_end()
        cursor.expect(">")
        return replace(result, dtype=dtype, facts=(*result.facts, engine))

    def _number_of(self, text: str) -> int:
        match = _INTEGER.fullmatch(text.strip())
        return int(match[1]) if match else self.cursor.fail("an integer as the start of counting_iter")

    def _read_address(self) -> str:
        cursor, start, depth = self.cursor, self.cursor.at, 1
        while depth:
            if cursor.at == len(cursor.text):
                cursor.fail("')'")
            depth += {"(": 1, ")": -1}.get(cursor.text[cursor.at], 0)
            cursor.at += 1
        return cursor.text[start : cursor.at - 1]

    def _read_coordinate_tensor(self) -> tuple[int, ...] | None:
        """Return the coordinate that a tensor of coordinates begins at: `ArithTuple(_0,_0) o`, `(0,0) o`."""
        if not self.cursor.accept("ArithTuple") and not _ORIGIN.match(self.cursor.text, self.cursor.skip_space()):
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
        if cursor.match(_COMPOSED):
            return self._read_composed(depth)
        if cursor.accept("Layout") or cursor.accept("make_layout"):
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
        shape, stride = self.read_tree(), None
        if cursor.accept(","):
            order = cursor.match(_COMPACT)
            stride = self.read_tree() if order is None else _row_major_strides(shape, [1]) if order[1] else None
        cursor.expect(closing)
        return self._build(shape, stride)

    def _read_composed(self, depth: int) -> CuteText:
        """Return a composed layout, as the C++ type or as a call with `offset=`."""
        cursor, closing = self.cursor, self._open()
        swizzle = self._read_swizzle()
        if swizzle is None:
            cursor.fail("a swizzle")
        cursor.expect(",")
        offset, found = 0, CuteText(None, swizzle=swizzle)
        if flag := cursor.match(_FLAG):
            found = replace(found, pointer="smem_ptr", bits=int(flag[1] or 1), address="unset")
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
        return self._finish(found, layout, offset, Place({}), bool(found.pointer))

    def _compose(self, swizzle: Swizzle, layout: Layout) -> ComposedLayout:
        if layout.axes:
            raise FileFormatError(f"{self.cursor.name}: {swizzle} acts on offsets, and {layout} gives coordinates")
        return ComposedLayout(swizzle, layout)

    def read_tree(self, depth: int = 0) -> Any:
        """Return nested tuples of integers and basis strides, in parentheses or as `Shape<...>`."""
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        if opening := cursor.match(_TREE):
            closing = ">" if opening[0].endswith("<") else ")"
            return tuple(cursor.items(closing, lambda: self.read_tree(depth + 1), _MAX_MODES, is_python=True))
        if dynamic := cursor.match(_DYNAMIC):
            return Dynamic.of(dynamic[0])
        if cursor.match(_BASIS):
            amount = self._read_integer()
            cursor.expect(",")
            return Place({".".join([f"E{k}" for k in cursor.items(">", cursor.integer)]): amount})
        amount, path = self._read_integer(), []
        while match := cursor.match(_PATH):
            path.append(f"E{match[1]}")
        return Place({".".join(reversed(path)): amount}) if path else amount

    def _read_integer(self) -> int:
        match = self.cursor.match(_INTEGER) or self.cursor.match(_TEMPLATE_INTEGER)
        if not match:
            self.cursor.fail("an integer")
        return int(match[1])

    def _build(self, shape: Any, stride: Any) -> Any:
        if stride is not None and not is_congruent(shape, stride):
            raise FileFormatError(f"{self.cursor.name}: shape {shape} and stride {stride} have different nesting")
        if any(isinstance(leaf, Dynamic) for tree in (shape, stride) for leaf in leaves(tree)):
            found = DynamicLayout(shape, stride)
            found = found if self.shape is None else found.fill(self.shape)
            if found.unknown:
                return found
            shape = found.shape
        try:
            return Layout(shape) if stride is None else Layout(shape, stride)
        except (LayoutError, TypeError) as problem:
            raise FileFormatError(f"{self.cursor.name}: {problem}") from None


def _row_major_strides(shape: Any, size: list[int]) -> Any:
    """Return the strides of a tree of extents, the last of which varies fastest; `size` grows with each of them."""
    if isinstance(shape, tuple):
        return tuple([_row_major_strides(part, size) for part in reversed(shape)][::-1])
    if isinstance(shape, Dynamic):
        raise FileFormatError(f"the strides before the extent {shape} are known at run time only; put its number in")
    stride, size[0] = size[0], size[0] * shape
    return stride


def _has_places(tree: object) -> bool:
    return any(map(_has_places, tree)) if isinstance(tree, tuple) else isinstance(tree, Place)


def _scale_swizzle(swizzle: Swizzle, bits: int, to_bytes: bool = False) -> Swizzle:
    """Return a swizzle of bytes as one of elements of a given width in bits, or the other way round."""
    if bits & (bits - 1):
        raise FileFormatError(f"a swizzle of bytes cannot be one of elements of {bits} bits")
    shift = bits.bit_length() - 4  # 8 bits are a byte
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
    offset, pointer = layout.offset, "" if text is None else text.head
    strided = f"{_format(layout.shape)}:{_format(layout.stride)}"
    if text is not None and (text.of_pointer or text.pointer in ("ArithTuple", "counting_iter")):  # which has the rest
        return _in_tensor(pointer, strided)
    if swizzle is None:
        if offset:
            raise LayoutError(f"{layout} begins at {offset}; CuTe prints that only behind a swizzle")
        return _in_tensor(pointer, strided)
    if text is not None and pointer and text.swizzle != swizzle and text.bits is not None:
        inner = f"{offset} o {strided}" if offset else strided
        return f"{_scale_swizzle(swizzle, text.bits, to_bytes=True)} o {pointer} o {inner}"
    return _in_tensor(pointer, f"{swizzle} o {offset} o {strided}")


def _in_tensor(pointer: str, layout: str) -> str:
    """Return a layout behind a pointer; the DSL puts both into a tensor."""
    if pointer.startswith(("ptr<", "Tensor<")):
        return f"{'tensor<' if pointer[0] == 'p' else ''}{pointer} o {layout}>"
    return f"{pointer} o {layout}" if pointer else layout


def _format(tree: object) -> str:
    if isinstance(tree, tuple):
        return f"({','.join(map(_format, tree))})"
    if not isinstance(tree, Place):
        return "None" if tree is None else str(tree)
    if len(tree) != 1:
        raise LayoutError(f"{tree} moves along several axes at once, which CuTe's strides cannot")
    ((name, amount),) = tree.items()
    parts = name.split(".")
    if not all(part[:1] == "E" and part[1:].isdigit() for part in parts):
        raise LayoutError(f"{tree} is on the axis {name!r}, which CuTe does not have")
    return f"{amount}{''.join(f'@{part[1:]}' for part in reversed(parts))}"
