# SPDX-License-Identifier: Apache-2.0
"""Static and dynamic extents: what a layout knows before the program runs."""

from __future__ import annotations

from typing import Any

from .axes import Place
from .brackets import brackets
from .integers import DynamicInt, is_dynamic
from .tuples import leaves, map_leaves


def _make_dynamic(layout: Any, fixed: tuple[Any, ...]) -> Any:
    """Return the same layout with every extent and stride dynamic; `make_dynamic[dtype]()` reads as in Mojo.

    >>> from tilewright import Layout
    >>> Layout((4, 8)).make_dynamic()
    Layout((Idx(4), Idx(8)), (Idx(1), Idx(4)))
    """
    shape, stride = map_leaves(_made_dynamic, layout.shape), map_leaves(_made_dynamic, layout.stride)
    return layout._with(shape=shape, stride=stride)


class StaticKnowledge:
    """What is static in a layout and what is dynamic; mixed into layouts that have a shape and strides.

    >>> from tilewright import Idx, Layout
    >>> Layout((4, Idx(8)), (8, 1)).all_dims_known
    False
    """

    __slots__ = ()

    @property
    def shape_known(self: Any) -> bool:
        """Return whether every extent is static.

        >>> from tilewright import Idx, Layout
        >>> Layout((4, 8)).shape_known, Layout((4, Idx(8))).shape_known
        (True, False)
        """
        return not any(map(is_dynamic, leaves(self.shape)))

    @property
    def stride_known(self: Any) -> bool:
        """Return whether every stride is static.

        >>> from tilewright import Idx, Layout
        >>> Layout((Idx(4), 8)).stride_known
        False
        """
        return -1 not in self.static_stride or not any(map(is_dynamic, leaves(self.stride)))

    @property
    def all_dims_known(self: Any) -> bool:
        """Return whether every extent and stride is static.

        >>> from tilewright import Layout
        >>> Layout((4, 8)).all_dims_known
        True
        """
        return bool(self.shape_known and self.stride_known)

    @property
    def static_shape(self: Any) -> tuple[int, ...]:
        """Return the extent of each leaf, -1 where it is dynamic.

        >>> from tilewright import Idx, Layout
        >>> Layout((4, Idx(8))).static_shape[1]
        -1
        """
        return tuple([-1 if is_dynamic(leaf) else leaf for leaf in leaves(self.shape)])

    @property
    def static_stride(self: Any) -> tuple[Any, ...]:
        """Return the stride of each leaf, -1 where it is dynamic.

        >>> from tilewright import Layout
        >>> Layout((4, 8)).static_stride
        (1, 4)
        """
        return tuple([-1 if is_dynamic(leaf) else leaf for leaf in leaves(self.stride)])

    make_dynamic = brackets(_make_dynamic)


def _made_dynamic(leaf: Any) -> Any:
    return leaf if isinstance(leaf, Place) else DynamicInt(leaf)
