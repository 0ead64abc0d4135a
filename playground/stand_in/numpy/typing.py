# SPDX-License-Identifier: Apache-2.0
"""The names of types that annotations use."""

from .array_class import ndarray

ArrayLike = DTypeLike = NDArray = ndarray
