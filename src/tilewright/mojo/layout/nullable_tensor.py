# SPDX-License-Identifier: Apache-2.0
"""Mojo's `NullableTileTensor`: a tensor whose memory may be missing, and the layouts that older tensors turn into."""

from __future__ import annotations

from typing import Any

from ...layout.tuples import map_leaves
from ..containers import Optional
from .coord import RuntimeInt
from .int_layout import Layout
from .int_tuple import UNKNOWN_VALUE
from .tile_layout import Layout as TileLayout
from .tile_tensor import TileTensor


class NullableTileTensor:
    """A tensor with an optional pointer; `value()` is the tensor, if there is one.

    >>> from tilewright.mojo.layout import row_major
    >>> nullable = NullableTileTensor(TileTensor([1, 2], row_major[2]()))
    >>> bool(nullable.ptr), nullable.dim(0), nullable.value()[1]
    (True, 2, Int64(2))
    """

    PtrType = Optional

    def __init__(self, tensor: Any = None, *, ptr: Any = None, layout: Any = None) -> None:
        if tensor is None:
            self._tensor = None if not ptr else TileTensor(ptr=Optional(ptr).value(), layout=layout)
            self.layout = layout
        else:
            self._tensor, self.layout = tensor, tensor.layout
        self.ptr = Optional(None if self._tensor is None else self._tensor.ptr)

    def value(self) -> Any:
        """Return the tensor; raise if it has no memory.

        >>> from tilewright.mojo.layout import row_major
        >>> NullableTileTensor(TileTensor([1, 2], row_major[2]())).value().size
        2
        """
        self.ptr.value()
        return self._tensor

    @property
    def dim(self) -> Any:
        """Return the extent of a mode: `nullable.dim[0]()`, `nullable.dim(0)`.

        >>> from tilewright.mojo.layout import row_major
        >>> NullableTileTensor(TileTensor([1, 2], row_major[2]())).dim[0]()
        2
        """
        return self.value().dim

    def to_layout_tensor(self) -> Any:
        """Return the tensor as a `LayoutTensor`.

        >>> from tilewright.mojo.layout import row_major
        >>> NullableTileTensor(TileTensor([1, 2], row_major[2]())).to_layout_tensor().size()
        2
        """
        return self.value().to_layout_tensor()

    def __bool__(self) -> bool:
        return bool(self.ptr)


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
