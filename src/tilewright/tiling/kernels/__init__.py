# SPDX-License-Identifier: Apache-2.0
"""Pipelines as kernels: one program that imports, computes and exports tiles in the memory of a device."""

from .tile_kernel import TileKernel

__all__ = ["TileKernel"]
