# SPDX-License-Identifier: Apache-2.0
"""Random placements: nested, permuted, padded, reversed, swizzled, paged, overlapping, and combinations of these."""

from dataclasses import dataclass
from math import prod
from typing import Any

from hypothesis import strategies as st

from tilewright.layout import Layout, Swizzle, compose, pad, with_logical_shape

PAGED = ("swizzled", "paged", "swizzled pages")
TARGETS = ("compact", "gaps", "reversed", *PAGED)
SOURCES = (*TARGETS, "overlapping", "broadcast")


@dataclass(frozen=True)
class Side:
    """A layout, and how much of each of its modes is data: known by construction, not asked of the layout."""

    layout: Any
    extents: tuple[int, ...]
    data: tuple[int, ...]

    def place(self, coordinate):
        return self.layout(*coordinate)


@dataclass(frozen=True)
class Pair:
    """A source and a target with as many modes; one may reach further than the other."""

    source: Side
    target: Side


@st.composite
def factors(draw, n):
    """Return numbers whose product is n, fastest first; some are 1."""
    found = []
    while n > 1 and draw(st.booleans()):
        part = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
        found.append(part)
        n //= part
    return (*found, n)


@st.composite
def nested_shapes(draw, extents):
    """Return a shape with one mode an extent, some of them nested."""
    modes = [draw(factors(n)) for n in extents]
    return tuple(mode[0] if len(mode) == 1 else mode for mode in modes)


def flat(shape):
    return [leaf for mode in shape for leaf in (mode if isinstance(mode, tuple) else (mode,))]


def shaped(shape, values):
    values = iter(values)
    return tuple(tuple(next(values) for _ in mode) if isinstance(mode, tuple) else next(values) for mode in shape)


@st.composite
def strided(draw, extents, kind, nested=True):
    """Return a layout with strides: places apart from each other, except where they overlap on purpose."""
    shape = draw(nested_shapes(extents)) if nested else tuple(extents)
    sizes = flat(shape)
    if kind == "overlapping":
        steps = [draw(st.integers(-5, 9)) for _ in sizes]
    else:
        steps = [0] * len(sizes)
        step = 1
        for k in draw(st.permutations(range(len(sizes)))):
            if kind != "compact":
                step += draw(st.integers(0, 4))
            steps[k] = step
            step *= max(1, sizes[k])
    if kind == "broadcast":
        steps = [0 if draw(st.booleans()) else step for step in steps]
    if kind == "reversed":
        steps = [-step if draw(st.booleans()) else step for step in steps]
    below = sum((n - 1) * step for n, step in zip(sizes, steps, strict=True) if step < 0)
    return Layout(shape, shaped(shape, steps)) + (draw(st.integers(0, 3)) - below)


@st.composite
def pages(draw, count):
    """Return a layout of at least count places over pages that go round the banks; banks are further apart."""
    page, banks = draw(st.integers(1, 9)), draw(st.sampled_from([2, 3, 5, 8, 12]))
    rounds = -(-count // (page * banks)) or 1
    pitch = rounds * page + draw(st.integers(0, 5))
    return Layout((page, banks, rounds), (1, pitch, page))


swizzles = st.builds(
    lambda bits, base, more, up: Swizzle(bits, base, bits + more if up else -bits - more),
    st.integers(1, 2),
    st.integers(0, 3),
    st.integers(0, 2),
    st.booleans(),
)


@st.composite
def layouts(draw, extents, kind):
    if kind not in PAGED:
        return draw(strided(extents, kind))
    layout = draw(strided(extents, draw(st.sampled_from(["compact", "gaps"]))))
    if kind != "swizzled":
        layout = compose(draw(pages(layout.cosize)), layout)
    if kind != "paged":
        layout = compose(draw(swizzles), layout)
    return layout


@st.composite
def sides(draw, data, kinds, may_alias=False):
    """Return a side with the given data: all of it, or with padding that has places of its own or none."""
    padding = draw(st.sampled_from(["none", "none", "within", "pad"] if may_alias else ["none", "within"]))
    extra = tuple(draw(st.integers(0, 4)) for _ in data) if padding != "none" else tuple(0 for _ in data)
    extents = tuple(n + more for n, more in zip(data, extra, strict=True))
    kind = draw(st.sampled_from(kinds))
    if padding == "pad":
        padded = pad(draw(strided(data, kind if kind not in PAGED else "gaps", nested=False)), extents)
        return Side(padded, extents, data)
    layout = draw(layouts(extents, kind))
    return Side(with_logical_shape(layout, data) if padding == "within" else layout, extents, data)


@st.composite
def pairs(draw, largest=12, most=250):
    """Return two sides over nearly the same coordinates: in each mode, either may reach further."""
    rank = draw(st.integers(1, 3))
    common, left = [], most
    for _ in range(rank):
        n = draw(st.integers(1, max(1, min(largest, left))))
        common.append(n)
        left //= n
    ragged = draw(st.booleans())
    ends = [[n + (draw(st.integers(0, 3)) if ragged else 0) for n in common] for _ in range(2)]
    source = draw(sides(tuple(ends[0]), SOURCES, may_alias=True))
    target = draw(sides(tuple(ends[1]), TARGETS))
    return Pair(source, target)


def size_of(side):
    return prod(side.extents)
