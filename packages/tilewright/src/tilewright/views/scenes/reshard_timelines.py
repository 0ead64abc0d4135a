# SPDX-License-Identifier: Apache-2.0
"""The timeline of a reshard plan: what its estimate assumes, which is a formula and not a simulation.

Each RISC issues its requests one after the other and pays for its barriers; each resource is busy from the first
request that uses it, for its bytes at its rate. A step ends when the slowest of them does, barriers included.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil

import numpy as np

from ..._text import count_of, format_bytes
from ...traffic import (
    RISC_NAMES,
    NocRates,
    Requests,
    ReshardPlan,
    ReshardStep,
    issue_cycles,
    rates_of,
    resource_loads,
    resource_name,
)
from ..scene import Fact, Panel, Span, Tracks
from .chip_maps import place_name

_MOST_RISCS = 24  # tracks, of the RISCs with most to do
_MOST_RESOURCES = 4  # tracks of each kind
_MOST_ROUNDS = 32  # spans of one RISC; more are drawn as one
_KINDS = {
    "source": "L1 that is read",
    "source_both": "L1 that is read",
    "dram": "DRAM bank",
    "link": "link",
    "reader": "core that receives",
    "reader_both": "core that receives",
}
_WAITS = "waits for data, or for others"


def reshard_timeline(plan: ReshardPlan, steps: Sequence[ReshardStep], side: int) -> tuple[list[Panel], list[Fact], str]:
    """Return the panels, facts and note of the timeline of some `steps` of a `plan`; at most `side` tracks a panel.

    >>> from tilewright import TensorSpec, height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
    >>> riscs, resources = reshard_timeline(plan, plan.steps, 8)[0]
    >>> riscs.names, [(span.label, round(span.end)) for span in riscs.spans if span.track == 0]
    (('(0, 0) NCRISC', '(1, 0) NCRISC'), [('2 reads', 74), ('', 146), ('barrier', 496)])
    """
    estimates = [step.estimate(plan.profiler) for step in steps]
    end = sum(estimate.cycles for estimate in estimates)
    rates = rates_of(plan.noc_map.chip)
    last = float(ceil(end) or 1)
    risc_names = _busiest_riscs(steps, min(side, _MOST_RISCS))
    risc_spans: list[Span] = []
    resource_names: dict[str, int] = {}
    resource_spans: list[Span] = []
    start = 0.0
    for number, (step, estimate) in enumerate(zip(steps, estimates, strict=True), 1):
        issue = issue_cycles(step.requests, rates, plan.profiler, step.interleaved_dram)
        until = start + estimate.cycles
        which = f"step {number}: " if len(steps) > 1 else ""
        risc_spans += _risc_spans(step.requests, risc_names, issue, rates, start, until, which)
        resource_spans += _resource_spans(step.requests, resource_names, issue, rates, start, which, side)
        start = until
    total = len({(core, risc) for step in steps for core, risc in _risc_keys(step.requests)})
    some = f", the {len(risc_names)} with most to do of {total}" if len(risc_names) < total else ""
    names = tuple(f"{place_name(plan.noc_map.endpoints[core])} {RISC_NAMES[risc]}" for core, risc in risc_names)
    panels: list[Panel] = [
        Tracks(names, tuple(risc_spans), 0, last, "cycles", f"RISCs (estimate{some})"),
        Tracks(tuple(resource_names), tuple(resource_spans), 0, last, "cycles", "busiest resources (estimate)"),
    ]
    calibrated = all(estimate.calibrated for estimate in estimates)
    words = [f"step {k}: {estimate}" for k, estimate in enumerate(estimates, 1)] if len(steps) > 1 else []
    facts = [Fact(f"estimate of {word.partition(':')[0]}", word.partition(": ")[2]) for word in words]
    note = "An estimate by a formula, not a simulation: requests are issued one after the other, each resource is busy"
    note += " for its bytes at its rate, and barriers are added at the end."
    return panels, facts, note + ("" if calibrated else " Not calibrated for this kind of plan.")


def _risc_keys(requests: Requests) -> list[tuple[int, int]]:
    """Return the core and RISC of each list of requests."""
    return list(zip(requests.core.tolist(), requests.risc.tolist(), strict=True))


def _busiest_riscs(steps: Sequence[ReshardStep], most: int) -> dict[tuple[int, int], int]:
    """Return the track of each RISC that is drawn: those with most requests, core by core."""
    counts: dict[tuple[int, int], int] = {}
    for step in steps:
        for key, count in zip(_risc_keys(step.requests), step.requests.counts.tolist(), strict=True):
            counts[key] = counts.get(key, 0) + count
    chosen = sorted(sorted(counts, key=lambda key: -counts[key])[:most])
    return {key: track for track, key in enumerate(chosen)}


def _risc_spans(
    requests: Requests,
    tracks: dict[tuple[int, int], int],
    issue: float,
    rates: NocRates,
    start: float,
    end: float,
    which: str,
) -> list[Span]:
    """Return what each RISC does in a step: it issues requests, waits for data, and pays for its barriers."""
    spans = []
    for number, key in enumerate(_risc_keys(requests)):
        if key not in tracks:
            continue
        track, at = tracks[key], start
        verb = "write" if requests.writes[number] else "read"
        rounds = _rounds(requests, number)
        for position, (count, nbytes, barriers) in enumerate(rounds, 1):
            waiting = barriers * rates.barrier
            rest = (
                end - waiting if position == len(rounds) else at
            )  # until data are there, before the last barrier ends
            parts = [
                (at + count * issue, count_of(count, verb), f"issues {verb}s", f"{format_bytes(nbytes)}, "),
                (max(rest, at + count * issue), "", _WAITS, ""),
                (max(rest, at + count * issue) + waiting, "barrier", "barrier", f"{barriers} x {rates.barrier}, "),
            ]
            for until, label, kind, more in parts:
                if until > at:
                    note = f"{which}{label or kind}, {more}cycles {at:.0f} to {until:.0f}"
                    spans.append(Span(track, at, until, label, kind, kind == _WAITS, note, key))
                at = until
    return spans


def _rounds(requests: Requests, number: int) -> list[tuple[int, int, int]]:
    """Return the requests of a RISC between its barriers: their number and bytes, and the barriers after them."""
    first, last = np.searchsorted(requests.owner, [number, number + 1]).tolist()
    idle = int(requests.idle_barriers[number])
    barriers, nbytes = requests.barriers[first:last], requests.nbytes[first:last]
    ends = np.flatnonzero(barriers)
    if len(ends) > _MOST_ROUNDS:
        return [(last - first, int(nbytes.sum()), int(barriers.sum()) + idle)]
    edges = [0, *(ends + 1).tolist()]
    rounds = [(0, 0, idle)] if idle else []
    for begin, stop in pairwise(edges):
        rounds.append((stop - begin, int(nbytes[begin:stop].sum()), int(barriers[stop - 1])))
    if edges[-1] < last - first:
        rounds.append((last - first - edges[-1], int(nbytes[edges[-1] :].sum()), 0))
    return rounds


def _resource_spans(
    requests: Requests, tracks: dict[str, int], issue: float, rates: NocRates, start: float, which: str, side: int
) -> list[Span]:
    """Return the busiest resources of each kind in a step; those that are new get a track."""
    spans = []
    for load in resource_loads(requests, rates):
        kind = _KINDS[load.resource]
        cycles = load.nbytes / load.rate
        for k in np.argsort(-(issue * load.first + cycles), kind="stable")[:_MOST_RESOURCES].tolist():
            place, noc = resource_name(requests.noc_map, load.resource, int(load.number[k]))
            where = str(place) if load.resource == "link" else place_name(place)  # type: ignore[arg-type]
            name = (
                where
                if load.resource in ("link", "dram")
                else f"{'from' if 'source' in load.resource else 'into'} {where}"
            )
            name += f" {noc}" if noc else " both NoCs" if load.resource.endswith("_both") else ""
            if name not in tracks and len(tracks) >= side:
                continue
            at = start + issue * int(load.first[k])
            until = at + float(cycles[k])
            size = format_bytes(int(load.nbytes[k]))
            note = f"{which}{kind} {name}: {size} at {load.rate:g} bytes per cycle, cycles {at:.0f} to {until:.0f}"
            spans.append(Span(tracks.setdefault(name, len(tracks)), at, until, size, kind, note=note, link=name))
    return spans
