# SPDX-License-Identifier: Apache-2.0
"""What an access states is used, and what it does not state is named: element sizes and instructions."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.analysis import bank_conflicts, coalescing, find_swizzle


@pytest.mark.parametrize(
    "name", ["ldmatrix.x5", "ldmatrix.x8", "ld.x4", "ld.wide", "stmatrix.v4", "ld.v4", "ld.v8.f64", ""]
)
def test_an_unknown_instruction_is_refused(name):
    with pytest.raises(tw.LayoutError, match="instruction"):
        bank_conflicts(tw.Layout(32), itemsize=4, instruction=name)


def test_an_instruction_that_states_its_bytes_is_taken_at_its_word():
    rows = tw.Layout((32, 4), (4, 1))
    stated = bank_conflicts(rows, itemsize=4, instruction="ld.shared.v4.f32")
    assert stated == bank_conflicts(rows, itemsize=4, vector=4)
    assert bank_conflicts(rows, itemsize=4, instruction="ld.shared.b32") == bank_conflicts(rows, itemsize=4, vector=1)
    with pytest.raises(tw.LayoutError, match="does not agree"):
        bank_conflicts(rows, itemsize=4, vector=2, instruction="ld.shared.v4.f32")


def test_the_size_that_nobody_stated_is_named():
    for found in (bank_conflicts(tw.Layout(32)), coalescing(tw.Layout(32)), find_swizzle([tw.Layout(32, 32)])):
        assert "assuming elements of 4 bytes" in str(found)
    for found in (bank_conflicts(tw.Layout(32), itemsize=2), find_swizzle([tw.Layout(32, 32)], itemsize=2)):
        assert "assuming" not in str(found)
