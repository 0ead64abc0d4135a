# SPDX-License-Identifier: Apache-2.0
"""Colors and safe text for terminals."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .color_scales import text_color_on


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """Colors text for a terminal, if colors are on.

    >>> TerminalStyle(False).paint("7", "#77aadd"), TerminalStyle(True).paint("7", "#77aadd")
    ('7', '\\x1b[48;2;119;170;221;38;2;0;0;0m7\\x1b[0m')
    """

    on: bool

    def paint(self, words: str, color: str) -> str:
        """Return text on a background color.

        >>> TerminalStyle(False).paint("7", "#000000")
        '7'
        """
        if not self.on:
            return words
        return f"\x1b[48;2;{_numbers(color)};38;2;{_numbers(text_color_on(color))}m{words}\x1b[0m"

    def strong(self, words: str) -> str:
        """Return words in bold.

        >>> TerminalStyle(True).strong("a")
        '\\x1b[1ma\\x1b[0m'
        """
        return f"\x1b[1m{words}\x1b[0m" if self.on else words


def _numbers(color: str) -> str:
    return f"{int(color[1:3], 16)};{int(color[3:5], 16)};{int(color[5:7], 16)}"


def replace_control_characters(words: str) -> str:
    """Return text with control characters replaced, so that a name cannot send commands to the terminal.

    >>> replace_control_characters("a\\x1b[31mb")
    'a\\ufffd[31mb'
    """
    return words if words.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in words)


def supports_color(stream: Any) -> bool:
    """Return whether a stream is a terminal with 24-bit colors, unless NO_COLOR is set.

    >>> import io
    >>> supports_color(io.StringIO())
    False
    """
    if os.environ.get("NO_COLOR") or not getattr(stream, "isatty", lambda: False)():
        return False
    return os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
