# SPDX-License-Identifier: Apache-2.0
"""Kernels recorded on a card, and what the runtime chose: every byte, read, barrier and choice is the same."""

from statistics import mean

from tilewright import TensorSpec, reshard
from tilewright.traffic import estimate_transfers

from ..cases import all_cases
from .golden import cores_of, memory_of, recorded, sequences, spec_of

TRACES = recorded("noc/reshards_public")["traces"]
MODEL = recorded("noc/time_model")
STEPS = recorded("noc/to_memory_config_steps")
LATENCIES = recorded("noc/latencies_public")
PATTERNS = {
    ("l1", "one_from_one"): "read_l1",
    ("l1", "one_to_one"): "write_l1",
    ("l1", "one_from_all"): "gather_l1",
    ("dram_sharded", "one_from_one"): "read_dram",
    ("dram_sharded", "one_to_one"): "write_dram",
    ("dram_interleaved", "one_from_all"): "read_interleaved",
    ("dram_interleaved", "one_to_all"): "write_interleaved",
}


def plan_of(trace):
    return reshard(spec_of(trace["source"]), spec_of(trace["target"]), kernel="2024")


@all_cases(("trace", TRACES), name=lambda trace: trace["name"])
def test_bytes_of_every_pair(trace):
    pairs = {
        (tuple(reader), tuple(source) if isinstance(source, list) else source): size
        for reader, source, size in trace["pairs"]
    }
    plan = plan_of(trace)
    assert plan.traffic == pairs == plan.steps[0].traffic
    assert plan.total_bytes == trace["bytes"] == plan.transfers.total_bytes


@all_cases(("trace", TRACES), name=lambda trace: trace["name"])
def test_every_read_and_barrier_in_order(trace):
    plan = plan_of(trace)
    assert sequences(plan.reads) == trace["sequence"]
    networks = {"NCRISC": "NOC_0", "BRISC": "NOC_1"}
    assert all(networks[risc.risc] == risc.noc for risc in plan.reads)
    (step,) = plan.steps
    assert (step.num_reads, step.num_barriers) == (trace["reads"], trace["barriers"])


@all_cases(("trace", TRACES), name=lambda trace: trace["name"])
def test_time_is_that_of_the_model(trace):
    cycles, _, resource = MODEL["predicted_public"][trace["name"]]
    estimate = plan_of(trace).cycles
    assert (round(estimate.cycles), estimate.bound_by.resource) == (cycles, resource)
    assert estimate.calibrated
    assert abs(estimate.cycles / trace["cycles"] - 1) < 0.25


def test_mean_error_of_the_time():
    errors = [abs(plan_of(trace).cycles.cycles / trace["cycles"] - 1) for trace in TRACES]
    assert len(errors) == 36
    assert mean(errors) < 0.055


def specs_of(case):
    configs = STEPS["configs"][case["layout"]]
    return [
        TensorSpec(STEPS["shape"], "bfloat16", case["layout"], memory=memory_of(configs[case[side]]), chip="n150")
        for side in ("source", "target")
    ]


def name_of(case):
    return " ".join(case[key] for key in ("layout", "source", "target"))


@all_cases(("case", STEPS["cases"]), name=name_of)
def test_operations_and_kernels(case):
    steps = reshard(*specs_of(case)).steps
    assert [[step.operation, step.factory] for step in steps] == case["steps"]


@all_cases(("case", STEPS["cases"]), name=name_of)
def test_buffers_of_operations(case):
    buffers = [
        (buffer.kind, buffer.nbytes, buffer.borrowed, {tuple(core) for core in buffer.cores.cores()})
        for step in reshard(*specs_of(case)).steps
        for buffer in step.buffers
    ]
    assert buffers == [(kind, size, own == "1", cores_of(cores)) for kind, size, own, cores in case["buffers"]]


def test_time_of_single_transfers():
    chips = {"wormhole_b0": "wormhole_n150", "blackhole": "blackhole_p150"}
    errors = {}
    for chip, memory, mechanism, pattern, count, _, same_axis, stateful, _, _, cycles in LATENCIES["rows"]:
        if mechanism != "unicast" or (memory, pattern) not in PATTERNS:
            continue
        kind = PATTERNS[memory, pattern]
        for size, measured in zip(LATENCIES["sizes"], cycles, strict=True):
            if measured is not None:
                estimate = estimate_transfers(chips[chip], kind, count, size, bool(same_axis), bool(stateful))
                errors.setdefault((chip, kind), []).append(abs(estimate.cycles / measured - 1))
    assert len(errors) == 14
    assert all(mean(values) < 0.06 for values in errors.values()), {k: mean(v) for k, v in errors.items()}
