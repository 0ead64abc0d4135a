# SPDX-License-Identifier: Apache-2.0
"""The transfers of a lane, laid out in batches as the native library takes them.

Tiles that lie alike in their space (inside, or outside by as much on the same sides) have the same moves but for where
they start. So the moves of one tile of each kind are asked for, and a table for all others of the kind is filled by
NumPy at once. The table is remembered without its addresses: it serves other lanes, and runs over other arrays that are
cut the same way. Tiles of files, which are read and written rather than moved, stay works to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..copying.native_engine import NativeRunner
from .fills import check_fill
from .moves import Moves
from .ports import MemoryPort, Room, Work
from .tiler import Tiler

Array = np.ndarray[Any, Any]
Shapes = tuple[tuple[int, ...], ...]

BATCH = 512
"""Tiles that are laid out at once."""

_MOVE = np.dtype([("parts", "i8"), ("source", "i8"), ("target", "i8"), ("count", "i4"), ("streaming", "i4")])
"""`tw_transfer` of native/tilewright.h."""


Native: TypeAlias = tuple[int, int]
"""Moves that tw_run_transfers can run: their address, and their number."""

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


class Pattern(NamedTuple):
    """The moves of a batch of tiles, with addresses that count from tensors, fills and rooms, wherever those are.

    >>> from tilewright.tiling import ExternalTensor
    >>> end = End(MemoryPort(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), Room(64))
    >>> pattern_of([end], range(0, 3), importing=True).shapes
    [((2,),), ((2,),), ((2,),)]
    """

    shapes: list[Shapes]  # of the operands of each tile
    spans: Array  # for each tile its first move, and how many there are; -1: it takes works to call
    moves: Array
    origins: Array  # what the outer address of each move counts from: twice the operand, and one more for its fill
    runners: list[NativeRunner]  # what the moves point to


class Transfers:
    """The imports or the exports of the tiles of a lane.

    >>> from tilewright.copying import native_library
    >>> from tilewright.tiling import ExternalTensor
    >>> end = End(MemoryPort(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), Room(64))
    >>> imports = Transfers([end], 3, importing=True)
    >>> imports.arrays(1)[0].shape, not native_library.is_available() or imports.native(1)[1] == 1
    ((2,), True)
    """

    def __init__(self, ends: Sequence[End], tiles: int, importing: bool) -> None:
        self._ends, self._tiles, self._importing = ends, tiles, importing
        self._first = self._end = 0
        self._moves: list[Native] = []
        self._arrays: list[tuple[Array, ...]] = []
        self._kept: Any = None  # what the moves point to

    def arrays(self, tile: int) -> tuple[Array, ...]:
        """Return the views of the rooms that a tile takes."""
        if tile >= self._end:
            self._lay_out(tile)
        return self._arrays[tile - self._first]

    def native(self, tile: int) -> Native | None:
        """Return the native moves of a tile; None if it takes more than those."""
        if tile >= self._end:
            self._lay_out(tile)
        found = self._moves[tile - self._first]
        return found if found[1] >= 0 else None

    def works(self, tile: int) -> list[Work]:
        """Return works to call, one for each operand."""
        return [end.work(tile, self._importing) for end in self._ends]

    def _lay_out(self, tile: int) -> None:
        first = tile - tile % BATCH
        tiles = range(first, min(first + BATCH, self._tiles))
        pattern = _remembered(self._ends, tiles, self._importing)
        moves, origins, fills = pattern.moves.copy(), [], []
        for end in self._ends:
            fill = check_fill(end.fill, end.port.dtype) if end.fill is not None else None
            fills.append(fill)
            origins += [end.port.tensor.address, fill.ctypes.data if isinstance(fill, np.ndarray) else 0]
        outer, inner = ("source", "target") if self._importing else ("target", "source")
        moves[outer] += np.array(origins, np.int64)[pattern.origins]
        moves[inner] += np.array([end.room.address for end in self._ends], np.int64)[pattern.origins >> 1]
        views: dict[Shapes, tuple[Array, ...]] = {}
        for shapes in pattern.shapes:
            if shapes not in views:
                views[shapes] = tuple(
                    [end.room.view(shape, end.port.dtype) for end, shape in zip(self._ends, shapes, strict=True)]
                )
        self._first, self._end = first, tiles.stop
        self._arrays = [views[shapes] for shapes in pattern.shapes]
        addresses = pattern.spans * (_MOVE.itemsize, 1) + (moves.ctypes.data, 0)
        self._moves = [(address, count) for address, count in addresses.tolist()]
        self._kept = pattern, moves, fills


_PATTERNS: dict[Any, Pattern] = {}
_MOST_PATTERNS = 64


def _remembered(ends: Sequence[End], tiles: range, importing: bool) -> Pattern:
    """Return a pattern, the same one for all tensors that are cut alike and lie alike in memory."""
    likes: list[Any] = [importing, tiles]
    for end in ends:
        if end.port.likeness is None:
            return pattern_of(ends, tiles, importing)
        fill = end.fill if end.fill is None else check_fill(end.fill, end.port.dtype)
        likes += [end.tiler, end.port.likeness, fill if fill is None or isinstance(fill, str) else True]
    key = tuple(likes)
    known = _PATTERNS.get(key)
    if known is None:  # two threads may come here at once, and find the same
        known = pattern_of(ends, tiles, importing)
        if len(_PATTERNS) >= _MOST_PATTERNS:
            _PATTERNS.clear()
        _PATTERNS[key] = known
    return known


def pattern_of(ends: Sequence[End], tiles: range, importing: bool) -> Pattern:
    """Return the moves of some tiles, worked out from one tile of each kind.

    >>> pattern_of([], range(0, 2), importing=False).spans.tolist()
    [[0, 0], [0, 0]]
    """
    placed = [_places(end, np.arange(tiles.start, tiles.stop)) for end in ends]
    kinds = _kinds([column for columns, _ in placed for column in columns], len(tiles))
    shapes, spans = [], np.zeros((len(tiles), 2), np.int64)
    moves, origins, runners = [np.zeros(0, _MOVE)], [np.zeros(0, np.int64)], []
    count = 0
    for kind in range(kinds.max() + 1):
        members = np.flatnonzero(kinds == kind)
        model = tiles[int(members[0])]
        shapes.append(tuple([end.tiler[model].shape for end in ends]))
        rows, counted, steps = [], [], []
        found = _model_moves(ends, model, importing)
        for operand, run, outer, inner in found or ():
            end = ends[operand]
            # a fill stays where it is
            follows = not importing or end.port.tensor.memory.contains(outer)
            outer = outer - end.port.tensor.address - int(placed[operand][1][members[0]]) if follows else 0
            source, target = (outer, inner - end.room.address) if importing else (inner - end.room.address, outer)
            rows.append((run.nests, source, target, run.count, run.streaming))
            counted.append(2 * operand + (not follows))
            steps.append(placed[operand][1][members] if follows else 0)
            runners.append(run)
        table = np.tile(np.array(rows, _MOVE), (len(members), 1))
        for column, step in zip(table.T, steps, strict=True):
            column["source" if importing else "target"] += step
        spans[members, 0] = count + np.arange(len(members)) * len(rows)
        spans[members, 1] = -1 if found is None else len(rows)
        moves.append(table.reshape(-1))
        origins.append(np.tile(np.array(counted, np.int64), len(members)))
        count += table.size
    return Pattern([shapes[k] for k in kinds], spans, np.concatenate(moves), np.concatenate(origins), runners)


def _model_moves(ends: Sequence[End], tile: int, importing: bool) -> list[tuple[int, NativeRunner, int, int]] | None:
    """Return each move of a tile: operand, what runs it, outer and inner address; None if it takes more than moves."""
    found = []
    for operand, end in enumerate(ends):
        if end.port.likeness is None:
            return None
        work = end.work(tile, importing)
        if not isinstance(work, Moves):
            return None
        for move in work:
            if not isinstance(move.run, NativeRunner):
                return None
            addresses = (move.source, move.target) if importing else (move.target, move.source)
            found.append((operand, move.run, *addresses))
    return found


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
