# SPDX-License-Identifier: Apache-2.0
"""`ndarray`: an array with indexing, operators and the functions of whole arrays as methods."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import isnan, prod
from typing import Any

from .array_indices import get_elements, nonzero, repeat_elements, set_elements
from .array_memory import ArrayMemory
from .number_types import ARRAY_CLASS, BOOL, FLOAT64, INT64, dtype, generic, uint64
from .operators import UFUNCS, NDArrayOperatorsMixin


class ndarray(ArrayMemory, NDArrayOperatorsMixin):
    """An array of numbers of one type, or of Python objects."""

    __slots__ = ()
    __array_priority__ = 0.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*inputs, **options)

    # Elements.

    def _contiguous_cells(self) -> Any:
        """Return the elements of one dimension as a memoryview, or None where Python has no such elements."""
        kind = self.dtype
        if self._cells is None and len(self.shape) == 1 and self.shape[0]:
            is_plain = kind.kind in "iufb" and kind.code is None and kind.isnative
            if is_plain and self.is_contiguous:
                self._cells = self.memory[self.start : self.start + self.nbytes].cast(kind.packing)
        return self._cells

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is int:  # often, so at once
            cells = self._contiguous_cells()
            if cells is not None and -len(cells) <= index < len(cells):
                return self.dtype.wrap(cells[index])
        return get_elements(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if index.__class__ is int and self.writeable and isinstance(value, (int, float)):
            cells = self._contiguous_cells()
            if cells is not None and -len(cells) <= index < len(cells):
                cells[index] = self.dtype.unpack(self.dtype.pack([value]))[0]
                return
        set_elements(self, index, value)

    def item(self, *index: Any) -> Any:
        """Return one element as Python's number; without an index, the only one."""
        if index:
            chosen = self.reshape(-1)[index[0]] if len(index) == 1 and self.ndim != 1 else self[index]
            return chosen.item() if isinstance(chosen, generic) else chosen
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.values()[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return map(self.__getitem__, range(self.shape[0]))

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form else str(self)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def fill(self, value: Any) -> None:
        """Set every element to a value."""
        self[...] = value

    def take(self, indices: Any, axis: int | None = None) -> Any:
        """Return the elements at indices along an axis."""
        if axis is None:
            return self.reshape(-1)[indices]
        return self[(*[slice(None)] * (axis % self.ndim), indices)]

    nonzero, repeat = nonzero, repeat_elements

    # Reductions.

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Return the sum of the elements."""
        return reduce_axes(self, sum, sum_type(self.dtype, dtype), axis, keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Return the product of the elements."""
        return reduce_axes(self, prod, sum_type(self.dtype, dtype), axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
        """Return the smallest element, or NaN if there is one."""
        return reduce_axes(_choose(self, where, initial), _with(_lowest, initial), self.dtype, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
        """Return the largest element, or NaN if there is one."""
        return reduce_axes(_choose(self, where, initial), _with(_highest, initial), self.dtype, axis, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return whether an element is not 0."""
        return reduce_axes(self, any, BOOL, axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return whether no element is 0."""
        return reduce_axes(self, all, BOOL, axis, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Return the mean of the elements."""
        return reduce_axes(self, _mean, _mean_type(self.dtype), axis, keepdims)

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Return the variance of the elements."""
        return reduce_axes(self, lambda part: _variance(part, ddof), _mean_type(self.dtype), axis, keepdims)

    def argmin(self, axis: int | None = None) -> Any:
        """Return the place of the first smallest element."""
        return reduce_axes(self, lambda part: part.index(min(part)), INT64, axis, False)

    def argmax(self, axis: int | None = None) -> Any:
        """Return the place of the first largest element; NaN is larger than all."""
        return reduce_axes(self, _find_highest, INT64, axis, False)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return the sums of the elements up to each one."""
        kind = sum_type(self.dtype, dtype)
        return along_axis(self, lambda part: list(accumulate(part)), kind, axis)

    def argsort(self, axis: int = -1, kind: str | None = None) -> Any:
        """Return the places of the elements in ascending order; equal ones stay in their order."""
        return along_axis(self, lambda part: sorted(range(len(part)), key=_sort_keys(part).__getitem__), INT64, axis)

    def sort(self, axis: int = -1, kind: str | None = None) -> None:
        """Sort the elements in place."""
        self[...] = along_axis(self, lambda part: sorted(part, key=_sort_key(part)), self.dtype, axis)

    def searchsorted(self, values: Any, side: str = "left") -> Any:
        """Return where values would be inserted to keep ascending elements in order."""
        wanted = ndarray.of(values)
        bisect, ordered = bisect_left if side == "left" else bisect_right, self.values()
        places = [bisect(ordered, value) for value in wanted.values()]
        return ndarray.from_values(places, INT64, wanted.shape).scalar_or_self()

    def __matmul__(self, other: Any) -> Any:
        a, b = self, ndarray.of(other)
        left, right = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        product = (left[..., :, :, None] * right[..., None, :, :]).sum(axis=-2, dtype=(a * b.reshape(-1)[0]).dtype)
        if a.ndim == 1:
            product = product[..., 0, :]
        return product[..., 0].scalar_or_self() if b.ndim == 1 else product

    def clip(self, low: Any = None, high: Any = None) -> Any:
        """Return the elements, none below `low` or above `high`."""
        result = self if low is None else UFUNCS["maximum"](self, low)
        return result if high is None else UFUNCS["minimum"](result, high)

    def round(self, decimals: int = 0) -> Any:
        """Return the elements rounded to a number of decimals."""
        if self.dtype.kind in "iub":
            return self.copy()
        return UFUNCS["rint"](self * 10**decimals) / 10**decimals


ARRAY_CLASS["ndarray"] = ndarray


def reduce_axes(source: ArrayMemory, function: Callable[..., Any], kind: dtype, axis: Any, keepdims: bool) -> Any:
    """Return a function of the lists of elements along some axes: all if `axis` is None."""
    rank = source.ndim
    axes = (
        range(rank)
        if axis is None or not rank
        else [each % rank for each in (axis if isinstance(axis, tuple) else (axis,))]
    )
    if len(axes) == rank:
        values = source.values() if list(axes) == sorted(axes) else source.transpose(tuple(axes)).values()
        result = ndarray.from_values([function(values)], kind, (1,) * rank if keepdims else ())
        return result.scalar_or_self()
    others = [k for k in range(rank) if k not in axes]
    shape = [source.shape[k] for k in others]
    values = source.transpose((*others, *axes)).values()
    length = prod([source.shape[k] for k in axes])
    parts = [values[k * length : (k + 1) * length] for k in range(prod(shape))]
    if keepdims:
        shape = [1 if k in axes else extent for k, extent in enumerate(source.shape)]
    return ndarray.from_values([function(part) for part in parts], kind, shape)


def along_axis(source: ArrayMemory, function: Callable[[list[Any]], list[Any]], kind: dtype, axis: int | None) -> Any:
    """Return a function of each list of elements along an axis, in the same shape; of all if `axis` is None."""
    if axis is None or source.ndim <= 1:
        values = function(source.values())
        return ndarray.from_values(values, kind, (len(values),))
    last = source.swapaxes(axis, -1)
    values, length = last.values(), last.shape[-1]
    rows = [function(values[k : k + length]) for k in range(0, len(values), length)] if length else []
    return ndarray.from_values([value for row in rows for value in row], kind, last.shape).swapaxes(axis, -1)


def _choose(source: ndarray, where: Any, initial: Any) -> ndarray:
    """Return an array with the initial value of a reduction where a mask does not hold."""
    if where is None:
        return source
    result = source.copy()
    result[~ndarray.of(where)] = initial
    return result


def _with(function: Callable[[list[Any]], Any], initial: Any) -> Callable[[list[Any]], Any]:
    return function if initial is None else lambda part: function([*part, type(part[0] if part else initial)(initial)])


def sum_type(kind: dtype, wanted: Any) -> dtype:
    if wanted is not None:
        return dtype(wanted)
    if kind.kind == "u":
        return uint64._dtype  # type: ignore[no-any-return]
    return INT64 if kind.kind in "ib" else kind


def _mean_type(kind: dtype) -> dtype:
    return FLOAT64 if kind.kind in "iub" else kind


def _mean(part: list[Any]) -> float:
    return sum(part) / len(part) if part else float("nan")


def _variance(part: list[Any], ddof: int) -> float:
    middle = _mean(part)
    count = len(part) - ddof
    return sum([(value - middle) ** 2 for value in part]) / count if count > 0 else float("nan")


def _require_elements(part: list[Any]) -> None:
    if not part:
        raise ValueError("zero-size array to a reduction operation which has no identity")


def _first_nan(part: list[Any]) -> Any:
    if isinstance(part[0], float):
        return next((value for value in part if isnan(value)), None)
    return None


def _lowest(part: list[Any]) -> Any:
    _require_elements(part)
    missing = _first_nan(part)
    return min(part) if missing is None else missing


def _highest(part: list[Any]) -> Any:
    _require_elements(part)
    missing = _first_nan(part)
    return max(part) if missing is None else missing


def _find_highest(part: list[Any]) -> int:
    _require_elements(part)
    return part.index(_highest(part))


def _sort_key(part: list[Any]) -> Callable[[Any], Any] | None:
    """Return what puts NaN behind all other numbers; nothing is needed where there is none."""
    return (lambda value: (value != value, value)) if part and isinstance(part[0], float) else None


def _sort_keys(part: list[Any]) -> list[Any]:
    key = _sort_key(part)
    return part if key is None else list(map(key, part))
