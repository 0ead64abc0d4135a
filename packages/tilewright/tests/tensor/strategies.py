# SPDX-License-Identifier: Apache-2.0
"""Random tensors and random chains of views, each with its model walked alongside."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.copying.strategies import layouts as placed_layouts
from tests.copying.strategies import sides
from tilewright.mojo.layout import AddressSpace, Coord, Idx, Layout, TileTensor

from .model import Model, root

APART = ("compact", "gaps", "reversed", "swizzled", "paged", "swizzled pages")  # no two elements at one place
KINDS = (*APART, "overlapping", "broadcast")


@dataclass
class Walk:
    """A view, its model, and how it came about."""

    tensor: TileTensor
    model: Model
    steps: tuple[str, ...] = ()

    def on(self, step: str, tensor: Any, model: Model) -> Walk:
        return Walk(tensor, model, (*self.steps, step))


@dataclass
class Root:
    """A tensor over storage in which every value is its own place, with space around what the layout uses."""

    storage: np.ndarray
    walk: Walk


def iota(size: int, dtype: Any = np.int64) -> np.ndarray:
    return np.arange(size, dtype=dtype)


@st.composite
def extents(draw, most: int = 72, rank: int = 3) -> tuple[int, ...]:
    found, available = [], most
    for _ in range(draw(st.sampled_from([1, 2, 2, 3][: rank + 1]))):
        n = draw(st.sampled_from([n for n in (4, 5, 6, 7, 8, 9, 3, 2, 1) if n <= available]))
        found.append(n)
        available //= n
    return tuple(found)


@st.composite
def roots(draw, kinds: tuple[str, ...] = KINDS, ragged: bool = True, **limits: Any) -> Root:
    """Return a tensor of one of the kinds of layouts, sometimes dynamic, sometimes with padding of its own."""
    kind = draw(st.sampled_from(kinds))
    shape = draw(extents(**limits))
    if ragged and draw(st.integers(0, 4)) == 0:
        side = draw(sides(shape, (kind,)))
        layout, data = side.layout, side.data
    else:
        layout, data = draw(placed_layouts(shape, kind)), None
    if isinstance(layout, Layout) and draw(st.integers(0, 3)) == 0:
        layout = layout.make_dynamic()
    model = root(layout, data)
    storage = iota(int(model.places.max(initial=0)) + 1 + draw(st.integers(0, 3)))
    return Root(storage, Walk(TileTensor(storage, layout), model, (f"{layout}",)))


# Each kind of view: draw its arguments, apply it to tensor and model. None if it does not apply to such a tensor.


@st.composite
def tiled(draw, walk: Walk) -> Walk | None:
    if walk.model.size == 0 or walk.model.rank == 0:
        return None
    sizes = tuple([draw(st.integers(1, n + 2)) for n in walk.model.shape])
    grid = [-(-n // size) for n, size in zip(walk.model.shape, sizes, strict=True)]
    at = tuple([draw(st.integers(0, n - 1)) for n in grid])
    tensor = walk.tensor
    found = {
        "brackets": lambda: tensor.tile[sizes](*at),
        "Coord": lambda: tensor.tile[sizes](Coord(*at)),
        "run time": lambda: tensor.tile(sizes, at),
        "with_offset": lambda: tensor.tile_with_offset[sizes](at)[0],
        "tiles": lambda: tensor.tiles[sizes]()[int(np.ravel_multi_index(at, grid))],
        "tiles colex": lambda: tensor.tiles[sizes](order="colex")[int(np.ravel_multi_index(at, grid, order="F"))],
    }
    if isinstance(tensor, TileTensor) and tensor.flat_rank != tensor.rank:  # brackets tile by leaves there, as in Mojo
        del found["brackets"], found["Coord"]
    form = draw(st.sampled_from(sorted(found)))
    return walk.on(f"tile[{sizes}]{at} by {form}", found[form](), walk.model.tile(sizes, at))


@st.composite
def thread_layouts(draw, shape: tuple[int, ...], divide: bool = False) -> Layout:
    """Return a flat layout of threads: without gaps in some order of modes, sometimes with a stride of 0."""
    options = [[k for k in range(1, n + 1) if n % k == 0] or [1] if divide else range(1, n + 2) for n in shape]
    counts = [draw(st.sampled_from(choice)) for choice in options]
    steps, step = [0] * len(counts), 1
    for k in draw(st.permutations(range(len(counts)))):
        steps[k] = step
        step *= counts[k]
    return Layout(tuple(counts), tuple(steps))


def thread_at(threads: Layout, thread: int) -> tuple[int, ...]:
    pairs = zip(threads.shape, threads.stride, strict=True)
    return tuple([int(thread // step % n) if step else 0 for n, step in pairs])


@st.composite
def distributed(draw, walk: Walk) -> Walk | None:
    shape = walk.model.shape
    if not shape:
        return None
    threads = draw(thread_layouts(shape))
    if draw(st.integers(0, 4)) == 0:
        stopped = draw(st.integers(0, len(shape) - 1))
        threads = Layout(threads.shape, tuple([0 if k == stopped else d for k, d in enumerate(threads.stride)]))
    divides = all(n % count == 0 for n, count in zip(shape, threads.shape, strict=True))
    ragged = draw(st.sampled_from(["warn", "error", "floor", "cover"] if divides else ["floor", "cover"]))
    count = prod(threads.shape)
    wrap = draw(st.booleans())
    thread = draw(st.integers(-count, 2 * count) if wrap else st.integers(0, count - 1))
    found, at, _ = walk.tensor.distribute_with_offset[threads](thread, wrap=wrap, ragged=ragged)
    assert at == thread_at(threads, thread % count)
    step = f"distribute[{threads}]({thread}, wrap={wrap}, ragged={ragged!r})"
    return walk.on(step, found, walk.model.share(threads.shape, at, ragged == "cover"))


@st.composite
def vectors(draw, walk: Walk) -> Walk | None:
    widths = tuple([draw(st.integers(1, 4)) for _ in walk.model.shape])
    if prod(walk.model.lanes) * prod(widths) > 64:
        return None
    return walk.on(f"vectorize[{widths}]", walk.tensor.vectorize[widths](), walk.model.vectorize(widths))


@st.composite
def bounds(draw, n: int) -> tuple[int, int]:
    """Return the ends of a part of a mode, now and then of an empty one."""
    low = draw(st.integers(0, max(n - 1, 0)))
    return low, draw(st.integers(low if seldom(draw) else min(low + 1, n), n))


def seldom(draw) -> bool:
    return draw(st.integers(0, 9)) == 9


@st.composite
def sliced(draw, walk: Walk) -> Walk | None:
    """Return a slice with one entry for each leaf, with static bounds or with bounds at run time."""
    model = walk.model
    if any(part is None for part in model.leaves) or (model.owners and any(len(part) > 1 for part in model.leaves)):
        return None
    model = model if all(len(part) == 1 for part in model.leaves) else model.by_leaf()
    if not walk.tensor.all_dims_known or draw(st.booleans()):
        pairs = [draw(bounds(n)) for n in model.shape]
        step = f"slice{tuple(pairs)}"
        return walk.on(step, walk.tensor.slice(*pairs), model.cut(*[range(a, b) for a, b in pairs]))
    entries: list[Any] = []
    for n in model.shape:
        low, high = draw(bounds(n))
        whole = draw(st.sampled_from([slice(low, high), slice(None, high), slice(low, None)]))
        entries.append(low if low < n and draw(st.integers(0, 3)) == 0 else whole)
    parts = [
        range(n)[entry] if isinstance(entry, slice) else entry for entry, n in zip(entries, model.shape, strict=True)
    ]
    return walk.on(f"slice[{entries}]", walk.tensor.slice[tuple(entries)](), model.cut(*parts))


@st.composite
def subscripted(draw, walk: Walk) -> Walk | None:
    """Return a subscript: slices as in Python with any bounds and steps, integers, and perhaps an ellipsis."""
    model = walk.model
    if model.rank == 0:
        return None
    known = all(part is not None for part in model.leaves)
    if known and not model.owners and draw(st.booleans()):
        model = model.by_leaf()
    entries: list[Any] = []
    for n in model.shape:
        step = draw(st.none() | st.integers(1, 3) | st.integers(-3, -1))
        low, high = draw(bounds(n))
        forward = step is None or step > 0
        usual = slice(low, high, step) if forward else slice(high - 1, low - 1 if low else None, step)
        edge = st.none() | st.integers(-n - 2, n + 2)
        part = (
            slice(draw(edge), draw(edge), step)
            if seldom(draw)
            else draw(st.sampled_from([usual, slice(None, None, step)]))
        )
        entries.append(draw(st.integers(0, n - 1)) if n and draw(st.integers(0, 4)) == 0 else part)
    if all(isinstance(entry, int) for entry in entries):
        entries[0] = slice(entries[0], entries[0] + 1)
    parts = [
        range(n)[entry] if isinstance(entry, slice) else entry for entry, n in zip(entries, model.shape, strict=True)
    ]
    if model.rank == walk.model.rank and draw(st.booleans()):
        first = draw(st.integers(0, model.rank - 1))
        last = draw(st.integers(first, model.rank - 1))
        entries[first : last + 1] = [Ellipsis]
        parts[first : last + 1] = [range(n) for n in model.shape[first : last + 1]]
    return walk.on(f"t[{entries}]", walk.tensor[tuple(entries)], model.cut(*parts))


@st.composite
def split(draw, walk: Walk) -> Walk | None:
    shape = walk.model.shape
    if not shape:
        return None
    axis = draw(st.integers(0, len(shape) - 1))
    n = shape[axis]
    if draw(st.booleans()):
        count = draw(st.sampled_from([k for k in range(1, max(n, 1) + 1) if n % k == 0]))
        part = draw(st.integers(0, count - 1))
        low, high = part * (n // count), (part + 1) * (n // count)
        step, found = f"split[{count}, {axis}][{part}]", walk.tensor.split[count, axis]()[part]
    else:
        count, alignment = draw(st.integers(1, n + 1)), draw(st.integers(1, 4))
        part = draw(st.integers(0, count - 1))
        share = -(-n // count)
        length = -(-share // alignment) * alignment
        low, high = min(part * length, n), min((part + 1) * length, n)
        step, found = f"split[{axis}, {alignment}]({count}, {part})", walk.tensor.split[axis, alignment](count, part)
    parts = [range(low, high) if k == axis else range(m) for k, m in enumerate(shape)]
    return walk.on(step, found, walk.model.cut(*parts))


@st.composite
def factored(draw, size: int) -> tuple[int, ...]:
    found = []
    for _ in range(draw(st.integers(0, 2))):
        found.append(draw(st.sampled_from([k for k in range(1, size + 1) if size % k == 0])))
        size //= found[-1]
    return (*found, size)


@st.composite
def reshaped(draw, walk: Walk) -> Walk | None:
    """Return another shape, where the scalars follow each other."""
    model = walk.model
    if model.size == 0 or not isinstance(walk.tensor.layout, Layout) or not model.follows_row_major():
        return None
    shape = draw(factored(model.size))
    tensor = walk.tensor
    found = {
        "Coord": lambda: tensor.reshape(Coord(*shape)),
        "static Coord": lambda: tensor.reshape(Coord(*[Idx[n]() for n in shape])),
        "a tuple": lambda: tensor.reshape(shape),
    }
    if tensor.all_dims_known:
        found |= {"brackets": tensor.reshape[shape], "coalesce": tensor.coalesce}
    form = draw(st.sampled_from(sorted(found)))
    shape = (model.size,) if form == "coalesce" else shape
    return walk.on(f"reshape[{shape}] by {form}", found[form](), model.reshape(shape))


@st.composite
def relaid(draw, walk: Walk) -> Walk | None:
    """Return the same storage from the same place on through any other layout that stays inside."""
    model = walk.model
    if model.size == 0 or model.owners or not model.valid.all() or not isinstance(walk.tensor.layout, Layout):
        return None
    shape = draw(factored(model.size))
    strides, step = [0] * len(shape), 1
    for k in draw(st.permutations(range(len(shape)))):
        strides[k] = step
        step *= shape[k]
    layout = Layout(shape, tuple(strides))
    if int(model.places.reshape(-1)[0]) + model.size > walk.tensor.ptr.store.size:
        return None
    return walk.on(f"reshape({layout})", walk.tensor.reshape(layout), model.relaid(layout))


@st.composite
def same(draw, walk: Walk) -> Walk:
    """Return a view of the same elements: other labels, or none at all."""
    tensor = walk.tensor
    found = {
        "make_dynamic": tensor.make_dynamic[np.int64],
        "as_any_origin": tensor.as_any_origin,
        "address_space_cast": tensor.address_space_cast[AddressSpace.SHARED],
        "to_layout_tensor": tensor.to_layout_tensor,
        "bitcast": tensor.bitcast[np.int64],
        "vectorize by ones": lambda: tensor.vectorize[(1,) * walk.model.rank]() if walk.model.rank else tensor,
    }
    form = draw(st.sampled_from(sorted(found)))
    leaves = walk.model.leaves
    return walk.on(form, found[form](), Model(walk.model.places, walk.model.valid, leaves, walk.model.owners))


def transposed(walk: Walk) -> st.SearchStrategy[Walk]:
    return st.builds(lambda: walk.on("transpose", walk.tensor.transpose(), walk.model.transpose()))


VIEWS = {
    "tile": tiled,
    "distribute": distributed,
    "vectorize": vectors,
    "slice": sliced,
    "subscript": subscripted,
    "split": split,
    "reshape": reshaped,
    "relaid": relaid,
    "transpose": transposed,
    "same": same,
}
OFTEN = ("tile", "distribute", "vectorize", "subscript", *VIEWS)  # these four can make edges ragged, or turn them round


@st.composite
def chains(draw, origin: Root, longest: int = 4, views: tuple[str, ...] = OFTEN) -> list[Walk]:
    """Return a chain of views of a tensor, from the tensor itself on."""
    walks = [origin.walk]
    for _ in range(draw(st.integers(1, longest))):
        following = draw(VIEWS[draw(st.sampled_from(views))](walks[-1]))
        if following is not None:
            walks.append(following)
    return walks
