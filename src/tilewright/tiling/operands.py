# SPDX-License-Identifier: Apache-2.0
"""Operands of a pipeline: what is read and written, how it is cut, and the port that serves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..copy.device_array import on_device
from ..errors import LayoutError, TransferError
from .extents import extents
from .mapped import MappedPort, is_shared_map
from .ports import DevicePort, MemoryPort, Port, SlicedPort
from .tensors import ExternalTensor
from .tiler import Tiler


@dataclass(frozen=True)
class Input:
    """An operand that is read: where it lives, how it is cut, and what lies around it.

    >>> Input(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).fill
    0
    """

    source: Any
    tiler: Tiler
    fill: Any = 0


@dataclass(frozen=True)
class Output:
    """An operand that is written: where it lives, and how it is cut.

    >>> Output(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).tiler.count
    2
    """

    target: Any
    tiler: Tiler


def port_of(thing: Any, writing: bool = False) -> Port:
    """Return the port of an array, an external tensor, or anything else with a shape, a dtype and slices.

    >>> type(port_of(np.zeros((4, 8)))).__name__
    'MemoryPort'
    """
    if isinstance(thing, ExternalTensor):
        port = MemoryPort(thing)
    elif is_shared_map(thing) and _steps_by_elements(thing):
        port = MappedPort(thing)
    elif isinstance(thing, np.ndarray) and _steps_by_elements(thing):
        port = MemoryPort(ExternalTensor(thing))
    elif (there := on_device(thing)) is not None:
        if writing and not there.writeable:
            raise TransferError(f"cannot write to {type(thing).__name__}, which is read-only; give a writeable target")
        return DevicePort(there)
    elif all(hasattr(thing, name) for name in ("shape", "dtype", "__getitem__")):
        return SlicedPort(thing)
    else:
        raise TransferError(
            f"{type(thing).__name__} has no shape, dtype and slices; give an array, a memory map, a zarr or HDF5"
            " array, or an ExternalTensor"
        )
    if writing and port.tensor.const:
        raise TransferError(f"cannot write to {port.tensor!r}, which is read-only; give a writeable target")
    return port


def _steps_by_elements(array: np.ndarray[Any, Any]) -> bool:
    whole = all(s % array.itemsize == 0 for n, s in zip(array.shape, array.strides, strict=True) if n > 1)
    return array.ndim > 0 and array.itemsize > 0 and whole


def listed(thing: Any) -> list[Any]:
    """Return operands as a list, whether one was given or several.

    >>> listed(7), listed((7, 8))
    ([7], [7, 8])
    """
    return list(thing) if isinstance(thing, (list, tuple)) else [thing]


def halo_of(overlap: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """Return (before, after) of each axis, from one number, one number an axis, or one pair an axis.

    >>> halo_of(1, 2), halo_of((0, (1, 2)), 2)
    (((1, 1), (1, 1)), ((0, 0), (1, 2)))
    """
    each = (overlap,) * rank if not isinstance(overlap, Sequence) else tuple(overlap)
    if len(each) != rank:
        raise LayoutError(f"overlap {overlap!r} has {len(each)} axes, the source {rank}; give one an axis")
    pairs = [extents(pair, "overlap", 2) for pair in each]
    return tuple([(before, after) for before, after in pairs])


def tiler_with_halo(shape: Any, tile: Any, halo: tuple[tuple[int, int], ...], order: str) -> Tiler:
    """Return the tiler of an input: the tiles of the output, each with its halo.

    >>> tiler_with_halo((10,), (4,), ((1, 2),), "row_major")[1]
    Box(offset=(3,), shape=(7,))
    """
    whole = tuple([int(n) for n in shape])
    around = tuple([before + after for before, after in halo])
    if len(around) != len(whole):
        raise LayoutError(f"the sources differ: one has {len(around)} axes, another shape {whole}")
    larger = [t + n for t, n in zip(extents(tile, "tile", len(whole)), around, strict=True)]
    return Tiler(whole, larger, around, halo, order)
