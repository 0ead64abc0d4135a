# SPDX-License-Identifier: Apache-2.0
"""Other forms of the same function: coalesce, filter, flatten, unflatten, group, sort."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .base import LayoutLike, require_layout
from .composed import ComposedLayout
from .construct import make_layout, own_modes
from .guards import Guard
from .queries import flat_tree, regrouped_tree, shape_of
from .regrouping import require_strided, restructure
from .steps import Step, merge_modes
from .strided import Layout, keep_axes, make
from .tuples import as_tree, leaves, like


def coalesce(layout: Any, profile: Any = None) -> Any:
    """Return the flattest layout that is the same function of the index; with a profile, mode by mode.

    Ensures: size(r) == size(layout), depth(r) <= 1, r(i) == layout(i) for every i.

    >>> coalesce(Layout((2, (1, 6)), (1, (7, 2))))
    Layout(12, 1)
    >>> coalesce(Layout(((2, 2), (2, 3)), ((1, 2), (4, 8))), (1, 1))
    Layout((4, 6), (1, 4))
    """
    require_layout(layout, "coalesce")
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, coalesce(layout.inner, profile))
    if not isinstance(layout, Layout):  # pages and inverses are flat
        return layout
    if isinstance(profile, (tuple, list)):
        if len(profile) > layout.rank:
            raise LayoutError(f"profile {profile} has more modes than {layout}, which has {layout.rank}")
        if not isinstance(layout.shape, tuple):
            return coalesce(layout)
        return keep_axes(_by_mode(layout, as_tree(profile)), layout.axes)
    if layout.shape == ():
        return layout
    if not layout.guards:
        extents, steps = layout.canonical_modes()
        shape, stride = (tuple(extents), tuple(steps)) if len(extents) > 1 else (extents[0], steps[0])
        return keep_axes(make(shape, stride, layout.offset, layout.replicas), layout.axes)
    return keep_axes(_coalesced_with_guards(layout), layout.axes)


def _coalesced_with_guards(layout: Layout) -> Layout:
    channels = [leaves(layout.stride), *(leaves(guard.stride) for guard in layout.guards)]
    extents, lines = merge_modes(leaves(layout.shape), channels)
    shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
    steps, *bounds = [like(shape, iter(line)) for line in lines]
    guards = [Guard(step, guard.limit, guard.offset) for step, guard in zip(bounds, layout.guards, strict=True)]
    return make(shape, steps, layout.offset, layout.replicas, tuple(guards))


def _by_mode(layout: Layout, profile: tuple[Any, ...]) -> Layout:
    # guards may tie modes together, so each mode is merged under the strides of all guards at once
    shapes: list[Any] = []
    columns: list[list[Any]] = []
    trees = [layout.stride, *(guard.stride for guard in layout.guards)]
    for k, part in enumerate(profile):
        mode = make(layout.shape[k], layout.stride[k])
        if isinstance(part, tuple):
            if layout.guards:
                raise LayoutError("a nested profile cannot coalesce a padded layout; coalesce its modes one by one")
            merged = coalesce(mode, part)
            shapes.append(merged.shape)
            columns.append([merged.stride])
            continue
        extents, lines = merge_modes(leaves(mode.shape), [leaves(tree[k]) for tree in trees])
        shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
        shapes.append(shape)
        columns.append([like(shape, iter(line)) for line in lines])
    rest = len(profile)
    shape = (*shapes, *layout.shape[rest:])
    steps, *bounds = [(*(column[c] for column in columns), *tree[rest:]) for c, tree in enumerate(trees)]
    guards = [Guard(step, guard.limit, guard.offset) for step, guard in zip(bounds, layout.guards, strict=True)]
    return make(shape, steps, layout.offset, layout.replicas, tuple(guards))


def filter(layout: Any, profile: Any = None) -> Any:  # noqa: A001
    """Return the layout without modes of size 1 and of stride 0, coalesced; with a profile, mode by mode.

    >>> filter(Layout((4, 2, 8), (1, 0, 4)))
    Layout(32, 1)
    """
    require_strided(layout, "filter")
    if isinstance(profile, (tuple, list)):
        if len(profile) > layout.rank:
            raise LayoutError(f"profile {profile} has more modes than {layout}, which has {layout.rank}")
        modes = own_modes(layout)
        return make_layout(
            *[filter(mode, part) for mode, part in zip(modes, profile, strict=False)], *modes[len(profile) :]
        )
    if layout.guards:
        raise LayoutError(
            f"{layout} is padded: dropping modes would lose which elements are data; filter before padding"
        )
    kept = [(n, d) for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True) if n != 1 and d != 0]
    shape, stride = tuple([n for n, _ in kept]), tuple([d for _, d in kept])
    return keep_axes(coalesce(make(shape or 1, stride or 0, layout.offset, layout.replicas)), layout.axes)


def flatten(value: Any) -> Any:
    """Return a layout, or a tuple, without nesting.

    >>> flatten(Layout((4, (2, 3)))), flatten((4, (2, 3)))
    (Layout((4, 2, 3), (1, 4, 8)), (4, 2, 3))
    """
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.outer, flatten(value.inner))
    if not isinstance(value, LayoutLike):
        return flat_tree(value)
    if not isinstance(value, Layout) or value.depth == 0:  # pages and inverses are flat
        return value
    return restructure(value, lambda tree, _: tuple(leaves(tree)))


def unflatten(value: Any, profile: Any) -> Any:
    """Return a flat layout, or a flat tuple, nested like profile: the inverse of `flatten`.

    >>> unflatten(Layout((2, 3, 5)), (0, (0, 0))), unflatten((1, 2, 3), (0, (0, 0)))
    (Layout((2, (3, 5)), (1, (2, 6))), (1, (2, 3)))
    """
    form = shape_of(profile)
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.outer, unflatten(value.inner, form))
    if not isinstance(value, Layout):
        return regrouped_tree(value, form)
    regrouped_tree(value.shape, form)
    return restructure(value, lambda tree, _: like(form, iter(leaves(tree))))


def group(layout: Any, start: int, end: int) -> Any:
    """Return the layout with modes start up to end (not included) nested into one.

    >>> group(Layout((2, 3, 5, 7)), 1, 3)
    Layout((2, (3, 5), 7), (1, (2, 6), 30))
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, group(layout.inner, start, end))
    require_strided(layout, "group")
    if not 0 <= start < end <= layout.rank or not isinstance(layout.shape, tuple):
        raise LayoutError(f"cannot group modes {start} to {end} of {layout}: it has modes 0 to {layout.rank - 1}")
    return restructure(layout, lambda tree, _: (*tree[:start], tree[start:end], *tree[end:]))


def sort(layout: Layout) -> Layout:
    """Return the layout flattened, with its modes in order of stride, smallest first.

    >>> sort(Layout((2, 3, 4), (12, 1, 3)))
    Layout((3, 4, 2), (1, 3, 12))
    """
    require_strided(layout, "sort")
    if layout.depth == 0:
        return layout
    extents, steps = leaves(layout.shape), leaves(layout.stride)
    order = sorted(range(len(steps)), key=lambda k: (_rank(steps[k]), extents[k]))
    return restructure(layout, lambda tree, _: tuple([leaves(tree)[k] for k in order]))


def _rank(step: Step) -> tuple[int, str]:
    """Return what strides are sorted by: amount, then axis."""
    if isinstance(step, int):
        return int(step), ""
    return sum(map(abs, step._parts.values())), str(step)


def is_affine(layout: object) -> bool:
    """Return whether a layout is strided: a `Layout` rather than a composition.

    >>> is_affine(Layout((4, 8)))
    True
    """
    return isinstance(layout, Layout)
