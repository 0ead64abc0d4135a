# SPDX-License-Identifier: Apache-2.0
"""What Mojo's strings and numbers can do and Python's cannot; variables of text that are written to."""

from __future__ import annotations

from collections.abc import Callable
from string import Formatter
from typing import Any

from ..builtins import format_value, represent
from ..dtype import as_dtype
from ..lists import List
from ..simd import SIMDType, UInt8
from .codepoints import Codepoint
from .raising import Error
from .struct_members import TextWriter
from .tokens import words

TEXT_MEMBERS = words(
    "as_bytes as_string_slice ascii_center ascii_ljust ascii_rjust byte_length bytes codepoint_slices codepoints "
    "count_codepoints format graphemes is_ascii_digit is_ascii_printable is_ascii_whitespace write_to"
)
"""Methods of Mojo's strings that Python's do not have, or that reach further there."""


class Text(str):
    """A text with the methods that only Mojo's strings have; lengths and positions are in bytes of UTF-8.

    >>> Text("né").byte_length(), Text("né").count_codepoints(), Text("abc").get_subscript(byte=1)
    (3, 2, 'b')
    """

    __slots__ = ()

    def byte_length(self) -> int:
        """Return the number of bytes in UTF-8.

        >>> Text("é").byte_length()
        2
        """
        return len(self.encode())

    def copy(self) -> str:
        """Return the text.

        >>> Text("a").copy()
        'a'
        """
        return str(self)

    def count_codepoints(self) -> int:
        """Return the number of characters.

        >>> Text("é").count_codepoints()
        1
        """
        return len(self)

    def codepoints(self) -> tuple[Codepoint, ...]:
        """Return the characters as numbers.

        >>> Text("ab").codepoints()
        (Codepoint(number=97), Codepoint(number=98))
        """
        return tuple([Codepoint(ord(each)) for each in self])

    def codepoint_slices(self) -> tuple[str, ...]:
        """Return the characters as texts.

        >>> Text("ab").codepoint_slices()
        ('a', 'b')
        """
        return tuple(str(self))

    graphemes = codepoint_slices
    ascii_center, ascii_ljust, ascii_rjust = str.center, str.ljust, str.rjust

    def as_bytes(self) -> Any:
        """Return the bytes in UTF-8.

        >>> print(Text("a").as_bytes())
        [97]
        """
        return List[UInt8](*self.encode())

    bytes = as_bytes

    def as_string_slice(self) -> str:
        """Return the text.

        >>> Text("a").as_string_slice()
        'a'
        """
        return str(self)

    def format(self, *values: Any) -> str:  # type: ignore[override]  # Python's would also read members of the values
        """Return the text with values in place of `{}`, `{1}` and `{!r}`.

        >>> Text("{} of {}, {0!r}").format(3, "a")
        '3 of a, Int(3)'
        >>> Text("{0.__class__}").format(3)
        Traceback (most recent call last):
        tilewright.mojo.language.raising.Error: a format text has {}, {0} or {!r} for its values, got {0.__class__}
        """
        parts, position = [], 0
        for literal, field, spec, conversion in Formatter().parse(self):
            parts.append(literal)
            if field is None:
                continue
            if spec or not (field == "" or field.isdecimal()) or conversion not in (None, "r", "s"):
                wanted = "".join([field, f"!{conversion}" if conversion else "", f":{spec}" if spec else ""])
                raise Error(f"a format text has {{}}, {{0}} or {{!r}} for its values, got {{{wanted}}}")
            index = int(field) if field else position
            position += not field
            if index >= len(values):
                raise Error(f"the format text wants value {index}, but there are {len(values)}")
            parts.append(represent(values[index]) if conversion == "r" else format_value(values[index]))
        return "".join(parts)

    def is_ascii_digit(self) -> bool:
        """Return whether all characters are digits.

        >>> Text("12").is_ascii_digit()
        True
        """
        return self.isascii() and self.isdigit()

    def is_ascii_printable(self) -> bool:
        """Return whether all characters are visible ones of ASCII, or spaces.

        >>> Text("a b").is_ascii_printable()
        True
        """
        return all(" " <= each <= "~" for each in self)

    def is_ascii_whitespace(self) -> bool:
        """Return whether there are only spaces, tabulators and ends of lines.

        >>> Text(" ").is_ascii_whitespace()
        True
        """
        return self.isascii() and self.isspace()

    def write_to(self, writer: Any) -> None:
        """Write the text.

        >>> Text("a").write_to(writer := TextWriter())
        >>> writer.text()
        'a'
        """
        writer.write(str(self))

    def get_subscript(self, *position: Any, byte: Any = None, codepoint: Any = None) -> str:
        """Return a part: `s[byte=1]`, `s[codepoint=0:3]`.

        >>> Text("né").get_subscript(codepoint=1)
        'é'
        """
        if byte is not None:
            part = self.encode()[byte if isinstance(byte, slice) else slice(byte, byte + 1)]
            return part.decode("utf-8", "replace")
        return str(self)[codepoint if codepoint is not None else position[0]]


def write_text(value: Any, *parts: Any) -> Any:
    """Return a variable after `variable.write(parts)`: a text grows, others are written to.

    >>> write_text("n = ", 3)
    'n = 3'
    """
    if isinstance(value, str):
        return value + "".join(map(str, parts))
    value.write(*parts)
    return value


def call_writing(function: Callable[..., Any], arguments: tuple[Any, ...], position: int) -> Any:
    """Return an argument after a function wrote to it: a text grows, others are written to.

    >>> call_writing(lambda number, writer: writer.write(number), (3, "n = "), 1)
    'n = 3'
    """
    writer = arguments[position]
    if not isinstance(writer, str):
        function(*arguments)
        return writer
    collected = TextWriter()
    function(*arguments[:position], collected, *arguments[position + 1 :])
    return writer + collected.text()


def write_value(value: Any, method: str, writer: Any) -> Any:
    """Return a variable after `value.write_to(variable)`: a text grows, others are written to.

    >>> write_value(Text("3"), "write_to", "n = ")
    'n = 3'
    """
    if not isinstance(writer, str):
        getattr(value, method)(writer)
        return writer
    collected = TextWriter()
    getattr(value, method)(collected)
    return writer + collected.text()


class NumberMembers:
    """What Mojo's numbers and texts can do and Python's cannot.

    >>> from tilewright.mojo import DType
    >>> NumberMembers(3).copy(), int(NumberMembers(3).cast[DType.int8]())
    (3, 3)
    """

    __slots__ = ("_number", "cast")
    length = 1

    def __init__(self, value: Any) -> None:
        self._number = value
        if not isinstance(value, tuple):
            self.cast = SIMDType(as_dtype("float64" if isinstance(value, float) else "int64"), 1)(value).cast

    def copy(self) -> Any:
        """Return the number.

        >>> NumberMembers(3).copy()
        3
        """
        return self._number

    value = copy


def with_members(value: Any) -> Any:
    """Return a value that has the members of Mojo's numbers.

    >>> with_members(3).copy(), with_members([1]).copy()
    (3, [1])
    """
    if value.__class__ is str:
        return Text(value)
    return NumberMembers(value) if value.__class__ in (int, float, bool, tuple) else value
