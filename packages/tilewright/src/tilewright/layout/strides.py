# SPDX-License-Identifier: Apache-2.0
"""Strides: their validation, how far they reach, and how flat lists of them merge.

`Guard`: strides with a limit, which separate data from padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, SupportsIndex, TypeAlias

from ..errors import LayoutError
from .axes import Place, Step, Stride, as_step, format_signed, format_tree
from .tuples import (
    MAX_DEPTH,
    Nested,
    Shape,
    ShapeArgument,
    as_tree,
    as_tuple,
    index_strides,
    leaves,
    product,
)
from .validation import as_integer, validate_shape

MAX_OFFSET = 2**63 - 1

# A number of copies that exist at the same time, and the step between them.
Replica: TypeAlias = "tuple[int, Step]"
# What strides may be written as: lists count as tuples.
StrideArgument: TypeAlias = "SupportsIndex | Place | tuple[StrideArgument, ...] | list[Any]"
# One mode, ready for evaluation: its size, (extent, stride) of its coalesced leaves but the last, and the last stride.
ModeProgram: TypeAlias = "tuple[int, list[tuple[int, Any]], Any]"


def plain_reach(shape: object, stride: object, depth: int = 0) -> int:
    """Return the largest distance between two offsets of plain nested integers; -1 if the arguments are anything else.

    >>> plain_reach((4, (2, 3)), (6, (3, 1))), plain_reach((4, 8), (1, "x")), plain_reach((4, 8), 1)
    (23, -1, -1)
    """
    if type(shape) is not tuple or type(stride) is not tuple:
        return (shape - 1) * abs(stride) if type(shape) is int and type(stride) is int and shape > 0 else -1
    if len(shape) != len(stride) or depth >= MAX_DEPTH:
        return -1
    reach = 0
    for n, d in zip(shape, stride):  # noqa: B905  (of one length; saying strict=True takes as long as two modes)
        if type(n) is int and type(d) is int:
            if n <= 0:
                return -1
            reach += (n - 1) * (d if d >= 0 else -d)
        else:
            inner = plain_reach(n, d, depth + 1)
            if inner < 0:
                return -1
            reach += inner
    return reach


def validate_shape_and_stride(shape: ShapeArgument, stride: StrideArgument | None) -> tuple[Shape, Stride]:
    """Return a shape and strides as nested tuples of integers and places; without strides, the compact ones.

    >>> validate_shape_and_stride([4, 8], None)
    ((4, 8), (1, 4))
    """
    extents = validate_shape(shape)
    strides = index_strides(extents) if stride is None else validate_stride(as_tree(stride), extents, (shape, stride))
    check_offset_range(extents, strides)
    return extents, strides


def validate_stride(stride: Nested[object], shape: Shape, arguments: tuple[object, object]) -> Stride:
    """Return strides that are nested like `shape`; a message quotes `arguments`, the shape and strides as passed.

    >>> validate_stride((1, 4), (4, 8), ((4, 8), (1, 4)))
    (1, 4)
    """
    if not isinstance(stride, tuple):
        step = stride if type(stride) is int else as_step(stride, "stride")
        if not isinstance(shape, tuple):
            return step
    elif isinstance(shape, tuple) and len(stride) == len(shape):
        return tuple([validate_stride(d, s, arguments) for d, s in zip(stride, shape, strict=True)])
    raise _mismatch_error(stride, shape, arguments)


def validate_replica(replica: object) -> Replica:
    """Return a (count, step) pair of copies.

    >>> validate_replica((2, 100))
    (2, 100)
    """
    if not isinstance(replica, tuple) or len(replica) != 2:
        raise TypeError(f"replicas are (count, step) pairs, got {replica!r}")
    count, step = as_integer(replica[0], "the number of copies"), as_step(replica[1], "the step between copies")
    if count < 1:
        raise LayoutError(f"the number of copies must be at least 1, got {count}")
    return int(count), step


def _mismatch_error(stride: object, shape: Shape, arguments: tuple[object, object]) -> LayoutError:
    if not isinstance(shape, tuple):
        rule = f"the extent {shape} needs one stride, got {stride}"
    elif arguments == (shape, stride):
        rule = f"a tuple of {len(shape)} modes needs a tuple of {len(shape)} strides"
    else:
        rule = f"the mode {shape} needs {len(shape)} strides, got {stride}"
    return LayoutError(f"stride {arguments[1]} does not match shape {arguments[0]}: {rule}")


def check_offset_range(shape: Shape, stride: Stride, offset: Step = 0) -> None:
    """Raise if offsets would not fit into 64 bits, in which the copy engines compute them.

    >>> check_offset_range((4, 8), (1, 4))
    """
    reach = _magnitude(offset)
    steps: list[Step] = leaves(stride)
    for extent, step in zip(leaves(shape), steps, strict=True):
        if extent == 0:
            return
        reach += (extent - 1) * _magnitude(step)
    if reach > MAX_OFFSET:
        text = f"{format_tree(shape)}:{format_tree(stride)}{format_signed(offset) if offset else ''}"
        raise LayoutError(f"{text} reaches {reach}, beyond 2^63 - 1; use smaller extents, strides or offsets")


def _magnitude(step: Step) -> int:
    """Return the largest absolute amount of a step along any axis."""
    return max(map(abs, step._parts.values()), default=0) if isinstance(step, Place) else abs(step)


def value_range(extents: list[int], steps: list[Any], offset: Any) -> tuple[Any, Any]:
    """Return the lowest and highest value of offset + sum(coordinate * step).

    >>> value_range([4, 8], [-1, 4], 0)
    (-3, 28)
    """
    low = high = offset
    for extent, step in zip(extents, steps, strict=True):
        reach = (extent - 1) * step
        if reach > 0:
            high = high + reach
        else:
            low = low + reach
    return low, high


def merge_modes(extents: list[int], channels: list[list[Any]]) -> tuple[list[int], list[list[Any]]]:
    """Return modes merged wherever all channels continue, without units; at least one mode remains.

    A channel is a list of strides, one per extent: those of a layout, or of one of its guards.

    >>> merge_modes([2, 1, 6], [[1, 7, 2]])
    ([12], [[1]])
    """
    merged: list[int] = []
    if len(channels) == 1:
        steps: list[Any] = []
        for extent, step in zip(extents, channels[0], strict=True):
            if extent == 1:
                continue
            if merged and merged[-1] * steps[-1] == step:
                merged[-1] = merged[-1] * extent
            else:
                merged.append(extent)
                steps.append(step)
        return (merged, [steps]) if merged else ([1], [[0]])
    strides: list[list[Any]] = [[] for _ in channels]
    for k, extent in enumerate(extents):
        if extent == 1:
            continue
        pairs = zip(strides, channels, strict=True)
        if merged and all(line[-1] * merged[-1] == channel[k] for line, channel in pairs):
            merged[-1] = merged[-1] * extent
        else:
            merged.append(extent)
            for line, channel in zip(strides, channels, strict=True):
                line.append(channel[k])
    return (merged, strides) if merged else ([1], [[0] for _ in channels])


def mode_program(extents: list[int], steps: list[Any]) -> ModeProgram:
    """Return a mode, given by its coalesced leaves, ready for evaluation.

    >>> mode_program([4, 8], [1, 5])
    (32, [(4, 1)], 5)
    """
    return prod(extents), list(zip(extents[:-1], steps[:-1], strict=True)), steps[-1]


def mode_programs(shape: Shape, stride: Stride) -> list[ModeProgram]:
    """Return every top-level mode ready for evaluation.

    >>> mode_programs((4, (2, 3)), (6, (3, 1)))
    [(4, [], 6), (6, [(2, 3)], 1)]
    """
    pairs = zip(as_tuple(shape), as_tuple(stride), strict=True)
    merged = [merge_modes(leaves(extents), [leaves(steps)]) for extents, steps in pairs]
    return [mode_program(extents, steps) for extents, (steps,) in merged]


@dataclass(frozen=True, slots=True)
class Guard:
    """A bound on coordinates: they are data where `0 <= offset + sum(coordinate * stride) < limit`, padding elsewhere.

    >>> Guard((1, 32), 100)  # of 4 tiles of 32, only the first 100 elements are data
    Guard(stride=(1, 32), limit=100, offset=0)
    """

    stride: Nested[int]
    limit: int
    offset: int = 0

    def is_data(self, coordinates: list[Any]) -> Any:
        """Return whether `coordinates`, one per leaf, are those of data; arrays give arrays.

        >>> Guard((1, 32), 100).is_data([3, 3]), Guard((1, 32), 100).is_data([4, 3])
        (True, False)
        """
        value = self.offset + sum(c * step for c, step in zip(coordinates, leaves(self.stride), strict=True))
        return (value >= 0) & (value < self.limit)

    def with_stride(self, stride: Nested[int], shift: int = 0) -> Guard:
        """Return the bound over other coordinates: with other strides, and an offset that is `shift` further.

        >>> Guard((1, 32), 100).with_stride(32, 5)
        Guard(stride=32, limit=100, offset=5)
        """
        return Guard(stride, self.limit, self.offset + shift)

    def __str__(self) -> str:
        return f"{format_tree(self.stride)}{format_signed(self.offset) if self.offset else ''}<{self.limit}"


def live_guards(shape: Shape, guards: list[Guard]) -> tuple[Guard, ...]:
    """Return the distinct guards that exclude some coordinate of `shape`.

    >>> live_guards((32, 4), [Guard((1, 32), 100), Guard((1, 32), 128)])
    (Guard(stride=(1, 32), limit=100, offset=0),)
    """
    if not guards or product(shape) == 0:
        return ()
    extents: list[int] = leaves(shape)
    live = []
    for guard in guards:
        low, high = value_range(extents, leaves(guard.stride), guard.offset)
        if low < 0 or high >= guard.limit:
            live.append(guard)
    return tuple(dict.fromkeys(live))


def validate_guard(guard: object, shape: Shape) -> Guard:
    """Return `guard` if its strides are integers nested like `shape`.

    >>> validate_guard(Guard((1, 32), 100), (32, 4))
    Guard(stride=(1, 32), limit=100, offset=0)
    """
    if not isinstance(guard, Guard):
        raise TypeError(f"guards must be Guard objects, got {type(guard).__name__} {guard!r}")
    for step in leaves(validate_stride(guard.stride, shape, (shape, guard.stride))):
        as_integer(step, "the stride of a guard")
    as_integer(guard.limit, "the limit of a guard")
    as_integer(guard.offset, "the offset of a guard")
    return guard


def data_extents(shape: Shape, guards: tuple[Guard, ...]) -> tuple[int, ...] | None:
    """Return the extent of the data in each mode if every guard bounds the index of a single mode; else None.

    >>> data_extents((64, (32, 4)), (Guard((0, (1, 32)), 100),)), data_extents((8, 8), (Guard((8, 1), 60),))
    ((64, 100), None)
    """
    modes = shape if isinstance(shape, tuple) else (shape,)
    extents = [int(product(mode)) for mode in modes]
    used: set[Guard] = set()
    for guard in guards:
        steps = guard.stride if isinstance(guard.stride, tuple) else (guard.stride,)
        bounded = [k for k, step in enumerate(steps) if any(leaves(step))]
        if len(bounded) == 1 and guard.offset >= 0 and _is_index(steps[bounded[0]], modes[bounded[0]]):
            k = bounded[0]
            extents[k] = min(extents[k], max(0, guard.limit - guard.offset))
            used.add(guard)
    return tuple(extents) if used == set(guards) else None


def _is_index(steps: Nested[int], mode: Shape) -> bool:
    """Return whether the strides of a guard give the index in a mode."""
    trees = zip(leaves(mode), leaves(steps), leaves(index_strides(mode)), strict=True)
    return all(step == unit for extent, step, unit in trees if extent > 1)
