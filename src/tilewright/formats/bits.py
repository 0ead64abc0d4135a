# SPDX-License-Identifier: Apache-2.0
"""Codes of fewer than eight bits, packed without gaps: the first code in the lowest bits of the first byte."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def dense(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return each row of codes, one per byte, packed without gaps; a row must fill whole bytes.

    >>> dense(np.array([[1, 2, 3, 4]], dtype=np.uint8), 4).tolist()
    [[33, 67]]
    """
    if bits == 8:
        return codes
    single = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(single.reshape(len(codes), -1), axis=-1, bitorder="little")


def sparse(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return each row of packed codes as one code per byte, the inverse of `dense`.

    >>> sparse(np.array([[33, 67]], dtype=np.uint8), 4).tolist()
    [[1, 2, 3, 4]]
    """
    if bits == 8:
        return packed
    single = np.unpackbits(packed, axis=-1, bitorder="little")
    return np.packbits(single.reshape(-1, bits), axis=-1, bitorder="little").reshape(
        len(packed), packed.shape[-1] * 8 // bits
    )
