# SPDX-License-Identifier: Apache-2.0
"""Operands of a pipeline: what is read and written, how it is cut, and the port that serves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..copying.device_array import find_device_array
from ..errors import LayoutError, TransferError
from .extents import extents
from .mapped import MappedPort, map_of
from .ports import DevicePort, MemoryPort, Port, SlicedPort, check_plain
from .stores import check_open
from .tensors import ExternalTensor
from .tiler import Tiler


@dataclass(frozen=True, eq=False)  # it stands for storage, which is equal to itself alone
class Input:
    """An operand that is read: where it lives, how it is cut, and what lies around it.

    >>> Input(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).fill
    0
    """

    source: Any
    tiler: Tiler
    fill: Any = 0


@dataclass(frozen=True, eq=False)
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
    check_operand(thing, "target" if writing else "source")
    if isinstance(thing, ExternalTensor):
        port = MemoryPort(thing)
    elif isinstance(thing, np.ndarray) and _steps_by_elements(thing):
        port = MemoryPort(ExternalTensor(thing)) if map_of(thing) is None else MappedPort(thing)
    elif (there := find_device_array(thing)) is not None:
        if writing and not there.writeable:
            raise TransferError(f"cannot write to {type(thing).__name__}, which is read-only; give a writeable target")
        return DevicePort(there)
    else:
        return SlicedPort(thing)
    if writing and port.tensor.const:
        raise TransferError(f"cannot write to {port.tensor!r}, which is read-only; give a writeable target")
    return port


def check_operand(thing: Any, what: str) -> None:
    """Raise unless tiles of an object can be read or written: an array of plain elements with at least one axis.

    >>> check_operand(None, "target")
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: expected a target with shape, dtype and slices, got None; give an array, ...
    """
    if isinstance(thing, ExternalTensor):
        return
    check_open(thing)
    on_host = find_device_array(thing) is None
    methods = ("__getitem__", "__setitem__") if what == "target" else ("__getitem__",)
    if on_host and (isinstance(thing, type) or not all(hasattr(thing, name) for name in ("shape", "dtype", *methods))):
        raise TransferError(
            f"expected a {what} with shape, dtype and slices, got {'None' if thing is None else type(thing).__name__};"
            " give an array, a memory map, a zarr or HDF5 array, or an ExternalTensor"
        )
    check_plain(thing, f"the {what}")
    shape = extents(tuple(thing.shape), f"the shape of the {what}")
    if not shape:
        raise LayoutError(f"the {what} is a single element without axes, which has no tiles; give array.reshape(1)")
    if min(shape) < 0 or prod([max(n, 1) for n in shape]) >= 1 << 62:
        raise LayoutError(f"the {what} has shape {shape}; extents must be positive, and their product below 2**62")
    if not on_host:
        return
    try:
        dtype = np.dtype(thing.dtype)
    except TypeError:
        raise TransferError(
            f"the {what} has elements of {thing.dtype!r}, which is not a NumPy type; pass it as a NumPy array, such as"
            " tensor.numpy()"
        ) from None
    if dtype.hasobject:
        raise LayoutError(f"the {what} holds Python objects ({dtype}), which cannot be moved as bytes; use numbers")
    if not dtype.itemsize:
        raise LayoutError(f"the {what} has elements of {dtype}, which take no bytes; use another type")


def check_one_shape(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Raise unless all sources and targets have the shape of the first source, element for element.

    >>> check_one_shape([np.zeros(4)], [np.zeros(5)])
    Traceback (most recent call last):
        ...
    tilewright.errors.LayoutError: source has shape (4,), target has shape (5,); they must be equal, or ...
    """
    named = [*[("source", thing) for thing in sources], *[("target", thing) for thing in targets]]
    shapes = [(what, tuple([int(n) for n in thing.shape])) for what, thing in named]
    for what, shape in shapes[1:]:
        if shape != shapes[0][1]:
            raise LayoutError(
                f"source has shape {shapes[0][1]}, {what} has shape {shape}; they must be equal, or cut by tilers of"
                " their own: Pipeline([Input(source, tiler)], [Output(target, tiler)]). A halo is overlap=, not a"
                " larger source"
            )


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
