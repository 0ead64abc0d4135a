# SPDX-License-Identifier: Apache-2.0
"""The estimated time equals the formula, term by term; and what is not calibrated says so."""

import pytest
from hypothesis import given

from tilewright import MemoryConfigError, TensorSpec, block_sharded, height_sharded, reshard, width_sharded
from tilewright.traffic import estimate_transfers
from tilewright.traffic.estimate import rates_of

from ..cases import examples
from .strategies import pairs
from .test_plan_laws import planned


def formula(step, profiler, in_dram):
    """Return the cycles of a step by the formula, from its lists of reads and writes."""
    noc_map = step.requests.noc_map
    rates = rates_of(noc_map.chip)
    issue, resources, most, barriers = rates.profiled_issue, {}, 0, 0
    if not profiler:
        kinds = [rates.read_issue] * bool(step.num_reads or not step.num_writes)
        kinds += [rates.write_issue] * bool(step.num_writes)
        issue = max(kind[in_dram] for kind in kinds)
    into = {}
    for lists, writes in ((step.reads, False), (step.writes, True)):
        for risc, runs in lists.items():
            if any(len(run) == 3 for run in runs):
                for place, _, _ in [run for run in runs if len(run) == 3]:
                    into.setdefault(place if writes else risc.core, set()).add(risc.noc)
    for lists, writes in ((step.reads, False), (step.writes, True)):
        for risc, runs in lists.items():
            position, waits = 0, 0
            noc = int(risc.noc[-1])
            for run in runs:
                if len(run) == 2:
                    waits += run[1]
                    continue
                place, size, count = run
                origin, to = (risc.core, place) if writes else (place, risc.core)
                used = [(("link", link), rates.link) for link in noc_map.route(noc, origin, to)]
                if not isinstance(origin, int):
                    used += [(("source", noc, origin), rates.source), (("both", origin), rates.source_both)]
                if not isinstance(to, int):
                    used.append((("reader", noc, to), rates.reader))
                    if len(into[to]) == 2:
                        used.append((("reader both", to), rates.reader_both))
                used += [(("dram", bank), rates.dram) for bank in (origin, to) if isinstance(bank, int)]
                for resource, rate in used:
                    first, nbytes, _ = resources.get(resource, (position, 0, rate))
                    resources[resource] = min(first, position), nbytes + size * count, rate
                position += count
            most, barriers = max(most, position), max(barriers, waits)
    loads = [issue * first + nbytes / rate for first, nbytes, rate in resources.values()]
    return rates.barrier * barriers + max([issue * most, *loads])


@examples(60)
@given(pairs())
def test_time_is_that_of_the_formula(pair):
    if pair[0].known_chip.arch == "small":
        return
    plan = planned(pair)
    if plan is None or not plan.total_bytes:
        return
    for profiler in (False, True):
        total = 0.0
        for step in plan.steps:
            in_dram = any(str(spec.memory) == "interleaved in DRAM" for spec in (step.source, step.target))
            total += formula(step, profiler, in_dram)
        assert plan.estimate(profiler).cycles == pytest.approx(total)


def test_only_profiled_reads_of_wormhole_are_calibrated():
    spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 2)), chip="n150")
    target = spec.with_memory(height_sharded((4, 4)))
    assert reshard(spec, target, kernel="2024").cycles.calibrated
    assert reshard(spec, target, profiler=True).cycles.calibrated
    for plan, reason in (
        (reshard(spec, target), "without the profiler"),
        (reshard(spec, spec.with_memory("dram"), profiler=True), "writes"),
        (reshard(spec.with_chip("p150"), target.with_chip("p150"), profiler=True), "blackhole"),
    ):
        assert not plan.cycles.calibrated
        assert reason in plan.cycles.expected_error
        assert "not calibrated" in plan.explain()


def test_microseconds_follow_the_clock():
    spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 2)), chip="p150")
    estimate = reshard(spec, spec.with_memory(width_sharded((4, 4)))).cycles
    assert estimate.microseconds == pytest.approx(estimate.cycles / 1350)
    assert int(estimate) == round(float(estimate))


def test_two_passes_take_the_time_of_both():
    rows = TensorSpec((512, 512), memory=height_sharded((8, 1)), chip="n150")
    target, between = rows.with_memory(width_sharded((8, 1))), rows.with_memory("dram")
    plan = reshard(rows, target)
    parts = [reshard(rows, between).cycles.cycles, reshard(between, target).cycles.cycles]
    assert plan.cycles.cycles == pytest.approx(sum(parts))
    assert plan.banks == {bank: 2 * size for bank, size in reshard(rows, between).banks.items()}


def test_wrong_questions_about_transfers():
    with pytest.raises(MemoryConfigError, match="unknown pattern 'read'"):
        estimate_transfers("n150", "read", 1, 64)
    with pytest.raises(MemoryConfigError, match="at least 0, got -1 and 64"):
        estimate_transfers("n150", "read_l1", -1, 64)
    with pytest.raises(MemoryConfigError, match="quasar"):
        estimate_transfers("quasar_q1", "read_l1", 1, 64)
