# SPDX-License-Identifier: Apache-2.0
"""Sums taken piece by piece are those of the whole, whatever the pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.conversion import comparison as subject
from tilewright.conversion.comparison import Moments
from tilewright.copying import native


def moments_of(a, b, cuts=()):
    found = Moments()
    for one, other in zip(np.split(a, cuts), np.split(b, cuts), strict=True):
        found.add(one, other)
    return found


@given(seed=st.integers(0, 10**6), count=st.integers(2, 300), cuts=st.lists(st.integers(0, 300), max_size=4))
def test_pieces_add_up(seed, count, cuts):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(count) * 10.0 ** rng.integers(-3, 4, count) + rng.integers(-2, 3)
    b = a * rng.uniform(0.5, 2) + rng.standard_normal(count)
    whole = moments_of(a, b, sorted(min(cut, count) for cut in cuts)).total()
    assert whole.count == count
    np.testing.assert_allclose([whole.mean_a, whole.mean_b], [a.mean(), b.mean()], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose([whole.variance_a, whole.variance_b], [a.var(), b.var()], rtol=1e-9)
    np.testing.assert_allclose(whole.squared_error, ((a - b) ** 2).mean(), rtol=1e-9)
    np.testing.assert_allclose(whole.pcc, np.corrcoef(a, b)[0, 1], rtol=1e-7, atol=1e-9)
    parts = whole.error_parts()
    np.testing.assert_allclose(sum(parts.values()), whole.squared_error, rtol=1e-6)


def test_a_large_mean_does_not_drown_a_small_spread():
    noise = np.random.default_rng(0).standard_normal(100_000)
    a, b = 1e6 + 1e-3 * noise, 1e6 + 1e-3 * noise + 1e-5
    assert moments_of(a, b, range(7, 100_000, 9999)).total().pcc == pytest.approx(1.0, abs=1e-6)


def test_the_rest_without_the_largest_is_what_is_left():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(5000), rng.standard_normal(5000)
    a[:3], b[:3] = 1e6, 1e6
    found = moments_of(a, b)
    rest = found.total(below=found.highest_bin())
    assert rest.count == 4997
    assert rest.pcc == pytest.approx(np.corrcoef(a[3:], b[3:])[0, 1])
    assert found.total().count - found.total(below=found.largest_bins(0.001)).count <= 5


def test_nothing_has_no_correlation():
    assert Moments().total().pcc is None
    assert moments_of(np.ones(4), np.arange(4.0)).total().pcc is None
    assert Moments().largest_bins(0.5) >= 0


def test_numbers_at_the_end_of_the_range_do_no_harm():
    big = np.array([1e308, -1e308, 1e-320])
    total = moments_of(big, big).total()
    assert total.count == 3
    assert total.pcc is None or np.isfinite(total.pcc)


@pytest.mark.skipif(not native.is_available(), reason="there is only one way to sum")
@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 5e-324])] * 2),
        min_size=1,
        max_size=40,
    )
)
def test_native_sums_are_those_of_numpy(pairs):
    a, b = np.array(pairs).T.copy()
    low, sums = subject._sum_bins(a, b)
    expected_low, expected = subject._sum_bins_with_numpy(a, b)
    assert low == expected_low
    np.testing.assert_array_equal(sums, np.array(expected))
