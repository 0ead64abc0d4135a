# SPDX-License-Identifier: Apache-2.0
"""The random plans once more, through generated kernels on a real OpenCL device: fewer of them, cut in several ways."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.copying import test_random_plans as random_plans
from tests.copying.models import SCALARS
from tests.copying.strategies import pairs

from tilewright_gpu import Tuning

from ..on_devices import EVERY, KNOWN_BLOCKS, OPENCL, check_cut, law, needs_opencl

pytestmark = needs_opencl
ENGINE = {"engine": "opencl"}
few = settings(max_examples=max(1, settings().max_examples // (4 if EVERY else 20)))
fewest = settings(max_examples=max(1, settings().max_examples // (20 if EVERY else 100)))
# as on a large device, and with as many repeats and as ragged a cut as a small plan allows
TUNINGS = [Tuning(), Tuning(threads=32, in_flight=64, groups=1), Tuning(threads=8, in_flight=48, groups=1, shared=1024)]


@given(
    pair=pairs(),
    elements=random_plans.formats,
    fill=random_plans.fills,
    seed=random_plans.seeds,
    shifts=st.tuples(*[st.integers(0, 8)] * 2),
)
@few
def test_a_plan_copies_converts_and_fills_each_element_and_nothing_else(pair, elements, fill, seed, shifts):
    law(random_plans.test_a_plan_copies_converts_and_fills_each_element_and_nothing_else)(
        ENGINE, pair, elements, fill, seed, shifts
    )


@given(pair=pairs(largest=70, most=40_000), elements=random_plans.formats, seed=random_plans.seeds)
@few
def test_larger_plans_agree_with_the_places_of_their_layouts(pair, elements, seed):
    law(random_plans.test_larger_plans_agree_with_the_places_of_their_layouts)(ENGINE, pair, elements, seed)


@pytest.mark.parametrize("tuning", TUNINGS, ids=["large", "repeats", "ragged"])
@given(pair=pairs(largest=90, most=60_000), elements=random_plans.formats, seed=random_plans.seeds)
@few
def test_plans_cut_for_other_devices_give_the_same_bytes(tuning, pair, elements, seed):
    check_cut(OPENCL, tuning, pair, elements, seed)


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
