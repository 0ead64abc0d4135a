# SPDX-License-Identifier: Apache-2.0
"""`Where`: tile, page, shard, bank and address of an element; `ElementLocator` finds it, also by address."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import CoordinateError, MemoryConfigError
from ..layout import ComposedLayout, LayoutLike
from .config import BufferType
from .cores import CoreCoord, CoreLike
from .page_geometry import PageGeometry
from .paging import PageMap

Coordinate = tuple[int, ...]


class Where(NamedTuple):
    """Where one element is: matrix, tile and face, page, shard, core and bank, address.

    Fields that a tensor does not have are None: tiles of a row-major tensor, shards of an interleaved one, the exponent
    of a scalar format.

    Args:
        coordinate: the element, in the logical shape.
        matrix_shape: rows and columns of the padded tensor, its outer axes folded into the rows.
        row: of the element in that matrix.
        column: of the element in that matrix.
        tile: (row, column) of the tile.
        in_tile: (row, column) in the tile.
        face: the number of the face in the tile.
        in_face: (row, column) in the face.
        page: the number of the page.
        element: the number of the element in the page.
        byte: the byte of the element in the page.
        bit: the first bit of the element in its byte, for formats with several elements per byte.
        shard: the number of the shard.
        shard_coordinate: the shard in the grid of shards.
        page_in_shard: the number of the page in the shard.
        core: the core, or the bank's coordinate in DRAM.
        bank: the number of the bank.
        buffer_type: the kind of memory.
        base: the address of the buffer.
        offset: of the element's byte in the buffer.
        exponent: the address of the shared exponent.

    >>> from tilewright import TensorSpec
    >>> spec = TensorSpec((1, 4, 60, 90), "int32", "tile", chip="wormhole_n150")
    >>> print(spec.where(0, 2, 33, 17))
    element  (0, 2, 33, 17)
    matrix   row 161, column 17 of 256 x 96
    tile     (5, 0): row 1, column 17
    face     1: row 1, column 1
    page     15: element 273, byte 1092
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
        """The address of the element's byte in its bank.

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
                ("tile", f"{self.tile}: row {self.in_tile[0]}, column {self.in_tile[1]}"),
                ("face", f"{self.face}: row {self.in_face[0]}, column {self.in_face[1]}"),
            ]
        bit = f", bit {self.bit}" if self.bit else ""
        lines.append(("page", f"{self.page}: element {self.element}, byte {self.byte}{bit}"))
        if self.shard is not None:
            lines.append(("shard", f"{self.shard} = {self.shard_coordinate}: page {self.page_in_shard}"))
        if self.buffer_type.is_l1:
            lines.append(("core", f"{self.core}, which is {self.buffer_type} bank {self.bank}"))
        else:
            lines.append(("bank", f"{self.bank} of {self.buffer_type}"))
        lines.append(("address", f"{self.address} = buffer {self.base} + {self.offset}"))
        if self.exponent is not None:
            lines.append(("exponent", f"{self.exponent}"))
        return "\n".join(f"{name:<9}{text}" for name, text in lines)


class ElementLocator:
    """Finds elements of a tensor by coordinate, and coordinates by address; all that a spec decides is prepared once.

    Pages lie where the spec places them, or as given by `pages`.

    >>> from tilewright import TensorSpec
    >>> locator = TensorSpec((4, 4), "int32", chip="wormhole_n150").locator
    >>> locator.locate((1, 2), base=0).page, locator.element_at(1, 1048648, base=1048640)
    (1, (1, 2))
    """

    def __init__(self, spec: PageGeometry, pages: PageMap | None = None) -> None:
        self.spec = spec
        self._shape = spec.shape.logical
        row_extents = spec.padded_shape[len(spec.padded_shape) - len(self._shape) :]
        self._extents = list(zip(self._shape, row_extents, strict=True))
        self._matrix_shape = spec.physical_shape
        self._host, self._page_elements = spec.host, spec.page_elements
        pages = spec.page_map if pages is None else pages
        self._slot_functions: list[LayoutLike] = [pages.slot_of_page]
        while isinstance(slots := self._slot_functions[0], ComposedLayout):  # every page has a slot: no need to extend
            self._slot_functions[:1] = [slots.inner, slots.outer]
        self._position, self._offset = pages.position_of_slot, pages.offset_of_slot
        self._cores, self._banks = pages.paging.cores, pages.banks
        self._is_sharded, self._buffer_type = spec.memory.is_sharded, spec.memory.buffer_type
        self._shards, self._shard_pages = pages.paging.shards, pages.paging.shard_pages
        self._tile = (*spec.tile.shape, *spec.tile.face_shape, spec.tile.transpose) if spec.is_tiled else None
        number_format = spec.dtype
        self._block = number_format.block if number_format.has_blocks else 0
        self._bits = number_format.bits
        self._data_offset = spec.data_offset

    def locate(self, coordinate: Coordinate, base: int) -> Where:
        """Return where an element is, in a buffer at address `base`.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), "int32", chip="wormhole_n150").locator.locate((1, 2), base=1024).address
        1032
        """
        if len(coordinate) != len(self._shape):
            raise coordinate_error(coordinate, self._shape)
        row = 0
        for index, (extent, padded) in zip(coordinate, self._extents):  # noqa: B905  (of one length, see above)
            if not 0 <= index < extent:
                raise coordinate_error(coordinate, self._shape)
            row = row * padded + index
        row, column = divmod(row, self._matrix_shape[1]) if self._shape else (0, 0)
        page, element = divmod(self._host(*coordinate), self._page_elements)
        slot = page
        for function in self._slot_functions:
            slot = function(slot)
        position, offset = self._position(slot), self._offset(slot)
        byte, bit = divmod(element * self._bits, 8)
        byte += self._data_offset
        shard = shard_coordinate = page_in_shard = None
        if self._is_sharded:
            shard, page_in_shard = divmod(slot, self._shard_pages)
            rest, digits = shard, []
            for extent in reversed(self._shards):
                rest, digit = divmod(rest, extent)
                digits.append(digit)
            shard_coordinate = tuple(reversed(digits))
        tile = in_tile = face = in_face = None
        if self._tile is not None:
            height, width, face_height, face_width, transpose = self._tile
            in_row, in_column = row % height, column % width
            down, across = in_row // face_height, in_column // face_width
            face = across * (height // face_height) + down if transpose else down * (width // face_width) + across
            tile, in_tile = (row // height, column // width), (in_row, in_column)
            in_face = (in_row % face_height, in_column % face_width)
        at = base + offset
        exponent = at + element // self._block if self._block else None
        matrix = (self._matrix_shape, row, column, tile, in_tile, face, in_face)
        bank = (self._cores[position], self._banks[position], self._buffer_type)
        shard_place = (shard, shard_coordinate, page_in_shard)
        return Where(coordinate, *matrix, page, element, byte, bit, *shard_place, *bank, base, offset + byte, exponent)

    def page_at(self, place: CoreLike | int, address: int, base: int) -> tuple[int | None, int] | None:
        """Return (page, byte in it) at an address of a core (x, y) or bank, in a buffer at `base`; None outside of it.

        The page is None in the gap that a partial shard leaves.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), "int32", chip="wormhole_n150").locator.page_at(1, 1048648, base=1048640)
        (1, 8)
        """
        spec, chip = self.spec, self.spec.known_chip
        position = spec.position_of_bank.get(place) if type(place) is int else None
        if position is None:  # of a core, or of a bank that holds no page, if the chip has it
            core = chip.core_of(place, self._buffer_type) if isinstance(place, int) else place
            position = spec.position_of_bank.get(chip.bank_of(core, self._buffer_type))
        offset = address - base
        if position is None or not 0 <= offset < spec.bytes_per_bank:
            return None
        return spec.page_map.page_at(position, offset)

    def element_at(self, place: CoreLike | int, address: int, base: int, bit: int = 0) -> Coordinate | None:
        """Return the coordinate of the element at an address of a core (x, y) or bank; None if there is no data.

        The buffer is at `base`, and `bit` is the bit in the byte.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), "int32", chip="wormhole_n150").locator.element_at(1, 1048648, base=1048640)
        (1, 2)
        """
        page, byte = self.page_at(place, address, base) or (None, 0)
        element = None if page is None else self.spec.element_in_page(byte, bit)
        if page is None or element is None:
            return None
        coordinate, is_data = self.spec.coordinate_of(page, element)
        return coordinate[len(coordinate) - len(self._shape) :] if is_data else None


def coordinate_error(coordinate: Coordinate, shape: tuple[int, ...]) -> CoordinateError:
    """Return the error for a coordinate outside a shape.

    >>> print(coordinate_error((4, 0), (4, 4)))
    coordinate (4, 0) is outside shape [4, 4]: expected 2 indices, each from 0 to below its extent
    """
    return CoordinateError(
        f"coordinate {coordinate} is outside shape {list(shape)}: expected {len(shape)} indices, each from 0 to below"
        " its extent"
    )


def validate_coordinate(coordinate: Coordinate, shape: tuple[int, ...]) -> None:
    """Raise a CoordinateError if a coordinate is outside a shape.

    >>> validate_coordinate((1, 2), (4, 4))
    """
    if len(coordinate) != len(shape) or not all(0 <= c < n for c, n in zip(coordinate, shape, strict=True)):
        raise coordinate_error(coordinate, shape)


def split_location(place: Where | CoreLike | int, address: int | None, bit: int) -> tuple[CoreLike | int, int, int]:
    """Return (core or bank, address, bit) of a `Where`, or the three arguments themselves.

    >>> split_location((0, 1), 4096, 0)
    ((0, 1), 4096, 0)
    """
    if isinstance(place, Where):
        return place.bank, place.address, place.bit
    if address is None:
        raise MemoryConfigError("expected a core or bank and an address, or a Where; the address is missing")
    return place, address, bit
