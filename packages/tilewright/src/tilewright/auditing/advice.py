# SPDX-License-Identifier: Apache-2.0
"""What could be better in a run that is right: tensors that stay allocated long after their last use."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._text import count_of, format_bytes
from ..severity import Severity
from .buffer_check import CheckedBuffer
from .finding import AuditFinding
from .run import Call, Run
from .timeline import Timeline

MOST_NOTES = 10  # of a kind, the most expensive first


@dataclass(frozen=True, slots=True)
class IdleTensor:
    """A tensor that stays allocated after its last use, for a number of calls (`idle_calls`) that do not use it.

    >>> from tilewright.memory.config import BufferType
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

        >>> from tilewright.memory.config import BufferType
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
        if buffer.end is None and not buffer.memory.is_l1:
            continue  # weights stay in DRAM for the next run
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
