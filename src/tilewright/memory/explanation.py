# SPDX-License-Identifier: Apache-2.0
"""The way of an element in words: how each number on it comes about, and what an address holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod
from textwrap import fill
from typing import Any

from ..errors import MemoryConfigError
from ..formats import BlockFormat
from ..formats.scale_encoding import PowerOfTwo
from ..showing import Shown
from .spec import TensorSpec, as_spec
from .where import Where, coordinate_of, element_in_page, locate, page_at

WIDTH = 80
_INDENT = 10


@dataclass(frozen=True, slots=True)
class Explanation(Shown):
    """The way of one element from its coordinate to its byte, each step with the numbers it is made of.

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((4, 60, 90), "bfloat8_b", memory=block_sharded((8, 8)), chip="wormhole_n150")
    >>> print(explain(spec, (2, 33, 17)))
    element   (2, 33, 17) of [4, 60, 90]
    padded    to [4, 64, 96], of which 12.1 % is padding
    matrix    row 161 = 2 x 64 + 33, column 17, of 256 x 96
    tile      (5, 0) of 8 x 3; in it row 1, column 17
    face      1 of 4, 16 x 16 each; in it row 1, column 1
    page      15 of 24, 1088 bytes each; in it element 273
    value     byte 337 = 64 + 273, after the exponents
    exponent  byte 17, shared by the 16 elements (2, 33, 16) to (2, 33, 31)
    shard     15 = (5, 0) of 8 x 3, 32 x 32 each; in it page 0 of 1
    core      (0, 5), which is L1 bank 18
    address   1498385 (0x16dd11) = buffer 1498048 + page at 0 + byte 337
    exponent  1498065 (0x16dbd1) = buffer 1498048 + page at 0 + byte 17
    """

    spec: TensorSpec
    where: Where

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps of the way, each with its name and its numbers in words.

        >>> explain(TensorSpec((4, 8), "int32", chip="n150"), (1, 2)).steps()[-1]
        ('address', '1048648 (0x100048) = buffer 1048640 + page at 0 + byte 8')
        """
        return [*self._in_the_tensor(), *self._in_the_page(), *self._in_the_machine()]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of the way, for programs.

        >>> explain(TensorSpec((4, 8), "int32", chip="n150"), (1, 2)).to_json()["address"]
        1048648
        """
        numbers = {each.name: getattr(self.where, each.name) for each in fields(self.where)}
        numbers |= {"core": list(self.where.core), "buffer_type": self.where.buffer_type.name.lower()}
        neighbours = self.neighbours
        return {
            **numbers,
            "address": self.where.address,
            "padded_shape": list(self.spec.padded_shape),
            "page_bytes": self.spec.page_bytes,
            "block": None if neighbours is None else [list(each) for each in neighbours],
        }

    @property
    def neighbours(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the first and last coordinate of the elements that share the exponent; None for scalar formats.

        >>> explain(TensorSpec((32, 32), "bfloat8_b", chip="n150"), (3, 5)).neighbours
        ((3, 0), (3, 15))
        """
        if not isinstance(self.spec.dtype, BlockFormat):
            return None
        return _block_ends(self.spec, self.where.page, self.where.element // self.spec.dtype.block)

    def __str__(self) -> str:
        return as_lines(self.steps())

    def _in_the_tensor(self) -> Iterator[tuple[str, str]]:
        spec, where = self.spec, self.where
        yield "element", f"{_point(where.coordinate)} of {list(spec.shape.logical)}"
        if spec.padded_shape != spec.shape.logical:
            padding = 100 - 100 * spec.shape.logical_volume() / max(1, prod(spec.padded_shape))
            yield "padded", f"to {list(spec.padded_shape)}, of which {padding:.3g} % is padding"
        rows, columns = where.matrix_shape
        yield "matrix", f"row {self._row_in_words()}, column {where.column}, of {rows} x {columns}"
        if where.tile is not None and where.in_tile is not None and where.in_face is not None:
            (high, wide), face = spec.tile.shape, spec.tile.face_shape
            yield "tile", f"{where.tile} of {rows // high} x {columns // wide}; in it {_cell(where.in_tile)}"
            turned = ", stored down its columns" if spec.tile.transpose else ""
            faces = f"{spec.tile.num_faces}, {face[0]} x {face[1]} each{turned}"
            yield "face", f"{where.face} of {faces}; in it {_cell(where.in_face)}"

    def _row_in_words(self) -> str:
        """Return the row of the matrix with the sum that makes it, where there is one."""
        extents = self.spec.padded_shape[len(self.spec.padded_shape) - len(self.where.coordinate) : -1]
        terms = []
        for d, c in enumerate(self.where.coordinate[:-1]):
            below = prod(extents[d + 1 :])
            if c:
                terms.append(f"{c} x {below}" if below != 1 else str(c))
        return f"{self.where.row} = {' + '.join(terms)}" if len(terms) > 1 else str(self.where.row)

    def _in_the_page(self) -> Iterator[tuple[str, str]]:
        spec, where = self.spec, self.where
        yield "page", f"{where.page} of {spec.num_pages}, {spec.page_bytes} bytes each; in it element {where.element}"
        if not isinstance(spec.dtype, BlockFormat):
            size = spec.dtype.itemsize
            yield "value", f"byte {where.byte} = {where.element} x {size}" if size > 1 else f"byte {where.byte}"
            return
        bits, start = spec.dtype.bits, spec.dtype.sections(spec.page_elements).data_offset
        if bits == 8:
            yield "value", f"byte {where.byte} = {start} + {where.element}, after the {scale_name(spec)}s"
        else:
            last = where.bit + bits - 1
            into = f"{last}" if last < 8 else f"{last - 8} of the next byte"
            yield "value", f"byte {where.byte}, bits {where.bit} to {into}: {bits} bits each, from byte {start} on"
        block, ends = where.element // spec.dtype.block, self.neighbours
        assert ends is not None  # it is a block format
        shared = f"shared by the {spec.dtype.block} elements {_point(ends[0])} to {_point(ends[1])}"
        yield scale_name(spec), f"byte {block}, {shared}"

    def _in_the_machine(self) -> Iterator[tuple[str, str]]:
        spec, where = self.spec, self.where
        if where.shard is not None and spec.memory.sharding is not None:
            shards = f"{_times(spec.paging.shards)}, {_times(spec.memory.sharding.shape)} each"
            held = f"page {where.page_in_shard} of {spec.paging.shard_pages}"
            yield "shard", f"{where.shard} = {_point(where.shard_coordinate or ())} of {shards}; in it {held}"
        if where.buffer_type.is_l1:
            yield "core", f"{where.core}, which is {where.buffer_type} bank {where.bank}"
        else:
            yield "bank", f"{where.bank} of the {spec.known_chip.banks(where.buffer_type)} banks of {where.buffer_type}"
        yield "address", self._address_in_words(where.address, where.byte)
        if where.exponent is not None:
            yield scale_name(spec), self._address_in_words(where.exponent, where.element // _block_of(spec))

    def _address_in_words(self, address: int, byte: int) -> str:
        start = self.where.offset - self.where.byte
        return f"{address} ({address:#x}) = buffer {self.where.base} + page at {start} + byte {byte}"


@dataclass(frozen=True, slots=True)
class Resident:
    """What lives at an address: "data", "padding", an "exponent", a "gap" between pages or in one, or "nothing".

    `coordinate` is that of the element, or of the first of those that share an exponent.

    >>> spec = TensorSpec((60, 90), "bfloat8_b", memory="l1", chip="n150")
    >>> print(explain_address(spec, 3, spec.first_address + 5))
    the exponent of (37, 0) to (37, 15): page 3, byte 5
    """

    kind: str
    page: int | None = None
    byte: int | None = None
    coordinate: tuple[int, ...] | None = None
    last: tuple[int, ...] | None = None
    is_data: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs.

        >>> explain_address(TensorSpec((4, 8), "int32", chip="n150"), 1, 1048648).to_json()["coordinate"]
        (1, 2)
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __str__(self) -> str:
        if self.kind == "nothing":
            return "nothing of this tensor"
        where = f"page {self.page}, byte {self.byte}"
        if self.kind == "gap":
            return f"a gap: {where} holds no element" if self.page is not None else "a gap: no page lies here"
        at = _point(self.coordinate or ())
        if self.kind == "exponent":
            return f"the exponent of {at} to {_point(self.last or ())}: {where}" + (
                "" if self.is_data else ", all of them padding"
            )
        return f"element {at}: {where}" if self.is_data else f"padding, at the padded coordinate {at}: {where}"


def explain(spec: Any, coordinate: Any, base: int | None = None) -> Explanation:
    """Return the way of an element to its byte, step by step, in a buffer at base or on an empty chip.

    `spec` is a `TensorSpec`, or a tensor that has one.

    >>> print(explain(TensorSpec((60, 90), "bfloat16", "tile", chip="wormhole_n150"), (33, 17)))
    element   (33, 17) of [60, 90]
    padded    to [64, 96], of which 12.1 % is padding
    matrix    row 33, column 17, of 64 x 96
    tile      (1, 0) of 2 x 3; in it row 1, column 17
    face      1 of 4, 16 x 16 each; in it row 1, column 1
    page      3 of 6, 2048 bytes each; in it element 273
    value     byte 546 = 273 x 2
    bank      3 of the 12 banks of DRAM
    address   1049186 (0x100262) = buffer 1048640 + page at 0 + byte 546
    """
    placed = as_spec(spec)
    return Explanation(placed, locate(placed, tuple([int(c) for c in coordinate]), base))


def explain_address(spec: TensorSpec, place: Any, address: int, bit: int = 0, base: int | None = None) -> Resident:
    """Return what lives at an address of a core (x, y) or bank: an element, padding, an exponent, or nothing.

    >>> explain_address(TensorSpec((4, 8), "int32", chip="n150"), 1, 1048648).coordinate
    (1, 2)
    """
    if not 0 <= bit < 8:
        raise MemoryConfigError(f"bit {bit} is not in a byte; use 0 to 7")
    found = page_at(spec, place, address, base)
    if found is None:
        return Resident("nothing")
    page, byte = found
    if page is None:
        return Resident("gap")
    element = element_in_page(spec, byte, bit)
    if element is not None:
        coordinate, is_data = coordinate_of(spec, page, element)
        lead = len(coordinate) - spec.shape.rank if is_data else 0
        return Resident("data" if is_data else "padding", page, byte, coordinate[lead:], None, is_data)
    if not isinstance(spec.dtype, BlockFormat) or byte >= spec.dtype.sections(spec.page_elements).scales:
        return Resident("gap", page, byte)
    first, last = _block_ends(spec, page, byte)
    block = spec.dtype.block
    is_data = any(coordinate_of(spec, page, byte * block + k)[1] for k in range(block))
    return Resident("exponent", page, byte, first, last, is_data)


def scale_name(spec: TensorSpec) -> str:
    """Return what the numbers that blocks share are called: exponents, or scales where they are no powers of two.

    >>> scale_name(TensorSpec((32, 32), "bfloat8_b")), scale_name(TensorSpec((32, 32), "nvfp4"))
    ('exponent', 'scale')
    """
    return "exponent" if isinstance(getattr(spec.dtype, "scale", None), PowerOfTwo) else "scale"


def _block_of(spec: TensorSpec) -> int:
    return spec.dtype.block if isinstance(spec.dtype, BlockFormat) else 1


def _block_ends(spec: TensorSpec, page: int, block: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the coordinates of the first and the last element of a block of a page."""
    size = _block_of(spec)
    ends = [coordinate_of(spec, page, block * size + k)[0] for k in (0, size - 1)]
    lead = len(spec.padded_shape) - spec.shape.rank
    return ends[0][lead:], ends[1][lead:]


def _point(coordinate: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, coordinate))})"


def _cell(place: tuple[int, int]) -> str:
    return f"row {place[0]}, column {place[1]}"


def _times(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def as_lines(steps: list[tuple[str, str]], indent: int = _INDENT) -> str:
    """Return named texts as lines of at most 80 columns, the texts in a column of their own.

    >>> print(as_lines([("tile", "(5, 0)")]))
    tile      (5, 0)
    """
    under = " " * indent
    return "\n".join(
        fill(text, WIDTH, initial_indent=f"{name:<{indent}}", subsequent_indent=under, break_long_words=False)
        for name, text in steps
    )
