# SPDX-License-Identifier: Apache-2.0
"""Compositions as CuTe has them: past the end of a layout, and along the modes that basis strides name."""

from __future__ import annotations

from typing import Any

import tilewright.layout as core

from ..layout import Layout as CoreLayout
from ..layout import Place
from ..layout.layout import make_layout as make_trusted
from ..layout.tuples import leaves, nest_like
from .layout import is_basis
from .queries import basis_get, basis_value


def compose_strided(a: Any, b: Any) -> Any:
    """Return the strided composition of `a` and `b`; the strides of `b` may name modes of `a`.

    >>> from tilewright import cute
    >>> print(cute.composition(cute.Layout((4, 8), (8, 1)), cute.Layout((8, 4), (cute.E(1), cute.E(0)))))
    (8,4):(1,8)
    """
    if isinstance(a, CoreLayout) and isinstance(b, CoreLayout):
        if b.axes and not b.offset and all(map(_is_along_a_mode, leaves(b.stride))):
            return _compose_along_modes(a, b)
        a = _open_last_mode(a, b)
    return core.compose(a, b, strided=True)


def _is_along_a_mode(step: Any) -> bool:
    return not isinstance(step, Place) or (len(step) == 1 and is_basis(step))


def _open_last_mode(a: CoreLayout, b: CoreLayout) -> CoreLayout:
    """Return `a` with an extent of 2 in place of a last one of 1, if `b` leaves `a`.

    An index past the end advances along the last mode, whatever its extent is; the core ignores modes of extent 1.
    """
    extents = leaves(a.shape)
    if not extents or extents[-1] != 1 or a.guards or b.axes or not b.size or b.bounds[1] < a.size:
        return a
    return make_trusted(nest_like(a.shape, iter([*extents[:-1], 2])), a.stride, a.offset, a.replicas)


def _compose_along_modes(a: CoreLayout, b: CoreLayout) -> CoreLayout:
    """Return the composition with a layout of coordinates: each stride of `b` is along one mode of `a`, or plain."""
    parts = []
    for extent, step in zip(leaves(b.shape), leaves(b.stride), strict=True):
        part = compose_strided(basis_get(step, a), CoreLayout(extent, basis_value(step)))
        parts.append(part)
    stride = nest_like(b.shape, iter([part.stride for part in parts]))
    return make_trusted(nest_like(b.shape, iter([part.shape for part in parts])), stride, a.offset, a.replicas)
