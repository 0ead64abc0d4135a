# SPDX-License-Identifier: Apache-2.0
"""The scene of a placed tensor: its pages, the banks or cores that hold them, and the path of one element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analysis import balance
from ...errors import LayoutError, OutOfMemory
from ...memory import TensorSpec, Where
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


@scene_function
def spec_scene(
    spec: TensorSpec, *, at: Any = None, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the pages of a `spec` and where they lie: over banks, or in shards over a grid of cores.

    `at` is the coordinate of an element to mark, with its face, tile, page, bank or core, and address. `side` is the
    most rows and columns of pages that are drawn, and `title` that of the picture. `options` are those of every scene.

    >>> import tilewright as tw
    >>> spec = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=tw.height_sharded((2, 1)), chip="wormhole_n150")
    >>> pages, cores = spec_scene(spec).panels
    >>> pages.cell(3, 0).attributes["core"], cores.cell(0, 1).attributes["pages"]
    ('1,0', 8)
    """
    if not spec.num_pages:
        raise LayoutError(f"cannot draw {spec}: it has no pages; give every dimension an extent of at least 1")
    shards = spec.paging.num_shards if spec.memory.is_sharded else 0
    if shards > _MOST_SHARDS or spec.nbytes > _MOST_BYTES:
        what = f"{shards} shards" if shards > _MOST_SHARDS else f"{spec.nbytes} bytes"
        raise LayoutError(
            f"{what} are too many to draw; draw a part of the tensor, or use spec.where(...) for single elements"
        )
    if spec.chip is None and at is None:
        return _unplaced_scene(spec, side, title)
    pages = _Pages.of(spec, side)
    holders = _core_grid(pages) if spec.memory.is_sharded else _bank_page_grid(pages, side)
    panels = [pages.grid(), holders]
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
    return Scene(title, tuple(panels), tuple(facts), pages.note)


def _unplaced_scene(spec: TensorSpec, side: int, title: str) -> Scene:
    """Return the scene of a spec without a chip: the order in which elements are stored."""
    found = layout_scene(spec.stored, memory=False, side=side, title=title or str(spec))
    facts = [
        Fact("padded shape", " x ".join(map(str, spec.padded_shape))),
        Fact("pages", f"{spec.num_pages} of {spec.page_bytes} bytes"),
        Fact("bytes", f"{spec.nbytes}, of which {spec.padding_bytes} padding"),
        Fact("banks and addresses", "depend on the chip; give one, as in chip='wormhole_n150'"),
    ]
    return replace(found, facts=tuple(facts))


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
    bank: NDArray[np.int64]
    core: NDArray[np.int64]  # as y * 65536 + x
    address: NDArray[np.int64]

    @classmethod
    def of(cls, spec: TensorSpec, side: int) -> _Pages:
        (height, width), (high, wide) = spec.physical_shape, spec.page_shape
        rows, columns = height // high, width // wide
        if columns == 1 and rows > 16:  # pages are whole rows: fold them
            columns = next(n for n in (32, 16, 8, 4, 2, 1) if rows % n == 0)
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
            return range(position * paging.shards_per_core, (position + 1) * paging.shards_per_core)
        return range(position, paging.num_shards, len(paging.cores))

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

    def grid(self) -> Grid:
        """Return the pages as a grid, colored by bank or shard."""
        sharded = self.spec.memory.is_sharded
        rows, columns = self.number.shape
        fields = [
            Field.of_table("page", self.number, "ramp"),
            Field.of_table("bank", self.bank),
            Field.of_table("address", self.address, "ramp"),
        ]
        names = tuple(map(core_name, self.core.reshape(-1).tolist()))
        if sharded or self.spec.memory.buffer_type.is_l1:
            fields.append(Field("core", names))
        if sharded:
            fields.append(Field.of_table("shard", self.shard))
        (high, wide), tiled = self.spec.page_shape, self.spec.page_shape[0] > 1
        return Grid(
            rows,
            columns,
            tuple(fields),
            title=f"pages of {high} x {wide} elements",
            color="shard" if sharded else "bank",
            label="core" if sharded else "bank",
            link=names if sharded else fields[0].values,
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
    for position, (core, count) in enumerate(zip(cores, pages.page_counts().tolist(), strict=True)):
        own = pages.shards_of(position)
        if len(own):
            at = core.y * width + core.x
            held[at], first[at], shards[at] = count, own[0], _format_shards(own)
    names = [f"{at % width},{at // width}" for at in range(len(held))]
    fields = (
        Field("shard", tuple(first)),
        Field("shards", tuple(shards)),
        Field("pages", tuple(held), "ramp"),
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


def _bank_page_grid(pages: _Pages, side: int) -> Grid:
    """Return the banks with their pages stacked; if there are too many, only their number."""
    spec = pages.spec
    count = len(spec.banks)
    rounds = spec.paging.shards_per_core
    if rounds > side or count > side:
        fields = (Field("bank", tuple(range(count))), Field("pages", tuple(pages.page_counts().tolist()), "ramp"))
        wide = min(count, 16)
        if count % wide == 0 or rounds > side:
            wide = wide if count % wide == 0 else count
            return Grid(count // wide, wide, fields, title="pages per bank", color="bank", label="pages")
    address = [_start_address(spec) + each * spec.aligned_page_bytes for each in range(rounds)]
    page: list[Any] = [number if number < spec.num_pages else None for number in range(rounds * count)]
    return Grid(
        rounds,
        count,
        (
            Field("page", tuple(page), "ramp"),
            Field("bank", tuple(None if n is None else k % count for k, n in enumerate(page))),
        ),
        title=f"{spec.memory.buffer_type} banks and their pages",
        color="bank",
        label="page",
        valid=() if None not in page else tuple(n is not None for n in page),
        link=tuple(page),
        row_axis="address",
        column_axis="bank",
        row_names=tuple(map(str, address)),
        hatched="unused",
    )


def _mark_cell(grid: Grid, cell: tuple[int, int] | None) -> Grid:
    if cell is None:
        return grid
    return replace(grid, outlines=(*grid.outlines, Outline(*cell, 1, 1, "mark")))


def _holder_of(grid: Grid, where: Where, pages: _Pages) -> tuple[int, int] | None:
    wanted = core_name(where.core.y * 65536 + where.core.x) if pages.spec.memory.is_sharded else where.page
    if wanted not in grid.link:
        return None
    at = grid.link.index(wanted)
    return at // grid.columns, at % grid.columns


def _where_facts(where: Where) -> list[Fact]:
    return [Fact(name, value) for name, _, value in (line.partition(" ") for line in str(where).splitlines())]


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
