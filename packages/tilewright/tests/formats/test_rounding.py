# SPDX-License-Identifier: Apache-2.0
"""Rounding laws of every block format: error bounds and idempotence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.formats import BLOCK_FORMATS

FORMATS = list(BLOCK_FORMATS.values())
any_format = st.sampled_from(FORMATS)
SEEDS = st.integers(0, 2**32 - 1)


def random_blocks(seed, each, spread=8):
    """Return blocks of numbers over a few powers of two, some of them zero, inside the range of every format."""
    rng = np.random.default_rng(seed)
    shape = (32, each.block)
    values = np.ldexp(rng.uniform(1, 2, shape), rng.integers(-spread, 4, shape)) * rng.choice([-1, 0, 1, 1], shape)
    return values.astype(np.float32)


def steps(each, values):
    """Return the distance, above each value, between numbers that its block can hold."""
    scales, _ = each.encode(values)
    scale = each.scale.value(scales)[:, None]
    if not hasattr(each.element, "mantissa_bits"):
        return np.broadcast_to(each.element.smallest * scale, values.shape)
    ratio = np.abs(values.astype(np.float64)) / np.where(scale == 0, 1, scale)
    exponent = np.where(ratio == 0, -1000, np.frexp(ratio)[1] - 1)
    exponent = np.clip(exponent, each.element.lowest_exponent, each.element.top_exponent)
    return np.ldexp(scale, exponent - each.element.mantissa_bits)


def through(each, values):
    return each.decode(*each.encode(values))


@given(each=any_format, seed=SEEDS)
def test_error_bounds(each, seed):
    values = random_blocks(seed, each)
    step = steps(each, values)
    scales, _ = each.encode(values)
    top = each.element.largest * each.scale.value(scales)[:, None]
    error = np.abs(values.astype(np.float64) - through(each, values))
    saturated = np.abs(values) > top
    # Aligned formats forget what the shift pushes out, at most 2^-23 of the block's scale.
    slack = each.aligned * 2.0**-23 * each.scale.value(scales)[:, None]
    assert (error <= np.where(saturated, np.abs(values) - top, step / 2 + slack)).all()
    # A power of two as scale puts no value as far as the exponent above the top one.
    beyond = 2.0 ** (each.element.top_exponent + 1) * each.scale.value(scales)[:, None]
    assert each.tensor_scaled or (np.abs(values) < beyond).all()


@given(each=any_format, seed=SEEDS)
def test_idempotent(each, seed):
    values = random_blocks(seed, each)
    if each.tensor_scaled:
        values *= np.float32(64)  # keeps the scales of blocks in the normal range of E4M3; see the next test
    tile = values.size
    packed = each.pack(values, tile)
    assert each.pack(each.unpack(packed, tile), tile).tobytes() == packed.tobytes()


def test_subnormal_scales_of_nvfp4_are_not_idempotent():
    # A scale of 1.5 steps rounds to 2, the largest element becomes 4 instead of 6, and then one step is enough.
    nvfp4 = BLOCK_FORMATS["nvfp4"]
    once = through(nvfp4, np.full(16, 9 * 2.0**-9))
    assert nvfp4.encode(np.full(16, 9 * 2.0**-9))[0].tolist() == [2]
    assert nvfp4.encode(once)[0].tolist() == [1]
