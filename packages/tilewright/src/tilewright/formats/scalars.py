# SPDX-License-Identifier: Apache-2.0
"""Scalar formats: one number, one fixed number of bytes, one NumPy dtype (from ml_dtypes where NumPy has none).

`NumberFormat` is what scalar and block formats have in common: sizes, sections of a tile, and the range of values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import FormatError


@dataclass(frozen=True, slots=True)
class Sections:
    """The sizes in bytes of the sections of a tile, in storage order: scales, padding, codes.

    >>> Sections(scales=2, padding=14, data=32).total
    48
    """

    scales: int
    padding: int
    data: int

    @property
    def data_offset(self) -> int:
        """The offset of the codes in bytes.

        >>> Sections(scales=2, padding=14, data=32).data_offset
        16
        """
        return self.scales + self.padding

    @property
    def total(self) -> int:
        """The size of the tile in bytes.

        >>> Sections(scales=64, padding=0, data=1024).total
        1088
        """
        return self.scales + self.padding + self.data


@dataclass(frozen=True, slots=True)
class Limits:
    """The range of a format: its lowest, highest and smallest positive finite values.

    >>> print(Limits(lowest=-128, highest=127, smallest=1))
    -128 to 127
    """

    lowest: float
    highest: float
    smallest: float

    def __str__(self) -> str:
        return f"{self.lowest} to {self.highest}"


class NumberFormat:
    """The base of `ScalarFormat` and `BlockFormat`.

    `has_blocks` tells the two apart: in a block format, neighbouring elements share a scale, so that a
    single element has no bytes of its own.

    >>> from tilewright.formats import bfloat8_b, bfloat16
    >>> bfloat16.has_blocks, bfloat8_b.has_blocks
    (False, True)
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

        @property
        def limits(self) -> Limits: ...

        @property
        def value_format(self) -> ScalarFormat: ...

        @property
        def storage_format(self) -> ScalarFormat: ...

        def sections(self, elements: int) -> Sections: ...

    @property
    def max_value(self) -> float:
        """The largest finite value; of a format with a tensor scale, in units of it.

        >>> from tilewright.formats import bfloat4_a, float16
        >>> float16.max_value, bfloat4_a.max_value == 1.75 * 2**16
        (65504.0, True)
        """
        return self.limits.highest

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of unpacked values: its own dtype, or float32 for a block format.

        >>> from tilewright.formats import bfloat8_b, int8
        >>> int8.value_dtype.name, bfloat8_b.value_dtype.name
        ('int8', 'float32')
        """
        return self.value_format.dtype

    def bytes_per_tile(self, elements: int) -> int:
        """Return the size in bytes of a tile with the given number of `elements`.

        >>> from tilewright.formats import bfloat8_b, bfloat4_b, bfloat16
        >>> bfloat16.bytes_per_tile(1024), bfloat8_b.bytes_per_tile(1024), bfloat4_b.bytes_per_tile(1024)
        (2048, 1088, 576)
        """
        return self.sections(elements).total

    def __str__(self) -> str:
        return self.name


Kind: TypeAlias = Literal["float", "int", "uint", "bool"]
Number: TypeAlias = "float | np.generic"


@dataclass(frozen=True, slots=True, repr=False)
class ScalarFormat(NumberFormat):
    """A format with a NumPy dtype: its name, dtype, bits per element, and kind: "float", "int", "uint" or "bool".

    >>> from tilewright.formats import bfloat16, format_of
    >>> bfloat16.dtype, bfloat16.bits, bfloat16.kind
    (dtype(bfloat16), 16, 'float')
    >>> bfloat16
    format_of('bfloat16')
    """

    name: str
    dtype: np.dtype[Any]
    bits: int
    kind: Kind
    has_blocks: ClassVar[Literal[False]] = False
    block: ClassVar[int] = 1

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes.

        >>> from tilewright.formats import int32
        >>> int32.itemsize
        4
        """
        return int(self.dtype.itemsize)

    @property
    def limits(self) -> Limits:
        """The range of values.

        >>> from tilewright.formats import float8_e4m3, int8
        >>> print(int8.limits), float8_e4m3.limits.smallest == 2**-9
        -128 to 127
        (None, True)
        """
        if self.kind == "bool":
            return Limits(0, 1, 1)
        if self.kind != "float":
            bounds = np.iinfo(self.dtype)
            return Limits(int(bounds.min), int(bounds.max), 1)
        # From the bit patterns, since finfo may warn about subnormals: pattern 1 is the smallest positive value of
        # every float format, and values grow with their patterns up to the largest finite one.
        word = np.dtype(f"u{self.itemsize}")
        smallest = float(np.array([1], dtype=word).view(self.dtype)[0])
        highest = float(np.array([_MAX_CODES[self.name]], dtype=word).view(self.dtype)[0])
        return Limits(-highest, highest, smallest)

    def sections(self, elements: int) -> Sections:
        """Return the sections of a tile with the given number of `elements`: all of it is data.

        >>> from tilewright.formats import bfloat16
        >>> bfloat16.sections(1024)
        Sections(scales=0, padding=0, data=2048)
        """
        return Sections(0, 0, elements * self.itemsize)

    @property
    def value_format(self) -> ScalarFormat:
        """The format itself: values are stored as they are."""
        return self

    storage_format = value_format

    def require_scalar(self, caller: str) -> ScalarFormat:
        """Return the format itself; a block format raises an error that names `caller`.

        >>> from tilewright.formats import int8
        >>> int8.require_scalar("a tensor view")
        format_of('int8')
        """
        return self

    def __repr__(self) -> str:
        return f"format_of({self.name!r})"


def _scalar_format(name: str, dtype: DTypeLike, kind: Kind) -> ScalarFormat:
    dtype = np.dtype(dtype)
    return ScalarFormat(name, dtype, 8 * int(dtype.itemsize), kind)


float64 = _scalar_format("float64", np.float64, "float")
float32 = _scalar_format("float32", np.float32, "float")
float16 = _scalar_format("float16", np.float16, "float")
bfloat16 = _scalar_format("bfloat16", ml_dtypes.bfloat16, "float")
float8_e4m3 = _scalar_format("float8_e4m3", ml_dtypes.float8_e4m3fn, "float")
float8_e5m2 = _scalar_format("float8_e5m2", ml_dtypes.float8_e5m2, "float")
int8 = _scalar_format("int8", np.int8, "int")
int16 = _scalar_format("int16", np.int16, "int")
int32 = _scalar_format("int32", np.int32, "int")
int64 = _scalar_format("int64", np.int64, "int")
uint8 = _scalar_format("uint8", np.uint8, "uint")
uint16 = _scalar_format("uint16", np.uint16, "uint")
uint32 = _scalar_format("uint32", np.uint32, "uint")
uint64 = _scalar_format("uint64", np.uint64, "uint")
bool_ = _scalar_format("bool", np.bool_, "bool")

_MAX_CODES = {
    "float64": 0x7FEFFFFFFFFFFFFF,
    "float32": 0x7F7FFFFF,
    "float16": 0x7BFF,
    "bfloat16": 0x7F7F,
    "float8_e4m3": 0x7E,
    "float8_e5m2": 0x7B,
}

SCALAR_FORMATS: dict[str, ScalarFormat] = {
    entry.name: entry
    for entry in (
        *(float64, float32, float16, bfloat16, float8_e4m3, float8_e5m2),
        *(int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_),
    )
}

# The names that other systems print for the same formats, and people write.
ALIASES = {
    **{f"{short}{bits}": f"float{bits}" for short in ("fp", "f") for bits in (16, 32, 64)},
    **{f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3",
    "float8_e4m3fn": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
}

# a format, its name, or a NumPy dtype or scalar type
FormatName: TypeAlias = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat8_b", "bfloat4_b", "bfloat2_b", "bfloat8_a", "bfloat4_a", "bfloat2_a",
    "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4",
]  # fmt: skip
"""The names of our formats, which an editor completes; plug-ins add others."""

FormatLike: TypeAlias = "NumberFormat | FormatName | str | np.dtype[Any] | type[Any]"

_BY_DTYPE = {entry.dtype: entry for entry in SCALAR_FORMATS.values()}


def find_scalar_format(value: object) -> ScalarFormat | None:
    """Return the scalar format of a name, dtype, array or format, or None if it has none.

    >>> find_scalar_format("bf16"), find_scalar_format(np.dtype(">f4")), find_scalar_format("bfloat8_b")
    (format_of('bfloat16'), format_of('float32'), None)
    """
    if isinstance(value, ScalarFormat):
        return value
    if isinstance(value, str):
        return SCALAR_FORMATS.get(ALIASES.get(value.lower(), value.lower()))
    if isinstance(value, type) and issubclass(value, np.generic):
        value = np.dtype(value)
    dtype = value if isinstance(value, np.dtype) else getattr(value, "dtype", None)
    if isinstance(dtype, ScalarFormat):  # of a tensor, or of a dialect's number type
        return dtype
    return _BY_DTYPE.get(dtype.newbyteorder("=")) if isinstance(dtype, np.dtype) else None


def scalar_format_of(value: object) -> ScalarFormat:
    """Return the scalar format of `value`, a name, dtype, array or format; raise a FormatError if it has none.

    >>> scalar_format_of("fp8_e4m3")
    format_of('float8_e4m3')
    """
    scalar_format = find_scalar_format(value)
    if scalar_format is None:
        shown = getattr(value, "name", None) or getattr(value, "dtype", value)
        raise FormatError(
            f"expected a scalar format ({', '.join(SCALAR_FORMATS)}), got {str(shown)!r}; to pack a block format, use"
            " format_of(name).pack(array)"
        )
    return scalar_format


# Rounding of magnitudes, counted in steps of a format, to a whole number of steps.

Floats: TypeAlias = NDArray[np.float64]
Rounding: TypeAlias = Literal["nearest_even", "truncate", "stochastic"]
Rounder: TypeAlias = Callable[[Floats], Floats]

ROUNDINGS = ("nearest_even", "truncate", "stochastic")

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def validate_rounding(rounding: object, seed: object) -> None:
    """Raise a FormatError unless `rounding` is known, with a `seed` if and only if it is stochastic.

    >>> validate_rounding("stochastic", 7)
    """
    if rounding not in ROUNDINGS:
        raise FormatError(f"unknown rounding {rounding!r}; use one of {', '.join(map(repr, ROUNDINGS))}")
    if rounding != "stochastic":
        if seed is not None:
            raise FormatError(
                f"rounding {rounding!r} takes no seed, got {seed!r}; leave it out, or use rounding='stochastic'"
            )
    elif isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise FormatError(f"stochastic rounding needs a seed from 0 to 2^64 - 1 to be reproducible, got {seed!r}")


def make_rounder(rounding: Rounding, seed: int | None, first: int, shape: tuple[int, ...]) -> Rounder:
    """Return a function that rounds an array of magnitudes of this `shape` to whole numbers.

    `first` is the position of its first element in the complete array. Stochastic rounding rounds up with a
    probability equal to the fraction, so that the expected result is the value itself.

    >>> make_rounder("nearest_even", None, 0, (4,))(np.array([0.5, 1.5, 2.5, 2.75])).tolist()
    [0.0, 2.0, 2.0, 3.0]
    >>> make_rounder("stochastic", 7, 0, (4,))(np.array([0.5, 0.5, 0.5, 3.0])).tolist()
    [0.0, 1.0, 0.0, 3.0]
    """
    if rounding == "nearest_even":
        return np.rint
    if rounding == "truncate":
        return np.floor
    threshold = noise(seed or 0, first, int(np.prod(shape, dtype=np.int64))).reshape(shape)

    def stochastic(values: Floats) -> Floats:
        whole = np.floor(values)
        return whole + (threshold < values - whole)

    return stochastic


def noise(seed: int, first: int, count: int) -> Floats:
    """Return `count` random numbers in [0, 1) that depend only on the seed and on their positions from `first` on.

    This is the finaliser of SplitMix64 applied to a counter, without generator state: an array gets the same noise in
    one piece or in several, on any number of threads, with every version of NumPy.

    >>> noise(7, 0, 4)[2:].tolist() == noise(7, 2, 2).tolist()
    True
    """
    # The seed is mixed as well: otherwise the noise of seed 8 would be the noise of seed 7, shifted.
    start = _mix(np.array([seed], dtype=np.uint64))
    position = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    # 53 bits, as many as a float64 holds, so that the distribution is uniform.
    return (_mix(position * _GOLDEN + start) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for shift, factor in _MIX:
        words = (words ^ (words >> shift)) * factor
    return words ^ (words >> np.uint64(31))


# Encodings of the elements and scales of a block: a value is `ratio x scale`, both of at most eight bits.

Codes: TypeAlias = NDArray[np.uint8]


def pack_codes(codes: Codes, bits: int) -> Codes:
    """Return each row of codes, one per byte, packed without gaps, the first code in the lowest bits of the first byte.

    >>> pack_codes(np.array([[1, 2, 3, 4]], dtype=np.uint8), 4).tolist()
    [[33, 67]]
    """
    if bits == 8:
        return codes
    single = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(single.reshape(len(codes), -1), axis=-1, bitorder="little")


def unpack_codes(packed: Codes, bits: int) -> Codes:
    """Return each row of packed codes as one code per byte: the inverse of `pack_codes`; other bits are dropped.

    >>> unpack_codes(np.array([[33, 67]], dtype=np.uint8), 4).tolist()
    [[1, 2, 3, 4]]
    """
    if bits == 8:
        return packed
    count = packed.shape[-1] * 8 // bits
    single = np.unpackbits(packed, axis=-1, bitorder="little", count=count * bits)
    codes = np.packbits(single.reshape(-1, bits), axis=-1, bitorder="little")
    return codes.reshape(len(packed), count)


def _validate_bits(encoding: object, bits: int, least: int) -> None:
    if not least <= bits <= 8:
        raise FormatError(f"{encoding!r}: expected {least} to 8 bits per code, got {bits}")


@dataclass(frozen=True, slots=True)
class _EqualSteps:
    """Codes in equal steps of `smallest`, with as many steps of either sign; no code is NaN or infinite."""

    bits: int
    nan: ClassVar[int | None] = None
    infinity: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        _validate_bits(self, self.bits, 2)

    @property
    def smallest(self) -> float:
        """One step."""
        raise NotImplementedError

    @property
    def largest(self) -> float:
        """The largest ratio.

        >>> SignMagnitude(4).largest, TwosComplement(8, 6).largest
        (1.75, 1.984375)
        """
        return ((1 << (self.bits - 1)) - 1) * self.smallest

    def _count_steps(self, ratios: Floats, round_off: Rounder) -> Floats:
        """Return the magnitudes of ratios as whole numbers of steps."""
        return np.minimum(round_off(np.abs(ratios) / self.smallest), (1 << (self.bits - 1)) - 1)


@dataclass(frozen=True, slots=True)
class SignMagnitude(_EqualSteps):
    """Sign and magnitude in equal steps, with a largest ratio just below 2: the elements of bfloat8_b.

    Ratios that round to zero get code 0, never negative zero. (Code 2^(bits-1) decodes as -0.)

    >>> seven = SignMagnitude(8)
    >>> seven.encode(np.array([1.0, -1.5, -0.001, 1.999])).tolist()
    [64, 224, 0, 127]
    >>> seven.decode(np.array([64, 224], dtype=np.uint8)).tolist()
    [1.0, -1.5]
    """

    top_exponent: ClassVar[int] = 0  # the largest power of two is 1

    @property
    def smallest(self) -> float:
        """One step.

        >>> SignMagnitude(4).smallest
        0.25
        """
        return 2.0 ** (2 - self.bits)

    def encode(self, ratios: Floats, round_off: Rounder = np.rint) -> Codes:
        """Return the codes of the `ratios`; `round_off` rounds to whole steps.

        >>> SignMagnitude(2).encode(np.array([1.0, -1.9, 0.2])).tolist()
        [1, 3, 0]
        """
        steps = self._count_steps(ratios, round_off)
        sign = np.where(np.signbit(ratios) & (steps != 0), 1 << (self.bits - 1), 0)
        return (steps + sign).astype(np.uint8)

    def decode(self, codes: Codes) -> Floats:
        """Return the ratios of the `codes`.

        >>> SignMagnitude(4).decode(np.array([1, 15, 8], dtype=np.uint8)).tolist()
        [0.25, -1.75, -0.0]
        """
        steps = (codes & np.uint8((1 << (self.bits - 1)) - 1)).astype(np.float64) * self.smallest
        return np.where(codes >> np.uint8(self.bits - 1), -steps, steps)


@dataclass(frozen=True, slots=True)
class TwosComplement(_EqualSteps):
    """A two's complement integer of `bits` bits in steps of 2^-fraction_bits: the elements of mxint8.

    `encode` never produces the lowest code (-128 for 8 bits), so that both signs have the same range.

    >>> TwosComplement(8, 6).encode(np.array([1.0, -0.25, 1.999, -2.0])).astype(np.int8).tolist()
    [64, -16, 127, -127]
    """

    fraction_bits: int

    @property
    def top_exponent(self) -> int:
        """The exponent of the largest power of two.

        >>> TwosComplement(8, 6).top_exponent
        0
        """
        return self.bits - 2 - self.fraction_bits

    @property
    def smallest(self) -> float:
        """One step.

        >>> TwosComplement(8, 6).smallest
        0.015625
        """
        return 2.0**-self.fraction_bits

    def encode(self, ratios: Floats, round_off: Rounder = np.rint) -> Codes:
        """Return the codes of the `ratios`; `round_off` rounds to whole steps.

        >>> TwosComplement(8, 6).encode(np.array([-1.0])).tolist()
        [192]
        """
        steps = self._count_steps(ratios, round_off)
        signed = np.where(np.signbit(ratios), -steps, steps).astype(np.int64)
        return (signed & np.int64((1 << self.bits) - 1)).astype(np.uint8)

    def decode(self, codes: Codes) -> Floats:
        """Return the ratios of the `codes`.

        >>> TwosComplement(8, 6).decode(np.array([192, 128], dtype=np.uint8)).tolist()
        [-1.0, -2.0]
        """
        half = np.int64(1 << (self.bits - 1))
        return ((codes.astype(np.int64) ^ half) - half).astype(np.float64) * self.smallest


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A binary float: sign, exponent (bias 2^(exponent_bits-1) - 1) and mantissa, with subnormals and negative zero.

    `specials` gives the meaning of the highest codes: "none" (all are finite, as in OCP FP6 and FP4), "nan" (only the
    very last is NaN, as in float8_e4m3fn) or "ieee" (the highest exponent holds infinity and NaN, as in float8_e5m2).

    >>> e2m1 = SmallFloat(2, 1)
    >>> e2m1.decode(np.arange(8, dtype=np.uint8)).tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    >>> e2m1.encode(np.array([0.25, 0.75, 5.0, -100.0])).tolist()
    [0, 2, 6, 15]
    """

    exponent_bits: int
    mantissa_bits: int
    specials: Literal["none", "nan", "ieee"] = "none"

    def __post_init__(self) -> None:
        if self.exponent_bits < 1 or self.mantissa_bits < 1:
            raise FormatError(f"{self!r}: expected at least one exponent bit and one mantissa bit")
        _validate_bits(self, self.bits, 3)
        if self.specials not in ("none", "nan", "ieee"):
            raise FormatError(f"{self!r}: expected specials 'none', 'nan' or 'ieee', got {self.specials!r}")

    @property
    def bits(self) -> int:
        """The number of bits of a code.

        >>> SmallFloat(3, 2).bits
        6
        """
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the smallest normal number and of the subnormals.

        >>> SmallFloat(4, 3).lowest_exponent
        -6
        """
        return 2 - (1 << (self.exponent_bits - 1))

    @property
    def largest_code(self) -> int:
        """The code of the largest finite number.

        >>> hex(SmallFloat(4, 3, "nan").largest_code)
        '0x7e'
        """
        last = (1 << (self.bits - 1)) - 1
        return {"none": last, "nan": last - 1, "ieee": last - (1 << self.mantissa_bits)}[self.specials]

    @property
    def nan(self) -> int | None:
        """The code of the quiet NaN with a clear sign, or None.

        >>> SmallFloat(4, 3, "nan").nan, SmallFloat(5, 2, "ieee").nan, SmallFloat(2, 1).nan
        (127, 126, None)
        """
        if self.specials == "none":
            return None
        last = (1 << (self.bits - 1)) - 1
        return last if self.specials == "nan" else last + 1 - (1 << (self.mantissa_bits - 1))

    @property
    def infinity(self) -> int | None:
        """The code of positive infinity, or None.

        >>> SmallFloat(5, 2, "ieee").infinity, SmallFloat(4, 3, "nan").infinity
        (124, None)
        """
        return self.largest_code + 1 if self.specials == "ieee" else None

    @property
    def largest(self) -> float:
        """The largest finite number.

        >>> SmallFloat(4, 3, "nan").largest, SmallFloat(5, 2, "ieee").largest, SmallFloat(2, 3).largest
        (448.0, 57344.0, 7.5)
        """
        return float(_decoding_table(self)[self.largest_code])

    @property
    def smallest(self) -> float:
        """The smallest positive number, a subnormal.

        >>> SmallFloat(4, 3, "nan").smallest == 2**-9
        True
        """
        return 2.0 ** (self.lowest_exponent - self.mantissa_bits)

    @property
    def top_exponent(self) -> int:
        """The exponent of the largest power of two.

        >>> SmallFloat(4, 3, "nan").top_exponent, SmallFloat(2, 1).top_exponent
        (8, 2)
        """
        return int(np.frexp(self.largest)[1]) - 1

    def encode(self, ratios: Floats, round_off: Rounder = np.rint) -> Codes:
        """Return the codes of the `ratios`, by `round_off`; infinity needs "ieee" and NaN a format that has one.

        >>> SmallFloat(5, 2, "ieee").encode(np.array([1.0, -1e9, np.inf, np.nan])).tolist()
        [60, 251, 124, 126]
        """
        finite = np.isfinite(ratios)
        codes = np.minimum(self._magnitude_codes(np.where(finite, ratios, 0.0), round_off), self.largest_code)
        codes |= np.signbit(ratios).astype(np.int64) << (self.bits - 1)
        if not finite.all():
            if self.infinity is not None:
                signed = np.where(np.signbit(ratios), self.infinity | (1 << (self.bits - 1)), self.infinity)
                codes = np.where(np.isinf(ratios), signed, codes)
            if self.nan is not None:
                codes = np.where(np.isnan(ratios), self.nan, codes)
        return codes.astype(np.uint8)

    def overflows(self, ratios: Floats) -> NDArray[np.bool_]:
        """Return for each of the finite `ratios` whether it rounds (to nearest) beyond the largest number.

        >>> SmallFloat(4, 3, "nan").overflows(np.array([448.0, 464.0, 465.0])).tolist()
        [False, False, True]
        """
        return self._magnitude_codes(ratios, np.rint) > self.largest_code

    def decode(self, codes: Codes) -> Floats:
        """Return the ratios of the `codes`.

        >>> SmallFloat(4, 3, "nan").decode(np.array([0x38, 0xFE, 0x80], dtype=np.uint8)).tolist()
        [1.0, -448.0, -0.0]
        """
        return _decoding_table(self)[codes]

    def _magnitude_codes(self, ratios: Floats, round_off: Rounder) -> NDArray[np.int64]:
        """Return the codes without sign bits, as if the exponent had no upper limit."""
        magnitude = np.abs(ratios)
        exponent = np.frexp(magnitude)[1].astype(np.int64) - 1
        exponent = np.where(magnitude == 0.0, self.lowest_exponent, np.maximum(exponent, self.lowest_exponent))
        steps = round_off(np.ldexp(magnitude, self.mantissa_bits - exponent)).astype(np.int64)
        # The leading bit of a normal number is part of `steps` and adds the missing one to the exponent field; a
        # subnormal has no leading bit. A carry from rounding moves the sum to the next exponent by itself.
        return steps + ((exponent - self.lowest_exponent) << self.mantissa_bits)


ElementEncoding: TypeAlias = SignMagnitude | TwosComplement | SmallFloat

E2M1 = SmallFloat(2, 1)
E2M3 = SmallFloat(2, 3)
E3M2 = SmallFloat(3, 2)
E4M3 = SmallFloat(4, 3, "nan")
E5M2 = SmallFloat(5, 2, "ieee")


@lru_cache(maxsize=64)
def _decoding_table(encoding: SmallFloat) -> Floats:
    """Return the number of every code of a small float."""
    half = 1 << (encoding.bits - 1)
    code = np.arange(half)
    field, fraction = code >> encoding.mantissa_bits, code & ((1 << encoding.mantissa_bits) - 1)
    steps = fraction + (np.minimum(field, 1) << encoding.mantissa_bits)
    exponent = np.maximum(field, 1) - 1 + encoding.lowest_exponent - encoding.mantissa_bits
    positive = np.ldexp(steps.astype(np.float64), exponent)
    positive[encoding.largest_code + 1 :] = np.nan
    if encoding.infinity is not None:
        positive[encoding.infinity] = np.inf
    table = np.concatenate([positive, -positive])
    table.flags.writeable = False
    return table


_TOP_FLOAT32 = 127  # the exponent of the largest finite float32


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """A scale 2^(byte - bias) with `bits` significant bits: the exponents of block floats, and E8M0 of OCP MX.

    The scale is chosen so that the largest magnitude of a block gets the top exponent of its elements, if it fits.

    >>> e8m0 = PowerOfTwo(8, 127, nan=255)
    >>> e8m0.choose(np.array([1.0, 6.0, 0.0]), E2M1).tolist()
    [125, 127, 0]
    """

    bits: int
    bias: int
    nan: int | None = None

    @property
    def last_byte(self) -> int:
        """The largest valid byte.

        >>> PowerOfTwo(5, 15).last_byte, PowerOfTwo(8, 127, nan=255).last_byte
        (31, 255)
        """
        return (1 << self.bits) - 1

    @property
    def top_byte(self) -> int:
        """The largest byte that stands for a number.

        >>> PowerOfTwo(5, 15).top_byte, PowerOfTwo(8, 127, nan=255).top_byte
        (31, 254)
        """
        return self.last_byte - 1 if self.nan == self.last_byte else self.last_byte

    @property
    def smallest(self) -> float:
        """The smallest scale.

        >>> PowerOfTwo(5, 15).smallest == 2**-15
        True
        """
        return 2.0**-self.bias

    def choose(self, largest: Floats, element: ElementEncoding) -> Codes:
        """Return the scale bytes of blocks with the given `largest` magnitudes and `element` encoding.

        >>> PowerOfTwo(5, 15).choose(np.array([1e9, 1.0, 1e-9]), E4M3).tolist()
        [31, 7, 0]
        """
        exponent = np.frexp(largest)[1].astype(np.int64) - 1
        byte = np.clip(exponent - element.top_exponent + self.bias, 0, self.top_byte)
        return np.where(largest == 0.0, 0, byte).astype(np.uint8)

    def value(self, scales: Codes) -> Floats:
        """Return the factors of the scale bytes `scales`.

        >>> PowerOfTwo(8, 127, nan=255).value(np.array([127, 120, 255], dtype=np.uint8)).tolist()
        [1.0, 0.0078125, nan]
        """
        factors = np.ldexp(1.0, scales.astype(np.int64) - self.bias)
        return factors if self.nan is None else np.where(scales == self.nan, np.nan, factors)

    def highest(self, element: ElementEncoding) -> float:
        """Return the largest value that an `element` encoding with these scales can represent.

        >>> PowerOfTwo(5, 15).highest(E4M3) == 448 * 2**16
        True
        """
        return element.largest * 2.0 ** min(self.top_byte - self.bias, _TOP_FLOAT32 - element.top_exponent)


@dataclass(frozen=True, slots=True)
class FloatScale:
    """A scale that is a small float without sign: the E4M3 scales of nvfp4.

    The scale is chosen (to nearest even) so that the largest magnitude of a block becomes the largest element. Only a
    block of zeros has scale 0; any other scale that would round to 0 becomes the smallest scale.

    >>> scale = FloatScale(E4M3)
    >>> scale.value(scale.choose(np.array([6.0, 10.0, 1e-9, 0.0, 1e9]), E2M1)).tolist()
    [1.0, 1.625, 0.001953125, 0.0, 448.0]
    """

    encoding: SmallFloat

    @property
    def nan(self) -> int | None:
        """The byte of NaN.

        >>> FloatScale(E4M3).nan
        127
        """
        return self.encoding.nan

    @property
    def last_byte(self) -> int:
        """255: every byte is valid."""
        return 255

    @property
    def smallest(self) -> float:
        """The smallest positive scale.

        >>> FloatScale(E4M3).smallest == 2**-9
        True
        """
        return self.encoding.smallest

    def choose(self, largest: Floats, element: ElementEncoding) -> Codes:
        """Return the scale bytes of blocks with the given `largest` magnitudes and `element` encoding.

        >>> FloatScale(E4M3).choose(np.array([448.0, 0.0]), E4M3).tolist()
        [56, 0]
        """
        scale_bytes = self.encoding.encode(largest / element.largest)
        return np.maximum(scale_bytes, (largest > 0.0).astype(np.uint8))

    def value(self, scales: Codes) -> Floats:
        """Return the factors of the scale bytes `scales`.

        >>> FloatScale(E4M3).value(np.array([0x38, 0x7F], dtype=np.uint8)).tolist()
        [1.0, nan]
        """
        return self.encoding.decode(scales)

    def highest(self, element: ElementEncoding) -> float:
        """Return the largest value that an `element` encoding with these scales can represent, without a tensor scale.

        >>> FloatScale(E4M3).highest(E2M1)
        2688.0
        """
        return self.encoding.largest * element.largest


ScaleEncoding: TypeAlias = PowerOfTwo | FloatScale


# `cast`: conversions between scalar formats in NumPy. The other engines must give the same bits.

OnOverflow: TypeAlias = Literal["saturate", "raise"]
Singles: TypeAlias = NDArray[np.float32]

_FLOAT8: dict[ScalarFormat, SmallFloat] = {float8_e4m3: E4M3, float8_e5m2: E5M2}


def cast(array: ArrayLike, target: FormatLike, on_overflow: OnOverflow = "saturate") -> NDArray[Any]:
    """Return a copy of `array` in the scalar format `target`.

    The rules:

    1. To the same format: the bits are copied.
    2. To a float: round to nearest, ties to even. float64 and integers become float32 first, then the smaller float:
       two roundings for float16, bfloat16 and float8, as in torch. Subnormals are preserved.
    3. Too large for float32, float16 or bfloat16: infinity. Too large or infinite for float8: the largest number of
       that sign (448 and 57344), although float8_e5m2 has an infinity.
    4. To float8_e4m3, a magnitude below 2^-6 becomes a zero of the same sign: no subnormals are produced.
       float8_e5m2 has subnormals.
    5. NaN becomes the quiet NaN with a clear sign and no payload (0x7FC0 in bfloat16, 0x7F in float8_e4m3). Only
       bfloat16 to float32 preserves sign and payload.
    6. Integer to integer keeps the low bits. Float to integer truncates; out of range it gives the nearest limit, and
       NaN gives 0.
    7. To bool: everything but zero is True, including NaN. From bool: 0 and 1.

    With `on_overflow="raise"`, an element that is out of range by rule 3 or 6 raises a `FormatError` instead. An
    infinity that stays an infinity is not an overflow.

    >>> cast(np.float32([1.00390625, 1.01171875, np.nan]), "bfloat16").view(np.uint16).tolist()
    [16256, 16258, 32704]
    >>> cast(np.float32([300.7, -5.0, np.nan]), "uint8").tolist()
    [255, 0, 0]
    >>> cast(np.array([300, -1]), "uint8").tolist()
    [44, 255]
    """
    values = np.asarray(array)
    source, wanted = scalar_format_of(values), scalar_format_of(target)
    if on_overflow not in ("saturate", "raise"):
        raise FormatError(f"expected on_overflow 'saturate' or 'raise', got {on_overflow!r}")
    shape = values.shape
    values = np.atleast_1d(values).astype(source.dtype, copy=False)  # in the byte order of this machine
    if source == wanted:
        return values.reshape(shape).copy()
    with np.errstate(all="ignore"):
        result, lost = _convert(values, source, wanted, on_overflow == "raise")
    if on_overflow == "raise" and lost is not None and lost.any():
        _raise_overflow(values.reshape(shape), lost.reshape(shape), source, wanted)
    return result.reshape(shape)


def fit_values(values: ArrayLike, target: FormatLike) -> NDArray[Any]:
    """Return numbers in the scalar format `target`; raise a FormatError if one of them is not a value of it.

    `values` is a number or an array. Integer formats take whole numbers within their limits, bool takes 0 and 1. Float
    formats round to nearest, and refuse a finite number that rounds to one beyond their limits, or an infinity that
    they do not have. `cast` converts such numbers instead.

    >>> fit_values([1.0, 2], "int8"), fit_values(0.1, "bfloat16").item()
    (array([1, 2], dtype=int8), 0.10009765625)
    >>> try:
    ...     fit_values([7, 300], "uint8")
    ... except FormatError as problem:
    ...     print(str(problem).partition(";")[0])
    300 at 1 is not a value of uint8, which holds whole numbers from 0 to 255
    """
    wanted = scalar_format_of(target)
    types, low, high = direct_range(wanted)
    number: Any = values
    kind: type = number.__class__
    if kind in types and low <= number <= high:
        return np.array(number, wanted.dtype)
    array = np.asarray(values)
    if array.dtype == wanted.dtype:
        return array
    if array.dtype.kind in "Oc" or array.dtype == np.longdouble:
        array = _narrow(array, wanted)
    elif array.dtype.kind in "USMm":
        raise TypeError(f"expected numbers of {wanted}, got {values!r}")
    source = scalar_format_of(array)
    with np.errstate(all="ignore"):
        result, lost = _fit(array.reshape(-1).astype(source.dtype, copy=False), source, wanted)
    if lost.any():
        _raise_misfit(array, lost.reshape(array.shape), wanted)
    return result.reshape(array.shape)


def _fit(values: NDArray[Any], source: ScalarFormat, target: ScalarFormat) -> tuple[NDArray[Any], Any]:
    """Return the values in another format, and which of them are not values of it."""
    if target.kind == "float":
        result = values.astype(target.dtype)
        if source.kind != "float":
            return result, ~np.isfinite(result)
        return result, (np.isfinite(values) != np.isfinite(result)) | (np.isinf(values) != np.isinf(result))
    if target.kind == "bool":
        result = values != 0
    elif source.kind == "float":
        values = _as_float64(values, source)
        result, lost = _float_to_integer(values, target)
        return result, lost | (result != values)
    else:
        result = values.astype(target.dtype)
        if source.kind != "bool":
            return result, _out_of_range(values, target)
    return result, result != values


@lru_cache(maxsize=len(SCALAR_FORMATS))
def direct_range(target: ScalarFormat) -> tuple[frozenset[type], float, float]:
    """Return (types, low, high): a number of one of these types from low to high fits `target` without a closer look.

    >>> types, low, high = direct_range(scalar_format_of("int8"))
    >>> int in types, float in types, low, high
    (True, False, -128, 127)
    """
    # not the smaller floats of NumPy: the limits of a larger format overflow when they are compared with them
    types = {int, bool} if target.kind != "float" else {int, bool, float, np.float64}
    return frozenset(types), target.limits.lowest, target.limits.highest


def _narrow(array: NDArray[Any], target: ScalarFormat) -> NDArray[Any]:
    """Return Python objects, long doubles or complex numbers as float64 or as `target`, after checking them."""
    lost = np.array([not _is_value(number, target) for number in array.ravel().tolist()], bool)
    if lost.any():
        _raise_misfit(array, lost.reshape(array.shape), target)
    return array.astype(np.float64 if target.kind == "float" else target.dtype)


def _is_value(number: object, target: ScalarFormat) -> bool:
    if isinstance(number, complex | np.complexfloating):
        raise FormatError(f"{number} is not a value of {target}: it is complex; store its real or imaginary part")
    if not isinstance(number, Real):
        raise TypeError(f"expected a number of {target}, got {type(number).__name__} {number!r}")
    real: Any = number
    within = bool(target.limits.lowest <= real <= target.limits.highest)
    if target.kind == "float":
        return within or bool(real != real or abs(real) == inf)
    return within and bool(real == int(real))


def _locate_first(lost: NDArray[np.bool_]) -> tuple[tuple[int, ...], str]:
    """Return the index of the first element of a mask, and as words."""
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), lost.shape))
    return first, f" at {first[0] if len(first) == 1 else first}" if first else ""


def _raise_misfit(values: NDArray[Any], lost: NDArray[np.bool_], target: ScalarFormat) -> None:
    first, where = _locate_first(lost)
    number = values[first]
    holds = {"bool": "0 and 1", "float": f"numbers from {target.limits}"}.get(
        target.kind, f"whole numbers from {target.limits}"
    )
    raise FormatError(
        f"{getattr(number, 'item', lambda: number)()}{where} is not a value of {target}, which holds {holds}; use one"
        f" that fits, or convert on purpose: tilewright.formats.cast(values, {target.name!r})"
    )


def to_float32(values: NDArray[Any]) -> Singles:
    """Return the values as float32 by the rules of `cast`, without a copy if they are float32 already.

    >>> to_float32(np.array([1, 2], dtype=np.int8)).dtype
    dtype('float32')
    """
    source = scalar_format_of(values)
    with np.errstate(all="ignore"):
        return _as_float32(values.astype(source.dtype, copy=False), source)


def out_of_range(values: NDArray[Any], target: ScalarFormat) -> NDArray[np.bool_]:
    """Return which elements `cast` would give the nearest limit, an infinity or other bits, since they do not fit.

    >>> out_of_range(np.array([65519.0, 65520.0, np.inf]), float16).tolist()
    [False, True, False]
    """
    source = scalar_format_of(values)
    if source == target:
        return np.zeros(values.shape, np.bool_)
    with np.errstate(all="ignore"):
        lost = _convert(values, source, target, check=True)[1]
    return np.zeros(values.shape, np.bool_) if lost is None else lost


def _convert(
    values: NDArray[Any], source: ScalarFormat, target: ScalarFormat, check: bool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the converted values and, if `check`, a mask of the elements that were out of range."""
    if target.kind == "bool":
        return (_as_float64(values, source) if source.kind == "float" else values) != 0, None
    if target.kind == "float":
        return _to_float(values, source, target, check)
    if source.kind == "float":
        return _float_to_integer(_as_float64(values, source), target)
    return values.astype(target.dtype), _out_of_range(values, target) if check and source.kind != "bool" else None


def _to_float(
    values: NDArray[Any], source: ScalarFormat, target: ScalarFormat, check: bool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    if target == float64:
        return _as_float64(values, source), None
    single = _as_float32(values, source)
    if target in _FLOAT8:
        return _to_float8(single, target, check)
    if target == float32:
        result: NDArray[Any] = single
    elif target == bfloat16:
        result = _to_bfloat16(single)
    else:
        result = single.astype(np.float16)
        result[np.isnan(single)] = np.nan
    if not check:
        return result, None
    finite = np.isfinite(_as_float64(values, source)) if source.kind == "float" else np.bool_(True)
    return result, finite & np.isinf(_as_float32(result, target))


def _to_bfloat16(single: Singles) -> NDArray[Any]:
    bits = single.view(np.uint32)
    # Adding just under half of the discarded part, plus one where the rest is odd, rounds ties to even.
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(single), 0x7FC0, rounded).astype(np.uint16).view(bfloat16.dtype)


def _to_float8(single: Singles, target: ScalarFormat, check: bool) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    encoding = _FLOAT8[target]
    wide = single.astype(np.float64)
    limited = np.where(np.isinf(wide), np.copysign(encoding.largest, wide), wide)
    if target == float8_e4m3:
        tiny = np.abs(limited) < 2.0**encoding.lowest_exponent
        limited = np.where(tiny, np.copysign(0.0, limited), limited)
    lost = None
    if check:
        lost = np.isinf(wide) | encoding.overflows(np.where(np.isfinite(wide), wide, 0.0))
    return encoding.encode(limited).view(target.dtype), lost


def _float_to_integer(wide: Floats, target: ScalarFormat) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    lowest, highest = int(target.limits.lowest), int(target.limits.highest)
    whole = np.trunc(wide)
    # highest + 1 is a power of two and lowest one or zero, so both are exact in float64 even for 64-bit integers.
    high, low, nan = whole >= float(highest + 1), whole < float(lowest), np.isnan(whole)
    lost = high | low | nan
    result = np.where(lost, 0.0, whole).astype(target.dtype)
    result[high], result[low] = highest, lowest
    return result, lost


def _out_of_range(values: NDArray[Any], target: ScalarFormat) -> NDArray[np.bool_]:
    """Return which integers do not fit the target, comparing within the dtype of the source."""
    own = np.iinfo(values.dtype)
    low = max(int(target.limits.lowest), int(own.min))
    high = min(int(target.limits.highest), int(own.max))
    below: NDArray[np.bool_] = values < values.dtype.type(low)
    above: NDArray[np.bool_] = values > values.dtype.type(high)
    return below | above


def _as_float32(values: NDArray[Any], source: ScalarFormat) -> Singles:
    if source == float32:
        return values
    if source == bfloat16:
        return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if source in _FLOAT8:
        return _canonicalize_nan(_FLOAT8[source].decode(values.view(np.uint8)).astype(np.float32))
    single = values.astype(np.float32)
    return _canonicalize_nan(single) if source in (float16, float64) else single


def _as_float64(values: NDArray[Any], source: ScalarFormat) -> Floats:
    if source == float64:
        return values
    if source.kind != "float":
        return values.astype(np.float64)
    return _canonicalize_nan(_as_float32(values, source).astype(np.float64))


def _canonicalize_nan(values: NDArray[Any]) -> NDArray[Any]:
    """Give every NaN the same bits, in place: what happens to a payload depends on the processor."""
    values[np.isnan(values)] = np.nan
    return values


def _raise_overflow(values: NDArray[Any], lost: NDArray[np.bool_], source: ScalarFormat, target: ScalarFormat) -> None:
    first, where = _locate_first(lost)
    instead = "keep the low bits" if source.kind != "float" and target.kind != "float" else "take the nearest limit"
    if target in (float32, float16, bfloat16):
        instead = "get an infinity"
    elif target.kind != "float" and source.kind == "float":
        instead += " (0 for NaN)"
    raise FormatError(
        f"cannot cast {source} to {target}: {values[first].item()}{where} is outside {target.limits}; "
        f"use a wider format, or on_overflow='saturate' to {instead}"
    )
