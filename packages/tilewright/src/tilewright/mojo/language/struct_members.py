# SPDX-License-Identifier: Apache-2.0
"""What every struct of a Mojo program can do: copying, text, comparison, and Python's protocols in Mojo's terms."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

from ..builtins import represent
from .conversion import copy_value
from .functions import Function, Overload
from .raising import payload
from .tokens import words

_OPERATIONS = words("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift")
IN_PLACE = frozenset(f"__i{name}__" for name in _OPERATIONS)
ANSWER = "answer·of"
"""The `__getattr__` of a struct, which answers for members that it does not declare."""


class TextWriter:
    """Collects text: what a struct's `write_to` writes to.

    >>> writer = TextWriter()
    >>> writer.write("n = ", 3)
    >>> writer.text()
    'n = 3'
    """

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, *values: Any) -> None:
        """Add the text of values.

        >>> TextWriter().write(1, "a")
        """
        self.parts += map(str, values)

    def write_string(self, value: Any) -> None:
        """Add a text.

        >>> TextWriter().write_string("a")
        """
        self.parts.append(str(value))

    def text(self) -> str:
        """Return all that was written.

        >>> TextWriter().text()
        ''
        """
        return "".join(self.parts)


class StructValue:
    """The base of all structs. `__fields__` are their names; `__implicit__` the constructors that convert values."""

    __slots__ = ()

    __bracketed__: ClassVar[tuple[str, ...]] = ()
    __fields__: ClassVar[tuple[str, ...]] = ()
    __traits__: ClassVar[tuple[Any, ...]] = ()
    __implicit__: ClassVar[list[Overload]] = []
    __template__: ClassVar[Any] = None
    __has_copy_constructor__: ClassVar[bool] = False

    @classmethod
    def converts_implicitly(cls, value: Any) -> bool:
        """Return whether a constructor takes the value without being asked to."""
        for overload in cls.__implicit__:
            pairs = overload.bind((None, value), {})
            if pairs is not None and overload.score(pairs[1:], {}):
                return True
        return False

    @classmethod
    def convert_implicitly(cls, value: Any) -> Any:
        """Return the value converted, if a constructor takes it implicitly."""
        make: Any = cls
        return make(value) if cls.converts_implicitly(value) else value

    def copy(self) -> Any:
        """Return a copy: by the struct's own constructor, or field by field."""
        cls = type(self)
        new: Any = cls.__new__(cls)
        if "__copyinit__" in cls.__dict__:
            new.__copyinit__(self)
        elif cls.__has_copy_constructor__:
            new.__init__(copy=self)
        else:
            for name in self.__fields__:
                setattr(new, name, copy_field(getattr(self, name)))
        return new

    def __str__(self) -> str:
        writer = TextWriter()
        write_to = getattr(self, "write_to", None)
        if write_to is not None:
            write_to(writer)
            return writer.text()
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__fields__)
        return f"{type(self).__name__}({fields})"

    def __repr__(self) -> str:
        write_to = getattr(self, "write_repr_to", None)
        if write_to is None:
            fields = ", ".join(f"{name}={represent(getattr(self, name))}" for name in self.__fields__)
            return f"{type(self).__name__}({fields})"
        writer = TextWriter()
        write_to(writer)
        return writer.text()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__fields__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__fields__))

    def get_subscript(self, *position: Any, **named: Any) -> Any:
        """Return an element: brackets with keywords, or empty ones."""
        return self.element_of(*position, **named)  # type: ignore[attr-defined]

    def set_subscript(self, value: Any, *position: Any, **named: Any) -> None:
        """Assign an element."""
        self.assign_element(*position, value, **named)  # type: ignore[attr-defined]


def copy_field(value: Any) -> Any:
    """Return a copy of a field: of containers and structs, with all that they hold.

    >>> copy_field([1])
    [1]
    """
    if isinstance(value, StructValue):
        return value.copy()
    if isinstance(value, (list, dict, set)):
        return value.copy()
    return copy_value(value)


def assign_fields(target: Any, value: Any) -> None:
    """Assign a whole struct: `self = Self(...)`.

    >>> class Point(StructValue):
    ...     __fields__ = ("x",)
    >>> first, second = Point(), Point()
    >>> second.x = 3
    >>> assign_fields(first, second)
    >>> first.x
    3
    """
    is_struct = isinstance(target, StructValue) and isinstance(value, StructValue)
    if not is_struct or target.__fields__ != value.__fields__:
        raise TypeError(f"self is a value of {type(target).__name__}; it cannot become one of {type(value).__name__}")
    for name in value.__fields__:
        setattr(target, name, getattr(value, name))


def adapt_member(name: str, member: Any) -> dict[str, Any]:
    """Return a method under the names that Python calls it by, with Python's arguments.

    Brackets pass several indices as one tuple in Python, methods such as `__iadd__` return their result, and
    `__exit__` learns of errors by three arguments.
    """
    if name in IN_PLACE:
        return {name: _return_self(member)}
    if name == "__getitem__":
        return {name: _spread_index(member, 0), "element_of": member}
    if name == "__setitem__":
        return {name: _spread_index(member, 1), "assign_element": member}
    if name == "__exit__":
        return {name: _adapt_exit(member)}
    if name == "__hash__" and _takes(member, 2):
        return {"hash_into": member}
    if name == "__has_next__":
        return {name: member, "__iter__": lambda self: self}
    if name == "__getattr__":  # under a name that Python does not ask for: it would ask for `__array_interface__` too
        return {ANSWER: lambda self, attribute: member.with_parameters(attribute)(self)}
    return {name: member}


def _bound(member: Any, owner: Any) -> Callable[..., Any]:
    return member.__get__(owner, type(owner))  # type: ignore[no-any-return]


def _return_self(member: Any) -> Callable[..., Any]:
    def change(self: Any, other: Any) -> Any:
        _bound(member, self)(other)
        return self

    return change


def _takes(member: Any, count: int) -> bool:
    """Return whether a method, with `self`, can be called with so many arguments."""
    if isinstance(member, Function):
        return any(overload.bind((None,) * count, {}) is not None for overload in member.overloads)
    code = member.__code__
    least = code.co_argcount - len(member.__defaults__ or ())
    return least <= count <= code.co_argcount or (bool(code.co_flags & 4) and count >= least)


def _spread_index(member: Any, extra: int) -> Callable[..., Any]:
    def access(self: Any, index: Any, *value: Any) -> Any:
        if isinstance(index, tuple) and _takes(member, 1 + len(index) + extra):
            return _bound(member, self)(*index, *value)
        return _bound(member, self)(index, *value)

    return access


def _adapt_exit(member: Any) -> Callable[..., Any]:
    def leave(self: Any, kind: Any = None, error: Any = None, traceback: Any = None) -> Any:
        if error is not None and _takes(member, 2):
            return _bound(member, self)(payload(error))
        if _takes(member, 1):
            _bound(member, self)()
        return False

    return leave


def add_comparisons(cls: Any) -> None:
    """Add the comparisons that follow from `__lt__`, as Mojo's trait `Comparable` does."""
    if "__lt__" in cls.__dict__:
        if "__le__" not in cls.__dict__:
            cls.__le__ = lambda self, other: not operator.lt(other, self)
        if "__ge__" not in cls.__dict__:
            cls.__ge__ = lambda self, other: not operator.lt(self, other)


def add_iteration(cls: Any) -> None:
    """Make `__next__` end the loop where `__has_next__` says so."""
    if "__has_next__" in cls.__dict__ and "__next__" in cls.__dict__:
        following, has_next = cls.__dict__["__next__"], cls.__dict__["__has_next__"]

        def step(self: Any) -> Any:
            if not _bound(has_next, self)():
                raise StopIteration
            return _bound(following, self)()

        cls.__next__ = step
    if "__next__" in cls.__dict__ and "__iter__" not in cls.__dict__:
        cls.__iter__ = lambda self: self
