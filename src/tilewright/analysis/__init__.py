# SPDX-License-Identifier: Apache-2.0
"""What a layout costs: bank conflicts, coalescing, contiguous runs, padding, balance."""

from .banks import AMD, NVIDIA, BankModel, BankReport, Collision, bank_conflicts
from .conflict_search import Certificate, Pattern, find_padding, find_swizzle, padded_layout
from .sectors import CoalescingReport, coalescing
from .spread import BalanceReport, RunReport, balance, contiguous_runs, padding_share

__all__ = [
    "AMD",
    "NVIDIA",
    "BalanceReport",
    "BankModel",
    "BankReport",
    "Certificate",
    "CoalescingReport",
    "Collision",
    "Pattern",
    "RunReport",
    "balance",
    "bank_conflicts",
    "coalescing",
    "contiguous_runs",
    "find_padding",
    "find_swizzle",
    "padded_layout",
    "padding_share",
]
