# SPDX-License-Identifier: Apache-2.0
"""Random plans on CUDA, through host memory, and cut in several ways; each is compiled anew, so they are fewer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.copying import test_random_plans as random_plans
from tests.copying.models import SCALARS
from tests.copying.strategies import pairs

from tilewright_gpu import Tuning

from ..on_devices import CUDA, KNOWN_BLOCKS, check_cut, law

ENGINE = {"engine": "cuda"}
TUNINGS = [
    Tuning(),
    Tuning(threads=64, in_flight=64, groups=1),
    Tuning(threads=32, in_flight=48, groups=1, shared=1024),
]
fewer = settings(max_examples=max(1, settings().max_examples // 2))
fewest = settings(max_examples=max(1, settings().max_examples // 8))


@given(
    pair=pairs(),
    elements=random_plans.formats,
    fill=random_plans.fills,
    seed=random_plans.seeds,
    shifts=st.tuples(*[st.integers(0, 8)] * 2),
)
@fewer
def test_a_plan_copies_converts_and_fills_each_element_and_nothing_else(pair, elements, fill, seed, shifts):
    law(random_plans.test_a_plan_copies_converts_and_fills_each_element_and_nothing_else)(
        ENGINE, pair, elements, fill, seed, shifts
    )


@pytest.mark.parametrize("tuning", TUNINGS, ids=["large", "repeats", "ragged"])
@given(pair=pairs(largest=90, most=60_000), elements=random_plans.formats, seed=random_plans.seeds)
@fewer
def test_plans_cut_in_other_ways_give_the_same_bytes(tuning, pair, elements, seed):
    check_cut(CUDA, tuning, pair, elements, seed)


@pytest.mark.parametrize("name", KNOWN_BLOCKS)
@given(data=st.data(), source_format=st.sampled_from(SCALARS), fill=random_plans.fills, seed=random_plans.seeds)
@fewest
def test_a_plan_packs_blocks_from_any_strides(name, data, source_format, fill, seed):
    law(random_plans.test_a_plan_packs_blocks_from_any_strides)(ENGINE, name, data, source_format, fill, seed)


@pytest.mark.parametrize("name", KNOWN_BLOCKS)
@given(data=st.data(), target_format=st.sampled_from(SCALARS), fill=st.integers(-100, 100), seed=random_plans.seeds)
@fewest
def test_a_plan_unpacks_blocks_to_any_strides(name, data, target_format, fill, seed):
    law(random_plans.test_a_plan_unpacks_blocks_to_any_strides)(ENGINE, name, data, target_format, fill, seed)
