# SPDX-License-Identifier: Apache-2.0
"""CuTe's layouts in every spelling: as CuTe prints them, as C++ types, as pycute and the DSL write them.

`(_4,_8):(_8,_1)`, `Layout<Shape<_4,_8>,Stride<_8,_1>>`, `Layout((4, 8), (8, 1))`, `Sw<3,3,3> o _0 o (_8,_64):(_64,_1)`,
`smem_ptr[16b](unset) o ...`. A swizzle of a pointer acts on bytes: it is converted to elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from .._text import TextCursor, count_of
from ..errors import FileFormatError, LayoutError
from ..layout import ComposedLayout, Layout, Place, Swizzle, as_tuple, is_congruent, leaves, map_leaves, row_major

_MAX_DEPTH = 64  # of tuples within tuples
_MAX_MODES = 4096  # of a tuple
_INTEGER = re.compile(r"_?(-?\d{1,19})(?!\w)", re.ASCII)
_TEMPLATE_INTEGER = re.compile(
    r"(?:Int|C|(?:integral_)?constant)\s*<(?:\s*(?:unsigned\s+)?(?:u?int\w{0,5}|long|size_t)\s*,)?\s*(-?\d{1,19})[uUlL]{0,3}\s*>",
    re.ASCII,
)
_DYNAMIC = re.compile(r"\?(?:\{[^{}]{0,40}\})?|(?:unsigned\s+)?(?:int|long)(?:(?:8|16|32|64)_t)?\b", re.ASCII)
_DIVISOR = re.compile(r"\bdiv=(\d{1,19})", re.ASCII)
_TREE = re.compile(r"\(|make_(?:shape|stride|tuple|coord|step)\s*\(|(?:Shape|Stride|Step|Coord|Tile|tuple)\s*<")
_POINTER = re.compile(r"((?:smem_|gmem_|rmem_|tmem_|sub)?ptr|tmem_)\s*\[(\d{1,4})b\]\s*\(", re.ASCII)
_FLAG = re.compile(r"smem_ptr_flag(?:_bits\s*<\s*(\d{1,4})\s*>)?", re.ASCII)
_DSL_POINTER = re.compile(r"ptr\s*<|raw_ptr\s*\(\s*(0x[0-9a-fA-F]{1,16})\s*:", re.ASCII)
_NAMED_POINTER = re.compile(r"(?:GMMA|UMMA)::DescriptorIterator\b|\w{1,40}@[a-z]\w{0,40}(?=\s*o\b)", re.ASCII)
_SWIZZLE = re.compile(
    r"(?:Sw|S|Swizzle)\s*<\s*(-?\d{1,3})\s*,\s*(-?\d{1,3})\s*,\s*(-?\d{1,3})\s*>|SW_(\d{1,3})_(\d{1,3})_(-?\d{1,3})"
    r"|Swizzle\s*\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\)",
    re.ASCII,
)
_BASIS = re.compile(r"ScaledBasis\s*<")
_PATH = re.compile(r"@(\d{1,3})", re.ASCII)
_ORIGIN = re.compile(r"\(\s*_?\d[\s\d,_]*\)\s*o\b", re.ASCII)
_QUOTED = re.compile(r'([^"]*)"([^"]*)"')
_COMPACT = re.compile(r"(LayoutRight|GenRowMajor)|LayoutLeft|GenColMajor")
_ALIGN = re.compile(r"align\s*<\s*(\d{1,19})\s*>", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_COMPOSED = re.compile(r"ComposedLayout|composition|make_composed_layout")
_TENSOR = re.compile(r"[tT]ensor\s*([<(])(?=\s*(\w*Engine)?)")
_MLIR_TYPE = re.compile(r"!cute\.(memref|layout|composed_layout|coord_tensor|swizzle)\s*<")
_TABLE = re.compile(r":\s*\n|[ \t]*\n\s*\d")  # of the values, as print_tensor and print_layout write it
_NAMESPACE = re.compile(r"\b(?:cute|cutlass|std|SM\d{1,3})\s*::\s*")
_PREFIX = re.compile(r"\b(?:const|struct|class|typename)\b|\{\s*\}|\(int\)|&")
_DECLTYPE = re.compile(r"\Adecltype\s*\((.*)\)\s*\Z", re.DOTALL)
_LABEL = re.compile(r"\s*(?:using\s|auto\s)?\s*(_*[A-Za-z]\w*)\s*(?:[:=](?![:=])\s*|\s(?=raw_ptr))", re.ASCII)
_SEVERAL = re.compile(r"\s*(TiledMMA|TiledCopy|MMA_Atom|Copy_Atom|ThrMMA|ThrCopy)\b(?!\s*<)")
HAS_POINTER = re.compile(
    rf"{_POINTER.pattern}|{_DSL_POINTER.pattern}|{_SEVERAL.pattern[3:]}|\bArithTuple\b|counting_iter\s*\(|!cute\."
    r"|DescriptorIterator|\?",
    re.ASCII,
)
"""Parts that only CuTe's texts have: a pointer, the start of coordinates, a type of its dialect of MLIR."""

PRINTED = re.compile(
    rf"(?:Sw?\s*<[\s\d,-]{{1,20}}>\s*(?:_|o\b\s*)?)?{_POINTER.pattern}|tensor(?=\s*(?:<\s*(?:raw_)?ptr|\(\s*raw_ptr))"
    r"|raw_ptr(?=\s*\(\s*0x)|ArithTuple(?=\s*\()|counting_iter(?=\s*\()",
    re.ASCII,
)
"""How a tensor begins that CuTe prints."""
_STRUCTURE = re.compile(r"[()<>\[\]{}]")

# The element types of CUTLASS, without the decoration of __nv_bfloat16 and int8_t, and what they are called elsewhere.
_DECORATION = re.compile(r"__(?:nv_)?|_t\b")
_ELEMENTS = {
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "int": "i32",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float_e4m3": "f8E4M3FN",
    "float_e5m2": "f8E5M2",
    "float_e2m1": "f4E2M1FN",
    **{f"{sign}int{bits}": f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class Dynamic(str):
    """A number that is known at run time only, as it was printed, and what divides it.

    >>> Dynamic("?{i64 div=64}").divisor
    64
    """

    __slots__ = ()

    @property
    def divisor(self) -> int:
        """The known divisor of the number."""
        match = _DIVISOR.search(self)
        return max(1, int(match[1])) if match else 1


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
    `of_pointer`. `layout` counts elements. `facts` are all other statements of the text, and what it leaves open.

    >>> atom = parse_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")
    >>> print(atom.layout, atom.pointer, atom.bits, atom.swizzle)
    Sw<3,3,3> o (8,64):(64,1) smem_ptr 16 Sw<3,4,3>
    """

    layout: Any
    pointer: str = ""
    bits: int | None = None
    address: str = ""
    swizzle: Swizzle | None = None
    of_pointer: bool = False
    dtype: str = ""
    facts: tuple[str, ...] = ()

    @property
    def _name(self) -> str:
        """The pointer with the bits of an element, `smem_ptr[16b]`."""
        return f"{self.pointer}[{self.bits}b]" if self.pointer.isidentifier() and self.bits else self.pointer

    @property
    def head(self) -> str:
        """The text before the layout: the pointer as it is printed, with its swizzle and its address."""
        if not self.pointer.isidentifier():  # with all that belongs to it, or none
            return self.pointer
        return f"{f'{self.swizzle}_' if self.of_pointer else ''}{self._name}({self.address})"

    @property
    def besides(self) -> list[str]:
        """The facts that a layout does not have.

        >>> parse_cute("Sw<3,4,3>_smem_ptr[16b](unset) o (_8,_64):(_64,_1)").besides
        ['smem_ptr[16b]', 'Sw<3,4,3> acts on addresses, so the pointer is taken as a multiple of 1024 bytes']
        """
        return [*([self._name] if self.pointer else []), *self.facts]

    def __str__(self) -> str:
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
    types = [match.start() for match in _MLIR_TYPE.finditer(text)]
    if "!cute." in text and not types:
        raise FileFormatError("a CuTe layout: expected !cute.memref<...>, .layout, .composed_layout or .coord_tensor")
    if types and "\n" in text[types[0] : types[-1]].strip():
        raise FileFormatError(f"a CuTe layout: this text has {len(types)} types; paste one, or one operation")
    start, label = (types[-1], "") if types else _find_label(text)
    body = _PREFIX.sub("", _NAMESPACE.sub("", text[start:])).strip().removesuffix(";")
    reader = _CuteReader(_DECLTYPE.sub(r"\1", body), shape)
    result = reader.read()
    if types and text[:start].strip():  # an operation, whose result it is
        return replace(result, facts=(*result.facts, " ".join(text.split())))
    reader.cursor.expect_end()
    fact = f"the name {label}" if label.isidentifier() else f"the text {label[:80]!r}"
    return replace(result, facts=(*result.facts, fact)) if label else result


def _find_label(text: str) -> tuple[int, str]:
    """Return where a layout begins behind its name, a comment or a sentence, and what stands before."""
    printed = PRINTED.search(text)
    before = text[: printed.start()] if printed else ""
    if printed and before.strip() and not _STRUCTURE.search(before):
        return printed.start(), " ".join(_PREFIX.sub("", before).split()).strip(" /#:=")
    label = _LABEL.match(text)
    return (label.end(), label[1]) if label else (0, "")


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
        tensor = cursor.match(_TENSOR)
        if tensor and tensor[2]:
            return self._read_tensor_type()
        result = self.read_chain()
        is_printed = (tensor and cursor.accept(",")) or (result.pointer.startswith("raw_ptr") and cursor.accept("="))
        if is_printed or _TABLE.match(cursor.text, cursor.at):  # with its values
            values = " ".join(cursor.text[cursor.at :].lstrip(":").split())
            cursor.at = len(cursor.text)
            return replace(result, facts=(*result.facts, f"values {values[:40]}{'...' * (len(values) > 40)}".strip()))
        if tensor:
            cursor.expect(">" if tensor[1] == "<" else ")")
        return result

    def read_chain(self, separator: str = "o", depth: int = 0) -> CuteText:
        """Return the layout of a chain: term o term o ..., with pointers, swizzles and offsets before the layout."""
        cursor, result, start, is_of_bytes = self.cursor, CuteText(None), 0, False
        while (term := self._read_term(separator)) is not None:
            if start and term[1]:
                cursor.fail("one offset")
            part, start = term[0], term[1] or start
            if result.pointer and part.pointer:
                cursor.fail("one pointer")
            if result.swizzle is not None and part.swizzle is not None:
                cursor.fail("one swizzle")
            is_of_bytes |= part.of_pointer or bool(part.pointer and result.swizzle is not None)
            result = replace(result, **{name: value for name, value in vars(part).items() if value})
            if not cursor.accept(separator):
                if result.swizzle is None or result.pointer:
                    cursor.fail("'o' and a layout")
                return CuteText(result.swizzle)
        layout = self._read_layout(depth)
        if isinstance(layout, CuteText):
            if result.swizzle is not None or (result.pointer and layout.pointer):
                cursor.fail("one swizzle and one pointer")
            return replace(result, layout=layout.layout, swizzle=layout.swizzle) if result.pointer else layout
        if separator == "," and cursor.accept(","):  # the offset is the last argument
            if cursor.accept("offset"):
                cursor.expect("=")
            start = self._read_integer()
        return self._finish(result, layout, start, is_of_bytes)

    def _read_term(self, separator: str) -> tuple[CuteText, Any] | None:
        """Return what a term before the layout states, and the offset or coordinate that it starts at; or None."""
        cursor = self.cursor
        if (pointer := self._read_pointer()) is not None:
            return pointer, 0
        if cursor.accept("counting_iter"):
            cursor.expect("(")
            start = self._read_integer()
            cursor.expect(")")
            return CuteText(None, "counting_iter", address=str(start)), start
        if cursor.accept("ArithTuple") or _ORIGIN.match(cursor.text, cursor.skip_space()):
            coordinate = self.read_tree()
            if not isinstance(coordinate, tuple) or not all(isinstance(number, int) for number in coordinate):
                cursor.fail("one integer per coordinate")
            place = Place({f"E{k}": number for k, number in enumerate(coordinate) if number})
            return CuteText(None, "ArithTuple", address=",".join(map(str, coordinate))), place
        if (offset := self._read_offset(separator)) is not None:
            return CuteText(None), offset
        if (swizzle := self._read_swizzle()) is None:
            return None
        if not cursor.accept("_"):
            return CuteText(None, swizzle=swizzle), 0
        if (pointer := self._read_pointer()) is None or pointer.swizzle is not None:  # which the swizzle belongs to
            cursor.fail("a pointer without another swizzle")
        return replace(pointer, swizzle=swizzle, of_pointer=True), 0

    def _finish(self, found: CuteText, layout: Layout | DynamicLayout, start: Any, is_of_bytes: bool) -> CuteText:
        """Return a layout behind the terms that were found, with an offset or a coordinate that it begins at."""
        swizzle, facts = found.swizzle, list(found.facts)
        if isinstance(layout, DynamicLayout):
            if start:
                self.cursor.fail(f"no offset before {layout}, whose numbers are not known,")
            is_of_pointer = found.of_pointer or (is_of_bytes and found.pointer.isidentifier())
            return replace(found, layout=layout, of_pointer=is_of_pointer)
        if swizzle is not None and is_of_bytes:
            if found.of_pointer and start:
                self.cursor.fail("no offset behind a swizzled pointer")
            first, fact = _place_in_memory(found, swizzle)
            start += first
            facts += [fact] if fact else []
            swizzle = _scale_swizzle(swizzle, found.bits or 8)
        elif swizzle is not None and found.dtype:
            facts.append(f"{swizzle} acts on elements, as a part of the layout")
        placed: Any = layout + start if start else layout
        if swizzle is not None:
            if layout.axes:
                raise FileFormatError(f"{self.cursor.name}: {swizzle} acts on offsets, and {layout} gives coordinates")
            placed = ComposedLayout(swizzle, placed)
        return replace(found, layout=placed, facts=tuple(facts))

    def _read_pointer(self) -> CuteText | None:
        """Return a pointer as C++ prints it, `smem_ptr[16b](0x0)`, or the DSL, `ptr<f16, smem, align<16>>`."""
        cursor, start, swizzle = self.cursor, self.cursor.skip_space(), None
        if match := cursor.match(_POINTER):
            if not int(match[2]):
                raise FileFormatError(f"{cursor.name}: the elements of {match[0]}...) have no bits")
            address = cursor.raw()
            cursor.expect(")")
            return CuteText(None, match[1], int(match[2]), address)
        if flag := cursor.match(_FLAG):
            return CuteText(None, "smem_ptr", int(flag[1] or 1), "unset")
        if named := cursor.match(_NAMED_POINTER):
            return CuteText(None, named[0])
        if (opening := cursor.match(_DSL_POINTER)) is None:
            return None
        dtype = cursor.take(_NAME, "an element type")
        while cursor.accept(","):
            if swizzle is None and (swizzle := self._read_swizzle()) is not None:
                continue
            if not (cursor.match(_ALIGN) or cursor.match(_NAME)):
                cursor.fail("a memory, align<...> or a swizzle")
        cursor.expect(")" if opening[1] else ">")
        pointer, digits = " ".join(cursor.text[start : cursor.at].split()), re.search(r"\d{1,3}", dtype)
        bits = int(digits[0]) if digits else None
        return CuteText(None, pointer, bits, opening[1] or "", swizzle, swizzle is not None, dtype)

    def _read_mlir_type(self, kind: str) -> CuteText:
        """Return a type of the DSL in MLIR, with its layout in quotes: `!cute.memref<f16, smem, "(4,8):(8,1)">`."""
        head, text = self._read_quoted()
        if kind == "memref":
            head = f"ptr<{head.strip().removesuffix(',')}> o "
        elif kind == "coord_tensor":
            self.cursor.expect(",")
            head, text = f"{head}ArithTuple{text} o ", "".join(self._read_quoted())
        return self._read_inside(head + text)

    def _read_quoted(self) -> tuple[str, str]:
        quoted = self.cursor.match(_QUOTED) or self.cursor.fail("a layout in quotes")
        return quoted[1], quoted[2]

    def _read_inside(self, text: str) -> CuteText:
        """Return the layout of a chain that a type contains, and move past the end of the type."""
        inside = _CuteReader(text, self.shape)
        result = inside.read_chain()
        inside.cursor.expect_end()
        self.cursor.expect(">")
        return result

    def _read_tensor_type(self) -> CuteText:
        """Return a tensor as a type of C++: its engine, which has the pointer and the element, and its layout."""
        cursor = self.cursor
        engine = cursor.raw()
        cursor.expect(",")
        memory, swizzle = re.search(r"\b[sgrt]mem_ptr\b", engine), _SWIZZLE.search(engine)
        named = re.search(r"\b(\w+)\s*\*", engine) or re.search(r"Engine\s*<\s*(\w+)", engine)
        dtype = _ELEMENTS.get(_DECORATION.sub("", named[1]) if named else "", "")
        bits = re.search(r"\d+", dtype)
        if swizzle and not bits:
            raise FileFormatError(f"{cursor.name}: how many bits an element of {engine[:80]} has is not known")
        prefix = f"{swizzle[0]}_" if swizzle else ""
        head = f"{prefix}{memory[0] if memory else 'ptr'}[{bits[0]}b](unset) o " if bits else ""
        result = self._read_inside(head + cursor.raw())
        return replace(result, dtype=dtype, facts=(*result.facts, engine))

    def _read_offset(self, separator: str) -> int | None:
        """Return the offset between a swizzle and a layout: `_0 o`, `7 o`, `{16} o`, `_0,` of a type."""
        cursor, start = self.cursor, self.cursor.skip_space()
        is_braced = cursor.accept("{")
        match = cursor.match(_INTEGER) or cursor.match(_TEMPLATE_INTEGER)
        if match and (not is_braced or cursor.accept("}")) and cursor.peek(separator):
            return int(match[1])
        cursor.at = start
        return None

    def _read_swizzle(self) -> Swizzle | None:
        cursor, start = self.cursor, self.cursor.skip_space()
        is_wrapped = cursor.accept("(")
        match = cursor.match(_SWIZZLE)
        if not match or (is_wrapped and not cursor.accept(")")):
            cursor.at = start
            return None
        try:
            return Swizzle(*[int(number) for number in match.groups() if number is not None])
        except LayoutError as problem:
            raise FileFormatError(f"{cursor.name}: {problem}") from None

    def _read_layout(self, depth: int) -> Layout | DynamicLayout | CuteText:
        """Return a layout, a tuple of integers, or a composed layout."""
        cursor = self.cursor
        if depth > _MAX_DEPTH:
            cursor.fail(f"at most {_MAX_DEPTH} levels")
        if cursor.match(_COMPOSED):
            closing = self._open()
            composed = self.read_chain(",", depth + 1)
            cursor.expect(closing)
            return composed
        if cursor.accept("Layout") or cursor.accept("make_layout"):
            return self._read_constructor()
        start = cursor.skip_space()
        try:  # inside parentheses, as tensor-layouts prints it
            cursor.expect("(")
            shape = self.read_tree()
            cursor.expect(":")
            stride = self.read_tree()
            cursor.expect(")")
        except FileFormatError:
            cursor.at = start
            shape, stride = self.read_tree(), self.read_tree() if cursor.accept(":") else None
        if isinstance(shape, Place) and stride is None:
            return CuteText(shape)  # a basis, E<1>
        return self._build(shape, stride)

    def _open(self) -> str:
        """Move past the bracket that opens a type or a call, and return the one that closes it."""
        if self.cursor.accept("<"):
            return ">"
        self.cursor.expect("(")
        return ")"

    def _read_constructor(self) -> Layout | DynamicLayout:
        """Return `Layout<Shape<...>, Stride<...>>`, or `Layout(shape, stride)`."""
        cursor, closing = self.cursor, self._open()
        shape, stride = self.read_tree(), None
        if cursor.accept(","):
            order = cursor.match(_COMPACT)
            if order and order[1] and any(isinstance(leaf, Dynamic) for leaf in leaves(shape)):
                cursor.fail(f"numbers, since the strides of {_format(shape)} are known at run time only,")
            stride = self.read_tree() if order is None else row_major(shape).stride[0] if order[1] else None
        cursor.expect(closing)
        return self._build(shape, stride)

    def read_tree(self, depth: int = 0) -> Any:
        """Return nested tuples of integers and basis strides, in parentheses or as `Shape<...>`."""
        cursor = self.cursor
        if depth > _MAX_DEPTH:
            cursor.fail(f"at most {_MAX_DEPTH} levels")
        if opening := cursor.match(_TREE):
            closing = ">" if opening[0].endswith("<") else ")"
            return tuple(cursor.items(closing, lambda: self.read_tree(depth + 1), _MAX_MODES, is_python=True))
        if dynamic := cursor.match(_DYNAMIC):
            return Dynamic(dynamic[0])
        if cursor.match(_BASIS):
            amount = self._read_integer()
            cursor.expect(",")
            return Place({".".join([f"E{k}" for k in cursor.items(">", cursor.integer)]): amount})
        amount, path = self._read_integer(), []
        while match := cursor.match(_PATH):
            path.append(f"E{match[1]}")
        return Place({".".join(reversed(path)): amount}) if path else amount

    def _read_integer(self) -> int:
        cursor = self.cursor
        match = cursor.match(_INTEGER) or cursor.match(_TEMPLATE_INTEGER) or cursor.fail("an integer")
        return int(match[1])

    def _build(self, shape: Any, stride: Any) -> Layout | DynamicLayout:
        if stride is None and any(isinstance(leaf, Place) for leaf in leaves(shape)):
            self.cursor.fail("':' and strides")
        if stride is not None and not is_congruent(shape, stride):
            raise FileFormatError(f"{self.cursor.name}: shape {shape} and stride {stride} have different nesting")
        if any(isinstance(leaf, Dynamic) for leaf in leaves((shape, stride))):
            layout = DynamicLayout(shape, stride)
            layout = layout if self.shape is None else layout.fill(self.shape)
            if layout.unknown:
                return layout
            shape = layout.shape
        try:
            return Layout(shape) if stride is None else Layout(shape, stride)
        except (LayoutError, TypeError) as problem:
            raise FileFormatError(f"{self.cursor.name}: {problem}") from None


def _place_in_memory(text: CuteText, swizzle: Swizzle) -> tuple[int, str]:
    """Return where a pointer begins, in elements from where its swizzle does, and what that assumes."""
    bits, period = text.bits or 8, 1 << (swizzle.bits + swizzle.base + abs(swizzle.shift))
    address, alignment = re.match("0x([0-9a-fA-F]+)", text.address), _ALIGN.search(text.pointer)
    start = int(address[1], 16) % period if address else 0
    if start * 8 % bits:
        raise FileFormatError(f"a CuTe layout: {text.address} is not the address of elements of {bits} bits")
    if address is None and (alignment is None or int(alignment[1]) % period):
        return 0, f"{swizzle} acts on addresses, so the pointer is taken as a multiple of {period} bytes"
    fact = f"{swizzle} acts on addresses, so offsets count from the multiple of {period} bytes before {text.address}"
    return start * 8 // bits, fact if start else ""


def _scale_swizzle(swizzle: Swizzle, bits: int) -> Swizzle:
    """Return a swizzle of bytes as one of elements of a given width in bits."""
    if bits & (bits - 1):
        raise FileFormatError(f"a swizzle of bytes cannot be one of elements of {bits} bits")
    base = swizzle.base + 4 - bits.bit_length()  # 8 bits are a byte
    if base < 0:
        raise FileFormatError(f"{swizzle} moves parts of elements of {bits} bits, which is not a layout of elements")
    return Swizzle(swizzle.bits, base, swizzle.shift)


def write_cute(layout: object, text: CuteText | None = None) -> str:
    """Return a layout as CuTe prints it; `text` adds its pointer.

    >>> write_cute(ComposedLayout(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))))
    'Sw<3,3,3> o 0 o (8,64):(64,1)'
    """
    if isinstance(layout, (Swizzle, Place)):
        return _format(layout)
    pointer, swizzle = "" if text is None else text.head, None
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        swizzle, layout = layout.outer, layout.inner
    if isinstance(layout, DynamicLayout):
        swizzle, offset = None if text is None or text.of_pointer else text.swizzle, 0
    elif isinstance(layout, Layout) and not layout.guards and not layout.replicas:
        offset = layout.offset
    else:
        raise LayoutError(f"{layout} has padding, copies or a composition that CuTe's text cannot express")
    strided = f"{_format(layout.shape)}:{_format(layout.stride)}"
    if text is not None and (text.of_pointer or text.pointer in ("ArithTuple", "counting_iter")):  # which has the rest
        return _in_tensor(pointer, strided)
    if swizzle is None:
        if offset:
            raise LayoutError(f"{layout} begins at {offset}; CuTe prints that only behind a swizzle")
        return _in_tensor(pointer, strided)
    if text is not None and pointer and text.swizzle not in (swizzle, None):  # of bytes
        offset -= _place_in_memory(text, text.swizzle)[0]
        return f"{text.swizzle} o {pointer} o {f'{offset} o ' if offset else ''}{strided}"
    return _in_tensor(pointer, f"{swizzle} o {offset} o {strided}")


def _in_tensor(pointer: str, layout: str) -> str:
    """Return a layout behind a pointer; the DSL puts both into a tensor."""
    if pointer.startswith("ptr<"):
        return f"tensor<{pointer} o {layout}>"
    if "@" in pointer and "(" not in pointer:
        return f"Tensor<{pointer} o {layout}>"
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
