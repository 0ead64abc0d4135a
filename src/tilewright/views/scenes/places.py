# SPDX-License-Identifier: Apache-2.0
"""The other end of a layout: memory as a grid, every cell of which tells what lives there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..scene import Field, Grid
from ..sheet import SIDE

_MOST = SIDE * SIDE


def places_grid(
    grid: Grid,
    elements: list[str],
    places: dict[str, Any],
    link: Any,
    valid: Any,
    lanes: tuple[int, ...] = (0,),
    padding: bool = True,
) -> Grid | None:
    """Return memory as a grid, painted like the grid of coordinates; None where it is too large to draw.

    `elements` names each coordinate. Offsets are folded into rows; of named axes the first goes across, others down.
    `lanes` are the places of the scalars of an element, from its first one on; `padding` says whether padding has
    places, or does not exist.

    >>> logical = Grid(1, 2, (Field("offset", (0, 2), "ramp"),), color="offset")
    >>> offsets, valid = np.array([[0, 2]]), np.array([True, True])
    >>> memory = places_grid(logical, ["0,0", "0,1"], {"offset": offsets}, offsets.reshape(-1), valid)
    >>> memory.columns, memory.field("element").values
    (3, ('0,0', None, '0,1'))
    """
    here = np.arange(len(elements)) if padding else np.flatnonzero(valid)
    if not len(here):
        return None
    which = np.repeat(here, len(lanes))  # the cell of each scalar
    tables = {name: (table.reshape(-1)[here][:, None] + np.array(lanes)).reshape(-1) for name, table in places.items()}
    (first, across), *others = tables.items()
    if not others:
        low, high = int(across.min()), int(across.max())
        width = _width(grid.columns, high + 1 - min(low, 0))
        low -= low % width
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
    return _held(grid, elements, which, at, link, valid.reshape(-1), shape, row_names, names, axes)


def _width(columns: int, size: int) -> int:
    """Return how many places stand in a row: as many as the coordinates have, where that is a usual number."""
    return min(columns if 8 <= columns <= 64 else 32 if size > 64 else 16, size)


def _held(
    grid: Grid,
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
    painted: list[Any] = [None] * count
    links: list[Any] = [None] * count
    data = [False] * count
    shared = [0] * count
    values, alive, same = grid.field(grid.color).values, valid.tolist(), link.tolist()
    for place, k in zip(at.tolist(), which.tolist(), strict=True):
        shared[place] += 1
        if held[place] is None or (alive[k] and not data[place]):
            held[place], painted[place], links[place], data[place] = elements[k], values[k], same[k], alive[k]
    fields = [Field("element", tuple(held)), Field(grid.color, tuple(painted), grid.field(grid.color).scale)]
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
        row_names=row_names,
        column_names=column_names,
        row_axis=axes[0],
        column_axis=axes[1],
        hatched="unused" if all(alive[k] for k in set(which.tolist())) else "padding or unused",
    )
