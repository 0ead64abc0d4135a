# SPDX-License-Identifier: Apache-2.0
"""The CUDA engine: runs plans as generated kernels, compiled by NVRTC through CuPy, on arrays of any library.

Arrays of torch, CuPy, JAX or any library with DLPack are device arrays without a copy; results are allocated by the
library of the input. Work is enqueued on the current stream of the caller's library.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib import import_module
from math import gcd
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.copying import (
    MAX_BATCH,
    WIDEST,
    ArrayLibrary,
    DeviceArray,
    DeviceEngine,
    Plan,
    PlanCache,
    packed_strides,
    read_capsule,
)
from tilewright.errors import DeviceError, FormatError, TransferError
from tilewright.formats import ScalarFormat, scalar_format_of

from .backend import KernelBackend
from .codegen import Kernel, Tuning, formats_without_code, generate_program
from .kernel_cache import load_or_compile, remove_entry

# Plans compiled for a CUDA device by NVRTC through CuPy, and their launches.

# Results must be exact: no fused approximations, no flushing of subnormals.
NVRTC_OPTIONS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--fmad=false")
_FAST_COMPILE_OPTIONS = ("-w", "--minimal")  # from NVRTC 12.9 on


class KernelLaunch:
    """A kernel compiled for a device, with its launch size and all arguments but the two addresses.

    A call enqueues it. The driver copies the arguments before it returns, so one block of them serves all calls; a
    lock keeps two threads from filling it in at once.
    """

    __slots__ = ("_addresses", "_arguments", "_keep_alive", "_launch", "_lock", "_sizes", "kernel", "table_bytes")

    def __init__(self, kernel: Kernel, function: Any, tables: Sequence[Any]) -> None:
        self._launch = import_module("cupy").cuda.driver.launchKernel
        self.kernel = kernel
        self.table_bytes = sum([int(table.nbytes) for table in tables])
        self._sizes = (function.ptr, kernel.groups, 1, 1, kernel.threads, 1, 1, kernel.large_shared)
        self._addresses = (ctypes.c_uint64 * 2)()
        pointers = [ctypes.c_uint64(int(table.data.ptr)) for table in tables]
        start = ctypes.addressof(self._addresses)
        addresses = [start, start + 8, *[ctypes.addressof(value) for value in pointers]]
        block = (ctypes.c_void_p * len(addresses))(*addresses)
        self._arguments = ctypes.addressof(block)
        self._keep_alive = (function, tables, pointers, block)
        self._lock = Lock()

    def __call__(self, source: int, target: int, stream: int) -> None:
        with self._lock:
            self._addresses[0] = source
            self._addresses[1] = target
            self._launch(*self._sizes, stream, self._arguments, 0)

    def bind(self, source: int, target: int) -> Callable[[int], None]:
        """Return a function that enqueues the kernel with these addresses on a stream, without filling them in."""
        own = KernelLaunch(self.kernel, *self._keep_alive[:2])
        own._addresses[0], own._addresses[1] = source, target
        launch, arguments = partial(own._launch, *own._sizes), own._arguments

        def enqueue(stream: int, _owner: KernelLaunch = own) -> None:  # which keeps the arguments alive
            launch(stream, arguments, 0)

        return enqueue


class BatchLaunch:
    """A batched kernel compiled for a device: a call enqueues it for several tensors."""

    __slots__ = ("_arguments", "_function", "_launch", "kernel", "table_bytes")

    def __init__(self, kernel: Kernel, function: Any, tables: Sequence[Any]) -> None:
        self._launch = import_module("cupy").cuda.driver.launchKernel
        self.kernel, self._function = kernel, function
        self.table_bytes = sum([int(table.nbytes) for table in tables])
        self._arguments = [ctypes.c_uint64(int(table.data.ptr)) for table in tables]

    def __call__(self, sources: Sequence[int], targets: Sequence[int], stream: int) -> None:
        none = [0] * (MAX_BATCH - len(sources))
        addresses = (ctypes.c_uint64 * (2 * MAX_BATCH))(*sources, *none, *targets, *none)
        pointers = [ctypes.addressof(argument) for argument in (addresses, *self._arguments)]
        block = (ctypes.c_void_p * len(pointers))(*pointers)
        groups, threads = self.kernel.groups * len(sources), self.kernel.threads
        shape = (groups, 1, 1, threads, 1, 1, self.kernel.large_shared)
        self._launch(self._function.ptr, *shape, stream, ctypes.addressof(block), 0)


CompiledPlan = tuple[KernelLaunch, ...]
AnyLaunch = TypeVar("AnyLaunch", KernelLaunch, BatchLaunch)


def _table_bytes(launches: tuple[KernelLaunch, ...] | tuple[BatchLaunch, ...]) -> int:
    return sum([launch.table_bytes for launch in launches])


_compiled: PlanCache[CompiledPlan] = PlanCache(_table_bytes)
_compiled_batches: PlanCache[tuple[BatchLaunch, ...]] = PlanCache(_table_bytes)


def _compile_kernels(
    plan: Plan, device: int, aligned: tuple[int, int], tuning: Tuning | None, launch_class: Callable[..., AnyLaunch]
) -> tuple[AnyLaunch, ...]:
    cupy: Any = import_module("cupy")
    program = generate_program(plan, "cuda", aligned, tuning, batched=launch_class is BatchLaunch)
    module = load_module(program.text, device)
    launches = []
    for kernel in program.kernels:
        function = get_function(module, kernel.name, kernel.large_shared)
        launches.append(launch_class(kernel, function, [cupy.asarray(table) for table in kernel.tables]))
    return tuple(launches)


@contextmanager
def translate_errors(device: int) -> Iterator[None]:
    """Turn errors of CuPy and torch into a DeviceError with a remedy."""
    cupy: Any = import_module("cupy")
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as problem:
        raise DeviceError(f"CUDA device {device} failed: {problem}; the process may have to be restarted") from problem
    except Exception as problem:
        if "OutOfMemory" not in type(problem).__name__:  # CuPy's and torch's have no common base class
            raise
        raise DeviceError(
            f"CUDA device {device} is out of memory ({problem}); free arrays, or copy less at once"
        ) from problem


def get_function(module: Any, name: str, dynamic_shared: int) -> Any:
    """Return a kernel of a module with a limit for the bytes of dynamic shared memory."""
    function = module.get_function(name)
    if dynamic_shared:
        driver: Any = import_module("cupy").cuda.driver
        driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared)
    return function


@lru_cache(maxsize=256)  # plans that differ only in extents may have the same program
def load_module(text: str, device: int) -> Any:
    """Return a program as a module of the device, which must be the current one."""
    cupy: Any = import_module("cupy")
    architecture, driver = _device_identity(device)
    module = cupy.cuda.function.Module()
    facts = ["cuda", architecture, driver, _nvrtc_version(), *NVRTC_OPTIONS, text]
    try:
        module.load(load_or_compile(facts, lambda: compile_cubin(text, architecture)))
    except cupy.cuda.driver.CUDADriverError:  # the driver rejects the cached code
        remove_entry(facts)
        module = cupy.cuda.function.Module()
        module.load(compile_cubin(text, architecture))
    return module


def compile_cubin(text: str, architecture: str) -> bytes:
    """Return the machine code of a program for an architecture such as "90"."""
    nvrtc: Any = import_module("cupy").cuda.nvrtc
    program = nvrtc.createProgram(text, "tilewright.cu", (), ())
    try:
        fast = _FAST_COMPILE_OPTIONS if nvrtc.getVersion() >= (12, 9) else ()
        nvrtc.compileProgram(program, (*NVRTC_OPTIONS, *fast, f"-arch=sm_{architecture}"))
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as problem:
        log = str(nvrtc.getProgramLog(program)).strip("\0 \n")
        raise DeviceError(f"{_nvrtc_version()} could not compile for sm_{architecture}: {problem}\n{log}") from problem
    finally:
        nvrtc.destroyProgram(program)


@cache
def _nvrtc_version() -> str:
    return f"NVRTC {'.'.join(map(str, import_module('cupy').cuda.nvrtc.getVersion()))}"


@cache
def _device_identity(device: int) -> tuple[str, str]:
    """Return the architecture of a device, such as "90", and the version of its driver."""
    runtime = import_module("cupy").cuda.runtime
    return str(import_module("cupy").cuda.Device(device).compute_capability), str(runtime.driverGetVersion())


# CUDA's numbers of device attributes: shared memory per block, shared memory per multiprocessor, multiprocessors
_ATTRIBUTES = (97, 81, 16)
_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}
_INSTALL = "pip install 'tilewright[cuda]', with a driver for an NVIDIA device"


class CudaEngine(DeviceEngine):
    """The engine of CUDA devices.

    >>> reason = CudaEngine().unavailable_reason()
    >>> reason is None or "CUDA" in reason
    True
    """

    name = "cuda"

    def unavailable_reason(self) -> str | None:
        """Return why CUDA cannot be used and what to do about it, or None if it can."""
        return _unavailable_reason()

    def default_backend(self) -> CudaBackend:
        """Return the backend for host data: the current CUDA device, with arrays of CuPy."""
        self.require_device()
        return CudaBackend(int(import_module("cupy").cuda.runtime.getDevice()), "cupy")

    def find_array(self, array: Any) -> DeviceArray | None:
        """Return an array in CUDA memory as a device array, or None for anything else."""
        library = type(array).__module__.partition(".")[0]
        if library == "torch" and hasattr(array, "is_cuda"):
            return _wrap_torch_tensor(array)
        if library == "cupy" and hasattr(array, "data"):
            element = scalar_format_of(array.dtype)
            backend = CudaBackend(int(array.device.id), "cupy")
            return DeviceArray(backend, int(array.data.ptr), 0, array.shape, array.strides, element, array)
        return _wrap_dlpack(array) if hasattr(array, "__dlpack_device__") else _wrap_interface(array)

    def code(self, plan: Plan) -> str:
        """Return the source text of a plan in CUDA C."""
        return generate_program(plan, "cuda").text

    def require_device(self) -> None:
        """Raise a DeviceError if CUDA cannot be used."""
        if self.unavailable_reason():
            raise self.unavailable_error()


@cache
def _unavailable_reason() -> str | None:
    try:
        cupy: Any = import_module("cupy")
    except ImportError as problem:
        return f"CUDA needs CuPy ({problem}); {_INSTALL}"
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return f"CUDA found no device; {_INSTALL}"
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        return f"CUDA found no device ({problem}); {_INSTALL}"
    return None


class CudaRunner:
    """Enqueues a plan of one stage from a source address to a target address, without any checks.

    The stream is the current one of the library that allocated the target, so that a call can be captured in a graph.
    """

    __slots__ = ("_current_device", "_device", "_launches", "_stream")

    def __init__(self, plan: Plan, backend: CudaBackend, aligned: tuple[int, int]) -> None:
        self._device, self._stream = backend.device, backend.stream_function
        with backend.working("compile the plan"):
            self._launches = backend.compile_plan(plan, aligned)
        self._current_device = import_module("cupy").cuda.runtime.getDevice

    def __call__(self, source: int, target: int) -> None:
        stream = self._stream(self._device)
        if self._current_device() == self._device:
            try:
                for launch in self._launches:
                    launch(source, target, stream)
                return
            except import_module("cupy").cuda.driver.CUDADriverError:
                pass  # a new thread has no context; any other error comes again
        with translate_errors(self._device), _active_device(self._device):
            for launch in self._launches:
                launch(source, target, stream)

    def bind(self, source: int, target: int) -> Callable[[], None]:
        """Return a function that enqueues the plan with these addresses."""
        launch, *more = [launch.bind(source, target) for launch in self._launches]
        current, device, stream = self._current_device, self._device, self._stream
        error = import_module("cupy").cuda.driver.CUDADriverError

        def run() -> None:
            if current() == device:
                try:
                    launch(stream(device))
                    for another in more:
                        another(stream(device))
                    return
                except error:
                    pass
            self(source, target)

        return run


@contextmanager
def _active_device(device: int) -> Iterator[None]:
    """Make a device the current one, also in a thread that has not used any."""
    runtime: Any = import_module("cupy").cuda.runtime
    before = runtime.getDevice()
    runtime.setDevice(device)
    try:
        yield
    finally:
        runtime.setDevice(before)


@dataclass(frozen=True)
class CudaBackend(KernelBackend):
    """A CUDA device, and the library that allocates arrays on it: torch, cupy or jax."""

    device: int
    library: str

    engine = "cuda"

    def memory_space(self) -> int:
        """Return the number of the device."""
        return self.device

    @contextmanager
    def working(self, action: str) -> Iterator[None]:
        """Open a context for work on this device, on the current stream of the caller's library."""
        CudaEngine().require_device()
        with translate_errors(self.device), self.current_stream():
            yield

    def compile_plan(self, plan: Plan, aligned: tuple[int, int], tuning: Tuning | None = None) -> CompiledPlan:
        """Return the launches of a plan for two alignments in bytes; the device must be the current one."""
        key = (self.device, aligned, tuning)
        return _compiled.get(plan, key, lambda: _compile_kernels(plan, self.device, aligned, tuning, KernelLaunch))

    def enqueue(self, launch: KernelLaunch, source: DeviceArray, target: DeviceArray) -> None:
        """Enqueue a launch on the current stream of the caller's library."""
        launch(source.buffer.address, target.buffer.address, self.stream)

    def can_prepare(self, plan: Plan) -> bool:
        """Return whether a plan has one stage, and formats that devices support."""
        return not plan.stages and not formats_without_code(plan)

    def make_runner(self, plan: Plan, aligned: tuple[int, int]) -> CudaRunner:
        """Return the function that enqueues a plan of one stage between addresses with two alignments in bytes."""
        return CudaRunner(plan, self, aligned)

    def run_batch(self, plan: Plan, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Enqueue a plan of one stage for up to MAX_BATCH pairs of addresses, in one launch for each of its kernels."""
        aligned = (gcd(WIDEST, *sources), gcd(WIDEST, *targets))
        with self.working("run the plans"):
            launches = _compiled_batches.get(
                plan, (self.device, aligned), lambda: _compile_kernels(plan, self.device, aligned, None, BatchLaunch)
            )
            for launch in launches:
                launch(sources, targets, self.stream)

    def array_library(self, array_type: type) -> ArrayLibrary | None:
        """Return the calls for tensors of torch and arrays of CuPy."""
        name = array_type.__module__.partition(".")[0]
        if name == "torch" and hasattr(array_type, "data_ptr"):
            return _torch_library()
        return _cupy_library() if name == "cupy" and hasattr(array_type, "strides") else None

    @property
    def stream_function(self) -> Callable[[int], int]:
        """A function that returns the address of the current stream of the caller's library on a device."""
        return _torch_stream_function() if self.library == "torch" else _cupy_stream_function()

    @property
    def stream(self) -> int:
        """The address of the current stream of the caller's library."""
        return self.stream_function(self.device)

    @contextmanager
    def current_stream(self) -> Iterator[None]:
        """Open a context in which CuPy uses this device and the current stream of the caller's library."""
        stream: AbstractContextManager[Any] = nullcontext()
        if self.library == "torch":
            stream = _external_stream(self.stream, self.device)
        with import_module("cupy").cuda.Device(self.device), stream:
            yield

    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new array of the same library on the same device."""
        with translate_errors(self.device):
            if self.library == "torch":
                torch = sys.modules["torch"]
                return _wrap_torch_tensor(torch.empty(shape, dtype=torch_dtype(element), device=f"cuda:{self.device}"))
            return self._empty_cupy(shape, element)

    def _empty_cupy(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        cupy: Any = import_module("cupy")
        with self.current_stream():
            try:
                array = cupy.empty(shape, dtype=element.dtype)
            except (TypeError, ValueError):  # CuPy does not have the dtype: use integers of the same size
                array = cupy.empty(shape, dtype=f"u{element.itemsize}")
        strides = packed_strides(shape, element.itemsize)
        return DeviceArray(self, int(array.data.ptr), 0, shape, strides, element, array)

    def launch_pipeline(self, kernel: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
        """Enqueue the kernel of a pipeline on the current stream with its operands; the host does not wait for it."""
        cupy: Any = import_module("cupy")
        device, shape = self.device, kernel.launch_shape
        per_block, per_processor, processors = (
            cupy.cuda.runtime.deviceGetAttribute(attribute, device) for attribute in _ATTRIBUTES
        )
        if kernel.local_bytes > per_block:
            raise TransferError(
                f"the kernel needs {kernel.local_bytes} bytes of shared memory, CUDA device {device} has {per_block};"
                " use smaller tiles, or scheme='duplex'"
            )

        def make() -> tuple[Any, list[Any]]:
            program = get_function(load_module(kernel.source, device), shape.name, shape.large_shared)
            return program, [cupy.asarray(table) for table in kernel.coordinate_tables()]

        with self.working("run the kernel"):
            program, tables = kernel.build_once(device, make)
            resident = min(2048 // shape.threads, per_processor // (kernel.local_bytes + 1024))
            count = min(kernel.pipeline.tiles, groups or max(1, resident) * processors)
            starts = [
                np.uint64(array.memory + start)
                for array, start in zip(arrays, kernel.element_offsets(arrays), strict=True)
            ]
            program((count,), (shape.threads,), (*starts, *tables), shared_mem=shape.large_shared)

    def read_bytes(self, array: DeviceArray, data: NDArray[Any]) -> None:
        """Copy an array that is not empty to bytes of the host."""
        byte_view(array).get(out=data)

    def write_bytes(self, data: NDArray[Any], array: DeviceArray) -> None:
        """Copy bytes of the host to an array that is not empty."""
        byte_view(array).set(data)

    def unwrap(self, array: DeviceArray) -> Any:
        """Return the array as an object of its library; JAX takes over memory that CuPy allocated."""
        if self.library != "jax":
            return array.owner
        jax: Any = import_module("jax")
        owner = array.owner
        result = jax.dlpack.from_dlpack(owner)
        if result.dtype != array.dtype:
            result = jax.lax.bitcast_convert_type(result, array.dtype)
        return result

    def synchronize(self) -> None:
        """Wait until all work on the current stream is done."""
        with self.working("finish its stream"):
            import_module("cupy").cuda.get_current_stream().synchronize()


@cache
def _cupy_stream_function() -> Callable[[int], int]:
    current: Any = import_module("cupy").cuda.get_current_stream
    return lambda device: current(device).ptr


@cache
def _torch_stream_function() -> Callable[[int], int]:
    torch: Any = sys.modules["torch"]
    raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # twenty times as fast
    return raw or (lambda device: int(torch.cuda.current_stream(device).cuda_stream))


@dataclass(frozen=True)
class _StreamHandle:
    """A stream of another library in the `__cuda_stream__` protocol."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


@lru_cache(maxsize=64)
def _external_stream(pointer: int, device: int) -> Any:
    """Return a stream of another library as CuPy's."""
    cuda = import_module("cupy").cuda
    if pointer == 0:
        return cuda.Stream.null
    if hasattr(cuda.Stream, "from_external"):
        return cuda.Stream.from_external(_StreamHandle(pointer))
    return cuda.ExternalStream(pointer, device)


def byte_view(array: DeviceArray) -> Any:
    """Return the memory of a device array as a CuPy array of bytes, without a copy."""
    cupy: Any = import_module("cupy")
    start, nbytes = array.span
    memory = cupy.cuda.UnownedMemory(array.memory + start, nbytes, array.owner, array.backend.device)
    return cupy.ndarray((nbytes,), dtype=np.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))


def torch_dtype(element: ScalarFormat) -> Any:
    """Return the torch dtype of a format."""
    dtype = getattr(sys.modules["torch"], _TORCH_NAMES.get(element.name, element.name), None)
    if dtype is None:
        raise FormatError(f"this version of torch has no {element.name}; convert to another format with dtype=")
    return dtype


def _wrap_torch_tensor(tensor: Any) -> DeviceArray:
    name = str(tensor.dtype).partition(".")[2]
    element = scalar_format_of(name)
    if tensor.layout is not sys.modules["torch"].strided:
        raise FormatError(f"expected a strided tensor, got layout {tensor.layout}; make it dense first")
    backend = CudaBackend(tensor.device.index or 0, "torch")
    strides = tuple([int(stride) * element.itemsize for stride in tensor.stride()])
    return DeviceArray(backend, int(tensor.data_ptr()), 0, tuple(map(int, tensor.shape)), strides, element, tensor)


def _wrap_dlpack(array: Any) -> DeviceArray:
    """Return an array that exports DLPack as a device array for the current stream of CuPy."""
    device = int(array.__dlpack_device__()[1])
    library = "jax" if type(array).__module__.startswith(("jax", "jaxlib")) else "cupy"
    backend = CudaBackend(device, library)
    # DLPack numbers the default stream 1, and 0 is not allowed
    contents = read_capsule(array.__dlpack__(stream=backend.stream or 1))
    owner = (array, contents.capsule)
    return DeviceArray(backend, contents.address, 0, contents.shape, contents.strides, contents.format, owner, False)


def _wrap_interface(array: object) -> DeviceArray | None:
    """Return an array with `__cuda_array_interface__`, such as numba's, as a device array, or None."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        return None
    element = scalar_format_of(np.dtype(interface["typestr"]))
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or packed_strides(shape, element.itemsize)
    address, readonly = interface["data"]
    cupy: Any = import_module("cupy")
    device = int(cupy.cuda.runtime.pointerGetAttributes(address).device) if address else 0
    return DeviceArray(
        CudaBackend(device, "cupy"), int(address), 0, shape, tuple(strides), element, array, not readonly
    )


# What repeated copies ask of arrays of torch and CuPy, in as few calls as possible.


@cache
def _torch_library() -> ArrayLibrary:
    def allocator(array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], tuple[Any, int]]:
        empty = sys.modules["torch"].empty(0, dtype=torch_dtype(element), device=array.device)
        # new_empty takes less time than torch.empty with a device
        return _with_address(partial(empty.new_empty, shape), lambda new: int(new.data_ptr()))

    return ArrayLibrary(
        signature=lambda array: (array.shape, array.stride(), array.dtype, array.get_device()),
        address=lambda array: int(array.data_ptr()),
        is_writeable=lambda array: True,
        allocator=allocator,
    )


@cache
def _cupy_library() -> ArrayLibrary:
    cupy: Any = import_module("cupy")
    current = cupy.cuda.runtime.getDevice  # new arrays are on the current device, which may be another one
    return ArrayLibrary(
        signature=lambda array: (array.shape, array.strides, array.dtype, array.data.device_id, current()),
        address=lambda array: int(array.data.ptr),
        is_writeable=lambda array: True,
        allocator=lambda array, shape, element: _with_address(
            partial(cupy.ndarray, shape, element.dtype), lambda new: int(new.data.ptr)
        ),
    )


def _with_address(make: Callable[[], Any], address: Callable[[Any], int]) -> Callable[[], tuple[Any, int]]:
    def allocate() -> tuple[Any, int]:
        array = make()
        return array, address(array)

    return allocate
