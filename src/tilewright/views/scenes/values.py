# SPDX-License-Identifier: Apache-2.0
"""The scene of a tensor with storage: the values that it holds, and beside them where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...memory import TensorLayout
from ...tensor import Tensor
from ..scene import Fact, Field, Grid, Outline, Scene
from ..sheet import SIDE
from .specs import spec_scene

_MOST = 1 << 20  # elements whose values are decoded for a picture


def values_scene(tensor: Tensor, *, side: int = SIDE, title: str = "") -> Scene:
    """Return the values of a tensor, leading dimensions downwards, and its pages where a chip is known.

    Values of large tensors would have to be decoded for the picture, and are left out.

    >>> from tilewright import Tensor
    >>> scene = values_scene(Tensor.of(np.arange(6.0).reshape(2, 3), dtype="bfloat16", layout="tile"))
    >>> scene.panels[0].field("value").values
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    """
    spec = tensor.spec
    count = spec.shape.logical_volume()
    shown = 0 < count <= _MOST
    if not shown and spec.num_pages:
        return spec_scene(spec, side=side, title=title)
    placed = spec.chip is not None and shown
    place = spec_scene(spec, side=side) if placed else None
    values = np.asarray(tensor.numpy(), dtype=np.float64).reshape(-1, spec.shape.logical[-1] if spec.shape.rank else 1)
    panels = [_grid(values, tensor, side)] if shown else []
    facts = [
        Fact("tensor", str(spec)),
        Fact("storage", tensor.storage_type.name.lower().replace("_", " ")),
        *_statistics(values),
    ]
    if place is None:
        facts.append(Fact("bytes", f"{spec.nbytes}, of which {spec.padding_bytes} padding"))
    shape = " x ".join(map(str, spec.shape.logical)) or "one"
    return Scene(
        title or f"{shape} {spec.dtype}",
        (*panels, *(place.panels if place else ())),
        (*facts, *(place.facts if place else ())),
        place.note if place else "",
    )


def _grid(values: NDArray[np.float64], tensor: Tensor, side: int) -> Grid:
    high, wide = (max(1, -(-n // side)) for n in values.shape)
    cells = values[::high, ::wide]
    rows, columns = cells.shape
    many = f"; each cell is the first of {high} x {wide}" if (high, wide) != (1, 1) else ""
    return Grid(
        rows,
        columns,
        (Field("value", tuple(cells.reshape(-1).tolist()), "ramp"),),
        title=f"values{many}",
        color="value",
        label="value",
        outlines=_tiles(tensor, values.shape, (high, wide)),
        row_axis="row",
        column_axis="column",
        block=(high, wide),
    )


def _tiles(tensor: Tensor, shape: tuple[int, ...], step: tuple[int, int]) -> tuple[Outline, ...]:
    """Return boxes around tiles, where rows of the picture are rows of tiles: matrices drawn one by one."""
    spec = tensor.spec
    if spec.layout is not TensorLayout.TILE or spec.shape.rank != 2 or step != (1, 1):
        return ()
    high, wide = spec.tile.shape
    return tuple(
        Outline(row, column, min(high, shape[0] - row), min(wide, shape[1] - column), "tile")
        for row in range(0, shape[0], high)
        for column in range(0, shape[1], wide)
    )


def _statistics(values: Any) -> list[Fact]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return []
    facts = [Fact("values", f"{finite.min():.6g} to {finite.max():.6g}, {finite.mean():.4g} on average")]
    odd = values.size - finite.size
    return [*facts, Fact("not finite", f"{odd} of {values.size}", "bad")] if odd else facts
