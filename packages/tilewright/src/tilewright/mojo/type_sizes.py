# SPDX-License-Identifier: Apache-2.0
"""What Mojo's `std.sys` knows of types: their size and alignment in bytes, and how many numbers a register holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .simd import SIMD_BYTES, NumberType, SIMDType, scalar_format

GPU_BYTES = 16  # that a thread of a GPU loads at once


class _TypeFunction:
    """A function of a type in brackets, without arguments: `size_of[Float32]()`."""

    def __init__(self, name: str, function: Callable[[Any], int]) -> None:
        self._name = name
        self._function = function

    def __getitem__(self, kind: Any) -> Callable[..., int]:
        values = kind if isinstance(kind, tuple) else (kind,)
        answer = self._function(values[0])
        return lambda *_: answer

    def with_parameters(self, *kinds: Any, **named: Any) -> Callable[..., int]:
        """Return the function of a type: the first in the brackets, or called `type` or `dtype`."""
        return self[(*kinds, *[named[name] for name in ("type", "dtype") if name in named])]

    def __repr__(self) -> str:
        return self._name


def _size(kind: NumberType) -> int:
    count = kind.size if isinstance(kind, SIMDType) else 1
    return count * (kind.dtype if isinstance(kind, SIMDType) else scalar_format(kind)).itemsize


size_of = _TypeFunction("size_of", _size)
align_of = _TypeFunction("align_of", _size)
bit_width_of = _TypeFunction("bit_width_of", lambda kind: 8 * _size(kind))


class _WidthFunction(_TypeFunction):
    """`simd_width_of[dtype]()`: numbers in a register of the processor, or with `target` in one load of a GPU."""

    def with_parameters(self, *kinds: Any, target: Any = None, **named: Any) -> Callable[..., int]:
        """Return the function of a type; any `target` is a GPU.

        >>> simd_width_of.with_parameters("float32", target="gpu")()
        4
        """
        if target is None:
            return super().with_parameters(*kinds, **named)
        size = _size((*kinds, *named.values())[0])
        return lambda *_: max(1, GPU_BYTES // size)


simd_width_of = _WidthFunction("simd_width_of", lambda kind: max(1, SIMD_BYTES // scalar_format(kind).itemsize))
sizeof, alignof, simdwidthof, bitwidthof = size_of, align_of, simd_width_of, bit_width_of
