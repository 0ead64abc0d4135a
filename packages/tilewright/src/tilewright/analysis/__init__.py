# SPDX-License-Identifier: Apache-2.0
"""What a layout costs, and what would be better: bank conflicts, coalescing, swizzles, padding, balance, atoms."""

from .accesses import SIZES, access_offsets
from .atom_catalogue import CopyAtom, MatrixAtom, atoms
from .banks import AMD, NVIDIA, BankModel, BankReport, Collision, bank_conflicts, conflicts_by_warp
from .conflict_search import Certificate, Pattern, find_padding, find_swizzle, padded_layout
from .derivations import AlgebraStep, explain_steps, format_operand
from .device_balance import bank_balance, reader_balance
from .footprints import FootprintReport, ThreadStrides, footprint, thread_strides
from .operand_coverage import AtomCoverage, OperandCoverage, atom_coverage
from .permutations import Permutation, permutation
from .proofs import Proof, prove
from .register_conversion import Conversion, conversion
from .sectors import CoalescingReport, coalescing
from .spread import BalanceReport, RunReport, balance, contiguous_runs, padding_share

__all__ = [
    "AMD",
    "NVIDIA",
    "AlgebraStep",
    "AtomCoverage",
    "BalanceReport",
    "BankModel",
    "BankReport",
    "Certificate",
    "CoalescingReport",
    "Collision",
    "Conversion",
    "CopyAtom",
    "FootprintReport",
    "MatrixAtom",
    "OperandCoverage",
    "Pattern",
    "Permutation",
    "Proof",
    "RunReport",
    "ThreadStrides",
    "atom_coverage",
    "atoms",
    "balance",
    "bank_balance",
    "bank_conflicts",
    "coalescing",
    "conflicts_by_warp",
    "contiguous_runs",
    "conversion",
    "explain_steps",
    "find_padding",
    "find_swizzle",
    "footprint",
    "padded_layout",
    "padding_share",
    "permutation",
    "prove",
    "reader_balance",
    "thread_strides",
]
