# SPDX-License-Identifier: Apache-2.0
"""TTL's buffering schemes (double, duplex, simplex), the functions that drive them, and their schedules as data.

A scheme has one operation, its step, which also starts it (with the first tile and no previous one) and finishes it
(with an empty tile). Differences from TTL as shipped: duplex does not import tile 0 twice, simplex waits for an export
before it imports into the same buffer, and finishing early waits for all started transfers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast, overload

import numpy as np

from ..errors import LayoutError, TransferError
from ..tiling import (
    Action,
    BoundCopy,
    Box,
    Compute,
    CopyList,
    Export,
    ExternalTensor,
    Import,
    InternalTensor,
    Phase,
    Transfer,
    TransferEvent,
    TransferKey,
    TransferKind,
    TransferQueue,
    Wait,
    boxes_outside,
    export_copies,
    fill_copy,
    import_copies,
)
from ..tiling import wait as wait_for
from .tensors import (
    any_tensor_t,
    build_empty_sub_tensor,
    build_tensor,
    from_box,
    int_sub_tensor_t,
    int_tensor_t,
    is_empty,
    native_tensor,
    origin_t,
    outer_first_offset,
    outer_first_shape,
    require_internal,
    sub_tensor_t,
    tensor_t,
)
from .values import Memory, create_empty_tile, linearize, offset_t, packed_layout, pointer, shape_t, tile_empty, tile_t

__all__ = [
    "blocking_export", "blocking_import", "create_duplex_buffering", "create_export_double_buffering",
    "create_import_double_buffering", "create_io_tensors", "create_pipeline_iterations", "create_simplex_buffering",
    "duplex_buffering_t", "event_t", "export", "export_double_buffering_t", "finish_buffering", "get_event", "import_",
    "import_double_buffering_t", "import_sub_tensor", "io_tensors_t", "join_pipeline_iterations",
    "pipeline_iterations_t", "record", "schedule", "simplex_buffering_t", "start_duplex_buffering",
    "start_export_double_buffering", "start_import_double_buffering", "start_simplex_buffering", "step_buffering",
    "tensors_empty", "wait",
]  # fmt: skip

# TTL's transactions: import, export, the padding import of a sub tensor, events and waits; and a log of them.


class event_t(TransferEvent):
    """An event: it gathers the transfers that it is given to, which `queue` runs.

    >>> get_event().finished
    True
    """


class transaction_t(NamedTuple):
    """The copy of a transfer: a tile, the box of it that is inside, and where that lands in which internal buffer.

    >>> tile = tile_t(shape_t(4, 3), offset_t(8, 6))
    >>> print(transaction_t("import", tile, offset_t(8, 6), shape_t(2, 1), 0, None))
    (8, 6, 0) of 4 x 3 x 1
    """

    kind: str
    tile: tile_t
    offset: offset_t
    shape: shape_t
    int_elem_offset: int
    buffer: pointer | None

    def __str__(self) -> str:
        return str(self.tile)


class wait_t(NamedTuple):
    """A wait in a log: the number of its events, and the transactions that it ended.

    >>> wait_t(1, ()).n_events
    1
    """

    n_events: int
    retires: tuple[transaction_t, ...]


_records: list[list[transaction_t | wait_t]] = []


@contextmanager
def record() -> Iterator[list[transaction_t | wait_t]]:
    """Return a list to which every transaction and wait is added while the context is open: TTL's debug mode, as data.

    >>> with record() as log:
    ...     wait(1, get_event())
    >>> log
    [wait_t(n_events=1, retires=())]
    """
    log: list[transaction_t | wait_t] = []
    _records.append(log)
    try:
        yield log
    finally:
        # by identity: two lists with the same entries are equal
        _records[:] = [known for known in _records if known is not log]


def get_event(queue: TransferQueue | None = None) -> event_t:
    """Return a new event; `queue` runs its transfers, by default a thread.

    >>> get_event().pending
    []
    """
    return event_t(queue)


def wait(num_events: int, events: TransferEvent | Sequence[TransferEvent]) -> None:
    """Wait for the first `num_events` of a list of `events`, or for a single one; raise the errors of their transfers.

    >>> wait(2, [get_event(), get_event()])
    """
    chosen: Sequence[TransferEvent] = [events] if isinstance(events, TransferEvent) else list(events)
    if not 0 <= num_events <= len(chosen):
        raise LayoutError(f"cannot wait for {num_events} of {len(chosen)} events; use at most {len(chosen)}")
    chosen = chosen[:num_events]
    if _records:
        ended = tuple([transfer.tile for event in chosen for transfer in event.pending])
        for log in _records:
            log.append(wait_t(num_events, ended))
    wait_for(*chosen)


def import_(internal: any_tensor_t, external: any_tensor_t, event: TransferEvent) -> None:
    """Start to import an `external` tensor into an `internal` one of the same shape and type; `event` gathers it.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> buffer, outside = np.zeros(4, np.int16), np.arange(20, dtype=np.int16)
    >>> event = get_event()
    >>> tile = ttl.create_shape(2, 2)
    >>> at = (ttl.create_layout(5), ttl.create_offset(1, 1), 2)
    >>> import_(ttl.create_int_tensor(buffer, tile), ttl.create_ext_tensor(outside, tile, *at), event)
    >>> wait(1, event)
    >>> buffer.tolist()
    [6, 7, 11, 12]
    """
    _start_entire("import", internal, external, event)


def _start_entire(kind: str, internal: any_tensor_t, external: any_tensor_t, event: TransferEvent) -> None:
    """Start to move all of a tensor to one of the same shape and type."""
    _validate_shapes(internal, external)
    if kind == "export" and external.const:
        raise TransferError(f"cannot export to {type(external).__name__}, which is const; give a mutable tensor")
    box = Box((0, 0, 0), outer_first_shape(internal.shape))
    buffer = native_tensor(InternalTensor, internal, box, box.shape)
    outside = native_tensor(ExternalTensor, external, box, box.shape)
    copies = import_copies(buffer, outside) if kind == "import" else export_copies(buffer, outside)
    _start_transfer(kind, internal, box, box, copies, event)


def export(internal: any_tensor_t, external: any_tensor_t, event: TransferEvent) -> None:
    """Start to export an `internal` tensor to an `external` one of the same shape and type; `event` gathers it.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> buffer, outside = np.array([7, 8], np.uint8), np.zeros(4, np.uint8)
    >>> event = get_event()
    >>> line = ttl.create_shape(2)
    >>> export(ttl.create_int_tensor(buffer, line), ttl.create_ext_tensor(outside[1:], line), event)
    >>> wait(1, event)
    >>> outside.tolist()
    [0, 7, 8, 0]
    """
    _start_entire("export", internal, external, event)


def blocking_import(internal: any_tensor_t, external: any_tensor_t) -> None:
    """Import an `external` tensor into an `internal` one, and wait for it.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> buffer, line = np.zeros(2, np.uint8), ttl.create_shape(2)
    >>> outside = np.array([7, 8], np.uint8)
    >>> blocking_import(ttl.create_int_tensor(buffer, line), ttl.create_ext_tensor(outside, line))
    >>> buffer.tolist()
    [7, 8]
    """
    event = get_event()
    import_(internal, external, event)
    wait(1, event)


def blocking_export(internal: any_tensor_t, external: any_tensor_t) -> None:
    """Export an `internal` tensor to an `external` one, and wait for it.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> outside, line = np.zeros(2, np.uint8), ttl.create_shape(2)
    >>> buffer = np.array([7, 8], np.uint8)
    >>> blocking_export(ttl.create_int_tensor(buffer, line), ttl.create_ext_tensor(outside, line))
    >>> outside.tolist()
    [7, 8]
    """
    event = get_event()
    export(internal, external, event)
    wait(1, event)


def import_sub_tensor(
    internal: sub_tensor_t, external: any_tensor_t, event: TransferEvent, after: Sequence[Transfer] = ()
) -> Transfer:
    """Start to import a sub tensor, with zeros where it lies outside its origin, and in the padding of its rows.

    `internal` is the sub tensor to write, and `event` gathers the transfer. The base of `external` already points to
    the start of the sub tensor. Planes are padded like rows, and a sub tensor entirely outside becomes zeros.
    `after` are transfers that must be over before the buffer is written.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> buffer, outside = np.full(4, 9, np.uint8), np.arange(1, 7, dtype=np.uint8)
    >>> space = ttl.create_const_ext_tensor(outside, ttl.create_shape(6))
    >>> line, at = ttl.create_shape(4), ttl.create_offset(-2)
    >>> part = ttl.create_int_sub_tensor(buffer, line, ttl.create_layout(4, 4), space, at)
    >>> moved = ttl.create_const_ext_tensor(outside, line, ttl.create_layout(), at, 1)
    >>> event = ttl.get_event()
    >>> transfer = import_sub_tensor(part, moved, event)
    >>> wait(1, event)
    >>> buffer.tolist()
    [0, 0, 1, 2]
    """
    _validate_types(internal, external)
    if internal.const:
        raise TransferError(f"cannot import into {type(internal).__name__}, which is const")
    origin = internal.origin
    if external.shape not in (internal.shape, origin.shape):
        raise TransferError(f"internal {internal.shape} and external {external.shape} differ; they must be equal")
    space = outer_first_shape(origin.shape)
    tile = Box(outer_first_offset(origin.sub_offset), outer_first_shape(internal.shape))
    inside = tile.within(space)
    buffer = native_tensor(InternalTensor, internal, Box((0, 0, 0), tile.shape), tile.shape)
    copies = _zero_copies(internal, tile, inside)
    if not inside.empty:
        back = -linearize(origin.sub_offset, external.layout)
        outside = native_tensor(ExternalTensor, external, inside, space, back)
        local = inside.relative_to(tile.offset)
        copies += import_copies(buffer.sub(local.offset, local.shape), outside)
    return _start_transfer("import", internal, tile, inside, CopyList(copies), event, after)


def export_clipped(
    internal: any_tensor_t,
    external: any_tensor_t,
    origin: shape_t,
    at: offset_t,
    event: TransferEvent,
    after: Sequence[Transfer] = (),
) -> Transfer:
    """Start to export the part of a tile that lies inside its origin; used by the schemes."""
    _validate_types(internal, external)
    space = outer_first_shape(origin)
    tile = Box(outer_first_offset(at), outer_first_shape(internal.shape))
    buffer = native_tensor(InternalTensor, internal, Box((0, 0, 0), tile.shape), tile.shape)
    copies = export_copies(buffer, native_tensor(ExternalTensor, external, tile, space), clip=True)
    return _start_transfer("export", internal, tile, tile.within(space), copies, event, after)


def _zero_copies(internal: any_tensor_t, tile: Box, inside: Box) -> list[BoundCopy]:
    """Return the copies that write zeros outside the origin and in the padding after each row."""
    depth, height, width = tile.shape
    spacing = internal.layout.row_spacing if height > 1 else max(width, internal.layout.row_spacing)
    zero = np.zeros(1, internal.dtype)
    boxes = [box.relative_to(tile.offset) for box in boxes_outside(tile, inside)]
    widths = [(box, width) for box in boxes]
    if spacing > width:
        # the memory may end within the padding of the last row
        last = _elements_after_last_row(internal, spacing - width)
        padding = Box((0, 0, width), (depth, height - 1, spacing - width))
        ends = Box((0, height - 1, width), (depth - 1, 1, spacing - width))
        end = Box((depth - 1, height - 1, width), (1, 1, last))
        widths += [(box, spacing) for box in (padding, ends, end) if not box.empty]
    return [
        fill_copy(native_tensor(InternalTensor, internal, box, (depth, height, wide)), box, zero)
        for box, wide in widths
    ]


def _elements_after_last_row(internal: any_tensor_t, limit: int) -> int:
    """Return how many elements the memory holds after the last row, at most `limit`."""
    end = offset_t(internal.shape.width, internal.shape.height - 1, internal.shape.depth - 1)
    start = internal.base.offset + linearize(end, internal.layout) * internal.elem_size
    return max(0, min(limit, int(internal.base.memory.size - start) // int(internal.elem_size)))


def _validate_types(internal: any_tensor_t, external: any_tensor_t) -> None:
    for tensor in (internal, external):
        if not isinstance(tensor, (tensor_t, sub_tensor_t)):
            raise TransferError(
                f"expected an internal and an external tensor, got {type(tensor).__name__}; make them with"
                " create_int_tensor and create_ext_tensor"
            )
    if not internal.internal or external.internal:
        raise TransferError(
            f"expected an internal and an external tensor, got {type(internal).__name__} and {type(external).__name__}"
        )
    if is_empty(internal) or is_empty(external):
        raise TransferError("cannot transfer an empty tensor; check it with int_tensor_empty or tensors_empty first")
    if internal.elem_size != external.elem_size:
        raise TransferError(
            f"internal elements have {internal.elem_size} bytes, external ones {external.elem_size}; they must be equal"
        )
    dtypes = {tensor.dtype for tensor in (internal, external) if tensor.dtype.kind != "V" or tensor.dtype.names}
    if len(dtypes) > 1:
        raise TransferError(
            f"internal elements are {internal.dtype}, external ones {external.dtype}; they must be equal"
        )


def _validate_shapes(internal: any_tensor_t, external: any_tensor_t) -> None:
    _validate_types(internal, external)
    if internal.shape != external.shape:
        raise TransferError(f"internal {internal.shape} and external {external.shape} differ; they must be equal")


def _start_transfer(
    kind: str,
    internal: any_tensor_t,
    tile: Box,
    inside: Box,
    copies: CopyList,
    event: TransferEvent,
    after: Sequence[Transfer] = (),
) -> Transfer:
    buffer_offset = linearize(from_box(inside.relative_to(tile.offset)).offset, internal.layout)
    data = from_box(inside)
    transaction = transaction_t(kind, from_box(tile), data.offset, data.shape, buffer_offset, internal.base)
    for log in _records:
        log.append(transaction)
    return event.add(Transfer(kind, transaction, copies, inside.size * internal.elem_size, after))


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

    def __init__(self, external: tensor_t, buffers: tuple[Memory, ...], event: TransferEvent) -> None:
        self.external, self.event = copy(external), event
        self.buffers = [pointer(buffer) for buffer in buffers]

    def tensor(self, tile: tile_t, buffer: int) -> int_sub_tensor_t:
        """Return a tile packed in a buffer, with its offset in the external tensor."""
        outside = self.external
        if tile_empty(tile):
            return cast(int_sub_tensor_t, build_empty_sub_tensor(int_tensor_t, outside.dtype))
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

    def __init__(self, buffer_1: Memory, buffer_2: Memory, external: tensor_t, event: TransferEvent) -> None:
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

    def step(self, next_tile: tile_t) -> int_sub_tensor_t:
        """Wait for the running import, start importing `next_tile`, and return the imported tile."""
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

    def step(self, tile: tile_t) -> int_sub_tensor_t:
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
        ext_in: tensor_t,
        buffer_in: Memory,
        ext_out: tensor_t,
        buffer_out: Memory,
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
        buffer_1: Memory,
        buffer_2: Memory,
        buffer_3: Memory,
        ext_in: tensor_t,
        ext_out: tensor_t,
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
        # the import, with the zeros around it, overwrites data that the export still reads
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


Scheme: TypeAlias = "import_double_buffering_t | export_double_buffering_t | duplex_buffering_t | simplex_buffering_t"
create_import_double_buffering = import_double_buffering_t
create_export_double_buffering = start_export_double_buffering = export_double_buffering_t
create_duplex_buffering = duplex_buffering_t
create_simplex_buffering = simplex_buffering_t


def start_import_double_buffering(
    buffer_1: Memory, buffer_2: Memory, external: tensor_t, event: TransferEvent, first: tile_t
) -> import_double_buffering_t:
    """Return an import scheme that has started to import its first tile, `first`.

    `buffer_1`, `buffer_2`, `external` and `event` are as in `create_import_double_buffering`.

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
    ext_in: tensor_t,
    buffer_in: Memory,
    ext_out: tensor_t,
    buffer_out: Memory,
    events: Sequence[TransferEvent],
    first: tile_t,
    shipped: bool = False,
) -> duplex_buffering_t:
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
    buffer_1: Memory,
    buffer_2: Memory,
    buffer_3: Memory,
    ext_in: tensor_t,
    ext_out: tensor_t,
    event_in: TransferEvent,
    event_out: TransferEvent,
    first: tile_t,
    shipped: bool = False,
) -> simplex_buffering_t:
    """Return a simplex scheme that has started to import its first tile, `first`.

    `buffer_1`, `buffer_2`, `buffer_3`, `ext_in`, `ext_out`, `event_in`, `event_out` and `shipped` are as in
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


@overload
def step_buffering(scheme: import_double_buffering_t | export_double_buffering_t, tile: tile_t) -> int_sub_tensor_t: ...
@overload
def step_buffering(scheme: duplex_buffering_t | simplex_buffering_t, tile: tile_t, *output: tile_t) -> io_tensors_t: ...
def step_buffering(scheme: Scheme, tile: tile_t, *output: tile_t) -> int_sub_tensor_t | io_tensors_t:
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


def finish_buffering(scheme: Scheme) -> None:
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


def create_pipeline_iterations(scheme: Scheme | type[Scheme]) -> pipeline_iterations_t:
    """Return the extra iterations of a `scheme` that was created and not started.

    >>> create_pipeline_iterations(duplex_buffering_t)
    pipeline_iterations_t(prolog=0, epilog=1)
    """
    return pipeline_iterations_t(scheme.prolog, scheme.epilog)


def join_pipeline_iterations(scheme: Scheme | type[Scheme], iterations: pipeline_iterations_t) -> pipeline_iterations_t:
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
