# SPDX-License-Identifier: Apache-2.0
"""What a terminal can show: 24-bit colours where it says so, plain characters everywhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .color_scales import ink_on


@dataclass(frozen=True, slots=True)
class Ink:
    """Whether there are colours, and how words get them.

    >>> Ink(False).paint("7", "#77aadd"), Ink(True).paint("7", "#77aadd")
    ('7', '\\x1b[48;2;119;170;221;38;2;0;0;0m7\\x1b[0m')
    """

    on: bool

    def paint(self, words: str, colour: str) -> str:
        """Return words on a ground of a colour.

        >>> Ink(False).paint("7", "#000000")
        '7'
        """
        if not self.on:
            return words
        return f"\x1b[48;2;{_numbers(colour)};38;2;{_numbers(ink_on(colour))}m{words}\x1b[0m"

    def strong(self, words: str) -> str:
        """Return words in bold.

        >>> Ink(True).strong("a")
        '\\x1b[1ma\\x1b[0m'
        """
        return f"\x1b[1m{words}\x1b[0m" if self.on else words


def _numbers(colour: str) -> str:
    return f"{int(colour[1:3], 16)};{int(colour[3:5], 16)};{int(colour[5:7], 16)}"


def plain(words: str) -> str:
    """Return words without control characters: a name must not be able to command a terminal.

    >>> plain("a\\x1b[31mb")
    'a\\ufffd[31mb'
    """
    return words if words.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in words)


def has_colours(stream: Any) -> bool:
    """Return whether a stream is a terminal with 24-bit colours, unless NO_COLOR is set.

    >>> import io
    >>> has_colours(io.StringIO())
    False
    """
    if os.environ.get("NO_COLOR") or not getattr(stream, "isatty", lambda: False)():
        return False
    return os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
