# SPDX-License-Identifier: Apache-2.0
"""`NocTrace`: the events of the network-on-chip that a card recorded: who read and wrote how many bytes, in order.

A trace is an array of events, each of one data mover (BRISC or NCRISC) of one core. Places are physical, as in the
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..errors import FileFormatError
from .graph_report import as_integer
from .json_stream import JsonStream
from .source import FilePath, SourceFile, as_source_file

Place: TypeAlias = tuple[int, int]  # column and row of a node of the network
Mover: TypeAlias = tuple[Place, str]  # a core, and one of its data movers
_BARRIER_ENDS = ("_BARRIER_END", "_BARRIER_WITH_TRID")
_WHOLE_BARRIERS = ("FULL_BARRIER", "ATOMIC_BARRIER")
_WITHOUT_BYTES = ("BARRIER", "SET_STATE", "SEMAPHORE", "ATOMIC", "FLUSH")  # in the types of events that move no data


@dataclass(frozen=True, slots=True)
class NocEvent:
    """An event of a trace: its `type` as recorded, the data mover, and where the transfer goes, if anywhere.

    `other` is the node at the other end, `box` the corners of a multicast, and `zone` the phase of a kernel that begins
    or ends.

    >>> event = read_event(
    ...     {
    ...         "proc": "BRISC",
    ...         "noc": "NOC_1",
    ...         "sx": 1,
    ...         "sy": 2,
    ...         "dx": 1,
    ...         "dy": 1,
    ...         "num_bytes": 4096,
    ...         "type": "READ",
    ...         "timestamp": 188,
    ...     }
    ... )
    >>> event.kind, event.core, event.other, event.num_bytes
    ('read', (1, 2), (1, 1), 4096)
    """

    type: str
    core: Place
    mover: str
    noc: str
    time: int
    other: Place | None = None
    box: tuple[Place, Place] | None = None
    num_bytes: int = 0
    zone: str = ""

    @property
    def kind(self) -> str:
        """Return "read", "write", "barrier" (when it ends), "zone" or "other".

        >>> NocEvent("READ_BARRIER_END", (1, 1), "BRISC", "NOC_1", 0).kind
        'barrier'
        """
        if self.zone:
            return "zone"
        if self.type.endswith(_BARRIER_ENDS) or self.type in _WHOLE_BARRIERS:
            return "barrier"
        if self.num_bytes and self.type.startswith("READ"):
            return "read"
        return "write" if self.num_bytes and "WRITE" in self.type else "other"

    @property
    def is_understood(self) -> bool:
        """Whether its type is known, or moves no data.

        >>> NocEvent("TELEPORT", (1, 1), "BRISC", "NOC_1", 0, num_bytes=64).is_understood
        False
        """
        moves_nothing = not self.num_bytes and ("READ" in self.type or "WRITE" in self.type)
        return self.kind != "other" or moves_nothing or any(word in self.type for word in _WITHOUT_BYTES)


@dataclass(frozen=True, slots=True)
class NocRun:
    """Events in a row that are alike: `count` reads, writes or barriers, from the time `first` to `last`.

    >>> NocRun("read", "NOC_0", (1, 1), 2048, 4, 188, 663).total_bytes
    8192
    """

    kind: str
    noc: str
    other: Place | None
    num_bytes: int
    count: int
    first: int
    last: int
    box: tuple[Place, Place] | None = None

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all events together.

        >>> NocRun("barrier", "NOC_0", None, 0, 1, 0, 0).total_bytes
        0
        """
        return self.num_bytes * self.count


@dataclass(frozen=True)
class NocTrace:
    """What each data mover did, in order, as runs of equal events; and when kernels began.

    `skipped` is the number of entries that are no events.

    >>> trace = NocTrace({((1, 1), "NCRISC"): (NocRun("read", "NOC_0", (1, 2), 2048, 3, 100, 400),)})
    >>> trace.traffic
    {((1, 1), (1, 2)): 6144}
    """

    sequences: Mapping[Mover, tuple[NocRun, ...]]
    kernel_start: int | None = None
    skipped: int = 0
    types: Mapping[str, int] = field(default_factory=dict)  # how many events there are of each type
    unused: Mapping[str, int] = field(default_factory=dict)  # of these, the types that are not understood

    @property
    def traffic(self) -> dict[tuple[Place, Place], int]:
        """Return the bytes that each core read, by (reader, source).

        >>> NocTrace({}).traffic
        {}
        """
        return self._sum_bytes("read")

    @property
    def written(self) -> dict[tuple[Place, Place], int]:
        """Return the bytes that each core wrote to one other node, by (writer, target).

        >>> NocTrace({}).written
        {}
        """
        return self._sum_bytes("write")

    def _sum_bytes(self, kind: str) -> dict[tuple[Place, Place], int]:
        total: dict[tuple[Place, Place], int] = {}
        for (core, _), runs in self.sequences.items():
            for run in runs:
                if run.kind == kind and run.other is not None:
                    total[core, run.other] = total.get((core, run.other), 0) + run.total_bytes
        return total

    @property
    def cycles(self) -> int | None:
        """Return the cycles from the first transfer anywhere to the end of the last barrier, if there are both.

        >>> NocTrace(
        ...     {
        ...         ((1, 1), "NCRISC"): (
        ...             NocRun("read", "NOC_0", (1, 2), 2048, 1, 100, 100),
        ...             NocRun("barrier", "NOC_0", None, 0, 1, 900, 900),
        ...         )
        ...     }
        ... ).cycles
        800
        """
        runs = [run for sequence in self.sequences.values() for run in sequence]
        starts = [run.first for run in runs if run.kind in ("read", "write")]
        ends = [run.last for run in runs if run.kind == "barrier"]
        return max(ends) - min(starts) if starts and ends else None

    @property
    def kernel_cycles(self) -> int | None:
        """Return the cycles from the start of the first kernel to the end of the last barrier, if both are known.

        >>> NocTrace({}).kernel_cycles is None
        True
        """
        ends = [run.last for sequence in self.sequences.values() for run in sequence if run.kind == "barrier"]
        return max(ends) - self.kernel_start if ends and self.kernel_start is not None else None


def read_noc_trace(path: FilePath | SourceFile) -> NocTrace:
    """Return what the trace at `path` says, in memory for runs of equal events, not for each of them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> read = '{"proc": "NCRISC", "noc": "NOC_0", "sx": 1, "sy": 1, "dx": 2, "dy": 1, "num_bytes": 64, "type": "READ"'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     _ = path.write_text(f'[{read}, "timestamp": 5}}, {read}, "timestamp": 9}}]')
    ...     [run] = read_noc_trace(path).sequences[(1, 1), "NCRISC"]
    >>> run.count, run.first, run.last
    (2, 5, 9)
    """
    file = as_source_file(path)
    sequences: dict[Mover, list[NocRun]] = {}
    types: dict[str, int] = {}
    unused: dict[str, int] = {}
    starts: list[int] = []
    skipped = 0
    for event in iterate_events(file):
        if event is None:
            skipped += 1
            continue
        name = event.type or event.zone
        types[name] = types.get(name, 0) + 1
        if not event.is_understood:
            unused[name] = unused.get(name, 0) + 1
        if event.kind == "zone":
            if event.zone.endswith("begin"):
                starts = [min([event.time, *starts])]
        elif event.kind != "other":
            _add_event(sequences.setdefault((event.core, event.mover), []), event)
    if skipped and not types:
        raise FileFormatError(f"{file.path} is not a trace of the NoC: none of its {skipped} entries is an event")
    runs = {mover: tuple(sequence) for mover, sequence in sequences.items()}
    return NocTrace(runs, starts[0] if starts else None, skipped, types, unused)


def iterate_events(path: FilePath | SourceFile) -> Iterator[NocEvent | None]:
    """Yield the events of the trace at `path` one by one, None for an entry that is no event.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.json")
    ...     _ = path.write_text('[{"proc": "BRISC"}]')
    ...     list(iterate_events(path))
    [None]
    """
    file = as_source_file(path)
    stream = JsonStream(file, str(file.path))
    if stream.kind() != "array":
        raise FileFormatError(f"{file.path} is not a trace of the NoC: expected an array at byte {stream.byte}")
    for _ in stream.walk_array():
        yield read_event(stream.read_value())
    if not stream.at_end:
        raise FileFormatError(f"{file.path} is not JSON: more follows after its end, at byte {stream.byte}")


def read_event(data: Any) -> NocEvent | None:
    """Return the event that an entry of a trace describes, or None if it is none.

    >>> read_event({"proc": "BRISC", "zone": "BRISC-KERNEL", "zone_phase": "begin", "sx": 1, "sy": 1, "timestamp": 7})
    NocEvent(type='', core=(1, 1), mover='BRISC', noc='', time=7, other=None, box=None, num_bytes=0, \
zone='BRISC-KERNEL begin')
    """
    if not isinstance(data, dict):
        return None
    core, time, mover = _read_place(data, "sx", "sy"), as_integer(data.get("timestamp")), data.get("proc")
    if core is None or time is None or not isinstance(mover, str):
        return None
    zone, kind, noc = data.get("zone"), data.get("type"), data.get("noc")
    if isinstance(zone, str):
        return NocEvent("", core, mover, "", time, zone=f"{zone} {data.get('zone_phase', '')}".strip())
    if not isinstance(kind, str):
        return None
    low = _read_place(data, "mcast_start_x", "mcast_start_y")
    high = _read_place(data, "mcast_end_x", "mcast_end_y")
    box = None if low is None or high is None else (low, high)
    size = as_integer(data.get("num_bytes")) or 0
    other = _read_place(data, "dx", "dy")
    return NocEvent(kind, core, mover, noc if isinstance(noc, str) else "", time, other, box, size)


def _read_place(data: dict[str, Any], across: str, down: str) -> Place | None:
    x, y = as_integer(data.get(across)), as_integer(data.get(down))  # -1 is no place
    return None if x is None or y is None else (x, y)


def _add_event(runs: list[NocRun], event: NocEvent) -> None:
    """Add an event to the runs of its data mover, to the last one if it is alike."""
    size = 0 if event.kind == "barrier" else event.num_bytes
    run = NocRun(event.kind, event.noc, event.other, size, 1, event.time, event.time, event.box)
    if runs:
        last = runs[-1]
        if replace(last, count=1, first=run.first, last=run.last) == run:
            runs[-1] = replace(last, count=last.count + 1, last=max(last.last, run.last))
            return
    runs.append(run)
