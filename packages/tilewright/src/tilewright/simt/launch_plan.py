# SPDX-License-Identifier: Apache-2.0
"""What to launch: a kernel with its arguments, extents and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .kernel_thread import Dim

_ONE = Dim(1)


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """What a block may use: threads, and bytes of shared memory, static and in all. By default those of an NVIDIA H100.

    >>> small = BlockLimits(threads=512)
    >>> small.static_shared
    49152
    """

    threads: int = 1024
    static_shared: int = 48 << 10
    shared: int = 227 << 10


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What to run: a kernel with its arguments, the extents of the launch, and how it is checked.

    `check` is True (raise at the end of a launch with errors), "lenient" (not for harmless ones), "report" (only report
    them, and go on as far as possible), or False (only what prevents the kernel from going on is noticed).

    >>> plan = LaunchPlan(print, (), Dim(1), Dim(1))
    >>> plan.warp
    32
    """

    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]
    grid: Dim
    block: Dim
    shared_bytes: int = 0
    warp: int = 32
    check: bool | str = True
    limits: BlockLimits = BlockLimits()
    name: str = ""
    cluster: Dim = _ONE  # blocks that run together
