# SPDX-License-Identifier: Apache-2.0
"""Memory that a kernel allocates: shared by the threads of a block, or local to each of them."""

from __future__ import annotations

from math import prod
from typing import Any

from ..copying import aligned_empty
from ..errors import LayoutError
from ..formats import FormatLike, format_of
from ..layout import LayoutLike, as_integer, row_major
from ..tensor import Store, TileTensor
from .kernel_thread import current_machine
from .memory_region import LOCAL, SHARED


def allocate_store(space: str, count: int, dtype: FormatLike) -> Store:
    """Return memory of the running block ("shared") or thread ("local") for `count` scalars, without values.

    All threads of a block that come to the same line get the same shared memory.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(allocate_store("shared", 4, "int8").size), grid=1, block=1).errors
    4
    ()
    """
    element = format_of(dtype).require_scalar("memory of a kernel")
    store: Store = current_machine("memory of a block").memory.allocate(space, count, element, aligned_empty)
    return store


def dynamic_memory(dtype: FormatLike) -> Store:
    """Return the dynamic shared memory of the running block, `shared_bytes` of the launch, as scalars of a format.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(dynamic_memory("float32").size), grid=1, block=1, shared_bytes=64).errors
    16
    ()
    """
    element = format_of(dtype).require_scalar("memory of a kernel")
    machine = current_machine("dynamic shared memory")
    nbytes = machine.plan.shared_bytes
    if not nbytes:
        raise LayoutError("a block has no dynamic shared memory; launch the kernel with shared_bytes=...")
    if nbytes % element.itemsize:
        raise LayoutError(f"{nbytes} bytes of dynamic shared memory are not a multiple of {element.itemsize}")
    store: Store = machine.memory.dynamic(aligned_empty)
    return store.with_fields(data=store.data.view(element.dtype), format=element)


def shared_array(shape: Any, dtype: FormatLike = "float32") -> TileTensor:
    """Return a tensor in the shared memory of the block: one for all its threads, and one per line that asks for it.

    `shape` is a number, a tuple or a layout. The memory has no values until a thread writes them.

    >>> import numpy as np
    >>> from tilewright.simt import barrier, launch, thread_idx
    >>> def kernel(out):
    ...     shared = shared_array((2, 2), "int32")
    ...     if thread_idx.x == 0:
    ...         shared[1, 1] = 5
    ...     barrier()
    ...     out[thread_idx.x] = shared[1, 1]
    >>> numbers = np.zeros(2, dtype=np.int32)
    >>> launch(kernel, numbers, grid=1, block=2).errors, numbers.tolist()
    ((), [5, 5])
    """
    return _make_array(SHARED, shape, dtype)


def local_array(shape: Any, dtype: FormatLike = "float32") -> TileTensor:
    """Return a tensor of the thread's own; `shape` and `dtype` as for `shared_array`.

    >>> from tilewright.simt import launch
    >>> def kernel():
    ...     numbers = local_array(2, "int32")
    ...     numbers[0] = 7
    ...     print(numbers[0])
    >>> launch(kernel, grid=1, block=1).errors
    7
    ()
    """
    return _make_array(LOCAL, shape, dtype)


def _make_array(space: str, shape: Any, dtype: FormatLike) -> TileTensor:
    if isinstance(shape, LayoutLike):
        layout, count = shape, int(shape.cosize)
    else:
        extents = [as_integer(n, "an extent") for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
        if not extents or min(extents) < 0:
            raise LayoutError(f"expected extents of at least 0, got shape {shape!r}")
        layout, count = row_major(*extents), prod(extents)
    store = allocate_store(space, count, dtype)
    machine = current_machine("memory of a block")
    region = machine.log.table.find(store)[0]
    if region.view is None:
        region.view = TileTensor(store.data, layout)
    tensor: TileTensor = region.view
    return tensor
