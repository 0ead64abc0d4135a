# SPDX-License-Identifier: Apache-2.0
"""Run copy plans and pipelines on GPUs, as generated CUDA and OpenCL kernels."""

from .codegen import Tuning
from .tile_kernel import TileKernel

__all__ = ["TileKernel", "Tuning"]
