# SPDX-License-Identifier: Apache-2.0
"""`build_nests`: the loop nests of a copy between two placements.

The domain is split into the common leaves of both sides, the leaves into boxes (data, padding, edges of blocks), and
every box becomes a `LoopNest`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod

from ..errors import LayoutError
from ..formats import block_format_of
from .loop_nest import (
    DigitBox,
    Leaf,
    LoopNest,
    Mode,
    Operation,
    TabulatedModes,
    common_leaves,
    prefix_boxes,
    split_mode,
    suffix_boxes,
)
from .placement import Placement

Leaves = Sequence[Sequence[Leaf]]


def build_nests(source: Placement, target: Placement) -> tuple[LoopNest, ...]:
    """Return the loop nests that copy what both sides have in common, and fill the rest of the target.

    At most one side may have a block format.

    >>> from tilewright import Layout
    >>> [nest.operation for nest in build_nests(Placement(Layout(4), "int8"), Placement(Layout(6), "int8"))]
    ['copy', 'fill']
    """
    data = [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)]
    if target.format.has_blocks:
        return tuple(_pack_nests(source, target, data))
    copy_nests = _unpack_nests if source.format.has_blocks else _copy_nests
    return (*(() if 0 in data else copy_nests(source, target, data)), *_fill_nests(target, data))


def _copy_nests(source: Placement, target: Placement, data: list[int]) -> Iterator[LoopNest]:
    """Yield the nests that copy data element by element."""
    leaves = _common_leaves(source.modes, target.modes, data)
    extents = [[leaf.extent for leaf in mode] for mode in leaves]
    for boxes in combinations(*map(prefix_boxes, extents, data)):
        yield _element_nest(source, target, leaves, boxes)


def _unpack_nests(source: Placement, target: Placement, data: list[int]) -> Iterator[LoopNest]:
    """Yield the nests that unpack blocks to a scalar target."""
    blocks = _BlockGeometry(source)
    leaves = _common_leaves(blocks.modes, target.modes, source.extents)  # whole blocks, even if only partly data
    for cells in combinations(*[_block_cells(mode, blocks, 0, n, n) for mode, n in zip(leaves, data, strict=True)]):
        nest = _block_nest("unpack", source, target, leaves, cells, blocks, 0)
        if nest.data_mask:
            yield nest


def _fill_nests(target: Placement, data: list[int]) -> Iterator[LoopNest]:
    """Yield the nests that fill the padding: everything in the target that is not data."""
    if data == list(target.extents):
        return
    leaves = [common_leaves(k, [mode], n) for k, (mode, n) in enumerate(zip(target.modes, target.extents, strict=True))]
    extents = [[leaf.extent for leaf in mode] for mode in leaves]
    for k, limit in enumerate(data):
        if limit >= target.extents[k]:
            continue
        inside = [prefix_boxes(extents[j], data[j]) if data[j] else [] for j in range(k)]
        beyond = [[[(0, n) for n in extents[j]]] for j in range(k + 1, len(data))]
        for boxes in combinations(*inside, suffix_boxes(extents[k], limit), *beyond):
            yield _element_nest(None, target, leaves, boxes)


def _pack_nests(source: Placement, target: Placement, data: list[int]) -> Iterator[LoopNest]:
    """Yield the nests that pack blocks; a block may be data, padding, or partly both."""
    blocks = _BlockGeometry(target)
    empty: list[Mode] = [[(1, 0)]] * len(data)
    leaves = _common_leaves(source.modes if all(data) else empty, blocks.modes, target.extents)
    cells = [
        _block_cells(mode, blocks, 1, n, extent) for mode, n, extent in zip(leaves, data, target.extents, strict=True)
    ]
    for chosen in combinations(*cells):
        yield _block_nest("pack", source, target, leaves, chosen, blocks, 1)
    if blocks.gap and 0 not in target.extents:
        yield blocks.clear_nest(target)


def _common_leaves(source: Sequence[Mode], target: Sequence[Mode], extents: Sequence[int]) -> list[list[Leaf]]:
    """Return the common leaves of each mode."""
    return [common_leaves(k, [a, b], n) for k, (a, b, n) in enumerate(zip(source, target, extents, strict=True))]


def _element_nest(source: Placement | None, target: Placement, leaves: Leaves, boxes: Sequence[DigitBox]) -> LoopNest:
    """Return the nest that copies a box of elements, or fills it if there is no source."""
    places = [place for place in (source, target) if place is not None]
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in places]
    offsets = [0] * len(places)
    tabulated: list[tuple[tuple[int, int, int], ...]] = []
    for mode, box in zip(leaves, boxes, strict=True):
        digits = []
        for leaf, (start, count) in zip(mode, box, strict=True):
            if not leaf.is_strided:
                digits.append((leaf.radix, start, count))
                continue
            extents.append(count)
            for side, place in enumerate(places):
                step = (leaf.steps[side] or 0) * place.itemsize
                steps[side].append(step)
                offsets[side] += start * step
        tabulated.append(tuple(digits))
    table = TabulatedModes(tuple(tabulated)) if any(tabulated) else None
    if table is None:
        offsets = [offset + place.origin * place.itemsize for offset, place in zip(offsets, places, strict=True)]
    if source is None:
        steps, offsets = [[0] * len(extents), *steps], [0, *offsets]
    operation: Operation = "fill" if source is None else "copy"
    nest = LoopNest(
        operation, tuple(extents), tuple(steps[0]), tuple(steps[1]), (), offsets[0], offsets[1], tabulated=table
    )
    return nest.canonicalize()


class _BlockGeometry:
    """The block side of a copy: its modes split at blocks and tiles, and the byte offsets of codes and scales."""

    def __init__(self, place: Placement) -> None:
        block_format = block_format_of(place.format)
        self.block = block_format.block
        self.tile = place.tile_elements
        sections = block_format.sections(self.tile)
        self.tile_bytes = sections.total
        self.data_start = sections.data_offset
        self.gap, self.gap_start = sections.padding, sections.scales
        self.block_bytes = sections.data * self.block // self.tile
        self.modes: list[Mode] = [split_mode(split_mode(mode, self.block), self.tile) for mode in place.modes]
        self._validate(place)

    def _validate(self, place: Placement) -> None:
        """Raise unless elements fill blocks, and blocks fill tiles, without crossing into the next."""
        steps = [(n, step) for mode in self.modes for n, step in mode if n > 1]
        strided = [(n, step) for n, step in steps if step is not None and step >= 0]
        problem = None
        if len(strided) < len(steps):
            problem = "is not strided"
        else:
            in_block = sum((n - 1) * step for n, step in strided if step < self.block)
            in_tile = sum((n - 1) * step for n, step in strided if step < self.tile)
            if in_block != self.block - 1 or any(step % self.block for _, step in strided if step >= self.block):
                problem = f"does not fill blocks of {self.block} elements"
            elif in_tile >= self.tile or any(step % self.tile for _, step in strided if step >= self.tile):
                problem = f"does not fill tiles of {self.tile} elements"
        if problem or place.origin % self.tile:
            raise LayoutError(
                f"{place.layout} cannot hold {place.format}: it {problem or 'does not start at a tile'};"
                " use whole tiles with contiguous blocks"
            )

    def is_inside_block(self, step: int | None) -> bool:
        """Return whether a loop with this step stays inside a block."""
        return (step or 0) < self.block

    def clear_nest(self, place: Placement) -> LoopNest:
        """Return the nest that writes zeros between the scales and the data of every tile of the placement."""
        tiles = [
            (n, step // self.tile * self.tile_bytes)
            for mode in self.modes
            for n, step in mode
            if step is not None and step >= self.tile
        ]
        extents, steps = zip(*tiles, (self.gap, 1), strict=True)
        start = place.origin // self.tile * self.tile_bytes + self.gap_start
        return LoopNest("clear", extents, (0,) * len(extents), steps, target_offset=start).canonicalize()

    def data_offset(self, place: int) -> int:
        """Return the offset in bytes of the codes of a block from those of the first block."""
        return place // self.tile * self.tile_bytes + place % self.tile // self.block * self.block_bytes

    def scale_offset(self, place: int) -> int:
        """Return the offset in bytes of the scale of a block from that of the first block."""
        return place // self.tile * self.tile_bytes + place % self.tile // self.block


@dataclass(frozen=True, slots=True)
class _BlockCell:
    """Blocks of one mode that are alike: a box of the digits outside a block, and the number of digits with data."""

    box: DigitBox
    valid: int


def _block_cells(mode: Sequence[Leaf], blocks: _BlockGeometry, side: int, limit: int, extent: int) -> list[_BlockCell]:
    """Return the cells of a mode in which the first `limit` of `extent` indices are data."""
    if not all(leaf.is_strided for leaf in mode):
        raise LayoutError(
            "a block format needs strided layouts that split at the same places; copy one side to plain strides first"
        )
    in_block = [leaf for leaf in mode if blocks.is_inside_block(leaf.steps[side])]
    outer = [leaf.extent for leaf in mode if not blocks.is_inside_block(leaf.steps[side])]
    if any(not blocks.is_inside_block(leaf.steps[side]) for leaf in mode[: len(in_block)]):
        raise LayoutError("a block format needs the elements of a block to be neighbours along each mode")
    width = prod(leaf.extent for leaf in in_block)
    whole, rest = divmod(limit, width)
    cells = [_BlockCell(box, width) for box in (prefix_boxes(outer, whole) if whole else [])]
    if rest:
        cells.append(_BlockCell(_single_box(outer, whole), rest))
    if limit < extent:
        cells += [_BlockCell(box, 0) for box in suffix_boxes(outer, whole + (rest > 0))]
    return cells


def _single_box(extents: list[int], index: int) -> DigitBox:
    """Return the box that holds one index."""
    box: DigitBox = []
    for n in extents:
        index, digit = divmod(index, n)
        box.append((digit, 1))
    return box


def _block_nest(
    operation: Operation,
    source: Placement,
    target: Placement,
    leaves: Leaves,
    cells: Sequence[_BlockCell],
    blocks: _BlockGeometry,
    side: int,
) -> LoopNest:
    """Return the nest that packs or unpacks a box of blocks; `side` is the side that has the blocks."""
    scalar, packed = (source, target) if side else (target, source)
    size = scalar.itemsize
    extents, scalar_steps, data_steps, scale_steps = [], [], [], []
    scalar_start = scalar.origin * size
    data_start = blocks.data_start + blocks.data_offset(packed.origin)
    scale_start = blocks.scale_offset(packed.origin)
    element_offsets = [0] * blocks.block
    is_data = [True] * blocks.block
    for mode, cell in zip(leaves, cells, strict=True):
        outer = iter(cell.box)
        radix = 1
        for leaf in mode:
            near, far = leaf.steps[1 - side] or 0, leaf.steps[side] or 0
            if blocks.is_inside_block(far):
                for element in range(blocks.block):
                    digit = element // far % leaf.extent if far else 0
                    element_offsets[element] += digit * near * size
                radix *= leaf.extent
                continue
            start, count = next(outer)
            extents.append(count)
            scalar_steps.append(near * size)
            data_steps.append(blocks.data_offset(far))
            scale_steps.append(blocks.scale_offset(far))
            scalar_start += start * near * size
            data_start += start * data_steps[-1]
            scale_start += start * scale_steps[-1]
        if cell.valid < radix:
            for element in range(blocks.block):
                is_data[element] &= _index_in_mode(mode, blocks, side, element) < cell.valid
    return LoopNest(
        operation,
        tuple(extents),
        tuple(scalar_steps if side else data_steps),
        tuple(data_steps if side else scalar_steps),
        tuple(scale_steps),
        *((scalar_start, data_start) if side else (data_start, scalar_start)),
        scale_start,
        tuple(element_offsets),
        sum(1 << element for element in range(blocks.block) if is_data[element]),
    ).canonicalize()


def _index_in_mode(mode: Sequence[Leaf], blocks: _BlockGeometry, side: int, element: int) -> int:
    """Return the index within a mode, counted from the start of the block, of an element of a block."""
    index = 0
    for leaf in mode:
        step = leaf.steps[side]
        if step and blocks.is_inside_block(step):
            index += element // step % leaf.extent * leaf.radix
    return index
