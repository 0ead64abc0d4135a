# SPDX-License-Identifier: Apache-2.0
"""The generic reshard: ranges computed all at once equal those of the rules, applied one after the other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TensorSpec, block_sharded, height_sharded, nd_sharded, reshard, width_sharded
from tilewright.traffic.kernels import fold_ranges
from tilewright.traffic.moves import follow, run_lengths

from ..cases import examples

TILES = st.integers(1, 9)
GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def matrix_specs(draw, shape):
    """Return a tensor of tiles in L1, in shards that have a matrix form."""
    grid = draw(GRIDS)
    kind = draw(st.sampled_from([height_sharded, width_sharded, block_sharded]))
    memory = kind(grid, orientation=draw(st.sampled_from(["row_major", "col_major"])))
    return TensorSpec(shape, "bfloat16", "tile", memory=memory, chip="wormhole_n150")


@st.composite
def matrix_pairs(draw):
    shape = (32 * draw(TILES), 32 * draw(TILES))
    return draw(matrix_specs(shape)), draw(matrix_specs(shape))


def ranges_of(entries, longest):
    """Return (first entry, size, runs) of each range of a list of (core, page), None for a hole; size 0 only skips."""
    found, at = [], 0
    while at < len(entries):
        if entries[at] is None:
            end = at
            while end < len(entries) and entries[end] is None:
                end += 1
            found.append((at, 0, 0))
            at = end
            continue

        def run_from(first):
            size = 1
            while first + size < len(entries) and entries[first + size] == (
                entries[first][0],
                entries[first][1] + size,
            ):
                size += 1
            return size

        size = min(run_from(at), longest or len(entries))
        (core, page), after, runs = entries[at], at + size, 1
        if after < len(entries) and entries[after] is not None:
            other, next_page = entries[after]
            step = (other[0] - core[0], other[1] - core[1])
            in_core = other == core and next_page > page
            over_cores = other != core and min(step) >= 0 and next_page == page
            if (in_core or over_cores) and run_from(after) >= size:
                runs = 2
                while over_cores and size == 1:
                    last, beyond = entries[at + runs - 1], at + runs
                    if beyond >= len(entries) or entries[beyond] is None:
                        break
                    if entries[beyond] != ((last[0][0] + step[0], last[0][1] + step[1]), page):
                        break
                    runs += 1
        found.append((at, size, runs))
        at += size * runs
    return found


def expected_reads(source, target, longest):
    """Return the reads of each RISC, one by one, and its number of ranges."""
    before, after = source.pages(0), target.pages(0)
    size = source.page_bytes
    lists = {}
    for page in range(source.num_pages):
        place = (int(after.core_x[page]), int(after.core_y[page]))
        slot = int(after.address[page]) // size
        entries = lists.setdefault(place, [])
        entries += [None] * (slot + 1 - len(entries))
        entries[slot] = ((int(before.core_x[page]), int(before.core_y[page])), int(before.address[page]) // size)
    reads = {}
    for place, entries in lists.items():
        ranges = ranges_of(entries, longest)
        half = -(-len(ranges) // 2)
        for risc, part in (("NCRISC", ranges[:half]), ("BRISC", ranges[half:])):
            reads[place, risc] = (
                [(entries[at + k * pages][0], pages * size) for at, pages, runs in part for k in range(runs)],
                len(part),
            )
    return reads


@examples(200)
@given(matrix_pairs(), st.sampled_from(["2024", "current"]))
def test_ranges_are_those_of_the_rules(pair, version):
    source, target = pair
    if source.memory == target.memory:
        return
    plan = reshard(source, target, op="reshard", kernel=version)
    (step,) = plan.steps
    if step.factory != "ReshardGenericFactory":
        return
    expected = expected_reads(source, target, 2 if version == "2024" else None)
    found = {}
    for risc, runs in plan.reads.items():
        assert runs[-1] == ("barrier", 1)
        found[tuple(risc.core), risc.risc] = [
            (tuple(place), size) for place, size, count in runs[:-1] for _ in range(count)
        ]
    assert found == {key: reads for key, (reads, _) in expected.items()}
    words = 8 + 8 + (4 if version == "2024" else 3)
    assert step.runtime_arguments == sum(words + 3 * ranges for _, ranges in expected.values())


def test_a_range_over_cores_goes_on_while_the_step_is_the_same():
    spec = TensorSpec((32, 256), "bfloat16", "tile", memory=width_sharded((8, 1)), chip="wormhole_n150")
    plan = reshard(spec, spec.with_memory(nd_sharded((32, 256), (1, 1))), op="reshard")
    assert plan.steps[0].most_arguments == 8 + 8 + 3 + 3  # a single range, on one RISC
    assert len(plan.reads[(0, 0), "NCRISC", "NOC_0"]) == 9
    assert plan.reads[(0, 0), "BRISC", "NOC_1"] == (("barrier", 1),)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60))
def test_followed_chains(steps):
    following = np.minimum(np.arange(len(steps)) + steps, len(steps))
    at, expected = 0, []
    while at < len(steps):
        expected.append(at)
        at = int(following[at])
    assert follow(following, np.array([0])).tolist() == expected


@given(st.lists(st.booleans(), max_size=30))
def test_lengths_of_runs(continues):
    flags = [*continues, False]
    expected = [next(k for k in range(at, len(flags)) if not flags[k]) - at + 1 for at in range(len(flags))]
    assert run_lengths(np.array(continues, dtype=bool)).tolist() == expected


def folded_one_by_one(kind, place):
    """Return the blocks of a list: the longest cover of repeated patterns, tried one by one."""
    blocks, at = [], 0
    while at < len(kind):
        best = (0, 1, 1)
        for size in range(1, len(kind) - at + 1):
            times = 1
            while at + (times + 1) * size <= len(kind) and all(
                kind[at + k] == kind[at + times * size + k]
                and all(
                    place[at + times * size + k][d] - place[at + k][d]
                    == times * (place[at + size + k][d] - place[at + k][d])
                    for d in range(3)
                )
                for k in range(size)
            ):
                times += 1
            if times > 1 and size * times > best[0]:
                best = (size * times, size, times)
        blocks.append(best[1:])
        at += best[1] * best[2]
    return blocks


RANGES = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 2))


@examples(200)
@given(st.lists(RANGES, max_size=14), st.integers(1, 3))
def test_folded_patterns(ranges, times):
    ranges = ranges * times
    kind, place = [row[0] for row in ranges], [row[1:] for row in ranges]
    arrays = np.array(kind, dtype=np.int64), np.array(place, dtype=np.int64).reshape(-1, 3)
    assert fold_ranges(*arrays) == folded_one_by_one(kind, place)


def test_rows_of_different_widths_are_folded():
    rows = TensorSpec((64, 192), memory=block_sharded((2, 2), (32, 96)), chip="wormhole_n150")
    plan = reshard(rows, rows.with_memory(block_sharded((3, 2), (32, 64))), op="reshard")
    (step,) = plan.steps
    assert step.factory == "ReshardGenericFactory"
    assert plan.total_bytes == rows.nbytes
    # 32 rows of the same pattern are one block, which one RISC reads
    assert plan.reads[(0, 0), "BRISC", "NOC_1"] == (("barrier", 1),)
    assert step.runtime_arguments == 12 * (8 + 8 + 3) + 2 * (7 + 12 + 7)


def test_the_last_unit_of_a_row_is_whole():
    rows = TensorSpec((1, 29), "float32", memory=width_sharded((3, 1), (1, 12)), chip="wormhole_n150")
    plan = reshard(rows, rows.with_memory(width_sharded((1, 1), (1, 32))), op="reshard")
    assert plan.steps[0].factory == "ReshardGenericFactory"
    assert plan.total_bytes == 128  # 8 units of 16 bytes: 116 bytes of data
    assert sum(plan.steps[0].traffic.values()) == 128
