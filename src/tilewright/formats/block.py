# SPDX-License-Identifier: Apache-2.0
"""`BlockFormat`: numbers that share a scale with their neighbours. Data plus geometry, one description for them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .admission import as_bytes, as_codes, whole
from .bits import dense, sparse
from .casts import Singles, to_float32
from .elements import Codes, ElementEncoding
from .geometry import Limits, Sections
from .rounding import Floats, Rounding, check_rounding, rounder
from .scales import PowerOfTwo, ScaleEncoding

Bytes: TypeAlias = NDArray[np.uint8]

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_FRACTION_BITS = 23  # of a float32
# Elements that pack and unpack hold as float64 at a time, so that a large array needs no large temporary.
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A format in which `block` consecutive elements, in physical order, share one scale byte.

    A value is `element x scale`. A tile is stored as its scale bytes, zeros up to a multiple of `alignment` bytes,
    and then its codes, one after the other without gaps, the first in the lowest bits of the first byte.

    `aligned` formats (bfloat8_b and its family) compute as the tiled hardware does: the exponent and fraction fields
    of the float32 are taken as they are, also of infinity and NaN; subnormals are zero; fractions are shifted to the
    block's exponent *without* a sticky bit, so that "nearest even" can miss a tie by a little, downwards; and negative
    zero becomes zero. The 5-bit exponents of the `_a` variants also raise numbers below 2^-15 to it. `truncate` and
    `stochastic` are not the hardware's: they round the exact ratio and raise nothing.

    Other formats (OCP MX, nvfp4) round the exact ratio, keep the sign of zero where the element has one, and give a
    number too large the largest code of its sign. NaN and infinity are said by the element where it can: mxfp8_e4m3
    has a NaN, mxfp8_e5m2 both, and neighbours keep their values. Where the element has no NaN, a NaN makes its
    whole block NaN by its scale, with all codes 0. Where it has no infinity, infinity counts as the largest
    float32, which flattens its neighbours. A block of zeros has scale byte 0.

    `tensor_scaled` formats (nvfp4) divide by one more float32 factor, given to every call as `tensor_scale`.

    >>> from tilewright.formats import bfloat8_b
    >>> scales, codes = bfloat8_b.encode(np.arange(16.0))
    >>> scales.tolist(), codes[0, :5].tolist()
    ([130], [0, 8, 16, 24, 32])
    >>> bfloat8_b.decode(scales, codes)[0, :5].tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """

    name: str
    block: int
    element: ElementEncoding
    scale: ScaleEncoding
    alignment: int = 1
    aligned: bool = False
    tensor_scaled: bool = False

    def __post_init__(self) -> None:
        for field in ("block", "alignment"):
            whole(getattr(self, field), f"{self.name}: {field}")
        if self.block < 1 or self.alignment < 1 or self.block * self.element.bits % 8:
            raise FormatError(
                f"{self.name}: a block of {self.block} codes of {self.element.bits} bits, aligned to {self.alignment}, "
                "does not work; block and alignment must be positive, and a block must be a whole number of bytes"
            )
        if self.aligned and not isinstance(self.scale, PowerOfTwo):
            raise FormatError(f"{self.name}: an aligned format needs a PowerOfTwo scale, not {self.scale!r}")
        if not self.aligned and self.element.nan is None and self.scale.nan is None:
            raise FormatError(f"{self.name}: neither element nor scale can say NaN; give one that can, or aligned=True")

    def __str__(self) -> str:
        return self.name

    # What it measures.

    @property
    def bits(self) -> int:
        """Return the bits of one code, without its share of the scale.

        >>> from tilewright.formats import mxfp6_e2m3
        >>> mxfp6_e2m3.bits
        6
        """
        return self.element.bits

    @property
    def limits(self) -> Limits:
        """Return the lowest, highest and smallest positive numbers that packing makes, in units of the tensor scale.

        >>> from tilewright.formats import bfloat8_b, mxfp4, nvfp4
        >>> bfloat8_b.limits.highest == 127 / 64 * 2.0**127, nvfp4.limits.highest
        (True, 2688.0)
        >>> mxfp4.limits.smallest == 0.5 * 2.0**-127
        True
        """
        highest = self.scale.highest(self.element)
        smallest = self.scale.smallest * self.element.smallest
        if isinstance(self.scale, PowerOfTwo) and self.aligned:
            smallest = 2.0 ** max(-self.scale.bias, -126)  # no subnormals, and nothing below the smallest scale
        return Limits(-highest, highest, smallest)

    @property
    def max_value(self) -> float:
        """Return the largest finite number that packing makes, in units of the tensor scale.

        >>> from tilewright.formats import bfloat4_a
        >>> bfloat4_a.max_value == 1.75 * 2**16
        True
        """
        return self.limits.highest

    @property
    def span(self) -> float:
        """Return the ratio between the largest and the smallest magnitude that can share a block.

        >>> from tilewright.formats import bfloat8_b, bfloat4_b, mxfp4
        >>> bfloat8_b.span, bfloat4_b.span, mxfp4.span
        (127.0, 7.0, 12.0)
        """
        return self.element.largest / self.element.smallest

    def sections(self, elements: int) -> Sections:
        """Return how the bytes of a tile of so many elements are divided.

        >>> from tilewright.formats import bfloat4_b, nvfp4
        >>> bfloat4_b.sections(32), nvfp4.sections(32)
        (Sections(scales=2, padding=14, data=16), Sections(scales=2, padding=0, data=16))
        """
        elements = whole(elements, f"{self.name}: the number of elements")
        blocks, rest = divmod(elements, self.block)
        if rest or blocks < 0:
            below = max(blocks, 0) * self.block
            near = f"{below} or {below + self.block}" if below else str(self.block)
            raise FormatError(
                f"{self.name}: {elements} elements are not a whole number of blocks of {self.block}; use {near}"
            )
        return Sections(blocks, -blocks % self.alignment, elements * self.bits // 8)

    def bytes_per_tile(self, elements: int) -> int:
        """Return the bytes of a tile of so many elements.

        >>> from tilewright.formats import bfloat8_b, bfloat4_b, bfloat2_b
        >>> bfloat8_b.bytes_per_tile(1024), bfloat4_b.bytes_per_tile(1024), bfloat2_b.bytes_per_tile(1024)
        (1088, 576, 320)
        """
        return self.sections(elements).total

    def tensor_scale_for(self, values: Any) -> float:
        """Return the tensor scale that puts the largest of the values at the top of the format; 1.0 if it has none.

        >>> from tilewright.formats import bfloat8_b, nvfp4
        >>> nvfp4.tensor_scale_for([1.0, -2688.0]), nvfp4.tensor_scale_for([5.25]), bfloat8_b.tensor_scale_for([5.25])
        (1.0, 0.001953125, 1.0)
        """
        if not self.tensor_scaled:
            return 1.0
        single = to_float32(np.atleast_1d(np.asarray(values)))
        largest = float(np.max(np.abs(single), where=np.isfinite(single), initial=0.0))
        scale = float(np.float32(largest / self.max_value))
        return max(scale, 2.0**-126) if largest else 1.0

    # Blocks.

    def encode(
        self, groups: Any, *, rounding: Rounding = "nearest_even", seed: int | None = None, tensor_scale: float = 1.0
    ) -> tuple[Codes, Codes]:
        """Return (scales [n], codes [n, block]) of values whose last dimension, or all in order, make whole blocks.

        The scale is chosen from the block's largest magnitude before rounding, whatever the rounding. Stochastic
        rounding takes a seed; the same seed, value and position always give the same code.

        >>> from tilewright.formats import mxfp4
        >>> scales, codes = mxfp4.encode(np.linspace(-6, 6, 32))
        >>> scales.tolist(), codes[0, ::8].tolist()
        ([127], [15, 13, 0, 5])
        """
        check_rounding(rounding, seed)
        single = to_float32(np.atleast_1d(np.asarray(groups))).reshape(-1)
        self.sections(single.size)
        return self._encode(single.reshape(-1, self.block), rounding, seed, 0, self._factor(tensor_scale))

    def decode(self, scales: Any, codes: Any, *, tensor_scale: float = 1.0) -> Singles:
        """Return the float32 values [n, block] of scale bytes [n] and codes [n, block].

        >>> from tilewright.formats import mxint8
        >>> mxint8.decode([127], [[64, 192] * 16])[0, :2].tolist()
        [1.0, -1.0]
        """
        scale_bytes = as_codes(scales, self.scale.last, f"{self.name}: scale").reshape(-1)
        element_codes = as_codes(codes, 2**self.bits - 1, f"{self.name}: code")
        if element_codes.size != scale_bytes.size * self.block:
            raise FormatError(
                f"{self.name}: {element_codes.size} codes do not match {scale_bytes.size} scales; "
                f"each scale has {self.block} codes"
            )
        return self._decode(scale_bytes, element_codes.reshape(-1, self.block), self._factor(tensor_scale))

    def _encode(
        self, single: Singles, rounding: Rounding, seed: int | None, first: int, factor: float
    ) -> tuple[Codes, Codes]:
        """Return (scales, codes) of float32 blocks, of which the first element is number `first` of the array."""
        with np.errstate(all="ignore"):
            if self.aligned:
                values, poisoned = self._from_fields(single, raised=rounding == "nearest_even"), None
            else:
                values, poisoned = self._from_numbers(single, factor)
            largest = np.max(np.abs(values), axis=1, where=np.isfinite(values), initial=0.0)
            scales = self.scale.choose(largest, self.element)
            divisor = self.scale.value(scales)
            ratios = values / np.where(divisor == 0.0, 1.0, divisor)[:, None]
        if self.aligned and rounding == "nearest_even":
            # The hardware shifts first and rounds after, and what the shift pushed out is forgotten.
            ratios = np.ldexp(np.trunc(np.ldexp(ratios, _FRACTION_BITS)), -_FRACTION_BITS)
        codes = self.element.encode(ratios, rounder(rounding, seed, first, ratios.shape))
        if self.aligned and rounding != "nearest_even":
            # Below the lowest exponent of the scale there are codes, but they all read as zero.
            codes[np.abs(self.element.decode(codes)) * divisor[:, None] < self.limits.smallest] = 0
        if poisoned is not None and self.scale.nan is not None:
            scales[poisoned] = self.scale.nan
        return scales, codes

    def _decode(self, scales: Codes, codes: Codes, factor: float) -> Singles:
        with np.errstate(all="ignore"):
            ratios = self.element.decode(codes)
            values = ratios * self.scale.value(scales)[:, None]
            values = np.where(np.isnan(ratios), ratios, values)  # whose sign a product of two NaNs has is nobody's rule
            if self.aligned:
                return self._to_fields(values)
            return (values * factor).astype(np.float32)

    def _from_numbers(self, single: Singles, factor: float) -> tuple[Floats, NDArray[np.bool_] | None]:
        """Return the values to encode, in units of the tensor scale, and which blocks a NaN takes with it."""
        # float64 holds every quotient here so exactly that rounding it again to a few bits gives what rounding the
        # true quotient would: numbers of 24 and 28 bits cannot come nearer to a tie than 2^-32 without being on it.
        values = single.astype(np.float64)
        if self.element.infinity is None:
            values = np.where(np.isinf(values), np.copysign(_FLOAT32_MAX, values), values)
        values /= factor
        if self.element.nan is not None:
            return values, None
        poisoned: NDArray[np.bool_] = np.any(np.isnan(values), axis=1)
        values[poisoned] = 0.0
        return values, poisoned

    def _from_fields(self, single: Singles, raised: bool) -> Floats:
        """Return float32 fields as numbers without exceptions: infinity is 2^128, NaN lies above it.

        Subnormals are zero. What the exponent of the scale cannot say goes to its ends: downwards always, upwards
        (a small number grows to the smallest scale) only if raised.
        """
        assert isinstance(self.scale, PowerOfTwo)
        bits = single.view(np.uint32)
        exponent = ((bits >> np.uint32(_FRACTION_BITS)) & np.uint32(0xFF)).astype(np.int64)
        fraction = (bits & np.uint32(0x7FFFFF)).astype(np.float64)
        magnitude = np.ldexp(fraction + 2.0**_FRACTION_BITS, exponent - 127 - _FRACTION_BITS)
        top = (2.0 - 2.0**-_FRACTION_BITS) * 2.0 ** (self.scale.top - self.scale.bias)
        magnitude = np.clip(magnitude, self.scale.smallest if raised else 0.0, top)
        magnitude[exponent == 0] = 0.0
        return np.copysign(magnitude, single)

    def _to_fields(self, values: Floats) -> Singles:
        """Return numbers as float32 fields, the inverse of `_from_fields`, for any scale and code.

        An exponent field of 0 or 255 is written like any other. Below the lowest exponent of the scale there is +0.
        """
        assert isinstance(self.scale, PowerOfTwo)
        mantissa, exponent = np.frexp(np.abs(values))
        field = exponent.astype(np.int64) + 126
        fraction = ((mantissa * 2.0 - 1.0) * 2.0**_FRACTION_BITS).astype(np.int64)
        sign = np.signbit(values).astype(np.int64) << 31
        bits = np.where(field < 127 - self.scale.bias, 0, sign | (field << _FRACTION_BITS) | fraction)
        return np.where(values == 0.0, sign, bits).astype(np.uint32).view(np.float32)

    # Tiles.

    def pack(
        self,
        values: Any,
        tile_elements: int = 1024,
        *,
        rounding: Rounding = "nearest_even",
        seed: int | None = None,
        tensor_scale: float = 1.0,
    ) -> Bytes:
        """Return the bytes of values that are already in physical order, tile by tile.

        Values become float32 first, by the rules of `cast`. A last tile that is not full is filled with zeros, which
        never change the scale of a block; `unpack(..., count=n)` leaves them out again.

        >>> from tilewright.formats import bfloat8_b
        >>> bfloat8_b.pack(np.ones(1024, dtype=np.float32))[[0, 63, 64, 1087]].tolist()
        [127, 127, 64, 64]
        """
        check_rounding(rounding, seed)
        factor = self._factor(tensor_scale)
        sections = self._tile_sections(tile_elements)
        flat = np.asarray(values).reshape(-1)
        to_float32(flat[:0])  # a dtype that cannot be packed is refused even when there is nothing to pack
        tiles = -(-flat.size // tile_elements)
        out = np.zeros((tiles, sections.total), dtype=np.uint8)
        for rows, part, first in self._pieces(tiles, tile_elements):
            count = (rows.stop - rows.start) * (part.stop - part.start)
            single = to_float32(flat[first : first + count])
            if single.size < count:
                single = np.concatenate([single, np.zeros(count - single.size, dtype=np.float32)])
            scales, codes = self._encode(single.reshape(-1, self.block), rounding, seed, first, factor)
            own_scales, own_codes = self._sections_of(out[rows], part, sections)
            own_scales[...] = scales.reshape(own_scales.shape)
            own_codes[...] = dense(codes, self.bits).reshape(own_codes.shape)
        return out.reshape(-1)

    def unpack(
        self, data: Any, tile_elements: int = 1024, count: int | None = None, *, tensor_scale: float = 1.0
    ) -> Singles:
        """Return the first `count` values (default: all) of packed tiles, as float32 in physical order.

        >>> from tilewright.formats import bfloat8_b
        >>> bfloat8_b.unpack(bfloat8_b.pack([1.0, 2.5, -3.0]), count=3).tolist()
        [1.0, 2.5, -3.0]
        """
        factor = self._factor(tensor_scale)
        sections = self._tile_sections(tile_elements)
        packed = as_bytes(data, self.name)
        tiles, rest = divmod(packed.size, sections.total)
        if rest:
            raise FormatError(
                f"{self.name}: {packed.size} bytes are not a whole number of tiles; a tile of {tile_elements} elements "
                f"has {sections.total} bytes, so give {tiles * sections.total} or {(tiles + 1) * sections.total}"
            )
        total = tiles * tile_elements
        wanted = total if count is None else whole(count, f"{self.name}: count")
        if not 0 <= wanted <= total:
            raise FormatError(f"{self.name}: count {wanted} is outside 0 to {total}, the elements of {tiles} tiles")
        rows = packed.reshape(tiles, sections.total)
        out = np.empty(total, dtype=np.float32)
        for chunk, part, first in self._pieces(tiles, tile_elements):
            own_scales, own_codes = self._sections_of(rows[chunk], part, sections)
            scales = as_codes(own_scales, self.scale.last, f"{self.name}: scale").reshape(-1)
            codes = sparse(own_codes, self.bits).reshape(-1, self.block)
            out[first : first + codes.size] = self._decode(scales, codes, factor).reshape(-1)
        return out[:wanted]

    def _pieces(self, tiles: int, tile_elements: int) -> Iterator[tuple[slice, slice, int]]:
        """Yield (tiles, elements inside each, number of the first element): several tiles, or a part of a large one."""
        if tile_elements <= _CHUNK:
            step = _CHUNK // tile_elements
            for start in range(0, tiles, step):
                yield slice(start, min(start + step, tiles)), slice(0, tile_elements), start * tile_elements
            return
        step = max(1, _CHUNK // self.block) * self.block
        for tile in range(tiles):
            for start in range(0, tile_elements, step):
                part = slice(start, min(start + step, tile_elements))
                yield slice(tile, tile + 1), part, tile * tile_elements + start

    def _sections_of(self, rows: Bytes, part: slice, sections: Sections) -> tuple[Bytes, Bytes]:
        """Return views of the scale bytes and of the code bytes of some elements of each tile."""
        scales = rows[:, part.start // self.block : part.stop // self.block]
        data = rows[:, sections.data_offset :]
        return scales, data[:, part.start * self.bits // 8 : part.stop * self.bits // 8]

    # Checks at the door.

    def _tile_sections(self, tile_elements: Any) -> Sections:
        sections = self.sections(tile_elements)
        if not sections.total:
            raise FormatError(f"{self.name}: a tile of 0 elements does not work; use a multiple of {self.block}")
        return sections

    def _factor(self, tensor_scale: Any) -> float:
        if isinstance(tensor_scale, bool) or not isinstance(tensor_scale, int | float | np.number):
            raise TypeError(f"{self.name}: tensor_scale must be a number, not {type(tensor_scale).__name__}")
        with np.errstate(all="ignore"):
            factor = float(np.float32(tensor_scale))
        if not self.tensor_scaled and factor != 1.0:
            raise FormatError(f"{self.name} has no tensor scale; leave out tensor_scale={tensor_scale}, or use nvfp4")
        if not 0.0 < factor < float("inf"):
            raise FormatError(f"{self.name}: tensor_scale {tensor_scale} must be positive and finite as a float32")
        return factor
