# SPDX-License-Identifier: Apache-2.0
"""TTL's transactions: import, export, the padding import of a sub tensor, events and waits; and a log of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..errors import LayoutError, TransferError
from ..tiling import Box, TransferEvent
from ..tiling.tile_copies import BoundCopy, CopyList, boxes_outside, export_copies, fill_copy, import_copies
from ..tiling.transfers import Transfer, TransferQueue
from ..tiling.transfers import wait as wait_for
from .pointers import pointer
from .tensors import is_empty, sub_tensor_t, tensor_t, to_core_tensor
from .tilers import from_box, outer_first_offset, outer_first_shape
from .values import linearize, offset_t, shape_t, tile_t


class event_t(TransferEvent):
    """An event: it gathers the transfers that it is given to, which `queue` runs.

    >>> get_event().finished
    True
    """


class transaction_t(NamedTuple):
    """What a transfer copies: a tile, the box of it that is inside, and where that lands in which internal buffer.

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


def wait(num_events: int, events: Any) -> None:
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


def import_(internal: Any, external: Any, event: TransferEvent) -> None:
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
    _validate_shapes(internal, external)
    box = Box((0, 0, 0), outer_first_shape(internal.shape))
    copies = import_copies(to_core_tensor(internal, box, box.shape), to_core_tensor(external, box, box.shape))
    _start_transfer("import", internal, box, box, copies, event)


def export(internal: Any, external: Any, event: TransferEvent) -> None:
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
    _validate_shapes(internal, external)
    if external.const:
        raise TransferError(f"cannot export to {type(external).__name__}, which is const; give a mutable tensor")
    box = Box((0, 0, 0), outer_first_shape(internal.shape))
    copies = export_copies(to_core_tensor(internal, box, box.shape), to_core_tensor(external, box, box.shape))
    _start_transfer("export", internal, box, box, copies, event)


def blocking_import(internal: Any, external: Any) -> None:
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


def blocking_export(internal: Any, external: Any) -> None:
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


def import_sub_tensor(internal: Any, external: Any, event: TransferEvent, after: Sequence[Transfer] = ()) -> Transfer:
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
    buffer = to_core_tensor(internal, Box((0, 0, 0), tile.shape), tile.shape)
    copies = _zero_copies(internal, tile, inside)
    if not inside.empty:
        back = -linearize(origin.sub_offset, external.layout)
        outside = to_core_tensor(external, inside, space, back)
        local = inside.relative_to(tile.offset)
        copies += import_copies(buffer.sub(local.offset, local.shape), outside)
    return _start_transfer("import", internal, tile, inside, CopyList(copies), event, after)


def export_clipped(
    internal: Any, external: Any, origin: shape_t, at: offset_t, event: TransferEvent, after: Sequence[Transfer] = ()
) -> Transfer:
    """Start to export the part of a tile that lies inside its origin; used by the schemes."""
    _validate_types(internal, external)
    space = outer_first_shape(origin)
    tile = Box(outer_first_offset(at), outer_first_shape(internal.shape))
    buffer = to_core_tensor(internal, Box((0, 0, 0), tile.shape), tile.shape)
    copies = export_copies(buffer, to_core_tensor(external, tile, space), clip=True)
    return _start_transfer("export", internal, tile, tile.within(space), copies, event, after)


def _zero_copies(internal: Any, tile: Box, inside: Box) -> list[BoundCopy]:
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
    return [fill_copy(to_core_tensor(internal, box, (depth, height, wide)), box, zero) for box, wide in widths]


def _elements_after_last_row(internal: Any, limit: int) -> int:
    """Return how many elements the memory holds after the last row, at most `limit`."""
    end = offset_t(internal.shape.width, internal.shape.height - 1, internal.shape.depth - 1)
    start = internal.base.offset + linearize(end, internal.layout) * internal.elem_size
    return max(0, min(limit, int(internal.base.memory.size - start) // int(internal.elem_size)))


def _validate_types(internal: Any, external: Any) -> None:
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
    kinds = {tensor.dtype for tensor in (internal, external) if tensor.dtype.kind != "V" or tensor.dtype.names}
    if len(kinds) > 1:
        raise TransferError(
            f"internal elements are {internal.dtype}, external ones {external.dtype}; they must be equal"
        )


def _validate_shapes(internal: Any, external: Any) -> None:
    _validate_types(internal, external)
    if internal.shape != external.shape:
        raise TransferError(f"internal {internal.shape} and external {external.shape} differ; they must be equal")


def _start_transfer(
    kind: str,
    internal: Any,
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
