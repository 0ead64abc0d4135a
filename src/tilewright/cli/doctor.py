# SPDX-License-Identifier: Apache-2.0
"""`tilewright doctor`: which engines are found and right, what is missing, what that costs and what gets it."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from textwrap import TextWrapper
from typing import Any

from .. import __version__
from . import exit_codes
from .console import Answer
from .machine import this_machine
from .parts import Missing, missing_engine, missing_options, missing_requirements, package_versions
from .values import bytes_in_words
from .verb import verb

_WIDTH = 80


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


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found out."""

    engines: list[EngineFound]
    machine: dict[str, Any]
    packages: dict[str, str | None]
    missing: list[Missing]
    environment: dict[str, str]

    @property
    def exit_code(self) -> int:
        """Return the status: 5 if a package is missing that all depends on, 1 if an engine is wrong, otherwise 0."""
        if any(each.is_required for each in self.missing):
            return exit_codes.MISSING
        return exit_codes.NO if any(each.is_broken for each in self.engines) else exit_codes.OK


@verb("doctor")
def command() -> Answer:
    """Say which engines are found and right, what is missing, what that costs, and the command that gets it.

    Every engine that is found packs and unpacks a small tensor, which must come out as from the reference engine. The
    exit status is 1 if one does not, and 5 if a package is missing or too old that tilewright cannot do without. What
    is optional may be missing.
    """
    found = _findings()
    data = {
        "tilewright": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engines": [
            {
                "name": each.name,
                "found": each.problem is None,
                "unavailable_reason": each.problem,
                "detail": each.detail,
            }
            | {"is_right": each.is_right}
            for each in found.engines
        ],
        "machine": found.machine,
        "packages": found.packages,
        "missing": [asdict(each) for each in found.missing],
        "environment": found.environment,
    }
    return Answer(lambda: "\n".join(_in_words(found)), data, found.exit_code)


def _findings() -> Findings:
    missing = missing_requirements()
    engines: list[EngineFound] = []
    if not any(each.name in ("numpy", "ml_dtypes") for each in missing):  # no engine could be imported
        engines = [_examined(name) for name in _engine_names()]
        missing += [missing_engine(each.name) for each in engines if each.problem is not None and not each.is_broken]
        missing += missing_options()
    environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith("TILEWRIGHT_")}
    return Findings(engines, this_machine(), package_versions(), missing, environment)


def _engine_names() -> list[str]:
    from ..copying import engine

    return [name for name in engine.ENGINES if name != "auto"]


def _examined(name: str) -> EngineFound:
    """Return what is known about an engine, after asking it to do something."""
    from ..copying import native_library
    from ..copying.engine import DEVICE_ENGINES, load_engine

    known: Any = native_library if name == "native" else load_engine(name) if name in DEVICE_ENGINES else None
    problem = known.unavailable_reason() if known is not None else None
    if problem is not None:
        return EngineFound(name, problem, "", None)
    try:
        return EngineFound(name, None, _runs_on(name, known), _gives_right_bits(name))
    except Exception as failure:  # whatever a driver raises is what the user wants to know
        return EngineFound(name, f"it is found, but fails: {type(failure).__name__}: {failure}", "", False)


def _runs_on(name: str, driver: Any) -> str:
    """Return what an engine that is there runs on."""
    if driver is None:
        return "NumPy, always there"
    if name == "native":
        return f"instructions {driver.load_library().tw_cpu_features().decode()}"
    home = driver.default_backend()
    queue = getattr(home, "queue", None)  # OpenCL has names for its devices, CUDA numbers
    return f"device {home.device}" if queue is None else f"device {queue.device.name.strip()}"


def _gives_right_bits(name: str) -> bool:
    import numpy as np

    from ..copying import tilize, untilize

    values = np.linspace(-3, 3, 50 * 70, dtype=np.float32).reshape(50, 70)
    packed, expected = (tilize(values, dtype="bfloat8_b", engine=each) for each in (name, "reference"))
    opened, wanted = (untilize(expected, (50, 70), dtype="bfloat8_b", engine=each) for each in (name, "reference"))
    return bool(np.array_equal(packed, expected) and np.array_equal(opened, wanted))


def _in_words(found: Findings) -> list[str]:
    lines = [f"tilewright {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"]
    lines.append("\nengines")
    lines += [_engine_line(each) for each in found.engines] or ["  none can be tried before what is missing is there"]
    lines.append("\nmachine")
    lines += [_line(f"  {name}", 15, text) for name, text in _machine_facts(found.machine)]
    lines.append("\npackages")
    lines += [_line(f"  {name}", 15, version or "not installed") for name, version in found.packages.items()]
    if found.missing:
        lines.append("\nmissing: what that costs, and what gets it")
        for each in found.missing:
            lines.append(_line(f"  {each.name}", 15, f"{'NEEDED: ' * each.is_required}{each.cost}"))
            lines += [f"    $ {command}" for command in each.commands]  # on one line each, to be copied
    lines.append("\nenvironment")
    lines += [f"  {name}={value}" for name, value in found.environment.items()] or ["  no TILEWRIGHT_ variable is set"]
    return lines


def _engine_line(each: EngineFound) -> str:
    if each.problem is not None:
        state, rest = "FAILS" if each.is_broken else "no", each.problem
    elif each.is_broken:
        state, rest = "WRONG", f"{each.detail}; its bits differ from the reference: please report this"
    else:
        state, rest = "yes", f"{each.detail}; bits checked"
    return _line(f"  {each.name:<10} {state}", 20, rest)


def _machine_facts(machine: dict[str, Any]) -> list[tuple[str, str]]:
    threads = machine["threads"] or "TILEWRIGHT_THREADS is no number of"
    cores = f"{machine['usable_cores']} of {machine['cores']} usable, {threads} threads"
    facts = [("processor", machine["processor"]), ("cores", cores)]
    if machine["memory_bytes"]:
        free = f", {bytes_in_words(machine['available_bytes'])} available" if machine["available_bytes"] else ""
        facts.append(("memory", f"{bytes_in_words(machine['memory_bytes'])}{free}"))
    return facts


def _line(name: str, indent: int, text: str) -> str:
    """Return a named text in lines of at most 80 columns, the text in a column of its own."""
    # Paths and the names of packages are words to be copied: they are not broken.
    wrapper = TextWrapper(
        _WIDTH,
        initial_indent=f"{name:<{indent}}",
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(text)
