# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.memory`."""

from ...std.gpu.memory import (
    AddressSpace,
    CacheEviction,
    CacheOperation,
    Fill,
    async_copy,
    async_copy_commit_group,
    async_copy_wait_all,
    async_copy_wait_group,
    external_memory,
    fence_mbarrier_init,
    threadfence,
)

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
