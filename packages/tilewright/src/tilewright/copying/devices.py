# SPDX-License-Identifier: Apache-2.0
"""`DeviceArray`: an array of any library in device memory, with the attributes of a NumPy array that planning needs."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import gcd, prod
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import ml_dtypes
import numpy as np

from .._files import write_file
from ..errors import LayoutError, TransferError
from ..formats import ScalarFormat, scalar_format_of, uint8
from .codegen import WIDEST
from .placement import Array, Buffer, strided_range
from .plan import Plan


class Backend(ABC):
    """A device and the library (CuPy, torch, JAX, PyOpenCL) that allocates arrays on it."""

    engine: ClassVar[str]
    """The name of the engine that runs plans on the device."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new, uninitialised array on the device."""

    def download(self, array: DeviceArray, target: Array) -> None:
        """Copy the bytes of a contiguous device array to a contiguous host array, and wait for them."""
        if array.size:
            self._download(array, target.reshape(-1).view(np.uint8))

    def upload(self, source: Array, array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""
        if array.size:
            self._upload(np.ascontiguousarray(source).reshape(-1).view(np.uint8), array)

    @abstractmethod
    def _download(self, array: DeviceArray, data: Array) -> None:
        """Copy an array that is not empty to bytes of the host."""

    @abstractmethod
    def _upload(self, data: Array, array: DeviceArray) -> None:
        """Copy bytes of the host to an array that is not empty."""

    def unwrap(self, array: DeviceArray) -> Any:
        """Return the array as an object of its library."""
        return array.owner

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all enqueued work is done."""


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
        return all(n <= 1 or own == step for n, own, step in zip(self.shape, self.strides, packed, strict=True))

    @property
    def flags(self) -> Any:
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
            steps = iter([step for n, step in zip(self.shape, self.strides, strict=True) if n != 1])
            strides = tuple([next(steps) if n != 1 else self.itemsize for n in wanted])
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
_KINDS = {0: "int", 1: "uint", 2: "float"}
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
    name = _FORMAT_NAMES.get((tensor.code, tensor.bits), f"{_KINDS.get(tensor.code, '?')}{tensor.bits}")
    if tensor.lanes != 1 or "?" in name:
        raise LayoutError(f"unknown DLPack type: code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes")
    element = scalar_format_of(name)
    shape = tuple([int(tensor.shape[k]) for k in range(tensor.ndim)])
    if tensor.strides:
        steps = tuple([int(tensor.strides[k]) for k in range(tensor.ndim)])
    else:
        steps = tuple([prod(shape[k + 1 :]) for k in range(tensor.ndim)])
    strides = tuple([step * element.itemsize for step in steps])
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


def export_dlpack(array: Array, **options: Any) -> Any:
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


# Caches of compiled plans: `PlanCache` in memory, and compiled kernels on disk for the next process.

Compiled = TypeVar("Compiled")

FILE_SIGNATURE = b"tilewright kernel 1\n"
MAX_FILE_BYTES = 256 << 20
MAX_FILES = 4096
MAX_PLANS = 256
MAX_TABLE_BYTES = 256 << 20  # tables of a scattered layout can be as large as the tensor
_DISABLED = ("0", "off", "none")


class PlanCache(Generic[Compiled]):
    """An engine's programs compiled from plans, looked up by the identity of the plan and a key; safe under threads.

    `table_bytes` returns the bytes of tables that an entry holds. The cache is emptied when it holds too many plans or
    too many bytes.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8"))
    >>> cache = PlanCache()
    >>> cache.get(plan, "device 0", lambda: "compiled"), cache.get(plan, "device 0", lambda: "compiled again")
    ('compiled', 'compiled')
    """

    def __init__(self, table_bytes: Callable[[Compiled], int] = lambda _: 0) -> None:
        self._entries: dict[tuple[int, Hashable], tuple[Plan, Compiled]] = {}
        self._table_bytes, self._total_bytes = table_bytes, 0
        self._lock = Lock()

    def get(self, plan: Plan, key: Hashable, compile_plan: Callable[[], Compiled]) -> Compiled:
        """Return the entry of a plan under a key, compiling it if there is none."""
        entry = self._entries.get((id(plan), key))
        if entry is not None and entry[0] is plan:
            return entry[1]
        compiled = compile_plan()
        nbytes = self._table_bytes(compiled)
        with self._lock:
            if len(self._entries) >= MAX_PLANS or self._total_bytes + nbytes > MAX_TABLE_BYTES:
                self._entries.clear()
                self._total_bytes = 0
            self._total_bytes += nbytes
            self._entries[id(plan), key] = (plan, compiled)
        return compiled


def cache_directory() -> Path | None:
    """Return the folder of compiled kernels: TILEWRIGHT_CACHE or the user's cache; None if TILEWRIGHT_CACHE is "0".

    >>> os.environ["TILEWRIGHT_CACHE"] = "0"
    >>> cache_directory() is None
    True
    >>> del os.environ["TILEWRIGHT_CACHE"]
    """
    named = os.environ.get("TILEWRIGHT_CACHE")
    if named:
        return None if named.lower() in _DISABLED else Path(named).expanduser() / "kernels"
    home = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "tilewright" / "kernels"
    except RuntimeError:  # the user has no home folder
        return None


def load_or_compile(facts: Iterable[str], compile_program: Callable[[], bytes]) -> bytes:
    """Return the cached kernel that depends on these facts, or compile it and store it.

    A cache that cannot be read or written is ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.environ["TILEWRIGHT_CACHE"] = folder
    ...     first, second = (load_or_compile(["device", "program"], lambda: code) for code in (b"code", b"other code"))
    >>> del os.environ["TILEWRIGHT_CACHE"]
    >>> first, second
    (b'code', b'code')
    """
    folder = cache_directory()
    if folder is None:
        return compile_program()
    path = folder / _file_name(facts)
    code = _read_entry(path)
    if code is None:
        code = compile_program()
        with suppress(OSError):
            _write_entry(path, code)
    return code


def remove_entry(facts: Iterable[str]) -> None:
    """Remove the cached kernel that depends on these facts, for example if the driver rejects it.

    >>> remove_entry(["a program that was never compiled"])
    """
    folder = cache_directory()
    if folder is not None:
        with suppress(OSError):
            (folder / _file_name(facts)).unlink()


def _file_name(facts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(f"{len(fact)}:{fact}".encode())
    return f"{digest.hexdigest()}.kernel"


def _read_entry(path: Path) -> bytes | None:
    """Return the contents of an entry if it is intact, and update its time of use."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(FILE_SIGNATURE) + 32
    body = data[head:]
    if not data.startswith(FILE_SIGNATURE) or hashlib.sha256(body).digest() != data[len(FILE_SIGNATURE) : head]:
        return None  # the next write replaces it
    with suppress(OSError):
        os.utime(path)
    return body


def _write_entry(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # the hash shows whether an entry is intact, so there is no need to wait for the disk
    write_file(path, FILE_SIGNATURE + hashlib.sha256(body).digest() + body, durable=False)
    _remove_oldest(path.parent)


def _remove_oldest(folder: Path) -> None:
    """If the cache is too large, remove the least recently used entries until it is half full."""
    entries = []
    for path in folder.iterdir():
        with suppress(OSError):  # removed by another process meanwhile
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    if len(entries) <= MAX_FILES and sum(size for _, size, _ in entries) <= MAX_FILE_BYTES:
        return
    entries.sort(reverse=True, key=lambda entry: entry[0])
    total = 0
    for count, (_, size, path) in enumerate(entries):
        total += size
        if total > MAX_FILE_BYTES // 2 or count >= MAX_FILES // 2:
            with suppress(OSError):
                path.unlink()
