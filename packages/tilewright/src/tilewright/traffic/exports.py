# SPDX-License-Identifier: Apache-2.0
"""Reshard plans for other tools: Chrome traces (also Perfetto), and workloads of the NoC simulator tt-npe."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from ..atomic import write_file
from ..errors import MemoryConfigError
from .noc import NOC_NAMES
from .noc_rates import rates_of
from .requests import RISC_NAMES, Requests
from .reshard_plan import ReshardPlan

Json: TypeAlias = "dict[str, Any]"  # of plain values
DEFAULT_MOST_TRANSFERS = 1_000_000


def chrome_trace(plan: ReshardPlan, path: str | PathLike[str] | None = None) -> Json:
    """Return the timeline of a `plan` as a Chrome trace: a process per core, a thread per RISC, an event per run.

    A RISC issues its requests one after the other and waits at its barriers; the waits are stretched so that the last
    RISC ends when the estimate does. Times are microseconds. With `path`, it is written to that file, too.

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
                    place, size, count = run
                    event |= {"name": f"{verb} {size} bytes {word} {place}", "dur": count * issue}
                    event["args"] = {"count": count, "bytes": size * count}
                else:
                    event |= {"name": "barrier", "dur": run[1] * wait, "args": {"count": run[1]}}
                at += event["dur"]
                events.append(event)
    return events


def _row_order(core: Any) -> tuple[int, int]:  # a core, or the number of a bank
    return (core.y, core.x) if hasattr(core, "x") else (-1, core)


def npe_workload(
    plan: ReshardPlan, path: str | PathLike[str] | None = None, most_transfers: int = DEFAULT_MOST_TRANSFERS
) -> Json:
    """Return a `plan` as a workload of the simulator tt-npe: a phase per step, a transfer per run of equal requests.

    Each transfer starts when its RISC issues it, after the steps before, without waiting for barriers: the simulator
    counts all phases from cycle 0. The injection rate is that of L1 or of a DRAM bank, and `golden_result` has the
    estimated cycles. With `path`, it is written to that file, too. More than `most_transfers` runs are refused.

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
    ends = np.concatenate([noc_map.positions[origin], noc_map.positions[to]], axis=1)
    in_dram = np.maximum(origin, to) >= noc_map.num_l1
    offset = np.rint(start + issue * requests.position[first]).astype(np.int64)
    columns = (ends, nbytes[first], lengths, requests.noc[owner[first]], writes, in_dram, offset)
    return [
        {
            "packet_size": size,
            "num_packets": packets,
            "src_x": places[0],
            "src_y": places[1],
            "dst_x": places[2],
            "dst_y": places[3],
            "injection_rate": float(rates.dram if dram else rates.source),
            "phase_cycle_offset": cycle,
            "noc_type": NOC_NAMES[noc],
            "noc_event_type": "WRITE_" if is_write else "READ",
        }
        for places, size, packets, noc, is_write, dram, cycle in zip(*[part.tolist() for part in columns], strict=True)
    ]
