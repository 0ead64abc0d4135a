# SPDX-License-Identifier: Apache-2.0
"""`explain`: where an element is, with the arithmetic of each step; `explain_address`: the element at an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from math import prod
from textwrap import fill
from typing import Any, Protocol, overload, runtime_checkable

from .._dialect import unwrap
from .._text import format_extents
from ..display import Drawable
from ..errors import MemoryConfigError
from ..formats import PowerOfTwo
from ..layout import Coordinate, Layout, LayoutLike, leaf_coordinates, leaves, row_major
from .cores import CoreCoord, CoreLike
from .mesh import DeviceLike
from .paging import PageMap, interleaved_paging
from .shape import Shape
from .spec import TensorSpec, as_spec, device_address
from .where import ElementLocator, Where

# `OffsetExplanation`: where a layout, or a tensor in memory with one, has an element, step by step.


@dataclass(frozen=True, slots=True)
class OffsetExplanation:
    """Where an element of a `layout` is: its offset, and in storage the scalar and the byte.

    `start` is the first scalar of a tensor in its storage, and `itemsize` the bytes of a scalar; both are None for a
    layout alone, and a text of one may state `itemsize`.

    >>> from tilewright import row_major
    >>> explanation = OffsetExplanation(row_major(4, 8), (2, 5), start=100, itemsize=2)
    >>> print(explanation)
    element   (2, 5) of (4,8):(8,1)
    offset    21 = 2 x 8 + 5
    storage   scalar 121 = 100 + 21
    byte      242 = 121 x 2
    """

    layout: LayoutLike
    coordinate: tuple[Coordinate, ...]
    start: int | None = None
    itemsize: int | None = None

    @property
    def offset(self) -> int | Any:
        """The offset, or the address on named axes.

        >>> from tilewright import row_major
        >>> OffsetExplanation(row_major(4, 8), (2, 5)).offset
        21
        """
        return self.layout(*self.coordinate)

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps as pairs of a name and a description.

        >>> from tilewright import row_major
        >>> OffsetExplanation(row_major(4, 8), (2, 5)).steps()[-1]
        ('offset', '21 = 2 x 8 + 5')
        """
        at = ", ".join(map(str, self.coordinate))
        comma = "," if len(self.coordinate) == 1 else ""
        padding = "" if self.layout.valid(*self.coordinate) else ", which is padding"
        steps = [("element", f"({at}{comma}) of {self.layout}{padding}"), ("offset", self._format_offset())]
        if self.start is not None:
            scalar = self.start + self.offset
            sum_of = f" = {self.start} + {self.offset}" if self.start else ""
            steps.append(("storage", f"scalar {scalar}{sum_of}"))
        else:
            scalar = self.offset
        if self.itemsize is not None and isinstance(scalar, int):
            steps.append(("byte", f"{scalar * self.itemsize} = {scalar} x {self.itemsize}"))
        return steps

    def _format_offset(self) -> str:
        """Return the offset, with the sum it results from if the layout is strided."""
        offset = self.offset
        if not isinstance(self.layout, Layout) or self.layout.axes or self.layout.is_replicated:
            return str(offset)
        whole = self.coordinate[0] if len(self.coordinate) == 1 else self.coordinate
        numbers = leaf_coordinates(whole, self.layout.shape)
        terms = [str(self.layout.offset)] if self.layout.offset else []
        for c, stride in zip(numbers, leaves(self.layout.stride), strict=True):
            if c and stride:
                terms.append(str(c) if stride == 1 else f"{c} x {stride}")
        return f"{offset} = {' + '.join(terms)}" if len(terms) > 1 or "x" in "".join(terms) else str(offset)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of all steps.

        >>> from tilewright import row_major
        >>> OffsetExplanation(row_major(4, 8), (2, 5)).to_json()["offset"]
        21
        """
        offset = self.offset
        numbers = {"coordinate": list(self.coordinate), "offset": offset if isinstance(offset, int) else str(offset)}
        return numbers | {"start": self.start, "itemsize": self.itemsize}

    def __str__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self.steps())


# `TileExplanation`: which tiles of a tiler hold an element, and where in them.

_MAX_LISTED = 16  # tiles that are printed


@dataclass(frozen=True, slots=True)
class TileExplanation:
    """Where an element is: the tiles that hold it, as (number, coordinates in the grid, coordinate in the tile).

    `noun` names them if they are not tiles, such as devices.

    >>> from tilewright.tiling import Tiler
    >>> print(Tiler((7, 10), (3, 4), overlap=(0, 1)).explain_element((4, 6)))
    element   (4, 6) of 7 x 10
    tile      4 = (1, 1) of 3 x 3: element (1, 3)
    tile      5 = (1, 2) of 3 x 3: element (1, 0)
    """

    space: tuple[int, ...]
    grid: tuple[int, ...]
    coordinate: tuple[int, ...]
    tiles: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]
    noun: str = "tile"

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps as pairs of a name and a description.

        >>> from tilewright.tiling import Tiler
        >>> Tiler((7, 10), (3, 4)).explain_element((4, 5)).steps()[-1]
        ('tile', '4 = (1, 1) of 3 x 3: element (1, 1)')
        """
        grid = format_extents(self.grid)
        steps = [("element", f"{self.coordinate} of {format_extents(self.space)}")]
        steps += [(self.noun, f"{number} = {at} of {grid}: element {inside}") for number, at, inside in self.tiles]
        if not self.tiles:
            steps.append((self.noun, f"none: no {self.noun} covers it"))
        if len(self.tiles) > _MAX_LISTED:
            steps = [*steps[: _MAX_LISTED + 1], ("", f"and {len(self.tiles) - _MAX_LISTED} more {self.noun}s")]
        return steps

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data.

        >>> from tilewright.tiling import Tiler
        >>> Tiler((7, 10), (3, 4)).explain_element((4, 5)).to_json()["tiles"]
        [{'number': 4, 'at': [1, 1], 'inside': [1, 1]}]
        """
        tiles = [{"number": number, "at": list(at), "inside": list(inside)} for number, at, inside in self.tiles]
        return {"space": list(self.space), "coordinate": list(self.coordinate), f"{self.noun}s": tiles}

    def __str__(self) -> str:
        return "\n".join([f"{name:<10}{text}" for name, text in self.steps()])


@runtime_checkable
class Tiled(Protocol):
    """An object that knows which of its tiles hold an element, such as a tiler.

    >>> from tilewright.tiling import Tiler
    >>> isinstance(Tiler((7, 10), (3, 4)), Tiled)
    True
    """

    def explain_element(self, coordinate: Sequence[int]) -> TileExplanation:
        """Return which tiles hold the element at `coordinate`, and where in them."""
        ...


WIDTH = 80
_INDENT = 10


@dataclass(frozen=True, slots=True)
class Explanation(Drawable):
    """Where one element is, step by step from its coordinate to its byte, with the arithmetic.

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((4, 60, 90), "bfloat8_b", memory=block_sharded((8, 8)), chip="wormhole_n150")
    >>> print(explain(spec, (2, 33, 17)))
    element   (2, 33, 17) of [4, 60, 90]
    padded    to [4, 64, 96], of which 12.1 % is padding
    matrix    row 161 = 2 x 64 + 33, column 17, of 256 x 96
    tile      (5, 0) of 8 x 3: row 1, column 17
    face      1 of 4, 16 x 16 each: row 1, column 1
    page      15 of 24, 1088 bytes each: element 273
    value     byte 337 = 64 + 273, after the exponents
    exponent  byte 17, shared by the 16 elements (2, 33, 16) to (2, 33, 31)
    shard     15 = (5, 0) of 8 x 3, 32 x 32 each: page 0 of 1
    core      (0, 5), which is L1 bank 18
    address   1498385 (0x16dd11) = buffer 1498048 + page at 0 + byte 337
    exponent  1498065 (0x16dbd1) = buffer 1498048 + page at 0 + byte 17
    """

    spec: TensorSpec
    where: Where

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps as pairs of a name and a description.

        >>> explain(TensorSpec((4, 8), "int32", chip="n150"), (1, 2)).steps()[-1]
        ('address', '1048648 (0x100048) = buffer 1048640 + page at 0 + byte 8')
        """
        return [*self._tensor_steps(), *self._page_steps(), *self._chip_steps()]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of all steps.

        >>> explain(TensorSpec((4, 8), "int32", chip="n150"), (1, 2)).to_json()["address"]
        1048648
        """
        numbers = self.where._asdict()
        numbers |= {"core": list(self.where.core), "buffer_type": self.where.buffer_type.name.lower()}
        if self.spec.chip is None:
            numbers |= {"core": None, "bank": None}
        neighbours = self.neighbours
        return {
            **numbers,
            "address": self.where.address,
            "padded_shape": list(self.spec.padded_shape),
            "page_bytes": self.spec.page_bytes,
            "block": None if neighbours is None else [list(coordinate) for coordinate in neighbours],
        }

    @property
    def neighbours(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The first and last coordinate of the elements that share the exponent; None for scalar formats.

        >>> explain(TensorSpec((32, 32), "bfloat8_b", chip="n150"), (3, 5)).neighbours
        ((3, 0), (3, 15))
        """
        if not self.spec.dtype.has_blocks:
            return None
        return _block_corners(self.spec, self.where.page, self.where.element // self.spec.dtype.block)

    def __str__(self) -> str:
        return format_steps(self.steps())

    def _tensor_steps(self) -> Iterator[tuple[str, str]]:
        spec, where = self.spec, self.where
        yield "element", f"{_format_coordinate(where.coordinate)} of {list(spec.shape.logical)}"
        if spec.padded_shape != spec.shape.logical:
            padding = 100 - 100 * spec.shape.logical_volume() / max(1, prod(spec.padded_shape))
            yield "padded", f"to {list(spec.padded_shape)}, of which {padding:.3g} % is padding"
        rows, columns = where.matrix_shape
        yield "matrix", f"row {self._format_row()}, column {where.column}, of {rows} x {columns}"
        if where.tile is not None and where.in_tile is not None and where.in_face is not None:
            (high, wide), face = spec.tile.shape, spec.tile.face_shape
            yield "tile", f"{where.tile} of {rows // high} x {columns // wide}: {_format_cell(where.in_tile)}"
            turned = ", stored down its columns" if spec.tile.transpose else ""
            faces = f"{spec.tile.num_faces}, {face[0]} x {face[1]} each{turned}"
            yield "face", f"{where.face} of {faces}: {_format_cell(where.in_face)}"

    def _format_row(self) -> str:
        """Return the row of the matrix, with the sum it results from."""
        extents = self.spec.padded_shape[len(self.spec.padded_shape) - len(self.where.coordinate) : -1]
        terms = []
        for d, c in enumerate(self.where.coordinate[:-1]):
            below = prod(extents[d + 1 :])
            if c:
                terms.append(f"{c} x {below}" if below != 1 else str(c))
        return f"{self.where.row} = {' + '.join(terms)}" if len(terms) > 1 else str(self.where.row)

    def _page_steps(self) -> Iterator[tuple[str, str]]:
        spec, where = self.spec, self.where
        yield "page", f"{where.page} of {spec.num_pages}, {spec.page_bytes} bytes each: element {where.element}"
        if not spec.dtype.has_blocks:
            size = spec.dtype.itemsize
            yield "value", f"byte {where.byte} = {where.element} x {size}" if size > 1 else f"byte {where.byte}"
            return
        bits, start = spec.dtype.bits, spec.data_offset
        if bits == 8:
            yield "value", f"byte {where.byte} = {start} + {where.element}, after the {scale_name(spec)}s"
        else:
            last = where.bit + bits - 1
            into = f"{last}" if last < 8 else f"{last - 8} of the next byte"
            yield "value", f"byte {where.byte}, bits {where.bit} to {into}: {bits} bits each, from byte {start} on"
        block, ends = where.element // spec.dtype.block, self.neighbours
        assert ends is not None  # it is a block format
        shared = (
            f"shared by the {spec.dtype.block} elements {_format_coordinate(ends[0])} to {_format_coordinate(ends[1])}"
        )
        yield scale_name(spec), f"byte {block}, {shared}"

    def _chip_steps(self) -> Iterator[tuple[str, str]]:
        spec, where = self.spec, self.where
        if where.shard is not None and spec.memory.sharding is not None:
            shards = f"{format_extents(spec.paging.shards)}, {format_extents(spec.memory.sharding.shape)} each"
            in_shard = f"page {where.page_in_shard} of {spec.paging.shard_pages}"
            yield "shard", f"{where.shard} = {_format_coordinate(where.shard_coordinate or ())} of {shards}: {in_shard}"
        if spec.chip is None:
            yield "bank", "depends on the chip; here pages follow one another"
        elif where.buffer_type.is_l1:
            yield "core", f"{where.core}, which is {where.buffer_type} bank {where.bank}"
        else:
            yield "bank", f"{where.bank} of the {spec.known_chip.banks(where.buffer_type)} banks of {where.buffer_type}"
        yield "address", self._format_address(where.address, where.byte)
        if where.exponent is not None:
            yield scale_name(spec), self._format_address(where.exponent, where.element // spec.dtype.block)

    def _format_address(self, address: int, byte: int) -> str:
        """Return an address with the sum it results from."""
        start = self.where.offset - self.where.byte
        return f"{address} ({address:#x}) = buffer {self.where.base} + page at {start} + byte {byte}"


@dataclass(frozen=True, slots=True)
class AddressContent:
    """The content of an address: "data", "padding", an "exponent", a "gap" between or inside pages, or "nothing".

    `coordinate` belongs to the element, or to the first element of the block of an exponent; `last` is the last one.

    >>> spec = TensorSpec((60, 90), "bfloat8_b", memory="l1", chip="n150")
    >>> print(explain_address(spec, 3, spec.address_on_empty_chip + 5))
    the exponent of (37, 0) to (37, 15): page 3, byte 5
    """

    kind: str
    page: int | None = None
    byte: int | None = None
    coordinate: tuple[int, ...] | None = None
    last: tuple[int, ...] | None = None
    is_data: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict.

        >>> explain_address(TensorSpec((4, 8), "int32", chip="n150"), 1, 1048648).to_json()["coordinate"]
        (1, 2)
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        if self.kind == "nothing":
            return "nothing of this tensor"
        where = f"page {self.page}, byte {self.byte}"
        if self.kind == "gap":
            return f"a gap: {where} has no element" if self.page is not None else "a gap: no page is here"
        at = _format_coordinate(self.coordinate or ())
        if self.kind == "exponent":
            return f"the exponent of {at} to {_format_coordinate(self.last or ())}: {where}" + (
                "" if self.is_data else ", all of them padding"
            )
        return f"element {at}: {where}" if self.is_data else f"padding, at the padded coordinate {at}: {where}"


@runtime_checkable
class Stored(Protocol):
    """A tensor of a file, which knows where its elements are: in the file, and on the devices that share it.

    >>> isinstance(TensorSpec((4, 4)), Stored)
    False
    """

    def explain_stored(
        self, coordinate: tuple[int, ...], base: int | None = None, device: DeviceLike | None = None
    ) -> Explanation:
        """Return where the element at `coordinate` is, in the part of a `device` if one is given."""
        ...


@overload
def explain(spec: TensorSpec, coordinate: Iterable[int], base: int | None = None) -> Explanation: ...
@overload
def explain(spec: LayoutLike, coordinate: Iterable[Coordinate], base: int | None = None) -> OffsetExplanation: ...
@overload
def explain(spec: Tiled, coordinate: Iterable[int], base: int | None = None) -> TileExplanation: ...
@overload
def explain(
    spec: Stored, coordinate: Iterable[int], base: int | None = None, *, device: DeviceLike | None = None
) -> Explanation: ...
@overload
def explain(
    spec: object, coordinate: Iterable[Coordinate], base: int | None = None
) -> Explanation | OffsetExplanation | TileExplanation: ...
def explain(
    spec: Any, coordinate: Any, base: int | None = None, *, device: DeviceLike | None = None
) -> Explanation | OffsetExplanation | TileExplanation:
    """Return where the element at `coordinate` is, step by step, in a buffer at address `base`.

    `spec` is a `TensorSpec`, or a tensor, also of a dialect. The address is by default the tensor's if it is on
    a device, and otherwise the first one of an empty chip. Without a chip, pages follow one another from `base`, or 0.
    For a layout, or a tensor in memory with a layout, the offset is explained; for a shape, the offset in its padded
    rows; of a tiler, the tiles that hold the element. Of a tensor that `open_tensors` or `read_tensorbin` returned, the
    devices that share it are explained as well, and in a file its value and its bytes; `device` chooses one device, by
    coordinate or number, and `coordinate` then counts in its part.

    >>> print(explain(TensorSpec((60, 90), "bfloat16", "tile", chip="wormhole_n150"), (33, 17)))
    element   (33, 17) of [60, 90]
    padded    to [64, 96], of which 12.1 % is padding
    matrix    row 33, column 17, of 64 x 96
    tile      (1, 0) of 2 x 3: row 1, column 17
    face      1 of 4, 16 x 16 each: row 1, column 1
    page      3 of 6, 2048 bytes each: element 273
    value     byte 546 = 273 x 2
    bank      3 of the 12 banks of DRAM
    address   1049186 (0x100262) = buffer 1048640 + page at 0 + byte 546
    """
    native = unwrap(spec)
    if isinstance(native, Stored):
        return native.explain_stored(tuple(coordinate), base, device)
    if device is not None:
        raise MemoryConfigError(f"device={device!r} is for tensors in files, which a mesh may share; leave it out")
    if isinstance(native, Tiled):
        if base is not None:
            raise MemoryConfigError(f"a tiler has tiles, not addresses; leave out base={base}")
        return native.explain_element(tuple(coordinate))
    if isinstance(native, Shape):
        native = row_major(*native.padded)
    layout = native
    for name in ("memory_layout", "layout"):  # of a parsed text, the layout of shared memory
        layout = layout if isinstance(layout, LayoutLike) else getattr(native, name, None)
    if isinstance(layout, LayoutLike):
        if base is not None:
            raise MemoryConfigError(f"a layout has offsets, not addresses; leave out base={base}")
        start, stated = getattr(native, "offset", None), getattr(native, "itemsize", None)
        itemsize = getattr(getattr(native, "dtype", None), "itemsize", stated)
        return OffsetExplanation(layout, tuple(coordinate), None if native is layout else start, itemsize)
    placed, at = as_spec(spec), tuple([int(c) for c in coordinate])
    if placed.chip is None and not placed.memory.is_sharded:
        paging = interleaved_paging(placed.num_pages, (CoreCoord(0, 0),))
        pages = PageMap(paging, (0,), placed.page_bytes, placed.axis)
        return Explanation(placed, ElementLocator(placed, pages).locate(at, base or 0))
    return Explanation(placed, placed.where(*at, base=device_address(spec) if base is None else base))


def explain_address(
    spec: TensorSpec, place: CoreLike | int, address: int, bit: int = 0, base: int | None = None
) -> AddressContent:
    """Return the content of an `address` of `place`, core (x, y) or bank: an element, padding, an exponent, or nothing.

    `spec` is the tensor's spec, `bit` the bit in the byte, and `base` the address of the buffer, by default the address
    on an empty chip.

    >>> explain_address(TensorSpec((4, 8), "int32", chip="n150"), 1, 1048648).coordinate
    (1, 2)
    """
    if not 0 <= bit < 8:
        raise MemoryConfigError(f"expected a bit from 0 to 7, got {bit}")
    location = spec.locator.page_at(place, address, spec.address_on_empty_chip if base is None else base)
    if location is None:
        return AddressContent("nothing")
    page, byte = location
    if page is None:
        return AddressContent("gap")
    element = spec.element_in_page(byte, bit)
    if element is not None:
        coordinate, is_data = spec.coordinate_of(page, element)
        lead = len(coordinate) - spec.shape.rank if is_data else 0
        return AddressContent("data" if is_data else "padding", page, byte, coordinate[lead:], None, is_data)
    if not spec.dtype.has_blocks or byte >= spec.dtype.sections(spec.page_elements).scales:
        return AddressContent("gap", page, byte)
    first, last = _block_corners(spec, page, byte)
    block = spec.dtype.block
    is_data = any(spec.coordinate_of(page, byte * block + k)[1] for k in range(block))
    return AddressContent("exponent", page, byte, first, last, is_data)


def scale_name(spec: TensorSpec) -> str:
    """Return the name of the shared scales of `spec` in a block format: "exponent" for powers of two, or "scale".

    >>> scale_name(TensorSpec((32, 32), "bfloat8_b")), scale_name(TensorSpec((32, 32), "nvfp4"))
    ('exponent', 'scale')
    """
    return "exponent" if isinstance(getattr(spec.dtype, "scale", None), PowerOfTwo) else "scale"


def _block_corners(spec: TensorSpec, page: int, block: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the coordinates of the first and the last element of a block of a page."""
    size = spec.dtype.block
    ends = [spec.coordinate_of(page, block * size + k)[0] for k in (0, size - 1)]
    lead = len(spec.padded_shape) - spec.shape.rank
    return ends[0][lead:], ends[1][lead:]


def _format_coordinate(coordinate: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, coordinate))})"


def _format_cell(cell: tuple[int, int]) -> str:
    return f"row {cell[0]}, column {cell[1]}"


def format_steps(steps: list[tuple[str, str]]) -> str:
    """Return `steps`, names and descriptions, in two columns of at most 80 characters.

    >>> print(format_steps([("tile", "(5, 0)")]))
    tile      (5, 0)
    """
    under = " " * _INDENT
    return "\n".join(
        fill(text, WIDTH, initial_indent=f"{name:<{_INDENT}}", subsequent_indent=under, break_long_words=False)
        for name, text in steps
    )
