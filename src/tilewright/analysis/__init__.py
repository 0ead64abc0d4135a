# SPDX-License-Identifier: Apache-2.0
"""What a layout costs, and what would be better: bank conflicts, coalescing, swizzles, padding, balance, atoms."""

from .atoms import CopyAtom, MatrixAtom, atoms
from .banks import AMD, NVIDIA, BankModel, BankReport, Collision, bank_conflicts
from .conflict_search import Certificate, Pattern, find_padding, find_swizzle, padded_layout
from .device_balance import bank_balance, reader_balance
from .proofs import Proof, prove
from .register_conversion import Conversion, conversion
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
    "Conversion",
    "CopyAtom",
    "MatrixAtom",
    "Pattern",
    "Proof",
    "RunReport",
    "atoms",
    "balance",
    "bank_balance",
    "bank_conflicts",
    "coalescing",
    "contiguous_runs",
    "conversion",
    "find_padding",
    "find_swizzle",
    "padded_layout",
    "padding_share",
    "prove",
    "reader_balance",
]
