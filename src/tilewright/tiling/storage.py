# SPDX-License-Identifier: Apache-2.0
"""References to stored arrays: small, sendable to another process, and opened where a task runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TransferError
from .mapped import is_shared_map


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that holds an array: its path, and where and how the elements lie in it.

    >>> StoredFile("a.raw", (4, 8), "<f4", 128).nbytes
    128
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0
    fortran_order: bool = False

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements.

        >>> StoredFile("a.raw", (10,), "<i2").nbytes
        20
        """
        return int(np.prod(self.shape, dtype=object)) * np.dtype(self.dtype).itemsize

    def open(self, writing: bool) -> Any:
        """Return the array, mapped.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.npy")
        ...     np.save(path, np.arange(4))
        ...     stored(path).open(writing=False).tolist()
        [0, 1, 2, 3]
        """
        order = "F" if self.fortran_order else "C"
        mode = "r+" if writing else "r"
        return np.memmap(self.path, np.dtype(self.dtype), mode, self.offset, self.shape, order)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class Handle:
    """An object that holds an array, taken as it is: threads share it, and zarr arrays and the like may be sent.

    >>> Handle(np.zeros(3)).open(writing=True).shape
    (3,)
    """

    thing: Any

    def open(self, writing: bool) -> Any:
        """Return the object."""
        return self.thing


Stored = StoredFile | Handle


def stored(thing: Any) -> Stored:
    """Return a reference to a path of an `.npy` file, a memory map, or any other object that slices.

    >>> type(stored(np.zeros(3))).__name__
    'Handle'
    """
    if isinstance(thing, (str, Path)):
        if Path(thing).suffix != ".npy":
            raise TransferError(f"{thing} is not an .npy file; open it yourself, and pass what slices")
        return _of_map(np.load(thing, mmap_mode="r", allow_pickle=False))
    if is_shared_map(thing) and (thing.flags.c_contiguous or thing.flags.f_contiguous) and _is_root(thing):
        return _of_map(thing)
    return Handle(thing)


def _is_root(array: Any) -> bool:
    """Return whether a map is what was mapped, not a part of it, whose place in the file is not recorded."""
    return not isinstance(array.base, np.memmap)


def _of_map(array: Any) -> StoredFile:
    shape = tuple([int(n) for n in array.shape])
    turned = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    return StoredFile(str(Path(array.filename).resolve()), shape, array.dtype.str, int(array.offset), turned)


def check_sendable(reference: Stored, what: str) -> None:
    """Raise unless another process would see the same array: one that lives in this process cannot be sent.

    >>> check_sendable(StoredFile("a.raw", (4, 8), "<f4"), "target")
    """
    if isinstance(reference, Handle) and isinstance(reference.thing, np.ndarray):
        raise TransferError(
            f"the {what} is an array in the memory of this process, and tasks in other processes would work on copies;"
            " use an .npy file, a memory map or a zarr array, or an executor of threads"
        )
