# SPDX-License-Identifier: Apache-2.0
"""Plans: any placement to any other, as a few loop nests.

Planning cuts the domain into the common leaves of both sides, the leaves into boxes (data, padding, edges of blocks),
and turns every box into a `Part`. Engines only run parts; a new layout never needs a new kernel. From blocks to blocks
a plan has several steps, which unpack a slab to scratch memory and pack it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..formats import BlockFormat
from ..layout import ComposedLayout, Layout, LayoutLike, PagedLayout, Swizzle, compose
from ..layout.properties import find_collision
from ..showing import Shown
from .explain import explain
from .leaves import Leaf, Mode, common_leaves, cut_mode, prefix_boxes, suffix_boxes
from .part import HotModes, Operation, Part, normalised
from .placement import Placement
from .slabs import slabs

Box = list[tuple[int, int]]
_PLANS: dict[tuple[Any, ...], Plan] = {}
_MOST_PLANS = 1024


class PlannedSource(Placement):
    """The source of a plan: a placement like any other which, called, gives the source text of the plan's kernels.

    >>> from tilewright import Layout
    >>> place = Placement(Layout(4096), "int8")
    >>> plan = plan_copy(place, place)
    >>> plan.source == place, plan.source("cuda") == plan.code("cuda")
    (True, True)
    """

    plan: Plan

    def __init__(self, place: Placement, plan: Plan) -> None:
        self.__dict__.update({**place.__dict__, "plan": plan})

    def __call__(self, dialect: str) -> str:
        """Return the plan as C for a device, in the dialect "opencl" or "cuda"; see `Plan.code`."""
        return self.plan.code(dialect)

    @property
    def placement(self) -> Placement:
        """Return the source without its plan."""
        return Placement(self.layout, self.format, self.fill, self.tile_elements)

    def __repr__(self) -> str:
        return repr(self.placement)


@dataclass(frozen=True, slots=True, init=False)
class Plan(Shown):
    """How to move source into target: loop nests that engines run.

    A plan from blocks to blocks has `stages`, plans that run one after the other through scratch memory, and its parts
    are theirs; any other plan has none, and its parts run in any order.

    `plan.source("opencl")` and `plan.source("cuda")` are the text of the kernels that do it on a device.

    >>> from tilewright import row_major, col_major
    >>> plan = plan_copy(Placement(row_major(4, 8), "float32"), Placement(col_major(4, 8), "float32"))
    >>> [(part.operation, part.extents) for part in plan.parts]
    [('copy', (8, 4))]
    """

    source: PlannedSource
    target: Placement
    parts: tuple[Part, ...]
    stages: tuple[Plan, ...]

    def __init__(
        self, source: Placement, target: Placement, parts: tuple[Part, ...], stages: tuple[Plan, ...] = ()
    ) -> None:
        object.__setattr__(self, "source", PlannedSource(source, self))
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "stages", stages)

    @property
    def steps(self) -> tuple[Plan, ...]:
        """Return the plans that run one after the other: the stages, or the plan itself.

        >>> from tilewright import Layout
        >>> blocks = [Placement(Layout(32), name, tile_elements=32) for name in ("bfloat8_b", "bfloat4_b")]
        >>> [(str(step.source.format), str(step.target.format)) for step in plan_copy(*blocks).steps]
        [('bfloat8_b', 'float32'), ('float32', 'bfloat4_b')]
        """
        return self.stages or (self,)

    @property
    def scratch(self) -> int:
        """Return how many float32 of scratch memory the stages need between them.

        >>> from tilewright import Layout
        >>> plan_copy(*[Placement(Layout(32), name, tile_elements=32) for name in ("mxfp4", "nvfp4")]).scratch
        32
        """
        return max((step.target.places for step in self.stages if not step.packs), default=0)

    @property
    def packs(self) -> bool:
        """Return whether the target holds blocks.

        >>> from tilewright import Layout
        >>> plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8")).packs
        False
        """
        return isinstance(self.target.format, BlockFormat)

    @property
    def written(self) -> tuple[tuple[Plan, Part], ...]:
        """Return the parts that write to the target, each with the step that it belongs to.

        >>> from tilewright import Layout
        >>> blocks = [Placement(Layout(32), name, tile_elements=32) for name in ("bfloat8_b", "bfloat4_b")]
        >>> [part.operation for _, part in plan_copy(*blocks).written]
        ['pack', 'clear']
        """
        return tuple([(step, part) for step in self.steps if step.packs == self.packs for part in step.parts])

    @property
    def moved(self) -> int:
        """Return the number of elements that are copied.

        >>> from tilewright import row_major
        >>> plan_copy(Placement(row_major(4, 8), "int8"), Placement(row_major(4, 8), "int8")).moved
        32
        """
        return sum(part.elements for _, part in self.written if part.operation not in ("fill", "clear"))

    @property
    def filled(self) -> int:
        """Return the number of elements of padding that are written.

        >>> from tilewright import row_major, with_logical_shape
        >>> plan_copy(
        ...     Placement(row_major(3, 8), "int8"), Placement(with_logical_shape(row_major(4, 8), (3, 8)), "int8")
        ... ).filled
        8
        """
        return prod(self.target.extents) - self.moved

    @property
    def cropped(self) -> int:
        """Return the number of elements of the source that have no place in the target.

        >>> from tilewright import row_major
        >>> plan_copy(Placement(row_major(4, 8), "int8"), Placement(row_major(4, 6), "int8"), crop=True).cropped
        8
        """
        return prod(self.source.data_extents) - self.moved

    def explain(self) -> str:
        """Return a description of the plan: loop nests, bytes, runs, what is filled and what is left out.

        >>> from tilewright import Layout
        >>> print(plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int16")).explain())
        copy 4 int8 -> int16
        4 elements, 4 bytes read, 8 written
        copy 4 elements in runs of 4
          for 4: source +1, target +2
        """
        return explain(self)

    def code(self, dialect: str) -> str:
        """Return the plan as C for a device, in the dialect "opencl" or "cuda": a kernel for each loop nest.

        >>> from tilewright import Layout
        >>> plan = plan_copy(Placement(Layout(4096), "int8"), Placement(Layout(4096), "int8"))
        >>> [line for line in plan.code("cuda").splitlines() if line.startswith("KERNEL")]
        ['KERNEL(256) tw_copy_0(GLOBAL const u8 *RESTRICT source, GLOBAL u8 *RESTRICT target) {']
        """
        from .codegen import generate  # needs plans itself

        return generate(self, dialect).text


def plan_copy(source: Placement, target: Placement, *, crop: bool = False, pad: bool = False) -> Plan:
    """Return the plan that moves source into target: convert, tile, transpose, pack or repack, in one go.

    Both sides hold data of the same shape; the padding that either has beside it may differ, and that of the target
    gets its fill value. What else would change the data has to be asked for: `crop` leaves out what the target has no
    place for, `pad` writes the fill value where the target expects data and the source has none.

    >>> from tilewright import Layout
    >>> plan_copy(Placement(Layout(4), "float32"), Placement(Layout(4, 2), "bfloat16")).parts[0].target
    (4,)
    >>> plan_copy(Placement(Layout(4), "int8"), Placement(Layout(6), "int8"), pad=True).filled
    2
    """
    for what, place in (("source", source), ("target", target)):
        if not isinstance(place, Placement):
            raise TypeError(
                f"plan_copy expected a Placement as its {what}, got {type(place).__name__}; describe memory with"
                " Placement(layout, format), or move arrays with copy(source, target)"
            )
    plan = _plan(source, target)
    if source.data_extents != target.data_extents:
        _check_shapes(source, target, crop, pad)
    return plan


def _check_shapes(source: Placement, target: Placement, crop: bool, pad: bool) -> None:
    """Raise if data would be left out or made up without having been asked for."""
    pairs = list(zip(source.data_extents, target.data_extents, strict=True))
    remedies = [
        f"{name}=True {effect}"
        for name, allowed, needed, effect in (
            ("crop", crop, any(a > b for a, b in pairs), "leaves out what the target has no place for"),
            ("pad", pad, any(a < b for a, b in pairs), "fills what the source does not have"),
        )
        if needed and not allowed
    ]
    if remedies:
        raise LayoutError(
            f"cannot copy data of shape {source.data_extents} to data of shape {target.data_extents}: expected equal"
            f" shapes; {', '.join(remedies)}"
        )


def _plan(source: Placement, target: Placement) -> Plan:
    """Return the plan of whatever both sides have in common; the rest of the target is filled."""
    key = (source.key, target.key)
    plan = _PLANS.get(key)
    if plan is None:
        if len(_PLANS) >= _MOST_PLANS:
            _PLANS.clear()
        plan = _PLANS[key] = _made(source, target)
    return plan


def _made(source: Placement, target: Placement) -> Plan:
    _check_sides(source, target)
    if isinstance(source.format, BlockFormat) and isinstance(target.format, BlockFormat):
        stages = tuple([_plan(*ends) for slab in slabs(source, target) for ends in slab])
        return Plan(source, target, tuple([part for stage in stages for part in stage.parts]), stages)
    return Plan(source, target, tuple(_parts(source, target)))


def _check_sides(source: Placement, target: Placement) -> None:
    if len(source.extents) != len(target.extents):
        raise LayoutError(
            f"cannot copy a source of {len(source.extents)} modes, {source.layout}, to a target of"
            f" {len(target.extents)}, {target.layout}: group or flatten one of them first"
        )
    if shares_places(target.layout):
        raise LayoutError(
            f"the target {target.layout} puts several elements in one place, so a copy has no single result; padding"
            " needs places of its own, too: with_logical_shape(layout, shape) marks a part of a larger layout as data"
        )
    _check_start(source, [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)])
    _check_start(target, target.extents)


def _parts(source: Placement, target: Placement) -> Iterator[Part]:
    data = [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)]
    if isinstance(target.format, BlockFormat):
        yield from _packing(source, target, data)
        return
    if 0 not in data:
        yield from _copying(source, target, data)
    yield from _filling(target, data)


def shares_places(layout: LayoutLike) -> bool:
    """Return whether two elements have one place, be they data or padding.

    >>> from tilewright import pad, row_major, with_logical_shape
    >>> shares_places(pad(row_major(3, 5), (4, 8))), shares_places(with_logical_shape(row_major(4, 8), (3, 5)))
    (True, False)
    """
    if isinstance(layout, Layout):
        return find_collision(layout) is not None
    if isinstance(layout, PagedLayout):
        return bool((np.diff(np.sort(layout.starts)) < layout.page).any())
    if isinstance(layout, ComposedLayout) and not shares_places(layout.inner):
        outer = layout.outer
        if isinstance(outer, Swizzle) or (int(layout.inner.cosize) <= outer.size and not shares_places(outer)):
            return False
    places = np.asarray(layout.offsets())
    return np.unique(places).size < places.size


def _check_start(place: Placement, extents: Sequence[int]) -> None:
    """Raise if an element within these extents lies before the start of its memory."""
    if not isinstance(place.layout, Layout) or 0 in extents:
        return
    if place.layout.guards:
        used = compose(place.layout, tuple(map(Layout, extents)) if place.layout.rank > 1 else Layout(extents[0]))
    else:
        used = place.layout
    if isinstance(used, Layout) and used.bounds[0] < 0:
        low = used.bounds[0]
        raise LayoutError(
            f"{place.layout} reaches place {low}, before the start of its memory; add an offset of {-low}"
        )


def _copying(source: Placement, target: Placement, data: list[int]) -> Iterator[Part]:
    """Yield the parts that move data to a scalar target, element by element or out of blocks."""
    if not isinstance(source.format, BlockFormat):
        leaves = _leaves(source.modes, target.modes, data)
        extents = [[leaf.extent for leaf in mode] for mode in leaves]
        for boxes in combinations(*map(prefix_boxes, extents, data)):
            yield _scalar_part(source, target, leaves, boxes)
        return
    blocks = _Blocks(source)
    leaves = _leaves(blocks.modes, target.modes, source.extents)  # whole blocks, also where only a part is data
    for cells in combinations(*[_cells(mode, blocks, 0, n, n) for mode, n in zip(leaves, data, strict=True)]):
        part = _block_part("unpack", source, target, leaves, cells, blocks, 0)
        if part.mask:
            yield part


def _leaves(source: Sequence[Mode], target: Sequence[Mode], extents: Sequence[int]) -> list[list[Leaf]]:
    """Return the common leaves of each mode."""
    return [common_leaves(k, [a, b], n) for k, (a, b, n) in enumerate(zip(source, target, extents, strict=True))]


def _filling(target: Placement, data: list[int]) -> Iterator[Part]:
    """Yield the parts that write padding: everything in the target that is not data."""
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
            yield _scalar_part(None, target, leaves, boxes)


def _packing(source: Placement, target: Placement, data: list[int]) -> Iterator[Part]:
    """Yield the parts that pack blocks; a block may be data, padding, or partly both."""
    blocks = _Blocks(target)
    nothing: list[Mode] = [[(1, 0)]] * len(data)
    leaves = _leaves(source.modes if all(data) else nothing, blocks.modes, target.extents)
    cells = [_cells(mode, blocks, 1, n, whole) for mode, n, whole in zip(leaves, data, target.extents, strict=True)]
    for chosen in combinations(*cells):
        yield _block_part("pack", source, target, leaves, chosen, blocks, 1)
    if blocks.gap and 0 not in target.extents:
        yield blocks.clearing(target)


def _scalar_part(
    source: Placement | None, target: Placement, leaves: Sequence[Sequence[Leaf]], boxes: Sequence[Box]
) -> Part:
    """Return the part that copies a box of elements, or fills it when there is no source."""
    places = [place for place in (source, target) if place is not None]
    sizes = [place.itemsize for place in places]
    nest = _Nest(places, sizes, leaves, boxes, is_lane=lambda leaf: False)
    steps = nest.steps if source is not None else [[0] * len(nest.extents), *nest.steps]
    offsets = nest.offsets if source is not None else [0, *nest.offsets]
    operation: Operation = "copy" if source is not None else "fill"
    return normalised(
        Part(operation, tuple(nest.extents), tuple(steps[0]), tuple(steps[1]), (), offsets[0], offsets[1], hot=nest.hot)
    )


class _Nest:
    """The loops over a box of digits, with a step for each side, and the digits that need a table."""

    def __init__(
        self, places: Sequence[Placement], sizes: Sequence[int], leaves: Any, boxes: Any, is_lane: Any
    ) -> None:
        self.extents: list[int] = []
        self.steps: list[list[int]] = [[] for _ in places]
        self.offsets = [0] * len(places)
        hot: list[tuple[tuple[int, int, int], ...]] = []
        for mode, box in zip(leaves, boxes, strict=True):
            digits = []
            for leaf, (start, count) in zip(mode, box, strict=True):
                if is_lane(leaf):
                    continue
                if not leaf.is_strided:
                    digits.append((leaf.radix, start, count))
                    continue
                self.extents.append(count)
                for side, size in enumerate(sizes):
                    step = leaf.steps[side] * size
                    self.steps[side].append(step)
                    self.offsets[side] += start * step
            hot.append(tuple(digits))
        self.hot = HotModes(tuple(hot)) if any(hot) else None
        if self.hot is None:
            for side, (place, size) in enumerate(zip(places, sizes, strict=True)):
                self.offsets[side] += place.origin * size


class _Blocks:
    """The block side of a plan: its modes cut at blocks and tiles, and where blocks and scales lie in bytes."""

    def __init__(self, place: Placement) -> None:
        if not isinstance(place.format, BlockFormat):
            raise TypeError(f"{place.format} is not a block format")
        self.block = place.format.block
        self.tile = place.tile_elements
        self.bytes = place.format.bytes_per_tile(self.tile)
        sections = place.format.sections(self.tile)
        self.data_start = sections.data_offset
        self.gap, self.gap_start = sections.padding, sections.scales
        self.block_bytes = sections.data * self.block // self.tile
        self.modes: list[Mode] = [cut_mode(cut_mode(mode, self.block), self.tile) for mode in place.modes]
        self.check(place)

    def check(self, place: Placement) -> None:
        """Raise unless lanes fill blocks and blocks fill tiles without running into the next."""
        steps = [(n, step) for mode in self.modes for n, step in mode if n > 1]
        problem = None
        if any(step is None or step < 0 for _, step in steps):
            problem = "is not strided"
        else:
            lanes = sum((n - 1) * step for n, step in steps if step < self.block)
            inside = sum((n - 1) * step for n, step in steps if step < self.tile)
            if lanes != self.block - 1 or any(step % self.block for _, step in steps if step >= self.block):
                problem = f"does not fill blocks of {self.block} elements"
            elif inside >= self.tile or any(step % self.tile for _, step in steps if step >= self.tile):
                problem = f"does not fill tiles of {self.tile} elements"
        if problem or place.origin % self.tile:
            raise LayoutError(
                f"{place.layout} cannot hold {place.format}: it {problem or 'does not start at a tile'};"
                " use whole tiles whose blocks are contiguous"
            )

    def is_lane(self, step: int) -> bool:
        return step < self.block

    def clearing(self, place: Placement) -> Part:
        """Return the part that writes zeros between the scales and the data of every tile of the placement."""
        tiles = [(n, step // self.tile * self.bytes) for mode in self.modes for n, step in mode if step >= self.tile]
        extents, steps = zip(*tiles, (self.gap, 1), strict=True)
        start = place.origin // self.tile * self.bytes + self.gap_start
        return normalised(Part("clear", extents, (0,) * len(extents), steps, target_offset=start))

    def data_step(self, step: int) -> int:
        return step // self.tile * self.bytes + step % self.tile // self.block * self.block_bytes

    def scale_step(self, step: int) -> int:
        return step // self.tile * self.bytes + step % self.tile // self.block


@dataclass(frozen=True, slots=True)
class _Cell:
    """Blocks of one mode that are alike: a box of the digits outside a block, and how many digits inside are data."""

    box: Box
    valid: int


def _cells(mode: Sequence[Leaf], blocks: _Blocks, side: int, limit: int, extent: int) -> list[_Cell]:
    """Return the cells of a mode of which the first `limit` indices are data."""
    if not all(leaf.is_strided for leaf in mode):
        raise LayoutError(
            "blocks need strides: one side cannot be cut where the other is; copy it to plain strides first"
        )
    lanes = [leaf for leaf in mode if blocks.is_lane(leaf.steps[side])]
    outer = [leaf.extent for leaf in mode if not blocks.is_lane(leaf.steps[side])]
    if any(not blocks.is_lane(leaf.steps[side]) for leaf in mode[: len(lanes)]):
        raise LayoutError("a block format needs the elements of a block to be neighbours along each mode")
    width = prod(leaf.extent for leaf in lanes)
    whole, rest = divmod(limit, width)
    cells = [_Cell(box, width) for box in (prefix_boxes(outer, whole) if whole else [])]
    if rest:
        cells += [_Cell(box, rest) for box in _single(outer, whole)]
    if limit < extent:
        cells += [_Cell(box, 0) for box in suffix_boxes(outer, whole + (rest > 0))]
    return cells


def _single(extents: list[int], index: int) -> list[Box]:
    box: Box = []
    for n in extents:
        index, digit = divmod(index, n)
        box.append((digit, 1))
    return [box]


def _block_part(
    operation: Operation,
    source: Placement,
    target: Placement,
    leaves: Sequence[Sequence[Leaf]],
    cells: Sequence[_Cell],
    blocks: _Blocks,
    side: int,
) -> Part:
    """Return the part that packs or unpacks a box of blocks; side is where the blocks are."""
    scalar = (source, target)[1 - side]
    size = scalar.itemsize
    extents, plain, data, scale = [], [], [], []
    plain_at = scalar.origin * size
    origin = (source, target)[side].origin
    data_at = blocks.data_start + blocks.data_step(origin)
    scale_at = blocks.scale_step(origin)
    lanes = [0] * blocks.block
    mask = [True] * blocks.block
    for mode, cell in zip(leaves, cells, strict=True):
        outer = iter(cell.box)
        radix = 1
        for leaf in mode:
            near, far = leaf.steps[1 - side], leaf.steps[side]
            if blocks.is_lane(far):
                for lane in range(blocks.block):
                    digit = lane // far % leaf.extent if far else 0
                    lanes[lane] += digit * near * size
                radix *= leaf.extent
                continue
            start, count = next(outer)
            extents.append(count)
            plain.append(near * size)
            data.append(blocks.data_step(far))
            scale.append(blocks.scale_step(far))
            plain_at += start * near * size
            data_at += start * data[-1]
            scale_at += start * scale[-1]
        if cell.valid < radix:
            for lane in range(blocks.block):
                mask[lane] = mask[lane] and _lane_index(mode, blocks, side, lane) < cell.valid
    bits = sum(1 << lane for lane in range(blocks.block) if mask[lane])
    steps = (plain, data) if side else (data, plain)
    starts = (plain_at, data_at) if side else (data_at, plain_at)
    return normalised(
        Part(
            operation,
            tuple(extents),
            tuple(steps[0]),
            tuple(steps[1]),
            tuple(scale),
            *starts,
            scale_at,
            tuple(lanes),
            bits,
        )
    )


def _lane_index(mode: Sequence[Leaf], blocks: _Blocks, side: int, lane: int) -> int:
    """Return the index within its mode, counted from the start of the block, of one lane."""
    index = 0
    for leaf in mode:
        far = leaf.steps[side]
        if far and blocks.is_lane(far):
            index += lane // far % leaf.extent * leaf.radix
    return int(index)
