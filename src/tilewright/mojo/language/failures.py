# SPDX-License-Identifier: Apache-2.0
"""Why a program stopped, as people read it: the message, the place in the Mojo source, and who called it."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from types import CodeType

from ...errors import TilewrightError
from .problems import MojoSourceError
from .raising import Error

LONGEST_STACK = 20  # calls that are shown
TYPE_NAMES = {"int": "Int", "bool": "Bool", "float": "Float64", "str": "String", "tuple": "Tuple", "NoneType": "None"}


@dataclass(frozen=True, slots=True)
class Call:
    """A place in a Mojo source that is being carried out: `column` counts from 1, `width` is that of the expression.

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
        return f"{self.file}:{self.line}:{self.column}" + (f" in {self.function}" if self.function else "")

    def show(self) -> list[str]:
        """Return the source line and a mark below the expression.

        >>> Call("missing.mojo", 1, 1, 1, "").show()
        []
        """
        text = linecache.getline(self.file, self.line).rstrip("\n")
        stripped = text.lstrip()
        if not stripped:
            return []
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
    return Call(code.co_filename, line or 1, begin + 1, end - begin, function)


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
        name = kind or TYPE_NAMES.get(type(owner).__name__, type(owner).__name__)
        return f"{name} has no member {problem.name!r} here; if Mojo has it, tilewright does not run it yet"
    if isinstance(problem, UnboundLocalError):
        return (
            str(problem)
            .replace("cannot access local variable", "variable")
            .replace("where it is not associated with a value", "has no value here")
        )
    message = re.sub(r"\S+<locals>\.", "", str(problem)).replace("·body", "").replace("·", ".") or "no reason was given"
    kind = type(problem).__name__
    return message if isinstance(problem, (Error, ProgramFailure)) else f"{kind}: {message}"


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
    for k, place in enumerate(reversed(calls[-LONGEST_STACK:])):
        lines.append(f"  {'at' if k == 0 else 'called from'} {place}")
        lines += place.show() if k == 0 else []
    if len(calls) > LONGEST_STACK:
        lines.append(f"  and {len(calls) - LONGEST_STACK} more calls")
    return "\n".join(lines)
