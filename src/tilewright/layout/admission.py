# SPDX-License-Identifier: Apache-2.0
"""The door: shapes and strides from outside are checked here once, and trusted from then on."""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

from ..errors import LayoutError
from .axes import Place
from .guards import Guard
from .integers import as_integer
from .notation import format_signed, format_tree
from .steps import Step, check_step
from .tuples import MAX_DEPTH, as_tree, index_strides, leaves

Replica: TypeAlias = "tuple[int, Step]"
MAX_SPAN = 2**63 - 1


def plain_reach(shape: Any, stride: Any, depth: int = 0) -> int:
    """Return how far the places of matching trees of plain integers reach; -1 if they are anything else.

    >>> plain_reach((4, (2, 3)), (6, (3, 1))), plain_reach((4, 8), (1, "x")), plain_reach((4, 8), 1)
    (23, -1, -1)
    """
    if shape.__class__ is int and stride.__class__ is int and shape > 0:
        return int((shape - 1) * abs(stride))
    if shape.__class__ is not tuple or stride.__class__ is not tuple:
        return -1
    if len(shape) != len(stride) or depth >= MAX_DEPTH:
        return -1
    reach = 0
    for n, d in zip(shape, stride, strict=True):
        if n.__class__ is int and d.__class__ is int:
            if n <= 0:
                return -1
            reach += (n - 1) * (d if d >= 0 else -d)
        else:
            inner = plain_reach(n, d, depth + 1)
            if inner < 0:
                return -1
            reach += inner
    return reach


def admit(shape: Any, stride: Any) -> tuple[Any, Any]:
    """Return shape and strides checked and in canonical form: tuples and exact integers all the way down.

    >>> admit([4, [2, 3]], None)
    ((4, (2, 3)), (1, (4, 8)))
    """
    given = shape, stride
    shape = _admit_shape(shape, 0)
    stride = index_strides(shape) if stride is None else admit_stride(as_tree(stride), shape, given)
    check_span(shape, stride)
    return shape, stride


def _admit_shape(shape: Any, depth: int) -> Any:
    if isinstance(shape, (tuple, list)):
        if depth >= MAX_DEPTH:
            raise LayoutError(f"shape nests deeper than {MAX_DEPTH} levels; flatten it")
        return tuple([_admit_shape(mode, depth + 1) for mode in shape])
    extent = as_integer(shape, "shape")
    if extent < 0:
        raise LayoutError(f"shape has the negative extent {extent}: extents must be nonnegative")
    return extent


def admit_stride(stride: Any, shape: Any, given: tuple[Any, Any]) -> Any:
    """Return strides that nest like shape, each checked; given are the arguments that a message shows.

    >>> admit_stride((1, 4), (4, 8), ((4, 8), (1, 4)))
    (1, 4)
    """
    if shape.__class__ is tuple:
        if stride.__class__ is not tuple or len(stride) != len(shape):
            if stride.__class__ is not tuple:
                check_step(stride, "stride")
            _mismatch(stride, shape, given)
        return tuple([admit_stride(d, s, given) for d, s in zip(stride, shape, strict=True)])
    if stride.__class__ is tuple:
        _mismatch(stride, shape, given)
    return check_step(stride, "stride")


def _mismatch(stride: Any, shape: Any, given: tuple[Any, Any]) -> NoReturn:
    if shape.__class__ is not tuple:
        need = f"the extent {shape} needs one stride, got {stride}"
    elif given == (shape, stride):
        need = f"a tuple of {len(shape)} modes needs a tuple of {len(shape)} strides"
    else:
        need = f"the mode {shape} needs {len(shape)} strides, got {stride}"
    raise LayoutError(f"stride {given[1]} does not match shape {given[0]}: {need}")


def check_span(shape: Any, stride: Any, offset: Any = 0) -> None:
    """Raise if places would not fit 64 bits, which the engines that move the bytes count in.

    >>> check_span((4, 8), (1, 4))
    """
    reach = _largest(offset)
    for extent, step in zip(leaves(shape), leaves(stride), strict=True):
        if extent == 0:
            return
        reach += (extent - 1) * _largest(step)
    if reach > MAX_SPAN:
        text = f"{format_tree(shape)}:{format_tree(stride)}{format_signed(offset) if offset else ''}"
        raise LayoutError(f"{text} reaches {reach}, beyond 2^63 - 1: use smaller extents, strides or offsets")


def _largest(step: Any) -> int:
    return max(map(abs, step._parts.values()), default=0) if isinstance(step, Place) else abs(step)


def admit_replica(replica: Any) -> Replica:
    """Return a (count, step) pair of copies, checked.

    >>> admit_replica((2, 100))
    (2, 100)
    """
    if not isinstance(replica, tuple) or len(replica) != 2:
        raise TypeError(f"replicas are (count, step) pairs, got {replica!r}")
    count, step = as_integer(replica[0], "a number of copies"), check_step(replica[1], "a step between copies")
    if count < 1:
        raise LayoutError(f"{count} copies: the number of copies must be at least 1")
    return int(count), step


def admit_guard(guard: Any, shape: Any) -> Guard:
    """Return a guard if its strides nest like shape.

    >>> admit_guard(Guard((1, 32), 100), (32, 4))
    Guard(stride=(1, 32), limit=100, offset=0)
    """
    if not isinstance(guard, Guard):
        raise TypeError(f"guards must be Guard objects, got {type(guard).__name__} {guard!r}")
    for step in leaves(admit_stride(guard.stride, shape, (shape, guard.stride))):
        as_integer(step, "a guard's stride")
    as_integer(guard.limit, "a guard's limit")
    as_integer(guard.offset, "a guard's offset")
    return guard
