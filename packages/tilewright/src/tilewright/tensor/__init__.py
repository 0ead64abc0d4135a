# SPDX-License-Identifier: Apache-2.0
"""Tensors: `TileTensor`, a view of storage through a layout, and `Tensor`, a spec with storage."""

from .store import StorageType
from .tensor import Tensor
from .tile_tensor import TileTensor
from .views import Tiles

__all__ = ["StorageType", "Tensor", "TileTensor", "Tiles"]
