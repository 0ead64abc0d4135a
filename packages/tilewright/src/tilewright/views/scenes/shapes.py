# SPDX-License-Identifier: Apache-2.0
"""The scenes of a shape, with its padding, and of a memory config, with a tensor that it distributes; and a panel that
shows where in a larger space a box lies."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...layout import Box, row_major, with_logical_shape
from ...memory import Chip, MemoryConfig, Shape, TensorMemoryLayout, TensorSpec
from ..layout_grid import MAX_SIDE, sample_layout
from ..scene import Fact, Field, Grid, Scene
from ..scene_options import SceneOptions, scene_function
from .layouts import block_note, layout_panels, requested_attributes
from .specs import spec_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ELEMENT = "·"
_CHIP = "wormhole_n150"  # of the tensor that shows a config
_WRAPPED_PAGES, _MOST_ACROSS = 4, 17  # pages of the second round, and side by side, of interleaved memory


@scene_function
def shape_scene(shape: Shape, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]) -> Scene:
    """Return the elements of a shape as cells, with its padding.

    `side` is the most rows and columns that are drawn, and `title` that of the picture. `options` are those of every
    scene: cells have the attributes `element`, `offset`, and those of a layout.

    >>> import tilewright as tw
    >>> panel = shape_scene(tw.memory.Shape((14, 28), (32, 32))).panels[0]
    >>> panel.cell(13, 27).valid, panel.cell(14, 0).valid
    (True, False)
    """
    extents = shape.padded or (1,)
    logical = (1,) * (len(extents) - len(shape.logical)) + shape.logical
    sheet = sample_layout(with_logical_shape(row_major(*extents), logical), side)
    (grid,) = layout_panels(sheet, (), requested_attributes(options), memory=False)
    valid = grid.valid or (True,) * (grid.rows * grid.columns)
    elements = Field("element", tuple([_ELEMENT if is_data else None for is_data in valid]))
    grid = replace(grid, fields=(elements, *grid.fields), title="elements", color="element", label="element")
    facts = (
        Fact("elements", str(shape.logical_volume())),
        Fact("elements in the storage", str(shape.volume())),
        Fact("padding", f"{shape.volume() - shape.logical_volume()} elements"),
    )
    return Scene(title or str(shape), (grid,), facts, block_note(sheet))


def window_grid(space: tuple[int, ...], window: Box, side: int = MAX_SIDE) -> Grid | None:
    """Return a `window` in its `space`, planes below one another; None if they have more than `side` rows or columns.

    What lies outside the space is hatched, unless it belongs to the window.

    >>> grid = window_grid((3, 4), Box((-1, 2), (2, 3)))
    >>> grid.rows, grid.columns, grid.cell(1, 3).attributes["part"], grid.cell(1, 4).attributes["part"]
    (4, 5, 'inside', 'outside')
    """
    low = tuple([min(0, start) for start in window.offset])
    ends = zip(space, window.offset, window.shape, strict=True)
    extents = tuple([max(n, start + size) - first for (n, start, size), first in zip(ends, low, strict=True)])
    rows, columns = prod(extents[:-1]), extents[-1]
    if max(rows, columns) > side or not rows * columns:
        return None
    cells = [tuple(a + b for a, b in zip(at, low, strict=True)) for at in np.ndindex(extents)]
    inside = [all(0 <= c < n for c, n in zip(at, space, strict=True)) for at in cells]
    drawn = [all(a <= c < a + n for c, a, n in zip(at, window.offset, window.shape, strict=True)) for at in cells]
    parts = [("inside" if ok else "outside") if here else None for here, ok in zip(drawn, inside, strict=True)]
    names = [_coordinate(at, window.offset) if here else _ELEMENT for at, here in zip(cells, drawn, strict=True)]
    fields = (Field("part", tuple(parts)), Field("coordinate", tuple(names)))
    return Grid(
        rows,
        columns,
        fields,
        title="where it lies in its origin",
        color="part",
        label="coordinate",
        valid=tuple([here or ok for here, ok in zip(drawn, inside, strict=True)]),
        row_names=tuple([_coordinate(at[:-1]) for at in cells[::columns]]),
        column_names=tuple([str(at[-1]) for at in cells[:columns]]),
        row_axis="row",
        column_axis="column",
        hatched="outside the origin",
    )


def _coordinate(at: tuple[int, ...], start: tuple[int, ...] = ()) -> str:
    """Return a coordinate as text, counted from `start`."""
    return ",".join([str(a - b) for a, b in zip(at, start or (0,) * len(at), strict=True)])


def memory_config_scene(config: MemoryConfig, **options: object) -> Scene:
    """Return the scene of a tensor in tiles or rows that has one shard on every core of a `config`.

    Of an interleaved config, it is that of pages in turn over the banks, until they start again.

    `options` are those of the scene of a spec.

    >>> import tilewright as tw
    >>> memory = tw.TensorSpec((128, 128), page_layout="tile", memory=tw.block_sharded((2, 2))).memory
    >>> memory_config_scene(memory).panels[1].box_titles
    ('Core (0,0)', 'Core (1,0)', 'Core (0,1)', 'Core (1,1)')
    """
    sharding = config.sharding
    if sharding is None:
        banks = Chip.named(_CHIP).banks(config.buffer_type)
        pages = banks + min(banks, _WRAPPED_PAGES)
        across = max([n for n in range(1, _MOST_ACROSS + 1) if pages % n == 0])
        spec = TensorSpec((32 * (pages // across), 32 * across), "bfloat16", "tile", memory=config, chip=_CHIP)
        title = f"{config}: {pages} pages in turn over the {banks} banks of {_CHIP}"
        return spec_scene(spec, **{"title": title, **options})  # type: ignore[arg-type]  # which it checks
    count, box = sharding.grid.num_cores, sharding.grid.bounding_box
    *outer, height, width = (1, *sharding.shape)[-max(2, len(sharding.shape)) :]
    repeats = {
        TensorMemoryLayout.WIDTH_SHARDED: (1, count),
        TensorMemoryLayout.BLOCK_SHARDED: (box.height, box.width),
    }
    down, across = repeats.get(config.memory_layout, (count, 1))
    if config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED and sharding.orientation.name == "COL_MAJOR":
        down, across = across, down
    shape = (*outer, height * down, width * across)
    tiled = not height % 32 and not width % 32
    spec = TensorSpec(shape, "bfloat16", "tile" if tiled else "row_major", memory=config, chip=_CHIP)
    title = f"{config}; one shard of bfloat16 {'tiles' if tiled else 'rows'} on each"
    return spec_scene(spec, **{"title": title, **options})  # type: ignore[arg-type]  # which it checks
