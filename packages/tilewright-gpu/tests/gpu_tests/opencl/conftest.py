# SPDX-License-Identifier: Apache-2.0
"""Tests on an OpenCL device: the engine, and which of the tests of moves `make test` runs on it."""

from zlib import crc32

import pytest

from ..on_devices import EVERY, OPENCL


@pytest.fixture(scope="session")
def engine():
    """The options that choose the engine, as keyword arguments of a move."""
    if OPENCL.unavailable_reason():
        pytest.skip(OPENCL.unavailable_reason())
    return {"engine": "opencl"}


def pytest_collection_modifyitems(config, items):
    """Leave out random moves, since a device compiles each plan anew, and most others to `make test-opencl`."""
    dropped = [item for item in items if "test_same_moves" in item.nodeid and _is_extra(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in set(dropped)]


def _is_extra(item):
    if "engine" not in item.fixturenames or getattr(item.function, "is_hypothesis_test", False):
        return True  # not on a device, or in test_opencl_plans.py with fewer examples
    callspec = getattr(item, "callspec", None)
    whole = "golden" in item.function.__module__ or (callspec is not None and "cases" in callspec.params)
    return not EVERY and not whole and crc32(item.nodeid.encode()) % 20 > 0
