# SPDX-License-Identifier: Apache-2.0
"""`CodeTable`: what the codes of a quantised tensor stand for; and the scales that they are multiplied by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .casts import Singles
from .encodings import E2M1, E2M3, Codes, unpack_codes

_FLOAT8 = {
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
ElementName: TypeAlias = Literal[
    "e2m1", "e2m3", "float8_e4m3", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int", "offset_int"
]
E8M0_NAN = 255


@dataclass(frozen=True, slots=True)
class CodeTable:
    """The numbers that codes of `bits` bits stand for, by the name of their `element`.

    "int" is two's complement; "offset_int" counts from the lowest number, -2^(bits-1).

    >>> CodeTable("e2m1", 4).numbers()[:8].tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """

    element: ElementName
    bits: int

    def numbers(self) -> Singles:
        """Return the number of every code, as float32.

        >>> CodeTable("offset_int", 2).numbers().tolist()
        [-2.0, -1.0, 0.0, 1.0]
        """
        return _numbers(self)

    @property
    def step(self) -> int:
        """Return the number of codes after which a code starts a byte again.

        >>> CodeTable("e2m1", 4).step, CodeTable("e2m3", 6).step, CodeTable("int", 8).step
        (2, 4, 1)
        """
        return 8 // int(np.gcd(8, self.bits))

    def decode(self, packed: Codes) -> Singles:
        """Return the numbers of rows of packed codes, the first in the lowest bits of the first byte.

        >>> CodeTable("e2m1", 4).decode(np.array([[0x21, 0xF7]], np.uint8)).tolist()
        [[0.5, 1.0, 6.0, -6.0]]
        """
        rows = packed.reshape(-1, packed.shape[-1])
        result: Singles = self.numbers()[unpack_codes(rows, self.bits)]
        return result.reshape(*packed.shape[:-1], result.shape[-1])


@lru_cache(maxsize=64)
def _numbers(table: CodeTable) -> Singles:
    codes = np.arange(1 << table.bits, dtype=np.uint8 if table.bits == 8 else np.int64)
    if table.element == "offset_int":
        result = codes.astype(np.float32) - np.float32(1 << (table.bits - 1))
    elif table.element == "int":
        half = 1 << (table.bits - 1)
        result = ((codes.astype(np.int64) ^ half) - half).astype(np.float32)
    elif table.element in _FLOAT8:
        result = codes.view(_FLOAT8[table.element]).astype(np.float32)
    else:
        encoding = E2M1 if table.element == "e2m1" else E2M3
        if table.bits != encoding.bits:
            raise FormatError(f"{table.element} has codes of {encoding.bits} bits, got {table.bits}")
        result = encoding.decode(codes.astype(np.uint8)).astype(np.float32)
    result.flags.writeable = False
    return result


def decode_e8m0(scales: NDArray[np.uint8]) -> Singles:
    """Return the powers of two 2^(byte - 127) of scale bytes; 255 is NaN.

    >>> decode_e8m0(np.array([127, 126, 255], np.uint8)).tolist()
    [1.0, 0.5, nan]
    """
    powers = np.ldexp(np.float32(1), np.minimum(scales, E8M0_NAN - 1).astype(np.int32) - 127)
    return np.where(scales == E8M0_NAN, np.float32(np.nan), powers)
