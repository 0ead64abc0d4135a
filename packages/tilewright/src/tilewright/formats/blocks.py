# SPDX-License-Identifier: Apache-2.0
"""`BlockFormat`: number formats in which neighbouring elements share a scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NoReturn, Protocol, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._text import suggest
from ..errors import FormatError
from ..layout import as_integer
from ..plugins import list_plugins, load_plugin
from .scalars import (
    ALIASES,
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E5M2,
    SCALAR_FORMATS,
    Codes,
    ElementEncoding,
    Floats,
    FloatScale,
    FormatLike,
    Limits,
    NumberFormat,
    PowerOfTwo,
    Rounding,
    ScalarFormat,
    ScaleEncoding,
    Sections,
    SignMagnitude,
    Singles,
    TwosComplement,
    find_scalar_format,
    float32,
    make_rounder,
    pack_codes,
    to_float32,
    uint8,
    unpack_codes,
    validate_rounding,
)

Bytes: TypeAlias = NDArray[np.uint8]
PackedData: TypeAlias = "bytes | bytearray | memoryview | ArrayLike"

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_FRACTION_BITS = 23  # of a float32
# Elements converted at a time, which bounds the temporary float64 arrays.
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class BlockFormat(NumberFormat):
    """The format `name`, in which `block` consecutive elements, in physical order, share one scale byte.

    A value is `element x scale`. A tile is stored as its scale bytes, zero padding to a multiple of `alignment`
    bytes, and then its codes without gaps, the first in the lowest bits of the first byte.

    `aligned` formats (bfloat8_b and its family) round as the hardware does: the exponent and fraction fields of the
    float32 are used as they are, even of infinity and NaN; subnormals become zero; fractions are shifted to the block's
    exponent *without* a sticky bit, so that "nearest even" can round down just above a tie; negative zero becomes zero.
    The 5-bit exponents of the `_a` variants also raise magnitudes below 2^-15 to it. The hardware has no `truncate` and
    `stochastic` rounding: these round the exact ratio and raise nothing.

    Other formats (OCP MX, nvfp4) round the exact ratio, preserve the sign of zero if the element has one, and saturate
    values that are too large. NaN and infinity are encoded in the element if it has them: mxfp8_e4m3 has a NaN,
    mxfp8_e5m2 has both. If the element has no NaN, a NaN makes the scale of its block NaN, with all codes 0. If it has
    no infinity, infinity counts as the largest float32, which makes its neighbours zero. A block of zeros has scale
    byte 0.

    `tensor_scaled` formats (nvfp4) also divide by a float32 factor, passed to every call as `tensor_scale`.

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
    has_blocks: ClassVar[Literal[True]] = True
    value_format: ClassVar[ScalarFormat] = float32  # of unpacked values
    storage_format: ClassVar[ScalarFormat] = uint8  # arrays hold packed bytes

    def __post_init__(self) -> None:
        for field in ("block", "alignment"):
            as_integer(getattr(self, field), f"{self.name}: {field}")
        if self.block < 1 or self.alignment < 1 or self.block * self.element.bits % 8:
            raise FormatError(
                f"{self.name}: expected a positive block and alignment, and blocks of a whole number of bytes; got"
                f" blocks of {self.block} codes of {self.element.bits} bits, aligned to {self.alignment} bytes"
            )
        if self.aligned and not isinstance(self.scale, PowerOfTwo):
            raise FormatError(f"{self.name}: an aligned format needs a PowerOfTwo scale, got {self.scale!r}")
        if not self.aligned and self.element.nan is None and self.scale.nan is None:
            raise FormatError(f"{self.name}: neither element nor scale has a NaN; use one that has, or aligned=True")

    @property
    def bits(self) -> int:
        """The number of bits of one code.

        >>> from tilewright.formats import mxfp6_e2m3
        >>> mxfp6_e2m3.bits
        6
        """
        return self.element.bits

    @property
    def limits(self) -> Limits:
        """The range of packed values, in units of the tensor scale.

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
    def span(self) -> float:
        """The ratio of the largest and the smallest magnitude that fit in one block.

        >>> from tilewright.formats import bfloat8_b, bfloat4_b, mxfp4
        >>> bfloat8_b.span, bfloat4_b.span, mxfp4.span
        (127.0, 7.0, 12.0)
        """
        return self.element.largest / self.element.smallest

    def sections(self, elements: int) -> Sections:
        """Return the sections of a tile with the given number of `elements`.

        >>> from tilewright.formats import bfloat4_b, nvfp4
        >>> bfloat4_b.sections(32), nvfp4.sections(32)
        (Sections(scales=2, padding=14, data=16), Sections(scales=2, padding=0, data=16))
        """
        elements = as_integer(elements, f"{self.name}: the number of elements")
        blocks, rest = divmod(elements, self.block)
        if rest or blocks < 0:
            below = max(blocks, 0) * self.block
            near = f"{below} or {below + self.block}" if below else str(self.block)
            raise FormatError(
                f"{self.name}: {elements} elements are not a whole number of blocks of {self.block}; use {near}"
            )
        return Sections(blocks, -blocks % self.alignment, elements * self.bits // 8)

    def require_scalar(self, caller: str) -> NoReturn:
        """Raise a FormatError that names `caller`, which needs a scalar format."""
        raise FormatError(f"{caller} needs a scalar format, got {self.name}; unpack its blocks first")

    def tensor_scale_for(self, values: ArrayLike) -> float:
        """Return the tensor scale that maps the largest magnitude of `values` to `max_value`, or 1.0.

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

    def encode(
        self,
        groups: ArrayLike,
        *,
        rounding: Rounding = "nearest_even",
        seed: int | None = None,
        tensor_scale: float = 1.0,
    ) -> tuple[Codes, Codes]:
        """Return (scales [n], codes [n, block]) of `groups`, values that make up whole blocks in their order.

        The scale is chosen from the block's largest magnitude before rounding. `rounding` is "nearest_even",
        "truncate" or "stochastic", which takes a `seed`: the same seed, value and position give the same code.
        `tensor_scale` is the factor of a format with a tensor scale.

        >>> from tilewright.formats import mxfp4
        >>> scales, codes = mxfp4.encode(np.linspace(-6, 6, 32))
        >>> scales.tolist(), codes[0, ::8].tolist()
        ([127], [15, 13, 0, 5])
        """
        validate_rounding(rounding, seed)
        single = to_float32(np.atleast_1d(np.asarray(groups))).reshape(-1)
        self.sections(single.size)
        return self._encode(
            single.reshape(-1, self.block), rounding, seed, 0, self._validate_tensor_scale(tensor_scale)
        )

    def decode(self, scales: ArrayLike, codes: ArrayLike, *, tensor_scale: float = 1.0) -> Singles:
        """Return the float32 values [n, block] of `scales` [n] and `codes` [n, block], times `tensor_scale`.

        >>> from tilewright.formats import mxint8
        >>> mxint8.decode([127], [[64, 192] * 16])[0, :2].tolist()
        [1.0, -1.0]
        """
        scale_bytes = _validate_codes(scales, self.scale.last_byte, f"{self.name}: scale").reshape(-1)
        element_codes = _validate_codes(codes, 2**self.bits - 1, f"{self.name}: code")
        if element_codes.size != scale_bytes.size * self.block:
            raise FormatError(
                f"{self.name}: expected {self.block} codes per scale, got {element_codes.size} codes and"
                f" {scale_bytes.size} scales"
            )
        return self._decode(
            scale_bytes, element_codes.reshape(-1, self.block), self._validate_tensor_scale(tensor_scale)
        )

    def _encode(
        self, single: Singles, rounding: Rounding, seed: int | None, first: int, factor: float
    ) -> tuple[Codes, Codes]:
        """Return (scales, codes) of float32 blocks; `first` is the position of their first element in the array."""
        with np.errstate(all="ignore"):
            if self.aligned:
                values, poisoned = self._float_fields(single, raised=rounding == "nearest_even"), None
            else:
                values, poisoned = self._scaled_values(single, factor)
            largest = np.max(np.abs(values), axis=1, where=np.isfinite(values), initial=0.0)
            scales = self.scale.choose(largest, self.element)
            divisor = self.scale.value(scales)
            ratios = values / np.where(divisor == 0.0, 1.0, divisor)[:, None]
        if self.aligned and rounding == "nearest_even":
            # The hardware shifts before it rounds, and drops the bits that are shifted out.
            ratios = np.ldexp(np.trunc(np.ldexp(ratios, _FRACTION_BITS)), -_FRACTION_BITS)
        codes = self.element.encode(ratios, make_rounder(rounding, seed, first, ratios.shape))
        if self.aligned and rounding != "nearest_even":
            # Codes below the lowest exponent of the scale would decode as zero.
            codes[np.abs(self.element.decode(codes)) * divisor[:, None] < self.limits.smallest] = 0
        if poisoned is not None and self.scale.nan is not None:
            scales[poisoned] = self.scale.nan
        return scales, codes

    def _decode(self, scales: Codes, codes: Codes, factor: float) -> Singles:
        with np.errstate(all="ignore"):
            ratios = self.element.decode(codes)
            values = ratios * self.scale.value(scales)[:, None]
            values = np.where(np.isnan(ratios), ratios, values)  # the sign of a product of two NaNs is not defined
            if self.aligned:
                return self._from_float_fields(values)
            return (values * factor).astype(np.float32)

    def _scaled_values(self, single: Singles, factor: float) -> tuple[Floats, NDArray[np.bool_] | None]:
        """Return the values to encode, in units of the tensor scale, and a mask of the blocks that become NaN."""
        # Rounding twice, to float64 and then to a few bits, gives the same as rounding once: quotients of numbers with
        # 24 and 28 bits are either on a tie or at least 2^-32 away from it.
        values = single.astype(np.float64)
        if self.element.infinity is None:
            values = np.where(np.isinf(values), np.copysign(_FLOAT32_MAX, values), values)
        values /= factor
        if self.element.nan is not None:
            return values, None
        poisoned: NDArray[np.bool_] = np.any(np.isnan(values), axis=1)
        values[poisoned] = 0.0
        return values, poisoned

    def _float_fields(self, single: Singles, raised: bool) -> Floats:
        """Return exponent and fraction fields of float32 as numbers: infinity is 2^128, NaN is larger.

        Subnormals are zero. Values beyond the range of the scale are clipped: those that are too large always, those
        that are too small only if `raised`.
        """
        assert isinstance(self.scale, PowerOfTwo)
        bits = single.view(np.uint32)
        exponent = ((bits >> np.uint32(_FRACTION_BITS)) & np.uint32(0xFF)).astype(np.int64)
        fraction = (bits & np.uint32(0x7FFFFF)).astype(np.float64)
        magnitude = np.ldexp(fraction + 2.0**_FRACTION_BITS, exponent - 127 - _FRACTION_BITS)
        top = (2.0 - 2.0**-_FRACTION_BITS) * 2.0 ** (self.scale.top_byte - self.scale.bias)
        magnitude = np.clip(magnitude, self.scale.smallest if raised else 0.0, top)
        magnitude[exponent == 0] = 0.0
        return np.copysign(magnitude, single)

    def _from_float_fields(self, values: Floats) -> Singles:
        """Return numbers as float32 fields: the inverse of `_float_fields` for any scale and code.

        Exponent fields 0 and 255 have no special meaning. Values below the lowest exponent of the scale become +0.
        """
        assert isinstance(self.scale, PowerOfTwo)
        mantissa, exponent = np.frexp(np.abs(values))
        field = exponent.astype(np.int64) + 126
        fraction = ((mantissa * 2.0 - 1.0) * 2.0**_FRACTION_BITS).astype(np.int64)
        sign = np.signbit(values).astype(np.int64) << 31
        bits = np.where(field < 127 - self.scale.bias, 0, sign | (field << _FRACTION_BITS) | fraction)
        return np.where(values == 0.0, sign, bits).astype(np.uint32).view(np.float32)

    def pack(
        self,
        values: ArrayLike,
        tile_elements: int = 1024,
        *,
        rounding: Rounding = "nearest_even",
        seed: int | None = None,
        tensor_scale: float = 1.0,
    ) -> Bytes:
        """Return the packed bytes of `values`, which are in physical order, in tiles of `tile_elements`.

        Values are converted to float32 first, by the rules of `cast`. A partial last tile is padded with zeros, which
        never change the scale of a block; `unpack(..., count=n)` drops them. `rounding`, `seed` and `tensor_scale` are
        as in `encode`.

        >>> from tilewright.formats import bfloat8_b
        >>> bfloat8_b.pack(np.ones(1024, dtype=np.float32))[[0, 63, 64, 1087]].tolist()
        [127, 127, 64, 64]
        """
        validate_rounding(rounding, seed)
        factor = self._validate_tensor_scale(tensor_scale)
        sections = self._tile_sections(tile_elements)
        flat = np.asarray(values).reshape(-1)
        to_float32(flat[:0])  # raises for a dtype that cannot be packed, even if the array is empty
        tiles = -(-flat.size // tile_elements)
        out = np.zeros((tiles, sections.total), dtype=np.uint8)
        for rows, part, first in self._chunks(tiles, tile_elements):
            count = (rows.stop - rows.start) * (part.stop - part.start)
            single = to_float32(flat[first : first + count])
            if single.size < count:
                single = np.concatenate([single, np.zeros(count - single.size, dtype=np.float32)])
            scales, codes = self._encode(single.reshape(-1, self.block), rounding, seed, first, factor)
            own_scales, own_codes = self._section_views(out[rows], part, sections)
            own_scales[...] = scales.reshape(own_scales.shape)
            own_codes[...] = pack_codes(codes, self.bits).reshape(own_codes.shape)
        return out.reshape(-1)

    def unpack(
        self, data: PackedData, tile_elements: int = 1024, count: int | None = None, *, tensor_scale: float = 1.0
    ) -> Singles:
        """Return the first `count` values (default: all) of packed `data`, as float32 in physical order.

        `tile_elements` and `tensor_scale` must be those that the data was packed with.

        >>> from tilewright.formats import bfloat8_b
        >>> bfloat8_b.unpack(bfloat8_b.pack([1.0, 2.5, -3.0]), count=3).tolist()
        [1.0, 2.5, -3.0]
        """
        factor = self._validate_tensor_scale(tensor_scale)
        sections = self._tile_sections(tile_elements)
        packed = byte_array(data, self.name)
        tiles, rest = divmod(packed.size, sections.total)
        if rest:
            raise FormatError(
                f"{self.name}: {packed.size} bytes are not a whole number of tiles; a tile of {tile_elements} elements"
                f" has {sections.total} bytes, so pass {tiles * sections.total} or {(tiles + 1) * sections.total}"
            )
        total = tiles * tile_elements
        wanted = total if count is None else as_integer(count, f"{self.name}: count")
        if not 0 <= wanted <= total:
            raise FormatError(f"{self.name}: expected a count from 0 to {total}, all of {tiles} tiles, got {wanted}")
        rows = packed.reshape(tiles, sections.total)
        out = np.empty(total, dtype=np.float32)
        for chunk, part, first in self._chunks(tiles, tile_elements):
            own_scales, own_codes = self._section_views(rows[chunk], part, sections)
            scales = _validate_codes(own_scales, self.scale.last_byte, f"{self.name}: scale").reshape(-1)
            codes = unpack_codes(own_codes, self.bits).reshape(-1, self.block)
            out[first : first + codes.size] = self._decode(scales, codes, factor).reshape(-1)
        return out[:wanted]

    def _chunks(self, tiles: int, tile_elements: int) -> Iterator[tuple[slice, slice, int]]:
        """Yield (tiles, elements of each, position of the first element): several tiles, or a part of a large one."""
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

    def _section_views(self, rows: Bytes, part: slice, sections: Sections) -> tuple[Bytes, Bytes]:
        """Return views of the scale bytes and of the code bytes of the elements `part` of each tile."""
        scales = rows[:, part.start // self.block : part.stop // self.block]
        data = rows[:, sections.data_offset :]
        return scales, data[:, part.start * self.bits // 8 : part.stop * self.bits // 8]

    def _tile_sections(self, tile_elements: int) -> Sections:
        """Return the sections of a tile; raise if it is empty or not a whole number of blocks."""
        sections = self.sections(tile_elements)
        if not sections.total:
            raise FormatError(f"{self.name}: expected tiles of at least {self.block} elements, got 0")
        return sections

    def _validate_tensor_scale(self, tensor_scale: object) -> float:
        if isinstance(tensor_scale, bool) or not isinstance(tensor_scale, int | float | np.number):
            raise TypeError(f"{self.name}: tensor_scale must be a number, got {type(tensor_scale).__name__}")
        with np.errstate(all="ignore"):
            factor = float(np.float32(tensor_scale))
        if not self.tensor_scaled and factor != 1.0:
            raise FormatError(f"{self.name} has no tensor scale, got {tensor_scale}; leave it out, or use nvfp4")
        if not 0.0 < factor < float("inf"):
            raise FormatError(f"{self.name}: tensor_scale must be positive and finite as a float32, got {tensor_scale}")
        return factor


def _validate_codes(codes: ArrayLike, largest: int, what: str) -> Bytes:
    """Return integers from 0 to `largest` as bytes; raise for anything else."""
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        if array.size:
            raise TypeError(f"{what}s must be integers, got {array.dtype}")
        array = array.astype(np.uint8)
    if array.size and not (int(array.min()) >= 0 and int(array.max()) <= largest):
        bad = array[(array < 0) | (array > largest)].flat[0]
        raise FormatError(f"{what} {bad} is outside 0 to {largest}; the data are damaged or of another format")
    return array.astype(np.uint8, copy=False)


def byte_array(data: PackedData, name: str) -> Bytes:
    """Return bytes, or an array of uint8, as a flat array of uint8 without copying; raise for anything else.

    >>> byte_array(b"ab", "bfloat8_b").tolist()
    [97, 98]
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return np.frombuffer(data, dtype=np.uint8)
    array = np.asarray(data)
    if array.dtype != np.uint8:
        raise TypeError(f"{name}: packed data must be bytes or a uint8 array, got {array.dtype}")
    return array.reshape(-1)


# The block formats by name, and `format_of`, which returns any format by name, dtype or array.


class HasDtype(Protocol):
    """An array of any library with NumPy dtypes."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


Format: TypeAlias = ScalarFormat | BlockFormat

# The exponent section is padded to 16 bytes, the L1 alignment of every chip that has these formats.
_L1_ALIGNMENT = 16
_EXPONENT_A = PowerOfTwo(5, 15)
_EXPONENT_B = PowerOfTwo(8, 127)
_E8M0 = PowerOfTwo(8, 127, nan=255)


def _block_float(name: str, bits: int, exponent: PowerOfTwo) -> BlockFormat:
    return BlockFormat(name, 16, SignMagnitude(bits), exponent, alignment=_L1_ALIGNMENT, aligned=True)


def _microscaling(name: str, element: ElementEncoding) -> BlockFormat:
    return BlockFormat(name, 32, element, _E8M0)


bfloat8_b = _block_float("bfloat8_b", 8, _EXPONENT_B)
bfloat4_b = _block_float("bfloat4_b", 4, _EXPONENT_B)
bfloat2_b = _block_float("bfloat2_b", 2, _EXPONENT_B)
bfloat8_a = _block_float("bfloat8_a", 8, _EXPONENT_A)
bfloat4_a = _block_float("bfloat4_a", 4, _EXPONENT_A)
bfloat2_a = _block_float("bfloat2_a", 2, _EXPONENT_A)
mxfp8_e4m3 = _microscaling("mxfp8_e4m3", E4M3)
mxfp8_e5m2 = _microscaling("mxfp8_e5m2", E5M2)
mxfp6_e2m3 = _microscaling("mxfp6_e2m3", E2M3)
mxfp6_e3m2 = _microscaling("mxfp6_e3m2", E3M2)
mxfp4 = _microscaling("mxfp4", E2M1)
mxint8 = _microscaling("mxint8", TwosComplement(8, 6))
nvfp4 = BlockFormat("nvfp4", 16, E2M1, FloatScale(E4M3), tensor_scaled=True)

BLOCK_FORMATS: dict[str, BlockFormat] = {
    entry.name: entry
    for entry in (
        *(bfloat8_b, bfloat4_b, bfloat2_b, bfloat8_a, bfloat4_a, bfloat2_a),
        *(mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, mxfp4, mxint8, nvfp4),
    )
}

_BY_NAME: dict[str, Format] = {
    **SCALAR_FORMATS,
    **{alias: SCALAR_FORMATS[name] for alias, name in ALIASES.items()},
    **BLOCK_FORMATS,
    **{name.replace("bfloat", "bfp"): entry for name, entry in BLOCK_FORMATS.items()},
    **{f"bfp{entry.bits}": entry for entry in (bfloat8_b, bfloat4_b, bfloat2_b)},
    "mxfp4_e2m1": mxfp4,
}


def format_of(value: FormatLike | HasDtype) -> Format:
    """Return the format of `value`: a name, a NumPy dtype, an array, or a format.

    >>> import numpy as np
    >>> format_of("bfloat8_b").bytes_per_tile(1024), format_of("bf16"), format_of(np.zeros(3))
    (1088, format_of('bfloat16'), format_of('float64'))
    """
    if isinstance(value, (ScalarFormat, BlockFormat)):
        return value
    number_format = _find_named(value) if isinstance(value, str) else find_scalar_format(value)
    if number_format is None:
        if not isinstance(value, str) and not hasattr(value, "dtype") and not hasattr(value, "itemsize"):
            raise TypeError(f"expected a format name, a NumPy dtype or an array, got {type(value).__name__} {value!r}")
        name = value if isinstance(value, str) else str(getattr(value, "dtype", value))
        known = [*SCALAR_FORMATS, *BLOCK_FORMATS, *list_plugins("formats")]
        hint = suggest(name, [*known, *_BY_NAME], f"use one of {', '.join(known)}")
        raise FormatError(f"unknown format {name!r}; {hint}")
    return number_format


def _find_named(name: str) -> Format | None:
    """Return the format with a name: our own, or a plug-in's."""
    own = _BY_NAME.get(name.lower())
    added = load_plugin("formats", name, BlockFormat) if own is None else None
    return added if isinstance(added, BlockFormat) else own


def block_format_of(value: FormatLike) -> BlockFormat:
    """Return the block format of `value`, a name or format; raise a FormatError if it is a scalar format.

    >>> block_format_of("bfloat8_b").block
    16
    """
    number_format = format_of(value)
    if not number_format.has_blocks:
        raise FormatError(f"expected a block format ({', '.join(BLOCK_FORMATS)}), got {number_format}")
    return number_format


# `CodeTable`: the values of a quantised tensor's codes, and the scales that multiply them.

_FLOAT8 = {
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
ElementName: TypeAlias = Literal[
    "e2m1", "e2m3", "float8_e4m3", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int", "offset_int"
]


@dataclass(frozen=True, slots=True)
class CodeTable:
    """The numbers that codes of `bits` bits stand for, by the name of their `element`.

    "int" is two's complement; "offset_int" counts from the lowest number, -2^(bits-1).

    >>> CodeTable("e2m1", 4).numbers()[:8].tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """

    element: ElementName
    bits: int

    def numbers(self) -> Singles:
        """Return the number of every code, as float32.

        >>> CodeTable("offset_int", 2).numbers().tolist()
        [-2.0, -1.0, 0.0, 1.0]
        """
        return _numbers(self)

    @property
    def step(self) -> int:
        """The number of codes after which a code starts a byte again.

        >>> CodeTable("e2m1", 4).step, CodeTable("e2m3", 6).step, CodeTable("int", 8).step
        (2, 4, 1)
        """
        return 8 // int(np.gcd(8, self.bits))

    def decode(self, packed: Codes) -> Singles:
        """Return the numbers of rows of packed codes, the first in the lowest bits of the first byte.

        >>> CodeTable("e2m1", 4).decode(np.array([[0x21, 0xF7]], np.uint8)).tolist()
        [[0.5, 1.0, 6.0, -6.0]]
        """
        rows = packed.reshape(-1, packed.shape[-1])
        result: Singles = self.numbers()[unpack_codes(rows, self.bits)]
        return result.reshape(*packed.shape[:-1], result.shape[-1])


@lru_cache(maxsize=64)
def _numbers(table: CodeTable) -> Singles:
    codes = np.arange(1 << table.bits, dtype=np.uint8 if table.bits == 8 else np.int64)
    half = 1 << (table.bits - 1)
    numbers: NDArray[Any]
    if table.element == "offset_int":
        numbers = codes.astype(np.int64) - half
    elif table.element == "int":
        numbers = (codes.astype(np.int64) ^ half) - half
    elif table.element in _FLOAT8:
        numbers = codes.view(_FLOAT8[table.element])
    else:
        encoding = E2M1 if table.element == "e2m1" else E2M3
        if table.bits != encoding.bits:
            raise FormatError(f"{table.element} has codes of {encoding.bits} bits, got {table.bits}")
        numbers = encoding.decode(codes.astype(np.uint8))
    result = numbers.astype(np.float32)
    result.flags.writeable = False
    return result


def decode_e8m0(scales: NDArray[np.uint8]) -> Singles:
    """Return the powers of two 2^(byte - 127) of scale bytes; 255 is NaN.

    >>> decode_e8m0(np.array([127, 126, 255], np.uint8)).tolist()
    [1.0, 0.5, nan]
    """
    powers = np.ldexp(np.float32(1), np.minimum(scales, _E8M0.top_byte).astype(np.int32) - _E8M0.bias)
    return np.where(scales == _E8M0.nan, np.float32(np.nan), powers)
