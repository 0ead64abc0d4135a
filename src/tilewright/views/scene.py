# SPDX-License-Identifier: Apache-2.0
"""A scene: what is to be seen, as data. It holds no pixels, so that text, SVG and HTML can all show the same thing."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from typing import Any, Literal, TypeAlias

from ..errors import LayoutError

ScaleKind: TypeAlias = Literal["category", "ramp", "heat"]
OutlineKind: TypeAlias = Literal["tile", "face", "mark", "halo"]


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute that every cell of a grid has: its name, and a value for each cell, row by row.

    `scale` says how values become colours: separate ones for a `category`, or in order along a `ramp`, or from pale to
    dark as `heat`. None is the value of a cell that does not have the attribute.

    >>> Field("bank", (0, 1, 0, 1)).scale
    'category'
    """

    name: str
    values: tuple[Any, ...]
    scale: ScaleKind = "category"


@dataclass(frozen=True, slots=True)
class Outline:
    """A box drawn around cells: its first row and column, its height and width, and what it is.

    >>> Outline(0, 16, 16, 16, "face", "face 1").label
    'face 1'
    """

    row: int
    column: int
    rows: int
    columns: int
    kind: OutlineKind = "tile"
    label: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid, looked at on its own.

    >>> Cell(1, 2, {"offset": 9}, True).attributes["offset"]
    9
    """

    row: int
    column: int
    attributes: dict[str, Any] = dataclasses.field(hash=False)
    valid: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells in rows and columns, with attributes; `color` and `label` name the ones that are painted and written.

    `valid` tells data from padding (empty: all is data), which the legend calls `hatched`. `link` gives equal values to
    cells that are the same thing, in this grid or another one. `block` is how many rows and columns of elements one
    cell stands for.

    >>> grid = Grid(2, 2, (Field("offset", (0, 2, 1, 3), "ramp"),), color="offset", label="offset")
    >>> grid.cell(1, 0)
    Cell(row=1, column=0, attributes={'offset': 1}, valid=True)
    """

    rows: int
    columns: int
    fields: tuple[Field, ...] = ()
    title: str = ""
    color: str = ""
    label: str = ""
    valid: tuple[bool, ...] = ()
    link: tuple[Any, ...] = ()
    outlines: tuple[Outline, ...] = ()
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    row_axis: str = ""
    column_axis: str = ""
    block: tuple[int, int] = (1, 1)
    hatched: str = "padding"

    def __post_init__(self) -> None:
        count = self.rows * self.columns
        columns = {field.name: field.values for field in self.fields}
        for name, values in {**columns, "valid": self.valid, "link": self.link}.items():
            if len(values) != count and (name in columns or values):
                raise LayoutError(
                    f"a grid of {self.rows} x {self.columns} cells needs {count} values of {name!r}, got {len(values)}"
                )
        for role, name in (("color", self.color), ("label", self.label)):
            if name and name not in columns:
                raise LayoutError(f"{role}={name!r} is no attribute of the cells; use one of {', '.join(columns)}")
        for role, names, wanted in (
            ("row_names", self.row_names, self.rows),
            ("column_names", self.column_names, self.columns),
        ):
            if names and len(names) != wanted:
                raise LayoutError(f"{role} has {len(names)} names for {wanted}; give one each, or none")

    def field(self, name: str) -> Field:
        """Return the attribute of that name.

        >>> Grid(1, 2, (Field("bank", (0, 1)),)).field("bank").values
        (0, 1)
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise LayoutError(f"{name!r} is no attribute of the cells; use one of {', '.join(f.name for f in self.fields)}")

    def cell(self, row: int, column: int) -> Cell:
        """Return one cell with all its attributes.

        >>> Grid(1, 2, (Field("bank", (0, 1)),), valid=(True, False)).cell(0, 1).valid
        False
        """
        at = row * self.columns + column
        attributes = {field.name: field.values[at] for field in self.fields}
        return Cell(row, column, attributes, not self.valid or self.valid[at])

    def row_name(self, row: int) -> str:
        """Return what stands beside a row: its name, or the number of its first element.

        >>> Grid(4, 1, block=(32, 32)).row_name(3)
        '96'
        """
        return self.row_names[row] if self.row_names else str(row * self.block[0])

    def column_name(self, column: int) -> str:
        """Return what stands above a column: its name, or the number of its first element.

        >>> Grid(1, 2, column_names=("bank 0", "bank 1")).column_name(1)
        'bank 1'
        """
        return self.column_names[column] if self.column_names else str(column * self.block[1])


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a lane, such as a buffer in a bank or a transfer in time; `kind` decides its colour.

    A `hatched` span is there and not used: free or padding. `note` is told to whoever asks, `link` ties it to others.

    >>> Span(0, 1024, 3072, "weights").end - Span(0, 1024, 3072, "weights").start
    2048
    """

    lane: int
    start: float
    end: float
    label: str = ""
    kind: str = ""
    hatched: bool = False
    note: str = ""
    link: Any = None


@dataclass(frozen=True, slots=True)
class Lanes:
    """Lanes over one axis, with spans on them: memory maps (bytes) and schedules (time).

    >>> Lanes(("bank 0", "bank 1"), (Span(1, 0, 64, "a"),), end=128, unit="bytes").names[1]
    'bank 1'
    """

    names: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    start: float = 0
    end: float = 1
    unit: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        if not self.end > self.start:
            raise LayoutError(f"an axis from {self.start} to {self.end} has no room; end must be greater than start")
        for span in self.spans:
            if not 0 <= span.lane < len(self.names) or span.end < span.start:
                raise LayoutError(
                    f"{span} does not fit: lanes are 0 to {len(self.names) - 1}, and a span ends after it starts"
                )


@dataclass(frozen=True, slots=True)
class Fact:
    """A line beside the picture: what is known, and its value. `tone` marks what is good or bad.

    >>> Fact("bank conflicts", "8-way", "bad").tone
    'bad'
    """

    name: str
    value: str
    tone: Literal["plain", "good", "bad"] = "plain"


Panel: TypeAlias = "Grid | Lanes"


@dataclass(frozen=True, slots=True)
class Scene:
    """Panels that belong together, and the facts beside them.

    >>> Scene("two cells", (Grid(1, 2),)).panels[0].columns
    2
    """

    title: str
    panels: tuple[Panel, ...] = ()
    facts: tuple[Fact, ...] = ()
    note: str = ""


def to_data(scene: Scene) -> dict[str, Any]:
    """Return a scene as dictionaries and lists; each panel says whether it is a `grid` or `lanes`.

    >>> to_data(Scene("two", (Grid(1, 2),)))["panels"][0]["columns"]
    2
    """
    found: dict[str, Any] = _plain(scene)
    for panel, data in zip(scene.panels, found["panels"], strict=True):
        data["kind"] = "grid" if isinstance(panel, Grid) else "lanes"
    return found


def to_json(scene: Scene) -> str:
    """Return a scene as JSON.

    >>> json.loads(to_json(Scene("a title")))["title"]
    'a title'
    """
    return json.dumps(to_data(scene), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):  # JSON has no infinity
        return value if isfinite(value) else str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)
