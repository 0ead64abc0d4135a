# SPDX-License-Identifier: Apache-2.0
"""`best_layout`: which memory a tensor should have at each stage of a chain, by the time and traffic between stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise
from typing import TypeAlias

from ..errors import MemoryConfigError
from ..memory import (
    MemoryConfig,
    NdShardSpec,
    ShardOrientation,
    TensorSpec,
    block_sharded,
    height_sharded,
    width_sharded,
)
from ..memory.sharding import MemoryLike
from ..memory.spec import as_spec
from .page_moves import validate_pair
from .planning import reshard
from .reshard_plan import ReshardPlan
from .steps import ReshardStep

Stage: TypeAlias = "TensorSpec | Iterable[TensorSpec] | None"
_CACHED_PLANS = 4096
_LAUNCH_CYCLES = {True: 190, False: 310}  # from the start of a kernel to its first request: from L1, and from DRAM


@dataclass(frozen=True, slots=True)
class LayoutChain:
    """A choice of specs for all stages of a chain, and what moving from each to the next costs.

    `cycles` is the estimated time of all moves with the start of their kernels, `noc_bytes` what crosses the network,
    and `peak_l1` the most bytes of L1 per core that two neighbours and the buffers between them use at once.

    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> LayoutChain((spec, spec), 0.0, 0, 0).moves
    0
    """

    specs: tuple[TensorSpec, ...]
    cycles: float
    noc_bytes: int
    peak_l1: int

    @property
    def moves(self) -> int:
        """Return between how many neighbours the tensor moves.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> LayoutChain((spec, spec.with_memory("l1")), 1000.0, 8192, 4096).moves
        1
        """
        return sum(one.memory != other.memory for one, other in pairwise(self.specs))

    def plans(self) -> list[ReshardPlan]:
        """Return the plan of each move, from a stage to the next.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> [plan.is_empty for plan in LayoutChain((spec, spec), 0.0, 0, 0).plans()]
        [True]
        """
        return [reshard(one, other) for one, other in pairwise(self.specs)]

    def __str__(self) -> str:
        memories = " -> ".join(str(spec.memory) for spec in self.specs)
        return f"{self.cycles:.0f} cycles, {self.noc_bytes} bytes over the NoC: {memories}"


@dataclass(frozen=True, slots=True, order=True)
class MoveCost:
    """The cost of a move or of several: estimated cycles, then bytes over the network; and the peak of L1.

    >>> MoveCost(10.0, 5, 7) + MoveCost(1.0, 1, 9)
    MoveCost(cycles=11.0, noc_bytes=6, peak_l1=9)
    """

    cycles: float
    noc_bytes: int
    peak_l1: int

    def __add__(self, other: MoveCost) -> MoveCost:
        return MoveCost(self.cycles + other.cycles, self.noc_bytes + other.noc_bytes, max(self.peak_l1, other.peak_l1))


def launch_cycles(step: ReshardStep) -> int:
    """Return the cycles from the start of a kernel to its first request.

    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> [launch_cycles(step) for step in reshard(spec, spec.with_memory("l1")).steps]
    [310]
    """
    return _LAUNCH_CYCLES[step.source.memory.buffer_type.is_l1]


@lru_cache(maxsize=_CACHED_PLANS)
def move_cost(source: TensorSpec, target: TensorSpec) -> MoveCost | None:
    """Return the cost of moving a tensor from `source` to `target`; None if the runtime has no way.

    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> move_cost(spec, spec)
    MoveCost(cycles=0.0, noc_bytes=0, peak_l1=0)
    """
    try:
        plan = reshard(source, target)
    except MemoryConfigError:
        return None
    try:
        cycles = plan.cycles.cycles + sum(launch_cycles(step) for step in plan.steps)
    except MemoryConfigError:  # a chip whose network is not known: only the traffic counts
        cycles = 0.0
    crossing = sum(size for step in plan.steps for (to, origin), size in step.traffic.items() if to != origin)
    return MoveCost(cycles, crossing, max(plan.peak_l1.values(), default=0))


def candidate_specs(spec: TensorSpec) -> list[TensorSpec]:
    """Return the tensor of `spec` in the memories that are worth a try on its chip.

    These are interleaved L1 and DRAM, and height, width and block shards on the whole grid, on its halves and quarters,
    and on single rows and columns of it; where a grid has more cores than shards, only the first such.

    >>> [str(item.memory) for item in candidate_specs(TensorSpec((64, 32), page_layout="tile", chip="n150"))][:3]
    ['interleaved in DRAM', 'interleaved in L1', 'height sharded in L1, shards of 64 x 32 on 1 core']
    """
    across, down = spec.known_chip.compute_grid
    sizes = [
        (x, y)
        for x in sorted({1, 2, across // 4, across // 2, across} - {0})
        for y in sorted({1, 2, down // 4, down // 2, down} - {0})
    ]
    memories: list[MemoryLike] = ["dram", "l1"]
    memories += [kind(grid) for kind in (height_sharded, width_sharded, block_sharded) for grid in sizes]
    found: dict[TensorSpec, None] = {}
    for memory in memories:
        try:
            candidate = spec.with_memory(memory)
        except MemoryConfigError:
            continue
        is_whole = not candidate.memory.is_sharded or candidate.paging.num_shards >= len(candidate.paging.cores)
        grid = candidate.memory.sharding
        is_used = grid is None or grid.grid.num_cores == len(candidate.paging.cores)
        if is_whole and is_used and not candidate.violations():
            found.setdefault(candidate)
    return list(found)


def cheaper_targets(plan: ReshardPlan, most: int = 3) -> list[LayoutChain]:
    """Return targets that the tensor of a `plan` reaches in less time, by their time: at most `most`.

    The same kind of memory is tried on other cores and in the other orientation, and each is planned.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
    >>> print(cheaper_targets(reshard(spec, spec.with_memory(height_sharded((4, 2)))), most=1)[0].specs[1].memory)
    height sharded in L1, shards of 64 x 512 on 8 cores
    """
    now = move_cost(plan.source, plan.target)
    found: list[tuple[MoveCost, int, TensorSpec]] = []
    layout, buffer = plan.target.memory.memory_layout, plan.target.memory.buffer_type
    for number, candidate in enumerate(_turned(candidate_specs(plan.target))):
        memory = candidate.memory
        if (memory.memory_layout, memory.buffer_type) != (layout, buffer) or memory == plan.target.memory:
            continue
        cost = move_cost(plan.source, candidate)
        if cost is not None and now is not None and cost.cycles < now.cycles:
            found.append((cost, number, candidate))
    best = nsmallest(most, found)
    return [LayoutChain((plan.source, spec), cost.cycles, cost.noc_bytes, cost.peak_l1) for cost, _, spec in best]


def _turned(specs: list[TensorSpec]) -> Iterator[TensorSpec]:
    """Yield specs, and those of their shards with the cores listed in the other direction."""
    for spec in specs:
        yield spec
        sharding = spec.memory.sharding
        if sharding is None:
            continue
        column_wise = sharding.orientation is ShardOrientation.ROW_MAJOR
        orientation = "col_major" if column_wise else "row_major"
        turned = NdShardSpec(sharding.shape, sharding.grid, orientation, sharding.distribution)
        other = spec.replace(memory=MemoryConfig(spec.memory.memory_layout, spec.memory.buffer_type, None, turned))
        if not other.violations() and other.paging != spec.paging:
            yield other


def best_layout(
    chain: Sequence[Stage],
    most: int = 5,
    circular_buffers: int = 0,
    cost: Callable[[TensorSpec, TensorSpec], MoveCost | None] = move_cost,
) -> list[LayoutChain]:
    """Return the best choices of memory for the stages of a `chain`, cheapest first: by time, then by traffic.

    Args:
        chain: the stages: a spec that is fixed, several to choose from, or None for any of `candidate_specs`. The first
            and the last must be given. All are specs of the same tensor on the same chip.
        most: the number of choices to return.
        circular_buffers: bytes of L1 per core that operations need beside the tensors; neighbours must fit with them.
        cost: the cost of a move between two specs, or None where there is none.

    Raises a MemoryConfigError if no choice fits.

    >>> from tilewright import height_sharded, width_sharded
    >>> rows = TensorSpec((512, 512), memory=height_sharded((8, 1)), chip="n150")
    >>> choices = [rows.with_memory(memory) for memory in ("l1", "dram", block_sharded((8, 8)))]
    >>> best = best_layout([rows, choices, rows.with_memory(width_sharded((8, 1)))])[0]
    >>> print(best.specs[1].memory)
    block sharded in L1, shards of 64 x 64 on 64 cores
    """
    stages = _stage_choices(chain)
    available = stages[0][0].known_chip.bank_bytes("l1") - circular_buffers
    # The best few ways to each choice of a stage; a way is its cost and the number of the choice at each stage.
    ways: list[list[tuple[MoveCost, tuple[int, ...]]]] = [
        [(MoveCost(0.0, 0, 0), (number,))] for number in range(len(stages[0]))
    ]
    for before, after in pairwise(stages):
        ways = [
            nsmallest(
                most,
                [
                    (so_far + step, (*path, number))
                    for origin, paths in zip(before, ways, strict=True)
                    for step in [cost(origin, target)]
                    if step is not None and step.peak_l1 <= available
                    for so_far, path in paths
                ],
            )
            for number, target in enumerate(after)
        ]
    best = nsmallest(most, [way for paths in ways for way in paths])
    if not best:
        raise MemoryConfigError(
            f"no choice of memory fits: neighbours of the chain need more than {available} bytes of L1 per core, or"
            " cannot be moved to each other; allow DRAM at some stage"
        )
    return [
        LayoutChain(
            tuple([stage[number] for stage, number in zip(stages, path, strict=True)]),
            total.cycles,
            total.noc_bytes,
            total.peak_l1,
        )
        for total, path in best
    ]


def _stage_choices(chain: Sequence[Stage]) -> list[list[TensorSpec]]:
    """Return the specs to choose from at each stage, all of the same tensor."""
    if not isinstance(chain, (list, tuple)):
        raise MemoryConfigError(f"expected a list of stages, such as [source, None, target], got {chain!r}")
    if len(chain) < 2 or chain[0] is None or chain[-1] is None:
        raise MemoryConfigError("a chain needs at least two stages, and specs for the first and the last")
    stages: list[list[TensorSpec]] = []
    first: TensorSpec | None = None
    for stage in chain:
        if stage is None:
            assert first is not None  # the first stage is given
            stages.append(candidate_specs(first))
            continue
        choices = [as_spec(item) for item in stage] if isinstance(stage, (list, tuple)) else [as_spec(stage)]
        if not choices:
            raise MemoryConfigError("a stage of the chain has no specs to choose from; use None for any")
        first = first or choices[0]
        for choice in choices:
            validate_pair(first, choice)
        stages.append(choices)
    return stages
