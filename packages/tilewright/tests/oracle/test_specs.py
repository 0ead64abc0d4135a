# SPDX-License-Identifier: Apache-2.0
"""Which specs are legal, what they become and where shards go, side by side with the real ttnn."""

import warnings

import numpy as np
import ttnn as theirs
from hypothesis import given
from hypothesis import strategies as st

import tilewright.ttnn as ours
from tilewright.memory import NdShardSpec
from tilewright.memory.paging import sharded_paging

from .questions import TILES, both, cores, described, memories, range_lists, ranges_of, shapes


@given(shapes, st.booleans(), st.sampled_from(TILES), st.data())
def test_specs(shape, tiled, tile, data):
    memory = data.draw(memories(shape, tile if tiled else (1, 1)))

    def ask(d):
        made = d.Tensor(
            np.zeros(shape, np.float32),
            data_type=d.float32,
            layout=d.TILE_LAYOUT if tiled else d.ROW_MAJOR_LAYOUT,
            tile=d.Tile(tile) if tiled else None,
            mem_config=memory(d),
        )
        return described(made.memory_config()), list(made.padded_shape)

    mine, real = both(ask)
    assert mine == real


@given(shapes, range_lists(), st.sampled_from(["height", "width", "block"]), st.booleans(), st.booleans(), st.data())
def test_sharding_helpers(shape, grid, kind, tiled, rows, data):
    dims = data.draw(st.none() | st.lists(st.integers(-len(shape), len(shape) - 1), max_size=2))
    method = data.draw(st.sampled_from(["sharded_across_dims", "sharded_across_dims_except"]))

    def ask(d):
        layout = d.TILE_LAYOUT if tiled else d.ROW_MAJOR_LAYOUT
        spec = d.TensorSpec(d.Shape(shape), d.bfloat16, layout, d.BufferType.L1)
        order = d.ShardOrientation.ROW_MAJOR if rows else d.ShardOrientation.COL_MAJOR
        if dims is None:
            return described(getattr(spec, f"{kind}_sharded")(cores(d, grid), order).memory_config)
        return described(getattr(spec, method)(dims, cores(d, grid), order).memory_config)

    mine, real = both(ask)
    assert mine == real


@given(
    st.lists(st.sampled_from([1, 2, 3, 4, 32, 64, 96, 128, 100]), min_size=2, max_size=4),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from(["HEIGHT", "WIDTH", "BLOCK"]),
    st.sampled_from(["ROW_MAJOR", "COL_MAJOR"]),
    st.booleans(),
    st.sampled_from([None, False, True]),
)
def test_sharded_memory_configs(shape, x, y, strategy, orientation, as_shard, tile_layout):
    def ask(d):
        grid, how = d.CoreGrid(x=x, y=y), getattr(d.ShardStrategy, strategy)
        order = getattr(d.ShardOrientation, orientation)
        if tile_layout is None:
            return described(d.create_sharded_memory_config(shape, grid, how, order, as_shard))
        return described(d.create_sharded_memory_config_(shape, grid, how, order, as_shard, tile_layout))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, real = both(ask)
    assert mine == real


@given(st.data())
def test_shard_page_mapping(data):
    rank = data.draw(st.integers(1, 4))
    page = data.draw(st.sampled_from([(1, 1), (32, 32), (1, 8)]))
    units = ([1] * rank + list(page))[-rank:]
    shape = [data.draw(st.integers(1, 6)) * unit for unit in units]
    depth = data.draw(st.integers(1, rank))
    shard = [data.draw(st.integers(1, 4)) * unit for unit in units[-depth:]]
    grid = data.draw(range_lists())
    orientation = data.draw(st.sampled_from(["ROW_MAJOR", "COL_MAJOR"]))
    strategy = data.draw(st.sampled_from(["ROUND_ROBIN_1D", "GRID_2D", "CONTIGUOUS_1D"]))

    def ask(d):
        if d is theirs:
            mapping = theirs._ttnn.bfp_utils.compute_shard_page_mapping(
                shape,
                shard,
                *page,
                cores(d, grid),
                getattr(d.ShardOrientation, orientation),
                getattr(d.ShardDistributionStrategy, strategy),
            )
            return sorted(((core.x, core.y), list(pages)) for core, pages in mapping if pages)
        paging = sharded_paging(
            tuple(shape), NdShardSpec(shard, cores(d, grid).native, orientation.lower(), strategy.lower()), page
        )
        pages_of_core = {}
        for slot, page_number in sorted((paging.slots(number), number) for number in range(paging.num_pages)):
            which = slot // paging.shard_pages
            position = which // paging.shards_per_core if paging.in_runs else which % len(paging.cores)
            pages_of_core.setdefault(tuple(paging.cores[position]), []).append(page_number)
        return sorted(pages_of_core.items())

    mine, real = both(ask)
    assert mine == real


@given(range_lists(), st.booleans(), st.integers(1, 64), st.integers(0, 200))
def test_core_order(grid, row_wise, count, units):
    def listed(d):
        return [(core.x, core.y) for core in d.corerange_to_cores(cores(d, grid), None, row_wise)]

    def compact(d):
        return ranges_of(d.num_cores_to_corerangeset(count, d.CoreCoord(8, 8), row_wise))

    def split(d):
        number, everyone, first, second, more, less = d.split_work_to_cores(d.CoreCoord(8, 8), units, row_wise)
        return number, *(ranges_of(part) for part in (everyone, first, second)), more, less

    for ask in (listed, compact, split):
        mine, real = both(ask)
        assert mine == real


def test_both_are_here():
    assert theirs.__name__ == "ttnn"
    assert ours.__name__ == "tilewright.ttnn"
