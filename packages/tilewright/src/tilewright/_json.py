# SPDX-License-Identifier: Apache-2.0
"""Strict JSON for untrusted text, where ambiguous or overly expensive input is rejected; and TOML."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

from .errors import FileFormatError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse_json(data: bytes | memoryview | str, name: str) -> Any:
    """Return a parsed JSON text; raise a `FileFormatError` for bad UTF-8, repeated keys, NaN or deep nesting.

    `name` names the text in messages.

    >>> parse_json(b'{"a": [1, 2]}', "the header")
    {'a': [1, 2]}
    >>> try:
    ...     parse_json(b'{"a": 1, "a": 2}', "the header")
    ... except FileFormatError as problem:
    ...     print(problem)
    the header has key 'a' twice
    """

    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
        return strict_decoder(name).decode(text)
    except FileFormatError:
        raise
    except UnicodeDecodeError as problem:
        raise FileFormatError(f"{name} is not UTF-8: {problem.reason} at byte {problem.start}") from None
    except RecursionError:
        raise FileFormatError(f"{name} is nested too deeply") from None
    except ValueError as problem:  # also numbers with thousands of digits
        raise FileFormatError(f"{name} is not JSON: {problem}") from None


def parse_toml(data: bytes | str, name: str) -> dict[str, Any]:
    """Return a parsed TOML text; raise a `FileFormatError` for any defect.

    `name` names the text in messages.

    >>> parse_toml("a = [1, 2]", "the rules")
    {'a': [1, 2]}
    """
    try:
        return tomllib.loads(data if isinstance(data, str) else data.decode())
    except RecursionError:
        raise FileFormatError(f"{name} is nested too deeply") from None
    except ValueError as problem:  # also of bad UTF-8
        raise FileFormatError(f"{name} is not TOML: {problem}") from None


def strict_decoder(name: str) -> json.JSONDecoder:
    """Return a decoder that rejects repeated keys and NaN with a `FileFormatError`; `name` is for messages.

    >>> strict_decoder("the header").raw_decode('{"a": 1} and more')
    ({'a': 1}, 8)
    """

    def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise FileFormatError(f"{name} has key {key!r} twice")
                seen.add(key)
        return result

    def reject_constant(constant: str) -> NoReturn:
        raise FileFormatError(f"{name} contains {constant}, which is not JSON")

    return json.JSONDecoder(object_pairs_hook=reject_repeated_keys, parse_constant=reject_constant)


def expect_integer(value: object, name: str, maximum: int = 2**63 - 1) -> int:
    """Return a JSON value if it is an integer from 0 to `maximum`, otherwise raise; True and 1.0 are not integers.

    >>> expect_integer(7, "an extent")
    7
    """
    if type(value) is not int or not 0 <= value <= maximum:
        raise FileFormatError(f"expected an integer from 0 to {maximum} as {name}, got {repr(value)[:40]}")
    return value


def expect_integers(value: object, name: str, max_count: int = 64) -> tuple[int, ...]:
    """Return a JSON list of at most `max_count` integers from 0 as a tuple, otherwise raise.

    >>> expect_integers([2, 3], "the shape")
    (2, 3)
    """
    if not isinstance(value, list) or len(value) > max_count:
        raise FileFormatError(f"expected a list of at most {max_count} integers as {name}, got {repr(value)[:40]}")
    return tuple([expect_integer(n, f"an entry of {name}") for n in value])


def expect_string(value: object, name: str) -> str:
    """Return a JSON value if it is a string without lone surrogates, otherwise raise.

    >>> expect_string("encoder.weight", "a name")
    'encoder.weight'
    """
    if not isinstance(value, str):
        raise FileFormatError(f"expected a string as {name}, got {repr(value)[:40]}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FileFormatError(f"{name} {value[:40]!r} contains a lone surrogate") from None
    return value


def expect_keys(data: object, known: set[str], name: str) -> dict[str, Any]:
    """Return `data`, the object `name` of a file; raise unless it is an object whose keys are all `known`.

    >>> try:
    ...     expect_keys({"shape": [4], "dtyp": "F32"}, {"shape", "dtype"}, "a tensor")
    ... except FileFormatError as problem:
    ...     print(problem)
    a tensor has unknown keys 'dtyp'; known keys: dtype, shape
    """
    if not isinstance(data, dict):
        raise FileFormatError(f"expected an object as {name}, got {repr(data)[:40]}")
    if unknown := sorted(map(repr, set(data) - known)):
        raise FileFormatError(f"{name} has unknown keys {', '.join(unknown)}; known keys: {', '.join(sorted(known))}")
    return data
