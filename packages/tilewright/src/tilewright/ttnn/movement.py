# SPDX-License-Identifier: Apache-2.0
"""Moves of whole tensors: between interleaved and sharded memory, and into tensors that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import memory
from ..errors import LayoutError, MemoryConfigError
from ..tensor import Tensor as PlainTensor
from ..tensor.page_storage import DeviceStorage, HostStorage, convert_pages
from .cores import CoresLike
from .enums import BufferType, DataTypeLike, MemoryLayoutLike, OrientationLike, ShardOrientation
from .memory import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from .operations import to_memory_config
from .tensor import Tensor, takes_tensor


@takes_tensor
def interleaved_to_sharded(
    tensor: Tensor,
    grid: CoresLike | MemoryConfig,
    shard_shape: Sequence[int] | None = None,
    shard_scheme: MemoryLayoutLike | None = None,
    shard_orientation: OrientationLike = ShardOrientation.ROW_MAJOR,
    output_dtype: DataTypeLike | None = None,
    *,
    keep_l1_aligned: bool = False,
) -> Tensor:
    """Return an interleaved tensor in shards.

    Args:
        tensor: the tensor; one on the host goes to the default device.
        grid: the memory config, or the cores of shards in L1.
        shard_shape: the shape of a shard, if `grid` are cores.
        shard_scheme: whether height, width or both are cut, if `grid` are cores.
        shard_orientation: the order of the cores, if `grid` are cores.
        output_dtype: the data type, by default that of the tensor.
        keep_l1_aligned: ignored.

    >>> from tilewright.ttnn import CoreGrid, TensorMemoryLayout, manage_device, zeros
    >>> with manage_device() as device:
    ...     x = zeros((64, 32), layout="tile", device=device)
    ...     y = interleaved_to_sharded(x, CoreGrid(x=2, y=1), [32, 32], TensorMemoryLayout.HEIGHT_SHARDED)
    >>> y.memory_config().shard_spec.shape
    [32, 32]
    """
    if isinstance(grid, MemoryConfig):
        config = grid
    elif shard_shape is None or shard_scheme is None:
        raise MemoryConfigError("interleaved_to_sharded with cores needs a shard_shape and a shard_scheme")
    else:
        config = MemoryConfig(shard_scheme, BufferType.L1, ShardSpec(grid, shard_shape, shard_orientation))
    _validate_sharding("interleaved_to_sharded", tensor, False, config, True)
    return to_memory_config(tensor, config, output_dtype)


@takes_tensor
def sharded_to_interleaved(
    tensor: Tensor, memory_config: MemoryConfig = DRAM_MEMORY_CONFIG, output_dtype: DataTypeLike | None = None
) -> Tensor:
    """Return a sharded tensor in the interleaved memory `memory_config`, converted to `output_dtype`.

    >>> from tilewright.ttnn import L1_MEMORY_CONFIG, create_sharded_memory_config, CoreGrid, manage_device, zeros
    >>> config = create_sharded_memory_config((64, 32), CoreGrid(x=2, y=1), "height")
    >>> with manage_device() as device:
    ...     x = zeros((64, 32), layout="tile", device=device, memory_config=config)
    ...     sharded_to_interleaved(x, L1_MEMORY_CONFIG).is_sharded()
    False
    """
    _validate_sharding("sharded_to_interleaved", tensor, True, memory_config, False)
    return to_memory_config(tensor, memory_config, output_dtype)


@takes_tensor
def reshard(tensor: Tensor, output_memory_config: MemoryConfig) -> Tensor:
    """Return a sharded tensor in the other shards of `output_memory_config`.

    >>> from tilewright.ttnn import CoreGrid, create_sharded_memory_config, manage_device, zeros
    >>> tall, wide = [create_sharded_memory_config((64, 64), CoreGrid(x=2, y=1), kind) for kind in ("height", "width")]
    >>> with manage_device() as device:
    ...     x = zeros((64, 64), layout="tile", device=device, memory_config=tall)
    ...     reshard(x, wide).memory_config().shard_spec.shape
    [64, 32]
    """
    _validate_sharding("reshard", tensor, True, output_memory_config, True)
    return to_memory_config(tensor, output_memory_config)


_WORDS = {True: "sharded", False: "interleaved"}
_FUNCTIONS = {
    (False, True): "interleaved_to_sharded",
    (True, False): "sharded_to_interleaved",
    (True, True): "reshard",
    (False, False): "to_memory_config",
}


def _validate_sharding(function: str, tensor: Tensor, source: bool, config: MemoryConfig, target: bool) -> None:
    """Raise unless the tensor and the memory config are sharded, or interleaved, as the function says."""
    found = (tensor.is_sharded(), config.is_sharded())
    if found != (source, target):
        raise MemoryConfigError(
            f"{function} takes a tensor in {_WORDS[source]} memory to {_WORDS[target]} memory, got {_WORDS[found[0]]}"
            f" and {_WORDS[found[1]]}; use {_FUNCTIONS[found]}"
        )


def copy_host_to_device_tensor(host_tensor: Tensor, device_tensor: Tensor, cq_id: object = None) -> None:
    """Write the values of `host_tensor` into `device_tensor`, which keeps its address; `cq_id` is ignored.

    A tensor without a mesh is written to every device of one.

    >>> from tilewright.ttnn import DataType, manage_device, ones, zeros
    >>> with manage_device() as device:
    ...     x = zeros((1, 2), DataType.INT32, device=device)
    ...     copy_host_to_device_tensor(ones((1, 2), DataType.INT32), x)
    ...     x.to_list()
    [[1, 1]]
    """
    for source, target in _pair_parts(host_tensor, device_tensor):
        storage = target.storage
        if not isinstance(source.storage, HostStorage) or not isinstance(storage, DeviceStorage):
            raise LayoutError(
                "copy_host_to_device_tensor takes a tensor on the host and one on a device, in this order"
            )
        pages = convert_pages(source.pages, source.spec, target.spec)
        storage.device.write(replace(storage.allocation, spec=target.spec), pages)


def copy_device_to_host_tensor(
    device_tensor: Tensor, host_tensor: Tensor, blocking: bool = True, cq_id: object = None
) -> None:
    """Write the values of `device_tensor` into the memory of `host_tensor`; `blocking` and `cq_id` are ignored.

    >>> from tilewright.ttnn import DataType, manage_device, ones, zeros
    >>> x = zeros((1, 2), DataType.INT32)
    >>> with manage_device() as device:
    ...     copy_device_to_host_tensor(ones((1, 2), DataType.INT32, device=device), x)
    >>> x.to_list()
    [[1, 1]]
    """
    for source, target in _pair_parts(device_tensor, host_tensor):
        if not isinstance(source.storage, DeviceStorage) or not isinstance(target.storage, HostStorage):
            raise LayoutError(
                "copy_device_to_host_tensor takes a tensor on a device and one on the host, in this order"
            )
        if not target.storage.data.flags.writeable:
            raise LayoutError(
                "the host tensor cannot be written: it is mapped from a file, or borrows a read-only array"
            )
        target.storage.data[:] = convert_pages(source.pages, source.spec, target.spec)


def _pair_parts(source: Tensor, target: Tensor) -> list[tuple[PlainTensor, PlainTensor]]:
    """Return the parts of two tensors device by device; they must be equal but for their memory."""
    mine, theirs = source.parts.by_device, target.parts.by_device
    if len(mine) == 1:
        mine = dict.fromkeys(theirs, source.parts.first)
    if set(mine) != set(theirs):
        raise LayoutError(f"the tensors are on different devices: {source.device_coords()}, {target.device_coords()}")
    kinds = [_kind(tensor.parts.first.spec) for tensor in (source, target)]
    if kinds[0] != kinds[1]:
        raise LayoutError(
            f"the tensors must have the same shape, data type and layout, got {source.parts.first.spec} and"
            f" {target.parts.first.spec}"
        )
    return [(mine[at], theirs[at]) for at in theirs]


def _kind(spec: memory.TensorSpec) -> tuple[object, ...]:
    return spec.shape.logical, spec.dtype, spec.page_layout, spec.tile
