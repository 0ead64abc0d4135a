# SPDX-License-Identifier: Apache-2.0
"""Random plans against a model that walks the coordinates one by one, with guards around all memory."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.copying import Placement, execute
from tilewright.formats import BLOCK_FORMATS, cast, format_of
from tilewright.layout import Layout, row_major, with_logical_shape

from ..cases import examples
from .models import POISON, SCALARS, any_bits, as_bytes, fitting, numbers, padding, ragged_plan, require
from .strategies import Side, pairs, strided

GUARD = 80
fewer = settings(max_examples=max(1, settings().max_examples // 2))
seeds = st.integers(0, 2**32 - 1)
fills = st.one_of(st.integers(-300, 300), st.floats(width=32))
formats = st.tuples(st.sampled_from(SCALARS), st.sampled_from(SCALARS))


class Memory:
    """Elements inside a larger block of bytes, at any address; the bytes around them are guards."""

    def __init__(self, count, dtype, shift):
        self.dtype, self.start = np.dtype(dtype), GUARD + shift
        self.bytes = np.full(self.start + count * self.dtype.itemsize + GUARD, POISON, dtype=np.uint8)
        self.elements = np.ndarray((count,), self.dtype, self.bytes, offset=self.start)
        self.owned = np.zeros(self.bytes.size, dtype=bool)

    def expect(self, place, element):
        """Write one element of the model, which must be the first at its place."""
        at = self.start + place * self.dtype.itemsize
        element_bytes = slice(at, at + self.dtype.itemsize)
        assert not self.owned[element_bytes].any()
        self.owned[element_bytes] = True
        self.bytes[element_bytes] = np.frombuffer(element.tobytes(), dtype=np.uint8)


def filled_memory(side, element, seed, shift):
    memory = Memory(int(side.layout.cosize), format_of(element).dtype, shift)
    memory.elements[...] = any_bits(np.random.default_rng(seed), memory.elements.shape, element)
    return memory


def copied_one_by_one(source, target, before, elements, fill, shift):
    """Return what the memory of the target should be: the model of all plans between scalars."""
    after = Memory(int(target.layout.cosize), format_of(elements[1]).dtype, shift)
    data = [min(a, b) for a, b in zip(source.data, target.data, strict=True)]
    value = padding(fill, *elements)
    for coordinate in product(*map(range, target.extents)):
        element = value
        if all(i < n for i, n in zip(coordinate, data, strict=True)):
            element = cast(before.elements[source.place(coordinate)], elements[1])
        after.expect(target.place(coordinate), element)
    return after


@given(pair=pairs(), elements=formats, fill=fills, seed=seeds, shifts=st.tuples(*[st.integers(0, 8)] * 2))
def test_a_plan_copies_converts_and_fills_each_element_and_nothing_else(engine, pair, elements, fill, seed, shifts):
    source, target = pair.source, pair.target
    before, fill = filled_memory(source, elements[0], seed, shifts[0]), fitting(fill, elements[0])
    untouched = before.bytes.copy()
    wanted = copied_one_by_one(source, target, before, elements, fill, shifts[1])
    after = Memory(int(target.layout.cosize), format_of(elements[1]).dtype, shifts[1])
    plan = ragged_plan(Placement(source.layout, elements[0]), Placement(target.layout, elements[1], fill))
    execute(plan, before.elements, after.elements, **engine)
    np.testing.assert_array_equal(after.bytes, wanted.bytes)
    np.testing.assert_array_equal(before.bytes, untouched)


@given(pair=pairs(largest=70, most=40_000), elements=formats, seed=seeds)
@fewer
def test_larger_plans_agree_with_the_places_of_their_layouts(engine, pair, elements, seed):
    source, target = pair.source, pair.target
    before = filled_memory(source, elements[0], seed, 0)
    after = Memory(int(target.layout.cosize), format_of(elements[1]).dtype, 0)
    plan = ragged_plan(
        Placement(source.layout, elements[0]), Placement(target.layout, elements[1], fitting(3, elements[0]))
    )
    wanted = after.elements.copy()
    wanted[target.layout.offsets().reshape(-1)] = padding(fitting(3, elements[0]), *elements)
    box = tuple(slice(min(a, b)) for a, b in zip(source.data, target.data, strict=True))
    at, to = source.layout.offsets()[box], target.layout.offsets()[box]
    wanted[to.reshape(-1)] = cast(before.elements[at.reshape(-1)], elements[1])
    execute(plan, before.elements, after.elements, **engine)
    np.testing.assert_array_equal(as_bytes(after.elements), as_bytes(wanted))
    assert (after.bytes[: after.start] == POISON).all()
    assert (after.bytes[after.start + wanted.nbytes :] == POISON).all()


# Blocks.


@st.composite
def block_sides(draw, block):
    """Return a side whose blocks run along its last mode or its first, and the elements of its tiles."""
    width, rows, tile_rows = block * draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = (rows * tile_rows, width)
    data = tuple(draw(st.sampled_from([n, max(1, n - draw(st.integers(1, 9)))])) for n in shape)
    layout = with_logical_shape(row_major(*shape), data)
    if draw(st.booleans()):
        layout, shape, data = with_logical_shape(Layout(shape[::-1], (1, width)), data[::-1]), shape[::-1], data[::-1]
    return Side(layout, shape, data), width * tile_rows


@st.composite
def scalar_sides(draw, near):
    """Return a strided side over nearly the same coordinates."""
    data = tuple(max(1, n + draw(st.integers(-3, 3))) for n in near.data)
    kind = draw(st.sampled_from(["compact", "gaps", "reversed"]))
    return Side(draw(strided(data, kind, nested=False)), data, data)


def physical(side, values):
    """Return values given by coordinate in the order of their places."""
    flat = np.empty(side.layout.cosize, dtype=values.dtype)
    flat[side.layout.offsets().reshape(-1)] = values.reshape(-1)
    return flat


@pytest.mark.parametrize("name", BLOCK_FORMATS)
@given(data=st.data(), source_format=st.sampled_from(SCALARS), fill=fills, seed=seeds)
@examples(12)
def test_a_plan_packs_blocks_from_any_strides(engine, name, data, source_format, fill, seed):
    require(engine, name)
    element = BLOCK_FORMATS[name]
    target, tile = data.draw(block_sides(element.block))
    source = data.draw(scalar_sides(target))
    memory, fill = filled_memory(source, source_format, seed, 0), fitting(fill, source_format)
    values = np.full(target.extents, padding(fill, source_format, "float32"), dtype=np.float32)
    box = tuple(slice(min(a, b)) for a, b in zip(source.data, target.data, strict=True))
    values[box] = cast(memory.elements[source.layout.offsets()[box]], "float32")
    wanted = element.pack(physical(target, values), tile_elements=tile)
    place = Placement(target.layout, element, fill, tile_elements=tile)
    after = Memory(place.nbytes, np.uint8, 1)
    after.elements[...] = 0
    execute(ragged_plan(Placement(source.layout, source_format), place), memory.elements, after.elements, **engine)
    np.testing.assert_array_equal(after.elements, wanted)
    assert (after.bytes[: after.start] == POISON).all()
    assert (after.bytes[after.start + wanted.size :] == POISON).all()


@pytest.mark.parametrize("name", BLOCK_FORMATS)
@given(data=st.data(), target_format=st.sampled_from(SCALARS), fill=st.integers(-100, 100), seed=seeds)
@examples(12)
def test_a_plan_unpacks_blocks_to_any_strides(engine, name, data, target_format, fill, seed):
    require(engine, name)
    element = BLOCK_FORMATS[name]
    source, tile = data.draw(block_sides(element.block))
    target = data.draw(scalar_sides(source))
    packed = element.pack(numbers(np.random.default_rng(seed), (prod(source.extents),)), tile_elements=tile)
    flat = element.unpack(packed, tile_elements=tile)
    after = Memory(int(target.layout.cosize), format_of(target_format).dtype, 1)
    wanted = after.elements.copy()
    wanted[target.layout.offsets().reshape(-1)] = cast(np.asarray(fill), target_format)
    box = tuple(slice(min(a, b)) for a, b in zip(source.data, target.data, strict=True))
    wanted[target.layout.offsets()[box]] = cast(flat[source.layout.offsets()[box]], target_format)
    plan = ragged_plan(
        Placement(source.layout, element, tile_elements=tile), Placement(target.layout, target_format, fill)
    )
    execute(plan, packed, after.elements, **engine)
    np.testing.assert_array_equal(as_bytes(after.elements), as_bytes(wanted))
    assert (after.bytes[: after.start] == POISON).all()
    assert (after.bytes[after.start + wanted.nbytes :] == POISON).all()
