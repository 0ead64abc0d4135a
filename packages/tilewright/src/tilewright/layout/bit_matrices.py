# SPDX-License-Identifier: Apache-2.0
"""Matrices over the field of two elements: a matrix is the list of its columns, a column the bits of an integer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def apply_matrix(columns: Sequence[int], bits: int) -> int:
    """Return the matrix times a vector: the XOR of the columns whose bits are set.

    >>> apply_matrix([0b01, 0b11], 0b11)
    2
    """
    result, k = 0, 0
    while bits:
        if bits & 1:
            result ^= columns[k]
        bits, k = bits >> 1, k + 1
    return result


def multiply(left: Sequence[int], right: Iterable[int]) -> list[int]:
    """Return the columns of left times right.

    >>> multiply([0b01, 0b11], [0b10, 0b11])
    [3, 2]
    """
    return [apply_matrix(left, column) for column in right]


class ColumnSpace:
    """The vectors that the columns of a matrix span, and how: which columns give a vector.

    A column that depends on earlier ones is never used, so that among several answers the one with the earliest
    columns is given.

    >>> space = ColumnSpace([0b01, 0b11, 0b10])
    >>> space.rank, space.solve(0b10), space.kernel
    (2, 3, [7])
    """

    def __init__(self, columns: Sequence[int]) -> None:
        self._pivots: dict[int, tuple[int, int]] = {}  # by highest bit: a vector, and the columns that give it
        self.kernel: list[int] = []
        for k, column in enumerate(columns):
            rest, used = self._reduce(column)
            if rest:
                self._pivots[rest.bit_length()] = rest, used | 1 << k
            else:
                self.kernel.append(used | 1 << k)

    @property
    def rank(self) -> int:
        """Return how many columns are independent.

        >>> ColumnSpace([1, 1]).rank
        1
        """
        return len(self._pivots)

    def _reduce(self, vector: int) -> tuple[int, int]:
        """Return what is left of a vector outside the space, and the columns that give the rest of it."""
        rest, used = 0, 0
        while vector:
            pivot = self._pivots.get(vector.bit_length())
            if pivot is None:
                top = 1 << (vector.bit_length() - 1)
                rest, vector = rest | top, vector ^ top
            else:
                vector, used = vector ^ pivot[0], used ^ pivot[1]
        return rest, used

    def solve(self, vector: int) -> int | None:
        """Return the columns, as bits, whose XOR is a vector; None if there are none.

        >>> ColumnSpace([0b01]).solve(0b10) is None
        True
        """
        rest, used = self._reduce(vector)
        return None if rest else used
