# SPDX-License-Identifier: Apache-2.0
"""Memory as a grid, beside the coordinates of a layout: in rows of offsets, by named axes, or tile by tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import LayoutError
from ..layout_grid import MAX_SIDE
from ..scene import Field, Grid, Outline

_MOST_FROM_ZERO = 1024  # offsets up to which memory is drawn from its start
_MOST_BOXES = 256  # tiles that memory is drawn in
_MOST = MAX_SIDE * MAX_SIDE


def tiled_memory_grid(grid: Grid, elements: list[str], offsets: Any, requested: tuple[str, ...] = ()) -> Grid | None:
    """Return memory tile by tile, with the offset of every row; None unless each tile is one block of memory.

    Tiles that consist of faces are drawn face by face. `grid` has the coordinates with their tiles outlined, `elements`
    names them, `offsets` are their places, and `requested` the attributes that memory is to have as well.

    >>> from tilewright import row_major, blocked_product
    >>> from tilewright.views import scene_of
    >>> memory = scene_of(blocked_product(row_major(2, 2), row_major(1, 2))).panels[1]
    >>> memory.title, memory.boxes, memory.box_rows
    ('memory, tile by tile', (2, 2), (('0', '2'), ('4', '6')))
    """
    has_faces = any(box.kind == "face" for box in grid.outlines)
    boxes = {(box.rows, box.columns) for box in grid.outlines if box.kind == ("face" if has_faces else "tile")}
    if len(boxes) != 1:
        return None
    ((high, wide),) = boxes
    down, across = grid.rows // high, grid.columns // wide
    if (down * high, across * wide) != (grid.rows, grid.columns) or down * across > _MOST_BOXES:
        return None
    tiles = offsets.reshape(down, high, across, wide).transpose(0, 2, 1, 3).reshape(down * across, high * wide)
    if not (np.diff(tiles, axis=1) == 1).all():
        return None
    shared_fields = dict.fromkeys((grid.color, *(name for name in requested if name != "element")))
    fields = [field for field in grid.fields if field.name in shared_fields]
    return Grid(
        grid.rows,
        grid.columns,
        (Field("element", tuple(elements)), *fields),
        title="memory, face by face" if has_faces else "memory, tile by tile",
        color=grid.color,
        label="element",
        valid=grid.valid,
        link=grid.link,
        row_axis="offset",
        boxes=(high, wide),
        box_rows=tuple(tuple(str(start) for start in tile[::wide].tolist()) for tile in tiles),
    )


def memory_grid(
    grid: Grid,
    elements: list[str],
    places: dict[str, Any],
    link: Any,
    valid: Any,
    scalars: tuple[int, ...] = (0,),
    padding: bool = True,
    requested: tuple[str, ...] = (),
) -> Grid | None:
    """Return memory as a grid, colored like the grid of coordinates; None if it is too large to draw.

    `elements` names each coordinate. Offsets are folded into rows; of named axes the first goes across, the others
    down. `scalars` are the offsets of the scalars of an element from its first one; `padding` says whether padding
    has places, and `requested` names attributes of the coordinates that memory is to have, too.

    >>> logical = Grid(1, 2, (Field("offset", (0, 2), "ramp"),), color="offset")
    >>> offsets, valid = np.array([[0, 2]]), np.array([True, True])
    >>> memory = memory_grid(logical, ["0,0", "0,1"], {"offset": offsets}, offsets.reshape(-1), valid)
    >>> memory.columns, memory.field("element").values
    (3, ('0,0', None, '0,1'))
    """
    here = np.arange(len(elements)) if padding else np.flatnonzero(valid)
    if not len(here):
        return None
    which = np.repeat(here, len(scalars))  # the cell of each scalar
    tables = {
        name: (table.reshape(-1)[here][:, None] + np.array(scalars)).reshape(-1) for name, table in places.items()
    }
    (first, across), *others = tables.items()
    if not others:
        low, high = int(across.min()), int(across.max())
        width = _memory_columns(grid.columns, _row_step(places[first]), high + 1 - min(low, 0))
        low = 0 if 0 < low <= high < _MOST_FROM_ZERO else low - low % width
        rows = -(-(high + 1 - low) // width)
        at = across - low
        shape, row_names = (rows, width), tuple(str(low + row * width) for row in range(rows))
        names: tuple[str, ...] = tuple(f"+{k}" for k in range(width))
        axes = ("offset", "")
    else:
        columns, column = np.unique(across, return_inverse=True)
        rest = np.stack([table for _, table in others], axis=1)
        down, row = np.unique(rest, axis=0, return_inverse=True)
        at = row.reshape(-1) * len(columns) + column.reshape(-1)
        shape = (len(down), len(columns))
        row_names = tuple(",".join(map(str, entry)) for entry in down.tolist())
        names = tuple(map(str, columns.tolist()))
        axes = (",".join(name for name, _ in others), first)
    if shape[0] * shape[1] > _MOST:
        return None
    shared_fields = tuple(field for field in grid.fields if field.name in (grid.color, *requested))
    return _build_memory_grid(
        grid, shared_fields, elements, which, at, link, valid.reshape(-1), shape, row_names, names, axes
    )


def _row_step(offsets: Any) -> int:
    """Return the offset from the first row of a layout to the next."""
    return int(offsets[1, 0] - offsets[0, 0]) if len(offsets) > 1 else 0


def _memory_columns(columns: int, row_step: int, size: int) -> int:
    """Return the number of offsets per row: that of a row of the layout with what is beside it, if it is at most 64."""
    whole_rows = columns == row_step >= 4 and size <= 32 * columns
    if columns < row_step <= min(64, size) or whole_rows:
        return row_step
    return min(columns if 8 <= columns <= 64 else 32 if size > 64 else 16, size)


def _build_memory_grid(
    grid: Grid,
    shared_fields: tuple[Field, ...],
    elements: list[str],
    which: Any,
    at: Any,
    link: Any,
    valid: Any,
    shape: tuple[int, int],
    row_names: tuple[str, ...],
    column_names: tuple[str, ...],
    axes: tuple[str, str],
) -> Grid:
    count = shape[0] * shape[1]
    held: list[Any] = [None] * count
    shown: list[list[Any]] = [[None] * count for _ in shared_fields]
    links: list[Any] = [None] * count
    data = [False] * count
    shared = [0] * count
    alive, same = valid.tolist(), link.tolist()
    for place, k in zip(at.tolist(), which.tolist(), strict=True):
        shared[place] += 1
        if held[place] is None or (alive[k] and not data[place]):
            held[place], links[place], data[place] = elements[k], same[k], alive[k]
            for values, field in zip(shown, shared_fields, strict=True):
                values[place] = field.values[k]
    fields = [Field("element", tuple(held))]
    fields += [replace(field, values=tuple(values)) for values, field in zip(shown, shared_fields, strict=True)]
    if max(shared) > 1:
        fields.append(Field("elements here", tuple(shared), "ramp"))
    return Grid(
        *shape,
        tuple(fields),
        title="memory",
        color=grid.color,
        label="element",
        valid=() if all(data) else tuple(data),
        link=tuple(links),
        outlines=_origin_outline(at, which, shape[1], grid),
        row_names=row_names,
        column_names=column_names,
        row_axis=axes[0],
        column_axis=axes[1],
        hatched="unused" if all(alive[k] for k in set(which.tolist())) else "padding or unused",
    )


def _origin_outline(at: Any, which: Any, columns: int, grid: Grid) -> tuple[Outline, ...]:
    """Return a mark on the place of the first element, if it is not where memory begins."""
    (first,) = np.flatnonzero(which == 0)[:1].tolist() or [None]
    if first is None or grid.color != "offset" or not grid.field("offset").values[0]:
        return ()
    return (Outline(*divmod(int(at[first]), columns), 1, 1, "mark", "origin"),)


def number_in_bytes(grid: Grid, itemsize: int) -> Grid:
    """Return a picture of memory with the addresses of bytes rather than the offsets of elements.

    >>> number_in_bytes(Grid(2, 1, row_names=("0", "8"), row_axis="offset"), 4).row_names
    ('0', '32')
    """
    if itemsize < 1:
        raise LayoutError(f"expected an itemsize of at least 1 byte, got {itemsize}")

    def scale(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(("+" if name.startswith("+") else "") + str(int(name) * itemsize) for name in names)

    return replace(
        grid,
        row_axis="address",
        row_names=scale(grid.row_names),
        column_names=scale(grid.column_names),
        box_rows=tuple(map(scale, grid.box_rows)),
    )
