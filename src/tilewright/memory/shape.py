# SPDX-License-Identifier: Apache-2.0
"""`Shape`: the extents of a tensor, and the padded extents that it is stored with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from math import prod
from typing import Any

from ..errors import MemoryConfigError
from ..layout.validation import as_integer

_LEAST_RANK = 4  # a missing leading dimension reads 1, down to this rank


class Shape:
    """The logical extents of a tensor with the padded ones beside them; it compares and indexes as the logical ones.

    >>> shape = Shape([14, 28], [32, 32])
    >>> shape == (14, 28), shape[-1], shape[-4], shape.padded
    (True, 28, 1, (32, 32))
    >>> print(shape)
    [14[32], 28[32]]
    """

    __slots__ = ("_logical", "_padded")
    _logical: tuple[int, ...]
    _padded: tuple[int, ...]

    def __init__(self, logical: Iterable[int], padded: Iterable[int] | None = None) -> None:
        self._logical = _extents(logical)
        self._padded = self._logical if padded is None else _extents(padded)
        for n, room in zip_longest(reversed(self._logical), reversed(self._padded), fillvalue=1):
            if room < n:
                raise MemoryConfigError(
                    f"padded shape {list(self._padded)} is smaller than the logical shape {list(self._logical)};"
                    f" {room} must be at least {n}"
                )

    @property
    def logical(self) -> tuple[int, ...]:
        """Return the extents of the data.

        >>> Shape([14, 28], [32, 32]).logical
        (14, 28)
        """
        return self._logical

    @property
    def padded(self) -> tuple[int, ...]:
        """Return the extents with padding; the rank can be larger than that of the data.

        >>> Shape([7], [32, 32]).padded
        (32, 32)
        """
        return self._padded

    @property
    def rank(self) -> int:
        """Return the number of dimensions.

        >>> Shape([1, 4, 6, 8]).rank
        4
        """
        return len(self._logical)

    @property
    def folded(self) -> tuple[int, int]:
        """Return (rows, columns) of the matrix that the padded tensor is stored as.

        >>> Shape([1, 4, 6, 8]).folded
        (24, 8)
        """
        return prod(self._padded[:-1]), self._padded[-1] if self._padded else 1

    def with_tile_padding(self) -> Shape:
        """Return the padded extents as a shape of their own.

        >>> Shape([14, 28], [32, 32]).with_tile_padding()
        Shape([32, 32])
        """
        return type(self)(self._padded)

    def volume(self) -> int:
        """Return the number of elements, padding included.

        >>> Shape([14, 28], [32, 32]).volume()
        1024
        """
        return prod(self._padded)

    def logical_volume(self) -> int:
        """Return the number of elements that are data.

        >>> Shape([14, 28], [32, 32]).logical_volume()
        392
        """
        return prod(self._logical)

    def to_rank(self, rank: int) -> Shape:
        """Return the extents with leading ones added or taken away.

        >>> Shape([14, 28]).to_rank(4), Shape([1, 1, 5]).to_rank(1)
        (Shape([1, 1, 14, 28]), Shape([5]))
        """
        gone = self._logical[: max(0, self.rank - rank)]
        if any(n != 1 for n in gone):
            raise MemoryConfigError(
                f"{self!r} cannot have rank {rank}: the leading {list(gone)} would be lost; only ones can be stripped"
            )
        return type(self)([1] * (rank - self.rank) + list(self._logical[len(gone) :]))

    def __getitem__(self, index: int) -> int:
        at = as_integer(index, "an index of a shape")
        if not -max(self.rank, _LEAST_RANK) <= at < self.rank:
            raise IndexError(
                f"{self!r} has no dimension {at}; use {-max(self.rank, _LEAST_RANK)} to {max(self.rank - 1, 0)}"
            )
        return 1 if at < -self.rank else self._logical[at]

    def __len__(self) -> int:
        return self.rank

    def __iter__(self) -> Iterator[int]:
        return iter(self._logical)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self._logical == other._logical and self._padded == other._padded
        return list(self._logical) == list(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._logical)

    def __repr__(self) -> str:
        padded = "" if self._padded == self._logical else f", {list(self._padded)}"
        return f"{type(self).__name__}({list(self._logical)}{padded})"

    def __str__(self) -> str:
        pairs = list(zip_longest(reversed(self._logical), reversed(self._padded), fillvalue=1))[::-1]
        return f"[{', '.join(str(n) if n == room else f'{n}[{room}]' for n, room in pairs)}]"


def _extents(values: Any) -> tuple[int, ...]:
    if not isinstance(values, Iterable):
        raise TypeError(f"a shape is a list of extents, got {type(values).__name__} {values!r}")
    extents = tuple([int(as_integer(n, "an extent")) for n in values])
    if any(n < 0 for n in extents):
        raise MemoryConfigError(f"shape {list(extents)} has a negative extent; extents count elements")
    return extents
