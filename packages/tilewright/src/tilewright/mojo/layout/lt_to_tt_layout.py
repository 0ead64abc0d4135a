# SPDX-License-Identifier: Apache-2.0
"""The layouts of the tile tensors that older tensors turn into: `LTToTTLayout[layout]`."""

from __future__ import annotations

from ...layout import map_leaves
from .coord import RuntimeInt
from .int_layout import Layout
from .int_tuple import UNKNOWN_VALUE
from .tile_layout import Layout as TileLayout


class _LTToTTLayout:
    """`LTToTTLayout[layout]`: the layout of the `TileTensor` that a `LayoutTensor` of `layout` turns into.

    >>> LTToTTLayout[Layout.row_major(-1, 8)].static_shape
    (-1, 8)
    """

    def __getitem__(self, layout: Layout) -> TileLayout:
        shape, stride = (map_leaves(_as_leaf, tree._tree) for tree in (layout.shape, layout.stride))
        trees = [tree if isinstance(tree, tuple) else (tree,) for tree in (shape, stride)]
        return TileLayout(trees[0], trees[1])


def _as_leaf(leaf: int) -> int:
    return RuntimeInt(1) if leaf == UNKNOWN_VALUE else leaf


LTToTTLayout = _LTToTTLayout()
