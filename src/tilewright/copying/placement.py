# SPDX-License-Identifier: Apache-2.0
"""`Placement`: where the elements of an array live, and what an element is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from ..errors import LayoutError
from ..formats import BlockFormat, Format, ScalarFormat, format_of
from ..layout import ComposedLayout, Layout, LayoutLike, PagedLayout
from ..layout.strided_composition import strided_leaves
from ..layout.tuples import product_each
from .leaves import Mode


@dataclass(frozen=True, init=False, eq=False)
class Placement:
    """A layout from coordinates to elements, their format, and the value that padding is filled with.

    The places of a scalar format count elements. Those of a block format count elements in physical order, and
    `tile_elements` of them share one scale section.

    >>> from tilewright import row_major
    >>> Placement(row_major(4, 8), "float32").nbytes
    128
    """

    layout: LayoutLike
    format: Format
    fill: Any
    tile_elements: int

    def __init__(self, layout: LayoutLike, format: Any, fill: Any = 0, tile_elements: int = 0) -> None:  # noqa: A002
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "format", format_of(format))
        object.__setattr__(self, "fill", fill)
        object.__setattr__(self, "tile_elements", tile_elements)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.layout, LayoutLike):
            raise TypeError(f"a placement needs a layout, got {type(self.layout).__name__} {self.layout!r}")
        if self.layout.axes:
            raise LayoutError(
                f"{self.layout} leads to named axes {', '.join(self.layout.axes)}; bytes need plain places:"
                " take one axis with .project(axis)"
            )
        if getattr(self.layout, "replicas", ()):
            raise LayoutError(f"{self.layout} has replicas; copy to each of them on its own")
        if isinstance(self.format, BlockFormat):
            block = self.format.block
            if self.tile_elements < 1 or self.tile_elements % block:
                raise LayoutError(
                    f"{self.format.name} packs blocks of {block}: tile_elements={self.tile_elements} is no whole number"
                    f" of them; use a multiple of {block}, such as 1024 for a 32 x 32 tile"
                )

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Return all that distinguishes placements, the padding and the sign of a zero to fill with included.

        >>> from tilewright import Layout
        >>> Placement(Layout(8), "float32", fill=0.0) == Placement(Layout(8), "float32", fill=-0.0)
        False
        """
        return (self.layout, self.format, repr(self.fill), self.tile_elements)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Placement) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Return the size of each mode, padding included.

        >>> from tilewright import pad, Layout
        >>> Placement(pad(Layout(5), 8), "int8").extents
        (8,)
        """
        return product_each(self.layout.shape)

    @cached_property
    def data_extents(self) -> tuple[int, ...]:
        """Return how much of each mode is data.

        >>> from tilewright import pad, Layout
        >>> Placement(pad(Layout(5), 8), "int8").data_extents
        (5,)
        """
        if isinstance(self.layout, Layout):
            return self.layout.logical_shape
        if not _has_guards(self.layout):
            return self.extents
        if isinstance(self.layout, ComposedLayout) and isinstance(self.layout.outer, PagedLayout):
            inner = self.layout.inner
            if isinstance(inner, Layout) and inner.offset >= 0 and inner.cosize <= self.layout.outer.size:
                return inner.logical_shape  # pages hide nothing
        return _extents_of_mask(self.layout)

    @cached_property
    def modes(self) -> list[Mode]:
        """Return the strided leaves of each mode.

        >>> from tilewright import row_major
        >>> Placement(row_major(4, 8), "int8").modes
        [[(4, 8)], [(8, 1)]]
        """
        return list(strided_leaves(self.layout))

    @property
    def itemsize(self) -> int:
        """Return the bytes of one element of a scalar format.

        >>> from tilewright import Layout
        >>> Placement(Layout(4), "bfloat16").itemsize
        2
        """
        if isinstance(self.format, BlockFormat):
            raise LayoutError(f"{self.format.name} has blocks: a single element of it has no bytes of its own")
        return self.format.itemsize

    @cached_property
    def origin(self) -> int:
        """Return the place of the first coordinate.

        >>> from tilewright import Layout
        >>> Placement(Layout(4, -1) + 3, "int8").origin
        3
        """
        layout: Any = self.layout
        return int(layout.offset if isinstance(layout, Layout) else layout.extended(*([0] * len(self.extents))))

    @cached_property
    def places(self) -> int:
        """Return one more than the last place, from the first place there is.

        >>> from tilewright import Layout
        >>> Placement(Layout(4, 2), "int8").places
        7
        """
        return int(self.layout.cosize)

    @cached_property
    def nbytes(self) -> int:
        """Return the size of the smallest buffer that holds the placement.

        >>> from tilewright import row_major
        >>> Placement(row_major(32, 32), "bfloat8_b", tile_elements=1024).nbytes
        1088
        """
        if isinstance(self.format, ScalarFormat):
            return self.places * self.format.itemsize
        return -(-self.places // self.tile_elements) * self.format.bytes_per_tile(self.tile_elements)


def _has_guards(layout: Any) -> bool:
    if isinstance(layout, ComposedLayout):
        return _has_guards(layout.outer) or _has_guards(layout.inner)
    return bool(getattr(layout, "guards", ()))


def _extents_of_mask(layout: LayoutLike) -> tuple[int, ...]:
    """Return how much of each mode of a composition is data, if each mode has its own padding at its end."""
    mask = layout._valid_table()
    if mask is None:
        return product_each(layout.shape)
    extents = tuple([int(mask.any(axis=tuple(j for j in range(mask.ndim) if j != k)).sum()) for k in range(mask.ndim)])
    inside = tuple([slice(0, n) for n in extents])
    if int(mask.sum()) != prod(extents) or not mask[inside].all():
        raise LayoutError(
            f"{layout} is padded across modes: no extent per mode describes its data; pad its modes one by one"
        )
    return extents
