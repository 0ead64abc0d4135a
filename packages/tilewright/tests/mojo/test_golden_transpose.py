# SPDX-License-Identifier: Apache-2.0
"""Transposed tensors, and the same ones with everything dynamic, as Mojo recorded them."""

import numpy as np

from tilewright.mojo import DType

from .golden import assert_view, replay, tensor_of


@replay("transpose")
def test_transpose(case):
    t = tensor_of(case)
    (result,) = case["results"]
    assert_view(t.transpose(), result["view"])
    assert_view(t.make_dynamic[DType.int64](), result["dynamic"])
    np.testing.assert_array_equal(t.transpose().to_numpy(), t.to_numpy().T)
    assert t.layout.transpose() == t.transpose().layout
