# SPDX-License-Identifier: Apache-2.0
"""Slicing: parts of a tensor by ranges of its indices, and splits into equal parts. None of them copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import CoordinateError, LayoutError
from ..layout import flatten
from ..layout.integers import DynamicInt, as_integer
from ..layout.tuples import ceil_div, product_each, round_up
from .cutting import Cut, cut, paired

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def slice_(tensor: TileTensor, fixed: tuple[Any, ...], *ranges: Any) -> TileTensor:
    """Return a part of the tensor: `t.slice[1:4, 2:7]()` with static bounds, `t.slice((1, 3), (2, 5))` at run time.

    One entry for each leaf: a range, or, in brackets, an integer that drops its mode. Bounds are checked, never
    clamped; subscripts `t[1:3, :]` clamp as Python does.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(72)), tw.row_major(6, 12))
    >>> t.slice[4:6, 10]()
    TileTensor(Layout((2,), (12,)), offset=58, dtype='int64')
    >>> t.slice((0, 3), (1, 7)).layout
    Layout((Idx(3), Idx(6)), (12, 1))
    """
    if fixed and ranges:
        raise LayoutError("slice takes bounds in brackets or in parentheses, not both")
    whole = tensor._whole if len(tensor._extents) == tensor.flat_rank else paired(flatten(tensor.layout))
    if tensor.element_size > 1 and whole is not tensor._whole:
        raise LayoutError("a vectorized tensor with nested modes has no slices by leaf; slice it before vectorize")
    extents = product_each(whole.shape[0])
    entries = fixed or ranges
    if len(entries) != len(extents):
        raise LayoutError(
            f"{len(entries)} ranges do not fit a tensor of shape {tensor.layout.shape}: give one for each of its"
            f" {len(extents)} leaves"
        )
    cuts, keep = [], []
    for k, (entry, extent) in enumerate(zip(entries, extents, strict=True)):
        low, high, stays = _bounds(entry, extent, k)
        count = high - low if fixed else DynamicInt(high - low)
        cuts.append((low, count, 1))
        keep.append(stays)
    found, shift = cut(whole, cuts, None if all(keep) else keep)
    return tensor._view(found, tensor._offset + shift)


def _bounds(entry: Any, extent: int, k: int) -> tuple[int, int, bool]:
    """Return the first index, the one past the last, and whether the mode stays."""
    if isinstance(entry, slice):
        if entry.step not in (None, 1):
            raise LayoutError(f"slices take every element; a step of {entry.step} is possible in a subscript, t[a:b:s]")
        low = 0 if entry.start is None else int(as_integer(entry.start, "a slice bound"))
        high = int(extent) if entry.stop is None else int(as_integer(entry.stop, "a slice bound"))
    elif isinstance(entry, (tuple, list)) and len(entry) == 2:
        low, high = (int(as_integer(bound, "a slice bound")) for bound in entry)
    else:
        at = int(as_integer(entry, "an index in a slice"))
        if not 0 <= at < extent:
            raise CoordinateError(f"index {at} of mode {k} is outside its {extent} elements")
        return at, at + 1, False
    if not 0 <= low <= high <= extent:
        raise CoordinateError(f"range {low}:{high} of mode {k} must lie within 0:{extent}, with its start first")
    return low, high, True


def subscript(tensor: TileTensor, entries: tuple[Any, ...]) -> TileTensor:
    """Return the part that a subscript with slices selects; integers drop their mode, slices behave as in Python.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(72)), tw.row_major(6, 12))
    >>> t[-2:9, 3], t[::2, :].shape
    (TileTensor(Layout((Idx(2),), (12,)), offset=51, dtype='int64'), (3, 12))
    """
    whole = tensor._whole
    entries = _spread(entries, len(tensor._extents))
    if len(entries) == tensor.flat_rank != len(tensor._extents) and tensor.element_size == 1:
        whole = paired(flatten(tensor.layout))
    extents = product_each(whole.shape[0])
    if len(entries) != len(extents):
        raise LayoutError(
            f"{len(entries)} subscripts do not fit a tensor of shape {tensor.layout.shape}; give {len(extents)}, or"
            " use ..."
        )
    cuts: list[Cut] = []
    keep = []
    for k, (entry, extent) in enumerate(zip(entries, extents, strict=True)):
        if entry is None:
            raise LayoutError("None adds an axis in NumPy; a view of a tensor cannot: use reshape")
        if isinstance(entry, slice):
            low, high, step = entry.indices(int(extent))
            cuts.append((low, DynamicInt(len(range(low, high, step))), step))
        else:
            low, high, _ = _bounds(entry, extent, k)
            cuts.append((low, 1, 1))
        keep.append(isinstance(entry, slice))
    found, shift = cut(whole, cuts, None if all(keep) else keep)
    return tensor._view(found, tensor._offset + shift)


def _spread(entries: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Return subscripts with `...` replaced by as many full slices as are missing."""
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if not dots:
        return entries
    if len(dots) > 1:
        raise LayoutError("a subscript can hold only one ...")
    missing = rank - len(entries) + 1
    return (*entries[: dots[0]], *[slice(None)] * missing, *entries[dots[0] + 1 :])


def split(tensor: TileTensor, fixed: tuple[Any, ...], *parts: Any) -> Any:
    """Return the tensor in equal parts, `t.split[count, axis]()`, or one part, `t.split[axis, alignment](count, k)`.

    Equal parts need an extent that divides. One part of many is rounded up to the alignment, and the last parts may
    be shorter or empty.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(24)), tw.row_major(2, 12))
    >>> [part.offset for part in t.split[3, 1]()]
    [0, 4, 8]
    >>> [t.split[1, 4](4, k).shape for k in range(4)]
    [(2, 4), (2, 4), (2, 4), (2, 0)]
    """
    if parts:
        axis, alignment = (*fixed, 0, 1)[:2] if len(fixed) != 1 else (fixed[0], 1)
        count, k = parts
        return _part_of(tensor, axis, alignment, count, k)
    if not 1 <= len(fixed) <= 2:
        raise LayoutError("split needs a count, split[count, axis](), or a part, split[axis, alignment](count, k)")
    count, axis = (*fixed, 0)[:2]
    extent = _axis_extent(tensor, axis)
    if count < 1 or extent % count:
        raise LayoutError(
            f"{extent} elements of mode {axis} do not split into {count} equal parts; use a divisor of {extent}"
        )
    length = extent // count
    return [_part(tensor, axis, k * length, length) for k in range(count)]


def _axis_extent(tensor: TileTensor, axis: int) -> int:
    rank = len(tensor._extents)
    if not 0 <= axis < rank:
        raise CoordinateError(
            f"there is no mode {axis} to split: a tensor of shape {tensor.layout.shape} has 0 to {rank - 1}"
        )
    return int(tensor._extents[axis])


def _part_of(tensor: TileTensor, axis: int, alignment: int, count: int, k: int) -> TileTensor:
    extent = _axis_extent(tensor, axis)
    if count < 1 or alignment < 1:
        raise LayoutError(f"a split needs a count and an alignment of at least 1, got {count} and {alignment}")
    if not 0 <= k < count:
        raise CoordinateError(f"there is no part {k} of {count}")
    length = round_up(ceil_div(extent, count), alignment)
    return _part(tensor, axis, k * length, min(max(extent - k * length, 0), length), dynamic=True)


def _part(tensor: TileTensor, axis: int, start: int, length: int, dynamic: bool = False) -> TileTensor:
    cuts: list[Cut] = [(0, n, 1) for n in tensor._extents]
    cuts[axis] = (start, DynamicInt(length) if dynamic else length, 1)
    whole, shift = cut(tensor._whole, cuts)
    return tensor._view(whole, tensor._offset + shift, tensor.linear_idx_type)
