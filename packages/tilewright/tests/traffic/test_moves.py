# SPDX-License-Identifier: Apache-2.0
"""Moves recorded on a simulated Wormhole and Blackhole: every network, pair of nodes and size of packet is the same."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright import (
    Chip,
    CoreCoord,
    CoreRange,
    CoreRangeSet,
    Device,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    Tensor,
    TensorSpec,
    height_sharded,
    nd_sharded,
    reshard,
    width_sharded,
)
from tilewright.traffic import NocMap
from tilewright.traffic.dram_workers import dram_workers

from ..cases import all_cases
from .golden import recorded

BOTH = [recorded(f"moves/{chip}_public") for chip in ("wormhole", "blackhole")]
MOVES = [(file["chip"], move) for file in BOTH for move in file["moves"]]
REFUSED = [(file["chip"], move) for file in BOTH for move in file["refused"]]


def memory_of(description):
    layout, buffer = description["layout"], description["buffer"]
    if layout == "interleaved":
        return MemoryConfig(layout, buffer)
    cores = CoreRangeSet([CoreRange((x0, y0), (x1, y1)) for x0, y0, x1, y1 in description["grid"]])
    shard, orientation = description["shard"], description["orientation"]
    if layout == "nd_sharded":
        shards = NdShardSpec(shard, cores, orientation, description["strategy"])
        return MemoryConfig(layout, buffer, nd_shard_spec=shards)
    return MemoryConfig(layout, buffer, ShardSpec(cores, shard, orientation))


def plan_of(machine, move):
    chip = Chip.named(machine["chip"], machine["dispatch"], machine["harvested"])
    specs = [
        TensorSpec(move["shape"], move["dtype"], move["layout"], move["tile"], memory_of(move[side]), chip)
        for side in ("src", "dst")
    ]
    return reshard(*specs, source_address=move.get("src_address"), target_address=move.get("dst_address"))


def packets_of(machine, plan):
    """Return the packets of a plan in the form of the recording, in which a DRAM node is a bank and its port."""
    noc_map = plan.noc_map

    def name(endpoint, noc):
        if isinstance(endpoint, CoreCoord):
            return "{},{}".format(*noc_map.position(endpoint, noc))
        port = f".{noc_map.port(endpoint, noc)}" if noc_map.chip.dram_ports else ""
        return f"D{endpoint}{port}"

    return {
        (int(noc[-1]), kind, name(origin, int(noc[-1])), name(to, int(noc[-1]))): sizes
        for (noc, kind, origin, to), sizes in plan.packets.items()
    }


def is_moved_wrongly(move):
    return not move.get("data_right", True)


@all_cases(("case", MOVES), name=lambda case: case[1]["id"])
def test_every_request_of_a_move(case):
    machine, move = case
    plan = plan_of(machine, move)
    assert [step.operation for step in plan.steps] == move["operations"]
    if is_moved_wrongly(move):  # by the runtime, which a warning tells
        assert any("wrong results" in warning for warning in plan.warnings)
        return
    assert not any("wrong results" in warning for warning in plan.warnings)
    expected = {tuple(flow): {int(size): count for size, count in sizes.items()} for *flow, _, _, sizes in move["noc"]}
    assert packets_of(machine, plan) == expected


@all_cases(("case", REFUSED), name=lambda case: case[1]["id"])
def test_moves_that_the_runtime_refuses_are_refused_or_doubted(case):
    machine, move = case
    if "Region size" in move["error"]:
        return  # the copy from the host, not the move
    try:
        doubts = plan_of(machine, move).warnings
    except ValueError as problem:
        assert "contiguous_1d" in str(problem)  # noqa: PT017
        return
    assert any("refuse moves of all tiles but 32 x 32" in doubt for doubt in doubts)


def test_how_many_moves_were_recorded():
    assert len(MOVES) == 301 + 188
    assert sum(is_moved_wrongly(move) for _, move in MOVES) == 1


def cores(text):
    return [tuple(map(int, pair.split(","))) for pair in text.split()]


N150 = Chip.named("n150", "slow")
WITHOUT_ROW_8 = replace(N150, noc_rows=(1, 2, 3, 4, 5, 7, 9, 10, 11, 8), dram_workers=())
WORKERS = [
    (N150, "3,8 0,0 0,4 0,5 4,0 7,8 4,1 4,7 4,6 4,2 4,4 4,5"),
    (WITHOUT_ROW_8, "0,8 0,0 0,4 0,5 4,0 4,8 4,1 4,6 7,3 4,2 4,4 4,5"),
    (replace(WITHOUT_ROW_8, dispatch="fast"), "3,7 0,0 0,4 0,5 4,0 7,7 4,1 4,6 6,3 4,2 4,4 4,5"),
    (Chip.named("n150"), "3,7 0,0 0,4 0,5 4,0 7,7 4,1 4,6 6,3 4,2 4,4 4,5"),
    (
        replace(Chip.named("n300"), noc_rows=(2, 3, 4, 5, 7, 9, 10, 11, 1, 8), dram_workers=()),
        "0,7 3,0 0,3 0,4 7,2 4,7 4,0 4,5 6,2 4,1 4,3 4,4",
    ),
    (Chip.named("n300"), "0,7 3,0 0,3 0,4 7,2 4,7 4,0 4,5 6,2 4,1 4,3 4,4"),
    (Chip.named("p150", "slow", harvested=1), "0,9 0,0 0,7 0,3 7,9 7,1 7,6 7,4"),
    (Chip.named("p150", "slow"), "0,9 0,0 0,7 0,3 6,9 6,1 6,6 6,4"),
    (Chip.named("p100"), "0,9 0,0 0,7 6,9 6,1 6,6 6,4"),
]


@pytest.mark.parametrize(("chip", "expected"), WORKERS)
def test_the_cores_that_work_for_dram_banks_are_those_of_the_runtime(chip, expected):
    assert dram_workers(NocMap.of(chip), chip.dram_banks) == cores(expected)


def test_chips_without_a_known_network_have_workers_all_the_same():
    quasar = Chip.named("quasar_q1")
    assert len(dram_workers(NocMap.of(quasar), quasar.dram_banks)) == quasar.dram_banks


ROWS = TensorSpec((6, 24), "float32", memory=height_sharded((2, 1)), chip="n150")


def test_a_detour_in_vain_runs_all_the_same():
    plan = reshard(ROWS, ROWS.with_memory(nd_sharded((3, 6), (2, 2))))
    assert [step.source for step in plan.steps] == [ROWS, ROWS]
    assert "in vain" in plan.explain()
    before = Tensor.of(np.arange(144, dtype="float32").reshape(6, 24), "float32")
    device = Device("n150")
    tensor = before.to_memory_config(ROWS.memory).to_device(device) if before.spec.chip else before
    source = device.put(tensor.numpy(), ROWS)
    after = plan.run(source, device)
    assert np.array_equal(device.get(after), tensor.numpy())


def test_a_target_given_as_nd_sharded_needs_no_detour():
    given = [width_sharded((2, 1), (6, 12)), width_sharded((2, 1)), nd_sharded((6, 12), (2, 1))]
    plans = [reshard(ROWS, ROWS.with_memory(memory)) for memory in given]
    assert [len(plan.steps) for plan in plans] == [2, 2, 1]
    assert plans[1].target.memory == plans[2].target.memory  # the same shards, stated otherwise
    assert reshard(plans[2].source, plans[2].target.with_memory(plans[2].target.memory)).steps == plans[2].steps


def test_a_kernel_that_never_ends_is_named():
    rows = TensorSpec((2, 4, 6), "float32", chip="n150")
    [doubt] = reshard(rows, rows.with_memory(nd_sharded((1, 2, 16), (2, 1)))).warnings
    assert "rows have 24 bytes, pages 64: this kernel never ends" in doubt
