# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a Mojo program, and where: messages with file, line, column, the source line and a caret."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import FileFormatError

NOT_YET = "Mojo has this; tilewright does not run it yet"
NOT_MOJO = "Mojo does not have this"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a program and the name of its file; its lines are counted from 1.

    >>> source = Source("var x = 1\\n", "a.mojo")
    >>> print(source.show(1, 4))
    a.mojo:1:5
        var x = 1
            ^
    """

    text: str
    name: str

    def line(self, number: int) -> str:
        """Return a line without its end.

        >>> Source("a\\nb", "a.mojo").line(2)
        'b'
        """
        lines = self.text.split("\n", number)[number - 1 : number]
        return lines[0].rstrip("\r") if lines else ""

    def show(self, number: int, column: int) -> str:
        """Return a place as text: where it is, the line, and a caret below the character number `column` (from 0).

        >>> print(Source("x = (", "a.mojo").show(1, 4))
        a.mojo:1:5
            x = (
                ^
        """
        text = self.line(number)
        window = text[max(0, column - 100) : column + 100]
        before = text[max(0, column - 100) : column]
        return f"{self.name}:{number}:{column + 1}\n    {window}\n    {' ' * len(before)}^"


class MojoSourceError(FileFormatError):
    """A program that is not Mojo, or uses what tilewright does not run; it has not been started.

    `file`, `line` and `column` (from 1) say where.

    >>> from tilewright.mojo import run
    >>> try:
    ...     run("var x = (1", name="a.mojo")
    ... except MojoSourceError as problem:
    ...     print(problem)
    '(' is never closed
      at a.mojo:1:9
        var x = (1
                ^
    """

    def __init__(self, message: str, source: Source, line: int, column: int) -> None:
        place = source.show(line, column).replace("\n", "\n  ").replace("\n      ", "\n    ")
        super().__init__(f"{message}\n  at {place}")
        self.message, self.file, self.line, self.column = message, source.name, line, column + 1
