# SPDX-License-Identifier: Apache-2.0
"""Memory on the stack: of a block or a thread inside a kernel, else of the host."""

from __future__ import annotations

from ..copying.host_memory import aligned_empty
from ..errors import LayoutError
from ..formats import ScalarFormat
from ..simt.kernel_thread import is_inside_kernel
from ..simt.memory_region import LOCAL, SHARED
from ..simt.shared_memory import allocate_store
from ..tensor.store import Store
from .pointer import AddressSpace, LabelledStore, label_store


def allocate_on_stack(element: ScalarFormat, count: int, space: AddressSpace = AddressSpace.GENERIC) -> LabelledStore:
    """Return memory for `count` scalars: inside a kernel one for a block (SHARED) or for a thread, else of the host.

    Inside a kernel it has no values until they are written; on the host it is not initialised either.

    >>> from tilewright.formats import format_of
    >>> allocate_on_stack(format_of("float32"), 4).size
    4
    """
    if count < 0:
        raise LayoutError(f"the number of elements must not be negative, got {count}")
    if is_inside_kernel():
        store = allocate_store(SHARED if space is AddressSpace.SHARED else LOCAL, count, element)
    else:
        data = aligned_empty(count, element.dtype)
        store = Store(data, element, data, False)
    return label_store(store, space)
