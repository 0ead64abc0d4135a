# SPDX-License-Identifier: Apache-2.0
"""Build the package as users get it, install it into clean environments, and test what was installed there.

make test-matrix
make test-matrix MATRIX_PYTHONS="python3.10 /opt/python3.13/bin/python3" MATRIX_CELLS="3.10 3.13-numpy2-pure"

A cell is chosen by any part of its name. Environments and builds are made in a folder outside of the source tree, and
removed at the end; logs and the table stay in build/matrix. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from .cells import CELLS, PYTHONS, Cell, clean_environment, interpreters, without_compiler
from .products import Products, build_products, run_logged, tool_of

ROOT = Path(__file__).parents[2] / "packages/tilewright"
TEST_TOOLS = ["hypothesis>=6.100", "mcp>=2", "pytest>=8", "pytest-xdist>=3.5"]

# An oracle of the algebra, mypy to see that the types were installed, and OpenCL on the processor.
TOOLS_BESIDE_EXTRAS = ["islpy>=2024.1", "mypy>=1.11", "pyopencl[pocl]; sys_platform == 'linux'"]

# What these look at is the repository (its sources, its pages, how it builds), not what was installed.
NOT_OF_THE_PACKAGE = [
    "tests/cli/test_documents.py",
    "tests/conformance/test_table.py",
    "tests/copying/test_fuzz_plans.py",
    "tests/docs",
    "tests/files/test_fuzz_seeds.py",
    "tests/layout/test_fuzz_script.py",
    "tests/oracle",
    "tests/playground",
    "tests/test_budget.py",
    "tests/test_distribution.py",
    "tests/test_example_scripts.py",
    "tests/test_matrix.py",
    "tests/test_packaging.py",
    "tests/test_project_files.py",
    "tests/test_script_imports.py",
    "tests/test_words.py",
    "tests/tiling/test_soak_script.py",
    "tests/ttl/test_examples.py",
    "tests/views/test_gallery.py",
    "tests/test_messages.py",
    "tests/test_layers.py",
]

ASK_THE_PACKAGE = """
import json, numpy, tilewright
from tilewright.copying import native
print(json.dumps([tilewright.__file__, numpy.__version__, native.unavailable_reason()]))
"""


@dataclass(frozen=True)
class Limits:
    """The seconds that installing and testing may take; a busy machine needs more."""

    install: float
    tests: float


@dataclass
class Result:
    """What a cell came to."""

    cell: Cell
    state: str = "passed"
    numpy: str = ""
    install_seconds: float = 0.0
    test_seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def main() -> int:
    """Return 0 if every cell that could be run passed, and at least one could."""
    arguments = read_arguments()
    found = interpreters(arguments.pythons.split())
    cells = [
        cell for cell in CELLS if not arguments.cells or any(part in cell.name for part in arguments.cells.split())
    ]
    if not cells:
        sys.exit(f"no cell is named like {arguments.cells!r}; there are: {', '.join(cell.name for cell in CELLS)}")
    for version in PYTHONS:
        print(f"Python {version}: {found.get(version, 'NOT FOUND, ITS CELLS ARE SKIPPED')}", flush=True)
    if not any(cell.python in found for cell in cells):
        sys.exit("no Python of the matrix was found; put python3.10 ... on the PATH, or name some in MATRIX_PYTHONS")
    reports, limits = Path(arguments.reports).resolve(), Limits(arguments.install_limit, arguments.test_limit)
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="tilewright-matrix-") as name:
        work = Path(name).resolve()
        work.chmod(0o755)  # as where packages are usually installed: a test becomes another user
        kinds = {cell.is_native for cell in cells if not cell.from_sdist and cell.python in found}
        try:
            products = build_products(ROOT, work, found[max(found, key=PYTHONS.index)], reports / "build.log", kinds)
        except subprocess.CalledProcessError as problem:
            sys.exit(f"{' '.join(problem.cmd)} ended with {problem.returncode}; see {reports / 'build.log'}")
        print(products.in_words(), flush=True)
        results = []
        for cell in cells:
            results.append(run_cell(cell, found.get(cell.python), products, work / cell.name, reports, limits))
            print(line_of(results[-1]), flush=True)
            for problem in results[-1].problems:
                print(f"    {problem}", flush=True)
            shutil.rmtree(work / cell.name, ignore_errors=True)
    table = "\n".join(in_a_table(results)) + "\n"
    (reports / "table.md").write_text(table, encoding="utf-8")
    print(f"\n{table}\n{in_sum(results)}; logs are in {reports}")
    failed = products.problems or any(result.state == "FAILED" for result in results)
    for problem in products.problems:
        print(f"build: {problem}")
    return 1 if failed else 0


def read_arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", default="", help="interpreters, by name or path; python3.10 to python3.13")
    parser.add_argument("--cells", default="", help="parts of names of the cells to run; all of them")
    parser.add_argument("--test-limit", type=float, default=3600, help="seconds that the tests of a cell may take")
    parser.add_argument("--install-limit", type=float, default=120, help="seconds that pip install may take")
    parser.add_argument(
        "--reports", default=ROOT.parents[1] / "build" / "matrix", help="folder for logs and the table, made anew"
    )
    return parser.parse_args()


def run_cell(cell: Cell, python: str | None, products: Products, home: Path, reports: Path, limits: Limits) -> Result:
    """Return what installing and testing in one clean environment came to."""
    result = Result(cell)
    if python is None:
        result.state = "SKIPPED"
        result.problems.append(f"no Python {cell.python} was found")
        return result
    log = reports / f"{cell.name}.log"
    try:
        examine(result, python, products, home, log, limits)
    except subprocess.CalledProcessError as problem:
        result.problems.append(f"{problem.cmd[0]} {' '.join(problem.cmd[1:5])} ... ended with {problem.returncode}")
    except subprocess.TimeoutExpired as problem:
        result.problems.append(f"not done after {problem.timeout:.0f} s")
    if result.problems:
        result.state = "FAILED"
        result.problems.append(f"see {log}")
    return result


def examine(result: Result, python: str, products: Products, home: Path, log: Path, limits: Limits) -> None:
    """Install into a new environment, ask what is there, and test it."""
    cell, environment = result.cell, clean_environment()
    run_logged([python, "-m", "venv", str(home / "env")], log, environment)
    bin_folder = tool_of(home / "env").parent
    pip = [str(tool_of(home / "env")), "-m", "pip", "--disable-pip-version-check"]
    product = products.sdist if cell.from_sdist else products.wheels[cell.is_native]
    building = {"TILEWRIGHT_NATIVE": "1"} if cell.is_native else without_compiler({}, str(bin_folder))

    # First, since extras ask for them: no index has this version yet.
    run_logged([*pip, "install", "--no-deps", *map(str, products.companions)], log, environment)
    start = time.monotonic()
    extras = f"[{cell.extras}]" if cell.extras else ""
    requirements = cell.requirements(products.floors)
    run_logged([*pip, "install", f"{product}{extras}", *requirements], log, environment | building)
    result.install_seconds = time.monotonic() - start
    if result.install_seconds > limits.install:
        result.problems.append(f"pip install took {result.install_seconds:.0f} s, more than {limits.install:.0f}")
    tools = TEST_TOOLS + TOOLS_BESIDE_EXTRAS * bool(cell.extras)
    run_logged([*pip, "install", *tools, *requirements], log, environment)
    run_logged([*pip, "check"], log, environment)

    # The tests are those of the sdist, without its sources: nothing but the installed package can be imported.
    tree = home / "tests-of-sdist"
    shutil.copytree(
        products.tree, tree, ignore=lambda folder, names: {"src"} if Path(folder) == products.tree else set()
    )
    asked = run_logged([pip[0], "-c", ASK_THE_PACKAGE], log, environment, cwd=tree)
    place, result.numpy, why_not_native = json.loads(asked.splitlines()[-1])
    if not Path(place).resolve().is_relative_to(home / "env"):
        result.problems.append(f"the package was imported from {place}")
    if (why_not_native is None) != cell.is_native:
        result.problems.append(f"the native library: {why_not_native or 'is there, and should not be'}")
    result.problems += what_doctor_lacks(cell, bin_folder, log, environment, tree)
    for verb in ("audit", "run"):  # of companions
        run_logged([str(bin_folder / "tilewright"), verb, "--help"], log, environment, cwd=tree)

    start = time.monotonic()
    record = home / "tests.xml"
    tests = [pip[0], "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-v", "-p", "no:cacheprovider"]
    tests += [f"--junitxml={record}", *(f"--ignore={path}" for path in NOT_OF_THE_PACKAGE), "tests"]
    proof = {"TILEWRIGHT_TESTS_OF": str(home / "env"), "HYPOTHESIS_PROFILE": "matrix"}
    try:
        run_logged(tests, log, environment | proof, cwd=tree, timeout=limits.tests)
    finally:
        result.test_seconds = time.monotonic() - start
        if record.exists():
            result.counts = counts_in(record)
    if not result.counts.get("passed"):
        result.problems.append("no test was run")


def what_doctor_lacks(cell: Cell, bin_folder: Path, log: Path, environment: dict[str, str], tree: Path) -> list[str]:
    """Return what `tilewright doctor` should have said in this environment, and did not."""
    said = " ".join(run_logged([str(bin_folder / "tilewright"), "doctor"], log, environment, cwd=tree).split())
    if cell.is_native:
        wanted = ["native yes"]
    else:
        wanted = ["native no", "C++20 compiler", "pip install --force-reinstall"]
    return [f"tilewright doctor does not say {words!r}" for words in wanted if words not in said]


def counts_in(record: Path) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, as pytest recorded them."""
    suites = list(ElementTree.parse(record).getroot().iter("testsuite"))
    total, failed, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return {"passed": total - failed - errors - skipped, "failed": failed + errors, "skipped": skipped}


def in_a_table(results: list[Result]) -> list[str]:
    """Return the results as lines of a Markdown table."""
    lines = [
        "| Python | NumPy | library | from | extras | pip install | tests passed | failed | skipped | time | |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    return lines + [f"| {' | '.join(cells_of(result))} |" for result in results]


def cells_of(result: Result) -> list[str]:
    """Return what a row of the table says."""
    cell = result.cell
    ran = [f"{result.counts[key]}" if key in result.counts else "-" for key in ("passed", "failed", "skipped")]
    return [
        cell.python,
        (result.numpy or cell.numpy) + ", oldest of all" * cell.is_oldest,
        "native" if cell.is_native else "none: no compiler",
        "sdist" if cell.from_sdist else "wheel",
        cell.extras.replace(",", ", ") or "none",
        f"{result.install_seconds:.0f} s",
        *ran,
        f"{result.test_seconds / 60:.1f} min",
        result.state,
    ]


def line_of(result: Result) -> str:
    """Return a result as a line of progress."""
    counts = ", ".join(f"{count} {what}" for what, count in result.counts.items())
    times = f"install {result.install_seconds:.0f} s, tests {result.test_seconds:.0f} s"
    return f"{result.state:<8} {result.cell.name:<30} {times}; {counts}"


def in_sum(results: list[Result]) -> str:
    """Return how many cells came to what."""
    states = [result.state for result in results]
    return ", ".join(f"{states.count(state)} cells {state}" for state in ("passed", "FAILED", "SKIPPED"))


if __name__ == "__main__":
    sys.exit(main())
