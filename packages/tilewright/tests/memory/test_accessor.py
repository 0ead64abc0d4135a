# SPDX-License-Identifier: Apache-2.0
"""The words of a `TensorAccessor`, as ttnn made them, and what they say of every page."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright import MemoryConfigError, parse_accessor
from tilewright.memory import Chip, CoreCoord, CoreRange, MemoryConfig, Paging, ShardSpec, TensorSpec, nd_sharded
from tilewright.memory.accessor import RUNTIME_BITS

from .golden import core_ranges
from .strategies import SMALL, specs

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/accessor/accessor_public.json").read_text(encoding="utf-8"))
WORDS = [1, 2048, 2, 4, 4, 6, 2, 3, 319951378, 320016915]  # of four cores of a Wormhole


def chip_of(case):
    return Chip.named(case["chip"], dispatch=case["dispatch"])


def spec_of(case, chip):
    """Return the spec of a recorded placement."""
    memory = case["memory"]
    arguments = (case["shape"], case["dtype"], case["layout"], case["tile"])
    if memory["layout"] == "interleaved":
        return TensorSpec(*arguments, memory["buffer"], chip)
    cores, shard, order, buffer = (
        core_ranges(memory["grid"]),
        memory["shard"],
        memory["orientation"],
        memory["buffer"],
    )
    if memory["layout"] == "nd_sharded":
        return TensorSpec(*arguments, nd_sharded(shard, cores, order, memory["strategy"], buffer), chip)
    return TensorSpec(*arguments, MemoryConfig(memory["layout"], buffer, ShardSpec(cores, shard, order)), chip)


def names_of(bits):
    return [name for name, bit in RUNTIME_BITS.items() if bits & bit]


def from_words(spec, arguments):
    """Return the spec that the words give with what they leave open."""
    shape = None if arguments.is_sharded else spec.shape.logical
    tile, width = (spec.tile, None) if spec.is_tiled else (None, spec.page_shape[1])
    return TensorSpec.from_accessor(arguments, spec.dtype, spec.page_layout, tile, shape, width)


def test_virtual_coordinates_of_chips():
    assert len(GOLDEN["chips"]) == 4
    for name, recorded in GOLDEN["chips"].items():
        board, dispatch = name.split("/")
        chip = Chip.named(board, dispatch=dispatch)
        across, down = recorded["compute_grid"]
        assert [chip.virtual_cores[x, 0].x for x in range(across)] == recorded["virtual_x"]
        assert [chip.virtual_cores[0, y].y for y in range(down)] == recorded["virtual_y"]
        assert chip.cores_at(chip.virtual_cores.values()) == tuple(chip.virtual_cores)
        assert chip.dram_banks == recorded["dram_banks"]


def test_recorded_placements():
    placements = GOLDEN["placements"]
    assert (len(placements), sum(case.get("uneven", False) for case in placements)) == (339, 5)
    for case in placements:
        chip = chip_of(case)
        spec = spec_of(case, chip)
        arguments = spec.accessor_arguments()
        assert list(arguments.words) == case["words"], case["id"]
        assert arguments.runtime_words == ()
        found = parse_accessor([7, *case["words"], 7], chip, offset=1, num_pages=spec.num_pages)
        assert (found.words, found.offset) == (arguments.words, 1)
        assert from_words(spec, found).accessor_arguments() == arguments
        if case.get("uneven"):
            assert "ttnn refuses to copy" in found.explain().replace("\n", " ")
            for refused in (spec.pages, found.pages, lambda: found.shards_of(found.cores[0])):  # noqa: B023
                with pytest.raises(MemoryConfigError, match="the same number of shards per core"):
                    refused()
            continue
        assert found.num_pages == case["pages"][0]
        pages = spec.pages(case["address"])
        assert np.array_equal(found.pages(case["address"]).rows(), pages.rows()), case["id"]
        held = {
            core: [int(page) for shard in found.shards_of(core) for page in found.pages_of_shard(shard)]
            for core in found.cores
        }
        assert {core: own for core, own in held.items() if own} == pages.by_core(), case["id"]


def test_recorded_refusals():
    assert len(GOLDEN["refused"]) == 9
    for case in GOLDEN["refused"]:
        with pytest.raises(MemoryConfigError):
            spec_of(case, chip_of(case)).accessor_arguments()


def test_recorded_kernels():
    slices = {0: 0, 16: 0, 128: 0}
    assert len(GOLDEN["operations"]) == 272
    for case in GOLDEN["operations"]:
        chip = chip_of(case)
        for kernel in case["kernels"]:
            for tensor, first, count, bits in kernel["accessors"]:
                spec = spec_of(case[tensor], chip)
                arguments = spec.accessor_arguments(names_of(bits))
                assert list(arguments.words) == kernel["words"][first : first + count], case["id"]
                bare = parse_accessor(kernel["words"], chip, first)
                assert (bare.words, bare.runtime_words is None) == (arguments.words, bits != 0)
                assert bare.explain().count("\n") >= count + 1
                given_all = parse_accessor(kernel["words"], chip, first, arguments.runtime_words, spec.num_pages)
                if not case[tensor].get("uneven"):
                    assert np.array_equal(given_all.pages().rows(), spec.page_map.table(0).rows())
                slices[bits] += 1
    assert slices == {0: 598, 16: 122, 128: 12}


RUNTIMES = [
    (),
    ("tensor_shape",),
    ("shard_shape", "coordinates"),
    ("rank", "tensor_shape", "shard_shape"),
    ("banks", "coordinates"),
    tuple(RUNTIME_BITS)[:-1],
]
KNOWN = tuple(
    Chip.named(name, dispatch=dispatch) for name in ("n150", "n300", "p100", "p150") for dispatch in ("fast", "slow")
)


@settings(max_examples=150)
@given(specs(chips=KNOWN), st.sampled_from(RUNTIMES), st.integers(0, 3))
def test_words_say_what_the_spec_says(spec, runtime, offset):
    assert spec.paging.squeeze().squeeze() == spec.paging.squeeze()
    late = runtime if spec.memory.is_sharded else ("page_size",) * bool(runtime)
    arguments = spec.accessor_arguments(late)
    words = [*[5] * offset, *arguments.words, 9]
    found = parse_accessor(words, spec.chip, offset, [*arguments.runtime_words, 9], spec.num_pages)
    assert (found.words, found.runtime_words) == (arguments.words, arguments.runtime_words)
    assert np.array_equal(found.pages().rows(), spec.page_map.table(0).rows())
    assert not set(found.open) & set(RUNTIME_BITS)
    assert set(parse_accessor(words, spec.chip, offset).open) >= set(late)
    again = from_words(spec, found)
    assert again.accessor_arguments(late) == arguments
    assert np.array_equal(again.pages(0).rows()[:, :2], spec.pages(0).rows()[:, :2])


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=5), st.integers(1, 5), st.booleans()
)
def test_squeezing_moves_no_page(dimensions, count, in_runs):
    grid, shard = zip(*dimensions, strict=True)
    paging = Paging(grid, shard, tuple(CoreRange((0, 0), (count - 1, 0)).cores()), in_runs)
    squeezed = paging.squeeze()
    assert len(squeezed.grid) <= len(grid)
    assert all(np.array_equal(a, b) for a, b in zip(paging.shard_table(), squeezed.shard_table(), strict=True))
    own = [paging.pages_of_shard(number) for number in range(paging.num_shards)]
    assert np.array_equal(np.sort(np.concatenate(own)), np.arange(paging.num_pages))
    for number, pages in enumerate(own):
        assert [paging.page_at(number * paging.shard_pages + k) for k in range(paging.shard_pages)].count(None) == (
            paging.shard_pages - len(pages)
        )
        assert (np.diff(np.asarray(paging.slots(pages))) > 0).all()


def test_without_a_chip_the_words_say_less():
    found = parse_accessor(WORDS)
    assert found.coordinates[:2] == ((18, 18), (19, 18))
    assert found.paging.cores == found.coordinates
    assert found.pages_of_shard(3).tolist() == [15, 16, 17, 21, 22, 23]
    assert found.shards_of((19, 19)) == range(3, 4, 4)
    assert "chip" in found.open
    for refused in (found.pages, lambda: found.cores):
        with pytest.raises(MemoryConfigError, match="depend on the chip; pass chip"):
            refused()
    in_dram = parse_accessor([3, 2048, 1, 2, 12, 2, 16777216])
    assert in_dram.pages().by_core()[CoreCoord(1, 0)] == [2, 3, 6, 7, 10, 11]


@pytest.mark.parametrize(
    ("words", "chip", "message"),
    [
        ([], None, "expected 1 word of config from compile-time word 0 on, got 0 of 0 words"),
        ([257, 2048], None, r"expected no bits above 128, got 257 \(0x101\) in word 0; check the offset"),
        ([18, 2048], None, "expected only page_size of an interleaved tensor at run time, got 18"),
        ([129, *WORDS[1:]], None, "expected the page_size of a sharded tensor at compile time, got 129"),
        ([5, *WORDS[1:]], None, "expected rank at run time only with both shapes, got 5"),
        ([9, *WORDS[1:]], None, "expected banks at run time only with the coordinates, got 9"),
        ([2, 2040], None, "a multiple of 32 in DRAM, got 2040; check the offset"),
        ([2, 2080], "p150", "a multiple of 64 in DRAM, got 2080"),
        ([0, 0], None, "got 0; check the offset, .* 0, 0 of an optional tensor that was left out"),
        ([1, 2048, 9, *WORDS[3:]], None, "expected a rank from 1 to 8, got 9 in word 2"),
        ([1, 2048, 2, 0, *WORDS[4:]], None, "expected 1 to 1024 banks, got 0 in word 3"),
        ([*WORDS[:6], 2, 0, *WORDS[8:]], None, r"expected shards of at least 1 page, got \(2, 0\)"),
        (WORDS[:7], None, "expected 2 words of shard_shape from compile-time word 6 on, got 1 of 7 words"),
        (WORDS[:9], None, "expected 2 words of coordinates from compile-time word 8 on, got 1"),
        ([*WORDS[:9], WORDS[8]], None, r"expected distinct cores .* got \(18, 18\); check the offset"),
        ([1, 2048, 1, 1, 4, 4, WORDS[8]], None, r"and 0 after 1 coordinates, got \(19, 18\)"),
        ([3, 2048, 1, 1, 4, 4, 257], None, r"expected distinct banks \(bank, 0\) .* got \(1, 1\)"),
        ([3, 2048, 1, 1, 4, 4, 12 << 8], "n150", r"core \(12, 0\) is not a DRAM bank of wormhole_n150"),
        (WORDS, "p150", r"\(18, 18\) are no virtual coordinates of a core of blackhole_p150 with fast dispatch"),
        ([2, 1 << 32], None, "expected a word from 0 to 4294967295, got 4294967296"),
    ],
)
def test_malformed_words_are_refused(words, chip, message):
    with pytest.raises(MemoryConfigError, match=message):
        parse_accessor(words, chip)


def test_what_cannot_be_packed_is_refused():
    memory = tw.height_sharded((2, 1))
    spec = TensorSpec((128, 64), page_layout="tile", memory=memory, chip="n150")
    with pytest.raises(MemoryConfigError, match="unknown part 'shape' of an accessor"):
        spec.accessor_arguments(["shape"])
    with pytest.raises(MemoryConfigError, match="rank at run time only with both shapes"):
        spec.accessor_arguments(["rank"])
    with pytest.raises(MemoryConfigError, match="page_size of a sharded tensor at compile time"):
        spec.accessor_arguments("page_size")
    assert spec.with_memory("l1").accessor_arguments("tensor_shape").words == (0, 2048)
    for chip in ("grayskull", "quasar", SMALL):
        with pytest.raises(MemoryConfigError, match=r"add virtual_columns and virtual_rows, .* to \[cores\] of"):
            spec.with_chip(chip).accessor_arguments()
        assert spec.with_chip(chip).with_memory("dram").accessor_arguments().words == (2, 2048)
    with pytest.raises(MemoryConfigError, match=r"core \(8, 0\) has no L1 bank"):
        spec.with_memory(tw.height_sharded((9, 1), (32, 64))).accessor_arguments()
    with pytest.raises(MemoryConfigError, match="depend on the chip"):
        spec.with_chip(None).accessor_arguments()


def test_open_facts_must_agree_with_the_words():
    found = parse_accessor(WORDS, "n150")
    with pytest.raises(MemoryConfigError, match="pages of 32 x 32 float32 have 4096 bytes, but the words state 2048"):
        TensorSpec.from_accessor(found, "float32", "tile")
    with pytest.raises(MemoryConfigError, match="elements of a shard's row; pass row_width"):
        TensorSpec.from_accessor(found, "float32")
    with pytest.raises(MemoryConfigError, match="shape of the tensor; pass shape"):
        TensorSpec.from_accessor(parse_accessor([2, 2048], "n150"), "bfloat16", "tile")
    with pytest.raises(MemoryConfigError, match="choose one"):
        TensorSpec.from_accessor(parse_accessor(WORDS), "bfloat16", "tile")
    rows = TensorSpec.from_accessor(found, "float32", row_width=512)
    assert (rows.shape.logical, rows.memory.sharding.shape) == ((4, 6, 512), (2, 3, 512))


def test_words_left_open_are_asked_for():
    found = parse_accessor([17, 2048, 1, 2, 192, 319951378], "n150")
    assert found.open[0] == "tensor_shape"
    assert found.num_pages is None
    with pytest.raises(MemoryConfigError, match="tensor_shape is left to run time; pass the common runtime words"):
        found.pages()
    with pytest.raises(MemoryConfigError, match="expected 1 word of tensor_shape from common runtime word 0 on, got 0"):
        parse_accessor([17, 2048, 1, 2, 192, 319951378], runtime=[])
    with pytest.raises(MemoryConfigError, match="pass num_pages"):
        parse_accessor([2, 2048], "n150").pages()
    with pytest.raises(MemoryConfigError, match=r"expected a core of \(0, 0\), \(1, 0\), .* got \(5, 5\)"):
        parse_accessor(WORDS, "n150").shards_of((5, 5))
    with pytest.raises(MemoryConfigError, match="expected a shard from 0 to 3, got 4"):
        parse_accessor(WORDS).pages_of_shard(4)
