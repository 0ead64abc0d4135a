# SPDX-License-Identifier: Apache-2.0
"""`OffsetExplanation`: where a layout, or a tensor in memory with one, has an element, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..layout import Layout, LayoutLike
from ..layout.coordinate import leaf_coordinates
from ..layout.tuples import Coordinate, leaves


@dataclass(frozen=True, slots=True)
class OffsetExplanation:
    """Where an element of a `layout` is: its offset, and in storage the scalar and the byte.

    `start` is the first scalar of a tensor in its storage, and `itemsize` the bytes of a scalar; both are None for a
    layout alone, and a text of one may state `itemsize`.

    >>> from tilewright import row_major
    >>> explanation = OffsetExplanation(row_major(4, 8), (2, 5), start=100, itemsize=2)
    >>> print(explanation)
    element   (2, 5) of (4,8):(8,1)
    offset    21 = 2 x 8 + 5
    storage   scalar 121 = 100 + 21
    byte      242 = 121 x 2
    """

    layout: LayoutLike
    coordinate: tuple[Coordinate, ...]
    start: int | None = None
    itemsize: int | None = None

    @property
    def offset(self) -> Any:
        """Return the offset, or the place on named axes.

        >>> from tilewright import row_major
        >>> OffsetExplanation(row_major(4, 8), (2, 5)).offset
        21
        """
        return self.layout(*self.coordinate)

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps as pairs of a name and a description.

        >>> from tilewright import row_major
        >>> OffsetExplanation(row_major(4, 8), (2, 5)).steps()[-1]
        ('offset', '21 = 2 x 8 + 5')
        """
        at = ", ".join(map(str, self.coordinate))
        comma = "," if len(self.coordinate) == 1 else ""
        padding = "" if self.layout.valid(*self.coordinate) else ", which is padding"
        found = [("element", f"({at}{comma}) of {self.layout}{padding}"), ("offset", self._format_offset())]
        if self.start is not None:
            scalar = self.start + self.offset
            sum_of = f" = {self.start} + {self.offset}" if self.start else ""
            found.append(("storage", f"scalar {scalar}{sum_of}"))
        else:
            scalar = self.offset
        if self.itemsize is not None and isinstance(scalar, int):
            found.append(("byte", f"{scalar * self.itemsize} = {scalar} x {self.itemsize}"))
        return found

    def _format_offset(self) -> str:
        """Return the offset, with the sum it results from if the layout is strided."""
        offset = self.offset
        if not isinstance(self.layout, Layout) or self.layout.axes or self.layout.is_replicated:
            return str(offset)
        whole = self.coordinate[0] if len(self.coordinate) == 1 else self.coordinate
        numbers = leaf_coordinates(whole, self.layout.shape)
        terms = [str(self.layout.offset)] if self.layout.offset else []
        for c, step in zip(numbers, leaves(self.layout.stride), strict=True):
            if c and step:
                terms.append(str(c) if step == 1 else f"{c} x {step}")
        return f"{offset} = {' + '.join(terms)}" if len(terms) > 1 or "x" in "".join(terms) else str(offset)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of all steps.

        >>> from tilewright import row_major
        >>> OffsetExplanation(row_major(4, 8), (2, 5)).to_json()["offset"]
        21
        """
        offset = self.offset
        numbers = {"coordinate": list(self.coordinate), "offset": offset if isinstance(offset, int) else str(offset)}
        return numbers | {"start": self.start, "itemsize": self.itemsize}

    def __str__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self.steps())
