# SPDX-License-Identifier: Apache-2.0
"""The real ttnn allocates the largest cache that `capacity` promises, and refuses one block more."""

import contextlib
import random

import pytest
import ttnn as theirs

import tilewright as tw

CASES = 40


def tensors(rng):
    """Return random weights of a device, with their numbers, and a block of a cache."""
    weights = []
    for _ in range(rng.randint(0, 4)):
        dtype = rng.choice(["bfloat16", "bfloat8_b", "bfloat4_b", "float32"])
        layout = "tile" if "_b" in dtype else rng.choice(["tile", "row_major"])
        shape = (1, 1, rng.randint(1, 9000), rng.randint(1, 4500) * 2)
        weights.append((tw.TensorSpec(shape, dtype, layout, memory="dram"), rng.randint(1, 12)))
    shape = (1, rng.randint(1, 8), rng.choice([16, 32, 48, 64, 128]), rng.choice([64, 72, 80, 128, 576]))
    return weights, tw.TensorSpec(shape, rng.choice(["bfloat16", "bfloat8_b", "bfloat4_b"]), "tile", memory="dram")


def allocate(device, spec):
    """Return a tensor of ttnn like a spec."""
    layout = theirs.TILE_LAYOUT if spec.page_layout is tw.memory.PageLayout.TILE else theirs.ROW_MAJOR_LAYOUT
    shape, dtype = theirs.Shape(spec.shape.logical), getattr(theirs, spec.dtype.name)
    own = theirs.TensorSpec(shape, dtype, layout, theirs.BufferType.DRAM)
    return theirs.allocate_tensor_on_device(own, device)


def allocate_all(device, spec, count):
    """Return as many tensors like a spec as ttnn allocates, at most `count`."""
    made = []
    with contextlib.suppress(RuntimeError):
        while len(made) < count:
            made.append(allocate(device, spec))
    return made


@pytest.mark.parametrize("seed", range(CASES))
def test_the_largest_cache_is_allocated_and_one_block_more_is_not(seed):
    rng = random.Random(seed)
    weights, block = tensors(rng)
    count, region = 2 * rng.randint(1, 30), rng.choice([0, 1, 50_000_000, 23_887_872])
    report = tw.capacity(weights, "N150", cache=block, cache_count=count, trace_region_size=region)
    if not report.largest:
        pytest.skip("the weights alone do not fit")
    more = tw.capacity(
        weights, "N150", cache=block, cache_count=count, blocks=report.largest + 1, trace_region_size=region
    )
    device = theirs.open_device(device_id=0, trace_region_size=region)
    try:
        held = [allocate(device, spec) for spec, number in weights for _ in range(number)]
        for blocks, expected in ((report.largest, count), (report.largest + 1, more.refusal.placed - len(held))):
            made = allocate_all(device, block.replace(shape=(blocks, *block.shape.logical[1:])), count)
            assert len(made) == expected
            for tensor in made:
                theirs.deallocate(tensor)
    finally:
        theirs.close_device(device)
