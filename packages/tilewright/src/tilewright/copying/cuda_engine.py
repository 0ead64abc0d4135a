# SPDX-License-Identifier: Apache-2.0
"""The CUDA engine: runs plans as generated kernels, compiled by NVRTC through CuPy, on arrays of any library.

Arrays of torch, CuPy, JAX or any library with DLPack are device arrays without a copy; results are allocated by the
library of the input. Work is enqueued on the current stream of the caller's library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from math import gcd
from typing import Any

import numpy as np

from ..errors import DeviceError, FormatError, TransferError
from ..formats import ScalarFormat, float32, scalar_format_of
from .codegen import WIDEST, Tuning
from .cuda_program import CompiledPlan, compile_batch, compile_plan, get_function, load_module, translate_errors
from .device_array import Array, Backend, DeviceArray, packed_strides
from .dlpack import CUDA_DEVICES, read_capsule
from .plan import Plan, step_operands

NAME = "cuda"
# CUDA's numbers of device attributes: shared memory per block, shared memory per multiprocessor, multiprocessors
_ATTRIBUTES = (97, 81, 16)
_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}
_INSTALL = "pip install 'tilewright[cuda]', with a driver for an NVIDIA device"


@cache
def unavailable_reason() -> str | None:
    """Return why CUDA cannot be used and what to do about it, or None if it can.

    >>> reason = unavailable_reason()
    >>> reason is None or "CUDA" in reason
    True
    """
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


def _require_device() -> None:
    problem = unavailable_reason()
    if problem:
        raise DeviceError(f"the cuda engine cannot run: {problem}")


def default_backend() -> CudaBackend:
    """Return the backend for host data: the current CUDA device, with arrays of CuPy."""
    _require_device()
    return CudaBackend(int(import_module("cupy").cuda.runtime.getDevice()), "cupy")


def run_plan(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Enqueue a plan on the current stream of the target's library; the host does not wait for it."""
    _validate_devices(source, target)
    aligned = (source.alignment, target.alignment)
    device = target.backend.device
    with translate_errors(device), target.backend.current_stream():
        stream = target.backend.stream
        launches = compile_plan(plan, device, aligned, tuning)
        steps = step_operands(plan, source, target, lambda count: target.backend.empty((count,), float32))
        starts = [(read.buffer.address, written.buffer.address) for _, read, written in steps]
        for launch in launches:
            launch(*starts[launch.kernel.step], stream)


class CudaRunner:
    """Enqueues a plan of one step from a source address to a target address, without any checks.

    The stream is the current one of the library that allocated the target, so that a call can be captured in a graph.
    """

    __slots__ = ("_current_device", "_device", "_launches", "_stream")

    def __init__(self, plan: Plan, backend: CudaBackend, aligned: tuple[int, int]) -> None:
        assert not plan.stages
        self._device, self._stream = backend.device, backend.stream_function
        self._current_device = import_module("cupy").cuda.runtime.getDevice
        with translate_errors(self._device), backend.current_stream():
            self._launches: CompiledPlan = compile_plan(plan, self._device, aligned)

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


def make_runner(plan: Plan, source: DeviceArray, target: DeviceArray) -> CudaRunner:
    """Return the function that runs a plan of one step between addresses that are aligned as those of two arrays."""
    _validate_devices(source, target)
    return CudaRunner(plan, target.backend, (source.alignment, target.alignment))


def _validate_devices(source: DeviceArray, target: DeviceArray) -> None:
    _require_device()
    if source.backend.device != target.backend.device:
        raise TransferError(
            f"the source is on CUDA device {source.backend.device} and the target on {target.backend.device};"
            " copy the source to the target's device first"
        )


def run_batch(plan: Plan, backend: CudaBackend, sources: Sequence[int], targets: Sequence[int]) -> None:
    """Enqueue a plan of one step for up to MAX_BATCH pairs of addresses, in one launch for each of its kernels."""
    aligned = (gcd(WIDEST, *sources), gcd(WIDEST, *targets))
    with translate_errors(backend.device), backend.current_stream():
        for launch in compile_batch(plan, backend.device, aligned):
            launch(sources, targets, backend.stream)


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


def launch_tile_kernel(kernel: Any, backend: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
    """Enqueue the kernel of a pipeline on the current stream with its operands; the host does not wait for it."""
    cupy: Any = import_module("cupy")
    device, shape = backend.device, kernel.launch_shape
    per_block, per_processor, processors = (
        cupy.cuda.runtime.deviceGetAttribute(attribute, device) for attribute in _ATTRIBUTES
    )
    if kernel.local_bytes > per_block:
        raise TransferError(
            f"the kernel needs {kernel.local_bytes} bytes of shared memory, CUDA device {device} has {per_block}; use"
            " smaller tiles, or scheme='duplex'"
        )
    if any(array.backend.device != device for array in arrays):
        raise TransferError("the operands are on different CUDA devices; copy them to one device first")

    def make() -> tuple[Any, list[Any]]:
        program = get_function(load_module(kernel.source, device), shape.name, shape.large_shared)
        return program, [cupy.asarray(table) for table in kernel.coordinate_tables()]

    with translate_errors(device), backend.current_stream():
        program, tables = kernel.build_once(device, make)
        resident = min(2048 // shape.threads, per_processor // (kernel.local_bytes + 1024))
        count = min(kernel.pipeline.tiles, groups or max(1, resident) * processors)
        starts = [
            np.uint64(array.memory + start) for array, start in zip(arrays, kernel.element_offsets(arrays), strict=True)
        ]
        program((count,), (shape.threads,), (*starts, *tables), shared_mem=shape.large_shared)


@dataclass(frozen=True)
class CudaBackend(Backend):
    """A CUDA device, and the library that allocates arrays on it: torch, cupy or jax."""

    device: int
    library: str

    engine = "cuda"

    @property
    def stream_function(self) -> Callable[[int], int]:
        """Return a function that returns the address of the current stream of the caller's library on a device."""
        return _torch_stream_function() if self.library == "torch" else _cupy_stream_function()

    @property
    def stream(self) -> int:
        """Return the address of the current stream of the caller's library."""
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

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a contiguous host array, and wait for them."""
        if array.size:
            with translate_errors(self.device), self.current_stream():
                byte_view(array).get(out=target.reshape(-1).view(np.uint8))

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""
        if array.size:
            with translate_errors(self.device), self.current_stream():
                byte_view(array).set(np.ascontiguousarray(source).reshape(-1).view(np.uint8))

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
        with translate_errors(self.device), self.current_stream():
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


def find_cuda_array(array: Any) -> DeviceArray | None:
    """Return an array in CUDA memory as a device array, or None for anything else.

    >>> find_cuda_array([1, 2]) is None
    True
    """
    library = type(array).__module__.partition(".")[0]
    if library == "torch" and hasattr(array, "is_cuda"):
        return _wrap_torch_tensor(array) if array.is_cuda else None
    if library == "cupy" and hasattr(array, "data"):
        element = scalar_format_of(array.dtype)
        backend = CudaBackend(int(array.device.id), "cupy")
        return DeviceArray(backend, int(array.data.ptr), 0, array.shape, array.strides, element, array)
    try:
        device = array.__dlpack_device__()
    except (AttributeError, TypeError, RuntimeError):
        return _wrap_interface(array)
    return _wrap_dlpack(array, int(device[1])) if int(device[0]) in CUDA_DEVICES else None


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
    strides = tuple([int(step) * element.itemsize for step in tensor.stride()])
    return DeviceArray(backend, int(tensor.data_ptr()), 0, tuple(map(int, tensor.shape)), strides, element, tensor)


def _wrap_dlpack(array: Any, device: int) -> DeviceArray:
    """Return an array that exports DLPack as a device array for the current stream of CuPy."""
    library = "jax" if type(array).__module__.startswith(("jax", "jaxlib")) else "cupy"
    backend = CudaBackend(device, library)
    # DLPack numbers the default stream 1, and 0 is not allowed
    contents = read_capsule(array.__dlpack__(stream=backend.stream or 1))
    owner = (array, contents.capsule)
    return DeviceArray(backend, contents.address, 0, contents.shape, contents.strides, contents.format, owner, False)


def _wrap_interface(array: Any) -> DeviceArray | None:
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
