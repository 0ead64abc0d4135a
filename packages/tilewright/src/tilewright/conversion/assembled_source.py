# SPDX-License-Identifier: Apache-2.0
"""`AssembledSource`: an assembly over stored tensors, whose boxes are read and packed into pages in one pass.

A part of a box is read as the runs of bytes that hold it, and copied from there to its place in the pages: transposed,
converted and packed on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._integers import ceil_div, round_up
from ..copying import Placement, execute, plan_copy
from ..copying.assembly import Assembly, Part
from ..copying.host_memory import aligned_empty
from ..files import StoredTensor
from ..files.paged_boxes import PagedBoxes
from ..files.part_reading import PartReading
from ..files.quantized_tensor import QuantizedTensor
from ..files.source_file import ByteArray
from ..files.stored_tensor import inverse_order
from ..formats import Format, ScalarFormat, format_of, scalar_format_of
from ..layout import Box, Layout, compose, row_major
from ..layout.box import cut_into_slabs, largest_slab
from ..memory import TensorSpec
from ..memory.device import host_placement
from .exactness import Rounding, compare_values, count_exceptional, has_exceptional, holds_values, may_round
from .output_file import Piece

_COUNTED_AT_A_TIME = 1 << 16  # values
Allocate = Callable[[int], ByteArray]


class PartValues(NamedTuple):
    """A part of a box, how it was read, and the elements of its runs, one after the other."""

    part: Part
    reading: PartReading
    values: Any


@dataclass(frozen=True)
class AssembledSource:
    """A tensor that is put together from stored tensors: `value` over `tensors`, by name.

    The elements of a source count in the order in which they are stored. Values are rounded to the formats of
    `through`, one after the other, before they are packed; a constant is added in the first of those.

    >>> import tempfile
    >>> from tilewright import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6, dtype=np.uint8).reshape(2, 3))
    ...     source = AssembledSource.of(open_tensors(folder)["x"])
    ...     source.transpose((1, 0)).read(Box((1, 0), (2, 2))).tolist()
    [[1, 4], [2, 5]]
    """

    value: Assembly
    tensors: Mapping[str, StoredTensor]
    through: tuple[ScalarFormat, ...] = ()

    @classmethod
    def of(cls, tensor: StoredTensor) -> AssembledSource:
        """Return a stored tensor as it is."""
        return cls(stored_assembly(tensor), {tensor.name: tensor})

    @classmethod
    def bytes_of(cls, tensor: StoredTensor) -> AssembledSource:
        """Return a tensor of a type without a number format, which has a shape but no values."""
        return cls(Assembly.of(tensor.name, tensor.shape), {tensor.name: tensor})

    @property
    def format(self) -> Format | None:
        """Return the number format of the sources: the widest, if they have several."""
        formats = [tensor.format for tensor in self.tensors.values()]
        known = [each for each in formats if each is not None]
        return None if len(known) < len(formats) or not known else max(known, key=lambda each: each.bits)

    def transpose(self, order: Sequence[int]) -> AssembledSource:
        """Return the tensor with its dimensions in another order."""
        return replace(self, value=self.value.transpose(order)) if self.value.shape else self

    @property
    def kind(self) -> str:
        """Return the types of the sources, as their files name them."""
        return ", ".join(dict.fromkeys([tensor.kind for tensor in self.tensors.values()]))

    def _element(self, name: str) -> ScalarFormat:
        """Return the number format of the values of a source."""
        return scalar_format_of(self.tensors[name].dtype)

    @cached_property
    def _largest_part(self) -> Part | None:
        return max(self.value.parts, key=lambda part: part.box.size, default=None)

    def axes_from_outermost(self) -> list[int]:
        """Return the axes, that along which the source is stored in the largest steps first."""
        part = self._largest_part
        if part is None:
            return list(range(len(self.value.shape)))
        steps = [max(step for _, step in mode) for mode in part.modes]
        return sorted(range(len(steps)), key=lambda d: (-steps[d], d))

    def run_bytes(self, axis: int, extent: int) -> int:
        """Return the bytes that lie together in the largest source, in a box of `extent` along an axis, else whole."""
        part = self._largest_part
        if part is None or not is_plain(self.tensors[part.source]):
            return 0
        leaves = sorted({pair for mode in part.modes for pair in mode if pair[0] > 1}, key=lambda pair: pair[1])
        run = 1
        for n, step in leaves:
            if step != run:
                break
            is_cut = (n, step) in part.modes[axis]
            run *= min(n, extent) if is_cut else n
            if is_cut:
                break
        return run * self.tensors[part.source].dtype.itemsize

    def units(self) -> tuple[int, ...]:
        """Return the extents that boxes should be multiples of, so that tiled sources are read page by page."""
        units = [1] * len(self.value.shape)
        if len(self.value.parts) == 1 and len(self.tensors) == 1:
            (tensor,) = self.tensors.values()
            part = self.value.parts[0]
            stored = stored_shape(tensor)
            own = tensor.pages.units if len(tensor.parts) == 1 else (1,) * len(stored)
            by_step = {prod(stored[d + 1 :]): unit for d, unit in enumerate(own)}
            if part.box.shape == self.value.shape and all(len(mode) == 1 for mode in part.modes):
                units = [by_step.get(mode[0][1], 1) for mode in part.modes]
        return tuple(units)

    def box_bytes(self, box: Box, spec: TensorSpec) -> int:
        """Return the memory that reading a box takes, and that of its values if they have to be gathered."""
        total, parts = 0, []
        for part, reading in self._readings(box):
            tensor = self.tensors[part.source]
            elements = reading.elements
            total += elements * tensor.dtype.itemsize
            if not is_plain(tensor):  # as stored, too
                host = tensor.pages.spec
                total += ceil_div(elements * host.page_bytes, host.page_elements)
            parts.append(part)
        if self._must_gather(parts, spec):
            total += box.size * max([each.itemsize for each in self._steps(parts)])
        if self.may_round(spec):  # values as they come out, to be compared
            direct = len(parts) == 1 and holds_values(spec.dtype, self._element(parts[0].source))
            total += box.size * (4 if direct else 2 * self._wide_format(spec).itemsize)
        return total

    def _readings(self, box: Box) -> Iterator[tuple[Part, PartReading]]:
        """Yield the parts of a box, relative to it, and how they are read."""
        for part in self.value.parts_in(box):
            inside = replace(part, box=part.box.relative_to(box.offset))
            tensor = self.tensors[part.source]
            yield inside, PartReading.of(inside, tensor.dtype.itemsize)

    def read_parts(self, box: Box, allocate: Allocate) -> Iterator[PartValues]:
        """Yield the parts of a box with their elements; `allocate` returns memory for a number of bytes."""
        for part, reading in self._readings(box):
            tensor = self.tensors[part.source]
            if not is_plain(tensor):
                yield _read_decoded(tensor, part, allocate)
                continue
            start, size = tensor.byte_range[0], tensor.dtype.itemsize
            data = allocate(reading.elements * size)
            tensor.file.read_equal_runs(start + reading.starts * size, reading.count * size, data)
            yield PartValues(part, reading, data.view(tensor.dtype))

    def piece_of(self, name: str, parts: Sequence[PartValues]) -> Piece:
        """Return the bytes of a source that parts were read from, and where they start; None: in several places."""
        tensor = self.tensors[name]
        own = [each for each in parts if each.part.source == name]
        if not own:
            return None, b""
        if len(own) > 1 or len(own[0].reading.starts) > 1 or not is_plain(tensor):
            return None, own[0].values
        start = tensor.byte_range[0] + int(own[0].reading.starts[0]) * tensor.dtype.itemsize
        return start, own[0].values.view(np.uint8)

    def read(self, box: Box) -> Any:
        """Return the values of a box, rounded, with the constant added."""
        parts = list(self.read_parts(box, aligned_bytes))
        return self._gather(parts, box.shape, aligned_bytes, 1).reshape(box.shape)

    def pack(
        self,
        parts: Sequence[PartValues],
        spec: TensorSpec,
        out: ByteArray,
        allocate: Allocate,
        pad_value: float = 0,
        threads: int = 1,
        box: Box | None = None,
        start: int = 0,
    ) -> None:
        """Pack the parts of a box into `out`, the pages of `spec`, which begin `start` bytes after its own begin.

        The box is all of the tensor by default. If it is not, the pages of what no part covers must be zero already.
        """
        target = host_placement(spec, pad_value)
        if box is not None:
            target, at, spec = _place_box(spec, pad_value, box)
            out = out[start + at :]
        shape = spec.shape.logical
        lead = len(spec.padded_shape) - len(shape)
        windows = self._page_windows([each.part for each in parts], spec)
        if windows is None or (pad_value and [each.part.box.shape for each in parts] != [shape]):
            values = self._gather(parts, shape, allocate, threads)
            source = Placement(_add_modes(row_major(*shape), lead), format_of(values.dtype))
            execute(plan_copy(source, target), values, out, threads)
            return
        if box is None and sum([window.size for window in windows]) < prod(spec.padded_shape):
            out[:] = 0
        for (part, reading, values), window in zip(parts, windows, strict=True):
            source = Placement(_add_modes(reading.layout, lead), self._element(part.source))
            whole = target if window.shape == spec.padded_shape else _cut_placement(target, window)
            execute(plan_copy(source, whole, pad=True), values, out, threads)

    def may_round(self, spec: TensorSpec) -> bool:
        """Return whether values may change on the way to `spec`."""
        formats = [tensor.format for tensor in self.tensors.values()]
        return bool(self.value.added) or any(
            may_round(source, target)
            for source in formats
            for target in (*self.through, spec.dtype)
            if source is not None
        )

    def measure_rounding(
        self,
        parts: Sequence[PartValues],
        spec: TensorSpec,
        pages: ByteArray,
        allocate: Allocate,
        threads: int = 1,
        box: Box | None = None,
        start: int = 0,
    ) -> Rounding:
        """Return how the values that `pack` wrote with these arguments differ from those of the sources."""
        targets = (*self.through, spec.dtype)
        packed = host_placement(spec)
        if box is not None:
            packed, at, spec = _place_box(spec, 0, box)
            pages = pages[start + at :]
        shape = spec.shape.logical
        if not prod(shape):
            return Rounding(0)
        lead = len(spec.padded_shape) - len(shape)
        if len(parts) == 1 and parts[0].part.box.shape == shape and not self.value.added:
            # where the source lies without gaps, values are compared as it holds them
            _, reading, values = parts[0]
            element = self._element(parts[0].part.source)
            if reading.elements == values.size == prod(shape) and holds_values(spec.dtype, element):
                actual = allocate(values.nbytes).view(values.dtype)
                place = Placement(_add_modes(reading.layout, lead), element)
                execute(plan_copy(packed, place, crop=True), pages, actual, threads)
                return compare_values(values, actual, targets)
        wide = self._wide_format(spec)
        expected = replace(self, through=(wide,))._gather(parts, shape, allocate, threads)
        rows = Placement(_add_modes(row_major(*shape), lead), wide)
        actual = allocate(rows.nbytes).view(wide.dtype)
        execute(plan_copy(packed, rows, crop=True), pages, actual, threads)
        return compare_values(expected, actual, targets)

    def count_exceptional(self, parts: Sequence[PartValues], spec: TensorSpec, box: Box) -> Rounding:
        """Return how many values of a box, which `parts` were read for, are NaN, infinite or out of range."""
        targets = (*self.through, spec.dtype)
        total = Rounding(0)
        if any(has_exceptional(each.values, targets) for each in parts):  # what was read may be more than the box
            wide = replace(self, through=(self._wide_format(spec),))
            extents = largest_slab(box.shape, (1,) * len(box.shape), lambda slab: prod(slab) <= _COUNTED_AT_A_TIME)
            for small in cut_into_slabs(box.shape, extents):
                total += count_exceptional(wide.read(small.relative_to(tuple([-n for n in box.offset]))), targets)
        return total

    def _wide_format(self, spec: TensorSpec) -> ScalarFormat:
        """Return a format in which the values of sources and target are compared."""
        single = scalar_format_of("float32")
        formats = [scalar_format_of(tensor.dtype) for tensor in self.tensors.values()]
        fits = not any(may_round(each, single) for each in (*formats, spec.dtype.value_format))
        return single if fits else scalar_format_of("float64")

    def covers(self, spec: TensorSpec) -> bool:
        """Return whether the parts fill all pages of `spec` without padding."""
        is_whole = sum([part.box.size for part in self.value.parts]) == prod(self.value.shape)
        return is_whole and prod(spec.shape.logical) == prod(spec.padded_shape)

    def _must_gather(self, parts: list[Part], spec: TensorSpec) -> bool:
        """Return whether values are gathered before they are packed."""
        return self._page_windows(parts, spec) is None

    def _page_windows(self, parts: list[Part], spec: TensorSpec) -> list[Box] | None:
        """Return the box of whole pages that each part fills; None if parts cannot be packed one by one."""
        return None if self.value.added or self.through else _page_windows(parts, spec)

    def _steps(self, parts: Sequence[Part]) -> tuple[ScalarFormat, ...]:
        """Return the formats that values have between source and target."""
        return self.through or (self._element(parts[0].source) if parts else scalar_format_of("float32"),)

    def _gather(self, parts: Sequence[PartValues], shape: tuple[int, ...], allocate: Allocate, threads: int) -> Any:
        """Return the values of a box in row-major order, rounded, with the constant added."""
        first, *others = self._steps([each.part for each in parts])
        size = prod(shape)
        values = allocate(size * first.itemsize).view(first.dtype)
        if sum([each.part.box.size for each in parts]) < size:
            values[:] = 0
        target = Placement(row_major(*shape), first)
        for part, reading, read in parts:
            source = Placement(reading.layout, self._element(part.source))
            execute(plan_copy(source, _cut_placement(target, part.box)), read, values, threads)
        if self.value.added:
            values += first.dtype.type(self.value.added)
        for step in others:
            rounded = allocate(size * step.itemsize).view(step.dtype)
            ends = [Placement(Layout(size), each) for each in (format_of(values.dtype), step)]
            execute(plan_copy(*ends), values, rounded, threads)
            values = rounded
        return values


def aligned_bytes(size: int) -> ByteArray:
    """Return new memory for a number of bytes."""
    return aligned_empty(size, np.uint8)


def _page_windows(parts: list[Part], spec: TensorSpec) -> list[Box] | None:
    """Return the boxes of whole pages that parts fill, each by itself; None if a page needs several parts."""
    rank = len(spec.padded_shape)
    unit = (1,) * (rank - 2) + spec.unit if spec.dtype.has_blocks else (1,) * rank
    lead = rank - len(parts[0].box.shape) if parts else 0
    boxes = [Box((0,) * lead + part.box.offset, (1,) * lead + part.box.shape) for part in parts]
    windows = []
    for part, box in zip(parts, boxes, strict=True):
        if spec.dtype.has_blocks and any(len(mode) > 1 for mode in part.modes[-2:]):
            return None
        if box.shape[lead:] == spec.shape.logical:  # with all the padding
            return [Box((0,) * rank, spec.padded_shape)]
        ends = [round_up(end, n) for end, n in zip(box.end, unit, strict=True)]
        window = Box.between(box.offset, tuple(ends))
        if any(start % n for start, n in zip(box.offset, unit, strict=True)):
            return None
        if any(other is not box and not other.intersection(window).empty for other in boxes):
            return None
        windows.append(window)
    return windows


def is_plain(tensor: StoredTensor) -> bool:
    """Return whether the elements of a tensor lie in its file one after the other, as they are."""
    is_dense = tensor.host is not None and not tensor.host.is_tiled
    is_stored = tensor.sections[0] is tensor  # not made from codes and scales
    return is_dense and is_stored and not tensor.swapped and len(tensor.parts) == 1 and tensor.image is None


def stored_shape(tensor: StoredTensor) -> tuple[int, ...]:
    """Return the shape of a tensor with its dimensions as stored."""
    return tuple([tensor.shape[d] for d in inverse_order(tensor.order)])


def stored_assembly(tensor: StoredTensor) -> Assembly:
    """Return a stored tensor as an assembly over its elements in the order in which they are stored."""
    if tensor.strides is not None and is_plain(tensor):  # a view: over all elements from its first to its last
        modes = tuple([((n, step),) for n, step in zip(tensor.shape, tensor.strides, strict=True)])
        part = Part(Box((0,) * len(modes), tensor.shape), tensor.name, 0, modes)
        return Assembly(tensor.shape, (part,), text=f"tensor({tensor.name!r})")
    whole = Assembly.of(tensor.name, stored_shape(tensor))
    return replace(whole.transpose(tensor.order), text=whole.text) if tensor.order else whole


def _read_decoded(tensor: StoredTensor, part: Part, allocate: Allocate) -> PartValues:
    """Return a part of a tensor that is tiled, swapped or shared by a mesh: its enclosing box, decoded."""
    stored = stored_shape(tensor)
    steps = [prod(stored[d + 1 :]) for d in range(len(stored))]
    low, rest = [], part.offset
    for step in steps:
        digit, rest = divmod(rest, step)
        low.append(digit)
    extent = [1] * len(stored)
    axis_of = {}
    for n, step in {pair for mode in part.modes for pair in mode if pair[0] > 1 and pair[1]}:
        d = next(d for d, own in enumerate(steps) if step % own == 0 and step >= own)
        axis_of[(n, step)] = d
        extent[d] += (n - 1) * (step // steps[d])
    if any(at + n > whole for at, n, whole in zip(low, extent, stored, strict=True)):  # merged dimensions: take rows
        first, last = part.span[0] // steps[0], (part.span[1] - 1) // steps[0]
        low, extent = [first] + [0] * (len(stored) - 1), [last + 1 - first, *stored[1:]]
        axis_of = {}
    box = Box(tuple(low), tuple(extent))
    if isinstance(tensor, QuantizedTensor):
        values = allocate(box.size * tensor.dtype.itemsize).view(tensor.dtype).reshape(box.shape)
        tensor.read_into(box, values)
    else:
        values = np.ascontiguousarray(tensor.read_stored(box))
    inner = [prod(box.shape[d + 1 :]) for d in range(len(stored))]

    def rebase(n: int, step: int) -> int:
        d = axis_of.get((n, step))
        return step if d is None else step // steps[d] * inner[d]

    start = part.offset - sum([at * step for at, step in zip(low, steps, strict=True)]) if not axis_of else 0
    modes = tuple([tuple([(n, rebase(n, step)) for n, step in mode]) for mode in part.modes])
    layout = Part(part.box, part.source, start, modes).layout(0)
    return PartValues(part, PartReading(np.zeros(1, np.int64), values.size, layout), values.reshape(-1))


def _add_modes(layout: Layout, count: int) -> Layout:
    """Return a layout with modes of extent 1 before its own."""
    if not count:
        return layout
    result: Layout = Layout((*(1,) * count, *layout.shape), (*(0,) * count, *layout.stride)) + layout.offset
    return result


@lru_cache(maxsize=1024)  # layers have boxes of the same specs
def _place_box(spec: TensorSpec, pad_value: float, box: Box) -> tuple[Placement, int, TensorSpec]:
    """Return the placement of a box in the pages of `spec`, the bytes before its first page, and its own spec.

    Boxes of the same shape have the same placement, and so the same plan, wherever they are.
    """
    boxes = PagedBoxes(spec)
    place = _cut_placement(host_placement(spec, pad_value), boxes.page_window(box))
    assert isinstance(place.layout, Layout)
    elements = int(place.layout.offset)
    moved = Placement(place.layout - elements, place.format, place.fill, place.tile_elements)
    return moved, elements * spec.page_bytes // spec.page_elements, boxes.box_spec(box)


def _cut_placement(place: Placement, box: Box) -> Placement:
    """Return the placement of a box of a tensor."""
    windows = tuple([Layout(n) + start for start, n in zip(box.offset, box.shape, strict=True)])
    return Placement(compose(place.layout, windows), place.format, place.fill, place.tile_elements)
