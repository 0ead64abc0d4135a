# SPDX-License-Identifier: Apache-2.0
"""The options that every scene has: `label`, `color` and `address`; all others are refused by name.

They are applied to the finished scene, whatever it shows: `scene_function` adds them to a function that builds one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypedDict, cast

from ..errors import LayoutError
from .color_scales import HEXADECIMAL, format_value
from .scene import Fact, Field, Grid, Scene, Span, Tracks

if TYPE_CHECKING:
    from typing_extensions import Unpack  # noqa: F401  (for the examples)

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
    is "decimal" or "hex" and says how addresses and offsets are written. Cells that lack an attribute keep their own.

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
    named = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    own = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]

    @wraps(build)
    def draw(*args: Parameters.args, **options: Parameters.kwargs) -> Scene:
        kind = describe_kind(args[0]) if args else "this scene"
        refuse_unknown_options(kind, options, own, named)
        return choose_attributes(build(*args, **options), kind, cast("SceneOptions", options))

    return draw


def describe_kind(subject: Any) -> str:
    """Return the type of a subject with its article.

    >>> describe_kind(1), describe_kind([])
    ('an int', 'a list')
    """
    name = type(subject).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def refuse_unknown_options(kind: str, options: Iterable[str], own: Iterable[str], named: Iterable[str] = ()) -> None:
    """Raise an error that names the first of `options` that neither `own` nor `named` nor those of every scene have.

    >>> refuse_unknown_options("a Layout", ["label", "side"], ["side"])
    """
    known = {*own, *SceneOptions.__annotations__}
    for name in options:
        if name not in known and name not in named:
            raise SceneOptionError(f"{kind} cannot be drawn with {name!r}; its options are {', '.join(sorted(known))}")


def choose_attributes(scene: Scene, kind: str, options: SceneOptions) -> Scene:
    """Return a scene with the label, color and base of addresses of `options`; `kind` is its subject in messages.

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
            scene = _provide_attribute(scene, role, name, kind)
    panels = [_choose_in_panel(panel, labels, color) for panel in scene.panels]
    scene = replace(scene, panels=tuple(panels), labels=labels or scene.labels)
    return _write_hexadecimal(scene) if base == "hex" else scene


def _provide_attribute(scene: Scene, role: str, name: str, kind: str) -> Scene:
    """Return the scene with an attribute in at least one panel; one that a grid has by its geometry is added."""
    if any(name in _attribute_names(panel) for panel in scene.panels):
        return scene
    derived = [
        field if isinstance(panel, Grid) and (field := derived_field(panel, name)) else None for panel in scene.panels
    ]
    if not any(derived):
        known: dict[str, None] = {}
        for panel in scene.panels:
            known |= dict.fromkeys(_attribute_names(panel))
            if isinstance(panel, Grid):
                known |= dict.fromkeys(each for each in ("row", "column", "tile") if derived_field(panel, each))
        have = f"it has {', '.join(known)}" if known else "there is nothing to choose"
        raise SceneOptionError(f"{role}={name!r} is not an attribute of the picture of {kind}; {have}")
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
    known = _attribute_names(panel)
    chosen = tuple(name for name in labels if name in known)
    painted = color if color in known else ""
    if isinstance(panel, Grid):
        label = chosen[0] if len(chosen) == 1 else chosen
        return replace(panel, label=label or panel.label, color=painted or panel.color)
    return replace(panel, spans=tuple(_choose_in_span(span, chosen, painted) for span in panel.spans))


def _choose_in_span(span: Span, labels: tuple[str, ...], color: str) -> Span:
    words = " ".join(_position_text(_SPAN_FIELDS[name](span)) for name in labels)
    kind = span.kind if span.hatched or not color else _position_text(_SPAN_FIELDS[color](span))
    return replace(span, label=words if labels else span.label, kind=kind)


def _position_text(value: Any) -> str:
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
    """Return the names of rows or columns, of which those parts are addresses whose axis says so."""
    axes = axis.split(",")
    if not _ADDRESSES.intersection(axes):
        return names
    found = []
    for name in names:
        parts = name.split(",")
        found.append(
            ",".join(
                format_value(int(part), HEXADECIMAL) if each in _ADDRESSES and _is_integer(part) else part
                for each, part in zip(axes, parts, strict=True)
            )
            if len(parts) == len(axes)
            else name
        )
    return tuple(found)


def _is_integer(word: str) -> bool:
    return word.removeprefix("-").isdigit()


def _hexadecimal_tracks(tracks: Tracks) -> Tracks:
    if tracks.unit != "bytes":
        return tracks

    def write(span: Span) -> Span:
        note, label = span.note, span.label
        for place in (span.start, span.end):
            at = re.compile(rf"(?<![\w.]){place}(?![\w.])(?! bytes)")
            note, label = (at.sub(format_value(place, HEXADECIMAL), words) for words in (note, label))
        return replace(span, note=note, label=label)

    return replace(tracks, spans=tuple(map(write, tracks.spans)), hexadecimal=True)


def _hexadecimal_text(name: str, words: str) -> str:
    """Return words about addresses, such as the value of a fact with that `name`, with hexadecimal numbers."""
    if not _ABOUT_ADDRESSES.search(name):
        return words
    once = re.sub(r" \(0x[0-9a-f]+\)", "", words)
    return _NUMBER.sub(lambda number: format_value(int(number[0]), HEXADECIMAL), once)
