# SPDX-License-Identifier: Apache-2.0
"""`AffineMap`: a map from coordinates to sums of their multiples, as MLIR writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import FileFormatError
from .text_cursor import MAX_RANK, TextCursor

_DIMENSION = re.compile(r"d(\d{1,3})(?!\w)", re.ASCII)
_SIGN = re.compile(r"\+|-(?!>)")


@dataclass(frozen=True, slots=True)
class AffineMap:
    """A map from `dims` coordinates: each result is a sum of their multiples (`coefficients`) and a constant.

    >>> fold = parse_affine_map("(d0, d1, d2) -> (d0 * 32 + d1, d2)")
    >>> fold
    AffineMap(dims=3, coefficients=((32, 1, 0), (0, 0, 1)), constants=(0, 0))
    >>> fold((2, 5, 7))
    (69, 7)
    >>> print(fold)
    (d0, d1, d2) -> (d0 * 32 + d1, d2)
    """

    dims: int
    coefficients: tuple[tuple[int, ...], ...]  # of each result, one per coordinate
    constants: tuple[int, ...]  # of each result

    def __call__(self, coord: Sequence[int]) -> tuple[int, ...]:
        pairs = zip(self.coefficients, self.constants, strict=True)
        return tuple([constant + sum(a * b for a, b in zip(row, coord, strict=True)) for row, constant in pairs])

    def extents(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return how far the results reach, each from 0, over all coordinates of `shape`.

        >>> parse_affine_map("(d0, d1) -> (d0 * 32 + d1)").extents((2, 32))
        (64,)
        """
        return tuple([last + 1 for last in self([n - 1 for n in shape])])

    def __str__(self) -> str:
        results = [_result_text(row, constant) for row, constant in zip(self.coefficients, self.constants, strict=True)]
        return f"({', '.join([f'd{k}' for k in range(self.dims)])}) -> ({', '.join(results)})"


def _result_text(row: tuple[int, ...], constant: int) -> str:
    terms = [f"d{k}" if n == 1 else f"d{k} * {n}" for k, n in enumerate(row) if n]
    text = " + ".join(terms)
    if not terms or constant > 0:
        return f"{text} + {constant}" if terms else str(constant)
    return f"{text} - {-constant}" if constant else text


def parse_affine_map(text: str) -> AffineMap:
    """Return the map of a `text` such as (d0, d1) -> (d0 * 32 + d1), with affine_map<...> around it or without.

    >>> parse_affine_map("affine_map<(d0) -> (0, d0)>").coefficients
    ((0,), (1,))
    """
    cursor = TextCursor(text, "an affine map")
    result = read_affine_map(cursor)
    cursor.expect_end()
    return result


def read_affine_map(cursor: TextCursor) -> AffineMap:
    """Return the map at a `cursor`.

    >>> read_affine_map(TextCursor("(d0) -> (d0), <1x1>", "a layout")).dims
    1
    """
    is_wrapped = cursor.accept("affine_map")
    if is_wrapped:
        cursor.expect("<")
    dims = _read_dimensions(cursor)
    cursor.expect("->")
    cursor.expect("(")
    coefficients: list[tuple[int, ...]] = []
    constants: list[int] = []
    while not cursor.accept(")"):
        if coefficients:
            cursor.expect(",")
        if len(coefficients) == MAX_RANK:
            cursor.fail(f"at most {MAX_RANK} results")
        row, constant = _read_sum(cursor, dims)
        coefficients.append(row)
        constants.append(constant)
    if is_wrapped:
        cursor.expect(">")
    return AffineMap(dims, tuple(coefficients), tuple(constants))


def _read_dimensions(cursor: TextCursor) -> int:
    """Return the number of coordinates of "(d0, d1, ...)"."""
    cursor.expect("(")
    count = 0
    while not cursor.accept(")"):
        if count:
            cursor.expect(",")
        found = cursor.match(_DIMENSION)
        if not found or int(found[1]) != count or count == MAX_RANK:
            cursor.fail(f"d{count}" if count < MAX_RANK else f"at most {MAX_RANK} coordinates")
        count += 1
    return count


def _read_sum(cursor: TextCursor, dims: int) -> tuple[tuple[int, ...], int]:
    row, constant, sign = [0] * dims, 0, -1 if cursor.accept("-") else 1
    while True:
        dimension, factor = _read_term(cursor, dims)
        if dimension is None:
            constant += sign * factor
        else:
            row[dimension] += sign * factor
        found = cursor.match(_SIGN)
        if not found:
            return tuple(row), constant
        sign = -1 if found[0] == "-" else 1


def _read_term(cursor: TextCursor, dims: int) -> tuple[int | None, int]:
    """Return the coordinate of a term, or None, and its factor; the factor may come first."""
    found, factor = cursor.match(_DIMENSION), 1
    if not found:
        factor = cursor.integer("a coordinate such as d0, or an integer")
        if not cursor.accept("*"):
            return None, factor
        found = cursor.match(_DIMENSION)
    elif cursor.accept("*"):
        factor = -cursor.integer() if cursor.accept("-") else cursor.integer()
    if not found:
        cursor.fail("a coordinate such as d0")
    if int(found[1]) >= dims:
        raise FileFormatError(f"{cursor.name}: d{found[1]} before character {cursor.at + 1} is not one of {dims}")
    return int(found[1]), factor
