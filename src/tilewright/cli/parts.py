# SPDX-License-Identifier: Apache-2.0
"""What tilewright is given by other packages and programs: what is lost without each, and the command that gets it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

_REQUIRED = {
    "numpy": "only layouts work: nothing can be moved or converted",
    "ml_dtypes": "only layouts work: there are no number formats",
    "click": "the command tilewright does not start",
    "rich": "conversions on a terminal show no progress",
    "tomli": "rules of conversions cannot be read from a .toml file",
}

_OPTIONAL = {
    "zarr": ("zarr arrays cannot be read or written", "pip install 'tilewright[zarr]'"),
    "distributed": ("no work on a Dask cluster, no convert --dask", "pip install 'tilewright[dask]'"),
    "torch": ("no tensors of torch; bench does not compare with it", "pip install 'tilewright[torch]'"),
}

_ENGINES = {
    "native": "plans run in NumPy: the same bits, up to 40 times slower",
    "opencl": "no moves or kernels on OpenCL devices",
    "cuda": "no moves or kernels on NVIDIA devices",
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
class Missing:
    """Something that is not there: what that costs, the commands that get it, and whether nothing works without it.

    >>> Missing("zarr", "zarr arrays cannot be read", ("pip install 'tilewright[zarr]'",)).is_required
    False
    """

    name: str
    cost: str
    commands: tuple[str, ...]
    is_required: bool = False


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
    """Return the versions of the packages that tilewright uses, None for those that are not installed.

    >>> list(package_versions())[:2]
    ['numpy', 'ml_dtypes']
    """
    names = [name for name in _REQUIRED if name != "tomli" or "tomli" in _floors()]
    return {name: installed_version(name) for name in [*names, *_OPTIONAL, "pyopencl", _cupy() or "cupy"]}


def missing_requirements() -> list[Missing]:
    """Return the packages that tilewright was installed with and that are gone, broken or too old now.

    >>> missing_requirements()
    []
    """
    return list(_missing_requirements())


def _missing_requirements() -> Iterator[Missing]:
    is_alone = True
    for name, floor in _floors().items():
        cost = _REQUIRED.get(name, "tilewright was installed to use it")
        try:
            import_module(name)
        except ImportError as problem:
            if problem.name != name and not is_alone:  # it lacks what has a line of its own already
                continue
            is_alone = False
            remedy = f"pip install --force-reinstall '{name}>={floor}'"
            yield Missing(name, f"{cost} ({problem})", (remedy,), is_required=True)
            continue
        version = installed_version(name)
        if version is not None and _numbers(version) < _numbers(floor):
            cost = f"version {version} is older than {floor}, the oldest that tilewright is tested with"
            yield Missing(name, cost, (f"pip install --upgrade '{name}>={floor}'",), is_required=True)


def missing_options() -> list[Missing]:
    """Return what tilewright could use and does not find, less the engines.

    >>> all(each.commands for each in missing_options())
    True
    """
    from ..views.png import png_converter

    found = [Missing(name, cost, (get,)) for name, (cost, get) in _OPTIONAL.items() if installed_version(name) is None]
    if png_converter() is None:
        found.append(
            Missing("cairosvg", "pictures cannot be saved as .png, only .svg and .html", ("pip install cairosvg",))
        )
    return found


def missing_engine(name: str) -> Missing:
    """Return what a missing engine costs, and what gets it.

    >>> missing_engine("cuda").commands
    ("pip install 'tilewright[cuda]'",)
    """
    return Missing(name, _ENGINES.get(name, "it cannot be asked for"), tuple(_commands_for(name)))


def _commands_for(engine: str) -> Iterator[str]:
    if engine == "native":
        yield from _commands_for_the_library()
    elif engine == "opencl" and installed_version("pyopencl") is not None:
        yield "pip install 'pyopencl[pocl]'"  # a driver for the processor; that of a device comes from its maker
    elif engine == "cuda" and _cupy() is not None:
        yield "nvidia-smi  # lists no device: install NVIDIA's driver"
    else:
        yield f"pip install 'tilewright[{engine}]'"


def _cupy() -> str | None:
    """Return the name of the CuPy package that is installed: there is one for each CUDA."""
    names = ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy")
    return next((name for name in names if installed_version(name) is not None), None)


def _commands_for_the_library() -> Iterator[str]:
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
    yield f"TILEWRIGHT_NATIVE=1 pip install --force-reinstall --no-deps {_source()}"


def _source() -> str:
    """Return what pip is given to build tilewright again: where it was built from, if that is known and there."""
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


def _floors() -> dict[str, str]:
    """Return the packages that this Python has to have, with the oldest version that is supported."""
    try:
        lines = metadata.requires("tilewright") or []
    except metadata.PackageNotFoundError:  # run from a source tree
        return {}
    found = {}
    for line in lines:
        needed, _, condition = line.partition(";")
        if "extra" in condition or ("python_version" in condition and sys.version_info >= (3, 11)):
            continue
        name, _, floor = needed.partition(">=")
        found[name.strip()] = floor.strip()
    return found


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (2, 0, 0) of "2.0.0rc1"."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))
