# SPDX-License-Identifier: Apache-2.0
"""The options that every scene has: `label`, `color` and `address`; all others are refused by name.

They are applied to the finished scene, whatever it shows: `scene_function` adds them to a function that builds one.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypedDict, cast

from .._text import format_number
from ..errors import LayoutError
from .scene import Fact, Field, Grid, ScaleKind, Scene, Span, Tracks

if TYPE_CHECKING:
    from typing_extensions import Unpack  # noqa: F401  (for the examples)


# Color scales of values, readable with any kind of color vision, on light and dark backgrounds.

Rgb: TypeAlias = tuple[int, int, int]

DARK_INK, PALE_INK = "#000000", "#ffffff"  # one of them has a contrast of 4.5 on any color
NOTHING = "#e3e5e8"  # a cell without the attribute

_BASE = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
_ANCHORS = {
    "ramp": ("#2c4a8a", "#5b86b0", "#8fc0b0", "#cfe3a0", "#fff3b8"),
    "heat": ("#fff8e3", "#ffd98c", "#f29b4e", "#cf5238", "#7d1530"),
}
_LOG_FROM = 50  # if the maximum is this many times the median, heat is logarithmic
_LEVELS = 64  # steps of a ramp: more cannot be distinguished, and fewer make smaller pictures


def _parse_color(color: str) -> Rgb:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _format_color(rgb: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb)


def mix_colors(color: str, other: str, share: float) -> str:
    """Return the mix of two colors; `share` is the share of the second.

    >>> mix_colors("#000000", "#ffffff", 0.5)
    '#808080'
    """
    return _format_color(a + (b - a) * share for a, b in zip(_parse_color(color), _parse_color(other), strict=True))


CATEGORIES = (
    *_BASE,
    *[mix_colors(color, "#ffffff", 0.55) for color in _BASE],
    *[mix_colors(color, "#000000", 0.28) for color in _BASE],
    *[mix_colors(color, "#000000", 0.52) for color in _BASE],
)


def luminance(color: str) -> float:
    """Return the relative luminance of a color, as WCAG defines it.

    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in _parse_color(color))
    ]
    return round(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], 6)


def contrast(color: str, other: str) -> float:
    """Return the contrast of two colors, as WCAG defines it: 1 for none, 21 for black on white.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((luminance(color), luminance(other)))
    return round((high + 0.05) / (low + 0.05), 4)


@lru_cache(maxsize=4096)
def text_color_on(color: str) -> str:
    """Return black or white, whichever has more contrast on a color.

    >>> text_color_on("#eedd88") == DARK_INK, text_color_on("#2c4a8a") == PALE_INK
    (True, True)
    """
    return DARK_INK if contrast(color, DARK_INK) >= contrast(color, PALE_INK) else PALE_INK


@lru_cache(maxsize=1024)
def ramp_color(kind: str, level: int) -> str:
    """Return the color of a level (0 to 63) of a ramp.

    >>> ramp_color("ramp", 0), ramp_color("ramp", 63)
    ('#2c4a8a', '#fff3b8')
    """
    anchors = _ANCHORS[kind]
    position = level / (_LEVELS - 1) * (len(anchors) - 1)
    at = min(int(position), len(anchors) - 2)
    return mix_colors(anchors[at], anchors[at + 1], position - at)


@dataclass(frozen=True, slots=True)
class Scale:
    """The colors of an attribute: of listed values, or between a lowest and a highest.

    With `log` the scale is logarithmic; values up to `low` have the color of `low`. `form` is the attribute's form.

    >>> Scale("category", ("a", "b")).color("b")
    '#ee8866'
    """

    kind: ScaleKind
    values: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False
    form: str = "{}"

    @property
    def has_distinct_colors(self) -> bool:
        """Whether every value has a distinct color.

        >>> Scale("category", tuple(range(100))).has_distinct_colors
        False
        """
        return self.kind == "category" and len(self.values) <= len(CATEGORIES)

    def color(self, value: Any) -> str:
        """Return the color of a value.

        >>> Scale("ramp", (), 0, 100).color(100)
        '#fff3b8'
        """
        if value is None or value != value:  # NaN has no place on a scale
            return NOTHING
        if self.kind == "category":
            return self._category_color(self.values.index(value))
        return ramp_color(self.kind, int(self.share(value) * (_LEVELS - 1) + 0.5))

    def share(self, value: float) -> float:
        """Return the position of a number on the scale, from 0 to 1.

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

    def colors(self, values: Iterable[Any]) -> dict[Any, str]:
        """Return the color of every value that occurs.

        >>> Scale("category", (4, 7)).colors([7, 7, None])
        {7: '#ee8866', None: '#e3e5e8'}
        """
        distinct = dict.fromkeys(values)
        if self.kind != "category":
            return {value: self.color(value) for value in distinct}
        positions = {value: k for k, value in enumerate(self.values)}
        return {value: NOTHING if value is None else self._category_color(positions[value]) for value in distinct}

    def _category_color(self, position: int) -> str:
        if self.has_distinct_colors:
            return CATEGORIES[position]
        return ramp_color("ramp", position * (_LEVELS - 1) // (len(self.values) - 1))


def make_scale(fields: Iterable[Field]) -> Scale:
    """Return one scale for these attributes, which may belong to several grids.

    >>> make_scale([Field("bank", (1, 0, 1))])
    Scale(kind='category', values=(0, 1), low=0, high=0, log=False, form='{}')
    """
    listed = list(fields)
    form = listed[0].form
    values = {value for field in listed for value in field.values if value is not None}
    if listed[0].scale == "category":
        try:
            return Scale("category", tuple(sorted(values)), form=form)
        except TypeError:  # values of different types cannot be compared
            return Scale("category", tuple(sorted(values, key=str)), form=form)
    finite = [value for value in values if value - value == 0]  # neither NaN nor infinite
    low, high = min(finite, default=0), max(finite, default=0)
    above = [value for value in finite if value > 0]
    if listed[0].scale == "heat" and low >= 0 and above and high >= _LOG_FROM * sorted(above)[len(above) // 2]:
        return Scale("heat", (), min(above), high, True, form)  # an outlier would hide all other differences
    low = min(low, 0) if form == BYTES else low  # sizes are compared with nothing
    return Scale(listed[0].scale, (), low, high, form=form)


HEXADECIMAL = "0x{:X}"  # the form of addresses
BYTES = "{:B}"  # the form of sizes: short in a cell, exact where it is pointed at
MAX_CHARACTERS = 14  # characters of an attribute in a label


def format_value(value: Any, form: str = "{}") -> str:
    """Return a value as the label of a cell; `form` is its attribute's form.

    >>> format_value(7), format_value(0.1234), format_value((1, 2)), format_value(None), format_value(7, "P{}")
    ('7', '0.12', '1,2', '', 'P7')
    >>> format_value(100.0), format_value(1234.5)
    ('100', '1234')
    >>> format_value(98304, BYTES), format_value(1000, BYTES)
    ('96K', '1000')
    """
    if value is None:
        return ""
    if form == HEXADECIMAL and value < 0:
        return "-" + form.format(-value)
    if form == BYTES:
        return _format_size(value)
    if form != "{}":
        return form.format(value)
    if isinstance(value, float):
        return format_number(value, 2)
    return ",".join(map(format_value, value)) if isinstance(value, tuple) else str(value)


def _format_size(count: float) -> str:
    """Return bytes in at most four or five characters, such as 96K or 1.5M."""
    size, unit = float(count), ""
    for larger in "KMGT":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g}{unit}" if size < 1000 else f"{size:.0f}{unit}"


def cell_labels(grid: Grid, *names: str) -> list[str]:
    """Return the labels of all cells for the attributes `names`, each shortened if it is long.

    >>> cell_labels(Grid(1, 2, (Field("name", ("a", "a name that goes on")),)), "name")
    ['a', 'a name that g…']
    """
    columns = [
        [_shorten_label(format_value(value, field.form)) for value in field.values] for field in map(grid.field, names)
    ]
    return [" ".join(filter(None, words)) for words in zip(*columns, strict=True)]


def _shorten_label(word: str) -> str:
    return word if len(word) <= MAX_CHARACTERS else word[: MAX_CHARACTERS - 1] + "…"


def candidate_labels(grid: Grid) -> Iterator[list[str]]:
    """Yield possible labels of the cells, best first: the label attributes, then the color attribute.

    >>> grid = Grid(1, 1, (Field("thread", (5,)), Field("holds", ("T5 V0",))), color="thread", label="holds")
    >>> list(candidate_labels(grid))
    [['T5 V0'], ['5']]
    """
    for names in dict.fromkeys((grid.labels, (grid.color,) if grid.labels and grid.color else ())):
        if names:
            yield cell_labels(grid, *names)


def make_scales(scene: Scene) -> dict[str, Scale]:
    """Return the color scale of every colored attribute of a scene.

    >>> left, right = Grid(1, 1, (Field("bank", (0,)),), color="bank"), Grid(1, 1, (Field("bank", (1,)),), color="bank")
    >>> make_scales(Scene("banks", (left, right)))["bank"].values
    (0, 1)
    """
    painted: dict[str, list[Field]] = {}
    for panel in scene.panels:
        if isinstance(panel, Grid) and panel.color:
            painted.setdefault(panel.color, []).append(panel.field(panel.color))
        elif isinstance(panel, Tracks):
            painted.setdefault("kind", []).append(Field("kind", colored_kinds(panel)))
    return {name: make_scale(fields) for name, fields in painted.items()}


def colored_kinds(tracks: Tracks) -> tuple[str, ...]:
    """Return the kinds of spans that are colored rather than hatched.

    >>> from tilewright.views.scene import Span
    >>> colored_kinds(Tracks(("bank 0",), (Span(0, 0, 1, kind="a"), Span(0, 1, 2, kind="free", hatched=True)), end=2))
    ('a',)
    """
    return tuple(dict.fromkeys(span.kind for span in tracks.spans if not span.hatched))


def cell_colors(grid: Grid, scales: dict[str, Scale]) -> list[str]:
    """Return the color of every cell, row by row; empty if the grid has no color attribute.

    >>> grid = Grid(1, 2, (Field("bank", (0, 1)),), color="bank")
    >>> cell_colors(grid, make_scales(Scene("", (grid,))))
    ['#77aadd', '#ee8866']
    """
    if not grid.color:
        return []
    values = grid.field(grid.color).values
    colors = scales[grid.color].colors(values)
    return [colors[value] for value in values]


def hatched_kinds(tracks: Tracks) -> tuple[str, ...]:
    """Return the kinds of spans that are hatched, "free" first.

    >>> from tilewright.views.scene import Span
    >>> hatched_kinds(Tracks(("bank 0",), (Span(0, 0, 1, kind="a"), Span(0, 1, 2, kind="free", hatched=True)), end=2))
    ('free',)
    """
    kinds = dict.fromkeys(span.kind or "unused" for span in tracks.spans if span.hatched)
    return tuple(sorted(kinds, key=lambda kind: kind != "free"))


Parameters = ParamSpec("Parameters")
AddressBase: TypeAlias = Literal["decimal", "hex"]
_ADDRESSES = frozenset(("address", "offset", "addr"))  # attributes and axes whose numbers are addresses
_ABOUT_ADDRESSES = re.compile(r"(?:^|: )(?:address|offset|first scalar)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?!\w|%|\.\d)")
_SPAN_FIELDS: dict[str, Callable[[Span], Any]] = {
    "name": lambda span: span.label,
    "kind": lambda span: span.kind,
    "start": lambda span: span.start,
    "end": lambda span: span.end,
    "size": lambda span: span.end - span.start,
}


class SceneOptions(TypedDict, total=False):
    """The options of every scene.

    `label` names the attribute, or the attributes, written into the cells; `color` the one that colors them; `address`
    is "decimal" or "hex" and decides how addresses and offsets are written. Cells that lack an attribute keep their
    own.

    >>> options: SceneOptions = {"label": "page", "address": "hex"}
    >>> sorted(options)
    ['address', 'label']
    """

    label: str | Sequence[str]
    color: str
    address: AddressBase


class SceneOptionError(LayoutError, TypeError):
    """An option that a scene does not have, or a value that it does not take: also a `TypeError`.

    >>> import tilewright as tw
    >>> try:
    ...     tw.row_major(4, 8).show(hex=True)
    ... except TypeError as problem:
    ...     print(problem)
    a Layout cannot be drawn with 'hex'; its options are address, color, itemsize, label, memory, side, title
    """


def scene_function(build: Callable[Parameters, Scene]) -> Callable[Parameters, Scene]:
    """Return a function that builds a scene with the options of every scene; unknown ones are refused by name.

    `build` gets the options as well, so that it can add the attributes that they name.

    >>> @scene_function
    ... def one_cell(subject: str, *, title: str = "", **options: Unpack[SceneOptions]) -> Scene:
    ...     return Scene(title, (Grid(1, 1, (Field("address", (255,)),)),))
    >>> one_cell("it", label="address", address="hex").panels[0].field("address").form
    '0x{:X}'
    """
    parameters = inspect.signature(build).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    own = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]

    @wraps(build)
    def draw(*args: Parameters.args, **options: Parameters.kwargs) -> Scene:
        subject = describe_type(args[0]) if args else "this scene"
        refuse_unknown_options(subject, options, own, names)
        return choose_attributes(build(*args, **options), subject, cast("SceneOptions", options))

    return draw


def describe_type(subject: object) -> str:
    """Return the type of a subject with its article.

    >>> describe_type(1), describe_type([])
    ('an int', 'a list')
    """
    name = type(subject).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def refuse_unknown_options(noun: str, options: Iterable[str], own: Iterable[str], named: Iterable[str] = ()) -> None:
    """Raise an error for the first of `options` that is not in `own`, in `named` or among the common options.

    >>> refuse_unknown_options("a Layout", ["label", "side"], ["side"])
    """
    known = {*own, *SceneOptions.__annotations__}
    for name in options:
        if name not in known and name not in named:
            raise SceneOptionError(f"{noun} cannot be drawn with {name!r}; its options are {', '.join(sorted(known))}")


def choose_attributes(scene: Scene, subject: str, options: SceneOptions) -> Scene:
    """Return a scene with the label, color and base of addresses of `options`; `subject` is its subject in messages.

    >>> grid = Grid(1, 2, (Field("page", (0, 1)), Field("bank", (3, 4))), color="page", label="page")
    >>> choose_attributes(Scene("", (grid,)), "a spec", {"label": "bank"}).panels[0].label
    'bank'
    """
    label, color, base = options.get("label") or (), options.get("color") or "", options.get("address") or "decimal"
    if base not in ("decimal", "hex"):
        raise SceneOptionError(f'address={base!r}: expected "decimal" or "hex"')
    labels = (label,) if isinstance(label, str) else tuple(label)
    for role, names in (("label", labels), ("color", (color,) if color else ())):
        for name in names:
            scene = _provide_attribute(scene, role, name, subject)
    panels = [_choose_in_panel(panel, labels, color) for panel in scene.panels]
    scene = replace(scene, panels=tuple(panels), labels=labels or scene.labels)
    return _write_hexadecimal(scene) if base == "hex" else scene


def _provide_attribute(scene: Scene, role: str, name: str, subject: str) -> Scene:
    """Return the scene with an attribute in at least one panel; one that a grid has by its geometry is added."""
    if any(name in _attribute_names(panel) for panel in scene.panels):
        return scene
    derived = [
        field if isinstance(panel, Grid) and (field := derived_field(panel, name)) else None for panel in scene.panels
    ]
    if not any(derived):
        attributes: dict[str, None] = {}
        for panel in scene.panels:
            attributes |= dict.fromkeys(_attribute_names(panel))
            if isinstance(panel, Grid):
                attributes |= dict.fromkeys(axis for axis in ("row", "column", "tile") if derived_field(panel, axis))
        have = f"it has {', '.join(attributes)}" if attributes else "it has none"
        raise SceneOptionError(f"{role}={name!r} is not an attribute of the picture of {subject}; {have}")
    return replace(
        scene,
        panels=tuple(
            replace(panel, fields=(*panel.fields, field)) if isinstance(panel, Grid) and field else panel
            for panel, field in zip(scene.panels, derived, strict=True)
        ),
    )


def _attribute_names(panel: Grid | Tracks) -> tuple[str, ...]:
    return tuple(field.name for field in panel.fields) if isinstance(panel, Grid) else tuple(_SPAN_FIELDS)


def derived_field(grid: Grid, name: str) -> Field | None:
    """Return the row, column or tile of every cell of a `grid`, or None if it has no such attribute.

    >>> derived_field(Grid(2, 2, block=(32, 32)), "row").values
    (0, 0, 32, 32)
    """
    cells = [divmod(at, grid.columns) for at in range(grid.rows * grid.columns)]
    if name == "row" and not grid.boxes:
        return _name_field(name, [grid.row_name(row) for row, _ in cells])
    if name == "column" and not grid.boxes:
        return _name_field(name, [grid.column_name(column) for _, column in cells])
    tiles = [box for box in grid.outlines if box.kind == "tile" and not box.label]  # not shards, which have names
    if name != "tile" or not tiles:
        return None
    number = [0] * len(cells)
    for k, box in enumerate(tiles):
        for row in range(box.row, box.row + box.rows):
            start = row * grid.columns + box.column
            number[start : start + box.columns] = [k] * box.columns
    return Field(name, tuple(number))


def _name_field(name: str, values: list[str]) -> Field:
    """Return the names of the rows or columns of all cells: as numbers along a ramp, if all of them are."""
    if all(value.isdigit() for value in values):
        return Field(name, tuple(map(int, values)), "ramp")
    return Field(name, tuple(values))


def _choose_in_panel(panel: Grid | Tracks, labels: tuple[str, ...], color: str) -> Grid | Tracks:
    attributes = _attribute_names(panel)
    chosen = tuple(name for name in labels if name in attributes)
    painted = color if color in attributes else ""
    if isinstance(panel, Grid):
        label = chosen[0] if len(chosen) == 1 else chosen
        return replace(panel, label=label or panel.label, color=painted or panel.color)
    return replace(panel, spans=tuple(_choose_in_span(span, chosen, painted) for span in panel.spans))


def _choose_in_span(span: Span, labels: tuple[str, ...], color: str) -> Span:
    words = " ".join(_position_text(_SPAN_FIELDS[name](span)) for name in labels)
    kind = span.kind if span.hatched or not color else _position_text(_SPAN_FIELDS[color](span))
    return replace(span, label=words if labels else span.label, kind=kind)


def _position_text(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _write_hexadecimal(scene: Scene) -> Scene:
    """Return a scene in which addresses and offsets are hexadecimal: in cells, names, axes, notes and facts."""
    return replace(
        scene,
        panels=tuple(_hexadecimal_grid(p) if isinstance(p, Grid) else _hexadecimal_tracks(p) for p in scene.panels),
        facts=tuple(Fact(fact.name, _hexadecimal_text(fact.name, fact.value), fact.tone) for fact in scene.facts),
        note=_hexadecimal_text(scene.note, scene.note),
    )


def _hexadecimal_grid(grid: Grid) -> Grid:
    return replace(
        grid,
        fields=tuple(
            replace(field, form=HEXADECIMAL)
            if field.name in _ADDRESSES and all(value is None or isinstance(value, int) for value in field.values)
            else field
            for field in grid.fields
        ),
        row_names=_hexadecimal_names(grid.row_axis, grid.row_names),
        column_names=_hexadecimal_names(grid.column_axis, grid.column_names),
        box_rows=tuple(_hexadecimal_names(grid.row_axis, names) for names in grid.box_rows),
    )


def _hexadecimal_names(axis: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of rows or columns, with addresses in the parts whose axis asks for them."""
    axes = axis.split(",")
    if not _ADDRESSES.intersection(axes):
        return names
    texts = []
    for name in names:
        parts = name.split(",")
        texts.append(
            ",".join(
                format_value(int(part), HEXADECIMAL) if axis_name in _ADDRESSES and _is_integer(part) else part
                for axis_name, part in zip(axes, parts, strict=True)
            )
            if len(parts) == len(axes)
            else name
        )
    return tuple(texts)


def _is_integer(word: str) -> bool:
    return word.removeprefix("-").isdigit()


def _hexadecimal_tracks(tracks: Tracks) -> Tracks:
    if tracks.unit != "bytes":
        return tracks

    def write(span: Span) -> Span:
        note, label = span.note, span.label
        for address in (span.start, span.end):
            at = re.compile(rf"(?<![\w.]){address}(?![\w.])(?! bytes)")
            note, label = (at.sub(format_value(address, HEXADECIMAL), words) for words in (note, label))
        return replace(span, note=note, label=label)

    return replace(tracks, spans=tuple(map(write, tracks.spans)), hexadecimal=True)


def _hexadecimal_text(name: str, words: str) -> str:
    """Return words about addresses, such as the value of a fact with that `name`, with hexadecimal numbers."""
    if not _ABOUT_ADDRESSES.search(name):
        return words
    once = re.sub(r" \(0x[0-9a-f]+\)", "", words)
    return _NUMBER.sub(lambda number: format_value(int(number[0]), HEXADECIMAL), once)
