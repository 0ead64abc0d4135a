# SPDX-License-Identifier: Apache-2.0
"""`LayoutTensor`: the older view of Mojo, with masks, composition and copy helpers."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..layout import compose
from .cutting import paired
from .tile_tensor import TileTensor


class LayoutTensor(TileTensor):
    """A tile tensor that can also be composed with a layout; its tiles at ragged edges are masked.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4)).to_layout_tensor()
    >>> t.masked, t.tile[2, 2](1, 0).masked
    (False, True)
    """

    __slots__ = ()

    @classmethod
    def _of(cls, tensor: TileTensor) -> LayoutTensor:
        found: LayoutTensor = object.__new__(cls)
        found._store, found._whole, found._offset = tensor._store, tensor._whole, tensor._offset
        found._index_type = tensor._index_type
        return found

    @property
    def masked(self) -> bool:
        """Return whether part of the full shape is masked off.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).to_layout_tensor().masked
        False
        """
        return self.is_ragged

    @property
    def runtime_layout(self) -> Any:
        """Return the layout with all that a kernel knows only at run time: the same layout.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).to_layout_tensor().runtime_layout
        Layout((3, 4), (4, 1))
        """
        return self.layout

    def compose(self, layout: Any) -> LayoutTensor:
        """Return the elements that a layout selects: element i of the result is element layout(i) of this tensor.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4)).to_layout_tensor()
        >>> t.compose(tw.Layout((2, 2), (1, 6))).to_numpy().tolist()
        [[0, 2], [4, 6]]
        """
        if self.element_size != 1:
            raise LayoutError("a vectorized tensor cannot be composed; compose it before vectorize")
        found = self._view(paired(compose(self.layout, layout)), self._offset)
        assert isinstance(found, LayoutTensor)
        return found

    composition = compose

    def copy_from_masked(self, source: TileTensor, fill: Any = 0) -> LayoutTensor:
        """Return the tensor after what is valid in source was copied into it, and fill into the rest.

        >>> import tilewright as tw
        >>> edge = tw.TileTensor(list(range(12)), tw.row_major(3, 4)).tile[2, 2](1, 0)
        >>> tw.TileTensor([9] * 4, tw.row_major(2, 2)).to_layout_tensor().copy_from_masked(edge).to_numpy().tolist()
        [[8, 9], [0, 0]]
        """
        self.copy_from(source, fill=fill)
        return self

    def to_tile_tensor(self) -> TileTensor:
        """Return the same view as a `TileTensor`.

        >>> import tilewright as tw
        >>> type(tw.TileTensor(bytearray(4), tw.row_major(2, 2)).to_layout_tensor().to_tile_tensor()).__name__
        'TileTensor'
        """
        found: TileTensor = object.__new__(TileTensor)
        found._store, found._whole, found._offset = self._store, self._whole, self._offset
        found._index_type = self._index_type
        return found
