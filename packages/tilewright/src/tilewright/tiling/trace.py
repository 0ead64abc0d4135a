# SPDX-License-Identifier: Apache-2.0
"""What a run did: `PipelineReport` with its totals, and `Trace` with every action, which Perfetto can show."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .._files import as_path, write_file
from ..display import Shown
from .transfers import Transfer


@dataclass(frozen=True)
class PipelineReport:
    """What a run did: tiles, seconds, bytes read and written by transfers, and bytes of buffers.

    `read_amplification` is what the sources delivered, with halos and whole chunks, over what they hold.

    >>> PipelineReport(tiles=4, seconds=0.5, bytes_in=10**9, bytes_out=10**9, buffer_bytes=1 << 20).bytes_per_second
    4000000000.0
    """

    tiles: int
    seconds: float
    bytes_in: int
    bytes_out: int
    buffer_bytes: int
    read_amplification: float = 1.0

    @property
    def bytes_per_second(self) -> float:
        """Return the bandwidth of the transfers, both directions together.

        >>> PipelineReport(1, 2.0, 3, 1, 0).bytes_per_second
        2.0
        """
        return (self.bytes_in + self.bytes_out) / self.seconds if self.seconds else 0.0


class TraceSpan(NamedTuple):
    """One action of a run: its kind, tile and operand, and when it began and ended, in nanoseconds.

    >>> TraceSpan("compute", 3, 0, 1000, 4000).duration
    3000
    """

    kind: str
    tile: int
    operand: int
    began: int
    ended: int

    @property
    def duration(self) -> int:
        """Return the duration in nanoseconds.

        >>> TraceSpan("wait", 3, 0, 5, 7).duration
        2
        """
        return self.ended - self.began


@dataclass
class Trace(Shown):
    """The actions of a run, recorded as they happen: pass one to a run.

    >>> trace = Trace([TraceSpan("import", 0, 0, 0, 10), TraceSpan("compute", 0, 0, 4, 20)])
    >>> trace.hidden
    0.6
    """

    spans: list[TraceSpan] = field(default_factory=list)

    def add_transfer(self, transfer: Transfer) -> None:
        """Record a finished `transfer`.

        >>> trace, transfer = Trace(), Transfer("import", 2, lambda: None)
        >>> transfer.run()
        >>> trace.add_transfer(transfer)
        >>> trace.spans[0].kind, trace.spans[0].tile
        ('import', 2)
        """
        self.spans.append(TraceSpan(transfer.kind, transfer.tile, transfer.operand, transfer.began, transfer.ended))

    def seconds(self, *kinds: str) -> float:
        """Return the seconds spent in all actions of some `kinds`.

        >>> Trace([TraceSpan("import", 0, 0, 0, 10**9), TraceSpan("compute", 0, 0, 0, 5)]).seconds("import")
        1.0
        """
        return sum([span.duration for span in self.spans if span.kind in kinds]) / 1e9

    @property
    def wall(self) -> float:
        """Return the seconds from the start of the first action to the end of the last.

        >>> Trace([TraceSpan("import", 0, 0, 0, 10**9), TraceSpan("compute", 0, 0, 10**9, 3 * 10**9)]).wall
        3.0
        """
        if not self.spans:
            return 0.0
        return (max(span.ended for span in self.spans) - min(span.began for span in self.spans)) / 1e9

    @property
    def hidden(self) -> float:
        """Return the fraction of the transfer time that overlaps a compute, from 0 to 1.

        >>> Trace([TraceSpan("import", 0, 0, 0, 10), TraceSpan("compute", 0, 0, 20, 30)]).hidden
        0.0
        """
        computing = sorted([(span.began, span.ended) for span in self.spans if span.kind == "compute"])
        total = hidden = 0
        for span in self.spans:
            if span.kind in ("import", "export"):
                total += span.duration
                hidden += _overlap_with(span, computing)
        return hidden / total if total else 0.0

    def summary(self) -> dict[str, float]:
        """Return the seconds by kind, the wall time and the hidden fraction of the transfers.

        >>> sorted(Trace().summary())
        ['compute', 'export', 'hidden', 'import', 'wait', 'wall']
        """
        seconds = {kind: self.seconds(kind) for kind in ("import", "export", "compute", "wait")}
        return seconds | {"wall": self.wall, "hidden": self.hidden}

    def write(self, path: str | Path) -> Path:
        """Write a trace file to `path`, for Perfetto (ui.perfetto.dev) or chrome://tracing, and return its path.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Trace([TraceSpan("compute", 0, 0, 0, 2000)]).write(Path(folder, "run.json"))
        ...     [event["name"] for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
        ['compute 0']
        """
        path = as_path(path)
        write_file(path, json.dumps({"traceEvents": self._trace_events(), "displayTimeUnit": "ns"}))
        return path

    def _trace_events(self) -> list[dict[str, Any]]:
        rows = {"import": 1, "export": 2, "compute": 3, "wait": 3}
        names = {1: "imports", 2: "exports", 3: "compute"}
        start = min([span.began for span in self.spans], default=0)
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": row, "args": {"name": name}}
            for row, name in names.items()
        ]
        events += [
            {
                "ph": "X",
                "name": f"{span.kind} {span.tile}",
                "cat": span.kind,
                "pid": 1,
                "tid": rows[span.kind],
                "ts": (span.began - start) / 1e3,
                "dur": span.duration / 1e3,
                "args": {"tile": span.tile, "operand": span.operand},
            }
            for span in self.spans
        ]
        return events


def _overlap_with(span: TraceSpan, computing: list[tuple[int, int]]) -> int:
    """Return the nanoseconds of a span inside the computing intervals, which are sorted and do not overlap."""
    total = 0
    k = max(0, bisect_left(computing, (span.began, 0)) - 1)
    while k < len(computing) and computing[k][0] < span.ended:
        total += max(0, min(span.ended, computing[k][1]) - max(span.began, computing[k][0]))
        k += 1
    return total
