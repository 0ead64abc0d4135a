# SPDX-License-Identifier: Apache-2.0
"""Which environments the package is tested in: every Python in both builds, both NumPys, the sdist in both ways."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
ASK_VERSION = "import sys, ensurepip, venv; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True)
class Cell:
    """One environment: a Python, a NumPy, with or without the native library, from a wheel or from the sdist."""

    python: str
    numpy: str
    is_native: bool
    from_sdist: bool = False
    extras: str = ""
    is_oldest: bool = False

    @property
    def name(self) -> str:
        """Return a name such as "3.10-numpy1.26-native-sdist"."""
        parts = [self.python, f"numpy{self.numpy}", "native" if self.is_native else "pure"]
        parts += ["sdist"] * self.from_sdist + ["extras"] * bool(self.extras) + ["oldest"] * self.is_oldest
        return "-".join(parts)

    def requirements(self, floors: list[str]) -> list[str]:
        """Return what pip is asked for: the newest NumPy of a kind, or the oldest of everything that is supported.

        >>> Cell("3.11", "1.26", is_native=True, is_oldest=True).requirements(["numpy>=1.26", "click>=8.1"])
        ['numpy==1.26', 'click==8.1']
        """
        if self.is_oldest:
            return [floor.replace(">=", "==") for floor in floors]
        return ["numpy==1.26.*" if self.numpy == "1.26" else "numpy>=2,<3"]


# NumPy 1.26 has wheels up to Python 3.12. The two sdists are compiled, or fail to be, by pip on the way.
CELLS = (
    Cell("3.10", "1.26", is_native=True, from_sdist=True),
    Cell("3.10", "2", is_native=False),
    Cell("3.11", "1.26", is_native=True, is_oldest=True),
    Cell("3.11", "2", is_native=False),
    Cell("3.12", "1.26", is_native=False),
    Cell("3.12", "2", is_native=True, extras="dask,opencl,zarr"),
    Cell("3.13", "2", is_native=True),
    Cell("3.13", "2", is_native=False, from_sdist=True),
)


def interpreters(named: list[str]) -> dict[str, str]:
    """Return the path of each Python of the matrix that can make environments: those named, or python3.10 and so on."""
    found: dict[str, str] = {}
    for name in named or [f"python{version}" for version in PYTHONS]:
        path = shutil.which(name)
        if path is None:
            continue
        # What stands on the path may be a shim that has no such version behind it, or lack venv, as Debian's does.
        run = subprocess.run([path, "-c", ASK_VERSION], capture_output=True, text=True, check=False)
        version = run.stdout.strip()
        if run.returncode == 0 and version in PYTHONS:
            found.setdefault(version, path)
    return found


def clean_environment() -> dict[str, str]:
    """Return this environment less what would lead a Python back to a source tree, or change what is tested."""
    leading = ("PYTHON", "TILEWRIGHT_", "VIRTUAL_ENV", "HYPOTHESIS_", "PYTEST_")
    return {k: v for k, v in os.environ.items() if not k.startswith(leading) and k not in ("CC", "CXX", "MAKEFLAGS")}


def without_compiler(environment: dict[str, str], folder: str) -> dict[str, str]:
    """Return an environment in which no compiler is found: one folder for a path, and CC and CXX lead to nothing.

    CMake also looks where systems usually keep their compilers, hence the variables.
    """
    nothing = os.path.join(folder, "there-is-no-compiler")
    return environment | {"PATH": folder, "CC": nothing, "CXX": nothing}
