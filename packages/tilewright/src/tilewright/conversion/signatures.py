# SPDX-License-Identifier: Apache-2.0
"""Signatures: what two tensors share if one has the elements of the other, in any order, padded, or in parts.

A signature is made of sums over elements: it does not depend on their order, zeros do not count, and the
signature of a joined tensor is the sum of its parts' signatures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .tensor_diff import Array, ComparedTensor, row_major_slabs

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_SEED = 20
_CHUNK = 1 << 18  # elements at a time; with all temporaries, 8 MiB
_WRAP = (1 << 64) - 1


@cache
def _hashes() -> NDArray[np.uint64]:
    """Return a random number for each code of bfloat16: 0 for both zeros, and one for all NaNs."""
    table = np.random.default_rng(_SEED).integers(0, _WRAP, 1 << 16, dtype=np.uint64, endpoint=True)
    codes = np.arange(1 << 16, dtype=np.uint16)
    magnitudes = codes & np.uint16(0x7FFF)
    table[magnitudes == 0] = 0
    table[magnitudes > 0x7F80] = table[0x7FC0]
    return table


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a tensor: sums over its elements.

    `hash` adds up a random number for each value, rounded to bfloat16; `nonzero` counts those that are not zero then.
    `total` and `squares` are the sum and the sum of squares of the values themselves.

    >>> a, b = (Signature.of(np.float32(values)) for values in ([1, 2, 3, 0], [3, 1, 2]))
    >>> a.key == b.key, a.count, b.count, a.total, a.squares
    (True, 4, 3, 6.0, 14.0)
    """

    count: int = 0
    nonzero: int = 0
    hash: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Array) -> Signature:
        """Return the signature of some `values`.

        >>> Signature.of(np.zeros(5)).key
        (0, 0)
        """
        result = cls()
        flat = values.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            wide = part if part.dtype == np.float64 else part.astype(np.float32)  # halves the time of doubles
            with np.errstate(all="ignore"):
                codes = (part if part.dtype == _BFLOAT16 else part.astype(_BFLOAT16)).view(np.uint16)
                total, squares = float(wide.sum(dtype=np.float64)), float(np.vdot(wide, wide))
            nonzero = int(np.count_nonzero(codes << np.uint16(1)))
            number = int(_hashes()[codes].sum(dtype=np.uint64))
            result += cls(part.size, nonzero, number, total, squares)
        return result

    @property
    def key(self) -> tuple[int, int]:
        """The part that tensors share exactly if they have the same nonzero values: their number and their hash.

        >>> Signature.of(np.ones((2, 3))).key == Signature.of(np.ones(6)).key
        True
        """
        return self.nonzero, self.hash

    def __add__(self, other: Signature) -> Signature:
        return Signature(
            self.count + other.count,
            self.nonzero + other.nonzero,
            (self.hash + other.hash) & _WRAP,
            self.total + other.total,
            self.squares + other.squares,
        )


def sign_tensor(tensor: ComparedTensor, max_elements: int = 1 << 22) -> Signature:
    """Return the signature of a tensor, of which at most `max_elements` are in memory at a time.

    >>> sign_tensor(ComparedTensor(np.ones((3, 4)), (3, 4), None), max_elements=5).count
    12
    """
    slabs = row_major_slabs(tensor.shape, max_elements)
    return sum([Signature.of(np.asarray(tensor.read(box))) for box in slabs], start=Signature())
