# SPDX-License-Identifier: Apache-2.0
"""Kernels that were not recorded: the lists that follow from their source, on cases small enough to write down."""

from tilewright import CoreCoord, TensorSpec, height_sharded, nd_sharded, reshard, width_sharded

TILES = TensorSpec((256, 32), page_layout="tile", chip="wormhole_n150")


def core(x, y=0):
    return CoreCoord(x, y)


def test_same_width_cuts_halves_where_the_remote_shard_ends():
    source = TILES.with_memory(height_sharded((3, 1)))  # shards of 3, 3 and 2 tiles
    plan = reshard(source, source.with_memory(height_sharded((2, 1))))  # shards of 4 tiles
    assert plan.steps[0].factory == "ReshardSameWidthFactory<true>"
    assert dict(plan.reads) == {
        (core(0), "NCRISC", "NOC_0"): ((core(0), 4096, 1), ("barrier", 1)),
        (core(0), "BRISC", "NOC_1"): ((core(0), 2048, 1), (core(1), 2048, 1), ("barrier", 1)),
        (core(1), "NCRISC", "NOC_0"): ((core(1), 4096, 1), ("barrier", 1)),
        (core(1), "BRISC", "NOC_1"): ((core(2), 4096, 1), ("barrier", 1)),
    }
    assert plan.runtime_arguments == 4 * 3 + 3 * 5


def test_same_width_into_dram_writes():
    source = TILES.with_memory(height_sharded((8, 1)))
    plan = reshard(source, source.with_memory(height_sharded((4, 1), (64, 32), buffer_type="dram")))
    assert plan.steps[0].factory == "ReshardSameWidthFactory<false>"
    assert plan.writes[core(3), "NCRISC", "NOC_0"] == ((1, 2048, 1), ("barrier", 1))
    assert plan.writes[core(3), "BRISC", "NOC_1"] == (("barrier", 1),)  # one page: nothing is left for it
    assert not plan.reads


def test_same_width_of_unaligned_rows_goes_through_a_buffer():
    rows = TensorSpec((8, 5), "float32", memory=height_sharded((2, 1)), chip="wormhole_n150")
    plan = reshard(rows, rows.with_memory(height_sharded((1, 1))))
    assert plan.steps[0].factory == "ReshardSameWidthFactory<true>"
    stretch, rows = ((core(0), 4 * 32, 1), ("barrier", 1)), ((core(0), 20, 4), ("barrier", 1))
    assert plan.reads[core(0), "NCRISC", "NOC_0"] == stretch + rows
    assert plan.reads[core(0), "BRISC", "NOC_1"][:2] == ((core(1), 4 * 32, 1), ("barrier", 1))
    assert plan.steps[0].extra_l1 == 2 * 4 * 32  # for each RISC
    assert plan.runtime_arguments == 2 * (3 + 3)


def test_same_height_goes_segment_by_segment():
    rows = TensorSpec((5, 64), memory=width_sharded((2, 1)), chip="wormhole_n150")  # 64 bytes of a row each
    plan = reshard(rows, rows.with_memory(width_sharded((1, 1), (5, 64))))
    assert plan.steps[0].factory == "ReshardSameHeightFactory<true>"
    assert plan.reads[core(0), "NCRISC", "NOC_0"] == ((core(0), 64, 2), (core(1), 64, 2), ("barrier", 1))
    assert plan.reads[core(0), "BRISC", "NOC_1"] == ((core(0), 64, 3), (core(1), 64, 3), ("barrier", 1))
    assert plan.runtime_arguments == 2 * (5 + 4 * 2)


def test_local_shards_alternate_between_riscs():
    source = TILES.with_memory("dram").with_memory(nd_sharded((32, 32), (3, 1)))  # shards 0 to 7 on three cores
    plan = reshard(source, source.with_memory(width_sharded((1, 1), (256, 32))))
    assert plan.steps[0].factory == "NdReshardCopyLocalShardFactory<true>"
    # the first core has shards 0, 3 and 6: BRISC takes the first and the third
    assert plan.writes[core(0), "BRISC", "NOC_0"] == ((core(0), 2048, 2), ("barrier", 1))
    assert plan.writes[core(0), "NCRISC", "NOC_1"] == ((core(0), 2048, 1), ("barrier", 1))


def test_pages_are_copied_by_all_cores_in_turn():
    spec = TensorSpec((32, 32 * 130), page_layout="tile", chip="wormhole_n150")
    plan = reshard(spec, spec.with_memory("l1"))
    counts = plan.steps[0].requests.counts.tolist()
    assert sorted(counts, reverse=True) == [3] * 4 + [2] * 124  # two cores have a page more, on both RISCs
    assert plan.reads[core(0), "NCRISC", "NOC_0"] == (
        (0, 2048, 1), ("barrier", 1), (1, 2048, 1), ("barrier", 1), (2, 2048, 1), ("barrier", 1),
    )  # fmt: skip
    assert plan.total_bytes * 2 == sum(plan.steps[0].traffic.values())


def test_shards_in_dram_are_filled_by_workers():
    plan = reshard(TILES, TILES.with_memory(height_sharded((4, 1), (64, 32), buffer_type="dram")))
    assert plan.steps[0].factory == "InterleavedToShardedProgramFactory"
    assert {tuple(risc.core) for risc in plan.reads} == {(3, 7), (0, 0), (0, 4), (0, 5)}
    assert {risc.risc for risc in plan.writes} == {"BRISC"}
    assert plan.reads[core(3, 7), "NCRISC", "NOC_0"] == ((0, 2048, 1), (1, 2048, 1), ("barrier", 1))
    assert plan.writes[core(3, 7), "BRISC", "NOC_1"] == ((0, 2048, 2), ("barrier", 1))


def test_shards_of_rows_are_read_with_their_padding():
    rows = TensorSpec((4, 40), chip="wormhole_n150")
    plan = reshard(rows, rows.with_memory(height_sharded((2, 1), (2, 64))))
    assert plan.reads[core(0), "NCRISC", "NOC_0"] == ((0, 128, 1), (1, 128, 1), ("barrier", 1))


def test_runs_of_shards_are_taken_in_turn():
    source = TILES.with_memory(nd_sharded((32, 32), (2, 1), distribution="contiguous_1d"))  # core 0 has shards 0 to 3
    plan = reshard(source, source.with_memory(width_sharded((1, 1), (256, 32))))
    assert plan.steps[0].factory == "NdReshardCopyLocalShardFactory<true>"
    assert "each core holds a run of them: wrong results" in plan.warnings[0]
    sent = {risc: runs for risc, runs in plan.writes.items() if len(runs) > 1}
    assert {risc.risc: runs[0][2] for risc, runs in sent.items() if risc.core == core(0)} == {"BRISC": 2, "NCRISC": 2}
