# SPDX-License-Identifier: Apache-2.0
"""`TileReading`: one tile of a stored tensor, decoded, with the exponents of its blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LayoutError
from ..formats import BlockFormat
from ..memory import PageLayout
from ..showing import Shown
from .block_parts import read_factors
from .stored_tensor import StoredTensor

_CELL = 9  # columns of a number
_WINDOW = (32, 32)  # what is shown of a tensor that has no tiles


@dataclass(frozen=True, slots=True, eq=False)
class TileReading(Shown):
    """One tile of a tensor, decoded: its values, and for block formats the exponents of their scales, per element.

    Elements that are padding are NaN in `values` and not set in `valid`.

    >>> import tempfile
    >>> from tilewright.files import inspect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6.0).reshape(2, 3))
    ...     inspect(folder).tile("x", 0, 0).values[:2, :3].tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """

    name: str
    format: str
    tile: tuple[int, int]
    start: tuple[int, ...]
    face: tuple[int, int]
    values: NDArray[np.float64]
    valid: NDArray[np.bool_]
    exponents: NDArray[np.int64] | None = None
    transposed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs; padding is None.

        >>> reading = TileReading("x", "int8", (0, 0), (0, 0), (1, 1), np.ones((1, 1)), np.ones((1, 1), bool))
        >>> reading.to_json()["values"]
        [[1.0]]
        """
        rows = zip(self.values.tolist(), self.valid.tolist(), strict=True)
        values = [[v if ok else None for v, ok in zip(*row, strict=True)] for row in rows]
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "values": values, "valid": None, "exponents": self._exponents()}

    def _exponents(self) -> list[list[int]] | None:
        return None if self.exponents is None else self.exponents.tolist()

    def text(self, width: int = 80) -> str:
        """Return the tile as text, face by face, the exponent of each row of a face between its number and its values.

        >>> reading = TileReading("x", "int8", (0, 0), (0, 0), (1, 2), np.ones((1, 2)), np.ones((1, 2), bool))
        >>> print(reading.text())
        x: tile (0, 0) of int8, from element (0, 0)
        <BLANKLINE>
        face 0: rows 0 to 0, columns 0 to 1
         0        1        1
        """
        at = ", ".join(map(str, self.start))
        lines = [f"{self.name}: tile {self.tile} of {self.format}, from element ({at})"]
        if self.exponents is not None:
            lines.append("lines are: row, exponent of two that the block shares, values")
        (rows, columns), (high, wide) = self.values.shape, self.face
        for top in range(0, rows, high):
            for left in range(0, columns, wide):
                number = self._face_number(top // high, left // wide)
                lines.append(f"\nface {number}: rows {top} to {top + high - 1}, columns {left} to {left + wide - 1}")
                lines += self._face(slice(top, top + high), slice(left, left + wide), width)
        return "\n".join(lines)

    def _face_number(self, down: int, across: int) -> int:
        """Return the place of a face in the order of storage."""
        rows, columns = (int(n) for n in self.values.shape)
        return across * (rows // self.face[0]) + down if self.transposed else down * (columns // self.face[1]) + across

    def _face(self, down: slice, across: slice, width: int) -> list[str]:
        scales = None if self.exponents is None else self.exponents[down, across]
        along_rows = scales is not None and bool((scales == scales[:, :1]).all())
        lines = []
        if scales is not None and not along_rows:  # blocks run down the columns
            lines += _wrapped(f"{'exp':>8}", [str(each) for each in scales[0]], width)
        for row in range(down.start, down.stop):
            front = f"{row:>2}"
            if self.exponents is not None:
                front += f" {self.exponents[row, across.start] if along_rows else '':>5}"
            valid = self.valid[row, across]
            shown = zip(self.values[row, across], valid, strict=True)
            cells = [_number(value) if ok else "." for value, ok in shown]
            lines += _wrapped(front, cells, width) if valid.any() else [f"{row:>2} padding"]
        return lines

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<TileReading {self.name!r}, tile {self.tile}, {self.format}>"


def _number(value: float) -> str:
    """Return a number in eight characters at most."""
    text = f"{value:.3g}"
    return text if len(text) < _CELL else f"{value:.1e}"


def _wrapped(front: str, cells: list[str], width: int) -> list[str]:
    """Return cells in as many lines as they need, the first one with something in front."""
    per_line = 16 if width >= len(front) + 16 * _CELL else 8
    aligned = [f"{cell:>{_CELL}}" for cell in cells]
    pieces = ["".join(aligned[k : k + per_line]) for k in range(0, len(aligned), per_line)]
    return [front + pieces[0], *(" " * len(front) + piece for piece in pieces[1:])]


def read_tile(tensor: StoredTensor, row: int, column: int) -> TileReading:
    """Return a tile of a tensor, decoded, or for a tensor without tiles the window that a tile would be.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6.0).reshape(2, 3))
    ...     int(read_tile(open_tensors(folder)["x"], 0, 0).valid.sum())
    6
    """
    tiled = tensor.spec is not None and tensor.spec.page_layout is PageLayout.TILE
    high, wide = tensor.spec.tile.shape if tensor.spec is not None and tiled else _WINDOW
    face = tensor.spec.tile.face_shape if tensor.spec is not None and tiled else (high, 16)
    shape = tensor.shape if len(tensor.shape) > 1 else (1, *(tensor.shape or (1,)))
    *outer, rows, columns = shape
    down, across = -(-rows // high), -(-columns // wide)
    if not (0 <= row < down * prod(outer) and 0 <= column < across):
        raise LayoutError(
            f"{tensor.name!r} has {down * prod(outer)} x {across} tiles of {high} x {wide}; there is no tile"
            f" ({row}, {column})"
        )
    matrix, row_in_matrix = divmod(row, down)
    leading = [int(k) for k in np.unravel_index(matrix, outer)] if outer else []
    top, left = row_in_matrix * high, column * wide
    start = (*leading, top, left)
    box = (
        *[slice(k, k + 1) for k in leading],
        slice(top, min(top + high, rows)),
        slice(left, min(left + wide, columns)),
    )[len(shape) - len(tensor.shape) :]
    found = tensor.read(box).astype(np.float64)
    found = found.reshape(min(high, rows - top), min(wide, columns - left))
    values, valid = np.full((high, wide), np.nan), np.zeros((high, wide), np.bool_)
    inside = (slice(0, found.shape[0]), slice(0, found.shape[1]))
    values[inside], valid[inside] = found, True
    exponents = None
    if isinstance(tensor.format, BlockFormat):
        factors = np.ones((high, wide))
        factors[inside] = read_factors(tensor, box).reshape(found.shape)
        exponents = np.frexp(factors)[1].astype(np.int64) - 1
    return TileReading(
        tensor.name,
        tensor.kind if tensor.format is None else tensor.format.name,
        (row, column),
        start[len(shape) - len(tensor.shape) :],
        face,
        values,
        valid,
        exponents,
        tiled and tensor.spec is not None and tensor.spec.tile.transpose,
    )
