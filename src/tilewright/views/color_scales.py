# SPDX-License-Identifier: Apache-2.0
"""Colours of values: told apart by people with any kind of colour vision, on light and on dark paper.

Categories use pale colours that were chosen to differ for the colour-blind (the "light" scheme of Paul Tol), then
darker and paler ones of the same hues. Ramps change lightness all the way, so that their order survives without hue.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from .scene import Field, Grid, Lanes, ScaleKind, Scene

Rgb: TypeAlias = tuple[int, int, int]

INK, PALE_INK = "#000000", "#ffffff"  # one of them has a contrast of 4.5 on any colour
NOTHING = "#e3e5e8"  # a cell without the attribute

_BASE = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
_ANCHORS = {
    "ramp": ("#2c4a8a", "#5b86b0", "#8fc0b0", "#cfe3a0", "#fff3b8"),
    "heat": ("#fff8e3", "#ffd98c", "#f29b4e", "#cf5238", "#7d1530"),
}
_LOG_FROM = 50  # times the median: heat beyond is spread by ratios
_LEVELS = 64  # steps of a ramp: more cannot be told apart, and fewer colours make smaller pictures


def _rgb(colour: str) -> Rgb:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _hex(rgb: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb)


def mixed(colour: str, other: str, share: float) -> str:
    """Return a colour with a share of another one mixed in.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    return _hex(a + (b - a) * share for a, b in zip(_rgb(colour), _rgb(other), strict=True))


CATEGORIES = (
    *_BASE,
    *[mixed(colour, "#ffffff", 0.55) for colour in _BASE],
    *[mixed(colour, "#000000", 0.28) for colour in _BASE],
    *[mixed(colour, "#000000", 0.52) for colour in _BASE],
)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it.

    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in _rgb(colour))]
    return round(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], 6)


def contrast(colour: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG defines it: 1 for none, 21 for black on white.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((luminance(colour), luminance(other)))
    return round((high + 0.05) / (low + 0.05), 4)


@lru_cache(maxsize=4096)
def ink_on(colour: str) -> str:
    """Return the ink that reads best on a colour.

    >>> ink_on("#eedd88") == INK, ink_on("#2c4a8a") == PALE_INK
    (True, True)
    """
    return INK if contrast(colour, INK) >= contrast(colour, PALE_INK) else PALE_INK


@lru_cache(maxsize=1024)
def along(kind: str, level: int) -> str:
    """Return the colour of a level, 0 to 63, of a ramp.

    >>> along("ramp", 0), along("ramp", 63)
    ('#2c4a8a', '#fff3b8')
    """
    anchors = _ANCHORS[kind]
    position = level / (_LEVELS - 1) * (len(anchors) - 1)
    at = min(int(position), len(anchors) - 2)
    return mixed(anchors[at], anchors[at + 1], position - at)


@dataclass(frozen=True, slots=True)
class Scale:
    """The colours of the values of an attribute: of named values, or between a lowest and a highest.

    With `log` equal ratios make equal steps, and what is not above `low` has the colour of `low`.

    >>> Scale("category", ("a", "b")).colour("b")
    '#ee8866'
    """

    kind: ScaleKind
    values: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False

    @property
    def named(self) -> bool:
        """Return whether every value has a colour of its own.

        >>> Scale("category", tuple(range(100))).named
        False
        """
        return self.kind == "category" and len(self.values) <= len(CATEGORIES)

    def colour(self, value: Any) -> str:
        """Return the colour of a value.

        >>> Scale("ramp", (), 0, 100).colour(100)
        '#fff3b8'
        """
        if value is None or value != value:  # NaN has no place on a scale
            return NOTHING
        if self.kind == "category":
            if self.named:
                return CATEGORIES[self.values.index(value)]
            return along("ramp", self.values.index(value) * (_LEVELS - 1) // (len(self.values) - 1))
        return along(self.kind, int(self.share(value) * (_LEVELS - 1) + 0.5))

    def share(self, value: Any) -> float:
        """Return how far along the scale a number lies, from 0 to 1.

        >>> Scale("ramp", (), 0, 100).share(25), Scale("heat", (), 1, 10000, log=True).share(100)
        (0.25, 0.5)
        """
        if self.high <= self.low or value <= self.low:
            return 0.0
        if value >= self.high:
            return 1.0
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return float((value - self.low) / (self.high - self.low))

    def colours(self, values: Iterable[Any]) -> dict[Any, str]:
        """Return the colour of every value that occurs.

        >>> Scale("category", (4, 7)).colours([7, 7, None])
        {7: '#ee8866', None: '#e3e5e8'}
        """
        wanted = dict.fromkeys(values)
        if self.kind != "category":
            colour = self.colour
            return {value: colour(value) for value in wanted}
        at = {value: k for k, value in enumerate(self.values)}
        if self.named:
            return {value: NOTHING if value is None else CATEGORIES[at[value]] for value in wanted}
        last = len(at) - 1
        return {value: NOTHING if value is None else along("ramp", at[value] * 63 // last) for value in wanted}


def scale_of(fields: Iterable[Field]) -> Scale:
    """Return the scale that colours these attributes alike: several grids may show the same one.

    >>> scale_of([Field("bank", (1, 0, 1))])
    Scale(kind='category', values=(0, 1), low=0, high=0, log=False)
    """
    given = list(fields)
    found = {value for field in given for value in field.values if value is not None}
    if given[0].scale == "category":
        try:
            return Scale("category", tuple(sorted(found)))
        except TypeError:  # values of several kinds have no order of their own
            return Scale("category", tuple(sorted(found, key=str)))
    finite = [value for value in found if value - value == 0]  # neither NaN nor infinite
    low, high = min(finite, default=0), max(finite, default=0)
    above = [value for value in finite if value > 0]
    if given[0].scale == "heat" and low >= 0 and above and high >= _LOG_FROM * sorted(above)[len(above) // 2]:
        return Scale("heat", (), min(above), high, log=True)  # one outlier would make all the others look alike
    return Scale(given[0].scale, (), low, high)


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
