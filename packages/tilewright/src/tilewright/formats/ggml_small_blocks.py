# SPDX-License-Identifier: Apache-2.0
"""ggml types with one scale per short run of codes: Q4_0 to Q8_0, IQ4, TQ, MXFP4 and NVFP4, taken apart.

The nibbles of a run lie in its bytes with the first half of the elements in the low ones and the second in the high
ones. (Other files of MXFP4 let neighbours share a byte.)
"""

from __future__ import annotations

import numpy as np

from .encodings import E2M1, SmallFloat
from .ggml_groups import BlockGroups, Records, group_codes, read_halves, split_bytes, split_fields

# The levels of IQ4: its codes are indices into these.
_IQ4_LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
# Twice the numbers of E2M1, so that they are whole; ggml has no negative zero here.
_DOUBLED_E2M1 = (2 * E2M1.decode(np.arange(16, dtype=np.uint8))).astype(np.int8)
_UNSIGNED_E4M3 = SmallFloat(4, 3).decode(np.arange(128, dtype=np.uint8)).astype(np.float32)
_ZERO_SCALE = 0x7F  # NaN elsewhere
_POWERS_OF_3 = 3 ** np.arange(5, dtype=np.uint8)[:, None]


def unpack_q4_0(records: Records) -> BlockGroups:
    """Return the groups of Q4_0: a scale, 16 bytes of nibbles that count from -8.

    >>> unpack_q4_0(np.array([[0, 0x3C, *[0x19] * 16]], np.uint8)).values()[0, [0, 16]].tolist()
    [1.0, -7.0]
    """
    codes = split_fields(records[:, 2:], 4).view(np.int8) - 8
    return BlockGroups(group_codes(codes, 32), read_halves(records, 0), None)


def unpack_q4_1(records: Records) -> BlockGroups:
    """Return the groups of Q4_1: a scale, an offset, 16 bytes of nibbles.

    >>> unpack_q4_1(np.array([[0, 0x3C, 0, 0x40, *[0x19] * 16]], np.uint8)).values()[0, [0, 16]].tolist()
    [11.0, 3.0]
    """
    both = read_halves(records, 0, 2)
    return BlockGroups(group_codes(split_fields(records[:, 4:], 4), 32), both[:, :1], both[:, 1:])


def unpack_q5_0(records: Records) -> BlockGroups:
    """Return the groups of Q5_0: a scale, 32 fifth bits, 16 bytes of nibbles; codes count from -16.

    >>> unpack_q5_0(np.array([[0, 0x3C, 1, 0, 0, 0, *[0x19] * 16]], np.uint8)).values()[0, [0, 1]].tolist()
    [9.0, -7.0]
    """
    return BlockGroups(group_codes(_five_bits(records, 2).view(np.int8) - 16, 32), read_halves(records, 0), None)


def unpack_q5_1(records: Records) -> BlockGroups:
    """Return the groups of Q5_1: a scale, an offset, 32 fifth bits, 16 bytes of nibbles.

    >>> unpack_q5_1(np.array([[0, 0x3C, 0, 0, 1, 0, 0, 0, *[0x19] * 16]], np.uint8)).values()[0, [0, 1]].tolist()
    [25.0, 9.0]
    """
    both = read_halves(records, 0, 2)
    return BlockGroups(group_codes(_five_bits(records, 4), 32), both[:, :1], both[:, 1:])


def _five_bits(records: Records, start: int) -> Records:
    high = split_bytes(records[:, start : start + 4], 1)
    result: Records = split_fields(records[:, start + 4 :], 4).reshape(high.shape) | high << np.uint8(4)
    return result


def unpack_q8_0(records: Records) -> BlockGroups:
    """Return the groups of Q8_0: a scale, 32 signed bytes.

    >>> unpack_q8_0(np.array([[0, 0x3C, *[0xFF] * 32]], np.uint8)).values()[0, 0].item()
    -1.0
    """
    return BlockGroups(group_codes(records[:, 2:], 32), read_halves(records, 0), None)


def unpack_iq4_nl(records: Records) -> BlockGroups:
    """Return the groups of IQ4_NL: a scale, 16 bytes of nibbles that are indices of uneven levels.

    >>> unpack_iq4_nl(np.array([[0, 0x3C, *[0xF0] * 16]], np.uint8)).values()[0, [0, 16]].tolist()
    [-127.0, 113.0]
    """
    return BlockGroups(group_codes(_IQ4_LEVELS[split_fields(records[:, 2:], 4)], 32), read_halves(records, 0), None)


def unpack_iq4_xs(records: Records) -> BlockGroups:
    """Return the groups of IQ4_XS: a scale, scales of six bits that count from -32, 8 times 16 bytes as in IQ4_NL.

    >>> unpack_iq4_xs(np.array([[0, 0x3C, 0, 0, *[0] * 132]], np.uint8)).values()[0, 0].item()
    4064.0
    """
    scales = split_bytes(records[:, 4:8], 4) | split_bytes(records[:, 2:4], 2) << 4
    codes = _IQ4_LEVELS[split_fields(records[:, 8:].reshape(-1, 8, 16), 4)]
    return BlockGroups(group_codes(codes, 32), read_halves(records, 0) * (scales.view(np.int8) - 32), None)


def unpack_tq1_0(records: Records) -> BlockGroups:
    """Return the groups of TQ1_0: 52 bytes of up to five digits of base 3, each one less, and a scale.

    A byte is a fraction of 256: the first digit is what its triple carries over, the next that of the rest, tripled.

    >>> unpack_tq1_0(np.array([[*[255] * 52, 0, 0x3C]], np.uint8)).values()[0, 0].item()
    1.0
    """
    count = len(records)
    pieces = []
    for start, stop, digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        rest = records[:, None, start:stop] * _POWERS_OF_3[:digits]  # modulo 256
        pieces.append(((rest.astype(np.uint16) * 3) >> 8).reshape(count, digits * (stop - start)))
    codes = np.concatenate(pieces, axis=1).astype(np.int8) - 1
    return BlockGroups(group_codes(codes, 256), read_halves(records, 52), None)


def unpack_tq2_0(records: Records) -> BlockGroups:
    """Return the groups of TQ2_0: 64 bytes of two-bit codes that count from -1, and a scale.

    >>> unpack_tq2_0(np.array([[*[2] * 64, 0, 0x3C]], np.uint8)).values()[0, [0, 32]].tolist()
    [1.0, -1.0]
    """
    codes = split_fields(records[:, :64].reshape(-1, 2, 32), 2).view(np.int8) - 1
    return BlockGroups(group_codes(codes, 256), read_halves(records, 64), None)


def unpack_mxfp4(records: Records) -> BlockGroups:
    """Return the groups of MXFP4: an exponent, 16 bytes of nibbles in E2M1.

    >>> unpack_mxfp4(np.array([[127, *[0x17] * 16]], np.uint8)).values()[0, [0, 16]].tolist()
    [6.0, 0.5]
    """
    scales = np.ldexp(np.float32(1), records[:, :1].astype(np.int32) - 128)  # of doubled codes; 255 is not NaN here
    return BlockGroups(group_codes(_DOUBLED_E2M1[split_fields(records[:, 1:], 4)], 32), scales, None)


def unpack_nvfp4(records: Records) -> BlockGroups:
    """Return the groups of NVFP4: 4 scales in E4M3 without sign, 4 times 8 bytes of nibbles in E2M1.

    >>> unpack_nvfp4(np.array([[0x38, 0, 0, 0, *[0x17] * 32]], np.uint8)).values()[0, [0, 8, 16]].tolist()
    [6.0, 0.5, 0.0]
    """
    stored = records[:, :4]
    scales = np.where(stored == _ZERO_SCALE, np.float32(0), _UNSIGNED_E4M3[stored & 0x7F] / 2)
    codes = _DOUBLED_E2M1[split_fields(records[:, 4:].reshape(-1, 4, 8), 4)]
    return BlockGroups(group_codes(codes, 16), scales, None)
