# SPDX-License-Identifier: Apache-2.0
"""The pages of a placed tensor on a sheet: which are drawn, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._integers import ceil_div
from ...errors import OutOfMemory
from ...memory import TensorSpec
from ..scene import Field, Grid, Outline

MOST_LINES = 24  # pages in one column, drawn one below the other; more are folded
_FOLDS = (8, 16, 32)  # pages side by side of a folded column
_MOST_RUNS = 3  # of pages that are written for a core
PAGE_FORM, HOST_FORM, CORE_FORM = "P{}", "H{}", "C({})"  # of a page, a page of the host, and a core
MOST_LISTED = 1 << 14  # pages of a tensor whose cores list theirs


@dataclass(frozen=True, slots=True)
class PageSheet:
    """The pages of a tensor on a sheet: where those lie that are drawn, and how many each core or bank holds.

    Nothing here takes longer for a large tensor: a cell is one page, the first of those that it stands for.

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
        folded = columns == 1 and rows > MOST_LINES
        if folded:
            columns = _fold_width(rows, (1, *spec.paging.shard)[-2] if spec.memory.is_sharded else rows)
            rows = ceil_div(rows, columns)
        # Every fourth page of twelve banks would show three banks: pages dealt in turn are cut off instead.
        dealt = not spec.memory.is_sharded
        shown = (min(rows, side), min(columns, side)) if dealt else (rows, columns)
        step = (-(-shown[0] // side), -(-shown[1] // side))
        down, across = (np.arange(0, n, by, dtype=np.int64) for n, by in zip(shown, step, strict=True))
        number = down[:, None] * columns + across
        slot = np.asarray(spec.paging.slots(np.minimum(number, spec.num_pages - 1)))
        position, address = (
            np.asarray(layout(slot)) for layout in (spec.page_map.position_of_slot, spec.page_map.offset_of_slot)
        )
        banks, cores = np.array(spec.banks, dtype=np.int64), np.array(spec.paging.cores, dtype=np.int64)
        return cls(
            spec,
            (rows, columns),
            shown,
            step,
            folded,
            number,
            slot // spec.paging.shard_pages,
            address // max(1, spec.aligned_page_bytes),
            banks[position],
            cores[position, 1] * 65536 + cores[position, 0],
            address + start_address(spec),
        )

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
        """Return the shards of a core, by its position in the list of cores.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> PageSheet.of(spec, 128).shards_of(1)
        range(1, 2, 2)
        """
        paging = self.spec.paging
        if paging.in_runs:
            first = position * paging.shards_per_core
            return range(first, min(first + paging.shards_per_core, paging.num_shards))
        return range(position, paging.num_shards, len(paging.cores))

    def page_runs(self) -> list[str | None]:
        """Return the pages of each core of `paging.cores` as runs, such as P0-P3; None if they are too many to list.

        >>> from tilewright import TensorSpec, height_sharded
        >>> spec = TensorSpec((128, 64), "uint8", "tile", memory=height_sharded((2, 1)), chip="n150")
        >>> PageSheet.of(spec, 128).page_runs()
        ['P0-P3', 'P4-P7']
        """
        paging = self.spec.paging
        if paging.num_pages > MOST_LISTED:
            return [None] * len(paging.cores)
        page_of_slot = np.full(paging.num_shards * paging.shard_pages, paging.num_pages, dtype=np.int64)
        number = np.arange(paging.num_pages, dtype=np.int64)
        page_of_slot[np.asarray(paging.slots(number))] = number  # a partial shard leaves slots without a page
        shards = page_of_slot.reshape(paging.num_shards, paging.shard_pages)
        held = [np.sort(shards[list(self.shards_of(k))].reshape(-1)) for k in range(len(paging.cores))]
        return [format_runs(pages[pages < paging.num_pages].tolist()) for pages in held]

    @property
    def note(self) -> str:
        """Return the note for a grid whose cells stand for several pages.

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
        fields = [
            Field("page", number, "ramp", PAGE_FORM),
            Field("bank", bank),
            Field("address", address, "ramp"),
            Field("local page", local, "ramp", PAGE_FORM),
            Field("host page", number, "ramp", HOST_FORM),
        ]
        names = tuple([None if each is None else core_name(each) for each in core])
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
        found = []
        for number in np.unique(shard[shard >= 0]).tolist()[:1024]:
            rows, columns = np.nonzero(shard == number)
            top, left = int(rows.min()), int(columns.min())
            high, wide = int(rows.max()) + 1 - top, int(columns.max()) + 1 - left
            if high * wide == len(rows):
                found.append(Outline(top, left, high, wide, "tile", f"shard {number}"))
        return tuple(found)


def _fold_width(pages: int, together: int) -> int:
    """Return the pages side by side of a folded column: few rows, and if possible whole runs of `together` pages."""
    if _FOLDS[0] // 2 <= together <= _FOLDS[1]:
        return together
    wide = next((n for n in _FOLDS if 4 * n * n >= pages), _FOLDS[-1])
    return next((n for n in (wide, *_FOLDS) if together % n == 0), wide)


def start_address(spec: TensorSpec) -> int:
    """Return the address of the tensor, or 0 if it does not fit, which the facts mention.

    >>> from tilewright import TensorSpec
    >>> start_address(TensorSpec((64, 64), "uint8", chip="n150"))
    1048640
    """
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


def format_runs(pages: list[int]) -> str:
    """Return page numbers as runs, such as P0-P3 P8-P11; if there are many, only how many pages there are.

    >>> format_runs([0, 1, 2, 8]), format_runs([0, 2, 4, 6, 8])
    ('P0-P2 P8', '5 pages')
    """
    starts = [k for k, page in enumerate(pages) if not k or page != pages[k - 1] + 1]
    if len(starts) > _MOST_RUNS:
        return f"{len(pages)} pages"
    ends = [*starts[1:], len(pages)] if starts else []
    runs = [(pages[k], pages[end - 1]) for k, end in zip(starts, ends, strict=True)]
    return " ".join(f"P{first}" if first == last else f"P{first}-P{last}" for first, last in runs)
