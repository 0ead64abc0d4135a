# SPDX-License-Identifier: Apache-2.0
"""Properties of layouts, decided from their modes; only layouts that are not strided are evaluated, in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from ..errors import LayoutError
from . import evaluation
from .axes import PLAIN, Place, component
from .layout import Layout, LayoutLike, require_layout
from .tuples import Nested, leaves, nest_like


def is_injective(layout: LayoutLike) -> bool:
    """Return whether no two coordinates of data in `layout` share an offset.

    >>> is_injective(Layout((4, 8), (1, 5))), is_injective(Layout((4, 8), (1, 3)))
    (True, False)
    """
    require_layout(layout, "is_injective")
    if isinstance(layout, Layout):
        if _colliding_difference(layout) is None:
            return True
        if not layout.guards:
            return False
    return _is_injective_by_table(layout)


def is_bijective(layout: LayoutLike) -> bool:
    """Return whether `layout` maps to every offset from 0 to size - 1 exactly once.

    >>> is_bijective(Layout((4, 8), (8, 1))), is_bijective(Layout((4, 8), (1, 5)))
    (True, False)
    """
    require_layout(layout, "is_bijective")
    if isinstance(layout, Layout) and not layout.guards:
        if layout.axes or layout.replicas:
            return False
        return layout.size == 0 or (layout.bounds == (0, layout.size - 1) and _is_mixed_radix(layout))
    return _fills_interval(layout, start=0)


def is_contiguous(layout: LayoutLike) -> bool:
    """Return whether the offsets of `layout` are consecutive and distinct, from any start.

    >>> is_contiguous(Layout((4, 8), (8, 1)) + 64), is_contiguous(Layout(4, 2))
    (True, False)
    """
    require_layout(layout, "is_contiguous")
    if isinstance(layout, Layout) and not layout.guards:
        if len(layout.axes) > 1 or layout.replicas:
            return False
        plain = layout.project(layout.axes[0]) if layout.axes else layout
        return plain.size == 0 or _is_mixed_radix(plain)
    return _fills_interval(layout, start=None)


def functionally_equal(a: LayoutLike, b: LayoutLike) -> bool:
    """Return whether layouts `a` and `b` have the same size, the same offset for every index, and the same padding.

    >>> functionally_equal(Layout((2, 2), (1, 2)), Layout(4)), functionally_equal(Layout(4), Layout(4, 2))
    (True, False)
    """
    for layout in (a, b):
        require_layout(layout, "functionally_equal")
    if a.size != b.size:
        return False
    if a.size == 0:
        return True
    if isinstance(a, Layout) and isinstance(b, Layout) and not a.guards and not b.guards:
        return a.canonical_modes() == b.canonical_modes() and a.offset == b.offset and a.replicas == b.replicas
    if a.is_replicated or b.is_replicated:  # offsets are sets, which arrays cannot hold
        return all(a(i) == b(i) and a.valid(i) == b.valid(i) for i in range(a.size))
    for (_, places_a, valid_a), (_, places_b, valid_b) in zip(evaluation.chunks(a), evaluation.chunks(b), strict=True):
        if not (valid_a == valid_b).all():
            return False
        pairs = _offsets_by_axis(places_a), _offsets_by_axis(places_b)
        for name in pairs[0].keys() | pairs[1].keys():
            left, right = pairs[0].get(name, 0), pairs[1].get(name, 0)
            if not ((left == right) | ~valid_a).all():
                return False
    return True


def find_collision(layout: LayoutLike) -> tuple[Nested[int], Nested[int]] | None:
    """Return two coordinates that share an offset; None if there are none.

    >>> find_collision(Layout((4, 8), (1, 3)))
    ((0, 1), (3, 0))
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"{layout} is not strided, so its collisions do not follow from its modes")
    difference = _colliding_difference(layout)
    if difference is None:
        return None
    first = [max(0, -change) for change in difference]
    second = [max(0, change) for change in difference]
    pair: list[Any] = sorted([nest_like(layout.shape, iter(first)), nest_like(layout.shape, iter(second))], key=leaves)
    return pair[0], pair[1]


def _colliding_difference(layout: Layout) -> list[int] | None:
    """Return a nonzero difference of two coordinates that the strides map to 0, leaf by leaf; None if there is none."""
    extents = leaves(layout.shape)
    if 0 in extents:
        return None
    strides = _integer_strides(layout)
    own = len(extents)
    extents = extents + [count for count, _ in layout.replicas]
    live = [k for k in range(len(extents)) if extents[k] > 1]
    for k in live:
        if strides[k] == 0 and k < own:
            return [int(j == k) for j in range(own)]
    order = sorted(live, key=lambda k: -abs(strides[k]))
    sizes = [abs(strides[k]) for k in order]
    counts = [extents[k] - 1 for k in order]
    # reach[i]: the largest sum of the modes from i on; divisor[i]: what every such sum is a multiple of
    reach = [0] * (len(order) + 1)
    divisor = [0] * (len(order) + 1)
    for i in reversed(range(len(order))):
        reach[i] = reach[i + 1] + counts[i] * sizes[i]
        divisor[i] = gcd(divisor[i + 1], sizes[i])
    chosen = _solve_zero_sum(sizes, counts, reach, divisor, [k < own for k in order])
    if chosen is None:
        return None
    difference = [0] * own
    for k, value in zip(order, chosen, strict=True):
        if k < own:
            difference[k] = value if strides[k] > 0 else -value
    return difference


def _solve_zero_sum(
    sizes: list[int], counts: list[int], reach: list[int], divisor: list[int], is_own: list[bool]
) -> list[int] | None:
    """Return x with sum(x * sizes) == 0, |x| <= counts, and x != 0 in a mode that is the layout's own; else None.

    Sizes decrease, so at each mode only the few x that the smaller modes can still cancel are tried.
    """
    chosen = [0] * len(sizes)

    def search(i: int, total: int, all_zero: bool, moved: bool) -> bool:
        if i == len(sizes):
            return total == 0 and moved
        size = sizes[i]
        low = -counts[i] if size == 0 else max(-counts[i], -((total + reach[i + 1]) // size))
        high = counts[i] if size == 0 else min(counts[i], (reach[i + 1] - total) // size)
        for value in range(max(low, 0) if all_zero else low, high + 1):
            rest = total + value * size
            if rest % divisor[i + 1] if divisor[i + 1] else rest:
                continue
            chosen[i] = value
            if search(i + 1, rest, all_zero and value == 0, moved or (is_own[i] and value != 0)):
                return True
        chosen[i] = 0
        return False

    return list(chosen) if search(0, 0, True, False) else None


def _integer_strides(layout: Layout) -> list[int]:
    """Return the strides of modes, then of replicas, as integers; a sum is 0 only if it is 0 along every axis."""
    strides: list[Any] = leaves(layout.stride) + [stride for _, stride in layout.replicas]
    names = layout.axes
    if not names:
        return list(strides)
    extents = leaves(layout.shape) + [count for count, _ in layout.replicas]
    weights, weight = {}, 1
    for name in (*names, PLAIN):
        weights[name] = weight
        weight *= (
            2 * sum((n - 1) * abs(component(stride, name)) for n, stride in zip(extents, strides, strict=True)) + 1
        )
    return [int(sum(component(stride, name) * factor for name, factor in weights.items())) for stride in strides]


def _is_mixed_radix(layout: Layout) -> bool:
    """Return whether the sorted magnitudes of the strides continue each other from 1, without gap or overlap.

    Only then do the offsets fill an interval: sums of arithmetic progressions do so in no other way.
    """
    modes = sorted((abs(d), n) for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True) if n > 1)
    current = 1
    for stride, extent in modes:
        if stride != current:
            return False
        current *= extent
    return True


def _is_injective_by_table(layout: LayoutLike) -> bool:
    """Return whether the offsets of all data are distinct, by evaluating them."""
    columns = _valid_offsets(layout)
    if not columns:
        return True
    if len(columns) == 1:
        return len(np.unique(columns[0])) == len(columns[0])
    return len(np.unique(np.stack(columns, axis=1), axis=0)) == len(columns[0])


def _fills_interval(layout: LayoutLike, start: int | None) -> bool:
    """Return whether the offsets of all data are consecutive, from `start` if one is given."""
    columns = _valid_offsets(layout)
    if not columns or not len(columns[0]):
        return True
    if len(columns) > 1:
        return False
    offsets = np.sort(columns[0])
    first = int(offsets[0]) if start is None else start
    return bool((offsets == np.arange(first, first + len(offsets))).all())


def _valid_offsets(layout: LayoutLike) -> list[Any]:
    """Return the offsets of all data as one vector per axis."""
    columns: dict[str, list[Any]] = {}
    for _, offsets, valid in evaluation.chunks(layout):
        for name, table in _offsets_by_axis(offsets).items():
            columns.setdefault(name, []).append(np.broadcast_to(table, valid.shape)[valid])
    return [np.concatenate(parts) for parts in columns.values()]


def _offsets_by_axis(offsets: object) -> dict[str, Any]:
    return offsets._parts if isinstance(offsets, Place) else {PLAIN: offsets}


# `Box`: a range of coordinates along every axis of an array, which may extend beyond it.


@dataclass(frozen=True, slots=True)
class Box:
    """A box of coordinates: its start `offset`, which may be negative, and its `shape`, the extent along each axis.

    >>> Box((-1, 4), (3, 4)).end
    (2, 8)
    """

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def between(cls, offset: tuple[int, ...], end: tuple[int, ...]) -> Box:
        """Return the box from `offset` up to, not including, `end`.

        >>> Box.between((2, 0), (5, 5))
        Box(offset=(2, 0), shape=(3, 5))
        """
        return cls(offset, tuple([max(0, b - a) for a, b in zip(offset, end, strict=True)]))

    @property
    def end(self) -> tuple[int, ...]:
        """The first coordinate beyond the box, along each axis.

        >>> Box((2, 0), (3, 5)).end
        (5, 5)
        """
        return tuple([start + n for start, n in zip(self.offset, self.shape, strict=True)])

    @property
    def size(self) -> int:
        """The number of elements.

        >>> Box((2, 0), (3, 5)).size
        15
        """
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        """Whether the box has no elements.

        >>> Box((0, 0), (5, 0)).empty
        True
        """
        return 0 in self.shape

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as an index of an array; only for a box that starts inside.

        >>> Box((2, 0), (3, 5)).slices
        (slice(2, 5, None), slice(0, 5, None))
        """
        return tuple([slice(start, start + n) for start, n in zip(self.offset, self.shape, strict=True)])

    def within(self, space: tuple[int, ...]) -> Box:
        """Return the part of the box inside an array of shape `space`, which may be empty.

        >>> Box((-1, 4), (3, 4)).within((10, 6))
        Box(offset=(0, 4), shape=(2, 2))
        """
        low = tuple([min(max(start, 0), n) for start, n in zip(self.offset, space, strict=True)])
        high = [min(max(end, 0), n) for end, n in zip(self.end, space, strict=True)]
        return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))

    def relative_to(self, offset: tuple[int, ...]) -> Box:
        """Return the same box relative to the start `offset`.

        >>> Box((5, 4), (3, 4)).relative_to((4, 4))
        Box(offset=(1, 0), shape=(3, 4))
        """
        return Box(tuple([a - b for a, b in zip(self.offset, offset, strict=True)]), self.shape)

    def intersection(self, other: Box) -> Box:
        """Return the common part of this box and `other`, which may be empty.

        >>> Box((0, 0), (4, 4)).intersection(Box((2, 3), (4, 4)))
        Box(offset=(2, 3), shape=(2, 1))
        """
        return Box.between(tuple(map(max, self.offset, other.offset)), tuple(map(min, self.end, other.end)))

    def permute(self, order: tuple[int, ...]) -> Box:
        """Return the box with its axes in another `order`, as `numpy.transpose` has it.

        >>> Box((2, 3), (5, 9)).permute((1, 0))
        Box(offset=(3, 2), shape=(9, 5))
        """
        return Box(tuple([self.offset[axis] for axis in order]), tuple([self.shape[axis] for axis in order]))

    def __str__(self) -> str:
        return "[" + ", ".join([f"{a}:{a + n}" for a, n in zip(self.offset, self.shape, strict=True)]) + "]"


def empty_box(rank: int) -> Box:
    """Return an empty box of that rank.

    >>> empty_box(2)
    Box(offset=(0, 0), shape=(0, 0))
    """
    return Box((0,) * rank, (0,) * rank)


def largest_slab(shape: tuple[int, ...], units: Sequence[int], fits: Callable[[list[int]], bool]) -> tuple[int, ...]:
    """Return the extents of the largest slab of an array that `fits`, cut from the outermost axis inwards.

    Extents are multiples of `units`, or the array's; if even one unit per axis does not fit, that is returned.

    >>> largest_slab((100, 64), (32, 32), lambda extents: prod(extents) <= 5000)
    (64, 64)
    """
    extents = [max(1, n) for n in shape]
    for d, unit in enumerate(units):
        if fits(extents):
            break
        low, high = 1, -(-extents[d] // unit)  # in units: the largest number that fits, at least one
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits([*extents[:d], middle * unit, *extents[d + 1 :]]) else (low, middle - 1)
        extents[d] = min(low * unit, extents[d])
    return tuple(extents)


def cut_into_slabs(shape: tuple[int, ...], extents: tuple[int, ...]) -> Iterator[Box]:
    """Yield boxes of these extents that cover an array in row-major order; those at its end may be smaller.

    >>> [slab.shape for slab in cut_into_slabs((100, 64), (64, 64))]
    [(64, 64), (36, 64)]
    """
    for start in product(*[range(0, max(1, n), extent) for n, extent in zip(shape, extents, strict=True)]):
        yield Box(start, tuple([min(extent, n - at) for at, extent, n in zip(start, extents, shape, strict=True)]))
