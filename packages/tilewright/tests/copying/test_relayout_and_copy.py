# SPDX-License-Identifier: Apache-2.0
"""relayout and copy: there and back is where one was, and every permutation is what NumPy says."""

from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tilewright.copying import copy, relayout
from tilewright.errors import LayoutError, TransferError
from tilewright.formats import cast, format_of
from tilewright.layout import Layout, Swizzle, col_major, compose, row_major, with_logical_shape
from tilewright.layout.modes import compact_layout

from ..cases import all_cases
from .models import POISON, SCALARS, any_bits, as_bytes, assert_same_bits, opencl_step, poisoned
from .strategies import TARGETS, layouts, strided

fewer = settings(max_examples=max(1, settings().max_examples // 2))
seeds = st.integers(0, 2**32 - 1)
elements = st.sampled_from(SCALARS)
pairs_of_elements = st.tuples(elements, elements)
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


# relayout.


@given(data=st.data(), shape=shapes, element=elements, seed=seeds)
def test_there_and_back_is_the_identity_where_places_are_apart(engine, data, shape, element, seed):
    source, target = [data.draw(layouts(shape, data.draw(st.sampled_from(TARGETS)))) for _ in range(2)]
    array = any_bits(np.random.default_rng(seed), (source.cosize,), element)
    there = relayout(array, source, target, out=poisoned(target.cosize, array.dtype), **engine)
    back = relayout(there, target, source, out=poisoned(source.cosize, array.dtype), **engine)
    at = source.offsets().reshape(-1)
    assert_same_bits(back[at], array[at])
    between = np.setdiff1d(np.arange(array.size), at)
    assert_same_bits(back[between], poisoned(between.size, array.dtype))


@given(data=st.data(), shape=shapes, element=elements, seed=seeds)
@fewer
def test_two_moves_are_one_move(engine, data, shape, element, seed):
    first, second, third = [data.draw(layouts(shape, data.draw(st.sampled_from(TARGETS)))) for _ in range(3)]
    array = any_bits(np.random.default_rng(seed), (first.cosize,), element)
    buffer = poisoned(third.cosize, array.dtype)
    direct = relayout(array, first, third, out=buffer.copy(), **engine)
    stop = relayout(array, first, second, **engine)
    assert_same_bits(relayout(stop, second, third, out=buffer, **engine), direct)


@given(shape=shapes, elements=pairs_of_elements, seed=seeds)
@fewer
def test_relayout_converts_like_cast(engine, shape, elements, seed):
    array = any_bits(np.random.default_rng(seed), shape, elements[0])
    got = relayout(array, row_major(*shape), col_major(*shape), dtype=elements[1], **engine)
    assert_same_bits(got, cast(array, elements[1]).reshape(-1, order="F"))


@given(shape=shapes, more=st.lists(st.integers(0, 4), min_size=4, max_size=4), element=elements, seed=seeds)
@fewer
def test_relayout_pads_and_crops(engine, shape, more, element, seed):
    array = any_bits(np.random.default_rng(seed), shape, element)
    whole = tuple(n + extra for n, extra in zip(shape, more, strict=False))
    padded = relayout(array, row_major(*shape), row_major(*whole), pad_value=1, **engine)
    wanted = np.full(whole, cast(np.asarray(1), element), dtype=array.dtype)
    wanted[tuple(map(slice, shape))] = array
    assert_same_bits(padded.reshape(whole), wanted)
    cropped = relayout(padded, row_major(*whole), row_major(*shape), crop=True, **engine)
    assert_same_bits(cropped.reshape(shape), array)


@all_cases(("banks", [2, 7, 8, 12]), step=opencl_step)
def test_pages_go_round_the_banks(engine, banks):
    page, count = 16, 100
    rounds = -(-count // banks)
    banked = Layout((page, banks, rounds), (1, rounds * page, page))
    array = any_bits(np.random.default_rng(1), (count, page), "uint16")
    target = compose(banked, with_logical_shape(row_major(count, page), (count, page)))
    out = relayout(array, row_major(count, page), target, **engine)
    for number in range(count):
        at = (number % banks * rounds + number // banks) * page
        assert out[at : at + page].tolist() == array[number].tolist()


@all_cases(("base", [0, 2, 4]), step=opencl_step)
def test_a_swizzle_exchanges_what_its_bits_say(engine, base):
    swizzle = Swizzle(3, base, 3)
    array = any_bits(np.random.default_rng(2), (64, 32), "float32")
    out = relayout(array, row_major(64, 32), compose(swizzle, row_major(64, 32)), **engine)
    assert_same_bits(out[[swizzle(k) for k in range(2048)]], array.reshape(-1))


def test_relayout_reads_flat_memory_only(engine):
    with pytest.raises(LayoutError, match="ascontiguousarray"):
        relayout(np.zeros((4, 4))[:, ::2], row_major(4, 2), col_major(4, 2), **engine)


def test_relayout_needs_as_many_elements_as_its_source_reaches(engine):
    with pytest.raises(TransferError, match="source"):
        relayout(np.zeros(7, dtype=np.int8), row_major(4, 2), col_major(4, 2), **engine)


def test_relayout_refuses_an_out_of_another_size_or_type(engine):
    for out in (np.zeros(9, dtype=np.int8), np.zeros(8, dtype=np.uint8)):
        with pytest.raises(LayoutError, match="8 x int8"):
            relayout(np.zeros(8, dtype=np.int8), row_major(4, 2), col_major(4, 2), out=out, **engine)


# Transposes and permutations.


@all_cases(
    ("shape", [(1, 1), (1, 50), (50, 1), (8, 8), (64, 64), (100, 37), (129, 255), (3, 4000)]),
    ("element", ["uint8", "bfloat16", "float32", "float64"]),
    step=opencl_step,
)
def test_a_transpose_is_that_of_numpy(engine, shape, element):
    array = any_bits(np.random.default_rng(3), shape, element)
    out = poisoned(array.size, array.dtype).reshape(shape[::-1])
    copy(array.T, out, **engine)
    assert_same_bits(out, np.ascontiguousarray(np.transpose(array)))
    flat = relayout(array, row_major(*shape), col_major(*shape), **engine)
    assert_same_bits(flat, out.reshape(-1))


@all_cases(
    ("shape, element", [((3, 17, 10, 33), "float32"), ((2, 16, 5, 64), "bfloat16")]),
    ("order", list(permutations(range(4)))),
    step=opencl_step,
)
def test_a_permutation_of_four_dimensions_is_that_of_numpy(engine, order, shape, element):
    array = any_bits(np.random.default_rng(4), shape, element)
    wanted = np.ascontiguousarray(np.transpose(array, order))
    out = poisoned(array.size, array.dtype).reshape(wanted.shape)
    copy(np.transpose(array, order), out, **engine)
    assert_same_bits(out, wanted)
    # the same as a relayout: axes vary in memory as `order` says, the last fastest
    target = compact_layout(shape, [3 - order.index(axis) for axis in range(4)])
    assert_same_bits(relayout(array, row_major(*shape), target, **engine), wanted.reshape(-1))


@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=5).map(tuple), data=st.data(), element=elements, seed=seeds
)
@fewer
def test_random_permutations_are_those_of_numpy(engine, shape, data, element, seed):
    order = data.draw(st.permutations(range(len(shape))))
    array = any_bits(np.random.default_rng(seed), shape, element)
    wanted = np.ascontiguousarray(np.transpose(array, order))
    out = poisoned(array.size, array.dtype).reshape(wanted.shape)
    assert_same_bits(copy(np.transpose(array, order), out, **engine), wanted)


# copy.


@given(shape=shapes, elements=pairs_of_elements, seed=seeds)
def test_copy_converts_like_cast(engine, shape, elements, seed):
    array = any_bits(np.random.default_rng(seed), shape, elements[0])
    target = poisoned(array.size, format_of(elements[1]).dtype).reshape(shape)
    assert copy(array, target, **engine) is target
    assert_same_bits(target, cast(array, elements[1]))


@all_cases(("source", SCALARS), ("target", SCALARS), step=opencl_step)
def test_every_pair_of_formats_converts_runs_of_any_length_like_cast(engine, source, target):
    array = any_bits(np.random.default_rng(5), (1000,), source)
    wanted = cast(array, target)
    for count in (1, 7, 64, 999):
        out = poisoned(1000, wanted.dtype)
        copy(array[:count], out[:count], **engine)
        assert_same_bits(out[:count], wanted[:count])
        assert_same_bits(out[count:], poisoned(1000 - count, wanted.dtype))


@all_cases(
    ("target", ["float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8", "uint16", "int32"]), step=opencl_step
)
def test_numbers_near_every_edge_convert_like_cast(engine, target):
    edges = np.float32([0, 0.5, 1, 1.5, 2.5, 127.5, 240, 448, 464, 65504, 65520, 2**31, 2**32, 1e38, np.inf, np.nan])
    edges = np.concatenate([edges, np.exp2(np.arange(-149, 128, dtype=np.float32))])
    near = np.concatenate([np.nextafter(edges, np.float32(side)) for side in (-np.inf, np.inf)] + [edges])
    array = np.concatenate([near, -near])
    out = poisoned(array.size, format_of(target).dtype)
    assert_same_bits(copy(array, out, **engine), cast(array, target))


@all_cases(
    ("source", [name for name in SCALARS if format_of(name).kind == "float"]),
    ("target", [name for name in SCALARS if format_of(name).kind in ("float", "bool")]),
    step=opencl_step,
)
def test_every_nan_and_every_tiny_number_converts_like_cast(engine, source, target):
    array = any_bits(np.random.default_rng(10), (40_000,), source)
    wanted = cast(array, target)
    assert_same_bits(copy(array, poisoned(array.size, wanted.dtype), **engine), wanted)


@given(data=st.data(), shape=shapes, elements=pairs_of_elements, seed=seeds)
@fewer
def test_views_are_copied_to_views_and_nothing_around_them(engine, data, shape, elements, seed):
    steps = [[data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in shape] for _ in range(2)]
    whole = tuple(3 * n + 1 for n in shape)
    array = any_bits(np.random.default_rng(seed), whole, elements[0])
    memory = poisoned(prod(whole), format_of(elements[1]).dtype).reshape(whole)
    windows = [tuple(slice(None, None, s) for s in each) for each in steps]
    firsts = tuple(slice(n) for n in shape)
    before, after = array[windows[0]][firsts], memory[windows[1]][firsts]
    assert before.shape == after.shape == shape
    copy(before, after, **engine)
    wanted = poisoned(prod(whole), memory.dtype).reshape(whole)
    wanted[windows[1]][firsts] = cast(before, elements[1])
    assert_same_bits(memory, wanted)


@given(data=st.data(), shape=shapes, element=elements, seed=seeds)
@fewer
def test_a_broadcast_source_is_read_again_and_again(engine, data, shape, element, seed):
    held = tuple(data.draw(st.sampled_from([1, n])) for n in shape)
    small = any_bits(np.random.default_rng(seed), held, element)
    out = poisoned(prod(shape), small.dtype).reshape(shape)
    assert_same_bits(
        copy(np.broadcast_to(small, shape), out, **engine), np.ascontiguousarray(np.broadcast_to(small, shape))
    )


def test_sliding_windows_may_overlap_in_the_source(engine):
    array = any_bits(np.random.default_rng(6), (500,), "float32")
    windows = np.lib.stride_tricks.sliding_window_view(array, 33)
    out = poisoned(windows.size, "float32").reshape(windows.shape)
    assert_same_bits(copy(windows, out, **engine), windows.copy())


@all_cases(("shape", [(), (0,), (3, 0), (0, 3), (1,), (1, 1, 1)]), step=opencl_step)
def test_small_and_empty_arrays_are_copied_too(engine, shape):
    array = any_bits(np.random.default_rng(7), shape, "int16")
    out = poisoned(prod(shape), "int16").reshape(shape)
    assert_same_bits(copy(array, out, **engine), array)


def test_copy_needs_equal_shapes(engine):
    target = np.zeros((3, 2))
    with pytest.raises(LayoutError, match=r"\(2, 3\).*\(3, 2\)"):
        copy(np.ones((2, 3)), target, **engine)
    assert not target.any()


def test_a_field_of_records_does_not_step_by_whole_elements(engine):
    records = np.zeros(4, dtype=[("a", "u1"), ("b", "f4")])
    with pytest.raises(LayoutError, match="ascontiguousarray"):
        copy(records["b"], np.zeros(4, dtype=np.float32), **engine)


@given(shape=shapes, data=st.data())
@fewer
def test_what_belongs_to_no_element_keeps_its_bytes(engine, shape, data):
    target = data.draw(strided(shape, "gaps"))
    assume(target.cosize > target.size)
    out = np.full(target.cosize, POISON, dtype=np.uint8)
    relayout(np.ones(prod(shape), dtype=np.uint8), row_major(*shape), target, out=out, **engine)
    assert (as_bytes(out) == 1).sum() == target.size == prod(shape)
    assert (as_bytes(out) == POISON).sum() == target.cosize - target.size
