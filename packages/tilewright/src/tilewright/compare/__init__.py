# SPDX-License-Identifier: Apache-2.0
"""How two tensors differ, whatever their formats and layouts; and what a correlation would not tell."""

from .comparison import Comparison, Difference, Finding, TensorComparison, Tolerance
from .description_diff import DescriptionComparison
from .tensor_diff import diff

__all__ = ["Comparison", "DescriptionComparison", "Difference", "Finding", "TensorComparison", "Tolerance", "diff"]
