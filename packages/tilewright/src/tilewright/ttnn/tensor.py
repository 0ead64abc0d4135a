# SPDX-License-Identifier: Apache-2.0
"""`ttnn.Tensor`, around a tensor of the core, or around the parts of one on the devices of a mesh."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import wraps
from math import prod
from types import EllipsisType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, tensor
from .._integers import round_up
from ..errors import MemoryConfigError
from ..tensor.page_storage import DeviceStorage
from .devices import AnyDevice, Device
from .enums import DataType, DataTypeLike, Layout, LayoutLike, StorageType
from .memory import MemoryConfig
from .mesh_device import MeshDevice
from .mesh_mappers import MeshToTensor, TensorToMesh
from .mesh_parts import MeshParts
from .meshes import MeshCoordinate, TensorTopology
from .printing import tensor_text
from .tensor_spec import Shape, TensorProperties, TensorSpec, Tile, TileLike
from .tensor_values import create_parts, reshape_values
from .wrapper import bind_by_type, reject_unsupported, unwrap

TILE_SIZE = 32

TensorArgument: TypeAlias = (
    Sequence[int] | DataType | Layout | MemoryConfig | Tile | memory.Device | MeshDevice | float | None
)
Index: TypeAlias = int | slice | EllipsisType

_ARGUMENT_TYPES: dict[str, type | tuple[type, ...]] = {
    "data_type": DataType,
    "layout": (Layout, memory.PageLayout),
    "mem_config": MemoryConfig,
    "tile": Tile,
    "device": (Device, MeshDevice),
    "shape": (list, tuple, Shape),
    "pad_value": (int, float),
}


class Tensor(TensorProperties[tensor.Tensor]):
    """A tensor of ttnn: made from an array of NumPy or torch, or from a list and a shape.

    Args:
        tensor: the array, or a ttnn tensor; also called `data`.
        arguments: `shape`, `data_type`, `device`, `layout`, `mem_config`, `tile` and `pad_value` by their type.
        shape: the shape, if the values are a flat list.
        data_type: by default that of the array, or the one ttnn has instead.
        device: the device it goes to, by default the host.
        layout: by default tiles for block formats, rows otherwise.
        mem_config: the memory it lies in on a device; also called `memory_config`.
        tile: the tile, by default 32 x 32.
        pad_value: the value of padding, by default 0.
        col_tilize: transpose the last two dimensions first; block formats only.
        cq_id: ignored.
        mesh_mapper: how the values are cut for the devices of a mesh, such as `ShardTensorToMesh(mesh_device, dim=0)`.
        preserve_nan_values, enable_bfloat_opt: not supported.

    >>> x = Tensor(np.ones((5, 7), np.float32), DataType.BFLOAT16, layout=Layout.TILE)
    >>> print(x.shape, x.dtype, x.storage_type())
    ttnn.Shape([5[32], 7[32]]) DataType.BFLOAT16 StorageType.HOST
    >>> Tensor([1, 2, 3, 4], [1, 1, 2, 2], DataType.INT32, Layout.ROW_MAJOR).to_list()
    [[[[1, 2], [3, 4]]]]
    """

    __slots__ = ("_parts",)
    _parts: MeshParts

    def __init__(
        self,
        tensor: ArrayLike | Tensor | None = None,
        *arguments: TensorArgument,
        data: ArrayLike | None = None,
        shape: Sequence[int] | None = None,
        data_type: DataTypeLike | None = None,
        device: AnyDevice | None = None,
        layout: LayoutLike | None = None,
        mem_config: MemoryConfig | None = None,
        memory_config: MemoryConfig | None = None,
        tile: TileLike | None = None,
        pad_value: float | None = None,
        col_tilize: bool = False,
        cq_id: object = None,
        mesh_mapper: TensorToMesh | None = None,
        preserve_nan_values: bool = False,
        enable_bfloat_opt: bool = False,
    ) -> None:
        reject_unsupported(preserve_nan_values=preserve_nan_values, enable_bfloat_opt=enable_bfloat_opt)
        if tensor is not None and data is not None:
            raise TypeError("ttnn.Tensor got both tensor and data; pass one of them")
        source: Any = data if tensor is None else tensor  # what is not an array is rejected below
        if None not in (mem_config, memory_config):
            raise TypeError("ttnn.Tensor got both mem_config and memory_config, which mean the same; pass one of them")
        config = memory_config if mem_config is None else mem_config
        named: dict[str, object] = {"shape": shape, "data_type": data_type, "device": device, "layout": layout}
        named |= {"tile": tile, "pad_value": pad_value, "mem_config": config}
        properties = bind_by_type("ttnn.Tensor", _ARGUMENT_TYPES, arguments, named)
        if isinstance(source, Tensor):
            if properties:
                names = ", ".join(properties)
                raise TypeError(
                    f"ttnn.Tensor of a tensor cannot change its {names}; use ttnn.to_layout, to_dtype or to_device"
                )
            self._parts = source._parts
            return
        dtype: DataTypeLike | None = properties.pop("data_type", None)
        if "shape" in properties:
            source = reshape_values(np.asarray(source), tuple(properties.pop("shape")), dtype)
        config, target = properties.pop("mem_config", None), properties.pop("device", None)
        parts = create_parts(source, mesh_mapper, dtype, memory_config=config, col_tilize=col_tilize, **properties)
        self._parts = parts if target is None else parts.to_device(target, None)

    # Parts on a mesh.

    @classmethod
    def wrap_parts(cls, parts: MeshParts) -> Tensor:
        """Return the tensor of these parts.

        >>> Tensor.wrap_parts(MeshParts.single(tensor.Tensor.of([[1, 2]]))).shape
        Shape([1, 2])
        """
        wrapper = object.__new__(cls)
        wrapper._parts = parts
        return wrapper

    @property
    def plain(self) -> tensor.Tensor:
        """Return the tensor of the core; raise if this one is distributed over several devices.

        >>> Tensor(np.ones((5, 7), np.float32)).plain.nbytes
        140
        """
        return self._parts.only()

    @plain.setter
    def plain(self, value: tensor.Tensor) -> None:
        self._parts = MeshParts.single(value)

    @property
    def parts(self) -> MeshParts:
        """Return the parts, by the coordinate of the device that holds them; a tensor without a mesh has one.

        >>> list(Tensor(np.ones((5, 7), np.float32)).parts.by_device)
        [(0, 0)]
        """
        return self._parts

    @property
    def _core_spec(self) -> memory.TensorSpec:
        return self._parts.first.spec

    def map(self, change: Callable[[tensor.Tensor], tensor.Tensor]) -> Tensor:
        """Return this tensor with `change` applied to the tensor of the core, or to that of each device of a mesh.

        >>> Tensor([1, 2], [2], DataType.INT32).map(lambda part: part.reshape(2, 1)).shape
        Shape([2, 1])
        """
        return Tensor.wrap_parts(self._parts.map(change))

    def tensor_topology(self) -> TensorTopology:
        """Return how the devices of a mesh share the tensor.

        >>> Tensor(np.ones((5, 7), np.float32)).tensor_topology().placements()
        [PlacementReplicate()]
        """
        return TensorTopology.wrap(self._parts.topology)

    def update_tensor_topology(self, topology: TensorTopology) -> None:
        """Say anew how the parts make one tensor, as `topology`.

        >>> from tilewright.ttnn import PlacementShard
        >>> x = Tensor([1, 2], [1, 2])
        >>> x.update_tensor_topology(TensorTopology((1,), [PlacementShard(0)], [(0, 0)]))
        >>> x.tensor_topology().placements()
        [PlacementShard(0)]
        """
        self._parts = replace(self._parts, topology=topology.plain)

    def device_coords(self) -> list[MeshCoordinate]:
        """Return the coordinates of the devices that hold a part.

        >>> Tensor(np.ones((5, 7), np.float32)).device_coords()
        [MeshCoordinate([0, 0])]
        """
        return [MeshCoordinate(at) for at in self._parts.by_device]

    def show(self, to: Any = None, **options: Any) -> None:
        """Draw the tensor, or the mesh of devices that share it; `to` and `options` are those of every `show`.

        >>> from tilewright.ttnn import MeshMapperConfig, create_mesh_mapper
        >>> mapper = create_mesh_mapper((1, 2), MeshMapperConfig(None, 1))
        >>> Tensor(np.ones((8, 4), np.int8), mesh_mapper=mapper).show()
        1 x 2 devices, 2 along dimension 1; each holds 8 x 2
        <BLANKLINE>
          devices and their parts
                 0      1
          0 part 0 part 1
        <BLANKLINE>
          the tensor, part by part
              0   2
          0 0,0 0,1
        <BLANKLINE>
          tensor  8 x 4, 8 x 2 on each device
          part 0  [0:8, 0:2] on (0, 0)
          part 1  [0:8, 2:4] on (0, 1)
        """
        if self._is_distributed:
            self._parts.mesh.show(to, **options)
        else:
            super().show(to, **options)

    def _repr_html_(self) -> str | None:
        return self._parts.mesh._repr_html_() if self._is_distributed else super()._repr_html_()

    @property
    def _is_distributed(self) -> bool:
        return len(self._parts.by_device) > 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor.wrap_parts, (self._parts,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return super().__eq__(other)
        mine, theirs = self._parts, other._parts
        return mine.by_device == theirs.by_device and mine.topology == theirs.topology

    def __hash__(self) -> int:
        return hash(self._parts.first)

    # Properties.

    @property
    def padded_shape(self) -> Shape:
        """Return the padded shape.

        >>> Tensor(np.ones((5, 7), np.float32), layout=Layout.TILE).padded_shape
        Shape([32, 32])
        """
        return Shape(self._core_spec.padded_shape)

    @property
    def spec(self) -> TensorSpec:
        """Return the spec.

        >>> Tensor(np.ones((5, 7), np.float32)).spec.dtype
        DataType.FLOAT32
        """
        return TensorSpec.wrap(self._core_spec)

    def memory_config(self) -> MemoryConfig:
        """Return the memory config.

        >>> Tensor(np.ones((5, 7), np.float32)).memory_config().is_sharded()
        False
        """
        return MemoryConfig.wrap(self._core_spec.memory)

    def storage_type(self) -> StorageType:
        """Return whether the bytes are on a device, or on the host: borrowed from an array, or owned.

        >>> array = np.ones((5, 7), np.float32)
        >>> Tensor(array).storage_type(), Tensor(array, DataType.BFLOAT16).storage_type()
        (StorageType.BORROWED_HOST, StorageType.OWNED_HOST)
        >>> Tensor(array).storage_type() == StorageType.HOST
        True
        """
        return StorageType.of(self._parts.first.storage_type)

    def device(self) -> AnyDevice | None:
        """Return the device or the mesh of devices, None on the host.

        >>> Tensor(np.ones((5, 7), np.float32)).device() is None
        True
        """
        return self._parts.device or self._parts.first.device

    def get_dtype(self) -> DataType:
        """Return the data type.

        >>> Tensor(np.ones((5, 7), np.float32)).get_dtype()
        DataType.FLOAT32
        """
        return self.dtype

    def get_layout(self) -> Layout:
        """Return whether pages are rows or tiles.

        >>> Tensor(np.ones((5, 7), np.float32)).get_layout()
        Layout.ROW_MAJOR
        """
        return self.layout

    def get_tile(self) -> Tile:
        """Return the tile.

        >>> Tensor(np.ones((5, 7), np.float32)).get_tile().num_faces
        4
        """
        return self.tile

    def is_sharded(self) -> bool:
        """Return whether the memory is sharded.

        >>> Tensor(np.ones((5, 7), np.float32)).is_sharded()
        False
        """
        return self._core_spec.memory.is_sharded

    def is_allocated(self) -> bool:
        """Return whether the tensor has not been deallocated.

        >>> Tensor(np.ones((5, 7), np.float32)).is_allocated()
        True
        """
        return all(part.is_allocated() for part in self._parts.by_device.values())

    def volume(self) -> int:
        """Return the number of elements, padding included.

        >>> Tensor(np.ones((5, 7), np.float32), layout=Layout.TILE).volume()
        1024
        """
        return prod(self._core_spec.padded_shape)

    def logical_volume(self) -> int:
        """Return the number of elements that are data.

        >>> Tensor(np.ones((5, 7), np.float32), layout=Layout.TILE).logical_volume()
        35
        """
        return self._core_spec.shape.logical_volume()

    def element_size(self) -> int:
        """Return the bytes of an element, 1 for block formats.

        >>> Tensor(np.ones((5, 7), np.float32)).element_size()
        4
        """
        return getattr(self._core_spec.dtype, "itemsize", 1)

    # The buffer on a device.

    def _allocation(self) -> memory.Allocation:
        """Return the allocation on the device; raise if the tensor is on the host, or was deallocated."""
        storage = self._parts.first.storage
        if not isinstance(storage, DeviceStorage):
            raise MemoryConfigError("the tensor is on the host and has no device buffer; use to_device first")
        return storage.allocation

    def buffer_address(self) -> int:
        """Return the address of the buffer in every bank.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_address()
        1048640
        """
        return self._allocation().address

    def buffer_page_size(self) -> int:
        """Return the bytes of a page.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_page_size()
        28
        """
        self._allocation()
        return self._core_spec.page_bytes

    def buffer_aligned_page_size(self) -> int:
        """Return the bytes from one page to the next in a bank.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_aligned_page_size()
        32
        """
        self._allocation()
        return self._core_spec.aligned_page_bytes

    def buffer_num_pages(self) -> int:
        """Return the number of pages.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_num_pages()
        5
        """
        self._allocation()
        return self._core_spec.num_pages

    # Values.

    def to_numpy(self, mesh_composer: MeshToTensor | None = None) -> np.ndarray[Any, Any]:
        """Return the values as an array; bfloat16 as that of ml_dtypes, block formats as float32.

        `mesh_composer` says how the parts of a tensor on a mesh are joined.

        >>> Tensor([1, 2], [2], DataType.BFLOAT16).to_numpy()
        array([1, 2], dtype=bfloat16)
        """
        return self.plain.numpy() if mesh_composer is None else self._parts.compose(mesh_composer)

    def to_torch(self, mesh_composer: MeshToTensor | None = None) -> Any:
        """Return the values as a torch tensor if torch is imported, as an array otherwise.

        `mesh_composer` says how the parts of a tensor on a mesh are joined.

        >>> Tensor([1, 2], [2], DataType.INT32).to_torch().tolist()
        [1, 2]
        """
        torch = sys.modules.get("torch")
        if torch is None:
            return self.to_numpy(mesh_composer)
        source = self.plain if mesh_composer is None else tensor.Tensor.of(self.to_numpy(mesh_composer))
        return torch.from_dlpack(source)

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

    def to(self, target: Layout | AnyDevice, mem_config: MemoryConfig | None = None, cq_id: object = None) -> Tensor:
        """Return the tensor on the device `target`, in `mem_config`; or in the layout `target`, padded with zeros.

        `cq_id` is ignored.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).to(Layout.TILE).layout
        Layout.TILE
        """
        if isinstance(target, (Layout, memory.PageLayout)):
            return self.map(lambda part: part.to_layout(memory.PageLayout.of(target)))
        return Tensor.wrap_parts(self._parts.to_device(target, unwrap(mem_config)))

    def cpu(self, blocking: bool = True, cq_id: object = None) -> Tensor:
        """Return the tensor on the host; `blocking` and `cq_id` are ignored.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).cpu().to_list()
        [[1, 2]]
        """
        return Tensor.wrap_parts(self._parts.from_device())

    def reshape(self, *shape: int | Iterable[int]) -> Tensor:
        """Return the same elements in another `shape`; one extent may be -1.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).reshape(2, 1).to_list()
        [[1], [2]]
        """
        return self.map(lambda part: part.reshape(*shape))

    def pad(self, output_padded_shape: Sequence[int], input_tensor_start: Sequence[int], pad_value: float) -> Tensor:
        """Return the tensor padded to `output_padded_shape` with `pad_value`; rows only.

        The data start at `input_tensor_start`.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).pad([2, 4], [0, 0], 9).padded_shape
        Shape([2, 4])
        """
        return self.map(lambda part: part.pad(output_padded_shape, input_tensor_start, pad_value))

    def unpad(self, start: Sequence[int], end: Sequence[int]) -> Tensor:
        """Return the box from `start` up to, but not including, `end`; rows only.

        >>> Tensor([1, 2, 3, 4], [2, 2], DataType.INT32).unpad([0, 1], [2, 2]).to_list()
        [[2], [4]]
        """
        return self.map(lambda part: part.unpad(start, end))

    def pad_to_tile(self, pad_value: float) -> Tensor:
        """Return the tensor in rows, its last two dimensions padded with `pad_value` to multiples of 32.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).pad_to_tile(0.0).padded_shape
        Shape([32, 32])
        """
        extents = self._core_spec.shape.logical
        padded = [*extents[:-2], *(round_up(n, TILE_SIZE) for n in extents[-2:])]
        return self.map(lambda part: part.pad(padded, None, pad_value))

    def unpad_from_tile(self, shape: Sequence[int]) -> Tensor:
        """Return the box of `shape` at the origin; rows only.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).pad_to_tile(0.0).unpad_from_tile([1, 2]).padded_shape
        Shape([1, 2])
        """
        return self.unpad([0] * len(shape), shape)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tensor:
        indices = list(index) if isinstance(index, tuple) else [index]
        rank = self._core_spec.shape.rank
        if Ellipsis in indices:
            dots = indices.index(Ellipsis)
            indices[dots : dots + 1] = [slice(None)] * (rank - len(indices) + 1)
        dropped = {dim for dim, entry in enumerate(indices) if not isinstance(entry, slice)}

        def select(whole: tensor.Tensor) -> tensor.Tensor:
            part = whole.slice(*indices)
            shape = [n for dim, n in enumerate(part.shape) if dim not in dropped]
            return part.reshape(shape) if dropped else part

        return self.map(select)

    def deallocate(self, force: bool = True) -> None:
        """Free the memory on the device; `force` is ignored.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).deallocate()
        """
        for part in self._parts.by_device.values():
            part.deallocate()

    def __repr__(self) -> str:
        return "\n".join([self._place_text(at) + tensor_text(part) for at, part in self._parts.by_device.items()])

    def _place_text(self, at: tuple[int, ...]) -> str:
        """Return the line that ttnn prints before the part of a device of a mesh."""
        device = self._parts.device
        if device is None or device.get_num_devices() == 1:
            return ""
        return f"device_id: {device.get_device_id(at)}, {MeshCoordinate(at)}\n"

    __str__ = __repr__


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def takes_tensor(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that refuses what is not a `ttnn.Tensor` as its first argument, `tensor`.

    >>> takes_tensor(lambda tensor: tensor.dtype)(3)
    Traceback (most recent call last):
    tilewright.errors.MemoryConfigError: <lambda> takes a ttnn.Tensor, got int; make one with ttnn.from_torch(array)
    """

    @wraps(function)
    def checked(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        given = arguments[:1] or ([options["tensor"]] if "tensor" in options else [])
        for value in given:
            if not isinstance(value, Tensor):
                raise MemoryConfigError(
                    f"{function.__name__} takes a ttnn.Tensor, got {type(value).__name__};"
                    " make one with ttnn.from_torch(array)"
                )
        return function(*arguments, **options)

    return checked
