# SPDX-License-Identifier: Apache-2.0
"""Universal functions: one function of Python's numbers, applied to all elements, with `reduce`, `at` and the like."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from itertools import accumulate
from typing import Any

from .array_class import ndarray, reduce_axes, sum_type
from .array_indices import broadcast_to
from .array_strides import broadcast_shapes
from .number_types import BOOL, FLOAT64, OBJECT, dtype, generic
from .operators import UFUNCS
from .type_promotion import result_type

Function = Callable[..., Any]
SAME, WHOLE, TRUTH, FLOAT = "same", "whole", "truth", "float"  # the type of a result


class ufunc:
    """A function of one or two numbers, as a function of arrays.

    `careful` is used where `function` raises: at a division by 0, and where a result is infinite.
    """

    nout = 1

    def __init__(
        self,
        name: str,
        function: Function,
        result: str = SAME,
        careful: Function | None = None,
        floats: Function | None = None,
        bools: Function | None = None,
        identity: Any = None,
        nin: int = 2,
    ) -> None:
        self.__name__, self.function, self.result, self.nin, self.identity = name, function, result, nin, identity
        self.careful, self.floats, self.bools = careful or function, floats, bools
        UFUNCS[name] = self

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __call__(self, *inputs: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        override = _find_override(self, "__call__", inputs, out, options)
        if override is not None:
            return override[0]
        operands = [_as_operand(each) for each in inputs]
        if any(each is None for each in operands):
            return NotImplemented
        kind = result_type(*operands) if "dtype" not in options else dtype(options["dtype"])
        shape = broadcast_shapes(*[each.shape for each in operands if isinstance(each, ndarray)])
        if self.result in (SAME, WHOLE):
            _check_range(operands, kind)
        values = self._apply(kind, [_column(each, kind, shape) for each in operands])
        target = self._result_type(kind)
        if out is not None:
            chosen = out[0] if isinstance(out, tuple) else out
            chosen[...] = ndarray.from_values(values, target, shape)
            return chosen
        return ndarray.from_values(values, target, shape).scalar_or_self()

    def _apply(self, kind: dtype, columns: list[list[Any]]) -> list[Any]:
        function = self.function
        if kind is BOOL and self.bools is not None:
            function = self.bools
        elif kind.kind in "fV" and self.floats is not None:
            function = self.floats
        try:
            return list(map(function, *columns))
        except (ZeroDivisionError, OverflowError, ValueError):
            return list(map(self.careful, *columns))

    def _result_type(self, kind: dtype) -> dtype:
        if self.result == TRUTH:
            return BOOL
        if self.result == FLOAT and kind.kind in "biu":
            return FLOAT64
        if self.result == WHOLE and kind is BOOL:
            return dtype("int8")
        return kind

    # The other ways to apply a function of two numbers.

    def reduce(self, value: Any, axis: Any = 0, keepdims: bool = False, **options: Any) -> Any:
        """Return the elements along an axis combined into one."""
        source = ndarray.of(value)
        return reduce_axes(source, self._combine, self._reduced_type(source.dtype), axis, keepdims)

    def _reduced_type(self, kind: dtype) -> dtype:
        return sum_type(kind, None) if self.__name__ in ("add", "multiply") else self._result_type(kind)

    def _combine(self, values: list[Any]) -> Any:
        if self.identity is not None:
            return reduce(self.function, values, self.identity)
        if not values:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        return reduce(self.function, values)

    def accumulate(self, value: Any, axis: int = 0) -> Any:
        """Return the elements combined with all before them."""
        source = ndarray.of(value)
        return ndarray.from_values(list(accumulate(source.values(), self.function)), source.dtype, source.shape)

    def reduceat(self, value: Any, indices: Any, axis: int = 0) -> Any:
        """Return the elements from each index to the next one, along an axis, combined."""
        source, starts = ndarray.of(value), ndarray.of(indices).values()
        last = source.swapaxes(axis, -1)
        values, length = last.values(), last.shape[-1]
        ends = [max(a + 1, b) for a, b in zip(starts, [*starts[1:], length], strict=True)]
        totals = [
            self._combine(values[row + a : row + b])
            for row in range(0, len(values), length or 1)
            for a, b in zip(starts, ends, strict=True)
        ]
        kind = self._reduced_type(source.dtype)
        return ndarray.from_values(totals, kind, (*last.shape[:-1], len(starts))).swapaxes(axis, -1)

    def at(self, target: Any, indices: Any, value: Any = None) -> None:
        """Combine the elements at indices with a value each, one after the other."""
        where = ndarray.from_values(list(range(target.size)), dtype(int), target.shape)[indices]
        places = ndarray.of(where)
        others = broadcast_to(ndarray.of(value), places.shape).values()
        values = target.values()
        for place, other in zip(places.values(), others, strict=True):
            values[place] = self.function(values[place], other)
        target.write_values(values)

    def outer(self, a: Any, b: Any) -> Any:
        """Return the function of every pair of elements."""
        first, second = ndarray.of(a), ndarray.of(b)
        return self(first.reshape((*first.shape, *[1] * second.ndim)), second)


_PLAIN = (int, float, bool, generic, ndarray)


def _find_override(function: Any, method: str, inputs: Any, out: Any, options: Any) -> tuple[Any] | None:
    """Return in a tuple what an operand of another class makes of a call, or None if there is no such class."""
    outputs = () if out is None else out if isinstance(out, tuple) else (out,)
    for operand in (*outputs, *inputs):
        if not isinstance(operand, _PLAIN):
            override = getattr(operand.__class__, "__array_ufunc__", None)
            if override is not None:
                extra = {"out": outputs} if outputs else {}
                return (override(operand, function, method, *inputs, **extra, **options),)
    return None


def _as_operand(value: Any) -> Any:
    """Return an array, a scalar or a number; None for what cannot be one."""
    if isinstance(value, (ndarray, int, float, generic)):
        return value
    if value is None or isinstance(value, str) or getattr(value, "__array_ufunc__", True) is None:
        return None
    try:
        return ndarray.of(value)
    except TypeError:
        return None


def _check_range(operands: list[Any], kind: dtype) -> None:
    for operand in operands:
        if operand.__class__ is int and kind.kind in "iu" and not kind.low <= operand <= kind.high:
            raise OverflowError(f"Python integer {operand} out of bounds for {kind.name}")


def _column(operand: Any, kind: dtype, shape: tuple[int, ...]) -> list[Any]:
    if not isinstance(operand, ndarray):
        return [operand.item() if isinstance(operand, generic) else operand] * math.prod(shape)
    values = broadcast_to(operand, shape).values()
    if kind.kind == "f" and operand.dtype.kind in "iu" and kind is not OBJECT:
        return list(map(float, values))
    return values
