# SPDX-License-Identifier: Apache-2.0
"""Orders: in which order one tensor has the elements of another, found from the elements and proven on all of them.

An order is an `Assembly`: reshapes and transposes of its source. Orders that people know are tried first, by name;
then strides are read off the elements; then entire rows are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._text import format_extents, name_axis
from ..copying import Assembly, join
from ..errors import LayoutError
from .line_search import Lines, divisors, find_runs, order_of_lines
from .tensor_diff import Array

Modes: TypeAlias = "list[tuple[int, int]]"  # (extent, stride), slowest first

_SAMPLE = 256  # elements that most wrong orders differ in
_MAX_STEPS = 4000  # of a search for strides
_MAX_DIMENSIONS = 4  # of which all orders are tried
_MAX_BLOCKS = 1 << 12  # of rows that were moved together
_ROW_SAMPLE = 32  # elements that most wrong rows differ in
TILE, _FACE = 32, 16


@dataclass(frozen=True)
class Values:
    """The elements of two tensors, made comparable: flat arrays, and how far two equal elements may be apart.

    >>> values = Values(np.arange(4), np.arange(4)[::-1].copy())
    >>> values.hold(np.array([3, 2, 1, 0]))
    True
    """

    a: Array
    b: Array
    apart: Array | None = None  # of each element of b; None if they are equal bit by bit

    def same(self, ours: Array, at: Any) -> NDArray[np.bool_]:
        """Return which elements of `ours`, taken from a, are the elements `at` of b."""
        theirs = self.b[at]
        if self.apart is None:
            equal: NDArray[np.bool_] = ours == theirs
            return equal
        close: NDArray[np.bool_] = np.abs(ours - theirs) <= self.apart[at]
        return close

    def hold(self, offsets: Array) -> bool:
        """Return whether the elements of a at `offsets` are all elements of b, in order."""
        return bool(self.same(self.a[offsets], slice(None)).all())

    def rows_along(self, shape: tuple[int, ...], axis: int) -> Values:
        """Return both sides as matrices whose rows are the parts of a tensor of some `shape` along an `axis`."""
        sides = [side for side in (self.a, self.b, self.apart) if side is not None]
        return Values(*[np.moveaxis(side.reshape(shape), axis, 0).reshape(shape[axis], -1) for side in sides])

    def hold_in_order(self, order: Assembly) -> bool:
        """Return whether b has all elements of a in an `order`, after a look at some of them."""
        modes = flat_modes(order)
        count = prod([n for n, _ in modes])
        sample = np.unique(np.linspace(0, count - 1, _SAMPLE).astype(np.int64))
        if not self.same(self.a[offsets_of(modes, sample)], sample).all():
            return False
        shape, strides = [n for n, _ in modes], [stride * self.a.itemsize for _, stride in modes]
        view = np.lib.stride_tricks.as_strided(self.a, shape, strides, writeable=False)
        return all(  # slab by slab, as temporaries are as large as what is compared
            self.same(part.reshape(-1), slice(k * part.size, (k + 1) * part.size)).all() for k, part in enumerate(view)
        )


def flat_modes(order: Assembly) -> Modes:
    """Return the extents and strides of an order, slowest first.

    >>> flat_modes(Assembly.of("A", (2, 3)).transpose())
    [(3, 1), (2, 3)]
    """
    return [pair for mode in order.parts[0].modes for pair in mode if pair[0] > 1] or [(1, 0)]


def offsets_of(modes: Modes, index: Array) -> Array:
    """Return the elements that an order has at some indices.

    >>> offsets_of([(3, 1), (2, 3)], np.arange(6)).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    offsets = np.zeros_like(index)
    for extent, stride in reversed(modes):
        index, digit = np.divmod(index, extent)
        offsets += digit * stride
    return offsets


# Orders that have a name.


def named_orders(source: str, shape: tuple[int, ...]) -> Iterator[tuple[str, Assembly]]:
    """Yield orders of a source of some shape that have a name, the simplest first, in words.

    >>> [words for words, _ in named_orders("A", (4, 6))][:2]
    ['', 'transposed']
    """
    whole = Assembly.of(source, shape)
    yield "", whole
    turned = [("", whole)]
    long = [d for d, n in enumerate(shape) if n > 1]
    if 1 < len(long) <= _MAX_DIMENSIONS:
        for places in permutations(long):
            if list(places) != long:
                axes = tuple([places[long.index(d)] if d in long else d for d in range(len(shape))])
                swapped = "transposed" if len(long) == 2 else f"with dimensions in the order {axes}"
                turned.append((swapped, whole.transpose(axes)))
                yield turned[-1]
    for words, tensor in turned:
        if not words or len(long) == 2:
            for more, in_heads in _rope_orders(tensor):
                yield f"{words}, {more}" if words else more, in_heads
    yield from _tile_orders(whole)


def _rope_orders(tensor: Assembly) -> Iterator[tuple[str, Assembly]]:
    """Yield the orders with the rows of heads in pairs or halves, along each of the last two dimensions."""
    rank = len(tensor.shape)
    for axis in range(max(0, rank - 2), rank):
        before, after, extent = tensor.shape[:axis], tensor.shape[axis + 1 :], tensor.shape[axis]
        for heads in divisors(extent):
            half = extent // heads // 2
            if half < 2 or extent % (2 * heads):
                continue
            swap = (*range(axis), axis, axis + 2, axis + 1, *range(axis + 3, rank + 2))
            of = f"the {name_axis(axis, rank)} of {heads} heads of {2 * half}"
            why = ("rope: halves made pairs", "rope: pairs made halves")
            if heads == 1:
                of, why = f"its {name_axis(axis, rank)}", ("interleaved", "taken apart")
            for shape, words in (
                ((2, half), f"with {of} in pairs, one of each half ({why[0]})"),
                ((half, 2), f"with {of} in halves, every other one ({why[1]})"),
            ):
                yield words, tensor.reshape(*before, heads, *shape, *after).transpose(swap).reshape(*tensor.shape)


# Orders of a matrix by the dimensions (tile row, face row, row, tile column, face column, column), slowest first.
_MATRIX_ORDERS = {
    "row by row": (0, 1, 2, 3, 4, 5),
    "in tiles with faces": (0, 3, 1, 4, 2, 5),
    "in tiles without faces": (0, 3, 1, 2, 4, 5),
    "in tiles with faces, column by column": (3, 0, 1, 4, 2, 5),
    "in tiles without faces, column by column": (3, 0, 1, 2, 4, 5),
    "in tiles with faces, each transposed": (0, 3, 4, 1, 5, 2),
    "in tiles with their faces transposed": (0, 3, 4, 1, 2, 5),
    "in tiles with the elements of faces transposed": (0, 3, 1, 4, 5, 2),
    "column by column": (3, 4, 5, 0, 1, 2),
}


def _tile_orders(tensor: Assembly) -> Iterator[tuple[str, Assembly]]:
    """Yield the orders of one matrix that has its elements in tiles, in A, in B or in both."""
    shape = tensor.shape
    if len(shape) < 2 or shape[-1] % TILE or prod(shape[:-1]) % TILE:
        return
    extents = (prod(shape[:-1]) // TILE, TILE // _FACE, _FACE, shape[-1] // TILE, TILE // _FACE, _FACE)
    pairs = [(ours, theirs) for ours in _MATRIX_ORDERS for theirs in _MATRIX_ORDERS if ours != theirs]
    for ours, theirs in pairs:
        stored, wanted = _MATRIX_ORDERS[ours], _MATRIX_ORDERS[theirs]
        cut = tensor.reshape(*[extents[k] for k in stored])
        yield f"with its elements {theirs} instead of {ours}", cut.transpose([stored.index(k) for k in wanted])
    for ours, theirs in pairs:
        stored, wanted = _MATRIX_ORDERS[ours], _MATRIX_ORDERS[theirs]
        try:
            written = tensor.reshape(*extents).transpose(stored).reshape(*[extents[k] for k in wanted])
        except LayoutError:  # tiles of one order are not tiles of the other
            continue
        yield (
            f"written {ours} and read as if {theirs}",
            written.transpose([wanted.index(k) for k in range(len(wanted))]),
        )


# Strides, read off the elements.


def find_strides(values: Values) -> Modes | None:
    """Return the modes of the order in which b has the elements of a, or None if no strides were found.

    >>> a = np.random.default_rng(0).permutation(24)
    >>> find_strides(Values(a, a.reshape(2, 3, 4).transpose(2, 0, 1).reshape(-1)))
    [(4, 1), (6, 4)]
    """
    count = len(values.a)
    steps = [0]

    def search(modes: Modes, block: int) -> Modes | None:
        if block == count:
            return modes
        steps[0] += 1
        inside = offsets_of(modes or [(1, 0)], np.arange(min(block, _SAMPLE), dtype=np.int64))
        last = sum((n - 1) * stride for n, stride in modes)
        natural = modes[0][0] * modes[0][1] if modes else 0
        for stride in strides:
            most = min(count // block, (count - 1 - last) // stride + 1)
            if stride == natural or most < 2 or steps[0] > _MAX_STEPS:
                continue
            run = 1
            for first, end in ((1, min(9, most)), (9, most)):  # most strides fail at once
                if run == first:
                    at = np.arange(first, end, dtype=np.int64)[:, None]
                    theirs = at * block + np.arange(len(inside), dtype=np.int64)
                    good = values.same(values.a[at * stride + inside], theirs)
                    wrong = np.flatnonzero(~good.reshape(end - first, -1).all(axis=1))
                    run += int(wrong[0]) if len(wrong) else end - first
            for extent in reversed([k for k in extents if 1 < k <= run and (count // block) % k == 0]):
                rest = search([(extent, stride), *modes], block * extent)
                if rest is not None:
                    return rest
        return None

    extents = strides = divisors(count)
    if count < 2 or len(values.b) != count or not values.same(values.a[:1], slice(0, 1)).all():
        return None
    modes = search([], 1)
    return modes if modes is not None and values.hold(offsets_of(modes, np.arange(count, dtype=np.int64))) else None


def order_with_strides(source: str, shape: tuple[int, ...], modes: Modes) -> Assembly:
    """Return an order by its modes: the source, cut to their extents, and transposed.

    >>> order_with_strides("A", (4, 6), [(6, 1), (4, 6)]).text
    "transpose(reshape(tensor('A'), 4, 6), (1, 0))"
    """
    by_stride = _by_stride(modes)
    cut = Assembly.of(source, shape).reshape(*[modes[k][0] for k in by_stride])
    return cut.transpose([by_stride.index(k) for k in range(len(modes))])


def _by_stride(modes: Modes) -> list[int]:
    """Return the positions of modes by their strides, the largest first."""
    return sorted(range(len(modes)), key=lambda k: -modes[k][1])


# Rows that moved as a whole.


def find_moved_rows(values: Values) -> NDArray[np.int64] | None:
    """Return which row of a each row of b is, where both are matrices; None unless a has all of them.

    >>> a = np.arange(12, dtype=np.uint32).reshape(4, 3)
    >>> find_moved_rows(Values(a, a[[2, 3, 0, 1]])).tolist()
    [2, 3, 0, 1]
    """
    width = values.a.shape[1]
    at = np.unique(np.linspace(0, width - 1, _ROW_SAMPLE).astype(np.int64))
    steps = None if values.apart is None else values.apart[:, at]
    rows, wanted = (Lines(side[:, at], None, np.ones(len(side), np.bool_), width) for side in (values.a, values.b))
    runs = find_runs(wanted._replace(steps=steps), [rows])
    if runs is None:
        return None
    moved = np.concatenate([run.start + order_of_lines(run.order, run.size, run.length) for run in runs])
    return moved if values.same(values.a[moved], slice(None)).all() else None


def join_moved_rows(tensor: Assembly, moved: Array, axis: int = 0) -> tuple[str, Assembly] | None:
    """Return the rows of a tensor along an `axis` in another order, by blocks that moved together; None if too many.

    >>> join_moved_rows(Assembly.of("A", (4, 3)), np.array([2, 3, 0, 1]))[0]
    'with the halves of its rows exchanged'
    """
    edges = [0, *(np.flatnonzero(np.diff(moved) != 1) + 1).tolist(), len(moved)]
    blocks = [(int(moved[start]), int(moved[start]) + end - start) for start, end in pairwise(edges)]
    if len(blocks) > _MAX_BLOCKS:
        return None
    order = join([tensor.slice(first, last, axis) for first, last in blocks], axis)
    name = name_axis(axis, len(tensor.shape))
    for size in divisors(len(moved))[1:] if len(blocks) > len(moved) // 2 else ():
        if np.array_equal(moved.reshape(-1, size)[:, ::-1].reshape(-1), np.arange(len(moved))):
            groups = "" if size == len(moved) else f" in each group of {size}"
            return f"with its {name}{groups} in reverse", order
    if len(blocks) == 2:
        halves = f"with the halves of its {name} exchanged"
        return halves if 2 * edges[1] == edges[2] else f"with its {name} moved on by {edges[1]}, cyclically", order
    listed = ", ".join([f"{first}:{last}" for first, last in blocks[:4]])
    more = f" and {len(blocks) - 4} more" if len(blocks) > 4 else ""
    return f"with its {name} in {len(blocks)} other blocks: {listed}{more}", order


def find_order(
    values: Values, source: str, shape: tuple[int, ...], target: tuple[int, ...]
) -> tuple[str, Assembly] | None:
    """Return the order in which b, of shape `target`, has the elements of a, of some `shape`, in words; or None.

    `source` is the name of a.

    >>> a = np.random.default_rng(0).permutation(48).reshape(8, 6)
    >>> words, order = find_order(Values(a.reshape(-1), a.T.reshape(-1)), "A", (8, 6), (6, 8))
    >>> words, order.text
    ('transposed', "transpose(tensor('A'), (1, 0))")
    """
    for words, order in named_orders(source, shape):
        if values.hold_in_order(order):
            return words or f"in the shape {format_extents(target)}", _with_shape(order, target)
    modes = find_strides(values)
    if modes is not None:
        order = order_with_strides(source, shape, modes)
        cut = format_extents([modes[k][0] for k in _by_stride(modes)])
        return f"cut to {cut} and transposed to {order.shape}", _with_shape(order, target)
    if shape != target:
        return None
    for axis in range(len(shape)):
        moved = find_moved_rows(values.rows_along(shape, axis))
        if moved is not None:
            return join_moved_rows(Assembly.of(source, shape), moved, axis)
    return None


def _with_shape(order: Assembly, target: tuple[int, ...]) -> Assembly:
    """Return an order in another shape, or as it is if strides cannot express that for each dimension."""
    if order.shape == target:
        return order
    try:
        return order.reshape(*target)
    except LayoutError:
        return order
