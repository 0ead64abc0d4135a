# SPDX-License-Identifier: Apache-2.0
"""`Assembly`: a tensor that is put together from parts of other tensors, described without moving anything.

Every part is a strided view of one source. Slicing, transposing, reshaping, joining, padding and repeating change the
description only; `parts_in` cuts it to a box, and the copies of those parts produce the box in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import Box, Layout

Mode: TypeAlias = "tuple[tuple[int, int], ...]"
"""The (extent, stride) pairs of one dimension, slowest first."""


def modes_layout(modes: tuple[Mode, ...]) -> Layout:
    """Return the layout with these modes.

    >>> modes_layout((((2, 12), (2, 3)), ((3, 1),)))
    Layout(((2, 2), 3), ((3, 12), 1))
    """
    shape, stride = (
        tuple([tuple([pair[k] for pair in reversed(mode)]) if len(mode) > 1 else mode[0][k] for mode in modes])
        for k in (0, 1)
    )
    return Layout(shape, stride)


@dataclass(frozen=True, slots=True)
class Part:
    """A box of an assembly: its elements are read from `source` at `offset`, with `modes` for each dimension.

    >>> Part(Box((0, 0), (2, 6)), "w", 12, (((2, 6),), ((6, 1),))).layout(12)
    Layout((2, 6), (6, 1))
    """

    box: Box
    source: str
    offset: int
    modes: tuple[Mode, ...]

    @property
    def span(self) -> tuple[int, int]:
        """The first element of the source that the part uses, and the one after the last.

        >>> Part(Box((0, 0), (2, 3)), "w", 12, (((2, 6),), ((3, 1),))).span
        (12, 21)
        """
        return self.offset, self.offset + sum((n - 1) * stride for mode in self.modes for n, stride in mode) + 1

    def layout(self, start: int) -> Layout:
        """Return the layout from coordinates in the box to elements of the source, counted from `start`.

        >>> Part(Box((0,), (6,)), "w", 8, (((3, 1), (2, 3)),)).layout(0)
        Layout(((2, 3),), ((3, 1),), offset=8)
        """
        return modes_layout(self.modes) + (self.offset - start)

    def window(self, axis: int, start: int, stop: int) -> Iterator[Part]:
        """Yield the elements from `start` to `stop` along an axis, counted from the box, as one part or several.

        >>> part = Part(Box((0,), (8,)), "w", 0, (((2, 4), (2, 1), (2, 2)),))  # pairs of halves
        >>> [(each.box.offset, each.offset, each.modes) for each in part.window(0, 2, 6)]
        [((2,), 1, (((2, 2),),)), ((4,), 4, (((2, 2),),))]
        """
        for first, offset, mode in _window_mode(self.modes[axis], start, stop):
            modes = (*self.modes[:axis], mode, *self.modes[axis + 1 :])
            at, count = list(self.box.offset), list(self.box.shape)
            at[axis], count[axis] = at[axis] + first, prod([n for n, _ in mode])
            yield Part(Box(tuple(at), tuple(count)), self.source, self.offset + offset, modes)


def _window_mode(mode: Mode, start: int, stop: int) -> Iterator[tuple[int, int, Mode]]:
    """Yield ranges (first index, offset, mode) that make up the indices from `start` to `stop` of a mode."""
    if start >= stop:
        return
    (_, stride), inner = mode[0], mode[1:]
    size = prod([n for n, _ in inner])
    low, high = ceil_div(start, size), stop // size  # the rounds of the inner modes that are complete
    if start < low * size:  # the end of one round
        before, end = (low - 1) * size, min(stop, low * size)
        for first, offset, rest in _window_mode(inner, start - before, end - before):
            yield before + first, (low - 1) * stride + offset, rest
    if low < high:
        yield low * size, low * stride, ((high - low, stride), *inner) if high - low > 1 or not inner else inner
    if low <= high and high * size < stop:  # the start of another
        for first, offset, rest in _window_mode(inner, 0, stop - high * size):
            yield high * size + first, high * stride + offset, rest


@dataclass(frozen=True)
class Assembly:
    """A tensor of `shape`, put together from `parts` that do not overlap; elements in no part are zero.

    `added` is a constant that is added to the elements of all parts, and `text` the expression that the tensor is the
    value of.

    >>> q, k = Assembly.of("q", (4, 6)), Assembly.of("k", (2, 6))
    >>> joined = join([q, k], axis=0).transpose()
    >>> joined.shape, [(part.source, part.box) for part in joined.parts_in(Box((0, 3), (6, 2)))]
    ((6, 6), [('q', Box(offset=(0, 3), shape=(6, 1))), ('k', Box(offset=(0, 4), shape=(6, 1)))])
    """

    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    added: float = 0
    text: str = field(default="", compare=False)

    @classmethod
    def of(cls, source: str, shape: Sequence[int]) -> Assembly:
        """Return a whole source tensor of some shape.

        >>> Assembly.of("w", (2, 3)).parts[0].modes
        (((2, 3),), ((3, 1),))
        """
        extents = tuple(shape)
        strides = [prod(extents[d + 1 :]) for d in range(len(extents))]
        modes = tuple([((n, stride),) for n, stride in zip(extents, strides, strict=True)])
        return cls(extents, (Part(Box((0,) * len(extents), extents), source, 0, modes),), text=f"tensor({source!r})")

    @property
    def sources(self) -> list[str]:
        """The names of the sources.

        >>> join([Assembly.of("q", (4, 6)), Assembly.of("k", (2, 6))], 0).sources
        ['q', 'k']
        """
        return list(dict.fromkeys([part.source for part in self.parts]))

    def axis(self, axis: int) -> int:
        """Return an axis, which may count from the end, as one that does not.

        >>> Assembly.of("w", (2, 3)).axis(-1)
        1
        """
        rank = len(self.shape)
        if not -rank <= axis < rank:
            raise LayoutError(f"axis {axis} is outside a tensor of shape {list(self.shape)}")
        return axis % rank

    def transpose(self, order: Sequence[int] | None = None) -> Assembly:
        """Return the tensor with its dimensions in another `order`; by default the last two are swapped.

        >>> Assembly.of("w", (2, 3, 4)).transpose().shape, Assembly.of("w", (2, 3, 4)).transpose((1, 2, 0)).shape
        ((2, 4, 3), (3, 4, 2))
        """
        rank = len(self.shape)
        if order is None and rank < 2:
            raise LayoutError(f"cannot transpose a tensor of shape {list(self.shape)}: it has fewer than 2 dimensions")
        axes = (*range(rank - 2), rank - 1, rank - 2) if order is None else tuple(map(self.axis, order))
        if sorted(axes) != list(range(rank)):
            raise LayoutError(f"{list(order or ())} is not an order of the {rank} dimensions of {list(self.shape)}")
        parts = [replace(p, box=p.box.permute(axes), modes=tuple([p.modes[d] for d in axes])) for p in self.parts]
        text = f"transpose({self.text}{'' if order is None else f', {axes}'})"
        return replace(self, shape=tuple([self.shape[d] for d in axes]), parts=tuple(parts), text=text)

    def slice(self, start: int, stop: int, axis: int = 0) -> Assembly:
        """Return the elements from `start` to `stop` along an `axis`.

        >>> Assembly.of("w", (8, 3)).slice(2, 6).parts[0].offset
        6
        """
        d = self.axis(axis)
        if not 0 <= start <= stop <= self.shape[d]:
            raise LayoutError(f"range {start}:{stop} is outside axis {d} of a tensor of shape {list(self.shape)}")
        offset, extents = [0] * len(self.shape), list(self.shape)
        offset[d], extents[d] = start, stop - start
        box = Box(tuple(offset), tuple(extents))
        parts = [replace(part, box=part.box.relative_to(box.offset)) for part in self.parts_in(box)]
        text = f"slice({self.text}, {start}, {stop}{f', {d}' if d else ''})"
        return replace(self, shape=box.shape, parts=tuple(parts), text=text)

    def chunk(self, count: int, axis: int = 0) -> list[Assembly]:
        """Return `count` equal parts along an `axis`.

        >>> [each.parts[0].offset for each in Assembly.of("w", (8, 3)).chunk(2)]
        [0, 12]
        """
        d = self.axis(axis)
        if count < 1 or self.shape[d] % count:
            raise LayoutError(
                f"axis {d} of a tensor of shape {list(self.shape)} cannot be cut into {count} equal parts"
            )
        size = self.shape[d] // count
        return [self.slice(k * size, (k + 1) * size, d) for k in range(count)]

    def pad(self, size: int, axis: int = -1) -> Assembly:
        """Return the tensor with zeros at the end of an `axis`, up to `size`.

        >>> Assembly.of("w", (8, 3)).pad(32).shape
        (8, 32)
        """
        d = self.axis(axis)
        if size < self.shape[d]:
            raise LayoutError(f"cannot pad axis {d} of a tensor of shape {list(self.shape)} to {size}; it is longer")
        text = f"pad({self.text}, {size}{'' if axis == -1 else f', {d}'})"
        return replace(self, shape=(*self.shape[:d], size, *self.shape[d + 1 :]), text=text)

    def repeat(self, count: int) -> Assembly:
        """Return `count` copies of the tensor along a new first dimension.

        >>> Assembly.of("bias", (6,)).repeat(32).shape
        (32, 6)
        """
        parts = [
            Part(Box((0, *p.box.offset), (count, *p.box.shape)), p.source, p.offset, (((count, 0),), *p.modes))
            for p in self.parts
        ]
        return replace(self, shape=(count, *self.shape), parts=tuple(parts), text=f"repeat({self.text}, {count})")

    def reshape(self, *shape: int) -> Assembly:
        """Return the tensor with another shape of as many elements, in row-major order.

        A tensor of several parts can only gain or lose dimensions of extent 1.

        >>> pairs = Assembly.of("q", (8, 3)).reshape(2, 2, 2, 3).transpose((0, 2, 1, 3)).reshape(8, 3)
        >>> pairs.parts[0].modes
        (((2, 12), (2, 3), (2, 6)), ((3, 1),))
        """
        if prod(shape) != prod(self.shape):
            raise LayoutError(f"cannot reshape {list(self.shape)} to {list(shape)}: the numbers of elements differ")
        text = f"reshape({self.text}, {', '.join(map(str, shape))})"
        if [n for n in shape if n != 1] == [n for n in self.shape if n != 1]:
            parts = [_change_unit_dimensions(part, self.shape, shape) for part in self.parts]
            return replace(self, shape=shape, parts=tuple(parts), text=text)
        if len(self.parts) != 1 or self.parts[0].box.shape != self.shape:
            raise LayoutError(
                f"cannot reshape {list(self.shape)} to {list(shape)}: it is joined from {len(self.parts)} parts;"
                " reshape them before they are joined"
            )
        part = self.parts[0]
        leaves = _merge_neighbours([pair for mode in part.modes for pair in mode if pair[0] != 1])
        modes = tuple(_regroup(leaves, self.shape, shape))
        part = Part(Box((0,) * len(shape), shape), part.source, part.offset, modes)
        return replace(self, shape=shape, parts=(part,), text=text)

    def __add__(self, constant: float) -> Assembly:
        if not isinstance(constant, (int, float)):
            return NotImplemented
        return replace(self, added=self.added + constant, text=f"{self.text} + {constant}")

    def parts_in(self, box: Box) -> Iterator[Part]:
        """Yield the parts within a `box` of the tensor, with boxes in its coordinates.

        >>> [part.offset for part in Assembly.of("w", (8, 3)).parts_in(Box((4, 0), (2, 3)))]
        [12]
        """
        for part in self.parts:
            common = part.box.intersection(box)
            if common.empty:
                continue
            cut = [part]
            for axis, (start, n) in enumerate(zip(common.offset, common.shape, strict=True)):
                low = start - part.box.offset[axis]
                if n != part.box.shape[axis]:
                    cut = [piece for whole in cut for piece in whole.window(axis, low, low + n)]
            yield from cut


def join(tensors: Sequence[Assembly], axis: int = 0) -> Assembly:
    """Return `tensors` one after the other along an `axis`.

    >>> join([Assembly.of("q", (4, 6)), Assembly.of("k", (2, 6))], axis=0).shape
    (6, 6)
    """
    if not tensors:
        raise LayoutError("expected at least one tensor to join, got none")
    first = tensors[0]
    d = first.axis(axis)
    start, parts = 0, []
    for tensor in tensors:
        others = (tensor.shape[:d], tensor.shape[d + 1 :])
        shape = list(tensor.shape)
        if len(tensor.shape) != len(first.shape) or others != (first.shape[:d], first.shape[d + 1 :]):
            raise LayoutError(
                f"cannot join shapes {list(first.shape)} and {shape} along axis {d}: the rest must be equal"
            )
        if tensor.added != first.added:
            raise LayoutError(f"cannot join tensors to which {first.added} and {tensor.added} are added")
        moved = [-start if k == d else 0 for k in range(len(first.shape))]
        parts += [replace(part, box=part.box.relative_to(tuple(moved))) for part in tensor.parts]
        start += tensor.shape[d]
    text = f"join({', '.join([tensor.text for tensor in tensors])}{f', axis={d}' if d else ''})"
    return Assembly((*first.shape[:d], start, *first.shape[d + 1 :]), tuple(parts), first.added, text)


def _change_unit_dimensions(part: Part, old: tuple[int, ...], new: tuple[int, ...]) -> Part:
    """Return a part after dimensions of extent 1 were added or removed."""
    remaining = iter([d for d, n in enumerate(old) if n != 1])
    axes = [next(remaining) if n != 1 else None for n in new]
    offset = tuple([0 if d is None else part.box.offset[d] for d in axes])
    extents = tuple([1 if d is None else part.box.shape[d] for d in axes])
    modes = tuple([((1, 0),) if d is None else part.modes[d] for d in axes])
    return Part(Box(offset, extents), part.source, part.offset, modes)


def _merge_neighbours(leaves: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return leaves, slowest first, with neighbours merged that have no gap between them."""
    merged: list[tuple[int, int]] = []
    for extent, stride in leaves:
        if merged and merged[-1][1] == extent * stride:
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    return merged


def _regroup(leaves: list[tuple[int, int]], old: tuple[int, ...], new: tuple[int, ...]) -> Iterator[Mode]:
    """Yield the modes of a new shape from the leaves of an old one, slowest first; leaves are cut where needed."""
    left = leaves[::-1]
    for n in new:
        mode: list[tuple[int, int]] = []
        while n > 1:
            extent, stride = left.pop()
            if n % extent == 0:
                mode.append((extent, stride))
                n //= extent
            elif extent % n == 0:
                mode.append((n, stride * (extent // n)))
                left.append((extent // n, stride))
                n = 1
            else:
                raise LayoutError(f"cannot reshape {list(old)} to {list(new)} without moving elements")
        yield tuple(mode) or ((1, 0),)


def count_elements(values: Iterable[Assembly]) -> Counter[str]:
    """Return how many elements of each source `values` are made from; elements of a shared part count once.

    >>> w = Assembly.of("w", (8, 3))
    >>> count_elements([w.slice(0, 2), w.slice(0, 2), w.slice(4, 5)])
    Counter({'w': 9})
    """
    result: Counter[str] = Counter()
    for source, _, modes in {(part.source, part.offset, part.modes) for value in values for part in value.parts}:
        result[source] += prod([n for mode in modes for n, stride in mode if stride])
    return result
