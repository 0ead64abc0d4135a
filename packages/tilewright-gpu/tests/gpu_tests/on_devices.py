# SPDX-License-Identifier: Apache-2.0
"""What tests of the OpenCL and of the CUDA engine share: arrays, the law of random plans, and cuts of a plan."""

import os

import numpy as np
import pytest
from tests.copying.models import any_bits, fitting, ragged_plan

from tilewright.copying import Placement, execute, load_engine
from tilewright.formats import BLOCK_FORMATS, format_of

OPENCL, CUDA = load_engine("opencl"), load_engine("cuda")
needs_opencl = pytest.mark.skipif(OPENCL.unavailable_reason() is not None, reason=str(OPENCL.unavailable_reason()))
EVERY = os.environ.get("TILEWRIGHT_TEST_OPENCL") == "all"  # `make test-opencl`: not a sample
KNOWN_BLOCKS = [name for name in BLOCK_FORMATS if name.startswith("bfloat")]


def random(shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 10, shape)).astype(np.float32)


def same_bits(got, wanted):
    got, wanted = np.ascontiguousarray(got), np.ascontiguousarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got.reshape(-1).view(np.uint8), wanted.reshape(-1).view(np.uint8))


def law(test):
    """Return a test without its own examples, to be tried with others."""
    return test.hypothesis.inner_test


def bytes_made(engine, plan, source, tuning):
    """Return the bytes that a plan makes of poisoned memory, with kernels cut as on another device."""
    home = engine.default_backend()
    byte = format_of("uint8")
    ends = [home.empty((max(1, place.nbytes),), byte) for place in (plan.source, plan.target)]
    home.upload(source.view(np.uint8), ends[0])
    found = np.full(ends[1].size, 0xA5, dtype=np.uint8)
    home.upload(found, ends[1])
    home.run_plan(plan, *ends, tuning=tuning)
    home.download(ends[1], found)
    return found


def check_cut(engine, tuning, pair, elements, seed):
    """Fail if kernels that are cut in another way make other bytes than the reference does."""
    source, target = pair.source, pair.target
    plan = ragged_plan(
        Placement(source.layout, elements[0]), Placement(target.layout, elements[1], fitting(3, elements[0]))
    )
    data = any_bits(np.random.default_rng(seed), (int(source.layout.cosize),), elements[0])
    wanted = np.full(max(1, plan.target.nbytes), 0xA5, dtype=np.uint8)
    execute(plan, data, wanted, engine="reference")
    np.testing.assert_array_equal(bytes_made(engine, plan, data, tuning), wanted)
