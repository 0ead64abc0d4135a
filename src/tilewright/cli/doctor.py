# SPDX-License-Identifier: Apache-2.0
"""`tilewright doctor`: which engines are found and right, what is missing and how to get it, and the machine."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import __version__
from . import exit_codes
from .console import Answer
from .values import bytes_in_words
from .verb import verb

# What each package is for; the first three are always there.
_PACKAGES = {
    "numpy": "",
    "ml_dtypes": "",
    "click": "",
    "zarr": "zarr arrays",
    "distributed": "work spread over machines",
    "pyopencl": "engine opencl",
    "cupy-cuda12x": "engine cuda",
    "torch": "bench compares with it",
}


@dataclass(frozen=True, slots=True)
class EngineFound:
    """What was found out about an engine: why it is missing, or what it runs on and whether it is right."""

    name: str
    problem: str | None
    detail: str
    is_right: bool | None

    @property
    def is_broken(self) -> bool:
        """Return whether the engine is there and gives wrong bits."""
        return self.is_right is False


@verb("doctor")
def command() -> Answer:
    """Say which engines are found and whether their bits are right, what is missing, and what the machine has.

    Every engine that is found packs and unpacks a small tensor, which must come out as from the reference engine. The
    exit status is 1 if one does not.
    """
    engines = [_examined(name) for name in _engine_names()]
    machine = _machine()
    packages = {name: _version(name) for name in _PACKAGES}
    environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith("TILEWRIGHT_")}
    data = {
        "tilewright": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engines": [
            {"name": each.name, "found": each.problem is None, "why_not": each.problem, "detail": each.detail}
            | {"is_right": each.is_right}
            for each in engines
        ],
        "machine": machine,
        "packages": packages,
        "environment": environment,
    }
    broken = any(each.is_broken for each in engines)

    def text() -> str:
        return _in_words(engines, machine, packages, environment)

    return Answer(text, data, exit_codes.NO if broken else exit_codes.OK)


def _engine_names() -> list[str]:
    from ..copy import engine

    return [name for name in engine.ENGINES if name != "auto"]


def _examined(name: str) -> EngineFound:
    """Return what is known about an engine, after asking it to do something."""
    from ..copy import native
    from ..copy.drivers import DEVICE_ENGINES, driver

    known: Any = native if name == "native" else driver(name) if name in DEVICE_ENGINES else None
    problem = known.why_not() if known is not None else None
    if problem is not None:
        return EngineFound(name, problem, "", None)
    if name == "native":
        detail = f"instructions {native.library().tw_cpu_features().decode()}"
    else:
        detail = "NumPy, always there" if known is None else "a device"
    try:
        return EngineFound(name, None, detail, _gives_right_bits(name))
    except Exception as failure:  # whatever a driver raises is what the user wants to know
        return EngineFound(name, f"it is found, but fails: {type(failure).__name__}: {failure}", "", False)


def _gives_right_bits(name: str) -> bool:
    import numpy as np

    from ..copy import tilize, untilize

    values = np.linspace(-3, 3, 50 * 70, dtype=np.float32).reshape(50, 70)
    packed, expected = (tilize(values, dtype="bfloat8_b", engine=each) for each in (name, "reference"))
    opened, wanted = (untilize(expected, (50, 70), dtype="bfloat8_b", engine=each) for each in (name, "reference"))
    return bool(np.array_equal(packed, expected) and np.array_equal(opened, wanted))


def _machine() -> dict[str, Any]:
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


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _in_words(
    engines: list[EngineFound], machine: dict[str, Any], packages: dict[str, str | None], environment: dict[str, str]
) -> str:
    from ..memory.explanation import as_lines

    lines = [f"tilewright {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"]
    lines.append("\nengines")
    for each in engines:
        if each.problem is not None:
            state, rest = "FAILS" if each.is_broken else "no", each.problem
        elif each.is_broken:
            state, rest = "WRONG", f"{each.detail}; its bits differ from the reference: please report this"
        else:
            state, rest = "yes", f"{each.detail}; bits checked"
        lines.append(as_lines([(f"  {each.name:<10} {state:<6}", rest)], 20))
    lines.append("\nmachine")
    threads = machine["threads"] or "TILEWRIGHT_THREADS is no number of"
    cores = f"{machine['usable_cores']} of {machine['cores']} usable, {threads} threads"
    facts = [("processor", machine["processor"]), ("cores", cores)]
    if machine["memory_bytes"]:
        free = f", {bytes_in_words(machine['available_bytes'])} available" if machine["available_bytes"] else ""
        facts.append(("memory", f"{bytes_in_words(machine['memory_bytes'])}{free}"))
    lines += [f"  {name:<12} {text}" for name, text in facts]
    lines.append("\npackages")
    for name, version in packages.items():
        use = f"not installed; for: {_PACKAGES[name]}" if version is None else version
        lines.append(f"  {name:<12} {use}")
    lines.append("\nenvironment")
    lines += [f"  {name}={value}" for name, value in environment.items()] or ["  no TILEWRIGHT_ variable is set"]
    return "\n".join(lines)
