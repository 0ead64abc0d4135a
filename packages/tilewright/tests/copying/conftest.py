# SPDX-License-Identifier: Apache-2.0
"""The engines that every test of a move runs on."""

import pytest

from tilewright.copying import native

REFERENCE = {"engine": "reference"}
NATIVE = [{"engine": "native", "threads": count} for count in (1, 2)]


def named(options):
    return options["engine"] + (f", threads={options['threads']}" if "threads" in options else "")


def present(options):
    """Return the options of an engine, or skip the test where the engine is missing."""
    if options["engine"] == "native" and not native.is_available():
        pytest.skip(native.unavailable_reason())
    return options


def pytest_generate_tests(metafunc):
    """Run every test of a move on every engine of the host; tilewright-gpu runs the same files on devices."""
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", [REFERENCE, *NATIVE], ids=named, indirect=True, scope="session")


@pytest.fixture(scope="session")
def engine(request):
    """The options that choose an engine, as keyword arguments of a move."""
    return present(request.param)


@pytest.fixture(scope="session", params=NATIVE, ids=named)
def fast_engine(request):
    """The same, of the native engine only: for what is compared with the reference."""
    return present(request.param)
