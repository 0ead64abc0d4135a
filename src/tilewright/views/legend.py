# SPDX-License-Identifier: Apache-2.0
"""The legend under a panel: which colour means which value, and what is hatched."""

from __future__ import annotations

from collections.abc import Sequence

from .colours import Scale, along
from .drawing import LINE, Drawing, attribute, hatching, text, width_of
from .paint import hatched_kinds, kinds_of, written
from .scene import Grid, Lanes

_SIZE = 10
_MOST = 32
_BAR = 120


def legend_of(panel: Grid | Lanes, scales: dict[str, Scale], room: float, again: bool = False) -> Drawing:
    """Return the legend of a panel within a width, empty where there is nothing to say.

    `again` leaves out the colours, where a panel before it has explained them.

    >>> legend_of(Grid(1, 1), {}, 100).height
    0
    """
    if isinstance(panel, Lanes):
        scale = scales["kind"]
        entries = [(scale.colour(kind), kind) for kind in kinds_of(panel) if kind]
        return _swatches("", [] if again else entries, () if again else hatched_kinds(panel), room)
    hatched = (panel.hatched,) if panel.valid and not all(panel.valid) and panel.hatched else ()
    if not panel.color or again:
        return _swatches("", [], hatched, room)
    scale = scales[panel.color]
    if scale.named:
        seen = set(panel.field(panel.color).values)
        entries = [(scale.colour(value), written(value)) for value in scale.values if value in seen]
        return _swatches(panel.color, entries, hatched, room)
    return _bar(panel.color, scale, "".join(hatched))


def _swatches(name: str, entries: Sequence[tuple[str, str]], hatched: Sequence[str], room: float) -> Drawing:
    body = []
    x, y = 0.0, 0
    if name and entries:
        body.append(text(0, 11, name, _SIZE, "soft"))
        x = width_of(name, _SIZE) + 10
    indent = x
    shown = [*entries[:_MOST], *([("", f"and {len(entries) - _MOST} more")] if len(entries) > _MOST else [])]
    widest = x
    hatches = [("crossed" if k else "hatched", word) for k, word in enumerate(hatched)]
    for colour, word in [*shown, *hatches]:
        needed = 18 + width_of(word, _SIZE) + 8
        if x > indent and x + needed > room:
            x, y = indent, y + 16
        if colour:
            body.append(_swatch(x, y + 2, colour))
        body.append(text(x + 15, y + 11, word, _SIZE))
        x += needed
        widest = max(widest, x)
    return Drawing(widest, y + 16 if body else 0, tuple(body))


def _swatch(x: float, y: float, colour: str) -> str:
    hatched = colour in ("hatched", "crossed")
    fill = "none" if hatched else colour
    box = f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="2" fill="{fill}" class="tw-line" stroke="{LINE}"/>'
    return box + (hatching([(x, y, 11, 11)], 4, colour == "crossed") if hatched else "")


def _bar(name: str, scale: Scale, hatched: str) -> Drawing:
    """Return a ramp of colours with its ends; values too many to name are a ramp, too."""
    low, high = (scale.values[0], scale.values[-1]) if scale.kind == "category" else (scale.low, scale.high)
    kind = "ramp" if scale.kind == "category" else scale.kind
    name += " (log)" if scale.log else ""
    start = width_of(f"{name} {written(low)}", _SIZE) + 6
    body = [text(0, 11, name, _SIZE, "soft"), text(start - 6, 11, written(low), _SIZE, "soft", "end")]
    step = _BAR // 16
    for k in range(16):
        colour = attribute(along(kind, k * 63 // 15))
        body.append(f'<rect x="{start + k * step:g}" y="2" width="{step}" height="11" fill="{colour}"/>')
    end = start + 16 * step + 6
    body.append(text(end, 11, written(high), _SIZE, "soft"))
    end += width_of(written(high), _SIZE) + 12
    if hatched:
        body += [_swatch(end, 2, "hatched"), text(end + 15, 11, hatched, _SIZE)]
        end += 15 + width_of(hatched, _SIZE)
    return Drawing(end, 16, tuple(body))
