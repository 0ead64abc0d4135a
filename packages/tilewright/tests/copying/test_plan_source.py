# SPDX-License-Identifier: Apache-2.0
"""Plans are values."""

import copy
import pickle
from dataclasses import replace

import tilewright as tw
from tilewright.copying import Placement, Plan, plan_copy
from tilewright.layout import tiled_layout

PLAIN = Placement(tw.row_major(64, 64), "float32", 3)
TILES = Placement(tiled_layout((64, 64)), "bfloat16")


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
