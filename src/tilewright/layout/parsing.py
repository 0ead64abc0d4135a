# SPDX-License-Identifier: Apache-2.0
"""From text to any layout: single ones, compositions, swizzles and inverses."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .composed import ComposedLayout
from .lookup import InverseLayout
from .notation import parse_chain
from .properties import is_injective
from .strided import Layout, layout_from_term
from .swizzle import Swizzle


def parse(text: str) -> Any:
    """Return what text describes: what `str` prints of a layout, a composition, a swizzle or an inverse.

    >>> parse("(4,8):(8,1)"), parse("Sw<2,0,2> o (4,4):(4,1)")
    (Layout((4, 8), (8, 1)), ComposedLayout(Swizzle(2, 0, 2), Layout((4, 4), (4, 1))))
    """
    return _built(parse_chain(text), text)


def _built(terms: list[tuple[Any, ...]], text: str) -> Any:
    *outers, innermost = [_term(term, text) for term in terms]
    result = innermost
    if outers and isinstance(result, Swizzle):
        raise LayoutError(
            f"cannot read {text!r}: the innermost term is a swizzle, which has no shape; end with a layout"
        )
    for outer in reversed(outers):
        result = ComposedLayout(outer, result)
    return result


def _term(term: tuple[Any, ...], text: str) -> Any:
    if term[0] == "layout":
        return layout_from_term(term)
    if term[0] == "inverse":
        inner = _built(term[1], text)
        if isinstance(inner, Swizzle) or (isinstance(inner, Layout) and not is_injective(inner)):
            raise LayoutError(f"cannot read {text!r}: {inner} has no inverse that looks up places")
        return InverseLayout(inner)
    if len(term) != 4:
        raise LayoutError(f"cannot read {text!r}: a swizzle has three numbers, Sw<bits,base,shift>")
    return Swizzle(*term[1:])
