# SPDX-License-Identifier: Apache-2.0
"""Distribution: together the threads own every element once, and what nobody owns is said."""

import re
import warnings
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Layout, LayoutError, Swizzle, TileTensor, col_major, compose, row_major

from .strategies import APART, chains, iota, roots, thread_at, thread_layouts

BEFORE = ("slice", "split", "transpose", "same", "reshape", "vectorize")


def counted(shares, size):
    """Return how often the shares hold each scalar of the storage."""
    times = np.zeros(size, dtype=int)
    for share in shares:
        inside = share.to_numpy(fill=-1)
        np.add.at(times, inside[inside >= 0].reshape(-1), 1)
    return times


def counted_in_model(model, size):
    times = np.zeros(size, dtype=int)
    np.add.at(times, model.places[model.valid], 1)
    return times


def shares_of(tensor, threads, **options):
    return [tensor.distribute[threads](k, **options) for k in range(prod(threads.shape))]


@given(st.data())
def test_shares_cover_every_element_once_where_it_divides(data):
    origin = data.draw(roots(kinds=APART))
    walk = data.draw(chains(origin, longest=2, views=BEFORE))[-1]
    if not walk.model.shape:
        return
    threads = data.draw(thread_layouts(walk.model.shape, divide=True))
    times = counted(shares_of(walk.tensor, threads), origin.storage.size)
    np.testing.assert_array_equal(times, counted_in_model(walk.model, origin.storage.size))


@given(st.data())
def test_covering_shares_hold_every_element_once_whatever_the_sizes(data):
    origin = data.draw(roots(kinds=APART))
    walk = data.draw(chains(origin, longest=2, views=BEFORE))[-1]
    if not walk.model.shape:
        return
    threads = data.draw(thread_layouts(walk.model.shape))
    times = counted(shares_of(walk.tensor, threads, ragged="cover"), origin.storage.size)
    np.testing.assert_array_equal(times, counted_in_model(walk.model, origin.storage.size))


@given(st.data())
def test_the_warning_names_exactly_what_is_dropped(data):
    origin = data.draw(roots(kinds=APART, ragged=False))
    tensor, model = origin.walk.tensor, origin.walk.model
    threads = data.draw(thread_layouts(model.shape))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        shares = shares_of(tensor, threads)
    named = {} if not said else parsed(str(said[0].message))
    assert named == {k: n % m for k, (n, m) in enumerate(zip(model.shape, threads.shape, strict=True)) if n % m}
    assert len(said) == (len(shares) if named else 0)
    kept = model.cut(*[range(n - named.get(k, 0)) for k, n in enumerate(model.shape)])
    np.testing.assert_array_equal(counted(shares, origin.storage.size), counted_in_model(kept, origin.storage.size))
    quiet = shares_of(tensor, threads, ragged="floor")
    np.testing.assert_array_equal(counted(quiet, origin.storage.size), counted(shares, origin.storage.size))


def parsed(message):
    """Return what a warning says is lost: how many of the last elements of each mode."""
    return {int(mode): int(count) for count, mode in re.findall(r"the last (\d+) of mode (\d+)", message)}


@given(st.data())
def test_error_refuses_exactly_what_does_not_divide(data):
    origin = data.draw(roots())
    tensor, shape = origin.walk.tensor, origin.walk.model.shape
    threads = data.draw(thread_layouts(shape))
    if all(n % m == 0 for n, m in zip(shape, threads.shape, strict=True)):
        tensor.distribute[threads](0, ragged="error")
        return
    with pytest.raises(LayoutError, match="belong to no thread") as refused:
        tensor.distribute[threads](0, ragged="error")
    lost = {k: n % m for k, (n, m) in enumerate(zip(shape, threads.shape, strict=True)) if n % m}
    assert parsed(str(refused.value)) == lost


@given(st.data())
def test_wrap_takes_thread_ids_modulo_their_number(data):
    origin = data.draw(roots())
    threads = data.draw(thread_layouts(origin.walk.model.shape))
    count = prod(threads.shape)
    thread = data.draw(st.integers(-3 * count, 3 * count))
    wrapped = origin.walk.tensor.distribute[threads](thread, wrap=True, ragged="cover")
    plain = origin.walk.tensor.distribute[threads](thread % count, ragged="cover")
    np.testing.assert_array_equal(wrapped.to_numpy(fill=-1), plain.to_numpy(fill=-1))
    if not 0 <= thread < count:
        with pytest.raises(IndexError, match=rf"thread {thread} is outside the {count} threads.*wrap=True"):
            origin.walk.tensor.distribute[threads](thread, ragged="cover")


@given(st.data())
def test_a_thread_starts_at_its_own_coordinates(data):
    origin = data.draw(roots(kinds=APART))
    model = origin.walk.model
    threads = data.draw(thread_layouts(model.shape, divide=True))
    for thread in range(prod(threads.shape)):
        share, at, offset = origin.walk.tensor.distribute_with_offset[threads](thread)
        assert at == thread_at(threads, thread)
        assert offset == model.places[at] - model.places[(0,) * model.rank]
        assert share.load(*[0] * model.rank, fill=-1) == (origin.storage[model.places[at]] if model.valid[at] else -1)


def test_the_rest_of_a_matrix_that_does_not_divide():
    tensor = TileTensor(iota(63), row_major(7, 9))
    with pytest.warns(RuntimeWarning, match="the last 1 of mode 0 and the last 1 of mode 1 belong to no thread"):
        share = tensor.distribute[row_major(2, 4)](7)
    assert share.shape == (3, 2)
    covering = tensor.distribute[row_major(2, 4)](7, ragged="cover")
    assert (covering.shape, covering.valid_shape) == ((4, 3), (3, 2))
    assert tensor.distribute[row_major(2, 4)](0, ragged="cover").valid_shape == (4, 3)


def test_the_warning_points_at_the_line_that_distributes():
    tensor = TileTensor(iota(7), row_major(7))
    for distribute in (tensor.distribute, tensor.distribute_with_offset):
        with pytest.warns(RuntimeWarning) as said:
            distribute[row_major(2)](0)
        assert [warning.filename for warning in said] == [__file__]


def test_threads_with_stride_zero_share_an_axis():
    tensor = TileTensor(iota(48), row_major(6, 8))
    shares = [tensor.distribute[Layout((2, 4), (0, 1))](k) for k in range(8)]
    assert [share.offset for share in shares] == [0, 1, 2, 3, 0, 1, 2, 3]


# With a swizzle: it moves the start of a share, nothing else.


@given(st.data())
def test_a_swizzle_moves_the_start_of_every_share(data):
    rows, columns = data.draw(st.sampled_from([2, 4, 8])), data.draw(st.sampled_from([8, 16]))
    width = data.draw(st.sampled_from([1, 2, 4]))
    swizzle = data.draw(st.sampled_from([Swizzle(1, 0, 2), Swizzle(2, 0, 2), Swizzle(2, 0, 3), Swizzle(1, 1, 2)]))
    storage = iota(2 * rows * columns * width + 64)
    tensor = TileTensor(storage, row_major(rows, columns * width)).vectorize[1, width]()
    threads = data.draw(st.sampled_from([row_major(rows, columns // 2), col_major(2, columns)]))
    for thread in range(prod(threads.shape)):
        plain, _, start = tensor.distribute_with_offset[threads](thread)
        moved, at, offset = tensor.distribute_with_offset[threads, swizzle](thread)
        first = start // width
        place = first ^ ((first >> swizzle.shift) & (((1 << swizzle.bits) - 1) << swizzle.base))
        assert (moved.offset, offset, at) == (place * width, place * width, thread_at(threads, thread))
        assert moved.layout == plain.layout
        np.testing.assert_array_equal(moved.to_numpy(), plain.to_numpy() - start + place * width)
        named = tensor.distribute[threads](thread, swizzle=swizzle)
        np.testing.assert_array_equal(named.to_numpy(), moved.to_numpy())


def test_one_element_a_thread_is_a_permutation_under_a_swizzle():
    tensor = TileTensor(iota(64), row_major(8, 8))
    shares = shares_of(tensor, row_major(8, 8), swizzle=Swizzle(3, 0, 3))
    np.testing.assert_array_equal(counted(shares, 64), np.ones(64, dtype=int))
    assert [share.offset for share in shares[8:16]] == [9, 8, 11, 10, 13, 12, 15, 14]


def test_a_swizzle_that_leaves_the_storage_is_refused():
    tensor = TileTensor(iota(9), row_major(3, 3))
    with pytest.raises(LayoutError, match=r"covers scalars 10 to 10, but the storage has 9"):
        tensor.distribute[row_major(3, 3), Swizzle(2, 0, 2)](8)


def test_composed_layouts_have_no_start_to_move():
    tensor = TileTensor(iota(64), compose(Swizzle(3, 0, 3), row_major(8, 8)))
    with pytest.raises(LayoutError, match="no single start"):
        tensor.distribute[row_major(8, 8), Swizzle(1, 0, 1)](0)


# What is refused.


@pytest.mark.parametrize(
    ("threads", "problem", "text"),
    [
        (Layout(((2, 2), 2)), LayoutError, r"must be flat, with 2 modes"),
        (row_major(4), LayoutError, r"must be flat, with 2 modes"),
        (row_major(2, 2, 2), LayoutError, r"must be flat, with 2 modes"),
        ((2, 2), TypeError, "the thread layout must be a Layout"),
    ],
)
def test_thread_layouts_must_fit(threads, problem, text):
    with pytest.raises(problem, match=text):
        TileTensor(iota(48), row_major(6, 8)).distribute[(threads,)](0)


def test_other_arguments_are_checked():
    tensor = TileTensor(iota(49), row_major(7, 7))
    with pytest.raises(TypeError, match="thread_id"):
        tensor.distribute(0)
    with pytest.raises(TypeError, match="the thread layout must be a Layout, got int 0"):
        tensor.distribute(0, 0)
    with pytest.raises(TypeError, match="the swizzle must be a Swizzle, got str 'x'"):
        tensor.distribute[row_major(7, 7), "x"](0)
    with pytest.raises(LayoutError, match="expected ragged='warn', 'floor', 'cover' or 'error', got 'often'"):
        tensor.distribute[row_major(2, 2)](0, ragged="often")
    with pytest.raises(LayoutError, match="expected ragged='warn', 'floor', 'cover' or 'error', got 'often'"):
        tensor.distribute[row_major(7, 7)](0, ragged="often")
