# SPDX-License-Identifier: Apache-2.0
"""Checks at the door of the block formats: sizes, codes and bytes as users give them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError


def whole(number: Any, what: str) -> int:
    """Return a number of something as an int, or raise a TypeError.

    >>> whole(np.int64(32), "the number of elements")
    32
    """
    if isinstance(number, bool):
        raise TypeError(f"{what} must be an integer, not bool")
    try:
        return int(operator.index(number))
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {type(number).__name__}") from None


def as_codes(codes: Any, top: int, what: str) -> NDArray[np.uint8]:
    """Return integers from 0 to top as bytes, or raise.

    >>> as_codes([1, 15], 15, "code").dtype
    dtype('uint8')
    """
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        if array.size:
            raise TypeError(f"{what}s must be integers, not {array.dtype}")
        array = array.astype(np.uint8)
    if array.size and not (int(array.min()) >= 0 and int(array.max()) <= top):
        bad = array[(array < 0) | (array > top)].flat[0]
        raise FormatError(f"{what} {bad} is outside 0 to {top}; the data are damaged or of another format")
    return array.astype(np.uint8, copy=False)


def as_bytes(data: Any, name: str) -> NDArray[np.uint8]:
    """Return bytes, or an array of uint8, as a flat array of uint8 without copying, or raise.

    >>> as_bytes(b"ab", "bfloat8_b").tolist()
    [97, 98]
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return np.frombuffer(data, dtype=np.uint8)
    array = np.asarray(data)
    if array.dtype != np.uint8:
        raise TypeError(f"{name}: unpack needs bytes or a uint8 array, not {array.dtype}")
    return array.reshape(-1)
