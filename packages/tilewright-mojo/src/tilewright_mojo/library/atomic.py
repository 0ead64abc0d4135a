# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.atomic`: operations on a scalar that happen at once."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from tilewright.errors import FormatError
from tilewright.mojo import DType, MojoValue, Pointer, Scalar, alloc, brackets, operand_of

from ..simt.collectives import locate_scalar, update_scalar
from .warp import larger, smaller


class Ordering(Enum):
    """The order of other accesses around an atomic operation. Here threads run one after another: a label.

    >>> Ordering.RELAXED.value
    2
    """

    NOT_ATOMIC = 0
    UNORDERED = 1
    RELAXED = 2
    MONOTONIC = 2  # noqa: PIE796  (the older name)
    ACQUIRE = 3
    RELEASE = 4
    ACQUIRE_RELEASE = 5
    SEQUENTIAL = 6


Consistency = Ordering


def _scalar(store: Any, number: object) -> Any:
    """Return a number of memory as Mojo's scalar."""
    dtype = DType.of(store.format)
    plain = number.item() if hasattr(number, "item") else number
    return plain if dtype is DType.int else Scalar[dtype](plain)


def _update(target: object, change: Callable[[Any], Any] | None, reads: bool = True) -> Any:
    """Return the old value of a scalar, and replace it by what `change` returns for it."""
    pointer = target.pointer if isinstance(target, Atomic) else target
    if not isinstance(pointer, Pointer):
        raise TypeError(f"an atomic operation takes a pointer, got {type(pointer).__name__}")
    store, offset = locate_scalar(pointer, 0)
    if store.format is None:
        raise FormatError("an atomic operation needs memory of numbers")

    def convert(old: object) -> MojoValue:
        assert change is not None
        return operand_of(Scalar[DType.of(store.format)](old), change(_scalar(store, old)))

    return _scalar(store, update_scalar(store, offset, None if change is None else convert, reads))


class _AtomicMethod:
    """An operation that is called on the class with a pointer first, or on an atomic value without one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __get__(self, owner: object, kind: object = None) -> brackets[Any]:
        return brackets(lambda first, parameters, *arguments, **options: self._call(first, arguments), owner)

    def _call(self, owner: object, arguments: tuple[Any, ...]) -> Any:
        return self._function(*arguments) if owner is None else self._function(owner, *arguments)


def _compare_exchange(target: object, expected: Any, desired: object) -> bool:
    """Replace the scalar by `desired` if it equals the value at `expected`, else write it there."""
    is_pointer = isinstance(expected, Pointer)
    wanted = expected[0] if is_pointer else expected
    old = _update(target, lambda value: desired if value == wanted else value)
    if is_pointer and old != wanted:
        expected[0] = old
    return bool(old == wanted)


def _store(target: object, value: object) -> None:
    _update(target, lambda old: value, reads=False)


class Atomic:
    """An atomic number, `Atomic[Int64](0)`, or operations on memory: `Atomic.fetch_add(pointer, 1)`.

    >>> from tilewright.mojo import Int32
    >>> counter = Atomic[Int32](5)
    >>> counter.fetch_add(2), counter.load()
    (Int32(5), Int32(7))
    """

    def __init__(self, value: object = 0, kind: Any = None) -> None:
        dtype = getattr(value, "dtype", DType.int64) if kind is None else DType.of(kind)
        self.pointer = alloc[dtype](1)
        self.pointer[0] = value

    @classmethod
    def with_parameters(cls, kind: object = None, *_: Any, **named: Any) -> AtomicType:
        """Return `Atomic[type]`.

        >>> Atomic.with_parameters("int32")(3).load()
        Int32(3)
        """
        return AtomicType(named.get("dtype", named.get("T", kind)))

    def __class_getitem__(cls, kind: object) -> AtomicType:
        return cls.with_parameters(*(kind if isinstance(kind, tuple) else (kind,)))

    load = _AtomicMethod(lambda target: _update(target, None))
    store = _AtomicMethod(_store)
    fetch_add = _AtomicMethod(lambda target, value: _update(target, lambda old: old + value))
    fetch_sub = _AtomicMethod(lambda target, value: _update(target, lambda old: old - value))
    max = _AtomicMethod(lambda target, value: _update(target, lambda old: larger(old, value)))
    min = _AtomicMethod(lambda target, value: _update(target, lambda old: smaller(old, value)))
    exchange = _AtomicMethod(lambda target, value: _update(target, lambda old: value))
    compare_exchange = compare_exchange_weak = _AtomicMethod(_compare_exchange)
    _xchg = exchange

    @property
    def value(self) -> MojoValue:
        """The number.

        >>> Atomic["int32"](3).value
        Int32(3)
        """
        return self.pointer[0]

    def __iadd__(self, value: object) -> Atomic:
        _update(self, lambda old: old + value)
        return self

    def __isub__(self, value: object) -> Atomic:
        _update(self, lambda old: old - value)
        return self


class AtomicType:
    """The type `Atomic[type]`: it makes atomic numbers, and has the operations on memory.

    >>> AtomicType("int32")(4).value
    Int32(4)
    """

    def __init__(self, kind: object) -> None:
        self._kind = kind

    def __call__(self, value: object = 0) -> Atomic:
        return Atomic(value, self._kind)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Atomic)

    def __getattr__(self, name: str) -> Any:
        if not isinstance(Atomic.__dict__.get(name), _AtomicMethod):
            raise AttributeError(name)
        return getattr(Atomic, name)

    def __repr__(self) -> str:
        return f"Atomic[{self._kind!r}]"
