# SPDX-License-Identifier: Apache-2.0
"""Hypothesis profiles, chosen with HYPOTHESIS_PROFILE: "ci" (the default) or "thorough"."""

import os

from hypothesis import HealthCheck, settings

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
