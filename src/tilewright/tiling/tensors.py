# SPDX-License-Identifier: Apache-2.0
"""External and internal tensors: memory seen through a layout, and windows of it that may reach beyond the edge.

External memory is where the data is, internal memory is where it is worked on. Both kinds are views; what tells them
apart is the direction of a transfer. A sub-tensor keeps the whole it was cut from, so a transfer knows which part of
it is data and which part is padding.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np

from ..copying.buffers import Buffer
from ..errors import CoordinateError, LayoutError, TransferError
from ..layout import Layout, LayoutLike
from ..layout.box import Box
from ..layout.tuples import product_each
from .extents import extents

T = TypeVar("T", bound="_Tensor")


def spaced_layout(
    shape: Any,
    row_spacing: int | None = None,
    plane_spacing: int | None = None,
    row_alignment: int = 1,
    plane_alignment: int = 1,
) -> Layout:
    """Return a row-major layout with gaps: elements from row to row and from plane to plane, rounded up to alignments.

    Without spacings rows and planes are packed. Axes beyond the plane are packed planes.

    >>> spaced_layout((2, 3, 5), row_spacing=8, plane_spacing=32)
    Layout((2, 3, 5), (32, 8, 1))
    >>> spaced_layout((2, 3, 5), row_alignment=8)
    Layout((2, 3, 5), (24, 8, 1))
    """
    whole = extents(shape, "shape")
    width, height = (whole[-1] if whole else 1), (whole[-2] if len(whole) > 1 else 1)
    row = _rounded(width if row_spacing is None else row_spacing, row_alignment)
    if height > 1 and row < width:
        raise LayoutError(f"rows of {width} elements do not fit a row spacing of {row}; it must be at least {width}")
    reach = (height - 1) * row + width
    plane = _rounded(height * row if plane_spacing is None else plane_spacing, plane_alignment)
    if prod(whole[:-2]) > 1 and plane < reach:
        raise LayoutError(f"planes of {reach} elements do not fit a plane spacing of {plane}; it must be at least that")
    outer = [plane * prod(whole[axis + 1 : -2]) for axis in range(len(whole) - 2)]
    strides = tuple([*outer, row, 1][-len(whole) :])
    return Layout(whole, strides)


def _rounded(spacing: int, alignment: int) -> int:
    if alignment < 1:
        raise LayoutError(f"alignment {alignment} is not positive; use 1 for none")
    return -(-spacing // alignment) * alignment


class _Tensor:
    """Memory, the layout of a whole tensor in it, and the window of the whole that this tensor is."""

    def __init__(
        self,
        memory: Any,
        shape: Any = None,
        layout: LayoutLike | None = None,
        dtype: Any = None,
        offset: int = 0,
        const: bool | None = None,
        window: Box | None = None,
    ) -> None:
        buffer, described, element = _seen(memory)
        self.dtype = element if dtype is None else np.dtype(dtype)
        if self.dtype.hasobject:
            raise LayoutError(f"{self.dtype} holds references, which cannot be moved as bytes; use plain numbers")
        if layout is None and shape is None and self.dtype.itemsize != element.itemsize:
            raise LayoutError(f"memory of {element} seen as {self.dtype} has no shape of its own; give one")
        if layout is None:
            layout = described if shape is None else spaced_layout(shape)
        if layout is None or (layout.axes or getattr(layout, "replicas", ())):
            raise LayoutError(f"a tensor needs a shape or a layout with plain places, got {layout!r}")
        whole = extents(shape, "shape") if shape is not None else _extents_of(layout)
        if _extents_of(layout) != whole:
            raise LayoutError(f"shape {whole} and layout {layout} disagree; give a layout of that shape")
        self.memory: Buffer = buffer
        self.layout: LayoutLike = layout
        self.offset = offset
        self.whole = whole
        self.window = Box((0,) * len(whole), whole) if window is None else window
        self.const = not buffer.writeable if const is None else const
        if not self.const and not buffer.writeable:
            raise TransferError(f"the memory of {self!r} is read-only; make the tensor with const=True")

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents of this tensor, which is all of the whole or a window of it.

        >>> ExternalTensor(np.zeros((4, 8))).sub((-1, 0), (3, 3)).shape
        (3, 3)
        """
        return self.window.shape

    @cached_property
    def strides(self) -> tuple[int, ...] | None:
        """Return the bytes from one element to the next along each axis; None for a layout that is not so simple.

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
        """Return the address of element 0 of the whole.

        >>> a = np.zeros((4, 8), np.int16)
        >>> ExternalTensor(a[2:], const=True).address - a.ctypes.data
        32
        """
        start = self.layout.offset if isinstance(self.layout, Layout) else 0
        return self.memory.address + (self.offset + int(start)) * self.dtype.itemsize

    def sub(self: T, offset: Any, shape: Any) -> T:
        """Return the part of this tensor that starts at offset; it may reach outside, and knows what it is part of.

        >>> ExternalTensor(np.zeros((4, 8))).sub((2, -3), (2, 5)).window
        Box(offset=(2, -3), shape=(2, 5))
        """
        rank = len(self.whole)
        start = [a + b for a, b in zip(extents(offset, "offset", rank), self.window.offset, strict=True)]
        return self._windowed(Box(tuple(start), extents(shape, "shape", rank)))

    def tile(self: T, tile: Box) -> T:
        """Return the part of this tensor that a tile covers.

        >>> ExternalTensor(np.zeros((4, 8))).tile(Box((2, 0), (2, 4))).array().shape
        (2, 4)
        """
        return self.sub(tile.offset, tile.shape)

    def as_const(self: T) -> T:
        """Return the same tensor, not to be written; there is no way back.

        >>> ExternalTensor(np.zeros(4)).as_const().const
        True
        """
        return self._windowed(self.window, const=True)

    def _windowed(self: T, window: Box, const: bool | None = None) -> T:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.window = window
        twin.const = self.const if const is None else const
        return twin

    def array(self) -> np.ndarray[Any, Any]:
        """Return the part of this tensor that is data as a NumPy view, read-only for a const tensor.

        >>> InternalTensor(np.arange(6, dtype=np.int8), (2, 3)).array().tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        inside = self.window.within(self.whole)
        if self.strides is None:
            raise LayoutError(f"layout {self.layout} has no NumPy view; import the tensor into a strided one")
        self.check_reach(inside)
        view: np.ndarray[Any, Any] = np.ndarray(
            inside.shape,
            self.dtype,
            self.memory.bytes,
            self.address - self.memory.address + self._byte_offset(inside) if not inside.empty else 0,
            self.strides,
        )
        view.flags.writeable = not self.const
        return view

    def read(self, *coords: int) -> Any:
        """Return one element, by its coordinates in this tensor.

        >>> int(InternalTensor(np.arange(6, dtype=np.int8), (2, 3)).read(1, 2))
        5
        """
        return self._cell(coords)[(0,) * len(coords)]

    def write(self, value: Any, *coords: int) -> None:
        """Set one element, by its coordinates in this tensor.

        >>> room = InternalTensor(np.zeros(6, np.int8), (2, 3))
        >>> room.write(7, 1, 2)
        >>> int(room.read(1, 2))
        7
        """
        if self.const:
            raise TransferError(f"{self!r} is const; write to a tensor that is not")
        self._cell(coords)[(0,) * len(coords)] = value

    def _cell(self, coords: tuple[int, ...]) -> np.ndarray[Any, Any]:
        if len(coords) != len(self.shape) or not all(0 <= c < n for c, n in zip(coords, self.shape, strict=True)):
            raise CoordinateError(f"element {coords} is outside a tensor of shape {self.shape}")
        cell = self.sub(coords, (1,) * len(coords))
        if cell.window.within(self.whole).empty:
            raise CoordinateError(f"element {coords} lies outside the whole of shape {self.whole}: it is padding")
        return cell.array()

    def _byte_offset(self, tile: Box) -> int:
        assert self.strides is not None
        return sum([start * step for start, step in zip(tile.offset, self.strides, strict=True)])

    def check_reach(self, tile: Box) -> None:
        """Raise a TransferError unless the memory holds a tile of the whole.

        >>> ExternalTensor(bytearray(10), (3, 4), dtype="int8").check_reach(Box((0, 0), (2, 4)))
        """
        if tile.empty or (self._holds_all and tile.within(self.whole) == tile):
            return
        low, high = self.reach(tile)
        if low < 0 or high > self.memory.nbytes:
            raise TransferError(
                f"tile {tile} of a tensor of shape {self.whole}, layout {self.layout}, {self.dtype}, offset"
                f" {self.offset} reaches bytes {low} to {high} of a memory of {self.memory.nbytes}; give it more memory"
                " or another layout"
            )

    @cached_property
    def _holds_all(self) -> bool:
        if 0 in self.whole:
            return True
        low, high = self.reach(Box((0,) * len(self.whole), self.whole))
        return low >= 0 and high <= self.memory.nbytes

    def reach(self, tile: Box) -> tuple[int, int]:
        """Return the first byte and the end of the bytes that a tile touches, counted from the start of the memory.

        >>> ExternalTensor(np.zeros((4, 8), np.int16)).reach(Box((1, 0), (2, 4)))
        (16, 40)
        """
        size = self.dtype.itemsize
        if self.strides is None:
            return self.offset * size, (self.offset + int(self.layout.cosize)) * size
        start = self.address - self.memory.address + self._byte_offset(tile)
        spans = [(n - 1) * step for n, step in zip(tile.shape, self.strides, strict=True)]
        return start + sum([s for s in spans if s < 0]), start + sum([s for s in spans if s > 0]) + size

    def __repr__(self) -> str:
        const = ", const=True" if self.const else ""
        return (
            f"{type(self).__name__}(memory={self.memory.nbytes} bytes, shape={self.whole}, layout={self.layout!r},"
            f" dtype={str(self.dtype)!r}, offset={self.offset}, window={self.window!r}{const})"
        )


class ExternalTensor(_Tensor):
    """A tensor where the data is: an array, or any memory with a shape, a layout and an element type.

    Places of the layout count elements, and `offset` moves all of them. Nothing is read or written until a transfer;
    bounds are checked then, since a window may reach beyond the edge.

    >>> ExternalTensor(np.zeros((4, 8), np.float32)).shape
    (4, 8)
    >>> ExternalTensor(bytearray(64), (3, 5), spaced_layout((3, 5), row_spacing=16), "uint8").array().strides
    (16, 1)
    """


class InternalTensor(_Tensor):
    """A tensor where work is done: what transfers import into and export from.

    >>> room = InternalTensor(bytearray(1024), (4, 8), dtype="float32")
    >>> room.array().shape
    (4, 8)
    """


def _seen(memory: Any) -> tuple[Buffer, Layout | None, np.dtype[Any]]:
    """Return a memory as bytes, and the layout and element type it describes itself."""
    if not isinstance(memory, np.ndarray):
        try:
            memory = np.frombuffer(memory, np.uint8)
        except (TypeError, ValueError, BufferError) as problem:
            raise LayoutError(
                f"a tensor needs an array or other memory, got {type(memory).__name__}: {problem}"
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


def _extents_of(layout: LayoutLike) -> tuple[int, ...]:
    return tuple([int(n) for n in product_each(layout.shape)])
