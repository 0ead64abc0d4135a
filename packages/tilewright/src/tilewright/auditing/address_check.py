# SPDX-License-Identifier: Apache-2.0
"""The addresses of a run: buffers that overlap, that leave their memory, and that the allocator would put elsewhere."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..errors import MemoryConfigError, OutOfMemory
from ..memory import Allocation, Allocator, BufferType, Chip
from ..severity import Severity
from .buffer_check import CheckedBuffer
from .finding import AuditFinding
from .run import Run

_MOST_NOTES = 10  # of unexpected addresses
_MOST_NEIGHBOURS = 64  # blocks before one that are looked at: only those that overlap already come between


def find_overlaps(run: Run, checked: Sequence[CheckedBuffer], chip: Chip) -> Iterator[AuditFinding]:
    """Yield buffers that are allocated where another one is, or outside their memory, in the order of the run.

    >>> from .run import build_run
    >>> list(find_overlaps(build_run([]), [], Chip.named("wormhole_n150")))
    []
    """
    live: dict[tuple[bool, int], list[tuple[int, int, int]]] = {}  # (address, end, index), by memory and device
    for time, index, begins in _order_events(checked):
        one = checked[index]
        buffer, size = one.buffer, one.bytes_per_bank
        if not buffer.is_placed or not size:
            continue
        blocks = live.setdefault((buffer.memory.is_l1, buffer.device), [])
        block = (buffer.address, buffer.address + size, index)
        if not begins:
            if block in blocks:
                blocks.remove(block)
            continue
        yield from _outside_findings(run, one, chip, time)
        overlapping = [each for each in _find_neighbours(blocks, block) if not _is_apart(one, checked[each[2]])]
        for start, end, other in overlapping[:1]:  # the others are counted
            first = checked[other]
            yield AuditFinding(
                "overlap",
                f"{buffer} ends at {block[1]} and overlaps {first.buffer}, which ends at {end}, by"
                f" {min(end, block[1]) - max(start, block[0])} bytes",
                Severity.ERROR,
                buffer.number,
                run.name_call(time),
                buffer.address,
                one.label,
                buffer.address,
                first.buffer.address,
                f"{first.label or first.buffer} is still allocated, since {run.name_call(first.buffer.start)}",
                "one of the two is overwritten: check who freed the first one, and whether its address is right",
                len(overlapping),
            )
        insort(blocks, block)


def _order_events(checked: Sequence[CheckedBuffer]) -> list[tuple[int, int, bool]]:
    """Return (time, index, whether it is allocated) of all buffers in order; at one time, frees come first."""
    events = [(one.buffer.start, index, True) for index, one in enumerate(checked)]
    events += [(one.buffer.end, index, False) for index, one in enumerate(checked) if one.buffer.end is not None]
    return sorted(events, key=lambda event: (event[0], event[2], event[1]))


def _find_neighbours(blocks: list[tuple[int, int, int]], block: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Return the blocks that a block overlaps: those before it reach into it, those after it begin in it."""
    place = bisect_left(blocks, block)
    overlapping = []
    for earlier in reversed(blocks[max(0, place - _MOST_NEIGHBOURS) : place]):
        if earlier[1] > block[0]:
            overlapping.append(earlier)
            break
    for later in blocks[place : place + _MOST_NEIGHBOURS]:
        if later[0] >= block[1]:
            break
        overlapping.append(later)
    return overlapping


def _is_apart(one: CheckedBuffer, other: CheckedBuffer) -> bool:
    """Return whether two buffers are allocated core by core, on different cores."""
    texts = [node.text("memory_config") for each in (one, other) for node in each.buffer.tensors[:1]]
    if one.spec is None or other.spec is None or not any("per_core_allocation=1" in text for text in texts):
        return False
    return one.spec.used_banks.isdisjoint(other.spec.used_banks)


def _outside_findings(run: Run, one: CheckedBuffer, chip: Chip, time: int) -> Iterator[AuditFinding]:
    buffer, end = one.buffer, one.buffer.address + one.bytes_per_bank
    low, high = chip.base(buffer.memory), chip.end(buffer.memory)
    if low <= buffer.address and end <= high:
        return
    yield AuditFinding(
        "out of memory",
        f"{buffer} ends at {end}, but {buffer.memory} goes from {low} to {high}",
        Severity.ERROR,
        buffer.number,
        run.name_call(time),
        buffer.address,
        one.label,
        f"{buffer.address} to {end}",
        f"{low} to {high}",
        f"these are the addresses for tensors on {chip.name}",
        "check the chip: another release has other bases; pass chip=... if it is not this one",
    )


@dataclass
class Replay:
    """The addresses that the allocator gives, from an empty device: how many were predicted, and how many are right.

    `predicted` has the address of each buffer by its number, also of a run that placed nothing.

    >>> Replay().matching
    0
    """

    compared: int = 0
    matching: int = 0
    predicted: dict[int, int] = field(default_factory=dict)
    findings: list[AuditFinding] = field(default_factory=list)


def replay_addresses(run: Run, checked: Sequence[CheckedBuffer], chip: Chip) -> Replay:
    """Return what the allocator of an empty `chip` does with the allocations of a run, compared with what it did.

    >>> from .run import build_run
    >>> replay_addresses(build_run([]), [], Chip.named("wormhole_n150")).compared
    0
    """
    replay = Replay()
    allocators: dict[int, Allocator] = {}
    blocks: dict[int, Allocation] = {}
    for time, index, begins in _order_events(checked):
        one = checked[index]
        buffer = one.buffer
        allocator = allocators.setdefault(buffer.device, Allocator(chip))
        if not begins:
            if index in blocks:
                allocator.free(blocks.pop(index))
            continue
        size = one.bytes_per_bank
        if not size or (buffer.allocation is None and not buffer.is_placed):
            continue
        if buffer.allocation is None:  # it was there before
            block = _reserve(allocator, buffer.address, size, buffer.memory)
        else:
            block = _replay_allocation(replay, run, one, allocator, time)
        if block is not None:
            blocks[index] = block
    unexpected = [each for each in replay.findings if each.kind == "unexpected address"]
    if len(unexpected) > _MOST_NOTES:  # they have one cause, so that the first speaks for all
        others = [each for each in replay.findings if each.kind != "unexpected address"]
        replay.findings = [replace(unexpected[0], count=len(unexpected)), *others]
    return replay


def _replay_allocation(
    replay: Replay, run: Run, one: CheckedBuffer, allocator: Allocator, time: int
) -> Allocation | None:
    """Allocate a buffer as the allocator would, then where it was, and return the block."""
    buffer, size = one.buffer, one.bytes_per_bank
    try:
        block = allocator.allocate_bytes(size, buffer.memory)
    except (OutOfMemory, MemoryConfigError) as problem:
        if not buffer.is_placed and buffer.memory in (BufferType.DRAM, BufferType.L1):
            replay.findings.append(_full_finding(run, one, time, str(problem)))
        return _reserve(allocator, buffer.address, size, buffer.memory) if buffer.is_placed else None
    replay.predicted[buffer.number] = block.address
    if not buffer.is_placed:
        return block
    replay.compared += 1
    if block.address == buffer.address:
        replay.matching += 1
        return block
    allocator.free(block)
    replay.findings.append(
        AuditFinding(
            "unexpected address",
            f"{buffer} was expected at {block.address}",
            Severity.NOTE,
            buffer.number,
            run.name_call(time),
            buffer.address,
            one.label,
            buffer.address,
            block.address,
            "the allocator takes the first block that fits, so something else was allocated before the capture, or is"
            " not in the report",
            "capture from an empty device to see all that is allocated",
        )
    )
    return _reserve(allocator, buffer.address, size, buffer.memory)


def _full_finding(run: Run, one: CheckedBuffer, time: int, problem: str) -> AuditFinding:
    return AuditFinding(
        "out of memory",
        f"{one.buffer} does not fit: {problem}",
        Severity.ERROR,
        one.buffer.number,
        run.name_call(time),
        None,
        one.label,
        one.bytes_per_bank,
        None,
        "the run placed nothing, so only a real run would have failed",
        "free tensors earlier, or place this one elsewhere",
    )


def _reserve(allocator: Allocator, address: int, size: int, memory: BufferType) -> Allocation | None:
    unit = allocator.chip.allocation_alignment
    try:
        return allocator.reserve(address, max(unit, -(-size // unit) * unit), memory)
    except MemoryConfigError:  # an overlap, which is reported as such
        return None
