# SPDX-License-Identifier: Apache-2.0
"""Functions that lowered programs call at run time, and failures in a Mojo programmer's words."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from types import CodeType
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.mojo import Cells, Float64, MojoValue, Pointer, brackets
from tilewright.tensor import TileTensor

from ..collections import Dict, List, Optional, Set
from ..errors import FailedAssertion, Raised, as_exception, fail_assertion, payload
from ..types import String, type_of
from .building import SUPPORT
from .functions import (
    Argument,
    Function,
    FunctionType,
    HeadPattern,
    Initializer,
    Overload,
    Parameter,
    ParameterPattern,
    ParametricAlias,
    TypePattern,
    ValuePattern,
    call_back,
    convert,
    convert_like,
    copy_value,
    define_function,
)
from .members import assignable, check_options, read_member, visible, visible_members
from .structs import (
    StructTemplate,
    Text,
    Trait,
    add_member,
    add_value,
    assign_fields,
    complete_struct,
    declare_struct,
    with_members,
    write_text,
    write_value,
)
from .tokens import MojoSourceError, is_magic, suggest


def subscript(value: object, position: tuple[Any, ...], named: dict[str, Any]) -> MojoValue:
    """Return `value[position, named]` where Python's brackets cannot say it: with keywords, empty, or a tuple inside.

    >>> subscript([1, 2], (0,), {})
    1
    """
    if isinstance(value, str):
        value = Text(value)
    get = getattr(type(value), "get_subscript", None)  # not of the value itself, which may be a type
    return brackets.bind(value, position, named) if get is None else get(value, *position, **named)


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


def write_member(owner: object, name: str, value: object) -> None:
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


def write_subscript(owner: object, position: tuple[Any, ...], named: dict[str, Any], value: object) -> None:
    """Assign an element that is named by keywords or empty brackets.

    >>> values = {0: 1}
    >>> write_subscript(values, (0,), {}, 3)
    >>> values
    {0: 3}
    """
    set_subscript(owner, position, named, value)


def change_in_place(value: object, name: str, other: object) -> MojoValue:
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

    def __setitem__(self, _: int, value: object) -> None:
        self.write(value)


def point_to(read: Callable[[], Any], write: Callable[[Any], None]) -> Pointer:
    """Return a pointer to a place that two functions read and write.

    >>> values = [1, 2]
    >>> point_to(lambda: values[1], lambda value: values.__setitem__(1, value)).get_subscript()
    2
    """
    memory: Any = PlaceMemory(read, write)
    return Pointer(Cells(memory, type_of(read())), 0)


def divide(left: Any, right: Any) -> MojoValue:
    """Return `left / right`: of two integers the quotient without its fraction.

    >>> divide(-7, 2), divide(7.0, 2)
    (-3, 3.5)
    """
    if left.__class__ is int and right.__class__ is int:
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def as_immutable(value: object) -> MojoValue:
    """Return a tensor as one that cannot be written; other values as they are.

    >>> as_immutable(3)
    3
    """
    return value.as_immut() if isinstance(value, TileTensor) and value.mut else value  # type: ignore[attr-defined]


def indices(values: Any) -> Iterable[Any]:
    """Return the indices of the elements that a loop over references goes through.

    >>> list(indices([7, 8]))
    [0, 1]
    """
    return list(values) if isinstance(values, dict) else range(len(values))


def make_list(values: Iterable[Any]) -> MojoValue:
    """Return a list literal.

    >>> len(make_list([1, 2]))
    2
    """
    entries = tuple(values)
    if len(entries) != 1:
        return List(*entries)
    result = List()  # one list inside another would be taken for its elements
    result.append(entries[0])
    return result


def make_dict(values: dict[Any, Any]) -> MojoValue:
    """Return a dictionary literal.

    >>> make_dict({1: 2})[1]
    2
    """
    return Dict(values)


def make_set(values: Iterable[Any]) -> MojoValue:
    """Return a set literal.

    >>> len(make_set([1, 1]))
    1
    """
    return Set(*values)


def is_none(value: object) -> bool:
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


def is_function(value: object) -> bool:
    """Return whether a value is a function of a program.

    >>> is_function(is_function), is_function(3)
    (True, False)
    """
    return isinstance(value, Function) or hasattr(value, "__code__")


MAX_STACK = 20  # calls that are shown
TYPE_NAMES = {"int": "Int", "bool": "Bool", "float": "Float64", "str": "String", "tuple": "Tuple", "NoneType": "None"}


@dataclass(frozen=True, slots=True)
class Call:
    """A place in a Mojo source that is being carried out: `column` counts from 1, `width` is the expression's.

    Before Python 3.11 only the line is known, and `column` is 0.

    >>> place = Call("a.mojo", 3, 5, 2, "main")
    >>> str(place)
    'a.mojo:3:5 in main'
    """

    file: str
    line: int
    column: int
    width: int
    function: str

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}" + (f" in {self.function}" if self.function else "")

    def show(self) -> list[str]:
        """Return the source line and a mark below the expression.

        >>> Call("missing.mojo", 1, 1, 1, "").show()
        []
        """
        text = linecache.getline(self.file, self.line).rstrip("\n")
        stripped = text.lstrip()
        if not stripped:
            return []
        if not self.column:
            return [f"    {stripped}"]
        start = max(0, self.column - 1 - (len(text) - len(stripped)))
        return [f"    {stripped}", f"    {' ' * start}{'^' * max(1, min(self.width, len(stripped) - start))}"]


def mojo_calls(problem: BaseException, sources: frozenset[str]) -> list[Call]:
    """Return the calls inside the sources that led to an exception, the outermost first.

    >>> mojo_calls(ValueError(), frozenset())
    []
    """
    calls = []
    step = problem.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in sources:
            calls.append(_make_call(step.tb_frame.f_code, step.tb_lasti, step.tb_lineno))
        step = step.tb_next
    return calls


def _make_call(code: CodeType, instruction: int, line_number: int) -> Call:
    line: int | None = line_number
    end_line, column, end_column = line, None, None
    if hasattr(code, "co_positions"):  # from Python 3.11 on
        positions = list(code.co_positions())
        line, end_line, column, end_column = positions[min(instruction // 2, len(positions) - 1)]
    name = code.co_name.partition("·body")[0].replace("·", ".")
    text = linecache.getline(code.co_filename, line or 1).encode()
    begin = len(text[: column or 0].decode("utf-8", "replace"))
    end = len(text[: end_column or 0].decode("utf-8", "replace")) if end_line == line else len(text)
    function = "" if name.startswith("<module") else "lambda" if name == "<lambda>" else name
    return Call(code.co_filename, line or 1, 0 if column is None else begin + 1, end - begin, function)


class ProgramFailure(TilewrightError, RuntimeError):  # noqa: N818  (what happened)
    """A program asked for the impossible; the message has the place in its source, `__cause__` the details.

    >>> issubclass(ProgramFailure, TilewrightError)
    True
    """


def explain(problem: BaseException) -> str:
    """Return the message of an exception in the words of a Mojo programmer.

    >>> explain(AttributeError("gone", name="size", obj=3))
    "Int has no member 'size' here; if Mojo has it, tilewright does not run it yet"
    """
    absent = re.fullmatch(r"'(\w+)' object has no attribute '(\w+)'", str(problem))
    if isinstance(problem, AttributeError) and problem.name is None and absent:  # an assignment
        return f"{absent[1]} has no member {absent[2]!r}"
    if isinstance(problem, AttributeError) and problem.name is not None:
        owner = problem.obj
        kind = getattr(owner, "__name__", None) if isinstance(owner, type) else None
        name = kind or _type_name(type(owner).__name__)
        members = [member for member in visible_members(owner) if not member.startswith("_") and "·" not in member]
        if problem.name in members:
            return f"{name}.{problem.name} cannot be assigned; make a new value instead"
        hint = suggest(problem.name, members) or "; if Mojo has it, tilewright does not run it yet"
        return f"{name} has no member {problem.name!r} here{hint}"
    if isinstance(problem, UnboundLocalError):
        unset = re.search(r"variable '(\w+)'", str(problem))  # what stands around it differs between versions of Python
        return f"variable {unset[1]!r} has no value here" if unset else str(problem)
    message = _without_owners(str(problem)).replace("·body", "").replace("·", ".") or "no reason was given"
    if isinstance(problem, FailedAssertion):
        return f"assertion failed: {message}"
    if isinstance(problem, ZeroDivisionError):
        return "division by zero"
    if isinstance(problem, TypeError):
        return _explain_type(message)
    return message if isinstance(problem, TilewrightError) else f"{type(problem).__name__}: {message}"


def _without_owners(text: str) -> str:
    """Return a text in which functions inside others have their own names only.

    The text may be as long as a program likes, so this takes time in proportion to it, which no pattern would.

    >>> _without_owners("in main.<locals>.f")
    'in f'
    """
    *before, last = text.split("<locals>.")
    return "".join([*[part[: max(map(part.rfind, " \n\t")) + 1] for part in before], last])


_USES = {
    "is not callable": "cannot be called",
    "is not subscriptable": "has no elements: it cannot be indexed",
    "is not iterable": "cannot be looped over; for numbers use range(n)",
    "does not support item assignment": "has no elements that can be assigned",
}


_CALL = re.compile(r"([\w.<>]{1,200})\(\) (got|missing|takes) (.+)")
_CALLED = {"print_values": "print", "get_subscript": "[]", "set_subscript": "[]", "<lambda>": "the function"}


def _explain_call(name: str, verb: str, rest: str) -> str:
    """Return the problem with the arguments of a call, without names of our own classes and arguments.

    >>> _explain_call("_IntMeta.__call__", "got", "an unexpected keyword argument 'foo'")
    "Int has no argument 'foo'"
    """
    owner, _, function = name.rpartition(".")
    is_ours = bool(owner) or name.startswith(("_", "<")) or name in _CALLED  # with arguments that no program gives
    called = owner.rpartition(".")[2].strip("_").removesuffix("Meta").removesuffix("Type")
    called = called if is_magic(function) else _CALLED.get(function, function.strip("_"))
    argument = re.search(r"argument '([^']*)'", rest)
    if verb == "got" and rest.startswith("an unexpected") and argument:
        return f"{called} has no argument {argument[1]!r}"
    if verb == "got" and rest.startswith("multiple") and argument:
        return f"{called} is given {argument[1]!r} twice"
    if verb == "missing":
        names = rest.partition(": ")[2].replace("'", "").replace(", and", " and")
        return f"{called} needs the argument{'s' if ' and ' in names else ''} {names}"
    return f"{called} is given too many arguments" if is_ours else f"{called}() {verb} {rest}"


def _explain_type(message: str) -> str:
    """Return Python's message about a type in the words of Mojo."""
    called = _CALL.fullmatch(message)
    if called:
        return _explain_call(*called.groups())
    use = re.fullmatch(r"'(\w+)' object (.+)", message)
    if use and use[2] in _USES:
        return f"{_type_name(use[1])} {_USES[use[2]]}"
    joined = re.fullmatch(r'can only concatenate (\w+) \(not "(\w+)"\) to \w+', message)
    operands = re.fullmatch(r"(?:unsupported operand type\(s\) for )?'?(\S+?)'?:? .*'(\w+)' and '(\w+)'", message)
    if joined:
        operator, left, right = "+", joined[1], joined[2]
    elif operands:
        operator, left, right = operands[1], operands[2], operands[3]
    else:
        return message
    remedy = "; convert one of them first, as in String(x)" if "str" in (left, right) else "; convert one of them first"
    return f"{operator} is not defined for {_type_name(left)} and {_type_name(right)}{remedy}"


def _type_name(name: str) -> str:
    return TYPE_NAMES.get(name, name)


def describe_failure(problem: BaseException, sources: frozenset[str]) -> str:
    """Return an error with its place in the Mojo source and the calls that led to it.

    >>> describe_failure(ValueError("no"), frozenset())
    'ValueError: no'
    """
    if isinstance(problem, MojoSourceError):
        return str(problem)
    if isinstance(problem, ProgramFailure):
        return str(problem)
    lines = [explain(problem)]
    calls = mojo_calls(problem, sources)
    for k, (place, repetitions) in enumerate(_count_repetitions(calls[::-1])[:MAX_STACK]):
        times = f", {repetitions} times" if repetitions > 1 else ""
        lines.append(f"  {'at' if k == 0 else 'called from'} {place}{times}")
        lines += place.show() if k == 0 else []
    if len(_count_repetitions(calls)) > MAX_STACK:
        lines.append(f"  and {len(_count_repetitions(calls)) - MAX_STACK} more calls")
    return "\n".join(lines)


def _count_repetitions(calls: list[Call]) -> list[tuple[Call, int]]:
    """Return calls with how often each comes after itself: a function that calls itself needs one line."""
    return [(call, len(list(group))) for call, group in groupby(calls)]
