# SPDX-License-Identifier: Apache-2.0
"""Operations in place, one after the other on the same tensor, as Mojo recorded them."""

import operator

import numpy as np

from tilewright.mojo.layout import TileTensor

from .golden import layout_of, replay

OPERATIONS = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "min": lambda a, b: a.min(b),
    "max": lambda a, b: a.max(b),
    "abs": lambda a, b: a.abs(),
}


@replay("elementwise")
def test_in_place(case):
    memory = np.array(case["a_values"], dtype=np.float32)
    a = TileTensor(memory, layout_of(case["layout"]))
    b = TileTensor(np.array(case["b_values"], dtype=np.float32), layout_of(case["b_layout"]))
    for result in case["results"]:
        assert OPERATIONS[result["args"]["op"]](a, b) is a
        assert memory.tolist() == result["buffer"]
