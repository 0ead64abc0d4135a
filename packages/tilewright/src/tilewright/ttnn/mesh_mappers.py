# SPDX-License-Identifier: Apache-2.0
"""Mesh mappers, which say how an array is cut for the devices of a mesh, and composers, which join its parts again.

A distribution that fits into the mesh takes the devices of that rectangle; any other takes devices in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError, MemoryConfigError
from ..files.mesh import Mesh, Topology
from .devices import Device, OpenDevice
from .mesh_configs import MeshComposerConfig, MeshConfig, MeshMapperConfig
from .mesh_device import MeshDevice
from .meshes import MeshCoordinate, MeshShape, placement_of_cut


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


def _validate_dims(dims: Sequence[int | None], rank: int) -> None:
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
    """A mesh mapper: it says which part of a tensor each device of a mesh gets.

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
        _validate_dims(self._config.cuts, len(part))
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


def ShardTensorToMesh(mesh_device: OpenDevice, dim: int) -> TensorToMesh:  # noqa: N802  (ttnn's name)
    """Return the mapper that cuts dimension `dim` for all devices of `mesh_device`, in row-major order.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     ShardTensorToMesh(mesh_device, dim=1).divide((32, 64)).part_shape
    (32, 32)
    """
    return shard_tensor_to_mesh_mapper(mesh_device, dim)


def ShardTensor2dMesh(  # noqa: N802  (ttnn's name)
    mesh_device: OpenDevice, mesh_shape: Sequence[int], dims: Sequence[int | None]
) -> TensorToMesh:
    """Return the mapper whose rows of the mesh cut dimension `dims[0]`, and whose columns cut `dims[1]`.

    Args:
        mesh_device: the mesh.
        mesh_shape: the shape of the distribution, usually that of the mesh.
        dims: the two dimensions; None replicates.

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(2, 4)) as mesh_device:
    ...     ShardTensor2dMesh(mesh_device, mesh_shape=(2, 4), dims=(None, 1)).divide((32, 64)).part_shape
    (32, 16)
    """
    _validate_pairs(mesh_shape, dims)
    return create_mesh_mapper(mesh_device, MeshMapperConfig([placement_of_cut(dim) for dim in dims], mesh_shape))


class MeshToTensor:
    """A mesh composer: it says how the parts on the devices of a mesh are joined.

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

    def arrange(self, part_shape: Sequence[int], holders: Any) -> Topology:
        """Return how parts of `part_shape` make one tensor; `holders` are the devices that hold one.

        >>> MeshToTensor((1, 2), MeshComposerConfig([0], (2,))).arrange((32, 32), {(0, 0)}).distribution
        (1,)
        """
        devices = [tuple(at) for at in self._devices]
        held = [at for at in devices if at in holders]
        if len(held) == 1:  # one part is the whole, whichever dimensions it would be joined along
            return Topology((1,), (None,), tuple(held))
        if held:
            _validate_dims(self._dims, len(part_shape))
        if len(self._shape) == 1:  # a line of devices of which the last ones may hold nothing
            return Topology((len(held),), self._dims, tuple(held))
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

    >>> from tilewright.ttnn import create_mesh_device
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     type(concat_mesh_to_tensor_composer(mesh_device, dim=0)).__name__
    'MeshToTensor'
    """
    return create_mesh_composer(mesh_device, MeshComposerConfig([dim], (_mesh_shape(mesh_device).mesh_size(),)))


def ConcatMeshToTensor(mesh_device: OpenDevice, dim: int) -> MeshToTensor:  # noqa: N802  (ttnn's name)
    """Return the composer that joins the parts of all devices of `mesh_device` along `dim`, in row-major order.

    >>> import numpy as np
    >>> from tilewright.ttnn import create_mesh_device, from_torch, to_torch
    >>> with create_mesh_device(MeshShape(1, 2)) as mesh_device:
    ...     tensor = from_torch(np.eye(2), mesh_mapper=ShardTensorToMesh(mesh_device, dim=0))
    ...     to_torch(tensor, mesh_composer=ConcatMeshToTensor(mesh_device, dim=0)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return concat_mesh_to_tensor_composer(mesh_device, dim)


def ConcatMesh2dToTensor(  # noqa: N802  (ttnn's name)
    mesh_device: OpenDevice, mesh_shape: Sequence[int], dims: Sequence[int]
) -> MeshToTensor:
    """Return the composer that joins along `dims[0]` over the rows of the mesh, and along `dims[1]` over its columns.

    Args:
        mesh_device: the mesh.
        mesh_shape: the shape of the distribution, usually that of the mesh.
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
