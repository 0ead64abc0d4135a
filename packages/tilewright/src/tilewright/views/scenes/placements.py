# SPDX-License-Identifier: Apache-2.0
"""The scene of a placed tensor: its pages, the banks or cores that hold them, and the path of one element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._integers import ceil_div
from ..._text import format_extents
from ...analysis import balance
from ...errors import LayoutError, OutOfMemory
from ...layout import Box, row_major, tiled_layout, with_logical_shape
from ...memory import Chip, Explanation, MemoryConfig, PageLayout, Shape, TensorMemoryLayout, TensorSpec, Where, explain
from ..layout_grid import MAX_SIDE, sample_layout
from ..scene import Fact, Field, Grid, Outline, Scene, outline_blocks
from ..scene_options import SceneOptions, scene_function
from .layouts import block_note, layout_panels, layout_scene, requested_attributes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...memory import AccessorArguments


# The pages of a placed tensor on a sheet: which are drawn, and where they lie.

MAX_LINES = 24  # pages in one column, drawn one below the other; more are folded
_FOLDS = (8, 16, 32)  # pages side by side of a folded column
_MAX_RUNS = 3  # of pages that are written for a core
PAGE_FORM, HOST_FORM, CORE_FORM = "P{}", "H{}", "C({})"  # of a page, a page of the host, and a core
MAX_LISTED = 1 << 14  # pages of a tensor whose cores list theirs


@dataclass(frozen=True, slots=True)
class PageSheet:
    """The pages of a tensor on a sheet: where those lie that are drawn, and how many each core or bank holds.

    Nothing here takes longer for a large tensor: a cell is one page, the first one that it stands for.

    >>> from tilewright import TensorSpec
    >>> PageSheet.of(TensorSpec((64, 64), "uint8", "tile", chip="n150"), 128).number.tolist()
    [[0, 1], [2, 3]]
    """

    spec: TensorSpec
    shape: tuple[int, int]  # rows and columns of cells; the last row of a folded column may be longer than the pages
    shown: tuple[int, int]  # those that are drawn
    step: tuple[int, int]  # pages that one cell stands for, along either side
    folded: bool  # whether rows are parts of one column of pages
    number: NDArray[np.int64]  # of the page of each cell, and where it lies
    shard: NDArray[np.int64]
    local: NDArray[np.int64]  # number of the page in its bank or core
    bank: NDArray[np.int64]
    core: NDArray[np.int64]  # as y * 65536 + x
    address: NDArray[np.int64]

    @classmethod
    def of(cls, spec: TensorSpec, side: int) -> PageSheet:
        """Return the sheet of a `spec` with at most `side` rows and columns of pages.

        >>> from tilewright import TensorSpec
        >>> PageSheet.of(TensorSpec((640, 64), "uint8", "tile", chip="n150"), 16).shown
        (16, 2)
        """
        (height, width), (high, wide) = spec.physical_shape, spec.page_shape
        rows, columns = height // high, width // wide
        folded = columns == 1 and rows > MAX_LINES
        if folded:
            columns = _fold_width(rows, (1, *spec.paging.shard)[-2] if spec.memory.is_sharded else rows)
            rows = ceil_div(rows, columns)
        # Every fourth page of twelve banks would show three banks: pages dealt in turn are cut off instead.
        dealt = not spec.memory.is_sharded
        drawn = (min(rows, side), min(columns, side)) if dealt else (rows, columns)
        step = (-(-drawn[0] // side), -(-drawn[1] // side))
        down, across = (np.arange(0, n, by, dtype=np.int64) for n, by in zip(drawn, step, strict=True))
        number = down[:, None] * columns + across
        located = _locate_pages(spec, np.minimum(number, spec.num_pages - 1))
        return cls(spec, (rows, columns), drawn, step, folded, number, *located)

    def page_counts(self) -> NDArray[np.int64]:
        """Return how many pages each core or bank of `spec.banks` holds.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> PageSheet.of(spec, 128).page_counts().tolist()
        [4, 4]
        """
        paging = self.spec.paging
        count = len(paging.cores)
        if not self.spec.memory.is_sharded:
            quotient, rest = divmod(paging.num_pages, count)
            return quotient + (np.arange(count) < rest).astype(np.int64)
        pages = np.ones((), dtype=np.int64)  # of each shard, which at an edge may be partial
        for n, shard, shards in zip(paging.grid, paging.shard, paging.shards, strict=True):
            sizes = np.minimum(shard, n - shard * np.arange(shards, dtype=np.int64))
            pages = pages[..., None] * sizes
        number = np.arange(paging.num_shards, dtype=np.int64)
        home = number // max(1, paging.shards_per_core) if paging.in_runs else number % count
        counts: NDArray[np.int64] = np.bincount(home, pages.reshape(-1), minlength=count).astype(np.int64)
        return counts

    def page_runs(self) -> list[str | None]:
        """Return the pages of each core of `paging.cores` as runs, such as P0-P3; None if they are too many to list.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> PageSheet.of(spec, 128).page_runs()
        ['P0-P3', 'P4-P7']
        """
        paging = self.spec.paging
        if paging.num_pages > MAX_LISTED:
            return [None] * len(paging.cores)
        held = [[paging.pages_of_shard(n) for n in paging.shards_of(k)] for k in range(len(paging.cores))]
        return [format_runs(sorted([page for shard in own for page in shard.tolist()])) for own in held]

    @property
    def note(self) -> str:
        """The note for a grid whose cells stand for several pages.

        >>> from tilewright import TensorSpec
        >>> PageSheet.of(TensorSpec((640, 64), "uint8", "tile", chip="n150"), 16).note
        'The first 16 x 2 of 20 x 2 pages.'
        """
        if self.folded and self.shown != self.shape:
            return f"The first {self.shown[0] * self.shown[1]} of {self.spec.num_pages} pages."
        if self.shown != self.shape:
            return f"The first {self.shown[0]} x {self.shown[1]} of {self.shape[0]} x {self.shape[1]} pages."
        many = f"Each cell stands for {self.step[0]} x {self.step[1]} pages and shows the first."
        return many if self.step != (1, 1) else ""

    def cell_of(self, page: int) -> tuple[int, int] | None:
        """Return the cell of a page, or None if it is not drawn.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> PageSheet.of(spec, 128).cell_of(5)
        (2, 1)
        """
        row, column = divmod(page, self.shape[1])
        if row >= self.shown[0] or column >= self.shown[1]:
            return None
        return row // self.step[0], column // self.step[1]

    def grid(self, linked_by_page: bool) -> Grid:
        """Return the pages as a grid, colored by bank or shard; links go to pages, or to the cores that hold them.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> PageSheet.of(spec, 128).grid(linked_by_page=True).link
        (0, 1, 2, 3, 4, 5, 6, 7)
        """
        sharded = self.spec.memory.is_sharded
        rows, columns = self.number.shape
        exists = (self.number < self.spec.num_pages).reshape(-1).tolist()

        def mask(values: Iterable[Any]) -> tuple[Any, ...]:
            return tuple([value if there else None for value, there in zip(values, exists, strict=True)])

        number, bank, address, local, shard, core = (
            mask(table.reshape(-1).tolist())
            for table in (self.number, self.bank, self.address, self.local, self.shard, self.core)
        )
        fields = _page_fields(number, bank, address, local)
        names = tuple([None if owner is None else core_name(owner) for owner in core])
        if sharded or self.spec.memory.buffer_type.is_l1:
            fields.append(Field("core", names, form=CORE_FORM))
        if sharded:
            fields.append(Field("shard", shard))
        (high, wide), by_row = self.spec.page_shape, self.spec.is_tiled and not self.folded
        order = ", transposed" if self.spec.is_tiled and self.spec.tile.transpose else ""
        return Grid(
            rows,
            columns,
            tuple(fields),
            title=f"pages of {high} x {wide} elements{order}",
            color="shard" if sharded else "bank",
            label="page",
            valid=() if all(exists) else tuple(exists),
            link=names if sharded and not linked_by_page else number,
            outlines=self.shard_outlines() if sharded else (),
            row_axis="row" if by_row else "page",
            column_axis="column" if by_row else "",
            row_names=() if by_row else tuple(str(row * self.step[0] * self.shape[1]) for row in range(rows)),
            column_names=() if by_row else tuple(f"+{column * self.step[1]}" for column in range(columns)),
            block=(high * self.step[0], wide * self.step[1]) if by_row else self.step,
            hatched="padding" if all(exists) else "no page",
        )

    def shard_outlines(self) -> tuple[Outline, ...]:
        """Return a box around every shard that is a rectangle in the picture.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> [box.label for box in PageSheet.of(spec, 128).shard_outlines()]
        ['shard 0', 'shard 1']
        """
        shard = np.where(self.number < self.spec.num_pages, self.shard, -1)
        outlines = []
        for number in np.unique(shard[shard >= 0]).tolist()[:1024]:
            rows, columns = np.nonzero(shard == number)
            top, left = int(rows.min()), int(columns.min())
            high, wide = int(rows.max()) + 1 - top, int(columns.max()) + 1 - left
            if high * wide == len(rows):
                outlines.append(Outline(top, left, high, wide, "tile", f"shard {number}"))
        return tuple(outlines)


def _locate_pages(spec: TensorSpec, number: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the shard, number in its bank or core, bank, core (as y * 65536 + x) and address of some pages."""
    slot = np.asarray(spec.paging.slots(number))
    position, offset = (
        np.asarray(layout(slot)) for layout in (spec.page_map.position_of_slot, spec.page_map.offset_of_slot)
    )
    banks, cores = np.array(spec.banks, dtype=np.int64), np.array(spec.paging.cores, dtype=np.int64)
    local = offset // max(1, spec.aligned_page_bytes)
    core = cores[position, 1] * 65536 + cores[position, 0]
    return slot // spec.paging.shard_pages, local, banks[position], core, offset + start_address(spec)


def _page_fields(
    page: tuple[Any, ...], bank: tuple[Any, ...], address: tuple[Any, ...], local: tuple[Any, ...]
) -> list[Field]:
    """Return the attributes of cells that are pages; `local` is the number of a page in its bank or core."""
    return [
        Field("page", page, "ramp", PAGE_FORM),
        Field("bank", bank),
        Field("address", address, "ramp"),
        Field("local page", local, "ramp", PAGE_FORM),
        Field("host page", page, "ramp", HOST_FORM),
    ]


def _fold_width(pages: int, together: int) -> int:
    """Return the pages side by side of a folded column: few rows, and if possible whole runs of `together` pages."""
    if _FOLDS[0] // 2 <= together <= _FOLDS[1]:
        return together
    wide = [n for n in _FOLDS if ceil_div(pages, n) <= max(MAX_LINES, 4 * n)] or [*_FOLDS[-1:]]
    square = next((n for n in wide if 4 * n * n >= pages), wide[-1])
    return next((n for n in (square, *wide) if together % n == 0), square)


def start_address(spec: TensorSpec) -> int:
    """Return the address of the tensor, or 0 if it does not fit, which the facts mention.

    >>> from tilewright import TensorSpec
    >>> start_address(TensorSpec((64, 64), "uint8", chip="n150"))
    1048640
    """
    try:
        return spec.address_on_empty_chip
    except OutOfMemory:
        return 0


def core_name(core: int) -> str:
    """Return a core as x,y.

    >>> core_name(65536 * 2 + 5)
    '5,2'
    """
    return f"{core % 65536},{core // 65536}"


def format_runs(pages: list[int]) -> str:
    """Return page numbers as runs, such as P0-P3 P8-P11; if there are many, only how many pages there are.

    >>> format_runs([0, 1, 2, 8]), format_runs([0, 2, 4, 6, 8])
    ('P0-P2 P8', '5 pages')
    """
    starts = [k for k, page in enumerate(pages) if not k or page != pages[k - 1] + 1]
    if len(starts) > _MAX_RUNS:
        return f"{len(pages)} pages"
    ends = [*starts[1:], len(pages)] if starts else []
    runs = [(pages[k], pages[end - 1]) for k, end in zip(starts, ends, strict=True)]
    return " ".join(f"P{first}" if first == last else f"P{first}-P{last}" for first, last in runs)


# Who holds the pages of a tensor: cores with their pages in boxes, cores with their shards, banks with their pages.

_MAX_NUMBERS = 16  # of shards that are listed for a core
_MAX_BANKS, _FOLDED_BANKS = 24, 16  # side by side, and in a row if there are more
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
    cores = [core for k, core in enumerate(paging.cores) if len(paging.shards_of(k))]
    (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*cores, strict=True))
    across, down = right + 1 - left, bottom + 1 - top
    cell_width = 7 + 5 * len(f"P{spec.num_pages - 1}")
    max_across = (_BOX_WIDTH // across - _BOX_GAP) // cell_width
    wide = paging.shard[-1]
    if wide == 1 and paging.shard_pages * paging.shards_per_core > MAX_LINES:  # a column of pages: fold it
        folds = [n for n in _BOX_FOLDS if n <= max_across]
        wide = next((n for n in folds if paging.shard_pages % n == 0), max(folds, default=1))
    rows_per_shard = ceil_div(paging.shard_pages, wide)
    high = rows_per_shard * paging.shards_per_core
    if spec.num_pages > _BOXED_PAGES or across * down > _BOXED_CORES or down * high > _BOXED_ROWS or wide > max_across:
        return None
    number = np.arange(spec.num_pages, dtype=np.int64)
    shard, local, bank, core, address = _locate_pages(spec, number)
    of_core, inside = np.divmod(local, paging.shard_pages)
    row = (core // 65536 - top) * high + of_core * rows_per_shard + inside // wide
    cell = row * across * wide + (core % 65536 - left) * wide + inside % wide
    count = across * wide * down * high
    page, *others = (_scatter(table.tolist(), cell, count) for table in (number, bank, address, local))
    fields = _page_fields(page, *others)
    fields.insert(1, Field("shard", _scatter(shard.tolist(), cell, count)))
    l1 = spec.memory.buffer_type.is_l1
    grid = [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]
    outlines = [
        Outline(y * high + k * rows_per_shard, x * wide, rows_per_shard, wide, "face")
        for y in range(down)
        for x in range(across)
        for k in range(paging.shards_per_core if paging.shards_per_core > 1 else 0)
    ]
    if l1:
        fields.append(Field("core", _scatter(map(core_name, core.tolist()), cell, count), form=CORE_FORM))
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


def _scatter(values: Iterable[Any], cell: NDArray[np.int64], count: int) -> tuple[Any, ...]:
    """Return the values of `count` cells: `values` in `cell`, and None elsewhere."""
    scattered: list[Any] = [None] * count
    for at, value in zip(cell.tolist(), values, strict=True):
        scattered[at] = value
    return tuple(scattered)


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
    shards_on = [0] * (width * height)
    first: list[int | None] = [None] * len(shards_on)
    shards: list[str | None] = [None] * len(shards_on)
    runs: list[str | None] = [None] * len(shards_on)
    for position, (core, count, listed) in enumerate(
        zip(cores, pages.page_counts().tolist(), pages.page_runs(), strict=True)
    ):
        own = spec.paging.shards_of(position)
        if len(own):
            at = core.y * width + core.x
            shards_on[at], first[at], shards[at] = count, own[0], _format_shards(own)
            runs[at] = listed
    names = [f"{at % width},{at // width}" for at in range(len(shards_on))]
    fields = (
        Field("shard", tuple(first)),
        Field("shards", tuple(shards)),
        Field("pages", tuple(shards_on), "ramp"),
        Field("held", tuple(runs)),
        Field("core", tuple(name if n else None for name, n in zip(names, shards_on, strict=True)), form=CORE_FORM),
        Field("bytes", tuple(n * spec.aligned_page_bytes for n in shards_on), "ramp"),
    )
    return Grid(
        height,
        width,
        fields,
        title="cores and their shards" if grid else "banks and their shards",
        color="shard",
        label="shards",
        valid=() if all(shards_on) else tuple(map(bool, shards_on)),
        link=tuple(names),
        row_axis="y",
        column_axis="x",
        hatched="no shard",
    )


def _format_shards(shards: range) -> str:
    more = f" and {len(shards) - _MAX_NUMBERS} more" if len(shards) > _MAX_NUMBERS else ""
    return ",".join(map(str, shards[:_MAX_NUMBERS])) + more


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
    turn = tuple(None if number is None else k // count for k, number in enumerate(page))
    start = start_address(spec)
    address = tuple(None if k is None else start + k * spec.aligned_page_bytes for k in turn)
    bank = tuple(None if n is None else k % count for k, n in enumerate(page))
    # More banks than can be read side by side are folded; pages keep their order.
    folded = count > _MAX_BANKS and count % _FOLDED_BANKS == 0 and rounds * count // _FOLDED_BANKS <= side
    wide = _FOLDED_BANKS if folded else count
    starts = [(start + k // count * spec.aligned_page_bytes, k % count) for k in range(0, rounds * count, wide)]
    return Grid(
        len(starts),
        wide,
        tuple(_page_fields(tuple(page), bank, address, turn)),
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


# The scene of one page: its elements, where data ends and padding begins, and the address of every one of them.

_FOLD = 32  # elements of a page that is a row, side by side
_MAX_DRAWN = 1024  # elements of such a page that are drawn


@scene_function
def page_scene(
    spec: TensorSpec,
    page: int = 0,
    *,
    at: Sequence[int] | None = None,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the elements of one `page` of a `spec`: a tile in its faces, or a row, folded.

    `at` marks an element and chooses its page; `title` is the picture's title. `options` are the common scene options.

    >>> from tilewright import TensorSpec
    >>> spec = TensorSpec((40, 40), "bfloat16", "tile", chip="wormhole_n150")
    >>> (grid,) = page_scene(spec, 1).panels
    >>> grid.cell(0, 7).attributes["element"], grid.cell(0, 7).valid, grid.cell(0, 8).valid
    ('0,39', True, False)
    """
    grid = page_grid(spec, page, at=at)
    page = spec.where(*at, base=0).page if at is not None else page
    start, base = _page_address(spec, page)
    drawn = [name is not None for name in grid.field("element").values]
    hidden = sum(there and not alive for there, alive in zip(drawn, grid.valid, strict=False))
    facts = [
        Fact("page", f"{page} of {spec.num_pages}"),
        Fact("bytes", f"{spec.page_bytes}, {spec.aligned_page_bytes} with alignment"),
        Fact("address" if base else "address in the buffer", str(start)),
        Fact("padding", f"{hidden} of {sum(drawn)} elements"),
    ]
    part = "" if sum(drawn) == spec.page_elements else f"{sum(drawn)} of the {spec.page_elements} elements of the page."
    shape = format_extents(spec.shape.logical)
    return Scene(title or f"a page of {shape} {spec.dtype}", (grid,), tuple(facts), part)


def page_grid(spec: TensorSpec, page: int = 0, *, at: Sequence[int] | None = None) -> Grid:
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
    first = max(0, min((mark[1] if mark else 0) // _FOLD * _FOLD - _MAX_DRAWN // 2, wide - _MAX_DRAWN)) // _FOLD * _FOLD
    tiled = spec.page_layout is PageLayout.TILE
    visible = wide if tiled else min(wide - first, _MAX_DRAWN)
    columns = visible if tiled else min(visible, _FOLD)
    rows = high if tiled else -(-visible // columns)
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
    outlines = outline_blocks(*spec.tile.shape, *spec.tile.face_shape, "face") if tiled else ()
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


def _element_names(
    spec: TensorSpec, page: int, row: NDArray[Any], column: NDArray[Any]
) -> tuple[list[str], NDArray[np.bool_]]:
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


def _storage_order(spec: TensorSpec, row: NDArray[Any], column: NDArray[Any]) -> NDArray[np.int64]:
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
    base, paging = start_address(spec), spec.paging
    slot = paging.page_to_slot(paging.pad_to_shards(page))
    return base + int(spec.page_map.offset_of_slot(slot)), base


def _mask_values(values: list[Any], exists: NDArray[Any]) -> tuple[Any, ...]:
    """Return the values, None where there is no element at all: after the end of a folded row."""
    return tuple(value if there else None for value, there in zip(values, exists.tolist(), strict=True))


_MAX_SHARDS = 1 << 23  # in a picture
_EVEN = 1.25  # times the least that a bank can hold
_MAX_BYTES = 1 << 62  # of a tensor whose addresses are counted in 64 bits


@scene_function
def spec_scene(
    spec: TensorSpec,
    *,
    at: Sequence[int] | None = None,
    side: int = MAX_SIDE,
    title: str = "",
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the pages of a `spec` and where they lie: over banks, or in shards over a grid of cores.

    `at` is the coordinate of an element to mark, with its face, tile, page, bank or core, and address. `side` is the
    most rows and columns of pages that are drawn, and `title` its title. `options` are the common scene options:
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
    if shards > _MAX_SHARDS or spec.nbytes > _MAX_BYTES:
        what = f"{shards} shards" if shards > _MAX_SHARDS else f"{spec.nbytes} bytes"
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
        lines = [line.partition(" ") for line in str(where).splitlines()]
        facts = [*[Fact(name, value.strip()) for name, _, value in lines], *facts]
    shape = format_extents(spec.shape.logical)
    title = title or f"{shape} {spec.dtype}, {spec.memory} on {spec.known_chip.name}"
    note = pages.note
    if spec.memory.is_sharded and holders.boxes is None and spec.num_pages <= MAX_LISTED:
        note = f'{note} Each core holds too many pages to draw them; label="held" names them.'.strip()
    return Scene(title, tuple(panels), tuple(facts), note)


def _unplaced_scene(spec: TensorSpec, at: Sequence[int] | None, side: int, title: str, options: SceneOptions) -> Scene:
    """Return the scene of a spec without a chip: the order in which elements are stored."""
    itemsize = None if spec.dtype.has_blocks else spec.dtype.itemsize
    scene = layout_scene(spec.stored, itemsize=itemsize, side=side, title=title or str(spec), **options)
    derivation: list[Fact] = []
    if at is not None:
        explained = explain(spec, at)
        derivation = [Fact(name, value) for name, value in explained.steps() if name != "bank"]
        panels = [_mark_cell(panel, _cell_at(panel, at, spec)) for panel in scene.panels if isinstance(panel, Grid)]
        scene = replace(scene, panels=tuple(panels))
    facts = [
        *derivation,
        Fact("padded shape", format_extents(spec.padded_shape)),
        Fact("pages", f"{spec.num_pages} of {spec.page_bytes} bytes"),
        bytes_fact(spec),
        Fact(
            "banks and addresses",
            "depend on the chip; choose one, such as wormhole_n150"
            if spec.tile.is_on_chips
            else f"no chip has tiles of {spec.tile}",
        ),
    ]
    return replace(scene, facts=tuple(facts))


def _cell_at(grid: Grid, at: Sequence[int], spec: TensorSpec) -> tuple[int, int] | None:
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
    owner = core_name(where.core.y * 65536 + where.core.x) if by_core else where.page
    if owner not in grid.link:
        return None
    at = grid.link.index(owner)
    return at // grid.columns, at % grid.columns


def bytes_fact(spec: TensorSpec) -> Fact:
    """Return the bytes of a `spec`, on its chip if it has one, and its padding, as `fit` counts them.

    >>> bytes_fact(TensorSpec((60, 90), "uint8", chip="n150")).value
    '5760, of which 360 padding (6.2%)'
    """
    share = spec.padding_bytes / spec.total_bytes if spec.total_bytes else 0.0
    return Fact("bytes", f"{spec.total_bytes}, of which {spec.padding_bytes} padding ({share:.1%})")


def _rate_imbalance(imbalance: float, counts: NDArray[np.int64]) -> Literal["plain", "good", "bad"]:
    """Return how good this number of pages per bank is: bad only where other banks would hold fewer."""
    if imbalance <= _EVEN:
        return "good"
    least = -(-int(counts.sum()) // len(counts))  # in the fullest bank, however pages are distributed
    return "plain" if int(counts.max()) <= _EVEN * least else "bad"


def _address_fact(spec: TensorSpec) -> Fact:
    try:
        return Fact("address on an empty chip", str(spec.address_on_empty_chip))
    except OutOfMemory as problem:
        return Fact("does not fit", f"{problem}; addresses are relative to the buffer", "bad")


def _placement_facts(pages: PageSheet) -> list[Fact]:
    spec = pages.spec
    counts, banks = pages.page_counts(), spec.known_chip.banks(spec.memory.buffer_type)
    even = balance((counts * spec.aligned_page_bytes).tolist())
    others = f"; the chip has {banks} banks" if even.count < banks else ""
    return [
        Fact("padded shape", format_extents(spec.padded_shape)),
        Fact("pages", f"{spec.num_pages} of {spec.page_bytes} bytes ({spec.aligned_page_bytes} with alignment)"),
        bytes_fact(spec),
        Fact("bytes per bank", f"{even}{others}"),
        Fact("imbalance", f"{even.imbalance:.2f} (max/mean)", _rate_imbalance(even.imbalance, counts)),
        _address_fact(spec),
    ]


# The scenes of a shape, with its padding, and of a memory config, with a tensor that it distributes; and a panel
# that shows where in a larger space a box lies.

_ELEMENT = "·"
_CHIP = "wormhole_n150"  # of the tensor that shows a config
_WRAPPED_PAGES, _MAX_ACROSS = 4, 17  # pages of the second round, and side by side, of interleaved memory


@scene_function
def shape_scene(shape: Shape, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]) -> Scene:
    """Return the elements of a shape as cells, with its padding.

    `side` is the most rows and columns that are drawn, and `title` the picture's title. `options` are the common
    scene options: cells have the attributes `element`, `offset`, and the attributes of a layout.

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

    An interleaved config is drawn as pages dealt to the banks in turn, until the banks start again.

    `options` are the scene options of a spec.

    >>> import tilewright as tw
    >>> memory = tw.TensorSpec((128, 128), page_layout="tile", memory=tw.block_sharded((2, 2))).memory
    >>> memory_config_scene(memory).panels[1].box_titles
    ('Core (0,0)', 'Core (1,0)', 'Core (0,1)', 'Core (1,1)')
    """
    sharding = config.sharding
    if sharding is None:
        banks = Chip.named(_CHIP).banks(config.buffer_type)
        pages = banks + min(banks, _WRAPPED_PAGES)
        across = max([n for n in range(1, _MAX_ACROSS + 1) if pages % n == 0])
        spec = TensorSpec((32 * (pages // across), 32 * across), "bfloat16", "tile", memory=config, chip=_CHIP)
        title = f"{config}: {pages} pages in turn over the {banks} banks of {_CHIP}"
        return spec_scene(spec, **{"title": title, **options})  # type: ignore[arg-type]  # which it checks
    count, box = sharding.grid.num_cores, sharding.grid.bounding_box
    *outer, height, width = (1, *sharding.shape)[-max(2, len(sharding.shape)) :]
    repeats = {TensorMemoryLayout.WIDTH_SHARDED: (1, count), TensorMemoryLayout.BLOCK_SHARDED: (box.height, box.width)}
    down, across = repeats.get(config.memory_layout, (count, 1))
    if config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED and sharding.orientation.name == "COL_MAJOR":
        down, across = across, down
    shape = (*outer, height * down, width * across)
    tiled = not height % 32 and not width % 32
    spec = TensorSpec(shape, "bfloat16", "tile" if tiled else "row_major", memory=config, chip=_CHIP)
    title = f"{config}; one shard of bfloat16 {'tiles' if tiled else 'rows'} on each"
    return spec_scene(spec, **{"title": title, **options})  # type: ignore[arg-type]  # which it checks


def explanation_scene(subject: Explanation, **options: Any) -> Scene:
    """Return the placement of a tensor with the element that is explained."""
    return spec_scene(subject.spec, **{"at": subject.where.coordinate, **options})


def accessor_scene(arguments: AccessorArguments, **options: Any) -> Scene:
    """Return the pages that the words of `arguments` place, and who holds them.

    The words do not state what a page holds: it is drawn as a row of bytes. `options` are the scene options of a spec.

    >>> from tilewright import parse_accessor
    >>> scene = accessor_scene(parse_accessor([1, 2048, 1, 2, 4, 2, 319951378], "wormhole_n150"))
    >>> scene.panels[1].box_titles, scene.panels[1].field("page").values
    (('Core (0,0)', 'Core (1,0)'), (0, 2, 1, 3))
    """
    arguments.paging.validate_even()
    size = arguments.aligned_page_bytes
    shape = (arguments.num_pages or 0, size)
    spec = TensorSpec.from_accessor(arguments, "uint8", "row_major", shape=shape, row_width=size)
    scene = spec_scene(spec, **{"title": str(arguments), **options})
    facts = [fact for fact in scene.facts if fact.name != "padded shape"]
    return replace(scene, facts=(*facts, Fact("not stated", ", ".join(arguments.open))))
