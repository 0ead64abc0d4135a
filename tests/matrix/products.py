# SPDX-License-Identifier: Apache-2.0
"""What is handed to users, built as they would build it: an sdist, a wheel with the native library, one without."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from .cells import clean_environment, without_compiler

MOST_WHEEL_BYTES = 2_000_000


@dataclass
class Products:
    """The files that are handed out, the unpacked sdist, and what is wrong with them."""

    sdist: Path
    native_wheel: Path
    pure_wheel: Path
    tree: Path
    seconds: float
    problems: list[str] = field(default_factory=list)

    def in_words(self) -> str:
        """Return the names and sizes of the files."""
        files = (self.sdist, self.native_wheel, self.pure_wheel)
        lines = [f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}" for path in files]
        return "\n".join([f"built in {self.seconds:.0f} s:", *lines])


def build_products(root: Path, work: Path, python: str, log: Path) -> Products:
    """Return what a release would consist of, built from a source tree; each wheel is built from the sdist."""
    start, environment = time.monotonic(), clean_environment()
    run_logged([python, "-m", "venv", str(work / "tools")], log, environment)
    tool = str(tool_of(work / "tools"))
    pip = [tool, "-m", "pip", "--disable-pip-version-check"]
    run_logged([*pip, "install", "--quiet", "build", "twine"], log, environment)
    run_logged(
        [tool, "-m", "build", "--outdir", str(work / "dist"), str(root)], log, environment | {"TILEWRIGHT_NATIVE": "1"}
    )
    (sdist,) = (work / "dist").glob("*.tar.gz")
    (native_wheel,) = (work / "dist").glob("*.whl")
    bare = without_compiler(environment, str(Path(tool).parent))
    said = run_logged([*pip, "wheel", "-v", "--no-deps", "--wheel-dir", str(work / "pure"), str(sdist)], log, bare)
    (pure_wheel,) = (work / "pure").glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (tree,) = (work / "unpacked").iterdir()
    products = Products(sdist, native_wheel, pure_wheel, tree, time.monotonic() - start)
    check = [tool, "-m", "twine", "check", "--strict", *map(str, (sdist, native_wheel, pure_wheel))]
    run_logged(check, log, environment)
    for wheel in (native_wheel, pure_wheel):
        if wheel.stat().st_size > MOST_WHEEL_BYTES:
            products.problems.append(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {MOST_WHEEL_BYTES}")
    if libraries_in(native_wheel) != 1 or native_wheel.name.endswith("-any.whl"):
        products.problems.append(f"{native_wheel.name} should hold one native library")
    if libraries_in(pure_wheel) or not pure_wheel.name.endswith("-py3-none-any.whl"):
        products.problems.append(f"{pure_wheel.name} should hold no native library")
    if "WITHOUT the native library" not in said:
        products.problems.append("building without a compiler did not say that the library was left out")
    return products


def libraries_in(wheel: Path) -> int:
    """Return how many native libraries a wheel holds."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(name.endswith((".so", ".dylib", ".dll")) for name in archive.namelist())


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
