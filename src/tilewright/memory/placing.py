# SPDX-License-Identifier: Apache-2.0
"""From a coordinate to a byte in a bank, as one composition of layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MemoryConfigError
from ..formats import BlockFormat
from ..layout import Layout, addr, compose

if TYPE_CHECKING:
    from .spec import TensorSpec


def element_placement(spec: TensorSpec) -> Any:
    """Return the layout from a coordinate to its bank or core, and the byte in the buffer there.

    It is the way of pages (widen, cut, deal), with the elements of a page as one more mode in front.

    >>> from tilewright import TensorSpec
    >>> print(element_placement(TensorSpec((100, 150), layout="tile", chip="wormhole_n150")))
    (1024,1,12,2):(2@addr,2048@addr,1@bank,2048@addr) o ((16,2,4),(16,2,5)):((16,512,5120),(1,256,1024)) \
where ((1,16,32),(0,0,0))<100 and ((0,0,0),(1,16,32))<150
    """
    each, inside = spec.page_elements, bytes_in_page(spec)
    deal, cut, widen = spec.page_places, spec.paging.cut, spec.paging.widen
    start = inside.offset + 0 @ spec.axis + 0 @ addr  # so that a place names both axes, however small the tensor
    outer = Layout((inside.shape, *deal.shape), (inside.stride, *deal.stride), offset=start)
    by_shard = Layout((each, *cut.shape), (1, *_scaled(cut.stride, each)))
    grown = Layout((each, *widen.shape), (1, *_scaled(widen.stride, each)))
    return compose(outer, compose(by_shard, compose(grown, spec.host)))


def bytes_in_page(spec: TensorSpec) -> Layout:
    """Return the layout from an element of a page to its byte; small elements share one.

    >>> from tilewright import TensorSpec
    >>> print(bytes_in_page(TensorSpec((32, 32), "bfloat4_b")))
    (2,512):(0@addr,1@addr)+64@addr
    """
    if not isinstance(spec.dtype, BlockFormat):
        return Layout(spec.page_elements, spec.dtype.itemsize @ addr)
    if 8 % spec.dtype.bits:
        raise MemoryConfigError(
            f"elements of {spec.dtype.bits} bits straddle bytes, so {spec.dtype} has no layout in bytes; ask where(...)"
        )
    sections = spec.dtype.sections(spec.page_elements)
    shape = (spec.page_elements // sections.data, sections.data)
    return Layout(shape, (0 @ addr, 1 @ addr), offset=sections.data_offset @ addr)


def _scaled(strides: Any, factor: int) -> Any:
    return tuple([_scaled(step, factor) if isinstance(step, tuple) else step * factor for step in strides])
