# SPDX-License-Identifier: Apache-2.0
"""What lowered programs call: the run-time support under the names that `building.support` gives it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..brackets import bind_parameters
from ..builtins import String
from ..lists import List
from ..simd import Float64
from .building import SUPPORT
from .conversion import FunctionType, Initializer, convert, convert_like, copy_value, with_members
from .functions import Function, Overload, ParametricAlias, call_back, define_function
from .inference import Argument, HeadPattern, Parameter, ParameterPattern, TypePattern, ValuePattern
from .raising import Raised, as_exception, fail_assertion, payload
from .struct_members import assign_fields
from .structs import StructTemplate, Trait, add_member, complete_struct, declare_struct


def subscript(value: Any, position: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return `value[position, named]` where Python's brackets cannot say it: with keywords, empty, or a tuple inside.

    >>> subscript([1, 2], (0,), {})
    1
    """
    if not isinstance(value, type):  # a type takes parameters, also one whose values have elements
        get = getattr(value, "get_subscript", None)
        if get is not None:
            return get(*position, **named)
    return bind_parameters(value, position, named)


def set_subscript(value: Any, position: tuple[Any, ...], named: dict[str, Any], entry: Any) -> None:
    """Assign `value[position, named]`.

    >>> values = [1, 2]
    >>> set_subscript(values, (0,), {}, 5)
    >>> values
    [5, 2]
    """
    assign = getattr(value, "set_subscript", None)
    if assign is not None:
        assign(entry, *position, **named)
    elif named or not position:
        raise TypeError(
            f"{type(value).__name__} has no elements that are named by {', '.join(named) or 'empty brackets'}"
        )
    else:
        value[position[0] if len(position) == 1 else position] = entry


def write_member(owner: Any, name: str, value: Any) -> None:
    """Assign a member, unless it is that value already.

    >>> write_member(Initializer((), {}), "arguments", (1,))
    """
    if getattr(owner, name, None) is not value:
        setattr(owner, name, value)


def write_element(owner: Any, index: Any, value: Any) -> None:
    """Assign an element.

    >>> values = [1, 2]
    >>> write_element(values, 0, 3)
    >>> values
    [3, 2]
    """
    owner[index] = value


def write_subscript(owner: Any, position: tuple[Any, ...], named: dict[str, Any], value: Any) -> None:
    """Assign an element that is named by keywords or empty brackets.

    >>> values = [1]
    >>> write_subscript(values, (0,), {}, 3)
    >>> values
    [3]
    """
    set_subscript(owner, position, named, value)


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
    return dict(values)


def make_set(values: Iterable[Any]) -> Any:
    """Return a set literal.

    >>> make_set([1, 1])
    {1}
    """
    return set(values)


_NAMES: dict[str, Any] = {
    "Argument": Argument,
    "Float64": Float64,
    "FunctionType": FunctionType(),
    "HeadPattern": HeadPattern,
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
    "as_exception": as_exception,
    "assign_fields": assign_fields,
    "call_back": call_back,
    "complete_struct": complete_struct,
    "convert": convert,
    "convert_like": convert_like,
    "copy_value": copy_value,
    "declare_struct": declare_struct,
    "define_function": define_function,
    "fail_assertion": fail_assertion,
    "indices": indices,
    "make_dict": make_dict,
    "make_list": make_list,
    "make_set": make_set,
    "payload": payload,
    "set_subscript": set_subscript,
    "slice": slice,
    "subscript": subscript,
    "with_members": with_members,
    "write_element": write_element,
    "write_member": write_member,
    "write_subscript": write_subscript,
}
SUPPORT_NAMES: dict[str, Any] = {SUPPORT + name: value for name, value in _NAMES.items()}


def is_function(value: Any) -> bool:
    """Return whether a value is a function of a program.

    >>> is_function(is_function), is_function(3)
    (True, False)
    """
    return isinstance(value, Function) or hasattr(value, "__code__")
