# SPDX-License-Identifier: Apache-2.0
"""Types of MLIR as tt-mlir uses them: tensors with an encoding, and memrefs of scalars or tiles; and aliases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .._text import MAX_RANK, TextCursor
from ..errors import FileFormatError
from ..formats import Format, FormatLike, format_of

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
        raise FileFormatError(f"unknown element type {name[:40]!r}; known are {', '.join(_FORMATS)}")
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
        found = None if text is None else _LONE_ALIAS.fullmatch(text)
        if found is None:
            return text
        name = found[1]
    raise FileFormatError(f"alias #{name} stands for itself, or for more than {_MAX_STEPS} others")


def read_attribute(cursor: TextCursor, aliases: Aliases, read: Callable[[TextCursor, Aliases], _Value]) -> _Value:
    """Return what `read` makes of the attribute at a `cursor`, or of the text that an alias there stands for.

    >>> read_attribute(TextCursor("#n", "a number"), {"n": "7"}, lambda cursor, aliases: cursor.integer())
    7
    """
    start = cursor.skip_space()
    found = cursor.match(_ALIAS)
    if not found:
        return read(cursor, aliases)
    text = resolve_alias(found[1], aliases)
    if text is None:
        raise FileFormatError(f"{cursor.name}: alias #{found[1]} at character {start + 1} is not defined")
    inner = TextCursor(text, f"{cursor.name}, in #{found[1]}")
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
    found = cursor.match(_ALIAS)
    if found:
        text = resolve_alias(found[1], aliases)
        space = _space_of_name(found[1]) if text is None else _space_of_text(text)
    else:
        buffer = cursor.match(_BUFFER)
        space = buffer[1] if buffer else None
    if space not in SPACES:
        cursor.at = start
        cursor.fail("a memory such as #ttnn.buffer_type<dram>")
    return space


def _space_of_text(text: str) -> str | None:
    found = _BUFFER.fullmatch(text.strip())
    return found[1] if found else None


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
    if found := cursor.match(_TYPE_ALIAS):
        text = aliases.get(found[0])
        if text is None:
            raise FileFormatError(f"{cursor.name}: alias {found[0]} at character {start + 1} is not defined")
        cursor = TextCursor(text, f"{cursor.name}, in {found[0]}")
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
    """What each core, or each bank, holds: a block of `shape`, of tiles or of scalars, in a memory.

    >>> memref = read_memref(TextCursor("memref<1x4x!ttcore.tile<32x32, bf16>, #dram>", "a memref"), {})
    >>> memref.shape, memref.tile, memref.dtype, memref.space
    ((1, 4), (32, 32), 'bf16', 'dram')
    """

    shape: tuple[int, ...]
    tile: tuple[int, int] | None
    dtype: str
    space: str
    extra: tuple[str, ...] = ()  # what is between the element type and the memory

    def __str__(self) -> str:
        extents = "".join([f"{n}x" for n in self.shape])
        space = f"#ttnn.buffer_type<{self.space}>"
        return f"memref<{', '.join([extents + _element_text(self.tile, self.dtype), *self.extra, space])}>"


def read_memref(cursor: TextCursor, aliases: Aliases) -> Memref:
    """Return the memref at a `cursor`, its memory looked up in `aliases`.

    >>> read_memref(TextCursor("memref<32xf32, #l1>", "a memref"), {}).shape
    (32,)
    """
    cursor.expect("memref")
    cursor.expect("<")
    shape = cursor.extents()
    tile, dtype = _read_element(cursor, aliases)
    known = tuple([n for n in shape if n is not None])
    if len(known) < len(shape):
        raise FileFormatError(
            f"{cursor.name}: the memref before character {cursor.at + 1} has extents that are not known"
        )
    extra: list[str] = []
    cursor.expect(",")
    while not _BUFFER.match(cursor.text, cursor.skip_space()) and not cursor.peek("#"):
        if len(extra) == MAX_RANK:
            cursor.fail("a memory such as #ttnn.buffer_type<dram>")
        extra.append(cursor.raw())
        cursor.expect(",")
    space = read_space(cursor, aliases)
    cursor.expect(">")
    return Memref(known, tile, dtype, space, tuple(extra))


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
    """Return the tensor type of a `text`; `aliases` are those of its file, which its element type may be one of.

    >>> parse_tensor_type("tensor<f32>").shape, parse_tensor_type("tensor<?x8xi1>").shape
    ((), (None, 8))
    """
    cursor = TextCursor(text, "a tensor type")
    cursor.expect("tensor")
    cursor.expect("<")
    shape = cursor.extents()
    tile, dtype = _read_element(cursor, aliases or {})
    encoding = cursor.raw() if cursor.accept(",") else None
    cursor.expect(">")
    cursor.expect_end()
    return TensorType(shape, tile, dtype, encoding)
