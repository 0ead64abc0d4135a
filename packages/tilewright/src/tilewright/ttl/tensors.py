# SPDX-License-Identifier: Apache-2.0
"""TTL's eight kinds of tensors: const or not, internal or external, space or part of an origin.

A tensor is a pointer, a shape, a layout and an element size. Its type is a field, not a class: `dtype`. Nothing is
checked against the memory until a transfer or an access, since schemes use tiles that start outside.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ..display import Drawable
from ..errors import CoordinateError, LayoutError, TransferError
from ..layout import Layout, empty_box, leaves
from ..tensor import TileTensor
from ..tiling import Box, ExternalTensor, InternalTensor, Tiler
from ..tiling.tile_copies import TransferTensor
from .values import (
    Memory,
    augmentation_t,
    describe_layout,
    describe_offset,
    describe_shape,
    element_type,
    layout_t,
    linearize,
    offset_t,
    overlap_t,
    packed_layout,
    pointer,
    require_integer,
    require_struct,
    shape_empty,
    shape_t,
    significant_axes,
    struct_t,
    tile_t,
)

__all__ = [
    "const_ext_sub_tensor_t", "const_ext_tensor_t", "const_int_sub_tensor_t", "const_int_tensor_t",
    "create_overlap_tiler", "create_tile", "create_tiler", "ext_sub_tensor_t", "ext_tensor_t", "get_tile",
    "get_tile_column_major", "int_sub_tensor_t", "int_tensor_t", "number_of_tiles", "read_tensor", "tiler_t",
    "tiles_in_depth", "tiles_in_height", "tiles_in_width", "to_const_sub_tensor", "to_const_tensor",
    "to_void_sub_tensor", "to_void_tensor", "valid_tile_id", "write_tensor",
]  # fmt: skip

# TTL's tiler, over `tilewright.tiling.Tiler` with the axes turned round.


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class tiler_t(struct_t, Drawable):
    """A space, how it is cut, and the number of tiles.

    >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).number_of_tiles
    9
    """

    structs: ClassVar = {"space": shape_t, "tile": shape_t, "overlap": overlap_t, "augmentation": augmentation_t}

    space: shape_t
    tile: shape_t
    overlap: overlap_t
    augmentation: augmentation_t

    def __post_init__(self) -> None:
        self.row_major  # noqa: B018 - validates the values

    @property
    def row_major(self) -> Tiler:
        """The native tiler, x fastest.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).row_major.grid
        (1, 3, 3)
        """
        return self._make_tiler("row_major")

    @property
    def column_major(self) -> Tiler:
        """The native tiler, y fastest.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).column_major.order
        'col_major'
        """
        return self._make_tiler("col_major")

    @property
    def native(self) -> Tiler:
        """The native tiler, for drawing, without depth and height if the space has none.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).native.grid
        (3, 3)
        """
        return self._make_tiler("row_major", len(significant_axes(self.space)))

    def _make_tiler(self, order: str, rank: int = 3) -> Tiler:
        a = self.augmentation
        overlap = (self.overlap.depth, self.overlap.height, self.overlap.width)
        margins = ((a.front, a.back), (a.top, a.bottom), (a.left, a.right))
        space, tile = outer_first_shape(self.space), outer_first_shape(self.tile)
        return _cached_tiler(space[-rank:], tile[-rank:], overlap[-rank:], margins[-rank:], order)

    @property
    def number_of_tiles(self) -> int:
        """The number of all tiles.

        >>> create_tiler(shape_t(100000, 100000), shape_t(1, 1)).number_of_tiles
        10000000000
        """
        return self.row_major.count

    @property
    def tiles_in_width(self) -> int:
        """The number of tiles along x.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_width
        3
        """
        return self.row_major.grid[2]

    @property
    def tiles_in_height(self) -> int:
        """The number of tiles along y.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_height
        2
        """
        return self.row_major.grid[1]

    @property
    def tiles_in_depth(self) -> int:
        """The number of tiles along z.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_depth
        1
        """
        return self.row_major.grid[0]

    @property
    def tiles_in_plane(self) -> int:
        """The number of tiles in one plane.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_plane
        6
        """
        return self.tiles_in_width * self.tiles_in_height


_cached_tiler = lru_cache(maxsize=64)(Tiler)


def outer_first_shape(shape: shape_t) -> tuple[int, int, int]:
    """Return a shape as the library writes it: outermost first.

    >>> outer_first_shape(shape_t(4, 3, 2))
    (2, 3, 4)
    """
    return (shape.depth, shape.height, shape.width)


def outer_first_offset(offset: offset_t) -> tuple[int, int, int]:
    """Return an offset as the library writes it: outermost first.

    >>> outer_first_offset(offset_t(4, 3, 2))
    (2, 3, 4)
    """
    return (offset.z, offset.y, offset.x)


def from_box(box: Box) -> tile_t:
    """Return a native tile as TTL writes it.

    >>> from_box(Box((0, 0, 1), (2, 3, 4)))
    tile_t(shape=shape_t(width=4, height=3, depth=2), offset=offset_t(x=1, y=0, z=0))
    """
    return tile_t.of_fields(shape_t.of_fields(*box.shape[::-1]), offset_t.of_fields(*box.offset[::-1]))


def create_tiler(space: shape_t, tile: shape_t) -> tiler_t:
    """Return a tiler of a `space` with tiles of shape `tile` that lie side by side.

    >>> number_of_tiles(create_tiler(shape_t(10, 7), shape_t(4, 3)))
    9
    """
    return tiler_t(space, tile, overlap_t(), augmentation_t())


def create_overlap_tiler(
    space: shape_t, tile: shape_t, overlap: overlap_t, augmentation: augmentation_t | None = None
) -> tiler_t:
    """Return a tiler of a `space` with tiles that share an `overlap`, and may reach beyond it by an `augmentation`.

    `tile` is the shape of a tile.

    >>> get_tile(0, create_overlap_tiler(shape_t(8), shape_t(6), overlap_t(2), augmentation_t(1, 1))).offset
    offset_t(x=-1, y=0, z=0)
    """
    return tiler_t(space, tile, overlap, augmentation_t() if augmentation is None else augmentation)


def create_tile(x: int, y: int, z: int, tiler: tiler_t) -> tile_t:
    """Return the tile of a `tiler` at the tile coordinates `x`, `y`, `z`.

    >>> create_tile(2, 0, 0, create_tiler(shape_t(10, 7), shape_t(4, 3))).offset
    offset_t(x=8, y=0, z=0)
    """
    at = [require_integer(value, name) for name, value in (("z", z), ("y", y), ("x", x))]
    return from_box(require_struct(tiler_t, tiler, "tiler").row_major.tile_at(at))


def get_tile(tile_id: int, tiler: tiler_t) -> tile_t:
    """Return tile `tile_id` of a `tiler` in row-major order, and the all-zero tile for an id out of range.

    >>> get_tile(1, create_tiler(shape_t(10, 7), shape_t(4, 3))).offset
    offset_t(x=4, y=0, z=0)
    """
    tiles = require_struct(tiler_t, tiler, "tiler").row_major
    return from_box(tiles.get(tile_id) if tiles.has_tile(require_integer(tile_id, "tile_id")) else empty_box(3))


def get_tile_column_major(tile_id: int, tiler: tiler_t) -> tile_t:
    """Return tile `tile_id` of a `tiler` in column-major order, and the all-zero tile for an id out of range.

    >>> get_tile_column_major(1, create_tiler(shape_t(10, 7), shape_t(4, 3))).offset
    offset_t(x=0, y=3, z=0)
    """
    tiles = require_struct(tiler_t, tiler, "tiler").column_major
    return from_box(tiles.get(require_integer(tile_id, "tile_id")))


def valid_tile_id(tile_id: int, tiler: tiler_t) -> bool:
    """Return whether a `tiler` has a tile `tile_id`.

    >>> valid_tile_id(9, create_tiler(shape_t(10, 7), shape_t(4, 3)))
    False
    """
    return require_struct(tiler_t, tiler, "tiler").row_major.has_tile(require_integer(tile_id, "tile_id"))


def number_of_tiles(tiler: tiler_t) -> int:
    """Return the number of all tiles of a `tiler`.

    >>> number_of_tiles(create_tiler(shape_t(10, 7), shape_t(4, 3)))
    9
    """
    return require_struct(tiler_t, tiler, "tiler").number_of_tiles


def tiles_in_width(tiler: tiler_t) -> int:
    """Return the number of tiles of a `tiler` along x.

    >>> tiles_in_width(create_tiler(shape_t(10, 7), shape_t(4, 4)))
    3
    """
    return tiler.tiles_in_width


def tiles_in_height(tiler: tiler_t) -> int:
    """Return the number of tiles of a `tiler` along y.

    >>> tiles_in_height(create_tiler(shape_t(10, 7), shape_t(4, 4)))
    2
    """
    return tiler.tiles_in_height


def tiles_in_depth(tiler: tiler_t) -> int:
    """Return the number of tiles of a `tiler` along z.

    >>> tiles_in_depth(create_tiler(shape_t(10, 7), shape_t(4, 4)))
    1
    """
    return tiler.tiles_in_depth


@dataclass
class tensor_t(struct_t, Drawable):
    """The fields of every class of tensor: base, elem_size, layout, shape, and the element type.

    >>> build_tensor(int_tensor_t, np.zeros(12, np.uint8), shape_t(4, 3)).layout
    layout_t(row_spacing=4, plane_spacing=12)
    """

    structs: ClassVar = {"layout": layout_t, "shape": shape_t}

    base: Any  # a pointer, also made of memory that is none yet; None if the tensor is empty
    elem_size: int
    layout: layout_t
    shape: shape_t
    dtype: Any = None  # the base's

    const: ClassVar[bool] = False
    internal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.base is not None:
            self.base = self.base if isinstance(self.base, pointer) else pointer(self.base)
            self.dtype = _element_dtype(self.base.dtype if self.dtype is None else self.dtype, self.elem_size)

    def array(self) -> np.ndarray[Any, Any]:
        """Return the elements as a NumPy view, indexed [z, y, x]; read-only for a const tensor.

        >>> build_tensor(int_tensor_t, np.arange(6, dtype=np.int8), shape_t(3, 2)).array().tolist()
        [[[0, 1, 2], [3, 4, 5]]]
        """
        return self._native_tensor().array()

    def _native_tensor(self) -> TransferTensor:
        space = outer_first_shape(self.shape)
        tensor_class = InternalTensor if self.internal else ExternalTensor
        return native_tensor(tensor_class, self, Box((0, 0, 0), space), space)

    @property
    def native(self) -> TileTensor | Layout:
        """The native tensor, for drawing: the memory seen through the spacings, from the base on.

        It is the layout alone if elements are not numbers of the library, such as vectors and structs.

        >>> tensor = build_tensor(ext_tensor_t, np.arange(40), shape_t(3, 2), layout_t(10), offset_t(1, 2), 8)
        >>> tensor.native[1, 2].item(), tensor.native.layout
        (33, Layout((2, 3), (10, 1)))
        """
        extents, tensor = significant_axes(self.shape), self._native_tensor()
        strides = leaves(cast(Layout, tensor.layout).stride)
        layout = Layout(extents, strides[-len(extents) :]) + tensor.offset
        if self.dtype.kind not in "iufb":
            return layout
        memory = tensor.memory.bytes
        return TileTensor(memory[: memory.size // self.elem_size * self.elem_size].view(self.dtype), layout)

    @property
    def picture_title(self) -> str:
        """The class, the shape and the spacings.

        >>> build_tensor(ext_tensor_t, np.arange(40), shape_t(3, 2), layout_t(10), offset_t(1, 2), 8).picture_title
        'ext_tensor_t: 3 x 2 (width x height) of int64, row spacing 10, base at element 21'
        """
        start = 0 if self.base is None else self.base.offset // max(1, self.elem_size)
        size = f"{describe_shape(self.shape)} of {self.dtype}"
        return f"{type(self).__name__}: {size}, {describe_layout(self.layout)}, base at element {start}"


@dataclass(slots=True)
class origin_t(struct_t):
    """The origin of a sub tensor: the shape of the tensor it is part of, and its offset in it.

    >>> origin_t(shape_t(10, 7), offset_t(-1))
    origin_t(shape=shape_t(width=10, height=7, depth=1), sub_offset=offset_t(x=-1, y=0, z=0))
    """

    structs: ClassVar = {"shape": shape_t, "sub_offset": offset_t}

    shape: shape_t
    sub_offset: offset_t


def _field_of_tensor(name: str, description: str) -> Any:
    """Return a property of a sub tensor: a field of the tensor in it."""

    def get_field(self: sub_tensor_t) -> Any:
        return getattr(self.tensor, name)

    def set_field(self: sub_tensor_t, value: object) -> None:
        setattr(self.tensor, name, value)

    return property(get_field, set_field, doc=description)


@dataclass
class sub_tensor_t(struct_t, Drawable):
    """A tensor and its origin; base, elem_size, layout, shape and dtype are the tensor's.

    >>> space = build_tensor(int_tensor_t, np.zeros(12, np.uint8), shape_t(4, 3))
    >>> build_sub_tensor(int_tensor_t, space).origin.sub_offset
    offset_t(x=0, y=0, z=0)
    """

    structs: ClassVar = {"tensor": tensor_t, "origin": origin_t}

    tensor: tensor_t
    origin: origin_t

    base = _field_of_tensor("base", "Where the first element is.")
    elem_size = _field_of_tensor("elem_size", "The bytes of an element.")
    layout = _field_of_tensor("layout", "The spacings.")
    shape = _field_of_tensor("shape", "The extents of this part.")
    dtype = _field_of_tensor("dtype", "The type of an element.")
    const = _field_of_tensor("const", "Whether the tensor must not be written.")
    internal = _field_of_tensor("internal", "Whether the tensor is in internal memory.")

    def array(self) -> np.ndarray[Any, Any]:
        """Return the elements as a NumPy view, indexed [z, y, x]; read-only for a const tensor."""
        return self.tensor.array()

    @property
    def native(self) -> TileTensor | Layout:
        """The native tensor, for drawing, as for a tensor."""
        return self.tensor.native

    @property
    def picture_window(self) -> tuple[tuple[int, ...], Box]:
        """The extents of the origin, and the box of this part in it, outermost first."""
        rank = max(len(significant_axes(self.shape)), len(significant_axes(self.origin.shape)), 2)
        offset, shape = self.origin.sub_offset, outer_first_shape(self.shape)
        box = Box(outer_first_offset(offset)[-rank:], shape[-rank:])
        return outer_first_shape(self.origin.shape)[-rank:], box

    @property
    def picture_title(self) -> str:
        """The class, the shape and the spacings, and the part's origin and offset in it."""
        tensor_class = type(self.tensor).__name__
        place = describe_offset(self.origin.sub_offset, self.origin.shape)
        origin = f"at {place} of an origin of {describe_shape(self.origin.shape)}"
        return self.tensor.picture_title.replace(tensor_class, type(self).__name__) + f", {origin}"


class int_tensor_t(tensor_t):
    """A tensor in internal memory."""


class const_int_tensor_t(tensor_t):
    """A tensor in internal memory that must not be written."""

    const = True


class ext_tensor_t(tensor_t):
    """A tensor in external memory."""

    internal = False


class const_ext_tensor_t(tensor_t):
    """A tensor in external memory that must not be written."""

    internal, const = False, True


class int_sub_tensor_t(sub_tensor_t):
    """A part of a tensor, in internal memory."""


class const_int_sub_tensor_t(sub_tensor_t):
    """A part of a tensor, in internal memory, that must not be written."""


class ext_sub_tensor_t(sub_tensor_t):
    """A part of a tensor, in external memory."""


class const_ext_sub_tensor_t(sub_tensor_t):
    """A part of a tensor, in external memory, that must not be written."""


_Tensor = TypeVar("_Tensor", bound=tensor_t)
_SubTensor = TypeVar("_SubTensor", bound=sub_tensor_t)
any_tensor_t: TypeAlias = "tensor_t | sub_tensor_t"
"""A tensor of any class, or a part of one."""

SUB_TENSOR_OF: dict[type[tensor_t], type[sub_tensor_t]] = {
    int_tensor_t: int_sub_tensor_t,
    const_int_tensor_t: const_int_sub_tensor_t,
    ext_tensor_t: ext_sub_tensor_t,
    const_ext_tensor_t: const_ext_sub_tensor_t,
}


def build_tensor(
    tensor_class: type[_Tensor],
    base: Memory,
    shape: shape_t | tile_t | None = None,
    *arguments: layout_t | offset_t | int,
    tile: tile_t | None = None,
    layout: layout_t | None = None,
    int_layout: layout_t | None = None,
    ext_layout: layout_t | None = None,
    offset: offset_t | None = None,
    elem_size: int | None = None,
    dtype: npt.DTypeLike | None = None,
) -> _Tensor:
    """Return a tensor of a class from any of the documented forms of its constructor.

    After base and shape, or a tile, come: nothing, elem_size, layout, layout and elem_size, or layout, offset and
    elem_size, by position or by name. The offset of a tile moves the base of an external tensor only.

    >>> build_tensor(ext_tensor_t, np.zeros(99, np.int16), shape_t(3), layout_t(10), offset_t(1, 2), 2).base.offset
    42
    """
    named = [value for value in (layout, int_layout, ext_layout, offset, elem_size) if value is not None]
    spacing, skipped, given_size = _parse_tensor_arguments(tensor_class, (*arguments, *named))
    if shape is not None and tile is not None:
        raise LayoutError(f"{_constructor_of(tensor_class)} got a shape and a tile; pass one of them")
    extents = shape if tile is None else tile
    start = base if isinstance(base, pointer) else pointer(base)
    if isinstance(extents, tile_t):
        if not tensor_class.internal and spacing is None:
            raise LayoutError(
                f"{_constructor_of(tensor_class)} needs the layout of the memory around {extents.shape}"
                f" at {extents.offset}; pass create_layout({_spacings_of(start.array_shape)}) as ext_layout"
            )
        if not tensor_class.internal:
            corners = zip(_offset_tuple(skipped), _offset_tuple(extents.offset), strict=True)
            skipped = offset_t(*[a + b for a, b in corners])
        extents = extents.shape
    box = require_struct(shape_t, extents, "shape")
    if given_size is None and start.dtype is None and dtype is None:
        raise LayoutError(f"{type(base).__name__} memory has no element type; give elem_size, or an array with a dtype")
    size = given_size or (element_type(dtype) if dtype is not None else start.dtype or np.dtype("V1")).itemsize
    element = _element_dtype(dtype if dtype is not None else start.dtype, size)
    if spacing is None and not tensor_class.internal:
        _require_packed(start, box, size)
    spacing = packed_layout(box) if spacing is None else copy(spacing)
    at = pointer(start, linearize(skipped, spacing) * size, element)
    tensor = tensor_class.of_fields(at, size, spacing, copy(box), element)
    if skipped.z:
        _require_unit_of_planes(tensor, skipped.z + box.depth, (skipped.y + box.height, skipped.x + box.width), start)
    return tensor


def _spacings_of(extents: tuple[int, ...]) -> str:
    """Return the arguments of create_layout for an array of some extents; of flat memory, a placeholder."""
    if len(extents) < 2:
        return "row_length"
    *outer, rows, length = extents
    return f"{length}, plane_spacing={length * rows}" if outer else str(length)


def _require_packed(start: pointer, box: shape_t, size: int) -> None:
    """Raise if external memory came as an array whose rows or planes differ from a packed `box`."""
    *_, planes, rows, length = (1, 1, *start.array_shape)
    if start.step != size or len(start.array_shape) < 2:
        return
    if (box.height > 1 and length != box.width) or (box.depth > 1 and planes > 1 and rows != box.height):
        raise LayoutError(
            f"the array, {start.array_shape}, does not have the rows and planes of a packed {box}; pass the layout:"
            f" create_layout({length}, plane_spacing={length * rows}) for the array's,"
            f" create_layout({box.width}, plane_spacing={box.width * box.height}) for packed ones"
        )


def _parse_tensor_arguments(
    tensor_class: type[tensor_t], arguments: tuple[Any, ...]
) -> tuple[layout_t | None, offset_t, int | None]:
    """Return layout, offset and elem_size from the arguments after base and shape."""
    layout = offset = elem_size = None
    for value in arguments:
        if isinstance(value, layout_t) and layout is None:
            layout = value
        elif isinstance(value, offset_t) and offset is None and layout is not None:
            offset = value
        elif isinstance(value, (int, np.integer)) and elem_size is None and value > 0:
            elem_size = int(value)
        else:
            raise LayoutError(
                f"{_constructor_of(tensor_class)} takes (base, shape), then elem_size, layout, (layout,"
                f" elem_size) or (layout, offset, elem_size), got {value!r}"
            )
    return layout, offset_t() if offset is None else offset, elem_size


def _offset_tuple(offset: offset_t) -> tuple[int, int, int]:
    return (offset.x, offset.y, offset.z)


def _element_dtype(dtype: npt.DTypeLike | None, size: int) -> np.dtype[Any]:
    """Return the type of elements of a size: the preferred one if it has that size, else plain bytes."""
    known = None if dtype is None else element_type(dtype)
    return known if known is not None and known.itemsize == size else np.dtype(f"V{size}")


def _constructor_of(tensor_class: type[struct_t]) -> str:
    """Return the name of TTL's function that makes a tensor of a class, for messages."""
    return f"create_{tensor_class.__name__.removesuffix('_t')}"


def build_sub_tensor(tensor_class: type[tensor_t], *arguments: Any) -> sub_tensor_t:
    """Return a sub tensor of a class from any of the four forms of its constructor.

    >>> space = build_tensor(const_ext_tensor_t, np.zeros(70, np.int16), shape_t(10, 7))
    >>> buffer = bytearray(64)
    >>> build_sub_tensor(int_tensor_t, buffer, shape_t(4, 3), layout_t(4, 12), space, offset_t(-1)).origin.shape
    shape_t(width=10, height=7, depth=1)
    """
    sub_class = SUB_TENSOR_OF[tensor_class]
    if len(arguments) == 1:  # (origin)
        (origin,) = arguments
        return sub_class(_convert_tensor(tensor_class, origin), origin_t(origin.shape, offset_t()))
    if len(arguments) == 2:  # (base, origin)
        base, origin = arguments
        tensor = build_tensor(tensor_class, base, origin.shape, origin.layout, origin.elem_size, dtype=origin.dtype)
        return sub_class(tensor, origin_t(origin.shape, offset_t()))
    if len(arguments) == 5:  # (base, shape, layout, origin, sub_offset)
        base, shape, layout, origin, sub_offset = arguments
        tensor = build_tensor(tensor_class, base, shape, layout, origin.elem_size, dtype=origin.dtype)
        return sub_class(tensor, origin_t(origin.shape, sub_offset))
    if len(arguments) == 7:  # (base, shape, layout, elem_size, offset, origin_shape, sub_offset)
        base, shape, layout, elem_size, offset, origin_shape, sub_offset = arguments
        return sub_class(
            build_tensor(tensor_class, base, shape, layout, offset, elem_size), origin_t(origin_shape, sub_offset)
        )
    raise LayoutError(
        f"{_constructor_of(sub_class)} takes (origin), (base, origin), (base, shape, layout, origin,"
        " sub_offset) or (base, shape, layout, elem_size, offset, origin_shape, sub_offset), got"
        f" {len(arguments)} values"
    )


def _convert_tensor(tensor_class: type[tensor_t], tensor: any_tensor_t) -> tensor_t:
    """Return a tensor as another class with the same content; raise if const would become mutable."""
    whole = tensor.tensor if isinstance(tensor, sub_tensor_t) else tensor
    if whole.const and not tensor_class.const:
        raise TransferError(f"{type(tensor).__name__} is const; create a const tensor from it")
    return tensor_class(whole.base, whole.elem_size, whole.layout, whole.shape, whole.dtype)


def build_empty_tensor(tensor_class: type[_Tensor], dtype: npt.DTypeLike | None = None) -> _Tensor:
    """Return a tensor of a class that holds nothing.

    >>> build_empty_tensor(int_tensor_t).shape
    shape_t(width=0, height=1, depth=1)
    """
    return tensor_class(None, 0, layout_t(), shape_t(0, 1, 1), None if dtype is None else np.dtype(dtype))


def build_empty_sub_tensor(tensor_class: type[tensor_t], dtype: npt.DTypeLike | None = None) -> sub_tensor_t:
    """Return a sub tensor of a class that holds nothing.

    >>> build_empty_sub_tensor(int_tensor_t).origin.shape
    shape_t(width=0, height=1, depth=1)
    """
    return SUB_TENSOR_OF[tensor_class](build_empty_tensor(tensor_class, dtype), origin_t(shape_t(0, 1, 1), offset_t()))


def is_empty(tensor: any_tensor_t) -> bool:
    """Return whether a tensor of any kind holds nothing.

    >>> is_empty(build_empty_tensor(ext_tensor_t))
    True
    """
    return shape_empty(tensor.shape)


def require_internal(tensor: any_tensor_t, name: str) -> any_tensor_t:
    """Return an internal tensor, sub or not, const or not; raise LayoutError for anything else.

    >>> require_internal(3, "tensor")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilewright.errors.LayoutError: expected an internal tensor as tensor, got 3; make one with create_int_tensor...
    """
    if not isinstance(tensor, (int_tensor_t, const_int_tensor_t, int_sub_tensor_t, const_int_sub_tensor_t)):
        raise LayoutError(
            f"expected an internal tensor as {name}, got {tensor!r}; make one with create_int_tensor(base, tile)"
        )
    return tensor


def to_const_tensor(tensor: tensor_t) -> tensor_t:
    """Return the same `tensor`, const.

    >>> to_const_tensor(build_tensor(int_tensor_t, bytearray(4), shape_t(4), 1)).const
    True
    """
    return _convert_tensor(const_int_tensor_t if tensor.internal else const_ext_tensor_t, tensor)


def to_void_tensor(tensor: _Tensor) -> _Tensor:
    """Return the same `tensor`, of plain bytes.

    >>> to_void_tensor(build_tensor(int_tensor_t, np.zeros(4, np.int16), shape_t(4))).dtype
    dtype('V2')
    """
    base = None if tensor.base is None else pointer(tensor.base, 0, f"V{tensor.elem_size}")
    return type(tensor)(base, tensor.elem_size, tensor.layout, tensor.shape, np.dtype(f"V{tensor.elem_size}"))


def to_const_sub_tensor(tensor: sub_tensor_t) -> sub_tensor_t:
    """Return the sub tensor `tensor`, const.

    >>> to_const_sub_tensor(
    ...     build_sub_tensor(int_tensor_t, build_tensor(int_tensor_t, bytearray(4), shape_t(4), 1))
    ... ).const
    True
    """
    inner = to_const_tensor(tensor.tensor)
    return SUB_TENSOR_OF[type(inner)](inner, tensor.origin)


def to_void_sub_tensor(tensor: _SubTensor) -> _SubTensor:
    """Return the sub tensor `tensor`, of plain bytes.

    >>> to_void_sub_tensor(build_sub_tensor(int_tensor_t, build_tensor(int_tensor_t, np.zeros(4), shape_t(4)))).dtype
    dtype('V8')
    """
    return type(tensor)(to_void_tensor(tensor.tensor), tensor.origin)


def read_tensor(tensor: any_tensor_t, x: int, y: int = 0, z: int = 0) -> Any:
    """Return the element at `x`, `y`, `z` of an internal tensor or sub tensor, `tensor`.

    >>> int(read_tensor(build_tensor(int_tensor_t, np.arange(12, dtype=np.uint8), shape_t(4, 3)), 1, 2))
    9
    """
    return _element_pointer(tensor, x, y, z)[0]


def write_tensor(tensor: any_tensor_t, value: npt.ArrayLike, x: int, y: int = 0, z: int = 0) -> None:
    """Set the element at `x`, `y`, `z` of an internal tensor or sub tensor, `tensor`, to `value`; it must not be const.

    >>> buffer = build_tensor(int_tensor_t, np.zeros(12, np.uint8), shape_t(4, 3))
    >>> write_tensor(buffer, 7, 1, 2)
    >>> int(read_tensor(buffer, 1, 2))
    7
    """
    if tensor.const:
        raise TransferError(f"cannot write to {type(tensor).__name__}, which is const")
    _element_pointer(tensor, x, y, z)[0] = value


def _element_pointer(tensor: any_tensor_t, x: int, y: int, z: int) -> pointer:
    if not tensor.internal:
        raise TransferError(f"{type(tensor).__name__} is external; import it first, and read the internal tensor")
    if not all(0 <= c < n for c, n in zip((z, y, x), outer_first_shape(tensor.shape), strict=True)):
        raise CoordinateError(f"element ({x}, {y}, {z}) is outside {tensor.shape}")
    base: pointer = tensor.base
    return base + linearize(offset_t(x, y, z), tensor.layout)


_Native = TypeVar("_Native", bound=TransferTensor)


def native_tensor(
    tensor_class: type[_Native], tensor: any_tensor_t, window: Box, space: tuple[int, ...], start_element: int = 0
) -> _Native:
    """Return the native tensor for a `window` of a `space` that starts `start_element` elements from the base.

    `tensor_class` is the class for the memory of `tensor`, internal or external.

    >>> tensor = build_tensor(int_tensor_t, bytearray(12), shape_t(4, 3), 1)
    >>> native_tensor(InternalTensor, tensor, Box((0, 0, 0), (1, 3, 4)), (1, 3, 4)).shape
    (1, 3, 4)
    """
    if tensor.base is None:
        raise TransferError(f"{type(tensor).__name__} is empty and has no memory; check it with tensors_empty first")
    _validate_spacings(space, tensor)
    # the library counts elements, C counts bytes: the remainder shifts the start of the memory
    count, rest = divmod(tensor.base.offset, tensor.elem_size)
    spacing = tensor.layout
    depth, height, width = space
    steps = (spacing.plane_spacing if depth > 1 else width * height, spacing.row_spacing if height > 1 else width, 1)
    return tensor_class(
        tensor.base.memory[rest:],
        space,
        Layout(space, steps),
        tensor.dtype,
        count + start_element,
        tensor.const or not tensor.base.writeable,
        window,
    )


def _validate_spacings(space: tuple[int, ...], tensor: any_tensor_t) -> None:
    depth, height, width = space
    row, plane = tensor.layout.row_spacing, tensor.layout.plane_spacing
    if height > 1 and row < width:
        raise TransferError(f"row spacing {row} is less than the row length; use at least {width}")
    if depth == 1:
        return
    reach = (height - 1) * row + width
    in_rows = f"create_layout(total_row_length={row}, total_number_of_rows={plane})"
    if plane < reach:
        rows = f", or {in_rows}, which counts rows" if row and plane >= height else ""
        raise TransferError(f"plane spacing {plane} is less than the plane size; use at least {reach} elements{rows}")
    _require_unit_of_planes(tensor, depth, (height, width), tensor.base)


def _require_unit_of_planes(tensor: any_tensor_t, planes: int, corner: tuple[int, int], start: pointer) -> None:
    """Raise if the plane spacing of external memory came by position, and may count elements as well as rows.

    TTL's code counts elements, and TTL's page rows. The shape of an array decides; of flat memory its size does, if
    `planes` planes from its `start` to the last row and column, the `corner`, do not fit when counted in rows.
    """
    row, plane = tensor.layout.row_spacing, tensor.layout.plane_spacing
    if not tensor.layout.planes_by_position or row <= 1 or tensor.internal:
        return
    extents = start.array_shape
    elements, before = start.memory.size // tensor.elem_size, start.offset // tensor.elem_size
    reach = before + (planes - 1) * row * plane + (corner[0] - 1) * row + corner[1]  # with planes of rows
    if len(extents) > 2 and plane == extents[-1] * extents[-2]:
        return
    if len(extents) > 2 and row * plane == extents[-1] * extents[-2]:
        reason = f"planes of the array, {extents}, are {row * plane} elements apart"
    elif plane % row:
        reason = f"a plane of {plane} elements is no whole number of rows of {row}"
    elif reach <= elements and elements % (row * plane) == 0:
        reason = f"planes of {plane} rows also fit into the memory of {elements} elements"
    else:
        return
    raise TransferError(
        f"create_layout({row}, {plane}) gives planes {plane} elements apart, but {reason}; pass"
        f" create_layout(total_row_length={row}, total_number_of_rows={plane}) for {plane} rows, or"
        f" create_layout({row}, plane_spacing={plane}) for {plane} elements"
    )
