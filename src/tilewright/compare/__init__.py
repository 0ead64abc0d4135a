# SPDX-License-Identifier: Apache-2.0
"""How two tensors differ, whatever their formats and layouts; and what a correlation would not tell."""

from .comparing import diff
from .findings import Finding
from .result import Comparison, Difference, TensorComparison, Tolerance

__all__ = ["Comparison", "Difference", "Finding", "TensorComparison", "Tolerance", "diff"]
