# SPDX-License-Identifier: Apache-2.0
"""What could be better in a run that is right: tensors that are freed late, and operations that only move data."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..byte_sizes import format_bytes
from ..files.graph_report import ReportNode
from ..memory import TensorSpec
from ..tables import count_of
from .buffer_check import CheckedBuffer
from .finding import AuditFinding, Severity
from .run import Call, Run
from .tensor_specs import SpecReader, SpecText
from .timeline import Timeline

MOST_NOTES = 10  # of a kind, the most expensive first
_RESHARDING = re.compile(r"InterleavedToSharded|ShardedToInterleaved|Reshard")


@dataclass(frozen=True, slots=True)
class IdleTensor:
    """A tensor that stays allocated after its last use, for a number of calls (`idle_calls`) that do not use it.

    >>> from tilewright.memory.memory_config import BufferType
    >>> from .run import RunBuffer
    >>> IdleTensor(CheckedBuffer(RunBuffer(8, BufferType.L1, 0)), None, 3).idle_calls
    3
    """

    checked: CheckedBuffer
    last_call: Call | None
    idle_calls: int

    @property
    def cost(self) -> int:
        """Return bytes per bank times calls.

        >>> from tilewright.memory.memory_config import BufferType
        >>> from .run import RunBuffer
        >>> IdleTensor(CheckedBuffer(RunBuffer(8, BufferType.L1, 0)), None, 3).cost
        0
        """
        return self.checked.bytes_per_bank * self.idle_calls


def find_idle_tensors(run: Run, checked: Sequence[CheckedBuffer]) -> list[IdleTensor]:
    """Return the tensors that stay allocated after their last use, the most expensive first, those in L1 before others.

    >>> from .run import build_run
    >>> find_idle_tensors(build_run([]), [])
    []
    """
    working = [call for call in run.calls if not call.frees]
    starts, ends = [call.start for call in working], [call.end for call in working]
    idle = []
    for one in checked:
        buffer = one.buffer
        if buffer.last_use is None or buffer.allocation is None:
            continue
        last = run.call_at(buffer.last_use)
        after = buffer.last_use if last is None else last.end
        end = len(run.nodes) if buffer.end is None else buffer.end
        calls = bisect_right(ends, end) - bisect_right(starts, after)  # calls follow one another
        if calls > 0:
            idle.append(IdleTensor(one, last, calls))
    return sorted(idle, key=lambda each: (not each.checked.buffer.memory.is_l1, -each.cost, each.checked.buffer.number))


def note_idle_tensors(run: Run, idle: Sequence[IdleTensor], timeline: Timeline) -> Iterator[AuditFinding]:
    """Yield a note for each of the most expensive tensors that are freed late, and what the peak would be without.

    >>> from .run import build_run
    >>> from .timeline import Peaks
    >>> list(note_idle_tensors(build_run([]), [], Timeline((), Peaks(), None, (), {})))
    []
    """
    for each in idle[:MOST_NOTES]:
        buffer = each.checked.buffer
        freed = "is not freed" if buffer.end is None else f"is freed in {run.name_call(buffer.end)}"
        after = "" if each.last_call is None else f" after {each.last_call.name} (node {each.last_call.number})"
        yield AuditFinding(
            "late free",
            f"{buffer} ({each.checked.label}) was last used{after} and {freed},"
            f" {count_of(each.idle_calls, 'call')} later",
            Severity.NOTE,
            buffer.number,
            run.name_call(buffer.start),
            buffer.address or None,
            each.checked.label,
            each.idle_calls,
            0,
            f"it holds {format_bytes(each.checked.bytes_per_bank)} of every bank of {buffer.memory} meanwhile",
            f"call ttnn.deallocate(tensor){after}",
        )
    idle_bytes = sum([share.bytes_per_core for share in timeline.shares if share.idle])
    if idle_bytes and timeline.peak is not None:
        yield AuditFinding(
            "late free",
            f"at the peak of {timeline.peak.total} bytes per core, in {timeline.peak.call}, {idle_bytes} are of tensors"
            " that are not used any more",
            Severity.NOTE,
            timeline.peak.node,
            timeline.peak.call,
            None,
            "",
            timeline.peak.total,
            timeline.peak.total - idle_bytes,
            "they were used for the last time in earlier calls",
            f"free them after their last use, for a peak of {timeline.peak.total - idle_bytes} bytes at this place",
        )


@dataclass(frozen=True, slots=True)
class SeenReshard:
    """An operation of a run that moved a tensor from one placement to another.

    `source` and `target` are specs, from which `tilewright.traffic` tells who sends what to whom.

    >>> SeenReshard(13, "ttnn.to_memory_config", "ReshardDeviceOperation", None, None, 2048).bytes_moved
    2048
    """

    node: int
    call: str
    operation: str
    source: TensorSpec | None
    target: TensorSpec | None
    bytes_moved: int

    def __str__(self) -> str:
        source = "?" if self.source is None else str(self.source.memory)
        target = "?" if self.target is None else str(self.target.memory)
        return f"{self.operation} in {self.call}: {format_bytes(self.bytes_moved)} from {source} to {target}"


def find_reshards(run: Run, reader: SpecReader) -> list[SeenReshard]:
    """Return the operations that only moved data, those that moved the most bytes first.

    >>> from tilewright.memory import Chip
    >>> from .run import build_run
    >>> find_reshards(build_run([]), SpecReader(Chip.named("wormhole_n150")))
    []
    """
    by_number = {node.number: node for node in run.nodes}

    def read(numbers: Sequence[int]) -> TensorSpec | None:
        for number in numbers:
            node = by_number.get(number)
            if node is not None and node.kind == "tensor" and node.text("memory_config"):
                return reader.read(SpecText.of(node.params)).spec
        return None

    seen, open_calls = [], []
    for time, node in enumerate(run.nodes):
        if node.kind == "function_start":
            open_calls.append((node, time))
        elif node.kind == "function_end" and open_calls:
            start, began = open_calls.pop()
            if open_calls and _RESHARDING.search(start.text("name")):
                source, target = read(start.inputs), read(_outputs(node, by_number))
                moved = 0 if target is None else target.nbytes
                seen.append(SeenReshard(start.number, run.name_call(began), start.text("name"), source, target, moved))
    return sorted(seen, key=lambda each: (-each.bytes_moved, each.node))


def _outputs(end: ReportNode, by_number: dict[int, ReportNode]) -> list[int]:
    """Return the nodes of the tensors that a call returned: those before the next call among its connections."""
    return [number for number in end.connections if by_number.get(number, end).kind == "tensor"]


def note_reshards(reshards: Sequence[SeenReshard]) -> Iterator[AuditFinding]:
    """Yield a note for each of the operations that moved the most bytes.

    >>> list(note_reshards([]))
    []
    """
    total = sum([each.bytes_moved for each in reshards])
    for each in reshards[:MOST_NOTES]:
        yield AuditFinding(
            "reshard",
            str(each),
            Severity.NOTE,
            each.node,
            each.call,
            recorded=each.bytes_moved,
            expected=0,
            reason=f"{count_of(len(reshards), 'operation')} of the run only moved data, {format_bytes(total)} in all",
            remedy="let the operation before it write this placement, or the one after it read the other",
        )
