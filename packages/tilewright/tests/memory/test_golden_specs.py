# SPDX-License-Identifier: Apache-2.0
"""Shapes, configs, page maps, core orders and page tables, as the real system computed them."""

import warnings

import numpy as np
import pytest

from tilewright import MemoryConfigError, core
from tilewright.memory import (
    CoreGrid,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    Shape,
    ShardSpec,
    TensorSpec,
    block_sharded,
    height_sharded,
    nd_sharded,
    sharded_across_dims,
    width_sharded,
)
from tilewright.memory.paging import sharded_paging
from tilewright.ttnn import (
    corerange_to_cores,
    create_sharded_memory_config,
    create_sharded_memory_config_,
    num_cores_to_corerangeset,
    split_work_to_cores,
)

from .golden import CHIPS, arrays, as_recorded, buffer_spec, core_ranges, corners, recorded

HELPERS = {"height_sharded": height_sharded, "width_sharded": width_sharded, "block_sharded": block_sharded}


def test_shapes():
    cases = recorded("shapes")
    assert len(cases) == 90
    for case in cases:
        spec = TensorSpec(case["shape"], "bfloat16", case["layout"], case["tile"] if case["layout"] == "TILE" else None)
        shape = spec.shape
        assert spec.padded_shape == tuple(case["padded_shape"])
        assert repr(Shape(shape.logical)) == case["repr_shape"]
        assert repr(shape.with_tile_padding()) == case["str_padded"]
        assert (shape.rank, shape.volume(), shape.logical_volume()) == (
            case["rank"],
            case["volume"],
            case["logical_volume"],
        )
        if isinstance(case["to_rank4"], str):
            assert repr(Shape(shape.logical).to_rank(4)) == case["to_rank4"]
        else:
            with pytest.raises(MemoryConfigError, match="only leading extents of 1"):
                shape.to_rank(4)


def asked_for(case):
    """Return the memory argument of a recorded tensor spec."""
    cores = core_ranges(case["grid"])
    if case["kind"] == "legacy":
        shards = ShardSpec(cores, case["shard_shape"], case["orientation"])
        return MemoryConfig(case["memory_layout"], case["buffer_type"], shards)
    if case["kind"] == "nd":
        return nd_sharded(case["shard_shape"], cores, case["orientation"], case["strategy"], case["buffer_type"])
    if case["method"] in HELPERS:
        return HELPERS[case["method"]](cores, None, case["orientation"])
    return sharded_across_dims(case["dims"], cores, case["orientation"], all_but=case["method"].endswith("except"))


def test_tensor_specs():
    cases = recorded("tensor_spec")
    assert len(cases) == 210
    for case in cases:
        arguments = (case["shape"], case["dtype"], case["layout"], case.get("tile"))
        if not case["ok"]:
            with pytest.raises(MemoryConfigError):
                TensorSpec(*arguments, memory=asked_for(case))
            continue
        spec = TensorSpec(*arguments, memory=asked_for(case))
        assert as_recorded(spec.memory) == case["memory_config"], case
        if "nbytes" in case:
            assert (list(spec.padded_shape), spec.nbytes) == (case["padded_shape"], case["nbytes"])


def made_grid(case):
    kind = case["type"]
    if kind == "CoreGrid":
        return CoreGrid(x=case["x"], y=case["y"])
    if kind == "CoreRangeSet":
        return core_ranges(case["ranges"])
    return tuple(CoreGrid(x=x, y=y) for x, y in case["grids"])


RAW = {
    "5": 5,
    "(32, 32)": (32, 32),
    "ttnn.CoreGrid(x=1, y=1)": CoreGrid(x=1, y=1),
    "(1, 2)": (1, 2),
    "(ttnn.CoreGrid(x=1, y=1),)": (CoreGrid(x=1, y=1),),
    "ShardStrategy.HEIGHT": "height",
    "H": "H",
}


def test_sharded_memory_configs():
    cases = recorded("sharded_memory_configs")
    assert len(cases) == 914
    for case in cases:
        if "raw_args" in case:
            raw = case["raw_args"]
            with pytest.raises(MemoryConfigError):
                create_sharded_memory_config(RAW[raw["shape"]], RAW[raw["core_grid"]], RAW[raw["strategy"]])
            continue
        grid, result = made_grid(case["core_grid"]), case["result"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if case["fn"].endswith("_"):
                    config = create_sharded_memory_config_(
                        case["shape"], grid, case["strategy"], case["orientation"], tile_layout=case["tile_layout"]
                    )
                else:
                    flag = case["use_height_and_width_as_shard_shape"]
                    config = create_sharded_memory_config(
                        case["shape"], grid, case["strategy"], case["orientation"], flag
                    )
            except MemoryConfigError:
                config = None
        assert (config is not None) == result["ok"], case
        if config is not None:
            assert as_recorded(config.native) == result["memory_config"], case


def test_swapped_shards_are_announced():
    with pytest.warns(UserWarning, match="swaps the shard shape"):
        create_sharded_memory_config((32, 64), CoreGrid(x=1, y=1), "block", "col_major", True)


def test_shard_page_maps():
    cases = recorded("shard_page_map")
    assert len(cases) == 150
    for case in cases:
        shards = NdShardSpec(case["shard_shape"], core_ranges(case["grid"]), case["orientation"], case["strategy"])
        arguments = (tuple(case["tensor_shape"]), shards, tuple(case["page"]))
        if not case["ok"]:
            with pytest.raises(MemoryConfigError):
                sharded_paging(*arguments)
            continue
        paging = sharded_paging(*arguments)
        places = paging.slot_to_bank(1, core)(paging.slots(np.arange(paging.num_pages)))
        shard, inside = paging.shard_table()
        assert np.array_equal(paging.slots(np.arange(paging.num_pages)), shard * paging.shard_pages + inside)
        found = {}
        for page in np.lexsort((places["addr"], places["core"])):
            found.setdefault(tuple(paging.cores[places["core"][page]]), []).append(int(page))
        assert found == {tuple(at): pages for at, pages in case["map"] if pages}, case


def test_core_orders():
    cases = recorded("core_order")
    assert len(cases) == 90
    for case in cases:
        if case["op"] == "corerange_to_cores":
            cores = core_ranges(case["ranges"])
            for flag, expected in case["row_wise"].items():
                found = corerange_to_cores(cores, row_wise=flag == "true")
                assert [list(at) for at in found] == expected
            assert corners(cores) == case["list_ranges"]
            assert corners(CoreRangeSet(set(cores.ranges))) == case["set_ranges"]
            assert corners([cores.bounding_box]) == [case["bounding_box"]]
            assert cores.num_cores == case["num_cores"]
        elif case["op"] == "num_cores_to_corerangeset":
            found = num_cores_to_corerangeset(case["n"], case["grid"], case["row_wise"])
            assert corners(found) == case["ranges"]
        else:
            split = split_work_to_cores(case["grid"], case["units"], case["row_wise"])
            assert (split[0], *split[4:]) == (case["num_cores"], case["units1"], case["units2"])
            assert [corners(cores) for cores in split[1:4]] == [case["all"], case["group1"], case["group2"]]


@pytest.mark.parametrize("name", CHIPS)
def test_chips(name):
    device, chip = recorded(name)["device"], CHIPS[name]
    assert list(chip.compute_grid) == device["compute_grid"]
    assert (chip.banks("dram"), chip.banks("l1")) == (device["num_dram_banks"], device["num_l1_banks"])
    assert [list(at) for at in chip.l1_cores] == device["l1_bank_to_logical_core"]
    assert (chip.page_alignment("dram"), chip.page_alignment("l1")) == (
        device["dram_alignment"],
        device["l1_alignment"],
    )
    assert chip.allocation_alignment == device["allocator_alignment"]
    assert (chip.base("l1"), chip.end("l1")) == (device["l1_base"], device["worker_l1_size"])
    assert (chip.base("dram"), chip.bank_bytes("dram")) == (device["dram_base"], device["dram_bank_size"])
    assert chip.bank_bytes("l1") == device["l1_bank_size"]
    assert [list(at) for at in chip.dram_noc] == device["dram_bank_noc"]
    if device["dram_bank_offsets"]:
        assert list(chip.dram_noc_offsets) == device["dram_bank_offsets"]


@pytest.mark.parametrize("name", CHIPS)
def test_buffers_and_page_tables(name):
    tables, chip = arrays(name), CHIPS[name]
    cases = recorded(name)["buffers"]
    assert len(cases) == 45
    for case in cases:
        spec = buffer_spec(case, chip)
        assert list(spec.padded_shape) == case["padded_shape"]
        assert list(spec.page_shape) == case["page_shape"]
        assert (spec.page_bytes, spec.aligned_page_bytes) == (case["page_size"], case["aligned_page_size"])
        assert (spec.num_pages, spec.bytes_per_bank) == (case["num_pages"], case["size_per_bank"])
        assert spec.address_on_empty_chip == case["address"]
        assert np.array_equal(spec.pages().rows(), tables[f"b{case['id']}_pages"])
