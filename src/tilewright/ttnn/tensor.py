# SPDX-License-Identifier: Apache-2.0
"""`ttnn.Tensor`, around a tilewright tensor."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import tensor
from ..errors import LayoutError, MemoryConfigError
from ..layout.tuples import round_up
from ..memory import PageLayout
from .arguments import bind_by_type, reject_unsupported
from .data_types import DataType, StorageType
from .devices import Device
from .memory import MemoryConfig
from .shapes import Shape, TensorProperties, Tile
from .specs import TensorSpec
from .tensor_creation import create_tensor
from .wrapper import unwrap

TILE_SIZE = 32

_ARGUMENTS = {
    "data_type": DataType,
    "layout": PageLayout,
    "mem_config": MemoryConfig,
    "tile": Tile,
    "device": Device,
    "shape": (list, tuple, Shape),
    "pad_value": (int, float),
}


class Tensor(TensorProperties[tensor.Tensor]):
    """A tensor of ttnn: made from an array of NumPy or torch, or from a list and a shape.

    >>> x = Tensor(np.ones((5, 7), np.float32), DataType.BFLOAT16, layout=PageLayout.TILE)
    >>> print(x.shape, x.dtype, x.storage_type())
    ttnn.Shape([5[32], 7[32]]) DataType.BFLOAT16 StorageType.HOST
    >>> Tensor([1, 2, 3, 4], [1, 1, 2, 2], DataType.INT32, PageLayout.ROW_MAJOR).to_list()
    [[[[1, 2], [3, 4]]]]
    """

    __slots__ = ()

    def __init__(
        self,
        tensor: Any = None,
        *given: Any,
        data: Any = None,
        shape: Any = None,
        data_type: Any = None,
        device: Any = None,
        layout: Any = None,
        mem_config: MemoryConfig | None = None,
        memory_config: MemoryConfig | None = None,
        tile: Any = None,
        pad_value: float | None = None,
        col_tilize: bool = False,
        cq_id: object = None,
        mesh_mapper: object = None,
        preserve_nan_values: bool = False,
        enable_bfloat_opt: bool = False,
    ) -> None:
        reject_unsupported(
            mesh_mapper=mesh_mapper, preserve_nan_values=preserve_nan_values, enable_bfloat_opt=enable_bfloat_opt
        )
        if tensor is not None and data is not None:
            raise TypeError("ttnn.Tensor got tensor and data; give one of them")
        source = data if tensor is None else tensor
        named = {"shape": shape, "data_type": data_type, "device": device, "layout": layout, "tile": tile}
        named |= {"pad_value": pad_value, "mem_config": memory_config if mem_config is None else mem_config}
        if None not in (mem_config, memory_config):
            raise TypeError("ttnn.Tensor got mem_config and memory_config, two names of one thing; give one of them")
        found = bind_by_type(_ARGUMENTS, given, "ttnn.Tensor", **named)
        if isinstance(source, Tensor):
            if found:
                raise TypeError(f"a copy of a ttnn.Tensor takes no {', '.join(found)}; see ttnn.to_layout and its kin")
            self.plain = source.plain
            return
        shape, data_type = found.get("shape"), found.get("data_type")
        if shape is not None:
            flat = np.asarray(source)
            if flat.size != prod(shape):
                raise LayoutError(f"{flat.size} elements do not make a tensor of shape {list(shape)}")
            whole = flat.dtype.kind in "iu" and (data_type is None or DataType.of(data_type).format.name in _INTEGERS)
            source = flat.reshape(tuple(shape)).astype(np.int32 if whole and _fits(flat) else np.float32)
        self.plain = create_tensor(
            source,
            data_type,
            found.get("layout"),
            unwrap(found.get("tile")),
            found.get("pad_value"),
            unwrap(found.get("mem_config")),
            col_tilize,
            found.get("device"),
        )

    # What it is.

    @property
    def padded_shape(self) -> Shape:
        """Return the extents with padding.

        >>> Tensor(np.ones((5, 7), np.float32), layout=PageLayout.TILE).padded_shape
        Shape([32, 32])
        """
        return Shape(self.plain.padded_shape)

    @property
    def spec(self) -> TensorSpec:
        """Return the spec.

        >>> Tensor(np.ones((5, 7), np.float32)).spec.dtype
        DataType.FLOAT32
        """
        return TensorSpec.wrap(self.plain.spec)

    def memory_config(self) -> MemoryConfig:
        """Return the memory config.

        >>> Tensor(np.ones((5, 7), np.float32)).memory_config().is_sharded()
        False
        """
        return MemoryConfig.wrap(self.plain.memory)

    def storage_type(self) -> StorageType:
        """Return whether the bytes are on the host or on a device; `plain.storage_type` also says who owns them.

        >>> Tensor(np.ones((5, 7), np.float32)).storage_type()
        <StorageType.HOST: 0>
        """
        return StorageType.of(self.plain.storage_type)

    def device(self) -> Any:
        """Return the device, None on the host.

        >>> Tensor(np.ones((5, 7), np.float32)).device() is None
        True
        """
        return self.plain.device

    def get_dtype(self) -> DataType:
        """Return the data type.

        >>> Tensor(np.ones((5, 7), np.float32)).get_dtype()
        DataType.FLOAT32
        """
        return self.dtype

    def get_layout(self) -> PageLayout:
        """Return whether pages are rows or tiles.

        >>> Tensor(np.ones((5, 7), np.float32)).get_layout()
        PageLayout.ROW_MAJOR
        """
        return self.layout

    def get_tile(self) -> Tile:
        """Return the tile.

        >>> Tensor(np.ones((5, 7), np.float32)).get_tile().num_faces
        4
        """
        return self.tile

    def is_sharded(self) -> bool:
        """Return whether pages are gathered in shards.

        >>> Tensor(np.ones((5, 7), np.float32)).is_sharded()
        False
        """
        return self.plain.memory.is_sharded

    def is_allocated(self) -> bool:
        """Return whether the bytes are there.

        >>> Tensor(np.ones((5, 7), np.float32)).is_allocated()
        True
        """
        return self.plain.is_allocated()

    def volume(self) -> int:
        """Return the number of elements, padding included.

        >>> Tensor(np.ones((5, 7), np.float32), layout=PageLayout.TILE).volume()
        1024
        """
        return prod(self.plain.padded_shape)

    def logical_volume(self) -> int:
        """Return the number of elements that are data.

        >>> Tensor(np.ones((5, 7), np.float32), layout=PageLayout.TILE).logical_volume()
        35
        """
        return self.plain.shape.logical_volume()

    def element_size(self) -> int:
        """Return the bytes of an element, 1 for block formats.

        >>> Tensor(np.ones((5, 7), np.float32)).element_size()
        4
        """
        return getattr(self.plain.dtype, "itemsize", 1)

    # Its buffer on a device.

    def _block(self) -> Any:
        if self.plain.device is None:
            raise MemoryConfigError("a tensor on the host has no buffer on a device; use to_device first")
        return self.plain.storage.allocation  # type: ignore[union-attr]

    def buffer_address(self) -> int:
        """Return the address of the buffer in every bank.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_address()
        1048640
        """
        return int(self._block().address)

    def buffer_page_size(self) -> int:
        """Return the bytes of a page.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_page_size()
        28
        """
        self._block()
        return self.plain.spec.page_bytes

    def buffer_aligned_page_size(self) -> int:
        """Return the bytes from one page to the next in a bank.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_aligned_page_size()
        32
        """
        self._block()
        return self.plain.spec.aligned_page_bytes

    def buffer_num_pages(self) -> int:
        """Return the number of pages.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_num_pages()
        5
        """
        self._block()
        return self.plain.spec.num_pages

    # Its values.

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """Return the values as an array; bfloat16 as ml_dtypes knows it, block formats as float32.

        >>> Tensor([1, 2], [2], DataType.BFLOAT16).to_numpy()
        array([1, 2], dtype=bfloat16)
        """
        return self.plain.numpy()

    def to_torch(self) -> Any:
        """Return the values as a tensor of torch if the program uses torch, as an array otherwise.

        >>> Tensor([1, 2], [2], DataType.INT32).to_torch().tolist()
        [1, 2]
        """
        torch = sys.modules.get("torch")
        return self.plain.numpy() if torch is None else torch.from_dlpack(self.plain)

    def to_list(self) -> Any:
        """Return the values as nested lists.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).to_list()
        [[1, 2]]
        """
        return self.plain.numpy().tolist()

    def item(self) -> Any:
        """Return the only element.

        >>> Tensor([2.5], [1], DataType.FLOAT32).item()
        2.5
        """
        return self.plain.item()

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray[Any, Any]:
        return self.plain.__array__(*arguments, **options)

    def __dlpack__(self, **options: Any) -> Any:
        return self.plain.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.plain.__dlpack_device__()

    def __len__(self) -> int:
        return len(self.plain)

    # Operations.

    def to(self, target: Any, mem_config: MemoryConfig | None = None) -> Tensor:
        """Return the tensor on a device, or in another layout with zeros as padding.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).to(PageLayout.TILE).layout
        PageLayout.TILE
        """
        if isinstance(target, PageLayout):
            return Tensor.wrap(self.plain.to_layout(target))
        return Tensor.wrap(self.plain.to_device(target, unwrap(mem_config)))

    def cpu(self) -> Tensor:
        """Return the tensor on the host.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).cpu().to_list()
        [[1, 2]]
        """
        return Tensor.wrap(self.plain.from_device())

    def reshape(self, *shape: Iterable[int]) -> Tensor:
        """Return the same elements in another shape.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).reshape(2, 1).to_list()
        [[1], [2]]
        """
        return Tensor.wrap(self.plain.reshape(*shape))

    def pad(self, output_padded_shape: Any, input_tensor_start: Any, pad_value: float) -> Tensor:
        """Return the tensor with more padding around its data; rows only.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).pad([2, 4], [0, 0], 9).padded_shape
        Shape([2, 4])
        """
        return Tensor.wrap(self.plain.pad(output_padded_shape, input_tensor_start, pad_value))

    def unpad(self, start: Any, end: Any) -> Tensor:
        """Return the box from start up to, not including, end; rows only.

        >>> Tensor([1, 2, 3, 4], [2, 2], DataType.INT32).unpad([0, 1], [2, 2]).to_list()
        [[2], [4]]
        """
        return Tensor.wrap(self.plain.unpad(start, end))

    def pad_to_tile(self, pad_value: float) -> Tensor:
        """Return the tensor in rows, with its last two dimensions padded to multiples of 32.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).pad_to_tile(0.0).padded_shape
        Shape([32, 32])
        """
        extents = self.plain.shape.logical
        whole = [*extents[:-2], *(round_up(n, TILE_SIZE) for n in extents[-2:])]
        return Tensor.wrap(self.plain.pad(whole, None, pad_value))

    def unpad_from_tile(self, shape: Sequence[int]) -> Tensor:
        """Return the box of this shape from the origin; rows only.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).pad_to_tile(0.0).unpad_from_tile([1, 2]).padded_shape
        Shape([1, 2])
        """
        return self.unpad([0] * len(shape), shape)

    def __getitem__(self, ranges: Any) -> Tensor:
        given = ranges if isinstance(ranges, tuple) else (ranges,)
        part = self.plain.slice(*given)
        spread = list(given)
        if Ellipsis in spread:
            at = spread.index(Ellipsis)
            spread[at : at + 1] = [slice(None)] * (part.shape.rank - len(spread) + 1)
        single = {d for d, each in enumerate(spread) if not isinstance(each, slice)}
        kept = [n for d, n in enumerate(part.shape) if d not in single]
        return Tensor.wrap(part.reshape(kept) if single else part)

    def deallocate(self, force: bool = True) -> None:
        """Give the memory on the device back.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).deallocate()
        """
        self.plain.deallocate()

    def __repr__(self) -> str:
        values = np.array2string(self.plain.numpy().astype(np.float64), threshold=64, edgeitems=2)
        return f"ttnn.Tensor({values}, shape={self.shape!r}, dtype={self.dtype!r}, layout=Layout.{self.layout})"

    __str__ = __repr__


_INTEGERS = ("uint8", "uint16", "uint32", "int8", "int32")


def _fits(values: np.ndarray[Any, Any]) -> bool:
    limits = np.iinfo(np.int32)
    return not values.size or bool(values.min() >= limits.min and values.max() <= limits.max)
