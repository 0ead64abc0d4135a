# SPDX-License-Identifier: Apache-2.0
"""Plans are values, and show the source text of their kernels."""

import copy
import pickle
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.copying import Placement, Plan, plan_copy
from tilewright.layout import tiled_layout

PLAIN = Placement(tw.row_major(64, 64), "float32", 3)
TILES = Placement(tiled_layout((64, 64)), "bfloat16")


@pytest.mark.parametrize("dialect", ["opencl", "cuda"])
def test_code_is_the_text_of_the_kernels(dialect):
    text = plan_copy(PLAIN, TILES).code(dialect)
    assert "KERNEL(" in text
    assert "brain_code" in text, "the conversion is part of the kernel"
    assert ("__kernel" in text) == (dialect == "opencl")
    assert plan_copy(TILES, PLAIN).code(dialect) != text


def test_an_unknown_dialect_is_refused_by_name():
    with pytest.raises(tw.TransferError, match="unknown dialect 'fortran'; use 'opencl' or 'cuda'"):
        plan_copy(PLAIN, TILES).code("fortran")


def test_the_source_of_a_plan_is_its_placement():
    plan = plan_copy(PLAIN, TILES)
    assert plan.source == PLAIN
    assert plan.target == TILES
    assert plan_copy(TILES, plan.source).target == PLAIN


def test_plans_are_values_that_can_be_replaced_copied_and_pickled():
    plan = plan_copy(PLAIN, TILES)
    assert plan == Plan(PLAIN, TILES, plan.nests)
    assert replace(plan, nests=plan.nests[:0]) != plan
    for other in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):  # noqa: S301
        assert other == plan
