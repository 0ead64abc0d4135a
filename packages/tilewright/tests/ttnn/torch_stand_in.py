# SPDX-License-Identifier: Apache-2.0
"""The few things of torch that the original documents use, over NumPy, for machines without torch."""

import ml_dtypes
import numpy as np

bfloat16 = ml_dtypes.bfloat16
float32 = np.float32


class Tensor:
    """Values with the methods by which a tensor of torch is recognised."""

    def __init__(self, values):
        self.values = values
        self.shape = values.shape

    def detach(self):
        return self

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype) if copy or dtype else self.values

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        from tilewright.copying.devices import export_dlpack

        return export_dlpack(self.values)


def randn(shape, dtype=float32):
    return Tensor(np.random.default_rng(7).standard_normal(shape).astype(np.float32).astype(dtype))
