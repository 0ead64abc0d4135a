# SPDX-License-Identifier: Apache-2.0
"""What is not zero is True, however small."""

import numpy as np

from tilewright.formats import cast


def test_a_double_too_small_for_float32_is_still_true():
    assert cast(np.array([1e-88, -1e-300, 0.0, -0.0, np.nan]), "bool").tolist() == [True, True, False, False, True]
