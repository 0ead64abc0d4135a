# SPDX-License-Identifier: Apache-2.0
"""References to arrays: small, sendable to another process, and opened where a task runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TransferError
from ..files.arrays import map_file
from ..files.npy import read_npy_layout
from .endpoints import Endpoint
from .mapped_endpoint import MappedEndpoint, is_shared_map
from .operands import open_endpoint, validate_npy_path
from .store_location import describe_store, store_locations


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


ArrayReference = FileReference | ObjectReference


def make_reference(array: Any) -> ArrayReference:
    """Return a reference to the path of an `.npy` file, a memory map, or any other array.

    >>> type(make_reference(np.zeros(3))).__name__
    'ObjectReference'
    """
    if isinstance(array, (str, Path)):
        validate_npy_path(array)
        return _reference_npy(str(Path(array).resolve()))
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
    if not isinstance(reference.array, np.ndarray):
        private = next((location.private for location in store_locations(reference.array) if location.private), "")
        if role == "source" and "MemoryStore" in private:
            return  # its elements are sent with it
    if private:
        raise TransferError(
            f"the {role} is {private}, so tasks in other processes would use a copy; use an .npy file, a memory map, a"
            " zarr array in files, or an executor of threads"
        )
