# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.memory`: dynamic shared memory, asynchronous copies and fences."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ....layout.validation import as_integer
from ....simt import fence
from ....simt.access_log import commit_copies, dynamic_memory, start_copy, wait_for_copies
from ...brackets import Bracketed
from ...memory import AddressSpace, Pointer, label_store
from ...scalar_memory import read_vector, write_vector
from ...simd import scalar_format

__all__ = [
    "AddressSpace",
    "CacheEviction",
    "CacheOperation",
    "Fill",
    "async_copy",
    "async_copy_commit_group",
    "async_copy_wait_all",
    "async_copy_wait_group",
    "external_memory",
    "fence_mbarrier_init",
    "threadfence",
]


class CacheOperation(Enum):
    """How a load uses the caches: a hint.

    >>> CacheOperation.ALWAYS.value
    0
    """

    ALWAYS = 0
    GLOBAL = 1
    STREAMING = 2
    LAST_USE = 3
    VOLATILE = 4
    WRITE_BACK = 5
    WRITE_THROUGH = 6
    WORKGROUP = 7


class CacheEviction(Enum):
    """What stays in a cache: a hint.

    >>> CacheEviction.EVICT_NORMAL.value
    0
    """

    EVICT_NORMAL = 0
    EVICT_FIRST = 1
    EVICT_LAST = 2
    EVICT_UNCHANGED = 3
    NO_ALLOCATE = 4


class Fill(Enum):
    """What a copy writes where its source is not valid.

    >>> Fill.ZERO.value
    1
    """

    NONE = 0
    ZERO = 1
    NAN = 2


def _external_memory(_: Any, parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> Pointer:
    """Return a pointer to the dynamic shared memory of the block."""
    element = scalar_format((*parameters, named.get("dtype"), named.get("type"))[0])
    return Pointer(label_store(dynamic_memory(element), AddressSpace.SHARED), 0)


external_memory = Bracketed(_external_memory)


def _async_copy(
    _: Any, parameters: tuple[Any, ...], src: Any, dst: Any, size: Any = None, fill: Any = None, **named: Any
) -> None:
    """Copy `size` bytes, by default 16, from global to shared memory."""
    numbers = [entry for entry in parameters if isinstance(entry, int) and not isinstance(entry, bool)]
    nbytes = int(as_integer(size if size is not None else (numbers[0] if numbers else 16), "a size in bytes"))
    count = nbytes // src.memory.format.itemsize
    write_vector(dst.memory, dst.offset, read_vector(src.memory, src.offset, count))
    start_copy(dst.memory, range(dst.offset, dst.offset + count))


async_copy = Bracketed(_async_copy)


def async_copy_commit_group() -> None:
    """End a group of asynchronous copies.

    >>> async_copy_commit_group()
    """
    commit_copies()


def async_copy_wait_all() -> None:
    """Wait for the asynchronous copies of the thread; other threads need a barrier to see what it has copied.

    >>> async_copy_wait_all()
    """
    wait_for_copies()


def async_copy_wait_group(n: Any = 0) -> None:
    """Wait until at most `n` groups of asynchronous copies are not done.

    >>> async_copy_wait_group(0)
    """
    wait_for_copies(int(as_integer(n, "a number of groups")))


threadfence = fence_mbarrier_init = fence
