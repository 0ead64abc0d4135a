# SPDX-License-Identifier: Apache-2.0
"""The cost of a layout, and better ones: bank conflicts, coalescing, swizzles, padding, balance, atoms."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .accesses import (
        SIZES,
        BalanceReport,
        CoalescingReport,
        FootprintReport,
        Permutation,
        RunReport,
        ThreadStrides,
        access_offsets,
        balance,
        coalescing,
        contiguous_runs,
        footprint,
        padding_share,
        permutation,
        thread_strides,
    )
    from .atom_catalogue import AtomCoverage, CopyAtom, MatrixAtom, OperandCoverage, atom_coverage, atoms
    from .banks import (
        AMD,
        NVIDIA,
        BankModel,
        BankReport,
        Certificate,
        Collision,
        Pattern,
        bank_conflicts,
        conflicts_by_warp,
        find_padding,
        find_remedy,
        find_swizzle,
    )
    from .derivations import AlgebraStep, explain_steps, format_operand
    from .register_conversion import Conversion, conversion

_NAMES = {
    "accesses": (
        "BalanceReport", "CoalescingReport", "FootprintReport", "Permutation", "RunReport", "SIZES", "ThreadStrides",
        "access_offsets", "balance", "coalescing", "contiguous_runs", "footprint", "padding_share", "permutation",
        "thread_strides",
    ),
    "atom_catalogue": ("AtomCoverage", "CopyAtom", "MatrixAtom", "OperandCoverage", "atom_coverage", "atoms"),
    "banks": (
        "AMD", "BankModel", "BankReport", "Certificate", "Collision", "NVIDIA", "Pattern", "bank_conflicts",
        "conflicts_by_warp", "find_padding", "find_remedy", "find_swizzle",
    ),
    "derivations": ("AlgebraStep", "explain_steps", "format_operand"),
    "register_conversion": ("Conversion", "conversion"),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "AMD", "NVIDIA", "AlgebraStep", "AtomCoverage", "BalanceReport", "BankModel", "BankReport", "Certificate",
    "CoalescingReport", "Collision", "Conversion", "CopyAtom", "FootprintReport", "MatrixAtom", "OperandCoverage",
    "Pattern", "Permutation", "RunReport", "ThreadStrides", "atom_coverage", "atoms", "balance", "bank_conflicts",
    "coalescing", "conflicts_by_warp", "contiguous_runs", "conversion", "explain_steps", "find_padding", "find_remedy",
    "find_swizzle", "footprint", "padding_share", "permutation", "thread_strides",
]  # fmt: skip
