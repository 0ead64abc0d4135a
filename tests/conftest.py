# SPDX-License-Identifier: Apache-2.0
"""Hypothesis profiles, chosen with HYPOTHESIS_PROFILE: "ci" (the default), "thorough", or "matrix"; what is tested."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tilewright

# Almost every test brings a plan of its own, and compiling it takes longer than running it: workers share kernels.
os.environ.setdefault("TILEWRIGHT_CACHE", str(Path(__file__).parents[1] / "build" / "test-kernels"))

# No deadlines and no slowness check: a busy machine is not a bug.
settings.register_profile(
    "ci",
    max_examples=200,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    max_examples=5000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Every environment of `make test-matrix` runs all the tests, some of them without the native library.
settings.register_profile(
    "matrix",
    max_examples=10,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# There the package has to come from the environment that it was installed into, in every process that runs tests.
INSTALLED_IN = os.environ.get("TILEWRIGHT_TESTS_OF")
if INSTALLED_IN and not Path(tilewright.__file__).resolve().is_relative_to(Path(INSTALLED_IN).resolve()):
    raise pytest.UsageError(f"these are to be the tests of {INSTALLED_IN}, but tilewright is {tilewright.__file__}")
