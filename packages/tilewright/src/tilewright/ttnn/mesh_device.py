# SPDX-License-Identifier: Apache-2.0
"""`MeshDevice`: a mesh of equal simulated chips, each with a memory of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from ..errors import LayoutError
from ..memory.chip import ChipLike
from .devices import ChipProperties, Device, close_device, resolve_chip
from .meshes import MeshCoordinate, MeshShape


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

    def get_num_devices(self) -> int:
        """Return the number of devices.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.get_num_devices()
        8
        """
        return self.shape.mesh_size()

    def get_device_ids(self) -> list[int]:
        """Return the numbers of the devices.

        >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
        ...     mesh_device.get_device_ids()
        [0, 1]
        """
        return [device.device_id for device in self.get_devices()]

    def get_device_id(self, coordinate: Sequence[int]) -> int:
        """Return the number of the device at `coordinate`.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.get_device_id(MeshCoordinate(1, 1))
        5
        """
        return self.get_device(coordinate).device_id

    def id(self) -> int:
        """Return the number of the first device.

        >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
        ...     mesh_device.id()
        0
        """
        return self.get_device_ids()[0]

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
        places = product(*[range(at, at + n) for at, n in zip(start, shape, strict=True)])
        submesh = MeshDevice(shape, [self.get_device(at) for at in places])
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
        mesh_shape: the shape, by default that of the environment variable TILEWRIGHT_MESH, such as 2x4, or 1x1.
        l1_small_size, trace_region_size: bytes per bank that are reserved on each device.
        worker_l1_size: a limit of the L1 for tensors.
        physical_device_ids: the numbers of the devices, by default 0, 1, and so on.
        chip: the chip of all devices, by default that of the environment variable TILEWRIGHT_CHIP, or wormhole_n150.
        num_command_queues, dispatch_core_config, offset: ignored: all simulated devices are equal.

    >>> mesh_device = open_mesh_device(MeshShape(2, 4), chip="wormhole_n300")
    >>> mesh_device, mesh_device.dram_grid_size()
    (MeshDevice(2x4 grid, 8 devices), 12-1)
    >>> close_mesh_device(mesh_device)
    """
    shape = _system_mesh_shape() if mesh_shape is None else MeshShape(mesh_shape)
    numbers = list(physical_device_ids) or list(range(shape.mesh_size()))
    simulated = resolve_chip(chip)
    devices = []
    for number in numbers:
        device = Device(simulated, l1_small_size, trace_region_size, worker_l1_size)
        device.device_id = number
        devices.append(device)
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
    """Return the number of devices of the simulated system: those of TILEWRIGHT_MESH, or one.

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
