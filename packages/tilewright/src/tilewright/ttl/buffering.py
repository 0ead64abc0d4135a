# SPDX-License-Identifier: Apache-2.0
"""TTL's buffering schemes (double, duplex, simplex), the functions that drive them, and their schedules as data.

A scheme has one operation, its step, which also starts it (with the first tile and no previous one) and finishes it
(with an empty tile). Differences from TTL as shipped: duplex does not import tile 0 twice, simplex waits for an export
before it imports into the same buffer, and finishing early waits for all started transfers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

from ..errors import LayoutError
from ..tiling.schedule import Action, Compute, Export, Import, Phase, TransferKey, TransferKind, Wait
from ..tiling.transfers import Transfer, TransferEvent
from .pointers import pointer
from .tensors import (
    build_empty_sub_tensor,
    build_tensor,
    int_sub_tensor_t,
    int_tensor_t,
    is_empty,
    origin_t,
    require_internal,
)
from .transactions import export_clipped, import_sub_tensor, wait
from .values import create_empty_tile, packed_layout, tile_empty, tile_t


@dataclass
class io_tensors_t:
    """The two tensors of a compute: the one to read, and the one to write.

    >>> tensors_empty(io_tensors_t(build_empty_sub_tensor(int_tensor_t), build_empty_sub_tensor(int_tensor_t)))
    True
    """

    imported_to: int_sub_tensor_t
    to_export_from: int_sub_tensor_t

    def __post_init__(self) -> None:
        for name in ("imported_to", "to_export_from"):
            require_internal(getattr(self, name), f"{name} of io_tensors_t")


create_io_tensors = io_tensors_t


def tensors_empty(tensors: io_tensors_t) -> bool:
    """Return whether there is nothing to compute: the imported one of two `tensors` is empty.

    >>> tensors_empty(io_tensors_t(build_empty_sub_tensor(int_tensor_t), build_empty_sub_tensor(int_tensor_t)))
    True
    """
    if not isinstance(tensors, io_tensors_t):
        raise LayoutError(
            f"expected io_tensors_t as tensors, got {tensors!r}; make one with create_io_tensors(in, out)"
        )
    return is_empty(tensors.imported_to)


class _Direction:
    """One direction of a scheme: an external tensor, its buffers and its event."""

    def __init__(self, external: Any, buffers: tuple[Any, ...], event: TransferEvent) -> None:
        self.external, self.event = copy(external), event
        self.buffers = [pointer(buffer) for buffer in buffers]

    def tensor(self, tile: tile_t, buffer: int) -> Any:
        """Return a tile packed in a buffer, with its offset in the external tensor."""
        outside = self.external
        if tile_empty(tile):
            return build_empty_sub_tensor(int_tensor_t, outside.dtype)
        base = self.buffers[buffer]
        layout = packed_layout(tile.shape)
        tensor = build_tensor(int_tensor_t, base, tile.shape, layout, outside.elem_size, dtype=outside.dtype)
        return int_sub_tensor_t(tensor, origin_t(outside.shape, tile.offset))

    def begin_import(self, tile: tile_t, buffer: int, after: tuple[Transfer, ...] = ()) -> None:
        """Start to import a tile, unless it is empty."""
        if tile_empty(tile):
            return
        outside = self.external
        moved = build_tensor(
            type(outside), outside.base, tile.shape, outside.layout, tile.offset, outside.elem_size, dtype=outside.dtype
        )
        import_sub_tensor(self.tensor(tile, buffer), moved, self.event, after)

    def begin_export(self, tile: tile_t, buffer: int) -> Transfer | None:
        """Start to export a tile, unless it is empty."""
        if tile_empty(tile):
            return None
        outside = self.external
        return export_clipped(self.tensor(tile, buffer), outside, outside.shape, tile.offset, self.event)


class _double_buffering_t:
    """One direction through two buffers in turn: its transfers, the last tile, and the buffer of the next one."""

    def __init__(self, buffer_1: Any, buffer_2: Any, external: Any, event: TransferEvent) -> None:
        self._transfers = _Direction(external, (buffer_1, buffer_2), event)
        self._tile, self._index = create_empty_tile(), 0


class import_double_buffering_t(_double_buffering_t):
    """Imports through two buffers: the next tile is imported while one is computed.

    `buffer_1` and `buffer_2` hold a tile each, `external` is imported, and `event` gathers the imports. The scheme has
    not started: the documented loop starts with its prolog.

    >>> from tilewright import ttl
    >>> outside = ttl.create_const_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> scheme = ttl.create_import_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event())
    >>> scheme.prolog, scheme.epilog
    (1, 0)
    """

    prolog, epilog = 1, 0

    def step(self, next_tile: tile_t) -> Any:
        """Wait for the running import, start that of `next_tile`, and return the imported tile."""
        wait(1, self._transfers.event)
        self._transfers.begin_import(next_tile, self._index)
        self._index = 1 - self._index
        arrived, self._tile = self._tile, copy(next_tile)
        return self._transfers.tensor(arrived, self._index)

    def finish(self) -> None:
        """Wait for an import that is not needed, after a loop that was left early."""
        if self._transfers.event.pending:
            wait(1, self._transfers.event)


class export_double_buffering_t(_double_buffering_t):
    """Exports through two buffers: the previous tile is exported while one is computed.

    `buffer_1` and `buffer_2` hold a tile each, `external` is exported to, and `event` gathers the exports. The scheme
    has not started; starting it transfers nothing.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> scheme = ttl.create_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event())
    >>> scheme.prolog, scheme.epilog
    (0, 2)
    """

    prolog, epilog = 0, 2

    def step(self, tile: tile_t) -> Any:
        """Wait for the running export, start the next, and return a tensor to compute `tile` into."""
        wait(1, self._transfers.event)
        self._transfers.begin_export(self._tile, self._index)
        self._index = 1 - self._index
        self._tile = copy(tile)
        return self._transfers.tensor(tile, self._index)

    def finish(self) -> None:
        """Export the last tile, and wait for it."""
        self.step(create_empty_tile())
        wait(1, self._transfers.event)


class duplex_buffering_t:
    """One buffer in, one out: an import and an export run together, then the compute.

    `ext_in` is imported through `buffer_in` with `event_in`, and `ext_out` is exported to from `buffer_out` with
    `event_out`. `shipped` makes it import the first tile twice, as TTL does. The scheme has not started.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> events = ttl.get_event(), ttl.get_event()
    >>> scheme = ttl.create_duplex_buffering(outside, bytearray(3), outside, bytearray(3), *events)
    >>> scheme.prolog, scheme.epilog
    (0, 1)
    """

    prolog, epilog = 0, 1

    def __init__(
        self,
        ext_in: Any,
        buffer_in: Any,
        ext_out: Any,
        buffer_out: Any,
        event_in: TransferEvent,
        event_out: TransferEvent,
        shipped: bool = False,
    ) -> None:
        self._events = [event_in, event_out]
        self._in = _Direction(ext_in, (buffer_in,), event_in)
        self._out = _Direction(ext_out, (buffer_out,), event_out)
        self._tile = create_empty_tile()
        self._present: tile_t | None = None
        self._shipped = shipped

    def start(self, first: tile_t) -> None:
        """Import the tile `first`."""
        self._in.begin_import(first, 0)
        wait(2, self._events)
        self._present = None if self._shipped else copy(first)

    def step(self, tile_in: tile_t, tile_out: tile_t | None = None) -> io_tensors_t:
        """Import `tile_in`, export the tile before, wait for both; return the tensors to compute `tile_out` with."""
        tile_out = tile_in if tile_out is None else tile_out
        if tile_in != self._present:
            self._in.begin_import(tile_in, 0)
        self._present = None
        self._out.begin_export(self._tile, 0)
        wait(2, self._events)
        self._tile = copy(tile_out)
        return io_tensors_t(self._in.tensor(tile_in, 0), self._out.tensor(tile_out, 0))

    def finish(self) -> None:
        """Export the last tile, and wait for it."""
        self.step(create_empty_tile())


class simplex_buffering_t:
    """Three buffers in rotation: each holds an input, then an output, then is exported and imported into again.

    `ext_in` is imported with `event_in`, and `ext_out` is exported to with `event_out`, through `buffer_1`, `buffer_2`
    and `buffer_3`. `shipped` omits the order that TTL lacks. The scheme has not started.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> buffers, events = [bytearray(3) for _ in range(3)], (ttl.get_event(), ttl.get_event())
    >>> scheme = ttl.create_simplex_buffering(*buffers, outside, outside, *events)
    >>> scheme.prolog, scheme.epilog
    (1, 2)
    """

    prolog, epilog = 1, 2

    def __init__(
        self,
        buffer_1: Any,
        buffer_2: Any,
        buffer_3: Any,
        ext_in: Any,
        ext_out: Any,
        event_in: TransferEvent,
        event_out: TransferEvent,
        shipped: bool = False,
    ) -> None:
        buffers = (buffer_1, buffer_2, buffer_3)
        self._in = _Direction(ext_in, buffers, event_in)
        self._out = _Direction(ext_out, buffers, event_out)
        self._tile_in = self._tile_out = create_empty_tile()
        self._index = 0
        self._shipped = shipped

    def step(self, next_in: tile_t, tile_out: tile_t | None = None) -> io_tensors_t:
        """Wait, start to export the last tile and then to import `next_in`; return the tensors for `tile_out`.

        Without an output tile, the imported tile is also the one to write.
        """
        tile_out = self._tile_in if tile_out is None else tile_out
        wait(1, self._out.event)
        wait(1, self._in.event)
        turning = self._index
        leaving = self._out.begin_export(self._tile_out, turning)
        # the import, with the zeros around it, overwrites what the export still reads
        after = () if leaving is None or self._shipped else (leaving,)
        self._in.begin_import(next_in, turning, after)
        arrived, self._tile_in, self._tile_out = self._tile_in, copy(next_in), copy(tile_out)
        self._index = (turning + 1) % 3
        return io_tensors_t(self._in.tensor(arrived, (turning + 2) % 3), self._out.tensor(tile_out, self._index))

    def finish(self) -> None:
        """Export the last tile, and wait for it."""
        nothing = create_empty_tile()
        self.step(nothing, nothing)
        self.step(nothing, nothing)


create_import_double_buffering = import_double_buffering_t
create_export_double_buffering = start_export_double_buffering = export_double_buffering_t
create_duplex_buffering = duplex_buffering_t
create_simplex_buffering = simplex_buffering_t


def start_import_double_buffering(
    buffer_1: Any, buffer_2: Any, external: Any, event: TransferEvent, first: tile_t
) -> Any:
    """Return an import scheme that has started to import its first tile, `first`.

    `buffer_1`, `buffer_2`, `external` and `event` are those of `create_import_double_buffering`.

    >>> from tilewright import ttl
    >>> outside = ttl.create_const_ext_tensor(bytearray(range(9)), ttl.create_shape(9), 1)
    >>> tiler = ttl.create_tiler(ttl.create_shape(9), ttl.create_shape(3))
    >>> scheme = start_import_double_buffering(
    ...     bytearray(3), bytearray(3), outside, ttl.get_event(), ttl.get_tile(0, tiler)
    ... )
    >>> step_buffering(scheme, ttl.get_tile(1, tiler)).array().tobytes()
    b'\\x00\\x01\\x02'
    """
    scheme = import_double_buffering_t(buffer_1, buffer_2, external, event)
    scheme.step(first)
    return scheme


def start_duplex_buffering(
    ext_in: Any, buffer_in: Any, ext_out: Any, buffer_out: Any, events: Any, first: tile_t, shipped: bool = False
) -> Any:
    """Return a duplex scheme that has imported its first tile, `first`.

    `events` are the two of `create_duplex_buffering`, which explains `ext_in`, `buffer_in`, `ext_out`, `buffer_out` and
    `shipped`.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> events, tile = (
    ...     [ttl.get_event(), ttl.get_event()],
    ...     ttl.create_tile(0, 0, 0, ttl.create_tiler(ttl.create_shape(9), ttl.create_shape(3))),
    ... )
    >>> scheme = start_duplex_buffering(outside, bytearray(3), outside, bytearray(3), events, tile)
    >>> finish_buffering(scheme)
    """
    event_in, event_out = events
    scheme = duplex_buffering_t(ext_in, buffer_in, ext_out, buffer_out, event_in, event_out, shipped)
    scheme.start(first)
    return scheme


def start_simplex_buffering(
    buffer_1: Any,
    buffer_2: Any,
    buffer_3: Any,
    ext_in: Any,
    ext_out: Any,
    event_in: TransferEvent,
    event_out: TransferEvent,
    first: tile_t,
    shipped: bool = False,
) -> Any:
    """Return a simplex scheme that has started to import its first tile, `first`.

    `buffer_1`, `buffer_2`, `buffer_3`, `ext_in`, `ext_out`, `event_in`, `event_out` and `shipped` are those of
    `create_simplex_buffering`.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> buffers, events = [bytearray(3) for _ in range(3)], (ttl.get_event(), ttl.get_event())
    >>> tiler = ttl.create_tiler(ttl.create_shape(9), ttl.create_shape(3))
    >>> scheme = start_simplex_buffering(*buffers, outside, outside, *events, ttl.get_tile(0, tiler))
    >>> finish_buffering(scheme)
    """
    scheme = simplex_buffering_t(buffer_1, buffer_2, buffer_3, ext_in, ext_out, event_in, event_out, shipped)
    scheme.step(first, create_empty_tile())
    return scheme


def step_buffering(scheme: Any, tile: tile_t, *output: tile_t) -> Any:
    """Return the tensors to compute with, after the waits and transfers of one step of a `scheme`.

    Double schemes take one `tile` and return one tensor. Duplex and simplex take an input `tile` and an `output` tile,
    or one for both, and return `io_tensors_t`.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> scheme = start_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event())
    >>> step_buffering(scheme, ttl.create_empty_tile()).shape.width
    0
    """
    return scheme.step(tile, *output)


def finish_buffering(scheme: Any) -> None:
    """Export the last tile of a `scheme`, and wait for all transfers.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> finish_buffering(start_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event()))
    """
    scheme.finish()


@dataclass(frozen=True)
class pipeline_iterations_t:
    """The extra iterations of a loop over tiles: before the first tile, and after the last.

    >>> pipeline_iterations_t(1, 2)
    pipeline_iterations_t(prolog=1, epilog=2)
    """

    prolog: int
    epilog: int


def create_pipeline_iterations(scheme: Any) -> pipeline_iterations_t:
    """Return the extra iterations of a `scheme` that was created and not started.

    >>> create_pipeline_iterations(duplex_buffering_t)
    pipeline_iterations_t(prolog=0, epilog=1)
    """
    return pipeline_iterations_t(scheme.prolog, scheme.epilog)


def join_pipeline_iterations(scheme: Any, iterations: pipeline_iterations_t) -> pipeline_iterations_t:
    """Return the extra iterations for a `scheme` and all `iterations` joined before: the maximum of each.

    >>> join_pipeline_iterations(export_double_buffering_t, create_pipeline_iterations(import_double_buffering_t))
    pipeline_iterations_t(prolog=1, epilog=2)
    """
    return pipeline_iterations_t(max(scheme.prolog, iterations.prolog), max(scheme.epilog, iterations.epilog))


def schedule(scheme: str, tiles: int, shipped: bool = False) -> Iterator[Phase]:
    """Return an iterator over the phases of a `scheme` for a number of `tiles`.

    `shipped` returns what TTL does: duplex imports tile 0 twice, and simplex does not order an export before the
    import into the same buffer.

    >>> for phase in schedule("simplex", 2):
    ...     print(phase)
    start: wait[]; wait[]; import 0 -> b0
    step 0: wait[]; wait[import 0]; import 1 -> b1; compute 0 (b0 -> b2)
    step 1: wait[]; wait[import 1]; export 0 <- b2; compute 1 (b1 -> b0)
    finish: wait[export 0]; wait[]; export 1 <- b0; wait[export 1]; wait[]
    """
    if scheme not in _SCHEMES:
        raise LayoutError(f"unknown TTL scheme {scheme!r}; choose one of {', '.join(_SCHEMES)}")
    return _SCHEMES[scheme](tiles, shipped)


def _transfer_keys(kind: TransferKind, tile: int, tiles: int) -> tuple[TransferKey, ...]:
    return (TransferKey(kind, tile),) if 0 <= tile < tiles else ()


def _import_actions(tile: int, tiles: int, buffer: str, after: tuple[TransferKey, ...] = ()) -> list[Action]:
    return [Import(tile, buffer, 0, after)] if 0 <= tile < tiles else []


def _export_actions(tile: int, tiles: int, buffer: str) -> list[Action]:
    return [Export(tile, buffer)] if 0 <= tile < tiles else []


def _double_phases(n: int, _: bool) -> Iterator[Phase]:
    yield Phase("start_import", None, (Wait(()), *_import_actions(0, n, "in0")))
    yield Phase("start_export", None, ())
    for i in range(n):
        arriving = Wait(_transfer_keys("import", i, n))
        yield Phase("step_import", i, (arriving, *_import_actions(i + 1, n, f"in{(i + 1) % 2}")))
        leaving = Wait(_transfer_keys("export", i - 2, n))
        compute = Compute(i, f"in{i % 2}", f"out{(i + 1) % 2}")
        yield Phase("step_export", i, (leaving, *_export_actions(i - 1, n, f"out{i % 2}"), compute))
    yield Phase("finish_import", None, ())
    last = _export_actions(n - 1, n, f"out{n % 2}")
    yield Phase(
        "finish_export",
        None,
        (Wait(_transfer_keys("export", n - 2, n)), *last, Wait(_transfer_keys("export", n - 1, n))),
    )


def _duplex_phases(n: int, shipped: bool) -> Iterator[Phase]:
    yield Phase("start", None, (*_import_actions(0, n, "in"), Wait(_transfer_keys("import", 0, n), 2)))
    for i in range(n):
        again = shipped or i > 0
        begun = [*(_import_actions(i, n, "in") if again else []), *_export_actions(i - 1, n, "out")]
        ended = (*(_transfer_keys("import", i, n) if again else ()), *_transfer_keys("export", i - 1, n))
        yield Phase("step", i, (*begun, Wait(ended, 2), Compute(i, "in", "out")))
    yield Phase("finish", None, (*_export_actions(n - 1, n, "out"), Wait(_transfer_keys("export", n - 1, n), 2)))


def _simplex_phases(n: int, shipped: bool) -> Iterator[Phase]:
    yield Phase("start", None, (Wait(()), Wait(()), *_import_actions(0, n, "b0")))
    for i in range(n):
        turning = f"b{(i + 1) % 3}"
        leaving = _transfer_keys("export", i - 1, n)
        ready = (Wait(_transfer_keys("export", i - 2, n)), Wait(_transfer_keys("import", i, n)))
        begun = (*_export_actions(i - 1, n, turning), *_import_actions(i + 1, n, turning, () if shipped else leaving))
        yield Phase("step", i, (*ready, *begun, Compute(i, f"b{i % 3}", f"b{(i + 2) % 3}")))
    last = _export_actions(n - 1, n, f"b{(n + 1) % 3}")
    ready = (Wait(_transfer_keys("export", n - 2, n)), Wait(()))
    yield Phase("finish", None, (*ready, *last, Wait(_transfer_keys("export", n - 1, n)), Wait(())))


_SCHEMES = {"double": _double_phases, "duplex": _duplex_phases, "simplex": _simplex_phases}
