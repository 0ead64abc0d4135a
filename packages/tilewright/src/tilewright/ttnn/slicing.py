# SPDX-License-Identifier: Apache-2.0
"""ttnn's operations that join tensors, cut them and change their rank: concat, slice, squeeze, unsqueeze."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..copying import copy
from ..errors import LayoutError
from ..memory import TensorSpec as PlainSpec
from ..tensor import Tensor as PlainTensor
from .config import MemoryConfig
from .devices import MeshParts
from .operations import place, return_to_device
from .tensor import Tensor, takes_tensor
from .types import reject_unsupported


def concat(
    tensors: Sequence[Tensor],
    dim: int = 0,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    groups: int = 1,
    *,
    sub_core_grids: object = None,
) -> Tensor:
    """Return `tensors` joined along dimension `dim`; on a mesh, the parts of each device are joined.

    Args:
        tensors: tensors of one data type, layout and tile, with equal extents but for `dim`.
        dim: the dimension.
        memory_config: the memory of the result, by default the first tensor's.
        output_tensor, groups: not supported.
        sub_core_grids: ignored.

    >>> concat([Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])], dim=1).to_list()
    [[1, 2, 3, 4]]
    """
    reject_unsupported(output_tensor=output_tensor, groups=None if groups == 1 else groups)
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise LayoutError("concat takes a list of one or more tensors")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise LayoutError(f"concat takes tensors, got {type(tensor).__name__} among them")
    distributed: list[MeshParts] = [tensor.parts for tensor in tensors]
    first = distributed[0]
    if any(set(parts.by_device) != set(first.by_device) for parts in distributed):
        raise LayoutError("concat takes tensors on the same devices of a mesh")
    joined = {at: _join([parts.by_device[at] for parts in distributed], dim, memory_config) for at in first.by_device}
    return Tensor.wrap_parts(replace(first, by_device=joined))


def _join(parts: Sequence[PlainTensor], dim: int, memory_config: MemoryConfig | None) -> PlainTensor:
    """Return native tensors joined along a dimension, where the first one is."""
    first, rank = parts[0], parts[0].shape.rank
    if not -rank <= dim < rank:
        raise LayoutError(f"dimension {dim} is outside a tensor of rank {rank}; use {-rank} to {rank - 1}")
    axis = dim % rank
    for part in parts:
        properties = [(item.dtype, item.layout, item.tile, _drop(item.shape.logical, axis)) for item in (first, part)]
        if properties[0] != properties[1]:
            raise LayoutError(f"cannot join {first.spec} and {part.spec} along dimension {dim}: only it may differ")
    shape = list(first.shape.logical)
    shape[axis] = sum(part.shape.logical[axis] for part in parts)
    whole, start = np.empty(shape, first.dtype.value_format.dtype), 0
    for part in parts:
        end = start + part.shape.logical[axis]
        copy(part.numpy(), whole[(builtins.slice(None),) * axis + (builtins.slice(start, end),)])
        start = end
    tile = first.tile if first.spec.is_tiled else None
    result = PlainTensor.from_array(whole, PlainSpec(shape, first.dtype, first.layout, tile))
    return return_to_device(result, first, memory_config, first.memory)


def _drop(extents: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*extents[:axis], *extents[axis + 1 :])


def slice(  # noqa: A001  (ttnn's name)
    tensor: Tensor,
    slice_start: Sequence[int],
    slice_end: Sequence[int],
    slice_step: Sequence[int] | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    pad_value: float | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the box of `tensor` from `slice_start` up to, but not including, `slice_end`.

    Args:
        tensor: the tensor; on a mesh, the part of each device is sliced.
        slice_start, slice_end: an index for each dimension.
        slice_step: steps of 1 or more, by default 1.
        memory_config: the memory of the result, by default the tensor's.
        output_tensor, pad_value: not supported.
        sub_core_grids: ignored.

    >>> slice(Tensor([1, 2, 3, 4, 5, 6], [2, 3]), [0, 1], [2, 3]).to_list()
    [[2, 3], [5, 6]]
    """
    reject_unsupported(output_tensor=output_tensor, pad_value=pad_value)
    extents = tensor.shape.logical
    steps = [1] * len(extents) if slice_step is None else list(slice_step)
    if not len(slice_start) == len(slice_end) == len(steps) == len(extents) or any(
        not 0 <= low <= high <= n or step < 1
        for low, high, step, n in zip(slice_start, slice_end, steps, extents, strict=True)
    ):
        raise LayoutError(
            f"the box from {list(slice_start)} to {list(slice_end)} in steps of {steps} is not inside {tensor.shape!r}"
        )
    box = [builtins.slice(*entry) for entry in zip(slice_start, slice_end, steps, strict=True)]
    return tensor.map(lambda part: place(part.slice(*box), memory_config))


@takes_tensor
def squeeze(tensor: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Return `tensor` without the dimensions `dim` that have extent 1, by default without all of those.

    >>> squeeze(Tensor([1, 2], [1, 2, 1])).shape, squeeze(Tensor([1, 2], [1, 2, 1]), 0).shape
    (Shape([2]), Shape([2, 1]))
    """
    extents = tensor.shape.logical
    chosen = range(len(extents)) if dim is None else [dim] if isinstance(dim, int) else dim
    dropped = {_validate_dim(axis, len(extents)) for axis in chosen}
    return tensor.reshape([n for axis, n in enumerate(extents) if n != 1 or axis not in dropped])


@takes_tensor
def unsqueeze(tensor: Tensor, dim: int) -> Tensor:
    """Return `tensor` with a dimension of extent 1 added at `dim`.

    >>> unsqueeze(Tensor([1, 2], [2]), 0).shape, unsqueeze(Tensor([1, 2], [2]), -1).shape
    (Shape([1, 2]), Shape([2, 1]))
    """
    extents = list(tensor.shape.logical)
    extents.insert(_validate_dim(dim, len(extents) + 1), 1)
    return tensor.reshape(extents)


@takes_tensor
def unsqueeze_to_4D(tensor: Tensor) -> Tensor:  # noqa: N802  (ttnn's name)
    """Return `tensor` with leading dimensions of extent 1, so that its rank is 4.

    >>> unsqueeze_to_4D(Tensor([1, 2], [1, 2])).shape
    Shape([1, 1, 1, 2])
    """
    extents = tensor.shape.logical
    if len(extents) > 4:
        raise LayoutError(f"expected a tensor of rank 4 or less, got {tensor.shape!r}; use squeeze first")
    return tensor.reshape([1] * (4 - len(extents)) + list(extents))


def _validate_dim(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise LayoutError(f"dimension {dim} is out of range; use {-rank} to {rank - 1}")
    return dim % rank
