# SPDX-License-Identifier: Apache-2.0
"""Packed tiles taken apart: scales, codes, and the steps between numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FormatError
from tilewright.formats import BLOCK_FORMATS
from tilewright.formats.quantization import split_tiles

from ..cases import examples

FORMATS = sorted(BLOCK_FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_parts_decode_to_what_unpacking_gives(name):
    format_ = BLOCK_FORMATS[name]
    values = np.random.default_rng(0).standard_normal(4 * 256).astype(np.float32)
    packed = format_.pack(values, tile_elements=256)
    parts = split_tiles(packed, name, 256)
    again = format_.decode(parts.scales.reshape(-1), parts.codes.reshape(-1, format_.block))
    assert (again.reshape(-1) == format_.unpack(packed, tile_elements=256).reshape(-1)).all()


@pytest.mark.parametrize("name", FORMATS)
@examples(20)
@given(seed=st.integers(0, 10**6))
def test_rounding_stays_within_one_step(name, seed):
    format_ = BLOCK_FORMATS[name]
    values = np.random.default_rng(seed).standard_normal(64).astype(np.float32)
    packed = format_.pack(values, tile_elements=64)
    stored = format_.unpack(packed, tile_elements=64).reshape(-1)
    steps = split_tiles(packed, name, 64).steps().reshape(-1)
    most = 2 if name == "mxfp8_e4m3" else 1  # 511 steps of a scale saturate at 448, where steps are of 32
    assert (np.abs(stored - values) <= most * steps * (1 + 1e-6)).all()


def test_what_has_no_blocks_is_refused():
    with pytest.raises(FormatError, match="expected a block format"):
        split_tiles(b"", "float32", 16)
    with pytest.raises(FormatError, match="not a whole number of tiles"):
        split_tiles(bytes(17), "bfloat8_b", 16)
