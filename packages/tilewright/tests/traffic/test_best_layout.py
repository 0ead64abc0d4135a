# SPDX-License-Identifier: Apache-2.0
"""The best chain of memories is the best of all chains, on cases small enough to try them all."""

from itertools import pairwise, product

import pytest

from tilewright import MemoryConfigError, TensorSpec, block_sharded, height_sharded, reshard, width_sharded
from tilewright.traffic import MoveCost, best_layout, candidate_specs, cheaper_targets, move_cost

TILES = TensorSpec((256, 256), page_layout="tile", memory=height_sharded((8, 1)), chip="n150")
ROWS = TensorSpec((256, 256), memory=height_sharded((8, 1)), chip="n150")
MEMORIES = ("dram", "l1", height_sharded((4, 2)), width_sharded((8, 1)), block_sharded((4, 4)), block_sharded((2, 2)))


def exhaustive(stages, available):
    """Return the cost and the specs of every chain that fits, cheapest first."""
    chains = []
    for specs in product(*stages):
        costs = [move_cost(*pair) for pair in pairwise(specs)]
        if all(cost is not None and cost.peak_l1 <= available for cost in costs):
            chains.append(
                (sum(costs, MoveCost(0.0, 0, 0)), [stage.index(s) for stage, s in zip(stages, specs, strict=True)])
            )
    return sorted(chains)


@pytest.mark.parametrize("spec", [TILES, ROWS])
@pytest.mark.parametrize("buffers", [0, 1_390_000])
def test_best_of_all_chains(spec, buffers):
    choices = [spec.with_memory(memory) for memory in MEMORIES]
    ends = spec, spec.with_memory(width_sharded((4, 1)))
    stages = [[ends[0]], choices, choices, [ends[1]]]
    available = spec.chip.bank_bytes("l1") - buffers
    expected = exhaustive(stages, available)
    if not expected:
        with pytest.raises(MemoryConfigError, match="no choice of memory fits"):
            best_layout([ends[0], choices, choices, ends[1]], circular_buffers=buffers)
        return
    found = best_layout([ends[0], choices, choices, ends[1]], most=7, circular_buffers=buffers)
    assert [(chain.cycles, chain.noc_bytes) for chain in found] == [
        (cost.cycles, cost.noc_bytes) for cost, _ in expected[:7]
    ]
    assert [list(chain.specs) for chain in found] == [
        [stage[number] for stage, number in zip(stages, path, strict=True)] for _, path in expected[:7]
    ]
    assert all(chain.peak_l1 <= available for chain in found)


def test_candidates_can_be_placed():
    for spec in (TILES, ROWS, TensorSpec((3, 50, 70), "bfloat8_b", chip="p150")):
        candidates = candidate_specs(spec)
        assert len(set(candidates)) == len(candidates) > 2
        assert not any(candidate.violations() for candidate in candidates)


def test_any_memory_between_two_ends():
    best = best_layout([TILES, None, TILES.with_memory(block_sharded((4, 4)))], most=3)
    assert len(best) == 3
    assert [chain.cycles for chain in best] == sorted(chain.cycles for chain in best)
    assert sum(plan.total_bytes > 0 for plan in best[0].plans()) == best[0].moves


def test_wrong_chains():
    for chain in ([TILES], [TILES, None], [None, TILES]):
        with pytest.raises(MemoryConfigError, match="at least two stages"):
            best_layout(chain)
    with pytest.raises(MemoryConfigError, match="no specs to choose from"):
        best_layout([TILES, [], TILES])
    with pytest.raises(MemoryConfigError, match="source has page layout"):
        best_layout([TILES, ROWS])


def test_cheaper_targets_are_cheaper():
    plan = reshard(TILES, TILES.with_memory(block_sharded((8, 8))))
    now = move_cost(plan.source, plan.target)
    found = cheaper_targets(plan)
    assert found
    for chain in found:
        source, target = chain.specs
        assert source == plan.source
        assert target.memory.memory_layout == plan.target.memory.memory_layout
        assert move_cost(source, target).cycles == chain.cycles < now.cycles
    assert cheaper_targets(reshard(TILES, TILES)) == []
