# SPDX-License-Identifier: Apache-2.0
"""Access to single scalars and arithmetic in place, as Mojo's tensors have it."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from ...errors import CoordinateError, LayoutError
from ...formats import cast, fit_values
from ...layout import as_integer
from ...tensor import Brackets, LoadBrackets, StoreBrackets, View, elements, require_writable
from ..brackets import brackets
from ..scalar_memory import read_vector, write_vector
from ..simd import SIMD, as_vector, numbers_of
from .tensor_memory import MemoryTensor, index_entries, require_one_index_per_mode

Kind = TypeVar("Kind", bound=View)


class FillBrackets(Brackets[Kind]):
    """`t.fill(7)`, or `t.fill[use_runtime_layout](7)`; see `TileTensor.fill`.

    >>> from tilewright.mojo.layout import row_major
    >>> ElementwiseTensor([0] * 2, row_major[2]()).fill[True](7).to_numpy().tolist()
    [7, 7]
    """

    __slots__ = ()
    method = "fill"

    def __getitem__(self, use_runtime_layout: bool) -> partial[Kind]:
        return partial(self, use_runtime_layout=use_runtime_layout)

    def __call__(self, val: Any, *, use_runtime_layout: bool | None = None) -> Kind:
        """Set every valid scalar to `val`; return the tensor. `use_runtime_layout` has no effect."""
        number = numbers_of(val, self._tensor._store.format)
        if np.ndim(number):
            raise LayoutError(f"fill takes one number, got {np.asarray(number).size}; copy_from takes an array")
        return elements.fill(self._tensor, number)


class _LoadBrackets(LoadBrackets[Kind]):
    """`t.load(2, 3)`, `t.load[4](2, 3)`: SIMD."""

    __slots__ = ()

    def __call__(
        self,
        *index: Any,
        coord: Any = None,
        width: Any = None,
        alignment: Any = None,
        load_alignment: Any = None,
        fill: Any = None,
        invariant: Any = False,
        non_temporal: Any = False,
        linear_idx_type: Any = None,
    ) -> Any:
        """Return the element at the index `coord`, or `width` scalars from there on; the last three have no effect."""
        entries = index_entries(self.method, index, coord)
        step = alignment if load_alignment is None else load_alignment
        numbers = as_vector(super().__call__(*entries, width=width, alignment=step, fill=fill))
        if width is not None and numbers.size == 1:
            numbers.value = numbers.array  # a vector of one, as it was asked for
        return numbers


class _StoreBrackets(StoreBrackets[Kind]):
    """`t.store((1, 0), x)`; a vector that is longer than an element is written to the scalars from there on."""

    __slots__ = ()

    def __call__(
        self,
        *index_and_value: Any,
        coord: Any = None,
        value: Any = None,
        width: Any = None,
        alignment: Any = None,
        store_alignment: Any = None,
        fill: Any = None,
        non_temporal: Any = False,
    ) -> None:
        """Write `value` to the element at `coord`, or to `width` scalars from there on: one number goes to all."""
        given = index_and_value if value is None else (*index_and_value, value)
        if not given:
            raise TypeError("store takes an index and a value: t.store(Coord(1, 2), value)")
        *index, number = given
        tensor, entries = self._tensor, index_entries(self.method, tuple(index), coord)
        require_one_index_per_mode(tensor, entries)
        if width is None and isinstance(number, SIMD) and number.size > tensor.element_size:
            width = number.size
        scalars = numbers_of(number, tensor._store.format)
        if width is not None and np.asarray(scalars).size == 1:
            scalars = np.full(as_integer(width, "a width"), scalars)
        step = alignment if store_alignment is None else store_alignment
        super().__call__(entries, scalars, width=width, alignment=step, fill=fill)


def named_index(index: tuple[Any, ...], m: Any, n: Any, coords: Any) -> tuple[Any, ...]:
    """Return an index whose entries may have the names of the older tensors, `m` and `n` or `coords`.

    >>> named_index((), 1, 2, None)
    (1, 2)
    """
    return (*index, *[entry for entry in (m, n, coords) if entry is not None])


class LegacyLoadBrackets(_LoadBrackets[Kind]):
    """`t.load[4](m=1, n=0)`: the names that an index of the older tensors has."""

    __slots__ = ()

    def __call__(self, *index: Any, m: Any = None, n: Any = None, coords: Any = None, **options: Any) -> Any:
        """Return the element at an index, or scalars from there on."""
        return super().__call__(*named_index(index, m, n, coords), **options)


class LegacyStoreBrackets(_StoreBrackets[Kind]):
    """`t.store[4](m=1, n=0, val=x)`: the names of the older tensors."""

    __slots__ = ()

    def __call__(
        self,
        *index_and_value: Any,
        m: Any = None,
        n: Any = None,
        coords: Any = None,
        val: Any = None,
        **options: Any,
    ) -> None:
        """Write the element at an index, or a vector from there on."""
        given = index_and_value if val is None else (*index_and_value, val)
        super().__call__(*given[:-1], *named_index((), m, n, coords), *given[-1:], **options)


class ElementwiseTensor(MemoryTensor):
    """A view of memory with loads and stores of scalars, and arithmetic in place.

    >>> from tilewright.mojo.layout import row_major
    >>> ElementwiseTensor([-1, 5], row_major[2]()).abs().to_numpy().tolist()
    [1, 5]
    """

    __slots__ = ()
    tiles_logically: ClassVar[bool] = False  # else nested modes are tiled by their leaves

    # Elements.

    @property
    def load(self: Kind) -> LoadBrackets[Kind]:
        """Return the element at an index, `t.load(2, 3)`, or scalars from there on, `t.load[4](2, 3)`: SIMD.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]()).load[2](1, 0)
        SIMD[DType.int64, 2](2, 3)
        """
        return _LoadBrackets(self)

    @property
    def store(self: Kind) -> StoreBrackets[Kind]:
        """Write the element at an index, or a vector from there on: `t.store((1, 0), x)`, `t.store[4]((1, 0), v)`.

        >>> from tilewright.mojo.layout import row_major
        >>> t = ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]())
        >>> t.store((1, 0), SIMD(8, 9))
        >>> t.to_numpy().tolist()
        [[0, 1], [8, 9]]
        """
        return _StoreBrackets(self)

    @brackets
    def load_linear(self, parameters: tuple[Any, ...], *index: Any, width: Any = None, **options: Any) -> Any:
        """Return the element at `index` of a flat layout, or `load_linear[width](index)` scalars: the same as `load`.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]()).load_linear(1, 0)
        Int64(2)
        """
        count = (*parameters, width)[0]
        require_one_index_per_mode(self, index_entries("load_linear", index))
        return self.load(*index, **options) if count is None else self.load[count](*index, **options)

    @brackets
    def store_linear(
        self, parameters: tuple[Any, ...], *index_and_value: Any, width: Any = None, **options: Any
    ) -> None:
        """Write the element at an index of a flat layout, or a vector from there on: the same as `store`.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]()).store_linear((1, 0), 9)
        """
        count = (*parameters, width)[0]
        method = self.store if count is None else self.store[count]
        method(*index_and_value, **options)

    @brackets
    def raw_load(self, parameters: tuple[Any, ...], offset: Any, *, width: Any = 1, **_: Any) -> Any:
        """Return scalars from `offset` after the first one of the view, whatever the layout: `raw_load[width](offset)`.

        >>> from tilewright.mojo.layout import col_major
        >>> ElementwiseTensor(list(range(8)), col_major[2, 4]()).raw_load[2](5).tolist()
        [5, 6]
        """
        place, count = self._raw_range((*parameters, width)[0], offset)
        return read_vector(self._store, place, count)

    @brackets
    def raw_store(self, parameters: tuple[Any, ...], offset: Any, value: Any, *, width: Any = None, **_: Any) -> None:
        """Write scalars from `offset` after the first one of the view on, whatever the layout.

        >>> from tilewright.mojo.layout import row_major
        >>> t = ElementwiseTensor([0] * 4, row_major[2, 2]())
        >>> t.raw_store[2](1, [5, 6])
        >>> t.to_numpy().tolist()
        [[0, 5], [6, 0]]
        """
        require_writable(self)
        scalars = fit_values(numbers_of(value, self._store.format), self._store.format).reshape(-1)
        place, count = self._raw_range((*parameters, width, scalars.size)[0] or scalars.size, offset)
        if scalars.size != count:
            raise LayoutError(f"raw_store with width {count} takes {count} scalars, got {scalars.size}")
        write_vector(self._store, place, scalars)

    def _raw_range(self, width: Any, offset: Any) -> tuple[int, int]:
        """Return (place, width) of scalars in storage, after checking them."""
        place, count = self.offset + as_integer(offset, "an offset"), as_integer(width, "a width")
        if count < 1 or place < 0 or place + count > self._store.size:
            raise CoordinateError(f"scalars {place} to {place + count - 1} exceed the storage of {self._store.size}")
        return place, count

    # Arithmetic in place.

    @property
    def fill(self: Kind) -> FillBrackets[Kind]:  # type: ignore[override]
        """Set every valid scalar to a value of the tensor's type; return the tensor: `t.fill(7)`.

        `use_runtime_layout`, in brackets or parentheses, has no effect: it says how Mojo compiles the loop.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0] * 4, row_major[2, 2]()).fill(7).to_numpy().tolist()
        [[7, 7], [7, 7]]
        """
        return FillBrackets(self)

    @brackets
    def exp(self, parameters: tuple[Any, ...], scale: float = 1) -> Any:
        """Replace every element x by exp(`scale` * x): `t.exp[scale]()`, 1 without brackets; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0.0, 0.0], row_major[2]()).exp[2.0]().to_numpy().tolist()
        [1.0, 1.0]
        """
        values = self.to_numpy(copy=None)
        factor = parameters[0] if parameters else scale
        # in double precision, then rounded, as for scalars
        exact = np.exp(values.astype(np.float64) * float(factor))
        return self._assign(cast(exact, self._store.format))

    def min(self, other: Any) -> Any:
        """Replace every element by the smaller of itself and `other`; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([1, 5], row_major[2]()).min(3).to_numpy().tolist()
        [1, 3]
        """
        return _apply_in_place(np.minimum, self, other)

    def max(self, other: Any) -> Any:
        """Replace every element by the larger of itself and `other`; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([1, 5], row_major[2]()).max(3).to_numpy().tolist()
        [3, 5]
        """
        return _apply_in_place(np.maximum, self, other)

    def abs(self) -> Any:
        """Replace every element by its absolute value; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([-1, 5], row_major[2]()).abs().to_numpy().tolist()
        [1, 5]
        """
        return _apply_in_place(np.absolute, self)

    def recip(self) -> Any:
        """Replace every element by its reciprocal; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([2.0, 4.0], row_major[2]()).recip().to_numpy().tolist()
        [0.5, 0.25]
        """
        values = self.to_numpy(copy=None)
        return self._assign(values.dtype.type(1) / values)


def _apply_in_place(ufunc: Any, tensor: ElementwiseTensor, *operands: Any) -> Any:
    """Return the tensor after a NumPy function of it was written over it."""
    return ufunc(tensor, *operands, out=(tensor,))
