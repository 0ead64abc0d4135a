# SPDX-License-Identifier: Apache-2.0
"""`decode_codes`: float32 values of quantised codes by the native library."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import native_library
from .host_memory import aligned_empty

# the TW_CODE_ numbers of native/tilewright.h
CODE_NUMBERS = {
    name: number
    for number, name in enumerate(
        (
            "e2m1",
            "float8_e4m3",
            "float8_e5m2",
            "int8",
            "Q4_0",
            "Q4_1",
            "Q8_0",
            "Q4_K",
            "Q5_K",
            "Q6_K",
            "MXFP4",
        )
    )
}


class NativeCoding(ctypes.Structure):
    """The struct `tw_coding` of native/tilewright.h."""

    _fields_ = (
        ("element", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        *[
            (name, ctypes.c_int64)
            for name in ("row_bytes", "scale_row", "group_rows", "group_columns", "first_row", "first_column")
        ],
    )


def can_decode(code: str) -> bool:
    """Return whether the native library knows codes by this name.

    >>> can_decode("IQ1_S")
    False
    """
    return code in CODE_NUMBERS and native_library.is_available()


def decode_codes(
    code: str,
    codes: NDArray[np.uint8],
    columns: int,
    scales: NDArray[np.float32] | None = None,
    group: tuple[int, int] = (1, 1),
    first: tuple[int, int] = (0, 0),
) -> NDArray[np.float32]:
    """Return the values [rows, columns] of rows of codes, in groups of (rows, columns) that share a scale.

    `code` is one that `can_decode` accepts. `codes` are bytes [rows, bytes]. `scales` are a grid for the groups; the
    first code is at `first` of its group. Block types hold their own scales.

    >>> codes = np.array([[1, 255], [2, 3]], np.uint8)
    >>> if can_decode("int8"):
    ...     values = decode_codes("int8", codes, 2, np.array([[0.5], [2]], np.float32), (1, 2)).tolist()
    >>> values if can_decode("int8") else [[0.5, -0.5], [4.0, 6.0]]
    [[0.5, -0.5], [4.0, 6.0]]
    """
    library: Any = native_library.load_library()
    packed = np.ascontiguousarray(codes)
    grid = np.ones((1, 1), np.float32) if scales is None else np.ascontiguousarray(scales, np.float32)
    out: NDArray[np.float32] = aligned_empty(len(packed) * columns, np.float32).reshape(len(packed), columns)
    number, bits = CODE_NUMBERS[code], 4 if code == "e2m1" else 8
    coding = NativeCoding(number, bits, packed.strides[0] if packed.ndim else 0, grid.shape[1], *group, *first)
    address = ctypes.addressof(coding)
    status = library.tw_decode(address, packed.ctypes.data, grid.ctypes.data, len(packed), columns, out.ctypes.data)
    assert status == 0, (code, codes.shape, columns)
    return out
