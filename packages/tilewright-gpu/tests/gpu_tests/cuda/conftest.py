# SPDX-License-Identifier: Apache-2.0
"""Tests on a real CUDA device: left out as a whole where there is none. `make test-cuda` runs them."""

import pytest

from ..on_devices import CUDA

if CUDA.unavailable_reason() is not None:
    collect_ignore_glob = ["test_[!p]*.py"]  # all but the one that says why


@pytest.fixture(scope="session")
def engine():
    """The options that choose the engine, as keyword arguments of a move."""
    return {"engine": "cuda"}


@pytest.fixture(scope="session")
def fast_engine(engine):
    """The same, for what is compared with the reference engine."""
    return engine
