# SPDX-License-Identifier: Apache-2.0
"""The scenes of a reshard plan: the chip with its flows, the load of links, and the timeline of the estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..._text import format_bytes
from ...errors import LayoutError, MemoryConfigError
from ...traffic import ReshardPlan, ReshardStep
from ..layout_grid import MAX_SIDE
from ..scene import MOST_FLOWS, Fact, Panel, Scene
from ..scene_options import SceneOptionError, SceneOptions, scene_function
from .chip_maps import ChipMap
from .link_maps import LinkMap
from .reshard_timelines import reshard_timeline

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LISTED = 4  # flows and links that are named in words
VIEWS = ("map", "links", "timeline")


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
    """Return what a reshard `plan` does on the chip, with its facts.

    `view` is "map" (cores and DRAM banks at their places on the network, with the flows between them, the bytes that
    arrive and those that leave), "links" (the load of each link of both networks) or "timeline" (what the estimate
    assumes: when requests are issued, and how long each resource is busy), or several of them. `step` draws one
    operation of the plan, counted from 1, rather than all. `side` is the most tracks of the timeline, and
    `title` that of the picture. `options` are those of every scene.

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
    draw: dict[str, Callable[[], tuple[list[Panel], list[Fact], str]]] = {
        "map": lambda: _map_parts(plan, steps),
        "links": lambda: _link_parts(plan, steps),
        "timeline": lambda: reshard_timeline(plan, steps, side),
    }
    panels: list[Panel] = []
    facts, notes, breaks = reshard_facts(plan), [], []
    for name in names:
        more, about, note = draw[name]()
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


def _map_parts(plan: ReshardPlan, steps: Sequence[ReshardStep]) -> tuple[list[Panel], list[Fact], str]:
    """Return the panels, facts and note of the chip with its flows."""
    chip_map = ChipMap.of(plan, steps)
    flows = chip_map.largest_flows()
    words = [f"{source} to {target} {format_bytes(size)}" for source, target, size in flows[:_LISTED]]
    more = f"; {len(flows) - _LISTED} others" if len(flows) > _LISTED else ""
    facts = [Fact("largest flows", "; ".join(words) + more if words else "none: everything stays on its core")]
    notes = [] if chip_map.known else [f"Where cores of {plan.noc_map.chip.name} are on its network is not known."]
    if len(flows) > MOST_FLOWS:
        notes.append(f"Arrows are the largest {MOST_FLOWS} of {len(flows)} flows.")
    return list(chip_map.panels()), facts, " ".join(notes)


def _link_parts(plan: ReshardPlan, steps: Sequence[ReshardStep]) -> tuple[list[Panel], list[Fact], str]:
    """Return the panels, facts and note of the load of links."""
    links = LinkMap.of(plan, steps)
    if not links.loads:
        return [], [Fact("links", "none is used")], ""
    busiest = list(links.loads.items())[:_LISTED]
    most = busiest[0][1]
    mean = sum(links.loads.values()) / len(links.loads)
    facts = [
        Fact("links used", f"{len(links.loads)} of {plan.noc_map.num_links}"),
        Fact("busiest links", "; ".join(f"{link} {format_bytes(size)}, {size / most:.0%}" for link, size in busiest)),
        Fact("imbalance", f"{most / mean:.2f} (max/mean of the links used)"),
    ]
    idle = [noc for noc in ("NOC_0", "NOC_1") if not any(link.noc == noc for link in links.loads)]
    note = "A cell is the link that leaves the node at x, y; numbers are percent of the busiest link."
    return list(links.panels()), facts, note + "".join(f" {noc} carries nothing." for noc in idle)


def reshard_facts(plan: ReshardPlan) -> list[Fact]:
    """Return what a `plan` moves, how, and what it costs, as facts.

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
