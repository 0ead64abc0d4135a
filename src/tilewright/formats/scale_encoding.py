# SPDX-License-Identifier: Apache-2.0
"""Scale encodings: how the scale that the elements of a block share becomes one byte.

All encodings have the same methods: `choose` turns the largest magnitude of each block into a scale byte, `value` turns
scale bytes into factors, and `nan` is the byte of NaN, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .element_encoding import Codes, ElementEncoding, SmallFloat
from .rounding import Floats

_TOP_FLOAT32 = 127  # the exponent of the largest finite float32


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """A scale 2^(byte - bias) with `bits` significant bits: the exponents of block floats, and E8M0 of OCP MX.

    The scale is chosen so that the largest magnitude of a block gets the top exponent of its elements, if it fits.

    >>> from tilewright.formats.element_encoding import E2M1
    >>> e8m0 = PowerOfTwo(8, 127, nan=255)
    >>> e8m0.choose(np.array([1.0, 6.0, 0.0]), E2M1).tolist()
    [125, 127, 0]
    """

    bits: int
    bias: int
    nan: int | None = None

    @property
    def last(self) -> int:
        """Return the largest valid byte.

        >>> PowerOfTwo(5, 15).last, PowerOfTwo(8, 127, nan=255).last
        (31, 255)
        """
        return (1 << self.bits) - 1

    @property
    def top(self) -> int:
        """Return the largest byte that stands for a number.

        >>> PowerOfTwo(5, 15).top, PowerOfTwo(8, 127, nan=255).top
        (31, 254)
        """
        return self.last - 1 if self.nan == self.last else self.last

    @property
    def smallest(self) -> float:
        """Return the smallest scale.

        >>> PowerOfTwo(5, 15).smallest == 2**-15
        True
        """
        return 2.0**-self.bias

    def choose(self, largest: Floats, element: ElementEncoding) -> Codes:
        """Return the scale bytes of blocks with the given `largest` magnitudes and `element` encoding.

        >>> from tilewright.formats.element_encoding import E4M3
        >>> PowerOfTwo(5, 15).choose(np.array([1e9, 1.0, 1e-9]), E4M3).tolist()
        [31, 7, 0]
        """
        exponent = np.frexp(largest)[1].astype(np.int64) - 1
        byte = np.clip(exponent - element.top_exponent + self.bias, 0, self.top)
        return np.where(largest == 0.0, 0, byte).astype(np.uint8)

    def value(self, scales: Codes) -> Floats:
        """Return the factors of the scale bytes.

        >>> PowerOfTwo(8, 127, nan=255).value(np.array([127, 120, 255], dtype=np.uint8)).tolist()
        [1.0, 0.0078125, nan]
        """
        factors = np.ldexp(1.0, scales.astype(np.int64) - self.bias)
        return factors if self.nan is None else np.where(scales == self.nan, np.nan, factors)

    def highest(self, element: ElementEncoding) -> float:
        """Return the largest value that elements with these scales can represent.

        >>> from tilewright.formats.element_encoding import E4M3
        >>> PowerOfTwo(5, 15).highest(E4M3) == 448 * 2**16
        True
        """
        return element.largest * 2.0 ** min(self.top - self.bias, _TOP_FLOAT32 - element.top_exponent)


@dataclass(frozen=True, slots=True)
class FloatScale:
    """A scale that is a small float without sign: the E4M3 scales of nvfp4.

    The scale is chosen (to nearest even) so that the largest magnitude of a block becomes the largest element. Only a
    block of zeros has scale 0; any other scale that would round to 0 becomes the smallest scale.

    >>> from tilewright.formats.element_encoding import E2M1, E4M3
    >>> scale = FloatScale(E4M3)
    >>> scale.value(scale.choose(np.array([6.0, 10.0, 1e-9, 0.0, 1e9]), E2M1)).tolist()
    [1.0, 1.625, 0.001953125, 0.0, 448.0]
    """

    encoding: SmallFloat

    @property
    def nan(self) -> int | None:
        """Return the byte of NaN.

        >>> from tilewright.formats.element_encoding import E4M3
        >>> FloatScale(E4M3).nan
        127
        """
        return self.encoding.nan

    @property
    def last(self) -> int:
        """Return 255: every byte is valid."""
        return 255

    @property
    def smallest(self) -> float:
        """Return the smallest positive scale.

        >>> from tilewright.formats.element_encoding import E4M3
        >>> FloatScale(E4M3).smallest == 2**-9
        True
        """
        return self.encoding.smallest

    def choose(self, largest: Floats, element: ElementEncoding) -> Codes:
        """Return the scale bytes of blocks with the given `largest` magnitudes and `element` encoding.

        >>> from tilewright.formats.element_encoding import E4M3
        >>> FloatScale(E4M3).choose(np.array([448.0, 0.0]), E4M3).tolist()
        [56, 0]
        """
        scale_bytes = self.encoding.encode(largest / element.largest)
        return np.maximum(scale_bytes, (largest > 0.0).astype(np.uint8))

    def value(self, scales: Codes) -> Floats:
        """Return the factors of the scale bytes.

        >>> from tilewright.formats.element_encoding import E4M3
        >>> FloatScale(E4M3).value(np.array([0x38, 0x7F], dtype=np.uint8)).tolist()
        [1.0, nan]
        """
        return self.encoding.decode(scales)

    def highest(self, element: ElementEncoding) -> float:
        """Return the largest value that elements with these scales can represent, without a tensor scale.

        >>> from tilewright.formats.element_encoding import E2M1, E4M3
        >>> FloatScale(E4M3).highest(E2M1)
        2688.0
        """
        return self.encoding.largest * element.largest


ScaleEncoding: TypeAlias = PowerOfTwo | FloatScale
