# SPDX-License-Identifier: Apache-2.0
"""Traces against plans: recorded kernels are clean, and a read from the wrong core is named with its page."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import examples
from tests.traffic.strategies import pairs

import tilewright as tw
from tilewright.testing import check_operation
from tilewright_audit import audit_noc_trace

from .noc_traces import KERNELS, events_of, place, spec_of


def check(tmp_path, kernel, events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    return audit_noc_trace(path, spec_of(kernel["source"]), spec_of(kernel["target"]))


def test_there_are_kernels():
    assert len(KERNELS) >= 36


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_recorded_kernels_are_clean(name, tmp_path):
    report = check(tmp_path, KERNELS[name], events_of(KERNELS[name]))
    assert report.clean, str(report)
    assert report.counts["as_planned"] == report.counts["riscs"]
    assert report.counts["reads"] == KERNELS[name]["reads"]


@pytest.mark.parametrize("name", ["1x2_BLOCK_TO_2x4_HEIGHT", "DRAM_TO_1x1_HEIGHT"])
def test_operations_are_checked_with_their_requests(name):
    kernel = KERNELS[name]
    source, target = (
        tw.Tensor.of(np.zeros(spec.shape.logical), spec.dtype, page_layout="tile", memory=spec.memory, chip=spec.chip)
        for spec in (spec_of(kernel["source"]), spec_of(kernel["target"]))
    )
    before = source.to_device(tw.Device(source.spec.known_chip))
    events = events_of(kernel)
    checked = check_operation(lambda x: (x.to_device(x.device, target.memory), events), before, target)
    assert checked.requests >= kernel["reads"]
    assert not checked.unchecked
    with pytest.raises(AssertionError, match="the requests of the NoC are not the plan"):
        check_operation(lambda x: x.to_device(x.device, target.memory), before, target, trace=events[:2] + events[3:])


@pytest.mark.parametrize("name", ["1x2_BLOCK_TO_2x4_HEIGHT", "DRAM_TO_1x1_HEIGHT"])
def test_a_read_from_the_wrong_core_is_named_with_its_page(name, tmp_path):
    kernel = KERNELS[name]
    events = events_of(kernel)
    reads = [event for event in events if event["type"] == "READ"]
    wrong = reads[3]
    plan = tw.reshard(spec_of(kernel["source"]), spec_of(kernel["target"]), kernel="2024")
    other = 11 if isinstance(plan.noc_map.endpoints[-1], int) and name.startswith("DRAM") else [5, 5]
    wrong["dx"], wrong["dy"] = place(other)
    report = check(tmp_path, kernel, events)
    pages = [finding for finding in report.findings if finding.kind == "wrong page"]
    assert len(pages) == 1
    size = wrong["num_bytes"] // kernel["page_bytes"]
    expected = f"page {3 * size}" if size == 1 else f"pages {3 * size} to {4 * size - 1}"
    assert f"core (0, 0) NCRISC, request 3: read of {wrong['num_bytes']} bytes" in pages[0].message
    assert f": {expected} of " in pages[0].message
    assert any(finding.kind == "traffic" for finding in report.findings)


def test_a_read_that_is_missing_twice_or_short_is_found(tmp_path):
    kernel = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
    events = events_of(kernel)
    for changed in (events[:2] + events[3:], events[:3] + events[2:], [events[0] | {"num_bytes": 64}, *events[1:]]):
        report = check(tmp_path, kernel, changed)
        assert {"traffic", "wrong page"} <= {finding.kind for finding in report.findings}


def test_two_reads_in_the_other_order_are_a_wrong_page(tmp_path):
    kernel = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
    events = events_of(kernel)
    events[3], events[4] = events[4], events[3]
    [finding] = check(tmp_path, kernel, events).findings
    assert finding.kind == "wrong page"


def test_a_barrier_too_few_is_a_warning(tmp_path):
    kernel = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
    events = events_of(kernel)
    at = next(k for k, event in enumerate(events) if event["type"] != "READ")
    report = check(tmp_path, kernel, events[:at] + events[at + 1 :])
    assert [(finding.kind, finding.severity.value) for finding in report.findings] == [("barriers", "warning")]


def test_another_order_everywhere_is_another_kernel(tmp_path):
    kernel = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
    events = events_of(kernel)
    reads = [event for event in events if event["type"] == "READ"]
    report = check(tmp_path, kernel, list(reversed(reads)))
    assert [(finding.kind, finding.severity.value) for finding in report.findings] == [("order", "warning")]


def test_rows_of_another_card_are_named_in_order(tmp_path):
    kernel = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
    rows = {1: 2, 2: 12}  # row 12 does not exist on the network of the chip: all rows are taken in order
    events = [
        event | {name: rows[event[name]] for name in ("sy", "dy") if name in event} for event in events_of(kernel)
    ]
    assert check(tmp_path, kernel, events).clean


def test_an_empty_plan_is_refused(tmp_path):
    kernel = KERNELS["1x2_BLOCK_TO_2x4_HEIGHT"]
    path = tmp_path / "trace.json"
    path.write_text("[]")
    with pytest.raises(tw.MemoryConfigError, match="equal"):
        audit_noc_trace(path, spec_of(kernel["source"]), spec_of(kernel["source"]))


def events_of_step(step, noc_map):
    """Return the events that a card would record of a step, RISC by RISC."""
    events = []
    for kind, lists in (("READ", step.reads), ("WRITE_", step.writes)):
        for risc, runs in lists.items():
            x, y = noc_map.position(risc.core)
            common = {"proc": risc.risc, "noc": risc.noc, "sx": x, "sy": y}
            time = 1000
            for run in runs:
                for _ in range(run[-1]):
                    time += 128
                    if run[0] == "barrier":
                        name = "READ_BARRIER_END" if kind == "READ" else "WRITE_BARRIER_END"
                        events.append(common | {"type": name, "timestamp": time})
                        continue
                    dx, dy = noc_map.position(run[0])
                    events.append(common | {"type": kind, "dx": dx, "dy": dy, "num_bytes": run[1], "timestamp": time})
    return events


@examples(60)
@given(pairs(), st.data())
def test_a_trace_of_any_plan_is_clean_and_one_without_a_request_is_not(pair, data):
    source, target = [spec.with_chip("wormhole_n150") for spec in pair]
    try:
        plan = tw.reshard(source, target)
    except tw.MemoryConfigError:
        assume(False)
    assume(len(plan.steps) == 1)
    (step,) = plan.steps
    assume({*step.reads}.isdisjoint(step.writes))  # of a RISC that does both, the order is not in the plan
    events = events_of_step(step, plan.noc_map)
    requests = [k for k, event in enumerate(events) if "num_bytes" in event]
    assume(requests)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps(events))
        report = audit_noc_trace(path, source, target)
        assert report.clean, str(report)
        lost = data.draw(st.sampled_from(requests))
        path.write_text(json.dumps(events[:lost] + events[lost + 1 :]))
        assert not audit_noc_trace(path, source, target).clean
