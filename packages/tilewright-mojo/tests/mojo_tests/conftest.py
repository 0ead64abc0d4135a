# SPDX-License-Identifier: Apache-2.0
"""What these tests share with the tests of the library: profiles of Hypothesis, and the fixture `run`."""

import tests.conftest  # noqa: F401
