# SPDX-License-Identifier: Apache-2.0
"""`DeviceContext`: a device with memory of its own, and a queue of copies and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....copying import copy as copy_elements
from ....copying.device_array import DeviceArray
from ....copying.engine import DEVICE_ENGINES, load_engine
from ....errors import LayoutError, TransferError
from ....layout.validation import as_integer
from ....simt import launch
from ....tensor.store import DeviceMemory
from ...brackets import brackets
from ...memory import MemoryArray, Pointer
from ...program_arguments import is_program_running
from ...simd import scalar_format
from .device_buffer import DeviceBuffer, HostBuffer
from .device_info import DeviceAttribute, GPUInfo

_TOTAL_MEMORY = 80 << 30


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A kernel that `ctx.compile_function[kernel]()` has prepared; `ctx.enqueue_function(function, ...)` runs it.

    >>> function = DeviceFunction(print)
    >>> function.kernel is print
    True
    """

    kernel: Any


def _buffer_constructor(kind: Any) -> Any:
    """Return the method that creates buffers of a kind."""

    def create(context: DeviceContext, parameters: tuple[Any, ...], *size: Any, **named: Any) -> Any:
        """Return a new buffer: `ctx.enqueue_create_buffer[dtype](size)`.

        >>> DeviceContext().enqueue_create_host_buffer["int8"](2)
        <HostBuffer of 2 x int8>
        """
        types = (*parameters, *[named[name] for name in ("dtype", "type") if name in named])
        counts = (*size, *[named[name] for name in ("size", "length") if name in named])
        if len(types) != 1 or len(counts) != 1:
            raise TypeError("expected ctx.enqueue_create_buffer[dtype](size)")
        element = scalar_format(types[0])
        count = int(as_integer(counts[0], "the size of a buffer"))
        if count < 0:
            raise LayoutError(f"the size of a buffer must not be negative, got {count} x {element.name}")
        return kind(context, element, count)

    return create


class DeviceContext:
    """A device: by default the SIMT machine, or a real one, "opencl" or "cuda", for copies.

    The memory of the machine is the host's, but only copies and kernels can access it. Buffers of real devices can be
    passed to any copy, such as `tilize` and `copy`.

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

    default_device_info = GPUInfo()

    def __init__(self, device: Any = "host", *, device_id: Any = 0, api: str = "gpu", **_: Any) -> None:
        name = "host" if isinstance(device, int) or hasattr(device, "__index__") else str(device)
        if name not in ("host", *DEVICE_ENGINES):
            raise TransferError(f"unknown device {device!r}; expected one of host, {', '.join(DEVICE_ENGINES)}")
        if name != "host" and is_program_running():  # drivers are Python's, and their kernels are kept in files
            raise TransferError(f"a Mojo program runs on the SIMT machine; {name} is for Python: use DeviceContext()")
        self.home = None if name == "host" else load_engine(name).default_backend()
        self._api = "cpu" if api == "cpu" else "cuda"

    def __enter__(self) -> DeviceContext:
        return self

    def __exit__(self, *_: object) -> None:
        self.synchronize()

    # Buffers.

    enqueue_create_buffer = brackets(_buffer_constructor(DeviceBuffer))
    create_buffer_sync = brackets(_buffer_constructor(DeviceBuffer))
    enqueue_create_host_buffer = brackets(_buffer_constructor(HostBuffer))

    def enqueue_copy(self, dst_buf: Any, src_buf: Any) -> None:
        """Copy as much of `src_buf` as `dst_buf` holds, of the same format, after everything that was enqueued before.

        >>> import numpy as np
        >>> DeviceContext().enqueue_copy(np.zeros(2), np.ones(2))
        """
        into, origin = _memory(dst_buf, src_buf), _memory(src_buf, dst_buf)
        is_part = into.size < origin.size and not isinstance(origin, DeviceArray)
        if not (is_part or into.size == origin.size) or into.dtype != origin.dtype:
            raise LayoutError(
                f"a copy to {into.size} x {into.dtype} needs as many scalars of that format, got {origin.size} x"
                f" {origin.dtype}"
            )
        if is_part:
            origin = origin.reshape(-1)[: into.size]
        if isinstance(into, DeviceArray) and isinstance(origin, DeviceArray):
            copy_elements(origin, into)
        elif isinstance(into, DeviceArray):
            into.backend.upload(origin, into)
        elif isinstance(origin, DeviceArray):
            origin.backend.download(origin, into)
        else:
            into[...] = origin
        if isinstance(dst_buf, DeviceBuffer):
            written = src_buf._written if isinstance(src_buf, DeviceBuffer) else None
            dst_buf._written = None if written is None else written[: len(dst_buf) * dst_buf.dtype.itemsize]

    def enqueue_memset(self, dst: Any, val: Any) -> None:
        """Set every scalar of the buffer `dst` to `val`.

        >>> DeviceContext().enqueue_memset(DeviceContext().enqueue_create_buffer["int8"](2), 1)
        """
        dst.enqueue_fill(val)

    # Kernels.

    @brackets
    def compile_function(self, parameters: tuple[Any, ...], *arguments: Any, **_: Any) -> DeviceFunction:
        """Return a kernel that is ready to be enqueued: `ctx.compile_function[kernel]()`.

        >>> DeviceContext().compile_function[print]()
        DeviceFunction(kernel=<built-in function print>)
        """
        return DeviceFunction((*parameters, *arguments)[0])

    compile_function_experimental = compile_function_unchecked = compile_function_checked = compile_function

    @brackets
    def enqueue_function(
        self,
        parameters: tuple[Any, ...],
        *arguments: Any,
        grid_dim: Any,
        block_dim: Any,
        shared_mem_bytes: Any = 0,
        cluster_dim: Any = None,
        **options: Any,
    ) -> None:
        """Run a kernel on the SIMT machine: `ctx.enqueue_function[kernel](*arguments, grid_dim=4, block_dim=64)`.

        Buffers of the device are pointers in the kernel; tensors over them stay tensors. `grid_dim` and `block_dim` are
        numbers, or tuples of up to three, as is `cluster_dim`, the blocks that run together; `shared_mem_bytes` is
        dynamic shared memory, and other `options` have no effect. The kernel is checked as by `tilewright.simt.launch`.

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
        kernel, *rest = (*parameters[:1], *arguments)
        if isinstance(kernel, DeviceFunction):
            kernel = kernel.kernel
        if not callable(kernel):
            raise TypeError(f"a kernel must be a function, got {type(kernel).__name__} {kernel!r}")
        if self.home is not None:
            raise TransferError(
                f"cannot run {getattr(kernel, '__name__', kernel)} on a real device: kernels of Python run on the host;"
                " use DeviceContext(), or copy on the device with target.copy_from(source)"
            )
        launch(
            kernel,
            *[_in_kernel(value) for value in rest],
            grid=tuple(grid_dim) if isinstance(grid_dim, (tuple, list)) else grid_dim,
            block=tuple(block_dim) if isinstance(block_dim, (tuple, list)) else block_dim,
            cluster=1 if cluster_dim is None else cluster_dim,
            check="lenient",  # many programs let several threads set one flag
            shared_bytes=int(as_integer(shared_mem_bytes or 0, "shared_mem_bytes")),
            name=str(getattr(kernel, "__name__", "kernel")).partition("·")[0],  # the front end marks inner functions
        )

    enqueue_function_experimental = enqueue_function_checked = enqueue_function_unchecked = enqueue_function

    def synchronize(self) -> None:
        """Wait until everything that was enqueued is done.

        >>> DeviceContext().synchronize()
        """
        if self.home is not None:
            self.home.synchronize()

    # The device.

    @staticmethod
    def number_of_devices(*, api: str = "gpu") -> int:
        """Return how many devices there are: one machine.

        >>> DeviceContext.number_of_devices()
        1
        """
        return 1

    def id(self) -> int:
        """Return the number of the device.

        >>> DeviceContext().id()
        0
        """
        return 0

    def name(self) -> str:
        """Return the name of the device.

        >>> DeviceContext().name()
        'tilewright SIMT machine'
        """
        return "cpu" if self._api == "cpu" else self.default_device_info.name

    def api(self) -> str:
        """Return the programming interface: "cuda", whose warps and limits the machine has.

        >>> DeviceContext().api()
        'cuda'
        """
        return self._api

    def is_compatible(self) -> bool:
        """Return whether kernels can run.

        >>> DeviceContext().is_compatible()
        True
        """
        return True

    def get_api_version(self) -> int:
        """Return the version of the programming interface.

        >>> DeviceContext().get_api_version()
        12040
        """
        return 12040

    def get_attribute(self, attribute: DeviceAttribute) -> int:
        """Return a property of the device.

        >>> DeviceContext().get_attribute(DeviceAttribute.WARP_SIZE)
        32
        """
        return int(complex(attribute.value).real)

    def get_memory_info(self) -> tuple[int, int]:
        """Return (free, total) bytes of memory, those of an NVIDIA H100.

        >>> DeviceContext().get_memory_info()[1] >> 30
        80
        """
        return _TOTAL_MEMORY, _TOTAL_MEMORY


def _in_kernel(value: Any) -> Any:
    """Return an argument as a kernel sees it: buffers are pointers."""
    return value.unsafe_ptr() if isinstance(value, (DeviceBuffer, HostBuffer)) else value


def _memory(buffer: Any, other: Any) -> Any:
    """Return the array of a buffer, on the host or on a device; behind a pointer are as many scalars as in `other`."""
    device = getattr(buffer, "device_memory", None)
    if isinstance(device, DeviceMemory):
        return device.array
    if isinstance(buffer, Pointer):
        memory = buffer.memory
        data = getattr(memory.data, "array", memory.data)
        return data[buffer.offset : buffer.offset + len(other)]
    array = buffer.array if isinstance(buffer, MemoryArray) else getattr(buffer, "array", buffer)
    if not isinstance(array, (np.ndarray, DeviceArray)):
        raise TypeError(f"{type(buffer).__name__} is not memory; a copy takes buffers, pointers and arrays")
    return array
