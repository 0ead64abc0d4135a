# SPDX-License-Identifier: Apache-2.0
"""The small values of TTL: shapes, offsets, overlaps, augmentations, layouts and tiles, in (width, height, depth).

`pointer` is what `base` is in Python: memory and a position in it, indexed like a C pointer but checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CoordinateError, LayoutError, TransferError

# C has a width for each of these; here they are exact integers.
dim_t = offset_dim_t = overlap_dim_t = augmented_dim_t = int


@dataclass(frozen=True, slots=True)
class shape_t:
    """The extents of a tensor or a tile.

    >>> shape_t(4, 3)
    shape_t(width=4, height=3, depth=1)
    """

    width: int = 1
    height: int = 1
    depth: int = 1


@dataclass(frozen=True, slots=True)
class offset_t:
    """A position, which may be negative.

    >>> offset_t(-1, 2)
    offset_t(x=-1, y=2, z=0)
    """

    x: int = 0
    y: int = 0
    z: int = 0


@dataclass(frozen=True, slots=True)
class overlap_t:
    """How much neighbouring tiles share.

    >>> overlap_t(2)
    overlap_t(width=2, height=0, depth=0)
    """

    width: int = 0
    height: int = 0
    depth: int = 0


@dataclass(frozen=True, slots=True)
class augmentation_t:
    """How far the tiles reach beyond the space on each side.

    >>> augmentation_t(1, 1)
    augmentation_t(left=1, right=1, top=0, bottom=0, front=0, back=0)
    """

    left: int = 0
    right: int = 0
    top: int = 0
    bottom: int = 0
    front: int = 0
    back: int = 0


@dataclass(frozen=True, slots=True)
class layout_t:
    """The elements from the start of a row, and of a plane, to the start of the next.

    >>> layout_t(16)
    layout_t(row_spacing=16, plane_spacing=0)
    """

    row_spacing: int = 0
    plane_spacing: int = 0

    @property
    def total_row_length(self) -> int:
        """Return the row spacing, by the name that TTL's tutorial uses.

        >>> layout_t(16).total_row_length
        16
        """
        return self.row_spacing


@dataclass(frozen=True, slots=True)
class tile_t:
    """A box of a space: its shape and where it starts.

    >>> tile_t(shape_t(4, 3), offset_t(8, 6)).shape.width
    4
    """

    shape: shape_t
    offset: offset_t

    def __str__(self) -> str:
        at, box = self.offset, self.shape
        return f"({at.x}, {at.y}, {at.z}) of {box.width} x {box.height} x {box.depth}"


def create_shape(width: int, height: int = 1, depth: int = 1) -> shape_t:
    """Return the shape of a `width`, `height` and `depth`.

    >>> create_shape(4, 3)
    shape_t(width=4, height=3, depth=1)
    """
    return shape_t(width, height, depth)


def create_augmentation(*sides: int) -> augmentation_t:
    """Return an augmentation from its `sides`: left, right, then top, bottom, then front, back.

    >>> create_augmentation(1, 1, 2, 2)
    augmentation_t(left=1, right=1, top=2, bottom=2, front=0, back=0)
    """
    if len(sides) not in (0, 2, 4, 6):
        raise LayoutError(f"expected 2, 4 or 6 numbers for an augmentation (two sides per axis), got {len(sides)}")
    return augmentation_t(*sides)


def create_ext_layout(
    row_spacing: int, row_alignment: int, plane_spacing: int = 0, plane_alignment: int = 1
) -> layout_t:
    """Return a layout with `row_spacing` and `plane_spacing` rounded up to multiples of `row_alignment` and
    `plane_alignment`, in elements.

    >>> create_ext_layout(69, 16, 209, 2)
    layout_t(row_spacing=80, plane_spacing=210)
    """
    for name, alignment in (("row", row_alignment), ("plane", plane_alignment)):
        if alignment < 1 or alignment & (alignment - 1):
            raise LayoutError(f"expected a power of two as {name} alignment, got {alignment}")
    return layout_t(
        ceil_of_a_div_b(row_spacing, row_alignment) * row_alignment,
        ceil_of_a_div_b(plane_spacing, plane_alignment) * plane_alignment,
    )


# where TTL has a function that only builds a value, the type is that function
create_offset = offset_t
create_overlap = overlap_t
create_layout = layout_t
create_int_layout = create_ext_layout


def create_empty_tile() -> tile_t:
    """Return a tile that holds nothing.

    >>> create_empty_tile().shape
    shape_t(width=0, height=1, depth=1)
    """
    return tile_t(shape_t(0, 1, 1), offset_t())


def shape_empty(shape: shape_t) -> bool:
    """Return whether a `shape` holds nothing: any extent is zero.

    >>> shape_empty(shape_t(5, 0)), shape_empty(shape_t(5))
    (True, False)
    """
    return 0 in (shape.width, shape.height, shape.depth)


def tile_empty(tile: tile_t) -> bool:
    """Return whether a `tile` holds nothing.

    >>> tile_empty(create_empty_tile())
    True
    """
    return shape_empty(tile.shape)


def linearize(offset: offset_t, layout: layout_t) -> int:
    """Return the elements from the start to an `offset` in a `layout`, as an exact integer.

    >>> linearize(offset_t(5, 40000), layout_t(70000))
    2800000005
    """
    return offset.z * layout.plane_spacing + offset.y * layout.row_spacing + offset.x


def ceil_of_a_div_b(a: int, b: int) -> int:
    """Return `a` / `b`, rounded up.

    >>> ceil_of_a_div_b(7, 2)
    4
    """
    return -(-a // b)


def MAX(a: Any, b: Any) -> Any:
    """Return the larger of `a` and `b`.

    >>> MAX(3, 5)
    5
    """
    return max(a, b)


def ARRAYSIZE(array: Any) -> int:
    """Return the number of elements of an `array`.

    >>> ARRAYSIZE([1, 2, 3])
    3
    """
    return len(array)


def packed_layout(shape: shape_t) -> layout_t:
    """Return the layout without gaps: what a tensor has when none is given.

    >>> packed_layout(shape_t(6, 5, 4))
    layout_t(row_spacing=6, plane_spacing=30)
    """
    return layout_t(shape.width, shape.width * shape.height)


TYPES = {
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
}
"""TTL's element types by their names; any other dtype works as well."""


class pointer:
    """A position in memory, which is checked when it is used.

    `memory` is an array, which has an element type, other memory (such as a `bytearray`), which is void, or a pointer.
    `offset` counts bytes from its start, and `dtype` is another element type.

    >>> p = pointer(np.arange(8, dtype=np.int16)) + 2
    >>> int(p[1]), p.offset
    (3, 4)
    """

    __slots__ = ("dtype", "memory", "offset", "writeable")
    memory: np.ndarray[Any, Any]
    dtype: np.dtype[Any] | None
    offset: int
    writeable: bool

    def __init__(self, memory: Any, offset: int = 0, dtype: Any = None) -> None:
        if isinstance(memory, pointer):
            self.memory, self.dtype = memory.memory, memory.dtype
            self.writeable = memory.writeable
            self.offset = memory.offset + offset
        else:
            array = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
            if not array.flags.c_contiguous:
                raise LayoutError(
                    f"expected contiguous memory for a pointer, got strides {array.strides}; pass its base"
                )
            self.memory = array.reshape(-1).view(np.uint8)
            self.dtype = array.dtype if isinstance(memory, np.ndarray) else None
            self.writeable = bool(array.flags.writeable)
            self.offset = offset
        if dtype is not None:
            self.dtype = np.dtype(dtype)

    @property
    def step(self) -> int:
        """Return the bytes of one element, 1 for void.

        >>> pointer(bytearray(4)).step
        1
        """
        return 1 if self.dtype is None else int(self.dtype.itemsize)

    def __add__(self, elements: int) -> pointer:
        return pointer(self, elements * self.step)

    def __sub__(self, elements: int) -> pointer:
        return pointer(self, -elements * self.step)

    def _element_view(self, index: int) -> np.ndarray[Any, Any]:
        start = self.offset + index * self.step
        if start < 0 or start + self.step > self.memory.size:
            raise CoordinateError(f"element {index} is at byte {start}, outside the memory of {self.memory.size} bytes")
        cell: np.ndarray[Any, Any] = self.memory[start : start + self.step].view(self.dtype or np.uint8)
        return cell

    def __getitem__(self, index: int) -> Any:
        return self._element_view(index)[0]

    def __setitem__(self, index: int, value: Any) -> None:
        if not self.writeable:
            raise TransferError("cannot write through a pointer to read-only memory")
        self._element_view(index)[0] = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, pointer):
            return NotImplemented
        return self.address == other.address

    __hash__ = None  # type: ignore[assignment]  # positions compare by address, which says nothing about content

    @property
    def address(self) -> int:
        """Return the address that the pointer holds.

        >>> a = np.zeros(4)
        >>> (pointer(a) + 1).address - a.ctypes.data
        8
        """
        return int(self.memory.ctypes.data) + self.offset

    def __repr__(self) -> str:
        kind = "void" if self.dtype is None else str(self.dtype)
        return f"pointer(<{self.memory.size} bytes>, offset={self.offset}, dtype={kind!r})"


def SIZEOF(value: Any) -> int:
    """Return the bytes of `value`: a type, its name, or one element of an array.

    >>> SIZEOF("uint"), SIZEOF(np.float64), SIZEOF(np.zeros(4, np.int16))
    (4, 8, 2)
    """
    if isinstance(value, str):
        value = TYPES.get(value, value)
    if isinstance(value, np.ndarray):
        return value.itemsize
    return int(np.dtype(value).itemsize)
