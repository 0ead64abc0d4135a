# SPDX-License-Identifier: Apache-2.0
"""Host arrays as memory: address ranges, exactly which bytes elements occupy, and their placement.

The address ranges of the left and the right half of a matrix overlap, but their footprints have no byte in common.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..errors import FormatError, LayoutError, TransferError
from ..formats import ScalarFormat, scalar_format_of
from ..layout import Layout
from ..layout.layout import make_layout
from .placement import Placement

CACHE_LINE = 64

MAX_MODES = 32  # dimensions of an array in every version of NumPy
MAX_WORK: Any = 10_000  # candidates NumPy tries before it gives up; its stubs know only 0 and -1


def strided_range(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return the lowest byte of strided elements, and one past the highest, relative to element 0; (0, 0) for none.

    >>> strided_range((4, 8), (-32, 4), 4), strided_range((4, 0), (32, 4), 4)
    ((-96, 32), (0, 0))
    """
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    return sum([step for step in reach if step < 0]), sum([step for step in reach if step > 0]) + itemsize


@dataclass(frozen=True, slots=True)
class Buffer:
    """The memory of an array: its bytes from the lowest to the highest address, and the array that owns it.

    >>> Buffer.of(np.zeros((4, 8), dtype=np.float32)).nbytes
    128
    """

    address: int
    nbytes: int
    owner: Any
    writeable: bool

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Buffer:
        """Return the memory of an array.

        >>> Buffer.of(np.arange(8, dtype=np.int8)[::-2]).nbytes
        7
        """
        start = address_of(array)
        if array.size == 0 or array.flags.c_contiguous:
            return cls(start, array.nbytes, array, array.flags.writeable)
        low, high = strided_range(array.shape, array.strides, array.itemsize)
        return cls(start + low, high - low, array, array.flags.writeable)

    @property
    def bytes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the memory as an array of bytes, without a copy.

        >>> Buffer.of(np.array([258], dtype=np.int16)).bytes.tolist()
        [2, 1]
        """
        if self.nbytes == 0:
            return np.zeros(0, dtype=np.uint8)
        memory: Any = (ctypes.c_uint8 * self.nbytes).from_address(self.address)
        view: np.ndarray[Any, np.dtype[np.uint8]] = np.frombuffer(memory, dtype=np.uint8)
        view.flags.writeable = self.writeable
        return view

    def contains(self, address: int) -> bool:
        """Return whether an address is inside this memory.

        >>> here = Buffer.of(np.zeros(4, np.int8))
        >>> here.contains(here.address + 3), here.contains(here.address + 4)
        (True, False)
        """
        return self.address <= address < self.address + self.nbytes

    def overlaps(self, other: Buffer) -> bool:
        """Return whether the address ranges of two buffers overlap, gaps between elements included.

        >>> a = np.zeros(8)
        >>> Buffer.of(a[:5]).overlaps(Buffer.of(a[4:])), Buffer.of(a[:4]).overlaps(Buffer.of(a[4:]))
        (True, False)
        """
        if not self.nbytes or not other.nbytes:
            return False
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


def native_format(dtype: np.dtype[Any]) -> ScalarFormat:
    """Return the format of a dtype in native byte order; raise for any other byte order.

    >>> native_format(np.dtype("int16")).name
    'int16'
    """
    if not dtype.isnative:
        raise FormatError(
            f"{dtype} is not in native byte order; convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    return scalar_format_of(dtype)


def aligned_empty(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return an uninitialised array that starts at a cache line, so that engines can stream whole lines to it.

    >>> aligned_empty((3, 5), np.float32).ctypes.data % 64
    0
    """
    dtype = np.dtype(dtype)
    extents = shape if isinstance(shape, tuple) else (shape,)
    memory = np.empty(prod(extents) * dtype.itemsize + CACHE_LINE, dtype=np.uint8)
    return np.ndarray(extents, dtype, memory, -address_of(memory) % CACHE_LINE)


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first element of an array.

    >>> values = np.arange(4)
    >>> address_of(values[1:]) - address_of(values)
    8
    """
    try:
        return ctypes.addressof(_first_byte(array))  # in a fifth of the time of the other ways
    except (TypeError, ValueError, BufferError):  # it is not contiguous, not writeable, empty, or of another dtype
        address: int = array.__array_interface__["data"][0]
        return address


_first_byte: Any = ctypes.c_char.from_buffer  # NumPy's stubs do not say that arrays are buffers


def placement_of(array: np.ndarray[Any, Any], fill: Any = 0) -> Placement:
    """Return the placement of an array in its memory, with one mode per dimension; padding gets the value `fill`.

    >>> placement_of(np.zeros((4, 8), dtype=np.int8).T).layout
    Layout((8, 4), (1, 8))
    """
    unfilled = _unfilled_placement(array.shape, array.strides, array.dtype)
    return unfilled if fill is unfilled.fill else Placement(unfilled.layout, unfilled.format, fill)


@lru_cache(maxsize=1024)
def _unfilled_placement(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> Placement:
    """Return the placement of all arrays with this shape, strides and dtype."""
    element = native_format(dtype)
    if any(step % dtype.itemsize for n, step in zip(shape, strides, strict=True) if n > 1):
        raise LayoutError(
            f"strides {strides} are not multiples of the element size {dtype.itemsize}; copy the array with"
            " np.ascontiguousarray first"
        )
    steps = tuple([step // dtype.itemsize for step in strides])
    low, _ = strided_range(shape, steps, 1)
    layout: Layout = make_layout(tuple(map(int, shape)), steps, -low)
    return Placement(layout, element)


class Footprint(NamedTuple):
    """The bytes of elements of one size at regular steps: the first address, the shape, and the steps in bytes.

    >>> left, right = Footprint(0, (4, 4), (64, 8), 8), Footprint(32, (4, 4), (64, 8), 8)
    >>> left.overlaps(right), left.overlaps(Footprint(31, (1,), (1,), 1))
    (False, True)
    """

    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    itemsize: int

    def overlaps(self, other: Footprint) -> bool:
        """Return whether two footprints have a byte in common; also True if that is too hard to decide."""
        low, high = self._address_range()
        other_low, other_high = other._address_range()
        if max(low, other_low) >= min(high, other_high):
            return False
        if max(len(self.shape), len(other.shape)) > MAX_MODES:
            return True
        origin = 1 - min(low, other_low)  # NumPy only compares addresses, but must not see address 0
        try:
            return bool(np.shares_memory(self._as_array(origin), other._as_array(origin), max_work=MAX_WORK))
        except np.exceptions.TooHardError:
            return True

    def _address_range(self) -> tuple[int, int]:
        """Return the lowest address and one past the highest; both are equal if there are no elements."""
        low, high = strided_range(self.shape, self.steps, self.itemsize)
        return self.first + low, self.first + high

    def _as_array(self, origin: int) -> Any:
        """Return an array with these addresses that is never read."""
        interface = {
            "data": (self.first + origin, True),
            "shape": self.shape,
            "strides": self.steps,
            "typestr": f"|V{self.itemsize}",
            "version": 3,
        }
        return np.asarray(SimpleNamespace(__array_interface__=interface))


def dense_footprint(start: int, nbytes: int) -> Footprint:
    """Return the footprint of `nbytes` bytes from address `start` on.

    >>> (
    ...     dense_footprint(100, 8).overlaps(dense_footprint(107, 1)),
    ...     dense_footprint(100, 8).overlaps(dense_footprint(108, 1)),
    ... )
    (True, False)
    """
    return Footprint(start, (nbytes,), (1,), 1)


def footprint_of(place: Placement, start: int) -> Footprint:
    """Return the bytes that a placement occupies in memory from address `start` on; all bytes if it is not strided.

    >>> from tilewright import Layout
    >>> footprint_of(Placement(Layout((4, 8), (16, 1)), "float32"), 1000)
    Footprint(first=1000, shape=(4, 8), steps=(64, 4), itemsize=4)
    """
    if not isinstance(place.layout, Layout) or place.format.has_blocks:
        return dense_footprint(start, place.nbytes)
    extents, steps = place.layout.canonical_modes()
    size = place.itemsize
    pairs = [(int(n), int(step) * size) for n, step in zip(extents, steps, strict=True)]
    return Footprint(
        start + place.origin * size, tuple([n for n, _ in pairs]), tuple([step for _, step in pairs]), size
    )


def overlap_error() -> TransferError:
    """Return the error for a copy with overlapping source and target.

    >>> str(overlap_error())[:30]
    'source and target share memory'
    """
    return TransferError(
        "source and target share memory, so the copy would overwrite data it has yet to read; copy the source first"
    )
