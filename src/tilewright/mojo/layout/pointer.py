# SPDX-License-Identifier: Apache-2.0
"""Pointers into the storage of a tensor, and the address spaces that label it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ...errors import CoordinateError, LayoutError
from ...layout.validation import as_integer
from ...tensor.store import Store


class AddressSpace(Enum):
    """The kind of memory that a tensor is in. On a host it is only a label.

    >>> print(AddressSpace.SHARED)
    AddressSpace.SHARED
    """

    GENERIC = 0
    GLOBAL = 1
    SHARED = 3
    CONSTANT = 4
    LOCAL = 5


@dataclass(frozen=True, slots=True, eq=False)
class LabelledStore(Store):
    """A store with the address space of its memory.

    >>> LabelledStore.of([1, 2]).address_space
    <AddressSpace.GENERIC: 0>
    """

    address_space: AddressSpace = AddressSpace.GENERIC


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
        return self.store.address(self.offset)

    def _check_index(self, k: int) -> int:
        place = self.offset + as_integer(k, "an offset from a pointer")
        if not 0 <= place < self.store.size:
            raise CoordinateError(f"scalar {place} is outside the storage, which has 0 to {self.store.size - 1}")
        return place

    def __getitem__(self, k: int) -> Any:
        return self.store.host[self._check_index(k)]

    def __setitem__(self, k: int, value: Any) -> None:
        if self.store.readonly:
            raise LayoutError("cannot write through a pointer into read-only storage")
        self.store.host[self._check_index(k)] = value

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.store, self.offset + as_integer(count, "a pointer step"))

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Pointer):
            if other.store.data is not self.store.data:
                raise LayoutError("cannot subtract pointers into different storage")
            return self.offset - other.offset
        return self + -as_integer(other, "a pointer step")
