# SPDX-License-Identifier: Apache-2.0
"""What a report lists as allocated when a call ends, against the buffers of its graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._integers import ceil_div
from ..files import as_integer
from ..severity import Severity
from .buffer_check import CheckedBuffer
from .finding import AuditFinding
from .run import Call


@dataclass(frozen=True, slots=True)
class ListedBuffer:
    """A buffer in the list of a call: its address, memory and bytes per bank, in pages that are not aligned.

    >>> ListedBuffer.of({"address": 1497088, "buffer_type": 1, "max_size_per_bank": 2048}).end
    1499136
    """

    address: int
    memory: int
    size: int | None
    layout: int | None
    device: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ListedBuffer | None:
        """Return the buffer of a `row`, or None if it has no address.

        >>> ListedBuffer.of({}) is None
        True
        """
        address, memory = as_integer(row.get("address")), as_integer(row.get("buffer_type"))
        if address is None or memory is None:
            return None
        size, layout, device = (
            as_integer(row.get(name)) for name in ("max_size_per_bank", "buffer_layout", "device_id")
        )
        return cls(address, memory, size, layout, device)

    @property
    def end(self) -> int:
        """Return the address after the last byte.

        >>> ListedBuffer(1024, 1, 64, 0, 0).end
        1088
        """
        return self.address + (self.size or 0)


def check_call(
    call: Call, rows: Sequence[Mapping[str, Any]], checked: Sequence[CheckedBuffer]
) -> Iterator[AuditFinding]:
    """Yield what is wrong with the `rows` that a report lists as allocated at the end of a `call`, where `checked` are.

    >>> list(check_call(Call(4, "ttnn.add", 0, 9), [], []))
    []
    """
    listed = [buffer for buffer in map(ListedBuffer.of, rows) if buffer is not None]
    live = {(one.buffer.memory.value, one.buffer.address): one for one in checked if one.buffer.is_placed}
    yield from _find_overlaps(call, listed)
    unknown = []
    for buffer in listed:
        one = live.pop((buffer.memory, buffer.address), None)
        if one is not None:
            yield from _check_listed(call, buffer, one)
        elif buffer.address:
            unknown.append(buffer)
    missing = [
        one
        for one in live.values()
        if one.buffer.allocation is not None and one.spec is not None and one.spec.num_pages
    ]
    for buffer in unknown:
        if not missing:
            yield _earlier_note(buffer)
            continue
        yield _list_finding(
            call, "tensor elsewhere", f"a buffer is listed at {buffer.address}, where nothing is allocated then",
            buffer.address, None, buffer.address, "",
        )  # fmt: skip
    for one in missing:
        yield _list_finding(
            call, "buffer missing", f"{one.buffer} is allocated then, but not listed", None, one.buffer.address,
            one.buffer.address, one.label,
        )  # fmt: skip


def _earlier_note(buffer: ListedBuffer) -> AuditFinding:
    """Return the note that a buffer is listed beside all that the graph has: it was there before the capture."""
    return AuditFinding(
        "buffer unknown",
        f"a buffer at {buffer.address} in memory {buffer.memory} is listed that the graph does not allocate",
        Severity.NOTE,
        address=buffer.address,
        recorded=buffer.size,
        reason="it was allocated before the capture, or in a call that is not in it",
        remedy="capture from the start of the program, so that the graph has all allocations",
    )


def _check_listed(call: Call, buffer: ListedBuffer, one: CheckedBuffer) -> Iterator[AuditFinding]:
    expected = unaligned_bytes(one)
    if buffer.size is not None and expected is not None and buffer.size != expected:
        yield _list_finding(
            call, "bytes per bank", f"{one.buffer} is listed with {buffer.size} bytes per bank, the model says"
            f" {expected}", buffer.size, expected, buffer.address, one.label,
        )  # fmt: skip
    layout = None if one.spec is None else one.spec.memory.memory_layout.value
    if one.spec is not None and not one.spec.memory.made_with_nd and buffer.layout not in (None, layout):
        yield _list_finding(
            call, "shard shape", f"{one.buffer} is listed with memory layout {buffer.layout}, the tensor says {layout}"
            f" ({one.spec.memory.memory_layout})", buffer.layout, layout, buffer.address, one.label,
        )  # fmt: skip


def unaligned_bytes(one: CheckedBuffer) -> int | None:
    """Return the bytes per bank of a buffer in pages that are not aligned, as lists and databases count them.

    >>> from tilewright import TensorSpec
    >>> from tilewright.memory.config import BufferType
    >>> from .run import RunBuffer
    >>> spec = TensorSpec((12, 50), "bfloat16", memory="l1", chip="wormhole_n150")
    >>> unaligned_bytes(CheckedBuffer(RunBuffer(8, BufferType.L1, 0), spec))
    100
    """
    spec = one.spec
    return None if spec is None else ceil_div(spec.bytes_per_bank, spec.aligned_page_bytes) * spec.page_bytes


def _find_overlaps(call: Call, listed: Sequence[ListedBuffer]) -> Iterator[AuditFinding]:
    """Yield the buffers of a list that overlap the one before them."""
    before: dict[tuple[bool, int | None], ListedBuffer] = {}
    for buffer in sorted(listed, key=lambda each: (each.address, each.end)):
        if not buffer.address:
            continue
        place = buffer.memory in (1, 3), buffer.device
        first = before.get(place)
        if first is not None and first.end > buffer.address:
            yield _list_finding(
                call, "overlap", f"the buffers listed at {first.address} (to {first.end}) and at {buffer.address} (to"
                f" {buffer.end}) overlap", buffer.address, first.end, buffer.address, "",
            )  # fmt: skip
        if first is None or buffer.end > first.end:
            before[place] = buffer


def _list_finding(
    call: Call, kind: str, message: str, recorded: int | None, expected: int | None, address: int, tensor: str
) -> AuditFinding:
    return AuditFinding(
        kind,
        f"at the end of {call.name} (node {call.number}), {message}",
        Severity.ERROR,
        call.number,
        call.name,
        address,
        tensor,
        recorded,
        expected,
        "the list of a call has the buffers that the graph has allocated and not freed by then",
        "compare the list with the allocations of the graph: one of them was changed",
    )
