# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules `std.sys` and `std.time`: the machine, its streams and its clocks."""

from __future__ import annotations

import os
import sys
import time as _time
from collections.abc import Callable
from typing import Any, TextIO

from tilewright.errors import LayoutError
from tilewright.mojo import brackets, format_value

from ..simt.kernel_thread import is_inside_kernel


def _answer(value: bool, text: str) -> Callable[..., bool]:
    def answer(*_: object) -> bool:
        return value

    answer.__doc__ = text
    return answer


# Kernels run on the machine of tilewright_mojo.simt, which has warps of 32 threads, as NVIDIA's.
has_accelerator = _answer(True, "Return whether kernels can run: they can.")
has_nvidia_gpu_accelerator = _answer(True, "Return whether kernels see warps of 32 threads.")
has_amd_gpu_accelerator = _answer(False, "Return whether kernels see an AMD card: they do not.")
has_apple_gpu_accelerator = _answer(False, "Return whether kernels see an Apple card: they do not.")
is_amd_gpu = _answer(False, "Return whether this runs on an AMD card: it does not.")
is_apple_gpu = _answer(False, "Return whether this runs on an Apple card: it does not.")
is_64bit = _answer(True, "Return whether `Int` has 64 bits.")


def is_gpu() -> bool:
    """Return whether this runs inside a kernel.

    >>> is_gpu()
    False
    """
    return is_inside_kernel()


is_nvidia_gpu = is_gpu


def is_little_endian() -> bool:
    """Return whether the lowest byte of a number comes first.

    >>> is_little_endian() == (sys.byteorder == "little")
    True
    """
    return sys.byteorder == "little"


def num_logical_cores() -> int:
    """Return the number of processors.

    >>> num_logical_cores() >= 1
    True
    """
    return os.cpu_count() or 1


num_physical_cores = num_performance_cores = num_logical_cores


def simd_byte_width(*_: object) -> int:
    """Return the bytes of a vector register.

    >>> simd_byte_width()
    64
    """
    return 64


class CompilationTarget:
    """What a program is compiled for: a machine of its own, of which only the size of registers is known.

    >>> CompilationTarget.is_x86()
    False
    """

    is_x86 = staticmethod(_answer(False, "Return whether the target is an x86 processor."))
    is_apple_silicon = staticmethod(_answer(False, "Return whether the target is Apple silicon."))
    is_macos = staticmethod(_answer(False, "Return whether the system is macOS."))
    is_linux = staticmethod(_answer(True, "Return whether the system is Linux."))
    has_avx512f = has_avx2 = has_neon = staticmethod(_answer(False, "Return whether there are such instructions."))

    @staticmethod
    @brackets
    def unsupported_target_error(parameters: tuple[object, ...], **named: object) -> None:
        """Refuse an operation that a program has no code for on this machine."""
        what = named.get("operation", parameters[0] if parameters else "this")
        raise LayoutError(f"{what} is not possible on this machine: the program says so")


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
        """Write out pending text."""
        self._target().flush()

    def _target(self) -> TextIO:
        return sys.stderr if self._is_error else sys.stdout


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


perf_counter, perf_counter_ns, monotonic = _time.perf_counter, _time.perf_counter_ns, _time.monotonic_ns
global_perf_counter_ns = _time.perf_counter_ns
sleep = _time.sleep


def time_function(function: Any) -> int:
    """Return how many nanoseconds a call of `function` takes.

    >>> time_function(lambda: None) >= 0
    True
    """
    start = perf_counter_ns()
    function()
    return perf_counter_ns() - start
