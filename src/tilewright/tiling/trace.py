# SPDX-License-Identifier: Apache-2.0
"""Traces: when each action of a run began and ended, how much transfer time was hidden, and a file for Perfetto."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import write_file
from ..showing import Shown
from .transfers import Transfer


class Span(NamedTuple):
    """One action of a run: what it was, for which tile and operand, and when, in nanoseconds.

    >>> Span("compute", 3, 0, 1000, 4000).duration
    3000
    """

    kind: str
    tile: int
    operand: int
    began: int
    ended: int

    @property
    def duration(self) -> int:
        """Return the nanoseconds it took.

        >>> Span("wait", 3, 0, 5, 7).duration
        2
        """
        return self.ended - self.began


@dataclass
class Trace(Shown):
    """The actions of a run as they happened; give one to a run and it is filled.

    >>> trace = Trace([Span("import", 0, 0, 0, 10), Span("compute", 0, 0, 4, 20)])
    >>> trace.hidden
    0.6
    """

    spans: list[Span] = field(default_factory=list)

    def add_transfer(self, transfer: Transfer) -> None:
        """Record a transfer that is over.

        >>> trace, transfer = Trace(), Transfer("import", 2, lambda: None)
        >>> transfer.run()
        >>> trace.add_transfer(transfer)
        >>> trace.spans[0].kind, trace.spans[0].tile
        ('import', 2)
        """
        self.spans.append(Span(transfer.kind, transfer.tile, transfer.operand, transfer.began, transfer.ended))

    def seconds(self, *kinds: str) -> float:
        """Return the time spent in actions of some kinds, all of them together.

        >>> Trace([Span("import", 0, 0, 0, 10**9), Span("compute", 0, 0, 0, 5)]).seconds("import")
        1.0
        """
        return sum([span.duration for span in self.spans if span.kind in kinds]) / 1e9

    @property
    def wall(self) -> float:
        """Return the seconds from the first beginning to the last end.

        >>> Trace([Span("import", 0, 0, 0, 10**9), Span("compute", 0, 0, 10**9, 3 * 10**9)]).wall
        3.0
        """
        if not self.spans:
            return 0.0
        return (max(span.ended for span in self.spans) - min(span.began for span in self.spans)) / 1e9

    @property
    def hidden(self) -> float:
        """Return the part of the transfer time that passed during a compute, from 0 to 1.

        >>> Trace([Span("import", 0, 0, 0, 10), Span("compute", 0, 0, 20, 30)]).hidden
        0.0
        """
        computing = sorted([(span.began, span.ended) for span in self.spans if span.kind == "compute"])
        total = hidden = 0
        for span in self.spans:
            if span.kind in ("import", "export"):
                total += span.duration
                hidden += _shared(span, computing)
        return hidden / total if total else 0.0

    def summary(self) -> dict[str, float]:
        """Return the seconds by kind, the wall time and the hidden part of the transfers.

        >>> sorted(Trace().summary())
        ['compute', 'export', 'hidden', 'import', 'wait', 'wall']
        """
        found = {kind: self.seconds(kind) for kind in ("import", "export", "compute", "wait")}
        return found | {"wall": self.wall, "hidden": self.hidden}

    def write(self, path: str | Path) -> Path:
        """Return the path of a trace file, written for Perfetto (ui.perfetto.dev) or chrome://tracing.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Trace([Span("compute", 0, 0, 0, 2000)]).write(Path(folder, "run.json"))
        ...     [event["name"] for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
        ['compute 0']
        """
        path = Path(path)
        write_file(path, json.dumps({"traceEvents": self._events(), "displayTimeUnit": "ns"}))
        return path

    def _events(self) -> list[dict[str, Any]]:
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


def _shared(span: Span, computing: list[tuple[int, int]]) -> int:
    """Return the nanoseconds of a span that lie in computing intervals, which are sorted and do not overlap."""
    total = 0
    k = max(0, bisect_left(computing, (span.began, 0)) - 1)
    while k < len(computing) and computing[k][0] < span.ended:
        total += max(0, min(span.ended, computing[k][1]) - max(span.began, computing[k][0]))
        k += 1
    return total
