# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.sync`: barriers of blocks and warps, and barriers in shared memory."""

from __future__ import annotations

from typing import Any

from ....errors import LayoutError
from ....layout.validation import as_integer
from ....simt import barrier
from ....simt import syncwarp as _syncwarp
from ....simt.collectives import locate_scalar, update_scalar
from ....simt.kernel_thread import RunningMachine, current_machine, suspends

__all__ = [
    "barrier",
    "mbarrier_arrive",
    "mbarrier_init",
    "mbarrier_test_wait",
    "mbarrier_try_wait_parity_shared",
    "named_barrier",
    "syncwarp",
]


@suspends
def syncwarp(mask: Any = -1) -> Any:
    """Wait for the threads of the warp; `mask` has a bit for each lane that takes part.

    >>> from tilewright.simt import launch
    >>> launch(lambda: syncwarp(), grid=1, block=32).errors
    ()
    """
    return _syncwarp(int(as_integer(mask, "a mask")))


class _MemoryBarrier:
    """A barrier in shared memory: it completes a phase when `expected` threads have arrived."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.arrived = self.phase = 0
        self.phases: dict[int, int] = {}  # in which each thread has arrived last


def _barrier_at(machine: RunningMachine, pointer: Any) -> _MemoryBarrier:
    found: _MemoryBarrier | None = machine.block_state.get(_key(pointer))
    if found is None:
        raise LayoutError("this memory is not a barrier; call mbarrier_init(pointer, threads) and barrier() first")
    return found


def _key(pointer: Any) -> tuple[int, int]:
    return id(pointer.memory.data), int(pointer.offset)


def mbarrier_init(shared_mem: Any, num_threads: Any) -> None:
    """Make a barrier at a pointer into shared memory that waits for `num_threads` threads.

    >>> mbarrier_init.__name__
    'mbarrier_init'
    """
    machine = current_machine("mbarrier_init()")
    expected = int(as_integer(num_threads, "a number of threads"))
    store, place = locate_scalar(shared_mem, 0)
    if machine.plan.check is not False:  # a write like others: a barrier() has to be between it and the first arrival
        machine.log.write(store, place)
    store.host[place] = expected
    machine.block_state[_key(shared_mem)] = _MemoryBarrier(expected)


def mbarrier_arrive(shared_mem: Any) -> int:
    """Arrive at the barrier without waiting; return the phase.

    >>> mbarrier_arrive.__name__
    'mbarrier_arrive'
    """
    machine = current_machine("mbarrier_arrive()")
    state = _barrier_at(machine, shared_mem)
    update_scalar(*locate_scalar(shared_mem, 0), lambda old: old)
    phase = state.phases[machine.thread.index] = state.phase
    state.arrived += 1
    if state.arrived == state.expected:
        state.arrived, state.phase = 0, state.phase + 1
    return phase


@suspends
def mbarrier_test_wait(shared_mem: Any, state: Any) -> Any:
    """Wait until the phase in which the thread has arrived is complete; return True. (Mojo's returns at once.)

    >>> mbarrier_test_wait.__name__
    'mbarrier_test_wait'
    """
    machine = current_machine("mbarrier_test_wait()")
    memory_barrier = _barrier_at(machine, shared_mem)
    phase = memory_barrier.phases.get(machine.thread.index, memory_barrier.phase)
    is_for_all = memory_barrier.expected == len(machine.threads)
    return machine.suspend("poll", "mbarrier_test_wait", lambda: memory_barrier.phase > phase, is_for_all)


@suspends
def mbarrier_try_wait_parity_shared(shared_mem: Any, phase: Any, ticks: Any = 0) -> Any:
    """Wait until the phase of this parity is complete.

    >>> mbarrier_try_wait_parity_shared.__name__
    'mbarrier_try_wait_parity_shared'
    """
    machine = current_machine("mbarrier_try_wait_parity_shared()")
    memory_barrier = _barrier_at(machine, shared_mem)
    parity = int(as_integer(phase, "a phase")) % 2
    is_for_all = memory_barrier.expected == len(machine.threads)
    return machine.suspend(
        "poll", "mbarrier_try_wait_parity_shared", lambda: memory_barrier.phase % 2 != parity, is_for_all
    )


class _NamedBarrier:
    """`named_barrier[threads, id]()`: a barrier of all threads of the block; one for some of them is refused.

    >>> named_barrier.with_parameters(64)
    named_barrier
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def with_parameters(self, num_threads: Any = None, *_: Any, **named: Any) -> _NamedBarrier:
        """Return the barrier of `num_threads` threads."""
        return _NamedBarrier(None if num_threads is None else int(num_threads))

    __getitem__ = with_parameters

    def __call__(self, *_: Any) -> Any:
        machine = current_machine("named_barrier()")
        if self._threads not in (None, len(machine.threads)):
            raise LayoutError(
                f"named_barrier for {self._threads} of {len(machine.threads)} threads is not supported; use barrier()"
            )
        return machine.suspend("barrier", "named_barrier", None, None)

    def __repr__(self) -> str:
        return "named_barrier"


named_barrier = _NamedBarrier()
