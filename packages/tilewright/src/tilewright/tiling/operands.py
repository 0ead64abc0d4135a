# SPDX-License-Identifier: Apache-2.0
"""Operands: the arrays that a pipeline or a plan reads and writes, validated, opened as endpoints, and referenced.

A reference is small, can be sent to another process, and is opened where a task runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..copying import find_device_array
from ..errors import LayoutError, TransferError
from ..files import (
    TensorStoreArray,
    absolute_name,
    is_tensorstore,
    map_file,
    open_array,
    parse_array_name,
    read_npy_layout,
)
from .array_store import describe_store, is_hdf5, reject_array_wrappers, store_locations, validate_open
from .endpoints import DeviceEndpoint, Endpoint, MappedEndpoint, MemoryEndpoint, find_memmap, is_shared_map
from .sliced_endpoint import SlicedEndpoint
from .tiler import Extents, Tiler, as_extents
from .transfer_tensors import ExternalTensor

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)  # it stands for storage, which equals only itself
class Input:
    """An operand that is read: the array `source`, the `tiler` that cuts it, and the `fill` outside of it.

    >>> Input(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).fill
    0
    """

    source: Any
    tiler: Tiler
    fill: Any = 0


@dataclass(frozen=True, eq=False)
class Output:
    """An operand that is written: the array `target`, and the `tiler` that cuts it.

    >>> Output(np.zeros((4, 8)), Tiler((4, 8), (2, 8))).tiler.count
    2
    """

    target: Any
    tiler: Tiler


def open_endpoint(array: Any, writing: bool = False) -> Endpoint:
    """Return the endpoint of an array, an external tensor, or anything else with a shape, a dtype and slices.

    `writing` requires that the array can be written.

    >>> type(open_endpoint(np.zeros((4, 8)))).__name__
    'MemoryEndpoint'
    """
    validate_operand(array, "target" if writing else "source")
    if isinstance(array, ExternalTensor):
        endpoint = MemoryEndpoint(array)
    elif isinstance(array, np.ndarray) and _has_element_strides(array):
        endpoint = MemoryEndpoint(ExternalTensor(array)) if find_memmap(array) is None else MappedEndpoint(array)
    elif (device_array := find_device_array(array)) is not None:
        if writing and not device_array.writeable:
            raise TransferError(f"cannot write to {type(array).__name__}, which is read-only; give a writable target")
        return DeviceEndpoint(device_array)
    else:
        return SlicedEndpoint(array)
    if writing and endpoint.tensor.const:
        raise TransferError(f"cannot write to {endpoint.tensor!r}, which is read-only; give a writable target")
    return endpoint


def validate_operand(array: Any, role: str) -> None:
    """Raise unless tiles of an object can be read or written: an array of plain elements with at least one axis.

    `role` is "source" or "target".

    >>> validate_operand(None, "target")
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: expected a target with shape, dtype and slices, got None; give an array, ...
    """
    if isinstance(array, ExternalTensor):
        return
    validate_open(array)
    on_host = find_device_array(array) is None
    methods = ("__getitem__", "__setitem__") if role == "target" else ("__getitem__",)
    if on_host and (isinstance(array, type) or not all(hasattr(array, name) for name in ("shape", "dtype", *methods))):
        raise TransferError(
            f"expected a {role} with shape, dtype and slices, got {'None' if array is None else type(array).__name__};"
            " give an array, a memory map, a zarr or HDF5 array, or an ExternalTensor"
        )
    reject_array_wrappers(array, f"the {role}")
    shape = as_extents(tuple(array.shape), f"the shape of the {role}")
    if not shape:
        raise LayoutError(f"the {role} has no axes, so it cannot be tiled; give array.reshape(1)")
    if min(shape) < 0 or prod([max(n, 1) for n in shape]) >= 1 << 62:
        raise LayoutError(f"the {role} has shape {shape}; extents must be positive, and their product below 2**62")
    if on_host:
        _validate_dtype(array.dtype, role)


def _validate_dtype(dtype: Any, role: str) -> None:
    try:
        element = np.dtype(dtype)
    except TypeError:
        raise TransferError(
            f"the {role} has elements of type {dtype!r}, which is not a NumPy type; pass a NumPy array, such as"
            " tensor.numpy()"
        ) from None
    if element.hasobject:
        raise LayoutError(f"the {role} holds Python objects ({element}), which cannot be copied as bytes; use numbers")
    if not element.itemsize:
        raise LayoutError(f"the {role} has elements of type {element}, which have 0 bytes; use another type")


def validate_equal_shapes(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Raise unless all sources and targets have the shape of the first source.

    >>> validate_equal_shapes([np.zeros(4)], [np.zeros(5)])
    Traceback (most recent call last):
        ...
    tilewright.errors.LayoutError: source has shape (4,), target has shape (5,); they must be equal, or ...
    """
    arrays = [*[("source", array) for array in sources], *[("target", array) for array in targets]]
    shapes = [(role, tuple([int(n) for n in array.shape])) for role, array in arrays]
    for role, shape in shapes[1:]:
        if shape != shapes[0][1]:
            raise LayoutError(
                f"source has shape {shapes[0][1]}, {role} has shape {shape}; they must be equal, or give a tiler for"
                " each: Pipeline([Input(source, tiler)], [Output(target, tiler)]). For a halo use overlap=, not a"
                " larger source"
            )


def open_operand(operand: Any, writing: bool = False) -> Any:
    """Return an operand as an array: a name is opened, a TensorStore wrapped, and anything else is what it is.

    `writing` opens a name to be written.

    >>> open_operand([1, 2])
    [1, 2]
    """
    if isinstance(operand, (str, Path)):
        return open_array(operand, writing=writing)
    return TensorStoreArray(operand) if is_tensorstore(operand) else operand


def _has_element_strides(array: np.ndarray[Any, Any]) -> bool:
    """Return whether all strides of an array are multiples of its element size."""
    multiples = all(s % array.itemsize == 0 for n, s in zip(array.shape, array.strides, strict=True) if n > 1)
    return array.ndim > 0 and array.itemsize > 0 and multiples


def as_list(operands: Item | Sequence[Item]) -> list[Item]:
    """Return one operand or a list of operands as a list.

    >>> as_list(7), as_list((7, 8))
    ([7], [7, 8])
    """
    return list(operands) if isinstance(operands, (list, tuple)) else [operands]  # type: ignore[list-item]


def tiler_with_halo(shape: Sequence[int], tile: Extents, halo: tuple[tuple[int, int], ...], order: str) -> Tiler:
    """Return the tiler of an input: the tiles of the output, each with its halo of (before, after) per axis.

    >>> tiler_with_halo((10,), (4,), ((1, 2),), "row_major")[1]
    Box(offset=(3,), shape=(7,))
    """
    space = tuple([int(n) for n in shape])
    if len(halo) != len(space):
        raise LayoutError(f"all sources need the same number of axes, got {len(halo)} and {len(space)}")
    overlap = tuple([before + after for before, after in halo])
    padded_tile = [t + n for t, n in zip(as_extents(tile, "tile", len(space)), overlap, strict=True)]
    return Tiler(space, padded_tile, overlap, halo, order)


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that holds an array: its path, and the shape, dtype, byte offset and order of the array in it.

    `inode` is that of a mapped file, so that another file at the same path is noticed.

    >>> FileReference("a.raw", (4, 8), "<f4", 128).nbytes
    128
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0
    fortran_order: bool = False
    inode: int | None = None

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements.

        >>> FileReference("a.raw", (10,), "<i2").nbytes
        20
        """
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def open(self, writing: bool) -> Endpoint:
        """Return the endpoint of the array, mapped for as long as the endpoint lives.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.npy")
        ...     np.save(path, np.arange(4))
        ...     make_reference(path).open(writing=False).shape
        (4,)
        """
        dtype = np.dtype(self.dtype)
        array, file = map_file(self.path, dtype, self.shape, self.offset, self.fortran_order, writing)
        return open_endpoint(array, writing) if file < 0 else MappedEndpoint(array, file)

    def verify(self) -> None:
        """Raise unless the file still holds the array that was referenced.

        >>> FileReference("nowhere.npy", (4,), "<f4").verify()
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.npy'
        """
        if self.inode is not None:
            if os.stat(self.path).st_ino != self.inode:
                raise TransferError(f"{self.path} is no longer the file that was mapped; make the plan again")
            return
        current = _reference_npy(self.path)
        if current != self:
            raise TransferError(f"{self.path} has changed: expected {self!r}, got {current!r}; make the plan again")

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return plain data that identifies the file; with `reading`, also the version of its content.

        >>> sorted(FileReference("a.raw", (4, 8), "<f4").identity(reading=False))
        ['dtype', 'fortran_order', 'offset', 'path', 'shape']
        """
        identity: dict[str, Any] = {
            "path": self.path,
            "dtype": self.dtype,
            "shape": self.shape,
            "offset": self.offset,
            "fortran_order": self.fortran_order,
        }
        if reading:
            status = os.stat(self.path)
            identity |= {"inode": status.st_ino, "bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        return identity


@dataclass(frozen=True, slots=True, eq=False)
class ObjectReference:
    """An array object: threads share it, and zarr arrays and the like may be sent to other processes.

    `description` is what the array was when the reference was made.

    >>> ObjectReference(np.zeros(3)).open(writing=True).shape
    (3,)
    """

    array: Any
    description: dict[str, Any] | None = None

    def open(self, writing: bool) -> Endpoint:
        """Return the endpoint of the array."""
        return open_endpoint(self.array, writing)

    def verify(self) -> None:
        """Raise unless the array still matches its description.

        >>> make_reference(np.zeros(3)).verify()
        """
        current = describe_store(self.array)
        if current != self.description:
            raise TransferError(
                f"the {type(self.array).__name__} has changed: expected {self.description}, got {current}; make the"
                " plan again"
            )

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return plain data that identifies the array; its content is compared task by task."""
        return describe_store(self.array)


@dataclass(frozen=True, slots=True)
class NameReference:
    """The name of a stored array, such as `a.zarr` or `a.h5::x`, which is opened wherever a task runs.

    `description` is what the array was when the reference was made.

    >>> NameReference("a.zarr").name
    'a.zarr'
    """

    name: str
    description: dict[str, Any] | None = None

    def open(self, writing: bool) -> Endpoint:
        """Return the endpoint of the array, opened anew."""
        return open_endpoint(open_array(self.name, writing=writing), writing)

    def verify(self) -> None:
        """Raise unless the array still matches its description."""
        current = describe_store(open_array(self.name))
        if current != self.description:
            raise TransferError(
                f"{self.name} has changed: expected {self.description}, got {current}; make the plan again"
            )

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return plain data that identifies the array; its content is compared task by task."""
        return {"name": self.name, **describe_store(open_array(self.name))}


ArrayReference = FileReference | NameReference | ObjectReference


def make_reference(array: Any) -> ArrayReference:
    """Return a reference to a name, a memory map, or any other array.

    >>> type(make_reference(np.zeros(3))).__name__
    'ObjectReference'
    """
    if isinstance(array, (str, Path)):
        name = parse_array_name(array)
        if name.kind == "npy" and name.is_local:
            return _reference_npy(str(Path(name.path).resolve()))
        text = absolute_name(name)
        return NameReference(text, describe_store(open_array(text)))
    array = open_operand(array)
    # the file offset of a view of a map is not recorded, so it stays an object
    is_entire_map = is_shared_map(array) and not isinstance(array.base, np.memmap)
    if is_entire_map and (array.flags.c_contiguous or array.flags.f_contiguous):
        return _reference_map(array)
    return ObjectReference(array, describe_store(array))


def _reference_npy(path: str) -> FileReference:
    layout = read_npy_layout(path)
    return FileReference(path, layout.shape, layout.dtype.str, layout.offset, layout.fortran_order)


def _reference_map(array: Any) -> ArrayReference:
    with MappedEndpoint(array) as endpoint:
        inode = endpoint.inode
    if inode is None:  # the path names another file now, so only the map can be used
        return ObjectReference(array, describe_store(array))
    shape = tuple([int(n) for n in array.shape])
    fortran_order = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    path = str(Path(array.filename).resolve())
    return FileReference(path, shape, array.dtype.str, int(array.offset), fortran_order, inode)


def validate_sendable(reference: ArrayReference, role: str) -> None:
    """Raise unless another process would see the same array; `role` is "source" or "target".

    >>> validate_sendable(FileReference("a.raw", (4, 8), "<f4"), "target")
    """
    if isinstance(reference, FileReference):
        return
    private = "an array in the memory of this process"
    array = open_array(reference.name) if isinstance(reference, NameReference) else reference.array
    if not isinstance(array, np.ndarray):
        private = next((location.private for location in store_locations(array) if location.private), "")
        if isinstance(reference, NameReference) and is_hdf5(array):
            if role == "source":
                return  # every process opens the file
            private = "a dataset of an HDF5 file, which one process at a time can write"
        if role == "source" and "zarr MemoryStore" in private:
            return  # its elements are sent with it
    if private:
        raise TransferError(
            f"the {role} is {private}, so tasks in other processes would use a copy; use an .npy file, a memory map, a"
            " zarr array in files, or an executor of threads"
        )
