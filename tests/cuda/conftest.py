# SPDX-License-Identifier: Apache-2.0
"""Tests on a real CUDA device: skipped as a whole where there is none. `make test-cuda` runs them."""

import pytest

from tilewright.copy import cuda_engine


def pytest_collection_modifyitems(items):
    reason = cuda_engine.why_not()
    if reason is not None:
        for item in items:
            if "tests/cuda" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def engine():
    """The options that choose the engine, as keyword arguments of a move."""
    return {"engine": "cuda"}


@pytest.fixture(scope="session")
def fast_engine(engine):
    """The same, for what is compared with the reference engine."""
    return engine
