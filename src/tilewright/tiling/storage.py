# SPDX-License-Identifier: Apache-2.0
"""References to stored arrays: small, sendable to another process, and opened where a task runs."""

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
from .mapped import MappedPort, is_shared_map
from .operands import port_of
from .ports import Port
from .stores import describe_store, places_of


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that holds an array: its path, and where and how the elements lie in it.

    `inode` is that of the file whose map was given; a path leads to whatever file is there.

    >>> StoredFile("a.raw", (4, 8), "<f4", 128).nbytes
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

        >>> StoredFile("a.raw", (10,), "<i2").nbytes
        20
        """
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def port(self, writing: bool) -> Port:
        """Return the port of the array, mapped for as long as the port lives.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.npy")
        ...     np.save(path, np.arange(4))
        ...     stored(path).port(writing=False).shape
        (4,)
        """
        dtype = np.dtype(self.dtype)
        array, file = map_file(self.path, dtype, self.shape, self.offset, self.fortran_order, writing)
        return port_of(array, writing) if file < 0 else MappedPort(array, file)

    def verify(self) -> None:
        """Raise unless the file still holds what it held when the reference was made.

        >>> StoredFile("nowhere.npy", (4,), "<f4").verify()
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.npy'
        """
        if self.inode is not None:
            if os.stat(self.path).st_ino != self.inode:
                raise TransferError(f"{self.path} is no longer the file that was mapped; {_AGAIN}")
            return
        found = _of_npy(self.path)
        if found != self:
            raise TransferError(f"{self.path} was {self!r} and is {found!r} now; {_AGAIN}")

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return what tells this file from others; one that is read must not have been written since, either.

        >>> sorted(StoredFile("a.raw", (4, 8), "<f4").identity(reading=False))
        ['dtype', 'fortran_order', 'offset', 'path', 'shape']
        """
        found: dict[str, Any] = {
            "path": self.path,
            "dtype": self.dtype,
            "shape": self.shape,
            "offset": self.offset,
            "fortran_order": self.fortran_order,
        }
        if reading:
            status = os.stat(self.path)
            found |= {"inode": status.st_ino, "bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """An object that holds an array, taken as it is: threads share it, and zarr arrays and the like may be sent.

    >>> Handle(np.zeros(3)).port(writing=True).shape
    (3,)
    """

    thing: Any
    seen: Any = None  # what it was when the reference was made

    def port(self, writing: bool) -> Port:
        """Return the port of the object."""
        return port_of(self.thing, writing)

    def verify(self) -> None:
        """Raise unless the object is still what it was when the reference was made.

        >>> stored(np.zeros(3)).verify()
        """
        now = describe_store(self.thing)
        if now != self.seen:
            raise TransferError(f"the {type(self.thing).__name__} was {self.seen} and is {now} now; {_AGAIN}")

    def identity(self, reading: bool) -> dict[str, Any]:
        """Return what tells this object from others; what it holds is compared task by task."""
        return describe_store(self.thing)


Stored = StoredFile | Handle

_AGAIN = "make the plan again"


def stored(thing: Any) -> Stored:
    """Return a reference to a path of an `.npy` file, a memory map, or any other object that slices.

    >>> type(stored(np.zeros(3))).__name__
    'Handle'
    """
    if isinstance(thing, (str, Path)):
        check_npy_name(thing)
        return _of_npy(str(Path(thing).resolve()))
    if is_shared_map(thing) and (thing.flags.c_contiguous or thing.flags.f_contiguous) and _is_root(thing):
        return _of_map(thing)
    return Handle(thing, describe_store(thing))


def _is_root(array: Any) -> bool:
    """Return whether a map is what was mapped, not a part of it, whose place in the file is not recorded."""
    return not isinstance(array.base, np.memmap)


def _of_npy(path: str) -> StoredFile:
    layout = read_npy_layout(path)
    return StoredFile(path, layout.shape, layout.dtype.str, layout.offset, layout.fortran_order)


def _of_map(array: Any) -> Stored:
    shape = tuple([int(n) for n in array.shape])
    turned = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    with MappedPort(array) as port:
        inode = port.inode
    if inode is None:  # the path leads elsewhere now, so only the map can be used
        return Handle(array, describe_store(array))
    return StoredFile(str(Path(array.filename).resolve()), shape, array.dtype.str, int(array.offset), turned, inode)


def check_npy_name(path: str | Path) -> None:
    """Raise unless a path is one of an `.npy` file, the only files that a path alone is enough for.

    >>> check_npy_name("a.zarr")
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: expected a path that ends in .npy, got a.zarr; pass zarr.open_array('a.zarr')
    """
    name = str(path)
    if Path(name).suffix == ".npy" and "://" not in name:
        return
    if "://" in name or Path(name).suffix == ".zarr":
        remedy = f"zarr.open_array({name!r})"
    elif Path(name).suffix in (".h5", ".hdf5", ".nc") or "::" in name:
        file, _, dataset = name.partition("::")
        remedy = f"h5py.File({file!r})[{dataset or 'name'!r}]"
    else:
        remedy = "an array, a numpy.memmap, or anything else that slices"
    raise TransferError(f"expected a path that ends in .npy, got {name}; pass {remedy}")


def check_sendable(reference: Stored, what: str) -> None:
    """Raise unless another process would see the same array: one that lives in this process cannot be sent.

    >>> check_sendable(StoredFile("a.raw", (4, 8), "<f4"), "target")
    """
    if isinstance(reference, StoredFile):
        return
    private = "an array in the memory of this process"
    if not isinstance(reference.thing, np.ndarray):
        private = next((place.private for place in places_of(reference.thing) if place.private), "")
        # what is sent with its elements can be read anywhere, but not be written
        if what == "source" and "MemoryStore" in private:
            return
    if private:
        raise TransferError(
            f"the {what} is {private}, and tasks in other processes would work on copies; use an .npy file, a memory"
            " map or a zarr array in files, or an executor of threads"
        )
