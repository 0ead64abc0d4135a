# SPDX-License-Identifier: Apache-2.0
"""What the engine must compute, written for clarity: index arithmetic, tables of values, Python integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.formats import BLOCK_FORMATS
from tilewright.formats.scalars import pack_codes, unpack_codes

from .abi import BLOCKS, SCALARS, SCALED


def offsets(modes, which, start):
    """Return the byte offset of every element of a nest, in the order of the nest."""
    total = np.array([start], np.int64)
    for mode in modes:
        total = (total[:, None] + np.arange(mode[0], dtype=np.int64) * mode[which]).reshape(-1)
    return total


def gather(memory, places, size):
    """Return the elements of ``size`` bytes at the places, as rows of bytes."""
    return memory[places[:, None] + np.arange(size)]


def scatter(memory, places, rows):
    """Write rows of bytes at the places."""
    memory[places[:, None] + np.arange(rows.shape[1])] = rows


def _nearest_code(values, code_values):
    """Return for each value the code whose value is nearest, ties to the even code; codes ascend from zero."""
    right = np.clip(np.searchsorted(code_values, values), 1, len(code_values) - 1)
    left = right - 1
    up, down = code_values[right] - values, values - code_values[left]
    return np.where((up < down) | ((up == down) & (right % 2 == 0)), right, left)


def _to_float8(x, dtype, nan):
    """Return the codes of float32 values in a saturating 8-bit float."""
    positive = np.arange(128, dtype=np.uint8).view(dtype).astype(np.float64)
    finite = positive[np.isfinite(positive)]
    magnitude = np.minimum(np.abs(np.where(np.isnan(x), 0, x)).astype(np.float64), finite[-1])
    code = _nearest_code(magnitude, finite)
    if dtype == ml_dtypes.float8_e4m3fn:  # no subnormals are made
        code = np.where(magnitude < 2.0**-6, 0, code)
    return np.where(np.isnan(x), nan, code | np.signbit(x) * 128).astype(np.uint8)


def _to_bfloat16(x):
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16).view(ml_dtypes.bfloat16)


def convert(rows, src_type, dst_type):
    """Return the converted elements; both sides are rows of bytes."""
    source, target = SCALARS[src_type], SCALARS[dst_type]
    if src_type == dst_type:
        return rows
    x = np.ascontiguousarray(rows).view(source).reshape(-1)
    if source == np.bool_:
        x = np.ascontiguousarray(rows).reshape(-1) != 0
    is_float = source.kind not in "iub"
    if source == ml_dtypes.bfloat16 and target == np.float32:  # zero bits are appended, whatever the value
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.uint8).reshape(len(rows), 4)
    with np.errstate(all="ignore"):
        if target == np.bool_:
            y = x.astype(np.float64) != 0 if is_float else x != 0
        elif target.kind in "iu" and is_float:
            y = np.array([_truncate(v, np.iinfo(target)) for v in x.astype(np.float64)], target)
        elif target.kind in "iu":
            y = x.astype(target)
        elif target.itemsize == 1:
            nan = 0x7F if target == ml_dtypes.float8_e4m3fn else 0x7E
            y = _to_float8(x.astype(np.float32), target, nan)
        elif target == ml_dtypes.bfloat16:
            y = _to_bfloat16(x.astype(np.float32))
        elif target == np.float16:
            y = x.astype(np.float32).astype(target)
        else:
            y = (x.astype(np.float64) if is_float else x).astype(target)
    if target.kind == "f" and target.itemsize > 1 and target != ml_dtypes.bfloat16:
        y[np.isnan(y)] = np.array(np.nan, target)  # one NaN for all: quiet, without a sign
    return y.view(np.uint8).reshape(len(rows), target.itemsize)


def _truncate(value, info):
    low, high = int(info.min), int(info.max)
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def pack(values, kind):
    """Return (codes, scales) of rows of float32 values: codes as rows of bytes."""
    if kind in SCALED:
        element = BLOCK_FORMATS[SCALED[kind]]
        scales, codes = element.encode(np.asarray(values, np.float32).reshape(-1, element.block))
        return pack_codes(codes, element.bits), scales
    bits, exponent = BLOCKS[kind]
    m = bits - 1
    codes, scales = [], []
    for row in np.asarray(values, np.float32).view(np.uint32).tolist():
        parts = [(u >> 31, u >> 23 & 0xFF, u & 0x7FFFFF) for u in row]
        alive = [e != 0 for _, e, _ in parts]
        if exponent == "a":
            parts = [
                (s, 31, 0x7FFFFF) if e - 112 > 31 else (s, 0, 0) if e - 112 < 0 else (s, e - 112, f)
                for s, e, f in parts
            ]
        shared = max(e for _, e, _ in parts)
        block = 0
        for i, ((s, e, f), is_alive) in enumerate(zip(parts, alive, strict=True)):
            mantissa = (1 << 23 | f) >> (shared - e) if is_alive else 0
            q, r, half = mantissa >> (24 - m), mantissa % (1 << (24 - m)), 1 << (23 - m)
            if r > half or (r == half and q % 2 == 1):
                q += 1
            q = min(q, (1 << m) - 1)
            block |= (q | s << m if q else 0) << (i * bits)
        codes.append(list(block.to_bytes(2 * bits, "little")))
        scales.append(shared)
    return np.array(codes, np.uint8).reshape(-1, 2 * bits), np.array(scales, np.uint8)


def unpack(codes, scales, kind):
    """Return rows of float32 values."""
    if kind in SCALED:
        element = BLOCK_FORMATS[SCALED[kind]]
        return element.decode(scales, unpack_codes(codes, element.bits))
    bits, exponent = BLOCKS[kind]
    m = bits - 1
    bias = 112 if exponent == "a" else 0
    rows = []
    for row, shared in zip(codes.tolist(), scales.tolist(), strict=True):
        block = int.from_bytes(bytes(row), "little")
        values = []
        for i in range(16):
            code = block >> (i * bits) & ((1 << bits) - 1)
            s, q = code >> m, code & ((1 << m) - 1)
            k = m - q.bit_length()
            if q == 0:
                values.append(s << 31)
            elif k > shared:
                values.append(0)
            else:
                fraction = ((q << k) - (1 << (m - 1))) << (24 - m)
                values.append((s << 31 | (shared - k + bias) << 23 | fraction) & 0xFFFFFFFF)
        rows.append(values)
    return np.array(rows, np.uint32).reshape(-1, 16).view(np.float32)
