# SPDX-License-Identifier: Apache-2.0
"""All scalars of a tensor: where they are, which are valid, and how they are read and written at once.

Strided layouts of any nesting are NumPy views with one dimension per leaf, and are copied by plans. Everything else
(swizzles, compositions, edges across modes) goes through a table of places.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..copying.engine import execute
from ..copying.host_memory import Buffer, aligned_empty, footprint_of, placement_of
from ..copying.placement import Placement
from ..copying.plan import plan_copy
from ..errors import LayoutError
from ..formats import cast, fit_values
from ..layout import ComposedLayout, Layout, Swizzle, compose
from ..layout.tuples import leaves, product_each
from .element_access import require_writable
from .store import Array, Number, strided_view
from .view import View
from .view_layouts import PairLayout, elements_layout, scalars_layout, vector_layout
from .watching import current_watcher

SMALL = 1 << 14  # below this number of scalars NumPy's assignment is faster than a plan


@dataclass(frozen=True, slots=True)
class Scalars:
    """All scalars of a tensor: their layout, the extent of each mode, and the extents of the valid box.

    >>> import tilewright as tw
    >>> ragged = tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 3](1, 2)
    >>> Scalars.of(ragged).extents, Scalars.of(ragged).valid
    ((4, 3), (2, 2))
    """

    tensor: View
    layout: Any
    extents: tuple[int, ...]
    valid: tuple[int, ...] | None  # None if the valid scalars are not a box

    @classmethod
    def of(cls, tensor: View) -> Scalars:
        """Return the scalars of a tensor.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]()).extents
        (6, 8)
        """
        if not isinstance(tensor, View):  # whose bounds were checked: what follows trusts them
            raise TypeError(f"expected a tensor, got {type(tensor).__name__}")
        layout, extents = tensor._mode_layout, tensor.shape
        if tensor._pair.shape[1]:
            layout = scalars_layout(tensor._pair)
            extents = tuple([int(n) for n in product_each(layout.shape)])
        return cls(tensor, layout, extents, valid_box(layout, extents))

    @property
    def is_whole(self) -> bool:
        """Return whether all scalars are valid.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(48), tw.row_major(6, 8))).is_whole
        True
        """
        return self.valid == self.extents

    def view(self) -> Array | None:
        """Return the valid scalars as a view of storage, the leaves of each mode slowest first; None if not possible.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(list(range(6)), tw.row_major(2, 3)).transpose()).view().tolist()
        [[0, 3], [1, 4], [2, 5]]
        """
        if not isinstance(self.layout, Layout) or self.valid is None:
            return None
        shape: list[int] = []
        steps: list[int] = []
        for mode, stride, extent in zip(self.layout.shape, self.layout.stride, self.valid, strict=True):
            extents, strides = leaves(mode)[::-1], leaves(stride)[::-1]
            if prod(extents) != extent:
                if len(extents) != 1:
                    return None
                extents = [extent]
            shape += map(int, extents)
            steps += map(int, strides)
        data = self.tensor._store.host
        if 0 in shape:
            return np.empty(shape, dtype=data.dtype)
        first = int(self.tensor._offset)
        spans = [(n - 1) * step for n, step in zip(shape, steps, strict=True)]
        low, high = (first + sum(span for span in spans if (span < 0) == is_low) for is_low in (True, False))
        if low < 0 or high >= data.size:  # NumPy would not say so
            raise LayoutError(f"a view of scalars {low} to {high} exceeds its storage, which has {data.size}")
        return strided_view(data[first : first + 1], shape, steps, not self.tensor._store.readonly)

    def places(self) -> tuple[Any, Any]:
        """Return (places in storage, which are valid) as arrays with one dimension per mode.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(6), tw.row_major(2, 3)).transpose()).places()[0].tolist()
        [[0, 3], [1, 4], [2, 5]]
        """
        table = np.asarray(self.layout.offsets()) + self.tensor._offset
        mask = self.layout._valid_table()
        return table, np.ones(table.shape, dtype=bool) if mask is None else np.broadcast_to(mask, table.shape)

    def watch_read(self) -> None:
        """Tell whoever watches memory that all valid scalars are about to be read.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(6), tw.row_major(2, 3))).watch_read()
        """
        watcher = current_watcher()
        if watcher is not None:
            watcher.read(self.tensor._store, *self._vectors())

    def watch_write(self) -> None:
        """Tell whoever watches memory that all valid scalars are about to be written.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(6), tw.row_major(2, 3))).watch_write()
        """
        watcher = current_watcher()
        if watcher is not None:
            watcher.write(self.tensor._store, *self._vectors())

    def _vectors(self) -> tuple[Array, int]:
        """Return (places, width): where consecutive scalars start that are accessed at once, and how many they are."""
        tensor = self.tensor
        width = tensor.element_size
        if width > 1 and self.is_whole:
            vector = np.asarray(vector_layout(tensor._pair).offsets()).reshape(-1, order="F")
            if bool((vector == np.arange(width)).all()):
                return np.asarray(elements_layout(tensor._pair).offsets()).reshape(-1) + tensor._offset, width
        table, mask = self.places()
        return table[mask], 1

    def read(self, fill: Number | None = None) -> Array:
        """Return a copy of the scalars: the valid ones, or with `fill` all, the others as `fill`.

        >>> import tilewright as tw
        >>> ragged = tw.TileTensor(list(range(48)), tw.row_major(6, 8)).tile[4, 3](1, 2)
        >>> Scalars.of(ragged).read().tolist(), Scalars.of(ragged).read(fill=0)[1].tolist()
        ([[38, 39], [46, 47]], [46, 47, 0])
        """
        self.watch_read()
        if self.valid is None:
            return self._gather(fill)
        values = self._read_valid()
        if fill is None or self.is_whole:
            return values
        padded = np.full(self.extents, fit_values(fill, self.tensor._store.format), dtype=values.dtype)
        padded[tuple([slice(0, n) for n in self.valid])] = values
        return padded

    def _read_valid(self) -> Array:
        assert self.valid is not None
        if prod(self.valid) >= SMALL:
            values = aligned_empty(self.valid, self.tensor._store.format.dtype)
            if self._copy_by_plan(self.valid, values, writing=False):
                return values
        view = self.view()
        if view is not None:
            return view.copy().reshape(self.valid)
        table, mask = self.places()
        inside: Array = self.tensor._store.host[table[mask]].reshape(self.valid)
        return inside

    def placement(self, extents: tuple[int, ...], on_device: bool = False) -> tuple[Placement, Any] | None:
        """Return (placement, memory) of the first scalars of each mode; None if no plan can copy them.

        The memory must be that of the host, unless `on_device`.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 3](1, 2)
        >>> place, memory = Scalars.of(t).placement((2, 2))
        >>> print(place.layout, memory.size)
        (2,2):(8,1) 10
        """
        layout = self.layout
        if extents != self.extents:
            layout = compose(layout, tuple([Layout(n) for n in extents]))
        start = self.tensor._offset
        if isinstance(layout, Layout):
            low, high = layout.bounds
            layout, start, size = layout - low, start + int(low), int(high - low) + 1
        elif _is_nonnegative(layout):
            size = self.tensor._store.size - start
        else:
            return None
        store = self.tensor._store
        memory = store.section(start, size) if on_device else store.host[start : start + size]
        return Placement(layout, store.format), memory

    def _copy_by_plan(self, extents: tuple[int, ...], array: Array, writing: bool) -> bool:
        """Copy the first scalars of each mode from or to an array of their shape; return whether a plan could."""
        ours = self.placement(extents)
        if ours is None:
            return False
        theirs = placement_of(array), array
        return run_plan(*theirs, *ours) if writing else run_plan(*ours, *theirs)

    def _gather(self, fill: Number | None) -> Array:
        """Return all scalars through the table of places."""
        if fill is None:
            raise LayoutError(
                f"the valid part of a ragged view of {self.tensor.layout} is not a box and does not fit into an array;"
                " give fill=x for the rest"
            )
        table, mask = self.places()
        data = self.tensor._store.host
        values = np.full(self.extents, fit_values(fill, self.tensor._store.format), dtype=data.dtype)
        values[mask] = data[table[mask]]
        return values

    def write(self, values: Array) -> None:
        """Write `values` over the valid scalars: an array of their shape, or of the full shape.

        >>> import tilewright as tw
        >>> t = tw.TileTensor([0] * 6, tw.row_major(2, 3))
        >>> Scalars.of(t).write(np.array([[1, 2, 3], [4, 5, 6]]))
        >>> t.to_numpy().tolist()
        [[1, 2, 3], [4, 5, 6]]
        """
        require_writable(self.tensor)
        self.watch_write()
        if self.valid is not None and values.shape == self.extents:
            values = values[tuple([slice(0, n) for n in self.valid])]
        by_plan = values.size >= SMALL and values.shape == self.valid
        if by_plan and self._copy_by_plan(values.shape, values, writing=True):
            return
        view = self.view()
        if view is not None:
            assign(values.reshape(view.shape), view, self.tensor)
            return
        table, mask = self.places()
        data = self.tensor._store.host
        converted = cast(values, self.tensor._store.format)
        data[table[mask]] = converted[mask] if converted.shape == mask.shape else converted.reshape(-1)


def valid_box(layout: PairLayout, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the extents of the valid coordinates; None if they are not a box.

    >>> import tilewright as tw
    >>> valid_box(tw.pad(tw.row_major(60, 90), (64, 96)), (64, 96))
    (60, 90)
    """
    if isinstance(layout, Layout):
        if not layout.guards:
            return extents
        try:
            return tuple([int(n) for n in layout.logical_shape])
        except LayoutError:
            pass
    mask = layout._valid_table()
    return extents if mask is None else mask_extents(np.broadcast_to(mask, extents))


def mask_extents(valid: Array) -> tuple[int, ...] | None:
    """Return the extents of the box at the corner that is exactly the True part of a mask; None if there is none.

    >>> mask_extents(np.array([[True, True, False], [False, False, False]])), mask_extents(np.eye(2, dtype=bool))
    ((1, 2), None)
    """
    others = [tuple(j for j in range(valid.ndim) if j != k) for k in range(valid.ndim)]
    corner = tuple([int(valid.any(axis=axes).sum()) for axes in others])
    inside = valid[tuple([slice(0, n) for n in corner])]
    return corner if int(valid.sum()) == inside.size and inside.all() else None


def _is_nonnegative(layout: ComposedLayout) -> bool:
    """Return whether every place of a composition is known to be at least 0."""
    inner, outer = layout.inner, layout.outer
    if not isinstance(inner, Layout) or inner.bounds[0] < 0:
        return False
    return isinstance(outer, Swizzle) or (isinstance(outer, Layout) and outer.bounds[0] >= 0)


def run_plan(source: Placement, source_array: Array, target: Placement, target_array: Array) -> bool:
    """Copy by plan; return False, without a copy, if the arrays overlap or target elements share a place.

    >>> a, b = np.arange(6).reshape(2, 3), np.zeros((2, 3), dtype=int, order="F")
    >>> run_plan(placement_of(a), a, placement_of(b), b), b.tolist()
    (True, [[0, 1, 2], [3, 4, 5]])
    """
    before, after = Buffer.of(source_array), Buffer.of(target_array)
    if before.overlaps(after) and footprint_of(source, before.address).overlaps(footprint_of(target, after.address)):
        return False
    try:
        plan = plan_copy(source, target)
    except LayoutError:  # several elements of the target share a place: NumPy's order decides
        return False
    execute(plan, source_array, target_array)
    return True


def assign(values: Array, view: Array, tensor: View) -> None:
    """Copy and convert `values` into a view of the storage of `tensor`; overlapping memory is copied first.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0.0] * 3, tw.row_major(3))
    >>> assign(np.array([1, 2, 3]), t.to_numpy(copy=False), t)
    >>> t.to_numpy().tolist()
    [1.0, 2.0, 3.0]
    """
    if np.may_share_memory(values, view):
        values = values.copy()
    view[...] = values if values.dtype == view.dtype else cast(values, tensor._store.format)
