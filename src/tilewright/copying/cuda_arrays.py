# SPDX-License-Identifier: Apache-2.0
"""Arrays in CUDA memory, of torch, CuPy, JAX or any library with DLPack, as device arrays without a copy.

Results are allocated by the library of the input.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..errors import FormatError
from ..formats import ScalarFormat, scalar_format_of
from .cuda_engine import translate_errors
from .device_array import Array, Backend, DeviceArray
from .dlpack import CUDA_DEVICES, read_capsule

_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}


@dataclass(frozen=True)
class CudaBackend(Backend):
    """A CUDA device, and the library that allocates arrays on it: torch, cupy or jax."""

    device: int
    library: str

    engine = "cuda"

    def current_stream(self) -> AbstractContextManager[Any]:
        """Return a context in which CuPy uses this device and the current stream of the caller's library."""
        stream = None
        if self.library == "torch":
            stream = _external_stream(sys.modules["torch"].cuda.current_stream(self.device).cuda_stream, self.device)
        return _StreamContext(self.device, stream)

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
        strides = tuple([element.itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])
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


class _StreamContext(AbstractContextManager[Any]):
    """A context with a current device and a current stream."""

    def __init__(self, device: int, stream: Any) -> None:
        self.device, self.stream = import_module("cupy").cuda.Device(device), stream

    def __enter__(self) -> None:
        self.device.__enter__()
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)
        self.device.__exit__(*error)


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
    cupy: Any = import_module("cupy")
    with backend.current_stream():
        stream = cupy.cuda.get_current_stream().ptr
        # DLPack numbers the default stream 1, and 0 is not allowed
        contents = read_capsule(array.__dlpack__(stream=stream or 1))
    owner = (array, contents.capsule)
    return DeviceArray(backend, contents.address, 0, contents.shape, contents.strides, contents.format, owner, False)


def _wrap_interface(array: Any) -> DeviceArray | None:
    """Return an array with `__cuda_array_interface__`, such as numba's, as a device array, or None."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        return None
    element = scalar_format_of(np.dtype(interface["typestr"]))
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or tuple([element.itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])
    address, readonly = interface["data"]
    cupy: Any = import_module("cupy")
    device = int(cupy.cuda.runtime.pointerGetAttributes(address).device) if address else 0
    return DeviceArray(
        CudaBackend(device, "cupy"), int(address), 0, shape, tuple(strides), element, array, not readonly
    )
