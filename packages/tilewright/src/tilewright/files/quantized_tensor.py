# SPDX-License-Identifier: Apache-2.0
"""`QuantizedTensor`: a tensor of float32 values that are made from stored sections: codes, scales, zero points.

The sections may be tensors of their own in several files. Only what a box needs of them is read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._integers import ceil_div, round_up
from ..copying import aligned_empty, can_decode, decode_codes
from ..formats import CodeTable, ElementName, decode_e8m0, float32, scalar_format_of, uint8, unpack_codes
from ..layout import Box
from ..memory import TensorSpec
from .stored_tensor import Array, Decoder, StoredPart, StoredTensor

Singles = NDArray[np.float32]
_BYTES = np.arange(256, dtype=np.uint8)


class QuantizedContent(Protocol):
    """What a quantised tensor is made from, and how boxes of it are read."""

    @property
    def name(self) -> str:
        """Return the name of the format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the values."""

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """Return the stored tensors, codes first."""

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a box, in `out` if that is given and can be used."""

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offsets of the code of an element, and of its scale if that is a tensor of its own."""


@dataclass(frozen=True, repr=False)
class QuantizedTensor(StoredTensor):
    """A tensor that is read as float32 from the sections of `content`; its file and byte range are those of the codes.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> stored = store_arrays({"w": np.array([[1, 2], [3, 4]], np.int8), "s": np.array([[0.5], [2]], np.float32)})
    >>> content = ScaledCodes("int8", (2, 2), CodeTable("int", 8), as_bytes(stored["w"]), stored["s"], (1, 2))
    >>> QuantizedTensor.of("w", content).read().tolist()
    [[0.5, 1.0], [6.0, 8.0]]
    """

    content: QuantizedContent | None = None

    @classmethod
    def of(cls, name: str, content: QuantizedContent) -> QuantizedTensor:
        """Return the tensor `name` with some `content`.

        >>> from tilewright.files.stored_arrays import store_arrays
        >>> stored = store_arrays({"w": np.ones((2, 3), np.uint8), "s": np.ones((1, 1), np.float32)})
        >>> content = ScaledCodes("int8", (2, 3), CodeTable("int", 8), stored["w"], stored["s"], (2, 3))
        >>> QuantizedTensor.of("w", content).format_name
        'int8'
        """
        codes, shape = content.sections[0], content.shape
        part = StoredPart(Box((0,) * len(shape), shape), codes.byte_range[0])
        host = TensorSpec(shape, float32, "row_major")
        order = tuple(range(len(shape)))
        place = (codes.byte_range, codes.file, host, (part,), order)
        return cls(name, content.name, shape, float32, None, *place, content=content)

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """Return the stored tensors that the values are made from."""
        return (self,) if self.content is None else self.content.sections

    @property
    def format_name(self) -> str:
        """Return the name of the quantised format."""
        return self.kind

    def file_offsets(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offsets of the code of the element `at` a coordinate, and of its scale."""
        assert self.content is not None
        return self.content.locate(at)

    def read_into(self, box: Box, out: Singles) -> None:
        """Write the values in a `box` to a contiguous array of its shape.

        >>> from tilewright.files.stored_arrays import store_arrays
        >>> stored = store_arrays({"w": np.ones((2, 3), np.uint8), "s": np.full((1, 1), 0.5, np.float32)})
        >>> content = ScaledCodes("int8", (2, 3), CodeTable("int", 8), stored["w"], stored["s"], (2, 3))
        >>> out = np.empty((1, 3), np.float32)
        >>> QuantizedTensor.of("w", content).read_into(Box((1, 0), (1, 3)), out)
        >>> out.tolist()
        [[0.5, 0.5, 0.5]]
        """
        assert self.content is not None
        for part, common in self.parts_in(box):
            inside = common.relative_to(part.box.offset)
            values = self.content.read(inside, out if common == box else None)
            if values is not out:
                out[common.relative_to(box.offset).slices] = values

    def _read_part(self, part: StoredPart, box: Box, decode: Decoder) -> Array:
        assert self.content is not None
        return self.content.read(box.relative_to(part.box.offset))


_SMALL_FLOATS = {  # by the names that safetensors, torch and ONNX have for them
    **dict.fromkeys(("F8_E4M3FNUZ", "float8_e4m3fnuz", "float8e4m3fnuz"), "float8_e4m3fnuz"),
    **dict.fromkeys(("F8_E5M2FNUZ", "float8_e5m2fnuz", "float8e5m2fnuz"), "float8_e5m2fnuz"),
    **dict.fromkeys(("F8_E8M0", "float8_e8m0fnu", "float8e8m0"), "float8_e8m0fnu"),
}


@dataclass(frozen=True)
class SmallFloats:
    """The elements of a small float type that is read only, `name`: `codes` are its bytes, each of which is a number.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> stored = store_arrays({"w": np.array([[0x38, 0x80]], np.uint8)})
    >>> SmallFloats("float8_e4m3fnuz", stored["w"]).read(Box((0, 0), (1, 2))).tolist()
    [[0.5, nan]]
    """

    name: str
    codes: StoredTensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the values."""
        return self.codes.shape

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """Return the codes."""
        return (self.codes,)

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a `box`, in `out` if it is given."""
        codes = self.codes.read_stored(box)
        element: ElementName = "float8_e4m3fnuz" if self.name == "float8_e4m3fnuz" else "float8_e5m2fnuz"
        table = decode_e8m0(_BYTES) if self.name == "float8_e8m0fnu" else CodeTable(element, 8).numbers()
        result: Singles = np.take(table, codes, out=out)
        return result

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offset of the element `at` a coordinate; it has no scale."""
        return _dense_offset(self.codes, at), None


def decode_small_floats(tensor: StoredTensor) -> StoredTensor:
    """Return a tensor of a small float type without a number format, with values as float32; others as they are.

    >>> from tilewright.files.source_file import SourceFile
    >>> stored = StoredTensor.dense("w", "F8_E8M0", (4,), None, SourceFile(__file__), 0, 4)
    >>> decode_small_floats(stored).format_name
    'float8_e8m0fnu'
    """
    name = _SMALL_FLOATS.get(tensor.kind) if tensor.format is None and tensor.problem is not None else None
    is_dense = tensor.strides is None and tensor.order == tuple(range(len(tensor.shape)))
    if name is None or not is_dense or type(tensor) is not StoredTensor:
        return tensor
    start, end = tensor.byte_range
    codes = StoredTensor.dense(tensor.name, tensor.kind, tensor.shape, uint8, tensor.file, start, end - start)
    return QuantizedTensor.of(tensor.name, SmallFloats(name, codes))


def as_bytes(tensor: StoredTensor) -> StoredTensor:
    """Return the elements of a contiguous tensor as bytes, those of one after the other along the last dimension.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> as_bytes(store_arrays({"w": np.ones((2, 3), np.int32)})["w"]).shape
    (2, 12)
    """
    rows = prod(tensor.shape[:-1])
    shape = (*tensor.shape[:-1], tensor.nbytes // max(1, rows)) if tensor.shape else (tensor.nbytes,)
    start, end = tensor.byte_range
    return StoredTensor.dense(tensor.name, tensor.kind, shape, uint8, tensor.file, start, end - start)


def reshape_stored(tensor: StoredTensor, shape: tuple[int, ...]) -> StoredTensor:
    """Return a contiguous tensor with another shape of as many elements.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> reshape_stored(store_arrays({"s": np.ones(4, np.float32)})["s"], (4, 1)).read().shape
    (4, 1)
    """
    start, end = tensor.byte_range
    element = scalar_format_of(tensor.dtype)
    return StoredTensor.dense(tensor.name, tensor.kind, shape, element, tensor.file, start, end - start)


@dataclass(frozen=True)
class ScaledCodes:
    """Codes of a `table`, in groups of (rows, columns) that share a scale: a value is (number - zero) x scale.

    `codes` are bytes [..., rows, bytes]; `scales` is a grid [..., group rows, group columns] of numbers, or of bytes
    that are exponents (`is_e8m0`); leading dimensions of extent 1 are shared. With a `factor`, scales are multiplied by
    it, or divided by it if it `divides`. `zeros` is a grid like that of the scales, or holds codes packed along the
    rows of the grid. All arithmetic is that of float32, the factor first. `shape_section` holds the shape, where the
    codes do not tell it.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> stored = store_arrays({"w": np.array([[0x21, 0xF7]], np.uint8), "s": np.array([[128]], np.uint8)})
    >>> content = ScaledCodes("mxfp4", (1, 4), CodeTable("e2m1", 4), stored["w"], stored["s"], (1, 32), is_e8m0=True)
    >>> content.read(Box((0, 1), (1, 3))).tolist()
    [[2.0, 12.0, -12.0]]
    """

    name: str
    shape: tuple[int, ...]
    table: CodeTable
    codes: StoredTensor
    scales: StoredTensor
    group: tuple[int, int]
    is_e8m0: bool = False
    factor: StoredTensor | None = None
    divides: bool = False
    zeros: StoredTensor | None = None
    zeros_are_packed: bool = False
    shape_section: StoredTensor | None = None

    @property
    def sections(self) -> tuple[StoredTensor, ...]:
        """Return codes, scales and what else there is."""
        others = (self.factor, self.zeros, self.shape_section)
        return (self.codes, self.scales, *[each for each in others if each is not None])

    def read(self, box: Box, out: Singles | None = None) -> Singles:
        """Return the values in a `box`, in `out` where that saves a copy."""
        if box.empty:
            return np.empty(box.shape, np.float32)
        lead, (first, rows), (left, columns) = self._split(box)
        step, bits = self.table.step, self.table.bits
        start = left // step * step
        stop = min(round_up(left + columns, step), self.codes.shape[-1] * 8 // bits)
        window = Box((*lead.offset, first, start * bits // 8), (*lead.shape, rows, ceil_div((stop - start) * bits, 8)))
        packed = self.codes.read_stored(window)
        if self.zeros is None and can_decode(self._code):
            is_whole = out is not None and (start, stop - start) == (left, columns)
            values = self._decode_natively(packed, lead, first, start, stop, out if is_whole else None)
            return values if is_whole else values[..., left - start : left - start + columns]
        numbers = self.table.decode(packed)[..., left - start : left - start + columns]
        down = (first + np.arange(rows)) // self.group[0]
        across = (left + np.arange(columns)) // self.group[1]
        spread = (..., (down - down[0])[:, None], across - across[0])
        corner = (int(down[0]), int(across[0]))
        extent = (int(down[-1]) - corner[0] + 1, int(across[-1]) - corner[1] + 1)
        with np.errstate(all="ignore"):
            if self.zeros is not None:
                numbers = numbers - self._read_zeros(lead, corner, extent)[spread]
            result: Singles = numbers * self._read_scales(lead, corner, extent)[spread]
        return result

    @property
    def _code(self) -> str:
        """Return the name of the codes in the native library."""
        return "int8" if self.table == CodeTable("int", 8) else self.table.element

    def _decode_natively(
        self, packed: Array, lead: Box, first: int, start: int, stop: int, out: Singles | None
    ) -> Singles:
        """Return the values of packed codes: those of columns `start` to `stop`, from row `first` on."""
        rows, (high, wide) = packed.shape[-2], self.group
        corner = (first // high, start // wide)
        extent = ((first + rows - 1) // high + 1 - corner[0], (stop - 1) // wide + 1 - corner[1])
        scales = self._read_scales(lead, corner, extent)
        scales = np.broadcast_to(scales, (*lead.shape, *extent))
        inside = (first % high, start % wide)
        values = aligned_empty((*lead.shape, rows, stop - start), np.float32) if out is None else out
        for at in np.ndindex(*lead.shape):
            decode_codes(self._code, packed[at], stop - start, scales[at], self.group, inside, values[at])
        return values

    def _split(self, box: Box) -> tuple[Box, tuple[int, int], tuple[int, int]]:
        """Return the leading dimensions of a box, and the start and extent of its rows and columns."""
        lead = Box(box.offset[:-2], box.shape[:-2])
        return lead, (box.offset[-2], box.shape[-2]), (box.offset[-1], box.shape[-1])

    def _read_scales(self, lead: Box, corner: tuple[int, int], extent: tuple[int, int]) -> Singles:
        """Return the scales of a part of the grid as float32, with the factor in them."""
        stored = _read_grid(self.scales, lead, corner, extent)
        scales = decode_e8m0(stored) if self.is_e8m0 else stored.astype(np.float32)
        if self.factor is None:
            return scales
        factor = _read_grid(self.factor, lead, (0, 0), (1, 1)).astype(np.float32)
        return scales / factor if self.divides else scales * factor

    def _read_zeros(self, lead: Box, corner: tuple[int, int], extent: tuple[int, int]) -> Singles:
        """Return the zero points of a part of the grid."""
        assert self.zeros is not None
        if not self.zeros_are_packed:
            return _read_grid(self.zeros, lead, corner, extent).astype(np.float32)
        grid = self._unpacked_zeros
        inside = tuple([slice(a, a + n) for a, n in zip((*lead.offset, *corner), (*lead.shape, *extent), strict=True)])
        return grid[inside]

    @cached_property
    def _unpacked_zeros(self) -> Singles:
        """Return zero points that are packed along the rows of the grid."""
        assert self.zeros is not None
        words = np.ascontiguousarray(np.swapaxes(self.zeros.read(), -1, -2)).view(np.uint8)
        codes = unpack_codes(words.reshape(-1, words.shape[-1]), self.table.bits)
        numbers = self.table.numbers()[codes].reshape(*words.shape[:-1], -1)
        return np.swapaxes(numbers, -1, -2)[..., : ceil_div(self.shape[-2], self.group[0]), :]

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without what is cached

    def locate(self, at: tuple[int, ...]) -> tuple[int, int | None]:
        """Return the file offsets of the code and the scale of the element `at` a coordinate."""
        *lead, row, column = at
        code = _dense_offset(self.codes, (*lead, row, column * self.table.bits // 8))
        grid = (*lead, row // self.group[0], column // self.group[1])
        inside = [c if n > 1 else 0 for c, n in zip(grid, self.scales.shape, strict=True)]
        return code, _dense_offset(self.scales, tuple(inside))


def _read_grid(grid: StoredTensor, lead: Box, corner: tuple[int, int], extent: tuple[int, int]) -> Array:
    """Return a part of a grid, whose leading dimensions may have extent 1 to be shared."""
    shared = [n == 1 for n in grid.shape[:-2]]
    offset = [0 if once else at for once, at in zip(shared, lead.offset, strict=True)]
    shape = [1 if once else n for once, n in zip(shared, lead.shape, strict=True)]
    return grid.read_stored(Box((*offset, *corner), (*shape, *extent)))


def _dense_offset(tensor: StoredTensor, at: tuple[int, ...]) -> int:
    """Return the file offset of an element of a contiguous tensor."""
    index = int(np.ravel_multi_index(at, tensor.shape)) if at else 0
    return tensor.byte_range[0] + index * tensor.dtype.itemsize
