# SPDX-License-Identifier: Apache-2.0
"""Whether the threads of a matrix instruction hold all elements of its operands, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import LayoutError
from .atom_catalogue import MatrixAtom


@dataclass(frozen=True, slots=True)
class OperandCoverage:
    """What threads hold of an operand of `extents` elements: `values` each, of which `missing` and `extra` are wrong.

    Elements are column-major offsets: `missing` ones no thread holds, `extra` ones are outside the operand. `copies` is
    how many (thread, value) pairs hold an element that another one holds, too.

    >>> operand = OperandCoverage("A", (16, 16), 32, 8, (), (), 0)
    >>> print(operand, operand.is_exact)
    A 16 x 16: 32 threads with 8 values, each element once True
    """

    name: str
    extents: tuple[int, int]
    threads: int
    values: int
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    copies: int

    @property
    def is_complete(self) -> bool:
        """Return whether every element of the operand is held, and nothing else."""
        return not self.missing and not self.extra

    @property
    def is_exact(self) -> bool:
        """Return whether every element of the operand is held exactly once, and nothing else."""
        return self.is_complete and not self.copies

    def __str__(self) -> str:
        problems = [f"{len(self.missing)} elements missing"] * bool(self.missing)
        problems += [f"{len(self.extra)} outside"] * bool(self.extra)
        if self.is_complete:
            problems = [f"{self.copies} held again" if self.copies else "each element once"]
        size = " x ".join(map(str, self.extents))
        return f"{self.name} {size}: {self.threads} threads with {self.values} values, {', '.join(problems)}"


@dataclass(frozen=True, slots=True)
class AtomCoverage:
    """What the threads of a matrix instruction hold of `a`, `b` and `c`.

    >>> from tilewright.analysis import atoms
    >>> coverage = atom_coverage(atoms["SM80_16x8x8_F32F16F16F32_TN"])
    >>> print(coverage)
    SM80_16x8x8_F32F16F16F32_TN: 16 x 8 x 8, 32 threads
      A 16 x 8: 32 threads with 4 values, each element once
      B 8 x 8: 32 threads with 2 values, each element once
      C 16 x 8: 32 threads with 4 values, each element once
    """

    atom: MatrixAtom
    a: OperandCoverage
    b: OperandCoverage
    c: OperandCoverage

    @property
    def is_complete(self) -> bool:
        """Return whether the threads hold every element of all operands, and of C each exactly once."""
        return self.a.is_complete and self.b.is_complete and self.c.is_exact

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.atom.shape))
        return "\n  ".join(
            [f"{self.atom.name}: {shape}, {self.atom.threads} threads", *map(str, (self.a, self.b, self.c))]
        )


def atom_coverage(atom: MatrixAtom) -> AtomCoverage:
    """Return what the threads of a matrix instruction `atom` hold of each operand; for atoms of one's own, too.

    >>> from dataclasses import replace
    >>> from tilewright import Layout
    >>> from tilewright.analysis import atoms
    >>> atom = atoms["SM80_8x8x4_F64F64F64F64_TN"]
    >>> print(atom_coverage(replace(atom, a=Layout((32, 1), (2, 0)))).a)
    A 8 x 4: 32 threads with 1 values, 16 elements missing, 16 outside
    """
    if not isinstance(atom, MatrixAtom):
        raise LayoutError(f"expected a matrix instruction, such as atoms[name], got {type(atom).__name__}")
    return AtomCoverage(atom, *[_operand_coverage(atom, name) for name in "ABC"])


def _operand_coverage(atom: MatrixAtom, name: str) -> OperandCoverage:
    layout, extents = atom.operand(name)
    if layout.rank != 2:
        raise LayoutError(f"operand {name} of {atom.name} must map (thread, value), got {layout} of rank {layout.rank}")
    held = np.asarray(layout(np.arange(layout.size, dtype=np.int64))).reshape(-1)
    distinct, wanted = np.unique(held), np.arange(extents[0] * extents[1])
    return OperandCoverage(
        name,
        extents,
        int(layout.mode(0).size),
        int(layout.mode(1).size),
        tuple(np.setdiff1d(wanted, distinct).tolist()),
        tuple(np.setdiff1d(distinct, wanted).tolist()),
        held.size - distinct.size,
    )
