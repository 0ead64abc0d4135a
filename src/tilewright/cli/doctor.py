# SPDX-License-Identifier: Apache-2.0
"""`tilewright doctor`: which engines work, what is missing, what that costs and how to install it."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from textwrap import TextWrapper
from typing import Any

from ..byte_sizes import format_bytes
from ..version import __version__
from .console import Answer
from .environment import (
    MissingPart,
    describe_machine,
    missing_engine,
    missing_optional_packages,
    missing_requirements,
    package_versions,
)
from .failures import ExitCode
from .program import verb

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """The check of one engine: why it is missing, or what it runs on and whether its results are right."""

    name: str
    problem: str | None
    detail: str
    is_right: bool | None

    @property
    def is_broken(self) -> bool:
        """Return whether the engine is present and gives wrong results."""
        return self.is_right is False


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Engines, machine, packages and environment as the doctor sees them."""

    engines: list[EngineCheck]
    machine: dict[str, Any]
    packages: dict[str, str | None]
    missing: list[MissingPart]
    environment: dict[str, str]

    @property
    def exit_code(self) -> int:
        """Return 5 if a required package is missing, 1 if an engine gives wrong results, otherwise 0."""
        if any(each.is_required for each in self.missing):
            return ExitCode.MISSING
        return ExitCode.NO if any(each.is_broken for each in self.engines) else ExitCode.OK


@verb("doctor")
def command() -> Answer:
    """Report which engines work, what is missing, what that costs, and the command that installs it.

    Every engine that is found packs and unpacks a small tensor; the result must equal that of the reference engine. The
    exit status is 1 if it does not, and 5 if a required package is missing or too old. Optional packages may be
    missing.
    """
    found = _examine_environment()
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
    return Answer(lambda: "\n".join(_format_answer(found)), data, found.exit_code)


def _examine_environment() -> HealthReport:
    missing = missing_requirements()
    engines: list[EngineCheck] = []
    if not any(each.name in ("numpy", "ml_dtypes") for each in missing):  # no engine could be imported
        engines = [_check_engine(name) for name in _engine_names()]
        missing += [missing_engine(each.name) for each in engines if each.problem is not None and not each.is_broken]
        missing += missing_optional_packages()
    environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith("TILEWRIGHT_")}
    return HealthReport(engines, describe_machine(), package_versions(), missing, environment)


def _engine_names() -> list[str]:
    from ..copying import engine

    return [name for name in engine.ENGINES if name != "auto"]


def _check_engine(name: str) -> EngineCheck:
    """Return the check of an engine, which runs a small conversion on it."""
    from ..copying import native_library
    from ..copying.engine import DEVICE_ENGINES, load_engine

    known: Any = native_library if name == "native" else load_engine(name) if name in DEVICE_ENGINES else None
    problem = known.unavailable_reason() if known is not None else None
    if problem is not None:
        return EngineCheck(name, problem, "", None)
    try:
        return EngineCheck(name, None, _describe_hardware(name, known), _matches_reference(name))
    except Exception as failure:  # whatever a driver raises is what the user wants to know
        return EngineCheck(name, f"found, but it fails: {type(failure).__name__}: {failure}", "", False)


def _describe_hardware(name: str, driver: Any) -> str:
    """Return what hardware an engine runs on."""
    if driver is None:
        return "NumPy, always available"
    if name == "native":
        return f"instructions {driver.load_library().tw_cpu_features().decode()}"
    home = driver.default_backend()
    queue = getattr(home, "queue", None)  # OpenCL has names for its devices, CUDA numbers
    return f"device {home.device}" if queue is None else f"device {queue.device.name.strip()}"


def _matches_reference(name: str) -> bool:
    import numpy as np

    from ..copying import tilize, untilize

    values = np.linspace(-3, 3, 50 * 70, dtype=np.float32).reshape(50, 70)
    packed, expected = (tilize(values, dtype="bfloat8_b", engine=each) for each in (name, "reference"))
    opened, wanted = (untilize(expected, (50, 70), dtype="bfloat8_b", engine=each) for each in (name, "reference"))
    return bool(np.array_equal(packed, expected) and np.array_equal(opened, wanted))


def _format_answer(found: HealthReport) -> list[str]:
    lines = [f"tilewright {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"]
    lines.append("\nengines")
    lines += [_engine_line(each) for each in found.engines] or [
        "  none can be tested until the required packages are installed"
    ]
    lines.append("\nmachine")
    lines += [_two_columns(f"  {name}", 15, text) for name, text in _machine_facts(found.machine)]
    lines.append("\npackages")
    lines += [_two_columns(f"  {name}", 15, version or "not installed") for name, version in found.packages.items()]
    if found.missing:
        lines.append("\nmissing: what that costs, and how to install it")
        for each in found.missing:
            lines.append(_two_columns(f"  {each.name}", 15, f"{'REQUIRED: ' * each.is_required}{each.cost}"))
            lines += [f"    $ {command}" for command in each.commands]  # on one line each, to be copied
    lines.append("\nenvironment")
    lines += [f"  {name}={value}" for name, value in found.environment.items()] or ["  no TILEWRIGHT_ variable is set"]
    return lines


def _engine_line(each: EngineCheck) -> str:
    if each.problem is not None:
        state, rest = "FAILS" if each.is_broken else "no", each.problem
    elif each.is_broken:
        state, rest = "WRONG", f"{each.detail}; its results differ from the reference; please report this"
    else:
        state, rest = "yes", f"{each.detail}; results checked"
    return _two_columns(f"  {each.name:<10} {state}", 20, rest)


def _machine_facts(machine: dict[str, Any]) -> list[tuple[str, str]]:
    threads = machine["threads"] or "TILEWRIGHT_THREADS is not a number of"
    cores = f"{machine['usable_cores']} of {machine['cores']} usable, {threads} threads"
    facts = [("processor", machine["processor"]), ("cores", cores)]
    if machine["memory_bytes"]:
        free = f", {format_bytes(machine['available_bytes'])} available" if machine["available_bytes"] else ""
        facts.append(("memory", f"{format_bytes(machine['memory_bytes'])}{free}"))
    return facts


def _two_columns(name: str, indent: int, text: str) -> str:
    """Return a name and a text in two columns, wrapped at 80 characters."""
    # Paths and the names of packages are words to be copied: they are not broken.
    wrapper = TextWrapper(
        _WIDTH,
        initial_indent=f"{name:<{indent}}",
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(text)
