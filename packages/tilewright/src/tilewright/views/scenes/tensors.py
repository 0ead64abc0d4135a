# SPDX-License-Identifier: Apache-2.0
"""The scenes of tensors: their values, where they are stored, and one tile of a tensor in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...files import DecodedTile
from ...layout import Layout, LayoutLike, Swizzle
from ...memory import PageLayout
from ...tensor import Tensor, TileTensor
from ..layout_grid import MAX_SIDE, LayoutGrid, sample_layout
from ..scene import Fact, Field, Grid, Outline, Scene
from ..scene_options import SceneOptions, scene_function
from .layouts import block_note, layout_facts, layout_panels, requested_attributes
from .specs import bytes_fact, spec_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST = 1 << 20  # elements whose values are decoded for a picture


@scene_function
def tensor_scene(
    tensor: TileTensor, *, memory: bool = True, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the scene of a tensor: values in its cells, tiles and faces outlined, and its memory beside it.

    Offsets count from the first scalar of storage, so that views of one storage can be compared. `memory`, `side` and
    `title` are those of `layout_scene`, and so are the attributes that `options` can name; `value` is one more.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(np.arange(48), tw.row_major(6, 8)).tile[4, 4](1, 1)
    >>> scene = tensor_scene(t)
    >>> scene.panels[0].cell(0, 0).attributes, scene.panels[0].cell(3, 0).valid
    ({'offset': 36, 'value': 36}, False)
    """
    sheet = sample_layout(_in_storage(tensor), side)
    values = _value_field(tensor, sheet)
    scalars = _scalar_offsets(tensor)
    panels = layout_panels(sheet, (values,), requested_attributes(options), memory, scalars or (0,), padding=False)
    vectors = f" of {tensor.element_size} scalars" if tensor.element_size > 1 else ""
    facts = [
        Fact("elements", f"{tensor.size} of {tensor.dtype.name}{vectors}"),
        Fact("first scalar", f"{tensor.offset} in storage"),
        *[fact for fact in layout_facts(tensor.layout, scalars, False) if fact.name not in ("elements", "injective")],
    ]
    shape = " x ".join(map(str, tensor.shape))
    return Scene(
        title or f"{type(tensor).__name__} {shape}, {tensor.dtype.name}", panels, tuple(facts), block_note(sheet)
    )


def _value_field(tensor: TileTensor, sheet: LayoutGrid) -> Field:
    """Return the value of every cell's first element; None for padding."""
    at = sheet.coordinates()
    valid = sheet.valid().reshape(-1).tolist()
    if sheet.is_complete:
        table: Any = np.asarray(tensor.to_numpy(fill=0))
        cells = table.reshape(len(valid), -1) if tensor.element_size > 1 else table.reshape(-1)
        found = [_to_python(value) for value in cells]
    else:
        index = zip(*[part.reshape(-1).tolist() for part in at], strict=True)
        found = [_to_python(tensor[where]) if alive else None for where, alive in zip(index, valid, strict=True)]
    values = tuple(value if alive else None for value, alive in zip(found, valid, strict=True))
    return Field("value", values, "ramp" if tensor.element_size == 1 else "category")


def _scalar_offsets(tensor: TileTensor) -> tuple[int, ...]:
    """Return the offsets of the scalars of an element from its first one; () if a swizzle varies them."""
    scalars = tensor.element_layout
    if tensor.element_size == 1:
        return (0,)
    if not isinstance(scalars, Layout) or isinstance(getattr(tensor.layout, "outer", None), Swizzle):
        return ()
    return tuple(sorted((scalars.offsets() - scalars.offset).reshape(-1).tolist()))


def _in_storage(tensor: TileTensor) -> LayoutLike:
    """Return the layout of a tensor with offsets from the start of its storage."""
    layout: Any = tensor.layout
    if not tensor.offset or isinstance(getattr(layout, "outer", None), Swizzle):
        return layout  # type: ignore[no-any-return]
    return layout + tensor.offset  # type: ignore[no-any-return]


def _to_python(value: Any) -> Any:
    """Return a NumPy scalar or vector as plain Python numbers."""
    if np.ndim(value):
        return tuple(_to_python(part) for part in value)
    if np.asarray(value).dtype.kind in "biu":
        return int(value)
    return float(value)


@scene_function
def values_scene(tensor: Tensor, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]) -> Scene:
    """Return the values of a tensor, leading dimensions downwards, and its pages if its chip is known.

    Values of a `tensor` larger than a million elements are omitted. `side` is the most rows and columns that are drawn,
    and `title` that of the picture. `options` are those of every scene.

    >>> from tilewright import Tensor
    >>> scene = values_scene(Tensor.of(np.arange(6.0).reshape(2, 3), dtype="bfloat16", page_layout="tile"))
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
    panels = [_value_grid(values, tensor, side)] if shown else []
    facts = [
        Fact("tensor", str(spec)),
        Fact("storage", tensor.storage_type.name.lower().replace("_", " ")),
        *_value_facts(values),
    ]
    if place is None:
        facts.append(bytes_fact(spec))
    shape = " x ".join(map(str, spec.shape.logical)) or "one"
    return Scene(
        title or f"{shape} {spec.dtype}",
        (*panels, *(place.panels if place else ())),
        (*facts, *(place.facts if place else ())),
        place.note if place else "",
    )


def _value_grid(values: NDArray[np.float64], tensor: Tensor, side: int) -> Grid:
    high, wide = (max(1, -(-n // side)) for n in values.shape)
    cells = values[::high, ::wide]
    rows, columns = cells.shape
    many = f"; each cell shows the first of {high} x {wide}" if (high, wide) != (1, 1) else ""
    return Grid(
        rows,
        columns,
        (Field.of_table("value", cells, "ramp"),),
        title=f"values{many}",
        color="value",
        label="value",
        outlines=_tile_outlines(tensor, values.shape, (high, wide)),
        row_axis="row",
        column_axis="column",
        block=(high, wide),
    )


def _tile_outlines(tensor: Tensor, shape: tuple[int, ...], step: tuple[int, int]) -> tuple[Outline, ...]:
    """Return boxes around the tiles of a matrix that is drawn element by element."""
    spec = tensor.spec
    if spec.page_layout is not PageLayout.TILE or spec.shape.rank != 2 or step != (1, 1):
        return ()
    high, wide = spec.tile.shape
    return tuple(
        Outline(row, column, min(high, shape[0] - row), min(wide, shape[1] - column), "tile")
        for row in range(0, shape[0], high)
        for column in range(0, shape[1], wide)
    )


def _value_facts(values: Any) -> list[Fact]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return []
    facts = [Fact("values", f"{finite.min():.6g} to {finite.max():.6g}, {finite.mean():.4g} on average")]
    odd = values.size - finite.size
    return [*facts, Fact("not finite", f"{odd} of {values.size}", "bad")] if odd else facts


@scene_function
def tile_scene(
    decoded: DecodedTile, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the values of one `decoded` tile or window, its faces outlined, and the exponents of its blocks.

    `side` is the most rows and columns that are drawn, and `title` that of the picture. `options` are those of every
    scene.

    >>> reading = DecodedTile("x", "int8", (0, 0), (0, 0), (1, 1), np.ones((1, 1)), np.ones((1, 1), bool))
    >>> tile_scene(reading).panels[0].field("value").values
    (1.0,)
    """
    whole = decoded.values.shape
    shown = (slice(side), slice(side))
    cells = decoded.values[shown]
    rows, columns = cells.shape
    high, wide = decoded.face or whole
    valid = tuple(decoded.valid[shown].reshape(-1).tolist())
    outlines = tuple(
        Outline(top, left, min(high, rows - top), min(wide, columns - left), "face")
        for top in range(0, rows, high)
        for left in range(0, columns, wide)
        if decoded.face is not None
    )
    values = tuple(v if ok else None for v, ok in zip(cells.reshape(-1).tolist(), valid, strict=True))
    link = tuple(range(rows * columns))
    panels = [Grid(rows, columns, (Field("value", values, "ramp"),), "values", "value", "value", valid, link, outlines)]
    if decoded.exponents is not None:
        field = Field.of_table("exponent", decoded.exponents[shown], "ramp")
        panels.append(Grid(rows, columns, (field,), "shared exponents", "exponent", "exponent", valid, link, outlines))
    known = decoded.values[decoded.valid]
    facts = [
        Fact("format", decoded.format),
        Fact(
            "elements",
            str(known.size) if decoded.valid.all() else f"{known.size} of {decoded.values.size}, the rest is padding",
        ),
    ]
    if known.size:
        facts.append(Fact("values", f"{np.nanmin(known):.6g} to {np.nanmax(known):.6g}"))
    at = ", ".join(map(str, decoded.start))
    note = "" if (rows, columns) == whole else f"The first {rows} x {columns} of {whole[0]} x {whole[1]} elements."
    what = "window" if decoded.face is None else "tile"
    return Scene(title or f"{decoded.name}, {what} {decoded.tile}, from ({at})", tuple(panels), tuple(facts), note)
