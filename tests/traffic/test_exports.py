# SPDX-License-Identifier: Apache-2.0
"""Chrome traces and workloads of tt-npe have every byte, and stay within the estimated time."""

import json

import pytest

from tilewright import MemoryConfigError, TensorSpec, block_sharded, height_sharded, reshard, width_sharded
from tilewright.traffic import chrome_trace, npe_workload

TILES = TensorSpec((256, 256), page_layout="tile", memory=block_sharded((2, 2)), chip="n150")
ROWS = TensorSpec((64, 512), memory=height_sharded((8, 1)), chip="n150")
PLANS = [
    reshard(TILES, TILES.with_memory(height_sharded((4, 2))), kernel="2024"),
    reshard(TILES, TILES.with_memory("dram")),
    reshard(ROWS, ROWS.with_memory(width_sharded((8, 1)))),
]


def bytes_of_steps(plan):
    return [sum(step.traffic.values()) for step in plan.steps]


@pytest.mark.parametrize("plan", PLANS)
def test_chrome_trace(plan, tmp_path):
    trace = chrome_trace(plan, tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text()) == trace
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert sum(event["args"].get("bytes", 0) for event in events) == sum(bytes_of_steps(plan))
    assert max(event["ts"] + event["dur"] for event in events) == pytest.approx(plan.cycles.microseconds)
    last = {}
    for event in events:  # one thing after the other on each RISC
        risc = event["pid"], event["tid"], event["cat"]
        assert event["ts"] >= last.get(risc, 0.0) - 1e-9
        last[risc] = event["ts"] + event["dur"]


@pytest.mark.parametrize("plan", PLANS)
def test_npe_workload(plan, tmp_path):
    workload = npe_workload(plan, tmp_path / "workload.json")
    assert json.loads((tmp_path / "workload.json").read_text()) == workload
    sums = [
        sum(transfer["packet_size"] * transfer["num_packets"] for transfer in phase["transfers"])
        for phase in workload["phases"]
    ]
    assert sums == bytes_of_steps(plan)
    assert workload["golden_result"]["cycles"] == int(plan.cycles)
    for phase in workload["phases"]:
        for transfer in phase["transfers"]:
            assert 0 <= transfer["phase_cycle_offset"] <= plan.cycles.cycles
            assert transfer["noc_type"] in ("NOC_0", "NOC_1")


def test_too_many_transfers():
    with pytest.raises(MemoryConfigError, match="more than 3 transfers"):
        npe_workload(PLANS[0], most_transfers=3)
