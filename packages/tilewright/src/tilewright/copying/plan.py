# SPDX-License-Identifier: Apache-2.0
"""`Plan` and `plan_copy`: a copy from one placement to another, as loop nests that any engine runs.

A copy from one block format to another has stages: each unpacks a slab of the source to float32 scratch memory or packs
it from there, so that scratch memory stays bounded however large the tensor is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import product as combinations
from math import lcm, prod
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from ..display import Drawable
from ..errors import LayoutError
from ..formats import block_format_of
from ..layout import (
    ComposedLayout,
    Layout,
    LayoutLike,
    PagedLayout,
    Swizzle,
    compose,
    find_collision,
    format_tree,
    row_major,
    split_mode,
    with_logical_shape,
)
from .devices import load_engine
from .placement import (
    DigitBox,
    Leaf,
    LoopNest,
    Mode,
    Operation,
    Placement,
    TabulatedModes,
    common_leaves,
    prefix_boxes,
    suffix_boxes,
    validate_fill,
)

# `build_nests`: the loop nests of a copy between two placements.

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
    placements = [placement for placement in (source, target) if placement is not None]
    extents: list[int] = []
    strides: list[list[int]] = [[] for _ in placements]
    offsets = [0] * len(placements)
    tabulated: list[tuple[tuple[int, int, int], ...]] = []
    for mode, box in zip(leaves, boxes, strict=True):
        digits = []
        for leaf, (start, count) in zip(mode, box, strict=True):
            if not leaf.is_strided:
                digits.append((leaf.radix, start, count))
                continue
            extents.append(count)
            for side, placement in enumerate(placements):
                stride = (leaf.strides[side] or 0) * placement.itemsize
                strides[side].append(stride)
                offsets[side] += start * stride
        tabulated.append(tuple(digits))
    table = TabulatedModes(tuple(tabulated)) if any(tabulated) else None
    if table is None:
        offsets = [
            offset + placement.origin * placement.itemsize
            for offset, placement in zip(offsets, placements, strict=True)
        ]
    if source is None:
        strides, offsets = [[0] * len(extents), *strides], [0, *offsets]
    operation: Operation = "fill" if source is None else "copy"
    nest = LoopNest(
        operation, tuple(extents), tuple(strides[0]), tuple(strides[1]), (), offsets[0], offsets[1], tabulated=table
    )
    return nest.canonicalize()


class _BlockGeometry:
    """The block side of a copy: its modes split at blocks and tiles, and the byte offsets of codes and scales."""

    def __init__(self, placement: Placement) -> None:
        block_format = block_format_of(placement.format)
        self.block = block_format.block
        self.tile = placement.tile_elements
        sections = block_format.sections(self.tile)
        self.tile_bytes = sections.total
        self.data_start = sections.data_offset
        self.gap, self.gap_start = sections.padding, sections.scales
        self.block_bytes = sections.data * self.block // self.tile
        self.modes: list[Mode] = [split_mode(split_mode(mode, self.block), self.tile) for mode in placement.modes]
        self._validate(placement)

    def _validate(self, placement: Placement) -> None:
        """Raise unless elements fill blocks, and blocks fill tiles, without crossing into the next."""
        strides = [(n, stride) for mode in self.modes for n, stride in mode if n > 1]
        strided = [(n, stride) for n, stride in strides if stride is not None and stride >= 0]
        problem = None
        if len(strided) < len(strides):
            problem = "is not strided"
        else:
            in_block = sum((n - 1) * stride for n, stride in strided if stride < self.block)
            in_tile = sum((n - 1) * stride for n, stride in strided if stride < self.tile)
            if in_block != self.block - 1 or any(stride % self.block for _, stride in strided if stride >= self.block):
                problem = f"does not fill blocks of {self.block} elements"
            elif in_tile >= self.tile or any(stride % self.tile for _, stride in strided if stride >= self.tile):
                problem = f"does not fill tiles of {self.tile} elements"
        if problem or placement.origin % self.tile:
            raise LayoutError(
                f"{placement.layout} cannot hold {placement.format}: it {problem or 'does not start at a tile'};"
                " use whole tiles with contiguous blocks"
            )

    def is_inside_block(self, stride: int | None) -> bool:
        """Return whether a loop with this stride stays inside a block."""
        return (stride or 0) < self.block

    def clear_nest(self, placement: Placement) -> LoopNest:
        """Return the nest that writes zeros between the scales and the data of every tile of the placement."""
        tiles = [
            (n, stride // self.tile * self.tile_bytes)
            for mode in self.modes
            for n, stride in mode
            if stride is not None and stride >= self.tile
        ]
        extents, strides = zip(*tiles, (self.gap, 1), strict=True)
        start = placement.origin // self.tile * self.tile_bytes + self.gap_start
        return LoopNest("clear", extents, (0,) * len(extents), strides, target_offset=start).canonicalize()

    def data_offset(self, offset: int) -> int:
        """Return the offset in bytes of the codes of a block from the codes of the first block."""
        return offset // self.tile * self.tile_bytes + offset % self.tile // self.block * self.block_bytes

    def scale_offset(self, offset: int) -> int:
        """Return the offset in bytes of the scale of a block from the scale of the first block."""
        return offset // self.tile * self.tile_bytes + offset % self.tile // self.block


@dataclass(frozen=True, slots=True)
class _BlockCell:
    """Blocks of one mode that are alike: a box of the digits outside a block, and the number of digits with data."""

    box: DigitBox
    valid: int


def _block_cells(mode: Sequence[Leaf], blocks: _BlockGeometry, side: int, limit: int, extent: int) -> list[_BlockCell]:
    """Return the cells of a mode in which the first `limit` of `extent` indices are data."""
    if not all(leaf.is_strided for leaf in mode):
        raise LayoutError(
            "a block format needs strided layouts that split at the same extents; copy one side to plain strides first"
        )
    in_block = [leaf for leaf in mode if blocks.is_inside_block(leaf.strides[side])]
    outer = [leaf.extent for leaf in mode if not blocks.is_inside_block(leaf.strides[side])]
    if any(not blocks.is_inside_block(leaf.strides[side]) for leaf in mode[: len(in_block)]):
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
            near, far = leaf.strides[1 - side] or 0, leaf.strides[side] or 0
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
        stride = leaf.strides[side]
        if stride and blocks.is_inside_block(stride):
            index += element // stride % leaf.extent * leaf.radix
    return index


SLAB_BYTES = 16 << 20
Memory = TypeVar("Memory")


@dataclass(frozen=True, slots=True)
class Plan(Drawable):
    """The copy of `source` to `target`: loop nests that engines run in any order.

    A plan between two block formats has `stages`, plans that run one after the other through scratch memory; its nests
    are theirs.

    >>> from tilewright import row_major, col_major
    >>> plan = plan_copy(Placement(row_major(4, 8), "float32"), Placement(col_major(4, 8), "float32"))
    >>> [(nest.operation, nest.extents) for nest in plan.nests]
    [('copy', (8, 4))]
    """

    source: Placement
    target: Placement
    nests: tuple[LoopNest, ...]
    stages: tuple[Plan, ...] = ()

    @property
    def passes(self) -> tuple[Plan, ...]:
        """The plans that run one after the other: the stages, or the plan itself.

        >>> from tilewright import Layout
        >>> blocks = [Placement(Layout(32), name, tile_elements=32) for name in ("bfloat8_b", "bfloat4_b")]
        >>> [(str(stage.source.format), str(stage.target.format)) for stage in plan_copy(*blocks).passes]
        [('bfloat8_b', 'float32'), ('float32', 'bfloat4_b')]
        """
        return self.stages or (self,)

    @property
    def scratch(self) -> int:
        """The number of float32 values of scratch memory that the stages need.

        >>> from tilewright import Layout
        >>> plan_copy(*[Placement(Layout(32), name, tile_elements=32) for name in ("mxfp4", "nvfp4")]).scratch
        32
        """
        return max((stage.target.cosize for stage in self.stages if not stage.packs), default=0)

    @property
    def packs(self) -> bool:
        """Whether the target has a block format.

        >>> from tilewright import Layout
        >>> plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8")).packs
        False
        """
        return self.target.format.has_blocks

    @property
    def written(self) -> tuple[tuple[Plan, LoopNest], ...]:
        """The nests that write to the target, each with its stage.

        >>> from tilewright import Layout
        >>> blocks = [Placement(Layout(32), name, tile_elements=32) for name in ("bfloat8_b", "bfloat4_b")]
        >>> [nest.operation for _, nest in plan_copy(*blocks).written]
        ['pack', 'clear']
        """
        return tuple([(stage, nest) for stage in self.passes if stage.packs == self.packs for nest in stage.nests])

    @property
    def moved(self) -> int:
        """The number of elements that are copied.

        >>> from tilewright import row_major
        >>> plan_copy(Placement(row_major(4, 8), "int8"), Placement(row_major(4, 8), "int8")).moved
        32
        """
        return sum(nest.elements for _, nest in self.written if nest.operation not in ("fill", "clear"))

    @property
    def filled(self) -> int:
        """The number of elements of padding that are written.

        >>> from tilewright import row_major, with_logical_shape
        >>> plan_copy(
        ...     Placement(row_major(3, 8), "int8"), Placement(with_logical_shape(row_major(4, 8), (3, 8)), "int8")
        ... ).filled
        8
        """
        return prod(self.target.extents) - self.moved

    @property
    def cropped(self) -> int:
        """The number of elements of the source that are left out.

        >>> from tilewright import row_major
        >>> plan_copy(Placement(row_major(4, 8), "int8"), Placement(row_major(4, 6), "int8"), crop=True).cropped
        8
        """
        return prod(self.source.data_extents) - self.moved

    def explain(self) -> str:
        """Return a description of the plan: loop nests, bytes, runs, padding and cropping.

        >>> from tilewright import Layout
        >>> print(plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int16")).explain())
        copy 4 int8 -> int16
        4 elements, 4 bytes read, 8 written
        copy 4 elements in runs of 4
          for 4: source +1, target +2
        """
        read = sum(
            _bytes_accessed(stage.source, nest)
            for stage in self.passes
            if not (self.stages and stage.packs)
            for nest in stage.nests
            if nest.operation not in ("fill", "clear")
        )
        written = sum(_bytes_accessed(stage.target, nest) for stage, nest in self.written)
        lines = [
            f"copy {format_tree(self.source.layout.shape)} {self.source.format} -> {self.target.format}",
            f"{self.moved} elements, {read} bytes read, {written} written",
        ]
        if self.filled:
            share = 100 * self.filled / max(1, prod(self.target.extents))
            lines.append(f"{self.filled} elements of padding are filled with {self.target.fill!r} ({share:.1f} %)")
        if self.cropped:
            lines.append(f"{self.cropped} elements of the source are cropped")
        if self.stages:
            lines.append(f"in {len(self.stages)} stages, through {self.scratch} float32 of scratch memory")
        for stage in self.passes:
            for nest in stage.nests:
                lines += _describe_nest(stage, nest)
        return "\n".join(lines)

    def bind(
        self, source: object, target: object, threads: int | None = None, engine: str | None = None
    ) -> Callable[[], None]:
        """Return a function without arguments that runs the plan on the memory of two arrays, checked once.

        For a copy that is repeated: the call costs little more than the copy, and on a CUDA device it can be captured
        in a graph.

        Args:
            source: an array in host or device memory.
            target: another one, writeable.
            threads: as in `execute`.
            engine: as in `execute`.

        >>> from tilewright import Layout
        >>> plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4, -1) + 3, "int8"))
        >>> values, reversed_values = np.arange(4, dtype=np.int8), np.zeros(4, dtype=np.int8)
        >>> plan.bind(values, reversed_values)()
        >>> reversed_values.tolist()
        [3, 2, 1, 0]
        """
        # engines import this module, so what runs plans is imported when one is bound
        bind_plan: Callable[..., Callable[[], None]] = import_module("tilewright.copying.engine").BoundPlan
        return bind_plan(self, source, target, threads, engine)

    def code(self, dialect: str) -> str:
        """Return the source text of the plan in the `dialect` "opencl" or "cuda" of C: a kernel for each loop nest.

        >>> from tilewright import Layout
        >>> plan = plan_copy(Placement(Layout(4096), "int8"), Placement(Layout(4096), "int8"))
        >>> [line for line in plan.code("cuda").splitlines() if line.startswith("KERNEL")]
        ['KERNEL(256) tw_copy_0(GLOBAL const u8 *RESTRICT source, GLOBAL u8 *RESTRICT target) {']
        """
        return load_engine(dialect).code(self)


def plan_copy(source: Placement, target: Placement, *, crop: bool = False, pad: bool = False) -> Plan:
    """Return the plan that copies `source` to `target`: it converts, tiles, transposes, packs or repacks in one pass.

    Both sides must have data of the same shape; their padding may differ, and the target's padding gets its fill value.
    With `crop` the target may be smaller, and the rest of the source is left out. With `pad` the target may be larger,
    and the rest of it gets the fill value.

    >>> from tilewright import Layout
    >>> plan_copy(Placement(Layout(4), "float32"), Placement(Layout(4, 2), "bfloat16")).nests[0].target
    (4,)
    >>> plan_copy(Placement(Layout(4), "int8"), Placement(Layout(6), "int8"), pad=True).filled
    2
    """
    for what, placement in (("source", source), ("target", target)):
        if not isinstance(placement, Placement):
            raise TypeError(
                f"plan_copy expects a Placement as {what}, got {type(placement).__name__}; describe memory with"
                " Placement(layout, format), or copy arrays with copy(source, target)"
            )
    plan = _make_plan(source, target)
    if source.data_extents != target.data_extents:
        _validate_shapes(source, target, crop, pad)
    return plan


def _validate_shapes(source: Placement, target: Placement, crop: bool, pad: bool) -> None:
    """Raise if the data extents differ in a way that neither `crop` nor `pad` allows."""
    pairs = list(zip(source.data_extents, target.data_extents, strict=True))
    remedies = [
        f"{name}=True {effect}"
        for name, allowed, needed, effect in (
            ("crop", crop, any(a > b for a, b in pairs), "leaves out the rest of the source"),
            ("pad", pad, any(a < b for a, b in pairs), "fills the rest of the target"),
        )
        if needed and not allowed
    ]
    if remedies:
        raise LayoutError(
            f"cannot copy data of shape {source.data_extents} to data of shape {target.data_extents}: expected equal"
            f" shapes; {', '.join(remedies)}"
        )


@lru_cache(maxsize=1024)
def _make_plan(source: Placement, target: Placement) -> Plan:
    """Return the plan that copies what both sides have in common, and fills the rest of the target."""
    _validate_placements(source, target)
    if source.format.has_blocks and target.format.has_blocks:
        stages = tuple([_make_plan(*ends) for ends in _stage_placements(source, target)])
        plan = Plan(source, target, tuple([nest for stage in stages for nest in stage.nests]), stages)
    else:
        plan = Plan(source, target, build_nests(source, target))
    if plan.filled:
        validate_fill(source, target)
    return plan


def _stage_placements(source: Placement, target: Placement) -> Iterator[tuple[Placement, Placement]]:
    """Yield source and target of each stage: for each slab of the first mode, unpack to scratch and pack from there."""
    data = [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)]
    period = lcm(_tile_period(source), _tile_period(target))
    count = max(1, SLAB_BYTES // max(1, 4 * prod(data[1:]) * period)) * period
    for start in range(0, target.extents[0], count):
        extents = [max(0, min(count, data[0] - start)), *data[1:]]
        scratch = Placement(with_logical_shape(row_major(*[max(1, n) for n in extents]), tuple(extents)), "float32")
        if all(extents):  # otherwise all of the slab is padding
            yield _slab_placement(source, start, count), scratch
        yield scratch, _slab_placement(target, start, count)


def _tile_period(placement: Placement) -> int:
    """Return the number of indices of the first mode after which a new tile starts."""
    return prod([n for n, _ in split_mode(placement.modes[0], placement.tile_elements)][:-1])


def _slab_placement(placement: Placement, start: int, count: int) -> Placement:
    """Return the placement of `count` indices of the first mode."""
    window = Layout(min(count, placement.extents[0] - start)) + start
    return Placement(compose(placement.layout, (window,)), placement.format, placement.fill, placement.tile_elements)


def stage_operands(
    plan: Plan, source: Memory, target: Memory, allocate: Callable[[int], Memory]
) -> list[tuple[Plan, Memory, Memory]]:
    """Return the stages of a plan, each with the memory that it reads and that it writes.

    `allocate` returns scratch memory for a number of float32 values; stages that share it run in their order.

    >>> from tilewright import Layout
    >>> plan = plan_copy(*[Placement(Layout(32), name, tile_elements=32) for name in ("bfloat8_b", "bfloat4_b")])
    >>> [(read, written) for _, read, written in stage_operands(plan, "a", "b", lambda count: f"{count} float32")]
    [('a', '32 float32'), ('32 float32', 'b')]
    """
    if not plan.stages:
        return [(plan, source, target)]
    scratch = allocate(plan.scratch)
    return [(stage, scratch, target) if stage.packs else (stage, source, scratch) for stage in plan.stages]


Compiled = TypeVar("Compiled")

MAX_PLANS = 256
MAX_TABLE_BYTES = 256 << 20  # tables of a scattered layout can be as large as the tensor


class PlanCache(Generic[Compiled]):
    """An engine's programs compiled from plans, looked up by the identity of the plan and a key; safe under threads.

    `table_bytes` returns the bytes of tables that an entry holds. The cache is emptied when it holds too many plans or
    too many bytes.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8"))
    >>> cache = PlanCache()
    >>> cache.get(plan, "device 0", lambda: "compiled"), cache.get(plan, "device 0", lambda: "compiled again")
    ('compiled', 'compiled')
    """

    def __init__(self, table_bytes: Callable[[Compiled], int] = lambda _: 0) -> None:
        self._entries: dict[tuple[int, Hashable], tuple[Plan, Compiled]] = {}
        self._table_bytes, self._total_bytes = table_bytes, 0
        self._lock = Lock()

    def get(self, plan: Plan, key: Hashable, compile_plan: Callable[[], Compiled]) -> Compiled:
        """Return the entry of a plan under a key, compiling it if there is none."""
        entry = self._entries.get((id(plan), key))
        if entry is not None and entry[0] is plan:
            return entry[1]
        compiled = compile_plan()
        nbytes = self._table_bytes(compiled)
        with self._lock:
            if len(self._entries) >= MAX_PLANS or self._total_bytes + nbytes > MAX_TABLE_BYTES:
                self._entries.clear()
                self._total_bytes = 0
            self._total_bytes += nbytes
            self._entries[id(plan), key] = (plan, compiled)
        return compiled


def _validate_placements(source: Placement, target: Placement) -> None:
    """Raise if no copy between two placements is possible."""
    if len(source.extents) != len(target.extents):
        raise LayoutError(
            f"source {source.layout} has {len(source.extents)} modes and target {target.layout} has"
            f" {len(target.extents)}: they must be equal; group or flatten one of them first"
        )
    if has_collisions(target.layout):
        raise LayoutError(
            f"target {target.layout} is not injective: several elements have the same offset; padding also"
            " needs offsets of its own: with_logical_shape(layout, shape) marks part of a larger layout as data"
        )
    _validate_start(source, [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)])
    _validate_start(target, target.extents)


def has_collisions(layout: LayoutLike) -> bool:
    """Return whether two elements, data or padding, have the same offset.

    >>> from tilewright import pad, row_major, with_logical_shape
    >>> has_collisions(pad(row_major(3, 5), (4, 8))), has_collisions(with_logical_shape(row_major(4, 8), (3, 5)))
    (True, False)
    """
    if isinstance(layout, Layout):
        return find_collision(layout) is not None
    if isinstance(layout, PagedLayout):
        return bool((np.diff(np.sort(layout.starts)) < layout.page).any())
    if isinstance(layout, ComposedLayout) and not has_collisions(layout.inner):
        outer = layout.outer
        if isinstance(outer, Swizzle) or (int(layout.inner.cosize) <= outer.size and not has_collisions(outer)):
            return False
    offsets = np.asarray(layout.offsets())
    return np.unique(offsets).size < offsets.size


def _validate_start(placement: Placement, extents: Sequence[int]) -> None:
    """Raise if an element within these extents has a negative offset."""
    if not isinstance(placement.layout, Layout) or 0 in extents:
        return
    if placement.layout.guards:
        used = compose(
            placement.layout, tuple(map(Layout, extents)) if placement.layout.rank > 1 else Layout(extents[0])
        )
    else:
        used = placement.layout
    if isinstance(used, Layout) and used.bounds[0] < 0:
        low = used.bounds[0]
        raise LayoutError(
            f"{placement.layout} has offset {low}, before the start of its memory; add an offset of {-low}"
        )


def _bytes_accessed(placement: Placement, nest: LoopNest) -> int:
    """Return the number of bytes of one side that a nest accesses: whole blocks with their scales, or elements."""
    if nest.operation == "clear":
        return nest.elements
    if placement.format.has_blocks:
        block = placement.format.block
        return prod(nest.extents) * (placement.format.sections(block).data + 1)
    return nest.elements * placement.itemsize


def _describe_nest(plan: Plan, nest: LoopNest) -> list[str]:
    head = f"{nest.operation} {nest.elements} {'bytes' if nest.operation == 'clear' else 'elements'}"
    if nest.operation == "copy":
        head += f" in runs of {_run_length(plan, nest)}"
    if nest.operation in ("pack", "unpack"):
        block, data = len(nest.element_offsets), nest.data_mask.bit_count()
        head += f", blocks of {block}" + (f" of which {data} are data" if data < block else "")
    lines = [head]
    if nest.tabulated is not None:
        lines.append(f"  for {nest.tabulated.count} offsets from a table")
    scale = nest.scale or (0,) * len(nest.extents)
    for n, source, target, stride in zip(nest.extents, nest.source, nest.target, scale, strict=True):
        scales = f", scale {stride:+d}" if nest.scale else ""
        lines.append(f"  for {n}: source {source:+d}, target {target:+d}{scales}")
    return lines


def _run_length(plan: Plan, nest: LoopNest) -> int:
    """Return the number of elements that are contiguous in source and target."""
    run = 1
    for n, read, written in reversed(list(zip(nest.extents, nest.source, nest.target, strict=True))):
        if read != run * plan.source.itemsize or written != run * plan.target.itemsize:
            break
        run *= n
    return run
