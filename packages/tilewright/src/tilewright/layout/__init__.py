# SPDX-License-Identifier: Apache-2.0
"""The algebra of layouts: functions from coordinates to places, as integer maths."""

from .axes import Axis, Guard, Place, addr, bank, core, device, lane
from .composed import ComposedLayout, InverseLayout, PagedLayout, Swizzle
from .composition import compose, pad, with_logical_shape
from .inverses import complement, left_inverse, right_inverse
from .layout import Layout, LayoutLike
from .modes import append, coalesce, col_major, flatten, group, join, prepend, replicate, row_major, unflatten
from .parser import parse
from .properties import Box, functionally_equal, is_bijective, is_contiguous, is_injective
from .tiled_layouts import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_divide,
    tiled_layout,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from .tuples import coordinates

__all__ = [
    "Axis",
    "Box",
    "ComposedLayout",
    "Guard",
    "InverseLayout",
    "Layout",
    "LayoutLike",
    "PagedLayout",
    "Place",
    "Swizzle",
    "addr",
    "append",
    "bank",
    "blocked_product",
    "coalesce",
    "col_major",
    "complement",
    "compose",
    "coordinates",
    "core",
    "device",
    "flat_divide",
    "flat_product",
    "flatten",
    "functionally_equal",
    "group",
    "is_bijective",
    "is_contiguous",
    "is_injective",
    "join",
    "lane",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "pad",
    "parse",
    "prepend",
    "raked_product",
    "replicate",
    "right_inverse",
    "row_major",
    "tile_to_shape",
    "tiled_divide",
    "tiled_layout",
    "tiled_product",
    "unflatten",
    "with_logical_shape",
    "zipped_divide",
    "zipped_product",
]
