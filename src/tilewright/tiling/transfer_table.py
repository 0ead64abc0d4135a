# SPDX-License-Identifier: Apache-2.0
"""Transfers of many tiles as tables of native copies, so that one native call exports a tile and imports the next.

Tiles with the same position relative to the edges of their space (inside, or outside by the same amounts) have the same
copies but for their addresses. So the copies of one tile of each kind are planned, and NumPy fills in a table for all
others of the kind. Tables are cached without base addresses, for other workers and other arrays that are cut the same
way. Tiles of files, which are read and written rather than copied, remain `Work` to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..copying.native_engine import NativeRunner
from .endpoints import MemoryEndpoint, TileBuffer, Work
from .tile_copies import CopyList
from .tile_padding import validate_fill
from .tiler import Tiler

Array = np.ndarray[Any, Any]
Shapes = tuple[tuple[int, ...], ...]
"""The shapes of a tile's operands."""

BATCH_TILES = 512
"""Tiles in one table."""

_MAX_CACHED_TABLES = 64

_COPY_RECORD = np.dtype([("parts", "i8"), ("source", "i8"), ("target", "i8"), ("count", "i4"), ("streaming", "i4")])
"""`tw_transfer` of native/tilewright.h."""

NativeCopies: TypeAlias = tuple[int, int]
"""An array of `tw_transfer`: its address, and its length."""

NO_COPIES: NativeCopies = (0, 0)


class BufferedOperand(NamedTuple):
    """An operand of a worker: its endpoint, its tiler, its buffer, and the fill outside of its space.

    >>> from tilewright.tiling import ExternalTensor
    >>> BufferedOperand(MemoryEndpoint(ExternalTensor(np.zeros(4))), Tiler((4,), (2,)), TileBuffer(16)).fill is None
    True
    """

    endpoint: MemoryEndpoint
    tiler: Tiler
    buffer: TileBuffer
    fill: Any = None

    def plan_transfer(self, tile: int, importing: bool) -> Work:
        """Return the work that imports or exports a tile."""
        box = self.tiler[tile]
        if importing:
            return self.endpoint.plan_import(box, self.buffer, self.fill)
        return self.endpoint.plan_export(box, self.buffer)


class CopyTable(NamedTuple):
    """The copies of a batch of tiles, with addresses relative to those of arrays, fills and buffers.

    >>> from tilewright.tiling import ExternalTensor
    >>> operand = BufferedOperand(MemoryEndpoint(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), TileBuffer(64))
    >>> build_copy_table([operand], range(0, 3), importing=True).shapes
    [((2,),), ((2,),), ((2,),)]
    """

    shapes: list[Shapes]
    spans: Array  # (first copy, number of copies) of each tile; -1 copies: its transfer is not made of copies
    copies: Array
    origins: Array  # the base of each copy's outer address: 2 * operand, or 2 * operand + 1 for its fill
    runners: list[NativeRunner]  # keeps alive what the copies point to


class TransferTable:
    """The imports or the exports of a worker's tiles.

    >>> from tilewright.copying import native_library
    >>> from tilewright.tiling import ExternalTensor
    >>> operand = BufferedOperand(MemoryEndpoint(ExternalTensor(np.arange(6))), Tiler((6,), (2,)), TileBuffer(64))
    >>> imports = TransferTable([operand], 3, importing=True)
    >>> imports.arrays(1)[0].shape, not native_library.is_available() or imports.native_copies(1)[1] == 1
    ((2,), True)
    """

    def __init__(self, operands: Sequence[BufferedOperand], tiles: int, importing: bool) -> None:
        self._operands, self._tiles, self._importing = operands, tiles, importing
        self._first = self._end = 0
        self._copies: list[NativeCopies] = []
        self._arrays: list[tuple[Array, ...]] = []
        self._owners: Any = None  # keeps alive what the copies point to

    def arrays(self, tile: int) -> tuple[Array, ...]:
        """Return a tile's views of the buffers."""
        if tile >= self._end:
            self._load_batch(tile)
        return self._arrays[tile - self._first]

    def native_copies(self, tile: int) -> NativeCopies | None:
        """Return the native copies of a tile; None if its transfer takes more than those."""
        if tile >= self._end:
            self._load_batch(tile)
        copies = self._copies[tile - self._first]
        return copies if copies[1] >= 0 else None

    def plan_transfers(self, tile: int) -> list[Work]:
        """Return the transfers of a tile as work to call, one per operand."""
        return [operand.plan_transfer(tile, self._importing) for operand in self._operands]

    def _load_batch(self, tile: int) -> None:
        first = tile - tile % BATCH_TILES
        tiles = range(first, min(first + BATCH_TILES, self._tiles))
        table = _cached_copy_table(self._operands, tiles, self._importing)
        copies, bases, fills = table.copies.copy(), [], []
        for operand in self._operands:
            fill = validate_fill(operand.fill, operand.endpoint.dtype) if operand.fill is not None else None
            fills.append(fill)
            bases += [operand.endpoint.tensor.address, fill.ctypes.data if isinstance(fill, np.ndarray) else 0]
        outer, inner = ("source", "target") if self._importing else ("target", "source")
        copies[outer] += np.array(bases, np.int64)[table.origins]
        copies[inner] += np.array([operand.buffer.address for operand in self._operands], np.int64)[table.origins >> 1]
        views: dict[Shapes, tuple[Array, ...]] = {}
        for shapes in table.shapes:
            if shapes not in views:
                pairs = zip(self._operands, shapes, strict=True)
                views[shapes] = tuple([operand.buffer.view(shape, operand.endpoint.dtype) for operand, shape in pairs])
        self._first, self._end = first, tiles.stop
        self._arrays = [views[shapes] for shapes in table.shapes]
        addresses = table.spans * (_COPY_RECORD.itemsize, 1) + (copies.ctypes.data, 0)
        self._copies = [(address, count) for address, count in addresses.tolist()]
        self._owners = table, copies, fills


_TABLES: dict[Any, CopyTable] = {}


def _cached_copy_table(operands: Sequence[BufferedOperand], tiles: range, importing: bool) -> CopyTable:
    """Return a copy table, cached for all arrays with the same tiler, strides and alignment."""
    key_parts: list[Any] = [importing, tiles]
    for operand in operands:
        if operand.endpoint.copy_key is None:
            return build_copy_table(operands, tiles, importing)
        fill = operand.fill if operand.fill is None else validate_fill(operand.fill, operand.endpoint.dtype)
        key_parts += [operand.tiler, operand.endpoint.copy_key, fill if fill is None or isinstance(fill, str) else True]
    key = tuple(key_parts)
    table = _TABLES.get(key)
    if table is None:  # two threads may build equal tables
        table = build_copy_table(operands, tiles, importing)
        if len(_TABLES) >= _MAX_CACHED_TABLES:
            _TABLES.clear()
        _TABLES[key] = table
    return table


def build_copy_table(operands: Sequence[BufferedOperand], tiles: range, importing: bool) -> CopyTable:
    """Return the copies of some tiles, derived from one tile of each kind.

    >>> build_copy_table([], range(0, 2), importing=False).spans.tolist()
    [[0, 0], [0, 0]]
    """
    positions = [_tile_positions(operand, np.arange(tiles.start, tiles.stop)) for operand in operands]
    kinds = _number_distinct_rows([column for columns, _ in positions for column in columns], len(tiles))
    shapes, spans = [], np.zeros((len(tiles), 2), np.int64)
    copies, origins, runners = [np.zeros(0, _COPY_RECORD)], [np.zeros(0, np.int64)], []
    count = 0
    for kind in range(kinds.max() + 1):
        members = np.flatnonzero(kinds == kind)
        model = tiles[int(members[0])]
        shapes.append(tuple([operand.tiler[model].shape for operand in operands]))
        rows, bases, steps = [], [], []
        model_copies = _native_copies(operands, model, importing)
        for number, run, outer, inner in model_copies or ():
            operand, starts = operands[number], positions[number][1]
            is_data = not importing or operand.endpoint.tensor.memory.contains(outer)  # otherwise it is a fill
            outer = outer - operand.endpoint.tensor.address - int(starts[members[0]]) if is_data else 0
            inner -= operand.buffer.address
            source, target = (outer, inner) if importing else (inner, outer)
            rows.append((run.nests, source, target, run.count, run.streaming))
            bases.append(2 * number + (not is_data))
            steps.append(starts[members] if is_data else 0)
            runners.append(run)
        table = np.tile(np.array(rows, _COPY_RECORD), (len(members), 1))
        for column, step in zip(table.T, steps, strict=True):
            column["source" if importing else "target"] += step
        spans[members, 0] = count + np.arange(len(members)) * len(rows)
        spans[members, 1] = -1 if model_copies is None else len(rows)
        copies.append(table.reshape(-1))
        origins.append(np.tile(np.array(bases, np.int64), len(members)))
        count += table.size
    return CopyTable([shapes[k] for k in kinds], spans, np.concatenate(copies), np.concatenate(origins), runners)


def _native_copies(
    operands: Sequence[BufferedOperand], tile: int, importing: bool
) -> list[tuple[int, NativeRunner, int, int]] | None:
    """Return (operand, runner, outer address, buffer address) of each copy of a tile; None if not all are native."""
    copies = []
    for number, operand in enumerate(operands):
        if operand.endpoint.copy_key is None:
            return None
        work = operand.plan_transfer(tile, importing)
        if not isinstance(work, CopyList):
            return None
        for copy in work:
            if not isinstance(copy.run, NativeRunner):
                return None
            addresses = (copy.source, copy.target) if importing else (copy.target, copy.source)
            copies.append((number, copy.run, *addresses))
    return copies


def _tile_positions(operand: BufferedOperand, numbers: Array) -> tuple[list[Array], Array]:
    """Return (per axis: elements outside before, outside after, length) of some tiles, and their byte offsets."""
    tiler, endpoint = operand.tiler, operand.endpoint
    if tiler.order == "row_major":
        coords = np.stack(np.unravel_index(numbers, tiler.grid))
    else:
        coords = np.array([tiler.coords(int(number)) for number in numbers]).T
    columns, starts = [], np.zeros(len(numbers), np.int64)
    strides = endpoint.tensor.strides or (0,) * tiler.rank
    for at, extent, stride, axis in zip(coords, endpoint.shape, strides, tiler.axes, strict=True):
        step, first, tile_extent, last, rest = axis
        start = at * step + first
        length = np.where(at == last, rest, tile_extent)
        columns += [np.maximum(-start, 0), np.maximum(start + length - extent, 0), length]
        starts += start * stride
    return columns, starts


def _number_distinct_rows(columns: list[Array], count: int) -> Array:
    """Return a number for each row of some columns, the same for equal rows."""
    numbers = np.zeros(count, np.int64)
    for column in columns:
        if column.min() < column.max():
            values, ranks = np.unique(column, return_inverse=True)
            numbers = np.unique(numbers * len(values) + ranks, return_inverse=True)[1]
    return numbers
