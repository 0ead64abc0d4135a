# SPDX-License-Identifier: Apache-2.0
"""`Pointer`: a place in storage, as kernels pass it around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import CoordinateError, LayoutError
from ..layout.integers import as_integer
from .storage import Store


@dataclass(frozen=True, slots=True)
class Pointer:
    """A scalar of a store: `offset` scalars after its start.

    >>> pointer = Pointer(Store.of([10, 11, 12]), 1)
    >>> int(pointer[0]), int(pointer[1]), (pointer + 1).offset
    (11, 12, 2)
    """

    store: Store
    offset: int

    @property
    def storage(self) -> Any:
        """Return the object that holds the memory.

        >>> Pointer(Store.of([10, 11]), 1).storage
        [10, 11]
        """
        return self.store.origin

    @property
    def address(self) -> int:
        """Return the byte address.

        >>> pointer = Pointer(Store.of(bytearray(16), "float32"), 0)
        >>> (pointer + 1).address - pointer.address
        4
        """
        return int(self.store.host.ctypes.data) + self.offset * self.store.format.itemsize

    def _index(self, k: int) -> int:
        place = self.offset + as_integer(k, "an offset from a pointer")
        if not 0 <= place < self.store.size:
            raise CoordinateError(f"scalar {place} is outside the storage, which has 0 to {self.store.size - 1}")
        return place

    def __getitem__(self, k: int) -> Any:
        return self.store.host[self._index(k)]

    def __setitem__(self, k: int, value: Any) -> None:
        if self.store.readonly:
            raise LayoutError("the storage is read-only and cannot be written through a pointer")
        self.store.host[self._index(k)] = value

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.store, self.offset + as_integer(count, "a pointer step"))

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Pointer):
            if other.store.data is not self.store.data:
                raise LayoutError("the distance of two pointers into different storage is not defined")
            return self.offset - other.offset
        return self + -as_integer(other, "a pointer step")
