# SPDX-License-Identifier: Apache-2.0
"""Axe layouts, as TVM prints them: `T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + T.R[2:16 @ Axis.laneid] + 3)`.

The same three parts as here: strides on named axes, replicas, an offset; the axis `m` is plain memory.
"""

from __future__ import annotations

import re
from typing import Any

from ..errors import FileFormatError, LayoutError
from ..layout import PLAIN, ComposedLayout, Layout, LayoutLike, Place, Swizzle, as_tuple, leaves
from ..layout import parse as parse_own

LOOKS_LIKE = re.compile(r"\s*(?:T\.)?(?:TileLayout|ComposeLayout)\s*\(")
_TILE = re.compile(r"\s*(?:T\.)?TileLayout\s*\(\s*(?:T\.)?S\s*\[(?P<shard>[^\[\]]*)\](?P<rest>.*)\)\s*", re.DOTALL)
_COMPOSE = re.compile(
    r"\s*(?:T\.)?ComposeLayout\s*\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,(?P<tile>.*?)(?:,\s*(?:swizzle_inner\s*=\s*)?True)?\s*\)\s*",
    re.DOTALL,
)
_AXIS = re.compile(r"@\s*(?:Axis\.)?")
_MEMORY = re.compile(r"@m\b")


def parse_axe(text: str) -> Any:
    """Return the layout of an Axe text.

    >>> print(parse_axe("T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + T.R[2:16 @ Axis.laneid] + 3)"))
    (8,4):(4@laneid,1)+R[2:16@laneid]+3
    >>> print(parse_axe("T.ComposeLayout(3, 2, 4, T.TileLayout(T.S[(8, 64):(64, 1)]))"))
    Sw<2,3,4> o (8,64):(64,1)
    """
    if composed := _COMPOSE.fullmatch(text):
        base, bits, shift = (int(composed[k]) for k in (1, 2, 3))
        try:
            return ComposedLayout(Swizzle(bits, base, shift), parse_axe(composed["tile"]))
        except LayoutError as problem:
            raise FileFormatError(f"{text[:60]!r} is not an Axe layout: {problem}") from None
    found = _TILE.fullmatch(text)
    if not found:
        raise FileFormatError(f"{text[:60]!r} is not an Axe layout: expected T.TileLayout(T.S[shape:stride] + ...)")
    parts = f"{found['shard']}{found['rest']}".replace("T.R[", "R[")
    own = _MEMORY.sub("", _AXIS.sub("@", re.sub(r"\s+", "", parts)))
    try:
        return parse_own(own)
    except LayoutError as problem:
        raise FileFormatError(f"{text[:60]!r} is not an Axe layout: {problem}") from None


def write_axe(layout: LayoutLike) -> str:
    """Return a layout as TVM prints it; the modes of an Axe layout are not nested.

    >>> write_axe(parse_axe("T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + T.R[2:16 @ Axis.laneid])"))
    'T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + T.R[2:16 @ Axis.laneid])'
    """
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        swizzle = layout.outer
        if swizzle.shift < 0:
            raise LayoutError(f"{swizzle} moves lower bits to higher ones, which Axe's swizzles do not")
        return f"T.ComposeLayout({swizzle.base}, {swizzle.bits}, {swizzle.shift}, {write_axe(layout.inner)})"
    if not isinstance(layout, Layout) or layout.guards:
        raise LayoutError(f"{layout} has padding or a composition, which Axe's text does not have")
    if any(isinstance(mode, tuple) for mode in as_tuple(layout.shape)):
        raise LayoutError(f"{layout} has nested modes, which Axe's layouts do not have; flatten it first")
    extents, strides = leaves(layout.shape), [_format_step(step) for step in leaves(layout.stride)]
    if len(extents) == 1:
        shard = f"{extents[0]}:{strides[0]}"
    else:
        shard = f"({', '.join(map(str, extents))}):({', '.join(strides)})"
    replicas = "".join([f" + T.R[{count}:{_format_step(step)}]" for count, step in layout.replicas])
    offset = f" + {_format_step(layout.offset)}" if layout.offset else ""
    return f"T.TileLayout(T.S[{shard}]{replicas}{offset})"


def _format_step(step: Any) -> str:
    if not isinstance(step, Place):
        return str(step)
    if len(step) != 1:
        raise LayoutError(f"{step} moves along several axes at once, which Axe's strides do not")
    ((name, amount),) = step.items()
    return str(amount) if name == PLAIN else f"{amount} @ Axis.{name}"
