# SPDX-License-Identifier: Apache-2.0
"""Ranges: the part of a tensor that slices and indices take, in elements and in whole tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LayoutError
from ..layout import ceil_div
from ..layout.integers import as_integer
from ..memory import PageLayout, TensorSpec


@dataclass(frozen=True, slots=True)
class Ranges:
    """Half-open ranges with steps, one for each dimension.

    >>> Ranges.of((slice(1, None), 3), (4, 8)).shape
    (3, 1)
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Any, extents: tuple[int, ...]) -> Ranges:
        """Return the ranges that slices and indices take of some extents; what is left out is whole.

        >>> Ranges.of((slice(1, 3),), (4, 8)).slices
        (slice(1, 3, 1), slice(0, 8, 1))
        """
        given = list(ranges) if isinstance(ranges, tuple) else [ranges]
        if Ellipsis in given:
            at = given.index(Ellipsis)
            given[at : at + 1] = [slice(None)] * (len(extents) - len(given) + 1)
        if len(given) > len(extents):
            raise LayoutError(f"{len(given)} ranges are too many for the {len(extents)} dimensions {list(extents)}")
        given += [slice(None)] * (len(extents) - len(given))
        found = [_range(each, n) for each, n in zip(given, extents, strict=True)]
        starts, stops, steps = zip(*found, strict=True) if found else ((), (), ())
        return cls(tuple(starts), tuple(stops), tuple(steps))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of elements along each dimension.

        >>> Ranges((0,), (7,), (2,)).shape
        (4,)
        """
        bounds = zip(self.starts, self.stops, self.steps, strict=True)
        return tuple([ceil_div(max(0, stop - start), step) for start, stop, step in bounds])

    @property
    def slices(self) -> tuple[slice, ...]:
        """Return the ranges as slices.

        >>> Ranges((0,), (7,), (2,)).slices
        (slice(0, 7, 2),)
        """
        return tuple([slice(*each) for each in zip(self.starts, self.stops, self.steps, strict=True)])


def _range(given: Any, extent: int) -> tuple[int, int, int]:
    if isinstance(given, slice):
        start, stop, step = given.indices(extent)
        if step < 1:
            raise LayoutError(f"a slice of a tensor goes forwards, got a step of {step}; flip the array instead")
        return start, max(start, stop), step
    at = int(as_integer(given, "an index"))
    if not -extent <= at < extent:
        raise LayoutError(f"index {at} is outside a dimension of {extent}; use {-extent} to {extent - 1}")
    return at % extent, at % extent + 1, 1


def page_ranges(spec: TensorSpec, taken: Ranges) -> Ranges | None:
    """Return the ranges of pages that ranges of elements cover, None where they cut tiles.

    >>> page_ranges(TensorSpec((128, 64), page_layout="tile"), Ranges.of((slice(32, 96),), (128, 64))).slices
    (slice(1, 3, 1), slice(0, 2, 1))
    """
    rank, logical = spec.shape.rank, spec.shape.logical
    if rank < 2 or spec.page_layout is not PageLayout.TILE or spec.padded_shape[:-2] != logical[:-2]:
        return None
    starts, stops, steps = (list(each) for each in (taken.starts, taken.stops, taken.steps))
    for d, unit in ((-2, spec.tile.height), (-1, spec.tile.width)):
        ends_well = stops[d] % unit == 0 or stops[d] == logical[d]
        if starts[d] % unit or not ends_well or steps[d] != 1:
            return None
        starts[d], stops[d] = starts[d] // unit, ceil_div(stops[d], unit)
    return Ranges(tuple(starts), tuple(stops), tuple(steps))
