# SPDX-License-Identifier: Apache-2.0
"""The random plans once more, through generated kernels on a real OpenCL device: fewer of them, cut in several ways."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.copying import Placement, execute, opencl_engine, plan_copy, tiled_layout
from tilewright.copying.codegen import Tuning, generate_program

from . import test_random_plans as random_plans
from .models import SCALARS, any_bits
from .on_devices import KNOWN_BLOCKS, bytes_made, check_cut, law
from .strategies import pairs

pytestmark = pytest.mark.skipif(
    opencl_engine.unavailable_reason() is not None, reason=str(opencl_engine.unavailable_reason())
)
OPENCL = {"engine": "opencl"}
EVERY = os.environ.get("TILEWRIGHT_TEST_OPENCL") == "all"
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
        OPENCL, pair, elements, fill, seed, shifts
    )


@given(pair=pairs(largest=70, most=40_000), elements=random_plans.formats, seed=random_plans.seeds)
@few
def test_larger_plans_agree_with_the_places_of_their_layouts(pair, elements, seed):
    law(random_plans.test_larger_plans_agree_with_the_places_of_their_layouts)(OPENCL, pair, elements, seed)


@pytest.mark.parametrize("tuning", TUNINGS, ids=["large", "repeats", "ragged"])
@given(pair=pairs(largest=90, most=60_000), elements=random_plans.formats, seed=random_plans.seeds)
@few
def test_plans_cut_for_other_devices_give_the_same_bytes(tuning, pair, elements, seed):
    check_cut(opencl_engine, tuning, pair, elements, seed)


@pytest.mark.parametrize("name", ["bfloat8_b", "bfloat4_a"])
def test_packing_kernels_that_are_given_their_extents_serve_every_shape(name):
    tuning = Tuning(threads=64, lean=8, as_arguments=True)
    texts = set()
    for rows, columns in ((1056, 1024), (992, 1184), (1024, 1100)):
        plain = Placement(tw.row_major(rows, columns), "float32")
        plan = plan_copy(plain, Placement(tiled_layout((rows, columns)), name, 2, tile_elements=1024))
        program = generate_program(plan, "opencl", tuning=tuning)
        assert any(kernel.arguments for kernel in program.kernels)
        if columns % 32 == 0:
            texts.add(program.text)
        data = any_bits(np.random.default_rng(rows), (rows, columns), "float32")
        wanted = np.full(plan.target.nbytes, 0xA5, dtype=np.uint8)
        execute(plan, data, wanted)
        np.testing.assert_array_equal(bytes_made(opencl_engine, plan, data.reshape(-1), tuning), wanted)
    assert len(texts) == 1


@pytest.mark.parametrize("name", KNOWN_BLOCKS)
@given(data=st.data(), source_format=st.sampled_from(SCALARS), fill=random_plans.fills, seed=random_plans.seeds)
@fewest
def test_a_plan_packs_blocks_from_any_strides(name, data, source_format, fill, seed):
    law(random_plans.test_a_plan_packs_blocks_from_any_strides)(OPENCL, name, data, source_format, fill, seed)


@pytest.mark.parametrize("name", KNOWN_BLOCKS)
@given(data=st.data(), target_format=st.sampled_from(SCALARS), fill=st.integers(-100, 100), seed=random_plans.seeds)
@fewest
def test_a_plan_unpacks_blocks_to_any_strides(name, data, target_format, fill, seed):
    law(random_plans.test_a_plan_unpacks_blocks_to_any_strides)(OPENCL, name, data, target_format, fill, seed)
