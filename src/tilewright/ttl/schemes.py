# SPDX-License-Identifier: Apache-2.0
"""TTL's buffering schemes: double, duplex and simplex, stepped by the caller's loop.

Each scheme is one operation, its step, which is also how it starts and how it finishes: with the first tile and no
previous one, and with an empty tile. Differences from the shipped schemes: duplex does not import tile 0 twice,
simplex lets an export leave its buffer before the import enters it, and finishing early retires what is in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..tiling.transfers import Event, Transfer
from .pointers import pointer
from .tensors import int_sub_tensor_t, int_tensor_t, is_empty, make_empty_sub, make_tensor, origin_t
from .transactions import export_clipped, import_sub_tensor, wait
from .values import create_empty_tile, packed_layout, tile_empty, tile_t


@dataclass(frozen=True)
class io_tensors_t:
    """The two tensors of a compute: the one to read, and the one to write.

    >>> tensors_empty(io_tensors_t(make_empty_sub(int_tensor_t), make_empty_sub(int_tensor_t)))
    True
    """

    imported_to: int_sub_tensor_t
    to_export_from: int_sub_tensor_t


def create_io_tensors(imported_to: int_sub_tensor_t, to_export_from: int_sub_tensor_t) -> io_tensors_t:
    """Return the two tensors of a compute.

    >>> nothing = make_empty_sub(int_tensor_t)
    >>> create_io_tensors(nothing, nothing).imported_to is nothing
    True
    """
    return io_tensors_t(imported_to, to_export_from)


def tensors_empty(tensors: io_tensors_t) -> bool:
    """Return whether there is nothing to compute: the imported tensor is empty.

    >>> tensors_empty(io_tensors_t(make_empty_sub(int_tensor_t), make_empty_sub(int_tensor_t)))
    True
    """
    return is_empty(tensors.imported_to)


class _Side:
    """One direction of a scheme: an external tensor, the buffers, the event, and the tile that was moved last."""

    def __init__(self, external: Any, buffers: tuple[Any, ...], event: Event) -> None:
        self.external, self.event = external, event
        self.buffers = [pointer(buffer) for buffer in buffers]

    def tensor(self, tile: tile_t, buffer: int) -> Any:
        """Return a tile packed in a buffer, with its place in the whole."""
        outside = self.external
        if tile_empty(tile):
            return make_empty_sub(int_tensor_t, outside.dtype)
        base = self.buffers[buffer]
        layout = packed_layout(tile.shape)
        tensor = make_tensor(int_tensor_t, base, tile.shape, layout, outside.elem_size, dtype=outside.dtype)
        return int_sub_tensor_t(tensor, origin_t(outside.shape, tile.offset))

    def begin_import(self, tile: tile_t, buffer: int, after: tuple[Transfer, ...] = ()) -> None:
        """Begin to import a tile, unless it is empty."""
        if tile_empty(tile):
            return
        outside = self.external
        moved = make_tensor(
            type(outside), outside.base, tile.shape, outside.layout, tile.offset, outside.elem_size, dtype=outside.dtype
        )
        import_sub_tensor(self.tensor(tile, buffer), moved, self.event, after)

    def begin_export(self, tile: tile_t, buffer: int) -> Transfer | None:
        """Begin to export a tile, unless it is empty."""
        if tile_empty(tile):
            return None
        outside = self.external
        return export_clipped(self.tensor(tile, buffer), outside, outside.shape, tile.offset, self.event)


class import_double_buffering_t:
    """Imports through two buffers: while one tile is computed, the next arrives.

    >>> import_double_buffering_t.prolog, import_double_buffering_t.epilog
    (1, 0)
    """

    prolog, epilog = 1, 0

    def __init__(self, buffer_1: Any, buffer_2: Any, external: Any, event: Event) -> None:
        self._in = _Side(external, (buffer_1, buffer_2), event)
        self._tile, self._index = create_empty_tile(), 0

    def step(self, next_tile: tile_t) -> Any:
        """Wait for the tile that is arriving, begin the next, and return the one that has arrived."""
        wait(1, self._in.event)
        self._in.begin_import(next_tile, self._index)
        self._index = 1 - self._index
        arrived, self._tile = self._tile, next_tile
        return self._in.tensor(arrived, self._index)

    def finish(self) -> None:
        """Retire an import that nobody will read, after a loop that was left early."""
        if self._in.event.pending:
            wait(1, self._in.event)


class export_double_buffering_t:
    """Exports through two buffers: while one tile is computed, the one before leaves.

    >>> export_double_buffering_t.prolog, export_double_buffering_t.epilog
    (0, 2)
    """

    prolog, epilog = 0, 2

    def __init__(self, buffer_1: Any, buffer_2: Any, external: Any, event: Event) -> None:
        self._out = _Side(external, (buffer_1, buffer_2), event)
        self._tile, self._index = create_empty_tile(), 0

    def step(self, tile: tile_t) -> Any:
        """Wait for the export before the last, begin the last, and return a tensor to compute a tile into."""
        wait(1, self._out.event)
        self._out.begin_export(self._tile, self._index)
        self._index = 1 - self._index
        self._tile = tile
        return self._out.tensor(tile, self._index)

    def finish(self) -> None:
        """Export the last tile, and wait for it."""
        self.step(create_empty_tile())
        wait(1, self._out.event)


class duplex_buffering_t:
    """One buffer in, one out: an import and an export run together, and compute follows.

    >>> duplex_buffering_t.prolog, duplex_buffering_t.epilog
    (0, 1)
    """

    prolog, epilog = 0, 1

    def __init__(self, ext_in: Any, buffer_in: Any, ext_out: Any, buffer_out: Any, events: Any, shipped: bool) -> None:
        self._events = list(events)
        self._in = _Side(ext_in, (buffer_in,), self._events[0])
        self._out = _Side(ext_out, (buffer_out,), self._events[1])
        self._tile = create_empty_tile()
        self._present: tile_t | None = None
        self._shipped = shipped

    def start(self, first: tile_t) -> None:
        """Import the first tile."""
        self._in.begin_import(first, 0)
        wait(2, self._events)
        self._present = None if self._shipped else first

    def step(self, tile_in: tile_t, tile_out: tile_t | None = None) -> io_tensors_t:
        """Import a tile, export the one before, wait for both, and return the tensors to compute with."""
        tile_out = tile_in if tile_out is None else tile_out
        if tile_in != self._present:
            self._in.begin_import(tile_in, 0)
        self._present = None
        self._out.begin_export(self._tile, 0)
        wait(2, self._events)
        self._tile = tile_out
        return io_tensors_t(self._in.tensor(tile_in, 0), self._out.tensor(tile_out, 0))

    def finish(self) -> None:
        """Export the last tile, and wait for it."""
        self.step(create_empty_tile())


class simplex_buffering_t:
    """Three buffers in rotation: each holds an input, then an output, then is exported and imported into again.

    >>> simplex_buffering_t.prolog, simplex_buffering_t.epilog
    (1, 2)
    """

    prolog, epilog = 1, 2

    def __init__(
        self,
        buffers: tuple[Any, Any, Any],
        ext_in: Any,
        ext_out: Any,
        event_in: Event,
        event_out: Event,
        shipped: bool,
    ) -> None:
        self._in = _Side(ext_in, buffers, event_in)
        self._out = _Side(ext_out, buffers, event_out)
        self._tile_in = self._tile_out = create_empty_tile()
        self._index = 0
        self._shipped = shipped

    def step(self, next_in: tile_t, tile_out: tile_t | None = None) -> io_tensors_t:
        """Wait, begin to export the last tile and behind it to import the next; return the tensors to compute with.

        Without an output tile, the tile that has arrived is also the one to write.
        """
        tile_out = self._tile_in if tile_out is None else tile_out
        wait(1, self._out.event)
        wait(1, self._in.event)
        turning = self._index
        leaving = self._out.begin_export(self._tile_out, turning)
        # The import, and the zeros around it, overwrite what the export still reads.
        after = () if leaving is None or self._shipped else (leaving,)
        self._in.begin_import(next_in, turning, after)
        arrived, self._tile_in, self._tile_out = self._tile_in, next_in, tile_out
        self._index = (turning + 1) % 3
        return io_tensors_t(self._in.tensor(arrived, (turning + 2) % 3), self._out.tensor(tile_out, self._index))

    def finish(self) -> None:
        """Export the last tile, and wait for it."""
        nothing = create_empty_tile()
        self.step(nothing, nothing)
        self.step(nothing, nothing)
