# SPDX-License-Identifier: Apache-2.0
"""The meaning of Triton's encodings: which element each register, lane, warp and block holds, or each offset in memory.

Distributed encodings follow one scheme. A tile gives the first registers and lanes; warps are put beside each other,
dimension by dimension; then registers repeat the whole until the shape is covered. What reaches the extent of the
tensor starts again at 0, so that several threads hold the same element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias, TypeGuard

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike, Linear, compose

# TTGIR and Gluon text: types with an encoding, such as `tensor<32x16xf16, #ttg.blocked<{...}>>`, in and out.

MAX_DEPTH = 16
MAX_VALUES = 1024  # of a list
GLUON_MODULES = r"(?:(?:gl|ttgl|gluon|language|nvidia|ampere|hopper|blackwell|amd|(?:c|r)dna\d)\.)*"
_MAX_ALIASES = 256  # that are replaced, in a text
_NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_ELEMENT = re.compile(r"!tt\.ptr<[^<>]*>|[A-Za-z_][\w.]*", re.ASCII)
_ALIAS = re.compile(r"#([A-Za-z_]\w*)(?![\w.])", re.ASCII)
_DEFINITION = re.compile(r"^[ \t]*#([A-Za-z_]\w*)[ \t]*=[ \t]*(#[^\n]*)$", re.MULTILINE | re.ASCII)
_DIALECT = re.compile(r"#(?:ttg|triton_gpu|ttng|triton_nvidia_gpu)\.")
_CONSTRUCTOR = re.compile(rf"{GLUON_MODULES}([A-Z]\w*Layout(?:\.with_identity_for)?)\s*\(", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)[ \t]*(?::[ \t]*[A-Za-z_][\w.]*[ \t]*)?=(?!=)", re.ASCII)
_ARGUMENT = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)", re.ASCII)
_TYPE_WITH_ENCODING = re.compile(r"(?:!(?:ttg|triton_gpu|tt)\.memdesc|\btensor)\s*<[^<>,]*(?:<[^<>,]*>)?\s*,", re.ASCII)
_SIGNED = re.compile(r"-?\d{1,19}(?!\d)", re.ASCII)
_SIZED_TYPE = re.compile(r"(?:[su]?i|bf|tf|f)(\d{1,3})(?:E\d+M\d+\w*)?", re.ASCII)


def element_bits(dtype: str) -> int | None:
    """Return the bits of an element of a `dtype`, which its name states; None for others, such as a pointer.

    >>> element_bits("bf16"), element_bits("i8"), element_bits("f8E8M0FNU"), element_bits("ptr")
    (16, 8, 8, None)
    """
    match = _SIZED_TYPE.fullmatch(dtype)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class TritonEncoding:
    """An encoding: its `name`, its `fields` in order, the fields after the braces, and intervals with padding.

    >>> encoding = parse_encoding("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>")
    >>> encoding.name, encoding.fields["order"], str(encoding)
    ('swizzled_shared', [1, 0], '#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>')
    """

    name: str
    fields: Mapping[str, Any]
    after: Mapping[str, Any] = field(default_factory=dict)
    padding: tuple[tuple[int, int], ...] = ()
    own_shape: tuple[int, ...] | None = field(default=None, compare=False)  # that a constructor of Gluon states

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        if not self.fields and not self.padding and self.name not in _TENSOR_MEMORY:
            return f"#ttg.{self.name}"
        pairs = ", ".join([f"{interval}:+{extra}" for interval, extra in self.padding])
        pairs = f"[{pairs}] " if pairs else ""
        after = "".join([f", {name} = {_format_value(value)}" for name, value in self.after.items()])
        if self.name in _TENSOR_MEMORY:
            return f"#ttng.{self.name}<{_format_fields(self.fields)[1:-1]}>"
        return f"#ttg.{self.name}<{pairs}{_format_fields(self.fields)}{after}>"


@dataclass(frozen=True)
class TritonType:
    """A type with an encoding: a tensor in registers, or a `memdesc` in memory.

    `rest` is what follows the encoding of a memdesc, such as its memory and whether it is mutable; `line` is the
    operation that the type was found in, of which it is the result. `is_alone`: the text was an encoding alone.

    >>> kind = parse_triton_type(
    ...     "!ttg.memdesc<8x16xf16, #ttg.swizzled_shared<{vec = 1, order = [1, 0]}>, #smem, mutable>"
    ... )
    >>> kind.shape, kind.dtype, kind.is_memory, kind.rest
    ((8, 16), 'f16', True, '#smem, mutable')
    """

    shape: tuple[int, ...]
    dtype: str
    encoding: TritonEncoding
    is_memory: bool = False
    rest: str = ""
    line: str = ""
    is_alone: bool = False

    @property
    def bits(self) -> int | None:
        """The bits of an element, if its type states them.

        >>> parse_triton_type("tensor<8xbf16, #ttg.blocked<{order = [0]}>>").bits
        16
        """
        return element_bits(self.dtype)

    def __str__(self) -> str:
        shape = "x".join(map(str, (*self.shape, self.dtype)))
        if not self.is_memory:
            return f"tensor<{shape}, {self.encoding}>"
        return f"!ttg.memdesc<{shape}, {self.encoding}{', ' if self.rest else ''}{self.rest}>"


def parse_triton_type(
    text: str, aliases: Mapping[str, str] | None = None, shape: Sequence[int] | None = None
) -> TritonType:
    """Return the type that a text describes; definitions of aliases, `#mma = ...`, may stand on lines above it.

    `aliases` are further definitions, by name without their mark. Of an operation, it is the type of the result. An
    encoding alone, also as a constructor of Gluon, belongs to a tensor of a `shape`, whose element type is assumed.

    >>> parse_triton_type("#b = #ttg.blocked<{order = [0]}>\\ntensor<256xf16, #b>").encoding.name
    'blocked'
    >>> print(parse_triton_type("gl.SwizzledSharedLayout(8, 1, max_phase=8, order=[1, 0])", shape=(8, 64)).encoding)
    #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
    """
    definitions: dict[str, str] = {}
    for name, value in [*_DEFINITION.findall(text), *(aliases or {}).items()]:
        if definitions.setdefault(name, value) != value:
            raise FileFormatError(f"a Triton type: #{name} is defined twice, with different values")
    body = _DEFINITION.sub("", text).strip()
    if not body and len(definitions) == 1:
        (body,) = definitions.values()
    reader = _TritonReader(body, "a Triton type", definitions)
    if _DIALECT.match(body) or _CONSTRUCTOR.match(body) or _ASSIGNMENT.match(body):
        encoding = reader.read_encodings()
        own = encoding.own_shape if shape is None else tuple(shape)
        if own is None:
            reader.cursor.at = 0
            example = "tensor<32x16xf16, #ttg.blocked<{...}>>"
            reader.cursor.fail(f"a type with a shape around the encoding, such as {example}, or a shape (--shape),")
        is_shared = encoding.name.endswith(("_shared", "shared_linear"))
        space = "#ttng.tensor_memory" if encoding.name in _TENSOR_MEMORY else "#ttg.shared_memory" if is_shared else ""
        line = " ".join(body.split()) if _ASSIGNMENT.match(body) else ""
        return TritonType(own, "f16", encoding, bool(space), f"{space}, mutable" if space else "", line, is_alone=True)
    is_type = any(map(reader.cursor.peek, (*_MEMORY_TYPES, "tensor")))
    if is_type or not (starts := [match.start() for match in _TYPE_WITH_ENCODING.finditer(body)]):
        result = reader.read_type()
        reader.cursor.expect_end()
        return result
    types: dict[TritonType, int] = {}
    for start in starts:
        reader.cursor.at = start
        types[reader.read_type()] = start
    if len(types) > 1 and "\n" in body[min(starts) : max(starts)]:
        names = "; ".join([f"{str(kind)[:60]}..." for kind in list(types)[:4]])
        raise FileFormatError(f"a Triton type: this text has {len(types)} types, {names}; paste one, or one operation")
    return replace(max(types, key=lambda kind: types[kind]), line=" ".join(body.split()))


def parse_encoding(text: str, aliases: Mapping[str, str] | None = None) -> TritonEncoding:
    """Return the encoding that a text describes, with `aliases` by name without their mark.

    >>> parse_encoding("#ttg.slice<{dim = 0, parent = #b}>", {"b": "#ttg.blocked<{order = [1, 0]}>"}).fields[
    ...     "parent"
    ... ].name
    'blocked'
    """
    reader = _TritonReader(text, "a Triton encoding", dict(aliases or {}))
    encoding = reader.read_encoding(0)
    reader.cursor.expect_end()
    return encoding


class _TritonReader:
    """Reads types and encodings at a cursor."""

    def __init__(self, text: str, name: str, aliases: Mapping[str, str], budget: list[int] | None = None) -> None:
        self.cursor = TextCursor(text, name)
        self.aliases = aliases
        self.budget = [_MAX_ALIASES] if budget is None else budget  # uses of aliases, also within each other

    def read_encodings(self) -> TritonEncoding:
        """Return the only encoding of a text, or the last one of constructors that have names."""
        cursor = self.cursor
        while True:
            name, start = cursor.match(_ASSIGNMENT), cursor.at
            encoding = self.read_encoding(0)
            if name is None or cursor.at_end():
                cursor.expect_end()
                return encoding
            self.aliases = {**self.aliases, name[1]: cursor.text[start : cursor.at]}

    def read_type(self) -> TritonType:
        cursor = self.cursor
        is_memory = any(map(cursor.accept, _MEMORY_TYPES))
        if not is_memory and not cursor.accept("tensor"):
            cursor.fail("a type with an encoding, such as tensor<32x16xf16, #ttg.blocked<{...}>>,")
        cursor.expect("<")
        extents = cursor.extents()
        shape = tuple([extent for extent in extents if extent])
        if not extents or shape != extents:
            cursor.fail("extents of at least 1, such as 32x16xf16")
        dtype = cursor.take(_ELEMENT, "an element type")
        cursor.expect(",")
        encoding = self.read_encoding(0)
        rest: list[str] = []
        while is_memory and cursor.accept(","):
            rest.append(cursor.raw())
        cursor.expect(">")
        return TritonType(shape, dtype, encoding, is_memory, ", ".join(rest))

    def read_encoding(self, depth: int) -> TritonEncoding:
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} nested encodings")
        if alias := cursor.match(_ALIAS):
            if alias[1] not in self.aliases:
                raise FileFormatError(
                    f"{cursor.name}: #{alias[1]} is not defined; give its line '#{alias[1]} = #ttg...' too"
                )
            return self._replace_alias(alias[1], depth)
        if constructor := cursor.match(_CONSTRUCTOR):
            return self._read_constructor(constructor[1], depth)
        if not cursor.match(_DIALECT):
            cursor.fail("an encoding, such as #ttg.blocked<{...}>")
        name = cursor.take(_NAME, "the name of an encoding")
        if not cursor.accept("<"):
            return TritonEncoding(name, {})
        padding = cursor.items("]", self._read_padding) if cursor.accept("[") else ()
        has_braces = cursor.accept("{")
        fields = self._read_fields(depth, "}" if has_braces else ">")
        if has_braces and not cursor.accept(">"):
            cursor.expect(",")
            return TritonEncoding(name, fields, self._read_fields(depth, ">"), tuple(padding))
        return TritonEncoding(name, fields, {}, tuple(padding))

    def _replace_alias(self, name: str, depth: int) -> TritonEncoding:
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise FileFormatError(f"{self.cursor.name}: aliases are used more than {_MAX_ALIASES} times")
        inner = _TritonReader(self.aliases[name], f"#{name}", self.aliases, self.budget)
        encoding = inner.read_encoding(depth + 1)
        inner.cursor.expect_end()
        return encoding

    def _read_constructor(self, name: str, depth: int) -> TritonEncoding:
        """Return the encoding that a constructor of Gluon makes, from its arguments by position or by name."""
        cursor = self.cursor
        if name not in _CONSTRUCTORS:
            known = f"known are {', '.join(_CONSTRUCTORS)}"
            reason = "the compiler chooses it; print the layout that it chose" if name in _CHOSEN else known
            raise FileFormatError(f"{cursor.name}: {name} has no encoding: {reason}")
        kind, parameters = _CONSTRUCTORS[name]
        fields = dict[str, Any]()

        def read_argument() -> None:
            keyword = cursor.match(_ARGUMENT)
            parameter = keyword[1] if keyword else next(iter([*parameters][len(fields) :]), "")
            if parameter not in (*parameters, *_OLDER_PARAMETERS) or parameter in fields:
                cursor.fail(f"an argument of {name}({', '.join(parameters)})")
            fields[parameter] = self._read_value(depth + 1, is_python=True)

        cursor.items(")", read_argument, MAX_VALUES, is_python=True)
        return _as_encoding(kind, {parameters.get(name, name): value for name, value in fields.items()})

    def _read_padding(self) -> tuple[int, int]:
        interval = self.cursor.integer("an interval")
        self.cursor.expect(":+")
        return interval, self.cursor.integer("a padding")

    def _read_fields(self, depth: int, closing: str) -> dict[str, Any]:
        cursor, fields = self.cursor, dict[str, Any]()

        def read_field() -> None:
            key = cursor.take(_NAME, "a field")
            if key in fields:
                cursor.fail(f"every field once, {key!r} was given before")
            cursor.expect("=")
            fields[key] = self._read_value(depth + 1)

        cursor.items(closing, read_field, MAX_VALUES)
        return fields

    def _read_value(self, depth: int, is_python: bool = False) -> Any:
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} nested brackets")
        for opening, closing in (("[", "]"), ("(", ")"))[: 1 + is_python]:
            if cursor.accept(opening):
                return cursor.items(closing, lambda: self._read_value(depth + 1, is_python), MAX_VALUES, is_python)
        if cursor.accept("{"):
            return self._read_fields(depth, "}")
        if cursor.peek("#") or (is_python and _CONSTRUCTOR.match(cursor.text, cursor.skip_space())):
            return self.read_encoding(depth)
        if number := cursor.match(_SIGNED):
            return int(number[0])
        start, word = cursor.skip_space(), cursor.take(_NAME, "a value")
        if is_python and word in self.aliases:
            return self._replace_alias(word, depth)
        if is_python and word not in _WORDS:
            cursor.at = start
            cursor.fail("a number, or a layout that a line above defines,")
        return _WORDS.get(word, word)


_MEMORY_TYPES = ("!ttg.memdesc", "!triton_gpu.memdesc", "!tt.memdesc", "memdesc")
_TENSOR_MEMORY = ("tensor_memory_encoding", "tensor_memory_scales_encoding")
_WORDS = {"true": True, "false": False, "True": True, "False": False, "None": None}


def _table(text: str) -> dict[str, list[str]]:
    """Return the words of each line, by its first word."""
    return {name: words for name, *words in map(str.split, text.strip().splitlines())}


# Gluon's constructors: the encoding that each makes, and its parameters in order. Fields of TTGIR that are not spelled
# like their parameter, but for case and underscores, stand behind it; two of them share a list.
_CONSTRUCTORS = {
    name: (kind, {word.partition("=")[0]: word.rpartition("=")[2] for word in words})
    for name, (kind, *words) in _table("""
        BlockedLayout blocked size_per_thread threads_per_warp warps_per_cta order cga_layout
        SliceLayout slice dim parent
        DotOperandLayout dot_op operand_index=opIdx parent k_width
        DistributedLinearLayout linear reg_bases=register lane_bases=lane warp_bases=warp block_bases=block shape
        NVMMADistributedLayout nvidia_mma version=versionMajor/versionMinor warps_per_cta instr_shape cga_layout
        AMDMFMALayout amd_mfma version instr_shape transposed=isTransposed warps_per_cta element_bitwidth \
            tiles_per_warp cga_layout
        AMDWMMALayout amd_wmma version transposed=isTransposed warp_bases=warp reg_bases=register instr_shape \
            cga_layout rank
        NVMMASharedLayout nvmma_shared swizzle_byte_width=swizzlingByteWidth element_bitwidth rank transposed \
            fp4_padded cga_layout
        SwizzledSharedLayout swizzled_shared vec per_phase max_phase order cga_layout
        PaddedSharedLayout padded_shared interval_padding_pairs offset_bases=offset cga_layout shape
        PaddedSharedLayout.with_identity_for padded_shared interval_padding_pairs shape order cga_layout
        SharedLinearLayout shared_linear offset_bases=offset block_bases=block alignment
        TensorMemoryLayout tensor_memory_encoding block=blockM/blockN col_stride cga_layout two_ctas fp4_padded
        TensorMemoryScalesLayout tensor_memory_scales_encoding cga_layout
    """).items()
}
_OLDER_PARAMETERS = ("ctas_per_cga", "cta_split_num", "cta_order", "unpacked")
_CHOSEN = ("AutoLayout", "CoalescedLayout")  # by the compiler
_LEFT_OUT: tuple[tuple[str, object], ...] = (("CGALayout", []), ("kWidth", 0))  # of TTGIR


def _as_encoding(kind: str, arguments: Mapping[str, Any]) -> TritonEncoding:
    """Return the encoding that a constructor makes of its arguments, which differ a little from the fields of TTGIR."""
    spelled = {name.lower(): name for name in _FIELDS[kind]}
    fields = dict[str, Any]()
    for parameter, value in arguments.items():
        names = parameter.replace("_", "").split("/")
        values = [value] if len(names) == 1 or value is None else _row(kind, parameter, value, len(names))
        fields |= {spelled.get(name.lower(), parameter): part for name, part in zip(names, values, strict=False)}
    fields = {name: value for name, value in fields.items() if value is not None and (name, value) not in _LEFT_OUT}
    own_shape, pairs = fields.get("shape"), fields.pop("interval_padding_pairs", [])
    after = {name: fields.pop(name) for name in ("alignment",) if name in fields}
    if kind == "amd_wmma":
        fields.pop("rank", None)
        fields["ctaLayout"] = {name: fields.pop(name) for name in ("register", "warp") if name in fields}
    if "order" not in fields:
        fields.pop("shape", None)
    if not isinstance(pairs, list):
        raise FileFormatError(f"interval_padding_pairs are pairs of integers, got {pairs}")
    padding = tuple([_row(kind, "interval_padding_pairs", pair, 2) for pair in pairs])
    extents = None if own_shape is None else _row(kind, "shape", own_shape)
    return TritonEncoding(kind, fields, after, padding, extents)


def _row(kind: str, name: str, value: object, count: int | None = None) -> Any:
    if not _is_row(value, count, 0):
        raise FileFormatError(f"{name} of a layout for #ttg.{kind} must be {count or 'some'} integers, got {value}")
    return tuple(value)


def _format_fields(fields: Mapping[str, Any]) -> str:
    return "{" + ", ".join([f"{name} = {_format_value(value)}" for name, value in fields.items()]) + "}"


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_value, value))}]"
    return _format_fields(value) if isinstance(value, Mapping) else str(value)


# The checks of the fields of Triton's encodings, before anything is computed from them.


def validate_fields(encoding: TritonEncoding) -> None:
    """Raise if a field of an `encoding`, or of one within it, is unknown, or not of the type that its name requires.

    >>> validate_fields(TritonEncoding("swizzled_shared", {"vec": 8}))
    >>> try:
    ...     validate_fields(TritonEncoding("swizzled_shared", {"vec": [8]}))
    ... except LayoutError as problem:
    ...     print(problem)
    vec of #ttg.swizzled_shared must be an integer of at least 1, got [8]
    """
    fields = _FIELDS.get(encoding.name)
    for name, value in [*encoding.fields.items(), *encoding.after.items()]:
        if isinstance(value, TritonEncoding):
            validate_fields(value)
        if fields is not None and name not in fields:
            raise LayoutError(
                f"#ttg.{encoding.name} has a field {name!r}, which may move elements and is not known; known are"
                f" {', '.join(fields)}"
            )
        expected, is_valid = _KINDS.get(name, _ANYTHING)
        if not is_valid(value):
            raise LayoutError(f"{name} of #ttg.{encoding.name} must be {expected}, got {value}")
    instruction = encoding.fields.get("instrShape", [16, 16])[:2]
    if encoding.name == "amd_mfma" and not set(instruction) <= {4, 16, 32, 64}:
        raise LayoutError(f"instrShape of #ttg.amd_mfma begins with two of 4, 16, 32 and 64, got {instruction}")


def _is_row(value: object, count: int | None = None, least: int | None = None) -> TypeGuard[list[int]]:
    """Return whether a value is a list of `count` integers, none of them below the `least`; bools do not count."""
    integers = value if isinstance(value, list) and count in (None, len(value)) else [None]
    return all(type(number) is int and (least is None or number >= least) for number in integers)


def _are_rows(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_row, value))


_Kind = tuple[str, Callable[[Any], bool]]
_ANYTHING: _Kind = ("", lambda value: True)
_INTEGER: _Kind = ("an integer", lambda value: _is_row([value]))
_POSITIVE: _Kind = ("an integer of at least 1", lambda value: _is_row([value], least=1))
_BOOLEAN: _Kind = ("true or false", lambda value: isinstance(value, bool))
_ROWS: _Kind = ("a list of lists of integers", _are_rows)
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(("vec", "perPhase", "maxPhase", "kWidth", "blockM", "blockN", "colStride"), _POSITIVE),
    **dict.fromkeys(("CTASplitM", "CTASplitN"), _POSITIVE),
    **dict.fromkeys(("opIdx", "dim", "version", "versionMajor", "versionMinor"), _INTEGER),
    **dict.fromkeys(("transposed", "isTransposed", "isTranspose", "fp4Padded", "twoCTAs", "unpacked"), _BOOLEAN),
    **dict.fromkeys(("register", "lane", "warp", "block", "offset", "CGALayout"), _ROWS),
    "swizzlingByteWidth": ("0, 32, 64 or 128", lambda value: _is_row([value]) and value in (0, 32, 64, 128)),
    "elementBitWidth": ("4, 8, 16, 32 or 64", lambda value: _is_row([value]) and value in (4, 8, 16, 32, 64)),
    "instrShape": (
        "a list of two or three integers of at least 1",
        lambda value: _is_row(value, 2, 1) or _is_row(value, 3, 1),
    ),
    "ctaLayout": (
        "fields with lists of lists of integers",
        lambda value: isinstance(value, dict) and all(map(_are_rows, value.values())),
    ),
}

# The fields that each encoding has had, in the versions of Triton since 3.0.
_BLOCKS = "CTAsPerCGA CTASplitNum CTAOrder CGALayout"
_FIELDS = _table(f"""
    blocked sizePerThread threadsPerWarp warpsPerCTA order {_BLOCKS}
    linear register lane warp block
    nvidia_mma versionMajor versionMinor warpsPerCTA instrShape {_BLOCKS}
    amd_mfma version versionMajor versionMinor warpsPerCTA tilesPerWarp instrShape isTransposed \
            elementBitWidth {_BLOCKS}
    amd_wmma version isTranspose isTransposed ctaLayout instrShape {_BLOCKS}
    dot_op opIdx parent kWidth
    slice dim parent
    swizzled_shared vec perPhase maxPhase order {_BLOCKS}
    nvmma_shared swizzlingByteWidth transposed elementBitWidth fp4Padded rank {_BLOCKS}
    shared_linear offset block alignment
    padded_shared order shape offset block {_BLOCKS}
    tensor_memory_encoding blockM blockN colStride unpacked twoCTAs fp4Padded CTASplitM CTASplitN CGALayout
    tensor_memory_scales_encoding CTASplitM CTASplitN blockRepOrder CGALayout
""")


Basis: TypeAlias = "tuple[int, ...]"
Shape: TypeAlias = "tuple[int, ...]"
DISTRIBUTED = ("register", "lane", "warp", "block")


def linear_of_encoding(encoding: TritonEncoding, shape: Sequence[int], bits: int | None = None) -> Linear:
    """Return the meaning of an encoding for a tensor of a `shape`: a map to its dimensions `dim0`, `dim1`, ...

    Its inputs are `register`, `lane`, `warp` and `block`, or for memory `offset` and `block`. `bits` is the width of
    an element, if it is known. A padded encoding is not linear: its map leaves the padding out.

    >>> from tilewright.notation import parse_encoding
    >>> swizzled = parse_encoding("#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 2, order = [1, 0]}>")
    >>> linear_of_encoding(swizzled, (2, 4)).bases
    {'offset': [(0, 1), (0, 2), (1, 2)], 'block': []}
    """
    extents = tuple(shape)
    if any(extent < 1 or extent & (extent - 1) for extent in extents):
        raise LayoutError(f"Triton's layouts have extents that are powers of two, got {extents}")
    rule = _RULES.get(encoding.name)
    if rule is None:
        raise LayoutError(f"{encoding.name!r} is not a known encoding; expected one of {', '.join(_RULES)}")
    validate_fields(encoding)
    if encoding.name in _TENSOR_MEMORY and len(extents) != 2:
        raise LayoutError(f"tensor memory holds matrices, got {extents}; leave out the buffers that they are in")
    try:
        bases = rule(_Encoded(encoding, extents, bits, extents))
    except KeyError as missing:
        raise LayoutError(f"#ttg.{encoding.name} has no field {missing.args[0]!r}") from None
    return Linear(bases, {f"dim{k}": extent for k, extent in enumerate(extents)})


def memory_layout_of_encoding(encoding: TritonEncoding, shape: Sequence[int]) -> LayoutLike:
    """Return where an encoding of shared memory puts the elements of a tensor of a `shape`: coordinates to offsets.

    >>> from tilewright.notation import parse_encoding
    >>> padded = parse_encoding("#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [16, 64]}>")
    >>> memory_layout_of_encoding(padded, (16, 64))(2, 17)
    161
    """
    linear = linear_of_encoding(encoding, shape)
    if "offset" not in linear.inputs or linear.inputs.get("block", 1) != 1:
        raise LayoutError(f"#ttg.{encoding.name} is not an encoding of the shared memory of one block")
    inverse = linear.inverse()
    offsets = Linear(
        {name: [image[0] for image in images] for name, images in inverse.bases.items()},
        {"offset": linear.inputs["offset"]},
    )
    layout = offsets.to_layout()
    return compose(_padding_layout(encoding.padding, linear.inputs["offset"]), layout) if encoding.padding else layout


def _padding_layout(pairs: Sequence[tuple[int, int]], size: int) -> Layout:
    """Return the layout that adds, after every interval, its padding."""
    cuts = sorted({1, *[interval for interval, _ in pairs if interval < size]})
    if any(high % low for low, high in pairwise(cuts)):
        raise LayoutError(f"the intervals of padding must divide each other, got {[interval for interval, _ in pairs]}")
    extents = [high // low for low, high in pairwise([*cuts, size])]
    strides = [cut + sum(cut // interval * extra for interval, extra in pairs if interval <= cut) for cut in cuts]
    return Layout(tuple(extents), tuple(strides))


@dataclass(frozen=True)
class _Encoded:
    """An encoding of a tensor."""

    encoding: TritonEncoding
    shape: Shape  # of the part of one block
    bits: int | None
    whole: Shape  # of the tensor

    @property
    def rank(self) -> int:
        return len(self.shape)

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return a list field with one integer per dimension."""
        value = self.encoding.fields[name] if default is None else self.encoding.fields.get(name, list(default))
        if not _is_row(value, self.rank):
            raise LayoutError(
                f"{name} of #ttg.{self.encoding.name} needs {self.rank} integers for shape {self.shape}, got {value}"
            )
        return value

    def order(self, name: str = "order") -> list[int]:
        order = self.integers(name)
        if sorted(order) != list(range(self.rank)):
            raise LayoutError(f"{name} of #ttg.{self.encoding.name} must name each dimension once, got {order}")
        return order

    @property
    def matrix(self) -> tuple[int, int]:
        """The two dimensions of a matrix: its rows and its columns."""
        if self.rank < 2:
            raise LayoutError(f"#ttg.{self.encoding.name} is for matrices, shape {self.shape} has one dimension")
        return self.rank - 2, self.rank - 1

    def operand(self, number: int) -> tuple[int, int]:
        """Return the dimension of an operand that is summed over, and the other one."""
        rows, columns = self.matrix
        return (rows, columns) if number else (columns, rows)

    @property
    def leading(self) -> list[int]:
        """The dimensions before the dimensions of a matrix, the last first."""
        return list(reversed(range(self.rank - 2)))

    def unit(self, dimension: int, step: int = 1) -> Basis:
        return tuple([step if k == dimension else 0 for k in range(self.rank)])

    def units(self, dimension: int, count: int, first: int = 1) -> list[Basis]:
        """Return the bases of `count` steps along a dimension: first, 2 * first, ..."""
        return [self.unit(dimension, first << k) for k in range(log2(count, self.encoding.name))]

    def clip(self, basis: Sequence[int]) -> Basis:
        return tuple([part if part < extent else 0 for part, extent in zip(basis, self.shape, strict=True)])


def log2(count: int, name: str) -> int:
    """Return the binary logarithm of a power of two.

    >>> log2(8, "blocked")
    3
    """
    if count < 1 or count & (count - 1):
        raise LayoutError(f"#ttg.{name} needs powers of two, got {count}")
    return count.bit_length() - 1


class _Bases:
    """Bases that grow: each step along a dimension begins where those before it end."""

    def __init__(self, encoded: _Encoded, register: Sequence[Basis] = (), lane: Sequence[Basis] = ()) -> None:
        self.encoded = encoded
        self.images: dict[str, list[Basis]] = {"register": [], "lane": [], "warp": []}
        self.covered = [1] * encoded.rank
        self.append("register", register)
        self.append("lane", lane)

    def append(self, name: str, images: Sequence[Basis]) -> None:
        """Add bases as they are."""
        self.images[name] += images
        for basis in images:
            self.covered = [max(extent, 2 * part) for extent, part in zip(self.covered, basis, strict=True)]

    def step(self, name: str, dimension: int, count: int, shared: bool = False) -> None:
        """Add `count` steps along a dimension; `shared` ones hold the same elements, and step nowhere."""
        for _ in range(log2(count, self.encoded.encoding.name)):
            self.append(name, [self.encoded.unit(dimension, 0 if shared else self.covered[dimension])])

    def cover(self, dimension: int, extent: int) -> None:
        """Add registers until an extent of a dimension is covered."""
        if self.covered[dimension] < extent:
            self.step("register", dimension, extent // self.covered[dimension])

    def finish(self, order: Sequence[int], drop_idle: bool = False) -> dict[str, list[Basis]]:
        """Cover the shape, dimensions in order; what reaches its extent starts at 0, or is dropped from registers."""
        for k in order:
            self.cover(k, self.encoded.shape[k])
        clipped = {name: [self.encoded.clip(basis) for basis in images] for name, images in self.images.items()}
        if drop_idle:
            clipped["register"] = [basis for basis in clipped["register"] if any(basis)]
        return clipped | {"block": []}


def _with_blocks(rule: Callable[[_Encoded], dict[str, list[Basis]]]) -> Callable[[_Encoded], dict[str, list[Basis]]]:
    """Return a rule that first divides the tensor over the blocks of a cluster."""
    return lambda encoded: _divide_blocks(encoded, _block_bases(encoded), rule)


def _divide_blocks(
    encoded: _Encoded, blocks: Sequence[Basis], rule: Callable[[_Encoded], dict[str, list[Basis]]]
) -> dict[str, list[Basis]]:
    counts = [1] * encoded.rank
    for basis in blocks:
        counts = [max(count, 2 * part) for count, part in zip(counts, basis, strict=True)]
    part_shape = tuple([max(1, extent // count) for extent, count in zip(encoded.shape, counts, strict=True)])
    bases = rule(replace(encoded, shape=part_shape))
    bases["block"] = [
        encoded.clip([part * extent for part, extent in zip(basis, part_shape, strict=True)]) for basis in blocks
    ]
    return bases


def _block_bases(encoded: _Encoded) -> list[Basis]:
    """Return the bases of the blocks of a cluster, in blocks: `CGALayout`, or the three lists of older versions."""
    fields = encoded.encoding.fields
    if "CGALayout" in fields:
        return [_as_basis(encoded, row) for row in fields["CGALayout"]]
    if "CTAsPerCGA" not in fields:
        return []
    per_cluster, split = encoded.integers("CTAsPerCGA"), encoded.integers("CTASplitNum", encoded.integers("CTAsPerCGA"))
    bases: list[Basis] = []
    for k in encoded.order("CTAOrder") if "CTAOrder" in fields else reversed(range(encoded.rank)):
        strides = [1 << bit for bit in range(log2(per_cluster[k], encoded.encoding.name))]
        bases += [encoded.unit(k, stride if stride < split[k] else 0) for stride in strides]
    return bases


def _as_basis(encoded: _Encoded, row: object) -> Basis:
    if not _is_row(row, encoded.rank, 0):
        raise LayoutError(
            f"a basis of #ttg.{encoded.encoding.name} has one integer per dimension of {encoded.shape}, got {row}"
        )
    return tuple(row)


# Registers.


def _blocked(encoded: _Encoded, shared: int | None = None) -> dict[str, list[Basis]]:
    """Return the bases of a blocked encoding; every thread holds the dimension `shared` whole."""
    order, warps = encoded.order(), encoded.integers("warpsPerCTA")
    sizes, threads = encoded.integers("sizePerThread"), encoded.integers("threadsPerWarp")
    bases = _Bases(encoded)
    for k in order:
        bases.step("register", k, encoded.shape[k] if k == shared else sizes[k])
    for name, counts in (("lane", threads), ("warp", warps)):
        for k in order:
            bases.step(name, k, counts[k], shared=k == shared)
    return bases.finish(order, drop_idle=shared is None)


def _listed(encoded: _Encoded) -> dict[str, list[Basis]]:
    names = DISTRIBUTED if "register" in encoded.encoding.fields else ("offset", "block")
    fields = encoded.encoding.fields
    return {name: [_as_basis(encoded, row) for row in fields.get(name, [])] for name in names}


def _nvidia_mma(encoded: _Encoded) -> dict[str, list[Basis]]:
    fields, (m, n), leading = encoded.encoding.fields, encoded.matrix, encoded.leading
    unit, warps = encoded.unit, encoded.integers("warpsPerCTA")
    is_hopper = fields["versionMajor"] == 3
    bases = _Bases(encoded, [unit(n), unit(m, 8)], [*encoded.units(n, 4, 2), *encoded.units(m, 8)])
    bases.cover(n, fields["instrShape"][-2 if is_hopper else -1])
    for k in [m, n, *leading] if is_hopper else [n, m, *leading]:
        bases.step("warp", k, warps[k])
    return bases.finish([n, m, *leading])


def _amd_mfma(encoded: _Encoded) -> dict[str, list[Basis]]:
    fields, (m, n) = encoded.encoding.fields, encoded.matrix
    rows, columns = fields["instrShape"][:2]
    down, across = (n, m) if fields.get("isTransposed", False) else (m, n)
    if down == n:
        rows, columns = columns, rows
    groups = 64 // columns  # of lanes that hold different rows
    run = 1 if fields.get("elementBitWidth", 32) == 64 else min(4, rows)  # rows that a lane holds in a row
    bases = _Bases(
        encoded,
        [*encoded.units(down, run), *encoded.units(down, max(1, rows // (run * groups)), run * groups)],
        [*encoded.units(across, columns), *encoded.units(down, groups, run)],
    )
    tiles, warps = encoded.integers("tilesPerWarp", [1] * encoded.rank), encoded.integers("warpsPerCTA")
    bases.step("register", n, tiles[n])
    bases.step("warp", n, warps[n])
    bases.cover(n, encoded.whole[n])  # before the tiles of a warp go on to further rows
    bases.step("register", m, tiles[m])
    bases.step("warp", m, warps[m])
    for k in encoded.leading:
        bases.step("warp", k, warps[k])
    return bases.finish([n, m, *encoded.leading])


def _amd_wmma(encoded: _Encoded) -> dict[str, list[Basis]]:
    fields, (m, n) = encoded.encoding.fields, encoded.matrix
    down, across = (n, m) if fields.get("isTranspose", fields.get("isTransposed", False)) else (m, n)
    step, half = (2, 1) if fields["version"] == 1 else (1, 8)
    bases = _Bases(encoded, encoded.units(down, 8, step), [*encoded.units(across, 16), encoded.unit(down, half)])
    _append_wmma_tiles(bases, fields, None)
    return bases.finish([n, m, *encoded.leading])


def _append_wmma_tiles(bases: _Bases, fields: Mapping[str, Any], shared: int | None) -> None:
    """Add the registers and warps that an encoding lists in tiles of 16 x 16; those along `shared` hold the same."""
    layout = fields.get("ctaLayout", {})
    for name in ("register", "warp"):
        rows = [_as_basis(bases.encoded, row) for row in layout.get(name, [])]
        tiles = [tuple([0 if k == shared else part * 16 for k, part in enumerate(row)]) for row in rows]
        if name == "register":
            tiles = [tile for tile in tiles if any(tile)]
        bases.append(name, tiles)


def _dot_operand(encoded: _Encoded) -> dict[str, list[Basis]]:
    """Return the bases of an operand: as its result's, but whole along the dimension that is summed over."""
    parent, operand = encoded.encoding.fields["parent"], encoded.encoding.fields["opIdx"]
    if not isinstance(parent, TritonEncoding) or operand not in (0, 1):
        raise LayoutError("#ttg.dot_op needs opIdx = 0 or 1, and the encoding of its result as parent")
    inner, _ = encoded.operand(operand)
    of_parent = _Encoded(parent, encoded.shape, encoded.bits, encoded.whole)
    blocks = _block_bases(of_parent)
    if parent.name != "amd_mfma":
        blocks = [tuple([0 if k == inner else part for k, part in enumerate(basis)]) for basis in blocks]

    def operand_bases(part: _Encoded) -> dict[str, list[Basis]]:
        if parent.name == "blocked":
            return _blocked(part, shared=inner)
        rule = _OPERANDS.get(parent.name)
        if rule is None:
            raise LayoutError(f"#ttg.dot_op of #ttg.{parent.name} has no known meaning")
        return rule(part, encoded.encoding.fields.get("kWidth", 1), operand)

    return _divide_blocks(of_parent, blocks, operand_bases)


def _nvidia_operand(encoded: _Encoded, width: int, operand: int) -> dict[str, list[Basis]]:
    (m, n), leading, (inner, outer) = encoded.matrix, encoded.leading, encoded.operand(operand)
    rows = [encoded.unit(outer, 8)] if operand == 0 else []
    bases = _Bases(
        encoded,
        [*encoded.units(inner, width), *rows, encoded.unit(inner, 4 * width)],
        [*encoded.units(inner, 4, width), *encoded.units(outer, 8)],
    )
    is_hopper = encoded.encoding.fields["versionMajor"] == 3
    warps = encoded.integers("warpsPerCTA")
    for k in [m, n, *leading] if is_hopper else [n, m, *leading]:
        bases.step("warp", k, warps[k], shared=k == inner)
    return bases.finish([inner, outer, *leading])


def _mfma_operand(encoded: _Encoded, width: int, operand: int) -> dict[str, list[Basis]]:
    (m, n), leading, (inner, outer) = encoded.matrix, encoded.leading, encoded.operand(operand)
    instruction = encoded.encoding.fields["instrShape"]
    extent = instruction[operand]
    bases = _Bases(
        encoded,
        encoded.units(inner, width),
        [*encoded.units(outer, extent), *encoded.units(inner, 64 // extent, width)],
    )
    bases.cover(inner, width * 64 // min(instruction[:2]))
    tiles, warps = encoded.integers("tilesPerWarp", [1] * encoded.rank), encoded.integers("warpsPerCTA")
    bases.cover(inner, encoded.whole[inner])
    bases.step("register", outer, tiles[outer])
    for k in [n, m, *leading]:
        bases.step("warp", k, warps[k], shared=k == inner)
    return bases.finish([inner, outer, *leading])


def _wmma_operand(encoded: _Encoded, width: int, operand: int) -> dict[str, list[Basis]]:
    fields, (inner, outer) = encoded.encoding.fields, encoded.operand(operand)
    both_halves_alike = fields["version"] == 1
    half = encoded.unit(inner, 0 if both_halves_alike else width)
    bases = _Bases(encoded, encoded.units(inner, width), [*encoded.units(outer, 16), half])
    bases.cover(inner, fields.get("instrShape", [16, 16, 16])[-1] // (2 if both_halves_alike else 1))
    _append_wmma_tiles(bases, fields, inner)
    return bases.finish([inner, outer, *encoded.leading])


_OPERANDS = {"nvidia_mma": _nvidia_operand, "amd_mfma": _mfma_operand, "amd_wmma": _wmma_operand}


def _slice(encoded: _Encoded) -> dict[str, list[Basis]]:
    parent, dimension = encoded.encoding.fields["parent"], encoded.encoding.fields["dim"]
    if not isinstance(parent, TritonEncoding) or not 0 <= dimension <= encoded.rank:
        raise LayoutError("#ttg.slice needs an encoding as parent, and dim as one of its dimensions")
    shape = (*encoded.shape[:dimension], 1, *encoded.shape[dimension:])
    bases = linear_of_encoding(parent, shape, encoded.bits).bases
    sliced = {
        name: [(*image[:dimension], *image[dimension + 1 :]) for image in images] for name, images in bases.items()
    }
    sliced["register"] = [image for image in sliced["register"] if any(image)]
    return sliced


# Shared memory.


def _swizzled(encoded: _Encoded) -> dict[str, list[Basis]]:
    """Return the bases of offsets: a row after the other, its columns XORed with a phase that depends on the row."""
    fastest, *others = encoded.order()
    vector, per_phase, phases = [encoded.encoding.fields[name] for name in ("vec", "perPhase", "maxPhase")]
    for number in (vector, per_phase, phases):
        log2(number, encoded.encoding.name)
    offset = encoded.units(fastest, encoded.shape[fastest])
    for k in others:
        for row in encoded.units(k, encoded.shape[k]):
            phase = row[k] // per_phase % phases if k == others[0] else 0
            column = vector * phase % encoded.shape[fastest]
            offset.append(tuple([column if axis == fastest else part for axis, part in enumerate(row)]))
    return {"offset": offset, "block": []}


def _nvmma_shared(encoded: _Encoded) -> dict[str, list[Basis]]:
    fields, (_, last) = encoded.encoding.fields, encoded.matrix
    width, bits = fields["swizzlingByteWidth"], fields["elementBitWidth"]
    is_transposed, is_padded = fields.get("transposed", False), fields.get("fp4Padded", False)
    contiguous = 0 if is_transposed else last
    box = [min(extent, 256) for extent in encoded.shape]  # what one bulk copy brings
    bases = _Bases(encoded)
    if width:
        columns = 8 * width // bits  # of a tile of 8 rows, as it lies in memory
        box[contiguous] = columns // 2 if is_padded else columns
        rest = [extent for k, extent in enumerate(box) if k != contiguous]
        if encoded.shape[contiguous] < box[contiguous] or rest[-1 if is_transposed else 0] * prod(rest[1:]) < 8:
            raise LayoutError(
                f"#ttg.nvmma_shared of {width} bytes needs tiles of 8 x {box[contiguous]}, {encoded.shape} is smaller"
            )
        bases.append("register", _core_matrices(encoded, box, width, bits, is_transposed, is_padded))
    elif is_transposed and encoded.rank > 2:
        raise LayoutError("#ttg.nvmma_shared without swizzling has no transposed form of more than two dimensions")
    else:
        for k in range(encoded.rank) if is_transposed else range(last, -1, -1):
            bases.step("register", k, box[k])
    bases.covered = box
    order = range(encoded.rank) if width else range(last, -1, -1)
    offset = bases.finish(order)["register"]
    return {"offset": offset, "block": []}


def _core_matrices(
    encoded: _Encoded, box: Sequence[int], width: int, bits: int, is_transposed: bool, is_padded: bool
) -> list[Basis]:
    """Return the bases of a box that consists of matrices of 8 rows, whose columns are XORed with the row."""
    rows, columns = (box[-1], prod(box[:-1])) if is_transposed else (prod(box[:-1]), box[-1])
    data_columns = box[0] if is_transposed else columns
    vector, per_phase, phases = 128 // bits, 128 // width, width // 16
    indices: list[int] = []  # as indices into the box, a row after the other
    for index in [1 << k for k in range(log2(2 * data_columns if is_padded else data_columns, "nvmma_shared"))]:
        if is_padded:  # 8 bytes of data are followed by 8 bytes of padding
            indices.append(index if index < 8 else 0 if index == 8 else index // 2)
        else:
            indices.append(index)
    for row in (1, 2, 4):
        phase = vector * ((row // per_phase) % phases)
        indices.append(row * columns + (phase // 2 if is_padded else phase))
    indices += [columns << k for k in range(3, log2(rows, "nvmma_shared"))]
    indices += [data_columns << k for k in range(log2(columns // data_columns, "nvmma_shared"))]
    order = [0, *range(encoded.rank - 1, 0, -1)] if is_transposed else range(encoded.rank - 1, -1, -1)
    images = []
    for index in indices:
        image = [0] * encoded.rank
        for k in order:
            index, image[k] = divmod(index, box[k])
        images.append(tuple(image))
    return images


def _tensor_memory(encoded: _Encoded) -> dict[str, list[Basis]]:
    """Return the bases of the rows and columns of tensor memory, in elements; zeros are places without one."""
    fields, unit = encoded.encoding.fields, encoded.unit
    if {fields.get("CTASplitM", 1), fields.get("CTASplitN", 1)} != {1}:
        raise LayoutError("how CTASplitM and CTASplitN order their blocks is not known; newer versions state CGALayout")
    rows, columns = encoded.shape
    high, wide = fields["blockM"], min(fields["blockN"], columns)
    is_pair = fields.get("twoCTAs", False)
    if is_pair and fields.get("CGALayout", [])[:1] != [[1, 0]]:
        raise LayoutError(
            "twoCTAs of #ttng.tensor_memory_encoding needs CGALayout to begin with [1, 0], for their rows"
        )
    if high not in (64, 128) or rows < high:
        raise LayoutError(f"tensor memory holds blocks of 64 or 128 rows of a matrix, got {high} of {encoded.shape}")
    row, column = encoded.units(0, high), encoded.units(1, wide)
    if high == 64 and not is_pair:  # 16 rows in each quarter
        second = unit(0, 64) if rows > 64 else unit(1, wide) if columns > wide else unit(0, 0)
        row = [*row[:4], second, *row[4:]]
    if high == 64 and is_pair and column:
        row.append(column.pop())
    stride = 1 if "unpacked" in fields else fields["colStride"]  # older versions count columns of one element each
    idle = log2(stride, "tensor_memory_encoding") + bool(fields.get("fp4Padded", False))
    bases = _Bases(encoded, column, row).finish((0, 1))
    return {"row": bases["lane"], "col": [unit(0, 0)] * idle + bases["register"], "block": []}


def _tensor_memory_scales(encoded: _Encoded) -> dict[str, list[Basis]]:
    """Return the bases of scales in tensor memory: 32 rows, which all four warps have."""
    copies = [encoded.unit(0, 0)] * 2
    bases = _Bases(encoded, [*encoded.units(1, 4), encoded.unit(0, 32)], [*encoded.units(0, 32), *copies])
    bases.cover(0, min(128, encoded.shape[0]))
    is_row_first = encoded.encoding.fields.get("blockRepOrder", "mnThenK") == "mnThenK"
    images = bases.finish((0, 1) if is_row_first else (1, 0))
    return {"row": images["lane"], "col": images["register"], "block": []}


def _padded(encoded: _Encoded) -> dict[str, list[Basis]]:
    if "offset" in encoded.encoding.fields:
        return _listed(encoded)
    order = encoded.order()
    return {"offset": [basis for k in order for basis in encoded.units(k, encoded.shape[k])], "block": []}


_RULES: dict[str, Callable[[_Encoded], dict[str, list[Basis]]]] = {
    "blocked": _with_blocks(_blocked),
    "linear": _listed,
    "nvidia_mma": _with_blocks(_nvidia_mma),
    "amd_mfma": _with_blocks(_amd_mfma),
    "amd_wmma": _with_blocks(_amd_wmma),
    "dot_op": _dot_operand,
    "slice": _slice,
    "swizzled_shared": _with_blocks(_swizzled),
    "nvmma_shared": _with_blocks(_nvmma_shared),
    "shared_linear": _listed,
    "padded_shared": _padded,
    "tensor_memory_encoding": _with_blocks(_tensor_memory),
    "tensor_memory_scales_encoding": _with_blocks(_tensor_memory_scales),
}
