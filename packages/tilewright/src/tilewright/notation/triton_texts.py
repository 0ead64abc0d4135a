# SPDX-License-Identifier: Apache-2.0
"""TTGIR and Gluon text: types with an encoding, such as `tensor<32x16xf16, #ttg.blocked<{...}>>`, in and out.

An encoding is read as it is written, whatever its name: its fields are integers, booleans, names, lists, other
encodings. What it means is in `triton_encodings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._text import TextCursor
from ..errors import FileFormatError

MAX_DEPTH = 16
MAX_VALUES = 1024  # of a list
_NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_ALIAS = re.compile(r"#([A-Za-z_]\w*)(?![\w.])", re.ASCII)
_DEFINITION = re.compile(r"^\s*#([A-Za-z_]\w*)\s*=\s*(#[^\n]*)$", re.MULTILINE | re.ASCII)
_SIGNED = re.compile(r"-?\d{1,19}(?!\d)", re.ASCII)
_SIZED_TYPE = re.compile(r"(?:[su]?i|bf|tf|f)(\d{1,3})(?:E\d+M\d+\w*)?", re.ASCII)


def element_bits(dtype: str) -> int | None:
    """Return the bits of an element of a `dtype`, which its name states; None for others, such as a pointer.

    >>> element_bits("bf16"), element_bits("i8"), element_bits("f8E8M0FNU"), element_bits("ptr")
    (16, 8, 8, None)
    """
    found = _SIZED_TYPE.fullmatch(dtype)
    return int(found[1]) if found else None


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

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        if not self.fields and not self.padding:
            return f"#ttg.{self.name}"
        pairs = "".join(
            [f"[{', '.join(f'{interval}:+{extra}' for interval, extra in self.padding)}] "] * bool(self.padding)
        )
        after = "".join([f", {name} = {_format_value(value)}" for name, value in self.after.items()])
        return f"#ttg.{self.name}<{pairs}{_format_fields(self.fields)}{after}>"


@dataclass(frozen=True)
class TritonType:
    """A type with an encoding: a tensor in registers, or a `memdesc` in memory.

    `rest` is what follows the encoding of a memdesc, such as its memory and whether it is mutable.

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

    @property
    def bits(self) -> int | None:
        """Return the bits of an element, if its type states them.

        >>> parse_triton_type("tensor<8xbf16, #ttg.blocked<{order = [0]}>>").bits
        16
        """
        return element_bits(self.dtype)

    def __str__(self) -> str:
        shape = "x".join(map(str, (*self.shape, self.dtype)))
        if not self.is_memory:
            return f"tensor<{shape}, {self.encoding}>"
        return f"!ttg.memdesc<{shape}, {self.encoding}{', ' if self.rest else ''}{self.rest}>"


def parse_triton_type(text: str, aliases: Mapping[str, str] | None = None) -> TritonType:
    """Return the type that a text describes; definitions of aliases, `#mma = ...`, may stand on lines above it.

    `aliases` are further definitions, by name without their mark.

    >>> parse_triton_type("#b = #ttg.blocked<{order = [0]}>\\ntensor<256xf16, #b>").encoding.name
    'blocked'
    """
    known: dict[str, str] = {}
    for name, value in [*_DEFINITION.findall(text), *(aliases or {}).items()]:
        if known.setdefault(name, value) != value:
            raise FileFormatError(f"a Triton type: #{name} is defined twice, with different values")
    reader = _TritonReader(_DEFINITION.sub("", text).strip(), "a Triton type", known)
    kind = reader.read_type()
    reader.cursor.expect_end()
    return kind


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

    def __init__(self, text: str, name: str, aliases: Mapping[str, str]) -> None:
        self.cursor = TextCursor(text, name)
        self.aliases = aliases

    def read_type(self) -> TritonType:
        cursor = self.cursor
        is_memory = cursor.accept("!ttg.memdesc") or cursor.accept("memdesc")
        if not is_memory and not cursor.accept("tensor"):  # people paste the encoding alone
            example = "tensor<32x16xf16, #ttg.blocked<{...}>>"
            cursor.fail(f"a type with a shape around the encoding, such as {example}, or a shape,")
        cursor.expect("<")
        extents = cursor.extents()
        shape = tuple([extent for extent in extents if extent])
        if not extents or shape != extents:
            cursor.fail("extents of at least 1, such as 32x16xf16")
        dtype = cursor.take(_NAME, "an element type")
        cursor.expect(",")
        encoding = self.read_encoding(0)
        rest = ""
        if is_memory and cursor.accept(","):
            start = cursor.skip_space()
            end = cursor.text.rfind(">")
            cursor.at = max(start, end)
            rest = cursor.text[start : cursor.at].strip()
        cursor.expect(">")
        return TritonType(shape, dtype, encoding, is_memory, rest)

    def read_encoding(self, depth: int) -> TritonEncoding:
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} encodings within each other")
        if alias := cursor.match(_ALIAS):
            if alias[1] not in self.aliases:
                raise FileFormatError(
                    f"{cursor.name}: #{alias[1]} is not defined; give its line '#{alias[1]} = #ttg...' too"
                )
            inner = _TritonReader(self.aliases[alias[1]], f"#{alias[1]}", self.aliases)
            encoding = inner.read_encoding(depth + 1)
            inner.cursor.expect_end()
            return encoding
        if not (cursor.accept("#ttg.") or cursor.accept("#triton_gpu.") or cursor.accept("#ttng.")):
            cursor.fail("an encoding, such as #ttg.blocked<{...}>")
        name = cursor.take(_NAME, "the name of an encoding")
        if not cursor.accept("<"):
            return TritonEncoding(name, {})
        padding = self._read_padding() if cursor.peek("[") else ()
        fields = self._read_fields(depth) if cursor.peek("{") else {}
        after: dict[str, Any] = {}
        while cursor.accept(","):
            key = cursor.take(_NAME, "a field")
            cursor.expect("=")
            after[key] = self._read_value(depth + 1)
        cursor.expect(">")
        return TritonEncoding(name, fields, after, padding)

    def _read_padding(self) -> tuple[tuple[int, int], ...]:
        cursor, pairs = self.cursor, []
        cursor.expect("[")
        while True:
            interval = cursor.integer("an interval")
            cursor.expect(":+")
            pairs.append((interval, cursor.integer("a padding")))
            if not cursor.accept(","):
                break
        cursor.expect("]")
        return tuple(pairs)

    def _read_fields(self, depth: int) -> dict[str, Any]:
        cursor, fields = self.cursor, dict[str, Any]()
        cursor.expect("{")
        if cursor.accept("}"):
            return fields
        while True:
            key = cursor.take(_NAME, "a field")
            if key in fields:
                cursor.fail(f"every field once, {key!r} was given before")
            cursor.expect("=")
            fields[key] = self._read_value(depth + 1)
            if not cursor.accept(","):
                break
        cursor.expect("}")
        return fields

    def _read_value(self, depth: int) -> Any:
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} brackets within each other")
        if cursor.accept("["):
            return cursor.items("]", lambda: self._read_value(depth + 1), MAX_VALUES)
        if cursor.peek("{"):
            return self._read_fields(depth)
        if cursor.peek("#"):
            return self.read_encoding(depth)
        if number := cursor.match(_SIGNED):
            return int(number[0])
        word = cursor.take(_NAME, "a value")
        return {"true": True, "false": False}.get(word, word)


def _format_fields(fields: Mapping[str, Any]) -> str:
    return "{" + ", ".join([f"{name} = {_format_value(value)}" for name, value in fields.items()]) + "}"


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_value, value))}]"
    return _format_fields(value) if isinstance(value, Mapping) else str(value)
