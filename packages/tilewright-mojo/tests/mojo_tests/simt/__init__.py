# SPDX-License-Identifier: Apache-2.0
"""Tests of the machine that runs kernels; what their helpers assert is shown as in the tests themselves."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.kernels")
