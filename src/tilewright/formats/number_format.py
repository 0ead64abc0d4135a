# SPDX-License-Identifier: Apache-2.0
"""What scalar and block formats have in common: sizes, sections of a tile, and the range of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .scalar_format import ScalarFormat


@dataclass(frozen=True, slots=True)
class Sections:
    """The sizes in bytes of the sections of a tile, in storage order: scales, padding, codes.

    >>> Sections(scales=2, padding=14, data=32).total
    48
    """

    scales: int
    padding: int
    data: int

    @property
    def data_offset(self) -> int:
        """Return the offset of the codes in bytes.

        >>> Sections(scales=2, padding=14, data=32).data_offset
        16
        """
        return self.scales + self.padding

    @property
    def total(self) -> int:
        """Return the size of the tile in bytes.

        >>> Sections(scales=64, padding=0, data=1024).total
        1088
        """
        return self.scales + self.padding + self.data


@dataclass(frozen=True, slots=True)
class Limits:
    """The range of a format: its lowest, highest and smallest positive finite values.

    >>> Limits(lowest=-128, highest=127, smallest=1).highest
    127
    """

    lowest: float
    highest: float
    smallest: float

    def __str__(self) -> str:
        """Return the range as text, such as "-128 to 127".

        >>> print(Limits(-128, 127, 1))
        -128 to 127
        """
        return f"{self.lowest} to {self.highest}"


class NumberFormat:
    """The base of `ScalarFormat` and `BlockFormat`.

    `has_blocks` says which of the two a format is: in a block format, neighbouring elements share a scale, so that a
    single element has no bytes of its own.

    >>> from tilewright.formats import bfloat8_b, bfloat16
    >>> bfloat16.has_blocks, bfloat8_b.has_blocks
    (False, True)
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

        @property
        def limits(self) -> Limits: ...

        @property
        def value_format(self) -> ScalarFormat: ...

        @property
        def storage_format(self) -> ScalarFormat: ...

        def sections(self, elements: int) -> Sections: ...

    @property
    def max_value(self) -> float:
        """Return the largest finite value; of a format with a tensor scale, in units of it.

        >>> from tilewright.formats import bfloat4_a, float16
        >>> float16.max_value, bfloat4_a.max_value == 1.75 * 2**16
        (65504.0, True)
        """
        return self.limits.highest

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype of unpacked values: its own dtype, or float32 for a block format.

        >>> from tilewright.formats import bfloat8_b, int8
        >>> int8.value_dtype.name, bfloat8_b.value_dtype.name
        ('int8', 'float32')
        """
        return self.value_format.dtype

    def bytes_per_tile(self, elements: int) -> int:
        """Return the size in bytes of a tile with the given number of `elements`.

        >>> from tilewright.formats import bfloat8_b, bfloat4_b, bfloat16
        >>> bfloat16.bytes_per_tile(1024), bfloat8_b.bytes_per_tile(1024), bfloat4_b.bytes_per_tile(1024)
        (2048, 1088, 576)
        """
        return self.sections(elements).total

    def __str__(self) -> str:
        return self.name
