# SPDX-License-Identifier: Apache-2.0
"""Why a program stopped, as people read it: the message, the place in the Mojo source, and who called it."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from itertools import groupby
from types import CodeType

from ...errors import TilewrightError
from .members import visible_members
from .problems import MojoSourceError
from .raising import FailedAssertion
from .stream import suggest
from .tokens import is_magic

LONGEST_STACK = 20  # calls that are shown
TYPE_NAMES = {"int": "Int", "bool": "Bool", "float": "Float64", "str": "String", "tuple": "Tuple", "NoneType": "None"}


@dataclass(frozen=True, slots=True)
class Call:
    """A place in a Mojo source that is being carried out: `column` counts from 1, `width` is that of the expression.

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
    """What a program asked for cannot be done; the message says where in its source, and `__cause__` has the details.

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
_NAMES = {"print_values": "print", "get_subscript": "[]", "set_subscript": "[]", "<lambda>": "the function"}


def _explain_call(name: str, verb: str, rest: str) -> str:
    """Return what is wrong with the arguments of a call, without the names of classes and arguments of ours.

    >>> _explain_call("_IntMeta.__call__", "got", "an unexpected keyword argument 'foo'")
    "Int has no argument 'foo'"
    """
    owner, _, function = name.rpartition(".")
    is_ours = bool(owner) or name.startswith(("_", "<")) or name in _NAMES  # with arguments that no program gives
    called = owner.rpartition(".")[2].strip("_").removesuffix("Meta").removesuffix("Type")
    called = called if is_magic(function) else _NAMES.get(function, function.strip("_"))
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
    for k, (place, repetitions) in enumerate(_count_repetitions(calls[::-1])[:LONGEST_STACK]):
        times = f", {repetitions} times" if repetitions > 1 else ""
        lines.append(f"  {'at' if k == 0 else 'called from'} {place}{times}")
        lines += place.show() if k == 0 else []
    if len(_count_repetitions(calls)) > LONGEST_STACK:
        lines.append(f"  and {len(_count_repetitions(calls)) - LONGEST_STACK} more calls")
    return "\n".join(lines)


def _count_repetitions(calls: list[Call]) -> list[tuple[Call, int]]:
    """Return calls with how often each comes after itself: a function that calls itself needs one line."""
    return [(call, len(list(group))) for call, group in groupby(calls)]
