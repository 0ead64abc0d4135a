# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout._fillers`: tensors filled with consecutive or random numbers, in row-major order."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright.formats import cast
from tilewright.mojo.brackets import brackets
from tilewright.tensor import Scalars

from ..library.numbers import random_float64


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

    def numbers(count: int) -> Any:
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
