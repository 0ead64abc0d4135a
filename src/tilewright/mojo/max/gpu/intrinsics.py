# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.intrinsics`."""

from ...std.gpu.intrinsics import Scope, ldg, threadfence

__all__ = [
    "Scope",
    "ldg",
    "threadfence",
]
