# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a CUDA device, of torch, CuPy, JAX or anything else with DLPack, as device arrays.

torch and CuPy say where their memory is; other libraries export it through DLPack or `__cuda_array_interface__`.
Nothing is copied, and results are made by the library that the input came from.
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
from ..formats import SCALAR_FORMATS, ScalarFormat, format_of
from .cuda_engine import reported
from .device_array import Array, DeviceArray, Home
from .exchange import CUDA_DEVICES, capsule_contents

_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}


@dataclass(frozen=True)
class CudaHome(Home):
    """A CUDA device, and the library that its arrays belong to: torch, cupy or jax."""

    device: int
    library: str

    engine = "cuda"

    def on_stream(self) -> AbstractContextManager[Any]:
        """Return a context in which CuPy works on this device and on the stream that the caller's library uses now."""
        stream = None
        if self.library == "torch":
            stream = _external(sys.modules["torch"].cuda.current_stream(self.device).cuda_stream, self.device)
        return _OnStream(self.device, stream)

    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new array of the same library on the same device."""
        with reported(self.device):
            if self.library == "torch":
                torch = sys.modules["torch"]
                return _of_torch(torch.empty(shape, dtype=torch_dtype(element), device=f"cuda:{self.device}"))
            return self._of_cupy(shape, element)

    def _of_cupy(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        cupy: Any = import_module("cupy")
        with self.on_stream():
            try:
                array = cupy.empty(shape, dtype=element.dtype)
            except (TypeError, ValueError):  # CuPy has no such numbers: the same bits as integers
                array = cupy.empty(shape, dtype=f"u{element.itemsize}")
        strides = tuple([element.itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])
        return DeviceArray(self, int(array.data.ptr), 0, shape, strides, element, array)

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a contiguous one of the host, and wait for them."""
        if array.size:
            with reported(self.device), self.on_stream():
                byte_view(array).get(out=target.reshape(-1).view(np.uint8))

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""
        if array.size:
            with reported(self.device), self.on_stream():
                byte_view(array).set(np.ascontiguousarray(source).reshape(-1).view(np.uint8))

    def released(self, array: DeviceArray) -> Any:
        """Return the array as its library's own; JAX takes over memory that CuPy allocated."""
        if self.library != "jax":
            return array.owner
        jax: Any = import_module("jax")
        owner = array.owner
        found = jax.dlpack.from_dlpack(owner)
        if found.dtype != array.dtype:
            found = jax.lax.bitcast_convert_type(found, array.dtype)
        return found

    def synchronize(self) -> None:
        """Wait until everything on the current stream is done."""
        with reported(self.device), self.on_stream():
            import_module("cupy").cuda.get_current_stream().synchronize()


class _OnStream(AbstractContextManager[Any]):
    """A device made current, with a stream, or with whatever stream is current there."""

    def __init__(self, device: int, stream: Any) -> None:
        self.device, self.stream = import_module("cupy").cuda.Device(device), stream

    def __enter__(self) -> None:
        self.device.__enter__()
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *problem: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(*problem)
        self.device.__exit__(*problem)


@dataclass(frozen=True)
class _Handle:
    """A stream of another library, as CUDA's own protocol for streams has it."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


@lru_cache(maxsize=64)
def _external(pointer: int, device: int) -> Any:
    """Return a stream of another library as CuPy's."""
    cuda = import_module("cupy").cuda
    if pointer == 0:
        return cuda.Stream.null
    if hasattr(cuda.Stream, "from_external"):
        return cuda.Stream.from_external(_Handle(pointer))
    return cuda.ExternalStream(pointer, device)


def byte_view(array: DeviceArray) -> Any:
    """Return the span of a device array as a CuPy array of bytes, without a copy."""
    cupy: Any = import_module("cupy")
    start, nbytes = array.span
    memory = cupy.cuda.UnownedMemory(array.memory + start, nbytes, array.owner, array.home.device)
    return cupy.ndarray((nbytes,), dtype=np.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))


def find(array: Any) -> DeviceArray | None:
    """Return an array in the memory of a CUDA device as a device array, or None for anything else.

    >>> find([1, 2]) is None
    True
    """
    library = type(array).__module__.partition(".")[0]
    if library == "torch" and hasattr(array, "is_cuda"):
        return _of_torch(array) if array.is_cuda else None
    if library == "cupy" and hasattr(array, "data"):
        element = format_of(array.dtype)
        assert not element.has_blocks
        home = CudaHome(int(array.device.id), "cupy")
        return DeviceArray(home, int(array.data.ptr), 0, array.shape, array.strides, element, array)
    try:
        device = array.__dlpack_device__()
    except (AttributeError, TypeError, RuntimeError):
        return _of_interface(array)
    return _of_dlpack(array, int(device[1])) if int(device[0]) in CUDA_DEVICES else None


def torch_dtype(element: ScalarFormat) -> Any:
    """Return the dtype of torch for a format."""
    found = getattr(sys.modules["torch"], _TORCH_NAMES.get(element.name, element.name), None)
    if found is None:
        raise FormatError(f"this version of torch has no {element.name}; convert to another format with dtype=")
    return found


def _of_torch(tensor: Any) -> DeviceArray:
    name = str(tensor.dtype).partition(".")[2]
    element = format_of(name if name in SCALAR_FORMATS else {"float8_e4m3fn": "float8_e4m3"}.get(name, name))
    assert not element.has_blocks
    if tensor.layout is not sys.modules["torch"].strided:
        raise FormatError(f"a tensor with layout {tensor.layout} has no plain memory; make it dense first")
    home = CudaHome(tensor.device.index or 0, "torch")
    strides = tuple([int(step) * element.itemsize for step in tensor.stride()])
    return DeviceArray(home, int(tensor.data_ptr()), 0, tuple(map(int, tensor.shape)), strides, element, tensor)


def _of_dlpack(array: Any, device: int) -> DeviceArray:
    """Return an array that exports DLPack, ready for use on the current stream of CuPy."""
    library = "jax" if type(array).__module__.startswith(("jax", "jaxlib")) else "cupy"
    home = CudaHome(device, library)
    cupy: Any = import_module("cupy")
    with home.on_stream():
        stream = cupy.cuda.get_current_stream().ptr
        # DLPack numbers the default stream 1, and 0 is not allowed
        contents = capsule_contents(array.__dlpack__(stream=stream or 1))
    owner = (array, contents.capsule)
    return DeviceArray(home, contents.address, 0, contents.shape, contents.strides, contents.format, owner, False)


def _of_interface(array: Any) -> DeviceArray | None:
    """Return an array with `__cuda_array_interface__`, of numba and others."""
    found = getattr(array, "__cuda_array_interface__", None)
    if found is None:
        return None
    element = format_of(np.dtype(found["typestr"]))
    assert not element.has_blocks
    shape = tuple(found["shape"])
    strides = found.get("strides") or tuple([element.itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])
    address, readonly = found["data"]
    cupy: Any = import_module("cupy")
    device = int(cupy.cuda.runtime.pointerGetAttributes(address).device) if address else 0
    return DeviceArray(CudaHome(device, "cupy"), int(address), 0, shape, tuple(strides), element, array, not readonly)
