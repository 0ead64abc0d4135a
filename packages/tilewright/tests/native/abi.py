# SPDX-License-Identifier: Apache-2.0
"""The C ABI of the copy engine as seen from ctypes: only what the tests need.

Set ``TILEWRIGHT_TEST_LIBRARY`` to the path of a library to test that one (a sanitizer build, a portable build).
"""

from __future__ import annotations

import ctypes
import os

import ml_dtypes
import numpy as np

from tilewright.copying import native
from tilewright.formats import BLOCK_FORMATS

MAX_RANK = 24
MAX_BLOCK = 32
COPY, FILL, PACK, UNPACK = range(4)

# In the order of the TW_ enumeration.
SCALARS = [
    np.dtype(t)
    for t in (
        np.float64,
        np.float32,
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
        np.bool_,
    )
]
F32 = 1
BLOCKS = {100: (8, "b"), 101: (4, "b"), 102: (2, "b"), 103: (8, "a"), 104: (4, "a"), 105: (2, "a")}
SCALED = {
    106: "mxfp8_e4m3",
    107: "mxfp8_e5m2",
    108: "mxfp6_e2m3",
    109: "mxfp6_e3m2",
    110: "mxfp4",
    111: "mxint8",
    112: "nvfp4",
}

_Modes = ctypes.c_int64 * MAX_RANK


def geometry(kind):
    """Return (lanes, bits) of a block type."""
    if kind in BLOCKS:
        return 16, BLOCKS[kind][0]
    element = BLOCK_FORMATS[SCALED[kind]]
    return element.block, element.bits


class NativeNest(ctypes.Structure):
    """tw_nest."""

    _fields_ = [
        ("op", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("src_type", ctypes.c_int32),
        ("dst_type", ctypes.c_int32),
        ("extent", _Modes),
        ("src_stride", _Modes),
        ("dst_stride", _Modes),
        ("aux_stride", _Modes),
        ("src_offset", ctypes.c_int64),
        ("dst_offset", ctypes.c_int64),
        ("aux_offset", ctypes.c_int64),
        ("element_offset", ctypes.c_int64 * MAX_BLOCK),
        ("element_mask", ctypes.c_uint32),
        ("block", ctypes.c_int32),
        ("fill", ctypes.c_uint8 * 16),
        ("table_count", ctypes.c_int64),
        ("src_table", ctypes.c_void_p),
        ("dst_table", ctypes.c_void_p),
        ("aux_table", ctypes.c_void_p),
    ]


def nest(op, modes, src_type=0, dst_type=0, offsets=(0, 0, 0), lanes=(), mask=0, fill=b"", tables=None):
    """Return a loop nest. ``modes`` are (extent, source stride, target stride[, aux stride])."""
    p = NativeNest(op=op, rank=len(modes), src_type=src_type, dst_type=dst_type)
    for i, (extent, src, dst, *aux) in enumerate(modes):
        p.extent[i], p.src_stride[i], p.dst_stride[i], p.aux_stride[i] = extent, src, dst, *aux, *([0] * (1 - len(aux)))
    p.src_offset, p.dst_offset, p.aux_offset = offsets
    for i, offset in enumerate(lanes):
        p.element_offset[i] = offset
    p.element_mask, p.block = mask, len(lanes)
    for i, byte in enumerate(fill):
        p.fill[i] = byte
    if tables is not None:
        p.kept = tables  # the arrays must outlive the call
        p.table_count = len(tables[0])
        p.src_table, p.dst_table = tables[0].ctypes.data, tables[1].ctypes.data
        p.aux_table = tables[2].ctypes.data if len(tables) > 2 else None
    return p


def memory(size, past=0, fill=0):
    """Return bytes of which the first is ``past`` bytes past a cache line."""
    whole = np.full(size + 128, fill, np.uint8)
    start = (past - whole.ctypes.data) % 64
    return whole[start : start + size]


def library():
    """Return the library under test, or None."""
    path = os.environ.get("TILEWRIGHT_TEST_LIBRARY")
    handle = ctypes.CDLL(path) if path else native._load()[0]
    if handle is not None:
        handle.tw_run.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32]
        handle.tw_run.restype = ctypes.c_int32
        handle.tw_cpu_features.argtypes = []
        handle.tw_cpu_features.restype = ctypes.c_char_p
    return handle


LIBRARY = library()


def run(nests, src, dst, threads=1):
    """Run the nests on the memory of two arrays and return the status."""
    array = (NativeNest * len(nests))(*nests)
    return LIBRARY.tw_run(ctypes.byref(array), len(nests), src.ctypes.data, dst.ctypes.data, threads)
