# SPDX-License-Identifier: Apache-2.0
"""What users hold: tensors with storage."""

from .tensor import Tensor
from .tensor_storage import StorageType

__all__ = ["StorageType", "Tensor"]
