# SPDX-License-Identifier: Apache-2.0
"""The threads of a kernel: `thread_idx`, `block_idx` and the like, and the launch that runs them one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import product
from typing import Any, NamedTuple

from ....errors import TransferError
from ....layout.validation import as_integer

__all__ = ["Dim", "barrier", "block_dim", "block_idx", "global_idx", "grid_dim", "thread_idx"]


class Dim(NamedTuple):
    """Up to three numbers of blocks, threads or coordinates: `x` is the fastest.

    >>> Dim(4).z
    1
    """

    x: int
    y: int = 1
    z: int = 1


class _Thread(NamedTuple):
    """The thread that runs: its names are those of Mojo."""

    grid_dim: Dim
    block_dim: Dim
    block_idx: Dim
    thread_idx: Dim

    @property
    def global_idx(self) -> Dim:
        triples = zip(self.block_idx, self.block_dim, self.thread_idx, strict=True)
        return Dim(*[block * size + thread for block, size, thread in triples])


_running: ContextVar[_Thread] = ContextVar("running")


class ThreadValue:
    """A value of the thread that runs, such as `thread_idx.x`.

    >>> launch(lambda: print(global_idx.x, end=" "), (), grid_dim=2, block_dim=3)
    0 1 2 3 4 5
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _value(self) -> Dim:
        try:
            value: Dim = getattr(_running.get(), self._name)
        except LookupError:
            raise TransferError(
                f"{self._name} is known only inside a kernel; run it with ctx.enqueue_function[kernel](...)"
            ) from None
        return value

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

    def __repr__(self) -> str:
        return self._name


thread_idx, block_idx, global_idx = ThreadValue("thread_idx"), ThreadValue("block_idx"), ThreadValue("global_idx")
block_dim, grid_dim = ThreadValue("block_dim"), ThreadValue("grid_dim")


def barrier() -> None:
    """Raise: threads run one after another, so that none can wait for another.

    >>> try:
    ...     barrier()
    ... except TransferError as problem:
    ...     print(str(problem).partition(";")[0])
    cannot wait at a barrier: the threads of a kernel run one after another
    """
    raise TransferError(
        "cannot wait at a barrier: the threads of a kernel run one after another; launch a kernel for each part"
        " between barriers"
    )


def launch(kernel: Callable[..., Any], arguments: tuple[Any, ...], grid_dim: Any, block_dim: Any) -> None:
    """Call `kernel` with `arguments` for every thread of `block_dim` threads in `grid_dim` blocks, in order.

    >>> launch(lambda: print(block_idx.x, thread_idx.y), (), grid_dim=1, block_dim=(1, 2))
    0 0
    0 1
    """
    grid, block = _as_dim(grid_dim, "grid_dim"), _as_dim(block_dim, "block_dim")
    for block_position in _positions(grid):
        for thread_position in _positions(block):
            token = _running.set(_Thread(grid, block, block_position, thread_position))
            try:
                kernel(*arguments)
            finally:
                _running.reset(token)


def _as_dim(value: Any, name: str) -> Dim:
    extents = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    numbers = [as_integer(extent, name) for extent in extents]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise TransferError(f"{name} takes one to three numbers of at least 1, got {value!r}")
    return Dim(*numbers)


def _positions(extents: Dim) -> Iterator[Dim]:
    for z, y, x in product(*map(range, reversed(extents))):
        yield Dim(x, y, z)
