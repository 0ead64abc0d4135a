# SPDX-License-Identifier: Apache-2.0
"""The small structs of TTL: shapes, offsets, overlaps, augmentations, layouts and tiles, in (width, height, depth)."""

from __future__ import annotations

import re
from collections.abc import Sized
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar, SupportsIndex, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ..display import Drawable
from ..errors import CoordinateError, LayoutError, TransferError
from ..formats import fit_values
from ..layout import Layout, row_major

__all__ = [
    "ARRAYSIZE", "MAX", "SIZEOF", "augmentation_t", "augmented_dim_t", "ceil_of_a_div_b", "create_augmentation",
    "create_empty_tile", "create_ext_layout", "create_int_layout", "create_layout", "create_offset", "create_overlap",
    "create_shape", "dim_t", "layout_t", "linearize", "offset_dim_t", "offset_t", "overlap_dim_t", "overlap_t",
    "pointer", "shape_empty", "shape_t", "tile_empty", "tile_t",
]  # fmt: skip

# Structs of C in Python: fields are assigned and copied as C does it, and have types.

_Struct = TypeVar("_Struct", bound="struct_t")


class struct_t:
    """A struct of C: fields can be assigned, and a struct that is stored in a field is copied, as C copies it.

    `structs` lists the fields that are structs, with their class.

    >>> from tilewright.ttl import layout_t
    >>> spacing = layout_t(16)
    >>> spacing.row_spacing = 20
    >>> spacing
    layout_t(row_spacing=20, plane_spacing=0)
    """

    __slots__ = ()
    structs: ClassVar[dict[str, type[struct_t]]] = {}
    __match_args__: ClassVar[tuple[str, ...]] = ()  # the names of the fields

    def __setattr__(self, name: str, value: object) -> None:
        struct = self.structs.get(name)
        if struct is not None:
            if not isinstance(value, struct):
                raise _not_a_struct(struct, value, f"{name} of {type(self).__name__}")
            value = value.__copy__()
        elif name not in self.__match_args__ and not hasattr(type(self), name):
            fields = ", ".join(self.__match_args__)
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; its fields are {fields}")
        object.__setattr__(self, name, value)

    @classmethod
    def of_fields(cls: type[_Struct], *values: object) -> _Struct:
        """Return a struct of fields that are known to be right, and that nobody else has.

        >>> from tilewright.ttl import shape_t
        >>> shape_t.of_fields(4, 3, 1)
        shape_t(width=4, height=3, depth=1)
        """
        struct = object.__new__(cls)
        for name, value in zip(cls.__match_args__, values, strict=True):
            object.__setattr__(struct, name, value)
        return struct

    def __copy__(self: _Struct) -> _Struct:
        fields = [getattr(self, name) for name in self.__match_args__]
        return self.of_fields(*[field.__copy__() if isinstance(field, struct_t) else field for field in fields])


class integers_t(struct_t):
    """A struct of integers.

    >>> import numpy as np
    >>> from tilewright.ttl import shape_t
    >>> shape_t(np.int64(4))
    shape_t(width=4, height=1, depth=1)
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, require_integer(value, f"{name} of {type(self).__name__}"))


def require_integer(value: object, name: str) -> int:
    """Return `value` as an integer of Python; `name` is for the error message.

    >>> require_integer(True, "tile_id")
    1
    """
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        raise LayoutError(f"expected an integer as {name}, got {value!r}") from None


def require_struct(struct: type[_Struct], value: object, name: str) -> _Struct:
    """Return `value` if it is a struct of one class; `name` is for the error message.

    >>> from tilewright.ttl import shape_t
    >>> require_struct(shape_t, shape_t(4), "tile")
    shape_t(width=4, height=1, depth=1)
    """
    if not isinstance(value, struct):
        raise _not_a_struct(struct, value, name)
    return value


def _not_a_struct(struct: type[struct_t], value: object, name: str) -> LayoutError:
    call = _CONSTRUCTORS.get(struct.__name__, f"{struct.__name__}(...)")
    return LayoutError(f"expected {struct.__name__} as {name}, got {value!r}; make one with {call}")


_CONSTRUCTORS = {
    "shape_t": "create_shape(width, height, depth)",
    "offset_t": "create_offset(x, y, z)",
    "overlap_t": "create_overlap(width, height, depth)",
    "augmentation_t": "create_augmentation(left, right, top, bottom, front, back)",
    "layout_t": "create_layout(row_spacing, plane_spacing)",
    "tile_t": "get_tile(tile_id, tiler)",
    "tiler_t": "create_tiler(space, tile)",
}


# C has a width for each of these; here they are exact integers.
dim_t = offset_dim_t = overlap_dim_t = augmented_dim_t = int


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class shape_t(integers_t, Drawable):
    """The extents of a tensor or a tile.

    >>> shape_t(4, 3)
    shape_t(width=4, height=3, depth=1)
    """

    width: int = 1
    height: int = 1
    depth: int = 1

    @property
    def native(self) -> Layout:
        """A packed native layout of this shape, for drawing.

        >>> shape_t(4, 3).native
        Layout((3, 4), (4, 1))
        """
        return row_major(*significant_axes(self))

    @property
    def picture_title(self) -> str:
        """The extents in TTL's order.

        >>> shape_t(4, 3).picture_title
        'shape_t: 4 x 3 (width x height)'
        """
        return f"shape_t: {describe_shape(self)}"


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class offset_t(integers_t):
    """A position, which may be negative.

    >>> offset_t(-1, 2)
    offset_t(x=-1, y=2, z=0)
    """

    x: int = 0
    y: int = 0
    z: int = 0


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class overlap_t(integers_t):
    """The elements that neighbouring tiles share.

    >>> overlap_t(2)
    overlap_t(width=2, height=0, depth=0)
    """

    width: int = 0
    height: int = 0
    depth: int = 0


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class augmentation_t(integers_t):
    """The elements by which tiles reach beyond the space on each side.

    >>> augmentation_t(1, 1)
    augmentation_t(left=1, right=1, top=0, bottom=0, front=0, back=0)
    """

    left: int = 0
    right: int = 0
    top: int = 0
    bottom: int = 0
    front: int = 0
    back: int = 0


class _positional_t(integers_t):
    """A struct that remembers a number whose unit was not given, since it came by position."""

    __slots__ = ("by_position",)
    by_position: int


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class layout_t(_positional_t, Drawable):
    """The elements from the start of a row, and of a plane, to the start of the next.

    >>> layout_t(16)
    layout_t(row_spacing=16, plane_spacing=0)
    """

    row_spacing: int = 0
    plane_spacing: int = 0

    @property
    def planes_by_position(self) -> bool:
        """Whether the plane spacing came by position, where TTL's code counts elements and TTL's page counts rows.

        >>> create_layout(4, 12).planes_by_position, create_layout(4, plane_spacing=12).planes_by_position
        (True, False)
        """
        return getattr(self, "by_position", None) == self.plane_spacing != 0

    def __copy__(self) -> layout_t:
        layout = layout_t.of_fields(self.row_spacing, self.plane_spacing)
        if self.planes_by_position:
            layout.by_position = self.by_position
        return layout

    @property
    def total_row_length(self) -> int:
        """The row spacing, by the name that TTL's tutorial uses.

        >>> layout_t(16).total_row_length
        16
        """
        return self.row_spacing

    @property
    def native(self) -> Layout:
        """A native layout with these spacings, padding included, for drawing: two rows, or two planes.

        >>> layout_t(16).native, layout_t(16, 160).native
        (Layout((2, 16), (16, 1)), Layout((2, 10, 16), (160, 16, 1)))
        """
        row, plane = self.row_spacing, self.plane_spacing
        if row < 1:
            raise LayoutError(f"{self} has no row spacing to draw; draw a tensor with it, or use create_layout(16)")
        return Layout((2, row), (row, 1)) if plane < row else Layout((2, plane // row, row), (plane, row, 1))

    @property
    def picture_title(self) -> str:
        """The spacings.

        >>> layout_t(16, 160).picture_title
        'layout_t: row spacing 16, plane spacing 160; the first two planes'
        """
        drawn = "rows" if self.plane_spacing < self.row_spacing else "planes"
        return f"layout_t: {describe_layout(self)}; the first two {drawn}"


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class tile_t(struct_t, Drawable):
    """A box of a space: its shape and where it starts.

    >>> tile_t(shape_t(4, 3), offset_t(8, 6)).shape.width
    4
    """

    structs: ClassVar = {"shape": shape_t, "offset": offset_t}

    shape: shape_t
    offset: offset_t

    @property
    def native(self) -> Layout:
        """A packed native layout of the tile's shape, for drawing.

        >>> tile_t(shape_t(4, 3), offset_t(8, 6)).native
        Layout((3, 4), (4, 1))
        """
        return self.shape.native

    @property
    def picture_title(self) -> str:
        """Shape and offset in TTL's order.

        >>> tile_t(shape_t(4, 3), offset_t(8, 6)).picture_title
        'tile_t: 4 x 3 (width x height) at (8, 6)'
        """
        return f"tile_t: {describe_shape(self.shape)} at {describe_offset(self.offset, self.shape)}"

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
        if require_integer(alignment, f"{name} alignment") < 1 or alignment & (alignment - 1):
            raise LayoutError(f"expected a power of two as {name} alignment, got {alignment}")
    rows, planes = require_integer(row_spacing, "row_spacing"), require_integer(plane_spacing, "plane_spacing")
    return layout_t(
        ceil_of_a_div_b(rows, row_alignment) * row_alignment, ceil_of_a_div_b(planes, plane_alignment) * plane_alignment
    )


def create_layout(
    row_spacing: int = 0,
    *planes: int,
    plane_spacing: int = 0,
    total_row_length: int | None = None,
    total_number_of_rows: int | None = None,
) -> layout_t:
    """Return a layout from the distance between rows and between planes.

    By position the second number is the plane spacing, as in TTL's code; on TTL's page it is the number of rows. A
    tensor whose memory speaks for rows refuses such a number and asks for one of the two names.

    Args:
        row_spacing: the elements from the start of a row to the start of the next.
        planes: the plane spacing, by position.
        plane_spacing: the elements from the start of a plane to the start of the next.
        total_row_length: the row spacing, as TTL's page on physical tensors calls it.
        total_number_of_rows: the rows from the start of a plane to the start of the next.

    >>> create_layout(4, 12), create_layout(total_row_length=4, total_number_of_rows=3)
    (layout_t(row_spacing=4, plane_spacing=12), layout_t(row_spacing=4, plane_spacing=12))
    """
    if len(planes) > 1 or (planes and plane_spacing):
        raise LayoutError(
            f"create_layout takes a row spacing and one plane spacing, got {(row_spacing, *planes)} by position and"
            f" plane_spacing={plane_spacing}"
        )
    plane_spacing = planes[0] if planes else plane_spacing
    if total_row_length is not None:
        if row_spacing:
            raise LayoutError(
                f"create_layout got row spacing {row_spacing} and total_row_length {total_row_length}, which mean the"
                " same; pass one of them"
            )
        row_spacing = total_row_length
    if total_number_of_rows is not None:
        if plane_spacing or not row_spacing:
            raise LayoutError(
                f"create_layout got total_number_of_rows={total_number_of_rows} with row spacing {row_spacing} and"
                f" plane spacing {plane_spacing}; pass it with the row spacing alone"
            )
        plane_spacing = row_spacing * total_number_of_rows
    layout = layout_t(row_spacing, plane_spacing)
    if planes:
        layout.by_position = plane_spacing
    return layout


# where TTL has a function that only builds a value, the type is that function
create_offset = offset_t
create_overlap = overlap_t
create_int_layout = create_ext_layout


def create_empty_tile() -> tile_t:
    """Return a tile that holds nothing.

    >>> create_empty_tile().shape
    shape_t(width=0, height=1, depth=1)
    """
    return tile_t(shape_t(0, 1, 1), offset_t())


def shape_empty(shape: shape_t) -> bool:
    """Return whether a `shape` holds nothing: any extent is less than 1.

    >>> shape_empty(shape_t(5, 0)), shape_empty(shape_t(-1, 2)), shape_empty(shape_t(5))
    (True, True, False)
    """
    require_struct(shape_t, shape, "shape")
    return min(shape.width, shape.height, shape.depth) < 1


def describe_shape(shape: shape_t) -> str:
    """Return a shape as text, in TTL's order.

    >>> describe_shape(shape_t(4, 3))
    '4 x 3 (width x height)'
    """
    extents = significant_axes(shape)[::-1]
    return f"{' x '.join(map(str, extents))} ({' x '.join(('width', 'height', 'depth')[: len(extents)])})"


def describe_layout(layout: layout_t) -> str:
    """Return the spacings of a layout as text.

    >>> describe_layout(layout_t(16))
    'row spacing 16'
    """
    planes = f", plane spacing {layout.plane_spacing}" if layout.plane_spacing else ""
    return f"row spacing {layout.row_spacing}{planes}"


def describe_offset(offset: offset_t, shape: shape_t) -> str:
    """Return an offset as text, in TTL's order, with as many numbers as a `shape` has axes.

    >>> describe_offset(offset_t(-1, 2), shape_t(4, 3))
    '(-1, 2)'
    """
    rank = 3 if offset.z else max(len(significant_axes(shape)), 2 if offset.y else 1)
    return f"({', '.join(map(str, (offset.x, offset.y, offset.z)[:rank]))})"


def significant_axes(shape: shape_t) -> tuple[int, ...]:
    """Return the extents as the library writes them, outermost first, without depth and height if they are 1.

    >>> significant_axes(shape_t(4, 3)), significant_axes(shape_t(4)), significant_axes(shape_t(4, 1, 2))
    ((3, 4), (4,), (2, 1, 4))
    """
    extents = (shape.depth, shape.height, shape.width)
    return extents[2 if extents[:2] == (1, 1) else int(extents[0] == 1) :]


def tile_empty(tile: tile_t) -> bool:
    """Return whether a `tile` holds nothing.

    >>> tile_empty(create_empty_tile())
    True
    """
    return shape_empty(require_struct(tile_t, tile, "tile").shape)


def linearize(offset: offset_t, layout: layout_t) -> int:
    """Return the elements from the start to an `offset` in a `layout`, as an exact integer.

    >>> linearize(offset_t(5, 40000), layout_t(70000))
    2800000005
    """
    require_struct(offset_t, offset, "offset")
    require_struct(layout_t, layout, "layout")
    return offset.z * layout.plane_spacing + offset.y * layout.row_spacing + offset.x


def ceil_of_a_div_b(a: int, b: int) -> int:
    """Return `a` / `b`, rounded up.

    >>> ceil_of_a_div_b(7, 2)
    4
    """
    return -(-a // b)


def MAX(a: float, b: float) -> float:
    """Return the larger of `a` and `b`.

    >>> MAX(3, 5)
    5
    """
    return max(a, b)


def ARRAYSIZE(array: Sized) -> int:
    """Return the number of elements of an `array`.

    >>> ARRAYSIZE([1, 2, 3])
    3
    """
    return len(array)


def packed_layout(shape: shape_t) -> layout_t:
    """Return the layout without gaps, the default of a tensor.

    >>> packed_layout(shape_t(6, 5, 4))
    layout_t(row_spacing=6, plane_spacing=30)
    """
    return layout_t(shape.width, shape.width * shape.height)


# The element types of OpenCL, and `pointer`: memory and a position in it, indexed like a C pointer but checked.

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

_VECTOR = re.compile(r"([a-z]+?)(2|3|4|8|16)")
_VECTOR_ELEMENTS = {**TYPES, "half": "float16", "float": "float32", "double": "float64"}


def vector_type(name: str) -> np.dtype[Any] | None:
    """Return the type of an OpenCL vector such as float4, whose elements are field "s"; None for any other name.

    As in OpenCL, a vector of three elements takes the space of four.

    >>> vector_type("float4").itemsize, vector_type("uchar3").itemsize, vector_type("quux4")
    (16, 4, None)
    """
    match = _VECTOR.fullmatch(name)
    element = _VECTOR_ELEMENTS.get(match[1]) if match else None
    if match is None or element is None:
        return None
    count, scalar = int(match[2]), np.dtype(element)
    size = scalar.itemsize * (4 if count == 3 else count)
    return np.dtype({"names": ["s"], "formats": [(scalar, (count,))], "offsets": [0], "itemsize": size})


Memory: TypeAlias = "np.ndarray[Any, Any] | bytes | bytearray | memoryview | pointer"
"""What a pointer may point into."""


class pointer:
    """A position in memory, which is checked when it is used.

    `memory` is an array, which has an element type, other memory (such as a `bytearray`), which is void, or a pointer.
    `offset` counts bytes from its start, and `dtype` is another element type.

    >>> p = pointer(np.arange(8, dtype=np.int16)) + 2
    >>> int(p[1]), p.offset
    (3, 4)
    """

    __slots__ = ("array_shape", "dtype", "memory", "offset", "writeable")
    array_shape: tuple[int, ...]  # of the array that the memory came as; one number for other memory
    memory: np.ndarray[Any, Any]
    dtype: np.dtype[Any] | None
    offset: int
    writeable: bool

    def __init__(self, memory: Memory, offset: int = 0, dtype: npt.DTypeLike | None = None) -> None:
        if isinstance(memory, pointer):
            self.memory, self.dtype, self.array_shape = memory.memory, memory.dtype, memory.array_shape
            self.writeable = memory.writeable
            self.offset = memory.offset + offset
        else:
            array = memory if isinstance(memory, np.ndarray) else _bytes_of(memory)
            if array.dtype.hasobject:
                raise LayoutError(
                    f"expected an array of numbers or structs for a pointer, got one of {array.dtype}, whose elements"
                    " are Python objects; convert it with astype"
                )
            if not array.flags.c_contiguous:
                raise LayoutError(
                    f"expected contiguous memory for a pointer, got strides {array.strides}; pass its base"
                )
            self.memory, self.array_shape = array.reshape(-1).view(np.uint8), array.shape
            self.dtype = array.dtype if isinstance(memory, np.ndarray) else None
            self.writeable = bool(array.flags.writeable)
            self.offset = offset
        if dtype is not None:
            self.dtype = element_type(dtype)

    @property
    def step(self) -> int:
        """The bytes of one element, 1 for void.

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

    def __setitem__(self, index: int, value: npt.ArrayLike) -> None:
        if not self.writeable:
            raise TransferError("cannot write through a pointer to read-only memory")
        cell = self._element_view(index)
        cell[0] = fit_values(value, cell.dtype) if cell.dtype.kind in "biuf" else value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, pointer):
            return NotImplemented
        return self.address == other.address

    __hash__ = None  # type: ignore[assignment]  # positions compare by address, which is independent of content

    @property
    def address(self) -> int:
        """The address that the pointer holds.

        >>> a = np.zeros(4)
        >>> (pointer(a) + 1).address - a.ctypes.data
        8
        """
        return int(self.memory.ctypes.data) + self.offset

    def __repr__(self) -> str:
        element = "void" if self.dtype is None else str(self.dtype)
        return f"pointer(<{self.memory.size} bytes>, offset={self.offset}, dtype={element!r})"


def SIZEOF(value: npt.DTypeLike | np.ndarray[Any, Any]) -> int:
    """Return the bytes of `value`: a type, its name, or one element of an array.

    >>> SIZEOF("uint"), SIZEOF(np.float64), SIZEOF(np.zeros(4, np.int16))
    (4, 8, 2)
    """
    if isinstance(value, str):
        value = vector_type(value) or _VECTOR_ELEMENTS.get(value, value)
    if isinstance(value, np.ndarray):
        return value.itemsize
    return int(element_type(value).itemsize)


def _bytes_of(memory: bytes | bytearray | memoryview) -> np.ndarray[Any, Any]:
    try:
        view = memoryview(memory)
    except TypeError:
        raise LayoutError(
            f"expected an array, a bytearray or a pointer as base, got {type(memory).__name__}; for a list pass"
            " np.array(..., dtype)"
        ) from None
    if not view.c_contiguous:
        raise LayoutError(f"expected contiguous memory for a pointer, got strides {view.strides}; pass its base")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.zeros(0, np.uint8)


def element_type(value: npt.DTypeLike) -> np.dtype[Any]:
    """Return a dtype, or raise the library's error.

    >>> element_type("int16")
    dtype('int16')
    """
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except TypeError:
        raise LayoutError(f"expected a NumPy dtype or one of {', '.join(_VECTOR_ELEMENTS)}, got {value!r}") from None
    return dtype
