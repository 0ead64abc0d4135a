# SPDX-License-Identifier: Apache-2.0
"""The pipeline of a tensor, drawn: its tiles, and when each is imported, computed and exported."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..errors import TilewrightError
from ..memory import TensorSpec
from ..tiling import Schedule, Tiler
from ..views.scene import Fact, Scene
from ..views.scenes.pipelines import schedule_scene, tiler_scene
from .form import (
    FieldError,
    FormFields,
    format_extents,
    parse_integer,
    parse_integers,
    parse_scene_options,
    parse_spec,
)

MOST_BUFFERS = 16
MOST_TILES_DRAWN = 24
MOST_TILE_SIDE = 32  # of the tiles, which only accompany the schedule


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
    return tiler_scene(pipeline_tiler(fields), side=MOST_TILE_SIDE, **parse_scene_options(fields))


def schedule_picture(fields: FormFields) -> Scene:
    """Return the schedule of the pipeline in the form.

    >>> schedule_picture({"shape": "64x64", "scheme": "duplex", "chip": "n150"}).title
    'duplex buffering'
    """
    scheme = fields.get("scheme") or "double"
    depth = parse_integer(fields, "depth", 3 if scheme in ("buffered", "direct") else 2)
    if not 1 <= depth <= MOST_BUFFERS:
        raise FieldError("depth", f"depth {depth} cannot be drawn; use 1 to {MOST_BUFFERS}")
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
