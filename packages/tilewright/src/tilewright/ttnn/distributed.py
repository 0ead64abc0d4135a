# SPDX-License-Identifier: Apache-2.0
"""Tensors over a mesh: cut for its devices, taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import LayoutError
from ..files.mesh import Topology
from ..memory import TensorSpec as PlainSpec
from ..tensor import Tensor as PlainTensor
from .mesh_device import MeshDevice
from .mesh_mappers import MeshToTensor, TensorToMesh
from .mesh_parts import MeshParts
from .meshes import MeshCoordinate, MeshShape
from .tensor import Tensor, takes_tensor
from .tensor_values import create_parts


@takes_tensor
def distribute_tensor(tensor: Tensor, mapper: TensorToMesh, mesh_device: MeshDevice | None = None) -> Tensor:
    """Return a host `tensor` cut as `mapper` says, on the host or on `mesh_device`.

    >>> from tilewright.ttnn import MeshMapperConfig, create_mesh_mapper
    >>> mapper = create_mesh_mapper(MeshShape(1, 2), MeshMapperConfig(None, 1))
    >>> distribute_tensor(Tensor([1, 2, 3, 4], [1, 4]), mapper).shape
    Shape([1, 2])
    """
    whole = tensor.plain
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
    """Return the parts of `tensor`, joined as `composer` says, as one tensor on the host.

    >>> from tilewright.ttnn import MeshComposerConfig, create_mesh_composer
    >>> halves = from_host_shards([Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])], MeshShape(1, 2))
    >>> aggregate_tensor(halves, create_mesh_composer(MeshShape(1, 2), MeshComposerConfig(0, 1))).to_list()
    [[1, 2, 3, 4]]
    """
    values = tensor.parts.compose(composer)
    part = tensor.parts.first
    spec = PlainSpec(values.shape, part.dtype, part.layout, part.tile if part.spec.is_tiled else None, part.memory)
    return Tensor.wrap(PlainTensor.from_array(values, spec))


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

    As in ttnn, they count as parts along dimension 0; `update_tensor_topology` says otherwise.

    >>> from_host_shards(
    ...     [Tensor([1, 2], [1, 2]), Tensor([3, 4], [1, 2])], MeshShape(1, 2)
    ... ).tensor_topology().placements()
    [PlacementShard(0)]
    """
    shape = MeshShape(mesh_shape)
    if len(tensors) != shape.mesh_size() or not tensors:
        raise LayoutError(f"{shape} needs {max(1, shape.mesh_size())} tensors, got {len(tensors)}")
    shards = [tensor.plain for tensor in tensors]
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


def _validate_equal_specs(parts: Sequence[PlainTensor]) -> None:
    other = next((part.spec for part in parts if part.spec != parts[0].spec), None)
    if other is not None:
        raise LayoutError(f"parts must have one spec, got {parts[0].spec} and {other}")
