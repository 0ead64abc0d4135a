# SPDX-License-Identifier: Apache-2.0
"""The real ttnn refuses random specs: each refusal is explained, and what the explanation advises is accepted."""

import re

import ttnn as theirs
from hypothesis import given
from hypothesis import strategies as st

from tilewright.notation import explain_error

from .questions import KINDS, cores

EXTENTS = st.sampled_from([8, 16, 30, 32, 64, 96, 100, 128, 512, 1024])
PAIRS = st.tuples(EXTENTS, EXTENTS)


def refusal(shape, tiled, kind, grid, shard, order):
    """Return what ttnn says against a spec, or None."""
    area = cores(theirs, [(0, 0, grid[0] - 1, grid[1] - 1)])
    layout = theirs.TILE_LAYOUT if tiled else theirs.ROW_MAJOR_LAYOUT
    shards = theirs.ShardSpec(area, shard, getattr(theirs.ShardOrientation, order))
    memory = getattr(theirs.TensorMemoryLayout, kind)
    try:
        theirs.TensorSpec(theirs.Shape(shape), theirs.bfloat16, layout, memory, shards, theirs.BufferType.L1)
    except RuntimeError as problem:
        return str(problem)
    return None


def advised(error, shard, tiled):
    """Return the shard that the first remedy of an explained error asks for."""
    if error.kind == "shard_not_tile_sized":
        return error.derived["next_legal"]
    height, width = shard
    if error.kind == "shard_width_mismatch":
        return [height, error.numbers["tensor_width"]]
    if error.kind == "shard_height_mismatch":
        return [error.numbers["tensor_height"], width]
    assert error.kind == "shards_exceed_cores"
    times = int(re.search(r"at least (\d+) times", error.remedies[0])[1])
    unit = 32 if tiled else 1
    along = ("height", "width").index(error.numbers["axis"])
    return [-(-extent * times // unit) * unit if k == along else extent for k, extent in enumerate(shard)]


@given(
    PAIRS,
    st.booleans(),
    st.sampled_from(KINDS),
    st.tuples(st.integers(1, 8), st.integers(1, 8)),
    PAIRS,
    st.sampled_from(["ROW_MAJOR", "COL_MAJOR"]),
)
def test_advice_is_accepted(shape, tiled, kind, grid, shard, order):
    for _ in range(6):  # one refusal may hide another
        message = refusal(shape, tiled, kind, grid, shard, order)
        if message is None:
            return
        (error,) = explain_error(message).errors
        shard = advised(error, shard, tiled)
    raise AssertionError(f"still refused: {message}")
