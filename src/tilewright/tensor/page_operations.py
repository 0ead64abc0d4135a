# SPDX-License-Identifier: Apache-2.0
"""Operations on the pages of a tensor: conversion, padding, ranges of whole pages, and copies to a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..copying import execute, plan_copy
from ..copying.host_memory import aligned_empty
from ..errors import LayoutError, MemoryConfigError
from ..layout.tuples import ceil_div
from ..layout.validation import as_integer
from ..memory import Device, PageLayout, TensorSpec, alignment_of, from_bytes, to_bytes
from ..memory.device import host_placement
from .page_storage import Bytes, DeviceStorage


def convert_pages(pages: Bytes, before: TensorSpec, after: TensorSpec, fill: Any = 0) -> Bytes:
    """Return `pages` of a tensor as pages of another spec of the same shape: one plan converts, retiles and pads.

    >>> rows, tiles = TensorSpec((2, 3), "uint8"), TensorSpec((2, 3), "uint8", "tile", (1, 16))
    >>> convert_pages(np.arange(6, dtype=np.uint8), rows, tiles, fill=9)[:5].tolist()
    [0, 1, 2, 9, 9]
    """
    if len(before.padded_shape) != len(after.padded_shape):  # ranks below 2 are extended, which is not a single plan
        return to_bytes(from_bytes(pages, before), after, fill)
    out = aligned_empty(after.nbytes, np.uint8)
    if after.nbytes:
        execute(plan_copy(host_placement(before), host_placement(after, fill)), pages, out)
    return out


def padding_as_data(spec: TensorSpec) -> TensorSpec:
    """Return the spec of the same pages in which padding counts as data.

    >>> padding_as_data(TensorSpec((5, 7), page_layout="tile")).shape
    Shape([32, 32])
    """
    return TensorSpec(spec.padded_shape, spec.dtype, spec.page_layout, spec.tile)


def pad_spec(
    spec: TensorSpec, padded_shape: Sequence[int], start: Sequence[int] | None = None
) -> tuple[TensorSpec, tuple[int, ...]]:
    """Return (spec, start): the spec with a larger padded shape, and where the data start in it. Row-major only.

    >>> pad_spec(TensorSpec((5, 7), "float32"), (6, 10), (0, 1))
    (TensorSpec((5, 7), 'float32', 'row_major', alignment=(6, 10)), (0, 1))
    """
    if spec.page_layout is not PageLayout.ROW_MAJOR:
        raise MemoryConfigError(f"pad needs a row-major tensor, got {spec.tile}; use to_layout('row_major') first")
    extents = tuple([int(as_integer(n, "an extent")) for n in padded_shape])
    begin = tuple([int(as_integer(n, "a start")) for n in start]) if start is not None else (0,) * len(extents)
    if len(extents) != spec.shape.rank or len(begin) != spec.shape.rank:
        raise LayoutError(
            f"{spec.shape!r} needs a padded extent and a start per dimension, got {list(extents)} and {list(begin)}"
        )
    if any(first < 0 or first + n > size for first, n, size in zip(begin, spec.shape, extents, strict=True)):
        raise LayoutError(
            f"{spec.shape!r} from {list(begin)} on does not fit into the padded shape {list(extents)};"
            " each padded extent must be at least start + extent"
        )
    alignment = alignment_of(extents) if all(extents) and extents else None
    return TensorSpec(spec.shape.logical, spec.dtype, "row_major", None, spec.memory, spec.chip, alignment), begin


def page_grid(pages: Bytes, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return the pages of a tiled tensor as an array: outer dimensions, rows and columns of tiles, bytes of a tile.

    >>> spec = TensorSpec((2, 64, 96), "bfloat16", "tile")
    >>> page_grid(np.zeros(spec.nbytes, np.uint8), spec).shape
    (2, 2, 3, 2048)
    """
    if spec.page_layout is not PageLayout.TILE:
        raise TypeError(f"page_grid needs a tiled tensor, got {spec}")
    *outer, rows, columns = spec.padded_shape
    return pages.reshape(*outer, rows // spec.tile.height, columns // spec.tile.width, spec.page_bytes)


def upload_pages(pages: Bytes, spec: TensorSpec, device: Device) -> DeviceStorage:
    """Allocate memory for a tensor on `device`, write its pages, and return the storage.

    >>> upload_pages(np.zeros(8, np.uint8), TensorSpec((8,), "uint8"), Device("wormhole_n150")).allocation.size
    32
    """
    storage = DeviceStorage(device, device.allocate(spec))
    device.write(storage.allocation, pages)
    return storage


@dataclass(frozen=True, slots=True)
class Ranges:
    """Half-open ranges with steps, one per dimension.

    >>> Ranges.of((slice(1, None), 3), (4, 8)).shape
    (3, 1)
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Any, extents: tuple[int, ...]) -> Ranges:
        """Return the ranges that slices and indices select from dimensions with these extents; missing ones are whole.

        >>> Ranges.of((slice(1, 3),), (4, 8)).slices
        (slice(1, 3, 1), slice(0, 8, 1))
        """
        entries = list(ranges) if isinstance(ranges, tuple) else [ranges]
        if Ellipsis in entries:
            dots = entries.index(Ellipsis)
            entries[dots : dots + 1] = [slice(None)] * (len(extents) - len(entries) + 1)
        if len(entries) > len(extents):
            raise LayoutError(
                f"expected at most {len(extents)} ranges for the shape {list(extents)}, got {len(entries)}"
            )
        entries += [slice(None)] * (len(extents) - len(entries))
        bounds = [_range_bounds(entry, n) for entry, n in zip(entries, extents, strict=True)]
        starts, stops, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
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
        return tuple([slice(*bounds) for bounds in zip(self.starts, self.stops, self.steps, strict=True)])


def _range_bounds(entry: Any, extent: int) -> tuple[int, int, int]:
    """Return (start, stop, step) of a slice or an index of a dimension."""
    if isinstance(entry, slice):
        start, stop, step = entry.indices(extent)
        if step < 1:
            raise LayoutError(f"the step of a slice must be positive, got {step}; reverse the array instead")
        return start, max(start, stop), step
    index = int(as_integer(entry, "an index"))
    if not -extent <= index < extent:
        raise LayoutError(f"index {index} is outside a dimension of {extent}; use {-extent} to {extent - 1}")
    return index % extent, index % extent + 1, 1


def page_ranges(spec: TensorSpec, ranges: Ranges) -> Ranges | None:
    """Return the ranges of pages that ranges of elements cover; None if they cut through tiles.

    >>> page_ranges(TensorSpec((128, 64), page_layout="tile"), Ranges.of((slice(32, 96),), (128, 64))).slices
    (slice(1, 3, 1), slice(0, 2, 1))
    """
    rank, logical = spec.shape.rank, spec.shape.logical
    if rank < 2 or spec.page_layout is not PageLayout.TILE or spec.padded_shape[:-2] != logical[:-2]:
        return None
    starts, stops, steps = (list(bounds) for bounds in (ranges.starts, ranges.stops, ranges.steps))
    for d, unit in ((-2, spec.tile.height), (-1, spec.tile.width)):
        ends_at_tile = stops[d] % unit == 0 or stops[d] == logical[d]
        if starts[d] % unit or not ends_at_tile or steps[d] != 1:
            return None
        starts[d], stops[d] = starts[d] // unit, ceil_div(stops[d], unit)
    return Ranges(tuple(starts), tuple(stops), tuple(steps))
