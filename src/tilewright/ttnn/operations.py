# SPDX-License-Identifier: Apache-2.0
"""The functions of ttnn that make, move and change tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..copying import copy
from ..errors import LayoutError, MemoryConfigError
from ..memory import PageLayout
from ..memory import TensorSpec as PlainSpec
from ..tensor.page_operations import convert_pages, pad_spec
from .arguments import reject_unsupported
from .data_types import DataType, DataTypeLike
from .devices import Device, known_device
from .memory import MemoryConfig
from .specs import TensorSpec
from .tensor import Tensor
from .wrapper import unwrap

LARGE_RECIPROCAL = 2.0**127  # what a block format gives for 1 / 0


# Making tensors.


def from_torch(
    tensor: Any,
    dtype: DataTypeLike | None = None,
    *,
    spec: TensorSpec | None = None,
    tile: Any = None,
    pad_value: float | None = None,
    layout: Any = None,
    device: Any = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: object = None,
    cq_id: object = None,
    preserve_nan_values: bool = False,
    col_tilize: bool = False,
    enable_bfloat_opt: bool = False,
) -> Tensor:
    """Return the tensor of an array of torch or NumPy; memory is shared where rows and types agree.

    >>> from_torch(np.ones((5, 7), np.float32), dtype=DataType.BFLOAT8_B).layout
    PageLayout.TILE
    """
    if spec is not None:
        clashing = [dtype, layout, memory_config, tile]
        if any(each is not None for each in clashing) or spec.shape != list(np.shape(tensor)):
            raise MemoryConfigError(
                f"a spec of shape {list(spec.shape)} was given for an array of shape {list(np.shape(tensor))}; the"
                " shapes must agree, and dtype, layout, tile and memory_config must be left to the spec"
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


def to_torch(
    tensor: Tensor,
    dtype: Any = None,
    *,
    torch_rank: int | None = None,
    mesh_composer: object = None,
    device: Any = None,
    cq_id: object = None,
) -> Any:
    """Return the values as a tensor of torch if the program uses torch, as an array otherwise.

    >>> to_torch(from_torch(np.ones((1, 2), np.float32)), torch_rank=1).tolist()
    [1.0, 1.0]
    """
    reject_unsupported(mesh_composer=mesh_composer)
    held = tensor if torch_rank is None else squeezed(tensor, torch_rank)
    values = held.to_torch()
    if dtype is None:
        return values
    return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(dtype=dtype)


def to_numpy(tensor: Tensor, dtype: DataTypeLike | None = None) -> np.ndarray[Any, Any]:
    """Return the values as an array; block formats become float32.

    >>> to_numpy(from_torch(np.ones((1, 2), np.float32), dtype=DataType.BFLOAT4_B)).tolist()
    [[1.0, 1.0]]
    """
    return tensor.plain.numpy(dtype)


def squeezed(tensor: Tensor, rank: int) -> Tensor:
    """Return the tensor with leading ones taken away down to a rank.

    >>> squeezed(from_torch(np.ones((1, 1, 2), np.float32)), 2).shape
    Shape([1, 2])
    """
    extra = max(0, tensor.shape.rank - rank)
    if any(n != 1 for n in tensor.shape.logical[:extra]):
        raise LayoutError(f"{tensor.shape!r} cannot have rank {rank}: only leading ones can be taken away")
    return tensor.reshape(tensor.shape.logical[extra:]) if extra else tensor


# Moving tensors.


def to_device(
    tensor: Tensor,
    device: Device,
    memory_config: MemoryConfig | None = None,
    queue_id: object = None,
    *,
    cq_id: object = None,
) -> Tensor:
    """Return the tensor on a device, in the memory it is meant for or in another.

    >>> to_device(from_torch(np.ones((1, 2), np.float32)), Device("wormhole_n150")).buffer_address()
    1048640
    """
    return Tensor.wrap(tensor.plain.to_device(device, unwrap(memory_config)))


def from_device(tensor: Tensor, blocking: bool = True, queue_id: object = None, *, cq_id: object = None) -> Tensor:
    """Return the tensor on the host.

    >>> from_device(to_device(from_torch(np.ones((1, 2), np.float32)), Device("wormhole_n150"))).to_list()
    [[1.0, 1.0]]
    """
    return tensor.cpu()


def to_memory_config(
    tensor: Tensor, memory_config: MemoryConfig, dtype: DataTypeLike | None = None, *, device: Any = None
) -> Tensor:
    """Return the tensor in another memory of its device; from the host it goes to the device named or open.

    >>> from tilewright.ttnn import L1_MEMORY_CONFIG, manage_device
    >>> with manage_device() as opened:
    ...     to_memory_config(from_torch(np.ones((1, 2), np.float32)), L1_MEMORY_CONFIG).buffer_address()
    1499104
    """
    held = tensor if dtype is None else to_dtype(tensor, dtype)
    target = known_device(held.device(), device)
    return Tensor.wrap(held.plain.to_device(target, unwrap(memory_config)))


def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Give the memory of a tensor on its device back.

    >>> deallocate(from_torch(np.ones((1, 2), np.float32)))
    """
    tensor.deallocate(force)


def get_memory_config(tensor: Tensor) -> MemoryConfig:
    """Return the memory config of a tensor.

    >>> get_memory_config(from_torch(np.ones((1, 2), np.float32))).interleaved
    True
    """
    return tensor.memory_config()


# Changing tensors.


def to_layout(
    tensor: Tensor,
    layout: Any,
    dtype: DataTypeLike | None = None,
    memory_config: MemoryConfig | None = None,
    *,
    sub_core_grids: object = None,
    pad_value: Any = 0.0,
) -> Tensor:
    """Return the tensor in tiles, padded with a value, or in rows, without padding.

    >>> to_layout(from_torch(np.ones((5, 7), np.float32)), PageLayout.TILE).padded_shape
    Shape([32, 32])
    """
    held = tensor if dtype is None else to_dtype(tensor, dtype)
    return _placed(held.plain.to_layout(layout, pad_value=pad_value), memory_config)


def to_dtype(tensor: Tensor, dtype: DataTypeLike) -> Tensor:
    """Return the tensor in another data type; padding is converted with the data.

    >>> to_dtype(from_torch(np.ones((5, 7), np.float32)), DataType.BFLOAT16).dtype
    DataType.BFLOAT16
    """
    return Tensor.wrap(tensor.plain.to_dtype(DataType.of(dtype).format))


def typecast(
    tensor: Tensor,
    dtype: DataTypeLike,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in another data type, and in another memory if one is given.

    >>> typecast(from_torch(np.ones((5, 7), np.float32)), DataType.INT32).to_list()[0][:2]
    [1, 1]
    """
    reject_unsupported(output_tensor=output_tensor)
    return _placed(to_dtype(tensor, dtype).plain, memory_config)


def _placed(held: Any, memory_config: MemoryConfig | None) -> Tensor:
    return Tensor.wrap(held if memory_config is None else held.to_memory_config(unwrap(memory_config)))


def reshape(tensor: Tensor, shape: Iterable[int]) -> Tensor:
    """Return the same elements in another shape, also of tiled tensors.

    >>> reshape(from_torch(np.ones((4, 6), np.float32)), (2, -1)).shape
    Shape([2, 12])
    """
    return tensor.reshape(shape)


def permute(tensor: Tensor, dims: Any) -> Tensor:
    """Return the tensor with its dimensions in another order.

    >>> permute(from_torch(np.ones((4, 6), np.float32)), (1, 0)).shape
    Shape([6, 4])
    """
    return Tensor.wrap(tensor.plain.permute(dims))


def transpose(tensor: Tensor, dim1: int, dim2: int) -> Tensor:
    """Return the tensor with two dimensions exchanged.

    >>> transpose(from_torch(np.ones((4, 6), np.float32)), 0, 1).shape
    Shape([6, 4])
    """
    return Tensor.wrap(tensor.plain.transpose(dim1, dim2))


def pad(
    tensor: Tensor,
    padding: Any,
    *rest: Any,
    value: Any = 0,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return a larger tensor: padding is (before, after) for each dimension, or a shape followed by a start.

    >>> pad(from_torch(np.ones((2, 2), np.float32)), [(0, 1), (1, 0)], 5).to_list()
    [[5.0, 1.0, 1.0], [5.0, 1.0, 1.0], [5.0, 5.0, 5.0]]
    >>> pad(from_torch(np.ones((1, 1), np.float32)), [2, 2], [0, 0], 5).to_list()
    [[1.0, 5.0], [5.0, 5.0]]
    """
    extents = tensor.shape.logical
    if all(isinstance(each, (tuple, list)) for each in padding):
        edges = [(0, 0)] * (len(extents) - len(padding)) + [(int(low), int(high)) for low, high in padding]
        fill = rest[0] if rest else value
    else:
        start = list(rest[0])
        edges = [(at, whole - n - at) for at, whole, n in zip(start, padding, extents, strict=True)]
        fill = rest[1] if len(rest) > 1 else value
    if len(edges) != len(extents) or any(low < 0 or high < 0 for low, high in edges):
        raise LayoutError(
            f"padding {list(padding)} does not fit {tensor.shape!r}; give pairs (before, after) of 0 or more"
        )
    values = tensor.to_numpy()
    shape = [low + n + high for (low, high), n in zip(edges, extents, strict=True)]
    whole = np.full(shape, fill, values.dtype)
    copy(values, whole[tuple([slice(low, low + n) for (low, _), n in zip(edges, extents, strict=True)])])
    result = from_torch(whole, tensor.dtype, layout=tensor.layout, tile=tensor.tile)
    held = to_device(result, tensor.device(), tensor.memory_config()) if tensor.device() else result
    return _placed(held.plain, memory_config)


def unpad(tensor: Tensor, start: Any, end: Any) -> Tensor:
    """Return the box from start up to, not including, end.

    >>> unpad(from_torch(np.ones((4, 6), np.float32)), (0, 0), (2, 3)).shape
    Shape([2, 3])
    """
    if tensor.layout is PageLayout.ROW_MAJOR:
        return tensor.unpad(start, end)
    return Tensor.wrap(tensor.plain.slice(*[slice(a, b) for a, b in zip(start, end, strict=True)]))


def tilize(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataTypeLike | None = None,
    use_multicore: bool = True,
    use_low_perf: bool = False,
    tile: Any = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in tiles, padded with zeros where needed.

    >>> tilize(from_torch(np.ones((5, 7), np.float32))).layout
    PageLayout.TILE
    """
    reject_unsupported(tile=None if tile is None or unwrap(tile).is_default else tile)
    return to_layout(tensor, PageLayout.TILE, dtype, memory_config)


def untilize(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in rows, without padding; block formats, which have no rows, become float32.

    >>> untilize(tilize(from_torch(np.ones((5, 7), np.float32)))).padded_shape
    Shape([5, 7])
    """
    dtype = DataType.FLOAT32 if tensor.plain.dtype.has_blocks else None
    return to_layout(tensor, PageLayout.ROW_MAJOR, dtype, memory_config)


def tilize_with_val_padding(
    tensor: Tensor,
    output_tensor_shape: Any,
    pad_value: Any,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataTypeLike | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in tiles with a given padded shape, filled with a value.

    >>> tilize_with_val_padding(from_torch(np.ones((5, 7), np.float32)), (64, 32), 3.0).padded_shape
    Shape([64, 32])
    """
    rows = untilize(tensor).plain
    room = pad_spec(rows.spec, output_tensor_shape)[0]
    spec = PlainSpec(rows.shape.logical, rows.dtype, "tile", memory=rows.memory, alignment=room.alignment)
    held = type(rows).from_pages(convert_pages(rows.pages, rows.spec, spec, pad_value), spec)
    held = held if dtype is None else held.to_dtype(DataType.of(dtype).format)
    device = tensor.device()
    return _placed(held if device is None else held.to_device(device), memory_config)


def tilize_with_zero_padding(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataTypeLike | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in tiles, padded with zeros.

    >>> tilize_with_zero_padding(from_torch(np.ones((5, 7), np.float32))).padded_shape
    Shape([32, 32])
    """
    return to_layout(tensor, PageLayout.TILE, dtype, memory_config)


def untilize_with_unpadding(
    tensor: Tensor,
    output_tensor_end: Any,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Return the tensor in rows, from the origin up to and including an end.

    >>> untilize_with_unpadding(tilize(from_torch(np.ones((5, 7), np.float32))), (2, 3)).shape
    Shape([3, 4])
    """
    rows = untilize(tensor).plain
    return _placed(rows.slice(*[slice(0, int(last) + 1) for last in output_tensor_end]), memory_config)


def reciprocal(
    tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Return 1 / x, element by element, in the type of x.

    In a block format zero gives 2^127, 1.7014118346046923e+38, not infinity; and where one result of a group is much
    larger than its neighbours, they are flushed to zero. Padding takes no part.

    >>> x = from_torch(np.array([[0.0, 2.0]], np.float32), dtype=DataType.BFLOAT8_B)
    >>> reciprocal(x).to_list()
    [[1.7014118346046923e+38, 0.0]]
    """
    reject_unsupported(output_tensor=output_tensor)
    values = tensor.plain.numpy("float32")
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        inverse = np.float32(1) / values
    if tensor.plain.dtype.has_blocks:
        inverse = np.where(values == 0, np.float32(LARGE_RECIPROCAL), inverse)
    spec = tensor.plain.spec
    result = type(tensor.plain).from_array(inverse, spec, borrow=False)
    return _placed(result if tensor.device() is None else result.to_device(tensor.device()), memory_config)
