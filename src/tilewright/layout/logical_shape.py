# SPDX-License-Identifier: Apache-2.0
"""Logical shapes: padding around the data of a layout."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .composed_layout import ComposedLayout
from .composition import compose
from .guards import Guard, live_guards
from .layout import Layout, ShapeArgument, make_layout
from .layout_like import LayoutLike, require_layout
from .tuples import as_tree, as_tuple, index_strides, map_leaves, prefix_product, product_each
from .validation import as_integer


def pad(layout: LayoutLike, shape: ShapeArgument) -> Any:
    """Return the function of `layout` on a larger `shape`, one extent per mode; the added coordinates are padding.

    Strides stay as they are. To reserve memory for the padding, build the padded layout and use `with_logical_shape`.

    >>> padded = pad(Layout(100), 128)
    >>> padded.size, padded.valid(99), padded.valid(100)
    (128, True, False)
    >>> pad(Layout((60, 90)), (64, 96)).logical_shape
    (60, 90)
    """
    padded = _validate_extents(layout, shape, "pad")
    extents = product_each(layout.shape)
    for n, extent in zip(padded, extents, strict=True):
        if n < extent:
            raise LayoutError(f"cannot pad {layout} to {shape}: {n} is less than the extent {extent}")
    tilers = tuple([None if n == extent else Layout(n) for n, extent in zip(padded, extents, strict=True)])
    return compose(layout, tilers if isinstance(layout.shape, tuple) else tilers[0])


def with_logical_shape(layout: LayoutLike, shape: ShapeArgument) -> Any:
    """Return `layout` with only the coordinates inside `shape`, one extent per mode, as data; the rest is padding.

    >>> from tilewright import row_major
    >>> stored = with_logical_shape(row_major(64, 96), (60, 90))
    >>> stored(1, 0), stored.valid(59, 89), stored.valid(60, 0)
    (96, True, False)
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, with_logical_shape(layout.inner, shape))
    extents = _validate_extents(layout, shape, "with_logical_shape")
    modes = layout.shape
    if not isinstance(layout, Layout):
        return ComposedLayout(layout, with_logical_shape(make_layout(modes, index_strides(modes)), shape))
    if not isinstance(modes, tuple):
        guards = [Guard(1, extents[0])]
    else:
        zeros = [map_leaves(lambda _: 0, mode) for mode in modes]
        guards = [
            Guard((*zeros[:k], prefix_product(mode), *zeros[k + 1 :]), extents[k]) for k, mode in enumerate(modes)
        ]
    return layout._with(guards=live_guards(modes, [*layout.guards, *guards]))


def _validate_extents(layout: Any, shape: Any, caller: str) -> tuple[int, ...]:
    """Return `shape` as one extent per mode of `layout`."""
    require_layout(layout, caller)
    extents = as_tuple(as_tree(shape))
    if len(extents) != layout.rank:
        raise LayoutError(
            f"{caller}: {layout} has {layout.rank} modes, but {shape} has {len(extents)} extents; give one per mode"
        )
    for n in extents:
        if isinstance(n, tuple):
            raise LayoutError(f"{caller}: {shape} is nested; give one extent for each top-level mode")
        if as_integer(n, f"{caller}: an extent") < 0:
            raise LayoutError(f"{caller}: extent {n} is negative; extents must be nonnegative")
    return tuple([int(n) for n in extents])
