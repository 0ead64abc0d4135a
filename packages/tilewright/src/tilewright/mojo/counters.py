# SPDX-License-Identifier: Apache-2.0
"""Mojo's `Counter`: how often each value occurs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .containers import Dict


@dataclass(frozen=True, slots=True)
class CountTuple:
    """A value and how often it occurs, `_value` and `_count` in Mojo.

    >>> entry = CountTuple("a", 2)
    >>> entry[0], entry._count
    ('a', 2)
    """

    _value: Any
    _count: int

    def __getitem__(self, k: int) -> Any:
        return (self._value, self._count)[k]


class Counter(Dict):
    """`Counter[String]("a", "b")`: a dictionary of counts of `items`, 0 for what was never counted.

    >>> letters = Counter[str]("a", "b", "a")
    >>> letters["a"], letters["z"], letters.total(), letters.most_common(1)[0][0]
    (2, 0, 3, 'a')
    """

    def __init__(self, *items: Any) -> None:
        super().__init__()
        is_collection = len(items) == 1 and isinstance(items[0], Iterable) and not isinstance(items[0], str)
        self.update(items[0] if is_collection else items)

    def __missing__(self, key: Any) -> int:
        return 0

    def update(self, other: Any) -> None:  # type: ignore[override]  # counts are added, as in Mojo
        """Add the counts of an `other` counter, or count the values of a list.

        >>> letters = Counter("a")
        >>> letters.update(["a"])
        >>> letters["a"]
        2
        """
        for value in other:
            self[value] += other[value] if isinstance(other, Mapping) else 1

    def total(self) -> int:
        """Return the sum of the counts.

        >>> Counter("a", "b").total()
        2
        """
        return sum(self.values())

    def most_common(self, n: int | None = None) -> tuple[CountTuple, ...]:
        """Return the `n` most frequent values with their counts, all of them if not told.

        >>> Counter("a", "b", "b").most_common(1)[0]._value
        'b'
        """
        ordered = sorted(self, key=lambda value: -self[value])
        return tuple([CountTuple(value, self[value]) for value in ordered[:n]])

    def copy(self) -> Counter:
        """Return a counter of the same counts.

        >>> Counter("a").copy()["a"]
        1
        """
        return Counter(self)
