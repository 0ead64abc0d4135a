# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.math`: reductions along a mode, done by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tile_tensor import TileTensor

__all__ = ["max", "mean", "sum", "variance"]


def _as_tensor(values: Any) -> Any:
    """Return an array as a tensor, a number as it is."""
    return TileTensor(np.ascontiguousarray(values)) if np.ndim(values) else values


def sum(tensor: TileTensor, axis: int | None = None) -> Any:  # noqa: A001
    """Return the sum of all elements of `tensor`, or along the mode `axis`.

    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> int(sum(stack_allocation["int32"](row_major[2, 3]()).fill(2)))
    12
    """
    values = tensor.to_numpy()
    return _as_tensor(np.sum(values, axis=axis, dtype=values.dtype))


def max(tensor: TileTensor, axis: int | None = None) -> Any:  # noqa: A001
    """Return the largest element of `tensor`, or along the mode `axis`.

    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> int(max(stack_allocation["int32"](row_major[2, 3]()).fill(2)))
    2
    """
    return _as_tensor(np.max(tensor.to_numpy(), axis=axis))


def mean(tensor: TileTensor, axis: int | None = None) -> Any:
    """Return the mean of all elements of `tensor`, or along the mode `axis`.

    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> float(mean(stack_allocation["float32"](row_major[2, 3]()).fill(2)))
    2.0
    """
    return _as_tensor(np.mean(tensor.to_numpy(), axis=axis))


def variance(tensor: TileTensor, axis: int | None = None, correction: int = 1) -> Any:
    """Return the variance of all elements of `tensor`, or along the mode `axis`; `correction` is 1 for a sample.

    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> float(variance(stack_allocation["float32"](row_major[2, 3]()).fill(2)))
    0.0
    """
    return _as_tensor(np.var(tensor.to_numpy(), axis=axis, ddof=correction))
