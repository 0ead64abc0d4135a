# SPDX-License-Identifier: Apache-2.0
"""Compositions as CuTe has them: past the end of a layout, and along the modes that basis strides name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import tilewright.layout as core

from ..errors import LayoutError
from ..layout import ComposedLayout, LayoutLike, Place, Swizzle
from ..layout import Layout as CoreLayout
from ..layout.layout import make_layout as make_trusted
from ..layout.linear import Linear
from ..layout.modes import as_function, split_modes
from ..layout.tuples import leaves, nest_like
from .layout import is_basis, make_swizzle
from .queries import basis_get, basis_value


def compose_strided(a: Any, b: Any) -> Any:
    """Return the strided composition of `a` and `b`; the strides of `b` may name modes of `a`.

    >>> from tilewright import cute
    >>> print(cute.composition(cute.Layout((4, 8), (8, 1)), cute.Layout((8, 4), (cute.E(1), cute.E(0)))))
    (8,4):(1,8)
    >>> print(cute.composition(cute.Layout(16, 2), cute.composition(cute.Swizzle(2, 0, 2), cute.Layout(16))))
    Sw<2,1,2> o 16:2
    """
    if isinstance(a, CoreLayout) and isinstance(b, CoreLayout):
        if b.axes and not b.offset and all(map(_is_along_a_mode, leaves(b.stride))):
            return _compose_along_modes(a, b)
        a = _open_last_mode(a, b)
    if isinstance(a, CoreLayout) and isinstance(b, (tuple, list)) and not a.guards:
        a = _open_modes(a, b)
    if isinstance(a, ComposedLayout) and isinstance(a.outer, Swizzle) and not isinstance(b, Swizzle):
        return core.compose(a.outer, compose_strided(a.inner, b))
    result = core.compose(a, b, strided=True)
    if isinstance(result, ComposedLayout) and isinstance(result.inner, ComposedLayout):
        return _move_swizzle_out(result.outer, result.inner) or result
    return result


def _is_along_a_mode(step: Any) -> bool:
    return not isinstance(step, Place) or (len(step) == 1 and is_basis(step))


def _open_last_mode(a: CoreLayout, b: CoreLayout) -> CoreLayout:
    """Return `a` with an extent of 2 in place of a last one of 1, if a mode of `b` leaves `a`.

    An index past the end advances along the last mode, whatever its extent is; the core ignores modes of extent 1.
    """
    extents = leaves(a.shape)
    if not extents or extents[-1] != 1 or a.guards or b.axes or not b.size:
        return a
    if b.offset + max([(n - 1) * d for n, d in zip(*b.flat_modes(), strict=True)], default=0) < a.size:
        return a
    return make_trusted(nest_like(a.shape, iter([*extents[:-1], 2])), a.stride, a.offset, a.replicas)


def _open_modes(a: CoreLayout, tilers: Sequence[Any]) -> CoreLayout:
    """Return `a` with the last extents of its modes opened where the tilers, mode by mode, leave them."""
    modes = split_modes(a)
    if len(tilers) > len(modes):
        return a  # refused with the other wrong tilers
    for k, tiler in enumerate(tilers):
        if isinstance(tiler, (tuple, list)):
            modes[k] = _open_modes(modes[k], tiler)
        elif tiler is not None:
            tile = as_function(tiler)
            modes[k] = _open_last_mode(modes[k], tile) if isinstance(tile, CoreLayout) else modes[k]
    shape, stride = tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes])
    return make_trusted(shape, stride, a.offset, a.replicas) if isinstance(a.shape, tuple) else modes[0] + a.offset


def _compose_along_modes(a: CoreLayout, b: CoreLayout) -> CoreLayout:
    """Return the composition with a layout of coordinates: each stride of `b` is along one mode of `a`, or plain."""
    parts = []
    for extent, step in zip(leaves(b.shape), leaves(b.stride), strict=True):
        part = compose_strided(basis_get(step, a), CoreLayout(extent, basis_value(step)))
        parts.append(part)
    stride = nest_like(b.shape, iter([part.stride for part in parts]))
    return make_trusted(nest_like(b.shape, iter([part.shape for part in parts])), stride, a.offset, a.replicas)


def _move_swizzle_out(a: Any, b: ComposedLayout) -> LayoutLike | None:
    """Return `a` o swizzle o inner as another swizzle of `a` o inner; None if no swizzle does that.

    It holds for every inner layout if both sides are the same linear map of the bits of an index of `a`.
    """
    swizzle, inner = b.outer, b.inner
    is_swizzled = isinstance(a, CoreLayout) and isinstance(swizzle, Swizzle) and isinstance(inner, CoreLayout)
    if not is_swizzled or a.axes or inner.axes or not inner.size:
        return None
    low, high = inner.bounds
    if a.guards or a.replicas or a.offset or low < 0 or high >= a.size or a.size % swizzle.block:
        return None
    if a.canonical_modes() == ([a.size], [1]):
        return b
    try:
        moved = make_swizzle(a.extended(swizzle.source_mask), a.extended(swizzle.target_mask))
        inside = Linear.of(ComposedLayout(a, ComposedLayout(swizzle, make_trusted(a.size, 1))))
        outside = Linear.of(ComposedLayout(moved, a))
        composed = core.compose(a, inner, strided=True)
    except LayoutError:
        return None
    if [*chain(*inside.bases.values())] != [*chain(*outside.bases.values())]:
        return None
    result: LayoutLike = core.compose(moved, composed)
    return result
