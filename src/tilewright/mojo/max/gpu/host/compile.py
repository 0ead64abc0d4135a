# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.host.compile`: the target that kernels are compiled for, here a label."""

from ....std.gpu.host import get_gpu_target

__all__ = ["get_gpu_target"]
