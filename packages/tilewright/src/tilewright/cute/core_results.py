# SPDX-License-Identifier: Apache-2.0
"""What the core gives, as CuTe has it: static integers, no padding, and views where tensors go in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..layout import ComposedLayout, LayoutLike, Swizzle
from ..layout import Layout as CoreLayout
from ..layout.tuples import leaves
from ..tensor import TileTensor
from .layout import from_core, is_static


def on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `function` of layouts that takes tensors, too: the result is a view of the tensor's memory.

    >>> from tilewright import cute
    >>> tensor = TileTensor([0.0] * 8, cute.Layout((2, 4)))
    >>> print(on_tensors(lambda layout: cute.Layout((4, 2)))(tensor).layout)
    (4,2):(1,4)
    """

    @wraps(function)
    def operate(target: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(target, TileTensor):
            return target.reshape(function(target.layout, *arguments, **options), allow_resize=True)
        return function(target, *arguments, **options)

    return operate


def as_cute(result: Any, *operands: Any) -> Any:
    """Return a `result` of the core; its integers are static if those of all `operands` are.

    It is padded only if an operand is: CuTe's own layouts never are.

    >>> from tilewright.cute import Int, Layout
    >>> print(as_cute(CoreLayout(4), Layout(Int(4))))
    _4:_1
    """
    if isinstance(result, ComposedLayout):
        return ComposedLayout(*[as_cute(part, *operands) for part in (result.outer, result.inner)])
    if not isinstance(result, CoreLayout):
        return result
    padded = any(isinstance(operand, LayoutLike) and operand._has_padding() for operand in operands)
    return from_core(result, all(map(_is_static_operand, operands)), padded)


def _is_static_operand(operand: Any) -> bool:
    if isinstance(operand, (tuple, list)):
        return all(map(_is_static_operand, operand))
    if isinstance(operand, ComposedLayout):
        return _is_static_operand(operand.inner)
    return (
        operand is None
        or isinstance(operand, Swizzle)
        or (bool(leaves(getattr(operand, "shape", operand))) and is_static(operand))
    )
