# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.host`: buffers that a host program allocates for itself and for a device.

Only enqueued copies can access the memory of a device. The device is a real one, through OpenCL or CUDA, or by default
memory of the host with the same rules, so that the same program runs anywhere.
"""

from __future__ import annotations

from typing import Any

from ....copying import copy as copy_elements
from ....copying.device_array import DeviceArray
from ....copying.engine import DEVICE_ENGINES, load_engine
from ....copying.host_memory import aligned_empty
from ....errors import LayoutError, TransferError
from ....formats import ScalarFormat
from ....layout.validation import as_integer
from ....tensor.store import DeviceMemory
from ....tensor.view import View
from ...arrays import Span
from ...brackets import brackets
from ...memory_type import MemoryMeta, memory_type
from ...simd import scalar_format
from .grid import launch


class DeviceBuffer(metaclass=MemoryMeta):
    """Memory of a device, made by `DeviceContext.enqueue_create_buffer`.

    >>> len(DeviceContext().enqueue_create_buffer["float32"](16))
    16
    """

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int) -> None:
        self.context = context
        home = context.home
        array = aligned_empty(size, element.dtype) if home is None else home.empty((size,), element)
        self.dtype = element
        self.device_memory = DeviceMemory(element, array)

    @classmethod
    def with_parameters(cls, *parameters: Any, **_: Any) -> Any:
        """Return the type `DeviceBuffer[dtype]`."""
        return memory_type(cls, parameters)

    @property
    def memory(self) -> DeviceMemory:
        """Return the memory, which only the device can access."""
        return self.device_memory

    def __len__(self) -> int:
        return self.device_memory.size

    def __getitem__(self, k: object) -> Any:
        raise self.device_memory.access_error()

    def __setitem__(self, k: object, value: object) -> None:
        raise self.device_memory.access_error()

    def __repr__(self) -> str:
        return f"<DeviceBuffer of {len(self)} x {self.device_memory.format.name}>"


class HostBuffer(Span):
    """Memory of the host, made by `DeviceContext.enqueue_create_host_buffer`; indexed like a list.

    >>> buffer = DeviceContext().enqueue_create_host_buffer["int32"](4)
    >>> buffer[3] = 7
    >>> int(buffer[3]), len(buffer)
    (7, 4)
    """

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int) -> None:
        self.context = context
        super().__init__(aligned_empty(size, element.dtype))
        self.array[...] = 0


def _buffer_constructor(kind: Any) -> Any:
    """Return the method that creates buffers of a kind."""

    def create(context: DeviceContext, parameters: tuple[Any, ...], *size: Any) -> Any:
        """Return a new buffer: `ctx.enqueue_create_buffer[dtype](size)`.

        >>> DeviceContext().enqueue_create_host_buffer["int8"](2)
        <HostBuffer of 2 x int8>
        """
        if len(parameters) != 1 or len(size) != 1:
            raise TypeError("expected ctx.enqueue_create_buffer[dtype](size)")
        element = scalar_format(parameters[0])
        count = as_integer(size[0], "the size of a buffer")
        if count < 0:
            raise LayoutError(f"the size of a buffer must not be negative, got {count} x {element.name}")
        return kind(context, element, count)

    return create


class DeviceContext:
    """A device with memory of its own and a queue of copies: "host", or a real one, "opencl" or "cuda".

    On a host the device is memory that only copies can access. Buffers of real devices can be passed to any copy,
    such as `tilize` and `copy`.

    >>> ctx = DeviceContext()
    >>> host, device = ctx.enqueue_create_host_buffer["int32"](2), ctx.enqueue_create_buffer["int32"](2)
    >>> host[0] = 5
    >>> ctx.enqueue_copy(device, host)
    >>> back = ctx.enqueue_create_host_buffer["int32"](2)
    >>> ctx.enqueue_copy(back, device)
    >>> ctx.synchronize()
    >>> int(back[0])
    5
    """

    def __init__(self, device: str = "host") -> None:
        if device not in ("host", *DEVICE_ENGINES):
            raise TransferError(f"unknown device {device!r}; expected one of host, {', '.join(DEVICE_ENGINES)}")
        self.home = None if device == "host" else load_engine(device).default_backend()

    enqueue_create_buffer = brackets(_buffer_constructor(DeviceBuffer))
    enqueue_create_host_buffer = brackets(_buffer_constructor(HostBuffer))

    def enqueue_copy(self, target: Any, source: Any) -> None:
        """Copy `source` to `target`, of the same size and format, after everything that was enqueued before.

        >>> import numpy as np
        >>> DeviceContext().enqueue_copy(np.zeros(2), np.ones(2))
        """
        into, origin = (_memory(buffer) for buffer in (target, source))
        if into.size != origin.size or into.dtype != origin.dtype:
            raise LayoutError(
                f"sizes and formats must be equal, got {origin.size} x {origin.dtype} and {into.size} x {into.dtype}"
            )
        if isinstance(into, DeviceArray) and isinstance(origin, DeviceArray):
            copy_elements(origin, into)
        elif isinstance(into, DeviceArray):
            into.backend.upload(origin, into)
        elif isinstance(origin, DeviceArray):
            origin.backend.download(origin, into)
        else:
            into[...] = origin

    @brackets
    def enqueue_function(
        self, parameters: tuple[Any, ...], *arguments: Any, grid_dim: Any, block_dim: Any, **options: Any
    ) -> None:
        """Run a kernel, `ctx.enqueue_function[kernel](*arguments, grid_dim=4, block_dim=64)`: a function of Python.

        Its threads run one after another, on the host only, with tensors and buffers of the device in its `arguments`
        within reach. `grid_dim` and `block_dim` are numbers, or tuples of up to three; other `options` have no effect.

        >>> from tilewright.mojo.std.gpu import global_idx
        >>> ctx = DeviceContext()
        >>> numbers, back = ctx.enqueue_create_buffer["int32"](4), ctx.enqueue_create_host_buffer["int32"](4)
        >>> def kernel(out):
        ...     out[global_idx.x] = global_idx.x**2
        >>> ctx.enqueue_function[kernel](numbers, grid_dim=2, block_dim=2)
        >>> ctx.enqueue_copy(back, numbers)
        >>> back.array.tolist()
        [0, 1, 4, 9]
        """
        kernel, *rest = (*parameters, *arguments)
        if not callable(kernel):
            raise TypeError(f"a kernel must be a function, got {type(kernel).__name__} {kernel!r}")
        if self.home is not None:
            raise TransferError(
                f"cannot run {getattr(kernel, '__name__', kernel)} on a real device: kernels of Python run on the host;"
                " use DeviceContext(), or copy on the device with target.copy_from(source)"
            )
        launch(kernel, tuple([_in_kernel(value) for value in rest]), grid_dim, block_dim)

    def synchronize(self) -> None:
        """Wait until everything that was enqueued is done.

        >>> DeviceContext().synchronize()
        """
        if self.home is not None:
            self.home.synchronize()


def _in_kernel(value: Any) -> Any:
    """Return an argument as a kernel sees it: a tensor or buffer of the device with its memory within reach."""
    if isinstance(value, DeviceBuffer):
        return Span(value.device_memory.array)
    if isinstance(value, View) and isinstance(value._store.data, DeviceMemory):
        return value._view(value._pair, value._offset, value._store.with_fields(data=value._store.data.array))
    return value


def _memory(buffer: Any) -> Any:
    """Return the array of a buffer, on the host or on a device."""
    device = getattr(buffer, "device_memory", None)
    if device is not None:
        return device.array
    return getattr(buffer, "array", buffer)
