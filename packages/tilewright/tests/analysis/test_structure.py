# SPDX-License-Identifier: Apache-2.0
"""What a layout is as a set of places, as a permutation, and from thread to thread."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import LayoutError
from tilewright.analysis import atoms, footprint, permutation, thread_strides

from ..cases import examples


@st.composite
def layouts(draw):
    """Return a layout with gaps, overlaps, broadcasts and negative strides."""
    modes = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5)), min_size=1, max_size=3))
    layout = tw.Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes)) + draw(st.integers(-3, 3))
    return tw.with_logical_shape(layout, [max(0, n - 1) for n, _ in modes]) if draw(st.booleans()) else layout


@examples(60)
@given(layouts())
def test_footprints_count_places(layout):
    places = [int(layout(i)) for i in range(layout.size) if layout.valid(i)]
    used = sorted(set(places))
    report = footprint(layout)
    assert [place for first, last in report.runs for place in range(first, last + 1)] == used
    assert all(after[0] - before[1] > 1 for before, after in zip(report.runs, report.runs[1:], strict=False))
    assert (report.elements, report.places, report.span) == (
        len(places),
        len(used),
        used[-1] - used[0] + 1 if used else 0,
    )
    assert sum(report.gaps) == report.holes == report.span - len(used)
    counts = [places.count(place) for place in used]
    assert dict(report.sharing) == {ways: counts.count(ways) for ways in set(counts)}
    assert report.shared == tuple(place for place in used if places.count(place) > 1)
    assert report.most_shared == max(counts, default=0)
    assert str(report)


def permuted():
    """Return layouts with consecutive places: transposes, reversals, swizzles."""
    yield from [
        tw.Layout(8),
        tw.Layout((2, 2), (2, 1)),
        tw.Layout(4, -1),
        tw.Layout(5, -1) + 7,
        tw.Layout((3, 4), (4, 1)),
    ]
    yield from [tw.Layout(0), tw.Layout(1), tw.Layout((2, (3, 2)), (3, (1, 6)))]
    for swizzle in (tw.Swizzle(1, 0, 1), tw.Swizzle(3, 0, 3), tw.Swizzle(2, 1, -3)):
        yield tw.compose(swizzle, tw.Layout((8, 8), (8, 1)))


def test_permutations():
    for layout in permuted():
        images = [int(layout(i)) for i in range(layout.size)]
        start = min(images, default=0)
        found = permutation(layout)
        image = {i: after for cycle in found.cycles for i, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
        assert [image[i] + found.start for i in range(layout.size)] == images, layout
        assert (found.size, found.start) == (layout.size, start)
        assert found.fixed_points == tuple(i for i, place in enumerate(images) if place - start == i)
        inversions = sum(images[i] > images[j] for i, j in combinations(range(len(images)), 2))
        assert found.parity == (-1 if inversions % 2 else 1), layout
        again = list(range(layout.size))
        for _ in range(found.order):
            again = [images[i] - start for i in again]
        assert again == list(range(layout.size)), layout
        assert str(found).endswith(f"order {found.order}")


def test_text_of_many_cycles_is_short():
    assert str(permutation(tw.row_major(8, 8))).endswith("(10 17) and 20 more cycles, 8 fixed points, order 2")
    assert str(permutation(tw.Layout((3, 7), (7, 1)))).startswith("(1 7 9 3)")
    assert len(str(permutation(tw.Layout((64, 100), (100, 1))))) < 400


def test_what_is_not_a_permutation():
    for layout, reason in (
        (tw.Layout(4, 2), "not a dense interval"),
        (tw.Layout((4, 2), (-1, -8)), "not a dense interval"),
        (tw.Layout((4, 2), (0, 1)), "not injective"),
        (tw.with_logical_shape(tw.Layout(4), 3), "padded"),
        (tw.Layout(4, 1 @ tw.bank), "named axes"),
        (tw.replicate(tw.Layout(4), 2, 4), "copies"),
        (tw.Layout(1 << 30), "at most"),
        ([0, 1], "expected a layout"),
    ):
        with pytest.raises(LayoutError, match=reason):
            permutation(layout)


def test_steps_between_threads():
    assert thread_strides(tw.Layout(8)).steps == ((1,) * 7,)
    broadcast = thread_strides(tw.Layout((8, 2), (0, 8)))
    assert (broadcast.constant, broadcast.is_uniform, broadcast.distinct) == ((0, 0), True, (0,))
    swizzled = thread_strides(tw.compose(tw.Swizzle(2, 0, 2), tw.Layout(8)))
    assert (swizzled.distinct, swizzled.constant, swizzled.is_uniform) == ((-1, 1, 2, 3), (None,), False)
    alone = thread_strides(tw.Layout((1, 4), (0, 1)))
    assert (alone.steps, alone.distinct, str(alone)) == (((),) * 4, (), "one thread")
    column = thread_strides(tw.Layout((32, 32), (33, 1)), tw.Layout((32, 2), (1, 32)))
    assert (column.constant, str(column)) == ((33, 33), "a step of 33 between neighbouring threads")
    tensor = tw.TileTensor(np.zeros(64), tw.row_major(8, 8))
    assert thread_strides(tensor.tile[4, 4](1, 1)).constant == (8,) * 4
    with pytest.raises(LayoutError, match="padding"):
        thread_strides(tw.with_logical_shape(tw.Layout(4), 3))


@pytest.mark.parametrize("cache", ["ALWAYS", "GLOBAL", "ALWAYS_ZFILL", "GLOBAL_ZFILL"])
@pytest.mark.parametrize("bits", [32, 64, 128])
def test_asynchronous_copies_in_each_spelling_of_their_type(cache, bits):
    listed = atoms[f"SM80_CP_ASYNC_CACHEALWAYS<uint{bits}_t>"]
    for spelling in (f"uint{bits}_t", f"int{bits}_t", f"cute::uint{bits}_t"):
        name = f"SM80_CP_ASYNC_CACHE{cache}<{spelling}>"
        assert name in atoms
        assert (atoms[name].source, atoms[name].target) == (listed.source, listed.target)
    for wrong in ("uint16_t", "uint256_t", "float"):
        with pytest.raises(LayoutError, match="unknown instruction"):
            atoms[f"SM80_CP_ASYNC_CACHE{cache}<{wrong}>"]


def test_every_listed_instruction_exists():
    assert all(atoms[name].name == name for name in atoms)
