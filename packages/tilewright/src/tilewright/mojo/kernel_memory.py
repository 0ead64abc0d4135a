# SPDX-License-Identifier: Apache-2.0
"""Memory on the stack: of a block or a thread inside a kernel, else of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import LayoutError
from ..formats import ScalarFormat
from ..simt.access_log import LOCAL, SHARED, allocate_store
from ..simt.kernel_thread import current_machine, is_inside_kernel
from ..tensor.store import Store
from ..tensor.view import View
from .memory import AddressSpace, LabelledStore, Pointer, label_store
from .scalar_memory import zeroed

Kind = TypeVar("Kind")


def allocate_on_stack(element: ScalarFormat, count: int, space: AddressSpace = AddressSpace.GENERIC) -> LabelledStore:
    """Return memory for `count` scalars: inside a kernel one for a block (SHARED) or for a thread, else of the host.

    Inside a kernel it has no values until they are written; on the host it is zeros.

    >>> from tilewright.formats import format_of
    >>> allocate_on_stack(format_of("float32"), 4).size
    4
    """
    if count < 0:
        raise LayoutError(f"the number of elements must not be negative, got {count}")
    if is_inside_kernel():
        store = allocate_store(SHARED if space is AddressSpace.SHARED else LOCAL, count, element)
    else:
        data = zeroed(count, element.dtype)
        store = Store(data, element, data, False)
    return label_store(store, space)


def tensor_on_stack(
    element: ScalarFormat, count: int, space: AddressSpace, layout: Any, make: Callable[[Pointer], Kind]
) -> Kind:
    """Return `make(pointer)`, a tensor over new memory of `count` scalars; in shared memory one for a block.

    `layout` is what the tensors that different calls make of the same memory differ in.

    >>> from tilewright.formats import format_of
    >>> from tilewright.mojo.layout import TileTensor, row_major
    >>> tile = row_major[2, 2]()
    >>> tensor_on_stack(format_of("int8"), 4, AddressSpace.LOCAL, tile, lambda p: TileTensor(p, tile)).shape
    (2, 2)
    """
    store = allocate_on_stack(element, count, space)
    if space is not AddressSpace.SHARED or not is_inside_kernel():
        return make(Pointer(store, 0))
    machine = current_machine("shared memory")
    tensors = machine.memory.tensors
    key = (id(store.data), layout)
    tensor: Kind | None = tensors.get(key)
    if tensor is None:
        tensor = tensors[key] = make(Pointer(store, 0))
        region = machine.log.table.find(store)[0]
        if region.view is None and isinstance(tensor, View):
            region.view = tensor  # so that reports name its coordinates
    return tensor
