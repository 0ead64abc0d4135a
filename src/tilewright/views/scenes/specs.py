# SPDX-License-Identifier: Apache-2.0
"""The scene of a placed tensor: its pages, the banks or cores that hold them, and the path of one element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analysis import balance
from ...errors import LayoutError, OutOfMemory
from ...memory import TensorSpec, Where, explain
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene
from ..scene_options import SceneOptions, scene_function
from .layouts import layout_scene
from .pages import page_grid

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_SHARDS = 1 << 23  # in a picture
_MOST_BYTES = 1 << 62  # of a tensor whose places are counted in 64 bits
_MOST_NUMBERS = 16  # of shards that are listed for a core
_MOST_LINES = 64  # pages that are rows, drawn one below the other
_MOST_LISTED = 1 << 14  # pages of a tensor whose cores list theirs
_MOST_BANKS, _FOLDED_BANKS = 24, 16  # side by side, and in a row if there are more
_MOST_RUNS = 3  # of pages that are written for a core
_BOXED_PAGES, _BOXED_CORES, _BOXED_ROWS = 1024, 64, 96  # most pages, cores and rows that are drawn in boxes
_BOX_GAP, _BOX_WIDTH = 14, 1000  # pixels between boxes, and of all of them
PAGE_FORM, HOST_FORM, CORE_FORM = "P{}", "H{}", "C({})"  # of a page, a page of the host, and a core


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
        raise LayoutError(
            f"{what} are too many to draw; draw a part of the tensor, or use spec.where(...) for single elements"
        )
    if spec.chip is None:
        return _unplaced_scene(spec, at, side, title, options)
    pages = _Pages.of(spec, side)
    if spec.memory.is_sharded:
        holders = _core_boxes(pages) or _core_grid(pages)
    else:
        holders = _bank_page_grid(pages, side)
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
    if spec.memory.is_sharded and holders.boxes is None and spec.num_pages <= _MOST_LISTED:
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
        Fact("bytes", f"{spec.nbytes}, of which {spec.padding_bytes} padding"),
        Fact(
            "banks and addresses",
            "depend on the chip; give one, as in chip='wormhole_n150'"
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


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages of a tensor on a sheet: where those lie that are drawn, and how many each core or bank holds.

    Nothing here takes longer for a large tensor: a cell is one page, the first of those that it stands for.
    """

    spec: TensorSpec
    shape: tuple[int, int]  # rows and columns of pages
    shown: tuple[int, int]  # those that are drawn
    step: tuple[int, int]  # pages that one cell stands for, along either side
    number: NDArray[np.int64]  # of the page of each cell, and where it lies
    shard: NDArray[np.int64]
    local: NDArray[np.int64]  # number of the page in its bank or core
    bank: NDArray[np.int64]
    core: NDArray[np.int64]  # as y * 65536 + x
    address: NDArray[np.int64]

    @classmethod
    def of(cls, spec: TensorSpec, side: int) -> _Pages:
        (height, width), (high, wide) = spec.physical_shape, spec.page_shape
        rows, columns = height // high, width // wide
        if columns == 1 and rows > _MOST_LINES:  # pages are whole rows: fold them
            columns = next((n for n in (8, 16, 32) if rows % n == 0 and rows // n <= side), 0)
            columns = columns or next(n for n in (32, 16, 8, 4, 2, 1) if rows % n == 0)
            rows //= columns
        # Every fourth page of twelve banks would show three banks: pages dealt in turn are cut off instead.
        dealt = not spec.memory.is_sharded
        shown = (min(rows, side), min(columns, side)) if dealt else (rows, columns)
        step = (-(-shown[0] // side), -(-shown[1] // side))
        down, across = (np.arange(0, n, by, dtype=np.int64) for n, by in zip(shown, step, strict=True))
        number = down[:, None] * columns + across
        slot = np.asarray(spec.paging.slots(number))
        position, address = (
            np.asarray(layout(slot)) for layout in (spec.page_map.position_of_slot, spec.page_map.offset_of_slot)
        )
        banks, cores = np.array(spec.banks, dtype=np.int64), np.array(spec.paging.cores, dtype=np.int64)
        return cls(
            spec,
            (rows, columns),
            shown,
            step,
            number,
            slot // spec.paging.shard_pages,
            address // max(1, spec.aligned_page_bytes),
            banks[position],
            cores[position, 1] * 65536 + cores[position, 0],
            address + _start_address(spec),
        )

    def page_counts(self) -> NDArray[np.int64]:
        """Return how many pages each core or bank of `spec.banks` holds."""
        paging = self.spec.paging
        count = len(paging.cores)
        if not self.spec.memory.is_sharded:
            each, rest = divmod(paging.num_pages, count)
            return each + (np.arange(count) < rest).astype(np.int64)
        pages = np.ones((), dtype=np.int64)  # of each shard, which at an edge may be partial
        for n, shard, shards in zip(paging.grid, paging.shard, paging.shards, strict=True):
            sizes = np.minimum(shard, n - shard * np.arange(shards, dtype=np.int64))
            pages = pages[..., None] * sizes
        number = np.arange(paging.num_shards, dtype=np.int64)
        home = number // max(1, paging.shards_per_core) if paging.in_runs else number % count
        found: NDArray[np.int64] = np.bincount(home, pages.reshape(-1), minlength=count).astype(np.int64)
        return found

    def shards_of(self, position: int) -> range:
        """Return the shards of a core, by its position in the list of cores."""
        paging = self.spec.paging
        if paging.in_runs:
            first = position * paging.shards_per_core
            return range(first, min(first + paging.shards_per_core, paging.num_shards))
        return range(position, paging.num_shards, len(paging.cores))

    def page_runs(self) -> list[str | None]:
        """Return the pages of each core of `paging.cores` as runs, such as P0-P3; None if they are too many to list."""
        paging = self.spec.paging
        if paging.num_pages > _MOST_LISTED:
            return [None] * len(paging.cores)
        page_of_slot = np.full(paging.num_shards * paging.shard_pages, paging.num_pages, dtype=np.int64)
        number = np.arange(paging.num_pages, dtype=np.int64)
        page_of_slot[np.asarray(paging.slots(number))] = number  # a partial shard leaves slots without a page
        shards = page_of_slot.reshape(paging.num_shards, paging.shard_pages)
        held = [np.sort(shards[list(self.shards_of(k))].reshape(-1)) for k in range(len(paging.cores))]
        return [_format_runs(pages[pages < paging.num_pages].tolist()) for pages in held]

    @property
    def note(self) -> str:
        """Return the note for a grid whose cells stand for several pages."""
        if self.shown != self.shape:
            return f"The first {self.shown[0]} x {self.shown[1]} of {self.shape[0]} x {self.shape[1]} pages."
        many = f"Each cell stands for {self.step[0]} x {self.step[1]} pages and shows the first."
        return many if self.step != (1, 1) else ""

    def cell_of(self, page: int) -> tuple[int, int] | None:
        """Return the cell of a page, or None if it is not drawn."""
        row, column = divmod(page, self.shape[1])
        if row >= self.shown[0] or column >= self.shown[1]:
            return None
        return row // self.step[0], column // self.step[1]

    def grid(self, linked_by_page: bool) -> Grid:
        """Return the pages as a grid, colored by bank or shard; links go to pages, or to the cores that hold them."""
        sharded = self.spec.memory.is_sharded
        rows, columns = self.number.shape
        fields = [
            Field.of_table("page", self.number, "ramp", PAGE_FORM),
            Field.of_table("bank", self.bank),
            Field.of_table("address", self.address, "ramp"),
            Field.of_table("local page", self.local, "ramp", PAGE_FORM),
            Field.of_table("host page", self.number, "ramp", HOST_FORM),
        ]
        names = tuple(map(core_name, self.core.reshape(-1).tolist()))
        if sharded or self.spec.memory.buffer_type.is_l1:
            fields.append(Field("core", names, form=CORE_FORM))
        if sharded:
            fields.append(Field.of_table("shard", self.shard))
        (high, wide), tiled = self.spec.page_shape, self.spec.page_shape[0] > 1
        return Grid(
            rows,
            columns,
            tuple(fields),
            title=f"pages of {high} x {wide} elements",
            color="shard" if sharded else "bank",
            label="page",
            link=names if sharded and not linked_by_page else fields[0].values,
            outlines=self.shard_outlines() if sharded else (),
            row_axis="row" if tiled else "page",
            column_axis="column" if tiled else "",
            row_names=() if tiled else tuple(str(row * self.step[0] * self.shape[1]) for row in range(rows)),
            block=(high * self.step[0], wide * self.step[1]) if tiled else self.step,
        )

    def shard_outlines(self) -> tuple[Outline, ...]:
        """Return a box around every shard that is a rectangle in the picture."""
        shard = self.shard
        found = []
        for number in np.unique(shard).tolist()[:1024]:
            rows, columns = np.nonzero(shard == number)
            top, left = int(rows.min()), int(columns.min())
            high, wide = int(rows.max()) + 1 - top, int(columns.max()) + 1 - left
            if high * wide == len(rows):
                found.append(Outline(top, left, high, wide, "tile", f"shard {number}"))
        return tuple(found)


def _start_address(spec: TensorSpec) -> int:
    """Return the address of the tensor, or 0 if it does not fit, which the facts mention."""
    try:
        return spec.first_address
    except OutOfMemory:
        return 0


def core_name(core: int) -> str:
    """Return a core as x,y.

    >>> core_name(65536 * 2 + 5)
    '5,2'
    """
    return f"{core % 65536},{core // 65536}"


def _core_boxes(pages: _Pages) -> Grid | None:
    """Return a box for every core with the pages that it holds, as they lie in its shards; None if they are too many.

    Shards of a core are drawn one below the other, in the order of their addresses.
    """
    spec, paging = pages.spec, pages.spec.paging
    cores = [core for k, core in enumerate(paging.cores) if len(pages.shards_of(k))]
    (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*cores, strict=True))
    across, down = right + 1 - left, bottom + 1 - top
    wide = paging.shard[-1]
    high = paging.shard_pages // wide * paging.shards_per_core
    if (
        spec.num_pages > _BOXED_PAGES
        or across * down > _BOXED_CORES
        or down * high > _BOXED_ROWS
        or across * (wide * (7 + 5 * len(f"P{spec.num_pages - 1}")) + _BOX_GAP) > _BOX_WIDTH
    ):
        return None
    number = np.arange(spec.num_pages, dtype=np.int64)
    slot = np.asarray(paging.slots(number))
    position, address = (
        np.asarray(layout(slot)) for layout in (spec.page_map.position_of_slot, spec.page_map.offset_of_slot)
    )
    local = address // spec.aligned_page_bytes
    where = np.array(paging.cores, dtype=np.int64)[position]
    cell = ((where[:, 1] - top) * high + local // wide) * across * wide + (where[:, 0] - left) * wide + local % wide
    tables = {
        "page": (number, "ramp", PAGE_FORM),
        "shard": (slot // paging.shard_pages, "category", "{}"),
        "bank": (np.array(spec.banks, dtype=np.int64)[position], "category", "{}"),
        "address": (address + _start_address(spec), "ramp", "{}"),
        "local page": (local, "ramp", PAGE_FORM),
        "host page": (number, "ramp", HOST_FORM),
    }
    count = across * wide * down * high
    fields = [_scatter_field(name, table, cell, count, *rest) for name, (table, *rest) in tables.items()]
    l1 = spec.memory.buffer_type.is_l1
    grid = [(x, y) for y in range(top, bottom + 1) for x in range(left, right + 1)]
    each = high // paging.shards_per_core
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


def _core_grid(pages: _Pages) -> Grid:
    """Return the grid of cores with the shards, pages and bytes of each."""
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


def _format_runs(pages: list[int]) -> str:
    """Return page numbers as runs, such as P0-P3 P8-P11; if there are many, only how many pages there are."""
    starts = [k for k, page in enumerate(pages) if not k or page != pages[k - 1] + 1]
    if len(starts) > _MOST_RUNS:
        return f"{len(pages)} pages"
    ends = [*starts[1:], len(pages)] if starts else []
    runs = [(pages[k], pages[end - 1]) for k, end in zip(starts, ends, strict=True)]
    return " ".join(f"P{first}" if first == last else f"P{first}-P{last}" for first, last in runs)


def _bank_page_grid(pages: _Pages, side: int) -> Grid:
    """Return the banks with their pages stacked; if there are too many, only their number."""
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
    start = _start_address(spec)
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


def _mark_cell(grid: Grid, cell: tuple[int, int] | None) -> Grid:
    if cell is None:
        return grid
    return replace(grid, outlines=(*grid.outlines, Outline(*cell, 1, 1, "mark")))


def _holder_of(grid: Grid, where: Where, pages: _Pages) -> tuple[int, int] | None:
    by_core = pages.spec.memory.is_sharded and grid.boxes is None
    wanted = core_name(where.core.y * 65536 + where.core.x) if by_core else where.page
    if wanted not in grid.link:
        return None
    at = grid.link.index(wanted)
    return at // grid.columns, at % grid.columns


def _where_facts(where: Where) -> list[Fact]:
    return [Fact(name, value.strip()) for name, _, value in (line.partition(" ") for line in str(where).splitlines())]


def _address_fact(spec: TensorSpec) -> Fact:
    try:
        return Fact("address on an empty chip", str(spec.first_address))
    except OutOfMemory as problem:
        return Fact("does not fit", f"{problem}; addresses are relative to the buffer", "bad")


def _placement_facts(pages: _Pages) -> list[Fact]:
    spec = pages.spec
    share = spec.padding_bytes / spec.nbytes if spec.nbytes else 0.0
    banks = spec.known_chip.banks(spec.memory.buffer_type)
    held = np.zeros(banks, dtype=np.int64)
    np.add.at(held, list(spec.banks), pages.page_counts() * spec.aligned_page_bytes)
    even = balance(held.tolist())
    return [
        Fact("padded shape", " x ".join(map(str, spec.padded_shape))),
        Fact("pages", f"{spec.num_pages} of {spec.page_bytes} bytes ({spec.aligned_page_bytes} with alignment)"),
        Fact("bytes", f"{spec.nbytes}, of which {spec.padding_bytes} padding ({share:.1%})"),
        Fact("bytes per bank", str(even)),
        Fact("imbalance", f"{even.imbalance:.2f} (max/mean)", "good" if even.imbalance <= 1.25 else "bad"),
        _address_fact(spec),
    ]
