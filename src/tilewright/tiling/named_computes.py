# SPDX-License-Identifier: Apache-2.0
"""Computes by name: what can be done to tiles without writing a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class NamedCompute:
    """A compute with a name: its function, its number of inputs, its halo, and a summary.

    >>> COMPUTES["cross"].halo
    1
    """

    function: Callable[..., None] | None
    inputs: int
    halo: int
    summary: str


def scale(x: Array, out: Array, factor: float = 2.0) -> None:
    """Write the elements times a factor.

    >>> out = np.zeros(3)
    >>> scale(np.arange(3.0), out, factor=10)
    >>> out.tolist()
    [0.0, 10.0, 20.0]
    """
    np.multiply(x, factor, out=out, dtype=_precision(x, out), casting="unsafe")


def shift(x: Array, out: Array, amount: float = 1.0) -> None:
    """Write the elements plus an amount.

    >>> out = np.zeros(3)
    >>> shift(np.arange(3.0), out, amount=10)
    >>> out.tolist()
    [10.0, 11.0, 12.0]
    """
    np.add(x, amount, out=out, dtype=_precision(x, out), casting="unsafe")


def clip(x: Array, out: Array, low: float = 0.0, high: float = 1.0) -> None:
    """Write the elements, none below low and none above high.

    >>> out = np.zeros(3)
    >>> clip(np.arange(3.0), out)
    >>> out.tolist()
    [0.0, 1.0, 1.0]
    """
    np.clip(x, low, high, out=out, casting="unsafe")


def absolute(x: Array, out: Array) -> None:
    """Write the elements without their signs.

    >>> out = np.zeros(2)
    >>> absolute(np.array([-2.0, 3.0]), out)
    >>> out.tolist()
    [2.0, 3.0]
    """
    np.absolute(x, out=out, casting="unsafe")


def add(x: Array, y: Array, out: Array) -> None:
    """Write the sum of two inputs.

    >>> out = np.zeros(2)
    >>> add(np.ones(2), np.ones(2), out)
    >>> out.tolist()
    [2.0, 2.0]
    """
    np.add(x, y, out=out, dtype=_precision(x, out), casting="unsafe")


def subtract(x: Array, y: Array, out: Array) -> None:
    """Write the first input less the second.

    >>> out = np.zeros(2)
    >>> subtract(np.ones(2), np.ones(2), out)
    >>> out.tolist()
    [0.0, 0.0]
    """
    np.subtract(x, y, out=out, dtype=_precision(x, out), casting="unsafe")


def cross(x: Array, out: Array) -> None:
    """Write the sum of every element and its nearest neighbours along each axis.

    >>> out = np.zeros((1, 1))
    >>> cross(np.ones((3, 3)), out)
    >>> out.tolist()
    [[5.0]]
    """
    inner = (slice(1, -1),) * x.ndim
    total = x[inner].astype(out.dtype)
    for axis in range(x.ndim):
        for shifted in (slice(None, -2), slice(2, None)):
            total += x[(*inner[:axis], shifted, *inner[axis + 1 :])].astype(out.dtype, copy=False)
    out[...] = total


def box(x: Array, out: Array) -> None:
    """Write the mean of every element and all its neighbours, corners included.

    >>> out = np.zeros((1, 1))
    >>> box(np.arange(9.0).reshape(3, 3), out)
    >>> out.tolist()
    [[4.0]]
    """
    total = np.zeros(out.shape, np.float64)
    for steps in product(range(3), repeat=x.ndim):
        total += x[tuple([slice(k, k + n) for k, n in zip(steps, out.shape, strict=True)])]
    np.divide(total, 3**x.ndim, out=out, casting="unsafe")


def _precision(x: Array, out: Array) -> np.dtype[Any] | None:
    """Return the type to compute in: at least as precise as a floating-point output."""
    return np.result_type(x, out) if out.dtype.kind == "f" else None


COMPUTES = {
    "copy": NamedCompute(None, 1, 0, "copy the source"),
    "scale": NamedCompute(scale, 1, 0, "multiply by factor (2)"),
    "shift": NamedCompute(shift, 1, 0, "add amount (1)"),
    "clip": NamedCompute(clip, 1, 0, "keep between low (0) and high (1)"),
    "absolute": NamedCompute(absolute, 1, 0, "drop the signs"),
    "add": NamedCompute(add, 2, 0, "add two sources"),
    "subtract": NamedCompute(subtract, 2, 0, "subtract the second source"),
    "cross": NamedCompute(cross, 1, 1, "sum with the nearest neighbours"),
    "box": NamedCompute(box, 1, 1, "mean with all neighbours"),
}
"""Computes by name, for the command line."""
