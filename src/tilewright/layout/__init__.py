# SPDX-License-Identifier: Apache-2.0
"""The algebra of layouts: functions from coordinates to places, as integer maths."""

from .axes import Axis, Place, addr, bank, core, device, lane
from .box import Box
from .complements import complement
from .composed_layout import ComposedLayout
from .composition import compose
from .construction import append, col_major, join, prepend, replicate, row_major
from .coordinate import coordinates
from .division import flat_divide, logical_divide, tiled_divide, zipped_divide
from .guards import Guard
from .inverse_layout import InverseLayout
from .inverses import left_inverse, right_inverse
from .layout import Layout
from .layout_like import LayoutLike
from .logical_shape import pad, with_logical_shape
from .modes import coalesce, flatten, group, unflatten
from .paged_layout import PagedLayout
from .parser import parse
from .products import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .properties import functionally_equal, is_bijective, is_contiguous, is_injective
from .swizzle import Swizzle

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
    "tiled_product",
    "unflatten",
    "with_logical_shape",
    "zipped_divide",
    "zipped_product",
]
