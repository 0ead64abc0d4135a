# SPDX-License-Identifier: Apache-2.0
"""`View`: the description of a tensor view: storage, layout, elements, and which part of its shape is valid."""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import CoordinateError, LayoutError
from ..formats import ScalarFormat
from ..layout import Layout
from ..layout.tuples import leaves, product, product_each, suffix_product
from ..layout.validation import as_integer
from ..showing import Shown
from .store import Store, scalar_bounds
from .view_layouts import PairLayout, elements_layout, rebase, vector_layout

Kind = TypeVar("Kind", bound="View")


class View(Shown):
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
        """Return another view of the same storage, of the same class; `offset` is added to the places of `pair`."""
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

    def _arrange(self, block: Any) -> Any:
        """Return an array in the shape of an element, in the order in which its scalars are listed."""
        return block

    def _runtime_extent(self, extent: int) -> int:
        """Return an extent that was computed at run time; a subclass may mark it as such."""
        return extent

    @property
    def layout(self) -> Any:
        """Return the layout of the elements.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).layout
        Layout((6, 8), (8, 1))
        """
        return self._core_layout

    @property
    def _core_layout(self) -> Any:
        """The layout of the elements, whatever a dialect's `layout` is."""
        try:
            return self._layout
        except AttributeError:
            self._layout = elements_layout(self._pair)
            return self._layout

    @property
    def _mode_layout(self) -> Any:
        """The layout of the elements with a tuple of modes, even if there is only one."""
        layout = self._core_layout
        return layout if isinstance(layout.shape, tuple) else elements_layout(self._pair)

    @property
    def element_layout(self) -> Any:
        """Return the layout of the scalars within an element.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[2, 2]().element_layout
        Layout((2, 2), (8, 1))
        """
        return vector_layout(self._pair)

    @property
    def element_size(self) -> int:
        """Return the number of scalars of an element.

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
        """Return the extent of each mode.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).shape
        (6, 8)
        """
        return tuple([int(n) for n in self._extents])

    @property
    def strides(self) -> tuple[Any, ...]:
        """Return the stride of each mode in scalars; of a nested mode, a tuple.

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
        """Return the format of the scalars.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).dtype.name
        'uint8'
        """
        return self._store.format

    @property
    def offset(self) -> int:
        """Return the position of the first scalar of the view in storage.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[2, 2](1, 1).offset
        18
        """
        return self._offset

    @property
    def origin(self) -> Any:
        """Return the object that holds the memory.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(2), tw.row_major(2)).origin
        bytearray(b'\\x00\\x00')
        """
        return self._store.origin

    @property
    def readonly(self) -> bool:
        """Return whether the view refuses writes.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytes(2), tw.row_major(2)).readonly
        True
        """
        return self._store.readonly

    @property
    def rank(self) -> int:
        """Return the number of modes.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.Layout((4, (2, 3)))).rank
        2
        """
        return len(self._extents)

    ndim = rank

    @property
    def size(self) -> int:
        """Return the number of elements.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().size
        12
        """
        return int(product(self._pair.shape[0]))

    @property
    def is_row_major(self) -> bool:
        """Return whether the layout is flat and has exactly the strides of row-major order.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, 6)).is_row_major
        True
        """
        layout = self._core_layout
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
        """Return whether part of the shape lies outside the tensor that this is a view of.

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
