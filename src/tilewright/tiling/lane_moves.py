# SPDX-License-Identifier: Apache-2.0
"""The transfers of a lane, laid out in batches as the native library takes them.

Tiles that lie alike in their space (inside, or outside by as much on the same sides) have the same moves but for where
they start. So the moves of one tile of each kind are asked for, and a table for all others of the kind is filled by
NumPy at once. Tiles of files, which are read and written rather than moved, stay works to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..copy.prepared import NativeRunner
from .moves import Moves
from .ports import MemoryPort, Room, Work
from .tiler import Tiler

Array = np.ndarray[Any, Any]

BATCH = 512
"""Tiles that are laid out at once."""

_MOVE = np.dtype([("parts", "i8"), ("source", "i8"), ("target", "i8"), ("count", "i4"), ("streaming", "i4")])
"""`tw_move` of native/tilewright.h."""


Native: TypeAlias = tuple[int, int]
"""Moves that tw_carry can run: their address, and their number."""

NOTHING: Native = (0, 0)


class End(NamedTuple):
    """An operand in a lane: the port at its outer end, how it is cut, its room, and what fills the outside.

    >>> from tilewright.tiling import ExternalTensor
    >>> End(MemoryPort(ExternalTensor(np.zeros(4))), Tiler((4,), (2,)), Room(16)).fill is None
    True
    """

    port: MemoryPort
    tiler: Tiler
    room: Room
    fill: Any = None

    def work(self, tile: int, importing: bool) -> Work:
        """Return the work that imports or exports a tile."""
        box = self.tiler[tile]
        return self.port.importing(box, self.room, self.fill) if importing else self.port.exporting(box, self.room)

    def view(self, tile: int) -> Array:
        """Return the part of the room that a tile takes."""
        return self.room.view(self.tiler[tile].shape, self.port.dtype)


class Transfers:
    """The imports or the exports of the tiles of a lane, by their place in the lane.

    >>> from tilewright.copy import native
    >>> from tilewright.tiling import ExternalTensor
    >>> end = End(MemoryPort(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), Room(64))
    >>> odd = Transfers([end], range(1, 3, 2), importing=True)
    >>> odd.arrays(0)[0].shape, not native.available() or odd.native(0)[1] == 1
    ((2,), True)
    """

    def __init__(self, ends: Sequence[End], tiles: range, importing: bool) -> None:
        self.tiles = tiles
        self._ends, self._importing = ends, importing
        self._first = self._end = 0
        self._moves: list[Native] = []
        self._kinds: list[int] = []
        self._views: list[tuple[Array, ...]] = []  # of each kind
        self._kept: list[Any] = []  # what the moves point to

    def arrays(self, at: int) -> tuple[Array, ...]:
        """Return the views of the rooms that a tile takes."""
        if at >= self._end:
            self._lay_out(at)
        return self._views[self._kinds[at - self._first]]

    def native(self, at: int) -> Native | None:
        """Return the native moves of a tile; None if it takes more than those."""
        if at >= self._end:
            self._lay_out(at)
        found = self._moves[at - self._first]
        return None if found == NOTHING else found

    def works(self, at: int) -> list[Work]:
        """Return works to call, one for each operand."""
        return [end.work(self.tiles[at], self._importing) for end in self._ends]

    def _lay_out(self, first: int) -> None:
        tiles = self.tiles[first : first + BATCH]
        numbers = np.arange(tiles.start, tiles.stop, tiles.step)
        placed = [_places(end, numbers) for end in self._ends]
        kinds = _kinds([column for columns, _ in placed for column in columns], len(tiles))
        moves = np.zeros((len(tiles), 2), np.int64)
        self._first, self._end = first, first + len(tiles)
        self._views, self._kept = [], []
        for kind in range(kinds.max() + 1):
            members = np.flatnonzero(kinds == kind)
            model = first + int(members[0])
            self._views.append(tuple([end.view(self.tiles[model]) for end in self._ends]))
            moves[members] = self._moves_of_kind(model, [starts[members] - starts[members[0]] for _, starts in placed])
        self._moves, self._kinds = [(address, count) for address, count in moves.tolist()], kinds.tolist()

    def _moves_of_kind(self, model: int, shifts: list[Array]) -> Any:
        """Return the moves of tiles of one kind, which start this many bytes from those of a model."""
        if not all(end.port.moves_alike for end in self._ends):
            return NOTHING
        works = self.works(model)
        rows, steps = [], []
        for end, work, shift in zip(self._ends, works, shifts, strict=True):
            if not isinstance(work, Moves):
                return NOTHING
            for move in work:
                run = move.run
                if not isinstance(run, NativeRunner):
                    return NOTHING
                rows.append((run.parts, move.source, move.target, run.count, run.streaming))
                # a fill stays where it is
                follows = not self._importing or end.port.tensor.memory.contains(move.source)
                steps.append(shift if follows else 0)
        table = np.tile(np.array(rows, _MOVE), (len(shifts[0]), 1))
        outer = "source" if self._importing else "target"
        for column, step in zip(table.T, steps, strict=True):
            column[outer] += step
        self._kept.append((works, table))
        addresses = table.ctypes.data + np.arange(len(table)) * table.strides[0]
        return np.stack([addresses, np.full(len(table), len(rows))], axis=1)


def _places(end: End, numbers: Array) -> tuple[list[Array], Array]:
    """Return how tiles lie in their space (what is outside before and after, their shapes), and where they start."""
    tiler, port = end.tiler, end.port
    if tiler.order == "row_major":
        coords = np.stack(np.unravel_index(numbers, tiler.grid))
    else:
        coords = np.array([tiler.coords(int(number)) for number in numbers]).T
    columns, starts = [], np.zeros(len(numbers), np.int64)
    steps = port.tensor.strides or (0,) * tiler.rank
    for at, whole, stride, (step, first, extent, last, rest) in zip(coords, port.shape, steps, tiler.axes, strict=True):
        start = at * step + first
        length = np.where(at == last, rest, extent)
        columns += [np.maximum(-start, 0), np.maximum(start + length - whole, 0), length]
        starts += start * stride
    return columns, starts


def _kinds(columns: list[Array], count: int) -> Array:
    """Return a number for each row of some columns, the same for equal rows."""
    kinds = np.zeros(count, np.int64)
    for column in columns:
        if column.min() < column.max():
            values, ranks = np.unique(column, return_inverse=True)
            kinds = np.unique(kinds * len(values) + ranks, return_inverse=True)[1]
    return kinds
