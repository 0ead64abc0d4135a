# SPDX-License-Identifier: Apache-2.0
"""`ExternalTensor` and `InternalTensor`, the two ends of a transfer; and `TileBuffer`, memory for the latter.

External memory holds the data, internal memory is where tiles are computed. Both kinds are views of memory. A
sub-tensor remembers the space it was cut from, so a transfer knows which part of it is data and which is padding.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np

from ..copying import Buffer, aligned_empty, strided_range
from ..errors import CoordinateError, LayoutError, TransferError
from ..layout import Box, Layout, LayoutLike, product_each
from .tiler import Extents, as_extents

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
    space = as_extents(shape, "shape")
    width, height = (space[-1] if space else 1), (space[-2] if len(space) > 1 else 1)
    row = _round_up(width if row_spacing is None else row_spacing, row_alignment)
    if height > 1 and row < width:
        raise LayoutError(f"row spacing {row} is less than the row length; use at least {width}")
    reach = (height - 1) * row + width
    plane = _round_up(height * row if plane_spacing is None else plane_spacing, plane_alignment)
    if prod(space[:-2]) > 1 and plane < reach:
        raise LayoutError(f"plane spacing {plane} is less than the plane size; use at least {reach}")
    outer = [plane * prod(space[axis + 1 : -2]) for axis in range(len(space) - 2)]
    strides = tuple([*outer, row, 1][-len(space) :])
    return Layout(space, strides)


def _round_up(spacing: int, alignment: int) -> int:
    if alignment < 1:
        raise LayoutError(f"alignment must be at least 1, got {alignment}")
    return -(-spacing // alignment) * alignment


class TransferTensor:
    """A window of a space that is laid out in memory."""

    def __init__(
        self,
        memory: Any,
        shape: Extents | None = None,
        layout: LayoutLike | None = None,
        dtype: Any = None,
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
        """Return the extents of this tensor: of its window, not of its space.

        >>> ExternalTensor(np.zeros((4, 8))).sub((-1, 0), (3, 3)).shape
        (3, 3)
        """
        return self.window.shape

    @cached_property
    def strides(self) -> tuple[int, ...] | None:
        """Return the byte stride of each axis, or None if the layout is not strided.

        >>> InternalTensor(np.zeros(32, np.int16), (4, 8)).strides
        (16, 2)
        """
        layout = self.layout
        if not isinstance(layout, Layout) or layout.guards:
            return None
        steps = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
        if any(isinstance(step, tuple) for step in steps):
            return None
        return tuple([int(step) * self.dtype.itemsize for step in steps])

    @cached_property
    def address(self) -> int:
        """Return the address of element 0 of the space.

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

    def read(self, *coords: int) -> Any:
        """Return the element at `coords` of this tensor.

        >>> int(InternalTensor(np.arange(6, dtype=np.int8), (2, 3)).read(1, 2))
        5
        """
        return self._element_view(coords)[(0,) * len(coords)]

    def write(self, value: Any, *coords: int) -> None:
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
        return self.address + sum([start * step for start, step in zip(box.offset, self.strides, strict=True)])

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
        """Return whether the memory holds the whole space.

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
        shape: the extents, by default those of the array.
        layout: where each element lies; by default that of the array, or row-major.
        dtype: the element type, by default that of the array, or bytes.
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

    `memory`, `shape`, `layout`, `dtype`, `offset`, `const` and `window` are those of `ExternalTensor`.

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


def _describe_memory(memory: Any) -> tuple[Buffer, Layout | None, np.dtype[Any]]:
    """Return memory as bytes, with its own layout (None if it has none) and element type."""
    if not isinstance(memory, np.ndarray):
        try:
            memory = np.frombuffer(memory, np.uint8)
        except (TypeError, ValueError, BufferError) as problem:
            raise LayoutError(
                f"expected an array or a buffer as memory, got {type(memory).__name__}: {problem}"
            ) from None
    buffer = Buffer.of(memory)
    size = memory.itemsize
    if (
        memory.ndim == 0
        or size == 0
        or any(s % size for n, s in zip(memory.shape, memory.strides, strict=True) if n > 1)
    ):
        return buffer, None, memory.dtype
    start = memory.__array_interface__["data"][0] - buffer.address
    shape = tuple([int(n) for n in memory.shape])
    layout = Layout(shape, tuple([s // size for s in memory.strides])) + start // size
    return buffer, layout, memory.dtype


def _layout_extents(layout: LayoutLike) -> tuple[int, ...]:
    return tuple([int(n) for n in product_each(layout.shape)])
