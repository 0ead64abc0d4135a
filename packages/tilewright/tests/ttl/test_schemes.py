# SPDX-License-Identifier: Apache-2.0
"""The schemes on random spaces, tiles and halos in three dimensions, under every order of completion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import ttl
from tilewright.tiling import SimulatedQueue
from tilewright.tiling.transfers import COMPLETIONS

from ..cases import examples
from .kernels import SCHEMES


@st.composite
def stencils(draw):
    """Return space, compute tile and (before, after) of the halo, each in (x, y, z)."""
    space = tuple(draw(st.integers(1, 6)) for _ in range(3))
    tile = tuple(draw(st.integers(1, n + 1)) for n in space)
    halo = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(3))
    return space, tile, halo


@pytest.mark.parametrize("scheme", SCHEMES)
@examples(50)
@given(stencil=stencils(), columns=st.booleans(), seed=st.integers(0, 99))
def test_a_stencil_in_three_dimensions(scheme, stencil, columns, seed):
    space, tile, halo = stencil
    source = np.random.default_rng(1).integers(1, 1000, space[::-1]).astype(np.int32)
    around = [before + after for before, after in halo]
    whole = ttl.create_shape(*space)
    reading = ttl.create_overlap_tiler(
        whole,
        ttl.create_shape(*[t + n for t, n in zip(tile, around, strict=True)]),
        ttl.create_overlap(*around),
        ttl.create_augmentation(*[side for pair in halo for side in pair]),
    )
    writing = ttl.create_tiler(whole, ttl.create_shape(*tile))
    assert ttl.number_of_tiles(reading) == ttl.number_of_tiles(writing)

    def ends(tile, out):
        first = tuple(slice(0, n) for n in out.shape)
        last = tuple(slice(-n, None) for n in out.shape)
        out[...] = tile[first] * 2 + tile[last]

    expected = np.zeros_like(source)
    ends(np.pad(source, halo[::-1]), expected)
    get_tile = ttl.get_tile_column_major if columns else ttl.get_tile
    for completion in COMPLETIONS:
        target = np.zeros_like(source)
        engine = SimulatedQueue(completion, seed)
        tensors = ttl.create_const_ext_tensor(source, whole), ttl.create_ext_tensor(target, whole)
        loop = SCHEMES[scheme](
            *tensors,
            reading,
            writing,
            lambda a, b: ends(a.array(), b.array()),
            lambda engine=engine: ttl.get_event(engine),
            get_tile,
        )
        for _ in loop:
            pass
        assert (target == expected).all(), completion
        assert not engine.pending
