# SPDX-License-Identifier: Apache-2.0
"""Arrays and buffers of PyOpenCL as device arrays."""

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
from ..formats import ScalarFormat, scalar_format_of, uint8
from .device_array import Array, Backend, DeviceArray

_queues: dict[Any, Any] = {}


def default_queue(context: Any) -> Any:
    """Return the default queue of a context: always the same."""
    queue = _queues.get(context)
    # two threads must get the same queue, since commands of different queues are not ordered
    return _queues.setdefault(context, cl.CommandQueue(context)) if queue is None else queue


@contextmanager
def translate_errors(device: Any, action: str) -> Iterator[None]:
    """Turn errors of PyOpenCL into a DeviceError with a remedy."""
    try:
        yield
    except cl.Error as problem:
        raise DeviceError(
            f"{device.name} could not {action}: {problem}; if its context is lost, restart the process, or use"
            " engine='native' with host arrays"
        ) from problem


@dataclass(frozen=True)
class OpenCLBackend(Backend):
    """A command queue of PyOpenCL; `plain` allocates buffers instead of arrays."""

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
                f"{self.queue.device.name} cannot allocate {nbytes} bytes ({problem}); free arrays or copy less at once"
            ) from problem
        return DeviceArray(self, array.base_data, array.offset, shape, strides, element, array)

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a contiguous host array, and wait for them."""
        if array.size:
            data = target.reshape(-1).view(np.uint8)
            with translate_errors(self.queue.device, "copy memory to the host"):
                cl.enqueue_copy(self.queue, data, array.memory, src_offset=array.start, is_blocking=True)

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""
        if array.size:
            data = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
            with translate_errors(self.queue.device, "copy memory from the host"):
                cl.enqueue_copy(self.queue, array.memory, data, dst_offset=array.start, is_blocking=True)

    def unwrap(self, array: DeviceArray) -> Any:
        """Return the PyOpenCL array or buffer."""
        return array.owner

    def synchronize(self) -> None:
        """Wait until all work on the queue is done."""
        with translate_errors(self.queue.device, "finish its queue"):
            self.queue.finish()


def find_opencl_array(array: Any) -> DeviceArray | None:
    """Return a PyOpenCL array or buffer as a device array, or None for anything else."""
    if isinstance(array, cl_array.Array):
        element = scalar_format_of(array.dtype)
        backend = OpenCLBackend(array.queue or default_queue(array.context))
        start, shape, strides = int(array.offset), tuple(map(int, array.shape)), tuple(map(int, array.strides))
        return DeviceArray(backend, array.base_data, start, shape, strides, element, array)
    if isinstance(array, cl.Buffer):
        backend = OpenCLBackend(default_queue(array.context), plain=True)
        return DeviceArray(backend, array, 0, (int(array.size),), (1,), uint8, array)
    return None
