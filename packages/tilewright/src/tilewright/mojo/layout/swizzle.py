# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.swizzle`."""

from __future__ import annotations

from typing import Any

from ..._dialect import unwrap
from ...errors import LayoutError
from ...formats import format_of
from ...layout import LayoutLike, as_integer, compose
from ...layout import Swizzle as NativeSwizzle
from ..brackets import brackets


class Swizzle(NativeSwizzle):
    """A swizzle that prints as Mojo's: `format(swizzle, "mojo")`.

    >>> format(Swizzle(3, 0, 3), "mojo")
    '(3,0,3)'
    """

    __slots__ = ()

    def __call__(self, *coord: Any, index: object = None, offset: object = None) -> Any:
        """Return the swizzled offset of an index, which Mojo calls `index` or `offset`."""
        named = [value for value in (index, offset) if value is not None]
        return super().__call__(*coord, *named)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NativeSwizzle):
            return NotImplemented
        return (self.bits, self.base, self.shift) == (other.bits, other.base, other.shift)

    __hash__ = NativeSwizzle.__hash__

    def __format__(self, style: str) -> str:
        return f"({self.bits},{self.base},{self.shift})" if style == "mojo" else format(str(self), style)


def ComposedLayout(layout: LayoutLike, swizzle: NativeSwizzle) -> LayoutLike:  # noqa: N802  (Mojo's name)
    """Return `layout` followed by `swizzle`, in Mojo's order of arguments.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> [ComposedLayout(row_major[4, 4](), Swizzle(1, 0, 2))(i) for i in range(4)]
    [0, 5, 8, 13]
    """
    return compose(swizzle, unwrap(layout))


def _log2(value: object, name: str) -> int:
    """Return the logarithm of a power of two."""
    n = int(as_integer(value, name))
    if n < 1 or n & (n - 1):
        raise LayoutError(f"{name} must be a power of two, got {n}")
    return n.bit_length() - 1


@brackets
def make_swizzle(parameters: tuple[Any, ...], **named: Any) -> Swizzle:
    """`make_swizzle[rows, row_size, access]()` or `make_swizzle[dtype, mode]()`.

    >>> make_swizzle[8, 32, 4](), make_swizzle["bfloat16", 3]()
    (Swizzle(3, 2, 3), Swizzle(3, 3, 3))
    """
    names = ("dtype", "mode") if "mode" in named or "dtype" in named else ("num_rows", "row_size", "access_size")
    parameters = (*parameters, *[named[name] for name in names if name in named])
    if len(parameters) not in (2, 3):
        raise LayoutError("make_swizzle takes num_rows, row_size and access_size, or a dtype and a mode")
    if len(parameters) == 2:
        dtype, mode = parameters
        if not 0 <= as_integer(getattr(mode, "value", mode), "a swizzle mode") <= 3:
            raise LayoutError(f"expected swizzle mode 0 (none), 1 (32B), 2 (64B) or 3 (128B), got {mode}")
        return Swizzle(int(getattr(mode, "value", mode)), _log2(16 // format_of(dtype).bytes_per_tile(1), "a width"), 3)
    rows, row_size, access = parameters
    base = _log2(access, "the access size")
    shift = _log2(row_size, "the row size") - base
    if shift <= 0:
        raise LayoutError(
            f"make_swizzle{list(parameters)}: the row size {row_size} must be larger than the access size {access}"
        )
    return Swizzle(_log2(rows, "the number of rows"), base, shift)


@brackets
def make_ldmatrix_swizzle(parameters: tuple[Any, ...], simd_bytes: int = 64) -> Swizzle:
    """`make_ldmatrix_swizzle[dtype, row_size, log2_vector_width](simd_bytes=64)`: without bank conflicts for ldmatrix.

    >>> make_ldmatrix_swizzle["float32", 128, 3]()
    Swizzle(3, 3, 3)
    """
    dtype, row_size, *rest = parameters
    itemsize = format_of(dtype).bytes_per_tile(1)
    log2_vector = rest[0] if rest else 0
    bytes_32_banks = 128
    conflicts = min(8 * row_size * itemsize // bytes_32_banks, 8)
    width = simd_bytes // itemsize
    return Swizzle(_log2(conflicts, "the number of conflicts"), log2_vector, _log2(max(row_size // width, 8), "a row"))
