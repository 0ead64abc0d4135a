# SPDX-License-Identifier: Apache-2.0
"""`KernelOperand`: an operand of a device kernel, and the C expressions for its tiles and elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from ..copying.codegen.arithmetic import raw_type
from ..copying.codegen.kernel import WIDEST
from ..formats import ScalarFormat
from .tiler import Tiler

INT_MAX = 2**31 - 1
MAX_LISTED_TILES = 1 << 24  # tiles of orders that need a table of coordinates


@dataclass(frozen=True)
class KernelOperand:
    """An operand: its name in the kernel, its tiler, byte strides, element format, fill and alignment.

    `fill` is a name such as "edge", the bytes of one element, or None; `alignment` divides the address of element 0.

    >>> from tilewright.formats import float32
    >>> operand = KernelOperand("in0", Tiler((10, 7), (4, 3)), (28, 4), float32, None, 16)
    >>> operand.pitches, operand.buffer_bytes, operand.vector_bytes
    ((4, 1), 64, 4)
    """

    name: str
    tiler: Tiler
    strides: tuple[int, ...]
    format: ScalarFormat
    fill: str | bytes | None
    alignment: int

    @property
    def rank(self) -> int:
        """Return the number of axes."""
        return self.tiler.rank

    @property
    def size(self) -> int:
        """Return the bytes of an element."""
        return self.format.itemsize

    @property
    def bits_type(self) -> str:
        """Return the C type of an element's bits."""
        return raw_type(self.size)

    @property
    def pitches(self) -> tuple[int, ...]:
        """Return the strides in local memory, in elements; rows start at multiples of a vector."""
        extents = self.tiler.largest
        found, step = [1], 1
        for axis in range(self.rank - 1, 0, -1):
            step *= extents[axis]
            if axis == self.rank - 1:
                step = -(-step * self.size // WIDEST) * WIDEST // self.size
            found.append(step)
        return tuple(found[::-1])

    @property
    def buffer_bytes(self) -> int:
        """Return the bytes that a tile takes in local memory."""
        count = self.pitches[0] * self.tiler.largest[0]
        return -(-count * self.size // WIDEST) * WIDEST

    @property
    def is_dense(self) -> bool:
        """Return whether the last axis is contiguous."""
        return self.strides[-1] == self.size

    @property
    def vector_bytes(self) -> int:
        """Return the widest vector, up to 16 bytes, that is always aligned in memory and in the buffer."""
        if not self.is_dense:
            return self.size
        step, before = self.tiler.axes[-1][:2]
        return gcd(WIDEST, self.alignment, *self.strides[:-1], step * self.size, before * self.size)

    @property
    def is_listed(self) -> bool:
        """Return whether tile coordinates come from a table, since their order is not arithmetic."""
        return self.tiler.order not in ("row_major", "column_major")

    def coordinates(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the table of grid coordinates of all tiles."""
        tiles = [self.tiler.coords(k) for k in range(self.tiler.count)]
        return np.ascontiguousarray(np.array(tiles, dtype=np.int32).reshape(-1))

    @property
    def index_type(self) -> str:
        """Return the C type of coordinates in the space: 64 bits only where needed."""
        reach = max([n + sum(pair) for n, pair in zip(self.tiler.space, self.tiler.augmentation, strict=True)])
        return "i32" if reach + max(self.tiler.tile) <= INT_MAX else "i64"

    def box_code(self) -> list[str]:
        """Return the C type of a tile's box, and the function that computes it from the tile number."""
        tiler, name, rank = self.tiler, self.name, self.rank
        where, extents = (", ".join(f"{each}{k}" for k in range(rank)) for each in ("at", "n"))
        table = f", GLOBAL const i32 *{name}_tiles" if self.is_listed else ""
        lines = [
            f"typedef struct {{ {self.index_type} {where}; u32 {extents}; }} {name}_box_t;",
            f"INLINE {name}_box_t {name}_find(const u32 tile{table}) {{",
            f"    {name}_box_t box;",
        ]
        for axis, coordinate in enumerate(self._coordinates("tile")):
            step, first, whole, last, rest = tiler.axes[axis]
            extent = f"{whole}u" if rest == whole else f"c{axis} == {last}u ? {rest}u : {whole}u"
            lines.append(f"    const u32 c{axis} = {coordinate};")
            lines.append(f"    box.at{axis} = ({self.index_type})c{axis} * {step} + {first};")
            lines.append(f"    box.n{axis} = {extent};")
        return [*lines, "    return box;", "}"]

    def _coordinates(self, tile: str) -> list[str]:
        """Return the grid coordinates of a tile as C expressions of its number."""
        grid, rank = self.tiler.grid, self.rank
        if self.is_listed:
            return [f"{self.name}_tiles[{tile} * {rank}u + {axis}u]" for axis in range(rank)]
        axes = list(range(rank))
        if self.tiler.order == "column_major" and rank > 1:
            axes[-2:] = [rank - 1, rank - 2]
        found = [""] * rank
        below = 1
        for k, axis in reversed(list(enumerate(axes))):
            text = tile if below == 1 else f"{tile} / {below}u"
            found[axis] = text if k == 0 else f"{text} % {grid[axis]}u"
            below *= grid[axis]
        return found

    def find_call(self, tile: str) -> str:
        """Return the C call that computes the box of a tile."""
        return f"{self.name}_find({tile}{f', {self.name}_tiles' if self.is_listed else ''})"

    def byte_offset(self, coordinates: list[str]) -> str:
        """Return the C expression of the byte offset of the element at coordinates of the space."""
        terms = [f"(i64)({x}) * {step}" for x, step in zip(coordinates, self.strides, strict=True) if step]
        return " + ".join(terms) or "0"

    def buffer_index(self, indices: list[str]) -> str:
        """Return the C expression of the index of an element in its buffer."""
        terms = [f"({i}) * {pitch}u" if pitch > 1 else f"({i})" for i, pitch in zip(indices, self.pitches, strict=True)]
        return " + ".join(terms)

    def inside_condition(self, coordinates: list[str]) -> str:
        """Return the C condition that coordinates lie in the space."""
        return " && ".join([f"{x} >= 0 && {x} < {n}" for x, n in zip(coordinates, self.tiler.space, strict=True)])

    @property
    def exceeds_space(self) -> bool:
        """Return whether tiles extend beyond the space."""
        return any(before or after for before, after in self.tiler.augmentation)

    def describe(self) -> str:
        """Return a description of the operand for a comment."""
        shape, tile = (" x ".join(map(str, each)) for each in (self.tiler.space, self.tiler.largest))
        around = "" if not self.exceeds_space or self.fill is None else f", {_describe_fill(self.fill)} around"
        return f"{self.name}: {self.format.name} of {shape}, {self.tiler.count} tiles of {tile}{around}"


def _describe_fill(fill: str | bytes) -> str:
    return fill if isinstance(fill, str) else f"0x{int.from_bytes(fill, 'little'):x}"
