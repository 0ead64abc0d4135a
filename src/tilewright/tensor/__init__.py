# SPDX-License-Identifier: Apache-2.0
"""What users hold: views of storage through layouts, and tensors with a spec and storage."""

from .host_device import DeviceBuffer, DeviceContext, HostBuffer
from .layout_tensor import LayoutTensor
from .pointer import Pointer
from .spaces import AddressSpace
from .tensor import Tensor
from .tensor_storage import StorageType
from .tile_tensor import TileTensor
from .tile_views import Tiles

__all__ = [
    "AddressSpace",
    "DeviceBuffer",
    "DeviceContext",
    "HostBuffer",
    "LayoutTensor",
    "Pointer",
    "StorageType",
    "Tensor",
    "TileTensor",
    "Tiles",
]
