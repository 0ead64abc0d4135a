# SPDX-License-Identifier: Apache-2.0
"""Padding: a logical extent inside a larger one."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .base import require_layout
from .composed import ComposedLayout
from .composing import compose
from .guards import Guard, live_guards
from .integers import as_integer
from .strided import Layout, make
from .tuples import as_tree, index_strides, map_leaves, prefix_product, product_each


def pad(layout: Any, shape: Any) -> Any:
    """Return the same function on a larger shape, one extent a mode; what was not there before is padding.

    Strides stay as they are: to give padding room of its own in memory, mark it with `within`.

    >>> padded = pad(Layout(100), 128)
    >>> padded.size, padded.valid(99), padded.valid(100)
    (128, True, False)
    >>> pad(Layout((60, 90)), (64, 96)).logical_shape
    (60, 90)
    """
    wanted = _extents(layout, shape, "pad")
    have = product_each(layout.shape)
    for n, least in zip(wanted, have, strict=True):
        if n < least:
            raise LayoutError(f"cannot pad {layout} to {shape}: {n} is less than the extent {least} that is there")
    tilers = tuple([None if n == m else Layout(n) for n, m in zip(wanted, have, strict=True)])
    return compose(layout, tilers if isinstance(layout.shape, tuple) else tilers[0])


def within(layout: Any, logical: Any) -> Any:
    """Return the layout with only the coordinates inside logical, one extent a mode, counted as data.

    >>> from tilewright import row_major
    >>> stored = within(row_major(64, 96), (60, 90))
    >>> stored(1, 0), stored.valid(59, 89), stored.valid(60, 0)
    (96, True, False)
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, within(layout.inner, logical))
    extents = _extents(layout, logical, "within")
    shape = layout.shape
    if not isinstance(layout, Layout):
        return ComposedLayout(layout, within(make(shape, index_strides(shape)), logical))
    if not isinstance(shape, tuple):
        guards = [Guard(1, extents[0])]
    else:
        zeros = [map_leaves(lambda _: 0, mode) for mode in shape]
        guards = [
            Guard((*zeros[:k], prefix_product(mode), *zeros[k + 1 :]), extents[k]) for k, mode in enumerate(shape)
        ]
    return make(shape, layout.stride, layout.offset, layout.replicas, live_guards(shape, [*layout.guards, *guards]))


def _extents(layout: Any, shape: Any, who: str) -> tuple[int, ...]:
    require_layout(layout, who)
    given = as_tree(shape)
    extents = given if isinstance(given, tuple) else (given,)
    if len(extents) != layout.rank:
        raise LayoutError(
            f"{who}: {layout} has {layout.rank} modes, but {shape} gives {len(extents)} extents; give one a mode"
        )
    for n in extents:
        if isinstance(n, tuple):
            raise LayoutError(f"{who}: {shape} is nested; give one extent for each top-level mode")
        if as_integer(n, f"{who}: an extent") < 0:
            raise LayoutError(f"{who}: extent {n} is negative; extents must be nonnegative")
    return tuple([int(n) for n in extents])
