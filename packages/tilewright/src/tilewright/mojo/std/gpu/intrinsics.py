# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.intrinsics`: scopes of memory operations, and fences."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ....simt import fence
from ...brackets import Bracketed

__all__ = ["Scope", "ldg", "threadfence"]


class Scope(Enum):
    """Who sees a memory operation.

    >>> Scope.BLOCK.value
    3
    """

    NONE = 0
    THREAD = 1
    WARP = 2
    BLOCK = 3
    CLUSTER = 4
    GPU = 5
    SYSTEM = 6


threadfence: Any = Bracketed(lambda _, parameters, *arguments, **named: fence())


def _ldg(_: Any, parameters: tuple[Any, ...], pointer: Any, **named: Any) -> Any:
    return pointer.load(0)


ldg: Any = Bracketed(_ldg)
