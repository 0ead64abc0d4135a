# SPDX-License-Identifier: Apache-2.0
"""Numbers that are values of a format, and those that are refused: nothing is changed silently but by rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import FormatError
from tilewright.formats import SCALAR_FORMATS, cast, fit_values, format_of

from ..cases import all_cases

FLOATS = [name for name, each in SCALAR_FORMATS.items() if each.kind == "float"]
INTEGERS = [name for name, each in SCALAR_FORMATS.items() if each.kind in ("int", "uint")]
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.fractions())

FITTING = [
    (2.0, "int32", 2),
    (True, "float32", 1.0),
    (0.1, "bfloat16", 0.10009765625),
    (65519.0, "float16", 65504.0),
    (464.0, "float8_e4m3", 448.0),
    (float("inf"), "float16", float("inf")),
    (float("inf"), "float8_e5m2", float("inf")),
    (2**64, "float32", 2.0**64),
    (1.0, "bool", True),
    (Fraction(3, 2), "float16", 1.5),
    (np.longdouble(7), "int8", 7),
]
REFUSED = [
    (1.5, "int32", "1.5 is not a value of int32, which holds whole numbers from -2147483648 to 2147483647"),
    (300, "uint8", "300 is not a value of uint8, which holds whole numbers from 0 to 255"),
    (-1, "uint8", "-1 is not a value of uint8"),
    (float("nan"), "int32", "nan is not a value of int32"),
    (float("inf"), "int8", "inf is not a value of int8"),
    (2.0**63, "int64", "9.223372036854776e+18 is not a value of int64"),
    (2**64, "uint64", "18446744073709551616 is not a value of uint64"),
    (65520.0, "float16", "65520.0 is not a value of float16, which holds numbers from -65504.0 to 65504.0"),
    (1e39, "float32", "1e+39 is not a value of float32"),
    (465.0, "float8_e4m3", "465.0 is not a value of float8_e4m3"),
    (float("inf"), "float8_e4m3", "inf is not a value of float8_e4m3"),
    (10**400, "float64", "is not a value of float64"),
    (2, "bool", "2 is not a value of bool, which holds 0 and 1"),
    (1 + 2j, "float32", "(1+2j) is not a value of float32: it is complex"),
    (Fraction(3, 2), "int8", "3/2 is not a value of int8"),
    ([[1, 2], [3, 4.5]], "int8", "4.5 at (1, 1) is not a value of int8"),
    (np.array([1, 2**63], np.uint64), "int64", "9223372036854775808 at 1 is not a value of int64"),
]


@all_cases(("case", FITTING))
def test_fitting(case):
    value, name, expected = case
    fitted = fit_values(value, name)
    assert (fitted.dtype, fitted.item()) == (format_of(name).dtype, expected)


@all_cases(("case", REFUSED))
def test_refused(case):
    value, name, message = case
    with pytest.raises(FormatError) as caught:
        fit_values(value, name)
    assert message in str(caught.value)
    assert f"cast(values, {name!r})" in str(caught.value) or "complex" in message


@pytest.mark.parametrize("value", ["1", None, [object()], np.datetime64(0, "s")])
def test_what_is_not_a_number(value):
    with pytest.raises(TypeError, match="expected"):
        fit_values(value, "int8")


@given(number=numbers, name=st.sampled_from(INTEGERS))
def test_integers_take_exactly_the_whole_numbers_in_their_range(number, name):
    limits = format_of(name).limits
    is_value = limits.lowest <= number <= limits.highest and number == int(number)
    for values in (number, [number]):
        if is_value:
            assert np.ravel(fit_values(values, name)).tolist() == [int(number)]
        else:
            with pytest.raises(FormatError):
                fit_values(values, name)


@given(number=st.floats(width=64), name=st.sampled_from(FLOATS))
def test_floats_round_and_stay_finite(number, name):
    try:
        one, several = fit_values(number, name), fit_values([number], name)
    except FormatError:
        assert abs(number) > format_of(name).max_value
        return
    assert np.array_equal(one.astype(float), several[0].astype(float), equal_nan=True)
    assert np.isfinite(one.astype(float)) == np.isfinite(number)


def test_arrays_of_the_format_are_not_copied():
    array = np.arange(4, dtype=np.int8)
    assert fit_values(array, "int8") is array
    assert np.array_equal(fit_values(array.astype(">i4"), "int8"), cast(array, "int8"))
