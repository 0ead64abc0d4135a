# SPDX-License-Identifier: Apache-2.0
"""Functions of tensors in Mojo's package `layout`: reductions, fillers, copies, and arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tilewright.errors import LayoutError
from tilewright.formats import cast
from tilewright.mojo import DType, MojoValue, Scalar, brackets
from tilewright.mojo.layout import TileTensor, row_major
from tilewright.tensor import Scalars

from ..library.numbers import random_float64


def _as_result(values: Any, tensor: object) -> Any:
    """Return an array as a tensor of the same class, a number as a scalar."""
    if np.ndim(values) == 0:
        return Scalar[values.dtype](values.item())
    kind = type(tensor) if isinstance(tensor, TileTensor) else TileTensor
    return kind(np.ascontiguousarray(values))


def _reduce(
    reduce: Callable[..., Any],
    parameters: tuple[Any, ...],
    tensor: Any,
    target: tuple[Any, ...],
    axis: object = None,
    **options: Any,
) -> Any:
    """Return a function of a tensor along an axis, in brackets or not, or write it to `target` if it is given."""
    mode = (*parameters, axis)[0]
    if target and not isinstance(target[0], TileTensor):
        mode, target = target[0], target[1:]
    values = tensor.to_numpy()
    result = np.asarray(reduce(values, None if mode is None else int(mode), **options))
    if not target:
        return _as_result(result.astype(values.dtype), tensor)
    TileTensor.copy_from(target[0], result.astype(values.dtype).reshape(target[0].shape))
    return None


def _sum(values: np.ndarray, axis: int | None) -> Any:
    return np.sum(values, axis=axis, dtype=values.dtype)


@brackets
def sum(parameters: tuple[Any, ...], tensor: object, *target: Any, **options: Any) -> MojoValue:  # noqa: A001
    """`sum(tensor)`, `sum[axis=0](tensor)`, `sum[axis=0](tensor, result)`: the sum of elements.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> sum(stack_allocation["int32"](row_major[2, 3]()).fill(2))
    Int32(12)
    """
    return _reduce(_sum, parameters, tensor, target, **options)


@brackets
def max(parameters: tuple[Any, ...], tensor: Any, *others: Any, **options: Any) -> MojoValue:  # noqa: A001
    """`max(tensor)`, `max[axis=0](tensor)`: the largest element; `max(a, b)`: element by element.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> max(stack_allocation["int32"](row_major[2, 3]()).fill(2))
    Int32(2)
    """
    if not parameters and not options and others and isinstance(others[0], TileTensor):
        result = tensor._stack_copy() if hasattr(tensor, "_stack_copy") else _as_result(tensor.to_numpy(), tensor)
        return result.max(others[0])
    return _reduce(lambda values, axis: np.max(values, axis=axis), parameters, tensor, others, **options)


@brackets
def mean(parameters: tuple[Any, ...], tensor: object, *target: Any, **options: Any) -> MojoValue:
    """`mean(tensor)`, `mean[axis=0](tensor, result)`: the mean of elements.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> mean(stack_allocation["float32"](row_major[2, 3]()).fill(2))
    Float32(2.0)
    """
    return _reduce(lambda values, axis: np.mean(values, axis=axis), parameters, tensor, target, **options)


def _variance(values: np.ndarray, axis: int | None, correction: int = 1) -> Any:
    return np.var(values, axis=axis, ddof=correction)


@brackets
def variance(parameters: tuple[Any, ...], tensor: object, *target: Any, **options: Any) -> MojoValue:
    """`variance(tensor, correction=1)`: the variance of elements; 1 is for a sample.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> variance(stack_allocation["float32"](row_major[2, 3]()).fill(2))
    Float32(0.0)
    """
    return _reduce(_variance, parameters, tensor, target, **options)


def outer_product_acc(res: Any, lhs: Any, rhs: Any) -> None:
    """Add the outer product of two vectors to a matrix.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> matrix, vector = (stack_allocation["int32"](layout).fill(2) for layout in (row_major[2, 2](), row_major[2]()))
    >>> outer_product_acc(matrix, vector, vector)
    >>> matrix[0, 0]
    Int32(6)
    """
    values = res.to_numpy()
    TileTensor.copy_from(res, values + np.multiply.outer(lhs.to_numpy(), rhs.to_numpy()).astype(values.dtype))


def _fill_in_order(tensor: Any, numbers: Any) -> None:
    """Write numbers to the valid scalars of a tensor, the last mode fastest."""
    scalars = Scalars.of(tensor)
    shape = scalars.valid or scalars.extents
    scalars.write(cast(np.asarray(numbers(prod(shape))), tensor.dtype).reshape(shape))


@brackets
def arange(parameters: tuple[Any, ...], tensor: object, start: Any = 0, step: Any = 1, end: Any = None) -> None:
    """`arange(tensor, start=0, step=1, end=None)`: consecutive numbers, starting again at `end`.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> t = LayoutTensor([0.0] * 4, Layout.col_major(2, 2))
    >>> arange(t)
    >>> t.to_numpy().tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """

    def numbers(count: int) -> np.ndarray:
        values = float(start) + float(step) * np.arange(count)
        return values if end is None else np.mod(values, float(end))

    _fill_in_order(tensor, numbers)


@brackets
def random(parameters: tuple[Any, ...], tensor: object, min: object = 0, max: object = 1) -> None:  # noqa: A002
    """`random(tensor, min=0, max=1)`: random numbers.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> random(LayoutTensor([0.0] * 4, Layout.col_major(2, 2)))
    """
    _fill_in_order(tensor, lambda count: np.array([random_float64(min, max).item() for _ in range(count)]))


@brackets
def from_numpy(parameters: tuple[Any, ...], array: object, *, dtype: object = None, rank: object = None) -> TileTensor:
    """`from_numpy[dtype, rank](array)`: a tensor over the memory of an array in row-major order.

    >>> import numpy as np
    >>> from_numpy["int64", 2](np.zeros((2, 3), np.int64)).dim(1)
    3
    """
    values = np.asarray(array)
    kind, count = (*parameters, *[value for value in (dtype, rank) if value is not None], None, None)[:2]
    if kind is not None and DType.of(kind).dtype != values.dtype:
        raise LayoutError(f"expected an array of {DType.of(kind)}, got {values.dtype}; convert it first")
    if count is not None and int(count) != values.ndim:
        raise LayoutError(f"expected an array of rank {int(count)}, got rank {values.ndim}")
    if not values.flags.c_contiguous:
        raise LayoutError(f"expected an array in row-major order without gaps, got strides {values.strides}")
    return TileTensor(values, row_major[values.shape]().make_dynamic())


def to_numpy(tensor: TileTensor) -> np.ndarray:
    """Return a new array with the values of a tensor.

    >>> to_numpy(TileTensor([1, 2, 3, 4], row_major[2, 2]())).tolist()
    [[1, 2], [3, 4]]
    """
    return tensor.to_numpy()


def copy(target: TileTensor, source: TileTensor, fill: Any = 0) -> TileTensor:
    """Copy `source` into `target`, and `fill` where a ragged source is not valid; return `target`.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> tile, big = stack_allocation["int8"](row_major[2, 2]()), stack_allocation["int8"](row_major[3, 3]()).fill(7)
    >>> copy(tile, big.tile[2, 2](1, 1)).to_numpy().tolist()
    [[7, 0], [0, 0]]
    """
    return target.copy_from(source, fill=fill)
