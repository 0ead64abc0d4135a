# SPDX-License-Identifier: Apache-2.0
"""`AssembledSource`: an assembly over stored tensors, whose boxes are read and packed into pages in one pass.

A part of a box is read as the runs of bytes that hold it, and copied from there to its place in the pages: transposed,
converted and packed on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..copying import Placement, execute, plan_copy
from ..copying.assembly import Assembly, Part
from ..errors import FormatError
from ..files import StoredTensor
from ..files.source_file import ByteArray
from ..files.stored_tensor import Runs
from ..formats import Format, format_of
from ..layout import Box, Layout, compose, row_major
from ..layout.tuples import round_up
from ..memory import TensorSpec
from ..memory.device import host_placement

_MIN_RUN_BYTES = 512  # shorter runs are read with what lies between them

Allocate = Callable[[int], ByteArray]


@dataclass(frozen=True, slots=True)
class PartReading:
    """How a part is read: runs (offset in elements, count) of its source, and its layout over what they hold."""

    runs: list[tuple[int, int]]
    layout: Layout

    @classmethod
    def of(cls, part: Part, itemsize: int) -> PartReading:
        """Return the reading of a part of a source with elements of `itemsize` bytes.

        >>> columns = Assembly.of("w", (4, 4096)).slice(0, 1024, axis=1).parts[0]
        >>> PartReading.of(columns, 2).runs
        [(0, 1024), (4096, 1024), (8192, 1024), (12288, 1024)]
        """
        leaves = sorted({pair for mode in part.modes for pair in mode if pair[0] > 1 and pair[1]}, key=lambda p: p[1])
        dense, inner = 1, 0
        for extent, step in leaves:
            if step > dense and dense * itemsize >= _MIN_RUN_BYTES:
                break
            dense = (extent - 1) * step + dense
            inner += 1
        outer = leaves[inner:]
        if any(step < dense for _, step in outer):  # runs would overlap
            outer, dense = [], part.span[1] - part.span[0]
        compact = {}
        size = dense
        for extent, step in outer:
            compact[(extent, step)] = size
            size *= extent
        starts = np.full((), part.offset, np.int64)
        for extent, step in reversed(outer):
            starts = starts[..., None] + np.arange(extent, dtype=np.int64) * step
        modes = tuple([tuple([(n, compact.get((n, step), step)) for n, step in mode]) for mode in part.modes])
        layout = Part(part.box, part.source, 0, modes).layout(0)
        return cls([(int(at), dense) for at in starts.reshape(-1)], layout)

    @property
    def elements(self) -> int:
        return sum([count for _, count in self.runs])


@dataclass(frozen=True)
class AssembledSource:
    """A tensor that is put together from stored tensors: `value` over `tensors`, by name.

    Values are rounded to the formats of `through`, one after the other, before they are packed; what is added to them
    is added in the first of those.
    """

    value: Assembly
    tensors: Mapping[str, StoredTensor]
    through: tuple[Format, ...] = ()

    @classmethod
    def of(cls, tensor: StoredTensor) -> AssembledSource:
        """Return a stored tensor as it is."""
        return cls(stored_assembly(tensor), {tensor.name: tensor})

    def element(self, name: str) -> Format:
        """Return the number format of the values of a source."""
        return format_of(self.tensors[name].dtype)

    def readings(self, box: Box) -> Iterator[tuple[Part, PartReading]]:
        """Yield the parts of a box, relative to it, and how they are read."""
        for part in self.value.parts_in(box):
            inside = Part(part.box.relative_to(box.offset), part.source, part.offset, part.modes)
            yield inside, PartReading.of(inside, self.tensors[part.source].dtype.itemsize)

    def read_part(self, part: Part, reading: PartReading, allocate: Allocate) -> Any:
        """Return the elements of the runs of a part, one after the other."""
        tensor = self.tensors[part.source]
        if not is_plain(tensor):
            return _read_values(tensor, reading)
        data = allocate(reading.elements * tensor.dtype.itemsize)
        start, size = tensor.byte_range[0], tensor.dtype.itemsize
        tensor.file.read_runs([(start + at * size, count * size) for at, count in reading.runs], data)
        return data.view(tensor.dtype)

    def pack(
        self, box: Box, spec: TensorSpec, out: ByteArray, allocate: Allocate, pad_value: float = 0, threads: int = 1
    ) -> None:
        """Read a box and pack it into `out`, the pages of `spec`, which has the shape of the box."""
        parts = [(part, reading, self.read_part(part, reading, allocate)) for part, reading in self.readings(box)]
        target = host_placement(spec, pad_value)
        lead = len(spec.padded_shape) - len(box.shape)
        windows = None if self.value.added or self.through else _page_windows([part for part, _, _ in parts], spec)
        if windows is None or (pad_value and [part.box.shape for part, _, _ in parts] != [box.shape]):
            values = self._gather(parts, box, allocate, threads)
            whole = Placement(_lead_modes(row_major(*box.shape), lead), format_of(values.dtype))
            execute(plan_copy(whole, target), values, out, threads)
            return
        if sum(window.size for window in windows) < prod(spec.padded_shape):
            out[:] = 0
        for (part, reading, data), window in zip(parts, windows, strict=True):
            place = Placement(_lead_modes(reading.layout, lead), self.element(part.source))
            whole = target if window.shape == spec.padded_shape else _window(target, window)
            execute(plan_copy(place, whole, pad=True), data, out, threads)

    def _gather(self, parts: Any, box: Box, allocate: Allocate, threads: int) -> Any:
        """Return the values of a box in row-major order, rounded, with the constant added."""
        first = self.through[0] if self.through else self.element(parts[0][0].source) if parts else format_of("float32")
        values = allocate(box.size * first.itemsize).view(first.dtype)
        place = Placement(row_major(*box.shape), first)
        if sum(part.box.size for part, _, _ in parts) < box.size:
            values[:] = 0
        for part, reading, data in parts:
            execute(plan_copy(Placement(reading.layout, self.element(part.source)), _window(place, part.box)), data, values, threads)
        if self.value.added:
            values += first.dtype.type(self.value.added)
        for step in self.through[1:]:
            rounded = allocate(box.size * step.itemsize).view(step.dtype)
            execute(plan_copy(Placement(Layout(box.size), format_of(values.dtype)), Placement(Layout(box.size), step)), values, rounded, threads)
            values = rounded
        return values


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
    return tensor.host is not None and not tensor.host.is_tiled and not tensor.swapped and len(tensor.parts) == 1 and tensor.image is None


def stored_assembly(tensor: StoredTensor) -> Assembly:
    """Return a stored tensor as an assembly, over its elements in the order in which they are stored."""
    shape = [0] * len(tensor.shape)
    for k, d in enumerate(tensor.order):
        shape[d] = tensor.shape[k]
    return Assembly.of(tensor.name, tuple(shape)).transpose(tensor.order) if tensor.shape else Assembly.of(tensor.name, ())


def _read_values(tensor: StoredTensor, reading: PartReading) -> Any:
    raise FormatError(f"{tensor.name}: reading tiled sources is not done yet")


def _lead_modes(layout: Layout, count: int) -> Layout:
    """Return a layout with modes of extent 1 before its own."""
    if not count:
        return layout
    shape, stride = layout.shape, layout.stride
    return Layout((*(1,) * count, *shape), (*(0,) * count, *stride)) + layout.offset


def _window(place: Placement, box: Box) -> Placement:
    windows = tuple([Layout(n) + start for start, n in zip(box.offset, box.shape, strict=True)])
    layout = compose(place.layout, windows if len(windows) > 1 else windows[0])
    return Placement(layout, place.format, place.fill, place.tile_elements)
