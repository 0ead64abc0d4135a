# SPDX-License-Identifier: Apache-2.0
"""Parts and other shapes of a tensor, as views: slices, subscripts, splits; reshape, transpose, vectorize, bitcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._integers import ceil_div, round_up
from ..errors import CoordinateError, LayoutError
from ..formats import FormatLike, format_of
from ..layout import Layout, LayoutLike, flatten
from ..layout.layout import make_layout
from ..layout.tuples import ShapeArgument, as_tree, leaves, map_leaves, product, product_each, suffix_product
from ..layout.validation import as_integer
from .tile_views import Brackets, Extents, Kind
from .view import View
from .view_layouts import Cut, PairLayout, cut_modes, pair_layout, transpose_pair, vectorize_pair


class ReshapeBrackets(Brackets[Kind]):
    """`t.reshape[2, 6]()`, `t.reshape(2, 6)` or `t.reshape(layout)`; see `TileTensor.reshape`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).reshape[2, 6]().shape
    (2, 6)
    """

    __slots__ = ()
    method = "reshape"

    def __getitem__(self, shape: Extents) -> partial[Kind]:
        return partial(reshape, self._tensor, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, *shape: ShapeArgument | LayoutLike, allow_resize: bool = False) -> Kind:
        """Return the tensor in another `shape`, or under another layout of the same size unless `allow_resize`."""
        first: Any = shape[0] if len(shape) == 1 else shape
        if isinstance(first, LayoutLike):
            return replace_layout(self._tensor, first, allow_resize)
        return reshape(self._tensor, first if isinstance(first, (tuple, list)) else shape)


class VectorizeBrackets(Brackets[Kind]):
    """`t.vectorize[1, 4]()` has blocks of elements as its elements; see `TileTensor.vectorize`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().shape
    (6, 2)
    """

    __slots__ = ()
    method = "vectorize"

    def __getitem__(self, block: Extents) -> partial[Kind]:
        return partial(vectorize, self._tensor, block if isinstance(block, tuple) else (block,))

    def __call__(self, *, simd_bytes: int = 64) -> Kind:
        """Return vectors along the last mode, as long as `simd_bytes` holds scalars."""
        rank = len(self._tensor._extents)
        width = max(1, simd_bytes // self._tensor._store.format.itemsize)
        return vectorize(self._tensor, (*[1] * (rank - 1), width) if rank else ())


class BitcastBrackets(Brackets[Kind]):
    """`t.bitcast["uint32"]()` reads the same bytes as another format; see `TileTensor.bitcast`.

    >>> import tilewright as tw
    >>> tw.TileTensor([1.0, 2.0], tw.row_major(2)).bitcast["int64"]().dtype.name
    'int64'
    """

    __slots__ = ()
    method = "bitcast"

    def __getitem__(self, dtype: FormatLike) -> partial[Kind]:
        return partial(bitcast, self._tensor, dtype)


def reshape(tensor: Kind, shape: Sequence[Any]) -> Kind:
    """Return the same elements, which must be in row-major order without gaps, in another shape.

    >>> import tilewright as tw
    >>> reshape(tw.TileTensor(list(range(12)), tw.row_major(3, 4)), (2, 6)).layout
    Layout((2, 6), (6, 1))
    """
    form: Any = map_leaves(lambda n: as_integer(n, "an extent"), as_tree(shape))
    require_row_major(tensor, "reshape")
    if product(form) != tensor.size:
        raise LayoutError(
            f"cannot reshape {tensor.size} elements of shape {tensor.layout.shape} to {form}, which has {product(form)}"
        )
    size = tensor.element_size
    if size == 1:
        return tensor._view(pair_layout(make_layout(form, suffix_product(form))), tensor._offset)
    vector = tuple([1] * (len(form) - 1) + [size]) if form else (size,)
    pair = make_layout((form, vector), (suffix_product(form, size), (1,) * len(vector)))
    return tensor._view(pair, tensor._offset)


def replace_layout(tensor: Kind, layout: LayoutLike, allow_resize: bool) -> Kind:
    """Return another layout over the storage from the first scalar of the tensor on.

    >>> import tilewright as tw
    >>> replace_layout(tw.TileTensor(list(range(12)), tw.row_major(3, 4)), tw.col_major(2, 6), False).layout
    Layout((2, 6), (1, 2))
    """
    if tensor.element_size != 1:
        raise LayoutError("cannot change the layout of a vectorized tensor; reshape it before vectorize")
    if tensor.is_ragged:
        raise LayoutError("cannot change the layout of a ragged view: some of its scalars belong to no element")
    if layout.size != tensor.size and not allow_resize:
        raise LayoutError(
            f"{layout} has {layout.size} elements, but the tensor has {tensor.size}; allow_resize=True permits that"
        )
    view = tensor._view(pair_layout(layout), tensor._offset)
    view._check_bounds()
    return view


def require_row_major(tensor: View, caller: str) -> None:
    """Raise an error that names `caller` unless the elements are in row-major order without gaps.

    >>> import tilewright as tw
    >>> require_row_major(tw.TileTensor(bytearray(12), tw.row_major(3, 4)), "reshape")
    """
    if not is_contiguous_row_major(tensor):
        raise LayoutError(
            f"{caller} needs elements in row-major order without gaps, got the layout {tensor.layout}"
            + (" with a ragged edge" if tensor.is_ragged else "")
            + "; copy it first: TileTensor(t.to_numpy())"
        )


def is_contiguous_row_major(tensor: View) -> bool:
    """Return whether the elements are in row-major order without gaps.

    >>> import tilewright as tw
    >>> is_contiguous_row_major(tw.TileTensor(bytearray(12), tw.row_major(3, 4)).transpose())
    False
    """
    pair = tensor._pair
    if not isinstance(pair, Layout) or pair.guards:
        return False
    modes = [*zip(pair.shape[0], pair.stride[0], strict=True)][::-1]
    # inside a nested mode the first leaf is the fastest
    runs = [leaf for shape, stride in modes for leaf in zip(leaves(shape), leaves(stride), strict=True)]
    vector = [*zip(pair.shape[1], pair.stride[1], strict=True)][::-1]
    block = [leaf for shape, stride in vector for leaf in zip(leaves(shape), leaves(stride), strict=True)]
    expected = 1
    for n, step in [*block, *runs]:
        if n != 1:
            if step != expected:
                return False
            expected *= n
    return True


def coalesce(tensor: Kind) -> Kind:
    """Return the tensor with one mode; its elements must be in row-major order without gaps.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(12)), tw.row_major(3, 4)).coalesce().layout
    Layout((12,), (1,))
    """
    require_row_major(tensor, "coalesce")
    count, size = product(tensor._pair.shape[0]), tensor.element_size
    pair = make_layout(((count,), (size,) if size > 1 else ()), ((size,), (1,) if size > 1 else ()))
    return tensor._view(pair, tensor._offset)


def transpose(tensor: Kind) -> Kind:
    """Return the tensor with its modes in reverse.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(12)), tw.row_major(3, 4)).transpose().layout
    Layout((4, 3), (1, 4))
    """
    return tensor._view(transpose_pair(tensor._pair), tensor._offset)


def vectorize(tensor: Kind, block: tuple[Any, ...]) -> Kind:
    """Return the tensor with blocks of elements as single elements.

    >>> import tilewright as tw
    >>> vectorize(tw.TileTensor(list(range(120)), tw.row_major(10, 12)), (1, 4)).layout
    Layout((10, 3), (12, 4))
    """
    rank = len(tensor._extents)
    if len(block) != rank:
        raise LayoutError(
            f"a vector of shape {tuple(block)} does not fit shape {tensor.layout.shape}; give {rank} extents"
        )
    widths = [int(as_integer(n, "a vector extent")) for n in block]
    if any(n < 1 for n in widths):
        raise LayoutError(f"the extents of a vector must be at least 1, got {tuple(block)}")
    pair = tensor._pair if all(n == 1 for n in widths) else vectorize_pair(tensor._pair, widths)
    return tensor._view(pair, tensor._offset)


def bitcast(tensor: Kind, dtype: FormatLike, rescale: bool = False) -> Kind:
    """Return the same indices and strides over the same bytes read as another format.

    `rescale=True` multiplies the strides where the new format is smaller than the old one and divides it.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> hex(bitcast(tw.TileTensor(np.ones(4, dtype=np.float32), tw.row_major(2, 2)), "uint32")[0, 0])
    '0x3f800000'
    """
    old, new = tensor._store.format, format_of(dtype)
    if new.has_blocks:
        raise LayoutError(f"bitcast takes a scalar format, got {new.name}; unpack its blocks first")
    data = np.asarray(tensor._store.host).view(new.dtype)
    store = tensor._store.with_fields(data=data, format=new)
    if old.itemsize == new.itemsize:
        return tensor._view(tensor._pair, tensor._offset, store)
    if not rescale or old.itemsize % new.itemsize or not isinstance(tensor._pair, Layout):
        raise LayoutError(
            f"{old.name} and {new.name} differ in size, so the same strides would address other bytes; rescale=True"
            " multiplies them if the new size divides the old one"
        )
    factor = old.itemsize // new.itemsize
    steps = map_leaves(lambda step: step * factor, tensor._pair.stride)
    scaled = make_layout(tensor._pair.shape, steps, 0, (), tensor._pair.guards)
    return tensor._view(scaled, tensor._offset * factor, store)


SliceEntry: TypeAlias = "slice | int"
SliceEntries: TypeAlias = "SliceEntry | tuple[SliceEntry, ...]"


class SliceBrackets(Brackets[Kind]):
    """`t.slice[1:3, 2:5]()` is a part of a tensor; see `TileTensor.slice`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).slice[1:3, 2:5]().offset
    10
    """

    __slots__ = ()
    method = "slice"

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
    method = "split"

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
    pair = tensor._pair if len(tensor._extents) == tensor._leaf_count else pair_layout(flatten(tensor._core_layout))
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
    return _cut_view(tensor, pair, cuts, None if all(keep) else keep)


def _cut_view(tensor: Kind, pair: PairLayout, cuts: list[Cut], keep: list[bool] | None = None) -> Kind:
    """Return the view of the cuts of `pair`, the layout of the tensor or its flattened form."""
    view, shift = cut_modes(pair, cuts, keep)
    return tensor._view(view, tensor._offset + shift)


def _slice_bounds(entry: SliceEntry | Sequence[int], extent: int, k: int) -> tuple[int, int, bool]:
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
        pair = pair_layout(flatten(tensor._core_layout))
    extents = product_each(pair.shape[0])
    if len(entries) != len(extents):
        raise LayoutError(
            f"a tensor of shape {tensor.layout.shape} takes {len(extents)} subscripts, got {len(entries)}; give all, or"
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
    return _cut_view(tensor, pair, cuts, None if all(keep) else keep)


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
    if len(part) == 2:
        axis, alignment = (*parameters, 0, 1)[:2] if len(parameters) != 1 else (parameters[0], 1)
        count, k = part
        return _split_part(tensor, axis, alignment, count, k)
    if part or not 1 <= len(parameters) <= 2:
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
    return _cut_view(tensor, tensor._pair, cuts)
