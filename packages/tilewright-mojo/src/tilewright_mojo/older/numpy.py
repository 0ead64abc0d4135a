# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.numpy`: tensors over the memory of arrays, and arrays with the values of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import LayoutError
from tilewright.mojo.brackets import brackets
from tilewright.mojo.layout import TileTensor, row_major
from tilewright.mojo.layout.tile_layout import make_dynamic_layout
from tilewright.mojo.simd import scalar_format


@brackets
def from_numpy(parameters: tuple[Any, ...], array: object, *, dtype: object = None, rank: object = None) -> TileTensor:
    """`from_numpy[dtype, rank](array)`: a tensor over the memory of an array in row-major order.

    >>> import numpy as np
    >>> from_numpy["int64", 2](np.zeros((2, 3), np.int64)).dim(1)
    3
    """
    values = np.asarray(array)
    kind, count = (*parameters, *[value for value in (dtype, rank) if value is not None], None, None)[:2]
    if kind is not None and scalar_format(kind).dtype != values.dtype:
        raise LayoutError(f"expected an array of {scalar_format(kind)}, got {values.dtype}; convert it first")
    if count is not None and int(count) != values.ndim:
        raise LayoutError(f"expected an array of rank {int(count)}, got rank {values.ndim}")
    if not values.flags.c_contiguous:
        raise LayoutError(f"expected an array in row-major order without gaps, got strides {values.strides}")
    return TileTensor(values, make_dynamic_layout(row_major[values.shape]()))


def to_numpy(tensor: TileTensor) -> Any:
    """Return a new array with the values of a tensor.

    >>> to_numpy(TileTensor([1, 2, 3, 4], row_major[2, 2]())).tolist()
    [[1, 2], [3, 4]]
    """
    return tensor.to_numpy()
