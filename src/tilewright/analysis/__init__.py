# SPDX-License-Identifier: Apache-2.0
"""What a layout costs: bank conflicts, coalescing, contiguous runs, padding, balance."""

from .memory_cost import (
    BalanceReport,
    BankReport,
    CoalescingReport,
    RunReport,
    balance,
    bank_conflicts,
    coalescing,
    contiguous_runs,
    padding_share,
)

__all__ = [
    "BalanceReport",
    "BankReport",
    "CoalescingReport",
    "RunReport",
    "balance",
    "bank_conflicts",
    "coalescing",
    "contiguous_runs",
    "padding_share",
]
