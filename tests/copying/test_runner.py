# SPDX-License-Identifier: Apache-2.0
"""Prepared plans do what `execute` does, at any address, whether or not the target is said to be large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TransferError
from tilewright.copying import Placement, execute, plan_copy, tiled_layout
from tilewright.copying.engine import make_runner
from tilewright.formats import format_of

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


def test_blocks_to_blocks_have_no_single_run():
    tiles = Placement(tiled_layout((64, 64)), "bfloat8_b", tile_elements=1024)
    with pytest.raises(TransferError, match="use execute"):
        make_runner(plan_copy(tiles, tiles))
