# SPDX-License-Identifier: Apache-2.0
"""Block floats against the vectors recorded from ttnn, bit for bit."""

from collections import Counter

import numpy as np

from tilewright import formats

from ..cases import all_cases
from .golden import padded_shape, recorded, tilized, untilized

CASES, ARRAYS = recorded("bfp")

# ttnn takes these sources through bfloat16; that is its dialect's affair, not the format's.
THROUGH_BFLOAT16 = {"float64", "float16"}


def block_format(case):
    return formats.format_of(f"bfloat{case['bits']}_{case['exp']}")


def physical(case):
    """Return the input of a case in physical order."""
    values, source = ARRAYS[case["input"]], case.get("src_torch_dtype", "float32")
    if "shape" not in case:
        return values
    values = values.astype(formats.format_of(source).dtype)
    if source in THROUGH_BFLOAT16 or case["id"].startswith("sharded_via_bf16"):
        values = formats.cast(values, "bfloat16")
    if case.get("col_tilize"):
        values = values.T
    return tilized(values, case["tile"], case.get("transpose_tile", False))


def tile_elements(case):
    return case["tile"][0] * case["tile"][1]


@all_cases(("case", CASES), name=lambda case: case["id"])
def test_packed(case):
    packed = block_format(case).pack(physical(case), tile_elements(case))
    np.testing.assert_array_equal(packed, ARRAYS[f"{case['id']}_packed"])


@all_cases(("case", CASES), name=lambda case: case["id"])
def test_unpacked(case):
    values = block_format(case).unpack(ARRAYS[f"{case['id']}_packed"], tile_elements(case))
    if "shape" in case:
        values = untilized(values, case["shape"], case["tile"], case.get("transpose_tile", False))
    expected = ARRAYS[f"{case['id']}_unpacked"]
    assert values.shape == expected.shape
    np.testing.assert_array_equal(np.ascontiguousarray(values).view(np.uint32), expected.view(np.uint32))


@all_cases(("case", [case for case in CASES if "shape" in case]), name=lambda case: case["id"])
def test_size(case):
    elements = int(np.prod(padded_shape(case["shape"], case["tile"])))
    tiles = elements // tile_elements(case)
    size = block_format(case).bytes_per_tile(tile_elements(case))
    assert tiles * size == ARRAYS[f"{case['id']}_packed"].size


def test_every_recorded_case_is_replayed():
    assert len(CASES) == 121
    assert len({case["id"] for case in CASES}) == len(CASES)
    used = {f"{case['id']}_{part}" for case in CASES for part in ("packed", "unpacked")}
    assert used | {case["input"] for case in CASES} == set(ARRAYS)
    kinds = Counter((case["bits"], case["exp"]) for case in CASES)
    assert kinds.keys() == {(bits, exp) for bits in (8, 4, 2) for exp in "ab"}
