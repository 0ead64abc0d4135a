# SPDX-License-Identifier: Apache-2.0
"""Atomic operations on elements of tensors: each happens at once, and they do not race with each other.

A target is an element: a tensor, or a pointer of a dialect, and an index as two arguments. Threads run one
after another, so that every operation is atomic by itself; the machine only has to know that it was meant to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import CoordinateError, LayoutError
from ..formats import fit_values
from ..tensor import Store, View, element_place
from .kernel_thread import current_machine, is_inside_kernel


def locate_scalar(target: Any, index: Any) -> tuple[Store, int]:
    """Return (store, place) of an element of a tensor, or of a pointer: anything with `memory` and an `offset`.

    >>> import tilewright as tw
    >>> locate_scalar(tw.TileTensor([1, 2, 3], tw.row_major(3)), 2)[1]
    2
    """
    entries = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    if isinstance(target, View):
        return target._store, int(element_place(target, entries))
    store = getattr(target, "memory", None)
    if isinstance(store, Store) and len(entries) == 1:
        place = int(getattr(target, "offset", 0)) + int(entries[0])
        if 0 <= place < store.size:
            return store, place
        raise CoordinateError(f"scalar {place} is outside the storage, which has 0 to {store.size - 1}")
    raise TypeError(f"an atomic operation takes a tensor or a pointer and an index, got {type(target).__name__}")


def update_scalar(store: Store, place: int, change: Callable[[Any], Any] | None, reads: bool = True) -> Any:
    """Return the old value of a scalar, and replace it by `change(old)`; without a change it is only read.

    `reads` says whether the old value matters.

    >>> store = Store.of([1, 2, 3])
    >>> int(update_scalar(store, 1, lambda old: old + 5)), store.data.tolist()
    (2, [1, 7, 3])
    """
    if change is not None and store.readonly:
        raise LayoutError("an atomic operation cannot change read-only memory")
    if is_inside_kernel():
        machine = current_machine("an atomic operation")
        if machine.plan.check is not False:
            machine.log.update(store, place, reads, change is not None)
    old = store.host[place]
    if change is not None:
        store.host[place] = fit_values(change(old), store.format)
    return old


def atomic_add(target: Any, index: Any, value: Any) -> Any:
    """Add `value` to the element of `target` at `index`; return what it was before.

    >>> import numpy as np
    >>> from tilewright.simt import launch
    >>> count = np.zeros(1, dtype=np.int64)
    >>> launch(lambda total: atomic_add(total, 0, 1), count, grid=4, block=8).errors, count.tolist()
    ((), [32])
    """
    return update_scalar(*locate_scalar(target, index), lambda old: old + value)


def atomic_sub(target: Any, index: Any, value: Any) -> Any:
    """Subtract `value` from the element of `target` at `index`; return what it was before.

    >>> import tilewright as tw
    >>> int(atomic_sub(tw.TileTensor([5], tw.row_major(1)), 0, 2))
    5
    """
    return update_scalar(*locate_scalar(target, index), lambda old: old - value)


def atomic_max(target: Any, index: Any, value: Any) -> Any:
    """Replace the element of `target` at `index` by `value` if that is larger; return what it was before.

    >>> import tilewright as tw
    >>> numbers = tw.TileTensor([5], tw.row_major(1))
    >>> int(atomic_max(numbers, 0, 9)), int(numbers[0])
    (5, 9)
    """
    return update_scalar(*locate_scalar(target, index), lambda old: max(old, value))


def atomic_min(target: Any, index: Any, value: Any) -> Any:
    """Replace the element of `target` at `index` by `value` if that is smaller; return what it was before.

    >>> import tilewright as tw
    >>> numbers = tw.TileTensor([5], tw.row_major(1))
    >>> int(atomic_min(numbers, 0, 9)), int(numbers[0])
    (5, 5)
    """
    return update_scalar(*locate_scalar(target, index), lambda old: min(old, value))


def atomic_exchange(target: Any, index: Any, value: Any) -> Any:
    """Replace the element of `target` at `index` by `value`; return what it was before.

    >>> import tilewright as tw
    >>> int(atomic_exchange(tw.TileTensor([5], tw.row_major(1)), 0, 2))
    5
    """
    return update_scalar(*locate_scalar(target, index), lambda old: value)


def atomic_compare_exchange(target: Any, index: Any, expected: Any, value: Any) -> Any:
    """Replace the element of `target` at `index` by `value` if it is `expected`; return what it was before.

    >>> import tilewright as tw
    >>> numbers = tw.TileTensor([5], tw.row_major(1))
    >>> int(atomic_compare_exchange(numbers, 0, 4, 9)), int(numbers[0])
    (5, 5)
    """
    return update_scalar(*locate_scalar(target, index), lambda old: value if old == expected else old)


def atomic_load(target: Any, index: Any) -> Any:
    """Return the element of `target` at `index`, read atomically.

    >>> import tilewright as tw
    >>> int(atomic_load(tw.TileTensor([5], tw.row_major(1)), 0))
    5
    """
    return update_scalar(*locate_scalar(target, index), None)


def atomic_store(target: Any, index: Any, value: Any) -> None:
    """Write `value` atomically to the element of `target` at `index`.

    >>> import tilewright as tw
    >>> atomic_store(tw.TileTensor([5], tw.row_major(1)), 0, 2)
    """
    update_scalar(*locate_scalar(target, index), lambda old: value, reads=False)


def fence() -> None:
    """Order the memory accesses of this thread, as others see them; it does not make it wait, so races remain races.

    >>> fence()
    """
