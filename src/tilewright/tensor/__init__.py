# SPDX-License-Identifier: Apache-2.0
"""What users hold: tensors with storage."""

from .conversions import Conversion
from .tensor import Tensor
from .tensor_storage import StorageType

__all__ = ["Conversion", "StorageType", "Tensor"]
