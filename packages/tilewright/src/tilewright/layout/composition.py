# SPDX-License-Identifier: Apache-2.0
"""Composition: `compose(A, B)` is the function that maps i to A(B(i)), for all layouts; padding is one.

Where the result is strided it is a `Layout`; everything else is an exact `ComposedLayout`.
"""

from __future__ import annotations

from math import prod
from typing import Any, SupportsIndex, TypeAlias

from .._integers import ceil_div
from ..errors import LayoutError
from .composed_layout import ComposedLayout
from .evaluation import chunks
from .layout import Layout, make_layout
from .layout_like import LayoutLike, require_layout
from .modes import LayoutArgument, as_function, join, scale
from .strided_composition import ComposedChannels, compose_channels, strided_composition
from .strides import Guard
from .swizzle import Swizzle
from .tuples import (
    Shape,
    ShapeArgument,
    as_tree,
    as_tuple,
    index_strides,
    leaves,
    prefix_product,
    product_each,
    zeros_like,
)
from .validation import as_integer

# A tile of a mode: an integer n (`Layout(n)`), a layout, None (leave the mode whole), or a tuple of these per mode.
Tiler: TypeAlias = "LayoutLike | Swizzle | SupportsIndex | tuple[Tiler, ...] | list[Any] | None"


def compose(outer: LayoutArgument, inner: Tiler, *, strided: bool = False, exact: bool = False) -> Any:
    """Return the layout R with R(i) == outer(inner(i)) for every i in the domain of `inner`.

    R is a `Layout` where a strided one exists, else a `ComposedLayout`. Its shape refines the shape of `inner`. Where
    `inner` leaves the domain of `outer`, R is `outer.extended` and not `valid`. `inner` may be a layout, an integer n
    (meaning `Layout(n)`), a `Swizzle`, None (unchanged), or a tuple of these, which composes mode by mode.

    `strided=True` raises if two strided layouts do not compose to a strided one; `exact=True` raises if `inner` leaves
    the domain of `outer`.

    >>> compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    Layout(((2, 2), 3), ((24, 2), 8))
    >>> compose(Layout((12, (4, 8)), (59, (13, 1))), (3, 8))
    Layout((3, (4, 2)), (59, (13, 1)))
    >>> print(compose(Layout((3, 5), (5, 1)), Layout(6, 2)))
    (3,5):(5,1) o 6:2
    """
    result = _compose(as_function(outer), _as_tiler(as_tree(inner)))
    if exact:
        _require_within_domain(result, outer, inner)
    if strided and not _is_fully_composed(result):
        raise LayoutError(
            f"compose: {outer} o {_format_tiler(inner)} is not strided: extents and strides are not divisible;"
            " without strided=True the result is an exact ComposedLayout"
        )
    return result


def _as_tiler(value: Tiler) -> Any:
    """Return an inner function: integers as layouts, tuples entry by entry."""
    if value is None or isinstance(value, (LayoutLike, Swizzle)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_as_tiler(part) for part in value])
    return Layout(value)


def _compose(outer: LayoutLike | Swizzle, inner: LayoutLike | Swizzle | tuple[Tiler, ...] | None) -> Any:
    if inner is None:
        return outer
    if isinstance(outer, ComposedLayout):
        return _compose(outer.outer, _compose(outer.inner, inner))
    if isinstance(inner, tuple):
        return compose_by_mode(outer, inner)
    if isinstance(inner, Swizzle):
        if isinstance(outer, Swizzle):
            raise LayoutError(
                f"{outer} o {inner} has no shape: compose swizzles with a layout, as in {outer} o ({inner} o L)"
            )
        inner = ComposedLayout(inner, make_layout(outer.shape, index_strides(outer.shape)))
    if inner.axes:
        raise LayoutError(
            f"{inner} maps to the axes {', '.join(inner.axes)}, not to coordinates of {outer};"
            " take one axis with .project(axis), or use it as the outer layout"
        )
    if isinstance(outer, Swizzle):
        return _compose_swizzle(outer, inner)
    if isinstance(inner, ComposedLayout):
        # associating to the left is the same function only if the middle one is never extended
        if isinstance(outer, Layout) and isinstance(inner.outer, Layout) and _maps_into(inner.inner, inner.outer):
            middle = _compose(outer, inner.outer)
            if isinstance(middle, Layout) and not middle.guards:
                return _compose(middle, inner.inner)
        return ComposedLayout(outer, inner)
    if isinstance(outer, Layout) and isinstance(inner, Layout):
        strided = strided_composition(outer, inner)
        return ComposedLayout(outer, inner) if strided is None else strided
    return ComposedLayout(outer, inner)


def _compose_swizzle(swizzle: Swizzle, inner: LayoutLike) -> LayoutLike:
    if isinstance(inner, Layout) and inner.size and not inner.guards and not inner.replicas:
        low, high = inner.bounds
        lowest_read = (swizzle.source_mask & -swizzle.source_mask) or high + 1
        if low >= 0 and high < lowest_read:
            return inner  # no offset has the bits that the swizzle reads
    return ComposedLayout(swizzle, inner)


def _is_fully_composed(layout: object) -> bool:
    """Return whether the result contains no composition of two strided layouts."""
    if not isinstance(layout, ComposedLayout):
        return True
    if isinstance(layout.outer, Layout) and isinstance(layout.inner, Layout):
        return False
    return _is_fully_composed(layout.outer) and _is_fully_composed(layout.inner)


def _maps_into(inner: LayoutLike, outer: Layout) -> bool:
    """Return whether every place of `inner` is an index of `outer`."""
    if not isinstance(inner, Layout) or inner.size == 0:
        return inner.size == 0
    low, high = inner.bounds
    return bool(low >= 0 and high < outer.size)


def _require_within_domain(result: LayoutLike, outer: LayoutArgument, inner: Tiler) -> None:
    if isinstance(result, Layout):
        inside = not result.guards
    else:
        inside = all(bool(valid.all()) for _, _, valid in chunks(result))
    if not inside:
        raise LayoutError(
            f"compose: {_format_tiler(inner)} leaves the data of {outer}; without exact=True the rest is padding"
        )


def _format_tiler(tiler: Tiler) -> str:
    """Return the text of a tiler, layouts in their short form."""
    if isinstance(tiler, (tuple, list)):
        return f"({', '.join(map(_format_tiler, tiler))})"
    return str(tiler)


def compose_by_mode(outer: LayoutLike | Swizzle, tilers: tuple[Tiler, ...]) -> Any:
    """Return `outer` with each mode composed with its own tiler; modes without a tiler stay.

    >>> compose_by_mode(Layout((8, 8)), (Layout(2, 4), Layout(4)))
    Layout((2, 4), (4, 8))
    """
    if isinstance(outer, ComposedLayout):
        return _compose(outer.outer, compose_by_mode(outer.inner, tilers))
    if not isinstance(outer, Layout):
        raise LayoutError(
            f"{outer} is not strided and cannot be composed with {_format_tiler(tilers)} mode by mode; use one layout"
        )
    composed = _compose_modes(outer._shape, outer._channels(), tilers)
    return _compose_by_index(outer, tilers) if composed is None else composed.to_layout(outer)


def _compose_modes(shape: Shape, channels: list[Any], tiler: Tiler) -> ComposedChannels | None:
    """Return every channel composed mode by mode with the tiler; None if a mode is not strided."""
    if tiler is None:
        return ComposedChannels(shape, channels, [0] * len(channels), (), ())
    if not isinstance(tiler, tuple):
        return compose_channels(shape, channels, tiler) if isinstance(tiler, Layout) else None
    shapes = as_tuple(shape)
    lines = [as_tuple(tree) for tree in channels]
    if len(tiler) > len(shapes):
        raise LayoutError(
            f"tiler {_format_tiler(tiler)} has more modes than the shape {shape}, which has {len(shapes)}"
        )
    modes = []
    for k, mode in enumerate(shapes):
        composed = _compose_modes(mode, [line[k] for line in lines], tiler[k] if k < len(tiler) else None)
        if composed is None:
            return None
        modes.append(composed)
    guards = []
    if any(mode.guards for mode in modes):
        zeros = [zeros_like(mode.shape) for mode in modes]
        guards = [
            guard.with_stride((*zeros[:k], guard.stride, *zeros[k + 1 :]))
            for k, mode in enumerate(modes)
            for guard in mode.guards
        ]
    return ComposedChannels(
        tuple([mode.shape for mode in modes]),
        [tuple([mode.strides[c] for mode in modes]) for c in range(len(channels))],
        [sum([mode.offsets[c] for mode in modes]) for c in range(len(channels))],
        sum([mode.replicas for mode in modes], ()),
        guards,
    )


def _compose_by_index(outer: Layout, tilers: tuple[Tiler, ...]) -> Any:
    """Return the mode-by-mode composition via the index of `outer`, each mode extended as far as its tiler needs."""
    domains, tiles = [], []
    below = 1
    for k, shape in enumerate(as_tuple(outer._shape)):
        tiler = tilers[k] if k < len(tilers) else None
        identity = make_layout(shape, index_strides(shape))
        tile = _compose(identity, tiler) if isinstance(tiler, tuple) or tiler is None else tiler
        if not isinstance(tile, Layout) or (tile.size and tile.bounds[0] < 0):
            raise LayoutError(
                f"cannot compose mode {k} of {outer} with {_format_tiler(tiler)}: use a strided, nonnegative tiler"
            )
        extents = [n for n in leaves(shape) if n != 1] or [1]
        block = prod(extents[:-1]) or 1
        needed = max(tile.bounds[1] + 1 if tile.size else 0, prod(extents))
        domains.append(Layout(ceil_div(needed, block) * block))
        tiles.append(scale(tile, below))
        below *= domains[-1].size
    return ComposedLayout(compose_by_mode(outer, tuple(domains)), join(*tiles))


def pad(layout: LayoutLike, shape: ShapeArgument) -> Any:
    """Return the function of `layout` on a larger `shape`, one extent per mode; the added coordinates are padding.

    Strides stay as they are. To reserve memory for the padding, build the padded layout and use `with_logical_shape`.

    >>> padded = pad(Layout(100), 128)
    >>> padded.size, padded.valid(99), padded.valid(100)
    (128, True, False)
    >>> pad(Layout((60, 90)), (64, 96)).logical_shape
    (60, 90)
    """
    padded = _validate_extents(layout, shape, "pad")
    extents = product_each(layout.shape)
    for n, extent in zip(padded, extents, strict=True):
        if n < extent:
            raise LayoutError(f"cannot pad {layout} to {shape}: {n} is less than the extent {extent}")
    tilers = tuple([None if n == extent else Layout(n) for n, extent in zip(padded, extents, strict=True)])
    return compose(layout, tilers if isinstance(layout.shape, tuple) else tilers[0])


def with_logical_shape(layout: LayoutLike, shape: ShapeArgument) -> Any:
    """Return `layout` with only the coordinates inside `shape`, one extent per mode, as data; the rest is padding.

    >>> from tilewright import row_major
    >>> stored = with_logical_shape(row_major(64, 96), (60, 90))
    >>> stored(1, 0), stored.valid(59, 89), stored.valid(60, 0)
    (96, True, False)
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, with_logical_shape(layout.inner, shape))
    extents = _validate_extents(layout, shape, "with_logical_shape")
    modes = layout.shape
    if not isinstance(layout, Layout):
        return ComposedLayout(layout, with_logical_shape(make_layout(modes, index_strides(modes)), shape))
    sizes = product_each(modes)
    padded = [k for k, extent in enumerate(extents) if extent < sizes[k]] if layout.size else []
    if not isinstance(modes, tuple):
        guards = [Guard(1, extents[k]) for k in padded]
    else:
        zeros = [zeros_like(mode) for mode in modes]
        guards = [Guard((*zeros[:k], prefix_product(modes[k]), *zeros[k + 1 :]), extents[k]) for k in padded]
    return layout._with(guards=tuple(dict.fromkeys([*layout.guards, *guards])))


def _validate_extents(layout: LayoutLike, shape: ShapeArgument, caller: str) -> tuple[int, ...]:
    """Return `shape` as one extent per mode of `layout`."""
    require_layout(layout, caller)
    extents = as_tuple(as_tree(shape))
    if len(extents) != layout.rank:
        raise LayoutError(
            f"{caller}: {layout} has {layout.rank} modes, but {shape} has {len(extents)} extents; give one per mode"
        )
    for n in extents:
        if isinstance(n, tuple):
            raise LayoutError(f"{caller}: {shape} is nested; give one extent for each top-level mode")
        if as_integer(n, f"{caller}: an extent") < 0:
            raise LayoutError(f"{caller}: extent {n} is negative; extents must be nonnegative")
    return tuple([int(n) for n in extents])
