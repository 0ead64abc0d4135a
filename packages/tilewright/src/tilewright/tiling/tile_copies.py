# SPDX-License-Identifier: Apache-2.0
"""The copies of a transfer: between external and internal tensors, with padding around them.

All bytes are copied by plans of `tilewright.copying`. Tiles of one shape differ only in their addresses, so the plan of
a shape is made once and run at many addresses.

Padding is a constant, or the space itself, repeated by `edge`, `reflect`, `symmetric` or `wrap`. Along one axis that is
a short list of segments, each of which reads the space forwards, backwards or at one element, so a box of segments is
an ordinary strided copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import product as combinations
from math import gcd, prod
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from .._integers import round_up
from ..copying import (
    Buffer,
    Footprint,
    Placement,
    Runner,
    aligned_empty,
    dense_footprint,
    make_runner,
    plan_copy,
    strided_range,
)
from ..errors import CoordinateError, FormatError, LayoutError, TransferError
from ..formats import Format, find_scalar_format, fit_values, format_of
from ..layout import Box, Layout, LayoutLike, compose, product_each
from .tiler import Extents, as_extents

# `ExternalTensor` and `InternalTensor`, the two ends of a transfer; and `TileBuffer`, memory for the latter.

AnyTensor = TypeVar("AnyTensor", bound="TransferTensor")


def spaced_layout(
    shape: Extents,
    row_spacing: int | None = None,
    plane_spacing: int | None = None,
    row_alignment: int = 1,
    plane_alignment: int = 1,
) -> Layout:
    """Return a row-major layout of a `shape`, with gaps between rows and planes.

    `row_spacing` and `plane_spacing` are elements from row to row and from plane to plane, by default packed; both are
    rounded up to multiples of `row_alignment` and `plane_alignment`. Axes outside the planes are packed.

    >>> spaced_layout((2, 3, 5), row_spacing=8, plane_spacing=32)
    Layout((2, 3, 5), (32, 8, 1))
    >>> spaced_layout((2, 3, 5), row_alignment=8)
    Layout((2, 3, 5), (24, 8, 1))
    """
    if min(row_alignment, plane_alignment) < 1:
        raise LayoutError(f"alignment must be at least 1, got {min(row_alignment, plane_alignment)}")
    space = as_extents(shape, "shape")
    width, height = (space[-1] if space else 1), (space[-2] if len(space) > 1 else 1)
    row = round_up(width if row_spacing is None else row_spacing, row_alignment)
    if height > 1 and row < width:
        raise LayoutError(f"row spacing {row} is less than the row length; use at least {width}")
    reach = (height - 1) * row + width
    plane = round_up(height * row if plane_spacing is None else plane_spacing, plane_alignment)
    if prod(space[:-2]) > 1 and plane < reach:
        raise LayoutError(f"plane spacing {plane} is less than the plane size; use at least {reach}")
    outer = [plane * prod(space[axis + 1 : -2]) for axis in range(len(space) - 2)]
    strides = tuple([*outer, row, 1][-len(space) :])
    return Layout(space, strides)


Fill: TypeAlias = "str | npt.ArrayLike | None"
"""The padding outside a space: a value, "edge", "reflect", "symmetric" or "wrap"; None if nothing may."""


class TransferTensor:
    """A window of a space that is laid out in memory."""

    def __init__(
        self,
        memory: object,
        shape: Extents | None = None,
        layout: LayoutLike | None = None,
        dtype: npt.DTypeLike | None = None,
        offset: int = 0,
        const: bool | None = None,
        window: Box | None = None,
    ) -> None:
        buffer, own_layout, element = _describe_memory(memory)
        self.dtype = element if dtype is None else np.dtype(dtype)
        if self.dtype.hasobject:
            raise LayoutError(f"{self.dtype} holds Python objects, which cannot be copied as bytes; use numbers")
        if layout is None and shape is None and self.dtype.itemsize != element.itemsize:
            raise LayoutError(f"cannot infer the shape of {element} memory viewed as {self.dtype}; give a shape")
        if layout is None:
            layout = own_layout if shape is None else spaced_layout(shape)
        if layout is None or (layout.axes or getattr(layout, "replicas", ())):
            raise LayoutError(f"expected a shape or a layout that maps to integer offsets, got {layout!r}")
        space = as_extents(shape, "shape") if shape is not None else _layout_extents(layout)
        if _layout_extents(layout) != space:
            raise LayoutError(f"layout {layout} does not have shape {space}")
        self.memory: Buffer = buffer
        self.layout: LayoutLike = layout
        self.offset = offset
        self.space = space
        self.window = Box((0,) * len(space), space) if window is None else window
        self.const = not buffer.writeable if const is None else const
        if not self.const and not buffer.writeable:
            raise TransferError(f"the memory of {self!r} is read-only; use const=True")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of this tensor: of its window, not of its space.

        >>> ExternalTensor(np.zeros((4, 8))).sub((-1, 0), (3, 3)).shape
        (3, 3)
        """
        return self.window.shape

    @cached_property
    def strides(self) -> tuple[int, ...] | None:
        """The byte stride of each axis, or None if the layout is not strided.

        >>> InternalTensor(np.zeros(32, np.int16), (4, 8)).strides
        (16, 2)
        """
        layout = self.layout
        if not isinstance(layout, Layout) or layout.guards:
            return None
        strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
        if any(isinstance(stride, tuple) for stride in strides):
            return None
        return tuple([int(stride) * self.dtype.itemsize for stride in strides])

    @cached_property
    def address(self) -> int:
        """The address of element 0 of the space.

        >>> a = np.zeros((4, 8), np.int16)
        >>> ExternalTensor(a[2:], const=True).address - a.ctypes.data
        32
        """
        start = self.layout.offset if isinstance(self.layout, Layout) else 0
        return self.memory.address + (self.offset + int(start)) * self.dtype.itemsize

    def sub(self: AnyTensor, offset: Extents, shape: Extents) -> AnyTensor:
        """Return the part of this tensor at `offset` with extents `shape`; it may extend outside.

        >>> ExternalTensor(np.zeros((4, 8))).sub((2, -3), (2, 5)).window
        Box(offset=(2, -3), shape=(2, 5))
        """
        rank = len(self.space)
        start = [a + b for a, b in zip(as_extents(offset, "offset", rank), self.window.offset, strict=True)]
        return self._with_window(Box(tuple(start), as_extents(shape, "shape", rank)))

    def tile(self: AnyTensor, tile: Box) -> AnyTensor:
        """Return the part of this tensor that `tile` covers.

        >>> ExternalTensor(np.zeros((4, 8))).tile(Box((2, 0), (2, 4))).array().shape
        (2, 4)
        """
        return self.sub(tile.offset, tile.shape)

    def as_const(self: AnyTensor) -> AnyTensor:
        """Return the same tensor, read-only.

        >>> ExternalTensor(np.zeros(4)).as_const().const
        True
        """
        return self._with_window(self.window, const=True)

    def _with_window(self: AnyTensor, window: Box, const: bool | None = None) -> AnyTensor:
        tensor = object.__new__(type(self))
        tensor.__dict__.update(self.__dict__)
        tensor.window = window
        tensor.const = self.const if const is None else const
        return tensor

    def array(self) -> np.ndarray[Any, Any]:
        """Return the part of this tensor inside its space as a NumPy view, read-only for a const tensor.

        >>> InternalTensor(np.arange(6, dtype=np.int8), (2, 3)).array().tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        inside = self.window.within(self.space)
        if self.strides is None:
            raise LayoutError(
                f"layout {self.layout} is not strided, so it has no NumPy view; import it into a strided tensor"
            )
        self.validate_bounds(inside)
        view: np.ndarray[Any, Any] = np.ndarray(
            inside.shape,
            self.dtype,
            self.memory.bytes,
            self.address_of(inside) - self.memory.address if not inside.empty else 0,
            self.strides,
        )
        view.flags.writeable = not self.const
        return view

    def read(self, *coords: int) -> np.generic | Any:
        """Return the element at `coords` of this tensor.

        >>> int(InternalTensor(np.arange(6, dtype=np.int8), (2, 3)).read(1, 2))
        5
        """
        return self._element_view(coords)[(0,) * len(coords)]

    def write(self, value: npt.ArrayLike, *coords: int) -> None:
        """Set the element at `coords` of this tensor to `value`.

        >>> buffer = InternalTensor(np.zeros(6, np.int8), (2, 3))
        >>> buffer.write(7, 1, 2)
        >>> int(buffer.read(1, 2))
        7
        """
        if self.const:
            raise TransferError(f"cannot write to {self!r}, which is const")
        self._element_view(coords)[(0,) * len(coords)] = value

    def _element_view(self, coords: tuple[int, ...]) -> np.ndarray[Any, Any]:
        if len(coords) != len(self.shape) or not all(0 <= c < n for c, n in zip(coords, self.shape, strict=True)):
            raise CoordinateError(f"element {coords} is outside a tensor of shape {self.shape}")
        cell = self.sub(coords, (1,) * len(coords))
        if cell.window.within(self.space).empty:
            raise CoordinateError(f"element {coords} is padding: it is outside the space {self.space}")
        return cell.array()

    def address_of(self, box: Box) -> int:
        """Return the address of the first element of a box of the space; only for a strided layout.

        >>> tensor = ExternalTensor(np.zeros((4, 8), np.int16))
        >>> tensor.address_of(Box((1, 2), (2, 4))) - tensor.address
        20
        """
        assert self.strides is not None
        return self.address + sum([start * stride for start, stride in zip(box.offset, self.strides, strict=True)])

    def validate_bounds(self, box: Box) -> None:
        """Raise a TransferError unless the memory holds a box of the space.

        >>> ExternalTensor(bytearray(10), (3, 4), dtype="int8").validate_bounds(Box((0, 0), (2, 4)))
        """
        if box.empty or (self.in_bounds and box.within(self.space) == box):
            return
        low, high = self.byte_range(box)
        if low < 0 or high > self.memory.nbytes:
            raise TransferError(
                f"tile {box} covers bytes {low} to {high}, but the memory has {self.memory.nbytes} bytes (shape"
                f" {self.space}, layout {self.layout}, {self.dtype}, offset {self.offset}); give it more memory or"
                " another layout"
            )

    @cached_property
    def in_bounds(self) -> bool:
        """Whether the memory holds the whole space.

        >>> ExternalTensor(bytearray(10), (3, 4), dtype="int8").in_bounds
        False
        """
        if 0 in self.space:
            return True
        low, high = self.byte_range(Box((0,) * len(self.space), self.space))
        return low >= 0 and high <= self.memory.nbytes

    def byte_range(self, box: Box) -> tuple[int, int]:
        """Return (first, end) of the bytes of a box, counted from the start of the memory.

        >>> ExternalTensor(np.zeros((4, 8), np.int16)).byte_range(Box((1, 0), (2, 4)))
        (16, 40)
        """
        size = self.dtype.itemsize
        if self.strides is None:
            return self.offset * size, (self.offset + int(self.layout.cosize)) * size
        start = self.address_of(box) - self.memory.address
        low, high = strided_range(box.shape, self.strides, size)
        return start + low, start + high

    def __repr__(self) -> str:
        const = ", const=True" if self.const else ""
        return (
            f"{type(self).__name__}(memory={self.memory.nbytes} bytes, shape={self.space}, layout={self.layout!r},"
            f" dtype={str(self.dtype)!r}, offset={self.offset}, window={self.window!r}{const})"
        )


class ExternalTensor(TransferTensor):
    """A tensor that holds data: an array, or any memory with a shape, a layout and an element type.

    Layout offsets count elements from `offset`. A transfer checks bounds, since a window may extend beyond the space.

    Args:
        memory: an array, or anything with the buffer protocol.
        shape: the extents, by default the array's.
        layout: where each element lies; by default the array's, or row-major.
        dtype: the element type, by default the array's, or bytes.
        offset: elements from the start of the memory to element 0.
        const: whether writing is an error; by default whether the memory is read-only.
        window: the box of the space that this tensor is, by default all of it.

    >>> ExternalTensor(np.zeros((4, 8), np.float32)).shape
    (4, 8)
    >>> ExternalTensor(bytearray(64), (3, 5), spaced_layout((3, 5), row_spacing=16), "uint8").array().strides
    (16, 1)
    """


class InternalTensor(TransferTensor):
    """A tensor in which tiles are computed: imports write it and exports read it.

    `memory`, `shape`, `layout`, `dtype`, `offset`, `const` and `window` are as in `ExternalTensor`.

    >>> InternalTensor(bytearray(1024), (4, 8), dtype="float32").array().shape
    (4, 8)
    """


class TileBuffer:
    """Internal memory, aligned to a cache line, that holds one packed tile of any shape at a time.

    >>> TileBuffer(1024).view((4, 8), np.dtype("float32")).strides
    (32, 4)
    """

    def __init__(self, nbytes: int) -> None:
        self.bytes = aligned_empty(nbytes, np.uint8)
        self.address: int = self.bytes.ctypes.data

    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a tile of this shape and type at the start of the buffer, as an array."""
        nbytes = prod(shape) * dtype.itemsize
        if nbytes > self.bytes.size:
            raise TransferError(f"a {dtype} tile of {shape} takes {nbytes} bytes, the buffer has {self.bytes.size}")
        return np.ndarray(shape, dtype, self.bytes.data)

    def tensor(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> InternalTensor:
        """Return a tile of this shape and type at the start of the buffer, as an internal tensor."""
        return InternalTensor(self.bytes, shape, dtype=dtype)


def _describe_memory(memory: object) -> tuple[Buffer, Layout | None, np.dtype[Any]]:
    """Return memory as bytes, with its own layout (None if it has none) and element type."""
    if isinstance(memory, np.ndarray):
        array = memory
    else:
        try:
            array = np.frombuffer(cast("bytes", memory), np.uint8)  # refuses anything but a buffer
        except (TypeError, ValueError, BufferError) as problem:
            raise LayoutError(
                f"expected an array or a buffer as memory, got {type(memory).__name__}: {problem}"
            ) from None
    buffer, size = Buffer.of(array), array.itemsize
    lies_between = any(s % size for n, s in zip(array.shape, array.strides, strict=True) if n > 1) if size else True
    if array.ndim == 0 or lies_between:
        return buffer, None, array.dtype
    start = array.__array_interface__["data"][0] - buffer.address
    layout = Layout(array.shape, tuple([s // size for s in array.strides])) + start // size
    return buffer, layout, array.dtype


def _layout_extents(layout: LayoutLike) -> tuple[int, ...]:
    return tuple([int(n) for n in product_each(layout.shape)])


Work = Callable[[], None]
"""A transfer that is ready to run."""

Steps = tuple[int, ...]
"""Extents or byte strides, one per axis."""

LARGE_TARGET = 8 << 20
"""Bytes from which a target exceeds the caches, so that non-temporal stores are faster."""

_WORD_FORMATS = {size: f"uint{8 * size}" for size in (1, 2, 4, 8)}

REPEATING_FILLS = ("edge", "reflect", "symmetric", "wrap")
_NAMED_VALUES = {"zero": 0, "nan": float("nan")}


class BoundCopy:
    """A compiled copy plan bound to its source and target addresses; `owners` keeps the memory there alive.

    >>> BoundCopy(lambda source, target: print(source, "to", target), 64, 128)()
    64 to 128
    """

    __slots__ = ("owners", "run", "source", "target")

    def __init__(self, run: Runner, source: int, target: int, owners: object = None) -> None:
        self.run, self.source, self.target, self.owners = run, source, target, owners

    def __call__(self) -> None:
        self.run(self.source, self.target)


class CopyList(tuple[BoundCopy, ...]):
    """The copies of one transfer; a call runs them one after another.

    >>> CopyList([BoundCopy(lambda source, target: print(source, "to", target), 64, 128)])()
    64 to 128
    """

    __slots__ = ()

    def __call__(self) -> None:
        for copy in self:
            copy()


def import_copies(internal: InternalTensor, external: ExternalTensor, fill: Fill = None) -> CopyList:
    """Return the copies that fill an internal tensor from an external one; `fill` pads what lies outside.

    >>> space, buffer = ExternalTensor(np.arange(6, dtype=np.int8)), InternalTensor(np.zeros(4, np.int8))
    >>> import_copies(buffer, space.sub(-1, 4), fill="edge")()
    >>> buffer.array().tolist()
    [0, 0, 1, 2]
    """
    _validate_equal_shapes(internal, external)
    if internal.const:
        raise TransferError(f"cannot import into {internal!r}, which is const")
    _validate_window(internal)
    tile, space = external.window, external.space
    inside = tile.within(space)
    if inside == tile:
        return CopyList([_copy_box(external, tile, internal, internal.window)])
    if fill is None:
        raise TransferError(
            f"tile {tile} extends outside its tensor of shape {space}; give a fill, such as fill=0 or fill='edge'"
        )
    padding = validate_fill(fill, internal.dtype)
    if isinstance(padding, str):
        return CopyList(_repeat_copies(internal, external, padding))
    outside = boxes_outside(tile, inside)
    copies = [fill_copy(internal, _to_internal(box, tile, internal.window), padding) for box in outside]
    if not inside.empty:
        copies.append(_copy_box(external, inside, internal, _to_internal(inside, tile, internal.window)))
    return CopyList(copies)


def export_copies(internal: InternalTensor, external: ExternalTensor, clip: bool = False) -> CopyList:
    """Return the copies that write an internal tensor to an external one; `clip` skips what lies outside it.

    >>> space, buffer = ExternalTensor(np.zeros(6, np.int8)), InternalTensor(np.arange(1, 5, dtype=np.int8))
    >>> export_copies(buffer, space.sub(-1, 4), clip=True)()
    >>> space.array().tolist()
    [2, 3, 4, 0, 0, 0]
    """
    _validate_equal_shapes(internal, external)
    if external.const:
        raise TransferError(f"cannot export to {external!r}, which is const")
    _validate_window(internal)
    tile = external.window
    inside = tile.within(external.space)
    if inside != tile and not clip:
        raise TransferError(
            f"tile {tile} extends outside its tensor of shape {external.space}; use clip=True to write only the part"
            " that is inside"
        )
    if inside.empty:
        return CopyList()
    return CopyList([_copy_box(internal, _to_internal(inside, tile, internal.window), external, inside)])


def direct_copy(source: ExternalTensor, target: ExternalTensor, threads: int = 1) -> BoundCopy:
    """Return the copy from one external tensor to another of the same shape, on `threads` native threads.

    >>> a, b = np.arange(6), np.zeros(6, int)
    >>> direct_copy(ExternalTensor(a).sub(1, 3), ExternalTensor(b).sub(0, 3))()
    >>> b.tolist()
    [1, 2, 3, 0, 0, 0]
    """
    _validate_equal_shapes(source, target)
    if target.const:
        raise TransferError(f"cannot copy to {target!r}, which is const")
    if source.dtype != target.dtype or source.strides is None or target.strides is None:
        return _copy_box(source, source.window, target, target.window)
    source.validate_bounds(source.window)
    target.validate_bounds(target.window)
    start, end = source.address_of(source.window), target.address_of(target.window)
    sides = (source.strides, source.dtype, start, target.strides, target.dtype, end)
    owners, is_large = (source.memory, target.memory), target.memory.nbytes >= LARGE_TARGET
    return copy_strided(source.shape, *sides, owners, is_large, threads)


def fill_copy(internal: InternalTensor, box: Box, value: np.ndarray[Any, Any]) -> BoundCopy:
    """Return the copy that repeats one element over a box: its source has stride 0."""
    internal.validate_bounds(box)
    if internal.strides is None:
        raise TransferError(f"cannot pad {internal!r}, which is not strided")
    address, strides, dtype = internal.address_of(box), (0,) * len(box.shape), internal.dtype
    owners = (value, internal.memory)
    return copy_strided(box.shape, strides, dtype, value.ctypes.data, internal.strides, dtype, address, owners)


def _validate_equal_shapes(internal: TransferTensor, external: TransferTensor) -> None:
    if internal.shape != external.shape:
        raise TransferError(
            f"internal tensor has shape {internal.shape}, external tensor has shape {external.shape}; they must be"
            " equal: take a sub-tensor of one of them"
        )


def _validate_window(internal: InternalTensor) -> None:
    if internal.window.within(internal.space) != internal.window:
        raise TransferError(f"window {internal.window} is outside its internal tensor of shape {internal.space}")


def _validate_no_overlap(source: TransferTensor, source_box: Box, target: TransferTensor, target_box: Box) -> None:
    if source_box.empty or not source.memory.overlaps(target.memory):
        return
    if _box_footprint(source, source_box).overlaps(_box_footprint(target, target_box)):
        raise TransferError(
            f"source and target of tile {source_box} overlap in memory; give the internal tensor its own memory"
        )


def _box_footprint(tensor: TransferTensor, box: Box) -> Footprint:
    if tensor.strides is not None:
        return Footprint(tensor.address_of(box), box.shape, tensor.strides, tensor.dtype.itemsize)
    low, high = tensor.byte_range(box)
    return dense_footprint(tensor.memory.address + low, high - low)


def _to_internal(box: Box, tile: Box, window: Box) -> Box:
    """Return the box of the internal tensor that a box of an external tile is copied to."""
    start = [a - b + c for a, b, c in zip(box.offset, tile.offset, window.offset, strict=True)]
    return Box(tuple(start), box.shape)


def _copy_box(source: TransferTensor, source_box: Box, target: TransferTensor, target_box: Box) -> BoundCopy:
    """Return the copy of a box of one tensor to a box of another."""
    source.validate_bounds(source_box)
    target.validate_bounds(target_box)
    _validate_no_overlap(source, source_box, target, target_box)
    if source.strides is None or target.strides is None:
        return _copy_through_layouts(source, source_box, target, target_box)
    start, end = source.address_of(source_box), target.address_of(target_box)
    owners = (source.memory, target.memory)
    return copy_strided(
        source_box.shape, source.strides, source.dtype, start, target.strides, target.dtype, end, owners
    )


def copy_strided(
    shape: Steps,
    source_strides: Steps,
    source_type: np.dtype[Any],
    source: int,
    target_strides: Steps,
    target_type: np.dtype[Any],
    target: int,
    owners: object = None,
    streaming: bool = False,
    threads: int = 1,
) -> BoundCopy:
    """Return the copy of elements between two addresses, each side with its strides and type.

    >>> a, b = np.arange(3, dtype=np.int8), np.zeros(3, np.int16)
    >>> copy_strided((3,), a.strides, a.dtype, a.ctypes.data, b.strides, b.dtype, b.ctypes.data)()
    >>> b.tolist()
    [0, 1, 2]
    """
    if 0 in shape:
        return BoundCopy(_copy_nothing, source, target)
    if source_type is target_type or source_type == target_type:
        size = source_type.itemsize
        word = gcd(size, 8, *source_strides, *target_strides, source, target)
        compiled = compile_word_copy(shape, source_strides, target_strides, size, word, streaming, threads)
    else:
        compiled = _compile_conversion(shape, source_strides, source_type, target_strides, target_type)
    run, source_low, target_low = compiled
    return BoundCopy(run, source + source_low, target + target_low, owners)


def _copy_nothing(source: int, target: int) -> None:
    """Copy no elements."""


@lru_cache(maxsize=4096)
def compile_word_copy(
    shape: Steps,
    source_strides: Steps,
    target_strides: Steps,
    size: int,
    word: int,
    streaming: bool = False,
    threads: int = 1,
) -> tuple[Runner, int, int]:
    """Return a copy of elements of `size` bytes as words, and the lowest byte offset of the source and target."""
    count = size // word
    extents, sides = shape, (source_strides, target_strides)
    if count > 1:
        extents, sides = (*shape, count), ((*source_strides, word), (*target_strides, word))
    formats = (format_of(_WORD_FORMATS[word]), format_of(_WORD_FORMATS[word]))
    return _compile_copy(extents, sides, formats, streaming, threads)


@lru_cache(maxsize=4096)
def _compile_conversion(
    shape: Steps, source_strides: Steps, source: np.dtype[Any], target_strides: Steps, target: np.dtype[Any]
) -> tuple[Runner, int, int]:
    """Return a copy that converts elements, and the lowest byte offset of the source and target."""
    for dtype, strides in ((source, source_strides), (target, target_strides)):
        if not dtype.isnative or any(stride % dtype.itemsize for stride in strides):
            raise TransferError(
                f"cannot convert {source} to {target} in a transfer: both need native byte order and strides of whole"
                " elements; import with the external type and convert in the compute"
            )
    return _compile_copy(shape, (source_strides, target_strides), (format_of(source), format_of(target)))


def _compile_copy(
    shape: Steps,
    strides: tuple[Steps, Steps],
    formats: tuple[Format, Format],
    streaming: bool = False,
    threads: int = 1,
) -> tuple[Runner, int, int]:
    placements, lows = [], []
    for side, element in zip(strides, formats, strict=True):
        size = element.value_format.itemsize
        low, _ = strided_range(shape, side, size)
        lows.append(low)
        layout = Layout(shape, tuple([stride // size for stride in side]))
        placements.append(Placement(layout + -low // size if low else layout, element))
    return make_runner(plan_copy(placements[0], placements[1]), threads, streaming=streaming), lows[0], lows[1]


def _copy_through_layouts(
    source: TransferTensor, source_box: Box, target: TransferTensor, target_box: Box
) -> BoundCopy:
    """Return the copy between tensors when at least one is not strided, such as one stored in tiles."""
    placements = []
    for tensor, box in ((source, source_box), (target, target_box)):
        windows = tuple([Layout(n) + start for start, n in zip(box.offset, box.shape, strict=True)])
        placements.append(Placement(compose(tensor.layout, windows), format_of(tensor.dtype)))
    addresses = [side.memory.address + side.offset * side.dtype.itemsize for side in (source, target)]
    run = make_runner(plan_copy(placements[0], placements[1]))
    return BoundCopy(run, addresses[0], addresses[1], (source.memory, target.memory))


def _repeat_copies(internal: InternalTensor, external: ExternalTensor, fill: str) -> list[BoundCopy]:
    """Return the copies that repeat the space around itself, with strides that may be zero or negative."""
    source_strides, target_strides = external.strides, internal.strides
    if source_strides is None or target_strides is None:
        raise TransferError(f"fill {fill!r} needs strided tensors; use a constant, such as fill=0")
    internal.validate_bounds(internal.window)
    copies = []
    for segments in repeated_boxes(external.window, external.space, fill):
        pairs = list(zip(segments, source_strides, strict=True))
        strides = tuple([part.step * stride for part, stride in pairs])
        source = external.address + sum([part.source * stride for part, stride in pairs])
        external.validate_bounds(source_box_of(segments))
        box = Box(
            tuple([part.start + start for part, start in zip(segments, internal.window.offset, strict=True)]),
            tuple([part.length for part in segments]),
        )
        target = internal.address_of(box)
        sides = (strides, external.dtype, source, target_strides, internal.dtype, target)
        copies.append(copy_strided(box.shape, *sides, (external.memory, internal.memory)))
    return copies


class Segment(NamedTuple):
    """A part of one axis of a tile: its start and length in the tile, and its start and step in the space."""

    start: int
    length: int
    source: int
    step: int


def axis_segments(offset: int, length: int, space: int, fill: str) -> list[Segment]:
    """Return how one axis of a tile, which leaves its space, is read from that space.

    `reflect` turns at the last element, `symmetric` behind it, as in `numpy.pad`.

    >>> axis_segments(-2, 6, 3, "edge")
    [Segment(start=0, length=2, source=0, step=0), Segment(start=2, length=3, source=0, step=1), \
Segment(start=5, length=1, source=2, step=0)]
    >>> axis_segments(-2, 5, 3, "wrap")
    [Segment(start=0, length=2, source=1, step=1), Segment(start=2, length=3, source=0, step=1)]
    """
    if space < 1:
        raise LayoutError(f"fill {fill!r} repeats the space, but the space is empty; use a constant, such as fill=0")
    segments = []
    position, end = offset, offset + length
    while position < end:
        source, step, stop = _segment_at(position, end, space, fill)
        segments.append(Segment(position - offset, min(stop, end) - position, source, step))
        position = stop
    return segments


def _segment_at(position: int, end: int, space: int, fill: str) -> tuple[int, int, int]:
    """Return where a position is read, the step from there, and the first position that another segment reads."""
    if 0 <= position < space:
        return position, 1, space
    if fill == "edge" or space == 1:
        return (0, 0, 0) if position < 0 else (space - 1, 0, end)
    period = space if fill == "wrap" else 2 * space - 2 if fill == "reflect" else 2 * space
    phase = position % period
    base = position - phase
    if phase < space:
        return phase, 1, base + space
    return (period - phase if fill == "reflect" else period - 1 - phase), -1, base + period


def repeated_boxes(tile: Box, space: tuple[int, ...], fill: str) -> list[tuple[Segment, ...]]:
    """Return the boxes of a tile that are one strided copy each, as one segment per axis.

    >>> len(repeated_boxes(Box((-1, -1), (4, 4)), (9, 9), "edge"))
    4
    """
    extents = zip(tile.offset, tile.shape, space, strict=True)
    return list(combinations(*[axis_segments(start, length, n, fill) for start, length, n in extents]))


def source_box_of(segments: tuple[Segment, ...]) -> Box:
    """Return the box of the space that some segments, one per axis, read.

    >>> source_box_of((Segment(start=0, length=3, source=4, step=-1),))
    Box(offset=(2,), shape=(3,))
    """
    ends = [(part.source, part.source + part.step * (part.length - 1)) for part in segments]
    return Box(tuple([min(end) for end in ends]), tuple([max(end) - min(end) + 1 for end in ends]))


def boxes_outside(tile: Box, inside: Box) -> list[Box]:
    """Return the part of a tile that is not in `inside`, as few boxes that do not overlap.

    >>> boxes_outside(Box((-1, 0), (4, 4)), Box((0, 0), (3, 4)))
    [Box(offset=(-1, 0), shape=(1, 4))]
    """
    if inside.empty:
        return [] if tile.empty else [tile]
    boxes = []
    low, high = list(tile.offset), list(tile.end)
    for axis, (first, last) in enumerate(zip(inside.offset, inside.end, strict=True)):
        for start, stop in ((low[axis], first), (last, high[axis])):
            if start < stop:
                offset = (*low[:axis], start, *low[axis + 1 :])
                end = (*high[:axis], stop, *high[axis + 1 :])
                boxes.append(Box(offset, tuple([b - a for a, b in zip(offset, end, strict=True)])))
        low[axis], high[axis] = first, last
    return boxes


def validate_fill(fill: Fill, dtype: np.dtype[Any]) -> str | np.ndarray[Any, Any]:
    """Return the name of a repeating fill, or a constant fill as an array of one element of the type.

    >>> validate_fill("edge", np.dtype("int8")), validate_fill("zero", np.dtype("int8"))
    ('edge', array([0], dtype=int8))
    >>> validate_fill(2.5, np.dtype("float32"))
    array([2.5], dtype=float32)
    """
    value: Any = fill
    if isinstance(fill, str):
        if fill in REPEATING_FILLS:
            return fill
        if fill not in _NAMED_VALUES:
            raise TransferError(f"unknown fill {fill!r}; use a value, zero, nan, {', '.join(REPEATING_FILLS)}")
        value = _NAMED_VALUES[fill]
    if dtype.kind == "V" and dtype.names is None and isinstance(value, int) and value == 0:
        return np.zeros(1, dtype)
    element = find_scalar_format(dtype)
    try:
        constant = np.empty(1, dtype)
        constant[0] = value if element is None else fit_values(value, element)
    except FormatError as problem:
        raise TransferError(f"fill {problem}") from None
    except (TypeError, ValueError, OverflowError) as problem:
        raise TransferError(f"fill {fill!r} is not a value of {dtype}: {problem}") from None
    return constant
