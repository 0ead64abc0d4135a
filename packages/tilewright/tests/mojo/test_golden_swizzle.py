# SPDX-License-Identifier: Apache-2.0
"""Swizzles and their makers, as Mojo recorded them."""

import pytest

from tilewright import LayoutError
from tilewright.formats import format_of
from tilewright.mojo.layout import ComposedLayout, Swizzle, row_major
from tilewright.mojo.layout.swizzle import make_ldmatrix_swizzle, make_swizzle

from .golden import replay


def only(op):
    return lambda case: case["op"] == op


def numbers(record):
    return Swizzle(record["bits"], record["base"], record["shift"])


@replay("swizzle", select=only("Swizzle"))
def test_swizzle(case):
    swizzle = numbers(case)
    (result,) = case["results"]
    assert format(swizzle, "mojo") == result["str"]
    assert (swizzle.size, swizzle.cosize) == (result["size"], result["cosize"])
    assert (swizzle.source_mask, swizzle.target_mask) == (result["yyy_mask"], result["zzz_mask"])
    assert [swizzle(x) for x in range(len(result["map"]))] == result["map"]


@replay("swizzle", select=only("Swizzle"))
def test_a_composed_layout_applies_the_swizzle_last(case):
    swizzle, layout = numbers(case), row_major[10, 16]()
    swizzled = case["results"][0]["map"]
    both = ComposedLayout(layout, swizzle)
    assert [both(i) for i in range(160)] == [swizzled[layout(i)] for i in range(160)]


@replay("swizzle", select=only("make_swizzle"))
def test_make_swizzle(case):
    parameters = case["num_rows"], case["row_size"], case["access_size"]
    (result,) = case["results"]
    if result["shift"] < result["bits"]:
        with pytest.raises(LayoutError, match="bits overlap"):
            make_swizzle[parameters]()
    else:
        assert make_swizzle[parameters]() == numbers(result)


@replay("swizzle", select=only("make_ldmatrix_swizzle"))
def test_make_ldmatrix_swizzle(case):
    (result,) = case["results"]
    parameters = case["elem"], case["row_size"], case["log2_vector_width"]
    assert make_ldmatrix_swizzle[parameters]() == numbers(result)
    register = result["simd_width"] * format_of(case["elem"]).itemsize
    assert make_ldmatrix_swizzle[parameters](simd_bytes=register) == numbers(result)
