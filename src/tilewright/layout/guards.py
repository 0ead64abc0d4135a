# SPDX-License-Identifier: Apache-2.0
"""Guards: linear bounds on coordinates that separate data from padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .axes import format_signed, format_tree
from .strides import validate_stride, value_range
from .tuples import Nested, Shape, index_strides, leaves, product
from .validation import as_integer


@dataclass(frozen=True, slots=True)
class Guard:
    """A bound on coordinates: they are data where `0 <= offset + sum(coordinate * stride) < limit`, padding elsewhere.

    >>> Guard((1, 32), 100)  # of 4 tiles of 32, only the first 100 elements are data
    Guard(stride=(1, 32), limit=100, offset=0)
    """

    stride: Nested[int]
    limit: int
    offset: int = 0

    def is_data(self, coordinates: list[Any]) -> Any:
        """Return whether a coordinate, given leaf by leaf, is data; arrays give arrays.

        >>> Guard((1, 32), 100).is_data([3, 3]), Guard((1, 32), 100).is_data([4, 3])
        (True, False)
        """
        value = self.offset + sum(c * step for c, step in zip(coordinates, leaves(self.stride), strict=True))
        return (value >= 0) & (value < self.limit)

    def is_always_true(self, shape: Shape) -> bool:
        """Return whether every coordinate of `shape` is data.

        >>> Guard((1, 32), 128).is_always_true((32, 4))
        True
        """
        low, high = value_range(leaves(shape), leaves(self.stride), self.offset)
        return bool(low >= 0 and high < self.limit)

    def __str__(self) -> str:
        return f"{format_tree(self.stride)}{format_signed(self.offset) if self.offset else ''}<{self.limit}"


def live_guards(shape: Shape, guards: list[Guard]) -> tuple[Guard, ...]:
    """Return the distinct guards that exclude some coordinate of `shape`.

    >>> live_guards((32, 4), [Guard((1, 32), 100), Guard((1, 32), 128)])
    (Guard(stride=(1, 32), limit=100, offset=0),)
    """
    if not guards or product(shape) == 0:
        return ()
    return tuple(dict.fromkeys(guard for guard in guards if not guard.is_always_true(shape)))


def validate_guard(guard: Any, shape: Shape) -> Guard:
    """Return `guard` if its strides are integers nested like `shape`.

    >>> validate_guard(Guard((1, 32), 100), (32, 4))
    Guard(stride=(1, 32), limit=100, offset=0)
    """
    if not isinstance(guard, Guard):
        raise TypeError(f"guards must be Guard objects, got {type(guard).__name__} {guard!r}")
    for step in leaves(validate_stride(guard.stride, shape, (shape, guard.stride))):
        as_integer(step, "the stride of a guard")
    as_integer(guard.limit, "the limit of a guard")
    as_integer(guard.offset, "the offset of a guard")
    return guard


def data_extents(shape: Shape, guards: tuple[Guard, ...]) -> tuple[int, ...] | None:
    """Return the extent of the data in each mode if every guard bounds the index of a single mode; else None.

    >>> data_extents((64, (32, 4)), (Guard((0, (1, 32)), 100),)), data_extents((8, 8), (Guard((8, 1), 60),))
    ((64, 100), None)
    """
    modes = shape if isinstance(shape, tuple) else (shape,)
    extents = [int(product(mode)) for mode in modes]
    used: set[Guard] = set()
    for guard in guards:
        steps = guard.stride if isinstance(guard.stride, tuple) else (guard.stride,)
        bounded = [k for k, step in enumerate(steps) if any(leaves(step))]
        if len(bounded) == 1 and guard.offset >= 0 and _is_index(steps[bounded[0]], modes[bounded[0]]):
            k = bounded[0]
            extents[k] = min(extents[k], max(0, guard.limit - guard.offset))
            used.add(guard)
    return tuple(extents) if used == set(guards) else None


def _is_index(steps: Nested[int], mode: Shape) -> bool:
    """Return whether the strides of a guard give the index in a mode."""
    trees = zip(leaves(mode), leaves(steps), leaves(index_strides(mode)), strict=True)
    return all(step == unit for extent, step, unit in trees if extent > 1)
