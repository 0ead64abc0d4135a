# SPDX-License-Identifier: Apache-2.0
"""The scene of a placed tensor: its pages, the banks or cores that hold them, and the path of one element."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...analysis import balance
from ...errors import LayoutError, OutOfMemory
from ...memory import TensorSpec, Where, explain
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Grid, Outline, Scene
from ..scene_options import SceneOptions, scene_function
from .layouts import layout_scene
from .page_holders import bank_page_grid, core_boxes, core_grid
from .page_sheet import MOST_LISTED, PageSheet, core_name
from .pages import page_grid

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_SHARDS = 1 << 23  # in a picture
_EVEN = 1.25  # times the least that a bank can hold
_MOST_BYTES = 1 << 62  # of a tensor whose places are counted in 64 bits


@scene_function
def spec_scene(
    spec: TensorSpec, *, at: Any = None, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the pages of a `spec` and where they lie: over banks, or in shards over a grid of cores.

    `at` is the coordinate of an element to mark, with its face, tile, page, bank or core, and address. `side` is the
    most rows and columns of pages that are drawn, and `title` that of the picture. `options` are those of every scene:
    pages have the attributes `page`, `bank`, `address` and `local page`, the page in its bank or core, and sharded
    ones `core` and `shard`; `host page` is the page again, written as H0 beside the `local page` P0.

    >>> import tilewright as tw
    >>> spec = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=tw.height_sharded((2, 1)), chip="wormhole_n150")
    >>> pages, cores = spec_scene(spec).panels
    >>> pages.cell(3, 0).attributes["core"], cores.box_titles, cores.cell(0, 4).attributes["page"]
    ('1,0', ('Core (0,0)', 'Core (1,0)'), 8)
    """
    if not spec.num_pages:
        raise LayoutError(f"cannot draw {spec}: it has no pages; give every dimension an extent of at least 1")
    shards = spec.paging.num_shards if spec.memory.is_sharded else 0
    if shards > _MOST_SHARDS or spec.nbytes > _MOST_BYTES:
        what = f"{shards} shards" if shards > _MOST_SHARDS else f"{spec.nbytes} bytes"
        raise LayoutError(f"{what} are too many to draw; draw a part of the tensor, or explain single elements")
    if spec.chip is None:
        return _unplaced_scene(spec, at, side, title, options)
    pages = PageSheet.of(spec, side)
    if spec.memory.is_sharded:
        holders = core_boxes(pages) or core_grid(pages)
    else:
        holders = bank_page_grid(pages, side)
    panels = [pages.grid(linked_by_page=holders.boxes is not None), holders]
    facts = _placement_facts(pages)
    if at is not None:
        where = spec.where(*at)
        panels = [
            _mark_cell(panels[0], pages.cell_of(where.page)),
            _mark_cell(panels[1], _holder_of(holders, where, pages)),
        ]
        panels.insert(1, page_grid(spec, at=at))
        facts = [*_where_facts(where), *facts]
    shape = " x ".join(map(str, spec.shape.logical))
    title = title or f"{shape} {spec.dtype}, {spec.memory} on {spec.known_chip.name}"
    note = pages.note
    if spec.memory.is_sharded and holders.boxes is None and spec.num_pages <= MOST_LISTED:
        note = f'{note} Each core holds too many pages to draw them; label="held" names them.'.strip()
    return Scene(title, tuple(panels), tuple(facts), note)


def _unplaced_scene(spec: TensorSpec, at: Any, side: int, title: str, options: SceneOptions) -> Scene:
    """Return the scene of a spec without a chip: the order in which elements are stored."""
    itemsize = None if spec.dtype.has_blocks else spec.dtype.itemsize
    found = layout_scene(spec.stored, itemsize=itemsize, side=side, title=title or str(spec), **options)
    steps: list[Fact] = []
    if at is not None:
        explained = explain(spec, at)
        steps = [Fact(name, value) for name, value in explained.steps() if name != "bank"]
        panels = [_mark_cell(panel, _cell_at(panel, at, spec)) for panel in found.panels if isinstance(panel, Grid)]
        found = replace(found, panels=tuple(panels))
    facts = [
        *steps,
        Fact("padded shape", " x ".join(map(str, spec.padded_shape))),
        Fact("pages", f"{spec.num_pages} of {spec.page_bytes} bytes"),
        bytes_fact(spec),
        Fact(
            "banks and addresses",
            "depend on the chip; choose one, such as wormhole_n150"
            if spec.tile.is_on_chips
            else f"no chip has tiles of {spec.tile}",
        ),
    ]
    return replace(found, facts=tuple(facts))


def _cell_at(grid: Grid, at: Any, spec: TensorSpec) -> tuple[int, int] | None:
    """Return the cell of an element among coordinates; memory has the same cells if it is drawn tile by tile."""
    if grid.title == "memory":  # drawn in rows
        return None
    *outer, column = (0, *at) if len(at) < 2 else at
    row = int(np.ravel_multi_index(tuple(outer), spec.padded_shape[-len(outer) - 1 : -1])) if any(outer) else 0
    return row // grid.block[0], column // grid.block[1]


def _mark_cell(grid: Grid, cell: tuple[int, int] | None) -> Grid:
    if cell is None:
        return grid
    return replace(grid, outlines=(*grid.outlines, Outline(*cell, 1, 1, "mark")))


def _holder_of(grid: Grid, where: Where, pages: PageSheet) -> tuple[int, int] | None:
    by_core = pages.spec.memory.is_sharded and grid.boxes is None
    wanted = core_name(where.core.y * 65536 + where.core.x) if by_core else where.page
    if wanted not in grid.link:
        return None
    at = grid.link.index(wanted)
    return at // grid.columns, at % grid.columns


def _where_facts(where: Where) -> list[Fact]:
    return [Fact(name, value.strip()) for name, _, value in (line.partition(" ") for line in str(where).splitlines())]


def bytes_fact(spec: TensorSpec) -> Fact:
    """Return the bytes of a `spec`, on its chip if it has one, and its padding, as `fit` counts them.

    >>> bytes_fact(TensorSpec((60, 90), "uint8", chip="n150")).value
    '5760, of which 360 padding (6.2%)'
    """
    share = spec.padding_bytes / spec.total_bytes if spec.total_bytes else 0.0
    return Fact("bytes", f"{spec.total_bytes}, of which {spec.padding_bytes} padding ({share:.1%})")


def _rate_imbalance(imbalance: float, counts: NDArray[np.int64]) -> Literal["plain", "good", "bad"]:
    """Return how good it is that these banks hold so many pages each: bad only where others would hold fewer."""
    if imbalance <= _EVEN:
        return "good"
    least = -(-int(counts.sum()) // len(counts))  # in the fullest bank, however pages are distributed
    return "plain" if int(counts.max()) <= _EVEN * least else "bad"


def _address_fact(spec: TensorSpec) -> Fact:
    try:
        return Fact("address on an empty chip", str(spec.first_address))
    except OutOfMemory as problem:
        return Fact("does not fit", f"{problem}; addresses are relative to the buffer", "bad")


def _placement_facts(pages: PageSheet) -> list[Fact]:
    spec = pages.spec
    counts, banks = pages.page_counts(), spec.known_chip.banks(spec.memory.buffer_type)
    even = balance((counts * spec.aligned_page_bytes).tolist())
    others = f"; the chip has {banks} banks" if even.count < banks else ""
    return [
        Fact("padded shape", " x ".join(map(str, spec.padded_shape))),
        Fact("pages", f"{spec.num_pages} of {spec.page_bytes} bytes ({spec.aligned_page_bytes} with alignment)"),
        bytes_fact(spec),
        Fact("bytes per bank", f"{even}{others}"),
        Fact("imbalance", f"{even.imbalance:.2f} (max/mean)", _rate_imbalance(even.imbalance, counts)),
        _address_fact(spec),
    ]
