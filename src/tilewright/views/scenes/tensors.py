# SPDX-License-Identifier: Apache-2.0
"""The scene of a tensor: its elements on a sheet with their values, and its storage."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...layout import Layout, LayoutLike, Swizzle
from ...tensor import TileTensor
from ..scene import Fact, Field, Scene
from ..sheet import SIDE, Sheet, spread
from .layouts import layout_facts, note_of, sheet_panels


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
        Fact("elements", f"{tensor.size} of {tensor.dtype.name}{lanes}"),
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
