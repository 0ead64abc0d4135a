# SPDX-License-Identifier: Apache-2.0
"""Which of the waiting threads of a block can go on, and what is wrong if none can."""

from __future__ import annotations

from typing import Any

from .collectives import SYNCWARP
from .kernel_report import Defect
from .kernel_thread import KernelThread, RunningMachine


def release_threads(machine: RunningMachine) -> list[KernelThread]:
    """Return the threads that can go on, now that all wait or have returned.

    >>> release_threads.__name__
    'release_threads'
    """
    waiting = [thread for thread in machine.threads if not thread.done]
    if not waiting:
        return waiting
    requests: list[Any] = [thread.request for thread in waiting]
    first = requests[0]
    if len(waiting) == len(machine.threads) and all(
        request.kind == "barrier" and request.place == first.place for request in requests
    ):
        for thread in waiting:
            thread.epoch += 1
            thread.resume = None
        return waiting
    ready = [thread for thread, request in zip(waiting, requests, strict=True) if _is_polled(machine, thread, request)]
    if ready:
        return ready
    ready = _release_warps(machine, waiting)
    return ready or _release_block(machine, waiting)


def _is_polled(machine: RunningMachine, thread: KernelThread, request: Any) -> bool:
    """Return whether what a thread waits for in memory has come."""
    if request.kind != "poll" or not request.value():
        return False
    thread.resume = True
    if request.options:  # all threads of the block take part
        thread.epoch += 1
    return True


def _release_warps(machine: RunningMachine, waiting: list[KernelThread]) -> list[KernelThread]:
    """Run the operations of warps whose threads have come, the first one in the source of each warp."""
    groups: dict[tuple[int, int, str], list[KernelThread]] = {}
    for thread in waiting:
        request: Any = thread.request
        if request.kind == "warp":
            groups.setdefault((thread.warp, request.place, request.name), []).append(thread)
    ready: list[KernelThread] = []
    done: set[int] = set()
    for (warp, place, _), members in sorted(
        groups.items(), key=lambda item: (item[0][0], _source(machine, item[0][1]))
    ):
        if warp not in done:
            done.add(warp)
            _run_warp_operation(machine, warp, place, members)
            ready += members
    return ready


def _source(machine: RunningMachine, place: int) -> tuple[int, int]:
    site = machine.log.sites[place]
    return site.line, site.column


def _run_warp_operation(machine: RunningMachine, warp: int, place: int, members: list[KernelThread]) -> None:
    operation = members[0].request.options  # type: ignore[union-attr]
    values = {thread.lane: thread.request.value for thread in members}  # type: ignore[union-attr]
    answers = operation.compute(values, machine.warp)
    everyone = [
        thread for thread in machine.threads[warp * machine.warp : (warp + 1) * machine.warp] if not thread.done
    ]
    for thread in members:
        thread.resume, missing = answers[thread.lane]
        if operation is SYNCWARP and len(members) == len(everyone):
            thread.warp_epoch += 1
        if missing is not None:
            _report_inactive(machine, thread, warp, missing)


def _report_inactive(machine: RunningMachine, thread: KernelThread, warp: int, lane: int) -> None:
    number = warp * machine.warp + lane
    request: Any = thread.request
    witnesses = [machine.witness(f"{request.name} from lane {lane}", request.place, thread)]
    if number >= len(machine.threads):
        why = f"lane {lane} does not exist, since the block has {len(machine.threads)} threads"
    else:
        other = machine.threads[number]
        why = f"lane {lane} {'has returned' if other.done else 'is elsewhere'}"
        if not other.done:
            witnesses.append(machine.witness("waits", other.request.place, other))  # type: ignore[union-attr]
    machine.add_defect(
        Defect(
            "inactive lane",
            f"{request.name} reads the value of a lane that does not take part: {why}",
            tuple(witnesses),
            "let all lanes of the warp call it, outside of any condition, with a neutral value where there is none",
        )
    )


def _release_block(machine: RunningMachine, waiting: list[KernelThread]) -> list[KernelThread]:
    """Let a block go on whose threads all wait for each other; report why it cannot."""
    requests: list[Any] = [thread.request for thread in waiting]
    left = [thread for thread in machine.threads if thread.done and not _was_stopped(machine, thread)]
    at_barrier = [request.kind in ("barrier", "block", "cluster") for request in requests]
    if not all(at_barrier):
        _report_deadlock(machine, waiting)
    elif left:
        _report_left(machine, waiting[0], left)
    elif len({(request.place, request.name) for request in requests}) > 1:
        _report_divergent(machine, waiting)
    machine.is_at_cluster_barrier = requests[0].kind == "cluster"
    operation = requests[0].options
    answers = None
    if operation is not None:
        values = {thread.index: thread.request.value for thread in waiting}  # type: ignore[union-attr]
        answers = operation.compute(values, len(machine.threads))
    for thread in waiting:
        thread.epoch += 1
        thread.resume = None if answers is None else answers[thread.index][0]
    return waiting


def _was_stopped(machine: RunningMachine, thread: KernelThread) -> bool:
    return thread.left_at == -1


def _report_left(machine: RunningMachine, waiting: KernelThread, left: list[KernelThread]) -> None:
    other = left[0]
    witnesses = [machine.witness("waits", waiting.request.place, waiting)]  # type: ignore[union-attr]
    if other.left_at is not None:
        witnesses.append(machine.witness("returned after waiting", other.left_at, other))
    many = f"{len(left)} of {len(machine.threads)} threads of the block, such as {other.position}, have"
    who = many if len(left) > 1 else f"thread {other.position} of the block has"
    machine.stop_block(
        Defect(
            "barrier not reached",
            f"{who} returned without coming to the barrier",
            tuple(witnesses),
            "let all threads come to every barrier: do not return before it; guard the work with `if` instead",
        )
    )


def _report_divergent(machine: RunningMachine, waiting: list[KernelThread]) -> None:
    by_place: dict[int, KernelThread] = {}
    for thread in waiting:
        by_place.setdefault(thread.request.place, thread)  # type: ignore[union-attr]
    witnesses = [machine.witness("waits", place, thread) for place, thread in by_place.items()]
    machine.stop_block(
        Defect(
            "divergent barrier",
            f"threads of one block wait at {len(by_place)} different barriers",
            tuple(witnesses[:4]),
            "a barrier is for all threads of the block: move it out of the condition",
        )
    )


def _report_deadlock(machine: RunningMachine, waiting: list[KernelThread]) -> None:
    by_place: dict[int, KernelThread] = {}
    for thread in waiting:
        by_place.setdefault(thread.request.place, thread)  # type: ignore[union-attr]
    witnesses = [machine.witness(f"waits in {thread.request.name}", k, thread) for k, thread in by_place.items()]  # type: ignore[union-attr]
    machine.stop_block(
        Defect(
            "deadlock",
            f"all {len(waiting)} threads of the block that have not returned wait for something that cannot come",
            tuple(witnesses[:4]),
            "let as many threads arrive as the barrier was initialised for, and all wait for the same",
        )
    )
