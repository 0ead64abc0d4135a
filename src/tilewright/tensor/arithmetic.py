# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on tensors, done by NumPy: out of place by NumPy's rules, in place by Mojo's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LayoutError
from ..layout.brackets import brackets
from .access import require_writable
from .whole import from_elements, to_numpy

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def _operand(value: Any) -> Any:
    tensor: Any = value
    return to_numpy(tensor, copy=None) if isinstance(value, Arithmetic) else value


def _in_place(ufunc: Any, tensor: Any, *others: Any) -> Any:
    return ufunc(tensor, *others, out=(tensor,))


def _against(value: Any, target: Any) -> Any:
    """Return an operand of an operation in place: a tensor of rank 1 goes along mode 0 of one of rank 2."""
    found = _operand(value)
    if isinstance(value, Arithmetic) and value is not target:
        shape = to_numpy(target, copy=None).shape
        if found.ndim == 1 and len(shape) == 2 and found.shape[0] == shape[0]:
            return found[:, None]
        if found.shape != shape:
            raise LayoutError(
                f"an operation in place needs equal shapes, or a tensor of rank 1 along mode 0: got {found.shape} for"
                f" {shape}; t.to_numpy() follows NumPy's rules"
            )
    return found


def _exp(tensor: Any, fixed: tuple[Any, ...]) -> Any:
    """Return the tensor after every element x became exp(scale * x): `t.exp[scale]()`, scale 1 without brackets.

    >>> import tilewright as tw
    >>> tw.TileTensor([0.0, 0.0], tw.row_major(2)).exp[2.0]().to_numpy().tolist()
    [1.0, 1.0]
    """
    values = to_numpy(tensor, copy=None)
    scale = fixed[0] if fixed else 1
    return tensor._assigned(np.exp(values * values.dtype.type(scale)))


class Arithmetic(np.lib.mixins.NDArrayOperatorsMixin):
    """Operators of a tensor. Results are new tensors in row-major order; comparisons give arrays of bools.

    `a + b` broadcasts as NumPy does. `a += b` needs equal shapes, or a tensor of rank 1 that goes along mode 0 of a
    tensor of rank 2, as in Mojo; arrays and numbers broadcast as in NumPy.

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
    exp = brackets(_exp)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if out is None:
            result = getattr(ufunc, method)(*[_operand(value) for value in inputs], **options)
            wrap = method == "__call__" and isinstance(result, np.ndarray) and result.ndim and result.dtype != bool
            return self._fresh(result) if wrap else result
        target = out[0]
        if method != "__call__" or not isinstance(target, Arithmetic):
            return NotImplemented
        result = np.asarray(ufunc(*[_against(value, target) for value in inputs], **options))
        return target._assigned(result)

    def _fresh(self, values: Any) -> TileTensor:
        raise NotImplementedError

    def _assigned(self: Any, values: Any) -> Any:
        """Return the tensor after an array of its shape was written over it."""
        require_writable(self)
        dtype = self._store.format.dtype
        if values.dtype != dtype and not np.can_cast(values.dtype, dtype, "same_kind"):
            raise LayoutError(
                f"a result of {values.dtype} cannot be kept in a tensor of {dtype} without loss; use //= for integers,"
                " or compute out of place"
            )
        shape = to_numpy(self, copy=None).shape
        if values.shape != shape:
            raise LayoutError(f"a result of shape {values.shape} does not fit a tensor of shape {shape}")
        from_elements(self, values)
        return self

    def min(self, other: Any) -> Any:
        """Return the tensor after every element became the smaller of itself and another.

        >>> import tilewright as tw
        >>> tw.TileTensor([1, 5], tw.row_major(2)).min(3).to_numpy().tolist()
        [1, 3]
        """
        return _in_place(np.minimum, self, other)

    def max(self, other: Any) -> Any:
        """Return the tensor after every element became the larger of itself and another.

        >>> import tilewright as tw
        >>> tw.TileTensor([1, 5], tw.row_major(2)).max(3).to_numpy().tolist()
        [3, 5]
        """
        return _in_place(np.maximum, self, other)

    def abs(self) -> Any:
        """Return the tensor after every element became its absolute value.

        >>> import tilewright as tw
        >>> tw.TileTensor([-1, 5], tw.row_major(2)).abs().to_numpy().tolist()
        [1, 5]
        """
        return _in_place(np.absolute, self)

    def recip(self) -> Any:
        """Return the tensor after every element became its reciprocal.

        >>> import tilewright as tw
        >>> tw.TileTensor([2.0, 4.0], tw.row_major(2)).recip().to_numpy().tolist()
        [0.5, 0.25]
        """
        values = to_numpy(self, copy=None)  # type: ignore[arg-type]
        return self._assigned(values.dtype.type(1) / values)
