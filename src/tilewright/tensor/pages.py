# SPDX-License-Identifier: Apache-2.0
"""Pages on the host: moved into other pages, seen as a grid of pages, or written to a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..copy import execute, plan_copy
from ..copy.buffers import aligned_empty
from ..memory import Device, TensorLayout, TensorSpec, from_bytes, to_bytes
from ..memory.host_bytes import host_placement
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

    >>> without_padding(TensorSpec((5, 7), layout="tile")).shape
    Shape([32, 32])
    """
    return TensorSpec(spec.padded_shape, spec.dtype, spec.layout, spec.tile)


def page_grid(pages: Bytes, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return the pages of a tiled tensor as an array: its outer dimensions, rows and columns of tiles, and bytes.

    >>> spec = TensorSpec((2, 64, 96), "bfloat16", "tile")
    >>> page_grid(np.zeros(spec.nbytes, np.uint8), spec).shape
    (2, 2, 3, 2048)
    """
    if spec.layout is not TensorLayout.TILE:
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
