# SPDX-License-Identifier: Apache-2.0
"""`Topology`: how a tensor is distributed over a mesh of devices; `Mesh`: the devices of a stored tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, TypeAlias

from .._json import expect_integers, expect_keys
from .._text import format_extents
from ..display import Drawable
from ..errors import CoordinateError, FileFormatError, LayoutError
from ..layout import Box

Coordinate = tuple[int, ...]
DeviceLike: TypeAlias = "int | Sequence[int]"  # the number of a device in row-major order, or its mesh coordinate
_MAX_NAMED_DEVICES = 8  # in a text


@dataclass(frozen=True, slots=True)
class Topology:
    """How devices share a tensor: per dimension of the distribution, the tensor dimension it cuts; None replicates.

    `coordinates` are the devices, in the order of the distribution, its last dimension fastest.

    >>> Topology((2,), (0,), ((0, 0), (0, 1))).global_shape((32, 64))
    (64, 64)
    """

    distribution: tuple[int, ...]
    placements: tuple[int | None, ...]
    coordinates: tuple[Coordinate, ...]

    @classmethod
    def replicated(cls, coordinates: Iterable[Coordinate]) -> Topology:
        """Return the topology in which every device holds the entire tensor.

        >>> Topology.replicated([(0, 0)])
        Topology(distribution=(1,), placements=(None,), coordinates=((0, 0),))
        """
        result = tuple(coordinates)
        return cls((len(result),), (None,), result)

    def global_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the entire tensor if each device holds `shape`.

        >>> Topology((2, 3), (None, -1), ()).global_shape((32, 64))
        (32, 192)
        """
        whole = list(shape)
        for count, cut in zip(self.distribution, self.placements, strict=True):
            if cut is not None:
                _validate_cut(cut, shape)
                whole[cut] *= count
        return tuple(whole)

    def device_window(self, index: int, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """Return the part of the entire tensor that device number `index` holds, of extents `shape`.

        >>> Topology((2,), (0,), ((0, 0), (0, 1))).device_window(1, (32, 64))
        (slice(32, 64, None), slice(0, 64, None))
        """
        return self.device_box(index, shape).slices

    def device_box(self, index: int, shape: tuple[int, ...]) -> Box:
        """Return the part that device number `index` holds, of extents `shape`, as a box of the entire tensor.

        >>> Topology((2,), (0,), ((0, 0), (0, 1))).device_box(1, (32, 64))
        Box(offset=(32, 0), shape=(32, 64))
        """
        start = [0] * len(shape)
        stride = list(shape)
        for count, cut in zip(reversed(self.distribution), reversed(self.placements), strict=True):
            index, digit = divmod(index, count)
            if cut is not None:
                _validate_cut(cut, shape)
                start[cut] += digit * stride[cut]
                stride[cut] *= count
        return Box(tuple(start), shape)

    def validate_complete(self) -> None:
        """Raise unless there is one device per part of the distribution.

        >>> Topology.replicated([(0, 0)]).validate_complete()
        """
        if len(self.coordinates) != prod(self.distribution):
            raise LayoutError(
                f"distribution {list(self.distribution)} has {prod(self.distribution)} parts, but there are"
                f" {len(self.coordinates)} devices; read the devices one by one"
            )


@dataclass(frozen=True, slots=True)
class Mesh(Drawable):
    """The devices that share a tensor: the shape of their mesh, the topology, and the shape of each part.

    >>> print(Mesh((1, 2), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64)))
    1 x 2 devices, 2 along dimension 0; each holds 32 x 64
    """

    shape: tuple[int, ...]
    topology: Topology
    part_shape: tuple[int, ...]

    def locate(self, at: Coordinate) -> tuple[tuple[Coordinate, ...], Coordinate]:
        """Return the devices that hold the element `at` a coordinate of the entire tensor, and its coordinate in them.

        >>> Mesh((1, 2), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64)).locate((33, 5))
        (((0, 1),), (1, 5))
        """
        for box, devices in self.windows().items():
            inside = tuple([c - start for c, start in zip(at, box.offset, strict=True)])
            if all(0 <= c < n for c, n in zip(inside, box.shape, strict=True)):
                return tuple(devices), inside
        raise CoordinateError(f"coordinate {at} is outside shape {list(self.global_shape)}")

    def coordinate_of(self, device: DeviceLike) -> Coordinate:
        """Return the mesh coordinate of a device, given by its number in row-major order or by its coordinate.

        >>> mesh = Mesh.dividing((64, 96), (2, 4), 0)
        >>> mesh.coordinate_of(5), mesh.coordinate_of((1, 1))
        ((1, 1), (1, 1))
        """
        devices = tuple(product(*[range(n) for n in self.shape]))
        if isinstance(device, int):
            at = devices[device] if 0 <= device < len(devices) else None
        else:
            at = tuple(device)
        if at not in devices:
            raise LayoutError(
                f"device {device} is not on a mesh of {format_extents(self.shape)} devices; use {devices[0]} to"
                f" {devices[-1]}, or a number from 0 to {len(devices) - 1}"
            )
        return at

    def window_of(self, device: DeviceLike) -> Box:
        """Return the part of a device, as a box of the entire tensor.

        >>> Mesh.dividing((64, 96), (1, 2), 0).window_of((0, 1))
        Box(offset=(32, 0), shape=(32, 96))
        """
        at = self.coordinate_of(device)
        for box, devices in self.windows().items():
            if at in devices:
                return box
        raise LayoutError(f"device {at} holds no part; these do: {format_devices(self.topology.coordinates)}")

    @classmethod
    def dividing(cls, shape: tuple[int, ...], mesh: tuple[int, ...], cuts: int | Sequence[int | None] | None) -> Mesh:
        """Return the mesh of devices that share a tensor of `shape`.

        `cuts` is, for each axis of the mesh, the dimension that it cuts (None replicates); one integer is the dimension
        that all devices cut, in row-major order; None gives every device all of it.

        >>> Mesh.dividing((64, 96), (1, 2), (None, 1)).part_shape, Mesh.dividing((64, 96), (2, 4), 0).part_shape
        ((64, 48), (8, 96))
        """
        devices = tuple(product(*[range(n) for n in mesh]))
        if cuts is None:
            return cls(mesh, Topology.replicated(devices), shape)
        distribution = (len(devices),) if isinstance(cuts, int) else mesh
        placements = (cuts,) if isinstance(cuts, int) else tuple(cuts)
        if len(placements) != len(distribution):
            raise LayoutError(f"expected {len(mesh)} cuts for a mesh of {list(mesh)}, got {list(placements)}")
        part = list(shape)
        for count, cut in zip(distribution, placements, strict=True):
            if cut is None:
                continue
            _validate_cut(cut, shape)
            if part[cut] % count:
                raise LayoutError(f"dimension {cut} of shape {list(shape)} cannot be divided among {count} devices")
            part[cut] //= count
        return cls(mesh, Topology(distribution, placements, devices), tuple(part))

    @property
    def global_shape(self) -> tuple[int, ...]:
        """The shape of the entire tensor.

        >>> Mesh((1, 2), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64)).global_shape
        (64, 64)
        """
        return self.topology.global_shape(self.part_shape)

    def windows(self) -> dict[Box, list[Coordinate]]:
        """Return the distinct parts, as boxes of the entire tensor, and the devices that hold each.

        >>> list(Mesh((1, 2), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64)).windows())
        [Box(offset=(0, 0), shape=(32, 64)), Box(offset=(32, 0), shape=(32, 64))]
        """
        result: dict[Box, list[Coordinate]] = {}
        for index, device in enumerate(self.topology.coordinates):
            result.setdefault(self.topology.device_box(index, self.part_shape), []).append(device)
        return result

    @classmethod
    def from_json(cls, data: object, part_shape: tuple[int, ...]) -> Mesh:
        """Return the mesh from plain data; each device holds `part_shape`.

        >>> mesh = Mesh((1, 2), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64))
        >>> Mesh.from_json(mesh.to_json(), (32, 64)) == mesh
        True
        """
        if not isinstance(data, dict) or not isinstance(data.get("placements"), list):
            raise FileFormatError(f"expected an object with placements as mesh, got {repr(data)[:40]}")
        expect_keys(data, {"shape", "distribution", "placements", "part_shape"}, "a mesh")
        if data.get("part_shape", list(part_shape)) != list(part_shape):
            raise FileFormatError(f"a part of the mesh has shape {data['part_shape']}, but its spec {list(part_shape)}")
        shape = expect_integers(data.get("shape"), "the mesh")
        distribution = expect_integers(data.get("distribution"), "the distribution")
        cuts = tuple([None if cut is None else _expect_cut(cut) for cut in data["placements"]])
        devices = tuple(product(*[range(n) for n in shape]))
        if len(cuts) != len(distribution) or prod(distribution) != len(devices):
            raise FileFormatError(f"distribution {list(distribution)} does not fit a mesh of {list(shape)}")
        return cls(shape, Topology(distribution, cuts, devices), part_shape)

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        >>> Mesh((1, 2), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64)).to_json()["placements"]
        [0]
        """
        return {
            "shape": list(self.shape),
            "distribution": list(self.topology.distribution),
            "placements": list(self.topology.placements),
            "part_shape": list(self.part_shape),
        }

    @property
    def is_replicated(self) -> bool:
        """Whether every device holds the entire tensor.

        >>> Mesh.dividing((64, 96), (1, 2), None).is_replicated
        True
        """
        return self.part_shape == self.global_shape

    @property
    def summary(self) -> str:
        """The mesh and its cuts in a few characters, for tables.

        >>> Mesh.dividing((64, 96), (2, 4), (None, 1)).summary, Mesh.dividing((64, 96), (2, 4), None).summary
        ('2x4, 4 along 1', '2x4, replicated')
        """
        pairs = zip(self.topology.distribution, self.topology.placements, strict=True)
        cuts = [f"{count} along {cut}" for count, cut in pairs if cut is not None and count > 1]
        return f"{'x'.join(map(str, self.shape))}, {', '.join(cuts) or 'replicated'}"

    def __str__(self) -> str:
        pairs = zip(self.topology.distribution, self.topology.placements, strict=True)
        ways = [
            f"{count} {'replicas' if cut is None else f'along dimension {cut}'}" for count, cut in pairs if count > 1
        ]
        part = format_extents(self.part_shape) or "a scalar"
        return f"{', '.join([f'{format_extents(self.shape)} devices', *ways])}; each holds {part}"


def _validate_cut(cut: int, shape: tuple[int, ...]) -> None:
    if not -len(shape) <= cut < len(shape):
        raise LayoutError(f"the mesh cuts dimension {cut}, but the tensor has shape {list(shape)}")


def format_devices(devices: Sequence[Coordinate]) -> str:
    """Return the coordinates of devices as text; of many, the first ones and how many more there are.

    >>> format_devices([(0, 0), (0, 1)]), format_devices([(0, k) for k in range(10)])[-19:]
    ('(0, 0), (0, 1)', '(0, 7) and 2 others')
    """
    listed = ", ".join(map(str, devices[:_MAX_NAMED_DEVICES]))
    others = len(devices) - _MAX_NAMED_DEVICES
    return f"{listed} and {others} other{'s' if others > 1 else ''}" if others > 0 else listed


def _expect_cut(value: object) -> int:
    if type(value) is not int:
        raise FileFormatError(f"expected an integer or null as placement, got {repr(value)[:40]}")
    return value
