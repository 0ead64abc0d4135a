# SPDX-License-Identifier: Apache-2.0
"""Copies of odd extents, whose rows start anywhere in a word: whole words, and the ends of rows."""

import numpy as np
import pytest

from tilewright.copying import copy

from ..on_devices import needs_opencl

pytestmark = needs_opencl
CASES = [
    ((33, 35, 37), (2, 1, 0)),
    ((33, 35, 37), (0, 2, 1)),
    ((9, 5, 101), (1, 0, 2)),  # rows that both sides share
    ((3, 2, 9243), (1, 0, 2)),  # longer ones than a box
    ((7, 3, 11, 13), (1, 3, 0, 2)),
    ((1025, 3), (1, 0)),
]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize(("extents", "axes"), CASES)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_every_element_of_an_odd_copy_arrives_and_no_other_changes(dtype, extents, axes, start):
    count = int(np.prod(extents))
    source = (np.arange(count + 8) % 251).astype(dtype)[start : start + count].reshape(extents)
    around = np.full(count + 16, 7, dtype)
    target = around[start + 1 : start + 1 + count].reshape([extents[k] for k in axes])
    copy(source.transpose(axes), target, engine="opencl")
    np.testing.assert_array_equal(target, source.transpose(axes))
    assert (around[: start + 1] == 7).all()
    assert (around[start + 1 + count :] == 7).all()
