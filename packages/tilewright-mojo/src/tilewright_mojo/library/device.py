# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.host`: buffers, copies and launches on a device.

Only copies and kernels can access the memory of a device. The device is a real one, through OpenCL or CUDA, or by
default the SIMT machine over memory of the host with the same rules, so that the same program runs anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

import numpy as np

from tilewright.copying import DEVICE_ENGINES, DeviceArray, load_engine
from tilewright.copying import copy as copy_elements
from tilewright.errors import CoordinateError, LayoutError, TransferError
from tilewright.formats import ScalarFormat
from tilewright.layout import as_integer
from tilewright.mojo import DType, MemoryArray, MemoryType, Pointer, Span, alloc, brackets, format_value
from tilewright.tensor import DeviceMemory, Store

from ..program_arguments import is_program_running
from ..simt import launch
from ..simt.kernel_thread import AWAITABLE, coroutine_twin, current_machine
from ..simt.kernel_thread import Dim as KernelDim


class Dim(KernelDim):
    """Up to three numbers of blocks or threads: `Dim(4, 2)`, or `Dim((4, 2))`.

    >>> print(Dim(4, 2), Dim((4,)).y)
    (x=4, y=2) 1
    """

    __slots__ = ()

    def __new__(cls, x: object, y: object = 1, z: object = 1) -> Dim:
        extents = tuple(x) if isinstance(x, (tuple, list)) else (x, y, z)
        return super().__new__(cls, *[int(as_integer(extent, "an extent")) for extent in extents])

    def __str__(self) -> str:
        extents = [f"x={self.x}", f"y={self.y}", f"z={self.z}"]
        count = 3 if self.z != 1 else 2 if self.y != 1 else 1
        return f"({', '.join(extents[:count])})"


class DeviceAttribute(Enum):
    """A property of the device: `ctx.get_attribute(DeviceAttribute.WARP_SIZE)`.

    >>> DeviceAttribute.WARP_SIZE.value
    32
    """

    MAX_THREADS_PER_BLOCK = 1024
    MAX_BLOCK_DIM_X = 1024 + 0j  # numbers of their own, so that equal values stay different attributes
    MAX_BLOCK_DIM_Y = 1024 + 1j
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X = 2**31 - 1
    MAX_GRID_DIM_Y = 65535
    MAX_GRID_DIM_Z = 65535 + 1j
    MAX_SHARED_MEMORY_PER_BLOCK = 48 << 10
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 227 << 10
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 228 << 10
    WARP_SIZE = 32
    MAX_REGISTERS_PER_BLOCK = 65536
    MAX_REGISTERS_PER_MULTIPROCESSOR = 65536 + 1j
    MULTIPROCESSOR_COUNT = 132
    MAX_THREADS_PER_MULTIPROCESSOR = 2048
    MAX_BLOCKS_PER_MULTIPROCESSOR = 32 + 1j
    COMPUTE_CAPABILITY_MAJOR = 9
    COMPUTE_CAPABILITY_MINOR = 0
    CLOCK_RATE = 1_980_000


@dataclass(frozen=True, slots=True)
class GPUInfo:
    """What is known of the device at compile time.

    >>> machine = GPUInfo()
    >>> machine.warp_size
    32
    """

    name: str = "tilewright SIMT machine"
    vendor: str = "NVIDIA"
    api: str = "cuda"
    arch_name: str = "hopper"
    compute: float = 9.0
    version: str = "sm_90"
    sm_count: int = 132
    warp_size: int = 32
    threads_per_sm: int = 2048
    threads_per_multiprocessor: int = 2048
    max_thread_block_size: int = 1024
    shared_memory_per_multiprocessor: int = 228 << 10
    max_registers_per_block: int = 65536


_MAX_SHOWN = 1000  # elements of a buffer that are printed; of more, the first and the last three


BufferKind = TypeVar("BufferKind", bound="_Buffer")


class _Buffer(MemoryArray):
    """Memory that a context made: of its device, or of the host for copies to it."""

    __slots__ = ("_context",)
    __bracketed__: ClassVar[tuple[str, ...]] = ("type",)
    _memory_name: ClassVar[str]
    __eq__, __hash__ = object.__eq__, object.__hash__  # type: ignore[assignment]
    _context: DeviceContext

    @classmethod
    def _with_parameters(cls, *parameters: Any, **named: Any) -> MemoryType:
        return MemoryType.of(cls, (*parameters, *named.values(), None)[0])

    def context(self) -> DeviceContext:
        """Return the context that the buffer was made by.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_buffer["int8"](1).context() is ctx
        True
        """
        return self._context

    def enqueue_copy_to(self, target: object) -> None:
        """Copy this buffer to `target`.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_buffer["int8"](2).enqueue_copy_to(ctx.enqueue_create_host_buffer["int8"](2))
        """
        self._context.enqueue_copy(target, self)

    def enqueue_copy_from(self, source: object) -> None:
        """Copy `source` to this buffer.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_buffer["int8"](2).enqueue_copy_from(ctx.enqueue_create_host_buffer["int8"](2))
        """
        self._context.enqueue_copy(self, source)


class DeviceBuffer(_Buffer):
    """Memory of a device, made by `DeviceContext.enqueue_create_buffer`; only kernels can access its elements.

    >>> from tilewright_mojo.std.gpu.host import DeviceContext
    >>> buffer = DeviceContext().enqueue_create_buffer["float32"](16)
    >>> len(buffer), buffer.dtype, buffer.memory.is_on_host
    (16, DType.float32, False)
    """

    __slots__ = ("_written", "device_memory")
    _memory_name = "DeviceBuffer"

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int, array: Any = None) -> None:
        home, element = context.home, DType.of(element)
        self._context = context
        self._written = bytearray(size * element.itemsize) if array is None and home is None else None
        if array is None:
            array = alloc[element](size).memory.host if home is None else home.empty((size,), element)
        self.device_memory = DeviceMemory(element, array)
        super().__init__(Store(self.device_memory, element, self, False), 0, size)

    @classmethod
    def _of_type(cls, kind: MemoryType, _: DeviceContext, pointer: Any, size: Any, **__: Any) -> DeviceBuffer:
        """Return `DeviceBuffer[dtype](ctx, pointer, size, owning=False)`: a buffer over memory of another."""
        owner = getattr(getattr(pointer, "memory", None), "origin", None)
        if not isinstance(owner, DeviceBuffer):
            raise LayoutError("a DeviceBuffer takes a pointer to memory of a device, such as buffer.unsafe_ptr()")
        return owner.create_sub_buffer[kind.dtype or owner.dtype](pointer.offset, size)

    take_ptr = device_ptr = MemoryArray.unsafe_ptr

    @brackets
    def create_sub_buffer(self, parameters: tuple[Any, ...], offset: object, size: object, **_: Any) -> DeviceBuffer:
        """Return a part, `buffer.create_sub_buffer[dtype](offset, size)`: `size` scalars from `offset` on.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> len(DeviceContext().enqueue_create_buffer["int8"](8).create_sub_buffer["int8"](2, 4))
        4
        """
        array = self.device_memory.array
        if isinstance(array, DeviceArray):
            raise LayoutError(
                "create_sub_buffer works on the SIMT machine only, not on a real device; copy the buffer instead"
            )
        element = DType.of(parameters[0]) if parameters else self.dtype
        view = array if element.dtype == array.dtype else array.view(element.dtype)
        first, count = int(as_integer(offset, "an offset")), int(as_integer(size, "a size"))
        if first < 0 or count < 0 or first + count > view.size:
            raise CoordinateError(f"scalars {first} to {first + count - 1} are outside a buffer of {view.size}")
        self._written = None  # the parts are not followed
        return DeviceBuffer(self._context, element, count, view[first : first + count])

    def enqueue_fill(self, value: object) -> DeviceBuffer:
        """Set every scalar to `value`; return the buffer.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> print(DeviceContext().enqueue_create_buffer["int8"](2).enqueue_fill(7))
        DeviceBuffer([7, 7])
        """
        self._context.enqueue_copy(self, HostBuffer(self._context, self.dtype, len(self)).fill(value))
        return self

    fill = enqueue_fill

    @contextmanager
    def map_to_host(self) -> Iterator[HostBuffer]:
        """Give the host a buffer with the contents inside a `with` block, and copy it back at its end.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> buffer = DeviceContext().enqueue_create_buffer["int8"](2).enqueue_fill(1)
        >>> with buffer.map_to_host() as numbers:
        ...     numbers[0] = 5
        >>> print(buffer)
        DeviceBuffer([5, 1])
        """
        mapped = self._downloaded()
        yield mapped
        self._context.enqueue_copy(self, mapped)

    def _downloaded(self) -> HostBuffer:
        """Return a buffer of the host with the same contents."""
        mapped = HostBuffer(self._context, self.dtype, len(self))
        self._context.enqueue_copy(mapped, self)
        return mapped

    def __str__(self) -> str:
        return f"DeviceBuffer({_numbers_text(self._downloaded())})"


class HostBuffer(_Buffer):
    """Memory of the host, made by `DeviceContext.enqueue_create_host_buffer`; indexed like a list.

    >>> from tilewright_mojo.std.gpu.host import DeviceContext
    >>> buffer = DeviceContext().enqueue_create_host_buffer["int32"](4)
    >>> buffer[3] = 7
    >>> int(buffer[3]), len(buffer)
    (7, 4)
    """

    __slots__ = ()
    _memory_name = "HostBuffer"

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int) -> None:
        self._context = context
        super().__init__(alloc[DType.of(element)](size).memory, 0, size)

    def as_span(self) -> Span:
        """Return the scalars as a span.

        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> len(DeviceContext().enqueue_create_host_buffer["int8"](2).as_span())
        2
        """
        return Span(self)

    enqueue_fill = MemoryArray.fill

    def __str__(self) -> str:
        return f"HostBuffer({_numbers_text(self)})"


def _numbers_text(buffer: HostBuffer) -> str:
    """Return the scalars as Mojo prints a buffer."""
    count = len(buffer)
    if count <= _MAX_SHOWN:
        return f"[{', '.join(map(format_value, buffer))}]" if count else "[]"
    first, last = ([format_value(buffer[k]) for k in part] for part in (range(3), range(count - 3, count)))
    return f"[{', '.join(first)}, ..., {', '.join(last)}]"


_BLOCK = 256  # threads


async def _visit(calls: Sequence[tuple[Callable[..., Any], Any]]) -> None:
    """Make the call of the running thread, and wait for it."""
    machine = current_machine("elementwise()")
    number = machine.block_index.x * machine.block_dim.x + machine.thread.index
    if number < len(calls):
        function, index = calls[number]
        result: Any = coroutine_twin(function)(index)
        waits = result.__class__ in AWAITABLE
        if waits:
            await result


def launch_calls(calls: Sequence[tuple[Callable[..., Any], Any]], name: str) -> None:
    """Launch a thread for each pair of a function and its argument; `name` is for the report.

    >>> launch_calls([(print, 1), (print, 2)], "show")
    1
    2
    """
    if calls:
        threads = min(_BLOCK, len(calls))
        launch(_visit, calls, grid=-(-len(calls) // threads), block=threads, name=name, check="lenient")


_TOTAL_MEMORY = 80 << 30


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A kernel that `ctx.compile_function[kernel]()` has prepared; `ctx.enqueue_function(function, ...)` runs it.

    >>> function = DeviceFunction(print)
    >>> function.kernel is print
    True
    """

    kernel: Any


def _buffer_constructor(kind: Callable[[DeviceContext, ScalarFormat, int], BufferKind]) -> Callable[..., BufferKind]:
    """Return the method that creates buffers of a kind."""

    def create(context: DeviceContext, parameters: tuple[Any, ...], *size: Any, **named: Any) -> BufferKind:
        """Return a new buffer: `ctx.enqueue_create_buffer[dtype](size)`.

        >>> DeviceContext().enqueue_create_host_buffer["int8"](2)
        <HostBuffer of 2 x int8>
        """
        types = (*parameters, *[named[name] for name in ("dtype", "type") if name in named])
        counts = (*size, *[named[name] for name in ("size", "length") if name in named])
        if len(types) != 1 or len(counts) != 1:
            raise TypeError("expected ctx.enqueue_create_buffer[dtype](size)")
        element = DType.of(types[0])
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

    _memory_name = "DeviceContext"

    def __init__(self, device: object = "host", *, device_id: object = 0, api: str = "gpu", **_: Any) -> None:
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

    def enqueue_copy(self, dst_buf: object, src_buf: object) -> None:
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
        shared_mem_bytes: object = 0,
        cluster_dim: Any = None,
        **options: Any,
    ) -> None:
        """Run a kernel on the SIMT machine: `ctx.enqueue_function[kernel](*arguments, grid_dim=4, block_dim=64)`.

        Buffers of the device are pointers in the kernel; tensors over them stay tensors. `grid_dim` and `block_dim` are
        numbers, or tuples of up to three, as is `cluster_dim`, the blocks that run together; `shared_mem_bytes` is
        dynamic shared memory, and other `options` have no effect. The kernel is checked as by `simt.launch`.

        >>> from tilewright_mojo.std.gpu import global_idx
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
            *[value.unsafe_ptr() if isinstance(value, _Buffer) else value for value in rest],
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
        """Return (free, total) bytes of memory, as on an NVIDIA H100.

        >>> DeviceContext().get_memory_info()[1] >> 30
        80
        """
        return _TOTAL_MEMORY, _TOTAL_MEMORY


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


get_gpu_target: Any = brackets(lambda parameters, *arguments, **named: "simt")  # a label
