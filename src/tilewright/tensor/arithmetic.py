# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on tensors, done by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LayoutError
from .contents import to_numpy, write_elements
from .element_access import require_writable
from .view import View


def _as_operand(value: Any) -> Any:
    """Return a tensor as an array, anything else as it is."""
    tensor: Any = value
    return to_numpy(tensor, copy=None) if isinstance(value, Arithmetic) else value


def _as_operand_in_place(value: Any, target: Any) -> Any:
    """Return an operand of an in-place operation: a tensor of rank 1 is broadcast along mode 0 of one of rank 2."""
    operand = _as_operand(value)
    if isinstance(value, Arithmetic) and value is not target:
        shape = to_numpy(target, copy=None).shape
        if operand.ndim == 1 and len(shape) == 2 and operand.shape[0] == shape[0]:
            return operand[:, None]
        if operand.shape != shape:
            raise LayoutError(
                f"an in-place operation needs equal shapes, or a tensor of rank 1 along mode 0: got {operand.shape} for"
                f" {shape}; t.to_numpy() broadcasts as NumPy does"
            )
    return operand


class Arithmetic(np.lib.mixins.NDArrayOperatorsMixin):
    """The operators of a tensor. Results are new tensors in row-major order; comparisons return arrays of bools.

    `a + b` broadcasts as NumPy does. `a += b` needs equal shapes, or a tensor of rank 1 that is broadcast along mode 0
    of a tensor of rank 2; arrays and numbers broadcast as in NumPy.

    >>> import tilewright as tw
    >>> a = tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))
    >>> (a * 10 + a).to_numpy().tolist(), (a == a.transpose()).tolist()
    ([[11, 22], [33, 44]], [[True, False], [False, True]])
    >>> a += tw.TileTensor([10, 20], tw.row_major(2))
    >>> a.to_numpy().tolist()
    [[11, 12], [23, 24]]
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if out is None:
            result = getattr(ufunc, method)(*[_as_operand(value) for value in inputs], **options)
            wrap = method == "__call__" and isinstance(result, np.ndarray) and result.ndim and result.dtype != bool
            return self._new_tensor(result) if wrap else result
        target = out[0]
        if method != "__call__" or not isinstance(target, Arithmetic):
            return NotImplemented
        result = np.asarray(ufunc(*[_as_operand_in_place(value, target) for value in inputs], **options))
        return target._assign(result)

    def _new_tensor(self, values: Any) -> View:
        raise NotImplementedError

    def _assign(self: Any, values: Any) -> Any:
        """Write an array of its shape over the tensor; return the tensor."""
        require_writable(self)
        dtype = self._store.format.dtype
        if values.dtype != dtype and not np.can_cast(values.dtype, dtype, "same_kind"):
            raise LayoutError(
                f"cannot store a result of {values.dtype} in a tensor of {dtype} without loss; use //= for integers, or"
                " compute out of place"
            )
        shape = to_numpy(self, copy=None).shape
        if values.shape != shape:
            raise LayoutError(f"a result of shape {values.shape} does not fit a tensor of shape {shape}")
        write_elements(self, values)
        return self
