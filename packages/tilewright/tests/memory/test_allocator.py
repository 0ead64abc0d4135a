# SPDX-License-Identifier: Apache-2.0
"""The laws of the allocator: blocks never overlap, first fit, and freeing restores what was there."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import MemoryConfigError, OutOfMemory
from tilewright.memory import Allocator, Chip

from .strategies import SMALL


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200_000), st.sampled_from(["dram", "l1"])), max_size=40))
def test_blocks_never_overlap_and_sums_agree(steps):
    allocator, live = Allocator(SMALL), []
    for keep, size, memory in steps:
        if keep or not live:
            try:
                live.append(allocator.allocate_bytes(size, memory))
            except OutOfMemory:
                assert allocator.memory_view(memory).largest_free < max(size, 1)
        else:
            allocator.free(live.pop(size % len(live)))
        for name in ("dram", "l1"):
            here = sorted((each.address, each.end) for each in live if each.buffer_type.name.lower() == name)
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(here))
            view = allocator.memory_view(name)
            assert view.allocated == sum(end - start for start, end in here)
            assert view.allocated + view.free == SMALL.bank_bytes(name)
    for each in live:
        allocator.free(each)
    for name in ("dram", "l1"):
        assert allocator.memory_view(name).largest_free == SMALL.bank_bytes(name)  # all neighbours merged


def test_first_fit_takes_the_lowest_hole_of_dram_and_the_highest_of_l1():
    for name, best in (("dram", min), ("l1", max)):
        allocator = Allocator(SMALL)
        blocks = [allocator.allocate_bytes(64, name) for _ in range(6)]
        for k in (1, 4):
            allocator.free(blocks[k])
        assert allocator.allocate_bytes(32, name).address in range(
            best(blocks[1].address, blocks[4].address), best(blocks[1].address, blocks[4].address) + 64
        )


def test_regions_that_are_set_apart():
    chip = Chip.named("wormhole_n150")
    allocator = Allocator(chip, l1_small_size=1000, trace_region_size=1_000_000)
    assert allocator.memory_view("l1_small").bank_bytes == 1024
    assert allocator.memory_view("trace").bank_bytes == 90112
    assert allocator.allocate_bytes(32, "l1").end == chip.end("l1") - 1024
    assert allocator.allocate_bytes(32, "l1_small").end == chip.end("l1")
    assert allocator.allocate_bytes(32, "trace").address == chip.end("dram") - 90112
    assert Allocator(chip, worker_l1_size=1_000_000).start_address("l1") == chip.end("l1") - 1_000_000


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"l1_small_size": 10**7}, "l1_small_size=10000000"),
        ({"worker_l1_size": 10**7}, "worker_l1_size=10000000"),
        ({"trace_region_size": 10**12}, "trace_region_size=1000000000000"),
    ],
)
def test_regions_must_fit(sizes, words):
    with pytest.raises(MemoryConfigError, match=words):
        Allocator("wormhole_n150", **sizes)


def test_reserved_blocks():
    allocator = Allocator(SMALL)
    block = allocator.reserve(4096, 64, "dram")
    with pytest.raises(MemoryConfigError, match="64 bytes at 4100 of DRAM are not free"):
        allocator.reserve(4100, 64, "dram")
    allocator.free(block)
    assert allocator.memory_view("dram").largest_free == SMALL.bank_bytes("dram")


def test_report_names_what_is_there():
    allocator = Allocator("wormhole_n150")
    allocator.allocate_bytes(100, "l1")
    assert "1499008 - 1499136" in allocator.report()
    with pytest.raises(MemoryConfigError, match="SYSTEM_MEMORY is not a memory of a chip"):
        allocator.allocate_bytes(1, "system_memory")
