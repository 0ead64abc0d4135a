# SPDX-License-Identifier: Apache-2.0
"""oneDNN's format tags, such as `aBcd16b`, and their aliases, such as `nChw16c`, in and out.

A tag names dimensions a, b, c, ... major to minor, in upper case if they are blocked, and then the blocks, outermost
first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from .._integers import ceil_div
from .._text import MAX_RANK
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike, with_logical_shape
from .strided_parts import StridedPart, logical_extents, stored_extents, tiled_parts

_TAG = re.compile(r"([A-Za-z]{1,12})((?:\d{1,19}[a-z])*)", re.ASCII)
_BLOCK = re.compile(r"(\d{1,19})([a-z])", re.ASCII)
LOOKS_LIKE = re.compile(r"\s*[A-Za-z]{1,12}(?:\d{1,6}[a-z])*\s*", re.ASCII)

# The letters of the domains, in the order of the dimensions; those in brackets may be left out.
_DOMAINS = (
    "nc[d][h][w]",
    "[g]oi[d][h][w]",
    "t[n][c]",
    "ldigo",
    "ldio",
    "ldgoi",
    "ldoi",
    "ldgo",
    "ldnc",
    "nt[c]",
    "tnc",
    "x",
    "ntc",
)


@dataclass(frozen=True)
class OnednnTag:
    """A format tag: the dimensions major to minor, and the blocks, outermost first, as (dimension, size).

    A tag has no sizes of its own: `layout(shape)` gives it some.

    >>> tag = parse_onednn("nChw16c")
    >>> str(tag), tag.padded_shape((2, 20, 3, 5)), tag.layout((2, 20, 3, 5))(0, 17, 0, 0)
    ('aBcd16b', (2, 32, 3, 5), 241)
    """

    order: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...] = ()

    def block(self, dimension: int) -> int:
        """Return the product of the blocks of a `dimension`.

        >>> parse_onednn("ABcd4b16a4b").block(1)
        16
        """
        return prod([size for owner, size in self.blocks if owner == dimension])

    def padded_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a `shape` with every extent a multiple of its blocks.

        >>> parse_onednn("BA16a64b4a").padded_shape((70, 70))
        (128, 128)
        """
        if len(shape) != len(self.order):
            raise LayoutError(
                f"the tag {self} has {len(self.order)} dimensions, the shape {tuple(shape)} has {len(shape)}"
            )
        return tuple([ceil_div(extent, self.block(k)) * self.block(k) for k, extent in enumerate(shape)])

    def layout(self, shape: Sequence[int]) -> Any:
        """Return the layout of an array of a `shape`; its padding is part of the layout.

        >>> parse_onednn("ba").layout((2, 3))
        Layout((2, 3), (1, 2))
        """
        padded = self.padded_shape(shape)
        modes: list[list[tuple[int, int]]] = [[] for _ in shape]
        stride = 1
        for owner, size in reversed(self.blocks):
            modes[owner].append((size, stride))
            stride *= size
        for k in reversed(self.order):
            count = padded[k] // self.block(k)
            modes[k].append((count, stride))
            stride *= count
        extents: Any = [tuple([n for n, _ in mode]) if len(mode) > 1 else mode[0][0] for mode in modes]
        strides: Any = [tuple([d for _, d in mode]) if len(mode) > 1 else mode[0][1] for mode in modes]
        stored = Layout(tuple(extents), tuple(strides))
        return stored if tuple(shape) == padded else with_logical_shape(stored, tuple(shape))

    def __str__(self) -> str:
        blocked = {owner for owner, _ in self.blocks}
        outer = "".join([chr(ord("A" if k in blocked else "a") + k) for k in self.order])
        return outer + "".join([f"{size}{chr(ord('a') + owner)}" for owner, size in self.blocks])


def parse_onednn(text: str) -> OnednnTag:
    """Return the tag that a `text` is, or that it is an alias of.

    >>> str(parse_onednn("OIhw4i16o4i")), parse_onednn("nt").order
    ('ABcd4b16a4b', (1, 0))
    """
    found = _TAG.fullmatch(text.strip())
    if not found:
        raise FileFormatError(f"{text[:40]!r} is not a oneDNN tag: expected dimensions and blocks, such as aBcd16b")
    outer, blocks = found[1], _BLOCK.findall(found[2])
    if len(blocks) > MAX_RANK:
        raise FileFormatError(f"{text[:40]!r} is not a oneDNN tag: it has more than {MAX_RANK} blocks")
    letters = outer.lower()
    numbers = _number_letters(letters)
    if numbers is None:
        raise FileFormatError(
            f"{text!r} is not a oneDNN tag: its letters are neither a, b, c, ... nor those of a known domain"
        )
    order = tuple([numbers[letter] for letter in letters])
    blocked = {letter for _, letter in blocks}
    is_plain = "a" in letters
    for letter, printed in zip(letters, outer, strict=True):
        is_odd_alias = not is_plain and printed.isupper()  # oneDNN has gOhwI24o
        if (letter in blocked) != printed.isupper() and not is_odd_alias:
            reason = "it is not blocked, but in upper case" if printed.isupper() else "it is blocked, but in lower case"
            raise FileFormatError(f"{text!r} is not a oneDNN tag: dimension {letter!r}: {reason}")
    if not blocked <= set(letters) or any(int(size) < 1 for size, _ in blocks):
        raise FileFormatError(f"{text!r} is not a oneDNN tag: blocks must be of its dimensions, and at least 1")
    return OnednnTag(order, tuple([(numbers[letter], int(size)) for size, letter in blocks]))


def has_tag_letters(text: str) -> bool:
    """Return whether the letters of a `text` are those of a tag or of an alias.

    >>> has_tag_letters("nChw16c"), has_tag_letters("hello")
    (True, False)
    """
    letters = re.match(r"\s*([A-Za-z]*)", text)
    return letters is not None and _number_letters(letters[1].lower()) is not None


def _number_letters(letters: str) -> dict[str, int] | None:
    """Return the dimension of each letter: of a, b, c, ..., or of a domain such as n, c, h, w."""
    if len(set(letters)) != len(letters):
        return None
    if set(letters) == set("abcdefghijkl"[: len(letters)]):
        return {letter: ord(letter) - ord("a") for letter in letters}
    for domain in _DOMAINS:
        required = re.sub(r"\[.\]", "", domain)
        possible = re.sub(r"[\[\]]", "", domain)
        if set(required) <= set(letters) <= set(possible):
            present = [letter for letter in possible if letter in letters]
            return {letter: k for k, letter in enumerate(present)}
    return None


def write_onednn(layout: LayoutLike) -> OnednnTag:
    """Return the tag of a compact `layout`: outer dimensions, and the blocks within them; raise if it has none.

    >>> str(write_onednn(parse_onednn("aBcd16b").layout((2, 32, 3, 5))))
    'aBcd16b'
    """
    parts, shape, stored = tiled_parts(layout, "oneDNN"), logical_extents(layout), stored_extents(layout)
    outer = next((k for k, part in enumerate(parts) if not part.is_last), len(parts))  # parts before the blocks
    tag = _tag_of(parts, outer, len(shape))
    for count in range(outer, -1, -1):  # the only block of a padded dimension is its last part, too
        if (found := _tag_of(parts, count, len(shape))).padded_shape(shape) == stored:
            return found
    raise LayoutError(f"{layout} has more padding than the blocks of {tag} need; oneDNN pads to whole blocks")


def _tag_of(parts: Sequence[StridedPart], outer: int, rank: int) -> OnednnTag:
    """Return the tag with the first `outer` parts as dimensions, and the others as blocks."""
    order = [part.mode for part in parts[:outer]]
    for k in range(rank):
        if k not in order:  # of extent 1, so that it can stand anywhere: in the order of the alphabet
            order.insert(next((place for place, other in enumerate(order) if other > k), len(order)), k)
    return OnednnTag(tuple(order), tuple([(part.mode, part.extent) for part in parts[outer:]]))
