# SPDX-License-Identifier: Apache-2.0
"""Pages on the host: moved into other pages, seen as a grid of pages, or written to a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..copying import execute, plan_copy
from ..copying.host_memory import aligned_empty
from ..errors import LayoutError, MemoryConfigError
from ..layout.integers import as_integer
from ..memory import Device, PageLayout, TensorSpec, alignment_of, from_bytes, to_bytes
from ..memory.host_storage import host_placement
from .tensor_storage import Bytes, DeviceStorage


def moved(pages: Bytes, before: TensorSpec, after: TensorSpec, fill: Any = 0) -> Bytes:
    """Return the pages of a tensor for another spec of the same shape: one plan converts, retiles and pads.

    >>> rows, tiles = TensorSpec((2, 3), "uint8"), TensorSpec((2, 3), "uint8", "tile", (1, 16))
    >>> moved(np.arange(6, dtype=np.uint8), rows, tiles, fill=9)[:5].tolist()
    [0, 1, 2, 9, 9]
    """
    if len(before.padded_shape) != len(after.padded_shape):  # a tensor without rows gets some: not one plan
        return to_bytes(from_bytes(pages, before), after, fill)
    out = aligned_empty(after.nbytes, np.uint8)
    if after.nbytes:
        execute(plan_copy(host_placement(before), host_placement(after, fill)), pages, out)
    return out


def without_padding(spec: TensorSpec) -> TensorSpec:
    """Return the spec under which padding counts as data, in the same pages.

    >>> without_padding(TensorSpec((5, 7), page_layout="tile")).shape
    Shape([32, 32])
    """
    return TensorSpec(spec.padded_shape, spec.dtype, spec.page_layout, spec.tile)


def with_room(spec: TensorSpec, shape: Any, start: Any = None) -> tuple[TensorSpec, tuple[int, ...]]:
    """Return the spec whose padded shape is this one, and where in it the data start; rows only.

    >>> with_room(TensorSpec((5, 7), "float32"), (6, 10), (0, 1))
    (TensorSpec((5, 7), 'float32', 'row_major', alignment=(6, 10)), (0, 1))
    """
    if spec.page_layout is not PageLayout.ROW_MAJOR:
        raise MemoryConfigError(f"tiles of {spec.tile} are padded to whole tiles; use to_layout('row_major') first")
    extents = tuple([int(as_integer(n, "an extent")) for n in shape])
    begin = tuple([int(as_integer(n, "a start")) for n in start]) if start is not None else (0,) * len(extents)
    if len(extents) != spec.shape.rank or len(begin) != spec.shape.rank:
        raise LayoutError(
            f"{spec.shape!r} needs {spec.shape.rank} padded extents and as many starts, got {list(extents)} and"
            f" {list(begin)}"
        )
    if any(at < 0 or at + n > room for at, n, room in zip(begin, spec.shape, extents, strict=True)):
        raise LayoutError(
            f"{spec.shape!r} from {list(begin)} on does not fit the padded shape {list(extents)};"
            " each extent must be at least start + size"
        )
    alignment = alignment_of(extents) if all(extents) and extents else None
    return TensorSpec(spec.shape.logical, spec.dtype, "row_major", None, spec.memory, spec.chip, alignment), begin


def page_grid(pages: Bytes, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return the pages of a tiled tensor as an array: its outer dimensions, rows and columns of tiles, and bytes.

    >>> spec = TensorSpec((2, 64, 96), "bfloat16", "tile")
    >>> page_grid(np.zeros(spec.nbytes, np.uint8), spec).shape
    (2, 2, 3, 2048)
    """
    if spec.page_layout is not PageLayout.TILE:
        raise TypeError(f"{spec} has no tiles")
    *outer, rows, columns = spec.padded_shape
    return pages.reshape(*outer, rows // spec.tile.height, columns // spec.tile.width, spec.page_bytes)


def put_on_device(pages: Bytes, spec: TensorSpec, device: Device) -> DeviceStorage:
    """Return the block of a device that was allocated for a tensor and holds its pages.

    >>> put_on_device(np.zeros(8, np.uint8), TensorSpec((8,), "uint8"), Device("wormhole_n150")).allocation.size
    32
    """
    storage = DeviceStorage(device, device.allocate(spec))
    device.write(storage.allocation, pages)
    return storage
