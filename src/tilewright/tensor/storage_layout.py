# SPDX-License-Identifier: Apache-2.0
"""Layouts over storage: named axes become dimensions of the storage, and every valid scalar must be inside."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..layout import ComposedLayout, Layout, LayoutLike, Place, Swizzle
from ..layout.axes import component
from ..layout.layout import make_layout
from ..layout.tables import chunks
from ..layout.tuples import map_leaves, product, round_up, suffix_product
from ..layout.validation import is_array
from .store import Store, as_array, flat_scalars, spanned_scalars

ADDRESS = "addr"


def bind_layout(storage: Any, layout: Any, dtype: Any) -> tuple[Store, Any, int]:
    """Return (store, layout, offset) of storage under a layout; without one, under its own shape and strides.

    The layout that is returned has plain integer places and no offset.

    >>> bind_layout(bytearray(12), Layout((3, 4)) + 0, None)[1:]
    (Layout((3, 4), (1, 3)), 0)
    """
    if layout is None:
        data = as_array(storage, dtype)
        scalars, start, steps = spanned_scalars(data)
        store = Store.of(scalars)
        shape = tuple(map(int, data.shape))
        natural: Any = suffix_product(shape)
        # the strides of extents 1 are arbitrary in NumPy; row-major ones keep is_row_major true
        strides = tuple([d if n > 1 else m for n, d, m in zip(shape, steps, natural, strict=True)])
        return store.with_fields(origin=storage), make_layout(shape, strides), start
    if not isinstance(layout, LayoutLike):
        layout = _convert_layout(layout)
    if layout.axes:
        return _bind_named_axes(storage, layout, dtype)
    if getattr(layout, "replicas", ()):
        raise LayoutError(f"a tensor view needs a layout without replicas, got {layout}")
    store = Store.of(storage, dtype)
    if isinstance(layout, Layout) and layout.offset:
        return store, layout - layout.offset, int(layout.offset)
    return store, layout, 0


def _convert_layout(value: Any) -> Layout:
    """Return the layout of an object with the attributes `shape` and `stride`, or methods that return them."""
    try:
        shape, stride = value.shape, value.stride
        return Layout(shape() if callable(shape) else shape, stride() if callable(stride) else stride)
    except AttributeError:
        raise TypeError(
            f"a tensor view needs a layout, got {type(value).__name__} {value!r}; create one with row_major(4, 8)"
        ) from None


def _bind_named_axes(storage: Any, layout: LayoutLike, dtype: Any) -> tuple[Store, Any, int]:
    """Return (store, layout, offset) of storage with the axes of a layout as dimensions.

    The axis `addr` is the last dimension; the others come before it in the order of `layout.axes`.
    """
    names = [*[name for name in layout.axes if name != ADDRESS], *[name for name in layout.axes if name == ADDRESS]]
    data = as_array(storage, dtype)
    if data.ndim != len(names):
        raise LayoutError(
            f"{layout} maps to the axes {', '.join(names)}, so storage needs {len(names)} dimensions in that order, got"
            f" shape {data.shape}"
        )
    _check_axis_extents(layout, names, data.shape)
    steps = dict(zip(names, [step // data.itemsize for step in data.strides], strict=True))
    store = Store.of(flat_scalars(data)).with_fields(origin=storage)
    flat = _flatten_axes(layout, steps)
    if isinstance(flat, Layout) and flat.offset:
        return store, flat - flat.offset, int(flat.offset)
    return store, flat, 0


def _check_axis_extents(layout: LayoutLike, names: list[str], shape: tuple[int, ...]) -> None:
    if layout.size == 0:
        return
    needed = layout.cosize
    for name, extent in zip(names, shape, strict=True):
        if needed[name] > extent:
            raise LayoutError(f"{layout} needs {needed[name]} places along axis {name}, but the storage has {extent}")


def _flatten_axes(layout: Any, steps: dict[str, int]) -> Any:
    """Return a layout over named axes as one over scalars, given the stride in scalars of each axis."""

    def flat(step: Any) -> Any:
        return sum(component(step, name) * size for name, size in steps.items()) if isinstance(step, Place) else step

    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_flatten_axes(layout.outer, steps), layout.inner)
    return make_layout(layout.shape, map_leaves(flat, layout.stride), flat(layout.offset), (), layout.guards)


def scalar_bounds(layout: Any, offset: int, size: int) -> tuple[int, int]:
    """Return the lowest and the highest valid place; wider bounds if those are inside storage of that size, too.

    >>> scalar_bounds(Layout((4, 8), (8, 1)), 2, 100)
    (2, 33)
    """
    if product(layout.shape) == 0:
        return 0, -1
    if isinstance(layout, Layout):
        low, high = layout.bounds
        if not layout.guards or (offset + low >= 0 and offset + high < size):
            return int(offset + low), int(offset + high)
    elif isinstance(layout.outer, Swizzle) and isinstance(layout.inner, Layout):
        low, high = layout.inner.bounds
        high = round_up(int(high) + 1, layout.outer.size) - 1
        if low >= 0 and offset + high < size:
            return offset, offset + high
    low, high = 0, -1
    first = True
    for _, places, valid in chunks(layout):
        inside = places[valid] if is_array(valid) else places
        if inside.size:
            low = int(inside.min()) if first else min(low, int(inside.min()))
            high = int(inside.max()) if first else max(high, int(inside.max()))
            first = False
    return (0, -1) if first else (offset + low, offset + high)
