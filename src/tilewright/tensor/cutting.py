# SPDX-License-Identifier: Apache-2.0
"""Cutting: every view of a tensor as a substitution of indices in its layout.

A tensor's layout has two modes: the logical elements, and the lanes within an element (none for plain scalars). A
view replaces the index of each mode of the elements by `start + step * i`; tiles, slices and the shares of threads
differ only in these numbers. What leaves the extent of a mode is kept in the layout and guarded, so that a view at a
ragged edge has its full shape and knows which part of it is real.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..layout import ComposedLayout, Layout, coalesce, compose
from ..layout.guards import Guard, live_guards
from ..layout.regrouping import restructure
from ..layout.strided import make
from ..layout.tuples import ceil_div, leaves, map_leaves, product, product_each

# What becomes of one mode: index i of the view is index start + step * i of the mode, for i below extent.
Cut: TypeAlias = "tuple[int, int, int]"  # start, extent, step


def paired(layout: Any) -> Any:
    """Return a layout of scalars as (elements, lanes), with no lanes.

    >>> print(paired(Layout((4, 8))))
    ((4,8),()):((1,4),())
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, paired(layout.inner))
    return restructure(layout, lambda tree, _: (tree if isinstance(tree, tuple) else (tree,), ()))


def elements_of(whole: Any) -> Any:
    """Return the layout of the first lane of every element.

    >>> print(elements_of(paired(Layout((4, 8)))))
    (4,8):(1,4)
    """
    if not isinstance(whole, Layout):
        return ComposedLayout(whole.outer, elements_of(whole.inner))
    guards = [Guard(guard.stride[0], guard.limit, guard.offset) for guard in whole.guards]  # type: ignore[index]
    shape = whole.shape[0]
    return make(shape, whole.stride[0], whole.offset, (), live_guards(shape, guards))


def lanes_of(whole: Any) -> Any:
    """Return the layout of the lanes of the first element.

    >>> print(lanes_of(vectorized(paired(Layout((4, 8))), (1, 4))))
    (1,4):(1,4)
    """
    if not isinstance(whole, Layout):
        return ComposedLayout(whole.outer, lanes_of(whole.inner))
    return make(whole.shape[1], whole.stride[1], whole.offset)


def cut(whole: Any, cuts: Sequence[Cut], keep: Sequence[bool] | None = None) -> tuple[Any, int]:
    """Return (layout, shift): the cut of every mode, and how far its first element lies from that of the whole.

    Modes that are not to be kept are cut to one index and dropped.

    >>> print(*cut(paired(Layout((9, 8), (8, 1))), [(6, 3, 1), (4, 4, 1)]))
    ((3,4),()):((8,1),()) 52
    """
    if not isinstance(whole, Layout):
        inner, shift = cut(whole.inner, cuts, keep)
        return ComposedLayout(whole.outer, inner + shift), 0
    shape, stride = whole.shape[0], whole.stride[0]
    extents, steps, outside = [], [], []
    shift = 0
    for k, (start, extent, step) in enumerate(cuts):
        n, d = shape[k], stride[k]
        extents.append(extent)
        if n.__class__ is tuple:
            inner = None if whole.guards else _in_first_leaf(n, d, cuts[k])
            if inner is None:
                return _cut_nested(whole, cuts, keep)
            steps.append(inner[0])
            shift += inner[1]
            continue
        steps.append(d if step == 1 else d * step)
        shift += start * d
        if extent and not 0 <= start + (extent - 1) * step < n:
            outside.append(k)
    pair = (tuple(extents), whole.shape[1])
    strides = (tuple(steps), whole.stride[1])
    guards = tuple([_bound(k, len(cuts), cuts[k], shape[k], whole.shape[1]) for k in outside])
    if whole.guards or 0 in extents:  # bounds of what leaves a mode are live, and differ: only others need a look
        guards = live_guards(pair, [*[_cut_guard(guard, cuts) for guard in whole.guards], *guards])
    found = make(pair, strides, whole.offset, (), guards)
    return (found if keep is None else _dropped(found, keep)), int(shift)


def _in_first_leaf(shape: Any, stride: Any, part: Cut) -> tuple[Any, Any] | None:
    """Return (stride, shift) of a tile of a nested mode that is a whole part of its first leaf; None for others."""
    start, extent, step = part
    counts = leaves(shape)
    if step != 1 or extent.__class__ is not int or extent < 2 or start % extent or counts[0] % extent:
        return None
    steps, shift = leaves(stride), 0
    for n, d in zip(counts, steps, strict=True):
        start, digit = divmod(start, n)
        shift += digit * d
    return None if start else (steps[0], shift)


def _cut_guard(guard: Guard, cuts: Sequence[Cut]) -> Guard:
    outer, lanes = guard.stride  # type: ignore[misc]
    moved = sum(start * step for (start, _, _), step in zip(cuts, outer, strict=True))  # type: ignore[arg-type]
    scaled = tuple([c[2] * step for c, step in zip(cuts, outer, strict=True)])  # type: ignore[arg-type]
    return Guard((scaled, lanes), guard.limit, int(guard.offset + moved))


def _bound(k: int, rank: int, part: Cut, extent: int, lanes: Any) -> Guard:
    steps = tuple([part[2] if j == k else 0 for j in range(rank)])
    return Guard((steps, map_leaves(lambda _: 0, lanes)), int(extent), part[0])


def _dropped(whole: Layout, keep: Sequence[bool]) -> Layout:
    def kept(tree: Any, _: Any) -> Any:
        return (tuple([part for part, stays in zip(tree[0], keep, strict=True) if stays]), tree[1])

    found: Layout = restructure(whole, kept)
    return found


def _cut_nested(whole: Layout, cuts: Sequence[Cut], keep: Sequence[bool] | None) -> tuple[Any, int]:
    """Return the same where modes nest: by composition, which may not be strided."""
    tilers = tuple([Layout(extent, step) + start for start, extent, step in cuts])
    found = compose(whole, (tilers, None))
    if keep is not None:
        found = _inside(found, lambda layout: _dropped(layout, keep))
    return found, 0


def _inside(layout: Any, change: Any) -> Any:
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, _inside(layout.inner, change))
    return change(layout)


def rebased(whole: Any) -> tuple[Any, int]:
    """Return (layout, first): the place of the first element, and the layout counted from there.

    >>> print(*rebased(paired(Layout((4, 8)) + 5)))
    ((4,8),()):((1,4),()) 5
    """
    if isinstance(whole, Layout):
        return (whole - whole.offset, int(whole.offset)) if whole.offset else (whole, 0)
    first = whole.extended(0) if product(whole.shape) else 0
    return (whole - first, int(first)) if first else (whole, 0)


def vectorized(whole: Any, widths: Sequence[int]) -> Any:
    """Return the layout with blocks of elements as lanes of one element; lanes that were there stay within them.

    >>> print(vectorized(paired(Layout((10, 12), (12, 1))), (1, 4)))
    ((10,3),(1,4)):((12,4),(12,1))
    """
    if not isinstance(whole, Layout):
        return ComposedLayout(whole.outer, vectorized(whole.inner, widths))
    shape, stride = whole.shape[0], whole.stride[0]
    if any(isinstance(mode, tuple) for mode in shape):
        return _vectorized_nested(whole, widths)
    blocks = tuple([ceil_div(n, width) for n, width in zip(shape, widths, strict=True)])
    pair = (blocks, _joined_lanes(whole.shape[1], tuple(widths)))
    guards = [_widened(guard.stride, widths, guard.limit, guard.offset) for guard in whole.guards]
    for k, (n, width) in enumerate(zip(shape, widths, strict=True)):
        if n % width and not any(_bounds(guard, k, n) for guard in whole.guards):
            unit = tuple([int(j == k) for j in range(len(shape))])
            guards.append(_widened((unit, map_leaves(lambda _: 0, whole.shape[1])), widths, int(n), 0))
    scaled = tuple([d * width for d, width in zip(stride, widths, strict=True)])
    strides = (scaled, _joined_lanes(whole.stride[1], stride))
    return make(pair, strides, whole.offset, (), live_guards(pair, guards))


def _bounds(guard: Guard, k: int, extent: int) -> bool:
    """Return whether a guard already keeps the index of mode k below its extent."""
    steps: Any = guard.stride
    outer = steps[0]
    alone = all(step == 0 for j, step in enumerate(outer) if j != k)
    step = outer[k]
    return bool(alone and step > 0 and guard.offset >= 0 and guard.limit - guard.offset <= extent * step)


def _widened(stride: Any, widths: Sequence[int], limit: int, offset: int) -> Guard:
    outer, lanes = stride
    scaled = tuple([step * width for step, width in zip(outer, widths, strict=True)])
    return Guard((scaled, _joined_lanes(lanes, outer)), limit, offset)


def _joined_lanes(lanes: Any, fresh: Any) -> Any:
    """Return new lanes around those that are there: mode by mode, or after them where a slice dropped their modes."""
    if lanes and len(lanes) == len(fresh):
        return tuple(zip(lanes, fresh, strict=True))
    return (*lanes, *fresh)


def _vectorized_nested(whole: Layout, widths: Sequence[int]) -> Any:
    """Return the same where modes nest: by composition, which may not be strided."""
    counts = product_each(whole.shape[0])
    tilers = [make((ceil_div(n, width), width), (width, 1)) for n, width in zip(counts, widths, strict=True)]

    def arrange(tree: Any, _: Any) -> Any:
        outer, fresh = (tuple([mode[part] for mode in tree[0]]) for part in (0, 1))
        return outer, _joined_lanes(tree[1], fresh)

    return _inside(compose(whole, (tuple(tilers), None)), lambda layout: restructure(layout, arrange))


def scalars_of(whole: Any) -> Any:
    """Return the layout of all scalars: in each mode the lanes of an element, then the next element.

    >>> print(scalars_of(vectorized(paired(Layout((10, 12), (12, 1))), (1, 4))))
    (10,12):(12,1)
    """

    def arrange(tree: Any, _: Any) -> Any:
        outer, lanes = tree
        if len(outer) != len(lanes):  # none, or a slice dropped modes whose lanes are still there
            return (*outer, *lanes)
        return tuple(zip(lanes, outer, strict=True))

    def merged(layout: Layout) -> Any:
        joined = restructure(layout, arrange)
        return coalesce(joined, (0,) * joined.rank)

    return _inside(whole, merged)


def transposed(whole: Any) -> Any:
    """Return the layout with the modes of elements and of lanes in reverse.

    >>> print(transposed(paired(Layout((4, 8)))))
    ((8,4),()):((4,1),())
    """
    return _inside(whole, lambda layout: restructure(layout, lambda tree, _: (tree[0][::-1], tree[1][::-1])))


def has_padding(layout: Any) -> bool:
    """Return whether some coordinate of a layout is not valid.

    >>> from tilewright import pad
    >>> has_padding(Layout((4, 8))), has_padding(pad(Layout(5), 8))
    (False, True)
    """
    if isinstance(layout, Layout):
        return bool(layout.guards)
    if not isinstance(layout, ComposedLayout) or not (has_padding(layout.inner) or has_padding(layout.outer)):
        return False
    mask = layout._valid_table()  # what the outer layout leaves out, the inner one may never ask for
    return mask is not None and not mask.all()
