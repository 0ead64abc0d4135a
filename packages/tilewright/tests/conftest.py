# SPDX-License-Identifier: Apache-2.0
"""Hypothesis profiles, chosen with HYPOTHESIS_PROFILE: "ci" (the default), "thorough" or "matrix"; and `--quick`."""

import gc
import os
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tilewright

from . import cases
from .native import remote

if remote.COMMAND:
    remote.install()

# Almost every test brings a plan of its own, and compiling it takes longer than running it: workers share kernels.
BUILD = Path(__file__).parents[3] / "build"
os.environ.setdefault("TILEWRIGHT_CACHE", str(BUILD / "test-kernels"))
# The system's OpenCL drivers, where it has some: PoCL in a wheel knows no processor that is newer than its LLVM.
if (DRIVERS := Path("/etc/OpenCL/vendors")).is_dir():
    os.environ.setdefault("OCL_ICD_VENDORS", str(DRIVERS))
# Many tests start processes: they share compiled modules also where none may be written beside the sources.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(BUILD / "pycache"))

# Examples per law. No deadlines and no slowness check: a busy machine is not a bug.
PROFILES = {
    "ci": 50,
    "thorough": 5000,
    "matrix": 10,  # every environment of `make test-matrix` runs all tests, some without the native library
    "quick": 10,
}
for name, examples in PROFILES.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=name != "thorough",
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# There the package has to come from the environment that it was installed into, in every process that runs tests.
INSTALLED_IN = os.environ.get("TILEWRIGHT_TESTS_OF")
if INSTALLED_IN and not Path(tilewright.__file__).resolve().is_relative_to(Path(INSTALLED_IN).resolve()):
    raise pytest.UsageError(f"these are to be the tests of {INSTALLED_IN}, but tilewright is {tilewright.__file__}")

CASES = 2  # of each parametrised test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="a few cases and examples of each test, without slow files")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores: some tests wait for browsers, clusters and other processes."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")
        cases.MOST = CASES


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick, keep a few cases of each test."""
    if not config.getoption("--quick"):
        return
    wanted = [item for item in items if item.get_closest_marker("slow") is None]
    chosen = []
    for _, group in groupby(wanted, key=lambda item: item.nodeid.partition("[")[0]):
        chosen += cases.some(list(group), CASES)
    deselected = set(items) - set(chosen)
    config.hook.pytest_deselected(items=list(deselected))
    items[:] = chosen
