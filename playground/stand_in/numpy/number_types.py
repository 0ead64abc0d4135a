# SPDX-License-Identifier: Apache-2.0
"""Element types: `dtype`, and the scalar types.

Scalars are Python's own numbers with a dtype; those of 64 bits calculate as Python does.
"""

from __future__ import annotations

import builtins
import operator
import struct
import sys
from array import array as packed_array
from collections.abc import Iterable
from math import inf, isfinite
from typing import Any

from . import small_floats
from .float_texts import scalar_text
from .operators import Operators
from .small_floats import FloatCode

ARRAY_CLASS: dict[str, Any] = {}  # of arrays; the module of the class fills it
NATIVE = "<" if sys.byteorder == "little" else ">"


class generic:
    """The base of all scalar types."""

    _dtype: Any
    shape: tuple[int, ...] = ()
    ndim, size = 0, 1

    @property
    def dtype(self) -> dtype:
        """Return the element type."""
        return self._dtype  # type: ignore[no-any-return]

    itemsize = nbytes = property(lambda self: self._dtype.itemsize)

    def item(self) -> Any:
        """Return the Python number."""
        return self._dtype.python(self)

    tolist = item

    def astype(self, kind: Any) -> Any:
        """Return the scalar of another type."""
        return dtype(kind).scalar(self)

    def tobytes(self) -> bytes:
        """Return the bytes of the number."""
        return self._dtype.pack([self])  # type: ignore[no-any-return]

    def view(self, kind: Any) -> Any:
        """Return the bytes of the number as a scalar of another type."""
        other = dtype(kind)
        return other.wrap(other.unpack(self.tobytes())[0])

    def __getitem__(self, index: Any) -> Any:
        return ARRAY_CLASS["ndarray"].of(self)[index]

    def __getattr__(self, name: str) -> Any:
        """Return a method of arrays, for the array without dimensions that the scalar is."""
        if name.startswith("_") or not hasattr(ARRAY_CLASS["ndarray"], name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(ARRAY_CLASS["ndarray"].of(self), name)


class number(generic):
    """The base of the numbers."""


class integer(number):
    """The base of the integers."""


class signedinteger(integer):
    """The base of the integers with a sign."""


class unsignedinteger(integer):
    """The base of the integers without a sign."""


class inexact(number):
    """The base of floats."""


class floating(inexact):
    """The base of real floats."""


class complexfloating(inexact):
    """The base of complex numbers, of which there are none here."""


class bool_(Operators, generic):
    """The type of truth values, with two objects."""

    _is_true: bool

    def __new__(cls, value: Any = False) -> Any:
        if getattr(value, "ndim", None):
            return value.astype(cls)
        return _TRUE if value else _FALSE

    def __bool__(self) -> bool:
        return self._is_true

    def __int__(self) -> int:
        return int(self._is_true)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._is_true)

    def __eq__(self, other: object) -> Any:
        return NotImplemented if getattr(other, "ndim", 0) else bool_(self._is_true == other)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if getattr(other, "ndim", 0) else bool_(self._is_true != other)

    def __hash__(self) -> int:
        return hash(self._is_true)

    def __repr__(self) -> str:
        return repr(self._is_true)

    def __reduce__(self) -> Any:
        return bool_, (self._is_true,)


_TRUE, _FALSE = object.__new__(bool_), object.__new__(bool_)
_TRUE._is_true, _FALSE._is_true = True, False


class object_(generic):
    """The type of Python objects."""


class void(bytes, generic):
    """Bytes of a fixed number."""

    def tobytes(self) -> bytes:
        """Return the bytes."""
        return bytes(self)


class _Integer:
    """What scalars of integer types have besides what Python's integers have."""

    def __new__(cls, value: Any = 0) -> Any:
        return _convert(cls, int, value)


class _Float:
    """What scalars of float types have besides what Python's floats have."""

    def __new__(cls, value: Any = 0.0) -> Any:
        return _convert(cls, float, value)

    def __repr__(self) -> str:
        return scalar_text(self)

    __str__ = __repr__


def _convert(kind: Any, python: Any, value: Any) -> Any:
    if hasattr(value, "astype") and getattr(value, "ndim", None):
        return value.astype(kind)
    exact = python(value)
    if python is int and not kind._dtype.low <= exact <= kind._dtype.high:
        raise OverflowError(f"Python integer {exact} out of bounds for {kind._dtype.name}")
    return kind._dtype.scalar(exact)


class dtype:
    """An element type: a name, a scalar type, a kind, a size in bytes and a byte order."""

    __slots__ = ("byteorder", "code", "high", "itemsize", "kind", "low", "name", "packing", "type")
    byteorder: builtins.str  # "<" or ">"
    code: FloatCode | None  # of floats that Python has no type for
    high: int
    itemsize: int
    kind: builtins.str  # "b", "i", "u", "f", "V" or "O"
    low: int
    name: builtins.str
    packing: Any  # the letter of `array` and `struct`
    type: Any  # of its scalars
    fields = names = subdtype = None

    def __new__(cls, value: Any = None) -> dtype:
        """Return the one object of a type: its name, its scalar type, a Python type, or a dtype."""
        if value.__class__ is dtype:
            return value
        try:
            if value in TYPES:
                return TYPES[value]
        except TypeError:
            pass
        if isinstance(value, str) and value[:1] in "<>=|" and value[1:] in TYPES:
            plain = TYPES[value[1:]]
            return plain if value[0] in ("=", "|", NATIVE) else plain.newbyteorder("S")
        if isinstance(value, tuple) and len(value) == 2 and value[0] is void:
            return _void_type(value[1])
        if isinstance(value, str) and value.lstrip("|")[:1] == "V" and value.lstrip("|")[1:].isdigit():
            return _void_type(int(value.lstrip("|")[1:]))
        if not isinstance(value, type) and isinstance(getattr(value, "dtype", None), dtype):
            return value.dtype  # type: ignore[no-any-return]
        raise TypeError(f"data type {value!r} not understood")

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        if other.__class__ is not dtype:
            try:
                other = dtype(other)
            except TypeError:
                return False
        return (self.name, self.byteorder) == (other.name, other.byteorder)

    def __hash__(self) -> int:
        return hash((self.name, self.byteorder))

    def __reduce__(self) -> Any:
        return dtype, (self.str if self.kind != "V" or self.code is None else self.name,)

    def __repr__(self) -> str:
        return f"dtype({self.name})" if self.kind == "V" else f"dtype({str(self)!r})"

    def __str__(self) -> str:
        return self.name if self.isnative else self.str

    @property
    def char(self) -> Any:
        """Return the letter of the type."""
        return self.packing

    @property
    def str(self) -> Any:
        """Return the type as NumPy writes it in files."""
        return f"{'|' if self.itemsize == 1 else self.byteorder}{self.kind}{self.itemsize}"

    @property
    def isnative(self) -> bool:
        """Return whether the bytes are in this machine's order."""
        return self.byteorder == NATIVE

    @property
    def hasobject(self) -> bool:
        """Return whether elements are Python objects."""
        return self.kind == "O"

    @property
    def alignment(self) -> int:
        """Return the bytes that an address is a multiple of."""
        return self.itemsize

    def newbyteorder(self, order: Any = "S") -> dtype:
        """Return the type in another byte order."""
        swapped = {"S": "<" if self.byteorder == ">" else ">", "=": NATIVE, "|": self.byteorder}.get(order, order)
        if swapped == self.byteorder or self.itemsize == 1:
            return self
        other = object.__new__(dtype)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.byteorder = swapped
        return TYPES[self.name] if swapped == NATIVE else other

    # From values to bytes and back.

    def python(self, value: Any) -> Any:
        """Return a value as Python's number of this kind, cut to an integer or a truth value if need be."""
        if self.kind in "iu":
            return int(value) if not isinstance(value, float) or isfinite(value) else self.low
        if self.kind == "b":
            return bool(value)
        return value if self.kind == "O" or (self.code is None and self.kind == "V") else float(value)

    def wrap(self, value: Any) -> Any:
        """Return the scalar of a value that this type has."""
        if self.kind in "iu":
            return int.__new__(self.type, value)
        if self.kind == "b":
            return _TRUE if value else _FALSE
        if self.kind == "O":
            return value
        return bytes.__new__(void, value) if self.type is void else float.__new__(self.type, value)

    def scalar(self, value: Any) -> Any:
        """Return the scalar nearest to a value; integers wrap."""
        return self.wrap(self.unpack(self.pack([value]))[0]) if self.kind != "O" else value

    def pack(self, values: Any) -> bytes:
        """Return the bytes of a list of values; integers that do not fit wrap."""
        if self.code is not None:
            encode = self.code.encode
            values = [encode(float(value)) for value in values]
        elif self.kind == "b":
            return bytes(map(bool, values))
        elif self.type is void:
            return b"".join(values)
        try:
            packed = packed_array(self.packing, values)
        except (OverflowError, TypeError):
            if self.kind == "f":
                values = [_as_float(value) for value in values]
            else:
                mask, low = (1 << (8 * self.itemsize)) - 1, self.low
                values = [((self.python(value) - low) & mask) + low for value in values]
            packed = packed_array(self.packing, values)
        if not self.isnative:
            packed.byteswap()
        return packed.tobytes()

    def unpack(self, raw: Any) -> list[Any]:
        """Return the values of bytes."""
        if not len(raw):
            return []
        if self.type is void:
            size = self.itemsize
            return [bytes(raw[k : k + size]) for k in range(0, len(raw), size)]
        if self.isnative or self.itemsize == 1:
            values: list[Any] = memoryview(raw).cast(self.packing).tolist()
        else:
            values = list(struct.unpack(f"{self.byteorder}{len(raw) // self.itemsize}{self.packing}", raw))
        return values if self.code is None else self.code.decode_all(values)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


TYPES: dict[Any, dtype] = {}


def _new_dtype(name: str, scalar: Any, kind: str, size: int, packing: str, code: FloatCode | None = None) -> dtype:
    entry = object.__new__(dtype)
    entry.name, entry.type, entry.kind, entry.itemsize, entry.packing, entry.code = (
        name,
        scalar,
        kind,
        size,
        packing,
        code,
    )
    entry.byteorder = NATIVE
    entry.low = -(1 << (8 * size - 1)) if kind == "i" else 0
    entry.high = (1 << (8 * size - (kind == "i"))) - 1
    return entry


def _void_type(size: int) -> dtype:
    return _new_dtype(f"void{8 * size}", void, "V", size, "B")


def _add_type(name: str, scalar: Any, kind: str, size: int, packing: str, code: FloatCode | None = None) -> Any:
    entry = _new_dtype(name, scalar, kind, size, packing, code)
    scalar._dtype = entry
    scalar.__name__ = scalar.__qualname__ = name
    TYPES.update({name: entry, scalar: entry, packing if code is None else name: entry})
    if kind in "iufb" and not (code and size == 1):
        TYPES[f"{kind}{size}"] = entry
    return scalar


def _number_type(name: str, bases: tuple[Any, ...]) -> Any:
    """Return a scalar type; of those that are not Python's own numbers, every operation has a result of the type."""
    python = bases[1]
    compares = {key: getattr(python, key) for key in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")}
    return type(name, bases, {**compares, "__hash__": python.__hash__})


def _integer_type(name: str, packing: str, size: int) -> Any:
    signed = name[0] == "i"
    base = signedinteger if signed else unsignedinteger
    first = _Integer if name == "int64" else type(f"_{name}", (_Integer, Operators), {})
    return _add_type(name, _number_type(name, (first, int, base)), "i" if signed else "u", size, packing)


def _float_type(name: str, packing: str, size: int, code: FloatCode | None = None, kind: str = "f") -> Any:
    first = _Float if name == "float64" else type(f"_{name}", (_Float, Operators), {})
    return _add_type(name, _number_type(name, (first, float, floating)), kind, size, packing, code)


int8, uint8 = _integer_type("int8", "b", 1), _integer_type("uint8", "B", 1)
int16, uint16 = _integer_type("int16", "h", 2), _integer_type("uint16", "H", 2)
int32, uint32 = _integer_type("int32", "i", 4), _integer_type("uint32", "I", 4)
int64, uint64 = _integer_type("int64", "q", 8), _integer_type("uint64", "Q", 8)
float32, float64 = _float_type("float32", "f", 4), _float_type("float64", "d", 8)
float16 = _float_type("float16", "H", 2, small_floats.FLOAT16)
bfloat16 = _float_type("bfloat16", "H", 2, small_floats.BFLOAT16, "V")
float8_e4m3fn = _float_type("float8_e4m3fn", "B", 1, small_floats.FLOAT8_E4M3FN, "V")
float8_e5m2 = _float_type("float8_e5m2", "B", 1, small_floats.FLOAT8_E5M2, "V")
float8_e4m3fnuz = _float_type("float8_e4m3fnuz", "B", 1, small_floats.FLOAT8_E4M3FNUZ, "V")
float8_e5m2fnuz = _float_type("float8_e5m2fnuz", "B", 1, small_floats.FLOAT8_E5M2FNUZ, "V")
_add_type("bool", bool_, "b", 1, "?")
_add_type("object", object_, "O", 8, "O")
intp, longdouble = int64, float64
TYPES.update({int: int64._dtype, float: float64._dtype, bool: bool_._dtype, object: object_._dtype})
TYPES.update({None: float64._dtype, str: object_._dtype, "l": int64._dtype, "e": float16._dtype})
TYPES.update({"int": int64._dtype, "float": float64._dtype, "intp": int64._dtype, "bool_": bool_._dtype})
TYPES["H"] = uint16._dtype
TYPES["B"] = uint8._dtype

BOOL: dtype = bool_._dtype
INT64: dtype = int64._dtype
FLOAT64: dtype = float64._dtype
OBJECT: dtype = object_._dtype


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return extents as a tuple of integers."""
    if isinstance(shape, Iterable):
        return tuple(map(operator.index, shape))
    return (operator.index(shape),)
