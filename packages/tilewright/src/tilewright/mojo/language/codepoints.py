# SPDX-License-Identifier: Apache-2.0
"""Mojo's `Codepoint`: one character of a text, as its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import FormatError
from ..simd import UInt32


@dataclass(frozen=True, slots=True, order=True)
class Codepoint:
    """A character by its `number` in Unicode.

    >>> letter = Codepoint(97)
    >>> print(letter, int(letter), letter.is_ascii_lower())
    a 97 True
    """

    number: int

    def __post_init__(self) -> None:
        if not 0 <= int(self.number) <= 0x10FFFF:
            raise FormatError(f"a codepoint is between 0 and 0x10FFFF, got {self.number}")
        object.__setattr__(self, "number", int(self.number))

    @staticmethod
    def ord(text: str) -> Codepoint:
        """Return the codepoint of a text of one character.

        >>> Codepoint.ord("b").number
        98
        """
        if len(text) != 1:
            raise FormatError(f"ord takes a text of one character, got {text!r}")
        return Codepoint(ord(text))

    def to_u32(self) -> Any:
        """Return the number as a UInt32.

        >>> Codepoint(97).to_u32()
        UInt32(97)
        """
        return UInt32(self.number)

    def utf8_byte_length(self) -> int:
        """Return the number of bytes in UTF-8.

        >>> Codepoint.ord("é").utf8_byte_length()
        2
        """
        return len(str(self).encode("utf-8", "surrogatepass"))

    def is_ascii(self) -> bool:
        """Return whether it is one of the 128 characters of ASCII.

        >>> Codepoint.ord("é").is_ascii()
        False
        """
        return self.number < 128

    def is_ascii_digit(self) -> bool:
        """Return whether it is one of 0 to 9.

        >>> Codepoint.ord("7").is_ascii_digit()
        True
        """
        return "0" <= str(self) <= "9"

    def is_ascii_upper(self) -> bool:
        """Return whether it is one of A to Z.

        >>> Codepoint.ord("A").is_ascii_upper()
        True
        """
        return "A" <= str(self) <= "Z"

    def is_ascii_lower(self) -> bool:
        """Return whether it is one of a to z.

        >>> Codepoint.ord("A").is_ascii_lower()
        False
        """
        return "a" <= str(self) <= "z"

    def is_ascii_printable(self) -> bool:
        """Return whether it is a visible character of ASCII, or the space.

        >>> Codepoint.ord("~").is_ascii_printable()
        True
        """
        return " " <= str(self) <= "~"

    def is_ascii_whitespace(self) -> bool:
        """Return whether it is a space, a tabulator or the end of a line.

        >>> Codepoint.ord(" ").is_ascii_whitespace()
        True
        """
        return self.is_ascii() and str(self).isspace()

    is_posix_space = is_python_space = is_ascii_whitespace

    def __int__(self) -> int:
        return self.number

    def __str__(self) -> str:
        return chr(self.number)
