# SPDX-License-Identifier: Apache-2.0
"""Whether there is a CUDA device: the one test that is skipped where there is none."""

import pytest

from tilewright.copying import cuda


def test_a_device_is_here():
    reason = cuda.unavailable_reason()
    if reason is not None:
        pytest.skip(reason)
    assert cuda.default_backend().engine == "cuda"
