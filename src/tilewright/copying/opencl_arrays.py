# SPDX-License-Identifier: Apache-2.0
"""Arrays of PyOpenCL as device arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from ..errors import DeviceError
from ..formats import ScalarFormat, format_of
from .device_array import Array, DeviceArray, Home

_queues: dict[Any, Any] = {}


def queue_of(context: Any) -> Any:
    """Return the queue that commands on a context without one of its own go to: always the same."""
    queue = _queues.get(context)
    # of two threads that come here at once, both get the queue of the first: commands of two queues have no order
    return _queues.setdefault(context, cl.CommandQueue(context)) if queue is None else queue


@contextmanager
def reported(device: Any, what: str) -> Iterator[None]:
    """Turn what goes wrong on a device into an error that says what to do."""
    try:
        yield
    except cl.Error as problem:
        raise DeviceError(
            f"{device.name} could not {what} memory: {problem}; if its context is lost, start the process anew, or use"
            " engine='native' with arrays of the host"
        ) from problem


@dataclass(frozen=True)
class OpenCLHome(Home):
    """A command queue, whose device runs plans; `plain` gives buffers rather than arrays."""

    queue: Any
    plain: bool = False

    engine = "opencl"

    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new array in this context."""
        strides = tuple([element.itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])
        nbytes = max(1, prod(shape) * element.itemsize)
        try:
            if self.plain:
                buffer = cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, size=nbytes)
                return DeviceArray(self, buffer, 0, shape, strides, element, buffer)
            array = cl_array.empty(self.queue, shape, element.dtype)
        except (cl.Error, OverflowError, MemoryError) as problem:
            raise DeviceError(
                f"{self.queue.device.name} has no room for {nbytes} bytes ({problem}); free arrays or move less at once"
            ) from problem
        return DeviceArray(self, array.base_data, array.offset, shape, strides, element, array)

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a contiguous one of the host, and wait for them."""
        if array.size:
            data = target.reshape(-1).view(np.uint8)
            with reported(self.queue.device, "give back"):
                cl.enqueue_copy(self.queue, data, array.memory, src_offset=array.start, is_blocking=True)

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""
        if array.size:
            data = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
            with reported(self.queue.device, "take"):
                cl.enqueue_copy(self.queue, array.memory, data, dst_offset=array.start, is_blocking=True)

    def released(self, array: DeviceArray) -> Any:
        """Return the PyOpenCL array or buffer."""
        return array.owner

    def synchronize(self) -> None:
        """Wait until everything on the queue is done."""
        with reported(self.queue.device, "finish"):
            self.queue.finish()


def find(array: Any) -> DeviceArray | None:
    """Return a PyOpenCL array or buffer as a device array, or None for anything else."""
    if isinstance(array, cl_array.Array):
        element = format_of(array.dtype)
        assert not element.has_blocks
        home = OpenCLHome(array.queue or queue_of(array.context))
        start, shape, strides = int(array.offset), tuple(map(int, array.shape)), tuple(map(int, array.strides))
        return DeviceArray(home, array.base_data, start, shape, strides, element, array)
    if isinstance(array, cl.Buffer):
        home = OpenCLHome(queue_of(array.context), plain=True)
        element = format_of("uint8")
        assert not element.has_blocks
        return DeviceArray(home, array, 0, (int(array.size),), (1,), element, array)
    return None
