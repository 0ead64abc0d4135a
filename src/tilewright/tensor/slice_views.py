# SPDX-License-Identifier: Apache-2.0
"""Parts of a tensor as views: `t.slice[1:3, 2:5]()`, subscripts `t[1:3, :]`, and `t.split[3, 1]()`."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from ..errors import CoordinateError, LayoutError
from ..layout import flatten
from ..layout.tuples import ceil_div, product_each, round_up
from ..layout.validation import as_integer
from .tile_views import Brackets, Extents, Kind
from .view_layouts import Cut, cut_modes, pair_layout

SliceEntry: TypeAlias = "slice | int"
SliceEntries: TypeAlias = "SliceEntry | tuple[SliceEntry, ...]"


class SliceBrackets(Brackets[Kind]):
    """`t.slice[1:3, 2:5]()` is a part of a tensor; see `TileTensor.slice`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).slice[1:3, 2:5]().offset
    10
    """

    __slots__ = ()

    def __getitem__(self, entries: SliceEntries) -> partial[Kind]:
        return partial(slice_leaves, self._tensor, entries if isinstance(entries, tuple) else (entries,), False)

    def __call__(self, *ranges: tuple[int, int]) -> Kind:
        """Return the part given by one (start, end) pair per leaf, known only at run time."""
        return slice_leaves(self._tensor, ranges, True)


class SplitBrackets(Brackets[Kind]):
    """`t.split[count, axis]()` are equal parts, `t.split[axis, alignment](count, k)` one part of several.

    >>> import tilewright as tw
    >>> [part.shape for part in tw.TileTensor(bytearray(48), tw.row_major(6, 8)).split[2, 1]()]
    [(6, 4), (6, 4)]
    """

    __slots__ = ()

    def __getitem__(self, parameters: Extents) -> partial[Any]:  # a list of views, or one view
        return partial(split, self._tensor, parameters if isinstance(parameters, tuple) else (parameters,))

    def __call__(self, count: int, k: int) -> Kind:
        """Return part `k` of `count` of the first mode."""
        part: Kind = split(self._tensor, (), count, k)
        return part


def slice_leaves(tensor: Kind, entries: tuple[Any, ...], at_run_time: bool) -> Kind:
    """Return a part of the tensor: one entry per leaf, a range or an integer that drops its mode.

    >>> import tilewright as tw
    >>> slice_leaves(tw.TileTensor(list(range(72)), tw.row_major(6, 12)), (slice(4, 6), 10), False)
    TileTensor(Layout((2,), (12,)), offset=58, dtype='int64')
    """
    pair = tensor._pair if len(tensor._extents) == tensor._leaf_count else pair_layout(flatten(tensor.layout))
    if tensor.element_size > 1 and pair is not tensor._pair:
        raise LayoutError("a vectorized tensor with nested modes cannot be sliced by leaf; slice it before vectorize")
    extents = product_each(pair.shape[0])
    if len(entries) != len(extents):
        raise LayoutError(
            f"{len(entries)} ranges do not fit a tensor of shape {tensor.layout.shape}: give one for each of its"
            f" {len(extents)} leaves"
        )
    cuts, keep = [], []
    for k, (entry, extent) in enumerate(zip(entries, extents, strict=True)):
        low, high, is_range = _slice_bounds(entry, extent, k)
        cuts.append((low, tensor._runtime_extent(high - low) if at_run_time else high - low, 1))
        keep.append(is_range)
    view, shift = cut_modes(pair, cuts, None if all(keep) else keep)
    return tensor._view(view, tensor._offset + shift)


def _slice_bounds(entry: Any, extent: int, k: int) -> tuple[int, int, bool]:
    """Return (start, end, whether the entry is a range) of an entry for mode k."""
    if isinstance(entry, slice):
        if entry.step not in (None, 1):
            raise LayoutError(
                f"slice takes ranges with step 1, got step {entry.step}; a subscript t[a:b:s] takes any step"
            )
        low = 0 if entry.start is None else int(as_integer(entry.start, "a slice bound"))
        high = int(extent) if entry.stop is None else int(as_integer(entry.stop, "a slice bound"))
    elif isinstance(entry, (tuple, list)) and len(entry) == 2:
        low, high = (int(as_integer(bound, "a slice bound")) for bound in entry)
    else:
        index = int(as_integer(entry, "an index in a slice"))
        if not 0 <= index < extent:
            raise CoordinateError(f"index {index} of mode {k} is outside its {extent} elements")
        return index, index + 1, False
    if not 0 <= low <= high <= extent:
        raise CoordinateError(f"range {low}:{high} of mode {k} must lie within 0:{extent} and start before its end")
    return low, high, True


def subscript(tensor: Kind, entries: tuple[Any, ...]) -> Kind:
    """Return the part that a subscript with slices selects; integers drop their mode, slices clamp as in Python.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(72)), tw.row_major(6, 12))
    >>> t[-2:9, 3], t[::2, :].shape
    (TileTensor(Layout((2,), (12,)), offset=51, dtype='int64'), (3, 12))
    """
    pair = tensor._pair
    entries = _expand_ellipsis(entries, len(tensor._extents))
    if len(entries) == tensor._leaf_count != len(tensor._extents) and tensor.element_size == 1:
        pair = pair_layout(flatten(tensor.layout))
    extents = product_each(pair.shape[0])
    if len(entries) != len(extents):
        raise LayoutError(
            f"{len(entries)} subscripts do not fit a tensor of shape {tensor.layout.shape}; give {len(extents)}, or"
            " use ..."
        )
    cuts: list[Cut] = []
    keep = []
    for k, (entry, extent) in enumerate(zip(entries, extents, strict=True)):
        if entry is None:
            raise LayoutError("a subscript cannot contain None; add an axis with reshape")
        if isinstance(entry, slice):
            low, high, step = entry.indices(int(extent))
            cuts.append((low, tensor._runtime_extent(len(range(low, high, step))), step))
        else:
            low, high, _ = _slice_bounds(entry, extent, k)
            cuts.append((low, 1, 1))
        keep.append(isinstance(entry, slice))
    view, shift = cut_modes(pair, cuts, None if all(keep) else keep)
    return tensor._view(view, tensor._offset + shift)


def _expand_ellipsis(entries: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Return subscripts with `...` replaced by the missing full slices."""
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if not dots:
        return entries
    if len(dots) > 1:
        raise LayoutError("a subscript can contain only one ...")
    missing = rank - len(entries) + 1
    return (*entries[: dots[0]], *[slice(None)] * missing, *entries[dots[0] + 1 :])


def split(tensor: Kind, parameters: tuple[Any, ...], *part: int) -> Any:
    """Return equal parts for parameters (count, axis), or one part (count, k) for parameters (axis, alignment).

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(24)), tw.row_major(2, 12))
    >>> [part.offset for part in split(t, (3, 1))], [split(t, (1, 4), 4, k).shape for k in range(4)]
    ([0, 4, 8], [(2, 4), (2, 4), (2, 4), (2, 0)])
    """
    if part:
        axis, alignment = (*parameters, 0, 1)[:2] if len(parameters) != 1 else (parameters[0], 1)
        count, k = part
        return _split_part(tensor, axis, alignment, count, k)
    if not 1 <= len(parameters) <= 2:
        raise LayoutError("split takes split[count, axis]() for all parts, or split[axis, alignment](count, k) for one")
    count, axis = (*parameters, 0)[:2]
    extent = int(tensor._extents[tensor._check_mode(axis)])
    if count < 1 or extent % count:
        raise LayoutError(
            f"{extent} elements of mode {axis} do not split into {count} equal parts; use a divisor of {extent}"
        )
    length = extent // count
    return [_cut_axis(tensor, axis, k * length, length) for k in range(count)]


def _split_part(tensor: Kind, axis: int, alignment: int, count: int, k: int) -> Kind:
    """Return part k of `count` parts, each rounded up to the alignment; the last ones may be shorter or empty."""
    extent = int(tensor._extents[tensor._check_mode(axis)])
    if count < 1 or alignment < 1:
        raise LayoutError(f"split takes a count and an alignment of at least 1, got {count} and {alignment}")
    if not 0 <= k < count:
        raise CoordinateError(f"part {k} is outside the {count} parts, which are 0 to {count - 1}")
    length = round_up(ceil_div(extent, count), alignment)
    return _cut_axis(tensor, axis, k * length, tensor._runtime_extent(min(max(extent - k * length, 0), length)))


def _cut_axis(tensor: Kind, axis: int, start: int, length: int) -> Kind:
    """Return the part of a tensor from `start` on along one mode."""
    cuts: list[Cut] = [(0, n, 1) for n in tensor._extents]
    cuts[axis] = (start, length, 1)
    pair, shift = cut_modes(tensor._pair, cuts)
    return tensor._view(pair, tensor._offset + shift)
