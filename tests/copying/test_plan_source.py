# SPDX-License-Identifier: Apache-2.0
"""The source of a plan: a placement as before, and when called the text of the plan's kernels."""

import copy
import pickle
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.copying import Placement, Plan, plan_copy, tiled_layout

PLAIN = Placement(tw.row_major(64, 64), "float32", 3)
TILES = Placement(tiled_layout((64, 64)), "bfloat16")


@pytest.mark.parametrize("dialect", ["opencl", "cuda"])
def test_a_called_source_is_the_text_of_the_kernels(dialect):
    plan = plan_copy(PLAIN, TILES)
    text = plan.source(dialect)
    assert text == plan.code(dialect)
    assert "KERNEL(" in text
    assert "brain_code" in text, "the conversion is nest of the kernel"
    assert ("__kernel" in text) == (dialect == "opencl")


def test_an_unknown_dialect_is_refused_by_name():
    with pytest.raises(tw.TransferError, match="no dialect 'fortran'; choose 'opencl' or 'cuda'"):
        plan_copy(PLAIN, TILES).source("fortran")


def test_the_source_of_a_plan_is_still_its_placement():
    source = plan_copy(PLAIN, TILES).source
    assert isinstance(source, Placement)
    assert source == PLAIN
    assert PLAIN == source, "also the other way round"  # noqa: SIM300
    assert source != TILES
    assert TILES != source  # noqa: SIM300
    assert source != "a placement"
    assert hash(source) == hash(PLAIN)
    assert {PLAIN: 1}[source] == 1
    assert repr(source) == repr(PLAIN)
    assert (source.layout, source.format, source.fill, source.nbytes) == (PLAIN.layout, PLAIN.format, 3, PLAIN.nbytes)


def test_a_source_can_be_planned_again_and_follows_its_own_plan():
    back = plan_copy(TILES, plan_copy(PLAIN, TILES).source)
    assert back.target == PLAIN
    again = plan_copy(plan_copy(PLAIN, TILES).source, PLAIN)
    assert again.source("opencl") != plan_copy(PLAIN, TILES).source("opencl")


def test_plans_are_values_that_can_be_replaced_copied_and_pickled():
    plan = plan_copy(PLAIN, TILES)
    assert plan == Plan(PLAIN, TILES, plan.nests)
    fewer = replace(plan, nests=plan.nests[:0])
    assert fewer.source.plan is fewer
    assert fewer != plan
    for other in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):  # noqa: S301
        assert other == plan
        assert other.source.plan is other
