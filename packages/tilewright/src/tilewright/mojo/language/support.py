# SPDX-License-Identifier: Apache-2.0
"""What lowered programs call: the run-time support under the names that `building.support` gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ...tensor import View
from ..brackets import bind_parameters
from ..builtins import String, type_of
from ..containers import Dict, Optional, Set
from ..lists import List
from ..pointer import Pointer
from ..scalar_memory import Cells
from ..simd import Float64
from .building import SUPPORT
from .conversion import FunctionType, Initializer, convert, convert_like, copy_value
from .functions import Function, Overload, ParametricAlias, call_back, define_function
from .inference import Argument, HeadPattern, Parameter, ParameterPattern, TypePattern, ValuePattern
from .members import assignable, check_options, read_member, visible
from .raising import Raised, as_exception, fail_assertion, payload
from .struct_members import assign_fields
from .structs import StructTemplate, Trait, add_member, add_value, complete_struct, declare_struct
from .texts import Text, call_writing, with_members, write_text, write_value


def subscript(value: Any, position: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return `value[position, named]` where Python's brackets cannot say it: with keywords, empty, or a tuple inside.

    >>> subscript([1, 2], (0,), {})
    1
    """
    if isinstance(value, str):
        value = Text(value)
    get = getattr(type(value), "get_subscript", None)  # not of the value itself, which may be a type
    return bind_parameters(value, position, named) if get is None else get(value, *position, **named)


def set_subscript(value: Any, position: tuple[Any, ...], named: dict[str, Any], entry: Any) -> None:
    """Assign `value[position, named]`.

    >>> values = {"a": 1}
    >>> set_subscript(values, ("a",), {}, 5)
    >>> values
    {'a': 5}
    """
    assign = getattr(type(value), "set_subscript", None)
    if assign is not None:
        assign(value, entry, *position, **named)
    elif named or not position:
        raise TypeError(
            f"{type(value).__name__} has no elements that are named by {', '.join(named) or 'empty brackets'}"
        )
    else:
        value[position[0] if len(position) == 1 else position] = entry


def write_member(owner: Any, name: str, value: Any) -> None:
    """Assign a member, unless it is that value already.

    >>> write_member(3, "size", 4)
    Traceback (most recent call last):
    AttributeError: 'size' is not a member that a Mojo program can assign
    """
    if read_member(owner, name, None) is not value:
        setattr(assignable(owner, name), name, value)


def write_element(owner: Any, index: Any, value: Any) -> None:
    """Assign an element.

    >>> values = {0: 1}
    >>> write_element(values, 0, 3)
    >>> values
    {0: 3}
    """
    owner[index] = value


def write_subscript(owner: Any, position: tuple[Any, ...], named: dict[str, Any], value: Any) -> None:
    """Assign an element that is named by keywords or empty brackets.

    >>> values = {0: 1}
    >>> write_subscript(values, (0,), {}, 3)
    >>> values
    {0: 3}
    """
    set_subscript(owner, position, named, value)


def change_in_place(value: Any, name: str, other: Any) -> Any:
    """Return a value after `value.__iadd__(other)` and the like, which numbers of Python do not have.

    >>> change_in_place(3, "__iadd__", 4)
    7
    """
    method = getattr(value, name, None)
    if method is None:
        return getattr(value, f"__{name[3:]}")(other)
    result = method(other)
    return value if result is None else result


class PlaceMemory:
    """One element of memory that is a variable, a field or an element elsewhere.

    >>> values = [1, 2]
    >>> memory = PlaceMemory(lambda: values[1], lambda value: values.__setitem__(1, value))
    >>> memory[0] = 5
    >>> values, memory[0], len(memory)
    ([1, 5], 5, 1)
    """

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        self.read, self.write = read, write

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> Any:
        return self.read()

    def __setitem__(self, _: int, value: Any) -> None:
        self.write(value)


def point_to(read: Callable[[], Any], write: Callable[[Any], None]) -> Any:
    """Return a pointer to a place that two functions read and write.

    >>> values = [1, 2]
    >>> point_to(lambda: values[1], lambda value: values.__setitem__(1, value)).get_subscript()
    2
    """
    memory: Any = PlaceMemory(read, write)
    return Pointer(Cells(memory, type_of(read())), 0)


def divide(left: Any, right: Any) -> Any:
    """Return `left / right`: of two integers the quotient without its fraction.

    >>> divide(-7, 2), divide(7.0, 2)
    (-3, 3.5)
    """
    if left.__class__ is int and right.__class__ is int:
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def as_immutable(value: Any) -> Any:
    """Return a tensor as one that cannot be written; other values as they are.

    >>> as_immutable(3)
    3
    """
    return value.as_immut() if isinstance(value, View) and value.mut else value  # type: ignore[attr-defined]


def indices(values: Any) -> Iterable[Any]:
    """Return the indices of the elements that a loop over references goes through.

    >>> list(indices([7, 8]))
    [0, 1]
    """
    return list(values) if isinstance(values, dict) else range(len(values))


def make_list(values: Iterable[Any]) -> Any:
    """Return a list literal.

    >>> len(make_list([1, 2]))
    2
    """
    entries = tuple(values)
    if len(entries) != 1:
        return List(*entries)
    made = List()  # one list inside another would be taken for its elements
    made.append(entries[0])
    return made


def make_dict(values: dict[Any, Any]) -> Any:
    """Return a dictionary literal.

    >>> make_dict({1: 2})[1]
    2
    """
    return Dict(values)


def make_set(values: Iterable[Any]) -> Any:
    """Return a set literal.

    >>> len(make_set([1, 1]))
    1
    """
    return Set(*values)


def is_none(value: Any) -> bool:
    """Return whether a value is none, or an optional value without one: `x is None`.

    >>> is_none(Optional()), is_none(Optional(3)), is_none(None)
    (True, False, True)
    """
    return value is None or (isinstance(value, Optional) and not value)


_NAMES: dict[str, Any] = {
    "Argument": Argument,
    "Float64": Float64,
    "FunctionType": FunctionType(),
    "HeadPattern": partial(HeadPattern, read=read_member),
    "Initializer": Initializer,
    "Overload": Overload,
    "Parameter": Parameter,
    "ParameterPattern": ParameterPattern,
    "ParametricAlias": ParametricAlias,
    "Raised": Raised,
    "String": String,
    "StructTemplate": StructTemplate,
    "Trait": Trait,
    "TypePattern": TypePattern,
    "ValuePattern": ValuePattern,
    "add_member": add_member,
    "add_value": add_value,
    "as_exception": as_exception,
    "as_immutable": as_immutable,
    "assignable": assignable,
    "assign_fields": assign_fields,
    "call_back": call_back,
    "call_writing": call_writing,
    "change_in_place": change_in_place,
    "check_options": check_options,
    "complete_struct": complete_struct,
    "convert": convert,
    "convert_like": convert_like,
    "copy_value": copy_value,
    "declare_struct": declare_struct,
    "define_function": define_function,
    "divide": divide,
    "fail_assertion": fail_assertion,
    "indices": indices,
    "make_dict": make_dict,
    "make_list": make_list,
    "make_set": make_set,
    "payload": payload,
    "read_member": read_member,
    "set_subscript": set_subscript,
    "slice": slice,
    "subscript": subscript,
    "point_to": point_to,
    "is_none": is_none,
    "with_members": with_members,
    "visible": visible,
    "write_element": write_element,
    "write_member": write_member,
    "write_subscript": write_subscript,
    "write_text": write_text,
    "write_value": write_value,
}
SUPPORT_NAMES: dict[str, Any] = {SUPPORT + name: value for name, value in _NAMES.items()}


def is_function(value: Any) -> bool:
    """Return whether a value is a function of a program.

    >>> is_function(is_function), is_function(3)
    (True, False)
    """
    return isinstance(value, Function) or hasattr(value, "__code__")
