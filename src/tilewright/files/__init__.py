# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from .mesh import Topology
from .tensorbin import Tensorbin, parse_tensorbin, read_tensorbin, write_tensorbin

__all__ = ["Tensorbin", "Topology", "parse_tensorbin", "read_tensorbin", "write_tensorbin"]
