# SPDX-License-Identifier: Apache-2.0
"""Layouts over named axes as plain ones: each axis is a dimension of the storage."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..layout import ComposedLayout, Layout, Place
from ..layout.steps import along
from ..layout.strided import make
from ..layout.tuples import map_leaves
from .storage import Store, as_array, flat_scalars

ADDRESS = "addr"


def plain_layout(storage: Any, layout: Any, dtype: Any) -> tuple[Store, Any, int]:
    """Return the store, the plain layout and the offset of storage whose dimensions are the axes of a layout.

    The axis `addr` is the last dimension; the others come before it in the order of `layout.axes`.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> from tilewright import addr, bank
    >>> banks = np.arange(12).reshape(3, 4)  # 3 banks of 4 scalars
    >>> t = tw.TileTensor(banks, tw.Layout((3, 4), (1 @ bank, 1 @ addr)))
    >>> int(t[2, 1])
    9
    """
    names = [*[name for name in layout.axes if name != ADDRESS], *[name for name in layout.axes if name == ADDRESS]]
    data = as_array(storage, dtype)
    if data.ndim != len(names):
        raise LayoutError(
            f"{layout} leads to the axes {', '.join(names)}, so storage needs {len(names)} dimensions in that order; it"
            f" has shape {data.shape}"
        )
    _check_axes(layout, names, data.shape)
    steps = dict(zip(names, [step // data.itemsize for step in data.strides], strict=True))
    store = Store.of(flat_scalars(data)).changed(origin=storage)
    found = _flattened(layout, steps)
    if isinstance(found, Layout) and found.offset:
        return store, found - found.offset, int(found.offset)
    return store, found, 0


def _check_axes(layout: Any, names: list[str], shape: tuple[int, ...]) -> None:
    if layout.size == 0:
        return
    needed = layout.cosize
    for name, extent in zip(names, shape, strict=True):
        if needed[name] > extent:
            raise LayoutError(f"{layout} needs {needed[name]} places on axis {name}, but the storage has {extent}")


def _flattened(layout: Any, steps: dict[str, int]) -> Any:
    def flat(step: Any) -> Any:
        return sum(along(step, name) * size for name, size in steps.items()) if isinstance(step, Place) else step

    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_flattened(layout.outer, steps), layout.inner)
    return make(layout.shape, map_leaves(flat, layout.stride), flat(layout.offset), (), layout.guards)
