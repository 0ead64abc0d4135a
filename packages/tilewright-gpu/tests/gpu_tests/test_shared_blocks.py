# SPDX-License-Identifier: Apache-2.0
"""Blocks that several threads share, as on CUDA, run on OpenCL: its exchange of registers goes through local memory."""

from dataclasses import replace

import numpy as np
import pytest
from tests.copying.models import POISON, any_bits

from tilewright.copying import Placement, execute, placement_of, plan_copy
from tilewright.formats import format_of
from tilewright.layout import tiled_layout
from tilewright_gpu import Tuning
from tilewright_gpu.codegen import program

from .on_devices import OPENCL, needs_opencl

pytestmark = needs_opencl
IDS = "const u32 group = GROUP, thread = THREAD;"
EXCHANGE = "__local u32 exchanged[512]; u32 other;\n"
ACROSS = """
#define across(x, lane) (exchanged[THREAD] = (x), BARRIER, other = exchanged[THREAD ^ (lane)], BARRIER, other)
#define any_thread(x) ((x) | 1u)
"""


@pytest.fixture
def shuffling(monkeypatch):
    """Generate OpenCL as if its threads could exchange registers."""
    plain = program.c_dialect("opencl")
    words = replace(plain, prelude=plain.prelude + ACROSS, shuffles=True)
    monkeypatch.setattr(program, "c_dialect", lambda *_: words)
    whole = program.kernel_text
    monkeypatch.setattr(program, "kernel_text", lambda *given: whole(*given).replace(IDS, EXCHANGE + IDS))


@pytest.mark.parametrize(
    ("name", "element", "shape"),
    [
        ("bfloat8_b", "float32", (32, 64)),
        ("bfloat4_b", "bfloat16", (32, 64)),
        ("bfloat2_b", "float64", (32, 32)),
        ("bfloat8_a", "float32", (20, 32)),
        ("mxfp8_e4m3", "float32", (32, 64)),
        ("mxfp8_e5m2", "bfloat16", (32, 64)),
        ("mxfp4", "bfloat16", (32, 64)),
        ("nvfp4", "float32", (32, 64)),
    ],
)
def test_threads_that_share_a_block_agree_on_its_exponent(shuffling, name, element, shape):
    rng = np.random.default_rng(5)
    source = any_bits(rng, shape, element)
    place = Placement(tiled_layout(shape), name, 1.5, tile_elements=1024)
    plan = plan_copy(placement_of(source), place)
    wanted = np.full(place.nbytes, POISON, dtype=np.uint8)
    execute(plan, source, wanted, engine="reference")
    if name != "nvfp4":  # whose scales are worked out by one thread
        assert "across(" in program.generate_program(plan, "opencl").text.replace(ACROSS, "")
    home = OPENCL.default_backend()
    ends = [home.empty((size,), format_of("uint8")) for size in (source.nbytes, place.nbytes)]
    home.upload(source, ends[0])
    home.upload(np.full(place.nbytes, POISON, dtype=np.uint8), ends[1])
    home.run_plan(plan, *ends, tuning=Tuning(threads=64, groups=1, unroll=False))
    made = np.empty_like(wanted)
    home.download(ends[1], made)
    np.testing.assert_array_equal(made, wanted)
