# SPDX-License-Identifier: Apache-2.0
"""`GgmlType`: the block types of ggml, which GGUF files hold, and their values as float32."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .scalars import E2M1, SmallFloat

# `BlockGroups`: ggml blocks taken apart into codes, scales and offsets, and the ways in which ggml packs small
# fields.

Records: TypeAlias = NDArray[np.uint8]
Singles: TypeAlias = NDArray[np.float32]


class BlockGroups(NamedTuple):
    """Codes [blocks, groups, elements], scales [blocks, groups], and offsets [blocks, groups] if the type has any.

    >>> groups = BlockGroups(np.array([[[3, -1]]], np.int8), np.array([[0.5]], np.float32), None)
    >>> groups.values().tolist()
    [[1.5, -0.5]]
    """

    codes: NDArray[np.int8]
    scales: Singles
    offsets: Singles | None

    def values(self, out: Singles | None = None) -> Singles:
        """Return the values [blocks, elements], written to `out` if it is given.

        Each is rounded once after the product and once after the sum, as ggml does.

        >>> BlockGroups(np.ones((1, 2, 2), np.int8), np.ones((1, 2), np.float32), np.ones((1, 2), np.float32)).values()
        array([[2., 2., 2., 2.]], dtype=float32)
        """
        blocks, groups, elements = self.codes.shape
        result = np.empty((blocks, groups * elements), np.float32) if out is None else out
        grouped = result.reshape(self.codes.shape)
        np.multiply(self.codes, self.scales[..., None], out=grouped)
        if self.offsets is not None:
            grouped += self.offsets[..., None]
        return result


def read_halves(records: Records, start: int, count: int = 1) -> Singles:
    """Return `count` half floats of each record as float32, from byte `start` on.

    >>> read_halves(np.array([[0, 0x3C, 0, 0xC0]], np.uint8), 0, 2).tolist()
    [[1.0, -2.0]]
    """
    return _view_words(records, start, count, "<f2").astype(np.float32)


def read_words(records: Records, start: int, count: int, size: int) -> NDArray[np.uint32]:
    """Return `count` unsigned integers of `size` bytes of each record, from byte `start` on.

    >>> read_words(np.array([[9, 1, 2, 3, 4]], np.uint8), 1, 2, 2).tolist()
    [[513, 1027]]
    """
    return _view_words(records, start, count, f"<u{size}").astype(np.uint32)


def _view_words(records: Records, start: int, count: int, dtype: str) -> NDArray[np.generic]:
    size = np.dtype(dtype).itemsize
    return np.ascontiguousarray(records[:, start : start + count * size]).view(dtype)


def split_fields(data: Records, bits: int) -> Records:
    """Return the fields of `bits` bits of bytes [..., n] as [..., 8 / bits, n]: the lowest fields of all bytes first.

    >>> split_fields(np.array([[0x21, 0x43]], np.uint8), 4).tolist()
    [[[1, 3], [2, 4]]]
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    return (data[..., None, :] >> shifts) & np.uint8((1 << bits) - 1)


def split_bytes(data: Records, bits: int) -> Records:
    """Return the fields of `bits` bits of bytes [blocks, n] as [blocks, n x 8 / bits], byte by byte, the lowest first.

    >>> split_bytes(np.array([[0x21, 0x43]], np.uint8), 4).tolist()
    [[1, 2, 3, 4]]
    """
    return split_fields(data[..., None], bits).reshape(len(data), -1)


def group_codes(codes: NDArray[np.integer], elements: int) -> NDArray[np.int8]:
    """Return codes of blocks, of any shape, as int8 in groups of some elements.

    >>> group_codes(np.arange(4, dtype=np.uint8).reshape(1, 4), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    size = codes.size // len(codes) if len(codes) else elements
    return codes.reshape(len(codes), size // elements, elements).astype(np.int8)


# The types of ggml with code books, IQ1, IQ2 and IQ3, taken apart: a code is an index of a row of 8 or 4 elements.

_IQ2_LEVELS = (8, 25, 43)
_LEVELS: dict[str, tuple[int, ...]] = {
    "IQ1_S": (-1, 0, 1),
    "IQ2_XXS": _IQ2_LEVELS,
    "IQ2_XS": _IQ2_LEVELS,
    "IQ2_S": _IQ2_LEVELS,
    "IQ3_XXS": (4, 12, 20, 28, 36, 44, 52, 62),
    "IQ3_S": (1, 3, 5, 7, 9, 11, 13, 15),
}
_TABLES = "ggml_code_books.txt"
_SEVEN_BITS = np.arange(0, 28, 7, dtype=np.uint32)
_THREE_BITS = np.arange(0, 12, 3, dtype=np.uint32)


@cache
def load_code_book(name: str) -> NDArray[np.int8]:
    """Return the rows of a code book, [rows, elements].

    >>> load_code_book("IQ3_S").shape, load_code_book("IQ1_S")[1].tolist()
    ((512, 4), [1, -1, -1, -1, -1, -1, -1, -1])
    """
    text = Path(__file__).with_name(_TABLES).read_text(encoding="ascii")
    packed = np.frombuffer(b64decode(text.split(f"[{name}]\n")[1].split("[")[0]), np.uint8)
    levels = np.array(_LEVELS[name], np.int8)
    bits, row = (2, 8) if len(levels) <= 4 else (4, 4)
    table = levels[split_bytes(packed[None], bits)].reshape(-1, row)
    table.flags.writeable = False
    return table


@cache
def _sign_rows() -> NDArray[np.int8]:
    """Return the eight signs, 1 or -1, of every byte of sign bits."""
    return 1 - 2 * split_bytes(np.arange(256, dtype=np.uint8)[:, None], 1).view(np.int8)


@cache
def _even_signs() -> Records:
    """Return the sign bits of a code of seven: the eighth bit makes the number of minus signs even."""
    seven = np.arange(128, dtype=np.uint8)
    result: Records = seven | (split_bytes(seven[:, None], 1).sum(axis=1) % 2 << 7).astype(np.uint8)
    return result


def _signed(name: str, rows: NDArray[np.integer], signs: Records) -> NDArray[np.int8]:
    """Return rows of a code book with signs; a byte of signs is for 8 elements."""
    codes = load_code_book(name)[rows].reshape(len(rows), -1)
    result: NDArray[np.int8] = codes * _sign_rows()[signs].reshape(codes.shape)
    return result


def _half_steps(factors: Singles, small: NDArray[np.integer], step: float) -> Singles:
    """Return scales in steps that count from one half, which are exact in float32."""
    return factors * ((small.astype(np.float32) + np.float32(0.5)) * np.float32(step))


def unpack_iq2_xxs(records: Records) -> BlockGroups:
    """Return the groups of IQ2_XXS: a scale, 8 times four rows, with a word of four sign codes and a small scale.

    >>> unpack_iq2_xxs(np.array([[0, 0x3C, *[0] * 64]], np.uint8)).values()[0, 0].item()
    1.0
    """
    words = read_words(records, 2, 16, 4).reshape(-1, 8, 2)[..., 1]
    rows = records[:, 2:].reshape(-1, 8, 8)[..., :4].reshape(len(records), -1)
    return BlockGroups(
        group_codes(_signed("IQ2_XXS", rows, _signs_of_words(words)), 32),
        _half_steps(read_halves(records, 0), words >> 28, 0.25),
        None,
    )


def _signs_of_words(words: NDArray[np.uint32]) -> Records:
    """Return the four bytes of sign bits of each word."""
    result: Records = _even_signs()[(words[..., None] >> _SEVEN_BITS) & 127]
    return result


def unpack_iq2_xs(records: Records) -> BlockGroups:
    """Return the groups of IQ2_XS: a scale, 32 words of nine bits of row and seven of signs, 16 small scales.

    >>> unpack_iq2_xs(np.array([[0, 0x3C, *[0] * 72]], np.uint8)).values()[0, 0].item()
    1.0
    """
    words = read_words(records, 2, 32, 2)
    return BlockGroups(
        group_codes(_signed("IQ2_XS", words & 511, _even_signs()[words >> 9]), 16),
        _half_steps(read_halves(records, 0), split_bytes(records[:, 66:], 4), 0.25),
        None,
    )


def unpack_iq2_s(records: Records) -> BlockGroups:
    """Return the groups of IQ2_S: a scale, 32 rows, 32 bytes of signs, the upper bits of rows, 16 small scales.

    >>> unpack_iq2_s(np.array([[0, 0x3C, *[0] * 80]], np.uint8)).values()[0, 0].item()
    1.0
    """
    rows = records[:, 2:34] | split_bytes(records[:, 66:74], 2).astype(np.uint16) << 8
    return BlockGroups(
        group_codes(_signed("IQ2_S", rows, records[:, 34:66]), 16),
        _half_steps(read_halves(records, 0), split_bytes(records[:, 74:], 4), 0.25),
        None,
    )


def unpack_iq3_xxs(records: Records) -> BlockGroups:
    """Return the groups of IQ3_XXS: a scale, 64 rows of four, 8 words of four sign codes and a small scale.

    >>> unpack_iq3_xxs(np.array([[0, 0x3C, *[0] * 96]], np.uint8)).values()[0, 0].item()
    1.0
    """
    words = read_words(records, 66, 8, 4)
    return BlockGroups(
        group_codes(_signed("IQ3_XXS", records[:, 2:66], _signs_of_words(words)), 32),
        _half_steps(read_halves(records, 0), words >> 28, 0.5),
        None,
    )


def unpack_iq3_s(records: Records) -> BlockGroups:
    """Return the groups of IQ3_S: a scale, 64 rows of four, their upper bits, 32 bytes of signs, 8 odd small scales.

    >>> unpack_iq3_s(np.array([[0, 0x3C, *[0] * 108]], np.uint8)).values()[0, 0].item()
    1.0
    """
    rows = records[:, 2:66] | split_bytes(records[:, 66:74], 1).astype(np.uint16) << 8
    codes = _signed("IQ3_S", rows, records[:, 74:106])
    small = split_bytes(records[:, 106:], 4)
    return BlockGroups(group_codes(codes, 32), read_halves(records, 0) * (2 * small + 1), None)


def unpack_iq1_s(records: Records) -> BlockGroups:
    """Return the groups of IQ1_S: a scale, 32 rows, 8 words of their upper bits, a small scale, and a shift.

    The shift moves all codes of a group by an eighth, up or down.

    >>> unpack_iq1_s(np.array([[0, 0x3C, *[0] * 48]], np.uint8)).values()[0, 0].item()
    -0.875
    """
    words = read_words(records, 34, 8, 2)
    high = ((words[..., None] >> _THREE_BITS) & 7).reshape(len(records), -1)
    codes = _eighths(records[:, 2:34] | high << 8, np.repeat(words >> 15, 4, axis=1))
    return BlockGroups(group_codes(codes, 32), read_halves(records, 0) * _odd_eighths((words >> 12) & 7), None)


def unpack_iq1_m(records: Records) -> BlockGroups:
    """Return the groups of IQ1_M: 32 rows, nibbles of their upper bits and shift, 16 small scales with the scale.

    The four words of small scales have the bits of the scale in their upper nibbles.

    >>> unpack_iq1_m(np.array([[*[0] * 48, 0, 0, 0, 0, 0, 0xC0, 0, 0x30]], np.uint8)).values()[0, 0].item()
    -0.875
    """
    words = read_words(records, 48, 4, 2)
    bits = (words >> 12) << np.array([0, 4, 8, 12], np.uint32)
    scale = bits.sum(axis=1, keepdims=True).astype("<u2").view("<f2").astype(np.float32)
    small = ((words[..., None] >> _THREE_BITS) & 7).reshape(len(records), -1)
    high = split_bytes(records[:, 32:48], 4)
    codes = _eighths(records[:, :32] | (high & 7).astype(np.uint32) << 8, high >> 3)
    return BlockGroups(group_codes(codes, 16), scale * _odd_eighths(small), None)


def _eighths(rows: NDArray[np.integer], lower: NDArray[np.integer]) -> NDArray[np.int8]:
    """Return rows of IQ1 in eighths, moved by one: down where `lower` is 1."""
    shift = 1 - 2 * lower.astype(np.int8)
    result: NDArray[np.int8] = 8 * load_code_book("IQ1_S")[rows] + shift[..., None]
    return result


def _odd_eighths(small: NDArray[np.integer]) -> Singles:
    """Return the factors of small scales of IQ1, which are odd, for codes in eighths."""
    return (2 * small + 1).astype(np.float32) / np.float32(8)


# The K types of ggml, Q2_K to Q6_K, taken apart: 256 elements with a scale, whose groups have small scales of it.


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


# ggml types with one scale per short run of codes: Q4_0 to Q8_0, IQ4, TQ, MXFP4 and NVFP4, taken apart.

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
    return split_fields(records[:, start + 4 :], 4).reshape(high.shape) | high << np.uint8(4)


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

    A byte is a fraction of 256: the first digit is the carry of its triple, the next the carry of the rest, tripled.

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


_CHUNK = 1 << 16  # elements decoded at a time, which bounds the temporary arrays


@dataclass(frozen=True, slots=True)
class GgmlType:
    """A block type: its `name` and `number` in files, and the elements and bytes of a block.

    `unpack` takes blocks apart; it is None for types that ggml uses in memory only.

    >>> GGML_TYPES[12].name, GGML_TYPES[12].elements, GGML_TYPES[12].nbytes
    ('Q4_K', 256, 144)
    """

    name: str
    number: int
    elements: int
    nbytes: int
    unpack: Callable[[Records], BlockGroups] | None = field(default=None, repr=False, compare=False)

    def decode(self, records: Records) -> Singles:
        """Return the values of blocks, [blocks, elements], from their bytes, [blocks, bytes].

        >>> GGML_TYPES[8].decode(np.array([[0, 0x3C, *range(32)]], np.uint8))[0, :4].tolist()
        [0.0, 1.0, 2.0, 3.0]
        """
        if self.unpack is None:
            raise FormatError(f"{self.name} is a type of ggml for use in memory, and its values cannot be read")
        if records.ndim != 2 or records.shape[1] != self.nbytes:
            raise FormatError(
                f"expected blocks of {self.nbytes} bytes as [blocks, {self.nbytes}] for {self.name}, got shape"
                f" {list(records.shape)}"
            )
        values = np.empty((len(records), self.elements), np.float32)
        step = _CHUNK // self.elements
        with np.errstate(over="ignore", invalid="ignore"):  # scales may be infinite or NaN
            for start in range(0, len(records), step):
                self.unpack(records[start : start + step]).values(values[start : start + step])
        return values


GGML_TYPES: dict[int, GgmlType] = {
    entry.number: entry
    for entry in (
        GgmlType("Q4_0", 2, 32, 18, unpack_q4_0),
        GgmlType("Q4_1", 3, 32, 20, unpack_q4_1),
        GgmlType("Q5_0", 6, 32, 22, unpack_q5_0),
        GgmlType("Q5_1", 7, 32, 24, unpack_q5_1),
        GgmlType("Q8_0", 8, 32, 34, unpack_q8_0),
        GgmlType("Q8_1", 9, 32, 40),
        GgmlType("Q2_K", 10, 256, 84, unpack_q2_k),
        GgmlType("Q3_K", 11, 256, 110, unpack_q3_k),
        GgmlType("Q4_K", 12, 256, 144, unpack_q4_k),
        GgmlType("Q5_K", 13, 256, 176, unpack_q5_k),
        GgmlType("Q6_K", 14, 256, 210, unpack_q6_k),
        GgmlType("Q8_K", 15, 256, 292),
        GgmlType("IQ2_XXS", 16, 256, 66, unpack_iq2_xxs),
        GgmlType("IQ2_XS", 17, 256, 74, unpack_iq2_xs),
        GgmlType("IQ3_XXS", 18, 256, 98, unpack_iq3_xxs),
        GgmlType("IQ1_S", 19, 256, 50, unpack_iq1_s),
        GgmlType("IQ4_NL", 20, 32, 18, unpack_iq4_nl),
        GgmlType("IQ3_S", 21, 256, 110, unpack_iq3_s),
        GgmlType("IQ2_S", 22, 256, 82, unpack_iq2_s),
        GgmlType("IQ4_XS", 23, 256, 136, unpack_iq4_xs),
        GgmlType("IQ1_M", 29, 256, 56, unpack_iq1_m),
        GgmlType("TQ1_0", 34, 256, 54, unpack_tq1_0),
        GgmlType("TQ2_0", 35, 256, 66, unpack_tq2_0),
        GgmlType("MXFP4", 39, 32, 17, unpack_mxfp4),
        GgmlType("NVFP4", 40, 64, 36, unpack_nvfp4),
        GgmlType("Q1_0", 41, 128, 18),
    )
}
"""The block types by their number in files; sizes are as in the gguf package."""
