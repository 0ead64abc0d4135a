# SPDX-License-Identifier: Apache-2.0
"""`Placement`: where the elements of a tensor are in memory, and their number format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..errors import FormatError, LayoutError
from ..formats import Format, cast, fit_values, format_of
from ..layout import ComposedLayout, Layout, LayoutLike, PagedLayout
from ..layout.strided_composition import strided_leaves
from ..layout.tuples import product_each
from .loop_nest import Mode, TabulatedModes


@dataclass(frozen=True, init=False, eq=False)
class Placement:
    """A `layout` from coordinates to offsets in elements, their `format`, and the value `fill` for padding.

    Offsets of a block format count elements in physical order, in tiles of `tile_elements`, each with one scale
    section; a scalar format ignores `tile_elements`.

    >>> from tilewright import row_major
    >>> Placement(row_major(4, 8), "float32").nbytes
    128
    """

    layout: LayoutLike
    format: Format
    fill: Any
    tile_elements: int

    def __init__(self, layout: LayoutLike, format: Any, fill: Any = 0, tile_elements: int = 0) -> None:  # noqa: A002
        number_format = format_of(format)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "format", number_format)
        object.__setattr__(self, "fill", fill)
        object.__setattr__(self, "tile_elements", tile_elements if number_format.has_blocks else 0)
        self._validate()

    def _validate(self) -> None:
        if not isinstance(self.layout, LayoutLike):
            raise TypeError(f"a placement needs a layout, got {type(self.layout).__name__} {self.layout!r}")
        if isinstance(self.fill, (str, bytes)):
            raise TypeError(f"expected a number to fill padding with, got {self.fill!r}")
        if self.layout.axes:
            raise LayoutError(
                f"{self.layout} maps to named axes {', '.join(self.layout.axes)}, but a placement needs plain offsets;"
                " select one axis with .project(axis)"
            )
        if getattr(self.layout, "replicas", ()):
            raise LayoutError(f"{self.layout} has replicas; copy to each replica separately")
        if self.format.has_blocks:
            block = self.format.block
            if self.tile_elements < 1 or self.tile_elements % block:
                raise LayoutError(
                    f"{self.format.name} needs tile_elements to be a multiple of its block, {block}, such as 1024 for a"
                    f" 32 x 32 tile; got {self.tile_elements}"
                )

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Return what placements are compared by, including the padding and the sign of a zero fill.

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
        """Return the extent of the data in each mode.

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
                return inner.logical_shape  # all pages are data
        return _data_extents(self.layout)

    @cached_property
    def modes(self) -> list[Mode]:
        """Return the (extent, step) pairs of each mode, fastest first; a step is None if it is not strided.

        >>> from tilewright import row_major
        >>> Placement(row_major(4, 8), "int8").modes
        [[(4, 8)], [(8, 1)]]
        """
        return list(strided_leaves(self.layout))

    @property
    def itemsize(self) -> int:
        """Return the size in bytes of one element of a scalar format.

        >>> from tilewright import Layout
        >>> Placement(Layout(4), "bfloat16").itemsize
        2
        """
        if self.format.has_blocks:
            raise LayoutError(f"{self.format.name} is a block format: a single element has no bytes of its own")
        return self.format.itemsize

    @cached_property
    def origin(self) -> int:
        """Return the offset of the first coordinate.

        >>> from tilewright import Layout
        >>> Placement(Layout(4, -1) + 3, "int8").origin
        3
        """
        layout: Any = self.layout
        return int(layout.offset if isinstance(layout, Layout) else layout.extended(*([0] * len(self.extents))))

    @cached_property
    def places(self) -> int:
        """Return the number of elements of the smallest buffer that holds the placement.

        >>> from tilewright import Layout
        >>> Placement(Layout(4, 2), "int8").places
        7
        """
        return int(self.layout.cosize)

    @cached_property
    def nbytes(self) -> int:
        """Return the size in bytes of the smallest buffer that holds the placement.

        >>> from tilewright import row_major
        >>> Placement(row_major(32, 32), "bfloat8_b", tile_elements=1024).nbytes
        1088
        """
        if not self.format.has_blocks:
            return self.places * self.format.itemsize
        return -(-self.places // self.tile_elements) * self.format.bytes_per_tile(self.tile_elements)

    def table_offsets(self, tabulated: TabulatedModes) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the offsets in elements of all combinations of `tabulated` digits, with all other digits at 0.

        >>> from tilewright import Layout
        >>> Placement(Layout((4, 3), (3, 1)), "int8").table_offsets(TabulatedModes(((), ((1, 0, 3),)))).tolist()
        [0, 1, 2]
        """
        spans = [(radix, start, count) for mode in tabulated.digits for radix, start, count in mode]
        grid = np.indices([count for _, _, count in spans], dtype=np.int64).reshape(len(spans), -1)
        indices = []
        k = 0
        for mode in tabulated.digits:
            index = np.zeros(grid.shape[1], dtype=np.int64)
            for radix, start, _ in mode:
                index += (grid[k] + start) * radix
                k += 1
            indices.append(index)
        offsets = self.layout.extended(*indices) if len(indices) > 1 else self.layout.extended(indices[0])
        return np.broadcast_to(np.asarray(offsets, dtype=np.int64), grid.shape[1:])


def fill_value(source: Placement, target: Placement) -> np.ndarray[Any, Any]:
    """Return the fill value of `target` as one element: of its format, or float32 if it is a block format.

    The value is converted to the format of the source first, and then like the data.

    >>> from tilewright import Layout
    >>> fill_value(Placement(Layout(4), "float32"), Placement(Layout(4), "int32", fill=-3.7)).item()
    -3
    """
    value = np.asarray(target.fill)
    if not source.format.has_blocks:
        value = cast(value, source.format)
    return cast(value, target.format.value_format)


def validate_fill(source: Placement, target: Placement) -> None:
    """Raise unless the fill value of `target` is a value of the source's format: it is converted like the data.

    >>> from tilewright import Layout
    >>> validate_fill(Placement(Layout(4), "float32"), Placement(Layout(4), "int32", fill=-3.7))
    """
    if target.fill.__class__ is int and not target.fill:
        return
    try:
        fit_values(target.fill, source.format.value_format)
    except FormatError as problem:
        raise FormatError(f"padding is converted like the data, from {source.format}: {problem}") from None


def _has_guards(layout: Any) -> bool:
    if isinstance(layout, ComposedLayout):
        return _has_guards(layout.outer) or _has_guards(layout.inner)
    return bool(getattr(layout, "guards", ()))


def _data_extents(layout: LayoutLike) -> tuple[int, ...]:
    """Return the extent of the data in each mode of a composition that is padded at the end of its modes."""
    mask = layout._valid_table()
    if mask is None:
        return product_each(layout.shape)
    extents = tuple([int(mask.any(axis=tuple(j for j in range(mask.ndim) if j != k)).sum()) for k in range(mask.ndim)])
    inside = tuple([slice(0, n) for n in extents])
    if int(mask.sum()) != prod(extents) or not mask[inside].all():
        raise LayoutError(
            f"{layout} has padding that crosses modes, so its data has no extent per mode; pad each mode separately"
        )
    return extents
