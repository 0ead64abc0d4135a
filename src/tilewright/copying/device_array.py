# SPDX-License-Identifier: Apache-2.0
"""`DeviceArray`: an array of any library in the memory of a device, seen as a move sees it: where, what shape, what.

It has the few attributes of a NumPy array that planning looks at, so that plans are made alike for host and device.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import prod
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from ..errors import LayoutError
from ..formats import ScalarFormat
from .buffers import aligned_empty
from .foreign import values_of

Array = np.ndarray[Any, Any]


class Home(Protocol):
    """Where device arrays live: an engine with a device, and the library whose arrays it takes and gives."""

    @property
    def engine(self) -> str:
        """Return the name of the engine that runs plans there."""

    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new array there."""

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a host array, and wait for them."""

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""

    def released(self, array: DeviceArray) -> Any:
        """Return the array as its library's own."""

    def synchronize(self) -> None:
        """Wait until everything that was enqueued is done."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """Elements in the memory of a device: `start` bytes into `memory`, with a shape and strides in bytes.

    >>> from tilewright.formats import float32
    >>> array = DeviceArray(home=None, memory=0, start=0, shape=(4, 8), strides=(32, 4), format=float32, owner=None)
    >>> array.nbytes, array.is_contiguous, array.reshape(-1).shape
    (128, True, (32,))
    """

    home: Any
    memory: Any
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: ScalarFormat
    owner: Any
    writeable: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype of the elements."""
        return self.format.dtype

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return self.format.itemsize

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return self.size * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Return whether the elements lie one after the other, the last dimension fastest."""
        step = self.itemsize
        for n, own in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and own != step:
                return False
            step *= n
        return True

    @property
    def flags(self) -> Any:
        """Return what NumPy says about an array, as far as moves ask for it."""
        return SimpleNamespace(c_contiguous=self.is_contiguous, writeable=self.writeable)

    @property
    def span(self) -> tuple[int, int]:
        """Return the first byte of the lowest element, and the bytes from there to the end of the highest."""
        if not self.size:
            return self.start, 0
        reach = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        low = sum(step for step in reach if step < 0)
        return self.start + low, sum(abs(step) for step in reach) + self.itemsize

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the same elements in another shape: of contiguous memory any, otherwise only with units added."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if -1 in wanted:
            known = -prod(wanted)
            wanted = tuple([self.size // known if known and n == -1 else n for n in wanted])
        owner = self.owner.reshape(wanted) if hasattr(self.owner, "reshape") else self.owner
        if [n for n in wanted if n != 1] == [n for n in self.shape if n != 1]:
            steps = iter([step for n, step in zip(self.shape, self.strides, strict=True) if n != 1])
            strides = tuple([next(steps) if n != 1 else self.itemsize for n in wanted])
        elif self.is_contiguous and prod(wanted) == self.size:
            strides = tuple([self.itemsize * prod(wanted[k + 1 :]) for k in range(len(wanted))])
        else:
            raise LayoutError(f"cannot see shape {self.shape} with strides {self.strides} as {wanted} without a copy")
        return replace(self, shape=wanted, strides=strides, owner=owner)


def admitted(array: Any) -> Any:
    """Return an array of a device as a `DeviceArray`, and all else as a NumPy array that shares memory if it can.

    >>> admitted([1, 2]).tolist()
    [1, 2]
    """
    if isinstance(array, (np.ndarray, DeviceArray)):
        return array
    return on_device(array) or values_of(array)


def on_device(array: Any) -> DeviceArray | None:
    """Return an array as a `DeviceArray` if its memory is on a device, or None.

    >>> on_device(np.zeros(3)) is None
    True
    """
    if isinstance(array, np.ndarray):
        return None
    if isinstance(array, DeviceArray):
        return array
    memory = getattr(array, "device_memory", None)  # our own buffers
    if memory is not None:
        return memory.array if isinstance(memory.array, DeviceArray) else None
    if sys.modules.get("pyopencl") is not None:
        from .opencl_arrays import find as find_opencl

        found = find_opencl(array)
        if found is not None:
            return found
    from .cuda_arrays import find as find_cuda

    return find_cuda(array)


def empty_like(array: Any, shape: Any, element: ScalarFormat) -> Any:
    """Return an uninitialised array where another one lives.

    >>> from tilewright.formats import int8
    >>> empty_like(np.zeros(2), (3,), int8).nbytes
    3
    """
    shape = shape if isinstance(shape, tuple) else (shape,)
    if isinstance(array, DeviceArray):
        return array.home.empty(shape, element)
    return aligned_empty(shape, element.dtype)


def released(array: Any) -> Any:
    """Return an array as the user's library has it.

    >>> released(np.zeros(2)).tolist()
    [0.0, 0.0]
    """
    return array.home.released(array) if isinstance(array, DeviceArray) else array
