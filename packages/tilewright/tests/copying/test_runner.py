# SPDX-License-Identifier: Apache-2.0
"""Prepared plans do what `execute` does, at any address, whether or not the target is said to be large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Layout, TransferError, row_major
from tilewright.copying import Placement, execute, plan_copy, tilize
from tilewright.copying.engine import make_runner
from tilewright.formats import format_of
from tilewright.layout import tiled_layout

from .models import SCALARS, any_bits, ragged_plan
from .strategies import pairs


@given(pairs(), st.sampled_from(SCALARS), st.integers(0, 2**32 - 1), st.booleans(), st.integers(0, 70))
def test_a_prepared_plan_does_what_execute_does(engine, pair, element, seed, streaming, shift):
    plan = ragged_plan(Placement(pair.source.layout, element), Placement(pair.target.layout, element, 3))
    dtype = format_of(element).dtype
    source = any_bits(np.random.default_rng(seed), (int(pair.source.layout.cosize),), element)
    wanted = np.zeros(int(pair.target.layout.cosize), dtype)
    execute(plan, source, wanted, **engine)
    start = 64 + shift * dtype.itemsize
    buffer = np.zeros(start + wanted.nbytes + 64, np.uint8)
    run = make_runner(plan, engine.get("threads", 1), engine["engine"], streaming)
    run(source.ctypes.data, buffer.ctypes.data + start)
    assert buffer[start:-64].tobytes() == wanted.tobytes()
    assert not buffer[:start].any()
    assert not buffer[-64:].any()


def test_runners_pack_and_go_through_scratch_memory():
    values = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    plain = Placement(row_major(64, 64), "float32")
    eight, four = (Placement(tiled_layout((64, 64)), name, tile_elements=1024) for name in ("bfloat8_b", "bfloat4_b"))
    packed = np.zeros(eight.nbytes, np.uint8)
    make_runner(plan_copy(plain, eight))(values.ctypes.data, packed.ctypes.data)
    np.testing.assert_array_equal(packed, tilize(values, dtype="bfloat8_b", engine="reference"))
    repacked, wanted = np.zeros(four.nbytes, np.uint8), np.zeros(four.nbytes, np.uint8)
    make_runner(plan_copy(eight, four))(packed.ctypes.data, repacked.ctypes.data)
    execute(plan_copy(eight, four), packed, wanted, engine="reference")
    np.testing.assert_array_equal(repacked, wanted)


@given(pairs(), st.sampled_from(SCALARS), st.integers(0, 2**32 - 1))
def test_a_bound_plan_does_what_execute_does_whenever_it_is_called(engine, pair, element, seed):
    plan = ragged_plan(Placement(pair.source.layout, element), Placement(pair.target.layout, element, 1))
    source = any_bits(np.random.default_rng(seed), (int(pair.source.layout.cosize),), element)
    target = np.zeros(int(pair.target.layout.cosize), source.dtype)
    run = plan.bind(source, target, **engine)
    for again in range(2):
        source[...] = any_bits(np.random.default_rng(seed + again), source.shape, element)
        wanted = np.zeros_like(target)
        execute(plan, source, wanted, **engine)
        run()
        np.testing.assert_array_equal(target.view(np.uint8), wanted.view(np.uint8))
        target[...] = 0


def test_what_cannot_be_run_cannot_be_bound():
    plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4, -1) + 3, "int8"))
    values = np.arange(4, dtype=np.int8)
    fixed = values.copy()
    fixed.flags.writeable = False
    for source, target, message in (
        (values, values, "share memory"),
        (values, fixed, "read-only"),
        (values[:3], np.zeros(4, np.int8), "the source has 3 bytes"),
        (values, np.zeros(3, np.int8), "the target has 3 bytes"),
    ):
        with pytest.raises(TransferError, match=message):
            plan.bind(source, target)
    with pytest.raises(TransferError, match="unknown engine 'nativ'"):
        plan.bind(values, np.zeros(4, np.int8), engine="nativ")
