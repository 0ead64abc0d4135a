# SPDX-License-Identifier: Apache-2.0
"""What users hold: views of storage through layouts."""

from .host_device import DeviceBuffer, DeviceContext, HostBuffer
from .layout_tensor import LayoutTensor
from .pointer import Pointer
from .spaces import AddressSpace
from .tile_tensor import TileTensor
from .views import Tiles

__all__ = [
    "AddressSpace",
    "DeviceBuffer",
    "DeviceContext",
    "HostBuffer",
    "LayoutTensor",
    "Pointer",
    "TileTensor",
    "Tiles",
]
