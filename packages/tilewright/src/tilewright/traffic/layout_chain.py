# SPDX-License-Identifier: Apache-2.0
"""`best_layout`: which memory a tensor should have at each stage of a chain, by the time and traffic between stages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from .._files import write_file
from ..errors import MemoryConfigError
from ..memory import (
    MemoryConfig,
    MemoryLike,
    NdShardSpec,
    ShardOrientation,
    TensorSpec,
    as_spec,
    block_sharded,
    height_sharded,
    width_sharded,
)
from .estimate import rates_of
from .moves import RISC_NAMES, Requests, validate_pair
from .noc import NOC_NAMES
from .plan import ReshardPlan, reshard
from .steps import ReshardStep

Stage: TypeAlias = "TensorSpec | Iterable[TensorSpec] | None"
_CACHED_PLANS = 4096
_LAUNCH_CYCLES = {True: 190, False: 310}  # from the start of a kernel to its first request: from L1, and from DRAM


@dataclass(frozen=True, slots=True)
class LayoutChain:
    """A choice of specs for all stages of a chain, and the cost of moving from each to the next.

    `cycles` is the estimated time of all moves with the start of their kernels, `noc_bytes` the bytes that cross the
    network, and `peak_l1` the most bytes of L1 per core that two neighbours and the buffers between them use at once.

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
        """The number of pairs of neighbours between which the tensor moves.

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
    memories += [shard(grid) for shard in (height_sharded, width_sharded, block_sharded) for grid in sizes]
    candidates: dict[TensorSpec, None] = {}
    for memory in memories:
        try:
            candidate = spec.with_memory(memory)
        except MemoryConfigError:
            continue
        is_whole = not candidate.memory.is_sharded or candidate.paging.num_shards >= len(candidate.paging.cores)
        grid = candidate.memory.sharding
        is_used = grid is None or grid.grid.num_cores == len(candidate.paging.cores)
        if is_whole and is_used and not candidate.violations():
            candidates.setdefault(candidate)
    return list(candidates)


def cheaper_targets(plan: ReshardPlan, most: int = 3) -> list[LayoutChain]:
    """Return targets that the tensor of a `plan` reaches in less time, by their time: at most `most`.

    The same kind of memory is tried on other cores and in the other orientation, and each is planned.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
    >>> print(cheaper_targets(reshard(spec, spec.with_memory(height_sharded((4, 2)))), most=1)[0].specs[1].memory)
    height sharded in L1, shards of 64 x 512 on 8 cores
    """
    now = move_cost(plan.source, plan.target)
    cheaper: list[tuple[MoveCost, int, TensorSpec]] = []
    layout, buffer = plan.target.memory.memory_layout, plan.target.memory.buffer_type
    for number, candidate in enumerate(_turned(candidate_specs(plan.target))):
        memory = candidate.memory
        if (memory.memory_layout, memory.buffer_type) != (layout, buffer) or memory == plan.target.memory:
            continue
        cost = move_cost(plan.source, candidate)
        if cost is not None and now is not None and cost.cycles < now.cycles:
            cheaper.append((cost, number, candidate))
    best = nsmallest(most, cheaper)
    return [LayoutChain((plan.source, spec), *astuple(cost)) for cost, _, spec in best]


def _turned(specs: list[TensorSpec]) -> Iterator[TensorSpec]:
    """Yield specs, also with the cores of their shards listed in the other direction."""
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
        LayoutChain(tuple([stage[number] for stage, number in zip(stages, path, strict=True)]), *astuple(total))
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


# Reshard plans for other tools: Chrome traces (also Perfetto), and workloads of the NoC simulator tt-npe.

Json: TypeAlias = "dict[str, Any]"  # of plain values
DEFAULT_MAX_TRANSFERS = 1_000_000


def chrome_trace(plan: ReshardPlan, path: str | PathLike[str] | None = None) -> Json:
    """Return the timeline of a `plan` as a Chrome trace: a process per core, a thread per RISC, an event per run.

    A RISC issues its requests one after the other and waits at its barriers; the waits are stretched so that the last
    RISC ends when the estimate does. Times are microseconds. With `path`, it is also written to that file.

    >>> from tilewright import TensorSpec, height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> trace = chrome_trace(reshard(spec, spec.with_memory(height_sharded((2, 1)))))
    >>> [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"][:3]
    ['read 2048 bytes from 0', 'read 2048 bytes from 1', 'barrier']
    """
    events: list[Json] = []
    start = 0.0
    for number, step in enumerate(plan.steps, 1):
        estimate = step.estimate(plan.profiler)
        events += _step_events(step.requests, plan.profiler, start, estimate.cycles, f"step {number}")
        start += estimate.cycles
    clock = plan.noc_map.chip.clock_mhz
    for event in events:
        if event["ph"] == "X":
            event["ts"], event["dur"] = event["ts"] / clock, event["dur"] / clock
    trace: Json = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"plan": str(plan), "chip": plan.noc_map.chip.name, "estimate": str(plan.cycles)},
    }
    if path is not None:
        write_file(path, json.dumps(trace))
    return trace


def _step_events(requests: Requests, profiler: bool, start: float, cycles: float, category: str) -> list[Json]:
    """Return the events of a step that takes this many cycles from `start` on."""
    rates = rates_of(requests.noc_map.chip)
    issue = rates.profiled_issue if profiler else rates.read_issue[0]
    events: list[Json] = []
    cores = sorted({requests.noc_map.endpoints[core] for core in requests.core.tolist()}, key=_row_order)
    process = {core: number for number, core in enumerate(cores)}
    for core, number in process.items():
        events.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"core {core}"}})
    for lists, verb, word in ((requests.reads, "read", "from"), (requests.written, "write", "to")):
        for risc, runs in lists.items():
            pid, tid = process[risc.core], RISC_NAMES.index(risc.risc)
            name = {"name": f"{risc.risc} on {risc.noc}"}
            events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": name})
            issued = sum(run[2] for run in runs if len(run) == 3) * issue
            barriers = sum(run[1] for run in runs if len(run) == 2)
            wait = max(cycles - issued, 0.0) / barriers if barriers else 0.0
            at = start
            for run in runs:
                event: Json = {"ph": "X", "cat": category, "pid": pid, "tid": tid, "ts": at}
                if len(run) == 3:
                    endpoint, size, count = run
                    event |= {"name": f"{verb} {size} bytes {word} {endpoint}", "dur": count * issue}
                    event["args"] = {"count": count, "bytes": size * count}
                else:
                    event |= {"name": "barrier", "dur": run[1] * wait, "args": {"count": run[1]}}
                at += event["dur"]
                events.append(event)
    return events


def _row_order(core: Any) -> tuple[int, int]:  # a core, or the number of a bank
    return (core.y, core.x) if hasattr(core, "x") else (-1, core)


def npe_workload(
    plan: ReshardPlan, path: str | PathLike[str] | None = None, most_transfers: int = DEFAULT_MAX_TRANSFERS
) -> Json:
    """Return a `plan` as a workload of the simulator tt-npe: a phase per step, a transfer per run of equal requests.

    Each transfer starts when its RISC issues it, after the steps before, without waiting for barriers: the simulator
    counts all phases from cycle 0. The injection rate is the rate of L1 or of a DRAM bank, and `golden_result` has the
    estimated cycles. With `path`, it is also written to that file. More than `most_transfers` runs are refused.

    >>> from tilewright import TensorSpec, height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> workload = npe_workload(reshard(spec, spec.with_memory(height_sharded((2, 1)))))
    >>> transfer = workload["phases"][0]["transfers"][0]
    >>> transfer["packet_size"], transfer["src_x"], transfer["src_y"], transfer["noc_type"]
    (2048, 0, 11, 'NOC_0')
    """
    phases: list[Json] = []
    start, left = 0.0, most_transfers
    for step in plan.steps:
        transfers = _npe_transfers(step.requests, plan.profiler, start, left)
        phases.append({"transfers": transfers})
        start += step.estimate(plan.profiler).cycles
        left -= len(transfers)
    workload: Json = {"golden_result": {"cycles": round(plan.cycles.cycles)}, "phases": phases}
    if path is not None:
        write_file(path, json.dumps(workload))
    return workload


def _npe_transfers(requests: Requests, profiler: bool, start: float, most: int) -> list[Json]:
    """Return the transfers of a step that begins at cycle `start`."""
    noc_map = requests.noc_map
    rates = rates_of(noc_map.chip)
    issue = rates.profiled_issue if profiler else rates.read_issue[0]
    owner, remote, nbytes, count = requests.owner, requests.remote, requests.nbytes, len(requests)
    alike = (owner[1:] == owner[:-1]) & (remote[1:] == remote[:-1]) & (nbytes[1:] == nbytes[:-1])
    first = np.flatnonzero(np.append(True, ~alike)[:count])
    if len(first) > most:
        raise MemoryConfigError(
            f"the plan has more than {most} transfers left to write, got {len(first)}; raise most_transfers"
        )
    lengths = np.diff(np.append(first, count))
    core = requests.core[owner[first]]
    writes = requests.writes[owner[first]]
    origin, to = np.where(writes, core, remote[first]), np.where(writes, remote[first], core)
    noc = requests.noc[owner[first]]
    positions = np.concatenate([noc_map.positions[noc, origin], noc_map.positions[noc, to]], axis=1)
    in_dram = np.maximum(origin, to) >= noc_map.num_l1
    offset = np.rint(start + issue * requests.position[first]).astype(np.int64)
    columns = (positions, nbytes[first], lengths, noc, writes, in_dram, offset)
    return [
        {
            "packet_size": size,
            "num_packets": packets,
            "src_x": ends[0],
            "src_y": ends[1],
            "dst_x": ends[2],
            "dst_y": ends[3],
            "injection_rate": float(rates.dram if dram else rates.source),
            "phase_cycle_offset": cycle,
            "noc_type": NOC_NAMES[noc],
            "noc_event_type": "WRITE_" if is_write else "READ",
        }
        for ends, size, packets, noc, is_write, dram, cycle in zip(*[part.tolist() for part in columns], strict=True)
    ]
