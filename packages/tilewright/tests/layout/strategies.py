# SPDX-License-Identifier: Apache-2.0
"""Random shapes, layouts and tilers, small enough that every coordinate can be checked by brute force."""

from __future__ import annotations

from math import prod
from typing import Any

from hypothesis import strategies as st

from tilewright import Axis, Layout, Place, addr, bank, core

MAX_SIZE = 96
KINDS = ("compact", "padded", "broadcast", "reversed", "arbitrary")


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a nested tuple, left to right; on purpose not the package's own function."""
    return [leaf for branch in tree for leaf in leaves(branch)] if isinstance(tree, tuple) else [tree]


def nested_like(form: Any, values: Any) -> Any:
    """Return the values arranged in the form of a nested tuple; on purpose not the package's own function."""
    values = iter(values)

    def build(branch: Any) -> Any:
        return tuple([build(part) for part in branch]) if isinstance(branch, tuple) else next(values)

    return build(form)


def digits(index: int, extents: list[int]) -> list[int]:
    """Return the coordinate of an index, leaf by leaf: the first leaf varies fastest."""
    found = []
    for extent in extents:
        found.append(index % extent)
        index //= extent
    return found


def place_by_hand(layout: Layout, index: int) -> Any:
    """Return the place of an index straight from the definition: offset + sum(coordinate * stride)."""
    total = layout.offset
    for c, step in zip(digits(index, leaves(layout.shape)), leaves(layout.stride), strict=True):
        total = total + c * step
    return total


@st.composite
def shapes(
    draw: st.DrawFn,
    max_size: int = MAX_SIZE,
    max_depth: int = 3,
    min_rank: int | None = None,
    max_rank: int = 3,
    allow_zero: bool = False,
    allow_empty: bool = False,
) -> Any:
    """Return a nested shape of at most max_size coordinates; size 1 occurs, size 0 only if allowed.

    With min_rank the shape is a tuple of at least that many modes; allow_empty lets the empty tuple occur.
    """
    budget = max_size

    def extent() -> int:
        nonlocal budget
        n = draw(st.integers(0 if allow_zero else 1, max(1, min(budget, 12))))
        budget //= max(n, 1)
        return n

    def branch(depth: int) -> Any:
        if depth >= max_depth or draw(st.integers(0, 9)) < 6:
            return extent()
        return tuple([branch(depth + 1) for _ in range(draw(st.integers(0 if allow_empty else 1, max_rank)))])

    if min_rank is None:
        return branch(0)
    return tuple([branch(1) for _ in range(draw(st.integers(min_rank, max(min_rank, max_rank))))])


@st.composite
def layouts(
    draw: st.DrawFn,
    max_size: int = MAX_SIZE,
    kinds: tuple[str, ...] = KINDS,
    offsets: bool = True,
    allow_zero: bool = False,
    allow_empty: bool = False,
    min_rank: int | None = None,
    max_rank: int = 3,
    max_depth: int = 3,
) -> Layout:
    """Return a layout over plain integers of one of the kinds, sometimes with an offset.

    compact: every place from 0 on, modes in random order; padded: the same with gaps; broadcast: some strides
    are 0; reversed: some strides are negative; arbitrary: any strides, so places may overlap.
    """
    shape = draw(
        shapes(
            max_size=max_size,
            allow_zero=allow_zero,
            allow_empty=allow_empty,
            min_rank=min_rank,
            max_rank=max_rank,
            max_depth=max_depth,
        )
    )
    extents = leaves(shape)
    kind = draw(st.sampled_from(kinds))
    if kind == "arbitrary":
        steps = [draw(st.integers(-20, 20)) for _ in extents]
    else:
        steps = _spread(draw, extents, gaps=kind == "padded")
        if kind == "broadcast":
            steps = [0 if draw(st.booleans()) else step for step in steps]
        if kind == "reversed":
            steps = [-step if draw(st.booleans()) else step for step in steps]
    layout = Layout(shape, nested_like(shape, steps))
    if offsets and draw(st.booleans()):
        layout = layout + draw(st.integers(-30, 30))
    return layout


def injective_layouts(max_size: int = MAX_SIZE, negative: bool = False, **options: Any) -> st.SearchStrategy[Layout]:
    """Return layouts without two coordinates at one place: compact, padded, and reversed if negative."""
    kinds = ("compact", "padded", "reversed") if negative else ("compact", "padded")
    return layouts(max_size=max_size, kinds=kinds, **{"offsets": False, **options})


@st.composite
def places(draw: st.DrawFn, names: tuple[str, ...] = ("bank", "addr", "core.x"), plain: bool = False) -> Place:
    """Return a random place over some of the named axes, sometimes with a plain part."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    place = Place({name: draw(st.integers(-50, 50)) for name in chosen})
    return place + draw(st.integers(-50, 50)) if plain and draw(st.booleans()) else place


@st.composite
def named_layouts(
    draw: st.DrawFn,
    max_size: int = MAX_SIZE,
    axes: tuple[Axis, ...] = (bank, addr, core.x),
    mixed: bool = True,
    injective: bool = False,
    offsets: bool = True,
    **options: Any,
) -> Layout:
    """Return a layout whose strides lie on named axes; some lie on two axes at once if mixed.

    Injective ones give each axis its own compact or padded layout, so that no two coordinates share a place.
    """
    shape = draw(shapes(max_size=max_size, **options))
    extents = leaves(shape)
    owner = [draw(st.sampled_from(axes)) for _ in extents]
    if injective:
        amounts = _spread(draw, extents, gaps=draw(st.booleans()))
    else:
        amounts = [draw(st.integers(-8, 64)) for _ in extents]
    steps = [amount @ axis for amount, axis in zip(amounts, owner, strict=True)]
    if mixed and not injective:
        steps = [
            step + draw(st.integers(1, 9)) @ draw(st.sampled_from(axes)) if draw(st.integers(0, 4)) == 0 else step
            for step in steps
        ]
    layout = Layout(shape, nested_like(shape, steps))
    if offsets and draw(st.booleans()):
        layout = layout + draw(st.integers(0, 9)) @ draw(st.sampled_from(axes))
    return layout


@st.composite
def tilers(draw: st.DrawFn, layout: Layout, by_mode: bool | None = None, depth: int = 0) -> Any:
    """Return something that tiles layout: an int, None, a layout, or a tuple of these for its modes.

    Layouts as tilers fill the space together with copies of themselves, so every divide by them loses nothing.
    """
    modes = layout.shape if isinstance(layout.shape, tuple) else ()
    if by_mode is None:
        by_mode = bool(modes) and draw(st.booleans())
    if by_mode and modes:
        count = draw(st.integers(1, len(modes)))
        if depth >= 2:
            return tuple([draw(_flat_tilers(layout.mode(k).size)) for k in range(count)])
        return tuple([draw(tilers(layout.mode(k), depth=depth + 1)) for k in range(count)])
    return draw(_flat_tilers(layout.size))


def _flat_tilers(size: int) -> st.SearchStrategy[Any]:
    """Return tilers over one index: divisors, other extents (ragged edges), None, small layouts."""
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    return st.one_of(
        st.sampled_from(divisors or [1]),
        st.integers(1, max(1, min(size + 3, 12))),
        st.none(),
        _nesting_layouts(max(1, min(size, 8))),
    )


@st.composite
def _nesting_layouts(draw: st.DrawFn, max_size: int) -> Layout:
    """Return a layout whose strides each continue a whole number of periods of the smaller ones.

    Only such a layout tiles: a gap that is no multiple of what lies below it could not be filled with copies.
    """
    shape = draw(shapes(max_size=max_size, max_depth=1))
    extents = leaves(shape)
    steps = [0] * len(extents)
    step = draw(st.integers(1, 3))
    for k in draw(st.permutations(range(len(extents)))):
        steps[k] = step
        step *= extents[k] * draw(st.sampled_from([1, 1, 2, 3]))
    return Layout(shape, nested_like(shape, steps))


def _spread(draw: st.DrawFn, extents: list[int], gaps: bool) -> list[int]:
    """Return strides that keep all places apart, modes in random order, with gaps between modes if asked."""
    order = draw(st.permutations(range(len(extents))))
    steps = [0] * len(extents)
    step = 1 + (draw(st.integers(0, 3)) if gaps else 0)
    for k in order:
        steps[k] = step
        step = step * max(extents[k], 1) + (draw(st.integers(0, 4)) if gaps else 0)
    return steps


def size_of(shape: Any) -> int:
    """Return the number of coordinates of a shape."""
    return prod(leaves(shape))
