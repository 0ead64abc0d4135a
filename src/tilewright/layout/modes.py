# SPDX-License-Identifier: Apache-2.0
"""Modes of a layout merged, flattened and grouped; the function stays the same."""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import LayoutError
from .composed_layout import ComposedLayout
from .guards import Guard
from .layout import Layout, add_axes, make_layout
from .layout_like import LayoutLike, require_layout
from .strides import merge_modes
from .tuples import Nested, Shape, as_tree, leaves, nest_like, tree_depth

Kind = TypeVar("Kind", bound=LayoutLike)


def coalesce(layout: LayoutLike, profile: Any = None) -> Any:
    """Return the flattest layout that is the same function of the index as `layout`.

    With a tuple as `profile`, every mode that has an entry there is coalesced by itself.
    Ensures: r.size == layout.size, r.depth <= 1, r(i) == layout(i) for every i.

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
        check_profile(layout, profile)
        if not isinstance(layout.shape, tuple):
            return coalesce(layout)
        return add_axes(_coalesce_by_mode(layout, as_tree(profile)), layout.axes)
    if layout.shape == ():
        return layout
    if layout.guards:
        return add_axes(_coalesce_padded(layout), layout.axes)
    extents, steps = layout.canonical_modes()
    shape, stride = (tuple(extents), tuple(steps)) if len(extents) > 1 else (extents[0], steps[0])
    return add_axes(make_layout(shape, stride, layout.offset, layout.replicas), layout.axes)


def check_profile(layout: Layout, profile: Any) -> None:
    """Raise if `profile` has more entries than the layout has modes.

    >>> check_profile(Layout((4, 8)), (1, 1))
    """
    if len(profile) > layout.rank:
        raise LayoutError(f"profile {profile} has more modes than {layout}, which has {layout.rank}")


def _coalesce_padded(layout: Layout) -> Layout:
    channels = [leaves(layout.stride), *(leaves(guard.stride) for guard in layout.guards)]
    extents, lines = merge_modes(leaves(layout.shape), channels)
    shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
    steps, *bounds = [nest_like(shape, iter(line)) for line in lines]
    guards = [Guard(step, guard.limit, guard.offset) for step, guard in zip(bounds, layout.guards, strict=True)]
    return make_layout(shape, steps, layout.offset, layout.replicas, tuple(guards))


def _coalesce_by_mode(layout: Layout, profile: tuple[Any, ...]) -> Layout:
    # a guard may involve several modes, so each mode is merged under the strides of all guards at once
    shapes: list[Any] = []
    columns: list[list[Any]] = []
    trees = [layout.stride, *(guard.stride for guard in layout.guards)]
    for k, part in enumerate(profile):
        mode = make_layout(layout.shape[k], layout.stride[k])
        if isinstance(part, tuple):
            if layout.guards:
                raise LayoutError("cannot coalesce a padded layout by a nested profile; coalesce its modes one by one")
            merged = coalesce(mode, part)
            shapes.append(merged.shape)
            columns.append([merged.stride])
            continue
        extents, lines = merge_modes(leaves(mode.shape), [leaves(tree[k]) for tree in trees])
        shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
        shapes.append(shape)
        columns.append([nest_like(shape, iter(line)) for line in lines])
    rest = len(profile)
    shape = (*shapes, *layout.shape[rest:])
    steps, *bounds = [(*(column[c] for column in columns), *tree[rest:]) for c, tree in enumerate(trees)]
    guards = [Guard(step, guard.limit, guard.offset) for step, guard in zip(bounds, layout.guards, strict=True)]
    return make_layout(shape, steps, layout.offset, layout.replicas, tuple(guards))


def flatten(layout: Kind) -> Kind:
    """Return `layout` without nesting.

    >>> flatten(Layout((4, (2, 3))))
    Layout((4, 2, 3), (1, 4, 8))
    """
    if require_layout(layout, "flatten").depth <= 1:
        return layout
    return layout._restructure(lambda tree, _: tuple(leaves(tree)), "flatten")


def unflatten(layout: Kind, profile: Shape) -> Kind:
    """Return a flat `layout` with the nesting of `profile`: the inverse of `flatten`.

    >>> unflatten(Layout((2, 3, 5)), (0, (0, 0)))
    Layout((2, (3, 5)), (1, (2, 6)))
    """
    form = as_tree(profile)
    check_unflatten(require_layout(layout, "unflatten").shape, form)
    return layout._restructure(lambda tree, _: nest_like(form, iter(leaves(tree))), "unflatten")


def check_unflatten(tree: Nested[Any], profile: Nested[Any]) -> None:
    """Raise unless `tree` is flat and has as many leaves as `profile`.

    >>> check_unflatten((1, 2, 3), (0, (0, 0)))
    """
    count, expected = len(leaves(tree)), len(leaves(profile))
    if tree_depth(tree) > 1 or count != expected:
        raise LayoutError(f"cannot unflatten {tree} like {profile}: expected {expected} flat entries, got {count}")


def group(layout: Kind, start: int, end: int) -> Kind:
    """Return `layout` with the modes from `start` up to but not including `end` nested into one.

    >>> group(Layout((2, 3, 5, 7)), 1, 3)
    Layout((2, (3, 5), 7), (1, (2, 6), 30))
    """
    require_layout(layout, "group")
    if not 0 <= start < end <= layout.rank or not isinstance(layout.shape, tuple):
        raise LayoutError(f"cannot group modes {start} to {end} of {layout}: it has modes 0 to {layout.rank - 1}")
    return layout._restructure(lambda tree, _: (*tree[:start], tree[start:end], *tree[end:]), "group")
