# SPDX-License-Identifier: Apache-2.0
"""The scene of a layout: every coordinate on a sheet, and every place in memory, tied to each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import LayoutError
from ...layout import InverseLayout, Layout, LayoutLike, is_injective
from ...layout.layout_like import require_layout
from ..access import contiguous_runs, padding_share
from ..colours import CATEGORIES
from ..scene import Fact, Field, Grid, Scene
from ..sheet import SIDE, Sheet, spread
from .places import places_grid

_MOST_COUNTED = 1 << 18  # elements that facts are counted on; larger layouts have fewer facts
_EXTRAS = ("tile", "row", "column")


def layout_scene(
    layout: LayoutLike, *, color: str = "", label: str = "", memory: bool = True, side: int = SIDE, title: str = ""
) -> Scene:
    """Return the scene of any layout: offsets or named axes, nested coordinates, padding, and memory beside it.

    `color` and `label` choose the attributes that are painted and written: `offset`, or the name of an axis, or `tile`,
    `row`, `column`, `coordinate`.

    >>> from tilewright import row_major
    >>> scene = layout_scene(row_major(4, 8))
    >>> [panel.title for panel in scene.panels], scene.panels[0].cell(2, 5).attributes["offset"]
    (['coordinates', 'memory'], 21)
    """
    require_layout(layout, "layout_scene")
    sheet = spread(layout, side)
    panels = sheet_panels(sheet, (), color, label, memory)
    return Scene(title or title_of(layout), panels, tuple(layout_facts(layout)), note_of(sheet))


def sheet_panels(
    sheet: Sheet,
    extra: tuple[Field, ...] = (),
    color: str = "",
    label: str = "",
    memory: bool = True,
    lanes: tuple[int, ...] = (0,),
    padding: bool = True,
) -> tuple[Grid, ...]:
    """Return the coordinates of a sheet as a grid, and memory as another one where it can be drawn.

    `extra` are further attributes, `lanes` the places of the scalars of an element, from its first one on, and
    `padding` says whether padding has places.

    >>> from tilewright import row_major
    >>> len(sheet_panels(spread(row_major(2, 2)))), len(sheet_panels(spread(row_major(2, 2)), memory=False))
    (2, 1)
    """
    if not sheet.rows * sheet.columns:
        raise LayoutError(f"{sheet.layout} is empty: there is nothing to see; give every mode an extent of at least 1")
    places = sheet.places()
    valid, link = sheet.valid(), identity(list(places.values()))
    fields = [place_field(name, table, valid if sheet.hollow else None) for name, table in places.items()]
    first = fields[0].name
    color, label = color or first, label or first
    fields += [_numbered(sheet, name) for name in _EXTRAS if name in (color, label)]
    if sheet.layout.depth > 1 or "coordinate" in (color, label):
        fields.append(Field("coordinate", tuple(sheet.names())))
    several = len(sheet.extents) > 1
    grid = Grid(
        sheet.rows,
        sheet.columns,
        (*fields, *extra),
        title="coordinates",
        color=color,
        label=label,
        valid=() if valid.all() else tuple(valid.reshape(-1).tolist()),
        link=tuple(link.tolist()),
        outlines=sheet.outlines(),
        row_names=sheet.row_names(),
        row_axis="row" if several else "",
        column_axis="column" if several else "",
        block=sheet.block,
    )
    if not memory or not sheet.whole:
        return (grid,)
    held = places_grid(grid, sheet.elements(), places, link, valid, lanes, padding and not sheet.hollow)
    return (grid,) if held is None else (grid, held)


def place_field(name: str, table: Any, valid: Any = None) -> Field:
    """Return an axis of places as an attribute of cells: a few values are told apart, many are in order.

    Cells that are not `valid` have no value.

    >>> place_field("bank", np.array([[0, 1]])).scale, place_field("offset", np.array([[0, 1]])).scale
    ('category', 'ramp')
    """
    values = tuple(table.reshape(-1).tolist())
    if valid is not None:
        values = tuple(
            value if alive else None for value, alive in zip(values, valid.reshape(-1).tolist(), strict=True)
        )
    few = name != "offset" and len(set(values)) <= len(CATEGORIES)
    return Field(name, values, "category" if few else "ramp")


def _numbered(sheet: Sheet, name: str) -> Field:
    """Return the number of every cell's row, column or tile."""
    at = np.indices((sheet.rows, sheet.columns))
    if name != "tile":
        k = ("row", "column").index(name)
        return Field(name, tuple((at[k] * sheet.block[k]).reshape(-1).tolist()), "ramp")
    number = np.zeros((sheet.rows, sheet.columns), dtype=np.int64)
    for k, box in enumerate(box for box in sheet.outlines() if box.kind == "tile"):
        number[box.row : box.row + box.rows, box.column : box.column + box.columns] = k
    return Field("tile", tuple(number.reshape(-1).tolist()))


def identity(tables: list[Any]) -> Any:
    """Return a number for each cell, equal where all the tables are.

    >>> identity([np.array([[0, 1, 0]]), np.array([[5, 5, 5]])]).tolist()
    [0, 1, 0]
    """
    if len(tables) == 1:
        return tables[0].reshape(-1)
    rows = np.stack([table.reshape(-1) for table in tables], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def note_of(sheet: Sheet) -> str:
    """Return what has to be said about a sheet whose cells stand for blocks.

    >>> from tilewright import row_major
    >>> note_of(spread(row_major(512, 64)))
    'Each cell stands for 4 x 1 elements, and shows the first of them.'
    """
    high, wide = sheet.block
    return "" if sheet.whole else f"Each cell stands for {high} x {wide} elements, and shows the first of them."


def title_of(layout: LayoutLike) -> str:
    """Return a layout as a title: without its padding, which the picture shows, and not too long.

    >>> from tilewright import pad, Layout
    >>> title_of(pad(Layout(5), 8))
    '8:1'
    """
    words = str(layout).split(" where ")[0]
    return words if len(words) <= 90 else words[:89] + "…"


def layout_facts(layout: LayoutLike) -> list[Fact]:
    """Return what is worth knowing about a layout beside its picture.

    >>> from tilewright import row_major
    >>> [(fact.name, fact.value) for fact in layout_facts(row_major(4, 8))][1:4]
    [('elements', '32'), ('memory', '32 places'), ('contiguous, row by row', '1 run of 32')]
    """
    facts = [Fact("layout", str(layout)), Fact("elements", str(layout.size))]
    small = layout.size <= _MOST_COUNTED
    replicas = getattr(layout, "replicas", ())
    if not (small or isinstance(layout, Layout)):
        pass  # the places of a large composition would have to be counted one by one
    elif layout.axes:
        facts.append(Fact("memory", ", ".join(f"{name} 0 to {n - 1}" for name, n in layout.cosize.items())))
    else:
        facts.append(Fact("memory", f"{layout.cosize} place{'s' * (layout.cosize != 1)}"))
        if small and not replicas:
            table = spread(layout, 1 << 62)
            facts.append(Fact("contiguous, row by row", str(contiguous_runs(table.places()["offset"], table.valid()))))
    share = padding_share(layout) if small else 0.0
    if share:
        facts.append(Fact("padding", f"{share:.1%} of the elements"))
    if replicas:
        facts.append(Fact("replicas", ", ".join(f"{count} copies" for count, _ in replicas)))
    elif small and layout.shape != () and not isinstance(layout, InverseLayout):  # an inverse is by its nature
        facts.append(Fact("one element a place", "yes" if is_injective(layout) else "no: some places hold several"))
    return facts
