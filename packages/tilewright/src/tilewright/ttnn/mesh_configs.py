# SPDX-License-Identifier: Apache-2.0
"""The configs of mesh mappers and composers: which dimension of a tensor each dimension of a mesh runs along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LayoutError
from .meshes import MeshCoordinate, MeshShape, Placement, cut_of_placement, placement_of_cut


class MeshConfig:
    """What the configs of mappers and composers share: the shape and the start of the distribution in the mesh.

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


def _bind_overload(arguments: tuple[Any, ...], many: str, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a config by name: those of the overload with a list, called `many`, or with two integers.

    Keywords that were not given are None in `named`.
    """
    is_list = isinstance(arguments[0] if arguments else named[many], Sequence)
    names = [many] if is_list else ["row_dim", "col_dim"]
    names += ["mesh_shape_override", "mesh_offset_override"]
    result = dict.fromkeys(names) | dict(zip(names, arguments, strict=False))
    for name, value in named.items():
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
        mesh_shape_override: the shape of the distribution, by default that of the mesh.
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
        named: dict[str, Any] = {"placements": placements, "row_dim": row_dim, "col_dim": col_dim}
        named |= {"mesh_shape_override": mesh_shape_override, "mesh_offset_override": mesh_offset_override}
        bound = _bind_overload(arguments, "placements", named)
        super().__init__(bound["mesh_shape_override"], bound["mesh_offset_override"])
        if "placements" in bound:
            self.cuts = tuple([cut_of_placement(each) for each in bound["placements"]])
        else:
            self.cuts = (bound["row_dim"], bound["col_dim"])

    @property
    def placements(self) -> list[Placement]:
        """Return the placements.

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
        mesh_shape_override: the shape of the distribution, by default that of the mesh.
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
        named: dict[str, Any] = {"dims": dims, "row_dim": row_dim, "col_dim": col_dim}
        named |= {"mesh_shape_override": mesh_shape_override, "mesh_offset_override": mesh_offset_override}
        bound = _bind_overload(arguments, "dims", named)
        super().__init__(bound["mesh_shape_override"], bound["mesh_offset_override"])
        self.dims: tuple[int, ...] = tuple(bound["dims"] if "dims" in bound else (bound["row_dim"], bound["col_dim"]))
        if None in self.dims:
            raise LayoutError("a composer needs a dimension for the rows and one for the columns of the mesh")

    def __repr__(self) -> str:
        return f"MeshComposerConfig(dims: {list(self.dims)}{self._override_text()})"
