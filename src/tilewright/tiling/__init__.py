# SPDX-License-Identifier: Apache-2.0
"""Tiles in motion: tilers, transfers, pipelines, tile plans, traces."""

from .tile import Tile
from .tiler import Tiler

__all__ = ["Tile", "Tiler"]
