# SPDX-License-Identifier: Apache-2.0
"""`AffineMap`: a map from coordinates to sums of their multiples, as MLIR writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError
from .index_maps import IndexDigit, Term
from .mlir_maps import read_index_expressions


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
    start = cursor.skip_space()
    index_map = read_index_expressions(cursor)
    dims = len(index_map.inputs)
    if index_map.inputs != tuple([f"d{k}" for k in range(dims)]) or index_map.symbols:
        cursor.at = start
        cursor.fail("a map of coordinates (d0, d1, ...)")
    rows = [_multiples(result, dims, cursor) for result in index_map.results]
    return AffineMap(dims, tuple([row for row, _ in rows]), tuple([constant for _, constant in rows]))


def _multiples(result: Term, dims: int, cursor: TextCursor) -> tuple[tuple[int, ...], int]:
    """Return the multiple of each coordinate that a result is the sum of, and the constant."""
    try:
        digits, constant = result.digits()
        if any(digit.divisor != 1 or digit.modulus is not None for digit in digits):
            raise LayoutError("it has a division")
    except LayoutError as problem:
        raise FileFormatError(
            f"{cursor.name}: {result.format()}, before character {cursor.at + 1}, is not a sum of multiples of"
            f" coordinates: {problem}"
        ) from None
    return tuple([digits.get(IndexDigit(f"d{k}"), 0) for k in range(dims)]), constant
