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


@pytest.mark.parametrize("plan", PLANS)
def test_plain_values(plan):
    data = plan.to_json(transfers=True, reads=True)
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(plan.to_json(True, True)))
    assert sum(size for _, _, size in data["traffic"]) == data["bytes"] == plan.total_bytes
    assert sum(run["nbytes"] * run["count"] for run in data["transfers"]) == plan.total_bytes
    assert [(step["operation"], step["factory"]) for step in data["steps"]] == [
        (step.operation, step.factory) for step in plan.steps
    ]
    assert len(data["reads"]) == len(plan.reads)
    assert data["estimate"]["cycles"] == plan.cycles.cycles
    assert "reads" not in plan.to_json()


def test_plain_values_without_a_network():
    spec = TensorSpec((64, 64), page_layout="tile", chip="quasar_q1")
    data = reshard(spec, spec.with_memory("l1")).to_json()
    assert data["estimate"] is None
    assert "not known" in data["not_estimated"]
