# SPDX-License-Identifier: Apache-2.0
"""Scalar formats: one number, one fixed number of bytes, one NumPy dtype (from ml_dtypes where NumPy has none).

`NumberFormat` is what scalar and block formats have in common: sizes, sections of a tile, and the range of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

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
        """Return the offset of the codes in bytes.

        >>> Sections(scales=2, padding=14, data=32).data_offset
        16
        """
        return self.scales + self.padding

    @property
    def total(self) -> int:
        """Return the size of the tile in bytes.

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

    `has_blocks` says which of the two a format is: in a block format, neighbouring elements share a scale, so that a
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
        """Return the largest finite value; of a format with a tensor scale, in units of it.

        >>> from tilewright.formats import bfloat4_a, float16
        >>> float16.max_value, bfloat4_a.max_value == 1.75 * 2**16
        (65504.0, True)
        """
        return self.limits.highest

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype of unpacked values: its own dtype, or float32 for a block format.

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
        """Return the size of one element in bytes.

        >>> from tilewright.formats import int32
        >>> int32.itemsize
        4
        """
        return int(self.dtype.itemsize)

    @property
    def limits(self) -> Limits:
        """Return the range of values.

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
        highest = float(np.array([_LARGEST_CODES[self.name]], dtype=word).view(self.dtype)[0])
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
        """Return the format itself: values are stored as they are."""
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

_LARGEST_CODES = {
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

# The names that other systems print for the same formats.
ALIASES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3",
    "float8_e4m3fn": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
}

# a format, its name, or a NumPy dtype or scalar type
FormatLike: TypeAlias = "NumberFormat | str | np.dtype[Any] | type[Any]"

_BY_DTYPE = {entry.dtype: entry for entry in SCALAR_FORMATS.values()}


def find_scalar_format(value: object) -> ScalarFormat | None:
    """Return the scalar format of a name, dtype, array or format, or None if it has none.

    >>> find_scalar_format("bf16"), find_scalar_format(np.dtype(">f4")), find_scalar_format("bfloat8_b")
    (format_of('bfloat16'), format_of('float32'), None)
    """
    if isinstance(value, ScalarFormat):
        return value
    if isinstance(value, str):
        return SCALAR_FORMATS.get(ALIASES.get(value, value))
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
