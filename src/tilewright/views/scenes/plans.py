# SPDX-License-Identifier: Apache-2.0
"""The scene of a copy plan: where elements come from and where they go, with the loops that move them."""

from __future__ import annotations

from dataclasses import replace

from ...copying import Plan
from ..layout_grid import MAX_SIDE, sample_layout
from ..scene import Fact, Field, Grid, Scene
from .layouts import block_note, layout_panels

_MOST_NESTS = 4  # of the loop nests, those that are written out
_OPERATIONS = ("copy ", "fill ", "pack ", "unpack ")


def plan_scene(plan: Plan, *, side: int = MAX_SIDE) -> Scene:
    """Return both memories of a `plan`, painted by where elements lie in the source, so that the copy can be followed.

    Memories with more than `side` rows or columns are shown as coordinates, in blocks, painted by place.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> target = plan_scene(plan).panels[1]
    >>> target.title, target.field("element").values, target.field("source").values
    ('target: int8', ('0,0', '1,0', '0,1', '1,1', '0,2', '1,2'), (0, 3, 1, 4, 2, 5))
    """
    target = sample_layout(plan.target.layout, side)
    block = None if target.is_complete else target.block  # the same for both, to compare them cell by cell
    source = sample_layout(plan.source.layout, side, block)
    titles = [f"{role}: {place.format}" for role, place in (("source", plan.source), ("target", plan.target))]
    before, after = layout_panels(source), layout_panels(target)
    if len(before) == len(after) == 2:
        panels = _color_by_source(before[1], after[1], titles)
    else:
        cells = tuple(range(target.rows * target.columns))
        panels = tuple(
            replace(grids[0], title=title, link=cells if len(grids[0].link) == len(cells) else ())
            for grids, title in zip((before, after), titles, strict=True)
        )
    return Scene(
        plan.explain().split("\n", 1)[0], panels, tuple(_plan_facts(plan)), block_note(target) or block_note(source)
    )


def _color_by_source(before: Grid, after: Grid, titles: list[str]) -> tuple[Grid, ...]:
    """Return both memories painted by the place in the source, and linked by element."""
    elements = before.field("element").values
    place_of = {name: k for k, name in enumerate(elements) if name is not None}
    found = []
    for grid, title in zip((before, after), titles, strict=True):
        names = grid.field("element").values
        source = tuple(place_of.get(name) for name in names)
        fields = (grid.field("element"), Field("source", source, "ramp"))
        link = tuple(
            name if name is None or place is not None else None for name, place in zip(names, source, strict=True)
        )
        found.append(replace(grid, fields=fields, color="source", title=title, link=link))
    return tuple(found)


def _plan_facts(plan: Plan) -> list[Fact]:
    _, moved, *rest = plan.explain().split("\n")
    facts = [Fact("source", str(plan.source.layout)), Fact("target", str(plan.target.layout)), Fact("moved", moved)]
    for line in rest:
        if line.startswith("  "):  # a loop of the nest above it
            last = facts.pop()
            facts.append(Fact(last.name, f"{last.value}; {line.strip()}"))
        else:
            facts.append(Fact("loop nest" if line.startswith(_OPERATIONS) else "beside", line.replace(" %", "%")))
    nests = [fact for fact in facts if fact.name == "loop nest"]
    hidden = nests[_MOST_NESTS:]
    if hidden:
        facts = [fact for fact in facts if fact not in hidden] + [Fact("and", f"{len(hidden)} more, for the edges")]
    return facts
