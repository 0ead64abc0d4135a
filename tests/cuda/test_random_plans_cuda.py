# SPDX-License-Identifier: Apache-2.0
"""Random plans on CUDA, through host memory, and cut in several ways; each is compiled anew, so they are fewer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.copy import test_random_plans as random_plans
from tests.copy.models import SCALARS, any_bits
from tests.copy.strategies import pairs
from tilewright.copy import Placement, cuda_engine, execute, plan_copy
from tilewright.copy.codegen import Tuning
from tilewright.formats import BLOCK_FORMATS, format_of

CUDA = {"engine": "cuda"}
KNOWN = [name for name in BLOCK_FORMATS if name.startswith("bfloat")]
TUNINGS = [
    Tuning(),
    Tuning(threads=64, in_flight=64, groups=1),
    Tuning(threads=32, in_flight=48, groups=1, shared=1024),
]
fewer = settings(max_examples=max(1, settings().max_examples // 2))
fewest = settings(max_examples=max(1, settings().max_examples // 8))


def inner(test):
    return test.hypothesis.inner_test


@given(
    pair=pairs(),
    elements=random_plans.formats,
    fill=random_plans.fills,
    seed=random_plans.seeds,
    shifts=st.tuples(*[st.integers(0, 8)] * 2),
)
@fewer
def test_a_plan_copies_converts_and_fills_each_element_and_nothing_else(pair, elements, fill, seed, shifts):
    inner(random_plans.test_a_plan_copies_converts_and_fills_each_element_and_nothing_else)(
        CUDA, pair, elements, fill, seed, shifts
    )


@pytest.mark.parametrize("tuning", TUNINGS, ids=["large", "repeats", "ragged"])
@given(pair=pairs(largest=90, most=60_000), elements=random_plans.formats, seed=random_plans.seeds)
@fewer
def test_plans_cut_in_other_ways_give_the_same_bytes(tuning, pair, elements, seed):
    source, target = pair.source, pair.target
    plan = plan_copy(Placement(source.layout, elements[0]), Placement(target.layout, elements[1], 3))
    data = any_bits(np.random.default_rng(seed), (int(source.layout.cosize),), elements[0])
    wanted = np.full(max(1, plan.target.nbytes), 0xA5, dtype=np.uint8)
    home = cuda_engine.home()
    byte = format_of("uint8")
    ends = [home.empty((max(1, place.nbytes),), byte) for place in (plan.source, plan.target)]
    home.upload(data.view(np.uint8), ends[0])
    home.upload(wanted, ends[1])
    cuda_engine.run(plan, *ends, tuning=tuning)
    execute(plan, data, wanted, engine="reference")
    made = np.empty_like(wanted)
    home.download(ends[1], made)
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("name", KNOWN)
@given(data=st.data(), source_format=st.sampled_from(SCALARS), fill=random_plans.fills, seed=random_plans.seeds)
@fewest
def test_a_plan_packs_blocks_from_any_strides(name, data, source_format, fill, seed):
    inner(random_plans.test_a_plan_packs_blocks_from_any_strides)(CUDA, name, data, source_format, fill, seed)


@pytest.mark.parametrize("name", KNOWN)
@given(data=st.data(), target_format=st.sampled_from(SCALARS), fill=st.integers(-100, 100), seed=random_plans.seeds)
@fewest
def test_a_plan_unpacks_blocks_to_any_strides(name, data, target_format, fill, seed):
    inner(random_plans.test_a_plan_unpacks_blocks_to_any_strides)(CUDA, name, data, target_format, fill, seed)
