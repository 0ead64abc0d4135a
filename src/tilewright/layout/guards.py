# SPDX-License-Identifier: Apache-2.0
"""Guards: linear bounds on coordinates that tell data from padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .notation import format_signed, format_tree
from .steps import span
from .tuples import Tree, leaves, product


@dataclass(frozen=True, slots=True)
class Guard:
    """A bound on coordinates: they are data where `0 <= offset + sum(coordinate * stride) < limit`, padding elsewhere.

    >>> Guard((1, 32), 100)  # of 4 tiles of 32, only the first 100 elements are data
    Guard(stride=(1, 32), limit=100, offset=0)
    """

    stride: Tree
    limit: int
    offset: int = 0

    def admits(self, at: list[Any]) -> Any:
        """Return whether a coordinate, given leaf by leaf, is data.

        >>> Guard((1, 32), 100).admits([3, 3]), Guard((1, 32), 100).admits([4, 3])
        (True, False)
        """
        value = self.offset + sum(c * step for c, step in zip(at, leaves(self.stride), strict=True))
        return (value >= 0) & (value < self.limit)

    def never_fails(self, shape: Tree) -> bool:
        """Return whether every coordinate of shape is data.

        >>> Guard((1, 32), 128).never_fails((32, 4))
        True
        """
        low, high = span(leaves(shape), leaves(self.stride), self.offset)
        return bool(low >= 0 and high < self.limit)

    def __str__(self) -> str:
        return f"{format_tree(self.stride)}{format_signed(self.offset) if self.offset else ''}<{self.limit}"


def live_guards(shape: Any, guards: list[Guard]) -> tuple[Guard, ...]:
    """Return the guards that some coordinate of shape fails, each once.

    >>> live_guards((32, 4), [Guard((1, 32), 100), Guard((1, 32), 128)])
    (Guard(stride=(1, 32), limit=100, offset=0),)
    """
    if not guards or product(shape) == 0:
        return ()
    return tuple(dict.fromkeys(guard for guard in guards if not guard.never_fails(shape)))
