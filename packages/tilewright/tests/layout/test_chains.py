# SPDX-License-Identifier: Apache-2.0
"""Chains of operations on layouts with everything a layout can have: padding, copies, named axes, compositions.

The model of a layout is what it says of every index: the set of its places, each a vector over axes, and whether it is
data. Every operation states what becomes of the model, or refuses.
"""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Axis, ComposedLayout, Layout, LayoutError, Place, Swizzle, cute

from ..cases import examples
from .strategies import layouts, named_layouts

LARGEST = 96


def vector(place):
    """Return a place as its coordinates that are not 0; a plain one lies on the axis without a name."""
    parts = {**place, "": place.plain} if isinstance(place, Place) else {"": place}
    return frozenset((name, amount) for name, amount in parts.items() if amount)


def model(layout):
    """Return the places of every index, and whether it is data."""
    found = []
    for index in range(layout.size):
        place, valid = layout.locate(index)
        places = place if isinstance(place, frozenset) else {place}
        found.append((frozenset(map(vector, places)), bool(valid)))
    return found


def moved(places, step):
    return frozenset(vector(_place(each) + step) for each in places)


def _place(parts):
    named = Place({name: amount for name, amount in parts if name})
    return named + dict(parts).get("", 0)


def shown(found):
    """Return the places of the data alone, with their number."""
    return Counter(places for places, valid in found if valid)


@st.composite
def any_layouts(draw):
    """Return a layout that may be padded, replicated, over axes, and composed."""
    layout = draw(layouts(max_size=24, min_rank=1) | named_layouts(max_size=24))
    if draw(st.booleans()) and layout.size:
        layout = tw.with_logical_shape(layout, [draw(st.integers(1, n)) for n in cute.product_each(layout.shape)])
    if draw(st.booleans()):
        step = draw(st.integers(-40, 40)) @ Axis("device") if draw(st.booleans()) else draw(st.integers(-40, 40))
        layout = tw.replicate(layout, draw(st.integers(1, 3)), step)
    return layout


def same_function(draw, layout):
    operation = draw(st.sampled_from([tw.coalesce, tw.flatten, lambda each: each + 0]))
    result = operation(layout)
    assert model(result) == model(layout)
    return result


def shifted(draw, layout):
    step = draw(st.integers(-9, 9))
    result = layout + step
    assert model(result) == [(moved(places, step), valid) for places, valid in model(layout)]
    return result


def copied(draw, layout):
    count, step = draw(st.integers(1, 2)), draw(st.integers(-50, 50))
    if not isinstance(layout, Layout):
        return layout
    result = tw.replicate(layout, count, step)
    expected = [
        (frozenset().union(*[moved(places, k * step) for k in range(count)]), valid) for places, valid in model(layout)
    ]
    assert model(result) == expected
    return result


def composed(draw, layout):
    inner = draw(layouts(max_size=24, kinds=("compact", "padded", "broadcast"), offsets=False))
    found = model(layout)
    if inner.size == 0 or inner.bounds[0] < 0 or inner.bounds[1] >= layout.size:
        return layout
    result = tw.compose(layout, inner)
    assert model(result) == [found[inner(i)] for i in range(inner.size)]
    return result


def divided(draw, layout):
    tiler = draw(st.integers(1, 8))
    operation = draw(
        st.sampled_from([tw.logical_divide, tw.zipped_divide, tw.layout.tiled_divide, tw.layout.flat_divide])
    )
    result = operation(layout, tiler)
    assert shown(model(result)) == shown(model(layout))
    return result


def divided_by_mode(draw, layout):
    if not isinstance(layout.shape, tuple):
        return layout
    tilers = tuple([draw(st.none() | st.integers(1, 4)) for _ in range(draw(st.integers(0, layout.rank)))])
    operation = draw(
        st.sampled_from([tw.logical_divide, tw.zipped_divide, tw.layout.tiled_divide, tw.layout.flat_divide])
    )
    result = operation(layout, tilers)
    assert shown(model(result)) == shown(model(layout))
    if operation is tw.zipped_divide and isinstance(layout, Layout):
        unzipped = cute.hier_unzip(tw.logical_divide, layout, tilers)
        expected = result if layout.guards else without_padding(result)  # CuTe's layouts continue past their end
        assert tw.functionally_equal(unzipped, expected)
    return result


def reordered(draw, layout):
    if not isinstance(layout, Layout):
        return layout
    result = plain(cute.sort(layout))
    assert shown(model(result)) == shown(model(layout))
    return result


def one_mode(draw, layout):
    if not isinstance(layout, Layout) or layout.rank == 0:
        return layout
    k = draw(st.integers(0, layout.rank - 1))
    result = layout.mode(k)
    whole = [0] * layout.rank
    for index in range(result.size):
        whole[k] = index
        at = tuple(whole) if isinstance(layout.shape, tuple) else index
        place, valid = layout.locate(at)
        assert vector(result.locate(index)[0]) == vector(place - layout.offset), "places count from the offset"
        assert result.valid(index) == valid
    return result


def sliced(draw, layout):
    if not isinstance(layout, Layout) or not isinstance(layout.shape, tuple) or layout.rank < 2 or not layout.size:
        return layout
    extents = cute.product_each(layout.shape)
    k = draw(st.integers(0, layout.rank - 1))
    at = [None if j == k else draw(st.integers(0, n - 1)) for j, n in enumerate(extents)]
    result = layout(*at)
    for index in range(extents[k]):
        here = tuple(index if c is None else c for c in at)
        assert model_at(result, index) == model_at(layout, here)
    return result


def model_at(layout, at):
    place, valid = layout.locate(at)
    return frozenset(map(vector, place if isinstance(place, frozenset) else {place})), bool(valid)


def joined(draw, layout):
    other = draw(layouts(max_size=3, offsets=False, kinds=("compact",)))
    result = tw.layout.join(layout, other)
    mine, theirs = model(layout), [other(i) for i in range(other.size)]
    expected = [(moved(places, step), valid) for step, (places, valid) in product(theirs, mine)]
    assert model(result) == expected
    return result


def multiplied(draw, layout):
    count = draw(st.integers(1, 3))
    operation = draw(
        st.sampled_from([tw.logical_product, tw.blocked_product, tw.layout.raked_product, tw.layout.zipped_product])
    )
    result = operation(layout, Layout(count))
    assert result.size == layout.size * count
    mine, found = shown(model(layout)), shown(model(result))
    assert sum(found.values()) == count * sum(mine.values())
    taken = Counter(place for places in set(found) for place in places)
    alone = Counter(place for places in set(mine) for place in places)
    if max(alone.values(), default=1) == 1:
        assert max(taken.values(), default=1) == 1, "two copies share a place"
    return result


def free_places(draw, layout):
    if not isinstance(layout, Layout):
        return layout
    rest = tw.complement(layout, draw(st.integers(0, 40)))
    plain = model(layout)
    every = [moved(places, rest(k)) for k in range(rest.size) for places in {places for places, _ in plain}]
    alone = Counter(place for places in {places for places, _ in plain} for place in places)
    if max(alone.values(), default=1) == 1:
        taken = Counter(place for places in every for place in places)
        assert max(taken.values(), default=1) == 1, "the complement leads to places that are taken"
    return layout


def undone(draw, layout):
    if layout.axes or not any(valid for _, valid in model(layout)):
        return layout
    back = tw.left_inverse(layout)
    for index, (places, valid) in enumerate(model(layout)):
        place = layout.extended(index)
        if valid:
            assert back.valid(place)
            assert vector(layout(back(place))) in places
    used = {place for places, valid in model(layout) if valid for place in places}
    for place in range(int(back.size)):
        if back.valid(place):
            assert vector(place) in used, "a place that holds no data is not valid"
    return layout


def without_padding(layout):
    """Return a layout, strided or composed, with all of its coordinates counted as data."""
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, without_padding(layout.inner))
    return Layout(layout.shape, layout.stride, layout.offset, layout.replicas)


def plain(layout):
    """Return a layout of CuTe as one of the core."""
    return Layout(layout.shape, layout.stride, layout.offset, layout.replicas, layout.guards)


def cleaned(draw, layout):
    if not isinstance(layout, Layout):
        return layout
    result = plain(cute.filter(layout))
    assert {places for places, _ in model(result)} == {places for places, _ in model(layout)}
    return result


def swizzled(draw, layout):
    if layout.axes or layout.is_replicated or (isinstance(layout, Layout) and layout.size and layout.bounds[0] < 0):
        return layout
    swizzle = Swizzle(1, draw(st.integers(0, 2)), draw(st.integers(1, 2)))
    if any(layout.extended(i) < 0 for i in range(layout.size)):
        return layout
    result = tw.compose(swizzle, layout)
    assert [result.extended(i) for i in range(layout.size)] == [swizzle(layout.extended(i)) for i in range(layout.size)]
    return result


def recast(draw, layout):
    if not isinstance(layout, Layout) or layout.axes:
        return layout
    factor = draw(st.integers(1, 4))
    wide = draw(st.booleans())
    touching = [step for step in cute.flatten((layout.stride,)) if abs(step) == 1]
    if not wide and touching not in ([], [1]):
        return layout  # CuTe widens every mode of stride 1 or -1
    result = cute.upcast(layout, factor) if wide else cute.downcast(layout, factor)
    result = plain(result)
    (mine,), (found,) = ({tuple(sorted(_numbers(each)))} for each in (layout, result))
    if wide:
        assert set(found) == {place // factor for place in mine}
    else:
        parts = factor if touching else 1
        assert set(found) == {place * factor + k for place in mine for k in range(parts)}
    return result


def _numbers(layout):
    return [dict(each).get("", 0) for places, _ in model(layout) for each in places]


STEPS = [same_function, shifted, copied, composed, divided, divided_by_mode, reordered, one_mode, sliced, joined]
STEPS += [multiplied, free_places, undone, cleaned, swizzled, recast]


@examples(400)
@given(any_layouts(), st.data())
def test_chains_of_operations_keep_padding_copies_and_axes_or_refuse(layout, data):
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(STEPS))
        if not 0 < layout.size <= LARGEST:
            return
        axes = set(layout.axes)
        try:
            result = step(data.draw, layout)
        except LayoutError:
            continue  # refused by name
        assert axes <= set(result.axes), f"{step.__name__} of {layout} lost an axis: {result}"
        for name in axes:
            result.project(name)
        if isinstance(result, (Layout, ComposedLayout)):
            assert tw.parse(str(result)) == result
        layout = result
