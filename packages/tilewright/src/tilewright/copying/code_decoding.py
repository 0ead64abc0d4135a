# SPDX-License-Identifier: Apache-2.0
"""`decode_codes`, `recode_codes`: float32 values or bfloat8_b tiles of quantised codes by the native library."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
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


TILE_BYTES = 64 + 32 * 32
"""The bytes of a bfloat8_b tile: its exponents and its codes."""


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
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return the values [rows, columns] of rows of codes, in groups of (rows, columns) that share a scale.

    `code` is one that `can_decode` accepts. `codes` are bytes [rows, bytes]. `scales` are a grid for the groups; the
    first code is at `first` of its group. Block types hold their own scales. `out` is a contiguous array for
    the values; without it, one is allocated.

    >>> codes = np.array([[1, 255], [2, 3]], np.uint8)
    >>> if can_decode("int8"):
    ...     values = decode_codes("int8", codes, 2, np.array([[0.5], [2]], np.float32), (1, 2)).tolist()
    >>> values if can_decode("int8") else [[0.5, -0.5], [4.0, 6.0]]
    [[0.5, -0.5], [4.0, 6.0]]
    """
    shape = (len(codes), columns)
    values: NDArray[np.float32] = aligned_empty(shape, np.float32) if out is None else out
    if values.dtype != np.float32 or values.shape != shape or not values.flags.c_contiguous:
        raise FormatError(
            f"expected out to be contiguous float32 of shape {shape}, got {values.dtype} of {values.shape}"
        )
    _run("tw_decode", code, codes, columns, scales, group, first, values.ctypes.data)
    return values


def recode_codes(
    code: str,
    codes: NDArray[np.uint8],
    columns: int,
    scales: NDArray[np.float32] | None = None,
    group: tuple[int, int] = (1, 1),
    first: tuple[int, int] = (0, 0),
    out: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Return the bfloat8_b tiles of rows of codes, bit for bit those of the values that `decode_codes` returns.

    The parameters are those of `decode_codes`; rows and columns are whole tiles of 32 x 32, and blocks. `out` are the
    bytes to write, 1088 for each tile; without it, they are allocated. No float32 go to memory, which is several
    times as fast as decoding and packing (on AVX-512 with VBMI: float8_e4m3, e2m1, Q8_0, Q4_K).

    >>> codes = np.full((32, 32), 3, np.uint8)
    >>> tile = recode_codes("int8", codes, 32, np.ones((1, 1), np.float32), (32, 32)) if can_decode("int8") else None
    >>> [128, 96] if tile is None else [int(tile[0]), int(tile[64])]  # 2^(128 - 127) x 96 / 64 is 3
    [128, 96]
    """
    rows = len(codes)
    if rows % 32 or columns % 32:
        raise FormatError(
            f"expected rows and columns that are whole tiles of 32 x 32, got {rows} x {columns}; pad the codes"
        )
    size = rows // 32 * (columns // 32) * TILE_BYTES
    tiles: NDArray[np.uint8] = aligned_empty(size, np.uint8) if out is None else out
    if tiles.dtype != np.uint8 or tiles.size != size or not tiles.flags.c_contiguous:
        raise FormatError(f"expected out to be {size} contiguous bytes, got {tiles.dtype} of shape {tiles.shape}")
    _run("tw_recode", code, codes, columns, scales, group, first, tiles.ctypes.data)
    return tiles


def _run(
    function: str,
    code: str,
    codes: NDArray[np.uint8],
    columns: int,
    scales: NDArray[np.float32] | None,
    group: tuple[int, int],
    first: tuple[int, int],
    out: int,
) -> None:
    """Call a function of the library that makes something of codes, at the address `out`."""
    library: Any = native_library.load_library()
    packed = np.ascontiguousarray(codes)
    grid = np.ones((1, 1), np.float32) if scales is None else np.ascontiguousarray(scales, np.float32)
    number, bits = CODE_NUMBERS[code], 4 if code == "e2m1" else 8
    coding = NativeCoding(number, bits, packed.strides[0] if packed.ndim else 0, grid.shape[1], *group, *first)
    run = getattr(library, function)
    status = run(ctypes.addressof(coding), packed.ctypes.data, grid.ctypes.data, len(packed), columns, out)
    assert status == 0, (code, codes.shape, columns)
