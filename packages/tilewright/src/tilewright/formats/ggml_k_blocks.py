# SPDX-License-Identifier: Apache-2.0
"""The K types of ggml, Q2_K to Q6_K, taken apart: 256 elements with a scale, whose groups have small scales of it."""

from __future__ import annotations

import numpy as np

from .ggml_groups import BlockGroups, Records, Singles, group_codes, read_halves, split_fields


def unpack_q2_k(records: Records) -> BlockGroups:
    """Return the groups of Q2_K: 16 bytes of scale and offset, 64 bytes of two-bit codes, their two scales.

    >>> unpack_q2_k(np.array([[*[0x12] * 16, *[3] * 64, 0, 0x3C, 0, 0x3C]], np.uint8)).values()[0, [0, 32]].tolist()
    [5.0, -1.0]
    """
    small, both = records[:, :16], read_halves(records, 80, 2)
    codes = split_fields(records[:, 16:80].reshape(-1, 2, 32), 2)
    return BlockGroups(group_codes(codes, 16), both[:, :1] * (small & 15), -(both[:, 1:] * (small >> 4)))


def unpack_q3_k(records: Records) -> BlockGroups:
    """Return the groups of Q3_K: 256 third bits, 64 bytes of two-bit codes, 12 bytes of scales, the scale of those.

    Codes count from -4, and scales from -32.

    >>> unpack_q3_k(np.array([[*[0] * 32, *[3] * 64, *[0] * 12, 0, 0x3C]], np.uint8)).values()[0, [0, 32]].tolist()
    [32.0, 128.0]
    """
    count = len(records)
    high = split_fields(records[:, :32], 1).reshape(count, 256)
    low = split_fields(records[:, 32:96].reshape(-1, 2, 32), 2).reshape(count, 256)
    scales = split_fields(records[:, 96:104], 4).reshape(count, 16)
    scales |= split_fields(records[:, 104:108], 2).reshape(count, 16) << 4
    codes = (low | high << 2).view(np.int8) - 4
    return BlockGroups(group_codes(codes, 16), read_halves(records, 108) * (scales.view(np.int8) - 32), None)


def unpack_q4_k(records: Records) -> BlockGroups:
    """Return the groups of Q4_K: two scales, 12 bytes of scales and offsets, 128 bytes of nibbles.

    >>> unpack_q4_k(np.array([[0, 0x3C, 0, 0x3C, *[1] * 12, *[0x25] * 128]], np.uint8)).values()[0, [0, 32]].tolist()
    [4.0, 1.0]
    """
    codes = split_fields(records[:, 16:].reshape(-1, 4, 32), 4)
    return BlockGroups(group_codes(codes, 32), *_scales_and_offsets(records))


def unpack_q5_k(records: Records) -> BlockGroups:
    """Return the groups of Q5_K: as Q4_K, with 256 fifth bits before the nibbles.

    >>> unpack_q5_k(np.array([[0, 0x3C, 0, 0x3C, *[1] * 44, *[0x25] * 128]], np.uint8)).values()[0, [0, 32]].tolist()
    [20.0, 1.0]
    """
    count = len(records)
    high = split_fields(records[:, 16:48], 1).reshape(count, 256)
    low = split_fields(records[:, 48:].reshape(-1, 4, 32), 4).reshape(count, 256)
    return BlockGroups(group_codes(low | high << 4, 32), *_scales_and_offsets(records))


def _scales_and_offsets(records: Records) -> tuple[Singles, Singles]:
    """Return the scales and offsets of the eight groups of Q4_K and Q5_K.

    Their six-bit factors are packed into 12 bytes: four of either kind, with the upper bits of the other four on top,
    whose lower ones follow as nibbles.
    """
    both = read_halves(records, 0, 2)
    scales, offsets, rest = records[:, 4:8], records[:, 8:12], records[:, 12:16]
    small = np.concatenate([scales & 63, rest & 15 | scales >> 6 << 4], axis=1)
    lower = np.concatenate([offsets & 63, rest >> 4 | offsets >> 6 << 4], axis=1)
    return both[:, :1] * small, -(both[:, 1:] * lower)


def unpack_q6_k(records: Records) -> BlockGroups:
    """Return the groups of Q6_K: 128 bytes of lower nibbles, 64 of upper bits, 16 signed scales, the scale of those.

    >>> unpack_q6_k(np.array([[*[1] * 128, *[0] * 64, *[1] * 16, 0, 0x3C]], np.uint8)).values()[0, [0, 64]].tolist()
    [-31.0, -32.0]
    """
    count = len(records)
    low = split_fields(records[:, :128].reshape(-1, 2, 64), 4).reshape(count, 256)
    high = split_fields(records[:, 128:192].reshape(-1, 2, 32), 2).reshape(count, 256)
    scales = read_halves(records, 208) * records[:, 192:208].view(np.int8)
    return BlockGroups(group_codes((low | high << 4).view(np.int8) - 32, 16), scales, None)
