# SPDX-License-Identifier: Apache-2.0
"""Hypothesis profiles, chosen with HYPOTHESIS_PROFILE: "ci" (the default) or "thorough"."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

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
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
