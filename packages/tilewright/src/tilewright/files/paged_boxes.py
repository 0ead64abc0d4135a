# SPDX-License-Identifier: Apache-2.0
"""`PagedBoxes`: the runs of bytes that hold a box of a tensor.

The runs of a box, one after the other, are themselves the pages of a smaller tensor. So a box is read, converted and
written by the same copies as an entire tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from .._integers import round_up
from ..errors import LayoutError
from ..layout import Box
from ..memory import TensorSpec, alignment_of, padded_extents

Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class PagedBoxes:
    """The boxes of a tensor that consist of entire pages: tiles, or elements of rows.

    >>> boxes = PagedBoxes(TensorSpec((100, 70), "bfloat8_b"))
    >>> box = boxes.enclosing_box(Box((40, 33), (10, 1)))
    >>> box, boxes.runs(box)
    (Box(offset=(32, 32), shape=(32, 32)), [(4352, 1088)])
    """

    spec: TensorSpec

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Return the extents that boxes are multiples of, up to the edge of the tensor.

        >>> PagedBoxes(TensorSpec((5, 100, 70), "bfloat8_b")).units
        (1, 32, 32)
        """
        return _last_units(self.spec.unit, self.spec.shape.rank)

    @cached_property
    def _stored_units(self) -> tuple[int, ...]:
        """Return the same, with the rank of the padded shape."""
        return _last_units(self.spec.unit, len(self.spec.padded_shape))

    @cached_property
    def _grid(self) -> tuple[int, ...]:
        """Return the number of units along each dimension as stored, padding included."""
        return tuple([n // unit for n, unit in zip(self.spec.padded_shape, self._stored_units, strict=True)])

    @cached_property
    def _unit_bytes(self) -> int:
        return self.spec.page_bytes if self.spec.is_tiled else self.spec.dtype.storage_format.itemsize

    def enclosing_box(self, box: Box) -> Box:
        """Return the smallest box of entire pages that contains a box.

        >>> PagedBoxes(TensorSpec((100, 70), page_layout="tile")).enclosing_box(Box((0, 65), (33, 5)))
        Box(offset=(0, 64), shape=(64, 6))
        """
        start = tuple([a // unit * unit for a, unit in zip(box.offset, self.units, strict=True)])
        ends = zip(box.end, self.units, self.spec.shape.logical, strict=True)
        return Box.between(start, tuple([min(round_up(b, unit), n) for b, unit, n in ends]))

    def _unit_range(self, box: Box) -> tuple[list[int], list[int]]:
        """Return the start and extents of a box of entire pages, in units as stored."""
        lead = len(self._grid) - len(box.offset)
        start, count = [0] * lead, list(self._grid[:lead])  # a tensor without rows is stored with some
        ends = zip(box.offset, box.end, self.units, self.spec.shape.logical, self._grid[lead:], strict=True)
        for a, b, unit, n, units in ends:
            if a % unit or (b % unit and b != n):
                raise LayoutError(f"{box} is not a box of entire pages of {self.spec}; use enclosing_box(box)")
            start.append(a // unit)
            count.append((units if b == n else b // unit) - a // unit)  # the last box has the padding
        return start, count

    def runs(self, box: Box) -> Runs:
        """Return the runs of bytes (offset, size) of a box of entire pages, in the order of its pages.

        >>> PagedBoxes(TensorSpec((4, 8), "int16")).runs(Box((1, 2), (2, 2)))
        [(20, 4), (36, 4)]
        """
        start, count = self._unit_range(box)
        if not all(count):
            return []
        inner = len(count)  # dimensions from here on are whole, and lie in one run with the one before
        while inner and count[inner - 1] == self._grid[inner - 1]:
            inner -= 1
        steps = [prod(self._grid[d + 1 :]) * self._unit_bytes for d in range(len(self._grid))]
        last = max(inner - 1, 0)
        size = prod(count[last:]) * self._unit_bytes if count else self._unit_bytes
        offsets = np.full((), sum(a * step for a, step in zip(start, steps, strict=True)), np.int64)
        for n, step in zip(count[:last], steps[:last], strict=True):
            offsets = offsets[..., None] + np.arange(n, dtype=np.int64) * step
        return [(int(at), size) for at in offsets.reshape(-1)]

    def page_window(self, box: Box) -> Box:
        """Return a box of entire pages with the padding in them, in coordinates of the padded tensor.

        >>> PagedBoxes(TensorSpec((100, 70), "bfloat8_b")).page_window(Box((96, 0), (4, 70)))
        Box(offset=(96, 0), shape=(32, 96))
        """
        start, count = self._unit_range(box)
        extents = [
            tuple([n * unit for n, unit in zip(each, self._stored_units, strict=True)]) for each in (start, count)
        ]
        return Box(extents[0], extents[1])

    def box_spec(self, box: Box) -> TensorSpec:
        """Return the spec of the bytes of a box of entire pages.

        >>> PagedBoxes(TensorSpec((100, 70), "bfloat8_b")).box_spec(Box((96, 0), (4, 70)))
        TensorSpec((4, 70), 'bfloat8_b', 'tile')
        """
        whole = self.spec
        _, count = self._unit_range(box)
        padded = tuple([n * unit for n, unit in zip(count, self._stored_units, strict=True)])
        is_default = padded_extents(box.shape, whole.tile.shape if whole.is_tiled else (1,)) == padded or 0 in padded
        alignment = None if is_default else alignment_of(padded)
        return TensorSpec(box.shape, whole.dtype, whole.page_layout, whole.tile, alignment=alignment)


def _last_units(unit: tuple[int, int], rank: int) -> tuple[int, ...]:
    """Return the units of `rank` dimensions, of which the last two have a unit of (rows, columns)."""
    return ((1,) * rank + unit)[-rank:] if rank else ()
