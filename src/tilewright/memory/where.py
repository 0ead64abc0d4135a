# SPDX-License-Identifier: Apache-2.0
"""`Where`: every step on the way of an element from its coordinate to its byte, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import CoordinateError, MemoryConfigError
from ..formats import BlockFormat
from ..layout.coordinate import index_to_coordinate
from .cores import CoreCoord
from .kinds import BufferType, TensorLayout

if TYPE_CHECKING:
    from .spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Where:
    """The way of one element: matrix, tile and face, page, shard, core and bank, address.

    Steps that a tensor does not have are None: tiles of a row-major tensor, shards of an interleaved one, the exponent
    of a scalar format. `bit` is where the element starts in its byte, for formats with several elements in a byte.

    >>> from tilewright import TensorSpec
    >>> spec = TensorSpec((1, 4, 60, 90), "int32", "tile", chip="wormhole_n150")
    >>> print(spec.where(0, 2, 33, 17))
    element  (0, 2, 33, 17)
    matrix   row 161, column 17 of 256 x 96
    tile     (5, 0), in it row 1, column 17
    face     1, in it row 1, column 1
    page     15, in it element 273, byte 1092
    bank     3 of DRAM
    address  1053828 = buffer 1048640 + 5188
    """

    coordinate: tuple[int, ...]
    matrix_shape: tuple[int, int]
    row: int
    column: int
    tile: tuple[int, int] | None
    in_tile: tuple[int, int] | None
    face: int | None
    in_face: tuple[int, int] | None
    page: int
    element: int
    byte: int
    bit: int
    shard: int | None
    shard_coordinate: tuple[int, ...] | None
    page_in_shard: int | None
    core: CoreCoord
    bank: int
    buffer_type: BufferType
    base: int
    offset: int
    exponent: int | None

    @property
    def address(self) -> int:
        """Return the address of the element's byte in its bank.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((32, 32), "int32", "tile", chip="wormhole_n150").where(0, 1).address
        1048644
        """
        return self.base + self.offset

    def __str__(self) -> str:
        lines = [
            ("element", f"({', '.join(map(str, self.coordinate))})"),
            ("matrix", f"row {self.row}, column {self.column} of {self.matrix_shape[0]} x {self.matrix_shape[1]}"),
        ]
        if self.tile is not None and self.in_tile is not None and self.in_face is not None:
            lines += [
                ("tile", f"{self.tile}, in it row {self.in_tile[0]}, column {self.in_tile[1]}"),
                ("face", f"{self.face}, in it row {self.in_face[0]}, column {self.in_face[1]}"),
            ]
        bit = f", bit {self.bit}" if self.bit else ""
        lines.append(("page", f"{self.page}, in it element {self.element}, byte {self.byte}{bit}"))
        if self.shard is not None:
            lines.append(("shard", f"{self.shard} = {self.shard_coordinate}, in it page {self.page_in_shard}"))
        if self.buffer_type.is_l1:
            lines.append(("core", f"{self.core}, which is {self.buffer_type} bank {self.bank}"))
        else:
            lines.append(("bank", f"{self.bank} of {self.buffer_type}"))
        lines.append(("address", f"{self.address} = buffer {self.base} + {self.offset}"))
        if self.exponent is not None:
            lines.append(("exponent", f"{self.exponent}, shared with its neighbours"))
        return "\n".join(f"{name:<9}{text}" for name, text in lines)


def locate(spec: TensorSpec, coord: tuple[int, ...], base: int | None) -> Where:
    """Return the way of one element of a tensor whose buffer starts at base.

    >>> from tilewright import TensorSpec
    >>> locate(TensorSpec((4, 4), "int32", chip="wormhole_n150"), (1, 2), 0).page
    1
    """
    check_coordinate(coord, spec.shape.logical)
    page, element = divmod(spec.host(*coord), spec.page_elements)
    paging = spec.paging
    slot = paging.cut(paging.widen(page))
    position, at = (along(slot) for along in spec.page_axes)
    byte, bit, scale = byte_in_page(spec, element)
    start = spec.first_address if base is None else base
    shard = shard_coordinate = in_shard = None
    if spec.memory.is_sharded:
        shard, in_shard = divmod(slot, paging.shard_pages)
        shard_coordinate = row_major_coordinate(shard, paging.shards)
    row, column = 0, coord[-1] if coord else 0
    for c, n in zip(coord[:-1], spec.padded_shape[-len(coord) :], strict=False):
        row = row * n + c
    tile, in_tile, face, in_face = _tile_steps(spec, row, column)
    return Where(
        coordinate=coord,
        matrix_shape=spec.physical_shape,
        row=row,
        column=column,
        tile=tile,
        in_tile=in_tile,
        face=face,
        in_face=in_face,
        page=page,
        element=element,
        byte=byte,
        bit=bit,
        shard=shard,
        shard_coordinate=shard_coordinate,
        page_in_shard=in_shard,
        core=paging.cores[position],
        bank=spec.banks[position],
        buffer_type=spec.memory.buffer_type,
        base=start,
        offset=at + byte,
        exponent=None if scale is None else start + at + scale,
    )


def check_coordinate(coord: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise if a coordinate is outside a shape.

    >>> check_coordinate((1, 2), (4, 4))
    """
    if len(coord) != len(shape) or not all(0 <= c < n for c, n in zip(coord, shape, strict=True)):
        raise CoordinateError(
            f"coordinate {coord} is outside shape {list(shape)}: give {len(shape)} entries, each below its extent"
        )


def _tile_steps(spec: TensorSpec, row: int, column: int) -> tuple[Any, Any, int | None, Any]:
    """Return (tile, place in it, face in the order of storage, place in it), all None for rows."""
    if spec.layout is not TensorLayout.TILE:
        return None, None, None, None
    (height, width), (high, wide) = spec.tile.shape, spec.tile.face_shape
    (tile_row, in_row), (tile_column, in_column) = divmod(row, height), divmod(column, width)
    (down, face_row), (across, face_column) = divmod(in_row, high), divmod(in_column, wide)
    face = across * (height // high) + down if spec.tile.transpose else down * (width // wide) + across
    return (tile_row, tile_column), (in_row, in_column), face, (face_row, face_column)


def row_major_coordinate(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the coordinate of an index that counts row by row.

    >>> row_major_coordinate(7, (3, 5))
    (1, 2)
    """
    digits = []
    for extent in reversed(shape):
        index, digit = divmod(index, extent)
        digits.append(digit)
    return tuple(reversed(digits))


def byte_in_page(spec: TensorSpec, element: int) -> tuple[int, int, int | None]:
    """Return (byte, bit in it, byte of the exponent or None) of an element of a page.

    >>> from tilewright import TensorSpec
    >>> byte_in_page(TensorSpec((32, 32), "bfloat4_b"), 17)
    (72, 4, 1)
    """
    if not isinstance(spec.dtype, BlockFormat):
        return element * spec.dtype.itemsize, 0, None
    byte, bit = divmod(element * spec.dtype.bits, 8)
    return spec.dtype.sections(spec.page_elements).data_offset + byte, bit, element // spec.dtype.block


def element_in_page(spec: TensorSpec, byte: int, bit: int) -> int | None:
    """Return the element of a page whose value lies at a byte, None for exponents and gaps.

    >>> from tilewright import TensorSpec
    >>> (
    ...     element_in_page(TensorSpec((32, 32), "bfloat4_b"), 72, 4),
    ...     element_in_page(TensorSpec((32, 32), "bfloat4_b"), 1, 0),
    ... )
    (17, None)
    """
    if byte >= spec.page_bytes:
        return None
    if not isinstance(spec.dtype, BlockFormat):
        return byte // spec.dtype.itemsize
    byte -= spec.dtype.sections(spec.page_elements).data_offset
    return None if byte < 0 else (byte * 8 + bit) // spec.dtype.bits


def page_at(spec: TensorSpec, place: Any, address: int, base: int | None) -> tuple[int | None, int] | None:
    """Return (page, byte in it) at an address of a core or bank; no page where a shard ends early, None outside.

    >>> from tilewright import TensorSpec
    >>> page_at(TensorSpec((4, 4), "int32", chip="wormhole_n150"), 1, 1048648, None)
    (1, 8)
    """
    bank = place if isinstance(place, int) else spec.known_chip.bank_of(place, spec.memory.buffer_type)
    position = spec.position_of_bank.get(bank)
    offset = address - (spec.first_address if base is None else base)
    if position is None or not 0 <= offset < spec.bytes_per_bank:
        return None
    paging, aligned = spec.paging, spec.aligned_page_bytes
    held, byte = divmod(offset, aligned)
    nth, in_shard = divmod(held, paging.shard_pages)
    shard = position * paging.shards_per_core + nth if paging.in_runs else nth * len(paging.cores) + position
    return paging.page_at(shard * paging.shard_pages + in_shard), byte


def coordinate_of(spec: TensorSpec, page: int, element: int) -> tuple[tuple[int, ...], bool]:
    """Return the padded coordinate of an element of a page, and whether it is data.

    >>> from tilewright import TensorSpec
    >>> coordinate_of(TensorSpec((30, 30), "int32", "tile"), 0, 15 * 16 + 15)
    ((15, 15), True)
    """
    found = index_to_coordinate(spec.host_inverse(page * spec.page_elements + element), spec.padded_shape)
    coordinate = tuple(map(int, found))
    lead = len(coordinate) - spec.shape.rank
    inside = all(c < n for c, n in zip(coordinate[lead:], spec.shape.logical, strict=True))
    return coordinate, inside and not any(coordinate[:lead])


def element_at(spec: TensorSpec, place: Any, address: int, bit: int, base: int | None) -> tuple[int, ...] | None:
    """Return the coordinate of the element at an address of a core or bank; None where there is no data.

    >>> from tilewright import TensorSpec
    >>> element_at(TensorSpec((4, 4), "int32", chip="wormhole_n150"), 1, 1048648, 0, None)
    (1, 2)
    """
    page, byte = page_at(spec, place, address, base) or (None, 0)
    element = None if page is None else element_in_page(spec, byte, bit)
    if page is None or element is None:
        return None
    coordinate, is_data = coordinate_of(spec, page, element)
    return coordinate[len(coordinate) - spec.shape.rank :] if is_data else None


def as_place(place: Any, address: Any, bit: int) -> tuple[Any, int, int]:
    """Return (core or bank, address, bit) of a `Where`, or of the three given.

    >>> as_place((0, 1), 4096, 0)
    ((0, 1), 4096, 0)
    """
    if isinstance(place, Where):
        return place.bank, place.address, place.bit
    if address is None:
        raise MemoryConfigError("give a core or bank and an address, or a Where")
    return place, address, bit
