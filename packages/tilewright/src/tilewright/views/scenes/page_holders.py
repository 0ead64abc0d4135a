# SPDX-License-Identifier: Apache-2.0
"""Who holds the pages of a tensor: cores with their pages in boxes, cores with their shards, banks with their pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._integers import ceil_div
from ..scene import Field, Grid, Outline
from .page_sheet import CORE_FORM, HOST_FORM, MOST_LINES, PAGE_FORM, PageSheet, start_address

_MOST_NUMBERS = 16  # of shards that are listed for a core
_MOST_BANKS, _FOLDED_BANKS = 24, 16  # side by side, and in a row if there are more
_BOXED_PAGES, _BOXED_CORES, _BOXED_ROWS = 1024, 64, 96  # most pages, cores and rows that are drawn in boxes
_BOX_FOLDS = (8, 4, 2)  # pages side by side of a shard that is a column of them
_BOX_GAP, _BOX_WIDTH = 14, 1000  # pixels between boxes, and of all of them


def core_boxes(pages: PageSheet) -> Grid | None:
    """Return a box for every core with the pages that it holds, as they lie in its shards; None if they are too many.

    Shards of a core are drawn one below the other, in the order of their addresses.

    >>> from tilewright import TensorSpec, height_sharded
    >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
    >>> boxes = core_boxes(PageSheet.of(spec, 128))
    >>> boxes.box_titles, boxes.field("page").values
    (('Core (0,0)', 'Core (1,0)'), (0, 1, 4, 5, 2, 3, 6, 7))
    """
    spec, paging = pages.spec, pages.spec.paging
    cores = [core for k, core in enumerate(paging.cores) if len(pages.shards_of(k))]
    (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*cores, strict=True))
    across, down = right + 1 - left, bottom + 1 - top
    cell_width = 7 + 5 * len(f"P{spec.num_pages - 1}")
    most_across = (_BOX_WIDTH // across - _BOX_GAP) // cell_width
    wide = paging.shard[-1]
    if wide == 1 and paging.shard_pages * paging.shards_per_core > MOST_LINES:  # a column of pages: fold it
        folds = [n for n in _BOX_FOLDS if n <= most_across]
        wide = next((n for n in folds if paging.shard_pages % n == 0), max(folds, default=1))
    each = ceil_div(paging.shard_pages, wide)
    high = each * paging.shards_per_core
    if spec.num_pages > _BOXED_PAGES or across * down > _BOXED_CORES or down * high > _BOXED_ROWS or wide > most_across:
        return None
    number = np.arange(spec.num_pages, dtype=np.int64)
    slot = np.asarray(paging.slots(number))
    position, address = (
        np.asarray(layout(slot)) for layout in (spec.page_map.position_of_slot, spec.page_map.offset_of_slot)
    )
    local = address // spec.aligned_page_bytes
    where = np.array(paging.cores, dtype=np.int64)[position]
    shard, inside = np.divmod(local, paging.shard_pages)
    row = (where[:, 1] - top) * high + shard * each + inside // wide
    cell = row * across * wide + (where[:, 0] - left) * wide + inside % wide
    tables = {
        "page": (number, "ramp", PAGE_FORM),
        "shard": (slot // paging.shard_pages, "category", "{}"),
        "bank": (np.array(spec.banks, dtype=np.int64)[position], "category", "{}"),
        "address": (address + start_address(spec), "ramp", "{}"),
        "local page": (local, "ramp", PAGE_FORM),
        "host page": (number, "ramp", HOST_FORM),
    }
    count = across * wide * down * high
    fields = [_scatter_field(name, table, cell, count, *rest) for name, (table, *rest) in tables.items()]
    l1 = spec.memory.buffer_type.is_l1
    grid = [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]
    outlines = [
        Outline(y * high + k * each, x * wide, each, wide, "face")
        for y in range(down)
        for x in range(across)
        for k in range(paging.shards_per_core if paging.shards_per_core > 1 else 0)
    ]
    if l1:
        names = [f"{x},{y}" for x, y in where.tolist()]
        fields.append(_scatter_field("core", np.array(names), cell, count, "category", CORE_FORM))
    page = fields[0].values
    return Grid(
        down * high,
        across * wide,
        tuple(fields),
        title="cores and the pages they hold" if l1 else "banks and the pages they hold",
        color="shard",
        label="page",
        valid=() if None not in page else tuple(value is not None for value in page),
        link=page,
        outlines=tuple(outlines),
        hatched="no page",
        boxes=(high, wide),
        box_titles=tuple(f"Core ({x},{y})" if l1 else f"Bank {x}" for x, y in grid),
    )


def _scatter_field(name: str, table: NDArray[Any], cell: NDArray[np.int64], count: int, scale: Any, form: str) -> Field:
    """Return an attribute of `count` cells, of which only those in `cell` have a value."""
    values: list[Any] = [None] * count
    for at, value in zip(cell.tolist(), table.tolist(), strict=True):
        values[at] = value
    return Field(name, tuple(values), scale, form)


def core_grid(pages: PageSheet) -> Grid:
    """Return the grid of cores with the shards, pages and bytes of each.

    >>> from tilewright import TensorSpec, height_sharded
    >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
    >>> core_grid(PageSheet.of(spec, 128)).cell(0, 1).attributes["pages"]
    4
    """
    spec = pages.spec
    grid = spec.known_chip.compute_grid if spec.memory.buffer_type.is_l1 else None
    cores = spec.paging.cores
    width = max(max(core.x for core in cores) + 1, grid.x if grid else 0)
    height = max(max(core.y for core in cores) + 1, grid.y if grid else 0)
    held = [0] * (width * height)
    first: list[int | None] = [None] * len(held)
    shards: list[str | None] = [None] * len(held)
    runs: list[str | None] = [None] * len(held)
    for position, (core, count, listed) in enumerate(
        zip(cores, pages.page_counts().tolist(), pages.page_runs(), strict=True)
    ):
        own = pages.shards_of(position)
        if len(own):
            at = core.y * width + core.x
            held[at], first[at], shards[at] = count, own[0], _format_shards(own)
            runs[at] = listed
    names = [f"{at % width},{at // width}" for at in range(len(held))]
    fields = (
        Field("shard", tuple(first)),
        Field("shards", tuple(shards)),
        Field("pages", tuple(held), "ramp"),
        Field("held", tuple(runs)),
        Field("core", tuple(name if count else None for name, count in zip(names, held, strict=True)), form=CORE_FORM),
        Field("bytes", tuple(n * spec.aligned_page_bytes for n in held), "ramp"),
    )
    return Grid(
        height,
        width,
        fields,
        title="cores and their shards" if grid else "banks and their shards",
        color="shard",
        label="shards",
        valid=() if all(held) else tuple(map(bool, held)),
        link=tuple(names),
        row_axis="y",
        column_axis="x",
        hatched="no shard",
    )


def _format_shards(shards: range) -> str:
    more = f" and {len(shards) - _MOST_NUMBERS} more" if len(shards) > _MOST_NUMBERS else ""
    return ",".join(map(str, shards[:_MOST_NUMBERS])) + more


def bank_page_grid(pages: PageSheet, side: int) -> Grid:
    """Return the banks with their pages stacked; if there are too many, only their number.

    >>> from tilewright import TensorSpec
    >>> sheet = PageSheet.of(TensorSpec((64, 64), "uint8", "tile", chip="n150"), 128)
    >>> bank_page_grid(sheet, 128).field("page").values[:6]
    (0, 1, 2, 3, None, None)
    """
    spec = pages.spec
    count = len(spec.banks)
    rounds = spec.paging.shards_per_core
    if rounds > side or count > side:
        counted = (Field("bank", tuple(range(count))), Field("pages", tuple(pages.page_counts().tolist()), "ramp"))
        wide = min(count, _FOLDED_BANKS)
        if count % wide == 0 or rounds > side:
            wide = wide if count % wide == 0 else count
            return Grid(count // wide, wide, counted, title="pages per bank", color="bank", label="pages")
    page: list[Any] = [number if number < spec.num_pages else None for number in range(rounds * count)]
    turn = [None if number is None else k // count for k, number in enumerate(page)]
    start = start_address(spec)
    address = [None if k is None else start + k * spec.aligned_page_bytes for k in turn]
    fields = (
        Field("page", tuple(page), "ramp", PAGE_FORM),
        Field("bank", tuple(None if n is None else k % count for k, n in enumerate(page))),
        Field("address", tuple(address), "ramp"),
        Field("local page", tuple(turn), "ramp", PAGE_FORM),
        Field("host page", tuple(page), "ramp", HOST_FORM),
    )
    # More banks than can be read side by side are folded; pages keep their order.
    folded = count > _MOST_BANKS and count % _FOLDED_BANKS == 0 and rounds * count // _FOLDED_BANKS <= side
    wide = _FOLDED_BANKS if folded else count
    starts = [(start + k // count * spec.aligned_page_bytes, k % count) for k in range(0, rounds * count, wide)]
    return Grid(
        len(starts),
        wide,
        fields,
        title=f"{spec.memory.buffer_type} banks and their pages",
        color="bank",
        label="page",
        valid=() if None not in page else tuple(n is not None for n in page),
        link=tuple(page),
        row_axis="address,bank" if folded else "address",
        column_axis="" if folded else "bank",
        row_names=tuple(f"{at},{bank}" if folded else str(at) for at, bank in starts),
        column_names=tuple(f"+{k}" for k in range(wide)) if folded else (),
        hatched="unused",
    )
