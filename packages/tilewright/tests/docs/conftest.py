# SPDX-License-Identifier: Apache-2.0
"""Pages run in this process, as a reader would run them; what they leave open must not reach other tests."""

import pytest

from tilewright.ttnn import devices


@pytest.fixture(autouse=True)
def no_device_is_left_open():
    before = dict(devices._OPEN), list(devices._DEFAULT)
    yield
    devices._OPEN.clear()
    devices._OPEN.update(before[0])
    devices._DEFAULT[:] = before[1]
