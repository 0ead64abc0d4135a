# SPDX-License-Identifier: Apache-2.0
"""Shards allocated core by core, and in lockstep of their cores: against ttnn's recorded answers, and by hand."""

import base64
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright import MemoryConfigError, OutOfMemory, TilewrightError, ttnn
from tilewright.files.spec_json import spec_from_json, spec_to_json
from tilewright.memory import (
    Allocator,
    Chip,
    Device,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    TensorSpec,
    device_address,
    fit,
)
from tilewright.ttnn.text import parse_ttnn

from .allocation_questions import answers, question
from .golden import recorded

GOLDEN = recorded("allocation_modes")
TOP = Chip.named("wormhole_n150").end("l1")
ALIGNED = 32  # bytes, the unit of allocations on this chip


def rows(cores, size, mode="per_core", count=1):
    """Return a tensor of uint8 with a shard of `count` rows of `size` on each of `cores`."""
    grid = tw.CoreRangeSet.of(cores)
    memory = MemoryConfig("height_sharded", "l1", ShardSpec(grid, (count, size)), allocation=mode)
    return TensorSpec((grid.num_cores * count, size), "uint8", memory=memory, chip="wormhole_n150")


def addresses(block):
    return [address for _, address in block.shard_addresses]


@pytest.mark.parametrize("number", range(len(GOLDEN["runs"])))
def test_addresses_are_those_of_ttnn(number):
    steps = GOLDEN["runs"][number]
    assert answers(steps) == [step.get("answer") and as_list(step["answer"]) for step in steps]


def as_list(answer):
    return sorted(answer) if isinstance(answer, list) else answer


def test_recorded_runs_have_every_mode():
    modes = [step["mode"] for steps in GOLDEN["runs"] for step in steps if "mode" in step]
    assert min(map(modes.count, ("lockstep", "range_lockstep", "per_core"))) >= 10
    assert any("free" in step for steps in GOLDEN["runs"] for step in steps)


@pytest.mark.parametrize("mode", ["lockstep", "range_lockstep", "per_core"])
def test_configs_are_printed_and_stored_as_by_ttnn(mode, tmp_path):
    stored, spec = GOLDEN["configs"][mode], rows((4, 1), 64, mode).with_chip(None)
    config = ttnn.MemoryConfig(
        ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec((4, 1), [1, 64])
    )
    if mode != "lockstep":
        getattr(config, f"experimental_set_{mode}_allocation")(True)
    assert config.native == spec.memory
    assert repr(config) == stored["text"]
    assert config.to_json() == stored["json"]
    assert ttnn.MemoryConfig.from_json(stored["json"]) == config
    assert parse_ttnn(stored["text"]).value == spec.memory
    assert not parse_ttnn(stored["text"]).extra
    path = tmp_path / "theirs.tensorbin"
    path.write_bytes(base64.b64decode(stored["tensorbin"]).ljust(stored["size"], b"\0"))
    theirs = ttnn.load_tensor(path)
    assert theirs.native.spec.with_chip(None) == spec
    ttnn.dump_tensor(tmp_path / "ours.tensorbin", theirs)
    assert ttnn.load_tensor(tmp_path / "ours.tensorbin").memory_config() == config
    assert spec_from_json(spec_to_json(spec)) == spec
    assert eval(repr(spec), vars(tw) | vars(tw.memory)) == spec  # noqa: S307  (our own text)


def test_modes_distinguish_configs():
    configs = [rows((4, 1), 64, mode).memory for mode in ("lockstep", "range_lockstep", "per_core")]
    assert len({*configs}) == 3
    assert [str(config).partition("cores")[2] for config in configs] == [
        "",
        ", allocated in range lockstep",
        ", allocated per core",
    ]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (("height_sharded", "dram", ShardSpec((2, 1), (32, 32))), "'dram'.* in L1; allocate it in lockstep"),
        (("height_sharded", "l1_small", ShardSpec((2, 1), (32, 32))), "'l1_small'"),
        (("interleaved", "l1"), "'interleaved'"),
        (("nd_sharded", "l1", None, NdShardSpec((32, 32), (2, 1))), "nd_shard_spec.*for a ShardSpec"),
    ],
)
def test_what_cannot_be_allocated_per_core(config, reason):
    with pytest.raises(MemoryConfigError, match=reason):
        MemoryConfig(*config, allocation="per_core")


def test_modes_exclude_each_other():
    config = ttnn.MemoryConfig.wrap(rows((2, 1), 32).memory)
    with pytest.raises(MemoryConfigError, match="exclude each other"):
        config.experimental_set_range_lockstep_allocation(True)
    config.experimental_set_range_lockstep_allocation(False)
    assert config.native.allocation.name == "PER_CORE"
    config.experimental_set_per_core_allocation(False)
    assert config.native.allocation.name == "LOCKSTEP"
    both = GOLDEN["configs"]["per_core"]["text"].replace("lockstep_allocation=0", "lockstep_allocation=1")
    with pytest.raises(TilewrightError, match="exclude each other"):
        parse_ttnn(both)


def test_notations_without_the_mode_refuse_it():
    tiles = rows((2, 1), 32, count=32).replace(dtype="bfloat16", page_layout="tile")
    with pytest.raises(TilewrightError, match="loses information"):
        tw.notation.write(tiles, "tt-mlir")


def test_cores_are_independent_and_lockstep_avoids_all_of_them():
    allocator = Allocator("wormhole_n150", hybrid=True)
    assert addresses(allocator.allocate(rows([((0, 0), (0, 0))], 2048))) == [TOP - 2048]
    assert addresses(allocator.allocate(rows((3, 1), 64))) == [TOP - 2112, TOP - 64, TOP - 64]
    # on cores without shards, but a multicast may pass there
    lockstep = allocator.allocate(rows([((5, 5), (5, 5))], 64, "lockstep"))
    assert lockstep.address == TOP - 2176
    narrow = allocator.allocate(rows([((2, 0), (2, 0))], 64, "range_lockstep"))
    assert narrow.address == TOP - 128
    # lockstep takes its address on all cores
    assert addresses(allocator.allocate(rows((3, 1), 64))) == [TOP - 2240, TOP - 192, TOP - 192]
    allocator.free(lockstep)
    assert addresses(allocator.allocate(rows([((0, 0), (0, 0))], 64))) == [TOP - 2176]


def test_hybrid_allocators_round_up_each_page():
    two_pages = rows((2, 1), 16, "lockstep", count=2)
    assert Allocator("wormhole_n150").allocate(two_pages).size == ALIGNED
    hybrid = Allocator("wormhole_n150", hybrid=True)
    assert hybrid.allocate(two_pages).size == 2 * ALIGNED
    # what the pages do not take is free for a shard on its own
    assert addresses(hybrid.allocate(rows((1, 1), 16))) == [TOP - ALIGNED]
    spec = replace_mode(two_pages, "per_core")
    assert (spec.allocated_bytes, two_pages.allocated_bytes) == (2 * ALIGNED, ALIGNED)
    assert spec.pages().address.min() == spec.address_on_empty_chip == TOP - 2 * ALIGNED


def replace_mode(spec, mode):
    return spec.with_memory(replace(spec.memory, allocation=mode))


def test_per_core_needs_a_hybrid_allocator():
    with pytest.raises(MemoryConfigError, match=r"hybrid=True \(ttnn: TT_METAL_ALLOCATOR_MODE_HYBRID=1"):
        Allocator("wormhole_n150").allocate(rows((2, 1), 32))
    assert Allocator("wormhole_n150").allocate(rows((2, 1), 32, "range_lockstep")).address == TOP - ALIGNED


def test_a_refused_tensor_takes_nothing():
    allocator = Allocator("wormhole_n150", hybrid=True)
    allocator.allocate(rows([((1, 0), (1, 0))], 1_000_000))
    before = allocator.memory_view("l1")
    with pytest.raises(OutOfMemory, match=r"the shard on core \(1, 0\) needs 500000 bytes"):
        allocator.allocate(rows((2, 1), 500_000))
    assert allocator.memory_view("l1") == before
    with pytest.raises(MemoryConfigError, match="are not free"):
        allocator.reserve(TOP - 32, 32, "l1")
    assert allocator.lowest_address("l1") == TOP - 1_000_000


def test_fit_has_the_address_of_every_shard():
    large, small = rows([((0, 0), (0, 0))], 1_000_000), rows((2, 1), 300_000)
    answer = fit([large, small])
    assert answer
    assert [str(core) for core, _ in answer.tensors[1].shard_addresses] == ["(0, 0)", "(1, 0)"]
    assert [at for _, at in answer.tensors[1].shard_addresses] == [TOP - 1_300_000, TOP - 300_000]
    assert f"at {TOP - 1_300_000} to {TOP - 300_000}, by core" in str(answer)
    assert "TT_METAL_ALLOCATOR_MODE_HYBRID=1" in str(answer)
    assert not fit([large, rows((2, 1), 400_000)])
    assert not fit([large, rows([((3, 3), (3, 3))], 400_000, "lockstep")])
    assert fit([large, rows([((3, 3), (3, 3))], 400_000, "range_lockstep")])
    assert not fit([large, small], circular_buffers=100_000)
    assert not fit(rows((2, 1), 32, "lockstep")).notes


def test_devices_write_each_shard_at_its_address():
    device = Device("wormhole_n150", hybrid=True)
    device.allocate(rows([((0, 0), (0, 0))], 2048))
    spec = rows((2, 2), 4, count=3)
    values = np.arange(48, dtype=np.uint8).reshape(12, 4)
    block = device.put(values, spec)
    assert np.array_equal(device.get(block), values)
    assert np.array_equal(device.read(block), values.reshape(-1))
    assert device.read_bytes((0, 0), TOP - 2048 - 96, 4, "l1").tolist() == [0, 1, 2, 3]
    assert device.read_bytes((1, 1), TOP - 96, 4, "l1").tolist() == [36, 37, 38, 39]
    assert block.pages().address.reshape(4, 3)[:, 0].tolist() == addresses(block)


def test_what_takes_one_address_refuses_tensors_without(tmp_path):
    device = Device("wormhole_n150", hybrid=True)
    device.allocate(rows([((0, 0), (0, 0))], 2048))
    tensor = tw.tensor.Tensor.of(np.zeros((2, 32), np.uint8), "uint8").to_device(device, rows((2, 1), 32).memory)
    for use in (
        device_address,
        lambda each: tw.explain(each, (0, 0)),
        tw.testing.expected_pages,
        lambda each: ttnn.Tensor.wrap(each).buffer_address(),
        lambda each: device.dump(tmp_path),
        lambda each: device.allocator.show(tmp_path / "memory.svg"),
    ):
        with pytest.raises(MemoryConfigError, match="no single address"):
            use(tensor)


def test_reshards_do_not_begin_with_addresses_on_each_core():
    spec, device = rows((2, 1), 32), Device("wormhole_n150", hybrid=True)
    with pytest.raises(MemoryConfigError, match="move it over the host"):
        tw.reshard(spec, spec.with_memory("dram"))
    before = tw.tensor.Tensor.of(np.zeros((2, 32), np.uint8), "uint8").to_device(device)
    with pytest.raises(MemoryConfigError, match="no single address"):
        tw.reshard(spec.with_memory("dram"), spec).run(before)


def test_ttnn_devices_are_hybrid_by_their_variable(monkeypatch):
    monkeypatch.setenv("TT_METAL_ALLOCATOR_MODE_HYBRID", "1")
    with ttnn.manage_device(7) as device:
        device.allocate(rows([((0, 0), (0, 0))], 2048))
        shards = tw.tensor.Tensor.of(np.ones((2, 32), np.uint8), "uint8").to_device(device, rows((2, 1), 32).memory)
        tensor = ttnn.Tensor.wrap(shards)
        assert tensor.is_per_core_allocated()
        assert tensor.experimental_per_core_buffer_address(tensor.device_coords()[0], (0, 0)) == TOP - 2048 - 32
        with pytest.raises(MemoryConfigError, match=r"core \(5, 5\) has no shard"):
            tensor.experimental_per_core_buffer_address((0, 0), ttnn.CoreCoord(5, 5))
        lockstep = device.allocate(rows((2, 1), 64, "lockstep"))
        view = ttnn.get_memory_view(device, ttnn.BufferType.L1)  # which does not count shards on their own
        assert view.total_bytes_allocated_per_bank == 64
        assert view.largest_contiguous_bytes_free_per_bank == lockstep.address - device.allocator.start_address("l1")
        assert {page.page_address for page in ttnn.get_buffer_pages(device)} >= {TOP - 2080, TOP - 32}


def test_random_questions_are_all_answered():
    for seed in range(20):
        steps = question(seed)
        assert all(("free" in step) == (found is None) for step, found in zip(steps, answers(steps), strict=True))
