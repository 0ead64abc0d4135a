# SPDX-License-Identifier: Apache-2.0
"""What every rendering decides alike: the colour of each cell and span, and how a value is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .colours import Scale, scale_of
from .scene import Field, Grid, Lanes, Scene

LONGEST = 14  # characters of a value that are written into a cell


def written(value: Any) -> str:
    """Return a value as it is written into a cell.

    >>> written(7), written(0.1234), written((1, 2)), written(None)
    ('7', '0.12', '1,2', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2g}"
    return ",".join(map(written, value)) if isinstance(value, tuple) else str(value)


def labels_of(grid: Grid, name: str) -> list[str]:
    """Return an attribute as it is written into each cell, shortened where it is long.

    >>> labels_of(Grid(1, 2, (Field("name", ("a", "a name that goes on")),)), "name")
    ['a', 'a name that g…']
    """
    words = map(written, grid.field(name).values)
    return [word if len(word) <= LONGEST else word[: LONGEST - 1] + "…" for word in words]


def labels_to_try(grid: Grid) -> Iterator[list[str]]:
    """Yield what may be written into the cells, best first: the label, else what the colour means.

    >>> grid = Grid(1, 1, (Field("thread", (5,)), Field("holds", ("T5 V0",))), color="thread", label="holds")
    >>> list(labels_to_try(grid))
    [['T5 V0'], ['5']]
    """
    for name in dict.fromkeys((grid.label, grid.color if grid.label else "")):
        if name:
            yield labels_of(grid, name)


def scales_of(scene: Scene) -> dict[str, Scale]:
    """Return the scale of every attribute that is painted: the same one wherever it is painted.

    >>> left, right = Grid(1, 1, (Field("bank", (0,)),), color="bank"), Grid(1, 1, (Field("bank", (1,)),), color="bank")
    >>> scales_of(Scene("banks", (left, right)))["bank"].values
    (0, 1)
    """
    painted: dict[str, list[Field]] = {}
    for panel in scene.panels:
        if isinstance(panel, Grid) and panel.color:
            painted.setdefault(panel.color, []).append(panel.field(panel.color))
        elif isinstance(panel, Lanes):
            painted.setdefault("kind", []).append(Field("kind", kinds_of(panel)))
    return {name: scale_of(fields) for name, fields in painted.items()}


def kinds_of(lanes: Lanes) -> tuple[str, ...]:
    """Return the kinds of spans that have a colour: those that are not only hatched.

    >>> from tilewright.views.scene import Span
    >>> kinds_of(Lanes(("bank 0",), (Span(0, 0, 1, kind="a"), Span(0, 1, 2, kind="free", hatched=True)), end=2))
    ('a',)
    """
    return tuple(dict.fromkeys(span.kind for span in lanes.spans if not span.hatched))


def cell_colours(grid: Grid, scales: dict[str, Scale]) -> list[str]:
    """Return the colour of every cell, row by row; empty when nothing is painted.

    >>> grid = Grid(1, 2, (Field("bank", (0, 1)),), color="bank")
    >>> cell_colours(grid, scales_of(Scene("", (grid,))))
    ['#77aadd', '#ee8866']
    """
    if not grid.color:
        return []
    values = grid.field(grid.color).values
    colours = scales[grid.color].colours(values)
    return [colours[value] for value in values]


def hatched_kinds(lanes: Lanes) -> tuple[str, ...]:
    """Return the kinds of spans that are only hatched, those of the first hatch first.

    >>> from tilewright.views.scene import Span
    >>> hatched_kinds(Lanes(("bank 0",), (Span(0, 0, 1, kind="a"), Span(0, 1, 2, kind="free", hatched=True)), end=2))
    ('free',)
    """
    found = dict.fromkeys(span.kind or "unused" for span in lanes.spans if span.hatched)
    return tuple(sorted(found, key=lambda kind: kind != "free"))
