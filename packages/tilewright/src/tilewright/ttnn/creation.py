# SPDX-License-Identifier: Apache-2.0
"""Tensors that are created rather than converted: filled, counted, or only allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import memory
from .._dialect import unwrap
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..formats import cast, fit_values, format_of
from ..layout import as_integer
from ..memory import Topology
from ..tensor import DeviceStorage
from ..tensor import Tensor as NativeTensor
from .config import DRAM_MEMORY_CONFIG, MemoryConfig, TensorSpec
from .devices import AnyDevice, MeshDevice, MeshParts, OpenDevice
from .tensor import Tensor, create_parts, needs_truncation, require_exact, truncate
from .types import DataType, DataTypeLike, Layout, LayoutLike, reject_unsupported

__all__ = [
    "allocate_tensor_on_device", "allocate_tensor_on_host", "arange", "empty", "empty_like", "full", "full_like",
    "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip

_RANGE_TYPES = ("bfloat16", "float32", "uint16", "uint32", "int32")


def full(
    shape: Sequence[int],
    fill_value: float,
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
) -> Tensor:
    """Return a tensor of one value, which also fills its padding unless its format has blocks.

    Args:
        shape: the shape.
        fill_value: the value.
        dtype: the data type, by default bfloat16, which must then hold the value.
        layout: rows or tiles, by default tiles for block formats, rows otherwise.
        device: the device it goes to, by default the host; every device of a mesh gets all of it.
        memory_config: the memory it lies in on a device, by default DRAM; ignored on the host, as in ttnn.
        output_tensor: not supported.

    >>> full((2, 2), 2.5, DataType.FLOAT32).to_list()
    [[2.5, 2.5], [2.5, 2.5]]
    """
    reject_unsupported(output_tensor=output_tensor)
    element = DataType.BFLOAT16 if dtype is None else DataType.of(dtype)
    value = fit_values(fill_value, "int64" if isinstance(fill_value, int) else "float32")
    if dtype is None:
        require_exact(value, element.format, "ttnn.full makes bfloat16 by default")
    if needs_truncation(format_of(value.dtype), element.format):
        value = truncate(value, element.format)
    elif not element.format.has_blocks:
        value = cast(value, element.format)  # integers keep their low bits
    extents = memory.Shape(shape).logical
    return _create(np.broadcast_to(value, extents), element, layout, device, memory_config, value.item())


def _create(
    values: np.ndarray[Any, Any],
    element: DataType,
    layout: LayoutLike | None,
    device: AnyDevice | None,
    memory_config: MemoryConfig | None,
    pad_value: float = 0,
) -> Tensor:
    """Return values as a tensor on the host, or on a device in `memory_config`."""
    if element.format.has_blocks:
        layout, pad_value = Layout.TILE, 0
    parts = create_parts(values, None, element, layout=layout, pad_value=pad_value)
    return Tensor.wrap_parts(parts if device is None else parts.to_device(device, unwrap(memory_config)))


def zeros(
    shape: Sequence[int],
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Return a tensor of zeros; `shape`, `dtype`, `layout`, `device` and `memory_config` are as in `full`.

    >>> zeros((1, 2), DataType.INT32).to_list()
    [[0, 0]]
    """
    return full(shape, 0, dtype, layout, device, memory_config)


def ones(
    shape: Sequence[int],
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Return a tensor of ones; `shape`, `dtype`, `layout`, `device` and `memory_config` are as in `full`.

    >>> ones((1, 2), DataType.BFLOAT8_B).to_list()
    [[1.0, 1.0]]
    """
    return full(shape, 1, dtype, layout, device, memory_config)


def full_like(
    tensor: Tensor,
    fill_value: float,
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
) -> Tensor:
    """Return a tensor of `fill_value` with the shape of `tensor`.

    `dtype`, `layout`, `device` and `memory_config` default to the tensor's; `output_tensor` is not supported. The
    type of `tensor` must hold the value; with a `dtype` of its own it is converted.

    >>> full_like(zeros((1, 2), DataType.INT32), 7).to_list()
    [[7, 7]]
    """
    if dtype is None:
        value = fit_values(fill_value, "int64" if isinstance(fill_value, int) else "float32")
        require_exact(value, tensor.dtype.format, f"the tensor has {tensor.dtype.format}")
    return full(
        tensor.shape.logical,
        fill_value,
        tensor.dtype if dtype is None else dtype,
        tensor.layout if layout is None else layout,
        tensor.device() if device is None else device,
        tensor.memory_config() if memory_config is None else memory_config,
        output_tensor,
    )


def zeros_like(
    tensor: Tensor,
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
) -> Tensor:
    """Return a tensor of zeros with the shape of `tensor`.

    `dtype`, `layout`, `device` and `memory_config` default to the tensor's; `output_tensor` is not supported.

    >>> zeros_like(ones((1, 2), DataType.INT32)).to_list()
    [[0, 0]]
    """
    return full_like(tensor, 0, dtype, layout, device, memory_config, output_tensor)


def ones_like(
    tensor: Tensor,
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
) -> Tensor:
    """Return a tensor of ones with the shape of `tensor`.

    `dtype`, `layout`, `device` and `memory_config` default to the tensor's; `output_tensor` is not supported.

    >>> ones_like(zeros((1, 2), DataType.INT32)).to_list()
    [[1, 1]]
    """
    return full_like(tensor, 1, dtype, layout, device, memory_config, output_tensor)


def arange(
    start: int,
    end: int | None = None,
    step: int = 1,
    *,
    dtype: DataTypeLike | None = None,
    device: AnyDevice | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    layout: LayoutLike = Layout.ROW_MAJOR,
) -> Tensor:
    """Return the integers from `start` up to, but not including, `end`, in steps of `step`; of one argument, from 0.

    Args:
        start, end, step: integers; the step must lead from start to end.
        dtype: bfloat16, float32, uint16, uint32 or int32; by default bfloat16, which must then hold all of them.
        device: the device it goes to, by default the host.
        memory_config: the memory it lies in on a device.
        layout: rows or tiles.

    >>> arange(2, 10, 3, dtype=DataType.INT32).to_list()
    [2, 5, 8]
    """
    low, high = (0, start) if end is None else (start, end)
    low, high, step = [as_integer(n, "a limit or step of arange") for n in (low, high, step)]
    if not step or (high - low) * step < 0:
        raise LayoutError(f"expected a step other than 0 from {low} towards {high}, got {step}")
    element = DataType.BFLOAT16 if dtype is None else DataType.of(dtype)
    if element.format.name not in _RANGE_TYPES:
        raise FormatError(f"arange makes {', '.join(_RANGE_TYPES)}, got {element}; use typecast on its result")
    values = np.arange(low, high, step)
    if dtype is None:
        require_exact(values, element.format, "ttnn.arange makes bfloat16 by default")
    return _create(values, element, layout, device, memory_config)


# Memory without values.


def empty(
    shape: Sequence[int],
    dtype: DataTypeLike = DataType.BFLOAT16,
    layout: LayoutLike = Layout.ROW_MAJOR,
    device: OpenDevice | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
) -> Tensor:
    """Return a tensor on a device with whatever its memory holds; every device of a mesh gets one.

    Args:
        shape: the shape.
        dtype: the data type.
        layout: rows or tiles.
        device: the device or mesh, which is required.
        memory_config: the memory it lies in.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     empty((32, 32), device=device).buffer_address()
    1048640
    """
    if device is None:
        raise MemoryConfigError("empty needs a device; on the host, use zeros")
    return allocate_tensor_on_device(shape, dtype, layout, device, memory_config)


def empty_like(
    tensor: Tensor,
    *,
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    device: OpenDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Return a tensor on `device` with the shape of `tensor`, and whatever its memory holds.

    `dtype`, `layout`, `device` and `memory_config` default to the tensor's.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     empty_like(zeros((32, 32), device=device)).buffer_address()
    1048832
    """
    target = tensor.device() if device is None else device
    if target is None:
        raise MemoryConfigError("empty_like needs a device, or a tensor on one; on the host, use zeros_like")
    config = tensor.memory_config() if memory_config is None else memory_config
    element, pages = dtype or tensor.dtype, layout or tensor.layout
    return allocate_tensor_on_device(TensorSpec(tensor.shape.logical, element, pages, config), target)


def allocate_tensor_on_device(
    shape: Sequence[int] | TensorSpec,
    *arguments: Any,  # a device, or a data type, a layout, a device and a memory config
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    mesh_device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Return a tensor on a device with whatever its memory holds; every device of a mesh gets one.

    Args:
        shape: the shape, or a spec, which takes the place of `dtype`, `layout` and `memory_config`.
        arguments: those below by position: for a spec the device, for a shape all in this order.
        dtype: the data type.
        layout: rows or tiles.
        mesh_device: the device or mesh.
        memory_config: the memory it lies in, by default DRAM.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     allocate_tensor_on_device([32, 32], DataType.BFLOAT16, Layout.TILE, device).storage_type()
    StorageType.DEVICE
    """
    spec, device = _bind_allocation(shape, arguments, dtype, layout, mesh_device, memory_config)

    def allocate(chip: memory.Device) -> NativeTensor:
        placed = spec.with_chip(chip.chip)
        return NativeTensor(placed, DeviceStorage(chip, chip.allocate(placed)))

    return _on_each_device(device, allocate, on_host=False)


def allocate_tensor_on_host(
    shape: Sequence[int] | TensorSpec,
    *arguments: Any,  # a device, or a data type, a layout, a device and a memory config
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    mesh_device: AnyDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Return a tensor of zeros on the host, with a part for each device of `mesh_device`.

    `shape`, `arguments`, `dtype`, `layout` and `memory_config` are as in `allocate_tensor_on_device`.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     allocate_tensor_on_host([1, 2], DataType.INT32, Layout.ROW_MAJOR, device).to_list()
    [[0, 0]]
    """
    spec, device = _bind_allocation(shape, arguments, dtype, layout, mesh_device, memory_config)

    def allocate(_: memory.Device) -> NativeTensor:
        return NativeTensor.from_pages(np.zeros(spec.nbytes, np.uint8), spec)

    return _on_each_device(device, allocate, on_host=True)


def _on_each_device(device: AnyDevice, create: Callable[[memory.Device], NativeTensor], on_host: bool) -> Tensor:
    """Return a tensor with a new part for each device; every dimension of a mesh replicates."""
    if not isinstance(device, MeshDevice):
        return Tensor.wrap(create(device))
    parts = {tuple(at): create(device.get_device(at)) for at in device.shape.coordinates()}
    shape = tuple(device.shape)
    topology = Topology(shape, (None,) * len(shape), tuple(parts))
    return Tensor.wrap_parts(MeshParts(parts, shape, topology, None if on_host else device))


def _bind_allocation(
    shape: Sequence[int] | TensorSpec, arguments: tuple[Any, ...], *settings: Any
) -> tuple[memory.TensorSpec, AnyDevice]:
    """Return the spec and the device of an allocation; `settings` are dtype, layout, device, memory config, or None."""
    names = ("mesh_device",) if isinstance(shape, TensorSpec) else ("dtype", "layout", "mesh_device", "memory_config")
    if len(arguments) > len(names):
        raise TypeError(f"expected {', '.join(names)} after the shape or spec, got {len(arguments)} arguments")
    bound: dict[str, Any] = dict(zip(("dtype", "layout", "mesh_device", "memory_config"), settings, strict=True))
    bound |= dict(zip(names, arguments, strict=False))
    device = bound.pop("mesh_device")
    if device is None:
        raise MemoryConfigError("an allocation needs a device, such as mesh_device=ttnn.open_mesh_device(...)")
    if isinstance(shape, TensorSpec):
        return shape.native, device
    if bound["dtype"] is None or bound["layout"] is None:
        raise MemoryConfigError("an allocation of a shape needs a dtype and a layout")
    config = bound["memory_config"] or DRAM_MEMORY_CONFIG
    return TensorSpec(shape, bound["dtype"], bound["layout"], config).native, device
