# SPDX-License-Identifier: Apache-2.0
"""The scene of a tensor: its elements on a sheet with their values, and its storage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...layout import Layout, LayoutLike, Swizzle
from ...memory import TensorLayout
from ...tensor import Tensor, TileTensor
from ..layout_grid import SIDE, Sheet, spread
from ..scene import Fact, Field, Grid, Outline, Scene
from .layouts import layout_facts, note_of, sheet_panels
from .specs import spec_scene


def tensor_scene(
    tensor: TileTensor, *, color: str = "", label: str = "value", memory: bool = True, side: int = SIDE, title: str = ""
) -> Scene:
    """Return the scene of a tensor: values in its cells, tiles and faces outlined, and its memory beside it.

    Offsets count from the first scalar of storage, so that views of one storage can be compared.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(np.arange(48), tw.row_major(6, 8)).tile[4, 4](1, 1)
    >>> scene = tensor_scene(t)
    >>> scene.panels[0].cell(0, 0).attributes, scene.panels[0].cell(3, 0).valid
    ({'offset': 36, 'value': 36}, False)
    """
    sheet = spread(_in_storage(tensor), side)
    values = _values(tensor, sheet)
    panels = sheet_panels(sheet, (values,), color, label, memory, _lanes(tensor), padding=False)
    lanes = f" of {tensor.element_size} lanes" if tensor.element_size > 1 else ""
    facts = [
        Fact("elements", f"{tensor.numel()} of {tensor.dtype.name}{lanes}"),
        Fact("first scalar", f"{tensor.offset} in storage"),
        *[fact for fact in layout_facts(tensor.layout) if fact.name not in ("elements", "one element a place")],
    ]
    shape = " x ".join(map(str, tensor.shape))
    return Scene(title or f"{type(tensor).__name__} {shape}, {tensor.dtype.name}", panels, tuple(facts), note_of(sheet))


def _values(tensor: TileTensor, sheet: Sheet) -> Field:
    """Return the value of every cell's first element; padding has none."""
    at = sheet.coordinates()
    valid = sheet.valid().reshape(-1).tolist()
    if sheet.whole:
        table: Any = np.asarray(tensor.to_numpy(fill=0))
        cells = table.reshape(len(valid), -1) if tensor.element_size > 1 else table.reshape(-1)
        found = [_plain(value) for value in cells]
    else:
        index = zip(*[part.reshape(-1).tolist() for part in at], strict=True)
        found = [_plain(tensor[where]) if alive else None for where, alive in zip(index, valid, strict=True)]
    values = tuple(value if alive else None for value, alive in zip(found, valid, strict=True))
    return Field("value", values, "ramp" if tensor.element_size == 1 else "category")


def _lanes(tensor: TileTensor) -> tuple[int, ...]:
    """Return the places of the scalars of an element after its first; a swizzle has no single answer."""
    lanes = tensor.element_layout
    if tensor.element_size == 1 or not isinstance(lanes, Layout):
        return (0,)
    return tuple(sorted((lanes.offsets() - lanes.offset).reshape(-1).tolist()))


def _in_storage(tensor: TileTensor) -> LayoutLike:
    """Return the layout of a tensor with places counted from the start of its storage."""
    layout: Any = tensor.layout
    if not tensor.offset or isinstance(getattr(layout, "outer", None), Swizzle):
        return layout  # type: ignore[no-any-return]
    return layout + tensor.offset  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    """Return a NumPy scalar or vector as plain Python, so that a scene is nothing but data."""
    if np.ndim(value):
        return tuple(_plain(part) for part in value)
    if np.asarray(value).dtype.kind in "biu":
        return int(value)
    return float(value)


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
