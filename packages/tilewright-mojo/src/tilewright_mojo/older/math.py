# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.math`: reductions along a mode, and products of vectors, done by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.mojo.brackets import brackets
from tilewright.mojo.layout import TileTensor
from tilewright.mojo.simd import as_vector
from tilewright.tensor import elements


def _as_result(values: Any, tensor: object) -> Any:
    """Return an array as a tensor of the same class, a number as a scalar."""
    if np.ndim(values) == 0:
        return as_vector(values)
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
    elements.copy_from(target[0], result.astype(values.dtype).reshape(target[0].shape))
    return None


def _sum(values: np.ndarray, axis: int | None) -> Any:
    return np.sum(values, axis=axis, dtype=values.dtype)


@brackets
def sum(parameters: tuple[Any, ...], tensor: object, *target: Any, **options: Any) -> Any:  # noqa: A001
    """`sum(tensor)`, `sum[axis=0](tensor)`, `sum[axis=0](tensor, result)`: the sum of elements.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> sum(stack_allocation["int32"](row_major[2, 3]()).fill(2))
    Int32(12)
    """
    return _reduce(_sum, parameters, tensor, target, **options)


@brackets
def max(parameters: tuple[Any, ...], tensor: Any, *others: Any, **options: Any) -> Any:  # noqa: A001
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
def mean(parameters: tuple[Any, ...], tensor: object, *target: Any, **options: Any) -> Any:
    """`mean(tensor)`, `mean[axis=0](tensor, result)`: the mean of elements.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> mean(stack_allocation["float32"](row_major[2, 3]()).fill(2))
    Float32(2.0)
    """
    return _reduce(lambda values, axis: np.mean(values, axis=axis), parameters, tensor, target, **options)


def _variance(values: np.ndarray, axis: int | None, correction: int = 1) -> Any:
    return np.var(values, axis=axis, ddof=correction)


@brackets
def variance(parameters: tuple[Any, ...], tensor: object, *target: Any, **options: Any) -> Any:
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
    elements.copy_from(res, values + np.multiply.outer(lhs.to_numpy(), rhs.to_numpy()).astype(values.dtype))
