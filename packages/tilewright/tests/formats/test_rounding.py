# SPDX-License-Identifier: Apache-2.0
"""Rounding laws of every block format: error bounds, idempotence, truncation, and unbiased stochastic rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.formats import BLOCK_FORMATS
from tilewright.formats.scalars import noise

FORMATS = list(BLOCK_FORMATS.values())
every_format = pytest.mark.parametrize("each", FORMATS, ids=str)
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


def through(each, values, **options):
    return each.decode(*each.encode(values, **options))


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
    for options in ({}, {"rounding": "truncate"}, {"rounding": "stochastic", "seed": seed}):
        assert each.pack(each.unpack(packed, tile), tile, **options).tobytes() == packed.tobytes()


def test_subnormal_scales_of_nvfp4_are_not_idempotent():
    # A scale of 1.5 steps rounds to 2, the largest element becomes 4 instead of 6, and then one step is enough.
    nvfp4 = BLOCK_FORMATS["nvfp4"]
    once = through(nvfp4, np.full(16, 9 * 2.0**-9))
    assert nvfp4.encode(np.full(16, 9 * 2.0**-9))[0].tolist() == [2]
    assert nvfp4.encode(once)[0].tolist() == [1]


@given(each=any_format, seed=SEEDS)
def test_truncate_never_grows(each, seed):
    values = random_blocks(seed, each, spread=20)
    result = through(each, values, rounding="truncate")
    assert (np.abs(result) <= np.abs(values)).all()
    assert ((np.sign(result) == np.sign(values)) | (result == 0)).all()
    step, (scales, _) = steps(each, values), each.encode(values)
    top = each.element.largest * each.scale.value(scales)[:, None]
    assert (np.minimum(np.abs(values), top) - np.abs(result) < step).all()


@given(each=any_format, seed=SEEDS)
def test_stochastic_gives_a_neighbour(each, seed):
    values = random_blocks(seed, each)
    low = np.abs(through(each, values, rounding="truncate"))
    result = np.abs(through(each, values, rounding="stochastic", seed=seed))
    step = steps(each, values)
    near_zero = np.abs(result - low) <= 1e-30
    assert (near_zero | (np.abs(result - low - step) <= 1e-6 * step)).all()


@every_format
def test_stochastic_is_unbiased(each):
    """The mean over many blocks is the value: six standard deviations of a coin that falls one step up or down."""
    rng = np.random.default_rng(5)
    block = np.ldexp(rng.uniform(1, 1.5, each.block), rng.integers(-3, 0, each.block)).astype(np.float32)
    block[0] = 1.0  # fixes the scale of every format so that nothing saturates
    block[1::2] *= -1
    repeats = 20_000
    values = np.tile(block, (repeats, 1))
    result = through(each, values, rounding="stochastic", seed=11).astype(np.float64)
    step = steps(each, block[None])[0]
    top = each.element.largest * each.scale.value(each.encode(block)[0])[0]
    assert (np.abs(block) <= top).all()
    assert (np.abs(result.mean(axis=0) - block) <= 6 * step / 2 / np.sqrt(repeats)).all()
    # Nearest even is biased on the same values: the test can tell the difference.
    assert (np.abs(through(each, values).mean(axis=0) - block) > 6 * step / 2 / np.sqrt(repeats)).any()


@every_format
def test_stochastic_is_reproducible_and_depends_on_seed_and_position_only(each):
    values = np.random.default_rng(2).standard_normal(200_000).astype(np.float32)
    options = {"rounding": "stochastic", "seed": 3}
    packed = each.pack(values, **options)
    assert packed.tobytes() == each.pack(values, **options).tobytes()
    assert packed.tobytes() != each.pack(values, rounding="stochastic", seed=4).tobytes()
    # Packing works in chunks, encoding does not: the noise of an element does not depend on that.
    whole = values[: values.size // each.block * each.block]
    encoded = each.decode(*each.encode(whole, **options)).reshape(-1)
    np.testing.assert_array_equal(each.unpack(packed, count=whole.size), encoded)


def test_noise_is_even():
    numbers = noise(0, 0, 1 << 18)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, bins=256, range=(0, 1))[0]
    assert ((counts - 1024) ** 2 / 1024).sum() < 256 + 6 * np.sqrt(2 * 256)
    for other in (noise(1, 0, 1 << 18), noise(0, 1, 1 << 18)):
        assert abs(np.corrcoef(numbers, other)[0, 1]) < 6 / 512
