# SPDX-License-Identifier: Apache-2.0
"""`Swizzle`: an exchange of bits that spreads neighbouring rows over memory banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LayoutError
from .coords import as_wide, is_array
from .integers import as_integer

MOST_BITS = 63


@dataclass(frozen=True, slots=True, repr=False)
class Swizzle:
    """A function on offsets that XORs one field of bits into another, as CuTe's `Swizzle<bits, base, shift>`.

    `bits` is the width of both fields, `base` the number of lowest bits left alone, and the field that is read lies
    `shift` bits above the one that is changed (below it when shift is negative). Applying it twice undoes it.

    >>> Swizzle(3, 0, 3)(0b010_011) == 0b010_001
    True
    >>> from tilewright import row_major, compose
    >>> print(compose(Swizzle(2, 0, 2), row_major(4, 4)))
    Sw<2,0,2> o (4,4):(4,1)
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, int(as_integer(getattr(self, name), name)))
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{self!r}: bits and base count bits and must be nonnegative")
        if self.bits + self.base + abs(self.shift) > MOST_BITS:
            raise LayoutError(f"{self!r} reaches beyond the {MOST_BITS} bits of an offset; use smaller fields")
        if abs(self.shift) < self.bits:
            raise LayoutError(
                f"{self!r}: the two fields of {self.bits} bits overlap; |shift| must be at least {self.bits}"
            )

    @property
    def source_mask(self) -> int:
        """Return the bits that are read.

        >>> bin(Swizzle(3, 0, 3).source_mask)
        '0b111000'
        """
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def target_mask(self) -> int:
        """Return the bits that are changed.

        >>> bin(Swizzle(3, 0, 3).target_mask)
        '0b111'
        """
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    @property
    def size(self) -> int:
        """Return the size of a block of offsets within which the swizzle acts: each such block is mapped to itself.

        >>> Swizzle(3, 0, 3).size
        64
        """
        return 1 << (self.bits + self.base + abs(self.shift))

    @property
    def cosize(self) -> int:
        """Return the size of a block of offsets that a block is mapped to: the same.

        >>> Swizzle(3, 0, 3).cosize
        64
        """
        return self.size

    def __call__(self, offset: Any) -> Any:
        """Return the swizzled offset; arrays of integers work too.

        >>> [Swizzle(1, 0, 1)(x) for x in range(4)]
        [0, 1, 3, 2]
        """
        if not is_array(offset):
            offset = int(as_integer(offset, "a swizzled offset"))
        elif offset.dtype.kind in "iu":
            offset = as_wide(offset)
        else:
            raise TypeError(f"a swizzle takes integers, got an array of {offset.dtype}")
        source = offset & self.source_mask
        return offset ^ (source >> self.shift if self.shift >= 0 else source << -self.shift)

    extended = __call__

    def valid(self, offset: Any) -> Any:
        """Return whether an offset is valid: a swizzle takes every offset.

        >>> Swizzle(3, 0, 3).valid(12)
        True
        """
        return True

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def __format__(self, style: str) -> str:
        return f"({self.bits},{self.base},{self.shift})" if style == "mojo" else format(str(self), style)


def make_swizzle(source_mask: int, target_mask: int) -> Swizzle:
    """Return the swizzle that XORs the bits of source_mask into those of target_mask.

    >>> make_swizzle(0b111000, 0b111)
    Swizzle(3, 0, 3)
    """
    source, target = as_integer(source_mask, "a bit mask"), as_integer(target_mask, "a bit mask")
    if source < 0 or target < 0 or source.bit_count() != target.bit_count():
        raise LayoutError(
            f"make_swizzle: masks {source:#b} and {target:#b} must be nonnegative and have the same number of bits"
        )
    if not source:
        return Swizzle(0, 0, 0)
    low, high = _lowest_bit(source), _lowest_bit(target)
    for mask, start in ((source, low), (target, high)):
        if mask >> start != (1 << mask.bit_count()) - 1:
            raise LayoutError(f"make_swizzle: mask {mask:#b} is not one run of bits, which a swizzle needs")
    if abs(low - high) < source.bit_count():
        raise LayoutError(
            f"make_swizzle: masks {source:#b} and {target:#b} overlap, but a swizzle needs two separate fields"
        )
    return Swizzle(source.bit_count(), min(low, high), low - high)


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
