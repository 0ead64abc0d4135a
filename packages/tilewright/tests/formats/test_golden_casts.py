# SPDX-License-Identifier: Apache-2.0
"""Scalar casts against the vectors recorded from ttnn, bit for bit."""

import numpy as np

from tilewright.formats import cast, format_of

from ..cases import all_cases
from .golden import recorded

CASES, ARRAYS = recorded("cast")
NAMED = [case for case in CASES if "src" in case]
BITS = {"f32_to_bf16", "f32_to_fp8"}


@all_cases(("case", NAMED), name=lambda case: case["id"])
def test_cast(case):
    source = ARRAYS[f"{case['id']}_in"].astype(format_of(case["src"]).dtype)
    expected = ARRAYS[f"{case['id']}_out"]
    result = cast(source, case["dst"])
    assert result.dtype == format_of(case["dst"]).dtype
    if case["out_is_bf16_bits"]:
        result = result.view(np.uint16)
    assert result.dtype == expected.dtype
    assert result.tobytes() == expected.tobytes()


def test_float32_to_bfloat16():
    single = ARRAYS["f32_to_bf16_in_bits"].view(np.float32)
    np.testing.assert_array_equal(cast(single, "bfloat16").view(np.uint16), ARRAYS["f32_to_bf16_out_bits"])


def test_float32_to_float8_e4m3():
    result = cast(ARRAYS["f32_to_fp8_in"], "float8_e4m3")
    np.testing.assert_array_equal(result.view(np.uint8), ARRAYS["f32_to_fp8_out"])


def test_every_recorded_case_is_replayed():
    assert len(CASES) == 84
    assert {case["id"] for case in CASES} == {case["id"] for case in NAMED} | BITS
    assert len(ARRAYS) == 2 * len(CASES)
