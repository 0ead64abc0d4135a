# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.utils.coord`: coordinates, the same as in `layout.coord`."""

from ..layout.coord import ComptimeInt, Coord, CoordLike, Idx, coord

__all__ = ["ComptimeInt", "Coord", "CoordLike", "Idx", "coord"]
