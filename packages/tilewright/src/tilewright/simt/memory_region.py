# SPDX-License-Identifier: Apache-2.0
"""The memory that a kernel touches: arguments in global memory, shared arrays of a block, local arrays of a thread."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

from ..layout import product
from ..tensor import Array, Store, View, elements_layout

GLOBAL, SHARED, LOCAL = "global", "shared", "local"
POISON = 0xCD  # bytes of memory that nobody has written
_LARGE = 1 << 20  # elements; the coordinates in larger tensors are not searched


class MemoryRegion:
    """A contiguous piece of memory with a name: where it starts, what is in it, and which bytes were written.

    `written` has one byte per byte of memory, None if all of it had values before the launch.

    >>> region = MemoryRegion("a", GLOBAL, np.zeros(4, dtype=np.float32))
    >>> region.nbytes, region.element_text(8)
    (16, 'a[2]')
    """

    __slots__ = (
        *(
            "_table",
            "address",
            "data",
            "itemsize",
            "name",
            "nbytes",
            "number",
            "space",
            "view",
            "view_start",
            "written",
        ),
    )

    def __init__(self, name: str, space: str, data: Array, view: View | None = None) -> None:
        self.name, self.space, self.data = name, space, data
        self.view, self.view_start = view, 0  # a tensor in the region, and the byte where its storage starts
        self.address = int(data.ctypes.data)
        self.nbytes, self.itemsize = int(data.nbytes), int(data.itemsize)
        self.number = 0
        self.written: bytearray | None = None
        self._table: Any = None

    def clear(self) -> None:
        """Forget what was written: the memory of a new block.

        >>> region = MemoryRegion("s", SHARED, np.zeros(2, dtype=np.uint8))
        >>> region.clear()
        >>> region.data.tolist(), region.written
        ([205, 205], bytearray(b'\\x00\\x00'))
        """
        self.data.view(np.uint8)[...] = POISON
        self.written = bytearray(self.nbytes)

    def include(self, data: Array) -> None:
        """Extend the region by an array that overlaps it.

        >>> numbers = np.zeros(8, dtype=np.int8)
        >>> region = MemoryRegion("a", GLOBAL, numbers[:6])
        >>> region.include(numbers[4:])
        >>> region.nbytes
        8
        """
        start = int(data.ctypes.data)
        low, high = min(self.address, start), max(self.address + self.nbytes, start + int(data.nbytes))
        self.view_start += self.address - low
        self.address, self.nbytes = low, high - low
        self.written = None

    def element_text(self, start: int) -> str:
        """Return the element at a byte as text: `a[2, 3]` if the shape of the tensor is known, else its offset.

        >>> import tilewright as tw
        >>> tensor = tw.TileTensor(np.zeros((3, 4), dtype=np.int8))
        >>> MemoryRegion("a", GLOBAL, tensor._store.data, tensor).element_text(6)
        'a[1, 2]'
        """
        coordinate = self.coordinate(start)
        return f"{self.name}[{', '.join(map(str, coordinate))}]"

    def coordinate(self, start: int) -> tuple[int, ...]:
        """Return the coordinate of the element at a byte; its offset if the tensor has none there.

        >>> MemoryRegion("a", GLOBAL, np.zeros(4, dtype=np.int16)).coordinate(6)
        (3,)
        """
        if self.view is None or product(self.view._pair.shape[0]) > _LARGE:
            return (start // self.itemsize,)
        place = (start - self.view_start) // self.view._store.format.itemsize
        if self._table is None:
            self._table = element_places(self.view)
        matches = np.argwhere(self._table == place)
        return tuple(map(int, matches[0])) if len(matches) else (start // self.itemsize,)


def element_places(view: View) -> Array:
    """Return where the elements of a tensor start in its storage, with one dimension per mode.

    >>> import tilewright as tw
    >>> element_places(tw.TileTensor([1, 2, 3, 4], tw.col_major(2, 2))).tolist()
    [[0, 2], [1, 3]]
    """
    # the layout of the core, whatever a dialect calls it
    return np.asarray(elements_layout(view._pair).offsets()) + int(view._offset)


class RegionTable:
    """All memory that a launch knows, by address: another array over the same memory belongs to the same region.

    >>> table = RegionTable()
    >>> region = table.add(MemoryRegion("a", GLOBAL, np.zeros(4)))
    >>> table.find(Store.of(region.data[1:])) == (region, 8)
    True
    """

    def __init__(self) -> None:
        self.regions: list[MemoryRegion] = []
        self._starts: list[int] = []
        self._by_start: list[MemoryRegion] = []
        self._anonymous = 0

    def add(self, region: MemoryRegion) -> MemoryRegion:
        """Add a region; return it.

        >>> RegionTable().add(MemoryRegion("a", GLOBAL, np.zeros(4))).number
        0
        """
        region.number = len(self.regions)
        self.regions.append(region)
        at = bisect.bisect(self._starts, region.address)
        self._starts.insert(at, region.address)
        self._by_start.insert(at, region)
        return region

    def find(self, store: Store) -> tuple[MemoryRegion, int]:
        """Return the region of a store, and the byte in it where the store starts; add one if it is not known.

        >>> RegionTable().find(Store.of([1, 2]))[0].name
        'memory 1'
        """
        data = store.host
        address = int(data.ctypes.data)
        at = bisect.bisect(self._starts, address) - 1
        if at >= 0:
            region = self._by_start[at]
            if address + data.nbytes <= region.address + region.nbytes:
                return region, address - region.address
        self._anonymous += 1
        return self.add(new_region(f"memory {self._anonymous}", store)), 0


def new_region(name: str, store: Store) -> MemoryRegion:
    """Return a region of global memory; what its owner knows to have no values yet has none.

    >>> new_region("a", Store.of([1, 2])).written is None
    True
    """
    region = MemoryRegion(name, GLOBAL, store.host)
    written = getattr(store.origin, "_written", None)
    if type(written) is bytearray and len(written) == region.nbytes:  # others, such as objects, have bytes to protect
        region.written = written
    return region
