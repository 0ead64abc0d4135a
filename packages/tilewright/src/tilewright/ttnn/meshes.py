# SPDX-License-Identifier: Apache-2.0
"""The values that describe a mesh: its shape, the coordinates of its devices, placements, and `TensorTopology`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from ..errors import LayoutError
from ..files.mesh import Topology
from ..layout.validation import as_integer
from .wrapper import Wrapper

if TYPE_CHECKING:
    from typing import Self


class MeshIntegers(tuple[int, ...]):
    """Integers, outermost first, that print as ttnn prints them: the base of shapes and coordinates of meshes.

    >>> MeshIntegers(2, 4), MeshIntegers([2, 4]) == (2, 4)
    (MeshIntegers([2, 4]), True)
    """

    __slots__ = ()

    def __new__(cls, *values: int | Iterable[int]) -> Self:
        """Return the integers, given one by one or as a sequence."""
        only = values[0] if len(values) == 1 else values
        entries = tuple(only) if isinstance(only, Iterable) else (only,)
        integers = tuple([int(as_integer(n, f"an entry of {cls.__name__}")) for n in entries])
        if not integers or any(n < 0 for n in integers):
            raise LayoutError(f"expected one or more integers of 0 or more for {cls.__name__}, got {list(integers)}")
        return super().__new__(cls, integers)

    def __getnewargs__(self) -> tuple[tuple[int, ...]]:
        return (tuple(self),)

    def dims(self) -> int:
        """Return the number of dimensions.

        >>> MeshShape(2, 4).dims()
        2
        """
        return len(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    __str__ = __repr__


class MeshShape(MeshIntegers):
    """The shape of a mesh of devices: rows and columns, or any number of dimensions.

    >>> MeshShape(2, 4), MeshShape((2, 4)).mesh_size()
    (MeshShape([2, 4]), 8)
    """

    __slots__ = ()

    def mesh_size(self) -> int:
        """Return the number of devices.

        >>> MeshShape(2, 4).mesh_size()
        8
        """
        return prod(self)

    def coordinates(self) -> Iterator[MeshCoordinate]:
        """Return the coordinates of all devices, the last dimension fastest.

        >>> list(MeshShape(1, 2).coordinates())
        [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
        """
        return map(MeshCoordinate, product(*[range(n) for n in self]))


class MeshCoordinate(MeshIntegers):
    """The coordinate of a device in a mesh.

    >>> MeshCoordinate(0, 1)[1]
    1
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PlacementShard:
    """A dimension of the mesh that cuts the tensor along its dimension `dim`.

    >>> PlacementShard(-1).dim
    -1
    """

    dim: int

    def __repr__(self) -> str:
        return f"PlacementShard({self.dim})"


@dataclass(frozen=True, slots=True)
class PlacementReplicate:
    """A dimension of the mesh along which all devices hold the same.

    >>> PlacementReplicate()
    PlacementReplicate()
    """


Placement: TypeAlias = PlacementShard | PlacementReplicate


def placement_of_cut(cut: int | None) -> Placement:
    """Return the placement that cuts dimension `cut`, or replicates if it is None.

    >>> placement_of_cut(2), placement_of_cut(None)
    (PlacementShard(2), PlacementReplicate())
    """
    return PlacementReplicate() if cut is None else PlacementShard(cut)


def cut_of_placement(placement: Placement) -> int | None:
    """Return the dimension that `placement` cuts, None if it replicates.

    >>> cut_of_placement(PlacementShard(2)), cut_of_placement(PlacementReplicate())
    (2, None)
    """
    if isinstance(placement, PlacementReplicate):
        return None
    if isinstance(placement, PlacementShard):
        return placement.dim
    raise LayoutError(f"expected PlacementShard(dim) or PlacementReplicate() as placement, got {placement!r:.60}")


class TensorTopology(Wrapper[Topology]):
    """How the devices of a mesh share a tensor.

    Args:
        distribution_shape: how many parts there are, per dimension of the distribution.
        placements: what each dimension of the distribution does: `PlacementShard(dim)` or `PlacementReplicate()`.
        mesh_coords: the device of each part, the last dimension of the distribution fastest.

    >>> topology = TensorTopology(MeshShape([2]), [PlacementShard(0)], [MeshCoordinate(0, 0), MeshCoordinate(0, 1)])
    >>> topology.placements()
    [PlacementShard(0)]
    """

    __slots__ = ()

    def __init__(
        self, distribution_shape: Sequence[int], placements: Sequence[Placement], mesh_coords: Sequence[Sequence[int]]
    ) -> None:
        shape = MeshShape(distribution_shape)
        cuts = tuple([cut_of_placement(each) for each in placements])
        if len(cuts) != len(shape):
            raise LayoutError(f"{shape} needs {len(shape)} placements, got {list(placements)}")
        self.plain = Topology(tuple(shape), cuts, tuple([tuple(MeshCoordinate(at)) for at in mesh_coords]))

    def distribution_shape(self) -> MeshShape:
        """Return how many parts there are, per dimension of the distribution.

        >>> TensorTopology((2,), [PlacementReplicate()], [(0, 0), (0, 1)]).distribution_shape()
        MeshShape([2])
        """
        return MeshShape(self.plain.distribution)

    def placements(self) -> list[Placement]:
        """Return what each dimension of the distribution does.

        >>> TensorTopology((2,), [PlacementReplicate()], [(0, 0), (0, 1)]).placements()
        [PlacementReplicate()]
        """
        return [placement_of_cut(cut) for cut in self.plain.placements]

    def mesh_coords(self) -> list[MeshCoordinate]:
        """Return the devices, in the order of the distribution.

        >>> TensorTopology((2,), [PlacementReplicate()], [(0, 0), (0, 1)]).mesh_coords()
        [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
        """
        return [MeshCoordinate(at) for at in self.plain.coordinates]

    def __repr__(self) -> str:
        return f"TensorTopology({self.distribution_shape()}, {self.placements()}, {self.mesh_coords()})"

    __str__ = __repr__
