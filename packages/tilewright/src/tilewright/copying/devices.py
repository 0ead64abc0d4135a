# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, on the host and on devices, and the interface of the engines that run plans there."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import ml_dtypes
import numpy as np

from ..errors import DeviceError, LayoutError, TransferError
from ..formats import ScalarFormat, scalar_format_of, uint8
from ..plugins import list_plugins, load_plugin
from .placement import Array, Buffer, strided_range

if TYPE_CHECKING:
    from .plan import Plan

WIDEST = 16
"""Bytes that one thread of a device loads or stores at once; kernels depend on the alignment of addresses to them."""


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
        """The NumPy dtype of the elements."""
        return self.format.dtype

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.format.itemsize

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the array is C-contiguous."""
        packed = packed_strides(self.shape, self.itemsize)
        return all(n <= 1 or own == stride for n, own, stride in zip(self.shape, self.strides, packed, strict=True))

    @property
    def flags(self) -> SimpleNamespace:
        """The flags of a NumPy array that copies need."""
        return SimpleNamespace(c_contiguous=self.is_contiguous, writeable=self.writeable)

    @property
    def span(self) -> tuple[int, int]:
        """The offset in bytes of the lowest element, and the bytes from there to the end of the highest."""
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
            others = iter([stride for n, stride in zip(self.shape, self.strides, strict=True) if n != 1])
            strides = tuple([next(others) if n != 1 else self.itemsize for n in wanted])
        elif self.is_contiguous and prod(wanted) == self.size:
            strides = packed_strides(wanted, self.itemsize)
        else:
            raise LayoutError(f"cannot reshape {self.shape} with strides {self.strides} to {wanted} without a copy")
        return replace(self, shape=wanted, strides=strides, owner=owner)

    @property
    def buffer(self) -> Buffer:
        """The address range of the array; addresses in an OpenCL buffer count from its start."""
        start, nbytes = self.span
        base = self.memory if isinstance(self.memory, int) else 0
        return Buffer(base + start, nbytes, self.owner, self.writeable)

    @property
    def alignment(self) -> int:
        """The alignment of the lowest element, at most 16 bytes; raises if its format needs more."""
        address = self.buffer.address
        alignment = gcd(WIDEST, address)
        if alignment < min(WIDEST, self.itemsize):
            raise TransferError(f"address {address:#x} is not aligned to {self.format.name}; copy the array first")
        return alignment

    def as_bytes(self) -> DeviceArray:
        """Return the memory of the array as a flat array of bytes."""
        start, nbytes = self.span
        return DeviceArray(self.backend, self.memory, start, (nbytes,), (1,), uint8, self.owner)


Operand: TypeAlias = "Array | DeviceArray"


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a C-contiguous array.

    >>> packed_strides((2, 3, 4), 8)
    (96, 32, 8)
    """
    return tuple([itemsize * prod(shape[k + 1 :]) for k in range(len(shape))])


# Arrays of other libraries through DLPack, in and out, also in number formats that NumPy cannot exchange.

HOST_DEVICES = (1, 3)  # plain and pinned memory of the host
CUDA_DEVICES = (2, 13)  # plain and managed memory of a CUDA device
_NUMBER_CLASSES = {0: "int", 1: "uint", 2: "float"}
_FORMAT_NAMES = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3", (12, 8): "float8_e5m2"}
# the DLPack type code of formats that NumPy cannot export, and integers of the same size that it can
_EXPORT_TYPES = {
    np.dtype(ml_dtypes.bfloat16): (4, np.uint16),
    np.dtype(ml_dtypes.float8_e4m3fn): (10, np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): (12, np.uint8),
}


class CapsuleTensor(ctypes.Structure):
    """`DLTensor` of the DLPack standard."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class CapsuleContents:
    """The array in a DLPack capsule: address, shape, strides in bytes, format, device; the capsule owns the memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: ScalarFormat
    device_type: int
    capsule: Any


def capsule_tensor(capsule: object) -> CapsuleTensor:
    """Return the tensor struct in a capsule itself, not a copy of it.

    >>> import numpy as np
    >>> capsule_tensor(np.zeros((2, 3)).__dlpack__()).ndim
    2
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return CapsuleTensor.from_address(pointer(capsule, b"dltensor"))


def read_capsule(capsule: object) -> CapsuleContents:
    """Return the description of the array in a DLPack capsule.

    >>> import numpy as np
    >>> contents = read_capsule(np.arange(6, dtype=np.int16).reshape(2, 3).__dlpack__())
    >>> contents.shape, contents.strides, contents.format.name
    ((2, 3), (6, 2), 'int16')
    """
    tensor = capsule_tensor(capsule)
    name = _FORMAT_NAMES.get((tensor.code, tensor.bits), f"{_NUMBER_CLASSES.get(tensor.code, '?')}{tensor.bits}")
    if tensor.lanes != 1 or "?" in name:
        raise LayoutError(f"unknown DLPack type: code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes")
    element = scalar_format_of(name)
    shape = tuple([int(tensor.shape[k]) for k in range(tensor.ndim)])
    if tensor.strides:
        in_elements = tuple([int(tensor.strides[k]) for k in range(tensor.ndim)])
    else:
        in_elements = tuple([prod(shape[k + 1 :]) for k in range(tensor.ndim)])
    strides = tuple([stride * element.itemsize for stride in in_elements])
    address = int(tensor.data or 0) + int(tensor.byte_offset)
    return CapsuleContents(address, shape, strides, element, int(tensor.device_type), capsule)


class SupportsDLPack(Protocol):
    """An array of any library that exports DLPack."""

    def __dlpack__(self, **options: Any) -> Any: ...


def from_dlpack(exporter: SupportsDLPack) -> Array:
    """Return a NumPy array that shares the memory of an object that exports DLPack.

    >>> values = np.arange(4)
    >>> bool(np.shares_memory(from_dlpack(values), values))
    True
    """
    try:
        array = np.from_dlpack(exporter)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        return _import_capsule(exporter, problem)
    if not array.flags.writeable and hasattr(exporter, "__array__"):
        # DLPack before version 1 cannot mark memory as writeable; the object's own export may
        own = np.asarray(exporter)
        if own.__array_interface__["data"][0] == array.__array_interface__["data"][0]:
            return own
    return array


def _import_capsule(exporter: SupportsDLPack, problem: Exception) -> Array:
    """Return an array that NumPy cannot import, if it is in host memory and its format is known."""
    try:
        contents = read_capsule(exporter.__dlpack__())
    except (BufferError, LayoutError, RuntimeError, TypeError, ValueError):
        contents = None
    if contents is None or contents.device_type not in HOST_DEVICES:
        raise LayoutError(
            f"cannot share the memory of {type(exporter).__name__} through DLPack: {problem}; copy device memory to the"
            " host first"
        ) from None
    shape, strides, size = contents.shape, contents.strides, contents.format.itemsize
    if 0 in shape:
        return np.empty(shape, dtype=contents.format.dtype)
    low, high = strided_range(shape, strides, size)
    memory: Any = (ctypes.c_uint8 * (high - low)).from_address(contents.address + low)
    memory.owner = contents.capsule  # an unused capsule frees the memory when it is deleted
    scalars: Array = np.frombuffer(memory, dtype=f"u{size}")
    return np.lib.stride_tricks.as_strided(scalars[-low // size :], shape, strides).view(contents.format.dtype)


def as_host_array(values: object) -> Array:
    """Return `values` (an array of any library, or nested sequences) as a NumPy array, sharing memory if possible.

    Tensors of torch are detached from their graph and copied from their device.

    >>> as_host_array([[1, 2]]).shape
    (1, 2)
    """
    if isinstance(values, np.ndarray):
        return values
    for method in ("detach", "cpu"):
        values = getattr(values, method)() if hasattr(values, method) else values
    return from_dlpack(values) if hasattr(values, "__dlpack__") else np.asarray(values)


def export_dlpack(array: Array, **options: Any) -> object:
    """Return an array as a DLPack capsule, also in formats that NumPy cannot export.

    `options` are as in `__dlpack__`.

    >>> class Exporter:
    ...     def __dlpack__(self, **options):
    ...         return export_dlpack(np.ones(2, ml_dtypes.bfloat16))
    ...
    ...     def __dlpack_device__(self):
    ...         return 1, 0
    >>> from_dlpack(Exporter()).dtype
    dtype(bfloat16)
    """
    source = array if array.flags.writeable else array.copy()  # not every capsule can mark memory as read-only
    if array.dtype not in _EXPORT_TYPES:
        return source.__dlpack__(**options)
    code, bits = _EXPORT_TYPES[array.dtype]
    capsule = source.view(bits).__dlpack__()  # exported as integers, then relabelled
    capsule_tensor(capsule).code = code
    return capsule


# `DeviceEngine` and `Backend`: what an engine that runs plans on devices implements.

Signature: TypeAlias = tuple[Hashable, ...]


class ArrayLibrary(NamedTuple):
    """The calls that describe and make the arrays of one library: as few as a repeated copy needs.

    `signature` returns the properties that a plan depends on, `address` the address of the first element, and
    `is_writeable` whether there may be a copy to an array. `allocator` takes an array, a shape and a format; it returns
    a function that returns a new, uninitialised array in the memory of that array, and its address.

    >>> library = ArrayLibrary(np.shape, lambda array: array.ctypes.data, lambda array: True, lambda *_: lambda: None)
    >>> library.signature(np.zeros((2, 3)))
    (2, 3)
    """

    signature: Callable[[Any], Signature]
    address: Callable[[Any], int]
    is_writeable: Callable[[Any], bool]
    allocator: Callable[[Any, tuple[int, ...], ScalarFormat], Callable[[], tuple[Any, int]]]


class DeviceRunner(Protocol):
    """A plan that is compiled for a device: a call enqueues it from a source address to a target address."""

    def __call__(self, source: int, target: int) -> None: ...

    def bind(self, source: int, target: int) -> Callable[[], None]:
        """Return a function that enqueues the plan with the addresses `source` and `target`."""


class Backend(ABC):
    """A device, with the queue and the library (CuPy, torch, JAX, PyOpenCL) that allocates arrays on it.

    Plans run asynchronously: the host waits only in `download`, `upload` and `synchronize`. An engine whose addresses
    are integers may also prepare plans (`can_prepare`), so that repeated copies skip all checks.
    """

    engine: ClassVar[str]
    """The name of the engine that runs plans on the device."""

    @abstractmethod
    def memory_space(self) -> object:
        """Return the identity of the memory of the device: plans copy only between arrays of equal ones."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new, uninitialised array of a `shape` on the device; `element` is its format."""

    @abstractmethod
    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous `array` to a contiguous host array `target`, and wait for them."""

    @abstractmethod
    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array `source` to a contiguous `array`."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all enqueued work is done."""

    @abstractmethod
    def run_plan(self, plan: Plan, source: DeviceArray, target: DeviceArray) -> None:
        """Enqueue a `plan` from `source` to `target`; raise a FormatError if there is no code for its formats."""

    def can_prepare(self, plan: Plan) -> bool:
        """Return whether `make_runner` and `run_batch` support a `plan`."""
        return False

    def make_runner(self, plan: Plan, aligned: tuple[int, int]) -> DeviceRunner:
        """Return a function that enqueues a `plan` between addresses, `aligned` to these numbers of bytes."""
        raise NotImplementedError

    def run_batch(self, plan: Plan, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Enqueue a `plan` for up to MAX_BATCH pairs of addresses, `sources` and `targets`."""
        raise NotImplementedError

    def array_library(self, array_type: type) -> ArrayLibrary | None:
        """Return the calls for arrays of a type, `array_type`, or None: they are then described as `DeviceArray`."""
        return None

    def unwrap(self, array: DeviceArray) -> Any:
        """Return an `array` as an object of its library."""
        return array.owner


class DeviceEngine(ABC):
    """An engine that runs plans on devices; a companion registers it as an entry point in `tilewright.engines`.

    >>> load_engine("opencl").name
    'opencl'
    """

    name: str
    """The name that people use: the name of the entry point."""

    @abstractmethod
    def unavailable_reason(self) -> str | None:
        """Return why the engine cannot run and what to do about it, or None if it can."""

    @abstractmethod
    def default_backend(self) -> Backend:
        """Return the backend for host data: the first or the current device."""

    @abstractmethod
    def find_array(self, array: object) -> DeviceArray | None:
        """Return an `array` of another library in the memory of a device, or None for anything else."""

    @abstractmethod
    def code(self, plan: Plan) -> str:
        """Return the source text of the kernels of a `plan`."""

    def unavailable_error(self) -> DeviceError:
        """Return the error of an engine that cannot run."""
        return DeviceError(f"the {self.name} engine cannot run: {self.unavailable_reason()}")


class _MissingEngine(DeviceEngine):
    """An engine that is not installed: everything but its name raises an error with the command that installs it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def unavailable_reason(self) -> str:
        return f"tilewright-gpu is not installed; pip install 'tilewright[{self.name}]'"

    def default_backend(self) -> Backend:
        raise self.unavailable_error()

    def find_array(self, array: object) -> DeviceArray | None:
        raise self.unavailable_error()

    def code(self, plan: Plan) -> str:
        raise self.unavailable_error()


DEVICE_ENGINES = ("opencl", "cuda")


def load_engine(name: str) -> DeviceEngine:
    """Return a device engine by its `name`, "opencl" or "cuda", or the name of a plug-in.

    Its `unavailable_reason()` tells whether it can run, and what installs it if not.

    >>> reason = load_engine("opencl").unavailable_reason()
    >>> reason is None or "pip install 'tilewright[opencl]'" in reason
    True
    """
    if name not in DEVICE_ENGINES and name not in list_plugins("engines"):
        raise TransferError(f"unknown device engine {name!r}; use one of {', '.join(DEVICE_ENGINES)}")
    engine = load_plugin("engines", name, DeviceEngine)
    return engine if isinstance(engine, DeviceEngine) else _MissingEngine(name)


def find_device_array(array: object) -> DeviceArray | None:
    """Return an `array` in device memory as a `DeviceArray`, or None for any other array.

    >>> find_device_array(np.zeros(3)) is None
    True
    """
    if isinstance(array, np.ndarray):
        return None
    if isinstance(array, DeviceArray):
        return array
    memory = getattr(array, "device_memory", None)  # our own buffers
    if memory is not None:
        return memory.array if isinstance(memory.array, DeviceArray) else None
    name = _engine_of(array)
    return None if name is None else load_engine(name).find_array(array)


def _engine_of(array: Any) -> str | None:
    """Return the name of the engine whose memory holds an array of another library, or None for host memory."""
    if any(base.__module__.partition(".")[0] == "pyopencl" for base in type(array).__mro__):
        return "opencl"
    try:
        device_type = int(array.__dlpack_device__()[0])
    except (AttributeError, RuntimeError, TypeError, ValueError):  # no DLPack, or a device that DLPack does not know
        return "cuda" if hasattr(array, "__cuda_array_interface__") else None
    return "cuda" if device_type in CUDA_DEVICES else None
