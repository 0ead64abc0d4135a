# SPDX-License-Identifier: Apache-2.0
"""`DeviceArray`: an array of any library in device memory, with the attributes of a NumPy array that planning needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from ..errors import LayoutError, TransferError
from ..formats import ScalarFormat, uint8
from .codegen import WIDEST
from .host_memory import Buffer, strided_range

Array = np.ndarray[Any, Any]


class Backend(Protocol):
    """A device and the library (CuPy, torch, JAX, PyOpenCL) that allocates arrays on it."""

    @property
    def engine(self) -> str:
        """Return the name of the engine that runs plans on the device."""

    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new, uninitialised array on the device."""

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a host array, and wait for them."""

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""

    def unwrap(self, array: DeviceArray) -> Any:
        """Return the array as an object of its library."""

    def synchronize(self) -> None:
        """Wait until all enqueued work is done."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """An array in device memory: `start` bytes into `memory`, with a shape and strides in bytes.

    >>> from tilewright.formats import float32
    >>> array = DeviceArray(backend=None, memory=0, start=0, shape=(4, 8), strides=(32, 4), format=float32, owner=None)
    >>> array.nbytes, array.is_contiguous, array.reshape(-1).shape
    (128, True, (32,))
    """

    backend: Any  # a Backend; each engine uses further attributes of its own
    memory: Any  # an address (CUDA) or a buffer object (OpenCL)
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: ScalarFormat
    owner: Any  # the array of the library, which keeps the memory alive
    writeable: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype of the elements."""
        return self.format.dtype

    @property
    def itemsize(self) -> int:
        """Return the size of an element in bytes."""
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
        """Return the size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Return whether the array is C-contiguous."""
        packed = packed_strides(self.shape, self.itemsize)
        return all(n <= 1 or own == step for n, own, step in zip(self.shape, self.strides, packed, strict=True))

    @property
    def flags(self) -> Any:
        """Return the flags of a NumPy array that copies need."""
        return SimpleNamespace(c_contiguous=self.is_contiguous, writeable=self.writeable)

    @property
    def span(self) -> tuple[int, int]:
        """Return the offset in bytes of the lowest element, and the bytes from there to the end of the highest."""
        low, high = strided_range(self.shape, self.strides, self.itemsize)
        return self.start + low, high - low

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the same elements in another shape; without contiguous memory, only unit dimensions may change."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if -1 in wanted:
            known = -prod(wanted)
            wanted = tuple([self.size // known if known and n == -1 else n for n in wanted])
        owner = self.owner.reshape(wanted) if hasattr(self.owner, "reshape") else self.owner
        if [n for n in wanted if n != 1] == [n for n in self.shape if n != 1]:
            steps = iter([step for n, step in zip(self.shape, self.strides, strict=True) if n != 1])
            strides = tuple([next(steps) if n != 1 else self.itemsize for n in wanted])
        elif self.is_contiguous and prod(wanted) == self.size:
            strides = packed_strides(wanted, self.itemsize)
        else:
            raise LayoutError(f"cannot reshape {self.shape} with strides {self.strides} to {wanted} without a copy")
        return replace(self, shape=wanted, strides=strides, owner=owner)

    @property
    def buffer(self) -> Buffer:
        """Return the address range of the array; addresses in an OpenCL buffer count from its start."""
        start, nbytes = self.span
        base = self.memory if isinstance(self.memory, int) else 0
        return Buffer(base + start, nbytes, self.owner, self.writeable)

    @property
    def alignment(self) -> int:
        """Return the alignment of the lowest element, at most 16 bytes; raise if it is less than that of its format."""
        address = self.buffer.address
        alignment = gcd(WIDEST, address)
        if alignment < min(WIDEST, self.itemsize):
            raise TransferError(f"address {address:#x} is not aligned to {self.format.name}; copy the array first")
        return alignment

    def as_bytes(self) -> DeviceArray:
        """Return the memory of the array as a flat array of bytes."""
        start, nbytes = self.span
        return DeviceArray(self.backend, self.memory, start, (nbytes,), (1,), uint8, self.owner)


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a C-contiguous array.

    >>> packed_strides((2, 3, 4), 8)
    (96, 32, 8)
    """
    return tuple([itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])
