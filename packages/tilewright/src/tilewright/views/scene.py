# SPDX-License-Identifier: Apache-2.0
"""A picture as data: panels of cells or spans, and facts; text, SVG and HTML render the same scene."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from ..errors import LayoutError
from ..findings import plain_data

ScaleKind: TypeAlias = Literal["category", "ramp", "heat"]
OutlineKind: TypeAlias = Literal["tile", "face", "plane", "slice", "mark", "halo"]

MAX_FLOWS = 300  # arrows in a picture; more hide the cells below them


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of the cells of a grid: its name, and one value per cell, row by row.

    `scale` is the way values become colors: distinct ones for a `category`, ordered ones along a `ramp`, or from pale
    to dark as `heat`. `form` is the way they are written, as in `str.format`. A cell without the attribute has the
    value None.

    >>> Field("bank", (0, 1, 0, 1)).scale
    'category'
    """

    name: str
    values: tuple[Any, ...]
    scale: ScaleKind = "category"
    form: str = "{}"

    @classmethod
    def of_table(cls, name: str, table: NDArray[Any], scale: ScaleKind = "category", form: str = "{}") -> Field:
        """Return the attribute `name` of cells with the values of an array, `table`; `scale` and `form` as above.

        >>> import numpy as np
        >>> Field.of_table("bank", np.array([[0, 1], [1, 0]])).values
        (0, 1, 1, 0)
        """
        return cls(name, tuple(table.reshape(-1).tolist()), scale, form)


@dataclass(frozen=True, slots=True)
class Outline:
    """A box drawn around cells: its first row and column, its size, and its meaning.

    >>> Outline(0, 16, 16, 16, "face", "face 1").label
    'face 1'
    """

    row: int
    column: int
    rows: int
    columns: int
    kind: OutlineKind = "tile"
    label: str = ""


def outline_blocks(rows: int, columns: int, high: int, wide: int, kind: OutlineKind) -> tuple[Outline, ...]:
    """Return the outlines of blocks of `high` rows and `wide` columns; those at the end may be smaller.

    >>> [(box.row, box.rows) for box in outline_blocks(48, 16, 32, 16, "tile")]
    [(0, 32), (32, 16)]
    """
    return tuple(
        [
            Outline(row, column, min(high, rows - row), min(wide, columns - column), kind)
            for row in range(0, rows, high)
            for column in range(0, columns, wide)
        ]
    )


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes that go from one cell of a grid to another, both by their number, row by row.

    >>> flow = Flow(0, 3, 2048)
    >>> flow.nbytes
    2048
    """

    source: int
    target: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid with all its attributes.

    >>> Cell(1, 2, {"offset": 9}, True).attributes["offset"]
    9
    """

    row: int
    column: int
    attributes: dict[str, Any] = dataclasses.field(hash=False)
    valid: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells in rows and columns; `color` and `label` name the attributes that are drawn, `label` one or several.

    `valid` tells data from padding (empty: all is data); the legend calls padding `hatched`. Cells with equal `link`
    values belong together, also across grids. `block` is the number of rows and columns that one cell stands for.
    A grid with `boxes` is drawn as boxes of that many rows and columns, set apart, each with its title and the names of
    its rows, which take the place of the names of rows and columns. `flows` are drawn as arrows between cells, the
    largest `MAX_FLOWS`; a page draws the flows of the cell under the pointer.

    >>> grid = Grid(2, 2, (Field("offset", (0, 2, 1, 3), "ramp"),), color="offset", label="offset")
    >>> grid.cell(1, 0)
    Cell(row=1, column=0, attributes={'offset': 1}, valid=True)
    """

    rows: int
    columns: int
    fields: tuple[Field, ...] = ()
    title: str = ""
    color: str = ""
    label: str | tuple[str, ...] = ""
    valid: tuple[bool, ...] = ()
    link: tuple[Any, ...] = ()
    outlines: tuple[Outline, ...] = ()
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    row_axis: str = ""
    column_axis: str = ""
    block: tuple[int, int] = (1, 1)
    hatched: str = "padding"
    boxes: tuple[int, int] | None = None
    box_titles: tuple[str, ...] = ()  # row of boxes by row of boxes
    box_rows: tuple[tuple[str, ...], ...] = ()  # of each box, the names of its rows
    flows: tuple[Flow, ...] = ()

    def __post_init__(self) -> None:
        count = self.rows * self.columns
        columns = {field.name: field.values for field in self.fields}
        for name, values in {**columns, "valid": self.valid, "link": self.link}.items():
            if len(values) != count and (name in columns or values):
                raise LayoutError(
                    f"a grid of {self.rows} x {self.columns} cells needs {count} values of {name!r}, got {len(values)}"
                )
        for role, name in (("color", self.color), *(("label", name) for name in self.labels)):
            if name and name not in columns:
                raise LayoutError(f"{role}={name!r} is not an attribute of the cells; use one of {', '.join(columns)}")
        for role, names, expected in (
            ("row_names", self.row_names, self.rows),
            ("column_names", self.column_names, self.columns),
        ):
            if names and len(names) != expected:
                raise LayoutError(f"{role}: expected {expected} names or none, got {len(names)}")
        for flow in self.flows:
            if not (0 <= flow.source < count and 0 <= flow.target < count):
                raise LayoutError(f"{flow}: expected two cells from 0 to {count - 1}")
        if self.boxes is not None:
            high, wide = self.boxes
            if min(high, wide) < 1 or self.rows % high or self.columns % wide:
                raise LayoutError(
                    f"boxes of {high} x {wide} do not divide a grid of {self.rows} x {self.columns} cells"
                )

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the attributes that label the cells.

        >>> Grid(1, 1, (Field("page", (0,)), Field("core", ("0,0",))), label=("core", "page")).labels
        ('core', 'page')
        """
        return tuple(name for name in ((self.label,) if isinstance(self.label, str) else self.label) if name)

    def box_grids(self) -> list[list[Grid]]:
        """Return the boxes as grids, row of boxes by row of boxes; a grid without boxes is one.

        >>> Grid(2, 4, (Field("page", tuple(range(8))),), boxes=(2, 2)).box_grids()[0][1].field("page").values
        (2, 3, 6, 7)
        """
        if self.boxes is None:
            return [[self]]
        high, wide = self.boxes
        across = self.columns // wide
        return [[self._box(row, column, across) for column in range(across)] for row in range(self.rows // high)]

    def _box(self, down: int, right: int, across: int) -> Grid:
        high, wide = self.boxes or (self.rows, self.columns)
        number = down * across + right
        return self.crop(
            *(down * high, right * wide, high, wide),
            title=self.box_titles[number] if self.box_titles else "",
            row_names=self.box_rows[number] if self.box_rows else (),
            column_names=(),
        )

    def crop(self, row: int, column: int, rows: int, columns: int, **changes: Any) -> Grid:
        """Return a part of the cells as a grid, without boxes and flows; `changes` are its other attributes.

        Args:
            row: the first row of the part.
            column: its first column.
            rows: its rows.
            columns: its columns.
            changes: attributes that it has instead of this grid's, such as its title.

        >>> Grid(2, 2, (Field("n", (1, 2, 3, 4)),)).crop(0, 1, 2, 1).field("n").values
        (2, 4)
        """
        cells = [r * self.columns + c for r in range(row, row + rows) for c in range(column, column + columns)]
        parts: dict[str, Any] = {
            "fields": tuple(
                dataclasses.replace(field, values=tuple(field.values[at] for at in cells)) for field in self.fields
            ),
            "valid": tuple(self.valid[at] for at in cells) if self.valid else (),
            "link": tuple(self.link[at] for at in cells) if self.link else (),
            "outlines": tuple(
                dataclasses.replace(outline, row=outline.row - row, column=outline.column - column)
                for outline in self.outlines
                if row <= outline.row < row + rows and column <= outline.column < column + columns
            ),
        }
        parts |= {"boxes": None, "box_titles": (), "box_rows": (), "flows": ()}
        return dataclasses.replace(self, rows=rows, columns=columns, **parts, **changes)

    def field(self, name: str) -> Field:
        """Return the attribute `name`.

        >>> Grid(1, 2, (Field("bank", (0, 1)),)).field("bank").values
        (0, 1)
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise LayoutError(
            f"{name!r} is not an attribute of the cells; use one of {', '.join(f.name for f in self.fields)}"
        )

    def cell(self, row: int, column: int) -> Cell:
        """Return the cell at a `row` and `column` with all its attributes.

        >>> Grid(1, 2, (Field("bank", (0, 1)),), valid=(True, False)).cell(0, 1).valid
        False
        """
        at = row * self.columns + column
        attributes = {field.name: field.values[at] for field in self.fields}
        return Cell(row, column, attributes, not self.valid or self.valid[at])

    def row_name(self, row: int) -> str:
        """Return the label of a row: its name, or the index of its first element.

        >>> Grid(4, 1, block=(32, 32)).row_name(3)
        '96'
        """
        return self.row_names[row] if self.row_names else str(row * self.block[0])

    def column_name(self, column: int) -> str:
        """Return the label of a column: its name, or the index of its first element.

        >>> Grid(1, 2, column_names=("bank 0", "bank 1")).column_name(1)
        'bank 1'
        """
        return self.column_names[column] if self.column_names else str(column * self.block[1])


@dataclass(frozen=True, slots=True)
class Span:
    """An interval on a track, such as a buffer in a bank or a transfer in time; `kind` decides its color.

    A `hatched` span is unused: free or padding. `note` is its tooltip; spans with equal `link` values belong together.

    >>> Span(0, 1024, 3072, "weights").end - Span(0, 1024, 3072, "weights").start
    2048
    """

    track: int
    start: float
    end: float
    label: str = ""
    kind: str = ""
    hatched: bool = False
    note: str = ""
    link: Any = None


@dataclass(frozen=True, slots=True)
class Tracks:
    """Tracks over a common axis, with spans on them: memory maps (bytes) and schedules (time).

    Positions are written in decimal, or with `hexadecimal` as addresses are.

    >>> Tracks(("bank 0", "bank 1"), (Span(1, 0, 64, "a"),), end=128, unit="bytes").names[1]
    'bank 1'
    """

    names: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    start: float = 0
    end: float = 1
    unit: str = ""
    title: str = ""
    hexadecimal: bool = False

    def __post_init__(self) -> None:
        if not self.end > self.start:
            raise LayoutError(f"expected end > start, got an axis from {self.start} to {self.end}")
        for span in self.spans:
            if not 0 <= span.track < len(self.names) or span.end < span.start:
                raise LayoutError(f"{span}: expected a track from 0 to {len(self.names) - 1} and end >= start")

    def first(self, count: int) -> Tracks:
        """Return the first `count` tracks; the title states how many there are.

        >>> Tracks(("bank 0", "bank 1"), title="banks").first(1).title
        'banks (the first 1 of 2)'
        """
        if count >= len(self.names):
            return self
        title = f"{self.title} (the first {count} of {len(self.names)})"
        spans = tuple(span for span in self.spans if span.track < count)
        return dataclasses.replace(self, names=self.names[:count], spans=spans, title=title)


@dataclass(frozen=True, slots=True)
class Fact:
    """A line beside the picture: a name and its value. `tone` marks it as good or bad.

    >>> Fact("bank conflicts", "8-way", "bad").tone
    'bad'
    """

    name: str
    value: str
    tone: Literal["plain", "good", "bad"] = "plain"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the list above the panels: its subject, and lines of names and values that explain it.

    >>> entry = Entry("page 3 is elsewhere", (("remedy", "compare the cores"),), "bad")
    >>> entry.tone
    'bad'
    """

    title: str
    lines: tuple[tuple[str, str], ...] = ()
    tone: Literal["plain", "good", "bad"] = "plain"


Panel: TypeAlias = "Grid | Tracks"


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture as data: a title, panels, and the facts beside them.

    Panels stand side by side as far as they fit; those numbered in `breaks` begin a new row. `entries` are a ranked
    list above them, in text and on pages; a picture has only the panels and the facts.

    >>> Scene("two cells", (Grid(1, 2),)).panels[0].columns
    2
    """

    title: str
    panels: tuple[Panel, ...] = ()
    facts: tuple[Fact, ...] = ()
    note: str = ""
    breaks: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()  # attributes that were asked for as labels
    entries: tuple[Entry, ...] = ()


def to_data(scene: Scene) -> dict[str, Any]:
    """Return a `scene` as dictionaries and lists; the `kind` of a panel is "grid" or "tracks".

    >>> to_data(Scene("two", (Grid(1, 2),)))["panels"][0]["columns"]
    2
    """
    result: dict[str, Any] = plain_data(scene)
    for panel, data in zip(scene.panels, result["panels"], strict=True):
        data["kind"] = "grid" if isinstance(panel, Grid) else "tracks"
    return result


def to_json(scene: Scene) -> str:
    """Return a `scene` as JSON.

    >>> json.loads(to_json(Scene("a title")))["title"]
    'a title'
    """
    return json.dumps(to_data(scene), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
