# SPDX-License-Identifier: Apache-2.0
"""The dialect of Khronos TTL: every public name, with its prefix or without, so that a kernel reads line for line the
same: `ttl.TTL_create_shape` is `ttl.create_shape`.

Shapes are (width, height, depth). `&` and `*` disappear, since events and schemes are objects; `TTL_import` is
`ttl.import_`. Where TTL is known to be wrong, the dialect is right: simplex is ordered, planes have their own
spacing, bounds and const are enforced, integers are exact.
"""

from typing import Any

from .buffering import (
    blocking_export,
    blocking_import,
    create_duplex_buffering,
    create_export_double_buffering,
    create_import_double_buffering,
    create_io_tensors,
    create_pipeline_iterations,
    create_simplex_buffering,
    duplex_buffering_t,
    event_t,
    export,
    export_double_buffering_t,
    finish_buffering,
    get_event,
    import_,
    import_double_buffering_t,
    import_sub_tensor,
    io_tensors_t,
    join_pipeline_iterations,
    pipeline_iterations_t,
    record,
    schedule,
    simplex_buffering_t,
    start_duplex_buffering,
    start_export_double_buffering,
    start_import_double_buffering,
    start_simplex_buffering,
    step_buffering,
    tensors_empty,
    wait,
)
from .tensor_functions import FUNCTIONS, TYPED_NAMES, dump, typed_name, valid_int_tensor, valid_tensors
from .tensors import (
    const_ext_sub_tensor_t,
    const_ext_tensor_t,
    const_int_sub_tensor_t,
    const_int_tensor_t,
    create_overlap_tiler,
    create_tile,
    create_tiler,
    ext_sub_tensor_t,
    ext_tensor_t,
    get_tile,
    get_tile_column_major,
    int_sub_tensor_t,
    int_tensor_t,
    number_of_tiles,
    read_tensor,
    tiler_t,
    tiles_in_depth,
    tiles_in_height,
    tiles_in_width,
    to_const_sub_tensor,
    to_const_tensor,
    to_void_sub_tensor,
    to_void_tensor,
    valid_tile_id,
    write_tensor,
)
from .values import (
    ARRAYSIZE,
    MAX,
    SIZEOF,
    augmentation_t,
    augmented_dim_t,
    ceil_of_a_div_b,
    create_augmentation,
    create_empty_tile,
    create_ext_layout,
    create_int_layout,
    create_layout,
    create_offset,
    create_overlap,
    create_shape,
    dim_t,
    layout_t,
    linearize,
    offset_dim_t,
    offset_t,
    overlap_dim_t,
    overlap_t,
    pointer,
    shape_empty,
    shape_t,
    tile_empty,
    tile_t,
)

globals().update(FUNCTIONS)
for _what in ("shape", "layout", "offset", "overlap", "augmentation", "tile", "tiler"):
    globals()[f"dump_{_what}"] = dump
for _what in ("int_tensor", "int_sub_tensor", "ext_tensor"):
    globals()[f"dump_{_what}"] = dump

__all__ = [
    "ARRAYSIZE",
    "MAX",
    "SIZEOF",
    "augmentation_t",
    "augmented_dim_t",
    "blocking_export",
    "blocking_import",
    "ceil_of_a_div_b",
    "const_ext_sub_tensor_t",
    "const_ext_tensor_t",
    "const_int_sub_tensor_t",
    "const_int_tensor_t",
    "create_augmentation",
    "create_duplex_buffering",
    "create_empty_tile",
    "create_export_double_buffering",
    "create_ext_layout",
    "create_import_double_buffering",
    "create_int_layout",
    "create_io_tensors",
    "create_layout",
    "create_offset",
    "create_overlap",
    "create_overlap_tiler",
    "create_pipeline_iterations",
    "create_shape",
    "create_simplex_buffering",
    "create_tile",
    "create_tiler",
    "dim_t",
    "duplex_buffering_t",
    "event_t",
    "export",
    "export_double_buffering_t",
    "ext_sub_tensor_t",
    "ext_tensor_t",
    "finish_buffering",
    "get_event",
    "get_tile",
    "get_tile_column_major",
    "import_",
    "import_double_buffering_t",
    "import_sub_tensor",
    "int_sub_tensor_t",
    "int_tensor_t",
    "io_tensors_t",
    "join_pipeline_iterations",
    "layout_t",
    "linearize",
    "number_of_tiles",
    "offset_dim_t",
    "offset_t",
    "overlap_dim_t",
    "overlap_t",
    "pipeline_iterations_t",
    "pointer",
    "read_tensor",
    "record",
    "schedule",
    "shape_empty",
    "shape_t",
    "simplex_buffering_t",
    "start_duplex_buffering",
    "start_export_double_buffering",
    "start_import_double_buffering",
    "start_simplex_buffering",
    "step_buffering",
    "tensors_empty",
    "tile_empty",
    "tile_t",
    "tiler_t",
    "tiles_in_depth",
    "tiles_in_height",
    "tiles_in_width",
    "to_const_sub_tensor",
    "to_const_tensor",
    "to_void_sub_tensor",
    "to_void_tensor",
    "valid_int_tensor",
    "valid_tensors",
    "valid_tile_id",
    "wait",
    "write_tensor",
]
# the kinds of tensors bring a name for each function
__all__ += sorted({*FUNCTIONS, *[name for name in globals() if name.startswith("dump_")]})  # noqa: PLE0605
# `from tilewright.ttl import *` is TTL's #include, and brings the names as TTL writes them
__all__ += ["TTL_" + name.rstrip("_") for name in [*__all__, *TYPED_NAMES]]


def __getattr__(name: str) -> Any:
    """Return the object behind a name with TTL's prefix, or with an element type in it."""
    plain = name.removeprefix("TTL_")
    if plain == "import":  # a word of Python
        return import_
    value = globals().get(plain) if plain in __all__ else typed_name(plain)
    if value is None:
        raise AttributeError(f"module 'tilewright.ttl' has no attribute {name!r}")
    return value
