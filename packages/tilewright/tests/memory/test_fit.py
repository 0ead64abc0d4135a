# SPDX-License-Identifier: Apache-2.0
"""fit: the truth of the allocator, said beforehand, with alternatives that really do fit."""

import pytest
from hypothesis import given

from tilewright import MemoryConfigError, OutOfMemory
from tilewright.memory import (
    Allocator,
    TensorSpec,
    block_sharded,
    fit,
    height_sharded,
    interleaved,
    nd_sharded,
    width_sharded,
)

from ..cases import examples
from .strategies import specs

LARGE = TensorSpec((4096, 4096), "float32", "tile", memory="l1", chip="wormhole_n150")


@examples(60)
@given(specs(empty=True))
def test_fit_agrees_with_the_allocator(spec):
    answer = fit(spec)
    try:
        address = Allocator(spec.known_chip).allocate(spec).address
    except OutOfMemory:
        address = None
    assert bool(answer) == (address is not None)
    assert answer.tensors[0].address == address
    if answer:
        assert answer.tensors[0].bytes_per_bank == spec.allocated_bytes
        assert not answer.alternatives


@pytest.mark.parametrize(
    "request_",
    [
        TensorSpec((1, 1, 16384, 16384), page_layout="tile", memory="l1"),
        TensorSpec((2048, 1024), page_layout="tile", memory=height_sharded((1, 1), (2048, 1024))),
        TensorSpec((64, 64), page_layout="tile", memory=height_sharded((1, 9), (32, 64))),
        TensorSpec((64, 64), page_layout="tile", memory=nd_sharded((32, 32), (8, 8), distribution="contiguous_1d")),
        TensorSpec((10**5, 1000), "int32", memory=block_sharded((8, 8))),
        {"shape": (100, 64), "page_layout": "tile", "memory": height_sharded((4, 1), (25, 64))},
        {"shape": (100, 64), "dtype": "bfloat8_b", "page_layout": "row_major"},
        {"shape": (100, 64), "page_layout": "tile", "memory": block_sharded([((0, 0), (1, 1)), ((2, 0), (2, 0))])},
    ],
)
def test_alternatives_are_legal_and_fit(request_):
    answer = fit(request_, "wormhole_n150")
    assert not answer
    assert answer.tensors[0].problems[0].remedy
    assert answer.alternatives or isinstance(request_, dict)
    for option in answer.alternatives:
        assert option.spec.shape.logical == tuple(request_["shape"] if isinstance(request_, dict) else request_.shape)
        assert fit(option.spec), option
        assert option.change in str(answer)
    assert len({str(option) for option in answer.alternatives}) == len(answer.alternatives)


def test_tensors_fit_together_or_not():
    alone, other = fit(LARGE), TensorSpec((2048, 2048), "float32", "tile", memory=block_sharded((8, 8)))
    assert alone
    assert fit(other, LARGE.chip)
    together = fit([LARGE, other, other], LARGE.chip)
    assert not together
    assert [bool(tensor.problems) for tensor in together.tensors] == [False, False, True]
    assert together.alternatives
    assert "does not fit" in str(together)


def test_circular_buffers_clash_before_launch():
    free = fit(LARGE).memories[1].largest_free
    assert fit(LARGE, circular_buffers=free)
    for too_much in (free + 1, [free, 1], {"in": free, "out": 1}):
        answer = fit(LARGE, circular_buffers=too_much)
        assert not answer
        assert "make the buffers 1 bytes smaller" in answer.problems[0].remedy
        assert all(fit(option.spec, circular_buffers=too_much) for option in answer.alternatives)
    with pytest.raises(MemoryConfigError, match="at least 0 bytes"):
        fit(LARGE, circular_buffers=-1)


def test_small_l1_counts():
    spec = TensorSpec((32, 32), page_layout="tile", memory=interleaved("l1"), chip="wormhole_n150")
    assert fit(spec, l1_small_size=32768).tensors[0].address == 1499136 - 32768 - 2048


def test_a_chip_is_needed():
    with pytest.raises(MemoryConfigError, match="depends on the chip"):
        fit(TensorSpec((4, 4)))
    assert fit({"shape": (4, 4), "chip": "n150"})


def test_narrow_rows_are_noted():
    assert "multiple of 2" in fit(TensorSpec((4, 3), "bfloat16"), "n150").tensors[0].warnings[0]
    assert not fit(TensorSpec((4, 4), "bfloat16"), "n150").tensors[0].warnings


@examples(60)
@given(specs(empty=True))
def test_banks_are_those_that_hold_pages(spec):
    held = set(spec.pages().bank.tolist()) if spec.num_pages else set()
    assert spec.used_banks == held
    tensor = fit(spec).tensors[0]
    assert tensor.banks == len(held)
    assert bool(tensor.bytes_per_bank) == bool(held)


def test_a_tensor_without_elements_takes_no_memory():
    allocator, empty = Allocator("wormhole_n150"), TensorSpec((0, 5), chip="wormhole_n150")
    first, second = allocator.allocate(empty), allocator.allocate(empty)
    assert (first.size, first.address, allocator.memory_view("dram").allocated) == (0, 0, 0)
    assert first != second
    allocator.free(first)
    assert "no bytes in any bank" in str(fit(empty))


@pytest.mark.parametrize("kind", ["height", "width", "block"])
@pytest.mark.parametrize("grid", [(1, 1), (8, 1), (1, 8), (8, 8)])
def test_a_sharding_is_called_what_it_was_asked_as(kind, grid):
    make = {"height": height_sharded, "width": width_sharded, "block": block_sharded}[kind]
    for shape in ((32, 32), (64, 64), (512, 32), (32, 512), (2, 64, 64)):
        spec = TensorSpec(shape, page_layout="tile", memory=make(grid), chip="wormhole_n150")
        assert spec.memory.memory_layout.name == f"{kind.upper()}_SHARDED"
        again = spec.with_chip("blackhole_p150").with_memory(spec.memory)
        assert again.memory.memory_layout is spec.memory.memory_layout
        assert f"{kind} sharded in L1" in str(fit(spec))


def test_an_equal_tensor_is_refused_for_what_is_free_by_then():
    large = TensorSpec((1, 1, 65536, 65536), "float32", chip="n150")
    small = TensorSpec((1, 1, 1024, 4096), "float32", chip="n150")
    first, again, _, last = fit([large, large, small, large], chip="n150").tensors
    assert first.problems == again.problems
    *_, alone = fit([small, large], chip="n150").tensors
    assert last.problems == alone.problems != first.problems
