# SPDX-License-Identifier: Apache-2.0
"""Copies between layouts and formats, as Mojo recorded them.

Equal extents mean the same coordinate. For other shapes Mojo picks an order by itself; ours is stated: the memory order
where both sides have no gaps, are row-major and have an even count, else the first index fastest.
"""

from math import prod

import numpy as np
import pytest

from tilewright import LayoutError
from tilewright.mojo.layout import TileTensor

from .golden import assert_layout, format_of, layout_of, replay, tensor_of


def target_of(case):
    (result,) = case["results"]
    layout = layout_of(case["dst_layout"])
    memory = np.zeros(len(result["dst_buffer"]), dtype=format_of(case["dst_dtype"]).dtype)
    target = TileTensor(memory, layout)
    assert_layout(layout, result["dst_layout"])
    assert target.is_row_major == result["dst_is_row_major"]
    return target, memory


def order_of(source, target):
    """Return the order that makes our copy the recorded one."""
    if source.is_row_major and target.is_row_major and prod(source.shape) % 2 == 0:
        return "row"
    return "colex"


@replay("copy_from")
def test_copy_from(case):
    source = tensor_of(case)
    target, memory = target_of(case)
    if source.shape == target.shape:
        target.copy_from(source)
    else:
        with pytest.raises(LayoutError, match="the extents differ"):
            target.copy_from(source)
        assert not memory.any()
        target.copy_from(source, order=order_of(source, target))
    assert memory.tolist() == case["results"][0]["dst_buffer"]


@replay("copy_from")
def test_copy_to(case):
    source = tensor_of(case)
    target, memory = target_of(case)
    order = None if source.shape == target.shape else order_of(source, target)
    assert source.copy_to(target, order=order) is target
    assert memory.tolist() == case["results"][0]["dst_buffer"]
