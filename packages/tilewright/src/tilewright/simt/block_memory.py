# SPDX-License-Identifier: Apache-2.0
"""The memory that the kernel of a machine allocates: shared by a block, or local to a thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..formats import ScalarFormat
from ..tensor import Store
from .access_log import Site, call_path, name_assigned_at
from .kernel_report import Defect, Witness
from .kernel_thread import RunningMachine
from .memory_region import SHARED, MemoryRegion


class BlockMemory:
    """Allocates memory, and takes it again for the next block.

    >>> from tilewright.simt.launch_plan import LaunchPlan
    >>> from tilewright.simt.machine import SimtMachine
    >>> from tilewright.simt.kernel_thread import Dim
    >>> BlockMemory(SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))).static_bytes
    0
    """

    def __init__(self, machine: RunningMachine) -> None:
        self._machine = machine
        self.tensors: dict[Any, Any] = {}  # of a dialect, over shared memory
        self._shared: dict[Any, Store] = {}
        self._local: dict[Any, list[tuple[Store, int]]] = {}  # with the references to memory that is not in use
        self.static_bytes = 0  # of shared memory

    def clear(self) -> None:
        """Forget what is in shared memory: a new block begins.

        >>> BlockMemory.clear.__name__
        'clear'
        """
        for store in self._shared.values():
            self._machine.log.table.find(store)[0].clear()

    def allocate(self, space: str, count: int, element: ScalarFormat, make: Callable[[int, Any], Any]) -> Store:
        """Return memory without values: one for all threads of a block that come here the same way, or one per thread.

        `make(count, dtype)` returns a new array.

        >>> BlockMemory.allocate.__name__
        'allocate'
        """
        place = self._machine.log.site_here(2)
        key = (call_path(sys._getframe(1)), count, element.name)
        if space == SHARED:
            store = self._shared.get(key)
            if store is None:
                store = self._shared[key] = self._new_memory(space, place, make(count, element.dtype))
                self.static_bytes += count * element.itemsize
                self._check_shared_memory(self._machine.log.sites[place])
            return store
        free = self._local.setdefault((*key, self._machine.thread.index), [])
        for store, references in free:
            if sys.getrefcount(store.data) <= references:  # nobody refers to that of an earlier call any more
                self._machine.log.table.find(store)[0].clear()
                return store
        store = self._new_memory(space, place, make(count, element.dtype))
        free.append((store, sys.getrefcount(store.data)))
        return store

    def dynamic(self, make: Callable[[int, Any], Any]) -> Store:
        """Return the bytes of the dynamic shared memory of the block, as many as the launch asks for.

        >>> BlockMemory.dynamic.__name__
        'dynamic'
        """
        store = self._shared.get("dynamic")
        if store is None:
            data = make(self._machine.plan.shared_bytes, np.uint8)
            store = self._shared["dynamic"] = self._new_memory(SHARED, self._machine.log.site_here(2), data)
        return store

    def _new_memory(self, space: str, place: int, data: Any) -> Store:
        site = self._machine.log.sites[place]
        store = Store.of(data)
        name = name_assigned_at(site) or f"{space}@{site.line}"
        self._machine.log.table.add(MemoryRegion(name, space, store.data)).clear()
        return store

    def _check_shared_memory(self, site: Site) -> None:
        limits, dynamic = self._machine.plan.limits, self._machine.plan.shared_bytes
        if self.static_bytes > limits.static_shared or self.static_bytes + dynamic > limits.shared:
            limit = limits.static_shared if self.static_bytes > limits.static_shared else limits.shared
            self._machine.add_defect(
                Defect(
                    "shared memory",
                    f"a block uses {self.static_bytes + dynamic} bytes of shared memory, more than {limit}",
                    (Witness("allocation", site, self._machine.block_index, self._machine.thread.position),),
                    "use smaller tiles; dynamic shared memory may be larger than static",
                )
            )
