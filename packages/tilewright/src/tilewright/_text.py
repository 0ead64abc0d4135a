# SPDX-License-Identifier: Apache-2.0
"""Tables of names and figures as text, and counted nouns: one way for all reports."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from os.path import commonprefix
from typing import NoReturn, TypeVar

from .errors import FileFormatError

_ELISION = ".."
_MAX_PLAIN = 999999.5  # numbers from here on are written with an exponent
_MIN_NAME = 24  # columns of names, however narrow the terminal

NUMBER_IN_NAME = re.compile(r"(?<=\.)\d+(?=\.)")  # of a layer or an expert, in the name of a tensor


def count_of(number: int, noun: str) -> str:
    """Return a counted noun.

    >>> count_of(1, "tensor"), count_of(2, "tensor"), count_of(0, "file")
    ('1 tensor', '2 tensors', '0 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def format_extents(extents: Iterable[int], none: str = "") -> str:
    """Return the extents of a shape, a grid or a tile as text; `none` if there are none.

    >>> format_extents((32, 16)), format_extents((), "scalar")
    ('32 x 16', 'scalar')
    """
    return " x ".join(map(str, extents)) or none


def list_some(names: Sequence[str], most: int = 1) -> str:
    """Return the first names, and how many more there are than `most`.

    >>> list_some(["a", "b", "c"], 2), list_some(["a", "b"], 2)
    ('a, b and 1 more', 'a, b')
    """
    others = len(names) - most
    return ", ".join(names[:most]) + (f" and {others} more" if others > 0 else "")


def spell_extents(extents: Iterable[int], none: str = "") -> str:
    """Return extents as they are typed, which `parse_extents` reads; `none` if there are none.

    >>> spell_extents((4, 60, 90)), spell_extents((), "scalar")
    ('4x60x90', 'scalar')
    """
    return "x".join(map(str, extents)) or none


def parse_extents(text: str) -> tuple[int, ...] | None:
    """Return whole numbers written as 4x60x90, 4,60,90 or (4, 60, 90), () for none; None for any other text.

    >>> parse_extents("4x60x90"), parse_extents("(2, 33)"), parse_extents("()"), parse_extents("4xfoo")
    ((4, 60, 90), (2, 33), (), None)
    """
    content = text.strip()
    if content[:1] in ("(", "[") and content[-1:] in (")", "]"):
        content = content[1:-1].strip()
    parts = re.split(r"\s*[xX×,]\s*|\s+", content.rstrip(", ")) if content else []
    return tuple(map(int, parts)) if all(re.fullmatch("[0-9]+", part) for part in parts) else None


def format_number(value: float, digits: int) -> str:
    """Return a number with `digits` significant digits, and all digits before the point up to six of them.

    >>> format_number(0.1234, 2), format_number(100.0, 2), format_number(123456.7, 3), format_number(1e6, 2)
    ('0.12', '100', '123457', '1e6')
    """
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    if 1 <= abs(value) < _MAX_PLAIN:
        return f"{value:.0f}"
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"


def shorten_names(names: Sequence[str], width: int | None) -> list[str]:
    """Return names of at most `width` characters: the common part of long ones is cut; None cuts nothing.

    The start or the end that they share loses its middle, so that what tells them apart remains. If that is not enough,
    each loses its own middle; names that would become equal stay as they are.

    >>> shorten_names(["model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight", "norm"], 26)
    ['mode..mlp.gate_proj.weight', 'mode..mlp.up_proj.weight', 'norm']
    """
    long = [name for name in names if width is not None and len(name) > width]
    if width is None or len(long) < 2:
        return list(names)
    front = len(commonprefix(long))  # noqa: RUF071  (names, not paths)
    back = len(commonprefix([name[front:][::-1] for name in long]))  # noqa: RUF071
    excess = max(map(len, long)) - width
    cuts = []
    for common, from_end in sorted([(front, False), (back, True)], reverse=True):
        size = min(excess + len(_ELISION), common) if excess > 0 else 0
        if size > len(_ELISION):
            cuts.append((common, size, from_end))
            excess -= size - len(_ELISION)
    result = {name: name for name in names}
    for common, size, from_end in cuts:
        for name in long:
            result[name] = _cut_common(result[name], common, size, from_end)
    shortened = [result[name] for name in names]
    is_useful = excess <= 0 and len(set(shortened)) == len(set(names))
    return shortened if is_useful else _cut_middles(names, width)


def _cut_middles(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most `width` characters without the middle of long ones, if they stay different."""
    for tail in (2 * width // 3, width // 2, width // 3):
        head = width - len(_ELISION) - tail
        result = [name if len(name) <= width else name[:head] + _ELISION + name[-tail:] for name in names]
        if len(set(result)) == len(set(names)):
            return result
    return list(names)


def _cut_common(name: str, common: int, size: int, from_end: bool) -> str:
    """Return a name without `size` characters in the middle of its first or last `common` ones."""
    front = (common - size + 1) // 2
    start = len(name) - common + front if from_end else front
    return name[:start] + _ELISION + name[start + size :]


def color_setting() -> bool | None:
    """Return whether text has colors: None is on a terminal only; FORCE_COLOR asks for them, NO_COLOR refuses them.

    >>> color_setting() in (None, False, True)
    True
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def format_table(
    rows: Sequence[Sequence[str]], width: int | None = None, right: Collection[int] = (), indent: str = ""
) -> list[str]:
    """Return lines with aligned columns; the names in the first column are shortened to fit `width`, if it is given.

    Columns that are numbered in `right` are aligned to the right.

    >>> for line in format_table([("tensor", "bytes"), ("wte", "98304"), ("wpe", "512")], right=[1]):
    ...     print(line)
    tensor  bytes
    wte     98304
    wpe       512
    """
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        others = len(indent) + sum([width + 2 for width in widths[1:]])
        names = shorten_names([row[0] for row in rows], max(_MIN_NAME, width - others))
        rows = [(name, *row[1:]) for name, row in zip(names, rows, strict=True)]
        widths[0] = max(map(len, names))
    cells = "  ".join([f"{{:{'>' if k in right else '<'}{n}}}" for k, n in enumerate(widths)])
    return [f"{indent}{cells.format(*row)}".rstrip() for row in rows]


# Sizes in bytes, as people type and read them: `64KiB`, `1.5 GiB`, `4096`.

_UNITS = {"": 1, "B": 1}
_UNITS |= {unit: 1024 ** (k + 1) for k, unit in enumerate(("KIB", "MIB", "GIB", "TIB"))}
_UNITS |= {unit: 1000 ** (k + 1) for k, unit in enumerate(("KB", "MB", "GB", "TB"))}
_UNITS |= {unit: 1024 ** (k + 1) for k, unit in enumerate(("K", "M", "G", "T"))}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) *([A-Za-z]{0,3})", re.ASCII)


def parse_size(text: str) -> int | None:
    """Return the number of bytes that `text` spells, or None if it is not a size.

    >>> parse_size("64KiB"), parse_size("1.5 K"), parse_size("4096"), parse_size("4 apples")
    (65536, 1536, 4096, None)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].upper() not in _UNITS:
        return None
    number, unit = match[1], _UNITS[match[2].upper()]
    return int(float(number) * unit) if "." in number else int(number) * unit


def format_bytes(count: int) -> str:
    """Return a number of bytes as text with a unit that keeps it short.

    >>> format_bytes(1000), format_bytes(268435456), format_bytes(1610612736)
    ('1000 bytes', '256 MiB', '1.5 GiB')
    """
    size, unit = float(count), ""
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}" if unit and size < 1000 else f"{size:.0f} {unit}" if unit else f"{count} bytes"


def format_count(count: int) -> str:
    """Return a number of things as text that is short if it is large.

    >>> format_count(999), format_count(12_345_678), format_count(8_030_261_248)
    ('999', '12.3 million', '8.03 billion')
    """
    for unit, size in ((" trillion", 10**12), (" billion", 10**9), (" million", 10**6)):
        if count >= size:
            return f"{count / size:.3g}{unit}" if count < 1000 * size else f"{count // size}{unit}"
    return str(count)


# How words are spelled: case, dashes and spaces do not matter, and a few words have a synonym.

_SYNONYMS = {"column_major": "col_major", "tiled": "tile"}


def canonical_word(word: str) -> str:
    """Return a `word` as the library spells it: in lower case, with underscores, and the one synonym it uses.

    >>> [canonical_word(word) for word in ("ROW-MAJOR", "Column Major", "Tiled", "l1")]
    ['row_major', 'col_major', 'tile', 'l1']
    """
    spelled = "_".join(word.lower().replace("-", " ").replace("_", " ").split())
    return _SYNONYMS.get(spelled, spelled)


def find_nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the `known` name that an unknown `name` is most like, whatever their case; None if like none.

    >>> find_nearest("Dtyp", ["dtype", "tile"]), find_nearest("x", ["dtype", "tile"])
    ('dtype', None)
    """
    spelled = {each.lower(): each for each in known}
    near = get_close_matches(str(name).lower(), spelled, 1)
    return spelled[near[0]] if near else None


def suggest(name: object, known: Collection[str], otherwise: str | None = None) -> str:
    """Return a suggestion instead of an unknown `name`: the `known` one that is nearest, or else the list of them.

    `otherwise` replaces the list.

    >>> suggest("Dtyp", ["dtype", "tile"]), suggest("x", ["dtype", "tile"])
    ("did you mean 'dtype'?", 'use one of dtype, tile')
    """
    if (near := find_nearest(name, known)) is not None:
        return f"did you mean {near!r}?"
    return f"use one of {', '.join(known)}" if otherwise is None else otherwise


# `TextCursor`: reads a text of another system, and reports the character at which it is not as expected.

_Item = TypeVar("_Item")

MAX_INTEGER = 2**63 - 1
MAX_RANK = 64  # extents of a shape, in every notation

_SPACE = re.compile(r"\s*")
_INTEGER = re.compile(r"\d{1,19}(?!\d)", re.ASCII)
_EXTENT = re.compile(r"(\d{1,19}|\?)\s*x\s*", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING, _CLOSING = "([{<", ")]}>"
_SHOWN = 24  # characters of the text in a message


class TextCursor:
    """A position in a `text`, which messages call `name`. White space before whatever is read does not matter.

    >>> cursor = TextCursor("Shape([1, 32])", "a shape")
    >>> cursor.accept("Shape("), cursor.integers("[", "]"), cursor.accept(")"), cursor.at_end()
    (True, (1, 32), True, True)
    >>> try:
    ...     TextCursor("Shape(1)", "a shape").expect("Tile")
    ... except FileFormatError as problem:
    ...     print(problem)
    a shape: expected 'Tile' at character 1, got 'Shape(1)'
    """

    __slots__ = ("at", "name", "text")

    def __init__(self, text: str, name: str, at: int = 0) -> None:
        self.text = text
        self.name = name
        self.at = at  # of the next character

    def skip_space(self) -> int:
        """Move past white space, and return the position.

        >>> TextCursor("  7", "a number").skip_space()
        2
        """
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.at

    def at_end(self) -> bool:
        """Return whether nothing but white space is left.

        >>> TextCursor("  ", "a number").at_end()
        True
        """
        return self.skip_space() == len(self.text)

    def peek(self, literal: str) -> bool:
        """Return whether `literal` comes next.

        >>> TextCursor(" [7]", "a list").peek("[")
        True
        """
        return self.text.startswith(literal, self.skip_space())

    def accept(self, literal: str) -> bool:
        """Move past `literal` if it comes next, and return whether it did.

        >>> TextCursor("[7]", "a list").accept("(")
        False
        """
        here = self.peek(literal)
        self.at += len(literal) * here
        return here

    def expect(self, *literals: str) -> None:
        """Move past `literals`, one after the other, or raise.

        >>> TextCursor("tile [7]", "a tile").expect("tile", "[")
        """
        for literal in literals:
            if not self.accept(literal):
                self.fail(repr(literal))

    def expect_end(self) -> None:
        """Raise if anything but white space is left.

        >>> TextCursor("  ", "a list").expect_end()
        """
        if not self.at_end():
            self.fail("the end")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a `pattern` that comes next, and move past it; or None.

        >>> TextCursor(" d12 + 1", "a map").match(re.compile(r"d(\\d+)"))[1]
        '12'
        """
        match = pattern.match(self.text, self.skip_space())
        if match:
            self.at = match.end()
        return match

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Return the text that matches `pattern`, or raise, with `what` as the expectation.

        >>> TextCursor(" dram>", "a memory").take(re.compile(r"\\w+"), "a name")
        'dram'
        """
        match = self.match(pattern)
        return match[0] if match else self.fail(what)

    def integer(self, what: str = "an integer", maximum: int = MAX_INTEGER) -> int:
        """Return the integer that comes next, from 0 to `maximum`; `what` is its name in messages.

        >>> TextCursor("32x64", "a shape").integer()
        32
        """
        start = self.skip_space()
        match = self.match(_INTEGER)
        if not match or int(match[0]) > maximum:
            self.at = start
            self.fail(f"{what} of at most {maximum}" if match else what)
        return int(match[0])

    def integers(self, opening: str, closing: str) -> tuple[int, ...]:
        """Return integers between an `opening` and a `closing` bracket, with commas between them.

        >>> TextCursor("{32, 16}", "a tile").integers("{", "}")
        (32, 16)
        """
        self.expect(opening)
        return tuple(self.items(closing, self.integer))

    def items(
        self, closing: str, read: Callable[[], _Item], most: int = MAX_RANK, is_python: bool = False
    ) -> list[_Item]:
        """Return the results of `read`, repeated up to a `closing` bracket, with commas between, `most` times.

        `is_python` allows a comma after the last one, as in (128,).

        >>> cursor = TextCursor("128,)", "a tile")
        >>> cursor.items(")", cursor.integer, is_python=True)
        [128]
        """
        values: list[_Item] = []
        while not self.accept(closing):
            if values:
                self.expect(",")
                if is_python and self.accept(closing):
                    break
            if len(values) == most:
                self.fail(f"at most {most} items")
            values.append(read())
        return values

    def signed(self) -> int:
        """Return the integer that comes next, which may be negative.

        >>> TextCursor("-3", "a stride").signed()
        -3
        """
        return -self.integer() if self.accept("-") else self.integer()

    def extents(self) -> tuple[int | None, ...]:
        """Return the extents of a type, each followed by an x, as in 32x?xf32; None is one that is not known.

        >>> TextCursor("32x?xf32", "a tensor type").extents()
        (32, None)
        """
        extents: list[int | None] = []
        while match := self.match(_EXTENT):
            if len(extents) == MAX_RANK:
                self.fail(f"at most {MAX_RANK} extents")
            extents.append(None if match[1] == "?" else int(match[1]))
        return tuple(extents)

    def raw(self) -> str:
        """Return the text up to the next comma or closing bracket that is not inside brackets of its own.

        Brackets in strings do not count, and neither does the bracket of an arrow.

        >>> TextCursor("f(1, 2), 3)", "a call").raw()
        'f(1, 2)'
        """
        start, depth, at = self.skip_space(), 0, self.at
        while at < len(self.text):
            character = self.text[at]
            if character == '"':
                string = _STRING.match(self.text, at)
                at = string.end() - 1 if string else len(self.text) - 1
            elif character in _OPENING:
                depth += 1
            elif character in _CLOSING and not self.text.startswith("->", at - 1):
                depth -= 1
            if depth < 0 or (depth == 0 and character == ","):
                break
            at += 1
        self.at = at
        return self.text[start:at].rstrip()

    def fail(self, expected: str) -> NoReturn:
        """Raise an error with the text `expected` at this character, and the text found.

        >>> try:
        ...     TextCursor("7", "a list").fail("'['")
        ... except FileFormatError as problem:
        ...     print(problem)
        a list: expected '[' at character 1, got '7'
        """
        start = self.skip_space()
        rest = self.text[start : start + _SHOWN]
        got = repr(rest) if rest else "the end of the text"
        raise FileFormatError(f"{self.name}: expected {expected} at character {start + 1}, got {got}")


def name_axis(axis: int, rank: int) -> str:
    """Return the name of an `axis` of a tensor with `rank` dimensions.

    >>> name_axis(0, 1), name_axis(0, 2), name_axis(2, 3), name_axis(0, 3)
    ('elements', 'rows', 'columns', 'dimension 0')
    """
    names = {rank - 2: "rows", rank - 1: "columns" if rank > 1 else "elements"}
    return names.get(axis, f"dimension {axis}")
