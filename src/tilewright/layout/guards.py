# SPDX-License-Identifier: Apache-2.0
"""Guards: linear bounds on coordinates that tell data from padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .notation import format_signed, format_tree
from .steps import span
from .tuples import Tree, index_strides, leaves, product


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


def box_extents(shape: Any, guards: tuple[Guard, ...]) -> tuple[int, ...] | None:
    """Return how much of each mode is data, if every guard bounds the index of a single mode; else None.

    >>> box_extents((64, (32, 4)), (Guard((0, (1, 32)), 100),)), box_extents((8, 8), (Guard((8, 1), 60),))
    ((64, 100), None)
    """
    modes = shape if shape.__class__ is tuple else (shape,)
    extents = [int(product(mode)) for mode in modes]
    bound: set[Guard] = set()
    for guard in guards:
        steps = guard.stride if guard.stride.__class__ is tuple else (guard.stride,)
        concerned = [k for k, step in enumerate(steps) if any(leaves(step))]
        if len(concerned) == 1 and guard.offset >= 0 and _counts(steps[concerned[0]], modes[concerned[0]]):
            k = concerned[0]
            extents[k] = min(extents[k], max(0, guard.limit - guard.offset))
            bound.add(guard)
    return tuple(extents) if bound == set(guards) else None


def _counts(steps: Tree, mode: Tree) -> bool:
    """Return whether a guard's strides give the index in a mode."""
    trees = zip(leaves(mode), leaves(steps), leaves(index_strides(mode)), strict=True)
    return all(step == unit for extent, step, unit in trees if extent > 1)
