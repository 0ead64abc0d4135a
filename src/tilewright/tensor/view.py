# SPDX-License-Identifier: Apache-2.0
"""`View`: what a tensor knows about itself: storage, layout, elements, and which part of its shape is real."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..errors import CoordinateError, LayoutError
from ..formats import ScalarFormat, int32, int64
from ..layout import ComposedLayout, Layout
from ..layout.brackets import brackets
from ..layout.integers import as_integer, is_dynamic
from ..layout.tuples import leaves, product, product_each, suffix_product
from ..showing import Shown
from . import whole
from .cutting import elements_of, has_padding, lanes_of, rebased
from .pointer import Pointer
from .reach import reach_of
from .spaces import AddressSpace
from .storage import Store

Self = TypeVar("Self", bound="View")


class _Leaves(tuple[int, ...]):
    """Numbers of the leaves; a leaf that is not there is a coordinate out of range."""

    __slots__ = ()

    def __getitem__(self, k: Any) -> Any:
        if not isinstance(k, slice) and not 0 <= as_integer(k, "a leaf") < len(self):
            raise CoordinateError(f"there is no leaf {k}: the layout has 0 to {len(self) - 1}")
        return super().__getitem__(k)


def _dim(tensor: View, fixed: tuple[Any, ...], *index: Any) -> int:
    """Return the extent of a mode: `t.dim[0]()` or `t.dim(0)`; of a nested mode, its size.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(bytearray(48), tw.row_major(6, 8))
    >>> t.dim[0](), t.dim(1)
    (6, 8)
    """
    (k,) = fixed or index
    return int(tensor._extents[tensor._mode(k)])


class View(Shown):
    """A view of storage through a layout. `TileTensor` adds the operations to what is described here.

    >>> from tilewright import TileTensor
    >>> issubclass(TileTensor, View)
    True
    """

    __slots__ = (
        "__weakref__",
        "_extents_",
        "_index_type",
        "_layout",
        "_offset",
        "_quick",
        "_ragged",
        "_store",
        "_whole",
    )
    _store: Store
    _offset: int
    _whole: Any  # the layout of all scalars, as (elements, lanes)
    _index_type: ScalarFormat | None
    # worked out when first needed, and kept
    _layout: Any
    _extents_: tuple[int, ...]
    _quick: tuple[tuple[int, ...], tuple[Any, ...], Any]
    _ragged: bool

    def _view(
        self: Self, whole_layout: Any, offset: int, index_type: ScalarFormat | None = None, store: Store | None = None
    ) -> Self:
        """Return another view of the same storage, of the same class; its offset is that of its first scalar."""
        found = object.__new__(self.__class__)
        found._store = store or self._store
        if whole_layout.__class__ is not Layout or whole_layout.offset:
            whole_layout, first = rebased(whole_layout)
            offset += first
        found._whole = whole_layout
        found._offset = offset
        found._index_type = index_type
        return found

    def _check_inside(self) -> None:
        """Raise unless storage holds every valid scalar of the view."""
        size = self._store.size
        low, high = reach_of(self._whole, self._offset, size)
        if low < 0 or high >= size:
            raise LayoutError(
                f"{self.layout} reaches scalars {low} to {high}, but the storage has {size}: 0 to {size - 1};"
                + (f" start it {-low} later" if low < 0 else f" it needs {high + 1}")
            )

    # what it is

    @property
    def layout(self) -> Any:
        """Return the layout of the elements.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).layout
        Layout((6, 8), (8, 1))
        """
        try:
            return self._layout
        except AttributeError:
            self._layout = elements_of(self._whole)
            return self._layout

    @property
    def _mode_layout(self) -> Any:
        """The layout of the elements with a tuple of modes, even if there is only one."""
        layout = self.layout
        return layout if layout.shape.__class__ is tuple else elements_of(self._whole)

    @property
    def element_layout(self) -> Any:
        """Return the layout of the scalars within an element.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[2, 2]().element_layout
        Layout((2, 2), (8, 1))
        """
        return lanes_of(self._whole)

    @property
    def element_size(self) -> int:
        """Return how many scalars an element has.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().element_size
        4
        """
        return int(product(self._whole.shape[1]))

    @property
    def _extents(self) -> tuple[int, ...]:
        """The extent of each mode of the elements."""
        try:
            return self._extents_
        except AttributeError:
            self._extents_ = product_each(self._whole.shape[0])
            return self._extents_

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extent of each mode.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).shape
        (6, 8)
        """
        return tuple([int(n) for n in self._extents])

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
        """Return how many scalars of storage lie before this view's first one.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[2, 2](1, 1).offset
        18
        """
        return self._offset

    @property
    def ptr(self) -> Pointer:
        """Return a pointer to the first scalar: the storage and the offset.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).ptr.offset
        0
        """
        return Pointer(self._store, self._offset)

    @property
    def origin(self) -> Any:
        """Return the object that holds the memory.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(2), tw.row_major(2)).origin
        bytearray(b'\\x00\\x00')
        """
        return self._store.origin

    @property
    def mut(self) -> bool:
        """Return whether the view can be written.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytes(2), tw.row_major(2)).mut
        False
        """
        return not self._store.readonly

    @property
    def readonly(self) -> bool:
        """Return whether the view refuses writes.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytes(2), tw.row_major(2)).readonly
        True
        """
        return self._store.readonly

    @property
    def address_space(self) -> AddressSpace:
        """Return the memory that the tensor lies in: a label.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(2), tw.row_major(2)).address_space
        <AddressSpace.GENERIC: 0>
        """
        return self._store.address_space

    @property
    def linear_idx_type(self) -> ScalarFormat:
        """Return the integer format that a kernel would use for offsets: a label, ours are exact.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(2), tw.row_major(2)).linear_idx_type.name
        'int32'
        """
        if self._index_type is not None:
            return self._index_type
        if self.all_dims_known and self._store.size < 2**31:
            return int32
        return int32 if self.address_space in (AddressSpace.SHARED, AddressSpace.CONSTANT) else int64

    @property
    def rank(self) -> int:
        """Return the number of modes.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.Layout((4, (2, 3)))).rank
        2
        """
        return len(self._extents)

    @property
    def flat_rank(self) -> int:
        """Return the number of leaves.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.Layout((4, (2, 3)))).flat_rank
        3
        """
        return len(leaves(self._whole.shape[0]))

    @property
    def shape_known(self) -> bool:
        """Return whether every extent is static.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, tw.Idx(6))).shape_known
        False
        """
        return not any(map(is_dynamic, leaves(self._whole.shape[0])))

    @property
    def stride_known(self) -> bool:
        """Return whether every stride is static.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(tw.Idx(4), 6)).stride_known
        True
        """
        return not any(map(is_dynamic, self._steps()))

    @property
    def all_dims_known(self) -> bool:
        """Return whether every extent and stride is static.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, 6)).all_dims_known
        True
        """
        return self.shape_known and self.stride_known

    def _steps(self) -> list[Any]:
        layout = self._whole
        while isinstance(layout, ComposedLayout):
            layout = layout.inner
        return leaves(layout.stride[0])

    @property
    def static_shape(self) -> tuple[int, ...]:
        """Return the extent of each leaf, -1 where it is dynamic.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, tw.Idx(6))).static_shape[1]
        -1
        """
        return _Leaves([-1 if is_dynamic(n) else int(n) for n in leaves(self._whole.shape[0])])

    @property
    def static_stride(self) -> tuple[int, ...]:
        """Return the stride of each leaf, -1 where it is dynamic.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, 6)).static_stride
        (6, 1)
        """
        return _Leaves([-1 if is_dynamic(step) else int(step) for step in self._steps()])

    @property
    def is_row_major(self) -> bool:
        """Return whether the layout is flat with exactly the strides of row-major order.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, 6)).is_row_major
        True
        """
        layout = self.layout
        if not isinstance(layout, Layout) or layout.flat_rank != self.rank:
            return False
        return tuple(leaves(layout.stride)) == tuple(leaves(suffix_product(layout.shape)))

    def _mode(self, k: Any) -> int:
        at = as_integer(k, "a mode")
        if not 0 <= at < self.rank:
            raise CoordinateError(
                f"there is no mode {at}: a tensor of shape {self.layout.shape} has 0 to {self.rank - 1}"
            )
        return at

    dim = brackets(_dim)

    def dynamic_stride(self, k: int) -> int:
        """Return the stride of a mode.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(24), tw.row_major(4, 6)).dynamic_stride(0)
        6
        """
        layout, at = self.layout, self._mode(k)
        step = layout.stride[at] if isinstance(layout, Layout) and isinstance(layout.shape, tuple) else None
        if step is None and isinstance(layout, Layout):
            step = layout.stride
        if step is None or isinstance(step, tuple):
            raise LayoutError(f"mode {at} of {layout} has no single stride{'' if step is None else f', but {step}'}")
        return int(step)

    def numel(self) -> int:
        """Return the number of elements, not of scalars.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().numel()
        12
        """
        return int(product(self._whole.shape[0]))

    num_elements = numel

    # what of it is real

    @property
    def is_ragged(self) -> bool:
        """Return whether part of the full shape lies outside the tensor that this is a view of.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).is_ragged
        True
        """
        try:
            return self._ragged
        except AttributeError:
            self._ragged = has_padding(self._whole)
            return self._ragged

    @property
    def valid_shape(self) -> tuple[int, ...]:
        """Return how much of each mode is valid.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).valid_shape
        (2, 4)
        """
        if not self.is_ragged:
            return self.shape
        found = whole.valid_elements(self)
        if found is None:
            raise LayoutError(f"the valid part of {self.layout} is no box; mask() shows it")
        return found

    mask = whole.mask

    @property
    def ElementType(self) -> type:  # noqa: N802  (Mojo's name)
        """Return the NumPy type of an element: a scalar, or an array for vectors.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(4), tw.row_major(2, 2)).ElementType.__name__
        'uint8'
        """
        return np.ndarray if self.element_size > 1 else self.dtype.dtype.type
