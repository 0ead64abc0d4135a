# SPDX-License-Identifier: Apache-2.0
"""Scalar formats: one number, one fixed number of bytes, one NumPy dtype (from ml_dtypes where NumPy has none)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np

from ..errors import FormatError
from .geometry import Limits, Sections

Kind: TypeAlias = Literal["float", "int", "uint", "bool"]


@dataclass(frozen=True, slots=True, repr=False)
class ScalarFormat:
    """A number format that is a dtype: a name, the dtype, its bits, and "float", "int", "uint" or "bool".

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

    @property
    def itemsize(self) -> int:
        """Return the bytes of one element.

        >>> from tilewright.formats import int32
        >>> int32.itemsize
        4
        """
        return int(self.dtype.itemsize)

    @property
    def limits(self) -> Limits:
        """Return the lowest, highest and smallest positive numbers.

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
        # From the codes themselves, since finfo may warn about subnormals: 1 is the smallest number of every float,
        # and the numbers grow with their codes up to the largest finite one.
        word = np.dtype(f"u{self.itemsize}")
        smallest = float(np.array([1], dtype=word).view(self.dtype)[0])
        highest = float(np.array([_LARGEST_CODES[self.name]], dtype=word).view(self.dtype)[0])
        return Limits(-highest, highest, smallest)

    @property
    def max_value(self) -> float:
        """Return the highest finite number.

        >>> from tilewright.formats import float16, uint16
        >>> float16.max_value, uint16.max_value
        (65504.0, 65535)
        """
        return self.limits.highest

    def sections(self, elements: int) -> Sections:
        """Return how the bytes of a tile are divided: all of them are data.

        >>> from tilewright.formats import bfloat16
        >>> bfloat16.sections(1024)
        Sections(scales=0, padding=0, data=2048)
        """
        return Sections(0, 0, elements * self.itemsize)

    def bytes_per_tile(self, elements: int) -> int:
        """Return the bytes of a tile of so many elements.

        >>> from tilewright.formats import bfloat16
        >>> bfloat16.bytes_per_tile(1024)
        2048
        """
        return self.sections(elements).total

    def __repr__(self) -> str:
        return f"format_of({self.name!r})"

    def __str__(self) -> str:
        return self.name


def _made(name: str, dtype: Any, kind: Kind) -> ScalarFormat:
    dtype = np.dtype(dtype)
    return ScalarFormat(name, dtype, 8 * int(dtype.itemsize), kind)


float64 = _made("float64", np.float64, "float")
float32 = _made("float32", np.float32, "float")
float16 = _made("float16", np.float16, "float")
bfloat16 = _made("bfloat16", ml_dtypes.bfloat16, "float")
float8_e4m3 = _made("float8_e4m3", ml_dtypes.float8_e4m3fn, "float")
float8_e5m2 = _made("float8_e5m2", ml_dtypes.float8_e5m2, "float")
int8 = _made("int8", np.int8, "int")
int16 = _made("int16", np.int16, "int")
int32 = _made("int32", np.int32, "int")
int64 = _made("int64", np.int64, "int")
uint8 = _made("uint8", np.uint8, "uint")
uint16 = _made("uint16", np.uint16, "uint")
uint32 = _made("uint32", np.uint32, "uint")
uint64 = _made("uint64", np.uint64, "uint")
bool_ = _made("bool", np.bool_, "bool")

_LARGEST_CODES = {
    "float64": 0x7FEFFFFFFFFFFFFF,
    "float32": 0x7F7FFFFF,
    "float16": 0x7BFF,
    "bfloat16": 0x7F7F,
    "float8_e4m3": 0x7E,
    "float8_e5m2": 0x7B,
}

SCALAR_FORMATS: dict[str, ScalarFormat] = {
    each.name: each
    for each in (
        *(float64, float32, float16, bfloat16, float8_e4m3, float8_e5m2),
        *(int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_),
    )
}

# The names other systems print for the same bits; a longer list would only be more to remember.
ALIASES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3",
    "float8_e4m3fn": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
}

_BY_DTYPE = {each.dtype: each for each in SCALAR_FORMATS.values()}


def find_scalar(thing: Any) -> ScalarFormat | None:
    """Return the scalar format of a format, name, dtype or array, or None if it has none.

    >>> find_scalar("bf16"), find_scalar(np.dtype(">f4")), find_scalar("bfloat8_b")
    (format_of('bfloat16'), format_of('float32'), None)
    """
    if isinstance(thing, ScalarFormat):
        return thing
    if isinstance(thing, str):
        return SCALAR_FORMATS.get(ALIASES.get(thing, thing))
    if isinstance(thing, type) and issubclass(thing, np.generic):
        thing = np.dtype(thing)
    dtype = thing if isinstance(thing, np.dtype) else getattr(thing, "dtype", None)
    return _BY_DTYPE.get(dtype.newbyteorder("=")) if isinstance(dtype, np.dtype) else None


def scalar_of(thing: Any) -> ScalarFormat:
    """Return the scalar format of a format, name, dtype or array; raise where there is none.

    >>> scalar_of("fp8_e4m3")
    format_of('float8_e4m3')
    """
    found = find_scalar(thing)
    if found is None:
        shown = getattr(thing, "name", None) or getattr(thing, "dtype", thing)
        raise FormatError(
            f"{str(shown)!r} is not a scalar format; the scalar formats are {', '.join(SCALAR_FORMATS)}. "
            "A block format packs instead: format_of(name).pack(array)"
        )
    return found
