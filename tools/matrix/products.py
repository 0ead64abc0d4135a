# SPDX-License-Identifier: Apache-2.0
"""What is handed to users, built as they would build it: an sdist, a wheel with the native library, one without."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass, field
from email import message_from_string
from pathlib import Path

from .cells import clean_environment, without_compiler

MAX_WHEEL_BYTES = 3_500_000


@dataclass
class Products:
    """The sdist, its tree, the wheels that were needed, those of the companions, and what is wrong with any of them."""

    sdist: Path
    tree: Path
    wheels: dict[bool, Path]
    companions: list[Path] = field(default_factory=list)
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def floors(self) -> list[str]:
        """Return the requirements of every installation, such as "numpy>=1.26"."""
        metadata = message_from_string((self.tree / "PKG-INFO").read_text(encoding="utf-8"))
        return [line for line in metadata.get_all("Requires-Dist", []) if ";" not in line]

    @property
    def files(self) -> list[Path]:
        """Return all files of a release."""
        return [self.sdist, *self.wheels.values(), *self.companions]

    def in_words(self) -> str:
        """Return the names and sizes of the files."""
        lines = [f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}" for path in self.files]
        return "\n".join([f"built in {self.seconds:.0f} s:", *lines, *self.problems])


def build_products(root: Path, work: Path, python: str, log: Path, kinds: set[bool]) -> Products:
    """Return what a release would consist of: an sdist of a source tree, and wheels of it, native or not or both."""
    start, environment = time.monotonic(), clean_environment()
    run_logged([python, "-m", "venv", str(work / "tools")], log, environment)
    tool = str(tool_of(work / "tools"))
    pip = [tool, "-m", "pip", "--disable-pip-version-check"]
    run_logged([*pip, "install", "--quiet", "build", "twine"], log, environment)
    run_logged([tool, "-m", "build", "--sdist", "--outdir", str(work / "dist"), str(root)], log, environment)
    (sdist,) = (work / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (tree,) = (work / "unpacked").iterdir()
    products = Products(sdist, tree, {})
    for is_native in sorted(kinds, reverse=True):
        folder = work / ("native" if is_native else "pure")
        bare = without_compiler(environment, str(Path(tool).parent))
        building = environment | {"TILEWRIGHT_NATIVE": "1"} if is_native else bare
        said = run_logged([*pip, "wheel", "-v", "--no-deps", "--wheel-dir", str(folder), str(sdist)], log, building)
        (products.wheels[is_native],) = folder.glob("*.whl")
        if not is_native and "WITHOUT the native library" not in said:
            products.problems.append("building without a compiler did not say that the library was left out")
    for companion in sorted(root.parent.glob(f"{root.name}-*")):
        run_logged([tool, "-m", "build", "--outdir", str(work / companion.name), str(companion)], log, environment)
        products.companions += (work / companion.name).glob("*.whl")
    run_logged([tool, "-m", "twine", "check", "--strict", *map(str, products.files)], log, environment)
    for is_native, wheel in products.wheels.items():
        products.problems += problems_of(wheel, is_native)
    products.seconds = time.monotonic() - start
    return products


def problems_of(wheel: Path, is_native: bool) -> list[str]:
    """Return what is wrong with a wheel: its size, its name or whether it holds the native library."""
    found, size = [], wheel.stat().st_size
    if size > MAX_WHEEL_BYTES:
        found.append(f"{wheel.name} has {size} bytes, more than {MAX_WHEEL_BYTES}")
    if wheel.name.endswith("-py3-none-any.whl") == is_native or libraries_in(wheel) != is_native:
        found.append(f"{wheel.name} should hold {'one native library' if is_native else 'no native library'}")
    return found


def libraries_in(wheel: Path) -> int:
    """Return how many native libraries a wheel holds; the extension module for small calls is not one."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(name.startswith("tilewright/_native.") for name in archive.namelist())


def tool_of(environment: Path) -> Path:
    """Return the Python of a virtual environment."""
    return environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def run_logged(
    command: list[str], log: Path, environment: dict[str, str], cwd: Path | None = None, timeout: float | None = None
) -> str:
    """Return what a command printed; all of it is added to a log, and a failure raises."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"\n$ {' '.join(command)}\n")
    start = log.stat().st_size
    with log.open("a", encoding="utf-8") as file:
        subprocess.run(
            command, env=environment, cwd=cwd or log.parent, stdout=file, stderr=file, check=True, timeout=timeout
        )
    return log.read_bytes()[start:].decode(errors="replace")
