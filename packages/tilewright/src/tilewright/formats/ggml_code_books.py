# SPDX-License-Identifier: Apache-2.0
"""The types of ggml with code books, IQ1, IQ2 and IQ3, taken apart: a code is an index of a row of 8 or 4 elements."""

from __future__ import annotations

from base64 import b64decode
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from .ggml_groups import BlockGroups, Records, Singles, group_codes, read_halves, read_words, split_bytes

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
    text = (files("tilewright.formats") / _TABLES).read_text(encoding="ascii")
    packed = np.frombuffer(b64decode(text.split(f"[{name}]\n")[1].split("[")[0]), np.uint8)
    levels = np.array(_LEVELS[name], np.int8)
    bits, row = (2, 8) if len(levels) <= 4 else (4, 4)
    table = levels[split_bytes(packed[None], bits)].reshape(-1, row)
    table.flags.writeable = False
    return table


@cache
def _sign_rows() -> NDArray[np.int8]:
    """Return the eight signs, 1 or -1, of every byte of sign bits."""
    result: NDArray[np.int8] = 1 - 2 * split_bytes(np.arange(256, dtype=np.uint8)[:, None], 1).view(np.int8)
    return result


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
