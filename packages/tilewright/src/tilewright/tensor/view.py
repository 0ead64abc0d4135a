# SPDX-License-Identifier: Apache-2.0
"""`View`: the description of a tensor view: storage, layout, elements, and which part of its shape is valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from .._integers import ceil_div
from ..display import Drawable
from ..errors import CoordinateError, LayoutError
from ..formats import ScalarFormat
from ..layout import (
    ComposedLayout,
    Guard,
    Layout,
    LayoutLike,
    Nested,
    Shape,
    as_integer,
    coalesce,
    compose,
    leaves,
    live_guards,
    make_layout,
    product,
    product_each,
    suffix_product,
    zeros_like,
)
from .store import Store, scalar_bounds

# The layouts of views: every view of a tensor is a substitution of indices in its layout.

# A cut of one mode, (start, extent, step): index i of the view is index start + step * i of the mode, for i < extent.
Cut: TypeAlias = "tuple[int, int, int]"
PairLayout: TypeAlias = "Layout | ComposedLayout"


def pair_layout(layout: LayoutLike) -> Layout | Any:
    """Return a layout of scalars as a pair (elements, vector), with an empty vector.

    >>> print(pair_layout(Layout((4, 8))))
    ((4,8),()):((1,4),())
    """
    return layout._restructure(lambda tree, _: (tree if isinstance(tree, tuple) else (tree,), ()), "a tensor view")


def elements_layout(pair: PairLayout) -> Layout | Any:
    """Return the layout of the first scalar of every element.

    >>> print(elements_layout(pair_layout(Layout((4, 8)))))
    (4,8):(1,4)
    """
    if not isinstance(pair, Layout):
        return ComposedLayout(pair.outer, elements_layout(pair.inner))
    shape = pair.shape[0]
    guards: tuple[Guard, ...] = ()
    if pair.guards:
        guards = live_guards(shape, [guard.with_stride(_split_stride(guard)[0]) for guard in pair.guards])
    return make_layout(shape, pair.stride[0], pair.offset, (), guards)


def vector_layout(pair: PairLayout) -> Layout | Any:
    """Return the layout of the scalars of the first element.

    >>> print(vector_layout(vectorize_pair(pair_layout(Layout((4, 8))), (1, 4))))
    (1,4):(1,4)
    """
    if not isinstance(pair, Layout):
        return ComposedLayout(pair.outer, vector_layout(pair.inner))
    shape, stride = (
        tuple([mode[0] if _is_dropped(mode) else mode for mode in tree[1]]) for tree in (pair.shape, pair.stride)
    )
    return make_layout(shape, stride, pair.offset)


def cut_modes(pair: PairLayout, cuts: Sequence[Cut], keep: Sequence[bool] | None = None) -> tuple[Any, int]:
    """Return (pair, shift): every mode cut, and how far the first element of the result is from the first of `pair`.

    `keep` marks the modes that stay; the others are cut to one index and dropped.

    >>> print(*cut_modes(pair_layout(Layout((9, 8), (8, 1))), [(6, 3, 1), (4, 4, 1)]))
    ((3,4),()):((8,1),()) 52
    """
    if not isinstance(pair, Layout):
        inner, shift = cut_modes(pair.inner, cuts, keep)
        return ComposedLayout(pair.outer, inner + shift), 0
    shape, stride = pair.shape[0], pair.stride[0]
    extents, steps, outside = [], [], []
    shift = 0
    for k, (start, extent, step) in enumerate(cuts):
        n, d = shape[k], stride[k]
        extents.append(extent)
        if isinstance(n, tuple):
            inner = None if pair.guards else _cut_first_leaf(n, d, cuts[k])
            if inner is None:
                return _cut_nested(pair, cuts, keep)
            steps.append(inner[0])
            shift += inner[1]
            continue
        steps.append(d if step == 1 else d * step)
        shift += start * d
        if extent and not 0 <= start + (extent - 1) * step < n:
            outside.append(k)
    new_shape = (tuple(extents), pair.shape[1])
    strides = (tuple(steps), pair.stride[1])
    guards = tuple([_bound_mode(k, len(cuts), cuts[k], shape[k], pair.shape[1]) for k in outside])
    if pair.guards or 0 in extents:  # the new guards alone are distinct, and each excludes something
        guards = live_guards(new_shape, [*[_cut_guard(guard, cuts) for guard in pair.guards], *guards])
    result = make_layout(new_shape, strides, pair.offset, (), guards)
    return (result if keep is None else _drop_modes(result, keep)), int(shift)


def _cut_first_leaf(shape: Shape, stride: Shape, part: Cut) -> tuple[Any, Any] | None:
    """Return (stride, shift) of a tile of a nested mode that is a pair part of its first leaf; None for others."""
    start, extent, step = part
    counts = leaves(shape)
    if step != 1 or extent.__class__ is not int or extent < 2 or start % extent or counts[0] % extent:
        return None
    strides, shift = leaves(stride), 0
    for n, d in zip(counts, strides, strict=True):
        start, digit = divmod(start, n)
        shift += digit * d
    return None if start else (strides[0], shift)


def _cut_guard(guard: Guard, cuts: Sequence[Cut]) -> Guard:
    """Return a guard over cut modes."""
    outer, vector = _split_stride(guard)
    shift = sum(start * stride for (start, _, _), stride in zip(cuts, outer, strict=True))
    scaled = tuple([cut[2] * stride for cut, stride in zip(cuts, outer, strict=True)])
    return guard.with_stride((scaled, vector), int(shift))


def _split_stride(guard: Guard) -> tuple[Any, Any]:
    """Return (elements, vector): the strides of a guard over a pair."""
    elements, vector = guard.stride  # type: ignore[misc]
    return elements, vector


def _bound_mode(k: int, rank: int, cut: Cut, extent: int, vector: Shape) -> Guard:
    """Return the guard that keeps the index of mode k, after a cut, inside its extent."""
    strides = tuple([cut[2] if j == k else 0 for j in range(rank)])
    return Guard((strides, zeros_like(vector)), int(extent), cut[0])


def _drop_modes(pair: PairLayout, keep: Sequence[bool]) -> Any:
    """Return the pair without the modes of its elements that are not kept; their vectors are marked as dropped."""

    def select(tree: tuple[Any, Any], _: int) -> Any:
        flags = iter(keep)
        vector = tuple([mode if _is_dropped(mode) or next(flags) else (mode,) for mode in tree[1]])
        return tuple([mode for mode, stays in zip(tree[0], keep, strict=True) if stays]), vector

    return pair._restructure(select, "a tensor view")


def _cut_nested(pair: Layout, cuts: Sequence[Cut], keep: Sequence[bool] | None) -> tuple[Any, int]:
    """Return the same for nested modes: by composition, which may not be strided."""
    tilers = tuple([Layout(extent, stride) + start for start, extent, stride in cuts])
    result: Any = compose(pair, (tilers, None))
    return (result if keep is None else _drop_modes(result, keep)), 0


def rebase(pair: PairLayout) -> tuple[Any, int]:
    """Return (pair, first): the offset of the first element, and the pair relative to it.

    >>> print(*rebase(pair_layout(Layout((4, 8)) + 5)))
    ((4,8),()):((1,4),()) 5
    """
    if isinstance(pair, Layout):
        return (pair - pair.offset, int(pair.offset)) if pair.offset else (pair, 0)
    first = pair.extended(0) if product(pair.shape) else 0
    return (pair - first, int(first)) if first else (pair, 0)


def vectorize_pair(pair: PairLayout, widths: Sequence[int]) -> Layout | Any:
    """Return the pair with blocks of elements as single elements; existing vectors become part of the new ones.

    >>> print(vectorize_pair(pair_layout(Layout((10, 12), (12, 1))), (1, 4)))
    ((10,3),(1,4)):((12,4),(12,1))
    """
    if not isinstance(pair, Layout):
        return ComposedLayout(pair.outer, vectorize_pair(pair.inner, widths))
    shape, stride = pair.shape[0], pair.stride[0]
    if any(isinstance(mode, tuple) for mode in shape):
        return _vectorize_nested(pair, widths)
    blocks = tuple([ceil_div(n, width) for n, width in zip(shape, widths, strict=True)])
    new_shape = (blocks, _join_vectors(pair.shape[1], tuple(widths)))
    guards = [_widen_guard(guard, widths) for guard in pair.guards]
    for k, (n, width) in enumerate(zip(shape, widths, strict=True)):
        if n % width and not any(_bounds_mode(guard, k, n) for guard in pair.guards):
            unit = tuple([int(j == k) for j in range(len(shape))])
            guards.append(_widen_guard(Guard((unit, zeros_like(pair.shape[1])), int(n)), widths))
    scaled = tuple([d * width for d, width in zip(stride, widths, strict=True)])
    strides = (scaled, _join_vectors(pair.stride[1], stride))
    return make_layout(new_shape, strides, pair.offset, (), live_guards(new_shape, guards))


def _bounds_mode(guard: Guard, k: int, extent: int) -> bool:
    """Return whether a guard already keeps the index of mode k below its extent."""
    outer, _ = _split_stride(guard)
    alone = all(stride == 0 for j, stride in enumerate(outer) if j != k)
    stride = outer[k]
    return bool(alone and stride > 0 and guard.offset >= 0 and guard.limit - guard.offset <= extent * stride)


def _widen_guard(guard: Guard, widths: Sequence[int]) -> Guard:
    """Return a guard over elements as one over blocks of elements."""
    outer, vector = _split_stride(guard)
    scaled = tuple([stride * width for stride, width in zip(outer, widths, strict=True)])
    return guard.with_stride((scaled, _join_vectors(vector, outer)))


def _join_vectors(vector: tuple[Any, ...], blocks: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the modes of vectors of blocks: joined mode by mode; the vectors of dropped modes stay as they are."""
    if not vector:
        return blocks
    widths = iter(blocks)
    return tuple([mode if _is_dropped(mode) else (mode, next(widths)) for mode in vector])


def _is_dropped(mode: Nested[Any]) -> bool:
    """Return whether a mode of a vector is marked as belonging to a mode of the elements that a slice dropped."""
    return isinstance(mode, tuple) and len(mode) == 1


def _vectorize_nested(pair: Layout, widths: Sequence[int]) -> Any:
    """Return the same for nested modes: by composition, which may not be strided."""
    counts = product_each(pair.shape[0])
    tilers = [make_layout((ceil_div(n, width), width), (width, 1)) for n, width in zip(counts, widths, strict=True)]

    def arrange(tree: tuple[Any, Any], _: int) -> Any:
        outer, blocks = (tuple([mode[part] for mode in tree[0]]) for part in (0, 1))
        return outer, _join_vectors(tree[1], blocks)

    return compose(pair, (tuple(tilers), None))._restructure(arrange, "vectorize")


def scalars_layout(pair: PairLayout) -> Layout | Any:
    """Return the layout of all scalars: in each mode the scalars of an element, then the next element.

    >>> print(scalars_layout(vectorize_pair(pair_layout(Layout((10, 12), (12, 1))), (1, 4))))
    (10,12):(12,1)
    """

    def arrange(tree: tuple[Any, Any], _: int) -> Any:
        outer, vector = tree
        if len(outer) != len(vector):  # empty, or a slice dropped modes of the elements
            return (*outer, *vector)
        return tuple(zip(vector, outer, strict=True))

    joined = pair._restructure(arrange, "a tensor view")
    return coalesce(joined, (0,) * joined.rank)


def transpose_pair(pair: PairLayout) -> Layout | Any:
    """Return the pair with the modes of elements and of vectors in reverse.

    >>> print(transpose_pair(pair_layout(Layout((4, 8)))))
    ((8,4),()):((4,1),())
    """
    return pair._restructure(lambda tree, _: (tree[0][::-1], tree[1][::-1]), "transpose")


Kind = TypeVar("Kind", bound="View")


class View(Drawable):
    """A view of storage through a layout. `TileTensor` adds the operations."""

    __slots__ = ("__weakref__", "_extents_", "_layout", "_offset", "_pair", "_quick", "_ragged", "_store")
    _store: Store
    _offset: int
    _pair: Any  # the layout of all scalars, as a pair (elements, vector); see view_layouts
    # computed on first use
    _layout: Any
    _extents_: tuple[int, ...]
    _quick: tuple[tuple[int, ...], tuple[Any, ...], Any, Any]
    _ragged: bool

    def _view(self: Kind, pair: PairLayout, offset: int, store: Store | None = None) -> Kind:
        """Return another view of the same storage, of the same class; `offset` is added to the offsets of `pair`."""
        view = object.__new__(self.__class__)
        view._store = store or self._store
        if pair.__class__ is not Layout or pair.offset:
            pair, first = rebase(pair)
            offset += first
        view._pair = pair
        view._offset = offset
        return view

    def _check_bounds(self) -> None:
        """Raise unless storage contains every valid scalar of the view."""
        size = self._store.size
        low, high = scalar_bounds(self._pair, self._offset, size)
        if low < 0 or high >= size:
            raise LayoutError(
                f"{self.layout} covers scalars {low} to {high}, but the storage has {size} (0 to {size - 1});"
                + (f" add an offset of {-low}" if low < 0 else f" it needs {high + 1}")
            )

    def _arrange(self, block: object) -> Any:
        """Return an array in the shape of an element, in the order in which its scalars are listed."""
        return block

    def _runtime_extent(self, extent: int) -> int:
        """Return an extent that was computed at run time; a subclass may mark it as such."""
        return extent

    @property
    def layout(self) -> Layout | Any:
        """The layout of the elements.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).layout
        Layout((6, 8), (8, 1))
        """
        return self._native_layout

    @property
    def _native_layout(self) -> Any:
        """The layout of the elements, whatever a dialect's `layout` is."""
        try:
            return self._layout
        except AttributeError:
            self._layout = elements_layout(self._pair)
            return self._layout

    @property
    def _mode_layout(self) -> Any:
        """The layout of the elements with a tuple of modes, even if there is only one."""
        layout = self._native_layout
        return layout if isinstance(layout.shape, tuple) else elements_layout(self._pair)

    @property
    def element_layout(self) -> Layout | Any:
        """The layout of the scalars within an element.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[2, 2]().element_layout
        Layout((2, 2), (8, 1))
        """
        return vector_layout(self._pair)

    @property
    def element_size(self) -> int:
        """The number of scalars of an element.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().element_size
        4
        """
        return int(product(self._pair.shape[1]))

    @property
    def _vector_extents(self) -> tuple[int, ...]:
        """The extent of each mode of the scalars of an element; empty for plain scalars."""
        return tuple([int(n) for n in product_each(self._pair.shape[1])])

    @property
    def _extents(self) -> tuple[int, ...]:
        """The extent of each mode of the elements."""
        try:
            return self._extents_
        except AttributeError:
            self._extents_ = product_each(self._pair.shape[0])
            return self._extents_

    @property
    def _leaf_count(self) -> int:
        """The number of leaves of the shape."""
        return len(leaves(self._pair.shape[0]))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each mode.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).shape
        (6, 8)
        """
        return tuple([int(n) for n in self._extents])

    @property
    def strides(self) -> tuple[Any, ...]:
        """The stride of each mode in scalars; of a nested mode, a tuple.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).strides
        (8, 1)
        """
        layout = self._mode_layout
        if not isinstance(layout, Layout):
            raise LayoutError(f"{layout} is not strided")
        return tuple(layout.stride)

    @property
    def dtype(self) -> ScalarFormat:
        """The format of the scalars.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).dtype.name
        'uint8'
        """
        return self._store.format

    @property
    def offset(self) -> int:
        """The position of the first scalar of the view in storage.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[2, 2](1, 1).offset
        18
        """
        return self._offset

    @property
    def origin(self) -> object:
        """The object that holds the memory.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(2), tw.row_major(2)).origin
        bytearray(b'\\x00\\x00')
        """
        return self._store.origin

    @property
    def readonly(self) -> bool:
        """Whether the view refuses writes.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytes(2), tw.row_major(2)).readonly
        True
        """
        return self._store.readonly

    @property
    def rank(self) -> int:
        """The number of modes.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.Layout((4, (2, 3)))).rank
        2
        """
        return len(self._extents)

    ndim = rank

    @property
    def size(self) -> int:
        """The number of elements.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().size
        12
        """
        return int(product(self._pair.shape[0]))

    @property
    def is_row_major(self) -> bool:
        """Whether the layout is flat and has exactly the strides of row-major order.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, 6)).is_row_major
        True
        """
        layout = self._native_layout
        if not isinstance(layout, Layout) or self._leaf_count != self.rank:
            return False
        return tuple(leaves(layout.stride)) == tuple(leaves(suffix_product(layout.shape)))

    def _check_mode(self, number: object) -> int:
        """Return the number of a mode; raise if there is no such mode."""
        k = as_integer(number, "a mode")
        if not 0 <= k < self.rank:
            raise CoordinateError(f"a tensor of shape {self.layout.shape} has modes 0 to {self.rank - 1}, got {k}")
        return k

    @property
    def is_ragged(self) -> bool:
        """Whether part of the shape lies outside the tensor that this is a view of.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).is_ragged
        True
        """
        try:
            return self._ragged
        except AttributeError:
            self._ragged = self._pair._has_padding()
            return self._ragged

    @property
    def valid_shape(self) -> tuple[int, ...]:
        raise NotImplementedError  # computed by TileTensor, from the contents of the view
