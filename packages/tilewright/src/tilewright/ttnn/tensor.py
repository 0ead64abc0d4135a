# SPDX-License-Identifier: Apache-2.0
"""`ttnn.Tensor`, around a native tensor, or around the parts of one on the devices of a mesh."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from math import prod
from os import PathLike
from types import EllipsisType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, tensor
from .._dialect import unwrap
from .._integers import round_up
from ..copying import as_host_array
from ..errors import FormatError, LayoutError, MemoryConfigError
from ..formats import Format, cast, fit_values, format_of
from ..memory import CoreCoord, CoreLike, Topology, from_bytes
from ..memory import TensorSpec as NativeSpec
from ..tensor import DeviceStorage, padding_as_data
from ..tensor import Tensor as NativeTensor
from .config import MemoryConfig, Shape, TensorProperties, TensorSpec, Tile, TileLike
from .devices import AnyDevice, Device, MeshDevice, MeshParts, MeshToTensor, TensorToMesh
from .types import (
    DataType,
    DataTypeLike,
    Layout,
    LayoutLike,
    MeshCoordinate,
    MeshShape,
    StorageType,
    TensorTopology,
    bind_by_type,
    cpp_name,
    reject_unsupported,
)

__all__ = [
    "TILE_SIZE", "Tensor", "aggregate_as_tensor", "aggregate_tensor", "combine_device_tensors", "distribute_tensor",
    "from_host_shards", "get_device_tensors", "set_printoptions",
]  # fmt: skip

# How ttnn makes a tensor of an array or a list: default data types, rounding, and what does not fit a type.

_INTEGERS = ("uint8", "uint16", "uint32", "int8", "int32")


def reshape_values(
    flat: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: DataTypeLike | None
) -> np.ndarray[Any, Any]:
    """Return the numbers of a list in `shape` and an integer `dtype`, or in float32; by default integers are int32.

    >>> reshape_values(np.array([1, 2]), (2, 1), None).dtype
    dtype('int32')
    """
    if flat.size != prod(shape):
        raise LayoutError(f"cannot reshape {flat.size} elements to shape {list(shape)}, which has {prod(shape)}")
    default = "int32" if flat.dtype.kind in "iu" else "float32"
    name = default if dtype is None else DataType.of(dtype).format.name
    return fit_values(flat, name if name in _INTEGERS else "float32").reshape(shape)


_BFLOAT16 = format_of("bfloat16")
# Types that ttnn does not have, and the types in which it stores them by default.
_DEFAULT_FORMATS = {
    "bool": "uint8",
    "float16": "bfloat16",
    "float64": "float32",
    "int64": "uint32",
    "int16": "uint16",
    "uint64": "uint32",
}
# Types that reach a block format through bfloat16, and so are rounded twice.
_THROUGH_BFLOAT16 = ("float64", "float16", "int64", "int16", "uint64")


def create_tensor(
    source: ArrayLike,
    dtype: DataTypeLike | None = None,
    layout: LayoutLike | None = None,
    tile: TileLike | None = None,
    pad_value: float | None = None,
    memory_config: MemoryConfig | None = None,
    col_tilize: bool = False,
) -> tensor.Tensor:
    """Return the native tensor that ttnn makes of an array; the arguments are as in `ttnn.from_torch`.

    >>> create_tensor(np.ones((5, 7), np.float16)).dtype
    format_of('bfloat16')
    """
    values = _host_values(source)
    source_format = format_of(values.dtype)
    element = default_format(values) if dtype is None else DataType.of(dtype).format
    if col_tilize:
        if not element.has_blocks or values.ndim < 2:
            raise FormatError(
                f"col_tilize expects bfloat8_b or bfloat4_b and rank 2 or more, got {element} of rank {values.ndim}"
            )
        values = values.swapaxes(-1, -2)
    page_layout = None if layout is None else memory.PageLayout.of(layout)
    spec = memory.TensorSpec(values.shape, element, page_layout, unwrap(tile), unwrap(memory_config))
    fill: Any = 0 if pad_value is None else pad_value
    if element.has_blocks and (source_format.name in _THROUGH_BFLOAT16 or spec.memory.is_sharded):
        values, fill = cast(values, _BFLOAT16), cast(np.array(fill), _BFLOAT16).item()
    elif needs_truncation(source_format, element):
        values = truncate(values, element)
    return tensor.Tensor.from_array(values, spec, fill)


def create_parts(
    source: ArrayLike, mesh_mapper: TensorToMesh | None = None, dtype: DataTypeLike | None = None, **properties: Any
) -> MeshParts:
    """Return the parts that ttnn makes of an array, cut by `mesh_mapper`; other arguments are as in `create_tensor`.

    The data type is chosen for the array as a whole, and each part is padded and packed on its own.

    >>> create_parts(np.ones((5, 7), np.float32)).first.nbytes
    140
    """
    mapper = validate_mapper(mesh_mapper)
    if mapper is None:
        return MeshParts.single(create_tensor(source, dtype, **properties))
    values = _host_values(source)
    if dtype is None:
        dtype = default_format(values).name
    return MeshParts.distribute(values, mapper, lambda part: create_tensor(part, dtype, **properties))


def has_fractions(element: Format) -> bool:
    """Return whether a format has numbers with a fraction: floats, alone or in blocks.

    >>> has_fractions(format_of("bfloat8_b")), has_fractions(format_of("uint8"))
    (True, False)
    """
    return element.has_blocks or element.kind == "float"


def needs_truncation(source: Format, target: Format) -> bool:
    """Return whether numbers can lose a fraction, or be outside the range, of the `target`.

    >>> needs_truncation(format_of("float32"), format_of("uint8"))
    True
    """
    return has_fractions(source) and target.name in _INTEGERS


def truncate(values: np.ndarray[Any, Any], element: Format) -> np.ndarray[Any, Any]:
    """Return floats in an integer format, without their fraction; raise if one is outside its range.

    >>> truncate(np.array([1.9, -1.9]), format_of("int8")).tolist()
    [1, -1]
    """
    try:
        return cast(values, element, on_overflow="raise")
    except FormatError as problem:
        reason = str(problem).partition(";")[0]
        raise FormatError(f"{reason}; clip the array first, or use a type that holds its values") from None


def validate_mapper(mesh_mapper: object) -> TensorToMesh | None:
    """Return `mesh_mapper`, a mesh mapper or None; raise if it is anything else.

    >>> validate_mapper(None) is None
    True
    """
    if mesh_mapper is None or isinstance(mesh_mapper, TensorToMesh):
        return mesh_mapper
    raise MemoryConfigError(
        f"mesh_mapper={mesh_mapper!r:.60} is not a mesh mapper, such as ttnn.ShardTensorToMesh(mesh_device, dim=0)"
    )


def default_format(source: ArrayLike) -> Format:
    """Return the format that ttnn stores an array in by default, or raise if it would change a value.

    >>> default_format(np.ones(3, np.float16))
    format_of('bfloat16')
    """
    values = _host_values(source)
    source_format = format_of(values.dtype)
    name = _DEFAULT_FORMATS.get(source_format.name, source_format.name)
    element = DataType.of(name).format
    if name != source_format.name:
        require_exact(values, element, f"ttnn stores {source_format} as {element} by default")
    return element


def require_exact(values: np.ndarray[Any, Any], element: Format, choice: str) -> None:
    """Raise unless every number is a value of a default format; `choice` names who chose it.

    A NaN stays a NaN, and an infinity an infinity.

    >>> require_exact(np.float16([0.5, np.nan, np.inf]), format_of("bfloat16"), "by default")
    """
    if element.has_blocks:
        stored = create_tensor(values.astype(np.float32).reshape(1, -1), element.name).numpy().reshape(values.shape)
    elif element.name in _INTEGERS:
        try:
            stored = fit_values(values, element)
        except FormatError as problem:
            raise FormatError(f"{choice}; pass a dtype: {str(problem).partition(';')[0]}") from None
    else:
        stored = cast(values, element)
    changed = (stored != values) & (values == values)  # a NaN differs from itself
    if changed.any():
        index = np.unravel_index(int(changed.argmax()), changed.shape)
        position = f" at {', '.join(map(str, index))}" if index else ""
        raise FormatError(
            f"{choice}; pass a dtype: {values[index].item()!r}{position} is not a value of {element}, and"
            f" dtype=ttnn.{element} would round it to {stored[index].item()!r}"
        )


def _host_values(source: ArrayLike) -> np.ndarray[Any, Any]:
    """Return an array; the numbers of a list have no type, and become float32 if one has a fraction."""
    values = as_host_array(source)
    untyped = isinstance(source, (list, tuple, float)) and values.dtype == np.float64
    return fit_values(values, "float32") if untyped else values


# How tensors are printed: to the character as ttnn prints them, with its `set_printoptions`.

_PREFIX = "ttnn.Tensor("
_EDGE = 2  # elements at either end of a shortened dimension
_PROFILES = ("empty", "short", "full")
_SCI_MODES = {"true": True, "false": False, "default": None}
_INTEGER_WIDTH = 5


@dataclass(frozen=True)
class PrintOptions:
    """How tensors are printed: which elements, in scientific notation or not (None: if need be), and digits.

    >>> PrintOptions().precision
    4
    """

    profile: str = "short"
    sci_mode: bool | None = None
    precision: int = 4


_OPTIONS = [PrintOptions()]  # those in use


def set_printoptions(
    *, profile: str, sci_mode: bool | Literal["true", "false", "default"] | None = None, precision: int | None = None
) -> None:
    """Set how tensors are printed from now on.

    Args:
        profile: "short" for at most four elements of a dimension, "full" for all of them, "empty" for none.
        sci_mode: whether scientific notation is used; by default if the values are far apart, large or small.
        precision: digits after the decimal point, by default 4.

    >>> from tilewright.ttnn import from_torch
    >>> set_printoptions(profile="short", precision=1)
    >>> from_torch(np.arange(6, dtype=np.float32))
    ttnn.Tensor([ 0.0,  1.0,  ...,  4.0,  5.0], shape=Shape([6]), dtype=DataType::FLOAT32, layout=Layout::ROW_MAJOR)
    >>> set_printoptions(profile="short")
    """
    if profile.lower() not in _PROFILES:
        raise FormatError(f"unknown print profile {profile!r}; use one of {', '.join(map(repr, _PROFILES))}")
    mode = _SCI_MODES.get(sci_mode.lower(), sci_mode) if isinstance(sci_mode, str) else sci_mode
    if mode not in (True, False, None):
        raise FormatError(f'expected True, False, None or "default" as sci_mode, got {sci_mode!r}')
    digits = PrintOptions.precision if precision is None else int(precision)
    if digits < 0:
        raise FormatError(f"expected a precision of 0 or more digits, got {precision}")
    _OPTIONS[0] = PrintOptions(profile.lower(), mode, digits)


def tensor_text(tensor: NativeTensor) -> str:
    """Return the text of a native tensor as ttnn prints it.

    >>> print(tensor_text(NativeTensor.of(np.ones((2, 2), np.int32))))
    ttnn.Tensor([[    1,     1],
                 [    1,     1]], shape=Shape([2, 2]), dtype=DataType::INT32, layout=Layout::ROW_MAJOR)
    """
    dtype, layout = cpp_name(DataType.of(tensor.dtype)), cpp_name(Layout.of(tensor.spec.page_layout))
    properties = f"shape=Shape({list(tensor.shape.logical)}), dtype={dtype}, layout={layout}"
    return f"{_PREFIX}{_values_text(tensor)}, {properties})"


def _values_text(tensor: NativeTensor) -> str:
    options = _OPTIONS[0]
    if not tensor.is_allocated():
        return "<buffer is not allocated>"
    if options.profile == "empty":
        return "..."
    values = tensor.numpy()
    if values.dtype.kind in "iu":
        width, spec = _INTEGER_WIDTH, "d"
    else:
        scientific = _needs_exponents(tensor) if options.sci_mode is None else options.sci_mode
        width, spec = options.precision + (7 if scientific else 3), f".{options.precision}{'e' if scientific else 'f'}"
    return _nested_text(values, width, spec, options.profile == "full")


def _needs_exponents(tensor: NativeTensor) -> bool:
    """Return whether the finite values other than zero, padding included, are far apart, very large or very small."""
    host = tensor.from_device()
    values = np.abs(from_bytes(host.pages, padding_as_data(host.spec)).astype(np.float64))
    values = values[np.isfinite(values) & (values != 0)]
    if not values.size:
        return False
    smallest, largest = values.min(), values.max()
    return bool(largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4)


def _nested_text(values: np.ndarray[Any, Any], width: int, spec: str, full: bool, depth: int = 0) -> str:
    """Return the elements of an array in brackets, the inner ones indented as deep as they are nested."""
    if values.ndim == 0:
        return _element_text(values[()], width, spec)
    indent = " " * (len(_PREFIX) + depth + 1)
    between, gap = {1: (", ", " "), 2: (f",\n{indent}", "")}.get(values.ndim, (f",\n\n{indent}", ""))
    count = len(values)
    shortened = not full and count > 2 * _EDGE
    picked = [*range(_EDGE), *range(count - _EDGE, count)] if shortened else range(count)
    parts = [_nested_text(values[k], width, spec, full, depth + 1) for k in picked]
    if shortened:
        parts.insert(_EDGE, f"{gap}...")
    return f"[{between.join(parts)}]"


def _element_text(value: Any, width: int, spec: str) -> str:
    number = int(value) if spec == "d" else float(value)
    text = f"{number:{spec}}"
    if text == "nan" and np.signbit(number):
        text = "-nan"
    return f"{text:>{width}}"


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
        data_type: by default the array's, or the one ttnn has instead.
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
        source: Any = data if tensor is None else tensor  # other objects than arrays are rejected below
        if None not in (mem_config, memory_config):
            raise TypeError("ttnn.Tensor got both mem_config and memory_config, which mean the same; pass one of them")
        config = memory_config if mem_config is None else mem_config
        keywords: dict[str, object] = {"shape": shape, "data_type": data_type, "device": device, "layout": layout}
        keywords |= {"tile": tile, "pad_value": pad_value, "mem_config": config}
        properties = bind_by_type("ttnn.Tensor", _ARGUMENT_TYPES, arguments, keywords)
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
    def native(self) -> tensor.Tensor:
        """The native tensor; raises if this one is distributed over several devices.

        >>> Tensor(np.ones((5, 7), np.float32)).native.nbytes
        140
        """
        return self._parts.only()

    @native.setter
    def native(self, value: tensor.Tensor) -> None:
        self._parts = MeshParts.single(value)

    @property
    def parts(self) -> MeshParts:
        """The parts, by the coordinate of the device that holds them; a tensor without a mesh has one.

        >>> list(Tensor(np.ones((5, 7), np.float32)).parts.by_device)
        [(0, 0)]
        """
        return self._parts

    @property
    def _native_spec(self) -> memory.TensorSpec:
        return self._parts.first.spec

    def map(self, change: Callable[[tensor.Tensor], tensor.Tensor]) -> Tensor:
        """Return this tensor with `change` applied to the native tensor, or to the tensor of each device of a mesh.

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
        """Replace the topology by which the parts make one tensor.

        >>> from tilewright.ttnn import PlacementShard
        >>> x = Tensor([1, 2], [1, 2])
        >>> x.update_tensor_topology(TensorTopology((1,), [PlacementShard(0)], [(0, 0)]))
        >>> x.tensor_topology().placements()
        [PlacementShard(0)]
        """
        self._parts = replace(self._parts, topology=topology.native)

    def device_coords(self) -> list[MeshCoordinate]:
        """Return the coordinates of the devices that hold a part.

        >>> Tensor(np.ones((5, 7), np.float32)).device_coords()
        [MeshCoordinate([0, 0])]
        """
        return [MeshCoordinate(at) for at in self._parts.by_device]

    def show(self, to: str | PathLike[str] | None = None, **options: object) -> None:
        """Draw the tensor, or the mesh of devices that share it; `to` and `options` are as in every `show`.

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
        """The padded shape.

        >>> Tensor(np.ones((5, 7), np.float32), layout=Layout.TILE).padded_shape
        Shape([32, 32])
        """
        return Shape(self._native_spec.padded_shape)

    @property
    def spec(self) -> TensorSpec:
        """The spec.

        >>> Tensor(np.ones((5, 7), np.float32)).spec.dtype
        DataType.FLOAT32
        """
        return TensorSpec.wrap(self._native_spec)

    def memory_config(self) -> MemoryConfig:
        """Return the memory config.

        >>> Tensor(np.ones((5, 7), np.float32)).memory_config().is_sharded()
        False
        """
        return MemoryConfig.wrap(self._native_spec.memory)

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
        return self._native_spec.memory.is_sharded

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
        return prod(self._native_spec.padded_shape)

    def logical_volume(self) -> int:
        """Return the number of elements that are data.

        >>> Tensor(np.ones((5, 7), np.float32), layout=Layout.TILE).logical_volume()
        35
        """
        return self._native_spec.shape.logical_volume()

    def element_size(self) -> int:
        """Return the bytes of an element, 1 for block formats.

        >>> Tensor(np.ones((5, 7), np.float32)).element_size()
        4
        """
        return getattr(self._native_spec.dtype, "itemsize", 1)

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
        return self._allocation().single_address

    def is_per_core_allocated(self) -> bool:
        """Return whether each core's shard is allocated on its own, so that there is no single address.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).is_per_core_allocated()
        False
        """
        return bool(self._allocation().shard_addresses)

    def experimental_per_core_buffer_address(self, device_coord: Iterable[int], core: CoreLike) -> int:
        """Return the address of the shard on a `core` of the device at `device_coord`, which is allocated on its own.

        >>> from tilewright.ttnn import BufferType, MemoryConfig, ShardSpec, TensorMemoryLayout
        >>> config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec((2, 1), [1, 32]))
        >>> config.experimental_set_per_core_allocation(True)
        >>> tensor = Tensor(np.ones((2, 32), np.float32)).to(Device("wormhole_n150", hybrid=True), config)
        >>> tensor.experimental_per_core_buffer_address((0, 0), (1, 0))
        1499008
        """
        at, part = CoreCoord(*unwrap(core)), Tensor.wrap(self._parts.by_device[tuple(device_coord)])
        addresses = dict(part._allocation().shard_addresses)
        if at not in addresses:
            cores = ", ".join(map(str, addresses)) or "none, so use buffer_address()"
            raise MemoryConfigError(f"core {at} has no shard that is allocated on its own; its cores are {cores}")
        return addresses[at]

    def buffer_page_size(self) -> int:
        """Return the bytes of a page.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_page_size()
        28
        """
        self._allocation()
        return self._native_spec.page_bytes

    def buffer_aligned_page_size(self) -> int:
        """Return the bytes from one page to the next in a bank.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_aligned_page_size()
        32
        """
        self._allocation()
        return self._native_spec.aligned_page_bytes

    def buffer_num_pages(self) -> int:
        """Return the number of pages.

        >>> Tensor(np.ones((5, 7), np.float32)).to(Device("wormhole_n150")).buffer_num_pages()
        5
        """
        self._allocation()
        return self._native_spec.num_pages

    # Values.

    def to_numpy(self, mesh_composer: MeshToTensor | None = None) -> np.ndarray[Any, Any]:
        """Return the values as an array; bfloat16 as in ml_dtypes, block formats as float32.

        `mesh_composer` joins the parts of a tensor on a mesh.

        >>> Tensor([1, 2], [2], DataType.BFLOAT16).to_numpy()
        array([1, 2], dtype=bfloat16)
        """
        return self.native.numpy() if mesh_composer is None else self._parts.compose(mesh_composer)

    def to_torch(self, mesh_composer: MeshToTensor | None = None) -> np.ndarray[Any, Any] | Any:
        """Return the values as a torch tensor if torch is imported, as an array otherwise.

        `mesh_composer` joins the parts of a tensor on a mesh.

        >>> Tensor([1, 2], [2], DataType.INT32).to_torch().tolist()
        [1, 2]
        """
        torch = sys.modules.get("torch")
        if torch is None:
            return self.to_numpy(mesh_composer)
        source = self.native if mesh_composer is None else tensor.Tensor.of(self.to_numpy(mesh_composer))
        return torch.from_dlpack(source)

    def to_list(self) -> list[Any] | Any:
        """Return the values as nested lists.

        >>> Tensor([1, 2], [1, 2], DataType.INT32).to_list()
        [[1, 2]]
        """
        return self.native.numpy().tolist()

    def item(self) -> float:
        """Return the only element.

        >>> Tensor([2.5], [1], DataType.FLOAT32).item()
        2.5
        """
        element: float = self.native.item()
        return element

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray[Any, Any]:
        return self.native.__array__(*arguments, **options)

    def __dlpack__(self, **options: Any) -> Any:
        return self.native.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.native.__dlpack_device__()

    def __len__(self) -> int:
        return len(self.native)

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
        extents = self._native_spec.shape.logical
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
        rank = self._native_spec.shape.rank
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


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def takes_tensor(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that accepts only a `ttnn.Tensor` as its first argument, `tensor`.

    >>> takes_tensor(lambda tensor: tensor.dtype)(3)
    Traceback (most recent call last):
    tilewright.errors.MemoryConfigError: <lambda> takes a ttnn.Tensor, got int; make one with ttnn.from_torch(array)
    """

    @wraps(function)
    def checked(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        tensors = arguments[:1] or ([options["tensor"]] if "tensor" in options else [])
        for value in tensors:
            if not isinstance(value, Tensor):
                raise MemoryConfigError(
                    f"{function.__name__} takes a ttnn.Tensor, got {type(value).__name__};"
                    " make one with ttnn.from_torch(array)"
                )
        return function(*arguments, **options)

    return checked


# Tensors over a mesh: cut for its devices, taken apart, and put together again.


@takes_tensor
def distribute_tensor(tensor: Tensor, mapper: TensorToMesh, mesh_device: MeshDevice | None = None) -> Tensor:
    """Return a host `tensor` cut by `mapper`, on the host or on `mesh_device`.

    >>> from tilewright.ttnn import MeshMapperConfig, create_mesh_mapper
    >>> mapper = create_mesh_mapper(MeshShape(1, 2), MeshMapperConfig(None, 1))
    >>> distribute_tensor(Tensor([1, 2, 3, 4], [1, 4]), mapper).shape
    Shape([1, 2])
    """
    whole = tensor.native
    if whole.device is not None:
        raise LayoutError("distribute_tensor takes a tensor on the host; use from_device first")
    parts = create_parts(
        whole.numpy(),
        mapper,
        whole.dtype.name,
        layout=tensor.layout,
        tile=tensor.tile if whole.spec.is_tiled else None,
        memory_config=tensor.memory_config(),
    )
    return Tensor.wrap_parts(parts if mesh_device is None else parts.to_device(mesh_device, None))


@takes_tensor
def aggregate_tensor(tensor: Tensor, composer: MeshToTensor) -> Tensor:
    """Return the parts of `tensor`, joined by `composer`, as one tensor on the host.

    >>> from tilewright.ttnn import MeshComposerConfig, create_mesh_composer
    >>> halves = from_host_shards([Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])], MeshShape(1, 2))
    >>> aggregate_tensor(halves, create_mesh_composer(MeshShape(1, 2), MeshComposerConfig(0, 1))).to_list()
    [[1, 2, 3, 4]]
    """
    values = tensor.parts.compose(composer)
    part = tensor.parts.first
    spec = NativeSpec(values.shape, part.dtype, part.layout, part.tile if part.spec.is_tiled else None, part.memory)
    return Tensor.wrap(NativeTensor.from_array(values, spec))


@takes_tensor
def get_device_tensors(tensor: Tensor) -> list[Tensor]:
    """Return the part of each device as a tensor, in the order of the mesh.

    >>> halves = from_host_shards([Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])], MeshShape(1, 2))
    >>> [part.to_list() for part in get_device_tensors(halves)]
    [[[1, 2]], [[3, 4]]]
    """
    parts = tensor.parts
    if parts.device is None:
        return [Tensor.wrap(part) for part in parts.by_device.values()]
    return [Tensor.wrap_parts(replace(parts, by_device={at: part})) for at, part in parts.by_device.items()]


def from_host_shards(tensors: Sequence[Tensor], mesh_shape: Sequence[int]) -> Tensor:
    """Return one tensor over a mesh of `mesh_shape` of host `tensors`, one for each device.

    As in ttnn, they count as parts along dimension 0; `update_tensor_topology` changes that.

    >>> from_host_shards(
    ...     [Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])], MeshShape(1, 2)
    ... ).tensor_topology().placements()
    [PlacementShard(0)]
    """
    shape = MeshShape(mesh_shape)
    if len(tensors) != shape.mesh_size() or not tensors:
        raise LayoutError(f"{shape} needs {max(1, shape.mesh_size())} tensors, got {len(tensors)}")
    shards = [tensor.native for tensor in tensors]
    if any(shard.device is not None for shard in shards):
        raise LayoutError("from_host_shards takes tensors on the host; use combine_device_tensors for those on devices")
    _validate_equal_specs(shards)
    devices = tuple([tuple(at) for at in shape.coordinates()])
    topology = Topology((len(devices),), (0,), devices)
    return Tensor.wrap_parts(MeshParts(dict(zip(devices, shards, strict=True)), tuple(shape), topology))


def combine_device_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return one tensor of `tensors` on different devices of one mesh, such as `get_device_tensors` returns.

    As in ttnn, they count as parts along dimension 0; unlike there, they may have been allocated one by one.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     combine_device_tensors(get_device_tensors(Tensor([1, 2], [1, 2]).to(mesh_device))).device_coords()
    [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
    """
    if not tensors:
        raise LayoutError("combine_device_tensors needs at least one tensor")
    meshes = {id(tensor.parts.device): tensor.parts.device for tensor in tensors}
    device = next(iter(meshes.values()))
    if device is None or len(meshes) > 1:
        raise LayoutError("combine_device_tensors takes tensors on the devices of one mesh; use to_device first")
    parts = [item for tensor in tensors for item in tensor.parts.by_device.items()]
    devices = [at for at, _ in parts]
    twice = next((at for at in devices if devices.count(at) > 1), None)
    if twice is not None:
        raise LayoutError(f"two of the tensors are on {MeshCoordinate(twice)}; combine one for each device")
    _validate_equal_specs([part for _, part in parts])
    topology = Topology((len(devices),), (0,), tuple(devices))
    return Tensor.wrap_parts(MeshParts(dict(parts), tuple(device.shape), topology, device))


def aggregate_as_tensor(tensors: Sequence[Tensor]) -> Tensor:
    """Return one tensor of `tensors` on the host, as a mesh of one row, or on the devices of a mesh.

    This is what older releases of ttnn call `from_host_shards` and `combine_device_tensors`.

    >>> aggregate_as_tensor([Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])]).device_coords()
    [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
    """
    if tensors and tensors[0].device() is not None:
        return combine_device_tensors(tensors)
    return from_host_shards(tensors, MeshShape(1, len(tensors)))


def _validate_equal_specs(parts: Sequence[NativeTensor]) -> None:
    different = next((part.spec for part in parts if part.spec != parts[0].spec), None)
    if different is not None:
        raise LayoutError(f"parts must have one spec, got {parts[0].spec} and {different}")
