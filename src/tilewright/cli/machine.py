# SPDX-License-Identifier: Apache-2.0
"""What this computer has for moving tensors: its processor, cores and memory, as far as they are known."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def this_machine() -> dict[str, Any]:
    """Return the processor, cores, threads and memory that this process may use.

    >>> this_machine()["usable_cores"] >= 1
    True
    """
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        usable = os.cpu_count() or 1
    asked = os.environ.get("TILEWRIGHT_THREADS") or "0"
    threads = int(asked) if asked.isdecimal() else None  # every move refuses anything else, and says so
    total, available = _memory()
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "threads": usable if threads == 0 else threads,
        "memory_bytes": total,
        "available_bytes": available,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> tuple[int | None, int | None]:
    """Return the bytes of memory that this process may have, and those that are free now, where that is known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        known = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines if len(line.split()) > 1}
        total, available = known.get("MemTotal"), known.get("MemAvailable")
    except (OSError, ValueError):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None
        except (AttributeError, ValueError, OSError):
            return None, None
    try:  # a container may have less
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="utf-8").strip()
        if limit.isdigit() and total is not None and available is not None:
            total, available = min(total, int(limit)), max(0, min(available, int(limit) - int(used)))
    except (OSError, ValueError):
        pass
    return total, available
