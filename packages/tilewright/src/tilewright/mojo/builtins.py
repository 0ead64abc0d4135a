# SPDX-License-Identifier: Apache-2.0
"""Mojo's built-in functions and types, traits, sizes of types, and lists of indices."""

from __future__ import annotations

import operator
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..errors import CoordinateError, FormatError
from ..layout import as_integer
from .brackets import MojoValue, ParametrizedMeta, brackets
from .scalar_memory import number_type_of
from .simd import SIMD, SIMD_BYTES, DType, Error, NumberType, SIMDType, plain_number

_WRAP = DType.int64.round_number


def atol(text: object, base: int = 10) -> int:
    """Return the integer that a text spells in a base.

    >>> atol(" 12 "), atol("ff", 16)
    (12, 255)
    """
    try:
        return int(_WRAP(int(str(text), base)))
    except ValueError:
        raise Error(f"String is not convertible to integer with base {base}: '{text}'") from None


class _IntMeta(type):
    """`Int(x)` is an integer of Python, wrapped around to 64 bits; `isinstance(3, Int)`."""

    number_type = DType.int
    MAX, MIN, BITWIDTH = 2**63 - 1, -(2**63), 64

    def __call__(cls, value: object = 0, base: int = 10) -> int:
        if value.__class__ is int and Int.MIN <= value <= Int.MAX:
            return value
        if isinstance(value, str):
            return atol(value, base)
        if hasattr(value, "__int__") and not isinstance(value, (SIMD, float, np.generic, np.ndarray)):
            return int(_WRAP(int(value)))
        number = plain_number(value)
        if number != number or number in (float("inf"), float("-inf")):
            raise FormatError(f"{number} is not an integer")
        return int(_WRAP(int(number)))

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, SIMD):
            return value.dtype.mojo_name == "int" and value.size == 1
        return isinstance(value, int) and not isinstance(value, bool)

    def __repr__(cls) -> str:
        return "Int"


class Int(metaclass=_IntMeta):
    """The integers of 64 bits, which are Python's: `Int(3.9)` is 3.

    >>> Int(3.9), Int("12"), Int(2**63), isinstance(3, Int)
    (3, 12, -9223372036854775808, True)
    """


class _BoolMeta(type):
    """`Bool(x)` is a bool of Python."""

    number_type = DType.bool

    def __call__(cls, value: object = False) -> bool:
        return bool(value)

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, SIMD):
            return value.dtype.kind == "bool" and value.size == 1
        return isinstance(value, (bool, np.bool_))

    def __repr__(cls) -> str:
        return "Bool"


class Bool(metaclass=_BoolMeta):
    """The bools, which are Python's.

    >>> Bool(1), isinstance(True, Bool), isinstance(1, Bool)
    (True, True, False)
    """


def format_value(value: object) -> str:
    """Return the text of a value as Mojo prints it.

    >>> format_value((1, "a", [1.5, True]))
    '(1, a, [1.5, True])'
    """
    if type(value) is tuple:
        return f"({', '.join(map(format_value, value))})"
    if type(value) is list:
        return f"[{', '.join(map(format_value, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{format_value(key)}: {format_value(each)}' for key, each in value.items())}}}"
    in_mojo = getattr(value, "mojo_text", None)
    return str(value) if in_mojo is None else in_mojo()


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a pointer: `owner` is the object that holds the memory, which a tensor keeps alive.

    `mut` is whether the pointer can write. An origin without an owner stands for any:
    `MutAnyOrigin`, `ImmutAnyOrigin`.

    >>> MutAnyOrigin.mut, Origin(False) == ImmutAnyOrigin
    (True, True)
    """

    mut: bool
    owner: Any = field(default=None, repr=False, compare=False)

    def __class_getitem__(cls, mut: bool) -> Origin:
        return cls(bool(mut))

    @classmethod
    def with_parameters(cls, mut: bool = True) -> Origin:
        """Return `Origin[mut=mut]`.

        >>> Origin.with_parameters(mut=False)
        Origin(mut=False)
        """
        return cls(bool(mut))


MutAnyOrigin, ImmutAnyOrigin = Origin(True), Origin(False)
MutOrigin = MutUntrackedOrigin = MutExternalOrigin = MutableAnyOrigin = StaticConstantOrigin = MutAnyOrigin
ImmutOrigin = ImmutUntrackedOrigin = ImmutExternalOrigin = ImmutableAnyOrigin = ImmutAnyOrigin


class AnyType(ABC):  # noqa: B024  (everything is one)
    """Anything.

    >>> isinstance(3, AnyType)
    True
    """

    @classmethod
    def __subclasshook__(cls, _: type) -> Any:
        return True if cls is AnyType else NotImplemented


class ImplicitlyDestructible(AnyType):
    """A value that goes away by itself; in Python, every object does.

    >>> isinstance(3, ImplicitlyDestructible)
    True
    """

    @classmethod
    def __subclasshook__(cls, _: type) -> Any:
        return True if cls is ImplicitlyDestructible else NotImplemented


class Copyable(ABC):  # noqa: B024  (what has the member is one)
    """A value that can be copied; the copy of a tensor is another view of the same memory.

    >>> isinstance(3, Copyable)
    False
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return hasattr(kind, "__copy__") if cls is Copyable else NotImplemented


class Writable(ABC):  # noqa: B024  (what has the member is one)
    """A value that writes itself to a writer.

    >>> isinstance(3, Writable)
    False
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return hasattr(kind, "write_to") if cls is Writable else NotImplemented


class DevicePassable(ABC):  # noqa: B024  (what has the member is one)
    """A value that a kernel takes, as its `device_type`.

    >>> isinstance(3, DevicePassable)
    False
    """

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return hasattr(kind, "device_type") if cls is DevicePassable else NotImplemented


class Movable(ABC):  # noqa: B024  (tensors are registered)
    """A value that can be moved; in Python, a name is bound to it.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, Movable)
    True
    """


class ImplicitlyCopyable(ABC):  # noqa: B024  (tensors are registered)
    """A value that is copied without being asked to; in Python, a name is bound to it.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, ImplicitlyCopyable)
    True
    """


class RegisterPassable(ABC):  # noqa: B024  (tensors are registered)
    """A value that Mojo passes in registers: a pointer and a layout.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, RegisterPassable)
    True
    """


class TrivialRegisterPassable(ABC):  # noqa: B024  (tensors are registered)
    """A value that Mojo copies, moves and destroys bit by bit.

    >>> from tilewright.mojo.layout import TileTensor
    >>> issubclass(TileTensor, TrivialRegisterPassable)
    True
    """


GPU_BYTES = 16  # that a thread of a GPU loads at once


def _size(kind: NumberType) -> int:
    count = kind.size if isinstance(kind, SIMDType) else 1
    return count * (kind.dtype if isinstance(kind, SIMDType) else DType.of(kind)).itemsize


def _type_of(parameters: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the type that a function has in its brackets: the first parameter, or one called `type` or `dtype`."""
    return (*parameters, *[named[name] for name in ("type", "dtype") if name in named])[0]


@brackets
def size_of(parameters: tuple[Any, ...], *_: Any, **named: Any) -> int:
    """Return the bytes of a value of a type, the only one of the `parameters` or `named`: `size_of[Float32]()`.

    >>> size_of[DType.float32](), bit_width_of["int8"]()
    (4, 8)
    """
    return _size(_type_of(parameters, named))


align_of = size_of


@brackets
def bit_width_of(parameters: tuple[Any, ...], *_: Any, **named: Any) -> int:
    """Return the bits of a value of a type, the only one of the `parameters` or `named`: `bit_width_of[Float32]()`.

    >>> bit_width_of[DType.float32]()
    32
    """
    return 8 * _size(_type_of(parameters, named))


@brackets
def simd_width_of(parameters: tuple[Any, ...], *_: Any, target: object = None, **named: Any) -> int:
    """Return how many numbers of a type a register holds, or with `target` one load of a GPU: any target is one.

    The type is the only one of the `parameters` in brackets, or the `named` one: `simd_width_of[DType.float32]()`.

    >>> simd_width_of["float32"](), simd_width_of.with_parameters("float32", target="gpu")()
    (16, 4)
    """
    kind = _type_of(parameters, named)
    if target is not None:
        return max(1, GPU_BYTES // _size(kind))
    return max(1, SIMD_BYTES // DType.of(kind).itemsize)


sizeof, alignof, simdwidthof, bitwidthof = size_of, align_of, simd_width_of, bit_width_of


def _each(function: Callable[[int, int], int]) -> Any:
    """Return the method that combines two lists, or a list and an integer, entry by entry."""

    def method(self: IndexList, other: object) -> IndexList:
        others = other if isinstance(other, (tuple, list)) else (other,) * len(self)
        if len(others) != len(self):
            raise CoordinateError(f"lists of {len(self)} and {len(others)} indices do not fit together")
        return IndexList([function(a, int(b)) for a, b in zip(self, others, strict=True)])

    return method


class IndexList(list[int], metaclass=ParametrizedMeta):
    """A fixed number of integers, its `entries`, with arithmetic entry by entry; equal to their tuple.

    >>> IndexList[2](1, 2), IndexList[3](0)
    ((1, 2), (0, 0, 0))
    >>> Index(1, 2) + Index(10, 20), Index(3, 4) * 2
    ((11, 22), (6, 8))
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("size",)

    def __init__(self, *entries: Any) -> None:
        values = entries[0] if len(entries) == 1 and isinstance(entries[0], (tuple, list)) else entries
        super().__init__([int(as_integer(entry, "an index")) for entry in values])

    @classmethod
    def _with_parameters(cls, size: object = None, *_: Any, **named: Any) -> Any:
        """Return the type `IndexList[size, element_type=...]`; the integers have no width here."""
        return cls if size is None or size is ... else IndexListType(as_integer(size, "the size of an IndexList"))

    @property
    def size(self) -> int:
        """The number of entries.

        >>> Index(1, 2).size
        2
        """
        return len(self)

    def __getitem__(self, k: object) -> Any:
        return tuple(self)[k] if isinstance(k, slice) else super().__getitem__(self._check_index(k))

    def __setitem__(self, k: object, value: object) -> None:
        super().__setitem__(self._check_index(k), int(as_integer(value, "an index")))

    def _check_index(self, k: object) -> int:
        index = int(as_integer(k, "an index"))
        if not 0 <= index < len(self):
            raise CoordinateError(f"index {index} is outside {len(self)} entries")
        return index

    def parametrized_type(self) -> IndexListType:
        """Return the type of the list.

        >>> Index(3, 4).parametrized_type()
        IndexList[2]
        """
        return IndexListType(len(self))

    def canonicalize(self) -> IndexList:
        """Return the same list.

        >>> Index(3, 4).canonicalize()
        (3, 4)
        """
        return self

    def cast(self, *_: Any) -> IndexList:
        """Return the same list: our integers have no width.

        >>> Index(3, 4).cast()
        (3, 4)
        """
        return self

    __add__, __sub__, __mul__ = _each(operator.add), _each(operator.sub), _each(operator.mul)
    __floordiv__, __mod__ = _each(operator.floordiv), _each(operator.mod)
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (tuple, list)) else NotImplemented

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __copy__(self) -> IndexList:
        return IndexList(self)

    def __repr__(self) -> str:
        return f"({', '.join(map(str, self))})"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, repr=False)
class IndexListType:
    """The type `IndexList[size]`: called with a tuple of `size` integers, `entries`; `isinstance` checks tuples.

    >>> isinstance((2, 4), IndexList[2]), isinstance((2, 4), IndexList[3])
    (True, False)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("size",)

    size: int

    def __call__(self, *entries: Any, fill: object = None) -> IndexList:
        if fill is not None:
            entries = (fill,)
        if len(entries) == 1 and isinstance(entries[0], (tuple, list)):
            entries = tuple(entries[0])
        numbers = [int(as_integer(entry, "an entry of an IndexList")) for entry in entries or (0,)]
        if len(numbers) == 1:
            numbers *= self.size
        if len(numbers) != self.size:
            raise CoordinateError(f"{self!r} takes one integer or {self.size}, got {len(numbers)}")
        return IndexList(numbers)

    def __instancecheck__(self, value: object) -> bool:
        is_list = isinstance(value, (tuple, IndexList)) and len(value) == self.size
        return is_list and all(isinstance(entry, int) for entry in value)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"IndexList[{self.size}]"


@brackets
def Index(_parameters: object, *entries: Any, **_: Any) -> IndexList:  # noqa: N802  (Mojo's name)
    """`Index(1, 2)`: an `IndexList` of its `entries`; a number type in brackets has no effect on them.

    >>> Index(1, 2)
    (1, 2)
    """
    return IndexList(*entries)


NAMES = {"Pointer": "UnsafePointer"}  # where our class has another name


@dataclass(frozen=True, slots=True, repr=False)
class MemoryType:
    """The type of memory with the type of its elements: it makes such memory, and `isinstance` checks values.

    `dtype` is the number type, None if the elements are other objects, of the type `element`, or of any.

    >>> import numpy as np
    >>> from tilewright.mojo import Span
    >>> isinstance(Span(np.arange(4)), Span["int64"]), isinstance(Span(np.arange(4)), Span["int8"])
    (True, False)
    """

    kind: Any
    dtype: DType | None
    element: Any = None
    size: int | None = None

    @classmethod
    def of(cls, kind: object, element: object, size: int | None = None) -> MemoryType:
        """Return the type of memory, of the class `kind`, with elements of a type; None or ... stands for any type.

        >>> from tilewright.mojo import Span
        >>> MemoryType.of(Span, "float32")
        Span[DType.float32]
        """
        if element is None or element is ...:
            return cls(kind, None, None, size)
        return cls(kind, number_type_of(element), element, size)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        of_type = getattr(self.kind, "_of_type", None)
        if of_type is not None:
            return of_type(self, *arguments, **options)
        memory = self.kind(*arguments, **options)
        if self.dtype is not None and memory.dtype != self.dtype:
            raise FormatError(f"{self!r} cannot hold {memory.dtype}; use {self.kind.__name__}[{memory.dtype!r}]")
        return memory

    def convert_implicitly(self, value: object) -> MojoValue:
        """Return a list, or other memory, as memory of this type; other values as they are."""
        is_list = type(value) in (list, tuple) or (hasattr(value, "memory") and type(value).__name__ == "List")
        accepts = getattr(self.kind, "takes_lists", False)
        return self(value) if is_list and accepts and not self.__instancecheck__(value) else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("type", "T", "ElementType", "element_type"):
            return self.element if self.dtype is None else SIMDType(self.dtype, 1)
        static = getattr(self.kind, f"_static_{name}", None)
        if static is None:
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return lambda *arguments, **options: static(self, *arguments, **options)

    def __instancecheck__(self, value: object) -> bool:
        if not isinstance(value, self.kind):
            return False
        if self.size is not None and len(value) != self.size:
            return False
        return self.dtype is None or value.memory.format == self.dtype

    def __repr__(self) -> str:
        name = NAMES.get(self.kind.__name__, self.kind.__name__)
        element = repr(self.dtype) if self.dtype else getattr(self.element, "__name__", str(self.element))
        return f"{name}[{element}{'' if self.size is None else f', {self.size}'}]"
