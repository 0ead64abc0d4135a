# SPDX-License-Identifier: Apache-2.0
"""`SlabCutter`: cuts a tensor into the slabs in which it is converted, each within a memory limit.

Slabs are cut from the outermost dimension of the source inwards, so that the source is read from front to back. Their
edges are page edges on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import lcm, prod

from ..errors import OutOfMemory
from ..files import StoredTensor
from ..files.paged_boxes import PagedBoxes
from ..files.stored_tensor import inverse_order
from ..layout import Box
from ..layout.tuples import round_up
from ..memory import PageLayout
from .targets import ConversionTarget


@dataclass(frozen=True)
class SlabCutter:
    """The slabs of one tensor: boxes of the source, with dimensions as stored, of at most `max_bytes` each.

    `whole_rows` cuts row-major targets between rows, for bank images.

    >>> import tempfile, numpy
    >>> from tilewright import TensorSpec, open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((100, 64), numpy.float32))
    ...     slabs = SlabCutter(
    ...         open_tensors(folder)["x"], ConversionTarget(TensorSpec((100, 64), "bfloat8_b"), (0, 1)), 24_000
    ...     )
    >>> [slab.shape for slab in slabs]
    [(64, 64), (36, 64)]
    """

    source: StoredTensor
    target: ConversionTarget
    max_bytes: int
    whole_rows: bool = False

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return the order of the source's stored dimensions in the target."""
        return tuple([self.source.order[d] for d in self.target.order])

    @cached_property
    def _stored_shape(self) -> tuple[int, ...]:
        return tuple([self.source.shape[d] for d in inverse_order(self.source.order)])

    @cached_property
    def _units(self) -> list[int]:
        """Return the units of slab extents, so that slabs are entire pages on both sides."""
        back = inverse_order(self.order)
        out = PagedBoxes(self.target.spec).units
        rows = self.target.spec.page_layout is PageLayout.ROW_MAJOR
        if self.whole_rows and rows and out:  # the pages of rows
            out = (*out[:-1], max(1, self.target.spec.shape.logical[-1]))
        into = self.source.pages.units if len(self.source.parts) == 1 else (1,) * len(self._stored_shape)
        return [lcm(unit, out[back[d]]) for d, unit in enumerate(into)]

    def slab_bytes(self, extents: list[int]) -> int:
        """Return the memory of a slab of these extents: as stored, as values, and as written."""
        spec, host = self.target.spec, self.source.pages.spec
        count = prod(extents)
        padded_in = prod([round_up(n, unit) for n, unit in zip(extents, self.source.pages.units, strict=True)])
        read = -(-padded_in * host.page_bytes // host.page_elements)
        plain = host.page_layout is PageLayout.ROW_MAJOR and not host.dtype.has_blocks
        values = (
            0
            if plain and not self.source.swapped and len(self.source.parts) == 1
            else count * self.source.dtype.itemsize
        )
        back = [extents[d] for d in self.order]
        turned = [round_up(n, unit) for n, unit in zip(back, PagedBoxes(spec).units, strict=True)]
        rank_one = spec.tile.height if spec.page_layout is PageLayout.TILE and len(turned) == 1 else 1
        written = -(-prod(turned) * rank_one * spec.page_bytes // spec.page_elements)
        return read + values + written * (2 if self.whole_rows else 1)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Return the extents of a slab; slabs at the edges may be smaller."""
        extents = [max(1, n) for n in self._stored_shape]
        for d, unit in enumerate(self._units):
            if self.slab_bytes(extents) <= self.max_bytes:
                break
            low, high = 1, -(-extents[d] // unit)  # in units: find the largest count that fits, at least one
            while low < high:
                middle = (low + high + 1) // 2
                fits = self.slab_bytes([*extents[:d], middle * unit, *extents[d + 1 :]]) <= self.max_bytes
                low, high = (middle, high) if fits else (low, middle - 1)
            extents[d] = min(low * unit, extents[d])
        if self.slab_bytes(extents) > self.max_bytes:
            raise OutOfMemory(
                f"{self.source.name}: the smallest slab, {' x '.join(map(str, extents))}, takes"
                f" {self.slab_bytes(extents)} bytes, but each job has {self.max_bytes}; give more memory or fewer jobs"
            )
        return tuple(extents)

    def __len__(self) -> int:
        return prod([max(1, -(-n // step)) for n, step in zip(self._stored_shape, self.extents, strict=True)])

    def __iter__(self) -> Iterator[Box]:
        starts = [range(0, max(1, n), step) for n, step in zip(self._stored_shape, self.extents, strict=True)]
        for start in product(*starts):
            ends = zip(start, self.extents, self._stored_shape, strict=True)
            yield Box(start, tuple([min(step, n - at) for at, step, n in ends]))
