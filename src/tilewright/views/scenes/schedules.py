# SPDX-License-Identifier: Apache-2.0
"""The scenes of a pipeline: a timeline of imports, computes and exports, from a schedule or from a trace."""

from __future__ import annotations

from ...errors import LayoutError
from ...tiling import Pipeline, Schedule, Trace
from ...tiling.schedule import Compute, Export, Import, TransferKey, Wait
from ..scene import Fact, Scene, Span, Tracks

_UNITS = ("import", "compute", "export")
_MOST = 12  # tiles of a schedule that are drawn without being asked


def schedule_scene(
    schedule: Schedule | Pipeline,
    *,
    times: tuple[float, float, float] = (1, 1, 1),
    tiles: int = _MOST,
) -> Scene:
    """Return the timeline of a schedule if an import, a compute and an export take these `times`.

    One import and one export run at a time, in order. Only the first `tiles` are drawn.

    >>> scene = schedule_scene(Schedule("duplex", 4))
    >>> [(span.label, span.start) for span in scene.panels[0].spans if span.track == 1]
    [('0', 1), ('1', 3), ('2', 5), ('3', 7)]
    """
    plan = schedule.schedule() if isinstance(schedule, Pipeline) else schedule
    if not plan.tiles:
        raise LayoutError(f"cannot draw {plan}: it has no tiles; give it at least one")
    shown = Schedule(plan.scheme, min(plan.tiles, tiles), plan.inputs, plan.outputs, plan.depth)
    run = _ScheduleRun(shown, dict(zip(_UNITS, times, strict=True)))
    units = Tracks(_UNITS, tuple(run.units), 0, run.now, "time", "timeline")
    buffers = Tracks(shown.buffers, tuple(run.buffers), 0, run.now, "time", "use of buffers")
    busy = sum(span.end - span.start for span in run.units if span.kind == "compute")
    facts = [
        Fact("scheme", f"{plan.scheme}, {len(plan.buffers)} buffers per operand"),
        Fact("tiles", f"{plan.tiles}" + (f", the first {shown.tiles} drawn" if shown.tiles < plan.tiles else "")),
        Fact("time", f"{run.now:g}, against {shown.tiles * sum(times):g} without overlap"),
        Fact("compute utilization", f"{busy / run.now:.0%}"),
    ]
    return Scene(f"{plan.scheme} buffering", (units, buffers), tuple(facts))


class _ScheduleRun:
    """The times of a schedule on a machine with one import, one compute and one export unit."""

    def __init__(self, schedule: Schedule, times: dict[str, float]) -> None:
        self.times = times
        self.now: float = 0
        self.free: dict[str, float] = {"import": 0, "export": 0}
        self.ends: dict[TransferKey, float] = {}
        self.units: list[Span] = []
        self.buffers: list[Span] = []
        self.track = {name: k for k, name in enumerate(schedule.buffers)}
        for action in schedule.actions():
            if isinstance(action, Import):
                self._transfer("import", action)
            elif isinstance(action, Export):
                self._transfer("export", action)
            elif isinstance(action, Compute):
                self._compute(action)
            elif isinstance(action, Wait):
                self.now = max([self.now, *(self.ends[key] for key in action.retires)])
        self.now = max([self.now, *self.ends.values()])

    def _transfer(self, kind: str, action: Import | Export) -> None:
        begin = max([self.now, self.free[kind], *(self.ends[key] for key in action.after)])
        end = begin + self.times[kind]
        self.free[kind] = end
        self.ends[TransferKey("import" if kind == "import" else "export", action.tile, action.operand)] = end
        self._record(kind, action.tile, begin, end, action.buffer, f"{kind} {action.tile}, operand {action.operand}")

    def _compute(self, action: Compute) -> None:
        begin, self.now = self.now, self.now + self.times["compute"]
        note = f"compute {action.tile}"
        self._record("compute", action.tile, begin, self.now, action.read_buffer, note)
        if action.write_buffer != action.read_buffer:
            track = self.track[action.write_buffer]
            self.buffers.append(Span(track, begin, self.now, str(action.tile), "compute", note=note, link=action.tile))

    def _record(self, kind: str, tile: int, begin: float, end: float, buffer: str, note: str) -> None:
        note = f"{note}: {begin:g} to {end:g}"
        self.units.append(Span(_UNITS.index(kind), begin, end, str(tile), kind, note=note, link=tile))
        self.buffers.append(Span(self.track[buffer], begin, end, str(tile), kind, note=note, link=tile))


def trace_scene(trace: Trace, *, title: str = "") -> Scene:
    """Return the timeline of a run, in microseconds, and the share of transfer time that was hidden.

    >>> from tilewright.tiling.trace import TraceSpan as Happened
    >>> scene = trace_scene(Trace([Happened("import", 0, 0, 0, 10_000), Happened("compute", 0, 0, 4_000, 20_000)]))
    >>> [(fact.name, fact.value) for fact in scene.facts][-1]
    ('transfer time hidden', '60%')
    """
    if not trace.spans:
        raise LayoutError("cannot draw an empty trace; record one with run(..., trace=trace)")
    start = min(span.began for span in trace.spans)
    names = tuple(kind for kind in (*_UNITS, "wait") if any(span.kind == kind for span in trace.spans))
    spans = []
    for span in trace.spans:
        begin, end = (span.began - start) / 1e3, (span.ended - start) / 1e3
        note = f"{span.kind} {span.tile}: {begin:.6g} to {end:.6g} us"
        spans.append(Span(names.index(span.kind), begin, end, str(span.tile), span.kind, note=note, link=span.tile))
    end = max([span.end for span in spans]) or 1
    summary = trace.summary()
    facts = [Fact(kind, f"{summary[kind] * 1e6:.6g} us") for kind in (*names, "wall")]
    facts.append(Fact("transfer time hidden", f"{summary['hidden']:.0%}"))
    return Scene(title or "pipeline run", (Tracks(names, tuple(spans), 0, end, "us", "timeline"),), tuple(facts))
