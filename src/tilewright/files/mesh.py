# SPDX-License-Identifier: Apache-2.0
"""`Topology`: how a tensor is spread over a mesh of devices, dimension by dimension."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from ..errors import LayoutError

Coordinate = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """For each dimension of a distribution, the dimension of the tensor that it cuts, None where it replicates.

    `coordinates` are the devices, in the order of the distribution, its last dimension fastest.

    >>> Topology((2,), (0,), ((0, 0), (0, 1))).shape_of_whole((32, 64))
    (64, 64)
    """

    distribution: tuple[int, ...]
    placements: tuple[int | None, ...]
    coordinates: tuple[Coordinate, ...]

    @classmethod
    def replicated(cls, coordinates: Iterable[Coordinate]) -> Topology:
        """Return the topology in which every device holds the whole tensor.

        >>> Topology.replicated([(0, 0)])
        Topology(distribution=(1,), placements=(None,), coordinates=((0, 0),))
        """
        found = tuple(coordinates)
        return cls((len(found),), (None,), found)

    def shape_of_whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the whole tensor, of which each device holds this shape.

        >>> Topology((2, 3), (None, -1), ()).shape_of_whole((32, 64))
        (32, 192)
        """
        whole = list(shape)
        for count, cut in zip(self.distribution, self.placements, strict=True):
            if cut is not None:
                self._check(cut, len(shape))
                whole[cut] *= count
        return tuple(whole)

    def window(self, index: int, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """Return the part of the whole tensor that the device of this index holds.

        >>> Topology((2,), (0,), ((0, 0), (0, 1))).window(1, (32, 64))
        (slice(32, 64, None), slice(0, 64, None))
        """
        start = [0] * len(shape)
        step = list(shape)
        for count, cut in zip(reversed(self.distribution), reversed(self.placements), strict=True):
            index, digit = divmod(index, count)
            if cut is not None:
                self._check(cut, len(shape))
                start[cut] += digit * step[cut]
                step[cut] *= count
        return tuple([slice(at, at + n) for at, n in zip(start, shape, strict=True)])

    def check_complete(self) -> None:
        """Raise unless there is one device for every place of the distribution.

        >>> Topology.replicated([(0, 0)]).check_complete()
        """
        if len(self.coordinates) != prod(self.distribution):
            raise LayoutError(
                f"a distribution of {list(self.distribution)} has {prod(self.distribution)} parts, and"
                f" {len(self.coordinates)} devices are named; read the devices one by one"
            )

    def _check(self, cut: int, rank: int) -> None:
        if not -rank <= cut < rank:
            raise LayoutError(f"the mesh cuts dimension {cut}, which a tensor of rank {rank} does not have")
