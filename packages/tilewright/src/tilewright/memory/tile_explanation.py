# SPDX-License-Identifier: Apache-2.0
"""`TileExplanation`: which tiles of a tiler hold an element, and where in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

_MAX_LISTED = 16  # tiles that are printed


@dataclass(frozen=True, slots=True)
class TileExplanation:
    """Where an element is: the tiles that hold it, as (number, coordinates in the grid, coordinate in the tile).

    >>> from tilewright.tiling import Tiler
    >>> print(Tiler((7, 10), (3, 4), overlap=(0, 1)).explain_element((4, 6)))
    element   (4, 6) of 7 x 10
    tile      4 = (1, 1) of 3 x 3: element (1, 3)
    tile      5 = (1, 2) of 3 x 3: element (1, 0)
    """

    space: tuple[int, ...]
    grid: tuple[int, ...]
    coordinate: tuple[int, ...]
    tiles: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps as pairs of a name and a description.

        >>> from tilewright.tiling import Tiler
        >>> Tiler((7, 10), (3, 4)).explain_element((4, 5)).steps()[-1]
        ('tile', '4 = (1, 1) of 3 x 3: element (1, 1)')
        """
        grid = " x ".join(map(str, self.grid))
        found = [("element", f"{self.coordinate} of {' x '.join(map(str, self.space))}")]
        found += [("tile", f"{number} = {at} of {grid}: element {inside}") for number, at, inside in self.tiles]
        if not self.tiles:
            found.append(("tile", "none: no tile covers it"))
        if len(self.tiles) > _MAX_LISTED:
            found = [*found[: _MAX_LISTED + 1], ("", f"and {len(self.tiles) - _MAX_LISTED} more tiles")]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data.

        >>> from tilewright.tiling import Tiler
        >>> Tiler((7, 10), (3, 4)).explain_element((4, 5)).to_json()["tiles"]
        [{'number': 4, 'at': [1, 1], 'inside': [1, 1]}]
        """
        tiles = [{"number": number, "at": list(at), "inside": list(inside)} for number, at, inside in self.tiles]
        return {"space": list(self.space), "coordinate": list(self.coordinate), "tiles": tiles}

    def __str__(self) -> str:
        return "\n".join([f"{name:<10}{text}" for name, text in self.steps()])


@runtime_checkable
class Tiled(Protocol):
    """What knows which of its tiles hold an element, as a tiler does.

    >>> from tilewright.tiling import Tiler
    >>> isinstance(Tiler((7, 10), (3, 4)), Tiled)
    True
    """

    def explain_element(self, coordinate: Sequence[int]) -> TileExplanation:
        """Return which tiles hold the element at `coordinate`, and where in them."""
        ...
