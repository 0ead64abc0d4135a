# SPDX-License-Identifier: Apache-2.0
"""The pages of a tensor: storage on the host, owned or borrowed, or on a device; conversion, padding and slices."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from .._integers import ceil_div
from ..copying import execute, plan_copy
from ..copying.host_memory import aligned_empty
from ..errors import LayoutError, MemoryConfigError, TransferError
from ..layout.validation import as_integer
from ..memory import Allocation, Device, PageLayout, TensorSpec, alignment_of, from_bytes, to_bytes
from ..memory.device import host_placement
from .store import Number

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


class StorageType(Enum):
    """Who owns the bytes of a tensor.

    >>> StorageType.BORROWED_HOST.is_host
    True
    """

    OWNED_HOST = 0
    BORROWED_HOST = 1
    DEVICE = 2

    @property
    def is_host(self) -> bool:
        """Return whether the bytes are in the memory of this process.

        >>> StorageType.DEVICE.is_host
        False
        """
        return self is not StorageType.DEVICE


@dataclass(frozen=True, slots=True, eq=False)
class HostStorage:
    """Pages on the host, one after the other, and who owns them.

    >>> HostStorage(np.zeros(8, np.uint8), StorageType.OWNED_HOST).data.nbytes
    8
    """

    data: Bytes
    type: StorageType


class DeviceStorage:
    """A block of device memory, freed when nothing refers to it any more, or by `free`.

    >>> from tilewright import TensorSpec
    >>> device = Device("wormhole_n150")
    >>> block = DeviceStorage(device, device.allocate(TensorSpec((4, 4))))
    >>> block.free()
    >>> device.memory_view("dram").allocated
    0
    """

    type = StorageType.DEVICE

    def __init__(self, device: Device, allocation: Allocation) -> None:
        self.device = device
        self._allocation = allocation
        self._release = weakref.finalize(self, device.free, allocation)

    @property
    def allocation(self) -> Allocation:
        """Return the block; raise if it was freed, or if its device was closed.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).allocation.address
        1048640
        """
        if not self._release.alive:
            raise TransferError(f"the tensor at {self._allocation.address} of {self.device.chip.name} was deallocated")
        if not self.device.is_open:
            raise TransferError(
                f"the tensor at {self._allocation.address} was on a {self.device.chip.name} that is closed; copy it to"
                " the host before the device is closed"
            )
        return self._allocation

    @property
    def is_allocated(self) -> bool:
        """Return whether the block is still allocated.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).is_allocated
        True
        """
        return self._release.alive and self.device.is_open

    def free(self) -> None:
        """Free the block; a second call does nothing.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).free()
        """
        self._release()


def convert_pages(pages: Bytes, before: TensorSpec, after: TensorSpec, fill: Number = 0) -> Bytes:
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


RangeEntry: TypeAlias = "slice | SupportsIndex | EllipsisType"


def index_ranges(entries: Sequence[RangeEntry], extents: tuple[int, ...]) -> tuple[range, ...]:
    """Return the indices that slices and integers select from dimensions with these extents; missing ones are whole.

    >>> index_ranges((slice(1, None), 3), (4, 8))
    (range(1, 4), range(3, 4))
    """
    complete = list(entries)
    if Ellipsis in complete:
        dots = complete.index(Ellipsis)
        complete[dots : dots + 1] = [slice(None)] * (len(extents) - len(complete) + 1)
    if len(complete) > len(extents):
        raise LayoutError(f"expected at most {len(extents)} ranges for the shape {list(extents)}, got {len(complete)}")
    complete += [slice(None)] * (len(extents) - len(complete))
    return tuple([_index_range(entry, n) for entry, n in zip(complete, extents, strict=True)])


def _index_range(entry: RangeEntry, extent: int) -> range:
    """Return the indices that a slice or an integer selects from a dimension."""
    if isinstance(entry, slice):
        start, stop, step = entry.indices(extent)
        if step < 1:
            raise LayoutError(f"the step of a slice must be positive, got {step}; reverse the array instead")
        return range(start, max(start, stop), step)
    index = int(as_integer(entry, "an index"))
    if not -extent <= index < extent:
        raise LayoutError(f"index {index} is outside a dimension of {extent}; use {-extent} to {extent - 1}")
    return range(index % extent, index % extent + 1)


def page_slices(spec: TensorSpec, selected: tuple[range, ...]) -> tuple[slice, ...] | None:
    """Return the slices of the grid of pages that ranges of elements cover; None if they cut through tiles.

    >>> page_slices(TensorSpec((128, 64), page_layout="tile"), (range(32, 96), range(64)))
    (slice(1, 3, 1), slice(0, 2, 1))
    """
    rank, logical = spec.shape.rank, spec.shape.logical
    if rank < 2 or spec.page_layout is not PageLayout.TILE or spec.padded_shape[:-2] != logical[:-2]:
        return None
    slices = [slice(part.start, part.stop, part.step) for part in selected]
    for d, unit in ((-2, spec.tile.height), (-1, spec.tile.width)):
        part = selected[d]
        ends_at_tile = part.stop % unit == 0 or part.stop == logical[d]
        if part.start % unit or not ends_at_tile or part.step != 1:
            return None
        slices[d] = slice(part.start // unit, ceil_div(part.stop, unit), 1)
    return tuple(slices)
