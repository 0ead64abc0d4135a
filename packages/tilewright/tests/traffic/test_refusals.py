# SPDX-License-Identifier: Apache-2.0
"""What a reshard cannot do is refused with the numbers; holes, ragged edges and equal specs are not."""

import pytest

from tilewright import (
    MemoryConfig,
    MemoryConfigError,
    ShardSpec,
    TensorSpec,
    block_sharded,
    height_sharded,
    nd_sharded,
    reshard,
    width_sharded,
)

TILES = TensorSpec((64, 64), page_layout="tile", chip="n150")
ROWS = TensorSpec((64, 64), chip="n150")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (TILES.replace(shape=(64, 32)), r"source has shape \(64, 64\), target has shape \(64, 32\)"),
        (TILES.with_dtype("float32"), "source has dtype bfloat16, target has dtype float32"),
        (ROWS, "source has page layout TILE, target has page layout ROW_MAJOR"),
        (TILES.replace(tile=(16, 32)), "source has tile 32 x 32, target has tile 16 x 32"),
        (TILES.with_chip("p150"), "source is on wormhole_n150 .*, target on blackhole_p150"),
        (TILES.replace(alignment=(64, 128)), r"source has padded shape \(64, 64\), target \(64, 128\)"),
    ],
)
def test_different_tensors(target, message):
    with pytest.raises(MemoryConfigError, match=message) as caught:
        reshard(TILES, target)
    assert ";" in str(caught.value)  # the remedy


def test_block_sharding_in_dram():
    memory = MemoryConfig("block_sharded", "dram", ShardSpec((2, 1), (64, 32)))
    for pair in ((TILES, TILES.with_memory(memory)), (TILES.with_memory(memory), TILES)):
        with pytest.raises(MemoryConfigError, match=r"does not support block sharding in DRAM, got .* 64 x 32 on 2"):
            reshard(*pair)


def test_a_chip_is_needed():
    plain = TILES.with_chip(None)
    with pytest.raises(MemoryConfigError, match="banks and addresses depend on the chip"):
        reshard(plain, plain.with_memory("l1"))
    assert reshard(plain, TILES.with_memory("l1")).total_bytes == reshard(TILES, plain.with_memory("l1")).total_bytes


def test_a_core_that_the_chip_does_not_have():
    memory = height_sharded((1, 9), (32, 64))
    with pytest.raises(MemoryConfigError, match=r"core \(0, 8\) has no L1 bank on wormhole_n150"):
        reshard(TILES, TILES.with_memory(memory))


def test_operations_between_the_wrong_memories():
    sharded = TILES.with_memory(height_sharded((2, 1)))
    for op, pair in (
        ("reshard", (TILES, sharded)),
        ("interleaved_to_sharded", (sharded, sharded.with_memory(width_sharded((2, 1))))),
        ("sharded_to_interleaved", (TILES, sharded)),
        ("write", (TILES, sharded)),
        ("read", (sharded, TILES)),
    ):
        with pytest.raises(MemoryConfigError, match=f"{op} moves from .* to .* memory, got"):
            reshard(*pair, op=op)
    with pytest.raises(MemoryConfigError, match="unknown operation 'send'"):
        reshard(TILES, sharded, op="send")
    with pytest.raises(MemoryConfigError, match="unknown kernels '2023'"):
        reshard(TILES, sharded, kernel="2023")


def test_what_has_no_reshard_is_copied():
    rows = TensorSpec((8, 12), "int8", memory=block_sharded((2, 2), (4, 6)), chip="n150")
    narrow = TensorSpec((64, 64), page_layout="tile", tile=(32, 16), memory=height_sharded((2, 1)), chip="n150")
    for source, memory, message in (
        (rows, block_sharded((3, 2), (4, 4)), "pages of a multiple of 16 bytes, got 6 bytes"),
        (narrow, width_sharded((2, 1)), "tiles 32 wide, got 32 x 16"),
    ):
        target, plain = source.with_memory(memory), source.with_memory("dram")
        for pair in ((source, target), (source, plain), (plain, source)):
            assert [step.operation for step in reshard(*pair).steps] == ["CopyDeviceOperation"]
        for op, pair in (
            ("reshard", (source, target)),
            ("sharded_to_interleaved", (source, plain)),
            ("interleaved_to_sharded", (plain, source)),
        ):
            with pytest.raises(MemoryConfigError, match=message):
                reshard(*pair, op=op)


def test_pages_of_different_sizes_without_matrix_shards_are_copied():
    rows = TensorSpec((64, 96), memory=nd_sharded((8, 32), (2, 1)), chip="n150")
    target = rows.with_memory(nd_sharded((8, 48), (2, 1)))
    assert [step.factory for step in reshard(rows, target).steps] == ["DefaultRowMajor"]
    with pytest.raises(MemoryConfigError, match="pages of equal size, got 64 and 96 bytes"):
        reshard(rows, target, op="reshard")


def test_equal_specs_are_an_empty_plan():
    spec = TILES.with_memory(height_sharded((2, 1)))
    plan = reshard(spec, spec)
    assert plan.is_empty
    assert (plan.steps, plan.traffic, plan.total_bytes, plan.local, plan.cycles.cycles) == ((), {}, 0, 1.0, 0.0)
    assert (dict(plan.reads), len(plan.transfers), plan.links, plan.busiest_link) == ({}, 0, {}, None)
    assert "nothing to do" in plan.explain()


def test_what_does_not_fit_is_planned_and_says_so():
    spec = TensorSpec((8192, 8192), page_layout="tile", memory=block_sharded((8, 8)), chip="n150")
    plan = reshard(spec, spec.with_memory(height_sharded((8, 8))))
    assert not plan.fits
    assert max(plan.peak_l1.values()) == 2 * 8192 * 8192 * 2 // 64
    assert "does not fit" in plan.explain()


def test_buffers_that_do_not_fit_fall_back_to_a_copy():
    rows = TensorSpec((4096, 64), "float32", memory="l1", chip="n150")
    tall = rows.with_memory(height_sharded((8, 1), (512, 64), buffer_type="dram"))
    assert reshard(rows, tall).steps[0].factory == "InterleavedToShardedProgramFactory"
    large = TensorSpec((65536, 64), "float32", memory="l1", chip="n150")
    tall = large.with_memory(height_sharded((8, 1), (8192, 64), buffer_type="dram"))
    assert reshard(large, tall).steps[0].factory == "DefaultRowMajor"


def test_holes_and_ragged_edges_are_planned():
    spec = TensorSpec((96, 160), page_layout="tile", memory=nd_sharded((64, 64), (2, 1)), chip="n150")
    for memory in (block_sharded((2, 2), (64, 96)), nd_sharded((32, 96), (3, 1)), "dram"):
        plan = reshard(spec, spec.with_memory(memory))
        assert plan.total_bytes == spec.nbytes
