# SPDX-License-Identifier: Apache-2.0
"""The pictures of the explorer: scenes of what the form describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from ...errors import TilewrightError
from ...layout import parse
from ...memory import Allocator, TensorSpec
from ...tiling import Schedule, Tiler
from ..html import panel_data, panel_markup
from ..scene import Fact, Scene
from ..scene_registry import scene_of
from ..scenes.memory_maps import memory_scene
from ..scenes.schedules import schedule_scene
from ..scenes.specs import spec_scene
from ..scenes.tilers import tiler_scene
from .form import (
    FieldError,
    FormFields,
    format_extents,
    parse_bytes,
    parse_integer,
    parse_integers,
    parse_spec,
    require_drawable,
    require_placement,
)

MOST_BUFFERS = 16
MOST_TILES_DRAWN = 24
MOST_SIDE = 64  # rows and columns of a picture on the page
MOST_TILE_SIDE = 32  # of the tiles of a pipeline, which only accompany its schedule


def placement_picture(fields: FormFields) -> Scene:
    """Return the pages of the spec, and the banks or cores that hold them.

    >>> len(placement_picture({"shape": "64x64", "chip": "n150"}).panels)
    2
    """
    spec = require_placement(require_drawable(parse_spec(fields)))
    return spec_scene(spec, side=MOST_SIDE)


def memory_picture(fields: FormFields) -> Scene:
    """Return the memory map of the spec, with circular buffers.

    >>> memory_picture({"shape": "64x64", "buffer": "l1", "chip": "n150"}).panels[0].unit
    'bytes'
    """
    spec = require_placement(require_drawable(parse_spec(fields)))
    allocator = Allocator(spec.known_chip)
    block = allocator.allocate(spec)
    names = {block.number: f"{format_extents(spec.shape.logical)} {spec.dtype}"}
    circular = parse_bytes(fields, "circular")
    if circular and spec.memory.buffer_type.is_l1:
        taken = allocator.reserve(allocator.start_address("l1"), circular, "l1")
        names[taken.number] = "circular buffers"
    return memory_scene(allocator, buffer_type=spec.memory.buffer_type, names=names, whole=bool(circular))


def pipeline_tiler(fields: FormFields) -> Tiler:
    """Return the tiler of the pipeline in the form.

    >>> pipeline_tiler({"shape": "64x64", "tile_moved": "32x64", "chip": "n150"}).count
    2
    """
    spec = parse_spec(fields)
    shape = spec.shape.logical or (1,)
    tile = parse_integers(fields, "tile_moved", format_extents(shape)) or _default_tile(spec)
    if len(tile) < len(shape):
        tile = (1,) * (len(shape) - len(tile)) + tile
    overlap = parse_integer(fields, "overlap", 0)
    halo = (0,) * (len(shape) - min(2, len(shape))) + (overlap,) * min(2, len(shape))
    try:
        return Tiler(shape, tile, overlap=halo)
    except TilewrightError as problem:
        raise FieldError("tile_moved", str(problem)) from None


def _default_tile(spec: TensorSpec) -> tuple[int, ...]:
    shape = spec.shape.logical
    rows = min(shape[-2], spec.tile.height) if len(shape) > 1 else 1
    return ((1,) * (len(shape) - 2) + (rows, shape[-1])) if len(shape) > 1 else shape or (1,)


def tiles_picture(fields: FormFields) -> Scene:
    """Return the tiles of the pipeline in the form.

    >>> tiles_picture({"shape": "64x64", "chip": "n150"}).title
    '64 x 64 in tiles of 32 x 64'
    """
    return tiler_scene(pipeline_tiler(fields), side=MOST_TILE_SIDE)


def schedule_picture(fields: FormFields) -> Scene:
    """Return the schedule of the pipeline in the form.

    >>> schedule_picture({"shape": "64x64", "scheme": "duplex", "chip": "n150"}).title
    'duplex buffering'
    """
    scheme = fields.get("scheme") or "double"
    depth = parse_integer(fields, "depth", 3 if scheme in ("buffered", "direct") else 2)
    if not 1 <= depth <= MOST_BUFFERS:
        raise FieldError("depth", f"depth {depth} is too large to draw; use 1 to {MOST_BUFFERS}")
    times = parse_integers(fields, "times", "1x2x1: import, compute, export", 3) or (2, 3, 2)
    if len(times) != 3 or not all(times):
        raise FieldError(
            "times", f"{fields.get('times')!r}: expected the times of import, compute and export, such as 1x2x1"
        )
    tiler = pipeline_tiler(fields)
    tiles = tiler.count
    if not tiles:
        raise FieldError("shape", "the tensor has no elements; give every dimension at least 1")
    try:
        schedule = Schedule(scheme, min(tiles, 1 << 40), depth=2 if scheme == "double" else depth)
    except TilewrightError as problem:
        raise FieldError("scheme", str(problem)) from None
    scene = schedule_scene(schedule, times=times, tiles=MOST_TILES_DRAWN)
    return replace(scene, facts=(*scene.facts, _buffer_fact(parse_spec(fields), tiler, schedule)))


def _buffer_fact(spec: TensorSpec, tiler: Tiler, schedule: Schedule) -> Fact:
    """Return how much L1 the buffers of a pipeline take, if elements have the format of the tensor."""
    each = -(-prod(tiler.largest_tile) * spec.page_bytes // spec.page_elements)
    total, available = len(schedule.buffers) * each, spec.known_chip.bank_bytes("l1")
    words = f"{len(schedule.buffers)} x {each} = {total} bytes, of {available} in the L1 of a core"
    return Fact("buffers", words, "good" if total <= available else "bad")


def layout_picture(fields: FormFields) -> Scene:
    """Return the picture of the layout in the form.

    >>> layout_picture({"notation": "(4,8):(8,1)"}).title
    '(4,8):(8,1)'
    """
    text = fields.get("notation", "").strip()
    if not text:
        raise FieldError("notation", "the layout is missing; write one, such as (4,8):(8,1) or Sw<3,0,3> o (8,8):(8,1)")
    try:
        return scene_of(parse(text), side=MOST_SIDE)
    except (TilewrightError, TypeError) as problem:
        raise FieldError("notation", str(problem)) from None


PICTURES: dict[str, Callable[[FormFields], Scene]] = {
    "placement": placement_picture,
    "memory": memory_picture,
    "tiles": tiles_picture,
    "schedule": schedule_picture,
    "layout": layout_picture,
}


def render_for_page(scene: Scene) -> dict[str, Any]:
    """Return a scene for the page: every panel as SVG, with the data shown on pointing.

    >>> from tilewright import row_major
    >>> sorted(render_for_page(scene_of(row_major(2, 2))))
    ['facts', 'note', 'panels', 'title']
    """
    return {
        "title": scene.title,
        "note": scene.note,
        "facts": [{"name": fact.name, "value": fact.value, "tone": fact.tone} for fact in scene.facts],
        "panels": [
            {"svg": svg, "data": panel_data(panel)}
            for svg, panel in zip(panel_markup(scene), scene.panels, strict=True)
        ],
    }
