# SPDX-License-Identifier: Apache-2.0
"""The operations of ttnn that create, move and change tensors."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._dialect import unwrap
from ..copying import copy
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..formats import fit_values
from ..memory import MemoryConfig as NativeMemory
from ..memory import PageLayout
from ..memory import TensorSpec as NativeSpec
from ..tensor import DeviceStorage, HostStorage, convert_pages, pad_spec
from ..tensor import Tensor as NativeTensor
from .config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec, TensorSpec, Tile, TileLike
from .devices import AnyDevice, MeshParts, MeshToTensor, TensorToMesh, resolve_device, validate_dims
from .tensor import Tensor, create_tensor, has_fractions, needs_truncation, takes_tensor, truncate
from .types import (
    BufferType,
    CoresLike,
    DataType,
    DataTypeLike,
    Layout,
    LayoutLike,
    MemoryLayoutLike,
    OrientationLike,
    ShardOrientation,
    reject_unsupported,
)

__all__ = [
    "concat", "copy_device_to_host_tensor", "copy_host_to_device_tensor", "deallocate", "from_device", "from_numpy",
    "from_torch", "get_memory_config", "interleaved_to_sharded", "pad", "permute", "reciprocal", "reshape", "reshard",
    "sharded_to_interleaved", "slice", "squeeze", "tilize", "tilize_with_val_padding", "tilize_with_zero_padding",
    "to_device", "to_dtype", "to_layout", "to_memory_config", "to_numpy", "to_torch", "transpose", "typecast", "unpad",
    "unsqueeze", "unsqueeze_to_4D", "untilize", "untilize_with_unpadding",
]  # fmt: skip

LARGE_RECIPROCAL = 2.0**127  # the result of a block format for 1 / 0


# Conversions from and to arrays.


def from_torch(
    tensor: ArrayLike,
    dtype: DataTypeLike | None = None,
    *,
    spec: TensorSpec | None = None,
    tile: TileLike | None = None,
    pad_value: float | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: TensorToMesh | None = None,
    cq_id: object = None,
    preserve_nan_values: bool = False,
    col_tilize: bool = False,
    enable_bfloat_opt: bool = False,
) -> Tensor:
    """Return `tensor`, an array of torch or NumPy, as a ttnn tensor; memory is shared if layout and data type allow it.

    Args:
        tensor: the array.
        dtype: the data type, by default the array's or the one ttnn has instead.
        spec: all properties at once, instead of `dtype`, `tile`, `layout` and `memory_config`.
        tile: the tile, by default 32 x 32.
        pad_value: the value of padding, by default 0.
        layout: by default tiles for block formats, rows otherwise.
        device: the device or mesh it goes to, by default the host; without a `mesh_mapper`, a mesh gets replicas.
        memory_config: the memory it lies in on a device.
        mesh_mapper: how the array is cut for the devices of a mesh, such as `ShardTensorToMesh(mesh_device, dim=0)`.
        col_tilize: transpose the last two dimensions first; block formats only.
        cq_id: ignored.
        preserve_nan_values, enable_bfloat_opt: not supported.

    >>> from_torch(np.ones((5, 7), np.float32), dtype=DataType.BFLOAT8_B).layout
    Layout.TILE
    """
    if spec is not None:
        properties = {"dtype": dtype, "layout": layout, "tile": tile, "memory_config": memory_config}
        clashing = [name for name, value in properties.items() if value is not None]
        if clashing:
            raise MemoryConfigError(f"from_torch got both spec and {', '.join(clashing)}; pass one or the other")
        if spec.shape != list(np.shape(tensor)):
            raise MemoryConfigError(
                f"the array has shape {list(np.shape(tensor))}, the spec {list(spec.shape)}; they must be equal"
            )
        dtype, layout, tile, memory_config = spec.dtype, spec.layout, spec.tile, spec.memory_config
    return Tensor(
        tensor,
        data_type=dtype,
        layout=layout,
        tile=tile,
        pad_value=pad_value,
        device=device,
        mem_config=memory_config,
        col_tilize=col_tilize,
        cq_id=cq_id,
        mesh_mapper=mesh_mapper,
        preserve_nan_values=preserve_nan_values,
        enable_bfloat_opt=enable_bfloat_opt,
    )


from_numpy = from_torch


@takes_tensor
def to_torch(
    tensor: Tensor,
    dtype: Any = None,  # of torch or NumPy
    *,
    torch_rank: int | None = None,
    mesh_composer: MeshToTensor | None = None,
    device: object = None,
    cq_id: object = None,
) -> np.ndarray[Any, Any] | Any:
    """Return the values as a torch tensor if torch is imported, as an array otherwise, in `dtype` of that library.

    `torch_rank` drops leading dimensions of extent 1; `mesh_composer` joins the parts of a tensor on a mesh;
    `device` and `cq_id` are ignored.

    >>> to_torch(from_torch(np.ones((1, 2), np.float32)), torch_rank=1).tolist()
    [1.0, 1.0]
    """
    values = tensor.to_torch(mesh_composer)
    if torch_rank is not None and values.ndim > torch_rank:
        extra = values.ndim - torch_rank
        if any(n != 1 for n in values.shape[:extra]):
            raise LayoutError(
                f"cannot reduce shape {list(values.shape)} to rank {torch_rank}: only leading dimensions of extent 1"
                " can be dropped"
            )
        values = values.reshape(values.shape[extra:])
    if dtype is None:
        return values
    return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(dtype=dtype)


@takes_tensor
def to_numpy(
    tensor: Tensor, dtype: DataTypeLike | None = None, mesh_composer: MeshToTensor | None = None
) -> np.ndarray[Any, Any]:
    """Return the values as an array of `dtype`, by default the tensor's; block formats become float32.

    `mesh_composer` joins the parts of a tensor on a mesh.

    >>> to_numpy(from_torch(np.ones((1, 2), np.float32), dtype=DataType.BFLOAT4_B)).tolist()
    [[1.0, 1.0]]
    >>> to_numpy(from_torch(np.ones((1, 2), np.float32)), DataType.INT32).tolist()
    [[1, 1]]
    """
    format_ = DataType.of(dtype).format if isinstance(dtype, Enum) else dtype
    if mesh_composer is None:
        return tensor.native.numpy(format_)
    return NativeTensor.of(tensor.to_numpy(mesh_composer)).numpy(format_)


# Moves between host and devices.


@takes_tensor
def to_device(
    tensor: Tensor,
    device: AnyDevice,
    memory_config: MemoryConfig | None = None,
    queue_id: object = None,
    *,
    cq_id: object = None,
) -> Tensor:
    """Return the tensor on `device`, in the memory of `memory_config` or of its spec.

    `queue_id` and `cq_id` are ignored.

    >>> from tilewright.ttnn import Device
    >>> to_device(from_torch(np.ones((1, 2), np.float32)), Device("wormhole_n150")).buffer_address()
    1048640
    """
    return Tensor.wrap_parts(tensor.parts.to_device(device, unwrap(memory_config)))


@takes_tensor
def from_device(tensor: Tensor, blocking: bool = True, queue_id: object = None, *, cq_id: object = None) -> Tensor:
    """Return the tensor on the host; `blocking`, `queue_id` and `cq_id` are ignored.

    >>> from tilewright.ttnn import Device
    >>> from_device(to_device(from_torch(np.ones((1, 2), np.float32)), Device("wormhole_n150"))).to_list()
    [[1.0, 1.0]]
    """
    return tensor.cpu()


@takes_tensor
def to_memory_config(
    tensor: Tensor, memory_config: MemoryConfig, dtype: DataTypeLike | None = None, *, device: AnyDevice | None = None
) -> Tensor:
    """Return the tensor in the memory of `memory_config`, converted to `dtype`.

    It stays on its device; from the host it goes to `device`, or to the default device.

    >>> from tilewright.ttnn import L1_MEMORY_CONFIG, manage_device
    >>> with manage_device() as opened:
    ...     to_memory_config(from_torch(np.ones((1, 2), np.float32)), L1_MEMORY_CONFIG).buffer_address()
    1499104
    """
    converted = tensor if dtype is None else to_dtype(tensor, dtype)
    target = resolve_device(device, tensor.device())
    return Tensor.wrap_parts(converted.parts.to_device(target, unwrap(memory_config)))


@takes_tensor
def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Free the memory of a tensor on its device; `force` is ignored.

    >>> deallocate(from_torch(np.ones((1, 2), np.float32)))
    """
    tensor.deallocate(force)


@takes_tensor
def get_memory_config(tensor: Tensor) -> MemoryConfig:
    """Return the memory config of a tensor.

    >>> get_memory_config(from_torch(np.ones((1, 2), np.float32))).interleaved
    True
    """
    return tensor.memory_config()


# Changes of layout, type and shape.


@takes_tensor
def to_layout(
    tensor: Tensor,
    layout: LayoutLike,
    dtype: DataTypeLike | None = None,
    memory_config: MemoryConfig | None = None,
    *,
    sub_core_grids: object = None,
    pad_value: float = 0.0,
) -> Tensor:
    """Return the tensor in `layout`: tiles, padded with `pad_value`, or rows without padding.

    `dtype` and `memory_config` also change data type and memory; `sub_core_grids` is ignored.

    >>> to_layout(from_torch(np.ones((5, 7), np.float32)), Layout.TILE).padded_shape
    Shape([32, 32])
    """
    converted = tensor if dtype is None else to_dtype(tensor, dtype)
    page_layout = PageLayout.of(layout)
    return converted.map(lambda part: place(part.to_layout(page_layout, pad_value=pad_value), memory_config))


@takes_tensor
def to_dtype(tensor: Tensor, dtype: DataTypeLike) -> Tensor:
    """Return the tensor converted to `dtype`, padding included; floats outside the range of integers are refused.

    >>> to_dtype(from_torch(np.ones((5, 7), np.float32)), DataType.BFLOAT16).dtype
    DataType.BFLOAT16
    """
    element = DataType.of(dtype).format

    def convert(part: NativeTensor) -> NativeTensor:
        if needs_truncation(part.dtype, element):
            truncate(part.numpy(), element)
        return part.to_dtype(element)

    return tensor.map(convert)


@takes_tensor
def typecast(
    tensor: Tensor,
    dtype: DataTypeLike,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor converted to `dtype`, in the memory of `memory_config` or its own.

    `sub_core_grids` is ignored; `output_tensor` is not supported.

    >>> typecast(from_torch(np.ones((5, 7), np.float32)), DataType.INT32).to_list()[0][:2]
    [1, 1]
    """
    reject_unsupported(output_tensor=output_tensor)
    return to_dtype(tensor, dtype).map(lambda part: place(part, memory_config))


def place(tensor: NativeTensor, memory_config: MemoryConfig | None) -> NativeTensor:
    """Return a native tensor in the memory of `memory_config`, or where it is.

    >>> place(NativeTensor.of([[1, 2]]), None).shape
    Shape([1, 2])
    """
    return tensor if memory_config is None else tensor.to_memory_config(unwrap(memory_config))


def return_to_device(
    result: NativeTensor, source: NativeTensor, memory_config: MemoryConfig | None, memory: NativeMemory | None = None
) -> NativeTensor:
    """Return a `result` that was computed on the host where its `source` is, in `memory_config` or `memory`.

    >>> x = NativeTensor.of([[1, 2]])
    >>> return_to_device(x, x, None).device is None
    True
    """
    return place(result if source.device is None else result.to_device(source.device, memory), memory_config)


@takes_tensor
def reshape(tensor: Tensor, shape: Iterable[int]) -> Tensor:
    """Return the elements of `tensor` in another `shape`, in either layout; one extent may be -1.

    >>> reshape(from_torch(np.ones((4, 6), np.float32)), (2, -1)).shape
    Shape([2, 12])
    """
    return tensor.reshape(shape)


@takes_tensor
def permute(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the tensor with its dimensions in the order `dims`.

    >>> permute(from_torch(np.ones((4, 6), np.float32)), (1, 0)).shape
    Shape([6, 4])
    """
    return tensor.map(lambda part: part.permute(dims))


@takes_tensor
def transpose(tensor: Tensor, dim1: int, dim2: int) -> Tensor:
    """Return the tensor with dimensions `dim1` and `dim2` exchanged.

    >>> transpose(from_torch(np.ones((4, 6), np.float32)), 0, 1).shape
    Shape([6, 4])
    """
    return tensor.map(lambda part: part.transpose(dim1, dim2))


@takes_tensor
def pad(
    tensor: Tensor,
    padding: Sequence[int] | Sequence[tuple[int, int]],
    *start_and_value: Sequence[int] | float,
    value: float = 0,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return a larger tensor, filled with `value`; `start_and_value` may give the start and the value by position.

    `padding` is a pair (before, after) per dimension, optionally followed by the value; or the new shape, followed by
    the start of the data in it and optionally by the value. `memory_config` is the memory of the result;
    `use_multicore` and `sub_core_grids` are ignored.

    >>> pad(from_torch(np.ones((2, 2), np.float32)), [(0, 1), (1, 0)], 5).to_list()
    [[5.0, 1.0, 1.0], [5.0, 1.0, 1.0], [5.0, 5.0, 5.0]]
    >>> pad(from_torch(np.ones((1, 1), np.float32)), [2, 2], [0, 0], 5).to_list()
    [[1.0, 5.0], [5.0, 5.0]]
    """
    extents = tensor.shape.logical
    amounts: Any = padding
    if isinstance(amounts, str) or not isinstance(amounts, Sequence):
        raise LayoutError(f"expected padding such as [(0, 1), (0, 0)], a pair per dimension, got {padding!r}")
    pairs = [tuple(pair) for pair in padding if isinstance(pair, (tuple, list))]
    positional = list(start_and_value)
    if len(pairs) == len(padding):
        edges = [(0, 0)] * (len(extents) - len(pairs)) + [(int(low), int(high)) for low, high in pairs]
    else:
        if not positional:
            raise LayoutError(f"padding {list(padding)} is a shape; pass the start of the data after it")
        shape, starts = cast(Sequence[int], padding), cast(Sequence[int], positional.pop(0))
        edges = [(start, after - n - start) for start, after, n in zip(starts, shape, extents, strict=True)]
    fill = positional[0] if positional else value
    if len(edges) != len(extents) or any(low < 0 or high < 0 for low, high in edges):
        raise LayoutError(
            f"padding {list(padding)} does not fit {tensor.shape!r}; expected pairs (before, after) of 0 or more"
        )
    shape = [low + n + high for (low, high), n in zip(edges, extents, strict=True)]
    inside = tuple([builtins.slice(low, low + n) for (low, _), n in zip(edges, extents, strict=True)])

    def pad_part(part: NativeTensor) -> NativeTensor:
        values = part.numpy()
        whole = np.full(shape, fit_values(cast(float, fill), values.dtype), values.dtype)
        copy(values, whole[inside])
        result = create_tensor(whole, tensor.dtype, tensor.layout, tensor.tile)
        return return_to_device(result, part, memory_config, part.memory)

    return tensor.map(pad_part)


@takes_tensor
def unpad(tensor: Tensor, start: Sequence[int], end: Sequence[int]) -> Tensor:
    """Return the box of `tensor` from `start` up to, but not including, `end`.

    >>> unpad(from_torch(np.ones((4, 6), np.float32)), (0, 0), (2, 3)).shape
    Shape([2, 3])
    """
    if tensor.layout is Layout.ROW_MAJOR:
        return tensor.unpad(start, end)
    box = [builtins.slice(low, high) for low, high in zip(start, end, strict=True)]
    return tensor.map(lambda part: part.slice(*box))


@takes_tensor
def tilize(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataTypeLike | None = None,
    use_multicore: bool = True,
    use_low_perf: bool = False,
    tile: Tile | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in tiles of 32 x 32, padded with zeros, converted to `dtype`, in the memory of `memory_config`.

    `use_multicore`, `use_low_perf` and `sub_core_grids` are ignored; another `tile` is not supported.

    >>> tilize(from_torch(np.ones((5, 7), np.float32))).layout
    Layout.TILE
    """
    reject_unsupported(tile=None if tile is None or unwrap(tile).is_default else tile)
    return to_layout(tensor, Layout.TILE, dtype, memory_config)


@takes_tensor
def untilize(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in rows, without padding; block formats, which have no rows, become float32.

    `memory_config` is the memory of the result; `use_multicore` and `sub_core_grids` are ignored.

    >>> untilize(tilize(from_torch(np.ones((5, 7), np.float32)))).padded_shape
    Shape([5, 7])
    """
    dtype = DataType.FLOAT32 if tensor.dtype.format.has_blocks else None
    return to_layout(tensor, Layout.ROW_MAJOR, dtype, memory_config)


@takes_tensor
def tilize_with_val_padding(
    tensor: Tensor,
    output_tensor_shape: Sequence[int],
    pad_value: float,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataTypeLike | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in tiles, padded to `output_tensor_shape` with `pad_value`, converted to `dtype`.

    `memory_config` is the memory of the result; `use_multicore` and `sub_core_grids` are ignored.

    >>> tilize_with_val_padding(from_torch(np.ones((5, 7), np.float32)), (64, 32), 3.0).padded_shape
    Shape([64, 32])
    """

    def tilize_part(rows: NativeTensor) -> NativeTensor:
        padded, _ = pad_spec(rows.spec, output_tensor_shape)
        spec = NativeSpec(rows.shape.logical, rows.dtype, "tile", memory=rows.memory, alignment=padded.alignment)
        tiled = NativeTensor.from_pages(convert_pages(rows.pages, rows.spec, spec, pad_value), spec)
        converted = tiled if dtype is None else tiled.to_dtype(DataType.of(dtype).format)
        return return_to_device(converted, rows, memory_config)

    return untilize(tensor).map(tilize_part)


@takes_tensor
def tilize_with_zero_padding(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataTypeLike | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in tiles, padded with zeros, converted to `dtype`, in the memory of `memory_config`.

    `use_multicore` and `sub_core_grids` are ignored.

    >>> tilize_with_zero_padding(from_torch(np.ones((5, 7), np.float32))).padded_shape
    Shape([32, 32])
    """
    return to_layout(tensor, Layout.TILE, dtype, memory_config)


@takes_tensor
def untilize_with_unpadding(
    tensor: Tensor,
    output_tensor_end: Sequence[int],
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in rows, from the origin up to and including `output_tensor_end`.

    `memory_config` is the memory of the result; `use_multicore` and `sub_core_grids` are ignored.

    >>> untilize_with_unpadding(tilize(from_torch(np.ones((5, 7), np.float32))), (2, 3)).shape
    Shape([3, 4])
    """
    box = [builtins.slice(0, int(last) + 1) for last in output_tensor_end]
    return untilize(tensor).map(lambda rows: place(rows.slice(*box), memory_config))


@takes_tensor
def reciprocal(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return 1 / x for each element x of `tensor`, in its type.

    In a block format zero gives 2^127, 1.7014118346046923e+38, not infinity; and where one result of a group is much
    larger than its neighbours, they are flushed to zero. Padding is not involved. `memory_config` is the memory of
    the result; `sub_core_grids` is ignored; `output_tensor` is not supported.

    >>> x = from_torch(np.array([[0.0, 2.0]], np.float32), dtype=DataType.BFLOAT8_B)
    >>> reciprocal(x).to_list()
    [[1.7014118346046923e+38, 0.0]]
    """
    reject_unsupported(output_tensor=output_tensor)
    if not has_fractions(tensor.dtype.format):
        raise FormatError(f"expected numbers with a fraction for reciprocal, got {tensor.dtype}; use typecast first")

    def invert(part: NativeTensor) -> NativeTensor:
        values = part.numpy("float32")
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            inverse = np.float32(1) / values
        if part.dtype.has_blocks:
            inverse = np.where(values == 0, np.float32(LARGE_RECIPROCAL), inverse)
        return return_to_device(NativeTensor.from_array(inverse, part.spec, borrow=False), part, memory_config)

    return tensor.map(invert)


# Moves of whole tensors: between interleaved and sharded memory, and into tensors that are there already.


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
        output_dtype: the data type, by default the tensor's.
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
    """Raise unless the tensor and the memory config are sharded, or interleaved, as the function requires."""
    actual = (tensor.is_sharded(), config.is_sharded())
    if actual != (source, target):
        raise MemoryConfigError(
            f"{function} takes a tensor in {_WORDS[source]} memory to {_WORDS[target]} memory, got {_WORDS[actual[0]]}"
            f" and {_WORDS[actual[1]]}; use {_FUNCTIONS[actual]}"
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


def _pair_parts(source: Tensor, target: Tensor) -> list[tuple[NativeTensor, NativeTensor]]:
    """Return the parts of two tensors device by device; they must be equal but for their memory."""
    mine, theirs = source.parts.by_device, target.parts.by_device
    if len(mine) == 1:
        mine = dict.fromkeys(theirs, source.parts.first)
    if set(mine) != set(theirs):
        raise LayoutError(f"the tensors are on different devices: {source.device_coords()}, {target.device_coords()}")
    specs = source.parts.first.spec, target.parts.first.spec
    if len({(spec.shape.logical, spec.dtype, spec.page_layout, spec.tile) for spec in specs}) > 1:
        raise LayoutError(f"the tensors must have the same shape, data type and layout, got {specs[0]} and {specs[1]}")
    return [(mine[at], theirs[at]) for at in theirs]


# Parts of tensors: joined with `concat`, cut out with `slice`, and dimensions of extent 1, removed and added.


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


def _join(parts: Sequence[NativeTensor], dim: int, memory_config: MemoryConfig | None) -> NativeTensor:
    """Return native tensors joined along a dimension, where the first one is."""
    first, rank = parts[0], parts[0].shape.rank
    validate_dims([dim], rank)
    axis = dim % rank
    for part in parts:
        others = (*part.shape.logical[:axis], first.shape.logical[axis], *part.shape.logical[axis + 1 :])
        if (part.dtype, part.layout, part.tile, others) != (first.dtype, first.layout, first.tile, first.shape.logical):
            raise LayoutError(f"cannot join {first.spec} and {part.spec} along dimension {dim}: only it may differ")
    shape = list(first.shape.logical)
    shape[axis] = sum(part.shape.logical[axis] for part in parts)
    whole, start = np.empty(shape, first.dtype.value_format.dtype), 0
    for part in parts:
        end = start + part.shape.logical[axis]
        copy(part.numpy(), whole[(builtins.slice(None),) * axis + (builtins.slice(start, end),)])
        start = end
    tile = first.tile if first.spec.is_tiled else None
    result = NativeTensor.from_array(whole, NativeSpec(shape, first.dtype, first.layout, tile))
    return return_to_device(result, first, memory_config, first.memory)


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
