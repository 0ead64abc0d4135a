# SPDX-License-Identifier: Apache-2.0
"""The engines that every test of a move runs on."""

import os
from zlib import crc32

import pytest

from tilewright.copying import native, opencl

REFERENCE = {"engine": "reference"}
NATIVE = [{"engine": "native", "threads": count} for count in (1, 2)]
OPENCL = {"engine": "opencl"}


def named(options):
    return options["engine"] + (f", threads={options['threads']}" if "threads" in options else "")


def present(options):
    """Return the options of an engine, or skip the test where the engine is missing."""
    if options["engine"] == "native" and not native.is_available():
        pytest.skip(native.unavailable_reason())
    if options["engine"] == "opencl" and opencl.unavailable_reason():
        pytest.skip(opencl.unavailable_reason())
    return options


def pytest_generate_tests(metafunc):
    """Run every test of a move on every engine; random ones on the host, since a device compiles each plan anew.

    Random plans on devices have tests of their own, with fewer examples: test_opencl_plans.py.
    """
    if "engine" in metafunc.fixturenames:
        random = getattr(metafunc.function, "is_hypothesis_test", False)
        engines = [REFERENCE, *NATIVE] + ([] if random else [OPENCL])
        metafunc.parametrize("engine", engines, ids=named, indirect=True, scope="session")


def pytest_collection_modifyitems(config, items):
    """Leave most tests on OpenCL to `make test-opencl`: one in twenty golden vectors and a few others run."""
    if os.environ.get("TILEWRIGHT_TEST_OPENCL") == "all":
        return
    dropped = [item for item in items if _is_extra(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not _is_extra(item)]


def _is_extra(item):
    on_opencl = getattr(item, "callspec", None) and item.callspec.params.get("engine") == OPENCL
    whole = "golden" in item.nodeid or "cases" in item.callspec.params if on_opencl else True
    return not whole and crc32(item.nodeid.encode()) % 20 > 0


@pytest.fixture(scope="session")
def engine(request):
    """The options that choose an engine, as keyword arguments of a move."""
    return present(request.param)


@pytest.fixture(scope="session", params=NATIVE, ids=named)
def fast_engine(request):
    """The same, of the native engine only: for what is compared with the reference."""
    return present(request.param)
