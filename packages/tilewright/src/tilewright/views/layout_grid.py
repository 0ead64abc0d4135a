# SPDX-License-Identifier: Apache-2.0
"""A layout as a grid of cells: its last mode across, the others down; a cell of a large layout stands for a block."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LayoutError
from ..layout import (
    ComposedLayout,
    InverseLayout,
    Layout,
    LayoutLike,
    Place,
    Swizzle,
    leaves,
    make_layout,
    product,
    product_each,
)
from .scene import Outline, OutlineKind, outline_blocks

MAX_SIDE = 128  # cells in a row or column; in larger layouts a cell stands for a block
_MIN_TILES = 4  # per side, for one cell per tile
_MAX_OUTLINES = 1024
_MAX_COUNTED = 1 << 22  # elements that are counted one by one, where padding leaves no box
_NESTING: tuple[tuple[int, OutlineKind], ...] = ((2, "face"), (1, "tile"))  # levels from the outside
_FLAT: dict[OutlineKind, OutlineKind] = {"face": "slice", "tile": "plane"}  # of modes that are not nested
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayoutGrid:
    """A layout as a grid of cells; each cell stands for `block` rows and columns of coordinates.

    `down` and `across` are the extents of the leaves along either side, fastest first.

    >>> from tilewright import row_major
    >>> sheet = sample_layout(row_major(512, 64))
    >>> sheet.rows, sheet.columns, sheet.block
    (128, 64, (4, 1))
    """

    layout: LayoutLike
    extents: tuple[int, ...]
    down: tuple[int, ...]
    across: tuple[int, ...]
    block: tuple[int, int]

    @property
    def rows(self) -> int:
        """The number of rows of cells.

        >>> from tilewright import row_major
        >>> sample_layout(row_major(2, 3, 4)).rows
        6
        """
        return -(-prod(self.down) // self.block[0])

    @property
    def columns(self) -> int:
        """The number of columns of cells.

        >>> from tilewright import row_major
        >>> sample_layout(row_major(2, 3, 4)).columns
        4
        """
        return -(-prod(self.across) // self.block[1])

    @property
    def is_complete(self) -> bool:
        """Whether every coordinate has its own cell.

        >>> from tilewright import row_major
        >>> sample_layout(row_major(512, 64)).is_complete
        False
        """
        return self.block == (1, 1)

    @property
    def has_holes(self) -> bool:
        """Whether invalid coordinates have no place at all, as in an inverse.

        >>> from tilewright.layout import InverseLayout
        >>> from tilewright import row_major
        >>> sample_layout(row_major(2, 2)).has_holes, sample_layout(InverseLayout(row_major(2, 2))).has_holes
        (False, True)
        """
        return isinstance(self.layout, InverseLayout)

    def coordinates(self) -> list[Places]:
        """Return, for each mode, the coordinates of the first element of every cell.

        >>> from tilewright import row_major
        >>> [part.tolist() for part in sample_layout(row_major(2, 2)).coordinates()]
        [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
        """
        row = np.arange(self.rows, dtype=np.int64)[:, None] * self.block[0]
        column = np.arange(self.columns, dtype=np.int64)[None, :] * self.block[1]
        row, column = np.broadcast_arrays(row, column)
        if len(self.extents) == 1:  # one mode, folded: rows follow each other
            return [row * prod(self.across) + column]
        *outer, last = self.extents
        return [*np.unravel_index(row, tuple(outer)), np.minimum(column, last - 1)]

    def positions(self) -> dict[str, Places]:
        """Return the position of every cell's first element: `offset`, or one table per named axis.

        >>> from tilewright import row_major
        >>> sample_layout(row_major(2, 2)).positions()["offset"].tolist()
        [[0, 1], [2, 3]]
        """
        layout: Any = self.layout
        if isinstance(layout, Layout) and layout.replicas:
            layout = make_layout(layout.shape, layout.stride, layout.offset, (), layout.guards)
        at = self.coordinates()
        if self.has_holes:
            valid = self.valid()
            at = [np.where(valid, part, part[valid][0]) for part in at]
        offsets = layout.extended(*at) if layout.shape != () else layout.extended()
        shape = (self.rows, self.columns)
        if isinstance(offsets, Place):
            names = {**{name: offsets.get(name, 0) for name in layout.axes}, "offset": offsets.plain}
            return {name: np.broadcast_to(at, shape) for name, at in names.items() if name != "offset" or np.any(at)}
        return {"offset": np.broadcast_to(offsets, shape)}

    def valid(self) -> NDArray[np.bool_]:
        """Return which cells begin with data rather than padding.

        >>> from tilewright import Layout, pad
        >>> sample_layout(pad(Layout(3), 4)).valid().tolist()
        [[True, True, True, False]]
        """
        answer = self.layout.valid(*self.coordinates()) if self.layout.shape != () else True
        return np.broadcast_to(np.asarray(answer, dtype=bool), (self.rows, self.columns))

    def names(self) -> list[str]:
        """Return the coordinate of every cell as text, nested as the shape is.

        >>> from tilewright import Layout
        >>> sample_layout(Layout((2, (1, 2)))).names()
        ['0,(0,0)', '0,(0,1)', '1,(0,0)', '1,(0,1)']
        """
        modes = self.layout.shape if isinstance(self.layout.shape, tuple) else (self.layout.shape,)
        parts = []
        for mode, at in zip(modes, self.coordinates(), strict=False):
            words = {int(k): _format_coordinate(int(k), mode) for k in np.unique(at)}
            parts.append([words[k] for k in at.reshape(-1).tolist()])
        return [",".join(words) for words in zip(*parts, strict=True)]

    def elements(self) -> list[str]:
        """Return the coordinate of every cell as text, one number per mode.

        >>> from tilewright import row_major
        >>> sample_layout(row_major(2, 1, 2)).elements()
        ['0,0,0', '0,0,1', '1,0,0', '1,0,1']
        """
        parts = [list(map(str, at.reshape(-1).tolist())) for at in self.coordinates()]
        return [",".join(words) for words in zip(*parts, strict=True)]

    def row_major_numbers(self) -> tuple[int | None, ...]:
        """Return the number of every cell's first element if elements are counted row by row; padding has none.

        >>> from tilewright import row_major, with_logical_shape
        >>> sample_layout(with_logical_shape(row_major(2, 4), (2, 3))).row_major_numbers()
        (0, 1, 2, None, 3, 4, 5, None)
        """
        valid, extents = self.valid(), _data_extents(self.layout)
        if extents is not None:
            inside = [np.minimum(at, max(0, n - 1)) for at, n in zip(self.coordinates(), extents, strict=True)]
            number: Places = np.ravel_multi_index(tuple(inside), tuple([max(1, n) for n in extents]))
        elif prod(self.extents) <= _MAX_COUNTED:
            every = LayoutGrid(self.layout, self.extents, self.down, self.across, (1, 1)).valid()
            counted = np.cumsum(every.reshape(-1)).reshape(every.shape) - 1
            number = counted[:: self.block[0], :: self.block[1]]
        else:
            raise LayoutError(f"{self.layout} has too many elements to count them row by row between its padding")
        pairs = zip(number.reshape(-1).tolist(), valid.reshape(-1).tolist(), strict=True)
        return tuple([n if is_data else None for n, is_data in pairs])

    def row_names(self) -> tuple[str, ...]:
        """Return the coordinates of the first element of every row, where more than one mode goes down.

        >>> from tilewright import row_major
        >>> sample_layout(row_major(2, 1, 2)).row_names()
        ('0,0', '1,0')
        """
        if len(self.extents) == 1:
            return tuple(str(row * self.block[0] * prod(self.across)) for row in range(self.rows))
        if len(self.extents) == 2:
            return ()
        first = [at[:, 0].tolist() for at in self.coordinates()[:-1]]
        return tuple(",".join(map(str, entry)) for entry in zip(*first, strict=True))

    def outlines(self) -> tuple[Outline, ...]:
        """Return boxes around tiles and their faces, derived from the nesting of the shape.

        >>> from tilewright import row_major, blocked_product
        >>> [
        ...     (box.row, box.column)
        ...     for box in sample_layout(blocked_product(row_major(2, 2), row_major(1, 2))).outlines()
        ... ]
        [(0, 0), (0, 2)]
        """
        result: list[Outline] = []
        for kind, extents in self._nested_blocks():
            if extents == [None, None] or any(
                extent is not None and (extent % block or extent <= block)
                for extent, block in zip(extents, self.block, strict=True)
            ):
                continue
            high, wide = (
                n if extent is None else extent // b
                for extent, b, n in zip(extents, self.block, (self.rows, self.columns), strict=True)
            )
            if -(-self.rows // high) * -(-self.columns // wide) > _MAX_OUTLINES:
                continue
            result += outline_blocks(self.rows, self.columns, high, wide, kind)
        return tuple(result)

    def _nested_blocks(self) -> list[tuple[OutlineKind, list[int | None]]]:
        """Return the rows and columns of the faces and of the tiles; None where they are as large as the layout.

        Of modes that are not nested, the planes of more than two of them are separated.
        """
        modes: Any = self.layout.shape if len(self.extents) > 1 else (1, 1)
        down, across = leaves(modes[-2]), leaves(modes[-1])
        if len(down) == len(across) > 1:  # both sides nest alike: faces, the faces of a tile, tiles
            whole = (prod(self.down), prod(self.across))
            nested = [(prod(down[:k]), prod(across[:k])) for k in range(1, len(down))]
            boxes = [box for box in dict.fromkeys(nested) if box != (1, 1)]
            blocks = [(kind, boxes[-depth]) for depth, kind in _NESTING if len(boxes) >= depth]
            return [(kind, list(box)) for kind, box in blocks if box != whole]
        flat = len(self.extents) > 2 and len(down) == len(across) == 1
        levels = (_block_sizes(self.down), _block_sizes(self.across))
        return [
            (_FLAT[kind] if flat else kind, [level[-depth] if len(level) >= depth else None for level in levels])
            for depth, kind in _NESTING
        ]


def sample_layout(layout: LayoutLike, side: int = MAX_SIDE, block: tuple[int, int] | None = None) -> LayoutGrid:
    """Return a layout as a grid of at most `side` rows and columns, or with the given `block` per cell.

    >>> from tilewright import row_major
    >>> sample_layout(row_major(256)).columns
    64
    """
    extents = product_each(layout.shape) if layout.shape != () else (1,)
    modes = list(layout.shape) if isinstance(layout.shape, tuple) and layout.shape else [extents[0]]
    down = [leaf for mode in reversed(modes[:-1]) for leaf in leaves(mode)]
    across = leaves(modes[-1])
    if len(extents) == 1 and extents[0] > 64:
        wide = next((n for n in (64, 32, 48, 16) if extents[0] % n == 0), 0)
        if wide:
            down, across = [extents[0] // wide], [wide]
    down, across = [int(n) for n in down], [int(n) for n in across]
    return LayoutGrid(
        layout, tuple(int(n) for n in extents), tuple(down), tuple(across), block or _choose_block(down, across, side)
    )


def _data_extents(layout: LayoutLike) -> tuple[int, ...] | None:
    """Return the extent of the data in each mode, None if the data is not a box that begins at the first element."""
    while isinstance(layout, ComposedLayout):
        outer = layout.outer
        if not isinstance(outer, Swizzle) and not (isinstance(outer, Layout) and not outer.guards):
            return None  # which may have padding of its own
        layout = layout.inner
    if isinstance(layout, InverseLayout):
        return product_each(layout.shape)
    if not isinstance(layout, Layout):
        return None
    try:
        return layout.logical_shape or (1,)
    except LayoutError:  # padded across modes
        return None


def _choose_block(down: list[int], across: list[int], side: int) -> tuple[int, int]:
    """Return the rows and columns per cell: one tile if the layout has tiles, otherwise powers of two."""
    if prod(down) <= side and prod(across) <= side:
        return (1, 1)
    tiles = [levels[-1] if (levels := _block_sizes(tuple(extents))) else 0 for extents in (down, across)]
    counts = [-(-prod(n) // tile) if tile else 0 for n, tile in zip((down, across), tiles, strict=True)]
    if all(_MIN_TILES <= count <= side for count in counts):
        return tiles[0], tiles[1]
    return _smallest_block(down, side), _smallest_block(across, side)


def _smallest_block(extents: list[int], side: int) -> int:
    """Return the smallest block that gives at most `side` cells: whole leaves times a power of two."""
    total = prod(extents)
    size = 1
    for k, extent in enumerate(extents):
        last = k == len(extents) - 1  # the outermost leaf may end with a block that is not full
        for factor in (1 << j for j in range(extent.bit_length())):
            if (last or extent % factor == 0) and -(-total // (size * factor)) <= side:
                return size * factor
        size *= extent
    return total


def _block_sizes(extents: tuple[int, ...]) -> list[int]:
    """Return the sizes of the nested blocks of one side, smallest first, without the trivial ones."""
    sizes: list[int] = []
    size = 1
    for extent in extents[:-1]:
        size *= extent
        if size > 1 and (not sizes or sizes[-1] != size):
            sizes.append(size)
    return [n for n in sizes if n < prod(extents)]


def _format_coordinate(index: int, shape: object) -> str:
    if not isinstance(shape, tuple):
        return str(index)
    parts = []
    for mode in shape:
        size = product(mode)
        parts.append(_format_coordinate(index % size, mode))
        index //= size
    return f"({','.join(parts)})"
