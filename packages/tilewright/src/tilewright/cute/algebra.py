# SPDX-License-Identifier: Apache-2.0
"""CuTe's algebra: results have no padding, and what CuTe refuses raises a LayoutError."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

import tilewright.layout as core

from ..errors import LayoutError
from ..layout import ComposedLayout, LayoutLike, Swizzle
from ..layout import Layout as CoreLayout
from ..layout.evaluation import chunks
from ..layout.layout import add_axes
from ..layout.layout import make_layout as make_trusted
from ..layout.modes import as_function, check_profile, check_unflatten, require_strided, split_modes
from ..layout.tuples import as_tree, leaves, nest_like, prefix_product
from ..layout.validation import as_integer, check_mode, validate_shape
from .compositions import compose_strided
from .core_results import as_cute, on_tensors
from .layout import Layout, make_layout_like, replace_leaves
from .tiling_algebra import tiled_product


@on_tensors
def coalesce(layout: LayoutLike, profile: Any = None) -> Any:
    """Return the flattest layout that is the same function as `layout`; with a tuple as `profile`, mode by mode.

    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    """
    return as_cute(core.coalesce(layout, profile), layout)


def filter(layout: CoreLayout, profile: Any = None) -> Any:  # noqa: A001  (CuTe's name)
    """Return `layout` without modes of size 1 or stride 0, coalesced; with a tuple as `profile`, mode by mode.

    >>> print(filter(Layout((4, 2, 8), (1, 0, 4))))
    32:1
    """
    require_strided(layout, "filter")
    if isinstance(profile, (tuple, list)):
        check_profile(profile, layout.shape)
        modes = split_modes(layout)
        filtered = [filter(mode, part) for mode, part in zip(modes, profile, strict=False)]
        return Layout(*filtered, *modes[len(profile) :])
    if layout.guards:
        raise LayoutError(
            f"filter of {layout}: it is padded, and padding may depend on any mode; filter before padding"
        )
    modes_left = [(n, d) for n, d in zip(*layout.flat_modes(), strict=True) if n != 1 and d != 0]
    shape, stride = tuple([n for n, _ in modes_left]), tuple([d for _, d in modes_left])
    filtered_layout = make_trusted(shape or 1, stride or 0, layout.offset, layout.replicas)
    return as_cute(add_axes(core.coalesce(filtered_layout), layout.axes), layout)


def filter_zeros(layout: CoreLayout, profile: Any = None) -> Layout:
    """Return `layout` with extent 1 in all modes of stride 0, or, with a `profile`, where that has a 0.

    >>> print(filter_zeros(Layout((4, 3, 8), (1, 0, 4))), filter_zeros(Layout((4, 8)), (0, 1)))
    (4,1,8):(1,0,4) (1,8):(1,4)
    """
    require_strided(layout, "filter_zeros")
    zeros = leaves(layout.stride if profile is None else as_tree(profile))
    extents = [1 if zero == 0 else n for n, zero in zip(leaves(layout.shape), zeros, strict=True)]
    return replace_leaves(layout, extents, leaves(layout.stride), layout.offset)


@on_tensors
def composition(a: Any, b: Any) -> Any:
    """Return the layout R with R(i) == `a`(`b`(i)); raise where it is not strided. `b` may be a tuple, mode by mode.

    >>> print(composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))), composition(Layout(7, 11), Layout(3, 4)))
    ((2,2),3):((24,2),8) 3:44
    """
    return as_cute(compose_strided(a, b), a, b)


def complement(layout: Any, bound: Any = None) -> Layout:
    """Return the layout of the offsets that `layout` leaves free, up to `bound` (its cosize by default).

    >>> print(complement(Layout(4, 2), 24))
    (2,3):(1,8)
    """
    result: Layout = as_cute(core.complement(layout, bound), layout, bound)
    return result


def left_inverse(layout: Any) -> Any:
    """Return the left inverse of `layout`: a layout L with L(layout(i)) == i.

    >>> print(left_inverse(Layout((4, 8), (1, 5))))
    (5,8):(1,4)
    """
    return as_cute(_swizzle_last(as_cute(core.left_inverse(layout), layout)), layout)


def right_inverse(layout: Any) -> Any:
    """Return the right inverse of `layout`: the largest layout R with layout(R(i)) == i.

    >>> print(right_inverse(Layout((8, 4), (4, 1))))
    (4,8):(8,1)
    """
    return as_cute(_swizzle_last(as_cute(core.right_inverse(layout), layout)), layout)


def _swizzle_last(layout: Any) -> Any:
    """Return a layout of a swizzled layout as a swizzle of a layout, where that is the same."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, ComposedLayout):
        return compose_strided(layout.outer, layout.inner)
    return layout


def append(layout: CoreLayout, *modes: CoreLayout) -> Any:
    """Return `layout` with further `modes` at the end.

    >>> print(append(Layout((3, 4)), Layout(5, 12)))
    (3,4,5):(1,3,12)
    """
    return Layout(*split_modes(layout), *modes)


def prepend(layout: CoreLayout, *modes: CoreLayout) -> Any:
    """Return `layout` with further `modes` at the front.

    >>> print(prepend(Layout(3), Layout(4, 3)))
    (4,3):(3,1)
    """
    return Layout(*modes, *split_modes(layout))


def replace(layout: CoreLayout, k: int, mode: CoreLayout) -> Any:
    """Return `layout` with mode `k` replaced by `mode`.

    >>> print(replace(Layout((3, 4)), 1, Layout((2, 2), (3, 6))))
    (3,(2,2)):(1,(3,6))
    """
    modes = split_modes(layout)
    modes[check_mode(k, len(modes), layout)] = mode
    return Layout(*modes)


@on_tensors
def group_modes(layout: LayoutLike, start: int, end: int) -> Any:
    """Return `layout` with the modes from `start` up to but not including `end` nested into one.

    >>> print(group_modes(Layout((2, 3, 5, 7)), 1, 3))
    (2,(3,5),7):(1,(2,6),30)
    """
    return as_cute(core.group(layout, start, end), layout)


def flatten(value: Any) -> Any:
    """Return `value`, a layout or a tuple, without nesting.

    >>> print(flatten(Layout((4, (2, 3)))), flatten((4, (2, 3))))
    (4,2,3):(1,4,8) (4, 2, 3)
    """
    if isinstance(value, LayoutLike):
        return as_cute(core.flatten(value), value)
    return tuple(leaves(as_tree(value)))


def unflatten(value: Any, profile: Any) -> Any:
    """Return `value`, a flat layout or tuple, nested like `profile`: the inverse of `flatten`.

    >>> print(unflatten(Layout((2, 3, 5)), (0, (0, 0))), unflatten((1, 2, 3), (0, (0, 0))))
    (2,(3,5)):(1,(2,6)) (1, (2, 3))
    """
    form = getattr(profile, "shape", profile)
    if isinstance(value, LayoutLike):
        return as_cute(core.unflatten(value, form), value)
    values, form = as_tree(value), as_tree(form)
    check_unflatten(values, form)
    return nest_like(form, iter(leaves(values)))


def sort(layout: CoreLayout) -> Any:
    """Return `layout` flattened, with its modes in order of stride, smallest first.

    >>> print(sort(Layout((2, 3, 4), (12, 1, 3))))
    (3,4,2):(1,3,12)
    """
    require_strided(layout, "sort")
    if layout.depth == 0:
        return layout
    extents, steps = layout.flat_modes()
    order = sorted(range(len(steps)), key=lambda k: (_stride_rank(steps[k]), extents[k]))
    return as_cute(layout._restructure(lambda tree, _: tuple([leaves(tree)[k] for k in order]), "sort"), layout)


def _stride_rank(step: Any) -> tuple[int, str]:
    """Return the sort key of a stride: its amount, then its axis."""
    return (int(step), "") if isinstance(step, int) else (sum(map(abs, step.values())), str(step))


def nullspace(layout: CoreLayout) -> Any:
    """Return the layout N of all indices that broadcast modes of `layout` map to offset 0: layout(N(i)) == layout(0).

    >>> print(nullspace(Layout((2, 4, 3), (0, 1, 0))))
    (2,3):(1,8)
    """
    require_strided(layout, "nullspace")
    extents, steps = layout.flat_modes()
    indices = leaves(prefix_product(tuple(extents)))
    modes = [(n, index) for n, d, index in zip(extents, steps, indices, strict=True) if d == 0 and n != 1]
    if len(modes) < 2:
        return as_cute(make_trusted(*modes[0]) if modes else make_trusted(1, 0), layout)
    shape, stride = tuple([n for n, _ in modes]), tuple([index for _, index in modes])
    return as_cute(make_trusted(shape, stride), layout)


def domain_distribute(shape: Any, count: int) -> Layout:
    """Return a layout of indices into `shape` that takes `count` elements, or as many as divide its extents, evenly.

    >>> print(domain_distribute((15, 14), 6), domain_distribute((64, 3, 8, 8), 128))
    (3,2):(1,15) (64,2):(1,192)
    """
    extents = leaves(validate_shape(shape))
    left = as_integer(count, "count")
    if left < 1 or 0 in extents:
        raise LayoutError(f"domain_distribute: cannot take {left} elements of shape {shape}; both must be positive")
    taken = []
    for extent in extents:
        taken.append(gcd(extent, left))
        left //= taken[-1]
    steps = leaves(prefix_product(tuple(extents)))
    result: Layout = as_cute(core.coalesce(make_trusted(tuple(taken), tuple(steps))), shape, count)
    return result


def max_common_layout(a: Any, b: Any) -> Any:
    """Return the longest layout R with `a`(R(i)) == i and `b`(R(i)) == i, which holds for every such run of elements.

    These are the elements that both layouts keep contiguous and in the same order. A swizzle ends a run where it first
    could move an element.

    >>> print(
    ...     max_common_layout(Layout(8), Layout((4, 2), (1, 4))), max_common_layout(Layout((4, 2), (2, 1)), Layout(8))
    ... )
    8:1 1:0
    """
    a, b = as_function(a), as_function(b)
    if isinstance(a, Swizzle) or isinstance(b, Swizzle):
        raise LayoutError(f"max_common_layout of {a} and {b}: a swizzle has no shape; compose it with a layout first")
    if a.is_replicated or a.axes:
        raise LayoutError(f"max_common_layout of {a}: its places are not plain integers; remove copies and axes first")
    inverse = core.right_inverse(b)
    count = _common_run_length(core.compose(a, inverse))
    return as_cute(core.compose(inverse, make_trusted(count, 1)) if count > 1 else make_trusted(1, 0), a, b)


def _common_run_length(layout: LayoutLike) -> int:
    """Return the length of the runs of data, each from a multiple of it on, in which offsets grow with the index."""
    if isinstance(layout, CoreLayout) and not layout.guards:
        extents, steps = layout.canonical_modes()
        return int(extents[0]) if layout.offset == 0 and steps[0] == 1 else 1
    run, before = 0, (0, True)
    for index, places, valid in chunks(layout):
        shift = np.concatenate([[before[0]], places - index])
        is_data = np.concatenate([[before[1]], valid])
        ends = (is_data[1:] != is_data[:-1]) | (valid & (shift[1:] != shift[:-1]))
        run = int(np.gcd.reduce(index[ends], initial=run))
        if ends[0] and index[0] == 0:
            return 1
        before = shift[-1], is_data[-1]
    return run or layout.size


def max_common_vector(a: Any, b: Any) -> int:
    """Return how many elements both `a` and `b` keep contiguous and in the same order, from the first on.

    >>> max_common_vector(Layout((4, 8)), Layout((4, 8), (1, 5)))
    4
    """
    return int(max_common_layout(a, b).size)


def make_fragment_like(layout: CoreLayout) -> Any:
    """Return a compact layout of the shape of `layout` for registers: its first mode contiguous, the others in order.

    >>> print(make_fragment_like(Layout(((2, 4), 3, 5), ((1, 16), 64, 2))))
    ((2,4),3,5):((1,2),40,8)
    """
    if layout.rank < 2:
        return Layout(layout.shape)
    first, *others = split_modes(layout)
    return tiled_product(
        make_layout_like(Layout(first.shape, _contiguous_steps(first))), make_layout_like(Layout(*others))
    )


def _contiguous_steps(layout: CoreLayout) -> Any:
    """Return column-major strides for a layout; broadcast modes keep stride 0."""
    steps: list[Any] = []
    step = 1
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        steps.append(step if d else 0)
        step *= n if d else 1
    return nest_like(layout.shape, iter(steps))
