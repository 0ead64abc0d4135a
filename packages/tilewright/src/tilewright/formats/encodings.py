# SPDX-License-Identifier: Apache-2.0
"""Encodings of the elements and scales of a block: a value is `ratio x scale`, both of at most eight bits.

An element encoding turns float64 ratios into codes (`encode`) and back (`decode`); `largest` and `smallest` are the
extreme positive ratios, `top_exponent` is the exponent of the largest power of two. `nan` and `infinity` are codes, or
None if the encoding has none; then `encode` does not accept such values. A finite ratio that is too large becomes
`largest` with its sign. A scale encoding turns the largest magnitude of each block into a scale byte (`choose`), and
scale bytes into factors (`value`); `nan` is the byte of NaN, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .rounding import Floats, Rounder

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
        """Return one step."""
        raise NotImplementedError

    @property
    def largest(self) -> float:
        """Return the largest ratio.

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
        """Return one step.

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
        """Return the exponent of the largest power of two.

        >>> TwosComplement(8, 6).top_exponent
        0
        """
        return self.bits - 2 - self.fraction_bits

    @property
    def smallest(self) -> float:
        """Return one step.

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

    `specials` says what the highest codes mean: "none" (all are finite, as in OCP FP6 and FP4), "nan" (only the very
    last is NaN, as in float8_e4m3fn) or "ieee" (the highest exponent holds infinity and NaN, as in float8_e5m2).

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
        """Return the number of bits of a code.

        >>> SmallFloat(3, 2).bits
        6
        """
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def lowest_exponent(self) -> int:
        """Return the exponent of the smallest normal number and of the subnormals.

        >>> SmallFloat(4, 3).lowest_exponent
        -6
        """
        return 2 - (1 << (self.exponent_bits - 1))

    @property
    def largest_code(self) -> int:
        """Return the code of the largest finite number.

        >>> hex(SmallFloat(4, 3, "nan").largest_code)
        '0x7e'
        """
        last = (1 << (self.bits - 1)) - 1
        return {"none": last, "nan": last - 1, "ieee": last - (1 << self.mantissa_bits)}[self.specials]

    @property
    def nan(self) -> int | None:
        """Return the code of the quiet NaN with a clear sign, or None.

        >>> SmallFloat(4, 3, "nan").nan, SmallFloat(5, 2, "ieee").nan, SmallFloat(2, 1).nan
        (127, 126, None)
        """
        if self.specials == "none":
            return None
        last = (1 << (self.bits - 1)) - 1
        return last if self.specials == "nan" else last + 1 - (1 << (self.mantissa_bits - 1))

    @property
    def infinity(self) -> int | None:
        """Return the code of positive infinity, or None.

        >>> SmallFloat(5, 2, "ieee").infinity, SmallFloat(4, 3, "nan").infinity
        (124, None)
        """
        return self.largest_code + 1 if self.specials == "ieee" else None

    @property
    def largest(self) -> float:
        """Return the largest finite number.

        >>> SmallFloat(4, 3, "nan").largest, SmallFloat(5, 2, "ieee").largest, SmallFloat(2, 3).largest
        (448.0, 57344.0, 7.5)
        """
        return float(_decoding_table(self)[self.largest_code])

    @property
    def smallest(self) -> float:
        """Return the smallest positive number, a subnormal.

        >>> SmallFloat(4, 3, "nan").smallest == 2**-9
        True
        """
        return 2.0 ** (self.lowest_exponent - self.mantissa_bits)

    @property
    def top_exponent(self) -> int:
        """Return the exponent of the largest power of two.

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
        """Return the largest valid byte.

        >>> PowerOfTwo(5, 15).last_byte, PowerOfTwo(8, 127, nan=255).last_byte
        (31, 255)
        """
        return (1 << self.bits) - 1

    @property
    def top_byte(self) -> int:
        """Return the largest byte that stands for a number.

        >>> PowerOfTwo(5, 15).top_byte, PowerOfTwo(8, 127, nan=255).top_byte
        (31, 254)
        """
        return self.last_byte - 1 if self.nan == self.last_byte else self.last_byte

    @property
    def smallest(self) -> float:
        """Return the smallest scale.

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
        """Return the byte of NaN.

        >>> FloatScale(E4M3).nan
        127
        """
        return self.encoding.nan

    @property
    def last_byte(self) -> int:
        """Return 255: every byte is valid."""
        return 255

    @property
    def smallest(self) -> float:
        """Return the smallest positive scale.

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
