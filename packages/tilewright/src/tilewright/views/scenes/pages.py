# SPDX-License-Identifier: Apache-2.0
"""The scene of one page: its elements, where data ends and padding begins, and the address of every one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LayoutError, OutOfMemory
from ...layout import tiled_layout
from ...memory import PageLayout, TensorSpec
from ..scene import Fact, Field, Grid, Outline, Scene
from ..scene_options import SceneOptions, scene_function

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FOLD = 32  # elements of a page that is a row, side by side
_MOST = 1024  # elements of such a page that are drawn


@scene_function
def page_scene(
    spec: TensorSpec, page: int = 0, *, at: Any = None, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the elements of one `page` of a `spec`: a tile in its faces, or a row, folded.

    `at` marks an element and chooses its page; `title` is that of the picture. `options` are those of every scene.

    >>> from tilewright import TensorSpec
    >>> spec = TensorSpec((40, 40), "bfloat16", "tile", chip="wormhole_n150")
    >>> (grid,) = page_scene(spec, 1).panels
    >>> grid.cell(0, 7).attributes["element"], grid.cell(0, 7).valid, grid.cell(0, 8).valid
    ('0,39', True, False)
    """
    grid = page_grid(spec, page, at=at)
    page = spec.where(*at, base=0).page if at is not None else page
    start, base = _page_address(spec, page)
    shown = [name is not None for name in grid.field("element").values]
    hidden = sum(there and not alive for there, alive in zip(shown, grid.valid, strict=False))
    facts = [
        Fact("page", f"{page} of {spec.num_pages}"),
        Fact("bytes", f"{spec.page_bytes}, {spec.aligned_page_bytes} with alignment"),
        Fact("address" if base else "address in the buffer", str(start)),
        Fact("padding", f"{hidden} of {sum(shown)} elements"),
    ]
    part = "" if sum(shown) == spec.page_elements else f"{sum(shown)} of the {spec.page_elements} elements of the page."
    shape = " x ".join(map(str, spec.shape.logical))
    return Scene(title or f"a page of {shape} {spec.dtype}", (grid,), tuple(facts), part)


def page_grid(spec: TensorSpec, page: int = 0, *, at: Any = None) -> Grid:
    """Return the elements of one page as a grid; `at` chooses the page of an element, and marks it.

    >>> from tilewright import TensorSpec
    >>> page_grid(TensorSpec((4, 40), "bfloat16", chip="wormhole_n150"), 2).row_names
    ('0', '32')
    """
    if not 0 <= page < spec.num_pages:
        raise LayoutError(f"page {page} does not exist; pages are 0 to {spec.num_pages - 1}")
    mark = None
    if at is not None:
        where = spec.where(*at, base=0)
        page, mark = where.page, where.in_tile or (0, where.element)
    high, wide = spec.page_shape
    first = max(0, min((mark[1] if mark else 0) // _FOLD * _FOLD - _MOST // 2, wide - _MOST)) // _FOLD * _FOLD
    tiled = spec.page_layout is PageLayout.TILE
    shown = wide if tiled else min(wide - first, _MOST)
    columns = shown if tiled else min(shown, _FOLD)
    rows = high if tiled else -(-shown // columns)
    inside = np.arange(rows * columns)
    row, column = (inside // columns, inside % columns) if tiled else (np.zeros_like(inside), first + inside)
    exists = column < wide
    names, valid = _element_names(spec, page, row, column)
    valid &= exists
    start, _ = _page_address(spec, page)
    order = _storage_order(spec, row, column)
    fields = [
        Field("element", _mask_values(names, exists)),
        Field("address", _mask_values((start + _byte_offsets(spec, order)).tolist(), exists), "ramp"),
        Field("in the page", _mask_values(order.tolist(), exists), "ramp"),
    ]
    if tiled:
        fields.append(Field("face", tuple((order // (spec.tile.face_shape[0] * spec.tile.face_shape[1])).tolist())))
    outlines = _face_outlines(spec) if tiled else ()
    if mark is not None:
        flat = mark[0] * columns + mark[1] if tiled else mark[1] - first
        outlines = (*outlines, Outline(flat // columns, flat % columns, 1, 1, "mark"))
    return Grid(
        rows,
        columns,
        tuple(fields),
        title=f"page {page}: " + (f"a tile of {high} x {wide}, in faces" if tiled else f"a row of {wide}"),
        color="in the page",
        valid=() if valid.all() else tuple(valid.tolist()),
        outlines=outlines,
        row_axis="row" if tiled else "",
        column_axis="column" if tiled else "",
        row_names=() if tiled else tuple(str(first + k * columns) for k in range(rows)),
        column_names=() if tiled else tuple(f"+{k}" for k in range(columns)),
        hatched="padding" if exists.all() else "after the end" if valid[exists].all() else "padding, or after the end",
    )


def _element_names(spec: TensorSpec, page: int, row: Any, column: Any) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the coordinate of every cell as text, and whether it is data."""
    (high, wide), across = spec.page_shape, max(1, spec.physical_shape[1] // max(1, spec.page_shape[1]))
    down = page // across * high + row
    right = page % across * wide + column
    outer = np.unravel_index(np.minimum(down, max(0, spec.physical_shape[0] - 1)), spec.padded_shape[:-1] or (1,))
    at = [*(outer if len(spec.padded_shape) > 1 else ()), right]
    lead = len(at) - spec.shape.rank
    valid = np.ones(len(row), dtype=bool)
    for along, extent in zip(at, (1,) * lead + spec.shape.logical, strict=True):
        valid &= along < extent
    names = [",".join(map(str, entry)) for entry in zip(*[along.tolist() for along in at[lead:]], strict=True)]
    return names or [""] * len(row), valid


def _storage_order(spec: TensorSpec, row: Any, column: Any) -> NDArray[np.int64]:
    """Return the position of every cell in the page, in the order of storage."""
    if spec.page_layout is not PageLayout.TILE:
        return np.asarray(column, dtype=np.int64)
    tile = spec.tile
    return np.asarray(tiled_layout(tile.shape, tile.shape, tile.face_shape, tile.transpose).offsets()).reshape(-1)


def _byte_offsets(spec: TensorSpec, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the byte of the page in which each element starts."""
    if spec.dtype.has_blocks:
        return spec.dtype.sections(spec.page_elements).data_offset + order * spec.dtype.bits // 8
    return order * spec.dtype.itemsize


def _page_address(spec: TensorSpec, page: int) -> tuple[int, int]:
    """Return the address of a page, and of its buffer: 0 where the tensor does not fit its chip."""
    try:
        base = spec.first_address
    except OutOfMemory:
        base = 0
    paging = spec.paging
    return base + int(spec.page_map.offset_of_slot(paging.cut(paging.widen(page)))), base


def _face_outlines(spec: TensorSpec) -> tuple[Outline, ...]:
    (high, wide), (down, across) = spec.tile.shape, spec.tile.face_shape
    return tuple(Outline(r, c, down, across, "face") for r in range(0, high, down) for c in range(0, wide, across))


def _mask_values(values: list[Any], exists: Any) -> tuple[Any, ...]:
    """Return the values, None where there is no element at all: after the end of a folded row."""
    return tuple(value if there else None for value, there in zip(values, exists.tolist(), strict=True))
