# SPDX-License-Identifier: Apache-2.0
"""Evaluation: modes made ready for one coordinate after another, and continued beyond their end."""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

from .steps import merge_modes
from .tuples import leaves

# One mode, ready for evaluation: its size, (extent, stride) of its coalesced leaves but the last, and the last stride.
ReadyMode: TypeAlias = "tuple[int, list[tuple[int, Any]], Any]"


def ready_mode(extents: list[int], steps: list[Any]) -> ReadyMode:
    """Return a mode, given by its coalesced leaves, ready for evaluation.

    >>> ready_mode([4, 8], [1, 5])
    (32, [(4, 1)], 5)
    """
    return prod(extents), list(zip(extents[:-1], steps[:-1], strict=True)), steps[-1]


def ready_modes(shape: Any, stride: Any) -> list[ReadyMode]:
    """Return every top-level mode ready for evaluation.

    >>> ready_modes((4, (2, 3)), (6, (3, 1)))
    [(4, [], 6), (6, [(2, 3)], 1)]
    """
    if shape.__class__ is not tuple:
        shape, stride = (shape,), (stride,)
    merged = [merge_modes(leaves(extents), [leaves(steps)]) for extents, steps in zip(shape, stride, strict=True)]
    return [ready_mode(extents, steps) for extents, (steps,) in merged]


def continued(extents: list[int], steps: list[Any], at: Any, sign: Any) -> Any:
    """Return the place of an index times its sign, where the last mode has no end; below 0 the function is odd.

    >>> continued([4, 8], [1, 10], 35, 1), continued([4, 8], [1, 10], -35, -1)
    (83, -83)
    """
    at = at * sign
    total: Any = 0
    for extent, step in zip(extents[:-1], steps[:-1], strict=True):
        total = total + at % extent * step
        at = at // extent
    return (total + at * steps[-1]) * sign
