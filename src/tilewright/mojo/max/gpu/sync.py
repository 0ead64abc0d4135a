# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.sync`."""

from ...std.gpu.sync import (
    barrier,
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_test_wait,
    mbarrier_try_wait_parity_shared,
    named_barrier,
    syncwarp,
)

__all__ = [
    "barrier",
    "mbarrier_arrive",
    "mbarrier_init",
    "mbarrier_test_wait",
    "mbarrier_try_wait_parity_shared",
    "named_barrier",
    "syncwarp",
]
