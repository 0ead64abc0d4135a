# SPDX-License-Identifier: Apache-2.0
"""The algebra of layouts: functions from coordinates to offsets, as integer maths."""

from .axes import (
    PLAIN,
    Axis,
    Guard,
    Offset,
    Place,
    Stride,
    StrideArgument,
    addr,
    bank,
    component,
    core,
    device,
    format_tree,
    lane,
    live_guards,
)
from .composed import ComposedLayout, InverseLayout, PagedLayout, Swizzle
from .composition import Tiler, compose, pad, split_mode, strided_leaves, with_logical_shape
from .evaluation import chunks
from .inverses import complement, free_positions, left_inverse, right_inverse
from .layout import Layout, LayoutLike, add_axes, join_parts, make_layout, require_layout
from .linear import ColumnSpace, Linear
from .modes import (
    LayoutArgument,
    append,
    as_function,
    check_profile,
    check_unflatten,
    coalesce,
    col_major,
    flatten,
    group,
    join,
    prepend,
    replicate,
    require_strided,
    row_major,
    scale,
    split_modes,
    unflatten,
)
from .parser import parse
from .properties import (
    Box,
    cut_into_slabs,
    empty_box,
    find_collision,
    functionally_equal,
    is_bijective,
    is_contiguous,
    is_injective,
    largest_slab,
)
from .tiled_layouts import (
    Pair,
    blocked_product,
    complete_tiler,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    regroup_pairs,
    tile_to_shape,
    tiled_divide,
    tiled_layout,
    tiled_product,
    unpack_all,
    unpack_rest,
    zip_groups,
    zipped_divide,
    zipped_product,
)
from .tuples import (
    MAX_DEPTH,
    Coordinate,
    IntOrArray,
    Nested,
    Shape,
    ShapeArgument,
    TaggedInt,
    as_integer,
    as_tree,
    as_tuple,
    check_congruent,
    check_mode,
    coordinates,
    index_to_coordinate,
    is_array,
    is_compatible,
    is_congruent,
    is_slice,
    is_weakly_congruent,
    leaf_coordinates,
    leaves,
    map_leaves,
    nest_like,
    prefix_product,
    product,
    product_each,
    suffix_product,
    tree_depth,
    validate_shape,
    zeros_like,
)

__all__ = [
    "Axis", "Box", "ComposedLayout", "Guard", "InverseLayout", "Layout", "LayoutLike", "PagedLayout", "Place",
    "Swizzle", "addr", "append", "bank", "blocked_product", "coalesce", "col_major", "complement", "compose",
    "coordinates", "core", "device", "flat_divide", "flat_product", "flatten", "functionally_equal", "group",
    "is_bijective", "is_contiguous", "is_injective", "join", "lane", "left_inverse", "logical_divide",
    "logical_product", "pad", "parse", "prepend", "raked_product", "replicate", "right_inverse", "row_major",
    "tile_to_shape", "tiled_divide", "tiled_layout", "tiled_product", "unflatten", "with_logical_shape",
    "zipped_divide", "zipped_product",
]  # fmt: skip
