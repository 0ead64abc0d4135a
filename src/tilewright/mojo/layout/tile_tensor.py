# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tile_tensor`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...copying.host_memory import aligned_empty
from ...errors import CoordinateError, FormatError, LayoutError
from ...formats import ScalarFormat, format_of
from ...layout.brackets import Bracketed
from ...tensor import AddressSpace, LayoutTensor, TileTensor
from ...tensor.cutting import paired
from ...tensor.reshaping import flatten_leading

__all__ = ["All", "TileTensor", "TileTensorIter", "flatten_leading", "lt_to_tt", "stack_allocation"]

All = slice(None)


def _stack_allocation(_: Any, fixed: tuple[Any, ...], layout: Any) -> TileTensor:
    element = format_of(fixed[0])
    if not isinstance(element, ScalarFormat):
        raise FormatError(f"a tensor holds scalars, not {element.name}")
    space = fixed[1] if len(fixed) > 1 else AddressSpace.GENERIC
    return TileTensor(aligned_empty(int(layout.cosize), element.dtype), layout, address_space=space)


class _StackAllocation(Bracketed[TileTensor]):
    """`stack_allocation[dtype](layout)`: a tensor over memory of its own, as much as the layout reaches.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> stack_allocation["float32"](row_major[4, 4]()).fill(0).shape
    (4, 4)
    """


stack_allocation = _StackAllocation(_stack_allocation, None)


def lt_to_tt(tensor: LayoutTensor) -> TileTensor:
    """Return a `LayoutTensor` as a `TileTensor` over the same memory.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> lt_to_tt(stack_allocation["int8"](row_major[2, 2]()).to_layout_tensor()).layout
    Layout((2, 2), (2, 1))
    """
    return tensor.to_tile_tensor()


class TileTensorIter:
    """Views of one layout that step through a tensor's memory: at `offset + k * stride`, up to bound, or around it.

    `it[]` of Mojo is `it.get()`; `it.next(k)` looks ahead and `it += k` moves on.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> ring = TileTensorIter(stack_allocation["int8"](row_major[30]()), row_major[2, 3](), 20, 6, circular=True)
    >>> [ring.next(k).offset for k in range(5)]
    [0, 6, 12, 18, 4]
    """

    def __init__(
        self, tensor: Any, layout: Any, bound: int, stride: int | None = None, offset: int = 0, circular: bool = False
    ) -> None:
        self._tensor = tensor if isinstance(tensor, TileTensor) else TileTensor(tensor)
        self._layout = layout
        self.bound = bound
        self.stride = int(layout.size) if stride is None else stride
        self.offset = offset
        self.circular = circular
        if bound < 1:
            raise LayoutError(f"an iterator needs a bound of at least 1, got {bound}")

    def _at(self, k: int) -> int:
        place = self.offset + k * self.stride
        if self.circular:
            return place % self.bound
        if not 0 <= place < self.bound:
            raise CoordinateError(f"the view at {place} is past the bound {self.bound} of the iterator")
        return place

    def get(self) -> TileTensor:
        """Return the current view.

        >>> from tilewright.mojo.layout.tile_layout import row_major
        >>> TileTensorIter(stack_allocation["int8"](row_major[8]()), row_major[2](), 8, offset=4).get().offset
        4
        """
        return self.next(0)

    def next(self, k: int = 1) -> TileTensor:
        """Return the view k steps ahead.

        >>> from tilewright.mojo.layout.tile_layout import row_major
        >>> TileTensorIter(stack_allocation["int8"](row_major[8]()), row_major[2](), 8).next(3).offset
        6
        """
        found = self._tensor._view(paired(self._layout), self._tensor.offset + self._at(k))
        found._check_inside()
        return found

    def __iadd__(self, k: int) -> TileTensorIter:
        place = self.offset + k * self.stride
        self.offset = place % self.bound if self.circular else place
        return self

    def __iter__(self) -> Iterator[TileTensor]:
        place = self.offset
        while self.circular or place < self.bound:
            yield self.next((place - self.offset) // self.stride)
            place += self.stride
