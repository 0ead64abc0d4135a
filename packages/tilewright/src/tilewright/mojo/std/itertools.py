# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.itertools`: functions of sequences, most of them Python's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count, cycle, dropwhile, islice, product, repeat, takewhile
from typing import Any

__all__ = ["chain", "count", "cycle", "drop", "drop_while", "product", "repeat", "take", "take_while", "takewhile"]

drop_while, take_while = dropwhile, takewhile


def take(values: Iterable[Any], count: int) -> Iterator[Any]:
    """Return the first `count` values.

    >>> list(take([1, 2, 3], 2))
    [1, 2]
    """
    return islice(values, int(count))


def drop(values: Iterable[Any], count: int) -> Iterator[Any]:
    """Return the values after the first `count`.

    >>> list(drop([1, 2, 3], 2))
    [3]
    """
    return islice(values, int(count), None)
