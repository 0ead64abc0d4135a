# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.layout_tensor`: the older tensor, and its copies between memories."""

from __future__ import annotations

from typing import Any

from tilewright.mojo.layout import TileTensor


def copy(target: TileTensor, source: TileTensor, fill: Any = 0) -> TileTensor:
    """Copy `source` into `target`, and `fill` where a ragged source is not valid; return `target`.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> from tilewright.mojo.layout.tile_tensor import stack_allocation
    >>> tile, big = stack_allocation["int8"](row_major[2, 2]()), stack_allocation["int8"](row_major[3, 3]()).fill(7)
    >>> copy(tile, big.tile[2, 2](1, 1)).to_numpy().tolist()
    [[7, 0], [0, 0]]
    """
    return target.copy_from(source, fill=fill)
