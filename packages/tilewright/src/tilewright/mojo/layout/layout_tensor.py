# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.layout_tensor`: the older tensor, and its copies between memories."""

from __future__ import annotations

from typing import Any

from ..std.system import stack_allocation as unsafe_stack_allocation
from .int_tuple import UNKNOWN_VALUE, IntTuple
from .layout import Layout, LayoutList, MakeLayoutList, blocked_product, composition, print_layout
from .layout_tensor_iter import LayoutTensorIter
from .layout_tensor_view import (
    LayoutTensor,
    _compute_distribute_layout,  # noqa: F401  (Mojo's own tests import it)
    stack_allocation_like,
)
from .memory_copies import (
    ThreadScope,
    copy_dram_to_local,
    copy_dram_to_sram,
    copy_dram_to_sram_async,
    copy_local_to_dram,
    copy_local_to_local,
    copy_local_to_shared,
    copy_local_to_sram,
    copy_sram_to_dram,
    copy_sram_to_local,
)
from .runtime_layout import RuntimeLayout
from .runtime_tuple import RuntimeTuple
from .tile_tensor import TileTensor

__all__ = [
    "UNKNOWN_VALUE",
    "IntTuple",
    "Layout",
    "LayoutList",
    "LayoutTensor",
    "LayoutTensorIter",
    "MakeLayoutList",
    "RuntimeLayout",
    "RuntimeTuple",
    "ThreadScope",
    "blocked_product",
    "composition",
    "copy",
    "copy_dram_to_local",
    "copy_dram_to_sram",
    "copy_dram_to_sram_async",
    "copy_local_to_dram",
    "copy_local_to_local",
    "copy_local_to_shared",
    "copy_local_to_sram",
    "copy_sram_to_dram",
    "copy_sram_to_local",
    "print_layout",
    "stack_allocation_like",
    "unsafe_stack_allocation",
]


def copy(target: TileTensor, source: TileTensor, fill: Any = 0) -> TileTensor:
    """Copy `source` into `target`, and `fill` where a ragged source is not valid; return `target`.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> tile, big = stack_allocation["int8"](row_major[2, 2]()), stack_allocation["int8"](row_major[3, 3]()).fill(7)
    >>> copy(tile, big.tile[2, 2](1, 1)).to_numpy().tolist()
    [[7, 0], [0, 0]]
    """
    return target.copy_from(source, fill=fill)
