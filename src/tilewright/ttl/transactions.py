# SPDX-License-Identifier: Apache-2.0
"""TTL's transactions: import, export, the padding import of a sub tensor, events and waits; and a record of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..errors import LayoutError, TransferError
from ..tiling import Box, Event
from ..tiling.fills import check_fill, outside_boxes
from ..tiling.moves import Move, Moves, export_moves, filled, import_moves
from ..tiling.transfers import Engine, Transfer
from ..tiling.transfers import wait as wait_for
from .pointers import pointer
from .tensors import in_memory, is_empty
from .tilers import outer_first, position, tile_of
from .values import linearize, offset_t, shape_t, tile_t


class event_t(Event):
    """An event: it gathers the transfers that it is given to.

    >>> get_event().finished
    True
    """


class transaction_t(NamedTuple):
    """What a transfer moves: a tile, the box of it that is inside, and where that lands in which internal buffer.

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
    """A wait in a record: how many events it named, and the transactions that it ended.

    >>> wait_t(1, ()).n_events
    1
    """

    n_events: int
    retires: tuple[transaction_t, ...]


_records: list[list[transaction_t | wait_t]] = []


@contextmanager
def record() -> Iterator[list[transaction_t | wait_t]]:
    """Return a list that every transaction and wait is added to while the context is open: TTL's debug mode, as data.

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


def get_event(engine: Engine | None = None) -> event_t:
    """Return a new event, on the default engine or on a given one.

    >>> get_event().pending
    []
    """
    return event_t(engine)


def wait(num_events: int, events: Any) -> None:
    """Wait for the first events of a list, or for a single one; errors of their transfers are raised here.

    >>> wait(2, [get_event(), get_event()])
    """
    chosen: Sequence[Event] = [events] if isinstance(events, Event) else list(events)
    if not 0 <= num_events <= len(chosen):
        raise LayoutError(f"wait for {num_events} of {len(chosen)} events; name at most as many as there are")
    chosen = chosen[:num_events]
    if _records:
        ended = tuple([transfer.tile for event in chosen for transfer in event.pending])
        for log in _records:
            log.append(wait_t(num_events, ended))
    wait_for(*chosen)


def import_(internal: Any, external: Any, event: Event) -> None:
    """Begin to import an external tensor into an internal one; both have one shape and one type.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> room, outside = np.zeros(4, np.int16), np.arange(20, dtype=np.int16)
    >>> event = get_event()
    >>> tile = ttl.create_shape(2, 2)
    >>> at = (ttl.create_layout(5), ttl.create_offset(1, 1), 2)
    >>> import_(ttl.create_int_tensor(room, tile), ttl.create_ext_tensor(outside, tile, *at), event)
    >>> wait(1, event)
    >>> room.tolist()
    [6, 7, 11, 12]
    """
    _check_sides(internal, external)
    box = Box((0, 0, 0), outer_first(internal.shape))
    moves = import_moves(in_memory(internal, box, box.shape), in_memory(external, box, box.shape))
    _begin("import", internal, box, box, moves, event)


def export(internal: Any, external: Any, event: Event) -> None:
    """Begin to export an internal tensor to an external one; both have one shape and one type.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> room, outside = np.array([7, 8], np.uint8), np.zeros(4, np.uint8)
    >>> event = get_event()
    >>> line = ttl.create_shape(2)
    >>> export(ttl.create_int_tensor(room, line), ttl.create_ext_tensor(outside[1:], line), event)
    >>> wait(1, event)
    >>> outside.tolist()
    [0, 7, 8, 0]
    """
    _check_sides(internal, external)
    if external.const:
        raise TransferError(f"cannot export to {type(external).__name__}, which is const; give a mutable tensor")
    box = Box((0, 0, 0), outer_first(internal.shape))
    moves = export_moves(in_memory(internal, box, box.shape), in_memory(external, box, box.shape))
    _begin("export", internal, box, box, moves, event)


def blocking_import(internal: Any, external: Any) -> None:
    """Import, and wait for it.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> room, line = np.zeros(2, np.uint8), ttl.create_shape(2)
    >>> outside = np.array([7, 8], np.uint8)
    >>> blocking_import(ttl.create_int_tensor(room, line), ttl.create_ext_tensor(outside, line))
    >>> room.tolist()
    [7, 8]
    """
    event = get_event()
    import_(internal, external, event)
    wait(1, event)


def blocking_export(internal: Any, external: Any) -> None:
    """Export, and wait for it.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> outside, line = np.zeros(2, np.uint8), ttl.create_shape(2)
    >>> room = np.array([7, 8], np.uint8)
    >>> blocking_export(ttl.create_int_tensor(room, line), ttl.create_ext_tensor(outside, line))
    >>> outside.tolist()
    [7, 8]
    """
    event = get_event()
    export(internal, external, event)
    wait(1, event)


def import_sub_tensor(internal: Any, external: Any, event: Event, after: Sequence[Transfer] = ()) -> Transfer:
    """Begin to import a sub tensor, with zeros where it lies outside its origin, and in the padding of its rows.

    The base of the external tensor is already moved to where the sub tensor starts. Planes are padded like rows, and
    a sub tensor wholly outside becomes zeros. `after` names transfers that must be over before the buffer is touched.

    >>> import numpy as np
    >>> from tilewright import ttl
    >>> room, outside = np.full(4, 9, np.uint8), np.arange(1, 7, dtype=np.uint8)
    >>> whole = ttl.create_const_ext_tensor(outside, ttl.create_shape(6))
    >>> line, at = ttl.create_shape(4), ttl.create_offset(-2)
    >>> part = ttl.create_int_sub_tensor(room, line, ttl.create_layout(4, 4), whole, at)
    >>> moved = ttl.create_const_ext_tensor(outside, line, ttl.create_layout(), at, 1)
    >>> event = ttl.get_event()
    >>> transfer = import_sub_tensor(part, moved, event)
    >>> wait(1, event)
    >>> room.tolist()
    [0, 0, 1, 2]
    """
    _check_types(internal, external)
    if internal.const:
        raise TransferError(f"cannot import into {type(internal).__name__}, which is const")
    origin = internal.origin
    if external.shape not in (internal.shape, origin.shape):
        raise TransferError(f"internal {internal.shape} and external {external.shape} differ; they must be equal")
    whole = outer_first(origin.shape)
    tile = Box(position(origin.sub_offset), outer_first(internal.shape))
    inside = tile.within(whole)
    room = in_memory(internal, Box((0, 0, 0), tile.shape), tile.shape)
    moves = _zeros(internal, tile, inside)
    if not inside.empty:
        back = -linearize(origin.sub_offset, external.layout)
        outside = in_memory(external, inside, whole, back)
        local = inside.relative_to(tile.offset)
        moves += import_moves(room.sub(local.offset, local.shape), outside)
    return _begin("import", internal, tile, inside, Moves(moves), event, after)


def export_clipped(
    internal: Any, external: Any, origin: shape_t, at: offset_t, event: Event, after: Sequence[Transfer] = ()
) -> Transfer:
    """Begin to export a tile that may reach outside its origin, less what lies outside; what the schemes do."""
    _check_types(internal, external)
    whole = outer_first(origin)
    tile = Box(position(at), outer_first(internal.shape))
    room = in_memory(internal, Box((0, 0, 0), tile.shape), tile.shape)
    moves = export_moves(room, in_memory(external, tile, whole), clip=True)
    return _begin("export", internal, tile, tile.within(whole), moves, event, after)


def _zeros(internal: Any, tile: Box, inside: Box) -> list[Move]:
    """Return the moves that write zeros: outside the origin, and in the padding after each row."""
    depth, height, width = tile.shape
    spacing = internal.layout.row_spacing if height > 1 else max(width, internal.layout.row_spacing)
    zero = check_fill(0, internal.dtype)
    boxes = [box.relative_to(tile.offset) for box in outside_boxes(tile, inside)]
    widths = [(box, width) for box in boxes]
    if spacing > width:
        # the padding of the very last row may end with the memory
        last = _room_after_last_row(internal, spacing - width)
        padding = Box((0, 0, width), (depth, height - 1, spacing - width))
        ends = Box((0, height - 1, width), (depth - 1, 1, spacing - width))
        end = Box((depth - 1, height - 1, width), (1, 1, last))
        widths += [(box, spacing) for box in (padding, ends, end) if not box.empty]
    return [filled(in_memory(internal, box, (depth, height, wide)), box, zero) for box, wide in widths]


def _room_after_last_row(internal: Any, wanted: int) -> int:
    """Return how many elements of padding the memory still holds after the last row."""
    end = offset_t(internal.shape.width, internal.shape.height - 1, internal.shape.depth - 1)
    start = internal.base.offset + linearize(end, internal.layout) * internal.elem_size
    return max(0, min(wanted, int(internal.base.memory.size - start) // int(internal.elem_size)))


def _check_types(internal: Any, external: Any) -> None:
    if not internal.internal or external.internal:
        raise TransferError(
            f"a transfer is between an internal and an external tensor, not {type(internal).__name__} and"
            f" {type(external).__name__}"
        )
    if is_empty(internal) or is_empty(external):
        raise TransferError("an empty tensor cannot be moved; test it with int_tensor_empty or tensors_empty first")
    if internal.elem_size != external.elem_size:
        raise TransferError(
            f"internal elements have {internal.elem_size} bytes, external ones {external.elem_size}; they must agree"
        )
    kinds = {tensor.dtype for tensor in (internal, external) if tensor.dtype.kind != "V" or tensor.dtype.names}
    if len(kinds) > 1:
        raise TransferError(f"internal elements are {internal.dtype}, external ones {external.dtype}; they must agree")


def _check_sides(internal: Any, external: Any) -> None:
    _check_types(internal, external)
    if internal.shape != external.shape:
        raise TransferError(f"internal {internal.shape} and external {external.shape} differ; they must be equal")


def _begin(
    kind: str,
    internal: Any,
    tile: Box,
    inside: Box,
    moves: Moves,
    event: Event,
    after: Sequence[Transfer] = (),
) -> Transfer:
    landing = linearize(tile_of(inside.relative_to(tile.offset)).offset, internal.layout)
    data = tile_of(inside)
    transaction = transaction_t(kind, tile_of(tile), data.offset, data.shape, landing, internal.base)
    for log in _records:
        log.append(transaction)
    return event.add(Transfer(kind, transaction, moves, inside.size * internal.elem_size, after))
