# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `std.gpu.primitives`: what threads are, and what they do together."""

from . import block, cluster, id, warp

__all__ = ["block", "cluster", "id", "warp"]
