# SPDX-License-Identifier: Apache-2.0
"""`MeshParts`: the parts of a tensor, by the coordinate of the device that holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import memory, tensor
from ..copying import copy
from ..errors import LayoutError, MemoryConfigError
from ..files.mesh import Coordinate, Mesh, Topology
from .devices import AnyDevice
from .mesh_device import MeshDevice
from .mesh_mappers import MeshToTensor, TensorToMesh
from .meshes import MeshShape
from .strict_rules import check_spec

_ONE_DEVICE: Coordinate = (0, 0)


@dataclass(frozen=True, eq=False)
class MeshParts:
    """The parts of a tensor on the devices of a mesh, all of one spec; without a mesh there is one part.

    Args:
        by_device: the core tensor of each device; on the host, replicas are one object.
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
        """Return `values` cut as `mapper` says; `create` makes a tensor of each part, once for all its replicas.

        >>> from tilewright.ttnn import MeshMapperConfig
        >>> mapper = TensorToMesh((1, 2), MeshMapperConfig(None, 1))
        >>> parts = MeshParts.distribute(np.array([[1, 2]]), mapper, tensor.Tensor.of)
        >>> [part.numpy().tolist() for part in parts.by_device.values()]
        [[[1]], [[2]]]
        """
        mesh = mapper.divide(values.shape)
        held: dict[Coordinate, tensor.Tensor] = {}
        for box, devices in mesh.windows().items():
            held |= dict.fromkeys(devices, create(values[box.slices]))
        return cls({at: held[at] for at in mesh.topology.coordinates}, mesh.shape, mesh.topology)

    @property
    def first(self) -> tensor.Tensor:
        """Return the part of the first device, which has the spec of all of them.

        >>> MeshParts.single(tensor.Tensor.of([[1, 2]])).first.shape
        Shape([1, 2])
        """
        return next(iter(self.by_device.values()))

    @property
    def mesh(self) -> Mesh:
        """Return the mesh that shares the tensor, which can be drawn.

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
        """Return the values of the parts, joined as `composer` says.

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
        for index, at in enumerate(topology.coordinates):
            copy(self.by_device[at].numpy(), whole[topology.device_window(index, shape)])
        return whole
