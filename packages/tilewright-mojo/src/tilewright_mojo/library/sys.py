# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.sys`: what a program asks about the machine, and what it was started with."""

import sys as _python
from typing import Any, TextIO

from tilewright.mojo.builtins import format_value


class Stream:
    """`stdout` or `stderr` as a program sees it: it can write there, wherever that goes at the time.

    >>> stdout.write("a", 1, "\\n")
    a1
    """

    def __init__(self, is_error: bool) -> None:
        self._is_error = bool(is_error)

    def write(self, *values: Any) -> None:
        """Write the text of values."""
        self._target().write("".join(map(format_value, values)))

    def flush(self) -> None:
        """Write out what waits."""
        self._target().flush()

    def _target(self) -> TextIO:
        return _python.stderr if self._is_error else _python.stdout


stdout, stderr = Stream(False), Stream(True)


def exit(code: Any = 0) -> None:  # noqa: A001  (Mojo's name)
    """End the program.

    >>> try:
    ...     exit(3)
    ... except SystemExit as problem:
    ...     print(problem.code)
    3
    """
    raise SystemExit(int(code))
