# SPDX-License-Identifier: Apache-2.0
"""Tiles are chosen to fit a limit of memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TransferError
from tilewright.tiling import Input, Output, Pipeline, Tiler
from tilewright.tiling.tile_choice import choose_tile

SCHEMES = ["duplex", "double", "simplex", "buffered"]


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=3),
    st.integers(0, 3),
    st.sampled_from(SCHEMES),
    st.integers(14, 22),
)
def test_a_chosen_tile_fits(space, halo, scheme, bits):
    found = choose_tile(space, ["float64"], ["int16"], memory_limit=1 << bits, halo=halo, scheme=scheme)
    assert found.buffer_bytes <= 1 << bits
    assert all(1 <= t <= n for t, n in zip(found.tile, space, strict=True))
    around = 2 * halo
    reading = Tiler(space, tuple(t + around for t in found.tile), around, halo)
    source, target = np.zeros(space), np.zeros(space, np.int16)
    pipeline = Pipeline(
        [Input(source, reading)], [Output(target, Tiler(space, found.tile))], scheme=scheme, depth=found.depth
    )
    assert pipeline.buffer_bytes <= found.buffer_bytes


def test_the_limit_is_used():
    found = choose_tile((10_000, 10_000), memory_limit=1 << 20)
    assert found.buffer_bytes > 0.8 * (1 << 20)


def test_a_halo_makes_tiles_squarer():
    flat = choose_tile((4096, 4096), memory_limit=1 << 20).tile
    square = choose_tile((4096, 4096), memory_limit=1 << 20, halo=16).tile
    assert square[0] > flat[0]


def test_a_limit_that_nothing_fits():
    with pytest.raises(TransferError, match="raise the limit"):
        choose_tile((100, 100), memory_limit=100)
