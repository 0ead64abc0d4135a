# SPDX-License-Identifier: Apache-2.0
"""`tilewright doctor`: which engines work, the missing ones, their cost and how to install them."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any
from urllib.parse import unquote, urlsplit

from .._text import format_bytes
from ..plugins import GROUPS, list_plugins
from ..version import __version__
from .console import Answer, ExitCode
from .program import verb

_WIDTH = 80
_VARIABLES = frozenset(
    f"TILEWRIGHT_{name}" for name in ("CACHE", "CHIP", "CPU", "ENGINE", "LIBRARY", "MESH", "NATIVE", "THREADS")
)


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """The check of one engine: why it is missing, or its device and whether its results are right."""

    name: str
    problem: str | None
    detail: str
    is_right: bool | None

    @property
    def is_broken(self) -> bool:
        """Whether the engine is present and gives wrong results."""
        return self.is_right is False

    def to_json(self) -> dict[str, Any]:
        """Return the check as plain data."""
        reason = {"found": self.problem is None, "unavailable_reason": self.problem}
        return {"name": self.name, **reason, "detail": self.detail, "is_right": self.is_right}


@verb("doctor")
def command() -> Answer:
    """Report which engines work, what is missing, what that costs, and the command that installs it.

    Every engine that is found packs and unpacks a small tensor; the result must equal the reference engine's. The
    exit status is 1 if it does not, and 5 if a required package is missing or too old. Optional packages may be
    missing.
    """
    missing = list(missing_requirements())
    engines: list[EngineCheck] = []
    if not any(item.name in ("numpy", "ml_dtypes") for item in missing):  # no engine could be imported
        from ..copying import ENGINES

        engines = [_check_engine(name) for name in ENGINES if name != "auto"]
        missing += [missing_engine(item.name) for item in engines if item.problem is not None and not item.is_broken]
        missing += missing_optional_packages()
    data = {
        "tilewright": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engines": [check.to_json() for check in engines],
        "machine": describe_machine(),
        "packages": package_versions(),
        "missing": [asdict(item) for item in missing],
        "plugins": list_all_plugins(),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("TILEWRIGHT_")},
    }
    status = ExitCode.NO if any(check.is_broken for check in engines) else ExitCode.OK
    if any(item.is_required for item in missing):
        status = ExitCode.MISSING
    return Answer(lambda: "\n".join(_format_answer(data, engines, missing)), data, status)


def _check_engine(name: str) -> EngineCheck:
    """Return the check of an engine, which runs a small conversion on it."""
    from ..copying import DEVICE_ENGINES, load_engine, native

    module: Any = native if name == "native" else load_engine(name) if name in DEVICE_ENGINES else None
    problem = module.unavailable_reason() if module is not None else None
    if problem is not None:
        return EngineCheck(name, problem, "", None)
    try:
        return EngineCheck(name, None, _describe_hardware(name, module), _matches_reference(name))
    except Exception as failure:  # the user wants to know any error of a driver
        return EngineCheck(name, f"found, but it fails: {type(failure).__name__}: {failure}", "", False)


def _describe_hardware(name: str, driver: Any) -> str:
    """Return the hardware that an engine runs on."""
    if driver is None:
        return "NumPy, always available"
    if name == "native":
        small = "C" if find_spec("tilewright._calls") else "Python"  # where its headers were missing
        return f"instructions {driver.load_library().tw_cpu_features().decode()}, small calls in {small}"
    home = driver.default_backend()
    queue = getattr(home, "queue", None)  # OpenCL has names for its devices, CUDA numbers
    return f"device {home.device}" if queue is None else f"device {queue.device.name.strip()}"


def _matches_reference(name: str) -> bool:
    import numpy as np

    from ..copying import tilize, untilize

    values = np.linspace(-3, 3, 50 * 70, dtype=np.float32).reshape(50, 70)
    packed, expected = (tilize(values, dtype="bfloat8_b", engine=engine) for engine in (name, "reference"))
    opened, decoded = (untilize(expected, (50, 70), dtype="bfloat8_b", engine=engine) for engine in (name, "reference"))
    return bool(np.array_equal(packed, expected) and np.array_equal(opened, decoded))


def _format_answer(data: dict[str, Any], engines: list[EngineCheck], missing: list[MissingPart]) -> list[str]:
    plugins = data["plugins"].items()
    return [
        f"tilewright {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "\nengines",
        *(
            map(_format_engine, engines)
            if engines
            else ["  none can be tested until the required packages are installed"]
        ),
        "\nmachine",
        *[_two_columns(f"  {name}", 15, text) for name, text in _machine_facts(data["machine"])],
        "\npackages",
        *[_two_columns(f"  {name}", 15, version or "not installed") for name, version in data["packages"].items()],
        *["\nplug-ins"] * bool(plugins),
        *[_two_columns(f"  {name}", 31, package) for name, package in plugins],
        *["\nmissing: what that costs, and how to install it"] * bool(missing),
        *[line for item in missing for line in item.lines()],
        "\nenvironment",
        *[
            f"  {name}={value}{'' if name in _VARIABLES else ', which nothing reads'}"
            for name, value in data["environment"].items()
        ],
        *["  no TILEWRIGHT_ variable is set"] * (not data["environment"]),
    ]


def _format_engine(check: EngineCheck) -> str:
    if check.problem is not None:
        state, rest = "FAILS" if check.is_broken else "no", check.problem
    elif check.is_broken:
        state, rest = "WRONG", f"{check.detail}; its results differ from the reference; please report this"
    else:
        state, rest = "yes", f"{check.detail}; results checked"
    return _two_columns(f"  {check.name:<10} {state}", 20, rest)


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
    whole_words: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return fill(text, _WIDTH, initial_indent=f"{name:<{indent - 1}} ", subsequent_indent=" " * indent, **whole_words)


_REQUIRED = {
    "numpy": "nothing works but the command's help",
    "ml_dtypes": "bfloat16 and the other small number formats do not work",
    "click": "the command tilewright does not start",
    "rich": "conversions on a terminal show no progress",
    "tomli": "rules of conversions cannot be read from a .toml file",
}

_OPTIONAL = {
    "zarr": ("zarr arrays cannot be read or written", "pip install 'tilewright[zarr]'"),
    "distributed": ("no Dask clusters, no convert --dask", "pip install 'tilewright[dask]'"),
    "torch": ("no torch tensors", "pip install 'tilewright[torch]'"),
}

_ENGINES = {
    "native": "copies run in NumPy: the same results, up to 40 times slower",
    "opencl": "no copies or kernels on OpenCL devices",
    "cuda": "no copies or kernels on NVIDIA devices",
}

# Commands that fetch a C++20 compiler, by the program that only systems of that kind have.
_COMPILERS = {
    "apt-get": "sudo apt-get install g++",
    "dnf": "sudo dnf install gcc-c++",
    "zypper": "sudo zypper install gcc-c++",
    "pacman": "sudo pacman -S gcc",
    "apk": "sudo apk add g++",
    "xcode-select": "xcode-select --install",
    "winget": "winget install Microsoft.VisualStudio.2022.BuildTools",
}

_UNKNOWN_SOURCE = ".  # in its source tree"


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A missing package or engine: what that costs, the commands that install it, and whether it is required.

    >>> MissingPart("zarr", "zarr arrays cannot be read", ("pip install 'tilewright[zarr]'",)).is_required
    False
    """

    name: str
    cost: str
    commands: tuple[str, ...]
    is_required: bool = False

    def lines(self) -> list[str]:
        """Return the cost, and each command on one line, to be copied."""
        cost = _two_columns(f"  {self.name}", 15, f"{'REQUIRED: ' * self.is_required}{self.cost}")
        return [cost, *[f"    $ {command}" for command in self.commands]]


def list_all_plugins() -> dict[str, str]:
    """Return the additions of plug-ins, by group and name, and the package of each; none of them is loaded.

    >>> all(" " in name for name in list_all_plugins())
    True
    """
    return {
        f"{group} {name}": f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown package"
        for group in GROUPS
        for name, entry in list_plugins(group).items()
    }


def installed_version(name: str) -> str | None:
    """Return the version of an installed package, or None.

    >>> installed_version("click") is not None
    True
    """
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def package_versions() -> dict[str, str | None]:
    """Return the versions of the packages that tilewright uses, None if one is not installed.

    >>> list(package_versions())[:2]
    ['numpy', 'ml_dtypes']
    """
    names = [name for name in _REQUIRED if name != "tomli" or "tomli" in _minimum_versions()]
    return {name: installed_version(name) for name in [*names, *_OPTIONAL, "pyopencl", _installed_cupy() or "cupy"]}


def missing_requirements() -> Iterator[MissingPart]:
    """Yield the required packages that are missing, broken or too old.

    >>> list(missing_requirements())
    []
    """
    is_alone = True
    for name, floor in _minimum_versions().items():
        cost = _REQUIRED.get(name, "tilewright was installed to use it")
        try:
            import_module(name)
        except ImportError as problem:
            if problem.name != name and not is_alone:  # caused by a package that is already listed
                continue
            is_alone = False
            remedy = f"pip install --force-reinstall '{name}>={floor}'"
            yield MissingPart(name, f"{cost} ({problem})", (remedy,), is_required=True)
            continue
        version = installed_version(name)
        if version is not None and _version_numbers(version) < _version_numbers(floor):
            cost = f"version {version} is older than {floor}, the oldest that tilewright is tested with"
            yield MissingPart(name, cost, (f"pip install --upgrade '{name}>={floor}'",), is_required=True)


def missing_optional_packages() -> list[MissingPart]:
    """Return the optional packages that are not installed.

    >>> all(part.commands for part in missing_optional_packages())
    True
    """
    return [
        MissingPart(name, cost, (get,)) for name, (cost, get) in _OPTIONAL.items() if installed_version(name) is None
    ]


def missing_engine(name: str) -> MissingPart:
    """Return the cost of a missing engine, and the commands that install it.

    >>> missing_engine("cuda").commands
    ("pip install 'tilewright[cuda]'",)
    """
    return MissingPart(name, _ENGINES.get(name, "it cannot be asked for"), tuple(_install_commands(name)))


def _install_commands(engine: str) -> Iterator[str]:
    if engine == "native":
        yield from _native_library_commands()
    elif installed_version("tilewright-gpu") is None:
        yield f"pip install 'tilewright[{engine}]'"
    elif engine == "opencl" and installed_version("pyopencl") is not None:
        yield "pip install 'pyopencl[pocl]'"  # a driver for the processor; a device's driver comes from its maker
    elif engine == "cuda" and _installed_cupy() is not None:
        yield "nvidia-smi  # lists no device: install NVIDIA's driver"
    else:
        yield f"pip install 'tilewright[{engine}]'"


def _installed_cupy() -> str | None:
    """Return the name of the CuPy package that is installed: there is one for each CUDA."""
    names = ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy")
    return next((name for name in names if installed_version(name) is not None), None)


def _native_library_commands() -> Iterator[str]:
    if os.environ.get("TILEWRIGHT_NATIVE") == "0":
        yield "unset TILEWRIGHT_NATIVE"
        return
    if os.environ.get("TILEWRIGHT_LIBRARY"):
        yield "unset TILEWRIGHT_LIBRARY"
        return
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        yield next(
            (get for program, get in _COMPILERS.items() if shutil.which(program)),
            "# install a C++20 compiler (g++ 10, clang 12 or newer)",
        )
    yield f"TILEWRIGHT_NATIVE=1 pip install --force-reinstall --no-deps {_pip_source_argument()}"


def _pip_source_argument() -> str:
    """Return the argument for pip to build tilewright again from where it was installed."""
    try:
        origin = json.loads(metadata.distribution("tilewright").read_text("direct_url.json") or "null")
    except (metadata.PackageNotFoundError, ValueError):
        return _UNKNOWN_SOURCE
    if origin is None:  # from an index
        return "--no-binary tilewright tilewright"
    address = urlsplit(origin.get("url", ""))
    path = Path(unquote(address.path))
    if address.scheme == "file" and path.exists() and path.suffix != ".whl":
        editable = "--editable " if origin.get("dir_info", {}).get("editable") else ""
        return f"{editable}{shlex.quote(str(path))}"
    return _UNKNOWN_SOURCE


def _minimum_versions() -> dict[str, str]:
    """Return the required packages with their oldest supported versions."""
    try:
        lines = metadata.requires("tilewright") or []
    except metadata.PackageNotFoundError:  # run from a source tree
        return {}
    versions = {}
    for line in lines:
        needed, _, condition = line.partition(";")
        if "extra" in condition or ("python_version" in condition and sys.version_info >= (3, 11)):
            continue
        name, _, floor = needed.partition(">=")
        versions[name.strip()] = floor.strip()
    return versions


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (2, 0, 0) of "2.0.0rc1"."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


def describe_machine() -> dict[str, Any]:
    """Return the processor, cores, threads and memory that this process may use.

    >>> describe_machine()["usable_cores"] >= 1
    True
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    requested = os.environ.get("TILEWRIGHT_THREADS") or "0"
    threads = int(requested) if requested.isdecimal() else None  # every copy rejects anything else with an error
    total, available = _memory_sizes()
    return {
        "processor": _processor_name(),
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "threads": usable if threads == 0 else threads,
        "memory_bytes": total,
        "available_bytes": available,
    }


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_sizes() -> tuple[int | None, int | None]:
    """Return the bytes of memory that this process may use, and the free bytes, where they are known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines if len(line.split()) > 1}
        total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
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
