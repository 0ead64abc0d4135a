# SPDX-License-Identifier: Apache-2.0
"""Steps between numbers, counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.conversion.comparison import coarser_format, ulp_distance
from tilewright.formats import format_of


@given(st.floats(-(2.0**100), 2.0**100, width=32), st.integers(0, 50), st.sampled_from([np.float32, np.float64]))
def test_steps_are_those_of_nextafter(value, count, kind):
    after = kind(value)
    for _ in range(count):
        after = np.nextafter(after, kind(np.inf))
    assert ulp_distance(np.array([value], kind), np.array([after]), format_of(kind))[0] == count


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("float32", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "bfloat16"),
        ("float8_e4m3", "float64", "float8_e4m3"),
        ("int32", "float16", "float16"),
        ("uint8", "int32", "int32"),
        ("bfloat8_b", "bfloat16", "bfloat8_b"),
        ("bfloat8_b", "bfloat4_b", "bfloat4_b"),
        ("float32", "mxfp4", "mxfp4"),
    ],
)
def test_the_coarser_format_counts(a, b, expected):
    assert coarser_format(format_of(a), format_of(b)).name == expected


def test_values_that_are_no_numbers():
    values = np.array([np.nan, np.nan, np.inf, np.inf, 0.0])
    others = np.array([np.nan, 1.0, np.inf, -np.inf, -0.0])
    found = ulp_distance(values, others, format_of("float64"))
    assert found[[0, 2, 4]].tolist() == [0, 0, 0]
    assert found[1] == np.inf
    assert found[3] > 1e18
    assert ulp_distance(values, others, format_of("bfloat8_b"), np.full(5, 0.5)).tolist() == [0, np.inf, 0, np.inf, 0]


def test_rounding_to_the_coarser_format_hides_less_than_half_a_step():
    assert ulp_distance(np.float32([1.001]), np.float32([1.0]), format_of("bfloat16"))[0] == 0


def test_integers_count_themselves():
    assert ulp_distance(np.array([3, -4]), np.array([5, 4]), format_of("int32")).tolist() == [2, 8]
