# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `std.gpu`: the indices of a kernel's threads, and operations they share."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout import as_integer
from tilewright.mojo import AddressSpace, DType, MojoValue, Pointer, brackets

from ..simt import cluster_barrier
from ..simt import lane_id as _lane_id
from ..simt import syncwarp as _syncwarp
from ..simt import warp_id as _warp_id
from ..simt.access_log import commit_copies, dynamic_memory, start_copy, wait_for_copies
from ..simt.collectives import fence, locate_scalar, update_scalar
from ..simt.kernel_thread import Dim, RunningMachine, ThreadValue, current_machine, suspends

WARP_SIZE = 32
WARPGROUP_SIZE = 128
MAX_THREADS_PER_BLOCK_METADATA = "nvvm.maxntid"


threadfence: Any = brackets(lambda parameters, *arguments, **named: fence())


@brackets
def ldg(parameters: tuple[Any, ...], pointer: Any, **named: Any) -> MojoValue:
    """Return the scalar that a pointer points to: `ldg(pointer)`."""
    return pointer.load(0)


class Fill(Enum):
    """The value that a copy writes where its source is not valid.

    >>> Fill.ZERO.value
    1
    """

    NONE = 0
    ZERO = 1
    NAN = 2


@brackets
def external_memory(parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> Pointer:
    """Return a pointer to the dynamic shared memory of the block."""
    element = DType.of((*parameters, named.get("dtype"), named.get("type"))[0])
    return Pointer(dynamic_memory(element), 0).address_space_cast[AddressSpace.SHARED]()


@brackets
def async_copy(
    parameters: tuple[Any, ...], src: Any, dst: Any, size: object = None, fill: object = None, **named: Any
) -> None:
    """Copy `size` bytes, by default 16, from global to shared memory."""
    numbers = [entry for entry in parameters if isinstance(entry, int) and not isinstance(entry, bool)]
    nbytes = int(as_integer(size if size is not None else (numbers[0] if numbers else 16), "a size in bytes"))
    count = nbytes // src.memory.format.itemsize
    dst.store(src.load[count]())
    start_copy(dst.memory, range(dst.offset, dst.offset + count))


def async_copy_commit_group() -> None:
    """End a group of asynchronous copies.

    >>> async_copy_commit_group()
    """
    commit_copies()


def async_copy_wait_all() -> None:
    """Wait for the asynchronous copies of the thread; other threads see its copies after a barrier.

    >>> async_copy_wait_all()
    """
    wait_for_copies()


def async_copy_wait_group(n: object = 0) -> None:
    """Wait until at most `n` groups of asynchronous copies are not done.

    >>> async_copy_wait_group(0)
    """
    wait_for_copies(int(as_integer(n, "a number of groups")))


fence_mbarrier_init = fence


def block_rank_in_cluster() -> int:
    """Return the number of the block in its cluster.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(block_rank_in_cluster(), end=" "), grid=4, block=1, cluster=2).clean
    0 1 0 1 True
    """
    return current_machine("block_rank_in_cluster()").cluster_rank


def cluster_arrive() -> None:
    """Mark the arrival of the thread; here only `cluster_wait()` counts, which has to follow.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: cluster_arrive(), grid=2, block=1, cluster=2).clean
    True
    """
    current_machine("cluster_arrive()")


@suspends
def cluster_wait() -> MojoValue:
    """Wait for all threads of the cluster.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: cluster_wait(), grid=2, block=2, cluster=2).clean
    True
    """
    return cluster_barrier()


cluster_arrive_relaxed = cluster_arrive
cluster_sync = cluster_sync_relaxed = cluster_wait


def elect_one_sync() -> bool:
    """Return whether this is the thread that acts for its warp: the first one.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(elect_one_sync(), end=" "), grid=1, block=2).clean
    True False True
    """
    return current_machine("elect_one_sync()").thread.lane == 0


def _thread_function(function: Callable[[], int]) -> brackets[int]:
    """Return a function without arguments whose parameters are hints, such as `warp_id[broadcast=True]()`."""
    return brackets(lambda parameters, **_: int(function()))


lane_id, warp_id = _thread_function(_lane_id), _thread_function(_warp_id)


def _in_cluster(machine: RunningMachine) -> Dim:
    pairs = zip(machine.block_index, machine.plan.cluster, strict=True)
    return Dim(*[index % extent for index, extent in pairs])


def _cluster_index(machine: RunningMachine) -> Dim:
    pairs = zip(machine.block_index, machine.plan.cluster, strict=True)
    return Dim(*[index // extent for index, extent in pairs])


cluster_idx = ThreadValue("cluster_idx", _cluster_index)
cluster_dim = ThreadValue("cluster_dim", lambda machine: Dim(*machine.plan.cluster))
block_id_in_cluster = ThreadValue("block_id_in_cluster", _in_cluster)


@suspends
def syncwarp(mask: object = -1) -> MojoValue:
    """Wait for the threads of the warp; `mask` has a bit for each lane that takes part.

    >>> from tilewright_mojo.simt import launch
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


def _barrier_at(machine: RunningMachine, pointer: object) -> _MemoryBarrier:
    found: _MemoryBarrier | None = machine.block_state.get(_key(pointer))
    if found is None:
        raise LayoutError("this memory is not a barrier; call mbarrier_init(pointer, threads) and barrier() first")
    return found


def _key(pointer: Any) -> tuple[int, int]:
    return id(pointer.memory.data), int(pointer.offset)


def mbarrier_init(shared_mem: object, num_threads: object) -> None:
    """Make a barrier at a pointer into shared memory that waits for `num_threads` threads.

    >>> mbarrier_init.__name__
    'mbarrier_init'
    """
    machine = current_machine("mbarrier_init()")
    expected = int(as_integer(num_threads, "a number of threads"))
    store, offset = locate_scalar(shared_mem, 0)
    if machine.plan.check is not False:  # a write like others: a barrier() has to be between it and the first arrival
        machine.log.write(store, offset)
    store.host[offset] = expected
    machine.block_state[_key(shared_mem)] = _MemoryBarrier(expected)


def mbarrier_arrive(shared_mem: object) -> int:
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
def mbarrier_test_wait(shared_mem: object, state: object) -> MojoValue:
    """Wait until the phase in which the thread has arrived is complete; return True. (Mojo's returns at once.)

    >>> mbarrier_test_wait.__name__
    'mbarrier_test_wait'
    """
    machine = current_machine("mbarrier_test_wait()")
    memory_barrier = _barrier_at(machine, shared_mem)
    phase = memory_barrier.phases.get(machine.thread.index, memory_barrier.phase)
    is_for_all = memory_barrier.expected == len(machine.threads)
    return machine.suspend("poll", "mbarrier_test_wait", lambda: memory_barrier.phase > phase, is_for_all)
