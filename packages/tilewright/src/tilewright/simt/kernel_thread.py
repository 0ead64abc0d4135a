# SPDX-License-Identifier: Apache-2.0
"""The threads of a kernel: where each is, what it waits for, and the values, such as `thread_idx`, that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import product
from typing import Any, NamedTuple, NoReturn, Protocol

from ..errors import LayoutError, TransferError
from ..layout import as_integer
from .coroutines import Suspension


class Dim(NamedTuple):
    """Up to three numbers of blocks, threads or coordinates, `x`, `y` and `z`: `x` varies fastest.

    >>> Dim(4).z
    1
    """

    x: int
    y: int = 1
    z: int = 1

    def __str__(self) -> str:
        return f"({self.x},{self.y},{self.z})"


def as_dim(value: Any, name: str) -> Dim:
    """Return one to three positive numbers as a `Dim`; `name` is for the error.

    >>> as_dim((4, 2), "block")
    Dim(x=4, y=2, z=1)
    """
    extents = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    numbers = [as_integer(extent, name) for extent in extents]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise LayoutError(f"{name} takes one to three numbers of at least 1, got {value!r}")
    return Dim(*numbers)


def positions(extents: Dim) -> Iterator[Dim]:
    """Yield all coordinates within extents, `x` fastest.

    >>> [tuple(place) for place in positions(Dim(2, 2))]
    [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    """
    for z, y, x in product(range(extents.z), range(extents.y), range(extents.x)):
        yield Dim(x, y, z)


class KernelThread:
    """A thread of a block: its coordinates, its coroutine while it runs, and how often it was synchronised.

    >>> KernelThread(35, Dim(3, 1, 0), warp=32).lane
    3
    """

    __slots__ = (
        "copies",
        "coroutine",
        "done",
        "epoch",
        "index",
        "lane",
        "left_at",
        "pending",
        "position",
        "request",
        "resume",
        "warp",
        "warp_epoch",
    )

    def __init__(self, index: int, position: Dim, warp: int) -> None:
        self.index, self.position = index, position
        self.warp, self.lane = divmod(index, warp)
        self.reset()

    def reset(self) -> None:
        """Prepare the thread for another block.

        >>> thread = KernelThread(0, Dim(0, 0, 0), 32)
        >>> thread.epoch = 4
        >>> thread.reset()
        >>> thread.epoch
        0
        """
        self.coroutine: Any = None
        self.done = False
        self.epoch = self.warp_epoch = 0  # barriers of the block, and of the warp, that it has passed
        self.request: Suspension | None = None  # what it waits for
        self.pending: Suspension | None = None  # what it was given to wait for, and has not waited for yet
        self.copies: list[list[tuple[Any, Any]]] = [[]]  # groups of asynchronous copies, as (store, places)
        self.resume: Any = None  # the value that it goes on with
        self.left_at: int | None = None  # the site of its last synchronisation, if it has returned


class RunningMachine(Protocol):
    """What the functions of a kernel know of the machine that runs it.

    >>> RunningMachine.__name__
    'RunningMachine'
    """

    thread: KernelThread
    threads: list[KernelThread]
    warp: int
    block_index: Dim
    block_dim: Dim
    grid_dim: Dim
    block_state: dict[Any, Any]
    cluster_rank: int
    is_at_cluster_barrier: bool
    plan: Any  # these are of modules that import this one
    log: Any
    memory: Any

    def suspend(self, kind: str, name: str, value: Any, options: Any) -> Suspension:
        """Return what the running thread waits for."""
        ...

    def witness(self, action: str, place: int, thread: KernelThread) -> Any:
        """Return a thread at a site, for a report."""
        ...

    def add_defect(self, defect: Any) -> None:
        """Add a defect to the report."""
        ...

    def stop_block(self, defect: Any) -> NoReturn:
        """Add a defect with which the block cannot go on."""
        ...


_machine: ContextVar[RunningMachine | None] = ContextVar("machine", default=None)


def current_machine(name: str) -> RunningMachine:
    """Return the machine whose kernel runs; raise if none does. `name` is what only a kernel can ask for.

    >>> try:
    ...     current_machine("barrier()")
    ... except TransferError as problem:
    ...     print(problem)
    barrier() is known only inside a kernel; run it with tilewright.simt.launch(kernel, ..., grid=4, block=64)
    """
    machine = _machine.get()
    if machine is None:
        raise TransferError(
            f"{name} is known only inside a kernel; run it with tilewright.simt.launch(kernel, ..., grid=4, block=64)"
        )
    return machine


def is_inside_kernel() -> bool:
    """Return whether a kernel is running.

    >>> is_inside_kernel()
    False
    """
    return _machine.get() is not None


class ThreadValue:
    """A value of the thread that runs, such as `thread_idx.x`.

    >>> thread_idx
    thread_idx
    """

    __slots__ = ("_name", "_read")

    def __init__(self, name: str, read: Callable[[RunningMachine], Dim]) -> None:
        self._name, self._read = name, read

    def _value(self) -> Dim:
        machine = _machine.get()
        return self._read(current_machine(self._name) if machine is None else machine)

    @property
    def x(self) -> int:
        """Return the coordinate that varies fastest."""
        return self._value().x

    @property
    def y(self) -> int:
        """Return the second coordinate."""
        return self._value().y

    @property
    def z(self) -> int:
        """Return the third coordinate."""
        return self._value().z

    def __iter__(self) -> Iterator[int]:
        return iter(self._value())

    def __repr__(self) -> str:
        return self._name


def _global_index(machine: RunningMachine) -> Dim:
    block, size, thread = machine.block_index, machine.block_dim, machine.thread.position
    return Dim(block.x * size.x + thread.x, block.y * size.y + thread.y, block.z * size.z + thread.z)


thread_idx = ThreadValue("thread_idx", lambda machine: machine.thread.position)
block_idx = ThreadValue("block_idx", lambda machine: machine.block_index)
block_dim = ThreadValue("block_dim", lambda machine: machine.block_dim)
grid_dim = ThreadValue("grid_dim", lambda machine: machine.grid_dim)
global_idx = ThreadValue("global_idx", _global_index)


def lane_id() -> int:
    """Return the number of the thread within its warp.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(lane_id(), end=" "), grid=1, block=3).errors
    0 1 2 ()
    """
    return current_machine("lane_id()").thread.lane


def warp_id() -> int:
    """Return the number of the warp within its block.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(warp_id(), end=" "), grid=1, block=(2, 2), warp=2).errors
    0 0 1 1 ()
    """
    return current_machine("warp_id()").thread.warp
