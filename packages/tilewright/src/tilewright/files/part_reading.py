# SPDX-License-Identifier: Apache-2.0
"""`PartReading`: the runs of elements that hold a strided part of a source, and the part's layout over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..copying import Mode, Part, modes_layout
from ..layout import Layout

_MIN_RUN_BYTES = 512  # shorter runs are read with what lies between them,
_MAX_GAPS = 4  # if that is not more than this many times as much


@dataclass(frozen=True, slots=True)
class PartReading:
    """How a part is read: runs of `count` elements of its source, and its layout over what they hold together.

    >>> from tilewright.copying.assembly import Assembly
    >>> PartReading.of(Assembly.of("w", (2, 3)).transpose().parts[0], 4).layout
    Layout((3, 2), (1, 3))
    """

    starts: NDArray[np.int64]
    count: int
    layout: Layout

    @classmethod
    def of(cls, part: Part, itemsize: int) -> PartReading:
        """Return the reading of a part of a source with elements of `itemsize` bytes.

        >>> from tilewright.copying.assembly import Assembly
        >>> columns = Assembly.of("w", (4, 4096)).slice(0, 1024, axis=1).parts[0]
        >>> PartReading.of(columns, 2).starts, PartReading.of(columns, 2).count
        (array([    0,  4096,  8192, 12288]), 1024)
        """
        starts, count, layout = _plan_reading(part.modes, itemsize)
        return cls(starts + part.offset, count, layout)

    @property
    def elements(self) -> int:
        """Return the number of elements that are read.

        >>> from tilewright.copying.assembly import Assembly
        >>> PartReading.of(Assembly.of("w", (2, 3)).parts[0], 4).elements
        6
        """
        return len(self.starts) * self.count


@lru_cache(maxsize=128)  # layers have parts of the same shapes
def _plan_reading(modes: tuple[Mode, ...], itemsize: int) -> tuple[NDArray[np.int64], int, Layout]:
    """Return the starts of the runs of a part, the elements of a run, and the layout over them."""
    leaves = sorted([pair for mode in modes for pair in mode if pair[0] > 1 and pair[1]], key=lambda p: p[1])
    dense, inner = 1, 0
    for extent, step in leaves:
        if step > dense and (step > _MAX_GAPS * dense or dense * itemsize >= _MIN_RUN_BYTES):
            break
        dense = (extent - 1) * step + dense
        inner += 1
    outer, reached = leaves[inner:], dense
    for extent, step in outer:
        if step < reached:  # runs would overlap: take all from the first element to the last
            outer, dense = [], sum([(n - 1) * step for n, step in leaves]) + 1
            break
        reached += (extent - 1) * step
    compact = {}
    size = dense
    for extent, step in outer:
        compact[(extent, step)] = size
        size *= extent
    starts = np.zeros((), np.int64)
    for extent, step in reversed(outer):
        starts = starts[..., None] + np.arange(extent, dtype=np.int64) * step
    held = tuple([tuple([(n, compact.get((n, step), step)) for n, step in mode]) for mode in modes])
    return starts.reshape(-1), dense, modes_layout(held)
