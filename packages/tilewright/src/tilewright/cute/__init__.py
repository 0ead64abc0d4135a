# SPDX-License-Identifier: Apache-2.0
"""The CuTe dialect: layouts and their algebra under the names, and with the answers, of CuTe and pycute.

>>> from tilewright import cute
>>> print(cute.composition(cute.Layout(7, 11), cute.Layout(3, 4)))
3:44
>>> print(cute.make_layout((cute.Int(4), cute.Int(8))))
(_4,_8):(_1,_4)

CuTe's layouts have no padding: where a composition or a tile leaves the domain, the layout continues past its end. What
CuTe refuses to compile raises a LayoutError here. `tilewright.compose` and its relatives are defined for all layouts.
"""

from ..layout import ComposedLayout, Swizzle, as_tuple, prefix_product, product, product_each, suffix_product
from ..layout import LayoutLike as LayoutBase
from . import algebra, layout, queries, tiled, tuples
from .algebra import *
from .layout import *
from .queries import *
from .tiled import *
from .tuples import *

_ = None
"""CuTe's underscore in a coordinate: keep the mode."""

__all__ = [
    "ComposedLayout", "LayoutBase", "Swizzle", "_", "as_tuple", "prefix_product", "product", "product_each",
    "suffix_product",
]  # fmt: skip
__all__ += algebra.__all__
__all__ += layout.__all__
__all__ += queries.__all__
__all__ += tiled.__all__
__all__ += tuples.__all__
