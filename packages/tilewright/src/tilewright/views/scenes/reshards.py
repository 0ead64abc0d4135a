# SPDX-License-Identifier: Apache-2.0
"""The scenes of a reshard plan: the chip with its flows, the load of links, and the timeline of the estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._text import count_of, format_bytes
from ...errors import LayoutError, MemoryConfigError
from ...traffic import (
    RISC_NAMES,
    Endpoint,
    Link,
    NocMap,
    NocRates,
    Requests,
    ReshardPlan,
    ReshardStep,
    busiest_links,
    issue_cycles,
    rates_of,
    resource_loads,
    resource_name,
)
from ..layout_grid import MAX_SIDE
from ..scene import MAX_FLOWS, Fact, Field, Flow, Grid, Panel, Scene, Span, Tracks
from ..scene_options import BYTES, SceneOptionError, SceneOptions, scene_function

if TYPE_CHECKING:
    from typing_extensions import Unpack


# The chip as a map: cores and DRAM banks at their positions on the network, with the bytes that go between them.

_NAMED = 6  # cores in a list of those with the same number of bytes


def name_of(endpoint: Endpoint) -> str:
    """Return the name of a core or DRAM bank in words.

    >>> name_of(3)
    'DRAM 3'
    """
    return f"DRAM {endpoint}" if isinstance(endpoint, int) else f"({endpoint.x}, {endpoint.y})"


def chip_cells(noc_map: NocMap) -> tuple[dict[Endpoint, int], tuple[int, int], bool]:
    """Return the cell of each endpoint, the rows and columns, and whether they are the nodes of the network.

    If the network is not known, cores are at their coordinates, and DRAM banks in rows below them.

    >>> cells, size, known = chip_cells(NocMap.of("n150"))
    >>> cells[0], size, known
    (110, (12, 10), True)
    """
    try:
        width, height = noc_map.size
        positions = noc_map.positions[0]
        if positions.size and positions.min() >= 0:
            numbers = (positions[:, 1] * width + positions[:, 0]).tolist()
            return dict(zip(noc_map.endpoints, numbers, strict=True)), (height, width), True
    except MemoryConfigError:
        pass
    cores = [xy for xy in noc_map.endpoints if not isinstance(xy, int)]  # some only store, beyond the compute grid
    across, down = max(core.x for core in cores) + 1, max(core.y for core in cores) + 1
    cells: dict[Endpoint, int] = {}
    for endpoint in noc_map.endpoints:
        cells[endpoint] = down * across + endpoint if isinstance(endpoint, int) else endpoint.y * across + endpoint.x
    return cells, (max(cells.values(), default=0) // across + 1, across), False


@dataclass(frozen=True, slots=True)
class ChipMap:
    """The endpoints of a chip and the bytes of each pair (to, from) of endpoints.

    >>> from tilewright import TensorSpec, height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
    >>> ChipMap.of(plan, plan.steps).largest_flows()[0]
    ('DRAM 0', '(0, 0)', 2048)
    """

    noc_map: NocMap
    traffic: dict[tuple[Endpoint, Endpoint], int]
    cells: dict[Endpoint, int]
    size: tuple[int, int]
    known: bool

    @classmethod
    def of(cls, plan: ReshardPlan, steps: Sequence[ReshardStep]) -> ChipMap:
        """Return the map of the bytes that `steps` of a `plan` move, also through cores and banks in between.

        >>> from tilewright import TensorSpec, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory("l1"))
        >>> ChipMap.of(plan, plan.steps).known
        True
        """
        traffic: dict[tuple[Endpoint, Endpoint], int] = {}
        for step in steps:
            for pair, size in step.requests.traffic.items():
                traffic[pair] = traffic.get(pair, 0) + size
        return cls(plan.noc_map, traffic, *chip_cells(plan.noc_map))

    def largest_flows(self) -> list[tuple[str, str, int]]:
        """Return the flows between different endpoints as (from, to, bytes), the largest first.

        >>> ChipMap(NocMap.of("n150"), {(0, 1): 8}, *chip_cells(NocMap.of("n150"))).largest_flows()
        [('DRAM 1', 'DRAM 0', 8)]
        """
        flows = [(name_of(origin), name_of(to), size) for (to, origin), size in self.traffic.items() if to != origin]
        return sorted(flows, key=lambda flow: -flow[2])

    def panels(self) -> tuple[Grid, Grid, Grid]:
        """Return the flows, the bytes that arrive, and the bytes that leave, as grids.

        >>> arrive = ChipMap(NocMap.of("n150"), {(0, 1): 8}, *chip_cells(NocMap.of("n150"))).panels()[1]
        >>> [value for value in arrive.field("in").values if value]
        [8]
        """
        rows, columns = self.size
        count = rows * columns
        labels: list[Any] = [None] * count
        for endpoint, cell in self.cells.items():
            name = f"D{endpoint}" if isinstance(endpoint, int) else f"{endpoint.x},{endpoint.y}"
            labels[cell] = name if labels[cell] is None else f"{labels[cell]} {name}"
        arriving, leaving, staying = ([0] * count for _ in range(3))
        gets: dict[int, list[tuple[int, str]]] = {}
        gives: dict[int, list[tuple[int, str]]] = {}
        flows: dict[tuple[int, int], int] = {}
        for (to, origin), size in self.traffic.items():
            source, target = self.cells[origin], self.cells[to]
            if to == origin:
                staying[target] += size
                continue
            arriving[target] += size
            leaving[source] += size
            gets.setdefault(target, []).append((size, name_of(origin)))
            gives.setdefault(source, []).append((size, name_of(to)))
            flows[source, target] = flows.get((source, target), 0) + size
        roles = [_role(*numbers) for numbers in zip(arriving, leaving, staying, strict=True)]
        fields = (
            Field("place", tuple(labels)),
            Field("role", tuple(roles)),
            *[
                Field(name, tuple(size or None for size in sizes), "heat", BYTES)
                for name, sizes in (("in", arriving), ("out", leaving), ("stays", staying))
            ],
            Field("gets", tuple(_list_endpoints(gets.get(cell, ()), "from") for cell in range(count))),
            Field("gives", tuple(_list_endpoints(gives.get(cell, ()), "to") for cell in range(count))),
        )
        common: dict[str, Any] = {
            "row_axis": "y",
            "column_axis": "x",
            "link": tuple(None if name is None else cell for cell, name in enumerate(labels)),
        }
        arrows = tuple(Flow(*pair, size) for pair, size in flows.items())
        return (
            Grid(rows, columns, fields, "flows", "role", "place", flows=arrows, **common),
            Grid(rows, columns, fields, "bytes that arrive", "in", "in", **common),
            Grid(rows, columns, fields, "bytes that leave", "out", "out", **common),
        )


def _role(arriving: int, leaving: int, staying: int) -> str | None:
    """Return the traffic of an endpoint, or None if nothing goes through it."""
    if arriving and leaving:
        return "sends and receives"
    return "receives" if arriving else "sends" if leaving else "keeps its own" if staying else None


def _list_endpoints(parts: Iterable[tuple[int, str]], word: str) -> str | None:
    """Return how many bytes go from or to which endpoints, the most first; None if there are none."""
    phrases = []
    for size, group in groupby(sorted(parts, key=lambda part: -part[0]), key=lambda part: part[0]):
        names = [name for _, name in group]
        more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
        suffix = " each" if len(names) > 1 else ""
        phrases.append(f"{format_bytes(size)}{suffix} {word} {', '.join(names[:_NAMED])}{more}")
    return "; ".join([*phrases[:_NAMED], *(["..."] if len(phrases) > _NAMED else [])]) or None


# The load of the links of both networks, as maps of the nodes that they leave.

_DIRECTIONS = (
    ("NOC_0", "+x", "to the right"),
    ("NOC_0", "+y", "downwards"),
    ("NOC_1", "-x", "to the left"),
    ("NOC_1", "-y", "upwards"),
)


def link_panels(noc_map: NocMap, loads: dict[Link, int]) -> tuple[Grid, ...]:
    """Return a grid for each direction of each network that carries something; a cell is the link that leaves it.

    >>> link_panels(NocMap.of("n150"), {Link("NOC_1", 3, 1, "-y"): 64})[1].title
    'NOC_1 -y, upwards'
    """
    width, height = noc_map.size
    most = max(loads.values(), default=1)
    names: list[Any] = [None] * (width * height)
    for (x, y), endpoint in noc_map.places.items():
        names[y * width + x] = f"D{endpoint}" if isinstance(endpoint, int) else f"{endpoint.x},{endpoint.y}"
    grids = []
    for noc, direction, words in _DIRECTIONS:
        if not any(link.noc == noc for link in loads):
            continue
        sizes: list[Any] = [None] * (width * height)
        for link, size in loads.items():
            if (link.noc, link.direction) == (noc, direction):
                sizes[link.y * width + link.x] = size
        shares = tuple(None if size is None else round(100 * size / most) for size in sizes)
        fields = (
            Field("place", tuple(names)),
            Field("share", shares, "heat", "{:>3}"),
            Field("bytes", tuple(sizes), "heat", BYTES),
        )
        common: dict[str, Any] = {"row_axis": "y", "column_axis": "x", "link": tuple(range(width * height))}
        grids.append(Grid(height, width, fields, f"{noc} {direction}, {words}", "share", "share", **common))
    return tuple(grids)


# The timeline of a reshard plan as its estimate assumes it: a formula, not a simulation.

_MAX_RISCS = 24  # tracks, of the RISCs with most to do
_MAX_RESOURCES = 4  # tracks of each kind
_MAX_ROUNDS = 32  # spans of one RISC; more are drawn as one
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
    risc_names = _busiest_riscs(steps, min(side, _MAX_RISCS))
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
    names = tuple(f"{name_of(plan.noc_map.endpoints[core])} {RISC_NAMES[risc]}" for core, risc in risc_names)
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
    """Return the activity of each RISC in a step: it issues requests, waits for data, and pays for its barriers."""
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
    if len(ends) > _MAX_ROUNDS:
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
        resource = _KINDS[load.resource]
        cycles = load.nbytes / load.rate
        for k in np.argsort(-(issue * load.first + cycles), kind="stable")[:_MAX_RESOURCES].tolist():
            endpoint, noc = resource_name(requests.noc_map, load.resource, int(load.number[k]))
            where = str(endpoint) if load.resource == "link" else name_of(endpoint)  # type: ignore[arg-type]
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
            note = f"{which}{resource} {name}: {size} at {load.rate:g} bytes per cycle, cycles {at:.0f} to {until:.0f}"
            spans.append(Span(tracks.setdefault(name, len(tracks)), at, until, size, resource, note=note, link=name))
    return spans


_LISTED = 4  # flows and links that are named in words


@scene_function
def reshard_scene(
    plan: ReshardPlan,
    *,
    view: str | Sequence[str] = "map",
    step: int | None = None,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Draw a reshard `plan` on the chip, with its facts.

    `view` is "map" (cores and DRAM banks at their positions on the network, with the flows between them, the bytes that
    arrive and those that leave), "links" (the load of each link of both networks) or "timeline" (what the estimate
    assumes: when requests are issued, and how long each resource is busy), or several of them. `step` draws one
    operation of the plan, counted from 1, rather than all. `side` is the most tracks of the timeline, and
    `title` the picture's title. `options` are the common scene options.

    >>> from tilewright import TensorSpec, block_sharded, height_sharded, reshard
    >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
    >>> scene = reshard_scene(reshard(spec, spec.with_memory(height_sharded((4, 2)))))
    >>> [panel.title for panel in scene.panels]
    ['flows', 'bytes that arrive', 'bytes that leave']
    >>> scene.panels[1].cell(2, 1).attributes["gets"]
    '32 KiB each from (0, 0), (1, 0)'
    """
    if plan.is_empty:
        raise LayoutError(f"cannot draw {plan}: source and target are equal, so nothing moves")
    steps = choose_steps(plan, step)
    names = (view,) if isinstance(view, str) else tuple(view)
    for name in names or ("",):
        if name not in VIEWS:
            raise SceneOptionError(f"view={name!r}: expected one of {', '.join(VIEWS)}, or several of them")
    panels: list[Panel] = []
    facts, notes, breaks = reshard_facts(plan), [], []
    for name in names:
        more, about, note = VIEWS[name](plan, steps, side)
        breaks += [len(panels)] if panels else []
        breaks += [len(panels) + 2] if name == "links" and len(more) > 2 else []
        panels += more
        facts += about
        notes += [note] if note else []
    which = "" if step is None else f", step {step} of {len(plan.steps)}"
    name = f"reshard of {plan.source.shape} {plan.source.dtype} on {plan.noc_map.chip.name}{which}"
    return Scene(title or name, tuple(panels), tuple(facts), " ".join(notes), tuple(breaks))


def choose_steps(plan: ReshardPlan, step: int | None) -> tuple[ReshardStep, ...]:
    """Return the steps of a `plan` that are drawn: all, or the one with that number, from 1.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> len(choose_steps(reshard(spec, spec.with_memory("l1")), 1))
    1
    """
    if step is None:
        return plan.steps
    if not 1 <= step <= len(plan.steps):
        raise SceneOptionError(f"step {step}: expected a step of the plan, from 1 to {len(plan.steps)}")
    return plan.steps[step - 1 : step]


def _map_parts(plan: ReshardPlan, steps: Sequence[ReshardStep], _side: int) -> tuple[list[Panel], list[Fact], str]:
    """Return the panels, facts and note of the chip with its flows."""
    chip_map = ChipMap.of(plan, steps)
    flows = chip_map.largest_flows()
    words = [f"{source} to {target} {format_bytes(size)}" for source, target, size in flows[:_LISTED]]
    more = f"; {len(flows) - _LISTED} others" if len(flows) > _LISTED else ""
    facts = [Fact("largest flows", "; ".join(words) + more if words else "none: everything stays on its core")]
    notes = [] if chip_map.known else [f"Where cores of {plan.noc_map.chip.name} are on its network is not known."]
    if len(flows) > MAX_FLOWS:
        notes.append(f"Arrows are the largest {MAX_FLOWS} of {len(flows)} flows.")
    return list(chip_map.panels()), facts, " ".join(notes)


def _link_parts(plan: ReshardPlan, steps: Sequence[ReshardStep], _side: int) -> tuple[list[Panel], list[Fact], str]:
    """Return the panels, facts and note of the load of links."""
    is_whole = tuple(steps) == plan.steps
    loads = plan.links if is_whole else busiest_links(Requests.join([step.requests for step in steps]))
    if not loads:
        return [], [Fact("links", "none is used")], ""
    busiest = list(loads.items())[:_LISTED]
    most = busiest[0][1]
    mean = sum(loads.values()) / len(loads)
    facts = [
        Fact("links used", f"{len(loads)} of {plan.noc_map.num_links}"),
        Fact("busiest links", "; ".join(f"{link} {format_bytes(size)}, {size / most:.0%}" for link, size in busiest)),
        Fact("imbalance", f"{most / mean:.2f} (max/mean of the links used)"),
    ]
    idle = [noc for noc in ("NOC_0", "NOC_1") if not any(link.noc == noc for link in loads)]
    note = "A cell is the link that leaves the node at x, y; numbers are percent of the busiest link."
    return list(link_panels(plan.noc_map, loads)), facts, note + "".join(f" {noc} carries nothing." for noc in idle)


VIEWS = {"map": _map_parts, "links": _link_parts, "timeline": reshard_timeline}


def reshard_facts(plan: ReshardPlan) -> list[Fact]:
    """Return the moves of a `plan`, and their cost, as facts.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> [fact.name for fact in reshard_facts(reshard(spec, spec.with_memory("l1")))]
    ['from', 'to', 'moves', 'step 1', 'estimate', 'bound by', 'L1']
    """
    facts = [Fact("from", str(plan.source.memory)), Fact("to", str(plan.target.memory))]
    stays = f"{100 * plan.local:.3g} % stays where it is"
    facts += [Fact("moves", f"{format_bytes(plan.total_bytes)} between {len(plan.traffic)} pairs, {stays}")]
    for number, step in enumerate(plan.steps, 1):
        requests = f"{step.num_reads} reads, {step.num_writes} writes, {step.num_barriers} barriers"
        facts.append(Fact(f"step {number}", f"{step.operation} ({step.factory}): {requests}"))
    try:
        estimate = plan.cycles
        time = f"{estimate.cycles:.0f} cycles, {estimate.microseconds:.3g} us; {estimate.expected_error}"
        facts += [Fact("estimate", time), Fact("bound by", str(estimate.bound_by))]
    except MemoryConfigError as problem:
        facts.append(Fact("estimate", f"none: {problem}", "bad"))
    peak, available = max(plan.peak_l1.values(), default=0), plan.noc_map.chip.bank_bytes("l1")
    words = f"{format_bytes(peak)} of {format_bytes(available)} per core while both tensors live"
    facts.append(Fact("L1", f"{words}: fits", "good") if plan.fits else Fact("L1", f"{words}: does not fit", "bad"))
    return facts
