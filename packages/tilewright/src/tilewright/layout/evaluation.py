# SPDX-License-Identifier: Apache-2.0
"""Evaluation of layouts past their edge, and of all coordinates at once, as tables.

NumPy is imported only when a table is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LayoutError
from .axes import PLAIN, Offset, Place, Replica, Stride, component
from .tuples import (
    Coordinate,
    IntArray,
    Shape,
    as_int64,
    as_integer,
    as_tree,
    as_tuple,
    is_array,
    leaves,
    product,
    product_each,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .layout import Layout, LayoutLike


def offset_table(layout: LayoutLike, fill: int | None, dtype: DTypeLike | None) -> IntArray | Any:
    """Return the offset of every coordinate, one dimension per mode; see `LayoutLike.offsets`.

    >>> from tilewright import Layout
    >>> offset_table(Layout((2, 2)), None, None).tolist()
    [[0, 2], [1, 3]]
    """
    offsets = layout._table()
    if isinstance(offsets, Place):
        return Place._of(
            {name: _apply_fill_and_dtype(layout, table, fill, dtype) for name, table in offsets._parts.items()}
        )
    return _apply_fill_and_dtype(layout, offsets, fill, dtype)


def offset_array(layout: LayoutLike, dtype: DTypeLike | None) -> IntArray | Any:
    """Return the offsets as NumPy asks for them: in an integer type that holds them, or converted to another one.

    >>> from tilewright import Layout
    >>> offset_array(Layout(3, 2), "float32").tolist()
    [0.0, 2.0, 4.0]
    """
    if dtype is None or np.dtype(dtype).kind in "iu":
        return offset_table(layout, None, dtype)
    return offset_table(layout, None, None).astype(dtype)


def _apply_fill_and_dtype(layout: LayoutLike, table: IntArray, fill: int | None, dtype: DTypeLike | None) -> IntArray:
    if fill is not None:
        mask = layout._valid_table()
        if mask is not None:
            mask = mask.reshape(mask.shape + (1,) * (table.ndim - mask.ndim))
            table = np.where(mask, table, np.asarray(fill, dtype=table.dtype))
    if dtype is None or np.dtype(dtype) == table.dtype:
        return table
    if np.dtype(dtype).kind not in "iu":
        raise LayoutError(
            f"expected an integer type for offsets, got {np.dtype(dtype)}; use int64, or astype afterwards"
        )
    limits = np.iinfo(dtype)
    if table.size and not (limits.min <= table.min() and table.max() <= limits.max):
        raise LayoutError(
            f"offsets {table.min()} to {table.max()} do not fit into {np.dtype(dtype)}; use a wider dtype"
        )
    return table.astype(dtype)


def strided_table(
    shape: Shape, strides: Stride, offset: Offset, replicas: tuple[Replica, ...], axes: tuple[str, ...]
) -> IntArray | Any:
    """Return offset + sum(coordinate * stride) for every coordinate: the sum of one vector per mode.

    >>> strided_table((2, 3), (3, 1), 0, (), ()).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if axes:
        flat: list[Offset] = leaves(strides)
        names = (*axes, PLAIN) if any(component(stride, PLAIN) for stride in [*flat, offset]) else axes
        return Place._of({name: _table_along_axis(shape, strides, offset, replicas, name) for name in names})
    return _table_along_axis(shape, strides, offset, replicas, PLAIN)


def _table_along_axis(
    shape: Shape, steps: Stride, offset: Offset, replicas: tuple[Replica, ...], axis: str
) -> IntArray:
    start = int(component(offset, axis))
    total = np.array(start, dtype=np.int64)
    reach = abs(start)
    modes: list[tuple[Any, Any]] = [*zip(as_tuple(shape), as_tuple(steps), strict=True), *replicas]
    for extents, strides in modes:
        vector = np.zeros(1, dtype=np.int64)
        for extent, stride in zip(leaves(extents), leaves(strides), strict=True):
            stride = int(component(stride, axis))
            reach += max(extent - 1, 0) * abs(stride)
            if reach >= 2**63:
                raise LayoutError(
                    f"offsets reach {reach}, beyond 2^63 - 1, and do not fit into a 64-bit table; use L(i) instead"
                )
            vector = (np.arange(extent, dtype=np.int64)[:, None] * stride + vector).reshape(-1)
        total = total[..., None] + vector
    return total


def valid_coordinates(layout: LayoutLike, coord: tuple[Any, ...]) -> bool | Any:
    """Return which coordinates of arrays are data, where some are outside the shape.

    >>> import numpy as np
    >>> from tilewright import Layout
    >>> valid_coordinates(Layout(4), (np.array([3, 4]),)).tolist()
    [True, False]
    """
    nested = as_tree(coord[0]) if len(coord) == 1 else as_tree(coord)
    parts = nested if isinstance(nested, tuple) else (nested,)
    extents = product_each(layout.shape) if isinstance(nested, tuple) else (product(layout.shape),)
    if len(parts) != len(extents):
        extents = tuple(leaves(layout.shape))
    inside: Any = True
    clipped = []
    for part, extent in zip(parts, extents, strict=True):
        part = np.asarray(part)
        inside = inside & (part >= 0) & (part < extent)
        clipped.append(np.clip(part, 0, max(extent - 1, 0)))
    return inside & layout.valid(*clipped) if layout.size else inside


def true_like(leaf_coords: list[Any]) -> bool | Any:
    """Return True, or for arrays of leaf coordinates an array of True in their common shape.

    >>> import numpy as np
    >>> true_like([1, 2]), true_like([1, np.arange(2)]).tolist()
    (True, [True, True])
    """
    if not any(map(is_array, leaf_coords)):
        return True
    return np.ones(np.broadcast_shapes(*[np.shape(part) for part in leaf_coords]), dtype=bool)


def extended_offset(layout: Layout, coord: Coordinate) -> int | Any:
    """Return the offset of a coordinate relative to the layout's own; the outermost coalesced mode has no end.

    At negative indices f(-i) is -f(i).

    >>> from tilewright import Layout
    >>> extended_offset(Layout((4, 3), (3, 1)), 13), extended_offset(Layout((4, 8), (1, 10)), -35)
    (6, -83)
    """
    if isinstance(coord, tuple):
        modes = [layout._mode((k,)) for k in range(layout.rank)]
        if len(coord) != len(modes):
            raise LayoutError(f"coordinate {coord} does not fit shape {layout.shape}, which takes {len(modes)} entries")
        return sum((extended_offset(mode, part) for part, mode in zip(coord, modes, strict=True)), 0)
    extents, strides = layout.canonical_modes()
    if 0 in extents[:-1]:
        raise LayoutError(f"{layout} is empty and cannot be extended")
    index: Any
    if is_array(coord):
        index = as_int64(coord)
        _check_extended_range(layout, index)
        sign = 1 if (index >= 0).all() else 2 * (index >= 0) - 1
    else:
        index = coord if hasattr(coord, "free_symbols") else as_integer(coord, "a coordinate")
        sign = -1 if isinstance(index, int) and index < 0 else 1
    index = index * sign
    total: Any = 0
    for extent, stride in zip(extents[:-1], strides[:-1], strict=True):
        total = total + index % extent * stride
        index = index // extent
    return (total + index * strides[-1]) * sign


def _check_extended_range(layout: Layout, index: IntArray) -> None:
    """Raise if the extended layout maps an index of the array beyond 64 bits."""
    if not index.size:
        return
    furthest = max(abs(int(index.min())), abs(int(index.max())))
    extents, strides = layout.canonical_modes()
    turns = furthest // (product(tuple(extents[:-1])) or 1)
    for axis in layout.axes or (PLAIN,):
        reach = abs(component(layout.offset, axis)) + turns * abs(component(strides[-1], axis))
        reach += sum(max(n - 1, 0) * abs(component(d, axis)) for n, d in zip(extents[:-1], strides[:-1], strict=True))
        if reach >= 2**63:
            raise LayoutError(
                f"{layout} reaches {reach}, beyond 2^63 - 1 and the 64 bits of an array; use single indices"
            )


def chunks(layout: LayoutLike, limit: int = 1 << 20) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (indices, offsets, valid) of the whole domain, at most `limit` indices at a time.

    >>> from tilewright import Layout
    >>> [offsets.tolist() for _, offsets, _ in chunks(Layout(6, 2), limit=4)]
    [[0, 2, 4, 6], [8, 10]]
    """
    size = layout.size
    for start in range(0, size, limit):
        index = np.arange(start, min(size, start + limit), dtype=np.int64)
        valid = layout.valid(index)
        offsets = _broadcast_offsets(layout._offsets_at(index), index.shape)
        yield index, offsets, valid if is_array(valid) else np.full(index.shape, bool(valid))


def _broadcast_offsets(offsets: object, shape: tuple[int, ...]) -> Any:
    """Return offsets as arrays of that shape; a layout without modes has a single offset."""
    if isinstance(offsets, Place):
        return Place._of({name: _broadcast_offsets(part, shape) for name, part in offsets._parts.items()})
    return np.full(shape, offsets) if isinstance(offsets, int) else offsets


def cosize_from_table(layout: LayoutLike) -> int | Any:
    """Return the size of the smallest buffer that holds every offset and 0, by evaluating all offsets.

    >>> from tilewright import Layout
    >>> cosize_from_table(Layout((4, 8), (1, 5)))
    39
    """
    if layout.size == 0:
        return 0
    lows: dict[str, int] = {}
    highs: dict[str, int] = {}
    for _, offsets, _ in chunks(layout):
        for name, table in (offsets._parts if isinstance(offsets, Place) else {PLAIN: offsets}).items():
            lows[name] = min(lows.get(name, 0), int(table.min()))
            highs[name] = max(highs.get(name, 0), int(table.max()))
    sizes = {name: highs[name] + 1 - lows[name] for name in lows}
    return sizes[PLAIN] if sizes.keys() == {PLAIN} else Place(sizes)
