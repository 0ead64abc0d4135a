# SPDX-License-Identifier: Apache-2.0
"""Transactions on random boxes, layouts and types, against a model that walks the elements one by one."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright import ttl

from .golden import TYPES

SENTINEL = 0x5A


@st.composite
def layouts(draw, shape):
    """Return (row_spacing, plane_spacing) that hold a shape, with gaps."""
    row = shape[0] + draw(st.integers(0, 3))
    return row, row * shape[1] + draw(st.integers(0, 5))


@st.composite
def pairs(draw):
    """Return the shape of a whole, of a tile, its offset, both layouts and a type."""
    whole = tuple(draw(st.integers(1, 5)) for _ in range(3))
    tile = tuple(draw(st.integers(1, 5)) for _ in range(3))
    offset = tuple(draw(st.integers(-n - 2, m + 2)) for n, m in zip(tile, whole, strict=True))
    return whole, tile, offset, draw(layouts(whole)), draw(layouts(tile)), draw(st.sampled_from(sorted(TYPES)))


def place(at, layout):
    return at[0] + at[1] * layout[0] + at[2] * layout[1]


def buffer_for(shape, layout, dtype):
    return np.full(place([n - 1 for n in shape], layout) + layout[0], SENTINEL, dtype)


def numbered(shape, layout, dtype):
    memory = buffer_for(shape, layout, dtype)
    for k, at in enumerate(product(*map(range, shape))):
        memory[place(at, layout)] = k % 100 + 1
    return memory


@given(pairs())
def test_a_sub_tensor_is_imported_with_zeros_around_it(pair):
    whole, tile, offset, ext_layout, int_layout, kind = pair
    outside, inside = numbered(whole, ext_layout, TYPES[kind]), buffer_for(tile, int_layout, TYPES[kind])
    wanted = inside.copy()
    for z, y in product(range(tile[2]), range(tile[1])):
        row = place((0, y, z), int_layout)
        wanted[row : row + int_layout[0]] = 0  # the padding of the row as well
        for x in range(tile[0]):
            at = [a + b for a, b in zip((x, y, z), offset, strict=True)]
            if all(0 <= c < n for c, n in zip(at, whole, strict=True)):
                wanted[row + x] = outside[place(at, ext_layout)]
    origin = ttl.create_const_ext_tensor(outside, ttl.create_shape(*whole), ttl.layout_t(*ext_layout))
    shape, at = ttl.create_shape(*tile), ttl.create_offset(*offset)
    part = ttl.create_int_sub_tensor(inside, shape, ttl.create_layout(*int_layout), origin, at)
    moved = ttl.create_const_ext_tensor(outside, shape, origin.layout, at, outside.itemsize)
    before = outside.copy()
    event = ttl.get_event()
    ttl.import_sub_tensor(part, moved, event)
    ttl.wait(1, event)
    assert inside.tolist() == wanted.tolist()
    assert outside.tolist() == before.tolist()


@given(pairs(), st.booleans())
def test_plain_transfers_touch_their_box_and_nothing_else(pair, exporting):
    whole, tile, offset, ext_layout, int_layout, kind = pair
    tile = tuple(min(a, b) for a, b in zip(whole, tile, strict=True))
    offset = tuple(min(max(c, 0), n - m) for c, n, m in zip(offset, whole, tile, strict=True))
    outside, inside = numbered(whole, ext_layout, TYPES[kind]), numbered(tile, int_layout, TYPES[kind])
    wanted_outside, wanted_inside = outside.copy(), inside.copy()
    for at in product(*map(range, tile)):
        far = place([a + b for a, b in zip(at, offset, strict=True)], ext_layout)
        if exporting:
            wanted_outside[far] = inside[place(at, int_layout)]
        else:
            wanted_inside[place(at, int_layout)] = outside[far]
    shape = ttl.create_shape(*tile)
    scratch_tensor = ttl.create_int_tensor(inside, shape, ttl.create_layout(*int_layout))
    at = (ttl.layout_t(*ext_layout), ttl.create_offset(*offset), outside.itemsize)
    if exporting:
        ttl.blocking_export(scratch_tensor, ttl.create_ext_tensor(outside, shape, *at))
    else:
        ttl.blocking_import(scratch_tensor, ttl.create_const_ext_tensor(outside, shape, *at))
    assert (inside == wanted_inside).all()
    assert (outside == wanted_outside).all()
