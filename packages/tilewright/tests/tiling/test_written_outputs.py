# SPDX-License-Identifier: Apache-2.0
"""A compute writes all of its outputs and returns nothing of its own, or it is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiling.pipelines import SCHEMES
from tilewright import TransferError
from tilewright.tiling import Input, Output, Pipeline, SimulatedQueue, Tiler, plan_tiles, stream

from ..cases import examples

RUNS = {
    **{scheme: lambda a, b, f, scheme=scheme: stream(a, b, f, tile=(4, 4), scheme=scheme) for scheme in SCHEMES},
    "workers": lambda a, b, f: stream(a, b, f, tile=(4, 4), workers=2, concurrent=True),
    "queue": lambda a, b, f: stream(a, b, f, tile=(4, 4), queue=SimulatedQueue("lifo")),
    "plan": lambda a, b, f: plan_tiles(a, b, tile=(4, 4)).run(f, retries=0),
}


def test_what_a_compute_returns_is_an_output_or_refused():
    """Lists, numbers and lazy arrays were dropped, and whatever was in memory was written."""

    def lost(x, y):
        y[...] = x

    for name, run in RUNS.items():
        for result in (3, 3.5, "done", True, [1, 2], (1,), np.float64(3), {}, np.ones(3), iter(())):

            def compute(x, y, result=result):
                y[...] = x
                return result

            with pytest.raises(TransferError, match=r"of tile 0 returned an? .*, which would be lost; write into"):
                run(np.ones((8, 8)), np.zeros((8, 8)), compute)
        for view in (lambda y: y[::-1], lambda y: y.T, lambda y: y[1:], lambda y: y + 0, lambda y: y.view(np.int64)):
            with pytest.raises(TransferError, match=r"which would be lost"):
                run(np.ones((8, 8)), np.zeros((8, 8)), lambda x, y, view=view: (lost(x, y), view(y))[1])
        for same in (lambda y: y, lambda y: (y,), lambda y: (None, y), lambda y: [], lambda y: y[...], lambda y: None):
            target = np.zeros((8, 8))
            run(np.ones((8, 8)), target, lambda x, y, same=same: (lost(x, y), same(y))[1])
            assert (target == 1).all(), name
    with pytest.raises(TransferError, match=r"returned a float64, .* append it to a list"):
        stream(np.ones((8, 8)), [], np.sum, tile=(4, 4))


def test_outputs_that_are_not_written_are_noticed():
    for run in RUNS.values():
        for dtype in ("f8", "f4", "i2", "u1", "?", "c16", "S3", "M8[s]"):
            source, target = np.zeros((8, 8)), np.zeros((8, 8), dtype)
            for compute in (lambda x, y: None, lambda x, y: y, lambda x, y: x.fill(1)):
                with pytest.raises(TransferError, match=r"left 16 of 16 elements of output 0 unwritten in tile 0"):
                    run(source, target, compute)
            assert (target == np.zeros(1, dtype)).all()
    with pytest.raises(TransferError, match=r"left 16 of 16 elements of output 1 unwritten"):
        stream(np.ones((8, 8)), [np.zeros((8, 8)), np.zeros((8, 8))], lambda x, y, z: np.copyto(y, x), tile=(4, 4))


def test_outputs_that_are_written_in_part_are_noticed():
    source = np.ones((64, 64))
    for dtype, missing in (("f8", 1), ("f4", 2), ("i2", 8), ("u1", 60)):

        def compute(x, y, missing=missing):
            y.reshape(-1)[missing:] = 1

        with pytest.raises(TransferError, match=r"left \d+ of 4096 elements"):
            stream(source, np.zeros((64, 64), dtype), compute, tile=(64, 64))
    with pytest.raises(TransferError, match=r"left \d+ of 4096 elements"):
        stream(source, np.zeros((64, 64)), lambda x, y: np.add(x, 1, out=y, where=x > 1), tile=(64, 64))


@examples(200)
@given(st.sampled_from(["f8", "f4", "u2", "u1", "?"]), st.integers(1, 300), st.integers(0, 255))
def test_what_is_written_is_never_taken_for_unwritten(dtype, size, value):
    target = np.zeros(size, dtype)
    stream(np.zeros(size), target, lambda x, y: y.fill(value % 2 if dtype == "?" else value), tile=(size,))
    assert (target == np.array(value % 2 if dtype == "?" else value, dtype)).all()


def test_a_loop_over_steps_must_write_too():
    tiler = Tiler((8,), (4,))
    with pytest.raises(TransferError, match="left 4 of 4 elements"):
        for _ in Pipeline([Input(np.ones(8), tiler)], [Output(np.zeros(8), tiler)]).steps():
            pass
