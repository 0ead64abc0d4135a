# SPDX-License-Identifier: Apache-2.0
"""`SlabCutter`: the boxes of a tensor that are converted at a time, and the strips of the output that they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm, prod
from typing import NamedTuple

from .._integers import ceil_div, round_up
from ..errors import OutOfMemory
from ..files.paged_boxes import PagedBoxes
from ..files.stored_tensor import inverse_order
from ..layout.box import Box, cut_into_slabs, largest_slab
from .assembled_source import AssembledSource
from .rules import ConversionTarget

_MIN_RUN_BYTES = 512  # shorter ones are slow to read


class Slab(NamedTuple):
    """A box of a tensor that is converted at a time: `window` is the device's part, and `box` is relative to it."""

    window: int
    box: Box


@dataclass(frozen=True)
class SlabCutter:
    """The slabs of one tensor, part by part: boxes of the target that take at most `max_bytes` each.

    Slabs are cut from the outermost dimension of the source inwards, so that the source is read from front to back.
    Their edges are page edges on both sides. `whole_rows` cuts row-major targets between rows, for bank images.

    >>> import tempfile, numpy
    >>> from tilewright import TensorSpec, open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((100, 64), numpy.float32))
    ...     source = AssembledSource.of(open_tensors(folder)["x"])
    ...     slabs = SlabCutter(source, ConversionTarget(TensorSpec((100, 64), "bfloat8_b")), 40_000)
    >>> [slab.box.shape for slab in slabs]
    [(64, 64), (36, 64)]
    """

    source: AssembledSource
    target: ConversionTarget
    max_bytes: int
    whole_rows: bool = False
    region: Box | None = None  # of every part; all of it by default
    numbers: Sequence[int] | None = None  # of the parts; all of them by default

    @cached_property
    def windows(self) -> list[Box]:
        """Return the distinct parts of the devices, as boxes of the entire tensor."""
        shape = self.target.spec.shape.logical
        return [Box((0,) * len(shape), shape)] if self.target.mesh is None else list(self.target.mesh.windows())

    @cached_property
    def _region(self) -> Box:
        shape = self.target.spec.shape.logical
        return Box((0,) * len(shape), shape) if self.region is None else self.region

    @cached_property
    def _numbers(self) -> Sequence[int]:
        return range(len(self.windows)) if self.numbers is None else self.numbers

    @cached_property
    def _axes(self) -> list[int]:
        """Return the axes of the target, the outermost of the source first."""
        return self.source.axes_from_outermost()

    @cached_property
    def _units(self) -> list[int]:
        """Return the units of slab extents, so that slabs are entire pages on both sides."""
        spec = self.target.spec
        units = PagedBoxes(spec).units
        if self.whole_rows and units and not spec.is_tiled:  # the pages of rows
            units = (*units[:-1], max(1, spec.shape.logical[-1]))
        return [lcm(unit, own) for unit, own in zip(units, self.source.units(), strict=True)]

    def slab_bytes(self, extents: Sequence[int]) -> int:
        """Return the memory of the first slab of these extents: as stored, as values, and as written."""
        spec = self.target.spec
        box = Box(self.windows[0].offset, tuple(extents))
        padded = [round_up(n, unit) for n, unit in zip(extents, PagedBoxes(spec).units, strict=True)]
        rank_one = spec.tile.height if spec.is_tiled and len(padded) == 1 else 1
        written = ceil_div(prod(padded) * rank_one * spec.page_bytes, spec.page_elements)
        return self.source.box_bytes(box, spec) + written * (2 if self.whole_rows else 1)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Return the extents of a slab; slabs at the edges may be smaller."""
        shape, axes = self._region.shape, self._axes
        back = inverse_order(tuple(axes))

        def fits(permuted: list[int]) -> bool:
            return self.slab_bytes([permuted[d] for d in back]) <= self.max_bytes

        permuted = largest_slab(tuple([shape[d] for d in axes]), [self._units[d] for d in axes], fits)
        extents = tuple([permuted[d] for d in back])
        if self.slab_bytes(extents) > self.max_bytes:
            raise OutOfMemory(
                f"{', '.join(self.source.tensors)}: the smallest slab, {' x '.join(map(str, extents))}, takes"
                f" {self.slab_bytes(extents)} bytes, but each job has {self.max_bytes}; give more memory or fewer jobs"
            )
        return extents

    @cached_property
    def in_output_order(self) -> bool:
        """Return whether the slabs, one after the other, make the output from front to back."""
        boxes, end = PagedBoxes(self.target.spec), 0
        for slab in self:
            runs = boxes.runs(slab.box)
            if len(runs) > 1 or any(slab.window * self.target.spec.nbytes + start != end for start, _ in runs):
                return False
            end += sum([size for _, size in runs])
        return True

    def __len__(self) -> int:
        counts = [max(1, ceil_div(n, step)) for n, step in zip(self._region.shape, self.extents, strict=True)]
        return len(self._numbers) * prod(counts)

    def __iter__(self) -> Iterator[Slab]:
        shape, axes = self._region.shape, tuple(self._axes)
        back = inverse_order(axes)
        permuted = (tuple([shape[d] for d in axes]), tuple([self.extents[d] for d in axes]))
        origin = tuple([-n for n in self._region.offset])
        for window in self._numbers:
            for box in cut_into_slabs(*permuted):
                yield Slab(window, box.permute(back).relative_to(origin))

    def strips(self, max_bytes: int, step: int) -> list[Strip]:
        """Return strips of at most `max_bytes` that make the output; parts lie at distances of `step`.

        There is one strip for all of it if slabs make it from front to back anyway, or if rows of the source would have
        to be read in pieces that are too short.
        """
        spec = self.target.spec
        total = (len(self.windows) - 1) * step + spec.nbytes
        whole = Strip(0, total, self)
        if total <= max_bytes or self.whole_rows or self.in_output_order:
            return [whole]
        shape, units = spec.shape.logical, PagedBoxes(spec).units
        axis = next((d for d, n in enumerate(shape) if n > 1), len(shape) - 1)
        row_bytes = spec.nbytes // ceil_div(shape[axis], units[axis])  # of one row of pages
        rows = max_bytes // row_bytes * units[axis] // self._units[axis] * self._units[axis]
        if not rows or self.source.run_bytes(axis, rows) < _MIN_RUN_BYTES:
            return [whole]
        extents = (*shape[:axis], rows, *shape[axis + 1 :])
        strips = []
        for window in range(len(self.windows)):
            for box in cut_into_slabs(shape, extents):
                first, count = box.offset[axis] // units[axis], ceil_div(box.shape[axis], units[axis])
                slabs = replace(self, region=box, numbers=[window])
                strips.append(Strip(window * step + first * row_bytes, count * row_bytes, slabs))
        return strips


class Strip(NamedTuple):
    """A range of the output's bytes, counted from its first page, and the slabs that make it."""

    start: int
    nbytes: int
    slabs: SlabCutter
