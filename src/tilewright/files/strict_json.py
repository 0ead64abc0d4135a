# SPDX-License-Identifier: Apache-2.0
"""JSON from files of others: text that could be read in two ways, or that costs more than its size, is refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ..errors import FileFormatError


def parse_json(data: bytes | memoryview | str, what: str) -> Any:
    """Return what a JSON text says, or raise a `FileFormatError`: for bad UTF-8, repeated keys, NaN, deep nesting.

    >>> parse_json(b'{"a": [1, 2]}', "the header")
    {'a': [1, 2]}
    >>> try:
    ...     parse_json(b'{"a": 1, "a": 2}', "the header")
    ... except FileFormatError as problem:
    ...     print(problem)
    the header names 'a' twice
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise FileFormatError(f"{what} names {key!r} twice")
                seen.add(key)
        return found

    def no_constant(name: str) -> NoReturn:
        raise FileFormatError(f"{what} holds {name}, which is no JSON")

    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
        return json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except FileFormatError:
        raise
    except UnicodeDecodeError as problem:
        raise FileFormatError(f"{what} is not UTF-8: {problem.reason} at byte {problem.start}") from None
    except RecursionError:
        raise FileFormatError(f"{what} is nested too deeply") from None
    except ValueError as problem:  # also numbers with thousands of digits
        raise FileFormatError(f"{what} is not JSON: {problem}") from None


def expect_integer(value: Any, what: str, most: int = 2**63 - 1) -> int:
    """Return a JSON value that is an integer from 0 to `most`; true is not 1 here, and 1.0 not either.

    >>> expect_integer(7, "an extent")
    7
    """
    if type(value) is not int or not 0 <= value <= most:
        shown = repr(value)
        raise FileFormatError(f"{what} is {shown[:40]}; it must be a whole number from 0 to {most}")
    return value


def expect_integers(value: Any, what: str, most: int = 64) -> tuple[int, ...]:
    """Return a JSON list of integers from 0, at most `most` of them, as a tuple.

    >>> expect_integers([2, 3], "the shape")
    (2, 3)
    """
    if not isinstance(value, list) or len(value) > most:
        raise FileFormatError(f"{what} is {repr(value)[:40]}; it must be a list of at most {most} whole numbers")
    return tuple([expect_integer(n, f"an entry of {what}") for n in value])


def expect_string(value: Any, what: str) -> str:
    """Return a JSON value that is a string of whole characters: one that could be written again.

    >>> expect_string("encoder.weight", "a name")
    'encoder.weight'
    """
    if not isinstance(value, str):
        raise FileFormatError(f"{what} is {repr(value)[:40]}; it must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FileFormatError(f"{what} is {value[:40]!r}, which holds half a character (a lone surrogate)") from None
    return value
