# SPDX-License-Identifier: Apache-2.0
"""Boxes of stored arrays, read and written in the thread that asks for them.

Zarr 3 runs every request on one event loop of its own, which hands each chunk to a pool of threads: two threads that
read chunks meet in that loop and wait for each other. Where a store is local, its coroutines run here instead, on a
loop of the calling thread whose "pool" is that thread itself: reading, decoding, encoding and writing of a chunk then
cost what the file system and the codec cost, and as many threads as there are cores do so at once. Stores in a network
stay on zarr's loop, which their connections belong to.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..copying import find_device_array
from .array_store import is_hdf5, is_zarr
from .transfer_tensors import ExternalTensor
from .zarr_chunks import ZarrChunks, open_zarr_chunks

Slices = tuple[slice, ...]

_LOCAL_STORES = {"LocalStore", "MemoryStore"}
"""Stores of zarr 3 whose coroutines run on any event loop."""


class StoreAccess(NamedTuple):
    """How boxes of a stored array are read and written.

    `is_parallel`: several threads may use it at once, and gain by it; `is_remote`: they mostly wait for a network.

    >>> access = open_access(np.arange(6))
    >>> access.read((slice(2, 4),)).tolist(), access.is_parallel
    ([2, 3], False)
    """

    read: Callable[[Slices], Any]
    write: Callable[[Slices, Any], None]
    is_parallel: bool = False
    is_remote: bool = False


def open_access(array: Any) -> StoreAccess:
    """Return how boxes of an array are read and written; unknown objects are sliced.

    >>> values = np.zeros(4)
    >>> open_access(values).write((slice(1, 3),), [7, 8])
    >>> values.tolist()
    [0.0, 7.0, 8.0, 0.0]
    """

    def write(box: Slices, values: Any) -> None:
        array[box] = values

    own_access = getattr(array, "open_access", None)
    if own_access is not None:
        access: StoreAccess = own_access()
        return access
    access = StoreAccess(array.__getitem__, write)
    if is_zarr(array):
        inner = getattr(array, "async_array", None)  # zarr 2 has none: it works in the calling thread anyway
        if inner is None:
            return access._replace(is_parallel=True)
        if _is_local(array.store):
            return _ThreadAccess(inner, access, open_zarr_chunks(array)).as_access()
        return access._replace(is_parallel=True, is_remote=True)
    if is_hdf5(array):
        return access  # one lock for all of HDF5
    return access._replace(
        is_parallel=bool(getattr(array, "is_parallel", False)), is_remote=bool(getattr(array, "is_remote", False))
    )


def is_stored(array: Any) -> bool:
    """Return whether an array is neither in memory nor in a mapped file, but behind an object that slices.

    >>> is_stored(np.zeros(3)), is_stored(memoryview(b"abc"))
    (False, True)
    """
    return not isinstance(array, (np.ndarray, ExternalTensor)) and find_device_array(array) is None


def _is_local(store: Any) -> bool:
    """Return whether the coroutines of a zarr store run on any event loop, also behind wrappers that log or count."""
    while not _LOCAL_STORES & {kind.__name__ for kind in type(store).__mro__}:
        if not hasattr(store, "_store"):
            return False
        store = store._store
    return True


class _ThreadAccess:
    """Boxes of a zarr array in a local store, read and written by the calling thread alone: its chunks, or by zarr."""

    def __init__(self, inner: Any, fallback: StoreAccess, chunks: ZarrChunks | None) -> None:
        self._inner, self._fallback, self._chunks = inner, fallback, chunks

    def as_access(self) -> StoreAccess:
        return StoreAccess(self.read, self.write, is_parallel=True)

    def read(self, box: Slices) -> Any:
        if self._chunks is not None:
            return self._chunks.read(box)
        if _has_running_loop():
            return self._fallback.read(box)
        return run_in_thread(self._inner.getitem(box))

    def write(self, box: Slices, values: Any) -> None:
        if self._chunks is not None and self._chunks.covers(box):
            self._chunks.write(box, values)
        elif _has_running_loop():
            self._fallback.write(box, values)
        else:
            run_in_thread(self._inner.setitem(box, values))


def _has_running_loop() -> bool:
    """Return whether this thread runs an event loop, as a notebook does; it cannot run another one then."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _InlineExecutor(ThreadPoolExecutor):
    """An executor without threads: a call runs at once, in the thread that submits it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as problem:
            future.set_exception(problem)
        return future


_idle_loops: list[asyncio.AbstractEventLoop] = []
_loops_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle_loops.clear)


def run_in_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in the calling thread, with all that it would hand to other threads, and return its result.

    >>> async def name_thread():
    ...     return await asyncio.to_thread(lambda: threading.current_thread().name)
    >>> run_in_thread(name_thread()) == threading.current_thread().name
    True
    """
    with _loops_lock:
        loop = _idle_loops.pop() if _idle_loops else None
    if loop is None:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_InlineExecutor(1))
    try:
        return loop.run_until_complete(coroutine)
    finally:
        with _loops_lock:
            _idle_loops.append(loop)


@atexit.register
def close_idle_loops() -> None:
    """Close the event loops that wait to be used again."""
    with _loops_lock:
        while _idle_loops:
            _idle_loops.pop().close()
