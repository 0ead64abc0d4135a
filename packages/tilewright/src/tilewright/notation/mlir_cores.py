# SPDX-License-Identifier: Apache-2.0
"""Core ranges as tt-mlir writes them, and the words in angle brackets that its attributes are made of."""

from __future__ import annotations

import re

from .._text import TextCursor
from ..errors import FileFormatError
from ..memory import CoreRange, CoreRangeSet
from .mlir_types import Aliases, read_attribute
from .ttnn_json import MAX_CORE, MAX_RANGES

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MNEMONIC = re.compile(r"#(?:ttnn|ttcore|tt)\.\w+", re.ASCII)


def read_word(cursor: TextCursor, what: str) -> str:
    """Return the word at a `cursor`, as <word>, #ttnn.name<word> or word; `what` is its name in messages.

    >>> read_word(TextCursor("<row_major>", "a shard spec"), "an orientation")
    'row_major'
    """
    is_named = cursor.match(_MNEMONIC) is not None
    if is_named:
        cursor.expect("<")
    is_bracketed = is_named or cursor.accept("<")
    word = cursor.take(_WORD, what)
    if is_bracketed:
        cursor.expect(">")
    return word


def _read_core(cursor: TextCursor) -> tuple[int, int]:
    cursor.expect("(")
    x = cursor.integer("x of a core", MAX_CORE)
    cursor.expect(",")
    y = cursor.integer("y of a core", MAX_CORE)
    cursor.expect(")")
    return x, y


def _read_core_range(cursor: TextCursor, _aliases: Aliases) -> CoreRange:
    cursor.accept("#ttnn.core_range")
    cursor.expect("<")
    start = _read_core(cursor)
    cursor.expect(",")
    end = _read_core(cursor)
    cursor.expect(">")
    return CoreRange(start, end)


def _read_core_range_set(cursor: TextCursor, aliases: Aliases) -> CoreRangeSet:
    cursor.accept("#ttnn.core_range_set")
    cursor.expect("<")
    ranges: list[CoreRange] = []
    if cursor.accept("["):
        ranges = cursor.items("]", lambda: read_attribute(cursor, aliases, _read_core_range), MAX_RANGES)
    cursor.expect(">")
    return CoreRangeSet(ranges)


def read_core_ranges(cursor: TextCursor, aliases: Aliases) -> CoreRangeSet:
    """Return the core ranges at a `cursor`; they, and each of them, can be one of `aliases`.

    >>> text = "#ttnn.core_range_set<[#first, #ttnn.core_range<(0, 1), (3, 1)>]>"
    >>> read_core_ranges(TextCursor(text, "cores"), {"first": "#ttnn.core_range<(0,0), (7,0)>"}).num_cores
    12
    """
    return read_attribute(cursor, aliases, _read_core_range_set)


def core_ranges_text(cores: CoreRangeSet) -> str:
    """Return `cores` as tt-mlir writes them.

    >>> print(core_ranges_text(CoreRangeSet.of((8, 1))))
    #ttnn.core_range_set<[#ttnn.core_range<(0,0), (7,0)>]>
    """
    ranges = [f"#ttnn.core_range<({a.x},{a.y}), ({b.x},{b.y})>" for a, b in [(part.start, part.end) for part in cores]]
    return f"#ttnn.core_range_set<[{', '.join(ranges)}]>" if ranges else "#ttnn.core_range_set<>"


def require_single(value: object, cursor: TextCursor, name: str) -> None:
    """Raise if a part `name` of an attribute was read before, with `value`.

    >>> require_single(None, TextCursor("", "a layout"), "the grid")
    """
    if value is not None:
        raise FileFormatError(f"{cursor.name}: {name} is there twice, again at character {cursor.at + 1}")
