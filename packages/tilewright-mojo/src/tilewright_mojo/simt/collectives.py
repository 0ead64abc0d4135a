# SPDX-License-Identifier: Apache-2.0
"""Operations of several threads: barriers, shuffles, sums, atomics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.errors import CoordinateError, LayoutError
from tilewright.formats import fit_values
from tilewright.tensor import Store, TileTensor, element_offset

from .kernel_thread import Suspension, current_machine, is_inside_kernel, suspends

Answers: TypeAlias = "dict[int, tuple[Any, int | None]]"  # of each lane: its result, and an inactive lane that it read


class Collective(NamedTuple):
    """An operation of a warp or a block: its name, and the function of its participants' values.

    `compute(values, size)` returns for each the result, and which one was missing for it.

    >>> Collective("any", lambda values, size: {k: (True, None) for k in values}).name
    'any'
    """

    name: str
    compute: Callable[[Mapping[int, Any], int], Answers]


def _suspend(kind: str, name: str, value: object = None, options: object = None) -> Suspension:
    return current_machine(f"{name}()").suspend(kind, name, value, options)


# Barriers.


@suspends
def barrier() -> Suspension:
    """Wait until all threads of the block have come here; what they wrote before is visible to all after it.

    >>> import numpy as np
    >>> from tilewright_mojo.simt import launch, shared_array, thread_idx
    >>> def reverse(out):
    ...     shared, i = shared_array(4, "int64"), thread_idx.x
    ...     shared[i] = i
    ...     barrier()
    ...     out[i] = shared[3 - i]
    >>> numbers = np.zeros(4, dtype=np.int64)
    >>> launch(reverse, numbers, grid=1, block=4).errors, numbers.tolist()
    ((), [3, 2, 1, 0])
    """
    return _suspend("barrier", "barrier")


@suspends
def syncwarp(mask: int = -1) -> Suspension:
    """Wait until the threads of the warp have come here; what they wrote before is visible to them after it.

    `mask` has a bit for each lane that takes part; lanes that have returned do not.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: syncwarp(), grid=1, block=32).errors
    ()
    """
    return _suspend("warp", "syncwarp", mask, SYNCWARP)


def _answer_none(values: Mapping[int, Any], size: int) -> Answers:
    return dict.fromkeys(values, (None, None))


SYNCWARP = Collective("syncwarp", _answer_none)


@suspends
def cluster_barrier() -> Suspension:
    """Wait until all threads of all blocks of the cluster have come here.

    >>> import numpy as np
    >>> from tilewright_mojo.simt import block_idx, launch
    >>> def kernel(parts, totals):
    ...     parts[block_idx.x] = block_idx.x + 1
    ...     cluster_barrier()
    ...     totals[block_idx.x] = parts[0] + parts[1]
    >>> totals = np.zeros(2, dtype=np.int64)
    >>> launch(kernel, np.zeros(2, dtype=np.int64), totals, grid=2, block=1, cluster=2).errors, totals.tolist()
    ((), [3, 3])
    """
    return _suspend("cluster", "cluster_barrier")


# Shuffles: each lane reads the value of another one.


def _shuffle(values: Mapping[int, Any], size: int) -> Answers:
    answers: Answers = {}
    for lane, (value, source) in values.items():
        if source in values:
            answers[lane] = values[source][0], None
        else:
            answers[lane] = value, source
    return answers


_SHUFFLE = Collective("shuffle", _shuffle)


def _suspend_shuffle(name: str, value: object, source: Callable[[int, int], int], width: int | None) -> Suspension:
    machine = current_machine(f"{name}()")
    lane, size = machine.thread.lane, width or machine.warp
    group = lane - lane % size
    wanted = source(lane - group, size)
    inside = group + wanted if 0 <= wanted < size else lane
    return machine.suspend("warp", name, (value, inside), _SHUFFLE)


@suspends
def shuffle_idx(value: object, lane: int, width: int | None = None) -> Suspension:
    """Return the `value` of a `lane`; with a `width` lanes are counted within groups of that many.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(shuffle_idx(lane_id() * 10, 2), end=" ")
    >>> launch(kernel, grid=1, block=4).errors
    20 20 20 20 ()
    """
    return _suspend_shuffle("shuffle_idx", value, lambda own, size: int(lane) % size, width)


@suspends
def shuffle_up(value: object, offset: int, width: int | None = None) -> Suspension:
    """Return the `value` of the lane `offset` below; the first lanes get their own. `width` as in `shuffle_idx`.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(shuffle_up(lane_id(), 1), end=" ")
    >>> launch(kernel, grid=1, block=4).errors
    0 0 1 2 ()
    """
    return _suspend_shuffle("shuffle_up", value, lambda own, size: own - int(offset), width)


@suspends
def shuffle_down(value: object, offset: int, width: int | None = None) -> Suspension:
    """Return the `value` of the lane `offset` above; the last lanes get their own. `width` as in `shuffle_idx`.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(shuffle_down(lane_id(), 1), end=" ")
    >>> launch(kernel, grid=1, block=4, warp=4).errors
    1 2 3 3 ()
    """
    return _suspend_shuffle("shuffle_down", value, lambda own, size: own + int(offset), width)


@suspends
def shuffle_xor(value: object, mask: int, width: int | None = None) -> Suspension:
    """Return the `value` of the lane whose number differs in the bits of `mask`. `width` as in `shuffle_idx`.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(shuffle_xor(lane_id(), 1), end=" ")
    >>> launch(kernel, grid=1, block=4).errors
    1 0 3 2 ()
    """
    return _suspend_shuffle("shuffle_xor", value, lambda own, size: own ^ int(mask), width)


# Reductions, scans and votes.


def _fold(name: str, join: Callable[[Any, Any], Any]) -> Collective:
    """Return the reduction of all values; one that is missing makes it undefined."""

    def compute(values: Mapping[int, Any], size: int) -> Answers:
        missing = next((k for k in range(size) if k not in values), None)
        total: Any = None
        for k, value in enumerate(values.values()):
            total = value if k == 0 else join(total, value)
        return dict.fromkeys(values, (total, missing))

    return Collective(name, compute)


def _scan(values: Mapping[int, Any], size: int) -> Answers:
    answers: Answers = {}
    total: Any = None
    for k in sorted(values):
        value, exclusive = values[k]
        before = value - value if total is None else total
        total = value if total is None else total + value
        missing = next((j for j in range(k) if j not in values), None)
        answers[k] = before if exclusive else total, missing
    return answers


def _vote(name: str, answer: Callable[[Mapping[int, Any]], Any]) -> Collective:
    return Collective(name, lambda values, size: dict.fromkeys(values, (answer(values), None)))


_SUM = _fold("sum", lambda a, b: a + b)
_MAX = _fold("max", lambda a, b: b if _is_true(b > a) else a)
_MIN = _fold("min", lambda a, b: b if _is_true(b < a) else a)
_SCAN = Collective("prefix_sum", _scan)
_ANY = _vote("vote_any", lambda values: any(map(_is_true, values.values())))
_ALL = _vote("vote_all", lambda values: all(map(_is_true, values.values())))
_BALLOT = _vote("ballot", lambda values: sum(1 << lane for lane, value in values.items() if _is_true(value)))


def _is_true(value: object) -> bool:
    return bool(value)


@suspends
def warp_sum(value: object) -> Suspension:
    """Return the sum of the `value` of all lanes of the warp, to each of them.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(warp_sum(lane_id()), end=" ")
    >>> launch(kernel, grid=1, block=4, warp=4).errors
    6 6 6 6 ()
    """
    return _suspend("warp", "warp_sum", value, _SUM)


@suspends
def warp_max(value: object) -> Suspension:
    """Return the largest `value` of the lanes of the warp.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(warp_max(lane_id()), end=" ")
    >>> launch(kernel, grid=1, block=2, warp=2).errors
    1 1 ()
    """
    return _suspend("warp", "warp_max", value, _MAX)


@suspends
def warp_min(value: object) -> Suspension:
    """Return the smallest `value` of the lanes of the warp.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(warp_min(lane_id()), end=" ")
    >>> launch(kernel, grid=1, block=2, warp=2).errors
    0 0 ()
    """
    return _suspend("warp", "warp_min", value, _MIN)


@suspends
def warp_reduce(value: object, join: Callable[[Any, Any], Any]) -> Suspension:
    """Return the `value` of all lanes of the warp, joined two by two by the function `join`.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(warp_reduce(lane_id() + 1, lambda a, b: a * b), end=" ")
    >>> launch(kernel, grid=1, block=4, warp=4).errors
    24 24 24 24 ()
    """
    return _suspend("warp", "warp_reduce", value, _fold("warp_reduce", join))


@suspends
def warp_broadcast(value: object) -> Suspension:
    """Return the `value` of lane 0.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(warp_broadcast(lane_id() + 5), end=" ")
    >>> launch(kernel, grid=1, block=2).errors
    5 5 ()
    """
    return _suspend_shuffle("warp_broadcast", value, lambda own, size: 0, None)


@suspends
def warp_prefix_sum(value: object, exclusive: bool = False) -> Suspension:
    """Return the sum of the `value` of all lanes up to this one; an `exclusive` sum stops before it.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(warp_prefix_sum(lane_id()), end=" ")
    >>> launch(kernel, grid=1, block=4).errors
    0 1 3 6 ()
    """
    return _suspend("warp", "warp_prefix_sum", (value, exclusive), _SCAN)


@suspends
def vote_any(value: object) -> Suspension:
    """Return whether `value` is true in any lane of the warp.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(vote_any(lane_id() == 1), end=" ")
    >>> launch(kernel, grid=1, block=2).errors
    True True ()
    """
    return _suspend("warp", "vote_any", value, _ANY)


@suspends
def vote_all(value: object) -> Suspension:
    """Return whether `value` is true in all lanes of the warp.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(vote_all(lane_id() == 1), end=" ")
    >>> launch(kernel, grid=1, block=2).errors
    False False ()
    """
    return _suspend("warp", "vote_all", value, _ALL)


@suspends
def ballot(value: object) -> Suspension:
    """Return a number with a bit for each lane of the warp in which `value` is true.

    >>> from tilewright_mojo.simt import lane_id, launch
    >>> def kernel():
    ...     print(bin(ballot(lane_id() != 1)), end=" ")
    >>> launch(kernel, grid=1, block=3).errors
    0b101 0b101 0b101 ()
    """
    return _suspend("warp", "ballot", value, _BALLOT)


# Of a block: all its threads take part, and what they wrote before is visible to all after it.


def _only_first(operation: Collective) -> Collective:
    """Return an operation whose result only the first thread gets; the others keep their own value."""

    def compute(values: Mapping[int, Any], size: int) -> Answers:
        answers = operation.compute(values, size)
        return {k: answers[k] if k == 0 else (values[k], None) for k in values}

    return Collective(operation.name, compute)


@suspends
def block_sum(value: object, broadcast: bool = True) -> Suspension:
    """Return the sum of the `value` of all threads of the block; without `broadcast` only thread 0 gets it.

    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel():
    ...     print(block_sum(thread_idx.x), end=" ")
    >>> launch(kernel, grid=1, block=3).errors
    3 3 3 ()
    """
    return _suspend("block", "block_sum", value, _SUM if broadcast else _only_first(_SUM))


@suspends
def block_max(value: object, broadcast: bool = True) -> Suspension:
    """Return the largest `value` of the threads of the block; without `broadcast` only thread 0 gets it.

    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel():
    ...     print(block_max(thread_idx.x), end=" ")
    >>> launch(kernel, grid=1, block=3).errors
    2 2 2 ()
    """
    return _suspend("block", "block_max", value, _MAX if broadcast else _only_first(_MAX))


@suspends
def block_min(value: object, broadcast: bool = True) -> Suspension:
    """Return the smallest `value` of the threads of the block; without `broadcast` only thread 0 gets it.

    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel():
    ...     print(block_min(thread_idx.x), end=" ")
    >>> launch(kernel, grid=1, block=3).errors
    0 0 0 ()
    """
    return _suspend("block", "block_min", value, _MIN if broadcast else _only_first(_MIN))


@suspends
def block_reduce(value: object, join: Callable[[Any, Any], Any], broadcast: bool = True) -> Suspension:
    """Return the `value` of all threads, joined two by two by `join`; without `broadcast` only thread 0 gets it.

    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel():
    ...     print(block_reduce(thread_idx.x + 1, lambda a, b: a * b), end=" ")
    >>> launch(kernel, grid=1, block=3).errors
    6 6 6 ()
    """
    operation = _fold("block_reduce", join)
    return _suspend("block", "block_reduce", value, operation if broadcast else _only_first(operation))


@suspends
def block_broadcast(value: object, source: int = 0) -> Suspension:
    """Return the `value` of the thread number `source` of the block.

    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel():
    ...     print(block_broadcast(thread_idx.x, 2), end=" ")
    >>> launch(kernel, grid=1, block=3).errors
    2 2 2 ()
    """
    return _suspend("block", "block_broadcast", (value, int(source)), _SHUFFLE)


@suspends
def block_prefix_sum(value: object, exclusive: bool = False) -> Suspension:
    """Return the sum of the `value` of all threads up to this one; an `exclusive` sum stops before it.

    >>> from tilewright_mojo.simt import launch, thread_idx
    >>> def kernel():
    ...     print(block_prefix_sum(thread_idx.x, exclusive=True), end=" ")
    >>> launch(kernel, grid=1, block=4).errors
    0 0 1 3 ()
    """
    return _suspend("block", "block_prefix_sum", (value, exclusive), _SCAN)


def locate_scalar(target: object, index: object) -> tuple[Store, int]:
    """Return (store, offset) of an element of a tensor, or of a pointer: anything with `memory` and an `offset`.

    >>> import tilewright as tw
    >>> locate_scalar(tw.TileTensor([1, 2, 3], tw.row_major(3)), 2)[1]
    2
    """
    entries = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    if isinstance(target, TileTensor):
        return target._store, int(element_offset(target, entries))
    store = getattr(target, "memory", None)
    if isinstance(store, Store) and len(entries) == 1:
        offset = int(getattr(target, "offset", 0)) + int(entries[0])
        if 0 <= offset < store.size:
            return store, offset
        raise CoordinateError(f"scalar {offset} is outside the storage, which has 0 to {store.size - 1}")
    raise TypeError(f"an atomic operation takes a tensor or a pointer and an index, got {type(target).__name__}")


def update_scalar(store: Store, offset: int, change: Callable[[Any], Any] | None, reads: bool = True) -> np.generic:
    """Return the old value of a scalar, and replace it by `change(old)`; without a change it is only read.

    `reads` tells whether the old value matters.

    >>> store = Store.of([1, 2, 3])
    >>> int(update_scalar(store, 1, lambda old: old + 5)), store.data.tolist()
    (2, [1, 7, 3])
    """
    if change is not None and store.readonly:
        raise LayoutError("an atomic operation cannot change read-only memory")
    if is_inside_kernel():
        machine = current_machine("an atomic operation")
        if machine.plan.check is not False:
            machine.log.update(store, offset, reads, change is not None)
    old: np.generic = store.host[offset]
    if change is not None:
        store.host[offset] = fit_values(change(old), store.format)
    return old


def atomic_add(target: object, index: object, value: object) -> np.generic:
    """Add `value` to the element of `target` at `index`; return its old value.

    >>> import numpy as np
    >>> from tilewright_mojo.simt import launch
    >>> count = np.zeros(1, dtype=np.int64)
    >>> launch(lambda total: atomic_add(total, 0, 1), count, grid=4, block=8).errors, count.tolist()
    ((), [32])
    """
    return update_scalar(*locate_scalar(target, index), lambda old: old + value)


def atomic_sub(target: object, index: object, value: object) -> np.generic:
    """Subtract `value` from the element of `target` at `index`; return its old value.

    >>> import tilewright as tw
    >>> int(atomic_sub(tw.TileTensor([5], tw.row_major(1)), 0, 2))
    5
    """
    return update_scalar(*locate_scalar(target, index), lambda old: old - value)


def atomic_max(target: object, index: object, value: object) -> np.generic:
    """Replace the element of `target` at `index` by `value` if that is larger; return its old value.

    >>> import tilewright as tw
    >>> numbers = tw.TileTensor([5], tw.row_major(1))
    >>> int(atomic_max(numbers, 0, 9)), int(numbers[0])
    (5, 9)
    """
    return update_scalar(*locate_scalar(target, index), lambda old: max(old, value))


def atomic_min(target: object, index: object, value: object) -> np.generic:
    """Replace the element of `target` at `index` by `value` if that is smaller; return its old value.

    >>> import tilewright as tw
    >>> numbers = tw.TileTensor([5], tw.row_major(1))
    >>> int(atomic_min(numbers, 0, 9)), int(numbers[0])
    (5, 5)
    """
    return update_scalar(*locate_scalar(target, index), lambda old: min(old, value))


def atomic_exchange(target: object, index: object, value: object) -> np.generic:
    """Replace the element of `target` at `index` by `value`; return its old value.

    >>> import tilewright as tw
    >>> int(atomic_exchange(tw.TileTensor([5], tw.row_major(1)), 0, 2))
    5
    """
    return update_scalar(*locate_scalar(target, index), lambda old: value)


def atomic_compare_exchange(target: object, index: object, expected: object, value: object) -> np.generic:
    """Replace the element of `target` at `index` by `value` if it is `expected`; return its old value.

    >>> import tilewright as tw
    >>> numbers = tw.TileTensor([5], tw.row_major(1))
    >>> int(atomic_compare_exchange(numbers, 0, 4, 9)), int(numbers[0])
    (5, 5)
    """
    return update_scalar(*locate_scalar(target, index), lambda old: value if old == expected else old)


def atomic_load(target: object, index: object) -> np.generic:
    """Return the element of `target` at `index`, read atomically.

    >>> import tilewright as tw
    >>> int(atomic_load(tw.TileTensor([5], tw.row_major(1)), 0))
    5
    """
    return update_scalar(*locate_scalar(target, index), None)


def atomic_store(target: object, index: object, value: object) -> None:
    """Write `value` atomically to the element of `target` at `index`.

    >>> import tilewright as tw
    >>> atomic_store(tw.TileTensor([5], tw.row_major(1)), 0, 2)
    """
    update_scalar(*locate_scalar(target, index), lambda old: value, reads=False)


def fence() -> None:
    """Order the memory accesses of this thread, as others see them; it does not make it wait, so races remain races.

    >>> fence()
    """
