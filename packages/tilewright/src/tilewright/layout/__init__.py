# SPDX-License-Identifier: Apache-2.0
"""The algebra of layouts: functions from coordinates to places, as integer maths."""

from .axes import Axis, Place, addr, bank, core, device, lane
from .box import Box
from .complements import complement
from .composed_layout import ComposedLayout
from .composition import compose, pad, with_logical_shape
from .coordinate import coordinates
from .inverses import left_inverse, right_inverse
from .layout import Layout
from .layout_like import LayoutLike
from .modes import append, coalesce, col_major, flatten, group, join, prepend, replicate, row_major, unflatten
from .parser import parse
from .properties import functionally_equal, is_bijective, is_contiguous, is_injective
from .strides import Guard
from .swizzle import Swizzle
from .table_layouts import InverseLayout, PagedLayout
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
