# SPDX-License-Identifier: Apache-2.0
"""Devices: simulated chips that are opened by number, and the contents of their memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from operator import index
from typing import Any, TypeAlias

import numpy as np

from .. import memory, tensor
from .._dialect import unwrap
from .._integers import ceil_div, round_up
from ..copying import copy
from ..errors import LayoutError, MemoryConfigError
from ..layout import as_integer
from ..memory import Chip, ChipLike, Coordinate, CoreRange, Mesh, ShardOrientation, ShardStrategy, Topology
from . import types
from .config import MemoryConfig
from .strict_rules import check_spec
from .types import (
    BufferType,
    BufferTypeLike,
    CoreCoord,
    CoreGrid,
    CoreRangeSet,
    MeshCoordinate,
    MeshShape,
    OrientationLike,
    Placement,
    cut_of_placement,
    placement_of_cut,
)

__all__ = [
    "BufferPage", "ConcatMesh2dToTensor", "ConcatMeshToTensor", "Device", "GetDefaultDevice", "MemoryView",
    "MeshComposerConfig", "MeshDevice", "MeshMapperConfig", "MeshToTensor", "ReplicateTensorToMesh", "SetDefaultDevice",
    "ShardTensor2dMesh", "ShardTensorToMesh", "TensorToMesh", "close_device", "close_mesh_device",
    "concat_mesh_to_tensor_composer", "create_dram_sharded_mem_config", "create_mesh_composer", "create_mesh_device",
    "create_mesh_mapper", "create_sharded_memory_config", "create_sharded_memory_config_", "dump_device_memory_state",
    "get_buffer_pages", "get_device_ids", "get_memory_view", "get_num_devices", "manage_device", "open_device",
    "open_mesh_device", "replicate_tensor_to_mesh_mapper", "shard_tensor_to_mesh_mapper", "synchronize_device",
]  # fmt: skip

DEFAULT_CHIP = "wormhole_n150"
AnyDevice: TypeAlias = "memory.Device | MeshDevice"  # the devices that can hold a tensor
OpenDevice: TypeAlias = "Device | MeshDevice"
_OPEN: dict[int, Device] = {}
_DEFAULT: list[OpenDevice] = []


class ChipProperties:
    """The chip properties of a device and of a mesh of equal devices.

    >>> Device("blackhole_p150").arch()
    'blackhole'
    """

    chip: Chip
    is_part = False  # of a mesh whose devices it shares

    def arch(self) -> str:
        """Return the name of the chip's architecture.

        >>> Device("blackhole_p150").arch()
        'blackhole'
        """
        return self.chip.arch

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Return the columns and rows of the compute grid.

        >>> Device("blackhole_p150").compute_with_storage_grid_size()
        11-10
        """
        return CoreCoord(*self.chip.compute_grid)

    @property
    def core_grid(self) -> CoreGrid:
        """The grid of all cores.

        >>> Device("wormhole_n150").core_grid.num_cores
        64
        """
        x, y = self.chip.compute_grid
        return CoreGrid(y=y, x=x)

    def dram_grid_size(self) -> CoreCoord:
        """Return the DRAM banks as a row of cores.

        >>> Device("wormhole_n150").dram_grid_size()
        12-1
        """
        return CoreCoord(self.chip.banks("dram"), 1)

    def get_devices(self) -> list[Device]:
        """Return the devices, the last dimension of the mesh fastest."""
        raise NotImplementedError

    def get_num_devices(self) -> int:
        """Return the number of devices.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.get_num_devices()
        8
        """
        return len(self.get_devices())

    def get_device_ids(self) -> list[int]:
        """Return the numbers of the devices.

        >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
        ...     mesh_device.get_device_ids()
        [0, 1]
        """
        return [device.device_id for device in self.get_devices()]

    def id(self) -> int:
        """Return the number of the device, or of the first device of a mesh.

        >>> Device("wormhole_n150").id()
        0
        """
        return self.get_devices()[0].device_id


class Device(ChipProperties, memory.Device):
    """A simulated chip with the methods of ttnn's devices.

    >>> Device("wormhole_n150").compute_with_storage_grid_size()
    8-8
    """

    device_id = 0

    @property
    def shape(self) -> MeshShape:
        """The shape of a mesh of one device: ttnn has no devices but meshes.

        >>> Device("wormhole_n150").shape
        MeshShape([1, 1])
        """
        return MeshShape(1, 1)

    def get_devices(self) -> list[Device]:
        """Return the chips: this one.

        >>> len(Device("wormhole_n150").get_devices())
        1
        """
        return [self]

    def __repr__(self) -> str:
        return f"<ttnn.Device {self.device_id}: {self.chip.name}, {self.chip.dispatch} dispatch>"


def open_device(
    device_id: int = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    worker_l1_size: int | None = None,
    dispatch_core_config: object = None,
    *,
    chip: ChipLike | None = None,
) -> Device:
    """Return the simulated device of number `device_id`, opened unless it is open already.

    `chip` defaults to the environment variable TILEWRIGHT_CHIP, or wormhole_n150. As with ttnn,
    TT_METAL_SLOW_DISPATCH_MODE=1 opens it in slow dispatch, and TT_METAL_ALLOCATOR_MODE_HYBRID=1 with an allocator
    that also allocates each core's shard on its own. `l1_small_size` and `trace_region_size` bytes per bank are
    reserved; `worker_l1_size` limits the L1 for tensors; `dispatch_core_config` is ignored.

    >>> device = open_device(device_id=0)
    >>> close_device(device)
    """
    if as_integer(device_id, "device_id") < 0:
        raise MemoryConfigError(f"devices are numbered from 0, got device_id={device_id}")
    if device_id not in _OPEN:
        hybrid = os.environ.get("TT_METAL_ALLOCATOR_MODE_HYBRID") == "1"
        device = Device(resolve_chip(chip), l1_small_size, trace_region_size, worker_l1_size, hybrid=hybrid)
        device.device_id = device_id
        _OPEN[device_id] = device
    return _OPEN[device_id]


def resolve_chip(chip: ChipLike | None) -> Chip:
    """Return the `chip` to simulate, in slow dispatch if requested; both default to the environment.

    >>> resolve_chip("blackhole_p150").name
    'blackhole_p150'
    """
    slow = os.environ.get("TT_METAL_SLOW_DISPATCH_MODE") == "1"
    if chip is None:
        chip = os.environ.get("TILEWRIGHT_CHIP") or DEFAULT_CHIP
    return Chip.named(chip, dispatch="slow") if slow and isinstance(chip, str) else Chip.of(chip)


def close_device(device: OpenDevice) -> None:
    """Close `device`, a device or a mesh of them; its number can be opened again, and its tensors are gone.

    A mesh that is part of another one leaves its devices open.

    >>> close_device(open_device(device_id=3))
    """
    for chip in device.get_devices():
        if _OPEN.get(chip.device_id) is chip:
            del _OPEN[chip.device_id]
        chip.is_open = chip.is_open and device.is_part
    if device in _DEFAULT:
        _DEFAULT.clear()


@contextmanager
def manage_device(device_id: int = 0, **options: Any) -> Iterator[Device]:
    """Open device `device_id` for the length of a with block; `options` are as in `open_device`.

    >>> with manage_device(device_id=0) as device:
    ...     device.arch()
    'wormhole_b0'
    """
    device = open_device(device_id, **options)
    try:
        yield device
    finally:
        close_device(device)


def SetDefaultDevice(device: OpenDevice | None) -> None:  # noqa: N802  (ttnn's name)
    """Make `device` the default for functions that take none; None clears it.

    >>> SetDefaultDevice(None)
    """
    _DEFAULT[:] = [] if device is None else [device]


def GetDefaultDevice() -> OpenDevice | None:  # noqa: N802  (ttnn's name)
    """Return the default device: the one that was set, or else the only open one.

    >>> GetDefaultDevice() is None
    True
    """
    if _DEFAULT:
        return _DEFAULT[0]
    return next(iter(_OPEN.values())) if len(_OPEN) == 1 else None


def resolve_device(requested: AnyDevice | None, tensor_device: AnyDevice | None) -> AnyDevice:
    """Return the `requested` device, the tensor's device, or the default one; raise if there is none.

    >>> with manage_device() as device:
    ...     resolve_device(None, None) is device
    True
    """
    device = requested or tensor_device or GetDefaultDevice()
    if device is None:
        raise MemoryConfigError(
            "the tensor is on the host and no single device is open; use to_device(tensor, device, memory_config=...)"
        )
    return device


@dataclass(frozen=True, slots=True)
class BufferPage:
    """The core, bank and address of one page of a buffer.

    >>> BufferPage(1048640, 0, 3, 0, 3, 3, 1048640, 2048, BufferType.DRAM).bank_id
    3
    """

    address: int
    device_id: int
    core_x: int
    core_y: int
    bank_id: int
    page_index: int
    page_address: int
    page_size: int
    buffer_type: BufferType


def get_buffer_pages(device: OpenDevice) -> list[BufferPage]:
    """Return the core and address of every page of every tensor on `device`, or on each of a mesh, in DRAM and L1.

    >>> from tilewright.tensor import Tensor
    >>> with manage_device() as device:
    ...     tensor = Tensor.of([[1, 2], [3, 4]]).to_device(device, "l1")
    ...     [(page.core_x, page.core_y) for page in get_buffer_pages(device)]
    [(1, 4), (4, 4)]
    """
    pages = []
    for chip in device.get_devices():
        for buffer_type in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
            for block in chip.memory_view(buffer_type.name).allocations:
                if block.spec is None:
                    continue
                rows = block.pages().rows().tolist()
                size = block.spec.page_bytes
                pages += [
                    BufferPage(block.address, chip.device_id, x, y, bank, page, address, size, buffer_type)
                    for page, bank, x, y, address in rows
                ]
    return pages


def dump_device_memory_state(device: OpenDevice, prefix: str = "") -> None:
    """Print the memory use of `device`, or of each device of a mesh, after `prefix`.

    >>> with manage_device() as device:
    ...     dump_device_memory_state(device)
    DRAM: 0 of 1072693184 bytes in each of 12 banks used, largest free block 1072693184
    L1: 0 of 1393312 bytes in each of 64 banks used, largest free block 1393312
    """
    chips = device.get_devices()
    for chip in chips:
        name = f"device {chip.device_id}: " if len(chips) > 1 else ""
        print(prefix + name + chip.report())


def synchronize_device(device: OpenDevice, cq_id: object = None, sub_device_ids: object = ()) -> None:
    """Do nothing: a simulated `device` has always finished; `cq_id` and `sub_device_ids` are ignored.

    >>> with manage_device() as device:
    ...     synchronize_device(device)
    """


# `MeshDevice`: a mesh of equal simulated chips, each with a memory of its own.


class MeshDevice(ChipProperties):
    """A mesh of equal devices; `open_mesh_device` opens one.

    Args:
        shape: the shape of the mesh.
        devices: the devices, the last dimension of the mesh fastest.

    >>> MeshDevice(MeshShape(1, 2), [Device("wormhole_n300"), Device("wormhole_n300")])
    MeshDevice(1x2 grid, 2 devices)
    """

    def __init__(self, shape: Sequence[int], devices: Sequence[Device]) -> None:
        self.shape = MeshShape(shape)
        if not self.shape.mesh_size():
            raise LayoutError(f"a mesh needs at least one device, got {self.shape}")
        if len(devices) != self.shape.mesh_size():
            raise LayoutError(f"a mesh of {self.shape} needs {self.shape.mesh_size()} devices, got {len(devices)}")
        self.chip = devices[0].chip
        self._devices = dict(zip(self.shape.coordinates(), devices, strict=True))
        self._submeshes: list[MeshDevice] = []

    def get_devices(self) -> list[Device]:
        """Return the devices, the last dimension of the mesh fastest.

        >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
        ...     [device.id() for device in mesh_device.get_devices()]
        [0, 1]
        """
        return list(self._devices.values())

    def get_device(self, coordinate: Sequence[int]) -> Device:
        """Return the device at `coordinate`.

        >>> with create_mesh_device(MeshShape(2, 2)) as mesh_device:
        ...     mesh_device.get_device((1, 0)).id()
        2
        """
        at = MeshCoordinate(coordinate)
        if at not in self._devices:
            raise LayoutError(f"{at} is outside the mesh {self.shape}")
        return self._devices[at]

    def get_device_id(self, coordinate: Sequence[int]) -> int:
        """Return the number of the device at `coordinate`.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.get_device_id(MeshCoordinate(1, 1))
        5
        """
        return self.get_device(coordinate).device_id

    def create_submesh(self, submesh_shape: Sequence[int], offset: Sequence[int] | None = None) -> MeshDevice:
        """Return the mesh of `submesh_shape` that starts at `offset` in this one; it shares its devices.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.create_submesh(MeshShape(1, 2), MeshCoordinate(1, 2)).get_device_ids()
        [6, 7]
        """
        shape = MeshShape(submesh_shape)
        start = MeshCoordinate([0] * len(self.shape) if offset is None else offset)
        if not len(shape) == len(start) == len(self.shape) or any(
            at + n > extent for at, n, extent in zip(start, shape, self.shape, strict=True)
        ):
            raise LayoutError(f"a submesh of {shape} from {start} on does not fit into a mesh of {self.shape}")
        coordinates = product(*[range(at, at + n) for at, n in zip(start, shape, strict=True)])
        submesh = MeshDevice(shape, [self.get_device(at) for at in coordinates])
        submesh.is_part = True
        self._submeshes.append(submesh)
        return submesh

    def create_submeshes(self, submesh_shape: Sequence[int]) -> list[MeshDevice]:
        """Return this mesh cut into meshes of `submesh_shape`, which must divide it.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     [submesh.get_device_ids() for submesh in mesh_device.create_submeshes(MeshShape(2, 2))]
        [[0, 1, 4, 5], [2, 3, 6, 7]]
        """
        shape = MeshShape(submesh_shape)
        pairs = list(zip(shape, self.shape, strict=False))
        if len(shape) != len(self.shape) or any(not n or extent % n for n, extent in pairs):
            raise LayoutError(f"a mesh of {self.shape} cannot be cut into meshes of {shape}; each extent must divide")
        starts = product(*[range(0, extent, n) for n, extent in pairs])
        return [self.create_submesh(shape, at) for at in starts]

    def get_submeshes(self) -> list[MeshDevice]:
        """Return the meshes that were created in this one.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.get_submeshes()
        []
        """
        return list(self._submeshes)

    def __repr__(self) -> str:
        return f"MeshDevice({'x'.join(map(str, self.shape))} grid, {self.get_num_devices()} devices)"


def open_mesh_device(
    mesh_shape: Sequence[int] | None = None,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    num_command_queues: int = 1,
    dispatch_core_config: object = None,
    offset: Sequence[int] | None = None,
    physical_device_ids: Sequence[int] = (),
    worker_l1_size: int | None = None,
    *,
    chip: ChipLike | None = None,
) -> MeshDevice:
    """Return a mesh of simulated devices; any shape can be opened.

    Args:
        mesh_shape: the shape, by default from the environment variable TILEWRIGHT_MESH, such as 2x4, or 1x1.
        l1_small_size, trace_region_size: bytes per bank that are reserved on each device.
        worker_l1_size: a limit of the L1 for tensors.
        physical_device_ids: the numbers of the devices, by default 0, 1, and so on.
        chip: the chip of all devices, by default from the environment variable TILEWRIGHT_CHIP, or wormhole_n150.
        num_command_queues, dispatch_core_config, offset: ignored: all simulated devices are equal.

    >>> mesh_device = open_mesh_device(MeshShape(2, 4), chip="wormhole_n300")
    >>> mesh_device, mesh_device.dram_grid_size()
    (MeshDevice(2x4 grid, 8 devices), 12-1)
    >>> close_mesh_device(mesh_device)
    """
    shape = _system_mesh_shape() if mesh_shape is None else MeshShape(mesh_shape)
    numbers = list(physical_device_ids) or list(range(shape.mesh_size()))
    simulated = resolve_chip(chip)
    devices = [Device(simulated, l1_small_size, trace_region_size, worker_l1_size) for _ in numbers]
    for number, device in zip(numbers, devices, strict=True):
        device.device_id = number
    return MeshDevice(shape, devices)


def close_mesh_device(mesh_device: MeshDevice) -> None:
    """Close `mesh_device`: it is no longer the default device.

    >>> close_mesh_device(open_mesh_device(MeshShape(1, 2)))
    """
    close_device(mesh_device)


@contextmanager
def create_mesh_device(*arguments: Any, **options: Any) -> Iterator[MeshDevice]:
    """Open a mesh of devices for the length of a with block; `arguments` and `options` are as in `open_mesh_device`.

    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     mesh_device.arch()
    'wormhole_b0'
    """
    mesh_device = open_mesh_device(*arguments, **options)
    try:
        yield mesh_device
    finally:
        close_mesh_device(mesh_device)


def get_num_devices() -> int:
    """Return the number of devices of the simulated system: the size of TILEWRIGHT_MESH, or one.

    >>> get_num_devices()
    1
    """
    return _system_mesh_shape().mesh_size()


def get_device_ids() -> list[int]:
    """Return the numbers of the devices of the simulated system.

    >>> get_device_ids()
    [0]
    """
    return list(range(get_num_devices()))


def _system_mesh_shape() -> MeshShape:
    text = os.environ.get("TILEWRIGHT_MESH") or "1x1"
    try:
        return MeshShape([int(n) for n in text.lower().split("x")])
    except ValueError:
        raise LayoutError(f"expected a mesh such as 2x4 in TILEWRIGHT_MESH, got {text!r}") from None


# The configs of mesh mappers and composers: which dimension of a tensor each dimension of a mesh runs along.


class MeshConfig:
    """The common part of the configs of mappers and composers: the shape and the start of the distribution in the mesh.

    >>> MeshConfig((2, 4), None).mesh_shape_override
    MeshShape([2, 4])
    """

    def __init__(self, shape: Sequence[int] | None, offset: Sequence[int] | None) -> None:
        self.mesh_shape_override = None if shape is None else MeshShape(shape)
        self.mesh_offset_override = None if not offset else MeshCoordinate(offset)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def _override_text(self) -> str:
        parts = {"mesh_shape_override": self.mesh_shape_override, "mesh_offset_override": self.mesh_offset_override}
        return "".join([f", {name}={value}" for name, value in parts.items() if value is not None])


def _bind_overload(arguments: tuple[Any, ...], many: str, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a config by name: of the overload with a list, called `many`, or with two integers.

    Keywords that were not given are None in `keywords`.
    """
    is_list = isinstance(arguments[0] if arguments else keywords[many], Sequence)
    names = [many] if is_list else ["row_dim", "col_dim"]
    names += ["mesh_shape_override", "mesh_offset_override"]
    result = dict.fromkeys(names) | dict(zip(names, arguments, strict=False))
    for name, value in keywords.items():
        if value is None:
            continue
        if name not in names or names.index(name) < len(arguments):
            raise TypeError(f"got an unexpected {name}={value!r}; expected ({', '.join(names)})")
        result[name] = value
    if len(arguments) > len(names):
        raise TypeError(f"expected at most {len(names)} arguments ({', '.join(names)}), got {len(arguments)}")
    return result


class MeshMapperConfig(MeshConfig):
    """How a tensor is cut: a placement per dimension of the mesh, or the dimensions that its rows and columns cut.

    Args:
        arguments: those below by position: `placements`, or `row_dim` and `col_dim`, and then the overrides.
        placements: `PlacementShard(dim)` or `PlacementReplicate()`, for each dimension of the distribution.
        row_dim, col_dim: instead, the dimension that the rows and the columns of the mesh cut; None replicates.
        mesh_shape_override: the shape of the distribution, by default the mesh's.
        mesh_offset_override: the device that the distribution starts at, by default the first.

    >>> MeshMapperConfig(row_dim=0, col_dim=None)
    MeshMapperConfig(placements: [PlacementShard(0), PlacementReplicate()])
    """

    def __init__(
        self,
        *arguments: Sequence[Placement] | Sequence[int] | int | None,
        placements: Sequence[Placement] | None = None,
        row_dim: int | None = None,
        col_dim: int | None = None,
        mesh_shape_override: Sequence[int] | None = None,
        mesh_offset_override: Sequence[int] | None = None,
    ) -> None:
        keywords: dict[str, Any] = {"placements": placements, "row_dim": row_dim, "col_dim": col_dim}
        keywords |= {"mesh_shape_override": mesh_shape_override, "mesh_offset_override": mesh_offset_override}
        bound = _bind_overload(arguments, "placements", keywords)
        super().__init__(bound["mesh_shape_override"], bound["mesh_offset_override"])
        if "placements" in bound:
            self.cuts = tuple([cut_of_placement(placement) for placement in bound["placements"]])
        else:
            self.cuts = (bound["row_dim"], bound["col_dim"])

    @property
    def placements(self) -> list[Placement]:
        """The placements.

        >>> MeshMapperConfig(None, 1).placements
        [PlacementReplicate(), PlacementShard(1)]
        """
        return [placement_of_cut(cut) for cut in self.cuts]

    def __repr__(self) -> str:
        return f"MeshMapperConfig(placements: {self.placements}{self._override_text()})"


class MeshComposerConfig(MeshConfig):
    """How parts are joined: the dimension of the tensor that each dimension of the mesh runs along.

    Args:
        arguments: those below by position: `dims`, or `row_dim` and `col_dim`, and then the overrides.
        dims: the dimensions, one for each dimension of the distribution.
        row_dim, col_dim: instead, the dimensions of the rows and of the columns of the mesh.
        mesh_shape_override: the shape of the distribution, by default the mesh's.
        mesh_offset_override: the device that the distribution starts at, by default the first.

    >>> MeshComposerConfig([0, 1]), MeshComposerConfig(0, 1).dims
    (MeshComposerConfig(dims: [0, 1]), (0, 1))
    """

    def __init__(
        self,
        *arguments: Sequence[int] | int | None,
        dims: Sequence[int] | None = None,
        row_dim: int | None = None,
        col_dim: int | None = None,
        mesh_shape_override: Sequence[int] | None = None,
        mesh_offset_override: Sequence[int] | None = None,
    ) -> None:
        keywords: dict[str, Any] = {"dims": dims, "row_dim": row_dim, "col_dim": col_dim}
        keywords |= {"mesh_shape_override": mesh_shape_override, "mesh_offset_override": mesh_offset_override}
        bound = _bind_overload(arguments, "dims", keywords)
        super().__init__(bound["mesh_shape_override"], bound["mesh_offset_override"])
        self.dims: tuple[int, ...] = tuple(bound["dims"] if "dims" in bound else (bound["row_dim"], bound["col_dim"]))
        if None in self.dims:
            raise LayoutError("a composer needs a dimension for the rows and one for the columns of the mesh")

    def __repr__(self) -> str:
        return f"MeshComposerConfig(dims: {list(self.dims)}{self._override_text()})"


# Mesh mappers, which cut an array for the devices of a mesh, and composers, which join its parts again.


def _place_distribution(mesh: MeshShape, config: MeshConfig, count: int) -> tuple[MeshShape, list[MeshCoordinate]]:
    """Return the shape of a distribution of `count` dimensions over `mesh`, and its devices in order."""
    shape = mesh if config.mesh_shape_override is None else config.mesh_shape_override
    if count != len(shape):
        raise LayoutError(f"{shape} needs {len(shape)} dimensions or placements, got {config!r}")
    if len(shape) == len(mesh) and all(n <= extent for n, extent in zip(shape, mesh, strict=True)):
        start = config.mesh_offset_override or (0,) * len(mesh)
        if len(start) != len(mesh) or any(at + n > extent for at, n, extent in zip(start, shape, mesh, strict=False)):
            raise LayoutError(f"a distribution of {shape} from {MeshCoordinate(start)} on does not fit into {mesh}")
        return shape, [MeshCoordinate([a + b for a, b in zip(start, at, strict=True)]) for at in shape.coordinates()]
    if any(config.mesh_offset_override or ()) or shape.mesh_size() > mesh.mesh_size():
        raise LayoutError(f"a distribution of {shape} does not fit into a mesh of {mesh}")
    return shape, list(mesh.coordinates())[: shape.mesh_size()]


def validate_dims(dims: Sequence[int | None], rank: int) -> None:
    """Raise unless the dimensions `dims` of a tensor of a `rank` exist, and differ; None is no dimension.

    >>> validate_dims([0, -1, None], 2)
    """
    cuts = [dim for dim in dims if dim is not None]
    for dim in cuts:
        if not -rank <= dim < rank:
            raise LayoutError(f"dimension {dim} is outside a tensor of rank {rank}; use {-rank} to {rank - 1}")
    if len({dim % rank for dim in cuts}) != len(cuts):
        raise LayoutError(f"the dimensions of a mesh must differ, got {cuts}")


def _mesh_shape(mesh_device: OpenDevice | Sequence[int]) -> MeshShape:
    """Return the shape of a mesh, which may be given as such."""
    if isinstance(mesh_device, (Device, MeshDevice)):
        return mesh_device.shape
    if isinstance(mesh_device, Sequence):
        return MeshShape(mesh_device)
    raise MemoryConfigError(
        f"expected a mesh, such as ttnn.open_mesh_device(ttnn.MeshShape(1, 2)), got {mesh_device!r:.60}"
    )


class TensorToMesh:
    """A mesh mapper: it chooses the part of a tensor for each device of a mesh.

    Args:
        mesh_shape: the shape of the mesh.
        config: the placements, and optionally another shape of the distribution.

    >>> TensorToMesh(MeshShape(1, 2), MeshMapperConfig(None, -1)).divide((32, 64)).part_shape
    (32, 32)
    """

    def __init__(self, mesh_shape: Sequence[int], config: MeshMapperConfig) -> None:
        if not isinstance(config, MeshMapperConfig):
            raise MemoryConfigError(f"expected a config, such as ttnn.MeshMapperConfig(None, 1), got {config!r:.60}")
        self.mesh_shape = MeshShape(mesh_shape)
        self._config = config
        self._shape, self._devices = _place_distribution(self.mesh_shape, config, len(config.cuts))

    def config(self) -> MeshMapperConfig:
        """Return the config.

        >>> TensorToMesh((1, 2), MeshMapperConfig(None, -1)).config()
        MeshMapperConfig(placements: [PlacementReplicate(), PlacementShard(-1)])
        """
        return self._config

    def divide(self, shape: Sequence[int]) -> Mesh:
        """Return how the devices share a tensor of `shape`: all parts are equal, or the tensor is refused.

        As in ttnn, a dimension is cut into pieces of its extent divided by the devices, rounded up. A distribution of
        one dimension may have fewer pieces than devices, of which the last ones then hold nothing.

        >>> mesh = TensorToMesh((1, 8), MeshMapperConfig([placement_of_cut(0)], (8,))).divide((10, 3))
        >>> mesh.part_shape, mesh.topology.distribution
        ((2, 3), (5,))
        """
        part, distribution = list(shape), list(self._shape)
        validate_dims(self._config.cuts, len(part))
        for axis, cut in enumerate(self._config.cuts):
            if cut is None:
                continue
            extent, devices = part[cut], distribution[axis]
            piece = max(1, ceil_div(extent, devices))
            pieces = ceil_div(extent, piece)
            if extent % piece or not pieces or (pieces != devices and len(distribution) > 1):
                raise LayoutError(
                    f"dimension {cut} of shape {list(shape)} cannot be cut into equal parts for {devices} devices; pad"
                    f" it to {max(1, ceil_div(extent, devices)) * devices}"
                )
            part[cut], distribution[axis] = piece, pieces
        devices_in_use = tuple([tuple(at) for at in self._devices[: prod(distribution)]])
        return Mesh(
            tuple(self.mesh_shape), Topology(tuple(distribution), self._config.cuts, devices_in_use), tuple(part)
        )


class ReplicateTensorToMesh(TensorToMesh):
    """The mapper that gives every device of `mesh_device` all of the tensor.

    `as_tensor` caches such a tensor once, for any mesh.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     ReplicateTensorToMesh(mesh_device).divide((32, 64)).topology.placements
    (None,)
    """

    def __init__(self, mesh_device: OpenDevice) -> None:
        super().__init__(
            mesh_device.shape, MeshMapperConfig([placement_of_cut(None)], (_mesh_shape(mesh_device).mesh_size(),))
        )


def create_mesh_mapper(mesh_device: OpenDevice | Sequence[int], config: MeshMapperConfig) -> TensorToMesh:
    """Return the mapper of `config` for `mesh_device`, or for the shape of a mesh.

    >>> mapper = create_mesh_mapper(MeshShape(2, 4), MeshMapperConfig(0, 1))
    >>> mapper.divide((64, 64)).part_shape
    (32, 16)
    """
    return TensorToMesh(_mesh_shape(mesh_device), config)


def replicate_tensor_to_mesh_mapper(mesh_device: OpenDevice) -> TensorToMesh:
    """Return the mapper that gives every device of `mesh_device` all of the tensor, also in the cache of `as_tensor`.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     replicate_tensor_to_mesh_mapper(mesh_device).divide((32, 64)).part_shape
    (32, 64)
    """
    return create_mesh_mapper(mesh_device, ReplicateTensorToMesh(mesh_device).config())


def shard_tensor_to_mesh_mapper(mesh_device: OpenDevice, dim: int) -> TensorToMesh:
    """Return the mapper that cuts dimension `dim` for all devices of `mesh_device`, in row-major order.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(2, 2)) as mesh_device:
    ...     shard_tensor_to_mesh_mapper(mesh_device, dim=0).divide((32, 64)).part_shape
    (8, 64)
    """
    return create_mesh_mapper(
        mesh_device, MeshMapperConfig([placement_of_cut(dim)], (_mesh_shape(mesh_device).mesh_size(),))
    )


ShardTensorToMesh = shard_tensor_to_mesh_mapper


def ShardTensor2dMesh(  # noqa: N802  (ttnn's name)
    mesh_device: OpenDevice, mesh_shape: Sequence[int], dims: Sequence[int | None]
) -> TensorToMesh:
    """Return the mapper whose rows of the mesh cut dimension `dims[0]`, and whose columns cut `dims[1]`.

    Args:
        mesh_device: the mesh.
        mesh_shape: the shape of the distribution, usually the mesh's.
        dims: the two dimensions; None replicates.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
    ...     ShardTensor2dMesh(mesh_device, mesh_shape=(2, 4), dims=(None, 1)).divide((32, 64)).part_shape
    (32, 16)
    """
    _validate_pairs(mesh_shape, dims)
    return create_mesh_mapper(mesh_device, MeshMapperConfig([placement_of_cut(dim) for dim in dims], mesh_shape))


class MeshToTensor:
    """A mesh composer: it joins the parts on the devices of a mesh.

    Args:
        mesh_shape: the shape of the mesh.
        config: the dimensions to join along, and optionally another shape of the distribution.

    >>> MeshToTensor((1, 2), MeshComposerConfig(0, 1)).arrange((32, 32), {(0, 0), (0, 1)}).distribution
    (1, 2)
    """

    def __init__(self, mesh_shape: Sequence[int], config: MeshComposerConfig) -> None:
        if not isinstance(config, MeshComposerConfig):
            raise MemoryConfigError(f"expected a config, such as ttnn.MeshComposerConfig(0, 1), got {config!r:.60}")
        self.mesh_shape = MeshShape(mesh_shape)
        self._dims = config.dims
        self._shape, self._devices = _place_distribution(self.mesh_shape, config, len(config.dims))

    def arrange(self, part_shape: Sequence[int], holders: Collection[Coordinate]) -> Topology:
        """Return how parts of `part_shape` make one tensor; `holders` are the devices that hold one.

        >>> MeshToTensor((1, 2), MeshComposerConfig([0], (2,))).arrange((32, 32), {(0, 0)}).distribution
        (1,)
        """
        devices = [tuple(at) for at in self._devices]
        present = [at for at in devices if at in holders]
        if len(present) == 1:  # one part is the whole, whichever dimensions it would be joined along
            return Topology((1,), (None,), tuple(present))
        if present:
            validate_dims(self._dims, len(part_shape))
        if len(self._shape) == 1:  # a line of devices of which the last ones may hold nothing
            return Topology((len(present),), self._dims, tuple(present))
        missing = [MeshCoordinate(at) for at in devices if at not in holders]
        if missing:
            raise LayoutError(f"device {missing[0]} holds no part; compose along the mesh that the tensor is on")
        return Topology(tuple(self._shape), self._dims, tuple(devices))


def create_mesh_composer(mesh_device: OpenDevice | Sequence[int], config: MeshComposerConfig) -> MeshToTensor:
    """Return the composer of `config` for `mesh_device`, or for the shape of a mesh.

    >>> type(create_mesh_composer(MeshShape(2, 4), MeshComposerConfig(0, 1))).__name__
    'MeshToTensor'
    """
    return MeshToTensor(_mesh_shape(mesh_device), config)


def concat_mesh_to_tensor_composer(mesh_device: OpenDevice, dim: int) -> MeshToTensor:
    """Return the composer that joins the parts of all devices of `mesh_device` along `dim`, in row-major order.

    >>> import numpy as np
    >>> from tilewright.ttnn import create_mesh_device, from_torch, to_torch
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     tensor = from_torch(np.eye(2), mesh_mapper=shard_tensor_to_mesh_mapper(mesh_device, dim=0))
    ...     to_torch(tensor, mesh_composer=concat_mesh_to_tensor_composer(mesh_device, dim=0)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return create_mesh_composer(mesh_device, MeshComposerConfig([dim], (_mesh_shape(mesh_device).mesh_size(),)))


ConcatMeshToTensor = concat_mesh_to_tensor_composer


def ConcatMesh2dToTensor(  # noqa: N802  (ttnn's name)
    mesh_device: OpenDevice, mesh_shape: Sequence[int], dims: Sequence[int]
) -> MeshToTensor:
    """Return the composer that joins along `dims[0]` over the rows of the mesh, and along `dims[1]` over its columns.

    Args:
        mesh_device: the mesh.
        mesh_shape: the shape of the distribution, usually the mesh's.
        dims: the two dimensions.

    >>> import numpy as np
    >>> from tilewright.ttnn import create_mesh_device, from_torch, to_torch
    >>> with create_mesh_device(MeshShape(2, 2)) as mesh_device:
    ...     tensor = from_torch(np.eye(2), mesh_mapper=ShardTensor2dMesh(mesh_device, (2, 2), (0, 1)))
    ...     to_torch(tensor, mesh_composer=ConcatMesh2dToTensor(mesh_device, (2, 2), (0, 1))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _validate_pairs(mesh_shape, dims)
    return create_mesh_composer(mesh_device, MeshComposerConfig(dims, mesh_shape))


def _validate_pairs(mesh_shape: Sequence[int], dims: Sequence[int | None]) -> None:
    if not len(mesh_shape) == len(dims) == 2:
        raise LayoutError(f"expected a mesh of two dimensions and two dims, got {list(mesh_shape)} and {list(dims)}")


# `MeshParts`: the parts of a tensor, by the coordinate of the device that holds them.

_ONE_DEVICE: Coordinate = (0, 0)


@dataclass(frozen=True, eq=False)
class MeshParts:
    """The parts of a tensor on the devices of a mesh, all of one spec; without a mesh there is one part.

    Args:
        by_device: the native tensor of each device; on the host, replicas are one object.
        mesh_shape: the shape of the mesh.
        topology: how the parts make one tensor.
        device: the mesh of devices that the parts are on, None for the host or a device without a mesh.

    >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).topology
    Topology(distribution=(1,), placements=(None,), coordinates=((0, 0),))
    """

    by_device: Mapping[Coordinate, tensor.Tensor]
    mesh_shape: tuple[int, ...]
    topology: Topology
    device: MeshDevice | None = None

    def __post_init__(self) -> None:
        for part in list(self.by_device.values())[:1]:  # all have one spec
            check_spec(part.spec, on_device=part.device is not None)

    @classmethod
    def single(cls, part: tensor.Tensor) -> MeshParts:
        """Return the tensor of one device, or of the host.

        >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).mesh_shape
        (1, 1)
        """
        return cls({_ONE_DEVICE: part}, (1, 1), Topology.replicated([_ONE_DEVICE]))

    @classmethod
    def distribute(
        cls, values: np.ndarray[Any, Any], mapper: TensorToMesh, create: Callable[[Any], tensor.Tensor]
    ) -> MeshParts:
        """Return `values` cut by `mapper`; `create` makes a tensor of each part, once for all its replicas.

        >>> from tilewright.ttnn import MeshMapperConfig
        >>> mapper = TensorToMesh((1, 2), MeshMapperConfig(None, 1))
        >>> parts = MeshParts.distribute(np.array([[1, 2]]), mapper, tensor.Tensor.of)
        >>> [part.numpy().tolist() for part in parts.by_device.values()]
        [[[1]], [[2]]]
        """
        mesh = mapper.divide(values.shape)
        parts: dict[Coordinate, tensor.Tensor] = {}
        for box, devices in mesh.windows().items():
            parts |= dict.fromkeys(devices, create(values[box.slices]))
        return cls({at: parts[at] for at in mesh.topology.coordinates}, mesh.shape, mesh.topology)

    @property
    def first(self) -> tensor.Tensor:
        """The part of the first device, which has the spec of all of them.

        >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).first.shape
        Shape([1, 2])
        """
        return next(iter(self.by_device.values()))

    @property
    def mesh(self) -> Mesh:
        """The mesh that shares the tensor, which can be drawn.

        >>> print(MeshParts.single(tensor.Tensor.of([[1, 2]])).mesh)
        1 x 1 devices; each holds 1 x 2
        """
        return Mesh(self.mesh_shape, self.topology, self.first.shape.logical)

    def only(self) -> tensor.Tensor:
        """Return the one part; raise if there are more.

        >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).only().numpy().tolist()
        [[1, 2]]
        """
        if len(self.by_device) > 1:
            raise LayoutError(
                f"the tensor is distributed over {len(self.by_device)} devices of {MeshShape(self.mesh_shape)}; pass a"
                " mesh_composer to to_torch or to_numpy, or take the parts with get_device_tensors"
            )
        return self.first

    def map(self, change: Callable[[tensor.Tensor], tensor.Tensor]) -> MeshParts:
        """Return the parts after `change`, which is called once for all replicas that are one object.

        >>> parts = MeshParts.single(tensor.Tensor.of([[1, 2]]))
        >>> parts.map(lambda part: part.to_dtype("int8")).first.dtype
        format_of('int8')
        """
        changed = {id(part): change(part) for part in {id(part): part for part in self.by_device.values()}.values()}
        return replace(self, by_device={at: changed[id(part)] for at, part in self.by_device.items()})

    def to_device(self, device: AnyDevice, config: memory.MemoryConfig | None) -> MeshParts:
        """Return the parts on `device`, in the memory `config`; a part without a mesh goes to every device of a mesh.

        >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).to_device(memory.Device("n150"), None).first.storage_type.name
        'DEVICE'
        """
        if not isinstance(device, (memory.Device, MeshDevice)):
            raise MemoryConfigError(f"expected a device, such as ttnn.open_device(device_id=0), got {device!r:.60}")
        if not isinstance(device, MeshDevice):
            if len(self.by_device) > 1:
                mesh = MeshShape(self.mesh_shape)
                raise LayoutError(
                    f"the tensor is distributed over {len(self.by_device)} devices of {mesh}, not one; use"
                    f" ttnn.open_mesh_device(ttnn.{mesh})"
                )
            placed = MeshParts.single(self.only().to_device(device, config))
            return replace(placed, topology=self.topology) if self.mesh_shape == (1, 1) else placed
        shape = tuple(device.shape)
        if self.mesh_shape == (1, 1) != shape:
            topology = Topology.replicated([tuple(at) for at in device.shape.coordinates()])
            sources: Mapping[Coordinate, tensor.Tensor] = dict.fromkeys(topology.coordinates, self.only())
        else:
            topology, sources = self.topology, self.by_device
        outside = [at for at in sources if at not in set(device.shape.coordinates())]
        if outside:
            raise LayoutError(
                f"the tensor is distributed over {MeshShape(self.mesh_shape)}, and its device {outside[0]} is outside"
                f" {device.shape}; distribute it for that mesh"
            )
        parts = {at: part.to_device(device.get_device(at), config) for at, part in sources.items()}
        return MeshParts(parts, shape, topology, device)

    def from_device(self) -> MeshParts:
        """Return the parts on the host.

        >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).from_device().first.device is None
        True
        """
        return replace(self.map(lambda part: part.from_device()), device=None)

    def compose(self, composer: MeshToTensor) -> np.ndarray[Any, Any]:
        """Return the values of the parts, joined by `composer`.

        >>> parts = MeshParts.single(tensor.Tensor.of([[1, 2]]))
        >>> from tilewright.ttnn import MeshComposerConfig
        >>> parts.compose(MeshToTensor((1, 1), MeshComposerConfig(0, 1))).tolist()
        [[1, 2]]
        """
        if not isinstance(composer, MeshToTensor):
            raise MemoryConfigError(
                f"mesh_composer={composer!r:.60} is not a mesh composer, such as ttnn.ConcatMeshToTensor(mesh_device,"
                " dim=0)"
            )
        shape = self.first.shape.logical
        topology = composer.arrange(shape, self.by_device)
        joined = topology.global_shape(shape) if topology.coordinates else (0,)  # of no part, as ttnn has it
        whole = np.empty(joined, self.first.dtype.value_format.dtype)
        for number, at in enumerate(topology.coordinates):
            copy(self.by_device[at].numpy(), whole[topology.device_window(number, shape)])
        return whole


# `get_memory_view`: how much of a device's memory is allocated, block by block.

_NO_BLOCK = str(2**64 - 1)  # what ttnn writes where there is no neighbour


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The use of one memory of a device, in bytes per bank.

    `block_table` has a row for each allocated and each free block, numbered by address, in the fields and the text of
    ttnn: `blockID`, `address` (from the start of the bank), `size`, `prevID`, `nextID`, `allocated`.

    >>> MemoryView(12, 1024, 256, 768, 768, []).total_bytes_free_per_bank
    768
    """

    num_banks: int
    total_bytes_per_bank: int
    total_bytes_allocated_per_bank: int
    total_bytes_free_per_bank: int
    largest_contiguous_bytes_free_per_bank: int
    block_table: list[dict[str, str]] = field(hash=False)


def get_memory_view(device: OpenDevice, buffer_type: BufferTypeLike) -> MemoryView:
    """Return the use of the memory `buffer_type` of `device`, or of the first device of a mesh.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     view = get_memory_view(device, BufferType.L1)
    >>> view.num_banks, view.total_bytes_per_bank, view.block_table[0]["allocated"]
    (64, 1393312, 'no')
    """
    chip, buffer_name = device.get_devices()[0], BufferType.of(buffer_type).name
    view, start = chip.memory_view(buffer_name), chip.allocator.start_address(buffer_name)
    blocks, end = [], 0
    for allocation in view.allocations:
        if allocation.shard_addresses:  # which ttnn does not count
            continue
        address = allocation.address - start
        blocks += [(end, address - end, "no"), (address, allocation.size, "yes")]
        end = address + allocation.size
    blocks = [block for block in [*blocks, (end, view.bank_bytes - end, "no")] if block[1]]
    free = [size for _, size, allocated in blocks if allocated == "no"]
    used = view.bank_bytes - sum(free)
    return MemoryView(view.num_banks, view.bank_bytes, used, sum(free), max(free, default=0), _block_table(blocks))


def _block_table(blocks: list[tuple[int, int, str]]) -> list[dict[str, str]]:
    """Return the rows of (address, size, allocated), each with the numbers of its neighbours."""
    last = len(blocks) - 1
    return [
        {
            "blockID": str(k),
            "address": str(address),
            "size": str(size),
            "prevID": str(k - 1) if k else _NO_BLOCK,
            "nextID": str(k + 1) if k < last else _NO_BLOCK,
            "allocated": allocated,
        }
        for k, (address, size, allocated) in enumerate(blocks)
    ]


# Memory configs for shards: `create_sharded_memory_config`, exactly as in ttnn, and the config of weights in DRAM.

_TILE = 32
_STRATEGIES: dict[object, ShardStrategy] = {strategy.memory_layout: strategy for strategy in ShardStrategy}

GridLike: TypeAlias = CoreRangeSet | memory.CoreGrid | memory.CoreRangeSet | Sequence[memory.CoreGrid]


def create_sharded_memory_config(
    shape: Iterable[int],
    core_grid: GridLike,
    strategy: types.ShardStrategy | ShardStrategy | str,
    orientation: OrientationLike | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts `shape` evenly over `core_grid` by `strategy`, in `orientation`, or raise.

    With `use_height_and_width_as_shard_shape` the last two extents are the shard shape, swapped for col_major.

    >>> from tilewright.ttnn import CoreGrid, ShardStrategy
    >>> create_sharded_memory_config((64, 64), CoreGrid(y=2, x=2), ShardStrategy.BLOCK).shard_spec.shape
    [32, 32]
    """
    extents = _validate_shape(shape)
    cores, is_grid = _cores_of_grid(core_grid)
    how, order = ShardStrategy.of(strategy), ShardOrientation.of(orientation or "row_major")
    if use_height_and_width_as_shard_shape:
        return _build_config(how, cores, _shard_shape_of(extents, order), order)
    if not is_grid:
        raise MemoryConfigError(
            f"expected a CoreGrid to compute the shard shape for, got {cores}; pass the shard shape with"
            " use_height_and_width_as_shard_shape=True, or use create_sharded_memory_config_"
        )
    height, width = prod(extents[:-1]), extents[-1]
    down, across = how.shard_counts(cores, order)
    if height % down or width % across:
        raise MemoryConfigError(
            f"a matrix of {height} x {width} cannot be cut evenly into {down} x {across} shards; pad it to"
            f" {round_up(height, down)} x {round_up(width, across)}, or use another grid"
        )
    return _build_config(how, cores, (height // down, width // across), order)


def create_sharded_memory_config_(
    shape: Iterable[int],
    core_grid: GridLike,
    strategy: types.ShardStrategy | ShardStrategy | types.TensorMemoryLayout | str,
    orientation: OrientationLike,
    use_height_and_width_as_shard_shape: bool = False,
    tile_layout: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts `shape` over any `core_grid` by `strategy`, in `orientation`, rounding up.

    With `use_height_and_width_as_shard_shape` the last two extents are the shard shape, swapped for col_major. With
    `tile_layout` shards must be whole tiles in at least one dimension.

    >>> from tilewright.ttnn import CoreGrid, ShardStrategy
    >>> rows = ShardOrientation.ROW_MAJOR
    >>> create_sharded_memory_config_((3, 5, 7), CoreGrid(y=2, x=4), ShardStrategy.HEIGHT, rows).shard_spec.shape
    [2, 7]
    """
    extents = _validate_shape(shape)
    cores, _ = _cores_of_grid(core_grid)
    how = _STRATEGIES.get(strategy) or ShardStrategy.of(strategy)
    order = ShardOrientation.of(orientation)
    if use_height_and_width_as_shard_shape:
        shard = _shard_shape_of(extents, order)
        if tile_layout:
            _validate_shard_tiles(shard, [round_up(n, _TILE) for n in shard])
        return _build_config(how, cores, shard, order)
    if how is ShardStrategy.BLOCK and cores.bounding_box.size != cores.num_cores:
        raise MemoryConfigError(
            f"block sharding needs a full rectangle of cores, but {cores} has only {cores.num_cores} of the"
            f" {cores.bounding_box.size} cores in its bounding box {cores.bounding_box}"
        )
    height, width = prod(extents[:-1]), extents[-1]
    down, across = how.shard_counts(cores, order)
    if tile_layout and how is ShardStrategy.BLOCK:
        height = round_up(height, down * _TILE)
    shard = (ceil_div(height, down), ceil_div(width, across))
    if tile_layout:
        _validate_shard_tiles(shard, [round_up(height, down * _TILE), round_up(width, across * _TILE)])
    return _build_config(how, cores, shard, order)


def _validate_shard_tiles(shard: tuple[int, int], padded_shape: list[int]) -> None:
    """Raise unless a shard is a whole number of tiles in at least one dimension, which is enough for ttnn."""
    if shard[0] % _TILE and shard[1] % _TILE:
        raise MemoryConfigError(
            f"shard shape {shard[0]} x {shard[1]} is not a multiple of {_TILE} in either dimension; pad the tensor to"
            f" {padded_shape[0]} x {padded_shape[1]}"
        )


def _validate_shape(shape: Any) -> tuple[int, ...]:
    try:
        extents = tuple([index(n) for n in shape])
    except TypeError:
        remedy = f"; write ({', '.join(shape.split('x'))})" if isinstance(shape, str) and "x" in shape else ""
        raise MemoryConfigError(f"expected a shape of integers such as (64, 32), got {shape!r}{remedy}") from None
    if len(extents) < 2:
        raise MemoryConfigError(f"expected a shape of rank 2 or more, got {list(extents)}")
    if min(extents) < 1:
        raise MemoryConfigError(f"expected extents of at least 1 to be cut into shards, got {list(extents)}")
    return extents


def _cores_of_grid(core_grid: GridLike) -> tuple[memory.CoreRangeSet, bool]:
    """Return the cores of `core_grid`, and whether it is a single `CoreGrid`."""
    grid = unwrap(core_grid)
    if isinstance(grid, memory.CoreGrid):
        return grid.ranges, True
    if isinstance(grid, memory.CoreRangeSet):
        return grid, False
    parts = [unwrap(part) for part in grid] if isinstance(grid, (tuple, list)) else []
    if len(parts) == 2 and all(isinstance(part, memory.CoreGrid) for part in parts):
        main, extra = parts
        row = CoreRange((0, main.y), (extra.x - 1, main.y))
        return memory.CoreRangeSet([*main.ranges, row]), False
    raise MemoryConfigError(
        f"expected a CoreGrid, a CoreRangeSet, or a pair of CoreGrids (a grid and one more row), got {grid!r}"
    )


def _shard_shape_of(extents: tuple[int, ...], order: ShardOrientation) -> tuple[int, int]:
    height, width = extents[-2:]
    if order is ShardOrientation.ROW_MAJOR:
        return height, width
    if height != width:
        warnings.warn(
            f"col_major swaps the shard shape: ({height}, {width}) becomes ({width}, {height}), as ttnn does",
            stacklevel=3,
        )
    return width, height


def _build_config(
    strategy: ShardStrategy, cores: memory.CoreRangeSet, shard: tuple[int, int], order: ShardOrientation
) -> MemoryConfig:
    return MemoryConfig(strategy.memory_layout, "l1", memory.ShardSpec(cores, shard, order))


def create_dram_sharded_mem_config(k: int, n: int, mesh_device: OpenDevice) -> MemoryConfig:
    """Return the memory config of models for a weight of `k` x `n` on each device: its width cut over the DRAM banks.

    ttnn itself does not have it; models define it, with these arguments or as a method that knows the device.

    Args:
        k, n: the height and the width of the weight on one device.
        mesh_device: the device, or the mesh of devices, whose DRAM banks take a whole number of tiles each.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     create_dram_sharded_mem_config(4096, 6144, device).shard_spec.shape
    [4096, 512]
    """
    banks = mesh_device.dram_grid_size().x
    shards = memory.ShardSpec(memory.CoreRangeSet.of((banks, 1)), (k, ceil_div(n, _TILE * banks) * _TILE))
    return MemoryConfig(types.TensorMemoryLayout.WIDTH_SHARDED, types.BufferType.DRAM, shards)
