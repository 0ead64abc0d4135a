# SPDX-License-Identifier: Apache-2.0
"""What these tests share with the tests of the library: profiles of Hypothesis, the driver and the cache of kernels."""

import tests.conftest  # noqa: F401
