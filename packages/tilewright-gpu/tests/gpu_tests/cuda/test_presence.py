# SPDX-License-Identifier: Apache-2.0
"""Whether there is a CUDA device: the one test that is skipped where there is none."""

import pytest

from ..on_devices import CUDA


def test_a_device_is_here():
    reason = CUDA.unavailable_reason()
    if reason is not None:
        pytest.skip(reason)
    assert CUDA.default_backend().engine == "cuda"
