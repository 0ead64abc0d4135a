# SPDX-License-Identifier: Apache-2.0
"""What every format can say about itself: how the bytes of a tile are divided, and which numbers it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sections:
    """The bytes of one tile, in the order in which they are stored: scales, padding after them, codes.

    >>> Sections(scales=2, padding=14, data=32).total
    48
    """

    scales: int
    padding: int
    data: int

    @property
    def data_offset(self) -> int:
        """Return the byte at which the codes begin.

        >>> Sections(scales=2, padding=14, data=32).data_offset
        16
        """
        return self.scales + self.padding

    @property
    def total(self) -> int:
        """Return the bytes of the whole tile.

        >>> Sections(scales=64, padding=0, data=1024).total
        1088
        """
        return self.scales + self.padding + self.data


@dataclass(frozen=True, slots=True)
class Limits:
    """The finite numbers of a format: the lowest, the highest, and the smallest that is greater than zero.

    >>> Limits(lowest=-128, highest=127, smallest=1).highest
    127
    """

    lowest: float
    highest: float
    smallest: float

    def __str__(self) -> str:
        """Return the range as it reads in a message.

        >>> print(Limits(-128, 127, 1))
        -128 to 127
        """
        return f"{self.lowest} to {self.highest}"
