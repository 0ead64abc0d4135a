# SPDX-License-Identifier: Apache-2.0
"""Admission: storage and a layout from outside, as a store, a plain layout and an offset."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..formats import ScalarFormat, format_of
from ..layout import Layout, LayoutLike
from ..layout.strided import make
from ..layout.tuples import suffix_product
from .named import plain_layout
from .storage import Store, as_array, spanned_scalars


def admit(storage: Any, layout: Any, dtype: Any) -> tuple[Store, Any, int]:
    """Return the store, the plain layout and the offset of storage seen through a layout, or through its own shape.

    >>> admit(bytearray(12), Layout((3, 4)) + 0, None)[1:]
    (Layout((3, 4), (1, 3)), 0)
    """
    if layout is None:
        data = as_array(storage, dtype)
        scalars, start, steps = spanned_scalars(data)
        store = Store.of(scalars)
        shape = tuple(map(int, data.shape))
        natural = suffix_product(shape)
        # NumPy does not care for the strides of extents 1; row-major ones keep is_row_major true
        strides = tuple([d if n > 1 else m for n, d, m in zip(shape, steps, natural, strict=True)])
        return store.changed(origin=storage), make(shape, strides), start
    if not isinstance(layout, LayoutLike):
        layout = _from_protocol(layout)
    if layout.axes:
        return plain_layout(storage, layout, dtype)
    if getattr(layout, "replicas", ()):
        raise LayoutError(f"{layout} has replicas; a tensor shows one of them: leave the others out")
    store = Store.of(storage, dtype)
    if isinstance(layout, Layout) and layout.offset:
        return store, layout - layout.offset, int(layout.offset)
    return store, layout, 0


def _from_protocol(layout: Any) -> Layout:
    """Return a foreign layout that has Mojo's `PageLayout` methods as one of ours."""
    try:
        return Layout(layout.shape_coord(), layout.stride_coord())
    except AttributeError:
        raise TypeError(
            f"a tensor needs a layout, got {type(layout).__name__} {layout!r}; make one with row_major[4, 8]()"
        ) from None


def index_format(given: Any) -> ScalarFormat:
    """Return the integer format that offsets are to have.

    >>> index_format("int32").name
    'int32'
    """
    element = format_of(given)
    if not isinstance(element, ScalarFormat) or element.kind not in ("int", "uint"):
        raise LayoutError(f"linear_idx_type must be an integer format, not {element.name}")
    return element
