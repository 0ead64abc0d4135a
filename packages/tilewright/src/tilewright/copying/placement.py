# SPDX-License-Identifier: Apache-2.0
"""`Placement`: where the elements of a tensor are in memory, and their number format."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ..errors import FormatError, LayoutError, TransferError
from ..formats import Format, FormatLike, Number, ScalarFormat, cast, fit_values, format_of, scalar_format_of
from ..layout import (
    ComposedLayout,
    Layout,
    LayoutLike,
    PagedLayout,
    make_layout,
    product_each,
    strided_leaves,
)

Array: TypeAlias = "np.ndarray[Any, Any]"


class Strided(Protocol):
    """An array of any library, on the host or a device, with strides in bytes."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def strides(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...


# `LoopNest`: one loop nest of a copy plan, in bytes. Engines run loop nests and know nothing else.

Operation = Literal["copy", "fill", "pack", "unpack", "clear"]

# a mode of one side: its leaves as (extent, stride), fastest first; a stride of None is not strided
Mode = Sequence[tuple[int, int | None]]
# (start, count) of the digit of each leaf, fastest first
DigitBox = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TabulatedModes:
    """The digits with offsets from a table: for each mode of the domain, (radix, start, count) of those digits.

    >>> TabulatedModes((((1, 0, 5),), ())).count
    5
    """

    digits: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def count(self) -> int:
        """The number of entries of the table.

        >>> TabulatedModes((((1, 0, 5), (5, 0, 7)), ((1, 2, 1),))).count
        35
        """
        return prod(count for mode in self.digits for _, _, count in mode)


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A loop nest: extents, and for each loop its stride in bytes in the source, the target and the scale section.

    `copy` copies and converts elements, `fill` writes the padding value, `pack` and `unpack` process whole blocks:
    `element_offsets` are the byte offsets of a block's elements on the scalar side, and `data_mask` marks which of them
    are data. `clear` writes zero bytes into the gap between the sections of a tile.

    >>> LoopNest("copy", (4, 8), (32, 4), (4, 16)).elements
    32
    """

    operation: Operation
    extents: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    scale: tuple[int, ...] = ()
    source_offset: int = 0
    target_offset: int = 0
    scale_offset: int = 0
    element_offsets: tuple[int, ...] = (0,)
    data_mask: int = 1
    tabulated: TabulatedModes | None = None

    @property
    def elements(self) -> int:
        """The number of elements that are copied or filled.

        >>> LoopNest("fill", (3, 5), (0, 0), (20, 4)).elements
        15
        """
        return prod(self.extents) * self.data_mask.bit_count() * (self.tabulated.count if self.tabulated else 1)

    def canonicalize(self) -> LoopNest:
        """Return the same nest without unit loops, sorted by target stride, with adjacent loops merged.

        >>> nest = LoopNest("copy", (8, 1, 4), (4, 0, 32), (4, 0, 32)).canonicalize()
        >>> nest.extents, nest.source, nest.target
        ((32,), (4,), (4,))
        """
        scale = self.scale or (0,) * len(self.extents)
        loops = [loop for loop in zip(self.extents, self.source, self.target, scale, strict=True) if loop[0] != 1]
        loops.sort(key=lambda loop: (-abs(loop[2]), -abs(loop[1])))
        merged: list[tuple[int, ...]] = []
        for extent, *strides in loops:
            if merged and all(outer == inner * extent for outer, inner in zip(merged[-1][1:], strides, strict=True)):
                merged[-1] = (merged[-1][0] * extent, *strides)
            else:
                merged.append((extent, *strides))
        extents, source, target, scales = zip(*merged, strict=True) if merged else ((), (), (), ())
        return replace(self, extents=extents, source=source, target=target, scale=scales if self.scale else ())


@dataclass(frozen=True, slots=True)
class Leaf:
    """A piece of a mode: its extent, its stride in the index of the mode (radix), and its stride on each side.

    >>> Leaf(mode=0, radix=16, extent=2, strides=(512, 256)).is_strided
    True
    """

    mode: int
    radix: int
    extent: int
    strides: tuple[int | None, ...]

    @property
    def is_strided(self) -> bool:
        """Whether every side has a stride for this leaf.

        >>> Leaf(0, 1, 5, (1, None)).is_strided
        False
        """
        return None not in self.strides


def common_leaves(mode: int, sides: Sequence[Mode], extent: int) -> list[Leaf]:
    """Return the leaves of one mode of the domain, split wherever a side is split, up to an extent.

    The outermost leaf of every side is extended as far as needed.

    >>> [(leaf.extent, leaf.strides) for leaf in common_leaves(0, [[(100, 70)], [(16, 16), (2, 512), (4, 3072)]], 100)]
    [(16, (70, 16)), (2, (1120, 512)), (4, (2240, 3072))]
    """
    queues = [[leaf for leaf in side if leaf[0] != 1] or [(1, 0)] for side in sides]
    rest = [list(queue) for queue in queues]
    leaves = []
    radix = 1
    while radix < extent:
        ends = [None if len(queue) == 1 else queue[0][0] for queue in rest]
        bounded = [end for end in ends if end is not None]
        size = min(bounded) if bounded else -(-extent // radix)
        if any(end % size for end in bounded):
            leaves.append(Leaf(mode, radix, -(-extent // radix), (None,) * len(sides)))
            return leaves
        strides = tuple([queue[0][1] for queue in rest])
        leaves.append(Leaf(mode, radix, size, strides))
        radix *= size
        for queue, end in zip(rest, ends, strict=True):
            n, stride = queue[0]
            if end == size:
                queue.pop(0)
            else:
                queue[0] = (n // size if end is not None else n, None if stride is None else stride * size)
    return leaves


def prefix_boxes(extents: Sequence[int], limit: int) -> list[DigitBox]:
    """Return boxes of digits, as (start, count) per leaf, that cover the indices below `limit`.

    >>> prefix_boxes([16, 2, 4], 100)
    [[(0, 16), (0, 2), (0, 3)], [(0, 4), (0, 1), (3, 1)]]
    """
    return _boxes_beside(extents, limit, below=True) if limit else []


def suffix_boxes(extents: Sequence[int], limit: int) -> list[DigitBox]:
    """Return boxes of digits, as (start, count) per leaf, that cover the indices from `limit` on.

    >>> suffix_boxes([16, 2, 4], 100)
    [[(0, 16), (1, 1), (3, 1)], [(4, 12), (0, 1), (3, 1)]]
    """
    return _boxes_beside(extents, limit, below=False) if extents or not limit else []


def _boxes_beside(extents: Sequence[int], limit: int, below: bool) -> list[DigitBox]:
    """Return, for each digit of `limit` from the outermost on, the box of smaller or of larger digits beside it."""
    if not extents:
        return [[]]
    boxes = []
    fixed: DigitBox = []
    for k in reversed(range(len(extents))):
        digit, limit = divmod(limit, prod(extents[:k]))
        start, end = (0, digit) if below else (digit + bool(limit), extents[k])
        if start < end:
            boxes.append([*[(0, n) for n in extents[:k]], (start, end - start), *fixed])
        if not limit:
            break
        fixed = [(digit, 1), *fixed]
    return boxes


@dataclass(frozen=True, init=False, eq=False)
class Placement:
    """A `layout` from coordinates to offsets in elements, their `format`, and the value `fill` for padding.

    Offsets of a block format count elements in physical order, in tiles of `tile_elements`, each with one scale
    section; a scalar format ignores `tile_elements`.

    >>> from tilewright import row_major
    >>> Placement(row_major(4, 8), "float32").nbytes
    128
    """

    layout: LayoutLike
    format: Format
    fill: Number
    tile_elements: int

    def __init__(self, layout: LayoutLike, format: FormatLike, fill: Number = 0, tile_elements: int = 0) -> None:  # noqa: A002
        number_format = format_of(format)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "format", number_format)
        object.__setattr__(self, "fill", fill)
        object.__setattr__(self, "tile_elements", tile_elements if number_format.has_blocks else 0)
        self._validate()

    def _validate(self) -> None:
        if not isinstance(self.layout, LayoutLike):
            raise TypeError(f"a placement needs a layout, got {type(self.layout).__name__} {self.layout!r}")
        if isinstance(self.fill, (str, bytes)):
            raise TypeError(f"expected a number to fill padding with, got {self.fill!r}")
        if self.layout.axes:
            raise LayoutError(
                f"{self.layout} maps to named axes {', '.join(self.layout.axes)}, but a placement needs plain offsets;"
                " select one axis with .project(axis)"
            )
        if getattr(self.layout, "replicas", ()):
            raise LayoutError(f"{self.layout} has replicas; copy to each replica separately")
        if self.format.has_blocks:
            block = self.format.block
            if self.tile_elements < 1 or self.tile_elements % block:
                raise LayoutError(
                    f"{self.format.name} needs tile_elements to be a multiple of its block, {block}, such as 1024 for a"
                    f" 32 x 32 tile; got {self.tile_elements}"
                )

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """The key that placements are compared by, including the padding and the sign of a zero fill.

        >>> from tilewright import Layout
        >>> Placement(Layout(8), "float32", fill=0.0) == Placement(Layout(8), "float32", fill=-0.0)
        False
        """
        return (self.layout, self.format, repr(self.fill), self.tile_elements)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Placement) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The size of each mode, padding included.

        >>> from tilewright import pad, Layout
        >>> Placement(pad(Layout(5), 8), "int8").extents
        (8,)
        """
        return product_each(self.layout.shape)

    @cached_property
    def data_extents(self) -> tuple[int, ...]:
        """The extent of the data in each mode.

        >>> from tilewright import pad, Layout
        >>> Placement(pad(Layout(5), 8), "int8").data_extents
        (5,)
        """
        if isinstance(self.layout, Layout):
            return self.layout.logical_shape
        if not _has_guards(self.layout):
            return self.extents
        if isinstance(self.layout, ComposedLayout) and isinstance(self.layout.outer, PagedLayout):
            inner = self.layout.inner
            if isinstance(inner, Layout) and inner.offset >= 0 and inner.cosize <= self.layout.outer.size:
                return inner.logical_shape  # all pages are data
        return _data_extents(self.layout)

    @cached_property
    def modes(self) -> list[Mode]:
        """The (extent, stride) pairs of each mode, fastest first; a stride is None if it is not strided.

        >>> from tilewright import row_major
        >>> Placement(row_major(4, 8), "int8").modes
        [[(4, 8)], [(8, 1)]]
        """
        return list(strided_leaves(self.layout))

    @property
    def itemsize(self) -> int:
        """The size in bytes of one element of a scalar format.

        >>> from tilewright import Layout
        >>> Placement(Layout(4), "bfloat16").itemsize
        2
        """
        if self.format.has_blocks:
            raise LayoutError(f"{self.format.name} is a block format: a single element has no bytes of its own")
        return self.format.itemsize

    @cached_property
    def origin(self) -> int:
        """The offset of the first coordinate.

        >>> from tilewright import Layout
        >>> Placement(Layout(4, -1) + 3, "int8").origin
        3
        """
        layout = self.layout
        return int(layout.offset if isinstance(layout, Layout) else layout.extended(*([0] * len(self.extents))))

    @cached_property
    def cosize(self) -> int:
        """The number of elements of the smallest buffer that holds the placement.

        >>> from tilewright import Layout
        >>> Placement(Layout(4, 2), "int8").cosize
        7
        """
        return int(self.layout.cosize)

    @cached_property
    def nbytes(self) -> int:
        """The size in bytes of the smallest buffer that holds the placement.

        >>> from tilewright import row_major
        >>> Placement(row_major(32, 32), "bfloat8_b", tile_elements=1024).nbytes
        1088
        """
        if not self.format.has_blocks:
            return self.cosize * self.format.itemsize
        return -(-self.cosize // self.tile_elements) * self.format.bytes_per_tile(self.tile_elements)

    def table_offsets(self, tabulated: TabulatedModes) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the offsets in elements of all combinations of `tabulated` digits, with all other digits at 0.

        >>> from tilewright import Layout
        >>> Placement(Layout((4, 3), (3, 1)), "int8").table_offsets(TabulatedModes(((), ((1, 0, 3),)))).tolist()
        [0, 1, 2]
        """
        spans = [(radix, start, count) for mode in tabulated.digits for radix, start, count in mode]
        grid = np.indices([count for _, _, count in spans], dtype=np.int64).reshape(len(spans), -1)
        indices = []
        k = 0
        for mode in tabulated.digits:
            index = np.zeros(grid.shape[1], dtype=np.int64)
            for radix, start, _ in mode:
                index += (grid[k] + start) * radix
                k += 1
            indices.append(index)
        offsets = self.layout.extended(*indices) if len(indices) > 1 else self.layout.extended(indices[0])
        return np.broadcast_to(np.asarray(offsets, dtype=np.int64), grid.shape[1:])


def fill_value(source: Placement, target: Placement) -> Array:
    """Return the fill value of `target` as one element: of its format, or float32 if it is a block format.

    The value is converted to the format of the source first, and then like the data.

    >>> from tilewright import Layout
    >>> fill_value(Placement(Layout(4), "float32"), Placement(Layout(4), "int32", fill=-3.7)).item()
    -3
    """
    value = np.asarray(target.fill)
    if not source.format.has_blocks:
        value = cast(value, source.format)
    return cast(value, target.format.value_format)


def validate_fill(source: Placement, target: Placement) -> None:
    """Raise unless the fill value of `target` is a value of the source's format: it is converted like the data.

    >>> from tilewright import Layout
    >>> validate_fill(Placement(Layout(4), "float32"), Placement(Layout(4), "int32", fill=-3.7))
    """
    if isinstance(target.fill, int) and not target.fill:
        return
    try:
        fit_values(target.fill, source.format.value_format)
    except FormatError as problem:
        raise FormatError(f"padding is converted like the data, from {source.format}: {problem}") from None


def _has_guards(layout: object) -> bool:
    if isinstance(layout, ComposedLayout):
        return _has_guards(layout.outer) or _has_guards(layout.inner)
    return bool(getattr(layout, "guards", ()))


def _data_extents(layout: LayoutLike) -> tuple[int, ...]:
    """Return the extent of the data in each mode of a composition that is padded at the end of its modes."""
    mask = layout._valid_table()
    if mask is None:
        return product_each(layout.shape)
    extents = tuple([int(mask.any(axis=tuple(j for j in range(mask.ndim) if j != k)).sum()) for k in range(mask.ndim)])
    inside = tuple([slice(0, n) for n in extents])
    if int(mask.sum()) != prod(extents) or not mask[inside].all():
        raise LayoutError(
            f"{layout} has padding that crosses modes, so its data has no extent per mode; pad each mode separately"
        )
    return extents


# Host arrays as memory: address ranges, exactly which bytes elements occupy, and their placement.

CACHE_LINE = 64

MAX_MODES = 32  # dimensions of an array in every version of NumPy
MAX_WORK: Any = 10_000  # candidates NumPy tries before it gives up; its stubs know only 0 and -1


def strided_range(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return the lowest byte of strided elements, and one past the highest, relative to element 0; (0, 0) for none.

    >>> strided_range((4, 8), (-32, 4), 4), strided_range((4, 0), (32, 4), 4)
    ((-96, 32), (0, 0))
    """
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum([stride for stride in reach if stride < 0]), sum([stride for stride in reach if stride > 0]) + itemsize


@dataclass(frozen=True, slots=True)
class Buffer:
    """The memory of an array: its bytes from the lowest to the highest address, and the array that owns it.

    >>> Buffer.of(np.zeros((4, 8), dtype=np.float32)).nbytes
    128
    """

    address: int
    nbytes: int
    owner: Any
    writeable: bool

    @classmethod
    def of(cls, array: Array) -> Buffer:
        """Return the memory of an array.

        >>> Buffer.of(np.arange(8, dtype=np.int8)[::-2]).nbytes
        7
        """
        start = address_of(array)
        if array.size == 0 or array.flags.c_contiguous:
            return cls(start, array.nbytes, array, array.flags.writeable)
        low, high = strided_range(array.shape, array.strides, array.itemsize)
        return cls(start + low, high - low, array, array.flags.writeable)

    @property
    def bytes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The memory as an array of bytes, without a copy.

        >>> Buffer.of(np.array([258], dtype=np.int16)).bytes.tolist()
        [2, 1]
        """
        if self.nbytes == 0:
            return np.zeros(0, dtype=np.uint8)
        memory: Any = (ctypes.c_uint8 * self.nbytes).from_address(self.address)
        view: np.ndarray[Any, np.dtype[np.uint8]] = np.frombuffer(memory, dtype=np.uint8)
        view.flags.writeable = self.writeable
        return view

    def contains(self, address: int) -> bool:
        """Return whether an address is inside this memory.

        >>> here = Buffer.of(np.zeros(4, np.int8))
        >>> here.contains(here.address + 3), here.contains(here.address + 4)
        (True, False)
        """
        return self.address <= address < self.address + self.nbytes

    def overlaps(self, other: Buffer) -> bool:
        """Return whether the address ranges of two buffers overlap, gaps between elements included.

        >>> a = np.zeros(8)
        >>> Buffer.of(a[:5]).overlaps(Buffer.of(a[4:])), Buffer.of(a[:4]).overlaps(Buffer.of(a[4:]))
        (True, False)
        """
        if not self.nbytes or not other.nbytes:
            return False
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


def native_format(dtype: np.dtype[Any]) -> ScalarFormat:
    """Return the format of a dtype in native byte order; raise for any other byte order.

    >>> native_format(np.dtype("int16")).name
    'int16'
    """
    if not dtype.isnative:
        raise FormatError(
            f"{dtype} is not in native byte order; convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    return scalar_format_of(dtype)


def aligned_empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an uninitialised array that starts at a cache line, so that engines can stream whole lines to it.

    >>> aligned_empty((3, 5), np.float32).ctypes.data % 64
    0
    """
    return aligned_memory(shape if isinstance(shape, tuple) else (shape,), np.dtype(dtype))[0]


def aligned_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Return an uninitialised array that starts at a cache line, and its address.

    >>> array, address = aligned_memory((2, 3), np.dtype(np.int8))
    >>> address % CACHE_LINE == 0, address == array.ctypes.data
    (True, True)
    """
    memory = np.empty(prod(shape) * dtype.itemsize + CACHE_LINE, dtype=np.uint8)
    start = address_of(memory)
    offset = -start % CACHE_LINE
    return np.ndarray(shape, dtype, memory, offset), start + offset


def address_of(array: Array) -> int:
    """Return the address of the first element of an array.

    >>> values = np.arange(4)
    >>> address_of(values[1:]) - address_of(values)
    8
    """
    try:
        return ctypes.addressof(_first_byte(array))  # in a fifth of the time of the other ways
    except (TypeError, ValueError, BufferError):  # it is not contiguous, not writeable, empty, or of another dtype
        address: int = array.__array_interface__["data"][0]
        return address


_first_byte: Any = ctypes.c_char.from_buffer  # NumPy's stubs do not declare arrays as buffers


def placement_of(array: Strided, fill: Number = 0) -> Placement:
    """Return the placement of an array in its memory, with one mode per dimension; padding gets the value `fill`.

    >>> placement_of(np.zeros((4, 8), dtype=np.int8).T).layout
    Layout((8, 4), (1, 8))
    """
    unfilled = _unfilled_placement(array.shape, array.strides, array.dtype)
    return unfilled if fill is unfilled.fill else Placement(unfilled.layout, unfilled.format, fill)


@lru_cache(maxsize=1024)
def _unfilled_placement(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> Placement:
    """Return the placement of all arrays with this shape, strides and dtype."""
    element = native_format(dtype)
    if any(stride % dtype.itemsize for n, stride in zip(shape, strides, strict=True) if n > 1):
        raise LayoutError(
            f"strides {strides} are not multiples of the element size {dtype.itemsize}; copy the array with"
            " np.ascontiguousarray first"
        )
    in_elements = tuple([stride // dtype.itemsize for stride in strides])
    low, _ = strided_range(shape, in_elements, 1)
    layout: Layout = make_layout(tuple(map(int, shape)), in_elements, -low)
    return Placement(layout, element)


class Footprint(NamedTuple):
    """The bytes of elements of one size at regular strides: the first address, the shape, and the strides in bytes.

    >>> left, right = Footprint(0, (4, 4), (64, 8), 8), Footprint(32, (4, 4), (64, 8), 8)
    >>> left.overlaps(right), left.overlaps(Footprint(31, (1,), (1,), 1))
    (False, True)
    """

    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def overlaps(self, other: Footprint) -> bool:
        """Return whether two footprints have a byte in common; also True if that is too hard to decide."""
        low, high = self._address_range()
        other_low, other_high = other._address_range()
        if max(low, other_low) >= min(high, other_high):
            return False
        if max(len(self.shape), len(other.shape)) > MAX_MODES:
            return True
        origin = 1 - min(low, other_low)  # NumPy only compares addresses, but must not see address 0
        try:
            return bool(np.shares_memory(self._as_array(origin), other._as_array(origin), max_work=MAX_WORK))
        except np.exceptions.TooHardError:
            return True

    def _address_range(self) -> tuple[int, int]:
        """Return the lowest address and one past the highest; both are equal if there are no elements."""
        low, high = strided_range(self.shape, self.strides, self.itemsize)
        return self.first + low, self.first + high

    def _as_array(self, origin: int) -> Any:
        """Return an array with these addresses that is never read."""
        interface = {
            "data": (self.first + origin, True),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": f"|V{self.itemsize}",
            "version": 3,
        }
        return np.asarray(SimpleNamespace(__array_interface__=interface))


def dense_footprint(start: int, nbytes: int) -> Footprint:
    """Return the footprint of `nbytes` bytes from address `start` on.

    >>> (
    ...     dense_footprint(100, 8).overlaps(dense_footprint(107, 1)),
    ...     dense_footprint(100, 8).overlaps(dense_footprint(108, 1)),
    ... )
    (True, False)
    """
    return Footprint(start, (nbytes,), (1,), 1)


def footprint_of(placement: Placement, start: int) -> Footprint:
    """Return the bytes that a placement occupies in memory from address `start` on; all bytes if it is not strided.

    >>> from tilewright import Layout
    >>> footprint_of(Placement(Layout((4, 8), (16, 1)), "float32"), 1000)
    Footprint(first=1000, shape=(4, 8), strides=(64, 4), itemsize=4)
    """
    if not isinstance(placement.layout, Layout) or placement.format.has_blocks:
        return dense_footprint(start, placement.nbytes)
    extents, strides = placement.layout.canonical_modes()
    size = placement.itemsize
    pairs = [(int(n), int(stride) * size) for n, stride in zip(extents, strides, strict=True)]
    return Footprint(
        start + placement.origin * size, tuple([n for n, _ in pairs]), tuple([stride for _, stride in pairs]), size
    )


def overlap_error() -> TransferError:
    """Return the error for a copy with overlapping source and target.

    >>> str(overlap_error())[:30]
    'source and target share memory'
    """
    return TransferError(
        "source and target share memory, so the copy would overwrite data it has yet to read; copy the source first"
    )
