# SPDX-License-Identifier: Apache-2.0
"""Schedules: every import, export, wait and compute of a pipeline, as data, before anything runs.

A scheme lists phases for a number of tiles, and for each phase its actions in order. An import or export starts a
transfer; `after` names transfers that must be over before it may touch its buffer. A wait ends transfers. Whatever runs
the actions in order, and honours `after`, gets the right result.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from .._files import as_path, write_file
from ..display import Drawable
from ..errors import LayoutError
from .transfers import Transfer

TransferKind: TypeAlias = Literal["import", "export"]


class TransferKey(NamedTuple):
    """Identifies a transfer: import or export, the tile, and the operand.

    >>> TransferKey("import", 3)
    TransferKey(kind='import', tile=3, operand=0)
    """

    kind: TransferKind
    tile: int
    operand: int = 0


class Import(NamedTuple):
    """Start to import a tile of an input into a buffer.

    >>> print(Import(3, "b1", 0, (TransferKey("export", 1),)))
    import 3 -> b1 after export 1
    """

    tile: int
    buffer: str
    operand: int = 0
    after: tuple[TransferKey, ...] = ()

    def __str__(self) -> str:
        return f"import {self.tile}{_describe_operand(self.operand)} -> {self.buffer}{_describe_order(self.after)}"


class Export(NamedTuple):
    """Start to export a tile of an output from a buffer.

    >>> print(Export(3, "out1"))
    export 3 <- out1
    """

    tile: int
    buffer: str
    operand: int = 0
    after: tuple[TransferKey, ...] = ()

    def __str__(self) -> str:
        return f"export {self.tile}{_describe_operand(self.operand)} <- {self.buffer}{_describe_order(self.after)}"


class Wait(NamedTuple):
    """Wait for transfers; `events` is the number of events that the wait names.

    >>> print(Wait((TransferKey("import", 3), TransferKey("export", 2))))
    wait[import 3, export 2]
    """

    retires: tuple[TransferKey, ...]
    events: int = 1

    def __str__(self) -> str:
        return f"wait[{', '.join([_describe_key(key) for key in self.retires])}]"


class Compute(NamedTuple):
    """Compute a tile from the buffers of the inputs into the buffers of the outputs.

    >>> print(Compute(3, "in1", "out1"))
    compute 3 (in1 -> out1)
    """

    tile: int
    read_buffer: str
    write_buffer: str

    def __str__(self) -> str:
        return f"compute {self.tile} ({self.read_buffer} -> {self.write_buffer})"


Action: TypeAlias = Import | Export | Wait | Compute


class Phase(NamedTuple):
    """The actions of a start, a step or a finish, in order.

    >>> print(Phase("step", 0, (Wait((TransferKey("import", 0),)), Compute(0, "in", "out"))))
    step 0: wait[import 0]; compute 0 (in -> out)
    """

    name: str
    step: int | None
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        title = self.name if self.step is None else f"{self.name} {self.step}"
        return f"{title}: {'; '.join(map(str, self.actions)) or '(nothing)'}"


def _describe_key(key: TransferKey) -> str:
    return f"{key.kind} {key.tile}{_describe_operand(key.operand)}"


def _describe_operand(operand: int) -> str:
    return f" of operand {operand}" if operand else ""


def _describe_order(keys: tuple[TransferKey, ...]) -> str:
    return f" after {', '.join(map(_describe_key, keys))}" if keys else ""


@dataclass(frozen=True, slots=True)
class Schedule(Drawable):
    """The phases of a scheme for a number of tiles, inputs and outputs, generated on demand.

    Every scheme starts an export as soon as its tile is computed.

    - `duplex`: 2 buffers. Import i + 1 and export i run together; compute runs alone.
    - `double`: 4 buffers, the same as `buffered` with depth 2.
    - `buffered`: depth input and depth output buffers; depth - 1 imports and depth - 1 exports run beside a compute.
    - `simplex`: 3 buffers that are input and output in turn. Import i + 2 uses the buffer of export i, and starts when
      that export is over.
    - `direct`: depth buffers and no compute; a tile is exported from the buffer it was imported into.

    >>> for phase in Schedule("duplex", 2):
    ...     print(phase)
    start: import 0 -> in
    step 0: wait[import 0]; compute 0 (in -> out); export 0 <- out; import 1 -> in
    step 1: wait[export 0, import 1]; compute 1 (in -> out); export 1 <- out
    finish: wait[export 1]
    """

    scheme: str
    tiles: int
    inputs: int = 1
    outputs: int = 1
    depth: int = 2

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise LayoutError(f"unknown scheme {self.scheme!r}; choose one of {', '.join(SCHEMES)}")
        if self.depth < 1 or self.tiles < 0:
            raise LayoutError(
                f"expected a depth of at least 1 and at least 0 tiles, got depth {self.depth} and {self.tiles} tiles"
            )
        if self.scheme == "double" and self.depth != 2:
            raise LayoutError(f"scheme 'double' has depth 2, got {self.depth}; use scheme='buffered' for other depths")

    def __iter__(self) -> Iterator[Phase]:
        return SCHEMES[self.scheme](self)

    def actions(self) -> Iterator[Action]:
        """Yield the actions of all phases, in order.

        >>> [type(action).__name__ for action in Schedule("double", 1).actions()]
        ['Import', 'Wait', 'Compute', 'Export', 'Wait']
        """
        for phase in self:
            yield from phase.actions

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers; each operand has a buffer of every name it uses.

        >>> Schedule("buffered", 9, depth=3).buffers
        ('in0', 'in1', 'in2', 'out0', 'out1', 'out2')
        """
        if self.scheme == "simplex":
            return ("b0", "b1", "b2")
        if self.scheme == "duplex":
            return ("in", "out")
        if self.scheme == "direct":
            return tuple([f"b{k}" for k in range(self.depth)])
        return tuple([f"{side}{k}" for side in ("in", "out") for k in range(self.depth)])

    def import_actions(self, tile: int, buffer: str, after: tuple[TransferKey, ...] = ()) -> tuple[Action, ...]:
        """Return the imports of `tile` into `buffer`, one per input; each follows the `after` transfer of its operand.

        >>> Schedule("duplex", 2).import_actions(1, "in")
        (Import(tile=1, buffer='in', operand=0, after=()),)
        """
        if tile >= self.tiles:
            return ()
        return tuple([Import(tile, buffer, k, after[k : k + 1]) for k in range(self.inputs)])

    def export_actions(self, tile: int, buffer: str) -> tuple[Action, ...]:
        """Return the exports of `tile` from `buffer`, one per output.

        >>> Schedule("duplex", 2).export_actions(1, "out")
        (Export(tile=1, buffer='out', operand=0, after=()),)
        """
        return tuple([Export(tile, buffer, operand) for operand in range(self.outputs)])

    def transfer_keys(self, kind: TransferKind, tile: int) -> tuple[TransferKey, ...]:
        """Return the transfers of a `kind` of `tile`, one per operand; none for a tile that does not exist.

        >>> Schedule("duplex", 2, inputs=2).transfer_keys("import", 0)
        (TransferKey(kind='import', tile=0, operand=0), TransferKey(kind='import', tile=0, operand=1))
        """
        if not 0 <= tile < self.tiles:
            return ()
        count = self.inputs if kind == "import" else self.outputs
        return tuple([TransferKey(kind, tile, operand) for operand in range(count)])


def _wait_for(keys: tuple[TransferKey, ...]) -> tuple[Action, ...]:
    return (Wait(keys),) if keys else ()


def _final_wait(schedule: Schedule, count: int) -> tuple[Action, ...]:
    """Return the wait for the exports of the last tiles."""
    return _wait_for(
        tuple(
            [key for i in range(schedule.tiles - count, schedule.tiles) for key in schedule.transfer_keys("export", i)]
        )
    )


def _duplex_phases(schedule: Schedule) -> Iterator[Phase]:
    yield Phase("start", None, schedule.import_actions(0, "in"))
    for i in range(schedule.tiles):
        ready = _wait_for(schedule.transfer_keys("export", i - 1) + schedule.transfer_keys("import", i))
        follow = schedule.export_actions(i, "out") + schedule.import_actions(i + 1, "in")
        yield Phase("step", i, (*ready, Compute(i, "in", "out"), *follow))
    yield Phase("finish", None, _final_wait(schedule, 1))


def _buffered_phases(schedule: Schedule) -> Iterator[Phase]:
    depth = schedule.depth
    ahead = depth - 1
    into, out = schedule.buffers[:depth], schedule.buffers[depth:]
    yield Phase("start", None, tuple([action for i in range(ahead) for action in schedule.import_actions(i, into[i])]))
    for i in range(schedule.tiles):
        slot = i % depth
        # the buffer of tile i - 1 is free, so its successor can start before the wait
        arriving = schedule.import_actions(i + ahead, into[slot - 1])
        ready = _wait_for(schedule.transfer_keys("export", i - depth) + schedule.transfer_keys("import", i))
        yield Phase(
            "step", i, (*arriving, *ready, Compute(i, into[slot], out[slot]), *schedule.export_actions(i, out[slot]))
        )
    yield Phase("finish", None, _final_wait(schedule, depth))


def _simplex_phases(schedule: Schedule) -> Iterator[Phase]:
    buffers = schedule.buffers
    yield Phase("start", None, schedule.import_actions(0, "b0") + schedule.import_actions(1, "b1"))
    for i in range(schedule.tiles):
        turning = buffers[(i + 2) % 3]
        # import i followed export i - 2 into its buffer: both are over together
        ready = _wait_for(schedule.transfer_keys("export", i - 2) + schedule.transfer_keys("import", i))
        leaving = schedule.export_actions(i, turning)
        follow = leaving + schedule.import_actions(i + 2, turning, schedule.transfer_keys("export", i))
        yield Phase("step", i, (*ready, Compute(i, buffers[i % 3], turning), *follow))
    yield Phase("finish", None, _final_wait(schedule, 2))


def _direct_phases(schedule: Schedule) -> Iterator[Phase]:
    depth = schedule.depth
    buffers = schedule.buffers
    yield Phase(
        "start", None, tuple([action for i in range(depth - 1) for action in schedule.import_actions(i, buffers[i])])
    )
    for i in range(schedule.tiles):
        # every transfer follows the one that has its buffer, so waits only keep the queue short
        ahead = i + depth - 1
        last = schedule.transfer_keys("export", ahead - depth)
        arriving = schedule.import_actions(ahead, buffers[ahead % depth], last)
        leaving = tuple(
            [Export(i, buffers[i % depth], k, (TransferKey("import", i, k),)) for k in range(schedule.outputs)]
        )
        over = _wait_for(
            schedule.transfer_keys("import", i - depth + 1) + schedule.transfer_keys("export", i - depth + 1)
        )
        yield Phase("step", i, (*arriving, *leaving, *over))
    rest = range(max(0, schedule.tiles - depth + 1), schedule.tiles)
    keys = [key for i in rest for key in schedule.transfer_keys("import", i) + schedule.transfer_keys("export", i)]
    yield Phase("finish", None, _wait_for(tuple(keys)))


def buffer_bytes(scheme: str, depth: int, read: Sequence[int], written: Sequence[int]) -> int:
    """Return the bytes of all buffers of a scheme, from the tile bytes of each input (`read`) and output (`written`).

    >>> buffer_bytes("double", 2, [64], [64]), buffer_bytes("simplex", 2, [64], [128])
    (256, 384)
    """
    if scheme in ("simplex", "direct"):
        return (3 if scheme == "simplex" else depth) * sum(shared_buffer_sizes(read, written))
    return (sum(read) + sum(written)) * {"duplex": 1, "double": 2}.get(scheme, depth)


def shared_buffer_sizes(read: Sequence[int], written: Sequence[int]) -> list[int]:
    """Return the bytes of buffers that serve an input and an output in turn.

    >>> shared_buffer_sizes([64, 32], [128])
    [128, 32]
    """
    count = max(len(read), len(written))
    return [max((*read[k : k + 1], *written[k : k + 1])) for k in range(count)]


SCHEMES: dict[str, Callable[[Schedule], Iterator[Phase]]] = {
    "duplex": _duplex_phases,
    "double": _buffered_phases,
    "buffered": _buffered_phases,
    "simplex": _simplex_phases,
    "direct": _direct_phases,
}


# The record of a run: `PipelineReport` with its totals, and `Trace` with every action, which Perfetto can show.


@dataclass(frozen=True)
class PipelineReport:
    """The record of a run: tiles, seconds, bytes read and written by transfers, and bytes of buffers.

    `read_amplification` is the bytes that the sources delivered, with halos and whole chunks, over the bytes they hold.

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
        """The bandwidth of the transfers, both directions together.

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
        """The duration in nanoseconds.

        >>> TraceSpan("wait", 3, 0, 5, 7).duration
        2
        """
        return self.ended - self.began


@dataclass
class Trace(Drawable):
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
        """The seconds from the start of the first action to the end of the last.

        >>> Trace([TraceSpan("import", 0, 0, 0, 10**9), TraceSpan("compute", 0, 0, 10**9, 3 * 10**9)]).wall
        3.0
        """
        if not self.spans:
            return 0.0
        return (max(span.ended for span in self.spans) - min(span.began for span in self.spans)) / 1e9

    @property
    def hidden(self) -> float:
        """The fraction of the transfer time that overlaps a compute, from 0 to 1.

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
