# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.sys`: what a program asks about the machine, and what it was started with."""

import sys as _python
from typing import Any, TextIO

from ..builtins import format_value
from ..program_arguments import (
    argv,
    get_defined_bool,
    get_defined_dtype,
    get_defined_int,
    get_defined_string,
    is_defined,
)
from . import sys_info as info
from .sys_info import (
    CompilationTarget,
    align_of,
    bit_width_of,
    has_accelerator,
    has_amd_gpu_accelerator,
    has_apple_gpu_accelerator,
    has_nvidia_gpu_accelerator,
    is_64bit,
    is_amd_gpu,
    is_apple_gpu,
    is_gpu,
    is_nvidia_gpu,
    num_logical_cores,
    num_physical_cores,
    simd_width_of,
    size_of,
)

__all__ = [
    "CompilationTarget",
    "align_of",
    "alignof",
    "argv",
    "bit_width_of",
    "bitwidthof",
    "exit",
    "get_defined_bool",
    "get_defined_dtype",
    "get_defined_int",
    "get_defined_string",
    "has_accelerator",
    "has_amd_gpu_accelerator",
    "has_apple_gpu_accelerator",
    "has_nvidia_gpu_accelerator",
    "info",
    "is_64bit",
    "is_amd_gpu",
    "is_apple_gpu",
    "is_defined",
    "is_gpu",
    "is_nvidia_gpu",
    "num_logical_cores",
    "num_physical_cores",
    "simd_width_of",
    "simdwidthof",
    "size_of",
    "sizeof",
    "stderr",
    "stdout",
]

alignof, sizeof, simdwidthof, bitwidthof = align_of, size_of, simd_width_of, bit_width_of


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
