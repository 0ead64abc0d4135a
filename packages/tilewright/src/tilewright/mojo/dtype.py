# SPDX-License-Identifier: Apache-2.0
"""Mojo's `DType`: the number types, with what a program asks about them and how a number is rounded to one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import copysign, inf
from typing import Any, ClassVar, TypeAlias

from ..errors import FormatError
from ..formats import FormatLike, ScalarFormat, format_of

Number: TypeAlias = "int | float"


class DType(ScalarFormat):
    """A number type: `DType.float32`. It is the format of that name, with Mojo's questions.

    >>> print(DType.float32, DType.float32.is_floating_point(), DType.uint8.is_unsigned())
    float32 True True
    >>> DType.float32
    DType.float32
    """

    __slots__ = ("low", "mojo_name", "round_number", "width_mask")

    bool: ClassVar[DType]
    int: ClassVar[DType]
    uint: ClassVar[DType]
    index: ClassVar[DType]
    int8: ClassVar[DType]
    int16: ClassVar[DType]
    int32: ClassVar[DType]
    int64: ClassVar[DType]
    uint8: ClassVar[DType]
    uint16: ClassVar[DType]
    uint32: ClassVar[DType]
    uint64: ClassVar[DType]
    float16: ClassVar[DType]
    bfloat16: ClassVar[DType]
    float32: ClassVar[DType]
    float64: ClassVar[DType]
    float8_e4m3fn: ClassVar[DType]
    float8_e5m2: ClassVar[DType]

    low: Any  # the lowest integer; 0 for other types
    mojo_name: str
    round_number: Callable[[Any], Any]  # of a number of Python: wrapped around, or rounded to nearest
    width_mask: Any

    def __new__(cls, name: str, mojo_name: str = "") -> DType:
        """Return the number type of a name.

        >>> DType("float32") is DType.float32
        True
        """
        found = getattr(cls, mojo_name or name, None)
        if isinstance(found, DType):
            return found
        source = format_of(name).require_scalar("a number type")
        self = object.__new__(cls)
        for field in ("name", "dtype", "bits", "kind"):
            object.__setattr__(self, field, getattr(source, field))
        object.__setattr__(self, "mojo_name", mojo_name or name)
        is_signed = self.kind == "int"
        object.__setattr__(self, "low", -(1 << (self.bits - 1)) if is_signed else 0)
        object.__setattr__(self, "width_mask", (1 << self.bits) - 1)
        object.__setattr__(self, "round_number", _rounding_of(self))
        return self

    def __init__(self, name: str, mojo_name: str = "") -> None:
        """Leave the fields as `__new__` set them."""

    def is_floating_point(self) -> Any:
        """Return whether the numbers are floats.

        >>> DType.bfloat16.is_floating_point(), DType.int8.is_floating_point()
        (True, False)
        """
        return self.kind == "float"

    def is_integral(self) -> Any:
        """Return whether the numbers are integers.

        >>> DType.uint8.is_integral(), DType.bool.is_integral()
        (True, False)
        """
        return self.kind in ("int", "uint")

    def is_signed(self) -> Any:
        """Return whether there are negative numbers.

        >>> DType.float16.is_signed(), DType.uint8.is_signed()
        (True, False)
        """
        return self.kind in ("int", "float")

    def is_unsigned(self) -> Any:
        """Return whether the numbers are integers from 0 on.

        >>> DType.uint8.is_unsigned()
        True
        """
        return self.kind == "uint"

    def is_numeric(self) -> Any:
        """Return whether the numbers are integers or floats.

        >>> DType.bool.is_numeric()
        False
        """
        return self.kind != "bool"

    def is_half_float(self) -> Any:
        """Return whether the numbers are floats of 16 bits.

        >>> DType.bfloat16.is_half_float()
        True
        """
        return self.kind == "float" and self.bits == 16

    def is_float8(self) -> Any:
        """Return whether the numbers are floats of 8 bits.

        >>> DType.float8_e5m2.is_float8()
        True
        """
        return self.kind == "float" and self.bits == 8

    def size_of(self) -> Any:
        """Return the bytes of a number.

        >>> DType.float64.size_of()
        8
        """
        return self.itemsize

    def bit_width(self) -> Any:
        """Return the bits of a number.

        >>> DType.int16.bit_width()
        16
        """
        return self.bits

    sizeof, bitwidth = size_of, bit_width

    def __eq__(self, other: object) -> Any:
        return self.name == other.name if isinstance(other, ScalarFormat) else NotImplemented

    __hash__ = ScalarFormat.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.name, self.mojo_name)

    def __str__(self) -> str:
        return self.mojo_name

    def __repr__(self) -> str:
        return f"DType.{self.mojo_name}"


def _rounding_of(kind: DType) -> Callable[[Any], Any]:
    """Return the function that gives a number of Python as one of a type."""
    if kind.kind == "bool":
        return bool
    if kind.kind == "float":
        return _ROUNDINGS.get(kind.name) or (lambda number: float(kind.dtype.type(number)))
    low, high, mask = kind.low, kind.low + kind.width_mask, kind.width_mask

    def wrap(number: Any) -> Any:
        if low <= number <= high:
            return number
        return ((number - low) & mask) + low

    return wrap


def _struct_rounding(code: str) -> Callable[[Any], float]:
    """Return the function that rounds to a binary float of `struct`; too large numbers become infinite."""
    pack, unpack = struct.Struct(code).pack, struct.Struct(code).unpack

    def round_number(number: Any) -> float:
        try:
            rounded: float = unpack(pack(number))[0]
        except OverflowError:
            return copysign(inf, number)
        return rounded

    return round_number


_ROUNDINGS = {"float64": float, "float32": _struct_rounding("f"), "float16": _struct_rounding("e")}
_NAMES = {
    **{name: name for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "bfloat16", "float32", "float64", "float8_e5m2")},
    "float8_e4m3fn": "float8_e4m3",
    "int": "int64",
    "uint": "uint64",
}
for _mojo_name, _name in _NAMES.items():
    setattr(DType, _mojo_name, DType(_name, _mojo_name))
DType.index = DType.int
_BY_FORMAT = {_name: getattr(DType, _mojo_name) for _mojo_name, _name in reversed(_NAMES.items())}


def as_dtype(dtype: FormatLike | ScalarFormat) -> DType:
    """Return the number type of a format, a name or a NumPy dtype.

    >>> as_dtype("float8_e4m3"), as_dtype(DType.int)
    (DType.float8_e4m3fn, DType.int)
    """
    if dtype.__class__ is DType:
        return dtype
    element = format_of(dtype).require_scalar("a number type")
    found: DType | None = _BY_FORMAT.get(element.name)
    if found is None:
        raise FormatError(f"Mojo has no number type {element.name}; use one of {', '.join(_NAMES)}")
    return found
