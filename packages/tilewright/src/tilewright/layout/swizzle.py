# SPDX-License-Identifier: Apache-2.0
"""`Swizzle`: an exchange of bits that spreads neighbouring rows over memory banks."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LayoutError
from .index_code import IndexExpression
from .tuples import IntOrArray
from .validation import as_int64, as_integer, is_array

OFFSET_BITS = 63


@dataclass(frozen=True, slots=True, repr=False)
class Swizzle:
    """A function on offsets that XORs one bit field into another.

    `bits` is the width of both fields and `base` the number of low bits that stay unchanged. The field that is read
    lies `shift` bits above the field that is written (below it if negative). Applied twice it is the identity.

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
            raise LayoutError(f"{self!r}: bits and base must be nonnegative")
        if self.bits + self.base + abs(self.shift) > OFFSET_BITS:
            raise LayoutError(f"{self!r} exceeds the {OFFSET_BITS} bits of an offset; use smaller fields")
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
        """Return the bits that are written.

        >>> bin(Swizzle(3, 0, 3).target_mask)
        '0b111'
        """
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    @property
    def size(self) -> int:
        """Return the size of the blocks of offsets that the swizzle maps to themselves.

        >>> Swizzle(3, 0, 3).size
        64
        """
        return 1 << (self.bits + self.base + abs(self.shift))

    @property
    def block(self) -> int:
        """Return the size of the smallest blocks of offsets that the swizzle maps to themselves.

        Bits above a block may decide how it is permuted.

        >>> Swizzle(3, 0, 3).block, Swizzle(3, 0, -3).block
        (8, 64)
        """
        return 1 << self.target_mask.bit_length()

    @property
    def cosize(self) -> int:
        """Return `size`: a swizzle is a bijection on each block.

        >>> Swizzle(3, 0, 3).cosize
        64
        """
        return self.size

    def __call__(self, offset: IntOrArray) -> IntOrArray:
        """Return the swizzled offset; arrays of integers work too.

        >>> [Swizzle(1, 0, 1)(x) for x in range(4)]
        [0, 1, 3, 2]
        """
        if not is_array(offset):
            offset = int(as_integer(offset, "the offset"))
        elif offset.dtype.kind in "iu":
            offset = as_int64(offset)
        else:
            raise TypeError(f"a swizzle takes integers, got an array of {offset.dtype}")
        source = offset & self.source_mask
        return offset ^ (source >> self.shift if self.shift >= 0 else source << -self.shift)

    extended = __call__

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the swizzled offset as an expression, for `code`; `arguments` is the offset alone.

        >>> print(Swizzle(2, 0, 2).index_expression((IndexExpression.argument("i"),)))
        i ^ ((i & 12) >> 2)
        """
        (offset,) = arguments
        source = offset & self.source_mask
        return offset ^ (source >> self.shift if self.shift >= 0 else source << -self.shift)

    def valid(self, offset: IntOrArray) -> bool:
        """Return True: a swizzle takes every `offset`.

        >>> Swizzle(3, 0, 3).valid(12)
        True
        """
        return True

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def _has_padding(self) -> bool:
        return False
